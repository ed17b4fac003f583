"""Shifts: Values that come, or are taken, in another unit or time zone, as a note says.

The keys stay as they are but for the unit that they named. One tool changes and the others do not,
so an agent has to convert where it compares a value with what the user said, or passes it on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from toolshift.core import seed as seeds
from toolshift.core.codecs import Path as Keys
from toolshift.core.codecs import grow, leaves
from toolshift.core.layer import Below, Layer, Memory
from toolshift.core.scene import Scene
from toolshift.core.shift import Change, NotApplicable, Severity, shift
from toolshift.core.tables import table_beside
from toolshift.core.tool import Field, Param, Result, Tool
from toolshift.core.value_shape import Shape, moved, tidy
from toolshift.core.values import is_number
from toolshift.shifts.arguments import Reshaped
from toolshift.shifts.careless import IgnoresUnits, naive_fails, oracle_unchanged
from toolshift.shifts.dependency import used
from toolshift.shifts.oracle_trace import replay
from toolshift.shifts.surface import Surface

TABLES: dict[str, Any] = table_beside(__file__, "units.toml")

_UNITS = re.compile(r"\b(euro|kilomet|minute|kilogram|milligram)", re.IGNORECASE)
"""A description that names a unit itself, which a note would contradict."""
_CLOCK = re.compile(r"([01]\d|2[0-3]):[0-5]\d")


@dataclass(frozen=True, slots=True)
class Conversion:
    """How one value is shown now: at which key, times `scale` or `minutes` later."""

    key: str
    scale: float = 1.0
    minutes: int = 0

    def field(self, field: Field) -> Field:
        """How the value is read back."""
        path, scale = (*field.path[:-1], self.key), field.scale * self.scale
        return replace(field, path=path, scale=scale, unit="", minutes=self.minutes)

    def value(self, value: Any) -> Any:
        """The value as it is shown."""
        if isinstance(value, str):
            return moved(value, self.minutes)
        return tidy(value * self.scale) if is_number(value) and self.scale != 1 else value


@dataclass(frozen=True, eq=False)
class Converted(Layer):
    """Some values of some tools come back in another unit or on another clock.

    Attributes:
        conversions: for a tool, and a fact that it yields, how it is shown.
        notes: for a tool, what its documentation says of it.
    """

    conversions: Mapping[str, Mapping[str, Conversion]]
    notes: Mapping[str, str]
    slots = frozenset({"result.form"})

    def tools(self, tools: tuple[Tool, ...], memory: Memory) -> tuple[Tool, ...]:
        """The tools with their notes."""
        return tuple(self._noted(tool) if tool.name in self.notes else tool for tool in tools)

    def _noted(self, tool: Tool) -> Tool:
        known = self.conversions.get(tool.name, {})
        text = tool.description.rstrip()
        text = f"{text.removesuffix('.')}. " if text else ""
        fields = tuple(known[f.fact].field(f) if f.fact in known else f for f in tool.returns)
        return tool.with_(description=text + self.notes[tool.name], returns=fields)

    def changes_results(self, tool: Tool) -> bool:
        """Those of the tools with conversions."""
        return tool.name in self.conversions

    def call(self, name: str, arguments: dict[str, Any], memory: Memory, below: Below) -> Result:
        """Calls as below, and converts what comes back."""
        result = below(name, arguments)
        known = self.conversions.get(name, {})
        if not (known and result.ok and all(isinstance(one, dict) for one in result.records)):
            return result
        at = {f.path: (f, known[f.fact]) for f in result.fields if f.fact in known}
        records = [self._record(record, at) for record in result.records]
        fields = tuple(known[f.fact].field(f) if f.fact in known else f for f in result.fields)
        return result.with_records(records, fields=fields)

    @staticmethod
    def _record(
        record: dict[str, Any], at: Mapping[Keys, tuple[Field, Conversion]]
    ) -> dict[str, Any]:
        rows = {}
        for path, value in leaves(record):
            if path in at:
                field, conversion = at[path]
                rows[conversion.field(field).path] = conversion.value(value)
            else:
                rows[path] = value
        return grow(rows)


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A tool one value of which could change: of its results, or an argument."""

    tool: Tool
    layers: tuple[Layer, ...]


@shift(
    tier="interaction",
    dimension="observation",
    level=1,
    one_level=True,
    imitates="Google Routes API: durations come in seconds, where Directions had `7 mins`",
)
def unit_change(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Give values that decide in another unit or time zone; the tool's documentation says which."""
    candidates = list(_candidates(scene, rng))
    if not candidates:
        raise NotApplicable(
            "no value has a unit that is declared or named by its key, or is a time of day"
        )
    rng.shuffle(candidates)
    for one in candidates:
        if not scene.asks or (
            oracle_unchanged(scene, *one.layers) and naive_fails(scene, IgnoresUnits, *one.layers)
        ):
            return Change(layer=one.layers)
    raise NotApplicable("the task comes out the same whatever the units are")


@shift(
    tier="none",
    dimension="none",
    level=1,
    one_level=True,
    imitates="A release whose documentation says in which unit values have always been",
)
def unit_change_placebo(scene: Scene, rng: Random, severity: Severity) -> Change:
    """The twin of unit_change: a note on the same tool, by which every unit stays as it is."""
    same = seeds.rng(scene.task.id, "unit_change", severity, len(scene.shifts), "shift")
    change = unit_change(scene, same, severity)
    layers = change.layer if isinstance(change.layer, tuple) else (change.layer,)
    touched = scene.with_(layers=(*scene.layers, *layers)).tools
    before = {tool.name: tool for tool in scene.tools}
    (name,) = (t.name for t in touched if _differs(t, before[t.name]))
    note = rng.choice(TABLES["same"][scene.task.pool])
    return Change(layer=Converted({}, {name: note}))


def _differs(tool: Tool, before: Tool) -> bool:
    return (tool.description, tool.params) != (before.description, before.params)


def _candidates(scene: Scene, rng: Random) -> Iterator[_Candidate]:
    pool = scene.task.pool
    note, units = rng.choice(TABLES["notes"][pool]), TABLES["units"][pool]
    zone, local, minutes = rng.choice(TABLES["zones"][pool])
    clocks = _clocks(scene)
    for tool in used(scene):
        if tool.operations is not None or _UNITS.search(tool.description):
            continue
        for field in tool.returns:
            key, unit = field.path[-1], field.unit or _suffix(field.path[-1])
            if field.type != "string" and unit in units and field.scale == 1:
                name, factor = units[unit]
                plain = _unnamed(key, unit, [f.path[-1] for f in tool.returns])
                text = note["value"].format(key=f"`{plain}`", unit=name)
                yield _converting(tool, field, Conversion(plain, factor), text)
            elif field.fact in clocks and not field.minutes:
                text = note["clock"].format(key=f"`{key}`", zone=zone, local=local)
                yield _converting(tool, field, Conversion(key, minutes=minutes), text)
        for param in tool.params:
            unit = _suffix(param.name)
            if unit in units and not param.shapes and param.schema.get("type") == "number":
                name, factor = units[unit]
                yield _taking(tool, param, name, factor, note["argument"])


def _suffix(key: str) -> str:
    """The unit that a key names at its end; `min` is left out, for it may be a minimum."""
    unit = key.rpartition("_")[2]
    return unit if unit not in ("min", key) else ""


def _clocks(scene: Scene) -> set[str]:
    """The facts that are a time of day in every record that the oracle has seen."""
    times: dict[str, list[Any]] = {}
    for play in replay(scene).all:
        for record in play.facts:
            for fact, value in record.items():
                times.setdefault(fact, []).append(value)
    return {
        fact
        for fact, values in times.items()
        if all(isinstance(value, str) and _CLOCK.fullmatch(value) for value in values)
    }


def _converting(tool: Tool, field: Field, how: Conversion, text: str) -> _Candidate:
    return _Candidate(tool, (Converted({tool.name: {field.fact: how}}, {tool.name: text}),))


def _taking(tool: Tool, param: Param, unit: str, factor: float, note: str) -> _Candidate:
    """An argument that is taken in another unit, under a name without the old one."""
    shape = Shape("unit", scale=factor)
    name = _unnamed(param.name, _suffix(param.name), [p.name for p in tool.params])
    text = note.format(key=f"`{name}`", unit=unit)
    schema = {**_scaled(param.schema, factor), "description": text}
    layer = Reshaped(
        {tool.name: {param.name: shape}},
        {tool.name: {param.name: schema}},
        {tool.name: {param.name: param.schema}},
    )
    return _Candidate(tool, (layer, Surface(params={tool.name: {param.name: name}})))


def _scaled(schema: dict[str, Any], factor: float) -> dict[str, Any]:
    bounds = [k for k in ("minimum", "maximum") if k in schema]
    return schema | {k: tidy(schema[k] * factor) for k in bounds}


def _unnamed(key: str, unit: str, taken: list[str]) -> str:
    """A key without the unit that it names, where that is not taken."""
    plain = key.removesuffix(f"_{unit}")
    return plain if plain and plain not in taken else f"{plain}_value"

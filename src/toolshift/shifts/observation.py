"""Shifts: What comes back from a call.

Here is what changes the data of results; `interruption` has the failures and the tools that move.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Any

import jsonschema_rs

from toolshift.core import seed as seeds
from toolshift.core.codecs import Path as Keys
from toolshift.core.codecs import grow, leaves, replaced, texts_in
from toolshift.core.layer import Below, Layer, Memory
from toolshift.core.render import form, show
from toolshift.core.render import records as read_records
from toolshift.core.scene import Scene
from toolshift.core.shift import Change, NotApplicable, Severity, shift
from toolshift.core.tool import Field, Hint, Param, Result, Tool, error
from toolshift.interop.text_records import Piece, pieces
from toolshift.shifts.oracle_trace import (
    TABLES,
    OracleTrace,
    Play,
    affordable,
    fits,
    noted,
    replay,
    restyle,
    shuffled,
    spread,
    wording,
)

MAX_PAGES = 1000


# -- format_drift ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Drift(Layer):
    """Writes results in another way; the facts stay the same, and the keys where `style` is "".

    Records deeper in the data, and those that stand in a text, are written so as well.
    """

    style: str
    pool: str
    form: str = "json"
    text: Keys = ()
    numbers: Keys = ()
    leaf: Keys = ()
    units: tuple[tuple[str, str, float], ...] = ()
    slots = frozenset({"result.form"})

    def call(self, name: str, arguments: dict[str, Any], memory: Memory, below: Below) -> Result:
        """Calls as below, and writes the result in another way."""
        result = below(name, arguments)
        if not result.ok:
            return result
        if isinstance(result.data, str):
            told = self._told(result.data)
            return result if told == result.data else result.with_(data=told, form="text")
        records = result.records
        if not all(isinstance(record, dict) for record in records):
            return result
        data, fields = self._written(records, result.fields)
        if not result.inside:
            return result.with_records(data, fields=fields, form=self.form)
        drifted = result.with_records(data, fields=fields, form=self.form)
        around, inside = self._around(drifted.data, result.inside)
        drifted = drifted.with_(data=around, inside=inside)
        # Rows hold no list that can be read back as one, so what stands around it stays as it is.
        return drifted if _keeps_list(drifted) else drifted.with_(form=result.form)

    def _around(self, data: Any, inside: Keys) -> tuple[Any, Keys]:
        """What a list stands in with its keys in the new style, and the way to the list."""
        if not inside or not isinstance(data, dict):
            return data, inside
        own, *rest = inside
        key = self._key(own)
        key = own if key in data.keys() - {own} else key
        inner, way = self._around(data.get(own), tuple(rest))
        kept = {key if each == own else each: value for each, value in data.items()}
        return {**kept, key: inner} if own in data else data, (key, *way)

    def _written(
        self, records: list[dict[str, Any]], fields: tuple[Field, ...]
    ) -> tuple[list[dict[str, Any]], tuple[Field, ...]]:
        """The records in the new way, and how to read them."""
        rows = [dict(leaves(record)) for record in records]
        numeric: dict[Keys, bool] = {}
        for row in rows:
            for path, value in row.items():
                numeric.setdefault(path, isinstance(value, (int, float)))
        layout = _layout(self, fields, tuple(numeric.items()))
        return [self._record(row, layout) for row in rows], layout.fields

    def places(self, numeric: dict[Keys, bool], units: dict[Keys, str]) -> dict[Keys, Keys]:
        """Where each value goes; one whose new place is taken keeps its own key."""
        places: dict[Keys, Keys] = {}
        moved: dict[Keys, Keys] = {}  # where each object, and each value, has gone
        taken: set[Keys] = set()
        for path, is_number in numeric.items():
            unit = units.get(path, "")
            place = above = self.numbers if is_number else self.text
            for depth, own in enumerate(path, 1):
                spot = (*above, *path[:depth])
                last = unit and self.style and depth == len(path)
                key = f"{own.removesuffix(unit)}_{self.unit(unit)[0]}" if last else own
                new = (*place, self._key(key))
                if spot not in moved:
                    moved[spot] = (*place, own) if new in taken else new
                    taken.add(moved[spot])
                place = moved[spot]
            places[path] = (*place, *self.leaf)
        return places

    def _key(self, key: str) -> str:
        """A key in the new style; one that is itself data, such as an id or a path, stays."""
        named = self.style and _NAME.fullmatch(key)
        return restyle(key, self.style, self.pool) if named else key

    def _deeper(self, value: Any) -> Any:
        """A value that is no object, with the records inside of it in the new style."""
        if isinstance(value, str):
            return self._told(value) if "\n" in value or value[:1] in ("{", "[") else value
        if isinstance(value, list):
            return [self._deeper(one) for one in value]
        if not isinstance(value, dict):
            return value
        keys = {key: self._key(key) for key in value}
        told = Counter(keys.values())
        return {
            new if told[new] == 1 else key: self._deeper(value[key]) for key, new in keys.items()
        }

    def _told(self, text: str) -> str:
        """A text in which records are written in the new way, its words as they are."""
        parts = pieces(text)
        if all(part.data is None for part in parts):
            return text
        return "".join(self._piece(part) for part in parts)

    def _piece(self, part: Piece) -> str:
        if part.data is None:
            return part.text
        data, _ = self._written(part.data if isinstance(part.data, list) else [part.data], ())
        drifted = data if isinstance(part.data, list) else data[0]
        nested = any(isinstance(value, dict) for record in data for value in record.values())
        own = self.form == "json" and (not nested or part.text[0] in "[{")
        return part.write(drifted) if own else form(self.form).write(drifted)

    def unit(self, name: str) -> tuple[str, float]:
        """The unit that a unit has become, and how many of it make one."""
        return next((row[1:] for row in self.units if row[0] == name), (name, 1.0))

    def _record(self, row: dict[Keys, Any], layout: _Layout) -> dict[str, Any]:
        new: dict[Keys, Any] = {}
        for path, value in row.items():
            place, scale = layout.moves[path]
            scaled = scale != 1 and value is not None
            new[place] = _scaled(value, scale) if scaled else self._deeper(value)
        return grow(new)


def _keeps_list(result: Result) -> bool:
    """Whether the list of a result can be read back from its form."""
    try:
        found = read_records(show(result), result)
    except ValueError:
        return False
    return isinstance(found, list) and len(found) == len(result.records)


@dataclass(frozen=True)
class _Layout:
    """Where the values of records of one shape go.

    Attributes:
        moves: for each path the new one, and what a number there is multiplied by.
        fields: how to read the records then.
    """

    moves: dict[Keys, tuple[Keys, float]]
    fields: tuple[Field, ...]


@lru_cache(maxsize=1024)  # the results of a tool have one shape in most worlds
def _layout(
    drift: Drift, fields: tuple[Field, ...], numeric: tuple[tuple[Keys, bool], ...]
) -> _Layout:
    """The layout of records, by how they are read and which of their values are numbers."""
    declared = {field.path: field.type != "string" for field in fields}
    units = {field.path: field.unit for field in fields}
    scales = {path: drift.unit(unit)[1] for path, unit in units.items()}
    places = drift.places({**declared, **dict(numeric), **declared}, units)
    return _Layout(
        {path: (place, scales.get(path, 1.0)) for path, place in places.items()},
        tuple(_read_so(field, places[field.path], *drift.unit(field.unit)) for field in fields),
    )


def _read_so(field: Field, place: Keys, unit: str, scale: float) -> Field:
    return Field(place, field.fact, field.type, field.scale * scale, unit)


_NAME = re.compile(r"[A-Za-z_]+(?:[ .-][A-Za-z_]+)*\d{0,2}")
"""A key that names what it holds, and is no id, date or path."""


def _scaled(value: float, scale: float) -> float:
    number = round(value * scale, 6)
    return int(number) if number == int(number) else number


@shift(
    tier="interaction",
    dimension="observation",
    level=1,
    imitates="Google Places API (New): rating, formatted_address and the rest come back as "
    "formattedAddress, displayName.text and others than in the legacy API",
)
def format_drift(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Write results under other keys (1), in another structure (2) and in other units (3)."""
    pool = scene.task.pool
    table = TABLES["format_drift"][pool]
    # One choice for the three severities of a task, so that they differ in severity alone.
    rng = seeds.rng(scene.task.id, "format_drift")
    style, shape = rng.choice(table["styles"]), rng.choice(table["shapes"])
    if severity == 1:
        return _written(scene, Drift(style, pool))
    units = tuple((unit, *row) for unit, row in table["units"].items()) if severity == 3 else ()
    outer = table["outer"] if severity == 3 else []
    text, numbers = (*outer, *shape["text"]), (*outer, *shape["numbers"])
    style, leaf = shape.get("style", style), tuple(shape["leaf"])
    return _written(scene, Drift(style, pool, shape["form"], text, numbers, leaf, units))


def _written(scene: Scene, layer: Drift) -> Change:
    """The change that a layer makes of results."""
    plays = replay(scene).all if scene.world.counts else ()
    if plays and all(
        layer.call(play.step.name, play.arguments, {}, lambda *_, p=play: p.result) == play.result
        for play in plays
    ):
        raise NotApplicable("no result of the task holds data that could be written otherwise")
    return Change(layer)


@shift(
    tier="interaction",
    dimension="observation",
    level=1,
    one_level=True,
    imitates="Alpha Vantage: with datatype=csv the same series comes as rows of a CSV file",
)
def csv_results(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Write results as comma-separated values or the like; keys and values stay as they are."""
    return _written(scene, Drift("", scene.task.pool, TABLES["csv_results"][scene.task.pool]))


# -- missing_values ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Missing(Layer):
    """The first results of some tools lack values; the same call brings them later."""

    times: tuple[tuple[str, int], ...]
    facts: frozenset[str]
    notice: str

    def changes_results(self, tool: Tool) -> bool:
        """Those of the tools that lack values at first."""
        return tool.name in dict(self.times)

    def call(self, name: str, arguments: dict[str, Any], memory: Memory, below: Below) -> Result:
        """Calls as below, and blanks the first results of some tools."""
        result = below(name, arguments)
        left = dict(self.times).get(name, 0) - memory.get(name, 0)
        busy = result.hint is not None and result.hint.kind != "page"
        if left <= 0 or not result.ok or not result.data or busy:
            return result
        memory[name] = memory.get(name, 0) + 1
        paths = {field.path for field in result.fields if field.fact in self.facts}
        blank = [_blank(one, paths) for one in result.records]
        return noted(result, self.notice).with_records(blank, hint=Hint("retry"))


def _blank(record: dict[str, Any], paths: set[Keys]) -> dict[str, Any]:
    return grow({path: None if path in paths else value for path, value in leaves(record)})


@shift(
    tier="interaction",
    dimension="observation",
    level=2,
    imitates="GitHub REST: a pull request's mergeable is null while it is computed; ask again",
)
def missing_values(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Let values that the task needs come back null at first, and whole when asked again."""
    plays = replay(scene)
    used = {str(value) for play in plays.all for value in play.arguments.values()}
    used |= {step.said for step in scene.rehearsal if step.kind == "answer"}
    hidden: set[str] = set()
    tools = []
    for name in plays.needed:
        told = [fact for record in plays.first(name).facts for fact in record.items()]
        if plays.tools[name].effect == "read" and told:
            tools.append(name)
            hidden |= {fact for fact, value in told if severity == 3 or str(value) in used}
    # A tool none of whose values is passed on decides by them, so all of them go.
    for name in tools:
        of_tool = {fact for record in plays.first(name).facts for fact in record}
        hidden |= of_tool if not of_tool & hidden else set()
    if not tools:
        raise NotApplicable("the task reads nothing")
    wanted = spread(shuffled(tools, rng), {1: 1, 2: 2, 3: 4}[severity])
    kept = affordable(plays, [(name, [plays.first(name).run]) for name in wanted])
    notice = wording("missing_values", scene, rng)[2]
    return Change(Missing(tuple(Counter(kept).items()), frozenset(hidden), notice))


# -- truncation --------------------------------------------------------------------------------

CURSOR = "page_cursor"


@dataclass(frozen=True)
class Pages(Layer):
    """Lists come in pages; a notice says how to get the next one."""

    size: int
    param: Param
    notice: str
    invalid: tuple[str, str]
    token: str
    salt: int
    slots = frozenset({"result.pages"})

    def tools(self, tools: tuple[Tool, ...], memory: Memory) -> tuple[Tool, ...]:
        """Lists take a cursor."""
        return tuple(
            tool.with_(params=(*tool.params, self.param)) if tool.many else tool for tool in tools
        )

    def changes_results(self, tool: Tool) -> bool:
        """Those that are lists."""
        return tool.many

    def call(self, name: str, arguments: dict[str, Any], memory: Memory, below: Below) -> Result:
        """Calls as below, and shows the page that the cursor opens."""
        own = {key: value for key, value in arguments.items() if key != self.param.name}
        start = self._start(arguments.get(self.param.name))
        if start is None:
            return error(*self.invalid)
        result = below(name, own)
        if not result.ok or not isinstance(result.data, list):
            return result
        if result.hint is not None and result.hint.kind == "page":
            return result  # it comes in pages already
        end = start + self.size
        page = result.with_(data=result.data[start:end])
        if len(result.data) <= end or result.hint is not None:
            return page
        cursor = self._cursor(end)
        notice = self.notice.format(param=self.param.name, value=cursor)
        return noted(page, notice).with_(hint=Hint("page", arguments={self.param.name: cursor}))

    def _cursor(self, offset: int) -> str:
        number = seeds.derive(self.salt, offset)
        return self.token.format(hex=f"{number % 16**6:06x}", number=number % 10**7)

    def _start(self, cursor: Any) -> int | None:
        if cursor is None:
            return 0
        offsets = range(self.size, self.size * MAX_PAGES, self.size)
        return next((offset for offset in offsets if self._cursor(offset) == cursor), None)


@shift(
    tier="interaction",
    dimension="observation",
    level=2,
    imitates="Slack Web API: conversations.list is paged by cursor; an unpaged call may be cut",
)
def truncation(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Cut lists into pages: two (1), three (2), or one a record (3)."""
    plays = replay(scene)
    lists = [(play.run, len(play.result.data)) for play in plays.all if _is_list(play)]
    longest = max((length for _, length in lists), default=0)
    if longest < 2:
        raise NotApplicable("no list of the task has two records")
    least = {1: -(-longest // 2), 2: -(-longest // 3), 3: 1}[severity]
    extra = {
        size: Counter([run for run, length in lists for _ in range((length - 1) // size)])
        for size in range(least, longest)
    }
    size = next((size for size, more in extra.items() if fits(plays.load + more)), 0)
    if not size:
        raise NotApplicable("the oracle would run out of calls")
    code, text, notice, described = wording("truncation", scene, rng)
    name, description = described.split(": ")
    param = Param(name, CURSOR, {"type": "string", "description": description}, required=False)
    token = {"train": "c_{hex}", "dev": "PG{number}", "test": "{number}.{hex}"}[scene.task.pool]
    return Change(Pages(size, param, notice, (code, text), token, rng.getrandbits(32)))


def _is_list(play: Play) -> bool:
    return play.result.ok and isinstance(play.result.data, list)


# -- verification_change -----------------------------------------------------------------------


@dataclass(frozen=True)
class Reissue(Layer):
    """Values that were handed out are reissued: (old, new, newer, ...), each known when told."""

    chains: tuple[tuple[str, ...], ...]
    code: str
    text: str
    slots = frozenset({"values"})

    def call(self, name: str, arguments: dict[str, Any], memory: Memory, below: Below) -> Result:
        """Answers an old value with the new one, and calls below with the value known there."""
        told = memory.setdefault("told", {})
        said = texts_in(arguments)
        for chain in self.chains:
            stale = next((old for old in chain[:-1] if old in said), None)
            if stale is not None:
                following = chain[chain.index(stale) + 1]
                new = max(told.get(chain[0], following), following, key=chain.index)
                told[chain[0]] = new
                text = self.text.format(old=stale, new=new)
                hint = Hint("value", old=stale, new=new)
                return error(self.code, text, hint, provoked=True)
        inward = {chain[-1]: chain[0] for chain in self.chains}
        result = below(name, replaced(arguments, inward))
        return result.with_(data=replaced(result.data, told)) if told and result.ok else result


_ID = re.compile(r"(?=.*[0-9])([A-Za-z]+[-_]?)?[A-Za-z0-9_-]+")


def _ids(scene: Scene, plays: OracleTrace) -> dict[str, list[Play]]:
    """The ids that the oracle took from results and passed on, each with the calls it went to."""
    said = " ".join([scene.system, *(ask.text for ask in scene.asks)]).lower()
    answers = {step.said for step in scene.rehearsal if step.kind == "answer"}
    seen: set[str] = set()
    found: dict[str, list[Play]] = {}
    for play in plays.all:
        for value in dict.fromkeys(texts_in(play.arguments)):
            known = value in seen and value not in answers
            if known and _ID.fullmatch(value) and value.lower() not in said:
                found.setdefault(value, []).append(play)
        seen.update(texts_in(play.facts))
    return found


def _reissued(old: str, users: list[Play], pool: str, rng: Random) -> str:
    """A new value in the manner of the pool where the schemas let it, else of the same shape."""
    taking = [
        (param.schema, play.arguments[param.name])
        for play in users
        for param in play.tool.params
        if old in texts_in(play.arguments.get(param.name))
    ]
    head = re.match(r"[A-Za-z]+[-_]?(?=.)|", old)
    prefix = head[0] if head else ""
    number = rng.getrandbits(40)
    digits, letter = f"{number % 10**5:05d}", rng.choice("BCDFGHJKLMNPQRSTVWXZ")
    body = {
        "train": digits + letter,
        "dev": f"x{number % 16**5:05x}",
        "test": letter + "." + digits,
    }
    same = "".join(_redrawn(mark, rng) for mark in old.removeprefix(prefix))
    for new in (prefix + body[pool], prefix + same):
        if new != old and all(
            jsonschema_rs.is_valid(schema, replaced(value, {old: new})) for schema, value in taking
        ):
            return new
    return ""


def _redrawn(mark: str, rng: Random) -> str:
    if mark.isdigit():
        return rng.choice("0123456789")
    return rng.choice("BCDFGHJKLMNPQRSTVWXZ") if mark.isupper() else mark


@shift(
    tier="interaction",
    dimension="observation",
    level=2,
    imitates="Google Places: place ids can change; refresh ids that were stored",
)
def verification_change(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Reissue an id or code obtained earlier: one once (1), two (2), every one and again (3)."""
    plays = replay(scene)
    users, pool = _ids(scene, plays), scene.task.pool
    able = [old for old in users if _reissued(old, users[old], pool, Random(0))]  # noqa: S311 - no secret
    wanted = spread(shuffled(able, rng), {1: 1, 2: 2, 3: max(4, len(able))}[severity])
    # The first reissue costs one call; after a further one, each later use may take a detour.
    runs = {old: list(dict.fromkeys(play.run for play in users[old])) for old in able}
    priced = [
        (old, runs[old] if old in wanted[:place] else runs[old][:1])
        for place, old in enumerate(wanted)
    ]
    chains: dict[str, list[str]] = {}
    for old in affordable(plays, priced):
        chains.setdefault(old, [old]).append(_reissued(old, users[old], pool, rng))
    code, text, _, _ = wording("verification_change", scene, rng)
    return Change(Reissue(tuple(map(tuple, chains.values())), code, text))

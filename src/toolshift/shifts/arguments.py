"""Shifts: What a call has to pass: what is required, of which type, which choice, what by default.

Published servers change these more often than names. The documentation tells all that is needed
(wording in `arguments.toml`); a call that is made as before fails with the client's message about
the schema, or comes back with less.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Any

import jsonschema_rs

from toolshift.core import seed as seeds
from toolshift.core.codecs import grow, leaves
from toolshift.core.layer import Below, Layer, Memory
from toolshift.core.scene import Scene
from toolshift.core.shift import Change, NotApplicable, Severity, shift
from toolshift.core.tables import table_beside
from toolshift.core.tool import Param, Result, Tool, error
from toolshift.core.value_shape import Shape
from toolshift.interop.conditions import restated_value
from toolshift.interop.parts import listed_in
from toolshift.shifts import wording
from toolshift.shifts.action import reach
from toolshift.shifts.careless import AssumesDefaults, naive_fails, oracle_unchanged
from toolshift.shifts.dependency import links, used
from toolshift.shifts.oracle_trace import replay
from toolshift.shifts.wording import form_of

TABLES: dict[str, Any] = table_beside(__file__, "arguments.toml")
said = partial(form_of, TABLES)

Schema = dict[str, Any]


# -- parameters that are written otherwise -----------------------------------------------------


@dataclass(frozen=True, eq=False)
class Reshaped(Layer):
    """Some parameters take their values in another shape; calls go below as before.

    Attributes:
        shapes: for a tool below, and a parameter of it, how its value is written now.
        schemas: the schema that goes with it.
        was: the schema that it had.
    """

    shapes: Mapping[str, Mapping[str, Shape]]
    schemas: Mapping[str, Mapping[str, Schema]]
    was: Mapping[str, Mapping[str, Schema]]

    def tools(self, tools: tuple[Tool, ...], memory: Memory) -> tuple[Tool, ...]:
        return tuple(
            tool.with_(params=tuple(self._param(tool.name, p) for p in tool.params))
            if tool.name in self.shapes
            else tool
            for tool in tools
        )

    def _param(self, tool: str, param: Param) -> Param:
        shape = self.shapes[tool].get(param.name)
        if shape is None:
            return param
        schema = self.schemas[tool][param.name]
        return replace(param, schema=schema, shapes=(*param.shapes, shape))

    def changes_results(self, tool: Tool) -> bool:
        return False  # what changes is how values are given

    def call(self, name: str, arguments: dict[str, Any], memory: Memory, below: Below) -> Result:
        shapes = self.shapes.get(name, {})
        own = {k: shapes[k].read(v) if k in shapes else v for k, v in arguments.items()}
        for key in own.keys() & shapes.keys():
            fault = _fault(self.was[name][key], own[key])
            if fault:
                return error("invalid_arguments", f"{name}: {key}: {fault}")
        return below(name, own)

    @property
    def inverse(self) -> Reshaped:
        """The layer that undoes this one: over it, everything is called as below."""
        shapes = {t: {n: s.inverse for n, s in by.items()} for t, by in self.shapes.items()}
        return Reshaped(shapes, self.was, self.schemas)


def _fault(schema: Schema, value: Any) -> str:
    """What a schema has against a value; "" where nothing, or where nobody can check it."""
    try:
        return next((str(e.message) for e in jsonschema_rs.iter_errors(schema, value)), "")
    except (ValueError, jsonschema_rs.ReferencingError):
        return ""


def reshaped(reshapings: list[tuple[Tool, Param, Shape, Schema]]) -> Change:
    """The change that gives each of some parameters its shape and schema."""
    shapes: dict[str, dict[str, Shape]] = {}
    schemas: dict[str, dict[str, Schema]] = {}
    was: dict[str, dict[str, Schema]] = {}
    for tool, param, shape, schema in reshapings:
        shapes.setdefault(tool.name, {})[param.name] = shape
        schemas.setdefault(tool.name, {})[param.name] = schema
        was.setdefault(tool.name, {})[param.name] = param.schema
    return Change(layer=Reshaped(shapes, schemas, was))


def _said_of(param: Param) -> str:
    """What is said of a parameter, as a sentence."""
    text = str(param.schema.get("description", "")).strip()
    return text if not text or text.endswith((".", "!", "?")) else f"{text}."


# -- type_change -------------------------------------------------------------------------------


@shift(
    tier="perception",
    dimension="action",
    level=1,
    imitates="An MCP server whose array of objects became an array of strings between releases",
)
def type_change(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Change the type of parameters: one (1), all of the needed tools (2), all that are shown (3).

    Text comes in an object or a list of one, numbers as text, truth values as words, lists of
    objects as lists of text.
    """
    plain, of_objects = rng.choice(("object", "list")), ("keys", "json")
    key, wrapped = said("object", scene, rng)
    texts = {kind: said(kind, scene, rng) for kind in ("list", "text", *of_objects)}
    texts["object"] = wrapped
    yes, no, texts["choice"] = said("truth", scene, rng)

    def changed(param: Param) -> tuple[Shape, Schema] | None:
        kind, inner = _kind_of_type(param.schema, plain), param.schema
        if not kind or param.given is not None:
            return None
        field = next(iter(inner["items"]["properties"])) if kind == "keys" else key
        text = texts[kind].format(text=_said_of(param), key=field, yes=yes, no=no).strip()
        if kind == "choice":
            shape = Shape(kind, choices=((True, yes), (False, no)))
            listed = [one for one in listed_in(inner) or [True, False] if isinstance(one, bool)]
            schema = {"type": "string", "enum": [shape.write(one) for one in listed]}
            return shape, {**schema, "description": text}
        return Shape(kind, field), {**_schema_of(kind, inner, field), "description": text}

    def able(tool: Tool) -> list[Param]:
        suited = [p for p in tool.params if (p.required or severity == 3) and changed(p)]
        return suited[:1] if severity == 1 else suited

    tools = reach(scene, rng, severity, lambda tool: bool(able(tool)))
    return reshaped(
        [(t, p, *reshaping) for t in tools for p in able(t) if (reshaping := changed(p))]
    )


_COMBINING = frozenset(("allOf", "anyOf", "oneOf", "not", "if"))


def _kind_of_type(schema: Schema, plain: str) -> Any:
    """The shape that a value of a schema gets; "" where it stays."""
    kind, items = schema.get("type"), schema.get("items")
    if kind not in ("string", "object") and not _COMBINING.isdisjoint(schema):
        return ""  # what they ask would be lost
    if kind == "string" and "enum" not in schema and "const" not in schema:
        return plain
    if kind in ("number", "integer"):
        return "text"
    if kind == "boolean":
        return "choice"
    if kind == "array" and listed_in(schema) is not None:
        return ""
    if kind == "array" and isinstance(items, dict) and items.get("type") == "object":
        known = items.get("properties")
        if not isinstance(known, dict) or not known:
            return "json"
        only = next(iter(known.values())) if len(known) == 1 else {}
        return "keys" if isinstance(only, dict) and only.get("type") == "string" else "json"
    return ""


def _schema_of(kind: str, schema: Schema, key: str) -> Schema:
    inner = {name: value for name, value in schema.items() if name != "description"}
    if kind == "object":
        only = {"properties": {key: inner}, "required": [key], "additionalProperties": False}
        return {"type": "object", **only}
    if kind == "list":
        return {"type": "array", "items": inner, "minItems": 1, "maxItems": 1}
    if kind == "text" and (listed := listed_in(schema)) is not None:
        return {"type": "string", "enum": [Shape("text").write(one) for one in listed]}
    if kind == "text":
        return {"type": "string", "pattern": r"^-?[0-9]+(\.[0-9]+)?$"}
    sizes = {name: value for name, value in inner.items() if name in ("minItems", "maxItems")}
    items = inner["items"]["properties"][key] if kind == "keys" else {"type": "string"}
    return {"type": "array", "items": items, **sizes}


# -- enum_change -------------------------------------------------------------------------------


@shift(
    tier="perception",
    dimension="action",
    level=1,
    imitates="playwright-mcp: the console's onlyErrors gave way to a level of four choices",
)
def enum_change(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Change the choices of parameters: respelled (1), abbreviated (2), codes that say nothing (3).

    From severity 2 the documentation says which new choice stands for which old one.
    """
    pool = scene.task.pool
    tools = reach(scene, rng, 3, lambda tool: bool(_choosing(tool)))
    text, pair = said("choices", scene, rng), said("pair", scene, rng)
    new: dict[str, str] = {}

    def changed(param: Param) -> tuple[Shape, Schema]:
        old = [str(value) for value in param.schema["enum"]]
        for value in old:
            if value not in new:
                new[value] = _fresh(_choice(value, pool, severity, rng), {*new.values(), *old})
        choices = tuple((value, new[value]) for value in old)
        pairs = ", ".join(pair.format(new=f"`{now}`", old=was) for was, now in choices)
        description = text.format(text=_said_of(param), pairs=pairs).strip()
        more = {"description": description} if severity > 1 else {}
        shape = Shape("choice", choices=choices)
        shown = restated_value(param.name, param.schema, shape.write)
        for key in _OF_TEXTS & shown.keys():
            if any(_fault({key: shown[key]}, now) for _, now in choices):
                del shown[key]
        return shape, {**shown, **more}

    made, reasons = list[tuple[Tool, Param, Shape, Schema]](), list[NotApplicable]()
    for one, param in ((tool, param) for tool in tools for param in _choosing(tool)):
        try:
            made.append((one, param, *changed(param)))
        except NotApplicable as reason:  # others may be changed
            reasons.append(reason)
    if reasons and not made:
        raise reasons[0]
    return reshaped(made)


_OF_TEXTS = frozenset(("pattern", "format", "minLength", "maxLength"))
"""What a schema may ask of a text, which the former choices have been held to."""


def _choosing(tool: Tool) -> list[Param]:
    """The parameters that take one of several texts; not the one that says what a tool does."""
    choosers = {operation.chooser for operation in tool.operations or ()}
    return [p for p in tool.params if p.fact not in choosers and _has_choices(p)]


def _has_choices(param: Param) -> bool:
    enum = param.schema.get("enum")
    if param.given is not None or not isinstance(enum, list) or len(enum) < 2:
        return False
    return all(isinstance(value, str) and value for value in enum)


def _choice(value: str, pool: str, severity: int, rng: Random) -> str:
    if severity == 1:
        return wording.noisy(value, pool, 1)
    if severity == 3:
        return wording.opaque(pool, rng)
    letters = "".join(letter for letter in value if letter.isalnum())
    return {"train": letters[:3], "dev": f"{letters[:3].upper()}.", "test": f"_{letters[:4]}"}[pool]


def _fresh(value: str, taken: set[str]) -> str:
    number, name = 2, value
    while name in taken:
        number, name = number + 1, f"{value}{number}"
    return name


# -- required_parameter ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Requirement:
    """A parameter that a tool requires now, and what it has to be.

    Attributes:
        values: what is accepted, in lower case; empty where it must have come with an earlier
            result about the same thing.
    """

    tool: str
    param: Param
    values: frozenset[str] = frozenset()


@dataclass(frozen=True, eq=False)
class Required(Layer):
    """Tools require further parameters, and check them; below nothing knows of it."""

    requirements: tuple[Requirement, ...]
    code: str
    text: str

    def tools(self, tools: tuple[Tool, ...], memory: Memory) -> tuple[Tool, ...]:
        """The tools with what they require."""
        more: dict[str, tuple[Param, ...]] = {}
        for one in self.requirements:
            more[one.tool] = (*more.get(one.tool, ()), one.param)
        return tuple(
            tool.with_(params=(*tool.params, *more[tool.name])) if tool.name in more else tool
            for tool in tools
        )

    def changes_results(self, tool: Tool) -> bool:
        """No: it fails, or calls as below."""
        return False

    def call(self, name: str, arguments: dict[str, Any], memory: Memory, below: Below) -> Result:
        """Checks what is required, and calls below without it."""
        mine = [one for one in self.requirements if one.tool == name]
        extra = {one.param.name for one in mine}
        own = {key: value for key, value in arguments.items() if key not in extra}
        seen = memory.setdefault("seen", [])
        for one in mine:
            value = str(arguments.get(one.param.name)).lower()
            if not (value in one.values if one.values else _goes_with(value, own, seen)):
                return error(self.code, self.text.format(name=one.param.name))
        result = below(name, own)
        seen.extend(_groups(own, result))
        return result


def _groups(arguments: dict[str, Any], result: Result) -> Iterator[frozenset[str]]:
    """For each record that came back, its values with those that it was asked for by."""
    given = {str(value).lower() for value in arguments.values()}
    for record in result.records if result.ok else ():
        if isinstance(record, dict):
            yield frozenset(given | {str(value).lower() for _, value in leaves(record)})


def _goes_with(value: str, own: dict[str, Any], seen: list[frozenset[str]]) -> bool:
    """Whether a value came in one record with another argument of the call, if it has any."""
    others = {str(other).lower() for other in own.values() if isinstance(other, str)}
    return any(value in group and (not others or others & group) for group in seen)


@shift(
    tier="reasoning",
    dimension="action",
    level=2,
    imitates="mongodb-mcp-server 3.0.4: connectionId is required on 22 tools",
)
def required_parameter(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Require further parameters: documented (1), stated by the user too (2), returned too (3)."""
    # One choice for the three severities of a task, so that each adds to the one before.
    rng = seeds.rng(scene.task.id, "required_parameter")
    code, text = said("missed", scene, rng)
    finders = {
        _documented: "no tool that the task needs could require a documented value",
        _stated: "no detail of a request is left that a tool could require too",
        _returned: "no earlier result has a value that a later tool could require",
    }
    layer = Required((), code, text)
    for find, why in list(finders.items())[:severity]:
        more = find(scene, rng, layer)
        if more is None:
            raise NotApplicable(why)
        layer = replace(layer, requirements=(*layer.requirements, more))
    return Change(layer=layer)


def _documented(scene: Scene, rng: Random, layer: Required) -> Requirement | None:
    form = said("documented", scene, rng)
    tool = rng.choice(reach(scene, rng, 2))
    name, value = _free_name(form["name"], tool, layer), form["value"]
    schema = {"type": "string", "description": form["text"].format(value=value)}
    param = Param(name, f"{tool.name} {name}", schema, given=value)
    return Requirement(tool.name, param, frozenset((value.lower(),)))


def _stated(scene: Scene, rng: Random, layer: Required) -> Requirement | None:
    """A detail of the request that a tool has not taken so far."""
    facts, text = scene.world.facts, said("stated", scene, rng)
    goals = [ask.goal for ask in scene.asks]
    values = {str(value).lower() for goal in goals for value in goal.values()}
    common = set.intersection(*map(set, goals)) if goals else set()
    slots = [s for s in sorted(common) if s in facts and isinstance(goals[0][s], str)]
    candidates = [
        (tool, slot)
        for tool in used(scene)
        for slot in slots
        if all(p.fact != slot for p in tool.params)
    ]
    rng.shuffle(candidates)
    for tool, slot in candidates:
        name = _free_name(slot, tool, layer)
        schema = {"type": "string", "description": text.format(label=facts[slot].label)}
        one = Requirement(tool.name, Param(name, slot, schema), frozenset(values))
        if _is_borne(scene, layer, one):
            return one
    return None


def _returned(scene: Scene, rng: Random, layer: Required) -> Requirement | None:
    """A value that the tool before returns, and that nothing has taken so far."""
    text = said("earlier", scene, rng)
    answers = {step.said for step in scene.rehearsal if step.kind == "answer"}
    fact_of = {
        value: fact
        for play in replay(scene).all
        for record in play.facts
        for fact, value in record.items()
        if isinstance(value, str)
    }
    answering = {fact_of.get(answer) for answer in answers}
    tools = used(scene)
    taken = {param.fact for tool in scene.tools for param in tool.params}
    candidates = [
        (source, target, field)
        for source, target, _ in links(tools)
        for field in source.returns
        if field.type == "string" and field.fact not in taken | answering
    ]
    rng.shuffle(candidates)
    for source, target, field in candidates:
        key = field.path[-1]
        name = _free_name(key, target, layer)
        schema = {"type": "string", "description": text.format(key=key, source=source.name)}
        one = Requirement(target.name, Param(name, field.fact, schema))
        if _is_borne(scene, layer, one):
            return one
    return None


def _is_borne(scene: Scene, layer: Required, one: Requirement) -> bool:
    return oracle_unchanged(scene, replace(layer, requirements=(*layer.requirements, one)))


def _free_name(name: str, tool: Tool, layer: Required) -> str:
    taken = {param.name for param in tool.params}
    return _fresh(name, taken | {r.param.name for r in layer.requirements if r.tool == tool.name})


# -- default_change ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Default:
    """An optional parameter of a tool, and what its default does.

    Attributes:
        kind: "fields" leaves out values, "records" all records but the first, and "value" passes
            `value` below where nothing is passed.
        full: what is passed for all of them.
        facts: of the values that are left out.
    """

    tool: str
    param: Param
    kind: str
    full: Any = None
    facts: frozenset[str] = frozenset()
    value: Any = None


@dataclass(frozen=True, eq=False)
class Defaults(Layer):
    """What a call does not say is understood in another way than before."""

    defaults: tuple[Default, ...]

    def tools(self, tools: tuple[Tool, ...], memory: Memory) -> tuple[Tool, ...]:
        """The tools, each with the parameter whose default has changed."""
        by_tool = {one.tool: one.param for one in self.defaults}
        return tuple(
            tool.with_(params=_with(tool.params, by_tool[tool.name]))
            if tool.name in by_tool
            else tool
            for tool in tools
        )

    def changes_results(self, tool: Tool) -> bool:
        """Those that hold less by default."""
        return any(one.tool == tool.name and one.kind != "value" for one in self.defaults)

    def call(self, name: str, arguments: dict[str, Any], memory: Memory, below: Below) -> Result:
        """Calls below, and leaves out what the default leaves out."""
        one = next((one for one in self.defaults if one.tool == name), None)
        if one is None:
            return below(name, arguments)
        key = one.param.name
        if one.kind == "value":
            return below(name, {key: one.value, **arguments})
        own = {k: value for k, value in arguments.items() if k != key}
        chosen = arguments.get(key, one.param.schema["default"])
        result = below(name, own)
        if one.kind == "records":
            kept = result.is_list and not result.hint
            return result.with_records(result.records[:chosen]) if kept else result
        return result if chosen == one.full or not result.ok else _without(result, one.facts)


def _with(params: tuple[Param, ...], new: Param) -> tuple[Param, ...]:
    """The parameters with a new one, in the place of that of its name if there is one."""
    if all(param.name != new.name for param in params):
        return (*params, new)
    return tuple(new if param.name == new.name else param for param in params)


def _without(result: Result, facts: frozenset[str]) -> Result:
    """A result without some of its values."""
    gone = {field.path for field in result.fields if field.fact in facts}
    if not all(isinstance(record, dict) for record in result.records):
        return result
    kept = [grow({p: v for p, v in leaves(one) if p not in gone}) for one in result.records]
    fields = tuple(field for field in result.fields if field.path not in gone)
    return result.with_records(kept, fields=fields)


@shift(
    tier="perception",
    dimension="action",
    level=2,
    imitates="Google Places API (New): no field comes back unless a field mask asks for it",
)
def default_change(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Let less come back by default: of one needed tool (1), of each (2), of all shown (3).

    Where a tool has a parameter with a default, that default changes instead.
    """
    texts = {kind: said(kind, scene, rng) for kind in ("detail", "number", "default")}
    needed = [_default(tool, scene, texts, needed=True) for tool in used(scene)]
    able = [one for one in needed if one is not None and _matters(scene, one)]
    if not able:
        raise NotApplicable("no parameter has a default, and no result could be cut by default")
    if severity == 1:
        return Change(layer=Defaults((rng.choice(able),)))
    touched = {one.tool for one in able}
    others = [t for t in scene.tools if t.name not in touched] if severity == 3 else []
    more = [_default(tool, scene, texts, needed=False) for tool in others]
    borne = [one for one in more if one is not None and _is_kept_solvable(scene, one)]
    return Change(layer=Defaults((*able, *borne)))


@shift(
    tier="none",
    dimension="none",
    level=2,
    imitates="A release that adds optional parameters whose defaults keep what there was",
)
def default_change_placebo(scene: Scene, rng: Random, severity: Severity) -> Change:
    """The twin of default_change: the same parameters, by whose default nothing is left out."""
    same = seeds.rng(scene.task.id, "default_change", severity, len(scene.shifts), "shift")
    layer = default_change(scene, same, severity).layer
    assert isinstance(layer, Defaults)
    leaving_out = [one for one in layer.defaults if one.kind != "value"]
    if not leaving_out:
        raise NotApplicable("only defaults that there were would change")
    texts = {"fields": said("whole", scene, rng), "records": said("every", scene, rng)}
    return Change(layer=Defaults(tuple(_harmless(one, texts[one.kind]) for one in leaving_out)))


def _harmless(one: Default, text: str) -> Default:
    """A default by which nothing is left out."""
    brief = one.param.schema["default"]
    description = text.format(brief=brief, full=one.full)
    schema = {**one.param.schema, "default": one.full, "description": description}
    return replace(one, param=replace(one.param, schema=schema, given=None))


def _is_kept_solvable(scene: Scene, one: Default) -> bool:
    """Whether a task over somebody else's tools, which may need this one too, stays solvable."""
    return not scene.own_tools or oracle_unchanged(scene, Defaults((one,)))


def _matters(scene: Scene, one: Default) -> bool:
    layer = Defaults((one,))
    if not scene.asks:
        return True  # live tools: nobody knows what the task is
    return oracle_unchanged(scene, layer) and naive_fails(scene, AssumesDefaults, layer)


def _default(tool: Tool, scene: Scene, texts: Mapping[str, Any], needed: bool) -> Default | None:
    """What a tool leaves out by default; None where it has nothing to leave out."""
    for param in tool.params:
        if not param.required and "default" in param.schema and not param.shapes:
            return _other_default(tool, param, texts["default"])
    if tool.effect == "write" or tool.operations is not None:
        return None
    if tool.many and needed:
        form = texts["number"]
        schema = {"type": "integer", "minimum": 1, "maximum": 1000, "default": 1}
        name = _fresh(form["name"], {p.name for p in tool.params})
        shown = {**schema, "description": form["text"]}
        param = Param(name, f"{tool.name} {name}", shown, False, given=1000)
        return Default(tool.name, param, "records", 1000)
    form, gone = texts["detail"], _left_out(tool, scene, needed)
    if not gone:
        return None
    name = _fresh(form["name"], {p.name for p in tool.params})
    keys = ", ".join(f.path[-1] for f in tool.returns if f.fact in gone)
    description = form["text"].format(brief=form["brief"], full=form["full"], fields=keys)
    choices = [form["brief"], form["full"]]
    schema = {
        "type": "string",
        "enum": choices,
        "default": form["brief"],
        "description": description,
    }
    param = Param(name, f"{tool.name} {name}", schema, False, given=form["full"])
    return Default(tool.name, param, "fields", form["full"], frozenset(gone))


def _left_out(tool: Tool, scene: Scene, needed: bool) -> list[str]:
    """The facts that a tool leaves out: those that the task uses, else the second half."""
    facts = [field.fact for field in tool.returns]
    plays = replay(scene)
    used_values = {str(value) for play in plays.all for value in play.arguments.values()}
    used_values |= {step.said for step in scene.rehearsal if step.kind == "answer"}
    records_of = (
        [p.facts for p in plays.all if p.step.name == tool.name and p.result.ok] if needed else []
    )
    wanted = {
        fact
        for records in records_of
        for record in records
        for fact, value in record.items()
        if str(value) in used_values
    }
    gone = [fact for fact in facts if fact in wanted] or facts[len(facts) // 2 :]
    return gone if len(gone) < len(facts) else gone[1:]


def _other_default(tool: Tool, param: Param, text: str) -> Default | None:
    """The default of a parameter replaced by another value that its schema allows."""
    old = param.schema["default"]
    new = _another(old, param.schema)
    if new is None:
        return None
    description = text.format(text=_said_of(param), old=f"`{old}`", new=f"`{new}`").strip()
    shown = replace(
        param, schema={**param.schema, "default": new, "description": description}, given=old
    )
    return Default(tool.name, shown, "value", old, value=new)


def _another(old: Any, schema: Schema) -> Any:
    """Another value than the default that a schema allows; None where none is plain."""
    if isinstance(old, bool):
        return not old
    offers: list[Any] = [one for one in schema.get("enum", ()) if one != old]
    if isinstance(old, int | float) and not offers:
        offers = [old // 2, old * 2, old + 1]
    return next((one for one in offers if one != old and not _fault(schema, one)), None)

"""What is declared of a world holds together: names, tools, actions, facts and kinds of task.

Only what is declared is read here; nothing of the world is run. `toolshift check` runs it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import jsonschema_rs

from toolshift.core.errors import UsageError, defined_at, placed
from toolshift.core.fact import Fact
from toolshift.core.message import PROTOCOL_NAMES
from toolshift.core.names import MAX_NAME, is_taken_by_all, nearest, unknown
from toolshift.core.tool import Field, Param, Tool, input_schema
from toolshift.core.world import POOLS, Request, TaskKind, World

NEEDED: dict[str, tuple[type, str]] = {
    "name": (str, "a text"),
    "system": (str, "a text, the system prompt"),
    "facts": (Mapping, "a dict of toolshift.Fact by name"),
    "tools": (tuple, "a tuple of toolshift.Tool"),
    "actions": (Mapping, "a dict of functions by the name of their tool"),
    "kinds": (Mapping, "a dict of toolshift.TaskKind by name"),
}


def check_declared(world: World) -> World:
    """Checks what is declared of a world."""
    faults = list(faults_of(world))
    if not faults:
        return world
    name = getattr(world, "name", "") or type(world).__name__
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    raise UsageError(f"world {name}: {faults[0]}{more}")


def faults_of(world: World) -> Iterator[str]:
    """What is wrong in what a world declares."""
    place = defined_at(type(world))
    missing = [placed(fault, place) for fault in _attributes(world)]
    yield from missing
    if missing:
        return
    if type(world).build is World.build:
        yield placed("it has no method build(self, seed, size, pool), which makes the data", place)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", world.name):
        yield placed(f"its name {world.name!r} must be letters, digits, _, - and . alone", place)
    for fault in (*_tools(world), *_facts(world)):
        yield placed(fault, place)
    yield from _actions(world, place)
    for key, kind in world.kinds.items():
        yield from (placed(f"task kind {key!r}: {fault}", place) for fault in _kind(key, kind))


def _attributes(world: World) -> Iterator[str]:
    written = [name for name in vars(type(world)) if not name.startswith("_")]
    for name, (kind, what) in NEEDED.items():
        if not hasattr(world, name):
            others = [given for given in written if given not in dir(World) and given not in NEEDED]
            near = unknown("attribute", name, others) if others else ""
            hint = f"; {near.partition(': ')[2]}" if "did you mean" in near else ""
            yield f"it has no `{name}`, which must be {what}{hint}"
        elif not isinstance(getattr(world, name), kind):
            value = getattr(world, name)
            yield f"its `{name}` must be {what}, and is {type(value).__name__}"
        elif not getattr(world, name):
            yield f"its `{name}` is empty; it must be {what}"


def _tools(world: World) -> Iterator[str]:
    for number, tool in enumerate(world.tools):
        if not isinstance(tool, Tool):
            yield f"`tools` holds {type(tool).__name__} at place {number}, not a toolshift.Tool"
            continue
        where = f"tool {tool.name!r}"
        if not is_taken_by_all(str(tool.name)):
            yield f"{where}: a name is up to {MAX_NAME} letters, digits, _ and -"
        if tool.name in PROTOCOL_NAMES:
            yield f"{where}: this name is that of a protocol tool; choose another"
        if not isinstance(tool.description, str) or not tool.description.strip():
            yield f"{where}: it has no description"
        if tool.effect not in ("read", "write"):
            yield f"{where}: effect is 'read' or 'write', not {tool.effect!r}"
        yield from (f"{where}: {fault}" for fault in _parts(tool))
    for name in _twice(tool.name for tool in world.tools if isinstance(tool, Tool)):
        yield f"two tools are named {name!r}"


def _parts(tool: Tool) -> Iterator[str]:
    """What is wrong in the parameters and the fields of a tool."""
    for what, kind, parts in (("params", Param, tool.params), ("returns", Field, tool.returns)):
        if not isinstance(parts, tuple) or not all(isinstance(part, kind) for part in parts):
            advice = "; a tuple of one ends with a comma: (x,)" if isinstance(parts, kind) else ""
            yield f"`{what}` is a tuple of toolshift.{kind.__name__}{advice}"
            return
    if tool.origin != (tool.name,):
        yield f"origin is the name of the tool itself, ({tool.name!r},), not {tool.origin!r}"
    for name in _twice(param.name for param in tool.params):
        yield f"two parameters are named {name!r}"
    for field in tool.returns:
        if not isinstance(field.path, tuple) or not field.path:
            yield (
                f"the path of the field of {field.fact!r} is a tuple of keys, as "
                f"({str(field.path)!r},), not {field.path!r}"
            )
        if field.type not in ("string", "number", "integer"):
            yield f"field {field.fact!r}: type is string, number or integer, not {field.type!r}"
        elif field.unit and not str(field.path[-1]).endswith(str(field.unit)):
            yield f"field {field.fact!r}: its key has to end with its unit, {field.unit!r}"
    try:
        jsonschema_rs.validator_for(input_schema(tool))
    except (ValueError, TypeError) as fault:
        yield f"the schema of its parameters is no JSON Schema: {str(fault).splitlines()[0]}"


def _facts(world: World) -> Iterator[str]:
    for name, fact in world.facts.items():
        if not isinstance(fact, Fact):
            yield f"`facts` holds {type(fact).__name__} for {name!r}, not a toolshift.Fact"
        elif isinstance(fact.words, str) or not fact.words:
            yield f"fact {name!r}: its words are a tuple of texts, as ({fact.label!r},)"


def _actions(world: World, place: str) -> Iterator[str]:
    names = [tool.name for tool in world.tools if isinstance(tool, Tool)]
    for name in names:
        if name not in world.actions:
            free = [key for key in world.actions if key not in names]
            near = nearest(name, free) if free else "add it"
            yield placed(f"tool {name!r} has no function in `actions`: {near}", place)
    for name, action in world.actions.items():
        if not callable(action):
            yield placed(
                f"`actions` holds {type(action).__name__} for {name!r}: no function", place
            )
        elif name not in names:
            fault = f"`actions` has {name!r}, which is no tool: {unknown('tool', name, names)}"
            yield placed(fault, defined_at(action))


def _kind(key: str, kind: object) -> Iterator[str]:
    if not isinstance(kind, TaskKind):
        yield f"it is {type(kind).__name__}, not a toolshift.TaskKind"
        return
    if kind.name != key:
        yield f"it stands in `kinds` as {key!r} and its own name is {kind.name!r}"
    if "/" in key:
        yield "its name must not have a / in it"
    if not callable(kind.draw):
        yield f"its draw is {type(kind.draw).__name__}, not a function of (db, rng)"
    requests: Any = kind.requests
    if not isinstance(requests, tuple) or not requests:
        yield "its requests are a tuple of toolshift.Request; one alone ends with a comma: (x,)"
        return
    for request in requests:
        if not isinstance(request, Request):
            yield f"its requests hold {type(request).__name__}, not a toolshift.Request"
        else:
            yield from _request(request)


def _request(request: Request) -> Iterator[str]:
    if not callable(request.solve):
        yield f"solve is {type(request.solve).__name__}, not a function of (solver, env)"
    if not isinstance(request.phrasings, Mapping):
        yield f"phrasings is {type(request.phrasings).__name__}, not a dict of texts by pool"
        return
    for pool in POOLS:
        bank: Any = request.phrasings.get(pool, ())
        if not bank:
            yield f"its phrasings have none for the pool {pool!r}; there are: {', '.join(POOLS)}"
        elif isinstance(bank, str) or not all(isinstance(text, str) for text in bank):
            yield f"its phrasings of the pool {pool!r} are a tuple of texts"
    for pool in request.phrasings:
        if pool not in POOLS:
            yield f"its phrasings: {unknown('pool', str(pool), POOLS)}"


def _twice(names: Iterable[str]) -> list[str]:
    left = list(names)
    return sorted({name for name in left if left.count(name) > 1})

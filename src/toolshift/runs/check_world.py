"""Whether the code of a world does what its tools declare: every call of the oracle is made again.

The calls are made on the bare truth, twice, and then with values that do not exist.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any

from toolshift.core.errors import UsageError, WorldFault, defined_at, placed
from toolshift.core.names import nearest
from toolshift.core.scene import Scene
from toolshift.core.tool import JSON, Field, Result, Tool, invalid_arguments
from toolshift.core.values import is_number
from toolshift.core.world import POOLS, Truth, World
from toolshift.episode.draw import make_scene, phrase

Call = tuple[str, dict[str, Any]]
UNKNOWN = "no such value 7"
SAMPLE = 4
"""Tasks of a kind whose answers are compared."""
NUMBERS = {"integer": 987654321, "number": 987654321.5}


def world_findings(world: World, scenes: Sequence[Scene]) -> Iterator[str]:
    """The errors in the code of a world that the oracle's calls show."""
    made: dict[str, list[tuple[dict[str, Any], Result]]] = defaultdict(list)
    wrote: dict[str, list[bool]] = defaultdict(list)
    unsteady: set[str] = set()
    for scene in scenes:
        calls = [call for step in scene.calls for call in step.true]
        for (name, arguments), (result, effects), again in zip(
            calls, _played(scene.truth, calls), _played(scene.truth, calls), strict=True
        ):
            if JSON.encode(result.data) != JSON.encode(again[0].data):
                unsteady.add(name)
            if result.ok:
                made[name].append((arguments, result))
                wrote[name].append(bool(effects))
    for tool in world.tools:
        place = defined_at(world.actions[tool.name])
        if tool.name in unsteady:
            yield placed(
                f"two calls of {tool.name} with the same arguments return different results: take "
                "what is drawn from `build` or state.code(...), and do not change state.db",
                place,
            )
        for finding in (*_fields(tool, made[tool.name]), *_writes(tool, wrote[tool.name])):
            yield placed(finding, place)
    if scenes:
        yield from _unknown_values(world, scenes[0].truth, made)
        yield from _phrasings(world, scenes)
        yield from _same_answers(world, scenes[0])


def _phrasings(world: World, scenes: Sequence[Scene]) -> Iterator[str]:
    """Phrasings that name a value which is not drawn."""
    goals = {scene.task.kind: scene.asks[0].goal for scene in scenes}
    for key, kind in world.kinds.items():
        for request, pool in product(kind.requests, POOLS if key in goals else ()):
            for choice in range(len(request.phrasings[pool])):
                try:
                    phrase(request, goals[key], pool, choice)
                except WorldFault as fault:
                    message = f"task kind {key}, pool {pool}: {fault}"
                    yield placed(message, defined_at(type(world)))
                    break


def _same_answers(world: World, scene: Scene) -> Iterator[str]:
    """Kinds of which every task has the same answer, whatever is asked about."""
    task = scene.task
    for kind in world.kinds:
        drawn = [
            make_scene(world, kind, index, task.seed, task.pool, task.size).asks[-1]
            for index in range(SAMPLE)
        ]
        answers = {ask.expected for ask in drawn}
        if len(answers) == 1 and len({repr(ask.goal) for ask in drawn}) > 1:
            message = (
                f"task kind {kind}: {SAMPLE} tasks about different things have the one answer "
                f"{answers.pop()!r}, which can be guessed: derive it with state.code(...)"
            )
            yield placed(message, defined_at(type(world)))


def _played(truth: Truth, calls: Iterable[Call]) -> list[tuple[Result, list[Any]]]:
    """The results of calls in a fresh session, each with the effects that it recorded."""
    session = truth.open()
    results = []
    for name, arguments in calls:
        before = len(session.effects)
        result = session.call(name, dict(arguments))
        results.append((result, session.effects[before:]))
    return results


def _fields(tool: Tool, made: list[tuple[dict[str, Any], Result]]) -> Iterator[str]:
    """Fields that stand in no result, or whose values are of another type."""
    data = [result.data for _, result in made]
    records = [entry for one in data for entry in (one if tool.many else [one])]
    if not records:
        return
    for number, record in enumerate(records):
        if not isinstance(record, dict):
            kind = type(record).__name__
            yield f"{tool.name} returns a list with {kind} at place {number}, not dicts"
            return
    declared = {field.path[0] for field in tool.returns}
    free = sorted({str(key) for record in records for key in record} - declared)
    for field in tool.returns:
        values = [
            value for value in (_at(record, field.path) for record in records) if value is not None
        ]
        if not values:
            where = ".".join(field.path)
            near = nearest(field.path[0], free) if free else ""
            hint = f" ({near})" if near.startswith("did you mean") else ""
            yield (
                f"the field {where!r} of {tool.name}, which yields the fact {field.fact!r}, is in "
                f"none of its {len(records)} results{hint}"
            )
        else:
            yield from _typed(tool, field, values)


def _at(record: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        record = record.get(key) if isinstance(record, dict) else None
    return record


def _typed(tool: Tool, field: Field, values: list[Any]) -> Iterator[str]:
    numeric = field.type != "string"
    kinds: tuple[type, ...] = (int, float) if field.type == "number" else (int,)
    for value in values:
        if numeric and (not isinstance(value, kinds) or isinstance(value, bool)):
            yield (
                f"the field {'.'.join(field.path)!r} of {tool.name} is declared as type="
                f"{field.type!r}, and its value is {value!r:.60}"
            )
            return
        if not numeric and is_number(value):
            yield (
                f"the field {'.'.join(field.path)!r} of {tool.name} is declared as type='string', "
                f"and its value is {value!r:.60}: declare type='number'"
            )
            return


def _writes(tool: Tool, wrote: list[bool]) -> Iterator[str]:
    """Writes that record nothing, and reads that record something."""
    if tool.effect == "write" and wrote and not any(wrote):
        yield (
            f"{tool.name} is declared with effect='write', and its action records no effect: call "
            "state.record(...) in it, or what an agent writes is not graded"
        )
    if tool.effect == "read" and any(wrote):
        yield (
            f"{tool.name} records an effect, and is not declared with effect='write': declare it, "
            "or leave out state.record(...)"
        )


def _unknown_values(
    world: World, truth: Truth, made: dict[str, list[tuple[dict[str, Any], Result]]]
) -> Iterator[str]:
    """Actions that raise where an agent passes a value that does not exist, or leaves one out."""
    for tool in world.tools:
        known = made[tool.name][0][0] if made[tool.name] else {}
        for arguments in _tries(tool, known):
            if invalid_arguments(tool, arguments):
                continue
            try:
                truth.open().call(tool.name, arguments)
            except UsageError as fault:
                yield str(fault)
                break


def _tries(tool: Tool, known: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Arguments to try: as made, without what is optional, and with one that does not exist."""
    required = {param.name for param in tool.params if param.required}
    full = {param.name: _made_up(param.schema) for param in tool.params} | known
    yield {name: value for name, value in full.items() if name in required}
    yield full
    for param in tool.params:
        yield {**full, param.name: _made_up(param.schema)}
    yield {param.name: _made_up(param.schema) for param in tool.params}


def _made_up(schema: dict[str, Any]) -> Any:
    """A value that a schema allows and that probably no world has."""
    if schema.get("enum"):
        return schema["enum"][-1]
    if "const" in schema:
        return schema["const"]
    kind = schema.get("type")
    if kind in NUMBERS:
        return schema.get("maximum", schema.get("minimum", NUMBERS[kind]))
    if kind == "boolean":
        return True
    if kind == "array":
        return [_made_up(schema.get("items") or {})]
    if kind == "object":
        return {}
    text = UNKNOWN[: schema.get("maxLength", len(UNKNOWN))]
    return text if not schema.get("pattern") else schema.get("examples", [text])[0]

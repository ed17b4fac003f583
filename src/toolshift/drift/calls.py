"""Calls that were valid and no longer are: recorded ones, or generated ones if there are none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import jsonschema_rs
import msgspec

from toolshift.core.canonical import same
from toolshift.core.errors import UsageError
from toolshift.core.tool import Param
from toolshift.interop.schema import checkable, choices_of, sample
from toolshift.interop.tools import Source, from_mcp

_MAX_TRIES = 60
_EDGES: Mapping[str, tuple[Any, ...]] = {
    "string": ("", "x" * 5000),
    "number": (1.5, 0, -1, 10**9),
    "integer": (0, -1, 10**9),
    "array": ([],),
    "object": ({"sample": [None]},),
}
"""Values that limits refuse; tried last, for a plain call is the better example."""


class RecordedCall(msgspec.Struct, frozen=True):
    """A call as an agent made it."""

    tool: str
    arguments: dict[str, Any] = {}


class BrokenCall(msgspec.Struct, frozen=True):
    """A call that the old tools take and the new ones refuse.

    Attributes:
        call: the call.
        why: what the new tools say of it.
        where: the path to the argument that is refused; "" for the call as a whole.
        recorded: whether an agent made it; else it is a try, made from the old schema.
        times: how often it was recorded.
    """

    call: RecordedCall
    why: str
    where: str = ""
    recorded: bool = True
    times: int = 1


class Checker:
    """Checks calls against the tools of a list; schemas are compiled when first needed.

    Args:
        tools: as an MCP server lists them.
    """

    def __init__(self, tools: Iterable[Mapping[str, Any]]) -> None:
        self.documents = {str(tool.get("name")): tool for tool in tools}
        self._checks: dict[str, Any] = {}

    def fault(self, call: RecordedCall) -> tuple[str, str]:
        """The error in a call."""
        if call.tool not in self.documents:
            return "", f"there is no tool named {call.tool}"
        if call.tool not in self._checks:
            self._checks[call.tool] = _compiled(self.documents[call.tool].get("inputSchema"))
        check = self._checks[call.tool]
        try:
            wrong = next(iter(check.iter_errors(call.arguments)), None) if check else None
        except ValueError as deep:  # nested beyond what is checked
            return "", f"its arguments cannot be checked ({deep})"
        if wrong is None:
            return "", ""
        return ".".join(map(str, wrong.instance_path)), str(wrong.message)


def _compiled(schema: Any) -> Any:
    if not isinstance(schema, Mapping):
        return None
    try:
        return jsonschema_rs.validator_for(checkable(schema), validate_formats=False)
    except (ValueError, jsonschema_rs.ReferencingError):
        return None


def broken_calls(
    calls: Iterable[RecordedCall],
    old: Sequence[Mapping[str, Any]],
    new: Sequence[Mapping[str, Any]],
) -> tuple[BrokenCall, ...]:
    """The calls that the old tools take and the new ones refuse."""
    before, after = Checker(old), Checker(new)
    counted: dict[bytes, tuple[RecordedCall, int]] = {}
    for call in calls:
        key = msgspec.json.encode(call, order="deterministic")
        counted[key] = (call, counted.get(key, (call, 0))[1] + 1)
    broken = []
    for call, times in counted.values():
        where, why = after.fault(call)
        if why and not before.fault(call)[1]:
            broken.append(BrokenCall(call, why, where, True, times))
    return tuple(broken)


def tried_calls(source: Source) -> Iterator[RecordedCall]:
    """Generates valid calls of a tool: a minimal one, and one per optional parameter and choice."""
    check = _compiled(source.inputs)
    params = source.tool.params
    least = {param.name: sample(param.schema) for param in params if param.required}
    tries = [least, {param.name: sample(param.schema) for param in params}]
    tries += [{**least, p.name: value} for p in params for value in _values(p)]
    seen = set()
    for arguments in tries[:_MAX_TRIES]:
        key = msgspec.json.encode(arguments)
        if key not in seen and (check is None or check.is_valid(arguments)):
            seen.add(key)
            yield RecordedCall(source.tool.name, arguments)


def _values(param: Param) -> Iterator[Any]:
    """Values of a parameter, of every type and choice that it may have."""
    schema = param.schema
    yield from choices_of(schema)
    parts = [schema, *(schema.get("anyOf") or []), *(schema.get("oneOf") or [])]
    for part in parts:
        if isinstance(part, Mapping):
            bare = {key: value for key, value in part.items() if key not in ("default", "examples")}
            kinds = bare.get("type")
            for kind in kinds if isinstance(kinds, list) else [kinds]:
                yield sample({**bare, "type": kind} if kind else bare)
    items, further = schema.get("items"), schema.get("additionalProperties")
    if isinstance(items, Mapping):
        yield from ([sample(part)] for part in items.get("anyOf") or [])
    if isinstance(further, Mapping):
        yield {"sample": sample(further)}
    yield from _EDGES.get(str(schema.get("type")), ())


def counter_examples(
    old: Sequence[Mapping[str, Any]],
    new: Sequence[Mapping[str, Any]],
    calls: Iterable[RecordedCall] = (),
) -> dict[str, BrokenCall]:
    """For each old tool of which a call breaks, one such call."""
    examples: dict[str, BrokenCall] = {}
    for broken in broken_calls(calls, old, new):
        known = examples.get(broken.call.tool)
        if known is None or broken.times > known.times:
            examples[broken.call.tool] = broken
    after = Checker(new)
    for document in old:
        name = str(document.get("name"))
        now = after.documents.get(name)
        stays = now is not None and same(now.get("inputSchema"), document.get("inputSchema"))
        if name in examples or stays:
            continue
        (source,) = from_mcp([document]).sources.values()
        for call in tried_calls(source):
            where, why = after.fault(call)
            if why:
                examples[name] = BrokenCall(call, why, where, recorded=False, times=0)
                break
    return examples


def as_calls(records: Iterable[Mapping[str, Any]]) -> list[RecordedCall]:
    """Recorded calls from JSON objects."""
    return [_as_call(record, place) for place, record in enumerate(records)]


def _as_call(record: Mapping[str, Any], place: int) -> RecordedCall:
    name = record.get("tool", record.get("name")) if isinstance(record, Mapping) else None
    arguments = record.get("arguments") if isinstance(record, Mapping) else None
    if arguments is None and isinstance(record, Mapping) and "tool" in record:
        arguments = {}  # what has a name alone may be a tool as well as a call
    if isinstance(arguments, str):
        try:
            arguments = msgspec.json.decode(arguments or "{}")
        except (msgspec.DecodeError, RecursionError):
            arguments = None
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise UsageError(
            f'item {place} of the list is not a call: a call is {{"tool": NAME, "arguments": '
            "{...}}"
        )
    return RecordedCall(name, arguments)

"""The lock: the tools that an agent knew, with a hash of each, in one readable JSON file.

    lock = lock_side(read_side("mcp:npx -y my-server@1"))
    write_lock(Path("toolshift.lock.json"), lock)
    today = read_side("mcp:npx -y my-server@2")
    drift = verify(read_lock(Path("toolshift.lock.json")), today.tools)
    drift.worst, drift.changes, drift.counter_examples

A hash is the SHA-256 of a tool's document in canonical form (`core.canonical`, RFC 8785), so it is
the same whatever the order of keys and whoever computes it. Of an operation of an OpenAPI document
it is of {"document": ..., "request": ...}, with how the operation is requested. The lock's own hash
is of the names and hashes, whatever the order of the tools. A lock is JSON and no TOML, for a
schema may hold null.
"""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from toolshift.core.canonical import canonical_hash, same
from toolshift.core.documents import read_json
from toolshift.core.errors import UsageError
from toolshift.core.files import read_given, save
from toolshift.core.intake import Intake, NotRead
from toolshift.core.tool import Tool, input_schema
from toolshift.drift.calls import BrokenCall, RecordedCall, counter_examples
from toolshift.drift.changes import ToolChange, changes_between, worst_severity
from toolshift.drift.operations import with_same_operations
from toolshift.drift.other_locks import HashLock, read_foreign, recorded_parts
from toolshift.drift.requests import request_changes
from toolshift.drift.schemas import Severity
from toolshift.interop.request import Request
from toolshift.interop.tools import from_mcp
from toolshift.shifts.release.inputs import Kind, Side
from toolshift.shifts.release.mapping import Answers

FORMAT, WITH_REQUESTS = 1, 2
"""The formats of a lock; the second has how tools are requested."""
_NOT_OF_OPENAI = frozenset(("title", "annotations", "outputSchema", "icons", "execution", "_meta"))
"""The parts of an MCP tool that OpenAI's format of a tool lacks."""
_ONLY_OF_OPENAI = frozenset(("strict",))


class LockedTool(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool as its server listed it, and how it is requested, with the hash of both.

    `request` is None where the source does not say it, or where an older version locked it.
    """

    hash: str
    document: dict[str, Any]
    request: Request | None = None

    @classmethod
    def of(cls, document: dict[str, Any], request: Request | None) -> LockedTool:
        """The tool with its hash."""
        whole = {"document": document, "request": msgspec.to_builtins(request)}
        return cls(canonical_hash(whole if request else document), document, request)


class Lock(msgspec.Struct, frozen=True, omit_defaults=True):
    """The tools of an agent at one time.

    Attributes:
        format: of the file.
        kind: mcp, openai or openapi: what the tools were read from.
        origin: how messages name it; never with its arguments, which may hold secrets.
        hash: of the names and hashes of all tools.
        tools: in the order of the server.
        recorded: the keys of a tool that it holds, where another tool wrote it and holds only some;
            empty for every key.
    """

    format: int
    kind: Kind
    origin: str
    hash: str
    tools: tuple[LockedTool, ...]
    recorded: tuple[str, ...] = ()

    @property
    def documents(self) -> list[dict[str, Any]]:
        """The tools as an MCP server lists them."""
        return [tool.document for tool in self.tools]

    @property
    def requests(self) -> dict[str, Request] | None:
        """How tools are requested, by name; None where the lock does not hold it."""
        found = {tool.document["name"]: tool.request for tool in self.tools if tool.request}
        return found or None

    def seen(self, tools: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """What the lock would hold of tools: a part that it does not record is no drift.

        Args:
            tools: as an MCP server lists them.

        Returns:
            The tools with the keys that the lock records.
        """
        return [recorded_parts(tool, self.recorded) for tool in tools]

    def beside(self, tools: Iterable[Mapping[str, Any]], kind: Kind) -> Lock:
        """The lock as a list can be compared with it: what has no place in one of them is no drift.

        Args:
            tools: as an MCP server lists them.
            kind: what they were read from.

        Returns:
            The lock, without what the list cannot say of a tool and says of none; it records only
            what its own form can say of one.
        """
        if kind == self.kind or "openai" not in (kind, self.kind):
            return self
        here, there = _keys(self.documents), _keys(tools)
        of_openai, other = (here, there) if self.kind == "openai" else (there, here)
        unsaid = (_NOT_OF_OPENAI - of_openai) | (_ONLY_OF_OPENAI - other)
        if not unsaid & (here | there):
            return self
        kept = ({k: v for k, v in tool.items() if k not in unsaid} for tool in self.documents)
        made = lock_tools(kept, self.origin, self.kind)
        recorded = (key for key in self.recorded or sorted(here | there) if key not in unsaid)
        return msgspec.structs.replace(made, recorded=tuple(recorded))


class Drift(msgspec.Struct, frozen=True, dict=True):
    """The differences between a list of tools and a lock.

    Attributes:
        changes: every change; none where nothing moved.
        counter_examples: for each old tool of which a call breaks, such a call. One that was
            recorded has `recorded`; else it was made from the old schema.
        calls: how many recorded calls were looked at.
    """

    changes: tuple[ToolChange, ...]
    counter_examples: dict[str, BrokenCall]
    calls: int = 0

    @cached_property
    def worst(self) -> Severity | None:
        """The worst severity; None where nothing moved."""
        return worst_severity(self.changes)

    @property
    def breaks_calls(self) -> bool:
        """Whether a call that was recorded is refused now."""
        return any(call.recorded for call in self.counter_examples.values())


def _keys(tools: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    return frozenset[str]().union(*tools)


def lock_tools(
    tools: Iterable[Mapping[str, Any]],
    origin: str = "",
    kind: Kind = "mcp",
    requests: Mapping[str, Request] | None = None,
) -> Lock:
    """Locks a list of tools.

    Args:
        tools: as an MCP server lists them.
        origin: how messages name what they were read from.
        kind: what they were read from.
        requests: by tool how it is requested, where that is known.

    Returns:
        The lock.

    Raises:
        UsageError: where a tool has no name, two have the same, or one has no canonical form.
    """
    documents = [dict(tool) for tool in tools]
    from_mcp(documents)
    known = requests or {}
    locked = tuple(LockedTool.of(one, known.get(one["name"])) for one in documents)
    return Lock(WITH_REQUESTS if known else FORMAT, kind, origin, _whole(locked), locked)


def lock_shown(tools: Iterable[Tool], origin: str = "") -> Lock:
    """Locks the tools of a world, with the form of their results and whether they only read."""
    return lock_tools([_documented(tool) for tool in tools], origin)


def _documented(tool: Tool) -> dict[str, Any]:
    """A tool of a world as an MCP server would list it."""
    values: dict[str, Any] = {}
    for field in tool.returns:
        inner = values
        for key in field.path[:-1]:
            deeper = inner.setdefault(key, {"type": "object", "properties": {}})
            inner = deeper["properties"]
        inner[field.path[-1]] = {"type": field.type}
    record = {"type": "object", "properties": values}
    return {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": input_schema(tool),
        "outputSchema": {"type": "array", "items": record} if tool.many else record,
        "annotations": {"readOnlyHint": tool.effect == "read"},
    }


def lock_side(side: Side) -> Lock:
    """Locks the tools of a server, a document or a file that `read_side` has read."""
    return lock_tools(side.tools, side.origin, side.kind, side.requests)


def _whole(tools: Sequence[LockedTool]) -> str:
    return canonical_hash({tool.document["name"]: tool.hash for tool in tools})


def write_lock(path: Path, lock: Lock) -> None:
    """Writes a lock as JSON, with a line for each value so that a diff is readable."""
    text = json.dumps(msgspec.to_builtins(lock), indent=1, ensure_ascii=False)
    save(path, f"{text}\n".encode())


def read_lock(path: Path) -> Lock:
    """Reads a lock, and checks every hash. Locks of other tools are read too; see `other_locks`.

    Args:
        path: of the file.

    Returns:
        The lock.

    Raises:
        UsageError: where there is none, it is of a format that is not known, a tool in it is not
            the one that was locked, or another tool wrote it and it holds only hashes.
    """
    lock = read_any_lock(path)
    if isinstance(lock, HashLock):
        raise UsageError(
            f"{lock.origin} contains only hashes, which only `toolshift verify` can compare. "
            "Make a lock with `toolshift lock`"
        )
    return lock


def read_any_lock(path: Path) -> Lock | HashLock:
    """Reads a lock as `read_lock` does, and one that holds only hashes too."""
    try:
        raw = read_given(path).removeprefix(BOM_UTF8)
    except OSError as fault:
        raise UsageError(f"{path}: cannot be read ({fault.strerror})") from None
    # Of a key that is there twice the last is hashed, and a reader may see the first.
    document = read_json(raw, f"{path} is not a lock: it")
    foreign = read_foreign(document, path.name)
    if isinstance(foreign, HashLock):
        return foreign
    if foreign is not None:
        made = lock_tools(foreign.documents, f"{path.name} ({foreign.tool})")
        return msgspec.structs.replace(made, recorded=foreign.recorded)
    return _checked(path, raw)


def lock_in(path: Path) -> Lock | None:
    """The lock in a file; None where the file is none."""
    try:
        document = msgspec.json.decode(read_given(path).removeprefix(BOM_UTF8))
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    ours = isinstance(document, Mapping) and {"format", "hash", "tools"} <= document.keys()
    return read_lock(path) if ours or read_foreign(document, path.name) is not None else None


def check_holds_tools(lock: Lock | HashLock, path: Path) -> None:
    """Checks that there is something to compare with."""
    if not (lock.hashes if isinstance(lock, HashLock) else lock.tools):
        raise NotRead(
            f"{path} contains no tool, so there is nothing to compare with: lock the tools again",
            Intake(str(path), "tool"),
        )


def _checked(path: Path, raw: bytes) -> Lock:
    """Reads a lock in our own format, and checks every hash."""
    try:
        lock = msgspec.json.decode(raw, type=Lock)
    except (ValueError, RecursionError) as fault:
        raise UsageError(f"{path} is not a lock ({fault})") from None
    if lock.format not in (FORMAT, WITH_REQUESTS):
        raise UsageError(
            f"{path} is a lock of format {lock.format}, but this version reads only formats "
            f"{FORMAT} and {WITH_REQUESTS}: lock the tools again"
        )
    try:
        sources = from_mcp(lock.documents).sources
    except UsageError as fault:
        raise UsageError(f"{path}: {fault}") from None
    for name, tool in zip(sources, lock.tools, strict=True):
        if LockedTool.of(tool.document, tool.request).hash != tool.hash:
            raise UsageError(
                f"{path}: {name} does not match its hash, so the file was changed by hand. "
                "Restore it, or lock the tools again"
            )
    if _whole(lock.tools) != lock.hash:
        raise UsageError(
            f"{path}: tools were added to the file or removed from it by hand. Restore it, or "
            "lock the tools again"
        )
    return lock


def verify(
    lock: Lock,
    tools: Sequence[Mapping[str, Any]],
    calls: Iterable[RecordedCall] = (),
    answers: Answers | None = None,
    requests: Mapping[str, Request] | None = None,
) -> Drift:
    """Compares a list of tools with a lock, and how they are requested where both sides know it."""
    recorded = list(calls)
    tools = lock.seen(tools) if lock.recorded else tools
    was = {tool.document["name"]: tool.document for tool in lock.tools}
    now = {str(tool.get("name")): tool for tool in tools}
    if len(now) == len(tools) and same(was, now):
        return Drift(tuple(_of_requests(lock, requests or {}, ())), {}, len(recorded))
    known = with_same_operations(answers or Answers(), lock.requests, requests)
    changes = changes_between(lock.documents, tools, known)
    examples = counter_examples(lock.documents, tools, recorded)
    proven = _proven(changes, examples, was, now)
    sent = _of_requests(lock, requests or {}, changes)
    return Drift((*changes, *proven, *sent), examples, len(recorded))


def _of_requests(
    lock: Lock, requests: Mapping[str, Request], changes: Iterable[ToolChange]
) -> Iterator[ToolChange]:
    """What changed in how the tools that are still there are requested."""
    moved = {one.old: one.new for one in changes if one.kind == "tool_renamed"}
    for old, was in (lock.requests or {}).items():
        now = requests.get(moved.get(old, old))
        if now is not None:
            yield from request_changes(old, moved.get(old, old), was, now)


def _proven(
    changes: Iterable[ToolChange],
    examples: Mapping[str, BrokenCall],
    was: Mapping[str, Any],
    now: Mapping[str, Any],
) -> Iterator[ToolChange]:
    """Adds a breaking change for each tool that refuses a call although no change says so.

    Schemas can say more than is compared by name; a call that is refused is proof.
    """
    broken = {change.old for change in changes if change.severity == "breaking"}
    for name, example in examples.items():
        if name not in broken:
            first, second = (side.get(name, {}).get("inputSchema") for side in (was, now))
            yield ToolChange("schema_changed", name, name, "breaking", example.where, first, second)

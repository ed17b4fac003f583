"""Translates calls from the names of the lock to those of today."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from toolshift.adapt.moves import Move, Moves
from toolshift.core.errors import UsageError
from toolshift.core.message import PROTOCOL_NAMES
from toolshift.core.tool import as_openai
from toolshift.drift.calls import Checker, RecordedCall
from toolshift.drift.lock import Lock
from toolshift.interop.tools import from_mcp

MAX_LISTS = 256
"""How many parsed lists of tools are kept."""
NAMES, PARAMETERS = "names", "parameters"


class Intervention(msgspec.Struct, frozen=True, omit_defaults=True):
    """One action of the layer.

    Attributes:
        part: one of `layer.PARTS`.
        evidence: why.
        asked: the call as the agent made it; without a name where the agent spoke or was told.
        made: the call as it was made instead; where the agent was asked once more, its next one.
        answers: the id of the call whose failed result this call replaces; "" where the agent made
            the call in this message.
        place: which call of the message it is; -1 where the agent was told the evidence.
    """

    part: str
    evidence: str
    asked: RecordedCall
    made: RecordedCall
    answers: str = ""
    place: int = 0


class Repairer:
    """Translates calls, knowing the lock and the tools shown today.

    Args:
        lock: the tools as the agent knows them.
        parts: "names", "parameters" or both: what may be changed.
        reads: tools of the lock of which the user has said that they only read.
    """

    def __init__(
        self,
        lock: Lock,
        parts: Collection[str] = (NAMES, PARAMETERS),
        reads: Collection[str] = (),
    ) -> None:
        self.before, self.reads = from_mcp(lock.documents), frozenset(reads)
        self._parts = frozenset(parts) & {NAMES, PARAMETERS}
        self._old = Checker(lock.documents)
        self._seen: dict[bytes, tuple[Moves, Checker] | None] = {}

    def today(self, tools: Mapping[str, Mapping[str, Any]]) -> tuple[Moves, Checker] | None:
        """Today's tools beside the lock."""
        key = msgspec.json.encode(list(tools.values()))
        if key not in self._seen:
            if len(self._seen) >= MAX_LISTS:
                self._seen.clear()
            own = [tool for name, tool in tools.items() if name not in PROTOCOL_NAMES]
            documents = list(map(as_mcp, own))
            try:
                self._seen[key] = (Moves(self.before, documents, self.reads), Checker(documents))
            except UsageError:
                self._seen[key] = None
        return self._seen[key]

    def as_known(self, shown: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Today's tools, each as the lock has it where all but names is the same.

        Only what `repair` brings back is shown so: a tool of another name needs the part "names",
        and one that kept its name the part "parameters".
        """
        tools = {listed["function"]["name"]: listed["function"] for listed in shown}
        world = self.today(tools) if self._parts else None
        if world is None:
            return list(shown)
        known: dict[str, dict[str, Any]] = {}
        for old, source in self.before.sources.items():
            partner = world[0].move(old)
            if partner is None:
                continue
            needed = {NAMES} if partner.tool != old else set[str]()
            if any(name != now for name, now in partner.params.items()):
                needed |= {PARAMETERS}
            if needed and needed <= self._parts:
                known[partner.tool] = as_openai(source.tool)
        return [known.get(listed["function"]["name"], listed) for listed in shown]

    def repair(
        self, call: RecordedCall, tools: Mapping[str, Mapping[str, Any]]
    ) -> Intervention | None:
        """The call under the names of today."""
        was, now = self._old.documents.get(call.tool), tools.get(call.tool)
        if was is None or not self._parts or (now is not None and _inputs(now) == _inputs(was)):
            return None
        world = None if self._old.fault(call)[1] else self.today(tools)
        if world is None:
            return None
        today, checker = world
        taken = now is not None and not checker.fault(call)[1]
        partner = None if taken else today.move(call.tool)
        made = moved(call, partner) if partner else None
        if partner is None or made is None:
            return None
        needed = {PARAMETERS} if made.arguments.keys() != call.arguments.keys() else set()
        needed |= {NAMES} if partner.tool != call.tool else {PARAMETERS}
        if not needed <= self._parts or checker.fault(made)[1]:
            return None
        part = PARAMETERS if partner.tool == call.tool else NAMES
        return Intervention(part, partner.evidence, call, made)


def moved(call: RecordedCall, move: Move) -> RecordedCall | None:
    """Translates a call to another tool."""
    if not call.arguments.keys() <= move.params.keys():
        return None
    return RecordedCall(
        move.tool, {move.params[key]: value for key, value in call.arguments.items()}
    )


def _inputs(tool: Mapping[str, Any]) -> Any:
    return tool["parameters"] if "parameters" in tool else tool.get("inputSchema")


def as_mcp(tool: Mapping[str, Any]) -> dict[str, Any]:
    """A tool as an MCP server lists it."""
    rest = {key: value for key, value in tool.items() if key not in ("parameters", "strict")}
    return {**rest, "inputSchema": _inputs(tool) or {"type": "object"}}

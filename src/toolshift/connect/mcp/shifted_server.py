"""The tools of a real server behind layers: what is listed, and what a call does.

A spoken call runs in a thread of its own, for layers are plain functions; one lock keeps layers
from running at the same time, and is free while a real call is under way.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread
import msgspec
from mcp.shared.exceptions import MCPError

from toolshift.adapt.conversation import MadeCall
from toolshift.adapt.failures import beside
from toolshift.adapt.lessons import Lessons, outcomes, ranked
from toolshift.adapt.notes import Fact, described, facts
from toolshift.adapt.repair import Intervention, Repairer
from toolshift.connect.list_changed import is_newer, labelled
from toolshift.connect.mcp.deployment import Deployment
from toolshift.connect.trace import Trace
from toolshift.core.errors import UsageError
from toolshift.core.layer import LayerFault
from toolshift.core.scene import Applied
from toolshift.core.shift import NotApplicable
from toolshift.core.text import visible
from toolshift.core.tool import Result
from toolshift.core.values import as_list
from toolshift.drift.calls import Checker, RecordedCall
from toolshift.drift.lock import Lock
from toolshift.interop.mcp_client import Upstream
from toolshift.interop.mcp_results import Raw, as_mcp, as_result, is_opaque, refused
from toolshift.interop.tools import Source, Toolbox, from_mcp
from toolshift.runs.cell import write_stack
from toolshift.shifts.live import Live, Spoken, live_scene, shifted
from toolshift.shifts.watching import Changes, unchanged

NOT_HERE, WAY_OUT = "is not applicable", "Leave it out, or pass --skip-inapplicable"
INTERNAL = -32603
MAX_AT_ONCE = 256
NO_ANSWER = "no answer: the client gave up, or left"
MAX_CALLS = 1000
"""Of how many calls of a session it is known which note they followed."""
ADAPTED, TOLD = "toolshift/adapted", "toolshift/told"
"""Of `_meta`: the call as it was sent in the place of the client's; that a text is of ours."""


@dataclass(frozen=True)
class ShiftOptions:
    """What the proxy is to change.

    Attributes:
        stack: the shifts; none for a transparent proxy.
        seed: of every choice, together with the tool list.
        pool: of the wordings.
        needed: the tools that the agent needs, where the user has said so.
        skip: leave out what is not applicable to this server, with a word on stderr.
        may_write: let a trap lie over tools that write.
        lock: the tools as the client knows them: what has changed in a tool is said at the end of
            its description, and beside the error of a call that is not taken any more.
        lessons: what is remembered across sessions: which note was followed by success.
        memory: the file for it.
        rewrite: also make calls by names of the lock as today's tools take them, where the names
            are the same words.
        deployment: what brings about the changes of tools in mid-session; None leaves them to the
            calls.
    """

    stack: tuple[Applied, ...] = ()
    seed: int = 0
    pool: str = "dev"
    needed: tuple[str, ...] = ()
    skip: bool = False
    may_write: bool = False
    lock: Lock | None = None
    rewrite: bool = False
    deployment: Deployment | None = None
    lessons: Lessons | None = None
    memory: Path | None = None


def shift_tools(listed: list[dict[str, Any]], how: ShiftOptions) -> tuple[Live, dict[str, str]]:
    """The shifted interface of a tool list without a server, and what did not apply."""
    toolbox = from_mcp(listed)
    left: dict[str, str] = {}
    stack = how.stack
    while True:
        scene = live_scene(toolbox, how.seed, how.pool, how.needed)
        try:
            return Live(shifted(scene, stack, how.may_write), toolbox, _nobody), left
        except NotApplicable as reason:
            name, _, why = str(reason).partition(": ")
            if not how.skip:
                raise UsageError(f"{name} {NOT_HERE} to these tools: {why}. {WAY_OUT}") from None
            left[name] = why
            stack = tuple(one for one in stack if write_stack((one,)) != name)


def _nobody(name: str, arguments: dict[str, Any]) -> Result:
    return refused("there is no server behind these tools")


@dataclass
class _Call:
    """One spoken call under way: who made it, and what the server has answered so far."""

    params: Mapping[str, Any]
    raws: list[Raw] = field(default_factory=list)
    given: Result | None = None
    fault: MCPError | None = None
    adapted: Intervention | None = None
    told: str = ""


_call: ContextVar[_Call] = ContextVar("_call")


class ShiftedTools:
    """The tools of one connection, as its client is offered them and calls them."""

    def __init__(self, upstream: Upstream, how: ShiftOptions, trace: Trace | None) -> None:
        self.upstream, self.how, self.trace = upstream, how, trace
        self.stale = False
        self.revision = 0
        self._repairer = Repairer(how.lock) if how.lock is not None and how.rewrite else None
        self._facts: tuple[Fact, ...] = ()
        self._today: Checker | None = None
        self._known = (
            {str(tool.get("name")): tool for tool in how.lock.documents} if how.lock else {}
        )
        self._calls: list[MadeCall] = []
        self._live: Live | None = None
        self._made = 0
        self._page: dict[str, Any] = {}
        self._building = anyio.Lock()
        self._turn = threading.Lock()
        self._limiter = anyio.CapacityLimiter(MAX_AT_ONCE)

    async def shown(self, params: Mapping[str, Any], again: bool = False) -> Live:
        """The shifted interface, made when first needed and kept up with the server."""
        async with self._building:
            live = self._live
            if live is not None and not (self.stale or again):
                return live
            self.stale = False
            listed, self._page = await self.upstream.tools(params.get("_meta"))
            try:
                if live is None:
                    live = self._live = self._build(listed)
                else:
                    self._renew(live, from_mcp(listed))
            except UsageError as fault:
                print(visible(f"toolshift: {fault}"), file=sys.stderr)
                raise MCPError(INTERNAL, f"toolshift: {fault}") from None
            except Exception as fault:
                text = f"toolshift could not shift these tools: {type(fault).__name__}: {fault}"
                print(visible(text), file=sys.stderr)
                raise MCPError(INTERNAL, text) from fault
        return live

    def _build(self, listed: list[dict[str, Any]]) -> Live:
        made, left = shift_tools(listed, self.how)
        for name, why in left.items():
            said = f"toolshift: {name} is not applicable and left out: {why}"
            print(visible(said), file=sys.stderr)
        deployment = self.how.deployment
        live = Live(made.scene, made.toolbox, self._carry, by_calls=deployment is None)
        if deployment is not None and deployment.done:
            live.session.deploy()
        return live

    def deploy(self) -> bool:
        """Brings about what comes in mid-session; whether the tools on offer have changed."""
        live = self._live
        if live is None:
            return False  # whoever looks at them later finds them changed
        with self._turn:
            before = live.session.tools()
            live.session.deploy()
            changed = live.session.tools() is not before
        self.revision += changed
        return changed

    def _renew(self, live: Live, toolbox: Toolbox) -> None:
        """Takes over what the server has changed; the layers stay as they are."""
        if toolbox.hash == live.toolbox.hash:
            return
        with self._turn:
            live.toolbox = toolbox
            live.upstream.replace(toolbox.tools)

    async def list(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to `tools/list`: all that is shown, on one page."""
        live = await self.shown(params, again=True)  # not every server can tell of a change
        found = {**self._page, "tools": self._spoken(live)}
        if not is_newer(params):
            return found
        # The shifted list is of this proxy and of now: the same, whatever the shifts, so that it
        # does not tell whether the tools are to change.
        found |= {"ttlMs": 0, "cacheScope": "private"}
        if not self.revision:
            return found
        by = "calls" if self.how.deployment is None else "a deployment"
        return labelled(found, {"revision": self.revision, "changed_by": by})

    def _spoken(self, live: Live) -> Sequence[dict[str, Any]]:
        with self._turn:
            return live.documents()

    def _adapted(self, params: Mapping[str, Any]) -> Intervention | None:
        """The call that the tools of today take in the place of one by names of the lock."""
        name, arguments = params.get("name"), params.get("arguments") or {}
        if self._repairer is None or not isinstance(name, str) or not isinstance(arguments, dict):
            return None
        documents = self._today.documents if self._today is not None else {}
        return self._repairer.repair(RecordedCall(name, arguments), documents)

    async def with_notes(
        self, answer: dict[str, Any], params: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """The answer to `tools/list` with what has changed since the lock, tool by tool.

        What is gone has no description of its own, so the first tool tells of it.
        """
        listed = answer.get("tools")
        if self.how.lock is None or not isinstance(listed, list):
            return answer
        first = not (params or {}).get("cursor")
        if first:
            await self._look(answer, params)
        told_now = self._ranked()
        if not told_now:
            return answer
        tools = []
        for place, tool in enumerate(listed):
            here = [self._name_of(tool), *([""] if first and place == 0 else [])]
            told = [fact for fact in told_now if fact.tool in here]
            tools.append(described(tool, told) if told else tool)
        return {**answer, "tools": tools}

    async def _look(self, answer: Mapping[str, Any], params: Mapping[str, Any] | None) -> None:
        """Reads what has changed since the lock; nothing where the other pages cannot be read."""
        whole = answer.get("tools")
        if answer.get("nextCursor") or not isinstance(whole, list):
            try:
                whole, _ = await self.upstream.tools((params or {}).get("_meta"))
            except MCPError:
                self._facts, self._today = (), None  # the client has its page all the same
                return
        tools = [tool for tool in whole if isinstance(tool, Mapping)]
        self._facts = facts(self.how.lock, tools) if self.how.lock is not None else ()
        self._today, self.stale = Checker(tools), False

    def _ranked(self) -> tuple[Fact, ...]:
        """What has changed, what helped in this session and in earlier ones first."""
        if self._today is None or not self._facts:
            return ()
        earlier = self.how.lessons.notes if self.how.lessons is not None else {}
        here = outcomes(self._facts, self._calls, self._today.documents)
        return ranked(self._facts, self._today.documents, earlier, here)

    @staticmethod
    def _name_of(tool: Any) -> Any:
        return tool.get("name") if isinstance(tool, Mapping) else None

    def note_tools(self, answer: Mapping[str, Any], params: Mapping[str, Any] | None) -> None:
        """Keeps the tools on offer in the trace; one page of several is no list of them."""
        whole = not answer.get("nextCursor") and not (params or {}).get("cursor")
        tools = answer.get("tools")
        if self.trace is not None and whole and isinstance(tools, list):
            self.trace.write_tools(tools)

    async def call(self, params: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
        """The answer to `tools/call`, and whether the tools on offer have changed with it.

        With a lock, what may help stands beside an error; the error itself is as it came.
        """
        if self.how.lock is None:
            return await self._called(_Call(params))
        if self._today is None or self.stale:
            spoken = self._spoken(await self.shown(params)) if self.how.stack else None
            await self._look({"tools": spoken}, params)
        adapted = self._adapted(params)
        if adapted is not None:
            made = adapted.made
            params = {**params, "name": made.tool, "arguments": made.arguments}
        call = _Call(params, adapted=adapted)
        try:
            answer, changed = await self._called(call)
        except MCPError as fault:
            sent = f"This call was sent as {adapted.made.tool}." if adapted is not None else ""
            if not call.told and not sent:
                raise
            said = "\n\n".join(filter(None, (fault.message, sent, call.told)))
            raise MCPError(fault.code, said, fault.data) from fault
        if call.told:
            content = answer.get("content")
            part = {"type": "text", "text": call.told, "_meta": {TOLD: "beside an error"}}
            answer = {**answer, "content": [*as_list(content), part]}
        if adapted is not None:
            meta = answer.get("_meta")
            meta = dict(meta) if isinstance(meta, Mapping) else {}
            answer = {**answer, "_meta": {**meta, ADAPTED: msgspec.to_builtins(adapted)}}
        if changed:
            self._today = None  # the next call looks at them anew
        return answer, changed

    async def _called(self, call: _Call) -> tuple[dict[str, Any], bool]:
        begun, params = time.perf_counter(), call.params
        if not self.how.stack:
            return await self._plain_call(call, begun), False
        live = await self.shown(params)
        spoken = Spoken(refused(NO_ANSWER), (), False)
        try:
            spoken = await anyio.to_thread.run_sync(self._speak, live, call, limiter=self._limiter)
            answer = self._answer(live, call, spoken.result)
        finally:
            self._note(params, spoken, call, begun)
        if spoken.changed:
            self.revision += 1
            if is_newer(params):
                by = {"revision": self.revision, "changed_by": "this call"}
                return labelled(answer, by), True
        return answer, spoken.changed

    async def _plain_call(self, call: _Call, begun: float) -> dict[str, Any]:
        params, fault = call.params, NO_ANSWER
        try:
            call.raws.append(await self.upstream.ask("tools/call", params))
            fault = ""
        except MCPError as error:
            fault = error.message
            raise
        finally:
            result = refused(fault) if fault else Result(True, None)
            self._note(params, Spoken(result, (), False), call, begun)
        return call.raws[0]

    def _speak(self, live: Live, call: _Call) -> Spoken:
        """Carries a spoken call through the layers; in a thread."""
        _call.set(call)
        arguments = call.params.get("arguments")
        given = dict(arguments) if isinstance(arguments, Mapping) else {}
        with self._turn:
            try:
                return live.call(str(call.params.get("name", "")), given)
            except CancelledError:
                raise
            except Exception as fault:
                # A layer that meets data it was not made for must not take the session with it.
                print(visible(f"toolshift: a layer failed on a call: {fault}"), file=sys.stderr)
                cause = fault.__cause__ if isinstance(fault, LayerFault) else fault
                result = refused(f"toolshift could not shift this call ({type(cause).__name__})")
                return Spoken(result, (), False)

    def _carry(self, name: str, arguments: dict[str, Any]) -> Result:
        """A real call, made from the thread of a spoken one."""
        call = _call.get()
        source = self._live.toolbox.sources.get(name) if self._live else None
        params = {**call.params, "name": name}
        if arguments or "arguments" in call.params:
            params["arguments"] = arguments
        self._turn.release()
        try:
            raw = anyio.from_thread.run(self.upstream.ask, "tools/call", params)
        except MCPError as fault:
            call.fault, call.given = fault, refused(fault.message)
            return call.given
        finally:
            self._turn.acquire()
        call.raws.append(raw)
        call.given = as_result(raw, source)
        return call.given

    def _answer(self, live: Live, call: _Call, result: Result) -> dict[str, Any]:
        """What the client reads."""
        if call.fault is not None and not result.ok and not call.raws:
            said = result.data["error"]["message"]
            fault = call.fault
            raise MCPError(fault.code, said if call.given != result else fault.message, fault.data)
        if call.raws and is_opaque(call.raws[-1]):
            return call.raws[-1]
        source = _source_of(live, call)
        answer = as_mcp(result, call.given, call.raws, source)
        if is_newer(call.params):
            answer.setdefault("resultType", "complete")
        return answer

    def end(self) -> None:
        """Keeps what was learned; says which shifts have changed nothing, on standard error too."""
        lessons, memory = self.how.lessons, self.how.memory
        if lessons is not None and memory is not None and self._today is not None:
            lessons.begin()
            lessons.follow(self._calls, self._today.documents, self._facts)
            lessons.write(memory)
        if self._live is None or not self.how.stack:
            return
        changes = self._live.changes
        idle = unchanged(changes)
        for name in idle:
            calls = f"{self._made} calls" if self._made != 1 else "1 call"
            print(
                f"toolshift: {name} changed nothing in this session: not the tools, and none of "
                f"{calls}",
                file=sys.stderr,
            )
        if self.trace is not None:
            self.trace.write({"end": True, "calls": self._made, "changes": _plain(changes)})

    def _follow(self, call: _Call, ok: bool) -> None:
        """Notes which calls were made, and what stands beside the error of one."""
        name, arguments = call.params.get("name"), call.params.get("arguments") or {}
        if self._today is None or not isinstance(name, str) or not isinstance(arguments, dict):
            return
        made = RecordedCall(name, arguments)
        self._calls.append(MadeCall("", made, made, "", "", "" if ok else "failed"))
        del self._calls[:-MAX_CALLS]
        if not ok:
            call.told = beside(made, self._today, self._known, self._ranked())

    def _note(self, params: Mapping[str, Any], spoken: Spoken, call: _Call, begun: float) -> None:
        self._made += 1
        result = spoken.result
        ok = result.ok and not any(raw.get("isError") for raw in call.raws[-1:])
        self._follow(call, ok)
        if self.trace is None:
            return
        record: dict[str, Any] = {
            "tool": params.get("name"),
            "arguments": params.get("arguments") or {},
            "ok": ok,
            "ms": round((time.perf_counter() - begun) * 1000, 3),
        }
        if call.adapted is not None:
            record["adapted"] = msgspec.to_builtins(call.adapted)
        if call.told:
            record["told"] = call.told
        if self.how.stack:
            record |= {"true": [list(one) for one in spoken.true], "provoked": result.provoked}
            record |= {"hint": result.hint.kind if result.hint else "", "form": result.form}
            record |= {"shown": result.data, "notice": result.notice, "changed": spoken.changed}
            record |= {"by": list(spoken.by)}
        elif not result.ok:
            record["error"] = result.data["error"]["message"]
        self.trace.write({**record, "answers": call.raws})


def _plain(changes: Mapping[str, Changes]) -> dict[str, Any]:
    return {
        name: {**msgspec.to_builtins(each), "nothing": not each.any}
        for name, each in changes.items()
    }


def _source_of(live: Live, call: _Call) -> Source | None:
    """The tool as shown, where it stands for one real tool alone."""
    name = call.params.get("name")
    tool = next((tool for tool in live.session.tools() if tool.name == name), None)
    return live.toolbox.source(tool) if tool is not None else None

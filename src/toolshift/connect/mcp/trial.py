"""One real call, as the server answers it and as it is shown through shifts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import anyio
from mcp.shared.exceptions import MCPError

from toolshift.connect.mcp.shifted_server import ShiftedTools, ShiftOptions
from toolshift.core.errors import UsageError
from toolshift.core.names import unknown
from toolshift.core.tool import Tool
from toolshift.interop.mcp_client import Target, Upstream, decline, first_list, ignore
from toolshift.interop.schema import sample
from toolshift.interop.tools import Source, Toolbox
from toolshift.shifts.live import Live

MAX_TRIED = 3
PATIENCE = 60
"""Seconds for the calls."""


@dataclass(frozen=True)
class Trial:
    """A call made twice: of the server itself, and of what is shown.

    Attributes:
        tool: of the server.
        arguments: that it took.
        before: what it answered.
        shown_as: the tool under which it is shown; "" where none stands for it alone.
        shown_arguments: the same arguments under the names that are shown.
        after: what a client is shown.
        by: the shifts that changed the call or its result.
    """

    tool: str
    arguments: dict[str, Any]
    before: dict[str, Any]
    shown_as: str = ""
    shown_arguments: dict[str, Any] | None = None
    after: dict[str, Any] | None = None
    by: tuple[str, ...] = ()


async def try_call(
    target: Target,
    how: ShiftOptions,
    call: tuple[str, dict[str, Any]] | None,
    look: Callable[[list[dict[str, Any]]], None],
) -> Trial | None:
    """Makes one call of a real server, and the same once more through shifts."""
    async with target.open() as streams, anyio.create_task_group() as group:
        upstream = Upstream(streams, target.name)
        await group.start(upstream.wire.run, decline, ignore)
        try:
            meta, listed = await first_list(upstream)
        except MCPError as fault:
            raise UsageError(f"{target.name} did not list its tools: {fault.message}") from None
        look(listed)
        try:
            with anyio.fail_after(PATIENCE):
                tools = ShiftedTools(upstream, how, None)
                live = await tools.shown({"_meta": meta} if meta else {})
                found = await _tried(upstream, tools, live, meta, call)
        except MCPError as fault:
            raise UsageError(f"{target.name}: {fault.message}") from None
        except TimeoutError:
            raise UsageError(
                f"{target.name}: no answer to the call. Name another call with --try"
            ) from None
        group.cancel_scope.cancel()
    return found


async def _tried(
    upstream: Upstream,
    tools: ShiftedTools,
    live: Live,
    meta: Mapping[str, Any],
    call: tuple[str, dict[str, Any]] | None,
) -> Trial | None:
    known = live.toolbox.sources
    if call is not None and call[0] not in known:
        raise UsageError(unknown("tool", call[0], known))
    calls = [call] if call is not None else _harmless(live.toolbox, tools.how.needed)
    more = {"_meta": dict(meta)} if meta else {}
    for name, arguments in calls:
        before = await upstream.ask("tools/call", {"name": name, "arguments": arguments, **more})
        if call is None and before.get("isError"):
            continue
        shown = _standing_for(live, name)
        if shown is None:
            return Trial(name, arguments, before)
        said = _spoken(known[name], shown, arguments)
        counts = {shift: each.calls + each.results for shift, each in live.changes.items()}
        after, _ = await tools.call({"name": shown.name, "arguments": said, **more})
        by = [s for s, each in live.changes.items() if each.calls + each.results > counts[s]]
        return Trial(name, arguments, before, shown.name, said, after, tuple(by))
    return None


def _harmless(toolbox: Toolbox, needed: tuple[str, ...]) -> list[tuple[str, dict[str, Any]]]:
    """Calls of tools that only read; first of those that are needed and those that ask nothing."""

    def calls() -> Iterator[tuple[str, dict[str, Any]]]:
        for tool in toolbox.tools:
            if tool.effect == "read":
                asked = [param for param in tool.params if param.required]
                yield tool.name, {param.name: sample(param.schema, param.name) for param in asked}

    ranked = sorted(calls(), key=lambda call: (call[0] not in needed, len(call[1])))
    return ranked[:MAX_TRIED]


def _standing_for(live: Live, name: str) -> Tool | None:
    """The shown tool that stands for a true one alone."""
    return next((tool for tool in live.tools() if tool.origin == (name,)), None)


def _spoken(source: Source, shown: Tool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments as a client says them, with made-up ones for what is new and required."""
    said: dict[str, Any] = {}
    for param in shown.params:
        own = source.known.get(param.fact, "")
        if own in arguments:
            said[param.name] = arguments[own]
        elif param.required:
            said[param.name] = sample(param.schema, param.name)
    return said

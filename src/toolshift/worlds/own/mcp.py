"""Tools from an MCP server: a command, started anew for every episode, or a running one by URL."""

from __future__ import annotations

import asyncio
import shlex
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from functools import cache
from typing import Any
from weakref import finalize

from toolshift.core.errors import UsageError
from toolshift.core.tool import Result, error
from toolshift.worlds.own.file import WorldFile
from toolshift.worlds.own.sources import headers_of, result_of


class McpSource:
    """The tools of an MCP server."""

    def __init__(self, file: WorldFile) -> None:
        try:
            from toolshift.interop.mcp_client import Target
        except ImportError:
            why = 'MCP servers need the extra "connect": pip install "toolshift[connect]"'
            raise file.near(("tools", file.source), why) from None
        self.file = file
        given = str(file.tools[file.source])
        if file.source == "mcp":
            self.target = Target(command=tuple(shlex.split(given)), cwd=file.path.parent)
            self.shared = ""
        else:
            self.target = Target(url=given, headers=headers_of(file))
            self.shared = "the server at mcp_url runs on: what one episode changes another may see"
        opened = self.open()
        self.listed = opened.listed
        opened.close()

    def open(self) -> McpTools:
        """A connection of its own; with a command, to a process of its own."""
        try:
            return McpTools(self.target)
        except UsageError as wrong:
            raise self.file.near(("tools", self.file.source), str(wrong)) from None


PATIENCE = 60
"""Seconds that a server may take for one call."""


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """The loop of all connections; its thread never holds up the end of the program."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    return loop


async def _stay(target: Any, ready: Future[Any], stop: asyncio.Event) -> None:
    """Connects, hands over what is needed for calls, and stays until it is told to stop."""
    try:
        async with _connect(target) as connected:
            ready.set_result(connected)
            await stop.wait()
    except BaseException as fault:
        if not ready.done():
            ready.set_exception(_plain(fault, target.name))


class McpTools:
    """A connection to a server, usable from code that is not asynchronous."""

    def __init__(self, target: Any) -> None:
        from toolshift.interop.tools import from_mcp

        self.name = target.name
        ready: Future[Any] = Future()
        stop = asyncio.Event()
        self._stays = asyncio.run_coroutine_threadsafe(_stay(target, ready, stop), _loop())
        self._end = finalize(self, _loop().call_soon_threadsafe, stop.set)
        self._upstream, self._meta, self.listed = ready.result()
        self._sources = from_mcp(self.listed).sources
        self.state = self._ask

    def call(self, name: str, arguments: dict[str, Any]) -> Result:
        """Calls a tool of the server."""
        from toolshift.interop.mcp_results import as_result

        result = as_result(self._raw(name, arguments), self._sources.get(name))
        if result.ok:
            return result_of(name, _unwrapped(result.data))
        message = str(result.data["error"]["message"])
        return error("tool_error", message)

    def _raw(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        from mcp.shared.exceptions import MCPError

        params: dict[str, Any] = {"name": name, "arguments": dict(arguments)}
        if self._meta:
            params["_meta"] = self._meta
        try:
            asked = self._upstream.ask("tools/call", params)
            waiting = asyncio.run_coroutine_threadsafe(asked, _loop())
            raw: dict[str, Any] = waiting.result(timeout=PATIENCE)
        except TimeoutError:
            waiting.cancel()
            raise UsageError(
                f"{self.name}: no answer to a call of {name} within {PATIENCE} seconds"
            ) from None
        except MCPError as fault:
            if "closed the connection" in fault.message:
                raise UsageError(f"{self.name}: {fault.message}") from None
            text = {"type": "text", "text": fault.message}
            return {"isError": True, "content": [text]}
        return raw

    def _ask(self, name: str, **arguments: Any) -> Any:
        """What a state check calls tools with."""
        return self.call(name, arguments).data

    def close(self) -> None:
        """Closes the connection; a server that was started ends."""
        self._end()
        with suppress(Exception):
            self._stays.result(timeout=10)


def _unwrapped(data: Any) -> Any:
    """A text that a server has wrapped to have an object, as clients show it."""
    alone = isinstance(data, dict) and list(data) == ["result"]
    return data["result"] if alone and isinstance(data["result"], str) else data


def _plain(fault: BaseException, name: str) -> BaseException:
    """The reason in a group of one, and a sentence in place of a fault of the connection."""
    while isinstance(fault, BaseExceptionGroup) and len(fault.exceptions) == 1:
        fault = fault.exceptions[0]
    if isinstance(fault, UsageError) or not isinstance(fault, Exception):
        return fault
    said = getattr(fault, "message", "") or str(fault) or type(fault).__name__
    return UsageError(f"{name} cannot be used as an MCP server: {said}")


def _connect(target: Any) -> Any:
    from contextlib import asynccontextmanager

    import anyio

    from toolshift.interop.mcp_client import Upstream, greet

    async def decline(context: Any, method: str, params: Any) -> dict[str, Any]:
        from mcp.shared.exceptions import MCPError

        if method == "ping":
            return {}
        raise MCPError(-32601, f"{method} is not answered here")

    async def ignore(context: Any, method: str, params: Any) -> None:
        return None

    @asynccontextmanager
    async def connected() -> Any:
        async with target.open() as streams, anyio.create_task_group() as group:
            upstream = Upstream(streams, target.name)
            await group.start(upstream.wire.run, decline, ignore)
            with anyio.fail_after(60):
                meta = await greet(upstream)
                listed, _ = await upstream.tools(meta)
            yield upstream, meta, listed
            group.cancel_scope.cancel()

    return connected()

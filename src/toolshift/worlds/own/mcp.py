"""Tools from an MCP server: a command, started anew for every episode, or a running one by URL.

Either may be named in the file of an MCP client (`mcp_config: .mcp.json#github`).

A command may be given a fresh folder for every episode, as `{episode_dir}` in the command line, in
`env` and in `cwd`. Agents see it as `/episode` whatever it is, so that traces are the same.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any
from weakref import finalize

import anyio
from mcp.shared.exceptions import MCPError

from toolshift.core.errors import ConnectionDropped, UsageError, described
from toolshift.core.text import storable
from toolshift.core.tool import Result, error
from toolshift.episode.contract import finished
from toolshift.interop.client_files import server_of
from toolshift.interop.mcp_client import Target, Upstream, first_list
from toolshift.interop.mcp_results import as_result
from toolshift.interop.tools import from_mcp
from toolshift.worlds.own.file import EPISODE_DIR, SHOWN_DIR, WorldFile, swapped
from toolshift.worlds.own.python import load_own
from toolshift.worlds.own.sources import result_of, texts_of


class McpSource:
    """The tools of an MCP server."""

    def __init__(self, file: WorldFile) -> None:
        self.file = file
        given = str(file.tools[file.source])
        self.reset = str(file.tools.get("reset") or "")
        self.shared = ""
        if file.source == "mcp":
            folder, cwd = file.path.parent, file.tools.get("cwd")
            command, env = _words(file, given), texts_of(file, "env")
            self.target = Target(command=command, cwd=folder / str(cwd or ""), env=env)
        else:
            self.target = _named(file, given)
        if self.target.url:
            self.shared = (
                f"the server at {file.source} runs on: what one episode changes another may see"
            )
        if self.reset:
            load_own(self.reset, file, ("tools", "reset"))
        opened = self.open()
        self.listed = opened.listed
        opened.close()

    def open(self) -> McpTools:
        """A connection of its own; with a command, to a process of its own in its first state."""
        said = [*self.target.command, *self.target.env.values(), str(self.target.cwd)]
        folder, target = None, self.target
        if self.reset or any(EPISODE_DIR in text for text in said):
            folder = TemporaryDirectory(prefix="toolshift-", ignore_cleanup_errors=True)
            path = os.path.realpath(folder.name)
            target = _in_folder(target, path)
            self._reset(Path(path))
        try:
            return McpTools(target, folder)
        except UsageError as wrong:
            raise self.file.near(("tools", self.file.source), str(wrong)) from None

    def _reset(self, folder: Path) -> None:
        """Lets the user's function fill the folder of an episode, before the server starts."""
        if not self.reset:
            return
        place = ("tools", "reset")
        function = load_own(self.reset, self.file, place)
        try:
            finished(function(folder))
        except (Exception, SystemExit) as fault:
            raise self.file.near(place, f"{self.reset} raised {described(fault)}") from fault


def _named(file: WorldFile, given: str) -> Target:
    """The server at an address, or of a name in the file of an MCP client."""
    text = given if file.source == "mcp_url" else str(file.path.parent / given)
    try:
        server = server_of(text)
        if server is None:
            raise UsageError(f"{given!r}: there is no such file of an MCP client; write FILE#NAME")
        return Target.of(server.given(texts_of(file, "headers")))
    except UsageError as wrong:
        raise file.near(("tools", file.source), str(wrong)) from None


def _words(file: WorldFile, command: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(command))
    except ValueError as fault:
        raise file.near(("tools", "mcp"), f"{command!r} is no command line: {fault}") from None
    if not words:
        raise file.near(("tools", "mcp"), "the command is empty")
    return words


def _in_folder(target: Target, folder: str) -> Target:
    """The server of one episode."""

    def put(text: str) -> str:
        return text.replace(EPISODE_DIR, folder)

    env = {key: put(value) for key, value in target.env.items()}
    # An absolute path replaces what it is joined to, so the folder of the file falls away.
    parts = [put(part) for part in (target.cwd or Path()).parts]
    return replace(target, command=tuple(map(put, target.command)), env=env, cwd=Path(*parts))


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

    def __init__(self, target: Target, folder: TemporaryDirectory[str] | None = None) -> None:
        self.name = target.name
        self._folder = folder
        self._path = os.path.realpath(folder.name) if folder else ""
        # Many servers greet on standard error, which would be said once an episode.
        self._errors = TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        target = replace(target, errors=self._errors)
        ready: Future[Any] = Future()
        stop = asyncio.Event()
        self._stays = asyncio.run_coroutine_threadsafe(_stay(target, ready, stop), _loop())
        self._end = finalize(self, _loop().call_soon_threadsafe, stop.set)
        try:
            self._upstream, self._meta, self.listed = ready.result()
        except UsageError as wrong:
            raise UsageError(f"{wrong}{self._last_words()}") from None
        self._sources = from_mcp(self.listed).sources
        self.state = self._ask

    def _last_words(self) -> str:
        """The end of what the server wrote on standard error."""
        self._errors.seek(0)
        lines = self._errors.read()[-2000:].strip().splitlines()
        return f" (it said: {lines[-1].strip()})" if lines else ""

    def call(self, name: str, arguments: dict[str, Any]) -> Result:
        """Calls a tool of the server."""
        result = as_result(self._raw(name, arguments), self._sources.get(name), alone=True)
        if result.ok:
            return result_of(name, _unwrapped(result.data))
        message = str(result.data["error"]["message"])
        return error("tool_error", storable(message))

    def _raw(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        inward = dict(arguments)
        if self._path:
            inward = swapped(inward, SHOWN_DIR, self._path)
        params: dict[str, Any] = {"name": name, "arguments": inward}
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
                said = f"{self.name}: {fault.message}{self._last_words()}"
                raise ConnectionDropped(said) from None
            raw = {"isError": True, "content": [{"type": "text", "text": fault.message}]}
        return swapped(raw, self._path, SHOWN_DIR) if self._path else raw

    def _ask(self, name: str, **arguments: Any) -> Any:
        """What a state check calls tools with."""
        return self.call(name, arguments).data

    def close(self) -> None:
        """Closes the connection; a server that was started ends."""
        self._end()
        with suppress(Exception):
            self._stays.result(timeout=10)
        self._errors.close()
        if self._folder is not None:
            self._folder.cleanup()


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
    async def decline(context: Any, method: str, params: Any) -> dict[str, Any]:
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
            meta, listed = await first_list(upstream)
            yield upstream, meta, listed
            group.cancel_scope.cancel()

    return connected()

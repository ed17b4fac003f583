"""The upstream side: opening a real MCP server, and asking it in raw JSON.

Messages stay JSON objects from end to end; what this library does not know passes all the same.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import sys
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any, TextIO

import anyio
import httpx2
from mcp import StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
    mcp_param_headers,
    x_mcp_header_map,
)
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import SessionMessage
from mcp.types import (
    CLIENT_CAPABILITIES_META_KEY,
    INVALID_REQUEST,
    PROTOCOL_VERSION_META_KEY,
    ErrorData,
)
from mcp.types.jsonrpc import JSONRPCError, JSONRPCResponse
from mcp.types.version import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION

from toolshift.core.errors import UsageError
from toolshift.core.http_limits import LIST_SECONDS, limit
from toolshift.core.text import is_count, visible
from toolshift.interop.limited_http import limited_client
from toolshift.interop.mcp_auth import HIDDEN, ServerAuth, auth_of
from toolshift.interop.server import Server, address_name

Streams = tuple[Any, Any]
MAX_PAGES = 1000
MAX_EVENT = 64 * 1024 * 1024
"""Bytes of one event that an HTTP upstream may send."""
CLOSED = -32000
UNREADABLE = -32603
UNREAD = "the server sent a message that cannot be read"
NO_WORDS = {
    "Server returned an error response": "",
    "Not Found": ": is it the address of an MCP server?",
    "Session terminated": ": it does not know the session any more",
}
"""What the SDK says of errors of HTTP, and what is said of them beside which and whose."""
OTHER_TYPE = "Unexpected content type: "
"""What it says of an answer that is not of MCP, before the type."""
MAX_SHOWN = 80
"""Characters of a line that is no message, when it is shown."""


def _untraced(record: logging.LogRecord) -> bool:
    """Whether the MCP library's own word on a fault is needed, which is then one line.

    What it could not parse is handed on, and said by `Mended` or by the error of the request.
    """
    parsed = record.exc_info is not None and isinstance(record.exc_info[1], ValueError)
    record.exc_info = None
    return not parsed


for _name in ("mcp.client.stdio", "mcp.client.streamable_http"):
    logging.getLogger(_name).addFilter(_untraced)


@dataclass(frozen=True)
class Target:
    """Where the real server is: a command, an address, or streams that are open already.

    Attributes:
        command: program and arguments, for a server on standard input and output. It inherits the
            whole environment, as it would without the proxy.
        url: of a server over streamable HTTP.
        headers: sent with every request to `url`.
        cwd: the folder in which the command runs.
        env: variables beside, or in place of, those that it inherits.
        errors: where the command's standard error goes; None leaves it to ours.
        transport: an MCP transport, in place of both.
        auth: what goes with requests to `url`; None for the login that is kept, if any.
        sse: the server at `url` speaks the older transport, HTTP with server-sent events.
        origin: how messages call it, where that is not its program or address.
    """

    command: tuple[str, ...] = ()
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    errors: TextIO | None = None
    transport: Any = None
    auth: ServerAuth | None = None
    sse: bool = False
    origin: str = ""

    @classmethod
    def of(cls, server: Server) -> Target:
        """The target that a server is."""
        return cls(
            command=server.command,
            url=server.url,
            headers=server.headers,
            cwd=server.cwd,
            env=server.env,
            sse=server.sse,
            origin=server.origin if "#" in server.origin else "",
        )

    @property
    def name(self) -> str:
        """How messages call it; never with its arguments, which may hold secrets."""
        if self.origin:
            return self.origin
        return self.command[0] if self.command else address_name(self.url) or "the server"

    def check(self) -> None:
        """Checks that there is a program to start; a `UsageError` where there is none."""
        if self.transport is not None or not self.command:
            return
        program = self.command[0]
        beside = self.cwd is not None and os.path.dirname(
            program
        )  # relative to where it is started
        if shutil.which(os.path.join(self.cwd or "", program) if beside else program) is None:
            raise UsageError(f"cannot start the server: there is no program {program!r}")

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Streams]:
        """Connects; the streams carry messages both ways."""
        auth = (self.auth or auth_of(self.url, self.headers)) if self.url else None
        async with self._transport(auth) as (read, write):
            yield Mended(read, auth), write

    def _transport(self, auth: ServerAuth | None) -> Any:
        if self.transport is not None:
            return self.transport
        if self.url and self.sse:
            return _by_events(self.url, dict(self.headers), auth)
        if self.url:
            patience = httpx2.Timeout(30, read=300)
            client = limited_client(dict(self.headers), auth=auth, timeout=patience)
            return _closing(
                client,
                streamable_http_client(self.url, http_client=client, max_sse_event_size=MAX_EVENT),
            )
        self.check()
        program, *arguments = self.command
        parameters = StdioServerParameters(
            command=program,
            args=arguments,
            env={**os.environ, **self.env},
            cwd=self.cwd,
            encoding_error_handler="replace",
        )
        return stdio_client(parameters, errlog=self.errors or sys.__stderr__ or sys.stderr)


@asynccontextmanager
async def _closing(client: Any, transport: Any) -> AsyncIterator[Streams]:
    async with client, transport as streams:
        yield streams


@asynccontextmanager
async def _by_events(
    url: str, headers: dict[str, str], auth: ServerAuth | None
) -> AsyncIterator[Streams]:
    """The older transport; an address that is refused is said without its query."""
    try:
        async with sse_client(url, headers, auth=auth) as streams:
            yield streams
    except* httpx2.HTTPStatusError:
        raise UsageError(auth.refused if auth else address_name(url)) from None


_FIRST = re.compile(r'^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d+|"[^"\\]*")')
_LAST = re.compile(r'"id"\s*:\s*(\d+|"[^"\\]*")\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$')


class Mended:
    """A stream in which an answer that cannot be read is an error, and not a silence.

    An error of HTTP says which one it was, and what to do. A server that repeats the credentials
    that it was sent does not get them into a trace, a run folder or a model.
    """

    def __init__(self, stream: Any, auth: ServerAuth | None = None) -> None:
        self._stream, self._auth = stream, auth

    async def __aenter__(self) -> Mended:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *failure: Any) -> Any:
        return await self._stream.__aexit__(*failure)

    def __aiter__(self) -> Mended:
        return self

    async def __anext__(self) -> Any:
        return self._mended(await self._stream.__anext__())

    async def receive(self) -> Any:
        """The next message."""
        return self._mended(await self._stream.receive())

    async def aclose(self) -> None:
        """Closes the stream below."""
        await self._stream.aclose()

    def _mended(self, item: Any) -> Any:
        message = getattr(item, "message", None)
        if self._auth and isinstance(message, JSONRPCError):
            said = _worded(message.error, self._auth)
            error = ErrorData(code=message.error.code, message=said, data=message.error.data)
            if said != message.error.message:
                return SessionMessage(JSONRPCError(jsonrpc="2.0", id=message.id, error=error))
        if self._auth and isinstance(message, JSONRPCResponse) and (known := self._auth.secrets):
            message.result = _without(known, message.result)
        return _mended(item)


def _worded(error: ErrorData, auth: ServerAuth) -> str:
    """What the SDK says of an answer in HTTP, with whose it is; all else as it came."""
    said = error.message
    if said in NO_WORDS and auth.refused:
        return auth.refused + NO_WORDS[said]
    if error.code == INVALID_REQUEST and said.startswith(OTHER_TYPE):
        kind = said.removeprefix(OTHER_TYPE) or "content of no type"
        return f"{address_name(auth.url)} answers with {kind}: is it the address of an MCP server?"
    return said


def _without(secrets: tuple[str, ...], value: Any) -> Any:
    """A value in which no text has a secret."""
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, HIDDEN)
        return value
    if isinstance(value, dict):
        return {_without(secrets, k): _without(secrets, v) for k, v in value.items()}
    return [_without(secrets, one) for one in value] if isinstance(value, list) else value


def _mended(item: Any) -> Any:
    if not isinstance(item, Exception):
        return item
    line = _line(item)
    found = _FIRST.search(line[:200]) or _LAST.search(line[-200:])
    if found is None:
        shown = visible(line[:MAX_SHOWN] + "..." * (len(line) > MAX_SHOWN))
        said = (
            f"the server sent {shown!r}, which is no MCP message: over standard input and output "
            "a server writes nothing else to standard output; such text belongs on standard error"
        )
        print(f"toolshift: {said if line else UNREAD}", file=sys.stderr)
        return item
    print(f"toolshift: {UNREAD}", file=sys.stderr)
    number = found[1]
    message = "the server's answer cannot be read: it is no valid JSON, or nested too deeply"
    error = ErrorData(code=UNREADABLE, message=message)
    name = int(number) if is_count(number) else number.strip('"')
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=name, error=error))


def _line(fault: Exception) -> str:
    """The line that could not be parsed, where the exception still has it."""
    errors = getattr(fault, "errors", None)
    for one in errors() if callable(errors) else ():
        if isinstance(one.get("input"), str | bytes):
            line = one["input"]
            return line.decode(errors="replace") if isinstance(line, bytes) else str(line)
    return ""


class Upstream:
    """A real server that can be asked. Remembers what HTTP needs said with every request."""

    def __init__(self, streams: Streams, name: str = "the server") -> None:
        self.name = name
        self.wire: JSONRPCDispatcher[Any] = JSONRPCDispatcher(*streams)
        self._version = ""
        self._schemas: dict[str, Any] = {}

    async def ask(
        self, method: str, params: Mapping[str, Any] | None, request_id: str = ""
    ) -> dict[str, Any]:
        """Asks the server."""
        options: CallOptions = {"headers": self._headers(method, params)}
        if request_id:
            options["request_id"] = request_id
        if method in ("initialize", "server/discover"):
            options["cancel_on_abandon"] = False
        try:
            answer = await self.wire.send_raw_request(method, params, options)
        except MCPError as fault:
            if fault.code == CLOSED and fault.message == "Connection closed":
                text = f"the server behind the proxy ({self.name}) has closed the connection"
                raise MCPError(CLOSED, text) from None
            raise
        if method == "initialize":
            self._version = str(answer.get("protocolVersion", ""))
        return answer

    async def notify(self, method: str, params: Mapping[str, Any] | None) -> None:
        """Tells the server."""
        await self.wire.notify(method, params, {"headers": self._headers(method, params)})

    async def tools(self, meta: Mapping[str, Any] | None) -> tuple[list[Any], dict[str, Any]]:
        """Every tool, over all pages, and what else stood on the first page."""
        own = {key: value for key, value in (meta or {}).items() if key != "progressToken"}
        params: dict[str, Any] = {"_meta": own} if own else {}
        tools: list[Any] = []
        first: dict[str, Any] = {}
        for number in range(MAX_PAGES):
            page = await self.ask("tools/list", params)
            first = first if number else page
            found = [tool for tool in page.get("tools") or () if isinstance(tool, dict)]
            cursor = page.get("nextCursor")
            if found and found == tools[-len(found) :] and cursor == params.get("cursor"):
                found = []  # a server that does not know its own cursor gives the same page again
            tools += found
            if not isinstance(cursor, str) or cursor == params.get("cursor"):
                self._schemas = schemas_of(tools)
                more = {k: v for k, v in first.items() if k not in ("tools", "nextCursor")}
                return tools, more
            params = {**params, "cursor": cursor}
        raise MCPError(UNREADABLE, f"the pages of tools/list do not end after {MAX_PAGES}")

    def note_tools(self, tools: Iterable[Any]) -> None:
        """Keeps the schemas of listed tools, by which arguments are repeated in headers."""
        self._schemas |= schemas_of(tools)

    def _headers(self, method: str, params: Mapping[str, Any] | None) -> dict[str, str]:
        given = params or {}
        version = (given.get("_meta") or {}).get(PROTOCOL_VERSION_META_KEY)
        if not isinstance(version, str):
            return {MCP_PROTOCOL_VERSION_HEADER: self._version} if self._version else {}
        headers = {MCP_PROTOCOL_VERSION_HEADER: version, MCP_METHOD_HEADER: method}
        key = NAME_BEARING_METHODS.get(method)
        if key is not None and isinstance(given.get(key), str):
            headers[MCP_NAME_HEADER] = encode_header_value(given[key])
        schema = self._schemas.get(str(given.get("name"))) if method == "tools/call" else None
        if isinstance(schema, Mapping):
            headers |= mcp_param_headers(x_mcp_header_map(schema), given.get("arguments") or {})
        return headers


def schemas_of(tools: Iterable[Any]) -> dict[str, Any]:
    """The schemas of the arguments of tools."""
    listed = (tool for tool in tools if isinstance(tool, Mapping))
    return {str(tool.get("name", "")): tool.get("inputSchema") for tool in listed}


async def list_tools(
    target: Target, capabilities: Mapping[str, Any] | None = None, waits: bool = False
) -> list[dict[str, Any]]:
    """The tools of a server, as a client of these capabilities is offered them.

    A server that does not list them in time is a `UsageError`; one that was started is ended. With
    `waits` there is no limit, for a person logs in meanwhile.
    """
    with _listing_limit(target.name, waits):
        async with target.open() as streams, anyio.create_task_group() as group:
            upstream = Upstream(streams, target.name)
            await group.start(upstream.wire.run, decline, ignore)
            try:
                tools, _ = await upstream.tools(await greet(upstream, capabilities))
            except MCPError as fault:
                raise UsageError(f"{target.name} did not list its tools: {fault.message}") from None
            group.cancel_scope.cancel()
    return tools


async def first_list(upstream: Upstream) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Greets a server and asks for its tools, within the time for that; `_meta` and the tools."""
    with _listing_limit(upstream.name):
        meta = await greet(upstream)
        tools, _ = await upstream.tools(meta)
    return meta, tools


@contextmanager
def _listing_limit(name: str, waits: bool = False) -> Iterator[None]:
    """Ends what takes longer than a server may take to list its tools."""
    seconds = inf if waits else limit(LIST_SECONDS)
    with anyio.move_on_after(seconds) as scope:
        yield
    if scope.cancelled_caught:
        raise UsageError(
            f"{name} did not list its tools within {seconds:g} seconds. Check that it starts and "
            f"answers; if it is only slow, set {LIST_SECONDS} to more seconds"
        )


async def greet(
    upstream: Upstream, capabilities: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Shakes hands in whichever era the server lives; returns the `_meta` of later requests."""
    about = {"name": "toolshift", "version": "0"}
    hello = {
        "protocolVersion": LATEST_HANDSHAKE_VERSION,
        "capabilities": dict(capabilities or {}),
        "clientInfo": about,
    }
    try:
        await upstream.ask("initialize", hello)
    except MCPError as fault:
        if fault.code == CLOSED:
            raise
        meta = {
            PROTOCOL_VERSION_META_KEY: LATEST_MODERN_VERSION,
            CLIENT_CAPABILITIES_META_KEY: dict(capabilities or {}),
        }
        await upstream.ask("server/discover", {"_meta": meta})
        return meta
    await upstream.notify("notifications/initialized", None)
    return {}


async def decline(context: Any, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
    """Answers a server's questions while no client is there: pings alone."""
    if method == "ping":
        return {}
    raise MCPError(-32601, f"{method} is not answered while tools are only looked at")


async def ignore(context: Any, method: str, params: Mapping[str, Any] | None) -> None:
    """Hears a server's notices, and does nothing."""

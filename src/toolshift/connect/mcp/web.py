"""The proxy over streamable HTTP, on the loopback interface only.

Each session of the older era has layers and a connection to the real server of its own. The newer
era has no sessions: its requests share one.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from secrets import token_urlsafe
from typing import Any

import anyio
import pydantic_core
from mcp.server import Server
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.streamable_http import StreamableHTTPServerTransport, check_accept_headers
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp.types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    JSONRPCRequest,
    jsonrpc_message_adapter,
    methods,
)
from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolshift.connect.mcp.proxy import METHOD_NOT_FOUND, Wire, serve
from toolshift.connect.mcp.shifted_server import ShiftOptions
from toolshift.connect.serve.guard import Guard
from toolshift.connect.trace import Trace
from toolshift.core.errors import UsageError, cause_of
from toolshift.core.loopback import LOOPBACK
from toolshift.core.text import visible
from toolshift.interop.mcp_client import Target, Upstream

SESSION = "mcp-session-id"
IDLE = 45.0
"""Seconds after which a session ends whose client asks nothing and holds no stream.

Clients hold one as long as they live, so without it they have gone; each session has a server of
its own behind it, which must not wait for them."""
MAX_SESSIONS = 200
MAX_BODY = 16 * 1024 * 1024


class Front:
    """The ASGI application at one path."""

    def __init__(
        self, target: Target, how: ShiftOptions, trace: Trace | None, idle: float = IDLE
    ) -> None:
        self.target, self.how, self.trace, self.idle = target, how, trace, idle
        self._sessions: dict[str, StreamableHTTPServerTransport] = {}
        self._group: Any = None
        self._shared: Wire | None = None
        self._opening = anyio.Lock()
        server: Server[Any] = Server("toolshift", get_tool_input_schema=self._schema)
        server.middleware.append(self._relay)
        self._newer = StreamableHTTPSessionManager(server, max_request_body_size=MAX_BODY)

    @asynccontextmanager
    async def running(self, app: Any = None) -> AsyncIterator[None]:
        """Holds the sessions while the application serves."""
        async with self._newer.run(), anyio.create_task_group() as group:
            self._group = group
            if self.how.deployment is not None:
                self.how.deployment.begin()
            yield
            group.cancel_scope.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one HTTP request, by the era that its headers name."""
        request = Request(scope)
        version = request.headers.get(MCP_PROTOCOL_VERSION_HEADER)
        if request.method == "POST" and not _is_json(request):
            await _refuse(415, "send JSON: content-type: application/json")(scope, receive, send)
        elif version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS:
            await self._newer.handle_request(scope, receive, send)
        else:
            await self._older(scope, receive, send)

    # -- sessions of the older era ---------------------------------------------------------------

    async def _older(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = Request(scope).headers.get(SESSION)
        if name is None:
            await self._open(scope, receive, send)
            return
        transport = self._sessions.get(name)
        if transport is None:
            await _refuse(404, "there is no such session")(scope, receive, send)
            return
        await transport.handle_request(scope, receive, send)
        if transport.is_terminated:
            self._sessions.pop(name, None)

    async def _open(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Opens a session; what opens none is refused before the real server is started for it."""
        request = Request(scope, receive)
        try:
            body = await request.body()
        except ClientDisconnect:
            return
        refusal = _refused(request, body)
        if refusal is None and len(self._sessions) >= MAX_SESSIONS:
            refusal = _refuse(503, "too many sessions are open")
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        receive = _again(body, receive)
        name = token_urlsafe(24)
        transport = StreamableHTTPServerTransport(name, idle_timeout=self.idle)
        status = 500

        async def watched(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        self._sessions[name] = transport
        try:
            await self._group.start(self._session, name, transport)
            await transport.handle_request(scope, receive, watched)
        except UsageError as fault:
            await _refuse(502, f"toolshift: {fault}")(scope, receive, watched)
        finally:
            if status >= 400:
                await self._close(name, transport)

    async def _session(
        self, name: str, transport: StreamableHTTPServerTransport, *, task_status: Any
    ) -> None:
        begun = Begun(task_status)
        try:
            async with transport.connect() as streams:
                with transport.idle_scope or anyio.CancelScope():
                    await serve(streams, self.target, self.how, self.trace, task_status=begun)
        except Exception as fault:
            if not begun.told:
                raise UsageError(_reason(fault)) from None
            print(visible(f"toolshift: a session ended: {_reason(fault)}"), file=sys.stderr)
        finally:
            await self._close(name, transport)

    async def _close(self, name: str, transport: StreamableHTTPServerTransport) -> None:
        self._sessions.pop(name, None)
        if not transport.is_terminated:
            with anyio.CancelScope(shield=True):
                await transport.terminate()

    # -- requests of the newer era ---------------------------------------------------------------

    async def _relay(
        self, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        if ctx.request_id is None:
            return await call_next(ctx)
        if ctx.method == "initialize":  # which a server behind that speaks both eras would answer
            raise MCPError(METHOD_NOT_FOUND, "initialize is not of this protocol era")
        wire = await self._connected()
        return await wire.request(Post(ctx), ctx.method, ctx.params)

    def _schema(self, name: str) -> Any:
        """The schema of a tool as clients were shown it; by it their headers are checked."""
        return self._shared.offered.get(name) if self._shared is not None else None

    async def _connected(self) -> Wire:
        """The connection that all requests of the newer era share; a new one after it has died."""
        async with self._opening:
            if self._shared is None:
                try:
                    self._shared = await self._group.start(self._share)
                except UsageError as fault:
                    raise MCPError(-32603, f"toolshift: {fault}") from None
            return self._shared

    async def _share(self, *, task_status: Any) -> None:
        begun = Begun(task_status)
        wire: Wire | None = None
        try:
            async with self.target.open() as behind, anyio.create_task_group() as group:
                upstream = Upstream(behind, self.target.name)
                wire = Wire(upstream, self.how, self.trace)
                await group.start(upstream.wire.run, wire.asked, wire.told)
                group.start_soon(wire.deployed)
                begun.started(wire)
        except Exception as fault:
            if not begun.told:
                raise UsageError(_reason(fault)) from None
            print(visible(f"toolshift: the server was lost: {_reason(fault)}"), file=sys.stderr)
        finally:
            self._shared = None
            if wire is not None:
                wire.tools.end()


class Begun:
    """The status of a task, which remembers whether it has been told."""

    def __init__(self, status: Any) -> None:
        self._status, self.told = status, False

    def started(self, value: Any = None) -> None:
        """Tells that the task is ready."""
        self.told = True
        self._status.started(value)


class Post:
    """A request of the newer era as a caller: notices go onto the stream of its answer."""

    def __init__(self, asked: ServerRequestContext[Any, Any]) -> None:
        self._asked = asked
        self.request_id = asked.request_id

    async def notify(self, method: str, params: Mapping[str, Any] | None) -> None:
        """Tells the client, where this era knows such a notice."""
        try:
            notice: Any = methods.parse_server_notification(
                method, self._asked.protocol_version, params
            )
        except (KeyError, ValueError):
            return
        await self._asked.session.send_notification(notice, self.request_id)

    async def send_raw_request(self, method: str, params: Any) -> dict[str, Any]:
        """Refuses: in this era a server asks in its result."""
        raise MCPError(-32601, f"{method} cannot be asked of a client of this protocol era")


def _reason(fault: BaseException) -> str:
    """The first cause inside a group of them, in words."""
    fault = cause_of(fault)
    return str(fault) or type(fault).__name__


def _refused(request: Request, body: bytes) -> JSONResponse | None:
    """The refusal of a request that names no session; None where it opens one.

    The transport refuses the same, but only once there is a session with a server behind it.
    """
    if request.method not in ("GET", "POST", "DELETE"):
        return _refuse(405, f"{request.method} is not a method of MCP: use GET, POST or DELETE")
    if request.method == "POST" and not all(check_accept_headers(request)):
        return _refuse(406, "accept both application/json and text/event-stream")
    if request.method == "GET" and not check_accept_headers(request)[1]:
        return _refuse(406, "accept text/event-stream")
    if request.method != "POST":
        return _refuse(400, "this names no session: POST an initialize request first")
    try:
        message = jsonrpc_message_adapter.validate_python(
            pydantic_core.from_json(body), by_name=False
        )
    except ValidationError:  # which is a ValueError too
        return _refuse(400, "the body is not one JSON-RPC message")
    except ValueError as fault:
        return _refuse(400, f"the body is not JSON: {fault}", PARSE_ERROR)
    if not isinstance(message, JSONRPCRequest) or message.method != "initialize":
        return _refuse(400, "this names no session: send an initialize request first")
    return None


def _is_json(request: Request) -> bool:
    return request.headers.get("content-type", "").partition(";")[0].strip() == "application/json"


def _again(body: bytes, receive: Receive) -> Receive:
    """What gives a body that was read once more, and then what follows it."""
    told = False

    async def given() -> Message:
        nonlocal told
        if told:
            return await receive()
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return given


def _refuse(status: int, message: str, code: int = INVALID_REQUEST) -> JSONResponse:
    error = {"code": code, "message": message}
    allowed = {"allow": "GET, POST, DELETE"} if status == 405 else None
    return JSONResponse({"jsonrpc": "2.0", "id": None, "error": error}, status, allowed)


def application(
    target: Target,
    how: ShiftOptions,
    trace: Trace | None = None,
    path: str = "/mcp",
    idle: float = IDLE,
) -> ASGIApp:
    """The proxy as an ASGI application; hosts and origins are judged before all else."""
    front = Front(target, how, trace, idle)
    site = Starlette(routes=[Route(path, front)], lifespan=front.running)
    return Guard(site, LOOPBACK, largest=MAX_BODY, advice="")

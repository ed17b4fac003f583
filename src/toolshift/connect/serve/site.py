"""The HTTP side of a server: many episodes in one process, each at `/e/ID/mcp`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio
from anyio.abc import TaskGroup, TaskStatus
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.routing import Route

from toolshift.connect.serve.control import Control
from toolshift.connect.serve.guard import Guard
from toolshift.connect.serve.mcp_server import Offer
from toolshift.connect.serve.responses import refusal
from toolshift.connect.serve.session import AgentSession, SessionStore
from toolshift.core.loopback import LOOPBACK

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

SWEEP_SECONDS = 0.5


@dataclass(frozen=True)
class _Hosted:
    """The MCP server of one episode while it runs."""

    offer: Offer
    sessions: StreamableHTTPSessionManager
    scope: anyio.CancelScope


class Site:
    """An application that serves the episodes of a store.

    Args:
        store: where the episodes are; others may open and close them there at any time.
        own: see `Control`.
        protocol: see `Control`.
        hosts: names by which the server may be called.
        token: the bearer token that clients must send; "" asks for none.
        control_token: what opens, closes and looks into episodes must bear this one; "" asks for
            none. It is as good as `token`.
    """

    def __init__(
        self,
        store: SessionStore,
        own: bool = True,
        protocol: bool = True,
        hosts: Iterable[str] = LOOPBACK,
        token: str = "",
        control_token: str = "",
    ) -> None:
        self.store = store
        self._hosted: dict[str, _Hosted] = {}
        self._tasks: TaskGroup | None = None
        self._starting = anyio.Lock()
        control = Control(store, self.tell, own, protocol, control_token)
        routes = [Route("/e/{episode}/mcp", _Endpoint(self)), *control.routes()]
        app = Starlette(routes=routes, lifespan=self._live)
        self.app = Guard(app, hosts, token, further=control_token)

    async def tell(self, episode: str) -> None:
        """Tells the MCP clients of an episode that its tools have changed."""
        hosted = self._hosted.get(episode)
        if hosted is not None:
            await hosted.offer.tell_all()

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request to the MCP server of an episode."""
        name = scope["path_params"]["episode"]
        seat = self.store.find(name)
        if seat is None:
            gone = refusal(404, "there is no such episode: it was closed, or has expired")
            await gone(scope, receive, send)
            return
        hosted = await self._host(name, seat)
        await hosted.sessions.handle_request(scope, receive, send)

    async def _host(self, name: str, seat: AgentSession) -> _Hosted:
        async with self._starting:
            if name not in self._hosted:
                assert self._tasks is not None
                self._hosted[name] = await self._tasks.start(self._run, seat)
            return self._hosted[name]

    async def _run(self, seat: AgentSession, *, task_status: TaskStatus[_Hosted]) -> None:
        """Keeps the sessions of one episode until it is closed."""
        offer = Offer(seat)
        sessions = StreamableHTTPSessionManager(offer, session_idle_timeout=self.store.idle)
        with anyio.CancelScope() as scope:
            async with sessions.run():
                task_status.started(_Hosted(offer, sessions, scope))
                await anyio.sleep_forever()

    @asynccontextmanager
    async def _live(self, _: Starlette) -> AsyncIterator[None]:
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            tasks.start_soon(self._sweep)
            yield
            tasks.cancel_scope.cancel()

    async def _sweep(self) -> None:
        """Ends the sessions of episodes that have been closed, in whatever thread."""
        while True:
            await anyio.sleep(SWEEP_SECONDS)
            self.store.expire()
            for name in [name for name in self._hosted if name not in self.store]:
                self._hosted.pop(name).scope.cancel()


class _Endpoint:
    """The endpoint of all MCP requests; a class, so that Starlette passes every method on."""

    def __init__(self, site: Site) -> None:
        self.site = site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.site.serve(scope, receive, send)

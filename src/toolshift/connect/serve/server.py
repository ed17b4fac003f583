"""Running a site: in front of the user, or in the background of a study."""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from toolshift.connect.serve.session import AgentSession, SessionStore
from toolshift.core.errors import UsageError

if TYPE_CHECKING:
    import uvicorn

    from toolshift.connect.serve.site import Site

GRACE_SECONDS = 1


def require() -> None:
    """Checks that the extra is installed.

    Raises:
        UsageError: where it is not, saying how to.
    """
    try:
        for name in ("mcp_types.version", "mcp.server.lowlevel", "uvicorn"):
            import_module(name)
    except ImportError as fault:
        raise UsageError(
            f"this needs MCP 2 and a web server ({fault}): pip install 'toolshift[connect]'"
        ) from None


def bind(host: str, port: int) -> socket.socket:
    """A listening socket.

    Raises:
        UsageError: where the address cannot be had.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((host, port), family=family, backlog=256)
    except (OSError, OverflowError) as fault:
        why = getattr(fault, "strerror", None) or fault
        raise UsageError(f"cannot listen on {host}:{port} ({why}): try another --port") from None
    # Connections inherit it. Without, each answer waits 40 ms for the client's acknowledgement:
    # its head and its body are sent apart, and asyncio only sees to sockets that it has made.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def web_server(site: Site) -> uvicorn.Server:
    """A web server for a site; it logs no request, for the addresses of episodes are secret."""
    import uvicorn

    config = uvicorn.Config(
        site.app,
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    return uvicorn.Server(config)


class Background:
    """A server on loopback in a thread of its own, for the programs of a study.

    Nobody can open episodes over it, or see a grade.
    """

    def __init__(self) -> None:
        require()
        from toolshift.connect.serve.site import Site

        self.store = SessionStore(idle=24 * 3600.0)
        self._site = Site(self.store, own=False)
        self._socket = bind("127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._server = web_server(self._site)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="toolshift-serve")
        self._thread.start()
        self._ready.wait()

    def open(self, seat: AgentSession) -> str:
        """Opens an episode; returns its id."""
        name = self.store.open(seat)
        assert name is not None, "more episodes at once than a study runs"
        return name

    def tell(self, episode: str) -> None:
        """Tells the MCP clients of an episode that its tools have changed; from any thread."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop has just been closed
                asyncio.run_coroutine_threadsafe(self._site.tell(episode), self._loop)

    def close(self) -> None:
        """Stops the server."""
        self._server.should_exit = True
        self._thread.join(5 * GRACE_SECONDS)

    def _run(self) -> None:
        async def serve() -> Any:
            self._loop = asyncio.get_running_loop()
            self._ready.set()
            await self._server.serve(sockets=[self._socket])

        asyncio.run(serve())

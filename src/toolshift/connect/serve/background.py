"""A server in the background of a study, for agents that are programs."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import Any

from toolshift.connect.serve.server import GRACE_SECONDS, bind, web_server
from toolshift.connect.serve.session import AgentSession, SessionStore
from toolshift.connect.serve.site import Site


class Background:
    """A server on loopback in a thread of its own, for the programs of a study.

    Nobody can open episodes over it, or see a grade.
    """

    def __init__(self) -> None:
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

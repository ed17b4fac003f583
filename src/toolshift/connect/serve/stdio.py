"""One episode over standard input and output, for clients that start their servers themselves."""

from __future__ import annotations

import signal

import anyio
from mcp.server.stdio import stdio_server

from toolshift.connect.serve.mcp_server import Offer
from toolshift.connect.serve.session import AgentSession


async def serve_stdio(seat: AgentSession) -> None:
    """Serves an episode until the client leaves, or a signal ends it."""
    offer = Offer(seat)

    async def stop_on_signal(scope: anyio.CancelScope) -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for _ in signals:
                scope.cancel()
                return

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stop_on_signal, tasks.cancel_scope)
        async with stdio_server() as (inward, outward):
            await offer.run(inward, outward, offer.create_initialization_options())
        tasks.cancel_scope.cancel()

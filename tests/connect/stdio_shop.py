"""The shop as a program on standard input and output that starts in no time.

The server runs in this process; `stdio_bridge.py` is the program. `shop_server.py` does the same
in a process of its own, and takes seconds to start.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator
from functools import cache
from pathlib import Path
from typing import Any

from connect.shop_server import Shop, shop_server
from mcp.server.stdio import stdio_server

BRIDGE = Path(__file__).with_name("stdio_bridge.py")


class Lines:
    """What comes in, as `stdio_server` reads it."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self.reader = reader

    async def __aiter__(self) -> AsyncIterator[str]:
        async for line in self.reader:
            yield line.decode()


class Out:
    """What goes out, as `stdio_server` writes it."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.writer = writer

    async def write(self, text: str) -> None:
        self.writer.write(text.encode())

    async def flush(self) -> None:
        await self.writer.drain()


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A shop for each program that is started."""
    server, ends = shop_server(Shop()), (Lines(reader), Out(writer))
    try:
        async with stdio_server(*ends) as streams:  # type: ignore[arg-type]
            await server.run(*streams, server.create_initialization_options())
    except* OSError:  # its program was ended
        pass
    finally:
        writer.close()


@cache
def stdio_shop() -> tuple[str, ...]:
    """The command of a shop; the server behind it is there until this process ends."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    begun = asyncio.run_coroutine_threadsafe(asyncio.start_server(serve, "127.0.0.1", 0), loop)
    sockets: Any = begun.result(20).sockets
    return sys.executable, "-S", str(BRIDGE), str(sockets[0].getsockname()[1])

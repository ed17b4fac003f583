"""Servers as programs on standard input and output that start in no time.

The server runs in this process; `stdio_bridge.py` is the program. A process of its own would import
the library again, which takes seconds.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Callable
from functools import cache
from pathlib import Path
from typing import Any

from connect.shop_server import shop_server
from mcp.server import Server
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


@cache
def stdio_program(make: Callable[[], Server[Any]]) -> tuple[str, ...]:
    """The command of a program.

    Args:
        make: what serves; called for each program that is started.

    Returns:
        Its words. The server behind it is there until this process ends.
    """

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server = make()
        try:
            async with stdio_server(Lines(reader), Out(writer)) as streams:  # type: ignore[arg-type]
                await server.run(*streams, server.create_initialization_options())
        except* OSError:  # its program was ended
            pass
        finally:
            writer.close()

    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    begun = asyncio.run_coroutine_threadsafe(asyncio.start_server(serve, "127.0.0.1", 0), loop)
    sockets: Any = begun.result(20).sockets
    return sys.executable, "-S", str(BRIDGE), str(sockets[0].getsockname()[1])


def stdio_shop() -> tuple[str, ...]:
    """The command of a shop: what `shop_server.py` is, without the seconds that it takes."""
    return stdio_program(shop_server)

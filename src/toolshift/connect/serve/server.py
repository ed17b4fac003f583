"""What running a site needs: the extra, a listening socket, a web server."""

from __future__ import annotations

import socket
from importlib import import_module
from typing import TYPE_CHECKING

from toolshift.core.errors import UsageError
from toolshift.core.importing import load
from toolshift.core.installation import extra

if TYPE_CHECKING:
    import uvicorn

    from toolshift.connect.serve.site import Site

GRACE_SECONDS = 1


def require() -> None:
    """Checks that the extra is installed."""
    try:
        for name in ("mcp_types.version", "mcp.server.lowlevel", "uvicorn"):
            import_module(name)
    except ImportError as fault:
        raise UsageError(
            f"this needs MCP 2 and a web server ({fault}): {extra('connect')}"
        ) from None


def bind(host: str, port: int) -> socket.socket:
    """A listening socket."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((host, port), family=family, backlog=256)
    except (OSError, OverflowError) as fault:
        why = getattr(fault, "strerror", None) or fault
        raise UsageError(
            f"cannot listen on {host}:{port} ({why}): try another --port or --host"
        ) from None
    # Connections inherit it. Without, each answer waits 40 ms for the client's acknowledgement:
    # its head and its body are sent apart, and asyncio only sees to sockets that it has made.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def web_server(site: Site) -> uvicorn.Server:
    """A web server for a site; it logs no request, for the addresses of episodes are secret."""
    import uvicorn  # noqa: PLC0415 - an extra

    config = uvicorn.Config(
        site.app,
        http=load("toolshift.connect.serve.timeouts:Impatient"),
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    return uvicorn.Server(config)

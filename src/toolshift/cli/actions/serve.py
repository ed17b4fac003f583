"""`toolshift serve`: scenes for agents in programs of their own."""

from __future__ import annotations

import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import click

from toolshift.core.errors import UsageError
from toolshift.core.tool import JSON


@dataclass(frozen=True)
class Listen:
    """Where a server listens, and who may talk to it.

    Attributes:
        token: the bearer token that clients must send; "" makes one where others than this
            machine can connect.
        allowed: further names by which the server may be called.
        idle: seconds without a request after which an episode is closed.
    """

    host: str = "127.0.0.1"
    port: int = 8410
    token: str = ""
    allowed: tuple[str, ...] = ()
    idle: float = 1800.0


@dataclass(frozen=True)
class Single:
    """The one episode that is served over standard input and output."""

    task: str
    shifts: tuple[str, ...] = ()
    seed: int = 0
    pool: str = "dev"
    size: int = 200
    trace: Path | None = None


def serve_command(listen: Listen, protocol: bool) -> None:
    """Serves over HTTP until it is stopped.

    Raises:
        UsageError: where the address cannot be had or a setting cannot work.
    """
    from toolshift.connect.serve.guard import hosts_of
    from toolshift.connect.serve.server import bind, require, web_server
    from toolshift.core.loopback import is_loopback

    require()
    from toolshift.connect.serve.session import SessionStore
    from toolshift.connect.serve.site import Site

    if listen.idle <= 0:
        raise UsageError("--idle is a number of seconds above 0")
    hosts = hosts_of(listen.host, listen.allowed)
    token = listen.token
    if not token and not is_loopback(listen.host):
        token = secrets.token_urlsafe(24)
        click.echo(f"Token (shown this once): {token}", err=True)
    listener = bind(listen.host, listen.port)
    port = listener.getsockname()[1]
    site = Site(SessionStore(listen.idle), protocol=protocol, hosts=hosts, token=token)
    shown = f"[{listen.host}]" if ":" in listen.host else listen.host
    click.echo(f"Serving on http://{shown}:{port}: POST /episodes opens one. Ctrl-C stops.")
    with suppress(KeyboardInterrupt):  # that is how it is stopped
        web_server(site).run(sockets=[listener])


def stdio_command(single: Single, protocol: bool) -> None:
    """Serves one episode over standard input and output, then says its grade on stderr.

    Raises:
        UsageError: for a task that cannot be made, and where the trace cannot be written.
    """
    from toolshift.connect.serve.server import require

    require()
    import anyio

    from toolshift.connect.serve.control import open_episode, trace_of
    from toolshift.connect.serve.session import AgentSession
    from toolshift.connect.serve.stdio import serve_stdio
    from toolshift.runs.suite import read_task

    if not single.task:
        raise UsageError("--stdio serves one episode: name its --task, as in poi/visit/3")
    shifts = "+".join(single.shifts)
    cell = read_task(single.task, shifts, single.seed, single.pool, single.size)
    seat = AgentSession(open_episode(cell), protocol)
    anyio.run(serve_stdio, seat)
    episode = seat.episode
    if not seat.over:
        episode.crash("the client left before the episode was over")
    found = trace_of(episode)
    verdict = found["grade"]
    said = "passed" if verdict.passed else f"failed ({verdict.cause.replace('_', ' ')})"
    click.echo(f"{cell.lineage} {cell.stack or 'clean'}: {said}", err=True)
    if single.trace is not None:
        try:
            single.trace.write_bytes(JSON.encode(found) + b"\n")
        except OSError as fault:
            raise UsageError(f"{single.trace}: cannot write ({fault.strerror})") from None

"""`toolshift serve`: scenes for agents in programs of their own."""

from __future__ import annotations

import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import anyio
import click

from toolshift.cli.listen import Listen
from toolshift.cli.options import Entities
from toolshift.cli.parameters import option, options_struct
from toolshift.connect.serve.control import open_episode, trace_of
from toolshift.connect.serve.guard import hosts_of
from toolshift.connect.serve.server import bind, require, web_server
from toolshift.connect.serve.session import AgentSession, SessionStore
from toolshift.connect.serve.site import Site
from toolshift.connect.serve.stdio import serve_stdio
from toolshift.core.errors import UsageError
from toolshift.core.files import check_writable
from toolshift.core.terminal import say
from toolshift.core.tool import JSON
from toolshift.runs.suite import read_task


@dataclass(frozen=True, kw_only=True)
class Single:
    """The one episode that is served over standard input and output."""

    task: Annotated[str, option(metavar="WORLD/KIND[/INDEX]", help="stdio: the task.")] = ""
    shifts: Annotated[
        tuple[str, ...], option("--shift", metavar="NAME[:SEV]", help="stdio: a shift.")
    ] = ()
    entities: Entities
    trace: Annotated[Path | None, option(help="stdio: file for the trace.")] = None


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """What `toolshift serve` is asked for.

    Attributes:
        control_token: without which no episode is opened, closed or looked into; "" makes one.
        idle: seconds without a request after which an episode is closed.
        stdio: serve `single` alone, over standard input and output.
    """

    listen: Listen
    control_token: Annotated[
        str,
        option(
            envvar="TOOLSHIFT_CONTROL_TOKEN",
            help="Token that is needed to open, close or inspect an episode; keep it secret from "
            "agents. By default one is generated and printed once.",
        ),
    ] = ""
    idle: Annotated[
        float, option(help="Seconds without a request after which an episode is closed.")
    ] = 1800.0
    no_protocol_tools: Annotated[
        bool, option(help="Do not offer the protocol tools; answers come through the control API.")
    ] = False
    stdio: Annotated[bool, option(help="Serve one episode over standard input and output.")] = False
    single: Single


@click.command()
@options_struct(ServeOptions)
def serve(options: ServeOptions) -> None:
    """Serve scenes over MCP to agents that run as separate programs.

    \b
    toolshift serve
    toolshift serve --stdio --task poi/visit --shift identity_erasure:2
    """
    require()
    single = options.single
    if options.stdio:
        _serve_one(single, not options.no_protocol_tools)
        return
    if single.task or single.shifts or single.trace:
        raise UsageError("--task, --shift and --trace need --stdio; without it, use POST /episodes")
    if options.idle <= 0:
        raise UsageError("--idle must be a number of seconds above 0")
    listen, protocol = options.listen, not options.no_protocol_tools
    hosts = hosts_of(listen.host, listen.allowed)
    token = listen.token_or_new("Token (shown this once)")
    control = options.control_token
    if not control:
        control = secrets.token_urlsafe(24)
        say(f"Control token (shown this once): {control}", err=True)
    listener = bind(listen.host, listen.port)
    site = Site(
        SessionStore(options.idle),
        protocol=protocol,
        hosts=hosts,
        token=token,
        control_token=control,
    )
    url = listen.url(listener.getsockname()[1])
    say(f"Serving on {url}: POST /episodes opens one. Ctrl-C stops.")
    with suppress(KeyboardInterrupt):  # that is how it is stopped
        web_server(site).run(sockets=[listener])


def _serve_one(single: Single, protocol: bool) -> None:
    """Serves one episode over standard input and output, then says its grade on stderr."""
    if not single.task:
        raise UsageError("--stdio serves one episode: name its --task, as in poi/visit/3")
    shifts = "+".join(single.shifts)
    of = single.entities
    cell = read_task(single.task, shifts, of.seed, of.pool, of.size)
    session = AgentSession(open_episode(cell), protocol)
    if single.trace is not None:
        check_writable(single.trace, "--trace")
    anyio.run(serve_stdio, session)
    episode = session.episode
    if not session.over:
        episode.crash("the client left before the episode was over")
    found = trace_of(episode)
    verdict = found["grade"]
    said = "passed" if verdict.passed else f"failed ({verdict.cause.replace('_', ' ')})"
    say(f"{cell.lineage} {cell.said}: {said}", err=True)
    if single.trace is not None:
        try:
            single.trace.write_bytes(JSON.encode(found) + b"\n")
        except OSError as fault:
            raise UsageError(f"{single.trace}: cannot write ({fault.strerror})") from None

"""`toolshift model-proxy`: shifts between an agent with hard-wired tools and its model."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from socket import socket
from typing import Annotated

import click

from toolshift.cli.listen import PORT, Listen
from toolshift.cli.options import Wordings
from toolshift.cli.parameters import option, options_struct
from toolshift.connect.model_proxy.app import LET_THROUGH, ModelProxy
from toolshift.connect.model_proxy.settings import ShiftOptions, check_stack, prepare
from toolshift.connect.serve.guard import Guard, hosts_of
from toolshift.connect.serve.server import bind, require, web_server
from toolshift.connect.trace import Trace
from toolshift.core.documents import read_json
from toolshift.core.errors import UsageError
from toolshift.core.files import read_given
from toolshift.core.http import httpx
from toolshift.core.intake import Intake, NotRead
from toolshift.core.terminal import say
from toolshift.dialects.chat import CHAT
from toolshift.runs.cell import write_stack
from toolshift.runs.suite import check_entities
from toolshift.shifts.stacks import read_stack

LARGEST = 64 * 1024 * 1024
"""Largest request in bytes: a long conversation with pictures in it."""


@dataclass(frozen=True, kw_only=True)
class ModelListen(Listen):
    """Where the proxy listens; its token is what agents send as their key."""

    port: Annotated[int, PORT] = 8420
    token: Annotated[str, option(help="Token that agents send as their API key.")] = ""


@dataclass(frozen=True, kw_only=True)
class ModelProxyOptions:
    """What `toolshift model-proxy` is asked for.

    Attributes:
        upstream: the model's address.
        shifts: as on the command line, `name:2` or `a:1+b:2`.
        needed: the tools that the agent needs, where the user has said so.
        may_write: let a trap lie over tools that may write.
        tools: a tool list to try the shifts on before serving; None tries nothing.
        trace: the file for one line a request; None writes no file.
        pass_through: pass on what is not shifted, in place of refusing it.
    """

    upstream: Annotated[str, option(help="The model's address: http(s)://HOST[:PORT]/v1.")]
    shifts: Annotated[
        tuple[str, ...],
        option(
            "--shift",
            metavar="NAME[:SEV][+NAME[:SEV]]",
            help="Shift; repeat to compose. Without it nothing is changed.",
        ),
    ] = ()
    wordings: Wordings
    needed: Annotated[
        tuple[str, ...], option("--needs", help="A tool that the agent needs; repeat.")
    ] = ()
    may_write: Annotated[
        bool,
        option(
            "--allow-traps-that-write",
            help="Allow misleading names, although requests do not show which tools write.",
        ),
    ] = False
    tools: Annotated[
        Path | None,
        option(
            help="Try the shifts on this tool list (JSON, OpenAI format) first, and show what "
            "they do."
        ),
    ] = None
    trace: Annotated[
        Path | None, option(help="Append one line for each request to this file (JSONL).")
    ] = None
    pass_through: Annotated[
        bool,
        option(
            LET_THROUGH,
            help="Pass on unchanged what cannot be shifted: other paths, other kinds of tools. "
            "Without this option they are refused. The end of the output says how many were "
            "passed, and to which paths.",
        ),
    ] = False
    listen: ModelListen


@click.command("model-proxy")
@options_struct(ModelProxyOptions)
def model_proxy(options: ModelProxyOptions) -> None:
    """Shift an agent's tools between the agent and its model; works with any agent.

    This is an OpenAI-compatible chat completions endpoint. Point the agent's base URL at it: the
    model sees the shifted tools, and the agent gets the calls under its own names.

    \b
    toolshift model-proxy --upstream https://api.openai.com/v1 --shift identity_erasure:2
    OPENAI_BASE_URL=http://127.0.0.1:8420/v1 my-agent
    """
    require()
    upstream = _upstream(options.upstream)
    check_entities(options.wordings.pool, 10)
    stack = read_stack("+".join(options.shifts))
    of = options.wordings
    how = ShiftOptions(stack, of.seed, of.pool, options.needed, options.may_write)
    check_stack(how)
    if options.pass_through and not stack:
        raise UsageError(
            f"{LET_THROUGH} works only with --shift: without a shift everything is passed unchanged"
        )
    if options.tools is not None:
        _try(options.tools, how)
    listen = options.listen
    token = listen.token_or_new("Token (shown this once), the agent's API key")
    key = _key() if token else ""
    with ExitStack() as closing:
        proxy = ModelProxy(upstream, how, key, pass_through=options.pass_through)
        if options.trace is not None:
            trace = Trace(options.trace, (key, token))
            closing.callback(trace.close)
            proxy.write = trace.write
        hosts = hosts_of(listen.host, listen.allowed)
        proxy.app = Guard(proxy.app, hosts, token, LARGEST)  # type: ignore[assignment]
        listener = bind(listen.host, listen.port)
        url = listen.url(listener.getsockname()[1])
        said = write_stack(stack) or "nothing is shifted"
        _serve(proxy, listener, f"Serving {url}/v1 ({said}). Ctrl-C stops.")


def _serve(proxy: ModelProxy, listener: socket, greeting: str) -> None:
    """Serves until a signal comes; what was counted is then the last that is said."""

    def end(sign: int, frame: object) -> None:
        raise click.exceptions.Exit(128 + sign)

    # The web server ends by raising its signal once more, which would end us without a word.
    for sign in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sign, end)
    try:
        say(greeting)
        web_server(proxy).run(sockets=[listener])  # type: ignore[arg-type]
    except click.exceptions.Exit:
        say("Stopped.", err=True)
        raise
    finally:
        for line in proxy.ending:
            say(f"toolshift: {line}", err=True)


def _upstream(address: str) -> str:
    """The model's address before `/chat/completions`."""
    try:
        found = httpx.URL(address)
    except httpx.InvalidURL:
        found = httpx.URL("")
    if found.scheme not in ("http", "https") or not found.host or found.query:
        raise UsageError(f"--upstream {address!r}: write http(s)://host[:port]/v1")
    return address.rstrip("/").removesuffix(CHAT.path)


def _key() -> str:
    """The model's key, where the agent's authorization is for the proxy."""
    key = os.environ.get("TOOLSHIFT_API_KEY") or os.environ.get("OPENAI_API_KEY") or ""
    if not key:
        raise UsageError(
            "with a token, agents log in at the proxy, so it needs the model's own key: set "
            "TOOLSHIFT_API_KEY or OPENAI_API_KEY (to any word if the model needs no key)"
        )
    return key


def _try(file: Path, how: ShiftOptions) -> None:
    """Tries the shifts on a tool list, and shows the names before and after."""
    try:
        found = read_json(read_given(file), f"--tools {file}")
    except OSError as fault:
        raise UsageError(f"--tools {file}: cannot be read ({fault.strerror})") from None
    listed = found.get("tools") if isinstance(found, dict) else found
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        raise UsageError(f"--tools {file}: contains no list of OpenAI tools")
    if not listed:
        raise NotRead(f"--tools {file}: contains no tool", Intake(str(file), "tool"))
    _, scene = prepare(listed, how)
    for tool in scene.tools:
        say(f"{' + '.join(tool.origin) or '(added)'} -> {tool.name}: {tool.description}")

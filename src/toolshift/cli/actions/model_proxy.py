"""`toolshift model-proxy`: shifts between an agent with hard-wired tools and its model."""

from __future__ import annotations

import os
import secrets
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from toolshift.cli.actions.serve import Listen
from toolshift.core.errors import UsageError

LARGEST = 64 * 1024 * 1024
"""Bytes of a request: a long conversation with pictures in it."""


@dataclass(frozen=True)
class Wanted:
    """What the user has asked for.

    Attributes:
        shifts: as on the command line, `name:2` or `a:1+b:2`.
        tools: a file with a tool list to try the shifts on before serving; None for none.
        trace: where one line a request is written; None for nowhere.
    """

    upstream: str
    shifts: tuple[str, ...] = ()
    seed: int = 0
    pool: str = "dev"
    needed: tuple[str, ...] = ()
    may_write: bool = False
    tools: Path | None = None
    trace: Path | None = None


def model_proxy_command(wanted: Wanted, listen: Listen) -> None:
    """Serves until it is stopped.

    Raises:
        UsageError: for a shift that is not applicable, and where an address or a file cannot be
            had.
    """
    from toolshift.connect.serve.guard import Guard, hosts_of
    from toolshift.connect.serve.server import bind, require, web_server

    require()
    from toolshift.connect.model_proxy.app import ModelProxy
    from toolshift.connect.model_proxy.settings import ShiftOptions, check_stack
    from toolshift.connect.trace import Trace
    from toolshift.core.loopback import is_loopback
    from toolshift.runs.suite import check_entities, read_stack

    if not wanted.upstream.startswith(("http://", "https://")):
        raise UsageError(f"--upstream {wanted.upstream!r}: write http(s)://host[:port]/v1")
    check_entities(wanted.pool, 10)
    stack = read_stack("+".join(wanted.shifts))
    check_stack(stack)
    how = ShiftOptions(stack, wanted.seed, wanted.pool, wanted.needed, wanted.may_write)
    if wanted.tools is not None:
        _try(wanted.tools, how)
    token = listen.token
    if not token and not is_loopback(listen.host):
        token = secrets.token_urlsafe(24)
        click.echo(f"Token (shown this once), the agent's API key: {token}", err=True)
    key = _key() if token else ""
    with ExitStack() as closing:
        proxy = ModelProxy(wanted.upstream, how, key)
        if wanted.trace is not None:
            trace = Trace(wanted.trace, (key, token))
            closing.callback(trace.close)
            proxy.write = trace.write
        hosts = hosts_of(listen.host, listen.allowed)
        proxy.app = Guard(proxy.app, hosts, token, LARGEST)  # type: ignore[assignment]
        listener = bind(listen.host, listen.port)
        port = listener.getsockname()[1]
        shown = f"[{listen.host}]" if ":" in listen.host else listen.host
        said = "+".join(f"{one.shift}:{one.severity}" for one in stack) or "nothing is shifted"
        click.echo(f"Serving http://{shown}:{port}/v1 ({said}). Ctrl-C stops.")
        web_server(proxy).run(sockets=[listener])  # type: ignore[arg-type]


def _key() -> str:
    """The model's key, where the agent's authorization is for the proxy.

    Raises:
        UsageError: where it is not set.
    """
    key = os.environ.get("TOOLSHIFT_API_KEY") or os.environ.get("OPENAI_API_KEY") or ""
    if not key:
        raise UsageError(
            "with a token, agents authorize at the proxy: set TOOLSHIFT_API_KEY or OPENAI_API_KEY "
            "to the model's key (any word will do where the model asks for none)"
        )
    return key


def _try(file: Path, how: Any) -> None:
    """Tries the shifts on a tool list, and shows the names before and after."""
    import msgspec

    from toolshift.connect.model_proxy.settings import prepare

    try:
        found = msgspec.json.decode(file.read_bytes())
    except (OSError, msgspec.DecodeError) as fault:
        raise UsageError(f"{file}: no tool list can be read there ({fault})") from None
    listed = found.get("tools") if isinstance(found, dict) else found
    if not isinstance(listed, list):
        raise UsageError(f"{file}: holds no list of OpenAI tools")
    _, scene = prepare(listed, how)
    for tool in scene.tools:
        click.echo(f"{' + '.join(tool.origin) or '(added)'} -> {tool.name}: {tool.description}")

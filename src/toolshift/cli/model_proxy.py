"""The command that stands between an agent and its model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from toolshift.cli.group import toolshift


@toolshift.command("model-proxy")
@click.option("--upstream", required=True, help="The model's address: http(s)://HOST[:PORT]/v1.")
@click.option(
    "--shift",
    "shifts",
    multiple=True,
    metavar="NAME[:SEV][+NAME[:SEV]]",
    help="Shift; repeat to compose. None leaves everything as it is.",
)
@click.option("--seed", default=0, show_default=True, help="With the tools, decides every choice.")
@click.option("--pool", default="dev", show_default=True, help="Of wordings: train, dev or test.")
@click.option("--needs", "needed", multiple=True, help="A tool that the agent needs; repeat.")
@click.option(
    "--allow-traps-that-write",
    "may_write",
    is_flag=True,
    help="Let misleading names lie over tools, although a request does not say which ones write.",
)
@click.option(
    "--tools",
    type=click.Path(path_type=Path),
    help="Try the shifts on this tool list (JSON, OpenAI format) first, and show what they do.",
)
@click.option("--trace", type=click.Path(path_type=Path), help="Append a line a request (JSONL).")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--port", default=8420, show_default=True, help="0 takes a free one.")
@click.option("--token", default="", help="That agents send as their API key.")
@click.option("--allow-host", "allowed", multiple=True, help="Answer to this Host too; repeat.")
def model_proxy(host: str, port: int, token: str, allowed: tuple[str, ...], **wanted: Any) -> None:
    """Shift the tools of an agent between it and its model, whatever the agent is.

    An OpenAI-compatible chat completions endpoint. Point the agent's base URL at it: the model is
    shown the tools under the shifts, and the agent gets the calls under its own names.

    \b
    toolshift model-proxy --upstream https://api.openai.com/v1 --shift identity_erasure:2
    OPENAI_BASE_URL=http://127.0.0.1:8420/v1 my-agent
    """
    from toolshift.cli.actions.model_proxy import Wanted, model_proxy_command
    from toolshift.cli.actions.serve import Listen

    model_proxy_command(Wanted(**wanted), Listen(host, port, token, allowed))

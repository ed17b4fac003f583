"""The command that stops a bad release."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from toolshift.cli.group import toolshift
from toolshift.cli.options import MODEL_OPTIONS, as_json, model


@toolshift.command()
@click.argument("run", required=False, type=click.Path(path_type=Path))
@click.option(
    "--baseline",
    required=True,
    type=click.Path(path_type=Path),
    help="Run folder of what is in use.",
)
@click.option(
    "--margin", required=True, type=float, help="Points of accuracy that a release may lose."
)
@click.option(
    "--agent", default="", help="Without RUN: the agent to run. With it: which agent of RUN."
)
@click.option("--baseline-agent", default="", help="Which agent of the baseline; the same name.")
@click.option(
    "--by",
    default="tier",
    show_default=True,
    help="What is gated beside clean and overall: tier, dimension, shift, or overall for nothing.",
)
@click.option(
    "--max-void",
    default=5.0,
    show_default=True,
    help="Percent of the scenes that may be void or missing; above it nothing is decided.",
)
@click.option(
    "--inconclusive",
    type=click.Choice(["pass", "fail"]),
    help="What an inconclusive gate counts as; exit code 3 where it is not said.",
)
@click.option("--junit", type=click.Path(path_type=Path), help="Write JUnit XML to this file.")
@click.option("--markdown", type=click.Path(path_type=Path), help="Write a summary to this file.")
@model
@click.option("--out", type=click.Path(path_type=Path), help="Run folder for --agent; resumes it.")
@click.option("--workers", default=1, show_default=True, help="Processes for scripted agents.")
@click.option("--concurrency", type=int, help="Episodes at once, for chat and your own agents.")
@as_json
def gate(run: Path | None, baseline: Path, agent: str, **asked: Any) -> None:
    """Stop a release that is worse than a baseline, paired on the same scenes.

    \b
    toolshift gate runs/new --baseline runs/main --margin 5
    toolshift gate --agent mymodule:my_agent --baseline runs/main --margin 5 --out runs/new

    Exit codes: 0 not worse by the margin, 1 worse by more, 3 inconclusive, 2 a usage error.
    """
    from toolshift.cli.actions.gate import gate_command

    picked = {name: value for name in MODEL_OPTIONS if (value := asked.pop(name)) is not None}
    gate_command(run, baseline, agent, picked, asked)

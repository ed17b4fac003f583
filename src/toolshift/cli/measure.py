"""Commands that measure: run, report, compare, and a closer look at scenes and episodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from toolshift.cli.group import toolshift
from toolshift.cli.options import MODEL_OPTIONS, as_json, entities, model, selection
from toolshift.core.errors import UsageError


@toolshift.command()
@click.option("--agent", "agents", multiple=True, help="`toolshift list agents`; repeat.")
@click.option(
    "--agent-command",
    "commands",
    multiple=True,
    metavar="COMMAND",
    help="Your own program, started for each episode (docs/connect.md); repeat.",
)
@click.option(
    "--agent-url",
    "urls",
    multiple=True,
    metavar="URL",
    help="Your own agent, which runs already: messages are posted to it; repeat.",
)
@selection
@model
@click.option("--out", type=click.Path(path_type=Path), help="Run folder; resumes the run in it.")
@click.option("--workers", default=1, show_default=True, help="Processes for scripted agents.")
@click.option("--concurrency", type=int, help="Episodes at once, for chat and your own agents.")
@click.option("--estimate", is_flag=True, help="Say what the run would cost, and run nothing.")
@click.option("--only-distinguishable", is_flag=True, help="Print only what is significant.")
@as_json
def run(
    agents: tuple[str, ...], commands: tuple[str, ...], urls: tuple[str, ...], **asked: Any
) -> None:
    """Run agents in clean and shifted scenes, and report where they break.

    \b
    toolshift run --agent mymodule:my_agent
    toolshift run --agent chat:gpt-4.1-mini --max-cost 2 --price-in 0.4 --price-out 1.6
    toolshift run --agent smol:static --agent memorises_names --suite standard --out runs/first
    """
    from toolshift.cli.actions.run import run_command

    agents = (*agents, *(f"command:{each}" for each in commands), *(f"url:{each}" for each in urls))
    if not agents:
        raise UsageError("name an agent: --agent, --agent-command or --agent-url")
    picked = {name: value for name in MODEL_OPTIONS if (value := asked.pop(name)) is not None}
    run_command(agents, picked, asked)


@toolshift.command()
@click.argument(
    "runs", metavar="RUN [RUN ...]", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@click.option("--agent", default="", help="Only this agent, in detail.")
@click.option(
    "--table",
    "grouping",
    default="",
    help="Print this table: tiers, dimensions, cells (tier x dimension), shifts, severities, kinds "
    "or worlds.",
)
@click.option("--only-distinguishable", is_flag=True, help="Print only what is significant.")
@click.option("--svg", type=click.Path(path_type=Path), help="Draw what is printed to this file.")
@click.option(
    "--html",
    type=click.Path(path_type=Path),
    help="Write the page here (default: report.html in the first run's folder).",
)
@click.option("--no-html", is_flag=True, help="Write no page.")
@click.option(
    "--markdown",
    type=click.Path(path_type=Path),
    help="Write a summary for a pull request to this file.",
)
@as_json
def report(runs: tuple[Path, ...], **how: Any) -> None:
    """Print the report of run folders again, also of unfinished ones, and write their page."""
    from toolshift.cli.actions.report import Wanted, report_command

    report_command(runs, Wanted(**how))


@toolshift.command()
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@click.option("--agent", "agents", multiple=True, help="Agent of BEFORE, then of AFTER.")
@as_json
def compare(before: Path, after: Path, agents: tuple[str, ...], as_json: bool) -> None:
    """Compare two runs, paired on the scenes that both have."""
    from toolshift.cli.actions.runs import compare_command

    compare_command(before, after, agents, as_json)


@toolshift.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--write", is_flag=True, help="Write the new verdicts into the run folder.")
@as_json
def regrade(run: Path, write: bool, as_json: bool) -> None:
    """Grade stored traces again, and say how many verdicts have changed."""
    from toolshift.cli.actions.runs import regrade_command

    regrade_command(run, write, as_json)


@toolshift.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("episode", default="")
@as_json
def trace(run: Path, episode: str, as_json: bool) -> None:
    """Print one episode of a run and mark where it went wrong; without EPISODE, list them all."""
    from toolshift.cli.actions.runs import trace_command

    trace_command(run, episode, as_json)


@toolshift.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...", type=click.Path(path_type=Path))
@click.option("--port", default=0, show_default=True, help="0 takes any that is free.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
def view(runs: tuple[Path, ...], port: int, host: str, no_browser: bool) -> None:
    """Show the report in the browser with every trace, also while the run goes on."""
    from toolshift.cli.actions.view import view_command

    view_command(runs, host, port, not no_browser)


@toolshift.command()
@click.argument("task", metavar="WORLD/KIND[/INDEX]")
@click.option("--shift", "shifts", multiple=True, metavar="NAME[:SEV]", help="Shift; repeat.")
@entities
@as_json
def show(
    task: str, shifts: tuple[str, ...], seed: int, pool: str, size: int, as_json: bool
) -> None:
    """Show one scene before and after a shift, side by side.

    \b
    toolshift show poi/booking --shift merged_tools:2
    toolshift show retail/refund/3 --shift format_drift:3 --shift query_typos
    """
    from toolshift.cli.actions.scenes import show_command

    show_command(task, shifts, seed, pool, size, as_json)


@toolshift.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("episode")
@click.option("--agent", help="The agent, where it cannot be made from the run's manifest.")
@model
@click.option("--out", type=click.Path(path_type=Path), help="The pytest file to write.")
@as_json
def minimise(
    run: Path, episode: str, agent: str | None, out: Path | None, as_json: bool, **asked: Any
) -> None:
    """Find the smallest scene in which an episode still fails, and write it as a pytest case."""
    from toolshift.cli.actions.scenes import minimise_command

    picked = {name: value for name in MODEL_OPTIONS if (value := asked[name]) is not None}
    minimise_command(run, episode, agent, out, picked, as_json)


@toolshift.command("list")
@click.argument("what", default="all")
@as_json
def list_(what: str, as_json: bool) -> None:
    """List worlds, shifts, suites, agents or kinds."""
    from toolshift.cli.actions.listing import list_command

    list_command(what, as_json)


@toolshift.command()
@click.argument("names", nargs=-1)
@click.option("--tasks", default=0, help="Tasks of each world (default: two of each kind).")
@click.option("--seed", default=0, show_default=True, help="Seed of the worlds.")
@as_json
def check(names: tuple[str, ...], tasks: int, seed: int, as_json: bool) -> None:
    """Check worlds and shifts against the rules that make them an instrument.

    NAMES are worlds, shifts, or a plugin as module:attribute; all of ours where none is given.
    """
    from toolshift.cli.actions.checking import check_command

    check_command(names, tasks, seed, as_json)

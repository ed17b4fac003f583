"""Commands that measure: run, report, compare, and a closer look at scenes and episodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from toolshift.cli.group import toolshift
from toolshift.cli.options import MODEL_OPTIONS, as_json, entities, model, selection


@toolshift.command()
@click.option("--agent", "agents", multiple=True, required=True, help="`toolshift list agents`.")
@selection
@model
@click.option("--out", type=click.Path(path_type=Path), help="Run folder; resumes the run in it.")
@click.option("--workers", default=1, show_default=True, help="Processes for scripted agents.")
@click.option("--concurrency", type=int, help="Episodes at once, for chat and your own agents.")
@click.option("--estimate", is_flag=True, help="Say what the run would cost, and run nothing.")
@click.option("--only-distinguishable", is_flag=True, help="Print only what can be told apart.")
@as_json
def run(agents: tuple[str, ...], **asked: Any) -> None:
    """Run agents in clean and shifted scenes, and report where they break.

    \b
    toolshift run --agent mymodule:my_agent
    toolshift run --agent chat:gpt-4.1-mini --max-cost 2 --price-in 0.4 --price-out 1.6
    toolshift run --agent smol:static --agent memorises_names --suite standard --out runs/first
    """
    from toolshift.commands.run import run_command

    picked = {name: value for name in MODEL_OPTIONS if (value := asked.pop(name)) is not None}
    run_command(agents, picked, asked)


@toolshift.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--agent", default="", help="Only this agent, in detail.")
@click.option(
    "--table",
    "grouping",
    default="",
    help="Print this table: tiers, dimensions, cells (tier x dimension), shifts, severities, kinds "
    "or worlds.",
)
@click.option("--only-distinguishable", is_flag=True, help="Print only what can be told apart.")
@click.option("--svg", type=click.Path(path_type=Path), help="Draw what is printed to this file.")
@as_json
def report(run: Path, agent: str, svg: Path | None, as_json: bool, **how: Any) -> None:
    """Print the report of a run folder again, also of an unfinished one."""
    from toolshift.commands.run import report_command

    report_command(run, agent, how["grouping"], how["only_distinguishable"], as_json, svg)


@toolshift.command()
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@click.option("--agent", "agents", multiple=True, help="Agent of BEFORE, then of AFTER.")
@click.option("--margin", type=float, help="Non-inferiority margin in points: exit 1 if worse.")
@as_json
def compare(
    before: Path, after: Path, agents: tuple[str, ...], margin: float | None, as_json: bool
) -> None:
    """Compare two runs, paired on the scenes that both have."""
    from toolshift.commands.runs import compare_command

    compare_command(before, after, agents, margin, as_json)


@toolshift.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--write", is_flag=True, help="Write the new verdicts into the run folder.")
@as_json
def regrade(run: Path, write: bool, as_json: bool) -> None:
    """Grade stored traces again, and say how many verdicts have changed."""
    from toolshift.commands.runs import regrade_command

    regrade_command(run, write, as_json)


@toolshift.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("episode")
@as_json
def trace(run: Path, episode: str, as_json: bool) -> None:
    """Print one episode of a run: what was said, and why it failed."""
    from toolshift.commands.runs import trace_command

    trace_command(run, episode, as_json)


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
    from toolshift.commands.scenes import show_command

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
    from toolshift.commands.scenes import minimise_command

    picked = {name: value for name in MODEL_OPTIONS if (value := asked[name]) is not None}
    minimise_command(run, episode, agent, out, picked, as_json)


@toolshift.command("list")
@click.argument("what", default="all")
@as_json
def list_(what: str, as_json: bool) -> None:
    """List worlds, shifts, suites, agents or kinds."""
    from toolshift.commands.listing import list_command

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
    from toolshift.commands.checking import check_command

    check_command(names, tasks, seed, as_json)

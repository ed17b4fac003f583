"""`toolshift compare`, `toolshift regrade` and `toolshift trace`: on run folders."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import click

from toolshift.api import report_of, save_report
from toolshift.cli.options import PATH, as_json, taking
from toolshift.core.command_line import command
from toolshift.core.errors import UsageError
from toolshift.core.shift import NotApplicable
from toolshift.core.terminal import console, print_json, print_table
from toolshift.core.text import visible
from toolshift.episode.causes import guilty_step
from toolshift.measure.compare import Comparison, Contrast, regrade_run
from toolshift.measure.compare import compare as compare_runs
from toolshift.measure.diagnosis import percent, points
from toolshift.report.scene import transcript
from toolshift.report.words import cause_in_words, outcome_of, verdict
from toolshift.runs.cell import Cell, build
from toolshift.runs.run_folder import Record, RunFolder

MAX_LISTED = 60
"""Episodes that `toolshift trace RUN` prints; --json has them all."""


@dataclass(frozen=True, kw_only=True)
class CompareOptions:
    """What `toolshift compare` is asked for; the agents are of the earlier and the later run."""

    before: Path
    after: Path
    agents: tuple[str, ...]
    as_json: bool


@click.command()
@click.argument("before", type=PATH)
@click.argument("after", type=PATH)
@click.option("--agent", "agents", multiple=True, help="Agent of BEFORE, then of AFTER.")
@as_json
@taking(CompareOptions)
def compare(options: CompareOptions) -> None:
    """Compare two runs, paired on the scenes that both have.

    Whether the later one is good enough is for `toolshift gate` to say.
    """
    if len(options.agents) > 2:
        raise UsageError("give --agent at most twice")
    names = (*options.agents, *options.agents, "", "")
    before, after = RunFolder.read(options.before), RunFolder.read(options.after)
    found = compare_runs(before, after, names[0], names[1])
    if options.as_json:
        print_json({"comparison": found})
    else:
        for note in found.notes:
            click.echo(f"Note: {note}", err=True)
        _print_comparison(found)


@dataclass(frozen=True, kw_only=True)
class RegradeOptions:
    """What `toolshift regrade` is asked for."""

    run: Path
    write: bool
    as_json: bool


@click.command()
@click.argument("run", type=PATH)
@click.option("--write", is_flag=True, help="Write the new verdicts into the run folder.")
@as_json
@taking(RegradeOptions)
def regrade(options: RegradeOptions) -> None:
    """Grade stored traces again, and say how many verdicts have changed."""
    folder, write = RunFolder.read(options.run), options.write
    with folder.held() if write else nullcontext():
        records, changed = regrade_run(folder)
        if write and changed:
            folder.rewrite(records)
            save_report(folder, report_of(folder))
    if options.as_json:
        print_json({"episodes": len(records), "changed": changed})
        return
    passes = sum(each.before.passed != each.after.passed for each in changed)
    click.echo(
        f"{len(records)} episodes graded again: {len(changed)} verdicts changed, "
        f"{passes} of them between pass and failure" + ("; written." if write and changed else ".")
    )
    for each in changed[:20]:
        click.echo(f"  {each.episode}: {verdict(each.before)} -> {verdict(each.after)}")


@dataclass(frozen=True, kw_only=True)
class TraceOptions:
    """What `toolshift trace` is asked for; without an episode, the list of all of them."""

    run: Path
    episode: str
    as_json: bool


@click.command()
@click.argument("run", type=PATH)
@click.argument("episode", default="")
@as_json
@taking(TraceOptions)
def trace(options: TraceOptions) -> None:
    """Print one episode of a run and mark where it went wrong; without EPISODE, list them all."""
    folder = RunFolder.read(options.run)
    if not options.episode:
        _list_episodes(folder, options.as_json)
        return
    record, cell = find_episode(folder, options.episode)
    if options.as_json:
        print_json({"cell": cell, "record": record, "guilty_step": _guilty(record, cell)})
        return
    scene = build(cell)
    click.echo(f"{record.agent} in {cell.lineage}  {cell.stack or 'clean'}  trial {cell.trial}")
    click.echo(visible(f"< system: {scene.system}\n< user: {scene.asks[0].text}"))
    guilty = guilty_step(scene, record.steps, record.grade.cause)
    for number, step in enumerate(record.steps):
        if number == guilty:
            click.echo(f"* Here it goes wrong: {cause_in_words(record.grade.cause)}")
        click.echo(visible("\n".join(transcript([step]))))
    click.echo(f"= {verdict(record.grade)}")
    if not scene.solvable:
        click.echo(f"Right would have been to refuse: {scene.outcome.refusal}")
    elif not record.grade.passed:
        wanted = ", then ".join(ask.expected or "(any)" for ask in scene.asks)
        click.echo(f"Right would have been: {wanted}")


def _guilty(record: Record, cell: Cell) -> int | None:
    """The guilty step; None where the scene can no longer be made, which spoils nothing else."""
    try:
        return guilty_step(build(cell), record.steps, record.grade.cause)
    except (UsageError, NotApplicable):
        return None


def _list_episodes(folder: RunFolder, as_json: bool) -> None:
    """The episodes of a run with their names: failures first, then void ones, then passes."""
    places = ("failed", "void", "passed")
    found = [
        {
            "episode": record.episode,
            "outcome": outcome_of(record.grade),
            "cause": record.grade.cause,
            "agent": record.agent,
            "scene": folder.cell(record).lineage,
            "shifts": folder.cell(record).stack,
            "trial": folder.cell(record).trial,
        }
        for record in folder.records()
    ]
    found.sort(key=lambda row: places.index(str(row["outcome"])))
    if as_json:
        print_json(found)
        return
    rows = [
        [
            row["episode"],
            row["outcome"],
            str(row["cause"]).replace("_", " "),
            row["agent"],
            row["shifts"] or "clean",
            row["scene"],
        ]
        for row in found[:MAX_LISTED]
    ]
    columns = ("episode", "outcome", "cause", "agent", "shifts", "scene")
    print_table(f"{len(found)} episodes, failures first", columns, rows)
    if len(found) > len(rows):
        click.echo(f"{len(found) - len(rows)} more: --json lists them all.")
    click.echo(f"One of them: {command('trace', folder.path, 'EPISODE')}")


def find_episode(folder: RunFolder, name: str) -> tuple[Record, Cell]:
    """The episode of a run whose id starts so.

    Args:
        folder: the run.
        name: the beginning of the id.

    Returns:
        The episode and its cell.

    Raises:
        UsageError: where none or several do.
    """
    found = [record for record in folder.records() if name and record.episode.startswith(name)]
    if len(found) != 1:
        why = f"{len(found)} episodes start so" if found else "there is none"
        listing = command("trace", folder.path)
        raise UsageError(f"episode {name!r} in {folder.path}: {why}. `{listing}` lists them.")
    return found[0], folder.cell(found[0])


def _print_comparison(found: Comparison) -> None:
    def row(contrast: Contrast) -> list[str]:
        change = contrast.change
        star = " *" if contrast.significant else ""
        drop = type(change)(-change.estimate, -change.high, -change.low, change.method, change.n)
        return [
            contrast.label,
            str(contrast.pairs),
            percent(contrast.before),
            percent(contrast.after),
            points(drop).removesuffix(" points") + star,
            str(contrast.lost),
            str(contrast.gained),
            " ".join(contrast.examples[:1]),
        ]

    columns = ("", "pairs", "before", "after", "change", "lost", "gained", "a lost one")
    main = [row(each) for each in (found.clean, *found.tiers, found.everything) if each]
    print_table(f"\n{found.before} -> {found.after}", columns, main)
    shifts = [row(each) for each in found.shifts if each.significant]
    if shifts:
        print_table("\nsignificant changes by shift", columns, shifts)
    rest = [each.label for each in found.shifts if not each.significant]
    if rest:
        console().print(f"\nnot significant: {', '.join(rest)}", style="dim")
    console().print(
        f"{found.only_before} scenes only before, {found.only_after} only after, {found.void} "
        "pairs void. * significant (Holm).",
        style="dim",
    )

"""`toolshift trace`: the episodes of a run, and one of them step by step."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from toolshift.cli.options import PATH, as_json, taking
from toolshift.core.command_line import command
from toolshift.core.errors import UsageError
from toolshift.core.shift import NotApplicable
from toolshift.core.terminal import print_json, print_table, say
from toolshift.core.text import visible
from toolshift.episode.causes import guilty_step
from toolshift.episode.grading_rules import calls_not_made
from toolshift.report.scene import as_call, transcript
from toolshift.report.words import cause_in_words, outcome_of, verdict
from toolshift.runs.cell import Cell, build
from toolshift.runs.run_folder import Record, RunFolder

MAX_LISTED = 60
"""Episodes that `toolshift trace RUN` prints; --json has them all."""


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
    print_episode(record, cell)


def print_episode(record: Record, cell: Cell) -> None:
    """Prints an episode step by step, and marks where it went wrong.

    Args:
        record: the episode.
        cell: its cell.
    """
    scene = build(cell)
    say(f"{record.agent} in {cell.lineage}  {cell.stack or 'clean'}  trial {cell.trial}")
    say(visible(f"< system: {scene.system}\n< user: {scene.asks[0].text}"))
    guilty = guilty_step(scene, record.steps, record.grade.cause)
    for number, step in enumerate(record.steps):
        if number == guilty:
            say(f"* Here it goes wrong: {cause_in_words(record.grade.cause)}")
        say(visible("\n".join(transcript([step]))))
    say(f"= {verdict(record.grade)}")
    if not scene.solvable:
        say(f"Expected: refuse: {scene.outcome.refusal}")
    elif not record.grade.passed:
        wanted = ", then ".join(ask.expected or "(any)" for ask in scene.asks)
        say(f"Expected: {wanted}")
        for call in calls_not_made(scene, record.steps):
            say(visible(f"Expected and not called: {as_call(call)}"))


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
        say(f"{len(found) - len(rows)} more: --json lists them all.")
    say(f"One of them: {command('trace', folder.path, 'EPISODE')}")


def find_episode(folder: RunFolder, name: str, listing: str = "") -> tuple[Record, Cell]:
    """The episode of a run whose id starts so.

    Args:
        folder: the run.
        name: the beginning of the id.
        listing: the command that lists them; "" for that of this page.

    Returns:
        The episode and its cell.

    Raises:
        UsageError: where none or several do.
    """
    found = [record for record in folder.records() if name and record.episode.startswith(name)]
    if len(found) != 1:
        why = f"{len(found)} episodes start so" if found else "there is none"
        listing = listing or command("trace", folder.path)
        raise UsageError(f"episode {name!r} in {folder.path}: {why}. `{listing}` lists them.")
    return found[0], folder.cell(found[0])

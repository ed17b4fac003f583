"""`toolshift trace`: the episodes of a run, and one of them step by step."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import click

from toolshift.cli.options import AsJson
from toolshift.cli.parameters import argument, options_struct
from toolshift.core.command_line import command
from toolshift.core.errors import UsageError
from toolshift.core.intake import Intake, NotRead
from toolshift.core.names import nearest
from toolshift.core.scene import Scene
from toolshift.core.shift import NotApplicable
from toolshift.core.terminal import print_json, print_table, say
from toolshift.core.text import visible
from toolshift.episode.causes import guilty_step
from toolshift.episode.grading_rules import calls_not_made
from toolshift.report.behind import change_behind, wrong_arguments
from toolshift.report.scene import as_call, transcript
from toolshift.report.words import cause_in_words, outcome_of, right_refusal, verdict
from toolshift.runs.cell import Cell
from toolshift.runs.run_folder import Record, RunFolder

MAX_OFFERED = 8
"""Episodes of a task that an error names."""
MAX_LISTED = 60
"""Episodes that `toolshift trace RUN` prints; --json has them all."""


@dataclass(frozen=True, kw_only=True)
class TraceOptions:
    """What `toolshift trace` is asked for; without an episode, the list of all of them."""

    run: Annotated[Path, argument()]
    episode: Annotated[str, argument()] = ""
    as_json: AsJson = False


@click.command()
@options_struct(TraceOptions)
def trace(options: TraceOptions) -> None:
    """Print one episode of a run and mark where it went wrong; without EPISODE, list them all.

    EPISODE is the beginning of an id in that list, or the `id` of a task in your own file.
    """
    folder = RunFolder.read(options.run)
    if not options.episode:
        _list_episodes(folder, options.as_json)
        return
    record, cell = find_episode(folder, options.episode)
    if options.as_json:
        print_json({"cell": cell, "record": record, "guilty_step": _guilty(folder, record)})
        return
    print_episode(folder, record)


def print_episode(folder: RunFolder, record: Record) -> None:
    """Prints an episode step by step, and marks where it went wrong."""
    cell = folder.cell(record)
    task_id = folder.task_id(cell)
    task = f"task {visible(task_id)}, {cell.lineage}" if task_id else cell.lineage
    say(f"{record.agent} in {task}  {cell.said}  trial {cell.trial}")
    scene, why = _scene(folder, cell)
    _print_beginning(folder, cell)
    guilty = guilty_step(scene, record.steps, record.grade.cause) if scene else None
    for number, step in enumerate(record.steps):
        if number == guilty:
            say(f"* Here it goes wrong: {cause_in_words(record.grade.cause)}")
            wrong = (
                wrong_arguments(scene, record.steps, guilty, record.grade.cause) if scene else ""
            )
            behind = change_behind(scene, record.steps, guilty) if scene else ""
            for more in filter(None, (wrong, behind)):
                say(visible(f"  {more}"))
        say(visible("\n".join(transcript([step]))))
    say(f"= {verdict(record.grade)}")
    if scene is None:
        say(visible(f"The faulty step and the expected calls cannot be determined: {why}"))
    elif not scene.solvable:
        say(f"Expected: {right_refusal(scene.outcome)}")
    elif not record.grade.passed:
        wanted = ", then ".join(ask.expected or "(any)" for ask in scene.asks)
        say(f"Expected: {wanted}")
        if record.grade.unclear:
            decide = command("report", folder.path)
            say(f"Decide: {decide} --decide {record.episode}=right (or =wrong)")
        for call in calls_not_made(scene, record.steps):
            say(visible(f"Expected and not called: {as_call(call)}"))


def _scene(folder: RunFolder, cell: Cell) -> tuple[Scene | None, str]:
    """The scene; None and the reason where it cannot be made, which spoils nothing else."""
    try:
        return folder.scene(cell), ""
    except (UsageError, NotApplicable) as why:
        return None, str(why)


def _print_beginning(folder: RunFolder, cell: Cell) -> None:
    """Prints what the episode began with, as far as that is there."""
    try:
        shown = folder.own.shown(cell)
    except (UsageError, NotApplicable):  # the end of the page says why
        return
    say(visible(f"< system: {shown.system}\n< user: {shown.asks[0][0]}"))


def _guilty(folder: RunFolder, record: Record) -> int | None:
    """The guilty step; None where the scene cannot be made."""
    scene, _ = _scene(folder, folder.cell(record))
    return guilty_step(scene, record.steps, record.grade.cause) if scene else None


def _list_episodes(folder: RunFolder, as_json: bool) -> None:
    """The episodes of a run: unclear ones first, then failures, then void ones, then passes."""
    places = ("unclear", "failed", "void", "passed")
    found = [
        {
            "episode": record.episode,
            "outcome": outcome_of(record.grade),
            "cause": record.grade.cause,
            "agent": record.agent,
            "task": folder.task_id(folder.cell(record)),
            "scene": folder.cell(record).lineage,
            "shifts": folder.cell(record).stack,
            "trial": folder.cell(record).trial,
        }
        for record in folder.records()
    ]
    if not found:
        raise NotRead(
            f"{folder.path}: no episode has been run, so there is none to show. Start the "
            "command that made the folder again to resume it",
            Intake(str(folder.path), "episode"),
        )
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
            row["task"] or row["scene"],
        ]
        for row in found[:MAX_LISTED]
    ]
    own = all(row["task"] for row in found)
    columns = ("episode", "outcome", "cause", "agent", "shifts", "task" if own else "scene")
    unclear = sum(row["outcome"] == "unclear" for row in found)
    first = f"{unclear} unclear first, then failures" if unclear else "failures first"
    print_table(f"{len(found)} episodes, {first}", columns, rows)
    if len(found) > len(rows):
        say(f"{len(found) - len(rows)} more: --json lists them all.")
    say(f"One of them: {command('trace', folder.path, 'EPISODE')}")
    if unclear:
        say(f"Decide one: {command('report', folder.path)} --decide EPISODE=right (or =wrong)")
    if any(row["task"] for row in found):
        say("EPISODE is the beginning of an id in the first column, or the id of a task.")


def find_episode(folder: RunFolder, name: str, listing: str = "") -> tuple[Record, Cell]:
    """The episode of a run whose id starts so, or the one of a task of the user's own."""
    records = list(folder.records()) if name else []
    of_task = [record for record in records if folder.task_id(folder.cell(record)) == name]
    found = [record for record in records if record.episode.startswith(name)] or of_task
    if len(found) == 1:
        return found[0], folder.cell(found[0])
    listing = listing or command("trace", folder.path)
    if of_task and found is of_task:
        told = "; ".join(_named(folder, record) for record in of_task[:MAX_OFFERED])
        more = f"; and {len(of_task) - MAX_OFFERED} more" if len(of_task) > MAX_OFFERED else ""
        why = f"task {name!r} in {folder.path} has {len(of_task)} episodes: name one of them"
        raise UsageError(f"{why}: {told}{more}. `{listing}` lists them all.")
    why = f"{len(found)} episodes start so" if found else "there is none"
    ids = {folder.task_id(folder.cell(record)) for record in records} - {""}
    near = f", and no task of this id: {nearest(name, ids)}" if ids and not found else ""
    raise UsageError(f"episode {name!r} in {folder.path}: {why}{near}. `{listing}` lists them.")


def _named(folder: RunFolder, record: Record) -> str:
    """An episode in a few words, with the id to pass."""
    stack = folder.cell(record).stack or "clean"
    return f"{record.episode} ({record.agent}, {stack}, {outcome_of(record.grade)})"

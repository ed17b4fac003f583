"""`toolshift replay`: play episodes of a run or of a bundle again, on any machine."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import click
import msgspec

from toolshift.agents.catalog import contestants
from toolshift.cli.options import AsJson, ModelOptions
from toolshift.cli.parameters import argument, on_command_line, option, options_struct
from toolshift.cli.replay_sample import play_sample
from toolshift.cli.sectioned import Sectioned
from toolshift.cli.trace import find_episode, print_episode
from toolshift.core.command_line import command
from toolshift.core.errors import UsageError
from toolshift.core.terminal import print_json, print_table, progress, say
from toolshift.measure.bundle import opened_bundle
from toolshift.measure.compare import shifts_as_they_were
from toolshift.measure.recheck import not_playable, played_again
from toolshift.report.words import outcome_of
from toolshift.runs.run_folder import Record, RunFolder
from toolshift.runs.study import play

Outcome = Literal["reproduced", "differs", "left out", "passed", "failed", "void"]
OUTCOMES: dict[str, Outcome] = {
    "passed": "passed", "failed": "failed", "unclear": "failed", "void": "void",
}  # fmt: skip
MAX_LISTED = 60
"""Episodes that are listed; --json has them all."""


@dataclass(frozen=True, kw_only=True)
class ReplayOptions:
    """What `toolshift replay` is asked for.

    Attributes:
        bundle: an archive of `toolshift gate --bundle`, or a run folder.
        episodes: beginnings of the ids of episodes; all that failed where there are none.
        sample: how many episodes to draw and play; where None, `episodes` are played.
        agent: a spec, whose agent meets the scenes afresh; "" to make the recorded calls.
        trust: whether code in the archive may be run.
    """

    bundle: Annotated[Path, argument(metavar="RUN|BUNDLE")]
    episodes: Annotated[tuple[str, ...], argument(metavar="[EPISODE]...")] = ()
    sample: Annotated[
        int | None,
        option(
            metavar="NUMBER",
            help="Replay this many random episodes, passed ones too, and check their verdicts.",
        ),
    ] = None
    seed: Annotated[int, option(help="--sample: seed of the random sample.")] = 0
    agent: Annotated[str, option(help="Run this agent on the scenes, as in `toolshift run`.")] = ""
    trust: Annotated[bool, option(help="Run the code that the bundle contains.")] = False
    model: ModelOptions
    as_json: AsJson = False


class Replayed(msgspec.Struct, frozen=True):
    """What came of one episode.

    Attributes:
        said: where it differs, why it was left out, or the cause of a failure.
    """

    episode: str
    scene: str
    shifts: str
    trial: int
    outcome: Outcome
    said: str = ""


@click.command(cls=Sectioned, first=("sample", "seed", "agent", "trust", "as_json"))
@options_struct(ReplayOptions)
def replay(options: ReplayOptions) -> None:
    """Replay episodes: repeat the recorded calls in fresh scenes, or run your agent on the scenes.

    RUN is a run folder, and BUNDLE is a file that `toolshift gate --bundle` wrote. Without EPISODE
    all failed episodes are replayed; with --sample, a random sample of all episodes. Without
    --agent no model is called, and an episode counts as reproduced if every result and the verdict
    are the same as the stored ones. EPISODE is named as in `toolshift trace`.
    With --sample, void episodes and episodes with real tools are left out.

    \b
    toolshift replay failed.zip
    toolshift replay failed.zip 3f2a91c0de --agent mymodule:my_agent
    toolshift replay runs/first --sample 200 --seed 1

    Exit codes: 0 all reproduced (with --agent: all passed), 1 not all, 2 nothing could be played.
    """
    _check(options)
    with opened_bundle(options.bundle, options.trust) as folder:
        if options.sample is not None:
            sys.exit(play_sample(folder, options.sample, options.seed, options.as_json))
        folder.require_code()
        shifts_as_they_were(folder)
        records = _chosen(folder, options)
        replayed = (
            _with_agent(folder, records, options) if options.agent else _again(folder, records)
        )
        if options.as_json:
            print_json(replayed)
        else:
            _print(folder, records, replayed, bool(options.episodes) and not options.agent)
    outcomes = {episode.outcome for episode in replayed}
    if outcomes <= {"left out", "void"}:
        sys.exit(2)
    sys.exit(0 if outcomes <= {"reproduced", "passed"} else 1)


def _check(options: ReplayOptions) -> None:
    """Checks that each option has the one that it is for."""
    if not options.agent and (given := options.model.given()):
        raise UsageError(
            f"--{next(iter(given)).replace('_', '-')} works only with --agent: add --agent, or "
            "leave it out"
        )
    if options.sample is None:
        if on_command_line("seed"):
            raise UsageError(
                "--seed works only with --sample NUMBER: add that, or leave --seed out"
            )
    elif options.agent or options.episodes:
        other = "--agent" if options.agent else "EPISODE"
        raise UsageError(
            f"--sample chooses the episodes and repeats their recorded calls: leave {other} out, "
            "or --sample"
        )


def _chosen(folder: RunFolder, options: ReplayOptions) -> list[Record]:
    """The episodes to play."""
    if options.episodes:
        listing = command("replay", options.bundle)
        return [find_episode(folder, name, listing)[0] for name in options.episodes]
    failed = [record for record in folder.records() if outcome_of(record.grade) == "failed"]
    if not failed:
        raise UsageError(f"{options.bundle}: nothing in it failed, so there is nothing to replay")
    return failed


def _again(folder: RunFolder, records: list[Record]) -> list[Replayed]:
    replayed = []
    with progress("episodes") as watch:
        for number, record in enumerate(records, 1):
            replayed.append(_replayed(folder, record))
            watch(number, len(records))
    return replayed


def _replayed(folder: RunFolder, record: Record) -> Replayed:
    reason = not_playable(folder, record)
    if reason:
        return _row(folder, record, "left out", reason)
    difference = played_again(folder, record)
    if difference is None:
        return _row(folder, record, "reproduced", record.grade.cause)
    place = "the verdict" if difference.step is None else f"step {difference.step}"
    return _row(folder, record, "differs", f"{place} has changed")


def _with_agent(folder: RunFolder, records: list[Record], options: ReplayOptions) -> list[Replayed]:
    (made,) = contestants([options.agent], **options.model.given())
    contestant = replace(made, max_repeats=folder.manifest.selection.max_repeats)
    replayed: list[Replayed] = []
    with progress("episodes") as watch:
        for number, record in enumerate(records, 1):
            again = play(contestant, folder.cell(record), fresh=number == 1)
            outcome = OUTCOMES[outcome_of(again.grade)]
            replayed.append(_row(folder, record, outcome, again.grade.cause))
            watch(number, len(records))
    return replayed


def _row(folder: RunFolder, record: Record, outcome: Outcome, detail: str) -> Replayed:
    cell = folder.cell(record)
    detail = detail.replace("_", " ")
    return Replayed(record.episode, cell.lineage, cell.stack, cell.trial, outcome, detail)


def _print(folder: RunFolder, records: list[Record], replayed: list[Replayed], whole: bool) -> None:
    if whole:
        for record in records:
            print_episode(folder, record)
            say()
    rows = [
        (episode.episode, episode.outcome, episode.said, episode.shifts or "clean", episode.scene)
        for episode in replayed[:MAX_LISTED]
    ]
    print_table("", ("episode", "outcome", "", "shifts", "scene"), rows)
    if len(replayed) > len(rows):
        say(f"{len(replayed) - len(rows)} more: --json lists them all.")
    names = dict.fromkeys(episode.outcome for episode in replayed)
    counts = ", ".join(f"{sum(e.outcome == name for e in replayed)} {name}" for name in names)
    say(f"{len(replayed)} episodes: {counts}.")

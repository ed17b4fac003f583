"""`toolshift augment`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated

import click
import msgspec

from toolshift.cli.options import AsJson, DataWorkers, Where
from toolshift.cli.parameters import argument, given, option, options_struct
from toolshift.core.command_line import command
from toolshift.core.errors import UsageError
from toolshift.core.intake import Intake, counted
from toolshift.core.terminal import print_json, print_table, progress, say
from toolshift.core.text import one_line
from toolshift.data.augment import DEFAULT, Recipe, open_questions
from toolshift.data.card import write_card
from toolshift.data.files import (
    Job,
    Tally,
    augment_file,
    intake_of,
    place_word,
    sameness,
    written_for,
)
from toolshift.data.preview import previews
from toolshift.data.trainers import TRAINERS

MAX_SHOWN = 12
MAX_PREVIEWS = 10
COLOURS = {"-": "red", "+": "green", "@": "cyan"}
"""Of the lines of a diff, by what they begin with."""


@dataclass(frozen=True, kw_only=True)
class AugmentOptions:
    """What `toolshift augment` is asked for.

    Attributes:
        preview: print what would change in some conversations, and write nothing.
        format: of the rows; "" where each is recognised.
    """

    source: Annotated[Path, argument(metavar="IN")]
    out: Annotated[Path | None, option(help="A .jsonl, .jsonl.gz or .parquet file.")] = None
    alpha: Annotated[
        float | None,
        option(
            help="Share of rows to shift, 0 to 1. Default: 1 if --shift names only files of "
            f"coming changes, else {Recipe().alpha:g}."
        ),
    ] = None
    shifts: Annotated[
        tuple[str, ...],
        option(
            "--shift",
            metavar="NAME[:SEV][+NAME[:SEV]]",
            help=f"Family, tier or shift; repeat (default: {', '.join(DEFAULT)}).",
        ),
    ] = ()
    severities: Annotated[tuple[int, ...], option("--severity", help="1 to 3; repeat.")] = ()
    seed: Annotated[int, option(help="Of every choice.")] = 0
    format: Annotated[str, option(help="Format of the rows (default: recognised).")] = ""
    to: Annotated[str, option(help="Format to write (default: that of each row).")] = ""
    trainer: Annotated[
        str,
        option(
            "--for",
            metavar="TRAINER",
            help=f"Write rows in the form that this trainer needs: {', '.join(TRAINERS)}.",
        ),
    ] = ""
    strict: Annotated[bool, option(help="Stop at the first row that cannot be read.")] = False
    workers: DataWorkers = 1
    executor: Where = "process"
    preview: Annotated[bool, option(help="Print what would change in ten rows; write nothing.")] = (
        False
    )
    as_json: AsJson = False

    def recipe(self) -> Recipe:
        """What is done to the conversations."""
        recipe = Recipe(**given(self, Recipe))
        coming = bool(self.shifts) and all(".json" in entry for entry in self.shifts)
        if self.alpha is None and coming:
            return msgspec.structs.replace(recipe, alpha=1.0)
        return recipe


@click.command()
@options_struct(AugmentOptions)
def augment(options: AugmentOptions) -> None:
    """Shift a share of your tool-use conversations, to train models for changed tools.

    IN is a .jsonl, .json or .parquet file (also .gz) of OpenAI or TRL messages, Responses,
    Anthropic's blocks, Gemini's contents, ShareGPT, Hermes, xLAM, ToolACE, Glaive, Agent Data
    Protocol, LangChain's dumps, or text of a chat template; calls may be written in texts. Rows
    that are not shifted stay byte for byte the same. A card next to the output says what was
    changed. After an interruption, the same command resumes.
    If no row is shifted, nothing is written: exit code 2, with the reasons.

    \b
    toolshift augment mine.jsonl --alpha 0.3 --out mine-augmented.jsonl
    toolshift augment mine.jsonl --for trl --out for-trl.jsonl
    toolshift augment mine.jsonl --shift monday.json --out mine-monday.jsonl
    """
    recipe = options.recipe()
    if options.preview:
        job = Job(options.source, options.source.with_name("preview.jsonl"), recipe)
        _preview(job, options.as_json)
        return
    if options.out is None:
        raise UsageError("name the output file with --out, or look at some rows with --preview")
    strict, workers = options.strict, options.workers
    job = Job(options.source, options.out, recipe, strict, workers, options.executor)
    try:
        with progress("conversations") as watch:
            tally = augment_file(job, watch)
    except KeyboardInterrupt:
        say("Stopped. The rows so far are kept; the same command resumes.", err=True)
        sys.exit(130)
    card = write_card(job, tally, command(*sys.argv[1:], travels=True))
    _print(job, tally, card, options.as_json)


def _print(job: Job, tally: Tally, card: Path, as_json: bool) -> None:
    if as_json:
        said = {**msgspec.to_builtins(tally), "out": str(job.out), "card": str(card)}
        asked = list(open_questions(job.recipe))
        print_json({**said, "open": asked, "unread": _unread(job, tally)})
        return
    shifted = sum(tally.shifted.values())
    rows = sorted(tally.shifted.items(), key=lambda one: -one[1])
    print_table("", ("shift", "conversations"), rows[:MAX_SHOWN])
    if len(rows) > MAX_SHOWN:
        say(f"... and {len(rows) - MAX_SHOWN} more; the card has them all.")
    _say_left(job, tally)
    same = "" if job.recipe.trainer else f", {tally.same:,} {sameness(job)}"
    say(
        f"{tally.rows:,} conversations, {shifted:,} shifted{same}. Rows left out because they "
        f"could not be read: {tally.wrong:,}."
    )
    if tally.as_text:
        names = ", ".join(tally.as_text)
        say(f"Columns written as JSON strings, because no Parquet type fits their values: {names}")
    say(f"Written: {job.out} ({tally.written:,} rows) and {card}")
    if text := written_for(job, tally):
        say(text)


def _unread(job: Job, tally: Tally) -> list[Intake]:
    """What was not understood of the file, for JSON."""
    return [intake_of(job.source, tally)] if tally.wrong else []


def _say_left(job: Job, tally: Tally) -> None:
    """Says which rows could not be read, which have nothing to shift, and what is open."""
    for question in open_questions(job.recipe):
        say(f"Open: {question} (rows that need the answer are not shifted)", err=True)
    word = place_word(job.source)
    for place, why in tally.faults[:MAX_SHOWN]:
        say(f"{job.source}, {word} {place}: {one_line(why)}", err=True)
    if tally.wrong > MAX_SHOWN:
        say(f"... and {tally.wrong - MAX_SHOWN:,} more rows like that", err=True)
    for why, count in tally.untried.items():
        drawn = counted(tally.drawn, "conversation")
        say(f"Not shifted: {count:,} of the {drawn} that alpha asks for: {why}", err=True)
    left = tally.drawn - sum(tally.shifted.values()) - sum(tally.untried.values())
    if left and tally.shifted:
        drawn = counted(tally.drawn, "conversation")
        why_not = "Reasons, with the number of conversations on which each shift was tried"
        say(f"Not shifted: {left:,} of the {drawn} that alpha asks for. {why_not}:", err=True)
        reasons = sorted(tally.unshifted.items(), key=lambda one: -one[1])
        for why, count in reasons[:MAX_SHOWN]:
            say(f"  {one_line(why)} ({count:,})", err=True)
        if len(reasons) > MAX_SHOWN:
            say(f"  ... and {len(reasons) - MAX_SHOWN:,} more; the card has them", err=True)


def _preview(job: Job, as_json: bool) -> None:
    """Prints what would change in some conversations, as a diff; as JSON both rows whole.

    What is said of rows that cannot be read, or that stay, is of those up to the last one shown.
    """
    tally = Tally()
    shown = islice(previews(job, tally), MAX_PREVIEWS)
    if as_json:
        rows = list(shown)
        asked = list(open_questions(job.recipe))
        said = {"previews": rows, "untried": tally.untried, "open": asked}
        print_json({**said, "unread": _unread(job, tally)})
        return
    for one in shown:
        say(f"{place_word(job.source)} {one.line}: {one.shifts}", bold=True)
        for line in one.diff():
            say(line, fg=COLOURS.get(line[0]))
        say()
    _say_left(job, tally)

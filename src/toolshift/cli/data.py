"""`toolshift data`, and the options by which scenes to train on are named."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import click
import msgspec

from toolshift.cli.options import AsJson, DataWorkers, Where
from toolshift.cli.parameters import given, option, options_struct
from toolshift.core.errors import UsageError
from toolshift.core.files import write
from toolshift.core.names import unknown
from toolshift.core.terminal import print_json, print_table, progress, say
from toolshift.data.trainers import TRAINERS, Trainer, check_suffix, said_of, trainer_of
from toolshift.lm.prompt import LAYOUTS, Layout
from toolshift.train.card import Statistics, card, statistics
from toolshift.train.data import COUNT, make_rows, shifted_of
from toolshift.train.rows import check_out, rows_for, turns_of, write_rows
from toolshift.train.scenes import Mix, check, check_share


@dataclass(frozen=True, kw_only=True)
class MixOptions:
    """Which scenes are asked for; what is empty is as `Mix` has it."""

    worlds: Annotated[tuple[str, ...], option("--world", help="World; repeat.")] = Mix().worlds
    kinds: Annotated[tuple[str, ...], option("--kind", help="Only this task kind; repeat.")] = ()
    alpha: Annotated[float, option(help="Share of trajectories to shift, 0 to 1.")] = 0.0
    shifts: Annotated[
        tuple[str, ...],
        option(
            "--shift",
            metavar="FAMILY|TIER|NAME[:SEV][+NAME[:SEV]]",
            help="Shift for the shifted share: EFP (error feedback), SBP (symbol renaming), SRP "
            "(semantic variation), options (optional parameters), parameters (names without "
            "meaning), formats, midway, graph, limits, symbols, diverse, a tier, a shift, "
            "'all'; repeat. A shift that is named twice is drawn twice as often. Default: "
            "EFP, SBP, SRP, options, parameters and limits.",
        ),
    ] = ()
    severities: Annotated[tuple[int, ...], option("--severity", help="1 to 3; repeat.")] = ()
    seed: Annotated[int, option(help="Seed of worlds and choices.")] = 0
    size: Annotated[int, option(help="Entities in each world.")] = Mix().size

    def mix(self) -> Mix:
        """The mix that is asked for, checked."""
        for name, named in (("shift", self.shifts), ("severity", self.severities)):
            if named and not self.alpha:
                raise UsageError(
                    f"--{name} is given, but --alpha is 0, so nothing would be shifted: give the "
                    "share to shift, as in --alpha 0.3"
                )
        mix = Mix(**given(self, Mix))
        check(mix)
        return mix


@dataclass(frozen=True, kw_only=True)
class TrajectoryOptions(MixOptions):
    """Of which scenes the expert's trajectories are made, and how."""

    slips: Annotated[
        float,
        option(
            help="Share of trajectories in which the expert first makes a call that is rejected."
        ),
    ] = 0.0
    share: Annotated[
        int,
        option(
            help="Number of consecutive trajectories that share one draw of a shift, so that a "
            "batch computes its tool list once.",
        ),
    ] = 1


@dataclass(frozen=True, kw_only=True)
class DataOptions(TrajectoryOptions):
    """What `toolshift data` is asked for."""

    out: Annotated[Path, option(help=".jsonl or .parquet.")]
    count: Annotated[int, option(help="Trajectories.")] = COUNT
    turns: Annotated[
        bool,
        option(
            help="For TRL's own trainers: one row for each learned turn, as prompt and "
            "completion, with tools and calls written out.",
        ),
    ] = False
    layout: Annotated[
        str | None, option(help="How --turns writes them. Default: description-first.")
    ] = None
    trainer: Annotated[
        str,
        option(
            "--for",
            metavar="TRAINER",
            help=f"Write rows in the form that this trainer needs: {', '.join(TRAINERS)}.",
        ),
    ] = ""
    workers: DataWorkers = 1
    executor: Where = "process"
    as_json: AsJson = False

    def for_trainer(self) -> Trainer | None:
        """For which trainer rows are written; None for our own."""
        if not self.trainer:
            return None
        if self.turns:
            raise UsageError(
                "--for and --turns both set how rows are written: leave one of them out"
            )
        trainer = trainer_of(self.trainer)
        check_suffix(self.out, trainer)
        return trainer

    def written_out(self) -> Layout | None:
        """How turns are written out; None where rows are written whole."""
        if self.layout and not self.turns:
            raise UsageError("--layout sets how --turns writes tools and calls: give --turns too")
        if not self.turns:
            return None
        for layout in LAYOUTS:
            if layout == (self.layout or LAYOUTS[0]):
                return layout
        raise UsageError(unknown("layout", self.layout or "", LAYOUTS))


def _say_done(options: DataOptions, summary: Statistics, digest: str) -> None:
    for title, counts in (("kinds", summary.kinds), ("shifts", summary.shifts)):
        if counts:
            table = [[name, number] for name, number in counts.items()]
            print_table(title, [title.removesuffix("s"), "trajectories"], table)
    again = summary.rows - summary.distinct
    written = f"{summary.turns} turns, one row each," if summary.layout else f"{summary.rows} rows"
    say(
        f"{written} of {options.count} trajectories in {options.out} (sha256 {digest[:12]}...); "
        + f"{again} duplicates; " * bool(again)
        + f"{summary.unsolvable} trajectories end in a refusal, "
        f"{summary.calls_per_row:.1f} calls each"
    )


OURS = (
    "For `toolshift train sft`, and for trainers that read the `weight` of a message; for other "
    "trainers use --for."
)


def warn(text: str) -> None:
    """Prints a warning, if there is one."""
    if text:
        say(text, err=True)


@click.command()
@options_struct(DataOptions)
def data(options: DataOptions) -> None:
    """Write expert trajectories as training data: the oracle in clean and shifted scenes.

    Columns are messages and tools, in the OpenAI format, for `toolshift train sft`. Entities and
    wordings are of the training pool only.

    \b
    toolshift data --out static.jsonl
    toolshift data --out paft.parquet --alpha 0.3 --shift EFP --shift SBP --shift SRP
    """
    mix, layout, out, count = options.mix(), options.written_out(), options.out, options.count
    trainer = options.for_trainer()
    check_out(out)
    with progress("trajectories") as watch:
        rows = make_rows(mix, count, watch, 0, options.workers, options.executor)
    warn(check_share(shifted_of(rows), mix, count))
    fit = rows_for(rows, trainer) if trainer else None
    written = fit.rows if fit else list(turns_of(rows, layout)) if layout else rows
    digest = write_rows(written, out)
    summary = statistics(rows)
    if layout:
        summary = msgspec.structs.replace(summary, turns=len(written), layout=layout)
    write(out.with_name(out.name + ".md"), card(out.name, mix, count, digest, summary).encode())
    text = said_of(trainer, len(fit.rows), fit.left, fit.lost) if trainer and fit else OURS
    if options.as_json:
        said = {"file": str(out), "sha256": digest, "mix": mix, "for": text}
        print_json({**said, **msgspec.to_builtins(summary)})
    else:
        _say_done(options, summary, digest)
        if not layout:
            say(text)

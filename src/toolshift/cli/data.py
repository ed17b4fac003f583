"""`toolshift data`, and the options by which scenes to train on are named."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click
import msgspec

from toolshift.cli.options import as_json, in_processes
from toolshift.cli.parameters import PATH, options, options_struct
from toolshift.core.errors import UsageError
from toolshift.core.files import write
from toolshift.core.names import unknown
from toolshift.core.terminal import print_json, print_table, progress, say
from toolshift.lm.prompt import LAYOUTS, Layout
from toolshift.runs.pool import Executor
from toolshift.train.card import Statistics, card, statistics
from toolshift.train.data import COUNT, make_rows, shifted_of
from toolshift.train.rows import check_out, turns_of, write_rows
from toolshift.train.scenes import Mix, check, check_share

mix = options(
    click.option(
        "--world",
        "worlds",
        multiple=True,
        default=("poi",),
        show_default=True,
        help="World; repeat.",
    ),
    click.option("--kind", "kinds", multiple=True, help="Only this task kind; repeat."),
    click.option(
        "--shift",
        "shifts",
        multiple=True,
        metavar="FAMILY|TIER|NAME[:SEV][+NAME[:SEV]]",
        help="Shift of the shifted share: EFP (error feedback), SBP (symbol renaming), SRP "
        "(semantic variation), formats, midway, graph, limits, symbols, diverse, a tier, a shift, "
        "'all'; repeat. Named twice, drawn twice as often. Default: EFP, SBP, SRP and limits.",
    ),
    click.option("--severity", "severities", multiple=True, type=int, help="1 to 3; repeat."),
    click.option("--seed", default=0, show_default=True, help="Seed of worlds and choices."),
    click.option("--size", default=2000, show_default=True, help="Entities in each world."),
)
trajectories = options(
    click.option(
        "--slips",
        default=0.0,
        show_default=True,
        help="Share of trajectories in which the expert first makes a call that is rejected.",
    ),
    click.option(
        "--share",
        default=1,
        show_default=True,
        help="Trajectories in succession that meet one draw of a shift: a batch then reads its "
        "list of tools once.",
    ),
)


@dataclass(frozen=True, kw_only=True)
class MixOptions:
    """Which scenes are asked for; what is empty is as `Mix` has it."""

    alpha: float
    worlds: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    shifts: tuple[str, ...] = ()
    severities: tuple[int, ...] = ()
    seed: int = 0
    size: int = Mix().size
    slips: float = 0.0
    share: int = 1

    def mix(self) -> Mix:
        """The mix that is asked for, checked."""
        for name, given in (("shift", self.shifts), ("severity", self.severities)):
            if given and not self.alpha:
                raise UsageError(
                    f"--{name} is given, but --alpha is 0, so nothing would be shifted: give the "
                    "share that is to be, as in --alpha 0.3"
                )
        default = Mix()
        mix = Mix(
            worlds=self.worlds or default.worlds,
            kinds=self.kinds,
            alpha=self.alpha,
            shifts=self.shifts or default.shifts,
            severities=self.severities or default.severities,
            seed=self.seed,
            size=self.size,
            share=self.share,
            slips=self.slips,
        )
        check(mix)
        return mix


@dataclass(frozen=True, kw_only=True)
class DataOptions(MixOptions):
    """What `toolshift data` is asked for."""

    out: Path
    count: int
    turns: bool = False
    layout: str | None = None
    workers: int = 1
    executor: Executor = "process"
    as_json: bool = False

    def written_out(self) -> Layout | None:
        """How turns are written out; None where rows are written whole."""
        if self.layout and not self.turns:
            raise UsageError("--layout is how --turns writes tools and calls out: give --turns")
        if not self.turns:
            return None
        for layout in LAYOUTS:
            if layout == (self.layout or LAYOUTS[0]):
                return layout
        raise UsageError(unknown("layout", self.layout or "", LAYOUTS))


def data_command(options: DataOptions) -> None:
    """Writes the rows or their turns, a card beside them, and prints what they are."""
    mix, layout, out, count = options.mix(), options.written_out(), options.out, options.count
    check_out(out)
    with progress("trajectories") as watch:
        rows = make_rows(mix, count, watch, 0, options.workers, options.executor)
    warn(check_share(shifted_of(rows), mix, count))
    written = list(turns_of(rows, layout)) if layout else rows
    digest = write_rows(written, out)
    found = statistics(rows)
    if layout:
        found = msgspec.structs.replace(found, turns=len(written), layout=layout)
    write(out.with_name(out.name + ".md"), card(out.name, mix, count, digest, found).encode())
    if options.as_json:
        print_json({"file": str(out), "sha256": digest, "mix": mix, **msgspec.to_builtins(found)})
    else:
        _say_done(options, found, digest)


def _say_done(options: DataOptions, found: Statistics, digest: str) -> None:
    for title, counts in (("kinds", found.kinds), ("shifts", found.shifts)):
        if counts:
            table = [[name, number] for name, number in counts.items()]
            print_table(title, [title.removesuffix("s"), "trajectories"], table)
    again = found.rows - found.distinct
    written = f"{found.turns} turns, a row each," if found.layout else f"{found.rows} rows"
    say(
        f"{written} of {options.count} trajectories in {options.out} (sha256 {digest[:12]}...); "
        + f"{again} duplicates; " * bool(again)
        + f"{found.unsolvable} trajectories end in a refusal, "
        f"{found.calls_per_row:.1f} calls each"
    )


def warn(text: str) -> None:
    """Prints a warning, if there is one."""
    if text:
        say(text, err=True)


@click.command()
@click.option("--out", type=PATH, required=True, help=".jsonl or .parquet.")
@click.option("--count", default=COUNT, show_default=True, help="Trajectories.")
@click.option("--alpha", default=0.0, show_default=True, help="Share that is shifted, 0 to 1.")
@trajectories
@click.option(
    "--turns",
    is_flag=True,
    help="For TRL's own trainers: a row for each turn that is learned, as prompt and completion, "
    "with tools and calls written out.",
)
@click.option("--layout", help="How --turns writes them. Default: description-first.")
@mix
@in_processes
@as_json
@options_struct(DataOptions)
def data(options: DataOptions) -> None:
    """Write expert trajectories as training data: the oracle in clean and shifted scenes.

    Columns are messages and tools, in the OpenAI format, for `toolshift train sft`. Entities and
    wordings are of the training pool only.

    \b
    toolshift data --out static.jsonl
    toolshift data --out paft.parquet --alpha 0.3 --shift EFP --shift SBP --shift SRP
    """
    data_command(options)

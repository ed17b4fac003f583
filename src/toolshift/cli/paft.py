"""`toolshift train paft`: supervised training on trajectories of which a share is shifted."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import click
import msgspec

from toolshift.cli.data import TrajectoryOptions, warn
from toolshift.cli.options import machine
from toolshift.cli.parameters import given, option, options_struct
from toolshift.cli.sectioned import Sectioned
from toolshift.cli.sft import TrainOptions, fine_tune
from toolshift.cli.training import PRESET
from toolshift.core.errors import UsageError
from toolshift.core.terminal import progress
from toolshift.core.text import one_line
from toolshift.data.augment import Recipe, check_recipe
from toolshift.data.files import digest_of as file_hash
from toolshift.data.files import place_word
from toolshift.train.data import make_rows, shifted_of
from toolshift.train.model import find_base, require_training
from toolshift.train.own_data import check_shifted, own_rows
from toolshift.train.presets import TRAJECTORIES
from toolshift.train.scenes import check_share

MAX_FAULTS = 12
"""Rows that cannot be trained on, and are named one by one."""


@dataclass(frozen=True, kw_only=True)
class PaftOptions(TrajectoryOptions, TrainOptions):
    """What `toolshift train paft` is asked for: training, on trajectories of a mix."""

    alpha: Annotated[float, option(help="Share of trajectories to shift, 0 to 1.")] = 0.3
    count: Annotated[int, option(help=f"Trajectories. {PRESET}", show_default=False)] = 0
    data: Annotated[
        Path | None,
        option(
            help="Your own conversations, to train on instead of trajectories, in any format of "
            "`toolshift augment`.",
        ),
    ] = None

    def recipe(self) -> Recipe:
        """What is done to conversations of the user's."""
        unset = PaftOptions()
        scenes = {"worlds": "--world", "kinds": "--kind", "count": "--count"}
        scenes |= {name: f"--{name}" for name in ("size", "slips", "share")}
        for name, written in scenes.items():
            if getattr(self, name) != getattr(unset, name):
                raise UsageError(
                    f"{written} is for scenes of built-in worlds, but --data names your own "
                    "conversations: leave one of them out"
                )
        made = Recipe(**given(self, Recipe))
        check_recipe(made)
        return made


def paft_command(options: PaftOptions) -> None:
    """Trains on the oracle's trajectories, or on own conversations, a share of them shifted."""
    if options.data is not None:
        _paft_on_data(options, options.data)
        return
    settings, mix = options.settings(), options.mix()
    find_base(settings)  # before the trajectories are made
    amount = options.count or TRAJECTORIES[settings.preset]
    with progress("trajectories") as watch:
        rows = make_rows(mix, amount, watch)
    warn(check_share(shifted_of(rows), mix, amount))
    fine_tune(rows, settings, options, {"mix": msgspec.to_builtins(mix), "count": amount}, mix)


def _paft_on_data(options: PaftOptions, source: Path) -> None:
    """Trains on conversations of the user's."""
    require_training()
    settings, recipe = options.settings(), options.recipe()
    find_base(settings)  # before the data is read
    with progress("conversations") as watch:
        own = own_rows(source, recipe, watch)
    warn(check_shifted(own, recipe))
    word = place_word(source)
    for place, why in own.faults[:MAX_FAULTS]:
        warn(f"{source}, {word} {place}: {one_line(why)}")
    if own.faults:
        left = len(own.faults)
        warn(f"{left} of {own.conversations + left} conversations are left out.")
    origin = {
        "file": source.name,
        "sha256": file_hash(source),
        "recipe": msgspec.to_builtins(recipe),
        "conversations": own.conversations,
        "shifted": own.shifted,
        "not_applicable": own.skipped,
        "open": own.open,
        "left_out": len(own.faults),
    }
    fine_tune(own.rows, settings, options, origin, None)


@click.command(
    cls=Sectioned, first=("out", "preset", "model", "adapter", "alpha", "shifts", "data", "resume")
)
@options_struct(PaftOptions)
@machine
def paft(options: PaftOptions) -> None:
    """Fine-tune on the oracle's trajectories or on your own conversations, some of them shifted.

    \b
    toolshift train paft --alpha 0.3 --shift SBP --shift SRP --out runs/paft
    toolshift train paft --data mine.jsonl --alpha 0.3 --out runs/mine
    """
    paft_command(options)

"""`toolshift train grpo`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from toolshift.cli.actions.data import check_share, read_mix
from toolshift.cli.actions.train import check_rank, going_on, read_resume, steps_of
from toolshift.core.errors import UsageError
from toolshift.core.names import unknown
from toolshift.core.terminal import print_json
from toolshift.train.callbacks import read_curves
from toolshift.train.grpo_settings import GrpoSettings, preset
from toolshift.train.model import require_training
from toolshift.train.presets import first_process
from toolshift.train.reward import TERMS, Weights
from toolshift.train.scenes import draws

MAX_LOOKED_AT = 64
"""Scenes that are drawn beforehand, to see whether shifts can be applied to them."""
_OURS = ("out", "resume", "as_json", "preset", "reward")


def grpo_command(alpha: float, mixed: dict[str, Any], asked: dict[str, Any]) -> None:
    """Trains by GRPO in scenes, a share `alpha` of them shifted."""
    require_training()
    settings = read_settings(asked)
    mix = read_mix(alpha, mixed)
    played = min(MAX_LOOKED_AT, settings.steps * settings.groups)
    if mix.alpha * played >= 1:  # of fewer, none need be among the first
        check_share(sum(bool(each.shifts) for each in draws(mix, played)), mix, played, "scenes")
    from toolshift.train.grpo import train

    if not settings.evidence and first_process():
        from toolshift.train.record import NO_EVIDENCE

        click.echo(f"Preset {settings.preset}: {NO_EVIDENCE}.", err=True)
    out = train(mix, settings, asked["out"], resume=read_resume(asked["resume"]))
    if first_process():
        _say_done(out, settings, asked["as_json"])


def read_settings(asked: Mapping[str, Any]) -> GrpoSettings:
    """A preset, changed by the options that were given.

    Raises:
        UsageError: for a value out of range.
    """
    given = {
        name: value for name, value in asked.items() if name not in _OURS and value is not None
    }
    if "save_at" in given:
        given["save_at"] = steps_of(given["save_at"])
    if asked.get("reward"):
        given["reward"] = read_weights(asked["reward"])
    settings = preset(asked["preset"], **going_on(given))
    check_rank(given, settings.full)
    return settings


def read_weights(entries: Sequence[str]) -> Weights:
    """Reads weights of the reward such as "surplus=0.1"; what is not named keeps its default.

    Raises:
        UsageError: for an unknown term or a weight that is no number.
    """
    weights = Weights()
    for entry in entries:
        name, _, value = entry.partition("=")
        if name not in TERMS:
            raise UsageError(unknown("term of the reward", name, TERMS))
        try:
            weights = msgspec.structs.replace(weights, **{name: float(value)})
        except ValueError:
            raise UsageError(f"--reward {entry}: write a number, as in {name}=0.1") from None
    return weights


def _say_done(out: Path, settings: GrpoSettings, as_json: bool) -> None:
    from toolshift.lm.checkpoint import training_record

    record = training_record(out)
    lines = read_curves(out / "curves.jsonl")
    steps = [line for line in lines if "reward" in line]
    rewards = [line["reward"] for line in steps]
    flat = [line["flat_groups"] for line in steps]
    if as_json:
        print_json({**record, "rewards": rewards, "flat_groups": flat})
        return
    if not rewards:
        click.echo(f"{out}: no step had a reward, for every episode was void")
        return
    first, last = (sum(some) / len(some) for some in (rewards[:5], rewards[-5:]))
    click.echo(
        f"{'model' if settings.full else 'adapter'} in {out}: {record['steps']} steps, "
        f"{record['wall_seconds']:.0f} s; mean reward {first:.3f} in the first "
        f"{len(rewards[:5])} steps, {last:.3f} in the last"
    )
    if all(share == 1 for share in flat):
        click.echo(
            "The episodes of each group earned alike in every step, so nothing was learned: start "
            "from a model that earns sometimes, pay for the way too (--reward), or play more "
            "episodes a scene (--group).",
            err=True,
        )

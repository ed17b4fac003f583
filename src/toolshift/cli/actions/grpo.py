"""`toolshift train grpo`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from toolshift.cli.actions.data import MixOptions, warn
from toolshift.cli.actions.train import RunOptions, warn_of_evidence
from toolshift.core.terminal import print_json
from toolshift.lm.checkpoint import training_record
from toolshift.train.callbacks import read_curves
from toolshift.train.grpo_settings import GrpoSettings, preset
from toolshift.train.model import require_training
from toolshift.train.reward import read_weights
from toolshift.train.scenes import check_scenes
from toolshift.train.settings import check_rank, first_process


@dataclass(frozen=True, kw_only=True)
class GrpoOptions(MixOptions, RunOptions):
    """What `toolshift train grpo` is asked for.

    Attributes:
        out: the folder for the result.
        rewards: weights of the reward, as "TERM=WEIGHT".
    """

    out: Path
    rewards: tuple[str, ...] = ()
    groups: int | None = None
    group: int | None = None
    rollout_batch: int | None = None
    temperature: float | None = None
    beta: float | None = None
    epsilon: float | None = None
    objective: str | None = None
    scale: str | None = None
    turn_tokens: int | None = None
    episode_tokens: int | None = None
    precision: str | None = None
    vllm: bool | None = None

    def settings(self) -> GrpoSettings:
        """The preset, changed by what is asked for, and checked.

        Raises:
            UsageError: for a setting that is unknown or out of range.
        """
        given = self.changes(GrpoSettings)
        if self.rewards:
            given["reward"] = read_weights(self.rewards)
        settings = preset(self.preset, **given)
        check_rank(self.rank, self.adapter, settings.full)
        return settings


def grpo_command(options: GrpoOptions) -> None:
    """Trains by GRPO in scenes, a share of them shifted."""
    require_training()
    settings, mix = options.settings(), options.mix()
    warn(check_scenes(mix, settings.steps * settings.groups))
    from toolshift.train.grpo import train

    warn_of_evidence(settings)
    out = train(mix, settings, options.out, resume=options.start())
    if first_process():
        _say_done(out, settings, options.as_json)


def _say_done(out: Path, settings: GrpoSettings, as_json: bool) -> None:
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

"""`toolshift train grpo`."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import click
import msgspec

from toolshift.cli.data import MixOptions, warn
from toolshift.cli.options import machine
from toolshift.cli.parameters import option, options_struct
from toolshift.cli.sectioned import Sectioned
from toolshift.cli.training import PRESET, RunOptions, warn_of_evidence, written_for
from toolshift.core.errors import UsageError
from toolshift.core.importing import load
from toolshift.core.terminal import print_json, say
from toolshift.core.tool import JSON
from toolshift.lm.checkpoint import training_record
from toolshift.train.curves import CURVES, read_curves
from toolshift.train.grpo_settings import GrpoSettings, check, preset
from toolshift.train.model import require_training
from toolshift.train.reward import read_weights
from toolshift.train.scenes import Mix, check_scenes
from toolshift.train.settings import GRPO, SCREEN, check_rank, first_process, processes


@dataclass(frozen=True, kw_only=True)
class GrpoOptions(MixOptions, RunOptions):
    """What `toolshift train grpo` is asked for.

    Attributes:
        rewards: weights of the reward, as "TERM=WEIGHT".
        screen: how many scenes to look at first, of which those are trained on that pass at times.
    """

    out: Annotated[Path, option(help="Folder for the result.")] = field()  # needed, here
    rewards: Annotated[
        tuple[str, ...],
        option(
            "--reward", metavar="TERM=WEIGHT", help="A term of the reward (docs/grpo.md); repeat."
        ),
    ] = ()
    screen: Annotated[
        int,
        option(
            type=click.IntRange(min=0),
            metavar="SCENES",
            help="Play so many scenes first, and train on those of which some episodes pass and "
            "some fail.",
        ),
    ] = 0
    groups: Annotated[int | None, option(help=f"Scenes in a step. {PRESET}")] = None
    group: Annotated[int | None, option(help=f"Episodes of each scene, at least 2. {PRESET}")] = (
        None
    )
    rollout_batch: Annotated[int | None, option(help=f"Episodes decoded together. {PRESET}")] = None
    temperature: Annotated[float | None, option(help=f"Temperature of the sampling. {PRESET}")] = (
        None
    )
    beta: Annotated[
        float | None, option(help=f"Weight of the KL penalty; 0 turns it off. {PRESET}")
    ] = None
    epsilon: Annotated[
        float | None,
        option(
            help="By how much the ratio of a token may change before it is clipped. With one "
            f"update for each rollout nothing is clipped. {PRESET}",
        ),
    ] = None
    objective: Annotated[str | None, option(help=f"dapo, grpo, bnpo or dr_grpo. {PRESET}")] = None
    scale: Annotated[
        str | None,
        option(help=f"What advantages are divided by: group, batch or none. {PRESET}"),
    ] = None
    turn_tokens: Annotated[int | None, option(help=f"Most tokens of one reply. {PRESET}")] = None
    episode_tokens: Annotated[
        int | None,
        option(help=f"An episode ends with the reply that passes so many tokens. {PRESET}"),
    ] = None
    precision: Annotated[str | None, option(help=f"bfloat16 or float32. {PRESET}")] = None
    vllm: Annotated[
        bool | None, option("--vllm/--no-vllm", help=f"Roll out with vLLM (needs a GPU). {PRESET}")
    ] = None
    redraw: Annotated[
        int | None,
        option(
            help="How often a scene is replaced by another where all of its episodes have the same "
            f"reward. {PRESET}",
        ),
    ] = None
    headroom: Annotated[
        tuple[float, float] | None,
        option(
            type=(float, float),
            metavar="LEAST MOST",
            help="Replace a scene too where a smaller or larger share of its episodes passes: "
            f"0.2 0.8, for example. {PRESET}",
        ),
    ] = None
    every_view: Annotated[
        bool | None,
        option(
            "--every-view/--last-view",
            help="Where tools change during an episode: train on the replies under each list of "
            f"tools, or under the last one only. {PRESET}",
        ),
    ] = None
    max_repeats: Annotated[
        int | None,
        option(
            help="An episode ends where the same call has had the same result this often; 0 for no "
            f"limit. {PRESET}",
        ),
    ] = None

    def settings(self) -> GrpoSettings:
        """The preset, changed by what is asked for, and checked."""
        reward = {"reward": read_weights(self.rewards)} if self.rewards else {}
        settings = preset(self.preset, **self.changes(GrpoSettings), **reward)
        check_rank(self.rank, self.adapter, settings.full)
        return settings


def _screened(mix: Mix, settings: GrpoSettings, options: GrpoOptions) -> GrpoSettings:
    """The settings with the scenes that pass at times; the screen stands in the run's folder."""
    if processes() > 1:
        raise UsageError("--screen plays in one process: run it so once, and then resume with all")
    content = JSON.encode([mix, settings])
    file = options.out / f"screen-{hashlib.sha256(content).hexdigest()[:8]}.jsonl"
    found = load(SCREEN)(mix, settings, file, options.screen, samples=settings.group)
    scenes = tuple(one.scene for one in found if 0 < one.passed < one.samples)
    say(f"{len(scenes)} of {len(found)} scenes pass at times ({file.name})", err=True)
    if len(scenes) < settings.groups:
        raise UsageError(
            f"--screen {options.screen}: {len(scenes)} scenes pass at times, and a step takes "
            f"{settings.groups}: screen more of them, or start from a model that passes some"
        )
    chosen = msgspec.structs.replace(settings, scenes=scenes)
    check(chosen)
    return chosen


def _say_done(out: Path, settings: GrpoSettings, as_json: bool) -> None:
    record = training_record(out)
    lines = read_curves(out / CURVES)
    steps = [line for line in lines if "reward" in line]
    rewards = [line["reward"] for line in steps]
    drawn = [line.get("reward_drawn", line["reward"]) for line in steps]
    flat = [line["flat_groups"] for line in steps]
    if as_json:
        print_json({**record, "rewards": rewards, "rewards_drawn": drawn, "flat_groups": flat})
        return
    if not rewards:
        say(f"{out}: no step had a reward, for every episode was void")
        return
    first, last = (sum(some) / len(some) for some in (drawn[:5], drawn[-5:]))
    say(
        f"{'model' if settings.full else 'adapter'} in {out}: {record['steps']} steps, "
        f"{record['wall_seconds']:.0f} s; mean reward {first:.3f} in the first "
        f"{len(drawn[:5])} steps, {last:.3f} in the last"
    )
    if all(share == 1 for share in flat):
        say(
            "The episodes of each group earned alike in every step, so nothing was learned: start "
            "from a model that earns sometimes, pay for the way too (--reward), or play more "
            "episodes a scene (--group).",
            err=True,
        )
    say(written_for(out, settings))


@click.command(
    cls=Sectioned, first=("out", "preset", "model", "adapter", "alpha", "shifts", "steps", "resume")
)
@options_struct(GrpoOptions)
@machine
def grpo(options: GrpoOptions) -> None:
    """Train by GRPO: the model plays scenes, and the grader pays.

    \b
    toolshift train grpo --adapter runs/paft --alpha 0 --out runs/rl-static
    toolshift train grpo --adapter runs/paft --alpha 0.3 --shift EFP --shift limits --out runs/rl
    """
    grpo_command(options)


def grpo_command(options: GrpoOptions) -> None:
    """Trains by GRPO in scenes, a share of them shifted."""
    require_training()
    settings, mix = options.settings(), options.mix()
    warn(check_scenes(mix, settings.steps * settings.groups))
    warn_of_evidence(settings)
    if options.screen:
        settings = _screened(mix, settings, options)
    out = load(GRPO)(mix, settings, options.out, resume=options.start())
    if first_process():
        _say_done(out, settings, options.as_json)

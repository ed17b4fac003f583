"""`toolshift train grpo`."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import click
import msgspec

from toolshift.cli.data import MixOptions, mix, warn
from toolshift.cli.options import as_json, machine
from toolshift.cli.parameters import PATH, options_struct
from toolshift.cli.sectioned import Sectioned
from toolshift.cli.training import RunOptions, warn_of_evidence
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
        out: the folder for the result.
        rewards: weights of the reward, as "TERM=WEIGHT".
        screen: how many scenes to look at first, of which those are trained on that pass at times.
    """

    out: Path
    rewards: tuple[str, ...] = ()
    screen: int = 0
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
    redraw: int | None = None
    headroom: tuple[float, float] | None = None
    every_view: bool | None = None
    max_repeats: int | None = None

    def settings(self) -> GrpoSettings:
        """The preset, changed by what is asked for, and checked."""
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
    warn_of_evidence(settings)
    if options.screen:
        settings = _screened(mix, settings, options)
    out = load(GRPO)(mix, settings, options.out, resume=options.start())
    if first_process():
        _say_done(out, settings, options.as_json)


def _screened(mix: Mix, settings: GrpoSettings, options: GrpoOptions) -> GrpoSettings:
    """The settings with the scenes that pass at times; the screen stands in the run's folder."""
    if processes() > 1:
        raise UsageError("--screen plays in one process: run it so once, and then resume with all")
    content = JSON.encode([mix, settings])
    file = options.out / f"screen-{hashlib.sha256(content).hexdigest()[:8]}.jsonl"
    found = load(SCREEN)(mix, settings, file, options.screen, samples=settings.group)
    scenes = tuple(each.scene for each in found if 0 < each.passed < each.samples)
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


@click.command(
    cls=Sectioned, first=("out", "preset", "model", "adapter", "alpha", "shifts", "steps", "resume")
)
@click.option("--out", type=PATH, required=True, help="Folder of the run.")
@click.option("--preset", default="small", show_default=True, help="smoke, small or paper.")
@click.option("--alpha", default=0.0, show_default=True, help="Share of shifted scenes, 0 to 1.")
@mix
@click.option(
    "--model",
    help="A base model of `toolshift list models`, scratch, a model directory or a hub name.",
)
@click.option("--adapter", help="LoRA adapter to start from: a folder, or smol:paft.")
@click.option("--full/--lora", default=None, help="Train all weights, or a LoRA adapter.")
@click.option("--rank", type=int, help="Of a new LoRA adapter.")
@click.option("--lr", type=float, help="Learning rate.")
@click.option("--steps", type=int, help="Optimizer steps.")
@click.option("--groups", type=int, help="Scenes in a step.")
@click.option("--group", type=int, help="Episodes of each scene, at least 2.")
@click.option("--batch", type=int, help="Episodes in one forward pass.")
@click.option("--rollout-batch", type=int, help="Episodes decoded together.")
@click.option("--temperature", type=float, help="Of the sampling.")
@click.option("--beta", type=float, help="Weight of the KL penalty; 0 for none.")
@click.option(
    "--epsilon",
    type=float,
    help="Where ratios are clipped: none is, with one update for each rollout.",
)
@click.option("--objective", help="dapo, grpo, bnpo or dr_grpo.")
@click.option("--scale", help="What advantages are divided by: group, batch or none.")
@click.option("--turn-tokens", type=int, help="Most tokens of one reply.")
@click.option(
    "--episode-tokens", type=int, help="An episode ends with the reply that passes so many."
)
@click.option(
    "--reward", "rewards", multiple=True, metavar="TERM=WEIGHT", help="docs/grpo.md; repeat."
)
@click.option(
    "--redraw",
    type=int,
    help="How often a scene all of whose episodes earned alike is replaced by another.",
)
@click.option(
    "--headroom",
    type=(float, float),
    metavar="LEAST MOST",
    help="Replace also where fewer, or more, of a scene's episodes pass: 0.2 0.8, for example.",
)
@click.option(
    "--screen",
    type=click.IntRange(min=0),
    default=0,
    metavar="SCENES",
    help="Play so many scenes first, and train on those of which some episodes pass and some fail.",
)
@click.option(
    "--every-view/--last-view",
    default=None,
    help="Train on what was said under each list of tools, or under the last one only.",
)
@click.option(
    "--max-repeats",
    type=int,
    help="An episode ends where the same call has had the same result this often; 0 for no limit.",
)
@click.option("--precision", help="bfloat16 or float32.")
@click.option("--layout", help="How tools are listed. Default: as --adapter was trained.")
@click.option("--checkpointing/--no-checkpointing", default=None, help="Less memory, slower.")
@click.option("--vllm/--no-vllm", default=None, help="Roll out with vLLM (needs a GPU).")
@click.option("--threads", type=int, help="Torch's threads.")
@click.option("--save-every", type=int, help="Steps between checkpoints; the last one is kept.")
@click.option("--save-at", metavar="STEP,STEP", help="Checkpoints that are all kept.")
@click.option("--eval-every", type=int, help="Steps between evaluations; 0 for none.")
@click.option("--eval-scenes", type=int, help="Scenes of each arm of an evaluation.")
@click.option(
    "--resume",
    is_flag=False,
    flag_value="last",
    metavar="[STEP]",
    help="Go on from the last checkpoint in --out, or from that of a step.",
)
@machine
@as_json
@options_struct(GrpoOptions)
def grpo(options: GrpoOptions) -> None:
    """Train by GRPO: the model plays scenes, and the grader pays.

    \b
    toolshift train grpo --adapter runs/paft --alpha 0 --out runs/rl-static
    toolshift train grpo --adapter runs/paft --alpha 0.3 --shift EFP --shift limits --out runs/rl
    """
    grpo_command(options)

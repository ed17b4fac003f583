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
            help="First run this many scenes, and train on those in which some episodes pass and "
            "some fail.",
        ),
    ] = 0
    groups: Annotated[int | None, option(help=f"Scenes per step. {PRESET}")] = None
    group: Annotated[int | None, option(help=f"Episodes per scene, at least 2. {PRESET}")] = None
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
            help="Clipping range of the probability ratio of a token. With one update per rollout "
            f"nothing is clipped. {PRESET}",
        ),
    ] = None
    objective: Annotated[str | None, option(help=f"dapo, grpo, bnpo or dr_grpo. {PRESET}")] = None
    scale: Annotated[
        str | None,
        option(
            help=f"Scaling of advantages by the standard deviation: group, batch or none. {PRESET}"
        ),
    ] = None
    turn_tokens: Annotated[
        int | None, option(help=f"Maximum number of tokens in a reply. {PRESET}")
    ] = None
    episode_tokens: Annotated[
        int | None,
        option(help=f"An episode ends with the reply that exceeds this number of tokens. {PRESET}"),
    ] = None
    precision: Annotated[str | None, option(help=f"bfloat16 or float32. {PRESET}")] = None
    vllm: Annotated[
        bool | None, option("--vllm/--no-vllm", help=f"Roll out with vLLM (needs a GPU). {PRESET}")
    ] = None
    redraw: Annotated[
        int | None,
        option(
            help="How often a scene is replaced by another one if all of its episodes have the "
            f"same reward. {PRESET}",
        ),
    ] = None
    headroom: Annotated[
        tuple[float, float] | None,
        option(
            type=(float, float),
            metavar="LEAST MOST",
            help="Also replace a scene if the share of passed episodes is outside this range, for "
            f"example 0.2 0.8. {PRESET}",
        ),
    ] = None
    every_view: Annotated[
        bool | None,
        option(
            "--every-view/--last-view",
            help="If tools change during an episode: train on the replies under each tool list, "
            f"or only under the last one. {PRESET}",
        ),
    ] = None
    max_repeats: Annotated[
        int | None,
        option(
            help="An episode ends when the same call has had the same result this many times; 0 "
            f"for no limit. {PRESET}",
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
        raise UsageError(
            "--screen works in one process only: run it once in one process, and then resume "
            "with all"
        )
    content = JSON.encode([mix, settings])
    file = options.out / f"screen-{hashlib.sha256(content).hexdigest()[:8]}.jsonl"
    found = load(SCREEN)(mix, settings, file, options.screen, samples=settings.group)
    scenes = tuple(one.scene for one in found if 0 < one.passed < one.samples)
    say(
        f"{len(scenes)} of {len(found)} scenes pass in some episodes and fail in others "
        f"({file.name})",
        err=True,
    )
    if len(scenes) < settings.groups:
        raise UsageError(
            f"--screen {options.screen}: only {len(scenes)} scenes pass in some episodes and "
            f"fail in others, and a step needs {settings.groups}: screen more scenes, or start "
            "from a model that passes some"
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
        say(f"{out}: no step had a reward, because every episode was void")
        return
    first, last = (sum(some) / len(some) for some in (drawn[:5], drawn[-5:]))
    say(
        f"{'model' if settings.full else 'adapter'} in {out}: {record['steps']} steps, "
        f"{record['wall_seconds']:.0f} s; mean reward {first:.3f} in the first "
        f"{len(drawn[:5])} steps, {last:.3f} in the last"
    )
    if all(share == 1 for share in flat):
        say(
            "In every step all episodes of a group had the same reward, so nothing was learned: "
            "start from a model that sometimes gets a reward, reward intermediate steps too "
            "(--reward), or use more episodes per scene (--group).",
            err=True,
        )
    say(written_for(out, settings))


@click.command(
    cls=Sectioned, first=("out", "preset", "model", "adapter", "alpha", "shifts", "steps", "resume")
)
@options_struct(GrpoOptions)
@machine
def grpo(options: GrpoOptions) -> None:
    """Train with GRPO: the model runs episodes, and the grader gives the reward.

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

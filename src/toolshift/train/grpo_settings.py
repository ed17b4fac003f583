"""What decides a GRPO run, as data, and its presets: smoke, small and paper."""

from __future__ import annotations

import importlib.util
import math
from typing import Any, Literal, get_args

from toolshift.core.errors import UsageError
from toolshift.core.names import unknown
from toolshift.train import reward
from toolshift.train.reward import Weights
from toolshift.train.settings import (
    SCRATCH,
    TrainSettings,
    changed,
    check_common,
    check_least,
    processes,
)

Objective = Literal["dapo", "grpo", "bnpo", "dr_grpo"]
Divisor = Literal["group", "batch", "none"]
_LEAST = {
    "groups": 1,
    "turn_tokens": 1,
    "episode_tokens": 1,
    "rollout_batch": 1,
    "steps": 1,
    "redraw": 0,
}


class GrpoSettings(TrainSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that decides a GRPO run, apart from its scenes.

    `batch` counts episodes in one forward pass, and as many passes follow as a step needs; `lr` is
    reached after `warmup` and then stays.

    Attributes:
        groups: scenes in one step.
        group: episodes of each scene; each is compared with the others of its scene.
        temperature: of the sampling, and of the probabilities that are trained.
        beta: how much a departure from the first model costs (KL); 0 needs no reference model.
        epsilon: by how much a step may change the ratio of a token before it is clipped. With one
            update for each rollout, as here, the ratio is 1 and nothing is clipped.
        objective: TRL's `loss_type`: how the loss is spread over tokens. "dapo" weighs all tokens
            of a step alike, however the batch is laid out.
        scale: by what advantages are divided: the spread within a "group", a "batch", or "none".
        turn_tokens: the most tokens of one reply, at most `episode_tokens`.
        episode_tokens: an episode ends with the reply that passes so many after the first prompt;
            a new list of tools begins no new count.
        rollout_batch: episodes decoded together.
        reward: the terms of the reward.
        vllm: roll out with vLLM instead of torch.
        redraw: how often, within a step, another scene replaces one whose group has no gradient:
            all its episodes earned alike, or the share that passed is outside `headroom`.
        headroom: the least and the greatest share of a group's episodes that may pass.
        every_view: where tools change in mid-episode, train on what was said under each list of
            tools, and not under the last one only.
        max_repeats: an episode ends where the same call has had the same result this often; 0 for
            no such limit.
        scenes: numbers of the mix's scenes, of which each step takes the next ones, in shuffled
            rounds, such as those that `toolshift.train.screen` has chosen; () for all in turn.
    """

    groups: int = 8
    group: int = 4
    temperature: float = 1.0
    beta: float = 0.0
    epsilon: float = 0.2
    objective: Objective = "dapo"
    scale: Divisor = "group"
    turn_tokens: int = 96
    episode_tokens: int = 1536
    rollout_batch: int = 32
    reward: Weights = Weights()
    vllm: bool = False
    redraw: int = 0
    headroom: tuple[float, float] = (0.0, 1.0)
    every_view: bool = False
    max_repeats: int = 0
    scenes: tuple[int, ...] = ()

    @property
    def passes(self) -> int:
        """Forward passes of each process in one step."""
        return self.groups * self.group // (self.batch * processes())


PRESETS: dict[str, GrpoSettings] = {
    "smoke": GrpoSettings(
        preset="smoke", evidence=False, model=SCRATCH, full=True, precision="float32", lr=1e-3,
        steps=2, groups=2, group=2, batch=2, turn_tokens=12, episode_tokens=400,
        reward=Weights(unreadable=0.1), save_every=1, eval_scenes=2,
    ),
    "small": GrpoSettings(
        preset="small", lr=2e-4, warmup=0.1, steps=60, groups=4, layout="spaced-texts",
        save_every=5, eval_every=20, threads=2,
    ),
    "paper": GrpoSettings(
        preset="paper", model="Qwen/Qwen2.5-7B-Instruct", full=True, lr=1e-6, warmup=0.03,
        steps=200, groups=32, group=8, batch=2, checkpointing=True, layout="json", turn_tokens=256,
        episode_tokens=4096, save_every=20, eval_every=20, eval_scenes=64, vllm=True,
    ),
}  # fmt: skip
"""smoke: the code path in seconds, and no evidence; small: SmolLM2-135M with LoRA on two cores,
from an adapter; paper: Qwen2.5-7B-Instruct in full on several GPUs with vLLM, never run by us."""


def preset(name: str, **changes: Any) -> GrpoSettings:
    """A preset with some of its settings changed, checked."""
    settings = changed(PRESETS, name, changes)
    check(settings)
    return settings


def check(settings: GrpoSettings) -> None:
    """Checks settings before anything expensive starts."""
    check_common(settings)
    check_least(settings, _LEAST)
    if settings.group < 2:
        raise UsageError(
            f"group is {settings.group}: GRPO compares the episodes of one scene, so it must be "
            "at least 2"
        )
    if settings.turn_tokens > settings.episode_tokens:
        raise UsageError(
            f"turn_tokens is {settings.turn_tokens}, more than the {settings.episode_tokens} of a "
            "whole episode (episode_tokens)"
        )
    for name in ("temperature", "epsilon"):
        value = getattr(settings, name)
        if not (math.isfinite(value) and value > 0):
            raise UsageError(f"{name} must be above 0, not {value:g}")
    if not (math.isfinite(settings.beta) and settings.beta >= 0):
        raise UsageError(f"beta must be 0 or more, not {settings.beta:g}")
    for name, kind in (("objective", Objective), ("scale", Divisor)):
        if getattr(settings, name) not in get_args(kind):
            raise UsageError(unknown(name, getattr(settings, name), get_args(kind)))
    reward.check(settings.reward)
    _check_batches(settings)
    _check_redraw(settings)
    _check_scenes(settings)
    if settings.max_repeats < 0 or settings.max_repeats == 1:
        raise UsageError(
            f"max_repeats must be 0 (no limit) or at least 2, not {settings.max_repeats}"
        )
    if settings.beta and settings.full and settings.adapter:
        raise UsageError(
            "beta above 0 needs the initial model as a reference, which full training from an "
            "adapter does not keep: train with LoRA, or merge the adapter into a model first"
        )


def _check_batches(settings: GrpoSettings) -> None:
    rows, once = settings.groups * settings.group, settings.batch * processes()
    if rows % once:
        many = f" in each of {processes()} processes" if processes() > 1 else ""
        raise UsageError(
            f"{settings.groups} groups of {settings.group} are {rows} episodes, which batches of "
            f"{settings.batch}{many} do not divide: choose another batch, or other groups"
        )


def _check_redraw(settings: GrpoSettings) -> None:
    least, most = settings.headroom
    if not 0 <= least <= most <= 1:
        raise UsageError(
            f"headroom is two shares from 0 to 1, the lesser first, not {least:g} and {most:g}"
        )
    if settings.headroom != (0.0, 1.0) and not settings.redraw:
        raise UsageError(
            "headroom sets which groups are drawn again, but redraw is 0: give --redraw as well"
        )
    if settings.redraw and processes() > 1:
        raise UsageError(
            "redraw needs whole groups in one process, but here they are spread over processes"
        )


def _check_scenes(settings: GrpoSettings) -> None:
    if settings.scenes and settings.redraw:
        raise UsageError("the scenes are fixed, so none can be drawn again: set redraw to 0")
    if len(set(settings.scenes)) < len(settings.scenes) or min(settings.scenes, default=0) < 0:
        raise UsageError("scenes must be numbers of the mix's scenes, 0 or more, each given once")
    if settings.scenes and len(settings.scenes) < settings.groups:
        raise UsageError(
            f"a step takes {settings.groups} scenes, and {len(settings.scenes)} are given: give "
            "more scenes, or use fewer groups"
        )


def require_vllm() -> None:
    """Checks that vLLM is there."""
    if importlib.util.find_spec("vllm") is None:
        raise UsageError(
            "rollouts by vLLM need vllm, which is not installed; run: pip install vllm (it needs a "
            "GPU), or roll out with torch: --no-vllm"
        )

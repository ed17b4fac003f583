"""What all ways of training have in common: their settings as data, and the checks of them."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any, Literal, TypeVar, get_args

import msgspec

from toolshift.core.errors import UsageError
from toolshift.core.names import unknown
from toolshift.lm.bases import BASES, SMOL
from toolshift.lm.prompt import LAYOUTS, Layout

SCRATCH = "scratch"
"""The name of a tiny untrained model of SmolLM2's own classes and tokenizer; behind a colon may
stand another base model whose classes and tokenizer it has."""


def base_of(model: str) -> str:
    """The name of the base model of ours that a setting names, by itself or as a tiny one."""
    name, _, like = model.partition(":")
    name = (like or SMOL) if name == SCRATCH else model
    return name if name in BASES else ""


def scratch_of(model: str) -> str:
    """The tiny model of the classes and the tokenizer of another; SmolLM2's for one of others."""
    base = base_of(model)
    return SCRATCH if base in ("", SMOL) else f"{SCRATCH}:{base}"


NO_EVIDENCE = "no evidence: a tiny untrained model, to run the code path only"
SFT, GRPO = "toolshift.train.sft:train", "toolshift.train.grpo:train"
SCREEN = "toolshift.train.screen:screen"
"""What trains, imported when it does (`core.importing.load`): TRL takes seconds to import."""

Precision = Literal["bfloat16", "float32"]
_LEAST = {
    "rank": 1, "steps": 0, "batch": 1, "threads": 0, "save_every": 0, "eval_every": 0,
    "eval_scenes": 1, "seed": 0,
}  # fmt: skip


class TrainSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What decides a run, however it trains, apart from its rows or scenes.

    Attributes:
        preset: the preset that it was made from.
        evidence: whether its result says anything; False for a model too small to learn.
        model: "smol" for the bundled model or another name of `toolshift.lm.bases`, "scratch" for a
            tiny untrained one, a transformers model directory, or a hub name such as
            "Qwen/Qwen2.5-7B-Instruct".
        adapter: a LoRA adapter to start from; with `full` it is merged into the weights first.
        full: train all weights instead of a LoRA adapter.
        rank: of the LoRA matrices, which stand on every linear layer but the head.
        lr: the highest learning rate, reached after `warmup` of the steps.
        warmup: the share of the steps in which the rate rises.
        steps: optimizer steps.
        batch: rows or episodes in one forward pass of one process.
        clip: the largest norm of a gradient; 0 sets no limit.
        decay: weight decay.
        precision: that the model computes with where the machine can, and that its weights are
            rounded to where they are used. The trained weights are kept in float32.
        layout: how tools are listed; an agent must be run with the same one.
        checkpointing: compute activations again in the backward pass: slower, with less memory.
        share: compute the opening that a batch's rows have in common once.
        threads: torch's threads on a CPU; where 0, torch chooses.
        seed: of the adapter's first weights and of the order of what is trained on.
        save_at: steps after which a checkpoint is kept.
        save_every: steps between checkpoints of which only the last one is kept; 0 turns them off.
        eval_every: steps between evaluations; 0 turns them off.
        eval_scenes: how many scenes of the dev pool an evaluation plays.
    """

    preset: str = ""
    evidence: bool = True
    model: str = "smol"
    adapter: str = ""
    full: bool = False
    rank: int = 8
    lr: float = 2e-3
    warmup: float = 0.05
    steps: int = 0
    batch: int = 4
    clip: float = 1.0
    decay: float = 0.0
    precision: Precision = "bfloat16"
    layout: Layout = "description-first"
    checkpointing: bool = False
    share: bool = True
    threads: int = 0
    seed: int = 0
    save_at: tuple[int, ...] = ()
    save_every: int = 50
    eval_every: int = 0
    eval_scenes: int = 24


S = TypeVar("S", bound=TrainSettings)
"""The settings of one way to train."""


def changed(presets: Mapping[str, S], name: str, changes: Mapping[str, Any]) -> S:
    """A preset with some of its settings changed, not yet checked."""
    if name not in presets:
        raise UsageError(unknown("preset", name, presets))
    return msgspec.structs.replace(presets[name], **changes)


def with_model(settings: S, model: str) -> S:
    """Settings with another base model; a preset whose model is tiny has a tiny one of its kind."""
    if not model:
        return settings
    tiny = settings.model == SCRATCH and base_of(model)
    return msgspec.structs.replace(settings, model=scratch_of(model) if tiny else model)


def check_common(settings: TrainSettings) -> None:
    """Checks the settings that all ways of training have, before anything expensive starts."""
    check_least(settings, _LEAST)
    if not (math.isfinite(settings.lr) and settings.lr > 0):
        raise UsageError(f"the learning rate must be above 0, not {settings.lr:g}")
    if not 0 <= settings.warmup < 1:
        raise UsageError(
            f"warmup is a share of the steps, from 0 to below 1, not {settings.warmup:g}"
        )
    if settings.layout not in LAYOUTS:
        raise UsageError(unknown("layout", settings.layout, LAYOUTS))
    if settings.precision not in get_args(Precision):
        raise UsageError(unknown("precision", settings.precision, get_args(Precision)))
    if any(step < 1 for step in settings.save_at):
        raise UsageError(f"save_at must name steps from 1 up, not {min(settings.save_at)}")
    if settings.steps:
        check_kept(settings, settings.steps)


def check_least(settings: TrainSettings, least: Mapping[str, int]) -> None:
    """Checks settings against the least value of each."""
    for name, lowest in least.items():
        value = getattr(settings, name)
        if value < lowest:
            raise UsageError(f"{name} must be at least {lowest}, not {value}")


def check_kept(settings: TrainSettings, steps: int) -> None:
    """Checks that the steps of kept checkpoints are within the steps of the run."""
    if max(settings.save_at, default=0) > steps:
        raise UsageError(
            f"--save-at keeps a checkpoint after step {max(settings.save_at)}, but the run has "
            f"only {steps} steps"
        )


def check_rank(rank: int | None, adapter: str | None, full: bool) -> None:
    """Refuses a rank that is asked for where no adapter is made."""
    if full and rank is not None:
        raise UsageError(
            "--rank works only with a LoRA adapter, but all weights are trained: give --lora as "
            "well"
        )
    if adapter and rank is not None:
        raise UsageError(
            "--rank sets the rank of a new adapter, but --adapter has its own: leave one of them "
            "out"
        )


def steps_of(text: str) -> tuple[int, ...]:
    """Reads steps such as "200,400,800"."""
    try:
        return tuple(sorted({int(part) for part in text.split(",") if part.strip()}))
    except ValueError:
        raise UsageError(f"--save-at {text}: write steps, as in 200,400,800") from None


def processes() -> int:
    """How many processes train together."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def first_process() -> bool:
    """Whether this process is the only one, or the one that speaks and writes for all."""
    return os.environ.get("RANK", "0") == "0"

"""What decides a training run, as data, and the three presets: smoke, small and paper."""

from __future__ import annotations

import math
import os
from typing import Any, Literal, get_args

import msgspec

from toolshift.core.errors import UsageError
from toolshift.core.names import unknown
from toolshift.lm.prompt import LAYOUTS, Layout

SCRATCH = "scratch"
"""The name of a tiny untrained model of SmolLM2's own classes and tokenizer."""

Precision = Literal["bfloat16", "float32"]
_LEAST = {
    "rank": 1, "epochs": 0, "steps": 0, "batch": 1, "accumulate": 1, "threads": 0,
    "max_tokens": 0, "save_every": 0, "eval_every": 0, "eval_scenes": 1, "seed": 0,
}  # fmt: skip


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that decides a run of supervised training, apart from its rows.

    Attributes:
        preset: the preset that it was made from.
        evidence: whether its result says anything; False for a model too small to learn.
        model: "smol" for the bundled model, "scratch" for a tiny untrained one, a transformers
            model directory, or a hub name such as "Qwen/Qwen2.5-7B-Instruct".
        adapter: a LoRA adapter to start from; with `full` it is merged into the weights first.
        full: train all weights instead of a LoRA adapter.
        rank: of the LoRA matrices, which stand on every linear layer but the head.
        lr: the highest learning rate, reached after `warmup` of the steps and then lowered along
            a half cosine.
        warmup: the share of the steps in which the rate rises.
        epochs: passes over the rows.
        steps: optimizer steps, instead of `epochs`; 0 for as many as the epochs take.
        batch: rows in one forward pass of one process.
        accumulate: forward passes in one optimizer step.
        clip: the largest norm of a gradient; 0 for no limit.
        decay: weight decay.
        precision: that the model computes with where the machine can, and that its weights are
            rounded to where they are used. The trained weights are kept in float32.
        layout: how tools are listed; an agent must be run with the same one.
        max_tokens: rows longer than this are left out; 0 for the model's own limit.
        checkpointing: compute activations again in the backward pass: slower, with less memory.
        share: compute the opening that a batch's rows have in common once.
        threads: torch's threads on a CPU; 0 for torch's own choice.
        seed: of the adapter's first weights and of the order of the rows.
        save_at: steps after which a checkpoint is kept.
        save_every: steps between checkpoints of which only the last one is kept; 0 for none.
        eval_every: steps between evaluations; 0 for none.
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
    epochs: int = 1
    steps: int = 0
    batch: int = 4
    accumulate: int = 1
    clip: float = 1.0
    decay: float = 0.0
    precision: Precision = "bfloat16"
    layout: Layout = "description-first"
    max_tokens: int = 0
    checkpointing: bool = False
    share: bool = True
    threads: int = 0
    seed: int = 0
    save_at: tuple[int, ...] = ()
    save_every: int = 50
    eval_every: int = 0
    eval_scenes: int = 24


PRESETS: dict[str, Settings] = {
    "smoke": Settings(
        preset="smoke", evidence=False, model=SCRATCH, full=True, precision="float32",
        lr=3e-3, steps=10, eval_scenes=2, save_every=0,
    ),
    "small": Settings(preset="small", threads=2, layout="spaced-texts"),
    "paper": Settings(
        preset="paper", model="Qwen/Qwen2.5-7B-Instruct", full=True, lr=1e-5, warmup=0.03,
        epochs=2, batch=2, accumulate=8, checkpointing=True, layout="json", save_every=200,
    ),
}  # fmt: skip
"""smoke: the code path in seconds, and no evidence; small: SmolLM2-135M with LoRA on two cores;
paper: Qwen2.5-7B-Instruct, all weights, on several GPUs (`train/configs/fsdp.yaml`)."""

TRAJECTORIES = {"smoke": 24, "small": 1500, "paper": 6050}
"""How many trajectories a preset trains on, where the command makes them."""
EVAL_EVERY = {"smoke": 0, "small": 100, "paper": 0}
"""How often the command evaluates, unless told: at `small` every 100 steps. At `paper` never, for a
model in shards cannot play episodes."""


def processes() -> int:
    """How many processes train together."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def first_process() -> bool:
    """Whether this process is the only one, or the one that speaks and writes for all."""
    return os.environ.get("RANK", "0") == "0"


def preset(name: str, **changes: Any) -> Settings:
    """A preset with some of its settings changed, checked.

    Raises:
        UsageError: for an unknown preset, and for a value that is out of range.
    """
    if name not in PRESETS:
        raise UsageError(unknown("preset", name, PRESETS))
    if "epochs" in changes:  # what is asked for comes before the steps of a preset
        changes = {"steps": 0, **changes}
    settings: Settings = msgspec.structs.replace(PRESETS[name], **changes)
    check(settings)
    return settings


def check(settings: Settings) -> None:
    """Checks settings before anything expensive starts.

    Raises:
        UsageError: naming the setting, its value and its range.
    """
    for name, least in _LEAST.items():
        value = getattr(settings, name)
        if value < least:
            raise UsageError(f"{name} must be at least {least}, not {value}")
    if not (math.isfinite(settings.lr) and settings.lr > 0):
        raise UsageError(f"the learning rate must be above 0, not {settings.lr:g}")
    if not 0 <= settings.warmup < 1:
        raise UsageError(
            f"warmup is a share of the steps, from 0 to below 1, not {settings.warmup:g}"
        )
    if not (settings.epochs or settings.steps):
        raise UsageError("epochs and steps are both 0: nothing would be trained")
    if settings.layout not in LAYOUTS:
        raise UsageError(unknown("layout", settings.layout, LAYOUTS))
    if settings.precision not in get_args(Precision):
        raise UsageError(unknown("precision", settings.precision, get_args(Precision)))
    if any(step < 1 for step in settings.save_at):
        raise UsageError(f"save_at names steps, from 1 up, not {min(settings.save_at)}")
    if settings.steps:
        check_kept(settings, settings.steps)


def check_kept(settings: Settings, steps: int) -> None:
    """Checks that a run of so many optimizer steps has those after which a checkpoint is kept.

    Raises:
        UsageError: where it has not.
    """
    if max(settings.save_at, default=0) > steps:
        raise UsageError(
            f"a checkpoint is to be kept after step {max(settings.save_at)} (--save-at), and the "
            f"run has {steps}"
        )

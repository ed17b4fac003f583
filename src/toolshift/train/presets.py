"""What decides a run of supervised training, as data, and its presets: smoke, small and paper."""

from __future__ import annotations

from typing import Any

from toolshift.core.errors import UsageError
from toolshift.train.settings import SCRATCH, TrainSettings, changed, check_common, check_least

_LEAST = {"epochs": 0, "accumulate": 1, "max_tokens": 0}


class Settings(TrainSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that decides a run of supervised training, apart from its rows.

    The learning rate is lowered along a half cosine after its rise; `batch` counts rows.

    Attributes:
        epochs: passes over the rows.
        accumulate: forward passes in one optimizer step.
        max_tokens: rows longer than this are left out; 0 for the model's own limit.
        steps: optimizer steps, instead of `epochs`; where 0, `epochs` decides.
    """

    epochs: int = 1
    accumulate: int = 1
    max_tokens: int = 0


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


def preset(name: str, **changes: Any) -> Settings:
    """A preset with some of its settings changed, checked."""
    if "epochs" in changes:  # what is asked for comes before the steps of a preset
        changes = {"steps": 0, **changes}
    settings = changed(PRESETS, name, changes)
    check(settings)
    return settings


def check(settings: Settings) -> None:
    """Checks settings before anything expensive starts."""
    check_common(settings)
    check_least(settings, _LEAST)
    if not (settings.epochs or settings.steps):
        raise UsageError("epochs and steps are both 0: nothing would be trained")

"""What a GRPO run says of itself at each step: rewards beside the loss, and where the time went."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from toolshift.train.callbacks import Curves, Progress, Spent, read_curves
from toolshift.train.rollout import Clock

_LOGGED = {
    "reward": "reward",
    "reward_std": "reward_std",
    "flat_groups": "flat_groups",
    "entropy": "entropy",
    "kl": "kl",
    "clipped": "clip_ratio/region_mean",
    "drift": "drift",
    "own_tokens": "completions/mean_length",
}


class RewardCurves(Curves):
    """Writes rewards, their spread and the lengths beside each step."""

    def __init__(self, out: Path, spent: Spent, clock: Clock) -> None:
        super().__init__(out, spent)
        self.clock = clock

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        """Adds what the trainer has logged for a step."""
        if not (state.is_world_process_zero and logs and "reward" in logs):
            return
        logs = {name: value for name, value in logs.items() if value is not None}  # all were void
        line = {name: round(logs[key], 6) for name, key in _LOGGED.items() if key in logs}
        parts = {k: round(v, 6) for k, v in logs.items() if k.startswith("part/")}
        self.add(
            {
                "step": state.global_step,
                **line,
                **parts,
                "loss": round(logs["loss"], 6),
                "lr": logs["learning_rate"],
                "grad_norm": round(float(logs.get("grad_norm", 0.0)), 5),
                "tokens": self.spent.tokens,
                "seconds": round(self.spent.wall, 2),
                "rollout_seconds": round(self.clock.generation, 2),
                "sandbox_seconds": round(self.clock.sandbox, 3),
            }
        )

    def cut(self, step: int) -> None:
        """Takes away what came after a step, and goes on with the clock that stood there."""
        super().cut(step)
        timed = [line for line in read_curves(self.file) if "rollout_seconds" in line]
        if timed:
            self.clock.generation = timed[-1]["rollout_seconds"]
            self.clock.sandbox = timed[-1]["sandbox_seconds"]


class RewardProgress(Progress):
    """Says the reward where `Progress` says the loss."""

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        """Says where the run is, unless it did so a moment ago."""
        if logs and logs.get("reward") is not None:
            super().on_log(args, state, control, {"loss": logs["reward"]})

    def _line(self, step: int, steps: int, now: float) -> str:
        return super()._line(step, steps, now).replace("loss", "reward", 1)

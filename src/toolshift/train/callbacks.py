"""Callbacks of a training run: curves, progress, checkpoints, and an orderly stop."""

from __future__ import annotations

import json
import math
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from toolshift.core.errors import UsageError
from toolshift.lm.checkpoint import RECORD
from toolshift.lm.inference import give_back_memory
from toolshift.train.curves import CURVES, read_curves
from toolshift.train.settings import TrainSettings, check_kept

ASKED = "asked.json"
SPENT = "spent.json"
EVERY_SECONDS = 30.0
CLEARED = "\r\x1b[K"
"""Takes the live line of progress off a terminal."""

Evaluate = Callable[[Any], dict[str, float]]
"""Evaluates the live model; returns named figures."""


class Spent:
    """What a run has cost so far, over all its parts.

    Args:
        tokens: of earlier parts.
        wall: seconds of earlier parts.
        cpu: seconds of earlier parts.

    Attributes:
        tokens: read in training, padding not counted.
        wall: seconds by the clock.
        cpu: seconds of this process.
    """

    def __init__(self, tokens: int = 0, wall: float = 0.0, cpu: float = 0.0) -> None:
        self.tokens, self._wall, self._cpu = tokens, wall, cpu
        self._begun = time.monotonic(), time.process_time()

    @property
    def wall(self) -> float:
        """Seconds by the clock, over all parts of the run."""
        return self._wall + time.monotonic() - self._begun[0]

    @property
    def cpu(self) -> float:
        """Seconds of this process, over all parts of the run."""
        return self._cpu + time.process_time() - self._begun[1]

    def as_dict(self) -> dict[str, float]:
        """For a checkpoint, so that a resumed run continues the count."""
        return {"tokens": self.tokens, "wall": round(self.wall, 2), "cpu": round(self.cpu, 2)}


class Curves(TrainerCallback):
    """Writes one line of `curves.jsonl` for each step, and one for each evaluation."""

    def __init__(self, out: Path, spent: Spent) -> None:
        self.file, self.spent = out / CURVES, spent

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Mapping[str, float] | None = None,
        **_: object,
    ) -> None:
        """Adds what the trainer has logged; its summary at the end is left out."""
        if state.is_world_process_zero and logs and "loss" in logs:
            line = {
                "step": state.global_step,
                "loss": round(logs["loss"], 6),
                "lr": logs["learning_rate"],
                "grad_norm": round(logs.get("grad_norm", math.nan), 5),
                "tokens": self.spent.tokens,
                "seconds": round(self.spent.wall, 2),
            }
            self.add(line)

    def add(self, line: dict[str, Any]) -> None:
        """Adds one line."""
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def cut(self, step: int) -> None:
        """Deletes the lines after a step, because a resumed run repeats them."""
        if self.file.exists():
            kept = [line for line in read_curves(self.file) if line["step"] <= step]
            self.file.write_text("".join(json.dumps(line) + "\n" for line in kept), "utf-8")


class Progress(TrainerCallback):
    """Shows progress and the time left: a live line, or one line every 30 s."""

    def __init__(self, spent: Spent, stream: TextIO | None = None) -> None:
        self.spent, self.stream = spent, stream or sys.stderr
        self.live = self.stream.isatty()
        self.last, self.loss = -math.inf, math.nan
        self.begun: tuple[float, int, int] | None = None

    def on_step_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Starts the clock at the first step, after loading."""
        if self.begun is None:
            self.begun = time.monotonic(), state.global_step, self.spent.tokens
            self.last = self.begun[0]

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Mapping[str, float] | None = None,
        **_: object,
    ) -> None:
        """Says where the run is, unless it did so a moment ago."""
        if not (state.is_world_process_zero and logs and "loss" in logs and self.begun):
            return
        new = logs["loss"]
        self.loss = new if math.isnan(self.loss) else 0.9 * self.loss + 0.1 * new
        now, done = time.monotonic(), state.global_step == state.max_steps
        if not done and now - self.last < (0.5 if self.live else EVERY_SECONDS):
            return
        self.last = now
        line = self._line(state.global_step, state.max_steps, now)
        end = "" if self.live and not done else "\n"
        print((CLEARED if self.live else "") + line, end=end, file=self.stream, flush=True)

    def _line(self, step: int, steps: int, now: float) -> str:
        assert self.begun is not None
        begun, first, tokens = self.begun
        took = max(now - begun, 1e-9)
        left = took / max(step - first, 1) * (steps - step)
        pace = (self.spent.tokens - tokens) / took
        return (
            f"step {step}/{steps}  loss {self.loss:.3f}  {pace:,.0f} tokens/s  {clock(left)} left"
        )


def clock(seconds: float) -> str:
    """A duration for people: 45 s, 12 min, 3 h 05 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02} min"


class Checkpoints(TrainerCallback):
    """Saves at the chosen steps and, of the regular ones, keeps only the last."""

    def __init__(self, settings: TrainSettings, out: Path, spent: Spent) -> None:
        self.settings, self.out, self.spent = settings, out, spent

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Refuses steps that the run does not have."""
        check_kept(self.settings, state.max_steps)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Asks for a checkpoint where one is due."""
        every, step = self.settings.save_every, state.global_step
        if step in self.settings.save_at or (every and step % every == 0):
            control.should_save = True

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Completes a checkpoint; removes the regular ones before it, and all after it.

        Those after it are of a course that was given up when the run was resumed from further back.
        """
        if not state.is_world_process_zero:
            return
        folder = self.out / f"checkpoint-{state.global_step}"
        for needless in ("README.md", "training_args.bin"):
            (folder / needless).unlink(missing_ok=True)
        # What the run was asked for says the layout and the base to whoever loads the checkpoint.
        shutil.copyfile(self.out / ASKED, folder / RECORD)
        (folder / SPENT).write_text(json.dumps(self.spent.as_dict()), "utf-8")
        for other in checkpoints(self.out):
            step, now = step_of(other), state.global_step
            if step > now or (step < now and step not in self.settings.save_at):
                shutil.rmtree(other)


def checkpoints(out: Path) -> list[Path]:
    """The complete checkpoints of a run, first to last."""
    found = [path for path in out.glob("checkpoint-*") if (path / SPENT).exists()]
    return sorted(found, key=step_of)


def step_of(checkpoint: Path) -> int:
    """The step after which a checkpoint was written."""
    return int(checkpoint.name.rpartition("-")[2])


def damaged(checkpoint: Path, fault: Exception) -> UsageError:
    """What to say of a checkpoint that cannot be read."""
    said = str(fault).strip().splitlines() or [type(fault).__name__]
    return UsageError(
        f"{checkpoint} is damaged ({said[0]}): resume from an earlier one with --resume STEP, or "
        "start again in another folder"
    )


class GivesBackMemory(TrainerCallback):
    """Returns freed memory to the system after each step: the episodes of each have other sizes."""

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Returns it."""
        give_back_memory()


class Evaluations(TrainerCallback):
    """Evaluates the live model every so many steps, and at the end.

    Args:
        every: steps between evaluations.
        evaluate: called by the first process only.
        curves: where the figures go.
        before: called by every process before it, for what they have to do together.
    """

    def __init__(
        self,
        every: int,
        evaluate: Evaluate,
        curves: Curves,
        before: Callable[[], object] = lambda: None,
    ) -> None:
        self.every, self.evaluate, self.curves, self.before = every, evaluate, curves, before

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Mapping[str, float] | None = None,
        **kwargs: Any,
    ) -> None:
        """Evaluates where that is due, after the step has been logged."""
        step = state.global_step
        due = step % self.every == 0 or step == state.max_steps
        if not (due and logs and "loss" in logs):
            return
        self.before()
        if state.is_world_process_zero:
            figures = self.evaluate(kwargs["model"])
            self.curves.add({"step": step, **figures})
            shown = "  ".join(f"{name} {value:.3g}" for name, value in figures.items())
            fresh = CLEARED if sys.stderr.isatty() else ""
            print(f"{fresh}step {step}: {shown}", file=sys.stderr, flush=True)


class Stop(TrainerCallback):
    """Ends a run after the step in which it was asked to, with a checkpoint."""

    def __init__(self) -> None:
        self.asked = self.begun = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Takes Ctrl-C and termination as the wish to stop; a second one stops at once."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {name: signal.getsignal(name) for name in (signal.SIGINT, signal.SIGTERM)}
        try:
            for name in before:
                signal.signal(name, self._heard)
            yield
        finally:
            for name, handler in before.items():
                signal.signal(name, handler)

    def on_step_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Notes that everything has been loaded."""
        self.begun = True

    def _heard(self, *_: Any) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        print("\nStopping after this step ...", file=sys.stderr, flush=True)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Asks for a checkpoint and the end."""
        if self.asked and state.global_step < state.max_steps:
            control.should_save = control.should_training_stop = True

"""Running a trainer to its end: Ctrl-C, too little memory, a loss that is no number."""

from __future__ import annotations

import atexit
import gc
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch

from toolshift.core.errors import UsageError
from toolshift.core.files import NO_ROOM
from toolshift.lm.device import device
from toolshift.lm.dtype import computes_in
from toolshift.lm.weights import quiet
from toolshift.train import record
from toolshift.train.callbacks import Stop, checkpoints, damaged, step_of
from toolshift.train.settings import TrainSettings

OF_MEMORY = ("allocate memory", "out of memory", "alloc_cpu", "could not create a primitive")
"""What torch says on a processor where memory is short; the last is what oneDNN says, which
multiplies in bfloat16, and says no more than that."""


class SafeTrainerMixin:
    """What our trainers do otherwise than those of TRL, which they come before."""

    settings: TrainSettings
    state: Any
    args: Any

    def _run_epoch(self, *args: Any, **kwargs: Any) -> None:
        """One pass over the data; none where a run is resumed from its last step.

        For transformers would take one step more before it looks at their number.
        """
        if self.state.global_step < self.state.max_steps:
            super()._run_epoch(*args, **kwargs)  # type: ignore[misc]

    def training_step(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        """One forward and backward pass; stops where the loss is no longer a number."""
        loss: torch.Tensor = super().training_step(*args, **kwargs)  # type: ignore[misc]
        self._require_number("loss", loss)
        return loss

    def _get_grad_norm(self, *args: Any, **kwargs: Any) -> Any:
        """The norm of the gradients; stops before one that is no number reaches the weights."""
        norm = super()._get_grad_norm(*args, **kwargs)  # type: ignore[misc]
        self._require_number("gradient", norm)
        return norm

    def _require_number(self, what: str, value: Any) -> None:
        if value is not None and not torch.isfinite(torch.as_tensor(value)):
            raise UsageError(
                f"the {what} became {float(value)} in step {self.state.global_step + 1}: "
                f"{self.calmer()}, and start again in another folder"
            )

    def _save_checkpoint(self, *args: Any, **kwargs: Any) -> None:
        """Saves a checkpoint; one that cannot be written whole takes no room."""
        out = Path(self.args.output_dir)
        try:
            with _names_unwritten(out):
                super()._save_checkpoint(*args, **kwargs)  # type: ignore[misc]
        except UsageError:
            shutil.rmtree(out / f"checkpoint-{self.state.global_step}", ignore_errors=True)
            raise

    def save_model(self, *args: Any, **kwargs: Any) -> None:
        """Saves the model; says so where it cannot be written."""
        with _names_unwritten(Path(self.args.output_dir)):
            super().save_model(*args, **kwargs)  # type: ignore[misc]

    def calmer(self) -> str:
        """What may keep the loss a number."""
        return f"lower the learning rate (it is {self.settings.lr:g})"

    def _issue_warnings_after_load(self, load_result: Any) -> None:
        """Warns of what a checkpoint lacks, but for tied weights, which are saved once."""
        tied = self.model._tied_weights_keys or ()  # type: ignore[attr-defined]
        load_result.missing_keys[:] = [k for k in load_result.missing_keys if k not in tied]
        super()._issue_warnings_after_load(load_result)  # type: ignore[misc]

    def create_model_card(self, *_: Any, **__: Any) -> None:
        """Nothing: what a run was is in its own record."""

    def _send_telemetry(self) -> None:
        """Nothing is sent anywhere."""


def shared_arguments(settings: TrainSettings, out: Path) -> dict[str, Any]:
    """What all ways of training ask of TRL, whose defaults are meant for a GPU."""
    on_cpu = device() == "cpu"
    return {
        "output_dir": str(out),
        "use_cpu": on_cpu,
        "bf16": settings.full and computes_in(settings.precision) == torch.bfloat16,
        "per_device_train_batch_size": settings.batch,
        "gradient_checkpointing": settings.checkpointing,
        "learning_rate": settings.lr,
        "adam_beta2": 0.99,
        "weight_decay": settings.decay,
        "max_grad_norm": settings.clip,
        "seed": settings.seed,
        "logging_steps": 1,
        "logging_nan_inf_filter": False,
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        "dataloader_pin_memory": not on_cpu,
        "ddp_find_unused_parameters": False,
        "restore_callback_states_from_checkpoint": False,
    }


def complete(
    trainer: Any, checkpoint: Path | None, asked: record.Asked, ways: Sequence[str], left_out: int
) -> None:
    """Runs a trainer to its end and writes its result."""
    stopped = run(trainer, checkpoint, ways)
    record.finish(trainer, asked, left_out)
    if stopped:
        raise KeyboardInterrupt


def run(trainer: Any, checkpoint: Path | None, ways: Sequence[str]) -> bool:
    """Runs a trainer to its end."""
    stop, alone = Stop(), trainer.accelerator.num_processes == 1
    trainer.add_callback(stop)
    if not alone:
        atexit.register(leave_the_others)
    if checkpoint is not None and trainer.is_world_process_zero():
        trainer.curves.cut(step_of(checkpoint))
    # Of several processes one would stop and the others wait for it.
    listening = stop.listening() if alone else nullcontext()
    advice = says_what_to_change(trainer.settings, ways)
    out = Path(trainer.args.output_dir)
    with listening, quiet(), advice, _names_full_disk(out), _names_damage(checkpoint, stop):
        trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    step = trainer.state.global_step
    if stop.asked and step < trainer.state.max_steps:
        print(
            f"Stopped after step {step}; a checkpoint is in {trainer.args.output_dir}. The same "
            "command with --resume continues (`reproduce` does so by itself).",
            file=sys.stderr,
            flush=True,
        )
        raise KeyboardInterrupt
    if stop.asked:
        print(
            f"That was the last step: the result goes to {trainer.args.output_dir}.",
            file=sys.stderr,
            flush=True,
        )
    return stop.asked


@contextmanager
def _names_damage(checkpoint: Path | None, stop: Stop) -> Iterator[None]:
    """Says which checkpoint it is that cannot be read: whatever fails before the first step."""
    try:
        yield
    except UsageError:
        raise
    except Exception as fault:
        if checkpoint is None or stop.begun or _is_memory(fault):
            raise
        raise damaged(checkpoint, fault) from fault


@contextmanager
def _names_unwritten(out: Path) -> Iterator[None]:
    """Says that what was trained cannot be written: each library says that by an error of its own.

    What they raise for a full disk is mostly no `OSError`.
    """
    try:
        yield
    except Exception as fault:
        if isinstance(fault, UsageError) or _is_memory(fault):
            raise
        raise _unwritten(out, fault) from fault


@contextmanager
def _names_full_disk(out: Path) -> Iterator[None]:
    """Says which folder has no room where a line of the curves, or what else is small, has none."""
    try:
        yield
    except OSError as fault:
        if fault.errno not in NO_ROOM:
            raise
        raise _unwritten(out, fault) from fault


def _unwritten(out: Path, fault: Exception) -> UsageError:
    said = str(fault).strip().splitlines() or [type(fault).__name__]
    kept = checkpoints(out)
    way = "the same command again"
    if kept:
        way += f" with --resume, which goes on after step {step_of(kept[-1])}"
    return UsageError(
        f"{out}: what was trained cannot be written there ({said[0]}). Is the disk full? Free some "
        f"space, and run {way}"
    )


def leave_the_others() -> None:
    """Closes the connections to the other processes: open ones may abort a process as it ends.

    The trainer is in cycles and holds them too, through the model that it shares.
    """
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        gc.collect()
        torch.distributed.destroy_process_group()


@contextmanager
def says_what_to_change(settings: TrainSettings, ways: Sequence[str]) -> Iterator[None]:
    """Turns running out of memory into advice."""
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError, RuntimeError) as fault:
        if isinstance(fault, RuntimeError) and not _is_memory(fault):
            raise
        more = [] if settings.checkpointing else ["--checkpointing"]
        more += ["LoRA instead of --full"] if settings.full else []
        ways_out = ", or ".join([*ways, *more])
        raise UsageError(
            f"memory ran out: start again in another folder with {ways_out}"
        ) from fault


@contextmanager
def enough_memory(where: str) -> Iterator[None]:
    """Says that memory ran out where several stages run beside each other, and what to do."""
    try:
        yield
    except (MemoryError, RuntimeError) as fault:
        if isinstance(fault, RuntimeError) and not _is_memory(fault):
            raise
        raise UsageError(
            f"{where}: memory ran out. Finished work is kept, and the same command resumes; run "
            "fewer processes at the same time"
        ) from fault


def _is_memory(fault: Exception) -> bool:
    said = str(fault).lower()
    return isinstance(fault, torch.OutOfMemoryError) or any(mark in said for mark in OF_MEMORY)

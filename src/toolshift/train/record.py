"""The record of a run: what was asked for, by hashes, and what it took; and how it is resumed."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
import torch

from toolshift.core.errors import UsageError
from toolshift.core.files import hold, write
from toolshift.core.tool import JSON
from toolshift.lm.checkpoint import RECORD, training_record
from toolshift.lm.dtype import computes_in
from toolshift.lm.weights import quiet
from toolshift.train.callbacks import ASKED, SPENT, Spent, checkpoints, damaged, step_of
from toolshift.train.curves import read_curves
from toolshift.train.model import Base
from toolshift.train.settings import NO_EVIDENCE, S, TrainSettings, first_process, processes

_MAY_CHANGE = {"save_at", "save_every", "eval_every", "eval_scenes", "threads"}
_PACKAGES = ("toolshift", "torch", "transformers", "trl", "peft", "accelerate")


_WHATEVER_ELSE = {
    "data_sha256": "the rows or scenes",
    "base_sha256": "the weights of the base model",
    "adapter_sha256": "the adapter it starts from",
    "processes": "the number of processes",
}


@dataclass(frozen=True)
class Asked:
    """What decides a run: its settings, its rows and its base, by hashes instead of paths."""

    settings: dict[str, Any]
    data_sha256: str
    rows: int
    base: str
    base_sha256: str
    adapter_sha256: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    processes: int = 1

    @classmethod
    def of(
        cls,
        settings: TrainSettings,
        rows: Sequence[Mapping[str, Any]],
        base: Base,
        data: Mapping[str, Any] | None = None,
    ) -> Asked:
        """Describes a run."""
        digest = hashlib.sha256()
        for row in rows:
            digest.update(JSON.encode([row["messages"], row.get("tools") or []]))
        return cls(
            settings=_named(settings),
            data_sha256=digest.hexdigest(),
            rows=len(rows),
            base=_name(settings.model),
            base_sha256=base.sha256,
            adapter_sha256=adapter_hash(Path(settings.adapter)) if settings.adapter else "",
            data=dict(data or {}),
            processes=processes(),
        )

    def differences(self, other: Mapping[str, Any]) -> list[str]:
        """The names of what differs and decides the steps."""
        mine, other = asdict(self), {"processes": 1, **other}
        differing = [
            name
            for name, value in mine["settings"].items()
            if name not in _MAY_CHANGE and _as_written(value) != other["settings"].get(name)
        ]
        return differing + [
            what for name, what in _WHATEVER_ELSE.items() if mine[name] != other.get(name)
        ]


def _as_written(value: object) -> object:
    """A setting as JSON has it, which knows no tuples."""
    return list(value) if isinstance(value, tuple) else value


def adapter_hash(folder: Path) -> str:
    """The SHA-256 of an adapter's weights, by which a record names the adapter it started from."""
    with (folder / "adapter_model.safetensors").open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def changed_since(
    record: Mapping[str, Any], settings: TrainSettings, data: Mapping[str, Any]
) -> list[str]:
    """What of a finished run is not as it is asked for now, as far as its record tells."""
    now: dict[str, Any] = json.loads(JSON.encode({**_named(settings), **data}))
    then = {**record.get("settings", {}), **record.get("data", {})}
    both = (set(now) & set(then)) - _MAY_CHANGE
    return sorted(name for name in both if now[name] != then[name])


@contextmanager
def begun(out: Path, wanted: Asked, resume: bool | int) -> Iterator[Path | None]:
    """The folder of a run, kept to itself; yields the checkpoint to resume from.

    On the way on, the checkpoints that were to be kept before still are.
    """
    start = _start(out, wanted, resume)
    if start is not None:  # in every process, or one would write a checkpoint alone
        # Of the checkpoint, and not of the run: the latter may be of a resumption that was refused.
        before = _earlier(start / RECORD)["settings"].get("save_at") or ()
        wanted.settings["save_at"] = sorted({*wanted.settings["save_at"], *before})
    if not first_process():
        yield start
        return
    out.mkdir(parents=True, exist_ok=True)
    with alone_in(out):
        if start is None:
            (out / "curves.jsonl").unlink(missing_ok=True)
        write(out / ASKED, json.dumps(asdict(wanted), indent=1).encode())
        yield start


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Keeps other processes out of a folder, which has to be there."""
    lock = folder / ".lock"
    with lock.open("ab") as file:
        hold(file, folder)
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


def with_kept(settings: S, wanted: Asked) -> S:
    """The settings, with the checkpoints that were to be kept before."""
    return msgspec.structs.replace(settings, save_at=tuple(wanted.settings["save_at"]))


def _start(out: Path, wanted: Asked, resume: bool | int) -> Path | None:
    """The checkpoint to resume from; the folder is checked."""
    if out.is_file():
        raise UsageError(f"{out} is a file: name a folder for the result")
    kept, before = checkpoints(out), out / ASKED
    if resume is False:
        if kept:
            raise UsageError(
                f"{out} already contains a run: resume it with --resume, or choose another folder"
            )
        if training_record(out):
            raise UsageError(f"{out} contains a finished run: choose another folder")
        if not before.exists():
            _check_free(out)
        start = None
    else:
        start = _checkpoint(out, kept, resume)
        changed = wanted.differences(_earlier(before))
        if changed:
            raise UsageError(
                f"{out} contains a run with other settings or data ({', '.join(changed)}): "
                "resume it with the same ones, or choose another folder"
            )
    return start


def _check_free(out: Path) -> None:
    """Refuses a folder with a model that no run of ours has written, as that which is trained."""
    for pattern in ("config.json", "adapter_config.json", "*.safetensors", "tokenizer*.json"):
        for file in out.glob(pattern):
            raise UsageError(
                f"{out} already contains a model ({file.name}), which would be lost: choose "
                "another folder for --out"
            )


def _checkpoint(out: Path, kept: list[Path], resume: bool | int) -> Path:
    if not kept and training_record(out):
        raise UsageError(
            f"{out} contains a finished run without a checkpoint: choose another folder"
        )
    if not kept:
        raise UsageError(f"{out} contains no checkpoint to resume from; leave --resume out")
    if resume is True:
        return kept[-1]
    for path in kept:
        if step_of(path) == resume:
            return path
    steps = ", ".join(str(step_of(path)) for path in kept)
    raise UsageError(f"{out} contains no checkpoint of step {resume}; there are: {steps}")


def _earlier(file: Path) -> dict[str, Any]:
    """What a run that is to be resumed was asked for."""
    try:
        stored: dict[str, Any] = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        raise UsageError(
            f"{file}, which records the options of the run, is missing or damaged, so the run "
            "cannot be resumed: choose another folder"
        ) from None
    return stored


def spent_at(checkpoint: Path | None) -> Spent:
    """What a run had cost at a checkpoint."""
    if checkpoint is None:
        return Spent()
    try:
        return Spent(**json.loads((checkpoint / SPENT).read_text("utf-8")))
    except (ValueError, TypeError) as fault:
        raise damaged(checkpoint, fault) from None


def finish(trainer: Any, wanted: Asked, left_out: int) -> None:
    """Writes the result of a run: adapter or model, tokenizer, chat template and record."""
    out, settings = Path(trainer.args.output_dir), trainer.settings
    kept = getattr(torch, settings.precision)
    # What was trained is kept in float32, and rounded where it is used; this is what was used.
    if not trainer.is_fsdp_enabled:
        trainer.model.to(kept)
    if "ref" in getattr(trainer.model, "peft_config", {}):
        trainer.model.delete_adapter("ref")  # TRL's copy of the adapter that the run began from
    card = out / "README.md"
    own = card.read_bytes() if card.exists() else None
    with quiet():
        trainer.save_model(str(out))
    if not trainer.is_world_process_zero():
        return
    card.unlink(missing_ok=True)  # peft writes one
    if own is not None:
        write(card, own)
    _forget_path(out / "adapter_config.json", wanted.base)
    (out / "training_args.bin").unlink(missing_ok=True)
    made = {**asdict(wanted), **_how_it_went(trainer, left_out)}
    write(out / RECORD, json.dumps(made, indent=1).encode())


def named(given_function: Callable[..., Any]) -> dict[str, str]:
    """A function of the user's own, for the record: its name, and a hash of its source.

    The hash is of what is bound to it too; "" where there is no source, as for what was typed at a
    prompt.
    """
    given: list[Any] = []
    function: Any = given_function
    while isinstance(function, partial):
        given.append([function.args, function.keywords])
        function = function.func
    if not hasattr(function, "__qualname__"):
        function = type(function)
    try:
        source = JSON.encode([inspect.getsource(function), *given])
        digest = hashlib.sha256(source).hexdigest()
    except (OSError, TypeError):
        digest = ""
    return {"name": f"{function.__module__}.{function.__qualname__}", "sha256": digest}


def _forget_path(config: Path, base: str) -> None:
    """Names an adapter's base instead of the folder in which it stood."""
    if config.exists():
        settings = json.loads(config.read_text("utf-8"))
        write(config, json.dumps({**settings, "base_model_name_or_path": base}, indent=2).encode())


def _how_it_went(trainer: Any, left_out: int) -> dict[str, Any]:
    losses = [line["loss"] for line in read_curves(trainer.curves.file) if "loss" in line]
    spent = trainer.spent
    return {
        "evidence": "" if trainer.settings.evidence else NO_EVIDENCE,
        "method": getattr(trainer, "method", "sft"),
        "steps": trainer.state.global_step,
        "rows_left_out": left_out,
        "tokens": spent.tokens,
        "wall_seconds": round(spent.wall, 1),
        "cpu_seconds": round(spent.cpu, 1),
        "last_loss": round(sum(losses[-10:]) / max(len(losses[-10:]), 1), 5),
        "versions": {name: _version(name) for name in _PACKAGES},
        "hardware": {
            "machine": platform.machine(),
            "cores": os.cpu_count(),
            "threads": torch.get_num_threads(),
            "processes": trainer.accelerator.num_processes,
            "device": _device(trainer.args.device),
            "computes_in": str(computes_in(trainer.settings.precision)).removeprefix("torch."),
        },
    }


def _device(device: Any) -> str:
    return torch.cuda.get_device_name(0) if device.type == "cuda" else str(device.type)


def _version(package: str) -> str:
    try:
        return version(package)
    except Exception:  # run from a source tree that is not installed
        return ""


def _named(settings: TrainSettings) -> dict[str, Any]:
    """The settings without private paths."""
    plain: dict[str, Any] = msgspec.to_builtins(settings)
    if settings.adapter:  # which has a rank of its own
        config = json.loads((Path(settings.adapter) / "adapter_config.json").read_text("utf-8"))
        plain["rank"] = config.get("r", plain["rank"])
    return {
        **plain,
        "model": _name(settings.model),
        "adapter": Path(settings.adapter).name if settings.adapter else "",
    }


def _name(model: str) -> str:
    return Path(model).resolve().name if Path(model).exists() else model

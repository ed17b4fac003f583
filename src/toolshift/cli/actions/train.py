"""`toolshift train sft` and `toolshift train paft`."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from toolshift.agents.local import shipped_adapter
from toolshift.cli.actions.data import check_share, read_mix, shifted_of
from toolshift.core.errors import UsageError
from toolshift.core.terminal import print_json, progress
from toolshift.lm.checkpoint import trained_layout
from toolshift.train.data import make_rows
from toolshift.train.model import find_base, require_training
from toolshift.train.presets import (
    EVAL_EVERY,
    TRAJECTORIES,
    Settings,
    first_process,
    preset,
)
from toolshift.train.rows import read_rows
from toolshift.train.scenes import Mix

if TYPE_CHECKING:
    from toolshift.train.callbacks import Evaluate
    from toolshift.train.model import Base

_OURS = ("out", "resume", "show_mask", "as_json", "preset")


def sft_command(data: Path, asked: dict[str, Any]) -> None:
    """Trains on the rows of a file."""
    require_training()
    settings = _settings(asked)
    rows = read_rows(data)
    how = {"file": data.name, "sha256": hashlib.sha256(data.read_bytes()).hexdigest()}
    _train(rows, settings, asked, how, None)


def paft_command(alpha: float, count: int, mixed: dict[str, Any], asked: dict[str, Any]) -> None:
    """Trains on the oracle's trajectories, a share `alpha` of them in shifted scenes."""
    settings = _settings(asked)
    mix = read_mix(alpha, mixed)
    find_base(settings)  # before the trajectories are made
    with progress("trajectories") as watch:
        amount = count or TRAJECTORIES[settings.preset]
        rows = make_rows(mix, amount, watch)
    check_share(shifted_of(rows), mix, amount)
    _train(rows, settings, asked, {"mix": msgspec.to_builtins(mix), "count": amount}, mix)


def _settings(asked: Mapping[str, Any]) -> Settings:
    """A preset, changed by the options that were given.

    Raises:
        click.UsageError: where the result has no place to go.
    """
    if asked["out"] is None and not asked["show_mask"]:
        raise click.UsageError("give --out, the folder for the result")
    given = {
        name: value for name, value in asked.items() if name not in _OURS and value is not None
    }
    if "save_at" in given:
        given["save_at"] = steps_of(given["save_at"])
    settings = preset(asked["preset"], **going_on(given))
    check_rank(given, settings.full)
    return settings


def going_on(given: dict[str, Any]) -> dict[str, Any]:
    """Settings completed by what the run starts from.

    An adapter that ships with the package is named by its folder, and the layout is that which the
    start was trained with, where none is asked for.

    Raises:
        UsageError: where no such adapter ships.
    """
    if str(given.get("adapter", "")).startswith("smol:"):
        given = {**given, "adapter": str(shipped_adapter(given["adapter"]))}
    start = given.get("adapter") or given.get("model")
    layout = trained_layout(Path(start)) if start else None
    return {"layout": layout, **given} if layout else given


def check_rank(given: Mapping[str, Any], full: bool) -> None:
    """Refuses a rank where no adapter is made.

    Raises:
        click.UsageError: where all weights are trained, or an adapter is given that has one.
    """
    if full and "rank" in given:
        raise click.UsageError(
            "--rank is for a LoRA adapter, and all weights are trained: give --lora as well"
        )
    if given.get("adapter") and "rank" in given:
        raise click.UsageError(
            "--rank is for a new adapter, and --adapter brings its own: leave one of them out"
        )


def steps_of(text: str) -> tuple[int, ...]:
    """Reads steps such as "200,400,800".

    Raises:
        click.UsageError: for anything else.
    """
    try:
        return tuple(sorted({int(part) for part in text.split(",") if part.strip()}))
    except ValueError:
        raise click.UsageError(f"--save-at {text}: write steps, as in 200,400,800") from None


def _train(
    rows: Sequence[Mapping[str, Any]],
    settings: Settings,
    asked: Mapping[str, Any],
    data: dict[str, Any],
    mix: Mix | None,
) -> None:
    if asked["show_mask"]:
        click.echo(_masked(_telling(rows), settings))
        return
    from toolshift.train.sft import train

    if not settings.evidence and first_process():
        from toolshift.train.record import NO_EVIDENCE

        click.echo(f"Preset {settings.preset}: {NO_EVIDENCE}.", err=True)
    settings, evaluate = _evaluation(rows, settings, asked.get("eval_every"), mix)
    with progress("rows tokenized") as watch:
        out = train(
            rows,
            settings,
            asked["out"],
            resume=read_resume(asked["resume"]),
            data=data,
            evaluate=evaluate,
            watch=watch,
        )
    if first_process():
        _say_done(out, settings, asked["as_json"])


def _evaluation(
    rows: Sequence[Mapping[str, Any]], settings: Settings, asked: int | None, mix: Mix | None
) -> tuple[Settings, Callable[[Base], Evaluate] | None]:
    """How often the live model is evaluated, and by what.

    Raises:
        UsageError: where an evaluation was asked for that the rows do not allow.
    """
    every = EVAL_EVERY[settings.preset] if asked is None else asked
    settings = msgspec.structs.replace(settings, eval_every=every)
    if not every:
        return settings, None
    from toolshift.train.evaluation import evaluation

    try:
        return settings, evaluation(rows, settings, mix)
    except UsageError as fault:
        if asked is not None:
            raise
        click.echo(f"No evaluation on the way: {fault}", err=True)
        return msgspec.structs.replace(settings, eval_every=0), None


def read_resume(asked: str | None) -> bool | int:
    """What --resume asks for: nothing, the last checkpoint, or that of a step."""
    if asked is None or asked == "last":
        return asked == "last"
    if not asked.isdigit():
        raise click.UsageError(f"--resume {asked}: give the step of a checkpoint, or nothing")
    return int(asked)


def _telling(rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The first row with a message that is context only, or else the first."""
    masked = (row for row in rows if any(m.get("weight") == 0 for m in row["messages"]))
    return next(masked, rows[0])


def _masked(row: Mapping[str, Any], settings: Settings) -> str:
    """One row as the model reads it; what is learned is green and in brackets."""
    from toolshift.train.batches import Encoder, show_mask

    base = find_base(settings)
    encoder = Encoder(base.tokenizer, base.template, settings.layout, base.tool_role)
    marks = ("\x1b[32m[[", "]]\x1b[0m") if sys.stdout.isatty() else ("[[", "]]")
    example = encoder.encode(row)
    share = int((example.weights != 0).sum())
    return (
        f"{show_mask(example, base.tokenizer, marks)}\n"
        f"{share} of {len(example.tokens)} tokens are learned; they stand between [[ and ]]."
    )


def _say_done(out: Path, settings: Settings, as_json: bool) -> None:
    from toolshift.lm.checkpoint import training_record

    record = training_record(out)
    if as_json:
        print_json(record)
        return
    what = "model" if settings.full else "adapter"
    size = sum(file.stat().st_size for file in out.glob("*.safetensors"))
    click.echo(
        f"{what} in {out} ({size / 1e6:.1f} MB): {record['steps']} steps, {record['tokens']:,} "
        f"tokens, {record['wall_seconds']:.0f} s, mean loss of the last 10 steps "
        f"{record['last_loss']:.3f}"
    )

"""Supervised training in one call, for Python; what it imports is imported when it trains."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from toolshift.core.errors import UsageError
from toolshift.core.importing import load
from toolshift.core.names import unknown
from toolshift.runs.suite import as_struct
from toolshift.train.data import Watch
from toolshift.train.model import require_training
from toolshift.train.presets import PRESETS, Settings
from toolshift.train.presets import preset as preset_with
from toolshift.train.scenes import Mix
from toolshift.train.settings import SFT, changed


def train_sft(
    rows: Sequence[Mapping[str, Any]],
    out: str | Path,
    *,
    preset: str = "small",
    mix: Mix | None = None,
    resume: bool | int = False,
    weigh: Callable[..., Any] | None = None,
    callbacks: Sequence[Any] = (),
    watch: Watch | None = None,
    **settings: Any,
) -> Path:
    """Trains a model on rows by supervised fine-tuning, and writes it; needs the extra `train`.

        mix = toolshift.Mix(alpha=0.3)
        toolshift.train_sft(toolshift.make_rows(mix, 1500), "runs/paft", mix=mix, eval_every=100)

    Args:
        rows: with `messages` and `tools` in the OpenAI format, as of `make_rows`.
        out: the folder for the adapter or model, its tokenizer, settings, curves and checkpoints.
        preset: "smoke", "small" or "paper".
        mix: that the rows were drawn from: an evaluation plays scenes of it too. Where None, clean
            scenes of the worlds and kinds that the rows name.
        resume: resume from the last checkpoint in `out`, or from that of a step.
        weigh: changes how much each token of a row weighs in the loss.
        callbacks: transformers' own or yours, such as those of trackers.
        watch: told how many rows have been tokenized, and of how many.
        settings: settings of the preset to change, by name: `eval_every`, `lr`, `steps`, `model`,
            `adapter`, `rank`, `seed` and the others of `toolshift train sft --help`.

    Returns:
        `out`: with LoRA an adapter, else a model directory.

    Raises:
        UsageError: for settings, rows, a model or a folder that cannot work, before anything
            expensive starts; where the extra is not installed; and where memory runs out or the
            loss is no longer a number.
        KeyboardInterrupt: after Ctrl-C, when the checkpoint has been written.
    """
    made = _settings(preset, settings)
    require_training()
    evaluate = None
    if made.eval_every and mix is not None:
        evaluate = load("toolshift.train.evaluation:evaluation")(rows, made, mix)
    trained: Path = load(SFT)(
        rows,
        made,
        Path(out),
        resume=resume,
        weigh=weigh,
        evaluate=evaluate,
        watch=watch,
        callbacks=callbacks,
    )
    return trained


def _settings(preset: str, changes: Mapping[str, Any]) -> Settings:
    """The settings of a preset with changes, of which names and types are checked."""
    start = changed(PRESETS, preset, {})
    for name in changes:
        if name not in Settings.__struct_fields__:
            raise UsageError(unknown("setting", name, Settings.__struct_fields__))
    texts = {
        name: value
        for name, value in changes.items()
        if isinstance(value, str) and isinstance(getattr(start, name), str)
    }  # those that are choices are checked with the preset, which names the others
    others = {name: changes[name] for name in changes if name not in texts}
    typed = as_struct({**msgspec.structs.asdict(start), **others}, Settings)
    return preset_with(preset, **texts, **{name: getattr(typed, name) for name in others})

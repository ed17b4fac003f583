"""What surrounds RL in a planned study: where it starts, its scenes, and what it is compared with.

All of it is chosen by rules that the plan fixes: a start that passes some scenes and fails others,
the scenes of which some samples pass, and a supervised run that is stopped where it is as good as
RL.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import msgspec

from toolshift.core.errors import UsageError
from toolshift.core.files import write
from toolshift.core.tool import JSON
from toolshift.lm.checkpoint import training_record
from toolshift.train import grpo_settings
from toolshift.train.callbacks import checkpoints, step_of
from toolshift.train.data import make_rows
from toolshift.train.grpo_settings import GrpoSettings
from toolshift.train.presets import Settings
from toolshift.train.scenes import DEV_SIZE, Mix
from toolshift.train.screen import chosen, screen
from toolshift.train.sft import train as train_sft

REPORT = "chosen.json"
"""Beside a model: between what was chosen, by which figures."""
RECORDS = ("training.json", "asked.json", "curves.jsonl")
"""Of a run, beside the last model that it leaves, and not beside its checkpoints."""
NOT_OF_A_MODEL = ("optimizer*", "scheduler*", "rng_state*", "trainer_state*", "training_args*")
"""What a checkpoint has for a run that goes on from it."""
LOOK = {"turn_tokens": 48, "max_repeats": 3}
"""Limits of the episodes by which is chosen, as those of the plan's rollouts."""


class Choice(msgspec.Struct, frozen=True):
    """One of those that were looked at: its number, and the share of scenes that it passed."""

    number: int
    passed: float


def pick_start(found: list[Choice], window: tuple[float, float]) -> Choice:
    """The first that passes a share within the window; else the one nearest to its middle."""
    inside = [each for each in found if window[0] <= each.passed <= window[1]]
    middle = sum(window) / 2
    return inside[0] if inside else min(found, key=lambda each: abs(each.passed - middle))


def pick_match(found: list[Choice], wanted: float) -> Choice:
    """The one whose share is nearest; of equals the earliest."""
    return min(found, key=lambda each: (abs(each.passed - wanted), each.number))


def train_start(mix: Mix, more: dict[str, Any], settings: Settings, out: Path) -> Path:
    """Trains on so many clean trajectories, and on more until it passes as the plan wants.

    Each is a fit of its own in `size-N` beside `out`; those that are done are not made again.
    """
    found: list[Choice] = []
    for size in more["sizes"]:
        folder = out.parent / f"size-{size}"
        if not training_record(folder):
            _fit(mix, size, settings, folder)
        share = _share(mix, settings, folder, more["tries"], greedy=False)
        found.append(Choice(size, share))
        if more["window"][0] <= share <= more["window"][1]:
            break
    best = pick_start(found, tuple(more["window"]))
    return _take(out.parent / f"size-{best.number}", out, found, best)


def train_matched(
    mix: Mix, count: int, more: dict[str, Any], settings: Settings, out: Path
) -> Path:
    """Trains on fresh clean trajectories, and keeps the checkpoint as good as another arm's model.

    As good is the nearest greedy accuracy on scenes of the development pool. Without a target,
    which may still be in training, all else is done, and the folder of the run is returned.
    """
    folder = out.parent / "all"
    steps = count // settings.batch
    kept = tuple(range(more["every"], steps + 1, more["every"]))
    asked = msgspec.structs.replace(settings, save_at=kept)
    if not training_record(folder):
        _fit(mix, count, asked, folder)
    looked = [
        Choice(step_of(each), _share(mix, settings, each, more["tries"], greedy=True))
        for each in checkpoints(folder)
    ]
    if "target" not in more:
        return folder
    beside = out.parent / "target-dev.jsonl"
    target = Path(more["target"])
    wanted = _share(mix, settings, target, more["tries"], greedy=True, beside=beside)
    best = pick_match(looked, wanted)
    return _take(folder / f"checkpoint-{best.number}", out, looked, best, wanted=wanted)


def with_scenes(
    mix: Mix, more: dict[str, Any], settings: GrpoSettings, folder: Path
) -> GrpoSettings:
    """GRPO's settings with the scenes of which some samples pass and some fail."""
    found = screen(mix, settings, folder / "screen.jsonl", more["screen"], more["samples"])
    kept = chosen(found, 1, more["samples"] - 1)
    if len(kept) < settings.groups:
        raise UsageError(
            f"no scenes to train on: {len(kept)} of {len(found)} pass at times, and a step takes "
            f"{settings.groups}; the plan has to start from another model or screen more"
        )
    return msgspec.structs.replace(settings, scenes=kept)


def _fit(mix: Mix, count: int, settings: Settings, folder: Path) -> None:
    told = {"mix": msgspec.to_builtins(mix), "count": count}
    train_sft(make_rows(mix, count), settings, folder, resume=bool(checkpoints(folder)), data=told)


def _share(
    mix: Mix,
    settings: Settings,
    folder: Path,
    tries: int,
    *,
    greedy: bool,
    beside: Path | None = None,
) -> float:
    """The share of clean scenes that a model passes: sampled in training's, greedily in dev's."""
    made = {"model": str(folder)} if settings.full else {"adapter": str(folder)}
    base = {"model": settings.model, "layout": settings.layout, "seed": settings.seed, **made}
    asked = grpo_settings.preset(settings.preset, **base, threads=settings.threads, **LOOK)
    there = {"pool": "dev", "size": DEV_SIZE} if greedy else {"seed": mix.seed + 1000}
    clean = msgspec.structs.replace(mix, alpha=0.0, slips=0.0, share=1, **there)
    file = beside or folder.with_name(f"{folder.name}-{'dev' if greedy else 'sampled'}.jsonl")
    found = screen(clean, asked, file, tries, samples=1, greedy=greedy)
    return sum(each.passed for each in found) / len(found)


def _take(model: Path, out: Path, looked: list[Choice], best: Choice, **more: Any) -> Path:
    """Makes one of several models that of the stage, and says between what was chosen."""
    if out.exists():
        shutil.rmtree(out)
    shutil.copytree(model, out, ignore=shutil.ignore_patterns("checkpoint-*", *NOT_OF_A_MODEL))
    for file in RECORDS if model.name.startswith("checkpoint-") else ():
        shutil.copyfile(model.parent / file, out / file)
    write(out / REPORT, JSON.encode({"looked at": looked, "chosen": best, **more}) + b"\n")
    return out

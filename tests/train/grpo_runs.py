"""Small runs of GRPO, what they are paid, and what is read of them."""

from __future__ import annotations

import torch
from safetensors.torch import load_file

from toolshift.episode.grade import grade
from toolshift.train.curves import read_curves
from toolshift.train.grpo_settings import preset
from toolshift.train.reward import Earned
from toolshift.train.scenes import Mix

MIX = Mix(kinds=("hours", "listing"), size=200)


def settings(model, **changes):
    given = {"model": str(model), "full": True, "steps": 2, "threads": 1, **changes}
    return preset("smoke", **given)


def letters(episode):
    """Pays for small letters: something that an untrained model can be taught in seconds."""
    said = "".join(step.said for step in episode.steps)
    share = sum(letter.islower() for letter in said) / max(1, len(said))
    return Earned(share, {"letters": share}, grade(episode))


def plain_letters(episode):
    """The same as a plain number."""
    return letters(episode).total


def by_scene(episode):
    """Pays by the scene alone, so that no sample of a group is better than another."""
    return float(len(str(episode.scene.asks)))


def weights(out):
    whole = out / "model.safetensors"
    return load_file(whole if whole.exists() else out / "adapter_model.safetensors")


def same(one, other, tolerance=0.0):
    one, other = weights(one), weights(other)
    return all(torch.allclose(one[name], other[name], atol=tolerance, rtol=0) for name in one)


def steps_of(out):
    return [line for line in read_curves(out / "curves.jsonl") if "reward" in line]

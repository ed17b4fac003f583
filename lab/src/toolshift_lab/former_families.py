"""The training families of version 1, which the studies were trained on."""

from __future__ import annotations

from msgspec.structs import replace

from toolshift.core.shift import split_version
from toolshift.shifts.training_families import OURS
from toolshift.train.scenes import Mix
from toolshift_lab.former_shifts import FORMER

NAMES = tuple(name for name in OURS if not split_version(name)[1])


def _as_it_was(entry: str) -> str:
    """An entry of a family with the former versions of its shifts."""
    parts = (part.partition(":") for part in entry.split("+"))
    return "+".join(
        f"{name}@1{colon}{rest}" if f"{name}@1" in FORMER else f"{name}{colon}{rest}"
        for name, colon, rest in parts
    )


for _name in NAMES:
    OURS[f"{_name}@1"] = tuple(map(_as_it_was, OURS[_name]))


def as_trained(mix: Mix) -> Mix:
    """A mix of a study with the families of version 1 in place of those of today.

    What a study declares names families without a version, and so do the records of its stages.
    Draws are derived from names without versions, so the rows are those of the time.
    """
    entries = (entry.partition(":") for entry in mix.shifts)
    shifts = tuple(
        f"{name}@1{colon}{rest}" if name in NAMES else f"{name}{colon}{rest}"
        for name, colon, rest in entries
    )
    return replace(mix, shifts=shifts)

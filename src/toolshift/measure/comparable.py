"""Which runs can be compared, and why others cannot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import msgspec

from toolshift.core.scene import Applied
from toolshift.core.shift import split_version
from toolshift.measure.two_runs import reader_of_prose
from toolshift.runs.cell import write_stack
from toolshift.runs.run_folder import RunFolder

_FIELDS = {
    "suite": "suite",
    "worlds": "worlds",
    "kinds": "task kinds",
    "tasks": "tasks of each world and seed",
    "trials": "trials of each scene",
    "seeds": "seeds",
    "pool": "pool",
    "size": "entities in each world",
    "placebo": "placebo arm",
    "under": "shifts that every scene stands under",
}
"""The fields of a selection that are shown with both values."""


class Group(msgspec.Struct, frozen=True):
    """Runs of one plan: the same scenes, under the same versions of shifts.

    Attributes:
        runs: their places in the list of runs.
        notes: what differs between them all the same.
    """

    plan_hash: str
    suite: str
    runs: list[int]
    notes: list[str]


class Apart(msgspec.Struct, frozen=True):
    """Two groups whose scores must not be compared.

    Attributes:
        first: the place of a group; likewise `second`.
        shared: scenes that both have, which `toolshift compare` can pair.
        reasons: what differs.
    """

    first: int
    second: int
    shared: int
    reasons: list[str]


class Comparability(msgspec.Struct, frozen=True):
    """Groups of comparable runs, and why the groups are not comparable with each other."""

    groups: list[Group]
    apart: list[Apart]


def comparability(folders: Sequence[RunFolder]) -> Comparability:
    """Groups runs by their plans."""
    places: dict[str, list[int]] = {}
    for place, folder in enumerate(folders):
        places.setdefault(folder.manifest.plan_hash, []).append(place)
    groups = [
        Group(plan, folders[runs[0]].manifest.suite, runs, _notes([folders[r] for r in runs]))
        for plan, runs in places.items()
    ]
    heads = [folders[group.runs[0]] for group in groups]
    scenes = [{*head.cells} for head in heads]
    apart = [
        Apart(one, two, len(scenes[one] & scenes[two]), list(_reasons(heads[one], heads[two])))
        for one, two in combinations(range(len(groups)), 2)
    ]
    return Comparability(groups, apart)


def _notes(folders: Sequence[RunFolder]) -> list[str]:
    """What, beside the agents, may explain a difference between runs of one plan."""
    notes = []
    made = dict.fromkeys(folder.manifest.graded_by for folder in folders)
    if len(made) > 1:
        notes.append(
            f"graded by ToolShift {', '.join(made)}: `toolshift regrade RUN --write` grades all of "
            "them by the rules of one version"
        )
    readers = dict.fromkeys(reader_of_prose(folder.manifest) for folder in folders)
    if len(readers) > 1:
        notes.append(f"prose was read differently: {', '.join(readers)}")
    return notes


def _reasons(one: RunFolder, two: RunFolder) -> Iterator[str]:
    """The differences between two plans, each in one clause."""
    first, second = one.manifest.selection, two.manifest.selection
    reasons = [
        f"{label}: {_value(getattr(first, field))}, and {_value(getattr(second, field))}"
        for field, label in _FIELDS.items()
        if getattr(first, field) != getattr(second, field)
    ]
    yield from reasons
    versions = list(_versions(one.manifest.shifts, two.manifest.shifts))
    yield from versions
    if first.arms != second.arms and not versions:
        yield "other shifts, severities or numbers of tasks of a shift"
    elif not reasons and not versions:
        yield "the worlds have changed between the runs, so that the same tasks are others now"


def _versions(first: dict[str, int], second: dict[str, int]) -> Iterator[str]:
    """Shifts that both have in other versions."""
    mine, theirs = _by_base(first), _by_base(second)
    for name, version in mine.items():
        if theirs.get(name, version) != version:
            yield f"{name}: version {version}, and {theirs[name]}"


def _by_base(shifts: dict[str, int]) -> dict[str, int]:
    return {split_version(name)[0]: version for name, version in shifts.items()}


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple) and value and isinstance(value[0], Applied):
        return write_stack(value)
    return ", ".join(map(str, value)) or "all" if isinstance(value, tuple) else str(value)

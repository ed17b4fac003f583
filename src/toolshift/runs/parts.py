"""Parts of one run, made with seeds of their own on as many machines, read as the whole run.

A plan is made seed by seed, so the plans of the parts in a row are the plan of the whole,
with its hash; and the report of both is the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, pairwise
from pathlib import Path

import msgspec

from toolshift.core.errors import UsageError
from toolshift.runs.own import OwnParts
from toolshift.runs.plan import Plan
from toolshift.runs.run_folder import Manifest, Record, RunFolder
from toolshift.worlds.registry import find_world, is_loaded


class JoinedRun(RunFolder):
    """The run that several parts form together, for reading.

    Args:
        parts: in the order of their seeds.
        manifest: of the whole.
        plan: of the whole.
    """

    def __init__(self, parts: Sequence[RunFolder], manifest: Manifest, plan: Plan) -> None:
        names = "+".join(part.path.resolve().name for part in parts)
        super().__init__(Path(names), manifest, plan)
        self.parts = parts
        self.own = OwnParts(*(part.path for part in parts))

    def records(self) -> Iterator[Record]:
        """The finished episodes, part by part."""
        return chain.from_iterable(part.records() for part in self.parts)

    def some(self, episodes: Collection[str]) -> Iterator[Record]:
        """The finished episodes of these names; the others are passed over."""
        return chain.from_iterable(part.some(episodes) for part in self.parts)

    def timings(self) -> dict[str, float]:
        """The seconds of each episode."""
        return {name: took for part in self.parts for name, took in part.timings().items()}


def joined(folders: Sequence[RunFolder]) -> RunFolder:
    """Joins runs that are parts of one run."""
    parts = sorted(folders, key=lambda folder: folder.manifest.selection.seeds)
    first = parts[0]
    for part in parts if len(parts) > 1 else ():
        if part.manifest.sequential:
            raise UsageError(
                f"{part.path} stopped by itself when it had decided, so it cannot be a part of "
                "another run: finish it with --design fixed first"
            )
    for part in parts[1:]:
        if differs := _difference(first.manifest, part.manifest):
            raise UsageError(f"{first.path} and {part.path} are not parts of one run: {differs}")
    for one, other in pairwise(parts):
        mine, theirs = one.manifest.selection.seeds, other.manifest.selection.seeds
        if mine[-1] >= theirs[0]:
            raise UsageError(
                f"{one.path} and {other.path} are not parts of one run: both have seed "
                f"{theirs[0]}. Give each part different seeds (--seed)"
            )
        if mine[-1] + 1 < theirs[0]:
            raise UsageError(
                f"between {one.path}, to seed {mine[-1]}, and {other.path}, from seed "
                f"{theirs[0]}, a part is missing. Name it, or make it (--seed {mine[-1] + 1} "
                f"--seeds {theirs[0] - mine[-1] - 1})"
            )
    for name in first.manifest.selection.worlds if len(parts) > 1 else ():
        if _is_given(first, name):
            raise UsageError(
                f"{name} has fixed tasks, so parts with other seeds have the same tasks"
            )
    seeds = tuple(seed for part in parts for seed in part.manifest.selection.seeds)
    selection = msgspec.structs.replace(first.manifest.selection, seeds=seeds)
    versions = {name: v for part in parts for name, v in part.manifest.shifts.items()}
    rows = tuple(row for part in parts for row in part.plan.rows)
    plan = Plan(selection, dict(sorted(versions.items())), rows)
    of = [part.manifest for part in parts]
    manifest = msgspec.structs.replace(
        first.manifest,
        python=_each(one.python for one in of),
        platform=_each(one.platform for one in of),
        packages={
            name: _each(one.packages.get(name, "none") for one in of)
            for name in dict.fromkeys(name for one in of for name in one.packages)
        },
        selection=selection,
        shifts=plan.versions,
        plan_hash=plan.hash,
        plugins=tuple(dict.fromkeys(name for part in parts for name in part.manifest.plugins)),
        started=min(part.manifest.started for part in parts),
    )
    return JoinedRun(parts, manifest, plan)


def _is_given(run: RunFolder, name: str) -> bool:
    """Whether the tasks of a world are given, so that each seed has the same."""
    if name in run.manifest.task_ids or "@" in name:
        return True
    return is_loaded(name) and bool(find_world(name).counts)


def _each(values: Iterable[str]) -> str:
    """Joins the notes of the parts without duplicates."""
    return ", ".join(dict.fromkeys(values))


def _difference(one: Manifest, other: Manifest) -> str:
    """The difference of two manifests apart from their seeds; "" for parts of one run."""
    change = msgspec.structs.replace
    first, second = (msgspec.structs.asdict(change(m.selection, seeds=())) for m in (one, other))
    if changed := [name for name in first if first[name] != second[name]]:
        return f"they differ in {', '.join(changed)}"
    if one.agents != other.agents:
        return "they are of other agents, or agents with other settings"
    for name, version in one.shifts.items():
        if other.shifts.get(name, version) != version:
            return f"{name} is version {version} in one and {other.shifts[name]} in the other"
    if one.graded_by != other.graded_by:
        return (
            f"they were graded by ToolShift {one.graded_by} and {other.graded_by} "
            "(`toolshift regrade RUN --write` grades them by one)"
        )
    return ""

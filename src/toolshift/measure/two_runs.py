"""Two runs, paired scene by scene: what must be the same in both, and what is noted.

A gate and a comparison stand on it.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from toolshift.core.errors import UsageError
from toolshift.core.names import unknown
from toolshift.core.shift import split_version
from toolshift.runs.cell import Cell
from toolshift.runs.run_folder import Manifest, Record, RunFolder


class PairedScene(msgspec.Struct, frozen=True):
    """A scene that both runs planned, and what became of it."""

    cell: Cell
    before: Record | None
    after: Record | None

    @property
    def scored(self) -> bool:
        """Whether both verdicts are known."""
        return self.known and self.after is not None and not self.after.grade.void

    @property
    def known(self) -> bool:
        """Whether the baseline's verdict is known."""
        return self.before is not None and not self.before.grade.void


class PairedRuns(msgspec.Struct, frozen=True):
    """An agent of a baseline and one of a candidate, on the baseline's scenes.

    Attributes:
        before: the baseline's agent; `after` the candidate's.
        scenes: all that the baseline planned, with what became of them in both runs.
    """

    before: str
    after: str
    scenes: list[PairedScene]


def pair_runs(
    baseline: RunFolder, candidate: RunFolder, baseline_agent: str = "", candidate_agent: str = ""
) -> PairedRuns:
    """Pairs two runs; without a name, the baseline's agent is that of the candidate's name."""
    same_shifts(baseline, candidate)
    second = find_agent(candidate, candidate_agent)
    names = [str(agent["name"]) for agent in baseline.manifest.agents]
    first = find_agent(baseline, baseline_agent or (second if second in names else ""))
    before, after = by_cell(baseline, first), by_cell(candidate, second)
    scenes = [
        PairedScene(cell, before.get(cell.id), after.get(cell.id)) for cell in baseline.plan.cells
    ]
    return PairedRuns(first, second, scenes)


def baseline_alone(
    baseline: RunFolder, candidate: str, baseline_agent: str
) -> tuple[str, list[PairedScene]]:
    """The baseline's agent for a candidate of this name, and its scenes, of which none is asked."""
    names = [str(agent["name"]) for agent in baseline.manifest.agents]
    name = find_agent(baseline, baseline_agent or (candidate if candidate in names else ""))
    before = by_cell(baseline, name)
    scenes = [PairedScene(cell, before.get(cell.id), None) for cell in baseline.plan.cells]
    check_whole(baseline, scenes)
    return name, scenes


def check_whole(baseline: RunFolder, every: Iterable[PairedScene]) -> None:
    """Checks that a baseline is no selection of scenes that its own results have made."""
    if baseline.manifest.sequential and any(scene.before is None for scene in every):
        raise UsageError(
            f"{baseline.path} stopped when it had decided, so it cannot be a baseline: its "
            "scenes depend on their results. Run its command again with --design fixed and "
            "--out, which runs the remaining scenes"
        )


def itself_notes(runs: PairedRuns, baseline: RunFolder, candidate: RunFolder) -> list[str]:
    """That a run is compared with itself, where it is."""
    if runs.before != runs.after or baseline.path.resolve() != candidate.path.resolve():
        return []
    return [
        f"{candidate.path} is compared with itself, so nothing can be lost: is --baseline the "
        "run of the current release?"
    ]


def same_shifts(before: RunFolder, after: RunFolder) -> None:
    """Checks that a shift of both runs is of one version."""
    old, new = before.manifest.shifts, after.manifest.shifts
    changed = [
        f"{name} is version {version} in {before.path} and {new[name]} in {after.path}"
        for name, version in old.items()
        if new.get(name, version) != version
    ]
    if changed:
        raise UsageError(
            f"the scenes are not the same: {'; '.join(changed)}. Run the earlier one again."
        )


def version_notes(before: RunFolder, after: RunFolder) -> list[str]:
    """The differences between two runs beside their agents."""
    old, new = before.manifest.toolshift, after.manifest.toolshift
    notes = []
    if old != new:
        notes.append(f"{before.path} was run with ToolShift {old} and {after.path} with {new}.")
    first, second = ({*folder.manifest.shifts} for folder in (before, after))
    moved = {split_version(n)[0] for n in first - second} & {
        split_version(n)[0] for n in second - first
    }
    readers = {reader_of_prose(folder.manifest): folder.path for folder in (before, after)}
    if len(readers) > 1:
        readings = "; ".join(f"{path} {reader}" for reader, path in readers.items())
        notes.append(f"Endings in prose were read differently: {readings}.")
    if moved:
        notes.append(
            f"{', '.join(sorted(moved))}: the runs have different versions of it, which are not "
            "compared. --suite NAME@VERSION runs an earlier version again."
        )
    return notes


def reader_of_prose(manifest: Manifest) -> str:
    """How the endings in prose of a run were read, as in "by rule" and "by chat:MODEL"."""
    judges = dict.fromkeys(agent.get("judge", {}).get("judge", "rule") for agent in manifest.agents)
    return "by " + " and ".join(judges)


def find_agent(folder: RunFolder, name: str) -> str:
    """The agent of this name; the only one where no name is given."""
    names = [str(agent["name"]) for agent in folder.manifest.agents]
    if not name:
        if len(names) > 1:
            raise UsageError(
                f"{folder.path} has several agents ({', '.join(names)}): name one with --agent"
            )
        return names[0]
    if name not in names:
        raise UsageError(f"{folder.path}: " + unknown("agent", name, names))
    return name


def by_cell(folder: RunFolder, agent: str) -> dict[str, Record]:
    """An agent's episodes by the id of their cell, without their steps."""
    return {
        record.cell: msgspec.structs.replace(record, steps=())
        for record in folder.records()
        if record.agent == agent
    }

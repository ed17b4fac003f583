"""Compares two runs, paired on the scenes that both have."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from toolshift.core.errors import UsageError
from toolshift.core.scene import Scene, Stack
from toolshift.episode.episode import End, heard_in, read_ending
from toolshift.episode.grade import Grade, regrade
from toolshift.measure import statistics as st
from toolshift.measure.metrics import ALPHA, TIER_ORDER, Scores, dimension_of, shift_of, tier_of
from toolshift.measure.statistics import Interval
from toolshift.measure.two_runs import by_cell, find_agent, same_shifts, version_notes
from toolshift.reading.prose import ProseReader
from toolshift.runs.cell import Cell
from toolshift.runs.decisions import judged
from toolshift.runs.own import NotStored
from toolshift.runs.run_folder import REPORT_FORMAT, Record, RunFolder
from toolshift.shifts.registry import find_shift


class Contrast(msgspec.Struct, frozen=True):
    """A change between two runs on the same scenes, after minus before.

    Attributes:
        pairs: scenes that were scored in both; tasks are the clusters of the interval.
        lost: passed before and fail after; `gained` the other way round.
        p_value: of no change, adjusted over the table (Holm).
        examples: episodes of the later run that have been lost.
    """

    label: str
    pairs: int
    tasks: int
    before: Interval
    after: Interval
    change: Interval
    lost: int
    gained: int
    p_value: float
    significant: bool
    examples: list[str]


class Comparison(msgspec.Struct, frozen=True):
    """Two agents or two versions of one, on the same scenes.

    Attributes:
        only_before: scenes that only the earlier run has; likewise `only_after`.
        void: pairs left out, because an episode of either was void. Those that the agent's own
            program declared are kept, as failures.
        notes: what may explain a change beside the agents.
    """

    before: str
    after: str
    clean: Contrast | None
    everything: Contrast
    tiers: list[Contrast]
    cells: list[Contrast]
    shifts: list[Contrast]
    only_before: int
    only_after: int
    void: int
    notes: list[str]
    format: int = REPORT_FORMAT


class Regraded(msgspec.Struct, frozen=True):
    """A verdict that has changed since the trace was made."""

    episode: str
    before: Grade
    after: Grade


Pair = tuple[Cell, Record, Record]


def compare(
    before: RunFolder, after: RunFolder, agent_before: str = "", agent_after: str = ""
) -> Comparison:
    """Compares an agent of one run with an agent of another, scene by scene; "" is the only one."""
    same_shifts(before, after)
    first, second = find_agent(before, agent_before), find_agent(after, agent_after)
    one, other = by_cell(before, first), by_cell(after, second)
    both = [name for name in before.cells if name in one and name in other]
    if not both:
        raise UsageError(
            f"{before.path} and {after.path} have no scene in common: compare runs of the same "
            "suite, seeds, pool and size"
        )
    every = [(before.cells[name], one[name], other[name]) for name in both]
    pairs = [p for p in every if not p[1].grade.excused and not p[2].grade.excused]
    shifted = [pair for pair in pairs if pair[0].shifts]
    clean = [pair for pair in pairs if not pair[0].shifts]
    return Comparison(
        before=first,
        after=second,
        clean=_contrast("clean", clean) if clean else None,
        everything=_contrast("all scenes", pairs),
        tiers=_table(shifted, tier_of, TIER_ORDER),
        cells=_table(shifted, lambda cell: f"{tier_of(cell)} / {dimension_of(cell)}"),
        shifts=_table(shifted, shift_of),
        only_before=len(one) - len(both),
        only_after=len(other) - len(both),
        void=len(every) - len(pairs),
        notes=[*version_notes(before, after), *_sequential_notes(before, after)],
    )


def regrade_run(
    folder: RunFolder,
    judge: ProseReader | None = None,
    leave: Callable[[str], None] = lambda why: None,
) -> tuple[list[Record], list[Regraded]]:
    """Grades the traces of a run again, from what its folder holds; gives what has changed too.

    Where that is not enough to make a scene, the verdict stays as it is stored, and `leave` is told
    why. Without a judge every ending stays as it was read.
    """
    shifts_as_they_were(folder)
    records, changed = [], []
    for record in folder.records():
        try:
            scene = folder.scene(folder.cell(record))
        except NotStored as why:
            leave(str(why))
            records.append(record)
            continue
        read = reread(scene, record, judge) if judge else record
        read = msgspec.structs.replace(read, steps=judged(scene, read.steps, read.end, judge))
        verdict = regrade(scene, read.steps, read.end)
        if verdict != record.grade:
            changed.append(Regraded(record.episode, record.grade, verdict))
        records.append(msgspec.structs.replace(read, grade=verdict))
    return records, changed


def reread(scene: Scene, record: Record, judge: ProseReader) -> Record:
    """Reads again the words that ended an episode: prose, or an answer that was read as a refusal.

    Where the judge takes it for what would not have ended it (a question, or an answer to a request
    that others follow), nobody knows how it would have gone on, so it stays as it was read.
    """
    if not record.steps or record.end not in ("answered", "refused"):
        return record
    *before, last = record.steps
    if not (last.prose or last.through):
        return record
    answered = sum(step.kind == "answer" for step in before)
    shown = "\n".join(step.text for step in before if step.kind == "call")
    heard = heard_in(before, scene.asks[answered])
    reading = read_ending(scene, last.said, shown, heard, judge, bool(last.through))
    end: End = "refused" if reading.kind == "refusal" else "answered"
    if reading.kind == "question" or (end == "answered" and answered + 1 < len(scene.asks)):
        return record
    kind, name = ("refuse", reading.reason) if end == "refused" else ("answer", "")
    through = last.through if end == "refused" else ""
    ending = msgspec.structs.replace(
        last, kind=kind, name=name, through=through, judge=reading.judge
    )
    return msgspec.structs.replace(record, steps=(*before, ending), end=end)


def _sequential_notes(*runs: RunFolder) -> list[str]:
    """Which runs left out episodes by what came of others: their scenes are a selection."""
    return [
        f"{run.path} stopped when it had decided: its scenes depend on their results. --design "
        "fixed runs the remaining scenes."
        for run in runs
        if run.manifest.sequential
    ]


def shifts_as_they_were(folder: RunFolder) -> None:
    """Checks that the shifts of a run have not changed since."""
    for name, version in folder.manifest.shifts.items():
        now = find_shift(name).version
        if now != version:
            raise UsageError(
                f"{folder.path} was run with version {version} of {name}, and the current "
                f"version is {now}: its traces belong to other scenes. Start a new run, or use "
                f"the ToolShift that made them ({folder.manifest.toolshift})."
            )


def _table(
    pairs: Iterable[Pair], key: Callable[[Cell], str], order: Iterable[str] = ()
) -> list[Contrast]:
    """A row for each `key`, which says something of the shifts of a cell alone."""
    groups: dict[str, list[Pair]] = defaultdict(list)
    said: dict[Stack, str] = {}
    for pair in pairs:
        shifts = pair[0].shifts
        if shifts not in said:
            said[shifts] = key(pair[0])
        groups[said[shifts]].append(pair)
    known = [label for label in order if label in groups]
    labels = known + [label for label in groups if label not in known]
    rows = [_contrast(label, groups[label]) for label in labels]
    adjusted = st.holm([row.p_value for row in rows])
    change: Any = msgspec.structs.replace
    return [
        change(row, p_value=p, significant=p < ALPHA) for row, p in zip(rows, adjusted, strict=True)
    ]


def _contrast(label: str, pairs: list[Pair]) -> Contrast:
    before, after = _scores(pairs)
    p_value = st.drop_p_value(after, before)
    lost = [b.episode for _, a, b in pairs if a.grade.passed and not b.grade.passed]
    return Contrast(
        label=label,
        pairs=len(pairs),
        tasks=len(before),
        before=st.cluster_rate(list(before.values())),
        after=st.cluster_rate(list(after.values())),
        change=st.paired_drop(after, before),
        lost=len(lost),
        gained=sum(b.grade.passed and not a.grade.passed for _, a, b in pairs),
        p_value=p_value,
        significant=p_value < ALPHA,
        examples=lost[:5],
    )


def _scores(pairs: list[Pair]) -> tuple[Scores, Scores]:
    """Passes by task, before and after; the scenes of a task are its trials."""
    before: Scores = defaultdict(list)
    after: Scores = defaultdict(list)
    for cell, first, second in pairs:
        task = cell.lineage
        before[task].append(float(first.grade.passed))
        after[task].append(float(second.grade.passed))
    return before, after

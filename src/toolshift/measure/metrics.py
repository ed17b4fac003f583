"""From graded episodes to measures: per tier, dimension, shift, severity, task kind and world.

The task is the cluster of every interval. A drop is clean minus shifted on the same tasks, and is
defined only where the clean accuracy of those tasks is at least one half. A contrast is *told
apart* where its adjusted p value is below 0.05 and the placebo arm does not explain it: Holm over
the four tiers and over the tier x dimension family, Benjamini-Hochberg over the other tables.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isnan, nan
from typing import Any

import msgspec

from toolshift.core.message import Usage
from toolshift.core.shift import TIERS
from toolshift.core.tool import BROKEN_SHIFT
from toolshift.episode.grade import Grade
from toolshift.measure import statistics as st
from toolshift.measure.power import smallest_drop
from toolshift.measure.statistics import Interval
from toolshift.runs.cell import Cell
from toolshift.runs.plan import PLACEBO
from toolshift.runs.run_folder import Reading, Record
from toolshift.shifts.registry import find_shift

ALPHA = 0.05
COMPOSED = "composed"
VOIDS_SAID = 0.02
"""The share of void episodes above which accuracy is given with its bounds."""
TIER_ORDER = (*TIERS, COMPOSED)
NOTHING = Interval(nan, nan, nan, "none", 0)


class Scored(msgspec.Struct, frozen=True):
    """A graded episode without its steps."""

    episode: str
    cell: Cell
    grade: Grade
    usage: Usage = Usage()
    reading: Reading = Reading()
    broke: str = ""
    judges: tuple[str, ...] = ()
    lineage: str = ""
    stack: str = ""

    def __post_init__(self) -> None:
        """Keeps what a cell writes out each time: a report asks for it a hundred times."""
        msgspec.structs.force_setattr(self, "lineage", self.cell.lineage)
        msgspec.structs.force_setattr(self, "stack", self.cell.stack)

    @classmethod
    def of(cls, record: Record, cell: Cell) -> Scored:
        """Leaves the steps out."""
        ended = record.end == "crashed" or record.grade.cause == BROKEN_SHIFT
        broke = record.steps[-1].said if ended and record.steps else ""
        judges = tuple(step.judge for step in record.steps if step.judge)
        return cls(record.episode, cell, record.grade, record.usage, record.reading, broke, judges)


class Measures(msgspec.Struct, frozen=True):
    """Everything measured on one group of episodes, beside the clean scenes of the same tasks.

    Rates lie in [0, 1]; what is undefined is NaN (null in JSON).

    Attributes:
        label: the tier, shift, ... of the group.
        void: episodes that say nothing of the agent (see `episode.grade.Grade.void`); counted,
            never scored. `void_kinds` counts them apart.
        accuracy: mean over tasks of the share of its scored episodes that pass.
        accuracy_all: the same with void episodes as failures (intent to treat).
        accuracy_best: the same with void episodes as passes; with `accuracy_all` it bounds what
            they could have shown.
        met: share of scored episodes in which the agent met what the shift changed.
        accuracy_met: accuracy on those.
        clean: accuracy on the same tasks, clean.
        drop: clean minus shifted, paired; NaN where the clean accuracy is under one half.
        drop_all: the drop with void episodes as failures (intent to treat); NaN where they are
            as common in the clean scenes, so that leaving them out favours neither arm.
        drop_met: the same over episodes that met the shift.
        p_value: of no drop, adjusted over the family; NaN where the drop is not defined.
        beyond_placebo: the interval of placebo minus shifted lies on the drop's side of zero; None
            without an arm.
        significant: the drop (or gain) is not chance, and not what the placebo does as well.
        retention: accuracy on the tasks that the agent passes clean.
        tool_error_rate: failed calls among calls; `own_error_rate` without those that the
            interface provoked.
        exploration: mean active exploration score (`grade.exploration`).
        chain_length: mean number of calls; `calls_to_oracle` relative to the oracle's.
        reading_to_oracle: bytes of all prompts relative to the oracle's (NaN for scripted).
        refusal_rate: refusals among unsolvable scenes, by task as accuracy is; `right_reason` the
            share of those refusals with the right reason; `wrong_refusal` refusals among solvable
            scenes, by task.
        refused_by_protocol: share of scored episodes that ended in a call of `refuse`;
            `refused_in_prose` in a text that was read as a refusal.
        prose: share of endings that were read from prose.
        pass_hat: pass^k over scenes for k = 1 up to the number of trials.
        flip_rate: chance that two trials of a scene disagree.
        detectable: the smallest drop that would be significant in this table with a chance of
            0.8 (`measure.power`), inf where none would; NaN where it was not asked for.
        causes: failures by root cause, the commonest first.
        examples: a failed episode of each cause.
    """

    label: str
    tier: str
    dimension: str
    episodes: int
    tasks: int
    void: int
    void_kinds: dict[str, int]
    misunderstood: int
    accuracy: Interval
    accuracy_all: Interval
    accuracy_best: Interval
    met: float
    accuracy_met: Interval
    clean: Interval
    drop: Interval
    drop_all: Interval
    drop_met: Interval
    p_value: float
    beyond_placebo: bool | None
    significant: bool
    retention: Interval
    tool_error_rate: float
    own_error_rate: float
    exploration: float
    chain_length: float
    calls_to_oracle: float
    reading_to_oracle: float
    input_tokens: float
    output_tokens: float
    unsolvable: int
    refusal_rate: Interval
    right_reason: float
    wrong_refusal: Interval
    refused_by_protocol: float
    refused_in_prose: float
    prose: float
    pass_hat: list[float]
    flip_rate: float
    detectable: float
    causes: dict[str, int]
    examples: dict[str, str]

    @property
    def clean_defined(self) -> bool:
        """Whether this group's own accuracy allows drops from it; for the clean group."""
        return st.drop_is_defined(self.accuracy.estimate)

    @property
    def void_matters(self) -> bool:
        """Whether void episodes are so many that accuracy is given with its bounds."""
        return self.void > VOIDS_SAID * self.episodes

    @property
    def bounds(self) -> tuple[float, float]:
        """Accuracy with void episodes as failures, and with them as passes."""
        return self.accuracy_all.estimate, self.accuracy_best.estimate

    @property
    def defined(self) -> bool:
        """Whether the drop is defined: the agent solves at least half of the tasks clean."""
        return not isnan(self.drop.estimate)


Scores = dict[str, list[float]]


def tier_of(cell: Cell) -> str:
    """The tier of a cell's shifts; "composed" where they are of several."""
    return _common({find_shift(applied.shift).tier for applied in cell.shifts})


def dimension_of(cell: Cell) -> str:
    """The dimension of a cell's shifts; "composed" where they are of several."""
    return _common({find_shift(applied.shift).dimension for applied in cell.shifts})


def _common(values: set[str]) -> str:
    return values.pop() if len(values) == 1 else COMPOSED if values else "none"


def is_placebo(cell: Cell) -> bool:
    """Whether a cell belongs to the placebo arm."""
    return [applied.shift for applied in cell.shifts] == [PLACEBO]


class Arms:
    """The episodes of one agent, apart: the clean arm, the placebo arm, and the shifted rest."""

    def __init__(self, rows: Iterable[Scored]) -> None:
        self.clean: list[Scored] = []
        self.placebo: list[Scored] = []
        self.shifted: list[Scored] = []
        for row in rows:
            shifted = self.placebo if is_placebo(row.cell) else self.shifted
            (shifted if row.cell.shifts else self.clean).append(row)
        self.clean_scores = scores(self.clean)
        self.clean_all = scores(self.clean, void_fails=True)
        self.placebo_scores = scores(self.placebo)

    def table(
        self,
        key: Callable[[Cell], str],
        method: str,
        order: Sequence[str] = (),
        detectable: bool = False,
    ) -> list[Measures]:
        """One row for each value of `key` over the shifted cells, p values adjusted together.

        Args:
            key: gives the label of a cell's row.
            method: "holm" or "bh".
            order: labels that come first, in this order.
            detectable: also simulate the smallest drop that each row would show.

        Returns:
            In the order of `order`, then as their cells come.
        """
        groups: dict[str, list[Scored]] = defaultdict(list)
        for row in self.shifted:
            groups[key(row.cell)].append(row)
        known = [label for label in order if label in groups]
        labels = known + [label for label in groups if label not in known]
        rows = self._adjust([self.measure(label, groups[label]) for label in labels], method)
        if not detectable:
            return rows
        level = ALPHA / max(1, sum(not isnan(row.p_value) for row in rows))
        return [self._with_detectable(row, groups[row.label], level) for row in rows]

    def measure(self, label: str, rows: Sequence[Scored]) -> Measures:
        """Measures one group of this agent's episodes."""
        row = _measure(label, rows, self.clean_scores, self.clean_all)
        mine = scores(rows)
        shared = {task: self.placebo_scores[task] for task in mine if task in self.placebo_scores}
        if not shared or not row.defined or is_placebo(rows[0].cell):
            return row
        gap = st.paired_drop(shared, mine)
        beyond = gap.low > 0 if row.drop.estimate > 0 else gap.high < 0
        return msgspec.structs.replace(row, beyond_placebo=beyond)

    def _with_detectable(self, row: Measures, rows: Sequence[Scored], level: float) -> Measures:
        """The row with the smallest drop that it would show if it were the only one with a drop."""
        if not row.defined:
            return row
        found = smallest_drop(self.clean_scores, scores(rows), self.placebo_scores, level)
        return msgspec.structs.replace(row, detectable=found)

    def measure_placebo(self) -> Measures | None:
        """The placebo arm; None where there is none."""
        if not self.placebo:
            return None
        row = self.measure(PLACEBO, self.placebo)
        return msgspec.structs.replace(row, significant=row.p_value < ALPHA)

    def _adjust(self, table: list[Measures], method: str) -> list[Measures]:
        adjust = st.holm if method == "holm" else st.benjamini_hochberg
        p_values = adjust([row.p_value for row in table])
        return [self._judge(row, p) for row, p in zip(table, p_values, strict=True)]

    def _judge(self, row: Measures, p_value: float) -> Measures:
        change = msgspec.structs.replace
        beyond = row.beyond_placebo
        return change(row, p_value=p_value, significant=p_value < ALPHA and beyond is not False)


def scores(rows: Iterable[Scored], void_fails: bool = False) -> Scores:
    """Passes (0 or 1) by task; void episodes are left out, or count as failures."""
    found: Scores = defaultdict(list)
    for row in rows:
        if void_fails or not row.grade.void:
            found[row.lineage].append(float(row.grade.passed))
    return found


def _measure(label: str, rows: Sequence[Scored], clean: Scores, clean_all: Scores) -> Measures:
    kept = [row for row in rows if not row.grade.void]
    mine = scores(kept)
    partner = {task: clean[task] for task in mine if task in clean}
    is_clean = not rows[0].cell.shifts if rows else True
    before = st.cluster_rate(list(partner.values()))
    defined = bool(partner) and not is_clean and st.drop_is_defined(before.estimate)
    met = [row for row in kept if row.grade.met]
    every = best = accuracy_met = accuracy = _rate(mine)
    drop_met = drop = st.paired_drop(partner, mine) if defined else NOTHING
    if len(kept) < len(rows):
        every = _rate(scores(rows, void_fails=True))
        best = _rate(_by_task(rows, lambda g: g.passed or g.void))
    if len(met) < len(kept):
        accuracy_met = _rate(scores(met))
        drop_met = st.paired_drop(partner, scores(met)) if defined and met else NOTHING
    stacks = {row.cell.shifts: row.cell for row in rows}.values()
    return Measures(
        label=label,
        tier=_common({tier_of(cell) for cell in stacks}),
        dimension=_common({dimension_of(cell) for cell in stacks}),
        episodes=len(rows),
        tasks=len({row.lineage for row in rows}),
        void=len(rows) - len(kept),
        void_kinds=dict(sorted(Counter(r.grade.cause for r in rows if r.grade.void).items())),
        misunderstood=sum(row.grade.misunderstood > 0 for row in rows),
        accuracy=accuracy,
        accuracy_all=every,
        accuracy_best=best,
        met=_share(row.grade.met for row in kept),
        accuracy_met=accuracy_met,
        clean=before if partner else NOTHING,
        drop=drop,
        drop_all=NOTHING if is_clean else _drop_all(rows, clean, clean_all),
        drop_met=drop_met,
        p_value=st.drop_p_value(partner, mine) if defined else nan,
        beyond_placebo=None,
        significant=False,
        retention=st.retention(partner, mine) if partner else NOTHING,
        detectable=nan,
        flip_rate=st.flip_rate(_by_scene(kept)),
        pass_hat=st.pass_hat(_by_scene(kept)),
        **_behaviour(kept),
        **_refusals(kept),
        **_failures(kept),
    )


def _drop_all(rows: Sequence[Scored], clean: Scores, clean_all: Scores) -> Interval:
    """The intent-to-treat drop, where the clean and the shifted arm lose episodes unequally."""
    mine = scores(rows, void_fails=True)
    partner = {task: clean_all[task] for task in mine if task in clean_all}
    planned = sum(map(len, partner.values()))
    void_clean = planned - sum(len(clean.get(task, ())) for task in partner)
    void_mine = sum(row.grade.void for row in rows)
    if not partner or void_clean * len(rows) == void_mine * planned:
        return NOTHING
    before = st.cluster_rate(list(partner.values()))
    return st.paired_drop(partner, mine) if st.drop_is_defined(before.estimate) else NOTHING


def _behaviour(rows: Sequence[Scored]) -> dict[str, Any]:
    grades = [row.grade for row in rows]
    calls, errors = sum(g.calls for g in grades), sum(g.errors for g in grades)
    own = errors - sum(g.provoked for g in grades)
    ended = [g for g in grades if g.end in ("answered", "refused")]
    return {
        "tool_error_rate": _ratio(errors, calls),
        "own_error_rate": _ratio(own, calls),
        "exploration": _mean(g.exploration for g in grades if g.exploration is not None),
        "chain_length": _ratio(calls, len(rows)),
        "calls_to_oracle": _ratio(calls, sum(g.oracle_calls for g in grades)),
        "reading_to_oracle": _ratio(
            sum(r.reading.agent for r in rows), sum(r.reading.oracle for r in rows)
        ),
        "input_tokens": _mean(row.usage.input_tokens for row in rows),
        "output_tokens": _mean(row.usage.output_tokens for row in rows),
        "prose": _share(g.prose for g in ended),
    }


def _refusals(rows: Sequence[Scored]) -> dict[str, Any]:
    unsolvable = [row for row in rows if not row.grade.solvable]
    solvable = [row for row in rows if row.grade.solvable]
    return {
        "unsolvable": len(unsolvable),
        "refusal_rate": _rate(_by_task(unsolvable, lambda g: g.refused)),
        "right_reason": _share(r.grade.right_reason for r in unsolvable if r.grade.refused),
        "wrong_refusal": _rate(_by_task(solvable, lambda g: g.refused)),
        "refused_by_protocol": _share(r.grade.refused and not r.grade.prose for r in rows),
        "refused_in_prose": _share(r.grade.refused and r.grade.prose for r in rows),
    }


def _failures(rows: Sequence[Scored]) -> dict[str, Any]:
    failed = [row for row in rows if not row.grade.passed]
    counts = Counter(row.grade.cause for row in failed)
    ordered = dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))
    examples: dict[str, str] = {}
    for row in failed:
        examples.setdefault(row.grade.cause, row.episode)
    return {"causes": ordered, "examples": examples}


# -- small sums --------------------------------------------------------------------------------


def _by_task(rows: Iterable[Scored], what: Callable[[Grade], bool]) -> Scores:
    found: Scores = defaultdict(list)
    for row in rows:
        found[row.lineage].append(float(what(row.grade)))
    return found


def _rate(by_task: Mapping[str, Sequence[float]]) -> Interval:
    return st.cluster_rate(list(by_task.values())) if by_task else NOTHING


def _by_scene(rows: Iterable[Scored]) -> list[list[float]]:
    """The passes of the trials of each scene; a task under two shifts is two scenes."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in rows:
        found[row.lineage, row.stack].append(float(row.grade.passed))
    return list(found.values())


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else nan


def _mean(values: Iterable[float]) -> float:
    kept = list(values)
    return _ratio(sum(kept), len(kept))


def _share(values: Iterable[bool]) -> float:
    return _mean(float(value) for value in values)


def shift_of(cell: Cell) -> str:
    """The shifts of a cell without their severities."""
    return "+".join(applied.shift for applied in cell.shifts)

"""From graded episodes to measures: per tier, dimension, shift, severity, task kind and world.

The task is the cluster of every interval. A drop is clean minus shifted on the same tasks, and is
defined only where the clean accuracy of those tasks is at least one half. A contrast is
*significant* where its adjusted p value is below 0.05 and the placebo arm does not explain it: Holm
over the four tiers and over the tier x dimension family, Benjamini-Hochberg over the other tables.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import isnan, nan
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from toolshift.core.shift import TIERS
from toolshift.episode.grade import AT_WILL
from toolshift.measure import statistics as st
from toolshift.measure.power import smallest_drop_of
from toolshift.measure.scored import ENDS, Episodes, Key, Rows, Scored
from toolshift.measure.statistics import Interval
from toolshift.measure.tally import Tally, pairs
from toolshift.runs.cell import Cell
from toolshift.runs.plan import PLACEBO, is_placebo
from toolshift.shifts.registry import find_shift

ALPHA = 0.05
COMPOSED = "composed"
VOIDS_SAID = 0.02
"""The share of void episodes above which accuracy is given with its bounds."""
TIER_ORDER = (*TIERS, COMPOSED)
NOTHING = Interval(nan, nan, nan, "none", 0)


class Measures(msgspec.Struct, frozen=True, omit_defaults=True):
    """Everything measured on one group of episodes, beside the clean scenes of the same tasks.

    Rates lie in [0, 1]; what is undefined is NaN (null in JSON).

    Attributes:
        label: the tier, shift, ... of the group.
        void: episodes that say nothing of the agent (see `episode.grade.Grade.void`); counted,
            never scored. `void_kinds` counts them apart.
        accuracy: mean over tasks of the share of its scored episodes that pass. An unclear answer
            counts as a failure in the estimate and the lower limit, and as a pass in the upper one.
        accuracy_all: the same with void episodes as failures (intent to treat).
        accuracy_best: the same with void episodes and unclear answers as passes; with
            `accuracy_all` it bounds what they could have shown.
        met: share of scored episodes in which the agent met what the shift changed.
        accuracy_met: accuracy on those.
        clean: accuracy on the same tasks, clean.
        drop: clean minus shifted, paired, with voids that an agent can bring about (`AT_WILL`) as
            failures; NaN where the clean accuracy is under one half.
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
        unclear: scored episodes whose answer is neither right nor wrong by its type.
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
    unclear: int = 0

    @property
    def clean_defined(self) -> bool:
        """Whether this group's own accuracy allows drops from it; for the clean group."""
        return st.drop_is_defined(self.stated.estimate)

    @property
    def void_matters(self) -> bool:
        """Whether accuracy is given with its bounds: many voids, some at will, or any unclear."""
        return self.void > VOIDS_SAID * self.episodes or self.void_at_will or self.unclear > 0

    @property
    def unmeasured(self) -> bool:
        """Whether no episode has a verdict, for reasons that the agent cannot bring about."""
        return 0 < self.void == self.episodes and not self.void_at_will

    @property
    def void_at_will(self) -> bool:
        """Whether an episode is void in a way that an agent can bring about."""
        return any(kind in AT_WILL for kind in self.void_kinds)

    @property
    def stated(self) -> Interval:
        """The accuracy that a sentence states.

        An agent could say that it is out of order wherever it would fail, or ask what nobody
        understands until its budget is spent. Where it did, void episodes count as failures: the
        cautious one of the two bounds.
        """
        return self.accuracy_all if self.void_at_will else self.accuracy

    @property
    def bounds(self) -> tuple[float, float]:
        """Accuracy with void and unclear episodes as failures, and with them as passes."""
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


def arm_of(cell: Cell) -> str:
    """The arm of a cell: "clean", "placebo" or "shifted"."""
    if not cell.shifts:
        return "clean"
    return PLACEBO if is_placebo(cell) else "shifted"


class Arms:
    """The episodes of one agent, apart: the clean arm, the placebo arm, and the shifted rest."""

    def __init__(self, given: Episodes | Iterable[Scored]) -> None:
        episodes = given if isinstance(given, Episodes) else Episodes.of(given)
        self.rows = episodes.rows
        self.causes = episodes.causes
        self.scenes = episodes.scenes
        arms = self.scenes.groups(self.rows, arm_of)
        self.clean, self.placebo, self.shifted = (
            arms.get(arm, self.rows[:0]) for arm in ("clean", PLACEBO, "shifted")
        )
        self.clean_passes = self._passes(self.clean)
        self.clean_all = self._passes(self.clean, void_fails=True)
        self.placebo_passes = self._passes(self.placebo)
        self._measured: dict[bytes, Measures] = {}

    def groups(self, key: Key) -> dict[str, Rows]:
        """The shifted episodes by what `key` says of their cells."""
        return self.scenes.groups(self.shifted, key)

    def table(
        self,
        key: Key,
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
        groups = self.groups(key)
        known = [label for label in order if label in groups]
        labels = known + [label for label in groups if label not in known]
        rows = self._adjust([self.measure(label, groups[label]) for label in labels], method)
        if not detectable:
            return rows
        level = ALPHA / max(1, sum(not isnan(row.p_value) for row in rows))
        return [self._with_detectable(row, groups[row.label], level) for row in rows]

    def measure(self, label: str, rows: Rows) -> Measures:
        """Measures one group of this agent's episodes; tables have many groups in common."""
        which = rows["place"].tobytes()
        if which not in self._measured:
            self._measured[which] = self._against_placebo(self._measure(label, rows), rows)
        return msgspec.structs.replace(self._measured[which], label=label)

    def _against_placebo(self, row: Measures, rows: Rows) -> Measures:
        shared, mine = pairs(self.placebo_passes, self._passes(rows))
        if not shared.size or not row.defined or self._arm(rows) == PLACEBO:
            return row
        gap = st.drop_of_means(shared, mine)
        beyond = gap.low > 0 if row.drop.estimate > 0 else gap.high < 0
        return msgspec.structs.replace(row, beyond_placebo=beyond)

    def _arm(self, rows: Rows) -> str:
        """The arm of the first of some episodes."""
        return self.scenes.labels(arm_of)[rows["sort"][0]] if rows.size else "clean"

    def _count(self, rows: Rows, held: NDArray[np.bool_]) -> Tally:
        return Tally.count(rows["task"], held, self.scenes.known)

    def _passes(self, rows: Rows, void_fails: bool = False) -> Tally:
        """Passes by task; void episodes are left out, or count as failures.

        Those that an agent can bring about are always failures: a drop is not hidden by them.
        """
        counted = rows if void_fails else rows[~self._excused(rows)]
        return self._count(counted, counted["passed"] & ~counted["void"])

    def _excused(self, rows: Rows) -> NDArray[np.bool_]:
        """Which episodes are void for a reason that the agent cannot bring about."""
        at_will = [code for code, cause in enumerate(self.causes) if cause in AT_WILL]
        return rows["void"] & ~np.isin(rows["cause"], at_will)

    def _with_detectable(self, row: Measures, rows: Rows, level: float) -> Measures:
        """The row with the smallest drop that it would show if it were the only one with a drop."""
        if not row.defined:
            return row
        mine = self._passes(rows)
        first, second = pairs(self.clean_passes, mine)
        tasks = self.clean_passes.over(mine.by_name().tasks).tasks
        there = self.placebo_passes.of[tasks] > 0
        floor = np.full(first.size, nan)
        floor[there] = first[there] - self.placebo_passes.over(tasks).means
        smallest = smallest_drop_of(first, second, floor, level)
        return msgspec.structs.replace(row, detectable=smallest)

    def measure_placebo(self) -> Measures | None:
        """The placebo arm; None where there is none."""
        if not self.placebo.size:
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

    def _measure(self, label: str, rows: Rows) -> Measures:
        kept = rows[~rows["void"]]
        scored, met = self._passes(kept), kept[kept["met"]]
        mine = self._passes(rows)
        partner = self.clean_passes.over(mine.tasks)
        first, second = pairs(self.clean_passes, mine)
        is_clean = self._arm(rows) == "clean"
        before = _rate(partner)
        defined = len(partner) > 0 and not is_clean and st.drop_is_defined(before.estimate)
        every = best = accuracy_met = accuracy = _rate(scored)
        drop_met = drop = st.drop_of_means(first, second) if defined else NOTHING
        unclear = _how_many(kept["unclear"])
        if len(kept) < len(rows):
            every = _rate(self._passes(rows, void_fails=True))
        if unclear:
            highest = _rate(self._count(kept, kept["passed"] | kept["unclear"]))
            accuracy = msgspec.structs.replace(accuracy, high=highest.high)
        if len(kept) < len(rows) or unclear:
            best = _rate(self._count(rows, rows["passed"] | rows["void"] | rows["unclear"]))
        if len(met) < len(kept):
            accuracy_met = _rate(self._passes(met))
            drop_met = NOTHING
            if defined and len(met):
                met_at_all = self._passes(rows[rows["met"]])
                drop_met = st.drop_of_means(*pairs(self.clean_passes, met_at_all))
        sorts, scenes = np.unique(rows["sort"]), _by_scene(kept)
        tiers, dimensions = self.scenes.labels(tier_of), self.scenes.labels(dimension_of)
        return Measures(
            label=label,
            tier=_common({tiers[sort] for sort in sorts}),
            dimension=_common({dimensions[sort] for sort in sorts}),
            episodes=len(rows),
            tasks=np.unique(rows["task"]).size,
            void=len(rows) - len(kept),
            void_kinds=dict(sorted(self._causes(rows[rows["void"]]).items())),
            misunderstood=_how_many(rows["misunderstood"] > 0),
            accuracy=accuracy,
            accuracy_all=every,
            accuracy_best=best,
            met=_share(kept["met"]),
            accuracy_met=accuracy_met,
            clean=before,
            drop=drop,
            drop_all=NOTHING if is_clean else self._drop_all(rows),
            drop_met=drop_met,
            p_value=st.drop_p_of_means(first, second) if defined else nan,
            beyond_placebo=None,
            significant=False,
            retention=self._retention(mine) if len(partner) else NOTHING,
            detectable=nan,
            flip_rate=st.flip_rate_of(scenes),
            pass_hat=st.pass_hat_of(scenes),
            **_behaviour(kept),
            **self._refusals(kept),
            **self._failures(kept),
            unclear=unclear,
        )

    def _retention(self, mine: Tally) -> Interval:
        """`statistics.retention`: the accuracy on the tasks that are solved clean."""
        clean = self.clean_passes.over(mine.by_name().tasks)
        solved = mine.over(clean.tasks[clean.means > 0.5])
        return st.rate_of_means(solved.means, solved.single)

    def _drop_all(self, rows: Rows) -> Interval:
        """The intent-to-treat drop, where the clean and the shifted arm lose episodes unequally."""
        mine = self._passes(rows, void_fails=True)
        partner = self.clean_all.over(mine.tasks)
        planned = int(partner.of[partner.tasks].sum())
        void_clean = planned - int(self.clean_passes.of[partner.tasks].sum())
        void_mine = _how_many(self._excused(rows))
        if not len(partner) or void_clean * len(rows) == void_mine * planned:
            return NOTHING
        if not st.drop_is_defined(_rate(partner).estimate):
            return NOTHING
        return st.drop_of_means(*pairs(self.clean_all, mine))

    def _refusals(self, rows: Rows) -> dict[str, Any]:
        solvable, unsolvable = rows[rows["solvable"]], rows[~rows["solvable"]]
        return {
            "unsolvable": len(unsolvable),
            "refusal_rate": _rate(self._count(unsolvable, unsolvable["refused"])),
            "right_reason": _share(unsolvable["right_reason"][unsolvable["refused"]]),
            "wrong_refusal": _rate(self._count(solvable, solvable["refused"])),
            "refused_by_protocol": _share(rows["refused"] & ~rows["prose"]),
            "refused_in_prose": _share(rows["refused"] & rows["prose"]),
        }

    def _failures(self, rows: Rows) -> dict[str, Any]:
        failed = rows[~rows["passed"]]
        ordered = dict(sorted(self._causes(failed).items(), key=lambda pair: (-pair[1], pair[0])))
        _, first = np.unique(failed["cause"], return_index=True)
        examples = {self.causes[failed["cause"][n]]: failed["episode"][n] for n in np.sort(first)}
        return {"causes": ordered, "examples": examples}

    def _causes(self, rows: Rows) -> dict[str, int]:
        """How many episodes have which cause."""
        codes, counts = np.unique(rows["cause"], return_counts=True)
        return {self.causes[code]: int(count) for code, count in zip(codes, counts, strict=True)}


def scores(rows: Iterable[Scored], void_fails: bool = False) -> Scores:
    """Passes (0 or 1) by task; void episodes are left out, or count as failures."""
    passes: Scores = defaultdict(list)
    for row in rows:
        if void_fails or not row.grade.void:
            passes[row.cell.lineage].append(float(row.grade.passed))
    return passes


def _behaviour(rows: Rows) -> dict[str, Any]:
    calls, errors = _sum(rows["calls"]), _sum(rows["errors"])
    tried = rows["exploration"][~np.isnan(rows["exploration"])].tolist()
    ended = np.isin(rows["end"], (ENDS["answered"], ENDS["refused"]))
    return {
        "tool_error_rate": _ratio(errors, calls),
        "own_error_rate": _ratio(errors - _sum(rows["provoked"]), calls),
        "exploration": _ratio(sum(tried), len(tried)),
        "chain_length": _ratio(calls, len(rows)),
        "calls_to_oracle": _ratio(calls, _sum(rows["oracle_calls"])),
        "reading_to_oracle": _ratio(_sum(rows["read"]), _sum(rows["oracle_read"])),
        "input_tokens": _ratio(_sum(rows["input_tokens"]), len(rows)),
        "output_tokens": _ratio(_sum(rows["output_tokens"]), len(rows)),
        "prose": _share(rows["prose"][ended]),
    }


# -- small sums --------------------------------------------------------------------------------


def _rate(tally: Tally) -> Interval:
    return st.rate_of_means(tally.means, tally.single) if len(tally) else NOTHING


def _by_scene(rows: Rows) -> list[tuple[int, int]]:
    """Passes and trials of each scene; a task under two shifts is two scenes."""
    scenes = rows["task"].astype(np.int64) * (1 + rows["stack"].max(initial=0)) + rows["stack"]
    _, first, places = np.unique(scenes, return_index=True, return_inverse=True)
    tally = Tally.count(first[places], rows["passed"], len(rows))
    of, passed = tally.of[tally.tasks], tally.held[tally.tasks]
    return list(zip(passed.tolist(), of.tolist(), strict=True))


def _how_many(held: NDArray[np.bool_]) -> int:
    return int(np.count_nonzero(held))


def _sum(values: NDArray[np.integer[Any]]) -> int:
    return int(values.sum(dtype=np.int64))


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else nan


def _share(held: NDArray[np.bool_]) -> float:
    return _ratio(float(_how_many(held)), len(held))


def cell_of(cell: Cell) -> str:
    """The tier and the dimension of a cell's shifts."""
    return f"{tier_of(cell)} / {dimension_of(cell)}"


def stack_of(cell: Cell) -> str:
    """The shifts of a cell with their severities."""
    return cell.stack


def kind_of(cell: Cell) -> str:
    """The kind of a cell's task."""
    return f"{cell.world}/{cell.kind}"


def world_of(cell: Cell) -> str:
    """The world of a cell."""
    return cell.world


def shift_of(cell: Cell) -> str:
    """The shifts of a cell without their severities."""
    return "+".join(applied.shift for applied in cell.shifts)

"""What became of each task under each change: facts, where tasks are few enough to be looked at."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from toolshift.episode.grade import AT_WILL
from toolshift.measure.diagnosis import MAX_TASKS
from toolshift.measure.metrics import arm_of, shift_of, tier_of
from toolshift.measure.scored import Episodes
from toolshift.runs.cell import Cell
from toolshift.runs.plan import PLACEBO, Plan

CLEAN = "clean"
State = Literal["passes", "fails", "varies", "void", "not_applicable", "not_run"]


class Spot(msgspec.Struct, frozen=True):
    """One task under one change.

    Attributes:
        state: `varies` where some episodes pass and some fail (trials, or strengths of the change);
            `not_run` where nothing was planned, or nothing has been run yet.
        passed: of the `scored` episodes.
        void: episodes without a verdict. A void that the agent can bring about (`AT_WILL`) is a
            failure here, as in the headline.
        cause: the commonest root cause of its failures; of its void episodes where it is void.
        episode: to open: the first one of that cause, else the first; "" where there is none.
    """

    state: State
    passed: int = 0
    scored: int = 0
    void: int = 0
    cause: str = ""
    episode: str = ""


class GridRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """One change, over all tasks.

    Attributes:
        label: the shifts without their strengths; "clean" for the tasks as they are.
        tier: of the shifts; "none" for the clean tasks and the placebo.
        spots: one a task, in the order of `Grid.tasks`.
        lost: how many tasks always pass clean and fail here in some episode.
        broken: whether the code of the change failed wherever it was to be applied.
    """

    label: str
    tier: str
    spots: list[Spot]
    lost: int
    broken: bool = False


class CauseCount(msgspec.Struct, frozen=True):
    """Episodes of one cause, and one to open.

    Attributes:
        cause: the root cause.
        episodes: how many.
        label: the row that has most of them.
        episode: one of that row.
    """

    cause: str
    episodes: int
    label: str
    episode: str


class Grid(msgspec.Struct, frozen=True):
    """The tasks of a small suite by changes, for one agent.

    Attributes:
        tasks: their names: what the user's file calls them, else KIND/INDEX.
        rows: "clean" first, then the placebo, then the changes in the order of the plan.
        solved: tasks that pass clean in every scored trial.
        lost: tasks of these that fail under some change (the placebo left out).
        passed: episodes that pass under a change, of `scored` ones; the placebo is left out.
        losses: failures under a change in tasks that pass clean, by cause, the commonest first:
            where to begin to mend.
        voids: episodes without a verdict in all arms, likewise.
    """

    tasks: list[str]
    rows: list[GridRow]
    solved: int
    lost: int
    passed: int
    scored: int
    losses: list[CauseCount]
    voids: list[CauseCount]

    @property
    def clean(self) -> GridRow:
        """The tasks as they are."""
        return self.rows[0]

    @property
    def changes(self) -> list[GridRow]:
        """The rows of changes: neither the clean tasks nor the placebo."""
        return [row for row in self.rows[1:] if row.label != PLACEBO]


class _Found:
    """The episodes of one task under one change, counted."""

    def __init__(self) -> None:
        self.passed, self.scored, self.void = 0, 0, 0
        self.causes: dict[bool, Counter[str]] = {False: Counter(), True: Counter()}
        self.episodes: dict[tuple[bool, str], str] = {}

    def add(self, passed: bool, void: bool, cause: str, episode: str) -> None:
        self.passed += passed and not void
        self.scored += not void
        self.void += void
        if not passed or void:
            self.causes[void][cause] += 1
        self.episodes.setdefault((void, "" if passed and not void else cause), episode)

    def spot(self, applicable: bool) -> Spot:
        if not self.scored and not self.void:
            return Spot("not_run" if applicable else "not_applicable")
        void = not self.scored
        causes = self.causes[void]
        cause = causes.most_common(1)[0][0] if causes else ""
        if void:
            state: State = "void"
        elif self.passed in (0, self.scored):
            state = "passes" if self.passed else "fails"
        else:
            state = "varies"
        episode = self.episodes.get((void, cause), next(iter(self.episodes.values())))
        return Spot(state, self.passed, self.scored, self.void, cause, episode)


def task_names(plan: Plan, names: Mapping[str, Mapping[str, Sequence[str]]]) -> dict[str, str]:
    """The name of each task of a plan, by its lineage: as short as tells them apart."""
    heads: dict[str, Cell] = {}
    for cell in plan.cells:
        heads.setdefault(cell.lineage, cell)
    forms: Sequence[Mapping[str, str]] = (
        {at: _own_name(cell, names) for at, cell in heads.items()},
        {at: f"{cell.world}/{cell.kind}/{cell.index}" for at, cell in heads.items()},
        {
            at: f"{cell.world}/{cell.kind}/{cell.index} seed {cell.seed}"
            for at, cell in heads.items()
        },
    )
    for form in forms:
        if len(set(form.values())) == len(heads):
            return dict(form)
    return {at: at for at in heads}


def _own_name(cell: Cell, names: Mapping[str, Mapping[str, Sequence[str]]]) -> str:
    ids = names.get(cell.world, {}).get(cell.kind, ())
    return ids[cell.index] if cell.index < len(ids) else f"{cell.kind}/{cell.index}"


def make_grid(plan: Plan, tasks: Mapping[str, str], episodes: Episodes) -> Grid | None:
    """The grid of one agent; None where the tasks are too many to be looked at."""
    if not 0 < len(tasks) <= MAX_TASKS:
        return None
    found: dict[str, dict[str, _Found]] = defaultdict(lambda: defaultdict(_Found))
    barred: dict[str, set[str]] = defaultdict(set)
    tiers: dict[str, str] = {CLEAN: "none"}
    open_: dict[str, set[str]] = defaultdict(set)
    broken: set[str] = set()
    for planned in plan.rows:
        label = shift_of(planned.cell) or CLEAN
        shifted = arm_of(planned.cell) == "shifted"
        tiers.setdefault(label, tier_of(planned.cell) if shifted else "none")
        (barred if planned.not_applicable else open_)[label].add(planned.cell.lineage)
        if planned.broken:
            broken.add(label)
    causes = episodes.causes
    for row in episodes.rows:
        cell = episodes.scenes.cells[row["place"]]
        found[shift_of(cell) or CLEAN][cell.lineage].add(
            bool(row["passed"] and not row["void"]),
            bool(row["void"]) and causes[row["cause"]] not in AT_WILL,
            causes[row["cause"]],
            str(row["episode"]),
        )
    order = sorted(tiers, key=lambda label: (label != CLEAN, label != PLACEBO))
    spots = {
        label: [
            found[label][task].spot(task not in barred[label] or task in open_[label])
            for task in tasks
        ]
        for label in order
    }
    broken = {label for label in broken if not open_[label]}
    return _counted(list(tasks.values()), spots, tiers, broken, _voids(found))


def _counted(
    tasks: list[str],
    spots: dict[str, list[Spot]],
    tiers: Mapping[str, str],
    broken: Collection[str],
    voids: list[CauseCount],
) -> Grid:
    sound = [spot.state == "passes" for spot in spots[CLEAN]]
    rows = [
        GridRow(
            label,
            tiers[label],
            row,
            sum(map(_is_lost, sound, row)) if label != CLEAN else 0,
            label in broken,
        )
        for label, row in spots.items()
    ]
    changed = [row for row in rows if row.label not in (CLEAN, PLACEBO)]
    lost = [any(_is_lost(ok, row.spots[at]) for row in changed) for at, ok in enumerate(sound)]
    return Grid(
        tasks=tasks,
        rows=rows,
        solved=sum(sound),
        lost=sum(lost),
        passed=sum(spot.passed for row in changed for spot in row.spots),
        scored=sum(spot.scored for row in changed for spot in row.spots),
        losses=_losses(changed, sound),
        voids=voids,
    )


def _is_lost(sound: bool, spot: Spot) -> bool:
    return sound and spot.state in ("fails", "varies")


def _losses(rows: Iterable[GridRow], sound: Sequence[bool]) -> list[CauseCount]:
    return _by_cause(
        (spot.cause, row.label, spot.scored - spot.passed, spot.episode)
        for row in rows
        for ok, spot in zip(sound, row.spots, strict=True)
        if _is_lost(ok, spot)
    )


def _voids(found: Mapping[str, Mapping[str, _Found]]) -> list[CauseCount]:
    return _by_cause(
        (cause, label, number, one.episodes[True, cause])
        for label, row in found.items()
        for one in row.values()
        for cause, number in one.causes[True].items()
    )


def _by_cause(those: Iterable[tuple[str, str, int, str]]) -> list[CauseCount]:
    """Counts (cause, row, number, episode), the commonest cause first."""
    where: dict[str, Counter[str]] = defaultdict(Counter)
    examples: dict[tuple[str, str], str] = {}
    for cause, label, number, episode in those:
        where[cause][label] += number
        examples.setdefault((cause, label), episode)
    made = []
    for cause, rows in where.items():
        label = rows.most_common(1)[0][0]
        made.append(CauseCount(cause, rows.total(), label, examples[cause, label]))
    return sorted(made, key=lambda each: -each.episodes)

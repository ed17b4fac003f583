"""A report: the results of a run for each agent, as data."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import isnan, nan
from typing import Any

import msgspec
import numpy as np

from toolshift.core.errors import UsageError
from toolshift.core.names import unknown
from toolshift.core.tool import JSON
from toolshift.measure.claims import Claim, is_finished, shift_claims_of
from toolshift.measure.diagnosis import (
    Crashes,
    Weakness,
    broke_down,
    diagnose,
    diagnose_claims,
    weaknesses,
)
from toolshift.measure.grid import Grid, make_grid, task_names
from toolshift.measure.metrics import (
    NOTHING,
    TIER_ORDER,
    Arms,
    Measures,
    cell_of,
    dimension_of,
    kind_of,
    shift_of,
    stack_of,
    tier_of,
    world_of,
)
from toolshift.measure.scored import ENDS, Episodes, Key, Rows, Scenes, Scored
from toolshift.measure.statistics import Interval
from toolshift.reading.prose import FAILED
from toolshift.runs.cell import Cell
from toolshift.runs.design import Design
from toolshift.runs.plan import Plan
from toolshift.runs.run_folder import REPORT_FORMAT, Record
from toolshift.runs.sequential import Outcome, outcome_of
from toolshift.shifts.registry import find_shift

LOOK_ALIKE = "look-alikes"


class Judged(msgspec.Struct, frozen=True):
    """Messages in prose that a judge model was asked to read.

    Attributes:
        judge: the model.
        messages: how many it read.
        failed: of how many it gave no reading, so that the shipped one was taken.
    """

    judge: str
    messages: int
    failed: int


class UnreadCalls(msgspec.Struct, frozen=True):
    """Replies that look like a tool call, and were read as prose because no call was read in them.

    Attributes:
        replies: how many.
        episodes: that have some.
        example: one of these, to open.
    """

    replies: int
    episodes: int
    example: str


class EmptyReplies(msgspec.Struct, frozen=True):
    """Replies that say nothing and call nothing, but for thoughts: they count as empty answers.

    Attributes:
        replies: how many.
        episodes: that have some.
        example: one of these, to open.
        beside: the fields beside these messages in which a text stands (`reasoning_content`).
    """

    replies: int
    episodes: int
    example: str
    beside: tuple[str, ...] = ()


class AgentReport(msgspec.Struct, frozen=True):
    """The results of one agent.

    Attributes:
        decoding: the label of results made under a constraint; "" for free decoding.
        complete: every planned episode has been run.
        everything: all its episodes together; of use for causes and costs only.
        tiers: one row a tier; likewise the other tables. `cells` are tier x dimension.
        look_alikes: refusals on solvable scenes that look unsolvable.
        noise_floor: the drop of the placebo arm.
        crashed: the episodes that its own code ended; None where there is none.
        judged: what a judge read of its prose; None where none was asked.
        unread: its replies that look like a tool call that was not read; None where there is none.
        empty: its replies that say nothing and call nothing; None where there is none.
        grid: what became of each task under each change; None where the tasks are many.
        claims: what a sequential run decided of each shift; None where all episodes were played.
    """

    name: str
    decoding: str
    complete: bool
    everything: Measures
    clean: Measures
    placebo: Measures | None
    tiers: list[Measures]
    dimensions: list[Measures]
    cells: list[Measures]
    shifts: list[Measures]
    severities: list[Measures]
    kinds: list[Measures]
    worlds: list[Measures]
    look_alikes: Measures | None
    weaknesses: list[Weakness]
    diagnosis: list[str]
    noise_floor: Interval
    infrastructure: int
    misunderstood: int
    input_tokens: int
    output_tokens: int
    cost: float
    crashed: Crashes | None = None
    judged: Judged | None = None
    unread: UnreadCalls | None = None
    empty: EmptyReplies | None = None
    grid: Grid | None = None
    claims: list[Claim] | None = None


class Skipped(msgspec.Struct, frozen=True):
    """A shift that could not be applied to some tasks, and why."""

    shift: str
    skipped: int
    tried: int
    reasons: dict[str, int]


class BrokenShift(msgspec.Struct, frozen=True):
    """A shift whose own code raised. Nothing is known of what it would have shown.

    Attributes:
        scenes: how many scenes of the plan could not be made.
        episodes: how many episodes ended in it; they are void.
        scene: where it happened first.
        said: what it raised there.
    """

    shift: str
    scenes: int
    episodes: int
    scene: str
    said: str


class Report(msgspec.Struct, frozen=True):
    """The report of a run, as data; `to_dict` gives it as plain values.

    `format` is that of the names in it: format 1 had `told_apart` for `significant`,
    `over_refusal` for `wrong_refusal`, and other names of two causes; format 2 had no causes
    `invented_tool` and `invented_value`.
    """

    suite: str
    plan_hash: str
    worlds: list[str]
    tasks: int
    trials: int
    seeds: list[int]
    pool: str
    size: int
    agents: list[AgentReport]
    skipped: list[Skipped]
    broken: list[BrokenShift] = []
    format: int = REPORT_FORMAT

    def agent(self, name: str = "") -> AgentReport:
        """What was found out about an agent; the first one where no name is given.

        Args:
            name: of the agent.

        Returns:
            Its part of the report.

        Raises:
            UsageError: for a name that is not in the report.
        """
        if not name:
            return self.agents[0]
        for report in self.agents:
            if report.name == name:
                return report
        raise UsageError(unknown("agent", name, (report.name for report in self.agents)))

    def drop(self, tier: str, agent: str = "") -> Interval:
        """The drop of accuracy in a tier, clean minus shifted; NaN where it is not defined.

        Args:
            tier: its name.
            agent: its name; "" for the first one.

        Returns:
            A difference of accuracies from -1 to 1, with its 95% limits.

        Raises:
            UsageError: where the run has no such tier.
        """
        tiers = {row.label: row for row in self.agent(agent).tiers}
        if tier not in tiers:
            raise UsageError(unknown("tier", tier, tiers))
        return tiers[tier].drop

    @property
    def table(self) -> list[dict[str, Any]]:
        """The four-tier table as rows of plain values, one an agent and tier."""
        return [
            {
                "agent": report.name,
                "tier": row.label,
                "clean": _number(row.clean.estimate),
                "accuracy": _number(row.accuracy.estimate),
                "drop": _number(row.drop.estimate),
                "low": _number(row.drop.low),
                "high": _number(row.drop.high),
                "p_value": _number(row.p_value),
                "significant": row.significant,
                "refusal_rate": _number(row.refusal_rate.estimate),
            }
            for report in self.agents
            for row in report.tiers
        ]

    def to_dict(self) -> dict[str, Any]:
        """The whole report as plain values; what is undefined is None."""
        data: dict[str, Any] = msgspec.json.decode(JSON.encode(self))
        return data


def make_report(
    plan: Plan,
    records: Iterable[Record],
    agents: Sequence[dict[str, Any]],
    task_ids: Mapping[str, Mapping[str, Sequence[str]]] | None = None,
    design: Design | None = None,
) -> Report:
    """Measures a run; `task_ids` and `design` are as in its manifest."""
    sequential = design if design is not None and design.sequential else None
    known: dict[str, dict[str, Outcome]] = defaultdict(dict)
    scenes = Scenes(plan.cells)
    places = {cell.id: place for place, cell in enumerate(scenes.cells)}
    episodes: dict[str, Episodes] = defaultdict(lambda: Episodes(scenes))
    for record in records:
        place = places.get(record.cell)
        if place is not None:
            episodes[record.agent].add(place, Scored.of(record, scenes.cells[place]))
            if sequential:
                known[record.agent][record.cell] = outcome_of(record)
    tasks = task_names(plan, task_ids or {})
    reports = [
        _about(
            about,
            episodes[name],
            len(places),
            make_grid(plan, tasks, episodes[name]),
            shift_claims_of(plan, known[name], sequential, name) if sequential else None,
        )
        for about in agents
        if (name := str(about["name"])) in episodes
    ]
    selection = plan.selection
    return Report(
        suite=selection.suite,
        plan_hash=plan.hash,
        worlds=list(selection.worlds),
        tasks=np.unique(scenes.tasks).size,
        trials=selection.trials,
        seeds=list(selection.seeds),
        pool=selection.pool,
        size=selection.size,
        agents=reports,
        skipped=_skipped(plan),
        broken=_broken(plan, episodes.values()),
    )


def _about(
    about: dict[str, Any],
    episodes: Episodes,
    planned: int,
    grid: Grid | None,
    claims: list[Claim] | None,
) -> AgentReport:
    arms = Arms(episodes)
    rows = arms.rows
    clean = arms.measure("clean", arms.clean)
    placebo = arms.measure_placebo()
    shifts = arms.table(shift_of, "bh")

    def table(key: Key, family: str, **more: Any) -> list[Measures]:
        """A table; of a sequential run with nothing that only a whole one could say."""
        made = arms.table(key, family, **more)
        return made if claims is None else [_as_claimed(row, {}) for row in made]

    tiers = table(tier_of, "holm", order=TIER_ORDER, detectable=claims is None)
    if claims is not None:
        by_label = {claim.label: claim for claim in claims}
        shifts = [_as_claimed(row, by_label) for row in shifts]
        placebo = placebo and _as_claimed(placebo, by_label)
    everything = arms.measure("all arms", rows)
    weak = weaknesses(everything, [clean, *tiers])
    crashed = _crashed(rows, episodes.broke)
    broken = broke_down(crashed, len(rows)) if crashed else ""
    alike = arms.groups(look_of).get(LOOK_ALIKE)
    return AgentReport(
        name=str(about["name"]),
        decoding="constrained" if about.get("decoding") == "constrained" else "",
        complete=len(rows) == planned or (claims is not None and is_finished(claims)),
        everything=everything,
        clean=clean,
        placebo=placebo,
        tiers=tiers,
        dimensions=table(dimension_of, "holm"),
        cells=table(cell_of, "holm"),
        shifts=shifts,
        severities=table(stack_of, "bh"),
        kinds=table(kind_of, "bh"),
        worlds=table(world_of, "bh"),
        look_alikes=None if alike is None else arms.measure(LOOK_ALIKE, alike),
        weaknesses=weak,
        diagnosis=diagnose(clean, placebo, tiers, shifts, weak, broken)
        if claims is None
        else diagnose_claims(clean, tiers, claims, weak, broken),
        noise_floor=placebo.drop if placebo else NOTHING,
        infrastructure=int(np.count_nonzero(rows["end"] == ENDS["infrastructure"])),
        misunderstood=everything.misunderstood,
        input_tokens=int(rows["input_tokens"].sum()),
        output_tokens=int(rows["output_tokens"].sum()),
        cost=round(sum(rows["cost"].tolist()), 6),
        crashed=crashed,
        judged=_judged(episodes.judges),
        unread=_unread(rows, episodes.unread),
        empty=_empty(rows, episodes.empty, episodes.beside),
        grid=grid,
        claims=claims,
    )


def _as_claimed(row: Measures, claims: Mapping[str, Claim]) -> Measures:
    """A row of a sequential run: its drop as claimed, and no statistics of a whole run."""
    claim = claims.get(row.label)
    return msgspec.structs.replace(
        row,
        drop=claim.drop if claim and claim.ended != "void" else NOTHING,
        drop_all=NOTHING,
        drop_met=NOTHING,
        p_value=nan,
        beyond_placebo=None,
        significant=claim is not None and claim.verdict == "breaks",
    )


def _judged(counts: Counter[str]) -> Judged | None:
    failed = sum(count for judge, count in counts.items() if judge.endswith(FAILED))
    names = sorted({judge.removesuffix(FAILED) for judge in counts})
    return Judged(", ".join(names), counts.total() - failed, failed) if counts else None


def _unread(rows: Rows, replies: Mapping[int, int]) -> UnreadCalls | None:
    return UnreadCalls(*_counted(rows, replies)) if replies else None


def _empty(rows: Rows, replies: Mapping[int, int], beside: Iterable[str]) -> EmptyReplies | None:
    return EmptyReplies(*_counted(rows, replies), tuple(beside)) if replies else None


def _counted(rows: Rows, replies: Mapping[int, int]) -> tuple[int, int, str]:
    """How many replies in how many episodes, and the first of these."""
    example = rows["episode"][rows["place"] == min(replies)][0]
    return sum(replies.values()), len(replies), str(example)


def _crashed(rows: Rows, broke: Mapping[int, str]) -> Crashes | None:
    broken = rows[rows["end"] == ENDS["crashed"]]
    if not len(broken):
        return None
    all_said = [broke[place] for place in broken["place"].tolist()]
    message, _ = Counter(all_said).most_common(1)[0]
    return Crashes(len(broken), message, broken["episode"][all_said.index(message)])


def draws_entities(worlds: Iterable[str]) -> bool:
    """Whether any of these worlds is drawn to a size; NAME@HASH and bfcl:NAME are as they are."""
    return any("@" not in name and ":" not in name for name in worlds)


def is_look_alike(cell: Cell) -> bool:
    """Whether a cell is the solvable counterpart of an unsolvable one."""
    return any(find_shift(applied.shift).base.endswith("_lookalike") for applied in cell.shifts)


def look_of(cell: Cell) -> str:
    """Whether a cell is a look-alike, as a label."""
    return LOOK_ALIKE if is_look_alike(cell) else ""


def _skipped(plan: Plan) -> list[Skipped]:
    tried = Counter(shift_of(row.cell) for row in plan.rows if not row.cell.trial)
    reasons: dict[str, Counter[str]] = defaultdict(Counter)
    for row in plan.skipped:
        if not row.cell.trial and not row.broken:
            reasons[shift_of(row.cell)][row.not_applicable] += 1
    return [
        Skipped(name or "clean", sum(why.values()), tried[name], dict(why.most_common()))
        for name, why in reasons.items()
    ]


def _broken(plan: Plan, played: Iterable[Episodes]) -> list[BrokenShift]:
    planned = [r for r in plan.rows if r.broken and not r.cell.trial]
    ended = [pair for arms in played for pair in arms.in_broken_shifts()]
    first: dict[str, tuple[str, str]] = {}
    for cell, message in [
        *((row.cell, row.not_applicable) for row in planned),
        *ended,
    ]:
        first.setdefault(cell.stack, (cell.lineage, message))
    scenes = Counter(row.cell.stack for row in planned)
    episodes = Counter(cell.stack for cell, _ in ended)
    return [
        BrokenShift(stack or "clean", scenes[stack], episodes[stack], *where)
        for stack, where in first.items()
    ]


def _number(value: float) -> float | None:
    return None if isnan(value) else value

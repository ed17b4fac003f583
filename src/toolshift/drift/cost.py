"""What a release costs an agent: the drift as shifts, and the drop in accuracy under them.

The whole release is one shift, its new wording alone another, so that each has its own loss.
Both are made as `toolshift shift from-diff --yes` makes them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import Any

import msgspec

from toolshift.core.files import write
from toolshift.drift.changes import ToolChange
from toolshift.drift.hypotheses import settled_likely
from toolshift.drift.questions import with_open
from toolshift.measure.statistics import Interval, accuracy, paired_drop
from toolshift.runs.cell import Cell, build
from toolshift.runs.plan import Plan
from toolshift.runs.run_folder import Record
from toolshift.shifts.registry import find_shift
from toolshift.shifts.release.file import FORMAT, ShiftFile
from toolshift.shifts.release.inputs import Side, side_of
from toolshift.shifts.release.mapping import Answers
from toolshift.shifts.release.resolve import pairs_of

RELEASE, WORDING = "release", "wording"
FEW = 10
"""Below this number of tasks the sentence says that there are few."""


class Cost(msgspec.Struct, frozen=True):
    """What a release costs one agent.

    Attributes:
        agent: its name.
        tasks: how many tasks were run clean and under the release.
        using: how many of them use a tool that changed in more than its wording, by the oracle's
            clean calls.
        clean: accuracy on those, clean, from 0 to 1.
        drop: clean minus shifted accuracy on those; on all tasks where none uses such a tool.
        wording: the drop under the new wording alone, over all tasks; None where no wording
            changed, or nothing else did.
        left_out: tasks that the release cannot be applied to, by reason.
        void: episodes left out; those whose end the agent may have brought about count as failures.
    """

    agent: str
    tasks: int
    using: int
    clean: float
    drop: Interval
    wording: Interval | None
    left_out: dict[str, int]
    void: int


# -- the shifts ------------------------------------------------------------------------------------


def write_shifts(before: Side, after: Side, folder: Path) -> list[str]:
    """Writes the release, and its wording alone, as shifts."""
    answers = with_open(settled_likely(before, after))
    reworded = with_wording(before, after, answers)
    sides = {RELEASE: (after, answers)}
    if reworded.tools not in (before.tools, after.tools):
        again = with_open(settled_likely(before, reworded))
        sides[WORDING] = (reworded, again)
    paths = []
    for name, (side, mapping) in sides.items():
        path = folder / f"{name}.json"
        write(path, ShiftFile(FORMAT, name, before, side, mapping).encode())
        paths.append(str(path))
    return paths


def with_wording(before: Side, after: Side, answers: Answers) -> Side:
    """The old tools with the new descriptions."""
    olds, news = before.toolbox(), after.toolbox()
    pairs = pairs_of(answers, olds, news)
    counts = Counter(old for old, _ in pairs) + Counter(f"\n{new}" for _, new in pairs)
    single = {old: new for old, new in pairs if counts[old] == counts[f"\n{new}"] == 1}
    listed = [
        _reworded(
            tool, dict(news.sources[single[tool["name"]]].raw), answers.params.get(tool["name"], {})
        )
        if tool["name"] in single
        else tool
        for tool in before.tools
    ]
    return side_of(before.kind, after.origin, listed)


def _reworded(
    old: Mapping[str, Any], new: Mapping[str, Any], moved: Mapping[str, str] = {}
) -> dict[str, Any]:
    """An object with the descriptions of another, and so on inside of what both have."""
    reworded = dict(old)
    if isinstance(old.get("description"), str) and isinstance(new.get("description"), str):
        reworded["description"] = new["description"]
    for key in ("inputSchema", "items"):
        if isinstance(old.get(key), Mapping) and isinstance(new.get(key), Mapping):
            reworded[key] = _reworded(old[key], new[key], moved)
    mine, theirs = old.get("properties"), new.get("properties")
    if isinstance(mine, Mapping) and isinstance(theirs, Mapping):
        reworded["properties"] = {
            name: _reworded(inner, theirs[moved.get(name) or name])
            if isinstance(inner, Mapping)
            and isinstance(theirs.get(moved.get(name) or name), Mapping)
            else inner
            for name, inner in mine.items()
        }
    return reworded


# -- the cost --------------------------------------------------------------------------------------


def changed_tools(changes: Iterable[ToolChange]) -> frozenset[str]:
    """The old tools that changed in more than their wording."""
    return frozenset(
        change.old
        for change in changes
        if change.old and not change.kind.startswith(("description_", "title_", "annotations_"))
    )


def costs_of(
    plan: Plan, records: Iterable[Record], agents: Sequence[str], changes: Iterable[ToolChange]
) -> list[Cost]:
    """What the release of a run cost each agent."""
    cells = {cell.id: cell for cell in plan.cells}
    rows: dict[str, list[tuple[Cell, Record]]] = defaultdict(list)
    for record in records:
        if record.cell in cells:
            rows[record.agent].append((cells[record.cell], record))
    using = _using(plan, changed_tools(changes))
    left = Counter(
        row.not_applicable
        for row in plan.skipped
        if _arm(row.cell) == RELEASE and not row.cell.trial
    )
    return [_cost(agent, rows[agent], using, dict(left)) for agent in agents]


def _using(plan: Plan, tools: frozenset[str]) -> frozenset[str]:
    """The tasks in which the oracle calls one of these tools."""
    return frozenset(
        cell.lineage
        for cell in plan.cells
        if not cell.shifts
        and not cell.trial
        and any(step.name in tools for step in build(cell).calls)
    )


def _arm(cell: Cell) -> str:
    """RELEASE or WORDING; "" for the clean arm, and another name for any other."""
    if not cell.shifts:
        return ""
    return find_shift(cell.shifts[0].shift).name.partition("@")[0]


def _cost(
    agent: str, rows: Sequence[tuple[Cell, Record]], using: frozenset[str], left: dict[str, int]
) -> Cost:
    arms: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    void = 0
    for cell, record in rows:
        if record.grade.excused:
            void += 1
        else:
            arms[_arm(cell)][cell.lineage].append(float(record.grade.passed))
    clean, release, wording = (arms[name] for name in ("", RELEASE, WORDING))
    both = [task for task in clean if task in release]
    touched = [task for task in both if task in using]
    looked = touched or both
    return Cost(
        agent=agent,
        tasks=len(both),
        using=len(touched),
        clean=accuracy([clean[task] for task in looked]) if looked else float("nan"),
        drop=paired_drop({task: clean[task] for task in looked}, release),
        wording=paired_drop(clean, wording) if wording else None,
        left_out=left,
        void=void,
    )


# -- the sentence ----------------------------------------------------------------------------------

_VERBS: Mapping[str, tuple[str, str]] = {
    "tool_renamed": ("renames", "tool"),
    "tool_removed": ("removes", "tool"),
    "tool_merged": ("merges", "tool"),
    "tool_split": ("splits", "tool"),
    "tool_dispatched": ("moves behind a dispatcher", "tool"),
    "tool_added": ("adds", "tool"),
    "required_parameter_added": ("adds", "required parameter"),
    "parameter_required": ("makes required", "parameter"),
    "parameter_renamed": ("renames", "parameter"),
    "parameter_removed": ("removes", "parameter"),
    "parameter_added": ("adds", "optional parameter"),
    "output_schema": ("changes the declared results of", "tool"),
    "description": ("rewords", "description"),
    "schema": ("changes the values of", "parameter"),
}


def _group(kind: str) -> str:
    if kind in _VERBS:
        return kind
    if kind.startswith(("description_", "title_", "annotations_", "other_")):
        return "description"
    return "output_schema" if kind.startswith("output_schema") else "schema"


def release_in_words(changes: Iterable[ToolChange]) -> str:
    """What a release does, such as "renames 3 tools and adds a required parameter"."""
    counted: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for change in changes:
        counted[_group(change.kind)].add((change.old or change.new, change.where))
    parts = [
        f"{verb} {_number(len(counted[group]), noun)}"
        for group, (verb, noun) in _VERBS.items()
        if group in counted
    ]
    if not parts:
        return "changes nothing"
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if parts[1:] else parts[0]


def _number(count: int, noun: str) -> str:
    article = "an" if noun[0] in "aeiou" else "a"
    return f"{article} {noun}" if count == 1 else f"{count} {noun}s"


def cost_in_words(cost: Cost, changes: Sequence[ToolChange]) -> str:
    """The cost in one sentence."""
    lead = f"This release {release_in_words(changes)}"
    if isnan(cost.drop.estimate):
        return f"{lead}: nothing can be said of {cost.agent}, for no task was scored in both arms."
    if not cost.clean and cost.drop.high >= 0:
        return (
            f"{lead}: nothing can be said of {cost.agent}, for it passes none of its tasks clean."
        )
    place = f"the {_tasks(cost.using, 'use')} what changed" if cost.using else _tasks(cost.tasks)
    sentence = f"{lead}: {cost.agent} {_lost(cost.drop)} on {place}"
    if cost.wording is not None:
        sentence += f"; the new descriptions alone: {_alone(cost.wording)}"
    return f"{sentence}."


def _lost(drop: Interval) -> str:
    if drop.low > 0:
        return f"loses {_points(drop)}"
    if drop.high < 0:
        flipped = Interval(-drop.estimate, -drop.high, -drop.low, drop.method, drop.n)
        return f"gains {_points(flipped)}"
    few = f"; {_tasks(drop.n)} can show only a large loss" if drop.n < FEW else ""
    loss = "has no significant loss"
    if drop.estimate == 0:
        loss = "shows no loss" if few else "loses nothing"
    return f"{loss} ({_points(drop)}{few})"


def _tasks(count: int, verb: str = "") -> str:
    """A number of tasks in words, with what they do."""
    one = count == 1
    does = f" that {verb}{'s' if one else ''}" if verb else ""
    return f"{count} task{'' if one else 's'}{does}"


def _alone(drop: Interval) -> str:
    if drop.low > 0:
        return f"a loss of {_points(drop)}"
    if drop.high < 0:
        return f"a gain, a drop of {_points(drop)}"
    return f"no significant loss ({_points(drop)})"


def _points(drop: Interval) -> str:
    low, middle, high = (100 * one for one in (drop.low, drop.estimate, drop.high))
    return f"{middle:z.0f} points [{low:z.0f}, {high:z.0f}]"

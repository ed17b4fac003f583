"""A reading of a release as Markdown, and as JUnit XML."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar
from xml.etree import ElementTree as Tree

import msgspec

from toolshift.core.canonical import canonical
from toolshift.core.command_line import command
from toolshift.drift.changes import KINDS
from toolshift.drift.release import AS_BEFORE, BESIDE_THE_CALLS, Outcome, Reading, Row
from toolshift.report.gate_markdown import plain
from toolshift.report.junit import legal, suite_xml

K = TypeVar("K")
MAX_NAMED = 6
UNSEEN = "Nothing of this change can be shown to an agent, so no task was run with it"
VERDICTS = {
    0: "everything that could be tested still works",
    1: "a task that passed now fails",
    3: "a breaking change, or a task that a change affects, is untested",
    4: "nothing was measured",
}
"""What each exit code says."""

CHANGE = "change"
"""The class of its cases in JUnit."""


def in_one(rows: Iterable[Row]) -> list[Row]:
    """The rows, with one for what is the same of several tools, or of several parts of a tool."""
    groups: dict[object, list[Row]] = {}
    for row in rows:
        groups.setdefault(_same_in_tools(row) or id(row), []).append(row)
    parts: dict[object, list[list[Row]]] = {}
    for same in groups.values():
        key = _part_of_tool(same[0]) if len(same) == 1 else None
        parts.setdefault(key or id(same), []).append(same)
    return [
        _joined([row for same in several for row in same], len(several) > 1)
        for several in parts.values()
    ]


def _same_in_tools(row: Row) -> object:
    """The same for the same change of several tools; None where a change is of one."""
    one = row.change
    if one is None or one.kind.startswith("tool_"):
        return None
    sides = tuple(canonical(side) for side in (one.before, one.after))
    return row.severity, one.kind, one.where, *sides, one.sure, one.perhaps, row.carriage, row.note


def _part_of_tool(row: Row) -> object:
    """The same for like changes of several parts of one tool; None for any other change."""
    one = row.change
    if one is None or one.perhaps or not one.kind.startswith(_IN_PARTS):
        return None
    new = one.new if one.kind != "tool_split" else ""
    return row.severity, one.kind, one.old, new, one.sure, row.carriage, row.note


_IN_PARTS = ("parameter_renamed", "parameter_added", "description_", "tool_split")


def _joined(rows: Sequence[Row], in_parts: bool) -> Row:
    """One row for several."""
    first, changes = rows[0], [row.change for row in rows if row.change is not None]
    if len(rows) == 1 or first.change is None:
        return first
    kind = KINDS[first.change.kind]
    if not in_parts:
        tools = _some([*dict.fromkeys(one.old or one.new for one in changes)], 3, ", ")
        place = f", {first.change.where}" if first.change.where else ""
        sentence = f"{tools}{place}{first.sentence.removeprefix(f'{first.change.old}{place}')}"
    elif first.change.kind.startswith(("parameter_renamed", "tool_split")):
        moved = ", ".join(
            f"{one.before} -> {one.new if one.kind == 'tool_split' else one.after}"
            for one in changes
        )
        sentence = f"{first.change.old}: {kind}: {moved}"
    else:
        places = [*dict.fromkeys(one.where or "its own" for one in changes)]
        sentence = f"{first.change.old}: {kind}: {_some(places, MAX_NAMED, ', ')}"
    tasks = tuple(dict.fromkeys(task for row in rows for task in row.tasks))
    return msgspec.structs.replace(first, sentence=sentence, tasks=tasks)


def end_in_words(outcome: Outcome) -> str:
    """What an agent did in one task, in a few words."""
    if not outcome.shifted:
        return "not tested"
    if outcome.clean == "void" or outcome.shifted.startswith("void"):
        return "void"
    if outcome.shifted == "refused":
        return "refused, rightly"
    if outcome.clean.startswith("failed"):
        return "passes now" if outcome.shifted == "passed" else "failed before too"
    return "ok" if outcome.shifted == "passed" else outcome.shifted


def carriage_in_words(row: Row) -> str:
    """Whether a change is carried, with what is the matter where it is not."""
    return f"{row.carriage}: {row.note}" if row.note else row.carriage


def ends_in_words(row: Row, outcomes: dict[str, Outcome]) -> str:
    """What an agent did in the tasks that meet a change."""
    if row.change is not None and row.change.kind in BESIDE_THE_CALLS:
        return "not tested"
    ends = {
        task: end_in_words(outcomes[task])
        if outcomes[task].reached(row.change)
        else "fails before it"
        for task in row.tasks
        if task in outcomes
    }
    if row.carriage == "said":  # what holds there was not tried by it
        ends = {task: "not tested" if end == "ok" else end for task, end in ends.items()}
    if len(set(ends.values())) == 1:
        return next(iter(ends.values()))
    return "; ".join(f"{task}: {end}" for task, end in ends.items()) or "-"


def agent_in_words(agent: str, outcomes: Mapping[str, Outcome]) -> str:
    """What an agent did in all of its tasks, in a sentence."""
    ends = list(outcomes.values())
    lost, tested = sum(one.broke for one in ends), sum(one.tested for one in ends)
    refused = sum(one.shifted == "refused" for one in ends)
    parts = []
    if tested:
        kept = tested - lost - refused
        parts.append(f"{kept} of {tested} tasks that it passes today still pass")
        if lost:
            parts.append(f"{lost} fail{'s' * (lost == 1)}")
        if refused:
            parts.append(f"{refused} can no longer be done, and it rightly refused")
    before = sum(one.clean.startswith("failed") for one in ends)
    if before:
        parts.append(f"{before} fail{'s' * (before == 1)} today")
    if rest := len(ends) - tested - before:
        parts.append(f"{rest} not tested")
    return f"{agent}: {'; '.join(parts)}"


def unmeasured_in_words(agent: str, outcomes: Mapping[str, Outcome]) -> str:
    """Why nothing was measured of an agent, and what to do."""
    ends = list(outcomes.values())
    fails = sum(one.clean.startswith("failed") for one in ends)
    if fails and not any(one.clean == "passed" for one in ends):
        why = f"it passes none of {len(ends)} tasks today, so none could fail"
        return f"{agent}: {why}. Use an agent that passes them, or tasks that it passes"
    if any(one.clean == "passed" and not one.shifted for one in ends):
        return f"{agent}: no task that it passes today was run with the change"
    return f"{agent}: no episode with the change has a verdict. Fix what failed and run it again"


def untested_in_words(reading: Reading) -> Iterator[str]:
    """What was not tested, a reason a line: tasks first, then the changes that no task tells of."""
    of_rows = {row.untested for row in reading.rows}
    own = {task: why for task, why in reading.untested_tasks.items() if why not in of_rows}
    left = {} if reading.is_unseen else {**own, **reading.left_out}
    for why, tasks in _grouped((why, task) for task, why in left.items()):
        yield f"task{'s' * (len(tasks) > 1)} {_some(tasks)}: {why}."
    rows = [row for row in reading.rows if row.untested and row.untested not in left.values()]
    for (why, cure), changes in _grouped(
        ((row.untested, row.cure), row.sentence.partition(":")[0]) for row in rows
    ):
        yield f"{_some(changes)}: {why}. To test it: {cure}."


def said_in_words(reading: Reading) -> Iterator[str]:
    """Changes that are only said, a reason a line, and what results have no more."""
    rows = [row for row in reading.rows if row.severity != "harmless"]
    said = [
        (row.note, row.sentence.partition(":")[0])
        for row in rows
        if row.carriage == "said" or (row.note == AS_BEFORE != row.untested)
    ]
    for why, changes in _grouped(said):
        yield f"{_some(changes)}: {why}."
    for row in rows:
        change = row.change
        if change is not None and change.kind == "tool_removed" and row.tasks:
            yield (
                f"{change.old} is gone, so a refusal of {_some(row.tasks)} counts as right, "
                "judged only by the expected calls. If another tool does the same, look at the "
                "trace."
            )
        if row.carriage == "carried" and row.note not in ("", AS_BEFORE):
            yield f"{row.sentence.partition(':')[0]}: {row.note}."


def _some(names: Sequence[str], most: int = MAX_NAMED, between: str = "; ") -> str:
    """The first of some names, and how many more there are."""
    more = len(names) - most
    return between.join(names[:most]) + (f" and {more} more" if more > 0 else "")


def _grouped(pairs: Iterable[tuple[K, str]]) -> Iterator[tuple[K, list[str]]]:
    """The names that each key stands beside, in the order in which they came."""
    found: dict[K, dict[str, None]] = {}
    for key, name in pairs:
        found.setdefault(key, {})[name] = None
    yield from ((key, list(names)) for key, names in found.items())


def question_in_words(question: Mapping[str, Any]) -> str:
    """What is asked, with the likeliest answer where there is one."""
    if not question["likeness"]:
        return f"{question['of']}: {question['asked']}"
    return (
        f"{question['of']}: perhaps {question['likeliest']} (likeness {question['likeness']:.2f})"
    )


def release_markdown(reading: Reading, run: str = "", allow_untested: bool = False) -> str:
    """The verdict, a table of the changes, and what is asked and untested."""
    head = VERDICTS[reading.exit_code(allow_untested)]
    columns = ["severity", "change", "carried", "tasks", *reading.outcomes]
    rows = [
        columns,
        ["---"] * len(columns),
        *(_cells(row, reading) for row in in_one(reading.rows)),
    ]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in rows)
    parts = [f"## ToolShift change: {head}", f"{plain(reading.old)} becomes {plain(reading.new)}"]
    agents = [f"- {plain(agent_in_words(*each))}" for each in reading.outcomes.items()]
    lost = [
        f"- {plain(agent)} fails {plain(task)}: {plain(outcome.why)}"
        + (f" (`{command('trace', run, outcome.episode)}`)" if run else "")
        for agent, task, outcome in reading.losses
    ]
    open_ = [f"- {plain(question_in_words(one))}" for one in reading.questions]
    untested = [f"- {plain(line)}" for line in untested_in_words(reading)]
    unmeasured = [
        f"- {plain(unmeasured_in_words(agent, reading.outcomes[agent]))}"
        for agent in reading.unmeasured
    ]
    agents += unmeasured
    agents += [f"- {UNSEEN}"] if reading.is_unseen else []
    sections = [("Agents", agents), ("Lost", lost), ("Asked", open_), ("Not tested", untested)]
    parts += ["\n".join([f"{title}:", "", *lines]) for title, lines in sections if lines]
    parts += [table] if reading.rows else ["Nothing changes."]
    return "\n\n".join(parts) + "\n"


def _cells(row: Row, reading: Reading) -> Iterator[str]:
    yield row.severity
    yield plain(row.sentence)
    yield plain(carriage_in_words(row))
    yield plain(", ".join(row.tasks) or "-")
    for outcomes in reading.outcomes.values():
        yield plain(ends_in_words(row, outcomes))


def release_junit(reading: Reading, allow_untested: bool = False) -> str:
    """One case for each task of each agent, and one for each breaking change.

    A task that passed and fails is a failure, and so is a breaking change that is untested, unless
    that is allowed; then it is skipped. What has no verdict is an error, and so is an agent of
    which nothing was measured.
    """
    left = reading.untested_tasks
    cases = [
        _task_case(agent, task, outcome, "" if allow_untested else left.get(task, ""))
        for agent, tasks in reading.outcomes.items()
        for task, outcome in tasks.items()
    ]
    if reading.rows:
        cases += [_unmeasured_case(agent, reading.outcomes[agent]) for agent in reading.unmeasured]
    cases += [_change_case(row, allow_untested) for row in reading.rows]
    name = f"toolshift change: {reading.old} becomes {reading.new}"
    verdict = VERDICTS[reading.exit_code(allow_untested)]
    return suite_xml("toolshift change", name, cases, {"verdict": verdict}, verdict)


def _task_case(agent: str, task: str, outcome: Outcome, left: str) -> Tree.Element:
    about = {"classname": legal(f"toolshift.{CHANGE}.{agent}"), "name": legal(task), "time": "0"}
    case = Tree.Element("testcase", about)
    said = end_in_words(outcome)
    if outcome.broke:
        Tree.SubElement(case, "failure", {"message": legal(outcome.why), "type": "fail"})
    elif said == "void":
        Tree.SubElement(case, "error", {"message": "no episode has a verdict", "type": "error"})
    elif left:
        Tree.SubElement(
            case, "failure", {"message": legal(f"not tested: {left}"), "type": "untested"}
        )
    elif not outcome.tested:
        Tree.SubElement(case, "skipped", {"message": legal(said)})
    return case


def _unmeasured_case(agent: str, outcomes: Mapping[str, Outcome]) -> Tree.Element:
    about = {"classname": legal(f"toolshift.{CHANGE}.{agent}"), "name": "all tasks", "time": "0"}
    case = Tree.Element("testcase", about)
    message = legal(unmeasured_in_words(agent, outcomes))
    Tree.SubElement(case, "error", {"message": message, "type": "error"})
    return case


def _change_case(row: Row, allow_untested: bool) -> Tree.Element:
    about = {"classname": f"toolshift.{CHANGE}", "name": legal(row.sentence), "time": "0"}
    case = Tree.Element("testcase", about)
    if row.untested:
        message = legal(f"not tested: {row.untested}. To test it: {row.cure}")
        fails = row.breaks_calls and not allow_untested
        if fails:
            Tree.SubElement(case, "failure", {"message": message, "type": "untested"})
        else:
            Tree.SubElement(case, "skipped", {"message": message})
    return case

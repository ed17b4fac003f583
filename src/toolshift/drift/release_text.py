"""A reading of a release as Markdown, and as JUnit XML."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from xml.etree import ElementTree as Tree

from toolshift.core.command_line import command
from toolshift.drift.release import Outcome, Reading, Row
from toolshift.report.gate_markdown import plain
from toolshift.report.junit import legal, suite_xml

VERDICTS = {
    0: "all that could be tested holds",
    1: "something that passed fails",
    3: "something breaking is untested",
    4: "nothing was measured",
}
"""What each exit code says."""

CHANGE = "change"
"""The class of its cases in JUnit."""


def end_in_words(outcome: Outcome) -> str:
    """What an agent did in one task, in a few words."""
    if not outcome.shifted:
        return "not tested"
    if outcome.clean == "void" or outcome.shifted.startswith("void"):
        return "void"
    if outcome.clean.startswith("failed"):
        return "passes now" if outcome.shifted == "passed" else "failed before too"
    return "ok" if outcome.shifted == "passed" else outcome.shifted


def carriage_in_words(row: Row) -> str:
    """Whether a change is carried, with what is the matter where it is not."""
    return f"{row.carriage}: {row.note}" if row.note else row.carriage


def ends_in_words(row: Row, outcomes: dict[str, Outcome]) -> str:
    """What an agent did in the tasks that meet a change."""
    said = [f"{task}: {end_in_words(outcomes[task])}" for task in row.tasks if task in outcomes]
    return "; ".join(said) or "-"


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
    rows = [columns, ["---"] * len(columns), *(_cells(row, reading) for row in reading.rows)]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in rows)
    parts = [f"## ToolShift change: {head}", f"{plain(reading.old)} becomes {plain(reading.new)}"]
    parts += [table] if reading.rows else ["Nothing changes."]
    lost = [
        f"- {plain(agent)} fails {plain(task)}: {plain(outcome.shifted)}"
        + (f" (`{command('trace', run, outcome.episode)}`)" if run else "")
        for agent, task, outcome in reading.losses
    ]
    open_ = [f"- {plain(question_in_words(one))}" for one in reading.questions]
    untested = [
        f"- {plain(row.sentence)}: {plain(row.untested)}. To test it: {plain(row.cure)}"
        for row in reading.rows
        if row.untested
    ]
    for title, lines in (("Lost", lost), ("Asked", open_), ("Not tested", untested)):
        if lines:
            parts.append("\n".join([f"{title}:", "", *lines]))
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
    that is allowed; then it is skipped. What has no verdict is an error.
    """
    cases = [
        _task_case(agent, task, outcome)
        for agent, tasks in reading.outcomes.items()
        for task, outcome in tasks.items()
    ]
    cases += [_change_case(row, allow_untested) for row in reading.rows]
    name = f"toolshift change: {reading.old} becomes {reading.new}"
    verdict = VERDICTS[reading.exit_code(allow_untested)]
    return suite_xml("toolshift change", name, cases, {"verdict": verdict}, verdict)


def _task_case(agent: str, task: str, outcome: Outcome) -> Tree.Element:
    about = {"classname": legal(f"toolshift.{CHANGE}.{agent}"), "name": legal(task), "time": "0"}
    case = Tree.Element("testcase", about)
    said = end_in_words(outcome)
    if outcome.broke:
        Tree.SubElement(case, "failure", {"message": legal(said), "type": "fail"})
    elif said == "void":
        Tree.SubElement(case, "error", {"message": "no episode has a verdict", "type": "error"})
    elif not outcome.tested:
        Tree.SubElement(case, "skipped", {"message": legal(said)})
    return case


def _change_case(row: Row, allow_untested: bool) -> Tree.Element:
    about = {"classname": f"toolshift.{CHANGE}", "name": legal(row.sentence), "time": "0"}
    case = Tree.Element("testcase", about)
    if row.untested:
        message = legal(f"not tested: {row.untested}. To test it: {row.cure}")
        fails = row.severity == "breaking" and not allow_untested
        if fails:
            Tree.SubElement(case, "failure", {"message": message, "type": "untested"})
        else:
            Tree.SubElement(case, "skipped", {"message": message})
    return case

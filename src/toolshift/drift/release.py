"""A release of tools, read: each change once, with what carries it, what is asked and what is not.

    reading = read_release(old_side, new_side)
    reading.rows        a row for each change
    reading.questions   what two lists cannot tell; at most `MOST_QUESTIONS`
    reading.shift       the release as a shift, under the likeliest reading
    with_runs(reading, plan, records, agents)   and what agents did where they meet a change

**carried** means that a task which meets the change meets it in a run, and its calls are carried
out. **asked** means that the likeliest reading is carried, and that an answer settles it. **said**
means that neither is done; `note` says what is the matter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from toolshift.core.errors import UsageError
from toolshift.core.intake import Intake
from toolshift.drift.calls import BrokenCall
from toolshift.drift.carried_inputs import (
    Carriage,
    new_path,
    no_longer_required,
    optional,
    renamed,
    required,
    route_of,
    valued,
    widened,
)
from toolshift.drift.changes import ToolChange
from toolshift.drift.events import DriftReport, drift_report
from toolshift.drift.lock import lock_in, lock_side
from toolshift.drift.schemas import SEVERITIES, Severity
from toolshift.drift.sources import is_stream, read_source
from toolshift.episode.grade import Grade
from toolshift.report.words import verdict
from toolshift.runs.cell import Cell, build
from toolshift.runs.plan import Plan
from toolshift.runs.run_folder import Record
from toolshift.shifts.registry import find_shift
from toolshift.shifts.release.file import FORMAT, ShiftFile
from toolshift.shifts.release.inputs import Side, side_of
from toolshift.shifts.release.mapping import UNDECIDED, Answers
from toolshift.shifts.release.release import Release
from toolshift.shifts.release.resolve import Question, answered, settle
from toolshift.worlds.registry import find_world

RELEASE = "release"
MOST_QUESTIONS = 10
_OF_RESULTS = ("fields", "result_values", "units")
_ORDER = ("renamed", "params", "values", *_OF_RESULTS, "given")
"""Tables of a mapping, what decides most first."""


class Outcome(msgspec.Struct, frozen=True):
    """What an agent did in a task: without the change, and with it.

    Attributes:
        clean: "passed", "failed: CAUSE" or "void".
        shifted: the same; "" where the task was not run with the change.
        episode: the shifted episode, for `toolshift trace`.
    """

    clean: str
    shifted: str
    episode: str = ""

    @property
    def broke(self) -> bool:
        """Whether something that passed fails."""
        return self.clean == "passed" and self.shifted.startswith("failed")

    @property
    def tested(self) -> bool:
        """Whether it says how the agent takes the change."""
        return self.clean == "passed" and self.shifted.startswith(("passed", "failed"))


class Row(msgspec.Struct, frozen=True):
    """One change of a release.

    Attributes:
        severity: breaking, maybe or harmless.
        sentence: the change, in the words of `toolshift verify`.
        change: the change as data; None for a text that may instruct the model.
        carriage: carried, asked or said.
        note: what is asked, or why it is only said; of results that are carried what is gone.
        tasks: those that meet it, by the calls that they expect.
        untested: why no agent has met it; "" where one has, or where nothing is to be tested.
        cure: what would test it.
    """

    severity: Severity
    sentence: str
    change: ToolChange | None
    carriage: Carriage
    note: str = ""
    tasks: tuple[str, ...] = ()
    untested: str = ""
    cure: str = ""


class Reading(msgspec.Struct, frozen=True):
    """A release, read.

    Attributes:
        old: what the old tools were read from.
        new: what the new ones were.
        rows: the changes, breaking ones first.
        questions: what is open: the path of the answer, the likeliest one and its likeness.
        broken: by old tool, a call that was right and is refused now.
        outcomes: by agent and task, for all tasks that were run.
        left_out: by task, why it cannot be carried over to the new tools.
        unread: what could not be read of the inputs.
        measured: whether an episode says something of the change: one with it that has a verdict,
            or one without it that fails.
    """

    old: str
    new: str
    rows: tuple[Row, ...]
    questions: tuple[dict[str, Any], ...]
    broken: dict[str, BrokenCall]
    outcomes: dict[str, dict[str, Outcome]] = {}
    left_out: dict[str, str] = {}
    unread: tuple[Intake, ...] = ()
    measured: bool = False

    @property
    def losses(self) -> list[tuple[str, str, Outcome]]:
        """What passed and fails: agent, task, outcome."""
        return [
            (agent, task, outcome)
            for agent, tasks in self.outcomes.items()
            for task, outcome in tasks.items()
            if outcome.broke
        ]

    @property
    def untested(self) -> list[Row]:
        """The breaking changes that no agent has met."""
        return [row for row in self.rows if row.untested and row.severity == "breaking"]

    def exit_code(self, allow_untested: bool = False) -> int:
        """0 holds, 1 something that passed fails, 3 breaking and untested, 4 nothing measured."""
        if self.losses:
            return 1
        if self.outcomes and not self.measured and self.rows:
            return 4
        return 3 if self.untested and not allow_untested else 0


class Settling(msgspec.Struct, frozen=True):
    """A release with its mapping: the reading, the file of the shift, and what is open."""

    reading: Reading
    shift: ShiftFile
    report: DriftReport
    open: tuple[Question, ...]
    draft: Answers


def read_tools(text: str) -> Side:
    """Reads one side of a release: what `read_source` reads, or a lock."""
    path = Path(text)
    if path.is_file() and not is_stream(path):
        lock = lock_in(path)
        if lock is not None:
            return side_of(lock.kind, lock.origin or path.name, lock.documents)
    return read_source(text)


# -- reading a release -----------------------------------------------------------------------------


def read_release(before: Side, after: Side, given: Answers) -> Settling:
    """Reads what a release does; what is open is read as is likeliest."""
    settled = settle(before, after, given)
    likely = settle(before, after, given, accept=True)
    shift = ShiftFile(FORMAT, RELEASE, before, after, likely.answers)
    report = drift_report(lock_side(before), after.tools, after.origin, None, given)
    ranked = sorted(settled.questions, key=_rank)
    asked, rest = ranked[:MOST_QUESTIONS], ranked[MOST_QUESTIONS:]
    judge = _Judge(shift.release(), asked, rest)
    rows = [
        Row(event.severity, event.sentence, event.change, *judge(event.change))
        for severity in reversed(SEVERITIES)
        for event in report.events
        if event.severity == severity
    ]
    rows += _logins(judge.release)
    values, rows = _values_asked(judge.release, rows, MOST_QUESTIONS - len(asked))
    asked = [*asked, *values]
    unread = (*before.unread, *after.unread)
    asks = tuple(
        {"of": ".".join(one.path), "likeliest": one.guess, "likeness": one.likeness}
        for one in asked
    )
    reading = Reading(
        before.origin, after.origin, tuple(rows), asks, dict(report.broken), unread=unread
    )
    draft = settled.answers
    for one in values:
        draft = answered(draft, one, UNDECIDED)
    return Settling(reading, shift, report, tuple(asked), draft)


def _logins(release: Release) -> Iterator[Row]:
    """Another login than a document says it wants today; agents do not see it."""
    before, after = release.old.auth, release.new.auth
    if before is None or after is None:
        return
    for new, routes in release.routes.items():
        for old in dict.fromkeys(route.old for route in routes):
            was, now = before.get(old, ""), after.get(new, "")
            if was != now:
                change = ToolChange(
                    "auth_changed", old, new, "maybe", "", was or "none", now or "none"
                )
                why = "the login is that of the program which makes the calls, not of the agent"
                yield Row("maybe", change.sentence, change, "said", why)


def _values_asked(release: Release, rows: list[Row], left: int) -> tuple[list[Question], list[Row]]:
    """The questions for what users say, as far as some are left, and the rows as they are then."""
    found: dict[tuple[str, ...], Question] = {}
    told = []
    for row in rows:
        change = row.change
        if row.carriage == "asked" and change is not None and _CHECKS.get(change.kind) is required:
            path = ("given", change.new, new_path(release, change))
            if path not in found and len(found) >= left:
                note = f"{row.note}, one of too many questions"
                row = msgspec.structs.replace(row, carriage="said", note=note)  # noqa: PLW2901
            else:
                found.setdefault(path, Question(path, "", 0.0, ()))
        told.append(row)
    return list(found.values()), told


def _rank(question: Question) -> tuple[int, float]:
    return _ORDER.index(question.path[0]), -question.likeness


class _Judge:
    """Says of each change whether it is carried, asked or only said."""

    def __init__(
        self, release: Release, asked: Sequence[Question], rest: Sequence[Question]
    ) -> None:
        self.release = release
        self.asked = {question.path: question for question in asked}
        self.rest = {question.path: question for question in rest}

    def __call__(self, change: ToolChange | None) -> tuple[Carriage, str]:
        """Whether a change is carried, and why not."""
        if change is None:
            return "said", "read the text: it is shown to the agent as it is"
        if change.kind.startswith("output_schema"):
            return self._of_results(change)
        question = self._question(change)
        if question is not None:
            many = "" if question.path in self.asked else ", one of too many questions"
            state: Carriage = "said" if many else "asked"
            return state, f"has {question.path[-1]} become {question.guess}?{many}"
        if change.kind in _SHOWN:
            return "carried", ""
        check = _CHECKS.get(change.kind)
        if check:
            return check(self.release, change)
        return "said", _WHY_NOT.get(
            change.kind, "it is shown, and the tool behind it does not know"
        )

    def _of_results(self, change: ToolChange) -> tuple[Carriage, str]:
        """Whether a change of results is carried: it may be many, and needs all of them to be."""
        state, note = _results(self.release, change)
        known = {**self.asked, **self.rest}
        own = [q for path, q in known.items() if path[0] in _OF_RESULTS and path[1] == change.old]
        if state == "said" or not own:
            return state, note
        told = [f"has {'.'.join(q.path[2:])} become {q.guess}?" for q in own]
        if any(q.path not in self.asked for q in own):
            return "said", f"{'; '.join(told)}, some of too many questions"
        return "asked", "; ".join([*told, *([note] if state == "asked" else [])])

    def _question(self, change: ToolChange) -> Question | None:
        paths: list[tuple[str, ...]] = (
            [("renamed", change.old)] if change.kind.startswith("tool_") else []
        )
        if change.kind.startswith("parameter_") and change.where:
            paths = [("params", change.old, change.where)]
        for path, question in ({**self.asked, **self.rest}).items():
            choice = change.kind.startswith("choice") and path[0] == "values"
            if path in paths or (choice and path[1:3] == (change.old, change.where)):
                return question
        return None


def _nothing_behind(release: Release, change: ToolChange) -> tuple[Carriage, str]:
    if change.new in release.finders:
        return "carried", ""
    return "said", "there is no old tool behind it: its calls are answered with an error"


def _routed(release: Release, change: ToolChange) -> tuple[Carriage, str]:
    if route_of(release, change) is not None:
        return "carried", ""
    return "said", "its calls are led to no tool of today"


def _results(release: Release, change: ToolChange) -> tuple[Carriage, str]:
    """Another form of results: carried where each is one that the new tool declares."""
    route = route_of(release, change)
    if change.kind == "output_schema_removed":
        return "carried", ""
    if route is None:
        return "said", "its calls are led to no tool of today"
    name = change.new
    form, pages = route.form, route.pages
    if form.before is None:
        return "carried", "held to what is declared now: a call that returns another form fails"
    left = [f"{path}: nothing carries its new type" for path in form.unlike]
    left += [
        f"{path}: nothing stands for {', '.join(lost)}"
        for path, lost in form.unsaid_values().items()
    ]
    if left:
        return "said", "; ".join(left)
    asked = [
        f'what does it return for {path}? [returned.{name}] "{path}" = ...' for path in form.missing
    ]
    if pages is not None and not pages.is_known:
        asked.append(f"how many are on a page? [pages.{name}] size = ...")
    if asked:
        return "asked", "; ".join(asked)
    return "carried", f"gone: {', '.join(form.dropped)}" if form.dropped else ""


_CHECKS: dict[str, Callable[[Release, ToolChange], tuple[Carriage, str]]] = {
    "tool_added": _nothing_behind,
    "parameter_added": optional,
    "required_parameter_added": required,
    "parameter_required": required,
    "parameter_renamed": renamed,
    "type_changed": valued,
    "type_narrowed": valued,
    "choice_replaced": valued,
    "choices_introduced": valued,
    "parameter_optional": no_longer_required,
    "type_widened": widened,
    "tool_renamed": _routed,
    "tool_merged": _routed,
    "tool_split": _routed,
    "tool_dispatched": _routed,
}
"""Changes that are carried on a condition."""
_SHOWN = frozenset(
    (
        "tool_removed", "parameter_removed", "choice_removed", "limit_tightened",
        "description_small", "description_reworded", "description_rewritten", "description_added",
        "description_removed", "annotations_added", "annotations_changed", "annotations_removed",
        "title_changed",
    )
)  # fmt: skip
"""Changes that are carried whole by what an agent is shown and by what its calls are held to."""
_WHY_NOT = {
    "default_added": "the tool behind it keeps the default of today",
    "default_removed": "the tool behind it keeps the default of today",
    "default_changed": "the tool behind it keeps the default of today",
    "choice_added": "the tool behind it takes the choices of today only",
    "choices_lifted": "the tool behind it takes the choices of today only",
    "limit_loosened": "the tool behind it has the limit of today",
    "schema_changed": "read it: what it does to calls is not known",
    "other_changed": "read it: what it does to calls is not known",
}
"""Why changes are only said; a kind that stands nowhere here is not carried either."""


# -- what agents did -------------------------------------------------------------------------------


def with_runs(
    reading: Reading, plan: Plan | None, records: Iterable[Record], agents: Sequence[str], why: str
) -> Reading:
    """The reading with the tasks that meet each change, and what agents did there.

    `why` says for all tasks why none was run with the change; "" where some were.
    """
    names = _task_names(plan)
    cells = {cell.id: cell for cell in plan.cells} if plan else {}
    arms: dict[str, dict[str, dict[str, Record]]] = defaultdict(lambda: defaultdict(dict))
    for record in records:
        cell = cells.get(record.cell)
        if cell is not None:
            known = arms[record.agent][names[cell.lineage]]
            arm = RELEASE if _is_shifted(cell) else ""
            worse = known.get(arm)
            if worse is None or worse.grade.passed:  # of several trials one that failed
                known[arm] = record
    outcomes = {
        agent: {task: _outcome(runs) for task, runs in arms[agent].items()} for agent in agents
    }
    left = {
        names[row.cell.lineage]: row.not_applicable
        for row in (plan.skipped if plan else ())
        if row.cell.shifts and _is_shifted(row.cell)
    }
    left |= dict.fromkeys(names.values(), why) if why else {}
    calls = list(_calls(plan, names)) if plan else []
    rows = tuple(_met(row, calls, outcomes, left, plan is not None) for row in reading.rows)
    measured = any(
        o.shifted.startswith(("passed", "failed"))
        or (o.clean.startswith("failed") and not o.shifted and task not in left)  # not asked again
        for each in outcomes.values()
        for task, o in each.items()
    )
    return msgspec.structs.replace(
        reading, rows=rows, outcomes=outcomes, left_out=left, measured=measured
    )


def _is_shifted(cell: Cell) -> bool:
    return bool(cell.shifts) and find_shift(cell.shifts[0].shift).name.startswith(f"{RELEASE}@")


def _task_names(plan: Plan | None) -> dict[str, str]:
    """By lineage the name of each task: the user's own, where the world has them."""
    found = {}
    for row in plan.rows if plan else ():
        cell = row.cell
        own: Mapping[str, Sequence[str]] = getattr(find_world(cell.world), "task_ids", {})
        found[cell.lineage] = (
            own[cell.kind][cell.index]
            if cell.index < len(own.get(cell.kind, ()))
            else f"{cell.world}/{cell.kind}/{cell.index}"
        )
    return found


def _outcome(runs: Mapping[str, Record]) -> Outcome:
    clean, shifted = runs.get(""), runs.get(RELEASE)
    return Outcome(
        _said(clean.grade) if clean else "",
        _said(shifted.grade) if shifted else "",
        shifted.episode if shifted else "",
    )


def _said(grade: Grade) -> str:
    return verdict(grade)


def _calls(plan: Plan, names: Mapping[str, str]) -> Iterator[tuple[str, str, frozenset[str]]]:
    """The expected calls of all tasks: the task, the tool, and the parameters that are passed."""
    for cell in plan.cells:
        if not cell.shifts and not cell.trial:
            for step in build(cell).calls:
                for tool, arguments in step.true or ((step.name, step.given),):
                    yield names[cell.lineage], tool, frozenset(arguments)


_OF_A_VALUE = ("parameter_", "type_", "choice", "limit_", "default_", "schema_")


def _met(
    row: Row,
    calls: Sequence[tuple[str, str, frozenset[str]]],
    outcomes: Mapping[str, Mapping[str, Outcome]],
    left: Mapping[str, str],
    has_world: bool,
) -> Row:
    """A row with its tasks, and with why no agent has met it."""
    change = row.change
    tasks: list[str] = []
    if change is not None and change.old:
        param = change.where.split(".")[0].split("[")[0]
        passed = bool(param) and change.kind.startswith(_OF_A_VALUE)
        passed = passed and change.kind not in ("parameter_required", "parameter_added")
        tasks = [
            task
            for task, tool, arguments in calls
            if tool == change.old and (not passed or param in arguments)
        ]
    tasks = list(dict.fromkeys(tasks))
    tested = any(each[task].tested for each in outcomes.values() for task in tasks if task in each)
    tested = tested and not (change and change.kind == "auth_changed")
    if tested or row.severity == "harmless":
        why, cure = "", ""
        if tested and row.carriage == "asked":
            why, cure = "only its likeliest reading was tested", "answer the question"
    else:
        why, cure = _why(row, tasks, outcomes, left, has_world)
    return msgspec.structs.replace(row, tasks=tuple(tasks), untested=why, cure=cure)


def _why(
    row: Row,
    tasks: Sequence[str],
    outcomes: Mapping[str, Mapping[str, Outcome]],
    left: Mapping[str, str],
    has_world: bool,
) -> tuple[str, str]:
    """Why a change was not tested, and what would test it."""
    if row.change and row.change.kind == "auth_changed":
        return "calls go to the tools of today", "`headers:` of tasks.yaml, with the new server"
    if not has_world:
        return "no tasks are given", "--world tasks.yaml --agent mymodule:my_agent"
    if not tasks:
        tool = row.change.old if row.change and row.change.old else "it"
        where = row.change.where if row.change else ""
        return (
            f"no task calls {tool}",
            f"a task that calls {tool}{f' with {where}' if where else ''}",
        )
    if not outcomes:
        return "no agent is given", "--agent mymodule:my_agent"
    reason = next((left[task] for task in tasks if task in left), "")
    if reason:
        return f"{reason}", row.note or "a mapping that says how (--mapping)"
    ends = [each[task] for each in outcomes.values() for task in tasks if task in each]
    if not ends or any(one.clean == "passed" and not one.shifted for one in ends):
        return "the run was stopped or its budget was spent before", "the same command, with more"
    if any(one.clean.startswith("failed") for one in ends):
        return "its tasks fail without the change too", "an agent that passes them today"
    return "its episodes are void", "run it again"


def check_agents(agents: Sequence[str], worlds: Sequence[str]) -> None:
    """Checks that an agent has tasks."""
    if agents and not worlds:
        raise UsageError(
            "--agent needs tasks: add --world tasks.yaml (`toolshift world init` writes one), or "
            "leave --agent out to read the change alone"
        )

"""A release of tools, read: each change once, with what carries it, what is asked and what is not.

    reading = read_release(old_side, new_side)
    reading.rows        a row for each change
    reading.questions   what two lists cannot tell; at most `MOST_QUESTIONS`
    reading.shift       the release as a shift, under what is certain or likely
    with_runs(reading, plan, records, agents)   and what agents did where they meet a change

**carried** means that a task which meets the change meets it in a run, and its calls are carried
out. **asked** means that an answer settles it, and is then carried. Until then a tool or parameter
is not carried, and tasks that need it are left out; of choices and results the likeliest reading is
taken. **said** means that neither is done; `note` says what is the matter.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from toolshift.core.errors import UsageError
from toolshift.core.intake import Intake
from toolshift.core.step import Step
from toolshift.drift.calls import BrokenCall
from toolshift.drift.carried_inputs import (
    UNCONVERTED,
    Carriage,
    defaulted,
    is_same_default,
    loosened,
    new_path,
    no_longer_required,
    optional,
    paging,
    removed,
    renamed,
    required,
    route_of,
    valued,
    widened,
)
from toolshift.drift.changes import OF_REQUESTS, ToolChange
from toolshift.drift.effects import in_other_units
from toolshift.drift.events import DriftReport, drift_report
from toolshift.drift.hypotheses import settled_likely
from toolshift.drift.lock import lock_in, lock_side
from toolshift.drift.questions import OF_RESULTS, Asked, Calls, asked_of, with_open
from toolshift.drift.schemas import SEVERITIES, Severity
from toolshift.drift.sources import is_stream, read_source
from toolshift.episode.causes import BROKE_DOWN, guilty_step
from toolshift.episode.grade import Grade
from toolshift.report.behind import changes_behind
from toolshift.report.words import verdict
from toolshift.runs.cell import Cell, build
from toolshift.runs.plan import Plan
from toolshift.runs.run_folder import Record
from toolshift.shifts.registry import find_shift
from toolshift.shifts.release.file import FORMAT, ShiftFile
from toolshift.shifts.release.inputs import Side, side_of
from toolshift.shifts.release.mapping import Answers, as_key
from toolshift.shifts.release.release import Release
from toolshift.shifts.release.resolve import Question, in_words
from toolshift.worlds.registry import find_world

RELEASE = "release"
_LOGIN, _ERRORS = "auth_changed", "errors_changed"
BESIDE_THE_CALLS = {
    **dict.fromkeys(
        OF_REQUESTS,
        "the program that sends the requests must follow; an agent calls as before",
    ),
    _LOGIN: "the login is that of the program which makes the calls, not of the agent",
    _ERRORS: "errors come as the tools of today say them",
}
"""Kinds of changes that no run meets, since calls go to the tools of today, and why."""


class Outcome(msgspec.Struct, frozen=True):
    """What an agent did in a task: without the change, and with it.

    Attributes:
        clean: "passed", "failed: CAUSE" or "void".
        shifted: the same, or "refused" where the task cannot be done any more and that was the
            right end; "" where the task was not run with the change.
        episode: the shifted episode, for `toolshift trace`.
        behind: of a failure what the change did to the call at which it went wrong; "" for nothing.
        called: of a failure the tools that were called, as they are called now and were; () where
            none of them has changed, for then any change may be why they were not called.
    """

    clean: str
    shifted: str
    episode: str = ""
    behind: str = ""
    called: tuple[str, ...] = ()

    @property
    def broke(self) -> bool:
        """Whether something that passed fails."""
        return self.clean == "passed" and self.shifted.startswith("failed")

    @property
    def why(self) -> str:
        """The cause of what broke, and what of the change brought it about."""
        cause = self.shifted.removeprefix("failed: ")
        return f"{self.behind} ({cause})" if self.behind else cause

    def reached(self, change: ToolChange | None) -> bool:
        """Whether the agent came to a change: one that fails before it says nothing of it."""
        if not self.called or change is None:
            return True
        return not {change.old, change.new}.isdisjoint(self.called)

    @property
    def tested(self) -> bool:
        """Whether it says how the agent takes the change."""
        return self.clean == "passed" and self.shifted.startswith(("passed", "failed", "refused"))


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

    @property
    def breaks_calls(self) -> bool:
        """Whether it breaks calls of an agent, and not only the program that sends the requests."""
        return self.severity == "breaking" and self.may_break_calls

    @property
    def may_break_calls(self) -> bool:
        """The same of a change that breaks them, or may."""
        beside = self.change is not None and self.change.kind in BESIDE_THE_CALLS
        return self.severity != "harmless" and not beside


class Reading(msgspec.Struct, frozen=True):
    """A release, read.

    Attributes:
        old: what the old tools were read from.
        new: what the new ones were.
        rows: the changes, breaking ones first.
        questions: what is open: the path of the answer, the likeliest one and its likeness, the
            question in words, and the tools that it is of.
        broken: by old tool, a call that was right and is refused now.
        outcomes: by agent and task, for all tasks that were run.
        left_out: by task, why it cannot be carried over to the new tools.
        unread: what could not be read of the inputs.
        measured: whether of every agent an episode says something of the change: a task that passes
            without it has a verdict with it, or one that fails without it passes with it.
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
        """The breaking changes that no agent has met; calls of an agent meet none of requests."""
        return [row for row in self.rows if row.untested and row.breaks_calls]

    @property
    def untested_tasks(self) -> dict[str, str]:
        """The tasks that a change affects and that some agent has no verdict with it in, and why.

        So is each task of a change that is only guessed or not carried: its verdicts say nothing
        of that change. A task that fails without the change is none: what fails cannot be lost.
        """
        meet = {task for row in self.rows if row.may_break_calls for task in row.tasks}
        found = {task: why for task, why in self.left_out.items() if task in meet}
        for agent, tasks in self.outcomes.items():
            for task, one in tasks.items():
                if task in meet and not one.tested and not one.clean.startswith("failed"):
                    void = NO_VERDICT if one.clean == "void" or one.shifted else NOT_RUN
                    found.setdefault(task, f"{agent}: {void}")
        for row in self.rows if self.outcomes else ():
            if row.untested and row.may_break_calls and row.carriage != "carried":
                for task in row.tasks:
                    if any(each[task].tested for each in self.outcomes.values() if task in each):
                        found.setdefault(task, row.untested)
        return found

    @property
    def is_unseen(self) -> bool:
        """Whether the change is none to agents: their calls and their answers stay as they are.

        None of their tasks can then be run with it, and each passes some without it.
        """
        ends = [each.values() for each in self.outcomes.values()]
        return (
            bool(self.rows and ends)
            and not any(row.may_break_calls for row in self.rows)
            and all(task in self.left_out for each in self.outcomes.values() for task in each)
            and all(any(one.clean == "passed" for one in each) for each in ends)
        )

    @property
    def undoable(self) -> dict[str, list[str]]:
        """The tasks that cannot be done any more, and the agents that refused them, as is right."""
        found: dict[str, list[str]] = {}
        for agent, tasks in self.outcomes.items():
            for task, outcome in tasks.items():
                if outcome.shifted == "refused":
                    found.setdefault(task, []).append(agent)
        return found

    @property
    def unmeasured(self) -> list[str]:
        """The agents of which no episode says something of a change that they can see."""
        if self.is_unseen:
            return []
        return [agent for agent, each in self.outcomes.items() if not _tells(each.values())]

    def exit_code(self, allow_untested: bool = False) -> int:
        """0 holds, 1 something that passed fails, 3 something is untested, 4 nothing measured."""
        if self.losses:
            return 1
        if self.outcomes and not self.measured and self.rows and not self.is_unseen:
            return 4
        return 3 if (self.untested or self.untested_tasks) and not allow_untested else 0


class Settling(msgspec.Struct, frozen=True):
    """A release with its mapping: the reading, the file of the shift, what is open, and what was
    answered before."""

    reading: Reading
    shift: ShiftFile
    report: DriftReport
    open: tuple[Question, ...]
    draft: Answers
    given: Answers = Answers()


def read_tools(text: str) -> Side:
    """Reads one side of a release: what `read_source` reads, or a lock."""
    path = Path(text)
    if path.is_file() and not is_stream(path):
        lock = lock_in(path)
        if lock is not None:
            side = side_of(lock.kind, lock.origin or path.name, lock.documents)
            return msgspec.structs.replace(side, requests=lock.requests)
    return read_source(text)


# -- reading a release -----------------------------------------------------------------------------


def read_release(
    before: Side, after: Side, given: Answers, calls: Callable[[], Calls] = tuple
) -> Settling:
    """Reads what a release does; what is likely is taken, and what is only a question is asked.

    `calls` has the expected calls of the tasks, by which questions are ranked where they are many.
    """
    settled = settled_likely(before, after, given)
    taken = with_open(settled)
    release = Release(before, after, taken)
    tools, requests = after.tools, after.requests
    report = drift_report(lock_side(before), tools, after.origin, None, given, requests)
    changes = [event.change for event in report.events if event.change is not None]
    asked = asked_of(release, changes, settled.questions, calls)
    judge = _Judge(release, asked)
    rows = [
        Row(event.severity, event.sentence, event.change, *judge(event.change))
        for severity in reversed(SEVERITIES)
        for event in report.events
        if event.severity == severity
    ]
    rows = [
        msgspec.structs.replace(row, severity="harmless")
        if row.change is not None and is_same_default(release, row.change)
        else row
        for row in rows
    ]
    rows += _other_errors(release)
    rows.sort(key=lambda row: -SEVERITIES.index(row.severity))
    asks = tuple(
        {
            "of": ".".join(one.path),
            "likeliest": one.guess,
            "likeness": one.likeness,
            "asked": in_words(one),
            "tools": list(one.tools),
        }
        for one in asked.first
    )
    reading = Reading(
        before.origin,
        after.origin,
        tuple(rows),
        asks,
        dict(report.broken),
        unread=(*before.unread, *after.unread),
    )
    shift = ShiftFile(FORMAT, RELEASE, before, after, taken)
    return Settling(reading, shift, report, asked.first, asked.draft, given)


def _other_errors(release: Release) -> Iterator[Row]:
    """Errors in another form than a document says today."""
    olds, news = release.old.errors or {}, release.new.errors or {}
    for new, routes in release.routes.items():
        for old in dict.fromkeys(route.old for route in routes):
            was, now = olds.get(old), news.get(new)
            if was and now and was != now:
                change = ToolChange(_ERRORS, old, new, "maybe", "", [*was], [*now])
                yield Row("maybe", change.sentence, change, "said", BESIDE_THE_CALLS[_ERRORS])


class _Judge:
    """Says of each change whether it is carried, asked or only said."""

    def __init__(self, release: Release, asked: Asked) -> None:
        self.release, self.asked = release, asked

    def __call__(self, change: ToolChange | None) -> tuple[Carriage, str]:
        """Whether a change is carried, and why not."""
        if change is None:
            return "said", "read the text: it is shown to the agent as it is"
        if change.kind in BESIDE_THE_CALLS:
            return "said", BESIDE_THE_CALLS[change.kind]
        if change.kind.startswith("output_schema"):
            return self._of_results(change)
        question, too_many = self._question(change)
        if question is not None:
            note = f"{in_words(question)}{', one of too many questions' if too_many else ''}"
            return ("said" if too_many else "asked"), note
        if change.kind in _SHOWN:
            return "carried", AS_BEFORE if self._means_otherwise(change) else ""
        check = _CHECKS.get(change.kind)
        if check:
            return check(self.release, change)
        return "said", _WHY_NOT.get(
            change.kind, "it is shown, and the tool behind it does not know"
        )

    def _means_otherwise(self, change: ToolChange) -> bool:
        """Whether a text may say that a tool does something else, and nothing carries that."""
        units = self.release.answers.param_units.get(change.old, {})
        texts = ("description_small", "description_reworded", "description_rewritten")
        means_otherwise = change.kind in texts and change.severity != "harmless"
        return means_otherwise and change.where not in units

    def _of_results(self, change: ToolChange) -> tuple[Carriage, str]:
        """Whether a change of results is carried: it may be many, and needs all of them to be."""
        state, note = _results(self.release, change)
        own = [
            q
            for q in (*self.asked.first, *self.asked.rest)
            if (q.path[0] in OF_RESULTS and change.old in (q.path[1], *q.tools))
            or (q.path[0] in ("returned", "pages") and q.path[1] == change.new)
        ]
        if not own:
            return state, note
        told = "; ".join(in_words(q) for q in own)
        if any(q in self.asked.rest for q in own):
            return "said", f"{told}, some of too many questions"
        return "asked", told

    def _question(self, change: ToolChange) -> tuple[Question | None, bool]:
        """The question that a change hangs on, and whether it is one of too many."""
        paths: list[tuple[str, ...]] = []
        if change.kind.startswith("tool_"):
            paths = [("renamed", change.old)]
        elif change.kind in ("required_parameter_added", "parameter_required"):
            paths = [("given", change.new, new_path(self.release, change))]
        elif change.kind in ("parameter_optional", "parameter_removed", "default_removed"):
            paths = [("defaults", change.old, change.where)]
        elif change.kind == "parameter_added" and _pages_by(self.release, change):
            paths = [("pages", change.new, "size")]
        if change.kind.startswith("parameter_") and change.where:
            paths.insert(0, ("params", change.old, change.where))
        for path in paths:
            question, too_many = self.asked.of(path)
            if question is not None:
                return question, too_many
        for question in (*self.asked.first, *self.asked.rest):
            if self._is_part(question, change):
                return question, question in self.asked.rest
        return None, False

    @staticmethod
    def _is_part(question: Question, change: ToolChange) -> bool:
        """Whether a change is one side of what a question is of."""
        table, *of = question.path
        if table == "values":
            return of[:2] == [change.old, change.where] and change.kind.startswith(_OF_CHOICES)
        if table == "param_units":
            return of == [change.old, change.where] and change.kind.startswith(_OF_UNITS)
        if table == "renamed":
            return change.kind == "tool_added" and change.new == question.guess
        added = change.kind in ("parameter_added", "required_parameter_added")
        lead, _, name = change.where.rpartition(".")
        return (
            table == "params"
            and added
            and change.old in question.tools
            and (name, lead) == (question.guess, of[1].rpartition(".")[0])
        )


def _pages_by(release: Release, change: ToolChange) -> bool:
    """Whether a parameter is one that asks for a page."""
    route = route_of(release, change)
    return route is not None and change.where in paging(route)


_OF_CHOICES = ("choice", "type_")
_OF_UNITS = ("parameter_renamed", "description_", "type_", "schema_", "limit_", "default_changed")
"""What may be another unit or format of a parameter."""


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
    form = route.form
    if form.before is None:
        return "carried", "held to what is declared now: a call that returns another form fails"
    left = [f"{path}: nothing carries its new type" for path in form.unlike]
    left += _in_other_units(release, change.old)
    left += [
        f"{path}: nothing stands for {', '.join(lost)}"
        for path, lost in form.unsaid_values().items()
    ]
    if left:
        return "said", "; ".join(left)
    return "carried", f"gone: {', '.join(form.dropped)}" if form.dropped else ""


def _in_other_units(release: Release, old: str) -> Iterator[str]:
    """The values of results whose new names have other units, to which nothing converts them."""
    told = release.answers.units.get(old, {})
    for path, new in release.answers.fields.get(old, {}).items():
        if path not in told and in_other_units(path, new):
            yield f"{path}: {UNCONVERTED.format('units', old, as_key(path))}"


def of_clients(release: Release, change: ToolChange) -> tuple[Carriage, str]:
    """What a server says beside a tool: carried where it is for clients alone.

    So are examples and titles inside of a schema, and the order of choices: they are shown as they
    are, and no call is refused for them.
    """
    keys = {*_keys(change.before), *_keys(change.after)}
    modes = [side.get("execution") or {} for side in (change.before, change.after) if side]
    needs = any(isinstance(m, Mapping) and m.get("taskSupport") == "required" for m in modes)
    if keys and keys <= _OF_CLIENTS and not needs:
        return "carried", ""
    return "said", _WHY_NOT["other_changed"]


def _keys(side: Any) -> Iterable[str]:
    return side.keys() if isinstance(side, Mapping) else ()


_OF_CLIENTS = frozenset(("_meta", "icons", "execution", "inputSchema"))
"""Keys of a tool that say nothing of its calls, by the Model Context Protocol: notes and pictures
for clients, whether a call may be made as a task, and what `drift.changes` puts there of schemas
that ask the same."""


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
    "parameter_removed": removed,
    "type_widened": widened,
    "choice_added": loosened,
    "choices_lifted": loosened,
    "limit_loosened": loosened,
    "default_added": defaulted,
    "default_removed": defaulted,
    "default_changed": defaulted,
    "other_changed": of_clients,
    "tool_renamed": _routed,
    "tool_merged": _routed,
    "tool_split": _routed,
    "tool_dispatched": _routed,
    "tool_superseded": _routed,
}
"""Changes that are carried on a condition."""
_SHOWN = frozenset(
    (
        "tool_removed", "choice_removed", "limit_tightened",
        "description_small", "description_reworded", "description_rewritten", "description_added",
        "description_removed", "annotations_added", "annotations_changed", "annotations_removed",
        "title_changed", "deprecation_added", "deprecation_removed",
    )
)  # fmt: skip
"""Changes that are carried by what an agent is shown and by what its calls are held to."""
AS_BEFORE = "agents are shown the new text, and the tools behind it do as before"
"""Of a text that may say that a tool does something else."""
_WHY_NOT = {
    "schema_changed": "read it: what it does to calls is not known",
    "other_changed": "read it: what it does to calls is not known",
}
"""Why changes are only said; a kind that stands nowhere here is not carried either."""


# -- what agents did -------------------------------------------------------------------------------


def with_runs(
    reading: Reading,
    plan: Plan | None,
    records: Iterable[Record],
    agents: Sequence[str],
    why: Mapping[str, str],
) -> Reading:
    """The reading with the tasks that meet each change, and what agents did there.

    `why` says by lineage why no task was run with the change; it is empty where some were.
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
        agent: {task: _outcome(runs, cells) for task, runs in arms[agent].items()}
        for agent in agents
    }
    left = {
        names[row.cell.lineage]: row.not_applicable
        for row in (plan.skipped if plan else ())
        if row.cell.shifts and _is_shifted(row.cell)
    }
    left |= {names[lineage]: reason for lineage, reason in why.items() if lineage in names}
    calls = expected_calls(plan) if plan else []
    outcomes = {
        agent: {task: _placed(one, task, reading.rows, calls) for task, one in tasks.items()}
        for agent, tasks in outcomes.items()
    }
    rows = tuple(_met(row, calls, outcomes, left, plan is not None) for row in reading.rows)
    measured = bool(outcomes) and all(_tells(each.values()) for each in outcomes.values())
    return msgspec.structs.replace(
        reading, rows=rows, outcomes=outcomes, left_out=left, measured=measured
    )


def _tells(outcomes: Iterable[Outcome]) -> bool:
    """Whether some of an agent's outcomes say how it takes a change.

    What fails without the change cannot be lost; that it passes with it is told all the same, for
    an agent may be made for the new tools.
    """
    return any(one.tested or one.shifted == "passed" for one in outcomes)


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


def _outcome(runs: Mapping[str, Record], cells: Mapping[str, Cell]) -> Outcome:
    clean, shifted = runs.get(""), runs.get(RELEASE)
    could_be_done = clean is None or clean.grade.solvable
    is_lost = shifted is not None and could_be_done and not shifted.grade.solvable
    with_change = _said(shifted.grade, shifted.steps) if shifted else ""
    return Outcome(
        _said(clean.grade, clean.steps) if clean else "",
        "refused" if is_lost and with_change == "passed" else with_change,
        shifted.episode if shifted else "",
        _behind(shifted, cells[shifted.cell]) if shifted else "",
        _called(shifted.steps) if shifted and not shifted.grade.passed else (),
    )


def _placed(
    outcome: Outcome, task: str, rows: Sequence[Row], calls: Sequence[ExpectedCall]
) -> Outcome:
    """An outcome that names what was called only where something of it has changed."""
    own = [call for call in calls if call.task == task]
    met = [
        row.change
        for row in rows
        if row.change is not None
        and row.severity != "harmless"
        and row.change.kind not in BESIDE_THE_CALLS
        if any(_meets(call, row.change) for call in own)
    ]
    if any(not {one.old, one.new}.isdisjoint(outcome.called) for one in met):
        return outcome
    return msgspec.structs.replace(outcome, called=())


def _said(grade: Grade, steps: Sequence[Step]) -> str:
    last = steps[-1] if steps else None
    if grade.cause == BROKE_DOWN and last is not None and last.kind == "failure":
        raised = re.match(r"[\w.]+: ", last.said)
        how = "its code raised" if raised else "its code broke down:"
        return f"failed: {how} {last.said.partition(' (')[0][:60]}"
    return verdict(grade)


def _behind(record: Record, cell: Cell) -> str:
    """What the change did to the call at which an episode went wrong."""
    if record.grade.passed or record.grade.void:
        return ""
    scene = build(cell)
    guilty = guilty_step(scene, record.steps, record.grade.cause)
    return "; ".join(changes_behind(scene, record.steps, guilty)[:2])


def _called(steps: Sequence[Step]) -> tuple[str, ...]:
    calls = [step for step in steps if step.kind == "call"]
    names = [name for step in calls for name in (step.name, *(tool for tool, _ in step.true))]
    return tuple(dict.fromkeys(names))


class ExpectedCall(NamedTuple):
    """An expected call of a task, in the old tools."""

    task: str
    tool: str
    arguments: Mapping[str, Any]


def expected_calls(plan: Plan) -> list[ExpectedCall]:
    """The expected calls of all tasks."""
    names = _task_names(plan)
    return [
        ExpectedCall(names[cell.lineage], tool, arguments)
        for cell in plan.cells
        if not cell.shifts and not cell.trial
        for step in build(cell).calls
        for tool, arguments in step.true or ((step.name, step.given),)
    ]


_OF_A_VALUE = ("parameter_", "type_", "choice", "limit_", "schema_")
"""Kinds of changes that a call meets which passes the value."""
_OF_CALLS = frozenset(("parameter_required", "parameter_added", "required_parameter_added"))
"""Kinds of changes that a call meets which passes what the value is a member of."""


def _meets(call: ExpectedCall, change: ToolChange) -> bool:
    """Whether an expected call meets a change."""
    if call.tool != change.old:
        return False
    if change.kind == "tool_split":
        return call.arguments.get(change.where) in (None, change.before)
    steps = [step for step in change.where.replace("[]", "").split(".") if step]
    if not steps or change.kind.startswith(("tool_", "output_schema")):
        return True
    if change.kind.startswith("default_"):
        return _passes(call.arguments, steps[:-1]) and not _passes(call.arguments, steps)
    if change.kind in _OF_CALLS:
        return _passes(call.arguments, steps[:-1])
    if change.kind.startswith(_OF_A_VALUE) or len(steps) > 1:
        return _passes(call.arguments, steps)
    return True


def _passes(value: Any, steps: Sequence[str]) -> bool:
    """Whether something stands at a path, in any item of the lists on the way."""
    if not steps:
        return True
    if isinstance(value, list):
        return any(_passes(each, steps) for each in value)
    if not isinstance(value, Mapping):
        return False
    if steps[0] == "*":
        return any(_passes(each, steps[1:]) for each in value.values())
    ends = range(1, len(steps) + 1)  # a name may have dots in it
    return any(
        name in value and _passes(value[name], steps[end:])
        for end, name in ((end, ".".join(steps[:end])) for end in ends)
    )


def _met(
    row: Row,
    calls: Sequence[ExpectedCall],
    outcomes: Mapping[str, Mapping[str, Outcome]],
    left: Mapping[str, str],
    has_world: bool,
) -> Row:
    """A row with its tasks, and with why no agent has met it."""
    change = row.change
    tasks = [call.task for call in calls if _meets(call, change)] if change else []
    tasks = list(dict.fromkeys(tasks))
    ends = [each[task] for each in outcomes.values() for task in tasks if task in each]
    tested = any(one.tested and one.reached(change) for one in ends) and row.carriage != "said"
    if tested or row.severity == "harmless":
        why, cure = "", ""
        if tested and row.carriage == "asked":
            why, cure = "only its likeliest reading was tested", "answer the question"
        elif tested and row.note == AS_BEFORE:
            why, cure = AS_BEFORE, _NEW_SERVER
    else:
        called = change is not None and any(call.tool == change.old for call in calls)
        why, cure = _why(row, tasks, outcomes, left, has_world, called)
    return msgspec.structs.replace(row, tasks=tuple(tasks), untested=why, cure=cure)


def _why(
    row: Row,
    tasks: Sequence[str],
    outcomes: Mapping[str, Mapping[str, Outcome]],
    left: Mapping[str, str],
    has_world: bool,
    called: bool,
) -> tuple[str, str]:
    """Why a change was not tested, and what would test it; `called`: a task calls its tool."""
    change = row.change
    if change is None:
        return row.note, "nothing: whether an agent obeys it is not measured"
    if change.kind in BESIDE_THE_CALLS:
        place = "headers" if change.kind == _LOGIN else "tools"
        return "calls go to the tools of today", f"`{place}:` of tasks.yaml, with the new server"
    if not has_world:
        return "no tasks are given", "--world tasks.yaml --agent mymodule:my_agent"
    if not tasks:
        return _no_task(change, called)
    reason = next((left[task] for task in tasks if task in left), "")
    if reason:
        return reason, row.note if row.carriage == "asked" else _MAPPED
    if row.carriage == "said":
        return row.note, _NEW_SERVER
    if not outcomes:
        return "no agent is given", "--agent mymodule:my_agent"
    return _why_not_met(change, [e[task] for e in outcomes.values() for task in tasks if task in e])


def _why_not_met(change: ToolChange, ends: Sequence[Outcome]) -> tuple[str, str]:
    """Why agents have not met a change in tasks that meet it, by how those ended."""
    if not ends or any(one.clean == "passed" and not one.shifted for one in ends):
        return NOT_RUN, "the same command, with more"
    if any(one.tested and not one.reached(change) for one in ends):
        return "agents fail before they call it", "an agent that comes so far"
    if any(one.clean.startswith("failed") for one in ends):
        return "its tasks fail without the change too", "an agent that passes them today"
    if any(one.shifted == "void: unrecorded" for one in ends):
        return NO_VERDICT, "the tools themselves instead of the recording"
    return NO_VERDICT, "run it again"


NOT_RUN = "the run was stopped or its budget was spent before"
NO_VERDICT = "its episodes are void"
_NEW_SERVER = "the new server: `tools:` of tasks.yaml"
_MAPPED = "say in the mapping (--mapping) what it has become"


def _no_task(change: ToolChange, called: bool) -> tuple[str, str]:
    """That no task meets a change, and which would."""
    tool = change.old or change.new
    if called and change.kind == "tool_split":
        which = f"{change.where} = {change.before}"
        return f"no task calls {tool} with {which}", f"a task that calls {tool} with {which}"
    if not called or not change.where or change.kind.startswith("tool_"):
        return f"no task calls {tool}", f"a task that calls {tool}"
    if change.kind.startswith("default_"):
        return (
            f"no task leaves {change.where} of {tool} out",
            f"a task that calls {tool} without {change.where}",
        )
    what = change.where
    if change.kind in _OF_CALLS:
        what = change.where.rpartition(".")[0] or change.where
    return f"no task passes {what} to {tool}", f"a task that calls {tool} with {what}"


def check_agents(agents: Sequence[str], worlds: Sequence[str]) -> None:
    """Checks that an agent has tasks."""
    if agents and not worlds:
        raise UsageError(
            "--agent needs tasks: add --world tasks.yaml (`toolshift world init` writes one), or "
            "leave --agent out to read only the change"
        )

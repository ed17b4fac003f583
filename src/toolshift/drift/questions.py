"""What two lists cannot tell, as questions: those first that decide most, and at most ten.

A question counts where its answer is carried: what a tool, a parameter, a choice or a value of
results has become, and the values that no reading says: what users say for a parameter, what stands
at a new place of a result, how many records a page has, what today's tool gets where a call leaves
a parameter out. The same question of several tools is asked once (`EVERY`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from toolshift.core.canonical import canonical
from toolshift.core.values import as_json
from toolshift.drift.carried_inputs import (
    defaulted,
    new_path,
    no_longer_required,
    removed,
    required,
)
from toolshift.drift.changes import ToolChange
from toolshift.shifts.release.mapping import EVERY, UNDECIDED, Answers
from toolshift.shifts.release.release import Release
from toolshift.shifts.release.resolve import OF_VALUES, Question, Settled, answered

MOST_QUESTIONS = 10
OF_RESULTS = ("fields", "result_values", "units")
_ORDER = (
    "renamed",
    "params",
    "values",
    "param_units",
    *OF_RESULTS,
    "given",
    "returned",
    "pages",
    "defaults",
)
"""Tables of a mapping, what decides most first."""
Calls = Iterable[tuple[str, str, Collection[str]]]
"""The expected calls of tasks: the task, the tool, and the parameters that are passed."""


class Asked(msgspec.Struct, frozen=True):
    """The questions of a release.

    Attributes:
        first: those that are asked.
        rest: those that are too many, and so are not carried.
        draft: the mapping with `UNDECIDED` where something is asked.
    """

    first: tuple[Question, ...]
    rest: tuple[Question, ...]
    draft: Answers

    def of(self, path: tuple[str, ...]) -> tuple[Question | None, bool]:
        """The question at a path, and whether it is one of too many."""
        for question in (*self.first, *self.rest):
            if covers(question, path):
                return question, question in self.rest
        return None, False


def covers(question: Question, path: tuple[str, ...]) -> bool:
    """Whether an answer of a question is one for the entry at a path."""
    own = question.path
    if own == path:
        return True
    if len(path) < 2 or own[1] != EVERY:
        return False
    return path[1] in question.tools and (own[0], *own[2:]) == (path[0], *path[2:])


def asked_of(
    release: Release,
    changes: Iterable[ToolChange],
    readings: Iterable[Question],
    calls: Callable[[], Calls],
) -> Asked:
    """The questions of a release: of its readings, and of values that nothing says."""
    read = list(readings)
    found = [*read, *_of_values(release, changes, read)]
    ranked = sorted(_together(found, release), key=_rank(lambda: ()))
    if len(ranked) > MOST_QUESTIONS:
        ranked = sorted(ranked, key=_rank(calls))
    draft = _draft(release.answers, ranked)
    return Asked(tuple(ranked[:MOST_QUESTIONS]), tuple(ranked[MOST_QUESTIONS:]), draft)


def _of_values(
    release: Release, changes: Iterable[ToolChange], read: Sequence[Question]
) -> Iterator[Question]:
    """The questions for values, each once."""
    found: dict[tuple[str, ...], Question] = {}
    for change in changes:
        path: tuple[str, ...] = ()
        if _wants(release, change, read):
            path = ("given", change.new, new_path(release, change))
        elif _may_be_left_out(release, change, read):
            path = ("defaults", change.old, change.where)
        if path:
            was = change.before if change.kind == "default_removed" else None
            guess = "" if was is None else as_json(was)
            found.setdefault(path, Question(path, guess, 0.0, (), (change.old,)))
    yield from found.values()
    yield from _of_results(release, read)


def _of_results(release: Release, read: Sequence[Question]) -> Iterator[Question]:
    """The questions for values of results, and for the size of their pages."""
    for new, routes in release.routes.items():
        for route in routes:
            guesses = {q.guess for q in read if q.path[:2] == ("fields", route.old)}
            for place in route.form.missing:
                if place not in guesses:
                    yield Question(("returned", new, place), "", 0.0, (), (route.old,))
            if route.pages is not None and not route.pages.is_known:
                yield Question(("pages", new, "size"), "", 0.0, (), (route.old,))


def _wants(release: Release, change: ToolChange, read: Sequence[Question]) -> bool:
    """Whether a change wants a value of the users' that nothing says."""
    kinds = ("required_parameter_added", "parameter_required")
    if change.kind not in kinds or _may_be(change, read):
        return False
    return required(release, change)[0] == "asked"


def _may_be_left_out(release: Release, change: ToolChange, read: Sequence[Question]) -> bool:
    """Whether a parameter may be left out now, and nothing says what is taken then."""
    check = _LEFT_OUT.get(change.kind)
    if check is None or any(covers(q, ("params", change.old, change.where)) for q in read):
        return False
    return check(release, change)[0] == "asked"


_LEFT_OUT = {
    "default_removed": defaulted,
    "parameter_optional": no_longer_required,
    "parameter_removed": removed,
}
"""What may be left out now, or has to be."""


def _may_be(change: ToolChange, read: Sequence[Question]) -> bool:
    """Whether a parameter that has come is what another may have become."""
    return any(
        q.path[:2] == ("params", change.old) and q.guess == change.where.rpartition(".")[2]
        for q in read
    )


def _together(found: Iterable[Question], release: Release) -> Iterator[Question]:
    """The questions, those of several tools that have one answer as one."""
    groups: dict[tuple[Any, ...], list[Question]] = defaultdict(list)
    for question in found:
        groups[_key(question, release)].append(question)
    named = Counter((same[0].path[0], same[0].path[2:]) for same in groups.values())
    for key, same in groups.items():
        first = same[0]
        several = named[first.path[0], first.path[2:]] > 1  # `EVERY` would speak of all of them
        if several or len(same) < (ALIKE if DESCRIBED in key else FEW):
            yield from map(_with_tools, same)
            continue
        choices = [one for one in first.choices if all(one in q.choices for q in same)]
        olds = dict.fromkeys(old for q in same for old in (q.tools or (q.path[1],)))
        news = dict.fromkeys(q.path[1] for q in same)
        yield Question(
            (first.path[0], EVERY, first.path[2]),
            first.guess,
            min(q.likeness for q in same),
            tuple(choices),
            tuple({**olds, **news}),
        )


def _with_tools(question: Question) -> Question:
    path = question.path
    tools = question.tools or tuple(dict.fromkeys((path[1], *(one[1] for one in question.also))))
    return replace(question, tools=tools)


ALIKE, FEW = 2, 3
"""From how many tools on a question is one: where a parameter has the same description in all of
them, and where it has none, and only its name and its type are the same."""
DESCRIBED = "described"


def _key(question: Question, release: Release) -> tuple[Any, ...]:
    """The same for questions that have one answer: of one parameter that several tools have."""
    table, tool, *rest = question.path
    if table not in ("params", "given", "defaults") or not _is_plain(rest[0]):
        return question.path
    side = release.after if table == "given" else release.before
    schema = next((p.schema for p in side.sources[tool].tool.params if p.name == rest[0]), {})
    described = DESCRIBED if schema.get("description") else ""
    return table, rest[0], question.guess, described, canonical(schema)


def _is_plain(path: str) -> bool:
    """Whether a path is a parameter, and not inside of one."""
    return "." not in path and "[" not in path


def _rank(calls: Callable[[], Calls]) -> Callable[[Question], tuple[int, int, int, float]]:
    """What decides most first: by the tasks that meet it, then by its tools, then by its table."""
    tasks: dict[str, set[str]] = defaultdict(set)
    for task, tool, _ in calls():
        tasks[tool].add(task)

    def rank(question: Question) -> tuple[int, int, int, float]:
        met = {task for tool in question.tools for task in tasks.get(tool, ())}
        place = _ORDER.index(question.path[0])
        return -len(met), -len(question.tools), place, -question.likeness

    return rank


def with_open(settled: Settled) -> Answers:
    """What is taken of a release, with `UNDECIDED` for tools and parameters that are asked.

    Of choices and results the likeliest is taken, where there is one.
    """
    return _draft(settled.answers, [q for q in settled.questions if q.path[0] in NOT_TAKEN])


NOT_TAKEN = ("renamed", "params")
"""Tables of which what is only a question is not carried until it is answered."""


def _draft(answers: Answers, questions: Iterable[Question]) -> Answers:
    """The mapping with `UNDECIDED` where something is asked."""
    for one in questions:
        if one.path[1] == EVERY:
            answers = _without(answers, one)
        answers = answered(_without_also(answers, one), one, UNDECIDED)
        if one.path[0] == "renamed":
            answers = msgspec.structs.replace(
                answers,
                removed=[name for name in answers.removed if name != one.path[1]],
                added=[name for name in answers.added if name != one.guess],
            )
    return answers


def _without(answers: Answers, one: Question) -> Answers:
    """The answers without the entries of single tools that one question for all is of."""
    raw = msgspec.to_builtins(answers)
    table = raw.get(one.path[0], {})
    for tool in one.tools:
        table.get(tool, {}).pop(one.path[2], None)
        if not table.get(tool, {1: 1}):
            del table[tool]
    return msgspec.convert(raw, Answers)


def _without_also(answers: Answers, one: Question) -> Answers:
    """The answers without the entries that have the answer of a question."""
    raw = msgspec.to_builtins(answers)
    for table, tool, key in one.also:
        of_tool = raw.get(table, {}).get(tool, {})
        of_tool.pop(key, None)
        if not of_tool:
            raw.get(table, {}).pop(tool, None)
    return msgspec.convert(raw, Answers) if one.also else answers


def is_of_value(question: Question) -> bool:
    """Whether a question is of a value that no reading says."""
    return question.path[0] in OF_VALUES

"""What is called carried is: on published lists, calls of today reach the tools of today."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from toolshift.drift.calls import Checker, RecordedCall, tried_calls
from toolshift.drift.questions import MOST_QUESTIONS
from toolshift.drift.release import Settling, read_release
from toolshift.interop.schema import sample, usual
from toolshift.shifts.release.inputs import Side, side_of
from toolshift.shifts.release.mapped_tools import Route
from toolshift.shifts.release.mapping import EVERY, Answers
from toolshift.shifts.release.nested import Unsayable, form_of, nodes_in
from toolshift.shifts.release.resolve import Question, answered

LISTS = sorted((Path(__file__).parents[2] / "studies/real_drift/lists").glob("*.json.gz"))
ROUNDS = 8
"""An answer may open further questions."""


def releases(path: Path) -> Iterator[tuple[str, Side, Side]]:
    held = json.loads(gzip.decompress(path.read_bytes()))["versions"]
    for one, other in pairwise(held):
        old, new = (side_of("mcp", v, held[v]["tools"]) for v in (one, other))
        yield f"{one} -> {other}", old, new


def answer_to(question: Question, before: Side, after: Side) -> Any:
    """The likeliest answer; for a value one of its schema."""
    table, tool, *rest = question.path
    if table not in ("given", "defaults", "returned", "pages"):
        known = question.guess in question.choices
        return question.guess if known or table == "units" else ""
    if table == "pages":
        return 3
    box = (before if table == "defaults" else after).toolbox()
    sources = [s for n, s in box.sources.items() if tool in (n, EVERY)]
    nodes = (dict(nodes_in(form_of(source))) for source in sources)
    return sample(next(known[rest[0]] for known in nodes if rest[0] in known))


def settled(before: Side, after: Side) -> Settling:
    """The release with all questions answered."""
    settling, given = read_release(before, after, Answers()), Answers()
    for _ in range(ROUNDS):
        if not settling.open:
            break
        assert len(settling.open) <= MOST_QUESTIONS
        for question in settling.open:
            given = answered(given, question, answer_to(question, before, after))
        settling = read_release(before, after, given)
    return settling


def as_now(route: Route, name: str, arguments: dict[str, Any], settling: Settling) -> Any:
    """A call of today as it is made of the new tool."""
    stated = settling.shift.mapping.given.get(name, {})
    now = {
        new: route.restated[old].outward(arguments[old])
        if old in route.restated
        else arguments[old]
        for old, new in route.params.items()
        if old in arguments
    }
    now |= {route.when[0]: route.when[1]} if route.when else {}
    (source,) = (s for n, s in settling.shift.new.toolbox().sources.items() if n == name)
    for param in source.tool.params:
        if param.required and param.name not in now:
            known = stated.get(param.name, usual(param.schema))
            now[param.name] = sample(param.schema) if known is None else known
    return now


@pytest.mark.slow
@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_what_is_asked_is_carried_once_answered_and_no_tool_is_there_that_always_fails(
    path: Path,
) -> None:
    for release, before, after in releases(path):
        settling = settled(before, after)
        open_ = [row.sentence for row in settling.reading.rows if row.carriage == "asked"]
        assert not open_, f"{release}: an answer is not carried"
        assert not settling.open, release
        check, box = Checker(after.tools), before.toolbox()
        said = {
            row.change.old
            for row in settling.reading.rows
            if row.change is not None and row.carriage == "said"
        }
        for name, routes in settling.shift.release().routes.items():
            for route in routes:
                if route.old in said or route.inside:
                    continue
                source, reached, faults = box.sources[route.old], False, list[str]()
                for call in tried_calls(source):
                    now = as_now(route, name, call.arguments, settling)
                    if check.fault(RecordedCall(name, now))[1]:
                        continue  # it cannot be said any more
                    try:
                        route.inward(now, source)
                        reached = True
                    except Unsayable as fault:
                        faults.append(str(fault))
                assert reached or not faults, f"{release}: all calls of {name} fail: {faults[:2]}"

"""Agents over messages that make one mistake at a small desk: its cause, and the step it is at."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from toolshift.agents.catalog import contestants
from toolshift.episode.causes import guilty_step
from toolshift.runs.cell import build
from toolshift.runs.study import play
from toolshift.runs.suite import read_task
from toolshift.worlds.own.world import OwnWorld
from toolshift.worlds.registry import find_world

TOOLS = '''
STATUS = {"O-1": "delivered", "O-2": "shipped"}
CASES = set()


def get_order(order_id: str) -> dict:
    """Get one order."""
    return {"status": STATUS[order_id]}


def list_orders(customer_id: str, page: int = 1) -> dict:
    """List the orders of a customer, one a page."""
    shown = {"orders": [list(STATUS)[page - 1]]}
    return shown | ({"next_page": page + 1} if page < len(STATUS) else {})


def open_case(order_id: str) -> dict:
    """Open a case for an order; its notes go to the case."""
    CASES.add(f"K-{order_id}")
    return {"case_id": f"K-{order_id}"}


def add_note(case_id: str, note: str) -> dict:
    """Add a note to an open case."""
    if case_id not in CASES:
        raise LookupError("no such case")
    return {"note_ref": f"N-{case_id}"}
'''
WORLD = """
world: desk_of_scripts
tools: {python: desk_of_scripts}
writes: [open_case, add_note]
tasks:
  - id: status
    ask: What is the status of order O-2?
    calls: [{name: get_order, arguments: {order_id: O-2}}]
    check: {answer: shipped}
  - id: last
    ask: Which is the last order of customer C-7, and what is its status?
    calls:
      - {name: list_orders, arguments: {customer_id: C-7}}
      - {name: list_orders, arguments: {customer_id: C-7, page: 2}}
      - {name: get_order, arguments: {order_id: "{{calls[1].orders[0]}}"}}
    check: {answer: shipped}
  - id: note
    ask: Open a case for order O-1 and add the note "scratched" to it. Give me its reference.
    calls:
      - {name: open_case, arguments: {order_id: O-1}}
      - {name: add_note, arguments: {case_id: "{{calls[0].case_id}}", note: scratched}}
    check: {answer: N-K-O-1, calls: true, ordered: true}
"""


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> OwnWorld:
    folder = tmp_path_factory.mktemp("desk")
    (folder / "desk_of_scripts.py").write_text(TOOLS)
    (folder / "desk.yaml").write_text(WORLD)
    world = find_world(str(folder / "desk.yaml"))
    assert isinstance(world, OwnWorld)
    return world


Move = tuple[str, dict[str, Any]] | str
"""A call of a tool, or a reply in prose."""


def said(answer: str) -> Move:
    return "final_answer", {"answer": answer}


def refused(reason: str) -> Move:
    return "refuse", {"reason": reason}


def scripted(moves: tuple[Move, ...]) -> Callable[[list[Any], list[Any]], dict[str, Any]]:
    def agent(messages: list[Any], tools: list[Any]) -> dict[str, Any]:
        move = moves[sum(message["role"] == "assistant" for message in messages)]
        if isinstance(move, str):
            return {"role": "assistant", "content": move}
        function = {"name": move[0], "arguments": json.dumps(move[1])}
        call = {"id": "1", "type": "function", "function": function}
        return {"role": "assistant", "content": "", "tool_calls": [call]}

    return agent


def blamed(desk: OwnWorld, task: str, *moves: Move) -> tuple[str, int | None]:
    """The cause of a failure and the step that is blamed for it."""
    kind = next(kind for kind, ids in desk.task_ids.items() if task in ids)
    at = desk.task_ids[kind].index(task)
    cell = read_task(f"{desk.name}/{kind}/{at}", "", 0, "dev", 200, 0)
    scene = build(cell)
    episode = play(contestants([scripted(moves)])[0], cell, scene)
    assert not episode.grade.passed
    return episode.grade.cause, guilty_step(scene, episode.steps, episode.grade.cause)


GET: Move = ("get_order", {"order_id": "O-2"})
LIST: Move = ("list_orders", {"customer_id": "C-7"})
OPEN: Move = ("open_case", {"order_id": "O-1"})
NOTE: Move = ("add_note", {"case_id": "K-O-1", "note": "scratched"})


def test_the_right_call_too_early_is_a_wrong_order(desk: OwnWorld) -> None:
    assert blamed(desk, "note", NOTE, OPEN, said("N-K-O-1")) == ("wrong_order", 0)
    assert blamed(desk, "note", NOTE, refused("not_found")) == ("wrong_order", 0)
    wrong: Move = ("add_note", {"case_id": "K-O-1", "note": "something else that it says there"})
    assert blamed(desk, "note", wrong, OPEN, said("N-K-O-1")) == ("bad_arguments", 0)


@pytest.mark.parametrize("page", [{"page": "two"}, {"page": "2nd"}, {"cursor": 2}], ids=str)
def test_a_page_that_the_schema_does_not_take_is_a_bad_argument(
    page: dict[str, Any], desk: OwnWorld
) -> None:
    bad: Move = ("list_orders", {"customer_id": "C-7", **page})
    for rest in ((refused("service_failure"),), (bad, refused("not_found")), (said("delivered"),)):
        assert blamed(desk, "last", LIST, bad, *rest) == ("bad_arguments", 1)


def test_a_page_that_is_not_asked_for_is_still_missed(desk: OwnWorld) -> None:
    assert blamed(desk, "last", LIST, refused("not_found")) == ("missed_page", 0)


@pytest.mark.parametrize(
    "answer", ["shipped or delivered", "Either shipped or packed.", "shipped/lost"]
)
def test_words_to_choose_from_are_a_guess(answer: str, desk: OwnWorld) -> None:
    assert blamed(desk, "status", GET, said(answer)) == ("guessed_among_codes", 1)


@pytest.mark.parametrize("answer", ["It was not shipped or delivered.", "packed or delivered"])
def test_other_words_are_no_guess(answer: str, desk: OwnWorld) -> None:
    assert blamed(desk, "status", GET, said(answer)) == ("ignored_result", 1)


@pytest.mark.parametrize("ending", ["", " ", said(""), said("\n")], ids=repr)
def test_an_empty_answer_is_none(ending: Move, desk: OwnWorld) -> None:
    assert blamed(desk, "status", GET, ending) == ("broke_down", 1)
    bad: Move = ("get_order", {"order": "O-2"})
    assert blamed(desk, "status", bad, ending) == ("bad_arguments", 0)


def test_a_write_that_nobody_asked_for_comes_before_the_answer(desk: OwnWorld) -> None:
    for rest in ((said("lost"),), (GET, said("lost")), (GET, said("shipped"))):
        assert blamed(desk, "status", OPEN, *rest) == ("surplus_write", 0)
    assert blamed(desk, "status", GET, OPEN, said("lost")) == ("surplus_write", 1)

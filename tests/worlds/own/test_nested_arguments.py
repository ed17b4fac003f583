"""Arguments that are lists and objects: references inside them, and ids that are reissued."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from worlds.own.test_own import called, played

from toolshift.core.codecs import texts_in
from toolshift.core.errors import UsageError
from toolshift.core.scene import Scene
from toolshift.core.shift import NotApplicable
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import Episode
from toolshift.runs.own_checking import check_tasks
from toolshift.shifts import registry
from toolshift.shifts.registry import apply
from toolshift.worlds.own import OwnWorld, load
from toolshift.worlds.own.expected_calls import agrees, resolved

TOOLS = '''
def find_parcels(customer: str) -> dict[str, list[str]]:
    """Find the parcels of a customer.

    Args:
        customer: Who.
    """
    return {"parcel_ids": ["PX-4411", "PX-4412"]}


def find_places(street: str) -> list[dict[str, str]]:
    """Find places in a street.

    Args:
        street: Where.
    """
    return [{"place_id": "PL-77"}, {"place_id": "PL-78"}]


def send_all(parcel_ids: list[str], route: dict[str, list[str]]) -> dict[str, int]:
    """Send parcels along a route.

    Args:
        parcel_ids: Which.
        route: The places under `via`.
    """
    if set(parcel_ids) - {"PX-4411", "PX-4412"} or set(route["via"]) - {"PL-77", "PL-78"}:
        raise LookupError("there is no such parcel or place")
    return {"sent": len(parcel_ids)}
'''
TASKS = """
world: parcels
tools: {python: parcel_tools}
writes: [send_all]
tasks:
  - id: send
    ask: Send the parcels of Mara by way of the second place in Mill Road. How many were sent?
    calls:
      - {name: find_parcels, arguments: {customer: Mara}}
      - {name: find_places, arguments: {street: Mill Road}}
      - name: send_all
        arguments:
          parcel_ids: [PX-4411, PX-4412]
          route: {via: ["{{calls[1][1].place_id}}"]}
    check: {answer: "2", calls: true}
"""
PARCELS = ("find_parcels", {"customer": "Mara"})
PLACES = ("find_places", {"street": "Mill Road"})
SEND = ("send_all", {"parcel_ids": ["PX-4411", "PX-4412"], "route": {"via": ["PL-78"]}})


@pytest.fixture
def world(tmp_path: Path) -> OwnWorld:
    return written(tmp_path, TASKS)


def written(folder: Path, tasks: str) -> OwnWorld:
    (folder / "parcel_tools.py").write_text(TOOLS)
    (folder / "tasks.yaml").write_text(tasks)
    return load(folder / "tasks.yaml")


@pytest.fixture
def scene(world: OwnWorld) -> Scene:
    return make_scene(world, "task", 0)


def test_references_inside_of_lists_and_objects_are_followed(scene: Scene) -> None:
    assert played(scene).passed
    assert called(scene, PARCELS, PLACES, SEND, answer="2").passed
    wrong = ("send_all", {**SEND[1], "route": {"via": ["PL-77"]}})
    assert not called(scene, PARCELS, PLACES, wrong, answer="2").passed
    fewer = ("send_all", {**SEND[1], "parcel_ids": ["PX-4411"]})
    assert not called(scene, PARCELS, PLACES, fewer, answer="2").passed


@pytest.mark.parametrize("severity", [1, 2, 3])
def test_ids_inside_of_lists_are_reissued(scene: Scene, severity: int) -> None:
    shifted = apply(scene, "verification_change", severity)
    calls = [step for step in shifted.calls if step.provoked]
    assert len(calls) >= min(severity, 2)
    episode = Episode(shifted)
    for name, arguments in (PARCELS, PLACES):
        episode.call(name, arguments)
    text, result = episode.call(*SEND)
    assert result.hint is not None
    assert result.hint.new in text
    assert result.hint.old in texts_in(SEND[1])
    arguments: dict[str, Any] = SEND[1]
    while result.hint is not None:  # as an agent that reads the error goes on
        old, new = result.hint.old, result.hint.new
        arguments = {
            "parcel_ids": [new if each == old else each for each in arguments["parcel_ids"]],
            "route": {"via": [new if each == old else each for each in arguments["route"]["via"]]},
        }
        _, result = episode.call("send_all", arguments)
    assert result.ok
    assert played(shifted).passed
    assert not played(shifted, "gives_up").passed


def test_verification_change_on_lists_of_records_and_of_ids(world: OwnWorld) -> None:
    (task,) = check_tasks(world)
    assert task.state == "ok"
    assert "verification_change" not in task.not_applicable


RESULTS = {0: {"ids": ["a"], "id": "a"}}


@pytest.mark.parametrize(
    ("expected", "value", "right"),
    [
        (["{{calls[0].id}}"], ["a"], True),
        (["{{calls[0].id}}"], ["b"], False),
        ({"x": [{"y": "no. {{calls[0].id}}"}]}, {"x": [{"y": "no. a"}]}, True),
        ({"x": "{{calls[0].gone}}"}, {"x": None}, False),
        ({"x": {"any": 1}}, {"x": "whatever"}, True),
        ([{"like": "^t", "example": "tea"}], ["tee"], True),
        ([{"like": "^t", "example": "tea"}], ["cup"], False),
        (["a"], ["a", "a"], False),
    ],
)
def test_what_agrees_at_depth(expected: Any, value: Any, right: bool) -> None:
    assert agrees(expected, value, RESULTS) is right


def test_one_reference_that_leads_nowhere_spoils_the_whole() -> None:
    assert resolved(["{{calls[0].id}}", "{{calls[0].gone}}"], RESULTS) is None
    assert resolved([None, "{{calls[0].id}}", {"any": 3}], RESULTS) == [None, "a", 3]


def test_a_reference_to_a_later_call_is_refused_at_any_depth(tmp_path: Path) -> None:
    tasks = TASKS.replace("calls[1][1]", "calls[7][1]")
    with pytest.raises(UsageError, match=r"route.via\[0\]: call 2 can refer to earlier calls only"):
        written(tmp_path, tasks)


def test_a_shift_that_raises_is_said_by_the_check_of_the_tasks(
    world: OwnWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = registry.apply

    def broken(scene: Scene, name: str, severity: int) -> Scene:
        if name == "format_drift":
            raise ZeroDivisionError("oh")
        if name == "redirect":
            raise NotApplicable("no")
        return real(scene, name, severity)

    monkeypatch.setattr("toolshift.runs.own_checking.apply", broken)
    (task,) = check_tasks(world)
    assert task.state == "fail"
    assert "the shift format_drift raised ZeroDivisionError: oh" in task.said
    assert task.not_applicable["redirect"] == "no"


ODD_TOOLS = '''
def quote(symbol: str) -> dict[str, float]:
    """Quote a stock.

    Args:
        symbol: Which.
    """
    return {"MA(5)": 227.11, "a.b": 3.5}


def watch(price: float, step: float) -> dict[str, bool]:
    """Watch a price.

    Args:
        price: From which on.
        step: By how much.
    """
    return {"watched": (price, step) == (227.11, 3.5)}
'''
ODD_TASKS = """
world: odd_keys
tools: {python: odd_tools}
writes: [watch]
tasks:
  - id: watch
    ask: Watch OMEG from its average of five days on, by the step that goes with it.
    calls:
      - {name: quote, arguments: {symbol: OMEG}}
      - {name: watch, arguments: {price: 227.11, step: 3.5}}
"""


def test_a_value_under_a_key_that_no_reference_can_name_is_taken_as_it_stands(
    tmp_path: Path,
) -> None:
    (tmp_path / "odd_tools.py").write_text(ODD_TOOLS)
    (tmp_path / "tasks.yaml").write_text(ODD_TASKS)
    scene = make_scene(load(tmp_path / "tasks.yaml"), "task", 0)
    assert played(scene).passed
    assert [step.arguments for step in scene.calls][1] == {"price": 227.11, "step": 3.5}


LISTED_TOOLS = '''
def parcels_of(customer: str) -> dict[str, object]:
    """List the parcels of a customer.

    Args:
        customer: Who.
    """
    return {"codes": ["K7XM-22PQ"], "first": "K7XM-22PQ"}
'''
LISTED_TASKS = """
world: listed
tools: {python: listed_tools}
tasks:
  - id: list
    ask: Which is the first parcel of Mara?
    calls: [{name: parcels_of, arguments: {customer: Mara}}]
    check: {answer: K7XM-22PQ}
"""


def test_a_wrong_answer_after_a_result_with_a_list_has_a_cause(tmp_path: Path) -> None:
    (tmp_path / "listed_tools.py").write_text(LISTED_TOOLS)
    (tmp_path / "tasks.yaml").write_text(LISTED_TASKS)
    scene = make_scene(load(tmp_path / "tasks.yaml"), "task", 0)
    found = called(scene, ("parcels_of", {"customer": "Mara"}), answer="K7XM-22PR")
    assert (found.passed, found.cause) == (False, "ignored_result")


PAGED = """
world: paged
tools: {python: paged_tools}
tasks:
  - id: last
    ask: What does the open order of Mara hold?
    calls:
      - {name: list_orders, arguments: {customer: Mara}}
      - {name: get_order, arguments: {order_id: %s}}
    check: {answer: kettle, calls: true}
"""
PAGED_TOOLS = '''
def list_orders(customer: str) -> dict[str, object]:
    """List the orders of a customer, a page at a time."""
    return {"orders": [{"order_id": "O-1", "lines": []}, {"order_id": "O-2", "lines": [3]}],
            "next_cursor": None}

def get_order(order_id: str) -> dict[str, str]:
    """Get an order."""
    return {"order_id": order_id, "item": "kettle"}
'''


@pytest.mark.parametrize(
    "argument",
    ["O-2", '"{{calls[0].orders[1].order_id}}"', '"{{calls[0].orders.1.order_id}}"'],
)
def test_a_value_of_a_page_can_be_referred_to(tmp_path: Path, argument: str) -> None:
    (tmp_path / "paged_tools.py").write_text(PAGED_TOOLS)
    (tmp_path / "tasks.yaml").write_text(PAGED % argument)
    world = load(tmp_path / "tasks.yaml")
    (task,) = check_tasks(world)
    assert (task.state, task.said) == ("ok", "")
    scene = make_scene(world, "task", 0)
    for name in ("format_drift", "csv_results"):
        assert name not in task.not_applicable
    assert played(apply(scene, "format_drift", 1)).passed  # the keys in the list are renamed


@pytest.mark.parametrize(
    ("reference", "value"),
    [
        ("{{calls[0].orders[1].id}}", "O-2"),
        ("{{calls[0].orders.1.id}}", "O-2"),
        ("{{calls[0].orders[1].tags[0]}}", "new"),
        ("{{calls[0].orders[2].id}}", None),
        ("{{calls[0].orders.id}}", None),
        ("{{calls[1][0].orders[0].id}}", "O-3"),
    ],
)
def test_a_reference_leads_through_lists(reference: str, value: str | None) -> None:
    page = {"orders": [{"id": "O-1"}, {"id": "O-2", "tags": ["new"]}]}
    assert resolved(reference, {0: page, 1: [{"orders": [{"id": "O-3"}]}]}) == value

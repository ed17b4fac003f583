"""An answer that a check wants is looked for in the results of the expected calls."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from toolshift.core.errors import UsageError
from toolshift.episode.draw import make_scene
from toolshift.episode.grade import regrade
from toolshift.runs.own_checking import check_tasks
from toolshift.shifts.registry import apply
from toolshift.worlds.own import OwnWorld, load, spare

TOOLS = '''
"""A small library."""


def stock() -> dict:
    """What is there."""
    return {
        "shelves": [38, 40],
        "open": [True, False],
        "loans": [{"id": "L-1", "title": "lamp"}, {"id": "L-2", "title": "kettle"}],
        "titles": ["Dune, Part Two", "Emma"],
        "colours": {"warm": ["dark red"], "cold": ["blue", "blue-green"]},
    }


def numbers() -> list[int]:
    """Numbers alone."""
    return [7, 11, 13]


def books() -> list[dict]:
    """Records with lists inside."""
    return [{"id": "A", "pages": [17, 19]}, {"id": "B", "pages": [23]}]


def text() -> str:
    """JSON in a text, as many servers send it."""
    return '{"copies": [3, 5], "names": ["Ada", "Alan"]}'
'''


@pytest.fixture
def world(tmp_path: Path) -> Callable[[str, str], OwnWorld]:
    (tmp_path / "answer_tools.py").write_text(TOOLS)

    def made(tool: str, answer: str) -> OwnWorld:
        file = tmp_path / "t.yaml"
        file.write_text(
            "world: library\ntools: {python: answer_tools}\ntasks:\n"
            "  - id: t\n    ask: Which are they?\n"
            f"    calls: [{{name: {tool}, arguments: {{}}}}]\n"
            f"    check:\n      answer: {answer}\n"
        )
        load.__globals__["_load"].cache_clear()
        return load(file)

    return made


@pytest.mark.parametrize(
    ("tool", "answer", "right"),
    [
        ("stock", "38", "38"),
        ("stock", "[38]", "38"),
        ("stock", "[38, 40]", "38, 40"),
        ("stock", "[40, lamp]", "40, lamp"),
        ("stock", "kettle", "kettle"),
        ("stock", "[lamp, kettle]", "lamp, kettle"),
        ("stock", "[L-2, dark red]", "L-2, dark red"),
        ("stock", '["Dune, Part Two"]', "Dune, Part Two"),
        ("stock", '[Emma, "Dune, Part Two"]', "Emma, Dune, Part Two"),
        ("numbers", "11", "11"),
        ("numbers", "[13, 7]", "13, 7"),
        ("books", "23", "23"),
        ("books", "[19, B]", "19, B"),
        ("text", "5", "5"),
        ("text", "[3, Alan]", "3, Alan"),
    ],
)
def test_a_value_inside_a_list_of_results_is_found_and_proved(
    world: Callable[[str, str], OwnWorld], tool: str, answer: str, right: str
) -> None:
    made = world(tool, answer)
    (task,) = made.by_kind["task"]
    assert task.answer == right
    (tried,) = check_tasks(made)
    assert tried.state == "ok", tried.said


@pytest.mark.parametrize(
    ("answer", "place", "said"),
    [
        ("[lamp, kettel]", r"t.yaml:8: tasks\[0\].check.answer\[1\]: ", "'kettel'.*'kettle'"),
        ("[41, 39]", r"t.yaml:8: tasks\[0\].check.answer\[0\]: ", "contains '41' or '39'"),
        ("emerald", r"t.yaml:8: tasks\[0\].check.answer: ", "item of a list or words"),
        ("emerald", "", "add the call whose result says it to `calls`, or give under `example`"),
    ],
)
def test_an_answer_that_no_result_has_is_said_with_what_to_do(
    world: Callable[[str, str], OwnWorld], answer: str, place: str, said: str
) -> None:
    with pytest.raises(UsageError, match=f"{place}.*{said}"):
        world("stock", answer)


def test_each_value_of_a_large_result_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rehearsal for each shift asked again of each of 5,000 values: 46 seconds for one task."""
    (tmp_path / "many_tools.py").write_text(
        "def items() -> list[dict]:\n"
        '    """Lists all items."""\n'
        "    return [\n"
        '        {"id": f"R-{n:04d}", "name": f"Thing {n}", "price": n / 2} for n in range(300)\n'
        "    ]\n"
    )
    (tmp_path / "t.yaml").write_text(
        "world: many\ntools: {python: many_tools}\nwrites: []\ntasks:\n"
        "  - id: t\n    ask: Which id has the item that is called Thing 299?\n"
        "    calls: [{name: items, arguments: {}}]\n    check: {answer: R-0299}\n"
    )
    asked: list[tuple[Any, Any]] = []
    matches = spare.matches

    def counted(answer: str, wanted: Any) -> bool:
        asked.append((answer, wanted))
        return matches(answer, wanted)

    monkeypatch.setattr(spare, "matches", counted)
    (tried,) = check_tasks(load(tmp_path / "t.yaml"))
    assert tried.state == "ok"
    assert tried.shifts > 20
    assert len(asked) < 1_500, "900 values, and the few that shifts show in another way"


SHOP = '''
"""Orders."""


def get_order(number: str) -> dict:
    """Get one order."""
    return {"number": number, "paid": False, "track": None, "total": 12}
'''


def asked(tmp_path: Path, ask: str, check: str) -> OwnWorld:
    """A world of one task about one order."""
    (tmp_path / "shop_tools.py").write_text(SHOP)
    file = tmp_path / "shop.yaml"
    file.write_text(
        "world: shop\ntools: {python: shop_tools}\ntasks:\n"
        f"  - id: t\n    ask: {ask}\n    check: {{{check}}}\n"
        "    calls: [{name: get_order, arguments: {number: OR-1}}]\n"
    )
    load.__globals__["_load"].cache_clear()
    return load(file)


@pytest.mark.parametrize("draw", ["", "b", "c", "d"])
def test_a_misspelt_request_makes_no_right_answer_wrong(tmp_path: Path, draw: str) -> None:
    world = asked(tmp_path, "Has order OR-1 been paid?", "answer: 'no', example: 'No.'")
    scene = make_scene(world, "task", 0)
    for shown in (scene, apply(scene, "query_typos", 3, draw=draw)):
        steps = [*shown.rehearsal[:-1]]
        steps.append(msgspec.structs.replace(shown.rehearsal[-1], said="The order is unpaid."))
        assert regrade(shown, steps, "answered").passed, shown.asks[0].text


def test_none_needs_no_result_that_says_it(tmp_path: Path) -> None:
    check = "answer: none, example: There is none."
    scene = make_scene(asked(tmp_path, "What is the tracking code of OR-1?", check), "task", 0)
    assert apply(scene, "csv_results", 2)

"""Which arguments are as expected, and which calls a check of some of them wants."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from worlds.own.test_own import EXAMPLE, called
from worlds.own.test_own_file import GOOD

from toolshift.core.errors import UsageError
from toolshift.episode.draw import make_scene
from toolshift.worlds.own import load
from toolshift.worlds.own.expected_calls import agrees
from toolshift.worlds.own.file import read_file

WHOLE, PART = "{{calls[0].id}}", "Order {{calls[0].id}}"


@pytest.mark.parametrize(
    ("expected", "value", "results"),
    [
        (WHOLE, None, {}),
        (WHOLE, None, {0: {"id": None}}),
        (WHOLE, None, {0: {"error": "x"}}),
        (PART, "Order None", {}),
        (PART, None, {}),
        (WHOLE, True, {0: {"id": 1}}),
        (1, True, {}),
        (False, 0, {}),
        ({"a": [1]}, {"a": [True]}, {}),
        ([1], [1, 2], {}),
        (None, 0, {}),
        ("1", 1, {}),
    ],
)
def test_what_does_not_agree(expected: Any, value: Any, results: dict[int, Any]) -> None:
    assert not agrees(expected, value, results)


@pytest.mark.parametrize(
    ("expected", "value", "results"),
    [
        (WHOLE, 7, {0: {"id": 7}}),
        (PART, "Order 7", {0: {"id": 7}}),
        (None, None, {}),
        (1, 1.0, {}),
        (True, True, {}),
        ({"a": [1, "b"]}, {"a": [1.0, "b"]}, {}),
    ],
)
def test_what_agrees(expected: Any, value: Any, results: dict[int, Any]) -> None:
    assert agrees(expected, value, results)


TWICE = GOOD.replace(
    "    check:\n      answer: shipped\n",
    """\
      - {name: find_customer, arguments: {email: mara@example.com}}
      - {name: list_orders, arguments: {customer_id: "{{calls[1].customer_id}}"}}
      - {name: get_order, arguments: {order_id: O-1702}}
    check:
      answer: shipped
      ordered: true
      calls:
        - {name: get_order, arguments: {order_id: O-1702}}
        - {name: list_orders, arguments: {customer_id: "{{calls[1].customer_id}}"}}
        - {name: get_order, arguments: {order_id: O-1702}}
""",
)
ORDER = ("get_order", {"order_id": "O-1702"})
FOUND = ("find_customer", {"email": "mara@example.com"})
LISTED = ("list_orders", {"customer_id": "C-301"})


def written(text: str, folder: Path) -> Path:
    for name in ("shop_tools.py", "shop_checks.py"):
        shutil.copy(EXAMPLE / name, folder / name)
    (folder / "t.yaml").write_text(text)
    return folder / "t.yaml"


def test_a_call_that_is_wanted_twice_must_be_made_twice(tmp_path: Path) -> None:
    path = written(TWICE, tmp_path)
    assert read_file(path).given[0].check.calls == (0, 2, 3)
    scene = make_scene(load(path), "status", 0)
    assert called(scene, ORDER, FOUND, LISTED, ORDER, answer="shipped").passed
    assert not called(scene, ORDER, FOUND, LISTED, answer="shipped").passed
    assert not called(scene, ORDER, ORDER, FOUND, LISTED, answer="shipped").passed


def test_a_call_that_is_wanted_more_often_than_it_is_expected(tmp_path: Path) -> None:
    own = "        - {name: get_order, arguments: {order_id: O-1702}}\n"
    path = written(TWICE + own, tmp_path)
    with pytest.raises(UsageError, match=r"check.calls\[3\]: .*own `calls` so many times"):
        read_file(path)


def test_a_check_that_the_expected_calls_do_not_meet(tmp_path: Path) -> None:
    """No number equals what is none, so this call would never be known for the expected one."""
    tool = '\n\ndef price(below: float) -> float:\n    """Say a price.\n\n    Args:\n        '
    tool += 'below: The most that it may be.\n    """\n    return 1.0\n\n\n__all__ += ["price"]\n'
    call = "      - {name: price, arguments: {below: .nan}}\n    check:\n      calls: true\n"
    path = written(GOOD.replace("    check:\n", call), tmp_path)
    with (tmp_path / "shop_tools.py").open("a") as file:
        file.write(tool)
    with pytest.raises(UsageError, match=r"check.calls: the expected calls themselves do not meet"):
        load(path)

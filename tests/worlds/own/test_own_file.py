"""What is wrong with a file of tasks is said with its line, its field and the nearest name."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from running import Run
from worlds.own.test_own import EXAMPLE

from toolshift.core.errors import UsageError
from toolshift.worlds.own.file import read_file

GOOD = """\
world: shop
tools: {python: shop_tools}
writes: [refund_order]
tasks:
  - id: lamp
    kind: status
    ask: What is the status of order O-1702?
    calls:
      - name: get_order
        arguments: {order_id: O-1702}
    check:
      answer: shipped
"""
WRONG = [
    ("world: shop\n", "", r"t.yaml:1: the field 'world' is missing"),
    ("world: shop", "world: my shop", r"t.yaml:1: world: 'my shop' is no name"),
    ("world: shop", "wrold: shop", r"t.yaml:1: wrold: unknown field 'wrold': did you mean world"),
    ("python:", "pyton:", r"t.yaml:2: tools.pyton: unknown source of tools .* mean python"),
    ("{python: shop_tools}", "{}", r"t.yaml:2: tools: say where the tools come from"),
    ("{python: shop_tools}", "shop", r"t.yaml:2: tools: say where the tools come from"),
    ("python: shop_tools", "python: shop_tolls", r"t.yaml:2: tools.python: .*no module"),
    ("python: shop_tools", "python: 'shop_tools:Shp'", r"t.yaml:2: tools.python: .*no 'Shp'"),
    ("shop_tools}", "shop_tools, base_url: x}", r"t.yaml:2: tools.base_url: unknown field"),
    ("[refund_order]", "[refund]", r"t.yaml:3: writes\[0\]: unknown tool .* mean refund_order"),
    ("- id: lamp", "- ids: lamp", r"t.yaml:5: tasks\[0\].ids: unknown field .* mean id"),
    ("kind: status", "kind: a/b", r"t.yaml:6: tasks\[0\].kind: 'a/b' is no name"),
    ("ask: What", "ask: []\n    # What", r"t.yaml:7: tasks\[0\].ask: a text, or a list"),
    ("name: get_order", "name: get_ordr", r"t.yaml:9: tasks\[0\].calls\[0\].name: .*get_order"),
    ("{order_id:", "{order:", r"t.yaml:10: .*arguments.order: unknown argument .*order_id"),
    ("{order_id: O-1702}", "{}", r"t.yaml:9: tasks\[0\].calls\[0\]: get_order needs"),
    ("{order_id: O-1702}", "[a]", r"t.yaml:10: .*arguments: arguments are a table"),
    ("O-1702}", "O-77}", r"t.yaml:9: .*the expected call of get_order failed: not_found: there"),
    ("{order_id: O-1702}", "{order_id: '{{calls[0].x}}'}", r"can refer to earlier calls only"),
    ("{order_id: O-1702}", "{order_id: '{{order}}'}", r"t.yaml:10: .*refers to nothing"),
    ("O-1702}", "O-1702}\n        turn: 2", r"t.yaml:11: .*turn: the turn is a number from 1 to 1"),
    ("answer: shipped", "answer: ''", r"t.yaml:12: .*answer is a text, a number, a date,"),
    ("answer: shipped", "answer: {a: b}", r"t.yaml:12: .*check.answer: the answer is a text"),
    ("answer: shipped", "answer: []", r"t.yaml:12: .*a list of answers has at least one"),
    ("answer: shipped", "answer: [lamp, closed]", r"answer\[1\]: no result of the .* 'closed'"),
    ("answer: shipped", "answr: shipped", r"t.yaml:12: tasks\[0\].check.answr: .*mean answer"),
    ("answer: shipped", "answer: '('", r"t.yaml:12: .*check.answer: '\(' is no regular expression"),
    ("answer: shipped", "answer: 'lost\\b'", r"t.yaml:12: .*check.answer: no result of the exp"),
    ("answer: shipped", "answer: closed", r"no result of the expected calls contains 'closed'"),
    ("answer: shipped", "refuse: never", r"t.yaml:12: .*check.refuse: unknown reason 'never'"),
    ("answer: shipped", "state: checks", r"t.yaml:12: .*check.state: 'checks' is not module:func"),
    ("answer: shipped", "state: 'shop_checks:kettle'", r"t.yaml:12: .*has no 'kettle'"),
    ("answer: shipped", "state: 'shop_checks:kettle_refunded'", r"does not hold after the expect"),
    ("answer: shipped", "example: x", r"t.yaml:11: .*check: say what is checked"),
    ("answer: shipped", "answer: a\n      example: b", r"check.example: 'b' does not match"),
    ("answer: shipped", "answer: a\n      refuse: not_found", r"there is no answer and no new st"),
    ("answer: shipped", "calls: [{name: get_order}]", r"check.calls\[0\]: it is not among"),
    ("answer: shipped", "calls: [get_ordr]", r"check.calls\[0\]: unknown expected call .*order"),
    ("tasks:", "tasks: []\nmore:", r"unknown field 'more'"),
    ("answer: shipped", "answer: [", r"t.yaml:13: not YAML"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "said"), WRONG)
def test_a_bad_file(toolshift: Run, tmp_path: Path, old: str, new: str, said: str) -> None:
    for name in ("shop_tools.py", "shop_checks.py"):
        shutil.copy(EXAMPLE / name, tmp_path / name)
    assert old in GOOD
    (tmp_path / "t.yaml").write_text(GOOD.replace(old, new, 1))
    code, out, err = toolshift("run", "--world", tmp_path / "t.yaml", "--agent", "oracle")
    assert (code, out) == (2, "")
    assert re.search(said, err), err


@pytest.mark.parametrize("written", ["2026-03-03", "9:30", "yes", "010", "1_000", "4", "4.50"])
def test_an_answer_is_what_is_written(tmp_path: Path, written: str) -> None:
    """YAML makes a date, the number 570, a truth value, 8, 1000 and 4.5 of them."""
    (tmp_path / "t.yaml").write_text(GOOD.replace("answer: shipped", f"answer: {written}"))
    assert read_file(tmp_path / "t.yaml").given[0].check.answer == written
    (tmp_path / "t.yaml").write_text(GOOD.replace("answer: shipped", f"answer: [{written}, a]"))
    assert read_file(tmp_path / "t.yaml").given[0].check.answer == (written, "a")


@pytest.mark.parametrize("written", ["2026-03-03", "9:30", "2026-03-03T09:30:00Z", "23:59:01.5"])
def test_a_date_or_a_time_of_an_argument_is_what_is_written(tmp_path: Path, written: str) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(GOOD.replace("O-1702}", f"{written}, days: [{written}], left: 40, late: yes}}"))
    (task,) = read_file(path).given
    told = {"order_id": written, "days": [written], "left": 40, "late": True}
    assert task.calls[0].arguments == told


def test_a_good_file(tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text(GOOD)
    file = read_file(tmp_path / "t.yaml")
    (given,) = file.given
    assert (file.name, file.writes, given.kind) == ("shop", ("refund_order",), "status")
    assert given.calls[0].arguments == {"order_id": "O-1702"}
    assert file.where(("tasks", 0, "check", "answer")) == "t.yaml:12: tasks[0].check.answer"


def test_a_check_may_name_the_tools_of_calls(tmp_path: Path) -> None:
    more = "      - {name: list_orders, arguments: {customer_id: C-1}}\n    check:"
    text = GOOD.replace("    check:", more).replace("answer: shipped", "calls: [list_orders]")
    (tmp_path / "t.yaml").write_text(text)
    (given,) = read_file(tmp_path / "t.yaml").given
    assert given.check.calls == (1,)


@pytest.mark.parametrize("content", [b"\xff\xfe", b"[" * 300, b"", b"- a", b"? {a: b}\n: c\n"])
def test_a_file_that_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "t.yaml").write_bytes(content)
    with pytest.raises(UsageError, match=r"t\.yaml"):
        read_file(tmp_path / "t.yaml")


def test_a_file_that_is_not_there(toolshift: Run) -> None:
    code, _, err = toolshift("check", "none.yaml")
    assert (code, "none.yaml: cannot read" in err) == (2, True)


def test_a_stored_world_whose_file_is_not_known(toolshift: Run) -> None:
    code, _, err = toolshift("show", "elsewhere@00112233/a")
    assert (code, "TOOLSHIFT_WORLDS" in err) == (2, True)


@pytest.mark.parametrize("table", [False, True])
def test_a_file_whose_aliases_stand_for_millions_of_values_is_refused(
    tmp_path: Path, table: bool
) -> None:
    rows = ["a0: &a0 {x: 1}" if table else "a0: &a0 [x]"]
    for level in range(1, 8):
        several = ", ".join([f"*a{level - 1}"] * 9)
        rows.append(f"a{level}: &a{level} " + (f"{{<<: [{several}]}}" if table else f"[{several}]"))
    path = tmp_path / "tasks.yaml"
    path.write_text("\n".join(rows))
    with pytest.raises(UsageError, match=r"tasks\.yaml: its aliases stand for more than"):
        read_file(path)

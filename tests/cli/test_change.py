"""`toolshift change`: each change once, what an agent does there, and what is untested."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Tree

import pytest
from running import Run

from toolshift.shifts.files import FILES

DESK = '''
from typing import Literal

def refund_order(order_id: str, reason: Literal["damaged", "late"]) -> dict:
    """Refund an order."""
    return {"receipt": f"RF-{order_id[2:]}-{reason[:1]}"}

def get_order(order_id: str) -> dict:
    """Look up an order."""
    return {"order_id": order_id, "total": "T-49"}

def close_ticket(ticket_id: str) -> dict:
    """Close a ticket."""
    return {"receipt": "CT-1"}
'''
AGENTS = """
from toolshift import Reply

def memorised(messages, tools):
    if messages[-1]["role"] == "tool":
        said = str(messages[-1]["content"])
        return next((f"It is {code}." for code in ("RF-17-d", "T-49") if code in said), "I cannot.")
    asked = str(messages)
    name = "refund_order" if "Refund" in asked else "get_order"
    more = {"reason": "damaged"} if "Refund" in asked else {}
    return {"tool_calls": [{"name": name, "arguments": {"order_id": "O-17", **more}}]}

def down(messages, tools):
    return Reply(failure="HTTP 401: key expired")
"""
TASKS = """
world: desk
tools: {python: desk_tools}
writes: [refund_order, close_ticket]
tasks:
  - id: refund
    ask: Refund order O-17, it came damaged. Tell me the receipt.
    calls: [{name: refund_order, arguments: {order_id: O-17, reason: damaged}}]
    check: {calls: true, answer: RF-17-d}
  - id: total
    ask: What is the total of order O-17?
    calls: [{name: get_order, arguments: {order_id: O-17}}]
    check: {calls: true, answer: T-49}
"""


def listed(name: str, told: str, **params: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": params, "required": sorted(params)}
    return {"name": name, "description": told, "inputSchema": schema}


TEXT = {"type": "string"}
REFUND = ("refund_order", "Refund an order.")
OTHERS = [
    listed("get_order", "Look up an order.", order_id=TEXT),
    listed("close_ticket", "Close a ticket.", ticket_id=TEXT),
]
CODES = {"enum": ["DAMAGED_GOODS", "LATE_GOODS"]}
CHOICES = [listed(*REFUND, order_id=TEXT, reason=CODES), *OTHERS]
SAME = [listed(*REFUND, order_id=TEXT, reason={"enum": ["damaged", "late"]}), *OTHERS]
TICKET = [*SAME[:2], listed("shut_ticket", "Close a ticket.", ticket_id=TEXT)]


@pytest.fixture
def desk(toolshift: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(FILES, "")
    monkeypatch.chdir(tmp_path)
    files = {"desk_tools.py": DESK, "desk_agents.py": AGENTS, "tasks.yaml": TASKS}
    lists = {"choices": CHOICES, "same": SAME, "ticket": TICKET}
    files |= {f"{name}.json": json.dumps(tools) for name, tools in lists.items()}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def read(toolshift: Run, *words: str) -> tuple[int, dict[str, Any]]:
    code, said, _ = toolshift("change", *words, "--json")
    found: dict[str, Any] = json.loads(said)
    assert code == found["exit_code"]
    return code, found


def test_changed_choices_are_carried_and_the_task_that_meets_them_is_said(
    toolshift: Run, desk: Path
) -> None:
    words = ("python:desk_tools", "choices.json", "--world", "tasks.yaml", "--out", "run")
    agents = ("--agent", "oracle", "--agent", "desk_agents:memorised", "--junit", "junit.xml")
    code, found = read(toolshift, *words, *agents)
    (row,) = found["rows"]
    assert (code, row["severity"], row["carriage"]) == (1, "breaking", "carried")
    assert (row["tasks"], row["untested"]) == (["refund"], "")
    oracle, memorised = found["outcomes"].values()
    assert {one["shifted"] for one in oracle.values()} == {"passed"}
    assert memorised["refund"]["shifted"].startswith("failed")
    assert memorised["total"]["shifted"] == "passed"
    cases = {
        (case.get("classname"), case.get("name")): case.find("failure") is not None
        for case in Tree.fromstring((desk / "junit.xml").read_text()).iter("testcase")
    }
    failed = [place for place, fails in cases.items() if fails]
    assert failed == [("toolshift.change.desk_agents:memorised", "refund")]


def test_what_a_text_may_say_otherwise_is_not_tested_by_the_tools_of_today(
    toolshift: Run, desk: Path
) -> None:
    other = listed("get_order", "Look up an order of the last 90 days.", order_id=TEXT)
    (desk / "text.json").write_text(json.dumps([SAME[0], other, SAME[2]]))
    words = ("text.json", "--world", "tasks.yaml", "--agent", "desk_agents:memorised")
    code, said = read(toolshift, "same.json", *words)
    (row,) = [row for row in said["rows"] if row["change"]["kind"].startswith("description")]
    assert (code, row["severity"], row["carriage"], row["tasks"]) == (
        0,
        "maybe",
        "carried",
        ["total"],
    )
    assert "do as before" in row["untested"]
    assert "the new server" in row["cure"]
    text = toolshift("change", "same.json", *words)[1]
    assert text.count("do as before") == 1
    assert "Not tested:" in text


def test_a_breaking_change_that_no_task_meets_is_untested(toolshift: Run, desk: Path) -> None:
    words = ("same.json", "ticket.json", "--world", "tasks.yaml", "--agent", "oracle")
    code, found = read(toolshift, *words, "--out", "run")
    (row,) = found["rows"]
    assert (code, row["untested"]) == (3, "no task calls close_ticket")
    assert "a task that calls close_ticket" in row["cure"]
    assert read(toolshift, *words, "--out", "run", "--allow-untested")[0] == 0


def test_nothing_measured_is_no_success(toolshift: Run, desk: Path) -> None:
    words = ("same.json", "choices.json", "--world", "tasks.yaml", "--out", "run")
    code, found = read(toolshift, *words, "--agent", "desk_agents:down", "--allow-untested")
    assert (code, found["measured"]) == (4, False)


def test_without_an_agent_the_change_is_read(toolshift: Run, desk: Path) -> None:
    code, found = read(toolshift, "same.json", "choices.json")
    assert (code, list(found["broken"])) == (3, ["refund_order"])
    code, said, _ = toolshift("change", "same.json", "python:desk_tools")
    assert (code, "No change" in said) == (0, True)
    code, _, said = toolshift("change", "same.json", "choices.json", "--agent", "oracle")
    assert (code, "--agent needs tasks" in said) == (2, True)


def test_what_cannot_be_told_is_asked_in_a_file_whose_answer_is_carried(
    toolshift: Run, desk: Path
) -> None:
    new = [SAME[0], listed("order_info", "All about one.", order_id=TEXT), SAME[2]]
    (desk / "new.json").write_text(json.dumps(new))
    words = ("same.json", "new.json", "--world", "tasks.yaml", "--agent", "oracle", "--out")
    code, found = read(toolshift, *words, "first")
    assert (code, [one["of"] for one in found["questions"]]) == (3, ["renamed.get_order"])
    mapping = desk / "change.mapping.toml"
    mapping.write_text(mapping.read_text().replace('"?"', '"order_info"'))
    code, found = read(toolshift, *words, "second")
    assert (code, found["questions"], found["rows"][0]["carriage"]) == (0, [], "carried")


def test_a_mapping_of_another_change_is_named(toolshift: Run, desk: Path) -> None:
    (desk / "change.mapping.toml").write_text('renamed = {get_order = "order_info"}\n')
    code, _, said = toolshift("change", "same.json", "same.json")
    assert code == 2
    assert "change.mapping.toml: unknown new tool 'order_info'" in said
    assert "--mapping" in said


def test_a_sequential_change_does_not_ask_what_fails_without_it(toolshift: Run, desk: Path) -> None:
    """The code and the reasons are those of a run that asks everything."""
    (desk / "never_agents.py").write_text("def never(messages, tools):\n    return 'I cannot.'\n")
    words = ("python:desk_tools", "choices.json", "--world", "tasks.yaml")
    agent = ("--agent", "never_agents:never")
    fewer = read(toolshift, *words, *agent, "--out", "fewer", "--design", "sequential")
    fixed = read(toolshift, *words, *agent, "--out", "fixed")
    assert fewer[0] == fixed[0] == 4  # what fails today cannot be lost
    assert fewer[1]["rows"] == fixed[1]["rows"]
    asked = [(desk / name / "episodes.jsonl").read_bytes() for name in ("fewer", "fixed")]
    assert [text.count(b"\n") for text in asked] == [2, 4]


@pytest.mark.parametrize("design", ["fixed", "sequential"])
def test_an_agent_that_passes_nothing_today_does_not_hold(
    toolshift: Run, desk: Path, design: str
) -> None:
    (desk / "never_agents.py").write_text("def never(messages, tools):\n    return 'I cannot.'\n")
    other = [{**SAME[0], "description": f"{SAME[0]['description']} It is fast."}, *SAME[1:]]
    (desk / "worded.json").write_text(json.dumps(other))
    words = ("change", "same.json", "worded.json", "--world", "tasks.yaml", "--design", design)
    never = ("--agent", "never_agents:never", "--allow-untested")
    code, said, _ = toolshift(*words, *never, "--out", "run", "--junit", "one.xml")
    assert (code, "holds" in said) == (4, False), said
    assert "Nothing was measured for never_agents:never: it passes none of 2 tasks today" in said
    (case,) = (c for c in Tree.parse("one.xml").iter("testcase") if c.get("name") == "all tasks")
    assert case.find("error") is not None
    code, said, _ = toolshift(*words, *never, "--agent", "oracle", "--out", "two")
    assert code == 4, "the other agent holds, and this one says nothing"
    assert toolshift(*words, "--agent", "oracle", "--out", "three")[0] == 0


def test_a_budget_that_is_spent_leaves_changes_untested(toolshift: Run, desk: Path) -> None:
    words = ("python:desk_tools", "choices.json", "--world", "tasks.yaml", "--agent", "oracle")
    code, found = read(toolshift, *words, "--budget", "1calls", "--out", "run")
    assert code == 4
    assert "its budget was spent" in found["rows"][0]["untested"]
    code, found = read(toolshift, *words, "--budget", "100calls", "--out", "run")
    assert (code, sorted(found["outcomes"]["oracle"])) == (0, ["refund", "total"])

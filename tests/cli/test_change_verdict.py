"""`toolshift change`: what the verdict rests on, and how it is printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Tree

import pytest
from rich.cells import cell_len
from running import Run

from toolshift.shifts.files import FILES
from toolshift.worlds.names import OWN

TOOLS = '''
from typing import NotRequired, TypedDict

class Card(TypedDict):
    number: str
    kind: NotRequired[str]

class Payment(TypedDict):
    card: NotRequired[Card]
    iban: NotRequired[str]

def pay(amount: int, payment: Payment, currency: str = "EUR") -> dict:
    """Pay an amount."""
    return {"receipt": f"RC-{amount}"}

def get_order(order_id: str) -> dict:
    """Look up an order."""
    return {"order_id": order_id, "total": "T-49"}

def cancel_order(order_id: str) -> dict:
    """Cancel an order."""
    return {"receipt": "CN-3"}
'''
AGENTS = """
CALLS = {
    "cancel order": ("cancel_order", {"order_id": "O-17"}, "CN-3"),
    "order O-17": ("get_order", {"order_id": "O-17"}, "T-49"),
    "order 18": ("get_order", {"order_id": "18"}, "T-49"),
    "card": ("pay", {"amount": 5, "payment": {"card": {"number": "4"}}}, "RC-5"),
    "transfer": ("pay", {"amount": 6, "payment": {"iban": "NL1"}, "currency": "USD"}, "RC-6"),
}

def learned(messages, tools):
    asked = str(messages).lower()
    name, arguments, answer = next(v for k, v in CALLS.items() if k.lower() in asked)
    if messages[-1]["role"] != "tool":
        return {"tool_calls": [{"name": name, "arguments": arguments}]}
    said = str(messages[-1]["content"])
    refusal = {"tool_calls": [{"name": "refuse", "arguments": {"reason": "tool_unavailable"}}]}
    return f"It is {answer}." if answer in said else refusal
"""


def task(name: str, ask: str, call: str, arguments: dict[str, Any], answer: str) -> dict[str, Any]:
    calls = [{"name": call, "arguments": arguments}]
    return {"id": name, "ask": ask, "calls": calls, "check": {"answer": answer}}


TASKS = [
    task("named", "What is the total of order O-17?", "get_order", {"order_id": "O-17"}, "T-49"),
    task("bare", "What is the total of order 18?", "get_order", {"order_id": "18"}, "T-49"),
    task("cancel", "Cancel order O-17.", "cancel_order", {"order_id": "O-17"}, "CN-3"),
    task(
        "card", "Pay 5 with the card 4.", "pay",
        {"amount": 5, "payment": {"card": {"number": "4"}}}, "RC-5",
    ),
    task(
        "transfer", "Pay 6 USD by transfer from NL1.", "pay",
        {"amount": 6, "payment": {"iban": "NL1"}, "currency": "USD"}, "RC-6",
    ),
]  # fmt: skip


@pytest.fixture
def shop(toolshift: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The list of today's tools, as it is written to `old.json`."""
    monkeypatch.setenv(FILES, "")
    monkeypatch.setenv(OWN, "")
    monkeypatch.chdir(tmp_path)
    Path("verdict_tools.py").write_text(TOOLS)
    Path("verdict_agents.py").write_text(AGENTS)
    world = {"world": "shop", "tools": {"python": "verdict_tools"}, "tasks": TASKS}
    Path("tasks.yaml").write_text(json.dumps({**world, "writes": ["cancel_order", "pay"]}))
    assert toolshift("lock", "python:verdict_tools", "--out", "old.lock")[0] == 0
    return [each["document"] for each in json.loads(Path("old.lock").read_text())["tools"]]


def changed(
    toolshift: Run, new: list[dict[str, Any]], *more: str
) -> tuple[int, dict[str, Any], str]:
    Path("new.json").write_text(json.dumps(new))
    words = ("change", "old.lock", "new.json", "--world", "tasks.yaml", "--out", "run", *more)
    code, said, wrong = toolshift(*words, "--json")
    assert said, wrong
    return code, json.loads(said), toolshift(*words)[1]


def properties(tools: list[dict[str, Any]], name: str) -> dict[str, Any]:
    tool = next(each for each in tools if each["name"] == name)
    found: dict[str, Any] = tool["inputSchema"]["properties"]
    return found


def rows(found: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(row["change"]["kind"], row["change"]["where"]): row for row in found["rows"]}


LEARNED = ("--agent", "verdict_agents:learned")


def test_a_change_is_met_by_the_calls_that_pass_it_or_leave_it_out(
    toolshift: Run, shop: list[dict[str, Any]]
) -> None:
    pay = properties(shop, "pay")
    card = pay["payment"]["properties"]["card"]
    card["required"] = ["number", "kind"]
    pay["payment"]["properties"]["iban"]["pattern"] = "^NL"
    pay["currency"]["default"] = "GBP"
    _, found, _ = changed(toolshift, shop)
    by_place = {place: row["tasks"] for (_, place), row in rows(found).items()}
    assert by_place == {
        "payment.card.kind": ["card"],
        "payment.iban": ["transfer"],
        "currency": ["card"],
    }


def test_a_task_that_meets_a_breaking_change_and_is_left_out_is_not_tested(
    toolshift: Run, shop: list[dict[str, Any]]
) -> None:
    properties(shop, "get_order")["order_id"]["pattern"] = "^O-"
    code, found, text = changed(toolshift, shop, *LEARNED, "--junit", "j.xml")
    ends = {
        name: one["shifted"] for name, one in found["outcomes"]["verdict_agents:learned"].items()
    }
    assert (code, ends["named"], ends["bare"]) == (3, "passed", "")
    assert "task bare: " in text
    assert "does not match" in text
    assert '{"error"' not in text
    cases = {case.get("name"): case for case in Tree.parse("j.xml").iter("testcase")}
    assert cases["bare"].find("failure") is not None
    code, _, _ = changed(toolshift, shop, *LEARNED, "--allow-untested")
    assert code == 0


def test_a_task_that_cannot_be_done_any_more_does_not_hold(
    toolshift: Run, shop: list[dict[str, Any]]
) -> None:
    code, found, text = changed(toolshift, shop[:2], *LEARNED)
    outcome = found["outcomes"]["verdict_agents:learned"]["cancel"]
    assert (code, outcome["clean"], outcome["shifted"]) == (0, "passed", "refused")
    said = " ".join(text.split())
    assert "4 of 5 tasks that it passes today still pass" in said
    assert "1 can no longer be done, and it rightly refused" in said


STRICT = """
def careful(messages, tools):
    reason = {"tool_calls": [{"name": "refuse", "arguments": {"reason": "not_found"}}]}
    call = {"tool_calls": [{"name": "get_order", "arguments": {"order_id": "O-99"}}]}
    return reason if messages[-1]["role"] == "tool" else call
"""


@pytest.mark.parametrize("renamed", [False, True])
def test_a_task_that_is_refused_rightly_today_is_one_that_passes_today(
    toolshift: Run, shop: list[dict[str, Any]], renamed: bool
) -> None:
    missing = '    if order_id == "O-99":\n        raise LookupError("there is no order O-99")\n'
    total = '    return {"order_id": order_id, "total"'
    Path("strict_tools.py").write_text(TOOLS.replace(total, missing + total))
    Path("careful_agents.py").write_text(STRICT)
    refused = task(
        "none", "What is the total of order O-99?", "get_order", {"order_id": "O-99"}, ""
    )
    refused["check"] = {"refuse": "not_found"}
    world = {
        "world": "refusing",
        "tools": {"python": "strict_tools"},
        "writes": [],
        "tasks": [refused],
    }
    Path("tasks.yaml").write_text(json.dumps(world))
    tool = next(each for each in shop if each["name"] == "get_order")
    tool |= {"name": "order_get"} if renamed else {"description": "Looks up an order."}
    code, found, text = changed(toolshift, shop, "--agent", "careful_agents:careful")
    outcome = found["outcomes"]["careful_agents:careful"]["none"]
    assert outcome["clean"] == "passed"
    assert outcome["shifted"].startswith("failed" if renamed else "passed")
    assert code == (1 if renamed else 0)
    assert f"{0 if renamed else 1} of 1 tasks that it passes today still pass" in " ".join(
        text.split()
    )


def test_an_option_that_is_left_open_and_gone_is_needed_by_no_task(
    toolshift: Run, shop: list[dict[str, Any]]
) -> None:
    opened = json.loads(Path("tasks.yaml").read_text())
    opened["tasks"][-1]["calls"][0]["arguments"]["currency"] = {"any": "USD"}
    opened["tasks"][-1]["check"]["calls"] = True
    Path("tasks.yaml").write_text(json.dumps(opened))
    pay = next(tool for tool in shop if tool["name"] == "pay")
    del pay["inputSchema"]["properties"]["currency"]
    _, found, _ = changed(toolshift, shop, "--agent", "oracle")
    assert found["left_out"] == {}
    assert found["outcomes"]["oracle"]["transfer"]["shifted"] == "passed"


@pytest.mark.parametrize(("path", "tasks"), [("kind", []), ("number", ["card"])])
def test_an_open_question_of_a_member_leaves_out_the_tasks_that_pass_it(
    toolshift: Run, shop: list[dict[str, Any]], path: str, tasks: list[str]
) -> None:
    whole = "payment.card"
    Path("change.mapping.toml").write_text(f'[params.pay]\n"{whole}.{path}" = "?"\n')
    card = properties(shop, "pay")["payment"]["properties"]["card"]
    card["properties"]["sort"] = card["properties"].pop(path)
    card["required"] = ["sort" if name == path else name for name in card["required"]]
    _, found, _ = changed(toolshift, shop, "--agent", "oracle")
    assert [*found["left_out"]] == tasks


def test_a_call_that_says_less_in_the_new_form_is_told_in_words(
    toolshift: Run, shop: list[dict[str, Any]]
) -> None:
    pay = next(tool for tool in shop if tool["name"] == "pay")
    del pay["inputSchema"]["properties"]["currency"]
    _, found, text = changed(toolshift, shop)
    assert "does not tell pay the currency of today" in found["left_out"]["transfer"]
    assert "[params.pay]" in found["left_out"]["transfer"]
    code, found, text = changed(toolshift, shop, *LEARNED)
    assert {row["severity"] for row in found["rows"]} == {"maybe"}
    assert (code, "Not tested: 1 affected task" in " ".join(text.split())) == (3, True)
    assert "write `currency: {any: EXAMPLE}`" in found["left_out"]["transfer"]
    assert "not_recorded" not in text


@pytest.mark.parametrize("width", [80, 120])
def test_the_verdict_comes_first_and_no_line_is_wider_than_the_terminal(
    toolshift: Run, shop: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("NO_COLOR", "1")
    for tool in shop:
        tool["title"] = f"Now with a title: {tool['name']}"
    properties(shop, "pay")["payment"]["properties"]["iban_of_the_payer"] = {"type": "string"}
    properties(shop, "get_order")["order"] = properties(shop, "get_order").pop("order_id")
    shop[1]["inputSchema"]["required"] = ["order"]
    code, found, text = changed(toolshift, shop, *LEARNED)
    lines = text.splitlines()
    assert code == 1
    assert "2 fail" in lines[1]
    assert "\x1b" not in text
    wide = [line for line in lines if cell_len(line) > width]
    assert not wide
    harmless = sum(row["severity"] == "harmless" for row in found["rows"])
    assert f"... and {harmless} harmless; --json and --markdown FILE have them all." in lines
    assert "another title" not in text


def test_all_tasks_of_a_file_are_run_and_a_run_of_some_says_so(
    toolshift: Run, shop: list[dict[str, Any]]
) -> None:
    tasks = [{**TASKS[0], "id": f"t{at}", "kind": "lots" if at else "one"} for at in range(23)]
    world = {"world": "shop", "tools": {"python": "verdict_tools"}, "tasks": tasks}
    Path("tasks.yaml").write_text(json.dumps(world))
    properties(shop, "get_order")["order_id"]["minLength"] = 1
    _, found, _ = changed(toolshift, shop, *LEARNED)
    assert len(found["outcomes"]["verdict_agents:learned"]) == 23
    words = ("run", "--world", "tasks.yaml", *LEARNED, "--shift", "parameter_rename")
    said = toolshift(*words, "--no-placebo", "--out", "some")[1]
    assert "20 of the 23 tasks of shop@" in said
    assert "--tasks 23" in said
    assert "tasks of shop@" not in toolshift(*words, "--tasks", "23", "--out", "all")[1]


FLAKY = """
import toolshift
from verdict_agents import learned

def flaky(messages, tools):
    now = "at once" in str(tools) and "Cancel" in str(messages)
    return toolshift.Reply(failure="no quota") if now else learned(messages, tools)
"""


@pytest.mark.parametrize("agents", [("flaky",), ("flaky", "learned")])
def test_an_affected_task_without_a_verdict_is_not_tested(
    toolshift: Run, shop: list[dict[str, Any]], agents: tuple[str, ...]
) -> None:
    Path("flaky_agents.py").write_text(f"{FLAKY}\n")
    new = json.loads(json.dumps(shop))
    next(t for t in new if t["name"] == "cancel_order")["description"] = "Cancel all at once."
    words = [word for one in agents for word in ("--agent", f"flaky_agents:{one}")]
    code, found, text = changed(toolshift, new, *words)
    assert {row["severity"] for row in found["rows"]} == {"maybe"}
    assert (code, found["outcomes"]["flaky_agents:flaky"]["cancel"]["clean"]) == (3, "passed")
    said = " ".join(text.split())
    assert "Not tested: 1 affected task" in said
    assert "task cancel: flaky_agents:flaky: its episodes are void" in said
    assert changed(toolshift, new, *words, "--allow-untested")[0] == 0


def test_a_change_of_requests_alone_does_not_decide_the_exit_code(
    toolshift: Run, shop: list[dict[str, Any]]
) -> None:
    def document(**more: Any) -> dict[str, Any]:
        key = {"name": "order_id", "in": "query", "required": True, "schema": {"type": "string"}}
        get = {"operationId": "get_order", "summary": "Look up an order.", "parameters": [key]}
        scheme = {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}
        whole = {"openapi": "3.0.3", "paths": {"/order": {"get": get}}, **more}
        return {**whole, "components": {"securitySchemes": scheme}}

    Path("old.json").write_text(json.dumps(document()))
    Path("new.json").write_text(json.dumps(document(security=[{"key": []}])))
    own = {"world": "shop", "tools": {"python": ["verdict_tools:get_order"]}, "tasks": TASKS[:2]}
    Path("tasks.yaml").write_text(json.dumps(own))
    words = ("change", "old.json", "new.json", "--world", "tasks.yaml", "--out", "run", *LEARNED)
    code, said, wrong = toolshift(*words, "--junit", "said.xml", "--markdown", "said.md")
    assert code == 0, said + wrong
    assert "Nothing of this change can be shown to an agent" in " ".join(said.split())
    assert "another shift" not in said
    assert not Tree.parse("said.xml").getroot().findall(".//error")
    assert "Nothing was measured" not in Path("said.md").read_text()

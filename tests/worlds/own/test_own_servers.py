"""Worlds over an MCP server and over an HTTP server with an OpenAPI document, both real."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from worlds.own.own_server import OPENAPI, Site, ledger_site
from worlds.own.test_own import called, played, scenes

from toolshift.core.errors import UsageError
from toolshift.core.shift import NotApplicable
from toolshift.core.tool import JSON
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import Episode
from toolshift.interop.openapi import _operation
from toolshift.runs.own_checking import check_tasks
from toolshift.shifts.registry import apply
from toolshift.worlds.own import OwnWorld, load

SERVER = Path(__file__).with_name("own_server.py")
CHECKS = """
def one_transfer(call):
    return call("count_transfers")["transfers"] == 1


def sent_to_a12(call):
    return [t["iban"] for t in call("listTransfers", sender="A-11")] == ["DE02-1200"]
"""
MCP_TASKS = f"""
world: ledger
tools: {{mcp: "{sys.executable} {SERVER}"}}
writes: [create_transfer]
tasks:
  - id: pay
    ask: Send 25 euros to the account A-12 and tell me the receipt.
    calls:
      - {{name: get_account, arguments: {{account_id: A-12}}}}
      - {{name: create_transfer, arguments: {{iban: "{{{{calls[0].iban}}}}", amount: 25}}}}
    check: {{answer: 'T-\\d{{4}}', state: "ledger_checks:one_transfer"}}
  - id: unknown
    ask: Which IBAN has the account A-77?
    calls: [{{name: get_account, arguments: {{account_id: A-77}}}}]
    check: {{refuse: not_found}}
"""
HTTP_TASKS = """
world: ledger
tools:
  openapi: api.json
  base_url: ADDRESS
  headers: {Authorization: "Bearer ${LEDGER_TOKEN}"}
  reset: POST /reset
tasks:
  - id: pay
    ask: Send 25 euros from A-11 to the account A-12 and tell me the receipt.
    calls:
      - {name: getAccount, arguments: {account_id: A-12}}
      - {name: createTransfer, arguments: {sender: A-11, iban: DE02-1200, amount: 25}}
    check: {answer: T-0001, state: "ledger_checks:sent_to_a12"}
"""
SHIFTS = ("identity_erasure", "parameter_rename", "format_drift", "transient_error", "redirect")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ledger_checks.py").write_text(CHECKS)
    return tmp_path


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("LEDGER_TOKEN", "t0ken")
    with ledger_site() as address:
        yield address


def over_mcp(folder: Path) -> OwnWorld:
    (folder / "tasks.yaml").write_text(MCP_TASKS)
    return load(folder / "tasks.yaml")


def over_http(folder: Path, address: str) -> OwnWorld:
    (folder / "api.json").write_bytes(JSON.encode(OPENAPI))
    (folder / "tasks.yaml").write_text(HTTP_TASKS.replace("ADDRESS", address))
    return load(folder / "tasks.yaml")


def test_an_mcp_server_is_a_world_with_a_process_for_every_episode(folder: Path) -> None:
    world = over_mcp(folder)
    assert not world.shared
    assert [tool.name for tool in world.tools] == [
        "get_account", "create_transfer", "count_transfers"
    ]  # fmt: skip
    assert [task.state for task in check_tasks(world)] == ["ok", "ok"]  # text results too
    pay, unknown = scenes(world)
    assert played(pay).passed
    assert played(pay).passed  # the count begins anew
    assert played(unknown).passed
    assert not called(unknown).passed
    assert not called(pay, ("create_transfer", {"iban": "DE02-1100", "amount": 25})).passed
    for name in SHIFTS:
        assert played(apply(pay, name, 2)).passed, name
    verdict = played(apply(pay, "identity_erasure", 2), "memorises_names")
    assert (verdict.passed, verdict.cause) == (False, "memorised_name")


def test_a_text_result_stays_a_text(folder: Path) -> None:
    episode = Episode(make_scene(over_mcp(folder), "task", 0))
    text, _ = episode.call("create_transfer", {"iban": "X-1", "amount": 1})
    assert text == "Receipt T-0001: 1 EUR to X-1"
    episode.refuse("not_found")


def test_an_openapi_document_is_a_world(folder: Path, address: str) -> None:
    world = over_http(folder, address)
    tools = {tool.name: tool for tool in world.tools}
    assert {name: tool.effect for name, tool in tools.items()} == {
        "getAccount": "read", "createTransfer": "write", "listTransfers": "read"
    }  # fmt: skip
    transfer = tools["createTransfer"]
    assert [p.name for p in transfer.params if p.required] == ["sender", "iban", "amount"]
    assert transfer.params[1].schema["description"] == "Where the money goes."
    assert [field.path for field in tools["getAccount"].returns] == [("account_id",), ("iban",)]
    assert "one at a time" in world.shared
    (pay,) = scenes(world)
    assert played(pay).passed
    for name in SHIFTS:
        assert played(apply(pay, name, 2)).passed, name
    twice = ("createTransfer", {"sender": "A-11", "iban": "DE02-1200", "amount": 25})
    assert not called(pay, twice, twice, answer="T-0001").passed
    assert called(pay, twice, answer="T-0001").passed
    with pytest.raises(NotApplicable, match="given"):
        apply(pay, "no_such_entity", 1)


def test_a_failed_request_is_the_tools_failure(folder: Path, address: str) -> None:
    episode = Episode(make_scene(over_http(folder, address), "task", 0))
    text, result = episode.call("getAccount", {"account_id": "A/99"})
    assert result.data == {"error": {"code": "not_found", "message": "no account A%2F99"}}
    assert "no account" in text
    episode.refuse("not_found")


@pytest.mark.parametrize(
    ("old", "new", "wrong"),
    [
        ("${LEDGER_TOKEN}", "${NO_TOKEN}", "tools.headers.Authorization: the environment has no"),
        ("api.json", "none.json", "tools.openapi: cannot read none.json"),
        ("POST /reset", "reset", "tools.reset: 'reset' is not like POST /reset"),
        ("POST /reset", "POST /nothing", "tools.reset: POST /nothing answered 404"),
        ("base_url: ADDRESS", "base_url: http://127.0.0.1:9", "cannot be reached"),
        ("T-0001", "T-0009", "no result of the expected calls contains .T-0009"),
    ],
)
def test_what_is_wrong_with_a_server_is_said(
    folder: Path, address: str, old: str, new: str, wrong: str
) -> None:
    tasks = HTTP_TASKS.replace(old, new).replace("T-0009", r"T-0009\b")
    (folder / "api.json").write_bytes(JSON.encode(OPENAPI))
    (folder / "tasks.yaml").write_text(tasks.replace("ADDRESS", address))
    Site.transfers.append({"sender": "A-11", "iban": "other"})
    with pytest.raises(UsageError, match="(?s)" + wrong.replace("(", r"\(")):
        load(folder / "tasks.yaml")


@pytest.mark.parametrize("command", ["no-such-program", f"{sys.executable} -c pass"])
def test_a_server_that_cannot_be_used_is_said(folder: Path, command: str) -> Any:
    (folder / "tasks.yaml").write_text(
        f"world: x\ntools: {{mcp: '{command}'}}\ntasks: [{{id: a, ask: b, check: {{answer: c}}}}]"
    )
    with pytest.raises(UsageError, match=r"tasks.yaml:2: tools.mcp: "):
        load(folder / "tasks.yaml")


def test_an_operation_says_a_parameter_of_its_path_anew() -> None:
    item = {
        "parameters": [{"in": "query", "name": "day", "schema": {"type": "string"}}],
        "get": {
            "operationId": "hours",
            "parameters": [
                {"in": "query", "name": "day", "required": True, "schema": {"type": "integer"}}
            ],
        },
    }
    shown = _operation("/hours", "get", item, {"paths": {"/hours": item}}).shown["inputSchema"]
    assert shown["properties"] == {"day": {"type": "integer"}}
    assert shown["required"] == ["day"]

"""Traces of the proxy: each call, and no secrets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from connect.shop_server import TOOLS, Shop
from connect.test_proxy import shifting, visit
from mcp import Client

from toolshift.connect.mcp.shifted_server import ShiftOptions
from toolshift.connect.trace import Trace
from toolshift.core.errors import UsageError
from toolshift.core.redaction import READ, Redactor
from toolshift.drift.sources import read_source


def test_each_call_is_traced(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"

    async def work(client: Client) -> Any:
        await client.call_tool("get_order", {"order_ref": "R-1001"})
        await client.call_tool("read_note", {"name": "Bearer abcdefgh12345678"})

    for how in (ShiftOptions(), shifting("format_drift:1")):
        visit(work, how, trace=Trace(file))
    records = [json.loads(line) for line in file.read_text().splitlines()]
    calls = [record for record in records if "tool" in record]
    assert [record["tool"] for record in calls] == ["get_order", "read_note"] * 2
    assert records[-1]["changes"]["format_drift:1"]["nothing"] is False
    assert calls[2]["true"] == [["get_order", {"order_ref": "R-1001"}, True]]
    assert "abcdefgh12345678" not in file.read_text()


@pytest.mark.parametrize(
    "secret",
    [
        {"api_key": "hunter2hunter2"},
        {"nested": [{"Authorization": "hunter2hunter2"}]},
        {"text": "curl -H 'Authorization: Bearer hunter2hunter2'"},
        {"text": '{"password": "hunter2hunter2"}'},
        {"text": "PASSWORD=hunter2hunter2 run"},
        {"text": "https://me:hunter2hunter2@example.com/"},
        {"text": "the owned one is hunter2hunter2!"},
        {"hunter2hunter2": 1},
    ],
)
def test_secrets_are_left_out(secret: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_SECRET", "hunter2hunter2")
    assert "hunter2hunter2" not in json.dumps(Redactor().clean(secret))
    monkeypatch.delenv("SHOP_SECRET")
    if "owned" not in str(secret) and "hunter2hunter2" not in secret:
        assert "hunter2hunter2" not in json.dumps(Redactor().clean(secret))


def test_what_is_no_secret_stays() -> None:
    plain = {"max_tokens": 5, "author": "Ada", "tokens": [1], "text": "the key: value of a token"}
    plain |= {"prompt_tokens_details": {"cached_tokens": 3}}
    assert Redactor().clean(plain) == plain


def test_known_values_go_unless_they_are_too_short_to_be_secret() -> None:
    known = Redactor(("", "x", "opensesame"))
    assert known.clean({"text": "an opensesame for x"}) == {"text": "an [redacted] for x"}


def test_a_trace_that_cannot_be_written_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot write the trace"):
        Trace(tmp_path)


def test_a_shift_that_changed_nothing_is_said_in_the_trace_and_at_the_end(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "trace.jsonl"

    async def work(client: Client) -> Any:
        await client.call_tool("read_note", {"name": "plain"})
        await client.call_tool("read_note", {"name": "plain"})

    visit(work, shifting("format_drift:1", "schema_noise:3"), trace=Trace(file))
    *records, end = [json.loads(line) for line in file.read_text().splitlines()]
    calls = [record for record in records if "tool" in record]
    assert [record["by"] for record in calls] == [[], []]
    assert (end["end"], end["calls"]) == (True, 2)
    nothing = {name: each["nothing"] for name, each in end["changes"].items()}
    assert nothing == {"format_drift:1": True, "schema_noise:3": False}
    said = "toolshift: format_drift:1 changed nothing in this session: not the tools, and none of 2"
    assert capfd.readouterr().err.splitlines() == [f"{said} calls"]


def test_a_session_without_shifts_ends_without_a_word(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "trace.jsonl"

    async def work(client: Client) -> Any:
        await client.call_tool("read_note", {"name": "plain"})

    visit(work, ShiftOptions(), trace=Trace(file))
    assert len(file.read_text().splitlines()) == 1
    assert not capfd.readouterr().err


def test_a_secret_that_the_limit_cuts_in_two_is_hidden() -> None:
    known = "swordfish" * 4
    redactor = Redactor((known,))
    gone = "sk-" + "a1" * 1_000 + " "
    for place in range(READ - 60, READ, 7):
        # What is taken out makes room, so that the end of what was read would be kept.
        text = (gone * 40)[:place] + " " + known + "tail" * 100
        kept = redactor.text(text)
        assert "swordf" not in kept
        assert "a1a1" not in kept


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("use sk-ant-api03-Ab_c-dEf0123456789xyz now", "Ab_c-dEf0123456789xyz"),
        ("use rk_live_0123456789abcdef", "0123456789abcdef"),
        ("t=eyJhbGciOiJI.eyJzdWIiOiIx.abc-def", "eyJhbGciOiJI"),
        ("x" * 80 + "_api_key=hunter2hunter2", "hunter2"),
    ],
)
def test_keys_are_hidden_whole(text: str, secret: str) -> None:
    assert secret not in Redactor().text(text)


def test_words_with_hyphens_are_no_keys() -> None:
    assert Redactor().text("sk-one-two-three-four-five") == "sk-one-two-three-four-five"


def test_tools_on_offer_are_traced_once_and_can_be_locked(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"

    async def work(client: Client) -> Any:
        for _ in range(2):
            await client.list_tools()

    shop = Shop()
    shop.tools = TOOLS[:4]
    for how in (ShiftOptions(), shifting("tool_name_noise:3")):
        visit(work, how, shop, trace=Trace(file))
    plain, shifted = [r for r in map(json.loads, file.read_text().splitlines()) if "listed" in r]
    assert [tool["name"] for tool in plain["listed"]] == [tool["name"] for tool in TOOLS[:4]]
    assert len(shifted["listed"]) == 4
    assert plain["listed"] != shifted["listed"]
    assert read_source(str(file)).tools == shifted["listed"], "the last list"


def test_a_parameter_with_the_name_of_a_secret_is_kept_in_a_list_of_tools(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    schema = {"type": "object", "properties": {"token": {"type": "string"}}}
    told = "Use Bearer abcdefgh12345678."
    Trace(file).write_tools([{"name": "get", "description": told, "inputSchema": schema}])
    (tool,) = json.loads(file.read_text())["listed"]
    assert tool["inputSchema"] == schema
    assert "abcdefgh12345678" not in tool["description"]

"""Trace files of every kind: watched, locked, augmented, and made into one and the same world."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from running import Run

from toolshift.core.files import read_bytes
from toolshift.data.trace_files import conversation_lines, read_recorded
from toolshift.drift.sources import events_in
from toolshift.drift.stream import Called, Ended, Shown
from toolshift.train.rows import read_rows

FILES = sorted((Path(__file__).parent / "files").iterdir())
WITH_TOOLS = [path for path in FILES if not path.name.startswith("gen_ai_events.")]
REQUESTS = [
    "What is the status of order O-1701?",
    "Please refund order O-1702 to its buyer.",
    "Please refund order O-1703 to its buyer.",
]
TEXT = {"type": "string"}


def tool(name: str, *arguments: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": dict.fromkeys(arguments, TEXT), "required": arguments}
    return {"name": name, "inputSchema": schema}


TOOLS = [tool("get_order", "order_id"), tool("refund_order", "order_id", "email")]


def named(path: Path) -> str:
    return path.name.partition(".")[0]


every_file = pytest.mark.parametrize("path", FILES, ids=named)


@every_file
def test_each_call_is_one_event_and_its_failure_is_seen(path: Path) -> None:
    events = list(events_in(path))
    called = [each for each in events if isinstance(each, Called)]
    if named(path) == "gen_ai_events":  # a result is in the request after it
        assert all(each.ms is None for each in called)
    else:  # where the newest comes first, the first is told by the request before its span
        assert any(each.ms is not None for each in called)
    # a platform may give the newest first
    told = sorted((each.tool, (each.arguments or {})["order_id"], each.ok) for each in called)
    assert told == [
        ("get_order", "O-1701", True),
        ("get_order", "O-1702", True),
        ("get_order", "O-1703", True),
        ("refund_order", "O-1702", True),
        ("refund_order", "O-1703", False),
    ]
    ended = [each for each in events if isinstance(each, Ended)]
    assert sorted(each.asked for each in ended) == sorted(REQUESTS)
    shown = [each for each in events if isinstance(each, Shown)]
    assert bool(shown) == (path in WITH_TOOLS)
    assert all(
        [tool["name"] for tool in one.tools] == ["get_order", "refund_order"] for one in shown
    )
    assert all(each["inputSchema"]["required"] for one in shown for each in one.tools)


@every_file
def test_each_conversation_is_one_row(path: Path) -> None:
    rows = [json.loads(line) for line in conversation_lines(path)]
    said = [[message["role"] for message in row["messages"]] for row in rows]
    short = ["system", "user", "assistant", "tool", "assistant"]
    long = [*short, "tool", "assistant"]
    assert said == [short, long, long]
    assert rows[1]["messages"][-1]["content"] == "The refund is RF-1702."
    assert bool(rows[0]["tools"]) == (path in WITH_TOOLS)


@every_file
def test_each_is_watched_and_made_into_the_same_world(
    path: Path, toolshift: Run, tmp_path: Path
) -> None:
    code, _, said = toolshift("watch", str(path))
    assert (code, "5 calls of 2 tools, 3 endings: 0 alarms." in said) == (0, True)
    assert "not understood" not in said
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS))
    given = [] if path in WITH_TOOLS else ["--tools", "tools.json"]
    words = ["--writes", "refund_order", "--out", "tasks.yaml", "--json", *given]
    code, out, said = toolshift("world", "from-traces", str(path), *words)
    assert code == 0, said
    told = json.loads(out)
    assert (told["tasks"], told["conversations"], told["answers"]) == (2, 3, 3)
    assert told["masked"] == {"email": 3}
    assert list(told["left_out"].values()) == [1]
    text = (tmp_path / "tasks.yaml").read_text()
    assert yaml.safe_load(text)["tasks"] == [
        {
            "id": "get_order-1",
            "kind": "get_order",
            "ask": REQUESTS[0],
            "calls": [{"name": "get_order", "arguments": {"order_id": "O-1701"}}],
            "check": {"calls": True, "answer": "delivered"},
        },
        {
            "id": "get_order-refund_order-1",
            "kind": "get_order+refund_order",
            "ask": REQUESTS[1],
            "calls": [
                {"name": "get_order", "arguments": {"order_id": "O-1702"}},
                {
                    "name": "refund_order",
                    "arguments": {"order_id": "O-1702", "email": "user2@example.com"},
                },
            ],
            "check": {
                "calls": [
                    {
                        "name": "refund_order",
                        "arguments": {"order_id": "O-1702", "email": "user2@example.com"},
                    }
                ],
                "answer": "RF-1702",
            },
        },
    ]
    written = text + (tmp_path / "tasks.recording.jsonl").read_text()
    assert "shop-mail.net" not in written
    code, out, _ = toolshift("check", "tasks.yaml")
    assert (code, "0 broken" in out, "0 failed" in out) == (0, True, True)


def test_the_oracle_passes_every_task_of_such_a_world_under_the_shifts_that_apply(
    toolshift: Run,
) -> None:
    made = ("world", "from-traces", str(FILES[0]), "--writes", "refund_order", "--out", "t.yaml")
    assert toolshift(*made)[0] == 0
    words = ["--world", "t.yaml", "--agent", "oracle", "--json"]
    for shift in (
        "identity_erasure:3", "format_drift", "split_tools", "redirect", "fatal_error",
        "transient_error", "new_precondition", "placebo",
    ):  # fmt: skip
        words += ["--shift", shift]
    code, out, said = toolshift("run", *words)
    assert code == 0, said
    (agent,) = json.loads(out)["agents"]
    assert agent["clean"]["accuracy"]["estimate"] == 1
    assert len(agent["tiers"]) > 1
    assert all(tier["accuracy"]["estimate"] == 1 for tier in agent["tiers"])


@pytest.mark.parametrize("path", WITH_TOOLS[:2], ids=named)
def test_lock_verify_and_augment_read_traces(path: Path, toolshift: Run, tmp_path: Path) -> None:
    assert toolshift("lock", str(path), "--out", "t.lock")[0] == 0
    code, out, _ = toolshift("verify", "t.lock", str(path), "--calls", str(path), "--json")
    assert (code, json.loads(out)["report"]["calls"]) == (0, 5)
    out_file = tmp_path / "out.jsonl"
    words = ("--alpha", "1", "--shift", "identity_erasure", "--out", str(out_file))
    assert toolshift("augment", str(path), *words)[0] == 0
    text = out_file.read_text()
    assert len(text.splitlines()) == 3
    assert '"get_order"' not in text


@pytest.mark.parametrize("path", WITH_TOOLS[:1], ids=named)
def test_training_reads_the_conversations_of_traces(path: Path) -> None:
    rows = read_rows(path)
    assert [len(row["messages"]) for row in rows] == [5, 7, 7]


def test_a_part_that_is_not_known_is_counted_everywhere(toolshift: Run, tmp_path: Path) -> None:
    strange = {"name": "GET /", "attributes": {"http.method": "GET"}}
    text = read_bytes(next(path for path in FILES if named(path) == "openinference")).decode()
    (tmp_path / "part.jsonl").write_text(f"{text}{json.dumps(strange)}\n")
    said = "1 of 17 spans was not understood. The first is line 17: a span of another convention"
    lock = ("lock", "part.jsonl", "--out", "t.lock")
    verify = ("verify", "t.lock", "part.jsonl", "--sarif", "t.sarif")
    made = ("world", "from-traces", "part.jsonl", "--out", "tasks.yaml")
    for command in (("watch", "part.jsonl"), lock, verify, made):
        code, _, told = toolshift(*command)
        assert (code, said in told) == (0, True), command
    (run,) = json.loads((tmp_path / "t.sarif").read_text())["runs"]
    (note,) = run["invocations"][0]["toolExecutionNotifications"]
    assert said in note["message"]["text"]


def test_a_file_of_nothing_known_makes_no_world(toolshift: Run, tmp_path: Path) -> None:
    row = {"run_type": "llm", "trace_id": "1", "outputs": {}}
    (tmp_path / "odd.jsonl").write_text(json.dumps(row) + "\n")
    code, _, said = toolshift("world", "from-traces", "odd.jsonl", "--out", "tasks.yaml")
    assert (code, "odd.jsonl: nothing was read" in said) == (2, True)
    assert "nearest are runs of LangSmith (`run_type`, `inputs`)" in said
    assert not (tmp_path / "tasks.yaml").exists()


def test_each_file_is_small_and_has_its_origin_told() -> None:
    told = (Path(__file__).parent / "README.md").read_text()
    for path in FILES:
        assert path.stat().st_size < 30_000
        assert f"`{path.name}`" in told


def test_traces_of_one_session_are_one_conversation(tmp_path: Path) -> None:
    """Each request has all that was said before, though each turn of the user is its own trace."""
    said = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]
    more = [*said, {"role": "user", "content": "Bye"}]
    rows = [
        {"id": "1", "run_type": "llm", "trace_id": "1", "inputs": {"messages": said[:1]},
         "outputs": {"choices": [{"message": said[1]}]}},
        {"id": "2", "run_type": "llm", "trace_id": "2", "inputs": {"messages": more},
         "outputs": {"choices": [{"message": {"role": "assistant", "content": "See you."}}]}},
    ]  # fmt: skip
    path = tmp_path / "runs.json"
    path.write_text(json.dumps(rows))
    (recorded,), _ = read_recorded([path])
    assert recorded.asks == ("Hi", "Bye")
    assert recorded.answer == "See you."

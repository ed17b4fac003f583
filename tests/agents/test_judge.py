"""A judge of prose behind a real server on loopback."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from running import Run

import toolshift
from toolshift.agents.judge import Judge
from toolshift.core.errors import UsageError
from toolshift.measure.compare import regrade_run
from toolshift.measure.report import Judged
from toolshift.runs.run_folder import RunFolder

sys.path.insert(0, str(Path(__file__).parents[1]))
import serving
from serving import ScriptedServer, good, status

SAID = "Hmm. It is what it is."
SCENES: dict[str, Any] = {"worlds": ["poi"], "kinds": ["listing"], "tasks": 1, "placebo": False}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    with serving.scripted_server() as server:
        monkeypatch.setenv("TOOLSHIFT_BASE_URL", server.url)
        yield server


def verdict(kind: str, reason: str = "") -> serving.Answer:
    return good(json.dumps({"kind": kind, "reason": reason}))


def mumbles(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> str:
    """Ends at once, in prose."""
    return f"{SAID} {len(str(tools))} {messages}"


def judge(**options: Any) -> Judge:
    return Judge("chat:tiny", **{"retries": 0, **options})


def test_it_says_kind_and_reason_and_is_asked_once_a_message(server: ScriptedServer) -> None:
    server.script = [verdict("refusal", "not_found"), verdict("refusal", "other")]
    one = judge()
    for _ in range(2):
        read = one.read(SAID, "SHOWN-CODE", "What is it?")
        assert (read.kind, read.reason, read.judge) == ("refusal", "not_found", "chat:tiny")
    assert one.read(SAID, "", "Another request").reason == ""
    assert len(server.requests) == 2
    sent = server.requests[0]["body"]["messages"]
    assert json.loads(sent[1]["content"]) == {"request": "What is it?", "message": SAID}
    assert "tools" not in server.requests[0]["body"]


def test_thoughts_are_no_part_of_the_message_or_the_verdict(server: ScriptedServer) -> None:
    server.script = [good('<think>Is it?</think>\n{"kind": "question"}')]
    assert judge().read("<think>no such</think>Where?", "", "").kind == "question"
    assert "no such" not in str(server.requests)
    assert judge().read("<think>nothing said</think>", "", "").judge == ""


@pytest.mark.parametrize(
    "trouble",
    [
        status(500),
        good("It is a refusal."),
        good('{"kind": "yes"}'),
        good('{"kind": "refusal", "reason": "tired"}'),
        good('{"kind": "refusal", "reason": "", "score": 1}'),
        good('{"kind": "refusal"} I think'),
        good("[]"),
        good(""),
    ],
)
def test_where_it_fails_the_shipped_reading_counts(
    server: ScriptedServer, trouble: serving.Answer
) -> None:
    server.script = [trouble, verdict("answer")]
    one = judge()
    text = "I cannot do this: no such place was found."
    read = one.read(text, "", "")
    assert (read.kind, read.reason, read.judge) == ("refusal", "not_found", "chat:tiny failed")
    assert one.read(text, "", "").judge == "chat:tiny"


def test_an_endpoint_that_never_worked_is_said(server: ScriptedServer) -> None:
    server.script = [status(404)]
    with pytest.raises(UsageError, match="Check the model's name"):
        judge().read(SAID, "", "")
    server.script = [verdict("none"), status(404)]
    one = judge()
    one.read(SAID, "", "")
    assert one.read(SAID + "!", "", "").judge == "chat:tiny failed"


@pytest.mark.parametrize("spec", ["oracle", "chat:", "local:folder", ""])
def test_only_a_chat_model_can_judge(spec: str) -> None:
    with pytest.raises(UsageError, match="chat:MODEL"):
        Judge(spec)


def test_a_run_labels_what_a_judge_has_read(server: ScriptedServer, tmp_path: Path) -> None:
    out = tmp_path / "run"
    server.script = [verdict("refusal", "service_failure"), good("?"), status(400)]
    shifts = ["query_typos:2", "schema_noise:2"]
    report = toolshift.evaluate(mumbles, shifts=shifts, out=out, judge="chat:tiny", **SCENES)
    assert report.agents[0].judged == Judged("chat:tiny", 1, 2)
    said = " ".join(report.summary(300, details=True).split())
    assert "1 message in prose read by the judge chat:tiny" in said
    assert "it failed on 2 more" in said
    folder = RunFolder.read(out)
    assert [record.steps[-1].judge for record in folder.records()] == [
        "chat:tiny",
        "chat:tiny failed",
        "chat:tiny failed",
    ]
    assert folder.manifest.agents[0]["judge"]["judge"] == "chat:tiny"
    with pytest.raises(UsageError, match="judge"):
        toolshift.evaluate(mumbles, shifts=shifts, out=out, **SCENES)


def test_a_judge_reads_a_stored_run_again(server: ScriptedServer, tmp_path: Path) -> None:
    out = tmp_path / "run"
    toolshift.evaluate(mumbles, out=out, shifts=["query_typos:2"], **SCENES)
    assert not server.requests
    server.script = [verdict("refusal", "not_found"), verdict("question")]
    records, changed = regrade_run(RunFolder.read(out), judge())
    read = [(record.end, record.steps[-1].judge) for record in records]
    assert read == [("refused", "chat:tiny"), ("answered", "")]  # a question would have gone on
    assert [each.after.cause for each in changed] == ["wrong_refusal"]


def test_the_command_line_keeps_verdicts_with_the_run(
    server: ScriptedServer, toolshift: Run
) -> None:
    Path("mumbler.py").write_text(f"def reply(messages, tools):\n    return {SAID!r}\n")
    scenes = ("--world", "poi", "--kind", "listing", "--tasks", "1", "--shift", "query_typos:2")
    agent = ("--agent", "mumbler:reply", "--out", "out")
    server.script = [verdict("none")] * 3
    code, said, wrong = toolshift("run", *scenes, *agent, "--judge", "chat:tiny")
    assert code == 0, wrong
    said = toolshift("report", "out", "--details", "--no-html")[1]
    assert "read by the judge chat:tiny" in " ".join(said.split())
    again = ("regrade", "out", "--write", "--judge", "chat:other", "--judge-url", server.url)
    for _ in range(2):
        server.script = [verdict("refusal")] * 3
        code, said, wrong = toolshift(*again)
        assert code == 0, wrong
    assert [request["body"]["model"] for request in server.requests] == ["tiny"] * 3 + ["other"] * 3
    assert Path("out/judge.jsonl").read_bytes().count(b"\n") == 6
    assert Path("out/episodes.jsonl").read_text().count('"judge":"chat:other"') == 3
    code, _, wrong = toolshift("report", "out", "--markdown", "out.md", "--html", "out.html")
    assert code == 0, wrong
    assert "prose read by chat:other" in Path("out.md").read_text()
    assert "prose read by chat:other" in Path("out.html").read_text()
    gate = ("gate", "--baseline", "out", "--margin", "5", "--agent", "mumbler:reply", "--json")
    before = RunFolder.read(Path("out"))
    assert [agent["judge"]["judge"] for agent in before.manifest.agents] == ["chat:other"]
    # a gate against what passes nothing asks nothing
    before.rewrite([replace(r, grade=replace(r.grade, passed=True)) for r in before.records()])
    server.script = [verdict("none")] * 3
    _, said, _ = toolshift(*gate, "--out", "new", "--judge", "chat:tiny")
    assert json.loads(said)["notes"][0].startswith("Endings in prose were read differently: ")
    assert Path("new/episodes.jsonl").read_text().count('"judge":"chat:tiny"') == 3
    code, _, wrong = toolshift("gate", "new", *gate[1:], "--judge", "chat:tiny")
    assert code == 2
    assert "a finished run is only read" in wrong
    code, _, wrong = toolshift("regrade", "out", "--judge", "oracle")
    assert code == 2
    assert "chat:MODEL" in wrong

"""Answers that are unclear by their type: counted, bounding the accuracy, decided."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from running import Run, runner

import toolshift
from toolshift.core.errors import UsageError
from toolshift.measure.compare import regrade_run
from toolshift.runs.decisions import decide
from toolshift.runs.run_folder import RunFolder

sys.path.insert(0, str(Path(__file__).parents[1]))
import serving
from serving import good

TOOLS = '''
def get_boats(pier: str) -> dict:
    """Count the boats at a pier."""
    return {"pier": pier, "boats": 4, "berths": 9}
'''
TASKS = """
world: piers
tools: {python: pier_tools}
writes: []
tasks:
  - id: north
    ask: How many boats are at the pier called north?
    calls: [{name: get_boats, arguments: {pier: north}}]
    check: {answer: 4, as: number}
  - id: south
    ask: How many boats are at the pier called south?
    calls: [{name: get_boats, arguments: {pier: south}}]
    check: {answer: 4, as: number}
"""


def says(north: str, south: str) -> Any:
    """An agent that asks the tool and says this."""

    def agent(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> Any:
        pier = "north" if "north" in messages[1]["content"] else "south"
        if messages[-1]["role"] != "tool":
            name = tools[0]["function"]["name"]
            call = {"name": name, "arguments": json.dumps({"pier": pier})}
            called = [{"id": "1", "type": "function", "function": call}]
            return {"role": "assistant", "content": "", "tool_calls": called}
        return north if pier == "north" else south

    return agent


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("pier_tools", None)
    (tmp_path / "pier_tools.py").write_text(TOOLS)
    (tmp_path / "tasks.yaml").write_text(TASKS)
    return tmp_path / "tasks.yaml"


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return runner(capsys, monkeypatch)


def run(world: Path, agent: Any, **options: Any) -> tuple[RunFolder, Any]:
    out = world.parent / "run"
    report = toolshift.evaluate(
        agent, worlds=[str(world)], shifts=["schema_noise:1"], placebo=False, out=out, **options
    )
    return RunFolder.read(out), report.agents[0]


def test_unclear_is_counted_and_bounds_the_accuracy(world: Path) -> None:
    folder, agent = run(world, says("4", "At least 4."))
    assert [record.grade.unclear for record in folder.records()].count(True) == 2
    assert (agent.clean.unclear, agent.clean.void) == (1, 0)
    assert agent.clean.accuracy.estimate == 0.5
    assert agent.clean.bounds == (0.5, 1.0)
    certain = run_again(world, says("4", "5"))
    assert agent.clean.accuracy.low == certain.clean.accuracy.low
    assert agent.clean.accuracy.high > certain.clean.accuracy.high
    assert certain.clean.unclear == 0


def run_again(world: Path, agent: Any) -> Any:
    options = {"worlds": [str(world)], "shifts": ["schema_noise:1"], "placebo": False}
    return toolshift.evaluate(agent, **options).agents[0]  # type: ignore[arg-type]


def test_what_is_not_unclear_is_stored_as_before(world: Path) -> None:
    folder, _ = run(world, says("4", "5"))
    assert "unclear" not in folder.episodes.read_text()
    assert "unclear" not in (folder.path / "report.json").read_text()


def test_a_person_decides(world: Path, command: Run) -> None:
    folder, _ = run(world, says("4", "At least 4."))
    unclear = {record.episode for record in folder.records() if record.grade.unclear}
    code, listed, _ = command("trace", str(folder.path))
    assert code == 0
    assert "2 unclear first" in listed
    code, text, _ = command("report", str(folder.path), "--no-html")
    assert "2 answers are unclear: accuracy over all episodes lies between 50%" in " ".join(
        text.split()
    )
    for verdict, passed in (("right", True), ("wrong", False)):
        told = [part for one in unclear for part in ("--decide", f"{one[:6]}={verdict}")]
        code, text, said = command("report", str(folder.path), *told, "--no-html")
        assert code == 0
        assert "answers are unclear" not in text
        again = [record for record in folder.records() if record.episode in unclear]
        assert all(record.episode in said for record in again)
        assert {(r.grade.passed, r.grade.unclear) for r in again} == {(passed, False)}
    kept = [json.loads(line) for line in (folder.path / "decisions.jsonl").read_text().splitlines()]
    assert [one["verdict"] for one in kept] == ["right"] * 2 + ["wrong"] * 2
    assert all(one["by"] and one["at"].endswith("+00:00") for one in kept)
    assert regrade_run(RunFolder.read(folder.path))[1] == []


def test_a_page_shows_unclear_answers_as_such(world: Path, command: Run) -> None:
    folder, _ = run(world, says("4", "At least 4."))
    code, text, _ = command("report", str(folder.path))
    assert code == 0
    assert "A  it is unclear whether its answers are right" in text
    page = (folder.path / "report.html").read_text()
    assert '<strong class="lost">A</strong> it is unclear whether its answers are right' in page
    assert "Unclear answers" in page
    assert "Void episodes" not in page
    code, text, _ = command("report", str(folder.path), "--markdown", "summary.md")
    assert "A it is unclear whether its answers are right" in Path("summary.md").read_text()


@pytest.mark.parametrize(
    ("name", "verdict", "said"),
    [("", "right", "there is none"), ("zz", "right", "there is none"), ("*", "maybe", "say right")],
)
def test_what_cannot_be_decided_is_said(world: Path, name: str, verdict: str, said: str) -> None:
    folder, _ = run(world, says("4", "At least 4."))
    episodes = {record.grade.unclear: record.episode for record in folder.records()}
    with pytest.raises(UsageError, match=said):
        decide(folder, {episodes[True] if name == "*" else name: verdict})
    with pytest.raises(UsageError, match="not unclear"):
        decide(folder, {episodes[False]: "wrong"})
    assert not (folder.path / "decisions.jsonl").exists()


@pytest.mark.parametrize("verdict", ["right", "wrong"])
def test_a_judge_decides(world: Path, monkeypatch: pytest.MonkeyPatch, verdict: str) -> None:
    with serving.scripted_server() as server:
        monkeypatch.setenv("TOOLSHIFT_BASE_URL", server.url)
        server.script = [good(json.dumps({"verdict": verdict}))] * 2

        def agent(messages: Any, tools: Any) -> Any:
            said = says("4", "At least 4.")(messages, tools)
            return answer(said) if isinstance(said, str) else said

        folder, report = run(world, agent, judge="chat:tiny")
    unclear = next(r for r in folder.records() if any(step.told for step in r.steps))
    assert unclear.grade.passed is (verdict == "right")
    assert report.clean.unclear == 0
    assert next(step.told_by for step in unclear.steps if step.told) == "chat:tiny"
    sent = json.loads(server.requests[0]["body"]["messages"][1]["content"])
    assert (sent["right_answer"], sent["answer"]) == ("4", "At least 4.")


def answer(said: str) -> dict[str, Any]:
    """A call of `final_answer`, which no judge of prose reads."""
    call = {"name": "final_answer", "arguments": json.dumps({"answer": said})}
    called = [{"id": "2", "type": "function", "function": call}]
    return {"role": "assistant", "content": "", "tool_calls": called}

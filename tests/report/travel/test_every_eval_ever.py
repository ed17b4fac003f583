"""Records of Every Eval Ever: valid by the published schemas, and the figures of the report."""

from __future__ import annotations

import gzip
import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from running import Run, runner, write_agent
from surfing import run_into

from toolshift.api import report_of
from toolshift.measure.report import Report
from toolshift.report.travel.every_eval_ever import write_records
from toolshift.runs.run_folder import RunFolder

SCHEMAS = Path(__file__).parent / "schemas"
AGENTS = ("memorises_names", "never_refuses")


def schema(name: str) -> Any:
    raw = json.loads(gzip.decompress((SCHEMAS / f"{name}.schema.json.gz").read_bytes()))
    assert raw["version"] == "0.3.0"
    return jsonschema_rs.validator_for(raw)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run") / "run"
    shifts = ("identity_erasure", "fatal_error", "query_ambiguity+format_drift")
    return run_into(folder, *AGENTS, tasks=6, shifts=shifts)


@pytest.fixture(scope="module")
def report(run: Path) -> Report:
    return report_of(RunFolder.read(run))


@pytest.fixture(scope="module")
def files(run: Path, report: Report, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_records(RunFolder.read(run), report, tmp_path_factory.mktemp("eee"))


def samples_of(file: Path) -> list[dict[str, Any]]:
    lines = file.with_name(f"{file.stem}_samples.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_both_files_are_valid(files: list[Path]) -> None:
    aggregate, instance = schema("eval"), schema("instance_level_eval")
    assert len(files) == len(AGENTS)
    for file in files:
        assert [str(e) for e in aggregate.iter_errors(json.loads(file.read_bytes()))] == []
        samples = samples_of(file)
        assert len(samples) > 20
        for sample in samples:
            assert [str(e) for e in instance.iter_errors(sample)] == []


def test_scores_and_intervals_are_those_of_the_report(files: list[Path], report: Report) -> None:
    for file, agent in zip(files, report.agents, strict=True):
        results = {
            each["evaluation_name"].split(".", 1)[1].partition(".")[2]: each["score_details"]
            for each in json.loads(file.read_bytes())["evaluation_results"]
        }
        rows = {"clean": agent.clean, **{f"tier-{row.label}": row for row in agent.tiers}}
        rows |= {row.label: row for row in agent.shifts}
        assert agent.clean.defined is False  # the clean arm has no drop of its own
        assert results.keys() == {f"{name}.accuracy" for name in (*rows, "placebo")} | {
            f"{name}.drop"
            for name, row in {**rows, "placebo": agent.placebo}.items()
            if row.defined
        }
        for name, row in rows.items():
            shown = results[f"{name}.accuracy"]
            limits = shown["uncertainty"]["confidence_interval"]
            assert shown["score"] == row.accuracy.estimate
            assert (limits["lower"], limits["upper"]) == (row.accuracy.low, row.accuracy.high)
            assert limits["confidence_level"] == 0.95
            assert limits["method"].split()[0].lower() == row.accuracy.method
            if row.defined:
                assert results[f"{name}.drop"]["score"] == row.drop.estimate


def test_samples_are_joined_to_the_results_that_they_make(files: list[Path]) -> None:
    for file in files:
        record, samples = json.loads(file.read_bytes()), samples_of(file)
        details = record["detailed_evaluation_results"]
        raw = file.with_name(f"{file.stem}_samples.jsonl").read_bytes()
        assert details["total_rows"] == len(samples)
        assert details["checksum"] == sha256(raw).hexdigest()
        assert str(file).endswith(details["file_path"].replace("_samples.jsonl", ".json"))
        scores: dict[str, dict[str, list[float]]] = {}
        for sample in samples:
            assert sample["evaluation_id"] == record["evaluation_id"]
            assert sample["model_id"] == record["model_info"]["id"]
            task = sample["sample_id"].partition("#")[0]
            tasks = scores.setdefault(sample["evaluation_result_id"], {})
            tasks.setdefault(task, []).append(sample["evaluation"]["score"])
        known = {
            e["evaluation_result_id"]: e["score_details"] for e in record["evaluation_results"]
        }
        for name, tasks in scores.items():
            mean = sum(sum(each) / len(each) for each in tasks.values()) / len(tasks)
            assert known[name]["score"] == pytest.approx(mean)


def test_a_sample_is_the_conversation(files: list[Path]) -> None:
    sample = next(s for s in samples_of(files[0]) if s["metadata"]["shifts"] == "clean")
    assert [m["turn_idx"] for m in sample["messages"]] == list(range(len(sample["messages"])))
    assert sample["messages"][1]["content"] in sample["input"]["raw"]
    (said,) = sample["answer_attribution"]
    assert said["is_terminal"]
    assert said["extracted_value"] in sample["input"]["reference"]  # it passed
    last = sample["messages"][said["turn_idx"]]["tool_calls"][-1]
    assert (last["name"], last["arguments"]) == (
        "final_answer",
        {"answer": said["extracted_value"]},
    )
    answered = {name for m in sample["messages"] for name in m["tool_call_id"] or ()}
    asked = {call["id"] for m in sample["messages"] for call in m["tool_calls"] or ()}
    assert asked - answered == {last["id"]}  # nothing comes back after the end


def test_the_same_run_gives_the_same_bytes(run: Path, report: Report, tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_records(RunFolder.read(run), report, tmp_path / name, "never_refuses")
    one, two = (
        {p.relative_to(tmp_path / name): p.read_bytes() for p in (tmp_path / name).rglob("*.json*")}
        for name in ("one", "two")
    )
    assert len(one) == 2
    assert one == two


def crashes(messages: Any, tools: Any) -> Any:
    """Speaks to nobody: a call that cannot be read, then it breaks down."""
    if len(messages) > 2:
        raise KeyError("no model")
    call = {"name": tools[0]["function"]["name"], "arguments": "{broken"}
    return {"role": "assistant", "tool_calls": [{"id": "1", "function": call}]}


def test_broken_calls_and_crashes_are_samples_too(tmp_path: Path) -> None:
    folder = RunFolder.read(run_into(tmp_path / "run", crashes, tasks=2, shifts=("clean",)))
    (file,) = write_records(folder, report_of(folder), tmp_path, model="acme/crasher")
    instance = schema("instance_level_eval")
    for sample in samples_of(file):
        assert instance.is_valid(sample)
        assert "KeyError" in sample["error"]
        call = sample["messages"][2]["tool_calls"][0]
        assert call["arguments"] == {"(not an object)": "{broken"}
        assert sample["answer_attribution"] == []


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return runner(capsys, monkeypatch)


def test_an_agent_of_nobody_is_asked_for(
    cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    write_agent(tmp_path, name="nobodys")
    run_into(tmp_path / "run", "nobodys:refuses", "oracle", tasks=2, shifts=("clean",))
    code, _, err = cli("report", "run", "--no-html", "--eee", "out")
    assert code == 2
    assert "--model-id OWNER/NAME" in err
    code, _, err = cli("report", "run", "--no-html", "--eee", "out", "--model-id", "acme/a")
    assert code == 2
    assert "name it with --agent" in err
    name = RunFolder.read(tmp_path / "run").manifest.agents[0]["name"]
    words = ("report", "run", "--no-html", "--agent", name, "--eee", "out")
    assert cli(*words, "--model-id", "plain")[0] == 2
    code, _, err = cli(*words, "--model-id", "acme/agent-7", "--evaluator", "Acme")
    assert code == 0
    (file,) = (tmp_path / "out/data/toolshift/acme/agent-7").glob("*[0-9a-f].json")
    assert str(file.relative_to(tmp_path)) in err
    source = json.loads(file.read_bytes())["source_metadata"]
    assert source["source_organization_name"] == "Acme"

"""Evaluation results of Hugging Face: read by its own library, with nothing lost."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from running import Run, runner
from surfing import run_into

from toolshift.api import report_of
from toolshift.runs.run_folder import RunFolder

hub = pytest.importorskip("huggingface_hub")


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return runner(capsys, monkeypatch)


def test_the_hubs_library_reads_every_field(cli: Run, tmp_path: Path) -> None:
    run = run_into(tmp_path / "run", "memorises_names", tasks=4, shifts=("identity_erasure",))
    more = ("--hf-dataset", "acme/toolshift-quick", "--source-url", "https://example.org/traces")
    code, _, err = cli("report", run, "--no-html", "--hf-eval-results", tmp_path / "out", *more)
    assert code == 0
    (file,) = (tmp_path / "out/memorises_names/.eval_results").glob("*.yaml")
    assert str(file) in err
    data = yaml.safe_load(file.read_text("utf-8"))
    entries = hub.parse_eval_result_entries(data)
    assert hub.eval_result_entries_to_yaml(entries) == data
    agent = report_of(RunFolder.read(run)).agents[0]
    wanted = {"clean": agent.clean, **{row.label: row for row in agent.tiers}}
    assert {e.task_id: e.value for e in entries} == {
        name: round(100 * row.accuracy.estimate, 2) for name, row in wanted.items()
    }
    assert {e.dataset_id for e in entries} == {"acme/toolshift-quick"}
    assert {e.source_url for e in entries} == {"https://example.org/traces"}
    assert "drop from clean 100.0 points" in entries[1].notes


def test_a_benchmark_must_be_named(cli: Run, tmp_path: Path) -> None:
    run = run_into(tmp_path / "run", "oracle", tasks=1, shifts=("clean",))
    words = ("report", run, "--no-html", "--hf-eval-results", tmp_path / "out")
    code, _, err = cli(*words)
    assert code == 2
    assert "--hf-dataset OWNER/NAME" in err
    code, _, err = cli(*words, "--hf-dataset", "toolshift")
    assert code == 2
    assert "OWNER/NAME" in err

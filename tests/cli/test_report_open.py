"""`toolshift report --open` says what it cannot do, and stops at Ctrl-C."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import toolshift
from toolshift.cli.report import report
from toolshift.core.errors import UsageError


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "first"
    agents = ["memorises_names", "oracle"]
    toolshift.evaluate(agents, shifts=["identity_erasure:2"], tasks=4, out=folder)
    return folder


def test_what_cannot_be_shown_is_explained(run: Path) -> None:
    with pytest.raises(UsageError, match="--port must be from 0"):
        report.main([str(run), "--open", "--port", "70000"], standalone_mode=False)
    with pytest.raises(UsageError, match="contains no run"):
        report.main([str(run.parent), "--open", "--no-browser"], standalone_mode=False)


def test_ctrl_c_stops_it(run: Path) -> None:
    words = [sys.executable, "-u", "-m", "toolshift", "report", str(run), "--open", "--no-browser"]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True) as it:
        assert it.stdout is not None
        said = it.stdout.readline()
        assert "http://127.0.0.1:" in said
        it.send_signal(signal.SIGINT)
        _, errors = it.communicate(timeout=30)
    assert it.returncode == 0
    assert "Stopped." in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--port", "0"), "--port works only with --open"),
        (("--no-browser",), "--no-browser works only with --open"),
        (("--open", "--json"), "--json cannot be used with --open"),
        (("--open", "--site", "x"), "--site cannot be used with --open"),
        (("--site", "x", "--html", "y.html"), "--html cannot be used with --site"),
        (("--site", "x", "--agent", "oracle"), "--agent cannot be used with --site"),
        (("--fail-on-loss",), "--fail-on-loss works only with a folder of days"),
    ],
    ids=lambda given: given[0],
)
def test_what_does_not_go_together_is_refused(run: Path, words: tuple[str, ...], said: str) -> None:
    before = set(run.rglob("*"))
    with pytest.raises(UsageError, match=said):
        report.main([str(run), *words], standalone_mode=False)
    assert set(run.rglob("*")) == before

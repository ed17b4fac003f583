"""Where nothing was measured no command ends as if all were well."""

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace
from running import Run

from toolshift.runs.run_folder import Record, RunFolder

AGENTS = """
from toolshift import Reply

def down(messages, tools):
    return Reply(failure="HTTP 429: rate limit")
"""


@pytest.fixture
def runs(toolshift: Run) -> Run:
    """Two run folders of the same scenes: one of the oracle, one of an agent that is down."""
    Path("gone.py").write_text(AGENTS)
    scope = ("--world", "poi", "--tasks", "2", "--shift", "redirect:2", "--no-placebo")
    assert toolshift("run", *scope, "--agent", "oracle", "--out", "base")[0] == 0
    code, _, said = toolshift("run", *scope, "--agent", "gone:down", "--out", "down")
    assert (code, "Nothing was measured for gone:down" in said) == (1, True)
    return toolshift


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("report", "down", "--no-html"), 4, "Nothing was measured for gone:down"),
        (("report", "down", "--json"), 4, "Nothing was measured for gone:down"),
        (("report", "base", "down", "--no-html"), 4, "Nothing was measured for gone:down"),
        (("report", "base", "--no-html"), 0, ""),
        (("compare", "base", "down"), 4, "Nothing was compared"),
        (("compare", "down", "base"), 4, "Nothing was compared"),
        (("compare", "down", "down", "--json"), 4, "Nothing was compared"),
        (("compare", "base", "base"), 0, ""),
        (("gate", "down", "--baseline", "base", "--margin", "5"), 4, ""),
        (("gate", "base", "--baseline", "down", "--margin", "5"), 4, ""),
        (("gate", "down", "--baseline", "down", "--margin", "5"), 4, ""),
    ],
)
def test_the_exit_code_says_so(words: tuple[str, ...], code: int, sentence: str, runs: Run) -> None:
    found, _, said = runs(*words)
    assert found == code
    assert sentence in said


def test_junit_has_errors_and_no_skip(runs: Run) -> None:
    words = ("gate", "down", "--baseline", "base", "--margin", "5", "--junit", "gate.xml")
    assert runs(*words)[0] == 4
    tree = ElementTree.fromstring(Path("gate.xml").read_text())
    cases = list(tree.iter("testcase"))
    assert cases
    assert all(case.find("error") is not None for case in cases)
    assert not list(tree.iter("skipped"))


def make_void(path: str, every: int = 1) -> None:
    """Makes each so many-th episode under a shift one that its endpoint has ended."""
    folder = RunFolder.read(Path(path))
    seen = 0

    def void(record: Record) -> Record:
        nonlocal seen
        cell = folder.cell(record)
        if not cell.shifts or cell.shifts[0].shift.startswith("placebo"):
            return record
        seen += 1
        if seen % every:
            return record
        grade = replace(record.grade, passed=False, void=True, cause="infrastructure")
        return replace(record, end="infrastructure", grade=grade)

    folder.rewrite([void(record) for record in folder.records()])


@pytest.mark.parametrize("tasks", ["8", "48"])
@pytest.mark.parametrize("design", ["fixed", "sequential"])
def test_a_shift_without_a_verdict_is_not_without_effect(
    tasks: str, design: str, toolshift: Run
) -> None:
    scope = ("--world", "poi", "--tasks", tasks, "--shift", "redirect:2", "--agent", "oracle")
    assert toolshift("run", *scope, "--design", design, "--out", "run")[0] == 0
    make_void("run")
    code, said, wrong = toolshift("report", "run", "--details", "--markdown", "report.md")
    said = " ".join(said.split())
    assert code == 4
    assert "Nothing was measured for oracle under redirect" in wrong
    assert "Not measured under" in said
    for healthy in ("makes a significant difference", "No tier differs", "No change was"):
        assert healthy not in said
    written = Path("report.md").read_text()
    assert "**No significant loss.**" not in written
    assert "no clean score" not in written


def test_scenes_of_a_shift_without_a_verdict_are_said(toolshift: Run) -> None:
    for tasks in ("4", "48"):
        scope = ("--world", "poi", "--tasks", tasks, "--shift", "redirect:2", "--agent", "oracle")
        assert toolshift("run", *scope, "--out", f"run{tasks}")[0] == 0
        make_void(f"run{tasks}", every=2)
    said = " ".join(toolshift("report", "run48", "--no-html")[1].split())
    assert "Under redirect, 24 of 48 episodes have no verdict (24 infrastructure)." in said
    code, said, _ = toolshift("report", "run4", "--no-html")
    assert code == 0
    assert "2 of them have no verdict under some change." in " ".join(said.split())


def test_a_run_that_asks_nothing_is_no_success(toolshift: Run) -> None:
    """So few tasks could not decide, whatever came of them."""
    scope = ("--world", "poi", "--tasks", "2", "--shift", "redirect:2", "--agent", "oracle")
    code, _, wrong = toolshift("run", *scope, "--design", "sequential", "--out", "run")
    assert (code, "Nothing was measured: no episode was run" in wrong) == (1, True)


@pytest.mark.parametrize("more", [(), ("--json",), ("--nothing-lost",)])
def test_a_reader_that_is_gone_is_no_fail(more: tuple[str, ...], runs: Run) -> None:
    how = more if "--nothing-lost" in more else ("--margin", "50", *more)
    words = [sys.executable, "-m", "toolshift", "gate", "base", "--baseline", "base", *how]
    reads, writes = os.pipe()
    os.close(reads)
    with os.fdopen(writes, "wb") as stdout:
        ended = subprocess.run(words, stdout=stdout, stderr=subprocess.PIPE, check=False)
    assert ended.returncode == 141, ended.stderr

"""The summary for pull requests: what it says, and that names cannot break out of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from surfing import run_into

import toolshift
from toolshift.api import report_of
from toolshift.measure.diagnosis import percent, points
from toolshift.measure.report import Report
from toolshift.report.markdown import as_markdown, plain
from toolshift.runs.run_folder import RunFolder


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    folder = tmp_path_factory.mktemp("run") / "run"
    run_into(folder, "memorises_names", tasks=8)
    return report_of(RunFolder.read(folder))


def test_it_begins_with_what_is_wrong(report: Report) -> None:
    lines = as_markdown([report]).splitlines()
    first, estimate = (line for line in lines if line.startswith("**"))
    assert first == (
        "**Solves 19 of 19 unchanged tasks; 8 of them fail under some change: most often, "
        "it calls names that no longer exist.**"
    )
    assert estimate == (
        "**memorises\\_names solves 100% of clean tasks and 0% once tools get names without "
        "meaning: it calls names that no longer exist.**"
    )


def test_the_table_has_the_figures_of_the_report(report: Report) -> None:
    lines = as_markdown([report]).splitlines()
    for row in report.agents[0].tiers:
        cells = next(line for line in lines if line.startswith(f"| {row.label} |")).split(" | ")
        assert cells[1:3] == [percent(row.clean), percent(row.accuracy)]
        assert cells[3] == points(row.drop).removesuffix(" points")
        assert cells[4].rstrip(" |") == ("**loses**" if row.significant else "not significant")
    assert any(line.startswith("> **Breaks under shift.** Episodes ") for line in lines)
    assert sum(line.startswith("- ") for line in lines) == 4  # the first two: what to do


def test_a_sound_agent_and_a_hopeless_one() -> None:
    report = toolshift.evaluate(["oracle", "always_refuses"], tasks=4, shifts=("redirect",))
    text = as_markdown([report])
    assert "> **No significant loss.**" in text
    assert "> **Undefined: clean score under 50%.**" in text
    assert "| undefined: clean score under 50%" in text
    assert text.count("### ") == 2


def test_names_stay_names() -> None:
    assert plain("a_b*c|d<e>[f](g)") == r"a\_b\*c\|d\<e\>\[f\](g)"
    assert "@team" not in plain("@team")
    assert "\n" not in plain("a\n## b")


def test_nothing_run(tmp_path: Path) -> None:
    empty = Report("quick", "0" * 16, ["poi"], 0, 1, [0], "dev", 200, [], [])
    assert "No episode has been run." in as_markdown([empty])

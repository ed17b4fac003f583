"""Days of one agent: anchors are paired with the first, and a loss is told."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from math import isnan
from pathlib import Path
from typing import Any

import pytest

import toolshift
from toolshift.core.errors import UsageError
from toolshift.episode.grade import AT_WILL
from toolshift.measure.trend import Trend, has_lost, make_trend, read_days, sentence_of
from toolshift.report.html.trend import make_page, write_trend


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first day of an agent that passes everything."""
    folder = tmp_path_factory.mktemp("drift")
    run = {"worlds": ["poi"], "shifts": ["identity_erasure:2"], "tasks": 8, "placebo": False}
    toolshift.evaluate("oracle", **run, out=folder / "2026-01-05" / "anchor")
    return folder


def another_day(folder: Path, day: str, change: Callable[[int, Any], None]) -> None:
    """The first day again, with each episode changed."""
    path = folder / day / "anchor"
    shutil.copytree(folder / "2026-01-05" / "anchor", path)
    rows = [json.loads(line) for line in (path / "episodes.jsonl").read_text().splitlines()]
    for number, row in enumerate(rows):
        change(number, row["grade"])
    (path / "episodes.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def fails(number: int, grade: dict[str, Any]) -> None:
    grade["passed"] = False


def fails_once(number: int, grade: dict[str, Any]) -> None:
    grade["passed"] = number > 0


@pytest.fixture
def folder(first: Path, tmp_path: Path) -> Path:
    shutil.copytree(first, tmp_path / "drift")
    return tmp_path / "drift"


def trend_of(folder: Path) -> Trend:
    return make_trend(read_days(folder))


def test_one_day_is_a_beginning(folder: Path) -> None:
    trend = trend_of(folder)
    (point,) = trend.points
    assert (point.day, point.arm, point.clean.estimate) == ("2026-01-05", "anchor", 1.0)
    assert point.change is None
    assert "nothing is compared yet" in sentence_of(trend, "oracle")
    assert has_lost(trend) == []


def test_a_loss_on_the_same_tasks_is_told_and_a_slip_is_not(folder: Path) -> None:
    another_day(folder, "2026-01-12", fails_once)
    another_day(folder, "2026-02-02", fails)
    trend = trend_of(folder)
    begun, slip, loss = trend.of("oracle", "anchor")
    assert [point.since for point in (begun, slip, loss)] == ["", "2026-01-05", "2026-01-05"]
    assert slip.change is not None
    assert slip.change.estimate < 0
    assert not slip.significant
    assert loss.change is not None
    assert loss.change.estimate == -1.0
    assert loss.significant
    assert has_lost(trend) == ["oracle"]
    assert "-100 points" in sentence_of(trend, "oracle")


def test_other_anchors_begin_anew(folder: Path) -> None:
    run = {"worlds": ["poi"], "shifts": ["clean"], "tasks": 3, "placebo": False}
    toolshift.evaluate("oracle", **run, out=folder / "2026-01-12" / "anchor")
    trend = trend_of(folder)
    assert has_lost(trend) == []
    assert trend.points[-1].change is None
    assert "starts again" in trend.points[-1].note
    assert make_page(trend).count('<polyline class="clean" points="') == 3  # two pieces, one legend


def test_void_episodes_are_not_counted(folder: Path) -> None:
    another_day(folder, "2026-01-12", lambda number, grade: grade.update(void=True))
    point = trend_of(folder).points[-1]
    assert (point.episodes, point.void) == (0, trend_of(folder).points[0].episodes)
    assert isnan(point.clean.estimate)
    assert has_lost(trend_of(folder)) == []


@pytest.mark.parametrize("cause", AT_WILL)
def test_a_void_that_the_agent_can_bring_about_is_a_loss(folder: Path, cause: str) -> None:
    def ends_so(number: int, grade: dict[str, Any]) -> None:
        grade.update(void=True, passed=False, cause=cause)

    another_day(folder, "2026-01-12", ends_so)
    point = trend_of(folder).points[-1]
    assert (point.clean.estimate, point.void) == (0, 0)
    assert has_lost(trend_of(folder))


def test_a_day_of_void_episodes_is_no_beginning_and_no_end(folder: Path) -> None:
    def void(number: int, grade: dict[str, Any]) -> None:
        grade.update(void=True, passed=False)

    another_day(folder, "2026-01-04", void)
    another_day(folder, "2026-01-12", fails)
    another_day(folder, "2026-01-13", void)
    trend = trend_of(folder)
    assert [point.since for point in trend.points] == ["", "", "2026-01-05", ""]
    assert has_lost(trend) == ["oracle"]
    said = sentence_of(trend, "oracle")
    assert "from 2026-01-05 to 2026-01-12: significant. All 16 episodes of 2026-01-13" in said
    for day in ("2026-01-05", "2026-01-12"):
        shutil.rmtree(folder / day)
    assert "first day" not in sentence_of(trend_of(folder), "oracle")


def test_the_page_stands_alone_and_has_every_figure(folder: Path, tmp_path: Path) -> None:
    another_day(folder, "2026-02-02", fails)
    shutil.copytree(folder / "2026-01-05" / "anchor", folder / "2026-02-02" / "fresh")
    write_trend(trend_of(folder), tmp_path / "site" / "trend.html")
    page = (tmp_path / "site" / "trend.html").read_text()
    assert "<script" not in page
    assert "http://" not in page.replace("http-equiv", "")
    assert re.search(r"<h1>.*oracle.* has become worse on the same tasks</h1>", page)
    assert "2026-02-02, shifted, anchors: 0%" in page
    assert "2026-02-02, clean, fresh: 100%" in page
    assert json.loads((tmp_path / "site" / "trend.json").read_text())["days"][-1] == "2026-02-02"


def test_a_folder_without_days_is_said(tmp_path: Path) -> None:
    (tmp_path / "2026-13-01" / "anchor").mkdir(parents=True)
    with pytest.raises(UsageError, match="has no run"):
        read_days(tmp_path)

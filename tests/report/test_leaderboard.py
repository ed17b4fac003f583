"""The leaderboard: figures of the reports, what can be compared, and names that stay names."""

from __future__ import annotations

import json
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from browser import chromium
from running import Run, runner
from surfing import Surfer, run_into

from toolshift.cli import main

HOSTILE = '<script>alert(1)</script>"\u202e'


class Page(HTMLParser):
    """Every figure with its place, the text of each row of a table, and the elements."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.figures: dict[str, Any] = {}
        self.rows: list[str] = []
        self.elements: set[str] = set()
        self._in_row = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        given = dict(attrs)
        if tag == "data":
            self.figures[str(given["data-at"])] = json.loads(str(given["value"]))
        if tag == "tr":
            self.rows.append("")

    def handle_data(self, data: str) -> None:
        if self.rows:
            self.rows[-1] += f" {data.strip()}"


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return runner(capsys, monkeypatch)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    base = tmp_path_factory.mktemp("runs")
    shifts = ("identity_erasure", "merged_tools")
    one = run_into(base / "one", "memorises_names", "always_refuses", tasks=12, shifts=shifts)
    two = run_into(base / "two", "oracle", tasks=12, shifts=shifts)
    then = ("identity_erasure", "merged_tools@1")
    return [one, two, run_into(base / "then", "oracle", tasks=12, shifts=then)]


@pytest.fixture(scope="module")
def board(runs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("board") / "site"
    with pytest.MonkeyPatch.context() as patch:
        words = ["toolshift", "report", *map(str, runs), "--site", str(out)]
        patch.setattr("sys.argv", words)
        with pytest.raises(SystemExit) as ended:
            main()
    assert not ended.value.code
    return out


def test_every_figure_is_that_of_the_data(board: Path) -> None:
    data = json.loads((board / "leaderboard.json").read_text("utf-8"))
    page = Page((board / "index.html").read_text("utf-8"))
    assert len(page.figures) > 30
    for at, value in page.figures.items():
        found: Any = data if at.startswith("/comparable") else data["reports"]
        for part in at.strip("/").split("/"):
            found = found[int(part) if isinstance(found, list) else part]
        if isinstance(found, dict):
            found = [found["estimate"], found["low"], found["high"]]
        assert value == found or (isinstance(found, list) and value[0] == found[0] is None), at


def test_agents_are_in_order_and_losses_are_named(board: Path) -> None:
    page = Page((board / "index.html").read_text("utf-8"))
    first = [row.split()[0] for row in page.rows if row.split()[1:2] in (["one"], ["two"])]
    assert first == ["oracle", "memorises_names", "always_refuses"]
    memorises = next(row for row in page.rows if row.startswith(" memorises_names one"))
    assert "loses" in memorises
    oracle = next(row for row in page.rows if row.startswith(" oracle two"))
    assert "loses" not in oracle
    refuses = next(row for row in page.rows if row.startswith(" always_refuses one"))
    assert "undefined: clean score under 50%" in refuses


def test_what_cannot_be_compared_is_said(board: Path, runs: list[Path], cli: Run) -> None:
    page = Page((board / "index.html").read_text("utf-8"))
    (row,) = (row for row in page.rows if "merged_tools: version 2, and 1" in row)
    assert "plan 1" in row
    assert "plan 2" in row
    assert any(row.split()[:4] == ["merged_tools", "differs", "2", "1"] for row in page.rows)
    assert any(row.split()[:3] == ["identity_erasure", "1", "1"] for row in page.rows)
    code, out, _ = cli("report", *runs, "--site", board, "--json")
    assert code == 0
    assert [g["runs"] for g in json.loads(out)["comparable"]["groups"]] == [[0, 1], [2]]


def test_names_stay_names_and_nothing_is_loaded(cli: Run, runs: list[Path], tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(runs[1], run)
    for name in ("manifest.json", "episodes.jsonl"):
        text = (run / name).read_text("utf-8")
        (run / name).write_text(text.replace('"oracle"', json.dumps(HOSTILE)), "utf-8")
    assert cli("report", run, "--site", tmp_path / "site")[0] == 0
    text = (tmp_path / "site/index.html").read_text("utf-8")
    page = Page(text)
    assert "script" not in page.elements
    assert "alert(1)&lt;/script&gt;" in text
    assert "\u202e" not in text
    assert "default-src &#39;none&#39;" in text or "default-src 'none'" in text
    assert not page.elements & {"img", "iframe", "object"}


def test_runs_that_are_none(cli: Run, tmp_path: Path) -> None:
    code, _, err = cli("report", tmp_path, "--site", tmp_path / "site")
    assert code == 2
    assert "contains no run" in err
    assert not (tmp_path / "site").exists()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_a_browser(board: Path, scheme: str) -> None:
    with chromium() as browser:
        size = {"width": 390, "height": 800}
        page = browser.new_page(viewport=size, color_scheme=scheme)
        complaints: list[str] = []
        page.on("console", lambda said: complaints.append(said.text))
        page.goto((board / "index.html").as_uri())
        assert page.locator("table").count() >= 4
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert Surfer(browser).faults(page) == []
        assert complaints == []


def test_a_long_name_leaves_room_for_the_figures(
    cli: Run, runs: list[Path], tmp_path: Path
) -> None:
    run = tmp_path / ("a_long_name_of_a_run_" * 9)
    shutil.copytree(runs[0], run)
    assert cli("report", run, runs[0], "--site", tmp_path / "site")[0] == 0
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1200, "height": 800})
        page.goto((tmp_path / "site/index.html").as_uri())
        for place in range(2):
            wrap = page.locator(".wrap").nth(place)
            assert wrap.evaluate("each => each.scrollWidth - each.clientWidth") == 0

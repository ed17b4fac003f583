"""The first screen by its properties: lines, widths, words, and that it says what the grid does."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
from browser import chromium
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.cells import cell_len

import toolshift
from toolshift.core.command_line import PLUGINS
from toolshift.core.terminal import wrapped
from toolshift.measure.grid import MAX_TASKS, CauseCount, Grid, GridRow, Spot
from toolshift.report.first_screen import (
    MAX_LINES,
    OTHER,
    first_screen,
    headline,
    key_of_causes,
    mark,
    marks_in_words,
    rest_in_words,
    sentence,
    shown_rows,
)
from toolshift.report.html.page import make_page
from toolshift.report.markdown import as_markdown
from toolshift.runs.run_folder import RunFolder
from toolshift.worlds.names import OWN

AGENTS = ("memorises_names", "oracle", "gives_up", "never_refuses")
SHIFTS = ("identity_erasure", "redirect", "format_drift", "merged_tools")
STATISTICS = re.compile(r"significan|noise floor|placebo|\[[-+]\d|power \d")


@pytest.fixture(scope="module")
def reports() -> dict[tuple[int, int], toolshift.Report]:
    asked = {"shifts": SHIFTS, "placebo": False}
    return {
        (tasks, agents): toolshift.evaluate(list(AGENTS[:agents]), tasks=tasks, **asked)
        for tasks, agents in ((1, 1), (6, 1), (6, 2), (6, 4), (30, 1), (30, 4))
    }


def screen(report: toolshift.Report, width: int, run: Path | None = None) -> list[str]:
    return [line.plain for line in first_screen(report, report.agents, width, run)]


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("size", [(1, 1), (6, 1), (6, 2), (6, 4), (30, 1), (30, 4)])
def test_it_fits(
    reports: dict[tuple[int, int], toolshift.Report], size: tuple[int, int], width: int
) -> None:
    lines = screen(reports[size], width)
    assert max(map(len, lines)) <= width
    if size[0] <= 6:
        assert len(lines) <= MAX_LINES + 5 * (size[1] > 2)
    text = "\n".join(lines)
    assert not STATISTICS.search(text)
    at = 0
    for part in ("solves", "unchanged task", "unchanged", "Fix first", "How sure", "Next:"):
        at = text.index(part, at) + len(part)
    assert "\x1b" not in text
    for word in ("perception", "TER", "AES", "ATCL"):
        assert word not in text


def test_each_failure_has_a_letter_whose_words_stand_below(
    reports: dict[tuple[int, int], toolshift.Report],
) -> None:
    report = reports[6, 1]
    grid = report.agents[0].grid
    assert grid is not None
    lines = screen(report, 80)
    row = next(line for line in lines if line.startswith("tools get names without meaning"))
    spots = next(r for r in grid.rows if r.label == "identity_erasure").spots
    assert row.count("A") == sum(spot.state == "fails" for spot in spots) == 6
    assert "A  fails: it calls names that no longer exist" in lines
    assert any(f"toolshift trace RUN {grid.losses[0].episode}" in line for line in lines)


def test_every_command_names_the_plugin_as_it_was_named(
    reports: dict[tuple[int, int], toolshift.Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PLUGINS, "../shifts/mine.py")
    text = "\n".join(screen(reports[6, 1], 200, Path("runs/new")))
    commands = re.findall(r"toolshift .*? (?:trace|report) runs/new", text)
    assert len(commands) == 3
    assert all(line.startswith("toolshift --plugin ../shifts/mine.py ") for line in commands)


LONG = "an_agent_with_a_name_that_is_longer_than_a_line_of_a_card"
WIDE = ("späte-Lieferung", "注文の状態を確認する", "рефунд", "🚚-late", "t", "a-name-of-one-task")


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("agents", [1, 2, 4])
def test_names_in_wide_letters_take_the_columns_that_they_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agents: int, width: int
) -> None:
    write_wide(tmp_path, monkeypatch)
    report = toolshift.evaluate(
        list(AGENTS[:agents]), worlds=["wide.yaml"], shifts=SHIFTS[:2], placebo=False
    )
    lines = screen(report, width)
    assert max(map(cell_len, lines)) <= width
    text = "\n".join(lines)
    assert all(name in text for name in WIDE)
    assert len(lines) <= MAX_LINES + 5 * (agents > 2)


OUTSIDE = """() => [...document.querySelectorAll("main *")]
  .filter(each => !each.closest(".wrap, .sr, svg, details:not([open])"))
  .filter(each => each.getBoundingClientRect().right > innerWidth)
  .map(each => `${each.tagName} ${each.className} ${each.textContent.slice(0, 40)}`)"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_a_page_shows_long_names_and_all_tasks_of_a_small_suite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, width: int, scheme: str
) -> None:
    write_wide(tmp_path, monkeypatch)
    (tmp_path / "wide_agents.py").write_text(
        f"def {LONG}(messages, tools):\n    return 'It cannot be done.'\n"
    )
    toolshift.evaluate(
        [AGENTS[0], f"wide_agents:{LONG}"],
        worlds=["wide.yaml"],
        shifts=SHIFTS[:2],
        out=tmp_path / "run",
    )
    file = tmp_path / "page.html"
    file.write_text(make_page([RunFolder.read(tmp_path / "run")]), encoding="utf-8")
    with chromium() as browser:
        size = {"width": width, "height": 900}
        page = browser.new_page(viewport=size, color_scheme=scheme)
        page.goto(file.as_uri())
        page.wait_for_selector(".grid")
        assert page.evaluate(OUTSIDE) == []
        grid = page.locator(".wrap:has(.grid)").first
        assert grid.evaluate("each => each.scrollWidth - each.clientWidth") == 0


def write_wide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six tasks with names in letters of several widths, in the working directory."""
    tasks = "".join(
        f"  - {{id: {name}, ask: Look at O-{at}., calls: [{{name: look, arguments: "
        f"{{order: O-{at}}}}}], check: {{answer: S-{at}}}}}\n"
        for at, name in enumerate(WIDE, 11)
    )
    (tmp_path / "wide_tools.py").write_text(
        "def look(order: str) -> dict:\n    return {'is': order.replace('O', 'S')}\n"
    )
    file = f"world: wide\ntools: {{python: wide_tools}}\ntasks:\n{tasks}"
    (tmp_path / "wide.yaml").write_text(file, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(OWN, "")


@given(st.lists(st.text("aé注🚚", min_size=1, max_size=12), min_size=1), st.integers(26, 60))
def test_lines_are_wrapped_by_columns_and_lose_no_word(words: list[str], width: int) -> None:
    lines = wrapped(" ".join(words), width, "  ")
    assert max(map(cell_len, lines)) <= width
    assert " ".join(lines).split() == words
    for line, after in pairwise(lines):
        assert cell_len(f"{line} {after.split()[0]}") > width


@pytest.mark.slow
@pytest.mark.parametrize("agents", [1, 4])
def test_many_tasks_are_estimates_by_what_a_tier_asks(agents: int) -> None:
    report = toolshift.evaluate(list(AGENTS[:agents]), tasks=500, shifts=SHIFTS[:2])
    assert report.agents[0].grid is None
    for width in (80, 120):
        lines = screen(report, width)
        assert max(map(len, lines)) <= width
        text = "\n".join(lines)
        assert "reads its tools and requests" in text
        assert "the smallest detectable loss of a tier" in " ".join(text.split())


def test_the_same_order_on_the_page_in_markdown_and_in_json(tmp_path: Path) -> None:
    report = toolshift.evaluate(list(AGENTS[:2]), tasks=6, shifts=SHIFTS, out=tmp_path / "run")
    texts = [
        re.sub("<[^>]*>", "", make_page([RunFolder.read(tmp_path / "run")])),
        as_markdown([report]),
    ]
    parts = (
        "olves 6 of 6 unchanged tasks",
        "unchanged",
        "Fix first",
        "How sure",
        "95% intervals",
    )
    for text in texts:
        at = 0
        for part in parts[:4]:
            at = text.index(part, at) + len(part)
    data = report.to_dict()["agents"][0]["grid"]
    assert data["rows"][0]["label"] == "clean"
    assert data["losses"][0]["cause"] == "memorised_name"
    stored = toolshift.read_run(tmp_path / "run").report
    assert stored.agents[0].grid == report.agents[0].grid


def varying(passed: int, scored: int, void: int = 0) -> Grid:
    """A grid of two tasks, one of which passes so many of its trials under a change."""
    sound, void_spot = Spot("passes", scored, scored), Spot("void", 0, 0, 1, "infrastructure", "v1")
    state = "passes" if passed == scored else "varies" if passed else "fails"
    spot = Spot(state, passed, scored, 0, "budget" if passed < scored else "", "e1")
    lost = int(passed < scored)
    losses = [CauseCount("budget", scored - passed, "redirect", "e1")] * lost
    voids = [CauseCount("infrastructure", void, "redirect", "v1")] * bool(void)
    changed = [spot, void_spot if void else sound]
    rows = [GridRow("clean", "none", [sound, sound], 0)]
    rows.append(GridRow("redirect", "interaction", changed, lost))
    return Grid(["a", "b"], rows, 2, lost, passed, scored, losses, voids)


def test_where_the_agent_varies_the_cell_is_a_rate_and_a_void_one_is_named(
    reports: dict[tuple[int, int], toolshift.Report],
) -> None:
    report = reports[6, 1]
    agent = replace(report.agents[0], grid=varying(2, 5, void=1))
    lines = [line.plain for line in first_screen(report, [agent], 80, Path("runs/x"))]
    text = " ".join(" ".join(lines).split())
    assert re.search(r"tools point to a successor\s+2/5 A\s+\?", "\n".join(lines))
    assert "2/5: passes 2 of 5" in text
    assert "? no verdict" in text
    assert "1 episode has no verdict (infrastructure): toolshift trace runs/x v1" in text
    assert sentence(agent).startswith("Solves 2 of 2 unchanged tasks; 1 of them fails under")
    sound = replace(agent, grid=varying(5, 5))
    assert (
        sentence(sound)
        == "Solves 2 of 2 unchanged tasks, and loses none under any change that was tried."
    )
    assert headline([agent, sound]) == "1 of 2 agents fails tasks that it solves unchanged"


def test_more_tasks_than_can_be_looked_at_have_no_grid() -> None:
    few = toolshift.evaluate("oracle", tasks=MAX_TASKS, shifts=["redirect"], placebo=False)
    many = toolshift.evaluate("oracle", tasks=MAX_TASKS + 3, shifts=["redirect"], placebo=False)
    assert few.agents[0].grid is not None
    assert many.agents[0].grid is None


def test_letters_stand_for_the_causes_of_the_rows_that_are_shown() -> None:
    rows = [
        GridRow(f"shift_{at}", "interaction", [Spot("fails", 0, 1, 0, cause, "e1")], 1)
        for at, cause in enumerate(["bad_arguments", *["no_recovery"] * 9])
    ]
    grid = Grid(["t"], rows, 1, 10, 0, 10, [], [])
    assert key_of_causes([grid], 1)["bad_arguments"] == OTHER
    assert key_of_causes([grid], 1, ["shift_0"]) == {"bad_arguments": "A"}


def test_what_was_not_run_yet_is_no_change_that_applies_to_no_task() -> None:
    ok, waits, barred = (Spot("passes", 1, 1), Spot("not_run"), Spot("not_applicable"))
    rows = [
        GridRow("clean", "none", [ok, waits], 0),
        GridRow("redirect", "interaction", [waits, waits], 0),
        GridRow("semantic_rename", "perception", [waits, barred], 0),
        GridRow("truncation", "interaction", [barred, barred], 0),
    ]
    grid = Grid(["one", "two"], rows, 1, 0, 0, 0, [], [])
    chosen = shown_rows([grid], 9)
    assert rest_in_words(chosen) == ["1 change applies to no task", "2 changes not run yet"]
    assert marks_in_words([grid], chosen.labels) == ["_ not run yet"]
    assert mark(waits, {}) == "_"


def test_what_is_broken_is_no_change_that_applies_to_no_task() -> None:
    ok, barred = (Spot("passes", 1, 1), Spot("not_applicable"))
    rows = [
        GridRow("clean", "none", [ok], 0),
        GridRow("mine", "interaction", [barred], 0, broken=True),
        GridRow("truncation", "interaction", [barred], 0),
    ]
    chosen = shown_rows([Grid(["one"], rows, 1, 0, 0, 0, [], [])], 9)
    assert rest_in_words(chosen) == ["1 change applies to no task", "1 change is broken"]

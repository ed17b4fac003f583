"""See it happen: the clean and the shifted episode side by side, in a real browser."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import chromium, open_page, wait_for
from surfing import Surfer

import toolshift
from toolshift.core.errors import UsageError
from toolshift.core.tool import JSON
from toolshift.report.html.episodes import LONGEST, fragment
from toolshift.report.html.episodes.catalog import Catalog
from toolshift.report.html.page import write_page
from toolshift.report.html.serve import frame
from toolshift.runs.run_folder import RunFolder

SHIFTS = ("identity_erasure:2", "redirect:2", "fatal_error:2", "format_drift:2")
EVIL = (
    "</script><script>window.hacked = 1</script><img src=x onerror=window.hacked=1> "
    "\x1b[31mred\x1b[0m \u202eevil\u202c שלום \x00 \u200b end"
)
PHONE = {"width": 390, "height": 800}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "first"
    agents = ["memorises_names", "never_refuses", "oracle"]
    toolshift.evaluate(agents, shifts=SHIFTS, tasks=6, out=folder)
    return folder


@pytest.fixture(scope="module")
def site(run: Path) -> Path:
    page = run.with_name("page.html")
    write_page([RunFolder.read(run)], page)
    return page


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def opened(browser: Any, site: Path) -> Iterator[tuple[Any, list[str]]]:
    page, wrong = open_page(browser, site.as_uri())
    yield page, wrong
    page.close()


@pytest.fixture
def page(opened: tuple[Any, list[str]]) -> Iterator[Any]:
    page, wrong = opened
    page.click("#ep-form button[type=reset]")
    wait_for(page.locator("#ep-list a").first, "failed")
    yield page
    assert wrong == []


def find(run: Path, agent: str, stack: str, passed: bool = False) -> str:
    """The first episode of an agent under a stack."""
    folder = RunFolder.read(run)
    return next(
        record.episode
        for record in folder.records()
        if record.agent == agent
        and folder.cell(record).stack == stack
        and record.grade.passed == passed
    )


# -- side by side --------------------------------------------------------------------------------


def test_a_link_opens_the_known_episode_side_by_side(browser: Any, site: Path, run: Path) -> None:
    episode = find(run, "memorises_names", "identity_erasure:2")
    page, wrong = open_page(browser, f"{site.as_uri()}#episode-0-{episode}")
    title = page.locator("#ep-title")
    assert title.inner_text() == "memorises_names on poi/listing/0, identity erasure:2"
    first = page.locator(".ep-row").first
    assert "First divergence. The call fails here." in first.inner_text()
    assert "find_place" in first.locator(".ep-clean").inner_text()
    assert "failed: unknown_tool" in first.locator(".ep-shifted").inner_text()
    assert page.locator(".ep-guilty").count() == 1
    assert "by a remembered name" in first.locator(".ep-shifted .ep-cause").inner_text()
    # Both in one look, for the page may still be scrolling.
    boxes = first.evaluate(
        "row => [...row.querySelectorAll('.ep-clean .ep-step, .ep-shifted .ep-step')]"
        ".map(step => step.getBoundingClientRect()).map(box => [box.top, box.left])"
    )
    (top, left), (other_top, other_left) = boxes
    assert top == other_top
    assert left < other_left
    assert page.evaluate("document.activeElement.id") == "ep-title"
    assert wrong == []
    page.close()


def test_the_tools_that_differ_are_shown_and_the_others_named(page: Any, run: Path) -> None:
    page.goto(
        f"{page.url.partition('#')[0]}#episode-0-" + find(run, "oracle", "identity_erasure:2", True)
    )
    wait_for(page.locator("#ep-title"), "oracle")
    tools = page.locator(".ep-tools")
    assert tools.locator("summary").inner_text() == "Tools: 2 renamed; 10 the same"
    tools.locator("summary").click()
    assert tools.locator("del").all_inner_texts() == ["find_place", "get_details"]
    assert tools.locator("ins").count() == 2
    assert "get_route" in tools.locator(".ep-same").inner_text()
    assert "do the same throughout" in page.locator("#ep-steps").inner_text()


def test_the_words_that_a_shift_changed_are_marked(page: Any, run: Path) -> None:
    page.evaluate(f"location.hash = 'episode-0-{find(run, 'oracle', 'format_drift:2', True)}'")
    wait_for(page.locator("#ep-title"), "format")
    before = page.locator(".ep-clean .ep-back").first
    after = page.locator(".ep-shifted .ep-back").first
    assert before.locator("del").count() > 0
    kept = after.evaluate(
        "node => [...node.querySelectorAll('.ep-text')].map(n => n.textContent)[0]"
    )
    marked = "".join(after.locator("ins").all_text_contents())
    assert "PL-" in kept
    assert "PL-" not in marked


def test_the_columns_stack_on_a_phone(browser: Any, site: Path, run: Path) -> None:
    file = site.with_name("phone.html")
    file.write_text(frame([RunFolder.read(run)], 20))
    page, wrong = open_page(browser, file.as_uri(), viewport=PHONE, color_scheme="dark")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    row = page.locator(".ep-row").first
    clean, shifted = (row.locator(f".ep-{side}").bounding_box() for side in ("clean", "shifted"))
    assert clean["x"] == shifted["x"]
    assert clean["y"] < shifted["y"]
    assert row.locator(".ep-label").first.is_visible()
    assert wrong == []
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault(browser: Any, site: Path, run: Path, scheme: str) -> None:
    file = site.with_name("axe.html")
    file.write_text(frame([RunFolder.read(run)], 20))
    episode = find(run, "memorises_names", "identity_erasure:2")
    url = f"{file.as_uri()}#episode-0-{episode}"
    page, _ = open_page(browser, url, color_scheme=scheme)
    page.locator(".ep-tools summary").click()
    assert Surfer(browser).faults(page) == []
    page.close()


# -- finding an episode --------------------------------------------------------------------------


def test_filters_filter(page: Any, run: Path) -> None:
    records = list(RunFolder.read(run).records())
    count = page.locator("#ep-count")
    assert count.inner_text() == f"{len(records)} of {len(records)} episodes"
    page.select_option("#ep-agent", "never_refuses")
    page.select_option("#ep-outcome", "failed")
    mine = [r for r in records if r.agent == "never_refuses" and not r.grade.passed]
    assert count.inner_text() == f"{len(mine)} of {len(records)} episodes"
    items = page.locator("#ep-list a").all_inner_texts()
    assert len(items) == len(mine)
    assert all("fatal error" in item for item in items)
    for name, value in (("cause", "memorised name"), ("agent", "memorises_names")):
        page.select_option(f"#ep-{name}", value)
    page.select_option("#ep-shift", "identity_erasure")
    assert "forced" not in page.locator("#ep-list").inner_text()
    assert page.locator("#ep-list a").count() > 0
    page.select_option("#ep-tier", "interaction")
    assert page.locator("#ep-none").is_visible()
    page.click("#ep-form button[type=reset]")
    wait_for(count, f"{len(records)} of {len(records)} episodes")


def test_search_finds_ids_and_words_of_a_trace(page: Any, run: Path) -> None:
    episode = find(run, "never_refuses", "fatal_error:2")
    page.fill("#ep-search", episode)
    assert page.locator("#ep-list a").count() == 1
    page.fill("#ep-search", "find_place see_other redirect memorises")
    assert page.locator("#ep-list a").count() > 0
    texts = page.locator("#ep-list a").all_inner_texts()
    assert all("redirect" in text for text in texts)
    page.fill("#ep-search", "nothing is like this")
    assert page.locator("#ep-list a").count() == 0


def test_the_keyboard_walks_through_the_list(page: Any) -> None:
    keys = page.locator("#ep-list a").evaluate_all("links => links.map(link => link.dataset.key)")
    opened = page.locator("#ep-list a[aria-current]").get_attribute("data-key")
    start = keys.index(opened)
    page.focus(f"#ep-list a[data-key='{opened}']")
    for key, place in (("ArrowDown", 1), ("j", 2), ("k", 1), ("ArrowUp", 0), ("j", 1)):
        page.keyboard.press(key)
        here = keys[start + place]
        assert page.evaluate("document.activeElement.dataset.key") == here
        assert page.evaluate("location.hash") == f"#episode-{here}"
    assert page.locator("#ep-list a[aria-current]").count() == 1
    page.focus("#ep-search")
    page.keyboard.type("jj")
    assert page.input_value("#ep-search") == "jj"


def test_an_episode_that_is_not_kept_says_how_to_see_it(
    browser: Any, run: Path, site: Path
) -> None:
    small = site.with_name("small.html")
    small.write_text(frame([RunFolder.read(run)], 1))
    episode = find(run, "never_refuses", "fatal_error:2")
    page, wrong = open_page(browser, f"{small.as_uri()}#episode-0-{episode}")
    text = page.locator("#ep-episode").inner_text()
    assert f"toolshift trace first {episode}" in text
    assert "toolshift report --open first" in text
    assert "answered without evidence" in text
    page.evaluate("location.hash = 'episode-0-0123456789'")
    wait_for(page.locator("#ep-title"), "No such episode")
    assert wrong == []
    page.close()


# -- hostile texts -------------------------------------------------------------------------------


def test_hostile_texts_are_inert_and_readable(browser: Any, run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run <img src=x onerror=window.hacked=1>"
    shutil.copytree(run, folder)
    episode = find(run, "memorises_names", "identity_erasure:2")
    lines = (folder / "episodes.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    bad = next(record for record in records if record["episode"] == episode)
    step = bad["steps"][0]
    step.update(text=EVIL, said=EVIL, error=EVIL, arguments={EVIL: "A" * 1_000_000})
    long = {"kind": "call", "turn": 1, "name": EVIL, "arguments": EVIL, "text": "w " * 500_000}
    bad["steps"][1:1] = [long, {**long, "text": "\x1b" * 100_000}]
    (folder / "episodes.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    file = tmp_path / "page.html"
    write_page([RunFolder.read(folder)], file)
    assert file.stat().st_size < 2_500_000
    page, wrong = open_page(browser, f"{file.as_uri()}#episode-0-{episode}", viewport=PHONE)
    shown = page.locator("#ep-steps").inner_text()
    assert "<script>window.hacked = 1</script>" in shown
    assert "[ESC][31mred[ESC][0m [U+202E]evil[U+202C] שלום [NUL] [U+200B] end" in shown
    assert "Cut here at 4,000 of 1,000,000 characters" in shown
    assert not set("\x1b\x00\u202e\u200b") & set(page.locator("#episodes").inner_text())
    page.get_by_role("button", name="Show all 4,000 characters").first.click()
    longest = (
        "Math.max(...[...document.querySelectorAll('.ep-text')].map(n => n.textContent.length))"
    )
    assert page.evaluate(longest) >= LONGEST
    assert page.evaluate("window.hacked") is None
    assert page.locator("#episodes img, #episodes script").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert wrong == []
    page.close()


# -- what is kept --------------------------------------------------------------------------------


def test_every_way_to_fail_is_kept_before_any_twice(run: Path) -> None:
    folder = RunFolder.read(run)
    records = {f"0-{record.episode}": record for record in folder.records()}
    ways = {
        (record.agent, folder.cell(record).stack, record.grade.cause)
        for record in records.values()
        if not record.grade.passed
    }
    kept = fragment([folder], keep=len(ways)).data["traces"]
    failed = [records[key] for key in kept if not records[key].grade.passed]
    assert {(r.agent, folder.cell(r).stack, r.grade.cause) for r in failed} == ways
    assert len(failed) == len(ways)
    assert all(kept[key].get("clean") in kept for key in kept if folder.cell(records[key]).shifts)


def test_the_examples_of_the_report_are_kept(run: Path) -> None:
    folder = RunFolder.read(run)
    kept = fragment([folder], keep=40).data["traces"]
    report = json.loads((run / "report.json").read_text())
    named = {
        f"0-{episode}"
        for agent in report["agents"]
        for row in (*agent["tiers"], *agent["shifts"], *agent["severities"])
        for episode in row["examples"].values()
    }
    assert named
    assert named <= set(kept)


def test_the_index_is_small_and_whole(run: Path) -> None:
    folder = RunFolder.read(run)
    data = fragment([folder], keep=0).data
    episodes = [record.episode for record in folder.records()]
    assert data["ids"] == "".join(episodes)
    assert {len(column) for column in data["rows"]} == {len(episodes)}
    assert data["traces"] == {}
    size = len(JSON.encode([data["ids"], data["rows"]]))
    assert size / len(episodes) < 40  # 20,000 of them are under 0.8 MB


def test_a_scene_that_cannot_be_made_again_leaves_the_trace_readable(
    browser: Any, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changed(cell: Any) -> Any:
        raise UsageError("it is <b>another</b> task now")

    monkeypatch.setattr("toolshift.runs.own.build", changed)
    file = tmp_path / "page.html"
    file.write_text(frame([RunFolder.read(run)], 40))
    page, wrong = open_page(browser, file.as_uri())
    text = page.locator("#ep-steps").inner_text()
    assert "The tools cannot be shown: it is <b>another</b> task now" in text
    assert "First divergence" in text
    assert "find_place" in text
    assert wrong == []
    page.close()


def test_tasks_are_called_what_their_file_calls_them(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    world = Path(__file__).parents[2] / "examples" / "own_tools" / "tasks.yaml"
    toolshift.evaluate(
        ["oracle"], worlds=[str(world)], kinds=["status"], placebo=False, shifts=(), out=folder
    )
    names = [name for _, name in Catalog([RunFolder.read(folder)]).lists()["tasks"]]
    assert {"status-lamp", "total"} <= set(names)


def test_tasks_without_a_name_are_numbered(run: Path) -> None:
    names = [name for _, name in Catalog([RunFolder.read(run)]).lists()["tasks"]]
    assert all(name.isdigit() for name in names)

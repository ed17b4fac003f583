"""The page: its figures, its manners, and how it bears hostile runs. In a real browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pytest
from browser import chromium
from surfing import Surfer, run_into, written

from toolshift.api import report_of
from toolshift.core.calls import ToolCall
from toolshift.core.errors import UsageError
from toolshift.core.message import Reply
from toolshift.core.tool import JSON
from toolshift.measure.compare import compare
from toolshift.measure.diagnosis import words
from toolshift.report.figures import safe_json, shown
from toolshift.report.html import write_page
from toolshift.report.html.method import run_command, selection_options
from toolshift.runs.plan import Plan
from toolshift.runs.provenance import manifest
from toolshift.runs.run_folder import RunFolder
from toolshift.runs.suite import Selection, select

AGENTS = ("oracle", "memorises_names", "never_refuses", "always_refuses")
SCHEMES = ("light", "dark")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_into(tmp_path_factory.mktemp("runs") / "first", *AGENTS, tasks=8)


@pytest.fixture(scope="module")
def page(run: Path) -> Path:
    return written(run.parent / "all.html", run)


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("single") / "run"
    run_into(folder, "memorises_names", severities=(1, 2, 3), shifts=("perception",), tasks=8)
    return written(folder.parent / "page.html", folder)


@pytest.fixture(scope="module")
def surfer() -> Iterator[Surfer]:
    with chromium() as browser:
        yield Surfer(browser)


class Figures(HTMLParser):
    """The figures of a page, by where they stand in the reports."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: dict[str, Any] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        if tag == "data" and "data-at" in named:
            at, value = str(named["data-at"]), json.loads(str(named["value"]))
            assert self.found.setdefault(at, value) == value
            self.found[at] = value


def at(reports: Any, pointer: str) -> Any:
    """What stands at a JSON pointer, intervals as the page has them."""
    found = reports
    for part in pointer.strip("/").split("/"):
        found = found[int(part)] if isinstance(found, list) else found[part]
    if isinstance(found, dict) and "estimate" in found:
        return [found["estimate"], found["low"], found["high"]]
    return found


# -- figures -----------------------------------------------------------------------------------


def test_the_figures_are_those_of_json(run: Path, page: Path) -> None:
    folder = RunFolder.read(run)
    report = msgspec.json.decode(JSON.encode(report_of(folder)))
    pairs = [compare(folder, folder, AGENTS[0], name) for name in AGENTS[1:]]
    known = {"0": report, "compare": msgspec.json.decode(JSON.encode(pairs))}
    found = Figures(page.read_text()).found
    assert len(found) > 500
    wrong = {where: v for where, v in found.items() if at(known, where) != v}
    assert wrong == {}
    for number, each in enumerate(report["agents"]):
        for table in ("tiers", "shifts", "kinds"):
            for place in range(len(each[table])):
                assert f"/0/agents/{number}/{table}/{place}/drop" in found


def test_the_charts_are_drawn_from_the_same_figures(run: Path, page: Path) -> None:
    report = report_of(RunFolder.read(run))
    drawn = json.loads(re.findall(r'id="charts">(.*?)</script>', page.read_text())[0])
    values = drawn["r0a1-forest"]["data"]["values"]
    assert {v["label"]: v["value"] for v in values} == {
        words(row.label): round(-100 * row.drop.estimate, 6) + 0
        for row in report.agents[1].shifts
        if row.defined
    }
    links = next(d for d in drawn["r0a1-flow"]["data"] if d["name"] == "links")["values"]
    failures = sum(sum(row.causes.values()) for row in report.agents[1].shifts)
    assert sum(int(link["said"].rpartition(" ")[2]) for link in links) == failures


def test_what_is_undefined_says_so(surfer: Surfer, page: Path) -> None:
    with surfer.page(page) as shown_page:
        card = shown_page.locator("article.card", has_text="always_refuses")
        assert "undefined: clean score under 50%" in card.text_content()
        assert "undefined: clean score under 50%" in shown_page.locator("#method").text_content()


def test_another_run_beside_it(run: Path, page: Path, tmp_path: Path) -> None:
    second = run_into(tmp_path / "second", "memorises_names", "never_refuses", tasks=8)
    out = written(tmp_path / "two.html", run, second)
    text = out.read_text()
    assert "memorises_names (first)" in text
    pairs = [compare(RunFolder.read(run), RunFolder.read(second), a, a) for a in AGENTS[1:3]]
    found = Figures(text).found
    for number, pair in enumerate(pairs, 3):  # behind the three of the first run
        change = pair.everything.change
        want = [change.estimate, change.low, change.high]
        assert found[f"/compare/{number}/everything/change"] == want
    assert str(tmp_path) not in text
    assert str(run.parent) not in text


def test_progress_is_told(run: Path, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    folder = RunFolder.read(run)
    write_page([folder], tmp_path / "page.html", watch=lambda *step: told.append(step))
    assert told == [(done, len(told) - 1) for done in range(len(told))]


def test_runs_without_a_common_scene(run: Path, tmp_path: Path) -> None:
    other = run_into(tmp_path / "other", "oracle", tasks=2, seed=5, shifts=("redirect",))
    text = written(tmp_path / "page.html", run, other).read_text()
    assert "undefined: first and other have no scene in common" in text


def test_checkpoints_are_curves(surfer: Surfer, tmp_path: Path) -> None:
    steps = (0, 50, 200)
    for step in steps:
        strength = 1 - step / 200
        run_into(tmp_path / f"sft-{step}", f"gives_up@{strength:g}", tasks=4, shifts=("redirect",))
    out = written(tmp_path / "page.html", *(tmp_path / f"sft-{step}" for step in steps))
    with surfer.page(out) as shown_page:
        assert shown_page.locator("[data-chart=curves] svg").count() == 1
        cells = shown_page.locator("[data-chart=curves] ~ details tbody tr td:nth-child(2)")
        assert {int(text) for text in cells.all_text_contents()} == set(steps)


def test_versions_and_strengths_are_no_checkpoints(run: Path, tmp_path: Path) -> None:
    agents = [f"gives_up@{strength}" for strength in ("0.25", "0.5", "0.75")]
    folder = run_into(tmp_path / "run", *agents, tasks=2, shifts=("redirect",))
    assert 'data-chart="curves"' not in written(tmp_path / "page.html", folder).read_text()


# -- manners -----------------------------------------------------------------------------------


def test_every_chart_is_drawn_and_told(surfer: Surfer, single: Path) -> None:
    with surfer.page(single) as shown_page:
        charts = shown_page.locator("[data-chart]")
        names = {each.get_attribute("data-chart") for each in charts.all()}
        assert names >= {f"r0a0-{n}" for n in ("profile", "forest", "doses", "kinds", "flow")}
        for each in charts.all():
            assert each.locator("svg").count() == 1
            assert each.get_attribute("role") == "img"
            assert each.get_attribute("aria-label")
            assert each.locator("xpath=following-sibling::details//table").count()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", [pytest.param(390, marks=pytest.mark.slow), 1280])
def test_no_serious_fault_of_access(surfer: Surfer, page: Path, scheme: str, width: int) -> None:
    size = {"width": width, "height": 800}
    with surfer.page(page, color_scheme=scheme, viewport=size) as shown_page:
        shown_page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
        assert surfer.faults(shown_page) == []
        assert shown_page.evaluate("document.documentElement.scrollWidth") <= width


def test_dark_is_dark(surfer: Surfer, page: Path) -> None:
    ground = "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0]"
    mark = "getComputedStyle(document.querySelector('.chart svg text')).fill"
    seen = {}
    for scheme in SCHEMES:
        with surfer.page(page, color_scheme=scheme) as shown_page:
            seen[scheme] = shown_page.evaluate(ground), shown_page.evaluate(mark)
    assert seen["dark"][0] < 60
    assert seen["light"][0] > 200
    assert seen["dark"][1] != seen["light"][1]
    with surfer.page(page, color_scheme="light") as shown_page:
        shown_page.click("#theme")
        assert shown_page.evaluate(ground) < 60


def test_the_tables_need_no_script(surfer: Surfer, page: Path) -> None:
    with surfer.page(page, java_script_enabled=False) as shown_page:
        tables = shown_page.locator("article.card table")
        assert tables.count() == len(AGENTS)
        assert all(each.is_visible() for each in tables.all())


def test_by_keyboard(surfer: Surfer, page: Path) -> None:
    with surfer.page(page) as shown_page:
        shown_page.keyboard.press("Tab")
        focused = "document.activeElement.textContent"
        assert shown_page.evaluate(focused) == "Skip to the report"
        shown_page.keyboard.press("Tab")
        assert shown_page.evaluate(focused) == "Where it breaks"
        fold = shown_page.locator("details.agent > summary").nth(1)
        fold.focus()
        shown_page.keyboard.press("Enter")
        assert fold.locator("..").get_attribute("open") is not None


def test_on_paper(surfer: Surfer, page: Path) -> None:
    with surfer.page(page, color_scheme="dark") as shown_page:
        shown_page.emulate_media(media="print", color_scheme="dark")
        assert shown_page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
        assert not shown_page.locator("nav").first.is_visible()
        assert len(shown_page.pdf()) > 50_000


# -- hostile and damaged runs ------------------------------------------------------------------

NASTY = (
    "<script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31mred\x1b[0m "
    "\u202egnp.exe\u202c {{ 7*7 }} </title>--><!--\u2028"
)


class Nasty:
    """Says hostile things wherever an agent can say something."""

    name = NASTY
    settings = {"style": NASTY, "long": "x" * 1_000_000}

    def reply(self, turn: Any) -> Reply:
        call = ToolCall(NASTY, json.dumps({NASTY: NASTY + "y" * 1_000_000}))
        return Reply(text=NASTY, calls=(call,))


def test_a_hostile_run_is_inert(surfer: Surfer, tmp_path: Path) -> None:
    run_into(tmp_path / "run", Nasty(), tasks=2, shifts=("redirect",), placebo=False)
    out = written(tmp_path / "page.html", tmp_path / "run")
    assert out.stat().st_size < 5_000_000
    text = out.read_text()
    assert "\x1b" not in text
    assert "\u202e" not in re.sub(r'"episodes-data">.*?</script>', "", text)
    with surfer.page(out) as shown_page:
        assert "<script>alert(1)</script>" in shown_page.locator(".kicker").text_content()
        assert shown_page.locator("img").count() == 0
        assert shown_page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert surfer.faults(shown_page) == []
        assert "1,000,000 characters" in shown_page.locator("#method").text_content()


def test_the_policy_lets_no_other_script_run(surfer: Surfer, page: Path, tmp_path: Path) -> None:
    harmed = tmp_path / "harmed.html"
    bad = "<script>document.title = 'taken'</script><img src='http://192.0.2.1/x'>"
    harmed.write_text(page.read_text().replace('<main id="main">', f'<main id="main">{bad}', 1))
    refused = pytest.raises(AssertionError, match="Content Security Policy")
    with refused, surfer.page(harmed) as shown_page:
        assert shown_page.title() != "taken"


def test_json_cannot_end_its_element() -> None:
    text = safe_json({"<a>": ["</script>", "\u2028", "&", "\ud800"]})
    assert not re.search("[<>&\u2028]", text)
    assert json.loads(text)["<a>"][0] == "</script>"


def test_marks_are_made_visible() -> None:
    assert shown("a\x1b[1mb\nc") == "a[ESC][1mb c"
    assert shown("\u202eabc") == "[U+202E]abc"
    assert shown("x" * 1000, 10) == "xxxxxxxxxx… (1,000 characters)"


@pytest.mark.parametrize(
    ("change", "why"),
    [({"format": 99}, "newer ToolShift .format 99, this one reads up to"), (None, "is damaged")],
    ids=["newer", "older"],
)
def test_another_format_is_refused(
    run: Path, tmp_path: Path, change: dict[str, int] | None, why: str
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for name in ("plan.jsonl", "episodes.jsonl"):
        (other / name).write_bytes((run / name).read_bytes())
    manifest = json.loads((run / "manifest.json").read_text())
    changed = {**manifest, **change} if change else {"suite": "quick"}  # before there were formats
    (other / "manifest.json").write_text(json.dumps(changed))
    with pytest.raises(UsageError, match=why):
        written(tmp_path / "page.html", other)
    assert not (tmp_path / "page.html").exists()


def test_a_run_without_episodes_or_times(run: Path, tmp_path: Path) -> None:
    for name in ("manifest.json", "plan.jsonl", "episodes.jsonl"):
        (tmp_path / name).write_bytes((run / name).read_bytes())
    assert "undefined: not timed" in written(tmp_path / "page.html", tmp_path).read_text()
    (tmp_path / "episodes.jsonl").unlink()
    with pytest.raises(UsageError, match="no episode has been run"):
        written(tmp_path / "page.html", tmp_path)
    with pytest.raises(UsageError, match="cannot write"):
        written(tmp_path / "nowhere" / "page.html", run)


# -- method ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"suite": "paper", "seeds": 2, "seed": 3},
        {"suite": "paper", "shifts": ("redirect:3*5", "query_typos:1"), "tasks": 4},
        {"suite": "standard", "worlds": ("retail",), "kinds": ("refund",), "placebo": False},
        {"shifts": ("clean",), "trials": 3, "pool": "train", "size": 50},
        {"without": ("reasoning",), "severities": (1, 3)},
    ],
    ids=str,
)
def test_the_commands_plan_the_same_run(asked: dict[str, Any]) -> None:
    selection = select(Selection(**asked))
    again: dict[str, Any] = {}
    for option, *value in selection_options(selection):
        name = option.removeprefix("--")
        if name in ("world", "kind", "shift"):
            again[f"{name}s"] = (*again.get(f"{name}s", ()), value[0])
        elif name == "no-placebo":
            again["placebo"] = False
        else:
            again[name] = value[0] if name in ("suite", "pool") else int(value[0])
    assert msgspec.structs.replace(select(Selection(**again)), suite="") == msgspec.structs.replace(
        selection, suite=""
    )


def test_a_long_command_is_whole() -> None:
    shifts = ("all", "perception+redirect:1")
    chosen = select(Selection(shifts=shifts, severities=(1, 2, 3), tasks=2))
    said = run_command(manifest(Plan(chosen, {}, ()), [{"name": "mine", "spec": "oracle"}]))
    assert len(said) > 4000
    assert said.count("--shift") == len(chosen.arms)

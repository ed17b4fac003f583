"""The pages of findings: each figure is on a page that a command writes, from stored episodes.

The cells that are recomputed here are counted from the raw files, by none of the lab's own sums.
"""

from __future__ import annotations

import json
import lzma
import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from typing import Any

import msgspec
import pytest
from toolshift_lab.frozen import unpack

from toolshift.runs.cell import Cell

ROOT = Path(__file__).parents[2]
STUDIES = ROOT / "studies"
DECISIVE = STUDIES / "decisive"
RUN = "run-aa1b2586-d4e763ef"
HAND_WRITTEN = (STUDIES / "findings.md", STUDIES / "README.md", DECISIVE / "NOTES.md")
FIGURE = re.compile(r"(-?\d+)(?:%| points)? \[(-?\d+), (-?\d+)\]")
PHRASE = (" at Nine", " on the Hill")
LIMIT = 0.001
TIERS_1_AND_2 = {
    "identity_erasure": 3, "semantic_rename": 3, "semantic_trap": 3, "redirect": 2,
    "transient_error": 2, "format_drift": 2, "tool_migrated": 2,
}  # fmt: skip
HELD_OUT = {
    "stale_tool_list": 2, "tools_by_action": 2, "type_change": 2, "default_change": 2,
    "redirect_header": 2, "csv_results": 2,
}  # fmt: skip


def episodes(folder: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Task, shift and raw episode of a stage."""
    cells = {}
    for line in (folder / RUN / "plan.jsonl").read_bytes().splitlines():
        row = json.loads(line)
        if "not_applicable" not in row:
            cell = msgspec.convert(row["cell"], Cell)
            shifts = [each["shift"].partition("@")[0] for each in row["cell"].get("shifts", [])]
            cells[cell.id] = (f"{cell.kind}/{cell.index}", "+".join(shifts))
    for line in (folder / RUN / "episodes.jsonl").read_bytes().splitlines():
        told = json.loads(line)
        yield *cells[told["cell"]], told


@pytest.fixture(scope="module")
def raw() -> dict[str, list[dict[tuple[str, str], dict[str, Any]]]]:
    """By arm and seed: the episodes by task and shift."""
    return {
        arm: [
            {(task, shift): told for task, shift, told in episodes(folder)}
            for folder in sorted(unpack(STUDIES / "stages").glob(f"{arm}-decisive-seed?-*"))
        ]
        for arm in ("static", "paft", "diverse")
    }


@pytest.fixture(scope="module")
def stored() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        lzma.decompress((DECISIVE / "sensitivity.json.xz").read_bytes())
    )
    return found


def passed(seed: dict[tuple[str, str], dict[str, Any]], shift: str) -> float:
    return float(mean(told["grade"]["passed"] for (_, s), told in seed.items() if s == shift))


@pytest.mark.parametrize("arm", ["static", "paft", "diverse"])
@pytest.mark.parametrize(
    ("name", "shifts"),
    [("tiers 1 and 2", TIERS_1_AND_2), ("mechanisms held out", HELD_OUT)],
)
def test_accuracy_and_drop_are_those_of_the_raw_episodes(
    raw: dict[str, Any], stored: dict[str, Any], arm: str, name: str, shifts: dict[str, int]
) -> None:
    """Each of these shifts applies to all 48 tasks, so the mean over tasks is a plain mean."""
    clean = 100 * mean(passed(seed, "") for seed in raw[arm])
    shifted = 100 * mean(passed(seed, shift) for seed in raw[arm] for shift in shifts)
    told = stored["arms"][arm]
    assert told["clean"]["points"] == pytest.approx(clean, abs=1e-3)
    assert told[f"passed in {name}"]["points"] == pytest.approx(shifted, abs=1e-3)
    assert told[f"drop in {name}"]["points"] == pytest.approx(clean - shifted, abs=1e-3)
    assert told["clean"]["seeds"] == len(raw[arm])


def test_paft_less_diverse_and_held_out_in_accuracy(
    raw: dict[str, Any], stored: dict[str, Any]
) -> None:
    held = {
        arm: 100 * mean(passed(seed, shift) for seed in raw[arm] for shift in HELD_OUT)
        for arm in raw
    }
    for first in ("static", "diverse"):
        told = stored["contrasts"][f"paft - {first}"]["mechanisms held out"]["accuracy"]
        assert told["points"] == pytest.approx(held["paft"] - held[first], abs=1e-3)
        assert told["low"] < told["points"] < told["high"]
    three = [
        [100 * (passed(one, "") - mean(passed(one, s) for s in TIERS_1_AND_2)) for one in raw[arm]]
        for arm in ("paft", "diverse")
    ]
    told = stored["contrasts"]["paft - diverse"]["tiers 1 and 2"]
    paired = mean(a - b for a, b in zip(three[0][:3], three[1], strict=True))
    assert told["paired"]["points"] == pytest.approx(paired, abs=1e-3)
    assert told["unpaired"]["points"] == pytest.approx(mean(three[0]) - mean(three[1]), abs=1e-3)


def test_forms_of_names_are_those_in_the_calls(raw: dict[str, Any], stored: dict[str, Any]) -> None:
    """By the names that `static` looks up in the clean scenes that it passes."""
    refused = [
        (task, seed)
        for seed in raw["paft"]
        for (task, shift), told in seed.items()
        if not shift and told["grade"]["refused"]
    ]
    assert len(refused) == 43
    names = {
        task: told["steps"][0]["arguments"].get("name", "")
        for seed in raw["static"]
        for (task, shift), told in seed.items()
        if not shift and told["grade"]["passed"]
    }
    plain = {task for task, name in names.items() if name and not name.endswith(PHRASE)}
    assert not {task for task, _ in refused} & plain
    forms = stored["forms"]
    assert sum(form["clean refusals"]["paft"] for form in forms.values()) == 43
    assert sum(f["clean refusals"]["paft"] for n, f in forms.items() if "plain" in n) == 0
    assert sum(count for form, count in stored["tasks"].items() if "phrase" in form) == 14
    assert sum(stored["tasks"].values()) == 48


def test_counts_of_the_pages_are_those_of_the_raw_episodes(raw: dict[str, Any]) -> None:
    page = (DECISIVE / "sensitivity.md").read_text()
    renamed = [
        told["grade"]["passed"]
        for seed in raw["static"]
        for (_, shift), told in seed.items()
        if shift in ("identity_erasure", "semantic_rename", "semantic_trap")
    ]
    unsolvable = [
        told["grade"]["refused"]
        for seed in raw["static"]
        for told in seed.values()
        if not told["grade"]["solvable"]
    ]
    assert f"{sum(renamed)} of {len(renamed)} pass" in page
    assert f"{sum(unsolvable)} of {len(unsolvable)} are refused" in page


def test_the_page_is_what_its_figures_make(stored: dict[str, Any]) -> None:
    script = runpy.run_path(str(DECISIVE / "sensitivity.py"))
    assert script["page"](stored) == (DECISIVE / "sensitivity.md").read_text()


@pytest.mark.slow
def test_the_script_writes_what_is_stored(tmp_path: Path, stored: dict[str, Any]) -> None:
    script = runpy.run_path(str(DECISIVE / "sensitivity.py"))
    main = script["main"]
    (tmp_path / "plan.toml").write_bytes((DECISIVE / "plan.toml").read_bytes())
    main.__globals__["HERE"] = tmp_path
    main()
    assert json.loads(lzma.decompress((tmp_path / "sensitivity.json.xz").read_bytes())) == stored


def figures(text: str) -> set[tuple[int, int, int]]:
    """Means with their limits; a loss and the gain that it is are one figure."""
    found = set()
    for told in FIGURE.findall(" ".join(text.split())):
        point, low, high = map(int, told)
        found |= {(point, low, high), (-point, -high, -low)}
    return found


def test_every_figure_of_the_findings_is_on_a_page_that_a_command_writes() -> None:
    made = set[tuple[int, int, int]]()
    for page in (
        *DECISIVE.glob("*/README.md"),
        *(STUDIES / "reads").glob("*/README.md"),
        DECISIVE / "README.md",
        DECISIVE / "sensitivity.md",
    ):
        made |= figures(page.read_text())
    told = figures((STUDIES / "findings.md").read_text())
    assert len(told) > 60
    assert told <= made


def test_the_limitation_of_the_readme_is_that_of_the_findings() -> None:
    readme = (ROOT / "README.md").read_text()
    said = readme[readme.index("One honest limitation") : readme.index("| read more |")]
    pages = (STUDIES / "findings.md", DECISIVE / "sensitivity.md")
    told = figures(re.sub(r"95% interval: ", "", said))
    assert len(told) >= 10
    assert told <= set.union(*(figures(page.read_text()) for page in pages))


@pytest.mark.parametrize("page", HAND_WRITTEN, ids=lambda page: page.name)
def test_links_lead_to_pages_and_to_their_headings(page: Path) -> None:
    for target in re.findall(r"\]\(([^):]+)\)", page.read_text()):
        path, _, anchor = target.partition("#")
        there = page.parent / path if path else page
        assert there.exists(), target
        if anchor:
            assert anchor in anchors(there.read_text()), target


def anchors(text: str) -> set[str]:
    """The anchors of a page: of its headings as GitHub names them, and those that it sets."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings]
    return {*plain, *re.findall(r'<a id="([^"]+)"', text)}


PLANNED = sorted(DECISIVE.rglob("endpoints.json"))


@pytest.mark.parametrize("file", PLANNED, ids=lambda file: file.parent.name)
def test_no_p_is_told_below_a_thousandth_or_of_two_seeds(file: Path) -> None:
    told = json.loads(file.read_bytes())
    assert told["arms"]
    for each in told["contrasts"]:
        for found in (each["found"], each["unpaired"], each["accuracy"] or {}):
            assert (found.get("p") or 1) >= LIMIT
            assert found.get("p") is None or found["seeds"] >= 3
        assert (each["p_holm"] or 1) >= LIMIT
        assert each["p_holm"] is None or each["found"]["seeds"] >= 3


def test_p_values_on_the_pages_obey_the_rule() -> None:
    pages = [*DECISIVE.rglob("*.md"), STUDIES / "findings.md"]
    for page in pages:
        for p in re.findall(r"\bp (?:at most |below |of )?(\d[\d.e-]*)", page.read_text()):
            assert float(p.rstrip(".")) >= LIMIT, page


def test_the_page_of_studies_says_each_in_forty_words() -> None:
    rows = re.findall(r"^\| .+ \|$", (STUDIES / "README.md").read_text(), re.MULTILINE)[1:]
    assert len(rows) > 30
    for row in rows:
        result = row.strip("| ").split(" | ")[-1]
        assert len(re.sub(r"\]\([^)]*\)", "", result).split()) <= 40, row

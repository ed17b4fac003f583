"""With several agents the page begins with one table, and findings come with a next step."""

from __future__ import annotations

import re

import pytest

from toolshift import evaluate
from toolshift.episode.causes import CAUSES
from toolshift.report.html.page import make_page
from toolshift.report.summary import phrases
from toolshift.runs.run_folder import RunFolder

NAMED = ["oracle", "memorises_names", "never_refuses"]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("runs") / "run"
    shifts = ["identity_erasure", "redirect"]
    evaluate(NAMED, shifts=shifts, tasks=11, out=out)
    return make_page([RunFolder.read(out)])


def test_tiers_by_agents_come_before_the_cards_in_the_order_named(page: str) -> None:
    table = page.index('id="tiers-by-agents"')
    assert table < page.index('class="cards"')
    rows = page[table : page.index("</table>", table)]
    named = re.findall(r'<th scope="row"><a[^>]*>(?:<[^>]*>)*([a-z_]+)', rows)
    assert named == NAMED
    cards = re.findall(
        r'<article class="card"[^>]*>\s*<h2[^>]*><a[^>]*>(?:<[^>]*>)*([a-z_]+)', page
    )
    assert cards == named
    assert "perception<" in rows
    assert rows.count('<strong class="lost">') >= 1


def test_a_finding_says_what_to_do(page: str) -> None:
    assert "What to do: take tool names from the tool list of each turn" in page


def test_every_cause_of_the_agent_has_a_next_step() -> None:
    beyond = {"infrastructure", "simulator", "unrecorded", "broken_shift", "own_outage"}
    beyond.add("dropped_connection")
    assert set(phrases()["next"]) == set(CAUSES) - beyond

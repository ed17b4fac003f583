"""With several agents the page begins with one table, and findings come with a next step."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pages import DOCS

from toolshift import evaluate
from toolshift.agents.planted import PLANTED
from toolshift.episode import call_watch, causes
from toolshift.episode.causes import CAUSES
from toolshift.report import words
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


BEYOND_THE_AGENT = {"infrastructure", "simulator", "unrecorded", "broken_shift", "own_outage"}
BEYOND_THE_AGENT.add("dropped_connection")


def test_every_cause_has_its_words() -> None:
    """Here and in the docs; `CONTRIBUTING.md` lists the places."""
    assert set(words.CAUSES) == set(CAUSES)
    of_the_agent = set(CAUSES) - BEYOND_THE_AGENT
    assert set(phrases()["causes"]) == of_the_agent
    assert set(phrases()["next"]) == of_the_agent
    table = (DOCS / "measures.md").read_text().partition("## Causes")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| (\w+) \|", table, re.MULTILINE)) - {"cause"} == set(CAUSES)


def test_every_cause_that_is_named_is_one_of_them() -> None:
    trees = [ast.parse(Path(one.__file__).read_text()) for one in (causes, call_watch)]
    nodes = (node for tree in trees for node in ast.walk(tree))
    returned = [node.value for node in nodes if isinstance(node, ast.Return)]
    named = {text for value in returned for text in _texts(value) if text}
    assert len(named) > len(CAUSES) / 2
    assert named <= set(CAUSES)
    assert {cause for _, cause in PLANTED.values()} <= set(CAUSES)


def _texts(value: ast.expr | None) -> Iterator[str]:
    """The texts that an expression may come to."""
    match value:
        case ast.Constant(value=str(text)):
            yield text
        case ast.IfExp(body=one, orelse=other):
            yield from (*_texts(one), *_texts(other))
        case ast.BoolOp(values=values):
            yield from (text for each in values for text in _texts(each))

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest

from tests.made_up import BAD, CLEAN, ERASED, GOOD, PLACEBO, rows
from toolshift.core.errors import UsageError
from toolshift.core.tool import JSON
from toolshift.measure.metrics import Arms, stack_of, tier_of
from toolshift.measure.report import make_report
from toolshift.measure.scored import BLOCK, ROW, Episodes, Scenes, Scored
from toolshift.runs.run_folder import RunFolder

FORMAT_1 = Path(__file__).parents[1] / "data" / "run_format_1"


def test_a_report_does_not_depend_on_the_order_of_the_episodes() -> None:
    folder = RunFolder.read(FORMAT_1)
    records = list(folder.records())
    told = JSON.encode(make_report(folder.plan, records, folder.manifest.agents))
    random.Random(3).shuffle(records)
    assert JSON.encode(make_report(folder.plan, records, folder.manifest.agents)) == told


def test_rows_stand_in_the_order_of_the_plan_and_may_be_asked_for_in_between() -> None:
    cells = [row.cell for row in rows(CLEAN, (5, GOOD))]
    found = Episodes(Scenes(cells))
    for place in (3, 0, 4):
        found.add(place, Scored(f"e{place}", cells[place], GOOD))
    assert found.rows["episode"].tolist() == ["e0", "e3", "e4"]
    found.add(1, Scored("e1", cells[1], BAD))
    assert found.rows["episode"].tolist() == ["e0", "e1", "e3", "e4"]
    assert found.rows["passed"].tolist() == [True, False, True, True]


def test_more_rows_than_a_block_are_all_counted() -> None:
    many = rows(CLEAN, (BLOCK, GOOD), (3, BAD))
    arms = Arms(many)
    assert arms.rows.size == BLOCK + 3
    assert arms.measure("clean", arms.clean).causes == {"memorised_name": 3}
    assert ROW.itemsize < 120


def test_an_agent_without_a_shifted_episode_has_empty_tables() -> None:
    arms = Arms(rows(CLEAN, (3, GOOD)))
    assert arms.table(tier_of, "holm", detectable=True) == []
    assert Arms([]).groups(tier_of) == {}
    both = Arms(rows(ERASED, (2, GOOD)) + rows(CLEAN, (1, GOOD)) + rows(PLACEBO, (1, GOOD)))
    assert [row.label for row in both.table(stack_of, "bh")] == ["identity_erasure:2"]
    assert both.shifted["episode"].tolist() == ["0", "1"]


@pytest.mark.parametrize("calls", [2**31, 10**30])
def test_what_cannot_be_counted_is_said_with_the_episodes_among_which_it_is(calls: int) -> None:
    odd = msgspec.structs.replace(GOOD, calls=calls)
    with pytest.raises(UsageError, match="among the episodes from 0 to 1 one has a count"):
        Arms(rows(ERASED, (1, odd), (1, GOOD)))

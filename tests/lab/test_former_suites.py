"""Former versions of suites, shifts and families: what they measured can be measured again."""

from __future__ import annotations

import pytest
from toolshift_lab.former_families import NAMES, as_trained
from toolshift_lab.former_shifts import FORMER

from toolshift.core.errors import UsageError
from toolshift.runs.suite import SUITES, Selection, find_suite, select
from toolshift.shifts.registry import find_shift
from toolshift.shifts.stacks import stacks_of
from toolshift.shifts.training_families import TRAINING_FAMILIES
from toolshift.train.scenes import Mix, draw


def test_each_suite_of_today_stays_selectable_as_a_version() -> None:
    for name, version in (("quick", 2), ("standard", 3), ("paper", 3)):
        assert find_suite(name) is SUITES.find(f"{name}@{version}")
        assert select(Selection(f"{name}@1")).suite == f"{name}@1"
        named = [text.partition(":")[0] for text in find_suite(f"{name}@1").shifts]
        assert all(text.partition("*")[0].endswith("@1") for text in named)
        arms = select(Selection(f"{name}@1")).arms
        assert all(find_shift(each.shift).version == 1 for arm in arms for each in arm.shifts)
    assert len(select(Selection("standard@1")).arms) == 41 * 3
    for name in ("standard", "paper"):
        now, before = (select(Selection(each)) for each in (name, f"{name}@2"))
        assert before.suite == f"{name}@2"
        ours = {arm.shifts[0].shift for arm in before.arms}
        assert len(ours) == 49
        more = {arm.shifts[0].shift for arm in now.arms if arm not in before.arms}
        assert more == {"csv_results", "redirect_header"}
        assert select(Selection(f"{name}@2", shifts=("csv_results",))).arms
    with pytest.raises(UsageError, match="did you mean standard"):
        find_suite("standard@9")


@pytest.mark.parametrize("name", sorted(FORMER))
def test_a_former_shift_is_found_by_its_version(name: str) -> None:
    assert (find_shift(name).name, find_shift(name).version) == (name, 1)


def test_users_train_on_the_shifts_of_today_and_studies_on_those_of_their_time() -> None:
    assert not [each for name in NAMES for each in TRAINING_FAMILIES.find(name) if "@" in each]
    former = {s.shift for name in NAMES for each in stacks_of(f"{name}@1", 2) for s in each}
    assert {name for name in former if "@" in name} == FORMER - {
        "semantic_trap@1",
        "query_ambiguity@1",
        "query_underspecification@1",
        "query_redundancy@1",
        "incomplete_information@1",
    }


def test_a_former_family_draws_the_same_scenes_but_for_its_shifts() -> None:
    mix = Mix(alpha=1, shifts=("SBP", "limits:2"), size=200)
    former = as_trained(mix)
    assert former.shifts == ("SBP@1", "limits@1:2")
    for number in range(40):
        now, then = draw(mix, number), draw(former, number)
        assert now.task.index == then.task.index
        assert [find_shift(each.shift).base for each in now.shifts] == [
            find_shift(each.shift).base for each in then.shifts
        ]

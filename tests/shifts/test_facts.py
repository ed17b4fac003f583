"""Shifts of which only the facts are known, as a run folder keeps them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from toolshift.core.errors import UsageError
from toolshift.episode.draw import make_scene
from toolshift.shifts import facts
from toolshift.shifts.registry import apply, as_stored, find_shift, has_code
from toolshift.worlds.registry import find_world


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "known", {})


def test_two_versions_of_a_shift_without_code_stand_beside_each_other() -> None:
    one = facts.facts_of(replace(find_shift("redirect"), name="mine", version=1))
    two = facts.facts_of(replace(find_shift("redirect"), name="mine", version=2))
    facts.know_facts([one, two, two])
    assert [find_shift(as_stored("mine", number)).version for number in (1, 2)] == [1, 2]
    assert find_shift("mine@2").base == "mine"
    assert not has_code("mine")
    assert not has_code("mine@2")
    with pytest.raises(UsageError, match="its code is not loaded"):
        apply(make_scene(find_world("poi"), "booking", 0), "mine", 2)


def test_a_shift_with_code_is_not_hidden_by_what_a_run_says_of_it() -> None:
    facts.know_facts([facts.facts_of(replace(find_shift("redirect"), tier="none"))])
    assert has_code("redirect")
    assert find_shift("redirect").tier != "none"

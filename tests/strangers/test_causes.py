"""The planted weakness of agents by someone who had not read the rules is the cause that is named."""

from __future__ import annotations

from collections import Counter

import pytest
from scenes import clean_scenes, shifted
from strangers.held_out_agents import AGENTS

from toolshift.episode.episode import Episode
from toolshift.episode.grade import grade

CASES = [
    ("first_page_only", "truncation", "missed_page"),
    ("notice_blind", "rule_update", "ignored_update"),
    ("stale_after_change", "intent_change", "ignored_update"),
    ("picks_by_name", "semantic_trap", "wrong_tool"),
    ("passes_by_position", "parameter_rename", "bad_arguments"),
    ("never_retries", "transient_error", "no_recovery"),
]


def causes(agent: str, shift: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for clean in clean_scenes("poi", 11):
        scene = shifted(clean, (shift, 2)) if shift else clean
        if scene is None:
            continue
        episode = Episode(scene)
        AGENTS[agent]().play(episode)
        verdict = grade(episode)
        if not verdict.passed:
            found[verdict.cause] += 1
    return found


@pytest.mark.parametrize(("agent", "shift", "cause"), CASES)
def test_the_commonest_cause_is_the_planted_one(agent: str, shift: str, cause: str) -> None:
    ((first, _),) = causes(agent, shift).most_common(1)
    assert first == cause


def test_a_write_that_is_made_twice_is_named() -> None:
    assert causes("writes_twice", "").keys() == {"surplus_write"}


def test_the_same_agents_without_a_weakness_there_pass() -> None:
    assert not causes("never_retries", "")

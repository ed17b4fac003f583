"""The user says the same otherwise: values stay, or are given when asked for."""

from __future__ import annotations

from functools import cache
from itertools import product

import pytest

from toolshift.core.scene import Scene, kind_of
from toolshift.core.shift import NotApplicable
from toolshift.core.world import POOLS
from toolshift.episode.draw import make_scene
from toolshift.shifts.query import mark, states, template_in, values, wanted_words
from toolshift.shifts.registry import apply, find_shift
from toolshift.worlds.registry import find_world

KINDS = [(name, kind) for name in ("poi", "medical", "retail") for kind in find_world(name).kinds]


@cache
def clean(world: str, kind: str, pool: str = "dev", index: int = 0) -> Scene:
    return make_scene(find_world(world), kind, index, pool=pool)


def each(name: str):
    """Every scene that a shift can make: kind, pool and severity."""
    for (world, kind), pool, severity in product(KINDS, POOLS, find_shift(name).severities):
        try:
            yield apply(clean(world, kind, pool), name, severity), severity
        except NotApplicable:
            continue


def test_expected_answers_goals_and_replies_are_kept():
    for name in ("query_paraphrase", "query_typos", "query_redundancy", "query_ambiguity"):
        for scene, _ in each(name):
            for ask, before in zip(scene.asks, scene.clean.asks, strict=True):
                assert (ask.expected, ask.goal, ask.replies) == (
                    before.expected,
                    before.goal,
                    before.replies,
                )


def test_a_paraphrase_is_of_the_pool():
    for scene, _ in each("query_paraphrase"):
        turns = zip(scene.asks, scene.clean.asks, kind_of(scene).requests, strict=True)
        for ask, before, request in turns:
            bank = {one.format(**ask.goal) for one in request.phrasings[scene.task.pool]}
            assert ask.text in bank
            assert ask.text != before.text


def test_typos_spare_values_and_below_severity_3_the_wanted_reference():
    for scene, severity in each("query_typos"):
        for ask, before in zip(scene.asks, scene.clean.asks, strict=True):
            stated = [value for value in values(ask.goal) if states(before.text, value)]
            assert all(states(ask.text, value) for value in stated)
            assert len(ask.text.split()) == len(before.text.split())
            if severity < 3:
                words = wanted_words(scene.clean, before) & set(before.text.split())
                assert words <= set(ask.text.split())


@pytest.mark.parametrize("name", ["query_ambiguity", "query_underspecification"])
def test_what_is_left_out_is_asked_for(name):
    for scene, severity in each(name):
        asked = [step for step in scene.rehearsal if step.kind == "ask"]
        assert 1 <= len(asked) <= severity
        left = sum(
            states(before.text, value) and not states(ask.text, value)
            for ask, before in zip(scene.asks, scene.clean.asks, strict=True)
            for value in values(ask.goal)
        )
        assert left == severity
        assert all(step.slot for step in asked)
        assert "{" not in " ".join(ask.text for ask in scene.asks)


def test_idle_sentences_state_no_value():
    for scene, severity in each("query_redundancy"):
        for ask, before in zip(scene.asks, scene.clean.asks, strict=True):
            idle = ask.text.replace(before.text, "")
            assert not any(states(idle, value) for value in values(ask.goal))
            assert before.text in ask.text
            assert len(idle.split(". ")) >= 2 * severity - 1


def test_a_changed_text_is_marked_literally():
    scene = apply(clean("poi", "booking", "train"), "query_typos", 3)
    ask = scene.asks[0]
    assert template_in(scene, ask) == ""
    marked = mark(scene, ask)
    assert all(f"{{{slot}}}" in marked for slot in ("place_name", "city", "slot_time"))


def test_values_left_out_stay_out_of_a_further_paraphrase():
    scene = apply(clean("poi", "booking", "dev"), "query_underspecification", 2)
    with pytest.raises(NotApplicable):
        apply(scene, "query_paraphrase", 2)


def test_a_wrapped_request_can_still_be_paraphrased():
    wrapped = apply(clean("poi", "listing", "dev"), "query_redundancy", 1)
    said = apply(wrapped, "query_paraphrase", 2)
    idle = wrapped.asks[0].text.replace(wrapped.clean.asks[0].text, "")
    assert idle in said.asks[0].text
    assert said.asks[0].text != wrapped.asks[0].text

"""The classifier of questions reads masked words only, and its scores are whole numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from toolshift.core.fact import Facts, read_facts
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import Episode
from toolshift.episode.user import answer
from toolshift.reading.question_classifier import cuts, read_weights, tokens
from toolshift.reading.questions import asked_about, mask
from toolshift.worlds.registry import OURS, find_world


def test_values_are_masked_and_numbers_look_alike() -> None:
    masked = mask("Is it 13:15 for 2 at Quiet Thistle, or 9?", {"place_name": "Quiet Thistle"})
    found = tokens(masked)
    assert "⟦place_name⟧" in found
    assert "thistle" not in found
    assert found.count("0") == 2


@pytest.mark.parametrize("world", OURS)
def test_each_of_our_worlds_has_whole_weights_for_each_of_its_facts(world: str) -> None:
    facts = find_world(world).facts
    assert isinstance(facts, Facts)
    assert facts.weights
    assert facts.weights.stat().st_size < 300_000
    classifier = read_weights(facts.weights)
    assert set(classifier.slots) == {*facts, ""}
    assert classifier.words.dtype == np.int8
    assert classifier.spots.dtype == np.int16


def test_a_world_without_weights_goes_by_the_words_of_its_facts(tmp_path: Path) -> None:
    (tmp_path / "facts.toml").write_text('[size]\nlabel = "size"\nwords = ["size"]\n')
    facts = read_facts(str(tmp_path / "world.py"))
    assert facts.weights is None
    assert asked_about("Which size do you need?", {"size": 4}, facts) == ("size",)


def test_a_text_is_cut_where_both_sides_have_words() -> None:
    text = "? city, and time?"
    assert cuts(text)
    assert all(text[:place].strip("? ") and text[place:].strip("? ") for place in cuts(text))


def test_a_detail_that_a_reply_has_settled_is_no_longer_the_likeliest() -> None:
    goal = {"place_name": ("Quiet Thistle", "Red Lantern"), "city": ("Berlin", "Bonn")}
    facts = find_world("poi").facts
    request = "Quiet Thistle in Berlin, or rather Red Lantern in Bonn."
    reply = f"{request} The city is Berlin."
    assert asked_about("Your message names two; which one?", goal, facts, reply)[:1] == (
        "place_name",
    )


def test_what_the_user_replied_before_counts_as_said(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = make_scene(find_world("poi"), next(iter(find_world("poi").kinds)), 0)
    heard: list[str] = []

    def listen(question, ask, facts):  # type: ignore[no-untyped-def]
        heard.append(ask.text)
        return answer(question, ask, facts)

    monkeypatch.setattr("toolshift.episode.episode.user_answers", listen)
    episode = Episode(scene)
    reply = episode.ask("What is the city?")
    episode.ask("And the name of the place?")
    assert reply not in heard[0]
    assert reply in heard[1]

"""Version 2 of the pools: names of the same forms everywhere, of other words."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from random import Random

from toolshift_lab.poi_2 import FORMS, OTHER, PLAIN, STEMS, WORDS, form_of, named

from toolshift.core.world import POOLS
from toolshift.episode.draw import make_scene
from toolshift.worlds.registry import find_world

WORLD = find_world("poi-2")
SIZES = {"train": 2000, "dev": 200, "test": 200}
"""As training and measuring make the worlds."""


def names(pool: str) -> list[str]:
    """The names of the places of a world."""
    return [place["name"] for place in WORLD.truth(1000, SIZES[pool], pool).db.places.values()]


def test_the_pools_share_no_word() -> None:
    for one, other in combinations(POOLS, 2):
        for part in ("first", "second", "number"):
            assert not set(WORDS[one][part]) & set(WORDS[other][part])
        assert not set(STEMS[one]) & set(STEMS[other])


def test_forms_and_lengths_are_the_same_in_all_pools() -> None:
    """A third of the names is plain; letters and words differ by less than a tenth on average."""
    rng = Random(0)
    drawn = {pool: [named(rng, pool) for _ in range(3000)] for pool in POOLS}
    for found in drawn.values():
        plain = Counter(map(form_of, found))["plain"] / len(found)
        assert abs(plain - FORMS.count(PLAIN) / len(FORMS)) < 0.03
    for measure in (len, lambda name: len(name.split())):
        means = [sum(map(measure, found)) / len(found) for found in drawn.values()]
        assert max(means) / min(means) < 1.1


def test_cities_have_two_words_and_numbers_about_as_often() -> None:
    two, numbered = {}, {}
    for pool in POOLS:
        cities = WORLD.truth(1000, SIZES[pool], pool).db.cities
        two[pool] = sum(len(c.rstrip(" 0123456789").split()) > 1 for c in cities) / len(cities)
        numbered[pool] = sum(c[-1].isdigit() for c in cities) / len(cities)
    for shares in (two, numbered):
        assert max(shares.values()) - min(shares.values()) < 0.1, shares


def test_every_form_is_met_in_every_pool_and_told() -> None:
    first, second = "Amber", "House"
    made = [f.format(first=first, second=second, number="Two", digit=3) for f in (PLAIN, *OTHER)]
    assert [form_of(name) for name in made] == ["plain", *["other"] * len(OTHER)]
    assert all(len(set(map(form_of, names(pool)))) == 2 for pool in POOLS)


def test_scenes_of_all_kinds_are_solved_and_those_of_poi_stay() -> None:
    for kind in WORLD.kinds:
        assert make_scene(WORLD, kind, 0, pool="test").rehearsal[-1].kind == "answer"
    plain = make_scene(find_world("poi"), "listing", 0, pool="dev")
    assert plain.task.id == "3cf2e73c5b6e"

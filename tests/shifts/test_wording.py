"""Words of a pool turn up in no other, and in no world."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from toolshift.episode.draw import make_scene
from toolshift.shifts import wording
from toolshift.shifts.wording import TABLES, UNRELATED
from toolshift.worlds.registry import find_world

OBSERVATION = tomllib.loads(
    (Path(wording.__file__).parent / "observation.toml").read_text(encoding="utf-8")
)


def words(table: Any) -> set[str]:
    """Every word of a table, its keys included."""
    if isinstance(table, dict):
        return words(list(table)) | words(list(table.values()))
    if isinstance(table, list):
        return set().union(*map(words, table))
    return set(re.findall("[a-z]+", str(table).lower()))


def test_unrelated_words_are_many_and_stand_in_no_table():
    assert len(UNRELATED) == len(set(UNRELATED)) > 3000
    assert all(re.fullmatch("[a-z]{3,}", word) for word in UNRELATED)
    assert not words(TABLES) & set(UNRELATED)
    assert not words(OBSERVATION) & set(UNRELATED)


def test_unrelated_words_stand_in_no_tool_of_a_world():
    for name in ("poi", "retail", "medical"):
        world = find_world(name)
        for kind in world.kinds:
            scene = make_scene(world, kind, 0, pool="dev")
            shown = [[t.name, t.description, [p.name for p in t.params]] for t in scene.tools]
            assert not words(shown) & set(UNRELATED)

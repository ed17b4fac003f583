"""Scenes for the tests of shifts, and how far a shift has moved one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from zlib import crc32

from toolshift.core.scene import Applied, Scene
from toolshift.core.shift import NotApplicable
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import Episode, messages
from toolshift.episode.grade import Grade, grade
from toolshift.episode.oracle import OracleAgent
from toolshift.shifts.registry import compose, find_shift
from toolshift.worlds.registry import find_world

Share = Callable[..., list[Any]]


def some_of(cases: Iterable[Any], count: int, *names: str) -> list[Any]:
    """As many of the cases, evenly apart, from a place that the names of the test decide.

    So each test has few cases, and the tests of many names have them all between them.
    """
    every = list(cases)
    begin = crc32("/".join(names).encode())
    taken = min(count, len(every))
    return [every[(begin + place * len(every) // taken) % len(every)] for place in range(taken)]


def clean_scenes(world: str, count: int, pool: str = "dev") -> Iterator[Scene]:
    """Scenes of a world, its kinds in turn."""
    kinds = list(find_world(world).kinds)
    for number in range(count):
        index, kind = divmod(number, len(kinds))
        yield make_scene(find_world(world), kinds[kind], index, pool=pool)


def level(name: str, severity: int) -> int:
    """A severity that a shift has: the one of a shift of one level."""
    has = find_shift(name).severities
    return severity if severity in has else has[0]


def shifted(scene: Scene, *stack: tuple[str, int]) -> Scene | None:
    """The scene after some shifts; None where they do not apply."""
    try:
        return compose(scene, [Applied(name, level(name, severity)) for name, severity in stack])
    except NotApplicable:
        return None


def solved(scene: Scene) -> tuple[Episode, Grade]:
    """The oracle's episode in a scene, and its grade."""
    episode = Episode(scene)
    OracleAgent().play(episode)
    return episode, grade(episode)


def is_right(scene: Scene, verdict: Grade) -> bool:
    """Whether an episode has ended rightly, for the right reason where it must refuse."""
    return verdict.passed and (scene.solvable or verdict.right_reason)


def proven(scene: Scene) -> bool:
    """Whether the oracle ends a scene rightly."""
    return is_right(scene, solved(scene)[1])


def words(scene: Scene) -> Counter[str]:
    """Every word that the oracle is shown in a scene."""
    return words_of(solved(scene)[0])


def words_of(episode: Episode) -> Counter[str]:
    """Every word that was shown in an episode, the tools of its beginning included."""
    scene = episode.scene
    shown = [str(message["content"]) for message in messages(scene, episode.steps)]
    for tool in scene.tools:
        params = " ".join(f"{p.name} {p.schema}" for p in tool.params)
        shown.append(f"{tool.name} {tool.description} {params}")
    return Counter(" ".join(shown).split())


def distance(scene: Scene) -> float:
    """How many shown words differ from the clean scene's, relative to how many those are."""
    before, after = words(scene.clean), words(scene)
    changed = (before - after) + (after - before)
    return changed.total() / before.total()

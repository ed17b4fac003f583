"""Where the truth stands: in one of two sources that disagree, or with a tool and not the user.

Both need a step of thought that the clean task does not: to weigh what the documentation says of
the sources, or to look up what the user cannot say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

from toolshift.core.names import short
from toolshift.core.scene import Scene, reword
from toolshift.core.shift import Change, NotApplicable, Severity, shift
from toolshift.core.tool import DESCRIPTION, Field, Tool
from toolshift.episode.episode import End
from toolshift.episode.grade import regrade
from toolshift.reading.answers.by_words import as_answer
from toolshift.shifts.dependency import Words, used, words
from toolshift.shifts.oracle_trace import replay
from toolshift.shifts.rewiring import Former, Part, Profile, Program, Rewired, Stale

# -- conflicting sources -----------------------------------------------------------------------


@shift(
    tier="reasoning",
    dimension="observation",
    level=2,
    order=1,
    imitates="The cached endpoint may lag; treat /live as authoritative.",
)
def conflicting_sources(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Add a second source that disagrees; the documentation names the authoritative one."""
    tools = [t for t in used(scene) if t.effect == "read" and not t.many]
    answers = {step.said for step in scene.rehearsal if step.kind == "answer"}
    if scene.own_tools:
        answers = {part for answer in answers for part in _parts(answer)}
    deciding = [t for t in tools if any(_brings(scene, t, answer) for answer in answers)]
    if not deciding:
        raise NotApplicable("no single lookup brings the answer")
    tool = rng.choice(deciding)
    said = words("sources", scene, rng)
    stale: Callable[[str], Program] = partial(Stale, tool)
    if scene.own_tools:
        former = _disagreeing(scene, [tool, *(t for t in deciding if t is not tool)], answers)
        tool, stale = former.tool, lambda copy: former
    names = [short(f"{tool.name}_{word}") for word in said["copies"]]
    if severity == 1:
        only = _copy(tool, names[0], tool.name, said)
        return Change(layer=Rewired(frozenset(), ((only, stale(said["copies"][0])),)))
    right = short(said["right"].format(tool=tool.name))
    live = tool.with_(
        name=right, description=said["text"].format(text=tool.description), authority=1
    )
    old = tool.with_(description=tool.description + said["old"].format(right=right), authority=-1)
    whole = Part(tool, tool.returns, frozenset(), numbered=not scene.own_tools)
    added: list[tuple[Tool, Program]] = [(old, stale("old")), (live, whole)]
    for name in names[: severity - 1]:
        added.append((_copy(tool, name, right, said), stale(name)))
    return Change(layer=Rewired(frozenset((tool.name,)), tuple(added)))


def _copy(tool: Tool, name: str, right: str, said: Words) -> Tool:
    text = tool.description + said["copy"].format(right=right)
    return tool.with_(name=name, description=text, authority=-1)


def _brings(scene: Scene, tool: Tool, value: str) -> bool:
    calls = (step for step in scene.calls if step.name == tool.name)
    if not scene.own_tools:
        return any(value in step.text for step in calls)
    told = [leaf for result in _results(scene, tool) for _, leaf in _keyed(result)]
    return any(as_answer(leaf) == value or _has(str(leaf), value) for leaf in told)


# -- what an old copy of somebody else's result says -------------------------------------------


def _parts(answer: str) -> tuple[str, ...]:
    """An answer, and what it is made of where it says several things."""
    return tuple(dict.fromkeys((answer, *re.split(r", |; |\n", answer))))


def _disagreeing(scene: Scene, tools: Sequence[Tool], answers: set[str]) -> Former:
    """The old copy of a tool with which the task ends in a wrong answer."""
    for tool in tools:
        former = Former(tool, _former_texts(scene, tool, answers))
        believed = Rewired(frozenset((tool.name,)), ((tool, former),))
        changed = scene.with_(layers=(*scene.layers, believed))
        last = changed.rehearsal[-1]
        end: End = "answered" if last.kind == "answer" else "refused"
        if not regrade(changed, changed.rehearsal, end).passed:
            return former
    raise NotApplicable(
        f"an old copy of {tools[0].name} would give the same answer: no other value is known that "
        "it could have in the place of what the answer says"
    )


def _former_texts(scene: Scene, tool: Tool, answers: set[str]) -> dict[str, str]:
    """For the texts of a tool's results by which the task is answered, what an old copy says."""
    seen: dict[str, list[str]] = {}
    for key, text in (pair for data in scene.known_results(tool.name) for pair in _keyed(data)):
        seen.setdefault(key, []).append(str(text))
    found: dict[str, str] = {}
    told = [pair for data in _results(scene, tool) for pair in _keyed(data)]
    texts = {text: key for key, text in told if isinstance(text, str)}
    for text, key in texts.items():
        for answer in filter(None, answers):
            needed = text if _has(answer, text) else answer if _has(text, answer) else ""
            known = [one for one in seen.get(key, ()) if one and needed == text]
            offers = (*(one for one in known if one not in texts), near(needed), *known)
            other = next((one for one in offers if one != needed), needed)
            if other != needed:
                found.setdefault(needed, other)
    return found


def _has(text: str, words: str) -> bool:
    """Whether some words stand in a text."""
    return bool(words) and re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text) is not None


def near(text: str) -> str:
    """A text with another digit at the end of its first number; the same where it has none."""
    number = re.search(r"\d+", text)
    if number is None:
        return text
    first, last = number[0][:-1], number[0][-1]
    other = {"0": "1", "1": "0" if first else "2"}.get(last) or str(int(last) - 1)
    return text[: number.start()] + first + other + text[number.end() :]


def _results(scene: Scene, tool: Tool) -> list[Any]:
    """The data that the oracle's calls of a tool brought."""
    return [p.result.data for p in replay(scene).all if p.step.name == tool.name and p.result.ok]


def _keyed(data: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """The single values of JSON data, at every depth, with the key under which each stands."""
    if isinstance(data, dict):
        for name, value in data.items():
            yield from _keyed(value, name)
    elif isinstance(data, list):
        for value in data:
            yield from _keyed(value, key)
    elif data is not None:
        yield key, data


# -- incomplete information --------------------------------------------------------------------

FORGOTTEN = {
    "train": ("my usual {}", "I do not remember; it is in my profile.", "get_profile"),
    "dev": ("the {} I saved", "No idea any more, but I saved it.", "read_saved_details"),
    "test": ("whichever {} is on file", "That should be on file somewhere.", "customer_file"),
}


@shift(
    tier="reasoning",
    dimension="query",
    level=2,
    order=1,
    version=2,
    one_level=True,
    imitates="Saved preferences moved to GET /profile; clients should stop asking for them.",
)
def incomplete_information(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Leave out a detail that the user does not know; a documented profile tool has it."""
    return forgotten(scene, rng, 1)


def forgotten(scene: Scene, rng: Random, count: int) -> Change:
    """The change that leaves out so many details that only a profile tool has."""
    turn = len(scene.asks) - 1
    ask = scene.asks[turn]
    facts = scene.world.facts
    slots = [s for s, v in ask.goal.items() if isinstance(v, str) and s in facts]
    if len(slots) < count:
        raise NotApplicable(f"the request has {len(slots)} detail(s) that could be left out")
    chosen = rng.sample(slots, count)
    vague, shrug, name = FORGOTTEN[scene.task.pool]
    goal = {**ask.goal, **{slot: vague.format(facts[slot].label) for slot in chosen}}
    text = reword(scene, turn, goal)
    if text is None:
        raise NotApplicable("the request is no longer in one of its phrasings")
    if any(
        str(ask.goal[slot]).lower() in said.text.lower()
        for said in (*scene.asks[:turn],)
        for slot in chosen
    ):
        raise NotApplicable("the user has said it in an earlier turn")
    named = ", ".join(facts[slot].label for slot in chosen)
    profile = Tool(
        name,
        f"What is known of the user: {named}",
        (),
        tuple(Field((slot,), slot) for slot in chosen),
        channels=frozenset(("name", DESCRIPTION)),
    )
    values = {slot: ask.goal[slot] for slot in chosen}
    replies = {**ask.replies, **dict.fromkeys(chosen, shrug)}
    asks = (*scene.asks[:turn], replace(ask, text=text, replies=replies))
    return Change(asks=asks, layer=Rewired(frozenset(), ((profile, Profile(values)),)))

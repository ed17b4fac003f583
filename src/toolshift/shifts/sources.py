"""Where the truth stands: in one of two sources that disagree, or with a tool and not the user.

Both need a step of thought that the clean task does not: to weigh what the documentation says of
the sources, or to look up what the user cannot say.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from toolshift.core.names import short
from toolshift.core.scene import Scene, reword
from toolshift.core.shift import Change, NotApplicable, Severity, shift
from toolshift.core.tool import DESCRIPTION, Field, Tool
from toolshift.shifts.dependency import Words, used, words
from toolshift.shifts.rewiring import Part, Profile, Rewired, Stale

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
    deciding = [t for t in tools if any(_brings(scene, t, answer) for answer in answers)]
    if not deciding:
        raise NotApplicable("no single lookup brings the answer")
    tool = rng.choice(deciding)
    said = words("sources", scene, rng)
    names = [short(f"{tool.name}_{word}") for word in said["copies"]]
    if severity == 1:
        only = _copy(tool, names[0], tool.name, said)
        return Change(layer=Rewired(frozenset(), ((only, Stale(tool, said["copies"][0])),)))
    right = short(said["right"].format(tool=tool.name))
    live = tool.with_(
        name=right, description=said["text"].format(text=tool.description), authority=1
    )
    old = tool.with_(description=tool.description + said["old"].format(right=right), authority=-1)
    added: list[tuple[Tool, Any]] = [(old, Stale(tool, "old")), (live, Part(tool, tool.returns))]
    for name in names[: severity - 1]:
        added.append((_copy(tool, name, right, said), Stale(tool, name)))
    return Change(layer=Rewired(frozenset((tool.name,)), tuple(added)))


def _copy(tool: Tool, name: str, right: str, said: Words) -> Tool:
    text = tool.description + said["copy"].format(right=right)
    return tool.with_(name=name, description=text, authority=-1)


def _brings(scene: Scene, tool: Tool, value: str) -> bool:
    return any(step.name == tool.name and value in step.text for step in scene.calls)


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

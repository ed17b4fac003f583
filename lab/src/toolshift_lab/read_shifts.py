"""Shifts that take apart what a rewrite of a server does, to ask what a model reads.

They are of no tier, so no suite draws them; a study composes them with `identity_erasure` and its
like. `schema_noise` is `surplus_parameter` and `padded_description` on the tools that a task needs.
"""

from __future__ import annotations

import re
from random import Random
from typing import Any

from toolshift.core.scene import Scene
from toolshift.core.shift import Change, NotApplicable, Severity, shift
from toolshift.core.tool import Field, Param, Result, Tool
from toolshift.shifts import wording
from toolshift.shifts.action import change, described, free_names, names_of, padded, reach
from toolshift.shifts.surface import Surface
from toolshift.worlds.registry import find_world

LENDER = {"poi": "retail", "retail": "medical", "medical": "poi"}
"""For each world, the one whose tools stand beside its own in a padded list; for others `poi`."""
LENDER_IN_TRAINING = {"poi": "medical", "retail": "poi", "medical": "retail"}
"""The third world, for training."""
BY_DATA = {
    "train": ("Given {takes}, answers with {gives}.", "and"),
    "dev": ("Turns {takes} into {gives}.", "plus"),
    "test": ("{gives}: that is what comes back for {takes}.", "as well as"),
}
"""How a description is written from what a tool takes and gives, and what joins two things."""
OTHERWISE = {
    "city": "town to look in",
    "category": "which sort of sight",
    "place_name": "what the sight is called",
    "place_id": "code of the sight",
    "day": "which weekday",
    "origin": "point of departure",
    "slot_id": "code of the appointment",
    "visit_id": "code of the tour",
    "party_size": "how many come along",
    "budget_total": "sum in EUR",
}
"""What values of the world `poi` are called by `retold_parameters`, without a word of before."""


@shift(
    tier="none",
    dimension="action",
    level=1,
    imitates="A server whose documentation is generated anew from its schemas",
)
def described_by_data(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Describe tools by what they take and give: one, all needed or all shown; no word of before.

    Another generator than that of `description_paraphrase`, on which models are trained: nothing of
    the old sentence is kept.
    """
    hit = reach(scene, rng, severity, lambda tool: bool(tool.description and tool.returns))
    text, joint = BY_DATA[scene.task.pool]
    said = {}
    for tool in hit:
        takes = [_plain(str(p.schema.get("description", p.name))) for p in tool.params]
        gives = [_value(scene, field) for field in tool.returns]
        sentence = text.format(takes=_listed(takes, joint), gives=_listed(gives, joint))
        said[tool.name] = sentence[0].upper() + sentence[1:]
    return change(Surface(descriptions=said, was=described(hit)))


def _plain(text: str) -> str:
    """What is said of a parameter, amid a sentence."""
    return (text[:1].lower() + text[1:]).removesuffix(".")


def _value(scene: Scene, field: Field) -> str:
    """What a value of a result is called."""
    fact = scene.world.facts.get(field.fact)
    return fact.label if fact else field.path[-1].replace("_ref", " reference").replace("_", " ")


def _listed(parts: list[str], joint: str) -> str:
    """Things in a sentence."""
    *rest, last = parts or ["nothing"]
    return f"{', '.join(rest)} {joint} {last}" if rest else last


@shift(
    tier="none",
    dimension="action",
    level=1,
    order=2,  # below the surface, so that `described_by_data` tells of these texts
    imitates="A server whose documentation is generated anew from its schemas",
)
def retold_parameters(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Describe parameters in other words than before: for measuring, since no pool has its own."""
    pool, facts = scene.task.pool, scene.world.facts
    own = OTHERWISE if scene.task.world.partition("-")[0] == "poi" else {}
    plain = {_said(param) for tool in scene.world.tools for param in tool.params}

    def retold(tool: Tool) -> list[Param]:  # what another change has said of a parameter stays
        return [param for param in tool.params if _said(param) in plain or not plain]

    def tell(param: Param) -> str:
        label = facts[param.fact].label if param.fact in facts else param.name.replace("_", " ")
        other = own.get(param.fact) or wording.reword_text(label, pool)
        return f"{other[:1].upper()}{other[1:]}."

    hit = reach(scene, rng, severity, lambda tool: bool(retold(tool)))
    said = {tool.name: {param.name: tell(param) for param in retold(tool)} for tool in hit}
    return change(Surface(param_descriptions=said))


def _said(param: Param) -> str:
    """What is said of a parameter."""
    return str(param.schema.get("description", ""))


@shift(
    tier="none",
    dimension="action",
    level=1,
    imitates="A server whose tool descriptions are rewritten with every release",
)
def retold_description(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Tell descriptions anew, for training: other words here and there, in one of many frames.

    Each word is replaced or kept by chance, so that no sentence is met often: what is met often is
    learned by heart.
    """
    pool = scene.task.pool
    hit = reach(scene, rng, severity, lambda tool: bool(tool.description))

    def tell(text: str) -> str:
        words = re.split(r"( )", text.removesuffix("."))
        told = "".join(_told(word, pool, rng) for word in words)
        frame = rng.choice(RETOLD)
        if not frame.startswith("%s"):
            told = told[:1].lower() + told[1:]
        return frame.replace("%s", told)

    return change(
        Surface(descriptions={t.name: tell(t.description) for t in hit}, was=described(hit))
    )


RETOLD = (
    "%s", "%s.", "Use this to: %s.", "For callers who need this: %s.", "%s (see the handbook).",
    "Service call. %s.", "%s; returns JSON.", "Step of the travel desk: %s.", "Does one thing: %s.",
    "Here you get the following. %s.", "%s, for any client.", "Task: %s", "%s. Read the result.",
    "What it covers: %s.", "Endpoint of our platform for this: %s.", "%s, nothing more.",
)  # fmt: skip
"""Frames of training; those of the development and test pools are in `perception.toml`."""
KEEPS = 0.5
"""How likely a word stays as it is."""


def _told(word: str, pool: str, rng: Random) -> str:
    """A word, or another of its meaning from one of the pool's name sets."""
    if rng.random() < KEEPS or not word.isalpha():
        return word
    set_ = rng.randrange(wording.NAME_SETS)
    other = wording.reword_by_set(word.lower(), pool, set_)
    if other == word.lower():
        return word
    return other.capitalize() if word[0].isupper() else other


@shift(
    tier="none",
    dimension="action",
    level=1,
    order=2,  # below the surface, so that what renames or rewords every tool does so to these too
    imitates="A gateway that lists the tools of several servers, in any order",
)
def other_tools(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Shuffle the list amid tools of another domain: a third, two thirds or as many as ours."""
    return _among(scene, rng, severity, LENDER, shuffled=True)


@shift(
    tier="none",
    dimension="action",
    level=1,
    order=2,
    imitates="A client that adds another server, whose tools come after those of before",
)
def other_tools_last(scene: Scene, rng: Random, severity: Severity) -> Change:
    """List as many tools of another domain as `other_tools`, behind ours, which stay in order."""
    return _among(scene, rng, severity, LENDER, shuffled=False)


@shift(
    tier="none",
    dimension="action",
    level=1,
    order=2,
    imitates="A gateway that lists the tools of several servers, in any order",
)
def lent_tools(scene: Scene, rng: Random, severity: Severity) -> Change:
    """As `other_tools`, for training: the tools are of a third domain, which no test lends from."""
    return _among(scene, rng, severity, LENDER_IN_TRAINING, shuffled=True)


@shift(
    tier="none",
    dimension="action",
    level=1,
    order=2,
    imitates="A server that lists its tools in another order with every start",
)
def shuffled_list(scene: Scene, rng: Random, severity: Severity) -> Change:
    """List the same tools in another order, at every severity."""
    order = [tool.name for tool in scene.tools]
    rng.shuffle(order)
    return change(Surface(order=tuple(order)))


def _among(
    scene: Scene, rng: Random, severity: Severity, lenders: dict[str, str], *, shuffled: bool
) -> Change:
    """The tools of a scene beside some of the world that lends to its own."""
    lender = find_world(lenders.get(scene.task.world.partition("-")[0], "poi"))
    count = min(len(lender.tools), max(1, round(len(scene.tools) * severity / 3)))
    free = free_names(scene)
    lent = [_foreign(tool, free(tool.name)) for tool in rng.sample(lender.tools, count)]
    order = [tool.name for tool in (*scene.tools, *lent)]
    if shuffled:
        rng.shuffle(order)
    answers = {tool.name: Result(True, _answer(tool), tool.returns) for tool in lent}
    seed = rng.getrandbits(32)
    return change(Surface(extra=tuple(lent), answers=answers, order=tuple(order), seed=seed))


def _foreign(tool: Tool, name: str) -> Tool:
    """A tool of another domain: what it takes and gives are facts of its own."""
    params = tuple(
        Param(p.name, f"{name}.{p.fact}", p.schema, p.required, p.given, p.shapes, p.free)
        for p in tool.params
    )
    returns = tuple(
        Field(f.path, f"{name}.{f.fact}", f.type, f.scale, f.unit, f.minutes) for f in tool.returns
    )
    return tool.with_(name=name, params=params, returns=returns, effect="read", origin=())


def _answer(tool: Tool) -> Any:
    """An answer of the right form; the layer makes its values anew for every call."""
    record: dict[str, Any] = {}
    for field in tool.returns:
        place = record
        for key in field.path[:-1]:
            place = place.setdefault(key, {})
        place[field.path[-1]] = "AAAA-AAAA" if field.type == "string" else 12
    return [record] if tool.many else record


@shift(
    tier="none",
    dimension="action",
    level=1,
    imitates="A release that adds optional parameters: the commonest change of published servers",
)
def surplus_parameter(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Add one, two or three optional parameters without effect to each tool that is needed."""
    pool, hit = scene.task.pool, reach(scene, rng, 2)
    noise = [Param(p["name"], "", p["schema"], False) for p in wording.TABLES["surplus"][pool]]
    surplus = {
        tool.name: tuple(p for p in noise[:severity] if p.name not in names_of(tool))
        for tool in hit
    }
    if not any(surplus.values()):
        raise NotApplicable("the tools have parameters of these names already")
    return change(Surface(surplus=surplus))


@shift(
    tier="none",
    dimension="action",
    level=1,
    imitates="A minor release: documentation grows",
)
def padded_description(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Put one, two or three idle sentences behind the description of each tool that is needed."""
    hit = reach(scene, rng, 2)
    said = {tool.name: padded(tool, scene.task.pool, severity, rng) for tool in hit}
    return change(Surface(descriptions=said, was=described(hit)))

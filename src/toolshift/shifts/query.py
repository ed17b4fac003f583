"""Shifts: What the user says.

What is wanted stays the same, and so do the answer and the effects. A value that the text no
longer states is one that the user gives when asked.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from random import Random
from typing import Any

from toolshift.core.ask import Ask
from toolshift.core.fact import Fact, Goal
from toolshift.core.scene import Scene
from toolshift.core.shift import Change, NotApplicable, Severity, shift
from toolshift.core.world import Request
from toolshift.episode.budget import Budget
from toolshift.episode.user import answer as user_answers
from toolshift.shifts import wording
from toolshift.shifts.action import described, padded, reach
from toolshift.shifts.surface import Surface

Cut = Callable[[str, str], str]

# -- the same request in other words -----------------------------------------------------------


@shift(
    tier="perception",
    dimension="query",
    level=1,
    version=2,
    one_level=True,
    imitates="An assistant opens in a new market: the same requests arrive in other phrasings",
)
def query_paraphrase(scene: Scene, rng: Random, severity: Severity) -> Change:
    """State the requests in phrasings of a pool that is held out."""
    pool, far = scene.task.pool, rng.choice((1, 2, 3))
    return say(scene, [rephrase(scene, ask, pool, far, rng) for ask in scene.asks])


@shift(
    tier="perception",
    dimension="query",
    level=1,
    imitates="A mobile client is released: requests are now typed on small keyboards",
)
def query_typos(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Misspell a tenth, a third or two thirds of the words; the values are left intact.

    The words that name the wanted reference may be hit at severity 3 only.
    """
    share = {1: 0.1, 2: 0.33, 3: 0.67}[severity]
    texts = []
    for ask in scene.asks:
        kept = "" if severity == 3 else " ".join(wanted_words(scene, ask))
        spots = open_words(ask, kept)
        hit = set(rng.sample(spots, max(1, round(share * len(spots))))) if spots else set()
        texts.append(misspell(ask.text, hit, scene.task.pool, rng))
    return say(scene, texts)


@shift(
    tier="perception",
    dimension="query",
    level=1,
    version=2,
    imitates="A voice front end passes requests on as spoken: 'at our usual place'",
)
def query_ambiguity(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Replace one, two or three values by vague expressions; the user knows them when asked."""
    return leave_out(scene, rng, severity, vaguely(scene, rng))


def vaguely(scene: Scene, rng: Random) -> Cut:
    """What replaces a value of the scene by a vague expression."""
    return lambda marked, slot: put_vaguely(marked, slot, scene, "vague", rng)


@shift(
    tier="perception",
    dimension="query",
    level=1,
    version=2,
    imitates="A request form makes its fields optional, and people leave them empty",
)
def query_underspecification(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Leave one, two or three values out; the user gives them when asked."""
    return leave_out(scene, rng, severity, missing(scene, rng))


def missing(scene: Scene, rng: Random) -> Cut:
    """What leaves a value of the scene out."""

    def cut(marked: str, slot: str) -> str:
        shorter = _adjunct(slot).sub("", marked, count=1)
        return put_vaguely(shorter, slot, scene, "missing", rng)

    return cut


@shift(
    tier="perception",
    dimension="query",
    level=1,
    version=2,
    imitates="A support desk forwards whole e-mails in place of the subject line",
)
def query_redundancy(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Put one, three or five constraints around each request that sound plausible and bind nothing.

    They are about what no tool deals with, and say so.
    """
    return amid(scene, rng, "constraints", 2 * severity - 1)


def amid(scene: Scene, rng: Random, table: str, count: int) -> Change:
    """The change that puts so many sentences of a table around each request."""
    wanted = [value for ask in scene.asks for value in values(ask.goal)]
    request = " ".join(ask.text for ask in scene.asks)
    idle = [
        one
        for one in wording.TABLES[table][scene.task.pool]
        if one not in request and not any(states(one, value) for value in wanted)
    ]
    if len(idle) < count:
        raise NotApplicable("too few idle sentences are left that could not be misunderstood")
    texts = []
    for ask in scene.asks:
        chosen = rng.sample(idle, count)
        texts.append(" ".join([*chosen[count // 2 :], ask.text, *chosen[: count // 2]]))
    return say(scene, texts)


@shift(
    tier="none",
    dimension="none",
    level=1,
    imitates="A minor release: documentation grows and the listing is sorted anew",
)
def placebo(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Change nothing that should matter: another training phrasing, tool order, more documentation.

    The documentation is as much as `schema_noise` adds to descriptions at the same severity.
    """
    asks = scene.asks
    texts = [rephrase(scene, ask, "train", severity, rng) for ask in asks]
    hit = reach(scene, rng, severity)
    order = [tool.name for tool in scene.tools]
    rng.shuffle(order)
    surface = Surface(
        descriptions={tool.name: padded(tool, "train", severity, rng) for tool in hit},
        was=described(hit),
        order=tuple(order),
    )
    changed = tuple(replace(ask, text=text) for ask, text in zip(asks, texts, strict=True))
    return Change(layer=surface, asks=changed)


# -- phrasings ---------------------------------------------------------------------------------

_SLOT = re.compile(r"\{(\w+)\}")


def say(scene: Scene, texts: list[str]) -> Change:
    """The change that replaces the user's requests with these texts."""
    if texts == [ask.text for ask in scene.asks]:
        raise NotApplicable("no request of this scene can be said in this way")
    return Change(
        asks=tuple(replace(ask, text=text) for ask, text in zip(scene.asks, texts, strict=True))
    )


def request_of(scene: Scene, ask: Ask) -> Request | None:
    """The request of the task's kind that a turn states; None where a shift has changed it."""
    kind = scene.world.kinds.get(scene.task.kind)
    requests = kind.requests if kind else ()
    return next((request for request in requests if request.solve is ask.solve), None)


def fill(template: str, goal: Goal) -> str:
    """A phrasing with the values of a goal; slots that the goal lacks are left open."""
    return _SLOT.sub(lambda slot: str(goal.get(slot[1], slot[0])), template)


def template_in(scene: Scene, ask: Ask) -> str:
    """The phrasing that stands in a turn's text, perhaps amid other sentences; "" for none."""
    request = request_of(scene, ask)
    banks = request.phrasings.values() if request else ()
    templates = (
        one
        for bank in banks
        for one in bank
        if one.partition("{")[0] in ask.text and fill(one, ask.goal) in ask.text
    )
    return max(templates, key=len, default="")


def rephrase(scene: Scene, ask: Ask, pool: str, severity: int, rng: Random) -> str:
    """A turn in another phrasing of a pool: of the nearer, the middle or the further third."""
    request, now = request_of(scene, ask), template_in(scene, ask)
    if not request or not now:
        return ask.text
    others = _nearest_first(tuple(request.phrasings[pool]), now)
    if not others:
        return ask.text
    third = len(others) / 3
    other = rng.choice(others[int((severity - 1) * third) : int(severity * third)] or others)
    return ask.text.replace(fill(now, ask.goal), fill(other, ask.goal), 1)


@lru_cache(maxsize=4096)
def _nearest_first(bank: tuple[str, ...], now: str) -> tuple[str, ...]:
    """The other phrasings of a bank, the nearest to this one first."""
    others = (one for one in bank if one != now)
    return tuple(sorted(others, key=lambda other: (distance(other, now), other)))


def distance(one: str, other: str) -> int:
    """How many words stand in one of two texts only, counted as often as they stand there."""
    ours, theirs = _words(one), _words(other)
    return (ours - theirs).total() + (theirs - ours).total()


@lru_cache(maxsize=4096)  # each phrasing of a bank is compared with many
def _words(text: str) -> Counter[str]:
    """How often each word stands in a text."""
    return Counter(re.findall(r"\w+", text.lower()))


# -- values in a text --------------------------------------------------------------------------


def values(goal: Goal) -> list[Any]:
    """The values of a goal; each of two that contradict."""
    return [
        one for value in goal.values() for one in (value if isinstance(value, tuple) else (value,))
    ]


def states(text: str, value: object) -> bool:
    """Whether a text states a value, by the rule of the oracle's `user_said`."""
    if isinstance(value, str):
        return value.lower() in text.lower()
    return re.search(rf"(?<![\w.]){re.escape(str(value))}(?!\w|\.\d)", text) is not None


def mark(scene: Scene, ask: Ask) -> str:
    """A turn's text with its values as slots: by its phrasing, or where they stand literally."""
    template = template_in(scene, ask)
    if template:
        return ask.text.replace(fill(template, ask.goal), template, 1)
    text = ask.text
    for slot, value in sorted(ask.goal.items(), key=lambda item: -len(str(item[1]))):
        spot = re.compile(rf"(?<![\w.{{]){re.escape(str(value))}(?!\w|\.\d|}})")
        count = len(spot.findall(text))
        if count == 1 or (count and isinstance(value, str)):
            text = spot.sub(f"{{{slot}}}", text)
    return text


def leave_out(scene: Scene, rng: Random, count: int, cut: Cut, fewer: bool = False) -> Change:
    """Cuts as many values out of the requests, each of which the user must then be asked for."""
    if scene.rehearsal[-1].turn + count >= Budget().turns:
        raise NotApplicable("the questions would take more turns than there are")
    marked = [mark(scene, ask) for ask in scene.asks]
    # What a tool tells without being given anything is about the user, who need not be asked.
    told_by_tools = {f.fact for tool in scene.tools if not tool.needs for f in tool.returns}
    spots = [
        (turn, slot)
        for turn, ask in enumerate(scene.asks)
        for slot in sorted(set(_SLOT.findall(marked[turn])) - told_by_tools)
        if can_be_asked(ask, slot, scene.world.facts)
    ]
    rng.shuffle(spots)
    left = count
    for turn, slot in spots:
        shorter = [*marked[:turn], cut(marked[turn], slot), *marked[turn + 1 :]]
        shown = "\n".join([scene.system, *fill_all(shorter[: turn + 1], scene)])
        if left and not states(shown, scene.asks[turn].goal[slot]):
            marked, left = shorter, left - 1
    if left == count:
        raise NotApplicable("there is no value that only the user could give if it were left out")
    if left and not fewer:
        raise NotApplicable(f"of {count} values only {count - left} could be left out")
    return say(scene, fill_all(marked, scene))


def fill_all(marked: list[str], scene: Scene) -> list[str]:
    """The texts of the first turns, their slots filled."""
    return [fill(text, ask.goal) for text, ask in zip(marked, scene.asks, strict=False)]


def can_be_asked(ask: Ask, slot: str, facts: Mapping[str, Fact]) -> bool:
    """Whether the plain question for a slot gets its value from the user."""
    if slot not in facts or slot in ask.replies or isinstance(ask.goal.get(slot), tuple):
        return False
    return user_answers(f"What is the {facts[slot].label}?", ask, facts).slot == slot


def put_vaguely(marked: str, slot: str, scene: Scene, table: str, rng: Random) -> str:
    """A marked text with a slot replaced by an expression of the scene's pool."""
    fact, goal = scene.world.facts[slot], next(a.goal for a in scene.asks if slot in a.goal)
    number, noun = isinstance(goal[slot], (int, float)), thing(fact)
    phrase = wording.pick(f"{table}_number" if number else table, scene.task.pool, rng)
    bare = noun if table == "missing" else phrase.split(" ", 1)[-1]
    nouns = "|".join({"born", *fact.label.split()} - {"of", "the"})
    before = rf"(?P<noun>(?:\bthe )?\b(?i:{nouns}) )?(?P<lead>\b(?:{_LEADS}|\w+est) )?"

    def put(spot: re.Match[str]) -> str:
        lead = spot["lead"] or ""
        words = phrase if number or lead in ("", "the ", "a ", "an ") else lead + bare
        words = (lead if number else "") + words.replace("%s", noun)
        return words[0].upper() + words[1:] if (spot[0] + "{")[0].isupper() else words

    return re.sub(rf"{before}\{{{slot}\}}", put, marked)


_LEADS = "the|a|an|every|each|all|any|one|rated|expensive"
"""Words after which an expression goes without an article of its own."""


def thing(fact: Fact) -> str:
    """What a fact is of, as a short noun: "place" for "name of the place"."""
    head, _, rest = fact.label.partition(" of ")
    if head in ("name", "id", "identifier") and rest:
        return rest.removeprefix("the ")
    return fact.label if head in ("kind", "type", "number", "day", "date") else head


def _adjunct(slot: str) -> re.Pattern[str]:
    """The part of a sentence that goes with a value: " at {slot_time}", " ({city})"."""
    lead = "(?: (?:over |down |out )?(?:in|at|on|of|from|for|to|by)|, starting at)"
    value = rf"\{{{slot}\}}(?: people| heads| units| mg)?"
    goes_on = "(?! (?:and|or) (?!tell|give|send|read|quote|report))(?![\\w-])"
    return re.compile(
        rf",? \(?born (?:on )?{value}\)?| \({value}\)"
        rf"|(?<!tarting)(?<!born){lead} {value}{goes_on}"
    )


# -- words of a text ---------------------------------------------------------------------------


def wanted_words(scene: Scene, ask: Ask) -> frozenset[str]:
    """The words that every phrasing of a request has: those that name what is wanted."""
    request = request_of(scene, ask)
    if request is None:
        return frozenset(("reference", "code"))
    return _in_all(tuple(one for bank in request.phrasings.values() for one in bank))


@lru_cache(maxsize=256)
def _in_all(phrasings: tuple[str, ...]) -> frozenset[str]:
    """The words that every one of some phrasings has."""
    return frozenset.intersection(*(frozenset(re.findall(r"\w+", one)) for one in phrasings))


def open_words(ask: Ask, kept: str) -> list[int]:
    """Where the words begin that may be misspelt: long ones, in no value, and not `kept`."""
    text, closed = ask.text, set(kept.lower().split())
    taken = {
        place
        for value in values(ask.goal)
        for spot in re.finditer(re.escape(str(value)), text, re.IGNORECASE)
        for place in range(*spot.span())
    }
    return [
        word.start()
        for word in re.finditer(r"\b[A-Za-z]{4,}\b", text)
        if word[0].lower() not in closed and word.start() not in taken
    ]


def misspell(text: str, places: set[int], pool: str, rng: Random) -> str:
    """A text with a slip in each of the words that begin at these places."""

    def slip(word: re.Match[str]) -> str:
        return wording.typo(word[0], pool, rng) if word.start() in places else word[0]

    return re.sub(r"\b[A-Za-z]{4,}\b", slip, text)

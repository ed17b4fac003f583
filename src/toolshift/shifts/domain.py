"""The domain, its rules and its limits: an unseen world, new rules, tasks that cannot be done.

Every kind of unsolvable task stands beside a solvable one that looks the same until the decisive
evidence, so that refusing by reflex costs as much as never refusing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from random import Random
from typing import Any

import msgspec

from toolshift.core import seed as seeds
from toolshift.core.ask import Ask
from toolshift.core.layer import Below, Layer, Memory
from toolshift.core.scene import Outcome, Scene, kind_of, reword
from toolshift.core.shift import Change, NotApplicable, Severity, shift
from toolshift.core.tool import Hint, Param, Result, Tool, error
from toolshift.episode.draw import make_scene, phrase, settle
from toolshift.episode.truth import solve_in_truth
from toolshift.shifts.dependency import used
from toolshift.shifts.oracle_trace import replay
from toolshift.shifts.rewiring import Rewired
from toolshift.worlds.registry import find_world

TEXTS: dict[str, dict[str, tuple[str, ...]]] = {
    "train": {
        "busy": (
            "The service is temporarily unavailable. Repeat the call.",
            "The server has too much to do. Please retry.",
            "No connection was free in the pool. Retry in a second.",
            "Timeout while a worker was awaited; you may call again.",
            "The node is restarting. Call it again.",
            "Overload protection is active. Send the same thing again.",
            "Another session held the lock. Try the same call again.",
            "Short maintenance window. Please repeat.",
            "Too many callers at the moment. Once more, please.",
            "The cache was being rebuilt. Ask again.",
            "A replica fell behind; a second try reads from another.",
            "Lost the connection to the database for a moment. Retry the call.",
            "Deployment in progress. Try again right away.",
            "The request was shed under load. Repeat it as it is.",
        ),
        "dead": (
            "The service has shut down permanently. There is no way to complete this call.",
            "This system was switched off and will not come back.",
            "The contract with the provider has ended; the data are not available to anyone now.",
            "All records behind this function were deleted and cannot be restored.",
            "The facility burned down. No further calls will be served.",
            "The office behind this was closed. It takes no more orders, now or later.",
            "The vendor went out of business, so this can never be completed.",
            "Service retired, without replacement. Calls are not processed any longer.",
            "The data centre was dismantled. Nothing here can be fetched, now or ever.",
            "Permanently closed by order of the court. No data are given out.",
            "This was the last copy, and it is destroyed. The request cannot be served.",
            "Our company has ceased to exist. Nobody will process this.",
            "Switched off for good on Friday. There is no other source.",
            "The archive was erased by mistake and there is no copy of it.",
            "End of service. What you ask for cannot be had any more.",
            "Fatal: the storage is lost, recovery was given up.",
            "The licence to these data was withdrawn for ever; no one may read them.",
            "This function ended with the old system. It has no equivalent.",
        ),
        "withdrawn": (
            "These tools have been withdrawn and will not return: {names}.",
            "Not available from now on, and not coming back: {names}.",
            "The following were taken out of the toolset permanently: {names}.",
            "Access to these tools has ended, there are no others for it: {names}.",
            "Discontinued without replacement: {names}.",
            "Deleted from the catalogue, with no other way to do the same: {names}.",
            "No longer offered, and nothing will take over: {names}.",
            "We have removed {names}. There is no other way to do this.",
            "Switched off for ever: {names}.",
            "The owner has taken back {names} and gives nothing in return.",
            "{names}: out of use from this minute, without substitute.",
            "Licence ended for {names}. Nothing else does the same.",
            "These are gone for good: {names}.",
            "Tools lost in the incident, not to be rebuilt: {names}.",
        ),
        "rule": (
            "The code of the rule in force is {code}.",
            "The rule has been updated. From now on its code is {code}.",
        ),
    },
    "dev": {
        "busy": ("Backend overloaded; try once more.",),
        "dead": ("Backend decommissioned for good; the operation cannot be carried out any more.",),
        "withdrawn": ("Removed today without a successor: {names}.",),
        "rule": (
            "House rules apply under code {code}.",
            "New house rules just took effect, code {code}; older codes are void.",
        ),
    },
    "test": {
        "busy": ("Gateway hiccup, kindly reissue the request.",),
        "dead": ("Gateway closed for ever, nobody will answer this request again.",),
        "withdrawn": ("Gone from this interface, nothing takes their place: {names}.",),
        "rule": (
            "Regulation {code} governs this session.",
            "Regulation {code} has replaced the former one as of this moment.",
        ),
    },
}


def said(scene: Scene, what: str) -> str:
    """What is said of it in this scene, in the words of its pool."""
    return seeds.rng(scene.task.id, "said", what).choice(TEXTS[scene.task.pool][what])


@dataclass(frozen=True)
class Fatal(Layer):
    """A tool fails some times with an offer to retry, and then for good or not at all."""

    tool: str
    times: int
    fatal: bool
    busy: str
    dead: str

    def changes_results(self, tool: Tool) -> bool:
        """No: it fails, or calls as below."""
        return False

    def call(self, name: str, arguments: dict[str, Any], memory: Memory, below: Below) -> Result:
        if name != self.tool:
            return below(name, arguments)
        failures = memory.get("failures", 0)
        memory["failures"] = failures + 1
        if failures < self.times:
            return error("unavailable", self.busy, Hint("retry"), provoked=True)
        if self.fatal:
            return error("unavailable", self.dead, Hint("fatal"), provoked=True)
        return below(name, arguments)


@dataclass(frozen=True)
class Withdrawn(Layer):
    """Tools go after the first successful call, with a notice."""

    names: tuple[str, ...]
    text: str

    def phase(self, memory: Memory) -> int:
        return int(memory["calls"] > 0)

    def tools(self, tools: tuple[Tool, ...], memory: Memory) -> tuple[Tool, ...]:
        if not self.phase(memory):
            return tools
        return tuple(t.with_(retired=True) if t.name in self.names else t for t in tools)

    def changes_results(self, tool: Tool) -> bool:
        """No: it fails, or calls as below."""
        return False

    def call(self, name: str, arguments: dict[str, Any], memory: Memory, below: Below) -> Result:
        gone = self.phase(memory)
        notice = self.text.format(names=", ".join(self.names))
        if gone and name in self.names:
            return error("gone", notice, provoked=True)
        result = below(name, arguments)
        if gone or not self.phase(memory):
            return result
        return result.with_(notice=f"{result.notice} {notice}".strip())


@dataclass(frozen=True, eq=False)
class Policed:
    """Lets a call through that carries the code of the rule in force at this request."""

    tool: Tool
    codes: tuple[str, ...]

    def __call__(self, arguments: dict[str, Any], memory: Memory, below: Below) -> Result:
        own = {name: value for name, value in arguments.items() if name != "rule_code"}
        if arguments["rule_code"] != self.codes[memory["asks"]]:
            return error("rule_outdated", f"{arguments['rule_code']} is not the rule in force.")
        return below(self.tool.name, own)


CONTRADICTION = {
    "train": " Note that the {label} has to be {value}.",
    "dev": " And mind you, {value} for the {label}.",
    "test": " One condition: {label}, {value}.",
}
INSISTENCE = {
    "train": (" I am sure about it.", " I have checked the spelling."),
    "dev": (" We dealt with it only last week.", " The details are exactly as I gave them."),
    "test": (" It was in the letter they sent.", " A friend swears by it."),
}
CHANGED_MIND = {
    "train": "Sorry, I have changed my mind. ",
    "dev": "Hold on, scrap that one. ",
    "test": "Plans moved, so this instead: ",
}


# -- an unseen domain, and rules that change ---------------------------------------------------

_in_other_domain = lru_cache(maxsize=64)(make_scene)
"""Tasks of one index look at the same scenes of the other domain, at every severity."""


@shift(
    tier="internalization",
    dimension="domain",
    level=3,
    preserves="solvability",
    order=0,
    imitates="The assistant is rolled out to another business unit.",
)
def unseen_domain(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Ask for a task of another domain; severity is the length of its chain."""
    if scene.task.world == "medical" or scene.shifts:
        raise NotApplicable("this is the unseen domain" if not scene.shifts else "must come first")
    world, task = find_world("medical"), scene.task
    for kind in rng.sample(sorted(world.kinds), len(world.kinds)):
        other = _in_other_domain(world, kind, task.index, task.seed, task.pool, task.size)
        if min(3, max(1, len(other.calls) - 1)) == severity:
            moved = msgspec.structs.replace(other.task, lineage=task.lineage)
            return Change(
                world=world,
                truth=other.truth,
                asks=other.asks,
                outcome=other.outcome,
                system=other.system,
                task=moved,
            )
    raise NotApplicable("the other domain has no task of this length")


@shift(
    tier="internalization",
    dimension="domain",
    level=3,
    preserves="solvability",
    imitates="Policy update 14:00: calls carry the new rule code from now on.",
)
def rule_update(scene: Scene, rng: Random, severity: Severity) -> Change:
    """A rule of the domain is updated during a session of several tasks."""
    if len(scene.asks) > 1:
        raise NotApplicable("the session has several requests already")
    tool = used(scene)[-1]
    earlier = _other_goals(scene, rng)
    asks = [*(_ask(scene, next(earlier)) for _ in range(severity)), scene.asks[0]]
    codes = [seeds.code("rule", scene.task.id, number) for number in range(len(asks))]
    state, update = TEXTS[scene.task.pool]["rule"]
    schema = {"type": "string", "description": "Code of the rule in force."}
    policed = tool.with_(
        params=(*tool.params, Param("rule_code", "rule_code", schema)),
        description=f"{tool.description}. Takes the code of the rule in force",
    )
    layer = Rewired(frozenset((tool.name,)), ((policed, Policed(tool, tuple(codes))),))
    settled, effects = settle(scene.world, scene.truth, tuple(asks))
    ruled = tuple(
        replace(
            ask,
            goal={**ask.goal, "rule_code": code},
            notice=update.format(code=code) if number else "",
        )
        for number, (ask, code) in enumerate(zip(settled, codes, strict=True))
    )
    system = f"{scene.system} {state.format(code=codes[0])}"
    return Change(layer=layer, asks=ruled, outcome=Outcome(effects), system=system)


@shift(
    tier="reasoning",
    dimension="query",
    level=3,
    preserves="solvability",
    imitates="Customers edit their request after the first reply in 1 of 5 chats.",
)
def intent_change(scene: Scene, rng: Random, severity: Severity) -> Change:
    """The user changes their mind after the first reply; severity is how often."""
    others = _other_goals(scene, rng)
    lead = CHANGED_MIND[scene.task.pool]
    asks = [*scene.asks]
    for _ in range(severity):
        following = _ask(scene, next(others))
        asks.append(replace(following, text=lead + following.text))
    settled, _ = settle(scene.world, scene.truth, (*scene.asks[:-1], asks[-1]))
    wanted = _effects(scene, (*scene.asks[:-1], asks[-1]))
    taken_back = tuple(e for a in asks[len(scene.asks) - 1 : -1] for e in _effects(scene, (a,)))
    moot = [replace(a, expected=None) for a in asks[len(scene.asks) - 1 : -1]]
    outcome = Outcome(wanted, forgiven=taken_back)
    return Change(asks=(*scene.asks[:-1], *moot, settled[-1]), outcome=outcome)


def _effects(scene: Scene, asks: tuple[Ask, ...]) -> tuple[Any, ...]:
    return solve_in_truth(scene.world, scene.truth, asks)[1]


def _other_goals(scene: Scene, rng: Random) -> Iterator[dict[str, Any]]:
    """Further goals of the scene's kind, each about another entity than those before."""
    entity = next(iter(scene.asks[-1].goal))
    seen = {scene.asks[-1].goal[entity]}
    for _ in range(400):
        goal = kind_of(scene).draw(scene.truth.db, rng)
        if goal is not None and goal[entity] not in seen:
            seen.add(goal[entity])
            yield goal
    raise NotApplicable("the world is too small for a second task of this kind")


def _ask(scene: Scene, goal: dict[str, Any]) -> Ask:
    choice = seeds.derive(scene.task.id, sorted(map(str, goal.values())))
    return phrase(kind_of(scene).requests[-1], goal, "train", choice)


# -- a fatal error, and a passing one ----------------------------------------------------------


@lru_cache(maxsize=64)  # several shifts of one scene ask
def indispensable(scene: Scene) -> tuple[Tool, ...]:
    """The tools that the oracle calls and cannot do without."""
    found = []
    for tool in used(scene):
        without = Rewired(frozenset((tool.name,)), ())
        steps = scene.with_(layers=(*scene.layers, without)).rehearsal
        if steps[-1].kind == "refuse":
            found.append(tool)
    return tuple(found)


def unsolvable(scene: Scene, reason: str) -> dict[str, Any]:
    """The edits that make a refusal the right end; writes of the way there are forgiven."""
    asks = (*scene.asks[:-1], replace(scene.asks[-1], expected=None))
    return {"asks": asks, "outcome": Outcome((), scene.outcome.effects, reason)}


def _failing(scene: Scene, severity: Severity, fatal: bool) -> Fatal:
    needed = indispensable(scene)
    if not needed:
        raise NotApplicable("no single tool is indispensable")
    return Fatal(needed[-1].name, severity, fatal, said(scene, "busy"), said(scene, "dead"))


@shift(
    tier="internalization",
    dimension="domain",
    level=3,
    preserves="nothing",
    order=2,
    imitates="Incident: the service is down for good, data cannot be recovered.",
)
def fatal_error(scene: Scene, rng: Random, severity: Severity) -> Change:
    """The last needed tool fails for good, after as many passing failures as the severity."""
    return Change(
        layer=_failing(scene, severity, fatal=True), **unsolvable(scene, "service_failure")
    )


@shift(
    tier="internalization",
    dimension="domain",
    level=2,
    order=2,
    imitates="Incident resolved: intermittent failures between 14:02 and 14:09.",
)
def fatal_error_lookalike(scene: Scene, rng: Random, severity: Severity) -> Change:
    """The same tool fails as often and in the same words, and then works."""
    return Change(layer=_failing(scene, severity, fatal=False))


# -- a tool that goes, needed or not -----------------------------------------------------------


def _withdrawn(scene: Scene, gone: Tool, bystanders: list[Tool], severity: Severity) -> Withdrawn:
    names = (gone.name, *(tool.name for tool in bystanders[: severity - 1]))
    return Withdrawn(names, said(scene, "withdrawn"))


def _bystanders(scene: Scene, rng: Random) -> list[Tool]:
    needed = {tool.name for tool in used(scene)}
    spare = [tool for tool in scene.tools if tool.name not in needed]
    return rng.sample(spare, len(spare))


@shift(
    tier="internalization",
    dimension="domain",
    level=3,
    preserves="nothing",
    order=2,
    version=2,
    one_level=True,
    imitates="The endpoint has been withdrawn; there is no replacement.",
)
def tool_gone(scene: Scene, rng: Random, severity: Severity) -> Change:
    """A needed tool is withdrawn after the first call, and another one with it."""
    plays = replay(scene)
    late = [name for name in plays.needed if plays.first(name).before > 0]
    later = [tool for tool in indispensable(scene) if tool.name in late]
    if not later:
        raise NotApplicable("no indispensable tool is first needed after the first result")
    layer = _withdrawn(scene, later[-1], _bystanders(scene, rng), severity)
    return Change(layer=layer, **unsolvable(scene, "tool_unavailable"))


@shift(
    tier="internalization",
    dimension="domain",
    level=2,
    order=2,
    version=2,
    one_level=True,
    imitates="Housekeeping: endpoints that nobody calls have been withdrawn.",
)
def tool_gone_lookalike(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Tools that the task does not need are withdrawn, with the same notice."""
    if not scene.solvable:
        raise NotApplicable("what an unsolvable task would have needed cannot be known")
    spare = _bystanders(scene, rng)
    if len(spare) < severity:
        raise NotApplicable("every tool is needed")
    return Change(layer=_withdrawn(scene, spare[0], spare[1:], severity))


# -- demands that contradict each other --------------------------------------------------------


def _contradiction(scene: Scene, rng: Random, count: int) -> tuple[Ask, dict[str, Any]]:
    """The last request with a second value for as many details, and what was wanted first."""
    ask, facts = scene.asks[-1], scene.world.facts
    asked = _sought(scene)
    slots = [s for s, v in ask.goal.items() if s in facts and s in asked and str(v) in ask.text]
    if len(slots) < count:
        raise NotApplicable(f"the request has {len(slots)} detail(s) that could contradict")
    chosen = rng.sample(slots, count)
    goals = _other_goals(scene, rng)
    doubled: dict[str, Any] = {}
    text = ask.text
    for slot in chosen:
        other = next((g[slot] for g in goals if str(g[slot]) not in text), None)
        if other is None:
            raise NotApplicable(f"there is no other {facts[slot].label}")
        doubled[slot] = (ask.goal[slot], other)
        sentence = CONTRADICTION[scene.task.pool]
        text += sentence.format(label=facts[slot].label, value=other)
    return replace(ask, text=text, goal={**ask.goal, **doubled}), doubled


def _sought(scene: Scene) -> set[str]:
    """The slots whose values the oracle uses in a call."""
    goal = scene.asks[-1].goal
    used_values = {str(v) for step in scene.calls for v in step.given.values()}
    return {slot for slot, value in goal.items() if str(value) in used_values}


@shift(
    tier="internalization",
    dimension="domain",
    level=3,
    preserves="nothing",
    order=2,
    version=2,
    one_level=True,
    imitates="Ticket: the customer insists on two incompatible options.",
)
def contradictory_request(scene: Scene, rng: Random, severity: Severity) -> Change:
    """The request states a detail twice, differently; asked, the user confirms both."""
    return contradicting(scene, rng, 1)


def contradicting(scene: Scene, rng: Random, count: int) -> Change:
    """The change that states so many details twice, both of which the user confirms."""
    ask, doubled = _contradiction(scene, rng, count)
    facts = scene.world.facts
    both = {
        slot: f"The {facts[slot].label} has to be {one} and it also has to be {other}."
        for slot, (one, other) in doubled.items()
    }
    torn = replace(ask, expected=None, replies={**ask.replies, **both})
    earlier = _effects(scene, scene.asks[:-1])  # a write with one of the two values is surplus
    forgiven = (*earlier, *scene.outcome.forgiven)
    outcome = Outcome((), forgiven, "contradictory_request")
    return Change(asks=(*scene.asks[:-1], torn), outcome=outcome)


@shift(
    tier="internalization",
    dimension="query",
    level=2,
    order=2,
    version=2,
    one_level=True,
    imitates="Ticket: the customer mistyped one option and corrected it when asked.",
)
def contradictory_request_lookalike(scene: Scene, rng: Random, severity: Severity) -> Change:
    """The same double request; asked, the user says which of the two is meant."""
    return clearing_up(scene, rng, 1)


def clearing_up(scene: Scene, rng: Random, count: int) -> Change:
    """The change that states so many details twice, of which the user then says which is meant."""
    ask, doubled = _contradiction(scene, rng, count)
    facts = scene.world.facts
    one = {slot: f"The {facts[slot].label} is {first}." for slot, (first, _) in doubled.items()}
    return Change(asks=(*scene.asks[:-1], replace(ask, replies={**ask.replies, **one})))


# -- something that does not exist -------------------------------------------------------------


def _absent(scene: Scene, rng: Random) -> Ask:
    """The last request about an entity that only a sister of this world has."""
    task, ask = scene.task, scene.asks[-1]
    sister = scene.world.truth(task.seed + 1, task.size, task.pool).db
    entity = next(iter(ask.goal))
    there: set[str] = set()
    for _ in range(60):
        goal = kind_of(scene).draw(sister, rng)
        goal = {**ask.goal, **_only(goal, entity)}
        text = reword(scene, len(scene.asks) - 1, goal)
        if text is None or repr(goal[entity]) in there:
            continue
        other = replace(ask, text=text, goal=goal, expected=None)
        outcome = Outcome((), (), "not_found")
        steps = scene.with_(asks=(*scene.asks[:-1], other), outcome=outcome).rehearsal
        if any(step.evidence == "not_found" for step in steps):
            return other
        there.add(repr(goal[entity]))
    raise NotApplicable("a sister world has nothing that is missing here")


def _only(goal: dict[str, Any] | None, entity: str) -> dict[str, Any]:
    return {entity: goal[entity]} if goal else {}


def _insisting(scene: Scene, ask: Ask, severity: Severity) -> Ask:
    return replace(ask, text=ask.text + "".join(INSISTENCE[scene.task.pool][: severity - 1]))


@shift(
    tier="internalization",
    dimension="domain",
    level=3,
    preserves="nothing",
    order=2,
    imitates="Support: customers ask about records that were never created.",
)
def no_such_entity(scene: Scene, rng: Random, severity: Severity) -> Change:
    """The request names something that does not exist; the user insists as severity rises."""
    if len(scene.asks) > 1:
        raise NotApplicable("an earlier request is about the same thing")
    ask = _insisting(scene, _absent(scene, rng), severity)
    subject = str(next(iter(ask.goal.values())))
    return Change(asks=(*scene.asks[:-1], ask), outcome=Outcome((), (), "not_found", subject))


@shift(
    tier="internalization",
    dimension="domain",
    level=3,
    preserves="solvability",
    order=2,
    imitates="Support: customers ask about records that are easily confused.",
)
def no_such_entity_lookalike(scene: Scene, rng: Random, severity: Severity) -> Change:
    """The request names something else that does exist, just as insistently."""
    if len(scene.asks) > 1:
        raise NotApplicable("an earlier request is about the same thing")
    _absent(scene, rng)  # only where the other can be made too: being asked at all tells nothing
    goal = next(_other_goals(scene, rng))
    text = reword(scene, 0, goal)
    if text is None:
        raise NotApplicable("the request is no longer in one of its phrasings")
    ask = _insisting(scene, replace(scene.asks[0], text=text, goal=goal), severity)
    settled, effects = settle(scene.world, scene.truth, (*scene.asks[:-1], ask))
    return Change(asks=settled, outcome=Outcome(effects))

"""Tasks that cannot be done, each beside a solvable one that looks the same.

They differ in the decisive evidence alone, so that refusing by reflex costs as much as never
refusing. The words are in `unsolvable.toml`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from random import Random
from typing import Any

from toolshift.core import seed as seeds
from toolshift.core.ask import Ask
from toolshift.core.layer import Below, Layer, Memory
from toolshift.core.scene import Outcome, Scene, kind_of, reword
from toolshift.core.shift import Change, NotApplicable, Severity, shift
from toolshift.core.tables import table_beside
from toolshift.core.tool import Hint, Result, Tool, error
from toolshift.episode.draw import settle
from toolshift.shifts.dependency import used
from toolshift.shifts.domain import effects, other_goals
from toolshift.shifts.oracle_trace import replay
from toolshift.shifts.rewiring import Rewired

TEXTS = table_beside(__file__, "unsolvable.toml")


def _said(scene: Scene, what: str) -> str:
    """What is said of it in this scene, in the words of its pool."""
    forms: list[str] = TEXTS[what][scene.task.pool]
    return seeds.rng(scene.task.id, "said", what).choice(forms)


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
    return Fatal(needed[-1].name, severity, fatal, _said(scene, "busy"), _said(scene, "dead"))


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
    return Withdrawn(names, _said(scene, "withdrawn"))


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
    goals = other_goals(scene, rng)
    doubled: dict[str, Any] = {}
    text = ask.text
    for slot in chosen:
        other = next((g[slot] for g in goals if str(g[slot]) not in text), None)
        if other is None:
            raise NotApplicable(f"there is no other {facts[slot].label}")
        doubled[slot] = (ask.goal[slot], other)
        sentence = TEXTS["contradiction"][scene.task.pool]
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
    earlier = effects(scene, scene.asks[:-1])  # a write with one of the two values is surplus
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
    more = TEXTS["insistence"][scene.task.pool][: severity - 1]
    return replace(ask, text=ask.text + "".join(more))


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
    goal = next(other_goals(scene, rng))
    text = reword(scene, 0, goal)
    if text is None:
        raise NotApplicable("the request is no longer in one of its phrasings")
    ask = _insisting(scene, replace(scene.asks[0], text=text, goal=goal), severity)
    settled, effects = settle(scene.world, scene.truth, (*scene.asks[:-1], ask))
    return Change(asks=settled, outcome=Outcome(effects))

"""Agents whose weakness strikes by chance at each encounter, and not in every one.

The planted agents fail at the first encounter with what they cannot do, so more of it changes
nothing for them. Those here are the same in part: each hint is followed by a chance of one half,
each tool's name is remembered by one half, each call slips by one in twelve. What severity
multiplies, they meet more often. All chances are derived from the task, so that an agent is the
same at each severity.
"""

from __future__ import annotations

import re
from typing import Any

from tests.strangers.held_out_agents import ByNameSolver, Competent, Desk, HeldOut
from toolshift.core import seed as seeds
from toolshift.core.solver import Impossible, Known, Solver
from toolshift.core.tool import DESCRIPTION, Result, Tool
from toolshift.episode.episode import Episode


def struck(episode: Episode, share: float, *what: object) -> bool:
    """Whether a weakness strikes at an encounter."""
    return seeds.rng("graded", episode.scene.task.lineage, *what).random() < share


class Graded(Competent):
    """The sound solver, which knows its episode."""

    @property
    def episode(self) -> Episode:
        """The episode."""
        return self.backend.episode  # type: ignore[attr-defined, no-any-return]

    def strikes(self, share: float, *what: object) -> bool:
        """Whether a weakness strikes at an encounter."""
        return struck(self.episode, share, *what)

    def trained(self, tool: Tool) -> Tool | None:
        """The tool as it was in training: of the same origin."""
        clean = self.episode.scene.clean.tools
        return next((t for t in clean if t.origin[:1] == tool.origin[:1]), None)


class _HalfNames(Graded):
    def speak(self, tool: Tool, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        clean = self.trained(tool)
        if clean is None or not self.strikes(0.5, "name", clean.name):
            return tool.name, arguments
        return clean.name, arguments


class HalfRemembersNames(HeldOut):
    """Calls half of the tools by the names they had in training."""

    name = "half_remembers_names"
    solver = _HalfNames


class _HalfOrder(Graded):
    def arguments(self, tool: Tool, env: Known) -> dict[str, Any]:
        clean = self.trained(tool)
        if clean is None or not self.strikes(0.5, "order", clean.name):
            return super().arguments(tool, env)
        known = {param.fact for param in clean.params}
        every = super().arguments(tool, env)
        return {p.name: every[p.name] for p in tool.params if p.name in every and p.fact in known}


class HalfRemembersOrder(HeldOut):
    """Passes half of the tools only what they took in training."""

    name = "half_remembers_order"
    solver = _HalfOrder


class _HalfByName(ByNameSolver):
    def route(
        self, fact: str, env: Known, many: bool = False, without: frozenset[str] = frozenset()
    ) -> Tool | None:
        sound = Solver.route(self, fact, env, many, without)
        if not struck(self.backend.episode, 0.5, "by name", fact):  # type: ignore[attr-defined]
            return sound
        return super().route(fact, env, many, without)


class HalfPicksByName(HeldOut):
    """Picks half of the tools by their names alone."""

    name = "half_picks_by_name"
    solver = _HalfByName


class _HalfDescribed(Graded):
    def route(
        self, fact: str, env: Known, many: bool = False, without: frozenset[str] = frozenset()
    ) -> Tool | None:
        dark = {
            tool.name
            for tool in self.backend.tools()
            if DESCRIPTION not in tool.channels and self.strikes(0.5, "described", *tool.origin)
        }
        return super().route(fact, env, many, without | dark)


class HalfNeedsDescriptions(HeldOut):
    """Cannot tell by its name alone what a tool does, for half of the tools."""

    name = "half_needs_descriptions"
    solver = _HalfDescribed


def bag(text: str) -> set[str]:
    """The words of a text."""
    return set(re.findall(r"[a-z]{2,}", text.lower()))


class _MatchesWords(ByNameSolver):
    def route(
        self, fact: str, env: Known, many: bool = False, without: frozenset[str] = frozenset()
    ) -> Tool | None:
        """The shown tool whose text shares most words with that of the tool of training."""
        clean = self.backend.episode.scene.clean.tools  # type: ignore[attr-defined]
        right = Solver.route(self, fact, env, many, without)
        meant = next((t for t in clean if right and t.origin[:1] == right.origin[:1]), right)
        if meant is None:
            return None
        wanted = bag(f"{meant.name} {meant.description}")

        def likeness(tool: Tool) -> float:
            said = bag(f"{tool.name} {tool.description}")
            return len(said & wanted) / max(1, len(said | wanted))

        offered = [tool for tool in self.backend.tools() if tool.name not in without]
        return max(offered, key=likeness, default=None)


class MatchesWords(HeldOut):
    """Picks the tool whose text shares most words with the one that it knows from training."""

    name = "matches_words"
    solver = _MatchesWords


class _SkimsDescriptions(Graded):
    def route(
        self, fact: str, env: Known, many: bool = False, without: frozenset[str] = frozenset()
    ) -> Tool | None:
        """The right tool, or one by chance of those whose descriptions begin alike."""
        right = super().route(fact, env, many, without)
        if right is None or not right.description:
            return right
        alike = [t for t in self.backend.tools() if t.description[:30] == right.description[:30]]
        rng = seeds.rng("graded", self.episode.scene.task.lineage, "skim", right.name)
        return rng.choice(sorted(alike, key=lambda tool: tool.name))


class SkimsDescriptions(HeldOut):
    """Reads the first 30 characters of descriptions, and takes by chance one of those alike."""

    name = "skims_descriptions"
    solver = _SkimsDescriptions


class _KnowsTrainingDocs(Graded):
    def route(
        self, fact: str, env: Known, many: bool = False, without: frozenset[str] = frozenset()
    ) -> Tool | None:
        scene = self.episode.scene
        known = set().union(*(bag(f"{t.name} {t.description}") for t in scene.clean.tools))

        def missed(tool: Tool) -> bool:
            said = re.findall(r"[a-z]{2,}", f"{tool.name} {tool.description}".lower())
            share = sum(word not in known for word in said) / max(1, len(said))
            return self.strikes(share, "docs", *tool.origin)

        dark = {tool.name for tool in self.backend.tools() if missed(tool)}
        return super().route(fact, env, many, without | dark)


class KnowsTrainingDocs(HeldOut):
    """Overlooks a tool by the share of words in its documentation that are new to it."""

    name = "knows_training_docs"
    solver = _KnowsTrainingDocs


class KnowsTrainingWords(HeldOut):
    """Misunderstands a request by the share of its words that stand in no phrasing of training."""

    name = "knows_training_words"
    solver = Graded

    def work(self, episode: Episode, desk: Desk) -> None:  # type: ignore[override]
        ask, kind = episode.ask_now, episode.scene.world.kinds[episode.scene.task.kind]
        bank = [text for request in kind.requests for text in request.phrasings["train"]]
        known = set().union(*map(bag, (*bank, *map(str, ask.goal.values()))))
        said = re.findall(r"[a-z]{2,}", ask.text.lower())
        share = sum(word not in known for word in said) / max(1, len(said))
        if struck(episode, share, "words"):
            episode.refuse("not_found")
            return
        super().work(episode, desk)


class _AsksOnce(Graded):
    def given(self, slot: str) -> Any:
        asked = sum(step.kind == "ask" for step in self.episode.steps)
        value = super().given(slot)
        now = sum(step.kind == "ask" for step in self.episode.steps)
        if now > asked >= 1:
            raise Impossible("not_found")
        return value


class AsksOnce(HeldOut):
    """Asks the user one question, and gives up where it would need a second."""

    name = "asks_once"
    solver = _AsksOnce


class _HalfHintsDesk(Desk):
    def perceive(self, text: str, result: Result) -> tuple[str, Result]:
        met = len(self.episode.steps)
        if result.hint is None or not struck(self.episode, 0.5, "hint", met):
            return text, result
        return text, result.with_(hint=None)


class HalfFollowsHints(HeldOut):
    """Overlooks half of what results say of the way on: retries, pages, moves, new values."""

    name = "half_follows_hints"
    desk = _HalfHintsDesk


class HalfHearsChanges(HeldOut):
    """Misses half of the changes in a session: new rules, requests that replace the last one."""

    name = "half_hears_changes"

    def goal(self, episode: Episode, desk: Desk) -> dict[str, Any]:
        goal = episode.ask_now.goal
        turn = episode.scene.asks.index(episode.ask_now)
        before = desk.memory.get("goal", goal)
        missed = turn > 0 and struck(episode, 0.5, "change", turn)
        if "rule_code" in goal:
            code = before["rule_code"] if missed else goal["rule_code"]
            heard = {**goal, "rule_code": code}
        else:
            heard = before if missed and before.keys() == goal.keys() else goal
        desk.memory["goal"] = heard
        return heard


class _Slips(Graded):
    def speak(self, tool: Tool, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        words = sorted(key for key, value in arguments.items() if isinstance(value, str))
        if words and self.strikes(0.08, "slip", len(self.episode.steps)):
            return tool.name, {**arguments, words[0]: arguments[words[0]] + "x"}
        return tool.name, arguments


class SlipsAtTimes(HeldOut):
    """Mistypes an argument in every twelfth call or so."""

    name = "slips_at_times"
    solver = _Slips


GRADED: dict[str, type[HeldOut]] = {
    each.name: each
    for each in (
        HalfRemembersNames,
        HalfRemembersOrder,
        HalfPicksByName,
        HalfNeedsDescriptions,
        MatchesWords,
        SkimsDescriptions,
        KnowsTrainingDocs,
        KnowsTrainingWords,
        AsksOnce,
        HalfFollowsHints,
        HalfHearsChanges,
        SlipsAtTimes,
    )
}

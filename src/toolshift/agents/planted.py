"""Planted agents: sound solvers with one known weakness each, to test the instrument with.

A spec names weaknesses and their strength: `parrots`, `memorises_names@0.5` (active in half of
the episodes, chosen by a hash of the task), `never_refuses+gives_up`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from difflib import SequenceMatcher
from typing import Any

from toolshift.agents.kind import AgentKind
from toolshift.core import seed as seeds
from toolshift.core.errors import UsageError
from toolshift.core.message import CODE
from toolshift.core.names import unknown
from toolshift.core.solver import Impossible, Known, Solver
from toolshift.core.tool import Hint, Param, Result, Tool
from toolshift.episode.episode import Episode, Over
from toolshift.episode.oracle import EpisodeBackend
from toolshift.shifts import careless
from toolshift.shifts.careless import without_shapes


class PlantedSolver(Solver):
    """A solver that knows its episode, for the weaknesses to build on."""

    episode: Episode
    at_once = False
    """Whether the calls of a request are made in one turn."""

    def clean_tool(self, tool: Tool) -> Tool | None:
        """The tool as it was before any shift: of the same origin."""
        clean = self.episode.scene.clean.reachable
        return next((t for t in clean if t.origin == tool.origin), None)

    def codes_seen(self) -> list[str]:
        """The codes in the results so far."""
        return [code for step in self.episode.steps for code in CODE.findall(step.text)]

    def end(self, answer: str | None, reason: str) -> None:
        """Ends the request: with an answer, or a refusal for a reason."""
        if answer is None:
            self.episode.refuse(reason)
        else:
            self.episode.answer(answer)

    def begin(self) -> None:
        """What comes before any work."""


class MemorisesNames(PlantedSolver):
    """Calls every tool by the name it had in training, whatever is shown."""

    def speak(self, tool: Tool, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        origin = tool.origin[0] if tool.origin else tool.name
        clean = self.clean_tool(tool)
        return (clean.name if clean else origin), super().speak(tool, arguments)[1]


class MemorisesOrder(PlantedSolver):
    """Gathers only the arguments that a tool needed in training, in the order of training."""

    def arguments(self, tool: Tool, env: Known) -> dict[str, Any]:
        clean = self.clean_tool(tool)
        if clean is None:
            return super().arguments(tool, env)
        now = {param.fact: param.name for param in tool.params}
        gathered = {p.name: p.given for p in tool.params if p.given is not None}
        for param in clean.params:
            with suppress(Impossible):  # what cannot be had is left out, and the call made anyway
                if param.required:
                    gathered[now.get(param.fact, param.name)] = self.require(param.fact, env)
        return gathered


class IgnoresResults(PlantedSolver):
    """Passes values from memory where it should pass what a result has just said."""

    def arguments(self, tool: Tool, env: Known) -> dict[str, Any]:
        arguments = super().arguments(tool, env)
        said = {str(value) for value in self.goal.values()}
        said |= {str(param.given) for param in tool.params}  # documented, so from no result
        return {
            name: _recalled(value) if isinstance(value, str) and value not in said else value
            for name, value in arguments.items()
        }


class Parrots(PlantedSolver):
    """Answers with the last code seen."""

    def end(self, answer: str | None, reason: str) -> None:
        seen = self.codes_seen()
        super().end(seen[-1] if answer is not None and seen else answer, reason)


class OffersAll(PlantedSolver):
    """Answers with every code seen, and leaves the choice to the user."""

    def end(self, answer: str | None, reason: str) -> None:
        seen = " or ".join(dict.fromkeys(self.codes_seen()))
        super().end(seen if answer is not None and seen else answer, reason)


class NeverRefuses(PlantedSolver):
    """Answers something, also when the request cannot be fulfilled."""

    def end(self, answer: str | None, reason: str) -> None:
        seen = self.codes_seen()
        made_up = seen[0] if seen else seeds.code("made up", self.episode.scene.task.id)
        super().end(made_up if answer is None else answer, reason)


class AlwaysRefuses(PlantedSolver):
    """Refuses everything at once."""

    def begin(self) -> None:
        raise Impossible("not_found")


class RepeatsItself(PlantedSolver):
    """Makes a failed call again and again."""

    def notice(self, result: Result) -> Hint | None:
        return super().notice(result) if result.ok else Hint("retry")


class GivesUp(PlantedSolver):
    """Stops at the first failed call."""

    def notice(self, result: Result) -> Hint | None:
        if not result.ok:
            raise Impossible("service_failure")
        return super().notice(result)


class Noisy(PlantedSolver):
    """Slips while copying: every third call or so has a mistyped argument."""

    def speak(self, tool: Tool, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        episode = self.episode
        rng = seeds.rng("slip", episode.scene.task.id, episode.trial, len(episode.steps))
        words = [key for key, value in arguments.items() if value and isinstance(value, str)]
        if words and rng.random() < 1 / 3:
            key = rng.choice(words)
            arguments = {**arguments, key: _mistyped(arguments[key], rng.randrange(99))}
        return super().speak(tool, arguments)


class IgnoresRequired(PlantedSolver):
    """Passes only the arguments that a tool took in training."""

    def arguments(self, tool: Tool, env: Known) -> dict[str, Any]:
        arguments = super().arguments(tool, env)
        clean = self.clean_tool(tool)
        if clean is None:
            return arguments
        facts = {param.fact for param in clean.params}
        kept = {p.name for p in tool.params if p.fact in facts or p.given == tool.operation}
        return {name: value for name, value in arguments.items() if name in kept}


class SkimsParameters(PlantedSolver):
    """Overlooks half of the required parameters that are new."""

    def arguments(self, tool: Tool, env: Known) -> dict[str, Any]:
        arguments = super().arguments(tool, env)
        clean = self.clean_tool(tool)
        if clean is None:
            return arguments
        known = {param.fact for param in clean.params}
        task = self.episode.scene.task.id
        seen = {
            p.name
            for p in tool.params
            if not p.required
            or p.fact in known
            or p.given == tool.operation
            or seeds.derive("skims", task, clean.name, p.fact) % 2
        }
        return {name: value for name, value in arguments.items() if name in seen}


class FixedTypes(PlantedSolver):
    """Writes every argument in the type that it had in training."""

    def speak(self, tool: Tool, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        kinds = ("object", "list", "text", "keys", "json")
        return super().speak(without_shapes(tool, kinds), arguments)


class FixedChoices(PlantedSolver):
    """Passes the choices that a parameter had in training."""

    def speak(self, tool: Tool, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        return super().speak(without_shapes(tool, ("choice",)), arguments)


class LikestChoices(PlantedSolver):
    """Passes the choice that looks most like what it means, whatever its documentation says."""

    def speak(self, tool: Tool, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        params = {p.name: p for p in tool.params if any(s.kind == "choice" for s in p.shapes)}
        guessed = {
            name: _likest(str(value), params[name]) if name in params else value
            for name, value in arguments.items()
        }
        return super().speak(without_shapes(tool, ("choice",)), guessed)


class AssumesDefaults(careless.AssumesDefaults, PlantedSolver):
    """Leaves out what a call can do without, whatever its default is now."""


class IgnoresUnits(careless.IgnoresUnits, PlantedSolver):
    """Takes every number and every time of day as it stands, and passes it on so."""


class NeverSearches(PlantedSolver):
    """Knows only the tools that it is shown, and never asks for more."""

    def look_further(self, queries: Iterable[str]) -> bool:
        return False


class CallsAtOnce(PlantedSolver):
    """Makes all calls of a request in one turn, and none of them again."""

    at_once = True

    def notice(self, result: Result) -> Hint | None:
        hint = super().notice(result)
        if hint is not None and hint.kind == "retry":
            raise Impossible("service_failure")
        return hint


class SearchesOnce(PlantedSolver):
    """Searches once with each words, and takes it that there is nothing but what that shows."""

    searches = 1


class CutsTheList(PlantedSolver):
    """Is given the first 40 tools alone, as by a client that cuts the list."""

    def offered(self) -> tuple[Tool, ...]:
        return super().offered()[:40]


class HalfMemory(PlantedSolver):
    """Calls half of the tools as they were in training: names, arguments, types and choices."""

    def speak(self, tool: Tool, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        clean = self.clean_tool(tool)
        if clean is None or seeds.derive("half", self.episode.scene.task.id, clean.name) % 2:
            return super().speak(tool, arguments)
        facts = {param.fact: param.name for param in clean.params}
        known = {p.name: facts[p.fact] for p in tool.params if p.fact in facts}
        return clean.name, {known[n]: value for n, value in arguments.items() if n in known}


PLANTED: dict[str, tuple[type[PlantedSolver], str]] = {
    "memorises_names": (MemorisesNames, "memorised_name"),
    "memorises_order": (MemorisesOrder, "wrong_order"),
    "ignores_results": (IgnoresResults, "invented_value"),
    "parrots": (Parrots, "ignored_result"),
    "offers_all": (OffersAll, "guessed_among_codes"),
    "never_refuses": (NeverRefuses, "answered_without_evidence"),
    "always_refuses": (AlwaysRefuses, "wrong_refusal"),
    "repeats_itself": (RepeatsItself, "repetition"),
    "gives_up": (GivesUp, "no_recovery"),
    "noisy": (Noisy, "bad_arguments"),
    "ignores_required": (IgnoresRequired, "bad_arguments"),
    "skims_parameters": (SkimsParameters, "bad_arguments"),
    "fixed_types": (FixedTypes, "bad_arguments"),
    "fixed_choices": (FixedChoices, "bad_arguments"),
    "likest_choices": (LikestChoices, "bad_arguments"),
    "assumes_defaults": (AssumesDefaults, "missed_page"),
    "ignores_units": (IgnoresUnits, "ignored_result"),
    "never_searches": (NeverSearches, "wrong_refusal"),
    "calls_at_once": (CallsAtOnce, "no_recovery"),
    "searches_once": (SearchesOnce, "wrong_refusal"),
    "cuts_the_list": (CutsTheList, "wrong_refusal"),
    "half_memory": (HalfMemory, "memorised_name"),
}
"""Every weakness, and the cause that a valid instrument must name for it."""

ALSO_RIGHT = {"memorises_order": "bad_arguments"}
"""A second cause that may come first: under `required_parameter` it leaves out what it knows."""


class PlantedAgent:
    """A sound solver with some weaknesses, each active in a share of the episodes."""

    def __init__(self, weaknesses: dict[str, float], name: str) -> None:
        self.weaknesses = weaknesses
        self.name = name

    def play(self, episode: Episode) -> None:
        """Works through the user's turns."""
        place = (episode.scene.task.lineage, episode.trial)
        active = [
            PLANTED[weakness][0]
            for weakness, share in self.weaknesses.items()
            if seeds.derive("active", weakness, *place) % 1000 < 1000 * share
        ]
        active.sort(key=lambda each: each is MemorisesOrder)  # it gathers, the others build on it
        solver: Any = type("Planted", (*active, PlantedSolver), {"episode": episode})
        try:
            while not episode.end:
                self._work(episode, solver)
        except Over:
            return

    def _work(self, episode: Episode, make: Any) -> None:
        backend = EpisodeBackend(episode, strict=False, at_once=make.at_once)
        solver = make(backend, episode.scene.world.facts, episode.ask_now.goal)
        answer, reason, asked = None, "", episode.asked
        try:
            solver.begin()
            answer = episode.ask_now.solve(solver, solver.root)
        except Impossible as impossible:
            reason = impossible.reason
        except (StopIteration, ValueError):
            reason = "not_found"
        if episode.asked == asked:  # else a question has ended the turn of a script
            solver.end(answer, reason)
            episode.next_turn()


def planted(spec: str) -> PlantedAgent:
    """The agent of a spec such as `parrots`, `gives_up@0.5` or `noisy+never_refuses`."""
    weaknesses = {}
    for part in spec.split("+"):
        name, _, share = part.partition("@")
        if name not in PLANTED:
            raise UsageError(unknown("planted agent", name, PLANTED))
        try:
            weaknesses[name] = float(share or 1)
        except ValueError:
            weaknesses[name] = -1.0
        if not 0 <= weaknesses[name] <= 1:
            raise UsageError(f"planted agent {part!r}: the strength must be from 0 to 1")
    return PlantedAgent(weaknesses, spec)


class _Planted(AgentKind):
    forms = {
        name: (made.__doc__ or "").strip().partition("\n")[0] for name, (made, _) in PLANTED.items()
    }
    takes = ()

    def make(self, spec: str, options: Mapping[str, Any]) -> PlantedAgent:
        """The weaknesses of the spec, put together."""
        return planted(spec)


KIND = _Planted()


def _recalled(value: str) -> str:
    """A value of the same form that is quite another one: other digits, or letters too."""
    rng = seeds.rng("recalled", value)
    number = sum(map(str.isdigit, value)) >= 3
    alphabets = ("0123456789",) if number else ("0123456789", "bcdfghjklm", "BCDFGHJKLM")

    def other(letter: str) -> str:
        same_kind = next((a for a in alphabets if letter in a), "")
        return rng.choice(same_kind.replace(letter, "")) if same_kind else letter

    return "".join(map(other, value))


def _likest(value: str, param: Param) -> str:
    """The choice that shares the longest run of letters with a value."""

    def likeness(choice: str) -> float:
        return SequenceMatcher(None, value.lower(), choice.lower()).ratio()

    return max(map(str, param.schema.get("enum", (value,))), key=likeness)


def _mistyped(value: str, draw: int) -> str:
    """A value with one letter too many."""
    place = draw % len(value) + 1
    return value[:place] + value[place - 1] + value[place:]

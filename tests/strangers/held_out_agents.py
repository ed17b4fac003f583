"""Twelve held-out planted agents: each is the oracle's own play with ONE known weakness.

Written without reading ToolShift's grading rules (grade.py, measure/causes.py,
measure/diagnosis.py) or its own planted agents (agents/planted.py). Every agent plays the episode
(`play(episode)`), because the competent policy is the oracle's, which is told the goal of the
request; calls, questions and ends go through the episode exactly as those of any agent do.
Most weaknesses are made at the *desk*: between what the interface says and what the solver reads.

    toolshift run --agent held_out_agents:FirstPageOnly --shift truncation:2

`AGENTS` maps short names to the classes; `weakness` says in plain words what is wrong.
"""

from __future__ import annotations

import re
from dataclasses import replace
from difflib import SequenceMatcher
from hashlib import blake2b
from typing import Any

from toolshift.core.render import read, show
from toolshift.core.solver import Impossible, Known, Solver, Untraceable
from toolshift.core.tool import Hint, Result, Tool
from toolshift.core.world import POOLS
from toolshift.episode.episode import Episode, Over
from toolshift.episode.oracle import EpisodeBackend, OracleAgent
from toolshift.shifts import wording

# -- what they share: the oracle, at a desk that can be distorted --------------------------------


class Desk(EpisodeBackend):
    """The oracle's desk, not strict: what a weak agent passes need not have been shown."""

    def __init__(self, episode: Episode) -> None:
        super().__init__(episode, strict=False)
        self.memory: dict[Any, Any] = {}  # lives as long as the episode

    def call(self, name: str, arguments: dict[str, Any]) -> tuple[str, Result]:
        text, result = super().call(name, arguments)
        return self.perceive(text, result)

    def perceive(self, text: str, result: Result) -> tuple[str, Result]:
        """What the agent makes of a result; a planted weakness may sit here."""
        return text, result


class Competent(Solver):
    """The oracle's solver, which does not insist on evidence for its choice of a tool."""

    desk: Desk

    def check_choice(self, tool: Tool) -> None:
        return


class HeldOut(OracleAgent):
    """Plays like the oracle; subclasses say what is wrong with them."""

    name = "competent"
    weakness = "none: the wrapped policy itself, for comparison"
    solver: type[Competent] = Competent
    desk: type[Desk] = Desk

    def play(self, episode: Episode) -> None:
        desk = self.desk(episode)
        try:
            while not episode.end:
                self.work(episode, desk)
        except Over:
            return

    def work(self, episode: Episode, desk: Desk) -> None:  # type: ignore[override]
        ask = episode.ask_now
        solver = self.solver(desk, episode.scene.world.facts, self.goal(episode, desk))
        try:
            answer = ask.solve(solver, solver.root)
        except Impossible as impossible:
            episode.refuse(impossible.reason)
            return
        except Untraceable:
            episode.refuse("tool_unavailable")
            return
        episode.answer(answer)
        episode.next_turn()

    def goal(self, episode: Episode, desk: Desk) -> dict[str, Any]:
        """The values of the request, as the agent understands them."""
        return episode.ask_now.goal


def reread(result: Result, data: Any, **changes: Any) -> tuple[str, Result]:
    """A result as the agent has it in mind: other data, in plain JSON."""
    kept = result.with_(data=data, form="json", notice="", **changes)
    return show(kept), kept


# -- 1. takes only the first result of a list ----------------------------------------------------


class FirstResultDesk(Desk):
    def perceive(self, text: str, result: Result) -> tuple[str, Result]:
        data = read(text, result)
        if not result.ok or not isinstance(data, list):
            return text, result
        paged = result.hint is not None and result.hint.kind == "page"
        return reread(result, data[:1], hint=None if paged else result.hint)


class FirstResultSolver(Competent):
    def records(self, fact: str, env: Known) -> list[Known]:
        records = super().records(fact, env)
        for record in records:  # the one it has is taken for the one that was asked for
            record.facts.update({k: v for k, v in self.goal.items() if k in record.facts})
            if "order_status" in record.facts:
                record.facts["order_status"] = "delivered"
        return records


class FirstResultOnly(HeldOut):
    """Takes the first result of every list for the one that is asked for, and sees no other."""

    name = "first_result_only"
    weakness = "takes only the first result of a list, whatever else is in it"
    solver = FirstResultSolver
    desk = FirstResultDesk


# -- 2. reads only the first page ----------------------------------------------------------------


class FirstPageDesk(Desk):
    def perceive(self, text: str, result: Result) -> tuple[str, Result]:
        paged = result.hint is not None and result.hint.kind == "page"
        return text, result.with_(hint=None) if paged else result


class FirstPageOnly(HeldOut):
    """Takes the first page of paged results for the whole list and never asks for the next."""

    name = "first_page_only"
    weakness = "reads only the first page of paged results"
    desk = FirstPageDesk


# -- 3. blind to notices -------------------------------------------------------------------------


class NoticeBlindDesk(Desk):
    def tools(self) -> tuple[Tool, ...]:
        """The tools as they stood at the start: that the list has changed goes unnoticed."""
        return self.memory.setdefault("tools", super().tools())

    def perceive(self, text: str, result: Result) -> tuple[str, Result]:
        announced = result.hint is not None and (result.ok or result.hint.kind == "use")
        return text, result.with_(hint=None) if announced else result


class NoticeBlind(HeldOut):
    """Ignores what it is told beside the data: notices, moves of tools, updates of rules."""

    name = "notice_blind"
    weakness = (
        "ignores system and tool notices: keeps the tools and the rule code of the start, does "
        "not follow 'use the other tool', 'more pages' or 'ask again for the rest'"
    )
    desk = NoticeBlindDesk

    def goal(self, episode: Episode, desk: Desk) -> dict[str, Any]:
        goal = episode.ask_now.goal
        if "rule_code" not in goal:
            return goal
        return {**goal, "rule_code": desk.memory.setdefault("rule_code", goal["rule_code"])}


# -- 4. blind to units ---------------------------------------------------------------------------


class UnitBlindDesk(Desk):
    def perceive(self, text: str, result: Result) -> tuple[str, Result]:
        return text, result.with_(fields=tuple(replace(f, scale=1.0) for f in result.fields))


class UnitBlind(HeldOut):
    """Takes every number as if its unit were the usual one, whatever the key says."""

    name = "unit_blind"
    weakness = "takes numbers as if the unit never changed"
    desk = UnitBlindDesk


# -- 5. stale after the user's change ------------------------------------------------------------

SCRAPPED = re.compile(r"^(sorry, i have changed my mind|hold on, scrap that one)", re.IGNORECASE)


class StaleSolver(Competent):
    def perform(self, tool: Tool, arguments: dict[str, Any]) -> tuple[Any, Result]:
        """As usual, but a write that has been made is not made again."""
        key = ("written", tool.name, tuple(sorted(arguments.items())))
        if tool.effect == "write" and key in self.backend.memory:
            return self.backend.memory[key]
        found = super().perform(tool, arguments)
        if tool.effect == "write":
            self.backend.memory[key] = found
        return found


class StaleAfterChange(HeldOut):
    """Goes on with the first version of the request when the user changes his mind."""

    name = "stale_after_change"
    weakness = "keeps working on the first version of the request when the user changes it"
    solver = StaleSolver

    def work(self, episode: Episode, desk: Desk) -> None:  # type: ignore[override]
        """As usual; where the old request cannot be worked on any more, its answer is repeated."""
        ask = episode.ask_now
        scrapped = SCRAPPED.search(ask.text) is not None and "goal" in desk.memory
        solver = self.solver(desk, episode.scene.world.facts, self.goal(episode, desk))
        try:
            answer = ask.solve(solver, solver.root)
        except (Impossible, Untraceable) as fault:
            if not scrapped or "answer" not in desk.memory:
                episode.refuse(getattr(fault, "reason", "tool_unavailable"))
                return
            answer = desk.memory["answer"]
        desk.memory["answer"] = answer
        episode.answer(answer)
        episode.next_turn()

    def goal(self, episode: Episode, desk: Desk) -> dict[str, Any]:
        ask = episode.ask_now
        if SCRAPPED.search(ask.text) and "goal" in desk.memory:
            return desk.memory["goal"]
        desk.memory["goal"] = ask.goal
        return ask.goal


# -- 6. writes twice -----------------------------------------------------------------------------


class WritesTwiceDesk(Desk):
    def call(self, name: str, arguments: dict[str, Any]) -> tuple[str, Result]:
        write = any(t.name == name and t.effect == "write" for t in self.tools())
        first = super().call(name, arguments)
        if write and first[1].ok:
            super().call(name, arguments)  # once more, to be sure; what comes back is not read
        return first


class WritesTwice(HeldOut):
    """Makes every write that has succeeded a second time, with the same arguments."""

    name = "writes_twice"
    weakness = "repeats each write that has already succeeded"
    desk = WritesTwiceDesk


# -- 7. picks tools by their names ---------------------------------------------------------------


class _Listing:
    """Tools that are only looked at."""

    def __init__(self, tools: tuple[Tool, ...]) -> None:
        self._tools = tools

    def tools(self) -> tuple[Tool, ...]:
        return self._tools


def likeness(offered: str, wanted: str) -> float:
    """How much a name sounds like one that is wanted, or like a synonym of it."""
    said_too = {wanted, *(wording.reword_name(wanted, pool) for pool in POOLS)}
    return max(_looks_like(offered, name) for name in said_too)


def _looks_like(one: str, other: str) -> float:
    """How alike two names look: shared words first, then shared letters."""
    a, b = (set(re.findall(r"[a-z0-9]+", name.lower())) for name in (one, other))
    letters = SequenceMatcher(None, one.lower(), other.lower()).ratio()
    return len(a & b) / max(1, len(a | b)) + letters / 2


class ByNameSolver(Competent):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.meant: dict[str, str] = {}

    def route(
        self, fact: str, env: Known, many: bool = False, without: frozenset[str] = frozenset()
    ) -> Tool | None:
        """The tool that is named most like what one would expect a tool for this to be called."""
        usual = Solver(
            _Listing(self.backend.episode.scene.world.tools),  # type: ignore[arg-type]
            self.vocabulary,
            self.goal,
        )
        expected = usual.route(
            fact, env, many, frozenset(self.meant.get(name, name) for name in without)
        )
        wanted = expected.name if expected else fact.replace(" ", "_")
        offered = [tool for tool in self.backend.tools() if tool.name not in without]
        if not offered:
            return None
        best = max(offered, key=lambda tool: likeness(tool.name, wanted))
        self.meant[best.name] = wanted
        return best

    def _call_for(self, fact: str, env: Known, many: bool) -> tuple[Tool, list[dict[str, Any]]]:
        tool, records = super()._call_for(fact, env, many)
        return tool, [self._taken(fact, record) for record in records]

    @staticmethod
    def _taken(fact: str, record: dict[str, Any]) -> dict[str, Any]:
        """The record, the first fitting value of which is taken for what was wanted."""
        if fact in record or not record:
            return record
        form = (
            r"\w{4}-\w{4}" if fact.endswith(("_ref", "_code")) else r"[A-Z]{1,3}-?\w*\d+|[a-z]+_\d+"
        )
        fitting = [v for v in record.values() if isinstance(v, str) and re.fullmatch(form, v)]
        wanted = fact.endswith("_ref") or is_identifier(fact)
        return {**record, fact: fitting[0]} if wanted and fitting else record

    def _fetch(self, fact: str, env: Known) -> Any:
        tool, records = self._call_for(fact, env, many=False)
        if not records:
            raise Impossible("not_found")
        self._home(tool, env).facts.update(records[0])
        value = env.find(fact)
        if value is None:
            raise Impossible("not_found")
        return value


class PicksByName(HeldOut):
    """Picks the tool whose name is most like the usual one and never reads a description."""

    name = "picks_by_name"
    weakness = "picks tools by likeness of their names and ignores their descriptions"
    solver = ByNameSolver


# -- 8. passes arguments by position -------------------------------------------------------------


class PositionalSolver(Competent):
    def speak(self, tool: Tool, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """As usual under familiar names; else by position, in the order the values came up.

        A parameter for something quite new (a permit, a page) is filled by its name.
        """
        world = self.backend.episode.scene.world
        usual: dict[str, set[str]] = {}
        for param in (param for each in world.tools for param in each.params):
            usual.setdefault(param.fact, set()).add(param.name)
        old = [p for p in tool.params if p.fact in usual and p.name in arguments]
        if all(param.name in usual[param.fact] for param in old):
            return tool.name, arguments
        values = sorted((arguments[param.name] for param in old), key=self._came_up)
        by_place = {param.name: value for param, value in zip(old, values, strict=True)}
        return tool.name, {**arguments, **by_place}

    def _came_up(self, value: Any) -> int:
        episode = self.backend.episode
        said = [episode.scene.asks[0].text, *(step.text for step in episode.steps)]
        told = "\n".join(said)
        found = re.search(rf"(?<![\w.]){re.escape(str(value))}(?!\w|\.\d)", told, re.IGNORECASE)
        return found.start() if found else len(told)


class PassesByPosition(HeldOut):
    """Where parameters have unfamiliar names, fills them in the order in which values came up."""

    name = "passes_by_position"
    weakness = (
        "passes arguments by position: where parameter names have changed it ignores them and "
        "hands the values over in the order in which they came up in the conversation"
    )
    solver = PositionalSolver


# -- 9. reads only the beginning of long results -------------------------------------------------

SIGHT = 200


class ShortSightedDesk(Desk):
    def perceive(self, text: str, result: Result) -> tuple[str, Result]:
        if len(text) <= SIGHT:
            return text, result
        hint = result.hint if result.hint and self._in_sight(result, text) else None
        if not result.ok:
            return text, result.with_(hint=hint)
        data, self._at = read(text, result), 0
        if isinstance(data, list):
            seen = [self._seen(record, text) for record in data]
            data = [now for was, now in zip(data, seen, strict=True) if was == now]
        else:
            data = self._seen(data, text)
        return reread(result, data, hint=hint)

    def _in_sight(self, result: Result, text: str) -> bool:
        hint: Hint = result.hint  # type: ignore[assignment]
        marks = [hint.tool, hint.new, *hint.arguments.values(), result.notice]
        return all(str(mark) in text[:SIGHT] for mark in marks if mark)

    def _seen(self, part: Any, text: str) -> Any:
        """A part of the data in which what stands further on is blank."""
        if isinstance(part, dict):
            return {key: self._seen(value, text) for key, value in part.items()}
        if isinstance(part, list):
            return [self._seen(value, text) for value in part]
        if part is None:
            return None
        start = text.find(str(part), self._at)
        start = start if start >= 0 else text.find(str(part))
        self._at = max(self._at, start + len(str(part)))
        return part if 0 <= start <= SIGHT - len(str(part)) else None


class ReadsOnlyTheBeginning(HeldOut):
    """Reads the first 200 characters of a result; what stands further on is not there for it."""

    name = "reads_only_the_beginning"
    weakness = "reads only the first 200 characters of a result"
    desk = ShortSightedDesk


# -- 10. invents identifiers ---------------------------------------------------------------------


def is_identifier(fact: str) -> bool:
    """Whether a fact is an id or number by which one tool's result is handed to another."""
    return fact.endswith(("_id", "_number", "_code")) or fact == "sku"


def invented(schema: dict[str, Any], fact: str) -> str:
    """An identifier that looks right: in the form that the schema asks for."""
    pattern = str(schema.get("pattern", "")).strip("^$")
    text = re.sub(r"\[A-Z0-9\]\{(\d+)\}", lambda m: "QX7K9MPL"[: int(m[1])], pattern)
    text = re.sub(r"\[0-9\]\{(\d+)\}", lambda m: "1234567890"[: int(m[1])], text)
    text = text.replace("[0-9]+", "12345").replace("[A-Z]{2}-", "PL-1234")
    return text or f"{fact[0].upper()}-12345"


class InventingSolver(Competent):
    def arguments(self, tool: Tool, env: Known) -> dict[str, Any]:
        made_up = {}
        for param in tool.params:
            known = param.fact in self.goal or env.find(param.fact) is not None
            if param.required and not known and self._is_far(param.fact, env):
                made_up[param.fact] = invented(param.schema, param.fact)
        inner = env.about(**made_up) if made_up else env
        return super().arguments(tool, inner)

    def _is_far(self, fact: str, env: Known) -> bool:
        """Whether it is an id that only an id would lead to, or that nothing leads to."""
        if not is_identifier(fact):
            return False
        source = self.route(fact, env, without=frozenset(self.gathering))
        if source is None:
            return True
        return any(is_identifier(need) and need not in self.goal for need in source.needs)


class InventsIdentifiers(HeldOut):
    """Invents an identifier where it would have to look it up by way of another identifier.

    The first identifier, which follows from what the user said, it does look up: else it could do
    no task at all, and no shift could take anything from it.
    """

    name = "invents_identifiers"
    weakness = (
        "invents an identifier (in the right form) instead of looking it up, wherever the lookup "
        "itself needs another identifier"
    )
    solver = InventingSolver


# -- 11. never retries ---------------------------------------------------------------------------


class NoRetryDesk(Desk):
    def perceive(self, text: str, result: Result) -> tuple[str, Result]:
        passing = not result.ok and result.hint is not None and result.hint.kind == "retry"
        return text, result.with_(hint=None) if passing else result


class NeverRetries(HeldOut):
    """Refuses (service failure) at the first passing error, though it says to try again."""

    name = "never_retries"
    weakness = "never retries after a transient error; gives up with a refusal"
    desk = NoRetryDesk


# -- 12. claims success after an error -----------------------------------------------------------


class Claim(Exception):
    """An error has come back, and the agent is about to say that all went well."""


class ClaimingDesk(Desk):
    def perceive(self, text: str, result: Result) -> tuple[str, Result]:
        if not result.ok:
            raise Claim(text)
        return text, result


def made_up_code(text: str) -> str:
    """A code in the form of those that answers are, made from a text."""
    letters = "BCDFGHJKLMNPQRSTVWXZ23456789"
    drawn = [
        letters[byte % len(letters)] for byte in blake2b(text.encode(), digest_size=8).digest()
    ]
    return f"{''.join(drawn[:4])}-{''.join(drawn[4:])}"


class ClaimsSuccess(HeldOut):
    """Answers with an invented code as soon as a call has failed, as if it had succeeded."""

    name = "claims_success"
    weakness = "claims success after an error: answers at once with an invented code"
    desk = ClaimingDesk

    def work(self, episode: Episode, desk: Desk) -> None:  # type: ignore[override]
        try:
            super().work(episode, desk)
        except Claim as claim:
            episode.answer(made_up_code(f"{episode.ask_now.text}\n{claim}"))
            episode.next_turn()


AGENTS: dict[str, type[HeldOut]] = {
    each.name: each
    for each in (
        FirstResultOnly,
        FirstPageOnly,
        NoticeBlind,
        UnitBlind,
        StaleAfterChange,
        WritesTwice,
        PicksByName,
        PassesByPosition,
        ReadsOnlyTheBeginning,
        InventsIdentifiers,
        NeverRetries,
        ClaimsSuccess,
    )
}

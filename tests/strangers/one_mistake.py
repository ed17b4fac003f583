"""Agents that make one mistake in an episode, and say of each what a fair diagnosis would name.

Each solves soundly but for one planted mistake, which is made once at most. Where it is made, the
agent declares its cause, in the words of docs/measures.md: `right`, and where a reader could as
well say something near to it, `near`. The declarations were written before anything was run, and
were not changed afterwards. `invented_tool` and `invented_value` stand for what issue 50 asks for
("invented tools, ids and choices are named as invented"), and had no name of their own then.

Their author had read the rules of `episode.causes` once, so these are no blind agents: the
declarations follow the mistake, not the rules. `studies/strangers/causes/singles.py` plays them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from strangers.held_out_agents import Competent, Desk, HeldOut

from toolshift.core.calls import MalformedCall
from toolshift.core.message import CODE
from toolshift.core.scene import Scene
from toolshift.core.solver import Impossible, Untraceable
from toolshift.core.tool import Result, Tool
from toolshift.episode.episode import Episode, Over

WAY_ON = ("retry", "use", "value", "refresh")
_CODES = re.compile(CODE.pattern.strip("^$"))


@dataclass(frozen=True)
class Declared:
    """What a fair diagnosis names, and what comes near to it."""

    right: tuple[str, ...]
    near: tuple[str, ...] = ()


class GaveUp(Exception):
    """The agent stops here; with words it answers, without it refuses."""

    def __init__(self, said: str = "") -> None:
        super().__init__(said)
        self.said = said


class MistakenDesk(Desk):
    """A desk that lets its agent do something else in place of a call, and with a result."""

    agent: OneMistake

    def call(self, name: str, arguments: dict[str, Any]) -> tuple[str, Result]:
        tool = next((tool for tool in self.tools() if tool.name == name), None)
        name, arguments = self.agent.instead(self, tool, name, arguments)
        made = super().call(name, arguments)
        return self.agent.read(self, tool, *made)


class MistakenSolver(Competent):
    def given(self, slot: str) -> Any:
        agent = self.backend.agent
        unsaid = not self.backend.user_said(self.goal[slot])
        value = agent.guess(slot) if unsaid and slot not in self.confirmed else None
        return super().given(slot) if value is None else value

    def read(self, data: object, result: Result) -> list[dict[str, Any]]:
        return self.backend.agent.records(super().read(data, result))


class OneMistake(HeldOut):
    """Solves soundly; subclasses make one mistake."""

    solver = MistakenSolver
    desk = MistakenDesk
    says = Declared(())

    def __init__(self) -> None:
        self.declared: Declared | None = None

    def play(self, episode: Episode) -> None:
        self.episode, self.scene = episode, episode.scene
        desk = self.desk(episode)
        desk.agent = self
        try:
            while not episode.end:
                self.work(episode, desk)
        except Over:
            return

    def work(self, episode: Episode, desk: Desk) -> None:
        solver = self.solver(desk, episode.scene.world.facts, self.goal(episode, desk))
        try:
            self.begin(desk)
            self.end(desk, str(episode.ask_now.solve(solver, solver.root)))
        except GaveUp as gave_up:
            self._stop(gave_up.said)
        except Impossible as impossible:
            self.impossible(impossible.reason)
        except Untraceable:
            self._stop("")
        except (LookupError, TypeError, ValueError, StopIteration):
            if self.declared is None:
                raise
            self._stop("")  # it cannot make sense of what its mistake has brought
        if not episode.end:
            episode.next_turn()

    def _stop(self, said: str) -> None:
        if said:
            self.episode.answer(said)
        else:
            self.episode.refuse("service_failure")

    def mistake(self, says: Declared | None = None) -> None:
        """The mistake is made now."""
        self.declared = says or self.says

    @property
    def sound(self) -> bool:
        """Whether no mistake has been made yet."""
        return self.declared is None

    @property
    def told(self) -> str:
        """All that was shown: the request, results, the user's words."""
        steps = "\n".join(f"{step.text}\n{step.notice}" for step in self.episode.steps)
        return f"{self.scene.system}\n{self.scene.asks[0].text}\n{steps}"

    @property
    def requested(self) -> str:
        return "\n".join(ask.text for ask in self.scene.asks[: self.episode.asked + 1])

    # -- where a mistake may be made ---------------------------------------------------------------

    def begin(self, desk: Desk) -> None:
        """Before the first call for a request."""

    def instead(
        self, desk: Desk, tool: Tool | None, name: str, arguments: dict[str, Any]
    ) -> tuple[str, dict[str, Any]]:
        """The call that is made in place of a sound one."""
        return name, arguments

    def read(self, desk: Desk, tool: Tool | None, text: str, result: Result) -> tuple[str, Result]:
        """What is made of a result."""
        return text, result

    def records(self, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """What is made of the records of a result."""
        return records

    def guess(self, slot: str) -> Any:
        """What is taken for a detail that the user has left out; None to ask."""
        return None

    def end(self, desk: Desk, answer: str) -> None:
        """The answer at the end."""
        self.episode.answer(answer)

    def impossible(self, reason: str) -> None:
        """The refusal at the end."""
        self.episode.refuse(reason)


def texts(tool: Tool | None, arguments: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The plain texts that a call passes, without choices, words of a search and fixed values."""
    params = {param.name: param for param in tool.params} if tool else {}
    for name, value in arguments.items():
        param = params.get(name)
        free = param is None or param.free or param.given is not None
        if isinstance(value, str) and len(value) > 2 and not free and "enum" not in param.schema:
            yield name, value


def is_id(value: str) -> bool:
    return re.search(r"\d", value) is not None and " " not in value


def another(value: str) -> str:
    """A value of the same form, of other letters and digits."""
    moved = {}
    for letters in ("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz", "0123456789"):
        size = len(letters)
        moved |= {letter: letters[(at * 3 + 7) % size] for at, letter in enumerate(letters)}
    return "".join(moved.get(letter, letter) for letter in value)


# -- values ------------------------------------------------------------------------------------


class WrongKind(OneMistake):
    """Follows a notice to a tool that came during the episode, and passes a value of wrong kind."""

    says = Declared(("bad_arguments",))

    def instead(self, desk, tool, name, arguments):
        came = name not in {tool.name for tool in self.scene.tools}
        if self.sound and came and arguments:
            self.mistake()
            first = next(iter(arguments))
            return name, {**arguments, first: [arguments[first]]}
        return name, arguments


class NumberAsText(OneMistake):
    """Passes a number as text, with its unit."""

    says = Declared(("bad_arguments",))

    def instead(self, desk, tool, name, arguments):
        numbers = [n for n, v in arguments.items() if isinstance(v, int | float)]
        if self.sound and numbers:
            self.mistake()
            return name, {**arguments, numbers[0]: f"{arguments[numbers[0]]} units"}
        return name, arguments


class CutsNames(OneMistake):
    """Passes only the first part of a name that the user gave, and gives up."""

    says = Declared(("bad_arguments",))

    def instead(self, desk, tool, name, arguments):
        for key, value in texts(tool, arguments):
            if self.sound and " " in value and value.lower() in self.requested.lower():
                self.mistake()
                return name, {**arguments, key: value.split()[0]}
        return name, arguments


class OldParameter(OneMistake):
    """Spells one parameter as the clean interface does."""

    says = Declared(("bad_arguments",), ("memorised_name",))

    def instead(self, desk, tool, name, arguments):
        old = {p.fact: p.name for each in self.scene.clean.tools for p in each.params}
        for param in tool.params if tool and self.sound else ():
            before = old.get(param.fact, param.name)
            if param.name in arguments and before != param.name and before not in arguments:
                self.mistake()
                rest = {key: value for key, value in arguments.items() if key != param.name}
                return name, {**rest, before: arguments[param.name]}
        return name, arguments


class InventsId(OneMistake):
    """Makes up an id that a result had told, or that a result would have told."""

    says = Declared(("invented_value",), ("bad_arguments",))

    def instead(self, desk, tool, name, arguments):
        for key, value in texts(tool, arguments):
            made_up = another(value)
            mine = value.lower() not in self.requested.lower()
            if self.sound and mine and is_id(value) and made_up not in self.told:
                self.mistake()
                return name, {**arguments, key: made_up}
        return name, arguments


class InventsAfterRefresh(InventsId):
    """The same, but only after it has followed a notice that the tools have changed."""

    def instead(self, desk, tool, name, arguments):
        moved = any(s.hint in ("use", "refresh") or s.tools for s in self.episode.steps)
        return super().instead(desk, tool, name, arguments) if moved else (name, arguments)


class InventsChoice(OneMistake):
    """Passes a choice that the schema does not list and nobody has named."""

    says = Declared(("invented_value",), ("bad_arguments",))

    def instead(self, desk, tool, name, arguments):
        for param in tool.params if tool and self.sound else ():
            if param.name in arguments and "enum" in param.schema:
                self.mistake()
                return name, {**arguments, param.name: "premium_plus"}
        return name, arguments


class FillsADetail(OneMistake):
    """Makes up a detail that the user has left out, in place of a question."""

    says = Declared(("invented_value",), ("bad_arguments",))

    def guess(self, slot):
        value = self.scene.asks[self.episode.asked].goal[slot]
        if self.sound and isinstance(value, str):
            self.mistake()
            return another(value)
        return None


class Transposes(OneMistake):
    """Swaps two neighbouring letters of an id."""

    says = Declared(("bad_arguments",))

    def instead(self, desk, tool, name, arguments):
        for key, value in texts(tool, arguments):
            at = next((n for n in range(len(value) - 2, 0, -1) if value[n] != value[n + 1]), None)
            if self.sound and at and is_id(value):
                turned = value[:at] + value[at + 1] + value[at] + value[at + 2 :]
                if turned in self.told:
                    continue
                self.mistake()
                return name, {**arguments, key: turned}
        return name, arguments


class SwapsArguments(OneMistake):
    """Passes two texts each in the place of the other."""

    says = Declared(("bad_arguments",), ("ignored_result",))

    def instead(self, desk, tool, name, arguments):
        two = list(texts(tool, arguments))[:2]
        if self.sound and len(two) == 2:
            self.mistake()
            (one, first), (other, second) = two
            return name, {**arguments, one: second, other: first}
        return name, arguments


class TenTimes(OneMistake):
    """Passes ten times a number."""

    says = Declared(("bad_arguments",), ("invented_value", "ignored_result"))

    def instead(self, desk, tool, name, arguments):
        for key, value in arguments.items():
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if self.sound and number and str(10 * value) not in self.told and value:
                self.mistake()
                return name, {**arguments, key: 10 * value}
        return name, arguments


class FillsOptions(OneMistake):
    """Fills an optional parameter that nobody needs with null."""

    says = Declared(("filled_option",))

    def instead(self, desk, tool, name, arguments):
        spare = (
            [p for p in tool.params if not p.required and p.name not in arguments] if tool else []
        )
        null = [p.name for p in spare if "null" not in str(p.schema.get("type"))]
        if self.sound and null:
            self.mistake()
            return name, {**arguments, null[0]: None}
        return name, arguments


class LeavesOutRequired(OneMistake):
    """Leaves out a required argument that it knows."""

    says = Declared(("bad_arguments",))

    def instead(self, desk, tool, name, arguments):
        needed = [p.name for p in tool.params if p.required and p.name in arguments] if tool else []
        if self.sound and needed:
            self.mistake()
            return name, {k: v for k, v in arguments.items() if k != needed[-1]}
        return name, arguments


# -- tools -------------------------------------------------------------------------------------


class InventsTool(OneMistake):
    """Calls a tool that never was there, and gives up."""

    says = Declared(("invented_tool",), ("wrong_tool",))
    after = ""

    def instead(self, desk, tool, name, arguments):
        if self.sound and len(self.scene.calls) <= 2 + self._made():
            self.mistake()
            self.episode.call(f"fetch_all_{self.scene.world.name}_data", arguments)
            self.episode.next_turn()
            raise GaveUp(self.after)
        return name, arguments

    def _made(self) -> int:
        return len([step for step in self.episode.steps if step.kind == "call"])


class InventsToolAndClaims(InventsTool):
    """Calls a tool that never was there, and says that all is done."""

    after = "All done, it went through."


class Elsewhere(OneMistake):
    """Calls a tool on offer that has no part in the task in place of the right one, and stops."""

    says = Declared(("wrong_tool",))

    def instead(self, desk, tool, name, arguments):
        part = {origin for step in self.scene.calls for origin, _ in step.true}
        facts = {p.fact: arguments.get(p.name) for p in tool.params} if tool else {}
        for other in self.episode.tools if self.sound else ():
            needs = [p for p in other.params if p.required]
            fits = needs and all(isinstance(facts.get(p.fact), str) for p in needs)
            if fits and other.effect == "read" and not part & set(other.origin):
                self.mistake()
                passed = {p.name: p.write(facts[p.fact]) for p in needs}
                self.episode.call(other.name, passed)
                self.episode.next_turn()
                raise GaveUp()
        return name, arguments


class OldName(OneMistake):
    """Calls one tool by its name in the clean interface, and stops."""

    says = Declared(("memorised_name",))

    def instead(self, desk, tool, name, arguments):
        old = {each.origin: each.name for each in self.scene.clean.tools}
        before = old.get(tool.origin, name) if tool else name
        if self.sound and before not in {each.name for each in self.episode.tools}:
            self.mistake()
            return before, arguments
        return name, arguments


class SkipsAhead(OneMistake):
    """Begins with the last call of the task, without what the calls before it would have told."""

    says = Declared(("wrong_order",))

    def begin(self, desk):
        last = self.scene.calls[-1] if self.scene.calls else None
        if not self.sound or last is None or self.episode.steps:
            return
        known = {k: v for k, v in last.given.items() if str(v).lower() in self.requested.lower()}
        tool = next((tool for tool in self.episode.tools if tool.name == last.name), None)
        if tool is None:
            return
        missing = [p for p in tool.params if p.required and p.name not in known]
        sources = [t for t in self.episode.tools if t is not tool]
        if missing and all(any(t.yields(p.fact) for t in sources) for p in missing):
            self.mistake()
            self.episode.call(tool.name, known)
            self.episode.next_turn()
            raise GaveUp()


# -- failures and notices ----------------------------------------------------------------------


class GivesUp(OneMistake):
    """Refuses at the first failure or notice that offers a way on."""

    says = Declared(("no_recovery",))
    after = ""

    def read(self, desk, tool, text, result):
        if self.sound and not result.ok and result.hint and result.hint.kind in WAY_ON:
            self.mistake()
            raise GaveUp(self.after)
        return text, result


class ClaimsAfterAFailure(GivesUp):
    """Says that all is done at the first failure that offers a way on."""

    says = Declared(("no_recovery",), ("answered_without_evidence",))
    after = "All done, it went through."


class CorrectsItselfThenGivesUp(GivesUp):
    """Miscopies an id, corrects that, and refuses at the first failure that offers a way on."""

    def __init__(self) -> None:
        super().__init__()
        self.slipped = False

    def instead(self, desk, tool, name, arguments):
        for key, value in texts(tool, arguments):
            if not self.slipped and is_id(value):
                self.slipped = True
                self.episode.call(name, {**arguments, key: value[:-1] + another(value[-1])})
                self.episode.next_turn()
        return name, arguments

    def read(self, desk, tool, text, result):
        return super().read(desk, tool, text, result) if self.slipped else (text, result)


class Hammers(OneMistake):
    """Makes a call again and again that has failed for good."""

    says = Declared(("repetition",))

    def read(self, desk, tool, text, result):
        final = not result.ok and not (result.hint and result.hint.kind in (*WAY_ON, "page"))
        if self.sound and final:
            self.mistake()
            last = self.episode.steps[-1]
            while True:
                self.episode.call(last.name, last.given)
                self.episode.next_turn()
        return text, result


class StopsBeforeTheLastPage(OneMistake):
    """Does not read the next page of a result."""

    says = Declared(("missed_page",))

    def read(self, desk, tool, text, result):
        if self.sound and result.hint is not None and result.hint.kind == "page":
            self.mistake()
            return text, result.with_(hint=None)
        return text, result


# -- results and endings -----------------------------------------------------------------------


class Decoy(OneMistake):
    """Makes the right calls, and answers with another code that it was shown."""

    says = Declared(("ignored_result",))

    def end(self, desk, answer):
        shown = "\n".join(step.text for step in self.episode.steps if step.kind == "call")
        others = [
            c for c in dict.fromkeys(_CODES.findall(shown)) if c != answer and c != answer.upper()
        ]
        if self.sound and others and answer in shown:
            self.mistake()
            answer = others[-1]
        self.episode.answer(answer)


class SurplusReadThenDecoy(Decoy):
    """Reads something first that it never uses, and answers with another code in the end."""

    def instead(self, desk, tool, name, arguments):
        facts = {p.fact: arguments.get(p.name) for p in tool.params} if tool else {}
        for other in self.episode.tools if not self.episode.steps else ():
            needs = [p for p in other.params if p.required]
            fits = all(isinstance(facts.get(p.fact), str) for p in needs)
            if fits and needs and other.effect == "read" and other.name != name and not other.lists:
                self.episode.call(other.name, {p.name: p.write(facts[p.fact]) for p in needs})
                self.episode.next_turn()
                break
        return name, arguments


class ReadsTwiceThenDecoy(Decoy):
    """Makes each read twice, to be sure, and answers with another code in the end."""

    def instead(self, desk, tool, name, arguments):
        if tool is not None and tool.effect == "read" and not tool.lists:
            self.episode.call(name, arguments)
            self.episode.next_turn()
        return name, arguments


class NextRow(OneMistake):
    """Takes the ids of a list from the row below: each record has the id of the next one."""

    says = Declared(("ignored_result",))

    def records(self, records):
        keys = [
            key
            for key in (records[0] if records else {})
            if key.endswith(("_id", "_number", "sku"))
        ]
        if self.sound and keys and len({str(record.get(keys[0])) for record in records}) > 1:
            self.mistake()
            below = [*records[1:], records[0]]
            return [{**r, keys[0]: b.get(keys[0])} for r, b in zip(records, below, strict=True)]
        return records


class TwoCodes(OneMistake):
    """Offers the right code and another one."""

    says = Declared(("guessed_among_codes",))

    def end(self, desk, answer):
        shown = "\n".join(step.text for step in self.episode.steps if step.kind == "call")
        others = [c for c in dict.fromkeys(_CODES.findall(shown)) if c != answer]
        if self.sound and others and _CODES.fullmatch(answer):
            self.mistake()
            answer = f"It is either {others[0]} or {answer}."
        self.episode.answer(answer)


class TalksTooSoon(OneMistake):
    """Says that all is done after its first call that went well, of several that are needed."""

    says = Declared(("answered_without_evidence",))

    def read(self, desk, tool, text, result):
        more = len(self.scene.calls) > len(self.episode.steps)
        if self.sound and more and result.ok and result.hint is None:
            self.mistake()
            raise GaveUp("All done, it went through.")
        return text, result


class LeavesOutTheWrite(OneMistake):
    """Reads all that is needed, and says that it is done without the write."""

    says = Declared(("answered_without_evidence",))

    def instead(self, desk, tool, name, arguments):
        if self.sound and tool is not None and tool.effect == "write":
            self.mistake()
            raise GaveUp("All done, it went through.")
        return name, arguments


class WritesForTheNeighbour(OneMistake):
    """Makes the right write, and the same write once more for something else that it has read."""

    says = Declared(("surplus_write",))

    def read(self, desk, tool, text, result):
        last = self.episode.steps[-1]
        if not (self.sound and tool is not None and tool.effect == "write" and result.ok):
            return text, result
        seen = "\n".join(step.text for step in self.episode.steps[:-1] if step.kind == "call")
        for key, value in texts(tool, last.given):
            form = re.sub(r"[0-9]", "[0-9]", re.sub(r"[A-Z]", "[A-Z]", value))
            rivals = (
                [v for v in re.findall(rf"\b{form}\b", seen) if v != value] if is_id(value) else []
            )
            for rival in dict.fromkeys(rivals):
                before = len(self.episode.steps)
                self.episode.call(last.name, {**last.given, key: rival})
                self.episode.next_turn()
                if self.episode.steps[before].ok:
                    self.mistake()
                    return text, result
        return text, result


class Unwilling(OneMistake):
    """Refuses at once, without a call."""

    says = Declared(("wrong_refusal",))

    def begin(self, desk):
        if self.sound:
            self.mistake()
            raise GaveUp()


class RefusesAQuestion(OneMistake):
    """Refuses where it would have to ask the user for a detail."""

    says = Declared(("wrong_refusal",))

    def guess(self, slot):
        if self.sound:
            self.mistake()
            raise GaveUp()


class CannotSpell(OneMistake):
    """Sends arguments that are no JSON, and stops."""

    says = Declared(("malformed_output",))

    def instead(self, desk, tool, name, arguments):
        if self.sound:
            self.mistake()
            self.episode.take_call(MalformedCall(name, '{"broken: '))
            self.episode.next_turn()
            raise GaveUp()
        return name, arguments


class DeniesNothing(OneMistake):
    """Says that all is done where what it has seen leaves only a refusal."""

    says = Declared(("answered_without_evidence",))

    def impossible(self, reason):
        if self.sound and not self.scene.solvable and reason == self.scene.outcome.refusal:
            self.mistake()
            self.episode.answer("All done, it went through.")
        else:
            self.episode.refuse(reason)


class KeepsTheFirstAnswer(OneMistake):
    """Repeats its first answer where the user has changed what they want, or a rule has changed."""

    says = Declared(("ignored_update",))

    def __init__(self) -> None:
        super().__init__()
        self.first = ""

    def begin(self, desk):
        clean = len(self.scene.clean.asks)
        if self.sound and self.first and len(self.scene.asks) > clean:
            self.mistake()
            raise GaveUp(self.first)

    def end(self, desk, answer):
        self.first = self.first or answer
        self.episode.answer(answer)


AGENTS: dict[str, type[OneMistake]] = {
    re.sub(r"(?<!^)(?=[A-Z])", "_", each.__name__).lower(): each
    for each in (
        WrongKind,
        NumberAsText,
        CutsNames,
        OldParameter,
        InventsId,
        InventsAfterRefresh,
        InventsChoice,
        FillsADetail,
        Transposes,
        SwapsArguments,
        TenTimes,
        FillsOptions,
        LeavesOutRequired,
        InventsTool,
        InventsToolAndClaims,
        Elsewhere,
        OldName,
        SkipsAhead,
        GivesUp,
        ClaimsAfterAFailure,
        CorrectsItselfThenGivesUp,
        Hammers,
        StopsBeforeTheLastPage,
        Decoy,
        SurplusReadThenDecoy,
        ReadsTwiceThenDecoy,
        NextRow,
        TwoCodes,
        TalksTooSoon,
        LeavesOutTheWrite,
        WritesForTheNeighbour,
        Unwilling,
        RefusesAQuestion,
        CannotSpell,
        DeniesNothing,
        KeepsTheFirstAnswer,
    )
}


def play(kind: type[OneMistake], scene: Scene) -> tuple[Episode, Declared | None]:
    """An agent's episode in a scene, and what it declares; None where it made no mistake."""
    agent, episode = kind(), Episode(scene)
    agent.play(episode)
    return episode, agent.declared

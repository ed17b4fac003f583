"""Eighteen more agents with one declared mistake, as weak language models make them.

Each is sound but for what its docstring says. The declarations follow the words of
docs/measures.md; they were written before the rules in `episode.causes` were read and before
anything was run, and are unchanged since. `studies/strangers/causes/README.md` has the figures.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from strangers.one_mistake import (
    WAY_ON,
    Declared,
    GaveUp,
    OneMistake,
    is_id,
    texts,
)

_VALUE = re.compile(r"\b(?:[A-Za-z]{2,4}[-_]?\d{3,}|[A-Z0-9]{4}-[A-Z0-9]{4})\b")


class StopsOneStepEarly(OneMistake):
    """Leaves out the last call, and answers with the last id or code that it has seen."""

    says = Declared(("answered_without_evidence",), ("ignored_result",))

    def instead(self, desk, tool, name, arguments):
        made = [step for step in self.episode.steps if step.kind == "call"]
        seen = _VALUE.findall(made[-1].text) if made else []
        if self.sound and seen and len(made) >= len(self.scene.calls) - 1:
            self.mistake()
            raise GaveUp(seen[-1])
        return name, arguments


class DropsTheLastOfSeveral(OneMistake):
    """Overlooks the last record of a list."""

    says = Declared(("ignored_result", "wrong_refusal"), ("bad_arguments",))

    def records(self, records):
        if self.sound and len(records) > 1:
            self.mistake()
            return records[:-1]
        return records


class SwapsTwoOfAKind(OneMistake):
    """Passes two ids of one call, or two names, each in the place of the other."""

    says = Declared(("bad_arguments",), ("ignored_result",))

    def instead(self, desk, tool, name, arguments):
        two = list(texts(tool, arguments))[-2:]
        if self.sound and len(two) == 2 and is_id(two[0][1]) == is_id(two[1][1]):
            self.mistake()
            (one, first), (other, second) = two
            return name, {**arguments, one: second, other: first}
        return name, arguments


class TakesTheFirstChoice(OneMistake):
    """Passes the choice that the schema lists first, in place of the one that is asked for."""

    says = Declared(("bad_arguments",), ("ignored_result",))

    def instead(self, desk, tool, name, arguments):
        for param in tool.params if tool and self.sound else ():
            choices = param.schema.get("enum", ())
            if param.given is None and choices and arguments.get(param.name) in choices[1:]:
                self.mistake()
                return name, {**arguments, param.name: choices[0]}
        return name, arguments


class TrimsAnId(OneMistake):
    """Passes only the digits of an id."""

    says = Declared(("bad_arguments",))

    def instead(self, desk, tool, name, arguments):
        for key, value in texts(tool, arguments):
            digits = re.fullmatch(r"[A-Za-z]+[-_]?(\d+)", value)
            if self.sound and digits:
                self.mistake()
                return name, {**arguments, key: digits[1]}
        return name, arguments


class RepeatsTheWriteAtOnce(OneMistake):
    """Makes a write again as soon as it has succeeded, and reads the second result."""

    says = Declared(("surplus_write",))

    def read(self, desk, tool, text, result):
        if self.sound and tool is not None and tool.effect == "write" and result.ok:
            self.mistake()
            last = self.episode.steps[-1]
            text, result = self.episode.call(last.name, last.given)
            self.episode.next_turn()
        return text, result


class RereadsTheFirstPage(OneMistake):
    """Asks for the first page again in place of the next, and takes it for the whole."""

    says = Declared(("missed_page",))

    def read(self, desk, tool, text, result):
        if self.sound and result.hint is not None and result.hint.kind == "page":
            self.mistake()
            last = self.episode.steps[-1]
            text, result = self.episode.call(last.name, last.given)
            self.episode.next_turn()
            return text, result.with_(hint=None)
        return text, result


class TakesTheFirstHit(OneMistake):
    """Takes the first record of a list for the one that is meant, and looks at no other."""

    says = Declared(("ignored_result",), ("bad_arguments", "wrong_refusal"))

    def records(self, records):
        if self.sound and len(records) > 1:
            self.mistake()
            goal = self.scene.asks[self.episode.asked].goal
            known = {k: v for k, v in goal.items() if k in records[0] and not isinstance(v, tuple)}
            return [{**records[0], **known}]
        return records


class KeepsAsking(OneMistake):
    """Asks the user again and again for what they have said already."""

    says = Declared(("budget",), ("repetition",))

    def begin(self, desk):
        said = [s for s, v in self.scene.asks[self.episode.asked].goal.items() if self.known(v)]
        if self.sound and said:
            self.mistake()
            label = self.scene.world.facts[said[0]].label
            while True:
                self.episode.ask(f"What is the {label}?")
                self.episode.next_turn()

    def known(self, value):
        return isinstance(value, str) and value.lower() in self.requested.lower()


class CarriesOldParameters(OneMistake):
    """Follows a notice to another tool, and passes one value under the name of before."""

    says = Declared(("bad_arguments",), ("memorised_name",))

    def instead(self, desk, tool, name, arguments):
        calls = [step for step in self.episode.steps if step.kind == "call"]
        last = calls[-1] if calls else None
        if self.sound and last is not None and last.hint in ("use", "refresh"):
            for key, value in arguments.items():
                old = [k for k, v in last.given.items() if v == value and k not in arguments]
                if old:
                    self.mistake()
                    rest = {k: v for k, v in arguments.items() if k != key}
                    return name, {**rest, old[0]: value}
        return name, arguments


class EmptyIsAnError(OneMistake):
    """Takes an empty result, or one with an empty field, for a failure, and refuses."""

    says = Declared(("wrong_refusal",), ("no_recovery",))

    def read(self, desk, tool, text, result):
        rows = result.data if isinstance(result.data, list) else [result.data]
        empty = not rows or any(v in (None, "", [], {}) for row in rows for v in row.values())
        if self.sound and result.ok and empty:
            self.mistake()
            raise GaveUp()
        return text, result


class AnswersFromTheRequest(OneMistake):
    """Makes the right calls, and answers with a value that the user gave."""

    says = Declared(("ignored_result",), ("answered_without_evidence",))

    def end(self, desk, answer):
        goal = self.scene.asks[self.episode.asked].goal
        mine = [v for v in goal.values() if isinstance(v, str) and v.lower() in self.told.lower()]
        if self.sound and mine:
            self.mistake()
            answer = mine[0]
        self.episode.answer(answer)


class CopiesASimilarField(OneMistake):
    """Reads the field beside the wanted one, of the most similar name."""

    says = Declared(("ignored_result",), ("bad_arguments",))

    def records(self, records):
        wanted = self.scene.asks[self.episode.asked].expected
        for record in records if self.sound else ():
            fact = next((k for k, v in record.items() if v == wanted), None)
            others = [k for k, v in record.items() if isinstance(v, str) and k != fact]
            if fact and others:
                self.mistake()
                like = max(others, key=lambda k: SequenceMatcher(None, k, fact).ratio())
                record[fact] = record[like]
        return records


class KeepsOneOldValue(OneMistake):
    """Follows the user's correction but for one value, which it keeps as it was."""

    says = Declared(("ignored_update",))

    def goal(self, episode, desk):
        goal = episode.ask_now.goal
        if self.sound and episode.asked and len(self.scene.asks) > len(self.scene.clean.asks):
            before = self.scene.asks[episode.asked - 1].goal
            for slot, value in goal.items():
                if slot in before and before[slot] != value:
                    self.mistake()
                    return {**goal, slot: before[slot]}
        return goal


class GivesUpAtTheSecondNotice(OneMistake):
    """Follows the first failure or notice that offers a way on, and refuses at the second."""

    says = Declared(("no_recovery",))

    def __init__(self) -> None:
        super().__init__()
        self.notices = 0

    def read(self, desk, tool, text, result):
        if not result.ok and result.hint and result.hint.kind in WAY_ON:
            self.notices += 1
            if self.sound and self.notices == 2:
                self.mistake()
                raise GaveUp()
        return text, result


class AnnouncesTheWrite(OneMistake):
    """Says that it will make the write now, and stops there."""

    says = Declared(("answered_without_evidence",))

    def instead(self, desk, tool, name, arguments):
        if self.sound and tool is not None and tool.effect == "write":
            self.mistake()
            raise GaveUp("I have all that I need and will go ahead and do that for you now.")
        return name, arguments


class FillsAnOptionWithAGuess(OneMistake):
    """Passes an optional parameter that nobody asked for, with a made-up value of its type."""

    says = Declared(("invented_value", "bad_arguments"), ("filled_option",))

    def instead(self, desk, tool, name, arguments):
        made_up = {"string": "default", "integer": 7, "number": 7, "boolean": True}
        for param in tool.params if tool and self.sound else ():
            free = not param.required and param.given is None and param.name not in arguments
            kind = param.schema.get("type")
            value = param.schema.get("enum", [made_up.get(str(kind))])[-1]
            if free and value is not None:
                self.mistake()
                return name, {**arguments, param.name: value}
        return name, arguments


class WritesDatesOtherwise(OneMistake):
    """Passes a date as day/month/year where the schema wants year-month-day."""

    says = Declared(("bad_arguments",))

    def instead(self, desk, tool, name, arguments):
        for key, value in texts(tool, arguments):
            date = re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)", value)
            if self.sound and date:
                self.mistake()
                return name, {**arguments, key: f"{date[3]}/{date[2]}/{date[1]}"}
        return name, arguments


AGENTS: dict[str, type[OneMistake]] = {
    re.sub(r"(?<!^)(?=[A-Z])", "_", each.__name__).lower(): each
    for each in (
        StopsOneStepEarly,
        DropsTheLastOfSeveral,
        SwapsTwoOfAKind,
        TakesTheFirstChoice,
        TrimsAnId,
        RepeatsTheWriteAtOnce,
        RereadsTheFirstPage,
        TakesTheFirstHit,
        KeepsAsking,
        CarriesOldParameters,
        EmptyIsAnError,
        AnswersFromTheRequest,
        CopiesASimilarField,
        KeepsOneOldValue,
        GivesUpAtTheSecondNotice,
        AnnouncesTheWrite,
        FillsAnOptionWithAGuess,
        WritesDatesOtherwise,
    )
}

"""More agents with one declared mistake, written after the rules had been mended on the first ones.

So their figure is one at first sight, though by the same hand. No declaration was changed after
they were run; `studies/strangers/causes/README.md` says what they showed.
"""

from __future__ import annotations

import re

from strangers.one_mistake import (
    Declared,
    Decoy,
    GaveUp,
    OneMistake,
    another,
    is_id,
    texts,
)


class AsksInsteadOfActing(OneMistake):
    """Hands the task back in words after the first result: tells what it found, and stops."""

    says = Declared(("answered_without_evidence",), ("ignored_result",))

    def read(self, desk, tool, text, result):
        more = len(self.scene.calls) > len(self.episode.steps)
        if self.sound and more and result.ok and result.hint is None and tool is not None:
            self.mistake()
            raise GaveUp(f"I used {tool.name} and have what is needed.")
        return text, result


class Recalls(OneMistake):
    """Answers with a code of its own after all calls were made."""

    says = Declared(("ignored_result",), ("invented_value", "answered_without_evidence"))

    def end(self, desk, answer):
        if self.sound and re.fullmatch(r"\w{4}-\w{4}", answer):
            self.mistake()
            answer = f"{answer[::-1]}" if answer[::-1] not in self.told else another(answer)
        self.episode.answer(answer)


class MadeUpAnswer(OneMistake):
    """Answers with a code of its own, without any call."""

    says = Declared(("answered_without_evidence",))

    def begin(self, desk):
        if self.sound and self.scene.calls:
            self.mistake()
            raise GaveUp("The reference is TRXW-4482.")


class Plural(OneMistake):
    """Passes a list where one value is wanted."""

    says = Declared(("bad_arguments",))

    def instead(self, desk, tool, name, arguments):
        for key, value in texts(tool, arguments):
            if self.sound:
                self.mistake()
                return name, {**arguments, key: [value]}
        return name, arguments


class ExtraParameter(OneMistake):
    """Passes a parameter that the schema does not have, beside the right ones."""

    says = Declared(("bad_arguments",))

    def instead(self, desk, tool, name, arguments):
        if self.sound:
            self.mistake()
            return name, {**arguments, "include_everything": True}
        return name, arguments


class PaddedId(OneMistake):
    """Writes an id with a zero too many."""

    says = Declared(("bad_arguments",))

    def instead(self, desk, tool, name, arguments):
        for key, value in texts(tool, arguments):
            at = re.search(r"\d", value)
            if self.sound and is_id(value) and at:
                self.mistake()
                return name, {**arguments, key: f"{value[: at.start()]}0{value[at.start() :]}"}
        return name, arguments


class OtherFamilyOfIds(OneMistake):
    """Passes one id that it was shown where another kind of id is wanted."""

    says = Declared(("ignored_result", "bad_arguments"))

    def instead(self, desk, tool, name, arguments):
        shown = re.findall(r'"(\w{4}-\w{4})"', self.told)
        for key, value in texts(tool, arguments):
            mine = value.lower() not in self.requested.lower()
            if self.sound and is_id(value) and mine and shown and shown[0] != value:
                self.mistake()
                return name, {**arguments, key: shown[0]}
        return name, arguments


class InventsAServerPrefix(OneMistake):
    """Calls a right tool under a prefix that no list has."""

    says = Declared(("invented_tool",), ("memorised_name", "wrong_tool"))

    def instead(self, desk, tool, name, arguments):
        if self.sound:
            self.mistake()
            self.episode.call(f"mcp__server__{name}__v9", arguments)
            self.episode.next_turn()
            raise GaveUp()
        return name, arguments


class RetriesTheWriteAfterSuccess(OneMistake):
    """Makes its write once more at the end, to be sure."""

    says = Declared(("surplus_write",))

    def end(self, desk, answer):
        writes = [step for step in self.episode.steps if step.kind == "call" and step.effects]
        if self.sound and writes:
            self.mistake()
            self.episode.call(writes[-1].name, writes[-1].given)
            self.episode.next_turn()
        self.episode.answer(answer)


class RefusesAfterAllIsDone(OneMistake):
    """Does all that is asked, and refuses in the end."""

    says = Declared(("wrong_refusal",))

    def end(self, desk, answer):
        if self.sound:
            self.mistake()
            raise GaveUp()
        self.episode.answer(answer)


class StumblesThenDecoy(Decoy):
    """Invents a tool, goes on soundly, and answers with another code in the end."""

    def __init__(self) -> None:
        super().__init__()
        self.stumbled = False

    def instead(self, desk, tool, name, arguments):
        if not self.stumbled:
            self.stumbled = True
            self.episode.call("lookup_all_of_it", arguments)
            self.episode.next_turn()
        return name, arguments


class RefusesANotice(OneMistake):
    """Refuses at the first result that a notice stands beside, though the result is there."""

    says = Declared(("no_recovery", "wrong_refusal"))

    def read(self, desk, tool, text, result):
        if self.sound and result.ok and result.notice:
            self.mistake()
            raise GaveUp()
        return text, result


AGENTS: dict[str, type[OneMistake]] = {
    re.sub(r"(?<!^)(?=[A-Z])", "_", each.__name__).lower(): each
    for each in (
        AsksInsteadOfActing,
        Recalls,
        MadeUpAnswer,
        Plural,
        ExtraParameter,
        PaddedId,
        OtherFamilyOfIds,
        InventsAServerPrefix,
        RetriesTheWriteAfterSuccess,
        RefusesAfterAllIsDone,
        StumblesThenDecoy,
        RefusesANotice,
    )
}

"""Seven agents with one declared mistake that were kept back while the rules were mended.

They were written with those of `third_look`, before the rules in `episode.causes` were read, and
played once, after the mending. The declarations are unchanged since.
"""

from __future__ import annotations

import re

from strangers.one_mistake import Declared, GaveUp, OneMistake, is_id, texts


class SameEntityTwice(OneMistake):
    """Passes the id of the entity before, where the same tool is called for the next one."""

    says = Declared(("ignored_result",), ("bad_arguments", "ignored_update"))

    def instead(self, desk, tool, name, arguments):
        before = [s.given for s in self.episode.steps if s.kind == "call" and s.name == name]
        for key, value in texts(tool, arguments) if before and self.sound else ():
            old = before[-1].get(key)
            if is_id(value) and isinstance(old, str) and old != value:
                self.mistake()
                return name, {**arguments, key: old}
        return name, arguments


class OffByOne(OneMistake):
    """Passes a number that is one too large."""

    says = Declared(("bad_arguments",), ("invented_value", "ignored_result"))

    def instead(self, desk, tool, name, arguments):
        for key, value in arguments.items():
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if self.sound and number:
                self.mistake()
                return name, {**arguments, key: value + 1}
        return name, arguments


class MistypesTheAnswer(OneMistake):
    """Makes the right calls, and swaps two letters of the code in its answer."""

    says = Declared(("ignored_result",))

    def end(self, desk, answer):
        at = next((n for n in range(len(answer) - 2, 0, -1) if answer[n] != answer[n + 1]), None)
        if self.sound and at and is_id(answer):
            self.mistake()
            answer = answer[:at] + answer[at + 1] + answer[at] + answer[at + 2 :]
        self.episode.answer(answer)


class KeepsTheExpiredValue(OneMistake):
    """Makes a call again with a value that a failure has just replaced, and refuses."""

    says = Declared(("ignored_update",), ("repetition", "no_recovery"))

    def read(self, desk, tool, text, result):
        if self.sound and result.hint is not None and result.hint.kind == "value":
            self.mistake()
            last = self.episode.steps[-1]
            self.episode.call(last.name, last.given)
            self.episode.next_turn()
            raise GaveUp()
        return text, result


class MisspellsAName(OneMistake):
    """Leaves a letter out of a name that the user gave."""

    says = Declared(("bad_arguments",))

    def instead(self, desk, tool, name, arguments):
        for key, value in texts(tool, arguments):
            if self.sound and not is_id(value) and value.lower() in self.requested.lower():
                self.mistake()
                return name, {**arguments, key: value[:2] + value[3:]}
        return name, arguments


class NestsArguments(OneMistake):
    """Wraps the arguments of a call in an object that the schema does not have."""

    says = Declared(("bad_arguments",))

    def instead(self, desk, tool, name, arguments):
        if self.sound and arguments:
            self.mistake()
            return name, {"input": arguments}
        return name, arguments


class Placeholder(OneMistake):
    """Makes the last call first, with "unknown" for what the calls before it would have told."""

    says = Declared(("invented_value",), ("wrong_order", "bad_arguments"))

    def begin(self, desk):
        last = self.scene.calls[-1] if self.scene.calls else None
        if not self.sound or last is None or self.episode.steps:
            return
        known = {k: v for k, v in last.given.items() if str(v).lower() in self.requested.lower()}
        tool = next((tool for tool in self.episode.tools if tool.name == last.name), None)
        needed = [p for p in tool.params if p.required and p.name not in known] if tool else []
        if needed and all(p.schema.get("type") == "string" for p in needed):
            self.mistake()
            self.episode.call(last.name, {**known, **{p.name: "unknown" for p in needed}})
            self.episode.next_turn()
            raise GaveUp()


AGENTS: dict[str, type[OneMistake]] = {
    re.sub(r"(?<!^)(?=[A-Z])", "_", each.__name__).lower(): each
    for each in (
        SameEntityTwice,
        OffByOne,
        MistypesTheAnswer,
        KeepsTheExpiredValue,
        MisspellsAName,
        NestsArguments,
        Placeholder,
    )
}

"""Values of parameters that a text says as they were written before.

A prompt that says `call set_mode with mode="party"` would tell a model to pass what the tool takes
no longer. Whether such a text speaks of a call or of the world cannot always be told, so nothing in
it is changed: the shift is not applicable.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from toolshift.core.shift import NotApplicable
from toolshift.core.tool import Param, Tool
from toolshift.data.conversation import Conversation
from toolshift.interop.tools import Documented, Toolbox
from toolshift.shifts.surface import by_script

_VALUE = r"""(?P<value>"(?:[^"\\]|\\.)*"|'[^']*'|`[^`]*`|“[^”]*”|[+-]?\w+(?:[.-]\w+)*)"""
_LITERALS = {"True": True, "False": False}


class _Moved(NamedTuple):
    """A parameter whose values are written otherwise, and the true name of its tool."""

    tool: str
    param: Param

    def is_meant(self, text: str, sign: str, value: str) -> bool:
        """Whether a text that says `name=value`, or with a colon, says a value of before.

        Where a parameter takes any value, a colon may stand in any sentence; so then the text must
        name the tool.
        """
        if not any(self.param.write(one) != one for one in _readings(value)):
            return False
        if any(shape.kind == "choice" for shape in self.param.shapes):
            return True
        return sign == "=" or (self.tool in text and not value[0].isalpha())


def _readings(value: str) -> Iterator[Any]:
    """What a value in a text may be: the word, or what it is as JSON or in Python."""
    if value[0] in "\"'`“":
        yield value[1:-1]
        return
    yield value
    if value in _LITERALS:
        yield _LITERALS[value]
    try:
        yield msgspec.json.decode(value)
    except msgspec.DecodeError:
        return


def check_values(conversation: Conversation, shown: Iterable[Tool], toolbox: Toolbox) -> None:
    """Checks that no prompt and no turn of the assistant says a value as it was written before."""
    moved: dict[str, list[_Moved]] = {}
    for tool in shown:
        source = toolbox.source(tool)
        if source is None or isinstance(tool, Documented):
            continue
        for param in tool.params:
            if param.shapes and param.fact in source.known:
                one = _Moved(source.tool.name, param)
                moved.setdefault(source.known[param.fact], []).append(one)
    if not moved:
        return
    for message in conversation.messages:
        for text in (message.text, message.thought) if message.role in _SPEAKING else ():
            _check_text(text, moved)


_SPEAKING = ("system", "assistant")


def _check_text(text: str, moved: Mapping[str, list[_Moved]]) -> None:
    for signs, some in by_script(sorted(moved)):
        said = rf"(?<![{signs}.?&/#@-])(?P<mark>[`'\"]|\*\*|)(?P<name>{some})(?P=mark)"
        for match in re.finditer(rf"{said}\s*(?P<sign>[=:])(?!=)\s*{_VALUE}", text):
            found = (match["sign"], match["value"])
            if any(one.is_meant(text, *found) for one in moved[match["name"]]):
                raise NotApplicable(
                    f"a text says {match[0]}, and that value is written otherwise now"
                )

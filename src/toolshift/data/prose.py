"""What prose says of tools, by other names.

A text of a conversation mostly speaks of the world. A parameter is renamed only where it plainly is
one: in a call that is written with the name of its tool, or marked in a sentence that names the
tool. Values of written calls, URLs and the keys of other objects stay as they are. The name of a
tool is renamed where it means the tool (`tool_mentions`); where it may, nothing is said at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from toolshift.core.shift import NotApplicable
from toolshift.data.tool_mentions import NOTHING, SQL, URL, Meaning, Seen, ToolNames
from toolshift.shifts.surface import Names, by_script, is_word, mentions

MAX_OPEN = 8
"""At most this many unclosed brackets are searched for their end, so that time stays linear."""
_TEXT = r'"(?:[^"\\]|\\.)*"' + r"|(?<!\w)'(?:[^'\\]|\\.)*'"
_SAYS_NAME = re.compile(r"(?i)\b(name|(?:tool|function|action)(?:_?name)?)$")
_OPEN, _CLOSE = "([{", ")]}"
_GIVEN = r"""["']\s*,\s*["'](?:arguments|parameters|input|args)["']\s*:\s*\{"""


class Renamed(NamedTuple):
    """A tool by another name, or by its own.

    Attributes:
        name: that it is shown under.
        params: for each of its parameters, the name that it is shown under.
    """

    name: str
    params: Names


class _Piece(NamedTuple):
    """A piece of a text.

    Attributes:
        text: as it is said.
        tool: that it names.
        param: that it names, if it is of a tool of the sentence.
        ends: whether a sentence ends with it.
    """

    text: str
    tool: str = ""
    param: str = ""
    ends: bool = False


@dataclass(frozen=True, eq=False)
class Prose:
    """How texts speak of tools that have other names.

    Attributes:
        tools: all of them; those that keep their names have parameters of their own.
    """

    tools: Mapping[str, Renamed]

    @property
    def inverse(self) -> Prose:
        """What undoes this."""
        return Prose(
            {
                new.name: Renamed(old, {name: param for param, name in new.params.items()})
                for old, new in self.tools.items()
            }
        )

    def say(self, text: str, here: Seen.Here = NOTHING) -> str:
        """A text by the names as shown; not applicable where a name may mean a tool, or not."""
        parts: list[str] = []
        sentence: list[_Piece] = []
        for piece in self._pieces(text, here):
            sentence.append(piece)
            if piece.ends:
                parts += self._said(sentence)
                sentence = []
        return "".join([*parts, *self._said(sentence)])

    # -- inside --------------------------------------------------------------------------------

    def _said(self, sentence: list[_Piece]) -> Iterator[str]:
        """A sentence; a parameter is one of the tool before it, or else of the first after it."""
        for place, piece in enumerate(sentence):
            if not piece.param:
                yield piece.text
                continue
            around = (*reversed(sentence[:place]), *sentence[place:])
            tables = (self.tools[one.tool].params for one in around if one.tool)
            table = next((table for table in tables if piece.param in table), {})
            yield table.get(piece.param, piece.text)

    def _pieces(self, text: str, here: Seen.Here) -> Iterator[_Piece]:
        place, left = 0, MAX_OPEN
        marks = any(f"{name}=" in text or f"`{name}`" in text for name in self._params)
        outer = self._with_params if marks else self._outer
        while match := outer.search(text, place):
            yield _Piece(text[place : match.start()])
            kind, word, place = match.lastgroup, match[0], match.end()
            tool = (
                word if kind == "tool" and self._is_meant(text, match.start(), word, here) else ""
            )
            inside = None
            if left and (kind == "object" or (tool and text.startswith("(", place))):
                inside = self._inside(text, match.start(), here)
                left -= inside is None
            if inside is not None:
                inner, place = inside
                yield _Piece(inner, tool)
            elif tool:
                yield _Piece(self.tools[tool].name, tool)
            elif kind == "value":
                yield self._value(text, match, here)
            else:
                yield _Piece(word, param=word if kind == "param" else "", ends=kind == "end")
        yield _Piece(text[place:])

    def _is_meant(self, text: str, start: int, name: str, here: Seen.Here) -> bool:
        """Whether a name at a place means its tool; not applicable where that is not certain."""
        moved = self.tools[name].name != name
        meaning = self._names.meaning(text, start, name, here if moved else NOTHING)
        if moved and meaning is Meaning.UNSURE:
            raise NotApplicable(f"a text says {name}, which may mean the tool or something else")
        return meaning is Meaning.TOOL

    def _value(self, text: str, match: re.Match[str], here: Seen.Here) -> _Piece:
        """What is given as `="..."`: a tool after `name`, `tool` and the like, else a value."""
        word, name = match[0], match[0][2:-1]
        label = _SAYS_NAME.search(text[max(0, match.start() - 30) : match.start()])
        if name not in self.tools or not label:
            return _Piece(word)
        used = self._names.is_used(text, match.start() + 2, name)
        if (label[1] in self._all_params and not used) or not self._is_meant(
            text, match.start() + 2, name, here
        ):
            return _Piece(word)
        return _Piece(word.replace(name, self.tools[name].name), name)

    def _by_names(self, text: str, begin: int, end: int, here: Seen.Here) -> str:
        """A part of a text with the tools in it that no plain word could mean."""
        parts, place = [], begin
        for match in self._named.finditer(text, begin, end):
            meant = self._is_meant(text, match.start(), match[0], here)
            parts += [text[place : match.start()], self.tools[match[0]].name if meant else match[0]]
            place = match.end()
        return "".join((*parts, text[place:end]))

    def _inside(self, text: str, start: int, here: Seen.Here) -> tuple[str, int] | None:
        """A written call, or an object, as it is said, and its end; None where it has none."""
        parts: list[str] = []
        # For each bracket that is open, the parameters of the tool that it is a call of, if any.
        opened: list[Names | None] = []
        place = start
        for match in self._inner.finditer(text, start):
            parts.append(text[place : match.start()])
            word, place = match[0], match.end()
            name = match["caller"] or match["named"]
            if match["caller"] and not self._is_meant(text, match.start(), name, here):
                opened.append(None)
            elif name:
                word = word.replace(name, self.tools[name].name, 1)
                opened.append(self.tools[name].params)
            elif word in _OPEN:
                # An object right behind the bracket of a call holds its arguments.
                same = word == "{" and text[place - 2 : place - 1] == "("
                opened.append(opened[-1] if opened and same else None)
            elif word in _CLOSE:
                opened.pop()
            else:
                word = self._word(match, opened, here)
            parts.append(word)
            if not opened:
                return "".join(parts), place
        return None

    def _word(self, match: re.Match[str], opened: list[Names | None], here: Seen.Here) -> str:
        """A word in brackets: a key of a call, or a tool; a value of a call is neither."""
        kind, word = match.lastgroup, match[0]
        if kind == "tool":
            return self._by_names(match.string, match.start(), match.end(), here)
        own = opened[-1] or {}
        if kind == "key":
            return own.get(word, word)
        if kind == "label" and word[1:-1] in own:
            return f"{word[0]}{own[word[1:-1]]}{word[-1]}"
        if any(table is not None for table in opened):
            return word
        return self._by_names(match.string, match.start(), match.end(), here)

    @cached_property
    def _params(self) -> list[str]:
        """The parameters that have other names."""
        tables = (tool.params for tool in self.tools.values())
        return sorted({old for table in tables for old, new in table.items() if old != new})

    @cached_property
    def _all_params(self) -> frozenset[str]:
        """The parameters of all tools."""
        return frozenset(param for tool in self.tools.values() for param in tool.params)

    @cached_property
    def _names(self) -> ToolNames:
        """The tools, as texts name them."""
        params = {name: tool.params for name, tool in self.tools.items()}
        return ToolNames(frozenset(self.tools), params)

    @cached_property
    def _named(self) -> re.Pattern[str]:
        """Finds the tools that no plain word could mean."""
        names = {name: "" for name in self.tools if not is_word(name)}
        return mentions(names, plain=False) if names else re.compile(r"(?!)")

    @cached_property
    def _signs(self) -> dict[str, str]:
        return {
            "url": f"{URL}|{SQL}",
            "value": f"=(?:{_TEXT})",
            "tool": self._names.anywhere.pattern,
            "object": r"\{(?=\s*[\"'])",
        }

    @cached_property
    def _outer(self) -> re.Pattern[str]:
        """For texts that mark no parameter, as most do not: it takes a sixth of the time."""
        return _one_of(**self._signs)

    @cached_property
    def _with_params(self) -> re.Pattern[str]:
        marked = [rf"(?<=`)(?:{some})(?=`)" for _, some in by_script(self._params)]
        # A part of a URL is none, nor what SQL compares, whose words are written in capitals.
        marked += [
            rf"(?<![{signs}.?&/#;@-])(?<![A-Z] )(?:{some})(?==(?!=))"
            for signs, some in by_script(self._params)
        ]
        return _one_of(**self._signs, param="|".join(marked), end=r"[.!?](?=\s)|[\n。！？]")

    @cached_property
    def _inner(self) -> re.Pattern[str]:
        names = "|".join(map(re.escape, sorted(self.tools, key=len, reverse=True)))
        keys = [
            rf"(?<![{signs}.])(?:{some})(?=\s*=(?!=))" for signs, some in by_script(self._params)
        ]
        return _one_of(
            json=rf"[\"'](?P<named>{names}){_GIVEN}",
            call=rf"(?P<caller>{self._signs['tool']})\(",
            label=rf"(?:{_TEXT})(?=\s*:)",
            text=_TEXT,
            tool=self._named.pattern,
            key="|".join(keys),
            bracket=r"[(\[{)\]}]",
        )


def _one_of(**patterns: str) -> re.Pattern[str]:
    """Finds what the first of some patterns finds; those that are empty find nothing."""
    return re.compile("|".join(f"(?P<{name}>{one})" for name, one in patterns.items() if one))

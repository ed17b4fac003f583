"""Finds calls behind marks in a text, and tells them from what only speaks of marks.

The text is read once, from left to right. What is passed over as a whole hides the marks in it:
the value of a call that was read, a thought, a block of code beside prose, JSON, a line that is a
call of our own layout, and a quotation.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from toolshift.core.calls import Call, MalformedCall, malformed_call
from toolshift.lm.call_texts.format import DECODER, NAME, NEVER, Broken, Format, Found, Text
from toolshift.lm.call_texts.json_calls import json_calls, name_in
from toolshift.lm.call_texts.python_calls import calls_from
from toolshift.lm.call_texts.table import FORMATS, PARTS
from toolshift.lm.call_texts.tools import Tools

_BAR = "[|\uff5c]"
_TURN_END = re.compile(
    rf"(?:</s>|<{_BAR}(?:eo[mt]_id|im_end|end|end_of_text|endoftext|return|call|observation|user|"
    rf"stop|end[_\u2581]of[_\u2581]sentence){_BAR}>|<end_of_turn>|<turn\|>|\[e~\[)\s*+"
)
"""What ends the turn of a model."""
_THOUGHTS = {
    "[THINK]": "[/THINK]",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "<|channel>thought": "<channel|>",
    "<|inner_prefix|>": "<|inner_suffix|>",
    "<|content_thinking|>": "<|end_message|>",
    "<|open|>think<|sep|>": "<|close|>think<|sep|>",
    "\u25c1think\u25b7": "\u25c1/think\u25b7",
}
"""What begins and ends a thought in the templates of models that think aloud, beside tags."""
_THINKING = r"(?:\w+[:_])?(?i:think|thinking|thought|reasoning)"
_UNKNOWN = (
    rf"<{_BAR}[^<>\s]{{0,40}}(?:tool|function|action)[^<>\s]{{0,40}}>",
    r"<[\w:.\-]{0,40}(?:tool|function)[_\-\u2581]?(?:call|use|invoke|request)[\w:.\-]{0,40}"
    r"(?:\s[^<>\n]{0,200})?>",
    r"<(?:call|use|invoke|execute|run)[_\-](?:tool|function)s?\b[^<>\n]{0,200}>",
    r"<function\b",
    r"\[[A-Z_]{0,40}(?:TOOL|FUNCTION)[A-Z_]{0,40}\]",
)
"""Marks that are built like those of known formats."""
_NO_CALL = re.compile(
    r"(?i)end|suffix|result|response|output|declaration|definition|available|list|^[<\[]/|\|>$(?<=call\|>)"
)
"""A mark that ends a call, or stands before something else."""
_CLOSING = re.compile(
    r"</[^<>\n]{0,60}(?:tool|function|invoke|call|action)[^<>\n]{0,60}>"
    rf"|<{_BAR}(?:/|[^<>\n]{{0,60}}(?:end|END|suffix))[^<>\n]{{0,60}}>|\[/[A-Z_]{{1,40}}\]|<\w{{1,40}}\|>"
)
"""What ends a call, in a format that is not known or not followed."""
_BEGINS = re.compile(rf"\s*+(?:{NAME}(?:[(\[]|\s*+[{{<]|\s*?\n)|[{{\[<\"\]])")
"""What tells a call from a word about its mark: a bracket, or a name before one."""
_STRUCTURE = re.compile(r"[{\[(<]")
_CUT_OFF = re.compile(rf"\s*+(?:{NAME}\s*+)?[<>\[\]|\uff5c`]{{0,6}}\Z")
_LEADING = re.compile(rf"\s*+(?:call:|functions\.|function\s)?\s*+({NAME})")
_NAMED = re.compile(rf"(?:=|\bname=|\btool=)[\"']?({NAME})[\"']?[^<>\n]*>")
_GIVES = re.compile(r"\s*+\[?\s*+\{[^{}]*\"(?:arguments|parameters)\"\s*+:")
_HERE = re.compile("")
_TRIES = 50
"""How many broken values of JSON are looked at; a text with more of them is none of JSON."""
_SHORTEST = 6
"""The characters of a mark that tell it where a text is cut off in the middle of it."""


def _plain(pattern: str) -> str:
    """A pattern without named groups, as part of another."""
    return re.sub(r"\(\?P<\w+>", "(?:", pattern)


_MARKED = [(each, each.opening) for each in FORMATS if each.opening]
_PARTS = "|".join(PARTS)
_LIKE = re.compile("|".join(_UNKNOWN))
_SURE = [_plain(opening.pattern) for each, opening in _MARKED if each.sure]
_NEXT = re.compile("|".join((*_SURE, _PARTS)), re.MULTILINE)
_NEXT_LINE = re.compile(rf"^[ \t]*(?:{_NEXT.pattern})", re.MULTILINE)
_ANY = [_plain(opening.pattern) for _, opening in _MARKED]
_IN_A_ROW = rf"(?:(?:{_PARTS})\s*+)+"
_MASTER = re.compile(
    r"(?=[<\[\]>`\u25c1\u273f]|^|(?<=\})|functools|function call)(?:"  # nothing begins elsewhere
    rf"(?P<thought>^[ \t]*<{_THINKING}>|{'|'.join(map(re.escape, _THOUGHTS))})"
    rf"|(?P<thought_end></{_THINKING}>|\[/THINK\]|\u25c1/think\u25b7)"
    rf"|(?P<mark>{'|'.join((*_ANY, _IN_A_ROW))})"
    rf"|(?P<unknown>{'|'.join(_UNKNOWN)})"
    r"|(?P<fence>^[ \t]*```[^\n`]*\n)"
    r"|(?P<line>^[ \t]*\w[\w.\-/:$]*\()"
    r"|(?P<data>^[ \t]*[\[{]))",
    re.MULTILINE,
)
_SIGNS = re.compile(r"[<>\[\]{`\u25c1\u273f]")
"""One of these stands in every call behind a mark."""
_FENCE_END = re.compile(r"^[ \t]*```[ \t]*$", re.MULTILINE)
_FIRST_SIGNS = {
    sign
    for each, _ in _MARKED
    if not each.example[0].isalpha()
    and _NEXT.match(sign := re.split(r"get_ticket|\n|\{|(?<=\]) ", each.example, maxsplit=1)[0])
}
"""How the marks begin."""


_LAST = re.compile(rf"{_TURN_END.pattern}\Z")
_LONGEST_SIGN = 40
_MOST_SIGNS = 9


def without_turn_end(text: str) -> str:
    """A text without the signs that end the turn of its model, which some servers hand on."""
    for _ in range(_MOST_SIGNS):
        text = text.rstrip()
        last = _LAST.search(text[-_LONGEST_SIGN:])
        if last is None:
            break
        text = text[: len(text) - len(last[0])]
    return text


class Scan(NamedTuple):
    """What a text has behind marks.

    Attributes:
        calls: in their order, malformed ones among them.
        prose: the text beside them, without thoughts.
        passed: how many marks with what looks like a call were left as text: in code beside prose,
            in a quotation, or of no known format.
        spans: where calls stand: begin, end, and how many they are.
    """

    calls: tuple[Call, ...]
    prose: str
    passed: int
    spans: tuple[tuple[int, int, int], ...] = ()


def scan(text: str, tools: Tools) -> Scan:
    """Reads a text; no text makes it fail."""
    return _Scanner(text, tools).read() if _SIGNS.search(text) else Scan((), text, 0)


class _Scanner:
    def __init__(self, text: str, tools: Tools) -> None:
        self.text, self.said, self.tools = Text(text), text, tools
        self.calls: list[Call] = []
        self.prose: list[str] = []
        self.spans: list[tuple[int, int, int]] = []
        self.passed = 0
        self._kept = 0  # what stands before it is read, or in `prose`
        self._tries = 0

    def read(self) -> Scan:
        position = 0
        while match := _MASTER.search(self.said, position):
            position = max(self._take(match), match.start() + 1)
        self._take_cut_off_mark()
        self._keep(len(self.said))
        prose = _TURN_END.sub("\n", "".join(self.prose))
        return Scan(tuple(self.calls), prose.strip(), self.passed, tuple(self.spans))

    def _take(self, match: re.Match[str]) -> int:
        """Reads one thing; returns where to go on."""
        kind, start = match.lastgroup, match.start()
        if kind == "thought":
            return self._pass(start, self._end_of_thought(match))
        if kind == "thought_end":
            return self._forget(match)
        if kind == "fence":
            return self._fence(match)
        if kind == "line":
            return self._python(match)
        if kind == "data":
            return self._data(match)
        if self._quoted(start):
            self.passed += bool(_BEGINS.match(self.said, match.end()))
            return match.end()
        known = len(self.calls)
        end = self._call(start) or self._not_read(match)
        if len(self.calls) > known:
            self.spans.append((start, end, len(self.calls) - known))
        return self._pass(start, end) if end else match.end()

    # -- what is no call --------------------------------------------------------------------------

    def _keep(self, end: int) -> None:
        self.prose.append(self.said[self._kept : end])
        self._kept = end

    def _pass(self, start: int, end: int) -> int:
        """Leaves a part out of the prose."""
        self._keep(start)
        self._kept = end
        return end

    def _end_of_thought(self, match: re.Match[str]) -> int:
        opening = match[0].strip()
        closing = _THOUGHTS.get(opening, f"</{opening[1:]}")
        end = self.said.find(closing, match.end())
        return len(self.said) if end < 0 else end + len(closing)

    def _forget(self, match: re.Match[str]) -> int:
        """All before the end of a thought is thought, where its beginning stands in the prompt."""
        end = match.end()
        following = self.text.skip(end)
        if not self._ends(end, following):
            return end
        self.calls.clear()
        self.prose.clear()
        self.spans.clear()
        self._kept = end
        return end

    def _fence(self, match: re.Match[str]) -> int:
        """Code beside prose explains; code that is all of a reply is what the reply says."""
        closing = _FENCE_END.search(self.said, match.end())
        end = closing.end() if closing else len(self.said)
        before = "".join((*self.prose, self.said[self._kept : match.start()]))
        if not before.strip() and not self.calls and not self.said[end:].strip():
            return match.end()
        marks = _NEXT.finditer(self.said, match.end(), end)
        self.passed += any(_BEGINS.match(self.said, mark.end()) for mark in marks)
        return end

    def _data(self, match: re.Match[str]) -> int:
        """JSON that begins a line: marks in its texts are none."""
        if self._tries < _TRIES:
            try:
                return DECODER.raw_decode(self.said, match.end() - 1)[1]
            except (ValueError, RecursionError):
                self._tries += 1
                return self._python(match)
        return match.end()

    def _python(self, match: re.Match[str]) -> int:
        """Calls of our own layout, or a list of them, that begin a line: the same holds."""
        try:
            found = calls_from(self.text, match.start(), self.tools)
        except Broken:
            found = None
        return found.end if found else match.end()

    def _quoted(self, start: int) -> bool:
        """Whether a quotation, or code, is open before a place in its line."""
        begin = max(self.said.rfind("\n", 0, start) + 1, self._kept)
        return any(self.said.count(quote, begin, start) % 2 for quote in ('"', "`"))

    # -- calls ------------------------------------------------------------------------------------

    def _call(self, start: int) -> int:
        """Reads a call in the first format that takes it; 0 where none does."""
        for each, opening in _MARKED:
            mark = opening.match(self.said, start)
            if mark is None or each.body is None:
                continue
            try:
                found = each.body(self.text, mark, self.tools)
                if found is None:
                    continue
                end = self._closed(each, found)
            except Broken as broken:
                return self._broken(each, mark, broken)
            self.calls += found.calls
            return self._further(each, end) if each.body is json_calls else end
        return 0

    def _further(self, of: Format, end: int) -> int:
        """Takes calls in JSON before which the mark was lost; returns where the last one ends."""
        while (here := _HERE.match(self.said, end)) and _GIVES.match(self.said, end):
            try:
                found = json_calls(self.text, here, self.tools)
                if found is None:
                    break
                end = self._closed(of, found)
            except Broken:
                break
            self.calls += found.calls
        return end

    def _closed(self, of: Format, found: Found) -> int:
        """Where a call ends; it raises `Broken` where something else stands in its end's place."""
        following = self.text.skip(found.end)
        closing = of.closing.match(self.said, following)
        end = closing.end() if closing else found.end
        if not closing and of.sure:
            ends = of.closing is NEVER or self._ends(found.end, following)
            if not ends or self.text.at(following, "]})"):
                raise Broken(found.calls[0].name if found.calls else "")
        turn_end = _TURN_END.match(self.said, self.text.skip(end))
        return turn_end.end() if turn_end else end

    def _ends(self, end: int, following: int) -> bool:
        """Whether a call may end without its closing mark: with the line, before another mark."""
        return (
            following == len(self.said)
            or "\n" in self.said[end:following]
            or bool(_NEXT.match(self.said, following))
            or bool(_TURN_END.match(self.said, following))
        )

    def _broken(self, of: Format, mark: re.Match[str], broken: Broken) -> int:
        """Takes a call that cannot be read; returns where it ends."""
        self.calls += broken.calls
        start = mark.end() if broken.start is None else broken.start
        piece, end = self._region(start, of.closing)
        self.calls.append(malformed_call(broken.name or self._name(piece), piece.strip()))
        return end

    def _region(self, start: int, closing: re.Pattern[str] = NEVER) -> tuple[str, int]:
        """What belongs to a call that cannot be read, and where the text goes on."""
        ended = self.text.find(closing, start) or self.text.find(_CLOSING, start)
        following = self.text.find(_NEXT_LINE if ended else _NEXT, start)
        turn_end = self.text.find(_TURN_END, start)
        ends = [(one.start(), one.end()) for one in (ended, turn_end) if one]
        ends += [(following.start(), following.start())] if following else []
        stop, end = min(ends, default=(len(self.said), len(self.said)))
        return self.said[start:stop], end

    def _not_read(self, match: re.Match[str]) -> int:
        """Takes what no format reads as malformed, if it is meant as a call; else returns 0."""
        known = _NEXT.match(self.said, match.start())
        mark = known or _LIKE.match(self.said, match.start())
        if mark is None:
            return 0
        piece, end = self._region(match.end() if known else mark.end())
        begins = bool(_BEGINS.match(piece))
        if known:
            cut_off = end == len(self.said) and bool(_CUT_OFF.match(piece))
            if not (begins or cut_off):
                return 0
            if cut_off and self._in_malformed(match.start()):
                return end
        elif _NO_CALL.search(mark[0]):
            return 0
        elif not (self._offered(piece) and _STRUCTURE.search(piece)):
            self.passed += begins
            return 0
        self.calls.append(malformed_call(self._name(mark[0] + piece), piece.strip()))
        return end

    def _in_malformed(self, start: int) -> bool:
        """Whether nothing stands between a malformed call and what is cut off at the end."""
        last = self.calls[-1] if self.calls else None
        return isinstance(last, MalformedCall) and not self.said[self._kept : start].strip()

    def _offered(self, piece: str) -> str:
        """The tool on offer that is named first in a piece."""
        found = [(at, name) for name in self.tools.names if (at := piece.find(name)) >= 0]
        return min(found, default=(0, ""))[1]

    def _name(self, piece: str) -> str:
        """The tool that a piece means which cannot be read."""
        named = _NAMED.search(piece)
        leading = _LEADING.match(piece)
        return (
            name_in(piece)
            or (named[1] if named else "")
            or self._offered(piece)
            or (leading[1] if leading else "")
        )

    def _take_cut_off_mark(self) -> None:
        """A mark that the text is cut off in is a call that cannot be read."""
        for sign in _FIRST_SIGNS:
            for length in range(len(sign) - 1, _SHORTEST - 1, -1):
                start = len(self.said) - length
                if start >= self._kept and self.said.endswith(sign[:length]):
                    if not self._quoted(start):
                        if not self._in_malformed(start):
                            self.calls.append(malformed_call("", sign[:length]))
                        self._pass(start, len(self.said))
                    return

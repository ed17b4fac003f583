"""Whether a text that has the name of a tool in it means the tool.

`search_docs` hardly means anything else, and `search` mostly does. So the form tells: `Action:
search`, "the search tool" and "use search to ..." mean the tool; a path, a file name, SQL and a
name that stands in a result, an argument or the code of a user before mean something of the world.
Where neither is certain nothing is guessed: whoever asks does without.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from toolshift.core.text import QUOTES
from toolshift.core.values import as_json
from toolshift.data.conversation import Message, Role
from toolshift.shifts.surface import is_word, mentions


class Meaning(Enum):
    """What a name in a text means."""

    TOOL = "the tool"
    OTHER = "something else"
    UNSURE = "either"


# -- the forms ---------------------------------------------------------------------------------

WINDOW = 100
"""So many characters on either side of a name are looked at."""
URL = r"://[^\s<>\"'`]+"
SQL = (
    r"\b(?:SELECT\b[^;\n`]{0,300}?\bFROM|INSERT INTO|DELETE FROM|UPDATE(?=\s+\w+\s+SET\b)|JOIN|"
    r"WHERE|(?:ORDER|GROUP) BY)\s+[\w.]+"
)
_JOINED = ("/", "\\", ".", "@")
_SPARED = re.compile(rf"{URL}|{SQL}")
_MARK = rf"[*{QUOTES}]{{0,3}}"
_QUOTE = re.compile(f"[{QUOTES}]")
_NOUN = r"(?:tool|function|action)"
_VERB = r"(?:us(?:e|es|ing)|call(?:s|ing)?|invok(?:e|es|ing))"
_GOES_ON = (
    r"to|for|with|and|or|but|nor|before|after|when|whenever|while|if|unless|until|because|since|so|"
    r"then|on|in|at|from|by|via|as|first|again|instead|only|once|twice|here|now|next|where|which|"
    r"that|rather|than|is|are|was|will|can|must|should|may|not"
)
"""Words of grammar: what stands before one of them is no part of a compound ("search engines")."""
_CLOSED = rf"{_MARK}(?:\s*(?:$|[\n.,;:!?)\]}}|<>/&+\[({{=→])|\s+(?:{_GOES_ON})\b)"
_ARROW = r"(?:→|[-=]>)"


def _before(pattern: str) -> re.Pattern[str]:
    """Finds a form that ends where a name, and the marks around it, begin."""
    return re.compile(rf"(?i:{pattern}){_MARK}$")


def _after(pattern: str) -> re.Pattern[str]:
    """Finds a form that begins where a name ends."""
    return re.compile(pattern)


_LABEL = rf"\b{_NOUN}s?(?:[ _-]?(?:name|call))?{_MARK}\s*[:=]\s*[\[(]?"
_ACTS = (
    (_before(_LABEL), _after(_CLOSED)),
    (_before(rf"\b{_VERB}(?:\s+(?:the\s+)?{_NOUN})?\s*:?\s+"), _after(_CLOSED)),
    (_before(rf"<(?:\w+[:_])?(?:{_NOUN}|invoke)(?:_?name)?>\s*"), _after(r"\s*</")),
    (_before(rf"<(?:\w+:)?(?:{_NOUN}|invoke)\b[^<>]*\bname\s*=\s*"), _after(r"[\"']")),
)
"""What is done with a tool: `Action: X`, "use X to", `<tool>X</tool>`, `<invoke name="X">`."""
_NAMES = (
    (_before(""), _after(rf"{_MARK}\s+(?:tool|function)\b")),
    (_before(rf"\b{_NOUN}s?\s+(?:called|named)\s+"), _after(_CLOSED)),
)
"""What is said of a tool: "the X tool", "a function named X"."""
_NAMED = ((_before(rf"\bname{_MARK}\s*[:=]\s*"), _after("")),)
"""What tells a name in a prompt, where nothing was said yet that it could be quoted from."""
_MAYBE = (
    (_before(rf"\b{_NOUN}s?\s+"), _after("")),
    (_before(r"\bcalled\s+"), _after(_CLOSED)),
    (_before(rf"\b{_VERB}\s+the\s+"), _after(_CLOSED)),
    *_NAMED,
    (_before(r"</?"), _after(r"[\s/>]")),
    (_before(""), _after(r"(?:'|’)s\b")),
    (_before(""), _after(rf"\s*{_ARROW}")),
    (_before(rf"{_ARROW}\s*"), _after("")),
    (re.compile(r"\*\*$"), _after(r"\*\*")),
    (_before(""), _after(rf"{_MARK}\s+(?i:api|action)\b")),
)
"""What may be said of a tool, and of something else as well."""
_NO_VERB = re.compile(
    rf"(?i:\b(?:the|an?|this|that|your|my|our|their|its|no|each|any|every|of)\s+{_VERB})"
    rf"(?i:(?:\s+(?:the\s+)?{_NOUN})?)\s*:?\s+{_MARK}$"
)
"""A noun that is written as a verb of `_ACTS` is: "the use of", "no call to"."""
_NOUN_PLACE = _before(
    r"(?:[.;:,]|\b(?:if|when|because|since|that|but|while|of|from|by|with|via|than))\s+"
)
_ARTICLE = re.compile(r"\s+(?:the|an?|this|that|your|my|our|their|its|it|them|for)\b")
_AND = _before(r"(?:\b(?:and|or|but)|[,;])\s+(?:then\s+)?")
_PREPOSITION = re.compile(rf"{_MARK}\s+(for|to|when|if|with|on)\b")
_ENDS = re.compile(rf"{_MARK}\s*(?:$|[\n.;:!?)\]}}|])")
_BETWEEN = r"\s*(?:,\s*(?:(?:and|or)\b)?|/|\||&|;|\b(?:and|or)\b)\s*"
_ITEM = r"^[ \t]*(?:[-*•+]|\d+[.)]|#+|\|)?[ \t]*"
_ITEM_ENDS = rf"(?=[ \t]*(?::|[-–—|(]|{_ARROW}|$))"
_DEFINES = re.compile(r"(?:\b(?:def|class)\s+|\bimport\s+(?:[\w., ]+,\s*)?)$")
_IN_CODE = re.compile(rf"{_DEFINES.pattern}|[\[{{,:]\s*[\"']$")
_DEFINED = re.compile(
    r"\b(?:def|class)\s+(\w+)\s*[(:]|^[ \t]*import\s+(\w+)|^[ \t]*from\s+(\w+)\s+import\b"
    r"|\bfunction\s+(\w+)\([^()\n]*\)\s*\{",
    re.MULTILINE,
)
"""What code gives a name of its own, or takes from elsewhere by its name."""


def _has(forms: Iterable[tuple[re.Pattern[str], re.Pattern[str]]], before: str, after: str) -> bool:
    """Whether one of some forms stands around a name."""
    return any(one.search(before) and other.match(after) for one, other in forms)


_LEADS = re.compile(
    rf"(?i:{_NOUN}s?|{_VERB}|called|named|the|and|or|but|then|if|when|because|since|that|while|of|"
    r"from|by|with|via|than|def|class|import)"
)
"""The words that end a form above: behind any other, a plain word is one of its sentence."""
_FOLLOWS = re.compile(
    rf"[({QUOTES}]|{_MARK}(?:\s+(?i:tool|function|api|action)\b|(?:'|’)s\b|"
    rf"\s*(?:{_ARROW}|[,/|&;<]|\b(?:and|or)\b))"
)


def _is_in_sentence(before: str, after: str) -> bool:
    """Whether a plain word stands between others, with no form about it; most do."""
    if before[-1:] != " " or _FOLLOWS.match(after):
        return False
    lead = before[:-1].rpartition(" ")[2]
    return lead.isalpha() and not _LEADS.fullmatch(lead)


# -- what stays --------------------------------------------------------------------------------


class Seen:
    """What results, arguments and data of users say: nothing renames it, and texts may quote it.

    Args:
        said: the messages of a conversation; () where only a text is known.
    """

    def __init__(self, said: Iterable[Message] = ()) -> None:
        self._said = said
        self._first: dict[str, int | None] = {}

    @cached_property
    def _kept(self) -> list[tuple[int, bool, str]]:
        """Each text that stays, with the place of its message and whether a user says it."""
        found: list[tuple[int, bool, str]] = []
        for place, message in enumerate(self._said):
            texts = [message.text] if message.role in ("user", "tool") else []
            if message.role == "assistant":
                texts += [as_json([*c.arguments.values()]) for c in message.calls]
                texts += [
                    f'"{n}"' for match in _DEFINED.finditer(message.text) for n in match.groups()
                ]
            found += [(place, message.role == "user", text) for text in texts]
        return found

    def first(self, name: str, names: ToolNames) -> int | None:
        """The place of the first message with a name that stays; None for none."""
        if name not in self._first:
            self._first[name] = self._find(name, names)
        return self._first[name]

    def _find(self, name: str, names: ToolNames) -> int | None:
        """The place of the first message with a name that stays, looked for."""
        for place, by_user, kept in self._kept:
            if name not in kept:
                continue
            text = kept.replace("\\n", "\n")
            for start in names.places(text, name, _told(name)):
                # A user who says the name mostly means the tool; not so in code or data.
                if not by_user or _IN_CODE.search(text[max(0, start - WINDOW) : start]):
                    return place
        return None

    def at(self, place: int, role: Role) -> Seen.Here:
        """What stays, as it is seen from the message of a role at a place."""
        return Seen.Here(self, place, role == "system")

    class Here(NamedTuple):
        """What stays, as it is seen from a message.

        Attributes:
            seen: all of it.
            place: of the message.
            prompt: whether it is a prompt: a prompt names tools and their results beforehand.
        """

        seen: Seen
        place: int
        prompt: bool


NOTHING = Seen().at(0, "assistant")
"""Nothing was said but one text."""


@lru_cache(maxsize=1024)
def _told(name: str) -> re.Pattern[str]:
    """Finds a name; one that is a plain word, in quotes or before a bracket."""
    return mentions({name: ""}, plain=False)


class _Listed(NamedTuple):
    """The places of names in a text that stand in lists, surely of tools or perhaps."""

    surely: frozenset[int]
    perhaps: frozenset[int]


# -- names in texts ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ToolNames:
    """The names of the tools of one list, in texts.

    Attributes:
        names: of all tools.
        params: the parameters of each: `search.query` is one, other endings are of files.
    """

    names: frozenset[str]
    params: Mapping[str, Iterable[str]] = field(default_factory=dict)
    _last: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def anywhere(self) -> re.Pattern[str]:
        """Finds all of them as whole words."""
        names = dict.fromkeys(self.names, "")
        return mentions(names, plain=True) if names else re.compile(r"(?!)")

    def meaning(self, text: str, start: int, name: str, here: Seen.Here = NOTHING) -> Meaning:
        """What a name at a place in a text means."""
        end, word = start + len(name), is_word(name)
        before, after = text[max(0, start - WINDOW) : start], text[end : end + WINDOW]
        if self._is_part(name, before, after):
            return Meaning.OTHER
        if not here.prompt and before[-1:].isspace() and _DEFINES.search(before):
            return Meaning.OTHER
        if word and _is_in_sentence(before, after):
            return Meaning.OTHER
        if not word and here.seen.first(name, self) is None:
            return Meaning.TOOL
        marked = _is_marked(before, after)
        acts = self.is_used(text, start, name)
        named = acts or self._is_named(text, start, end, here.prompt)
        if word and not named:
            plainly = self._of_word(text, start, name, marked)
            if plainly is not Meaning.TOOL:
                return plainly
        first = None if acts or (word and not marked) else here.seen.first(name, self)
        if first is None or (named and here.prompt):
            return Meaning.TOOL
        return Meaning.OTHER if first <= here.place and not named else Meaning.UNSURE

    def is_used(self, text: str, start: int, name: str) -> bool:
        """Whether a text says that a tool is called, in a form that says nothing else."""
        end = start + len(name)
        before, after = text[max(0, start - WINDOW) : start], text[end : end + WINDOW]
        return _has(_ACTS, before, after) and not _NO_VERB.search(before)

    def first_meant(self, text: str, names: Iterable[str], here: Seen.Here = NOTHING) -> str:
        """The first of some tools that a text names, or may name; "" for none."""
        for name in names:
            for start in self.places(text, name, self.anywhere):
                if self.meaning(text, start, name, here) is not Meaning.OTHER:
                    return name
        return ""

    def places(self, text: str, name: str, pattern: re.Pattern[str]) -> Iterator[int]:
        """Where a name stands in a text, and is no part of an address, of a path or of SQL."""
        if name not in text:
            return
        spared = [match.span() for match in _SPARED.finditer(text)]
        for match in pattern.finditer(text):
            start, end = match.span()
            while spared and spared[0][1] <= start:
                spared.pop(0)
            if match[0] != name or (spared and spared[0][0] <= start):
                continue
            before, after = text[max(0, start - WINDOW) : start], text[end : end + WINDOW]
            if not self._is_part(name, before, after):
                yield start

    # -- inside --------------------------------------------------------------------------------

    def _is_part(self, name: str, before: str, after: str) -> bool:
        """Whether a name is a part of a path, of a file name or of an address."""
        if before[-1:] not in _JOINED and after[:1] not in _JOINED:
            return False
        if re.match(r"@\w", after):
            return True
        dotted = re.match(r"\.([a-z0-9]\w*)", after)
        if dotted and dotted[1] not in self.params.get(name, ()):
            return True
        if re.search(r"[\w:]\\$", before):
            return True
        opened = re.search(r"[^\s\"'`<>()\[\]{},;|]*$", before)
        closed = re.match(r"[^\s\"'`<>()\[\]{},;|]*", after)
        around = (opened[0] if opened else "", closed[0] if closed else "")
        if not (around[0].endswith("/") or re.match(r"/\w", around[1])):
            return False
        if around[0] == "/" and before.endswith("</"):
            return False
        steps = re.split("/", f"{around[0]}{name}{around[1]}".rstrip(".:!?"))
        return not self.names.issuperset(steps)

    def _is_named(self, text: str, start: int, end: int, prompt: bool) -> bool:
        """Whether a text speaks of a tool, in a form that speaks of nothing else."""
        before, after = text[max(0, start - WINDOW) : start], text[end : end + WINDOW]
        if _has(_NAMES, before, after) or (prompt and _has(_NAMED, before, after)):
            return True
        if start in self._listed(text).surely:
            return True
        if prompt and not is_word(text[start:end]) and self._beside_another(text, start, end):
            return True
        return self._goes_with_another(text, start, end)

    def _beside_another(self, text: str, start: int, end: int) -> bool:
        """Whether another tool stands in the line, by a name that is no plain word."""
        begin, stop = _line(text, start, end)
        found = (m[0] for m in self.anywhere.finditer(text, begin, stop))
        return any(name != text[start:end] and not is_word(name) for name in found)

    def _goes_with_another(self, text: str, start: int, end: int) -> bool:
        """Whether it stands as another tool of the sentence does: "use X for a and Y for b"."""
        how = _PREPOSITION.match(text, end)
        if not how or not _AND.search(text[max(0, start - WINDOW) : start]):
            return False
        begin, _ = _line(text, start, end)
        for match in self.anywhere.finditer(text, begin, start):
            same = _PREPOSITION.match(text, match.end())
            if same and same[1] == how[1] and self.is_used(text, match.start(), match[0]):
                return True
        return False

    def _of_word(self, text: str, start: int, name: str, marked: bool) -> Meaning:
        """What a plain word means that no form shows to be a tool."""
        end = start + len(name)
        before, after = text[max(0, start - WINDOW) : start], text[end : end + WINDOW]
        if not marked:
            return Meaning.UNSURE if self._may_be(text, start, name) else Meaning.OTHER
        if re.search(r"\w(?<!\bfunctions)(?<!\btools)\.$", before):  # a method of another thing
            return Meaning.OTHER
        return Meaning.UNSURE if _has(_NAMED, before, after) else Meaning.TOOL

    def _may_be(self, text: str, start: int, name: str) -> bool:
        """Whether a plain word may mean the tool of that name."""
        end = start + len(name)
        before, after = text[max(0, start - WINDOW) : start], text[end : end + WINDOW]
        if _has(_MAYBE, before, after) or start in self._listed(text).perhaps:
            return True
        # Beside what is surely a tool: "search failed, so ..." and "call search, then calculator."
        same = _NOUN_PLACE.search(before) and not _ARTICLE.match(after)
        other = _AND.search(before) and _ENDS.match(after)
        begin, stop = _line(text, start, end)
        return any(
            (same if match[0] == name else other)
            and match.start() != start
            and self.is_used(text, match.start(), match[0])
            for match in (self.anywhere.finditer(text, begin, stop) if same or other else ())
        )

    def _listed(self, text: str) -> _Listed:
        """The names in a text that stand in lists of tools; kept for the text that was last."""
        if self._last.get("text") != text:
            self._last.update(text=text, listed=self._find_lists(text))
        return self._last["listed"]  # type: ignore[no-any-return]

    def _find_lists(self, text: str) -> _Listed:
        """The names in a text that stand in lists of tools, looked for."""
        surely, perhaps = set[int](), set[int]()
        for match in self._enumerated.finditer(text):
            starts = {one.start() for one in self.anywhere.finditer(text, *match.span())}
            if self._is_list(match):
                surely |= starts
            elif not self._of_words(match[0]):
                perhaps |= starts
        items = list(self._items.finditer(text))
        starts = {match.start("name") for match in items}
        several = len({match["name"] for match in items}) > 1
        if several and (
            re.search(rf"(?i:\b{_NOUN}s?\b)", text[: items[0].start()])
            or not all(is_word(match["name"]) for match in items)
        ):
            return _Listed(frozenset(surely | starts), frozenset(perhaps))
        return _Listed(frozenset(surely), frozenset(perhaps | starts))

    def _is_list(self, match: re.Match[str]) -> bool:
        """Whether names that stand in a row are an enumeration of tools."""
        text, (start, end) = match.string, match.span()
        before, after = text[max(0, start - WINDOW) : start], text[end : end + WINDOW]
        if before[-1:] in tuple("[({") and after[:1] in tuple("])}"):
            return True
        closed = re.match(_CLOSED, after) is not None
        if closed and _has(_ACTS, before, " and") and not _NO_VERB.search(before):
            return True
        if re.match(rf"{_MARK}\s+(?:tool|function)s?\b", after):
            return True
        return _ENDS.match(after) is not None and not self._of_words(match[0])

    def _of_words(self, text: str) -> bool:
        """Whether all the tools in a text have names that are plain words."""
        return all(is_word(match[0]) for match in self.anywhere.finditer(text))

    @cached_property
    def _any(self) -> str:
        """Finds a name with the marks around it."""
        return rf"{_MARK}(?:{self.anywhere.pattern}){_MARK}"

    @cached_property
    def _enumerated(self) -> re.Pattern[str]:
        """Finds names that stand in a row."""
        return re.compile(rf"{self._any}(?:{_BETWEEN}{self._any})+")

    @cached_property
    def _items(self) -> re.Pattern[str]:
        """Finds the names of tools that head a line."""
        return re.compile(
            rf"{_ITEM}{_MARK}(?P<name>{self.anywhere.pattern}){_MARK}{_ITEM_ENDS}", re.MULTILINE
        )


def _is_marked(before: str, after: str) -> bool:
    """Whether a name stands in quotes or backticks, or before a bracket."""
    quoted = _QUOTE.fullmatch(before[-1:]) and _QUOTE.fullmatch(after[:1])
    return bool(quoted or after.startswith("("))


def _line(text: str, start: int, end: int) -> tuple[int, int]:
    """The line of a text around a place, as far as it is looked at."""
    first, last = max(0, start - WINDOW), min(len(text), end + WINDOW)
    begin, stop = text.rfind("\n", first, start), text.find("\n", end, last)
    return first if begin < 0 else begin + 1, last if stop < 0 else stop

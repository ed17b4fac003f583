"""The options in a question and the comparison it asks for: "Which is due first, A or B?"."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from toolshift.reading.phrase_spans import places
from toolshift.reading.text import fold
from toolshift.reading.words import QUALITIES, SCALES, Scale

_I = re.IGNORECASE
_MAX_PLACES = 6
"""The most places of the expected option in a request that are checked."""
_LINK = re.compile(
    r"\s*,\s*(?P<listed>or\b|and\b)?\s*|\s+(?P<word>or|and|vs\.?|versus)\s+|\s*(?P<slash>/)\s*|"
    r"(?P<end>[?.!;:](?=\s|$)|[\n()])",
    _I,
)
_ASKS = re.compile(r"\b(?:which|who|whom|whose|what|where|when|how)\b", _I)
_SEVERAL = (
    r"\b(?:of|between|from|among|amongst|out of|compare|following|these|two|three|four|five|both)"
    r"\s+(?:(?:the|these|those|my|our|your|both|two|three|four|five)\s+)*"
)
_OF = re.compile(_SEVERAL + r"(?:[^\W\d_]+s\b[,:]?\s+)?$", _I)
"""What stands before a list of options that "and" links: "of the tickets", "two rooms,"."""
_OF_THEM = re.compile(_SEVERAL + r"[^\W\d_]+s\b(?=[,:]?\s{2})", _I)
_LEAD = re.compile(
    r"(?:(?:the|an?|is|are|it|in|at|on|by|to|for|with|either|does|do|did|was|were|has|have|"
    r"whether|between|of|ones?(?=\s+(?:in|on|at|by|for|with|from|of)\b))\s+)+",
    _I,
)
_WORD = re.compile(r"[^\W_](?:[\w'.@+&-]*[^\W_])?")

_ALONE = ("time", "quality", "speed")
"""What "more" and "less" of something says nothing about."""
_BESIDES = re.compile(
    r"\b(?:at (?:first|last|least|most)|(?:first|last) (?:name|week|month|year|night|time|names)|"
    r"last (?:updated|modified|checked|seen)|(?:no|any) (?:longer|more)|"
    r"(?:more|most) (?:or less|of)|"
    r"(?:mentioned|said|shown|noted|stated) (?:earlier|first)|more information|first of all)\b|"
    r"\b(?:first|later|further(?:more)?|second|third),? (?:i|we|let)\b",
    _I,
)
"""Words of comparison that compare nothing; they are blanked out."""
_COMPARES = re.compile(
    r"\b(?P<more>more|most|less|least)(?: (?P<of>[^\W\d_]+))?|\b(?P<word>[^\W\d_]+)\b", _I
)
_KIND = re.compile(
    r"\b(?:which|what|whose) [^\W\d_]+"
    r"(?= (?:is|are|was|were|has|have|had|does|do|did|can|will|of)\b)"
)
"""The name of what all options are: "which ticket is"."""
_IN_NAMES = (
    "of",
    "the",
    "von",
    "van",
    "de",
    "der",
    "den",
    "da",
    "di",
    "du",
    "la",
    "le",
    "al",
    "bin",
)
_OPENS = ("of", "between", "among", "either", "whether", "the")
"""The last word before an option of plain words."""
_NO_NAME = frozenset((
    "which", "who", "whose", "what", "is", "are", "was", "were", "does", "do", "did", "has", "have",
    "of", "between", "can", "will", "the", "should", "from", "out",
))  # fmt: skip
"""Words that begin a question, which are no names even when capitalised."""
_SAYS_LITTLE = frozenset((
    "the", "a", "an", "is", "are", "was", "were", "be", "been", "do", "does", "did", "has", "have",
    "had", "of", "in", "on", "at", "to", "for", "or", "and", "which", "who", "whom", "whose",
    "what", "where", "when", "how", "whether", "between", "it", "one", "ones", "two", "please",
    "tell", "me", "you", "i", "my", "your", "that", "this", "there", "their", "its", "can", "could",
    "would", "will", "than", "by", "with", "from", "among", "vs", "versus", "either", "them", "s",
))  # fmt: skip


class Comparison(msgspec.Struct, frozen=True):
    """A word of a text that compares.

    Attributes:
        scale: what is compared, and in which direction.
        start: its place in the text.
        end: where it ends there.
        word: the word, or both of "more recent".
    """

    scale: Scale
    start: int
    end: int
    word: str


def rivals(request: str, wanted: str) -> list[str]:
    """The options of a request beside the one that is expected."""
    text = fold(request)
    for number, (start, end) in enumerate(places(text, wanted)):
        if number == _MAX_PLACES:
            break
        size = len(_WORD.findall(text[start:end]))
        right, links = _to_the_right(text, end, size)
        left, more, first = _to_the_left(text, start, size)
        both = links + more
        chosen = "or" in both or ("and" in both and _OF.search(text[:first]))
        if chosen:
            options = dict.fromkeys(
                _without_kind(one, kind_of(text, start)) for one in (*left, *right)
            )
            return [one for one in options if one and one != wanted.casefold()]
    return []


def kind_of(text: str, start: int) -> str:
    """The word before an option that says what all of them are: "room" of "room A1 or room B2"."""
    words = [word.casefold() for word in _WORD.findall(text)]
    before = len(_WORD.findall(text[:start]))
    kind = words[before - 1] if before else ""
    return kind if words.count(kind) > 1 and kind not in _SAYS_LITTLE else ""


def _without_kind(option: str, kind: str) -> str:
    words = option.casefold().split()
    return " ".join(words[len(words) > 1 and words[0] == kind :])


def _to_the_right(text: str, end: int, size: int) -> tuple[list[str], list[str]]:
    """The options behind a place, and what links them."""
    options, links = list[str](), list[str]()
    link = _LINK.match(text, end)
    while link and not link["end"]:
        following = _LINK.search(text, link.end())
        stop = following.start() if following else len(text)
        piece = _without_lead(text[link.end() : stop])
        ended = links[-1:] != [","] and links and _kind(link) == ","
        if not piece.strip() or _ASKS.search(piece) or ended:
            break
        words = _of_option(_WORD.findall(piece))
        options.append(" ".join(words[: size + 2]))
        links.append(_kind(link))
        link = following if len(words) <= size + 2 else None
    return options, links


def _to_the_left(text: str, start: int, size: int) -> tuple[list[str], list[str], int]:
    """The options before a place, what links them, and where the first of all begins."""
    options, links, first = list[str](), list[str](), start
    every = list(_LINK.finditer(text, 0, start))
    while every:
        link = every.pop()
        piece = text[every[-1].end() if every else 0 : link.start()]
        words = _WORD.findall(piece)
        kind = _without_lead(text[link.end() : first] + " ").strip()
        if link["end"] or (kind and kind not in words[:-1]):
            break
        asks = bool(_ASKS.search(piece))
        lists = bool(words) and bool(_OF.search(piece[: piece.rfind(words[-1])]))
        alone = (asks and not lists) or not (words and _alike(words[-1], text[start:]))
        if not words or (_kind(link) == "," and alone):
            break
        at_start = not every and words[0].lower() in _NO_NAME
        whole = len(words) <= size + 2 and not (asks or at_start)
        option = _without_lead(" ".join(words if whole else _last_option(words, size)))
        options.append(option)
        links.append(_kind(link))
        begin = text.rfind(option.split()[0] if option else "", 0, link.start())
        first = max(begin, link.start() - len(piece))
        if not whole:
            break
    return options, links, first


def _without_lead(text: str) -> str:
    """A text without articles, prepositions and the verb of a question at its beginning."""
    lead = _LEAD.match(text.lstrip())
    return text.lstrip()[lead.end() :] if lead else text.lstrip()


def _of_option(words: list[str]) -> list[str]:
    """The words that can be an option: up to a comparison, and of a name up to a plain word."""
    name = not words[:1] or not words[0][:1].islower()
    for n, word in enumerate(words):
        plain = word[:1].islower() and word not in _IN_NAMES
        if n and (word.lower() in SCALES or (name and plain)):
            return words[:n]
    return words


def _last_option(words: list[str], size: int) -> list[str]:
    """The words at the end of a question that can be an option: a whole name, or as many."""
    begin = len(words) - 1
    if words[begin][:1].islower():
        near = [n for n, word in enumerate(words) if word.lower() in _OPENS]
        return words[near[-1] + 1 :] if near and begin - near[-1] <= size + 3 else words[-size:]
    while begin and not (words[begin - 1][:1].islower() or words[begin - 1].lower() in _NO_NAME):
        begin -= 1
    return words[begin:]


def _kind(link: re.Match[str]) -> str:
    word = (link["word"] or link["listed"] or "").lower()
    return "or" if link["slash"] or word.startswith("v") else word or ","


def _alike(one: str, other: str) -> bool:
    """Whether two words begin in the same manner: a name or figure, or a plain word."""
    return one[:1].islower() == other[:1].islower()


def comparisons(text: str) -> Iterator[Comparison]:
    """The words of a text that compare."""
    blanked = _BESIDES.sub(lambda match: " " * len(match[0]), text)
    for match in _COMPARES.finditer(blanked):
        more, of = (match["more"] or "").lower(), (match["of"] or "").lower()
        if not more:
            scale = SCALES.get(match["word"].lower())
            if scale:
                yield Comparison(scale, *match.span(), match[0].lower())
            continue
        _, sign = SCALES[more]
        if of in QUALITIES:
            name, direction = QUALITIES[of]
            yield Comparison((name, sign * direction), *match.span(), match[0].lower())
        else:
            yield Comparison(("amount", sign), *match.span("more"), more)


def agree(one: Scale, other: Scale) -> int:
    """Whether two comparisons go the same way."""
    names = {one[0], other[0]}
    if len(names) == 1 or ("amount" in names and not names & {*_ALONE}):
        return one[1] * other[1]
    return 0


def without_kinds(text: str) -> str:
    """A request without the words that say what its options are: "of the tickets"."""
    return _OF_THEM.sub(" ", text)


def telling_words(text: str) -> set[str]:
    """The words of a text that say something, by how they begin."""
    words = re.findall(r"[^\W_]+", _KIND.sub(" ", text.casefold()))
    return {word[:5] for word in words if word not in _SAYS_LITTLE}

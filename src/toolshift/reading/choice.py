"""Detects answers that choose another option than the expected one.

"Which is due first, T-101 or T-104?" is not answered with T-101 by "T-104 is due before T-101",
though that names T-101 as well. Read are clauses that say of an option what the request asks of
all. The clause with most of the request's words counts, and of equals the last one. Where no
clause says it of any option, nothing is held against the answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import msgspec

from toolshift.reading.assertion import verdict
from toolshift.reading.options import (
    Comparison,
    agree,
    comparisons,
    kind_of,
    rivals,
    telling_words,
    without_kinds,
)
from toolshift.reading.phrase_spans import places
from toolshift.reading.text import fold
from toolshift.reading.words import INSTEAD, negation

_I = re.IGNORECASE
_END = re.compile(r"[.!?;](?=[\s\"')\]]|$)|\n")
_CUT = re.compile(
    r"[,;:()]\s|[()]|\s-\s|\b(?:but|while|whereas|and|so|because|since|although|though|then)\b", _I
)
_NOT = re.compile(rf"(?!not only){negation('no', 'lacks?')}", _I)
_ASIDE = re.compile(
    r"(?:\b(?:than|before|after|over|against|versus|vs\.?|beats?|beat|beating|unlike|not|"
    rf"{INSTEAD}|as opposed to|in contrast (?:to|with)|compared (?:to|with)|"
    r"prior to|ahead of|precedes|follows|preceding|following)|"
    r"(?:\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|none))(?: [^\W\d_]+)? to)"
    r"\s+(?:(?:the|that of|for|that|those of)\s+)*[\"']?$",
    _I,
)
"""Words before an option that is only a contrast to another one."""
_JOINS = re.compile(r"\s*[\"']?\s*(?:,?\s*(?:and|or|vs\.?|versus)|[,/&])\s*(?:the\s+)?[\"']?", _I)
_GOES_ON = re.compile(r"\s+(?:is|was|has|had|comes|will|costs)\b", _I)
_RELATES = re.compile(
    r"\b(?:(?P<early>before|prior to|ahead of|precedes|preceded)|"
    r"(?P<late>after|follows|followed))\s+(?:(?:the|that of|that|those of)\s+)*[\"']?$",
    _I,
)
"""Words that place one option before or after another."""
_THAN = re.compile(
    r"[^.;:!?]{0,60}?\bthan\s+(?:(?:the|that of|that|those of|for|ones?|in|on|at|by)\s+)*[\"']?$",
    _I,
)
_SOME_THAN = re.compile(r"[^.,;:!?]{0,40}?\bthan\b", _I)
_IS = re.compile(
    r"[^,;.:]{0,40}?\b(?:is|was|are|were|be|comes?|came|goes to|belongs to)\s+"
    r"(?:(?:the|that of|by|for)\s+)*[\"']?$",
    _I,
)
_NAMES = re.compile(r"\s*(?:[:=-]+\s*)?[\"']?$")
_NAMED_ABOVE = re.compile(r"\bthe (?:(?P<former>former)|latter)\b", _I)
_OWN_WORK = re.compile(
    r"\b(?:i|we|let me|i've|let's)\b.*\b(?:look|check|call|search|fetch|quer|retriev|read|open|"
    r"compar|start|beg[ai]n|verif|tried|try)",
    _I | re.DOTALL,
)
_LEADS = re.compile(
    r"\W*(?:(?:so|therefore|thus|hence|and|then|my|the|final|answer|result|it|that|this|is|was|"
    r"would|be|it's|that's|option|ticket)\b\W*)*",
    _I,
)
_SO = re.compile(r"\b(?:so|therefore|thus|hence)\b", _I)
_PAST = re.compile(r"(?<!\bit )\b(?:was|were|had)\b", _I)


class _Mention(msgspec.Struct, frozen=True):
    """An option in a text; the expected one is number 0."""

    option: int
    start: int
    end: int
    aside: bool = False


class _Claim(msgspec.Struct, frozen=True):
    """A claim that an option is the requested one, and how many words of the request it uses."""

    option: int
    words: int


class _Question(msgspec.Struct, frozen=True):
    """The question about the options.

    Attributes:
        request: what the user said.
        options: the expected one first.
        compares: the comparison that is asked for; None where it is another thing.
        words: that tell what is asked, without the options.
        kind: the word that says what all options are, where they are named with it; "" for none.
    """

    request: str
    options: Sequence[str]
    compares: Comparison | None
    words: frozenset[str]
    kind: str = ""

    def other(self, option: int) -> int | None:
        """The only other option; None where there are several."""
        return 1 - option if len(self.options) == 2 else None


def chooses_another(text: str, wanted: str, request: str) -> bool:
    """Whether an answer says that another option of the request is the requested one."""
    question = _question(text, wanted, request)
    if question is None:
        return False
    mentions = _mentions(text, question)
    if not any(mention.option for mention in mentions):
        return False
    claims = list(_claims(text, question, mentions))
    if not claims:
        return _is_set_aside(mentions)
    if question.compares is None and len({claim.option for claim in claims}) > 1:
        return False
    most = max(claim.words for claim in claims)
    return [claim for claim in claims if claim.words == most][-1].option != 0


def _question(text: str, wanted: str, request: str) -> _Question | None:
    """The question that a request asks about its options; None if it offers none."""
    others = rivals(request, wanted) if request else []
    if not others:
        return None
    options = (wanted, *(_as_said(other, text, wanted) for other in others))
    rest = folded = fold(request)
    for option in options:
        for start, end in reversed([*places(rest, option)]):
            rest = rest[:start] + " " * (end - start) + rest[end:]
    compared = list(comparisons(rest))
    if len({comparison.scale for comparison in compared}) > 1:
        return None
    kind = next(
        (kind for start, _ in places(folded, wanted) if (kind := kind_of(folded, start))), ""
    )
    words = frozenset(telling_words(without_kinds(rest)) - telling_words(kind))
    return _Question(request, options, compared[0] if compared else None, words, kind)


def _as_said(option: str, text: str, wanted: str) -> str:
    """The longest beginning of an option that a text has; the first word where it has none."""
    words, own = option.split(), wanted.casefold().split()
    for size in range(len(words), 0, -1):
        begin = " ".join(words[:size])
        if (size > 1 or words[0] not in own) and any(True for _ in places(text, begin)):
            return begin
    shared = sum(1 for one, other in zip(words, own, strict=False) if one == other)
    rest = " ".join(words[shared:])
    if shared and words[:shared] == own[:shared] and rest and any(True for _ in places(text, rest)):
        return rest
    return words[0] if words[0] not in own else option


def _is_set_aside(mentions: Sequence[_Mention]) -> bool:
    """Whether the expected option only stands beside another: "Jan, with 4 to Zoe's 1"."""
    mine = [mention.aside for mention in mentions if mention.option == 0]
    return (
        bool(mine)
        and all(mine)
        and any(not mention.aside for mention in mentions if mention.option)
    )


# -- where options stand -----------------------------------------------------------------------


def _mentions(text: str, question: _Question) -> list[_Mention]:
    """The mentions of options in a text, in order; a bare list of options counts as none."""
    mentions = [
        _Mention(number, start, end, bool(_ASIDE.search(text[max(0, start - 60) : start])))
        for number, option in enumerate(question.options)
        for first, end in places(text, option)
        for start in [_with_kind(text, first, question.kind)]
    ]
    mentions.sort(key=lambda mention: mention.start)
    listed = {
        place
        for n, (mention, following) in enumerate(pairwise(mentions))
        if mention.option != following.option and _are_joined(text, mention, following)
        for place in (n, n + 1)
    }
    alone = [mention for n, mention in enumerate(mentions) if n not in listed]
    above = [_called_above(match, mentions) for match in _NAMED_ABOVE.finditer(text)]
    return sorted(
        [*alone, *(mention for mention in above if mention)], key=lambda mention: mention.start
    )


def _with_kind(text: str, start: int, kind: str) -> int:
    """Where an option begins with the word for what it is: "room A1"."""
    before = re.search(rf"\b{re.escape(kind)}\s+$", text[:start], _I) if kind else None
    return before.start() if before else start


def _are_joined(text: str, first: _Mention, second: _Mention) -> bool:
    """Whether two options are in one list; a comma may also end what was said of the first."""
    between = text[first.end : second.start]
    ends = between.strip() == "," and _GOES_ON.match(text, second.end)
    return bool(_JOINS.fullmatch(between)) and not (ends or first.aside)


def _called_above(match: re.Match[str], mentions: Sequence[_Mention]) -> _Mention | None:
    """The option that "the former" or "the latter" stands for."""
    before = [mention.option for mention in mentions if mention.end <= match.start()]
    last = [option for n, option in enumerate(before) if option not in before[n + 1 :]][-2:]
    if len(last) < 2:
        return None
    return _Mention(last[0] if match["former"] else last[1], *match.span())


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """Where sentences begin and end, but for questions."""
    start = 0
    for end in _END.finditer(text):
        if end[0] != "?":
            yield start, end.start()
        start = end.end()
    yield start, len(text)


# -- what is said of them ----------------------------------------------------------------------


def _claims(text: str, question: _Question, mentions: Sequence[_Mention]) -> Iterator[_Claim]:
    """The claims of a text, in order."""
    read: Callable[[_Sentence], Iterator[_Claim]] = (
        _by_words if question.compares is None else _by_comparison
    )
    for first, last in _sentences(text):
        here = [mention for mention in mentions if first <= mention.start and mention.end <= last]
        if here and not _OWN_WORK.search(text[first:last]):
            sentence = _Sentence(text, question, first, last, here)
            yield from sentence.alone()
            yield from read(sentence)


class _Sentence:
    """A sentence with options in it."""

    def __init__(
        self,
        text: str,
        question: _Question,
        first: int,
        last: int,
        mentions: Sequence[_Mention],
    ) -> None:
        self.text, self.question, self.mentions = text, question, mentions
        self.first, self.last = first, last
        self.main = [mention for mention in mentions if not mention.aside]

    def alone(self) -> Iterator[_Claim]:
        """The claim of a sentence that is an option and nothing else: "It is T-101."."""
        mention = self.mentions[-1]
        before, after = self.text[self.first : mention.start], self.text[mention.end : self.last]
        behind_so = [match.start() for match in _SO.finditer(before)]
        lead = before[behind_so[-1] :] if behind_so else before
        whole = bool(behind_so) or len(self.mentions) == 1
        if whole and not after.strip(" .!\"')*") and _LEADS.fullmatch(lead):
            yield _Claim(mention.option, len(self.question.words))

    def clause(self, start: int, end: int) -> str:
        """The words around a place, between the cuts."""
        before = [cut.end() for cut in _CUT.finditer(self.text, self.first, start)]
        after = _CUT.search(self.text, end, self.last)
        return self.text[max(before, default=self.first) : after.start() if after else self.last]

    def claim(self, option: int | None, denied: bool, clause: str) -> Iterator[_Claim]:
        """The claim that an option is the requested one, or that the other one is."""
        if option is None or (_PAST.search(clause) and not _PAST.search(self.question.request)):
            return
        chosen = self.question.other(option) if denied else option
        if chosen is not None:
            yield _Claim(chosen, len(telling_words(clause) & self.question.words))

    def is_supposed(self, mention: _Mention) -> bool:
        """Whether an option stands in a condition, a question or the like."""
        return verdict(self.text, mention.start, mention.end, False) == "open"


def _by_words(sentence: _Sentence) -> Iterator[_Claim]:
    """Claims of clauses with every word of what was asked and with one option."""
    cuts = [cut.end() for cut in _CUT.finditer(sentence.text, sentence.first, sentence.last)]
    for first, last in zip((sentence.first, *cuts), (*cuts, sentence.last), strict=True):
        clause = sentence.text[first:last]
        here = [
            mention for mention in sentence.main if first <= mention.start and mention.end <= last
        ]
        telling = sentence.question.words
        if len(here) != 1 or not telling or not telling <= telling_words(clause):
            continue
        if not sentence.is_supposed(here[0]):
            yield from sentence.claim(here[0].option, bool(_NOT.search(clause)), clause)


def _by_comparison(sentence: _Sentence) -> Iterator[_Claim]:
    """Claims of the words that compare options, or that put one before another."""
    wanted = sentence.question.compares
    assert wanted is not None
    for mention in sentence.mentions:
        related = _RELATES.search(sentence.text, sentence.first, mention.start)
        if related:
            way = agree(wanted.scale, ("time", -1 if related["early"] else 1))
            yield from _set_against(sentence, related.start(), mention, way)
    for comparison in comparisons(sentence.text[sentence.first : sentence.last]):
        word = msgspec.structs.replace(
            comparison, start=comparison.start + sentence.first, end=comparison.end + sentence.first
        )
        way = agree(wanted.scale, word.scale)
        if way:
            yield from _compared(sentence, word, way)


def _compared(sentence: _Sentence, word: Comparison, way: int) -> Iterator[_Claim]:
    """The claim of one comparison: "A is later than B", "A is first", "the first is A"."""
    after = [mention for mention in sentence.mentions if mention.start >= word.end]
    text = sentence.text
    against = next(
        (mention for mention in after if _THAN.fullmatch(text, word.end, mention.start)), None
    )
    if against:
        yield from _set_against(sentence, word.start, against, way)
        return
    if _SOME_THAN.match(text, word.end, sentence.last):  # "more than 5"
        return
    subject = _subject(sentence, word, after)
    if subject is None or sentence.is_supposed(subject):
        return
    denied = bool(_NOT.search(_between(sentence, subject, word.start)))
    clause = sentence.clause(word.start, word.end)
    yield from sentence.claim(subject.option, denied != (way < 0), clause)


def _subject(sentence: _Sentence, word: Comparison, after: Sequence[_Mention]) -> _Mention | None:
    """The option that a comparison is about: the last one before it, or the one it names."""
    before = [mention for mention in sentence.main if mention.end <= word.start]
    behind = [mention for mention in after if not mention.aside]
    if behind:
        between = sentence.text[word.end : behind[0].start]
        if _IS.fullmatch(between) and not _CUT.search(between):
            return behind[0]
        if not before and (_NAMES.fullmatch(between) or not _CUT.search(between)):
            return behind[0]
    return before[-1] if before else behind[0] if behind else None


def _set_against(sentence: _Sentence, start: int, other: _Mention, way: int) -> Iterator[_Claim]:
    """The claim that one option comes before another, or is more than it."""
    if not way:
        return
    before = [mention for mention in sentence.main if mention.end <= start]
    behind = [mention for mention in sentence.main if mention.start >= other.end]
    subject = before[-1] if before else behind[0] if behind else None
    option = subject.option if subject else sentence.question.other(other.option)
    if option == other.option or (subject and sentence.is_supposed(subject)):
        return
    denied = bool(_NOT.search(_between(sentence, subject, start)))
    for_subject = denied != (way > 0)
    if option is not None and ((for_subject and not denied) or len(sentence.question.options) == 2):
        chosen = option if for_subject else other.option
        yield from sentence.claim(chosen, False, sentence.clause(start, start))


def _between(sentence: _Sentence, subject: _Mention | None, start: int) -> str:
    """The words between an option and the comparison."""
    if subject is None or subject.end > start:
        return sentence.clause(start, start)
    return sentence.text[subject.end : start]

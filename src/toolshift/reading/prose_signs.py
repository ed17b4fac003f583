"""The features of a message in prose: its structure and its words.

A sign is a name. `prose.read_prose` weighs them; the weights are set by
`studies/strangers/finishes/train.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from toolshift.core.message import CODE
from toolshift.reading.text import Stated, bare, codes_in, fold, spoken, written_out
from toolshift.reading.words import CONTRACTIONS, FURTHER_HELP, NO_THING, negation

_SENTENCE = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)[\"')]*\s+|\n+|\s\|\s")
_WANTED = re.compile(r"\b([a-z]+) (?:reference|ref|code|number|handle|id)\b", re.IGNORECASE)
_COMMON = frozenset(
    ("the", "a", "an", "its", "their", "your", "of", "and", "or", "that", "this", "parcel", "is")
)
_NAME = re.compile(r"(?<![.!?:] )(?<!^)\b[A-Z][a-z]{3,}\b")
_IDENTIFIER = re.compile(
    r"\b(?:[A-Z]{2,4}[-_]?\d[\dA-Z]*(?:-\d+)*|[A-Z]{2,5}-\d{3,}|[a-z]{2,4}_\d{3,})\b"
)
_SNAKE = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b")
_NUMBER = re.compile(r"\d[\d.,:-]*")
_SHORT = (
    (re.compile(r"\bcan ?n[o']t\b|\bcannot\b"), "can not"),
    *CONTRACTIONS,
    (re.compile(r"'ve\b"), " have"),
    (re.compile(r"'ll\b"), " will"),
    (re.compile(r"'d\b"), " would"),
    (re.compile(r"\bi'm\b"), "i am"),
    (re.compile(r"\b(it|that|there|he|she|what|who|here|where)'s\b"), r"\1 is"),
)
_WORD = re.compile(r"\xa7[A-Z]+\xa7|[a-z]+|[?:{\[<=]|\u274c|\u26d4|\u26a0|\u2705|\U0001f6ab")
"""Words, some signs, and what stands for a name, a code, an identifier or a number."""
_STEM = 6
_DENIAL = re.compile(negation("no", "unable", *NO_THING), re.IGNORECASE)
_CLOSING = " *_\"')}]>`/"
_EVIDENCE = (
    ("tool_unavailable", re.compile(r"without a successor|unknown_tool|Removed today")),
    ("service_failure", re.compile(r"decommissioned|\"unavailable\"|for good")),
    ("not_found", re.compile(r"not_found|There is no ")),
)
_TORN = re.compile(r"has to be .+ and it also has to be")


class Message:
    """A message in prose beside the results that were shown and what the user said.

    Args:
        text: what the agent said.
        shown: the results.
        request: what the user said.

    Attributes:
        text: folded, without leaked thoughts.
        states: it states a code or an identifier, neither negated nor, a code, in questions alone.
    """

    def __init__(self, text: str, shown: str = "", request: str = "") -> None:
        self._shown = fold(shown)
        self._request = fold(request)
        self._known = set(CODE.findall(self._shown))
        self.text = written_out(fold(spoken(text)).strip(), self._known)
        self._names = sorted(set(_NAME.findall(self._request)))
        self._wanted = {word.lower() for word in _WANTED.findall(self._request)} - _COMMON
        self._sentences = [s for s in _SENTENCE.split(self.text) if s.strip(" |-*#>`")]
        self._codes = self._stated(self.text)
        statements = [sentence for sentence in self._sentences if not _ends_asking(sentence)]
        self._states_code = any(map(self._stated, statements))
        self._plain = bare(self.text)
        self.states = self._states_code if self._codes else _states_identifier(self._sentences)

    def kind_signs(self) -> list[str]:
        """The signs of the kind: words of the whole, words of the last sentence, structure.

        What was shown plays no part but to tell codes that are loosely spelt: the same words are
        read alike in solvable and in unsolvable scenes. Otherwise "I cannot do this. CODE" would
        leave it to the reader what is meant.
        """
        words = self._words(self.text)
        last = self._words(self._sentences[-1]) if self._sentences else []
        signs = {*_grams("", words), *_grams("$", last), *self._structure()}
        return sorted({*signs, f"~length {min(4, len(words) // 12)}"})

    def reason_signs(self) -> list[str]:
        """The signs of a refusal's reason: words, and what came to light."""
        return sorted({*_grams("", self._words(self.text)), *self._evidence()})

    @property
    def reason_in_evidence(self) -> str:
        """The one reason for a refusal that came to light; "" where none did, or several."""
        reasons = {sign.removeprefix("~light ") for sign in self._evidence()}
        return reasons.pop() if len(reasons) == 1 else ""

    def _words(self, text: str) -> list[str]:
        """Stems of the words; names, codes, identifiers, numbers and what is wanted as such."""
        data = text.lstrip().startswith(("{", "<"))
        plain = re.sub(r"[\\*`]", "", text) if data else bare(text)
        upper = plain.upper()
        codes = CODE.sub(
            " \xa7CODE\xa7 ", upper if plain.islower() and CODE.search(upper) else plain
        )
        for name in self._names:
            codes = re.sub(rf"\b{re.escape(name)}\b", " \xa7NAME\xa7 ", codes)
        ids = _SNAKE.sub(_spelt_out, _IDENTIFIER.sub(" \xa7ID\xa7 ", codes))
        parts = re.split(r"(\xa7[A-Z]+\xa7)", _NUMBER.sub(" \xa7NUM\xa7 ", ids))
        low = "".join(part if part.startswith("\xa7") else part.lower() for part in parts)
        for short, full in _SHORT:
            low = short.sub(full, low)
        words = ["\xa7WANT\xa7" if word in self._wanted else word for word in _WORD.findall(low)]
        stems = [word if word[0] == "\xa7" else word[:_STEM] for word in words]
        return [w for n, w in enumerate(stems) if not (n and w[0] == "\xa7" and w == stems[n - 1])]

    def _structure(self) -> Iterator[str]:
        yield f"~codes {min(len(self._codes), 3)}"
        denials = sum(1 for _ in _DENIAL.finditer(self.text))
        yield f"~denials {min(denials, 3)}"
        yield f"~denials {min(denials, 1)} codes {min(len(self._codes), 1)}"
        yield from self._of_codes()
        yield from _of_questions(self._sentences)
        yield from self._of_values()
        if self.text.startswith("{"):
            yield "~json"

    def _of_codes(self) -> Iterator[str]:
        """What codes are called, and where they stand."""
        if len(codes_in(self.text, self._known)) > len(self._codes):
            yield "~negated code"
        yield from self._labels()
        if self._codes and not self._states_code:
            yield "~codes in questions"
        late = [s for s in self._sentences[-2:] if not _ends_asking(s) and self._stated(s)]
        if late:
            yield "~late code"
        if late and self._names_wanted(late[-1]):
            yield "~late wanted code"

    def _labels(self) -> Iterator[str]:
        """Whether a code has the name of what was asked for, another name, or none."""
        start = 0
        for one in self._codes:
            label = self._plain[start : one.start][-60:]
            start = one.end
            if self._names_wanted(label):
                yield "~wanted code"
            else:
                yield "~other code" if _WANTED.search(label) else "~code without a name"

    def _of_values(self) -> Iterator[str]:
        """Whether a value is stated, and as what was asked for."""
        field = "|".join(map(re.escape, sorted(self._wanted))) or "x^"
        if _IDENTIFIER.search(self._plain):
            yield "~identifier"
        named = rf"(?:\b({field})\b|answer)[\w \"'*_]{{0,24}}"
        value = r"(?::|=|\b(is|reads|would be)\b)[\s\"'*`]*\w*[-_]?\d"
        if re.search(named + value, self.text, re.IGNORECASE):
            yield "~wanted value"
        if re.search(rf'"({field})\w*"\s*:\s*"[^"]', self.text, re.IGNORECASE):
            yield "~wanted key"
        if re.search(rf'"({field})\w*"\s*:\s*(null|"")', self.text, re.IGNORECASE):
            yield "~wanted null"

    def _evidence(self) -> Iterator[str]:
        """The reasons for a refusal that came to light in results and in what the user said."""
        yield from (f"~light {name}" for name, mark in _EVIDENCE if mark.search(self._shown))
        if _TORN.search(self._request):
            yield "~light contradictory_request"

    def _stated(self, text: str) -> list[Stated]:
        return [one for one in codes_in(text, self._known) if not one.negated]

    def _names_wanted(self, text: str) -> bool:
        return any(re.search(rf"\b{word}\b", text, re.IGNORECASE) for word in self._wanted)


def _states_identifier(sentences: list[str]) -> bool:
    """Whether an identifier is stated: no denial stands before it, as in "no order INV-1"."""
    identifiers = ((s, match) for s in map(bare, sentences) for match in _IDENTIFIER.finditer(s))
    return any(not _DENIAL.search(sentence[: match.start()]) for sentence, match in identifiers)


def _of_questions(sentences: list[str]) -> Iterator[str]:
    """Whether sentences ask, and whether they do more than offer help."""
    asking = [_ends_asking(sentence) for sentence in sentences]
    real = [ask and not FURTHER_HELP.search(s) for ask, s in zip(asking, sentences, strict=True)]
    if asking and asking[-1]:
        yield "~ends asking"
    if real and real[-1]:
        yield "~ends in a question"
    if any(real):
        yield "~question"
    if any(real[-3:]):
        yield "~late question"


def _ends_asking(sentence: str) -> bool:
    return sentence.rstrip(_CLOSING).endswith("?")


def _spelt_out(name: re.Match[str]) -> str:
    """A name like `find_place` in words; marked, but for the key of an identifier or a code."""
    words = name[0].replace("_", " ")
    return words if words.split()[-1] in ("ref", "id", "code") else f" \xa7SNAKE\xa7 {words}"


def _grams(mark: str, words: list[str]) -> Iterator[str]:
    """Words and pairs of words that follow each other."""
    yield from (mark + word for word in words)
    yield from (f"{mark}{one} {two}" for one, two in pairwise(words))

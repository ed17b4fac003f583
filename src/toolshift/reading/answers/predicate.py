"""Whether a sentence states or denies what a yes-or-no question asks, without the words yes and no.

"The invoice is unpaid." answers "Has the invoice been paid?": a clause counts whose predicate is
the question's and that adds nothing to it. Only words of closed classes are left out of the
comparison, so "It has been partly paid" and "It will be paid" state something else. The subject is
a pronoun, or named by the request, or the only value of its name in the results.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from toolshift.reading.answers.evidence import shown_in
from toolshift.reading.answers.stated import alike
from toolshift.reading.quantity import RequestContext
from toolshift.reading.text import fold

_I = re.IGNORECASE
_TENSES = {
    word: tense
    for tense, words in (
        ("present", "is are am do does remains remain stays stay"),
        ("perfect", "has have"),
        ("past", "was were had did"),
        ("modal", "can could will would may might shall should must"),
    )
    for word in words.split()
}
_AUXILIARY = rf"(?:{'|'.join(_TENSES)})"
_QUESTION = re.compile(
    rf"(?:^|[.!?:,\n]\s*)(?P<aux>{_AUXILIARY})\s(?P<rest>(?:[^.!?\n]|[.!](?=\S))+)\?", _I
)
_WHETHER = re.compile(r"\b(?:whether|if)\s(?P<rest>(?:[^.!?\n]|[.!](?=\S))+)", _I)
_CLAUSE = re.compile(
    r"(?P<end>[.!?;:\n])(?=\s|$)\s*|,\s+|\s(?:but|because|so|although|though)\s|"
    rf"\sand\s(?=(?:it|he|she|they|the|{_AUXILIARY})\b)",
    _I,
)
_WORD = re.compile(r"[^\W_]+(?:[.@'-][^\W_]+)*")
_SHORT_FORMS = (
    (re.compile(r"\b(ca|wo|sha)n't\b", _I), r"\1n not"),
    (re.compile(r"n't\b", _I), " not"),
    (re.compile(r"\b(it|he|she|that|there|this)'s (?=(?:\w+ )?been\b)", _I), r"\1 has "),
    (re.compile(r"\b(it|he|she|that|there|this)'s\b", _I), r"\1 is"),
    (re.compile(r"'ve\b", _I), " have"),
    (re.compile(r"'re\b", _I), " are"),
    (re.compile(r"'ll\b", _I), " will"),
    (re.compile(r"\bi am afraid(?: that)?\b|\bi'm afraid(?: that)?\b", _I), ""),
    (re.compile(r"\bno longer\b", _I), "not"),
    (re.compile(r"\b(?:has|have) yet to\b", _I), "has not"),
)


def _closed(words: str) -> frozenset[str]:
    """A closed class of words."""
    return frozenset(words.split())


_DENIES = _closed("not no never nobody none cannot nothing neither nor")
_PRONOUNS = _closed("it he she they this that these those you we i there")
_SMALL = _closed(
    "a an the its his her their your our my be been any already currently now yet still also "
    "indeed actually just here then so but and full fully completely yes no please"
)
"""Words that add nothing to a statement; pronouns, auxiliaries and denials are read by themselves.
"""
_PLACES = _closed("on in at for of to by with from under as")
_NAMED_AS = re.compile(r"^\s*\w+ed (?:as|to be)\s", _I)
"""What stands between an auxiliary and its predicate: "is marked as paid"."""
_DOUBTS = re.compile(
    r"\b(?:if|might|could|maybe|perhaps|doubt|probably|unsure|whether|possibly|likely)\b", _I
)


class Question(msgspec.Struct, frozen=True):
    """A yes-or-no question.

    Attributes:
        tense: of its auxiliary.
        words: its telling words, in their order.
        opens: for each word, whether nothing that must be said follows it.
        does: whether the auxiliary is a form of "do", so that a verb is among the words.
    """

    tense: str
    words: Sequence[str]
    opens: Sequence[bool]
    does: bool = False


def question_in(request: str) -> Question | None:
    """The one yes-or-no question of a request; None where there is none, or another kind too."""
    text = _written_out(fold(request))
    found = [(match["aux"], match["rest"]) for match in _QUESTION.finditer(text)]
    if not found:
        for match in _WHETHER.finditer(text):
            inner = re.search(rf"\b{_AUXILIARY}\b", match["rest"], _I)
            found += [(inner[0], match["rest"])] if inner else []
    if len(found) != 1:
        return None
    auxiliary, rest = found[0]
    tokens = [word.lower() for word in _WORD.findall(rest)]
    if "or" in tokens or _DENIES & {*tokens}:
        return None
    verb = max((n for n, word in enumerate(tokens) if word in ("been", "being")), default=-1)
    telling = _telling(tokens)
    opens = [
        n > verb and (n + 1 == len(tokens) or tokens[n + 1] in _PLACES or n == telling[-1])
        for n in telling
    ]
    does = auxiliary.lower() in ("do", "does", "did")
    return Question(_TENSES[auxiliary.lower()], [tokens[n] for n in telling], opens, does)


def _written_out(text: str) -> str:
    for short, full in _SHORT_FORMS:
        text = short.sub(full, text)
    return text


def _telling(tokens: Sequence[str]) -> list[int]:
    """The places of the words that tell something; a preposition does only where it stands last."""
    left_out = _SMALL | _PRONOUNS | _DENIES | {*_TENSES, "being"}
    return [
        n
        for n, word in enumerate(tokens)
        if word not in left_out and not (word in _PLACES and n + 1 < len(tokens))
    ]


def says_predicate(text: str, context: RequestContext) -> bool | None:
    """Whether a text states (True) or denies (False) what was asked; None for neither or both."""
    question = question_in(context.request)
    if question is None or not question.words or _DOUBTS.search(text):
        return None
    said = {
        polarity
        for clause in _clauses(_written_out(text))
        if (polarity := _polarity(clause, question, context)) is not None
    }
    return said.pop() if len(said) == 1 else None


def _clauses(text: str) -> Iterator[str]:
    """The clauses that are neither questions nor labels."""
    start = 0
    for end in _CLAUSE.finditer(text):
        if end["end"] not in ("?", ":"):  # a question, or a label of what follows
            yield text[start : end.start()]
        start = end.end()
    yield text[start:]


def _polarity(clause: str, question: Question, context: RequestContext) -> bool | None:
    """What one clause says of what was asked."""
    auxiliary = re.search(rf"(?<![\w-]){_AUXILIARY}(?![\w-])", clause, _I)
    subject = clause[: auxiliary.start()] if auxiliary else ""
    rest = clause[auxiliary.end() :] if auxiliary else clause
    if auxiliary and not _may_answer(_TENSES[auxiliary[0].lower()], question.tense):
        return None
    if re.match(r"\s*(?:not )?(?:to|being)\b", rest, _I) or not _is_known(subject, context):
        return None
    rest = _NAMED_AS.sub(" ", rest)
    tokens = [word.lower() for word in _WORD.findall(rest)]
    denials = sum(word in _DENIES for word in _words(f"{subject} {rest}"))
    told = [tokens[n] for n in _telling(tokens)]
    if not told:  # "It does."
        return denials % 2 == 0 if auxiliary and subject.strip() and _ends(rest) else None
    if not auxiliary and question.does and len(told) < 2:
        return None  # "The lamp." to "Did she order the lamp?"
    turned = _as_asked(told, question, whole=auxiliary is None)
    return None if turned is None else (denials + turned) % 2 == 0


def _as_asked(told: Sequence[str], question: Question, whole: bool) -> int | None:
    """How many words reverse those asked for, where all are of the question; None elsewhere.

    They stand together there, and what follows can be left out. A whole clause may leave out words
    on the way to the last one: "The 14 stops at the museum."
    """
    for start in range(len(question.words) - len(told) + 1):
        end = start + len(told)
        turned = _turned(told, question.words[start:end])
        if turned is not None and question.opens[end - 1]:
            return turned
    if whole and len(told) > 1:
        rest = iter(question.words)
        found = [next((w for w in rest if _turned([one], [w]) is not None), "") for one in told]
        if all(found) and found[-1] == question.words[-1]:
            return _turned(told, found)
    return None


def _may_answer(tense: str, asked: str) -> bool:
    """Whether a statement in one tense answers a question in another."""
    if "modal" in (tense, asked):
        return tense == asked
    return tense != "past" or asked in ("past", "perfect")


def _ends(rest: str) -> bool:
    """Whether nothing follows an auxiliary but a denial or what says little."""
    return all(word in _DENIES | _SMALL for word in _words(rest))


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def _turned(told: Sequence[str], asked: Sequence[str]) -> int | None:
    """How many words are the reverse of those asked for ("unpaid"); None where one is another."""
    turned = 0
    for one, other in zip(told, asked, strict=True):
        reverse = re.fullmatch(r"(?:un|in|non|dis)-?(\w{3,})", one)
        if _is_like(one, other):
            continue
        if reverse is None or not _is_like(reverse[1], other):
            return None
        turned += 1
    return turned


def _is_like(word: str, other: str) -> bool:
    """Whether two words differ in their endings only; identifiers have none."""
    return word == other or (not re.search(r"\d", word + other) and alike(word, other))


def _is_known(subject: str, context: RequestContext) -> bool:
    """Whether a subject is the one that was asked about, as far as request and results tell."""
    asked = _words(fold(context.request))
    left_out = _SMALL | _PRONOUNS | _DENIES | _PLACES
    new = [
        word
        for word in _words(fold(subject))
        if word not in left_out and not any(_is_like(word, one) for one in asked)
    ]
    if not new:
        return True
    facts = shown_in(fold(context.shown))
    kinds = {part for fact in facts for part in fact.key.lower().split("_") if "_id" in fact.key}
    for word in new:
        keys = {fact.key for fact in facts if word in _words(fact.text)}
        texts = {fact.text for fact in facts if fact.key in keys}
        if word not in kinds and len(texts) != 1:
            return False
    return True

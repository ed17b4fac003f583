"""Texts of tools that instruct the model instead of describing the tool: tool poisoning.

Only what is new is looked at: a sentence that stood in the old list already was seen then. The
signs are of two kinds. Some are read from how a text is built, in any language: what is hidden or
encoded, what is dressed as a message, which tools it names. Others are meanings that stand
together in one sentence, in the languages of `poisoning_words.py`. All are rules, so they are
evidence and no proof in either direction.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import lru_cache, partial
from itertools import product
from typing import Any

import msgspec

from toolshift.core.names import letters
from toolshift.data.language import ENGLISH, common_words, language_of
from toolshift.drift.disguises import disguise_of, far_parts, readings
from toolshift.drift.poisoning_words import FREE_ORDER, WORDS, patterns
from toolshift.shifts.release.match import verb

_TOLD = ("description", "title", "default", "examples", "enum", "const")
_ANY = r"[^.!?\n]{0,60}?"
SIGNS: Mapping[str, str] = {
    "hidden": "it hides text",
    "markup": "it is dressed as a message",
    "override": "it sets other instructions aside",
    "secrecy": "it asks to keep something from the user",
    "credentials": "it asks for secrets",
    "conversation": "it asks for the conversation",
    "consent": "it says that the user need not be asked",
    "exfiltration": "it asks to send data to an address",
    "takeover": "it tells the model to act beyond this tool",
    "other tools": "it says how a tool of another server is to be used",
    "other language": "it is in another language than the texts around it",
}
"""Signs by name, each with its meaning."""
_EXCERPT = 160
_NEAR, _BESIDE = 40, 12
"""The most characters between "not" and what is not to be told, or not to be handed over."""
_PROSE, _COMMON, _NEARLY_ALL = 6, 3, 0.8
"""The fewest words, and common words of a language, by which it is told; the share of sentences
of a list in one language."""
_TOGETHER: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("override", ("ignore", "rules")),
    ("secrecy", ("never", "tell", "user")),
    ("secrecy", ("conceal", "user")),
    ("credentials", ("hand over", "secret")),
    ("conversation", ("hand over", "whole", "talk")),
    ("takeover", ("others", "before")),
)
"""By sign the meanings that make it where they stand in one sentence."""
_NO_REPORT = (
    r"(?!\W*(?:(?:list|return|get|read|show|count|find|retrieve|view|query|summari[sz]e)s?"
    r"|(?:fetch|search)(?:es)?)\b)"
)
"""At the beginning of a sentence: it does not say what the tool reads."""
_BUILT: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (sign, re.compile(pattern, re.IGNORECASE))
    for sign, pattern in (
        (
            "credentials",
            r"~/?\.ssh\b|~/\.\w|\bid_(?:rsa|dsa|ecdsa|ed25519)\b|/etc/(?:passwd|shadow)"
            r"|\.aws/credentials"
            rf"|\b(?:read|cat|open|attach|load|contents? of)\b{_ANY}(?<![\w-])"
            r"(?:\.env|mcp\.json)\b"
            r"|\b(?:retry|try again|call|answer)\b[^.!?\n]{0,30}?\bwith\b[^.!?\n]{0,30}?"
            r"\b(?:passwords?|credentials?|secrets?)\b[^.!?\n]{0,10}?\b(?:as|in)\b"
            rf"|\b(?:reveal|print|repeat)\b{_ANY}\bsystem prompt\b"
            r"|\b(?-i:[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*_(?:KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS))\b",
        ),
        (
            "conversation",  # the name of a parameter
            r"^(?:(?:conversation|chat|dialogue?|messages?) (?:history|transcript|log|context)"
            r"|(?:full|whole|entire) (?:conversation|chat|dialogue))$"
            r"|\bwith (?:the |an? )?(?:full|whole|entire|complete) (?:conversation|chat|dialogue)\b"
            r"[^.!?\n]{0,20}?\b(?:as|in|for)\b"
            rf"|^{_NO_REPORT}[^\n]*?"
            r"\b(?:conversation|chat|dialogue|messages?|written|said)\b[^.!?\n]{0,20}?"
            r"\b(?:so far|up to (?:here|now|this point))\b",
        ),
        (
            "exfiltration",
            rf"\b(?:send|forward|post|upload|copy|bcc|cc|transmit|exfiltrate)\b{_ANY}"
            r"(?:https?://|\b[\w.+-]+@[\w-]+\.\w)|!\[[^\]\n]*\]\(https?:"
            rf"|^{_NO_REPORT}(?![^\n]*(?:e\.g\.|(?<![.\w])examples?\b|such as|\blike\b|@example\."
            r"|\b(?:contact|in the form|problems?|issues?|bugs?|questions?|feedback)\b))"
            r"\W*\w+\W+\w[^\n]*?(?<![\w.+@:/\"'`<-])(?!git@)"
            r"[\w.+-]{1,64}@[\w-]{1,64}\.[a-z]{2,}\b(?!:\S)",
        ),
        (
            "takeover",
            r"\b(?:curl|wget|iwr|irm)\b[^|\n]{1,200}\|\s*(?:sudo\s+)?(?:(?:ba|z|da)?sh|iex|python3?)\b"
            r"|\brm\s+-[rf]{2}\s+[~/]",
        ),
        (
            "consent",
            r"\bpre-?approved\b|\balready (?:agreed|approved|consented|authori[sz]ed|confirmed)\b"
            r"|\b(?:skip|bypass|omit)\w*\b[^.!?\n]{0,30}?\b(?:confirm|approv|consent|asking)",
        ),
        (
            "takeover",
            r"\b(?:you are now|from (?:now|this (?:point|moment|time)) (?:on|forward|onwards?),?"
            rf"|you must (?:always|first)|always (?:call|use) this tool(?: first| before"
            rf"|{_ANY}\bany other)"
            r"|\b(?:every|any|all|each) (?:tasks?|requests?|questions?|sessions?|turns?)\b"
            r"[^.!?\n]{0,40}?\b(?:starts?|begins?|goes? through|must|first)\b"
            r"|(?:the |an? )?(?:assistant|agents?|model|llm|ai)\b[^.!?\n]{0,40}?"
            r"\b(?:must|shall|has to|have to|(?:is|are) (?:required|obliged|expected) to))\b",
        ),
    )
)
"""By sign how a text is built."""
_MARKUP = re.compile(
    r"<!--.{0,4000}?-->|/\*\s*\w+:.{0,4000}?\*/"
    r"|<\s{0,9}/?\s{0,9}[\w-]{0,40}(?:important|system|secret|hidden|instruction|assistant|agent"
    r"|admin|override|directive)[\w-]{0,40}(?:\s[^<>]*)?>"
    r"|\[/?INST\]|<<?/?SYS>>?|<\|\w+\|>"
    r"|(?:^|[(\[])[ \t]*(?:system|assistant|admin)\b[^\n:]{0,20}:"
    r"""|["']role["']\s*:\s*["'](?:system|assistant|developer)"""
    r"|(?<![#=*|\[-])[#=*|\[-]{2,40}[ \t]*(?:system|admin|override|security)[ _-]?"
    r"(?:notice|message|override|prompt|instructions?|update)",
    re.IGNORECASE | re.DOTALL | re.MULTILINE,
)
_IDENTIFIER = re.compile(r"(?<![\w/.@$<{%-])[a-z][a-z0-9]*(?:_[a-z0-9]+)+(?![\w/.=@}>-])", re.ASCII)
_SPOKEN = re.compile(r"(?<!\S)[^\W\d_]{2,}[,.;:]?(?!\S)")
_FEW, _MANY = 3, 12
"""The fewest words of a text where no text is looked for; how many texts without an end are read
together."""
_SHORT = 4
"""The fewest words of a sentence of which no word is one of the list's language."""
_WORDS = re.compile(r"[^\W\d_]+")
_PLAIN_WORD = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*,?")
_ENDS = re.compile(r"[.!?:。！？][\"')\]]*\s*$")
_LINKED = re.compile(r"\[([^\]\n]{0,200})\]\(\s*https?://[^)\s]*[^)\n]{0,100}\)")
"""A link of Markdown; its text says what stands there, its address is where one reads on."""
_TOWARDS = re.compile(r"\b(?:to|at|into|via)\s*$", re.IGNORECASE)
"""What stands before an address to which something is handed."""
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？؟।])|\n+")


class Sign(msgspec.Struct, frozen=True):
    """A sign that a text instructs the model.

    Attributes:
        sign: one of `SIGNS`.
        what: the sign in words.
        text: where it stands, cut to 160 characters.
    """

    sign: str
    what: str
    text: str


def texts_of(document: Any, inside: bool = False) -> Iterator[str]:
    """Every text of a tool that a model reads: descriptions, titles, defaults, choices.

    Elsewhere, as in a comment, a pattern or what others have added, it is what has several words.
    """
    if isinstance(document, str):
        if inside or len(_SPOKEN.findall(document)) >= _FEW:
            yield document
    elif isinstance(document, Mapping):
        for key, value in document.items():
            yield from texts_of(value, inside or key in _TOLD)
    elif isinstance(document, list):
        for value in document:
            yield from texts_of(value, inside)


def told_by(document: Any) -> Iterator[str]:
    """Every text of a tool that a model reads, and the names of its parameters as words."""
    texts = list(texts_of(document))
    yield from texts
    yield from _run_on(texts)
    yield from (_spaced(name) for name in _keys(document, "properties"))


def _run_on(texts: Sequence[str]) -> Iterator[str]:
    """What goes on from one text to the next: the first has no end, the next no beginning.

    A title stands before or behind its description, so either may be the first.
    """
    said = ""
    for text in texts:
        goes_on = bool(said) and text[:1].islower()
        said = f"{said} {text}" if goes_on else text
        if goes_on:
            yield said
        said = "" if _ENDS.search(said) or len(said) > _EXCERPT else said
    begun = [text for text in texts if " " in text and not _ENDS.search(text)][:_MANY]
    further = [text for text in texts if " " in text and text[:1].islower()][:_MANY]
    for one, other in product(begun, further):
        if one != other:
            yield f"{one} {other}"[-2 * _EXCERPT :]


def sentences_of(texts: Iterable[str]) -> frozenset[str]:
    """The sentences of texts, which `instructions_in` takes as known."""
    return frozenset(part for text in texts for part in _parts(text))


def _keys(document: Any, of: str) -> Iterator[str]:
    if isinstance(document, Mapping):
        inner = document.get(of)
        yield from map(str, inner if isinstance(inner, Mapping) else ())
        for value in document.values():
            yield from _keys(value, of)
    elif isinstance(document, list):
        for value in document:
            yield from _keys(value, of)


def _spaced(name: str) -> str:
    return re.sub(r"[_-]|(?<=[a-z])(?=[A-Z])", " ", name).lower()


def signs_in(
    tools: Iterable[Mapping[str, Any]], before: Sequence[Mapping[str, Any]] = ()
) -> dict[str, tuple[Sign, ...]]:
    """The signs in the texts of tools by the name of each; `before` are tools that were seen."""
    tools = list(tools)
    old = [text for tool in before for text in told_by(tool)]
    known = sentences_of(old)
    names = {name for tool in (*before, *tools) for name in _names(tool)}
    names.update(name for text in old for name in _IDENTIFIER.findall(text))
    plain = frozenset(map(letters, names))
    mine = _language(before or tools)
    each = [frozenset(_WORDS.findall(" ".join(texts_of(tool)).lower())) for tool in tools]
    tools_with = Counter(word for words in each for word in words)
    seen = frozenset(_WORDS.findall(" ".join(old).lower()))
    found = {}
    for tool, words in zip(tools, each, strict=True):
        signs = instructions_in(told_by(tool), known, plain)
        listed = partial(_is_listed, seen, tools_with, words)
        found[str(tool.get("name"))] = signs + _foreign(texts_of(tool), known, mine, listed)
    return {name: signs for name, signs in found.items() if signs}


def _is_listed(seen: Set[str], tools_with: Mapping[str, int], own: Set[str], word: str) -> bool:
    """Whether a word was seen before, or stands in another tool than that which has its own."""
    return word in seen or tools_with.get(word, 0) > (word in own)


def _language(tools: Iterable[Mapping[str, Any]]) -> str:
    """The language that nearly all sentences of tools are in; "" where there is none."""
    told = Counter(
        _spoken_in(part, ENGLISH)
        for tool in tools
        for text in texts_of(tool)
        for part in _sentences(text)
        if _is_prose(part)
    )
    ((language, count),) = told.most_common(1) or [("", 0)]
    return language if count >= _NEARLY_ALL * told.total() else ""


def _foreign(
    texts: Iterable[str], known: frozenset[str], mine: str, listed: Callable[[str], bool]
) -> tuple[Sign, ...]:
    """The sign of a sentence in another language than the list of tools, whichever it is."""
    for part in (part for text in texts for part in _sentences(text)) if mine else ():
        told = _is_prose(part) and _spoken_in(part, mine) != mine
        if part not in known and (told or _is_strange(part, mine, listed)):
            return (Sign("other language", SIGNS["other language"], part[:_EXCERPT]),)
    return ()


def _is_strange(sentence: str, mine: str, listed: Callable[[str], bool]) -> bool:
    """Whether a short sentence has letters and words that an English list has not.

    Three in four of its words stand in no other tool, none is a common one of English, and one that
    is no name has a letter beyond ASCII.
    """
    found = sentence.rstrip(".!?").split()
    if mine != ENGLISH or len(found) < _SHORT or not _ENDS.search(sentence):
        return False
    plain = all(_PLAIN_WORD.fullmatch(word) for word in found)
    if not plain or all(word.isascii() or word[0].isupper() for word in found[1:]):
        return False
    words = _WORDS.findall(sentence.lower())
    return not common_words(sentence, ENGLISH) and 4 * sum(map(listed, words)) <= len(words)


def _spoken_in(sentence: str, unknown: str) -> str:
    """The language of a sentence; single letters tell none, for they are codes as often."""
    return language_of([re.sub(r"\b[a-zA-Z]\b", " ", sentence)], unknown, _COMMON)


def _is_prose(sentence: str) -> bool:
    """Whether a sentence is long enough to tell its language by; some scripts have no gaps."""
    signs = [one for one in sentence if one.isalpha()]
    far = [one for one in signs if not one.isascii()]
    return len(sentence.split()) >= _PROSE or (len(signs) >= _PROSE and 2 * len(far) >= len(signs))


def _names(document: Any) -> Iterator[str]:
    """The names that a tool gives: its own, and those of its parameters, fields and choices."""
    if isinstance(document, Mapping):
        for key, value in document.items():
            yield str(key)
            yield from _names(value)
    elif isinstance(document, list):
        for value in document:
            yield from _names(value)
    elif isinstance(document, str) and " " not in document:
        yield document


def instructions_in(
    texts: Iterable[str],
    known: frozenset[str] = frozenset(),
    names: frozenset[str] = frozenset(),
) -> tuple[Sign, ...]:
    """The signs of instructions in texts.

    `known` are sentences that were seen already. `names` are those that the list of tools gives,
    as letters and digits alone; where there are any, a tool that is named and is not among them is
    a sign.
    """
    signs: dict[str, Sign] = {}
    for part in (part for text in texts for part in _parts(text)):
        if part in known:
            continue
        found = [*_signs(part), *(_elsewhere(part, names) if names else ())]
        for sign, what in found:
            signs.setdefault(sign, Sign(sign, what, part.strip()[:_EXCERPT]))
    return tuple(signs.values())


def _parts(text: str) -> list[str]:
    """The sentences of a text, and what of it is built of several lines."""
    return [*_sentences(text), *(found[0] for found in _MARKUP.finditer(text)), *far_parts(text)]


def _sentences(text: str) -> list[str]:
    return [part.strip() for part in _SENTENCE.split(text) if part.strip()]


@lru_cache(maxsize=4096)  # of two lists, and of many versions of one, most sentences are the same
def _signs(part: str) -> tuple[tuple[str, str], ...]:
    return tuple(dict.fromkeys(_read(part)))


def _read(part: str) -> Iterator[tuple[str, str]]:
    disguise = disguise_of(part)
    if disguise:
        yield "hidden", disguise
    for reading in readings(part):
        if any(map(_says_much, _MARKUP.finditer(reading))):
            yield "markup", SIGNS["markup"]
        for sign, pattern in _BUILT:
            if pattern.search(_unlinked(reading) if sign == "exfiltration" else reading):
                yield sign, SIGNS[sign]
        for sign, meanings in _TOGETHER:
            if any(_means(reading, language, meanings) for language in _spoken(reading)):
                yield sign, SIGNS[sign]


def _says_much(markup: re.Match[str]) -> bool:
    """Whether markup is more than the mention of a comment, as in "<!-- comments --> are kept"."""
    is_comment = markup[0].startswith(("<!--", "/*"))
    return not is_comment or len(re.findall(r"[^\W_]+", markup[0])) >= _FEW


def _unlinked(text: str) -> str:
    """A text without the addresses of its links, but for one to which something is handed."""
    return _LINKED.sub(lambda found: found[0] if _hands_to(text, found) else found[1], text)


def _hands_to(text: str, link: re.Match[str]) -> bool:
    is_picture = link.start() > 0 and text[link.start() - 1] == "!"
    return is_picture or _TOWARDS.search(text[: link.start()]) is not None


def _spoken(text: str) -> Iterable[str]:
    """The languages whose words may make a text: all of them, where it cannot be told."""
    told = language_of([text])
    return (told,) if told in WORDS else WORDS


def _means(text: str, language: str, meanings: tuple[str, ...]) -> bool:
    """Whether the words of one language say all that makes a sign."""
    found = patterns(language)
    if not all(found[meaning].search(text) for meaning in meanings):
        return False
    if language in FREE_ORDER:
        return True
    never = [match.end() for match in found["never"].finditer(text)]
    if "tell" in meanings:
        told = [match.start() for match in found["tell"].finditer(text)]
        return any(0 <= place - end <= _NEAR for end in never for place in told)
    if "hand over" in meanings:
        handed = [match.start() for match in found["hand over"].finditer(text)]
        return any(not any(0 <= at - end <= _BESIDE for end in never) for at in handed)
    return True


def _elsewhere(part: str, names: frozenset[str]) -> Iterator[tuple[str, str]]:
    """The sign of a tool that is named and that the list does not have.

    What has the form of a name is taken for a tool where it begins with a verb, or ends with one
    that writes. A list may call its own tools by short names, so a name within one that it gives
    is known.
    """
    for name in _IDENTIFIER.findall(_LINKED.sub("", part)):
        first, *_, last = _spaced(name).split()
        acts = verb(first) or verb(last) == "write"
        if acts and not any(letters(name) in each for each in names):
            yield "other tools", SIGNS["other tools"]
            return

"""Reads what a text says about each code in it.

A text is cut into sentences, and the words of a sentence are given to the codes that they speak of:
those that lead up to a code, those that follow it, and those of an introduction ("Others: ..."),
which speaks of every code behind it. From these words it follows whether a code is disowned ("X is
outdated", "not X"), offered as one of several ("or X"), beside the point ("checked against X"),
or called what was asked for. Which code is the right one plays no part here.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import msgspec

from toolshift.reading.text import codes_of_bare, spoken, with_parentheses, written_out
from toolshift.reading.words import CONTRACTIONS


def _read_words() -> dict[str, frozenset[str]]:
    """The words of `code_roles.toml`, those of one phrase joined by "_"."""
    file = Path(__file__).with_name("code_roles.toml")
    tables: dict[str, str] = tomllib.loads(file.read_text(encoding="utf-8"))
    return {
        name: frozenset("_".join(phrase.split()) for phrase in listed.split(","))
        for name, listed in tables.items()
    }


_SAYS = _read_words()
_DENYING, _UNTRUE, _OTHERWISE = _SAYS["denying"], _SAYS["untrue"], _SAYS["otherwise"]
_DISMISSING = _SAYS["dismissing"]
_DOUBTING, _STATING, _PAST = _SAYS["doubting"], _SAYS["stating"], _SAYS["past"]
_GUESSING, _CHOICE_LEFT = _SAYS["guessing"], _SAYS["leaving_the_choice"]
_IF, _FAILING = _SAYS["condition"], _SAYS["failure"]
_EXTRA, _MERELY, _COMPARING = _SAYS["extra"], _SAYS["merely"], _SAYS["comparing"]
_BUT_IT_IS = frozenset(word for word in _MERELY if word.startswith("but_"))
_BY_WAY_OF, _ASKED_FOR, _AMONG = _SAYS["by_way_of"], _SAYS["asked_for"], _SAYS["among"]
_CALLED, _VERBS, _CONNECTING = _SAYS["called"], _SAYS["verbs"], _SAYS["connecting"]
_HELPING = _VERBS | _SAYS["helping"]
_OPENINGS, _COMPLEMENTS = _SAYS["openings"], _SAYS["complements"]
_RETRACTING = _SAYS["retracting"]
_STATED = frozenset(("that", "it", "the", "this", "its", "your"))
FILLERS = _SAYS["fillers"]
"""Words that cannot name a code."""
_BREAKS = frozenset([*",;:()|\n", "-", "but", "while", "whereas", "and", "so", "or", "then", "now"])
_PHRASES = {
    phrase.replace("_", " "): phrase
    for phrase in frozenset().union(*_SAYS.values())
    if "_" in phrase
}
_PHRASE = re.compile(rf"\b(?:{'|'.join(sorted(_PHRASES, key=len, reverse=True))})\b")
_ENDORSING = re.compile(
    r"\b(?:(?:no|without|without a|beyond|in|any) (?:doubt|question|mistake)|best guess|not only"
    r"|not just|nothing but)\b"
)
"""Phrases that deny nothing although their words do."""
_SHORT = (
    (re.compile(r"\bcan(?:'t| ?not)\b"), "can not"),
    *CONTRACTIONS,
    (re.compile(r"\b(it|that|this|here|what|which|reference|code)'s\b"), r"\1 is"),
    (re.compile(r"\b(?:made|make|making) (?:\w+ )?up\b"), "made_up"),
    (re.compile(r"\b(?:e\. ?g\.|i\. ?e\.)"), "such as"),
    (re.compile(r"\bp\. ?s\.?"), "ps"),
    (re.compile(r"\bany ?(?:one|body) else\b"), "somebody else"),
)
_TOKEN = re.compile(
    r"\xa7\d+\xa7|[^\W_]+(?:_[^\W\d_]+)*|[.!?](?=[\s\"')]|$)|[,;:()|\n%/]|(?<!\w)-(?!\w)"
)
_KEY = re.compile(r"(?<=[^\W_])_(?=[^\W_])|(?<=[a-z])(?=[A-Z][a-z])")
"""Between the words of a key: listing_ref, listingRef."""
_LIST_MARK = re.compile(r"(:[ ]*)\n\s*|\n[ ]*(?=(?:-|\u2022|\d+[.)]) )")


class Mention(msgspec.Struct, frozen=True):
    """A code where it stands in a text, and the words that speak of it.

    Attributes:
        code: as it was shown.
        lead: the words before it, up to a code or the start of its sentence.
        near: those of them that stand in its own clause.
        tail: the words after it, as far as they speak of it.
        intro: the words of an introduction that speaks of this code and of others.
        list_lead: the words of its list so far, up to this code.
        disowned: the text says that this is not it, or no longer, or made up.
    """

    code: str
    lead: tuple[str, ...]
    near: tuple[str, ...]
    tail: tuple[str, ...]
    intro: tuple[str, ...]
    list_lead: tuple[str, ...]
    disowned: bool

    @property
    def name(self) -> tuple[str, ...]:
        """The words that name the code: the last before it, or the first after it."""
        return tuple(_names(self.lead)[-4:] or _names(self.tail)[:6])

    @property
    def is_named_before(self) -> bool:
        """Whether words stand before it."""
        return bool(_names(self.lead))

    @property
    def is_guess(self) -> bool:
        """Whether it is offered as one of several, or in case that another one fails."""
        words = {*self.lead, *self.intro}
        fallback = words & _IF and words & _FAILING
        joined = "or" in self.lead and not _VERBS & {*self.lead[self.lead.index("or") :]}
        return bool(words & _GUESSING or joined or "/" in self.near or fallback)

    @property
    def is_compared(self) -> bool:
        """Whether it is compared with another code."""
        clause = self.near if _has_words(self.near) else self.lead
        return bool(_COMPARING & {*_from_the_verb(clause)})

    @property
    def is_extra(self) -> bool:
        """Whether it is given beside what was asked for."""
        around = {*self.lead, *self.intro, *self.list_lead}
        return bool(_EXTRA & around or _MERELY & {*self.lead, *self.tail[:4]})

    @property
    def is_listed(self) -> bool:
        """Whether an introduction says that the requested code is among several."""
        return bool({*self.intro} & (_ASKED_FOR | _AMONG)) and not self.is_extra

    @property
    def is_aside(self) -> bool:
        """Whether it stands in a subordinate place: as an extra, in parentheses, after "under"."""
        inside = self.lead[::-1].index("(") if "(" in self.lead else -1
        opened = inside >= 0 and ")" not in self.lead[len(self.lead) - inside :]
        clause = _from_the_verb(self.lead)
        return self.is_extra or self.is_compared or opened or bool(_BY_WAY_OF & {*clause})

    @property
    def is_asked_for(self) -> bool:
        """Whether it, and not a list that it stands in, is called what was asked for."""
        words = {*self.lead, *self.tail}
        return bool(words & _ASKED_FOR) and not words & _AMONG and not self.is_extra

    @property
    def is_yours(self) -> bool:
        """Whether the text calls it the user's own."""
        return self.is_asked_for or ("your" in self.lead and not self.is_extra)


class CodeMentions(msgspec.Struct, frozen=True):
    """What a text says about codes.

    Attributes:
        mentions: of codes, in order.
        leaves_choice: a sentence without a code leaves the choice to the reader.
    """

    mentions: tuple[Mention, ...]
    leaves_choice: bool


def read_roles(text: str, shown: Collection[str]) -> CodeMentions:
    """Reads the mentions of codes in a text."""
    plain = written_out(with_parentheses(_KEY.sub(" ", spoken(text))), shown)
    codes = codes_of_bare(plain, shown)
    marked, end = [], 0
    for number, one in enumerate(codes):
        marked += [plain[end : one.start], f"\xa7{number}\xa7"]
        end = one.end
    names = [one.code for one in codes]
    mentions: list[Mention] = []
    leaves_choice = False
    for sentence in _sentences("".join((*marked, plain[end:]))):
        if any(map(_is_code, sentence)):
            mentions += _of_sentence(sentence, names)
        elif mentions and _takes_back(sentence):
            mentions[-1] = msgspec.structs.replace(mentions[-1], disowned=True)
        leaves_choice = leaves_choice or bool(_CHOICE_LEFT & {*sentence})
    return CodeMentions(tuple(mentions), leaves_choice)


# -- sentences and clauses --------------------------------------------------------------------


def _sentences(text: str) -> Iterator[list[str]]:
    """The words and signs of each sentence; a list belongs to its introducing sentence."""
    text = _LIST_MARK.sub(lambda match: f"{match[1] or ';'} ", text.lower())
    for short, full in _SHORT:
        text = short.sub(full, text)
    text = _ENDORSING.sub(" ", text)
    text = _PHRASE.sub(lambda match: _PHRASES[match[0]], text)
    sentence: list[str] = []
    for token in _TOKEN.findall(text):
        if token in (*".!?", "\n"):
            yield sentence
            sentence = []
        else:
            sentence.append(token)
    yield sentence


def _of_sentence(words: list[str], names: Sequence[str]) -> Iterator[Mention]:
    """The mentions of a sentence."""
    start = _end_of_intro(words)
    intro = tuple(words[:start])
    places = [n for n, word in enumerate(words) if _is_code(word)]
    gaps = [words[a + 1 : b] for a, b in pairwise((start - 1, *places, len(words)))]
    named_after = not _names(gaps[0]) and bool(_names(gaps[1]))
    list_lead: list[str] = []
    for number, place in enumerate(places):
        lead, after = gaps[number], gaps[number + 1]
        last = place == places[-1]
        near = lead[_last_break(lead) :]
        tail = after if last or named_after else after[: _last_break(after)]
        if named_after and number:
            lead = lead[max(0, _last_break(lead) - 1) :] if _last_break(lead) else []
            near = lead[1:]
        while tail and tail[-1] in _BREAKS:
            tail = tail[:-1]
        goes_on = lead[:1] in ([","], [";"], ["and"]) and not _HELPING & {*lead}
        list_lead = [*list_lead, *lead] if goes_on else lead
        yield Mention(
            names[int(words[place].strip("\xa7"))],
            tuple(lead),
            tuple(near),
            tuple(tail),
            intro,
            tuple(list_lead),
            _is_disowned(lead, near, tail, intro),
        )


def _end_of_intro(words: list[str]) -> int:
    """Where the codes of a list begin that a colon introduces; 0 where none does."""
    places = [n for n, word in enumerate(words) if _is_code(word)]
    if ":" not in words[: places[0]]:
        return 0
    colon = words.index(":")
    gaps = [words[a + 1 : b] for a, b in pairwise((colon, *places))]
    several = len({words[place] for place in places}) > 1
    own_names = [_has_words(gap) for gap in gaps]
    return colon + 1 if several and (own_names[0] or not own_names[1]) else 0


def _last_break(words: Sequence[str]) -> int:
    """Where the last clause of some words begins."""
    starts = [n + 1 for n, word in enumerate(words) if word in _BREAKS]
    new = [n for n, word in enumerate(words) if word == "not" and not _VERBS & {*words[n:]}]
    inside = [n for n in new if n and words[n - 1] in _HELPING | {"if"}]
    return max((*starts, *(n for n in new if n not in inside), 0))


def _from_the_verb(words: Sequence[str]) -> Sequence[str]:
    """The words from the last verb on, with the one before it; all where there is none."""
    verbs = [n for n, word in enumerate(words) if word in _VERBS]
    return words[max(0, verbs[-1] - 1) :] if verbs else words


def _is_code(word: str) -> bool:
    return word[0] == "\xa7"


# -- what words say ----------------------------------------------------------------------------


def _is_disowned(
    lead: Sequence[str], near: Sequence[str], tail: Sequence[str], intro: Sequence[str]
) -> bool:
    """Whether the words before a code or after it deny it; two denials are none."""
    clause = near if _has_words(near) else () if _has_verb(tail) else _clause_before(lead)
    before = _denials(clause) + _doubts(lead) + _denials(intro[-6:]) + _doubts(intro)
    over = {"was", "were"} & {*near, *tail} and _PAST & {*near, *tail}
    return before % 2 == 1 or bool(over) or _denied_after(tail)


def _clause_before(lead: Sequence[str]) -> Sequence[str]:
    """The clause right before a code that stands alone: "Not this one: X"; of a long one its end.

    A denial at the start of a long one is of something else ("I could not find more: X"), unless
    it ends in what the code is called ("do not mistake the map reference, X, for it").
    """
    words = list(lead)
    while words and words[-1] in _BREAKS:
        del words[-1]
    clause = words[_last_break(words) :]
    named = clause[-1:] != [] and clause[-1] in _CALLED
    return clause if named or len(clause) <= 4 else [w for w in clause if w not in _DENYING]


def _names(words: Sequence[str]) -> list[str]:
    """The words that can name something."""
    return [word for word in words if word[0].isalnum() and word not in FILLERS]


def _has_words(words: Sequence[str]) -> bool:
    return any(word[0].isalpha() for word in words)


def _has_verb(tail: Sequence[str]) -> bool:
    return bool(tail) and tail[0] in _HELPING


def _denials(words: Sequence[str]) -> int:
    """How often the clause of a code calls it untrue or denies it.

    A denial counts where it stands at the last verb: "since it is not high the code is X" states X.
    What speaks of a doubt is counted with the doubt.
    """
    start = len(words) - len(_from_the_verb(words))
    doubted = _doubted(words)
    denied = {
        n
        for n, word in enumerate(words)
        if n >= start and word in _DENYING and "if" not in words[max(0, n - 2) : n]
    }
    untrue = {n for n, word in enumerate(words) if word in _UNTRUE and n >= len(words) - 6}
    return len((denied | untrue) - doubted)


def _doubts(words: Sequence[str]) -> int:
    """How often words doubt what follows in their sentence."""
    return len(_doubted(words))


def _doubted(words: Sequence[str]) -> set[int]:
    """The places of doubt: "I doubt that", "I do not think the", with what denies it."""
    doubted: set[int] = set()
    for n, word in enumerate(words):
        before = {m for m in range(max(0, n - 2), n) if words[m] in _DENYING}
        if word in _DOUBTING:
            doubted |= {n, *before}
        elif word in _STATING and (words[n + 1 : n + 2] or ["that"])[0] in _STATED:
            doubted |= before
    return doubted


def _denied_after(tail: Sequence[str]) -> bool:
    """Whether the words after a code deny it: "X, I am afraid, has expired"."""
    words = [part for word in tail for part in (word.split("_") if word in _BUT_IT_IS else [word])]
    if words[:1] == [","] and "," in words[1:8]:
        behind = words[words.index(",", 1) + 1 :]
        words = behind if behind and behind[0] in _HELPING else words
    if words[:1] == [";"] and not {*words[1:2]} & _CONNECTING:
        return False
    while words and (words[0] in _BREAKS or words[0] in _CONNECTING):
        del words[0]
    stop = next((n for n, word in enumerate(words) if word in _BREAKS), len(words))
    words = words[:stop]
    verbs = [n for n, word in enumerate(words) if word in _HELPING]
    if not verbs or verbs[0] > 1:
        return bool((_UNTRUE | _DOUBTING | _DISMISSING) & {*words[:3]})
    behind = [w for n, w in enumerate(words) if n < verbs[0] + 5 or {n - 1, n - 2} & {*verbs}]
    denied = sum(word in _DENYING or word in _UNTRUE or word in _DOUBTING for word in behind)
    return (denied + bool(_OTHERWISE & {*words})) % 2 == 1


def _takes_back(sentence: list[str]) -> bool:
    """Whether a sentence without a code denies the code before it: "Scrap that, it is wrong"."""
    if sentence in (["no"], ["not"]):
        return True
    words = [word for word in sentence if word[0].isalnum()]
    opening: list[str] = []
    while words and (words[0] in _OPENINGS or words[0] in _OTHERWISE):
        opening.append(words.pop(0))
    if not words:
        return bool({"no", "nope", "oops", "whoops"} & {*opening})
    if _is_another_thing(opening, words):
        return True
    if words[0] in _DENYING:
        return words[1:2] != [] and words[1] in ("it", "that", "this")
    if words[0] == "i":
        so = words[-1:] == ["so"] and "not" in words
        return so or any(word in _DOUBTING or word in _UNTRUE for word in words[1:4])
    if words[0] not in ("it", "that", "this", "the"):
        return False
    following = [*words[1:], "it"]
    denied = [
        word == "no_longer"
        or (word == "not" and words[n - 1] in _HELPING and following[n] in _COMPLEMENTS | _UNTRUE)
        for n, word in enumerate(words[:5])
    ]
    return (sum(denied) + sum(word in _UNTRUE | _DOUBTING for word in words[:6])) % 2 == 1


def _is_another_thing(opening: Sequence[str], words: Sequence[str]) -> bool:
    """Whether a sentence gives the code before it another role: "Wait, no, that is the map"."""
    if words[0] not in ("that", "it", "this") or not _VERBS & {*words[1:2]}:
        return False
    if _RETRACTING & {*opening} and words[2:3] and words[2] in ("the", "your", "its", "a", "for"):
        named = {*words[3:6]}
        return not named & (_COMPLEMENTS | _ASKED_FOR | {"one", "only"})
    denied = next((n for n, word in enumerate(words) if word == "not"), len(words))
    return words[denied + 1 : denied + 2] == ["what"] and bool(_ASKED_FOR & {*words[denied:]})

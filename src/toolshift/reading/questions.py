"""Finds what a question asks about: its focus decides; values that it mentions are context.

Where a world has a trained classifier of questions, that decides, and the rule only where it is
unsure. Elsewhere, as in worlds of one's own, the rule decides by the words of the details.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from toolshift.core.fact import Fact, Facts, Goal
from toolshift.reading.question_classifier import CONFIRMS, GIVEN, read_weights

LEAD = 0.8
"""By how much a classifier's slot must lead, in log probability; below it the rule decides."""

LONGEST = 2000
"""Characters of a question that are read, half of them at its end: reading is not linear."""
_MARKUP = re.compile(r"[*`#>]+|(?<!\w)_+|_+(?!\w)")
_BULLET = re.compile(r"^\s*(?:[-•–]|\(?(?:\d{1,2}|[a-h])[.)])\s+", re.MULTILINE)
_INLINE = re.compile(r"(?<=\s)\((?:\d|[a-h])\)\s+")
_ITEM = "▪"
_ORDINAL = re.compile(r"^(?:first|second|third|finally|next)(?:ly)?, ")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\s+[–—-]+\s+")
_WH = r"(?:which|what|what's|whats|when|where|whereabouts|who|who's|whose|whom|how)"
_BEFORE = r"(?:(?:in|on|at|for|from|by|to|of|with|under|through|above)\s+)?"
_TURN = re.compile(
    rf"(?:,|:)?\s+(?:but|so|then)\s+(?={_BEFORE}{_WH}\b)|[,:]\s+(?={_BEFORE}{_WH}\b"
    r"|tell\b|please\b|could\b|can\b|may\b|give\b|i (?:just |still |first |only |also |do )*"
    r"(?:need|have to)\b)"
)
_AND = re.compile(
    r",?\s+(?:and|also|as well as|nor)\s+(?:also\s+|then\s+|please\s+|confirm\s+)*"
    rf"(?={_BEFORE}{_WH}\b|(?:the|your|its|their|is|are|should|do|i|medication|name)\b)"
)
_TRIGGER = re.compile(
    rf"\b(?:{_WH}|whether)\b|\b(?:need|needs|require[sd]?|requires|missing|lack|lacks|wants?"
    r"|tell|give|specify|provide|state|clarify|supply|select|choose|share|inform"
    r"|know|unclear|sure|certain|without|please|kindly|let me)\b"
)
_ASKS = re.compile(
    r"\?|\b(?:please|kindly|tell me|let me know|give me|provide|specify|clarify|supply|name them"
    r"|need|needs|require[sd]?|missing|lacks?|unclear|unsure|not (?:sure|certain|clear)|required"
    r"|(?:do|did|could|can|does|is|was)(?: not|n't|nt)|cannot|unable|without|left|have to know"
    r"|no record|neither)\b"
    rf"|^{_BEFORE}{_WH}\b|^{_ITEM}"
)
_POINTS_BACK = re.compile(
    r"\bwhich (?:ones?|is|are|of (?:them|these|those)|applies|counts|should)\b"
)
_OTHER_MATTERS = (
    "anything else",
    "go ahead",
    "proceed",
    "anyone",
    "phone number",
    "email address",
    "e-mail address",
    "why",
    "how often",
    "how urgent",
    "next of kin",
)
_NOTHING = Fact("", (), _OTHER_MATTERS)
"""Questions to users that ask for no detail of a request."""
_OF_THE_TALK = frozenset(
    """
    a an the this that it its these those there here you your me my i i'm i'd i've i'll you're we us
    our is are be been was were am do does did don't didn't isn't doesn't can could can't couldn't
    would will may might should shall have has had not no of on in at to for with by about from and
    or but so if as than then what what's which how please kindly sorry thanks thank
    exactly precisely bit little some any more further additional again just also too very quite yet
    still first before out mean meant meaning elaborate clarify clarification explain explanation
    specify specific specifics specifically describe rephrase reword repeat say said tell provide
    give share add expand understand understood follow unclear clear sure certain vague ambiguous
    incomplete missing leave left lack lacking need needed require required know detail details info
    information context request message question something looks seems complete full able afraid
    enough
    """.split()  # noqa: SIM905
)
"""Words about the talk itself. A question of such words alone names no thing."""
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_ASKS_OPENLY = re.compile(rf"\b{_WH}\b")


@dataclass(frozen=True, slots=True)
class Cue:
    """Words of a clause that point to a slot.

    Attributes:
        slot: the slot.
        level: 3 for a phrase that names this slot and no other, 2 for a word, 1 for a hint.
        place: where it stands in the clause.
        end: where it ends.
        asked: whether it stands after a word that asks.
        given: whether a value of the slot is stated in the same clause.
    """

    slot: str
    level: int
    place: int
    end: int
    asked: bool
    given: bool

    def covers(self, other: Cue) -> bool:
        """Whether another slot's words are a part of these."""
        if self.slot == other.slot or self.end - self.place <= other.end - other.place:
            return False
        return self.place <= other.place and other.end <= self.end


@dataclass(frozen=True, slots=True)
class Reading:
    """A question's clauses, and what the user knows.

    Attributes:
        clauses: each clause and the cues in it.
        asked: for each clause, whether it asks.
        known: the slots that the user knows.
        torn: those of them for which two values have been stated.
        likely: those of them that the request leaves open.
    """

    clauses: tuple[tuple[str, tuple[Cue, ...]], ...]
    asked: tuple[bool, ...]
    known: frozenset[str]
    torn: frozenset[str]
    likely: frozenset[str]

    def best(self, cues: list[Cue]) -> Cue | None:
        """The focus among some cues."""
        return max(
            cues,
            key=lambda cue: (cue.level, cue.asked, cue.slot in self.likely, -cue.place),
            default=None,
        )

    def focus(self, clause: str, cues: tuple[Cue, ...]) -> Cue | None:
        """The slots that one asking clause is about; None if its words do not say."""
        mine = self.best([cue for cue in cues if not cue.given and cue.slot in self.known])
        other = self.best([cue for cue in cues if cue.slot not in self.known and cue.level > 1])
        stated = self.confirmed(clause, cues)
        if stated and (mine is None or stated.level > mine.level) and not (other and other.slot):
            return stated
        if mine is None or other is None:
            return mine or other
        before = other.level == 3 and mine.level < 3 and other.place < mine.place
        return other if before or (mine.level == 1 and other.level == 3) else mine

    def confirmed(self, clause: str, cues: tuple[Cue, ...]) -> Cue | None:
        """The value that a clause asks to confirm, or the two it offers for a choice."""
        stated: list[str] = GIVEN.findall(clause)
        both = [slot for slot in stated if slot in self.torn and stated.count(slot) > 1]
        if both:
            return Cue(both[0], 4, 0, 0, asked=True, given=True)
        if not stated or _ASKS_OPENLY.search(clause) or not CONFIRMS.search(clause):
            return None
        level: dict[str, int] = {}
        for cue in cues:
            if cue.given:
                level[cue.slot] = max(cue.level, level.get(cue.slot, 0))
        slot = max(
            stated,
            key=lambda s: (s in self.torn, level.get(s, 0), s in self.likely, -stated.index(s)),
        )
        return Cue(slot, max(2, level.get(slot, 0)), 0, 0, asked=True, given=True)

    def context(self) -> str:
        """The topic of a question that names nothing itself: the words before it."""
        for clause, cues in reversed(self.clauses):
            stated: list[str] = GIVEN.findall(clause)
            doubled = [slot for slot in stated if slot in self.torn and stated.count(slot) > 1]
            if doubled:
                return doubled[0]
            free = [cue for cue in cues if not cue.given and cue.slot in self.known]
            best = self.best(free) if free else None
            if best and best.level > 1:
                return best.slot
        for clause, cues in reversed(self.clauses):
            best = self.best([cue for cue in cues if cue.slot in self.known])
            if best and best.level > 1:
                return best.slot
            stated = GIVEN.findall(clause)
            if stated and any(CONFIRMS.search(one) for one, _ in self.clauses):
                return max(stated, key=lambda s: (s in self.torn, s in self.likely))
        return ""


def asked_about(
    question: str, goal: Goal, vocabulary: Mapping[str, Fact], request: str = ""
) -> tuple[str, ...]:
    """The slots that a question asks about, in order; none where it is not understood."""
    if len(question) > LONGEST:
        question = f"{question[: LONGEST // 2]}\n{question[-LONGEST // 2 :]}"
    plain = _label_of(question, goal, vocabulary)
    if plain:
        return (plain,)
    known = {slot: value for slot, value in goal.items() if slot in vocabulary}
    states = _states(known, request)
    left_out = [slot for slot, state in states.items() if state == "open"]
    if len(left_out) == 1 and _is_open(question, request):
        return (left_out[0],)
    if not (isinstance(vocabulary, Facts) and vocabulary.weights):
        return _by_rule(question, goal, vocabulary, request)
    guess = read_weights(vocabulary.weights).guess(mask(question, known), states)
    if len(guess.slots) > 1 or guess.lead >= LEAD:
        return guess.slots
    return _by_rule(question, goal, vocabulary, request) or guess.slots


def _is_open(question: str, request: str) -> bool:
    """Whether a question names no detail: "What do you mean?", "Can you elaborate?".

    It has only words about the talk, and words of the request.
    """
    words, said = _words_of(question), frozenset(_words_of(request))
    return any(word in _OF_THE_TALK for word in words) and all(
        word in _OF_THE_TALK or word in said for word in words
    )


def _words_of(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFKC", text).lower().replace("’", "'"))


def _by_rule(
    question: str, goal: Goal, vocabulary: Mapping[str, Fact], request: str
) -> tuple[str, ...]:
    """The slots that a question asks about by the words of the vocabulary."""
    reading = read(question, goal, vocabulary, request)
    levels: dict[str, int] = {}
    before = ""
    for (clause, cues), asks in zip(reading.clauses, reading.asked, strict=True):
        focus = reading.focus(clause, cues) if asks else None
        if asks and focus is None and before and not levels and _POINTS_BACK.search(clause):
            levels[before] = 2
        near = reading.best([c for c in cues if c.slot in reading.known and c.level > 1])
        before = near.slot if near else before
        if focus:
            levels[focus.slot] = max(focus.level, levels.get(focus.slot, 0))
    sure = [slot for slot, level in levels.items() if slot in reading.known and level > 1]
    if sure:
        return tuple(sure)
    if any(level > 2 for level in levels.values()):
        return tuple(slot for slot in levels if slot)
    around = reading.context()
    if around:
        return (around,)
    return tuple(sorted(levels, key=lambda slot: slot not in reading.known))[:1]


def read(question: str, goal: Goal, vocabulary: Mapping[str, Fact], request: str) -> Reading:
    """A question's clauses with their cues."""
    known = {slot: value for slot, value in goal.items() if slot in vocabulary}
    clauses, asking = [], []
    for sentence in _sentences(mask(question, known)):
        for turn in _TURN.split(sentence):
            asks = bool(_ASKS.search(turn))
            for clause in _AND.split(turn):
                clauses.append(clause)
                asking.append(asks)
    if not any(asking):
        asking = [True] * len(clauses)
    states = _states(known, request)
    return Reading(
        tuple((clause, _cues(clause, vocabulary)) for clause in clauses),
        tuple(asking),
        frozenset(known),
        frozenset(slot for slot, state in states.items() if state == "torn"),
        frozenset(slot for slot, state in states.items() if state != "said"),
    )


def mask(question: str, goal: Goal) -> str:
    """A question in small letters, without markup, its known values replaced by their slots."""
    text = unicodedata.normalize("NFKC", question).lower().replace("’", "'")
    text = re.sub("[‐-―]", lambda dash: "-" if dash[0] in "‐‑" else " – ", text)
    text = _BULLET.sub(f"\n{_ITEM} ", _MARKUP.sub("", text))
    text = _INLINE.sub(f"\n{_ITEM} ", text)
    values = [
        (str(one).lower(), slot)
        for slot, value in goal.items()
        for one in (value if isinstance(value, tuple) else (value,))
        if str(one).strip()
    ]
    for value, slot in sorted(values, key=lambda pair: -len(pair[0])):
        text = re.sub(rf"(?<![\w⟦]){re.escape(value)}(?![\w⟧])", f"⟦{slot}⟧", text)
    return text


def _sentences(text: str) -> list[str]:
    """The sentences and list items of a text; a bare list of nouns is one item each."""
    text = re.sub(r"\b(?:e\.g|i\.e|no)\.\s", lambda short: short[0].replace(".", ""), text)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    parts = [part for line in lines for part in _SENTENCE.split(line) if part.strip(" .,:;▪")]
    sentences: list[str] = []
    for part in parts:
        one = _ORDINAL.sub(f"{_ITEM} ", part.strip())
        bare = re.fullmatch(r"[\w' -]+(?:, (?:and )?[\w' -]+)+ please\W*", one)
        items = re.split(r", (?:and )?", one) if bare else [one]
        sentences += [f"{_ITEM} {item}" for item in items] if bare else items
    return sentences


def _cues(clause: str, vocabulary: Mapping[str, Fact]) -> tuple[Cue, ...]:
    given = frozenset(GIVEN.findall(clause))
    bare = GIVEN.sub(lambda spot: "x" * len(spot[0]), clause)
    trigger = _TRIGGER.search(bare)
    start = trigger.start() if trigger else 0
    cues = [
        Cue(slot, level, spot.start(), spot.end(), spot.start() >= start, slot in given)
        for slot, fact in {**vocabulary, "": _NOTHING}.items()
        for level, phrases in ((3, fact.sure), (2, fact.words), (1, fact.hints))
        for phrase in phrases
        for spot in _pattern(phrase).finditer(bare)
    ]
    return tuple(cue for cue in cues if not any(other.covers(cue) for other in cues))


@lru_cache(maxsize=4096)
def _pattern(phrase: str) -> re.Pattern[str]:
    """A phrase; "*" stands for the rest of a word, "..." for up to four words."""
    joined = ""
    for word in phrase.lower().split():
        gap = word == "..."
        joined += r"(?:\S+\s+){0,4}?" if gap else re.escape(word).replace(r"\*", r"\w*") + r"\W+"
    return re.compile(rf"(?<!\w){joined.removesuffix(chr(92) + 'W+')}(?!\w)")


def _states(known: Goal, request: str) -> dict[str, str]:
    """Whether what the user has said leaves a value "open", has "said" it, or is "torn".

    Of two values that contradict, one that was said more often has been confirmed by a reply.
    """
    stated = GIVEN.findall(mask(request, known))
    states = {slot: "said" if slot in stated else "open" for slot in known}
    for slot, value in known.items():
        if isinstance(value, tuple):
            times = {len(GIVEN.findall(mask(request, {slot: one}))) for one in value}
            states[slot] = "torn" if len(times) == 1 else "said"
    return states


def _label_of(question: str, goal: Goal, vocabulary: Mapping[str, Fact]) -> str:
    """The slot whose label a question of the plain form asks for, "What is the city?"."""
    plain = re.fullmatch(r"what is the (.+?)\??", question.strip().lower())
    named = [s for s, fact in vocabulary.items() if plain and fact.label.lower() == plain[1]]
    return next((slot for slot in named if slot in goal), named[0] if named else "")

"""Compares an answer with what is wanted by its type: right, wrong, or unclear.

**Right**: the wanted value is stated, and nothing else of its type stands there that neither the
request nor the results explain. **Wrong**: it is absent, or denied in plain words, or an
alternative to another value, or given another's name while another has its own.
**Unclear**: anything else.
Nothing is guessed, so unclear is a result of its own.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from toolshift.reading.answers.by_words import as_answer, plain, says_text, unit_of
from toolshift.reading.answers.evidence import Shown, shown_in
from toolshift.reading.answers.kinds import ID, YES_NO, AnswerKind, kind_of
from toolshift.reading.answers.labels import is_end_of_asked_range, is_of_another_label
from toolshift.reading.answers.languages import in_known_form, says_in_words
from toolshift.reading.answers.none import is_none
from toolshift.reading.answers.stated import (
    clause_of,
    is_former,
    is_set_aside,
    shared,
    standing,
    without,
    words_of,
)
from toolshift.reading.answers.yes_no import says_yes
from toolshift.reading.options import rivals as options_of
from toolshift.reading.phrase_spans import places
from toolshift.reading.quantity import RequestContext, is_other_quantity
from toolshift.reading.text import fold
from toolshift.reading.values import Value, value_of, values_in

Verdict = Literal["right", "wrong", "unclear"]
UNKNOWN = RequestContext()
_SIGNS = re.compile(r"[\W_]+")
_COUNTED = re.compile(r"(.*\d)\s*([^\W\d_]+)")
"""A number and what it counts."""
_OR = re.compile(r"[^\W\d_]*\s*[,/]?\s*(?:or|oder|ou|o|u|eller|lub|или|veya|または)\s+(?:the |a )?")
_WHOLE = re.compile(
    r"\d[^\d.!?;]{0,40}\s(?:of|out of|de|von|sur|di|van|av|из)\s(?:the |los |den )?$"
)
"""What stands before the whole of which a number is a part: "4 of the 6"."""
_FIGURE_BEHIND = re.compile(r"\s*[\"']?\s*:[ \t]*[^\w\s]{0,3}\d")
"""A name that is the label of a figure."""
_LISTED_BEFORE = re.compile(
    r"(?:^|[,\n|\[]|:\s)\s*([^,\n|.:!?]{1,40}?)\s*(?:,|\n|\||/| and )\s*[\"']?$"
)
_LISTED_BEHIND = re.compile(
    r"[\"']?\s*(?:,|\n|\||/|,? and )\s*([^,\n|.:!?]{1,40}?)\s*(?=,|\n|[.!?]?$| and )"
)
"""The neighbours of an item in a list."""


class Mention(msgspec.Struct, frozen=True):
    """A place of an answer that states a value of the wanted type."""

    start: int
    end: int
    text: str
    value: Value | None = None


def judge(
    answer: str,
    wanted: str | Sequence[str],
    kind: AnswerKind | None = None,
    context: RequestContext = UNKNOWN,
) -> Verdict:
    """Whether an answer is right, wrong, or unclear by its type; of several wanted the worst."""
    if not isinstance(wanted, str):
        items = [as_answer(item) for item in wanted]
        verdicts = {_judge_one(answer, item, kind, context, items) for item in items}
        if verdicts == {"right"} and len(items) > 1 and not says_text(answer, items, context):
            return "unclear"  # its list has further items
        return next(v for v in ("wrong", "unclear", "right") if v in verdicts)
    return _judge_one(answer, wanted, kind, context)


def _judge_one(
    answer: str,
    wanted: str,
    kind: AnswerKind | None,
    context: RequestContext,
    items: Sequence[str] = (),
) -> Verdict:
    """The verdict on one wanted answer, beside others that are wanted too."""
    kind = kind or kind_of(wanted)
    if kind == "json":
        return _judge_json(answer, wanted)
    if kind == "regex":
        return _judge_regex(answer, wanted)
    text, sought = in_known_form(plain(answer)), in_known_form(fold(wanted)).strip().rstrip(".")
    if kind == "yes_no":
        said = says_yes(text, context)
        return "unclear" if said is None else _told(said is YES_NO[sought.casefold()])
    if fold(answer).strip().rstrip(".").casefold() == fold(wanted).strip().rstrip(".").casefold():
        return "right"
    negated = re.fullmatch(r"(?:not(?: yet)?|never|no longer)\s+(.+)", sought, re.IGNORECASE)
    if negated and kind == "text":
        return _judge_negated(text, sought, negated[1])
    beside = [in_known_form(fold(item)).strip() for item in items if item != wanted]
    return _Reading(answer, text, sought, kind, context, beside).verdict()


def _told(is_right: bool) -> Verdict:
    return "right" if is_right else "wrong"


def _judge_json(answer: str, wanted: str) -> Verdict:
    """Data are compared as data: 4 and 4.0 are the same, and so are keys in any order."""
    text = fold(answer).strip()
    fenced = re.search(r"```\w*\s*\n(.*?)```", text, re.DOTALL)
    for part in (text, fenced[1] if fenced else ""):
        try:
            return _told(bool(json.loads(part) == json.loads(wanted)))
        except (ValueError, RecursionError):
            continue
    leaves = [str(shown.text).casefold() for shown in shown_in(fold(wanted))]
    return "unclear" if all(leaf in text.casefold() for leaf in leaves) else "wrong"


def _judge_regex(answer: str, wanted: str) -> Verdict:
    found = [m for form in (answer, fold(answer)) for m in [re.search(wanted, form)] if m]
    if not found:
        return "wrong"
    how = standing(found[0].string, *found[0].span())
    return "right" if how == "plain" else "wrong" if how == "denied" else "unclear"


def _judge_negated(text: str, whole: str, inner: str) -> Verdict:
    """Where what is wanted is a denial ("not shipped"), a denial says it."""
    said = {standing(text, *span) for span in places(text, inner)}
    if not said:
        return "wrong"
    if said == {"denied"} or (any(True for _ in places(text, whole)) and "plain" not in said):
        return "right"
    return "wrong" if said == {"plain"} else "unclear"


class _Reading:
    """One answer, read for one wanted value; `beside` has the others that are wanted with it."""

    def __init__(
        self,
        answer: str,
        text: str,
        wanted: str,
        kind: AnswerKind,
        context: RequestContext,
        beside: Sequence[str] = (),
    ) -> None:
        self.beside = beside
        self.answer, self.text, self.wanted = answer, text, wanted
        self.kind, self.context = kind, context
        self.options = [
            option
            for option in options_of(context.request, wanted)
            if option.casefold() != wanted.casefold()
        ]
        counted = _COUNTED.fullmatch(wanted) if kind == "text" else None
        self.noun = counted[2] if counted else ""
        self.sought = value_of(counted[1] if counted else wanted)
        if self.noun and self.sought:
            self.kind = "number"
        shown = [msgspec.structs.replace(s, text=in_known_form(s.text)) for s in self._shown()]
        self.facts = shown
        self.asked = in_known_form(context.request)
        mentions = [*self._mentions()]
        self.wanted_ones = [m for m in mentions if self._is_wanted(m)]
        self.others = [m for m in mentions if not self._is_wanted(m) and not self._is_beside(m)]
        self.own = self._words_for([s for s in shown if self._is_same(s.text)])
        self.in_order = sorted((*self.wanted_ones, *self.others), key=lambda m: m.start)
        self.starts = [mention.start for mention in self.in_order]
        self.told_of = dict[tuple[int, int], frozenset[str]]()

    def _shown(self) -> tuple[Shown, ...]:
        return shown_in(fold(self.context.shown))

    def verdict(self) -> Verdict:
        """What the mentions amount to."""
        if not self.wanted_ones:
            return self._where_absent()
        if self._is_alternative():
            return "wrong"
        how = [self._standing(mention) for mention in self.wanted_ones]
        if all(one == "denied" for one in how):
            return "wrong"
        if "denied" in how or "plain" not in how:
            return "unclear"
        plain_ones = [m for m, one in zip(self.wanted_ones, how, strict=True) if one == "plain"]
        if self._is_swapped(plain_ones):
            return "wrong"
        if all(map(self._is_called_otherwise, plain_ones)) or self._is_listed():
            return "unclear"
        if all(map(self._is_of_another_label, plain_ones)):
            return "unclear"
        return "right" if all(map(self._is_explained, self.others)) else "unclear"

    def _is_alternative(self) -> bool:
        """Whether each mention is offered beside another value: "4 or 5", "either A or B"."""
        return bool(self.others) and all(
            any(
                _OR.fullmatch(self.text[min(one.end, other.end) : max(one.start, other.start)])
                for other in self.others
            )
            for one in self.wanted_ones
        )

    def _is_listed(self) -> bool:
        """Whether a text stands in a list of its like, of which nothing says which one is meant."""
        if self.kind not in ("text", "choice"):
            return False
        shape = _shape(self.wanted)
        for mention in self.wanted_ones:
            before, after = self.text[: mention.start], self.text[mention.end :]
            beside = (_LISTED_BEFORE.search(before), _LISTED_BEHIND.match(after))
            items = [m[1].strip() for m in beside if m]
            new = [item for item in items if item.casefold() not in self.asked.casefold()]
            new = [item for item in new if not any(_has(item, other) for other in self.beside)]
            if any(_shape(item) == shape and not self._is_same(item) for item in new):
                return True
        return False

    def _is_swapped(self, stated: list[Mention]) -> bool:
        """Whether the wanted value is called another one, and another is called the wanted one."""
        for rival in self.others:
            facts = self._facts_of(rival)
            if not facts or self._has_own_name(facts):
                continue
            mine, theirs = self._names(facts)
            of_mine = frozenset[str]().union(*map(self._about, stated))
            of_rival = self._about(rival)
            crossed = shared(of_mine, theirs) and not shared(of_mine, mine)
            if crossed and shared(of_rival, mine) and not shared(of_rival, theirs):
                return True
        return False

    def _has_own_name(self, facts: list[Shown]) -> bool:
        """Whether the results show both values under one name of one record."""
        return any(self._is_same(f.text) and f.words == g.words for f in self.facts for g in facts)

    def _where_absent(self) -> Verdict:
        """An answer in words that are not read is no wrong one."""
        if is_none(self.wanted) and not self.others:
            return "unclear"
        squeezed, written = (_SIGNS.sub("", t.casefold()) for t in (self.wanted, self.answer))
        inner = re.sub(r"^(?:un|in|non|dis)", "", squeezed)
        if self.kind in ("text", "id", "choice") and len(inner) > 2 and inner in written:
            return "unclear"
        number = next((n for v in self.sought for n in v.readings if isinstance(n, float)), None)
        told = number is not None and not self.others and says_in_words(self.text, number)
        return "unclear" if told else "wrong"

    def _standing(self, mention: Mention) -> str:
        how = standing(self.text, mention.start, mention.end)
        listed = self.beside and _FIGURE_BEHIND.match(self.text, mention.end)
        if how == "doubtful" and listed:  # "Dune: 4 copies", of which Dune is wanted
            how = standing(f"{self.text[: mention.end]}.", mention.start, mention.end)
        value = mention.value
        in_words = not re.search(r"\d", mention.text)
        if how == "denied" and value and in_words and 0.0 in value.readings:
            return "plain"  # "there are no copies", where 0 is wanted
        if value and how == "plain" and value.kind == "number" and self.sought:
            foreign = value.unit == "%" and self.sought[0].unit != "%"
            foreign &= "%" not in self.context.request + self.context.shown
            other = not self.sought[0].unit and is_other_quantity(self.text, value, self.context)
            other |= bool(self.noun) and not self._counts_the_noun(value)
            return "doubtful" if foreign or other else how
        return how

    def _counts_the_noun(self, value: Value) -> bool:
        """Whether a number counts what is wanted ("90 min" for "90 minutes"), or has no noun."""
        inside = re.search(r"[^\W\d_]+$", self.text[value.start : value.end])
        behind = re.match(r"[\s-]*([^\W\d_]+)", self.text[value.end :])
        word = inside[0] if inside else behind[1] if behind else ""
        first, noun = word.casefold(), self.noun.casefold()
        if unit_of(first) == unit_of(noun):
            return True
        return not word or noun.startswith(first) or first.startswith(noun.removesuffix("s"))

    # -- what stands there ---------------------------------------------------------------------

    def _mentions(self) -> Iterator[Mention]:
        if self.kind in ("number", "amount", "date", "time"):
            yield from self._values()
        elif self.kind == "id":
            squeezed = [re.escape(c) for c in re.sub(r"[\s_\W]", "", self.wanted)]
            own = re.compile(r"(?<!\w)" + r"[\s_.\-/#]?".join(squeezed) + r"(?!\w)", re.IGNORECASE)
            found = [Mention(*m.span(), self.wanted) for m in own.finditer(self.text)]
            yield from found
            for match in ID.finditer(self.text):
                inside = any(m.start < match.end() and match.start() < m.end for m in found)
                if not inside and self._is_like(match[0]):
                    yield Mention(*match.span(), match[0])
            yield from self._phrases_of(self.options, [(m.start, m.end) for m in found])
        else:
            yield from self._phrases()

    def _is_like(self, other: str) -> bool:
        """Whether an identifier is of the wanted one's sort: the same letters, or shown."""
        letters = re.match(r"[^\W\d_]*", self.wanted.casefold())
        same = letters is not None and other.casefold().startswith(letters[0]) and bool(letters[0])
        return same or any(s.text.casefold() == other.casefold() for s in self.facts)

    def _values(self) -> Iterator[Mention]:
        unit = self.sought[0].unit if self.sought else ""
        kinds = {value.kind for value in self.sought}
        found = values_in(self.text)
        units = {v.unit for v in found if any(v.same(one) for one in self.sought)}
        for value in found:
            written = self.text[value.start : value.end]
            same = any(value.same(one) for one in self.sought)
            if value.kind not in kinds and not same:
                continue
            if not same and value.kind == "number":
                in_words = not re.search(r"\d", written) and value.readings == {1.0}
                if in_words or (value.unit == "%") != (unit == "%"):
                    continue
                if self.kind == "number" and value.unit not in ("", "%", *units):
                    continue
            yield Mention(value.start, value.end, written, value)

    def _phrases(self) -> Iterator[Mention]:
        own = [*places(self.text, self.wanted)] or [*places(self.text, self._short_form())]
        yield from (Mention(*span, self.wanted) for span in own)
        shape = _shape(self.wanted)
        keys = {shown.key for shown in self.facts if self._is_same(shown.text)}
        like = [s.text for s in self.facts if s.key in keys or _shape(s.text) == shape]
        yield from self._phrases_of([*self.options, *like], own)

    def _short_form(self) -> str:
        """What sets the wanted option apart: the "A1" of "room A1" beside "room B2"."""
        others = {word for option in self.options for word in option.casefold().split()}
        words = self.wanted.split()
        own = [word for word in words if word.casefold() not in others]
        return " ".join(own if self.options and own else words)

    def _phrases_of(
        self, options: Sequence[str], own: Sequence[tuple[int, int]]
    ) -> Iterator[Mention]:
        """Where other options stand, and not within the wanted one."""
        for option in dict.fromkeys(options):
            if len(option) < 2 or self._is_same(option):
                continue
            for start, end in places(self.text, option):
                if not any(a < end and start < b for a, b in own):
                    yield Mention(start, end, option)

    def _is_same(self, text: str) -> bool:
        if self.kind in ("number", "amount", "date", "time"):
            return any(one.same(two) for one in value_of(text) for two in self.sought)
        return _bare(text) == _bare(self.wanted)

    def _is_wanted(self, mention: Mention) -> bool:
        if mention.value is not None:
            return any(mention.value.same(one) for one in self.sought)
        return mention.text == self.wanted

    def _is_beside(self, mention: Mention) -> bool:
        """Whether a mention is of another thing that is wanted too."""
        if mention.value is not None:
            return any(mention.value.same(v) for item in self.beside for v in value_of(item))
        return any(_bare(mention.text) == _bare(item) for item in self.beside)

    # -- what explains it ----------------------------------------------------------------------

    def _words_for(self, facts: list[Shown]) -> frozenset[str]:
        return frozenset[str]().union(*(fact.words for fact in facts))

    def _about(self, mention: Mention) -> frozenset[str]:
        """The words that are said of a mention: of its clause, or up to the next value there."""
        span = mention.start, mention.end
        if span not in self.told_of:
            self.told_of[span] = self._said_of(mention)
        return self.told_of[span]

    def _said_of(self, mention: Mention) -> frozenset[str]:
        clause = clause_of(self.text, mention.start, mention.end)
        first, last = mention.start - len(clause.before), mention.end + len(clause.after)
        near = slice(bisect_left(self.starts, first), bisect_right(self.starts, last))
        beside = [other for other in self.in_order[near] if other != mention and other.end <= last]
        if not beside:
            return words_of(f"{clause.before} {clause.after}", 3)
        start = max((o.end for o in beside if o.end <= mention.start), default=first)
        end = min((o.start for o in beside if o.start >= mention.end), default=last)
        before = words_of(self.text[start : mention.start], 3)
        return before or words_of(self.text[mention.end : end], 3)

    def _names(self, facts: list[Shown]) -> tuple[frozenset[str], frozenset[str]]:
        """The words that only the wanted value goes by, and those that only others go by."""
        theirs, asked = self._words_for(facts), words_of(self.asked)
        return without(self.own | asked, theirs), without(theirs, self.own | asked)

    def _is_called_otherwise(self, mention: Mention) -> bool:
        """Whether the wanted value is given a name under which only another one was shown."""
        kind = mention.value.kind if mention.value else ""
        others = [
            fact
            for fact in self.facts
            if not self._is_same(fact.text)
            and (not kind or any(value.kind == kind for value in value_of(fact.text)))
        ]
        if not self.own or not others:
            return False
        about = self._about(mention)
        keys = frozenset[str]().union(*(words_of(f.key.replace("_", " "), 3) for f in others))
        return shared(about, without(keys, self.own | words_of(self.asked))) and not shared(
            about, self.own | words_of(self.asked)
        )

    def _is_of_another_label(self, mention: Mention) -> bool:
        """Whether the wanted value goes by another name or subject than was asked for."""
        span, value = (mention.start, mention.end), mention.value
        sought = next((v for v in self.sought if value and v.kind == value.kind), None)
        return is_of_another_label(self.text, span, sought, self.wanted, self.context)

    def _is_explained(self, rival: Mention) -> bool:
        """Whether the request has it, or the answer gives it another name than the wanted one."""
        told_apart = is_set_aside(self.text, rival.start, rival.end)
        if told_apart and not any(is_former(self.text, m.start, m.end) for m in self.wanted_ones):
            return True
        if rival.value is not None:
            if any(rival.value.same(value) for value in values_in(self.asked)):
                return True
            if any(
                is_end_of_asked_range(self.text, mine.value, rival.value, self.context)
                for mine in self.wanted_ones
                if mine.value is not None
            ):
                return True
        elif self.kind == "id" and rival.text.casefold() in self.asked.casefold():
            return not self.options
        facts = self._facts_of(rival)
        if not facts:
            return False
        if rival.value is not None and _WHOLE.search(self.text[: rival.start]):
            return True
        mine, theirs = self._names(facts)
        of_rival = self._about(rival)
        of_mine = frozenset[str]().union(*map(self._about, self.wanted_ones))
        if shared(of_mine, theirs) and not shared(of_mine, mine):
            return False
        if shared(of_rival, mine) and not shared(of_rival, theirs):
            return False
        return shared(of_rival, theirs) or shared(of_mine, mine)

    def _facts_of(self, rival: Mention) -> list[Shown]:
        """Where the results show a rival."""
        value = rival.value
        if value is not None:
            return [f for f in self.facts if any(v.same(value) for v in value_of(f.text))]
        return [f for f in self.facts if f.text.casefold() == rival.text.casefold()]


def _shape(text: str) -> tuple[bool, ...]:
    """Which words of a text begin with a capital; two texts of one sort have the same."""
    return tuple(word[:1].isupper() for word in re.findall(r"[^\W\d_]\w*", text))


def _bare(text: str) -> str:
    return _SIGNS.sub("", text.casefold())


def _has(text: str, item: str) -> bool:
    return any(True for _ in places(text, item))

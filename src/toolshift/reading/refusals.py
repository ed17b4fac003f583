"""Reads a message in prose where answers are plain values: "There are 4 copies."

Each part of the message asks, says that something cannot be done, or states something. The last
part that does one of these decides; a statement counts there where it has a value, for "I looked
for it" answers nothing. Where no part does, the linear model of `prose` says whether the message
refuses; else it is an answer. A question that wants yes or no is answered by "No, it is not there".
Where the right answer of a task is a word for nobody or nothing, a claim of that is an answer; the
same words may refuse elsewhere.
"""

from __future__ import annotations

import re
from typing import Literal

from toolshift.core.message import REASONS
from toolshift.reading.answers.by_words import plain
from toolshift.reading.answers.none import says_none
from toolshift.reading.asked_role import asked_for
from toolshift.reading.prose import Kind, linear_models
from toolshift.reading.prose_signs import Message
from toolshift.reading.quantity import RequestContext
from toolshift.reading.reported import ShownResults
from toolshift.reading.values import Value, value_of, values_in
from toolshift.reading.words import OFFER

Part = Literal["question", "refusal", "value", "other"]

_I = re.IGNORECASE
_PART = re.compile(
    r"(?<=[.!?;])(?<!\b[A-Za-z]\.)[\"')]*\s+|\n+|[,;]?\s(?:but|however|though|although)\s|"
    r"(?<!error)(?<!status)(?<!code):\s",
    _I,
)
_ASKS = re.compile(
    r"^(?:[^,]{1,40},)?\W*(?:please|kindly)\s+(?:provide|tell|give|specify|confirm|share|send|"
    r"advise|clarify|"
    r"choose|"
    r"state|say)\b|\blet me know (?:which|what|who|when|where|whether|the|your)\b|"
    r"\bi(?:'ll|'d| will| would)? (?:need|require)s? (?:to know|more|the|your|a)\b|"
    r"\b(?:could|can|would|will) you (?:please )?(?:tell|give|provide|confirm|specify|share|"
    r"clarify)\b",
    _I,
)
_CHOOSES = re.compile(
    r"\b(?:which|what|when|where|who)\b(?! else\b)(?: (?!else\b)[\w-]+){0,4}? "
    r"(?:would you (?:like|prefer)|do you (?:want|need|prefer)|should i|shall i)\b",
    _I,
)
"""What leaves a choice to the user, and is no offer: "which one would you like?"."""
_NO_END = r"(?:left|available|free|in stock|on loan|remaining|today|tomorrow|due|open)"
_CANNOT = re.compile(
    r"(?:n't (?:been )?able to|"
    r"\b(?:can(?:no|')t|can ?not|could(?: not|n't)|unable to|not (?:been )?able to|(?:was|"
    r"is) not possible to|"
    r"won't be able to|failed to|did(?: not|n't)))\s+(?:\w+ly\s+|be\s+)?"
    r"(?:find|locate|found|complete|process|fulfil+|help|provide|determine|do|refund|retrieve|"
    r"access|"
    r"get|look|answer|verify|check|identify|proceed|continue|reach|tell|carry|perform|finish|see|"
    r"book|"
    r"cancel|order|return|reserve|renew|change|update|give|say|read|load|fetch|match|resolve|"
    r"assist|"
    r"completed|processed|fulfilled|located|retrieved|done|reached|identified|determined|booked|"
    r"exist)\b|"
    r"\b(?:do|does|did)(?: not|n't) (?:seem to |appear to )?(?:exist|have (?:any |a |"
    r"an )?(?:record|access|"
    r"information|enough|tool|way|order|entry)|know|appear|match|find|recogni[sz]e)|"
    r"\bno (?:such|information|data|details)\b|\bnot found\b|\bnot_found\b|\bno (?:record|match|"
    r"matches|result|results|trace|"
    r"entry|entries)\b|"
    r"\bthere(?:'s| is| are) (?:no|not any)\b(?!.*\b" + _NO_END + r"\b).*\b(?:with|by|named|"
    r"called|matching|"
    r"under|in (?:our|the|my))\b|\bthere(?:'s| is| are) no [\w-]+ [\w'\"-]*\d|"
    r"\b(?:is|are|was)(?: not|n't) (?:registered|listed|in (?:our|the|my) (?:system|records|"
    r"database|"
    r"catalogue|list)|known|on (?:file|record)|possible)\b|\bnobody (?:by|with|called|named)\b|"
    r"\bimpossible\b|\bdecommissioned\b|\bout of service\b|\bno longer (?:exists?|offered|"
    r"supported|there)\b|"
    r"\b(?:tool|service|function|system|endpoint|backend|api|server|lookup)\b.*\b(?:down|"
    r"unavailable|gone|"
    r"removed|failing|failed|offline|fails|broken|withdrawn|not available|no longer available|"
    r"retired|tim(?:ed|ing) out)\b|"
    r"\bno (?:tool|way|function|means)s? (?:for|to|that|which)\b|\black(?:s|ing)? the\b|"
    r"\bnone of the (?:[\w-]+ )?(?:tools|functions)\b|\bgiving up\b|"
    r"\bcontradict|\bconflicting\b|\bi (?:won't|will not|must decline|have to stop|give up|"
    r"refuse|decline)\b|"
    r"\bunknown (?:order|customer|id|book|room|item|user|member|tool)\b",
    _I,
)
_FAILED_WITH = re.compile(
    r"\b(?:http|errors?|status|server (?:says|said|returned|responded|answered|replied))\W+"
    r"(?:\w+\W+){0,3}?(?:40\d|429|50[0-4])\b(?! (?!errors?\b|status\b)\w)|"
    r"\b(?:40\d|429|50[0-4]) (?:errors?|internal|service unavailable|not found|too many)\b",
    _I,
)
"""A status of HTTP, which is no value: "the server says 503"."""
_JOINED_WORD = r"(?<![^\W_])[^\W_]+(?:[-.@/][^\W_]+)*"
_KIND_OF_ID = r"(?:number|id|code|reference|record|one)"
_NO_SUCH = re.compile(
    r"\bno [\w-]+ (?:with|by|named|called|matching|under|of|for) (?:that|this|the|such|your|id)\b",
    _I,
)
_COUNTS = re.compile(r"\bhow (?:many|much|often)\b|\bnumber of\b|\bcount\b|\bany\b|\btotal\b", _I)
_ASIDE = re.compile(
    r"e-?mail|notif|attach|remind|calendar|confirmation|\bprint(?!ed)|newsletter|"
    r"text message|\bsms\b|photo|picture",
    _I,
)
"""Side tasks that may fail although the request does not: "no e-mail could be sent"."""
_WANTS_YES_OR_NO = re.compile(
    r"(?:^|[.!?:,\n]\s*)(?:is|are|am|was|were|has|have|had|does|do|did|may|can (?!you\b)|"
    r"could (?!you\b)|will (?!you\b))\b[^.!?\n]*\?",
    _I,
)
_OUTRIGHT = re.compile(
    r"^\W*(?:(?:unfortunately|sorry|i(?:'m| am) afraid|well)\W+)?(?:yes|no|nope)(?=\W*$|\s*[,-])",
    _I,
)
"""A part that says yes or no, and not "no order"."""
_OUT_OF_REACH = re.compile(
    r"\b(?:access|reach|connect|tools?|services?|servers?|endpoint|api|tim(?:e|ed|ing) ?out|"
    r"errors?|offline|down)\b",
    _I,
)
"""Reasons why an agent cannot know, which say nothing about the thing itself."""
_YES_OR_NO = re.compile(r"^\W*(?:yes|no|yep|nope|true|false)\b", _I)
_SHOWN = re.compile(
    r'[:\[,]\s*"((?:[^"\\]|\\.){1,60})"(?!\s*:)|^\s*[\w .-]{1,40}[:=]\s*([^{\["\n]{1,60})$', re.M
)
_MAX_SHOWN = 400
_COUNTED = re.compile(r"\bhow many ([^\W\d_]+)\b", _I)
_KEYED = re.compile(r'"([\w-]{1,60})"\s*:\s*(?:"((?:[^"\\]|\\.){1,60})"|(-?\d[\d.]{0,20}))')
_COULD_NOT = re.compile(
    r"(?:n't|\bnot|\bcannot|\bunable to|\bfailed to)\s+(?:be able to |able to )?(?:\w+ly )?"
    r"(?:(?:find|get|retrieve|locate|fetch|determine|look up|provide|access|see|check|verify|"
    r"(?:tell|"
    r"give)(?: you)?|say)|(?P<act>reserve|book|renew|cancel|order|change|update|send|print|"
    r"refund|return|ship|"
    r"track|notify|download|translate))\s+(?P<what>[^.!?;:]{1,80})",
    _I,
)
_SAYS_LITTLE = frozenset((
    "a", "an", "the", "any", "its", "their", "your", "his", "her", "our", "my", "of", "for",
    "to", "in", "on", "at", "from", "with", "about", "and", "or", "yet", "you", "it", "this",
    "that", "more", "out", "right", "now", "moment", "though", "either", "also", "which", "was",
    "is", "are", "they", "them", "one", "where", "who", "whose", "how", "when",
))  # fmt: skip
_SAYS_ANYTHING = frozenset((
    "match", "matches", "record", "records", "result", "results", "anything", "something",
    "information", "info", "data", "details", "detail", "entry", "entries", "answer", "tool",
    "tools",
))  # fmt: skip


def read_plain_prose(
    text: str,
    shown: str = "",
    request: str = "",
    may_be_none: bool = False,
    final: bool = False,
    tools: str = "",
) -> tuple[Kind, str]:
    """Reads a message that ends a turn in prose, in a world whose answers are plain values.

    Where nobody will reply (`final`), a question behind a refusal takes nothing back. What `tools`
    are named and described as says what "none" means, where that may be right (`may_be_none`).
    """
    message_text = plain(text)
    known = _Known(shown, request, may_be_none, tools)
    last, parts = _last_decisive(message_text, known)
    if final and last == "question":
        told = [part for part in parts if _kind(part, known) != "question"]
        last = _last_decisive(" ".join(told), known)[0] if told else last
        last = last if last == "refusal" else "question"
    if last == "refusal" and _only_reports(message_text, known):
        last = "value"
    if last == "question":
        return "question", ""
    message = Message(text, shown, request)
    if known.wants_yes_or_no and last != "value":
        said_outright = any(map(_OUTRIGHT.match, parts)) and not _OUT_OF_REACH.search(message_text)
        last = "value" if said_outright or last == "other" else last
    if last == "other":  # what states an identifier, or what a field holds, is an answer
        refuses = (
            not message.states
            and not known.results.reports_literal(message_text)
            and linear_models().kind.best(message.kind_signs(), "answer") == "refusal"
        )
        last = "refusal" if refuses else "value"
    named = [reason for reason in REASONS if reason in message.text]
    if last == "value" and not (len(named) == 1 and message.text.startswith("refuse")):
        return "answer", ""
    reason = named[0] if len(named) == 1 else linear_models().reason.best(message.reason_signs())
    return "refusal", "" if reason == "other" else reason


def says_of_what(text: str, request: str) -> bool:
    """Whether a refusal names what could not be found or done, by an identifier of the request."""
    named = {word.casefold() for word in re.findall(_JOINED_WORD, plain(request))}
    said = (word.casefold() for word in re.findall(_JOINED_WORD, plain(text)))
    return any(word in named and _is_identifier(word) for word in said)


def _is_identifier(word: str) -> bool:
    """Whether a word has a figure and a letter, or is an address."""
    return "@" in word or bool(re.search(r"\d", word) and re.search(r"[^\W\d_]", word))


def _last_decisive(message_text: str, known: _Known) -> tuple[Part, list[str]]:
    """What the last part that decides does, and all parts."""
    parts = [part for part in _PART.split(message_text) if part.strip(" .\"'-")]
    kinds = [_kind(part, known) for part in parts]
    decisive = [kind for kind in kinds if kind != "other"]
    last = decisive[-1] if decisive else "other"
    if last == "refusal" and _is_answered(parts, kinds, known):
        last = "value"
    return last, parts


def _only_reports(message_text: str, known: _Known) -> bool:
    """Whether what refuses stands in data: of the field that is asked for, or beside an answer."""
    asked = known.results.without_named(message_text, known.request)
    if asked != message_text and _last_decisive(asked, known)[0] != "refusal":
        return True
    said = known.results.without_reports(message_text)
    return said != message_text and _last_decisive(said, known)[0] == "value"


class _Known:
    """The values that were shown and that the user has not said."""

    def __init__(
        self, shown: str, request: str, may_be_none: bool = False, tools: str = ""
    ) -> None:
        self._context = RequestContext(request, f"{shown}\n{tools}") if may_be_none else None
        self._asked = values_in(request)
        self.results = ShownResults(shown)
        self.counts = bool(_COUNTS.search(request))
        self.wants_yes_or_no = bool(_WANTS_YES_OR_NO.search(request))
        self.request = request.casefold()
        beside = re.findall(rf"([^\W\d_]{{3,}}) (?=({_JOINED_WORD}))", self.request)
        kinds = [re.escape(noun) for noun, token in beside if _is_identifier(token)]
        self._is_none_such = re.compile(
            rf"({_JOINED_WORD})[\"')]* (?:is|was|does|did)(?:n't| not) (?:\w+ )?(?:an?|any) "
            rf"(?:[\w-]+ ){{0,2}}(?:{'|'.join([*kinds, _KIND_OF_ID])})\b",
            _I,
        )
        self._request_words = self.request.replace("-", "")
        self._wanted = _stated_under(shown, _wanted_word(request))
        words = ((a or b).strip().casefold() for a, b in _SHOWN.findall(shown))
        texts = [word for word in dict.fromkeys(words) if len(word) > 2]
        new = [text.replace("_", " ") for text in texts[:_MAX_SHOWN] if text not in self.request]
        wholes = "|".join(map(re.escape, sorted(new, key=len, reverse=True))) or "(?!)"
        self._words = re.compile(rf"(?<!\w)(?:{wholes})(?!\w)")

    def denies_kind(self, part: str) -> bool:
        """Whether a part says that an identifier is none: "BK-1 isn't a valid booking number"."""
        return any(map(_is_identifier, self._is_none_such.findall(part)))

    def is_beside(self, part: str) -> bool:
        """Whether a part speaks of e-mails, print and the like, and the request does not."""
        aside = _ASIDE.search(part)
        return aside is not None and aside[0].casefold().replace("-", "") not in self._request_words

    def answers(self, part: str) -> bool:
        """Whether a part states a value that was shown under the requested name."""
        part_words, values = f" {' '.join(_words(part))} ", values_in(part)
        return any(
            f" {' '.join(_words(text))} " in part_words
            or any(value.same(other) for value in values for other in value_of(text))
            for text in self._wanted
        )

    def says_none(self, part: str) -> bool:
        """Whether a part claims that there is none of what was requested, if that may be true."""
        return self._context is not None and says_none(part, self._context)

    def names(self, words: list[str]) -> bool:
        """Whether the request has one of the words, in whatever number."""
        return any(word.removesuffix("s") in self.request for word in words)

    def states(self, part: str) -> bool:
        """Whether a part of a message states a value that the user has not said."""
        return bool(self._words.search(part.casefold())) or any(
            self._is_new(value, part) for value in values_in(part)
        )

    def _is_new(self, value: Value, part: str) -> bool:
        """Whether a value is said first here; "no car" is a number where things are counted."""
        written = part[value.start : value.end].strip().lower()
        if written == "no" and not self.counts:
            return False
        return not any(value.same(other) for other in self._asked)


def _wanted_word(request: str) -> str:
    """The one thing that a request asks for: what it counts, or what it names."""
    counted = _COUNTED.findall(request)
    named = asked_for(request)
    return counted[0].lower() if len(counted) == 1 and not named else "" if counted else named


def _stated_under(shown: str, word: str) -> list[str]:
    """The values that were shown under a key with a word."""
    stem = word.removesuffix("s")
    keyed = _KEYED.findall(shown) if stem else []
    under = [text or number for key, text, number in keyed if stem in _words(key)]
    return list(dict.fromkeys(under))[:_MAX_SHOWN]


def _words(text: str) -> list[str]:
    return [word.removesuffix("s") for word in re.findall(r"[^\W_]+", text.casefold())]


def _is_answered(parts: list[str], kinds: list[Part], known: _Known) -> bool:
    """Whether the requested value is stated, and only things beside the request failed.

    "It has shipped. I couldn't get the tracking number" answers "What is the status of my order?".
    """
    failed = [part for part, kind in zip(parts, kinds, strict=True) if kind == "refusal"]
    matches = [_COULD_NOT.search(part) for part in failed]
    rest = [part for part, kind in zip(parts, kinds, strict=True) if kind != "refusal"]
    rest += [part[: one.start()] for part, one in zip(failed, matches, strict=True) if one]
    return any(map(known.answers, rest)) and all(
        one is not None and _is_beside(one, known) for one in matches
    )


def _is_beside(failed: re.Match[str], known: _Known) -> bool:
    """Whether the request names nothing of what could not be done."""
    named = re.findall(r"[^\W_]+", f"{failed['act'] or ''} {failed['what']}".lower())
    words = [word for word in named if word not in _SAYS_LITTLE]
    return bool(words) and not _SAYS_ANYTHING & {*words} and not known.names(words)


def _kind(part: str, known: _Known) -> Part:
    asks = part.rstrip(" \"')").endswith("?")
    if asks and _CHOOSES.search(part):
        return "question"
    if OFFER.search(part):
        return "value" if known.states(part) and not asks else "other"
    if asks or _ASKS.search(part):
        return "question"
    cannot = (
        _CANNOT.search(part)
        or _FAILED_WITH.search(part)
        or known.denies_kind(part)
        or (_NO_SUCH.search(part) and not known.counts)
    )
    beside = known.is_beside(part)
    if known.says_none(part):
        return "value"
    if cannot and not beside:
        return "refusal"
    stated = known.states(part) or _YES_OR_NO.match(part)
    return "value" if stated and not beside else "other"

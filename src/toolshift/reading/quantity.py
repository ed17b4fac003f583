"""Whether a number in an answer is the requested quantity.

The figure may be right and the quantity another: "4%" of the copies are not 4 copies, and in "No
copies. 4 were lost" the answer is none. What the request and the results say decides; where
neither is known, a unit does no harm.
"""

from __future__ import annotations

import re
from itertools import pairwise

import msgspec

from toolshift.reading.values import Value, values_in
from toolshift.reading.words import singular

_I = re.IGNORECASE
_MAX_TOLD = 40_000
"""The most characters of shown text that are searched for units."""


class RequestContext(msgspec.Struct, frozen=True):
    """The context of an answer, as far as it is known.

    Attributes:
        request: what the user said.
        shown: the tools and results that the agent has seen.
    """

    request: str = ""
    shown: str = ""


_DIMENSIONS = {
    "percent": (
        r"%|per ?cent\w*",
        r"%|per ?cent|pct|share|rate|ratio|discount|probab|chance|humid|level|batter|progress|"
        r"complet|occupan|utili|usage|load|full|interest|\btax|\bvat\b|margin|commission|confiden|"
        r"score|\boff\b|saving|growth|fraction|portion|quota",
    ),
    "money": (
        "",
        r"[€$£¥₹]|\b(?:eur|usd|gbp|chf|jpy)|euro|dollar|pric|cost|\bpa(?:y|id)|\bfees?\b|total|"
        r"amount|balance|\bfine|charg|refund|\bbill|invoice|budget|salar|money|spen[dt]|worth|"
        r"\bow(?:e|ing)|credit|deposit|\brent|\bfare|revenue|\bsales|expens|cheap|\bsum\b|\btip|"
        r"donat|\bbid|wage|income|rate|earn|debt|currenc|subtotal|much",
    ),
    "time": (
        r"ms|secs?|seconds|mins?|minutes?|h|hrs?|hours?|days?|weeks?|wks?|months?|years?|yrs?",
        r"long|minute|hour|second|\bday|week|month|year|durat|time|tak(?:e|es|ing)\b|wait|\bage|"
        r"\bold|length|delay|\blast|until|\blate|\bago|ttl|period|\bterm|expir|\beta\b|often|"
        r"deadline|\bstay|ride|trip|\bmins?\b|\bhrs?\b|\bsecs?\b",
    ),
    "length": (
        r"[kcm]m|kms|(?:kilo|centi|milli)?met(?:re|er)s?|miles?|mi|feet|ft|inch(?:es)?",
        r"\bfar|distan|[kcm]m\b|met(?:re|er)|mile|long|length|\btall|high|height|wide|width|deep|"
        r"depth|\bbig|size|dimension|range|altitude|elevation|radius|short|thick|travel|walk|"
        r"away|ride|trip|near|clos|route|feet|inch",
    ),
    "mass": (
        r"kgs?|kilos?|(?:kilo|milli)?grams?|g|mg|lbs?|tons?|tonnes?",
        r"weigh|heavy|\bmass|kilo|[km]?g\b|gram|\blb|pound|load|light|\bton|dose|dosage|strength",
    ),
    "temperature": (
        r"°[cf]?|degrees?|celsius|fahrenheit",
        r"temp|warm|\bhot|cold|degree|°|celsius|fahrenheit|weather|cool|heat|feel|freez|boil|"
        r"climat|angle|rotat|heading|latitude|longitude|slope",
    ),
    "data": (
        r"[kmgt]i?b|(?:kilo|mega|giga|tera)?bytes?",
        r"size|\bbig|[kmgt]i?b\b|byte|storage|space|memory|disk|large|quota|free|usage|capacit|"
        r"download|upload|file",
    ),
    "volume": (
        r"(?:milli|centi)?lit(?:re|er)s?|ml|cl|gallons?",
        r"lit(?:re|er)|volume|capacit|\bfill|hold|size|\bml\b|content|tank|much|gallon|dose|dosage",
    ),
}
"""Of each: the units behind a number, and the words of requests and results that speak of it."""
_UNIT_BEHIND = {
    name: re.compile(rf"\s?(?:{units})(?!\w)", _I) for name, (units, _) in _DIMENSIONS.items()
    if units
}  # fmt: skip
_SPOKEN_OF = {name: re.compile(words, _I) for name, (_, words) in _DIMENSIONS.items()}


def is_other_quantity(text: str, value: Value, context: RequestContext) -> bool:
    """Whether a number has a unit that neither the request nor a result mentions."""
    known = f"{context.request}\n{context.shown}"[:_MAX_TOLD].replace("_", " ")
    dimension = _dimension(text, value)
    return bool(known.strip() and dimension and not _SPOKEN_OF[dimension].search(known))


def _dimension(text: str, value: Value) -> str:
    """The dimension of a number, by its unit; "" if it has no known one."""
    if value.unit:
        return "percent" if value.unit == "%" else "money"
    inside = re.search(r"(?<=\d)\s?(?:[^\W\d_]+|°[cf]?)$", text[value.start : value.end], _I)
    behind = inside[0] if inside else text[value.end : value.end + 30]
    return next((name for name, unit in _UNIT_BEHIND.items() if unit.match(behind)), "")


# -- numbers of something else ------------------------------------------------------------------

_COUNTER = re.compile(r"\b(step|attempt|phase|option|try|call) (?:no\.? ?|#)?$", _I)
_COUNTS_ALL = re.compile(
    r"\bhow many ([^\W\d_]+)(?: of [^?.!,;]{1,60}?)? (?:are there|do (?:you|we|they|i) have|"
    r"(?:does|do) [^?.!,;]{1,60}? have|exist)\b(?! [a-z]+(?:ed|able)\b)",
    _I,
)

_NO_NOUNS = frozenset(
    ("out", "left", "free", "available", "more", "other", "remaining", "still", "currently", "now")
)


def is_label(text: str, value: Value, context: RequestContext) -> bool:
    """Whether a number counts another thing than the request does.

    It numbers a step of the work ("Step 1: search"), or the request asks how many there are of
    something and another number has that noun: "I found 4 results, but there are 5 copies".
    """
    counter = _COUNTER.search(text[max(0, value.start - 20) : value.start])
    if counter:
        return counter[1].lower() not in context.request.lower()
    counted = _COUNTS_ALL.search(context.request)
    behind = _nouns_behind(text, value)
    if not counted or not behind or singular(counted[1]) in behind:
        return False
    others = (other for other in values_in(text) if other.kind == "number")
    return any(
        not other.same(value) and _nouns_behind(text, other)[:1] == [singular(counted[1])]
        for other in others
    )


def _nouns_behind(text: str, value: Value) -> list[str]:
    """The stems of up to three words that begin with what a number counts, a noun by its number."""
    words = re.match(r"(?: [^\W\d_]+){0,3}", text[value.end : value.end + 60])
    nouns = words[0].lower().split() if words else []
    if not nouns or _PLAIN_WORD.match(nouns[0]) or nouns[0] in _NO_NOUNS:
        return []
    is_noun = value.readings == {1.0} or nouns[0].endswith("s")
    return [singular(word) for word in nouns] if is_noun else []


# -- a part of a whole --------------------------------------------------------------------------

_PART_OF = r"of (?:which|whom|these|those|them)\b"
_TO_PART = re.compile(
    rf"(?: [^\W\d_]+){{0,3}}[ ,;(-]+(?:out )?{_PART_OF},?(?: only| just| currently)? ", _I
)
_TO_SOME = re.compile(r"(?: [^\W\d_]+){0,4} ?[,;(-]+(?: and| only| just)* ?", _I)
_OF_IT = re.compile(rf" {_PART_OF}", _I)
_HOW_MANY = re.compile(r"\bhow many ([^\W\d_]+)", _I)
_ASKS_MORE = re.compile(
    r"\b(?:and|also|plus|total|altogether|overall|as well|out of|both|each)\b|\?.*\?", _I | re.S
)
"""What a request has that may ask for the part and the whole."""
_OF_ALL = re.compile(r"\s*(?:$|[?.!,]|(?:in|at) (?!stock\b|hand\b|use\b))", _I)
"""What may follow "how many are there", such that nothing but the whole is asked for."""


def is_other_part(text: str, value: Value, context: RequestContext) -> bool:
    """Whether a number is a part although the whole was requested, or the whole for a part.

    "6 copies, of which 4 are free": who asks how many copies there are gets 6, and who asks how
    many are free gets 4. Where the request says neither, or asks for more than one thing, both may
    be meant.
    """
    if len(_HOW_MANY.findall(context.request)) > 1 or _ASKS_MORE.search(context.request):
        return False
    numbers = [other for other in values_in(text) if other.kind == "number"]
    for whole, part in pairwise(numbers):
        if not is_part_of(text, part, whole):
            continue
        if value.start == part.start and _asks_for_all(context.request):
            return True
        noun = _HOW_MANY.search(context.request)
        counted = {singular(noun[1]) if noun else "", *_words(text[whole.end : part.start])}
        called = _words(_clause_behind(text, part)) - counted
        if value.start == whole.start and called & _words(context.request):
            return True
    return False


def is_part_of(text: str, part: Value, whole: Value) -> bool:
    """Whether a number is said to be a part of the one before it: "6 copies, 4 of them free"."""
    between = text[whole.end : part.start]
    some = _TO_SOME.fullmatch(between) and _OF_IT.match(text, part.end)
    return bool(some or _TO_PART.fullmatch(between))


def _asks_for_all(request: str) -> bool:
    """Whether a request asks for the total, and not for how many have some property."""
    counted = _COUNTS_ALL.search(request)
    return counted is not None and bool(_OF_ALL.match(request, counted.end()))


# -- answers without a verb --------------------------------------------------------------------

_PIECE = re.compile(r"(?:(?! - )[^.;:!?,\n])+(?:[.,:]\d(?:(?! - )[^.;:!?,\n])*)*")
_NO = r"no|not (?:a|one)(?: single)?|not any|zero|nil"
_FRAGMENT = re.compile(
    r"\W*(?:(?:sorry|unfortunately|alas|well|currently|now|just|only|exactly) )*"
    rf"(?:(?P<none>none|nothing|nil|zero)|(?P<no>{_NO}) (?:(?:free|available|more|open|spare|"
    rf"remaining|other) )?(?P<noun>[\w-]+)|(?P<count>[\w-]+) "
    r"(?P<counted>[^\W\d]\w+))"
    r"(?: (?:at all|at (?:the moment|present|this time)|today|right now|yet|left|available|free|"
    r"in stock|remaining|here|there|now|currently|any ?more))*\W*",
    _I,
)
_COURTESY = re.compile(
    r"(?:problem|worries|doubt|trouble|idea|need|matter|thanks|results?|luck|delays?|issues?|"
    r"errors?|changes?)$",
    _I,
)
_COUNTED = re.compile(r"\s*(?:[^\W\d_][\w-]*\s+){0,5}?(?=(?:is|are|was|were|has|have|had)\b)", _I)
_PLAIN_WORD = re.compile(
    r"(?:how|many|much|the|a|an|of|is|are|was|were|there|do|does|did|has|have|had|been|in|on|at|"
    r"for|to|it|they|them|what|which|who|you|your|we|i|my|me|please|tell|and|or|that|this)$",
    _I,
)


def is_overruled(text: str, value: Value, context: RequestContext, unit: str = "") -> bool:
    """Whether an earlier fragment without a verb has answered already.

    "No copies. 4 were lost": the later sentence counts only where the request asks what it says.
    """
    fragment = _first_fragment(text, context, unit or _noun_behind(text, value))
    if fragment is None:
        return False
    start, end, amount = fragment
    if start <= value.start < end or amount in value.readings:
        return False
    words = _words(_COUNTED.sub("", _clause_behind(text, value), count=1))
    return not words & _words(context.request)


def _first_fragment(text: str, context: RequestContext, noun: str) -> tuple[int, int, float] | None:
    """The first fragment that only counts the requested thing, with its number."""
    known = {singular(word) for word in re.findall(r"[^\W\d_]+", context.request.lower())}
    known |= {singular(noun)} if noun else set()
    label = False
    for piece in _PIECE.finditer(text):
        fragment = None if label else _FRAGMENT.fullmatch(piece[0].strip())
        label = text[piece.end() : piece.end() + 1] == ":"
        if not fragment:
            continue
        name = (fragment["noun"] or fragment["counted"] or "").lower()
        if _COURTESY.match(name) or (name and _is_other_noun(name, known, fragment)):
            continue
        amount = _amount(fragment)
        if amount is not None:
            return piece.start(), piece.end(), amount
    return None


def _is_other_noun(name: str, known: set[str], fragment: re.Match[str]) -> bool:
    """Whether a fragment counts something else than the requested thing, if that is known."""
    return singular(name) not in known if known else bool(fragment["count"])


def _amount(fragment: re.Match[str]) -> float | None:
    if not fragment["count"]:
        return 0.0
    values = values_in(fragment["count"])
    readings = next((v.readings for v in values if v.kind == "number"), frozenset[float]())
    number = next(iter(readings), None)
    return number if isinstance(number, float) else None


def _noun_behind(text: str, value: Value) -> str:
    match = re.match(r"\s*([^\W\d_]+)", text[value.end : value.end + 40])
    return "" if not match or _PLAIN_WORD.match(match[1]) else match[1].lower()


def _clause_behind(text: str, value: Value) -> str:
    return re.split(r"[.;:!?,\n]", text[value.end : value.end + 200])[0]


def _words(text: str) -> set[str]:
    """The content words of a text, as stems."""
    words = re.findall(r"[^\W\d_]+", text.lower())
    return {singular(word) for word in words if not _PLAIN_WORD.match(word)}

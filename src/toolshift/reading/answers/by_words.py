"""Checks whether an answer says what a task of the user's own world expects."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

from msgspec.structs import replace

from toolshift.core.codecs import leaves
from toolshift.reading.answers.bounds import asks_bound
from toolshift.reading.answers.labels import is_end_of_asked_range, is_of_another_label
from toolshift.reading.answers.none import is_none, says_none
from toolshift.reading.answers.predicate import says_predicate
from toolshift.reading.answers.yes_no import is_taken_back
from toolshift.reading.asked_role import is_of_another_role
from toolshift.reading.assertion import Verdict, sentence, verdict
from toolshift.reading.choice import chooses_another
from toolshift.reading.correction import is_corrected
from toolshift.reading.former import asks_what_was, is_former
from toolshift.reading.phrase_spans import MAX_PLACES, places
from toolshift.reading.quantity import (
    RequestContext,
    is_label,
    is_other_part,
    is_other_quantity,
    is_overruled,
    is_part_of,
)
from toolshift.reading.text import bare, fold, spoken
from toolshift.reading.values import Value, value_of, values_in
from toolshift.reading.words import INSTEAD, key, singular

_I = re.IGNORECASE
UNKNOWN = RequestContext()
"""The context when the request is not known."""
MAX_CHARACTERS = 12_000
"""A longer answer is read without its middle."""
_DECODE = json.JSONDecoder().raw_decode
_SIGN = re.compile(r"[\\^$*+?{}\[\]|()]")
_SAYS_VALUE = re.compile(r"values?|details?|info(?:rmation)?|results?|answers?|data", _I)
"""The header of a value column beside a column of names."""
_FENCE = re.compile(r"\s*```\w*\s*\n(.*?)\n?\s*```\s*", re.DOTALL)
_BOXED = re.compile(r"\\(?:boxed|text(?:bf|tt|it)?|mathrm|mathbf)\s*\{([^{}]*)\}")
_OF_ONE = {"\u00bc": ".25", "\u00bd": ".5", "\u00be": ".75"}
_FRACTION = re.compile(r"(?<![\d.,])(\d{0,9}) ?([\u00bc\u00bd\u00be])")
"""2\u00bd, which folding would make 21/2 of."""
_COMPOUND = re.compile(
    r"(?<![\w.,:/-])(\d{1,6})-(?=(?:second|minute|hour|day|night|week|month|year|star|person|"
    r"seat|page|mile|"
    r"kilomet(?:re|er)|met(?:re|er)|kilo|gram|lit(?:re|er))\b)",
    _I,
)
"""The hyphen of "a 30-day window"."""
_MARKUP = (
    (re.compile(r"~~.*?~~", re.DOTALL), " "),
    (re.compile(r"</?[a-zA-Z][^<>]*>"), " "),
    (re.compile(r"\[([^\[\]]*)\]\([^()\s]*\)"), r"\1"),
    (re.compile(r"^[ \t]*#+[ \t]+(?:(.*\S)[ \t]*(?=\n))?", re.MULTILINE), r"\1:\n"),
    (re.compile(r"^[ \t]*[-*\u2022>][ \t]+", re.MULTILINE), ""),
    (re.compile(r"[*`\\]|\$(?=\s|$|[.,])"), ""),
    (re.compile(r"(?<![^\W_])_+|_+(?![^\W_])"), ""),
    (re.compile(r"_"), " "),
)
_LINK = re.compile(r"\[[^\[\]]*\]\(([^()\s]*)\)")
_UNIT_WANTED = re.compile(r"(.*\d)\s*([^\W\d_]+|°[CF]?)(?:\s+[^\W\d_]+)?")
_NEGATED = re.compile(
    r"(?:not(?: yet)?|never|no longer)\s+(.+)|(?:un(?=\w{4,}ed)|(?:un|in)(?=(?:active|available|"
    r"valid|complete|"
    r"correct|eligible|paid|read|used|known|sold|sent|safe|reachable|accessible|"
    r"sufficient)$))(\w+)",
    _I,
)
_COURTESY = re.compile(
    r"(?:thanks?(?: you)?|cheers|sure|ok(?:ay)?|yes|please|regards|done|hello|hi|dear \w+|sir|"
    r"madam|"
    r"indeed|best|sincerely|correct|great|right)\W*",
    _I,
)


def is_pattern(wanted: str) -> bool:
    """Whether the expected answer is a pattern: it has a sign of one, and is no amount."""
    return bool(_SIGN.search(wanted)) and not value_of(fold(wanted).strip())


def matches(answer: str, wanted: str | Sequence[str], context: RequestContext = UNKNOWN) -> bool:
    """Whether an answer asserts the expected text, does not deny it, and offers no alternative."""
    if not isinstance(wanted, str):
        wanted = [as_answer(item) for item in wanted]
        if any(map(is_pattern, wanted)):
            return all(matches(answer, item, context) for item in wanted)
    if isinstance(wanted, str) and is_pattern(wanted):
        forms = dict.fromkeys((answer, fold(answer), bare(answer)))
        option = next((m[0] for m in _matches(wanted, context.request)), "")
        return any(
            _holds([_of_words(form, *m.span(), "", context) for m in _matches(wanted, form)])
            for form in forms
        ) and not (option.strip() and chooses_another(plain(answer), option, context.request))
    return says_text(answer, wanted, context)


def _matches(pattern: str, text: str) -> Iterator[re.Match[str]]:
    return islice(re.finditer(pattern, text), MAX_PLACES)


def says_text(answer: str, wanted: str | Sequence[str], context: RequestContext = UNKNOWN) -> bool:
    """Whether an answer says a text, which is not read as a regular expression."""
    is_address = "://" in (wanted if isinstance(wanted, str) else " ".join(map(as_answer, wanted)))
    text = plain(_LINK.sub(r"\1", answer) if is_address else answer)
    if not isinstance(wanted, str):
        return _says_all(text, [plain(as_answer(item)).strip() for item in wanted], context)
    wanted = plain(wanted).strip().strip(".")
    if _says_one(text, wanted, context):
        return True
    items = [part for part in re.split(r"\s*[,;]\s*(?:and\s+)?|\s+and\s+", wanted) if part.strip()]
    return len(items) > 1 and not value_of(wanted) and _says_all(text, items, context)


def passage(text: str, wanted: str) -> str:
    """The part of a shown text that says the expected value; "" if there is none."""
    if is_pattern(wanted):
        spans = [match.span() for match in re.finditer(wanted, text, _I)]
    else:
        sought = value_of(wanted)
        spans = [(v.start, v.end) for v in values_in(text) if sought and v.same(sought[0])]
        spans = spans or list(places(text, wanted))
    parts = (text[start:end] for start, end in spans)
    return next((part for part in parts if part and matches(part, wanted)), "")


_ELSE = re.compile(r"\b(?:either|or|maybe|perhaps|possibly|alternatively|otherwise)\b|/", _I)


def offers_several(answer: str, wanted: str) -> bool:
    """Whether an answer says the expected value and, in place of it, another one of its form.

    A value in words has a form only where it has a figure or a capital: "Lena or Tom". Any other is
    one of several where it stands at an "or": "shipped or delivered".
    """
    sought = value_of(wanted)
    form = re.compile(rf"(?<!\w){_form(wanted)}(?!\w)")
    if not sought and not re.search(r"[A-Z\d]", wanted):
        text = plain(answer)
        spots = (spot for spot in places(text, wanted) if verdict(text, *spot, True) != "denied")
        return any(_is_choice(text, *spot) for spot in spots)
    parts = _ELSE.split(plain(answer))
    said = [bool(passage(part, wanted)) for part in parts]
    others = [
        any(v.kind == sought[0].kind for v in values_in(part)) if sought else form.search(part)
        for part in parts
    ]
    return any(said) and any(
        other and not is_said for is_said, other in zip(said, others, strict=True)
    )


def _form(text: str) -> str:
    """A pattern of the texts that are written like this one."""
    forms = ((r"\d+", r"\d+"), (r"[A-Z][a-z]+", "[A-Z][a-z]+"), (r"[A-Z]+", "[A-Z]+"))
    found = re.finditer(r"\d+|[A-Z][a-z]+|[A-Z]+|[^\W\d_]+|.", text, re.DOTALL)
    return "".join(
        next((form for sign, form in forms if re.fullmatch(sign, part[0])), re.escape(part[0]))
        for part in found
    )


def single_values(value: object) -> Iterator[Any]:
    """The single values in a value, at every depth, and then each flat list as a whole."""
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from single_values(part)
    whole = isinstance(value, list) and not any(isinstance(item, list | dict) for item in value)
    if whole or not isinstance(value, dict | list):
        yield value


@lru_cache(maxsize=1 << 8)  # each rehearsal of a task reads the same results
def data_values(text: str) -> tuple[str, ...]:
    """The values of a text that begins with a JSON list or object, as an answer says them."""
    try:
        data = _DECODE(text)[0] if text[:1] in ("[", "{") else []
    except (ValueError, RecursionError):
        data = []
    return tuple(dict.fromkeys(map(as_answer, single_values(data))))


def as_answer(value: object) -> str:
    """Writes what a solution returns as the text of an answer."""
    if isinstance(value, list | tuple | set | frozenset):
        items = sorted(map(as_answer, value)) if isinstance(value, set | frozenset) else value
        return ", ".join(map(as_answer, items))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def plain(text: str) -> str:
    """Normalises a text: NFKC, no `<think>` blocks or markup, JSON as `key: value` lines."""
    read = fold(_FRACTION.sub(_as_decimal, spoken(text))).strip()
    if len(read) > MAX_CHARACTERS:
        read = read[: MAX_CHARACTERS // 2] + "\n" + read[-MAX_CHARACTERS // 2 :]
    fenced = _FENCE.fullmatch(read)
    read = _as_lines(fenced[1] if fenced else read)
    read = _COMPOUND.sub(r"\1 ", _BOXED.sub(r"\1", _without_tables(read)))
    for sign, instead in _MARKUP:
        read = sign.sub(instead, read)
    return read


def _as_decimal(fraction: re.Match[str]) -> str:
    return (fraction[1] or "0") + _OF_ONE[fraction[2]]


def _without_tables(text: str) -> str:
    """The text with a Markdown table as lines of a name and a value, record by record."""
    lines, rows, heads = text.split("\n"), list[str](), list[str]()
    for number, line in enumerate(lines):
        cells = _cells(line)
        if number + 1 < len(lines) and cells and _is_rule(lines[number + 1]):
            heads = cells
        elif heads and _is_rule(line):
            continue
        elif heads and len(cells) == len(heads):
            if len(cells) == 2 and _SAYS_VALUE.fullmatch(heads[1].strip("*_ ")):
                rows.append(": ".join(cells))
            else:
                rows += [f"{head}: {cell}" for head, cell in zip(heads, cells, strict=True)]
        else:
            heads = []
            rows.append(line)
    return "\n".join(rows)


def _is_rule(line: str) -> bool:
    """Whether a line parts the head of a table from its rows: `|---|:--|`."""
    return "--" in line and "|" in line and not set(line) - set("|:- \t")


def _cells(line: str) -> list[str]:
    """The cells of a row of a table; none of another line."""
    row = line.strip()
    if len(row) < 3 or not (row.startswith("|") and row.endswith("|")):
        return []
    return [cell.strip() for cell in row[1:-1].split("|")]


def _as_lines(text: str) -> str:
    """JSON data as lines of a name and a value; any other text as it is."""
    if not text.startswith(("{", "[", '"')):
        return text
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return "\n".join(_lines(data))


def _lines(data: Any) -> Iterator[str]:
    if isinstance(data, dict):
        for path, value in leaves(data):
            if isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
                yield from _lines(value)
            else:
                yield f"{path[-1]}: {_spoken(value)}"
    elif isinstance(data, list) and any(isinstance(item, dict | list) for item in data):
        for item in data:
            yield from _lines(item)
    else:
        yield _spoken(data)


def _spoken(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_spoken, value))
    return value if isinstance(value, str) else json.dumps(value)


# -- one thing that is wanted ------------------------------------------------------------------


def _says_one(text: str, wanted: str, context: RequestContext) -> bool:
    """Whether a text says one value or some words."""
    if wanted.lower() in _ANSWERS:
        return _says_yes_or_no(text, wanted.lower(), context)
    if is_none(wanted) and not wanted.isdigit():
        return says_none(text, context) or _says_zero(text, context)
    values, amount = value_of(wanted), _UNIT_WANTED.fullmatch(wanted)
    has_unit = amount is not None and amount[2].lower() in _UNITS  # glued to it, as in 90min
    if values and not (has_unit and [(v.kind, v.unit) for v in values] == [("number", "")]):
        said = all(_holds(list(_of_value(text, value, context))) for value in values)
        return said or (is_none(wanted) and _denies_any(text, context))
    if amount and len(value_of(amount[1])) == 1:
        unit = amount[2].lower()
        if _holds(list(_of_value(text, value_of(amount[1])[0], context, unit))):
            return True
        if unit in _UNITS or not re.search(r"\d[^\W\d_]", wanted):  # else the seat 12B
            return False
    negated = _NEGATED.fullmatch(wanted)
    if negated:
        inner = negated[1] or negated[2]
        forms = (wanted, f"not {inner}", f"un{inner}", f"in{inner}", f"non-{inner}")
        direct = [
            _of_words(text, *span, "", context) for form in forms for span in places(text, form)
        ]
        marks = [_of_words(text, *span, "", context) for span in places(text, inner)]
        if "open" in direct:
            return False
        return "said" not in marks and ("denied" in marks or "said" in direct)
    is_said = _holds([_of_words(text, *span, wanted, context) for span in places(text, wanted)])
    return is_said and not chooses_another(text, wanted, context.request)


_ZERO = re.compile(r"(?<![\w.,:/-])(?:0|zero)(?![\w:/-]|[.,]\d)", _I)


def _says_zero(text: str, context: RequestContext) -> bool:
    """Whether a text says 0 or zero, where a word for nothing is wanted."""
    return any(
        _verdict(text, zero.span(), False, context) == "said" for zero in _ZERO.finditer(text)
    )


def _denies_any(text: str, context: RequestContext) -> bool:
    """Whether a text says without a number that there is none: "It is not available"."""
    numbers = any(value.kind == "number" for value in values_in(text))
    return bool(context.request) and not numbers and says_none(text, context)


def _holds(verdicts: list[Verdict]) -> bool:
    """Whether it is asserted somewhere and denied nowhere."""
    return "said" in verdicts and "denied" not in verdicts


_ANSWERS = {"yes": True, "true": True, "no": False, "false": False}
_SAYS_YES = re.compile(
    r"(?:yes|yep|yeah|true|correct|indeed|affirmative|(?:certainly|absolutely|definitely|"
    r"of course)(?! not))\b",
    _I,
)
_SAYS_NO = re.compile(
    r"(?:no(?! (?:problem|worries|doubt|trouble|need))|nope|false|negative|(?:certainly |"
    r"absolutely |definitely |of course |unfortunately,? |i'm afraid |i am afraid )not|"
    r"not (?:at all|really|yet))\b",
    _I,
)
_YES_OR_NO = re.compile(
    r"\byes(?: and | or | ?[/,] ?)no\b|\byes\b[^.!?;\n]{0,12}\bno\b(?! [^\W\d_])|"
    r"\bno\b[^.!?;\n]{0,12}\byes\b",
    _I,
)
_NO_OF_SOMETHING = re.compile(r"no [^\W\d_]", _I)
_PERHAPS = re.compile(
    r"[\s,(]*(?:probably|likely|maybe|perhaps|possibly|presumably|i (?:guess|suppose|assume))\b", _I
)
_PLACE_OF_YES = re.compile(
    r"(?:^|[.!?;:=\n,]\s*|\b(?:is|answer is|it's|"
    r"was)\s+)(?:[^\w\s.!?;:=,\"'(]{1,3}\s?)?[\"'(]*(?=\w)",
    _I,
)


def _says_yes_or_no(text: str, wanted: str, context: RequestContext) -> bool:
    """Whether a sentence begins with yes or no, or ends in it, and none with the other.

    Behind a yes, "no" before a noun denies something else: "Yes. There is no charge." Where neither
    stands there, what was asked may be stated or denied; where one does, that may contradict it.
    """
    spots = [match.end() for match in _PLACE_OF_YES.finditer(text)]
    yes = [sign for spot in spots if (sign := _SAYS_YES.match(text, spot))]
    no = [sign for spot in spots if (sign := _SAYS_NO.match(text, spot))]
    if yes and not (no and no[0].start() < yes[0].start()):
        no = [sign for sign in no if not _NO_OF_SOMETHING.match(text, sign.start())]
    both = _YES_OR_NO.search(text)
    wanted_ones, other = (yes, no) if _ANSWERS[wanted] else (no, yes)
    doubted = any(_PERHAPS.match(text, sign.end()) for sign in wanted_ones)
    stated = says_predicate(text, context)
    if not (yes or no or both):
        return stated is _ANSWERS[wanted]
    contradicted = stated is (not _ANSWERS[wanted]) or is_taken_back(text, context)
    return not both and bool(wanted_ones) and not other and not doubted and not contradicted


# -- words -------------------------------------------------------------------------------------


_OR_BEFORE = re.compile(
    r"(?:\beither|\b(?:or|and/or|versus|vs)(?: (?:else|maybe|perhaps|possibly|the|a|is|it is))?|"
    r"\w ?[/|])"
    r"\s*[\"']?$",
    _I,
)
_ONE_OF = re.compile(
    r"\b(?:any|one|either) of:?\s+((?:[\w.-]+(?: [\w.-]+){0,2}, )*(?:(?:[\w.-]+ )?(?:and|or) )?)"
    r"[\"']?$",
    _I,
)
_OR_AFTER = re.compile(
    r"[\"']?\s*(?:(?:, ?\w[\w.-]*)*,? ?\bor\b(?! (?:else|more|so)\b)|[/|] ?\w|\(?\s*and/or\b)", _I
)
_BESIDE_LIST = re.compile(rf"{_COURTESY.pattern}$|(?:and )?(?:not|{INSTEAD})\b", _I)
"""What is no further item: "the lamp, not the desk"."""
_LISTED = re.compile(r"\s*(?:[,;/|&\n]|\band\b|\bor\b|\bthen\b|->|\u2192)\s*", _I)


def _of_words(text: str, start: int, end: int, wanted: str, context: RequestContext) -> Verdict:
    """Whether a text asserts, denies or leaves open the words at a place."""
    judged = _verdict(text, (start, end), text[start:end].islower() or wanted.islower(), context)
    if judged != "said":
        return judged
    if _is_choice(text, start, end) or is_corrected(text, start, end):
        return "open"
    if _is_bare_list(text, start, end, wanted or text[start:end]):
        return "open"
    if _beside_its_like(text, start, end, context.request):
        return "open"
    if wanted and is_of_another_label(text, (start, end), None, wanted, context):
        return "open"
    return "open" if _has_rival_frame(text, start, end) else "said"


def _verdict(text: str, span: tuple[int, int], is_state: bool, context: RequestContext) -> Verdict:
    """The verdict on a place; a former value is open, unless the request asks for it."""
    judged = verdict(text, *span, is_state)
    if judged != "said":
        return judged
    was = is_former(text, *span, is_state) and not asks_what_was(context.request)
    return "open" if was or is_of_another_role(text, *span, context.request) else "said"


def _is_bare_list(text: str, start: int, end: int, wanted: str) -> bool:
    """Whether the text is only a list of things like this one, with or without a title.

    A name may have its place after a comma, as in "Paris, France".
    """
    opening = re.match(r"[^,;\n]{0,40}?(?::|->|\u2192)\s*", text)
    title = opening.end() if opening and opening.end() <= start else 0
    body = text[title:].strip().rstrip(".!")
    items = [item.strip(" .!\"'()") for item in _LISTED.split(body)]
    items = [item for item in items if item and not _BESIDE_LIST.match(item)]
    own = text[start:end].casefold()
    others = [item for item in items if item.casefold() != own]
    if not others or len(others) == len(items):
        return False
    size = len(wanted.split()) + 1
    if any(len(item.split()) > size for item in others):
        return False
    if any(re.search(r"[\d:]", item) for item in others):  # a record, or several of each form
        forms = Counter(map(_series, items))
        return min(forms.values()) > 1 and forms[_series(own)] > 2 and "0" not in forms
    return len(others) > 1 or wanted.islower() or not re.search(r", [^,]+$", body)


def _series(text: str) -> str:
    """What codes of one series have in common; words without a figure are one too."""
    return re.sub(r"\d+", "0", text.casefold()) if re.search(r"\d", text) else "word"


_BESIDE = r"[\"'`*]*(?:[ \t]*[,;/|&][ \t]*|[ \t]+(?:[-\u2013][ \t]+)?)(?:(?:and|or)[ \t]+)?[\"'`*]*"
"""What stands between two items of a list in a line."""


def _beside_its_like(text: str, start: int, end: int, request: str) -> bool:
    """Whether a code ends a list of codes of its series of which nothing more is said.

    "A-17, A-18." says neither of them, as "17, 18" does; "A-17, A-18 is sold out" may say one.
    Those that the request names are its options.
    """
    code = text[start:end]
    lead = re.match(r"[^\W\d_]+", code)
    if not lead or not re.search(r"\d", code) or value_of(code):
        return False
    like = rf"(?<![\w-]){re.escape(lead[0])}{_form(code[lead.end() :])}(?![\w-])"
    first, last = sentence(text, start, end)
    for listed in re.finditer(
        rf"{like}(?:{_BESIDE}{like})+(?=[\"'`*]*[.!]?\s*$)", text[first:last]
    ):
        if first + listed.start() <= start < first + listed.end():
            found = {match[0] for match in re.finditer(like, listed[0])} - {code}
            return any(other.lower() not in request.lower() for other in found)
    return False


_SAME_THING = re.compile(r"(?:not|never|no longer|now|also|only|still)\b")


def _has_rival_frame(text: str, start: int, end: int) -> bool:
    """Whether another sentence says something else in the same words: "It is A. It is B."."""
    first, last = sentence(text, start, end)
    before, after = (key(text[first:start]), key(text[end:last]))
    if not before:
        return False
    own = key(text[start:end])
    rest = re.split(r"[.!?;]\s+|\n", text[:first] + "\n" + text[last:])
    for other in map(key, rest):
        inner = other.removeprefix(before).removesuffix(after).strip()
        whole = other.startswith(before + " ") and other.endswith(after)
        short = 0 < len(inner.split()) <= len(own.split()) + 1
        if whole and short and inner != own and not _SAME_THING.match(inner):
            return True
    return False


# -- values ------------------------------------------------------------------------------------

_JOINED = re.compile(
    r"\s*(?:[,/|&;-]*|\)\s*\(|[,;]?\s*(?:maybe|perhaps|possibly)|[,;]?\s*(?:or|and|to|through|"
    r"thru|until|till|then|versus|vs)"
    r"(?:\s+(?:maybe|perhaps|possibly|even|also|else|from|there|it|they|is|are|be|has|have))*)\s*",
    _I,
)
_SPAN = re.compile(r"\s*(?:-|to|or|/|until|through)\s*", _I)
_BETWEEN = re.compile(r"\bbetween\s+(?:about )?$", _I)
_OR_ELSE = re.compile(r"[,;]?\s*(?:or|(?:or )?(?:maybe|perhaps|possibly))\s*", _I)
_OF = re.compile(r"\s*\w*\s*(?:out )?of (?:the |a total of |all |its )?", _I)
_BOUND = re.compile(
    r"(?:\b(?:at (?:least|most|minimum|maximum)|(?:starts? |starting |ranges? )?from|starting at|"
    r"as low as|more than|less than|fewer than|greater than|over|under|"
    r"above|below|exceed(?:s|ing)|(?:a )?(?:minimum|maximum)(?: of)?|upwards? of|up to|"
    r"as (?:many|few|"
    r"much) as|no (?:more|fewer|less) than|between|within|min\.?|max\.?)|"
    r"(?<![-=<>])[<>]=?|[\u2264\u2265])\s*(?:the |about )?$",
    _I,
)
_CAPACITY = re.compile(
    r"\b(?:seats?|holds?|fits?|accommodates?|takes?|(?:room|space|capacity|place) (?:for|of|is)|"
    r"borrow|"
    r"have|host|capacity:?|allow(?:s|ed)?)\s+(?:up to|at most|no more than|as many as|"
    r"a maximum of)\s*$",
    _I,
)
_MOMENT = re.compile(
    r"(?<!or )\b(?:after|before|(?<!no )(?<!not )later than|earlier than|since|past|towards?|"
    r"between|"
    r"the (?:week|month) of)\s+(?:the )?$",
    _I,
)
_DENIED_BEFORE = re.compile(r"n't\b|\bnot\b|\bor before\b", _I)
_MORE = re.compile(
    r"\s*(?:[\w-]+\s+)?(?:\+(?!\d)|or (?:more|less|fewer|above|over|so|higher|lower|later|earlier|"
    r"thereabouts|after|before)\b|and (?:up|above|more|over|later|counting)\b|plus\b(?!\s+\w)|"
    r"-?ish\b)",
    _I,
)
_LIMIT = re.compile(
    r"\s*(?:[^\W\d_]+\s+)?(?:at (?:the )?(?:(?P<least>least|minimum)|most|maximum)\b|"
    r"max(?:imum)?\b|(?P<min>minimum)\b)",
    _I,
)
_HOLDS = re.compile(
    r"\b(?:seats?|holds?|fits?|accommodates?|takes?|capacity|room|space|borrow|host|allow\w*)\b", _I
)
_OPERAND_BEFORE = re.compile(r"\b(?:minus|plus|times)\s+(?:an? |the )?$", _I)
_OPERATOR = re.compile(r"\s*(?:[^\W\d_]+ )?(?:minus|plus|times)\b", _I)
_MAKES = re.compile(r"=|\b(?:gives|equals|makes|comes to|leaves)\b", _I)
_PART_BEFORE = re.compile(
    r"(?<![\w.])\d{1,2}(?:st|nd|rd|th)?\s*(?:-|to|and|or|/|&|,)\s*(?:the )?$", _I
)
_PART_AFTER = re.compile(r"\s*(?:-|to|until|till|through|or|/)\s*(?:the )?\d", _I)
_UNITS = {
    word: group[0]
    for group in (
        ("min", "mins", "minute", "minutes"), ("h", "hr", "hrs", "hour", "hours"),
        ("s", "sec", "secs", "second", "seconds"), ("d", "day", "days"),
        ("km", "kms", "kilometre", "kilometres", "kilometer", "kilometers"),
        ("m", "metre", "metres", "meter", "meters"), ("cm", "centimetres", "centimeters"),
        ("mi", "mile", "miles"), ("kg", "kilo", "kilos", "kilogram", "kilograms"),
        ("g", "gram", "grams"), ("l", "litre", "litres", "liter", "liters"),
        ("people", "person", "persons"), ("°c", "c", "celsius", "°", "degrees", "degree"),
        ("°f", "f", "fahrenheit"), ("week", "weeks", "wk", "wks"), ("month", "months"),
        ("year", "years", "yr", "yrs"), ("gb", "gigabytes", "gigabyte"), ("mb", "megabytes"),
    )
    for word in group
}  # fmt: skip


def _of_value(
    text: str, wanted: Value, context: RequestContext, unit: str = ""
) -> Iterator[Verdict]:
    """The verdict on each place of a value, with its unit if one is expected."""
    values = values_in(text)
    same = [
        (place, value)
        for place, value in enumerate(values)
        if value.same(wanted) and not (unit and not _has_unit(text, value, unit))
    ]
    for place, value in same[:MAX_PLACES]:
        judged = _verdict(text, (value.start, value.end), False, context)
        if judged == "denied" and value.readings == {0.0} and _is_none(text, value):
            judged = "said"
        vague = judged == "said" and (
            is_corrected(text, value.start, value.end, value)
            or _is_vague(text, values, place, context)
            or is_of_another_label(text, (value.start, value.end), wanted, "", context)
            or (value.kind == "number" and _is_of_another(text, value, wanted, context, unit))
        )
        yield "open" if vague else judged


def _is_of_another(
    text: str, value: Value, wanted: Value, context: RequestContext, unit: str
) -> bool:
    """Whether a number counts something else than the requested thing."""
    if not unit and not wanted.unit and is_other_quantity(text, value, context):
        return True
    if is_label(text, value, context) or is_other_part(text, value, context):
        return True
    return is_overruled(text, value, context, unit)


def _is_none(text: str, value: Value) -> bool:
    """Whether a zero is the word that negates: "there are no copies"."""
    return not any(sign.isdigit() for sign in text[value.start : value.end])


def _has_unit(text: str, value: Value, unit: str) -> bool:
    """Whether a number has a unit, or none: the nearest known one, or a noun close behind."""
    inside = re.search(r"(?<=\d)(?:[^\W\d_]+|°)$", text[value.start : value.end])
    behind = re.findall(
        r"[^\W\d_]+|°[CF]?", text[value.end : sentence(text, value.start, value.end)[1]]
    )
    words = [inside[0].lower()] if inside else [word.lower() for word in behind[:4]]
    stem = unit_of(unit)
    if not words or any(unit_of(word) == stem for word in words):
        return True
    return words[0] in ("in", "at", "for", "on", "of", "are", "is") and not inside


def unit_of(word: str) -> str:
    """The one name of a unit ("minutes" is "min"), or the singular of another word."""
    return _UNITS.get(word) or singular(word)


def _is_vague(text: str, values: list[Value], place: int, context: RequestContext) -> bool:
    """Whether a value is a bound, an end of a range, part of another number, or one of several."""
    value = values[place]
    first, last = sentence(text, value.start, value.end)
    before, after = text[first : value.start], text[value.end : last]
    limit = _LIMIT.match(after)
    if (
        limit
        and not asks_bound(limit[0], context.request)
        and (limit["least"] or limit["min"] or not _HOLDS.search(before))
    ):
        return True
    if _MORE.match(after):
        return True
    if _MAKES.search(after) and (_OPERAND_BEFORE.search(before) or _OPERATOR.match(after)):
        return True
    if value.kind == "number":
        in_brackets = before.endswith("<") and after.startswith(">")
        is_plain = in_brackets or _CAPACITY.search(before)
        bound = None if is_plain else _BOUND.search(before)
    else:
        bound = None if _DENIED_BEFORE.search(before) else _MOMENT.search(before)
    if bound and not asks_bound(bound[0], context.request):
        return True
    part = _PART_BEFORE.search(before) if value.kind == "date" else None
    if part and not _ends_range(text, value, first + part.start(), context):
        return True
    near = values[max(0, place - MAX_PLACES) : place + MAX_PLACES]
    rivals = [other for other in near if not other.same(value)]
    if value.kind == "date" and _PART_AFTER.match(after):
        return not any(is_end_of_asked_range(text, value, other, context) for other in rivals)
    return any(
        _is_rival(text, value, other)
        and not _is_gone(text, other)
        and not is_end_of_asked_range(text, value, other, context)
        for other in rivals
    )


def _ends_range(text: str, value: Value, start: int, context: RequestContext) -> bool:
    """Whether a day before a date is the other end of a range that the request asks the end of."""
    day = re.match(r"\d+", text[start:])
    written = text[value.start : value.end]
    other = value_of(re.sub(r"^\d{1,2}", day[0], written)) if day else []
    return any(
        is_end_of_asked_range(
            text, value, replace(one, start=start, end=start + len(day[0])), context
        )
        for one in other
        if day
    )


def _is_gone(text: str, other: Value) -> bool:
    """Whether a value is a former one, or was corrected."""
    span = other.start, other.end
    return is_former(text, *span, False) or is_corrected(text, *span, other)


def _is_rival(text: str, value: Value, other: Value) -> bool:
    """Whether two values are offered together, or in sentences of the same words."""
    if value.kind != other.kind or (value.unit and other.unit and value.unit != other.unit):
        return False
    early, late = sorted((value, other), key=lambda either: either.start)
    if is_part_of(text, late, early):  # which of the two was asked for, is said elsewhere
        return False
    between = text[early.end : late.start]
    if value.unit != other.unit:  # "25 EUR, 2 items" are not two prices; "9 - 25 EUR" are
        bound = text[max(0, early.start - 20) : early.start]
        ends = between.strip() == "and" and _BETWEEN.search(bound)
        return bool(_SPAN.fullmatch(between) or ends)
    if value.kind == "number" and late is value and _OF.fullmatch(between):
        return True
    if _JOINED.fullmatch(between):
        return True
    noun = re.match(r"\s*([^\W\d_]+)\s*", between)
    behind = re.match(r"\s*([^\W\d_]+)", text[late.end :])
    if noun and _OR_ELSE.fullmatch(between[noun.end() :]):
        return True
    if noun and behind and unit_of(noun[1].lower()) == unit_of(behind[1].lower()):
        return bool(_JOINED.fullmatch(between[noun.end() :].strip(" .") or ","))
    return _same_frame(text, value, other)


def _same_frame(text: str, value: Value, other: Value) -> bool:
    """Whether two sentences are the same but for the value: "It costs 4. It costs 5."."""
    frames = []
    for either in (value, other):
        first, last = sentence(text, either.start, either.end)
        frames.append((first, key(text[first : either.start]), key(text[either.end : last])))
    (first, *mine), (second, *its) = frames
    return (
        first != second and mine == its and verdict(text, other.start, other.end, False) == "said"
    )


# -- several things that are wanted ------------------------------------------------------------


def _says_all(text: str, items: list[str], context: RequestContext) -> bool:
    """Whether a text says every item, and its list has no other."""
    flat = _listed(text)
    if not all(_says_one(text, item, context) or _is_item(flat, item) for item in items):
        return False
    column = _column_with(text, items)
    if column:
        return all(
            _TOTAL.fullmatch(cell) or any(_is_in(cell, item) for item in items) for cell in column
        )
    parts = _parts(flat)
    # An item may hold what parts a list: the title "Dune, Part Two", "salt and pepper".
    pieces = [piece for item in items for piece in (_parts(_listed(item)) or [item])]
    pieces = [*dict.fromkeys((*items, *pieces))]
    holding = [n for n, part in enumerate(parts) if any(_is_in(part, item) for item in pieces)]
    if not holding:  # each is said in other words, so nothing can stand between them
        return True
    inside = parts[holding[0] : holding[-1] + 1]
    foreign = [part for part in inside if not any(_is_in(part, item) for item in pieces)]
    size = max(len(item.split()) for item in items) + 1
    behind = parts[holding[-1] + 1 : holding[-1] + 2]
    trailing = [p for p in behind if len(p.split()) <= size and not _COURTESY.fullmatch(p)]
    return not foreign and not (
        trailing and _is_in_last_sentence(text, trailing[0], parts, holding)
    )


def _listed(text: str) -> str:
    """A text with each of what may be items of a list on a line of its own."""
    flat = re.sub(r"[ \t]*(?:\n+|,(?=\s)|;|&|\band\b)[ \t]*", " \n ", text)
    return re.sub(r"(?m)^ *(?:\d+[.)]|[-\u2022]) +", " ", flat)


def _parts(flat: str) -> list[str]:
    return [part.strip(" .!\"'") for part in flat.split("\n") if part.strip(" .!\"'")]


_OF_A_RECORD = re.compile(r"^[ \t]*([^:\n]{1,40}):[ \t]+(\S.*?)[ \t]*$", re.MULTILINE)
_COUNTER = re.compile(r"#|no\.?|nr\.?|row|rank", _I)
_TOTAL = re.compile(r"(?:sub|grand )?total|sum|altogether", _I)
_REFUTES = re.compile(r"(?:no|false|none|never)\W*|not\b.*|[\u2717\u274c].*", _I)


def _column_with(text: str, items: list[str]) -> list[str]:
    """The cells of the column, or the values of the key, that holds all items.

    None where there is no such column, or where a cell denies something of its record.
    """
    columns: dict[str, list[str]] = {}
    for label, cell in _OF_A_RECORD.findall(text):
        columns.setdefault(label.strip().casefold(), []).append(cell)
    if any(_REFUTES.fullmatch(cell) for cells in columns.values() for cell in cells):
        return []
    for label, cells in columns.items():
        several = len(cells) > 1 and not _COUNTER.fullmatch(label)
        if several and all(any(_is_in(cell, item) for cell in cells) for item in items):
            return cells
    return []


def _is_item(flat: str, item: str) -> bool:
    """Whether an item is a list entry by itself and is asserted there."""
    values = value_of(item)
    spans = [(v.start, v.end) for v in values_in(flat) if values and v.same(values[0])]
    spans = spans or list(places(flat, item))
    return _holds(["open" if _is_choice(flat, *s) else verdict(flat, *s, False) for s in spans])


def _is_choice(text: str, start: int, end: int) -> bool:
    """Whether the words at a place are one side of an "or", or one of several in "one of"."""
    first, last = sentence(text, start, end)
    one_of = _ONE_OF.search(text[first:start])
    if one_of and ("," in one_of[1] or re.match(r"[\"']?, ", text[end:last])):
        return True
    return bool(_OR_BEFORE.search(text[first:start]) or _OR_AFTER.match(text[end:last]))


def _is_in(part: str, item: str) -> bool:
    values = value_of(item)
    if values:
        return any(value.same(values[0]) for value in values_in(part))
    return any(True for _ in places(part, item))


def _is_in_last_sentence(text: str, trailing: str, parts: list[str], holding: list[int]) -> bool:
    """Whether what follows the last item belongs to the list: no sentence ends between them."""
    before = text.find(parts[holding[-1]])
    spot = text.find(trailing, before + 1)
    return spot > 0 and not re.search(r"[.!?:]\s|\n\s*\n", text[before:spot])

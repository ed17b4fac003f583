"""Whether a text says that something was so before, and is so no longer: "the former author was X".

The past tense alone says nothing of that: "the order was shipped". It takes an adjective of time
("previous", "former"), an adverb ("originally", "used to"), a change ("from X to Y", "replaced X"),
or a present that is set against it ("it was X, and now it is Y").
"""

from __future__ import annotations

import re

from toolshift.reading.assertion import sentence

_I = re.IGNORECASE
_REACH = 300
"""How far in its sentence a word can affect a place, in characters."""
_OVER = r"(?:previous|former|prior|superseded|outdated|obsolete|replaced)"
_AGED = r"(?:older|earlier|old|original|initial|past)"
_ONCE = r"(?:formerly|previously|originally|initially|at first|in the past|back then)"
_WAS = r"(?:was|were|had|cost|stood|used|listed|ran|read|said|belonged)"
_IT_IS = r"(?:it|this|that|he|she|they|the \w+)?(?:'s|\s*(?:is|are|costs?|has))\b"
_NOW = r"(?:now|nowadays|today|currently)"
_OF_THE_WORK = (
    r"(?:steps?|messages?|results?|calls?|repl(?:y|ies)|responses?|search(?:es)?|lookups?|"
    r"questions?|answers?|turns?|requests?|quer(?:y|ies)|outputs?|tools?|checks?)"
)
"""What an agent may call previous or old and speak of its own work: "in the previous step"."""

_PRESENT = re.compile(
    rf"[;:(|]|,(?=\s)(?=.*\b(?:is|are|has|costs?|now)\b)|"
    rf"\b(?:but|however|{_NOW}|since|while|whereas|and|then)\b",
    _I,
)
"""Words before a place that separate the present from the past."""
_BEFORE = tuple(
    re.compile(form, _I)
    for form in (
        rf"\b(?:{_OVER}|ex)[ -](?!{_OF_THE_WORK}\b)[\w-]+",
        rf"\b(?:the|an?|its|your|his|her|their|our|one) {_AGED} (?!{_OF_THE_WORK}\b)"
        rf"(?:[\w-]+ ){{1,3}}?(?:{_WAS}|is|shows?|says?|lists?|gives?|names?|of|by|at)\b",
        r"\blast (?:year|month|week|season)'s\b",
        rf"\b(?:{_ONCE}|until recently|used to|(?:was|were) once|once (?:was|were|had))\b",
        rf"\b(?:the|its|your) {_AGED} (?!{_OF_THE_WORK}\b)[\w -]{{1,30}}:\s*$",
        r"^\W*(?:before|until|till|up to|prior to) "
        rf"(?:the|that|this|then|its|last|recent\w*|\d{{4}})\b.*\b{_WAS}\b",
        r"\b(?:until|till|up to) (?:yesterday|recently|last \w+|\d{4})\W*$|\bback in \w+\b",
        r"\b(?:from|as of|in) \d{4}\b.*\bstill\b",
        r"\b(?:replac(?:ed|es|ing)|supersed(?:ed|es|ing)|succeed(?:ed|s|ing)|"
        r"(?:took|tak(?:es|en)) over from)\s+(?:(?:the|its|(?:dr|mrs?|ms|prof)\.?)\s+){0,2}$",
    )
)
_FROM = re.compile(
    r"\b(?:chang|rais|lower|r[io]s|dropp?|f[ea]ll|increas|decreas|reduc|cut|mov|updat|correct|"
    r"went|gone|switch|renam|postpon|reschedul|adjust|transferr?|edit|revis)\w*\b"
    r"(?:\s[\w-]+){0,3}? from (?:the )?$",
    _I,
)
_TO = re.compile(r"\s*[^\W\d_]{0,12}\s*(?:to|into|onto)\b", _I)
_AFTER = tuple(
    re.compile(rf"[\"')]*,?\s*{form}", _I)
    for form in (
        r"\bused to\b",
        rf"\b(?:was|were) (?:once|{_ONCE})\b",
        r"\b(?:has|have|had|was|were|is|got)\s+(?:since\s+)?(?:been\s+)?"
        r"(?:replaced|superseded|succeeded|overwritten|corrected)\b",
        r"\bbefore (?:it|they|this|that|he|she) (?:was|were|got|had)\b",
        rf"\b(?:was|were) (?:[\w']+ ){{1,4}}(?:before|until|{_ONCE})\b",
        r"(?:[^\W\d_]+)?,? (?:which|that|but (?:it|this|that)) (?:is |does )?"
        r"(?:no longer|not any ?more)\b",
        r"\bwho (?:has|had) (?:since |now )?(?:left|retired|resigned|gone|moved|died)\b",
        rf"[(\[]\s*(?:{_OVER}|{_ONCE}|old)\s*[)\]]",
    )
)
_JUST_WAS = re.compile(rf"\b{_WAS}(?: (?:been|[\w-]+\.?))?\s+$", _I)
_NO_LONGER = tuple(
    re.compile(rf"[\"')]*{form}", _I)
    for form in (
        r",?\s+(?:until|till) (?:last|recently|the|that|then|this|it|\d{4})\b",
        rf",?\s+(?:before|at the time|once|{_ONCE})(?=\W*(?:$|[,;)]|\b(?:but|and|now)\b)|"
        r"\s(?:that|then|the (?:change|update|correction|move))\b)",
        r"[,;]?\s+(?:but |and )?now (?:only |just |at )?(?=(?-i:[\d\u20ac$\u00a3A-Z]))",
        # another value is given for now: a figure or a name
        r"[^,;]{0,20}[,;]?\s+(?:but |and |yet |though )?(?=.*\b(?-i:\d|[A-Z]))"
        rf"(?:{_NOW} {_IT_IS}|{_IT_IS}.{{0,60}}\b{_NOW}\b)",
    )
)
"""What follows a former value in the past tense."""
_WAS_IN_BRACKETS = re.compile(r"[(\[]\s*was:?\s*$", _I)
_MOVED_ON = re.compile(
    r"[\"')]*,? (?:but|and) (?:(?:it|this|that) )?(?:was|has (?:since )?been|got) (?:since |"
    r"then |later )?"
    r"(?:renewed|extended|postponed|moved|changed|rescheduled|updated|raised|lowered|reduced|"
    r"increased|"
    r"corrected) (?:until|till|to)\b",
    _I,
)
"""What follows something that "was": "it was due on 3 March but was renewed until 10 March"."""
_ASKED_FOR = re.compile(
    rf"\b(?:{_OVER}|{_AGED}|{_ONCE}|last (?:year|month|week|season)|before|used to|once|ago|"
    r"history)\b|\breplac|\bsupersed|\bchang",
    _I,
)


def asks_what_was(request: str) -> bool:
    """Whether a request asks for a former value, or may do so."""
    return bool(_ASKED_FOR.search(request))


def is_former(text: str, start: int, end: int, is_state: bool) -> bool:
    """Whether a text says that the value at a place is a former one."""
    first, last = sentence(text, start, end)
    before, after = text[max(first, start - _REACH) : start], text[end : min(last, end + _REACH)]
    if text[last : last + 1] == ";":  # "it was X until May; now it is Y"
        after += text[last : min(sentence(text, last + 1, last + 1)[1], end + _REACH)]
    if _WAS_IN_BRACKETS.search(before):  # "25 EUR (was 30 EUR)"
        return True
    cuts = (cut.end() for cut in _PRESENT.finditer(before.rstrip(" :(")))
    clause = before[max(cuts, default=0) :]
    if any(form.search(clause) for form in _BEFORE) or any(form.match(after) for form in _AFTER):
        return True
    if _FROM.search(clause) and _TO.match(after):
        return True
    if not is_state and _MOVED_ON.match(after) and re.search(rf"\b{_WAS}\b", clause, _I):
        return True
    was = not is_state and _JUST_WAS.search(clause)
    return bool(was) and any(form.match(after) for form in _NO_LONGER)

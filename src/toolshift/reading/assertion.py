"""Whether a text asserts, denies or leaves open what it says at a place.

These are rules for English clauses, the same for every value and every word.
"""

from __future__ import annotations

import re
from typing import Literal

from toolshift.reading.words import INSTEAD, NO_THING, OFFER_BEHIND, negation

Verdict = Literal["said", "denied", "open"]
"""Open: asked, supposed, still to come, or one of several."""

_I = re.IGNORECASE
_REACH = 300
"""How far back in its sentence a word can affect a place, in characters."""
_SENTENCE_END = re.compile(
    r"(?<!\b[A-Za-z])(?<!\b(?:Dr|Mr|Ms|St|vs|cf))(?<!\bMrs)(?<!\bProf)(?<!\bapprox)(?<!\bmax)"
    r"[.!](?=[\s\"')\]]|$)|[?;](?=\W|$)|\n"
)
_CUT = re.compile(
    r"[:(|]|,(?=\s)|\s-+\s|\s(?:but|however|instead(?! of)|though|although|whereas|while|so|"
    r"because|since|"
    r"then)\s|\sand\s(?=(?:it|its|the|your|this|that|they|their|he|she|we|i|there)\b)",
    _I,
)
_VERB = re.compile(
    r"\b(?:is|are|was|were|be|been|has|have|had|do|does|did|will|can|may|\w{3,}ed|costs?|shows?|"
    r"says?|seats?|holds?|starts?|ends?|comes?|gives?|lists?|reads?|stands?|runs?|gets?)\b|'(?:s|"
    r"re)\b",
    _I,
)
_IDIOMS = re.compile(
    r"\bno (?:problem|worries|doubt|trouble|need to worry)\b|\bnot at all\b|\bnot only\b|"
    r"\bwithout (?:any )?(?:delay|problems?|doubt|issues?|trouble|fail)\b|\bno,|\bnot to worry\b|"
    r"\bif i(?:'m| am) not mistaken\b|\bunless i(?:'m| am) mistaken\b|"
    r"\bthat(?: woul|')d be\b|\bdo(?:n't| not) (?:worry|hesitate)\b|\bin case you\b|\b(?:if|"
    r"should) you\b|"
    r"\bmust (?:also |then )?be (?:\w{2,}(?:ed|en|id|ght)|back)"
    r"(?= (?:by|on|before|at|no later|within)\b)",
    _I,
)
"""Phrases whose negation or condition affects nothing else; they are blanked out."""
_TURN = r"(?:but|however|only|until|before|than|except|besides|beyond|apart|other)"
_NOT = negation(
    *NO_THING, "no[ -]one", "nowhere", "hardly", "scarcely", "barely", "far from", "yet to",
    "fail(?:s|ed|ing)?", "failure", "refus(?:ed|es|ing|al)", "unable", "declin(?:ed|es)",
    "den(?:y|ies|ied)", "doubts?", "doubtful", "unlikely", "impossible", "untrue", "false", "wrong",
    "incorrect", "unclear", "unknown", "unsure", "uncertain", "unconfirmed", "contrary", "lacks?",
    "stopped", "prevented", "forgot", "ain't", "in no way", "by no means",
    "no (?:longer|evidence|sign|record|indication|proof|way)",
)  # fmt: skip
_DENIED = re.compile(
    rf"(?:!=|\u2260)\s*$|{_NOT}(?:\W+(?!{_TURN}\b)[\w'-]+){{0,8}}\W*$|"
    rf"\bno(?:\s+(?!{_TURN}\b)[\w'-]+){{0,2}}\s*$|"
    rf"\b(?:{INSTEAD}|in place of|except(?: for)?|excluding|other than|apart from|"
    r"besides)"
    r"(?:\W+[\w'-]+){0,3}\W*$",
    _I,
)
_NONE_BUT = re.compile(
    rf"(?:\b(?:no|not|cannot|{'|'.join(NO_THING)})\b|n't\b).*"
    r"\b(?:but|except(?: for)?|other than|besides|apart from|than)\b[^,;]*$",
    _I,
)
_BUT = re.compile(
    r"\b(?:anything|everything|everyone|everybody|all|every [\w-]+) but\W+(?:[\w'-]+\W+){0,2}$", _I
)
_SUPPOSED = re.compile(
    r"\b(?:if|unless|whether|suppos(?:e|ing)|(?:was|were) supposed to|assum(?:e|ing)|provided|"
    r"in case|as soon as|"
    r"perhaps|maybe|possibly|presumably|allegedly|guess(?:ing)?|wish|hope|pretend|otherwise|"
    r"(?:may|might|could|would|should|must)(?: well| also| not)? (?:be|have|cost)|almost|nearly|"
    r"not quite|"
    r"(?:(?<=^)|(?<=[,;] ))\s*had (?:it|the|they|this|that|your|he|she)|"
    r"(?<!will )(?<!'ll )(?<!you )(?<!the )(?<!most )(?<!very )(?<!quite )(?:most |very |quite )?"
    r"(?:probably|likely(?! to\b)))\b"
    r"(?:\W+[\w'-]+){0,8}\W*$",
    _I,
)
_UNSURE = re.compile(
    r"\bnot (?:\w+ )?(?:sure|certain|positive)(?: about (?:it|this|"
    r"that))?,? but\b(?:\W+[\w'-]+){0,8}\W*$",
    _I,
)
_UNTICKED = re.compile(r"(?:\[ ?\]|\u2610)\s?$")
"""The box of a list of tasks, left open."""
_QUOTES_QUESTION = re.compile(
    r"^\W*(?:(?:so|since|as),? )?you (?:have |had |were )?"
    r"(?:ask(?:ed|ing)|want(?:ed)? to know|(?:in|en)quired)\b(?:\W+[\w'-]+){0,8}\W*$",
    _I,
)
"""A quote of the user's question: "You asked about 4 copies"."""
_QUOTES_CLAIM = re.compile(
    r"^\W*you (?:said|mentioned|wrote|stated|claimed|expected|thought|assumed|told me)\b"
    r"(?:\W+[\w'-]+){0,8}\W*$",
    _I,
)
_DIFFERS = re.compile(r"[^.!?]{0,60}\b(?:but|however|actually|though|in fact)\b", _I)
"""A contrast with the user's claim: "You said 5, but there are 4"."""
_HEDGED = re.compile(
    r"[\"')\]]*(?: [^\W\d_]+){0,2}[ ,;(-]{1,4}(?:(?:most )?(?:probably|maybe|perhaps|possibly|"
    r"presumably|"
    r"likely)|i (?:guess|suppose|assume)|if i (?:remember|recall)(?: correctly| right(?:ly)?)?|"
    r"give or take|unverified|unconfirmed|not (?:verified|confirmed)|"
    r"but i(?:'m| am) not (?:\w+ )?(?:sure|certain))\W*$|"
    r"[^.!?;]{0,30}?,? (?:but|though|although) (?:it|that|they) (?:may|might|could)(?: well|"
    r" also)? be\b(?! that)",
    _I,
)
"""A hedge that closes the sentence: "4 copies, probably"."""
_TO_COME = re.compile(
    r"(?:\b(?:will|shall|"
    r"(?<!appear )(?<!appears )(?<!seem )(?<!seems )(?<!turns out )(?<!turned out )"
    r"(?<!found )(?<!known )(?<!shown )to|should|would|must|can|could|may|might|ought|needs?|has|"
    r"have|awaits?|"
    r"awaiting)"
    r"|'ll)\s+(?:\w+\s+)?(?:be|get|become|have been|being)\s+(?:\w+ly\s+|soon\s+|now\s+|then\s+)?$|"
    r"\b(?:being|until|once|when|after|before|till|gets?|getting|partly|partially|half|formerly|"
    r"previously|supposedly|soon|due to be|ready to be|not yet)\s+(?:\w+\s+){0,2}$",
    _I,
)
_WRONG = r"(?:not|false|wrong|incorrect|untrue|mistaken|outdated|a (?:mistake|lie|guess))"
_DISOWNED = re.compile(
    r"[\"')\]]*,? which (?:is|was) (?:\w+ly )?(?:false|wrong|incorrect|untrue|mistaken)\b|"
    rf"[\"')\]]*\s*(?:(?:is|was|are|were|looks|seems)(?:n't|\s+(?:\w+ly\s+)?{_WRONG})\b|"
    r"(?:,|-+|[:=])\s*(?:false|no|never|not|null|none|pending|n/a|tbd|\u274c|\u2717)(?=\W*(?:$|"
    r"[,;}\n]|but\b)))",
    _I,
)
_YES = re.compile(r"[\s\"')\]]*(?:yes|yep|yeah|correct|indeed|right|it is|it was|it has)\b", _I)


_MIGHT = re.compile(
    r"[\"')\]]*\s+(?:may|might|could)(?: well| also| not)? be\b"
    r"(?! (?:\w+ly )?(?:\w{2,}(?:ed|en|id|ght|wn)|found|sent|kept|made|read|put|left|lost|held|met|"
    r"told|sold|built|spent)\b)",
    _I,
)
"""A hedge; "25 EUR may be paid in cash" is none."""


def verdict(text: str, start: int, end: int, is_state: bool) -> Verdict:
    """The verdict of a text on what it says at a place."""
    first, last = sentence(text, start, end)
    # as many characters as before, so that nothing moves
    before = _IDIOMS.sub(lambda m: " " * len(m[0]), text[max(first, start - _REACH) : start])
    after = text[end:last]
    clause = _clause(before)
    if _DISOWNED.match(after) or _UNTICKED.search(before):
        return "denied"
    if _BUT.search(before) or (_DENIED.search(clause) and not _NONE_BUT.search(clause)):
        return "denied"
    if _asks(text, after, last) or _MIGHT.match(after) or _HEDGED.match(after):
        return "open"
    part = before[_last_cut(before) :]
    if _SUPPOSED.search(part) or _UNSURE.search(before) or _is_quoted(part, after):
        return "open"
    return "open" if is_state and _TO_COME.search(clause) else "said"


def _is_quoted(part: str, after: str) -> bool:
    """Whether the words quote the user and are no answer."""
    claimed = _QUOTES_CLAIM.match(part) and _DIFFERS.match(after)
    return bool(_QUOTES_QUESTION.match(part) or claimed)


def sentence(text: str, start: int, end: int) -> tuple[int, int]:
    """The start and end of the sentence around a place, without its closing sign."""
    first = max((m.end() for m in _SENTENCE_END.finditer(text, 0, start)), default=0)
    closing = _SENTENCE_END.search(text, end)
    return first, closing.start() if closing else len(text)


def _last_cut(before: str) -> int:
    return max((cut.end() for cut in _CUT.finditer(before)), default=0)


def _clause(before: str) -> str:
    """The last clause. Words that a comma separates from their verb stay: "not, I fear, paid"."""
    cuts = [(cut.end(), cut[0]) for cut in _CUT.finditer(before)]
    if re.match(r"\s*been?\b", before[_last_cut(before) :], _I):
        return before
    while cuts:
        end, sign = cuts.pop()
        if sign != "," or _VERB.search(before[end:]) or re.search(_NOT, before[end:], _I):
            return before[end:]
    return before


def _asks(text: str, after: str, last: int) -> bool:
    """Whether the sentence is a question, other than one that offers help after a statement."""
    if text[last : last + 1] != "?" or OFFER_BEHIND.search(after):
        return False
    return not _YES.match(text[last + 1 :])

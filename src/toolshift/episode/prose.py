"""Reads what an agent says outside the protocol."""

from __future__ import annotations

import re
from typing import Literal

from toolshift.core.message import CODE
from toolshift.core.reading import bare, codes_in, fold, spoken

Kind = Literal["question", "refusal", "answer", "none"]

_REFUSAL = re.compile(
    r"\b(cannot|can't|can ?not|could ?n[o']t|couldn't|unable|not able|wasn't able|"
    r"impossible|won't|(is not|isn't|not) (possible|registered|found|available|"
    r"issued|obtained|completed|done|in the|on file|known|listed|posted|reserved|"
    r"made|booked|created|determined)|unknown|refuse|decline|give up|giving up|(had|"
    r"have|need) to stop|must stop|stopp(ed|ing)( here)?|stuck|(isn't|"
    r"not) something I can|don't (think|believe) I can|(has|have|"
    r"had) no\b(?! problem)|no longer|unavailable|n[o']t (\w+ )?any ?more|disabled|"
    r"not in (?!stock)\w+|(is|are|was|were)n't (in (my|the)|ringing any)|"
    r"came up empty|turned up (nothing|empty)|in vain|without success|dead end|"
    r"empty-handed|blocked|out of reach|(did|does)(n't| not| n't) (succeed|"
    r"go through|work)|missing|offline|not exist|non-?existent|zero (results|"
    r"matches)|aborted|denied|not_found|tool_unavailable|service_failure|"
    r"contradictory_request|withdrawn|retired|removed|(taken|pulled) away|(does|do|"
    r"did) ?n[o']t (exist|have|find|know|match|work)|doesn't|don't (exist|have|"
    r"know)|no such|there is no|there are no|there's no|there was no|no (patient|"
    r"customer|product|place|parcel|tool|match|result|record|answer|entry|trace|"
    r"luck|way|reference|code)\w*|nobody|nothing (to|has been|was|found)|none (of|"
    r"was|found|has)|haven't|hasn't been|not been|contradict\w*|conflict\w*|"
    r"incompatible|permanently|decommissioned|out of (service|operation|order)|"
    r"for good|gone|fail\w*|broken|down|error|beyond (my|what)|sorry|unfortunately|"
    r"regret\w*|afraid)\b|\u274c|\u26d4|\U0001f6ab",
    re.IGNORECASE,
)
_SOFT = re.compile(r"\b(sorry|unfortunately|regret\w*|afraid|apolog\w*)\b", re.IGNORECASE)
_FINE = re.compile(r"\bno (problem|worries|trouble)\b", re.IGNORECASE)
_HARMLESS = re.compile(
    r"(is|was|are|were|does|did)(n't| not) (needed|necessary|required|need|matter)|not needed|"
    r"no need|no longer needed|sorry (for|about) the (wait|delay|"
    r"\w+ confusion|trouble|inconvenience|detour|slow)|can('t|not| not) (undo|wait|go wrong)|"
    r"after all|at (first|once)|not more than|spare|instead|worked around|detour|exceed",
    re.IGNORECASE,
)
_REASONS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "contradictory_request",
        re.compile(
            r"contradict|conflict|incompatib|inconsisten|exclude each other|mutually|"
            r"\bboth\b(?! (items|orders|places|patients) (were|are|exist|found))|at the same time|"
            r"at once\b|two (different )?(cities|places|products|patients|names|dates|values|"
            r"clinics|customers|quantities|kinds|versions|doses|methods)|"
            r"can('t|not| not) be \w+.* and ",
            re.I,
        ),
    ),
    (
        "tool_unavailable",
        re.compile(
            r"tool_unavailable|\b(no|without a|lack a|missing) (\w+ )?(tool|function|way to|"
            r"means)|(tool|function|lookup|\w+_\w+).{0,40}(missing|unavailable|"
            r"not available|no longer|removed|withdrawn|taken|pulled|retired|gone|"
            r"disappeared|discontinued)|toolbox|toolset|\b(was|been|were|is|are|got|"
            r"now) (removed|withdrawn|taken (away|from|off)|retired|pulled|discontinued)|"
            r"(removed|withdrawn|retired) today|successor|replacement|nothing replaced|"
            r"tools? (I|that I|available|on offer)|n[o']t have (a|any|the) (\w+ )?(tool|way to)|"
            r"none of the (\w+ )?(tools|functions)|removed\b|withdrawn|no longer (have|"
            r"offered|at my)",
            re.I,
        ),
    ),
    (
        "service_failure",
        re.compile(
            r"service_failure|decommission|\boutage|permanent|overload|out of (service|"
            r"operation|order)|for good|shut down|is down|are down|broken|backend|"
            r"not responding|service|error|unavailable|server|try again later|system (is|"
            r"was|has|said)|timed? ?out",
            re.I,
        ),
    ),
    (
        "not_found",
        re.compile(
            r"not_found|not (be )?f(ou|i)nd|n't (be )?f(ou|i)nd|no (such|record|match|"
            r"result|patient|customer|product|place|parcel|entry|trace|one|listing)|n(o|"
            r"')t (seem to )?(known|exist|match|appear|have an?|listed|registered|in |on )|"
            r"nobody|there is no (?!way)|there's no|unknown to|none of|no \S+ named|find|"
            r"not in (?!my)|(has|have) no\b|not in the|turn up",
            re.I,
        ),
    ),
)
_SENTENCE = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)[\"')]*\s+|\n+|\s\|\s")
_POLITE = re.compile(
    r"(anything|something|what) else|can i (help|assist)|help you (with|further)|any (other|more)",
    re.IGNORECASE,
)
_OFFER = re.compile(
    r"\b(maybe|perhaps|instead|another|would you like anything|would you like (me|"
    r"to|another)|would it help|do you want me|shall i|should i (try|look)|can i|"
    r"may i|want me to|i could|is there (someone|somebody|another)|how about)\b",
    re.IGNORECASE,
)
_REQUEST = re.compile(
    r"\b(?:please|kindly|pls) (provide|specify|clarify|confirm|tell me|give me|pick|"
    r"choose|send|state|name|check|share|indicate|say|reply)\b|without knowing\b|"
    r"\bcould you\b|\bcan you\b|\bwould you be so\b|\b(?:may|can|could) I (ask|know|"
    r"have|get)\b|needs?_(input|clarification)|clarification_|\b(would|"
    r"do) you mind (telling|giving|sharing)|\bawaiting your\b|\blet me know (the|"
    r"which|what|who|when|whether|how)\b|\btell( me)? (which|what|who|your)\b|"
    r"\bbefore I (do|can|start|continue|go|credit|book|reserve|proceed|send|refund|"
    r"add)\b.*\?|\bif you (give|tell|send) me the (right|correct|exact|full)\b|"
    r"\breply with\b|\bI(?:'ll| will| would)?(?: just| first| still| only)? (need|"
    r"require)(?: to know)?\b|\b((is|are) (still )?(needed|required|"
    r"missing)\b.{0,12}$|(decision|choice|detail|input|clarification)s? (is |"
    r"are )?(needed|required))|, please\.?$|\bneed(ed)?:|\bwhich (of|one)\b|"
    r"\bwaiting for your\b|\bwould you be (okay|ok|fine|happy) with\b|"
    r"\b(did ?n[o']t|have ?n[o']t|did not|have not) (say|said|tell|told|specify|"
    r"specified|mention(ed)?) (which|what|who|how)\b",
    re.IGNORECASE,
)
_MISSING_DETAIL = re.compile(
    r"\b(please|kindly|pls) (advise|inform|supply|enter|submit|mention|write|answer)\b|"
    r"\b(we|i) (require|need|want to know)\b|\byou mean which\b|\bdid you mean\b|\bclarify\b|"
    r"\"question\":|"
    r"\b(is|was|are|were) (not|n't) (given|provided|specified|stated|mentioned)\b|\bunspecified\b",
    re.IGNORECASE,
)
_ASKED = re.compile(r"\b([a-z]+) (?:reference|ref|code|number|handle|id)\b", re.IGNORECASE)
_COMMON = frozenset(
    ("the", "a", "an", "its", "their", "your", "of", "and", "or", "that", "this", "parcel", "is")
) | {"reference", "code"}
_EXCUSE = re.compile(
    r"(sorry|apolog\w*) (it took|for|about)|successfully|\bdone\b|completed", re.IGNORECASE
)
_DONE = re.compile(
    r"\b(successfully|done|completed|booked|reserved|refunded|credited|prescribed|issued|exchanged|"
    r"created|added|posted|made|cleared|sent)\b",
    re.IGNORECASE,
)
_IDENTIFIER = re.compile(r"(?:reference|code|ref)\W+(?:is\W+)?([A-Za-z]{2,4}[-_]?\d{4,})\b")


def read_prose(text: str, shown: str = "", request: str = "") -> tuple[Kind, str]:
    """Reads a message that ends a turn in prose instead of through the protocol.

    Structure comes first: an answer states a code that was shown. Beside a code a refusal counts
    only where it is about what was asked for, or where the code is not. Without a code the message
    is a question, where it asks for a detail and does not only offer something; else a refusal,
    where it says that the task cannot be done; else a claim without evidence ("none"). The right
    answer plays no part. `studies/strangers/finishes` measures the rule.

    Args:
        text: the message.
        shown: the results that the agent has seen.
        request: what the user said.

    Returns:
        The kind, and the refusal's reason ("" where none can be read).
    """
    folded = fold(spoken(text)).strip()
    sentences = [part for part in _SENTENCE.split(folded) if part and part.strip(" |-*#>")]
    wanted = {word.lower() for word in _ASKED.findall(fold(request))} - _COMMON
    told = [part for part in sentences if _refuses(part)]
    asks = _asks(sentences)
    if _states_a_value(folded, shown) and not (asks and _only_in_questions(sentences, shown)):
        if told and _is_about(folded, shown, told, wanted):
            return "refusal", _reason(folded, told, shown, request)
        return "answer", ""
    if asks:
        return "question", ""
    ending = (
        sentences[-1].endswith("?") and not _POLITE.search(sentences[-1]) if sentences else False
    )
    if ending and not told and not _DONE.search(folded):
        return "question", ""
    if told or any(_SOFT.search(part) and not _EXCUSE.search(part) for part in sentences):
        return "refusal", _reason(folded, told, shown, request)
    return "none", ""


def _states_a_value(text: str, shown: str) -> bool:
    known = set(CODE.findall(fold(shown)))
    if any(not stated.negated for stated in codes_in(text, known)):
        return True
    return _IDENTIFIER.search(bare(text)) is not None


def _only_in_questions(sentences: list[str], shown: str) -> bool:
    """Whether codes are mentioned in questions alone: "did you mean ...?" answers nothing."""
    return not any(_states_a_value(part, shown) for part in sentences if not part.endswith("?"))


def _refuses(sentence: str) -> bool:
    """Whether a sentence says that something failed; regrets alone do not."""
    plain = _FINE.sub("", _SOFT.sub("", sentence))
    return bool(_REFUSAL.search(plain)) and not _HARMLESS.search(sentence)


def _is_about(text: str, shown: str, told: list[str], wanted: set[str]) -> bool:
    """Whether a refusal beside a code is about what was asked for, or the code is not."""
    known = set(CODE.findall(fold(shown)))
    words = bare(text).lower()
    labels, before = set[str](), 0
    for stated in codes_in(text, known):
        labels |= _named(words[before : stated.start], wanted)
        before = stated.end
    refused = set[str]().union(*(_named(part.lower(), wanted) for part in told))
    if refused - labels or refused & labels:
        return True
    return not labels and bool(wanted) and not re.search(r"reference|code", words)


def _named(text: str, wanted: set[str]) -> set[str]:
    return {word for word in wanted if re.search(rf"\b{re.escape(word)}s?\b", text)}


def _asks(sentences: list[str]) -> bool:
    """Whether the message asks the user for something that it needs, question mark or not."""
    if any(_requests(s) or _MISSING_DETAIL.search(s) for s in sentences):
        return True
    ending = [s for s in sentences[-3:] if s.rstrip(" *_\"')}]").endswith("?")]
    return any(not _POLITE.search(s) and not _OFFER.search(s) for s in ending)


def _requests(sentence: str) -> bool:
    """Whether a sentence asks for a detail; "let me know if ..." only offers."""
    found = _REQUEST.search(sentence)
    if not found:
        return False
    return found[0].lower().startswith("if") or not re.search(r"\bif\b", sentence, re.IGNORECASE)


def _reason(text: str, told: list[str], shown: str, request: str) -> str:
    """The reason that the words give; what came to light decides where they give several."""
    said = " ".join(told) or text
    found = [name for name, mark in _REASONS if mark.search(said)]
    found = found or [name for name, mark in _REASONS if mark.search(text)]
    light = _evidence(shown, request)
    if not found and len(light) == 1 and not re.search(r"know|unknown", text):
        return light[0]
    return next((name for name in found if name in light), found[0] if found else "")


def _evidence(shown: str, request: str) -> list[str]:
    """The reasons that came to light in the results, and in what the user said."""
    marks = {
        "tool_unavailable": r"without a successor|unknown_tool|Removed today",
        "service_failure": r"decommissioned|\"unavailable\"|for good",
        "not_found": r"not_found|There is no ",
    }
    found = [name for name, mark in marks.items() if re.search(mark, shown)]
    torn = re.search(r"has to be .+ and it also has to be", request)
    return [*found, "contradictory_request"] if torn else found

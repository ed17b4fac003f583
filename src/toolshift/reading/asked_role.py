"""Detects answers that give the requested role to another: "Alan is the manager; Ada the deputy".

This is read only where the request names the thing ("Who is the manager of KA-72?"), where the
answer says of another that it is that thing, and of this one that it is something else.
"""

from __future__ import annotations

import re

from toolshift.reading.words import key

_I = re.IGNORECASE
_ASKS_FOR = re.compile(
    r"\b(?:who|what|which)(?:'s| is| was) (?:the name of )?(?:the|our|its|their|my) "
    r"((?:[\w-]+ ){0,3}[\w'-]+)",
    _I,
)
_MORE = re.compile(r"\b(?:and|or|also|both|each|all)\b|[,;]|\?.*\?", _I | re.DOTALL)
"""What makes a request ask for several things."""
_PLACE = re.compile(r" (?:of|for|in|at|on|to|from|with|by|that|which|who|and|or|right|now)\b.*", _I)
_CLAUSE = re.compile(r"[;\n]+|[.!?](?=\s|$)|,?\s(?:and|but|while|whereas)\s|,\s")
_IS_THE = re.compile(
    r"(?P<name>.{1,60}?) (?P<verb>is|was) (?:the|our|its|their|your|an?) "
    r"(?P<role>(?:[\w-]+ ){0,3}[\w-]+)",
    _I,
)
_THE_IS = re.compile(
    r"(?:the |our |its |their |your )?(?P<role>(?:[\w-]+ ){0,3}[\w-]+)(?: (?P<verb>is|was) |: ?)"
    r"(?P<name>.{1,60})",
    _I,
)
_NO_NAME = frozenset(
    ("she", "he", "it", "they", "this", "that", "who", "which", "there", "here", "i", "we", "you")
)
_MAX_LENGTH, _MAX_CLAUSES = 160, 60
"""Longer clauses, and more of them, are not read."""


def is_of_another_role(text: str, start: int, end: int, request: str) -> bool:
    """Whether the answer says that something else is what was asked for, and this is not."""
    wanted_role = asked_for(request)
    if not wanted_role:
        return False
    own = key(text[start:end])
    telling = {word for word in own.split() if word[0].isdigit()} or {*own.split()}
    mine, is_given = set[str](), False
    for clause in _CLAUSE.split(text)[:_MAX_CLAUSES]:
        name, role, is_now = _role(clause.strip(" .,!?\"'()-"))
        if f" {own} " in f" {name} ":
            mine.add(role.rpartition(" ")[2])
        elif name and not telling & {*name.split()}:
            is_given |= is_now and role in (wanted_role, f"current {wanted_role}")
    return is_given and bool(mine) and wanted_role not in mine


def asked_for(request: str) -> str:
    """The role that a request asks for: "manager" in "Who is the manager of KA-72?"."""
    match = _ASKS_FOR.search(request)
    if not match or _MORE.search(request, match.start()):
        return ""
    return key(_PLACE.sub("", match[1])).rpartition(" ")[2]


def _role(clause: str) -> tuple[str, str, bool]:
    """The name in a clause, its role, and whether it still has it; "" if there is none."""
    short = len(clause) <= _MAX_LENGTH
    match = (_IS_THE.fullmatch(clause) or _THE_IS.fullmatch(clause)) if short else None
    if not match:
        return "", "", False
    name = key(match["name"])
    role = key(_PLACE.sub("", match["role"]))
    return ("" if name in _NO_NAME else name), role, match["verb"] != "was"

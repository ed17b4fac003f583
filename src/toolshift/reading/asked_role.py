"""Whether an answer gives what was asked for to another: "Alan is the manager; Ada is the deputy".

This is read only where the request names the thing ("Who is the manager of KA-72?"), where the
answer says of another that it is that thing, and of this one that it is something else.
"""

from __future__ import annotations

import re

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
_LONGEST, _MOST = 160, 60
"""Longer clauses, and more of them, are not read."""


def is_of_another_role(text: str, start: int, end: int, request: str) -> bool:
    """Whether the answer says that something else is what was asked for, and this is not."""
    asked = asked_for(request)
    if not asked:
        return False
    own = _key(text[start:end])
    telling = {word for word in own.split() if word[0].isdigit()} or {*own.split()}
    mine, is_given = set[str](), False
    for clause in _CLAUSE.split(text)[:_MOST]:
        name, role, is_now = _role(clause.strip(" .,!?\"'()-"))
        if f" {own} " in f" {name} ":
            mine.add(role.rpartition(" ")[2])
        elif name and not telling & {*name.split()}:
            is_given |= is_now and role in (asked, f"current {asked}")
    return is_given and bool(mine) and asked not in mine


def asked_for(request: str) -> str:
    """The one thing that a request asks for, "manager" in "Who is the manager of KA-72?"."""
    found = _ASKS_FOR.search(request)
    if not found or _MORE.search(request, found.start()):
        return ""
    return _key(_PLACE.sub("", found[1])).rpartition(" ")[2]


def _role(clause: str) -> tuple[str, str, bool]:
    """The name in a clause, what it is said to be, and whether it still is; "" where nothing is."""
    short = len(clause) <= _LONGEST
    said = (_IS_THE.fullmatch(clause) or _THE_IS.fullmatch(clause)) if short else None
    if not said:
        return "", "", False
    name = _key(said["name"])
    role = _key(_PLACE.sub("", said["role"]))
    return ("" if name in _NO_NAME else name), role, said["verb"] != "was"


def _key(text: str) -> str:
    return " ".join(re.findall(r"[\w']+", text.casefold()))

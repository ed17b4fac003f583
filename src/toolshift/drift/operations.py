"""The same operation under another name: its requests have one method and one path.

`GET /v1/tickets/{id}` and `GET /v2/tickets/{ticket_id}` are one operation, however it is named, and
`{ticket_id}` is what `{id}` was. A version before all else in a path tells nothing, and nor does a
path that several operations of one side have. Names that are opposites are never one operation, and
what stands in braces is the same where one name has all the words of the other.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import dropwhile

import msgspec

from toolshift.drift.effects import contradict
from toolshift.interop.request import Request
from toolshift.shifts.release.mapping import Answers, decided
from toolshift.shifts.release.match import words

_VERSION = re.compile(
    r"api|v\d+(?:[._]\d+)*(?:(?:alpha|beta|rc)\d*)?|\d{4}-\d\d(?:-\d\d)?", re.IGNORECASE
)
_BRACES = re.compile(r"\{([^{}]*)\}")
_Requests = Mapping[str, Request] | None


def with_same_operations(given: Answers, before: _Requests, after: _Requests) -> Answers:
    """The answers with operations of other names whose requests say that they are the same.

    What is answered already stays, and so do operations whose names both sides have. Of a side that
    is no document no request is known.
    """
    given, olds, news = decided(given), before or {}, after or {}
    kept = olds.keys() & news.keys() - given.renamed.keys()
    renamed = dict(given.renamed)
    spoken_of = {*given.renamed, *given.renamed.values(), *given.removed, *given.added}
    spoken_of |= {*given.beside, *given.beside.values(), *given.split, *given.merged}
    spoken_of |= {name for one in given.split.values() for name in one.tools}
    spoken_of |= {name for one in given.merged.values() for name in one.tools.values()}
    gone, come = _by_address(olds), _by_address(news)
    for address in gone.keys() & come.keys():
        (old, *others), (new, *rivals) = gone[address], come[address]
        alone = not others and not rivals and not {old, new} & (kept | spoken_of)
        if alone and not contradict(old, new):
            renamed[old] = new
    params = {tool: dict(table) for tool, table in given.params.items()}
    for old, new in (*((name, name) for name in kept), *renamed.items()):
        if old in olds and new in news:
            known = params.setdefault(old, {})
            for name, now in _moved(olds[old], news[new]):
                if now not in known.values():
                    known.setdefault(name, now)
    found = {tool: table for tool, table in params.items() if table}
    return msgspec.structs.replace(given, renamed=renamed, params=found)


def _by_address(requests: Mapping[str, Request]) -> dict[str, list[str]]:
    """The tools by what they are requested with."""
    found = defaultdict[str, list[str]](list)
    for name, one in requests.items():
        found[_address(one)].append(name)
    return found


def _address(request: Request) -> str:
    """The method and the path, without versions and names of parameters."""
    parts = [_BRACES.sub("{}", part).casefold() for part in request.path.split("/") if part]
    told = [part.replace("-", "_") for part in dropwhile(_VERSION.fullmatch, parts)]
    return f"{request.method} /{'/'.join(told)}"


def _moved(was: Request, now: Request) -> Iterable[tuple[str, str]]:
    """The parameters of a path that go by another name at the same place of the same path."""
    if _address(was) != _address(now):
        return
    pairs = zip(_BRACES.findall(was.path), _BRACES.findall(now.path), strict=True)
    for old, new in pairs:
        known = was.places.get(old, "").startswith("path") and now.places.get(new, "")[:4] == "path"
        mine, theirs = set(words(old)), set(words(new))
        free = new not in was.places and old not in now.places
        if known and free and (mine <= theirs or theirs <= mine):
            yield old, new

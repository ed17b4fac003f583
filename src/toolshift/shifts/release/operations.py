"""The same operation under another name: its requests have one method and one path.

`GET /v1/tickets/{id}` and `GET /v2/tickets/{ticket_id}` are one operation, however it is named, and
`{ticket_id}` is what `{id}` was. A version in a path, and the names of what stands in braces, tell
nothing. A path that several operations of one side have tells nothing either.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

import msgspec

from toolshift.interop.request import Request
from toolshift.shifts.release.mapping import Answers, decided

_VERSION = re.compile(
    r"api|latest|v\d+(?:[._]\d+)*(?:(?:alpha|beta|rc)\d*)?|\d{4}-\d\d(?:-\d\d)?", re.IGNORECASE
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
    gone = _by_address(olds, kept | spoken_of)
    come = _by_address(news, kept | spoken_of)
    for address in gone.keys() & come.keys():
        if len(gone[address]) == len(come[address]) == 1:
            renamed[gone[address][0]] = come[address][0]
    params = {tool: dict(table) for tool, table in given.params.items()}
    for old, new in (*((name, name) for name in kept), *renamed.items()):
        if old in olds and new in news:
            for name, now in _moved(olds[old], news[new]):
                params.setdefault(old, {}).setdefault(name, now)
    found = {tool: table for tool, table in params.items() if table}
    return msgspec.structs.replace(given, renamed=renamed, params=found)


def _by_address(requests: Mapping[str, Request], without: Iterable[str]) -> dict[str, list[str]]:
    """The tools by what they are requested with."""
    left_out, found = {*without}, defaultdict[str, list[str]](list)
    for name, one in requests.items():
        if name not in left_out:
            found[_address(one)].append(name)
    return found


def _address(request: Request) -> str:
    """The method and the path, without versions and names of parameters."""
    parts = [_BRACES.sub("{}", part).casefold() for part in request.path.split("/")]
    told = [part.replace("-", "_") for part in parts if part and not _VERSION.fullmatch(part)]
    return f"{request.method} /{'/'.join(told)}"


def _moved(was: Request, now: Request) -> Iterable[tuple[str, str]]:
    """The parameters of a path that go by another name at the same place of the same path."""
    if _address(was) != _address(now):
        return
    pairs = zip(_BRACES.findall(was.path), _BRACES.findall(now.path), strict=True)
    for old, new in pairs:
        known = was.places.get(old, "").startswith("path") and now.places.get(new, "")[:4] == "path"
        if old != new and known and new not in was.places and old not in now.places:
            yield old, new

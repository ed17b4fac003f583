"""What changed in how an operation is requested: another server, path, method, body or login.

The media type of its answers is compared here too.

An agent is shown the tool alone, so its calls are the same. The program that sends the requests is
what breaks.

severity    what it says of requests that were right before
breaking    some are refused now, or go to another server than the document names
maybe       they are taken, and may go to another server or need no login any more
harmless    they are taken; there is another way beside theirs
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from toolshift.drift.changes import ToolChange
from toolshift.drift.schemas import Severity
from toolshift.interop.request import COOKIE, OPTIONAL, Request

_NO_LOGIN = "none"


def request_changes(old: str, new: str, was: Request, now: Request) -> Iterator[ToolChange]:
    """The changes of the requests of a tool, by its name as it was and as it is."""
    for kind, severity, where, before, after in _differences(was, now):
        yield ToolChange(kind, old, new, severity, where, before, after)


_Difference = tuple[str, Severity, str, Any, Any]


def _differences(was: Request, now: Request) -> Iterator[_Difference]:
    """Each difference: kind, severity, parameter, and both sides as they are shown."""
    if was.method != now.method:
        yield "method_changed", "breaking", "", was.method.upper(), now.method.upper()
    yield from _of_addresses(was, now)
    has_members = "body" in {*was.places.values(), *now.places.values()}
    if was.body != now.body and not (has_members and not (was.body and now.body)):
        # Of a body that comes or goes with its members these say so.
        yield "body_changed", _of_bodies(was.body, now.body), "", _shown(was.body), _shown(now.body)
    for name, place in was.places.items():
        if now.places.get(name, place) != place and not name.startswith(f"{COOKIE} "):
            yield "place_changed", "breaking", name, place, now.places[name]
    yield from _of_cookies(was.places, now.places)
    ways, others = (one.login or (_NO_LOGIN,) for one in (was, now))
    if ways != others:
        hard = "maybe" if _NO_LOGIN in others else _still_taken(ways, others)
        yield "auth_changed", hard, "", " or ".join(ways), " or ".join(others)
    yield from _of_login_addresses(was, now)
    yield from _of_answers(was, now)


def _of_cookies(was: Mapping[str, str], now: Mapping[str, str]) -> Iterator[_Difference]:
    """The cookies that a request has to have, or may have."""
    for name in dict.fromkeys((*was, *now)):
        before, after = was.get(name), now.get(name)
        if name.startswith(f"{COOKIE} ") and before != after:
            hard: Severity = "breaking" if after == COOKIE else "harmless"
            yield "place_changed", hard, name, before, after


def _of_login_addresses(was: Request, now: Request) -> Iterator[_Difference]:
    """Where tokens come from, if both sides say it; a lock of before does not."""
    first, second = was.login_addresses, now.login_addresses
    if first and second and first != second:
        hard = _still_taken(first, second)
        yield "auth_changed", hard, "", " or ".join(first), " or ".join(second)


def _of_answers(was: Request, now: Request) -> Iterator[_Difference]:
    """The media types of answers, if both sides say them; of JSON its schema says the rest."""
    if not was.answers or not now.answers:
        return
    if was.answers.keys() != now.answers.keys():
        still = was.answers.keys() & now.answers.keys()
        hard: Severity = "maybe" if still else "breaking"
        hard = "harmless" if still == was.answers.keys() else hard
        yield "answers_changed", hard, "", [*was.answers], [*now.answers]
    for kind, schema in was.answers.items():
        if now.answers.get(kind, schema) != schema:
            yield "answers_changed", "maybe", "", kind, f"{kind}, with another schema"


def _of_addresses(was: Request, now: Request) -> Iterator[_Difference]:
    """The differences of servers and paths; of the same addresses in another order, that alone."""
    origins = _origins(was), _origins(now)
    paths, shown = _paths(was, now)
    whole, whole_shown = _paths(was, now, with_server=True)
    if was.servers and now.servers and {*whole[0]} == {*whole[1]}:
        if whole[0][0] != whole[1][0]:
            yield "server_changed", "maybe", "", _shown(was.servers), _shown(now.servers)
        return
    if origins[0] != origins[1]:
        hard: Severity = _of_servers(*origins) if all(origins) else "maybe"
        yield "server_changed", hard, "", _shown(origins[0]), _shown(origins[1])
    if {*origins[0]} != {*origins[1]}:
        at_server, told = paths, shown
    else:  # the same servers, each with its own paths
        at_server, told = whole, shown if paths[0] != paths[1] else whole_shown
    if at_server[0] != at_server[1]:
        yield "path_changed", _still_taken(*at_server), "", _shown(told[0]), _shown(told[1])


def _still_taken(was: Sequence[str], now: Sequence[str]) -> Severity:
    """How hard it is that other ways are taken."""
    return "harmless" if {*was} <= {*now} else "breaking"


def _of_servers(was: Sequence[str], now: Sequence[str]) -> Severity:
    """The same of servers, of which the first is the usual one."""
    return _still_taken(was, now) if was[0] == now[0] or was[0] not in now else "maybe"


def _of_bodies(was: Sequence[str], now: Sequence[str]) -> Severity:
    """The same of bodies: where there was none, one that may be left out is harmless."""
    if not was:
        return "harmless" if OPTIONAL in now else "breaking"
    return _still_taken(was, now) if now else "maybe"


def _shown(values: Sequence[str]) -> list[str] | None:
    return [*values] or None


def _origins(request: Request) -> tuple[str, ...]:
    """The servers without their paths."""
    found = (_split(one)[0] for one in request.servers)
    return tuple(dict.fromkeys(one for one in found if one))


def _split(address: str) -> tuple[str, str]:
    """The server of an address, in one spelling, and the path; no server in a relative one."""
    found = _SERVER.match(address)
    if found is None:
        return "", address
    scheme, host = (found[1] or "").lower(), found[2].lower()
    host = host.removesuffix(_USUAL_PORTS.get(scheme, "no port"))
    return f"{scheme}//{host}", address[found.end() :]


def _paths(was: Request, now: Request, with_server: bool = False) -> tuple[_Sides, _Sides]:
    """The whole paths of both, to compare and to show; or the addresses that they have with both.

    Another name of what is filled in is no other path. What stands before the path at a server is
    left out where one side names no server.
    """
    first = 0 if with_server else 1
    bases = [["".join(_split(one)[first:]) for one in each.servers] for each in (was, now)]
    bases = bases if all(bases) else [[""], [""]]
    names = [set(_FILLED.findall(one.path)) for one in (was, now)]

    def unnamed(path: str) -> str:
        return _FILLED.sub(lambda one: one[0] if one[1] in names[0] & names[1] else "{}", path)

    before, after = (
        tuple(dict.fromkeys(f"{base}{request.path}" for base in own))
        for request, own in zip((was, now), bases, strict=True)
    )
    return (tuple(map(unnamed, before)), tuple(map(unnamed, after))), (before, after)


_SERVER = re.compile(r"([a-zA-Z][\w+.-]*:)?//([^/]*)")
_USUAL_PORTS = {"http:": ":80", "https:": ":443"}
_FILLED = re.compile(r"\{([^{}]*)\}")
_Sides = tuple[tuple[str, ...], tuple[str, ...]]

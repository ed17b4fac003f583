"""How an operation of an OpenAPI document is requested: what an agent is not shown of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from toolshift.interop.parameter_styles import Style, style_of
from toolshift.interop.server import address_name

OPTIONAL, COOKIE = "optional", "cookie"


class Request(msgspec.Struct, frozen=True, omit_defaults=True):
    """How an operation is requested; it holds no secret.

    Attributes:
        method: in small letters.
        path: as the document has it.
        servers: their addresses, the usual one first; none where the document names none.
        body: the media types that the body may have, and `OPTIONAL` where it may be left out.
        places: by parameter where it is sent (path, query, header or body), and how where that is
            not the usual way; by `cookie NAME` a cookie, which is no parameter of the tool.
        login: the ways to log in, by kind and name, of which one is enough; none for no login.
        login_addresses: where tokens come from, as the document says.
        answers: the media types of good answers; beside one that is not read as JSON a hash of its
            schema. Locks of before have none.
    """

    method: str
    path: str
    servers: tuple[str, ...] = ()
    body: tuple[str, ...] = ()
    places: dict[str, str] = {}
    login: tuple[str, ...] = ()
    login_addresses: tuple[str, ...] = ()
    answers: dict[str, str] = {}


def servers_of(*holders: Mapping[str, Any]) -> tuple[str, ...]:
    """The servers of the first part of a document that names any, without credentials."""
    listed = [one for one in (holder.get("servers") for holder in holders) if one]
    first = listed[0] if listed and isinstance(listed[0], list) else []
    found = [_address(server) for server in first if isinstance(server, Mapping)]
    return tuple(dict.fromkeys(one for one in found if one))


def _address(server: Mapping[str, Any]) -> str:
    """The address of a server, with the defaults of its variables."""
    url, variables = str(server.get("url") or ""), server.get("variables")
    for name, one in variables.items() if isinstance(variables, Mapping) else ():
        if isinstance(one, Mapping) and "default" in one:
            url = url.replace(f"{{{name}}}", str(one["default"]))
    return address_name(url).rstrip("/")


def media_of(body: Mapping[str, Any]) -> tuple[str, ...]:
    """The media types of a body in alphabetical order, and whether it may be left out."""
    content = body.get("content")
    kinds = content if isinstance(content, Mapping) else ()
    found = sorted({str(kind).partition(";")[0].strip().lower() for kind in kinds})
    return (*found, OPTIONAL) if found and body.get("required") is not True else tuple(found)


def place_in_words(place: str, style: Style | None, schema: Mapping[str, Any]) -> str:
    """Where a parameter is sent, and how where a list or an object is not written as usual."""
    if style is None or schema.get("type") not in ("array", "object"):
        return place
    if style.is_json:
        return f"{place}, as JSON"
    if style == style_of({}, place):
        return place
    return f"{place}, style {style.name}{', exploded' if style.explode else ''}"

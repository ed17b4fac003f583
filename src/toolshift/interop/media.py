"""The media types of bodies and answers in OpenAPI documents: which one is read, and how.

read as     media types, the first of these that a document names
JSON        those with `json` in their name
a form      `application/x-www-form-urlencoded`, `multipart/form-data`
JSON        `*/*` and `application/*`, which leave it open: servers that say so mostly send JSON
a text      any other, as `text/plain`; members of a schema are still arguments, as of XML
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolshift.core.values import as_mapping

BODY, FORM, PARTS, TEXT = "body", "form", "parts", "text"
_FORMS = {"application/x-www-form-urlencoded": FORM, "multipart/form-data": PARTS}
_OPEN = ("*/*", "application/*")


@dataclass(frozen=True)
class Media:
    """One way to write a body or an answer.

    Attributes:
        kind: the media type, without what follows a semicolon.
        place: how it is written: as JSON (`BODY`), as a form (`FORM`, `PARTS`), or as `TEXT`.
        schema: what is said of it; a text where nothing is said of what is no JSON.
        encoding: how the fields of a form are written.
    """

    kind: str
    place: str
    schema: Any
    encoding: Mapping[str, Any]


def media_in(holder: Mapping[str, Any]) -> list[Media]:
    """Every media type of a body or an answer."""
    content = as_mapping(holder.get("content"))
    return [_media(str(name), one) for name, one in content.items() if isinstance(one, Mapping)]


def _media(name: str, said: Mapping[str, Any]) -> Media:
    kind = _kind(name)
    place = BODY if is_json(kind) or kind in _OPEN else _FORMS.get(kind, TEXT)
    schema = said.get("schema") or ({"type": "string"} if place == TEXT else {})
    return Media(kind, place, schema, as_mapping(said.get("encoding")))


def _kind(name: str) -> str:
    return name.partition(";")[0].strip().lower()


def is_form(kind: str) -> bool:
    """Whether a media type is one of forms."""
    return _kind(kind) in _FORMS


def is_json(kind: str) -> bool:
    """Whether a media type is one of JSON."""
    return "json" in kind.lower()


def read_media(holder: Mapping[str, Any]) -> Media | None:
    """The media type that is read of a body or an answer; see the module. None without any."""
    return min(media_in(holder), key=_rank, default=None)


def _rank(media: Media) -> int:
    return 0 if is_json(media.kind) else {FORM: 1, PARTS: 1, BODY: 2, TEXT: 3}[media.place]

"""How an OpenAPI document has a parameter written in an address, a header or a form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from toolshift.core.values import as_json

_SIGNS = {"spaceDelimited": " ", "pipeDelimited": "|", "tabDelimited": "\t"}
_OF_2_0 = {
    "csv": ("", False),
    "ssv": ("spaceDelimited", False),
    "tsv": ("tabDelimited", False),
    "pipes": ("pipeDelimited", False),
    "multi": ("form", True),
}


@dataclass(frozen=True)
class Style:
    """How a value is written.

    Attributes:
        name: `form`, `simple`, `label`, `matrix`, `deepObject` or one that names what stands
            between the items.
        explode: whether each item has a name of its own.
        is_json: whether it is written as JSON, for it has a `content`.
    """

    name: str = "form"
    explode: bool = True
    is_json: bool = False


def style_of(param: Mapping[str, Any], place: str) -> Style:
    """The style of a parameter, or of a field of a form (`encoding`)."""
    usual = "simple" if place in ("path", "header") else "form"
    name = param.get("style")
    name = name if isinstance(name, str) else usual
    explode = param.get("explode")
    return Style(
        name,
        explode if isinstance(explode, bool) else name in ("form", "deepObject"),
        isinstance(param.get("content"), Mapping),
    )


def style_of_2_0(param: Mapping[str, Any]) -> dict[str, Any]:
    """The style of a parameter of 2.0, in the words of 3.0."""
    if param.get("type") != "array":
        return {}
    name, explode = _OF_2_0.get(str(param.get("collectionFormat", "csv")), ("", False))
    return {**({"style": name} if name else {}), "explode": explode}


def pairs(style: Style, name: str, value: Any) -> list[tuple[str, str]]:
    """A value as the names and values of a query, or of a form."""
    if style.is_json:
        return [(name, as_json(value))]
    if isinstance(value, Mapping):
        if style.name == "deepObject":
            return list(_deep(name, value))
        if style.explode:
            return [(str(key), text(one)) for key, one in value.items()]
        return [(name, ",".join(part for item in value.items() for part in map(text, item)))]
    if isinstance(value, list | tuple):
        if style.explode:
            return [(name, text(one)) for one in value]
        return [(name, _SIGNS.get(style.name, ",").join(map(text, value)))]
    return [(name, text(value))]


def _deep(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield from _deep(f"{name}[{key}]", one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _deep(name, one)
    else:
        yield name, text(value)


def in_one(style: Style, name: str, value: Any, encode: bool = True) -> str:
    """A value as a part of a path (encoded), or as a header."""

    def said(one: Any) -> str:
        return quote(text(one), safe="") if encode else text(one)

    if style.is_json:
        return said(as_json(value))
    sign = {"label": ".", "matrix": ";"}.get(style.name, ",")
    between = sign if style.explode else ","
    if isinstance(value, Mapping):
        joint = "=" if style.explode else ","
        items = [f"{said(key)}{joint}{said(one)}" for key, one in value.items()]
        named = not style.explode
    else:
        items = [said(one) for one in (value if isinstance(value, list | tuple) else [value])]
        named = True
    if style.name == "matrix" and named:
        if style.explode:
            return "".join(f";{name}={one}" for one in items)
        return f";{name}={','.join(items)}"
    lead = sign if style.name in ("label", "matrix") else ""
    return lead + between.join(items)


def text(value: Any) -> str:
    """A single value as it is written; an object is written as JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return as_json(value)

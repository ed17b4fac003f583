"""Calls with one tag a parameter, as XML has them; a value stands in them as it is, unescaped."""

from __future__ import annotations

import html
import re
from typing import Any

from toolshift.core.calls import read_call
from toolshift.lm.call_texts.format import DECODER, Body, Broken, Found, Text
from toolshift.lm.call_texts.tools import Tools, typed

_DEEPEST = 32
_TAG = re.compile(r"<([A-Za-z_][\w.\-]*)>")


class Tags:
    """How a format writes the parameters of a call.

    Args:
        opening: of one parameter; its group `key` is the name, and `kind`, where there is one,
            says whether the value is text (`true`, `string`) or JSON.
        closing: of one parameter.
        last: what ends the call; it is not read.
        in_lines: the value stands on lines of its own.
    """

    def __init__(self, opening: str, closing: str, last: str, in_lines: bool = False) -> None:
        self.opening = re.compile(opening)
        self.either = re.compile(f"(?:{opening})|(?P<closes>{closing})")
        self.closing = re.compile(closing)
        self.last = re.compile(last)
        before = r"\n[ \t]*" if in_lines else ""
        self.left_open = re.compile(_without_groups(f"{before}(?:{opening})|(?:{last})"))
        self.in_lines = in_lines


def _without_groups(pattern: str) -> str:
    return re.sub(r"\(\?P<\w+>", "(?:", pattern)


def tagged(tags: Tags) -> Body:
    """A body of parameters in tags; the mark before it names the tool (group `name`)."""

    def read(text: Text, mark: re.Match[str], tools: Tools) -> Found | None:
        name = tools.own(html.unescape(mark["name"].strip()), "functions.")
        if text.find(tags.last, mark.end()) is None:
            raise Broken(name)
        position = text.skip(mark.end())
        if text.at(position, "{"):  # arguments in JSON, in a tag that names the tool
            return _in_json(text, position, name, tags)
        return _read_parameters(text, position, name, tags, tools)

    return read


def _in_json(text: Text, position: int, name: str, tags: Tags) -> Found:
    try:
        value, end = DECODER.raw_decode(text.text, position)
    except (ValueError, RecursionError):
        raise Broken(name) from None
    if not tags.last.match(text.text, text.skip(end)):
        raise Broken(name)
    return Found((read_call(name, value, text=text.text[position:end]),), end)


def _read_parameters(text: Text, position: int, name: str, tags: Tags, tools: Tools) -> Found:
    arguments: dict[str, Any] = {}
    sloppy = False
    while not tags.last.match(text.text, position):
        opening = tags.opening.match(text.text, position)
        if opening is None:
            raise Broken(name)
        start = opening.end()
        bounds = None if sloppy else _closed(text, start, tags)
        if bounds is None:
            sloppy = True
            bounds = _left_open(text, start, tags)
        if bounds is None:
            raise Broken(name)
        key = html.unescape(opening["key"].strip())
        said = text.text[start : bounds[0]]
        said = said.removeprefix("\n").removesuffix("\n") if tags.in_lines else said
        kind = opening.groupdict().get("kind")
        if kind:
            schema = {"type": "string"} if kind in ("true", "string") else {}
            arguments[key] = typed(said, schema)
        else:
            arguments[key] = tools.value(name, key, said)
        position = text.skip(bounds[1])
    return Found((read_call(name, arguments),), position)


def _closed(text: Text, start: int, tags: Tags) -> tuple[int, int] | None:
    """Where the value of a parameter ends, and the text after its closing tag begins.

    A closing tag in the value itself is no end of it: the end stands before another parameter or
    the end of the call, and pairs of tags in the value are passed over.
    """
    depth = 1
    for tag in tags.either.finditer(text.text, start):
        depth += 1 if tag["closes"] is None else -1
        if depth > _DEEPEST:
            return None
        if tag["closes"] is None or depth > 0:
            continue
        following = text.skip(tag.end())
        if any(one.match(text.text, following) for one in (tags.opening, tags.last)):
            return tag.start(), tag.end()
    return None


def _left_open(text: Text, start: int, tags: Tags) -> tuple[int, int] | None:
    """The same for a parameter whose closing tag is missing: it ends where the next begins."""
    following = text.find(tags.left_open, start)
    if following is None:
        return None
    closing = text.find(tags.closing, start)
    if closing and closing.start() < following.start():
        return closing.start(), closing.end()
    return following.start(), following.start()


def own_tags(last: str) -> Body:
    """A body in which each parameter is a tag of its own name: `<base>USD</base>`."""
    end = re.compile(last)

    def read(text: Text, mark: re.Match[str], tools: Tools) -> Found | None:
        name = mark["name"].strip()
        return _own(text, mark.end(), name, end, tools)

    return read


def tool_tags(text: Text, mark: re.Match[str], tools: Tools) -> Found | None:
    """A tool on offer as a tag, its parameters as tags in it."""
    name = mark["name"]
    if name not in tools.names:
        return None
    end = re.compile(rf"</{re.escape(name)}>")
    position = text.skip(mark.end())
    known = tools.parameters(name)
    first = _TAG.match(text.text, position)
    if first is None and not end.match(text.text, position):
        return None
    if first and known and first[1] not in known:
        return None
    found = _own(text, mark.end(), name, end, tools)
    closing = end.match(text.text, found.end)
    return Found(found.calls, closing.end() if closing else found.end)


def _own(text: Text, position: int, name: str, end: re.Pattern[str], tools: Tools) -> Found:
    arguments: dict[str, Any] = {}
    position = text.skip(position)
    while not end.match(text.text, position):
        opening = _TAG.match(text.text, position)
        if opening is None:
            raise Broken(name)
        key = opening[1]
        closing = f"</{key}>"
        at = text.text.find(closing, opening.end())
        while at >= 0:
            following = text.skip(at + len(closing))
            if end.match(text.text, following) or _TAG.match(text.text, following):
                break
            at = text.text.find(closing, at + 1)
        if at < 0:
            raise Broken(name)
        said = text.text[opening.end() : at].removeprefix("\n").removesuffix("\n")
        arguments[key] = tools.value(name, key, said)
        position = text.skip(at + len(closing))
    return Found((read_call(name, arguments),), position)


# -- nested values ---------------------------------------------------------------------------------


def nested(prefix: str, last: str) -> Body:
    """A body of nested elements, each tag behind a prefix; items of a list are `<item>`."""
    tag = re.compile(rf"{prefix}<(?P<closes>/?)(?P<key>[^<>/\s]+)>")
    end = re.compile(last)

    def read(text: Text, mark: re.Match[str], tools: Tools) -> Found | None:
        name = mark["name"].strip()
        if text.find(end, mark.end()) is None:
            raise Broken(name)
        arguments: dict[str, Any] = {}
        position = text.skip(mark.end())
        while not end.match(text.text, position):
            opening = tag.match(text.text, position)
            if opening is None or opening["closes"]:
                raise Broken(name)
            schema = tools.schema(name, opening["key"])
            arguments[opening["key"]], position = _element(text, opening, schema, tag, name, 0)
            position = text.skip(position)
        return Found((read_call(name, arguments),), position)

    return read


def _element(
    text: Text, opening: re.Match[str], schema: Any, tag: re.Pattern[str], name: str, depth: int
) -> tuple[Any, int]:
    """The value of an element, and the position after it."""
    children: list[tuple[str, Any]] = []
    position = opening.end()
    while True:
        found = text.find(tag, position)
        if found is None or depth > _DEEPEST:
            raise Broken(name)
        if found["closes"]:
            if found["key"] != opening["key"]:
                raise Broken(name)
            if children:
                return _gathered(children), found.end()
            return typed(text.text[opening.end() : found.start()], schema), found.end()
        inner = schema if isinstance(schema, dict) else {}
        if found["key"] == "item":
            below = inner.get("items")
        else:
            properties = inner.get("properties")
            below = properties.get(found["key"]) if isinstance(properties, dict) else None
        value, position = _element(text, found, below or {}, tag, name, depth + 1)
        children.append((found["key"], value))


def _gathered(children: list[tuple[str, Any]]) -> Any:
    """A list where every child is an item, else an object."""
    if all(key == "item" for key, _ in children):
        return [value for _, value in children]
    return dict(children)

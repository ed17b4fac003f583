"""Tools and calls as plain text, for models that have no tool calls of their own.

A call is one line, `name(city="Lyon", n=3)`: every value is JSON, so that any string survives, and
nothing is quoted that need not be (18 tokens where a JSON object takes 31). A tool is one line
too. Its layout is a setting, because it decides whether a small model can read a tool list at all:
with the description first, finding the right line and copying what follows is one step.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from toolshift.core.calls import (
    Unreadable,
    read_arguments,
)
from toolshift.core.errors import UsageError
from toolshift.core.message import Turn
from toolshift.core.values import as_list, as_mapping

Layout = Literal["description-first", "name-first", "json", "spaced", "spaced-texts"]
"""How a tool stands in the list: `description: name(args)`, `name(args): description`, or JSON.
`spaced` is the first of these, and calls begin with a space. Many tokenizers join a space to the
word after it: where the list has one before a name, a call needs one too, or its name is cut into
other tokens and has to be spelt instead of copied. With `spaced-texts` the same holds for texts
that begin with a word, as `city=" Lyon"`, for words stand after a space in what a user says. What
begins otherwise, as most identifiers do, is copied out of JSON, where no space stands before it.
"""

LAYOUTS: tuple[Layout, ...] = get_args(Layout)

_INTRODUCTION = (
    'Reply with one call, as name(text="a", n=3). A ? marks what may be left out. Tools:'
)
_WORDED = re.compile(r" |[^\W\d_][^\W\d_A-Z]")
"""Texts with a space before them in the layout `spaced-texts`; for those that have one already,
it keeps theirs from being taken for the layout's."""
BARE = re.compile(r"\w[\w.\-/:$]*")
_WORD = re.compile(r"[^\W_]+")
_EMPTY_WORDS = frozenset(
    [
        "a",
        "an",
        "the",
        "of",
        "to",
        "for",
        "in",
        "on",
        "at",
        "by",
        "from",
        "with",
        "and",
        "or",
        "is",
        "be",
        "its",
        "it",
        "this",
        "that",
        "as",
        "which",
        "one",
        "value",
        "string",
        "text",
        "name",
        "id",
        "identifier",
        "code",
        "parameter",
        "argument",
    ]
)


# --- writing -------------------------------------------------------------------------------------


def render_system(
    system_text: str, tools: Sequence[Mapping[str, Any]], layout: Layout = "description-first"
) -> str:
    """Writes the system message: the given text, how to call, and the tools, one a line."""
    if layout not in LAYOUTS:
        raise UsageError(f"unknown layout {layout!r}; choose one of {', '.join(LAYOUTS)}")
    if not tools:
        return system_text
    lines = [_tool_line(tool.get("function", tool), layout) for tool in tools]
    return "\n".join([*([system_text] if system_text else []), _INTRODUCTION, *lines])


def render_call(
    name: str, arguments: Mapping[str, Any] | str, layout: Layout = "description-first"
) -> str:
    """Writes one call; arguments that are a string (they were malformed) stand as they came."""
    opening = " " * layout.startswith("spaced") + _label(name)
    if isinstance(arguments, str):
        return f"{opening}({arguments})"
    inside = ", ".join(
        f"{_label(key)}={_json(_spaced(value) if layout == 'spaced-texts' else value)}"
        for key, value in arguments.items()
    )
    return f"{opening}({inside})"


def _spaced(value: Any) -> Any:
    """A text that begins with a word, with a space before it; anything else as it is."""
    return f" {value}" if isinstance(value, str) and _WORDED.match(value) else value


def to_plain_messages(
    turn: Turn, layout: Layout = "description-first", tool_role: Literal["tool", "user"] = "user"
) -> list[dict[str, Any]]:
    """Rewrites a conversation with tool calls as one that any chat template can render."""
    messages = list(turn.messages)
    first_is_system = bool(messages) and messages[0].get("role") == "system"
    opening = _text_of(messages.pop(0)) if first_is_system else ""
    system = render_system(opening, turn.tools, layout)
    plain: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
    for message in messages:
        role, content = str(message.get("role", "user")), _text_of(message, layout)
        if role == "tool" and tool_role == "user":
            role, content = "user", f"Result: {content}"
        if role == plain[-1]["role"] == "user" if plain else False:
            plain[-1]["content"] += f"\n{content}"
        else:
            weight = {"weight": message["weight"]} if "weight" in message else {}
            plain.append({"role": role, "content": content, **weight})
    return plain


def _text_of(message: Mapping[str, Any], layout: Layout = "description-first") -> str:
    """The content of a message, with its calls one a line below."""
    content = message.get("content") or ""
    if not isinstance(content, str):  # content parts
        content = "".join(str(part.get("text", "")) for part in content)
    parts = [content] if content else []
    for call in message.get("tool_calls") or ():
        function = call.get("function", call)
        arguments = _arguments(function.get("arguments"))
        parts.append(render_call(function["name"], arguments, layout))
    return "\n".join(parts)


def _arguments(raw: Any) -> dict[str, Any] | str:
    """The arguments of a call of the conversation; their text where they are malformed."""
    if not isinstance(raw, str):
        return dict(raw or {})
    try:
        return read_arguments(raw)
    except Unreadable:
        return raw


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _label(name: str) -> str:
    return name if BARE.fullmatch(name) else _json(name)


def _tool_line(function: Mapping[str, Any], layout: Layout) -> str:
    if layout == "json":
        return _json({key: function[key] for key in _SHOWN if key in function})
    description = _one_line(function.get("description"))
    properties, required = _declared(function.get("parameters"))
    known = description + " " + str(function["name"])
    params = ", ".join(
        _param(name, param, name in required, known, layout) for name, param in properties.items()
    )
    signature = f"{_label(function['name'])}({params})"
    if not description:
        return signature
    parts = (signature, description) if layout == "name-first" else (description, signature)
    return f"{parts[0].rstrip('.')}: {parts[1]}"


_SHOWN = ("name", "description", "parameters")


def _declared(schema: Any) -> tuple[Mapping[str, Any], list[Any]]:
    """The properties of a schema and which are required; servers write other things there too."""
    schema = as_mapping(schema)
    properties, required = schema.get("properties"), schema.get("required")
    return (
        as_mapping(properties),
        as_list(required),
    )


def _param(name: str, schema: Any, required: bool, known: str, layout: Layout) -> str:
    schema = schema if isinstance(schema, Mapping) else {"type": "any"}  # `true` takes anything
    kind = _kind(schema)
    shown = _label(name) + (f"={kind}" if kind else "") + ("" if required else "?")
    description = _one_line(schema.get("description")).rstrip(".")
    # A description is left out only where it adds no word to the names beside it: for a parameter
    # with an opaque name it is the last thing that says what the parameter takes.
    if not _words(description) - _words(name) - _words(known):
        return shown
    parts = (shown, description) if layout == "name-first" else (description, shown)
    return ": ".join(parts)


def _kind(schema: Any) -> str:
    """What a parameter takes, where it is not just any string."""
    if not isinstance(schema, Mapping):
        return "any"
    if "const" in schema:
        return _json(schema["const"])
    if isinstance(schema.get("enum"), list):
        return "|".join(map(_json, schema["enum"]))
    options = schema.get("anyOf") or schema.get("oneOf")
    if options and isinstance(options, list):
        return "|".join(_kind(option) or "string" for option in options)
    kind = schema.get("type", "any")
    if kind == "array":
        return f"[{_kind(schema.get('items') or {}) or 'string'}]"
    properties, required = _declared(schema)
    if kind == "object" and properties:
        inside = (
            _param(name, part, name in required, "", "name-first")
            for name, part in properties.items()
        )
        return "{" + ", ".join(inside) + "}"
    if isinstance(kind, list):
        return "|".join(map(str, kind))
    return "" if kind == "string" else str(kind)


def _one_line(text: Any) -> str:
    return " ".join(text.split()) if isinstance(text, str) else ""


def _words(text: str) -> set[str]:
    return {word.removesuffix("s") for word in _WORD.findall(text.lower())} - _EMPTY_WORDS

"""Makes foreign text safe to store in a file and to show on a terminal or a page."""

from __future__ import annotations

import re

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Characters that move the cursor, change the direction or are invisible; joiners stay."""


QUOTES = (
    "`'\"\u00ab\u00bb\u2018-\u201f\u2039\u203a\u300c-\u300f\u301d-\u301f\ufe41-\ufe44\uff02\uff07"
    "\uff62\uff63"
)
"""What quotes a name, in any language: Unicode's `Quotation_Mark` and the backtick, for a class
of characters in a pattern."""


def is_count(text: str) -> bool:
    """Whether a text is a plain number of at most nine digits."""
    return text.isascii() and text.isdigit() and len(text) < 10


def storable(text: str) -> str:
    """The text, with `?` for halves of characters (lone surrogates): no file can hold those."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def visible(text: str) -> str:
    """The text with every hidden character named, as in `[ESC]` or `[U+202E]`.

    Lines and tabs stay. This is the only place where text of a model, a tool or a file is made
    harmless to show; what a format has for marks of its own is escaped where it is written.
    """
    return _HIDDEN.sub(lambda match: f"[{_named(match[0])}]", text)


def escaped(json: str) -> str:
    """JSON in which every hidden character of a text is an escape: the same data, fit to show."""
    return _HIDDEN.sub(lambda match: _as_escape(match[0]), json)


def _as_escape(character: str) -> str:
    code = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{code[at]:02x}{code[at + 1]:02x}" for at in range(0, len(code), 2))


def one_line(text: str) -> str:
    """The text on one line, every hidden character named, runs of white space as one space."""
    return " ".join(visible(text).split())


def _named(character: str) -> str:
    return "ESC" if character == "\x1b" else f"U+{ord(character):04X}"

"""Ways to write a text so that a person does not read what a model does.

`disguise_of` says which one a text uses, `readings` has the text as a model may read it.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from urllib.parse import unquote

from toolshift.core.text import visible

_ZERO = {"\u200b", "\u2060", "\ufeff", "\u180e"}
_JOINERS = {"\u200c", "\u200d", "\u00ad"}
"""Joiners and soft hyphens, which scripts need."""
_FAR = re.compile(r"(?<!\s)(?:(?:[^\S\n]*\n){12,}[^\S\n]*|[^\S\n]{120,})\S[^\n]*")
_WORD = re.compile(r"[^\W\d_]+")
_SPACED = re.compile(r"(?<!\S)(?:[^\W\d_](?:[ ._-]{1,3}|$)){8,}")
_BASE64 = re.compile(r"(?<![\w+/=-])[A-Za-z0-9+/_-]{24,}={0,2}(?![\w+/=])")
_HEX = re.compile(r"(?<![\w-])(?:0x)?((?:[0-9a-fA-F]{2}[ :]?){16,})(?![\w-])")
_PERCENT = re.compile(r"(?<![\w.~=/?&-])[\w.~-]*(?:%[0-9A-Fa-f]{2}[\w.~-]*){3,}")
_ENTITY = re.compile(r"(?:&#x?[0-9a-fA-F]{2,6};\s?){3,}")
_ESCAPES = re.compile(r"(?:\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}){4,}")
_LEET = str.maketrans("013457@$", "oieastas")
_DIGITS = re.compile(r"\b(?=\w*[a-zA-Z])[a-zA-Z]*[013457@$]\w*")
_MIXED = frozenset({"CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE"})
"""Scripts with letters that look like Latin ones."""
_MIN_WORDS = 3


def disguise_of(text: str) -> str:
    """What hides a part of a text from the people who look at it; "" where nothing does."""
    if any(_is_hidden(one) for one in text):
        return "it holds characters that nobody sees"
    if _FAR.search(text):
        return "it goes on far below or beside what is seen"
    if any(_looks_latin(word) for word in _WORD.findall(text)):
        return "it has words in letters that only look alike"
    if _SPACED.search(text):
        return "it has words with a space after each letter"
    if any(True for _ in _decoded(text)):
        return "it holds words in an encoding"
    return ""


def far_parts(text: str) -> list[str]:
    """What stands behind a gap so long that it is not seen, with the gap."""
    return [found[0] for found in _FAR.finditer(text)]


def readings(text: str) -> Iterator[str]:
    """A text, and what it says once it is decoded or written plainly."""
    yield text
    plain = unicodedata.normalize("NFKC", text)
    if plain != text:
        yield plain
    yield from _decoded(text)
    if len(_DIGITS.findall(text)) >= _MIN_WORDS:
        yield _DIGITS.sub(lambda found: found[0].translate(_LEET), text)
    if re.search(r"(?i)rot-?13|caesar", text):
        yield codecs.decode(text, "rot13")


def _is_hidden(one: str) -> bool:
    """Tags, marks that turn a text around and control characters are; line ends are not."""
    if one.isascii():
        return (one < " " and one not in "\n\r\t\f") or one == "\x7f"
    return one in _ZERO or (unicodedata.category(one) == "Cf" and one not in _JOINERS)


@lru_cache(maxsize=8192)
def _looks_latin(word: str) -> bool:
    """Whether a word has letters of two scripts that look alike, or Latin ones of mathematics."""
    if word.isascii() or len(word) < _MIN_WORDS:
        return False
    scripts = {unicodedata.name(letter, "").partition(" ")[0] for letter in word}
    if "LATIN" in scripts and scripts & _MIXED:
        return True
    return "MATHEMATICAL" in scripts or (
        scripts == {"FULLWIDTH"} and unicodedata.normalize("NFKC", word).isascii()
    )


def _decoded(text: str) -> Iterator[str]:
    """The words that a text holds in an encoding: at least three of them, or they are a value."""
    for found in _BASE64.findall(text):
        padded = found.rstrip("=").translate(str.maketrans("-_", "+/"))
        yield from _words_in(_bytes_of(padded + "=" * (-len(padded) % 4)))
    for found in _HEX.findall(text):
        yield from _words_in(bytes.fromhex(re.sub("[ :]", "", found)))
    for found in _PERCENT.findall(text):
        yield from _words_in(unquote(found).encode("utf-8", "replace"))
    for found in _ESCAPES.findall(text):
        told = codecs.decode(found, "unicode_escape")
        yield from _words_in(told.encode("utf-8", "replace"))
    if _ENTITY.search(text):
        yield html.unescape(text)


def _bytes_of(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""


def _words_in(raw: bytes) -> Iterator[str]:
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return
    spoken = visible(text) == text and len(re.findall(r"(?<!\S)[^\W\d_]{2,}", text)) >= _MIN_WORDS
    if spoken:
        yield text

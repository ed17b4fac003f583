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
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from urllib.parse import unquote

from toolshift.core.text import visible
from toolshift.data.language import ENGLISH, common_words, language_of

_UNSEEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U000e0000-\U000e0fff"
)
"""Default_Ignorable_Code_Point of Unicode: what no font shows."""
_TORN = re.compile(rf"(?<=[a-zA-Z])[{_UNSEEN}]+(?=[a-zA-Z])")
"""Unseen characters between two Latin letters; other scripts join letters with some of them."""
_HYPHENS = 2
"""Of these a word may have one soft hyphen, at which it may be broken."""
_ZERO = {"\u200b", "\u2060", "\ufeff", "\u180e"}
_JOINERS = {"\u200c", "\u200d", "\u00ad"}
"""Joiners and soft hyphens, which scripts need."""
_FAR = re.compile(r"(?<!\s)(?:(?:[^\S\n]*\n){12,}[^\S\n]*|[^\S\n]{120,})\S[^\n]*")
_WORD = re.compile(r"[^\W\d_]+")
_SPACED = re.compile(r"(?<!\S)(?:[^\W\d_](?:[^\w\n,;]{1,3}|_{1,3}|$)){8,}")
_BASE64 = re.compile(r"(?<![\w+/=-])[A-Za-z0-9+/_-]{12,}={0,2}(?![\w+/=])")
_BASE32 = re.compile(r"(?<![\w=])[A-Z2-7]{24,}={0,6}(?![\w=])")
_HYPHENATED = re.compile(r"(?<=[^\W\d_])-(?=[^\W\d_])")
_NUMBERS = re.compile(
    r"(?<![\w.])(?:[01]{7,8}|\d{2,3})(?:[ ,]{1,2}(?:[01]{7,8}|\d{2,3})){11,}(?!\w)"
)
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_ASCII = 128
_PIECE = re.compile(r"[:;\n(){}\[\]|]|(?<=[.!?])\s")
_HEX = re.compile(r"(?<![\w-])(?:0x)?((?:[0-9a-fA-F]{2}[ :]?){16,})(?![\w-])")
_PERCENT = re.compile(r"(?<![\w.~=/?&-])[\w.~-]*(?:%[0-9A-Fa-f]{2}[\w.~-]*){3,}")
_ENTITY = re.compile(r"(?:&#x?[0-9a-fA-F]{2,6};\s?){3,}")
_REFERENCE = re.compile(r"&(?:#x?[0-9a-fA-F]{2,6}|[a-zA-Z]{2,8});")
"""One character as HTML names it; what is meant for people to read is read as well."""
_ESCAPES = re.compile(r"(?:\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}){4,}")
_LEET = str.maketrans("013457@$", "oieastas")
_DIGITS = re.compile(r"\b(?=\w*[a-zA-Z])[a-zA-Z]*[013457@$]\w*")
_MIXED = frozenset({"CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE"})
"""Scripts with letters that look like Latin ones."""
_MIN_WORDS = 3
_CIPHERED, _COMMON, _SHARE = 6, 3, 5
"""The fewest words of a text that may be in a cipher; of its plain text the fewest common words,
and one in how many words at least is common."""


def disguise_of(text: str) -> str:
    """What hides a part of a text from the people who look at it; "" where nothing does."""
    if any(_is_hidden(one) for one in text) or _is_torn(text):
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
    plain = _TORN.sub("", unicodedata.normalize("NFKC", text))
    if plain != text:
        yield plain
    if _REFERENCE.search(text):
        yield html.unescape(text)
    if len(_HYPHENATED.findall(text)) >= _MIN_WORDS:
        yield _HYPHENATED.sub("", text)
    yield from _decoded(text)
    if len(_DIGITS.findall(text)) >= _MIN_WORDS:
        yield _DIGITS.sub(lambda found: found[0].translate(_LEET), text)


def _is_torn(text: str) -> bool:
    """Whether unseen characters stand inside of words, more than where one may be broken."""
    found = _TORN.findall(text)
    return len(found) > _HYPHENS or any(one != "\u00ad" for one in found)


@lru_cache(maxsize=4096)
def _deciphered(text: str) -> tuple[str, ...]:
    """What a text says backwards, or with each letter moved, where it is English only then."""
    return tuple(found for piece in _PIECE.split(text) for found in _plain_of(piece))


def _plain_of(piece: str) -> Iterator[str]:
    words = len(_WORD.findall(piece))
    if words < _CIPHERED or common_words(piece, ENGLISH):
        return
    if language_of([piece], ENGLISH, _COMMON) != ENGLISH:
        return
    backwards = piece[::-1]
    each_backwards = " ".join(backwards.split()[::-1])
    moved = (_swapped(piece, _LETTERS[by:] + _LETTERS[:by]) for by in range(1, 26))
    for told in (backwards, each_backwards, _swapped(piece, _LETTERS[::-1]), *moved):
        if common_words(told, ENGLISH) >= max(_COMMON, words // _SHARE):
            yield told


def _swapped(text: str, letters: str) -> str:
    return text.translate(str.maketrans(_LETTERS + _LETTERS.upper(), letters + letters.upper()))


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
        yield from _words_in(_of_base64(found))
    pieces = (_of_base64(found) for found in _BASE64.findall(text))
    yield from _words_in(b" ".join(one for one in pieces if one.isascii() and one))
    for found in _BASE32.findall(text):
        yield from _words_in(_bytes_of(base64.b32decode, found.rstrip("="), 8))
    for found in _HEX.findall(text):
        yield from _words_in(bytes.fromhex(re.sub("[ :]", "", found)))
    for found in _PERCENT.findall(text):
        yield from _words_in(unquote(found).encode("utf-8", "replace"))
    for found in _ESCAPES.findall(text):
        told = codecs.decode(found, "unicode_escape")
        yield from _words_in(told.encode("utf-8", "replace"))
    for found in _NUMBERS.findall(text):
        yield from _words_in(_of_numbers(found.replace(",", " ").split()))
    if _ENTITY.search(text):
        yield html.unescape(text)
    yield from _deciphered(text)


def _of_numbers(numbers: list[str]) -> bytes:
    """The characters that numbers stand for, binary where all are of noughts and ones."""
    base = 2 if all({*each} <= {"0", "1"} for each in numbers) else 10
    codes = [int(each, base) for each in numbers]
    return bytes(codes) if max(codes) < _ASCII else b""


def _of_base64(found: str) -> bytes:
    plain = found.rstrip("=").translate(str.maketrans("-_", "+/"))
    return _bytes_of(partial(base64.b64decode, validate=True), plain, 4)


def _bytes_of(decode: Callable[[str], bytes], text: str, group: int) -> bytes:
    try:
        return decode(text + "=" * (-len(text) % group))
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

"""Calls as Glaive writes them: `<functioncall>`, with the arguments as JSON in single quotes."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from toolshift.data.conversation import Call, RowFault, arguments_of
from toolshift.data.formats.calls_in_text import Region, regions_of
from toolshift.lm.call_texts.tools import Tools

_CALL = re.compile(r"<functioncall>\s*(\{.*\})", re.DOTALL)
_QUOTED = re.compile(r"\A(\{.*?\"arguments\"\s*:\s*)'(.*)'(\s*\})\Z", re.DOTALL)


def glaive_regions(text: str, tools: Tools) -> list[Region]:
    """The call of a text; other forms are read as everywhere."""
    found = _CALL.search(text)
    if not found:
        return regions_of(text, tools)
    quoted = _QUOTED.match(found[1])
    inner = quoted[2].replace("\\'", "'") if quoted else ""
    whole = f"{quoted[1]}{{}}{quoted[3]}" if quoted else found[1]
    try:
        said = msgspec.json.decode(whole)
        name = said["name"] if isinstance(said, Mapping) else None
        if not isinstance(name, str) or text.count("<functioncall>") > 1:
            raise RowFault(f"a call in its text cannot be read: {found[1][:80]}")
        arguments = arguments_of(inner if quoted else said.get("arguments"), name)
    except (msgspec.DecodeError, KeyError, RecursionError):
        raise RowFault(f"a call in its text cannot be read: {found[1][:80]}") from None
    return [Region(found.start(), found.end(), (Call(name, arguments),))]

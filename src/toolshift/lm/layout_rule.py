"""Which layout a tokenizer asks for, by a rule and not by looking at what was learned in it.

A name that is cut into the same tokens in the list of tools and in a call can be copied; one that
is cut otherwise has to be spelt. The same holds for what a user names and what a call passes on.
"""

from __future__ import annotations

from typing import Any

from toolshift.lm.prompt import Layout, render_call, render_system

CANDIDATES: tuple[Layout, ...] = ("description-first", "spaced", "spaced-texts")
"""The layouts whose lists are alike; the first of the best is taken."""
NAMES = ("find_place", "get_details", "bookSlot", "zx_71", "resolve_venue", "calc_route")
TEXTS = ("Lyon", "Quiet Thistle", "Vostrand 2", "opera house")


def alike(tokenizer: Any, layout: Layout) -> float:
    """The share of names and texts that have the same tokens where read and where written."""
    same = []
    for name in NAMES:
        tool = {"name": name, "description": "Does one thing.", "parameters": {"properties": {}}}
        read, written = render_system("", [tool], layout), render_call(name, {}, layout)
        same.append(_pieces(tokenizer, read, name) == _pieces(tokenizer, f"\n{written}", name))
    for text in TEXTS:
        read, written = f"What is there in {text} today?", render_call("f", {"a": text}, layout)
        same.append(_pieces(tokenizer, read, text) == _pieces(tokenizer, written, text))
    return sum(same) / len(same)


def derived_layout(tokenizer: Any) -> Layout:
    """The layout in which most names and texts are cut alike."""
    return max(CANDIDATES, key=lambda layout: alike(tokenizer, layout))


def _pieces(tokenizer: Any, text: str, part: str) -> list[int]:
    """The tokens that the last place of a part has any letter in."""
    begin = text.rindex(part)
    end = begin + len(part)
    found = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    spans = zip(found["input_ids"], found["offset_mapping"], strict=True)
    return [token for token, (first, last) in spans if first < end and last > begin]

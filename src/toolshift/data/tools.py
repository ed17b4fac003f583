"""The tools of a whole data set, in bounded memory: where distractors come from.

A first pass takes in every list of tools. Of all different tools the `most` with the least hash
are kept, so that the index is the same whatever the order of the rows.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from random import Random
from typing import Any

import msgspec

from toolshift.core.message import PROTOCOL_TOOLS
from toolshift.core.shift import NotApplicable
from toolshift.data.conversation import Message, ToolShown
from toolshift.data.interface_texts import is_in, language_of_tools
from toolshift.data.language import ENGLISH, LANGUAGES
from toolshift.data.tool_mentions import Seen, ToolNames
from toolshift.interop.schema import each_description
from toolshift.shifts.surface import Surface

MOST = 4096
_PROTOCOL = [tool["function"] for tool in PROTOCOL_TOOLS]
Lent = dict[str, list[dict[str, Any]]]
"""Tools of a data set that other rows may be shown, by the language of the list they came in."""


class ToolIndex:
    """Some of the tools of a data set, by hash.

    Args:
        most: how many are kept.
    """

    def __init__(self, most: int = MOST) -> None:
        self.most = most
        self._kept: dict[int, tuple[str, dict[str, Any]]] = {}
        self._heap: list[int] = []
        self._lists: set[bytes] = set()

    def add(self, functions: Iterable[Mapping[str, Any]]) -> None:
        """Takes in the tools of a conversation, as OpenAI functions."""
        listed = msgspec.json.encode(list(functions))
        digest = blake2b(listed, digest_size=8).digest()
        if digest in self._lists:
            return
        if len(self._lists) < 16 * self.most:  # beyond it lists are only looked at again
            self._lists.add(digest)
        decoded = msgspec.json.decode(listed)
        language = language_of_tools(decoded)
        for function in decoded:
            # What alone has no word of its language would be taken for English elsewhere.
            if language == ENGLISH or not is_in(ENGLISH, function):
                self._add(function, language)

    def _add(self, function: dict[str, Any], language: str) -> None:
        raw = msgspec.json.encode(function)
        key = int.from_bytes(blake2b(raw, digest_size=8).digest(), "big")
        if key in self._kept:  # of several languages the first by its code, whatever came first
            language = min(language, self._kept[key][0])
            self._kept[key] = (language, function)
            return
        if len(self._heap) >= self.most and key >= -self._heap[0]:
            return
        self._kept[key] = (language, function)
        heapq.heappush(self._heap, -key)
        if len(self._heap) > self.most:
            del self._kept[-heapq.heappop(self._heap)]

    @property
    def functions(self) -> Lent:
        """The tools that are kept, by the language of their lists, in the order of their hashes."""
        found: Lent = {}
        for key in sorted(self._kept):
            language, function = self._kept[key]
            found.setdefault(language, []).append(function)
        return found

    @property
    def hash(self) -> str:
        """Of the tools that are kept."""
        return blake2b(msgspec.json.encode(sorted(self._kept)), digest_size=6).hexdigest()


def distractors(
    functions: Lent, shown: Sequence[Mapping[str, Any]], rng: Random, count: int
) -> list[dict[str, Any]]:
    """Tools of other conversations in the language of those that are on offer, by other names."""
    taken = {str(one["name"]).lower() for one in shown}
    lent = (str(one["name"]).lower() for some in functions.values() for one in some)
    if taken.issuperset(lent):
        raise NotApplicable("the data has no other tools")
    language = language_of_tools(shown)
    if not language:
        raise NotApplicable("the language of the tools cannot be told, nor which others are in it")
    found, own = list[dict[str, Any]](), functions.get(language, [])
    for place in _drawn(rng, len(own), 4 * count):
        name = str(own[place]["name"]).lower()
        if name not in taken:
            taken.add(name)
            found.append(own[place])
        if len(found) == count:
            break
    if not found:
        raise NotApplicable(f"the data has no other tools in {LANGUAGES[language]}")
    return found


def _drawn(rng: Random, count: int, most: int) -> Iterator[int]:
    """Places in a list in an order of chance; those beyond the first are drawn when asked for."""
    first = rng.sample(range(count), min(count, most))
    yield from first
    rest = sorted(set(range(count)).difference(first))
    rng.shuffle(rest)
    yield from rest


def apart(tools: tuple[ToolShown, ...]) -> tuple[tuple[ToolShown, ...], tuple[ToolShown, ...]]:
    """The tools that shifts may touch, and ToolShift's own behind them.

    Rows that `toolshift data` writes offer `final_answer`, `refuse` and `ask_user` after the tools
    of the task. They stand for the conversation itself: no shift of the sandbox changes them.
    """
    end = len(tools)
    while end and tools[end - 1].function in _PROTOCOL:
        end -= 1
    return tools[:end], tools[end:]


def check_gone(
    gone: Iterable[str], tools: Iterable[ToolShown], messages: Iterable[Message]
) -> None:
    """Checks that nothing learned, and no tool that is left, speaks of a tool that is gone."""
    surface = Surface(names=dict.fromkeys(gone, ""))
    left, told = tuple(tools), tuple(messages)
    names = ToolNames(frozenset((*surface.names, *(tool.function["name"] for tool in left))))
    seen = Seen(told)
    for place, said in enumerate(told):
        texts = (said.text, said.thought) if said.role == "assistant" and said.learned else ()
        if any(names.first_meant(text, surface.names, seen.at(place, said.role)) for text in texts):
            raise NotApplicable("what is said names a tool that is gone by then")
    for tool in left:
        if each_description(tool.function, surface.speak) != tool.function:
            raise NotApplicable("a tool that is left speaks of one that is gone by then")

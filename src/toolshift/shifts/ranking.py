"""Ranks the tools of a list by words: Okapi BM25, plain and deterministic.

BM25 is what providers' tool searches offer beside regular expressions, and needs no model, so that
the same words find the same tools on every machine. It is written out here, for it is ten lines:
the package `rank_bm25` needs NumPy for them, gives common words a negative weight that it then
patches, and says nothing of ties. Here the weight of a word is that of Lucene, which is never
negative, and of tools with the same score the first in the list comes first.

Source: Robertson and Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond, 2009; the
weight log(1 + (N - n + 0.5) / (n + 0.5)) is that of Lucene.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from math import log

from toolshift.core.tool import Tool

K1, B = 1.2, 0.75
"""How soon a word that is repeated counts no more, and how much a long text is held against it."""


def words_in(text: str) -> list[str]:
    """The words of a text or a name, in small letters and without a plural."""
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[^\WA-Z\d_]+|\d+", text)
    return [_singular(part.lower()) for part in parts]


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    if word.endswith("s") and not word.endswith("ss") and len(word) > 3:
        return word[:-1]
    return word


class Index:
    """Tools to be searched: their names, descriptions, and those of their parameters.

    Args:
        tools: in the order in which those of the same score are found.
    """

    def __init__(self, tools: Sequence[Tool]) -> None:
        self.tools = tuple(tools)
        counts = [Counter(words_in(_text_of(tool))) for tool in self.tools]
        lengths = [each.total() for each in counts]
        mean = sum(lengths) / len(lengths) if lengths else 1.0
        self._holders: dict[str, list[tuple[int, float]]] = {}
        for place, (each, length) in enumerate(zip(counts, lengths, strict=True)):
            longer = 1 - B + B * length / mean
            for word, times in each.items():
                told = times * (K1 + 1) / (times + K1 * longer)
                self._holders.setdefault(word, []).append((place, told))

    def search(self, query: str, most: int) -> tuple[Tool, ...]:
        """The tools that share a word with a query, by their BM25 score, the best first."""
        scores = self.score(query)
        ranked = sorted(range(len(self.tools)), key=lambda place: (-scores[place], place))
        return tuple(self.tools[place] for place in ranked[:most] if scores[place] > 0)

    def score(self, query: str) -> list[float]:
        """The BM25 score of each tool for a query; 0 for one that shares no word with it.

        Args:
            query: words; one that is repeated counts as often.

        Returns:
            As many numbers as there are tools, in their order; they have no unit, and compare the
            tools for one query only.
        """
        scores = [0.0] * len(self.tools)
        for word in words_in(query):
            holders = self._holders.get(word, ())
            weight = log(1 + (len(self.tools) - len(holders) + 0.5) / (len(holders) + 0.5))
            for place, told in holders:
                scores[place] += weight * told
        return scores


@lru_cache(maxsize=64)
def index_of(tools: tuple[Tool, ...]) -> Index:
    """The index of some tools, kept over the calls of an episode and over episodes."""
    return Index(tools)


def _text_of(tool: Tool) -> str:
    params = (f"{param.name} {param.schema.get('description', '')}" for param in tool.params)
    return " ".join((tool.name, tool.description, *params))

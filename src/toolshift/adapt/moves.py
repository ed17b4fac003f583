"""Which of today's tools is one of the lock under another spelling, so that a call may be moved.

A call is moved only where the two tools say the same and are called the same:

- their names are the same words (`same_words`), and no other tool of either list has these words;
- their descriptions are the same text, and neither says of its effect what the other denies;
- each parameter has its place: it has kept its name, or one new parameter is the same words, with
  the same schema and description. Only the name of a text may differ in more than case and
  separators. No parameter has come on top.

Likeness of names or texts is no reason, and no list of words is one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolshift.adapt.same_words import same_spelling, same_words
from toolshift.core.canonical import same
from toolshift.core.tool import Param
from toolshift.drift.effects import opposed
from toolshift.interop.tools import Source, Toolbox, from_mcp

_SAID_IN_CHAT = ("name", "description", "inputSchema")
"""The parts of a tool in a chat request."""


@dataclass(frozen=True)
class Move:
    """Where calls of a tool of the lock go today.

    Attributes:
        tool: its name today.
        params: for each parameter of the lock, its name today.
    """

    tool: str
    params: Mapping[str, str]

    @property
    def evidence(self) -> str:
        """Why it is certain."""
        return "the names are the same words, and the descriptions and the schemas are the same"


class Moves:
    """The tools of today beside those of the lock.

    Args:
        before: the tools of the lock.
        documents: the tools of today, as an MCP server lists them.

    Raises:
        UsageError: where a tool has no name, or two have the same.
    """

    def __init__(self, before: Toolbox, documents: Sequence[Mapping[str, Any]]) -> None:
        self.before, self.after = before, from_mcp(documents)

    def move(self, old: str) -> Move | None:
        """Where calls of a tool of the lock go today."""
        new = old if old in self.after.sources else respelled(old, self.before, self.after)
        return self.between(old, new) if new else None

    def between(self, old: str, new: str) -> Move | None:
        """The move of calls from one tool to another."""
        was, now = self.before.sources.get(old), self.after.sources.get(new)
        if was is None or now is None or (old != new and not same_words(old, new)):
            return None
        if was.tool.description != now.tool.description or opposed(was, now):
            return None
        params = _places(was.tool.params, now.tool.params)
        return None if params is None else Move(new, params)

    def only_reads(self, old: str, new: str) -> bool:
        """Whether a tool is declared to only read, in the lock and today."""
        was, now = self.before.sources.get(old), self.after.sources.get(new)
        if was is None or now is None or not declared_to_read(was):
            return False
        if "annotations" in now.raw:
            return declared_to_read(now)
        return all(same(was.raw.get(key), now.raw.get(key)) for key in _SAID_IN_CHAT)


def declared_to_read(source: Source) -> bool:
    """Whether a tool declares that it only reads, and not that it destroys."""
    hints = source.raw.get("annotations")
    if not isinstance(hints, Mapping):
        return False
    return hints.get("readOnlyHint") is True and hints.get("destructiveHint") is not True


def respelled(old: str, before: Toolbox, after: Toolbox) -> str:
    """The one new tool whose name is the same words as that of a tool which is gone."""
    came = [name for name in after.sources if same_words(old, name)]
    went = [name for name in before.sources if same_words(old, name)]
    alone = len(came) == 1 and went == [old] and came[0] not in before.sources
    return came[0] if alone else ""


def renamed(olds: Mapping[str, Param], news: Mapping[str, Param]) -> dict[str, str]:
    """Parameters that have the same words for a name, where no other has them."""
    gone, come = ([n for n in mine if n not in others] for mine, others in _both_ways(olds, news))
    names = {}
    for name in gone:
        partners = [one for one in come if _same_name(olds[name], news[one])]
        rivals = [one for one in olds if partners and _same_name(olds[one], news[partners[0]])]
        if len(partners) == 1 and rivals == [name]:
            names[name] = partners[0]
    return names


def _both_ways(one: Any, other: Any) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    return (one, other), (other, one)


def _same_name(one: Param, other: Param) -> bool:
    """Whether two parameters are called the same; but for texts it is told by the spelling.

    A number at the end of a parameter is no version: `address` and `address_2` are two.
    """
    if one.schema.get("type") == other.schema.get("type") == "string":
        return same_words(one.name, other.name, versions=False)
    return same_spelling(one.name, other.name)


def _places(olds: Sequence[Param], news: Sequence[Param]) -> Mapping[str, str] | None:
    """The name today of each parameter; None where one has no place or means something else."""
    mine, theirs = ({param.name: param for param in params} for params in (olds, news))
    moved = {name: name for name in mine if name in theirs} | renamed(mine, theirs)
    if moved.keys() != mine.keys() or {*moved.values()} != theirs.keys():
        return None
    alike = all(
        mine[name].required == theirs[now].required and same(mine[name].schema, theirs[now].schema)
        for name, now in moved.items()
    )
    return moved if alike else None

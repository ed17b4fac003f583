"""Which of today's tools is one of the lock under another spelling, so that a call may be moved.

A call is moved only where the two tools say the same and are called the same:

- their names are the same words (`same_words`), and no other tool of either list has these words;
- their descriptions are the same text, and today's hints, where it has any, promise what those of
  the lock did (`readOnlyHint`, `destructiveHint`);
- each parameter has its place: it has kept its name, or one new parameter is the same words, with
  the same schema and description. Only the name of a text may differ in more than case and
  separators. No parameter has come on top.

Likeness of names or texts is no reason, and no list of words is one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolshift.adapt.same_words import same_spelling, same_words
from toolshift.core.canonical import same
from toolshift.core.tool import Param
from toolshift.core.values import as_mapping
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
        reads: tools of the lock of which the user has said that they only read.

    Raises:
        UsageError: where a tool has no name, or two have the same.
    """

    def __init__(
        self,
        before: Toolbox,
        documents: Sequence[Mapping[str, Any]],
        reads: Collection[str] = (),
    ) -> None:
        self.before, self.after, self.reads = before, from_mcp(documents), frozenset(reads)

    def move(self, old: str) -> Move | None:
        """Where calls of a tool of the lock go today."""
        new = old if old in self.after.sources else respelled(old, self.before, self.after)
        was, now = self.before.sources.get(old), self.after.sources.get(new)
        if was is None or now is None or was.tool.description != now.tool.description:
            return None
        if not promises_kept(was, now):
            return None
        params = _places(was.tool.params, now.tool.params)
        return None if params is None else Move(new, params)

    def only_reads(self, old: str, new: str) -> bool:
        """Whether a tool only reads: it declares so in the lock and today, or the user says so."""
        was, now = self.before.sources.get(old), self.after.sources.get(new)
        if was is None or now is None:
            return False
        if not (declared_to_read(was) or old in self.reads):
            return False
        if "annotations" in now.raw:
            return declared_to_read(now)
        # A chat request has no place for hints: there the tool must be the very one.
        return all(same(was.raw.get(key), now.raw.get(key)) for key in _SAID_IN_CHAT)


def declared_to_read(source: Source) -> bool:
    """Whether a tool declares that it only reads, and not that it destroys."""
    hints = source.raw.get("annotations")
    if not isinstance(hints, Mapping):
        return False
    return hints.get("readOnlyHint") is True and hints.get("destructiveHint") is not True


def promises_kept(was: Source, now: Source) -> bool:
    """Whether a tool, where it has hints, promises what another did: to read, not to destroy."""
    first, second = (source.raw.get("annotations") for source in (was, now))
    if not isinstance(second, Mapping):
        return True
    first = as_mapping(first)
    if declared_to_read(was):
        return declared_to_read(now)
    return first.get("destructiveHint") is not False or second.get("destructiveHint") is False


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

    A number at the end of a parameter is no version: `address` and `address_2` are two. Nor may the
    order be another: `from_to` is not `to_from`.
    """
    if one.schema.get("type") == other.schema.get("type") == "string":
        return same_words(one.name, other.name, of_tools=False)
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

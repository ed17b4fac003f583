"""Matches today's tools with the tools of the lock, so that what was learned of them is kept.

No call rests on this: `moves` says where a call may go. The pairing is that of
`shifts.release.resolve`; likeness alone is not enough. A pair is

exact   where both descriptions are the same text, no other tool has it, and the schemas are the
        same but for names of parameters whose descriptions and types are the same
close   where descriptions share most words, no other tool comes near, every argument has its place,
        and both tools say that they only read
merged  where today's tool says word for word what two or more of the tools that are gone said,
        takes all that each of them took and needs nothing else, and all of them only read

and none where words that only one side has oppose each other, today's tool says that it destroys
and that of the lock that it does not, or their names speak of different effects (`effects`). A
description of one word says nothing of what a parameter is. A tool that may write
needs an exact pair, with a description of at least three words; and where both names share a word,
only their first words may differ, as `book_room` and `reserve_room` do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from toolshift.core.tool import Param
from toolshift.drift.effects import differently_meant, only_reads, opposed, substituted
from toolshift.interop.tools import Source, Toolbox, from_mcp
from toolshift.shifts.release.mapping import Answers
from toolshift.shifts.release.match import alike_texts, words
from toolshift.shifts.release.resolve import settle_tools

CLOSE, CLEAR = 0.8, 0.25
TELLING = 3
"""Words that a description must have before a pair of tools that may write rests on it."""


@dataclass(frozen=True)
class Successor:
    """A tool of today that certainly stands for one of the lock.

    Attributes:
        tool: its name.
        params: for each parameter of the lock, its name today.
        exact: whether the two say the same, word for word; see the module.
        evidence: why it is certain.
    """

    tool: str
    params: Mapping[str, str]
    exact: bool
    evidence: str


class Today:
    """The tools of today beside those of the lock.

    Args:
        before: the tools of the lock.
        documents: the tools of today, as an MCP server lists them.

    Raises:
        UsageError: where a tool has no name, or two have the same.
    """

    def __init__(self, before: Toolbox, documents: Sequence[Mapping[str, Any]]) -> None:
        self.before = before
        self.after = from_mcp(documents)
        self._found: dict[str, Successor | None] = {}

    @cached_property
    def _paired(self) -> Mapping[str, str]:
        """Old name to new, for tools that are one to one."""
        answers = settle_tools(self.before, self.after, Answers(), accept=True).answers
        several = {old for one in answers.merged.values() for old in one.tools.values()}
        kept = {name: name for name in self.before.sources if name in self.after.sources}
        renamed = {old: new for old, new in answers.renamed.items() if new in self.after.sources}
        gone = {*answers.removed, *several, *answers.split}
        return {old: new for old, new in {**kept, **renamed}.items() if old not in gone}

    def successor(self, old: str) -> Successor | None:
        """The certain successor of a tool of the lock."""
        if old not in self._found:
            new = self._paired.get(old)
            certain = self._certain(old, new) if new else None
            self._found[old] = certain or self._merged(old)
        return self._found[old]

    def _certain(self, old: str, new: str) -> Successor | None:
        was, now = self.before.sources[old], self.after.sources[new]
        first, second = _texts(was, now)
        if not first or not second or opposed(was, now) or self._rivals(was, now):
            return None
        exact = _moved(was.tool.params, now.tool.params, exact=True) if first == second else None
        reads = only_reads(was) and only_reads(now)
        if exact is not None and (reads or _may_write(was, now)):
            evidence = "the description and the schema are the same, and no other tool has them"
            return Successor(new, exact, True, evidence)
        close = _moved(was.tool.params, now.tool.params, exact=False)
        likeness = alike_texts(first, second)
        if close is None or likeness < CLOSE or not reads or substituted(first, second):
            return None
        evidence = f"descriptions share {likeness:.0%} of their words, and both tools only read"
        return Successor(new, close, False, evidence)

    def _merged(self, old: str) -> Successor | None:
        """The one read-only tool that merges this tool and others that are gone."""
        was = self.before.sources[old]
        if old in self.after.sources or not only_reads(was):
            return None
        gone = [one for name, one in self.before.sources.items() if name not in self.after.sources]
        candidates = []
        for name, now in self.after.sources.items():
            inside = [one for one in gone if _covers(now, one)]
            if was in inside and len(inside) > 1 and all(only_reads(one) for one in inside):
                candidates.append((name, [one.tool.name for one in inside]))
        if len(candidates) != 1:
            return None
        ((name, names),) = candidates
        evidence = f"it says what {', '.join(names)} said, takes what they took, and all only read"
        return Successor(
            name, {param.name: param.name for param in was.tool.params}, False, evidence
        )

    def _rivals(self, was: Source, now: Source) -> bool:
        """Whether another pair is nearly as similar as this one."""
        first, second = _texts(was, now)
        least = alike_texts(first, second) - CLEAR
        others = [source for source in self.after.sources.values() if source is not now]
        elders = [source for source in self.before.sources.values() if source is not was]
        return any(alike_texts(first, _text(source)) >= least for source in others) or any(
            alike_texts(second, _text(source)) >= least for source in elders
        )


def _covers(now: Source, was: Source) -> bool:
    """Whether a tool of today says and takes all that one of the lock did, and needs no more."""
    was_said, now_says = _text(was).rstrip("."), _text(now)
    if not was_said or was_said not in now_says or not only_reads(now) or opposed(was, now):
        return False
    mine, theirs = (
        {parameter.name: parameter for parameter in source.tool.params} for source in (was, now)
    )
    takes = all(name in theirs and _bare(mine[name]) == _bare(theirs[name]) for name in mine)
    needs = {name for name, param in theirs.items() if param.required}
    return takes and needs <= {name for name, param in mine.items() if param.required}


def _text(source: Source) -> str:
    return " ".join(source.tool.description.split())


def _texts(one: Source, other: Source) -> tuple[str, str]:
    return _text(one), _text(other)


def _may_write(was: Source, now: Source) -> bool:
    """Whether a write may rest on the text that two tools share, and on their names."""
    if len(words(_text(was))) < TELLING:
        return False
    mine, theirs = words(was.tool.name), words(now.tool.name)
    if not {*mine} & {*theirs}:
        return True
    own, other = {*mine[1:]} - {*theirs}, {*theirs[1:]} - {*mine}
    return not (own and other)


def _bare(param: Param) -> dict[str, Any]:
    return {
        key: value for key, value in param.schema.items() if key not in ("description", "title")
    }


def _differ(one: Param, other: Param) -> bool:
    return _bare(one) != _bare(other) or one.required != other.required


def _same(one: Param, other: Param, exact: bool) -> bool:
    """Whether two parameters with different names are the same: same values and description."""
    first, second = (str(param.schema.get("description") or "") for param in (one, other))
    if not first or not second or _differ(one, other):
        return False
    if differently_meant(f"{one.name} {first}", f"{other.name} {second}"):
        return False
    if len(words(first)) < 2 and {*words(one.name)} != {*words(other.name)}:
        return False  # "Identifier" is said of a customer as well as of a merchant
    return first == second if exact else alike_texts(first, second) >= CLOSE


def _told_otherwise(one: Param, other: Param, exact: bool) -> bool:
    """Whether the meaning of a parameter changed although its name did not."""
    first, second = (str(param.schema.get("description") or "") for param in (one, other))
    if first == second:
        return False
    return exact or differently_meant(first, second) or substituted(first, second)


def _moved(olds: Sequence[Param], news: Sequence[Param], exact: bool) -> Mapping[str, str] | None:
    """The name today of each parameter; None where one has no certain place, or one is new."""
    mine, theirs = ({parameter.name: parameter for parameter in params} for params in (olds, news))
    kept = {name: name for name in mine if name in theirs}
    if exact and any(_differ(mine[name], theirs[name]) for name in kept):
        return None
    if any(_told_otherwise(mine[name], theirs[name], exact) for name in kept):
        return None
    gone = [mine[name] for name in mine if name not in kept]
    come = [theirs[name] for name in theirs if name not in kept]
    moved = dict(kept)
    for param in gone:
        partners = [parameter for parameter in come if _same(param, parameter, exact)]
        rivals = [
            parameter for parameter in gone if partners and _same(parameter, partners[0], exact)
        ]
        if len(partners) == 1 and len(rivals) == 1:
            moved[param.name] = partners[0].name
        elif exact or param.required:
            return None
    left = [parameter for parameter in come if parameter.name not in moved.values()]
    return None if any(exact or parameter.required for parameter in left) else moved

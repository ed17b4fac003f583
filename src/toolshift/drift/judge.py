"""Who became whom between two tool lists: hypotheses, each with its evidence.

That a tool is gone, new or changed is a fact. That one became another is a reading of the two
lists, and has a standing:

certain     both names are the same words, or a mapping says so
likely      right in at least nine of ten on the lists of real releases (`studies/real_drift`)
question    some pair comes nearest, and more cannot be said

No reading at all is left where a tool that reads would have become one that does not say that it
reads: what a tool may stand for is decided by what is known of it, never by what is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from toolshift.drift.tokens import tokens
from toolshift.interop.tools import Source, Toolbox
from toolshift.shifts.release.inputs import Side
from toolshift.shifts.release.mapping import Answers, Several
from toolshift.shifts.release.match import alike_texts, alike_tools, said_effect, weights_of
from toolshift.shifts.release.resolve import Settled, settle_tools

Standing = Literal["certain", "likely", "question"]
NEAR, CLOSE, CLEAR = 0.45, 0.6, 0.2
"""A guess is likely from `CLOSE` on, or from `NEAR` on where no rival comes within `CLEAR`."""
TELLING = 3
"""Words that a description must have to tell anything by being the same."""


class Hypothesis(msgspec.Struct, frozen=True):
    """One reading of what became what.

    Attributes:
        kind: tool_renamed, tool_merged, tool_split or tool_dispatched.
        old: the tool as it was called.
        new: the tool that it is now.
        standing: how sure that is; see the module.
        evidence: what speaks for it, in words.
    """

    kind: str
    old: str
    new: str
    standing: Standing
    evidence: str


class Judged(msgspec.Struct, frozen=True):
    """What was settled between two lists, with the standing of each reading.

    Attributes:
        answers: what is taken as the mapping: certain and likely readings. What is a question, or
            no reading, is gone on one side and new on the other.
        hypotheses: by the old and the new tool.
    """

    answers: Answers
    hypotheses: Mapping[tuple[str, str], Hypothesis]

    def of(self, old: str) -> list[Hypothesis]:
        """The readings of one old tool."""
        return [one for one in self.hypotheses.values() if one.old == old]


def judged(settled: Settled, before: Toolbox, after: Toolbox, given: Answers) -> Judged:
    """The standing of what `settle_tools(..., accept=True)` says; what is given is certain."""
    doubtful = {q.path[1]: q.likeness for q in settled.guessed if q.path[0] == "renamed"}
    answers, found = settled.answers, list[Hypothesis]()
    weights = weights_of([*before.sources, *after.sources])
    for old, new in answers.renamed.items():
        if old not in before.sources or new not in after.sources:
            continue
        was, now = before.sources[old], after.sources[new]
        if given.renamed.get(old) == new or tokens(old) == tokens(new):
            found.append(Hypothesis("tool_renamed", old, new, "certain", _alike(was, now)))
        elif not _may_stand(was, now):
            continue
        else:
            likely = old not in doubtful or _is_likely(
                doubtful[old], was, now, before, after, weights
            )
            standing: Standing = "likely" if likely else "question"
            found.append(Hypothesis("tool_renamed", old, new, standing, _alike(was, now)))
    taken = {one.old: one.new for one in found if one.standing != "question"}
    left = {old: new for old, new in answers.renamed.items() if taken.get(old) != new}
    answers = msgspec.structs.replace(
        answers,
        renamed=taken,
        removed=[name for name in before.sources if name in {*answers.removed, *left}],
        added=[name for name in after.sources if name in {*answers.added, *left.values()}],
        params={old: one for old, one in answers.params.items() if old not in left},
        values={old: one for old, one in answers.values.items() if old not in left},
        fields={old: one for old, one in answers.fields.items() if old not in left},
    )
    found += _several(answers, given)
    return Judged(answers, {(one.old, one.new): one for one in found})


def settled_likely(before: Side, after: Side) -> Settled:
    """What certainly or likely became what; what is only a question is gone, and among them."""
    one, other = before.toolbox(), after.toolbox()
    settled = settle_tools(one, other, Answers(), accept=True)
    answers = judged(settled, one, other, Answers()).answers
    asked = tuple(q for q in settled.guessed if q.path[1] in answers.removed)
    return Settled(answers, asked, tuple(q for q in settled.guessed if q not in asked))


def reads(source: Source) -> bool:
    """Whether a tool is known to read: by its hint, else by its verbs, all of them of reading."""
    return said_effect(source)[0] == "read"


def _may_stand(was: Source, now: Source) -> bool:
    """Whether a tool may be proposed for another one."""
    return reads(now) or not reads(was)


def _is_likely(
    likeness: float,
    was: Source,
    now: Source,
    before: Toolbox,
    after: Toolbox,
    weights: Mapping[str, float],
) -> bool:
    if likeness >= CLOSE or _only_text(was, now, before, after):
        return True
    if likeness < NEAR:
        return False
    come = [s for n, s in after.sources.items() if n not in before.sources and s is not now]
    gone = [s for n, s in before.sources.items() if n not in after.sources and s is not was]
    rivals = [alike_tools(was, one, weights) for one in come]
    rivals += [alike_tools(one, now, weights) for one in gone]
    return likeness - max(rivals, default=0.0) >= CLEAR


def _only_text(was: Source, now: Source, before: Toolbox, after: Toolbox) -> bool:
    """Whether two tools are described in the same words, and no other tool is."""
    text = tokens(was.tool.description)
    alone = [
        sum(tokens(one.tool.description) == text for one in side.sources.values())
        for side in (before, after)
    ]
    return len(text) >= TELLING and text == tokens(now.tool.description) and alone == [1, 1]


def _alike(was: Source, now: Source) -> str:
    """What two tools have in common, in words."""
    mine, theirs = ({p.name for p in source.tool.params} for source in (was, now))
    shared = [word for word in tokens(was.tool.name) if word in tokens(now.tool.name)]
    told = []
    if shared:
        told.append(f"both names have {', '.join(dict.fromkeys(shared))}")
    first, second = was.tool.description, now.tool.description
    if first and first == second:
        told.append("the description is the same")
    elif first and second and (likeness := alike_texts(first, second)):
        told.append(f"descriptions share {likeness:.0%} of their words")
    if mine and mine == theirs:
        told.append("the parameters are the same")
    elif mine & theirs:
        told.append(f"{len(mine & theirs)} of {len(mine)} parameters are there")
    return "; ".join(told) or "nothing but that both are without another partner"


def _several(answers: Answers, given: Answers) -> list[Hypothesis]:
    """Merges, splits and dispatchers: readings of the choices of one parameter."""
    found = []
    for new, one in answers.merged.items():
        kind = "tool_dispatched" if one.arguments else "tool_merged"
        standing: Standing = "certain" if new in given.merged else "likely"
        for value, old in one.tools.items():
            found.append(Hypothesis(kind, old, new, standing, _choice(one, value)))
    for old, one in answers.split.items():
        standing = "certain" if old in given.split else "likely"
        for new, value in one.tools.items():
            found.append(Hypothesis("tool_split", old, new, standing, _choice(one, value)))
    return found


def _choice(one: Several, value: str) -> str:
    if one.arguments:
        return f"{one.by} takes the name of a tool, and {one.arguments} its arguments"
    return f"the choice {value} of {one.by} is what the name said"

"""Who became whom between two tool lists: hypotheses, each with its evidence.

That a tool is gone, new or changed is a fact. That one became another is a reading of the two
lists, and has a standing:

certain     both names are the same words, their requests are (`drift.operations`), or a mapping
            says so
likely      right in at least nine of ten on the lists of real releases (`studies/real_drift`)
question    some pair comes nearest, and more cannot be said

No reading at all is left where a tool that reads would have become one that does not say that it
reads: what a tool may stand for is decided by what is known of it, never by what is not. But what
both describe in the same words is known: where nothing says that the new one writes, it is a
question. It is likely where nothing else differs and the name has only lost its verb, so that it
names a thing and no act: `get_weather` and `weather`.

Where the names say other acts it is a question, however alike the rest is: `approve` and `reject`
share their noun, their text and their parameters. What is known of acts is in `acts`; a word of
which nothing is known may be any.

A parameter is likely from `CLOSE_PARAMS` on, above `NEAR` where one required parameter of a type is
all that is gone and one all that has come (above `POSSIBLE` where both tools have no other, or both
are in units of one kind), or where one of another tool became the same. Where the names say units
of different kinds it is a question. So is a boolean that has another text, for it may say the
reverse; and where two have one text, only their names tell which is which. Names that are opposites
(`from_account`, `to_account`) are always asked.

What is certain or likely is taken. Of tools and parameters a question is not: until it is answered
a tool is gone on one side and new on the other, and so is a parameter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

import msgspec

from toolshift.core.canonical import same
from toolshift.core.tool import Param
from toolshift.drift.acts import effect_of, plain_form, same_act, same_thing
from toolshift.drift.effects import contradict
from toolshift.drift.operations import with_same_operations
from toolshift.drift.tokens import tokens
from toolshift.interop.parts import kinds_of
from toolshift.interop.tools import Source, Toolbox
from toolshift.shifts.release.conversions import units_in
from toolshift.shifts.release.inputs import Side
from toolshift.shifts.release.mapping import Answers, Several
from toolshift.shifts.release.match import (
    CLOSE_PARAMS,
    POSSIBLE,
    alike_names,
    alike_texts,
    alike_tools,
    said_effect,
    weights_of,
)
from toolshift.shifts.release.merge import reads
from toolshift.shifts.release.moved import opened_sides
from toolshift.shifts.release.resolve import Question, Settled, pairs_of, settle_tools

Standing = Literal["certain", "likely", "question"]
NEAR, CLOSE, CLEAR = 0.45, 0.6, 0.2
"""A guess is likely from `CLOSE` on, or from `NEAR` on where no rival comes within `CLEAR`."""
SAME_LETTERS = 0.75
"""Likeness of two names that nearly are one: `kunde_suchen` and `kunden_suche`."""
TELLING = 3
"""Words that a description must have to tell anything by being the same."""


class Hypothesis(msgspec.Struct, frozen=True):
    """One reading of what became what.

    Attributes:
        kind: tool_renamed, tool_merged, tool_split, tool_dispatched or tool_superseded.
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
        answers: what is taken as the mapping: certain and likely readings. A tool or parameter that
            is a question, or has no reading, is gone on one side and new on the other.
        hypotheses: by the old and the new tool.
        questions: what is only a question.
        likely: what is taken, and not certain.
    """

    answers: Answers
    hypotheses: Mapping[tuple[str, str], Hypothesis]
    questions: tuple[Question, ...] = ()
    likely: tuple[Question, ...] = ()

    def of(self, old: str) -> list[Hypothesis]:
        """The readings of one old tool."""
        return [one for one in self.hypotheses.values() if one.old == old]

    def perhaps(self, old: str, path: str) -> str:
        """What a parameter of a tool may have become, which is a question; "" for nothing."""
        place = ("params", old, path)
        return next((one.guess for one in self.questions if one.path == place), "")


def judged(before: Toolbox, after: Toolbox, given: Answers) -> Judged:
    """Who became whom between two lists; what is given is certain."""
    settled = settle_tools(before, after, given, accept=True)
    found, asked = _of_tools(settled, before, after, given)
    taken = {one.old: one.new for one in found if one.standing != "question"}
    likely = [q for q in settled.guessed if q.path[0] == "renamed" and q.path[1] in taken]
    left = {old: new for old, new in settled.answers.renamed.items() if taken.get(old) != new}
    if left:  # what they take and return was settled for pairs that are none
        decided = msgspec.structs.replace(
            given,
            renamed={**given.renamed, **taken},
            removed=[*given.removed, *left],
            added=[*given.added, *left.values()],
        )
        settled = settle_tools(before, after, decided, accept=True)
    answers = settled.answers
    sides = opened_sides(answers.params, pairs_of(answers, before, after), (before, after))
    likely += _likely_params(settled.guessed, answers, *sides)
    taken_up = {one.path for one in likely}
    for one in settled.guessed:
        is_open = one.path[0] != "renamed" and one.path not in taken_up
        if is_open and not _hangs_on(one, asked):
            asked.append(one)
            answers = _without_param(answers, one) if one.path[0] == "params" else answers
    for one in _contrary(answers, given):
        asked.append(one)
        answers = _without_param(answers, one)
    found += _several(answers, given)
    for reading, question in _nearest(found, answers, before, after, given):
        found.append(reading)
        asked.append(question)
    hypotheses = {(one.old, one.new): one for one in found}
    return Judged(answers, hypotheses, tuple(asked), tuple(likely))


def _of_tools(
    settled: Settled, before: Toolbox, after: Toolbox, given: Answers
) -> tuple[list[Hypothesis], list[Question]]:
    """The readings of tools that go by another name, and which of them are questions."""
    doubtful = {q.path[1]: q for q in settled.guessed if q.path[0] == "renamed"}
    found, asked = list[Hypothesis](), list[Question]()
    weights = weights_of([*before.sources, *after.sources])
    for old, new in settled.answers.renamed.items():
        if old not in before.sources or new not in after.sources:
            continue
        was, now = before.sources[old], after.sources[new]
        if given.renamed.get(old) == new or tokens(old) == tokens(new):
            found.append(Hypothesis("tool_renamed", old, new, "certain", _alike(was, now)))
        elif not _may_stand(was, now):
            continue
        else:
            guess = doubtful.get(old)
            likely = guess is None or _is_likely(guess.likeness, was, now, before, after, weights)
            likely = likely and same_act(was, now) and _is_known_to_stand(was, now)
            if not likely:
                asked.append(guess or _question(was, now, before, after, weights))
            standing: Standing = "likely" if likely else "question"
            found.append(Hypothesis("tool_renamed", old, new, standing, _alike(was, now)))
    return found, asked


def _question(
    was: Source, now: Source, before: Toolbox, after: Toolbox, weights: Mapping[str, float]
) -> Question:
    """Whether a tool became another one, of two that are alike without a doubt."""
    come = tuple(sorted(name for name in after.sources if name not in before.sources))
    likeness = round(alike_tools(was, now, weights), 3)
    return Question(("renamed", was.tool.name), now.tool.name, likeness, come)


def _nearest(
    found: Iterable[Hypothesis], answers: Answers, before: Toolbox, after: Toolbox, given: Answers
) -> Iterator[tuple[Hypothesis, Question]]:
    """For tools that are gone and of which nothing is read, the nearest one, as a question.

    One that has a predecessor may stand for this one as well. That is no choice of the question:
    how calls of several are told apart then has to be said as `merged`.
    """
    known = {one.old for one in found} | {*given.removed}
    free = {name for name in answers.added if name not in given.added}
    taken = {one.new for one in found if one.standing == "question"}
    weights = weights_of([*before.sources, *after.sources])
    for old in answers.removed:
        was = before.sources[old]
        scored = [
            (max(alike_tools(was, now, weights), _floor(was, now) if name in free else 0.0), name)
            for name, now in after.sources.items()
            if old not in known and (name in free or _grew(name, before, after))
            if _may_stand(was, now)
        ]
        likeness, new = max(scored, default=(0.0, ""))
        if likeness < POSSIBLE:
            continue
        kind = "tool_renamed" if new in free - taken else "tool_merged"
        choices = tuple(sorted(free if kind == "tool_renamed" else free - {new}))
        taken.add(new)
        question = Question(("renamed", old), new, round(likeness, 3), choices)
        yield Hypothesis(kind, old, new, "question", _alike(was, after.sources[new])), question


def _floor(was: Source, now: Source) -> float:
    """The least likeness of a tool and a new one: asked where both are of one thing, by words that
    are known, or nearly are one name in any language."""
    near = alike_names(was.tool.name, now.tool.name) >= SAME_LETTERS
    return POSSIBLE if near or same_thing(was, now) else 0.0


def _grew(name: str, before: Toolbox, after: Toolbox) -> bool:
    """Whether a tool is new, or takes what it did not take."""
    if name not in before.sources:
        return True
    known = {param.name for param in before.sources[name].tool.params}
    return any(param.name not in known for param in after.sources[name].tool.params)


def _without_param(answers: Answers, one: Question) -> Answers:
    """The answers without what is only a question of a parameter."""
    _, tool, path = one.path
    table = {name: new for name, new in answers.params[tool].items() if name != path}
    words = answers.values.get(tool, {})
    kept = {place: w for place, w in words.items() if not _is_at(place, path)}
    return msgspec.structs.replace(
        answers,
        params={name: t for name, t in {**answers.params, tool: table}.items() if t},
        values={name: t for name, t in {**answers.values, tool: kept}.items() if t},
    )


def _contrary(answers: Answers, given: Answers) -> list[Question]:
    """Parameters that are said to have become one whose name says the opposite, as questions."""
    return [
        Question(("params", tool, path), new, 0.0, (new,))
        for tool, table in answers.params.items()
        for path, new in table.items()
        if path not in given.params.get(tool, {}) and _names_contradict(path, new)
    ]


def _names_contradict(path: str, new: str) -> bool:
    """Whether the names at the ends of two paths are opposites, as `from` and `to` are."""
    return contradict(*(each.rpartition(".")[2] for each in (path, new)))


def _is_at(place: str, path: str) -> bool:
    """Whether a place is at a path, or inside of it."""
    return place == path or place.startswith((f"{path}.", f"{path}["))


def _hangs_on(one: Question, asked: Iterable[Question]) -> bool:
    """Whether a question is moot until one of the parameter that it is of is answered."""
    return one.path[0] in ("params", "values", "param_units") and any(
        other.path[0] == "params"
        and other.path[1] == one.path[1]
        and other.path != one.path
        and _is_at(one.path[2], other.path[2])
        for other in asked
    )


def settled_likely(before: Side, after: Side, given: Answers | None = None) -> Settled:
    """What certainly or likely became what; what is only a question is not taken."""
    known = with_same_operations(given or Answers(), before.requests, after.requests)
    found = judged(before.toolbox(), after.toolbox(), known)
    return Settled(found.answers, found.questions, found.likely)


def _may_stand(was: Source, now: Source) -> bool:
    """Whether a tool may be proposed for another one."""
    if reads(now) or not reads(was):
        return True
    said = {said_effect(now)[0], *map(effect_of, tokens(now.tool.name))}
    return "write" not in said and _same_text(was, now)


def _is_known_to_stand(was: Source, now: Source) -> bool:
    """Whether a tool whose effect is not said is one that reads, and has only lost its verb."""
    if reads(now) or not reads(was):
        return True
    told = [[one.inputs, one.outputs, one.raw.get("annotations")] for one in (was, now)]
    return same(*told) and {*tokens(now.tool.name)} <= {*tokens(was.tool.name)}


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


def _likely_params(
    guessed: Iterable[Question], answers: Answers, before: Toolbox, after: Toolbox
) -> list[Question]:
    """The guesses of what parameters became that are likely.

    What became the same in another tool, where nothing is asked of it, is likely here as well.
    """
    asked = [one for one in guessed if one.path[0] == "params"]
    possible = [one for one in asked if _nothing_speaks_against(one, answers, before, after)]
    likely = [one for one in possible if _param_is_likely(one, answers, before, after)]
    told = {one.path for one in likely}
    strong = {one.path for one in likely if one.likeness >= NEAR}
    open_ = {one.path[1:] for one in asked if one.path not in strong}
    taken = {
        (path, new)
        for tool, table in answers.params.items()
        for path, new in table.items()
        if (tool, path) not in open_
    }
    return [
        one
        for one in possible
        if one.path in told or (one.likeness >= NEAR and (one.path[2], one.guess) in taken)
    ]


def _params_of(
    one: Question, answers: Answers, before: Toolbox, after: Toolbox
) -> tuple[Mapping[str, Param], Mapping[str, Param]]:
    """The parameters of the tool that a question is about, and of the one that it is now."""
    _, tool, path = one.path
    olds = {param.name: param for param in before.sources[tool].tool.params}
    news = next(
        known
        for old, new in pairs_of(answers, before, after)
        if old == tool
        # A deprecated tool has not changed: it is its successor in which a parameter is gone.
        if path not in (known := {param.name: param for param in after.sources[new].tool.params})
    )
    return olds, news


def _nothing_speaks_against(
    one: Question, answers: Answers, before: Toolbox, after: Toolbox
) -> bool:
    """Whether a parameter may have become another one by more than how alike they are."""
    path = one.path[2]
    if one.turned or not one.told_apart or _names_contradict(path, one.guess):
        return False
    olds, news = _params_of(one, answers, before, after)
    # in another unit of the same kind is asked apart, as `param_units`
    return _units(path, olds.get(path)).keys() == _units(one.guess, news.get(one.guess)).keys()


def _param_is_likely(one: Question, answers: Answers, before: Toolbox, after: Toolbox) -> bool:
    """Whether a guess of what a parameter became, against which nothing speaks, is likely."""
    if one.likeness >= CLOSE_PARAMS:
        return True
    olds, news = _params_of(one, answers, before, after)
    mine, theirs = olds.get(one.path[2]), news.get(one.guess)
    if mine is None or theirs is None:
        return False
    measured = _units(mine.name, mine).keys() & _units(theirs.name, theirs).keys()
    if one.likeness <= (POSSIBLE if measured or len(olds) == len(news) == 1 else NEAR):
        return False
    gone = [name for name, param in olds.items() if param.required and name not in news]
    came = [name for name, param in news.items() if param.required and name not in olds]
    alike = bool(kinds_of(mine.schema) & kinds_of(theirs.schema))
    return alike and gone == [mine.name] and came == [theirs.name]


def _units(name: str, param: Param | None) -> Mapping[str, str]:
    about = str(param.schema.get("description") or "") if param is not None else ""
    return units_in(name, about)


def _only_text(was: Source, now: Source, before: Toolbox, after: Toolbox) -> bool:
    """Whether two tools are described in the same words, and no other tool is."""
    text = tokens(was.tool.description)
    alone = [
        sum(tokens(one.tool.description) == text for one in side.sources.values())
        for side in (before, after)
    ]
    return _same_text(was, now) and alone == [1, 1]


def _same_text(was: Source, now: Source) -> bool:
    """Whether two tools are described in the same words, and in enough to tell anything."""
    text = tokens(was.tool.description)
    return len(text) >= TELLING and text == tokens(now.tool.description)


def _alike(was: Source, now: Source) -> str:
    """What two tools have in common, in words."""
    mine, theirs = ({p.name for p in source.tool.params} for source in (was, now))
    known = {plain_form(word) for word in tokens(now.tool.name)}
    shared = [word for word in map(plain_form, tokens(was.tool.name)) if word in known]
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
    for new, old in answers.beside.items():
        standing = "certain" if new in given.beside else "likely"
        why = f"{old} says that it is deprecated, and names {new}"
        found.append(Hypothesis("tool_superseded", old, new, standing, why))
    return found


def _choice(one: Several, value: str) -> str:
    if one.arguments:
        return f"{one.by} takes the name of a tool, and {one.arguments} its arguments"
    return f"the choice {value} of {one.by} is what the name said"

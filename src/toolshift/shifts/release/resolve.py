"""Settling what became what: answers that are given, names that are the same, then likeness."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from toolshift.core.canonical import same
from toolshift.core.names import unknown
from toolshift.core.tool import Param, Tool
from toolshift.interop.parts import kinds_of, members_of
from toolshift.interop.schema import flattened
from toolshift.interop.tools import Source, Toolbox
from toolshift.shifts.release.conversions import conversion_between, conversions, unit_gained
from toolshift.shifts.release.fields import Known, Records, Tables, check_results, settle_results
from toolshift.shifts.release.inputs import Side
from toolshift.shifts.release.mapping import (
    EVERY,
    UNDECIDED,
    Answers,
    WrongEntry,
    WrongMapping,
    as_key,
    decided,
)
from toolshift.shifts.release.match import (
    POSSIBLE,
    alike_names,
    alike_params,
    alike_tools,
    clashing,
    may_be_turned,
    pair,
    told_apart,
    weights_of,
)
from toolshift.shifts.release.merge import proposed_merges, proposed_splits, proposed_successors
from toolshift.shifts.release.moved import (
    opened_sides,
    proposed_moves,
    shown_paths,
    without_lead,
)
from toolshift.shifts.release.nested import FLAG, Meeting, form_of, nodes_in, path_to, words_of

Path = tuple[str, ...]


@dataclass(frozen=True)
class Question:
    """Something that a reader of the two lists cannot tell.

    Attributes:
        path: where its answer stands in a mapping file.
        guess: the likeliest answer.
        likeness: from 0 to 1.
        choices: what else it may be.
        tools: the old tools that it is of.
        also: other entries that have the same answer.
        turned: the guess may say the reverse of it, as booleans do.
        told_apart: more than a text that others have too, or a name, speaks for the guess.
    """

    path: Path
    guess: str
    likeness: float
    choices: tuple[str, ...]
    tools: tuple[str, ...] = ()
    also: tuple[Path, ...] = ()
    turned: bool = False
    told_apart: bool = True

    @property
    def note(self) -> str:
        """What to say beside the entry."""
        if self.path[0] in OF_VALUES:
            return OF_VALUES[self.path[0]] + (f" perhaps {self.guess}" if self.guess else "")
        others = ", ".join(dict.fromkeys(path[1] for path in self.also))
        if others:
            return f"perhaps {self.guess} (likeness {self.likeness:.2f}); of {others} too"
        if not self.guess and len(self.choices) == 1:
            return f'{self.choices[0]}, or "" where it is gone'
        if not self.guess:
            return f"one of {', '.join(self.choices[:20])}"
        if self.turned:
            table = ".".join(as_key(key) for key in ("values", *self.path[1:]))
            reverse = f'if it says the reverse, also [{table}] true = "false", false = "true"'
            return f"perhaps {self.guess} (likeness {self.likeness:.2f}); {reverse}"
        return f"perhaps {self.guess} (likeness {self.likeness:.2f})"


def _of_params(one: Any, other: Any, rivals: Iterable[Any]) -> tuple[bool, bool]:
    """Whether one parameter may be the other turned, and whether anything tells it from rivals."""
    if not isinstance(one, Param) or not isinstance(other, Param):
        return False, True
    return may_be_turned(one, other), told_apart(one, other, rivals)


def in_words(question: Question) -> str:
    """A question as a sentence, with the entry of the mapping that answers one of a value."""
    table, tool, *rest = question.path
    if table in OF_VALUES:
        keys = ".".join(as_key(key) for key in question.path[:-1])
        return f"{OF_VALUES[table]} [{keys}] {as_key(rest[-1])} = ..."
    if not question.guess and len(question.choices) == 1:
        return f"is {rest[-1]} {question.choices[0]} now, or gone?"
    if not question.guess:
        return f"which of {', '.join(question.choices[:20])} is {rest[-1]} now?"
    if table in OF_UNITS:
        return f"are values of {rest[-1]} converted, {question.guess}?"
    if question.turned:
        return f"has {rest[-1]} become {question.guess}, or is that its reverse?"
    return f"has {'.'.join(rest) or tool} become {question.guess}?"


OF_UNITS = ("units", "param_units")
"""Tables of conversions."""
OF_VALUES: Mapping[str, str] = {
    "given": "what do users say for it?",
    "returned": "what stands there in a result?",
    "pages": "how many are on a page?",
    "defaults": "what does the tool of today get where it is left out?",
}
"""Tables of values that no reading of two lists says, each with what is asked."""


@dataclass(frozen=True)
class Settled:
    """The whole mapping, `UNDECIDED` where there is a question.

    Attributes:
        answers: the mapping.
        questions: what is still to be asked.
        guessed: what would have been asked, had not the likeliest been taken.
    """

    answers: Answers
    questions: tuple[Question, ...]
    guessed: tuple[Question, ...] = ()


@dataclass
class _Draft:
    """The mapping as it grows."""

    accept: bool
    questions: list[Question] = field(default_factory=list)
    guessed: list[Question] = field(default_factory=list)
    there: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    """By an old tool and the path of a member that is gone, what stands where it was."""

    def match(
        self,
        path: Path,
        olds: Mapping[str, Any],
        news: Mapping[str, Any],
        given: Mapping[str, str],
        alike: Callable[[Any, Any], float],
        clash: Callable[[Any, Any], bool] = lambda old, new: False,
        possible: float = POSSIBLE,
    ) -> dict[str, str]:
        """What became what among things of one kind: old name to new, where they differ.

        Two that `clash` are never paired without an answer, parameters of which one may be the
        other turned are asked however alike they are, and two less alike than `possible` are no
        pair.
        """
        decided = {old: new for old, new in given.items() if new != UNDECIDED}
        taken = {*decided.values(), *(old for old in olds if old in news and old not in decided)}
        gone = {old: one for old, one in olds.items() if old not in decided and old not in news}
        come = {new: one for new, one in news.items() if new not in taken}
        left = dict(gone), dict(come)  # what is not paired for sure
        for guess in sorted(pair(gone, come, alike, possible), key=lambda guess: not guess.sure):
            one, other = olds[guess.old], news[guess.new]
            clashing = clash(one, other)
            rivals = [each for some in left for each in some.values() if each not in (one, other)]
            turned, told = _of_params(one, other, rivals)
            if guess.sure and not clashing and not turned:  # clear of rivals, so names tell
                decided[guess.old] = guess.new
                left[0].pop(guess.old), left[1].pop(guess.new)
                continue
            if self.accept and clashing:
                continue
            place, choices = (*path, guess.old), tuple(sorted(come))
            question = Question(
                place, guess.new, guess.likeness, choices, turned=turned, told_apart=told
            )
            decided[guess.old] = guess.new if self.accept else UNDECIDED
            (self.guessed if self.accept else self.questions).append(question)
        return decided

    def words(
        self,
        path: Path,
        was: Mapping[str, Any],
        now: Mapping[str, Any],
        given: Mapping[str, str],
        alike: Callable[[Any, Any], float],
    ) -> dict[str, str]:
        """What became of the words of a value; of a boolean beside choices, each is asked.

        So is each word that is gone and like none, as long as a word has come that is like none.
        """
        if (was == FLAG) == (now == FLAG):
            return self._with_unlike(path, was, now, self.match(path, was, now, given, alike))
        found = {old: new for old, new in given.items() if new != UNDECIDED}
        for word in was:
            plain = next((one for one in now if _means_the_same(word, one)), "")
            if plain:
                found.setdefault(word, plain)
            elif word not in found:
                asked = self.guessed if self.accept else self.questions
                asked.append(Question((*path, word), "", 0.0, tuple(now)))
        return found

    def _with_unlike(
        self, path: Path, was: Iterable[str], now: Iterable[str], found: dict[str, str]
    ) -> dict[str, str]:
        """The words that were found; those that no likeness tells are asked, without a guess."""
        mine, theirs = set(was), set(now)
        free = sorted(theirs - {*found.values(), *(mine - found.keys())})
        gone = sorted(mine - theirs - found.keys())
        asked = self.guessed if self.accept else self.questions
        for word in gone[: len(free)]:
            asked.append(Question((*path, word), "", 0.0, tuple(free)))
        return found

    def ask(self, path: Path, guess: str, likeness: float, choices: tuple[str, ...]) -> str:
        """Asks for one entry; returns what stands there until it is answered."""
        question = Question(path, guess, likeness, choices)
        (self.guessed if self.accept else self.questions).append(question)
        return guess if self.accept else UNDECIDED

    def add_to(self, first: Path, path: Path) -> None:
        """Says that the answer at a path is that of a question, where that is asked."""
        for asked in (self.questions, self.guessed):
            for place, one in enumerate(asked):
                if one.path == first:
                    asked[place] = replace(one, also=(*one.also, path))


_SWITCH = ({"true", "yes", "on", "enabled"}, {"false", "no", "off", "disabled"})
"""The words of a switch, which leave no doubt."""


def _means_the_same(one: str, other: str) -> bool:
    return any({one.lower(), other.lower()} <= words for words in _SWITCH)


def settle(old: Side, new: Side, given: Answers, accept: bool = False) -> Settled:
    """Settles the mapping between two sides."""
    return settle_tools(old.toolbox(), new.toolbox(), given, accept)


def settle_tools(before: Toolbox, after: Toolbox, given: Answers, accept: bool = False) -> Settled:
    """Settles the mapping between two lists of tools; see `settle`."""
    check_answers(given, before, after)
    given = _with_proposals(decided(given), before, after)
    draft = _Draft(accept)
    olds, news = _to_pair(given, before, after)
    weights = weights_of([*before.sources, *after.sources])
    renamed = draft.match(
        ("renamed",),
        {name: before.sources[name] for name in olds},
        {name: after.sources[name] for name in news},
        given.renamed,
        lambda one, other: alike_tools(one, other, weights),
        clash=clashing,
    )
    partners = pairs_of(msgspec.structs.replace(given, renamed=renamed), before, after)
    given = _with_moves(given, before, after, partners)
    before, after = opened_sides(given.params, partners, (before, after))
    given = _of_each(given, before, after, partners)
    tables = {
        **_settled_inputs(draft, given, before, after, partners),
        **_settled_results(draft, given, before, after, partners),
    }
    to = {new for new in renamed.values() if new not in ("", UNDECIDED)}
    doubtful = {q.guess for q in draft.questions if q.path[0] == "renamed"}
    kept = {name for name in olds if name in news and name not in renamed}
    answers = msgspec.structs.replace(
        given,
        renamed={a: b for a, b in renamed.items() if b},
        removed=[n for n in before.sources if n in given.removed or _gone(n, olds, kept, renamed)],
        added=[
            n
            for n in after.sources
            if n in given.added or (n in news and n not in to | doubtful | kept)
        ],
        **{name: {k: v for k, v in table.items() if v} for name, table in tables.items()},
    )
    return Settled(answers, tuple(draft.questions), tuple(draft.guessed))


def _with_proposals(given: Answers, before: Toolbox, after: Toolbox) -> Answers:
    """The answers with what two lists say themselves of tools that merge, split or stay on."""
    merged = proposed_merges(before, after, given)
    given = msgspec.structs.replace(given, merged={**given.merged, **merged})
    split = proposed_splits(before, after, given)
    given = msgspec.structs.replace(given, split={**given.split, **split})
    beside = proposed_successors(before, after, given)
    return msgspec.structs.replace(given, beside={**given.beside, **beside})


def _to_pair(
    given: Answers, before: Toolbox, after: Toolbox
) -> tuple[dict[str, Tool], dict[str, Tool]]:
    """The old and the new tools of which no answer says that they are of another sort."""
    several = {name for one in given.merged.values() for name in one.tools.values()}
    spent = {name for one in given.split.values() for name in one.tools}
    finders = {one.finder for one in given.merged.values() if one.finder}
    taken = {*given.added, *given.merged, *given.beside, *spent, *finders}
    olds = _without(before.tools, {*given.removed, *several, *given.split})
    return olds, _without(after.tools, taken)


def _settled_inputs(
    draft: _Draft,
    given: Answers,
    before: Toolbox,
    after: Toolbox,
    partners: Iterable[tuple[str, str]],
) -> dict[str, dict[str, Any]]:
    """The tables of parameters, of their values and of their units."""
    params: dict[str, Any] = {}
    values: dict[str, Any] = {}
    units: dict[str, dict[str, str]] = {}
    inside = {old for m in given.merged.values() if m.arguments for old in m.tools.values()}
    for one, other in partners:
        if one in inside:  # what it takes is not said in the new list
            params[one] = dict(given.params.get(one, {}))
            continue
        _settle_pair(draft, given, before, after, one, other, (params, values))
        told = given.param_units.get(one, {})
        sources = before.sources[one], after.sources[other]
        _settle_units(draft, told, *sources, params[one], units.setdefault(one, {}))
    for (one, path), there in draft.there.items():
        new = given.params[one][path]
        if new not in ("", UNDECIDED, *there):
            raise WrongEntry(("params", one, path), unknown("member there", new, there))
    return {"params": params, "values": values, "param_units": units}


def _settled_results(
    draft: _Draft,
    given: Answers,
    before: Toolbox,
    after: Toolbox,
    partners: Iterable[tuple[str, str]],
) -> dict[str, dict[str, Any]]:
    """The tables of fields of results, of their values and of their units."""
    results: Tables = ({}, {}, {})
    known: Known = {}
    records = Records()
    for one, other in partners:
        if given.beside.get(other) == one:
            continue  # its results are told by what the tool that is still there returns
        sides = before.sources[one], after.sources[other]
        check_results(given, *sides)
        settle_results(draft, given, *sides, results, known, records)
    return dict(zip(("fields", "result_values", "units"), results, strict=True))


def _with_moves(
    given: Answers, before: Toolbox, after: Toolbox, partners: Iterable[tuple[str, str]]
) -> Answers:
    """The answers with the arguments that moved into an object, or out of one."""
    inside = {old for one in given.merged.values() if one.arguments for old in one.tools.values()}
    partners = list(partners)
    params = {tool: dict(table) for tool, table in given.params.items()}
    alone = [old for old, _ in partners]
    for old, new in partners:
        if old not in inside:
            source, target = before.sources[old], after.sources[new]
            _check_paths(given, source, target)
            if old in given.params:
                members = _members_in(target)
                if alone.count(old) == 1:
                    _check_members(given, source, target, members)
                params[old] = _by_own_names(params[old], source, members)
            known = params.get(old, {})
            moves = proposed_moves(source, target, known)
            if moves:
                params[old] = {**known, **moves}
    return msgspec.structs.replace(given, params=params)


def _members_in(target: Source) -> dict[str, str]:
    """The own names of what arguments declare at every depth, by their paths."""
    form = form_of(target)
    found = {name: name for name in form.params}
    for path, node in nodes_in(form):
        found |= {path_to(path, name): name for name in members_of(node)}
    return found


def _by_own_names(
    table: Mapping[str, str], source: Source, members: Mapping[str, str]
) -> dict[str, str]:
    """The answers with members inside of lists by their own names, given by their paths."""
    own = {param.name for param in source.tool.params}
    inside = {path for path in table if path not in own and ("[]" in path or ".*" in path)}
    return {path: members.get(new, new) if path in inside else new for path, new in table.items()}


def _check_members(
    given: Answers, source: Source, target: Source, members: Mapping[str, str]
) -> None:
    """Checks that what an argument, or a member of one, is said to be called now is there.

    Of alternatives of the arguments as a whole not all names are known.
    """
    if flattened(target.inputs).keys() & {"anyOf", "oneOf"}:
        return
    old = source.tool.name
    own = {param.name for param in source.as_it_came.tool.params}
    every = {*members, *members.values(), *shown_paths(target)}
    outside = {path for path in members if "[]" not in path and ".*" not in path}
    for path, new in given.params.get(old, {}).items():
        known = outside | {*shown_paths(target)} if path in own else every
        if new not in ("", UNDECIDED) and new not in known:
            what = "parameter" if path in own else "part"
            raise WrongEntry(
                ("params", old, path), unknown(f"{what} of {target.tool.name}", new, known)
            )


def _check_paths(given: Answers, source: Source, target: Source) -> None:
    """Checks that what a parameter is said to be inside of an object now is there."""
    known = shown_paths(target)
    tops = {param.name for param in target.as_it_came.tool.params}
    for name, new in given.params.get(source.tool.name, {}).items():
        if "." in new and new.partition(".")[0] in tops and new not in known:
            of = f"parameter of {target.tool.name}"
            raise WrongMapping(f"{name}: {unknown(of, new, known)}")


def _of_each(
    given: Answers, before: Toolbox, after: Toolbox, partners: Iterable[tuple[str, str]]
) -> Answers:
    """The answers with those for all tools as ones for each: what users state for what is required
    now, and what an old tool gets for what may be left out now, or has to be.
    """
    tables = [
        {tool: dict(table) for tool, table in each.items() if tool != EVERY}
        for each in (given.given, given.defaults)
    ]
    for old, new in partners:
        was, now = before.sources[old], after.sources[new]
        for name, value in given.given.get(EVERY, {}).items():
            if name in _required(now) - _required(was):
                tables[0].setdefault(new, {}).setdefault(name, value)
        for name, value in given.defaults.get(EVERY, {}).items():
            if name in {p.name for p in was.tool.params} - _required(now):
                tables[1].setdefault(old, {}).setdefault(name, value)
    return msgspec.structs.replace(given, given=tables[0], defaults=tables[1])


def _required(source: Source) -> set[str]:
    return {param.name for param in source.tool.params if param.required}


def _gone(name: str, olds: Collection[str], kept: Collection[str], to: Mapping[str, str]) -> bool:
    return name in olds and name not in kept and not to.get(name)


def _without(tools: Iterable[Tool], names: Collection[str]) -> dict[str, Tool]:
    return {tool.name: tool for tool in tools if tool.name not in names}


def pairs_of(answers: Answers, before: Toolbox, after: Toolbox) -> list[tuple[str, str]]:
    """Every old tool with each new tool that stands for it, once each."""
    merged = [(name, new) for new, one in answers.merged.items() for name in one.tools.values()]
    several = list(dict.fromkeys(merged))
    several += [(old, new) for old, one in answers.split.items() for new in one.tools]
    settled = {name for pair in several for name in pair} | {*answers.removed, *answers.added}
    settled |= {one.finder for one in answers.merged.values()}
    besides = [(old, new) for new, old in answers.beside.items()]
    moved = {a: b for a, b in answers.renamed.items() if b not in ("", UNDECIDED)}
    taken = set(moved.values())
    same = [
        (name, name)
        for name in before.sources
        if name in after.sources and name not in settled | taken and name not in answers.renamed
    ]
    return [*same, *moved.items(), *several, *besides]


def _settle_pair(
    draft: _Draft,
    given: Answers,
    before: Toolbox,
    after: Toolbox,
    old: str,
    new: str,
    tables: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    """Settles the parameters and their values of a tool that goes on."""
    params, values = tables
    mine, theirs = before.sources[old].tool, after.sources[new].tool
    olds, news = ({p.name: p for p in tool.params} for tool in (mine, theirs))
    every = {a: b for a, b in given.params.get(EVERY, {}).items() if a not in news}
    every = {a: b for a, b in every.items() if not b or b in news}
    known = {**every, **given.params.get(old, {})}
    answers = {name: now for name, now in known.items() if name in olds}
    fixed = given.defaults.get(old, {})
    free = {name: one for name, one in olds.items() if name not in fixed or name in news}
    likeness = _lone_ones_too(
        [p for n, p in free.items() if n not in news], [p for n, p in news.items() if n not in olds]
    )
    moved = draft.match(("params", old), free, news, answers, likeness)
    params[old] = {**params.get(old, {}), **moved}
    for name, param in olds.items():
        partner = news.get(moved.get(name, name))
        if partner is None:
            continue
        was, now = words_of(param.schema, partner.schema)
        answers = given.values.get(old, {}).get(name, {})
        if old not in given.split and old not in given.beside.values():
            _check_words(("values", old, name), was, now, answers)
        if (was and now) or answers:
            choice = draft.words(("values", old, name), was, now, answers, alike_names)
            if choice:
                values.setdefault(old, {})[name] = choice
    _settle_inside(draft, given, before.sources[old], after.sources[new], params, values)


def _check_words(
    spot: Path, was: Collection[str], now: Collection[str], answers: Mapping[str, str]
) -> None:
    """Checks that answers speak of choices that are there, on each side that lists some."""
    for word, new in answers.items():
        if was and word not in was:
            raise WrongEntry((*spot, word), unknown("choice", word, was))
        if now and new not in ("", UNDECIDED, *now):
            raise WrongEntry((*spot, word), unknown("choice", new, now))


def _settle_units(
    draft: _Draft,
    given: Mapping[str, str],
    source: Source,
    target: Source,
    params: Mapping[str, str],
    table: dict[str, str],
) -> None:
    """Settles the units and formats in which the values of parameters are said."""
    old = source.tool.name
    news = {param.name: param for param in target.tool.params}
    table |= given
    for param in source.tool.params:
        now = news.get(params.get(param.name, param.name))
        both = (_value(param), _value(now)) if now is not None else None
        how = (conversion_between(*both) or unit_gained(*both)) if both else ""
        if param.name in given and given[param.name] not in ("", UNDECIDED, *conversions()):
            spot = ("param_units", old, param.name)
            raise WrongEntry(spot, unknown("conversion", given[param.name], [*conversions()]))
        if how and param.name not in table:
            path = ("param_units", old, param.name)
            table[param.name] = draft.ask(path, how, 0.6, (how,))


def _value(param: Param) -> tuple[str, Mapping[str, Any], frozenset[str]]:
    bare = without_lead(param)
    return bare.name, bare.schema, kinds_of(bare.schema) - {"null"}


def _settle_inside(
    draft: _Draft,
    given: Answers,
    source: Source,
    target: Source,
    params: dict[str, Any],
    values: dict[str, Any],
) -> None:
    """Settles what is inside of the arguments of a tool that goes on; see `nested`."""
    old = source.tool.name
    known = {**given.params.get(old, {})}
    tables = given.values.get(old, {})
    found = {path: now for path, now in known.items() if path not in params[old]}
    if same(source.inputs, target.inputs):
        params[old] |= found
        return
    own = {param.name for param in source.tool.params}

    def names(gone: Mapping[str, Param], come: Mapping[str, Param]) -> dict[str, str]:
        free = {path: one for path, one in gone.items() if path not in own}
        answers = {path: known[path] for path in free if path in known}
        likeness = _lone_ones_too(
            [p for n, p in free.items() if n not in come],
            [p for n, p in come.items() if n not in gone],
        )
        moved = draft.match(("params", old), free, come, answers, likeness)
        for path in answers:
            here = (one for one in meeting.met if path_to(one.path, free[path].name) == path)
            there = [members_of(forms[1].whole(one.new)) for one in here]
            draft.there.setdefault((old, path), set()).update(come, *there)
        found.update(moved)
        return moved

    def words(
        path: str,
        was: Mapping[str, Any],
        now: Mapping[str, Any],
        alike: Callable[[Any, Any], float],
    ) -> dict[str, str]:
        if path in own:
            return {**values.get(old, {}).get(path, {})}
        choice = draft.words(("values", old, path), was, now, tables.get(path, {}), alike)
        if choice:
            values.setdefault(old, {})[path] = choice
        return choice

    forms = form_of(source), form_of(target)
    meeting = Meeting(*forms, names, words)
    for name, node in forms[0].params.items():
        now = params[old].get(name, name)
        if now in forms[1].params:
            meeting.walk(node, forms[1].params[now], name, now)
    params[old] |= found


def _lone_ones_too(gone: Sequence[Param], come: Sequence[Param]) -> Callable[[Param, Param], float]:
    """The likeness of parameters, by which lone ones are asked that neither name nor text pairs.

    So is the one boolean that is gone beside the one parameter with choices that has come, and the
    reverse; and the one required parameter that is gone beside the one of its type that has come.
    """
    flags = [(a, b) for a in gone for b in come if FLAG in words_of(a.schema, b.schema)]
    needed = [a for a in gone if a.required], [b for b in come if b.required]
    lone = flags if len(flags) == 1 else []
    if [len(each) for each in needed] == [1, 1]:
        (old,), (new,) = needed
        lone = [*lone, (old, new)] if kinds_of(old.schema) & kinds_of(new.schema) else lone

    def alike(one: Param, other: Param) -> float:
        likeness = alike_params(without_lead(one), without_lead(other))
        return max(likeness, POSSIBLE if (one, other) in lone else 0.0)

    return alike


def check_answers(given: Answers, before: Toolbox, after: Toolbox) -> None:
    """Checks that answers speak of tools that are there."""
    split = {name for one in given.split.values() for name in one.tools}
    merged = {name for one in given.merged.values() for name in one.tools.values()}
    finders = {one.finder for one in given.merged.values() if one.finder}
    later = {new for new in given.renamed.values() if new not in ("", UNDECIDED)}
    of_all = {EVERY} & {*given.params, *given.given, *given.defaults}
    olds = {*given.params, *given.defaults, *given.values, *given.split} - of_all
    olds |= {*given.fields, *given.result_values, *given.units, *given.param_units}
    olds |= {*given.renamed, *given.removed, *merged, *given.beside.values()}
    news = {*later, *given.added, *given.merged, *given.beside, *split, *finders}
    news |= {*given.given, *given.returned, *given.pages} - of_all
    for names, box, side in ((olds, before, "old"), (news, after, "new")):
        for name in sorted(names - set(box.sources)):
            raise WrongMapping(f"{unknown(f'{side} tool', name, box.sources)}")
    twice = [new for new in later if list(given.renamed.values()).count(new) > 1]
    if twice:
        raise WrongMapping(f"two tools are renamed to {twice[0]}; say it as `merged`")
    moved = {*given.renamed, *given.removed, *given.split, *merged}
    for old, new in given.renamed.items():
        if new in before.sources and new != old and new not in moved:
            raise WrongMapping(
                f"{new} stands for the {new} of before already, so {old} cannot be "
                f'renamed to it: say both as `merged`, or {old} = "" where nothing stands for it'
            )
    needed = [(new, name) for new, one in given.merged.items() for name in (one.by, one.arguments)]
    needed += [(new, name) for new, table in given.given.items() for name in table]
    _check_inside(needed, after)
    for tables in (given.params, given.param_units, given.values):
        _check_inside([(old, name) for old, table in tables.items() for name in table], before)


def _check_inside(needed: Iterable[tuple[str, str]], box: Toolbox) -> None:
    """Checks that answers speak of parameters that are there, or of what is inside of them."""
    for tool, name in needed:
        if tool == EVERY:
            known = {param.name for each in box.tools for param in each.params}
            if name not in known:
                raise WrongMapping(f"{unknown('parameter of all tools', name, known)}")
            continue
        source = box.sources[tool]
        known = {param.name for param in source.tool.params}
        if name and name not in known:
            known |= {*(path for path, _ in nodes_in(form_of(source))), *_members_in(source)}
        if name and name not in known:
            raise WrongMapping(f"{unknown(f'parameter of {tool}', name, known)}")


def answered(given: Answers, question: Question, answer: Any) -> Answers:
    """The answers with one more."""
    raw = msgspec.to_builtins(given)
    table = raw
    for key in question.path[:-1]:
        table = table.setdefault(key, {})
    table[question.path[-1]] = answer
    if question.path[0] == "renamed" and not answer:
        del table[question.path[-1]]
        raw["removed"] = [*raw.get("removed", []), question.path[-1]]
    return msgspec.convert(raw, Answers)

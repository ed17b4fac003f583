"""Several old tools that became one, or one that became several: a choice says which.

A **discriminator** is a parameter whose choices are what the names of the old tools said:
`tab_list`, `tab_new` and `tab_close` became `tabs(action: list | new | close)`. A **dispatcher**
takes the name of a tool and its arguments: `execute(tool, arguments)`, beside a finder that lists
what there is. Only old tools that are gone are looked at, and only a parameter that is new.

A **successor** stands beside the tool that it is for: that one says now that it is deprecated, and
names the new one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from toolshift.core.tool import Param
from toolshift.interop.schema import choices_of
from toolshift.interop.tools import Source, Toolbox
from toolshift.shifts.release.mapping import UNDECIDED, Answers, Several
from toolshift.shifts.release.match import clashing, known_words, said_effect, words

FEWEST_DISPATCHED = 3
_NAMING = frozenset(words("tool operation action command function method endpoint api"))
_CALLING = frozenset(words("execute call run invoke use dispatch perform do request"))
_CARRYING = frozenset(words("argument arg param parameter input payload body"))
_FINDING = frozenset(
    words("search find list discover describe explore browse tool operation action catalog help")
)
_READ = "(read)"


def proposed_merges(before: Toolbox, after: Toolbox, given: Answers) -> dict[str, Several]:
    """The new tools that seem to stand for several old ones."""
    gone, come = _unsettled(before, after, given)
    merges = dict(_by_choice(gone, come, before))
    gone = {
        n: s for n, s in gone.items() if all(n not in f.tools.values() for f in merges.values())
    }
    if not merges:
        merges |= _dispatched(gone, come, before)
    return merges


def _unsettled(
    before: Toolbox, after: Toolbox, given: Answers
) -> tuple[dict[str, Source], dict[str, Source]]:
    """The old tools that are gone, and the new ones, of which no answer speaks."""
    decided = {*given.removed, *given.split}
    decided |= {old for one in given.merged.values() for old in one.tools.values()}
    decided |= {old for old, new in given.renamed.items() if new != UNDECIDED}
    gone = {n: s for n, s in before.sources.items() if n not in after.sources and n not in decided}
    taken = {*given.added, *given.merged, *given.renamed.values(), *given.beside}
    taken |= {new for one in given.split.values() for new in one.tools}
    return gone, {name: source for name, source in after.sources.items() if name not in taken}


def proposed_successors(before: Toolbox, after: Toolbox, given: Answers) -> dict[str, str]:
    """The new tools that stand beside the old one that they are for."""
    _, come = _unsettled(before, after, given)
    come = {name: source for name, source in come.items() if name not in before.sources}
    found: dict[str, str] = {}
    for old, source in before.sources.items():
        now = after.sources.get(old)
        if now is None or not _is_deprecated(now):
            continue
        named = [new for new in come if _mentions(now, new) and not _mentions(source, new)]
        fitting = [new for new in named if reads(come[new]) or not reads(source)]
        if len(named) == 1 and fitting:
            found.setdefault(fitting[0], old)
    return found


def reads(source: Source) -> bool:
    """Whether a tool is known to read: by its hint, else by its verbs, all of them of reading."""
    return said_effect(source)[0] == "read"


_DEPRECATED = frozenset(words("deprecated obsolete superseded replaced legacy"))


def _is_deprecated(source: Source) -> bool:
    """Whether a tool says that it is to be used no more."""
    flagged = source.raw.get("deprecated") is True
    return flagged or bool(_DEPRECATED & {*known_words(source.tool.description)})


def _mentions(source: Source, name: str) -> bool:
    """Whether a description has the name of another tool as a word."""
    return bool(re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", source.tool.description))


def proposed_splits(before: Toolbox, after: Toolbox, given: Answers) -> dict[str, Several]:
    """The old tools that seem to have become several new ones: merges, read backwards."""
    gone, come = _unsettled(before, after, given)
    come = {name: source for name, source in come.items() if name not in before.sources}
    splits = _by_choice(come, gone, after)
    return {
        old: Several(one.by, {new: value for value, new in one.tools.items()})
        for old, one in splits
    }


# -- discriminators --------------------------------------------------------------------------------


def _by_choice(
    gone: Mapping[str, Source], come: Mapping[str, Source], before: Toolbox
) -> Iterator[tuple[str, Several]]:
    left = dict(gone)
    said = {
        name: [c for param in _new_params(source, before) for c in choices_of(param.schema)]
        for name, source in come.items()
    }
    for name, source in come.items():
        for param in _new_params(source, before):
            others = frozenset(c for n, each in said.items() if n != name for c in each)
            tools = _choices_that_were_tools(name, param, left, source, others)
            if tools:
                yield name, Several(param.name, tools)
                left = {n: s for n, s in left.items() if n not in tools.values()}
                break


def _new_params(source: Source, before: Toolbox) -> list[Param]:
    """The parameters of a new tool that it had not before."""
    old = before.sources.get(source.tool.name)
    known = {param.name for param in old.tool.params} if old else set()
    return [param for param in source.tool.params if param.name not in known]


def _choices_that_were_tools(
    name: str, param: Param, gone: Mapping[str, Source], target: Source, others: frozenset[str]
) -> dict[str, str]:
    """For each choice the old tool that it was; only if there are two or more.

    `others` are choices of other new tools: an old tool whose very name is one of them is theirs.
    """
    choices = choices_of(param.schema)
    if len(choices) < 2:
        return {}
    reads = said_effect(target) == ("read", True)
    nouns = _other_nouns(gone, choices, name) if others.isdisjoint(choices) else frozenset()
    best: dict[str, tuple[int, str]] = {}
    for old, source in gone.items():
        if (reads and clashing(source, target)) or (old in others and old not in choices):
            continue
        fitting = [
            (_shared(old, one), one)
            for one in choices
            if _names(old, one, name) or _beside(old, one, name) in nouns
        ]
        if fitting:
            count, choice = max(fitting)
            best[choice] = max(best.get(choice, (0, "")), (count, old))
    if len(best) < 2:
        return {}
    return {choice: best[choice][1] for choice in choices if choice in best}


def _names(old: str, choice: str, new: str) -> bool:
    """Whether the name of an old tool says a choice, and nothing else that the new one does not."""
    have, wanted = _stems(old), _stems(choice)
    rest = have - wanted
    return (
        bool(wanted) and wanted <= have and rest <= _stems(new) and (bool(rest) or len(wanted) > 1)
    )


def _beside(old: str, choice: str, new: str) -> frozenset[str]:
    """What the name of an old tool says beside a choice of several words and the name of the new
    tool; nothing where it does not say the choice, or all of it."""
    have, wanted = _stems(old), _stems(choice)
    return have - wanted - _stems(new) if len(wanted) > 1 and wanted <= have else frozenset()


def _other_nouns(
    gone: Mapping[str, Source], choices: Iterable[str], new: str
) -> frozenset[frozenset[str]]:
    """What several old tools that differ in the choice alone call that which the new one calls
    otherwise: the guide in `get_creation_guide` and `get_closing_guide`."""
    told = {(_beside(old, one, new), one) for old in gone for one in choices}
    counted = Counter(beside for beside, _ in told if beside)
    return frozenset(beside for beside, count in counted.items() if count > 1)


def _shared(old: str, choice: str) -> int:
    """How much of a name a choice says; the very word counts more than its like."""
    return 2 * len({*known_words(old)} & {*known_words(choice)}) + len(_stems(choice))


@lru_cache(maxsize=8192)
def _stems(name: str) -> frozenset[str]:
    """The words of a name without plurals; one for all verbs of reading."""
    reading = {"get", "list", "read", "fetch", "show", "view", "retrieve"}
    bare = {word.removesuffix("s") if len(word) > 3 else word for word in words(name)}
    return frozenset(_READ if word in reading else word for word in bare)


# -- dispatchers -----------------------------------------------------------------------------------


def _dispatched(
    gone: Mapping[str, Source], come: Mapping[str, Source], before: Toolbox
) -> dict[str, Several]:
    if len(gone) < FEWEST_DISPATCHED:
        return {}
    for name, source in come.items():
        params = _new_params(source, before)
        naming = next((p for p in params if _says_which(p, name)), None)
        carrying = next((p for p in params if p is not naming and _carries(p)), None)
        if naming is None or carrying is None:
            continue
        finder = next((n for n in come if n != name and set(words(n)) & _FINDING), "")
        choices = choices_of(naming.schema)
        named = {c: old for old in gone for c in choices if words(c) == words(old)}
        if not choices and finder and set(words(name)) & _CALLING:
            named = {old: old for old in gone}
        if len(named) >= FEWEST_DISPATCHED:
            return {name: Several(naming.name, named, carrying.name, finder)}
    return {}


def _says_which(param: Param, tool: str) -> bool:
    """Whether a parameter takes the name of another tool."""
    plain = param.name == "name" and bool(set(words(tool)) & _NAMING)
    return _holds(param, "string") and (plain or _is_called(param, _NAMING))


def _is_called(param: Param, known: frozenset[str]) -> bool:
    return bool({word.removesuffix("s") for word in words(param.name)} & known)


def _carries(param: Param) -> bool:
    """Whether a parameter takes the arguments of another tool, as an object or as JSON."""
    return _is_called(param, _CARRYING) and (_holds(param, "object") or _holds(param, "string"))


def _holds(param: Param, kind: str) -> bool:
    declared = param.schema.get("type")
    return declared == kind or declared is None or (isinstance(declared, list) and kind in declared)

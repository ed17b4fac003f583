"""Arguments that moved into an object, or out of one, between two lists of tools.

In a mapping such a move is an entry of `[params.TOOL]` with a path: `machine_id =
"ticket.machine_id"`, or the reverse. The objects that such entries lead into are laid open on both
sides (`interop.opened`), and a moved argument is then one with another name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from toolshift.core.tool import Param
from toolshift.interop.opened import inside, leads_to, members_at, opened_source
from toolshift.interop.parts import kinds_of
from toolshift.interop.tools import Source, Toolbox
from toolshift.shifts.release.mapping import UNDECIDED
from toolshift.shifts.release.match import known_words

Pairs = Iterable[tuple[str, str]]
Boxes = tuple[Toolbox, Toolbox]


def proposed_moves(was: Source, now: Source, known: Mapping[str, str]) -> dict[str, str]:
    """The arguments that stand inside of an object now, or did: old path to new one.

    A move is seen where the name has the same words and the types meet, at one place alone.
    """
    olds, news = _plain(was, now), _plain(now, was)
    into = _places(olds, now, was)
    out = {there: here for here, there in _places(news, was, now).items()}
    moves = {**into, **out}
    return {old: new for old, new in moves.items() if old not in known}


def _plain(source: Source, other: Source) -> list[Param]:
    """The parameters that the other tool has not."""
    names = {param.name for param in other.tool.params}
    return [param for param in source.tool.params if param.name not in names]


def _places(params: list[Param], there: Source, here: Source) -> dict[str, str]:
    """For each parameter the one member of an object on the other side that may be it.

    An object that goes on has only its new members looked at. Where an object is gone, it may have
    become the one that is looked at as a whole, and nothing has moved.
    """
    known = {param.name: param for param in here.tool.params}
    wholes = [{_bare(one) for one in members_at(param)} for param in params]
    found: dict[str, list[str]] = defaultdict(list)
    for param in there.tool.params:
        inner = list(inside(param))
        if any(whole & {_bare(one) for one in inner} for whole in wholes):
            continue
        before = {one.name for one in inside(known[param.name])} if param.name in known else set()
        for one in params:
            found[one.name] += [
                each.name
                for each in inner
                if each.name not in before and _named_alike(each, one) and _meet(each, one)
            ]
    return {name: places[0] for name, places in found.items() if len(places) == 1}


def _named_alike(member: Param, param: Param) -> bool:
    """Whether a member has the name of a parameter, or its path has: `operator.id`."""
    return known_words(param.name) in (_bare(member), known_words(member.name))


def _bare(param: Param) -> tuple[str, ...]:
    return known_words(param.name.rpartition(".")[2])


def _meet(one: Param, other: Param) -> bool:
    return bool(kinds_of(one.schema) & kinds_of(other.schema))


def opened_sides(params: Mapping[str, Mapping[str, str]], pairs: Pairs, boxes: Boxes) -> Boxes:
    """Both lists, with the objects laid open that entries of `params` lead into or out of."""
    pairs = list(pairs)
    before, after = ({name: s.as_it_came for name, s in box.sources.items()} for box in boxes)
    olds: dict[str, dict[str, None]] = defaultdict(dict)
    news: dict[str, dict[str, None]] = defaultdict(dict)
    for old, new in pairs:
        for was, now in params.get(old, {}).items():
            for lead in _into(before[old], after[new], was, now):
                news[new][lead] = None
            for lead in _out_of(before[old], after[new], was, now, params.get(old, {})):
                olds[old][lead] = None
    if not olds and not news:
        return boxes
    for _ in range(2):  # what is laid open on one side is so on the other, if it is there too
        for old, new in pairs:
            olds[old] |= dict.fromkeys(_too(before[old], news[new]))
            news[new] |= dict.fromkeys(_too(after[new], olds[old]))
    first, second = (
        Toolbox(box.dialect, [opened_source(s, leads.get(n, ())) for n, s in sources.items()])
        for box, sources, leads in zip(boxes, (before, after), (olds, news), strict=True)
    )
    return first, second


def _into(was: Source, now: Source, old: str, new: str) -> tuple[str, ...]:
    """The objects of the new tool into which an argument has moved."""
    if new in ("", UNDECIDED) or new in _names(now) or "." not in new:
        return ()
    return leads_to(new) if new in _paths(now) else ()


def _out_of(
    was: Source, now: Source, old: str, new: str, table: Mapping[str, str]
) -> tuple[str, ...]:
    """The objects of the old tool out of which an argument has moved.

    Inside of an object that goes on, the new name alone is that of a member.
    """
    if new in ("", UNDECIDED) or old in _names(was) or "." not in old:
        return ()
    top = old.partition(".")[0]
    partner = next((p for p in now.tool.params if p.name == table.get(top, top)), None)
    stays = partner is not None and any(
        one.name.rpartition(".")[2] == new for one in inside(partner)
    )
    moves = new in _names(now) or new in _paths(now)
    return leads_to(old) if moves and not stays and old in _paths(was) else ()


def _too(source: Source, leads: Iterable[str]) -> Iterator[str]:
    objects = {param.name for param in source.tool.params if members_at(param)}
    yield from (lead for lead in leads if lead in objects | _paths(source))


def _names(source: Source) -> set[str]:
    return {param.name for param in source.tool.params}


def _paths(source: Source) -> set[str]:
    return {one.name for param in source.tool.params for one in inside(param)}


def shown_paths(source: Source) -> set[str]:
    """The names of the parameters of a tool and of all that is inside of its objects."""
    return _names(source.as_it_came) | _paths(source.as_it_came)


def without_lead(param: Param) -> Param:
    """A parameter by its own name, without the objects that it stands in."""
    return Param(param.name.rpartition(".")[2], param.fact, param.schema, param.required)

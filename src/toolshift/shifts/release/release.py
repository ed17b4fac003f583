"""The change of a scene: the agent sees the new tools, and the old ones carry them out.

Every new tool that stands for old ones runs a small program over them, as tools do that other
shifts have merged or split (`shifts.rewiring`); an unchanged tool stays what it was. A new tool
that stands for none is shown, and says that it is not available when it is called. An old tool that
stands behind none is gone: a call of it is a call of an unknown tool.

A task that needs a tool that is gone has become impossible: the right end is then a refusal with
the reason "tool_unavailable", which is plain from the start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property, lru_cache
from random import Random
from typing import Any

import jsonschema_rs
import msgspec

from toolshift.core.ask import Ask
from toolshift.core.canonical import same
from toolshift.core.layer import Below, Memory
from toolshift.core.scene import Outcome, Scene
from toolshift.core.shift import Change, NotApplicable, Severity
from toolshift.core.solver import Untraceable
from toolshift.core.step import Step
from toolshift.core.tool import Field, Param, Result, Tool, error, first_fault
from toolshift.core.values import as_list, as_text
from toolshift.episode.grade import regrade
from toolshift.interop.normal import normal
from toolshift.interop.opened import folded_call, opened_call, opened_tool
from toolshift.interop.parts import core_of, listed_in
from toolshift.interop.schema import checkable, choices_of, fitted
from toolshift.interop.tools import Documented, Source, StandIn, Toolbox
from toolshift.shifts.release.inputs import Side
from toolshift.shifts.release.mapped_tools import Route, routes
from toolshift.shifts.release.mapping import UNDECIDED, Answers, as_key
from toolshift.shifts.release.match import words
from toolshift.shifts.release.moved import opened_sides
from toolshift.shifts.release.nested import Unsayable
from toolshift.shifts.release.paging import Page, WrongPage, cut, gathered
from toolshift.shifts.release.required import (
    Named,
    Task,
    is_neutral,
    neutral_ones,
    open_ones,
    own_values,
    to_state,
)
from toolshift.shifts.release.resolve import pairs_of
from toolshift.shifts.release.results import Unfit
from toolshift.shifts.release.told import lost_values, with_answers
from toolshift.shifts.rewiring import Program, Rewired
from toolshift.shifts.surface import Surface

_SAID = ("description", "title", "default", "examples", "$schema")


@dataclass(frozen=True, eq=False)
class Release:
    """A change between two tool lists, ready to be applied."""

    old: Side
    new: Side
    answers: Answers

    @cached_property
    def _boxes(self) -> tuple[Toolbox, Toolbox]:
        boxes = self.old.toolbox(), self.new.toolbox()
        return opened_sides(self.answers.params, pairs_of(self.answers, *boxes), boxes)

    @property
    def before(self) -> Toolbox:
        """The old tools, with the objects laid open out of which arguments have moved."""
        return self._boxes[0]

    @property
    def after(self) -> Toolbox:
        """The new tools, with the objects laid open into which arguments have moved."""
        return self._boxes[1]

    @cached_property
    def routes(self) -> dict[str, tuple[Route, ...]]:
        """For each new tool, what carries its calls."""
        return routes(self.answers, self.before, self.after)

    @cached_property
    def finders(self) -> dict[str, tuple[str, ...]]:
        """The new tools that list what a dispatcher can call, with the old tools that it can."""
        several = (one for one in self.answers.merged.values() if one.finder)
        return {one.finder: tuple(one.tools) for one in several}

    @cached_property
    def lost(self) -> frozenset[str]:
        """The old tools that nothing stands for any more, as far as that is known."""
        carried = {r.old for routes in self.routes.values() for r in routes}
        return frozenset(self.before.sources) - carried - self.open

    @cached_property
    def open(self) -> frozenset[str]:
        """The old tools of which it is not known what has become of them."""
        return frozenset(old for old, new in self.answers.renamed.items() if new == UNDECIDED)

    @cached_property
    def questions(self) -> tuple[str, ...]:
        """What the mapping leaves open of tools and parameters, each with the entry to fill in."""
        params = (
            is_open(old, path)
            for old, table in self.answers.params.items()
            for path, new in table.items()
            if new == UNDECIDED
        )
        return (*map(is_open, sorted(self.open)), *params)

    @cached_property
    def surface(self) -> Surface:
        """How errors of the old tools speak of the new ones."""
        one = {name: routes[0] for name, routes in self.routes.items() if len(routes) == 1}
        one = {name: route for name, route in one.items() if name not in self.answers.beside}
        names = {route.old: name for name, route in one.items() if route.old != name}
        params = {
            route.old: {a: b for a, b in route.params.items() if a != b} for route in one.values()
        }
        return Surface(names=names, params={name: table for name, table in params.items() if table})

    def unchanged(self, name: str) -> bool:
        """Whether a new tool is word for word an old one, and gives the same results."""
        routes = self.routes[name]
        if len(routes) != 1 or routes[0].old != name or routes[0].when or routes[0].fixed:
            return False
        if routes[0].form.moves or not routes[0].form.keeps or routes[0].pages:
            return False
        return self.before.sources[name].raw == self.after.sources[name].raw

    def fits(self, name: str) -> bool:
        """Whether the results of a new tool are such as it declares."""
        if self.unchanged(name):
            return True
        outputs = self.after.sources[name].outputs
        if outputs is None:
            return True
        return name not in self.finders and all(
            route.form.exact or (route.form.before is not None and route.form.keeps)
            for route in self.routes[name]
        )

    @cached_property
    def told_back(self) -> dict[tuple[str, ...], dict[str, str]]:
        """By the words of a name in results, the new choices there to the old ones.

        A word that stands for two is left out.
        """
        found: dict[tuple[str, ...], dict[str, str]] = {}
        for route in (route for several in self.routes.values() for route in several):
            for path, table in route.form.values.items():
                new = route.form.moved(route.form.old_path(path)) or path
                for key in {path.split(".")[-1], new.split(".")[-1]}:
                    known = found.setdefault(tuple(words(key)), {})
                    for old, new_word in table.items():
                        other = known.get(new_word, old)
                        known[new_word] = old if other == old else ""
        return found

    def only_results(self, name: str) -> bool:
        """Whether nothing of a new tool differs from the old one but its results."""
        if name not in self.before.sources:
            return False
        old, new = self.before.sources[name].tool, self.after.sources[name].tool
        return (old.params, old.description) == (new.params, new.description)

    def layer(self, shown: tuple[Tool, ...], task: Task) -> Released:
        """What an agent meets in place of some tools, by what a task says and calls."""
        return _layer(self, shown, *self._of_task(task))

    def _of_task(self, task: Task) -> tuple[tuple[tuple[Named, str], ...], frozenset[Named]]:
        return tuple(own_values(self, task).items()), neutral_ones(self, task)

    def __call__(self, scene: Scene, rng: Random, severity: Severity) -> Change:
        """The change of a scene; a rule, as the registry of shifts takes one."""
        shown = scene.tools
        _fit(self, shown)
        check_settled(self, scene)
        own, neutral = self._of_task(scene) if scene.asks else ((), frozenset())
        layer = _layer(self, shown, own, neutral)
        moved = any(
            not route.form.keeps or route.pages
            for routes in self.routes.values()
            for route in routes
        )
        if layer.tools(shown, {}) == shown and not moved:
            raise NotApplicable("nothing that is shown changes")
        asks = with_answers(self, scene, _with_values(self, scene) or scene.asks)
        restated = scene.with_(asks=asks) if asks else scene
        return Change(layer=layer, **{"asks": asks, **_end(self, restated, layer)})


# -- whether it fits -----------------------------------------------------------------------------


def _fit(release: Release, shown: Iterable[Tool]) -> None:
    """Checks that a scene has the old tools."""
    tools = {tool.name: tool for tool in shown}
    faults = []
    for name, source in release.before.sources.items():
        if name not in tools:
            near = get_close_matches(name, sorted(tools), n=2, cutoff=0.5)
            faults.append(f"it has no {name}" + (f" (nearest: {', '.join(near)})" if near else ""))
            continue
        wrong = _differs(source.as_it_came.tool.params, tools[name].params)
        if wrong:
            faults.append(f"{name} {wrong}")
    if faults:
        more = f", and {len(faults) - 3} more" if len(faults) > 3 else ""
        differences = "; ".join(faults[:3])
        raise NotApplicable(
            f"the scene has other tools than the change is from: {differences}{more}"
        )


def check_settled(release: Release, task: Task) -> None:
    """Checks that nothing is open of what a task calls."""
    answers, sources = release.answers, release.before.sources
    for step in task.calls:
        for name, arguments in step.true:
            if name in release.open:
                raise NotApplicable(is_open(name))
            if name not in sources:  # such as `final_answer` in a recording
                continue
            source = sources[name]
            passed = opened_call(arguments, source.opened)
            needed = {p.name for p in source.tool.params if p.required}
            for path, new in answers.params.get(name, {}).items():
                if new == UNDECIDED and (path in needed or _passes(passed, path)):
                    raise NotApplicable(is_open(name, path))


def _passes(value: Any, path: str) -> bool:
    """Whether arguments have a value at a path such as `lines[].gift` or `prices.*.net`."""
    if not path or not isinstance(value, Mapping | list):
        return True
    if isinstance(value, list) or path.startswith("[]"):
        rest = path.removeprefix("[]").removeprefix(".")
        return any(_passes(each, rest) for each in (as_list(value) or [value] if value else ()))
    inside = [(path[2:], one) for one in value.values() if path.startswith("*")]
    inside += [
        (path.removeprefix(name).removeprefix("."), one)
        for name, one in value.items()  # which may have a dot
        if path == name or path.startswith((f"{name}.", f"{name}[]"))
    ]
    return any(_passes(one, rest) for rest, one in inside)


def is_open(tool: str, path: str = "") -> str:
    """Says that it is not known what an old tool, or a parameter of it, has become."""
    key, entry = as_key(tool), as_key(path or tool)
    what, table = (f"{path} of {tool}", f"params.{key}") if path else (tool, "renamed")
    return f"what has become of {what} is open: [{table}] {entry} = ..."


def _differs(known: tuple[Param, ...], shown: tuple[Param, ...]) -> str:
    """How parameters differ, descriptions and defaults apart; "" where they do not."""
    mine, theirs = ({p.name: p for p in params} for params in (known, shown))
    if mine.keys() != theirs.keys():
        odd = sorted(mine.keys() ^ theirs.keys())
        return f"has other parameters ({', '.join(odd[:3])})"
    for name, param in mine.items():
        other = theirs[name]
        if param.required != other.required or not _asks_alike(param.schema, other.schema):
            return f"takes another {name}"
    return ""


def _asks_alike(one: Any, other: Any) -> bool:
    """Whether two schemas ask the same, whichever generator wrote them."""
    mine, theirs = _bare(one), _bare(other)
    if mine.keys() == theirs.keys() == {"enum"}:
        return {*map(as_text, mine["enum"])} == {*map(as_text, theirs["enum"])}
    return mine == theirs or same(normal(mine), normal(theirs))


def _bare(schema: Any) -> Any:
    """A schema without what is only said."""
    if isinstance(schema, list):
        return [_bare(one) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    said = (*_SAID, "type") if isinstance(schema.get("enum"), list) else _SAID  # choices say it
    return {
        key: {name: _bare(one) for name, one in value.items()}
        if key == "properties" and isinstance(value, Mapping)
        else _bare(value)
        for key, value in schema.items()
        if key not in said
    }


# -- what an agent meets -------------------------------------------------------------------------


class Released(Rewired):
    """The new tools in place of the old ones, in the new order."""

    @property
    def release(self) -> Release:
        """The change that it shows."""
        return next(
            program.release for program in self.programs.values() if isinstance(program, Carried)
        )

    def call(self, name: str, arguments: dict[str, Any], memory: Memory, below: Below) -> Result:
        """Carries a call; one of a tool that is gone does not work."""
        if name in self.removed and name not in self.programs:
            return error("unknown_tool", f"There is no tool named {name}.")
        return super().call(name, arguments, memory, below)

    def changes_results(self, tool: Tool) -> bool:
        """Those whose results may be other than the new list declares."""
        program = self.programs.get(tool.name)
        return isinstance(program, Carried) and not program.release.fits(tool.name)


@lru_cache(maxsize=64)
def _layer(
    release: Release,
    shown: tuple[Tool, ...],
    own: tuple[tuple[Named, str], ...],
    neutral: frozenset[Named],
) -> Released:
    """Kept over scenes, for the schemas of a tool are compiled once a tool."""
    values = dict(own)
    olds = {tool.name: tool for tool in shown}
    added: list[tuple[Tool, Program]] = []
    for name in release.after.sources:
        tool = olds[name] if release.unchanged(name) else _tool(release, name, olds, values)
        spare = frozenset(param for of, param in neutral if of == name)
        routes = tuple(
            route.reading() if olds[route.old].effect == "read" else route
            for route in release.routes[name]
        )
        added.append((tool, Carried(release, name, routes, spare)))
    return Released(frozenset(release.before.sources), tuple(added))


def _tool(
    release: Release, name: str, olds: Mapping[str, Tool], stated: Mapping[Named, str]
) -> Tool:
    """A new tool as it is shown: its own words, the facts of the old ones."""
    source = release.after.sources[name]
    routes = release.routes[name]
    own = source.as_it_came.tool.with_(origin=())
    if routes:
        behind = [olds[route.old] for route in routes]
        facts: dict[str, str] = {}
        for route, old in zip(routes, behind, strict=True):
            known = {p.name: p.fact for p in _opened(release, old).params}
            facts |= {new: known[mine] for mine, new in route.params.items() if new not in facts}
        own = own.with_(
            params=tuple(replace(p, fact=facts.get(p.name, p.fact)) for p in own.params),
            returns=_returns(release, behind[0], routes[0]) if len(routes) == 1 else (),
            many=behind[0].many,
            effect="write" if any(tool.effect == "write" for tool in behind) else "read",
            origin=tuple(dict.fromkeys(origin for tool in behind for origin in tool.origin)),
            authority=behind[0].authority,
        )
    known = {p.fact: p.name for p in own.params}
    whole = opened_tool(own, source.opened)
    facts = {p.name: p.fact for p in whole.params}
    stands = {
        route.old: _stand_in(release, route, olds[route.old], facts)
        for route in reversed(routes)  # of two values for one old tool the first
    }
    told = {**release.answers.given.get(name, {})}
    told |= {param: value for (tool, param), value in stated.items() if tool == name}
    said = {p.fact: told[p.name] for p in whole.params if p.name in told}
    shown = replace(source.as_it_came, tool=own, known=known, opened=source.opened)
    return Documented.of(shown, stands, said)


def _opened(release: Release, old: Tool) -> Tool:
    return opened_tool(old, release.before.sources[old.name].opened)


def _stand_in(release: Release, route: Route, old: Tool, facts: Mapping[str, str]) -> StandIn:
    """How a new tool is called in the place of an old one; `facts` are those of its parameters."""
    old = _opened(release, old)
    mine = {p.name: p.fact for p in old.params}
    split = release.answers.split.get(route.old)
    return StandIn(
        takes={
            mine[name]: shown if route.inside else facts[shown]
            for name, shown in route.params.items()
        },
        says={facts[route.when[0]]: route.when[1]} if route.when else {},
        inside=facts.get(route.inside, ""),
        only={mine[split.by]: route.fixed[split.by]} if split else {},
        restated={mine[name]: how.outward for name, how in route.restated.items()},
        otherwise={
            mine[param.name]: default
            for param in old.params
            if param.name in route.usual and (default := param.schema.get("default")) is not None
        },
        opened=release.before.sources[route.old].opened,
    )


@dataclass(frozen=True, eq=False)
class Carried:
    """What a new tool does: the call of an old one that it stands for.

    Attributes:
        release: the change.
        name: of the new tool.
        routes: how old tools carry its calls, with what the scene knows of them.
        neutral: parameters that the old tool takes as options and that the task leaves out. The
            value that the mapping or the schema names for one says the same as leaving it out.
    """

    release: Release
    name: str
    routes: tuple[Route, ...]
    neutral: frozenset[str] = frozenset()

    def __call__(self, arguments: dict[str, Any], memory: Memory, below: Below) -> Result:
        """Carries out the call, as far as an old tool can be told what was said."""
        release, name = self.release, self.name
        if release.unchanged(name):
            old_arguments = _told_back(release, release.routes[name][0], arguments)
            return release.surface.outward(below(name, old_arguments), name)
        source = release.after.sources[name]
        wrong = _wrong(source.as_it_came, arguments)
        if wrong:
            return error("invalid_arguments", f"{name}: {wrong}")
        arguments = opened_call(arguments, source.opened)
        if name in release.finders:
            return Result(True, _found(release, name, arguments))
        arguments = {
            key: value
            for key, value in arguments.items()
            if key not in self.neutral or not is_neutral(release, name, key, value)
        }
        route = next((r for r in self.routes if _taken(r, arguments)), None)
        if route is None:
            why = "the tools behind this interface are those from before the change"
            return error("not_available", f"{name} is not available here: {why}.", provoked=True)
        try:
            old_arguments = route.inward(arguments, release.before.sources[route.old])
        except Unsayable as reason:
            return error("not_available", f"{name} cannot be done here: {reason}.", provoked=True)
        old_arguments = _told_back(release, route, old_arguments)
        unsaid = route.by_default(arguments, release.before.sources[route.old])
        try:
            found = _with_defaults(release, route, old_arguments, unsaid, below)
            return _outward(*found, route, arguments)
        except WrongPage as reason:
            return error("invalid_arguments", f"{name}: {reason}.")
        except Unfit as reason:
            why = f"what it returns is no result of {name}: {reason}"
            return error("not_available", f"{name} cannot be done here: {why}.", provoked=True)


def _found(release: Release, finder: str, arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The old tools that a finder knows: those that share a word with the query, else all."""
    query = {
        word for value in arguments.values() if isinstance(value, str) for word in words(value)
    }
    several = next(one for one in release.answers.merged.values() if one.finder == finder)
    known = [(value, release.before.sources[old]) for value, old in several.tools.items()]
    near = [
        (value, source)
        for value, source in known
        if query & {*words(value), *words(source.tool.description)}
    ]
    return [
        {
            several.by: value,
            "description": source.tool.description,
            several.arguments or "arguments": source.inputs,
        }
        for value, source in near or known
    ]


def _taken(route: Route, arguments: Mapping[str, Any]) -> bool:
    if route.when is None:
        return True
    by, value = route.when
    return bool(arguments[by] == value) if by in arguments else route.unsaid


def _wrong(source: Source, arguments: dict[str, Any]) -> str:
    """What is wrong with a call of a new tool; "" where nothing is."""
    try:
        check = jsonschema_rs.validator_for(checkable(source.inputs))
    except (ValueError, jsonschema_rs.ReferencingError):
        return ""
    return first_fault(check, arguments)


def _told_back(release: Release, route: Route, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments with the old words for those that results say otherwise now."""
    schemas = {p.name: p.schema for p in release.before.sources[route.old].tool.params}

    def told(name: str, value: Any) -> Any:
        if isinstance(value, list):
            return [told(name, one) for one in value]
        if not isinstance(value, str) or name in route.values or name in route.fixed:
            return value
        if value in choices_of(schemas.get(name, {})):
            return value
        named = words(route.params.get(name, name))
        for key, table in release.told_back.items():
            if key and tuple(named[-len(key) :]) == key:
                return table.get(value) or value
        return value

    return {name: told(name, value) for name, value in arguments.items()}


def _with_defaults(
    release: Release,
    route: Route,
    arguments: dict[str, Any],
    unsaid: frozenset[str],
    below: Below,
) -> tuple[Result, Any]:
    """The result of the old tool where it is told what the new one takes by default.

    A tool that reads is asked as it was before, too: that is the call which tasks of today expect.
    Where recordings do not have the other one, its result stands.
    """
    if not unsaid:
        return _called(release, route, arguments, below)
    plain = {name: value for name, value in arguments.items() if name not in unsaid}
    before = _called(release, route, plain, below) if route.reads else None
    result = _called(release, route, arguments, below)
    if not result[0].unrecorded:
        return result
    return before or _called(release, route, plain, below)


def _called(
    release: Release, route: Route, arguments: dict[str, Any], below: Below
) -> tuple[Result, Any]:
    """The result of the old tool; its data with all pages where the new one pages otherwise."""
    pages = route.pages
    if pages is not None:
        styles = [style for style in (pages.before, pages.after) if style is not None]
        spoken = {style.param.name for style in styles} | {style.size_param for style in styles}
        back = {new: old for old, new in route.params.items()}
        left_out = {back.get(name, name) for name in spoken}
        needed = {p.name for p in release.before.sources[route.old].tool.params if p.required}
        arguments = {k: v for k, v in arguments.items() if k not in left_out - needed}

    def call(more: Mapping[str, Any]) -> Result:
        said = folded_call({**arguments, **more}, release.before.sources[route.old].opened)
        return release.surface.outward(below(route.old, said), route.old)

    result = call({})
    if not result.ok or pages is None or pages.before is None:
        return result, result.data
    fault, whole = gathered(pages.before, result, call, route.form.whole)
    if fault is not None:
        return fault, fault.data
    return result, whole[route.form.wrap] if isinstance(result.data, list) else whole


def _outward(result: Result, data: Any, route: Route, said: Mapping[str, Any]) -> Result:
    """A result as the new tool returns it."""
    pages = route.pages
    if not result.ok or (route.form.keeps and pages is None):
        return result
    made: list[Page] = []

    def page_of(whole: dict[str, Any]) -> dict[str, Any]:
        if pages is None or pages.after is None:
            return whole
        made.append(cut(pages.after, whole, said, pages.size))
        return made[-1].whole

    shown = route.form.outward(data, page_of)
    fields, inside = route.form.read(result.fields, data, shown)
    form = "json" if result.form == "text" and not isinstance(shown, str) else result.form
    result = result.with_(data=shown, fields=fields, inside=inside, form=form)
    if made and made[0].hint is not None and result.hint is None:
        result = result.with_(hint=made[0].hint, notice=result.notice or made[0].notice)
    return result


def _returns(release: Release, old: Tool, route: Route) -> tuple[Field, ...]:
    """Where the values of an old tool stand in a record of the new one."""
    as_list = bool(release.before.sources[route.old].envelope) or old.many
    return route.form.read(old.returns, [] if as_list else {}, [])[0]


# -- what the user says ---------------------------------------------------------------------------


def _with_values(release: Release, scene: Scene) -> tuple[Ask, ...] | None:
    """The user's turns with the values that the mapping has them state; None where there are none.

    They are stated in the first turn, where a tool of the task takes them and the task states no
    value of its own.
    """
    if not release.answers.given or not scene.asks:
        return None
    sentences = to_state(release, scene)
    if not sentences:
        return None
    first, *rest = scene.asks
    return (replace(first, text=" ".join([first.text, *sentences])), *rest)


# -- the end of a task -----------------------------------------------------------------------------


def _end(release: Release, scene: Scene, layer: Released) -> dict[str, Any]:
    """What the right end of a task has become; nothing where it has not changed."""
    if not scene.asks:
        return {}
    try:
        shifted = scene.with_(layers=(*scene.layers, layer))
        steps = shifted.rehearsal
    except Untraceable as reason:
        raise NotApplicable(f"the task cannot be carried over: {reason}") from None
    needed = {name for step in scene.calls for name, _ in step.true}
    gone = lost_values(release, scene) if scene.solvable else []
    if scene.solvable and steps[-1].kind == "answer" and not gone:
        return {}
    if not scene.solvable and _refused_alike(shifted, steps, needed):
        return {}
    if scene.solvable and _is_lost(release, scene):
        asks = (*scene.asks[:-1], replace(scene.asks[-1], expected=None))
        done, judged = scene.outcome.effects, not scene.world.traceable
        refusal = Outcome((), done, "tool_unavailable", witness=(), presumed=judged)
        return {"asks": asks, "outcome": refusal}
    failed = [step for step in steps if step.kind == "call" and not step.ok]
    why = f": {_failure(release, scene, failed[-1])}" if failed else ""
    open_ = open_ones(release, scene)
    if open_:
        questions = "; ".join(map(str, open_[:3]))
        tables = ", ".join(dict.fromkeys(f"[given.{one.tool}]" for one in open_[:3]))
        why = f": {questions}. Say what users state for it in the mapping, under {tables}"
    elif gone:
        tool = gone[0].partition(".")[0]
        why = (
            f": it reads {', '.join(gone[:3])}, which results have no more. If that stands "
            f"elsewhere now, say where in the mapping, under [fields.{tool}]"
        )
    elif not scene.solvable and needed & release.lost:
        names = ", ".join(sorted(needed & release.lost))
        why = f": its expected calls need {names}, which is gone{why}"
    elif scene.solvable and not failed:
        why = ": what its calls return now does not say the answer that it expects"
    raise NotApplicable(f"the task cannot be expressed in the new tools{why}")


def _failure(release: Release, scene: Scene, step: Step) -> str:
    """Why the call of a task fails in the new form: what it does not say of today's call, else what
    it is answered."""
    for tool, made in step.true or ():
        wanted = [given for each in scene.calls for name, given in each.true if name == tool]
        lost = [name for given in wanted[:1] for name in given if given[name] != made.get(name)]
        if lost:
            return (
                f"its call of {step.name} does not tell {tool} the {', '.join(lost)} of today. Say "
                f"what has become of {'them' if len(lost) > 1 else 'it'} in the mapping, under "
                f"[params.{tool}]; if any value is right, or none, write `{lost[0]}: "
                "{any: EXAMPLE}` in the task"
            )
    try:
        told = msgspec.json.decode(step.text)["error"]["message"]
    except (msgspec.DecodeError, LookupError, TypeError):  # an error that is a plain text
        told = step.text
    said = " ".join(str(told).split())[:200]
    advice = _other_choice(release, step) or _other_form(release, step)
    return f'its call of {step.name} is answered "{said}"{advice}'


def _other_choice(release: Release, step: Step) -> str:
    """Where a mapping says by which choice a value goes now that a call of a task passes; "" where
    each is a choice."""
    target = release.after.sources.get(step.name)
    said = step.arguments if isinstance(step.arguments, dict) else {}
    for param in target.tool.params if target is not None else ():
        choices, value = listed_in(core_of(param.schema)), said.get(param.name)
        if not choices or not isinstance(value, str) or value in choices:
            continue
        near = next((one for one in choices if str(one).casefold() == value.casefold()), None)
        for route in release.routes.get(step.name, ()):
            back = {new: old for old, new in release.answers.params.get(route.old, {}).items()}
            place = f"[values.{route.old}.{back.get(param.name, param.name)}]"
            now = "..." if near is None else f'"{near}"'
            return f". Say by which choice it goes, under {place} {as_key(value)} = {now}"
    return ""


def _other_form(release: Release, step: Step) -> str:
    """Where a mapping says how a value is written that a call of a task passes in a type of before;
    "" where each is of its type.
    """
    target = release.after.sources.get(step.name)
    said = step.arguments if isinstance(step.arguments, dict) else {}
    for param in target.tool.params if target is not None else ():
        schema = core_of(param.schema)
        if param.name not in said or not schema.get("type"):
            continue
        if any(True for _ in fitted(said[param.name], {"type": schema["type"]})):
            continue
        for route in release.routes.get(step.name, ()):
            back = {new: old for old, new in release.answers.params.get(route.old, {}).items()}
            name = as_key(back.get(param.name, param.name))
            return (
                f". If it is written in another way now, say how under [param_units.{route.old}] "
                f'{name} = "..."'
            )
    return ""


def _is_lost(release: Release, scene: Scene) -> bool:
    """Whether the tools that are gone are why a task cannot be solved: the old ones alone are not
    enough without them.

    In worlds of our own that is proved by the solver, which looks for another way. In those of the
    user it is a judgement from the expected calls, of which those that the check does not need are
    left out (`worlds.own.spare`).
    """
    if not release.lost & {name for step in scene.calls for name, _ in step.true}:
        return False
    without = Rewired(release.lost, ())
    try:
        return scene.with_(layers=(*scene.layers, without)).rehearsal[-1].kind == "refuse"
    except Untraceable:
        return False


def _refused_alike(shifted: Scene, steps: tuple[Step, ...], needed: set[str]) -> bool:
    """Whether the right end of a task is the refusal that it was, for the same reason."""
    if needed <= {name for step in steps for name, _ in step.true}:
        return True
    if steps[-1].kind != "refuse":
        return False
    verdict = regrade(shifted, steps, "refused")
    return verdict.passed and verdict.right_reason

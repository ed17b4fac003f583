"""What a task takes from results: answers in other words now, and values that are gone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any, Protocol

from toolshift.core.ask import Ask
from toolshift.core.scene import Scene
from toolshift.core.values import as_text
from toolshift.interop.tools import Toolbox
from toolshift.reading.answers.by_words import as_answer
from toolshift.shifts.release.conversions import ARROW, converted, units_in
from toolshift.shifts.release.mapped_tools import Route
from toolshift.shifts.release.results import values_at
from toolshift.worlds.own.reference_solution import ScriptedSolution
from toolshift.worlds.own.spare import states, value_says


class Mapped(Protocol):
    """Two tool lists, and how calls of the new ones are carried."""

    @property
    def before(self) -> Toolbox:
        """The old tools."""
        ...

    @property
    def routes(self) -> dict[str, tuple[Route, ...]]:
        """For each new tool, what carries its calls."""
        ...


Read = tuple[str, Route, dict[str, Any]]
"""An old tool that a task calls, how its results are shown, and such a result."""


def _results(release: Mapped, scene: Scene) -> Iterator[Read]:
    """What the calls of a task return, where their results change.

    A tool that is still there, beside its successor, returns what it returns.
    """
    routes = {route.old: route for several in release.routes.values() for route in several}
    still = (
        route for new, several in release.routes.items() for route in several if route.old == new
    )
    routes |= {route.old: route for route in still}
    truth = scene.truth.open()
    for step in scene.calls:
        for name, arguments in step.true:
            result = truth.call(name, arguments)
            route = routes.get(name)
            if result.ok and route is not None and isinstance(result.data, dict | list):
                yield name, route, deepcopy(route.form.whole(result.data))


def with_answers(release: Mapped, scene: Scene, asks: tuple[Ask, ...]) -> tuple[Ask, ...] | None:
    """The turns of the user, a right answer in the words that results have now.

    None where nothing of them changes.
    """
    changed = asks if asks is not scene.asks else None
    last = asks[-1] if asks else None
    told = any(
        route.form.values or route.form.units
        for several in release.routes.values()
        for route in several
    )
    if last is None or not last.pattern or not told:
        return changed
    wanted = (last.pattern,) if isinstance(last.pattern, str) else last.pattern
    table, ways = _new_words(release, scene, wanted, last.kind)
    if not table:
        return changed
    request = " ".join(ask.text for ask in asks)
    stays = {one for one in table if any(_is_asked_so(how, request) for how in ways.get(one, ()))}
    table = {one: new for one, new in table.items() if one not in stays}
    said = tuple(table.get(one, one) for one in wanted)
    pattern = said[0] if isinstance(last.pattern, str) else said
    expected = last.expected
    for old, new in table.items():
        expected = expected.replace(old, new) if expected is not None else None
    solve = last.solve
    if isinstance(solve, ScriptedSolution):
        check = replace(solve.given.check, answer=pattern)
        if stays:  # no result says it so: whoever solves the task converts it
            example = check.example or expected or " ".join(said)
            check = replace(check, example=example)
        recites = solve.recites or bool(stays)
        solve = replace(solve, given=replace(solve.given, check=check), recites=recites)
    return (*asks[:-1], replace(last, pattern=pattern, expected=expected, solve=solve))


def _is_asked_so(how: str, request: str) -> bool:
    """Whether a value is answered as before though results convert it: the request names the unit
    of today, or a day is all that was told."""
    was, _, now = how.partition(ARROW)
    return was in units_in("", request).values() or (was, now) == ("date", "date-time")


def _new_words(
    release: Mapped, scene: Scene, wanted: tuple[str, ...], kind: str
) -> tuple[dict[str, str], dict[str, set[str]]]:
    """For what an answer has to say, how results say it now, where they say it otherwise; and by
    which conversions."""
    ways: dict[str, set[str]] = {}
    changed: dict[str, set[str]] = {}
    kept: set[str] = set()
    for _, route, whole in _results(release, scene):
        form = route.form
        for name, place in form.olds.items():
            if not place.is_leaf:
                continue
            table = next((t for k, t in form.values.items() if form.old_path(k) == name), {})
            how = next((h for k, h in form.units.items() if form.old_path(k) == name), "")
            for value in values_at(whole, name):
                new = table.get(as_text(value), value) if isinstance(value, str) else value
                new = converted(new, how) if how else new
                for item in wanted:
                    if value_says(as_answer(value), item, kind):
                        same = as_answer(new) == as_answer(value)
                        kept |= {item} if same else set()
                        ways.setdefault(item, set()).update([how] if how and not same else [])
                        changed.setdefault(item, set()).update(() if same else [as_answer(new)])
    table = {
        item: next(iter(news))
        for item, news in changed.items()
        if len(news) == 1 and item not in kept
    }
    return table, ways


def lost_values(release: Mapped, scene: Scene) -> list[str]:
    """The values that results have no more and that a task reads: `get_order.tracking`."""
    routes = (route for several in release.routes.values() for route in several)
    if scene.world.traceable or not any(route.form.dropped for route in routes):
        return []  # where values are traced the solver proves it
    last = scene.asks[-1] if scene.asks else None
    pattern = last.pattern if last is not None else ""
    wanted = (pattern,) if isinstance(pattern, str) else pattern
    kind = last.kind if last is not None else ""
    passed = [
        value
        for step in scene.calls
        for _, arguments in step.true
        for value in _single(arguments)
        if not any(states(ask.text, value) for ask in scene.asks)
    ]
    gone: dict[str, Any] = {}
    kept: list[Any] = []
    for name, route, whole in _results(release, scene):
        lost = lost_places(route)
        for old, place in route.form.olds.items():
            for value in values_at(whole, old) if place.is_leaf else ():
                if old in lost:
                    gone.setdefault(f"{name}.{old}", []).append(value)
                else:
                    kept.append(value)

    def is_read(value: Any) -> bool:
        if any(value == other for other in kept) or value is None or isinstance(value, dict | list):
            return False
        text = as_answer(value)
        return value in passed or any(one and value_says(text, one, kind) for one in wanted)

    return [name for name, values in gone.items() if any(map(is_read, values))]


def lost_places(route: Route) -> list[str]:
    """The places of results that are declared today and have no counterpart."""
    form, pages = route.form, route.pages
    told = pages.before.told if pages is not None and pages.before is not None else {}
    lost = [old for old in form.olds if any(_under(old, up) for up in form.dropped)]
    return [old for old in lost if old not in told]  # all pages are fetched without it


def lost_of(release: Mapped, tool: str, data: Any) -> Iterator[tuple[str, Any]]:
    """The single values of a result of an old tool that the new ones show no more, each with its
    place: `get_order.tracking`."""
    if not isinstance(data, dict | list):
        return
    routes = [route for several in release.routes.values() for route in several]
    for route in (route for route in routes if route.old == tool and route.form.dropped):
        places = lost_places(route) if route.form.olds else route.form.dropped
        whole = route.form.whole(data)
        for place in places:
            for value in values_at(whole, place):
                yield from ((f"{tool}.{place}", one) for one in _single(value))


def _under(path: str, above: str) -> bool:
    return path == above or path.startswith(f"{above}.")


def _single(value: Any) -> Iterator[Any]:
    """The single values of arguments, at every depth."""
    inner = (
        value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else None
    )
    if inner is None:
        yield value
        return
    for one in inner:
        yield from _single(one)

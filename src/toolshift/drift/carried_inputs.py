"""Whether a change of what a tool takes is carried, asked or only said, and why."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

from toolshift.core.canonical import same
from toolshift.core.values import as_text
from toolshift.drift.changes import ToolChange
from toolshift.drift.effects import in_other_units
from toolshift.interop.parts import kinds_of, members_of
from toolshift.interop.schema import fitted, sample, usual
from toolshift.shifts.release.mapped_tools import Route
from toolshift.shifts.release.mapping import as_key
from toolshift.shifts.release.nested import (
    Meeting,
    Met,
    Unsayable,
    form_of,
    is_left_out,
    nodes_in,
    words_of,
)
from toolshift.shifts.release.release import Release

Carriage = Literal["carried", "asked", "said"]
Judgement = tuple[Carriage, str]


UNCONVERTED = (
    "its name has another unit now, and nothing converts it; if the value stays the same, answer "
    '[{}.{}] {} = ""'
)


def route_of(release: Release, change: ToolChange) -> Route | None:
    """What carries the calls of the tool that a change is of."""
    routes = release.routes.get(change.new, ())
    return next((route for route in routes if route.old == change.old), None)


@lru_cache(maxsize=512)
def _met(release: Release, old: str, new: str) -> dict[str, list[Met]]:
    """By their old paths, the values of two tools that go on."""
    route = next((one for one in release.routes.get(new, ()) if one.old == old), None)
    if route is None or route.inside:
        return {}
    names = release.answers.params.get(old, {})
    words = release.answers.values.get(old, {})
    before = form_of(release.before.sources[old])
    after = form_of(release.after.sources[new])
    meeting = Meeting(
        before,
        after,
        lambda gone, come: {path: names[path] for path in gone if path in names},
        lambda path, was, now, alike: words.get(path, {}),
    )
    required = {p.name: p.required for p in release.before.sources[old].tool.params}
    for mine, theirs in route.params.items():
        if mine in before.params and theirs in after.params:
            meeting.walk(before.params[mine], after.params[theirs], mine, theirs, required[mine])
    found: dict[str, list[Met]] = {}
    for one in meeting.met:
        found.setdefault(one.path, []).append(one)
    return found


def optional(release: Release, change: ToolChange) -> Judgement:
    """A parameter that may be said now: calls without it are carried; pages are really cut."""
    route = route_of(release, change)
    if route is None:
        return "said", "its calls are led to no tool of today"
    if change.where in paging(route):
        return "carried", ""
    unknown = "the tool of today does not know it: "
    if route.reads:
        return "carried", f"{unknown}it has no effect"
    return "carried", f"{unknown}it has no effect where that tool only reads, else it is refused"


def paging(route: Route) -> frozenset[str]:
    """The parameters of the new tool that ask for a page of a list."""
    style = route.pages.after if route.pages is not None else None
    return frozenset((style.param.name, style.size_param)) if style is not None else frozenset()


def loosened(release: Release, change: ToolChange) -> Judgement:
    """More may be said now: what could be said is carried, and what the tool of today does not
    take cannot be done.
    """
    if route_of(release, change) is None:
        return "said", "its calls are led to no tool of today"
    if change.where and change.where not in _met(release, change.old, change.new):
        return "said", "it is inside of an argument that has another form, and is not carried"
    if not change.where:
        return "carried", "arguments that neither list declares have no effect"
    return "carried", "a call that says more than the tool of today takes cannot be done here"


def defaulted(release: Release, change: ToolChange) -> Judgement:
    """Another default: the tool of today is told it where a call leaves the parameter out."""
    route = route_of(release, change)
    if route is None:
        return "said", "its calls are led to no tool of today"
    own = {param.name for param in release.before.sources[change.old].tool.params}
    if change.where not in own:
        return "said", "it is inside of an argument: the tool of today keeps its own default"
    if change.kind == "default_removed":
        known = release.answers.defaults.get(change.old, {})
        if change.where in known:
            return "carried", ""
        return "asked", "what does the tool of today get where it is left out?"
    if change.where in route.usual:
        return "carried", ""
    olds = {p.name: p.schema for p in release.before.sources[change.old].tool.params}
    try:
        told = route.told(change.where, change.after, olds[change.where])
    except (Unsayable, KeyError):
        return "said", f"the tool of today cannot take {as_text(change.after)[:60]}"
    if same(told, olds[change.where].get("default")):
        return "carried", ""
    return "said", "the tool of today takes what it does by itself: it may write, and names none"


def is_same_default(release: Release, change: ToolChange) -> bool:
    """Whether another default means what today's means: 1800 seconds, after 30 minutes."""
    route = route_of(release, change) if change.kind == "default_changed" else None
    if route is None:
        return False
    olds = {p.name: p.schema for p in release.before.sources[change.old].tool.params}
    try:
        return same(route.told(change.where, change.after, olds[change.where]), change.before)
    except (Unsayable, KeyError):
        return False


def required(release: Release, change: ToolChange) -> Judgement:
    """A parameter that has to be said now: carried where its value is known, else asked."""
    path = new_path(release, change)
    schema = dict(nodes_in(form_of(release.after.sources[change.new]))).get(path)
    if schema is None:
        return "said", "nothing says its value"
    told = release.answers.given.get(change.new, {}).get(path, usual(schema))
    if told is not None or "null" in kinds_of(schema):
        return "carried", ""
    return "asked", "what do users say for it?"


def new_path(release: Release, change: ToolChange) -> str:
    """The path of what a change is of, by the new names."""
    met = _met(release, change.old, change.new)
    if change.where in met:
        return met[change.where][0].there
    lead, _, name = change.where.rpartition(".")
    return f"{met[lead][0].there}.{name}" if lead in met else change.where


def renamed(release: Release, change: ToolChange) -> Judgement:
    """A parameter, or a member inside of one, under another name."""
    names = release.answers.params.get(change.old, {})
    told = release.answers.param_units.get(change.old, {})
    if in_other_units(str(change.before), str(change.after)) and change.where not in told:
        return "said", UNCONVERTED.format("param_units", change.old, as_key(change.where))
    if change.where in _met(release, change.old, change.new) or names.get(change.where):
        return "carried", ""
    return "said", "nothing tells what it has become: calls with it fail"


def removed(release: Release, change: ToolChange) -> Judgement:
    """A parameter that is gone: where the tool of today wants it, it is asked what that gets."""
    lead, _, name = change.where.rpartition(".")
    source = release.before.sources[change.old]
    route = route_of(release, change)
    style = route.pages.before if route is not None and route.pages is not None else None
    if style is not None and style.param.name == change.where and not style.can_go_on:
        return (
            "said",
            "no result says the next page (a Link header is not read): the first is shown",
        )
    own = {param.name: param.required for param in source.tool.params}
    if not lead or change.where in own:
        wanted = own.get(change.where, False)
    else:
        whole = dict(nodes_in(form_of(source))).get(lead, {})
        known = members_of(whole).get(name)
        goes_on = lead in _met(release, change.old, change.new)
        wanted = goes_on and known is not None and known.required
    if not wanted or change.where in release.answers.defaults.get(change.old, {}):
        return "carried", ""
    if route is None:
        return "said", "its calls are led to no tool of today"
    return "asked", "what does the tool of today get where it is left out?"


def no_longer_required(release: Release, change: ToolChange) -> Judgement:
    """A parameter that may be left out now: the tool behind it is told the default, or asked."""
    found = _met(release, change.old, change.new).get(change.where, ())
    told = release.answers.defaults.get(change.old, {}).get(change.where)
    known = [told if told is not None else one.new.get("default") for one in found]
    if not found:
        return "said", "it is inside of an argument that has another form, and is not carried"
    if all(
        value is not None and any(True for _ in fitted(value, one.old))
        for value, one in zip(known, found, strict=True)
    ):
        return "carried", ""
    return "asked", "what does the tool of today get where it is left out?"


def widened(release: Release, change: ToolChange) -> Judgement:
    """More types: carried where only null has come, which the tool behind is not told."""
    found = _met(release, change.old, change.new).get(change.where, ())
    only_null = found and all(
        kinds_of(one.new) - kinds_of(one.old) == {"null"}
        and is_left_out(None, one.old, one.required)
        for one in found
    )
    return ("carried", "") if only_null else loosened(release, change)


def valued(release: Release, change: ToolChange) -> Judgement:
    """Another type, or other choices: carried where the tool behind takes what is said now."""
    words = release.answers.values.get(change.old, {}).get(change.where, {})
    if change.kind == "choice_replaced":
        lost = [one for one in change.before if not words.get(str(one))]
        if lost:
            return "said", f"nothing stands for {', '.join(map(as_text, lost))}"
        return "carried", ""
    found = _met(release, change.old, change.new).get(change.where)
    if not found:
        return "said", "it is inside of an argument that has another form, and is not carried"
    if words and all(words.get(one) for each in found for one in words_of(each.old, each.new)[0]):
        return loosened(release, change)
    fitting = False
    for one in found:
        example = sample(one.new)
        if _taken(release, change, one, example):
            continue
        of_today = fitted(sample(one.old), one.new)
        if not any(_taken(release, change, one, each) for each in of_today):
            return "said", f"the tool behind it cannot take {as_text(example)[:60]}"
        fitting = True
    return loosened(release, change) if fitting else ("carried", "")


def _taken(release: Release, change: ToolChange, one: Met, example: Any) -> bool:
    """Whether the tool behind takes an example of what is said now."""
    route = route_of(release, change)
    if route and one.path in route.params:
        params = {p.name: p.schema for p in release.before.sources[change.old].tool.params}
        return route.takes(one.path, example, params[one.path])
    return any(True for _ in fitted(example, one.old))

"""A coming change as a short text for an agent's prompt: the cure for those who cannot train.

Only facts of the change are said: what the two lists show, and what the mapping between them says
of names, choices and results. The words of a server are quoted as `adapt.notes` quotes them.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Any

from toolshift.adapt.notes import in_words, listed, quoted
from toolshift.core.values import as_text
from toolshift.drift.schemas import Difference, Moves, members, text_differences
from toolshift.interop.schema import flattened
from toolshift.interop.tools import Source
from toolshift.shifts.release.mapped_tools import Route
from toolshift.shifts.release.mapping import UNDECIDED
from toolshift.shifts.release.release import Release
from toolshift.shifts.release.results import SLOT, WHOLE, wrap_of

TITLE = "The tools have changed since you learned them. What is new:"
NO_CHANGE = "The tools are as they were."
_UNNAMED = "a tool"


def release_note(release: Release) -> str:
    """What an agent has to know of a change; `NO_CHANGE` where nothing that it sees has changed."""
    lines = list(dict.fromkeys(_lines(release)))
    return f"{listed(TITLE, lines, lines) or NO_CHANGE}\n"


def _lines(release: Release) -> Iterator[str]:
    for new, routes in release.routes.items():
        if new in release.finders:
            yield f"{_name(new)} is new: it lists what can be called"
        elif not routes:
            yield f"{_name(new)} is new"
        elif not release.unchanged(new):
            for route in routes:
                yield from _of_route(release, new, route)
    for old in release.before.sources:
        if old in release.lost:
            yield f"{_name(old)} is gone, and no tool takes its place"
        elif old in release.open:
            yield f"{_name(old)} is gone, and it is not known what takes its place"


def _of_route(release: Release, new: str, route: Route) -> Iterator[str]:
    way = _way(release, new, route)
    if way:
        yield way
    if route.inside:
        return
    told = (release.before.sources[route.old].raw, release.after.sources[new].raw)
    texts = text_differences("", *(raw.get("description") for raw in told))
    own = () if route.when is not None else texts  # of several tools, none is described by it
    otherwise = [f"it {said}" for one in own if (said := _in_values(one))]
    for sentence in (
        *otherwise,
        *_arguments(release, new, route),
        *_results(route),
        *_pages(route),
    ):
        yield f"{_name(new)}: {sentence}"


def _arguments(release: Release, new: str, route: Route) -> Iterator[str]:
    """What has changed in the parameters of a tool."""
    old = route.old
    if route.when is not None:  # what it takes besides is of the other tools that it stands for
        for was, now in route.params.items():
            if was != now:
                yield f"{_name(was)} is its parameter {_name(now)}"
    else:
        split = release.answers.split.get(old)
        names = {**release.answers.params.get(old, {}), **route.params}
        yield from _members(
            release.before.sources[old],
            release.after.sources[new],
            Moves(names, release.answers.values.get(old, {}), settled=True),
            {split.by} if split is not None else set(),
        )
    for path, way in route.units.items():
        was, _, now = (part.strip() for part in way.partition("->"))
        shown = _name(route.params.get(path, path))
        yield f"{shown} is in {_unit(now)} now, no more in {_unit(was)}"
    for path, words in route.values.items():
        top, _, rest = path.partition(".")
        shown = ".".join(filter(None, (route.params.get(top, top), rest)))
        yield from _words(_name(shown), words)


def _members(was: Source, now: Source, moves: Moves, told: Container[str]) -> Iterator[str]:
    """What has changed in the parameters but for those of which all is told already."""
    olds, news = (
        {param.name: param for param in source.tool.params if param.name not in told}
        for source in (was, now)
    )
    closed = flattened(now.inputs).get("additionalProperties") is False
    for one in members("", olds, news, moves, closed):
        if one.kind == "parameter_renamed":
            yield f"{_place(one.where)} is {quoted(str(one.after)) or 'called otherwise'} now"
        elif said := in_words(one) or _in_values(one):
            yield f"{_place(one.where)} {said}"


def _in_values(one: Difference) -> str:
    """What has changed in a default, a limit or a text, without the name of the parameter."""
    if one.kind.startswith("default_"):
        was, now = (_given(side) for side in (one.before, one.after))
        return f"is {now} where it is left out, and was {was}"
    if one.kind.startswith("limit_"):
        limits = one.after if isinstance(one.after, dict) else {}
        plain = {key: value for key, value in limits.items() if isinstance(value, int | float)}
        told = ", ".join(f"{key} {as_text(value)}" for key, value in plain.items())
        if one.after is None:
            return "has a limit no more"
        return f"has another limit now{f': {told}' if told else ''}"
    if one.kind.startswith("description_") and one.severity != "harmless":
        return "has another description, which may mean something else"
    return ""


def _given(value: Any) -> str:
    """What a tool gets where a parameter is left out."""
    return "nothing" if value is None else _said(value)


def _results(route: Route) -> Iterator[str]:
    """What has changed in what a tool returns."""
    form = route.form
    old = wrap_of(form.before, form.olds)  # a list is shown without the key that it stands under
    new = old if form.after is None else wrap_of(form.after, form.news)
    for was, now in {**form.lifts, **form.single}.items():
        if now not in (was, UNDECIDED):
            became = f"{_place_in(now, new)} now" if now else "gone"
            yield f"in results, {_place_in(was, old)} is {became}"
    for was, now in form.joined:
        yield f"in results, {_slots(was)} is {_slots(now)} now"
    for was in form.dropped:
        if was not in form.single:
            yield f"in results, {_place_in(was, old)} is gone"
    for path, words in form.values.items():
        yield from _words(f"results, {_name(path)}", words)
    for path, way in form.units.items() if UNDECIDED not in form.units.values() else ():
        was, _, now = (part.strip() for part in way.partition("->"))
        yield f"in results, {_name(path)} is in {_unit(now)} now, no more in {_unit(was)}"


def _pages(route: Route) -> Iterator[str]:
    """How the lists of a tool come now, where they come in other pages."""
    if route.pages is None:
        return
    after = route.pages.after
    yield (
        f"its list comes in pages, and {_place(after.param.name)} asks for the next one"
        if after is not None
        else "its list comes whole, and no more in pages"
    )


def _words(where: str, words: Mapping[str, str]) -> Iterator[str]:
    for was, now in words.items():
        if now not in ("", UNDECIDED, was):
            yield f"in {where}, {_said(was)} is {_said(now)} now"


def _way(release: Release, new: str, route: Route) -> str:
    """How an old tool is called now; "" where it goes by its name."""
    old, name = _name(route.old), _name(new)
    if route.when is not None:
        by, value = route.when
        inside = f" and its arguments in {_name(route.inside)}" if route.inside else ""
        return f"{old} is called as {name} with {_name(by)} = {_said(value)}{inside}"
    split = release.answers.split.get(route.old)
    if split is not None:
        return f"{old} with {_name(split.by)} = {_said(route.fixed[split.by])} is {name} now"
    return f"{old} is {name} now" if route.old != new else ""


def _name(name: str) -> str:
    return quoted(name) or _UNNAMED


def _place_in(path: str, wrap: str) -> str:
    """A place of a result, or all of it."""
    return "the whole result" if path in (WHOLE, wrap) else _name(path.removeprefix(f"{wrap}."))


def _unit(text: str) -> str:
    words = [quoted(word) for word in text.split()]
    return " ".join(words) if words and all(words) else "another unit"


def _slots(template: str) -> str:
    """A text with names in it; only its names, where the rest must not be quoted."""
    plain = " ".join(filter(None, map(quoted, template.split())))
    return plain if plain == template else ", ".join(map(_name, SLOT.findall(template)))


def _place(where: str) -> str:
    name = quoted(where)
    return f"the parameter {name}" if name else "a parameter"


def _said(value: object) -> str:
    return quoted(as_text(value)) or "another value"

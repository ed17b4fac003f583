"""A coming change as a short text for an agent's prompt: the cure for those who cannot train.

Only facts of the change are said: what the two lists show, and what the mapping between them says
of names, choices and results. The words of a server are quoted as `adapt.notes` quotes them.
"""

from __future__ import annotations

from collections.abc import Iterator

from toolshift.adapt.notes import changed_in, listed, quoted
from toolshift.core.user import as_said
from toolshift.shifts.release.mapped_tools import Route
from toolshift.shifts.release.mapping import UNDECIDED
from toolshift.shifts.release.release import Release

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


def _of_route(release: Release, new: str, route: Route) -> Iterator[str]:
    way = _way(release, new, route)
    if way:
        yield way
    if route.inside:
        return
    name, split = _name(new), release.answers.split.get(route.old)
    moved = {was: now for was, now in route.params.items() if was != now}
    gone = {split.by} if split is not None else set()
    source, target = release.before.sources[route.old], release.after.sources[new]
    if route.when is None:
        sentences = list(changed_in(source, target, moved, gone))
    else:  # what it takes besides is of the other tools that it stands for
        sentences = [f"{_name(was)} is its parameter {_name(now)}" for was, now in moved.items()]
    for sentence in sentences:
        yield f"{name}: {sentence}"
    for param, words in route.values.items():
        shown = _name(route.params.get(param, param))
        for was, now in words.items():
            if now not in ("", UNDECIDED, was):
                yield f"{name}: in {shown}, {_said(was)} is {_said(now)} now"
    for was, now in release.answers.fields.get(route.old, {}).items():
        if now not in (UNDECIDED, was):
            became = f"{_name(now)} now" if now else "gone"
            yield f"{name}: in results, {_name(was)} is {became}"


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


def _said(value: object) -> str:
    return quoted(as_said(value)) or "another value"

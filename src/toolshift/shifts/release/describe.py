"""What a change changes, in words: a row for each tool, and what it cannot carry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

from toolshift.core.tool import Param
from toolshift.core.values import as_json, as_text
from toolshift.interop.schema import (
    JSONSchema,
    choices_of,
    inner_changes,
    kind_of,
    sample,
    usual,
)
from toolshift.interop.tools import Source
from toolshift.shifts.release.mapped_tools import Route
from toolshift.shifts.release.mapping import UNDECIDED
from toolshift.shifts.release.release import Release, is_open


class Row(msgspec.Struct, frozen=True):
    """What becomes of a tool.

    Attributes:
        what: same, changed, renamed, merged, dispatched, split, beside, removed, open or added.
        changes: what differs, in a few words each.
        partly: what a call of the new tool cannot have carried out by the old one.
    """

    what: str
    old: str
    new: str
    changes: list[str]
    partly: list[str]


def rows_of(release: Release) -> list[Row]:
    """A row for every tool: the new ones in their order, then what is removed."""
    besides = release.answers.beside
    shared = Counter(
        route.old
        for new, routes in release.routes.items()
        for route in routes
        if new not in besides
    )
    rows = [_row(release, name, routes, shared) for name, routes in release.routes.items()]
    gone = [name for name in release.before.sources if name in release.lost]
    rows += [Row("removed", name, "", [], []) for name in gone]
    return rows + [Row("open", name, "", [], [is_open(name)]) for name in sorted(release.open)]


def _row(release: Release, name: str, routes: tuple[Route, ...], shared: Counter[str]) -> Row:
    if name in release.finders:
        return Row("added", "", name, [], ["lists the old tools by the words of its query"])
    if not routes:
        return Row("added", "", name, [], ["nothing behind it: its calls fail"])
    old = ", ".join(dict.fromkeys(route.old for route in routes))
    if release.unchanged(name):
        return Row("same", old, name, [], [])
    if name in release.answers.beside:
        what = "beside"
    elif routes[0].inside:
        what = "dispatched"
    elif len(routes) > 1 or routes[0].when:
        what = "merged"
    elif shared[routes[0].old] > 1:
        what = "split"
    else:
        what = "changed" if old == name else "renamed"
    changes = [one for route in routes for one in _changes(release, name, route)]
    partly = [one for route in routes for one in _partly(release, name, route)]
    return Row(what, old, name, list(dict.fromkeys(changes)), list(dict.fromkeys(partly)))


def _changes(release: Release, name: str, route: Route) -> list[str]:
    source, target = release.before.sources[route.old], release.after.sources[name]
    olds, news = ({p.name: p for p in side.tool.params} for side in (source, target))
    changes = ["description"] if source.tool.description != target.tool.description else []
    for mine, theirs in route.params.items():
        changes += [f"{mine} -> {theirs}"] if mine != theirs else []
        changes += [] if route.inside else _schema_changes(olds[mine], news[theirs])
    changes += [f"{route.params.get(path, path)}: {how}" for path, how in route.units.items()]
    changes += [f"- {p}" for p in olds if p not in route.params]
    for param in news.values():
        if param.name not in route.params.values():
            changes.append(f"+ {param.name}{' (required)' if param.required else ''}")
    changes += [f"result {a} -> {b}" for a, b in route.form.moves.items() if a != b]
    changes += [f"result - {path}" for path in route.form.dropped]
    changes += [
        f"result {path}: {a} -> {b}"
        for path, table in route.form.values.items()
        for a, b in table.items()
        if a != b
    ]
    changes += [f"result {path}: {how}" for path, how in route.form.units.items() if how]
    if route.pages is not None:
        changes.append("results in pages" if route.pages.after else "results in one list")
    return [*changes, *_raw_changes(source, target)]


def _schema_changes(old: Param, new: Param) -> list[str]:
    changes = []
    if old.required != new.required:
        changes.append(f"{new.name} {'required' if new.required else 'optional'}")
    was, now = kind_of(old.schema), kind_of(new.schema)
    if was != now:
        changes.append(f"{new.name}: {was} -> {now}")
    inner = inner_changes(old.schema, new.schema, new.name)
    changes += inner
    if was == now and not inner:
        changes += [f"{new.name}: {what}" for what in _other_changes(old.schema, new.schema)[:1]]
    return changes


def _other_changes(old: JSONSchema, new: JSONSchema) -> list[str]:
    """What else has changed of a schema of the same type, the weightiest first."""
    changed = [key for key in {**old, **new} if old.get(key) != new.get(key)]
    named = {"enum": "other choices", "default": "other default", "description": "description"}
    return [named[key] for key in named if key in changed] or (["schema"] if changed else [])


def _raw_changes(old: Source, new: Source) -> list[str]:
    """What else a document says of its tool, and of its arguments as a whole."""
    changes = []
    for key in ("title", "annotations", "outputSchema"):
        was, now = old.raw.get(key), new.raw.get(key)
        if was != now:
            sign = "+ " if key not in old.raw else "- " if key not in new.raw else ""
            inner = _sub_changes(was, now) if not sign else ""
            changes.append(f"{sign}{key}{inner}")
    compared_before = (
        "properties",
        "required",
        "$schema",
        "title",
        "description",
        "$defs",
        "definitions",
    )
    whole = [k for k in {**old.inputs, **new.inputs} if old.inputs.get(k) != new.inputs.get(k)]
    for key in whole:
        if key == "additionalProperties":
            refused = new.inputs.get(key) is False
            changes.append(f"unknown arguments are {'refused' if refused else 'allowed'}")
        elif key not in compared_before:
            changes.append(f"arguments: {key}")
    return changes


def _sub_changes(was: Any, now: Any) -> str:
    """Which keys of two small objects differ, in brackets."""
    if not isinstance(was, Mapping) or not isinstance(now, Mapping) or "properties" in now:
        return ""
    keys = [key for key in {**was, **now} if was.get(key) != now.get(key)]
    return f" ({', '.join(map(str, keys))})"


def _partly(release: Release, name: str, route: Route) -> list[str]:
    source, target = release.before.sources[route.old], release.after.sources[name]
    olds, news = ({p.name: p for p in side.tool.params} for side in (source, target))
    table = release.answers.params.get(route.old, {})
    asked = [one for one in olds if table.get(one) == UNDECIDED]
    limits = [is_open(route.old, one) for one in asked]
    limits += [f"needs {one}, which nobody can say: all calls fail" for one in route.missing]
    if not route.inside:
        for mine, theirs in route.params.items():
            limits += _not_carried(route, olds[mine], news[theirs])
            limits += _as_left_out(release, name, olds[mine], news[theirs])
    lost = [p for p in olds if p not in (*route.params, *route.fixed, *route.missing, *asked)]
    limits += [f"{one} can no longer be said" for one in lost]
    heard = {*route.params.values(), route.inside, route.when[0] if route.when else ""}
    after = route.pages.after if route.pages is not None else None
    heard |= {after.param.name, after.size_param} if after is not None else set()
    unheard = [one for one in news if one not in heard]
    refused = [one for one in unheard if one in route.added and not route.reads]
    limits += [f"{one} has no effect" for one in unheard if one not in refused]
    limits += [f"{one} cannot be said: calls with it fail" for one in refused]
    if route.form.before is None and route.form.after is not None:
        limits.append("results declare nothing today: one that is not as declared now fails")
    limits += route.form.open
    if route.pages is not None and not route.pages.is_known:
        limits.append(f"how many are on a page is not declared: half ([pages.{name}] size = ...)")
    return limits


def _as_left_out(release: Release, name: str, old: Param, new: Param) -> list[str]:
    """The value of an option that is required now which the old tool is not told."""
    value = release.answers.given.get(name, {}).get(new.name, usual(new.schema))
    if old.required or not new.required or value is None:
        return []
    return [f"{new.name} = {as_text(value)}: not passed on for tasks that leave it out"]


def _not_carried(route: Route, old: Param, new: Param) -> list[str]:
    """What may be said for a new parameter that the old tool cannot take, and the reverse."""
    limits = []
    renamed = route.values.get(old.name, {})
    mine, theirs = choices_of(old.schema), choices_of(new.schema)
    unfit = [one for one in theirs if not route.takes(old.name, one, old.schema)]
    if unfit:
        limits.append(f"{new.name} = {' or '.join(unfit[:5])}: calls fail")
    gone = [one for one in mine if renamed.get(one, one) not in theirs] if theirs else []
    if gone:
        limits.append(f"{new.name}: {', '.join(gone[:5])} can no longer be said")
    inner = inner_changes(old.schema, new.schema, new.name)
    example = sample(new.schema)
    taken = route.takes(old.name, example, old.schema)
    if inner and not taken:
        limits.append(f"inside {new.name}, names are not carried: {', '.join(inner)}")
    elif not inner and kind_of(old.schema) != kind_of(new.schema) and not theirs:
        if taken:
            limits.append(f"{new.name}: where it can be said as {kind_of(old.schema)} without loss")
        else:
            written = as_json(example)[:60]
            limits.append(f"{new.name}: what is said as {written} cannot be carried, so calls fail")
    return limits


def counts_of(rows: list[Row]) -> dict[str, int]:
    """How many tools there are of each kind."""
    counts = Counter(row.what for row in rows)
    kinds = (
        "same",
        "changed",
        "renamed",
        "merged",
        "dispatched",
        "split",
        "beside",
        "removed",
        "open",
        "added",
    )
    return {kind: counts[kind] for kind in kinds if counts[kind]}

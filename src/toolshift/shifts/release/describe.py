"""What a change changes, in words: a row for each tool, and what it cannot carry."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from toolshift.core.tool import Param
from toolshift.shifts.release.mapped_tools import Route
from toolshift.shifts.release.release import Release


class Row(msgspec.Struct, frozen=True):
    """What becomes of a tool.

    Attributes:
        what: same, changed, renamed, merged, split, removed or added.
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
    shared = Counter(route.old for each in release.routes.values() for route in each)
    rows = [_row(release, name, each, shared) for name, each in release.routes.items()]
    gone = [name for name in release.before.sources if name in release.lost]
    return [*rows, *(Row("removed", name, "", [], []) for name in gone)]


def _row(release: Release, name: str, each: tuple[Route, ...], shared: Counter[str]) -> Row:
    if not each:
        return Row("added", "", name, [], ["nothing behind it: its calls fail"])
    old = ", ".join(route.old for route in each)
    if release.unchanged(name):
        return Row("same", old, name, [], [])
    if len(each) > 1 or each[0].when:
        what = "merged"
    elif shared[each[0].old] > 1:
        what = "split"
    else:
        what = "changed" if old == name else "renamed"
    changes = [one for route in each for one in _changes(release, name, route)]
    partly = [one for route in each for one in _partly(release, name, route)]
    return Row(what, old, name, list(dict.fromkeys(changes)), list(dict.fromkeys(partly)))


def _changes(release: Release, name: str, route: Route) -> list[str]:
    source, target = release.before.sources[route.old], release.after.sources[name]
    olds, news = ({p.name: p for p in each.tool.params} for each in (source, target))
    said = ["description"] if source.tool.description != target.tool.description else []
    for mine, theirs in route.params.items():
        said += [f"{mine} -> {theirs}"] if mine != theirs else []
        said += _schema_changes(olds[mine], news[theirs])
    said += [f"- {p}" for p in olds if p not in route.params]
    for param in news.values():
        if param.name not in route.params.values():
            said.append(f"+ {param.name}{' (required)' if param.required else ''}")
    said += [f"result {a} -> {b}" for a, b in route.fields.items() if a != b]
    said += [f"result - {path}" for path in route.dropped]
    said += _raw_changes(source.raw, target.raw)
    return said


def _schema_changes(old: Param, new: Param) -> list[str]:
    said = []
    if old.required != new.required:
        said.append(f"{new.name} {'required' if new.required else 'optional'}")
    was, now = _type(old), _type(new)
    if was != now:
        said.append(f"{new.name}: {was} -> {now}")
    elif old.schema.get("enum") != new.schema.get("enum"):
        said.append(f"{new.name}: other choices")
    elif old.schema.get("description") != new.schema.get("description"):
        said.append(f"{new.name}: description")
    elif old.schema != new.schema:
        said.append(f"{new.name}: schema")
    return said


def _raw_changes(old: Any, new: Any) -> list[str]:
    """What else a document says of its tool."""
    said = []
    for key in ("title", "annotations", "outputSchema"):
        if old.get(key) != new.get(key):
            sign = "+ " if key not in old else "- " if key not in new else ""
            said.append(f"{sign}{key}")
    return said


def _type(param: Param) -> str:
    kind = param.schema.get("type", "any")
    return " or ".join(map(str, kind)) if isinstance(kind, list) else str(kind)


def _partly(release: Release, name: str, route: Route) -> list[str]:
    olds, news = (
        {p.name: p for p in box.sources[which].tool.params}
        for box, which in ((release.before, route.old), (release.after, name))
    )
    said = [f"needs {one}, which nobody can say: all calls fail" for one in route.missing]
    for mine, theirs in route.params.items():
        if _type(olds[mine]) != _type(news[theirs]):
            said.append(f"{theirs}: where it can be said as {_type(olds[mine])} without loss")
    lost = [p for p in olds if p not in (*route.params, *route.fixed, *route.missing)]
    said += [f"{one} can no longer be said" for one in lost]
    more = [p for p in news if p not in route.params.values()]
    by = route.when[0] if route.when else ""
    said += [f"{one} has no effect" for one in more if one != by]
    if "outputSchema" in release.after.sources[name].raw and (
        release.before.sources[route.old].raw.get("outputSchema")
        != release.after.sources[name].raw["outputSchema"]
    ):
        said.append("results are the old tool's, where its schema allows")
    return said


def counts_of(rows: list[Row]) -> dict[str, int]:
    """How many tools there are of each kind."""
    found = Counter(row.what for row in rows)
    kinds = ("same", "changed", "renamed", "merged", "split", "removed", "added")
    return {kind: found[kind] for kind in kinds if found[kind]}

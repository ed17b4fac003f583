"""`toolshift list`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import click

from toolshift.agents.catalog import forms
from toolshift.cli.options import AsJson
from toolshift.cli.parameters import argument, options_struct
from toolshift.core.errors import UsageError
from toolshift.core.names import unknown
from toolshift.core.terminal import print_json, print_table, say
from toolshift.lm.bases import BASES, is_there
from toolshift.runs.suite import SUITES
from toolshift.shifts.real_drift import real_drift
from toolshift.shifts.registry import shifts
from toolshift.worlds.registry import find_world, world_names

Table = list[dict[str, Any]]
ONLY_JSON = (
    *("version", "severities", "level", "preserves", "imitates", "real_drift"),
    *("packages", "file", "template"),
)
"""Columns for which a terminal has no room."""


@dataclass(frozen=True, kw_only=True)
class ListOptions:
    """What `toolshift list` is asked for."""

    what: Annotated[str, argument()] = "all"
    as_json: AsJson = False


@click.command("list")
@options_struct(ListOptions)
def list_(options: ListOptions) -> None:
    """List worlds, shifts, suites, agents, kinds or base models."""
    what = options.what
    makers = {
        "suites": _suites,
        "worlds": _worlds,
        "kinds": _kinds,
        "shifts": _shifts,
        "agents": _agents,
        "models": _models,
    }
    if what != "all" and what not in makers:
        raise UsageError(unknown("list", what, makers))
    chosen = {name: make() for name, make in makers.items() if what in ("all", name)}
    if options.as_json:
        print_json(chosen[what] if what != "all" else chosen)
        return
    for title, rows in chosen.items():
        columns = [name for name in (rows[0] if rows else ()) if name not in ONLY_JSON]
        print_table(f"\n{title}", columns, [[row[name] for name in columns] for row in rows])
        if title == "worlds":
            say(
                "Installed benchmarks are worlds too: bfcl:CATEGORY, tau2:DOMAIN (docs/bfcl.md, "
                "docs/tau2.md)."
            )


def _suites() -> Table:
    return [{"suite": s.name, "what": s.summary} for s in SUITES.all().values()]


def _worlds() -> Table:
    found = []
    for name in world_names():
        world = find_world(name)
        writes = sum(tool.effect == "write" for tool in world.tools)
        about = (type(world).__doc__ or "").strip().partition("\n")[0]
        found.append(
            {
                "world": name,
                "tools": len(world.tools),
                "of which write": writes,
                "task kinds": len(world.kinds),
                "what": about,
            }
        )
    return found


def _kinds() -> Table:
    return [
        {"world": name, "kind": kind, "turns": len(found.requests)}
        for name in world_names()
        for kind, found in find_world(name).kinds.items()
    ]


def _shifts() -> Table:
    return [
        {
            "shift": s.name,
            "version": s.version,
            "severities": list(s.severities),
            "tier": s.tier,
            "dimension": s.dimension,
            "level": s.level,
            "preserves": s.preserves.replace("_", " "),
            "imitates": s.imitates,
            "real_drift": real_drift(s.name),
            "what": s.summary,
        }
        for s in shifts().values()
    ]


def _models() -> Table:
    return [
        {
            "model": base.name,
            "there": "yes" if is_there(base) else "no",
            "what": base.what,
            "licence": base.licence,
            "install": base.install,
            "packages": list(base.modules),
            "file": base.file,
            "template": base.template,
        }
        for base in BASES.values()
    ]


def _agents() -> Table:
    return [{"agent": form, "what": what} for form, what in forms().items()]

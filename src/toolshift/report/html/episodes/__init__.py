"""See it happen: the clean and the shifted episode side by side, with an index of all episodes.

A page holds the traces that matter most and a row for every other episode, which says how to see
it. `toolshift report --open` serves the same page and brings every trace when it is asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from jinja2 import Environment

from toolshift.report.html.episodes.catalog import Catalog, Row
from toolshift.report.html.episodes.choose import choose
from toolshift.report.html.episodes.pack import Pack
from toolshift.runs.run_folder import Record, RunFolder

KEEP = 1000
"""Episodes whose traces stay in the page; the clean ones beside them are not counted."""
LONGEST = 4000
"""Characters of a text in the page; the rest is in the run folder only."""
MAX_BYTES = 1_800_000
"""Bytes of all traces together; with its charts a page then stays under 5 MB."""
SCRIPTS = ("text.js", "tools.js", "steps.js", "list.js", "script.js")


@dataclass(frozen=True)
class Fragment:
    """A part of the page: safe markup, its styles, its script and the data that it reads."""

    html: str
    css: str
    script: str
    data: dict[str, Any]


def fragment(folders: Sequence[RunFolder], keep: int = KEEP) -> Fragment:
    """The episodes of runs, as a part of a page."""
    catalog = Catalog(folders)
    rows = catalog.rows()
    pack = _pack(catalog, rows, choose(rows)[:keep])
    places = [catalog.numbers(row) for row in rows]
    data = {
        **catalog.lists(),
        "limit": LONGEST,
        "ids": "".join(row.head.episode for row in rows),
        "rows": [list(column) for column in zip(*places, strict=True)],
        **pack.to_dict(),
    }
    return Fragment(_template(catalog), _asset("style.css"), _script(), data)


def _pack(catalog: Catalog, rows: Sequence[Row], chosen: Sequence[Row]) -> Pack:
    """The traces of the chosen episodes, as many as there is room for."""
    by_scene = {(row.run, row.head.agent, row.head.cell): row for row in rows}

    def clean_of(row: Row) -> Row | None:
        cell = catalog.clean_cell(row.run, row.cell)
        return by_scene.get((row.run, row.head.agent, cell.id)) if cell else None

    partners = {row.key: clean_of(row) for row in chosen}
    wanted = {row.key for row in (*chosen, *filter(None, partners.values()))}
    records = _records(catalog, wanted)
    pack = Pack(catalog.scene, LONGEST, MAX_BYTES)
    for row in chosen:
        partner = partners[row.key]
        clean = (partner, records[partner.key]) if partner else None
        pack.add(row, records[row.key], clean)
    return pack


def _records(catalog: Catalog, wanted: Collection[str]) -> dict[str, Record]:
    """The records of some episodes, by key."""
    names = {key.partition("-")[2] for key in wanted}
    return {
        f"{run}-{record.episode}": record
        for run in range(len(catalog.folders))
        for record in catalog.folders[run].some(names)
        if f"{run}-{record.episode}" in wanted
    }


def _template(catalog: Catalog) -> str:
    page = Environment(autoescape=True).from_string(_asset("episodes.html"))
    return page.render(runs=[folder.path.resolve().name for folder in catalog.folders])


def _script() -> str:
    parts = "\n".join(_asset(name) for name in SCRIPTS)
    return f'(() => {{\n"use strict";\n{parts}\n}})();\n'


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")

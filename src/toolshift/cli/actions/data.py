"""`toolshift data`."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from toolshift.core.errors import UsageError
from toolshift.core.files import write
from toolshift.core.names import unknown
from toolshift.core.terminal import print_json, print_table, progress
from toolshift.lm.prompt import LAYOUTS, Layout
from toolshift.shifts.registry import PLUGINS
from toolshift.train.data import make_rows
from toolshift.train.rows import Row, parquet, turns_of, write_rows
from toolshift.train.scenes import Mix, check, due


def data_command(
    out: Path,
    count: int,
    alpha: float,
    asked: dict[str, Any],
    turns: bool,
    layout: str | None,
    as_json: bool,
) -> None:
    """Writes the rows or their turns, a card beside them, and prints what they are."""
    mix = read_mix(alpha, asked)
    written_out = _layout(turns, layout)
    check_name(out)
    with progress("trajectories") as watch:
        rows = make_rows(mix, count, watch)
    check_share(shifted_of(rows), mix, count)
    written = list(turns_of(rows, written_out)) if turns else rows
    digest = write_rows(written, out)
    how = {"turns": len(written), "layout": written_out} if turns else {}
    found = {**statistics(rows), **how}
    said = card(out.name, mix, count, digest, found)
    write(out.with_name(out.name + ".md"), said.encode())
    if as_json:
        print_json({"file": str(out), "sha256": digest, "mix": mix, **found})
        return
    for title in ("kinds", "shifts"):
        if found[title]:
            table = [[name, number] for name, number in found[title].items()]
            print_table(title, [title.removesuffix("s"), "trajectories"], table)
    again = len(rows) - found["distinct"]
    click.echo(
        f"{len(written)} {'turns, a row each,' if turns else 'rows'} of {count} trajectories in "
        f"{out} (sha256 {digest[:12]}...); "
        + f"{again} duplicates; "
        * bool(again)
        + f"{found['unsolvable']} trajectories end in a refusal, "
        f"{found['calls_per_row']:.1f} calls each"
    )


def read_mix(alpha: float, asked: dict[str, Any]) -> Mix:
    """The mix that was asked for on the command line; what was left out is the default's."""
    given = {name: value for name, value in asked.items() if value not in ((), None)}
    if not alpha:
        for name in ("shift", "severity"):
            if given.get({"shift": "shifts", "severity": "severities"}[name]):
                raise click.UsageError(
                    f"--{name} is given, but --alpha is 0, so nothing would be shifted: give the "
                    "share that is to be, as in --alpha 0.3"
                )
    mix = Mix(alpha=alpha, **given)
    check(mix)
    return mix


def shifted_of(rows: list[Row]) -> int:
    """How many trajectories are shifted; one may make several rows."""
    return len({row["lineage"] for row in rows if row["shifts"]})


def check_share(shifted: int, mix: Mix, count: int, what: str = "trajectories") -> None:
    """Makes sure that shifts reached what is trained on; warns where they reached little of it.

    Args:
        shifted: how many are shifted.
        mix: that they were drawn from.
        count: how many there are.
        what: they are.

    Raises:
        UsageError: where none is shifted though alpha says so.
    """
    wanted = sum(due(mix, number) for number in range(count))
    if mix.alpha and not wanted:
        raise UsageError(
            f"alpha {mix.alpha:g} of {count} {what}"
            f"{f' that come {mix.share} at a time' if mix.share > 1 else ''} is none: raise "
            "--alpha or --count"
        )
    if wanted and not shifted:
        raise UsageError(
            f"{', '.join(mix.shifts)} can be applied to none of the {count} {what}, all of "
            "which would be clean: choose the world, the kinds or the shifts otherwise"
        )
    if shifted < 0.9 * wanted:
        click.echo(
            f"Only {shifted} of the {wanted} {what} that alpha asks for are shifted: the "
            "shifts cannot be applied to the others, which are clean.",
            err=True,
        )


def check_name(out: Path) -> None:
    """Refuses a file that could not be written, before the work."""
    if out.suffix not in (".jsonl", ".parquet"):
        raise click.UsageError(f"--out {out}: name a file that ends in .jsonl or .parquet")
    if out.suffix == ".parquet":
        parquet()
    if out.is_dir():
        raise click.UsageError(f"--out {out}: that is a folder; name a file")


def statistics(rows: list[Row]) -> dict[str, Any]:
    """Counts of a data set; what is not said to be of rows or messages is of trajectories.

    `calls_per_row` is the mean number of calls the assistant makes; `distinct` leaves out what
    stands there again, as where a world has fewer tasks than are asked for.
    """
    trajectories = list({row["lineage"]: row for row in rows}.values())
    calls = [len(message.get("tool_calls", ())) for row in rows for message in row["messages"]]
    masked = sum(message.get("weight") == 0 for row in rows for message in row["messages"])
    return {
        "rows": len(rows),
        "distinct": len({row["id"] for row in rows}),
        "unsolvable": sum(not row["solvable"] for row in trajectories),
        "calls_per_row": sum(calls) / len(rows),
        "masked_messages": masked,
        "kinds": _counted(f"{row['world']}/{row['kind']}" for row in trajectories),
        "shifts": _counted("+".join(row["shifts"]) or "clean" for row in trajectories),
    }


def _layout(turns: bool, asked: str | None) -> Layout:
    """How turns are written out.

    Raises:
        click.UsageError: where nothing is written out.
        UsageError: for an unknown layout.
    """
    if asked and not turns:
        raise click.UsageError("--layout is how --turns writes tools and calls out: give --turns")
    for layout in LAYOUTS:
        if layout == (asked or LAYOUTS[0]):
            return layout
    raise UsageError(unknown("layout", asked or "", LAYOUTS))


def _counted(names: Iterable[str]) -> dict[str, int]:
    return dict(Counter(names).most_common())


def card(name: str, mix: Mix, count: int, digest: str, found: dict[str, Any]) -> str:
    """A card in Markdown that says what a data set is and how to make it again."""
    words = [f"--turns --layout {found['layout']}"] if "turns" in found else []
    words += [f"--count {count}", f"--alpha {mix.alpha}", f"--seed {mix.seed}"]
    words += [f"--slips {mix.slips}"] * bool(mix.slips)
    words += [f"--share {mix.share}"] * (mix.share > 1)
    words += [f"--size {mix.size}", *(f"--world {world}" for world in mix.worlds)]
    words += [f"--kind {kind}" for kind in mix.kinds]
    words += [f"--shift '{each}'" for each in mix.shifts if mix.alpha]
    words += [f"--severity {each}" for each in mix.severities if mix.alpha]
    counts = [f"| {what} | {number} |" for what, number in found["kinds"].items()]
    shifted = [f"| {what} | {number} |" for what, number in found["shifts"].items()]
    turns = [f"- written as turns, a row each: {found['turns']}"] if "turns" in found else []
    return "\n".join(
        [
            f"# {name}",
            "",
            "Expert trajectories of ToolShift's oracle, which acts only on what it is shown and is",
            "graded in every scene. Entities and wordings are of the training pool.",
            "",
            f"- rows: {found['rows']}, of {count} trajectories (a change of the tools in",
            "  mid-episode starts a new row)",
            *turns,
            f"- trajectories that end in a refusal, rightly: {found['unsolvable']}",
            f"- assistant messages that are context only (`weight: 0`): {found['masked_messages']}",
            f"- SHA-256: `{digest}`",
            f"- made by: `toolshift {' '.join([*_plugins(), 'data'])} --out {name} "
            f"{' '.join(words)}`",
            "",
            "| kind | trajectories |",
            "|---|---:|",
            *counts,
            "",
            "| shift | trajectories |",
            "|---|---:|",
            *shifted,
            "",
        ]
    )


def _plugins() -> list[str]:
    """The options that load the shifts of the user's own that are loaded now."""
    loaded = filter(None, os.environ.get(PLUGINS, "").split(os.pathsep))
    return [f"--plugin {shlex.quote(Path(each).name)}" for each in loaded]

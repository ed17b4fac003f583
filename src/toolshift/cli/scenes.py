"""`toolshift show` and `toolshift minimise`."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

import click

from toolshift.agents.catalog import contestants
from toolshift.cli.options import PATH, ModelOptions, as_json, entities, model, options_struct
from toolshift.cli.trace import find_episode
from toolshift.core.errors import UsageError
from toolshift.core.files import check_writable
from toolshift.core.shift import NotApplicable
from toolshift.core.terminal import console, print_json, progress, say
from toolshift.report.scene import as_data, side_by_side
from toolshift.runs.cell import Cell, build
from toolshift.runs.minimise import Smallest, as_test, find_smallest
from toolshift.runs.run_folder import RunFolder
from toolshift.runs.suite import read_task


@dataclass(frozen=True, kw_only=True)
class ShowOptions:
    """What `toolshift show` is asked for; the shifts are one stack."""

    task: str
    shifts: tuple[str, ...]
    seed: int
    pool: str
    size: int
    as_json: bool


@click.command()
@click.argument("task", metavar="WORLD/KIND[/INDEX]")
@click.option("--shift", "shifts", multiple=True, metavar="NAME[:SEV]", help="Shift; repeat.")
@entities
@as_json
@options_struct(ShowOptions)
def show(options: ShowOptions) -> None:
    """Show one scene before and after a shift, side by side.

    \b
    toolshift show poi/booking --shift merged_tools:2
    toolshift show retail/refund/3 --shift format_drift:3 --shift query_typos
    """
    stack = "+".join(options.shifts)
    cell = read_task(options.task, stack, options.seed, options.pool, options.size)
    try:
        after = build(cell)
    except NotApplicable as reason:
        raise UsageError(
            f"{cell.stack} is not applicable to {options.task}: {reason}. Try another task."
        ) from None
    if options.as_json:
        print_json(as_data(after.clean, after))
    else:
        console().print(side_by_side(after.clean, after))


@dataclass(frozen=True, kw_only=True)
class MinimiseOptions:
    """What `toolshift minimise` is asked for; without an agent, it is made from the manifest."""

    run: Path
    episode: str
    agent: str | None
    model: ModelOptions
    out: Path | None
    as_json: bool


@click.command()
@click.argument("run", type=PATH)
@click.argument("episode")
@click.option("--agent", help="The agent, where it cannot be made from the run's manifest.")
@model
@click.option("--out", type=PATH, help="The pytest file to write.")
@as_json
@options_struct(MinimiseOptions)
def minimise(options: MinimiseOptions) -> None:
    """Find the smallest scene in which an episode still fails, and write it as a pytest case."""
    folder = RunFolder.read(options.run)
    folder.require_code()
    record, cell = find_episode(folder, options.episode)
    if record.grade.passed or record.grade.void:
        state = "is void" if record.grade.void else "passed"
        raise UsageError(f"episode {record.episode} {state}: only a failure can be minimised")
    about = next((a for a in folder.manifest.agents if a["name"] == record.agent), {})
    spec = options.agent or str(about.get("spec", ""))
    if not spec:
        raise UsageError(
            f"the manifest does not say how to make {record.agent}: name it with --agent"
        )
    path = options.out or Path(f"test_{record.episode}.py")
    check_writable(path, "--out")
    with progress("smaller scenes"):
        found = find_smallest(contestants([spec], **options.model.given())[0], cell)
    text = as_test(found, spec, record.agent)
    try:
        path.write_text(text)
    except OSError as fault:
        raise UsageError(f"{path}: cannot write ({fault.strerror})") from None
    if options.as_json:
        print_json({"before": cell, "smallest": found, "file": str(path)})
    else:
        _print(cell, found, path)


def _print(before: Cell, found: Smallest, path: Path) -> None:
    say(f"before: {before.lineage}  {before.stack or 'clean'}")
    stack = found.cell.stack or "clean: no shift is needed"
    say(f"after:  {found.cell.lineage}  {stack}")
    if found.tools:
        say(f"tools:  {', '.join(found.tools)}")
    say(f"cause:  {found.cause.replace('_', ' ')} ({found.tried} episodes tried)")
    say(f"Written to {path}; run it with: {shlex.join(['pytest', str(path)])}")

"""`toolshift show` and `toolshift minimise`."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import click

from toolshift.agents.catalog import contestants
from toolshift.cli.options import UNDER, AsJson, Entities, ModelOptions
from toolshift.cli.parameters import argument, on_command_line, option, options_struct
from toolshift.cli.shift import show_shift
from toolshift.cli.trace import find_episode
from toolshift.core.errors import UsageError
from toolshift.core.files import check_writable
from toolshift.core.shift import NotApplicable
from toolshift.core.terminal import console, print_json, progress, say
from toolshift.report.scene import as_data, side_by_side
from toolshift.runs.cell import Cell, build, check_solved
from toolshift.runs.minimise import Smallest, as_test, find_smallest
from toolshift.runs.run_folder import RunFolder
from toolshift.runs.suite import read_task
from toolshift.worlds.names import is_file, split_task
from toolshift.worlds.registry import world_names


@dataclass(frozen=True, kw_only=True)
class ShowOptions:
    """What `toolshift show` is asked for; the shifts are one stack."""

    what: Annotated[str, argument(metavar="WORLD/KIND[/INDEX]|SHIFT")]
    shifts: Annotated[
        tuple[str, ...], option("--shift", metavar="NAME[:SEV]", help="Shift; repeat.")
    ] = ()
    under: Annotated[str, UNDER] = ""
    entities: Entities
    as_json: AsJson = False


@click.command()
@options_struct(ShowOptions)
def show(options: ShowOptions) -> None:
    """Show one scene before and after a shift, side by side; or what a shift changes.

    \b
    toolshift show poi/booking --shift merged_tools:2
    toolshift show retail/refund/3 --shift format_drift:3 --shift query_typos
    toolshift show semantic_rename
    toolshift show monday.json
    """
    if _is_task(options.what):
        _show_scene(options)
        return
    if given := on_command_line("shifts", "under", "seed", "pool", "size"):
        raise UsageError(
            f"{given[0]} works only with a scene: name one as WORLD/KIND, such as poi/booking, "
            f"instead of {options.what}"
        )
    show_shift(options.what, options.as_json)


def _is_task(name: str) -> bool:
    """Whether a task is named, and no shift: by its world alone, too, which lacks a kind."""
    world, rest = split_task(name)
    return not name.endswith(".json") and (bool(rest) or is_file(world) or world in world_names())


def _show_scene(options: ShowOptions) -> None:
    """Shows a scene before and after its shifts."""
    of = options.entities
    cell = read_task(
        options.what, "+".join(options.shifts), of.seed, of.pool, of.size, under=options.under
    )
    try:
        after = build(cell)
    except NotApplicable as reason:
        raise UsageError(
            f"{cell.said} is not applicable to {options.what}: {reason}. Try another task."
        ) from None
    check_solved(cell, after)
    if options.as_json:
        print_json(as_data(after.clean, after))
    else:
        console().print(side_by_side(after.clean, after))


@dataclass(frozen=True, kw_only=True)
class MinimiseOptions:
    """What `toolshift minimise` is asked for; without an agent, it is made from the manifest."""

    run: Annotated[Path, argument()]
    episode: Annotated[str, argument()]
    agent: Annotated[
        str | None, option(help="The agent, if it cannot be made from the run's manifest.")
    ] = None
    model: ModelOptions
    out: Annotated[Path | None, option(help="The pytest file to write.")] = None
    as_json: AsJson = False


@click.command()
@options_struct(MinimiseOptions)
def minimise(options: MinimiseOptions) -> None:
    """Find the smallest scene in which an episode still fails, and write it as a pytest case.

    EPISODE is named as in `toolshift trace`: by the beginning of its id, or by the `id` of a task
    in your own file.
    """
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

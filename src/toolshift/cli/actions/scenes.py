"""`toolshift show` and `toolshift minimise`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from toolshift.agents.catalog import contestants
from toolshift.cli.actions.runs import find_episode
from toolshift.core.errors import UsageError
from toolshift.core.shift import NotApplicable
from toolshift.core.terminal import console, print_json, progress
from toolshift.runs.cell import build
from toolshift.runs.minimise import as_test, find_smallest
from toolshift.runs.run_folder import RunFolder
from toolshift.runs.suite import read_task


def show_command(
    task: str, shifts: tuple[str, ...], seed: int, pool: str, size: int, as_json: bool
) -> None:
    """Prints a scene before and after."""
    from toolshift.report.scene import as_data, side_by_side

    cell = read_task(task, "+".join(shifts), seed, pool, size)
    try:
        after = build(cell)
    except NotApplicable as reason:
        raise UsageError(
            f"{cell.stack} is not applicable to {task}: {reason}. Try another task."
        ) from None
    if as_json:
        print_json(as_data(after.clean, after))
    else:
        console().print(side_by_side(after.clean, after))


def minimise_command(
    run: Path,
    episode: str,
    agent: str | None,
    out: Path | None,
    options: dict[str, Any],
    as_json: bool,
) -> None:
    """Finds the smallest scene that still fails, and writes it down."""
    folder = RunFolder.read(run)
    record, cell = find_episode(folder, episode)
    if record.grade.passed or record.grade.void:
        state = "is void" if record.grade.void else "passed"
        raise UsageError(f"episode {record.episode} {state}: only a failure can be minimised")
    about = next((a for a in folder.manifest.agents if a["name"] == record.agent), {})
    spec = agent or str(about.get("spec", ""))
    if not spec:
        raise UsageError(
            f"the manifest does not say how to make {record.agent}: name it with --agent"
        )
    with progress("smaller scenes"):
        found = find_smallest(contestants([spec], **options)[0], cell)
    path = out or Path(f"test_{record.episode}.py")
    text = as_test(found, spec, record.agent)
    try:
        path.write_text(text)
    except OSError as fault:
        raise UsageError(f"{path}: cannot write ({fault.strerror})") from None
    if as_json:
        print_json({"before": cell, "smallest": found, "file": str(path)})
        return
    click.echo(f"before: {cell.lineage}  {cell.stack or 'clean'}")
    stack = found.cell.stack or "clean: no shift is needed"
    click.echo(f"after:  {found.cell.lineage}  {stack}")
    if found.tools:
        click.echo(f"tools:  {', '.join(found.tools)}")
    click.echo(f"cause:  {found.cause.replace('_', ' ')} ({found.tried} episodes tried)")
    click.echo(f"Written to {path}; run it with: pytest {path}")

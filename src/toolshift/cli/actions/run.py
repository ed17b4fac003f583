"""`toolshift run`."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from toolshift.agents.catalog import contestants
from toolshift.api import report_of, run_plan, save_report
from toolshift.core.errors import BudgetSpent, UsageError
from toolshift.core.terminal import console, print_json, progress
from toolshift.runs.plan import Plan, make_plan
from toolshift.runs.run_folder import RunFolder
from toolshift.runs.suite import Selection, select


def run_command(agents: tuple[str, ...], options: dict[str, Any], asked: dict[str, Any]) -> None:
    """Plans, runs and reports."""
    out, as_json = asked.pop("out"), asked.pop("as_json")
    only, estimate = asked.pop("only_distinguishable"), asked.pop("estimate")
    workers, concurrency = asked.pop("workers"), asked.pop("concurrency")
    if workers < 1 or (concurrency is not None and concurrency < 1):
        raise UsageError("workers and concurrency must be at least 1")
    selection = select(Selection(placebo=not asked.pop("no_placebo"), **asked))
    with progress("planning") as watch:
        plan = make_plan(selection, lambda cells: watch(cells, 0))
    if estimate:
        _estimate(plan, agents, options, as_json)
        return
    path = out or new_folder(selection.suite)
    those = contestants(list(agents), concurrency, **options)
    try:
        with progress("episodes") as watch:
            report = run_plan(plan, those, path, workers, watch)
    except (KeyboardInterrupt, BudgetSpent) as stop:
        say_stopped(path, isinstance(stop, BudgetSpent), str(stop))
    except UsageError as wrong:
        if (path / "episodes.jsonl").exists() and not out:
            raise UsageError(f"{wrong} Finished episodes are kept: --out {path} goes on.") from None
        raise
    if as_json:
        print_json(report)
    else:
        from toolshift.report.terminal import print_report

        print_report(report, console(), only)
        click.echo(f"\nRun folder: {path}")
    if report.broken:
        names = ", ".join(each.shift for each in report.broken)
        click.echo(
            f"A shift is broken: {names}. The rest was run. `toolshift check` says more.", err=True
        )
    unreached = [
        each.name
        for each in report.agents
        if each.infrastructure == each.everything.void > 0
        and each.everything.episodes == each.everything.void
    ]
    if unreached:
        click.echo(
            f"Nothing was measured of {', '.join(unreached)}: every episode ended in an "
            f"infrastructure error. `toolshift trace {path}` has their texts.",
            err=True,
        )
    if unreached or report.broken:
        sys.exit(1)


def new_folder(suite: str) -> Path:
    """A folder named by the clock; nothing scored depends on it."""
    base = Path("runs") / f"{datetime.now():%Y%m%d-%H%M%S}-{suite.partition(' ')[0]}"
    path, number = base, 2
    while path.exists():
        path, number = base.with_name(f"{base.name}-{number}"), number + 1
    return path


def say_stopped(path: Path, spent: bool, why: str) -> None:
    """Tells what is kept and how to go on."""
    kept = 0
    if (path / "manifest.json").exists():
        folder = RunFolder.read(path)
        kept = sum(1 for _ in folder.records())
        if kept:
            save_report(folder, report_of(folder))
    reason = f"Stopped: {why}" if spent else "Stopped."
    click.echo(
        f"{reason} {kept} finished episodes are kept in {path}. Run the same command with "
        f"--out {path} to go on.",
        err=True,
    )
    sys.exit(2 if spent else 130)


def _estimate(plan: Plan, agents: tuple[str, ...], options: dict[str, Any], as_json: bool) -> None:
    from toolshift.runs.estimate import estimate_run

    found = estimate_run(plan, agents, options)
    if as_json:
        print_json(found)
        return
    for each in found:
        click.echo(each.text)

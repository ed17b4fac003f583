"""Executing a run for a command: progress bars, and what to say where it is stopped."""

from __future__ import annotations

import shlex
import sys
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from pathlib import Path

import msgspec

from toolshift.agents.answer_cache import Exchanges
from toolshift.api import Evaluation, report_of, report_on, save_report
from toolshift.core.errors import BudgetSpent, Resumable, UsageError
from toolshift.core.terminal import Progress, progress, say
from toolshift.core.tool import BROKEN_SHIFT, JSON
from toolshift.measure.metrics import Measures
from toolshift.measure.report import Report
from toolshift.runs.execute import RunSpec, planning, play_plan
from toolshift.runs.plan import Plan
from toolshift.runs.prefetch import Prefetch
from toolshift.runs.run_folder import RunFolder


def run_shown(
    spec: RunSpec,
    named: bool,
    check: Progress = lambda done, total: None,
    shown: str = "",
) -> Evaluation:
    """Executes a run, and says how to resume it where it is stopped."""
    assert spec.folder is not None
    shown = shown or str(spec.folder)
    for contestant in spec.agents:
        if (batches := getattr(contestant.agent, "batches", None)) is not None:
            batches.told = partial(say, err=True)
    with ExitStack() as stack:
        try:
            plan, prefetch = _planned(spec, check, shown, stack)
        except Resumable as lost:
            raise (lost if named else UsageError(_and_resumed(lost, shown))) from None
        try:
            with progress("episodes") as watch:

                def both(done: int, total: int) -> None:
                    watch(done, total)
                    check(done, total)

                return report_on(play_plan(spec, plan, prefetch, both))
        except (KeyboardInterrupt, BudgetSpent) as stop:
            _say_stopped(spec.folder, isinstance(stop, BudgetSpent), str(stop), shown)
            say_requests(spec.exchanges)
            sys.exit(2 if isinstance(stop, BudgetSpent) else 130)
        except UsageError as wrong:
            if (spec.folder / "episodes.jsonl").exists() and not named:
                raise UsageError(_and_resumed(wrong, shown)) from None
            raise


def _planned(
    spec: RunSpec, check: Progress, shown: str, stack: ExitStack
) -> tuple[Plan, Prefetch | None]:
    """Plans with a progress bar; where that is stopped, says how to resume, and ends."""
    try:
        with progress("planning") as watch:

            def both(cells: int) -> None:
                watch(cells, 0)
                check(cells, 0)

            return stack.enter_context(planning(spec, both))
    except KeyboardInterrupt:
        say(
            f"Stopped while planning. Run the same command with "
            f"{shlex.join(['--out', shown])} to resume.",
            err=True,
        )
        sys.exit(130)


def _and_resumed(wrong: UsageError, shown: str) -> str:
    """What went wrong, and how a run goes on whose folder the user has not named."""
    resume = shlex.join(["--out", shown])
    return f"{str(wrong).rstrip('.')}. Finished episodes are kept: {resume} resumes."


def say_requests(exchanges: Exchanges) -> None:
    """Says how many requests were sent, and how many answers were there already."""
    for line in exchanges.lines:
        say(line)


def with_requests(printed: object, exchanges: Exchanges) -> object:
    """What a command prints as JSON, with the figures of its requests where it has sent any."""
    if not exchanges.lines:
        return printed
    found = {"figures": exchanges.figures, "notes": exchanges.notes}
    fields = printed if isinstance(printed, dict) else msgspec.json.decode(JSON.encode(printed))
    return {**fields, "requests": found}


def new_folder(suite: str) -> Path:
    """A folder named by the clock; nothing scored depends on it."""
    base = Path("runs") / f"{datetime.now():%Y%m%d-%H%M%S}-{suite.partition(' ')[0]}"
    path, number = base, 2
    while path.exists():
        path, number = base.with_name(f"{base.name}-{number}"), number + 1
    return path


def _say_stopped(path: Path, spent: bool, why: str, shown: str) -> None:
    """Tells what is kept and how to resume."""
    kept = 0
    if (path / "manifest.json").exists():
        folder = RunFolder.read(path)
        kept = sum(1 for _ in folder.records())
        if kept:
            save_report(folder, report_of(folder))
    reason = f"Stopped: {why}" if spent else "Stopped."
    say(
        f"{reason} {kept} finished episodes are kept in {shown}. Run the same command with "
        f"{shlex.join(['--out', shown])} to resume.",
        err=True,
    )


UNMEASURED = 4
"""The exit code of `report`, `compare`, `gate` and `change` if nothing was measured."""


def unmeasured(report: Report) -> list[tuple[str, Measures]]:
    """Of which agents, or of which under a shift, no episode has a verdict; each with its row."""
    found = []
    for agent in report.agents:
        every = agent.everything
        if 0 < every.void == every.episodes:
            found.append((agent.name, every))
            continue
        found += [
            (f"{agent.name} {f'under {row.label}' if row is not agent.clean else 'clean'}", row)
            for row in (agent.clean, *agent.shifts)
            if row.unmeasured and set(row.void_kinds) != {BROKEN_SHIFT}  # which is said elsewhere
        ]
    return found


def nothing_measured(report: Report) -> str:
    """Says of what nothing was measured, and why."""
    found = unmeasured(report)
    outage = all(set(row.void_kinds) == {"infrastructure"} for _, row in found)
    why = "every episode ended in an infrastructure error" if outage else "no episode has a verdict"
    return f"Nothing was measured for {', '.join(name for name, _ in found)}: {why}."

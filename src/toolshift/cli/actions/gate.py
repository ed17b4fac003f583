"""`toolshift gate`: may this build be released?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from toolshift.core.errors import BudgetSpent, UsageError
from toolshift.core.terminal import console, print_json, print_table, progress
from toolshift.measure.gate import Family, Gate, check_options, in_percent, in_points, judge
from toolshift.runs.run_folder import RunFolder


def gate_command(
    run: Path | None, baseline: Path, agent: str, options: dict[str, Any], asked: dict[str, Any]
) -> None:
    """Gates a run, or runs the agent on the baseline's plan first; exits by the verdict.

    Args:
        run: the candidate's run folder; None to run `agent`.
        baseline: the run folder to compare with.
        agent: which agent of `run`, or the spec of the agent to run.
        options: for `chat:` agents.
        asked: the other options of the command line.
    """
    check_options(asked["margin"], asked["by"], asked["max_void"])
    before = RunFolder.read(baseline)
    if run is None:
        after = _run(before, agent, options, asked)
    else:
        if asked["out"] or options:
            raise UsageError(
                "--out and the options of models are for --agent without RUN: a finished run is "
                "only read"
            )
        after = RunFolder.read(run)
    found = judge(
        before,
        after,
        asked["margin"],
        baseline_agent=asked["baseline_agent"],
        candidate_agent=agent if run is not None else "",
        by=asked["by"],
        max_void=asked["max_void"],
    )
    _write(found, after.path, asked)
    if asked["as_json"]:
        print_json(found)
    else:
        _print(found, after.path)
    sys.exit(found.exit_code(asked["inconclusive"] or ""))


def _run(
    before: RunFolder, agent: str, options: dict[str, Any], asked: dict[str, Any]
) -> RunFolder:
    """Runs the candidate on exactly the scenes of the baseline, or what is left of them."""
    from toolshift.agents.catalog import contestants
    from toolshift.api import run_plan
    from toolshift.cli.actions.run import new_folder, say_stopped
    from toolshift.measure.compare import shifts_as_they_were

    if not agent:
        raise UsageError("name the candidate: a run folder, or the agent to run with --agent")
    workers, concurrency = asked["workers"], asked["concurrency"]
    if workers < 1 or (concurrency is not None and concurrency < 1):
        raise UsageError("workers and concurrency must be at least 1")
    shifts_as_they_were(before)
    path = asked["out"] or new_folder("gate")
    if path.exists() and path.resolve() == before.path.resolve():
        raise UsageError(f"{path} is the baseline: name another folder with --out")
    those = contestants([agent], concurrency, **options)
    try:
        with progress("episodes") as watch:
            run_plan(before.plan, those, path, workers, watch)
    except (KeyboardInterrupt, BudgetSpent) as stop:
        say_stopped(path, isinstance(stop, BudgetSpent), str(stop))
    except UsageError as wrong:
        if (path / "episodes.jsonl").exists() and not asked["out"]:
            raise UsageError(f"{wrong} Finished episodes are kept: --out {path} goes on.") from None
        raise
    return RunFolder.read(path)


def _write(gate: Gate, run: Path, asked: dict[str, Any]) -> None:
    from toolshift.report.gate_markdown import gate_markdown
    from toolshift.report.junit import junit

    if asked["junit"]:
        _save(asked["junit"], junit(gate, asked["inconclusive"] or ""))
    if asked["markdown"]:
        _save(asked["markdown"], gate_markdown(gate, str(run)))


def _save(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as fault:
        raise UsageError(f"{file}: cannot write there ({fault.strerror})") from None


def _print(gate: Gate, run: Path) -> None:
    title = f"\n{gate.baseline} -> {gate.candidate}, margin {gate.margin:g} points"
    columns = ("", "verdict", "tasks", "before", "after", "change [90%]", "lost", "gained")
    print_table(title, columns, [_row(family) for family in gate.families])
    worse = [family for family in gate.shifts if family.verdict == "fail"]
    if worse:
        print_table("\nshifts that are worse by more than the margin (not gated)", columns,
                    [_row(family) for family in worse])  # fmt: skip
    for family in gate.families:
        if family.verdict != "pass":
            click.echo(f"\n{family.label}: {family.sentence}")
            if family.lost:
                click.echo(f"  lost: {' '.join(family.examples)} (toolshift trace {run} EPISODE)")
    for note in gate.notes:
        console().print(f"\nNote: {note}", style="dim", markup=False)
    click.echo(f"\nGate {gate.sentence}")


def _row(family: Family) -> list[str]:
    return [
        family.label,
        family.verdict,
        str(family.tasks),
        in_percent(family.baseline),
        in_percent(family.candidate),
        in_points(family.change),
        str(family.lost),
        str(family.gained),
    ]

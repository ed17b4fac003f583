"""`toolshift compare` and `toolshift regrade`: on run folders."""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import click

from toolshift.agents.judge import judge_of
from toolshift.api import report_of, save_report
from toolshift.cli.options import AsJson, JudgeModel, JudgeUrl
from toolshift.cli.parameters import argument, option, options_struct
from toolshift.cli.running import UNMEASURED
from toolshift.core.errors import UsageError
from toolshift.core.terminal import console, print_json, print_table, say
from toolshift.measure.compare import Comparison, Contrast, regrade_run
from toolshift.measure.compare import compare as compare_runs
from toolshift.measure.diagnosis import percent, points
from toolshift.report.words import verdict
from toolshift.runs.provenance import own_version
from toolshift.runs.run_folder import VERDICTS, RunFolder


@dataclass(frozen=True, kw_only=True)
class CompareOptions:
    """What `toolshift compare` is asked for; the agents are of the earlier and the later run."""

    before: Annotated[Path, argument()]
    after: Annotated[Path, argument()]
    agents: Annotated[
        tuple[str, ...], option("--agent", help="Agent of BEFORE, then of AFTER.")
    ] = ()
    as_json: AsJson = False


@click.command()
@options_struct(CompareOptions)
def compare(options: CompareOptions) -> None:
    """Compare two runs, paired on the scenes that both have.

    To decide whether the later run is good enough, use `toolshift gate`. Exit code 4: no scene has
    a verdict in both runs.
    """
    if len(options.agents) > 2:
        raise UsageError("give --agent at most twice")
    names = (*options.agents, *options.agents, "", "")
    before, after = RunFolder.read(options.before), RunFolder.read(options.after)
    comparison = compare_runs(before, after, names[0], names[1])
    if options.as_json:
        print_json({"comparison": comparison})
    else:
        for note in comparison.notes:
            say(f"Note: {note}", err=True)
        _print_comparison(comparison)
    if not comparison.everything.pairs:
        say("Nothing was compared: no scene has a verdict in both runs.", err=True)
        sys.exit(UNMEASURED)


@dataclass(frozen=True, kw_only=True)
class RegradeOptions:
    """What `toolshift regrade` is asked for."""

    run: Annotated[Path, argument()]
    write: Annotated[bool, option(help="Write the new verdicts into the run folder.")] = False
    judge: JudgeModel = ""
    judge_url: JudgeUrl = None
    as_json: AsJson = False


@click.command()
@options_struct(RegradeOptions)
def regrade(options: RegradeOptions) -> None:
    """Grade stored traces again, and show how many verdicts have changed.

    With a judge, endings in prose are read again; questions stay as they were read.
    """
    folder, write = RunFolder.read(options.run), options.write
    left: Counter[str] = Counter()
    judge = judge_of(options.judge, options.judge_url)
    if judge is not None:
        judge.remember(folder.path / VERDICTS, write)
    with folder.held() if write else nullcontext():
        records, changed = regrade_run(folder, judge, lambda why: left.update([why]))
        if len(records) == left.total():
            why = next(iter(left), "no episode has been run")
            raise UsageError(f"{folder.path}: nothing was graded again: {why}")
        if write:
            if changed or judge:
                folder.rewrite(records)
            noted = folder.note_grading(own_version(), judge.settings if judge else None)
            save_report(noted, report_of(noted))
    if options.as_json:
        print_json({"episodes": len(records), "changed": changed, "left": left})
        return
    passes = sum(change.before.passed != change.after.passed for change in changed)
    say(
        f"{len(records) - left.total()} episodes graded again: {len(changed)} verdicts changed, "
        f"{passes} of them between pass and failure" + ("; written." if write and changed else ".")
    )
    for why, number in left.items():
        say(f"{number} keep the stored verdict: {why}.")
    for change in changed[:20]:
        say(f"  {change.episode}: {verdict(change.before)} -> {verdict(change.after)}")


def _print_comparison(compared: Comparison) -> None:
    def row(contrast: Contrast) -> list[str]:
        change = contrast.change
        star = " *" if contrast.significant else ""
        drop = type(change)(-change.estimate, -change.high, -change.low, change.method, change.n)
        return [
            contrast.label,
            str(contrast.pairs),
            percent(contrast.before),
            percent(contrast.after),
            points(drop).removesuffix(" points") + star,
            str(contrast.lost),
            str(contrast.gained),
            " ".join(contrast.examples[:1]),
        ]

    columns = ("", "pairs", "before", "after", "change", "lost", "gained", "a lost one")
    main = [row(line) for line in (compared.clean, *compared.tiers, compared.everything) if line]
    print_table(f"\n{compared.before} -> {compared.after}", columns, main)
    shifts = [row(line) for line in compared.shifts if line.significant]
    if shifts:
        print_table("\nsignificant changes by shift", columns, shifts)
    rest = [line.label for line in compared.shifts if not line.significant]
    if rest:
        console().print(f"\nnot significant: {', '.join(rest)}", style="dim")
    console().print(
        f"{compared.only_before} scenes only before, {compared.only_after} only after, "
        f"{compared.void} pairs void. * significant (Holm).",
        style="dim",
    )

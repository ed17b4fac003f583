"""`toolshift check`."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import click

from toolshift.cli.options import as_json, options_struct
from toolshift.core.terminal import print_json, print_table, progress, say
from toolshift.runs.check import (
    Verdict,
    bench_of,
    check_determinism,
    check_shift,
    check_world,
    worlds_of,
)


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """What `toolshift check` is asked for.

    Attributes:
        names: worlds and shifts; all of ours where there are none.
        tasks: of each world; 0 for two of each kind.
    """

    names: tuple[str, ...]
    tasks: int
    seed: int
    as_json: bool


@click.command()
@click.argument("names", nargs=-1)
@click.option("--tasks", default=0, help="Tasks of each world (default: two of each kind).")
@click.option("--seed", default=0, show_default=True, help="Seed of the worlds.")
@as_json
@options_struct(CheckOptions)
def check(options: CheckOptions) -> None:
    """Check worlds and shifts against the rules that make them an instrument.

    NAMES are worlds, shifts, or a plugin as module:attribute; all of ours where none is given. Exit
    code 1 where a rule is broken.
    """
    names = options.names
    bench = bench_of(names, options.tasks, options.seed)
    only_shifts = bool(names) and not worlds_of(names)
    worlds = () if only_shifts else bench.worlds
    verdicts: list[Verdict] = []
    total = len(worlds) + len(bench.shifts) + 1
    with progress("checks") as watch:
        for done, world in enumerate(worlds):
            watch(done, total)
            verdicts += check_world(bench, world)
        for done, name in enumerate(bench.shifts, len(worlds)):
            watch(done, total)
            verdicts += check_shift(bench, name)
        watch(total - 1, total)
        verdicts.append(check_determinism(names, bench))
    _print(verdicts, options.as_json)
    if any(verdict.state == "fail" for verdict in verdicts):
        sys.exit(1)


def _print(verdicts: list[Verdict], as_json: bool) -> None:
    if as_json:
        print_json(verdicts)
        return
    bad = [verdict for verdict in verdicts if verdict.state != "pass"]
    if bad:
        rows = [[v.subject, v.rule, v.state, v.detail] for v in bad]
        print_table("", ("", "rule", "", "what"), rows)
    count = {state: sum(v.state == state for v in verdicts) for state in ("pass", "fail")}
    say(
        f"{len(verdicts)} checks: {count['pass']} passed, {count['fail']} failed, "
        f"{len(bad) - count['fail']} not tested"
    )

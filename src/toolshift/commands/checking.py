"""`toolshift check`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from toolshift.agents.catalog import import_attribute
from toolshift.core.errors import UsageError
from toolshift.core.shift import Shift, find_shift, shifts, unknown
from toolshift.core.terminal import print_json, print_table, progress
from toolshift.core.world import World
from toolshift.runs.check import Bench, Verdict, check_determinism, check_shift, check_world
from toolshift.worlds import find_world, is_file, world_names


def check_command(names: tuple[str, ...], tasks: int, seed: int, as_json: bool) -> None:
    """Checks worlds and shifts; exits with 1 where a rule is broken."""
    bench = bench_of(names, tasks, seed)
    only_shifts = bool(names) and not _worlds_of(names)
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
    _print(verdicts, as_json)
    if any(verdict.state == "fail" for verdict in verdicts):
        sys.exit(1)


def bench_of(names: Sequence[str], tasks: int, seed: int) -> Bench:
    """What to check: the worlds and shifts named, or all of ours; shifts need worlds to stand in.

    Raises:
        UsageError: for a name that is neither, and a plugin that cannot be imported.
    """
    found_worlds, found_shifts = _worlds_of(names), _shifts_of(names)
    if not names:
        found_shifts = [name for name in shifts() if shifts()[name].tier != "none"]
    worlds = found_worlds or [find_world(name) for name in world_names()]
    return Bench(tuple(worlds), tuple(found_shifts), tasks, seed)


def _worlds_of(names: Sequence[str]) -> list[World]:
    loaded = [_load(name) for name in names]
    return [each for each in loaded if isinstance(each, World)]


def _shifts_of(names: Sequence[str]) -> list[str]:
    loaded = [_load(name) for name in names]
    return [each.name for each in loaded if isinstance(each, Shift)]


def _load(name: str) -> World | Shift:
    module, colon, attribute = name.partition(":")
    if is_file(name):
        return find_world(name)
    if not colon:
        if name in world_names():
            return find_world(name)
        if name in shifts():
            return find_shift(name)
        raise UsageError(unknown("world or shift", name, [*world_names(), *shifts()]))
    found = import_attribute(module, attribute, "plugin")
    if isinstance(found, type) and issubclass(found, World):
        found = found()
    if isinstance(found, World | Shift):
        return found
    by_rule = [each for each in shifts().values() if each.rule is found]
    if not by_rule:
        raise UsageError(f"plugin {name} is neither a World nor a function marked with @shift(...)")
    return by_rule[0]


def _print(verdicts: list[Verdict], as_json: bool) -> None:
    if as_json:
        print_json(verdicts)
        return
    bad = [verdict for verdict in verdicts if verdict.state != "pass"]
    if bad:
        rows = [[v.subject, v.rule, v.state, v.detail] for v in bad]
        print_table("", ("", "rule", "", "what"), rows)
    count = {state: sum(v.state == state for v in verdicts) for state in ("pass", "fail")}
    click.echo(
        f"{len(verdicts)} checks: {count['pass']} passed, {count['fail']} failed, "
        f"{len(bad) - count['fail']} not tested"
    )

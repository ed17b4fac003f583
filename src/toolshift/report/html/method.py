"""How a run was made: everything that is needed to judge it, and to make it again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from toolshift.core.command_line import command
from toolshift.core.errors import UsageError
from toolshift.core.scene import Stack
from toolshift.measure.report import draws_entities
from toolshift.report.figures import shown
from toolshift.runs.run_folder import Manifest, RunFolder
from toolshift.runs.suite import ResolvedSelection, Selection, find_suite, select
from toolshift.shifts.registry import find_shift
from toolshift.shifts.stacks import Arm

LONGEST_COMMAND = 100_000
"""Characters; one that is cut off could not be pasted."""


def facts(folder: RunFolder) -> list[tuple[str, str]]:
    """What a run is, as pairs of a name and a value."""
    manifest, asked = folder.manifest, folder.manifest.selection
    pool = ("Pool", shown(asked.pool))
    if draws_entities(asked.worlds):
        pool = ("Pool, entities a world", f"{shown(asked.pool)}, {asked.size}")
    return [
        ("Suite", shown(manifest.suite)),
        ("Worlds", ", ".join(map(shown, asked.worlds))),
        ("Trials of each scene", str(asked.trials)),
        ("Seeds", ", ".join(map(str, asked.seeds))),
        pool,
        ("Placebo arm", "yes" if asked.placebo else "no"),
        ("Plan", shown(manifest.plan_hash)),
        ("ToolShift", shown(manifest.toolshift)),
        ("Graded by ToolShift", shown(manifest.graded_by)),
        ("Python", f"{shown(manifest.python)}, {shown(manifest.platform)}"),
        ("Packages", ", ".join(f"{shown(k)} {shown(v)}" for k, v in manifest.packages.items())),
        ("Started", shown(manifest.started)),
        ("Versions of shifts", _versions(manifest.shifts)),
    ]


def settings(agent: Mapping[str, object]) -> list[tuple[str, str]]:
    """What the manifest says of an agent beside its name; what is nested is spread out."""
    found = []
    for key, value in agent.items():
        if isinstance(value, dict):
            found += settings(value)
        elif key != "name":
            found.append((shown(key), shown(value)))
    return found


def commands(folder: RunFolder) -> list[str]:
    """The commands that make the run and its reports again."""
    return [
        run_command(folder.manifest),
        "toolshift report RUN --json",
        "toolshift trace RUN EPISODE",
    ]


def run_command(manifest: Manifest) -> str:
    """The `toolshift run` that plans the same cells.

    An agent that has no spec is written as `<its name>`: the reader has to say how it is made.
    """
    words = ["run"]
    for agent in manifest.agents:
        spec = agent.get("spec")
        words += ["--agent", str(spec) if spec else f"<{agent['name']}>"]
    words += [word for pair in selection_options(manifest.selection) for word in pair]
    return shown(command(*words, travels=True), LONGEST_COMMAND)


def selection_options(asked: ResolvedSelection) -> Iterable[tuple[str, ...]]:
    """The options that stand for a selection; only those that are not the default."""
    name = asked.suite.partition(" (changed)")[0]
    yield ("--suite", name)
    try:
        suite = find_suite(name)
        arms = select(Selection(name)).arms
    except UsageError:  # a suite of a later version, or of a plugin
        suite, arms = None, ()
    if suite is None or asked.worlds != suite.worlds:
        yield from (("--world", world) for world in asked.worlds)
    yield from (("--kind", kind) for kind in asked.kinds)
    if asked.arms != arms or (suite and suite.rotate and not asked.rotate):
        yield from (("--shift", _arm(arm)) for arm in asked.arms)
        if not asked.arms:
            yield ("--shift", "clean")
    if suite is None or asked.tasks != suite.tasks:
        yield ("--tasks", str(asked.tasks))
    for option, value, default in (
        ("--trials", asked.trials, 1),
        ("--seed", asked.seeds[0] if asked.seeds else 0, 0),
        ("--seeds", len(asked.seeds), 1),
        ("--pool", asked.pool, "dev"),
        ("--size", asked.size, 200),
        ("--max-repeats", asked.max_repeats, 0),
    ):
        if value != default:
            yield (option, str(value))
    if asked.under:
        yield ("--under", _stack(asked.under))
    if not asked.placebo:
        yield ("--no-placebo",)


def _arm(arm: Arm) -> str:
    return _stack(arm.shifts) + (f"*{arm.tasks}" if arm.tasks else "")


def _stack(stack: Stack) -> str:
    return "+".join(f"{_named(applied.shift)}:{applied.severity}" for applied in stack)


def _named(shift: str) -> str:
    """A shift as a command names it; one that is made from a file, by its copy in RUN."""
    try:
        return f"RUN/{shift}.json" if find_shift(shift).file else shift
    except UsageError:  # of a plugin, or of a file that has changed
        return shift


def _versions(shifts: dict[str, int]) -> str:
    odd = [f"{shown(name)} {version}" for name, version in shifts.items() if version != 1]
    if not odd:
        return f"all {len(shifts)} are version 1"
    return f"{', '.join(odd)}; the other {len(shifts) - len(odd)} are version 1"

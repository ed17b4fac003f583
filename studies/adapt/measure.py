"""What the layer of `toolshift.adapt` wins back, and what it harms.

    python studies/adapt/measure.py [--tasks 8] [--pool dev] [--rows build/adapt-dev.jsonl]
    python studies/adapt/measure.py --pages         # the tables of README.md again
    python studies/adapt/measure.py --drift         # only what is certain on published servers

Plays six agents (`agents.py`) that see only messages and tools on every task of three worlds under
every shift and severity of the suite `standard`, and as many clean and `semantic_trap` scenes again
as `--harm` says. Rows are kept as they come, so an interrupted run goes on where it was; `--shard`
plays a part of what is left, into rows of its own. Writes the
pool's part of `results.json.gz` and the tables of README.md.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from importlib.metadata import version
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from random import Random
from typing import Any

from agents import (
    ByHeart,
    DidYouMean,
    Explores,
    FuzzyRepair,
    Reflects,
    Script,
    memory_of,
    reflection,
)

from toolshift.adapt.layer import ASKING, REWRITING, Intervention, adapt
from toolshift.core.scene import Scene
from toolshift.core.terminal import progress
from toolshift.core.tool import Tool
from toolshift.drift.lock import Lock, lock_shown
from toolshift.episode.contract import converse
from toolshift.episode.episode import Episode
from toolshift.episode.grade import grade
from toolshift.interop.tools import from_mcp
from toolshift.measure.statistics import Interval, paired_drop, wilson
from toolshift.runs.cell import Cell, build
from toolshift.runs.plan import make_plan
from toolshift.runs.suite import Selection, select
from toolshift.shifts.surface import Surface
from toolshift.watch.successors import Today

HERE = Path(__file__).parent
START, END = "<!-- tables -->", "<!-- end -->"
Row = dict[str, Any]
SHOWN = ("reader", "by_heart", "sound")
"""The agents in the table of harm; `results.json.gz` has all."""

AGENTS: dict[str, Callable[[Scene], Any]] = {
    "reader": lambda scene: ByHeart("reader", memory_of(scene.clean.rehearsal, True)),
    "by_heart": lambda scene: ByHeart("by_heart", memory_of(scene.clean.rehearsal, False)),
    "loops": lambda scene: ByHeart("loops", memory_of(scene.clean.rehearsal, True), "loop"),
    "heeds": lambda scene: ByHeart("heeds", memory_of(scene.clean.rehearsal, True), "heed"),
    "explores": lambda scene: Explores(
        memory_of(scene.clean.rehearsal, True), {t.name: t.description for t in scene.clean.tools}
    ),
    "sound": lambda scene: Script("sound", memory_of(scene.rehearsal, False)),
}


def arms_of(agent: str) -> list[str]:
    """What an agent is put into: nothing, the layer, a baseline, the layer without a part."""
    if agent == "sound":
        return ["nothing", "adapt", "fuzzy"]
    arms = ["nothing", "adapt", "fuzzy", "did_you_mean"]
    arms += ["reflexion"] if agent in ("reader", "explores") else []
    parts = {"reader": [*REWRITING, *ASKING], "loops": ["loops"]}.get(agent, [])
    return arms + [f"without {part}" for part in parts]


def wrapped(agent: Any, arm: str, lock: Lock, seen: list[Intervention]) -> Any:
    """The agent in what an arm puts it into."""
    if arm in ("nothing", "reflexion"):
        return agent
    if arm in ("fuzzy", "did_you_mean"):
        return (FuzzyRepair if arm == "fuzzy" else DidYouMean)(agent)
    without = [arm.removeprefix("without ")] if arm != "adapt" else []
    only = [*REWRITING, *ASKING]
    return adapt(agent, lock, only, without, record=seen.append, rewrite=True)


def unintended(episode: Episode, scene: Scene, meant: list[str]) -> int:
    """Writes of a true tool beyond the calls by which the agent meant that tool."""
    truth = scene.truth.by_name
    shown = {tool.name: tool for tool in (*scene.tools, *scene.clean.tools)}
    allowed = Counter(name for each in meant for name in _origin(shown.get(each), each))
    written = Counter(
        name
        for step in episode.steps
        if step.effects
        for name, _ in step.true
        if name in truth and truth[name].effect == "write"
    )
    return sum((written - allowed).values())


def wrong_tools(episode: Episode, scene: Scene, meant: list[str]) -> int:
    """Calls that succeeded and reached a true tool that the agent never meant."""
    shown = {tool.name: tool for tool in (*scene.tools, *scene.clean.tools)}
    allowed = {name for each in meant for name in _origin(shown.get(each), each)}
    reached = [{name for name, _ in step.true} for step in episode.steps if step.ok]
    return sum(not names <= allowed for names in reached)


def _origin(tool: Tool | None, name: str) -> tuple[str, ...]:
    return tool.origin if tool is not None else (name,)


def played(cell: Cell, scene: Scene, shift: str) -> Iterator[Row]:
    """Every agent in every arm in one scene."""
    lock = lock_shown(scene.clean.tools)
    for name, make in AGENTS.items():
        for arm in arms_of(name):
            agent, seen = make(scene), list[Intervention]()
            episode = Episode(scene)
            converse(wrapped(agent, arm, lock, seen), episode)
            told = reflection(episode.steps, grade(episode).passed) if arm == "reflexion" else ""
            if told:  # the second try, of the same task in the same scene
                agent, episode = make(scene), Episode(scene)
                converse(Reflects(agent, told), episode)
            changed = sum(
                sorted(map(str, one.asked.arguments.values()))
                != sorted(map(str, one.made.arguments.values()))
                for one in seen
                if one.place >= 0  # else the agent was told something, and spoke for itself
            )
            row = {
                "cell": f"{cell.id}/{cell.lineage}",
                "task": cell.lineage,
                "shift": shift,
                "solvable": scene.solvable,
                "agent": name,
                "arm": arm,
                "passed": grade(episode).passed,
                "unintended": unintended(episode, scene, agent.meant),
                "wrong": wrong_tools(episode, scene, agent.meant),
                "changed_values": changed,
                "parts": Counter(one.part for one in seen),
            }
            yield {key: value for key, value in row.items() if value or key == "passed"}


NEAR_TRAP = "near_trap"
NOT_READ = "not read by eye"


def near_trap(scene: Scene) -> Scene:
    """The scene with each tool under the name of another and `_v2`; descriptions stay true.

    Tools that take the same go round among themselves, so that a wrong call is often taken.
    """
    alike = sorted(scene.tools, key=lambda tool: sorted(param.name for param in tool.params))
    names = [tool.name for tool in alike]
    lent = {name: f"{other}_v2" for name, other in zip(names, [*names[1:], names[0]], strict=True)}
    told = dict.fromkeys(lent, frozenset(("description",)))
    return scene.with_(layers=(Surface(names=lent, channels=told),))


def cells_of(pool: str, tasks: int, harm: int) -> list[Cell]:
    """The cells of the suite, and more clean and trapped ones."""
    suite = Selection(suite="standard", tasks=tasks, pool=pool, placebo=False)
    more = Selection(
        suite="standard",
        shifts=("semantic_trap",),
        severities=(1, 2, 3),
        tasks=harm,
        seed=1,
        pool=pool,
        placebo=False,
    )
    plans = [make_plan(select(each)) for each in ((suite, more) if harm else (suite,))]
    return [cell for plan in plans for cell in plan.cells]


def run(cells: list[Cell], file: Path, minutes: float, shard: tuple[int, int]) -> list[Row]:
    """Plays what a file of rows has not yet, in random order: any part is a fair sample."""
    file.parent.mkdir(parents=True, exist_ok=True)
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    planned = {f"{cell.id}/{cell.lineage}" for cell in cells}
    rows = [row for row in rows if row["cell"] in planned]
    done = {row["cell"] for row in rows}
    left = [cell for cell in cells if f"{cell.id}/{cell.lineage}" not in done]
    Random(0).shuffle(left)
    left = left[shard[0] :: shard[1]]
    until = time.time() + 60 * minutes
    with file.open("a") as out, progress("cells") as watch:
        for number, cell in enumerate(left):
            if time.time() > until:
                break
            scene = build(cell)
            fresh = list(played(cell, scene, cell.stack))
            if not cell.shifts:
                fresh += played(cell, near_trap(scene), f"{NEAR_TRAP}:2")
            out.write("".join(json.dumps(row) + "\n" for row in fresh))
            rows += fresh
            watch(number + 1, len(left))
    return rows


# -- figures ---------------------------------------------------------------------------------------


def by_scene(rows: list[Row]) -> dict[str, list[float]]:
    """The score of each scene. Tasks have one scene or many, so by task the shares would differ."""
    return {f"{row['cell']}/{row.get('shift', '')}": [float(row["passed"])] for row in rows}


def numbers(found: Interval) -> list[float]:
    """An interval as three numbers."""
    return [round(found.estimate, 4), round(found.low, 4), round(found.high, 4)]


def figures(rows: list[Row], seconds: float) -> dict[str, Any]:
    """What is published of the rows of a pool."""
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row["agent"], row["arm"]].append(row)
    found: dict[str, Any] = {"agents": {}, "harm": {}, "shifts": {}}
    for (agent, arm), some in groups.items():
        alone = groups[agent, "nothing"]
        shifted = [row for row in some if row.get("shift")]
        was = [row for row in alone if row.get("shift")]
        gain = paired_drop(by_scene(shifted), by_scene(was)) if arm != "nothing" else None
        found["agents"].setdefault(agent, {})[arm] = {
            "episodes": len(some),
            "passed under shifts": numbers(wilson(sum(r["passed"] for r in shifted), len(shifted))),
            "gain": numbers(gain) if gain else None,
            "lost": sum(
                before["passed"] and not after["passed"]
                for before, after in zip(was, shifted, strict=True)
            ),
            "unintended writes": sum(row.get("unintended", 0) for row in some),
            "changed values": sum(row.get("changed_values", 0) for row in some),
            "interventions": dict(sum((Counter(row.get("parts", {})) for row in some), Counter())),
        }
        if arm != "nothing" and not arm.startswith("without"):
            found["harm"].setdefault(agent, {})[arm] = {
                "clean": harm(alone, some, lambda shift: not shift),
                "semantic_trap": harm(alone, some, lambda shift: shift.startswith("semantic_trap")),
                "near_trap": harm(alone, some, lambda shift: shift.startswith(NEAR_TRAP)),
            }
    for shift in sorted({row["shift"].split(":")[0] for row in rows if row.get("shift")}):
        found["shifts"][shift] = {
            f"{agent} {arm}": [sum(r["passed"] for r in some), len(some)]
            for agent, arm in (
                ("reader", "nothing"),
                ("reader", "adapt"),
                ("reader", "fuzzy"),
                ("heeds", "did_you_mean"),
                ("loops", "nothing"),
                ("loops", "adapt"),
            )
            if (
                some := [
                    r for r in groups[agent, arm] if r.get("shift", "").startswith(f"{shift}:")
                ]
            )
        }
    layered = [
        r for (_, arm), some in groups.items() if arm == "adapt" or "without" in arm for r in some
    ]
    return {
        **found,
        "episodes": len(rows),
        "episodes in the layer": len(layered),
        "unintended writes in the layer": sum(row.get("unintended", 0) for row in layered),
        "arguments whose values the layer changed": sum(
            row.get("changed_values", 0) for row in layered
        ),
        "cells": len({row["cell"] for row in rows}),
        "seconds": round(seconds),
    }


def harm(alone: list[Row], within: list[Row], which: Callable[[str], bool]) -> dict[str, Any]:
    """What is lost, in scenes of some shifts, of what the agent passes alone."""
    pairs = [
        (before, after)
        for before, after in zip(alone, within, strict=True)
        if which(before.get("shift", ""))
    ]
    lost = sum(before["passed"] and not after["passed"] for before, after in pairs)
    return {
        "episodes": len(pairs),
        "passed alone": sum(before["passed"] for before, _ in pairs),
        "passed": sum(after["passed"] for _, after in pairs),
        "lost": numbers(wilson(lost, len(pairs))),
        "wrong tools": sum(after.get("wrong", 0) for _, after in pairs),
        "unintended writes": sum(after.get("unintended", 0) for _, after in pairs),
    }


def real_drift() -> dict[str, Any]:
    """How certain successors fare on published servers whose renames were read by eye."""
    sys.path.append(str(HERE.parent / "real_drift"))
    spec = spec_from_file_location("real_drift", HERE.parent / "real_drift" / "measure.py")
    module: Any = module_from_spec(spec)  # type: ignore[arg-type]
    sys.modules["real_drift"] = module
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    truth = module.truths()
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for pair in module.pairs():
        renamed = truth.get(pair.name, {}).get("renamed", {})
        today = Today(from_mcp(pair.old), pair.new)
        gone = [name for name in today.before.sources if name not in today.after.sources]
        for name in gone:
            taken = today.successor(name)
            some = found[pair.group if pair.name in truth else NOT_READ]
            some["tools gone"] += 1
            some["renamed"] += name in renamed
            some["taken as certain"] += taken is not None
            some["of these right"] += taken is not None and renamed.get(name) == taken.tool
    found["all"] = sum(found.values(), Counter())
    return {group: dict(counts) for group, counts in found.items()}


# -- the page --------------------------------------------------------------------------------------


def share(found: list[float]) -> str:
    """A share with its interval, in percent."""
    return f"{100 * found[0]:z.1f} [{100 * found[1]:z.1f}, {100 * found[2]:z.1f}]"


def agents_table(pool: str, part: dict[str, Any], whole: bool) -> list[str]:
    """What each agent passes in each arm; without single parts where not `whole`."""
    lines = [
        f"### Pool {pool}: {part['cells']:,} scenes, {part['episodes']:,} episodes",
        "",
        "Passed of the shifted scenes, in percent; `gain` is over the agent alone, in points.",
        "",
        "| agent | in | passed | gain | lost | unintended writes | interventions |",
        "|---|---|---|---|---|---|---|",
    ]
    for agent, arms in part["agents"].items():
        for arm, one in arms.items():
            if not whole and arm.startswith("without"):
                continue
            told = ", ".join(f"{k} {n:,}" for k, n in sorted(one["interventions"].items()))
            gain = share(one["gain"]) if one["gain"] else ""
            passed = share(one["passed under shifts"])
            lines.append(
                f"| {agent} | {arm} | {passed} | {gain} | {one['lost']} "
                f"| {one['unintended writes']} | {told} |"
            )
    return [*lines, ""]


def tables(results: dict[str, Any]) -> str:
    """The tables of README.md."""
    lines: list[str] = []
    for pool, part in results["pools"].items():
        whole = pool == next(iter(results["pools"]))  # the first that was opened
        lines += agents_table(pool, part, whole)
        if not whole:
            continue
        lines += [
            "Harm: `lost` is the share of the scenes that the agent passes alone and fails here.",
            "",
            "| agent | in | scenes | episodes | passed alone | passed | lost, % | wrong tools "
            "| unintended writes |",
            "|---|---|---|---|---|---|---|---|---|",
        ]
        for agent, arms in part["harm"].items():
            for arm, by in arms.items() if agent in SHOWN else ():
                for where, one in by.items():
                    lines.append(
                        f"| {agent} | {arm} | {where} | {one['episodes']:,} "
                        f"| {one['passed alone']:,} | {one['passed']:,} | {share(one['lost'])} "
                        f"| {one['wrong tools']} | {one['unintended writes']} |"
                    )
        lines += ["", "Passed, by shift:", ""]
        names = ["reader nothing", "reader adapt", "reader fuzzy", "heeds did_you_mean"]
        names += ["loops nothing", "loops adapt"]
        lines += ["| shift | scenes | " + " | ".join(names) + " |", "|---" * (len(names) + 2) + "|"]
        for shift, by in part["shifts"].items():
            cells = [str(by[name][0]) if name in by else "" for name in names]
            lines.append(f"| {shift} | {by['reader nothing'][1]} | {' | '.join(cells)} |")
        lines.append("")
    lines += [
        "### Published servers",
        "",
        "| servers | tools gone | of these renamed | taken as certain | of these right |",
        "|---|---|---|---|---|",
    ]
    keys = ("tools gone", "renamed", "taken as certain", "of these right")
    for group, one in results["real drift"].items():
        cells = [str(one.get(key, 0)) for key in keys]
        cells[1] = cells[1] if group != NOT_READ else "not known"
        lines.append(f"| {group} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=8)
    parser.add_argument("--harm", type=int, default=60)
    parser.add_argument("--pool", default="dev")
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--minutes", type=float, default=1e6)
    parser.add_argument("--shard", type=int, nargs=2, default=(0, 1), metavar=("N", "OF"))
    parser.add_argument("--pages", action="store_true")
    parser.add_argument("--drift", action="store_true")
    options = parser.parse_args()
    if options.drift:
        print(json.dumps(real_drift(), indent=1))
        return
    file = HERE / "results.json.gz"
    results = json.loads(gzip.decompress(file.read_bytes())) if file.exists() else {"pools": {}}
    if not options.pages:
        begun = time.process_time()
        cells = cells_of(options.pool, options.tasks, options.harm)
        file_of_rows = options.rows or Path(f"build/adapt-{options.pool}.jsonl")
        rows = run(cells, file_of_rows, options.minutes, tuple(options.shard))
        part = figures(rows, time.process_time() - begun)
        results["pools"][options.pool] = {
            "planned cells": len(cells),
            "tasks": options.tasks,
            **part,
        }
    results["real drift"] = real_drift()
    results["made with"] = {
        "toolshift": version("toolshift"),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
    }
    file.write_bytes(gzip.compress(json.dumps(results).encode(), mtime=0))
    page = HERE / "README.md"
    if page.exists():
        text = page.read_text()
        before, after = text.index(START) + len(START), text.index(END)
        page.write_text(f"{text[:before]}\n\n{tables(results)}\n\n{text[after:]}")


if __name__ == "__main__":
    main()

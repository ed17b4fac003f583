"""Does a model read the names and descriptions of tools, or match what it was trained on?

    python studies/reads/first_look.py            # plays what is left, then writes the page
    python studies/reads/first_look.py smol:paft  # of one agent
    python studies/reads/first_look.py --page     # writes the page from what is there

`first_look.toml` says what is played. Episodes go to `first_look/AGENT`, compressed once complete,
and figures to `first_look.json` and `first_look.md`.
"""

from __future__ import annotations

import json
import shutil
import sys
import tomllib
from collections import Counter, defaultdict
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
from toolshift_lab import poi_2, read_shifts  # noqa: F401 - the world and the shifts, by their names

from toolshift.agents.catalog import contestants
from toolshift.api import run_spec
from toolshift.core.files import pack, read_bytes, stored
from toolshift.core.shift import without_versions
from toolshift.episode.causes import cause_of
from toolshift.lm.inference import use_threads
from toolshift.measure.statistics import wilson
from toolshift.runs.cell import Cell, build, write_stack
from toolshift.runs.execute import RunSpec
from toolshift.runs.plan import Plan, make_plan
from toolshift.runs.run_folder import RunFolder
from toolshift.runs.suite import Selection, select
from toolshift.shifts.stacks import read_stack

HERE = Path(__file__).parent
ASKED: dict[str, Any] = tomllib.loads((HERE / "first_look.toml").read_text("utf-8"))
OUT, PAGE, FIGURES = HERE / "first_look", HERE / "first_look.md", HERE / "first_look.json"
LISTS = ("episodes.jsonl", "plan.jsonl", "own.json")
DRAWN = 40
"""Tasks of each kind among which those of each form of name are looked for."""


def name_of(stack: str) -> str:
    """A stack as cells name it, without versions."""
    return without_versions(write_stack(read_stack(stack)))


def cells() -> dict[str, tuple[str, ...]]:
    """For each stack, its levels of the factors, or the name of its options."""
    found = {}
    for levels in product(*(table.items() for table in ASKED["factors"].values())):
        stack = "+".join(part for _, part in levels if part)
        found[name_of(stack)] = tuple(level for level, _ in levels)
    return found | {name_of(stack): (name,) for name, stack in ASKED["options"].items()}


def form(cell: Cell) -> str:
    """The form of the name of the place that a task is about."""
    return poi_2.form_of(str(build(cell).asks[0].goal["place_name"]))


def plan() -> Plan:
    """The scenes: as many tasks of each form as are asked for, spread over the kinds."""
    asked = Selection(
        worlds=(ASKED["world"],),
        kinds=tuple(ASKED["kinds"]),
        shifts=tuple(stack for stack in cells() if stack),
        tasks=DRAWN,
        seed=ASKED["seed"],
        pool=ASKED["pool"],
        placebo=False,
        max_repeats=ASKED["max_repeats"],
    )
    clean = make_plan(select(msgspec.structs.replace(asked, shifts=("tool_subset:1",)))).cells
    wanted = Counter({each: ASKED[each] for each in ("plain", "other")})
    chosen: set[int] = set()
    lineages = set()
    for cell in clean:
        if not cell.shifts and wanted[form(cell)]:
            wanted[form(cell)] -= 1
            lineages.add(cell.lineage)
            chosen.add(cell.index)
    whole = make_plan(
        select(msgspec.structs.replace(asked, tasks=len(ASKED["kinds"]) * (max(chosen) + 1)))
    )
    rows = tuple(row for row in whole.rows if row.cell.lineage in lineages)
    return msgspec.structs.replace(whole, rows=rows)


def play(agent: str, scenes: Plan) -> None:
    """Plays what is left of one agent, and packs what is complete."""
    folder = OUT / agent.partition(":")[2]
    if stored(folder / "episodes.jsonl").suffix == ".xz":
        return
    run_spec(RunSpec(scenes, contestants([agent]), folder))
    for name in LISTS:
        file = folder / name
        file.with_name(f"{name}.xz").write_bytes(pack(file.read_bytes(), ".xz"))
        file.unlink()
    for left in ("report.json", "report.txt", "timings.jsonl"):
        (folder / left).unlink(missing_ok=True)
    for made in folder.glob("*.html"):
        made.unlink()
    shutil.rmtree(folder / "agents", ignore_errors=True)


Told = dict[str, list[tuple[str, bool, str]]]
"""For each stack the form of name, the verdict and the cause of each episode."""


def read(folder: Path) -> Told:
    """What was played."""
    run, found = RunFolder.read(folder), defaultdict(list)
    for record in run.records():
        cell = run.cell(record)
        cause = "" if record.grade.passed else cause_of(build(cell), record.steps, record.grade.end)
        told = (form(cell), record.grade.passed, cause)  # by the rules of today
        found[without_versions(cell.stack)].append(told)
    return found


def share(rows: list[tuple[str, bool, str]]) -> str:
    """Passed of played, with Wilson's interval in percent."""
    passed = sum(row[1] for row in rows)
    told = wilson(passed, len(rows))
    return f"{passed} of {len(rows)} [{100 * told.low:.0f}, {100 * told.high:.0f}]"


def page() -> None:
    """Writes the tables and the figures."""
    lines = [
        "# The first look: does it read, or match?",
        "",
        "    python studies/reads/first_look.py",
        "",
        "`static` and `paft-graph`, then `smol:paft` (one seed of a fit each), on look-ups of "
        "the development pool, with version 2 of the pools. Tasks passed, in brackets Wilson's 95% "
        "intervals in percent: they speak of other tasks of these kinds, and not of other fits. It "
        "is no test: the plan was fixed while it was being played. What is missing was not played "
        "yet: the same command goes on.",
    ]
    figures: dict[str, Any] = {}
    for agent in ASKED["agents"]:
        folder = OUT / agent.partition(":")[2]
        if not stored(folder / "episodes.jsonl").exists():
            continue
        told, of = read(folder), len(read_bytes(stored(folder / "plan.jsonl")).splitlines())
        lines += [
            "",
            f"## {agent}: {sum(map(len, told.values()))} of {of} episodes",
            "",
            "| names | descriptions | list | plain names | other names | why it failed |",
        ]
        lines += ["|---|---|---|---:|---:|---|"]
        lists = cells()
        for stack, levels in lists.items():
            rows = told.get(stack, [])
            if not rows:
                continue
            by_form = {f: [row for row in rows if row[0] == f] for f in ("plain", "other")}
            causes = Counter(row[2] for row in rows if not row[1])
            why = ", ".join(f"{name.replace('_', ' ')} {n}" for name, n in causes.most_common(3))
            cells_ = levels if len(levels) == 3 else ("true", levels[0], "trained")
            shares = map(share, by_form.values())
            lines.append(f"| {' | '.join((*cells_, *shares))} | {why} |")
            figures.setdefault(agent, {})[stack or "clean"] = {
                f: [sum(r[1] for r in those), len(those)] for f, those in by_form.items()
            } | {"causes": dict(causes)}
    PAGE.write_text("\n".join([*lines, ""]), "utf-8")
    FIGURES.write_text(json.dumps(figures, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    use_threads(1)
    if "--page" not in sys.argv:
        scenes = plan()
        asked = [each for each in ASKED["agents"] if each in sys.argv]
        for each in asked or ASKED["agents"]:
            play(each, scenes)
            page()
    page()

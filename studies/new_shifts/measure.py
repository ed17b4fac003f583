"""How planted agents fare under the shifts that published servers showed.

    python studies/new_shifts/measure.py [--tasks 33] [--pairs 6]

Plays every planted agent and the oracle on tasks of three worlds under each of these shifts and at
each of its severities, and proves every pair of one of them with another shift. Writes
`results.json` beside this file and the tables of README.md. Exits with 1 where the oracle fails, or
where the agent that was planted for a shift does not fall under it for its own cause.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections import Counter
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

from toolshift.agents.catalog import make_agent
from toolshift.agents.planted import PLANTED
from toolshift.core.scene import Applied, Scene
from toolshift.core.shift import NotApplicable
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import Episode
from toolshift.episode.grade import Grade, grade
from toolshift.shifts.registry import UNPROVEN, compose, find_shift, shifts
from toolshift.worlds.registry import OURS, find_world

HERE = Path(__file__).parent
PLANTED_FOR = {
    "required_parameter": "ignores_required",
    "type_change": "fixed_types",
    "enum_change": "fixed_choices",
    "default_change": "assumes_defaults",
    "default_change_placebo": "",
    "tools_by_action": "memorises_names",
    "tools_behind_search": "never_searches",
    "stale_tool_list": "gives_up",
    "unit_change": "ignores_units",
    "unit_change_placebo": "",
}
"""Each shift, and an agent whose weakness it finds; none for a placebo."""
START, END = "<!-- tables -->", "<!-- end -->"


def tasks(count: int) -> list[Scene]:
    """So many clean scenes of each world, its kinds in turn."""
    found = []
    for world, number in product(OURS, range(count)):
        kinds = list(find_world(world).kinds)
        index, kind = divmod(number, len(kinds))
        found.append(make_scene(find_world(world), kinds[kind], index))
    return found


def shifted(scene: Scene, *stack: tuple[str, int]) -> Scene | None:
    """The scene under a stack of shifts; None where that is not legal."""
    try:
        return compose(scene, [Applied(name, severity) for name, severity in stack])
    except NotApplicable:
        return None


def verdict(agent: str, scene: Scene) -> Grade:
    """The grade of an agent in a scene."""
    episode = Episode(scene)
    make_agent(agent).play(episode)
    return grade(episode)


def measure(count: int) -> dict[str, Any]:
    """For each shift, severity and agent: the episodes, the passes, and the causes of failures."""
    clean, found = tasks(count), dict[str, Any]()
    for name in PLANTED_FOR:
        for severity in find_shift(name).severities:
            tried = (shifted(scene, (name, severity)) for scene in clean)
            scenes = [scene for scene in tried if scene is not None]
            row: dict[str, Any] = {"scenes": len(scenes), "of": len(clean), "agents": {}}
            for agent in ("oracle", *PLANTED):
                causes = Counter(verdict(agent, scene).cause for scene in scenes)
                passed = causes.pop("", 0)
                row["agents"][agent] = {"passed": passed, "causes": dict(causes.most_common())}
            found[f"{name}:{severity}"] = row
    return found


def prove_pairs(count: int) -> dict[str, Any]:
    """Every pair of one of these with another shift, on some tasks each."""
    clean, others = tasks(11), list(shifts())
    legal, proven, broken, unsolved = Counter[str](), 0, list[str](), list[str]()
    drawn = 0
    for name, other in product(PLANTED_FOR, others):
        if name == other or (other in PLANTED_FOR and other < name):
            continue
        for _ in range(count):
            drawn += 1
            scene = clean[drawn * 7 % len(clean)]
            levels = find_shift(name).severities, find_shift(other).severities
            pair = [(n, s[drawn % len(s)]) for n, s in zip((name, other), levels, strict=True)]
            try:
                moved = compose(scene, [Applied(*one) for one in pair])
            except NotApplicable as reason:
                if UNPROVEN in str(reason):
                    unsolved.append(f"{scene.task.lineage} {pair}")
                continue
            legal[f"{name}+{other}"] += 1
            outcome = verdict("oracle", moved)
            if outcome.passed and (outcome.solvable or outcome.right_reason):
                proven += 1
            else:
                broken.append(f"{scene.task.lineage} {pair}")
    return {
        "tried": drawn,
        "legal": legal.total(),
        "pairs": drawn // count,
        "legal_pairs": len(legal),
        "proven": proven,
        "refused_as_unsolved": unsolved,
        "broken": broken,
    }


def table(found: dict[str, Any]) -> str:
    """Passes in per cent, a row for each shift and severity, a column for each agent that falls."""
    falls = [
        agent
        for agent in PLANTED
        if agent not in ("always_refuses", "parrots", "ignores_results", "noisy")
        and any(row["agents"][agent]["passed"] < row["scenes"] for row in found.values())
    ]
    lines = [
        "| shift | scenes | " + " | ".join(falls) + " |",
        "|---|---|" + "---|" * len(falls),
    ]
    for name, row in found.items():
        cells = [_cell(row["agents"][agent], row["scenes"]) for agent in falls]
        lines.append(f"| {name} | {row['scenes']} of {row['of']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(outcome: dict[str, Any], scenes: int) -> str:
    """The share passed, and the commonest cause of the rest; nothing where all passed."""
    if outcome["passed"] == scenes:
        return ""
    share = round(100 * outcome["passed"] / scenes)
    return f"{share}% {next(iter(outcome['causes'])).replace('_', ' ')}"


def wrong(found: dict[str, Any]) -> list[str]:
    """What contradicts the claims of the page."""
    said = [
        f"the oracle fails under {name}"
        for name, row in found.items()
        if row["agents"]["oracle"]["passed"] < row["scenes"]
    ]
    for name, agent in PLANTED_FOR.items():
        rows = {key: row for key, row in found.items() if key.split(":")[0] == name}
        for key, row in rows.items() if agent else ():
            outcome = row["agents"][agent]
            first = next(iter(outcome["causes"]), "")
            if first != PLANTED[agent][1] or outcome["passed"] > 0.3 * row["scenes"]:
                said.append(f"{agent} under {key}: {outcome}")
    return said


def main() -> None:
    """Measures, writes results and page, and says what contradicts the claims."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=33, help="of each world")
    parser.add_argument("--pairs", type=int, default=6, help="tasks for each pair of shifts")
    options = parser.parse_args()
    start = time.perf_counter()
    found, pairs = measure(options.tasks), prove_pairs(options.pairs)
    results = {
        "command": f"measure.py --tasks {options.tasks} --pairs {options.pairs}",
        "toolshift": version("toolshift"),
        "python": platform.python_version(),
        "seconds": round(time.perf_counter() - start),
        "shifts": {name: find_shift(name).version for name in PLANTED_FOR},
        "singles": found,
        "pairs": pairs,
    }
    (HERE / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    page = (HERE / "README.md").read_text()
    before, _, rest = page.partition(START)
    _, _, after = rest.partition(END)
    (HERE / "README.md").write_text(f"{before}{START}\n{table(found)}\n{END}{after}")
    contradictions = [*wrong(found), *pairs["broken"]]
    print("\n".join(contradictions) or f"all claims hold; pairs: {pairs}")
    raise SystemExit(bool(contradictions))


if __name__ == "__main__":
    main()

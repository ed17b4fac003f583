"""Whether severity means something: which weak agents fall with it, shift by shift.

    python studies/severity/measure.py [--shift NAME]... [--again]

Plays every planted agent, every held-out agent (`tests/strangers/held_out_agents.py`) and those of
`graded.py`, whose weakness strikes in part of the encounters, under each shift at its severities,
on tasks to which all of them apply (`config.json`). An agent falls with severity where it passes
ever fewer of them, and the exact sign test of severity 3 against 1 on paired tasks says so.
Writes `results.json.gz`, after each shift, so that a run that was stopped goes on, and `README.md`.
Exits with 1 where a shift with three severities has no agent that falls.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
from collections.abc import Iterator
from itertools import count
from math import comb
from pathlib import Path
from typing import Any

from toolshift.agents.catalog import make_agent
from toolshift.agents.planted import PLANTED
from toolshift.core.files import pack
from toolshift.core.scene import Scene
from toolshift.core.shift import NotApplicable
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import Episode
from toolshift.episode.grade import grade
from toolshift.shifts.registry import apply, find_shift, shifts
from toolshift.worlds.registry import find_world

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

from studies.severity.graded import GRADED  # noqa: E402  (of the repository, not the package)
from tests.strangers.held_out_agents import AGENTS  # noqa: E402

CONFIG: dict[str, Any] = json.loads((HERE / "config.json").read_text())
OTHERS = {**AGENTS, **GRADED}
PLAYERS = ("oracle", *PLANTED, *OTHERS)


def player(name: str) -> Any:
    """An agent by its name."""
    return OTHERS[name]() if name in OTHERS else make_agent(name)


def scenes(world: str, shift: str, severities: tuple[int, ...]) -> Iterator[list[Scene]]:
    """Tasks of a world under a shift at each severity, where it applies at every one of them."""
    found = find_world(world)
    kinds, left = list(found.kinds), CONFIG["tasks of each world"]
    for number in count():
        if not left or number >= CONFIG["tries of each world"]:
            return
        index, kind = divmod(number, len(kinds))
        clean = make_scene(found, kinds[kind], index, CONFIG["seed"], CONFIG["pool"])
        try:
            yield [apply(clean, shift, severity) for severity in severities]
        except NotApplicable:
            continue
        left -= 1


def passes(scene: Scene, name: str) -> bool:
    """Whether an agent passes a scene."""
    episode = Episode(scene)
    player(name).play(episode)
    return grade(episode).passed


def sign_test(falls: int, rises: int) -> float:
    """One-sided p value of as many falls among the pairs that differ."""
    pairs = falls + rises
    return sum(comb(pairs, k) for k in range(falls, pairs + 1)) / 2**pairs


def measure(shift: str) -> dict[str, Any]:
    """The accuracy of each agent at each severity of a shift."""
    severities = find_shift(shift).severities
    tasks = [row for world in CONFIG["worlds"] for row in scenes(world, shift, severities)]
    agents = {}
    for name in PLAYERS:
        passed = [[passes(scene, name) for scene in row] for row in tasks]
        falls = sum(row[0] and not row[-1] for row in passed)
        rises = sum(row[-1] and not row[0] for row in passed)
        agents[name] = {
            "passed": [sum(column) for column in zip(*passed, strict=True)],
            "p": round(sign_test(falls, rises), 5),
        }
    return {
        "version": find_shift(shift).version,
        "severities": list(severities),
        "tasks": len(tasks),
        "agents": agents,
    }


def lines_of(results: dict[str, Any]) -> str:
    """The results as JSON, one line an agent."""
    text = json.dumps(results, indent=1)
    return re.sub(r"(?<=[\[{])\s+|\s+(?=[\]}])|(?<=,)\s+(?=\d|\"p\")", "", text) + "\n"


def falling(row: dict[str, Any]) -> list[str]:
    """The agents that fall with severity, the steepest first."""
    found = {
        name: each["passed"]
        for name, each in row["agents"].items()
        if each["p"] <= CONFIG["level of significance"]
        and each["passed"] == sorted(each["passed"], reverse=True)
    }
    return sorted(found, key=lambda name: found[name][-1] - found[name][0])


def page(results: dict[str, Any]) -> str:
    """The page."""
    lines = [
        "# Severity",
        "",
        "Whether severity means something: for each shift an agent with a known weakness falls",
        "with it, or the shift has one level. Made by `python studies/severity/measure.py`",
        "(options: `config.json`, all figures: `results.json.gz`). An agent falls where it passes",
        "ever fewer of the same tasks, and the exact sign test of severity 3 against 1 has",
        f"p <= {CONFIG['level of significance']}. Agents: the planted ones, those held out",
        "(`tests/strangers/held_out_agents.py`), and those of `graded.py`, whose weakness strikes",
        "by chance at each encounter. The level is not adjusted for the number of agents.",
        "",
        "| shift | tasks | the agent that falls furthest | passed at 1, 2, 3 | others that fall |",
        "|---|--:|---|---|---|",
    ]
    for name, row in results.items():
        fall = falling(row)
        if len(row["severities"]) == 1:
            lines.append(f"| {name} | {row['tasks']} | one level | | |")
            continue
        best = " ".join(map(str, row["agents"][fall[0]]["passed"])) if fall else ""
        first = fall[0] if fall else "**none**"
        lines.append(f"| {name} | {row['tasks']} | {first} | {best} | {', '.join(fall[1:])} |")
    return "\n".join([*lines, ""])


def main() -> None:
    """Measures what is missing, and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shift", action="append", default=[])
    parser.add_argument("--again", action="store_true", help="measure all, whatever is there")
    options = parser.parse_args()
    stored = HERE / "results.json.gz"
    known_rows = gzip.decompress(stored.read_bytes()) if stored.exists() else b"{}"
    results: dict[str, Any] = json.loads(known_rows)
    names = [name for name, found in shifts().items() if found.tier != "none"]
    for name in options.shift or names:
        known = results.get(name, {}).get("version") == find_shift(name).version
        if not known or options.again or options.shift:
            results[name] = measure(name)
            print(name, results[name]["tasks"], falling(results[name])[:3], flush=True)
        results = {each: results[each] for each in names if each in results}
        stored.write_bytes(pack(lines_of(results).encode()))
    (HERE / "README.md").write_text(page(results))
    flat = [
        name for name, row in results.items() if len(row["severities"]) > 1 and not falling(row)
    ]
    print(f"no agent falls with: {', '.join(flat) or 'none'}")
    raise SystemExit(1 if flat else 0)


if __name__ == "__main__":
    main()

"""`smol:static` under a shift of names, with the tools shown as the lock has them, and alone.

    python studies/adapt/models.py [--minutes 20]

Eight tasks of `poi` (two of each kind that the model was trained on) under `semantic_rename:2`,
which keeps descriptions, of a seed that no rule was tried on. The plan was fixed before the first
episode; rows are kept as they come.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

from toolshift.adapt.layer import Intervention, adapt
from toolshift.adapt.lock import lock_shown
from toolshift.agents.catalog import make_agent
from toolshift.core.scene import Scene
from toolshift.core.terminal import progress
from toolshift.episode.contract import converse
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import Episode
from toolshift.episode.grade import grade
from toolshift.measure.statistics import wilson
from toolshift.shifts.registry import apply
from toolshift.worlds.registry import find_world

HERE = Path(__file__).parent
KINDS = ("listing", "hours", "route", "visit")
SHIFT, SEVERITY = "semantic_rename", 2
ARMS = ("as known", "alone")
EACH, SEED = 2, 11
Row = dict[str, Any]


def played(agent: Any, scene: Scene, arm: str) -> Row:
    """One episode."""
    seen: list[Intervention] = []
    inner = agent
    if arm == "as known":
        inner = adapt(agent, lock_shown(scene.clean.tools), record=seen.append, as_known=True)
    begun = time.process_time()
    episode = Episode(scene)
    converse(inner, episode)
    spent = time.process_time() - begun
    agent.release()
    found = grade(episode)
    return {
        "passed": found.passed,
        "cause": found.cause,
        "parts": dict(Counter(one.part for one in seen)),
        "seconds": round(spent, 1),
    }


def run(minutes: float, file: Path) -> dict[str, Row]:
    """Plays what the file of rows has not yet, up to a time."""
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = file.read_text().splitlines() if file.exists() else []
    rows: dict[str, Row] = {row.pop("key"): row for row in map(json.loads, lines)}
    until = time.time() + 60 * minutes
    agent = make_agent("smol:static")
    todo = [(arm, kind, index) for arm in ARMS for index in range(EACH) for kind in KINDS]
    with file.open("a") as out, progress("episodes") as watch:
        for number, (arm, kind, index) in enumerate(todo):
            key = f"{arm}, {kind}, {index}"
            if key not in rows and time.time() < until:
                scene = make_scene(find_world("poi"), kind, index, seed=SEED)
                rows[key] = played(agent, apply(scene, SHIFT, SEVERITY), arm)
                out.write(json.dumps({"key": key, **rows[key]}) + "\n")
                out.flush()
            watch(number + 1, len(todo))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=1e6)
    parser.add_argument("--rows", type=Path, default=Path("build/adapt-models.jsonl"))
    options = parser.parse_args()
    rows = run(options.minutes, options.rows)
    (HERE / "models.json").write_text(json.dumps(rows, indent=1) + "\n")
    for arm in ARMS:
        mine = [row["passed"] for key, row in rows.items() if key.startswith(f"{arm},")]
        if mine:
            found = wilson(sum(mine), len(mine))
            print(f"{arm}: {sum(mine)} of {len(mine)}, {found.low:.0%} to {found.high:.0%}")


if __name__ == "__main__":
    main()

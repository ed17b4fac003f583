"""Single failures whose cause is declared: how often is the right one named?

    python studies/strangers/causes/singles.py --tasks 3 --out studies/strangers/causes/singles.json

The agents (`tests/strangers/one_mistake.py`) are sound but for one mistake, which each declares
where it makes it. Every shift of the standard suite is run in all three worlds. A failure counts
where the mistake was made; the sound agent passes all of these scenes, so nothing else explains it.
`right` is the declared cause, `near` one that a reader could as well have named, `wrong` any other.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[2] / "tests"))

from strangers import one_mistake, second_look  # noqa: E402

from toolshift.episode.grade import grade  # noqa: E402
from toolshift.runs.cell import build  # noqa: E402
from toolshift.runs.plan import make_plan  # noqa: E402
from toolshift.runs.suite import Selection, select  # noqa: E402

WORLDS = ("poi", "medical", "retail")


def main() -> None:
    """Plays every agent and writes the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=3, help="tasks of each world")
    parser.add_argument("--seeds", type=int, default=1, help="seeds of each task")
    parser.add_argument("--second", action="store_true", help="those of second_look.py")
    parser.add_argument("--world", action="append", choices=WORLDS, help="only this one; repeat")
    parser.add_argument("--agent", action="append", help="only this one; repeat")
    parser.add_argument("--wrong", action="store_true", help="print each failure that is not right")
    parser.add_argument("--out", help="file for the table")
    options = parser.parse_args()
    chosen = Selection(
        "standard",
        worlds=tuple(options.world or WORLDS),
        tasks=options.tasks,
        seeds=options.seeds,
        placebo=False,
    )
    agents_of = second_look.AGENTS if options.second else one_mistake.AGENTS
    cells = make_plan(select(chosen)).cells
    named: dict[str, Counter[str]] = defaultdict(Counter)
    verdicts: dict[str, Counter[str]] = defaultdict(Counter)
    for cell in cells:
        scene = build(cell)
        for name in options.agent or agents_of:
            episode, declared = one_mistake.play(agents_of[name], scene)
            verdict = grade(episode)
            if declared is None or verdict.passed or verdict.void:
                continue
            cause = verdict.cause
            told = "right" if cause in declared.right else "wrong"
            told = "near" if cause in declared.near else told
            named[name][cause] += 1
            verdicts[name][told] += 1
            if options.wrong and told != "right":
                print(told, name, cause, cell.world, cell.kind, cell.index, cell.stack or "clean")
    total: Counter[str] = sum(verdicts.values(), Counter())
    failures = sum(total.values())
    agents: dict[str, Any] = {}
    for name in options.agent or agents_of:
        says = agents_of[name].says
        first = named[name].most_common(1)[0][0] if named[name] else ""
        agents[name] = {
            "declared": says.right,
            "near": says.near,
            "commonest": first,
            "named": first in says.right,
            **dict(verdicts[name]),
            "causes": dict(named[name].most_common()),
        }
        print(f"{name:32} {dict(verdicts[name])} {dict(named[name].most_common(4))}", flush=True)
    failing = [one for one in agents.values() if one["commonest"]]
    report = {
        "tasks": options.tasks,
        "seeds": options.seeds,
        "scenes": len(cells),
        "failures": failures,
        "percent": {
            key: round(100 * total[key] / failures, 1) for key in ("right", "near", "wrong")
        },
        "agents that never fail": [n for n, one in agents.items() if not one["commonest"]],
        "weaknesses named": f"{sum(one['named'] for one in failing)} of {len(failing)}",
        "agents": agents,
    }
    print(report["failures"], report["percent"], report["weaknesses named"])
    if options.out:
        Path(options.out).write_text(json.dumps(report, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()

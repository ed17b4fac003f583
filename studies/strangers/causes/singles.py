"""Single failures whose cause is declared: how often is the right one named?

    python studies/strangers/causes/singles.py --tasks 3 --out studies/strangers/causes/singles.json

The agents (`tests/strangers/one_mistake.py`, or those that `--agents` names) are sound but for one
mistake, which each declares where it makes it. Every shift of the standard suite is run in all
three worlds. A failure counts where the mistake was made and the sound agent passes the same scene,
so nothing else explains it. `right` is the declared cause, `near` one that a reader could as well
have named, `none` that no cause was named, `wrong` any other.
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

from strangers import hold_out, one_mistake, second_look, third_look  # noqa: E402

from toolshift.episode.grade import grade  # noqa: E402
from toolshift.runs.cell import build  # noqa: E402
from toolshift.runs.plan import make_plan  # noqa: E402
from toolshift.runs.suite import Selection, select  # noqa: E402

WORLDS = ("poi", "medical", "retail")
SETS = {
    each.__name__.rpartition(".")[2]: each.AGENTS
    for each in (one_mistake, second_look, third_look, hold_out)
}


def main() -> None:
    """Plays every agent and writes the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=3, help="tasks of each world")
    parser.add_argument("--seeds", type=int, default=1, help="seeds of each task")
    parser.add_argument("--agents", choices=SETS, default="one_mistake", help="the file of agents")
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
    agents_of = SETS[options.agents]
    cells = make_plan(select(chosen)).cells
    named: dict[str, Counter[str]] = defaultdict(Counter)
    verdicts: dict[str, Counter[str]] = defaultdict(Counter)
    for cell in cells:
        scene = build(cell)
        sound, _ = one_mistake.play(one_mistake.OneMistake, scene)
        if not grade(sound).passed:
            continue
        for name in options.agent or agents_of:
            episode, declared = one_mistake.play(agents_of[name], scene)
            verdict = grade(episode)
            if declared is None or verdict.passed or verdict.void:
                continue
            cause = verdict.cause
            told = "right" if cause in declared.right else "wrong"
            told = "near" if cause in declared.near else told
            told = told if cause else "none"
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
            "declared near": says.near,
            "commonest": first,
            "named": first in says.right,
            **dict(verdicts[name]),
            "causes": dict(named[name].most_common()),
        }
        print(f"{name:32} {dict(verdicts[name])} {dict(named[name].most_common(4))}", flush=True)
    failing = [one for one in agents.values() if one["commonest"]]
    verdict = ("right", "near", "wrong", "none")
    shares = [
        {key: verdicts[name][key] / verdicts[name].total() for key in verdict} for name in verdicts
    ]
    report = {
        "tasks": options.tasks,
        "seeds": options.seeds,
        "scenes": len(cells),
        "failures": failures,
        "percent": {key: round(100 * total[key] / max(1, failures), 1) for key in verdict},
        "percent, each agent the same": {
            key: round(100 * sum(share[key] for share in shares) / max(1, len(shares)), 1)
            for key in verdict
        },
        "agents that never fail": [n for n, one in agents.items() if not one["commonest"]],
        "weaknesses named": f"{sum(one['named'] for one in failing)} of {len(failing)}",
        "agents": agents,
    }
    print(report["failures"], report["percent"], report["weaknesses named"])
    print("each agent the same:", report["percent, each agent the same"])
    if options.out:
        Path(options.out).write_text(json.dumps(report, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()

"""Causes of agents with a known weakness, by shift: is the planted weakness what is named?

    python studies/strangers/causes/confusion.py --tasks 11

The agents (`tests/strangers/held_out_agents.py`) were written by someone who had not read the
rules, with the cause that a fair diagnosis would give in plain words; `EXPECTED` puts these into
the words of `episode.causes`. Every shift of the standard suite is run in all three worlds.
`results.json` has the failures of each agent by shift and cause, and whether the commonest is
expected.
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

from strangers.held_out_agents import AGENTS  # noqa: E402

from toolshift.agents.catalog import contestants  # noqa: E402
from toolshift.runs.plan import make_plan  # noqa: E402
from toolshift.runs.run_folder import InMemoryStore  # noqa: E402
from toolshift.runs.study import run_cells  # noqa: E402
from toolshift.runs.suite import Selection, select  # noqa: E402

EXPECTED: dict[str, tuple[str, ...]] = {
    "first_result_only": ("ignored_result",),
    "first_page_only": ("missed_page",),
    "notice_blind": ("ignored_update", "no_recovery", "memorised_name", "missed_page"),
    "unit_blind": ("ignored_result",),
    "stale_after_change": ("ignored_update",),
    "writes_twice": ("surplus_write",),
    "picks_by_name": ("wrong_tool", "memorised_name"),
    "passes_by_position": ("bad_arguments",),
    "reads_only_the_beginning": ("ignored_result",),
    "invents_identifiers": ("invented_value",),  # bad_arguments had both in its day
    "never_retries": ("no_recovery",),
    "claims_success": ("no_recovery", "answered_without_evidence"),
}
"""What a fair diagnosis names; where a weakness shows in several ways, each of them."""


def causes(agent: Any, tasks: int) -> dict[str, Counter[str]]:
    """The failures of an agent by shift and cause."""
    chosen = select(
        Selection("standard", worlds=("poi", "medical", "retail"), tasks=tasks, placebo=False)
    )
    plan = make_plan(chosen)
    store = InMemoryStore()
    run_cells(plan.cells, contestants([agent]), store)
    cells = {cell.id: cell for cell in plan.cells}
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for record in store.records():
        if not record.grade.passed:
            found[cells[record.cell].stack or "clean"][record.grade.cause] += 1
    return found


def main() -> None:
    """Runs every agent and writes the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=11, help="tasks of each world")
    parser.add_argument("--agent", action="append", help="only this one; repeat")
    options = parser.parse_args()
    results: dict[str, Any] = {"tasks": options.tasks, "agents": {}}
    right = 0
    for name, make in AGENTS.items():
        if options.agent and name not in options.agent:
            continue
        found = causes(make(), options.tasks)
        total: Counter[str] = sum(found.values(), Counter())
        commonest = total.most_common(1)[0][0] if total else ""
        named = commonest in EXPECTED[name]
        right += named
        results["agents"][name] = {
            "expected": EXPECTED[name],
            "commonest": commonest,
            "named": named,
            "causes": dict(total.most_common()),
            "by_shift": {shift: dict(found[shift].most_common()) for shift in sorted(found)},
        }
        print(
            f"{name:26} {'right' if named else 'WRONG':6} {dict(total.most_common())}", flush=True
        )
    results["named"] = f"{right} of {len(results['agents'])}"
    print(results["named"])
    if not options.agent:
        (HERE / "results.json").write_text(json.dumps(results, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()

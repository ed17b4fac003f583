"""Simulate the errors of the gate: ``python benchmarks/gate_error.py --json FILE``.

Each design draws builds afresh: the tasks, the baseline's run and the candidate's. At a true drop
equal to the margin a pass is an error; at a drop of zero a fail is one. The verdicts come from
``toolshift.measure.gate_statistics``, the very functions of the gate.

*One family*: tasks 30 to 400, one to four scenes or trials of a task, baseline 60 to 98%, and five
ways in which the runs depend on each other. ``losses``: the same tasks pass in every run, and the
candidate loses some and gains none; ``churn``: likewise, and 5% of the tasks change either way;
``same``: all tasks are equally hard and every trial is a coin; ``2`` and ``0.5``: task rates from a
beta distribution of that concentration, hard tasks staying hard.

*Whole gates*: clean, four tiers and overall, on the same tasks.

*Estimates*: where a build was inconclusive, the tasks that the gate asked for are drawn, and the
share decided then is counted.

A design whose error is over ``LIMIT`` is run again, ten times longer from a fresh seed, and the
second figure is judged. Exit status 1 if any then fails.
"""

import argparse
import json
import platform
import sys
import time
from itertools import product
from pathlib import Path

import msgspec
import numpy as np
import scipy
from scipy import special

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
from toolshift.core.files import pack
from toolshift.measure.gate_statistics import decide, more_tasks
from toolshift.measure.statistics import drop_p_of_means

TASKS = (30, 60, 100, 200, 400)
RATES = (0.6, 0.8, 0.9, 0.94, 0.98)
MARGINS = (0.05, 0.1)
TRIALS = (1, 2, 4)
FIXED = ("losses", "churn")
FREE = ("same", "2", "0.5")
LIMIT = 0.06
CONFIRM = 10
CHURN = 0.05
GATE_TASKS = (60, 100, 200, 400)
FEWER = 4  # builds of a whole gate are fewer by this factor: its families are many
SCENES = 3  # of a task in each tier


class Design(msgspec.Struct, frozen=True):
    """A population of tasks, how the runs depend on each other, and the size of a build's run."""

    tasks: int
    trials: int
    baseline: float
    margin: float
    kind: str


class Shares(msgspec.Struct, frozen=True):
    """Shares of simulated builds by verdict."""

    passed: float
    failed: float
    inconclusive: float


class Row(msgspec.Struct, frozen=True):
    """One design; `at_margin`, `at_zero`, `at_twice` are named after the true drop.

    `passed` of `at_margin` is the error; `failed` of `at_zero` is the other error; `passed` of
    `at_zero` and `failed` of `at_twice` are power. `t_error` is the error at the margin of the 95%
    interval of `compare`, for comparison. `first_error` is set where the design was run again.
    """

    design: Design
    builds: int
    at_zero: Shares
    at_margin: Shares
    at_twice: Shares
    t_error: float
    ok: bool
    first_error: float | None = None


def designs(quick: bool) -> list[Design]:
    """The grid, without drops that the baseline does not have room for."""
    tasks, rates = (TASKS, RATES) if not quick else ((30, 100), (0.9, 0.98))
    kinds = [(1, kind) for kind in FIXED] + list(product(TRIALS if not quick else (1,), FREE))
    return [
        Design(count, trials, rate, margin, kind)
        for margin, count, rate, (trials, kind) in product(
            MARGINS if not quick else MARGINS[:1], tasks, rates, kinds
        )
    ]


def draw(
    design: Design, drop: float, builds: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Per-task means of the baseline's and the candidate's run, each of shape (builds, tasks)."""
    shape = (builds, design.tasks)
    before, after = design.baseline, design.baseline - drop
    if design.kind in FIXED:
        level = rng.random(shape)
        churn = min(CHURN, 1 - before, after) if design.kind == "churn" else 0.0
        gained = (level >= before) & (level < before + churn)
        return (level < before).astype(float), ((level < after - churn) | gained).astype(float)
    rates = [np.full(shape, before), np.full(shape, after)]
    if design.kind != "same":
        # A pool of levels instead of fresh ones: the beta quantile is the slow step.
        pool, pick = rng.random(20_000), rng.integers(20_000, size=shape)
        wide = float(design.kind)
        rates = [special.betaincinv(wide * r, wide * (1 - r), pool)[pick] for r in (before, after)]
    first, second = (rng.binomial(design.trials, rate) / design.trials for rate in rates)
    return first, second


def verdicts(changes: np.ndarray, margin: float) -> list[str]:
    """The gate's verdict on each build; those with the same changes are decided once."""
    known: dict[bytes, str] = {}
    found = []
    for row in np.sort(changes.round(9), axis=1):
        key = row.tobytes()
        if key not in known:
            known[key] = decide(row, margin)
        found.append(known[key])
    return found


def shares(found: list[str]) -> Shares:
    """How common each verdict is."""
    return Shares(*(found.count(each) / len(found) for each in ("pass", "fail", "inconclusive")))


def generator(seed: int, *what: object) -> np.random.Generator:
    """A generator for one part of the simulation, whatever else is run."""
    return np.random.default_rng([seed, *msgspec.json.encode(what)])


def t_error(before: np.ndarray, after: np.ndarray, margin: float) -> float:
    """The share that the 95% interval of `compare` would pass."""
    known: dict[tuple[bytes, float, float], bool] = {}
    passed = 0
    for one, other in zip(before, after, strict=True):
        key = (np.sort((other - one).round(9)).tobytes(), float(one.sum()), float(other.sum()))
        if key not in known:
            above = float((other - one).mean()) > -margin
            known[key] = above and drop_p_of_means(other, one, -margin) < 0.05
        passed += known[key]
    return passed / len(before)


def simulate(design: Design, builds: int, seed: int, quick: bool) -> Row:
    """The verdicts at a true drop of zero, the margin, and twice the margin."""
    found = {}
    alone = float("nan")
    for name, factor in (("at_zero", 0), ("at_margin", 1), ("at_twice", 2)):
        rng = generator(seed, design, name)
        before, after = draw(design, factor * design.margin, builds, rng)
        found[name] = shares(verdicts(after - before, design.margin))
        if factor == 1 and design.trials == 1 and not quick:
            alone = t_error(before, after, design.margin)
    error = max(found["at_margin"].passed, found["at_zero"].failed)
    return Row(design, builds, **found, t_error=alone, ok=error <= LIMIT)


def judge(design: Design, builds: int, seed: int, quick: bool) -> Row:
    """`simulate`, repeated with fresh and more builds where the first look wrong."""
    row = simulate(design, builds, seed, quick)
    if row.ok:
        return row
    again = simulate(design, builds * CONFIRM, seed + 1, quick=True)
    return msgspec.structs.replace(again, t_error=row.t_error, first_error=row.at_margin.passed)


# -- whole gates -------------------------------------------------------------------------------


def whole_gate(tasks: int, baseline: float, margin: float, builds: int, seed: int) -> dict:
    """Verdicts of gates of six families at several true drops."""
    cases = {
        "no drop": (0, 0, 0, 0, 0),
        "one tier at the margin": (0, 1, 0, 0, 0),
        "all at the margin": (1, 1, 1, 1, 1),
        "one tier at twice the margin": (0, 2, 0, 0, 0),
        "all at twice the margin": (2, 2, 2, 2, 2),
    }
    found = {}
    for name, drops in cases.items():
        rng = generator(seed, tasks, baseline, margin, name)
        families = _families(tasks, baseline, [margin * each for each in drops], builds, rng)
        each = [verdicts(changes, margin) for changes in families]
        joint = [
            "fail" if "fail" in row else "inconclusive" if "inconclusive" in row else "pass"
            for row in zip(*each, strict=True)
        ]
        found[name] = msgspec.to_builtins(shares(joint))
    return {"tasks": tasks, "baseline": baseline, "margin": margin, "builds": builds, **found}


def _families(
    tasks: int, baseline: float, drops: list[float], builds: int, rng: np.random.Generator
) -> list[np.ndarray]:
    """Changes of clean, four tiers and overall; hard tasks are hard in all of them."""
    pool, pick = rng.random(20_000), rng.integers(20_000, size=(builds, tasks))
    found, total, scenes = [], np.zeros((builds, tasks)), 0
    for place, drop in enumerate(drops):
        count = SCENES if place else 1
        first, second = (
            rng.binomial(count, special.betaincinv(2 * rate, 2 * (1 - rate), pool)[pick])
            for rate in (baseline, baseline - drop)
        )
        found.append((second - first) / count)
        total, scenes = total + second - first, scenes + count
    return [*found, total / scenes]


# -- how good the estimate is ------------------------------------------------------------------


def follow_up(design: Design, drop: float, builds: int, seed: int) -> dict:
    """What becomes of inconclusive builds when the tasks asked for are added."""
    rng = generator(seed, design, drop, "follow up")
    before, after = draw(design, drop, builds, rng)
    first = after - before
    asked, decided, hopeless = [], 0, 0
    for row, verdict in zip(first, verdicts(first, design.margin), strict=True):
        if verdict != "inconclusive":
            continue
        count = more_tasks(row, design.margin)
        if count is None:
            hopeless += 1
            continue
        more = draw(msgspec.structs.replace(design, tasks=count), drop, 1, rng)
        asked.append(count)
        joined = np.concatenate([row, (more[1] - more[0])[0]])
        decided += decide(joined, design.margin) != "inconclusive"
    return {
        "design": msgspec.to_builtins(design),
        "drop": drop,
        "builds": builds,
        "asked_for_more": len(asked),
        "no_number_given": hopeless,
        "median_asked": float(np.median(asked)) if asked else None,
        "decided": decided / len(asked) if asked else None,
    }


# -- what is printed and written ---------------------------------------------------------------


def summary(rows: list[Row]) -> dict:
    """The worst and the typical figures."""

    def worst(value) -> dict:
        row = max(rows, key=value)
        return {"share": value(row), "design": msgspec.to_builtins(row.design)}

    tested = [row for row in rows if row.t_error == row.t_error]
    return {
        "designs": len(rows),
        "failing": sum(not row.ok for row in rows),
        "run_again": sum(row.first_error is not None for row in rows),
        "passed_at_the_margin": worst(lambda row: row.at_margin.passed),
        "passed_at_the_margin_mean": round(
            float(np.mean([row.at_margin.passed for row in rows])), 4
        ),
        "failed_at_no_drop": worst(lambda row: row.at_zero.failed),
        "failed_at_the_margin": worst(lambda row: row.at_margin.failed),
        "t_error_over_limit": sum(row.t_error > LIMIT for row in tested),
        "t_error_max": max((row.t_error for row in tested), default=None),
        "by_tasks": [
            _typical(rows, margin, tasks)
            for margin, tasks in sorted({(row.design.margin, row.design.tasks) for row in rows})
        ],
    }


def _typical(rows: list[Row], margin: float, tasks: int) -> dict:
    those = [row for row in rows if (row.design.margin, row.design.tasks) == (margin, tasks)]

    def middle(value) -> list[float]:
        values = [value(row) for row in those]
        return [round(float(q), 3) for q in np.quantile(values, [0, 0.5, 1])]

    return {
        "margin": margin,
        "tasks": tasks,
        "designs": len(those),
        "least_median_most": {
            "error_at_the_margin": middle(lambda row: row.at_margin.passed),
            "passed_at_no_drop": middle(lambda row: row.at_zero.passed),
            "inconclusive_at_no_drop": middle(lambda row: row.at_zero.inconclusive),
            "failed_at_twice": middle(lambda row: row.at_twice.failed),
            "inconclusive_at_twice": middle(lambda row: row.at_twice.inconclusive),
        },
    }


def main() -> int:
    """Run everything; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--builds", type=int, default=2000, help="builds a design and drop")
    parser.add_argument("--seed", type=int, default=20_264, help="root seed")
    parser.add_argument("--quick", action="store_true", help="a few designs only")
    parser.add_argument("--json", type=Path, help="write everything here")
    options = parser.parse_args()
    start = time.perf_counter()
    grid = designs(options.quick)
    rows = []
    for place, design in enumerate(grid):
        rows.append(judge(design, options.builds, options.seed, options.quick))
        if place % 25 == 24:
            print(f"{place + 1} of {len(grid)} designs", file=sys.stderr, flush=True)
    gates = [
        whole_gate(tasks, baseline, MARGINS[0], options.builds // FEWER, options.seed)
        for tasks, baseline in product(GATE_TASKS, (0.8, 0.94))
        if not options.quick or (tasks, baseline) == (60, 0.94)
    ]
    estimates = [
        follow_up(Design(tasks, 1, 0.9, margin, kind), drop, options.builds // 10, options.seed)
        for margin, tasks, kind in product(MARGINS, (30, 60, 100), (*FIXED, *FREE))
        for drop in (0.0, 2 * margin)
        if not options.quick or (margin, tasks, kind) == (0.1, 30, "churn")
    ]
    seconds = time.perf_counter() - start
    found = summary(rows)
    print(json.dumps({name: value for name, value in found.items() if name != "by_tasks"}))
    for each in found["by_tasks"]:
        print(each["margin"], each["tasks"], each["least_median_most"])
    for each in [*gates, *estimates]:
        print(each)
    print(f"{len(rows)} designs of {options.builds} builds, {seconds:.0f} s")
    if options.json:
        record = {
            "command": f"python benchmarks/gate_error.py --builds {options.builds} "
            f"--seed {options.seed}" + (" --quick" if options.quick else ""),
            "versions": {
                "python": platform.python_version(),
                "numpy": np.__version__,
                "scipy": scipy.__version__,
            },
            "seconds": round(seconds, 1),
            "summary": found,
            "gates": gates,
            "estimates": estimates,
        }
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(record, indent=1) + "\n")
        lines = options.json.with_suffix(".rows.jsonl.gz")
        lines.write_bytes(pack(b"".join(msgspec.json.encode(row) + b"\n" for row in rows)))
    return 0 if all(row.ok for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())

"""Simulate intervals and gate under rare total breakage: ``python benchmarks/rare_breakage.py``.

A shift that breaks a few tasks in a hundred altogether, and leaves the others alone, is the hard
case for intervals: a study may see none of the broken tasks, and many trials make all others nearly
equal, so a t interval is too sure. Each design draws tasks afresh, runs binary trials in both arms
and asks whether the nominal 95% interval of the drop (``drop_of_means``) and of the shifted
accuracy (``cluster_rate``) hold the true value. "t alone" is the t interval without leverage.

How tasks break:

- *task*: each task with a chance of the stated rate, in all of its trials;
- *scene*: a task is met in eight scenes (as the shifts of a tier are), each of which breaks with
  that chance in all of its trials;
- *kind*: the tasks of one kind, so that their share is the same in every study (one at least);
- *group*: five tasks together. Here the task is not the cluster, and no interval can know it: the
  figures are shown, and not judged.

For the gate (`gate_statistics.decide`) such a candidate is judged twice: with the margin at
its true loss, where passing it and failing it are both errors of at most 5%; and against a
baseline of which as many, but other tasks break, with a margin of five points, where failing it is
a false alarm.

A design that covers less than ``NEAR``, or fails, is run again, ten times longer from a fresh seed,
and the second figure is judged. Exit status 1 if any then fails.
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
from interval_coverage import covers, t_alone

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
from toolshift.core.files import pack
from toolshift.measure.gate_statistics import decide
from toolshift.measure.statistics import MAX_LEVERAGE, cluster_rate, leverage

TASKS = (20, 50, 200)
TRIALS = (1, 2, 4, 8, 16, 32)
RATES = (0.005, 0.01, 0.02, 0.05)
PASSES = (0.7, 0.95)
PATTERNS = ("task", "scene", "kind", "group")
SCENES, GROUP = 8, 5
LEAST, NEAR, MAX_ERRORS = 0.93, 0.94, 0.06
CONFIRM = 10
CHECKED = 40  # studies a design in which the accuracy's interval is computed
MARGIN = 0.05


class Design(msgspec.Struct, frozen=True):
    """A population of tasks, how often and how they break, and the size of a study."""

    tasks: int
    trials: int
    passes: float
    broken: float
    pattern: str


class Row(msgspec.Struct, frozen=True):
    """What the simulation found for one design; all are shares of studies.

    ``accuracy`` is the coverage of the shifted accuracy's interval, over fewer studies. ``passed``
    and ``failed`` are the gate's verdicts with the margin at the true loss; ``alarm`` its fails of
    a candidate that is no worse. ``first`` is the coverage that made the design run again.
    """

    design: Design
    studies: int
    coverage: float
    t_alone: float
    exact: float
    accuracy: float
    passed: float
    failed: float
    alarm: float
    ok: bool
    first: float | None = None


def designs() -> list[Design]:
    """The full grid for tasks that break by themselves, a part of it for the other patterns."""
    every = [Design(*each) for each in product(TASKS, TRIALS, PASSES, RATES, ("task",))]
    part = product((50, 200), (1, 4, 32), (0.95,), (0.01, 0.05), PATTERNS[1:])
    return every + [Design(*each) for each in part]


def broken_share(design: Design) -> float:
    """The true share of broken scenes."""
    if design.pattern != "kind":
        return design.broken
    return max(1, round(design.broken * design.tasks)) / design.tasks


def draw_broken(design: Design, runs: int, rng: np.random.Generator) -> np.ndarray:
    """Which scenes are broken, of shape (runs, tasks, scenes of a task)."""
    shape = (runs, design.tasks, SCENES if design.pattern == "scene" else 1)
    if design.pattern == "kind":
        count = round(broken_share(design) * design.tasks)
        return np.broadcast_to(np.arange(design.tasks)[None, :, None] < count, shape)
    if design.pattern == "group":
        groups = rng.random((runs, design.tasks // GROUP)) < design.broken
        return np.repeat(groups, GROUP, axis=1)[:, :, None]
    return rng.random(shape) < design.broken


def draw_arm(design: Design, broken: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Per-task means of an arm, of shape (runs, tasks)."""
    passes = rng.binomial(design.trials, design.passes, broken.shape)
    return np.where(broken, 0, passes).mean(axis=2) / design.trials


def simulate(design: Design, runs: int, seed: int) -> Row:
    """One design."""
    rng = np.random.default_rng([seed, *msgspec.json.encode(design)])
    broken = draw_broken(design, runs, rng)
    clean = draw_arm(design, np.zeros_like(broken), rng)
    shifted = draw_arm(design, broken, rng)
    other = draw_arm(design, draw_broken(design, runs, rng), rng)
    drops = clean - shifted
    loss = broken_share(design) * design.passes
    rate = design.passes - loss
    held = [covers(*pair, loss) for pair in zip(clean, shifted, strict=True)]
    means = [cluster_rate(row[:, None].tolist()) for row in shifted[:CHECKED]]
    at_margin = [decide(-row, loss) for row in drops]
    no_worse = [decide(row, MARGIN) for row in shifted - other]
    coverage = float(np.mean(held))
    accuracy = float(np.mean([each.low - 1e-9 <= rate <= each.high + 1e-9 for each in means]))
    passed, failed = (at_margin.count(each) / runs for each in ("pass", "fail"))
    alarm = no_worse.count("fail") / runs
    return Row(
        design=design,
        studies=runs,
        coverage=coverage,
        t_alone=t_alone(drops, loss)[0],
        exact=float(np.mean([leverage(row, (-1.0, 1.0)) > MAX_LEVERAGE for row in drops])),
        accuracy=accuracy,
        passed=passed,
        failed=failed,
        alarm=alarm,
        ok=coverage >= LEAST and max(passed, failed, alarm) <= MAX_ERRORS,
    )


def judge(design: Design, runs: int, seed: int) -> Row:
    """``simulate``, repeated with fresh and more studies if the first ones look doubtful."""
    row = simulate(design, runs, seed)
    if (row.ok and row.coverage >= NEAR) or design.pattern == "group":
        return row
    again = simulate(design, runs * CONFIRM, seed + 1)
    return msgspec.structs.replace(again, first=row.coverage)


def summary(rows: list[Row]) -> dict[str, dict[str, float]]:
    """The worst of each pattern and number of trials."""
    found = {}
    for pattern, trials in product(PATTERNS, TRIALS):
        those = [r for r in rows if (r.design.pattern, r.design.trials) == (pattern, trials)]
        if those:
            found[f"{pattern}, {trials} trials"] = {
                "designs": len(those),
                "coverage_min": min(row.coverage for row in those),
                "t_alone_min": min(row.t_alone for row in those),
                "accuracy_mean": round(float(np.mean([row.accuracy for row in those])), 4),
                "exact_mean": round(float(np.mean([row.exact for row in those])), 3),
                "passed_max": max(row.passed for row in those),
                "failed_max": max(row.failed for row in those),
                "alarm_max": max(row.alarm for row in those),
                "failing": sum(not row.ok for row in those),
            }
    return found


def main() -> int:
    """Runs the grid; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=500, help="studies per design")
    parser.add_argument("--seed", type=int, default=20_262, help="root seed")
    parser.add_argument("--quick", action="store_true", help="a few designs only")
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args()
    start = time.perf_counter()
    grid = designs()[:: 37 if options.quick else 1]
    rows = [judge(design, options.runs, options.seed) for design in grid]
    found = summary(rows)
    for name, facts in found.items():
        print(name, facts)
    record = {
        "command": "python benchmarks/rare_breakage.py "
        f"--runs {options.runs} --seed {options.seed}",
        "max_leverage": MAX_LEVERAGE,
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
        },
        "seconds": round(time.perf_counter() - start),
        "summary": found,
    }
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(record, indent=1) + "\n")
        lines = b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
        options.json.with_suffix(".rows.jsonl.gz").write_bytes(pack(lines))
    return 0 if all(row.ok or row.design.pattern == "group" for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())

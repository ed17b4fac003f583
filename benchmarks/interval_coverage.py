"""Simulate the coverage of the drop interval: ``python benchmarks/interval_coverage.py``.

Each design draws tasks afresh (their pass rates are random), runs binary trials
in both arms and asks whether the nominal 95% interval of ``paired_drop`` holds
the true mean drop. "t alone" is the t interval whatever the leverage. Tasks that
break altogether are the matter of ``rare_breakage.py``.

Regions: *interior* (both rates strictly inside 10-90%, and the t interval taken in
all studies) must cover 93-97%; *leveraged* (both rates inside, and the exact limits
taken in some or all studies) and *boundary* (a rate at or outside the rim) must
cover at least 93% and may be conservative.

With hundreds of designs some leave the limits by simulation error alone. So a
design that does is run again, ten times longer from a fresh seed, and the second
figure is the one reported and judged. Exit status 1 if any design then fails.
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
from scipy import special, stats

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
from toolshift.measure.statistics import drop_of_means, drop_p_of_means

TASKS = (20, 50, 100, 200)
TRIALS = (1, 4)
RATES = (
    # inside 10-90%
    (0.5, 0.5),
    (0.7, 0.58),
    (0.85, 0.75),
    (0.8, 0.4),
    (0.85, 0.15),
    (0.3, 0.15),
    # outside, or on the rim
    (1.0, 1.0),
    (0.0, 0.0),
    (1.0, 0.98),
    (1.0, 0.9),
    (1.0, 0.5),
    (1.0, 0.0),
    (0.98, 0.98),
    (0.98, 0.02),
    (0.97, 0.9),
    (0.95, 0.6),
    (0.93, 0.85),
    (0.9, 0.8),
    (0.9, 0.1),
    (0.1, 0.02),
)
# Beta concentration (a + b) of task rates; None is one rate for all tasks. In a
# "same" design an easy task stays easy under the shift; in a "free" one it may not.
SPREADS = ((None, "same"), (2.0, "free"), (0.5, "same"))
# A suspect design is judged on this many times more runs, from fresh seeds.
CONFIRM = 10
CHECKED = 20  # runs a design in which the interval itself is computed


class Design(msgspec.Struct, frozen=True):
    """One population of tasks and the size of the study drawn from it."""

    tasks: int
    trials: int
    clean: float
    shifted: float
    concentration: float | None
    pairing: str


class Row(msgspec.Struct, frozen=True):
    """What the simulation found for one design; rates and widths in [0, 1].

    ``first_coverage`` is set when that many runs fell outside the limits and
    ``coverage`` comes from ``CONFIRM`` times as many fresh ones. ``exact_share`` and
    ``half_width`` are means of the first ``CHECKED`` runs.
    """

    design: Design
    region: str
    runs: int
    coverage: float
    coverage_t_alone: float
    zero_width_t_alone: float
    exact_share: float
    half_width: float
    ok: bool
    first_coverage: float | None = None


def designs() -> list[Design]:
    """The full grid, without spreads that a rate of exactly 0 or 1 makes equal."""
    grid = []
    for (clean, shifted), (concentration, pairing) in product(RATES, SPREADS):
        if concentration and {clean, shifted} <= {0.0, 1.0}:
            continue
        for tasks, trials in product(TASKS, TRIALS):
            grid.append(Design(tasks, trials, clean, shifted, concentration, pairing))
    return grid


def draw_rates(level: np.ndarray, mean: float, concentration: float | None) -> np.ndarray:
    """Task rates: the beta quantiles of ``level``, or ``mean`` for every task."""
    if concentration is None or mean in (0.0, 1.0):
        return np.full(level.shape, mean)
    return special.betaincinv(concentration * mean, concentration * (1 - mean), level)


def draw(design: Design, runs: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Per-task means of both arms, each of shape (runs, tasks)."""
    # A pool of levels instead of fresh ones: the beta quantile is the slow step.
    level = rng.random((2, 20_000))
    if design.pairing == "same":
        level[1] = level[0]
    pick = rng.integers(level.shape[1], size=(runs, design.tasks))
    clean = draw_rates(level[0], design.clean, design.concentration)[pick]
    shifted = draw_rates(level[1], design.shifted, design.concentration)[pick]
    return (
        rng.binomial(design.trials, clean) / design.trials,
        rng.binomial(design.trials, shifted) / design.trials,
    )


def t_alone(drops: np.ndarray, truth: float) -> tuple[float, float]:
    """Coverage and share of zero widths of the t interval whatever the leverage."""
    tasks = drops.shape[1]
    half = stats.t.ppf(0.975, tasks - 1) * drops.std(axis=1, ddof=1) / np.sqrt(tasks)
    covered = np.abs(drops.mean(axis=1) - truth) <= half + 1e-12
    return float(covered.mean()), float((half < 1e-12).mean())


def region_of(design: Design, exact_share: float) -> str:
    """Interior, boundary or leveraged."""
    if not (0.1 < design.shifted < 0.9 and 0.1 < design.clean < 0.9):
        return "boundary"
    return "leveraged" if exact_share else "interior"


def covers(clean: np.ndarray, shifted: np.ndarray, truth: float) -> bool:
    """Whether the interval of one study holds ``truth``: its test does not reject it."""
    # Of the hypothesised drops an interval holds those not rejected; testing one is
    # ten times cheaper than finding both limits. 1e-9 keeps rounding off the limits.
    nearest = float(np.clip(np.mean(clean - shifted), truth - 1e-9, truth + 1e-9))
    return drop_p_of_means(clean, shifted, nearest) >= 0.05


def simulate(design: Design, runs: int, seed: int) -> Row:
    """Coverage of the drop interval over ``runs`` studies of one design."""
    rng = np.random.default_rng([seed, *msgspec.json.encode(design)])
    clean, shifted = draw(design, runs, rng)
    drops = np.sort(clean - shifted, axis=1)
    truth = design.clean - design.shifted
    known: dict[tuple[bytes, float, float], bool] = {}
    covered = np.zeros(runs, bool)
    for run in range(runs):
        # The interval depends on these three alone; runs at the boundary often repeat.
        facts = (drops[run].tobytes(), float(clean[run].sum()), float(shifted[run].sum()))
        if facts not in known:
            known[facts] = covers(clean[run], shifted[run], truth)
        covered[run] = known[facts]
    checked = [drop_of_means(clean[run], shifted[run]) for run in range(CHECKED)]
    held = [drop.low - 1e-7 <= truth <= drop.high + 1e-7 for drop in checked]
    if held != covered[:CHECKED].tolist():
        raise AssertionError(f"interval and test disagree for {design}")
    exact_share = float(np.mean([drop.method == "exact" for drop in checked]))
    region = region_of(design, exact_share)
    coverage = float(covered.mean())
    covered_t, zero_t = t_alone(drops, truth)
    return Row(
        design=design,
        region=region,
        runs=runs,
        coverage=coverage,
        coverage_t_alone=covered_t,
        zero_width_t_alone=zero_t,
        exact_share=exact_share,
        half_width=float(np.mean([(drop.high - drop.low) / 2 for drop in checked])),
        ok=0.93 <= coverage <= (0.97 if region == "interior" else 1.0),
    )


def judge(design: Design, runs: int, seed: int) -> Row:
    """``simulate``, repeated with fresh and more runs if the first ones look wrong."""
    row = simulate(design, runs, seed)
    if row.ok:
        return row
    again = simulate(design, runs * CONFIRM, seed + 1)
    return msgspec.structs.replace(again, first_coverage=row.coverage)


def print_table(rows: list[Row]) -> None:
    """One line a design, then the range of each region."""
    print("region    tasks trials  clean shifted  spread    cover  t alone  exact  +/-")
    for row in rows:
        design = row.design
        spread = f"{design.concentration or 'none'}/{design.pairing}"
        print(
            f"{row.region:9} {design.tasks:5} {design.trials:6} {design.clean:6.0%} "
            f"{design.shifted:7.0%}  {spread:8} {row.coverage:6.1%} {row.coverage_t_alone:8.1%} "
            f"{row.exact_share:6.0%} {row.half_width:6.3f}"
            f"{'' if row.first_coverage is None else f'  ({row.runs} runs)'}"
            f"{'' if row.ok else '  FAILS'}"
        )
    for name, facts in summary(rows).items():
        print(name, facts)


def summary(rows: list[Row]) -> dict[str, dict[str, float]]:
    """Range of coverage in each region, with and without the rule of leverage."""
    regions = {}
    for region in ("interior", "leveraged", "boundary"):
        inside = [row for row in rows if row.region == region]
        if not inside:
            continue
        cover = [row.coverage for row in inside]
        regions[region] = {
            "designs": len(inside),
            "failing": sum(not row.ok for row in inside),
            "confirmed_with_more_runs": sum(row.first_coverage is not None for row in inside),
            "coverage_min": min(cover),
            "coverage_mean": round(float(np.mean(cover)), 4),
            "coverage_max": max(cover),
            "t_alone_min": min(row.coverage_t_alone for row in inside),
            "t_alone_max": max(row.coverage_t_alone for row in inside),
        }
    return regions


def main() -> int:
    """Run the grid; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=2000, help="studies per design")
    parser.add_argument("--seed", type=int, default=20_261, help="root seed")
    parser.add_argument("--json", type=Path, help="write config and rows here")
    options = parser.parse_args()
    start = time.perf_counter()
    rows = [judge(design, options.runs, options.seed) for design in designs()]
    seconds = time.perf_counter() - start
    print_table(rows)
    print(f"{len(rows)} designs, {options.runs} runs each, {seconds:.0f} s")
    if options.json:
        record = {
            "command": "python benchmarks/interval_coverage.py "
            f"--runs {options.runs} --seed {options.seed}",
            "config": {"runs": options.runs, "seed": options.seed, "confidence": 0.95},
            "versions": {
                "python": platform.python_version(),
                "numpy": np.__version__,
                "scipy": scipy.__version__,
            },
            "seconds": round(seconds, 1),
            "summary": summary(rows),
            "rows": msgspec.to_builtins(rows),
        }
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(record, indent=1) + "\n")
    return 0 if all(row.ok for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())

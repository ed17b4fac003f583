"""Do intervals over seeds and tasks hold, and what can a design see?

    python benchmarks/crossed_coverage.py [--studies 2000] [--json FILE]

Each study draws seeds and tasks afresh: whether a task is lost under a shift is a coin whose chance
has a logit of a part of the seed, one of the task and one of the mean. The interval of
``measure.crossed`` is asked for the true mean, beside one over tasks alone and one over seeds
alone. Power is how often two arms of a true difference of 20 points are told apart after Holm's
correction over five endpoints, the least favourable place in it.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from machine import machine
from scipy import optimize, special

from toolshift.measure.crossed import crossed_mean
from toolshift.measure.statistics import drop_of_means, seed_contrast

DESIGNS = ((3, 48), (6, 24), (6, 48))
"""Seeds and tasks."""
SPREADS = {"as measured": (0.6, 2.0), "seeds differ": (1.5, 1.0), "tasks only": (0.0, 2.0)}
"""Standard deviations of the logit over seeds and over tasks."""
MEANS = (0.1, 0.5, 0.9)
ENDPOINTS = 5


def centre_of(mean: float, spread: float) -> float:
    """The logit whose mean chance, over a normal spread around it, is `mean`."""
    points, weights = np.polynomial.hermite_e.hermegauss(61)

    def off(centre: float) -> float:
        chances = special.expit(centre + spread * points)
        return float((chances * weights).sum() / weights.sum() - mean)

    return float(optimize.brentq(off, -30, 30))


def losses(
    design: tuple[int, int], mean: float, spreads: tuple[float, float], rng: Any, tasks: Any
) -> np.ndarray:
    """Which tasks are lost by which seed; 0 or 1, shape (seeds, tasks)."""
    of_seeds, of_tasks = spreads
    centre = centre_of(mean, float(np.hypot(of_seeds, of_tasks)))
    seeds = rng.normal(0, of_seeds, (design[0], 1)) if of_seeds else 0
    chance = special.expit(centre + seeds + of_tasks * tasks[None])
    return (rng.random((design[0], design[1])) < chance).astype(float)


def coverage(
    design: tuple[int, int], mean: float, spreads: tuple[float, float], studies: int, rng: Any
) -> dict[str, float]:
    """The share of studies whose interval holds the true mean, of three intervals."""
    held = np.zeros(3)
    width = 0.0
    for _ in range(studies):
        table = losses(design, mean, spreads, rng, rng.normal(size=design[1]))
        by_task = table.mean(axis=0)
        found = (
            crossed_mean(table).interval,
            drop_of_means(by_task, np.zeros_like(by_task)),
            seed_contrast(table.mean(axis=1).tolist()),
        )
        held += [each.low <= mean <= each.high for each in found]
        width += (found[0].high - found[0].low) / 2
    names = ("crossed", "tasks alone", "seeds alone")
    shares = {name: round(float(n) / studies, 3) for name, n in zip(names, held, strict=True)}
    return {**shares, "half_width": round(width / studies, 3)}


def power(design: tuple[int, int], studies: int, rng: Any) -> float:
    """How often 60 and 40 points of loss are told apart at a fifth of 5%, on the same tasks."""
    seen = 0
    for _ in range(studies):
        tasks = rng.normal(size=design[1])
        one = losses(design, 0.6, SPREADS["as measured"], rng, tasks)
        other = losses(design, 0.4, SPREADS["as measured"], rng, tasks)
        seen += crossed_mean(one - other).p < 0.05 / ENDPOINTS
    return round(seen / studies, 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--studies", type=int, default=2000)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    rng, begun = np.random.default_rng(0), time.process_time()
    rows = []
    for design in DESIGNS:
        for name, spreads in SPREADS.items():
            for mean in MEANS:
                found = coverage(design, mean, spreads, options.studies, rng)
                rows.append({"seeds": design[0], "tasks": design[1], "spread": name,
                             "mean": mean, **found})  # fmt: skip
                print(rows[-1], flush=True)
    powers = {f"{s} x {t}": power((s, t), options.studies, rng) for s, t in DESIGNS}
    made = {
        "command": f"python benchmarks/crossed_coverage.py --studies {options.studies}",
        "coverage": rows,
        "least": min(row["crossed"] for row in rows),
        "power_of_20_points_after_holm": powers,
        "cpu_seconds": round(time.process_time() - begun),
        "hardware": machine(),
    }
    print(json.dumps({key: made[key] for key in ("least", "power_of_20_points_after_holm")}))
    if options.json:
        options.json.write_text(json.dumps(made, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()

"""Is the smallest drop what it says? ``python benchmarks/detectable.py --json FILE``.

Each design plays pilot studies without a drop and takes from each the smallest drop that would show
(``measure.power``) at a quarter of 5%, as for four tiers. Then fresh studies are played in which
each task is lost altogether with the chance that makes this drop, and it is counted how often the
rule of the report finds it: p value under the level, a loss, and beyond the placebo arm if any.
Wanted is 80%. Tasks are drawn afresh each time; their pass rates are equal, or from a beta
distribution (*spread*). Exit status 1 if a design is off by more than ``FAR``.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import msgspec
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
from toolshift.measure.power import POWER, smallest_drop
from toolshift.measure.statistics import drop_p_value, paired_drop

LEVEL = 0.05 / 4
FAR = 0.06
Arm = dict[str, list[float]]


class Design(msgspec.Struct, frozen=True):
    """A population of tasks and the size of a study."""

    tasks: int
    trials: int
    passes: float
    spread: bool = False
    placebo: bool = False


DESIGNS = (
    Design(30, 1, 1.0),
    Design(40, 1, 0.9),
    Design(100, 1, 0.7, spread=True),
    Design(200, 1, 0.9),
    Design(40, 4, 0.8),
    Design(100, 4, 0.8, spread=True),
    Design(30, 8, 0.95),
    Design(60, 32, 0.7),
    Design(40, 1, 0.9, placebo=True),
    Design(60, 4, 0.8, placebo=True),
)


def arm(rates: np.ndarray, trials: int, rng: np.random.Generator) -> Arm:
    """Scores by task."""
    rows = rng.binomial(1, rates[:, None], (rates.size, trials))
    return {f"t{n}": [float(score) for score in row] for n, row in enumerate(rows)}


def study(design: Design, lost: float, rng: np.random.Generator) -> tuple[Arm, Arm, Arm]:
    """The clean, the shifted and the placebo arm."""
    rates = np.full(design.tasks, design.passes)
    if design.spread:
        rates = rng.beta(4 * design.passes, 4 * (1 - design.passes), design.tasks)
    clean, placebo = arm(rates, design.trials, rng), arm(rates, design.trials, rng)
    kept = np.where(rng.random(design.tasks) < lost, 0.0, rates)
    return clean, arm(kept, design.trials, rng), placebo if design.placebo else {}


def found(clean: Arm, shifted: Arm, placebo: Arm) -> bool:
    """The rule of the report."""
    if not drop_p_value(clean, shifted) < LEVEL or paired_drop(clean, shifted).estimate <= 0:
        return False
    return not placebo or paired_drop(placebo, shifted).low > 0


def main() -> int:
    """Runs the designs; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pilots", type=int, default=20)
    parser.add_argument("--studies", type=int, default=40, help="for each pilot")
    parser.add_argument("--seed", type=int, default=20_263)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    start, rows = time.perf_counter(), []
    for design in DESIGNS:
        rng = np.random.default_rng([options.seed, *msgspec.json.encode(design)])
        drops, hits = [], []
        for _ in range(options.pilots):
            drop = smallest_drop(*study(design, 0.0, rng), LEVEL)
            drops.append(drop)
            share = min(1.0, drop / design.passes)
            hits += [found(*study(design, share, rng)) for _ in range(options.studies)]
        power = float(np.mean(hits))
        row = {
            **msgspec.to_builtins(design),
            "drop_mean": round(float(np.mean(drops)), 4),
            "drop_sd": round(float(np.std(drops)), 4),
            "studies": len(hits),
            "found": round(power, 4),
            "ok": abs(power - POWER) <= FAR,
        }
        rows.append(row)
        print(row, flush=True)
    if options.json:
        record = {
            "command": f"python benchmarks/detectable.py --pilots {options.pilots} "
            f"--studies {options.studies} --seed {options.seed}",
            "level": LEVEL,
            "wanted": POWER,
            "seconds": round(time.perf_counter() - start),
            "rows": rows,
        }
        options.json.write_text(json.dumps(record, indent=1) + "\n")
    return 0 if all(row["ok"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())

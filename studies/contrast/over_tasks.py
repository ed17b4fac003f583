"""What an arm loses in a tier with the tasks as clusters, beside the pages' intervals over seeds.

    python studies/contrast/over_tasks.py static --pool test

For each task the change is averaged over the shifts of the tier and over the seeds; the interval is
a 95% t interval over the tasks. The seeds stay the same, so it does not speak of other seeds.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path
from statistics import fmean

from toolshift_lab.experiments import TIER_1, TIER_2, TIER_3, find_study
from toolshift_lab.stage import check_in_tree, stages

from toolshift.core.shift import without_versions
from toolshift.measure.statistics import seed_contrast
from toolshift.runs.run_folder import RunFolder

STAGES = Path(__file__).parent.parent / "stages"
TIERS = {"tier 1": TIER_1, "tier 2": TIER_2, "tier 3": TIER_3}


def changes(run: Path, shifts: tuple[str, ...]) -> dict[str, float]:
    """By task, the change under these shifts in points."""
    folder = RunFolder.read(run)
    clean: dict[str, bool] = {}
    shifted: dict[str, list[bool]] = defaultdict(list)
    for record in folder.records():
        cell = folder.cell(record)
        if not cell.stack:
            clean[cell.lineage] = record.grade.passed
        elif without_versions(cell.stack) in shifts:
            shifted[cell.lineage].append(record.grade.passed)
    return {task: 100 * (fmean(passed) - clean[task]) for task, passed in shifted.items()}


def main() -> None:
    """Prints a line for each tier."""
    parser = argparse.ArgumentParser(description="Losses with the tasks as clusters.")
    parser.add_argument("arm")
    parser.add_argument("--study", default="contrast")
    parser.add_argument("--pool", default="dev", choices=["dev", "test"])
    asked = parser.parse_args()
    study = find_study(asked.study)
    found = stages(study, "small", study.seeds, STAGES, (asked.arm,), asked.pool)
    check_in_tree([stage for stage in found if stage.arm.name == asked.arm])
    measured = [stage for stage in found if stage.arm.name == asked.arm and stage.measured]
    for tier, shifts in TIERS.items():
        by_seed = [changes(stage.run, shifts) for stage in measured]
        lost = seed_contrast([fmean(each[task] for each in by_seed) for task in by_seed[0]])
        print(
            f"{asked.arm}, {asked.pool}, {tier}: {lost.estimate:z.0f} "
            f"[{max(lost.low, -100):z.0f}, {min(lost.high, 100):z.0f}] over {lost.n} tasks, "
            f"{len(measured)} seeds"
        )


if __name__ == "__main__":
    main()

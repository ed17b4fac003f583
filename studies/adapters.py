"""Trains the adapters that ship with the package, where their stage is not there, and copies them.

    python studies/adapters.py          # two hours on two cores where nothing is there
    python studies/adapters.py paft     # only this one
    python studies/adapters.py --check  # trains nothing; exit code 1 where a shipped one is another

Each is an arm of a study, of the preset small and of seed 0.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import sys
from pathlib import Path

from toolshift.agents.local_kind import ADAPTERS
from toolshift.reproduce.artifacts import read_artifacts, repository
from toolshift.reproduce.experiments import find_study
from toolshift.reproduce.reproduce import Stage, run, stages

SHIPPED = {
    "static": ("copying", "static-spaced-texts", 0),
    "paft": ("copying", "paft-spaced-texts", 0),
    "grpo": ("rl", "grpo-shifted-spaced-texts", 0),
}
PARTS = ("adapter_model.safetensors", "adapter_config.json", "training.json")
STAGES = Path(__file__).parent / "stages"


def stages_of(name: str) -> list[Stage]:
    """The stage of a shipped adapter, after those that it starts from."""
    study, arm, seed = SHIPPED[name]
    found = stages(find_study(study), "small", seed + 1, STAGES, (arm,))
    return [stage for stage in found if stage.seed == seed]


def is_copy(shipped: Path, kept: Path) -> bool:
    """Whether the shipped file is that of the stage, whose weights may be in the history only."""
    content = shipped.read_bytes()
    if kept.is_file():
        return content == kept.read_bytes()
    root = repository(STAGES)
    path = kept.resolve().relative_to(root).as_posix()
    known = {artifact.path: artifact.sha256 for artifact in read_artifacts(root)}
    return known.get(path) == hashlib.sha256(content).hexdigest()


def main() -> int:
    """Trains, or checks, and says what it did; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("names", nargs="*", help=f"of {', '.join(SHIPPED)}; all by default")
    parser.add_argument("--check", action="store_true", help="train nothing, compare")
    asked = parser.parse_args()
    for name in asked.names:
        if name not in SHIPPED:
            parser.error(f"there is no adapter {name!r}; there are: {', '.join(SHIPPED)}")
    only_check, others = asked.check, []
    for name in asked.names or SHIPPED:
        study, arm, seed = SHIPPED[name]
        needed = stages_of(name)
        if not only_check:
            for stage in needed:
                run(stage, find_study(study), print)
        model, shipped = needed[-1].folder / "model", ADAPTERS / name
        same = shipped.is_dir() and all(is_copy(shipped / part, model / part) for part in PARTS)
        if not same and not only_check:
            shipped.mkdir(parents=True, exist_ok=True)
            for part in PARTS:
                shutil.copyfile(model / part, shipped / part)
        others += [] if same else [name]
        said = "is that of" if same else "is not that of" if only_check else "is now that of"
        print(f"smol:{name} {said} {study}, arm {arm}, seed {seed}: {model}")
    return int(only_check and bool(others))


if __name__ == "__main__":
    sys.exit(main())

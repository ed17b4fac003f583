"""Trains the adapters that ship with the package, where their stage is not there, and copies them.

    python studies/adapters.py          # some hours on two cores where nothing is there
    python studies/adapters.py paft     # only this one
    python studies/adapters.py --check  # trains nothing; exit code 1 where a shipped one is another

Each is an arm of a planned study, of seed 0. A stage that was measured, and whose weights are not
here, is compared by its hash. `paft` continues the `smol:paft` that shipped before it, so it is
trained again with that one, which the history has.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import sys
from pathlib import Path

from toolshift_lab.experiments import Study
from toolshift_lab.planned import read_plan, take_up
from toolshift_lab.stage import Stage, run, stages

from toolshift.agents.local_kind import ADAPTERS, PARTS, WEIGHTS
from toolshift.core.files import pack, read_bytes, stored

STUDIES = Path(__file__).parent
STAGES = STUDIES / "stages"
SHIPPED = {"static": ("decisive/plan.toml", "static"), "paft": ("reads/fill.toml", "filled")}
"""By name, the plan of a study and an arm of it."""
SEED = 0
LAST_BEFORE = "8edcaee0"
"""A commit whose `smol:paft` is that from which the one that ships was trained on."""


def stage_of(name: str) -> tuple[Study, Stage]:
    """The stage of a shipped adapter, and its study."""
    file, arm = SHIPPED[name]
    plan = read_plan(STUDIES / file)
    study, scale = take_up(plan)
    found = stages(study, scale, SEED + 1, STAGES, (arm,), plan.pool)
    return study, next(stage for stage in found if stage.seed == SEED)


def is_copy(shipped: Path, kept: Path) -> bool:
    """Whether the shipped file is that of the stage, of whose weights only the hash is kept.

    A record is compared by what it says: `freeze.py` takes the white space out.
    """
    content = read_bytes(stored(shipped))
    if kept.suffix == ".json" and kept.is_file():
        return bool(json.loads(content) == json.loads(kept.read_bytes()))
    if kept.is_file():
        return content == kept.read_bytes()
    known = kept.with_name("weights.sha256")
    return known.is_file() and known.read_text().split()[0] == hashlib.sha256(content).hexdigest()


def how_to_train(name: str) -> str:
    """The command that trains a shipped adapter anew, and where it has to be run."""
    file, arm = SHIPPED[name]
    words = f"toolshift reproduce decisive --plan studies/{file} --arm {arm} --work again"
    if start := read_plan(STUDIES / file).adapter:
        before = f"git checkout {LAST_BEFORE} -- src/toolshift/agents/adapters/paft"
        return f"where {start} is the one it starts from ({before}), {words}"
    return f"{words} trains it anew"


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
        study, stage = stage_of(name)
        model, shipped = stage.folder / "model", ADAPTERS / name
        if not only_check:
            run(stage, study, print)
        same = shipped.is_dir() and all(is_copy(shipped / part, model / part) for part in PARTS)
        if not same and not only_check:
            if not (model / PARTS[0]).is_file():
                print(f"the weights of {model} are not here: {how_to_train(name)}", file=sys.stderr)
                return 2
            shipped.mkdir(parents=True, exist_ok=True)
            for part in PARTS[1:]:
                shutil.copyfile(model / part, shipped / part)
            (shipped / f"{WEIGHTS}.xz").write_bytes(pack((model / WEIGHTS).read_bytes(), ".xz"))
        others += [] if same else [name]
        said = "is that of" if same else "is not that of" if only_check else "is now that of"
        print(f"smol:{name} {said} arm {stage.arm.name}, seed {stage.seed}: {model}")
    return int(only_check and bool(others))


if __name__ == "__main__":
    sys.exit(main())

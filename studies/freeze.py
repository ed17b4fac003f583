"""Writes `artifacts.toml` and `stages.toml`: where the weights and the stages of the studies are.

    python studies/freeze.py

Adds what is new, and leaves alone what is listed: weights that are no longer in the tree, stages
whose keys would be others by the code of today. What is new has to be committed first.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from toolshift.core.files import read_bytes, stored
from toolshift.reproduce.artifacts import LISTED, Artifact, read_artifacts
from toolshift.reproduce.experiments import STUDIES
from toolshift.reproduce.frozen import Frozen, frozen_stages, table_of
from toolshift.reproduce.reproduce import Stage, seeds_there, stages

ROOT = Path(__file__).parent.parent
STAGES = Path("studies") / "stages"
WEIGHTS = "adapter_model.safetensors"


def commit_of(path: str) -> str:
    """The last commit that changed a path without removing it."""
    asked = ["git", "log", "-1", "--format=%H", "--diff-filter=AM", "--", path]
    return subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()


def all_stages() -> Iterator[tuple[str, Stage]]:
    """Every stage of preset small that a study can ask for, with the study."""
    for name, study in STUDIES.items():
        seeds = max(1, seeds_there(study, "small", STAGES))
        for pool in ("dev", "test"):
            for stage in stages(study, "small", seeds, STAGES, pool=pool):
                yield name, stage


def frozen() -> list[Frozen]:
    """The table, with the stages and runs that are new."""
    known = {each.folder: each for each in frozen_stages(STAGES)}
    for _, stage in all_stages():
        if not stage.measured:
            continue
        name = stage.folder.name
        row = known.get(name) or _new(stage)
        known[name] = msgspec.structs.replace(row, runs={stage.probed: stage.run.name, **row.runs})
    return sorted(known.values(), key=lambda each: each.folder)


def _new(stage: Stage) -> Frozen:
    model = stage.folder / "model"
    curves, weights = stored(model / "curves.jsonl"), model / WEIGHTS
    return Frozen(
        stage.arm.name,
        stage.scale,
        stage.seed,
        stage.recipe,
        stage.folder.name,
        commit_of(str(weights)) or commit_of(str(stage.folder)),
        hashlib.sha256(read_bytes(curves)).hexdigest() if curves.exists() else "",
    )


def artifacts() -> list[Artifact]:
    """The list, with the weights that are new."""
    known = {each.path: each for each in read_artifacts(ROOT)} if LISTED.exists() else {}
    commands = {
        str(stage.folder): f"toolshift reproduce {study} --arm {stage.arm.name} "
        f"--seeds {stage.seed + 1} --work again --out again/page"
        for study, stage in all_stages()
    }
    for file in sorted(Path("studies").rglob("*.safetensors")):
        path = str(file)
        if path not in known and (command := commands.get(str(file.parent.parent))):
            content = file.read_bytes()
            digest = hashlib.sha256(content).hexdigest()
            known[path] = Artifact(path, commit_of(path), digest, len(content), command)
    return sorted(known.values(), key=lambda each: each.path)


def as_toml(name: str, rows: list[Any], what: str) -> bytes:
    """Rows as an array of tables."""
    text = f"# {what} Written by studies/freeze.py.\n"
    for row in rows:
        text += f"\n[[{name}]]\n"
        for key, value in msgspec.to_builtins(row).items():
            text += f"{key} = {_value(value)}\n"
    return text.encode()


def _value(value: Any) -> str:
    if not isinstance(value, dict):
        return json.dumps(value)
    pairs = ", ".join(f"{json.dumps(k)} = {json.dumps(v)}" for k, v in value.items())
    return f"{{ {pairs} }}"


if __name__ == "__main__":
    os.chdir(ROOT)
    about = "Weights of the studies, in the tree or in the history; see `toolshift artifacts`."
    LISTED.write_bytes(as_toml("artifact", artifacts(), about))
    about = "Finished stages, by what their studies declare; see toolshift/reproduce/frozen.py."
    table_of(STAGES).write_bytes(as_toml("stage", frozen(), about))

"""Writes `artifacts.toml` and `stages.toml`: where the weights and the stages of the studies are.

    python studies/freeze.py
    python studies/freeze.py WORK    # takes in the finished stages of a folder first

Adds what is new, and leaves alone what is listed: weights that are no longer in the tree, stages
whose keys would be others by the code of today. The commit of what is new is filled in by the next
call, when it has one. What is taken in is without weights, with every tenth step of the curves (of
RL with all); the table has the hash of the whole curves. All stages are in one archive,
`stages.tar.xz`, which is written anew where stages are taken in.
"""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
from toolshift_lab.artifacts import LISTED, Artifact, read_artifacts
from toolshift_lab.experiments import SCALES, STUDIES
from toolshift_lab.frozen import Frozen, archive_of, frozen_stages, table_of, unpack
from toolshift_lab.planned import read_plan, take_up
from toolshift_lab.stage import Stage, seeds_there, stages

from toolshift.core.files import PACKED, read_bytes, stored, write
from toolshift.lm.bases import find_base_model, is_there

ROOT = Path(__file__).parent.parent
STAGES = Path("studies") / "stages"
PLANS = (Path("studies") / "decisive", Path("studies") / "reads")
"""The folders of plans, each with those that extend it."""
WEIGHTS, WEIGHTS_SUM = "adapter_model.safetensors", "weights.sha256"
RECORDS = (
    "asked.json", "training.json", "adapter_config.json", "manifest.json", "chosen.json",
    WEIGHTS_SUM,
)  # fmt: skip
LISTS = (
    "curves.jsonl",
    "episodes.jsonl",
    "plan.jsonl",
    "timings.jsonl",
    "screen.jsonl",
    "own.json",
)


def commit_of(path: str) -> str:
    """The last commit that changed a path without removing it."""
    asked = ["git", "log", "-1", "--format=%H", "--diff-filter=AM", "--", path]
    return subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()


def all_stages() -> Iterator[tuple[str, Stage]]:
    """Every stage of preset small that a study can ask for, and those of the plans."""
    for name, study in list(STUDIES.items()):
        seeds = max(1, seeds_there(study, "small", STAGES))
        for pool in ("dev", "test"):
            for stage in stages(study, "small", seeds, STAGES, pool=pool):
                yield name, stage
    for plan in map(read_plan, plan_files()):
        if plan.model and not is_there(find_base_model(plan.model)):
            continue  # its stages have names that its weights decide; what is listed stays
        study, scale = take_up(plan)
        named = SCALES[scale].trained or scale
        # A key costs a second: only of arms that have a folder.
        there = tuple(a.name for a in study.arms if any(STAGES.glob(f"{a.name}-{named}-seed*")))
        if not there:
            continue
        for stage in stages(study, scale, study.seeds, STAGES, there, plan.pool):
            if (stage.arm.name, stage.seed) in plan.order:
                yield plan.trained or plan.name, as_made(stage)


def plan_files() -> list[Path]:
    """The plans, in each folder the first one before those that extend it."""
    found = [file for folder in PLANS for file in folder.glob("*.toml")]
    fixed = [file for file in found if file.with_suffix(".sha256").is_file()]
    return sorted(fixed, key=lambda file: (file.parent, file.stem != "plan"))


def as_made(stage: Stage) -> Stage:
    """A stage under the name that it was given where it was made.

    On another kind of machine the key is another: it says what is computed in.
    """
    named = trained_as(stage)
    made = sorted(STAGES.glob(f"{stage.arm.name}-{named}-seed{stage.seed}-????????"))
    if stage.folder.exists() or not made:
        return stage
    return replace(stage, folder=made[0], run=made[0] / stage.run.name)


def trained_as(stage: Stage) -> str:
    """The scale under whose name a stage was trained."""
    return SCALES[stage.scale].trained or stage.scale


def take_in(work: Path) -> set[str]:
    """Copies what is new of the finished stages of a folder, without weights; returns their names.

    Their reports are not copied, so it is by these names that they are known to be measured.
    """
    taken = set()
    for run in sorted(report.parent for report in work.glob("*/run-*/report.txt")):
        taken.add(run.parent.name)
        weights, known = run.parent / "model" / WEIGHTS, run.parent / "model" / WEIGHTS_SUM
        if weights.exists() and not known.exists():
            known.write_text(f"{hashlib.sha256(weights.read_bytes()).hexdigest()}  {WEIGHTS}\n")
        for file in sorted(f for kind in ("*.json*", WEIGHTS_SUM) for f in run.parent.rglob(kind)):
            target = STAGES / file.relative_to(work)
            if stored(target).exists() or "checkpoint-" in file.parent.name:
                continue  # it was taken in, and its curves thinned; or it is none of a model
            if file.name in (*RECORDS, *LISTS):
                target.parent.mkdir(parents=True, exist_ok=True)
            if file.name == WEIGHTS_SUM:
                shutil.copyfile(file, target)
            elif file.name in RECORDS:
                write_compact(target, json.loads(file.read_bytes()))
            elif file.name in LISTS and run.parent in (file.parent, file.parent.parent):
                shutil.copyfile(file, target)
                thin_timings(target)
    return taken


def write_compact(path: Path, told: Any) -> None:
    """Writes JSON without the white space that only a reader's eyes need: a tenth of a stage."""
    path.write_text(json.dumps(told, separators=(",", ":"), ensure_ascii=False) + "\n", "utf-8")


def thin_timings(file: Path) -> None:
    """Leaves hundredths of a second of the timings of a run, if the file is one of those."""
    if file.name == "timings.jsonl":
        told = [json.loads(line) for line in file.read_bytes().splitlines()]
        lines = [json.dumps({**each, "seconds": round(each["seconds"], 2)}) for each in told]
        file.write_bytes("".join(f"{line}\n" for line in lines).encode())


def thin(folder: Path) -> None:
    """Leaves the first, the last and every tenth step of the curves of a stage, but for RL's.

    For the page compares the mean rewards of whole stretches of those.
    """
    for file in folder.rglob("curves.jsonl"):
        lines = file.read_bytes().splitlines(keepends=True)
        told = [json.loads(line) for line in lines]
        if any("reward" in each for each in told):
            continue
        steps = [each.get("step", 0) for each in told]
        kept = [
            line
            for line, step in zip(lines, steps, strict=True)
            if step % 10 == 0 or step in (1, max(steps))
        ]
        file.write_bytes(b"".join(kept))


def write_archive(work: Path, rows: list[Frozen]) -> None:
    """Packs the stages of the table that are in the tree, what is alike side by side.

    Without times and owners, so that the same stages give the same bytes; compressed files are
    packed as what they hold. Nothing is further away than the dictionary reaches.
    """
    kept = [work / row.folder for row in rows if not row.last_in]
    files = [f for folder in kept for f in folder.rglob("*") if name_of(f) in (*RECORDS, *LISTS)]
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for file in sorted(files, key=lambda each: (name_of(each), each)):
            content = read_bytes(file)
            entry = tarfile.TarInfo(str(file.with_name(name_of(file)).relative_to(work)))
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    best = {"preset": 9 | lzma.PRESET_EXTREME, "dict_size": 1 << 27, "lc": 4, "pb": 0}
    filters = [{"id": lzma.FILTER_LZMA2, **best}]
    write(archive_of(work), lzma.compress(held.getvalue(), filters=filters))


def name_of(file: Path) -> str:
    """The name of a file without the ending of a compressed one."""
    return file.stem if file.suffix in PACKED else file.name


def frozen(taken: set[str]) -> list[Frozen]:
    """The table, with the stages and runs that are new; `taken` were copied just now."""
    known = {each.folder: each for each in frozen_stages(STAGES)}
    for _, stage in all_stages():
        name = stage.folder.name
        if not stage.measured and not (name in taken and stage.run.exists()):
            continue  # another plan asks for the same fit, measured otherwise
        row = known.get(name) or _new(stage)
        if not row.commit:
            row = msgspec.structs.replace(row, commit=commit_of(str(archive_of(STAGES))))
        runs = {stage.probed: stage.run.name, **row.runs}
        known[name] = msgspec.structs.replace(row, runs=runs, episodes_sha256=sums(stage, row))
    return sorted(known.values(), key=lambda each: each.folder)


def sums(stage: Stage, row: Frozen) -> dict[str, str]:
    """The hashes of the episodes of a stage's runs; those that are listed stay."""
    runs = sorted(run.parent for run in stage.folder.glob("run-*/episodes.jsonl*"))
    found = {
        run.name: hashlib.sha256(read_bytes(stored(run / "episodes.jsonl"))).hexdigest()
        for run in runs
        if run.name not in row.episodes_sha256
    }
    return {**row.episodes_sha256, **found}


def _new(stage: Stage) -> Frozen:
    model = stage.folder / "model"
    curves, weights = stored(model / "curves.jsonl"), model / WEIGHTS
    return Frozen(
        stage.arm.name,
        trained_as(stage),
        stage.seed,
        stage.recipe,
        stage.folder.name,
        commit_of(str(weights)) or commit_of(str(archive_of(STAGES))),
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
    unpack(STAGES)
    about = "Weights of the studies, in the tree or in the history; see `toolshift artifacts`."
    LISTED.write_bytes(as_toml("artifact", artifacts(), about))
    about = "Finished stages, by what their studies declare; see lab/src/toolshift_lab/frozen.py."
    before = {each.folder for each in frozen_stages(STAGES)}
    taken = {name for given in sys.argv[1:] for name in take_in(Path(given))}
    rows = frozen(taken)
    table_of(STAGES).write_bytes(as_toml("stage", rows, about))
    for row in rows:
        if row.folder not in before:
            thin(STAGES / row.folder)
    if sys.argv[1:]:
        write_archive(STAGES, rows)

"""`toolshift reproduce`: trains and measures the arms of a study, stage by stage, and keeps each.

A stage is one arm and one seed: its training run, and its measurement. Both are folders named by
what decides them, so a stage that is there is not run again, whatever study asks for it, and a
stage that was broken off goes on. The results of a study are read from the stages that are there.
"""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from toolshift.errors import UsageError
from toolshift.files import write
from toolshift.plan import make_plan
from toolshift.report.report import AgentReport
from toolshift.run import report_of, run_plan, save_report
from toolshift.run_folder import RunFolder
from toolshift.shift import unknown
from toolshift.suite import select
from toolshift.tool import JSON
from toolshift.train import grpo_settings, presets
from toolshift.train.data import make_rows
from toolshift.train.experiments import SCALES, Arm, Scale, Study
from toolshift.train.presets import Settings
from toolshift.train.scenes import check

Say = Callable[[str], None]
WORLD_SEED = 1000
"""The seed of the worlds that arms are measured in; training seeds are counted from 0."""


@dataclass(frozen=True)
class Stage:
    """One arm under one seed, at one scale.

    Attributes:
        folder: where its adapter, curves and run are.
        key: a hash of what decides its training: the mix, the settings, what it starts from.
        run: where it is measured, named by a hash of what it is measured under.
    """

    arm: Arm
    seed: int
    scale: str
    folder: Path
    key: str
    run: Path

    @property
    def trained(self) -> bool:
        """Whether its training run is complete."""
        return self.arm.method == "none" or (self.folder / "trained.json").exists()

    @property
    def measured(self) -> bool:
        """Whether its measurement is complete."""
        return (self.run / "report.json").exists()

    def report(self) -> AgentReport:
        """What was measured."""
        return report_of(RunFolder.read(self.run)).agent()


def stages(study: Study, scale: str, seeds: int, work: Path, only: tuple[str, ...]) -> list[Stage]:
    """The stages of a study, in the order in which they can be run: seed by seed.

    Raises:
        UsageError: for an unknown arm or scale.
    """
    if scale not in SCALES:
        raise UsageError(unknown("preset", scale, SCALES))
    known = {arm.name: arm for arm in study.arms}
    for name in only:
        if name not in known:
            raise UsageError(unknown("arm", name, known))
    chosen = [arm for arm in study.arms if not only or arm.name in only]
    made: dict[tuple[str, int], Stage] = {}
    for seed in range(seeds):
        for arm in chosen:
            for each in _lineage(arm, known):
                made[each.name, seed] = _stage(each, study, scale, seed, work, known)
    return list(made.values())


def run(stage: Stage, study: Study, say: Say, **changes: Any) -> None:
    """Trains and measures one stage, as far as that is not done.

    Raises:
        KeyboardInterrupt: after Ctrl-C, when what is done has been kept.
    """
    where = f"{stage.arm.name}, seed {stage.seed}"
    if not stage.trained:
        say(f"{where}: training in {stage.folder}")
        began = time.monotonic()
        _train(stage, study, changes)
        record = {"key": stage.key, "wall_seconds": round(time.monotonic() - began, 1)}
        write(stage.folder / "trained.json", JSON.encode(record) + b"\n")
        for checkpoint in (stage.folder / "model").glob("checkpoint-*"):
            shutil.rmtree(checkpoint)  # the run is complete, and they are ten times its size
    if not stage.measured:
        say(f"{where}: measuring")
        _measure(stage, study)


# -- inside -----------------------------------------------------------------------------------


def _lineage(arm: Arm, known: dict[str, Arm]) -> Iterator[Arm]:
    """An arm, after those that it starts from."""
    if arm.init:
        yield from _lineage(known[arm.init], known)
    yield arm


def _stage(
    arm: Arm, study: Study, scale: str, seed: int, work: Path, known: dict[str, Arm]
) -> Stage:
    parent = _stage(known[arm.init], study, scale, seed, work, known).key if arm.init else ""
    size = SCALES[scale]
    amount = size.updates if arm.method == "grpo" else size.count
    mix = arm.mixed(size, seed)
    key = _hash(arm.method, mix, arm.settings, amount * arm.factor, parent, scale, seed)
    folder = work / f"{arm.name}-{scale}-seed{seed}-{key}"
    asked = _hash(arm.probes or study.probes, size.kinds, size.tasks, size.pool)
    return Stage(arm, seed, scale, folder, key, folder / f"run-{asked}")


def _hash(*content: Any) -> str:
    return hashlib.sha256(JSON.encode(content)).hexdigest()[:8]


def _train(stage: Stage, study: Study, changes: dict[str, Any]) -> None:
    arm, scale = stage.arm, SCALES[stage.scale]
    mix = arm.mixed(scale, stage.seed)
    check(mix)
    known = {each.name: each for each in study.arms}
    start: dict[str, Any] = {"seed": stage.seed, **arm.settings, **changes}
    if arm.init:
        parent = _stage(known[arm.init], study, stage.scale, stage.seed, stage.folder.parent, known)
        start |= _from(parent.folder / "model", presets.PRESETS[stage.scale])
    out = stage.folder / "model"
    resume = any(out.glob("checkpoint-*"))
    if arm.method == "sft":
        from toolshift.train import sft

        count = max(1, round(scale.count * arm.factor))
        rows = make_rows(mix, count)
        settings = presets.preset(stage.scale, **start)
        told = {"mix": msgspec.to_builtins(mix), "count": count}
        sft.train(rows, settings, out, resume=resume, data=told)
    elif arm.method == "grpo":
        from toolshift.train import grpo

        steps = max(1, round(scale.updates * arm.factor))
        grpo.train(mix, grpo_settings.preset(stage.scale, steps=steps, **start), out, resume=resume)


def _from(model: Path, settings: Settings) -> dict[str, str]:
    """The setting that starts a run from what another has made."""
    return {"model": str(model)} if settings.full else {"adapter": str(model)}


def _measure(stage: Stage, study: Study) -> None:
    """Runs the arm in the study's clean and shifted scenes, resumably."""
    from toolshift.agents.catalog import contestants
    from toolshift.agents.local import LocalAgent
    from toolshift.commands.output import progress

    scale = SCALES[stage.scale]
    settings = presets.PRESETS[stage.scale]
    model = stage.folder / "model"
    layout = stage.arm.settings.get("layout", settings.layout)
    if stage.arm.method == "none":
        agent = LocalAgent(settings.model, layout=layout, name=stage.arm.name)
    elif settings.full:
        agent = LocalAgent(model, layout=layout, name=stage.arm.name)
    else:
        agent = LocalAgent(settings.model, adapter=model, layout=layout, name=stage.arm.name)
    plan = make_plan(_selection(stage, study, scale))
    with progress(f"{stage.arm.name}, seed {stage.seed}: episodes") as watch:
        report = run_plan(plan, contestants([agent], None), stage.run, 1, watch)
    save_report(RunFolder.read(stage.run), report)


def _selection(stage: Stage, study: Study, scale: Scale) -> Any:
    return select(
        "quick",
        worlds=("poi",),
        kinds=scale.kinds,
        shifts=stage.arm.probes or study.probes,
        tasks=scale.tasks,
        seed=WORLD_SEED,
        pool=scale.pool,
    )

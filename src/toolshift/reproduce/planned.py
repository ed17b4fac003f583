"""A study whose plan is a file, written and committed before anything is trained.

The plan says what is compared, how much of everything, and in which order it is run. Its hash
stands in the results. The stages are those of any study (`toolshift.reproduce.reproduce`).
"""

from __future__ import annotations

import hashlib
from math import gcd
from pathlib import Path
from typing import Any, Literal

import msgspec

from toolshift.core.documents import read_toml
from toolshift.core.errors import UsageError
from toolshift.core.files import read_bytes
from toolshift.core.names import unknown
from toolshift.lm.bases import find_base_model
from toolshift.lm.checkpoint import load_tokenizer
from toolshift.lm.layout_rule import derived_layout
from toolshift.lm.prompt import Layout
from toolshift.reproduce.arm import SHORT, Arm, Scale
from toolshift.reproduce.experiments import SCALES, STUDIES, Study, find_scale
from toolshift.runs.suite import read_stack
from toolshift.train.model import find_base
from toolshift.train.presets import PRESETS
from toolshift.train.scenes import Mix, check
from toolshift.train.settings import base_of, with_model


class Endpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What arms are compared by.

    Attributes:
        measure: "drop", clean minus shifted on the same tasks; "passed" or "refused", the share of
            the scenes under these shifts.
        shifts: stacks with severities; the mean over them, task by task.
    """

    name: str
    measure: Literal["drop", "passed", "refused"]
    shifts: tuple[str, ...]


class PlannedArm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One way to train.

    Attributes:
        seeds: training seeds, counted from 0.
        doses: trajectories by entry of the mix; a shift reaches those it can be applied to.
        slips: the share of trajectories in which the expert errs first.
        rounds: of DAgger, which take their share of the trajectories.
    """

    name: str
    summary: str
    seeds: int
    method: Literal["none", "sft", "dagger"] = "sft"
    rounds: int = 0
    doses: dict[str, int] = {}
    slips: float = 0.0


class Pair(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Two arms; the second is compared with the first."""

    first: str
    second: str


class Block(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Stages that are run before the next block is begun: seed by seed, arm by arm."""

    arms: tuple[str, ...]
    seeds: tuple[int, ...]


class PlanFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A plan as it is written; see `studies/decisive/plan.toml`.

    Attributes:
        layout: of all arms; "derived" for that of `toolshift.lm.layout_rule`.
        held_out: shifts that no arm is trained on.
        sha256: of the file.
    """

    name: str
    question: str
    preset: str
    pool: Literal["dev", "test"]
    kinds: tuple[str, ...]
    tasks: int
    trajectories: int
    endpoints: tuple[Endpoint, ...]
    arms: tuple[PlannedArm, ...]
    contrasts: tuple[Pair, ...]
    blocks: tuple[Block, ...]
    layout: Layout | Literal["derived"] = "derived"
    max_repeats: int = 0
    held_out: tuple[str, ...] = ()
    secondary: tuple[Endpoint, ...] = ()
    cost: str = ""
    power: str = ""
    hoped: str = ""
    left_out: str = ""
    sha256: str = ""

    @property
    def probes(self) -> tuple[str, ...]:
        """All that arms are measured under, each once."""
        every = (*self.endpoints, *self.secondary)
        return tuple(dict.fromkeys(shift for each in every for shift in each.shifts))

    @property
    def order(self) -> list[tuple[str, int]]:
        """Arms and seeds in the order in which they are run."""
        return [(arm, seed) for block in self.blocks for seed in block.seeds for arm in block.arms]


def read_plan(file: Path) -> PlanFile:
    """Reads a plan and checks it before anything is run.

    Args:
        file: in TOML.

    Returns:
        The plan, with the hash of the file.

    Raises:
        UsageError: where it is not there, cannot be read, or contradicts itself.
    """
    if not file.is_file():
        raise UsageError(
            f"no plan in {file}: run this in a clone of ToolShift's repository, or name it (--plan)"
        )
    content = read_bytes(file)
    try:
        plan = msgspec.convert(read_toml(content, str(file)), PlanFile)
    except msgspec.ValidationError as fault:
        raise UsageError(f"{file}: {fault}") from None
    _check(plan, file)
    return msgspec.structs.replace(plan, sha256=hashlib.sha256(content).hexdigest())


def check_fixed(plan: PlanFile, file: Path) -> None:
    """Checks that a plan is the one whose hash was committed beside it before anything was run.

    Args:
        plan: as it was read.
        file: that it is in.

    Raises:
        UsageError: where there is no hash, or that of another plan.
    """
    beside = file.with_suffix(".sha256")
    fixed = beside.read_text("utf-8").split()[:1] if beside.is_file() else []
    if fixed != [plan.sha256]:
        raise UsageError(
            f"{file} has the hash {plan.sha256[:16]}, and {beside.name} says "
            f"{fixed[0][:16] if fixed else 'nothing'}: what is planned is fixed before it is run. "
            "Take the plan back as it was, or write another one elsewhere with its own hash"
        )


def take_up(plan: PlanFile, model: str = "") -> tuple[Study, str]:
    """Makes a plan known as a study and a scale of its name, for `stages` and `run`.

    Args:
        plan: as `read_plan` returns it.
        model: a base model instead of the preset's; "" for that.

    Returns:
        The study, and the name of the scale.

    Raises:
        UsageError: where the base model or the packages for training are missing.
    """
    if model:
        find_base_model(model)
    study, name = study_of(plan), f"{plan.name}-{model}" if model else plan.name
    STUDIES[plan.name], SCALES[name] = study, scale_of(plan, model)
    return study, name


def scale_with(preset: str, model: str) -> str:
    """The scale of a preset with another base model, and the layout that its tokenizer asks for.

    Args:
        preset: the name of the scale.
        model: the name of a base model; "" for the preset's.

    Returns:
        The name of the scale, which is known from now on.

    Raises:
        UsageError: where there is no such scale or model.
    """
    scale = find_scale(preset)
    if not model:
        return preset
    find_base_model(model)
    name, layout = f"{preset}-{model}", layout_for(preset, model)
    SCALES[name] = msgspec.structs.replace(scale, preset=preset, model=model, layout=layout)
    return name


def measured_in(scale: str, world: str) -> str:
    """A scale whose arms are trained as before, and measured in another world: the transfer.

    Args:
        scale: the name of one.
        world: that arms are measured in, in tasks of all its kinds.

    Returns:
        The name of the scale, which is known from now on.
    """
    if world == SCALES[scale].world:
        return scale
    name = f"{scale}-in-{world}"
    preset = SCALES[scale].preset or scale
    SCALES[name] = msgspec.structs.replace(SCALES[scale], preset=preset, world=world, trained=scale)
    return name


def study_of(plan: PlanFile) -> Study:
    """The plan as a study."""
    return Study(
        plan.name,
        plan.question,
        tuple(arm_of(each, plan) for each in plan.arms),
        tuple((pair.first, pair.second) for pair in plan.contrasts),
        plan.probes,
        max(arm.seeds for arm in plan.arms),
    )


def layout_for(preset: str, model: str) -> Layout:
    """The layout that the tokenizer of a base model asks for.

    Args:
        preset: whose model it is.
        model: another one instead; "" for that.

    Returns:
        One of `toolshift.lm.layout_rule.CANDIDATES`.

    Raises:
        UsageError: where the model is missing.
    """
    settings = with_model(PRESETS[preset], model)
    directory = find_base(settings).directory
    return derived_layout(load_tokenizer(directory, base_of(settings.model)))


def scale_of(plan: PlanFile, model: str = "") -> Scale:
    """How large the plan is, with its layout, which may ask for the tokenizer."""
    layout = plan.layout
    if layout == "derived":
        layout = layout_for(plan.preset, model)
    return Scale(
        plan.kinds, plan.trajectories, 0, plan.tasks, PRESETS[plan.preset].evidence,
        layout=layout, preset=plan.preset, max_repeats=plan.max_repeats, today=True, model=model,
    )  # fmt: skip


def arm_of(arm: PlannedArm, plan: PlanFile) -> Arm:
    """A planned arm as one of a study: doses become entries of a mix, as often as they are large.

    Args:
        arm: one of the plan's.
        plan: that it is of.

    Returns:
        The arm, whose entries are drawn `dose` times in the plan's trajectories.
    """
    if not arm.doses:
        return Arm(arm.name, arm.summary, arm.method, {"slips": arm.slips} if arm.slips else {})
    unit = gcd(*arm.doses.values())
    entries = tuple(e for e, dose in arm.doses.items() for _ in range(dose // unit))
    mix: dict[str, Any] = {
        "alpha": round(sum(arm.doses.values()) / plan.trajectories, 4),
        "shifts": entries,
        "severities": SHORT,
    }
    if arm.slips:
        mix["slips"] = arm.slips
    return Arm(arm.name, arm.summary, arm.method, mix, rounds=arm.rounds)


def _check(plan: PlanFile, file: Path) -> None:
    names = {arm.name: arm for arm in plan.arms}
    if plan.preset not in PRESETS:
        raise UsageError(f"{file}: {unknown('preset', plan.preset, PRESETS)}")
    for name in (n for p in plan.contrasts for n in (p.first, p.second)):
        if name not in names:
            raise UsageError(f"{file}: contrasts: {unknown('arm', name, names)}")
    for name, seed in plan.order:
        if name not in names:
            raise UsageError(f"{file}: blocks: {unknown('arm', name, names)}")
        if seed not in range(names[name].seeds):
            raise UsageError(f"{file}: blocks: {name} has seeds 0 to {names[name].seeds - 1}")
    missing = {(a.name, s) for a in plan.arms for s in range(a.seeds)} - set(plan.order)
    if missing or len(set(plan.order)) < len(plan.order):
        said = ", ".join(f"{name} seed {seed}" for name, seed in sorted(missing)) or "one twice"
        raise UsageError(f"{file}: blocks: each stage stands in one block; not so: {said}")
    for probe in plan.probes:
        read_stack(probe)
    for each in plan.arms:
        _check_arm(arm_of(each, plan), plan, file)


def _check_arm(arm: Arm, plan: PlanFile, file: Path) -> None:
    """A mix that can be drawn, and that no held-out mechanism is in."""
    if arm.mix.get("alpha", 0) > 1:
        raise UsageError(f"{file}: {arm.name}: doses are more than {plan.trajectories} together")
    check(Mix(kinds=plan.kinds, **arm.mix))
    if arm.meets(plan.held_out):
        raise UsageError(f"{file}: {arm.name} is trained on a shift that is held out")

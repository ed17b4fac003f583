"""A study whose plan is a file, written and committed before anything is trained.

The plan says what is compared, how much of everything, and in which order it is run. Its hash
stands in the results. The stages are those of any study (`toolshift_lab.stage`).

A later plan may extend one: it measures that plan's arms in other scenes, or trains arms of its own
beside them or from them. What the first has trained is used again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from math import gcd, inf
from pathlib import Path
from typing import Any, Literal

import msgspec

from toolshift.agents.local_kind import shipped_adapter
from toolshift.core.documents import read_toml
from toolshift.core.errors import UsageError
from toolshift.core.files import read_bytes
from toolshift.core.names import unknown
from toolshift.core.shift import without_versions
from toolshift.lm.bases import SMOL, find_base_model
from toolshift.lm.checkpoint import load_tokenizer
from toolshift.lm.layout_rule import derived_layout
from toolshift.lm.prompt import Layout
from toolshift.runs.cell import write_stack
from toolshift.runs.plan import Plan
from toolshift.shifts.registry import SHIFTS
from toolshift.shifts.stacks import read_stack
from toolshift.train import grpo_settings, presets
from toolshift.train.model import find_base
from toolshift.train.presets import PRESETS
from toolshift.train.scenes import Mix, check
from toolshift.train.settings import base_of, with_model
from toolshift.worlds.registry import find_world
from toolshift_lab.arm import SHORT, TRAINED_IN, Arm, Method, Scale
from toolshift_lab.experiments import SCALES, STUDIES, Study, find_scale


class Endpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What arms are compared by.

    Attributes:
        measure: "drop", clean minus shifted on the same tasks; "passed" or "refused", the share of
            the scenes under these shifts.
        shifts: stacks with severities; the mean over them, task by task. () for clean scenes.
        against: of a drop, the stack that stands in place of the clean scenes; "" for these.
        dealt: each task meets one of the stacks, dealt as often as their numbers say (`a:1*3`), as
            in the suite `realistic`; else each task meets all of them.
    """

    name: str
    measure: Literal["drop", "passed", "refused"]
    shifts: tuple[str, ...]
    against: str = ""
    dealt: bool = False


class PlannedArm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One way to train.

    Attributes:
        seeds: training seeds, counted from 0.
        worlds: that it is trained in, each in all its kinds; () for the plan's home in the plan's
            kinds.
        doses: trajectories by entry of the mix; a shift reaches those it can be applied to.
        slips: the share of trajectories in which the expert errs first.
        rounds: of DAgger, which take their share of the trajectories.
        aggregate: train anew in each of them, on the trajectories of all rounds so far.
        init: the arm whose adapter it starts from, at the same seed; "" for the base model.
        alpha: the share of the trajectories that have shifts (GRPO: of the scenes), where no doses
            say it.
        shifts: entries of the mix that this share is drawn from.
        settings: what of the preset's settings differs.
        factor: how many times the plan's trajectories, or GRPO steps.
        passes: over the trajectories.
        sizes: of "start", how many clean trajectories it may be trained on, tried in this order.
        window: of "start", the least and the greatest share of scenes that it is to pass.
        screen: of "grpo", how many scenes are looked at first; those that pass at times are kept.
        samples: of "grpo", episodes of each scene that is screened.
        until: of "matched", the arm that it is to be as good as.
        every: of "matched", steps between the checkpoints that are looked at.
        tries: of "start" and "matched", scenes by which is chosen.
        gate: of "grpo", what has to be so at a seed for anything to be said of the arm: by how much
            the mean `reward` of the last 20 steps is above that of the first 20, and the least
            share of `clean` scenes passed.
    """

    name: str
    summary: str
    seeds: int
    method: Method = "sft"
    rounds: int = 0
    aggregate: bool = False
    worlds: tuple[str, ...] = ()
    doses: dict[str, int] = {}
    slips: float = 0.0
    init: str = ""
    alpha: float = 0.0
    shifts: tuple[str, ...] = ()
    settings: dict[str, Any] = {}
    factor: float = 1.0
    passes: int = 1
    sizes: tuple[int, ...] = ()
    window: tuple[float, float] = (0.0, 1.0)
    screen: int = 0
    samples: int = 4
    until: str = ""
    every: int = 10
    tries: int = 0
    gate: dict[Literal["reward", "clean"], float] = {}

    @property
    def more(self) -> dict[str, Any]:
        """What its method is told beside its settings."""
        by_method = {"start": _OF_START, "matched": _OF_MATCHED, "grpo": _OF_SCREEN}
        named = by_method.get(self.method, ()) if self.method != "grpo" or self.screen else ()
        return {name: getattr(self, name) for name in named}


_OF_START, _OF_MATCHED = ("sizes", "window", "tries"), ("every", "tries")
_OF_SCREEN = ("screen", "samples")


class Pair(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Two arms; the second is compared with the first."""

    first: str
    second: str


class Outcome(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an endpoint of an arm will be taken to say, written before anything is run.

    Attributes:
        endpoint: its name.
        arm: whose; where `less` is named, what that one has less is taken away.
        less: the first arm of a contrast, of which `arm` is the second; "" for the arm alone.
        below: points that the whole interval has to stay below, for `then`.
        above: points that the estimate has to be above, with an interval above 0, for `instead`.
        otherwise: what is said where neither is so.
    """

    endpoint: str
    arm: str
    below: float
    above: float
    then: str
    instead: str
    otherwise: str
    less: str = ""


class Block(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Stages that are run before the next block is begun: seed by seed, arm by arm."""

    arms: tuple[str, ...]
    seeds: tuple[int, ...]


_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
"""What a plan and an arm may be called: folders are named by them."""
_OURS = frozenset((*STUDIES, *PRESETS))
"""What is known by its name already, before a plan is."""
_UNREAD = {
    "none": ("worlds", "doses", "alpha", "shifts", "slips", "factor", "passes"),
    "grpo": ("slips", "passes", *_OF_START, *_OF_MATCHED, "until"),
    "sft": (*_OF_START, *_OF_MATCHED, *_OF_SCREEN, "until", "gate"),
    "dagger": (*_OF_START, *_OF_MATCHED, *_OF_SCREEN, "until", "gate"),
    "start": (
        "doses", "alpha", "shifts", "slips", "factor", "passes", "every", *_OF_SCREEN, "until",
        "gate",
    ),
    "matched": (
        "doses", "alpha", "shifts", "slips", "passes", "sizes", "window", *_OF_SCREEN, "gate",
    ),
}  # fmt: skip
"""What of an arm its method does not read."""
_PLANS_OWN = {
    "seed": "its seeds are counted from 0",
    "preset": "the plan names the preset",
    "evidence": "the preset says it",
    "model": "the plan names the model",
    "adapter": "init names what it starts from",
}
"""Settings that no arm has, for the plan or the preset decides them."""
_OWN = (
    "name", "question", "contrasts", "blocks", "outcomes", "cost", "power", "hoped", "left_out",
    "sha256",
)  # fmt: skip
"""What a plan says for itself alone, whatever it extends."""


class PlanFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A plan as it is written; see `studies/decisive/plan.toml`.

    Attributes:
        layout: of all arms; "derived" for that of `toolshift.lm.layout_rule`.
        updates: GRPO steps of an arm.
        held_out: shifts that no arm is trained on.
        model: a base model instead of the preset's; "" for that.
        adapter: one that ships, as `smol:paft`, which arms without `init` start from instead of the
            base model; an arm of method "none" is that adapter as it is.
        home: the world that arms are trained in.
        world: that arms are measured in; "" for their home; in another in all its kinds.
        outcomes: what each result will be taken to say.
        extends: another plan, beside this one: what is not said here is as there, and its arms are
            known here.
        trained: the name of that plan, under which arms are trained.
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
    updates: int = 0
    held_out: tuple[str, ...] = ()
    model: str = ""
    adapter: str = ""
    home: str = TRAINED_IN
    world: str = ""
    extends: str = ""
    outcomes: tuple[Outcome, ...] = ()
    secondary: tuple[Endpoint, ...] = ()
    cost: str = ""
    power: str = ""
    hoped: str = ""
    left_out: str = ""
    trained: str = ""
    sha256: str = ""

    @property
    def probes(self) -> tuple[str, ...]:
        """All that every task meets, each once."""
        every = [each for each in (*self.endpoints, *self.secondary) if not each.dealt]
        named = (s for each in every for s in (*each.shifts, *filter(None, (each.against,))))
        return tuple(dict.fromkeys(named))

    @property
    def dealt(self) -> tuple[str, ...]:
        """The stacks of which each task meets one."""
        every = (*self.endpoints, *self.secondary)
        return tuple(dict.fromkeys(s for each in every if each.dealt for s in each.shifts))

    @property
    def measured_in(self) -> str:
        """The world that arms are measured in."""
        return self.world or self.home

    @property
    def order(self) -> list[tuple[str, int]]:
        """Arms and seeds in the order in which they are run."""
        return [(arm, seed) for block in self.blocks for seed in block.seeds for arm in block.arms]

    @property
    def used(self) -> tuple[PlannedArm, ...]:
        """The arms that are run, and those that they start from."""
        known = {arm.name: arm for arm in self.arms}
        names = {name for name, _ in self.order}
        while more := {x for n in names for x in (known[n].init, known[n].until)} - names - {""}:
            names |= more
        return tuple(arm for arm in self.arms if arm.name in names)


def read_plan(file: Path) -> PlanFile:
    """Reads a plan and checks it before anything is run."""
    if not file.is_file():
        raise UsageError(
            f"no plan in {file}: run this in a clone of ToolShift's repository, or name it (--plan)"
        )
    content = read_bytes(file)
    try:
        plan = msgspec.convert(_completed(read_toml(content, str(file)), file), PlanFile)
    except msgspec.ValidationError as fault:
        raise UsageError(f"{file}: {fault}") from None
    _check(plan, file)
    return msgspec.structs.replace(plan, sha256=hashlib.sha256(content).hexdigest())


def _completed(said: dict[str, Any], file: Path) -> dict[str, Any]:
    """A plan with what it leaves to the plan that it extends, which has to be as it was fixed."""
    for key in ("trained", "sha256"):
        if key in said:
            raise UsageError(f"{file}: {key} is not written in a plan: leave it out")
    if not isinstance(said.get("extends"), str):
        return said
    first = file.parent / said["extends"]
    if not first.is_file():
        raise UsageError(f"{file}: extends: there is no plan {first}")
    if "extends" in read_toml(read_bytes(first), str(first)):
        raise UsageError(f"{file}: extends {first}, which extends a plan itself: name that one")
    plan = read_plan(first)
    check_fixed(plan, first)
    if said.get("adapter", plan.adapter) != plan.adapter:
        raise UsageError(
            f"{file}: adapter: the arms of {first.name} start from "
            f"{plan.adapter or 'the base model'}: write a plan that extends none"
        )
    left = {key: value for key, value in msgspec.to_builtins(plan).items() if key not in _OWN}
    if "endpoints" in said:
        del left["secondary"]
    own = said.get("arms", [])
    arms = [*left["arms"], *own] if isinstance(own, list) else own
    return {"contrasts": [], **left, **said, "arms": arms, "trained": plan.name}


def check_fixed(plan: PlanFile, file: Path) -> None:
    """Checks that a plan is the one whose hash was committed beside it before anything was run."""
    beside = file.with_suffix(".sha256")
    fixed = beside.read_text("utf-8").split()[:1] if beside.is_file() else []
    if fixed != [plan.sha256]:
        raise UsageError(
            f"{file} has the hash {plan.sha256[:16]}, and {beside.name} says "
            f"{fixed[0][:16] if fixed else 'nothing'}: what is planned is fixed before it is run. "
            "Take the plan back as it was, or write another one elsewhere with its own hash"
        )


def check_applies(plan: PlanFile, scenes: Plan, file: Path) -> None:
    """Refuses an endpoint that none of the scenes counts for, before anything is trained for it."""
    there = {without_versions(cell.stack) for cell in scenes.cells}
    for each in (*plan.endpoints, *plan.secondary):
        if each.shifts and not any(as_cells_name(shift) in there for shift in each.shifts):
            raise UsageError(
                f"{file}: {each.name}: {each.shifts[0]} is applicable to none of the "
                f"{len({cell.lineage for cell in scenes.cells})} tasks, and no other of its shifts "
                "is, so the endpoint would have no figure: name another shift, or other kinds"
            )


def as_cells_name(shift: str) -> str:
    """A stack of an endpoint as the cells of a plan name it, without versions."""
    return without_versions(write_stack(read_stack(shift)))


def take_up(plan: PlanFile, model: str = "") -> tuple[Study, str]:
    """Makes a plan known as a study and a scale of its name, for `stages` and `run`."""
    model = model or plan.model
    if model:
        find_base_model(model)
    study, name = study_of(plan), _with(plan.name, model)
    STUDIES[plan.name], SCALES[name] = study, scale_of(plan, model)
    return study, name


def scale_with(preset: str, model: str) -> str:
    """The scale of a preset with another base model, and the layout that its tokenizer asks for."""
    scale = find_scale(preset)
    if not model:
        return preset
    find_base_model(model)
    name, layout = f"{preset}-{model}", layout_for(preset, model)
    SCALES[name] = msgspec.structs.replace(scale, preset=preset, model=model, layout=layout)
    return name


def measured_in(scale: str, world: str) -> str:
    """A scale whose arms are trained as before, and measured in another world: the transfer."""
    if world == SCALES[scale].world:
        return scale
    name = f"{scale}-in-{world}"
    size = SCALES[scale]
    preset, trained = size.preset or scale, size.trained or scale
    SCALES[name] = msgspec.structs.replace(size, preset=preset, world=world, trained=trained)
    return name


def study_of(plan: PlanFile) -> Study:
    """The plan as a study."""
    return Study(
        plan.name,
        plan.question,
        tuple(arm_of(each, plan) for each in plan.used),
        tuple((pair.first, pair.second) for pair in plan.contrasts),
        plan.probes,
        1 + max(seed for _, seed in plan.order),
        plan.dealt,
    )


def layout_for(preset: str, model: str) -> Layout:
    """The layout that the tokenizer of a base model asks for."""
    settings = with_model(PRESETS[preset], model)
    directory = find_base(settings).directory
    return derived_layout(load_tokenizer(directory, base_of(settings.model)))


def scale_of(plan: PlanFile, model: str = "") -> Scale:
    """How large the plan is, with its layout, which may ask for the tokenizer."""
    layout = plan.layout
    if layout == "derived":
        layout = layout_for(plan.preset, model)
    return Scale(
        plan.kinds, plan.trajectories, plan.updates, plan.tasks, PRESETS[plan.preset].evidence,
        layout=layout, preset=plan.preset, max_repeats=plan.max_repeats, today=True, model=model,
        world=plan.measured_in, trained=_with(plan.trained, model) if plan.trained else "",
        home=plan.home, adapter=plan.adapter,
    )  # fmt: skip


def _with(name: str, model: str) -> str:
    """The name of a plan's scale with a base model instead of the preset's."""
    return f"{name}-{model}" if model else name


def arm_of(arm: PlannedArm, plan: PlanFile) -> Arm:
    """A planned arm as one of a study: a dose becomes as many entries of the mix."""
    mix: dict[str, Any] = {"worlds": arm.worlds, "kinds": ()} if arm.worlds else {}
    mix |= {"slips": arm.slips} if arm.slips else {}
    alpha, entries = arm.alpha, arm.shifts
    if arm.doses:
        unit = gcd(*arm.doses.values())
        entries = tuple(e for e, dose in arm.doses.items() for _ in range(dose // unit))
        alpha = round(sum(arm.doses.values()) / plan.trajectories, 4)
    if entries:
        mix = {"alpha": alpha, "shifts": entries, "severities": SHORT, **mix}
    return Arm(
        arm.name, arm.summary, arm.method, mix, arm.init, _settings_of(arm, plan), arm.factor,
        arm.passes, rounds=arm.rounds, aggregate=arm.aggregate, more=arm.more, until=arm.until,
    )  # fmt: skip


def _settings_of(arm: PlannedArm, plan: PlanFile) -> dict[str, Any]:
    """The settings that an arm changes, as those of its method."""
    of_preset: Any = (grpo_settings if arm.method == "grpo" else presets).PRESETS[plan.preset]
    whole = {**msgspec.to_builtins(of_preset), **arm.settings}
    settings = msgspec.convert(whole, type(of_preset))
    return {name: getattr(settings, name) for name in arm.settings}


def _check(plan: PlanFile, file: Path) -> None:
    if plan.preset not in PRESETS:
        raise UsageError(f"{file}: {unknown('preset', plan.preset, PRESETS)}")
    with _said_of(f"{file}"):
        find_world(plan.home)
        find_world(plan.measured_in)
        if plan.model:
            find_base_model(plan.model)
        if plan.adapter:
            shipped_adapter(plan.adapter)
            _check_base_of_adapter(plan)
    _check_measured(plan, file)
    _check_arms(plan, file)
    _check_blocks(plan, file)
    _check_outcomes(plan, file)
    for each in plan.arms:
        _check_numbers(each, f"{file}: {each.name}")
        _check_arm(each, plan, file)


def _check_base_of_adapter(plan: PlanFile) -> None:
    """What ships is trained on one base model."""
    base = plan.model or PRESETS[plan.preset].model
    if base != SMOL:
        raise UsageError(
            f"adapter: {plan.adapter} is of the model {SMOL}, and the plan's is {base}: leave it "
            "out, or name another preset or model"
        )


def _check_measured(plan: PlanFile, file: Path) -> None:
    """How much there is of everything, what is held out, and endpoints of different names."""
    for name, value in (("tasks", plan.tasks), ("trajectories", plan.trajectories)):
        if value < 1:
            raise UsageError(f"{file}: {name} must be at least 1, not {value}")
    today = [name for name in SHIFTS.names() if "@" not in name]
    for name in plan.held_out:
        if name not in today:
            raise UsageError(
                f"{file}: held_out: name shifts, without version and severity, and no families: "
                + unknown("shift", name, today)
            )
    if not plan.endpoints:
        raise UsageError(f"{file}: endpoints: arms are compared by them: name at least one")
    named: list[str] = []
    for each in (*plan.endpoints, *plan.secondary):
        if each.name in named:
            raise UsageError(f"{file}: endpoints: {each.name} is there twice")
        _check_endpoint(each, file)
        named.append(each.name)
    _check_hands(plan, file)


def _check_hands(plan: PlanFile, file: Path) -> None:
    """A stack that is dealt is measured by no other endpoint.

    A task that meets both would have one episode for two endpoints, and the mean of the hand would
    take in the tasks of the other.
    """
    every = (*plan.endpoints, *plan.secondary)
    apart = {
        _stack_of(shift): each.name for each in every if not each.dealt for shift in each.shifts
    }
    for each in every:
        for shift in each.shifts if each.dealt else ():
            if other := apart.get(_stack_of(shift)):
                raise UsageError(
                    f"{file}: {each.name}: {shift} is dealt, and {other} measures it too: name "
                    "another severity there, or a stack with one shift more"
                )


def _stack_of(shift: str) -> str:
    """A stack as it is written, without the number of times that it is dealt."""
    return write_stack(read_stack(shift.partition("*")[0]))


def _check_endpoint(endpoint: Endpoint, file: Path) -> None:
    """Shifts that there are, each once, for the endpoint is the mean over them."""
    where = f"{file}: {endpoint.name}"
    if endpoint.measure == "drop" and not endpoint.shifts:
        raise UsageError(f"{where}: a drop takes shifts: name at least one")
    if endpoint.against and endpoint.measure != "drop":
        raise UsageError(f"{where}: against: only a drop is taken from something: leave it out")
    if endpoint.against and endpoint.dealt:
        raise UsageError(f"{where}: dealt: a hand is compared with clean scenes: leave against out")
    with _said_of(f"{where}: against"):
        read_stack(endpoint.against)
    with _said_of(f"{where}: shifts"):
        stacks = [write_stack(read_stack(shift)) for shift in endpoint.shifts]
    for shift, stack in zip(endpoint.shifts, stacks, strict=True):
        if not stack:
            raise UsageError(f"{where}: shifts: {shift!r} names none: leave it out")
        if stacks.count(stack) > 1:
            raise UsageError(f"{where}: shifts: {stack} is there twice, and would count twice")


def _check_arms(plan: PlanFile, file: Path) -> None:
    """Each name once; what is compared is there, and what is started from comes before."""
    known: dict[str, PlannedArm] = {}
    for name in (plan.name, *(arm.name for arm in plan.arms)):
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"{file}: {name!r} names folders: write it with letters, digits and hyphens"
            )
    if plan.name in _OURS:
        raise UsageError(f"{file}: name: {plan.name} is a study or a preset: choose another name")
    for arm in plan.arms:
        if arm.name in known:
            raise UsageError(f"{file}: arms: {arm.name} is there twice")
        if arm.init:
            _check_init(arm, known, file)
        if bool(arm.until) != (arm.method == "matched") or (arm.until and arm.until not in known):
            raise UsageError(
                f"{file}: {arm.name}: until names the earlier arm that one of method matched is to "
                "be as good as, and no other arm has it"
            )
        known[arm.name] = arm
    _check_contrasts(plan, known, file)


def _check_contrasts(plan: PlanFile, known: Collection[str], file: Path) -> None:
    """Two arms that there are, and each pair once."""
    for pair in plan.contrasts:
        for name in (pair.first, pair.second):
            if name not in known:
                raise UsageError(f"{file}: contrasts: {unknown('arm', name, known)}")
        if pair.first == pair.second:
            raise UsageError(f"{file}: contrasts: {pair.first} less itself is 0: leave it out")
        if plan.contrasts.count(pair) > 1:
            said = f"{pair.second} less {pair.first}"
            raise UsageError(f"{file}: contrasts: {said} is there twice: leave one out")


def _check_outcomes(plan: PlanFile, file: Path) -> None:
    """Endpoints, arms and contrasts that there are, and thresholds that do not overlap."""
    endpoints = {each.name for each in (*plan.endpoints, *plan.secondary)}
    arms = {arm.name for arm in plan.arms}
    pairs = {(pair.first, pair.second) for pair in plan.contrasts}
    for each in plan.outcomes:
        where = f"{file}: outcomes"
        if each.endpoint not in endpoints:
            raise UsageError(f"{where}: {unknown('endpoint', each.endpoint, endpoints)}")
        if each.arm not in arms:
            raise UsageError(f"{where}: {unknown('arm', each.arm, arms)}")
        if each.less and (each.less, each.arm) not in pairs:
            raise UsageError(f"{where}: {each.arm} less {each.less} is none of the contrasts")
        if each.below > each.above:
            raise UsageError(
                f"{where}: {each.endpoint}: below is {each.below:g}, more than above, "
                f"{each.above:g}: both sentences could hold"
            )


def _check_init(arm: PlannedArm, earlier: dict[str, PlannedArm], file: Path) -> None:
    """What an arm starts from is an earlier one, and leaves weights at each of its seeds."""
    where = f"{file}: {arm.name}: init"
    if arm.init not in earlier:
        raise UsageError(f"{where}: {unknown('earlier arm', arm.init, earlier)}")
    start = earlier[arm.init]
    if start.method == "none":
        raise UsageError(f"{where}: {start.name} trains nothing: leave it out, or name another")
    if arm.seeds > start.seeds:
        raise UsageError(
            f"{where}: {start.name} has {start.seeds} seeds, fewer than the {arm.seeds} of "
            f"{arm.name}, which starts from it at the same seed"
        )


def _check_blocks(plan: PlanFile, file: Path) -> None:
    """Every stage in one block; a plan that extends another measures what it likes of that one."""
    seeds = {arm.name: arm.seeds for arm in plan.arms}
    if not plan.order:
        raise UsageError(f"{file}: blocks: no stage is in one: name arms and seeds")
    for name, seed in plan.order:
        if name not in seeds:
            raise UsageError(f"{file}: blocks: {unknown('arm', name, seeds)}")
        if seed not in range(seeds[name]):
            raise UsageError(f"{file}: blocks: {name} has seeds 0 to {seeds[name] - 1}")
    there = set(plan.order)
    wanted = (
        (name, seed)
        for name, many in seeds.items()
        for seed in range(min(many, len(there) + 1))  # of a slip of the pen, no more than tell it
    )
    missing = set() if plan.extends else {each for each in wanted if each not in there}
    if missing or len(set(plan.order)) < len(plan.order):
        said = ", ".join(f"{name} seed {seed}" for name, seed in sorted(missing)) or "one twice"
        raise UsageError(f"{file}: blocks: each stage stands in one block; not so: {said}")
    for arm in () if plan.extends else plan.arms:
        for seed in range(arm.seeds) if arm.init else ():
            if plan.order.index((arm.name, seed)) < plan.order.index((arm.init, seed)):
                raise UsageError(
                    f"{file}: blocks: {arm.name} starts from {arm.init}, and is run before it at "
                    f"seed {seed}"
                )


def _check_numbers(planned: PlannedArm, where: str) -> None:
    """Numbers that say how much, each in its range."""
    _check_chosen(planned, where)
    for name in ("seeds", "passes"):
        if getattr(planned, name) < 1:
            raise UsageError(f"{where}: {name} must be at least 1, not {getattr(planned, name)}")
    if not 0 < planned.factor < inf:
        raise UsageError(f"{where}: factor must be above 0, not {planned.factor:g}")
    for entry, dose in planned.doses.items():
        if dose < 1:
            raise UsageError(f"{where}: the dose of {entry} must be at least 1, not {dose}")
    untrained = planned.method == "none" and not planned.init
    if untrained and planned.seeds > 1:
        raise UsageError(
            f"{where}: nothing is trained, so each seed would be the same: seeds must be 1, not "
            f"{planned.seeds}"
        )
    shifted = planned.doses or planned.alpha
    if planned.method == "dagger" and not (planned.rounds > 0 and shifted):
        raise UsageError(f"{where}: dagger takes at least 1 round, and doses or alpha and shifts")
    if planned.method != "dagger" and planned.rounds:
        raise UsageError(f"{where}: rounds are of dagger, and {planned.method} has none")
    _check_read(planned, where)


def _check_chosen(planned: PlannedArm, where: str) -> None:
    """What a choice is made between, and by which scenes."""
    if planned.method in ("start", "matched") and planned.tries < 1:
        raise UsageError(f"{where}: tries: name the number of scenes by which is chosen")
    if planned.method == "start" and not (planned.sizes and min(planned.sizes) > 0):
        raise UsageError(f"{where}: sizes: name the numbers of trajectories that are tried")


def _check_read(planned: PlannedArm, where: str) -> None:
    """Nothing is said that would not be read."""
    plain = PlannedArm(planned.name, planned.summary, planned.seeds)
    for name in _UNREAD.get(planned.method, ()):
        if getattr(planned, name) != getattr(plain, name):
            raise UsageError(f"{where}: {name}: {planned.method} reads none: leave it out")
    for name, why in _PLANS_OWN.items():
        if name in planned.settings:
            raise UsageError(f"{where}: settings: {why}: leave {name} out")
    if planned.method == "none" and (more := planned.settings.keys() - {"layout"}):
        raise UsageError(
            f"{where}: settings: nothing is trained, so only layout is read: leave "
            f"{', '.join(sorted(more))} out"
        )
    if planned.method == "grpo" and "steps" in planned.settings:
        raise UsageError(f"{where}: settings: updates and factor say how many: leave steps out")
    if planned.passes > 1 and "epochs" in planned.settings:
        raise UsageError(f"{where}: settings: passes says how many: leave epochs out")


def _check_arm(planned: PlannedArm, plan: PlanFile, file: Path) -> None:
    """A mix that can be drawn, that no held-out mechanism is in, and settings that can work."""
    where = f"{file}: {planned.name}"
    if sum(planned.doses.values()) > plan.trajectories:
        raise UsageError(f"{where}: doses are more than {plan.trajectories} together")
    if planned.doses and (planned.alpha or planned.shifts):
        raise UsageError(f"{where}: doses say what alpha and shifts would: leave those out")
    if bool(planned.alpha) != bool(planned.shifts):
        raise UsageError(f"{where}: alpha and shifts go together: give both, or doses")
    if planned.aggregate and planned.method != "dagger":
        raise UsageError(f"{where}: aggregate is said of rounds, and {planned.method} has none")
    if planned.method == "grpo" and plan.updates < 1:
        raise UsageError(f"{where}: updates, the GRPO steps of an arm, are missing in the plan")
    try:
        arm = arm_of(planned, plan)
    except msgspec.ValidationError as fault:
        raise UsageError(f"{where}: settings: {fault}") from None
    with _said_of(where):
        for world in planned.worlds:
            find_world(world)
        check(Mix(**{"worlds": (plan.home,), "kinds": plan.kinds, **arm.mix}))
    if arm.meets(plan.held_out):
        raise UsageError(f"{where} is trained on a shift that is held out")
    with _said_of(f"{where}: settings"):
        made: Any = grpo_settings if arm.method == "grpo" else presets
        made.preset(plan.preset, **arm.settings)


@contextmanager
def _said_of(where: str) -> Iterator[None]:
    """Puts where something stands before what is wrong with it."""
    try:
        yield
    except UsageError as fault:
        raise UsageError(f"{where}: {fault}") from None

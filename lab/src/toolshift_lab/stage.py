"""`toolshift reproduce`: trains and measures the arms of a study, stage by stage, and keeps each.

A stage is one arm and one seed: its training run, and its measurement. Both are folders named by
what decides them, so a stage that is there is not run again, whatever study asks for it, and a
stage that was broken off goes on. The results of a study are read from the stages that are there.
Stages that were made earlier are found through a table (`toolshift_lab.frozen`).
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from toolshift.agents.catalog import contestants, hash_of_adapter
from toolshift.agents.local import LocalAgent
from toolshift.agents.local_kind import shipped_adapter
from toolshift.api import report_of, run_spec
from toolshift.core.errors import InUse, UsageError
from toolshift.core.files import PACKED, read_bytes, stored
from toolshift.core.names import unknown
from toolshift.core.shift import without_versions
from toolshift.core.terminal import progress
from toolshift.core.tool import JSON
from toolshift.lm.bases import BASES, check_there, is_there, weights_hash
from toolshift.lm.checkpoint import training_record
from toolshift.lm.inference import give_back_memory, use_threads
from toolshift.lm.prompt import Layout
from toolshift.measure.report import AgentReport
from toolshift.runs.cell import build
from toolshift.runs.execute import RunSpec
from toolshift.runs.plan import Plan, make_plan
from toolshift.runs.run_folder import RunFolder
from toolshift.runs.suite import Selection, select
from toolshift.train import grpo_settings, presets
from toolshift.train.callbacks import checkpoints
from toolshift.train.data import make_rows
from toolshift.train.fingerprint import fingerprint
from toolshift.train.model import find_base
from toolshift.train.record import adapter_hash, alone_in
from toolshift.train.running import enough_memory
from toolshift.train.scenes import Mix, check
from toolshift.train.settings import TrainSettings, with_model
from toolshift_lab.arm import TRAINED_IN, Arm, Scale
from toolshift_lab.artifacts import check_weights
from toolshift_lab.experiments import SCALES, Study, find_scale
from toolshift_lab.former_families import as_trained
from toolshift_lab.frozen import find_frozen, table_of, unpack
from toolshift_lab.job import Job

Say = Callable[[str], None]
WORLD_SEED = 1000
"""The seed of the worlds that arms are measured in; training seeds are counted from 0."""
HASHED_FIRST = (
    "preset", "evidence", "model", "adapter", "full", "rank", "lr", "warmup", "epochs", "steps",
    "batch", "accumulate", "clip", "decay", "precision", "layout", "max_tokens", "checkpointing",
)  # fmt: skip
"""The first settings of a run, in the order in which they are hashed; the others follow."""
NO_BASE = "no-model"
"""In place of a stage's key, where the weights that stand in it are not on this machine."""
SAMPLE = 64
"""Trajectories, spread over all of an arm's, that stand in its key for the code that makes them."""


class Waits(InUse):
    """A stage starts from one that another process is training."""


@dataclass(frozen=True)
class Stage:
    """One arm under one seed, at one scale.

    Attributes:
        folder: where its adapter, curves and run are.
        key: a hash of what decides its training: the mix, the settings, what it starts from.
        run: where it is measured, named by hashes of the plan, and of all that its scenes show.
        pool: of the tasks and wordings that it is measured on.
        recipe: a hash of what the study declares of its training, without what the code does.
        probed: the pool, and a hash of what the study declares of its measurement.
        sha256: of the episodes, of a stage that is in the table; else "".
        last_in: the last commit that has its folder, where the tree has it no more.
    """

    arm: Arm
    seed: int
    scale: str
    folder: Path
    key: str
    run: Path
    pool: str
    recipe: str
    probed: str
    sha256: str = ""
    last_in: str = ""

    @property
    def trained(self) -> bool:
        """Whether its training run is complete."""
        return self.arm.method == "none" or bool(self.record())

    def record(self) -> dict[str, Any]:
        """The record that its training run left when it was complete; else nothing."""
        return training_record(self.folder / "model")

    def fits(self) -> list[dict[str, Any]]:
        """The records of all its fits, the last one at the end; a round of DAgger has its own."""
        names = ["round-0", *(f"round-{number}/model" for number in range(1, self.arm.rounds))]
        earlier = names if self.arm.rounds else []
        found = [*(training_record(self.folder / name) for name in earlier), self.record()]
        return [each for each in found if each]

    @property
    def measured(self) -> bool:
        """Whether its measurement is complete.

        The report is the last file that a run leaves. Stages that are kept have none, since it can
        be made again; their episodes are in the table, or compressed, as those of a finished run.
        """
        episodes = stored(self.run / "episodes.jsonl")
        kept = episodes.suffix in PACKED or (self.sha256 and episodes.exists())
        return bool(kept) or (self.run / "report.txt").exists()

    def report(self) -> AgentReport:
        """What was measured."""
        self._check_episodes()
        found = report_of(RunFolder.read(self.run))
        if not found.agents or not found.agent().complete:
            raise UsageError(
                f"{self.run} was finished, and lacks episodes of its plan now: restore the folder, "
                "or delete it to measure the stage again"
            )
        return found.agent()

    def _check_episodes(self) -> None:
        episodes = stored(self.run / "episodes.jsonl")
        if self.sha256 and hashlib.sha256(read_bytes(episodes)).hexdigest() != self.sha256:
            raise UsageError(
                f"{episodes} is not what was measured: its hash is not that of the table of stages "
                f"({table_of(self.folder.parent)}); restore it from the repository"
            )


def stages(
    study: Study, scale: str, seeds: int, work: Path, only: tuple[str, ...] = (), pool: str = "dev"
) -> list[Stage]:
    """The stages of a study, in the order in which they can be run: seed by seed.

    An untrained arm is the same under every seed, so it has a stage of the first one only.
    """
    find_scale(scale)
    unpack(work)
    known = {arm.name: arm for arm in study.arms}
    chosen = [known[name] for name in chosen_arms(study, only)]
    return [
        _stage(arm, study, scale, seed, work, pool)
        for seed in range(seeds)
        for arm in chosen
        if seed == 0 or not arm.untrained
    ]


def seeds_there(study: Study, scale: str, work: Path) -> int:
    """How many seeds, counted from 0, the folders of a study's arms reach up to."""
    unpack(work)
    names = "|".join(re.escape(arm.name) for arm in study.arms)
    scale = SCALES[scale].trained or scale
    named = re.compile(rf"(?:{names})-{scale}-seed(\d+)-[0-9a-f]{{8}}")
    found = map(named.fullmatch, (folder.name for folder in work.glob(f"*-{scale}-seed*")))
    return max((int(each[1]) + 1 for each in found if each), default=0)


def run(stage: Stage, study: Study, say: Say, launch: str = "", **changes: Any) -> None:
    """Trains and measures one stage, as far as that is not done."""
    if stage.key == NO_BASE:
        check_there(BASES[_preset(stage.scale).model])
    use_threads(changes.get("threads", 0))
    where = f"{stage.arm.name}, seed {stage.seed}"
    stage.folder.mkdir(parents=True, exist_ok=True)
    with alone_in(stage.folder), enough_memory(where):
        if not stage.trained:
            say_training = f"{where}: training in {stage.folder}"
            for parent in _parents(stage, study):
                try:
                    _wait_for(parent, where)
                except Waits:
                    begun = training_record(stage.folder / "all")
                    if parent.arm.name == stage.arm.until and not begun:  # needed at the end alone
                        say(f"{say_training}, as far as it goes without {parent.arm.name}")
                        _train(stage, study, changes, launch)
                    raise
            say(say_training)
            _train(stage, study, changes, launch)
            give_back_memory()
        for checkpoint in (stage.folder / "model").glob("checkpoint-*"):
            shutil.rmtree(checkpoint)  # the run is complete, and they are ten times its size
        if not stage.measured:
            say(f"{where}: measuring")
            _measure(stage, study)


def _wait_for(parent: Stage, where: str) -> None:
    """Raises `Waits` where another process is at a stage that is to be started from."""
    if parent.trained or not parent.folder.exists():
        return
    try:
        with alone_in(parent.folder):
            pass
    except InUse:
        raise Waits(f"{where}: waits for {parent.arm.name}, seed {parent.seed}") from None


def check_in_tree(stages: Sequence[Stage]) -> None:
    """Refuses stages that were measured and left the tree: to make them again would hide those."""
    gone = [each for each in stages if each.last_in]
    if gone:
        first = gone[0]
        raise UsageError(
            f"{len(gone)} stages were measured, and their episodes are in the repository's history "
            f"alone, {first.arm.name}, seed {first.seed} among them: git checkout "
            f"{first.last_in[:12]} -- {first.folder.parent} brings them back; --work with another "
            "folder makes them again"
        )


def check_lineage(stages: Sequence[Stage]) -> None:
    """Checks that what starts from another stage started from that one, and not from a refit.

    Two fits of one arm and seed on two machines are two models; a contrast of one with what was
    trained from the other compares neither. So with an adapter that ships, and is replaced.
    """
    known = {(each.arm.name, each.seed): each for each in stages}
    for stage in stages:
        parent = known.get((stage.arm.init, stage.seed))
        sums = parent.folder / "model" / "weights.sha256" if parent else Path()
        began = stage.record().get("adapter_sha256")
        if parent and began and sums.is_file() and sums.read_text().split()[0] != began:
            raise UsageError(
                f"{stage.folder} was trained from other weights than those of {parent.folder} "
                "(sha256): measure the stage that it started from, or take it out"
            )
    began_with = {began: stage.folder for stage in stages if (began := _began_with(stage))}
    if len(began_with) > 1:
        raise UsageError(
            f"{' and '.join(map(str, began_with.values()))} were trained from different weights of "
            f"{SCALES[stages[0].scale].adapter} (sha256), which has been replaced since: train all "
            "of them from the same, or take those out that were not"
        )


def check_start(stages: Sequence[Stage]) -> None:
    """Refuses to train on where the adapter that a study starts from is another one by now.

    What is left would start from other weights than what is there, and compare neither. An arm that
    is the adapter as it is has no training; the manifest of its run names it.
    """
    for stage in stages:
        adapter = SCALES[stage.scale].adapter
        if not adapter or stage.arm.init:
            continue
        as_it_is = stage.arm.method == "none"
        began = _measured_with(stage) if as_it_is else _began_with(stage)
        now = shipped_adapter(adapter)
        if began and began != (hash_of_adapter(now) if as_it_is else adapter_hash(now)):
            raise UsageError(
                f"{stage.folder} is of another {adapter} (sha256 {began[:12]}) than the one that "
                "ships now, so what is left would start from other weights: go on with that one "
                "(git log -- src/toolshift/agents/adapters names its commit), or make all stages "
                "anew in another folder (--work)"
            )


def _measured_with(stage: Stage) -> str:
    """The hash of the adapter in the manifest of a measured stage; "" where there is none."""
    if not stage.measured:
        return ""
    [agent] = RunFolder.read(stage.run).manifest.agents
    return str(agent.get("adapter_sha256", ""))


def _began_with(stage: Stage) -> str:
    """The hash of the shipped adapter that a trained stage started from; "" where of none."""
    if stage.arm.init or not SCALES[stage.scale].adapter:
        return ""
    return str(stage.record().get("adapter_sha256", ""))


def chosen_arms(study: Study, only: tuple[str, ...]) -> list[str]:
    """The names of the arms that are asked for, and of those that they start from."""
    known = {arm.name: arm for arm in study.arms}
    for name in only:
        if name not in known:
            raise UsageError(unknown("arm", name, known))
    asked = [arm for arm in study.arms if not only or arm.name in only]
    return list(dict.fromkeys(each.name for arm in asked for each in _lineage(arm, known)))


# -- inside -----------------------------------------------------------------------------------


def _lineage(arm: Arm, known: dict[str, Arm]) -> Iterator[Arm]:
    """An arm, after those that it starts from or is matched with."""
    for name in filter(None, (arm.init, arm.until)):
        yield from _lineage(known[name], known)
    yield arm


def _stage(arm: Arm, study: Study, scale: str, seed: int, work: Path, pool: str) -> Stage:
    start = [_stage(each, study, scale, seed, work, pool) for each in _starts(arm, study)]
    size, probes = SCALES[scale], arm.probes or study.probes
    recipe = _recipe(arm, scale, seed, "+".join(each.recipe for each in start))
    elsewhere = () if size.world == TRAINED_IN else (size.world,)
    dealt = (study.dealt,) if study.dealt else ()
    probed = f"{pool} {_hash(probes, size.kinds, size.tasks, *elsewhere, *dealt)}"
    named = size.trained or scale
    kept = find_frozen(work, arm.name, named, seed, recipe)
    if kept:
        key = kept.folder[-8:]
    elif _base_is_there(scale):
        key = _key(arm, scale, seed, "+".join(each.key for each in start))
    else:  # so a page can be made where the weights are not, of the stages that are kept
        key = NO_BASE
    folder = work / f"{arm.name}-{named}-seed{seed}-{key}"
    run = kept.runs.get(probed, "") if kept else ""
    asked = (probes, study.dealt, size, pool)
    run = run or f"run-{_plan(*asked).hash[:8]}-{_scenes(*asked)}"
    sha256 = kept.episodes_sha256.get(run, "") if kept else ""
    last_in = kept.last_in if kept and sha256 and not folder.exists() else ""
    return Stage(arm, seed, scale, folder, key, folder / run, pool, recipe, probed, sha256, last_in)


def _base_is_there(scale: str) -> bool:
    model = _preset(scale).model
    return model not in BASES or is_there(BASES[model])


def _key(arm: Arm, scale: str, seed: int, parent: str) -> str:
    """A hash of what decides a training run: what is declared, and what the code makes of it."""
    mix = arm.mixed(SCALES[scale], seed)
    settings = _in_order(msgspec.to_builtins(_settings(arm, scale, seed)))
    decides = (arm.method, mix, settings, arm.amount(SCALES[scale]), parent)
    decoded: tuple[str, ...] = () if arm.decoding == "free" else (arm.decoding,)
    decoded += (f"rounds {arm.rounds}",) if arm.rounds else ()
    decoded += ("aggregated",) if arm.aggregate else ()
    decoded += (JSON.encode(arm.more).decode(),) if arm.more else ()
    return _hash(*decides, *decoded, *_code(mix, arm, scale))


def _recipe(arm: Arm, scale: str, seed: int, parent: str) -> str:
    """A hash of what is declared of a training run.

    Shifts had no versions when the first recipes were hashed, so they stand in it without. Defaults
    are left out, so that a new setting which changes nothing leaves it as it is.
    """
    mixed = arm.mixed(SCALES[scale], seed)
    shifts = tuple(map(without_versions, mixed.shifts))
    mix = _declared(msgspec.structs.replace(mixed, shifts=shifts))
    settings = _in_order(_declared(_settings(arm, scale, seed)))
    more = (arm.rounds, *("aggregated",) * arm.aggregate) if arm.rounds else ()
    more += (arm.more,) if arm.more else ()
    return _hash(arm.method, mix, settings, arm.amount(SCALES[scale]), arm.decoding, parent, *more)


def _in_order(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings in the order in which those of the stages that are kept were hashed."""
    first = {name: settings[name] for name in HASHED_FIRST if name in settings}
    return {**first, **settings}


def _declared(settings: msgspec.Struct) -> dict[str, Any]:
    """The fields that are not as by default."""
    found = {}
    for field in msgspec.structs.fields(settings):
        made = field.default_factory
        default = field.default if made is msgspec.NODEFAULT else made()
        if (value := getattr(settings, field.name)) != default:
            found[field.name] = value
    return found


def _starts(arm: Arm, study: Study) -> list[Arm]:
    """The arm that this one starts from, if it does; and then the one that it is matched with."""
    wanted = filter(None, (arm.init, arm.until))
    known = {each.name: each for each in study.arms}
    return [known[name] for name in wanted]


def _parents(stage: Stage, study: Study) -> list[Stage]:
    """The stages that this one needs: what it starts from, and what it is matched with."""
    work = stage.folder.parent
    return [
        _stage(each, study, stage.scale, stage.seed, work, stage.pool)
        for each in _starts(stage.arm, study)
    ]


def _settings(arm: Arm, scale: str, seed: int, **changes: Any) -> TrainSettings:
    """The settings of an arm's training run."""
    size = SCALES[scale]
    base = {"model": _preset(scale).model} if size.model else {}
    base |= {"adapter": size.adapter} if size.adapter and not arm.init else {}
    asked = {"seed": seed, "layout": _layout(arm, scale), **base, **arm.settings, **changes}
    if arm.method == "grpo":
        return grpo_settings.preset(_preset_name(scale), steps=arm.amount(SCALES[scale]), **asked)
    batch = min(arm.together, _preset(scale).batch)
    if arm.passes > 1:
        asked["epochs"] = arm.passes * _preset(scale).epochs
    return presets.preset(_preset_name(scale), **{"batch": batch, **asked})


def _preset_name(scale: str) -> str:
    """The preset whose model and settings a scale has."""
    return SCALES[scale].preset or scale


def _preset(scale: str) -> presets.Settings:
    """The preset of a scale, with the scale's base model where it names one."""
    return with_model(presets.PRESETS[_preset_name(scale)], SCALES[scale].model)


def _layout(arm: Arm, scale: str) -> Layout:
    """How an arm's tools are listed, in training and where it is measured."""
    named: Layout | None = arm.settings.get("layout") or SCALES[scale].layout
    return named or _preset(scale).layout


def _code(mix: Mix, arm: Arm, scale: str) -> tuple[str, ...]:
    """What the code and the base model contribute: data, weights, and how it is trained."""
    data = _data(mix, arm, scale)
    return data if arm.method == "none" else (*data, _behaviour(_settings(arm, scale, 0)))


@lru_cache(maxsize=32)
def _behaviour(settings: TrainSettings) -> str:
    """A hash of what the training code does to fixed conversations, and of what it runs on.

    The base model of the preset paper is on training machines only, so there the tokens are those
    of the tiny model.
    """
    paper = settings.preset == "paper"
    here = presets.PRESETS["smoke" if paper else settings.preset]
    here = with_model(here, "" if paper else settings.model)
    return _hash(fingerprint(settings, find_base(here)))


def _data(mix: Mix, arm: Arm, scale: str) -> tuple[str, ...]:
    """A hash of a sample of the data, and that of the weights it starts from."""
    if arm.method == "none":
        return (_base_hash(scale),)
    drawn = SAMPLE if arm.method == "grpo" else arm.amount(SCALES[scale])
    numbers = range(0, drawn, max(1, drawn // SAMPLE))
    mix = as_trained(mix)
    sample = [make_rows(mix, 1, begin=number) for number in numbers]
    return (_hash(sample), _base_hash(scale))


@lru_cache(maxsize=8)
def _base_hash(scale: str) -> str:
    """Of the base model's weights; "" for those that only a training machine has."""
    base = find_base(_preset(scale)).sha256 if _preset_name(scale) != "paper" else ""
    adapter = SCALES[scale].adapter
    return f"{base} {weights_hash(shipped_adapter(adapter))}" if adapter else base


@lru_cache(maxsize=16)
def _scenes(probes: tuple[str, ...], dealt: tuple[str, ...], scale: Scale, pool: str) -> str:
    """A hash of the scenes of a plan, whose own hash tells shifts by name and version."""
    found = map(build, _plan(probes, dealt, scale, pool).cells)
    return _hash(
        [
            [
                [(tool.name, tool.description, tool.params) for tool in scene.tools],
                [ask.text for ask in scene.asks],
                [(step.name, step.arguments, step.text) for step in scene.rehearsal],
            ]
            for scene in found
        ]
    )


def scenes_of(stage: Stage, study: Study) -> Plan:
    """The scenes that a stage is measured in, clean and shifted."""
    probes = stage.arm.probes or study.probes
    return _plan(probes, study.dealt, SCALES[stage.scale], stage.pool)


@lru_cache(maxsize=16)
def _plan(probes: tuple[str, ...], dealt: tuple[str, ...], scale: Scale, pool: str) -> Plan:
    """What arms are measured in; of the stacks that are dealt each task meets one."""
    asked = Selection(
        worlds=(scale.world,),
        kinds=scale.kinds if scale.world == scale.home else (),
        shifts=probes if scale.today else tuple(map(_first_version, probes)),
        tasks=scale.tasks,
        seed=WORLD_SEED,
        pool=pool,
        max_repeats=scale.max_repeats,
    )
    plan = make_plan(select(asked))
    if not dealt:
        return plan
    hand = select(msgspec.structs.replace(asked, shifts=dealt, placebo=False))
    more = make_plan(msgspec.structs.replace(hand, rotate=True))
    rows = (*plan.rows, *(row for row in more.rows if row.cell.shifts))
    return msgspec.structs.replace(plan, rows=rows, versions={**plan.versions, **more.versions})


def _first_version(probe: str) -> str:
    """A stack of shifts, each as in release 0.2.0, in which the first arms were measured."""
    parts = (part.partition(":") for part in probe.split("+"))
    return "+".join(f"{name}@1{colon}{severity}" for name, colon, severity in parts)


def _hash(*content: Any) -> str:
    return hashlib.sha256(JSON.encode(content)).hexdigest()[:8]


def _train(stage: Stage, study: Study, changes: dict[str, Any], launch: str) -> None:
    arm, scale = stage.arm, SCALES[stage.scale]
    mix = arm.mixed(scale, stage.seed)
    check(as_trained(mix))
    more = dict(arm.more)
    if scale.adapter and not arm.init:
        changes = {**changes, "adapter": str(shipped_adapter(scale.adapter))}
    for parent in _parents(stage, study):
        if parent.arm.name == arm.init:
            check_weights(parent.folder / "model")
            changes = {**changes, **_from(*_made(parent, study))}
        elif parent.trained:
            check_weights(parent.folder / "model")
            more["target"] = str(parent.folder / "model")
    settings = _settings(arm, stage.scale, stage.seed, **changes)
    out = stage.folder / "model"
    if not checkpoints(out) and out.exists():
        shutil.rmtree(out)  # it was broken off before its first checkpoint
    method: Any = arm.method
    given = msgspec.to_builtins(settings)
    job = Job(method, mix, arm.amount(scale), given, arm.rounds, arm.aggregate, more)
    job.run(stage.folder, launch)


def _from(model: Path | None, adapter: Path | None) -> dict[str, str]:
    """The settings that start a run from what another has made."""
    made = {"model": model, "adapter": adapter}
    return {name: str(path) for name, path in made.items() if path}


def _made(stage: Stage, study: Study) -> tuple[Path | None, Path | None]:
    """The model and the adapter that a stage leaves: None for the base model, and for no adapter.

    An arm may train all weights where its preset trains an adapter, or the other way round.
    """
    parents = [each for each in _parents(stage, study) if each.arm.name == stage.arm.init]
    started = [_made(start, study) for start in parents]
    model, adapter = started[0] if started else (None, None)
    if not parents and SCALES[stage.scale].adapter:
        adapter = shipped_adapter(SCALES[stage.scale].adapter)
    if stage.arm.method == "none":
        return model, adapter
    made = stage.folder / "model"
    whole = stage.arm.settings.get("full", _preset(stage.scale).full)
    return (made, None) if whole else (model, made)


def _measure(stage: Stage, study: Study) -> None:
    """Runs the arm in the study's clean and shifted scenes, resumably."""
    settings = _preset(stage.scale)
    model, adapter = _made(stage, study)
    for made in (model, adapter):
        if made:
            check_weights(made)
    base = settings.model if settings.model in BASES else ""
    agent = LocalAgent(
        model or base or find_base(settings).directory,
        adapter=adapter,
        layout=_layout(stage.arm, stage.scale),
        decoding=stage.arm.decoding,
        max_new_tokens=grpo_settings.PRESETS[_preset_name(stage.scale)].turn_tokens,
        name=stage.arm.name,
    )
    plan = scenes_of(stage, study)
    with progress(f"{stage.arm.name}, seed {stage.seed}: episodes") as watch:
        run_spec(RunSpec(plan, contestants([agent], None), stage.run), watch)

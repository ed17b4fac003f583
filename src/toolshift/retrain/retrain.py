"""Retraining for one release: measure, train on exactly its drift, measure again, decide.

A folder holds all of it, so a run that was broken off goes on where it stopped:

    asked.json      what was asked for; another question needs another folder
    release.json    the release as a shift, also for `toolshift run --shift`
    before/         the run of the old model
    model/          the new adapter or model, with its record and curves
    after/          the run of the new model, in the same scenes
    decision.json   what was decided, and why
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from toolshift.agents.catalog import contestants
from toolshift.agents.local import LocalAgent
from toolshift.api import run_spec
from toolshift.core.errors import UsageError
from toolshift.core.files import write
from toolshift.core.importing import load
from toolshift.core.terminal import progress
from toolshift.core.text import one_line
from toolshift.core.tool import JSON
from toolshift.data.augment import Recipe, check_recipe
from toolshift.data.files import place_word
from toolshift.lm.bases import BASES, weights_hash
from toolshift.lm.checkpoint import training_record
from toolshift.retrain.decision import Decision, cost_of, decide, not_needed
from toolshift.runs.execute import RunSpec
from toolshift.runs.plan import Plan, make_plan
from toolshift.runs.run_folder import RunFolder
from toolshift.runs.suite import Selection, select
from toolshift.shifts.release.file import ShiftFile
from toolshift.train.callbacks import checkpoints
from toolshift.train.data import make_rows
from toolshift.train.model import find_base
from toolshift.train.own_data import check_shifted, own_rows
from toolshift.train.presets import Settings
from toolshift.train.record import alone_in
from toolshift.train.rows import Row
from toolshift.train.scenes import Mix, check
from toolshift.train.settings import SFT

ASKED, SHIFT, DECISION = "asked.json", "release.json", "decision.json"
BEFORE, MODEL, AFTER = "before", "model", "after"
MAX_FAULTS = 12
"""Rows that cannot be trained on, and are named one by one."""
Say = Callable[[str], None]


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What decides a retraining. In its folder it stands without paths, which can be moved.

    Attributes:
        shift: the release, by the name and hash that results know it by.
        settings: of the training; the adapter or model that it starts from is in it.
        alpha: the share of trajectories on the new tools; the others are on the old ones, so that
            they are not forgotten.
        count: trajectories.
        measured: the scenes of both runs, without the release.
        guard: further shifts on which nothing may be lost.
        margin: points of accuracy that may be lost where nothing may be lost.
        data_sha256: of the file of conversations that is trained on; "" for the oracle's.
        always: train even where the release costs less than the margin.
    """

    shift: str
    settings: Settings
    alpha: float
    count: int
    measured: Selection
    guard: tuple[str, ...]
    margin: float
    always: bool = False
    data_sha256: str = ""

    def mix(self, shift: Path) -> Mix:
        """What is trained on."""
        return Mix(
            worlds=self.measured.worlds,
            kinds=self.measured.kinds,
            alpha=self.alpha,
            shifts=(str(shift),),
            severities=(1,),
            seed=self.settings.seed,
        )

    def recipe(self, shift: Path) -> Recipe:
        """What is done to conversations of the user's."""
        return Recipe(alpha=self.alpha, shifts=(str(shift),), seed=self.settings.seed)

    def plan(self, shift: Path) -> Plan:
        """The scenes of both runs: clean, under the release, and under what is guarded."""
        shifts = (str(shift), *self.guard)
        with progress("planning") as watch:
            return make_plan(
                select(msgspec.structs.replace(self.measured, shifts=shifts)),
                lambda cells: watch(cells, 0),
            )


class Kept(Asked, frozen=True, forbid_unknown_fields=True):
    """What was asked for, as it stands in the folder.

    Attributes:
        weights_sha256: of the adapter or the folder of the model that it starts from, which is
            named there and not by its path; "" for a model that is known by name alone.
    """

    weights_sha256: str = ""

    @classmethod
    def of(cls, asked: Asked) -> Kept:
        """The question without paths."""
        settings, start = asked.settings, ""
        if settings.adapter:
            start = _file_hash(Path(settings.adapter) / "adapter_model.safetensors")
        elif Path(settings.model).is_dir():
            start = weights_hash(Path(settings.model))
        fields = {name: getattr(asked, name) for name in Asked.__struct_fields__}
        return cls(**{**fields, "settings": _by_name(settings)}, weights_sha256=start)


def retrain(
    asked: Asked, release: ShiftFile, out: Path, say: Say, data: Path | None = None
) -> Decision:
    """Measures the old model, trains it on one release, measures the new one, and decides.

    It is trained on the conversations in `data`, where that is given.
    """
    out = out.absolute()
    if out.is_file():
        raise UsageError(f"{out} is a file: name a folder for the results")
    out.mkdir(parents=True, exist_ok=True)
    with alone_in(out):
        _check_asked(asked, out)
        shift = out / SHIFT
        write(shift, release.encode())
        if data is None:
            check(asked.mix(shift))
        else:
            check_recipe(asked.recipe(shift))
        plan = asked.plan(shift)
        _keep(asked, out)  # not before: nothing is begun where it cannot be planned
        before = _measured(asked, plan, out, BEFORE, None, say)
        cost, clean = cost_of(before, asked.shift)
        found = None if asked.always else not_needed(cost, asked.margin, clean)
        if found is None:
            _train(asked, shift, out, say, data)
            after = _measured(asked, plan, out, AFTER, out / MODEL, say)
            found = decide(before, after, asked.shift, asked.margin)
        write(out / DECISION, msgspec.json.format(JSON.encode(found), indent=1) + b"\n")
    return found


# -- inside ----------------------------------------------------------------------------------------


def _keep(asked: Asked, out: Path) -> None:
    """Keeps the question, by which the folder is resumed."""
    file = out / ASKED
    if not file.exists():
        write(file, msgspec.json.format(JSON.encode(Kept.of(asked)), indent=1) + b"\n")


def _check_asked(asked: Asked, out: Path) -> None:
    """Checks that the question is the one that the folder is about, where it is about one."""
    file, new = out / ASKED, Kept.of(asked)
    if not file.exists():
        return
    try:
        old = msgspec.json.decode(file.read_bytes(), type=Kept)
    except msgspec.MsgspecError as fault:
        raise UsageError(f"{file} is damaged ({fault}): start in another folder") from None
    # Folders of before have whole paths, and no hash.
    old = msgspec.structs.replace(old, settings=_by_name(old.settings))
    for name in Kept.__struct_fields__:
        here, there = getattr(new, name), getattr(old, name)
        if here != there and not (name == "weights_sha256" and not there):
            raise UsageError(
                f"{out} was started with another {_field(name, here, there)}: use the same one, "
                "or another --out"
            )


def _by_name(settings: Settings) -> Settings:
    """The settings with the last part of each path."""
    model = Path(settings.model)
    is_path = model.is_absolute() or model.exists()
    return msgspec.structs.replace(
        settings,
        model=model.name if is_path else settings.model,
        adapter=Path(settings.adapter).name if settings.adapter else "",
    )


def _file_hash(file: Path) -> str:
    if not file.exists():  # what is missing is said where it is loaded
        return ""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _field(name: str, here: object, there: object) -> str:
    """The field that differs, and how."""
    if isinstance(here, msgspec.Struct):
        for inner in here.__struct_fields__:
            mine, theirs = getattr(here, inner), getattr(there, inner)
            if mine != theirs:
                return f"{inner} ({theirs}, not {mine})"
    return f"{name} ({there}, not {here})"


def _train(asked: Asked, shift: Path, out: Path, say: Say, data: Path | None) -> None:
    model = out / MODEL
    if training_record(model):
        return
    if model.exists() and not checkpoints(model):
        shutil.rmtree(model)  # it was broken off before its first checkpoint
    rows: Sequence[Mapping[str, Any]]
    if data is None:
        rows, told = _trajectories(asked, shift, say)
    else:
        rows, told = _conversations(asked, shift, say, data)
    with progress("rows tokenized") as watch:
        load(SFT)(
            rows, asked.settings, model, resume=bool(checkpoints(model)), data=told, watch=watch
        )


def _trajectories(asked: Asked, shift: Path, say: Say) -> tuple[list[Row], dict[str, Any]]:
    """What the oracle does in the world, and what the record of the training says of it."""
    mix = asked.mix(shift)
    say(f"training on {asked.count} trajectories, a share of {asked.alpha:g} on the new tools")
    with progress("trajectories") as watch:
        rows = make_rows(mix, asked.count, watch)
    drawn = {**msgspec.to_builtins(mix), "shifts": [asked.shift]}  # its name, and no path
    return rows, {"mix": drawn, "count": asked.count, "release": asked.shift}


def _conversations(
    asked: Asked, shift: Path, say: Say, data: Path
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The user's own conversations, and what the record of the training says of them."""
    recipe = asked.recipe(shift)
    with progress("conversations") as watch:
        own = own_rows(data, recipe, watch)
    if warning := check_shifted(own, recipe):
        say(warning)
    reached = sum(own.shifted.values())
    say(f"training on {own.conversations} conversations of {data}, {reached} with the new tools")
    for place, why in own.faults[:MAX_FAULTS]:
        say(f"{data}, {place_word(data)} {place}, is left out: {one_line(why)}")
    if len(own.faults) > MAX_FAULTS:
        say(f"... and {len(own.faults) - MAX_FAULTS} more are left out")
    return own.rows, {
        "file": data.name,
        "sha256": asked.data_sha256,
        "release": asked.shift,
        "conversations": own.conversations,
        "shifted": reached,
        "not_applicable": own.skipped,
        "open": own.open,
        "left_out": len(own.faults),
    }


def _measured(
    asked: Asked, plan: Plan, out: Path, name: str, made: Path | None, say: Say
) -> RunFolder:
    """The run of a model, made as far as it is not there."""
    path = out / name
    if not (path / "report.txt").exists():
        say(f"measuring the {'old' if made is None else 'new'} model in {path}")
        agent = _agent(asked.settings, made, name)
        with progress(f"{name}: episodes") as watch:
            run_spec(RunSpec(plan, contestants([agent], None), path), watch)
    return RunFolder.read(path)


def _agent(settings: Settings, made: Path | None, name: str) -> LocalAgent:
    """The model as it was, or as training has made it."""
    model: str | Path = settings.model if settings.model in BASES else find_base(settings).directory
    adapter = made or (Path(settings.adapter) if settings.adapter else None)
    if settings.full and made is not None:
        model, adapter = made, None
    return LocalAgent(model, adapter=adapter, layout=settings.layout, name=name)

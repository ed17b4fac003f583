"""What a step of RL costs: before and today, the same scenes from the same start, in turns.

    python benchmarks/rl_step.py [--steps 1] [--screen 16] [--weaken 0.6] [--before COMMIT]
        [--batch 16] [--json FILE]

The settings are those of `studies/reads/rl.toml`: 4 scenes of 4 episodes on clean scenes, of which
1 to 3 of 4 samples pass, replies of 48 tokens, an end after three equal calls. An early checkpoint
is not shipped, so the start is the adapter `smol:static` with its change of the weights taken
`--weaken` times. The code of before is that of a commit, in a process of its own. CPU seconds, one
thread. A step may part from its twin: its floats are summed in another order.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

BEFORE = "9d0850f3"
"""The last commit that reads each episode of a group on its own."""
KINDS = ("listing", "hours", "route", "visit")


def weakened(share: float, folder: Path) -> Path:
    """The shipped adapter, so much of it."""
    from safetensors.torch import load_file, save_file

    from toolshift.agents.local_kind import shipped_adapter

    shutil.copytree(shipped_adapter("smol:static"), folder)
    file = folder / "adapter_model.safetensors"
    weights = {
        name: weight * share if "lora_B" in name else weight
        for name, weight in load_file(file).items()
    }
    save_file(weights, file, metadata={"format": "pt"})
    return folder


def asked(options: argparse.Namespace, **changes: Any) -> Any:
    """The settings of the plan."""
    from toolshift.train.grpo_settings import preset

    return preset(
        "small", adapter=str(options.adapter), threads=1, steps=options.steps, groups=4, group=4,
        lr=2e-4, turn_tokens=48, max_repeats=3, eval_every=0, save_every=0, **changes,
    )  # fmt: skip


def timed(where: Any, name: str, into: list[float]) -> None:
    """Notes the CPU seconds of each call of a method."""
    plain: Callable[..., Any] = getattr(where, name)

    def call(*arguments: Any, **more: Any) -> Any:
        begun = time.process_time()
        try:
            return plain(*arguments, **more)
        finally:
            into.append(time.process_time() - begun)

    setattr(where, name, call)


def one_side(options: argparse.Namespace) -> dict[str, Any]:
    """Figures of the toolshift that this process imports."""
    import resource

    import torch

    from toolshift.train import grpo_trainer
    from toolshift.train.grpo import train
    from toolshift.train.reward import Weights, earn
    from toolshift.train.scenes import Mix
    from toolshift.train.screen import chosen, screen

    torch.set_num_threads(1)
    mix, made = Mix(kinds=KINDS, size=200), {}
    with tempfile.TemporaryDirectory() as scratch:
        if options.screen:
            begun = time.process_time()
            found = screen(mix, asked(options), Path(scratch) / "screen.jsonl", options.screen)
            made["screen"] = {
                "episodes": 4 * options.screen,
                "passed": sum(each.passed for each in found),
                "cpu_seconds": round(time.process_time() - begun, 1),
            }
            fit = chosen(found, 1, 3)
            made["scenes_of_which_1_to_3_pass"] = len(fit)
            rest = (each.scene for each in found if each.scene not in fit)
            made["scenes"] = (*fit, *rest)[: max(4, len(fit))]  # a step takes four
            return made
        steps: list[float] = []
        rollouts: list[float] = []
        timed(grpo_trainer.GrpoTrainer, "training_step", steps)
        timed(grpo_trainer.Player, "_play", rollouts)
        passed: list[bool] = []

        def pay(episode: Any) -> Any:
            earned = earn(episode, Weights())
            passed.append(earned.grade.passed)
            return earned

        settings = asked(options, batch=options.batch, scenes=tuple(options.scenes))
        begun = time.process_time()
        train(mix, settings, Path(scratch) / "run", pay=pay)
        whole = time.process_time() - begun
    a_step = sum(steps) / options.steps
    return {
        "cpu_seconds_a_step": round(a_step, 1),
        "of_these_rollouts": round(sum(rollouts) / options.steps, 1),
        "start_and_end": round(whole - sum(steps), 1),
        "passed": sum(passed),
        "episodes": len(passed),
        "peak_gigabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 1),
    }


def elsewhere(source: Path, *words: object) -> dict[str, Any]:
    """What this script says with the toolshift of a folder."""
    command = [sys.executable, __file__, "--one", *map(str, words)]
    places = os.pathsep.join(map(str, (source, source.parent / "lab" / "src")))
    environment = {**os.environ, "PYTHONPATH": places, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(words[-1], told, file=sys.stderr, flush=True)
    return told


def former(commit: str, folder: Path) -> Path:
    """The sources of a commit."""
    packed = subprocess.run(
        ["git", "archive", commit, "src", "lab"], capture_output=True, check=True
    )
    subprocess.run(["tar", "-x", "-C", str(folder)], input=packed.stdout, check=True)
    return folder / "src"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--steps", type=int, default=1)
    parser.add_argument("--screen", type=int, default=16, help="scenes that are tried beforehand")
    parser.add_argument("--weaken", type=float, default=0.6)
    parser.add_argument("--batch", type=int, default=16, help="episodes that are read at once")
    parser.add_argument("--before", default=BEFORE, help="commit to compare with")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--adapter", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--scenes", type=json.loads, default=[], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one_side(options)))
        return
    from machine import machine

    today = Path(__file__).parent.parent / "src"
    with tempfile.TemporaryDirectory() as scratch:
        start = weakened(options.weaken, Path(scratch) / "start")
        shared = ("--adapter", start, "--steps", options.steps, "--batch", options.batch)
        made = elsewhere(today, *shared, "--screen", options.screen)
        made["weakened_to"] = options.weaken
        scenes = json.dumps(made["scenes"])
        sides = {"before": former(options.before, Path(scratch)), "today": today}
        for name, source in sides.items():
            made[name] = elsewhere(source, *shared, "--screen", 0, "--scenes", scenes)
    before, after = (made[name]["cpu_seconds_a_step"] for name in sides)
    made["ratio"] = round(before / after, 2)
    made["hardware"] = machine()
    text = json.dumps(made, indent=1)
    print(text)
    if options.json:
        options.json.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()

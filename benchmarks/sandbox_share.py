"""What the sandbox costs in reinforcement learning: its share of the wall time of GRPO steps.

    python benchmarks/sandbox_share.py [--steps 2] [--threads 1] [--json FILE]

SmolLM2-135M from the shipped adapter, scenes of which a third is shifted, `toolshift train grpo`'s
own loop. The sandbox is: drawing scenes (with the oracle's rehearsals), episodes, observations and
grading. Rendering is: conversations to text to tokens and back, which any harness needs.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import torch
from machine import machine

from toolshift.agents.local_kind import shipped_adapter
from toolshift.train.callbacks import Spent
from toolshift.train.grpo import build
from toolshift.train.grpo_settings import preset
from toolshift.train.model import find_base
from toolshift.train.scenes import Mix


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    settings = preset(
        "small",
        adapter=str(shipped_adapter("smol:static")),
        steps=options.steps,
        groups=2,
        group=4,
        save_every=0,
    )
    with tempfile.TemporaryDirectory() as folder:
        base = find_base(settings)
        mix = Mix(alpha=0.34)
        trainer = build(mix, settings, Path(folder), base, Spent())
        begun, cpu = time.perf_counter(), time.process_time()
        trainer.train()
        wall, cpu = time.perf_counter() - begun, time.process_time() - cpu
    clock = trainer.player.clock
    made = {
        "steps": options.steps,
        "episodes": options.steps * settings.groups * settings.group,
        "wall_seconds": round(wall, 2),
        "cpu_seconds": round(cpu, 2),
        "sandbox_seconds": round(clock.sandbox, 3),
        "rendering_seconds": round(clock.rendering, 3),
        "generation_seconds": round(clock.generation, 2),
        "sandbox_share": round(clock.sandbox / wall, 5),
        "rendering_share": round(clock.rendering / wall, 5),
        "hardware": machine(),
    }
    text = json.dumps(made, indent=1)
    print(text)
    if options.json:
        options.json.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()

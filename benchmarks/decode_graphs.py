"""How much sooner a GPU decodes where steps are CUDA graphs.

    python benchmarks/decode_graphs.py [--rows 64] [--tokens 60] [--json FILE]

A model of SmolLM2-135M's shape with random weights in bfloat16 completes prompts of 700 random
tokens, sampled as in GRPO and greedily as in a measurement, with graphs and without, each twice:
the first time graphs are captured. Random weights choose between near ties, which rounding settles:
tokens are compared, and not all are the same.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import torch
from machine import machine
from transformers import AutoConfig, AutoModelForCausalLM

from toolshift.lm.bases import base_directory
from toolshift.lm.decode import Decoder
from toolshift.train.generation import Sampler

PROMPT = 700


def completed(decoder: Decoder, prompts: list[list[int]], tokens: int) -> list[list[int]]:
    if isinstance(decoder, Sampler):
        return [said.tokens for said in decoder.say(prompts, range(len(prompts)), tokens, 1.0)]
    return decoder.complete(prompts, tokens)


def timed(decoder: Decoder, prompts: list[list[int]], tokens: int) -> tuple[float, list[list[int]]]:
    """Milliseconds of wall time a step, prefill included, and what was said."""
    before = decoder.steps
    torch.cuda.synchronize()
    begun = time.perf_counter()
    said = completed(decoder, prompts, tokens)
    torch.cuda.synchronize()
    took = time.perf_counter() - begun
    decoder.forget()
    return 1000 * took / (decoder.steps - before), said


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--rows", type=int, default=64, help="prompts decoded together")
    parser.add_argument("--tokens", type=int, default=60, help="made for each prompt, at most")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("torch sees no GPU here, and a CPU has no graphs", file=sys.stderr)
        return 2
    torch.manual_seed(0)
    auto: Any = AutoModelForCausalLM
    model = auto.from_config(AutoConfig.from_pretrained(base_directory()))
    model = model.to("cuda", torch.bfloat16).eval()
    model.set_attn_implementation("sdpa")
    prompts = torch.randint(100, 40_000, (options.rows, PROMPT)).tolist()
    figures: dict[str, Any] = {}
    for name, kind in (("sampled", Sampler), ("greedy", Decoder)):
        with_graphs, without = kind(model, [2]), kind(model, [2])
        without.graphs = None
        plain, graphs = [], []
        for _ in range(2):
            took, wanted = timed(without, prompts, options.tokens)
            plain.append(round(took, 1))
            took, found = timed(with_graphs, prompts, options.tokens)
            graphs.append(round(took, 1))
        same = sum(one == other for one, other in zip(wanted, found, strict=True))
        ratio = round(plain[-1] / graphs[-1], 1)
        figures[name] = {"ms_a_step": plain, "as_graphs": graphs, "ratio": ratio, "same_rows": same}
        print(f"{name}: {plain} ms a step, {graphs} as graphs, {ratio} times; {same} rows the same")
    if options.json:
        told = {
            "command": f"python benchmarks/decode_graphs.py --rows {options.rows} "
            f"--tokens {options.tokens}",
            **figures,
            "hardware": {**machine(), "gpu": torch.cuda.get_device_name()},
        }
        options.json.write_text(json.dumps(told, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

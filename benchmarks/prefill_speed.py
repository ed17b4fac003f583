"""How fast the local agent reads long prompts, by the type that it computes in.

    python benchmarks/prefill_speed.py [--tokens 1500] [--rounds 3] [--threads 1] [--json FILE]

The bundled model, with its weights rounded to bfloat16, reads four prompts of random tokens, of
which nothing is known: by the decoder of the local agent in float32 and in bfloat16, and by
transformers with torch's fused attention in float32. Which type `toolshift` chooses on this
machine is printed.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch
from machine import machine
from transformers import AutoModelForCausalLM

from toolshift.lm.bases import base_directory
from toolshift.lm.decode import Decoder
from toolshift.lm.dtype import computes_in

ROWS = 4


def loaded(dtype: torch.dtype) -> Any:
    model = AutoModelForCausalLM.from_pretrained(base_directory(), dtype=torch.bfloat16)
    return model.to(dtype).eval()


def fused(prompts: list[list[int]]) -> float:
    """Seconds of CPU by transformers' own forward with torch's fused attention."""
    model = loaded(torch.float32)
    with torch.inference_mode():
        return timed(lambda: model(torch.tensor(prompts), logits_to_keep=1))


def ours(prompts: list[list[int]], dtype: torch.dtype) -> float:
    """Seconds of CPU by the decoder of the local agent."""
    decoder = Decoder(loaded(dtype), stop=[2], memory_tokens=0)
    return timed(lambda: decoder.complete(prompts, 1))


def timed(work: Any) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--tokens", type=int, default=1500, help="in each of four prompts")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    prompts = torch.randint(100, 40_000, (ROWS, options.tokens)).tolist()
    ways = {
        "float32, ours": lambda: ours(prompts, torch.float32),
        "float32, fused": lambda: fused(prompts),
        "bfloat16, ours": lambda: ours(prompts, torch.bfloat16),
    }
    took: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(options.rounds):
        for name, way in ways.items():
            took[name].append(way())
            print(f"round {number + 1}, {name}: {took[name][-1]:.1f} CPU-s", flush=True)
    rates = {name: ROWS * options.tokens / min(all_) for name, all_ in took.items()}
    for name, rate in rates.items():
        print(f"{name}: {rate:,.0f} tokens a CPU second")
    chosen = str(computes_in("bfloat16")).removeprefix("torch.")
    print(f"toolshift computes in {chosen} here")
    if options.json:
        figures = {
            "command": f"python benchmarks/prefill_speed.py --tokens {options.tokens} "
            f"--rounds {options.rounds} --threads {options.threads}",
            "tokens_a_cpu_second": {name: round(rate, 1) for name, rate in rates.items()},
            "ours_against_fused": round(rates["float32, ours"] / rates["float32, fused"], 2),
            "float32_against_bfloat16": round(rates["float32, ours"] / rates["bfloat16, ours"], 2),
            "chosen": chosen,
            "rounds": {name: [round(each, 2) for each in all_] for name, all_ in took.items()},
            "hardware": machine(),
        }
        options.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()

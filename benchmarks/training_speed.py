"""How much of a bare torch loop's speed training has: tokens a second on the same batches.

    python benchmarks/training_speed.py [--steps 6] [--rounds 3] [--full] [--json FILE]

The bare loop is the least that does the same: the same model, the same batches, the same loss
function, fused AdamW and clipping, with nothing logged or kept. Beside both stands the plain path:
the same trainer, but each row's opening computed for itself and the fused attention of torch. The
ways take turns in each round, and each figure is the best of the rounds. Times are CPU seconds of
this process, which other work on the machine disturbs least; the clock stands beside them.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import torch
from machine import machine

from toolshift.lm.dtype import computes_in
from toolshift.train.batches import Batches, Encoder, Example, collate, encode_rows
from toolshift.train.callbacks import Spent
from toolshift.train.data import make_rows
from toolshift.train.loss import add_loss, attends_plainly, use_plain_attention
from toolshift.train.model import Base, find_base, load
from toolshift.train.presets import Settings, preset
from toolshift.train.scenes import Mix
from toolshift.train.sft import build

KINDS = ("listing", "hours", "route", "visit", "alert", "booking")
Timed = tuple[float, float]


def timed(work: Callable[[], Any]) -> Timed:
    """CPU seconds and seconds by the clock."""
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - cpu, time.perf_counter() - wall


def bare(examples: list[Example], settings: Settings, base: Base) -> Timed:
    model = load(settings, base)
    inner = model if settings.full else model.get_base_model()
    assert attends_plainly(inner)
    add_loss(inner)
    use_plain_attention(inner)
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(
        trained, settings.lr, betas=(0.9, 0.99), weight_decay=0.0, fused=True
    )
    autocast = settings.full and computes_in(settings.precision) == torch.bfloat16
    order = Batches(examples, settings.batch, settings.seed).batches()
    model.train()

    def loop() -> None:
        for indices in order:
            batch = collate([examples[index] for index in indices])
            batch.pop("tokens")
            with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
                loss = model(**batch) / batch["weights"][:, 1:].sum()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(trained, settings.clip)
            optimizer.step()
            optimizer.zero_grad()

    return timed(loop)


def ours(examples: list[Example], settings: Settings, base: Base) -> Timed:
    with tempfile.TemporaryDirectory() as folder:
        trainer = build(examples, settings, Path(folder), base, Spent())
        return timed(trainer.train)


def plain(examples: list[Example], settings: Settings, base: Base) -> Timed:
    with tempfile.TemporaryDirectory() as folder:
        unshared = msgspec.structs.replace(settings, share=False)
        trainer = build(examples, unshared, Path(folder), base, Spent())
        inner = trainer.model if settings.full else trainer.model.get_base_model()
        inner.set_attn_implementation("sdpa")
        return timed(trainer.train)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--full", action="store_true", help="all weights instead of LoRA")
    parser.add_argument("--model", default="smol")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    settings = preset(
        "small", model=options.model, full=options.full, threads=options.threads, save_every=0
    )
    base = find_base(settings)
    rows = make_rows(Mix(kinds=KINDS), options.steps * settings.batch)
    encoder = Encoder(base.tokenizer, base.template, settings.layout, base.tool_role)
    examples = encode_rows(rows, encoder)[: options.steps * settings.batch]
    tokens = sum(len(example.tokens) for example in examples)
    ways = {"bare loop": bare, "toolshift train": ours, "plain path": plain}
    took: dict[str, list[Timed]] = {name: [] for name in ways}
    for number in range(options.rounds):
        for name, way in ways.items():
            took[name].append(way(examples, settings, base))
            print(f"round {number + 1}, {name}: {took[name][-1][0]:.1f} CPU-s", flush=True)
    best = {name: (min(c for c, _ in t), min(w for _, w in t)) for name, t in took.items()}
    print(f"\n{len(examples)} rows, {tokens:,} tokens, {options.threads} threads")
    for name, (cpu, wall) in best.items():
        share = best["bare loop"][0] / cpu
        print(f"{name:16} {tokens / cpu:7.0f} tokens/CPU-s {tokens / wall:7.0f}/s  {share:.3f}")
    if options.json:
        rates = {
            name: {
                "tokens_per_cpu_second": tokens / cpu,
                "tokens_per_second": tokens / wall,
                "share_of_bare": best["bare loop"][0] / cpu,
            }
            for name, (cpu, wall) in best.items()
        }
        report = {
            "tokens": tokens,
            "threads": options.threads,
            "steps": options.steps,
            "rounds": options.rounds,
            "full": options.full,
            "hardware": machine(),
            **rates,
        }
        options.json.write_text(json.dumps(report, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()

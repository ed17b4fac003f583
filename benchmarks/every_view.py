"""Episodes whose tools change midway: their sequences read view by view, against all at once.

    python benchmarks/every_view.py [--group 8] [--batch 4] [--rounds 2] [--json FILE]

One group of GRPO is played by SmolLM2-135M with the shipped adapter, in a scene whose tools change
in mid-episode, and scored with its gradient both ways, in turns. Read view by view, the sequences
of a group are a tree; all at once they share nothing. Log-probabilities are compared as well.
Times are CPU seconds of this process, the least of the rounds.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from machine import machine
from torch.nn.utils.rnn import pad_sequence

from toolshift.agents.local_kind import shipped_adapter
from toolshift.train.callbacks import Spent
from toolshift.train.grpo import build
from toolshift.train.grpo_settings import preset
from toolshift.train.grpo_trainer import GrpoTrainer
from toolshift.train.logprobs import add_scores
from toolshift.train.model import find_base
from toolshift.train.scenes import Mix

KINDS = ("listing", "hours", "route", "visit", "alert", "booking")
SHIFTS = ("midway",)
SCENES = 20
"""That are tried, at most."""


def played(trainer: GrpoTrainer, group: int) -> list[Any]:
    """The rows of the first scene in all of whose episodes the tools change."""
    for number in range(SCENES):
        found = trainer.player._play([number] * group, trainer)
        if all(rollout.earlier for rollout, _ in found):
            trainer.forget()
            return [trainer.player._row(rollout) for rollout, _ in found]
        print(f"scene {number}: the tools did not change in each episode", flush=True)
    raise SystemExit(f"in none of {SCENES} scenes do the tools change in each of {group} episodes")


def tensors(rows: list[Any]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Token ids, which are no padding, and which are the model's, in the form of TRL."""
    prompts = pad_sequence(
        [torch.tensor(row.prompt_ids) for row in rows], batch_first=True, padding_side="left"
    )
    before = pad_sequence(
        [torch.ones(len(row.prompt_ids)) for row in rows], batch_first=True, padding_side="left"
    )
    said = pad_sequence([torch.tensor(row.completion_ids) for row in rows], batch_first=True)
    real = pad_sequence([torch.ones(len(row.completion_ids)) for row in rows], batch_first=True)
    own = pad_sequence([torch.tensor(row.env_mask) for row in rows], batch_first=True)
    return torch.cat([prompts, said], dim=1), torch.cat([before, real], dim=1).long(), own.bool()


def scored(trainer: GrpoTrainer, rows: list[Any], batch: int) -> tuple[float, torch.Tensor]:
    """CPU seconds of the scores and their gradient, and the scores."""
    ids, real, own = tensors(rows)
    found, begin = [], time.process_time()
    for first in range(0, len(rows), batch):
        some = slice(first, first + batch)
        trainer._own = own[some]
        logps, _, _ = trainer._get_per_token_logps_and_entropies(
            trainer.model, ids[some], real[some], own.shape[1]
        )
        logps.sum().backward()
        found.append(logps.detach()[own[some]])
    trainer.model.zero_grad()
    return time.process_time() - begin, torch.cat(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--group", type=int, default=8)
    parser.add_argument("--batch", type=int, default=4, help="episodes in one forward pass")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    settings = preset(
        "small", adapter=str(shipped_adapter("smol:paft")), groups=1, group=options.group,
        batch=options.batch, every_view=True, threads=options.threads, eval_every=0,
    )  # fmt: skip
    mix = Mix(kinds=KINDS, alpha=1.0, shifts=SHIFTS)
    took: dict[bool, list[float]] = {True: [], False: []}
    told: dict[bool, torch.Tensor] = {}
    with tempfile.TemporaryDirectory() as folder:
        trainer = build(mix, settings, Path(folder), find_base(settings), Spent())
        inner = trainer.model.get_base_model()
        as_tree = inner.forward
        add_scores(inner, trainer.temperature, share=True)
        by_opening = inner.forward
        rows = played(trainer, options.group)
        for number in range(options.rounds):
            for apart in (True, False):
                trainer._alone = trainer._tree = apart
                inner.forward = as_tree if apart else by_opening
                seconds, told[apart] = scored(trainer, rows, options.batch)
                took[apart].append(seconds)
                name = "view by view" if apart else "all at once"
                print(f"round {number + 1}, {name}: {seconds:.1f} CPU-s", flush=True)
    best, other = min(took[True]), min(took[False])
    tokens = sum(len(row.prompt_ids) + len(row.completion_ids) for row in rows)
    differ = (told[True] - told[False]).abs().mean().item()
    print(f"{len(rows)} episodes, {tokens:,} tokens: {other / best:.2f} x, {differ:.4f} nats apart")
    if options.json:
        report = {
            "episodes": len(rows), "batch": options.batch, "tokens": tokens,
            "view_by_view_cpu_seconds": best, "all_at_once_cpu_seconds": other,
            "ratio": other / best, "mean_difference_of_logprobs": differ, "hardware": machine(),
        }  # fmt: skip
        options.json.write_text(json.dumps(report, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()

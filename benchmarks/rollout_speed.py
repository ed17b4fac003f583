"""Rollouts against `generate` with a prefill of the whole conversation at each turn.

    python benchmarks/rollout_speed.py [--episodes 16] [--threads 1] [--json FILE]
    python benchmarks/rollout_speed.py --steps 2 [--threads 1] [--json FILE]   # GRPO steps

The same model (SmolLM2-135M with the shipped adapter, bf16), the same clean scenes, the same batch,
greedy, in one run. Both sides play through the same loop; only what completes the prompts differs.

With `--steps`, whole steps of GRPO from `smol:paft`, as they were and as they can be since: replies
of 48 tokens and not 96, an end after three equal calls, scenes that were screened beforehand in
place of two draws more, and all rows of one list in one pass. The screen is timed apart.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import torch
from machine import machine

from toolshift.agents.local_kind import shipped_adapter
from toolshift.episode.grade import grade
from toolshift.lm.bases import SMOL, base_directory
from toolshift.lm.checkpoint import load_tokenizer, tool_role, trained_layout
from toolshift.lm.inference import load_model, stop_tokens
from toolshift.train.curves import read_curves
from toolshift.train.generation import Sampler
from toolshift.train.grpo import train
from toolshift.train.grpo_settings import preset
from toolshift.train.reward import Weights, earn
from toolshift.train.rollout import Backend, ConversationEncoder, Limits, Play, Said, roll_out
from toolshift.train.scenes import Mix, draws
from toolshift.train.screen import chosen, screen

KINDS = ("listing", "hours", "route", "visit")


class Prefilling:
    """transformers' own `generate`: a batch at a time, nothing kept between turns."""

    def __init__(self, model: Any, stop: Sequence[int]) -> None:
        self.model, self.stop = model, list(stop)

    def say(
        self, prompts: Sequence[Sequence[int]], seeds: Sequence[int], limit: int, temperature: float
    ) -> list[Said]:
        width = max(map(len, prompts))
        ids = [[self.stop[0]] * (width - len(each)) + list(each) for each in prompts]
        mask = [[0] * (width - len(each)) + [1] * len(each) for each in prompts]
        with torch.inference_mode():
            found = self.model.generate(
                input_ids=torch.tensor(ids),
                attention_mask=torch.tensor(mask),
                max_new_tokens=limit,
                do_sample=False,
                eos_token_id=self.stop,
                pad_token_id=self.stop[0],
            )
        return [self._cut(row) for row in found[:, width:].tolist()]

    def _cut(self, made: list[int]) -> Said:
        ends = [place + 1 for place, token in enumerate(made) if token in self.stop]
        kept = made[: ends[0]] if ends else made
        return Said(kept, [0.0] * len(kept), bool(ends))


KEPT = {"save_every": 0, "eval_every": 0, "groups": 4, "group": 4, "lr": 1e-6}
"""Of both ways; a rate so low that the second is not played by another model."""
BEFORE = {"turn_tokens": 96, "batch": 4, "redraw": 2, "headroom": (0.2, 0.8), **KEPT}
AFTER = {"turn_tokens": 48, "batch": 16, "max_repeats": 3, **KEPT}
SHIFTED = Mix(kinds=KINDS, alpha=0.8, shifts=("schema_noise:2", "EFP", "symbols"), size=200)
SCREENED = 8


def of_steps(options: argparse.Namespace) -> dict[str, Any]:
    """Seconds of GRPO steps, before and after, one after the other in this process."""
    made: dict[str, Any] = {"steps": options.steps, "threads": options.threads, "mix": SHIFTED}
    shared = {"adapter": str(shipped_adapter("smol:paft")), "threads": options.threads}
    with tempfile.TemporaryDirectory() as scratch:
        where = Path(scratch)
        asked = preset("small", steps=options.steps, **shared, **AFTER)
        begun = time.process_time()
        scenes = chosen(screen(SHIFTED, asked, where / "screen.jsonl", SCREENED), 1, 3)
        made["screen"] = {
            "scenes": SCREENED,
            "episodes": 4 * SCREENED,
            "chosen": len(scenes),
            "cpu_seconds": round(time.process_time() - begun, 1),
        }
        if len(scenes) >= asked.groups:  # else all in turn: as many episodes are played
            asked = msgspec.structs.replace(asked, scenes=scenes)
        for name, settings in (
            ("before", preset("small", steps=options.steps, **shared, **BEFORE)),
            ("after", asked),
        ):
            cpu, wall = time.process_time(), time.perf_counter()
            played: list[Any] = []

            def pay(episode: Any, played: list[Any] = played) -> Any:
                played.append(episode)
                return earn(episode, Weights())

            train(SHIFTED, settings, where / name, pay=pay)
            told = read_curves(where / name / "curves.jsonl")
            made[name] = {
                "cpu_seconds_a_step": round((time.process_time() - cpu) / options.steps, 1),
                "wall_seconds_a_step": round((time.perf_counter() - wall) / options.steps, 1),
                "rollout_wall_seconds": told[-1]["rollout_seconds"],
                "episodes_played": len(played),
                "flat_groups": [line["flat_groups"] for line in told if "flat_groups" in line],
            }
            print(name, made[name], file=sys.stderr, flush=True)
    before, after = (made[name]["cpu_seconds_a_step"] for name in ("before", "after"))
    return {**msgspec.to_builtins(made), "ratio": round(before / after, 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=16)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.steps:
        tell({**of_steps(options), "hardware": machine()}, options.json)
        return
    directory, adapter = base_directory(), shipped_adapter("smol:static")
    tokenizer = load_tokenizer(directory, SMOL)
    layout = trained_layout(adapter) or "description-first"
    mix = Mix(kinds=KINDS, pool="dev", size=200)
    plays = [Play(scene, 0) for scene in draws(mix, options.episodes)]
    made: dict[str, Any] = {"episodes": options.episodes, "threads": options.threads}
    for name in ("generate", "kept"):
        model = load_model(directory, "bfloat16", adapter)
        stop = stop_tokens(tokenizer, model)
        backend: Backend = Sampler(model, stop) if name == "kept" else Prefilling(model, stop)
        scribe = ConversationEncoder(tokenizer, layout, tool_role(tokenizer), stop)
        roll_out(backend, scribe, plays[:1], 0.0, Limits(turn=2, episode=1))  # warm up
        if isinstance(backend, Sampler):
            backend.forget()
        cpu, wall = time.process_time(), time.perf_counter()
        found = roll_out(backend, scribe, plays, 0.0)
        made[name] = {
            "cpu_seconds": round(time.process_time() - cpu, 2),
            "wall_seconds": round(time.perf_counter() - wall, 2),
            "passed": sum(grade(each.episode).passed for each in found),
            "own_tokens": sum(sum(each.env_mask) for each in found),
        }
        print(name, made[name], file=sys.stderr, flush=True)
    # CPU time: other work on the machine has less of a part in it.
    made["ratio"] = round(made["generate"]["cpu_seconds"] / made["kept"]["cpu_seconds"], 2)
    made["ratio_wall"] = round(made["generate"]["wall_seconds"] / made["kept"]["wall_seconds"], 2)
    made["hardware"] = machine()
    tell(made, options.json)


def tell(made: dict[str, Any], file: Path | None) -> None:
    text = json.dumps(made, indent=1)
    print(text)
    if file:
        file.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()

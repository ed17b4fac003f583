"""What the quick path of `augment` saves: rows a second of both paths, on the same lines.

    python benchmarks/quick_path.py [--rows 2000] [--rounds 9] [--json FILE]

`data/augment_quick` renames OpenAI rows by their bytes; `data.augment.augmented` takes every row
apart, and serves all formats and all shifts. Both go over the same lines in turns, in one process,
after every list of tools has been met; of each the best turn counts, by CPU time. The lines
are those of `augment_speed.py`.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
from augment_speed import line
from machine import versions

from toolshift.core.tool import JSON
from toolshift.data.augment import Recipe, augmented
from toolshift.data.augment_quick import Quick

RECIPES = {
    "names": Recipe(alpha=1.0, shifts=("SBP",)),
    "texts of tools": Recipe(alpha=1.0, shifts=("description_paraphrase",)),
    "names, at alpha 0.3": Recipe(alpha=0.3, shifts=("SBP",)),
    "nothing is shifted (alpha 0)": Recipe(alpha=0.0, shifts=("SBP",)),
}


def plain(raw: bytes, recipe: Recipe) -> bytes:
    """A line by the path of all formats."""
    made = augmented(msgspec.json.decode(raw), raw, recipe)
    return b"\n".join(map(JSON.encode, made.rows)) or raw


def both(recipe: Recipe) -> dict[str, Callable[[bytes], bytes]]:
    """What makes a line by each path."""
    quick = Quick(recipe)

    def first_quick(raw: bytes) -> bytes:
        found = quick.line(raw)
        return plain(raw, recipe) if found is None else found[0]

    return {"plain": lambda raw: plain(raw, recipe), "quick": first_quick}


def rates(recipe: Recipe, lines: list[bytes], rounds: int) -> dict[str, float]:
    """Lines a second by each path, and the ratio."""
    paths = both(recipe)
    for raw in lines:
        said = [json.loads(work(raw)) for work in paths.values()]
        if said[0] != said[1]:
            raise SystemExit(f"the two paths differ: {raw[:200]!r}")
    best = dict.fromkeys(paths, float("inf"))
    for _ in range(rounds):
        for name, work in paths.items():
            begun = time.process_time()
            for raw in lines:
                work(raw)
            best[name] = min(best[name], time.process_time() - begun)
    found = {name: round(len(lines) / seconds) for name, seconds in best.items()}
    return {**found, "plain_of_quick": round(best["quick"] / best["plain"], 2)}


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    lines = [line(seed) for seed in range(options.rows)]
    found = {name: rates(recipe, lines, options.rounds) for name, recipe in RECIPES.items()}
    for name, row in found.items():
        print(f"{name:30} {row}")
    if options.json:
        command = f"quick_path.py --rows {options.rows} --rounds {options.rounds}"
        made = {"command": command, "rows_a_second": found, **versions()}
        options.json.write_text(json.dumps(made, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()

"""How fast renaming is: conversations a second, beside orjson reading and writing the same lines.

    python benchmarks/augment_speed.py [--rows 20000] [--out FILE]

Both in one process, in turns, on conversations of about 2.6 KB with twenty lists of tools; every
call that is written is validated. Beside them, where `datasets` is installed, its `map` with a
function that changes nothing, one that reads and writes every column, and `toolshift.augment` on
the same data set, which goes through `map`. Rates are of the processor's time; other work on the
machine still takes its share of the caches.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from random import Random
from typing import Any

import msgspec

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from conversations import arguments, tools

from toolshift import augment
from toolshift.core.tool import JSON
from toolshift.data.augment import Recipe, augmented
from toolshift.data.augment_quick import Quick

RECIPE = Recipe(alpha=1.0, shifts=("SBP",))
QUICK = Quick(RECIPE)


def line(seed: int) -> bytes:
    """A conversation of about 2.6 KB; every twentieth has the same tools."""
    offered = tools(Random(seed % 20))
    rng = Random(seed)
    said = [{"role": "user", "content": f"Request {seed}: " + "please do what I ask. " * 6}]
    for turn in range(3):
        one = rng.choice(offered)
        inner = {"name": one["name"], "arguments": json.dumps(arguments(rng, one))}
        call = {"id": f"c{turn}", "type": "function", "function": inner}
        said.append({"role": "assistant", "content": "", "tool_calls": [call]})
        told = json.dumps({"ref": seed, "text": "as it was found " * 6})
        said.append({"role": "tool", "tool_call_id": f"c{turn}", "content": told})
    said.append({"role": "assistant", "content": "Done, as you can see."})
    wrapped = [{"type": "function", "function": each} for each in offered]
    return json.dumps({"id": seed, "messages": said, "tools": wrapped}).encode()


def rename(raw: bytes) -> bytes:
    """A line renamed, with validation."""
    found = QUICK.line(raw)
    if found is not None:
        return found[0]
    made = augmented(msgspec.json.decode(raw), raw, RECIPE)
    return b"".join(map(JSON.encode, made.rows)) or raw


def rate(work: Callable[[bytes], bytes], rows: list[bytes]) -> float:
    """Lines a second."""
    begun = time.process_time()
    for row in rows:
        work(row)
    return len(rows) / (time.process_time() - begun)


def mapped(rows: list[bytes]) -> dict[str, float]:
    """Rows a second of `datasets.map` with nothing to do, and of ours on a data set."""
    try:
        import datasets
    except ImportError:
        return {}
    datasets.disable_progress_bars()
    datasets.disable_caching()
    found = []
    for row in map(json.loads, rows):
        for said in row["messages"]:
            said.setdefault("tool_calls", None)
            said.setdefault("tool_call_id", None)
        found.append({**row, "tools": json.dumps(row["tools"])})
    data = datasets.Dataset.from_list(found)
    known, size = data.column_names, 256

    def copied(batch: Mapping[str, Any]) -> dict[str, Any]:
        return {name: list(batch[name]) for name in known}

    works = {
        "datasets.map, nothing to do": lambda: data.map(lambda batch: batch, batched=True),
        "datasets.map, columns copied": lambda: data.map(
            copied, batched=True, batch_size=size, remove_columns=known
        ),
        "toolshift.augment(dataset)": lambda: augment(data, alpha=1.0, shifts=("SBP",)),
    }
    works["toolshift.augment(dataset)"]()  # every list of tools is looked at once
    rates = {}
    for name, work in works.items():
        begun = time.process_time()
        work()
        rates[name] = len(rows) / (time.process_time() - begun)
    return rates


def main() -> None:
    """Prints both rates and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    count = options.rows
    rows = [line(seed) for seed in range(count)]
    begun = time.process_time()
    for row in rows:  # every list of tools is looked at once under every draw
        rename(row)
    first = time.process_time() - begun
    try:
        import orjson

        peer, name = (lambda raw: orjson.dumps(orjson.loads(raw))), "orjson"
    except ImportError:
        peer, name = (lambda raw: JSON.encode(msgspec.json.decode(raw))), "msgspec"
    theirs, ours = [], []
    for begin in range(0, count, max(1, count // 5)):
        part = rows[begin : begin + count // 5]
        theirs.append(rate(peer, part))
        ours.append(rate(rename, part))
    best, own = sorted(theirs)[len(theirs) // 2], sorted(ours)[len(ours) // 2]
    size = sum(map(len, rows)) / count
    print(f"{count:,} conversations of {size:,.0f} bytes; medians of {len(ours)} turns")
    print(f"{name} read and write   {best:12,.0f} a second")
    print(f"toolshift, renaming     {own:12,.0f} a second: {own / best:.3f} of it")
    print(f"first pass: {first:.2f} seconds, with {QUICK.known} lists of tools under a draw")
    sets = mapped(rows[: count // 4])
    for what, each in sets.items():
        print(f"{what:30}{each:8,.0f} a second")
    if options.out:
        told = {
            "command": f"python benchmarks/augment_speed.py --rows {count}",
            "bytes_a_row": round(size),
            "rows_a_second": {f"{name}, read and write": round(best), "renaming": round(own)}
            | {what: round(each) for what, each in sets.items()},
            "of_it": round(own / best, 3),
            "of_it_by_turn": [round(o / t, 3) for o, t in zip(ours, theirs, strict=True)],
            "first_pass": {"lists_under_a_draw": QUICK.known, "seconds": round(first, 2)},
            "machine": {
                "machine": platform.machine(),
                "cores": os.cpu_count(),
                "python": platform.python_version(),
                "load": [round(each, 1) for each in os.getloadavg()],
            },
            "versions": {each: _version(each) for each in ("orjson", "msgspec", "datasets")},
        }
        options.out.write_text(json.dumps(told, indent=1) + "\n")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


if __name__ == "__main__":
    main()

"""How the time to read a text of others grows, up to a megabyte, for every reader of such texts.

    python benchmarks/growing_texts.py [--reader prose] [--worst 4] [--json FILE]

The readers and the texts are those of `tests/test_linear.py`: one thing over and again, some after
a beginning that asks for an end which never comes. For each reader the texts that take longest at
16,000 characters are read at 250,000, 500,000 and 1,000,000. The exponent is the slope of the
logarithm of CPU time over that of the length, by least squares; 1 is linear. A reader that is
stopped by a limit of its own takes no longer for more.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from statistics import linear_regression
from typing import Any

from machine import versions
from tqdm import tqdm

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from test_linear import READERS, _seconds, _texts  # noqa: E402 - from the tests

FIRST = 16_000
LENGTHS = (250_000, 500_000, 1_000_000)


def grown(reader: str, worst: int) -> list[dict[str, Any]]:
    """The texts that take longest, with their seconds at each length and the exponent."""
    read = READERS[reader]
    first = {name: _seconds(read, text) for name, text in _texts(FIRST).items()}
    rows = []
    for name in sorted(first, key=lambda name: -first[name])[:worst]:
        took = [max(_seconds(read, _texts(length)[name]), 1e-6) for length in LENGTHS]
        slope = linear_regression([math.log(n) for n in LENGTHS], [math.log(t) for t in took]).slope
        rows.append(
            {"text": name, "seconds": [round(t, 4) for t in took], "exponent": round(slope, 2)}
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--reader", action="append", choices=READERS, help="only this one; repeat")
    parser.add_argument("--worst", type=int, default=4, help="texts of each that are made long")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    found = {}
    for reader in tqdm(options.reader or list(READERS), disable=None):
        found[reader] = grown(reader, options.worst)
        slowest = max(found[reader], key=lambda row: row["seconds"][-1])
        steepest = max(found[reader], key=lambda row: row["exponent"])
        tqdm.write(
            f"{reader:28} {slowest['seconds'][-1]:7.2f} s a megabyte of {slowest['text']!r:20}"
            f" largest exponent {steepest['exponent']:5.2f} ({steepest['seconds'][-1]:.2f} s)"
        )
        if options.json:
            text = json.dumps({**versions(), "lengths": LENGTHS, "readers": found})
            options.json.write_text(text + "\n")


if __name__ == "__main__":
    main()

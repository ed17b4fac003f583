"""Fuzzes the readers of what others write, by number or guided by coverage; see `targets`.

    python tests/fuzz/run.py --cases 100000           # over all targets, from where it stopped
    python tests/fuzz/run.py --target traces --number 4711    # one case again
    python tests/fuzz/run.py --target traces --atheris 60     # seconds, guided by coverage

Every case has a number, from which it is made. Totals are kept in `build/fuzz/totals.json`, and
what was found in `build/fuzz/found/`. What is mended goes as a case into `tests/fuzz/found.jsonl`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))
SLOWEST = 2.0
"""Seconds of CPU that one case may take; the longest texts have some 20,000 characters."""
BUILD = ROOT / "build" / "fuzz"


def numbered(name: str, number: int) -> Random:
    """The choices of a case."""
    return Random(f"{name} {number}")


class Slow(Exception):
    """A case took long for its size."""


def tried(check: Any, given: Any) -> None:
    """Runs one case.

    Raises:
        Slow: where it takes long.
    """
    start = time.process_time()
    check(given)
    took = time.process_time() - start
    if took > SLOWEST:
        raise Slow(f"{took:.1f} s")


def place_of(fault: BaseException) -> str:
    """Where a fault arose: cases that fail at one place are one finding."""
    frames = [f for f in traceback.extract_tb(fault.__traceback__) if "/toolshift/" in f.filename]
    frames = frames or traceback.extract_tb(fault.__traceback__)
    return f"{type(fault).__name__} {Path(frames[-1].filename).name}:{frames[-1].lineno}"


def note(
    name: str, number: int | str, given: Any, fault: BaseException, seen: Counter[str]
) -> None:
    """Keeps a finding; of each place the first one only."""
    key = f"{name}: {place_of(fault)}"
    seen[key] += 1
    if seen[key] > 1:
        return
    folder = BUILD / "found"
    folder.mkdir(parents=True, exist_ok=True)
    told = "".join(traceback.format_exception(fault))
    file = folder / f"{name}-{number}.txt"
    file.write_text(f"{key}\n{given!r:.5000}\n{told}"[:20_000], "utf-8", "backslashreplace")
    print(f"{key} (case {number}): {fault!s:.200}".encode("ascii", "backslashreplace").decode())
    sys.stdout.flush()


def fuzz(names: list[str], cases: int) -> int:
    """Runs so many cases, spread over targets by their shares; returns how many findings."""
    from fuzz.targets import TARGETS

    file = BUILD / "totals.json"
    totals: dict[str, int] = json.loads(file.read_text()) if file.exists() else {}
    whole = sum(TARGETS[name].share for name in names)
    left = {name: max(1, cases * TARGETS[name].share // whole) for name in names}
    seen: Counter[str] = Counter()
    BUILD.mkdir(parents=True, exist_ok=True)
    begun = said = time.monotonic()
    try:
        while any(left.values()):
            for name in names:
                batch = min(left[name], 20 * TARGETS[name].share)
                first = totals.get(name, 0)
                for number in range(first, first + batch):
                    given = TARGETS[name].make(numbered(name, number))
                    try:
                        tried(TARGETS[name].check, given)
                    except Exception as fault:
                        note(name, number, given, fault, seen)
                totals[name] = first + batch
                left[name] -= batch
            if time.monotonic() - said > 60:
                said = time.monotonic()
                file.write_text(json.dumps(totals, indent=1))
                print(f"{sum(totals.values()):,} cases in all, {said - begun:.0f} s", flush=True)
    finally:
        file.write_text(json.dumps(totals, indent=1))
        for key, count in seen.items():
            print(f"{count:7d} {key}")
        print(f"{sum(totals.values()):,} cases in all, {len(seen)} findings")
    return len(seen)


def guided(name: str, seconds: int) -> None:
    """Runs one target under atheris, which draws its choices from bytes by coverage."""
    import atheris

    with atheris.instrument_imports(include=["toolshift"]):
        from fuzz.targets import TARGETS

    class Choices(Random):
        """A generator that reads the bytes of the fuzzer; zeros where they have run out."""

        def __new__(cls, raw: bytes) -> Choices:
            return super().__new__(cls)

        def __init__(self, raw: bytes) -> None:
            super().__init__(0)
            self.bytes = atheris.FuzzedDataProvider(raw)

        def random(self) -> float:
            return min(self.bytes.ConsumeProbability(), 1 - 2**-53)

        def getrandbits(self, k: int) -> int:
            return int(self.bytes.ConsumeUInt((k + 7) // 8)) & ((1 << k) - 1)

    seen: Counter[str] = Counter()
    count = 0

    def once(raw: bytes) -> None:
        nonlocal count
        count += 1
        given = TARGETS[name].make(Choices(raw))
        try:
            tried(TARGETS[name].check, given)
        except Exception as fault:
            note(name, f"guided-{count}", given, fault, seen)
        if count % 1000 == 0:
            (BUILD / f"guided-{name}.txt").write_text(f"{count}\n")

    corpus = BUILD / "corpus" / name
    corpus.mkdir(parents=True, exist_ok=True)
    words = [sys.argv[0], f"-max_total_time={seconds}", "-max_len=2000", "-rss_limit_mb=4000"]
    atheris.Setup([*words, str(corpus)], once)
    atheris.Fuzz()


def main() -> None:
    """Reads what is asked for; ends with 1 where something was found."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--target", action="append", help="one of them; repeat")
    parser.add_argument("--cases", type=int, default=100_000, help="in all")
    parser.add_argument("--number", type=int, help="one case again")
    parser.add_argument("--atheris", type=int, help="seconds, guided by coverage")
    options = parser.parse_args()
    if options.atheris and len(options.target or ()) == 1:
        guided(options.target[0], options.atheris)
        return
    from fuzz.targets import TARGETS

    names = options.target or list(TARGETS)
    if options.atheris:  # it ends its process
        for name in names:
            words = [sys.executable, __file__, "--target", name, "--atheris", str(options.atheris)]
            subprocess.run(words, check=False)
        return
    if options.number is None:
        sys.exit(1 if fuzz(names, options.cases) else 0)
    for name in names:
        given = TARGETS[name].make(numbered(name, options.number))
        print(f"{given!r}".encode("ascii", "backslashreplace").decode())
        tried(TARGETS[name].check, given)


if __name__ == "__main__":
    main()

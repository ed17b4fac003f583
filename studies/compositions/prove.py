"""Whether the oracle solves every legal composition of shifts: all pairs, and 20,000 triples.

    python studies/compositions/prove.py [--triples 20000] [--again]

Each pair is composed on two tasks of each world, each triple on one task of one world; severities
and tasks are drawn from a seed. A composition is refused with a reason (`NotApplicable`), or the
oracle solves it, or rightly refuses it, through what is shown. Writes `results.json.gz` after every
few hundred, so that a run that was stopped goes on, and `README.md`. Exits with 1 where one is
none of these.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

from rich.progress import track

from toolshift.core import seed as seeds
from toolshift.core.files import pack
from toolshift.core.scene import Applied, Stack
from toolshift.core.shift import NotApplicable
from toolshift.episode.draw import make_scene
from toolshift.runs.cell import write_stack
from toolshift.runs.check import oracle_fails
from toolshift.shifts.registry import UNPROVEN, compose, find_shift, shifts
from toolshift.worlds.registry import find_world

WORLDS = ("poi", "retail", "medical")
PAIR_TASKS = 2
STEP = 250
STORED = Path(__file__).with_name("results.json.gz")


def drawn(names: tuple[str, ...], world: str, number: int) -> tuple[Stack, str, int]:
    """A stack of these shifts at drawn severities, and a drawn task of a world."""
    rng = seeds.rng("compositions", *names, world, number)
    stack = tuple(Applied(name, rng.choice(find_shift(name).severities)) for name in names)
    return stack, rng.choice(list(find_world(world).kinds)), rng.randrange(20)


def pairs() -> Iterator[tuple[Stack, str, str, int]]:
    """Every pair of shifts, on a few tasks of each world."""
    for names in combinations(sorted(shifts()), 2):
        for world in WORLDS:
            for number in range(PAIR_TASKS):
                stack, kind, index = drawn(names, world, number)
                yield stack, world, kind, index


def triples(count: int) -> Iterator[tuple[Stack, str, str, int]]:
    """Triples of shifts, drawn from a seed, each on one task of one world."""
    every = sorted(shifts())
    for number in range(count):
        rng = seeds.rng("triples", number)
        names = tuple(sorted(rng.sample(every, 3)))
        world = rng.choice(WORLDS)
        stack, kind, index = drawn(names, world, number)
        yield stack, world, kind, index


def outcome(stack: Stack, world: str, kind: str, index: int) -> tuple[str, str]:
    """What becomes of a composition: "solved", "refused by the oracle", "illegal" or "broken"."""
    try:
        scene = compose(make_scene(find_world(world), kind, index), stack)
        fault = oracle_fails(scene)
    except NotApplicable as reason:
        return "illegal", str(reason)
    except Exception as crash:
        return "broken", f"{world}/{kind}/{index}: {type(crash).__name__}: {crash}"
    if fault:
        return "broken", fault
    return ("solved" if scene.solvable else "refused by the oracle"), ""


def prove(what: str, found: list[tuple[Stack, str, str, int]], stored: dict[str, Any]) -> None:
    """Goes through the compositions that are left, and writes."""
    kept: dict[str, Any] = stored.setdefault(
        what, {"done": 0, "counts": {}, "reasons": {}, "broken": [], "legal": []}
    )
    counts, reasons, legal = Counter(kept["counts"]), Counter(kept["reasons"]), set(kept["legal"])
    begun = time.time()
    for number in track(range(kept["done"], len(found)), what):
        stack, *task = found[number]
        end, why = outcome(stack, *task)
        counts[end] += 1
        if end == "illegal":
            reasons[re.sub(r"\w*_\w+", "NAME", why)] += 1
        elif end == "broken":
            kept["broken"].append(f"{write_stack(stack)} on {why}")
        elif len(stack) == 2:
            legal.add("+".join(applied.shift for applied in stack))
        if number + 1 == len(found) or (number + 1) % STEP == 0:
            kept |= {
                "done": number + 1,
                "counts": dict(sorted(counts.items())),
                "reasons": dict(reasons.most_common()),
                "legal": sorted(legal),
                "seconds": round(kept.get("seconds", 0) + time.time() - begun, 1),
            }
            begun = time.time()
            STORED.write_bytes(pack(json.dumps(stored, indent=1).encode() + b"\n"))


def page(stored: dict[str, Any]) -> str:
    """The page."""
    lines = [
        "# Compositions",
        "",
        "Every pair of shifts on two tasks of each of three worlds, and 20,000 triples on one",
        "task each; shifts, severities and tasks are drawn from a seed",
        "(`python studies/compositions/prove.py`, figures: `results.json.gz`). Illegal: refused",
        "with a reason, and not run. Broken: the oracle neither solves it nor rightly refuses it.",
        "",
        "| | compositions | solved | rightly refused | illegal | broken |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for what in ("pairs", "triples"):
        counts = stored[what]["counts"]
        ends = ("solved", "refused by the oracle", "illegal", "broken")
        figures = " | ".join(f"{counts.get(end, 0):,}" for end in ends)
        lines.append(f"| {what} | {stored[what]['done']:,} | {figures} |")
    pairs, legal = len(list(combinations(stored["versions"], 2))), len(stored["pairs"]["legal"])
    caught = stored["triples"]["reasons"].get(UNPROVEN, 0)
    lines += [
        "",
        f"{legal:,} of {pairs:,} pairs have a legal scene among those tried. Of the triples",
        f"{caught} are illegal by the last rule alone: no declared reason held, but the oracle",
        "could not solve the scene. All, by reason:",
        "",
        "| reason | pairs | triples |",
        "|---|--:|--:|",
    ]
    both = Counter(stored["pairs"]["reasons"]) + Counter(stored["triples"]["reasons"])
    for reason, _ in both.most_common():
        row = (stored[what]["reasons"].get(reason, 0) for what in ("pairs", "triples"))
        lines.append(f"| {reason} | {' | '.join(f'{number:,}' for number in row)} |")
    return "\n".join([*lines, ""])


def main() -> None:
    """Proves pairs, then triples."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--triples", type=int, default=20_000)
    parser.add_argument("--again", action="store_true", help="from the beginning")
    options = parser.parse_args()
    versions = {name: found.version for name, found in sorted(shifts().items())}
    stored = (
        json.loads(gzip.decompress(STORED.read_bytes()))
        if STORED.exists() and not options.again
        else {}
    )
    if stored.get("versions") != versions:
        stored = {"versions": versions}
    prove("pairs", list(pairs()), stored)
    prove("triples", list(triples(options.triples)), stored)
    STORED.with_name("README.md").write_text(page(stored))
    broken = [each for what in ("pairs", "triples") for each in stored[what]["broken"]]
    for what in ("pairs", "triples"):
        print(what, stored[what]["counts"], f"{stored[what]['seconds']} s")
    print(*broken[:20], sep="\n")
    raise SystemExit(1 if broken else 0)


if __name__ == "__main__":
    main()

"""Whether the causes that the instrument names are those that were planted.

    python studies/instrument/confusion.py [--suite standard] [--seeds 3] [--tasks 2] [--workers 2]

Plays every planted agent, at full and at half strength and in mixtures, and the sound oracle, over
a suite; counts the causes named, in all and under each shift. Writes `confusion.json` and
`confusion.md` beside this file, and for each shift `by_shift.json` and `by_shift.md`. What is
done is kept in `build/confusion.jsonl` until the end, so that a run that was stopped goes on.
Exits with 1 where a planted weakness is not ranked first, or the oracle fails anywhere.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib.metadata import version
from itertools import combinations, groupby
from pathlib import Path

from toolshift.agents.catalog import make_agent
from toolshift.agents.planted import ALSO_RIGHT, PLANTED
from toolshift.episode.causes import CAUSES
from toolshift.episode.episode import Episode
from toolshift.episode.grade import grade
from toolshift.measure.metrics import shift_of
from toolshift.runs.cell import Cell, build
from toolshift.runs.plan import make_plan
from toolshift.runs.suite import Selection, select

GENERAL = tuple(PLANTED)[: tuple(PLANTED).index("noisy") + 1]
"""The weaknesses that many shifts find; those after them show under one or two shifts alone."""
ENOUGH = 5
"""Failures from which the commonest cause under one shift says something."""
Counts = dict[tuple[str, str], Counter[str]]
"""The causes named, by agent and shift; "" counts the passes."""
Rows = list[tuple[str, str, dict[str, int]]]
"""The same as it stands in a file."""
PARTIAL = Path(__file__).parents[2] / "build" / "confusion.jsonl"
MIXED = [f"{a}+{b}" for a, b in combinations(GENERAL, 2) if "always_refuses" not in (a, b)]


def agents() -> list[str]:
    """The sound agent, every weakness at full and half strength, and the mixtures."""
    return ["oracle", *PLANTED, *(f"{name}@0.5" for name in PLANTED), *MIXED]


def causes(cells: list[Cell]) -> Counts:
    """The causes named for each agent under each shift, over some cells."""
    found: Counts = defaultdict(Counter)
    for cell in cells:
        scene = build(cell)
        for name in agents():
            episode = Episode(scene)
            make_agent(name).play(episode)
            found[name, shift_of(cell) or "clean"][grade(episode).cause] += 1
    return found


def first_of(counts: Counter[str]) -> str:
    """The commonest cause; "" where nothing failed."""
    failures = Counter({cause: n for cause, n in counts.items() if cause})
    return failures.most_common(1)[0][0] if failures else ""


def expected(name: str) -> set[str]:
    """The causes that a valid instrument may rank first for an agent."""
    if name == "oracle":
        return {""}
    parts = [part.split("@")[0] for part in name.split("+")]
    also = {ALSO_RIGHT[part] for part in parts if part in ALSO_RIGHT}
    return also | {PLANTED[part][1] for part in parts}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", default="standard")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tasks", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    begun = time.time()
    plan = make_plan(select(Selection(options.suite, seeds=options.seeds, tasks=options.tasks)))
    cells = sorted(plan.cells, key=lambda cell: (cell.seed, cell.lineage))
    parts = [
        list(rows)[start : start + 100]
        for _, group in groupby(cells, key=lambda cell: cell.seed)
        for rows in [list(group)]
        for start in range(0, len(rows), 100)
    ]
    counted: dict[tuple[str, int], Counter[str]] = defaultdict(Counter)
    under: Counts = defaultdict(Counter)
    for part, found in played(parts, options.workers):
        for (name, shift), counts in found.items():
            counted[name, part[0].seed] += counts
            under[name, shift] += counts
    rows, wrong = {}, []
    for name in agents():
        seeds = {seed: counts for (agent, seed), counts in counted.items() if agent == name}
        firsts = {seed: first_of(counts) for seed, counts in seeds.items()}
        counts = sum(seeds.values(), Counter())
        named = {cause: n for cause, n in counts.most_common() if cause}
        rows[name] = {
            "first": first_of(counts),
            "first in each seed": firsts,
            "passes": counts[""],
            "causes": named,
        }
        if not {first_of(counts), *firsts.values()} <= expected(name):
            wrong.append(name)
    report = {
        "command": f"python studies/instrument/confusion.py --suite {options.suite} "
        f"--seeds {options.seeds} --tasks {options.tasks}",
        "episodes of each agent": len(cells),
        "not ranked first": wrong,
        "agents": rows,
        "seconds": round(time.time() - begun),
        "versions": {"toolshift": version("toolshift"), "python": platform.python_version()},
    }
    here = Path(__file__)
    here.with_name("confusion.json").write_text(json.dumps(report, separators=(",", ":")) + "\n")
    here.with_name("by_shift.json").write_text(as_json(under))
    here.with_name("by_shift.md").write_text(by_shift(under))
    here.with_name("confusion.md").write_text(table(rows, len(cells)))
    print(here.with_name("confusion.md").read_text())
    print(f"not ranked first: {wrong or 'none'}; {report['seconds']} s")
    PARTIAL.unlink(missing_ok=True)
    raise SystemExit(1 if wrong else 0)


def played(parts: list[list[Cell]], workers: int) -> Iterator[tuple[list[Cell], Counts]]:
    """The counts of every part; a part that an earlier run has finished is read from its file."""
    by_key = {key_of(part): part for part in parts}
    kept = {key: as_counts(rows) for key, rows in earlier() if key in by_key}
    yield from ((by_key[key], found) for key, found in kept.items())
    todo = {key: part for key, part in by_key.items() if key not in kept}
    PARTIAL.parent.mkdir(exist_ok=True)
    with ProcessPoolExecutor(workers) as pool, PARTIAL.open("a") as file:
        jobs = {pool.submit(causes, part): key for key, part in todo.items()}
        for number, job in enumerate(as_completed(jobs), len(kept) + 1):
            key, found = jobs[job], job.result()
            rows = [[name, shift, counts] for (name, shift), counts in found.items()]
            print(json.dumps([key, rows]), file=file, flush=True)
            print(f"part {number} of {len(parts)}", flush=True)
            yield todo[key], found


def earlier() -> Iterator[tuple[str, Rows]]:
    """The parts that an earlier run has finished; a last line that is not whole is left out."""
    for line in PARTIAL.read_text().splitlines() if PARTIAL.exists() else ():
        try:
            key, rows = json.loads(line)
        except ValueError:
            continue
        yield key, rows


def as_counts(rows: Rows) -> Counts:
    """The counts of a line."""
    return {(name, shift): Counter(counts) for name, shift, counts in rows}


def key_of(part: list[Cell]) -> str:
    """The same for the same scenes, agents and version of the package."""
    said = f"{part} {agents()} {version('toolshift')}"
    return hashlib.sha256(said.encode()).hexdigest()[:16]


def table(rows: dict[str, dict[str, object]], episodes: int) -> str:
    """The confusion matrix: an agent a row, the causes of its failures in per cent."""
    used = [c for c in CAUSES if any(c in row["causes"] for row in rows.values())]  # type: ignore[operator]
    head = f"| agent | planted | passes | {' | '.join(used)} |\n"
    lines = [
        f"# Causes named for planted agents\n\n{episodes} episodes an agent; the causes are shares "
        "of its failures, in per cent. The planted weakness must be ranked first (bold), in the "
        "whole and in each seed.\n\n",
        head,
        "|---" * (len(used) + 3) + "|\n",
    ]
    for name, row in rows.items():
        counts: dict[str, int] = row["causes"]  # type: ignore[assignment]
        failed = sum(counts.values())
        shares = [f"{100 * counts.get(c, 0) / failed:.0f}" if counts.get(c) else "" for c in used]
        marked = [f"**{s}**" if c == row["first"] else s for c, s in zip(used, shares, strict=True)]
        planted = ", ".join(sorted(expected(name))) or "none"
        lines.append(f"| {name} | {planted} | {row['passes']} | {' | '.join(marked)} |\n")
    return "".join(lines)


def as_json(under: Counts) -> str:
    """The counts of every agent at full strength under every shift; "" counts the passes."""
    rows: dict[str, dict[str, Counter[str]]] = defaultdict(dict)
    for (name, shift), counts in under.items():
        if name in PLANTED:
            rows[shift][name] = counts
    return json.dumps(rows, separators=(",", ":")) + "\n"


def by_shift(under: Counts) -> str:
    """The confusion matrix under each shift, for the agents at full strength."""
    shifts = list(dict.fromkeys(shift for _, shift in under))
    failures = {
        (name, shift): Counter({cause: n for cause, n in under[name, shift].items() if cause})
        for name in PLANTED
        for shift in shifts
    }
    enough = {pair: counts for pair, counts in failures.items() if counts.total() >= ENOUGH}
    other = {
        pair: first_of(counts)
        for pair, counts in enough.items()
        if first_of(counts) != PLANTED[pair[0]][1]
    }
    whole = {name: sum((failures[name, shift] for shift in shifts), Counter()) for name in PLANTED}
    failing = [name for name in PLANTED if whole[name]]
    right = [name for name in failing if first_of(whole[name]) == PLANTED[name][1]]
    lines = [
        "# Causes named under each shift\n\n"
        f"The commonest cause is the planted one for {len(right)} of the {len(failing)} agents "
        f"that failed, over all shifts, and for {len(enough) - len(other)} of {len(enough)} pairs "
        "of an agent and a "
        f"shift with at least {ENOUGH} failures. A cell has the failures, and of these the share "
        "with the planted cause in per cent; where another cause is commonest, its name. Empty: "
        "none failed. Counts: `by_shift.json`.\n\n",
        f"| shift | {' | '.join(PLANTED)} |\n",
        "|---" * (len(PLANTED) + 1) + "|\n",
    ]
    for shift in shifts:
        cells = [_cell(name, failures[name, shift]) for name in PLANTED]
        lines.append(f"| {shift} | {' | '.join(cells)} |\n")
    lines += [
        "\n## Where another cause is commonest\n\n",
        "| agent | planted | shifts |\n|---|---|---|\n",
    ]
    for name in dict.fromkeys(name for name, _ in other):
        named = ", ".join(f"{shift} ({other[n, shift]})" for n, shift in other if n == name)
        lines.append(f"| {name} | {PLANTED[name][1]} | {named} |\n")
    return "".join(lines)


def _cell(name: str, failures: Counter[str]) -> str:
    if not failures:
        return ""
    first, planted = first_of(failures), PLANTED[name][1]
    share = f"{failures.total()}: {100 * failures[planted] / failures.total():.0f}"
    return share if first == planted else f"{share} {first}"


if __name__ == "__main__":
    main()

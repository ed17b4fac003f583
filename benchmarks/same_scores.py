"""Whether scores have moved: the same episodes, made by an older commit and by this one.

    python benchmarks/same_scores.py --before 46c7003 --suite quick@1
    python benchmarks/same_scores.py --before 46c7003 --suite standard@1 --tasks 22

Both sides run in processes of their own, through the command line and the names that `toolshift`
exports, so that modules may have moved in between. Compared are the episodes of the oracle and of
every planted agent line by line (but for the names in `RENAMED`), what an agent is shown in every
scene, by hash, and rows of training data, by hash. Exit code 1 where anything differs.

Shifts are compared at the versions that the older commit has. A suite such as `quick@1`, of
which the older commit knows no versions, is its `quick`; `quick` itself has newer shifts today.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
WORLDS = ("poi", "retail", "medical")
RENAMED = {"forced_completion": "answered_without_evidence", "over_refusal": "wrong_refusal"}
"""Names that were changed since, old to new: the same verdict in other words."""

SHOWN = """
import hashlib, json, sys
from toolshift import Episode, NotApplicable, apply, find_world, make_agent, make_scene
seen = {}
for world in sys.argv[2:]:
    for kind in find_world(world).kinds:
        for stack in [""] + sys.argv[1].split(","):
            scene = make_scene(find_world(world), kind, 0)
            try:
                if stack:
                    scene = apply(scene, stack, 2)
                episode = Episode(scene)
                texts = [episode.observation]
                make_agent("oracle").play(episode)
                texts.append(episode.observation)
                shown = json.dumps([[list(t.messages), list(t.tools)] for t in texts])
            except NotApplicable as reason:
                shown = f"not applicable: {reason}"
            name = stack.partition("@")[0]
            seen[f"{world}/{kind} {name}"] = hashlib.sha256(shown.encode()).hexdigest()[:16]
print(json.dumps(seen))
"""


def run(source: Path, *command: str, cwd: Path) -> str:
    """The output of a Python command, with the package taken from `source`."""
    env = {**os.environ, "PYTHONPATH": str(source), "PYTHONHASHSEED": "0"}
    done = subprocess.run(
        [sys.executable, *command], cwd=cwd, env=env, capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 1):
        raise SystemExit(f"{source}: {' '.join(command)[:200]}\n{done.stderr[-2000:]}")
    return done.stdout


def agents(source: Path, cwd: Path) -> list[str]:
    """The oracle and every planted agent of a side."""
    rows: list[dict[str, Any]] = json.loads(
        run(source, "-m", "toolshift", "list", "agents", "--json", cwd=cwd)
    )
    names = [str(row["agent"]) for row in rows]
    return [name for name in names if re.fullmatch(r"[a-z_]+", name) and name != "smol"]


def has(source: Path, what: str, name: str, cwd: Path) -> bool:
    """Whether a side lists this suite."""
    rows: list[dict[str, Any]] = json.loads(
        run(source, "-m", "toolshift", "list", f"{what}s", "--json", cwd=cwd)
    )
    return any(row[what] == name for row in rows)


def episodes(source: Path, suite: str, tasks: int, names: list[str], cwd: Path) -> dict[str, str]:
    """The stored episodes of a side by their id, as text."""
    found: dict[str, str] = {}
    if not has(source, "suite", suite, cwd):
        suite = suite.partition("@")[0]
    for world in WORLDS:
        out = cwd / f"{suite}-{world}"
        some = ["--tasks", str(tasks)] if tasks else []
        who = [part for name in names for part in ("--agent", name)]
        run(
            source, "-m", "toolshift", "run", *who, "--suite", suite, "--world", world, *some,
            "--out", str(out), "--workers", "2", cwd=cwd,
        )  # fmt: skip
        packed = out / "episodes.jsonl.gz"
        text = (
            gzip.decompress(packed.read_bytes()).decode()
            if packed.exists()
            else (out / "episodes.jsonl").read_text()
        )
        for line in text.splitlines():
            found[json.loads(line)["episode"]] = line
    return found


def rows(source: Path, cwd: Path) -> str:
    """The hash of a small set of training data."""
    out = cwd / "rows.jsonl"
    run(
        source,
        "-m",
        "toolshift",
        "data",
        "--count",
        "60",
        "--alpha",
        "0.5",
        "--out",
        str(out),
        cwd=cwd,
    )
    text = re.sub(r"(?<=\w)@1(?=[:+])", "", out.read_text())
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def renamed(line: str) -> str:
    """A line with the names of today; a shift without its version."""
    for old, new in RENAMED.items():
        line = line.replace(f'"{old}"', f'"{new}"')
    return re.sub(r'("shift": ?"\w+)@1"', r'\1"', line)


def differing(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """The keys whose texts differ, or that one side lacks."""
    return [
        key
        for key in sorted(before.keys() | after.keys())
        if renamed(before.get(key, "")) != renamed(after.get(key, ""))
    ]


def main() -> None:
    """Compares and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", default="46c7003", help="the commit to compare with")
    parser.add_argument("--suite", default="quick")
    parser.add_argument("--tasks", type=int, default=0, help="tasks of each world; 0: the suite's")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        old = Path(folder) / "before"
        subprocess.run(
            ["git", "worktree", "add", "--quiet", "--detach", str(old), options.before],
            cwd=ROOT, check=True,
        )  # fmt: skip
        try:
            sides = {"before": old / "src", "after": ROOT / "src"}
            work = {side: Path(folder) / f"runs-{side}" for side in sides}
            for place in work.values():
                place.mkdir()
            names = agents(sides["before"], work["before"])
            shifts = json.loads(
                run(sides["before"], "-m", "toolshift", "list", "shifts", "--json",
                    cwd=work["before"])
            )  # fmt: skip
            named = {
                "before": ",".join(row["shift"] for row in shifts),
                "after": ",".join(f"{row['shift']}@{row.get('version', 1)}" for row in shifts),
            }
            bad = 0
            shown = {
                side: json.loads(run(source, "-c", SHOWN, named[side], *WORLDS, cwd=work[side]))
                for side, source in sides.items()
            }
            bad += report("what agents are shown", shown)
            made = {
                side: episodes(source, options.suite, options.tasks, names, work[side])
                for side, source in sides.items()
            }
            bad += report(f"episodes of {len(names)} agents", made)
            hashes = {side: {"rows": rows(source, work[side])} for side, source in sides.items()}
            bad += report("training rows", hashes)
        finally:
            subprocess.run(
                ["git", "worktree", "remove", "--force", str(old)], cwd=ROOT, check=False
            )
    sys.exit(1 if bad else 0)


def report(what: str, sides: dict[str, dict[str, str]]) -> int:
    """Prints one comparison; returns how many differ."""
    before, after = sides["before"], sides["after"]
    found = differing(before, after)
    print(f"{what}: {len(before)} before, {len(after)} after, {len(found)} differ")
    for key in found[:5]:
        print(f"  {key}\n    {before.get(key, '-')[:400]}\n    {after.get(key, '-')[:400]}")
    kinds = Counter(key.split()[-1] for key in found)
    if len(found) > 5:
        print(f"  most: {kinds.most_common(5)}")
    return len(found)


if __name__ == "__main__":
    main()

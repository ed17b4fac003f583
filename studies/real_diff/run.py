"""The change between two published versions of real servers, from the diff to a measured answer.

    python studies/real_diff/run.py [--agent SPEC ...]

Needs node (npx) and the network. Writes `diffs.json` (what changed in each diff, how long it took)
and `answer.json` (what agents lose under the change of server-everything).
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
EVERYTHING = [f"@modelcontextprotocol/server-everything@{v}" for v in ("2025.9.25", "2026.8.31")]
FILESYSTEM = [f"@modelcontextprotocol/server-filesystem@{v}" for v in ("2025.7.1", "2026.8.31")]
OPENAPI = "@octokit/openapi"


def toolshift(*arguments: str | Path) -> str:
    """Runs the command line; returns what it prints."""
    command = [sys.executable, "-m", "toolshift", *map(str, arguments)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=1200)
    return done.stdout


def diff(old: str, new: str, *more: str | Path) -> dict[str, Any]:
    """A diff: its counts, its open questions and the seconds of the whole command."""
    begun = time.perf_counter()
    found = json.loads(toolshift("shift", "from-diff", old, new, "--json", *more))
    seconds = round(time.perf_counter() - begun, 2)
    kept = ("old", "new", "tier", "counts", "questions")
    return {**{key: found[key] for key in kept}, "seconds": seconds}


def openapi_sides(folder: Path) -> tuple[str, str]:
    """GitHub's OpenAPI document at two versions, from a package."""
    sides = []
    for version in ("16.6.0", "23.0.2"):
        command = ["npm", "pack", "--silent", f"{OPENAPI}@{version}"]
        subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL)
        name = "package/generated/api.github.com.json"
        with tarfile.open(folder / f"octokit-openapi-{version}.tgz") as packed:
            source = packed.extractfile(name)
            assert source is not None
            side = folder / f"github-{version}.json"
            with side.open("wb") as file:
                shutil.copyfileobj(source, file)
        sides.append(str(side))
    return sides[0], sides[1]


def measured(agents: list[str], folder: Path, change: Path) -> dict[str, Any]:
    """What agents lose: the tasks at the old version, clean and under the change."""
    install = ["npm", "install", "--silent", "--no-audit", "--no-fund", EVERYTHING[0]]
    subprocess.run(install, check=True, cwd=folder, stdout=subprocess.DEVNULL)
    world, run = folder / "tasks.yaml", folder / "run"
    shutil.copy(HERE / "tasks.yaml", world)
    named = [part for agent in agents for part in ("--agent", agent)]
    asked = ("--world", world, "--tasks", "7", "--shift", change, "--no-placebo", "--out", run)
    begun = time.perf_counter()
    report = json.loads(toolshift("run", *named, *asked, "--json"))
    seconds = round(time.perf_counter() - begun, 1)
    (HERE / "report.txt").write_text((run / "report.txt").read_text())
    shutil.copy(run / "episodes.jsonl", HERE / "episodes.jsonl")
    found = {
        agent["name"]: {
            "clean": agent["clean"]["accuracy"]["estimate"],
            "changed": agent["shifts"][0]["accuracy"]["estimate"],
            "drop": agent["shifts"][0]["drop"],
            "scenes": agent["shifts"][0]["episodes"],
        }
        for agent in report["agents"]
    }
    return {"agents": found, "not_applicable": report["skipped"], "seconds": seconds}


def main() -> None:
    """Runs all of it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--agent", action="append", default=[])
    agents = parser.parse_args().agent or ["oracle", "memorises_names"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        change = folder / "everything.json"
        started = [f"mcp:npx -y {package}" for package in EVERYTHING]
        # The older one declares no version of zod; with today's its schemas all come out empty.
        files = [
            f"mcp:npx -y -p zod@3 -p {FILESYSTEM[0]} mcp-server-filesystem {HERE}",
            f"mcp:npx -y {FILESYSTEM[1]} {HERE}",
        ]
        old, new = openapi_sides(folder)
        mapping = ("--mapping", HERE / "mapping.toml")
        found = {
            "server-everything, without answers": diff(*started, "--dry-run"),
            "server-everything": diff(*started, *mapping, "--out", change),
            "server-filesystem": diff(*files, "--dry-run"),
            "GitHub's OpenAPI": diff(old, new, "--dry-run"),
        }
        (HERE / "diffs.json").write_text(json.dumps(found, indent=1) + "\n")
        (HERE / "change.txt").write_text(toolshift("show", change))
        answer = measured(agents, folder, change)
        (HERE / "answer.json").write_text(json.dumps(answer, indent=1) + "\n")


if __name__ == "__main__":
    main()

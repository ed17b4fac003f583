"""Agents among 12, 50, 200 and 400 tools, with and without a search.

    python studies/many_tools/measure.py scripted   (minutes)
    python studies/many_tools/measure.py tokens     (how long the small model's prompts are)
    python studies/many_tools/measure.py model      (hours on busy cores; goes on where it stopped)
    python studies/many_tools/measure.py write      (results.json.gz, and the tables of the README)

Runs are kept in the folder `runs` beside this file, which is not in the repository.
"""

from __future__ import annotations

import gzip
import json
import os
import platform
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import toolshift
from toolshift.core.message import protocol_tools
from toolshift.core.tool import as_openai
from toolshift.episode.episode import Episode, messages
from toolshift.runs.cell import build
from toolshift.runs.suite import read_task

HERE = Path(__file__).parent
CONFIG: dict[str, Any] = json.loads((HERE / "config.json").read_text())
RUNS = HERE / "runs"
RESULTS = HERE / "results.json.gz"
MARK = "<!-- tables -->"


def under(count: int, shown: str) -> str:
    crowd = f"crowded_list_{count - CONFIG['own']}" if count > CONFIG["own"] else ""
    return "+".join(filter(None, (crowd, shown)))


def stages(part: str) -> Iterator[tuple[str, int, str]]:
    """The name of each run, the number of tools and how they are shown."""
    for label in CONFIG[part]["shown"]:
        for count in CONFIG["counts"]:
            yield f"{part}-{count}-{label.replace(' ', '-')}", count, label


def fits(longest: dict[str, Any], count: int, label: str) -> bool:
    """Whether the longest first prompt leaves room for the turns that follow it."""
    layout = CONFIG["model"]["layouts"][0]
    return longest[f"{count} {label} {layout}"] <= CONFIG["model"]["context"] - 1024


def run(part: str) -> None:
    of = CONFIG[part]
    longest = tokens() if part == "model" else {}
    for name, count, label in stages(part):
        if part == "model" and not fits(longest, count, label):
            print(f"{name}: the prompt does not fit", flush=True)
            continue
        begun = time.time()
        report = toolshift.evaluate(
            of["agents"],
            worlds=of["worlds"],
            tasks=of["tasks"],
            shifts=["clean"],
            placebo=False,
            seed=CONFIG["seed"],
            pool=CONFIG["pool"],
            under=under(count, of["shown"][label]),
            out=RUNS / name,
        )
        took = RUNS / f"{name}.seconds"
        if not took.exists():
            took.write_text(f"{time.time() - begun:.1f}\n")
        passed = {agent.name: agent.clean.accuracy.estimate for agent in report.agents}
        print(name, passed, f"{time.time() - begun:.0f} s", flush=True)


def tokens() -> dict[str, Any]:
    """The longest first prompt of the tasks, in tokens of the small model, by layout."""
    kept = RUNS / "tokens.json"
    if kept.exists():
        found: dict[str, Any] = json.loads(kept.read_text())
        return found
    from toolshift.lm.bases import SMOL, base_directory
    from toolshift.lm.checkpoint import load_tokenizer
    from toolshift.lm.prompt import render_system

    tokenizer = load_tokenizer(base_directory(SMOL), SMOL)
    rows: dict[str, Any] = {}
    for (label, shown), count, layout in product(
        CONFIG["model"]["shown"].items(), CONFIG["counts"], CONFIG["model"]["layouts"]
    ):
        lengths = []
        for kind in ("listing", "booking", "nearer"):
            scene = build(read_task(f"poi/{kind}", under=under(count, shown)))
            tools = [*map(as_openai, Episode(scene).tools), *protocol_tools()]
            first, ask = messages(scene, ())
            text = render_system(first["content"], tools, layout) + ask["content"]
            lengths.append(len(tokenizer(text)["input_ids"]))
        rows[f"{count} {label} {layout}"] = max(lengths)
        print(count, label, layout, max(lengths), flush=True)
    RUNS.mkdir(exist_ok=True)
    kept.write_text(json.dumps(rows))
    return rows


def rows() -> Iterator[dict[str, Any]]:
    for part in ("scripted", "model"):
        for name, count, label in stages(part):
            if not (RUNS / name / "manifest.json").exists():
                continue
            run_ = toolshift.read_run(RUNS / name)
            took = RUNS / f"{name}.seconds"
            for episode in run_.episodes:
                searches = [s for s in episode.steps if s.kind == "call" and s.tools]
                yield {
                    "part": part,
                    "tools": count,
                    "shown": label,
                    "agent": episode.agent,
                    "task": episode.task,
                    "passed": episode.grade.passed,
                    "void": episode.grade.void,
                    "cause": episode.grade.cause,
                    "end": episode.end,
                    "calls": episode.grade.calls,
                    "searches that found": len(searches),
                    "input_tokens": episode.usage.input_tokens,
                    "seconds": episode.seconds,
                    "stage_seconds": float(took.read_text()) if took.exists() else None,
                }


def interval(passed: int, of: int) -> str:
    """The share in percent with Wilson's 95% interval."""
    if not of:
        return "-"
    z, p = 1.96, passed / of
    middle, half = (p + z * z / (2 * of)), z * (p * (1 - p) / of + z * z / (4 * of * of)) ** 0.5
    low, high = ((middle + sign * half) / (1 + z * z / of) for sign in (-1, 1))
    return f"{100 * p:.0f} [{100 * low:.0f}, {100 * high:.0f}]"


def table(found: list[dict[str, Any]], part: str) -> str:
    agents = CONFIG[part]["agents"]
    lines = [f"| tools | shown | {' | '.join(agents)} |", "|---" * (2 + len(agents)) + "|"]
    for _, count, label in stages(part):
        cells = []
        for agent in agents:
            mine = [
                row
                for row in found
                if (row["part"], row["tools"], row["shown"], row["agent"])
                == (part, count, label, agent)
            ]
            passed = sum(row["passed"] for row in mine)
            causes = [row["cause"] for row in mine if row["cause"]]
            most = max(set(causes), key=lambda c: (causes.count(c), c)) if causes else ""
            said = most.replace("_", " ")
            none = (
                "not run" if part == "scripted" or fits(tokens(), count, label) else "does not fit"
            )
            cells.append(f"{interval(passed, len(mine))} {said}".strip() if mine else none)
        lines.append(f"| {count} | {label} | {' | '.join(cells)} |")
    return "\n".join(lines)


def write() -> None:
    found = list(rows())
    longest = tokens()
    about = {
        "toolshift": version("toolshift"),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "config": CONFIG,
        "longest prompts": longest,
    }
    content = json.dumps({**about, "rows": found}, indent=0).encode()
    RESULTS.write_bytes(gzip.compress(content, mtime=0))
    layouts = CONFIG["model"]["layouts"]
    lengths = [f"| tools | shown | {' | '.join(layouts)} |", "|---" * (2 + len(layouts)) + "|"]
    for _, count, label in stages("model"):
        cells = " | ".join(f"{longest[f'{count} {label} {layout}']:,}" for layout in layouts)
        lengths.append(f"| {count} | {label} | {cells} |")
    page = HERE / "README.md"
    before = page.read_text().partition(MARK)[0]
    parts = (
        "### Scripted agents: passed in percent [95% interval], commonest cause of failure",
        table(found, "scripted"),
        "### The small model: passed in percent [95% interval], commonest cause of failure",
        table(found, "model"),
        "### The longest first prompt, in tokens of the small model, by layout",
        "\n".join(lengths),
    )
    page.write_text(f"{before}{MARK}\n\n" + "\n\n".join(parts) + "\n")


if __name__ == "__main__":
    what = sys.argv[1] if len(sys.argv) > 1 else ""
    if what in ("scripted", "model"):
        run(what)
    elif what == "tokens":
        tokens()
    elif what == "write":
        write()
    else:
        sys.exit(__doc__)

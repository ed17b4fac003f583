"""Kills commands with kill -9 over and over, then lets them end: nothing is lost or done twice.

    python benchmarks/chaos.py --kills 200

The kills are spread over scripted agents with 1 and 8 workers, a function, a program, and
`augment`. Each command is started again after each kill, at a moment drawn by seed. What it leaves
must be what an undisturbed one leaves: the same episodes, as many timings, the same rows.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

AGENT = """
import time


def refuses(messages, tools):
    time.sleep(0.02)
    call = {"name": "refuse", "arguments": '{"reason": "not_found"}'}
    return {"content": "", "tool_calls": [{"function": call}]}
"""
PROGRAM = "print('I cannot do that: there is no such place.')\n"
SMALL = ["--tasks", "6", "--no-placebo", "--shift", "identity_erasure", "--shift", "fatal_error"]
COMMANDS = {
    "1 worker": ["run", "--agent", "oracle", "--agent", "noisy", *SMALL],
    "8 workers": ["run", "--agent", "oracle", "--agent", "noisy", *SMALL, "--workers", "8"],
    "a function": ["run", "--agent", "slow:refuses", *SMALL, "--concurrency", "3"],
    "a program": ["run", "--agent-command", f"{sys.executable} program.py", *SMALL],
    "augment": ["augment", "rows.jsonl", "--alpha", "0.5", "--shift", "identity_erasure"],
}


def start(folder: Path, words: list[str], out: str) -> subprocess.Popen[bytes]:
    """Starts a command in a process group of its own."""
    command = [sys.executable, "-m", "toolshift", *words, "--out", out]
    with (folder / "log.txt").open("ab") as log:
        return subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, start_new_session=True)


def left(path: Path) -> dict[str, list[str]]:
    """What a command has left: the lines of what it wrote, in any order that clocks decide."""
    if path.is_file():
        return {path.name[3:]: path.read_text().splitlines()}
    times = [json.loads(line)["episode"] for line in (path / "timings.jsonl").open()]
    return {
        "episodes": (path / "episodes.jsonl").read_text().splitlines(),
        "timings": sorted(times),
        "plan": (path / "plan.jsonl").read_text().splitlines(),
    }


def disturb(folder: Path, name: str, kills: int, draw: random.Random) -> int:
    """Kills one command again and again, at any moment; returns how often it was hit."""
    words, ending = COMMANDS[name], ".jsonl" if name == "augment" else ""
    before = time.monotonic()
    code = start(folder, words, f"one{ending}").wait()
    took = time.monotonic() - before
    assert code == 0, f"{name}: exit code {code}: {(folder / 'log.txt').read_text()[-2000:]}"
    hit = 0
    for number in range(kills):
        running = start(folder, words, f"two{ending}")
        with contextlib.suppress(subprocess.TimeoutExpired):
            running.wait(draw.uniform(0.1, 1.0) * took)
        hit += running.poll() is None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        if running.wait() == 0 and number < kills - 1:  # it has come to its end: begin again
            assert left(folder / f"two{ending}") == left(folder / f"one{ending}"), name
            subprocess.run(["rm", "-r", str(folder / f"two{ending}")], check=True)
    for _ in range(5):  # its last killer may have left a lock for a moment
        code = start(folder, words, f"two{ending}").wait()
        if code == 0:
            break
        time.sleep(1)
    assert code == 0, f"{name}: exit code {code}: {(folder / 'log.txt').read_text()[-2000:]}"
    assert left(folder / f"two{ending}") == left(folder / f"one{ending}"), name
    return hit


def main() -> None:
    """Runs all commands and says how many kills each has stood."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=200, help="in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=list(COMMANDS), action="append", help="repeat")
    options = parser.parse_args()
    names = options.only or list(COMMANDS)
    draw = random.Random(options.seed)
    total = 0
    for name in names:
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            (folder / "slow.py").write_text(AGENT)
            (folder / "program.py").write_text(PROGRAM)
            count = max(1, options.kills // len(names))
            data = ["data", "--count", "300"]
            assert start(folder, data, "rows.jsonl").wait() == 0
            hit = disturb(folder, name, count, draw)
        total += hit
        print(
            f"{name}: {count} kills, {hit} while it was at work; the totals are equal", flush=True
        )
    print(f"{total} kills at work in all")


if __name__ == "__main__":
    main()

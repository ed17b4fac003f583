"""Kills commands with kill -9 over and over, then lets them end: nothing is lost or done twice.

    python benchmarks/chaos.py --kills 200

The kills are spread over scripted agents with 1 and 8 workers, a function, a program, `augment`,
`train` and `watch`. Each command is started again after each kill, at a moment drawn by seed. What
it leaves must be what an undisturbed one leaves: the same episodes, as many timings, the same rows,
the same losses and weights. A `watch` keeps nothing: what it had printed must be the beginning of
what an undisturbed one prints.
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
from contextlib import ExitStack
from hashlib import sha256
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
SAVING = ["--steps", "12", "--save-every", "2"]
COMMANDS = {
    "1 worker": ["run", "--agent", "oracle", "--agent", "noisy", *SMALL],
    "8 workers": ["run", "--agent", "oracle", "--agent", "noisy", *SMALL, "--workers", "8"],
    "a function": ["run", "--agent", "slow:refuses", *SMALL, "--concurrency", "3"],
    "a program": ["run", "--agent-command", f"{sys.executable} program.py", *SMALL],
    "augment": ["augment", "rows.jsonl", "--alpha", "0.5", "--shift", "identity_erasure"],
    "train": ["train", "sft", "--data", "rows.jsonl", "--preset", "smoke", *SAVING],
    "watch": ["watch", "stream.jsonl", "--json", "--learn", "50", "--every", "2000"],
}
ENDINGS = {"augment": ".jsonl", "watch": ".jsonl"}
"""Of what a command leaves, where that is a file and no folder."""
ROWS = {"augment": 300, "train": 24}
"""Of the data that a command reads."""
DONE = {"watch": 1}
"""Exit codes, where that is not 0: a watch that has found drift."""


def stream(events: int = 40_000, tools: int = 8) -> str:
    """A trace in which one tool after another begins to fail."""
    lines = []
    for number in range(events):
        tool = number % tools
        ok = number < events * (tool + 1) // (tools + 1) or number % 3 > 0
        call = {"tool": f"tool_{tool}", "arguments": {"n": number}, "ok": ok, "ms": 5.0}
        lines.append(json.dumps(call))
    return "\n".join(lines) + "\n"


def start(folder: Path, words: list[str], out: str) -> subprocess.Popen[bytes]:
    """Starts a command in a process group of its own; a watch prints into a file."""
    command = [sys.executable, "-m", "toolshift", *words]
    watches = words[0] == "watch"
    if not watches:
        command += ["--out", out]
    if words[0] == "train" and list((folder / out).glob("checkpoint-*/spent.json")):
        command.append("--resume")
    with (folder / "log.txt").open("ab") as log, ExitStack() as open_:
        told = open_.enter_context((folder / out).open("wb")) if watches else log
        return subprocess.Popen(
            command, cwd=folder, stdout=told, stderr=log, start_new_session=True
        )


def left(path: Path) -> dict[str, list[str]]:
    """What a command has left: the lines of what it wrote, in any order that clocks decide."""
    if path.is_file():
        return {path.name[3:]: path.read_text().splitlines()}
    if (path / "curves.jsonl").exists():
        weights = (path / "model.safetensors").read_bytes()
        curves = map(json.loads, (path / "curves.jsonl").open())
        return {
            "losses": [f"{row['step']}: {row['loss']}" for row in curves],
            "weights": [sha256(weights).hexdigest()],
        }
    times = [json.loads(line)["episode"] for line in (path / "timings.jsonl").open()]
    return {
        "episodes": (path / "episodes.jsonl").read_text().splitlines(),
        "timings": sorted(times),
        "plan": (path / "plan.jsonl").read_text().splitlines(),
    }


def is_beginning(part: Path, whole: Path) -> bool:
    """Whether what a killed watch has printed is the beginning of what it would have."""
    return whole.read_bytes().startswith(part.read_bytes())


def disturb(folder: Path, name: str, kills: int, draw: random.Random) -> int:
    """Kills one command again and again, at any moment; returns how often it was hit."""
    words, ending = COMMANDS[name], ENDINGS.get(name, "")
    one, two = folder / f"one{ending}", folder / f"two{ending}"
    done = DONE.get(name, 0)
    before = time.monotonic()
    code = start(folder, words, one.name).wait()
    took = time.monotonic() - before
    assert code == done, f"{name}: exit code {code}: {(folder / 'log.txt').read_text()[-2000:]}"
    hit = 0
    for number in range(kills):
        running = start(folder, words, two.name)
        with contextlib.suppress(subprocess.TimeoutExpired):
            running.wait(draw.uniform(0.1, 0.9) * took)
        hit += running.poll() is None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        if name == "watch":
            running.wait()
            assert is_beginning(two, one), name
        if running.wait() == done and number < kills - 1:  # it has come to its end: begin again
            assert left(two) == left(one), name
            subprocess.run(["rm", "-r", str(two)], check=True)
    for _ in range(5):  # its last killer may have left a lock for a moment
        code = start(folder, words, two.name).wait()
        if code == done:
            break
        time.sleep(1)
    assert code == done, f"{name}: exit code {code}: {(folder / 'log.txt').read_text()[-2000:]}"
    assert left(two) == left(one), name
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
            (folder / "stream.jsonl").write_text(stream())
            if name in ROWS:
                data = ["data", "--count", str(ROWS[name])]
                assert start(folder, data, "rows.jsonl").wait() == 0
            hit = disturb(folder, name, count, draw)
        total += hit
        print(
            f"{name}: {count} kills, {hit} while it was at work; the totals are equal", flush=True
        )
    print(f"{total} kills at work in all")


if __name__ == "__main__":
    main()

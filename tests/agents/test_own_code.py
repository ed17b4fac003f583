"""Whatever the code of an agent does ends its episode, and not the run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from running import Run

from toolshift.core.errors import described

CODE = """
import asyncio
import os

CALLS = {"n": 0}


class Odd(Exception):
    def __str__(self):
        raise RuntimeError("no words")


class Halves(Exception):
    def __str__(self):
        return "half a character: \\ud800"


class Bare(BaseException):
    pass


def refuse():
    call = {"name": "refuse", "arguments": '{"reason": "not_found"}'}
    return {"content": "", "tool_calls": [{"function": call}]}


def later(fault):
    CALLS["n"] += 1
    if CALLS["n"] > 1:
        raise fault
    return refuse()


def interrupts(messages, tools):
    return later(KeyboardInterrupt())


def bare(messages, tools):
    return later(Bare("x"))


def leaves(messages, tools):
    return later(GeneratorExit())


def cancels(messages, tools):
    return later(asyncio.CancelledError())


def odd(messages, tools):
    return later(Odd())


def halves(messages, tools):
    return later(Halves())


def long(messages, tools):
    return later(ValueError("x" * 10_000_000))


async def interrupts_in_a_loop(messages, tools):
    return later(KeyboardInterrupt())


def wanders(messages, tools):
    os.chdir("/")
    return refuse()


def forks(messages, tools):
    os.fork()
    return refuse()


class Scripted:
    name = "scripted"

    def play(self, episode):
        later(KeyboardInterrupt())
        episode.refuse("not_found")


class Batched:
    name = "batched"
    batch = 2

    def reply(self, turn):
        return refuse()

    def reply_batch(self, turns):
        return [later(KeyboardInterrupt()) for turn in turns]
"""
SMALL = ("--tasks", "2", "--no-placebo", "--shift", "fatal_error", "--pool", "train")


def ends(folder: Path) -> list[str]:
    lines = (folder / "episodes.jsonl").read_text().splitlines()
    return [json.loads(line)["end"] for line in lines]


@pytest.fixture
def odd(toolshift: Run, tmp_path: Path) -> Run:
    (tmp_path / "odd.py").write_text(CODE)
    sys.modules.pop("odd", None)
    return toolshift


ODD = ("interrupts", "bare", "leaves", "cancels", "odd", "halves", "long", "interrupts_in_a_loop")


@pytest.mark.parametrize(
    ("agent", "threads"), [*((each, "1") for each in (*ODD, "Scripted")), ("interrupts", "2")]
)
def test_what_is_raised_ends_the_episode_alone(
    odd: Run, tmp_path: Path, agent: str, threads: str
) -> None:
    words = ("run", "--agent", f"odd:{agent}", *SMALL, "--concurrency", threads, "--out", "out")
    code, _, err = odd(*words)
    assert code == 0, err
    assert sorted(ends(tmp_path / "out")) == ["crashed"] * 3 + ["refused"]
    assert (tmp_path / "out" / "episodes.jsonl").stat().st_size < 50_000


def test_a_batch_that_interrupts_at_once_was_set_up_wrongly(odd: Run) -> None:
    code, _, err = odd("run", "--agent", "odd:Batched", *SMALL, "--out", "out")
    assert code == 2
    assert "KeyboardInterrupt" in err


def test_an_agent_that_changes_the_directory_takes_nothing_with_it(
    odd: Run, tmp_path: Path
) -> None:
    code, out, _ = odd("run", "--agent", "odd:wanders", *SMALL, "--out", "out")
    assert code == 0
    assert "Run folder: out" in out
    assert ends(tmp_path / "out") == ["refused"] * 4
    assert (tmp_path / "out" / "report.json").exists()
    assert Path.cwd() == tmp_path


def test_a_fork_that_returns_twice_is_one_agent(odd: Run, tmp_path: Path) -> None:
    words = ("run", "--agent", "odd:forks", *SMALL, "--out", "out")
    command = [sys.executable, "-m", "toolshift", *words]
    ran = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("Run folder: out") == 1
    assert "forked" in ran.stderr
    assert ends(tmp_path / "out") == ["refused"] * 4


def test_a_worker_that_dies_is_said(odd: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    odd("list", "suites")  # imports what the workers need
    code, _, err = odd("run", "--agent", "dies:Dies", *SMALL, "--workers", "2", "--out", "out")
    assert code == 2
    assert "there is no module" in err
    Path("dies.py").write_text(
        "import os\n\n\nclass Dies:\n    name = 'dies'\n\n"
        "    def play(self, episode):\n        os._exit(3)\n"
    )
    code, _, err = odd("run", "--agent", "dies:Dies", *SMALL, "--workers", "2", "--out", "out")
    assert code == 2
    assert "a worker process ended during its work" in err


def test_the_words_of_an_exception_are_what_a_file_can_hold() -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def of(fault: Exception) -> Any:
        return described(fault)

    assert of(Odd()) == "Odd"
    assert of(ValueError("a\ud800b")) == "ValueError: a?b"
    assert len(of(ValueError("x" * 10**7))) < 2100

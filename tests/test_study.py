"""Same bytes however a study is run; nothing is lost or run twice when it is stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from running import Run, write_agent

from toolshift.agent import Reply, Turn
from toolshift.errors import BudgetSpent, UsageError
from toolshift.plan import make_plan
from toolshift.run import evaluate, run_plan
from toolshift.run_folder import RunFolder
from toolshift.study import Contestant
from toolshift.suite import select

SMALL = ("--tasks", "4", "--shift", "identity_erasure", "--shift", "fatal_error", "--pool", "train")
SCRIPTED = ("--agent", "oracle", "--agent", "memorises_names@0.5", "--agent", "noisy")


def command(*words: str | Path) -> list[str]:
    return [sys.executable, "-m", "toolshift.cli", *map(str, words)]


def start(folder: Path, *words: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(*words), cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )


def wait_for_lines(path: Path, lines: int) -> None:
    for _ in range(1200):
        if path.exists() and path.read_bytes().count(b"\n") >= lines:
            return
        time.sleep(0.05)
    raise AssertionError(f"{path} never had {lines} lines")


def episodes(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (path / "episodes.jsonl").read_text().splitlines()]


def test_scripted_agents_give_the_same_bytes_in_one_and_several_processes(
    toolshift: Run, tmp_path: Path
) -> None:
    assert toolshift("run", *SCRIPTED, *SMALL, "--out", "one")[0] == 0
    env = {**os.environ, "PYTHONHASHSEED": "7"}
    many = command("run", *SCRIPTED, *SMALL, "--workers", "2", "--out", "many")
    subprocess.run(many, cwd=tmp_path, env=env, check=True, capture_output=True)
    for name in ("episodes.jsonl", "plan.jsonl", "report.json", "report.txt"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "many" / name).read_bytes()


def test_threads_give_the_same_bytes_in_the_order_of_the_plan(
    toolshift: Run, tmp_path: Path
) -> None:
    for name, threads in (("one", "1"), ("many", "16")):
        words = ("run", "--agent", "mine:refuses", *SMALL, "--concurrency", threads, "--out", name)
        assert toolshift(*words)[0] == 0
    one, many = ((tmp_path / name / "episodes.jsonl").read_bytes() for name in ("one", "many"))
    assert one == many


class Batched:
    """Refuses after a number of turns that differs from task to task."""

    name = "batched"
    batch = 3

    def __init__(self) -> None:
        self.most = 0

    def reply(self, turn: Turn) -> Reply:
        raise AssertionError("a study steps batches together")

    def reply_batch(self, turns: list[Turn]) -> list[Reply]:
        self.most = max(self.most, len(turns))
        return [self.one(turn) for turn in turns]

    def one(self, turn: Turn) -> Reply:
        asked = len(turn.messages[1]["content"]) % 3
        if len(turn.messages) < 2 + 2 * asked:
            return Reply.of({"tool_calls": [{"function": {"name": "none"}}]})
        call = {"name": "refuse", "arguments": {"reason": "not_found"}}
        return Reply.of({"tool_calls": [{"function": call}]})


def test_batches_are_refilled_and_every_cell_is_run() -> None:
    agent = Batched()
    report = evaluate(agent, tasks=7, shifts=["fatal_error"], placebo=False)
    assert agent.most == 3
    assert report.agents[0].everything.episodes == 14
    assert report.agents[0].complete


def test_resumes_after_kill_9(toolshift: Run, tmp_path: Path) -> None:
    write_agent(tmp_path, pause=0.02, name="slow")
    words = ("run", "--agent", "slow:refuses", *SMALL, "--out", "out")
    running = start(tmp_path, *words)
    log = tmp_path / "out" / "episodes.jsonl"
    wait_for_lines(log, 3)
    running.kill()
    running.wait()
    kept = log.read_bytes()
    whole = kept[: kept.rfind(b"\n") + 1]
    log.write_bytes(whole + b'{"episode": "torn')
    code, out, _ = toolshift(*words)
    assert code == 0
    assert "16 episodes" in out
    assert log.read_bytes().startswith(whole)
    names = [each["episode"] for each in episodes(tmp_path / "out")]
    assert len(names) == len(set(names)) == 16
    code, _, _ = toolshift(*words)
    assert [each["episode"] for each in episodes(tmp_path / "out")] == names


@pytest.mark.parametrize("threads", ["1", "4"])
def test_ctrl_c_keeps_what_is_finished_and_tells_how_to_go_on(tmp_path: Path, threads: str) -> None:
    write_agent(tmp_path, pause=0.2, name="slow")
    words = ("run", "--agent", "slow:refuses", *SMALL, "--out", "out", "--concurrency", threads)
    running = start(tmp_path, *words)
    wait_for_lines(tmp_path / "out" / "episodes.jsonl", 1)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=30)
    assert running.returncode == 130, err
    assert "--out out to go on" in err
    assert "Traceback" not in err
    assert 1 <= len(episodes(tmp_path / "out")) < 16
    assert (tmp_path / "out" / "report.txt").exists()


def test_an_agent_that_raises_at_once_is_a_usage_error(toolshift: Run) -> None:
    code, _, err = toolshift("run", "--agent", "mine:raises", *SMALL, "--out", "out")
    assert code == 2
    assert "mine:raises" in err
    assert "KeyError" in err
    assert "no model" in err
    assert not Path("out").exists()
    code, _, err = toolshift("run", "--agent", "mine:returns_nothing", *SMALL)
    assert code == 2
    assert "NoneType" in err


def test_an_agent_that_raises_later_is_recorded_as_infrastructure(toolshift: Run) -> None:
    code, out, _ = toolshift("run", "--agent", "mine:raises_later", *SMALL, "--out", "out")
    assert code == 0
    assert "15 infrastructure errors" in out
    failed = episodes(Path("out"))[-1]
    assert failed["end"] == "infrastructure"
    assert failed["grade"]["void"]
    assert failed["steps"][-1]["said"] == "OSError: connection lost"


class Spender:
    name = "spender"

    def __init__(self, money: int) -> None:
        self.money = money

    def reply(self, turn: Turn) -> str:
        self.money -= 1
        if self.money < 0:
            raise BudgetSpent("$1 is spent")
        return "I cannot do this."


@pytest.mark.parametrize("threads", [1, 4])
def test_a_spent_budget_stops_and_can_be_resumed(tmp_path: Path, threads: int) -> None:
    plan = make_plan(select(shifts=("fatal_error",), tasks=6))
    with pytest.raises(BudgetSpent):
        run_plan(plan, [Contestant(Spender(4), "", threads)], tmp_path / "out")
    kept = len(episodes(tmp_path / "out"))
    assert kept == 4
    report = run_plan(plan, [Contestant(Spender(100), "", threads)], tmp_path / "out")
    assert report.agents[0].complete
    assert len(episodes(tmp_path / "out")) == len(plan.cells)


def test_two_runs_cannot_write_one_folder(tmp_path: Path) -> None:
    plan = make_plan(select(shifts=("fatal_error",), tasks=2))
    run_plan(plan, [Contestant(Spender(100))], tmp_path / "out")
    held = RunFolder.read(tmp_path / "out")
    held._open()
    with pytest.raises(UsageError, match="in use"):
        run_plan(plan, [Contestant(Spender(100))], tmp_path / "out")
    held.close()

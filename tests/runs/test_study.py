"""Same bytes however a study is run; nothing is lost or run twice when it is stopped."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from running import Run, write_agent

from toolshift.agents.contestant import Contestant
from toolshift.api import evaluate, run_spec
from toolshift.core.errors import BudgetSpent, UsageError
from toolshift.core.message import Reply, Turn
from toolshift.episode.episode import Episode
from toolshift.episode.oracle import OracleAgent
from toolshift.runs import study
from toolshift.runs.execute import RunSpec
from toolshift.runs.plan import make_plan
from toolshift.runs.run_folder import RunFolder
from toolshift.runs.suite import Selection, select

SMALL = ("--tasks", "4", "--shift", "identity_erasure", "--shift", "fatal_error", "--pool", "train")
SCRIPTED = ("--agent", "oracle", "--agent", "memorises_names@0.5", "--agent", "noisy")


def command(*words: str | Path) -> list[str]:
    return [sys.executable, "-m", "toolshift", *map(str, words)]


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


def test_scripted_agents_give_the_same_bytes_with_1_and_16_workers(
    toolshift: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert toolshift("run", *SCRIPTED, *SMALL, "--out", "one")[0] == 0
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    monkeypatch.setattr("toolshift.runs.pool.CHUNK", 8)  # else one worker would take all the jobs
    assert toolshift("run", *SCRIPTED, *SMALL, "--workers", "16", "--out", "many")[0] == 0
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
        self.most = self.released = 0

    def release(self) -> None:
        self.released += 1

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
    assert agent.released == 1
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
    assert "--out out to resume" in err
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


def test_an_agent_that_raises_later_has_failed(toolshift: Run) -> None:
    code, out, _ = toolshift("run", "--agent", "mine:raises_later", *SMALL, "--out", "out")
    assert code == 0
    out = toolshift("report", "out", "--details", "--no-html")[1]
    assert " 0 infrastructure errors" in out
    failed = episodes(Path("out"))[-1]
    assert failed["end"] == "crashed"
    assert not failed["grade"]["void"]
    assert failed["grade"]["cause"] == "broke_down"
    source = Path("mine.py").read_text().splitlines()
    line = source.index('        raise OSError("connection lost")') + 1
    assert failed["steps"][-1]["said"] == f"OSError: connection lost (mine.py, line {line})"


@pytest.mark.parametrize("agent", ["waits", "Slow"])
def test_asynchronous_agents_work(toolshift: Run, agent: str) -> None:
    words = ("run", "--agent", f"mine:{agent}", *SMALL, "--concurrency", "4", "--out", "out")
    code, _, err = toolshift(*words)
    assert code == 0, err
    assert {episode["end"] for episode in episodes(Path("out"))} == {"refused"}


def test_an_asynchronous_agent_that_exits_fails_its_episode(toolshift: Run) -> None:
    code, _, err = toolshift("run", "--agent", "mine:exits", *SMALL, "--out", "out")
    assert code == 0, err
    ends = [episode["end"] for episode in episodes(Path("out"))]
    assert ends[0] == "refused"
    assert set(ends[1:]) == {"crashed"}


def test_a_resumed_run_knows_that_its_agent_works(tmp_path: Path) -> None:
    plan = make_plan(select(Selection(shifts=("fatal_error",), tasks=2)))
    with pytest.raises(BudgetSpent):
        run_spec(RunSpec(plan, [Contestant(Spender(1))], tmp_path / "out"))
    agent = Spender(100)
    agent.reply = lambda turn: 1 / 0  # type: ignore[assignment,method-assign]
    report = run_spec(RunSpec(plan, [Contestant(agent)], tmp_path / "out"))
    assert report.agents[0].complete


def test_an_outage_is_asked_again_by_the_same_run(tmp_path: Path) -> None:
    plan = make_plan(select(Selection(shifts=("fatal_error",), tasks=2)))

    class Server:
        name = "server"

        def __init__(self, fails: int) -> None:
            self.fails, self.asked = fails, 0

        def reply(self, turn: Turn) -> str | Reply:
            self.asked += 1
            if self.asked > 1 and self.asked <= 1 + self.fails:
                return Reply(failure="HTTP 503")
            return "I cannot do this."

    first = run_spec(RunSpec(plan, [Contestant(Server(2))], tmp_path / "out")).agents[0]
    assert first.infrastructure == 2
    healthy = Server(0)
    again = run_spec(RunSpec(plan, [Contestant(healthy)], tmp_path / "out")).agents[0]
    assert (again.infrastructure, healthy.asked) == (0, 2)
    assert len(episodes(tmp_path / "out")) == len(plan.cells)
    idle = Server(0)
    run_spec(RunSpec(plan, [Contestant(idle)], tmp_path / "out"))
    assert idle.asked == 0


class Fragile(OracleAgent):
    """Works until something has moved."""

    name = "fragile"

    def play(self, episode: Episode) -> None:
        if episode.scene.shifts:
            raise ValueError("I have never seen that")
        super().play(episode)


def test_an_agent_that_breaks_on_shifts_is_not_at_ceiling() -> None:
    report = evaluate(Fragile(), tasks=4, shifts=["identity_erasure"], placebo=False)
    assert report.drop("perception").estimate == 1
    assert report.agents[0].everything.causes == {"broke_down": 4}
    assert "ceiling" not in report.summary()


class Fussy(Batched):
    """Raises on a whole batch for a single request in it, but not in its first batch."""

    name = "fussy"
    seen = 0
    request = ""

    def reply_batch(self, turns: list[Turn]) -> list[Reply]:
        requests = [turn.messages[1]["content"] for turn in turns]
        self.seen += 1
        if self.seen == 2:
            self.request = requests[-1]
        if self.request in requests[: 3 * (self.seen > 1)]:
            raise ValueError("not this one")
        return super().reply_batch(turns)


def test_only_the_turn_that_raises_spoils_its_episode() -> None:
    report = evaluate(Fussy(), tasks=7, shifts=["fatal_error"], placebo=False)
    everything = report.agents[0].everything
    assert 0 < everything.causes["broke_down"] <= 2  # the request, clean and shifted
    assert everything.episodes == 14


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
    plan = make_plan(select(Selection(shifts=("fatal_error",), tasks=6)))
    with pytest.raises(BudgetSpent):
        run_spec(RunSpec(plan, [Contestant(Spender(4), "", threads)], tmp_path / "out"))
    kept = len(episodes(tmp_path / "out"))
    assert kept == 4
    report = run_spec(RunSpec(plan, [Contestant(Spender(100), "", threads)], tmp_path / "out"))
    assert report.agents[0].complete
    assert len(episodes(tmp_path / "out")) == len(plan.cells)


def test_what_other_threads_had_finished_when_one_failed_is_kept() -> None:
    ended: Any = queue.SimpleQueue()
    finished = object()
    for item in (BudgetSpent("$1 is spent"), finished):
        ended.put(item)
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()
    kept: list[object] = []
    with pytest.raises(BudgetSpent):
        kept.extend(study._collect(ended, 3, threading.Event(), [thread]))
    assert kept == [finished]


def test_two_runs_cannot_write_one_folder(tmp_path: Path) -> None:
    plan = make_plan(select(Selection(shifts=("fatal_error",), tasks=2)))
    run_spec(RunSpec(plan, [Contestant(Spender(100))], tmp_path / "out"))
    held = RunFolder.read(tmp_path / "out")
    held._open()
    with pytest.raises(UsageError, match="in use"):
        run_spec(RunSpec(plan, [Contestant(Spender(100))], tmp_path / "out"))
    held.close()


def test_what_was_played_is_kept_where_a_worker_is_killed_while_the_run_is_planned(
    tmp_path: Path,
) -> None:
    words = ("run", "--agent", "oracle", "--tasks", "600", "--workers", "2")
    first = start(tmp_path, *words)
    while not (made := list(tmp_path.glob("runs/*/.ahead.jsonl"))):
        assert first.poll() is None
        time.sleep(0.05)
    ahead = made[0]
    wait_for_lines(ahead, 50)
    workers = subprocess.check_output(["pgrep", "-P", str(first.pid)], text=True).split()
    os.kill(int(workers[-1]), signal.SIGKILL)  # the first is the tracker of multiprocessing
    said = first.communicate(timeout=60)[1] or ""
    out = ahead.parent.relative_to(tmp_path)
    assert f"Finished episodes are kept: --out {out} resumes." in said
    assert first.returncode == 2
    kept = ahead.read_bytes().splitlines(keepends=True)
    assert len(kept) > 50
    second = start(tmp_path, *words, "--out", out)
    second.communicate(timeout=120)
    assert second.returncode == 0
    played = {each["episode"] for line in kept[1:] for each in json.loads(line)["episodes"]}
    assert played <= {each["episode"] for each in episodes(ahead.parent)}


def test_records_have_the_same_bytes_where_a_worker_made_them(
    toolshift: Run, tmp_path: Path
) -> None:
    """A run that resumes plays what is left in workers, whose records travel as pickles."""
    assert toolshift("run", *SCRIPTED, *SMALL, "--out", "run")[0] == 0
    file = tmp_path / "run" / "episodes.jsonl"
    whole = file.read_bytes()
    file.write_bytes(b"".join(whole.splitlines(keepends=True)[::3]))
    assert toolshift("run", *SCRIPTED, *SMALL, "--workers", "2", "--out", "run")[0] == 0
    assert file.read_bytes() == whole

"""Agents of the user's own with a time for each turn, in a process of their own."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from running import Run

from toolshift.agents.catalog import contestants
from toolshift.api import evaluate
from toolshift.core.errors import UsageError

CODE = """
import os
import subprocess
import sys
import time
from pathlib import Path

import toolshift


def is_second():
    with Path("turns").open("a+") as turns:
        turns.write("x")
        turns.seek(0)
        return len(turns.read()) == 2

def refuse():
    call = {"name": "refuse", "arguments": '{"reason": "not_found"}'}
    return {"content": "", "tool_calls": [{"function": call}]}


def hangs(messages, tools):
    if is_second():
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"])
        Path("pids").write_text(f"{os.getpid()} {child.pid}")
        time.sleep(100)
    return refuse()


def exits(messages, tools):
    if is_second():
        os._exit(7)
    return refuse()


def raises(messages, tools):
    if is_second():
        raise KeyError("gone")
    return refuse()


def hangs_at_once(messages, tools):
    time.sleep(100)


def cannot(messages, tools):
    raise toolshift.UsageError("there is no key")
"""
SMALL = ("--tasks", "2", "--no-placebo", "--shift", "fatal_error", "--pool", "train")


def steps(folder: Path) -> list[list[dict[str, Any]]]:
    lines = (folder / "episodes.jsonl").read_text().splitlines()
    return [json.loads(line)["steps"] for line in lines]


@pytest.fixture
def odd(toolshift: Run, tmp_path: Path) -> Run:
    (tmp_path / "apart.py").write_text(CODE)
    sys.modules.pop("apart", None)
    return toolshift


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        ("hangs", "it took more than 2 seconds, and was ended"),
        ("exits", "its process ended (exit code 7)"),
        ("raises", "KeyError: 'gone' (apart.py, line 38)"),
    ],
)
def test_what_goes_wrong_ends_the_episode_alone(
    odd: Run, tmp_path: Path, agent: str, said: str
) -> None:
    words = ("run", "--agent", f"apart:{agent}", *SMALL, "--agent-timeout", "2", "--out", "out")
    code, _, err = odd(*words)
    assert code == 0, err
    wrong = [each[-1] for each in steps(tmp_path / "out") if each[-1]["kind"] == "failure"]
    assert [each["said"] for each in wrong] == [said]
    assert len(steps(tmp_path / "out")) == 4
    (about,) = json.loads((tmp_path / "out" / "manifest.json").read_text())["agents"]
    assert about["class"] == "CallableAgent"
    assert about["settings"] == {"agent_timeout": 2.0}
    assert about["source_sha256"]
    if agent == "hangs":
        pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
        assert not [pid for pid in pids if is_alive(pid)], "what hangs leaves nothing behind"


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat")
        return not state.exists() or state.read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_one_that_hangs_on_its_first_turn_was_set_up_wrongly(odd: Run) -> None:
    words = (*SMALL, "--agent-timeout", "0.5", "--out", "out")
    begun = time.monotonic()
    code, _, err = odd("run", "--agent", "apart:hangs_at_once", *words)
    assert code == 2
    assert "raised on its first turn: it took more than 0.5 seconds, and was ended" in err
    assert time.monotonic() - begun < 90


def test_one_that_cannot_work_stops_the_run(odd: Run) -> None:
    code, _, err = odd("run", "--agent", "apart:cannot", *SMALL, "--agent-timeout", "9")
    assert (code, err.strip().removesuffix(".")) == (2, "Error: there is no key")


def test_functions_that_no_other_process_can_find_are_said() -> None:
    with pytest.raises(UsageError, match="in its own process"):
        evaluate(lambda messages, tools: "x", tasks=1, agent_timeout=1.0)
    with pytest.raises(UsageError, match="above 0"):
        evaluate(evaluate, tasks=1, agent_timeout=0.0)


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan")])
def test_a_time_that_is_none_is_refused_for_every_agent(seconds: float) -> None:
    with pytest.raises(UsageError, match="seconds above 0"):
        contestants(["oracle"], agent_timeout=seconds)

"""How commands end: SIGTERM is like Ctrl-C, and no exit of foreign code is a good end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SERVER = Path(__file__).parents[1] / "worlds" / "own" / "own_server.py"
TASKS = f"""
world: ledger
tools: {{mcp: "{sys.executable} {SERVER}"}}
tasks:
  - id: iban
    ask: Which IBAN has the account A-12?
    calls: [{{name: get_account, arguments: {{account_id: A-12}}}}]
    check: {{answer: DE02-1200}}
"""
AGENT = """
import time
from pathlib import Path


def agent(messages, tools):
    if messages[-1]["role"] == "user":
        function = {"name": "get_account", "arguments": '{"account_id": "A-12"}'}
        return {"tool_calls": [{"id": "1", "type": "function", "function": function}]}
    Path("asked").touch()
    time.sleep(60)
    return {"content": "DE02-1200"}
"""


@pytest.mark.parametrize(
    ("sign", "in_background"),
    [(signal.SIGTERM, False), (signal.SIGTERM, True), (signal.SIGINT, False)],
    ids=["SIGTERM", "SIGTERM without Ctrl-C", "Ctrl-C"],
)
def test_a_stopped_run_leaves_no_server(
    tmp_path: Path, sign: signal.Signals, in_background: bool
) -> None:
    (tmp_path / "tasks.yaml").write_text(TASKS)
    (tmp_path / "slow.py").write_text(AGENT)
    words = "run --world tasks.yaml --shift transient_error --agent slow:agent --out kept"
    before = signal.signal(signal.SIGINT, signal.SIG_IGN) if in_background else None
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "toolshift", *words.split()],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    finally:
        if in_background:
            signal.signal(signal.SIGINT, before)
    try:
        deadline = time.monotonic() + 120
        while not (tmp_path / "asked").exists() and time.monotonic() < deadline:
            assert process.poll() is None, process.communicate()
            time.sleep(0.1)
        assert _servers(process.pid), "the server of the episode runs"
        process.send_signal(sign)
        _, told = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, told
    assert "--out kept" in told
    deadline = time.monotonic() + 60
    while _servers(process.pid) and time.monotonic() < deadline:  # it ends with its input
        time.sleep(0.1)
    assert not _servers(process.pid), told


def _servers(parent: int) -> list[int]:
    """The processes that run the server, of this run or left by it."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_text().split("\0")
                above = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError):
                continue
            if str(SERVER) in words and above in (parent, 1, os.getpid()):
                found.append(int(entry.name))
    return found


def test_no_command_ends_well_by_the_exit_of_an_agent(tmp_path: Path) -> None:
    (tmp_path / "hard.py").write_text(
        "import os\n\n\ndef agent(messages, tools):\n    os._exit(0)\n"
    )
    words = "run --agent hard:agent --shift transient_error --tasks 2 --out kept"
    ended = subprocess.run(
        [sys.executable, "-m", "toolshift", *words.split()],
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 2
    assert "os._exit(0)" in ended.stderr


FORKS = """
import os, signal, sys, time
from toolshift.cli.stopping import stop_on_sigterm

stop_on_sigterm()
for _ in range(20):
    child = os.fork()
    if not child:
        time.sleep(60)
    os.kill(child, signal.SIGTERM)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGTERM
"""


def test_what_an_agent_forks_ends_by_sigterm_at_once() -> None:
    subprocess.run([sys.executable, "-c", FORKS], check=True, timeout=60)

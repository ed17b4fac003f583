"""Runs the command line in this process, and makes agents to run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from toolshift.cli import main

Run = Callable[..., tuple[int, str, str]]

AGENT = """
import time

CALLS = {"n": 0}


def refuses(messages, tools):
    time.sleep(PAUSE)
    call = {"name": "refuse", "arguments": '{"reason": "not_found"}'}
    return {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "function": call}]}


def raises(messages, tools):
    raise KeyError("no model")


def raises_later(messages, tools):
    CALLS["n"] += 1
    if CALLS["n"] > 1:
        raise OSError("connection lost")
    return refuses(messages, tools)


def returns_nothing(messages, tools):
    return None


async def waits(messages, tools):
    import asyncio

    await asyncio.sleep(0)
    CALLS.setdefault("loop", asyncio.get_running_loop())
    assert CALLS["loop"] is asyncio.get_running_loop(), "a client would lose its connections"
    return refuses(messages, tools)


async def exits(messages, tools):
    CALLS["before"] = CALLS.get("before", 0) + 1
    if CALLS["before"] > 1:
        raise SystemExit(3)
    return refuses(messages, tools)


class Slow:
    name = "slow object"

    async def reply(self, turn):
        return await waits(turn.messages, turn.tools)


number = 7
"""


def write_agent(folder: Path, pause: float = 0.0, name: str = "mine") -> None:
    """Writes a module of agents into a folder."""
    (folder / f"{name}.py").write_text(AGENT.replace("PAUSE", str(pause)))


def runner(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """A function that runs a command and returns its exit code, output and errors."""

    def run(*words: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["toolshift", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        assert "Traceback" not in err, err
        return int(ended.value.code or 0), out, err

    return run

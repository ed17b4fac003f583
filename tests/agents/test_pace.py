from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from toolshift.agents.pace import Pace


def paced(requests: float | None, tokens: float | None, sizes: list[int]) -> list[float]:
    now, starts = [0.0], []

    def sleep(seconds: float) -> None:
        now[0] += seconds

    pace = Pace(requests, tokens, clock=lambda: now[0], sleep=sleep)
    for size in sizes:
        pace.wait(size)
        starts.append(round(now[0], 3))
    return starts


def test_requests_are_spread_over_the_minute() -> None:
    assert paced(30, None, [5, 5, 5, 5]) == [0, 2, 4, 6]


def test_tokens_are_spread_over_the_minute() -> None:
    assert paced(None, 600, [100, 200, 1]) == [0, 10, 30]


def test_the_tighter_limit_counts() -> None:
    assert paced(60, 600, [1, 100, 1]) == [0, 1, 11]


def test_without_limits_nothing_waits() -> None:
    assert paced(None, None, [10**9] * 3) == [0, 0, 0]


def test_a_pause_is_not_saved_up() -> None:
    now, slept = [0.0], []
    pace = Pace(60, clock=lambda: now[0], sleep=slept.append)
    pace.wait(1)
    now[0] = 100.0
    pace.wait(1)
    pace.wait(1)
    assert slept == [1.0]


def test_paces_with_one_file_share_their_places(tmp_path: Path) -> None:
    first: list[float] = []
    second: list[float] = []
    one, other = (
        Pace(30, file=tmp_path / "pace", clock=lambda: 1000.0, sleep=slept.append)
        for slept in (first, second)
    )
    one.wait(1)
    other.wait(1)
    one.wait(1)
    assert (first, second) == ([4.0], [2.0])


def test_a_place_from_before_the_clock_was_set_back_is_not_waited_for(tmp_path: Path) -> None:
    slept: list[float] = []
    for now in (10_000_000.0, 5_000.0):
        Pace(60, file=tmp_path / "pace", clock=lambda now=now: now, sleep=slept.append).wait(1)
    assert slept == []


@pytest.mark.parametrize("content", [b"", b"xyz", b"\xff" * 8, b"\0" * 80])
def test_any_content_of_the_file_is_written_over(tmp_path: Path, content: bytes) -> None:
    slept: list[float] = []
    (tmp_path / "pace").write_bytes(content)
    pace = Pace(60, file=tmp_path / "pace", clock=lambda: 50.0, sleep=slept.append)
    pace.wait(1)
    pace.wait(1)
    assert slept == [1.0]


def test_a_file_that_cannot_be_written_leaves_the_pace_to_this_process(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    slept: list[float] = []
    pace = Pace(60, file=tmp_path / "file" / "pace", clock=lambda: 50.0, sleep=slept.append)
    pace.wait(1)
    pace.wait(1)
    assert slept == [1.0]


class _Times(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    came: list[float]

    def do_POST(self) -> None:
        """Notes when it came."""
        self.rfile.read(int(self.headers["content-length"]))
        self.came.append(time.monotonic())
        body = b'{"choices": [{"message": {"role": "assistant", "content": "x"}}]}'
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@pytest.fixture
def times() -> Iterator[tuple[str, list[float]]]:
    came: list[float] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Times", (_Times,), {"came": came}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", came
    server.shutdown()
    server.server_close()


ASKS = """
import sys
from concurrent.futures import ThreadPoolExecutor
from toolshift import Turn
from toolshift.agents.chat import ChatAgent
agent = ChatAgent("m", sys.argv[1], requests_per_minute=600)
turn = Turn([{"role": "user", "content": "x"}], [])
with ThreadPoolExecutor(4) as threads:
    assert not any(each.failure for each in threads.map(agent.reply, [turn] * 8))
"""


def test_two_processes_keep_one_limit_at_the_server(
    times: tuple[str, list[float]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, came = times
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    processes = [subprocess.Popen([sys.executable, "-c", ASKS, url]) for _ in range(2)]
    assert [process.wait(120) for process in processes] == [0, 0]
    came.sort()
    assert len(came) == 16
    assert came[-1] - came[0] > 1.1  # 1.5 s, less what the first was late; on their own 0.7

"""Agents that run already: each of the user's messages is posted to a real HTTP server."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from toolshift.agents.catalog import contestants
from toolshift.api import evaluate
from toolshift.connect.program import UrlAgent, _take
from toolshift.core.errors import UsageError
from toolshift.core.http import httpx
from toolshift.runs.cell import build
from toolshift.runs.run_folder import Record, RunFolder
from toolshift.runs.study import play
from toolshift.runs.suite import read_task

TASK = read_task("poi/look_then_book")


def once(agent: UrlAgent) -> Record:
    return play(contestants([agent])[0], TASK, fresh=False)


Answer = Callable[[dict[str, Any]], tuple[int, Any]]


@contextmanager
def agent_at(answer: Answer) -> Iterator[str]:
    """A real HTTP server that answers as a function says."""

    class Exchange(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            status, reply = answer(body)
            text = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Exchange)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/agent"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_an_agent_that_runs_is_posted_each_message_and_may_act_over_the_control_url() -> None:
    scene = build(TASK)
    heard: list[dict[str, Any]] = []

    def answer(body: dict[str, Any]) -> tuple[int, Any]:
        heard.append(body)
        if len(heard) == 1:
            return 200, {"question": "Which city?"}
        if len(heard) == 2:
            return 200, {"answer": str(scene.asks[0].expected)}
        final = {"answer": str(scene.asks[1].expected)}
        httpx.post(body["control_url"] + "/finish", json=final, trust_env=False)
        return 200, {}

    with agent_at(answer) as url:
        record = once(UrlAgent(url))
    assert [step.kind for step in record.steps] == ["ask", "answer", "answer"]
    assert [body["message"] for body in heard] == [
        scene.asks[0].text, record.steps[0].text, scene.asks[1].text,
    ]  # fmt: skip
    assert heard[0]["system"] == scene.system
    assert heard[0]["mcp_url"] == heard[0]["control_url"] + "/mcp"


@pytest.mark.parametrize(
    ("reply", "end", "words"),
    [
        ((200, {"refusal": "No such place.", "reason": "not_found"}), "refused", "No such place"),
        ((200, {"refusal": "There is no such place."}), "refused", "There is no such place"),
        ((200, {"prose": "I could not find it."}), "refused", "could not find"),
        ((200, {}), "crashed", "without an answer"),
        ((200, b"<html>"), "crashed", "not JSON"),
        ((200, [1]), "crashed", "without an answer"),
        ((200, {"answer": 4}), "answered", "4"),
        ((200, {"answer": ["Emma", "Zoë"]}), "answered", '["Emma", "Zoë"]'),
        ((200, {"result": "4"}), "crashed", "its reply has result; what is read is answer"),
        ((200, {"question": 4}), "crashed", "its reply has question"),
        ((500, {"error": "boom"}), "crashed", "boom"),
        ((503, {"error": "busy"}), "infrastructure", "busy"),
    ],
)
def test_replies_are_read(reply: tuple[int, Any], end: str, words: str) -> None:
    with agent_at(lambda body: reply) as url:
        record = once(UrlAgent(url))
    assert record.end == end
    assert words in record.steps[-1].said
    assert record.grade.void is (end == "infrastructure")
    assert not record.grade.excused  # a server, too, can say so at will


def test_what_cannot_be_reached_is_infrastructure_and_a_wrong_address_a_usage_error() -> None:
    record = once(UrlAgent("http://127.0.0.1:9/agent"))
    assert (record.end, record.grade.void) == ("infrastructure", True)
    with (
        agent_at(lambda body: (404, {"detail": "Not Found"})) as url,
        pytest.raises(UsageError, match="HTTP 404"),
    ):
        once(UrlAgent(url))
    for wrong in ("127.0.0.1:80", "ftp://x/y", "http://user:pw@host/x", ""):
        with pytest.raises(UsageError, match="not the address of an agent"):
            UrlAgent(wrong)


def test_many_episodes_at_once_keep_apart(tmp_path: Path) -> None:
    """Each episode's agent hears its own request only."""
    out = tmp_path / "out"
    small: dict[str, Any] = {"worlds": ["poi"], "tasks": 2, "placebo": False}
    small["shifts"] = ["identity_erasure:1"]
    busy, most = [0], [0]
    lock = threading.Lock()

    def answer(body: dict[str, Any]) -> tuple[int, Any]:
        with lock:
            busy[0] += 1
            most[0] = max(most[0], busy[0])
        time.sleep(0.1)
        with lock:
            busy[0] -= 1
        said = httpx.get(body["control_url"], trust_env=False).json()
        same = said["message"] == body["message"]
        return 200, {"answer": "AAAA-AAAA" if same else "crosstalk"}

    with agent_at(answer) as url:
        report = evaluate(f"url:{url}", concurrency=4, out=out, **small)
    assert most[0] > 1
    assert report.agents[0].everything.episodes >= 4
    assert report.agents[0].everything.void == 0
    said = [step.said for record in RunFolder.read(out).records() for step in record.steps]
    assert set(said) == {"AAAA-AAAA"}
    assert "TOOLSHIFT_MCP_URL" not in os.environ


def test_texts_that_are_empty_beside_an_answer_say_nothing() -> None:
    seat = SimpleNamespace(answer=lambda text: f"answered {text}", ask=lambda text: "asked")
    visit = SimpleNamespace(seat=seat, strike=str)
    assert _take(visit, {"question": "", "refusal": "", "answer": "A"}) == "answered A"  # type: ignore[arg-type]
    assert _take(visit, {"answer": ""}) == "answered "  # type: ignore[arg-type]

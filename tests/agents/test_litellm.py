"""`litellm:MODEL` against servers on this machine; without the library it says what to install."""

from __future__ import annotations

import importlib.util
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from connect.scripted_model import Part, scripted_model
from running import Run

from toolshift.agents.answer_cache import Exchanges, drawing, lent
from toolshift.agents.catalog import make_agent
from toolshift.core.errors import UsageError
from toolshift.core.message import Turn
from toolshift.episode.contract import converse
from toolshift.episode.episode import Episode
from toolshift.episode.grade import grade
from toolshift.runs.cell import build
from toolshift.runs.suite import read_task

TASK = "poi/booking/0"
TURN = Turn([{"role": "user", "content": "Go."}], [])
here = pytest.mark.skipif(importlib.util.find_spec("litellm") is None, reason="an extra")


def agent_for(url: str, **more: Any) -> Any:
    options = {"base_url": url, "api_key": "a-key-of-length-16", "retries": 0, **more}
    return make_agent("litellm:openai/scripted", **options)


@pytest.mark.skipif(importlib.util.find_spec("litellm") is not None, reason="it is installed")
def test_without_the_library_it_says_what_to_install() -> None:
    with pytest.raises(UsageError, match=r"\[litellm\]"):
        make_agent("litellm:openai/m")


def test_a_spec_needs_a_model() -> None:
    with pytest.raises(UsageError, match="name of a model"):
        make_agent("litellm:")


@here
def test_an_episode() -> None:
    with scripted_model(Part("oracle", TASK)) as model:
        episode = Episode(build(read_task(TASK, "", 0)))
        converse(agent_for(model.url), episode)
    assert model.surprises == []
    assert grade(episode).passed
    assert episode.usage.input_tokens == 10 * len(model.requests)


@here
def test_a_run_from_the_command_line(
    toolshift: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-length-16")
    with scripted_model(Part("oracle", TASK)) as model:
        code, out, err = toolshift(
            *("run", "--agent", "litellm:openai/scripted", "--base-url", model.url, "--tasks", "2"),
            *("--shift", "clean", "--no-placebo", "--out", str(tmp_path / "run")),
        )
    assert code == 0, err
    assert len(model.requests) >= 2, out


class _Said(BaseHTTPRequestHandler):
    status, message, reason = 200, dict[str, Any](), "stop"
    asked: list[dict[str, Any]]

    def do_POST(self) -> None:
        self.asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        choice = {"index": 0, "message": self.message, "finish_reason": self.reason}
        good = {"id": "1", "object": "chat.completion", "created": 0, "model": "m",
                "choices": [choice], "usage": {"prompt_tokens": 1, "completion_tokens": 2,
                                               "total_tokens": 3}}  # fmt: skip
        bad = {"error": {"message": "`top_secret` is unknown", "type": "x", "code": None}}
        self.send_response(self.status)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(good if self.status == 200 else bad).encode())

    def log_message(self, *_: Any) -> None:
        pass


def replies(turn: Turn = TURN, **how: Any) -> tuple[Any, list[dict[str, Any]]]:
    asked: list[dict[str, Any]] = []
    kind = type("Said", (_Said,), {**how, "asked": asked})
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        return agent_for(f"http://127.0.0.1:{server.server_port}/v1").reply(turn), asked
    finally:
        server.shutdown()
        server.server_close()


@here
def test_thoughts_come_and_go_back() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    said = {"role": "assistant", "content": None, "reasoning_content": "Hm.", "tool_calls": [call]}
    reply, _ = replies(message=said, reason="tool_calls")
    assert reply.calls[0].name == "f"
    assert reply.extra["reasoning_content"] == "Hm."
    history = [*TURN.messages, said, {"role": "tool", "tool_call_id": "c1", "content": "r"}]
    _, asked = replies(Turn(history, []), message={"role": "assistant", "content": "Done."})
    assert asked[0]["messages"][1]["reasoning_content"] == "Hm."


@here
def test_faults_are_told_apart() -> None:
    message = {"role": "assistant", "content": "Well"}
    assert "truncated" in replies(message=message, reason="length")[0].failure
    assert "content_filter" in replies(message=message, reason="content_filter")[0].failure
    assert replies(status=503)[0].failure
    for reason in ("error", "insufficient_system_resource"):
        assert "broke the reply off" in replies(message=message, reason=reason)[0].failure
    for status in (400, 401, 404):
        with pytest.raises(UsageError, match="top_secret"):
            replies(status=status)


@here
def test_the_same_request_is_sent_once() -> None:
    asked: list[dict[str, Any]] = []
    said = {"role": "assistant", "content": "Done."}
    kind = type("Said", (_Said,), {"message": said, "asked": asked})
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    agent = agent_for(f"http://127.0.0.1:{server.server_port}/v1")
    try:
        with lent(Exchanges(), [agent]):
            replies = []
            for _ in range(3):
                with drawing("task", 0):
                    replies.append(agent.reply(TURN))
    finally:
        server.shutdown()
        server.server_close()
    assert len(asked) == 1
    assert [reply.text for reply in replies] == ["Done."] * 3
    assert [reply.usage.recalled for reply in replies] == [0, 1, 1]
    assert replies[2].usage.saved_output_tokens == replies[0].usage.output_tokens == 2


@here
def test_a_server_that_breaks_every_reply_off_stops_the_run() -> None:
    agent = agent_for("http://127.0.0.1:9/v1")
    assert [bool(agent.reply(TURN).failure) for _ in range(2)] == [True, True]
    with pytest.raises(UsageError, match="The first 3 turns have no readable reply"):
        agent.reply(TURN)

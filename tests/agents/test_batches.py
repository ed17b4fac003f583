"""Requests in batches, against a server that has the providers' batch endpoints."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from batch_server import LOST, BatchServer, serving

import toolshift
from toolshift.agents import batches
from toolshift.agents.chat import ChatAgent
from toolshift.core.errors import UsageError
from toolshift.core.message import PROTOCOL_TOOLS, Turn
from toolshift.runs.run_folder import BATCHES, RunFolder

KEY = "sk-test-4f9c1d7b2e8a6053"
TURN = Turn([{"role": "user", "content": "Find the code."}], PROTOCOL_TOOLS)
SCENES: dict[str, Any] = {
    "worlds": ["poi"], "kinds": ["listing"], "tasks": 4, "shifts": ["query_typos:2", "redirect:2"],
    "placebo": False,
}  # fmt: skip


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "QUIET", 0.1)
    for name in ("OPENAI_API_KEY", "TOOLSHIFT_API_KEY", "OPENAI_BASE_URL", "TOOLSHIFT_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def chat_says(body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Calls the first tool, then answers."""
    message: dict[str, Any] = {"role": "assistant", "content": "The code is ABCD-2345."}
    if body["messages"][-1]["role"] == "user":
        tool = body["tools"][0]["function"]["name"]
        call = {"id": "c1", "type": "function", "function": {"name": tool, "arguments": "{}"}}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
    usage = {"prompt_tokens": 1_000_000, "completion_tokens": 100_000}
    return 200, {"model": "m", "choices": [{"message": message}], "usage": usage}


def claude_says(body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    message = {"type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
               "content": [{"type": "text", "text": "The code is ABCD-2345."}],
               "usage": {"input_tokens": 10, "output_tokens": 5}}  # fmt: skip
    return 200, message


def agent_of(server: BatchServer, **options: Any) -> ChatAgent:
    given = {"batch": True, "batch_every": 0.02, "sleep": lambda _: None, **options}
    return ChatAgent("tiny", server.url, KEY, **given)


def graded(run: Path) -> list[tuple[str, bool, str]]:
    return [(r.cell, r.grade.passed, r.grade.cause) for r in RunFolder.read(run).records()]


def test_a_run_takes_as_many_batches_as_turns_and_ends_as_it_does_without(tmp_path: Path) -> None:
    with serving(BatchServer(chat_says)) as server:
        toolshift.evaluate(agent_of(server), **SCENES, out=tmp_path / "run")
        assert server.alone == 0
        asked = sum(map(len, server.batches.values()))
        assert len(server.batches) <= 4, "one for each turn, but for what comes late"
        toolshift.evaluate(agent_of(server, batch=False), **SCENES, out=tmp_path / "alone")
        assert server.alone == asked
    assert graded(tmp_path / "run") == graded(tmp_path / "alone")
    lines = [json.loads(line) for line in (tmp_path / "run" / BATCHES).read_text().splitlines()]
    assert [line["batch"] for line in lines] == list(server.batches)
    assert sum(len(line["requests"]) for line in lines) == asked


def test_a_request_costs_half() -> None:
    with serving(BatchServer(chat_says)) as server:
        prices = {"price_in": 2.0, "price_out": 10.0}
        half = agent_of(server, **prices).reply(TURN).usage.cost
        assert half == agent_of(server, batch=False, **prices).reply(TURN).usage.cost / 2 == 1.5


def test_anthropic_has_batches_of_its_own(tmp_path: Path) -> None:
    with serving(BatchServer(claude_says)) as server:
        agent = agent_of(server, dialect="anthropic")
        made = toolshift.evaluate(agent, **SCENES, out=tmp_path / "run")
    assert server.alone == 0
    assert made.agents[0].infrastructure == 0


def test_what_a_killed_run_has_asked_is_not_asked_again(tmp_path: Path) -> None:
    with serving(BatchServer(chat_says)) as server:
        server.held = True
        agent = agent_of(server)
        assert agent.batches is not None
        agent.batches.remember(tmp_path / BATCHES)
        # As a process that is killed while it waits: the thread never gets its answer.
        threading.Thread(
            target=agent.batches.ask, args=("a1", b'{"messages": []}'), daemon=True
        ).start()
        while not (tmp_path / BATCHES).exists() or not (tmp_path / BATCHES).read_bytes():
            time.sleep(0.01)
        with (tmp_path / BATCHES).open("ab") as file:
            file.write(b'{"batch": "cut o')
        again = agent_of(server)
        assert again.batches is not None
        again.batches.remember(tmp_path / BATCHES)
        answers: list[str] = []
        server.answer = lambda body: (200, {"said": "late"})
        asks_again = again.batches.ask
        waits = threading.Thread(target=lambda: answers.append(asks_again("a1", b"{}")))
        waits.start()
        server.held = False
        waits.join(10)
        assert [json.loads(text) for text in answers] == [{"said": "late"}]
        assert len(server.batches) == again.batches.found == 1


def test_it_is_said_how_many_batches_are_back_and_since_when_others_are_out(tmp_path: Path) -> None:
    told: list[str] = []
    resumed: list[str] = []
    begun = time.strftime("%H:%M")
    with serving(BatchServer(lambda body: (200, {"said": "late"}))) as server:
        server.held = True
        first = agent_of(server).batches
        assert first is not None
        first.told = told.append
        first.remember(tmp_path / BATCHES)
        waits = threading.Thread(target=first.ask, args=("a1", b'{"messages": []}'), daemon=True)
        waits.start()
        while not told:
            time.sleep(0.01)
        again = agent_of(server).batches  # as of a process that takes the run up
        assert again is not None
        again.told = resumed.append
        again.remember(tmp_path / BATCHES)
        later = threading.Thread(target=again.ask, args=("a1", b"{}"), daemon=True)
        later.start()
        while not resumed:
            time.sleep(0.01)
        server.held = False
        waits.join(10)
        later.join(10)
        while not (told[1:] and resumed[1:]):
            time.sleep(0.01)
    since = {f"1 request waits since {at}." for at in (begun, time.strftime("%H:%M"))}
    for lines in (told, resumed):
        assert lines[0].removeprefix("Batches: 0 of 1 back; ") in since
        assert lines[1:] == ["Batches: 1 of 1 back."]


def test_an_expired_request_is_asked_again() -> None:
    lost = [LOST, LOST]
    with serving(BatchServer(lambda body: lost.pop() if lost else chat_says(body))) as server:
        assert agent_of(server).reply(TURN).calls
        assert len(server.batches) == 3


def test_a_batch_that_the_provider_keeps_no_more_is_asked_anew(tmp_path: Path) -> None:
    (tmp_path / BATCHES).write_text('{"batch":"batch_old","requests":["a1"]}\n')
    with serving(BatchServer(chat_says)) as server:
        agent = agent_of(server)
        assert agent.batches is not None
        agent.batches.remember(tmp_path / BATCHES)
        body = json.dumps({"messages": [{"role": "tool"}]}).encode()
        assert "ABCD-2345" in agent.batches.ask("a1", body)
        assert list(server.batches) == ["batch_0"]


@pytest.mark.parametrize("whole", [True, False])
def test_a_setting_that_the_model_refuses_is_named(whole: bool) -> None:
    wrong = {"error": {"message": "Unsupported parameter: 'temperature'", "param": "temperature"}}
    with serving(BatchServer(chat_says if whole else lambda body: (400, wrong))) as server:
        server.refuse = [(400, wrong)] * whole
        with pytest.raises(UsageError, match="--unset temperature"):
            agent_of(server).reply(TURN)


def test_an_account_without_a_key_and_a_server_without_batches() -> None:
    with serving(BatchServer(lambda body: (404, {"error": {"message": "no"}}))) as server:
        server.refuse = [(401, {"error": {"message": "Incorrect API key"}})]
        with pytest.raises(UsageError, match="The key was not accepted"):
            agent_of(server).reply(TURN)


@pytest.mark.parametrize("dialect", ["chat", "anthropic"])
def test_a_server_without_batches_is_said(dialect: str) -> None:
    with serving(BatchServer(chat_says)) as server:
        server.without = True
        with pytest.raises(UsageError, match=r"does not accept batches .*leave --batch out"):
            agent_of(server, dialect=dialect).reply(TURN)


@pytest.mark.parametrize("junk", ["not JSON", '{"custom_id": 7}', "[]", '{"response": {}}'])
@pytest.mark.parametrize("dialect", ["chat", "anthropic"])
def test_answers_that_cannot_be_read_are_no_failure_of_the_agent(dialect: str, junk: str) -> None:
    with serving(BatchServer(chat_says)) as server:
        server.junk = junk
        reply = agent_of(server, dialect=dialect, retries=1).reply(TURN)
    assert "it ended without an answer" in reply.failure


def test_the_limit_of_the_account_is_waited_for() -> None:
    with serving(BatchServer(chat_says)) as server:
        server.refuse = [(429, {"error": {"message": "slow down"}})]
        assert agent_of(server).reply(TURN).calls


def test_a_server_that_fails_for_a_while_is_asked_on() -> None:
    with serving(BatchServer(chat_says)) as server:
        agent = agent_of(server)
        assert agent.reply(TURN).calls
        server.refuse = [(503, {}), (500, {})]
        assert agent.reply(TURN).calls


def test_nobody_listens_and_nobody_has_batches() -> None:
    with serving(BatchServer(chat_says)) as server:
        pass
    with pytest.raises(UsageError, match="no server answers there"):
        agent_of(server, retries=1).reply(TURN)
    with pytest.raises(UsageError, match="--batch is for chat, responses, anthropic models"):
        ChatAgent("m", "http://127.0.0.1:9/v1beta", KEY, dialect="gemini", batch=True)


def test_the_same_request_of_two_episodes_has_two_answers() -> None:
    with serving(BatchServer(chat_says)) as server:
        agent = agent_of(server)
        assert agent.batches is not None
        body = json.dumps({"messages": [{"role": "tool"}]}).encode()
        got: list[str] = []
        ask = agent.batches.ask
        threads = [threading.Thread(target=lambda: got.append(ask("same", body))) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        assert len(got) == sum(map(len, server.batches.values())) == 3


def test_a_large_set_is_cut_into_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "MOST", 2)
    with serving(BatchServer(chat_says)) as server:
        agent = agent_of(server)
        assert agent.batches is not None
        body = json.dumps({"messages": [{"role": "tool"}]}).encode()
        threads = [
            threading.Thread(target=agent.batches.ask, args=(f"n{n}", body)) for n in range(5)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
        assert max(map(len, server.batches.values())) <= 2
        assert agent.batches.requests == 5

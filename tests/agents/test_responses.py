"""`responses:` agents before a server that is as strict as OpenAI's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from connect.responses_server import responses_server
from connect.scripted_model import Part
from running import Run
from serving import body, scripted_server

from toolshift.agents.catalog import forms, make_agent
from toolshift.agents.chat import ChatAgent
from toolshift.core.message import PROTOCOL_TOOLS, Turn
from toolshift.dialects import as_request
from toolshift.episode.contract import CallableAgent, converse
from toolshift.episode.episode import Episode
from toolshift.episode.grade import grade
from toolshift.runs.cell import build
from toolshift.runs.suite import read_task

Body = dict[str, Any]

DESK = '''
TICKETS = {"T-31": {"ticket_id": "T-31", "owner": "Ilse"},
           "T-32": {"ticket_id": "T-32", "owner": "Omar"}}


def get_ticket(ticket_id: str) -> dict:
    """Looks up a ticket.

    Args:
        ticket_id: Identifier of the ticket.
    """
    return TICKETS[ticket_id]
'''
TASKS = """
world: help_desk
tools: {python: desk}
writes: []
system: You work at a help desk.
tasks:
  - id: owner
    kind: look_up
    ask: Who owns ticket T-31?
    calls: [{name: get_ticket, arguments: {ticket_id: T-31}}]
    check: {answer: Ilse}
  - id: both
    kind: look_up_two
    ask: Who owns ticket T-31, and who ticket T-32?
    calls:
      - {name: get_ticket, arguments: {ticket_id: T-31}}
      - {name: get_ticket, arguments: {ticket_id: T-32}}
    check: {answer: Omar}
"""


def called(*calls: tuple[str, Body], text: str | None = None) -> Body:
    functions = [{"name": name, "arguments": json.dumps(said)} for name, said in calls]
    return {"content": text, "tool_calls": [{"function": function} for function in functions]}


def works_at_the_desk(request: Body) -> Body:
    """Looks all tickets up at once, with words and thoughts beside, then answers by the tool."""
    said = request["messages"]
    heard = [m["content"] for m in said if m["role"] == "tool"]
    names = [t["function"]["name"] for t in request["tools"]]
    two = "T-32" in said[1]["content"]
    if heard:
        return called(("final_answer", {"answer": json.loads(heard[-1])["owner"]}))
    (look,) = [name for name in names if name not in ("final_answer", "refuse", "ask_user")]
    calls = [(look, {"ticket_id": ticket}) for ticket in (("T-31", "T-32") if two else ("T-31",))]
    return called(*calls, text="I look.")


def test_a_run_on_an_own_world_gives_thoughts_back(toolshift: Run, tmp_path: Path) -> None:
    (tmp_path / "desk.py").write_text(DESK)
    (tmp_path / "tasks.yaml").write_text(TASKS)
    with responses_server(works_at_the_desk) as server:
        code, out, err = toolshift(
            *("run", "--world", "tasks.yaml", "--agent", "responses:thinker", "--out", "out"),
            *("--shift", "tool_name_noise:2", "--base-url", server.url),
        )
    assert code == 0, err
    assert not server.refused
    lines = Path("out/episodes.jsonl").read_text().splitlines()
    episodes = [json.loads(line) for line in lines]
    assert len(episodes) >= 3
    assert all(each["grade"]["passed"] for each in episodes), out
    first = server.requests[0]
    assert first["store"] is False
    assert first["include"] == ["reasoning.encrypted_content"]
    assert first["instructions"].startswith("You work at a help desk.")
    kinds = [item.get("type", item.get("role")) for item in server.requests[-1]["input"]]
    assert kinds[:4] == ["user", "reasoning", "message", "function_call"]
    assert "sealed-" in json.dumps(server.requests[-1]["input"])
    assert "sealed-" in lines[0]


@pytest.mark.parametrize("task", ["poi/booking/0", "retail/refund/0"])
def test_an_episode_stays_whole(task: str) -> None:
    part = Part("oracle", task)
    with responses_server(lambda request: part.reply(request)[0]) as server:
        agent = ChatAgent("m", server.url, dialect="responses")
        episode = Episode(build(read_task(task)))
        converse(agent, episode)
    assert not server.refused
    assert grade(episode).passed


def test_refusals_cuts_and_filters_are_told_apart() -> None:
    turn = Turn([{"role": "user", "content": "Find it."}], PROTOCOL_TOOLS)
    said = {"type": "message", "role": "assistant", "id": "m", "content": []}
    refusal = {**said, "content": [{"type": "refusal", "refusal": "I cannot."}]}
    half = {"type": "function_call", "call_id": "c", "name": "refuse", "arguments": '{"reas'}
    details = {"reason": "max_output_tokens"}
    cut = {"status": "incomplete", "incomplete_details": details, "output": [half]}
    filtered = {**cut, "incomplete_details": {"reason": "content_filter"}, "output": []}
    failed = {"status": "failed", "error": {"code": "server_error", "message": "no"}, "output": []}
    usage = {"input_tokens": 1000, "output_tokens": 20}
    done = {"status": "completed", "output": [refusal], "usage": usage}
    with scripted_server() as server:
        agent = ChatAgent(
            "m", server.url, dialect="responses", sleep=lambda _: None, max_tokens=100, retries=1
        )
        server.script = [body(json.dumps(each).encode()) for each in (done, cut, done)]
        reply = agent.reply(turn)
        assert (reply.text, reply.failure, reply.usage.input_tokens) == ("I cannot.", "", 1000)
        assert agent.reply(turn).text == "I cannot.", "cut off, and asked again with more room"
        assert [r["body"]["max_output_tokens"] for r in server.requests] == [100, 100, 400]
        server.script = [body(json.dumps(each).encode()) for each in (cut, cut)]
        assert agent.reply(turn).failure.startswith("truncated: ")
        server.script = [body(json.dumps(each).encode()) for each in (filtered, failed, failed)]
        assert "content_filter" in agent.reply(turn).failure
        assert "no response came" in agent.reply(turn).failure


def test_the_address_and_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    agent = make_agent("responses:gpt-5.4-mini", temperature=None)
    assert isinstance(agent, ChatAgent)
    assert agent.settings["base_url"] == "http://127.0.0.1:9/v1"
    assert agent.settings["dialect"] == "responses"
    assert "temperature" not in agent.settings
    assert any(form.startswith("responses:") for form in forms())


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_an_own_function_may_return_what_the_client_gave(stream: bool) -> None:
    """A turn goes out as a request; the client's own object comes back, and next turn its items."""
    openai = pytest.importorskip("openai")
    task = "poi/booking/0"
    part = Part("oracle", task)
    with responses_server(lambda request: part.reply(request)[0]) as server:
        client = openai.OpenAI(base_url=server.url, api_key="dummy")

        def own(messages: list[Body], tools: list[Body]) -> Any:
            body = as_request(Turn(messages, tools), "responses", "m")
            if not stream:
                return client.responses.create(**body)
            with client.responses.stream(**body) as told:
                return told.get_final_response()

        episode = Episode(build(read_task(task)))
        converse(CallableAgent(own, "own"), episode)
        client.close()
    assert not server.refused
    assert grade(episode).passed
    assert episode.usage.cached_tokens == 4 * len(server.requests)
    assert "sealed-" in json.dumps(server.requests[-1]["input"])

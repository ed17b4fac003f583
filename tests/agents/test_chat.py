"""The chat agent against a real server on loopback that misbehaves on demand."""

from __future__ import annotations

import json
import logging
import random
import re
import socket
import sys
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from pathlib import Path
from typing import Any

import msgspec
import pytest

from toolshift.agents.chat import ChatAgent, estimate
from toolshift.core.calls import MalformedCall, ToolCall
from toolshift.core.errors import BudgetSpent, UsageError
from toolshift.core.message import PROTOCOL_TOOLS, Reply, Turn
from toolshift.episode.episode import Episode, messages
from toolshift.episode.grade import grade
from toolshift.episode.oracle import OracleAgent
from toolshift.measure.recheck import play_again
from toolshift.runs.cell import build
from toolshift.runs.suite import read_task

sys.path.insert(0, str(Path(__file__).parents[1]))
import serving
from scenes import clean_scenes
from serving import ScriptedServer, body, good, half, hang_up, silence, status

KEY = "sk-test-4f9c1d7b2e8a6053"
TURN = Turn([{"role": "user", "content": "Find the code."}], PROTOCOL_TOOLS)


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with serving.scripted_server() as server:
        yield server


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "TOOLSHIFT_API_KEY", "OPENAI_BASE_URL", "TOOLSHIFT_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def agent_of(server: ScriptedServer, waits: list[float] | None = None, **options: Any) -> ChatAgent:
    sleep = (lambda _: None) if waits is None else waits.append
    return ChatAgent("tiny", server.url, KEY, **{"sleep": sleep, **options})


def patience(trouble: serving.Answer) -> float:
    """A timeout in seconds: short only where it must pass, so that a slow machine fails nothing."""
    return 0.3 if trouble is silence else 20.0


GARBAGE = (
    *(b"<html>bad gateway</html>", b"", b"\xff\xfe\x00", b"{}", b"[]"),
    *(b'{"choices": []}', b'{"choices": [{}]}', b'{"choices": [{"message": null}]}'),
    b'{"usage": ' + b"[" * 100_000,
    b'{"error": {"message": "upstream is tired"}}',
    *(b'{"choices": [{"message": {"tool_calls": %s}}]}' % c for c in (b"[null]", b"[{}]", b"7")),
)


@pytest.mark.parametrize(
    "trouble",
    [status(429), status(408), status(409), status(500), status(503), half, hang_up, silence]
    + [body(text) for text in GARBAGE],
)
def test_trouble_then_success_is_a_reply(server: ScriptedServer, trouble: serving.Answer) -> None:
    server.script = [trouble, trouble]
    reply = agent_of(server, timeout=patience(trouble)).reply(TURN)
    assert (reply.text, reply.failure, len(server.requests)) == ("done", "", 3)
    assert server.requests[0]["body"] == server.requests[2]["body"]


@pytest.mark.parametrize(
    ("trouble", "said"),
    [(status(500), "HTTP 500"), (half, "Error"), (silence, "Timeout"), (body(b"{}"), "completion")],
)
def test_lasting_trouble(server: ScriptedServer, trouble: serving.Answer, said: str) -> None:
    server.script = [trouble] * 9
    reply = agent_of(server, retries=2, timeout=patience(trouble)).reply(TURN)
    assert said in reply.failure
    assert "attempt 3" in reply.failure
    assert len(server.requests) == 3


def test_an_address_where_nobody_ever_listened_is_wrong() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    waits: list[float] = []
    with pytest.raises(UsageError, match=r"ConnectError.*attempt 4 at .*no server answers there"):
        ChatAgent("tiny", url, retries=3, sleep=waits.append).reply(TURN)
    assert len(waits) == 3


def test_a_server_that_went_away_is_a_failure() -> None:
    with serving.scripted_server() as server:
        agent = agent_of(server, retries=1)
        assert not agent.reply(TURN).failure
    reply = agent.reply(TURN)
    assert "attempt 2" in reply.failure


@pytest.mark.parametrize("code", [400, 413, 422])
def test_a_refused_request_is_not_repeated(server: ScriptedServer, code: int) -> None:
    server.script = [status(code, "context length exceeded")]
    reply = agent_of(server).reply(TURN)
    assert f"HTTP {code}" in reply.failure
    assert "context length exceeded" in reply.failure
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("code", "text", "error", "advice"),
    [
        (401, "", UsageError, "OPENAI_API_KEY"),
        (403, "", UsageError, "access"),
        (404, "", UsageError, "base url"),
        (301, "", UsageError, "base url"),
        (402, "", BudgetSpent, "account"),
        (429, "insufficient_quota", BudgetSpent, "account"),
    ],
)
def test_what_fails_every_episode_is_raised(
    server: ScriptedServer, code: int, text: str, error: type[Exception], advice: str
) -> None:
    server.script = [status(code, f"{text} for {KEY}")]
    with pytest.raises(error, match=advice) as caught:
        agent_of(server).reply(TURN)
    assert "tiny" in str(caught.value)
    assert KEY not in "".join(traceback.format_exception(caught.value))
    assert len(server.requests) == 1


def test_waits_double_up_to_a_cap_and_are_the_same_every_time(server: ScriptedServer) -> None:
    runs: list[list[float]] = [[], []]
    for waits in runs:
        server.script = [status(500)] * 10
        agent_of(server, waits, retries=10).reply(TURN)
    assert runs[0] == runs[1]
    for attempt, wait in enumerate(runs[0]):
        assert min(60, 0.5 * 2**attempt) <= wait <= min(60, 0.625 * 2**attempt)


def test_requests_that_differ_do_not_wait_in_step(server: ScriptedServer) -> None:
    server.script = [answer for _ in range(6) for answer in (status(500), good())]
    waits: list[float] = []
    for content in "abcdef":
        agent_of(server, waits).reply(Turn([{"role": "user", "content": content}], ()))
    assert len(set(waits)) == 6


@pytest.mark.parametrize(
    ("header", "least", "most"),
    [
        ("3", 3.0, 3.75),
        ("1.5", 1.5, 1.9),
        ("0", 0.0, 0.1),
        ("300", 300.0, 375.0),
        ("soon", 0.0, 0.1),
        ("-5", 0.0, 0.1),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0, 0.1),
        ("date", 17.0, 25.0),
    ],
)
def test_retry_after(server: ScriptedServer, header: str, least: float, most: float) -> None:
    header = formatdate(time.time() + 20, usegmt=True) if header == "date" else header
    server.script = [status(429, Retry_After=header)]
    waits: list[float] = []
    assert agent_of(server, waits, backoff=0.01).reply(TURN).text == "done"
    assert [least <= wait <= most for wait in waits] == [True]


def test_a_quota_of_hours_stops_the_run(server: ScriptedServer) -> None:
    server.script = [status(429, Retry_After="7200")] * 9
    with pytest.raises(BudgetSpent, match=r"wait for 2\.0 hours"):
        agent_of(server).reply(TURN)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("error", "options", "named"),
    [
        ({"param": "temperature", "message": "Unsupported value"}, {}, "--unset temperature"),
        ({"message": "`top_k` may not be set"}, {"top_k": 3}, "--unset top_k"),
        ({"message": "temperature is deprecated for this model."}, {}, ""),
        ({"message": "'temperature' is deprecated for this model."}, {}, "--unset temperature"),
        ({"message": "bad reasoning.effort: high"}, {"reasoning": {"effort": "high"}},
         "--unset reasoning.effort"),
        ({"param": "max_tokens", "message": "Use 'max_completion_tokens' instead."}, {},
         "--set max_completion_tokens=4096"),
        ({"param": "messages.0.content", "message": "the temperature there is odd"}, {}, ""),
        ({"message": "no such thing as max_tokens_to_sample"}, {}, ""),
    ],
    ids=range(8),
)  # fmt: skip
def test_a_refused_setting_stops_the_run_and_is_named(
    server: ScriptedServer, error: dict[str, str], options: dict[str, Any], named: str
) -> None:
    server.script = [good("done"), status(400, json.dumps({"error": error}))]
    agent = agent_of(server, options=options)
    assert agent.reply(TURN).text == "done"
    if not named:
        assert agent.reply(TURN).failure.startswith("HTTP 400")
        return
    with pytest.raises(UsageError, match=re.escape(named)):
        agent.reply(TURN)


@pytest.mark.parametrize("code", [400, 405, 410, 413, 422])
def test_requests_that_are_refused_from_the_first_on_stop_the_run(
    server: ScriptedServer, code: int
) -> None:
    server.script = [status(code, '{"error": {"message": "no"}}')] * 9
    agent = agent_of(server)
    assert [bool(agent.reply(TURN).failure) for _ in range(2)] == [True, True]
    with pytest.raises(UsageError, match="The first 3 requests were refused and none was answered"):
        agent.reply(TURN)


@pytest.mark.parametrize(
    "answer", [{"error": "busy"}, {"choices": []}, {"choices": [{"finish_reason": "error"}]}]
)
def test_answers_that_cannot_be_read_from_the_first_on_stop_the_run(
    server: ScriptedServer, answer: dict[str, Any]
) -> None:
    server.script = [answer] * 99
    agent = agent_of(server)
    assert [bool(agent.reply(TURN).failure) for _ in range(2)] == [True, True]
    with pytest.raises(UsageError, match="The first 3 turns have no readable answer"):
        agent.reply(TURN)


def test_after_a_reply_that_was_read_a_run_goes_on(server: ScriptedServer) -> None:
    agent = agent_of(server)
    server.script = [good("done")]
    assert agent.reply(TURN).text == "done"
    server.script = [{"choices": []}] * 99
    assert all(agent.reply(TURN).failure for _ in range(5))


def test_fields_are_set_and_left_out_at_any_depth(server: ScriptedServer) -> None:
    options = {"temperature": None, "reasoning": {"effort": "high"}}
    agent = agent_of(server, options=options)
    agent.reply(TURN)
    body = server.requests[0]["body"]
    assert "temperature" not in body
    assert body["reasoning"] == {"effort": "high"}
    assert agent.settings["temperature"] is None
    with pytest.raises(UsageError, match="`messages` of a request is set by ToolShift"):
        agent_of(server, options={"messages": []})


def test_cached_tokens_have_a_price_of_their_own(server: ScriptedServer) -> None:
    used = {
        "prompt_tokens": 1_000_000,
        "completion_tokens": 1000,
        "prompt_tokens_details": {"cached_tokens": 900_000},
        "completion_tokens_details": {"reasoning_tokens": 300},
    }
    server.script = [good("done", usage=used)]
    usage = agent_of(server, price_in=2, price_out=10, price_cached=0.5).reply(TURN).usage
    assert (usage.cached_tokens, usage.reasoning_tokens) == (900_000, 300)
    assert usage.cost == pytest.approx(0.1 * 2 + 0.9 * 0.5 + 0.001 * 10)


def test_a_wait_really_passes(server: ScriptedServer) -> None:
    server.script = [status(429, Retry_After="1")]
    started = time.monotonic()
    agent_of(server, sleep=time.sleep).reply(TURN)
    assert time.monotonic() - started >= 1.0


AS_WRITTEN = {"function": {"arguments": '{"city": "Lyon"}'}}
"""How a call keeps arguments that were written with spaces."""


def test_native_tools_and_tool_calls(server: ScriptedServer) -> None:
    call = {"id": "c1", "function": {"name": "find", "arguments": '{"city": "Lyon"}'}}
    bare = {"function": {"name": "list_all", "arguments": None}}
    broken = {"id": "c3", "function": {"name": "find", "arguments": "{city"}}
    server.script = [good("", tool_calls=[call, bare, broken])]
    reply = agent_of(server, headers={"X-Title": "toolshift"}, options={"seed": 7}).reply(TURN)
    made = reply.calls[1].id
    assert made.startswith("call_"), "a call without an id gets one"
    assert reply.calls == (
        ToolCall("find", {"city": "Lyon"}, "c1", AS_WRITTEN),
        ToolCall("list_all", {}, made),
        MalformedCall("find", "{city", "c3"),
    )
    sent = server.requests[0]
    assert sent["body"] == {
        "model": "tiny",
        "messages": list(TURN.messages),
        "tools": list(PROTOCOL_TOOLS),
        "temperature": 0.0,
        "max_tokens": 4096,
        "seed": 7,
    }
    assert sent["headers"]["x-title"] == "toolshift"
    assert sent["headers"]["authorization"] == f"Bearer {KEY}"


def test_broken_json_in_the_history_is_sent_as_json(server: ScriptedServer) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{city"}}
    messages = [{"role": "assistant", "content": "", "tool_calls": [call]}]
    agent_of(server).reply(Turn(messages, ()))
    sent = server.requests[0]["body"]
    assert "tools" not in sent
    arguments = sent["messages"][0]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(arguments) == {"not_json": "{city"}
    assert call["function"]["arguments"] == "{city"


@pytest.mark.parametrize(
    "arguments",
    [
        *('{"a":' * 300 + "1" + "}" * 300, '{"a": NaN}', '{"a": "\\ud800"}', '{"a": "\ud800'),
        *("[" * 100_000, '{"a": ' + "9" * 5000 + "}", {"a": {"b": "\ud800"}}, {"a": 2**70}, [1]),
    ],
    ids=range(9),
)
def test_arguments_that_no_tool_can_take_are_the_models_and_not_the_servers_fault(
    server: ScriptedServer, arguments: Any
) -> None:
    call = {"id": "c1", "function": {"name": "find", "arguments": arguments}}
    server.script = [good("", tool_calls=[call]), good("done")]
    reply = agent_of(server).reply(TURN)
    (made,) = reply.calls
    assert isinstance(made, MalformedCall)
    assert not reply.failure
    function = {"name": made.name, "arguments": made.text}
    past = {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "function": function}]}
    agent_of(server).reply(Turn([*TURN.messages, past], ()))
    sent = server.requests[-1]["body"]["messages"][-1]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(sent) in ({"not_json": made.text}, arguments)


def test_text_protocol(server: ScriptedServer) -> None:
    server.script = [good('find(city="Lyon")'), good('Action: refuse(reason="not_found")')]
    agent = agent_of(server, protocol="text", layout="name-first")
    reply = agent.reply(TURN)
    assert reply.calls == (ToolCall("find", {"city": "Lyon"}),)
    named = ToolCall("refuse", {"reason": "not_found"})
    assert agent.reply(TURN).calls == (named,), "the names on offer are known"
    parsed = [{"function": {"name": "find", "arguments": '{"city": "Lyon"}'}}]
    server.script = [good(None, tool_calls=parsed)]
    (call,) = agent.reply(TURN).calls
    read = ToolCall("find", {"city": "Lyon"}, call.id, AS_WRITTEN)
    assert call == read, "the server has read it already"
    assert reply.usage.input_tokens == 1000
    sent = server.requests[0]["body"]
    assert "tools" not in sent
    assert "final_answer(" in sent["messages"][0]["content"]


def test_fields_that_a_model_refuses_can_be_left_out(server: ScriptedServer) -> None:
    options = {"max_tokens": None, "max_completion_tokens": 64, "response_format": {"type": "x"}}
    agent = agent_of(server, temperature=None, options=options)
    agent.reply(Turn(TURN.messages, ()))
    fields = "model messages max_completion_tokens response_format"
    assert set(server.requests[0]["body"]) == set(fields.split())
    assert agent.decoding == "constrained"


def test_content_in_other_forms(server: ScriptedServer) -> None:
    server.script = [good([{"type": "text", "text": "a"}, {"text": "b"}]), good(None, refusal="no")]
    agent = agent_of(server)
    assert [agent.reply(TURN).text, agent.reply(TURN).text] == ["ab", "no"]
    withheld = {"message": {"content": ""}, "finish_reason": "content_filter"}
    server.script = [body(json.dumps({"choices": [withheld]}).encode())]
    assert "content_filter" in agent.reply(TURN).failure


def cut_off(text: str) -> serving.Answer:
    """A completion that the token limit ended."""
    choice = {"message": {"content": text}, "finish_reason": "length"}
    usage = {"prompt_tokens": 1000, "completion_tokens": 200}
    return body(json.dumps({"choices": [choice], "usage": usage}).encode())


def test_a_reply_that_was_cut_off_gets_more_room_once(server: ScriptedServer) -> None:
    server.script = [cut_off(""), good("It is X.")]
    reply = agent_of(server, max_tokens=100).reply(TURN)
    assert (reply.text, reply.failure) == ("It is X.", "")
    assert reply.usage.input_tokens == 2000
    assert [sent["body"]["max_tokens"] for sent in server.requests] == [100, 400]


def test_a_reply_that_is_cut_off_again_is_truncated(server: ScriptedServer) -> None:
    server.script = [cut_off("It"), cut_off("It is")]
    reply = agent_of(server).reply(TURN)
    assert reply.failure.startswith("truncated: ")
    assert len(server.requests) == 2


TOOL = {
    "type": "function",
    "function": {
        "name": "find",
        "parameters": {"type": "object", "properties": {"id": {}}, "required": ["id"]},
    },
}


def completion(message: dict[str, Any], **choice: Any) -> serving.Answer:
    return body(json.dumps({"choices": [{"message": message, **choice}]}).encode())


def spoken(**fields: Any) -> dict[str, Any]:
    return {"id": "a", "type": "function", "function": {"name": "find", **fields}}


def reply_to(server: ScriptedServer, answer: serving.Answer) -> Reply:
    """What is read of an answer that comes as often as it is asked for."""
    server.script = [answer] * 3
    return agent_of(server, retries=1).reply(Turn(TURN.messages, [TOOL]))


@pytest.mark.parametrize(
    ("reason", "failure"),
    [("MAX_TOKENS", "truncated: "), ("model_length", "truncated: "), ("safety", "the endpoint wi"),
     ("error", "the endpoint broke"), ("insufficient_system_resource", "the endpoint broke"),
     ("abort", "the endpoint broke"), ("network_error", "the endpoint broke")],
)  # fmt: skip
def test_a_reply_that_did_not_end_by_itself_is_none_of_the_models(
    server: ScriptedServer, reason: str, failure: str
) -> None:
    assert reply_to(server, completion({"content": "It"}, finish_reason=reason)).failure.startswith(
        failure
    )


@pytest.mark.parametrize("reason", ["stop", "STOP", None, "", "tool_calls"])
@pytest.mark.filterwarnings("error")
def test_a_reply_that_ended_by_itself_is_read(server: ScriptedServer, reason: str | None) -> None:
    reply = reply_to(server, completion({"content": "It"}, finish_reason=reason))
    assert (reply.text, reply.failure) == ("It", "")


@pytest.mark.parametrize("reason", ["eos_token", "stop_str", "FINISH_REASON_STOP", "结束", 1])
def test_a_reply_that_ended_in_words_of_its_server_is_read_and_told(
    server: ScriptedServer, reason: str | int
) -> None:
    with pytest.warns(UserWarning, match=f"finish_reason '{reason}', which is not known"):
        reply = reply_to(server, completion({"content": "It"}, finish_reason=reason))
    assert (reply.text, reply.failure) == ("It", "")


@pytest.mark.filterwarnings("error")
def test_another_model_in_the_middle_of_a_run_is_told(server: ScriptedServer) -> None:
    said = {"choices": [{"message": {"content": "It"}, "finish_reason": "stop"}]}
    names = ("m-2026-01", "m-2026-01", "m-2026-06", "m-2026-06")
    server.script = [body(json.dumps({**said, "model": name}).encode()) for name in names]
    agent = agent_of(server)
    for _ in names[:2]:
        agent.reply(Turn(TURN.messages, [TOOL]))
    with pytest.warns(UserWarning, match="answered as m-2026-01 until now, and now as m-2026-06"):
        agent.reply(Turn(TURN.messages, [TOOL]))
    agent.reply(Turn(TURN.messages, [TOOL]))


def test_the_models_own_mistake_is_its_reply(server: ScriptedServer) -> None:
    why = "function_call_filter: MALFORMED_FUNCTION_CALL"
    with pytest.warns(UserWarning, match="not known here"):
        reply = reply_to(server, completion({"content": None}, finish_reason=why))
    assert (reply.text, reply.calls, reply.failure) == ("", (), "")


def test_an_error_in_the_place_of_a_reply_is_a_failure(server: ScriptedServer) -> None:
    fault = {"code": 502, "message": "upstream"}
    for answer in (
        completion({"content": ""}, finish_reason="stop", error=fault),
        completion({"content": None, "tool_calls": []}, finish_reason="tool_calls"),
    ):
        assert "broke the reply off" in reply_to(server, answer).failure


@pytest.mark.parametrize("dialect", ["chat", "anthropic", "responses"])
def test_a_call_that_was_cut_off_before_its_arguments_is_no_call(
    server: ScriptedServer, dialect: str
) -> None:
    cut: dict[str, Any] = {
        "chat": {"choices": [{"message": {"content": None, "tool_calls": [spoken(arguments="")]},
                              "finish_reason": "length"}]},
        "anthropic": {"content": [{"type": "tool_use", "id": "a", "name": "find", "input": {}}],
                      "stop_reason": "max_tokens"},
        "responses": {"status": "incomplete", "output": [
            {"type": "function_call", "call_id": "a", "name": "find", "arguments": ""}
        ], "incomplete_details": {"reason": "max_output_tokens"}},
    }  # fmt: skip
    for required, failed in ((["id"], True), ([], False)):
        server.script = [body(json.dumps(cut[dialect]).encode())] * 2
        schema = {"type": "object", "properties": {"id": {}}, "required": required}
        tool = {"type": "function", "function": {"name": "find", "parameters": schema}}
        reply = agent_of(server, dialect=dialect).reply(Turn(TURN.messages, [tool]))
        assert reply.failure.startswith("truncated: ") is failed


@pytest.mark.parametrize(
    ("message", "call"),
    [
        ({"tool_calls": [{**spoken(arguments="{}"), "id": 7}]}, ToolCall("find", {}, "7")),
        ({"tool_calls": [spoken(arguments="null")]}, ToolCall("find", {}, "a")),
        ({"tool_calls": [spoken(arguments=" ")]}, ToolCall("find", {}, "a")),
    ],
    ids=["counted", "null", "blank"],
)
def test_calls_in_the_forms_of_servers(
    server: ScriptedServer, message: dict[str, Any], call: ToolCall
) -> None:
    (read,) = reply_to(server, completion({"content": None, **message})).calls
    assert isinstance(read, ToolCall)
    assert (read.name, read.arguments, read.id) == (call.name, call.arguments, call.id)


def test_a_call_in_the_field_of_2023_is_read(server: ScriptedServer) -> None:
    old = {"content": None, "function_call": {"name": "find", "arguments": '{"id": "b"}'}}
    (read,) = reply_to(server, completion(old)).calls
    assert read.name == "find"
    assert read.id


def test_thoughts_among_the_parts_are_not_said(server: ScriptedServer) -> None:
    parts = [{"type": kind, "text": "B?"} for kind in ("reasoning", "thinking", "reasoning_text")]
    parts += [{"text": "C?", "thought": True}, {"type": "text", "text": "A"}]
    reply = reply_to(server, completion({"content": parts}))
    assert (reply.text, reply.extra) == ("A", {"content": parts})


@pytest.mark.parametrize(
    "refusal",
    ["Unknown argument: temperature", '{"message": "temperature is not supported"}',
     '{"detail": [{"loc": ["body", "temperature"]}]}', "<b>temperature</b> is not allowed"],
)  # fmt: skip
def test_the_first_refusal_names_a_field_in_any_form(server: ScriptedServer, refusal: str) -> None:
    server.script = [status(400, refusal)]
    with pytest.raises(UsageError, match="--unset temperature"):
        agent_of(server).reply(TURN)


def test_a_model_without_tools_is_told_of_the_other_protocol(server: ScriptedServer) -> None:
    server.script = [status(400, '{"error": "gemma does not support tools"}')] * 3
    agent = agent_of(server)
    assert [bool(agent.reply(TURN).failure) for _ in range(2)] == [True, True]
    with pytest.raises(UsageError, match="--protocol text"):
        agent.reply(TURN)


def test_google_says_in_the_body_how_long_to_wait(server: ScriptedServer) -> None:
    waits: list[float] = []
    server.script = [status(429, '{"error": {"details": [{"retryDelay": "37s"}]}}'), good("done")]
    assert agent_of(server, waits).reply(TURN).text == "done"
    assert 37 <= waits[0] < 47


def test_tools_lost_by_the_chat_template_are_noticed(server: ScriptedServer) -> None:
    server.script = [good(usage={"prompt_tokens": 30, "completion_tokens": 5})]
    with pytest.warns(UserWarning, match="chat template"):
        agent_of(server).reply(TURN)


def test_a_call_that_the_server_left_in_the_text_is_read(server: ScriptedServer) -> None:
    left = '<tool_call>\n{"name": "find", "arguments": {}}\n</tool_call>'
    server.script = [good(left)]
    with pytest.warns(UserWarning, match="writes its tool calls as text"):
        reply = agent_of(server).reply(TURN)
    assert [(call.name, call.arguments) for call in reply.calls] == [("find", {})]
    assert reply.text == ""


# --- money ---------------------------------------------------------------------------------------

PRICES: dict[str, Any] = {"price_in": 1.0, "price_out": 10.0}  # a good() reply costs $0.003
WORST = {**PRICES, "max_tokens": 500}


def exhaust(agent: ChatAgent) -> None:
    for _ in range(100):
        agent.reply(TURN)


def test_usage_and_cost(server: ScriptedServer) -> None:
    server.script = [good(), good(usage=None), good(usage={"prompt_tokens": "many"})]
    agent = agent_of(server, **PRICES)
    first, *others = [agent.reply(TURN).usage for _ in range(3)]
    assert (first.input_tokens, first.output_tokens) == (1000, 200)
    assert first.cost == pytest.approx(0.003)
    assert [usage.input_tokens for usage in others] == [0, 0]
    assert [usage.cost for usage in others] == [0.0, 0.0]


def test_without_prices_a_cost_that_the_endpoint_names_is_kept(server: ScriptedServer) -> None:
    server.script = [good(usage={"prompt_tokens": 1000, "completion_tokens": 2, "cost": 0.5})]
    agent = agent_of(server)
    assert (agent.reply(TURN).usage.cost, agent.spent) == (0.5, 0.5)


def test_estimate() -> None:
    assert estimate(10, 1000, 100, 2.5, 10.0) == pytest.approx(0.035)


def test_max_cost_is_never_passed(server: ScriptedServer) -> None:
    server.script = [status(500)] * 2  # a refusal costs nothing
    agent = agent_of(server, max_cost=0.02, **WORST)
    with pytest.raises(BudgetSpent, match="max_cost"):
        exhaust(agent)
    assert agent.spent == pytest.approx(0.003 * (len(server.requests) - 2))
    assert 0.02 - 0.009 < agent.spent <= 0.02


def test_max_cost_holds_across_threads(server: ScriptedServer) -> None:
    agent = agent_of(server, max_cost=0.05, **WORST)

    def episode(_: int) -> bool:
        try:
            return not agent.reply(TURN).failure
        except BudgetSpent:
            return False

    with ThreadPoolExecutor(8) as pool:
        paid = sum(pool.map(episode, range(100)))
    assert paid == len(server.requests) > 0
    assert agent.spent == pytest.approx(0.003 * paid)
    assert agent.spent <= 0.05


@pytest.mark.parametrize("trouble", [half, silence, body(b"{}"), good(usage=None)])
def test_what_may_be_billed_counts(server: ScriptedServer, trouble: serving.Answer) -> None:
    server.script = [trouble] * 9
    agent = agent_of(server, timeout=patience(trouble), max_cost=0.02, **WORST)
    with pytest.raises(BudgetSpent):
        exhaust(agent)
    assert len(server.requests) < 5


@pytest.mark.parametrize(
    "wrong",
    [
        *({"max_cost": 1.0}, {"max_cost": 0.0}, {"price_in": 1.0}, {"price_out": 0, "max_cost": 1}),
        *({"protocol": "xml"}, {"retries": -1}, {"concurrency": 0}, {"timeout": 0}),
    ],
)
def test_arguments_that_cannot_work(server: ScriptedServer, wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        agent_of(server, **wrong)


def test_environment(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/wrong")
    monkeypatch.setenv("TOOLSHIFT_BASE_URL", f"{server.url}/chat/completions?api-version=3")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")  # never for loopback
    agent = ChatAgent("tiny")
    assert agent.reply(TURN).text == "done"
    assert server.requests[0]["headers"]["authorization"] == f"Bearer {KEY}"
    assert "api-version" not in repr(agent)


def test_the_key_is_never_seen(server: ScriptedServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    echo = f"you sent Bearer {KEY} and hidden-0123456789abcdef"
    server.script = [status(500, echo), body(echo.encode()), good(echo), status(400, echo)]
    agent = agent_of(server, headers={"X-Api-Token": "hidden-0123456789abcdef"})
    replies = [agent.reply(TURN), agent.reply(TURN)]
    assert replies[1].failure
    assert "you sent Bearer [secret]" in replies[0].text
    seen = [repr(agent), str(agent), repr(vars(agent)), caplog.text, *map(repr, replies)]
    for text in seen:
        assert KEY not in text
        assert "hidden-0123456789abcdef" not in text
    assert "attempt 1 failed" in caplog.text


def test_no_part_of_a_key_survives_a_cut(server: ScriptedServer) -> None:
    for start in range(150, 310, 7):
        server.script = [status(400, "x" * start + KEY)]
        assert "sk-t" not in agent_of(server).reply(TURN).failure


@pytest.mark.parametrize("bad", [f"{KEY}\nX: y", f"{KEY}é", f"two {KEY}\x00"])
def test_a_key_that_no_header_can_hold(server: ScriptedServer, bad: str) -> None:
    with pytest.raises(UsageError, match="copy it again") as caught:
        ChatAgent("tiny", server.url, bad)
    assert KEY not in str(caught.value)


def test_odd_keys_that_work(server: ScriptedServer) -> None:
    assert ChatAgent("tiny", server.url, f" {KEY}\n").reply(TURN).text == "done"
    assert server.requests[0]["headers"]["authorization"] == f"Bearer {KEY}"
    # A stand-in for a key is no secret, and does not touch what the model says.
    server.script = [good("the list is EMPTY")]
    assert ChatAgent("tiny", server.url, "EMPTY").reply(TURN).text == "the list is EMPTY"


def test_threads_share_one_agent(server: ScriptedServer) -> None:
    rng = random.Random(1)
    troubles = [status(429, Retry_After="0"), status(500), half, hang_up, body(b"<html>")]
    server.script = [rng.choice(troubles) if rng.random() < 0.3 else good() for _ in range(120)]
    agent = agent_of(server, timeout=5.0, retries=20, concurrency=4, **PRICES)
    with ThreadPoolExecutor(16) as pool:
        replies: list[Reply] = list(pool.map(lambda _: agent.reply(TURN), range(100)))
    assert [reply.text for reply in replies] == ["done"] * 100
    assert sum(reply.usage.cost for reply in replies) == pytest.approx(0.3)
    assert agent.spent >= 0.3
    assert len(server.requests) > 100
    agent.close()


@pytest.mark.parametrize("url", [None, "http://10.0.0.7:8000/v1", "https://localhost.example/v1"])
def test_a_missing_key_is_said_before_anything_is_sent(url: str | None) -> None:
    with pytest.raises(UsageError, match="OPENAI_API_KEY"):
        ChatAgent("tiny", url)


@pytest.mark.parametrize(
    "url", ["http://localhost:1/v1", "http://127.9.0.1", "http://[::1]:8/v1", "http://0.0.0.0:8"]
)
def test_loopback_needs_no_key(url: str) -> None:
    assert ChatAgent("tiny", url)
    assert ChatAgent("tiny", "https://api.example/v1", headers={"api-key": KEY})  # a key as well


@pytest.mark.parametrize(
    "url",
    [
        "api.example/v1", "ftp://api.example", f"https://me:{KEY}@a.b/v1",
        "http://[::1/v1", "http://a.b:port/v1", "http://\u2603.net/v1", f"http://me:{KEY}@[::1/v1",
        f"http://a.b:port/v1?key={KEY}", f"a.b/v1?key={KEY}", f"me:{KEY}@a.b/v1", f"http://me:{KEY}@a\u2100b/v1",
    ],
)  # fmt: skip
def test_an_address_that_cannot_be_used(url: str) -> None:
    with pytest.raises(UsageError, match="base url") as caught:
        ChatAgent("tiny", url, KEY)
    assert KEY not in str(caught.value)


def _rendered(body: dict[str, Any]) -> bytes:
    """A request as providers read it: tools, system, conversation; without the closing marks."""
    fields = (
        "tools",
        "systemInstruction",
        "system",
        "instructions",
        "messages",
        "input",
        "contents",
    )
    return b"".join(
        msgspec.json.encode(body[name]).rstrip(b"]}") for name in fields if name in body
    )


@pytest.mark.parametrize("dialect", ["chat", "responses", "anthropic", "gemini"])
def test_each_request_begins_as_the_one_before(dialect: str) -> None:
    """Providers charge less for a prompt whose beginning they have seen."""
    agent = ChatAgent("m", "http://127.0.0.1:9/v1", dialect=dialect)
    openings = set()
    for number in range(3):
        scene = build(read_task(f"poi/booking/{number}"))
        played = Episode(scene)
        OracleAgent().play(played)
        episode, before = Episode(scene), b""
        for message in messages(scene, played.steps):
            if message["role"] != "assistant" or episode.end:
                continue
            sent = _rendered(agent._body(episode.observation, 1))
            assert sent.startswith(before)
            before = sent
            episode.take(Reply.of(message))
        openings.add(sent[: sent.index(scene.asks[0].text[:20].encode())])
    assert len(openings) == 1, "tools and system message are the same bytes in each task"


@pytest.mark.parametrize(
    ("error", "overflow"),
    [
        ({"code": "context_length_exceeded", "message": "too many tokens"}, True),
        ({"message": "This model's maximum context length is 8192 tokens."}, True),
        ({"message": "prompt is too long: 200251 tokens > 200000 maximum"}, True),
        ({"message": "The input token count (1048577) exceeds the maximum number of tokens"}, True),
        ({"type": "exceed_context_size_error", "message": "see n_ctx"}, True),
        ({"message": "the request exceeds the available context size"}, True),
        ({"message": "Your input exceeds the context window of this model."}, True),
        ({"message": "input length and `max_tokens` exceed context limit: 198000 + 4096"}, True),
        ({"message": "messages with role 'tool' must follow a call"}, False),
        ({"message": "an image is too long on one side"}, False),
    ],
    ids=range(10),
)
def test_a_conversation_that_is_too_long_is_the_agent_s_own_failure(
    server: ScriptedServer, error: dict[str, str], overflow: bool
) -> None:
    server.script = [good("done"), status(400, json.dumps({"error": error}))]
    agent = agent_of(server)
    assert agent.reply(TURN).text == "done"
    reply = agent.reply(TURN)
    assert (reply.failure.startswith("HTTP 400"), reply.overflow) == (True, overflow)
    episode = Episode(next(clean_scenes("poi", 1)))
    episode.take(reply)
    verdict = grade(episode)
    assert (verdict.void, verdict.cause) == (
        (False, "budget") if overflow else (True, "infrastructure")
    )
    assert "HTTP 400" in episode.steps[-1].said
    if overflow:
        assert play_again(episode.scene, episode.steps).steps == episode.steps

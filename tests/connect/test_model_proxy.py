"""The model proxy between a real client and a real (scripted) server, over HTTP.

The agent's tools are a clean scene's, hard-wired. The "model" knows what the oracle did there and
finds the tools by what it is shown: a test passes where everything that was shifted on the way out
comes back right.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from connect.proxying import ask, proxied, work
from connect.scripted_model import Part, Reader, ScriptedModel, scripted_model
from hypothesis import given
from hypothesis import strategies as st
from running import Run
from serving import scripted_server, smol_server, status

from toolshift.connect.callables import start_episode
from toolshift.connect.model_proxy import app
from toolshift.connect.model_proxy.app import MAX_ROUNDS, ModelProxy
from toolshift.connect.model_proxy.conversation import Conversation, Said
from toolshift.connect.model_proxy.settings import (
    RESULTLESS,
    ShiftOptions,
    check_stack,
    prepare,
)
from toolshift.core.errors import ShiftFault, UsageError
from toolshift.core.http import httpx
from toolshift.episode.grade import grade
from toolshift.shifts.live import TASKLESS
from toolshift.shifts.registry import find_shift
from toolshift.shifts.stacks import read_stack

TASK = "poi/booking/0"
APPLICABLE = (
    "tool_name_noise:3",
    "semantic_rename:3",
    "identity_erasure:3",
    "parameter_rename:3",
    "schema_noise:2",
    "description_paraphrase:2",
    "description_removal:2",
    "distractor_tools:3",
    "format_drift:1",
    "format_drift:3",
    "identity_erasure:2+parameter_rename:2+format_drift:2",
)


@pytest.mark.parametrize(
    "arguments",
    ['{"a":' * 300 + "1" + "}" * 300, '{"a": NaN}', '{"a": "\\ud800"}', "[" * 100_000, "{bad", "3"],
    ids=range(6),
)
def test_arguments_that_cannot_be_read_reach_the_agent_as_they_came(arguments: str) -> None:
    tools = start_episode(TASK).tools()
    options = ShiftOptions(read_stack("tool_name_noise:3"))
    toolbox, scene = prepare(tools, options)
    conversation = Conversation(scene, toolbox, Said())
    name = conversation.spoken_name(tools[0]["function"]["name"])
    call = {"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}}
    round_ = conversation.carry({"role": "assistant", "tool_calls": [call]})
    (carried,) = round_.carried
    assert carried["function"] == {"name": tools[0]["function"]["name"], "arguments": arguments}


def conversing(shifts: str) -> Conversation:
    toolbox, scene = prepare(start_episode(TASK).tools(), ShiftOptions(read_stack(shifts)))
    return Conversation(scene, toolbox, Said())


def spoken(tool: str, /, **arguments: Any) -> dict[str, Any]:
    function = {"name": tool, "arguments": json.dumps(arguments)}
    call = {"id": "c", "type": "function", "function": function}
    return {"role": "assistant", "tool_calls": [call]}


FIND = {"name": "find_place", "arguments": {"name": "Quiet Thistle", "city": "Vostrand"}}


def carried(round_: Any) -> list[dict[str, Any]]:
    functions = [call["function"] for call in round_.carried]
    return [{**f, "arguments": json.loads(f["arguments"])} for f in functions]


def test_a_call_of_an_action_or_in_another_type_reaches_the_agent_as_its_own() -> None:
    action = conversing("tools_by_action:3")
    wanted = spoken("records_api", verb="find_place", **FIND["arguments"])
    assert carried(action.carry(wanted)) == [FIND]
    kind = conversing("type_change:3")
    for shape in (lambda value: [value], lambda value: {"content": value}):
        said = {name: shape(value) for name, value in FIND["arguments"].items()}
        found = carried(kind.carry(spoken("find_place", **said)))
        if found:
            assert found == [FIND]
            break
    else:
        pytest.fail("neither a list nor an object is taken")


def test_a_search_is_answered_without_the_agent_and_the_call_is_its_own() -> None:
    conversation = conversing("tools_behind_search:2")
    searched = conversation.carry(spoken("catalog", about="find a place"))
    assert searched.hidden
    assert "find_place" in searched.answers["c"]
    called = spoken("dispatch", entry="find_place", input=FIND["arguments"])
    assert carried(conversation.carry(called)) == [FIND]


def shown_results(server: ScriptedModel) -> list[str]:
    return [m["content"] for m in server.requests[-1]["messages"] if m["role"] == "tool"]


@pytest.mark.parametrize(
    ("shifts", "stream"), [*zip(APPLICABLE, cycle((False, True)), strict=False)]
)
def test_a_shifted_model_still_serves_a_hard_wired_agent(shifts: str, stream: bool) -> None:
    seat = start_episode(TASK)
    with scripted_model(Reader(TASK)) as model, proxied(model.url, shifts) as (url, records):
        said = work(url, seat, stream)
    verdict = grade(seat.episode)
    assert verdict.passed
    assert verdict.errors == 0
    assert all(request["tools"] != seat.tools() or "format" in shifts for request in model.requests)
    own = {tool["function"]["name"] for tool in seat.tools()}
    spoken = {call["function"]["name"] for m in said for call in m.get("tool_calls") or ()}
    assert spoken <= own
    if "format_drift" in shifts:
        reported = [m["content"] for m in said if m["role"] == "tool"]
        assert shown_results(model) != reported[: len(shown_results(model))]
        assert any(record["results"] for record in records)
    hidden = {name for name in own if shifts.startswith("identity_erasure:3")}
    history = json.dumps(model.requests[-1]["messages"][1:])
    assert not any(f'"name": "{name}"' in history for name in hidden)


@pytest.mark.parametrize("stream", [False, True])
def test_without_shifts_nothing_is_changed(stream: bool) -> None:
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "hi  \u00e9"}],
        "tools": start_episode(TASK).tools(),
        "stream": stream,
        "odd": [1.0, None],
    }
    with scripted_model(Part("oracle", TASK)) as model, proxied(model.url) as (url, _):
        direct = httpx.post(f"{model.url}/chat/completions", json=body)
        through = httpx.post(f"{url}/chat/completions", json=body)
        models = httpx.get(f"{url}/models").json()
    assert through.content == direct.content
    assert through.headers["content-type"] == direct.headers["content-type"]
    assert model.requests[0] == model.requests[1]
    assert models["data"][0]["id"] == "scripted"


@pytest.mark.parametrize("stream", [False, True])
def test_a_memorised_name_is_answered_without_the_agent(stream: bool) -> None:
    """The model calls by the true names, which no longer work; it is told so, and the agent never
    hears of it; a model that will not learn is cut off."""
    seat = start_episode(TASK)
    body = {"model": "m", "messages": [{"role": "user", "content": seat.message}]}
    body |= {"tools": seat.tools(), "stream": stream}
    line = Part("oracle", TASK).lines[0]
    with scripted_model(_Stubborn(line)) as model, proxied(model.url, "identity_erasure:3") as made:
        url, records = made
        got = httpx.post(f"{url}/chat/completions", json=body, timeout=20)
    assert "tool_calls" not in got.text.replace('"tool_calls":null', "")
    assert '"finish_reason":"length"' in got.text
    assert len(model.requests) == MAX_ROUNDS
    assert "unknown_tool" in shown_results(model)[0]
    assert not records[-1]["carried"]


class _Stubborn(Part):
    def __init__(self, line: dict[str, Any]) -> None:
        super().__init__("oracle", TASK)
        self.line = line

    def reply(self, request: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        return self.line, []


class _Curious(Reader):
    """Tries a memorised name first, then goes on as shown: the answer to it must stay heard."""

    def reply(self, request: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
        said = request["messages"]
        if not any(message["role"] == "assistant" for message in said):
            return Part("oracle", TASK).lines[0], []
        rest = [m for m in said if not (m.get("content") and "unknown_tool" in m["content"])]
        first = next(n for n, m in enumerate(rest) if m["role"] == "assistant")
        return super().reply({**request, "messages": rest[:first] + rest[first + 1 :]})


@pytest.mark.parametrize("stream", [False, True])
def test_what_was_answered_on_the_way_stays_in_the_history(stream: bool) -> None:
    seat = start_episode(TASK)
    with (
        scripted_model(_Curious(TASK)) as model,
        proxied(model.url, "identity_erasure:3") as (url, records),
    ):
        said = work(url, seat, stream)
    assert grade(seat.episode).passed
    assert grade(seat.episode).calls == 3
    assert "unknown_tool" not in json.dumps(said)
    assert all("unknown_tool" in json.dumps(r["messages"]) for r in model.requests[1:])
    assert records[0]["answered"][0]
    assert not records[0]["answered"][-1]


def test_a_conversation_is_shown_alike_by_another_proxy() -> None:
    """Nothing need be remembered: a second proxy tells the same history in the same words."""
    shifts = "identity_erasure:3+parameter_rename:3+format_drift:2"
    with scripted_model(Reader(TASK)) as model:
        with proxied(model.url, shifts) as (url, _):
            seat = start_episode(TASK)
            said = work(url, seat)
        last = model.requests[-1]
        with proxied(model.url, shifts) as (url, _):
            places = [n for n, m in enumerate(said) if m["role"] == "assistant"]
            ask(url, {"model": "m", "messages": said[: places[-1]], "tools": seat.tools()})
    again = model.requests[-1]
    assert again["tools"] == last["tools"]
    assert _read(again["messages"]) == _read(last["messages"])


def _read(messages: list[dict[str, Any]]) -> list[Any]:
    """Messages with the arguments of calls as data: spaces in JSON are nobody's business."""
    return [
        [m.get("content")]
        + [
            (c["id"], c["function"]["name"], json.loads(c["function"]["arguments"]))
            for c in m.get("tool_calls") or ()
        ]
        for m in messages
    ]


def test_errors_of_the_model_pass_through_and_a_lost_model_is_said() -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
    body |= {"tools": start_episode(TASK).tools()}
    with scripted_server() as server, proxied(server.url, "identity_erasure:2") as (url, records):
        server.script = [status(429, '{"error":{"message":"slow down"}}', retry_after="7")]
        for stream in (False, True):
            server.script = [status(429, "slow down", Retry_After="7")]
            got = httpx.post(f"{url}/chat/completions", json=body | {"stream": stream})
            assert (got.status_code, got.text) == (429, "slow down")
            assert got.headers["retry-after"] == "7"
    assert [record["status"] for record in records] == [429, 429]
    with proxied("http://127.0.0.1:9/v1", "identity_erasure:2") as (url, _):
        for stream in (False, True):
            got = httpx.post(f"{url}/chat/completions", json=body | {"stream": stream})
            assert got.status_code == 502
            assert "cannot be reached" in got.json()["error"]["message"]
    with proxied("http://127.0.0.1:9/v1") as (url, _):
        assert httpx.get(f"{url}/models").status_code == 502


@pytest.mark.parametrize("stack", ["", "tool_name_noise:3"])
def test_whether_a_proxy_is_there_is_no_request_of_the_model(stack: str) -> None:
    with scripted_model(Part("oracle", TASK)) as model, proxied(model.url, stack) as (url, _):
        root = url.removesuffix("/v1")
        assert {httpx.head(root).status_code, httpx.get(f"{root}/").status_code} == {200}
        assert httpx.post(root, json={}).status_code in (404, 501)
    assert not model.requests


def test_what_cannot_be_done_is_refused_and_said() -> None:
    body: dict[str, Any] = {"model": "m", "messages": [], "tools": start_episode(TASK).tools()}
    with scripted_model(Part("oracle", TASK)) as model:
        with proxied(model.url, "semantic_trap:2") as (url, _):
            got = httpx.post(f"{url}/chat/completions", json=body)
            assert got.status_code == 400
            assert "--allow-traps-that-write" in got.json()["error"]["message"]
            assert httpx.post(f"{url}/responses/r1", json={}).status_code == 501
            assert httpx.post(f"{url}/chat/completions", content=b"{").status_code == 400
            many = httpx.post(f"{url}/chat/completions", json=body | {"n": 2})
            assert many.status_code == 501
        with proxied(model.url, "merged_tools:2") as (url, _):
            got = httpx.post(f"{url}/chat/completions", json=body)
            assert got.status_code == 400
            assert "not applicable" in got.json()["error"]["message"]
    assert not model.requests


@pytest.mark.parametrize("shift", ["reversed_order:2", "query_typos:1", "fatal_error:1"])
def test_shifts_of_the_truth_or_the_user_are_refused_at_the_start(shift: str) -> None:
    with pytest.raises(UsageError, match="not applicable"):
        check_stack(ShiftOptions(read_stack(shift)))


@pytest.mark.parametrize(
    ("shift", "why"),
    [
        *((f"{name}:{min(find_shift(name).severities)}", "a task") for name in TASKLESS),
        *((f"{name}:1", "schemas of results") for name in RESULTLESS),
        ("required_parameter:2", "at severity 1 it applies"),
        ("tool_subset:1", "--needs"),
        ("semantic_trap:1", "--allow-traps-that-write"),
    ],
)
def test_what_no_request_can_bring_is_refused_at_the_start(shift: str, why: str) -> None:
    how = ShiftOptions(read_stack(shift))
    with pytest.raises(UsageError, match=f"not applicable: .*{why}"):
        check_stack(how)
    with pytest.raises(UsageError, match=r"not applicable|insist with"):
        prepare(start_episode(TASK).tools(), how)


def test_what_is_said_beside_lets_a_shift_begin() -> None:
    for shift, more in (
        ("tool_subset:1", {"needed": ("x",)}),
        ("semantic_trap:1", {"may_write": True}),
        ("required_parameter:1", {}),
    ):
        check_stack(ShiftOptions(read_stack(shift), **more))


def test_the_fault_of_a_shift_is_said_to_the_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*given: object) -> None:
        raise ShiftFault("shift mine raised KeyError: 'x' (mine.py, line 3)")

    monkeypatch.setattr(app, "prepare", broken)
    body = {"model": "m", "messages": [], "tools": start_episode(TASK).tools()}
    with proxied("http://127.0.0.1:9/v1", "identity_erasure:2") as (url, _):
        got = httpx.post(f"{url}/chat/completions", json=body)
    assert got.status_code == 500
    assert "mine.py, line 3" in got.json()["error"]["message"]


@pytest.mark.parametrize("shift", ["merged_tools:2", "truncation:1", "missing_values:1"])
def test_what_is_not_truthful_on_these_tools_is_not_applicable(shift: str) -> None:
    with pytest.raises(UsageError, match="not applicable to the tools"):
        prepare(start_episode(TASK).tools(), ShiftOptions(read_stack(shift)))


def test_foreign_hosts_and_origins_are_refused() -> None:
    with scripted_model(Part("oracle", TASK)) as model, proxied(model.url) as (url, _):
        for headers in ({"host": "evil.example"}, {"origin": "https://evil.example"}):
            got = httpx.post(f"{url}/chat/completions", json={}, headers=headers)
            assert got.status_code in (403, 421)
    assert not model.requests


def test_with_a_token_the_model_gets_the_key_and_never_the_token() -> None:
    body = {"model": "m", "messages": [], "tools": start_episode(TASK).tools()}
    with (
        scripted_model(Reader(TASK)) as model,
        proxied(model.url, "identity_erasure:2", "a-token", "the-key", True) as (url, _),
    ):
        assert httpx.post(f"{url}/chat/completions", json=body).status_code == 401
        headers = {"authorization": "Bearer a-token"}
        for path in ("chat/completions", "embeddings"):
            httpx.post(f"{url}/{path}", json=body, headers=headers)
    assert [sent["authorization"] for sent in model.headers] == ["Bearer the-key"] * 2


def test_the_trace_tells_what_was_spoken_and_carried_and_keeps_no_key(tmp_path: Path) -> None:
    seat = start_episode(TASK)
    with (
        scripted_model(Reader(TASK)) as model,
        proxied(model.url, "identity_erasure:3+format_drift:1") as (url, records),
    ):
        work(url, seat)
    assert model.headers[0]["authorization"] == "Bearer sk-very-secret-0123456789"
    text = json.dumps(records)
    assert "secret" not in text
    assert "authorization" not in text.lower()
    spoken = [call["name"] for record in records for call in record["spoken"][0]]
    carried = [call["name"] for record in records for call in record["carried"]]
    assert carried == [step.name for step in seat.episode.steps if step.kind == "call"] + [
        "final_answer"
    ]
    assert set(spoken).isdisjoint(carried)
    idle = [record["nothing_changed_by"] for record in records]
    assert idle[0] == ["format_drift:1"]  # before there is a result
    assert idle[-1] == []


@pytest.mark.model
def test_a_real_server_streams_through() -> None:
    tools = start_episode(TASK).tools()[:2]
    body = {
        "model": "smollm2",
        "messages": [{"role": "user", "content": "Say hello."}],
        "tools": tools,
        "max_tokens": 24,
        "temperature": 0,
        "seed": 1,
    }
    with smol_server() as upstream, proxied(upstream, "identity_erasure:2") as (url, _):
        whole = httpx.post(f"{url}/chat/completions", json=body, timeout=120).json()
        assert whole["choices"][0]["message"]["role"] == "assistant"
        got = httpx.post(f"{url}/chat/completions", json=body | {"stream": True}, timeout=120)
        lines = [line[6:] for line in got.text.split("\n\n") if line]
        assert lines[-1] == "[DONE]"
        reasons = [
            choice["finish_reason"]
            for line in lines[:-1]
            for choice in json.loads(line)["choices"]
            if choice["finish_reason"]
        ]
        assert len(reasons) == 1


def test_the_command_says_at_once_what_is_not_applicable(toolshift: Run) -> None:
    up = ("model-proxy", "--upstream", "http://127.0.0.1:9/v1", "--port", "0")
    for shift, said in (("fatal_error:1", "not applicable"), ("identity_erasur", "did you mean")):
        code, _, err = toolshift(*up, "--shift", shift)
        assert code == 2
        assert said in err
    ping = {"name": "ping", "parameters": {"type": "object", "properties": {}}}
    Path("tools.json").write_text(json.dumps([{"type": "function", "function": ping}]))
    code, _, err = toolshift(*up, "--shift", "unit_change:2", "--tools", "tools.json")
    assert code == 2
    assert "not applicable to the tools" in err
    code, _, err = toolshift("model-proxy", "--upstream", "ftp://x")
    assert code == 2
    assert "--upstream" in err


@contextmanager
def commanded(*words: str) -> Iterator[str]:
    """`toolshift model-proxy` in a process of its own; its address."""
    command = [sys.executable, "-m", "toolshift", "model-proxy", "--port", "0", *words]
    environment = {**os.environ, "OPENAI_API_KEY": "the-key-of-the-model"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stdout is not None
        yield next(word for word in process.stdout.readline().split() if "http" in word)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(10)


def test_the_command_serves_until_it_is_stopped(tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    with scripted_model(Reader(TASK)) as model:
        words = ("--upstream", model.url, "--shift", "identity_erasure:3", "--trace", str(trace))
        with commanded(*words) as url:
            seat = start_episode(TASK)
            work(url, seat)
    assert grade(seat.episode).passed
    assert len(trace.read_text().splitlines()) == len(model.requests)


def test_secrets_that_are_spoken_of_are_not_traced(tmp_path: Path) -> None:
    secrets = ("the-key-of-the-model", "the-word-of-the-agent", "hunter2hunter2")
    text = "I was given {} and {}; PASSWORD={}".format(*secrets)
    arguments = json.dumps({"api_key": "hunter2hunter2"})
    call = {"id": "c", "type": "function", "function": {"name": "x", "arguments": arguments}}
    line = {"role": "assistant", "content": text, "tool_calls": [call]}
    trace = tmp_path / "trace.jsonl"
    body = {"model": "m", "messages": [], "tools": start_episode(TASK).tools()}
    with scripted_model(_Stubborn(line)) as model:
        words = ("--upstream", model.url, "--shift", "identity_erasure:3", "--trace", str(trace))
        with commanded(*words, "--token", secrets[1]) as url:
            bearing = {"authorization": f"Bearer {secrets[1]}"}
            got = httpx.post(f"{url}/chat/completions", json=body, headers=bearing, timeout=20)
    assert got.status_code == 200
    (record,) = map(json.loads, trace.read_text().splitlines())
    assert record["text"] == "I was given [redacted] and [redacted]; PASSWORD=[redacted]"
    assert not [secret for secret in secrets if secret in trace.read_text()]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-1, 1) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=3,
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every place in JSON data, as what holds it and where."""
    if isinstance(value, dict):
        inside = list(value.items())
    else:
        inside = list(enumerate(value)) if isinstance(value, list) else []
    return [found for key, inner in inside for found in [(value, key), *places(inner)]]


def request_of(tools: list[dict[str, Any]], stream: bool) -> dict[str, Any]:
    call = {"id": "c1", "type": "function", "function": {"name": "find_place", "arguments": "{}"}}
    said = {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "c1", "content": "{}"}
    messages = [{"role": "user", "content": "hello"}, said, result]
    return {"model": "m", "n": 1, "stream": stream, "messages": messages, "tools": tools}


def answer_of(stream: bool) -> dict[str, Any]:
    function = {"name": "find_place", "arguments": "{}"}
    call = {"id": "c2", "index": 0, "type": "function", "function": function}
    said = {"role": "assistant", "content": "Well.", "tool_calls": [call]}
    choice = {"index": 0, "delta" if stream else "message": said, "finish_reason": "tool_calls"}
    return {"id": "1", "object": "x", "choices": [choice], "usage": {"prompt_tokens": 1}}


async def exchanged(
    request: bytes, answer: bytes, stream: bool, raw: bytes | None = None
) -> httpx.Response:
    def upstream(_: httpx.Request) -> httpx.Response:
        content = b"data: " + answer + b"\n\ndata: [DONE]\n\n" if stream else answer
        content = content if raw is None else raw
        return httpx.Response(200, content=content)

    client = httpx.AsyncClient(transport=httpx.MockTransport(upstream))
    options = ShiftOptions(read_stack("tool_name_noise:3"))
    app = ModelProxy("http://model/v1", options, client=client).app
    way = httpx.ASGITransport(app=app)  # which raises what the application raises
    async with client, httpx.AsyncClient(transport=way, base_url="http://proxy") as agent:
        return await agent.post("/v1/chat/completions", content=request)


@given(st.data(), st.booleans(), st.booleans())
def test_no_form_of_a_request_or_an_answer_is_an_error_of_the_proxy(
    data: st.DataObject, stream: bool, of_the_model: bool
) -> None:
    tools = start_episode(TASK).tools()[:2]
    request, answer = request_of(tools, stream), answer_of(stream)
    for _ in range(2):
        found = places(answer if of_the_model else request)
        holder, key = found[data.draw(st.integers(0, len(found) - 1))]
        holder[key] = data.draw(JSON)
    got = asyncio.run(exchanged(json.dumps(request).encode(), json.dumps(answer).encode(), stream))
    expected = {200, 502} if of_the_model else {200, 400, 501}
    if request["stream"] is not stream:  # then a whole answer meets a stream, or the other way
        expected |= {400, 502}
    assert got.status_code in expected, got.text


@pytest.mark.parametrize(
    "raw", [b"\xff\xfe", b"[" * 100_000, b'{"tools": [{"n": ' + b"9" * 5000 + b"}]}", b"3", b""]
)
def test_bytes_that_are_no_request_are_refused(raw: bytes) -> None:
    assert asyncio.run(exchanged(raw, b"{}", stream=False)).status_code == 400


SURROGATE = b'{"messages": [{"role": "user", "content": "\\ud800"}], "tools": []}'
LONG = b"9" * 5000
DEEP = b'{"choices": ' + b"[" * 50_000
LEAK = b"orders_of_the_model"
ODD_ANSWERS = {
    "no JSON": b"<html>Bad gateway</html>",
    "no UTF-8": b'{"choices": [{"message": {"content": "\xff\xfe"}}]}',
    "a list": b"[]",
    "null": b"null",
    "nothing": b"",
    "no choices": b'{"id": "1"}',
    "empty choices": b'{"choices": []}',
    "null message": b'{"choices": [{"message": null}]}',
    "no message": b'{"choices": [{"text": "old"}]}',
    "message as text": b'{"choices": [{"message": "hello"}]}',
    "calls as text": b'{"choices": [{"message": {"tool_calls": "x"}}]}',
    "name as number": b'{"choices": [{"message": {"tool_calls": [{"function": {"name": 5}}]}}]}',
    "nested": DEEP,
    "5,000 digits": b'{"choices": [{"message": {"content": "x"}}], "usage": {"n": ' + LONG + b"}}",
    "reason as list": b'{"choices": [{"message": {"content": "x"}, "finish_reason": []}]}',
}


def asking(stream: bool) -> bytes:
    return json.dumps(request_of(start_episode(TASK).tools()[:2], stream)).encode()


@pytest.mark.parametrize("kind", ODD_ANSWERS)
def test_an_answer_that_is_no_completion_is_a_bad_gateway(kind: str) -> None:
    said = asyncio.run(exchanged(asking(False), ODD_ANSWERS[kind], stream=False))
    assert said.status_code == 502
    assert "the model's answer is no chat completion" in said.json()["error"]["message"]


def test_an_error_that_comes_as_an_answer_passes() -> None:
    wrong = b'{"error": {"message": "overloaded"}}'
    said = asyncio.run(exchanged(asking(False), wrong, stream=False))
    assert (said.status_code, said.content) == (200, wrong)


def chunk(**delta: Any) -> bytes:
    return b"data: " + json.dumps({"id": "1", "choices": [{"delta": delta}]}).encode() + b"\n\n"


CUT_STREAMS = {
    "nothing": b"",
    "JSON that is no stream": b'{"choices": [{"message": {"content": "x"}}]}',
    "no JSON": chunk(content="Well") + b"data: {\n\n",
    "a list": b"data: []\n\n",
    "nested": b"data: " + DEEP + b"\n\n",
    "5,000 digits": b'data: {"choices": [], "n": ' + LONG + b"}\n\n",
    "in mid-text": chunk(content="Well"),
    "in mid-call": chunk(
        tool_calls=[{"index": 0, "id": "1", "function": {"name": LEAK.decode(), "arguments": "{"}}]
    ),
    "in mid-line": chunk(content="Well") + b'data: {"id": "1", "cho',
}


@pytest.mark.parametrize("kind", CUT_STREAMS)
def test_a_stream_that_is_cut_or_odd_ends_in_an_error(kind: str) -> None:
    said = asyncio.run(exchanged(asking(True), b"", stream=True, raw=CUT_STREAMS[kind]))
    events = [json.loads(one[6:]) for one in said.text.split("\n\n") if one]
    assert "the model's stream broke" in events[-1]["error"]["message"]
    assert LEAK not in said.content
    reasons = [choice["finish_reason"] for one in events for choice in one.get("choices", ())]
    assert not any(reasons)


@pytest.mark.parametrize("end", [b"data: [DONE]\n\n", b"data: [DONE]", b""])
def test_a_stream_may_end_by_a_reason_or_a_mark(end: bytes) -> None:
    last = b'data: {"id": "1", "choices": [{"delta": {}, "finish_reason": "stop"}]}\n\n'
    for raw in (chunk(content="Well") + last + end, *([chunk(content="Well") + end] * bool(end))):
        said = asyncio.run(exchanged(asking(True), b"", stream=True, raw=raw))
        assert "error" not in said.text
        assert said.text.endswith("data: [DONE]\n\n")


@pytest.mark.parametrize(
    "raw",
    [
        SURROGATE[:-12] + b'"tools": [{"type": "function", "function": {"name": "\\ud800"}}]}',
        b'{"messages": [], "tools": [null]}',
        b'{"messages": [], "tools": [{"type": "function"}]}',
        b'{"messages": {"a": 1}, "tools": []}',
        b'{"messages": [], "n": ' + LONG + b"}",
        b'{"messages": [{"role": "user", "content": "\xc3\x28"}]}',
    ],
    ids=["surrogate", "null tool", "no function", "messages as object", "digits", "no UTF-8"],
)
def test_a_request_of_odd_types_is_refused_or_passes(raw: bytes) -> None:
    said = asyncio.run(exchanged(raw, b'{"choices": [{"message": {}}]}', stream=False))
    assert said.status_code in (200, 400, 501)


# -- servers and agents that are a little off ----------------------------------------------------

TOOL = {"type": "function", "function": {"name": "get_weather", "description": "Get the weather."}}
ASKED: dict[str, Any] = {
    "model": "m",
    "messages": [{"role": "user", "content": "Weather?"}],
    "tools": [TOOL],
}


def scripted(bodies: list[Any], answers: list[Any]) -> tuple[list[Any], list[str]]:
    """What the model was sent, and what the agent got, with each answer as it is scripted."""
    sent: list[Any] = []

    def model(request: httpx.Request) -> httpx.Response:
        sent.append(json.loads(request.content))
        answer = answers[len(sent) - 1]
        return httpx.Response(200, text=answer(sent[-1]) if callable(answer) else answer)

    async def talk() -> list[str]:
        up = httpx.AsyncClient(transport=httpx.MockTransport(model))
        proxy = ModelProxy(
            "http://up/v1", ShiftOptions(read_stack("identity_erasure:3")), client=up
        )
        got: list[str] = []
        through = httpx.ASGITransport(proxy.app)
        async with httpx.AsyncClient(transport=through, base_url="http://p/v1") as agent:
            for body in bodies:
                sending = body(got) if callable(body) else body
                got.append((await agent.post("/chat/completions", json=sending)).text)
        return got

    got = asyncio.run(talk())
    return sent, got


def of_stream(delta: Any = None, finish: Any = None, **more: Any) -> str:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    named = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return "data: " + json.dumps({**named, "choices": choices, **more}) + "\n\n"


DONE = "data: [DONE]\n\n"


def test_an_error_in_a_stream_stays_one_where_done_follows_it() -> None:
    told = "data: " + json.dumps({"error": {"message": "engine died", "code": 500}}) + "\n\n"
    _, (got,) = scripted(
        [ASKED | {"stream": True}], [of_stream({"role": "assistant"}) + told + DONE]
    )
    assert "engine died" in got
    assert 'finish_reason":"' not in got
    assert "[DONE]" not in got


def test_a_stream_has_its_role_once_and_the_names_of_its_own_chunks() -> None:
    first = of_stream(id="", object="", model="", prompt_filter_results=[])  # as Azure begins
    answer = first + of_stream({"role": "assistant", "content": ""}) + of_stream({"content": "hi"})
    _, (got,) = scripted([ASKED | {"stream": True}], [answer + of_stream({}, "stop") + DONE])
    chunks = [json.loads(line[6:]) for line in got.split("\n\n")[:-2]]
    assert {(one["id"], one["object"], one["model"]) for one in chunks} == {
        ("c1", "chat.completion.chunk", "m")
    }
    deltas = [one["choices"][0]["delta"] for one in chunks]
    assert deltas == [{"role": "assistant"}, {"content": "hi"}, {}]


def test_a_tool_without_a_type_is_shifted_and_so_is_one_that_is_allowed() -> None:
    allowed = {"mode": "auto", "tools": [{"type": "function", "function": {"name": "get_weather"}}]}
    body = {
        **ASKED,
        "tools": [{"function": TOOL["function"]}],
        "n": None,
        "tool_choice": {"type": "allowed_tools", "allowed_tools": allowed},
    }
    (sent,), _ = scripted([body], [json.dumps({"choices": [{"message": {"content": "x"}}]})])
    (shown,) = sent["tools"]
    assert shown["function"]["name"] != "get_weather"
    (meant,) = sent["tool_choice"]["allowed_tools"]["tools"]
    assert meant["function"]["name"] == shown["function"]["name"]


def test_results_stay_when_the_tool_list_changes() -> None:
    def calls(body: Any) -> str:
        function = {"name": body["tools"][0]["function"]["name"], "arguments": "{}"}
        call = {"id": "1", "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        return json.dumps({"choices": [{"message": message, "finish_reason": "tool_calls"}]})

    def reports(got: list[str]) -> Any:
        said = json.loads(got[0])["choices"][0]["message"]
        result = {"role": "tool", "tool_call_id": "1", "content": '{"temp": 21}'}
        other = {"type": "function", "function": {"name": "find", "description": "Find it."}}
        return {**ASKED, "messages": [*ASKED["messages"], said, result], "tools": [TOOL, other]}

    end = json.dumps({"choices": [{"message": {"content": "21"}}]})
    sent, _ = scripted([ASKED, reports], [calls, end])
    _, said, result = sent[1]["messages"]
    assert said["tool_calls"][0]["function"]["name"] == sent[1]["tools"][0]["function"]["name"]
    assert json.loads(result["content"]) == {"temp": 21}


@pytest.mark.parametrize("shift", ["tools_by_action:2", "permanent_error:3", "redirect:3"])
def test_what_was_really_done_is_no_error_of_a_layer(shift: str) -> None:
    tools = start_episode(TASK).tools()[:3]
    function = {"name": tools[0]["function"]["name"], "arguments": "{}"}
    call = {"id": "1", "type": "function", "function": function}
    history = [  # of a conversation that this proxy has not heard so far
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": '{"done": "yes"}'},
    ]
    toolbox, scene = prepare(tools, ShiftOptions(read_stack(shift), needed=(function["name"],)))
    shown = Conversation(scene, toolbox, Said()).show(history)[0]
    assert json.loads(shown[-1]["content"]) == {"done": "yes"}

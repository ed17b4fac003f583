"""The model proxy for OpenAI's Responses, with the official client before a strict server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import serving
from connect.proxying import proxied
from connect.responses_server import Body, Model, ResponsesServer, playing, responses_server
from connect.scripted_model import Part, Reader
from dialects.response_items import events, response
from serving import scripted_server

from toolshift.connect.callables import StartedEpisode, start_episode
from toolshift.connect.model_proxy.app import MAX_ROUNDS
from toolshift.core.http import httpx
from toolshift.episode.grade import grade

openai = pytest.importorskip("openai")

TASK = "poi/booking/0"


@contextmanager
def between(model: Model, shifts: str) -> Iterator[tuple[Any, ResponsesServer, list[Any]]]:
    """The official client, a proxy and a strict server."""
    with (
        responses_server(model) as server,
        proxied(server.url, shifts) as (url, records),
        openai.OpenAI(base_url=url, api_key="sk-dummy", max_retries=0) as client,
    ):
        yield client, server, records


def flat(tools: list[Body]) -> list[Body]:
    return [{"type": "function", "strict": False, **tool["function"]} for tool in tools]


def ask(client: Any, stream: bool, **body: Any) -> Any:
    """A response, whole or put together by the client's own reader of streams."""
    if not stream:
        return client.responses.create(model="m", **body)
    with client.responses.stream(model="m", **body) as told:
        return told.get_final_response()


def work(client: Any, seat: StartedEpisode, stream: bool, chained: bool = False) -> list[Body]:
    """An agent with hard-wired tools; `chained` lets the server keep the conversation."""
    tools = flat(seat.tools())
    said: list[Any] = [{"role": "user", "content": seat.message}]
    how: Body = {} if chained else {"store": False, "include": ["reasoning.encrypted_content"]}
    told: list[Body] = []
    for _ in range(20):
        found = ask(client, stream, input=said, tools=tools, **how)
        output = [item.to_dict() for item in found.output]
        told += output
        said = [] if chained else [*said, *found.output]  # the client's own objects
        how |= {"previous_response_id": found.id} if chained else {}
        for item in output:
            if item["type"] == "function_call":
                heard = seat.call(item["name"], json.loads(item["arguments"]))
                said.append(
                    {"type": "function_call_output", "call_id": item["call_id"], "output": heard}
                )
        if not any(item["type"] == "function_call" for item in output):
            seat.reply(found.output_text)
        if seat.over:
            break
    return told


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("chained", [False, True], ids=["stateless", "chained"])
@pytest.mark.parametrize(
    "shifts", ["tool_name_noise:3", "identity_erasure:2+parameter_rename:2+format_drift:2"]
)
def test_a_shifted_model_still_serves_a_hard_wired_agent(
    shifts: str, chained: bool, stream: bool
) -> None:
    seat = start_episode(TASK)
    with between(playing(Reader(TASK)), shifts) as (client, server, records):
        told = work(client, seat, stream, chained)
    assert not server.refused
    verdict = grade(seat.episode)
    assert verdict.passed
    assert verdict.errors == 0
    own = {tool["function"]["name"] for tool in seat.tools()}
    assert {item["name"] for item in told if item["type"] == "function_call"} <= own
    assert all(request["tools"] != flat(seat.tools()) for request in server.requests)
    if "format_drift" in shifts:
        assert any(record["results"] for record in records)
    if chained:
        assert all(len(request["input"]) <= 2 for request in server.requests)


class _Curious(Reader):
    """Tries a memorised name first, then goes on as shown."""

    def reply(self, request: Body) -> tuple[Body, list[str]]:
        said = request["messages"]
        if not any(message["role"] == "assistant" for message in said):
            return {**Part("oracle", TASK).lines[0], "content": "By heart."}, []
        first = next(n for n, m in enumerate(said) if m["role"] == "assistant")
        rest = [*said[:first], *said[first + 2 :]]
        return super().reply({**request, "messages": rest})


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("chained", [False, True], ids=["stateless", "chained"])
def test_what_was_answered_on_the_way_stays_in_the_history(chained: bool, stream: bool) -> None:
    seat = start_episode(TASK)
    with between(playing(_Curious(TASK)), "identity_erasure:3") as (client, server, _):
        told = work(client, seat, stream, chained)
    assert not server.refused
    assert grade(seat.episode).passed
    assert grade(seat.episode).calls == 3
    assert "unknown_tool" not in json.dumps(told)
    if not chained:
        assert "unknown_tool" in json.dumps(server.requests[-1]["input"])


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_model_that_will_not_learn_is_cut_off(stream: bool) -> None:
    seat = start_episode(TASK)
    line = Part("oracle", TASK).lines[0]
    body = {"model": "m", "input": seat.message, "tools": flat(seat.tools()), "stream": stream}
    with (
        responses_server(lambda _: line) as server,
        proxied(server.url, "identity_erasure:3") as (url, _),
    ):
        got = httpx.post(f"{url}/responses", json=body, timeout=20)
    assert got.status_code == 200
    assert "function_call" not in got.text
    assert '"reason":"max_output_tokens"' in got.text
    assert len(server.requests) == MAX_ROUNDS
    assert not server.refused


KEY = {"type": "string", "description": "What."}
LOOK = {
    "type": "function",
    "name": "look_up",
    "description": "Looks a thing up.",
    "strict": False,
    "parameters": {"type": "object", "properties": {"key": KEY}, "required": ["key"]},
}


def calls_all_at_once(request: Body) -> Body:
    heard = [m for m in request["messages"] if m["role"] == "tool"]
    if heard:
        return {"content": f"Heard {len(heard)}."}
    tools = [tool["function"] for tool in request["tools"]]
    calls = []
    for tool in tools:
        keys = tool["parameters"]["properties"]
        said = dict.fromkeys(keys, f"{tool['name']}!")
        calls.append({"function": {"name": tool["name"], "arguments": json.dumps(said)}})
    return {"content": "All.", "tool_calls": calls}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_parallel_calls_of_functions_namespaces_and_custom_tools(stream: bool) -> None:
    """Each call reaches the agent as the kind that it offers; results with pictures are shifted,
    and the pictures stay."""
    tools = [
        LOOK,
        {"type": "namespace", "name": "mcp__shop", "description": "A shop.",
         "tools": [{**LOOK, "name": "find_item", "description": "Finds an item."}]},
        {"type": "custom", "name": "patch_file", "description": "Edits a file."},
    ]  # fmt: skip
    with between(calls_all_at_once, "tool_name_noise:3+format_drift:2") as (client, server, _):
        how = {"tools": tools, "store": False, "include": ["reasoning.encrypted_content"]}
        said: list[Any] = [{"role": "user", "content": "Go."}]
        found = ask(client, stream, input=said, **how)
        output = [item.to_dict() for item in found.output]
        calls = [item for item in output if item["type"].endswith("_call")]
        own = [(call["type"], call.get("namespace"), call["name"]) for call in calls]
        assert own == [
            ("function_call", None, "look_up"),
            ("function_call", "mcp__shop", "find_item"),
            ("custom_tool_call", None, "patch_file"),
        ]
        assert calls[2]["input"].endswith("!")
        picture = {"type": "input_image", "image_url": "data:image/png;base64,AA", "detail": "low"}
        data = '{"status_code": 3, "unit_price": 4}'
        text = {"type": "input_text", "text": data}
        results = [
            {"type": f"{call['type']}_output", "call_id": call["call_id"], "output": text["text"]}
            for call in calls
        ]
        results[0]["output"] = [text, picture]
        final = ask(client, stream, input=[*said, *found.output, *results], **how)
    assert not server.refused
    assert final.output_text == "Heard 3."
    shown = [
        item for item in server.requests[-1]["input"] if item.get("type", "").endswith("_output")
    ]
    assert shown[0]["output"][1] == picture
    assert shown[0]["output"][0]["text"] != data
    assert [item["type"] for item in shown] == [f"{call['type']}_output" for call in calls]


def test_the_choice_of_a_tool_names_what_is_shown() -> None:
    for choice in (
        {"type": "function", "name": "look_up"},
        {
            "type": "allowed_tools",
            "mode": "auto",
            "tools": [{"type": "function", "name": "look_up"}],
        },
    ):
        with between(calls_all_at_once, "tool_name_noise:3") as (client, server, _):
            found = client.responses.create(
                model="m", input="Go.", tools=[LOOK], tool_choice=choice
            )
        (request,) = server.requests
        (tool,) = request["tools"]
        chosen = request["tool_choice"]
        assert (chosen.get("tools") or [chosen])[0] == {"type": "function", "name": tool["name"]}
        assert found.tools[0].name == "look_up", "what a response repeats is the agent's own"
        assert found.to_dict()["tool_choice"] == choice


def test_an_answer_that_is_not_known_cannot_be_followed() -> None:
    with between(calls_all_at_once, "tool_name_noise:3") as (client, server, _):
        with pytest.raises(openai.BadRequestError, match=r"resp_x.* is not known here"):
            client.responses.create(
                model="m", input="Go.", tools=[LOOK], previous_response_id="resp_x"
            )
        found = client.responses.create(model="m", input="Go.", tools=[LOOK])
        with pytest.raises(openai.InternalServerError, match="offers none"):
            client.responses.create(model="m", input="And?", previous_response_id=found.id)
    assert len(server.requests) == 1


TOOLS = {"model": "m", "input": "Go.", "tools": [LOOK]}
REFUSED: dict[str, Body] = {
    "hosted tool": {**TOOLS, "tools": [LOOK, {"type": "web_search"}]},
    "hosted tool alone": {**TOOLS, "tools": [{"type": "code_interpreter"}]},
    "tool of MCP": {**TOOLS, "tools": [{"type": "mcp", "server_url": "https://x"}]},
    "tool search": {**TOOLS, "tools": [LOOK, {"type": "tool_search"}]},
    "hosted tool in a namespace": {
        **TOOLS, "tools": [{"type": "namespace", "name": "a", "tools": [{"type": "web_search"}]}]},
    "tool of chat completions": {
        **TOOLS, "tools": [{"type": "function", "function": {"name": "f"}}]},
    "deferred tool": {**TOOLS, "tools": [{**LOOK, "defer_loading": True}]},
    "tool that declares its results": {
        **TOOLS, "tools": [{**LOOK, "output_schema": {"type": "object"}}]},
    "unknown field": {**TOOLS, "plugins": [{"id": "web"}]},
    "background": {**TOOLS, "background": True},
    "conversation": {**TOOLS, "conversation": "conv_1"},
    "prompt": {**TOOLS, "prompt": {"id": "pmpt_1"}},
    "choice of a hosted tool": {**TOOLS, "tool_choice": {"type": "file_search"}},
    "item of another kind": {**TOOLS, "input": [{"type": "mcp_call", "name": "f"}]},
    "structure in an unknown field": {
        **TOOLS, "input": [{"role": "user", "content": "x", "tools": [{"name": "f"}]}]},
    "reference to an item": {**TOOLS, "input": [{"type": "item_reference", "id": "x"}]},
    "more tools in the input": {**TOOLS, "input": [{"type": "additional_tools", "tools": [LOOK]}]},
    "result without its call": {
        **TOOLS, "input": [{"type": "function_call_output", "call_id": "c", "output": "x"}]},
    "calls without tools": {
        "model": "m",
        "input": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}]},
    "odd part": {**TOOLS, "input": [{"role": "user", "content": [{"type": "tool_use"}]}]},
    "odd text format": {**TOOLS, "text": {"format": {"type": "grammar"}}},
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_shifted_is_refused(name: str) -> None:
    with (
        responses_server(calls_all_at_once) as server,
        proxied(server.url, "tool_name_noise:3") as (url, records),
    ):
        got = httpx.post(f"{url}/responses", json=REFUSED[name])
    assert got.status_code == 501
    assert "toolshift shifts requests" in got.json()["error"]["message"]
    assert records[-1]["unshifted"] == "POST /v1/responses"
    assert not server.requests


@pytest.mark.parametrize(
    "body", [{"input": 3}, {"input": [3]}, {"tools": "x"}, [], {"tools": [{"x": 1}]}], ids=range(5)
)
def test_what_cannot_be_read_is_said(body: Any) -> None:
    with (
        responses_server(calls_all_at_once) as server,
        proxied(server.url, "tool_name_noise:3") as (url, _),
    ):
        got = httpx.post(f"{url}/responses", json=body)
    assert got.status_code == 400
    assert "cannot be read" in got.json()["error"]["message"]
    assert not server.requests


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_errors_of_the_server_reach_the_client(stream: bool) -> None:
    call = {"type": "function_call", "call_id": "c", "name": "look_up", "arguments": "{}"}
    with (
        between(calls_all_at_once, "tool_name_noise:3") as (client, _, records),
        pytest.raises(openai.BadRequestError, match="No tool output found"),
    ):
        client.responses.create(model="m", input=[call], tools=[LOOK], stream=stream)
    assert records[-1]["status"] == 400


CALL = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "HIDDEN", "arguments": "{}"}
WHOLE = events(response([{"type": "reasoning", "id": "rs_1", "summary": []}, CALL]))
ENDED = {
    "type": "response.failed",
    "sequence_number": 9,
    "response": response([], status="failed", error={"code": "server_error", "message": "tired"}),
}
BROKEN: dict[str, tuple[list[Body], str]] = {
    "cut": (WHOLE[:-1], "the stream ended before the message did"),
    "cut in an item": (WHOLE[:5], "the stream ended before the message did"),
    "failed": ([*WHOLE[:5], ENDED], "tired"),
    "error": ([*WHOLE[:5], {"type": "error", "code": "x", "message": "tired"}], "tired"),
    "error of other servers": ([*WHOLE[:5], {"error": {"message": "tired"}}], "tired"),
    "no object": ([*WHOLE[:5], [3]], "no JSON object"),  # type: ignore[list-item]
    "no response": ([{"type": "response.completed"}], "without a response"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_stream_that_breaks_ends_in_an_error_and_tells_no_hidden_name(name: str) -> None:
    told, why = BROKEN[name]
    raw = "".join(f"data: {json.dumps(event)}\n\n" for event in told).encode()
    with (
        scripted_server() as server,
        proxied(server.url, "tool_name_noise:3") as (url, records),
        openai.OpenAI(base_url=url, api_key="sk-dummy", max_retries=0) as client,
    ):
        server.script = [serving.body(raw)]
        stream = client.responses.create(model="m", input="Go.", tools=[LOOK], stream=True)
        heard = [event.to_dict() for event in stream]
    assert heard[-1]["type"] == ("response.failed" if name == "failed" else "error")
    assert why in json.dumps(heard[-1])
    assert "HIDDEN" not in json.dumps(heard)
    assert records[-1]["status"] == 502
    assert len(server.requests) == 1


@pytest.mark.parametrize("step", [1, 7, 50])
def test_a_stream_cut_at_every_byte_loses_no_call(step: int) -> None:
    """Pieces of any size, keep-alives between them, and other ends of lines."""
    output = [{"type": "reasoning", "id": "rs_1", "summary": []},
              *({**CALL, "id": f"fc_{n}", "call_id": f"c{n}", "name": "look_up",
                 "arguments": json.dumps({"key": "\u00e9" * n})} for n in range(3))]  # fmt: skip
    lines = [f": alive\r\n\r\ndata: {json.dumps(e)}\r\n\r\n" for e in events(response(output))]
    raw = "".join(lines).encode()

    def slowly(exchange: serving.Exchange) -> None:
        exchange.send_response(200)
        exchange.send_header("content-type", "text/event-stream")
        exchange.send_header("connection", "close")
        exchange.end_headers()
        for place in range(0, len(raw), step):
            exchange.wfile.write(raw[place : place + step])
            exchange.wfile.flush()
        exchange.close_connection = True

    with (
        scripted_server() as server,
        proxied(server.url, "description_removal:2") as (url, _),
        openai.OpenAI(base_url=url, api_key="sk-dummy", max_retries=0) as client,
    ):
        server.script = [slowly]
        with client.responses.stream(model="m", input="Go.", tools=[LOOK]) as told:
            found = told.get_final_response()
    assert [item.call_id for item in found.output[1:]] == ["c0", "c1", "c2"]
    assert [json.loads(item.arguments)["key"] for item in found.output[1:]] == [
        "",
        "\u00e9",
        "\u00e9\u00e9",
    ]
    assert len(server.requests) == 1

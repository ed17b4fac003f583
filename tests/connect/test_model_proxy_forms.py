"""Answers in the forms that other servers have: a call of any form is carried, or said."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from toolshift.connect.callables import start_episode
from toolshift.connect.model_proxy.app import ModelProxy
from toolshift.connect.model_proxy.settings import ShiftOptions
from toolshift.core.http import httpx
from toolshift.shifts.stacks import read_stack

TOOLS = start_episode("poi/booking/0").tools()[:1]
NAME = TOOLS[0]["function"]["name"]


async def answered(message: dict[str, Any], stream: bool) -> tuple[str, str, ModelProxy]:
    """What an agent reads of a model's message, the name that was shown, and the proxy."""
    shown = ""

    def upstream(request: httpx.Request) -> httpx.Response:
        nonlocal shown
        shown = json.loads(request.content)["tools"][0]["function"]["name"]
        said = json.loads(json.dumps(message).replace("NAME", shown))
        if not stream:
            return httpx.Response(200, json={"choices": [{"message": said}]})
        chunks = [{"delta": said}, {"delta": None, "finish_reason": "stop"}]
        frames = [f"data: {json.dumps({'choices': [one]})}\n\n" for one in chunks]
        return httpx.Response(200, text="".join([*frames, "data: [DONE]\n\n"]))

    client = httpx.AsyncClient(transport=httpx.MockTransport(upstream))
    proxy = ModelProxy(
        "http://model/v1", ShiftOptions(read_stack("tool_name_noise:3")), "", client=client
    )
    way = httpx.ASGITransport(app=proxy.app)
    async with httpx.AsyncClient(transport=way, base_url="http://proxy") as agent:
        asked = {"messages": [{"role": "user", "content": "x"}], "tools": TOOLS, "stream": stream}
        got = await agent.post("/v1/chat/completions", json=asked)
    assert got.status_code == 200, got.text
    return got.text, shown, proxy


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    "message",
    [
        {"function_call": {"name": "NAME", "arguments": "{}"}},
        {"tool_calls": [{"id": 7, "function": {"name": "NAME", "arguments": "{}"}}]},
        {"tool_calls": [{"id": "a", "function": {"name": "NAME", "arguments": "null"}}]},
    ],
    ids=["of 2023", "counted", "null"],
)
def test_a_call_in_another_form_is_carried(message: dict[str, Any], stream: bool) -> None:
    text, shown, proxy = asyncio.run(answered({"content": None, **message}, stream))
    assert NAME in text
    assert shown != NAME
    assert shown not in text
    assert not any("as text" in line for line in proxy.ending)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_calls_as_text_are_said(stream: bool) -> None:
    written = '<tool_call>{"name": "NAME", "arguments": {}}</tool_call>'
    _, _, proxy = asyncio.run(answered({"content": written}, stream))
    assert any("answers with calls as text" in line for line in proxy.ending)


# -- what a layer cannot read, and turns that are cut ------------------------------------------

PLAN = {
    "name": "plan_trip",
    "description": "Plans a trip to a town by train.",
    "parameters": {"type": "object", "properties": {"town_name": {"type": "string"}}},
}
RIDE = {**PLAN, "name": "book_ride", "description": "Books a ride to a town for somebody."}
OFFERED = [{"type": "function", "function": function} for function in (PLAN, RIDE)]


HEADERS = {"content-type": "application/json", "x-request-id": "req_1", "etag": "of these bytes"}


def talk(
    shifts: str, answers: list[Any], path: str = "/chat/completions", **more: Any
) -> tuple[list[Any], httpx.Response]:
    """What the model was sent, and what the agent got; `answers` are made from what was sent."""
    sent: list[Any] = []

    def model(request: httpx.Request) -> httpx.Response:
        sent.append(json.loads(request.content))
        answer = answers[len(sent) - 1]
        answer = answer(sent[-1]) if callable(answer) else answer
        content = answer if isinstance(answer, str) else json.dumps(answer)
        return httpx.Response(200, text=content, headers=HEADERS)

    async def asked() -> httpx.Response:
        up = httpx.AsyncClient(transport=httpx.MockTransport(model))
        proxy = ModelProxy(
            "http://up/v1", ShiftOptions(read_stack(shifts), needed=("plan_trip",)), client=up
        )
        through = httpx.ASGITransport(proxy.app)
        said = {"model": "m", "messages": [{"role": "user", "content": "x"}], "tools": OFFERED}
        async with httpx.AsyncClient(transport=through, base_url="http://p/v1") as agent:
            return await agent.post(path, json=said | more)

    return sent, asyncio.run(asked())


def calling(arguments: str, finish: str = "tool_calls") -> Any:
    """A model that calls the first tool which it is shown."""

    def answer(sent: Any) -> Any:
        function = {"name": sent["tools"][0]["function"]["name"], "arguments": arguments}
        message = {"content": "So.", "tool_calls": [{"id": "c", "function": function}]}
        return {"choices": [{"message": message, "finish_reason": finish}]}

    return answer


DONE = {"choices": [{"message": {"content": "Done."}, "finish_reason": "stop"}]}


@pytest.mark.parametrize(
    ("path", "written"),
    [
        ("/chat/completions", lambda tool: {"type": "function", "function": tool}),
        ("/messages", lambda tool: {**tool, "input_schema": tool["parameters"]}),
    ],
    ids=["chat", "anthropic"],
)
def test_a_tool_keeps_its_shown_name_when_it_is_marked_for_a_cache(path: str, written: Any) -> None:
    tools = [{k: v for k, v in written(tool).items() if k != "parameters"} for tool in (PLAN, RIDE)]
    shown = []
    for place in (None, 0, 1):
        marks = [{"cache_control": {"type": "ephemeral"}} if n == place else {} for n in (0, 1)]
        marked = [tool | mark for tool, mark in zip(tools, marks, strict=True)]
        sent, _ = talk("identity_erasure:3", [DONE], path, tools=marked)
        assert [one.get("cache_control") for one in sent[0]["tools"]] == [
            mark.get("cache_control") for mark in marks
        ]
        shown.append([(one.get("function") or one)["name"] for one in sent[0]["tools"]])
    assert shown[0] == shown[1] == shown[2] != ["plan_trip", "book_ride"]


@pytest.mark.parametrize("arguments", ['{"town_name_arg": "Os', '{"n": 1e999}', "[1]"])
def test_arguments_that_nobody_can_read_are_answered_where_they_would_pass_under_shown_names(
    arguments: str,
) -> None:
    sent, got = talk("parameter_rename:3", [calling(arguments), DONE])
    assert got.json()["choices"][0]["message"]["content"] == "Done."
    told = sent[1]["messages"][-1]["content"]
    assert "the arguments are no JSON object" in told
    assert "required" not in told


def test_a_turn_that_was_cut_is_the_agents_to_go_on_with() -> None:
    sent, got = talk("parameter_rename:3", [calling('{"town_name_arg": "Os', "length"), DONE])
    (choice,) = got.json()["choices"]
    assert (choice["finish_reason"], choice["message"]["content"]) == ("length", "So.")
    assert "tool_calls" not in choice["message"]
    assert len(sent) == 1


def test_json_in_place_of_a_stream_is_said() -> None:
    _, got = talk("identity_erasure:3", [{"error": {"message": "overloaded"}}], stream=True)
    assert json.loads(got.text.removeprefix("data: "))["error"] == {"message": "overloaded"}
    _, got = talk("identity_erasure:3", [DONE], stream=True)
    assert "JSON where a stream was asked for" in got.text
    assert "Done." not in got.text
    _, got = talk("identity_erasure:3", [[DONE]], stream=True)
    assert "JSON where a stream was asked for" in got.text


def test_a_stream_that_its_server_calls_json_is_read() -> None:
    delta = {"choices": [{"delta": {"content": "Done."}, "finish_reason": "stop"}]}
    events = f"data: {json.dumps(delta)}\n\ndata: [DONE]\n\n"
    _, got = talk("identity_erasure:3", [events], stream=True)
    assert "Done." in got.text
    assert "error" not in got.text


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_what_a_server_says_in_headers_of_an_answer_goes_back(stream: bool) -> None:
    """Agents log the id of a request, and keep to the rate that is left."""
    _, got = talk("identity_erasure:3", [DONE], stream=stream)
    assert got.headers["x-request-id"] == "req_1"
    assert "etag" not in got.headers
    assert got.headers["content-type"] == ("text/event-stream" if stream else "application/json")


def one(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


def test_a_demanded_tool_is_the_one_that_stands_for_it() -> None:
    sent, _ = talk("tools_by_action:3", [DONE], tool_choice=one("plan_trip"))
    assert sent[0]["tool_choice"] == one(sent[0]["tools"][0]["function"]["name"])
    allowed = {"mode": "auto", "tools": [one("plan_trip"), one("book_ride")]}
    choice = {"type": "allowed_tools", "allowed_tools": allowed}
    sent, _ = talk("tools_by_action:3", [DONE], tool_choice=choice)
    assert len(sent[0]["tool_choice"]["allowed_tools"]["tools"]) == 1
    sent, _ = talk("split_tools:1", [DONE], tool_choice=choice)
    assert len(sent[0]["tool_choice"]["allowed_tools"]["tools"]) == 3


@pytest.mark.parametrize(
    ("shift", "why"), [("split_tools:1", "several tools"), ("tool_search:3", "shown no tool")]
)
def test_a_demanded_tool_for_which_no_single_one_stands_is_said(shift: str, why: str) -> None:
    sent, got = talk(shift, [DONE], tool_choice=one("plan_trip"))
    assert got.status_code == 400
    assert why in got.json()["error"]["message"]
    assert not sent

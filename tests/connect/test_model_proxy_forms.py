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

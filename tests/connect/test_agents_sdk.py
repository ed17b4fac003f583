"""OpenAI's Agents SDK, by OPENAI_BASE_URL alone, through the model proxy before a strict server."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from connect.proxying import proxied
from connect.responses_server import playing, responses_server
from connect.scripted_model import Reader

from toolshift.connect.callables import start_episode
from toolshift.episode.grade import grade

pytest.importorskip("agents.run")
from agents import (
    Agent,
    FunctionTool,
    Runner,
    set_default_openai_client,
    set_tracing_disabled,
)
from openai import AsyncOpenAI

TASK = "poi/booking/0"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("shifts", ["tool_name_noise:3", "parameter_rename:2+format_drift:2"])
def test_an_agent_of_the_sdk_passes(
    shifts: str, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seat = start_episode(TASK)

    def tool(function: dict[str, Any]) -> FunctionTool:
        async def invoke(_: Any, arguments: str) -> str:
            return seat.call(function["name"], json.loads(arguments))

        return FunctionTool(
            function["name"], function["description"], function["parameters"], invoke,
            strict_json_schema=False,
        )  # fmt: skip

    async def work() -> None:
        set_default_openai_client(AsyncOpenAI())  # one for this loop; it reads the environment
        agent = Agent(name="own", tools=[tool(one["function"]) for one in seat.tools()])
        if not stream:
            await Runner.run(agent, seat.message)
            return
        told = Runner.run_streamed(agent, seat.message)
        async for _ in told.stream_events():
            pass

    set_tracing_disabled(True)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-dummy")
    with (
        responses_server(playing(Reader(TASK))) as server,
        proxied(server.url, shifts) as (url, records),
    ):
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        asyncio.run(work())
    assert not server.refused
    assert grade(seat.episode).passed
    own = {tool["function"]["name"] for tool in seat.tools()}
    assert {call["name"] for record in records for call in record["carried"]} <= own
    shown = [{tool["name"] for tool in request["tools"]} for request in server.requests]
    assert all(own - names for names in shown) or "noise" not in shifts

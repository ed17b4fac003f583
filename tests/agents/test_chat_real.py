"""The chat agent talks to a real model, SmolLM2-135M, over HTTP."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from toolshift.agents.chat import ChatAgent
from toolshift.core.message import PROTOCOL_TOOLS, Reply, Turn

sys.path.insert(0, str(Path(__file__).parents[1]))  # tests/serving.py also runs by itself
from serving import find_weights, smol_server

pytestmark = pytest.mark.model

TURN = Turn(
    [
        {"role": "system", "content": "Answer with one call."},
        {"role": "user", "content": "What is the code of the museum in Lyon?"},
    ],
    [
        {
            "type": "function",
            "function": {
                "name": "find_place",
                "description": "Find a place in a city and return its code.",
                "parameters": {
                    "type": "object",
                    "properties": {"city": {"type": "string"}, "kind": {"type": "string"}},
                    "required": ["city"],
                },
            },
        },
        *PROTOCOL_TOOLS,
    ],
)


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    try:
        find_weights()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    with smol_server() as url:
        yield url


def came(reply: Reply) -> bool:
    """Whether the server replied; so small a model often talks until its limit."""
    return not reply.failure or reply.failure.startswith("truncated: ")


def test_text_protocol(base_url: str) -> None:
    agent = ChatAgent("smollm2", base_url, protocol="text", max_tokens=48)
    reply = agent.reply(TURN)
    assert came(reply)
    assert reply.text or reply.calls
    assert reply.usage.input_tokens > 100
    assert 0 < reply.usage.output_tokens <= 48 * 5
    again = agent.reply(TURN)
    assert (again.text, again.calls) == (reply.text, reply.calls)


def test_native_protocol_says_that_this_model_never_sees_the_tools(base_url: str) -> None:
    agent = ChatAgent("smollm2", base_url, max_tokens=32)
    with pytest.warns(UserWarning, match="chat template"):
        reply = agent.reply(TURN)
    assert came(reply)
    assert reply.text


def test_a_longer_conversation_with_results(base_url: str) -> None:
    call = {"name": "find_place", "arguments": '{"city": "Lyon"}'}
    messages = [
        *TURN.messages,
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c1", "type": "function", "function": call}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": '{"code": "K7Q2"}'},
    ]
    for protocol in ("text", "native"):
        agent = ChatAgent("smollm2", base_url, protocol=protocol, max_tokens=24)
        assert came(agent.reply(Turn(messages, ())))


@pytest.mark.slow
def test_episodes_at_once(base_url: str) -> None:
    agent = ChatAgent("smollm2", base_url, protocol="text", max_tokens=16, concurrency=4)
    with ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(lambda _: agent.reply(TURN), range(8)))
    assert all(map(came, replies))

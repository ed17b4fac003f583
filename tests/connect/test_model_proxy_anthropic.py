"""The vendor's own client through the model proxy, before a server as strict as the provider."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn
from strict_messages import StrictMessages, serving

from toolshift.connect.model_proxy.app import ModelProxy
from toolshift.connect.model_proxy.settings import ShiftOptions
from toolshift.core.scene import Applied

anthropic = pytest.importorskip("anthropic")

TOOLS = [
    {
        "name": "find_order",
        "description": "Finds an order by its number.",
        "input_schema": {
            "type": "object",
            "properties": {"number": {"type": "string", "description": "The number."}},
            "required": ["number"],
        },
        "cache_control": {"type": "ephemeral"},
    },
    {
        "name": "list_orders",
        "description": "Lists the orders of a customer.",
        "input_schema": {"type": "object", "properties": {"customer": {"type": "string"}}},
    },
]
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"}}


@contextlib.contextmanager
def proxied(upstream: str, *stack: str, **options: Any) -> Iterator[tuple[ModelProxy, Any]]:
    """A proxy on a port of its own, and the vendor's client for it."""
    applied = tuple(Applied(name, int(level)) for name, level in (s.split(":") for s in stack))
    proxy = ModelProxy(f"{upstream}/v1", ShiftOptions(applied), **options)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(proxy.app, "127.0.0.1", port, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    client = anthropic.Anthropic(
        base_url=f"http://127.0.0.1:{port}", api_key="k" * 20, max_retries=0
    )
    try:
        yield proxy, client
    finally:
        client.close()
        server.should_exit = True
        thread.join(5)


def script(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Two calls at once by the names on offer, then what the results said."""
    names = [tool["name"] for tool in body["tools"]]
    turn = sum(message["role"] == "assistant" for message in body["messages"])
    thought = {"type": "thinking", "thinking": f"Turn {turn}.", "signature": f"sig{turn}"}
    if turn == 0:
        schemas = [tool["input_schema"]["properties"] for tool in body["tools"]]
        inputs = [{next(iter(schema)): f"v{place}"} for place, schema in enumerate(schemas)]
        calls = [
            {"type": "tool_use", "name": name, "input": given}
            for name, given in zip(names[:2], inputs, strict=False)
        ]
        return [thought, {"type": "text", "text": "Both."}, *calls]
    return [thought, {"type": "text", "text": "Done: café\u2028."}]


def ask(
    client: Any, messages: list[Any], stream: bool, tools: list[Any] = TOOLS, **more: Any
) -> Any:
    given: dict[str, Any] = {
        "model": "claude",
        "max_tokens": 64,
        "messages": messages,
        "tools": tools,
        **more,
        "system": [{"type": "text", "text": "Help.", "cache_control": {"type": "ephemeral"}}],
        "thinking": {"type": "enabled", "budget_tokens": 1024},
    }
    if not stream:
        return client.messages.create(**given)
    with client.messages.stream(**given) as events:
        return events.get_final_message()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    "stack", [("identity_erasure:2",), ("format_drift:3",), ("redirect:1",)], ids=str
)
def test_a_conversation_of_the_vendors_client(stack: tuple[str, ...], stream: bool) -> None:
    mind = StrictMessages(script)
    with serving(mind) as upstream, proxied(upstream, *stack) as (_, client):
        messages: list[Any] = [{"role": "user", "content": "Where is order 7?"}]
        first = ask(client, messages, stream)
        calls = [block for block in first.content if block.type == "tool_use"]
        assert {call.name for call in calls} <= {"find_order", "list_orders"}
        messages.append({"role": "assistant", "content": first.content})
        results = [
            {"type": "tool_result", "tool_use_id": calls[0].id,
             "content": [{"type": "text", "text": '{"status": "sent", "total": 12}'}, PICTURE]},
            *({"type": "tool_result", "tool_use_id": call.id, "content": "boom", "is_error": True}
              for call in calls[1:]),
        ]  # fmt: skip
        messages.append({"role": "user", "content": [*results, {"type": "text", "text": "So?"}]})
        second = ask(client, messages, stream)
    assert mind.refused == []
    assert second.content[-1].text == "Done: café\u2028."
    assert second.content[0].signature == "sig1"
    sent = mind.requests[-1]
    assert sent["system"][0]["cache_control"] == {"type": "ephemeral"}
    last = sent["messages"][-1]["content"]
    assert last[-1] == {"type": "text", "text": "So?"}
    (shown,) = (one for one in last[:-1] if isinstance(one["content"], list))
    assert PICTURE in shown["content"], "a picture stays where it was"
    assert not shown.get("is_error")
    assert sum(one.get("is_error", False) for one in last[:-1]) == len(last) - 2
    if stack[0].startswith("identity"):
        assert not {tool["name"] for tool in sent["tools"]} & {"find_order", "list_orders"}
        assert [tool.get("cache_control") for tool in sent["tools"]].count(None) == 1


def test_what_is_not_shifted_is_refused_in_the_clients_words() -> None:
    mind = StrictMessages(script)
    hosted = {"type": "web_search_20250305", "name": "web_search"}
    with (
        serving(mind) as upstream,
        proxied(upstream, "identity_erasure:2") as (proxy, client),
        pytest.raises(anthropic.APIStatusError) as refused,
    ):
        ask(client, [{"role": "user", "content": "x"}], False, [*TOOLS, hosted])
    assert refused.value.status_code == 501
    assert "web_search_20250305" in str(refused.value)
    assert mind.requests == []
    assert "refused" in proxy.ending[-1]


def test_an_error_of_the_model_comes_through() -> None:
    mind = StrictMessages(lambda body: [{"type": "text", "text": "x"}])
    with (
        serving(mind) as upstream,
        proxied(upstream, "identity_erasure:2") as (_, client),
        pytest.raises(anthropic.BadRequestError, match="Extra inputs"),
    ):
        ask(client, [{"role": "user", "content": "x"}], False, extra_body={"top_secret": 3})


SEARCH = {
    "name": "ToolSearch",
    "description": "Finds tools that are not loaded yet.",
    "input_schema": {"type": "object", "properties": {"query": {"type": "string"}}},
}


def searching(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Searches for tools, calls the first that the search has named, and is done."""
    results = [
        one for message in body["messages"] if isinstance(message["content"], list)
        for one in message["content"] if one["type"] == "tool_result"
    ]  # fmt: skip
    if not results:
        name = next(t["name"] for t in body["tools"] if t["description"] == SEARCH["description"])
        return [{"type": "tool_use", "name": name, "input": {}}]
    named = [part["tool_name"] for part in results[0]["content"]]
    if len(results) == 1:
        return [{"type": "tool_use", "name": named[0], "input": {}}]
    return [{"type": "text", "text": "Done."}]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("stack", ["identity_erasure:2", "format_drift:3", "tool_name_noise:2"])
def test_what_a_clients_own_search_loads_has_the_names_that_are_shown(
    stack: str, stream: bool
) -> None:
    """As Claude Code loads tools, where it is asked to: found ones are marked and referred to."""
    tools = [SEARCH, *({**tool, "defer_loading": True} for tool in TOOLS)]
    mind = StrictMessages(searching)
    with serving(mind) as upstream, proxied(upstream, stack) as (_, client):
        messages: list[Any] = [{"role": "user", "content": "Where is order 7?"}]
        found = [{"type": "tool_reference", "tool_name": tool["name"]} for tool in TOOLS]
        for content in (found, [{"type": "text", "text": "sent"}]):
            said = ask(client, messages, stream, tools)
            (call,) = (block for block in said.content if block.type == "tool_use")
            result = {"type": "tool_result", "tool_use_id": call.id, "content": content}
            messages.append({"role": "assistant", "content": said.content})
            messages.append({"role": "user", "content": [result]})
        assert ask(client, messages, stream, tools).content[-1].text == "Done."
    assert mind.refused == []
    assert call.name in {"find_order", "list_orders"}, "carried under the client's own name"
    sent = mind.requests[-1]
    loaded = {tool["name"] for tool in sent["tools"] if tool.get("defer_loading")}
    shown = [part["tool_name"] for part in sent["messages"][2]["content"][0]["content"]]
    assert shown
    assert set(shown) <= loaded
    assert len(set(shown)) == len(shown)

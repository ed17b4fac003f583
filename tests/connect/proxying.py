"""A model proxy on a free port, and an agent with hard-wired tools that talks to it."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from typing import Any

from toolshift.connect.callables import StartedEpisode
from toolshift.connect.mcp.shifted_server import ShiftOptions
from toolshift.connect.model_proxy.app import ModelProxy
from toolshift.connect.serve.guard import Guard
from toolshift.connect.serve.server import bind, web_server
from toolshift.core.http import httpx
from toolshift.core.loopback import LOOPBACK
from toolshift.shifts.stacks import read_stack


@contextlib.contextmanager
def proxied(
    upstream: str,
    shifts: str = "",
    token: str = "",
    key: str = "",
    pass_through: bool = False,
    **how: Any,
) -> Iterator[tuple[str, list[Any]]]:
    """A proxy on a free port: its address, and the records of its trace."""
    records: list[Any] = []
    stack = read_stack(shifts)
    options = ShiftOptions(stack, **how)
    proxy = ModelProxy(upstream, options, key, records.append, pass_through=pass_through)
    proxy.app = Guard(proxy.app, LOOPBACK, token)  # type: ignore[assignment]
    listener = bind("127.0.0.1", 0)
    server = web_server(proxy)  # type: ignore[arg-type]
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1", records
    finally:
        server.should_exit = True
        thread.join()


def ask(url: str, body: dict[str, Any]) -> dict[str, Any]:
    """One request, streamed or not; the assistant's message."""
    with httpx.Client(timeout=20) as client:
        headers = {"authorization": "Bearer sk-very-secret-0123456789"}
        got = client.post(f"{url}/chat/completions", json=body, headers=headers)
        got.raise_for_status()
        if not body.get("stream"):
            return dict(got.json()["choices"][0]["message"])
        return _put_together(got.text)


def _put_together(stream: str) -> dict[str, Any]:
    """Reads a stream as an OpenAI client does."""
    lines = [line[6:] for line in stream.split("\n\n") if line]
    assert lines[-1] == "[DONE]"
    chunks = [json.loads(line) for line in lines[:-1]]
    assert len({chunk["id"] for chunk in chunks}) == 1
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    text, calls, reasons = "", dict[int, Any](), []
    for chunk in chunks:
        for choice in chunk["choices"]:
            text += choice["delta"].get("content") or ""
            reasons.append(choice["finish_reason"])
            for piece in choice["delta"].get("tool_calls") or ():
                call = calls.setdefault(piece["index"], piece)
                assert call["type"] == "function"
    assert [reason for reason in reasons if reason] == ["tool_calls" if calls else "stop"]
    message = {"role": "assistant", "content": text or None}
    return message | {"tool_calls": [calls[n] for n in sorted(calls)]} if calls else message


def work(url: str, seat: StartedEpisode, stream: bool = False) -> list[dict[str, Any]]:
    """An agent with hard-wired tools: their list never changes."""
    tools = seat.tools()
    said: list[dict[str, Any]] = [{"role": "user", "content": seat.message}]
    while not seat.over and len(said) < 40:
        message = ask(url, {"model": "m", "messages": said, "tools": tools, "stream": stream})
        said.append(message)
        for call in message.get("tool_calls") or ():
            function = call["function"]
            heard = seat.call(function["name"], json.loads(function["arguments"]))
            said.append({"role": "tool", "tool_call_id": call["id"], "content": heard})
        if not message.get("tool_calls"):
            seat.reply(message["content"] or "")
    return said

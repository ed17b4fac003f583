"""What was read of Anthropic's Messages is written back as it was, but for what a shift changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolshift.core.message import Reply, Turn
from toolshift.dialects import DIALECTS, as_request, read_reply
from toolshift.dialects.form import WIRE, Request
from toolshift.dialects.sse import read_data

ANTHROPIC = DIALECTS.find("anthropic")
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=6)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | WORDS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=2),
    max_leaves=4,
)
MARK = st.fixed_dictionaries({}, optional={"cache_control": st.just({"type": "ephemeral"})})


def block(kind: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    made = st.fixed_dictionaries({"type": st.just(kind), **fields})
    return st.builds(lambda one, mark: {**one, **mark}, made, MARK)


TEXTS = block("text", text=WORDS)
PICTURES = block("image", source=st.just({"type": "base64", "media_type": "image/png", "data": ""}))
THOUGHTS = block("thinking", thinking=WORDS, signature=WORDS) | block(
    "redacted_thinking", data=WORDS
)
CALLS = block("tool_use", id=st.just("?"), name=st.sampled_from(["find", "book"]),
              input=st.dictionaries(WORDS, VALUES, max_size=2))  # fmt: skip
REFERENCES = block("tool_reference", tool_name=st.sampled_from(["find", "book"]))
CONTENT = WORDS | st.lists(TEXTS | PICTURES | REFERENCES, max_size=3)


@st.composite
def histories(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Turns of a conversation: requests, what the assistant says, and the results of its calls."""
    said: list[dict[str, Any]] = [
        {"role": "user", "content": draw(WORDS | st.lists(TEXTS, min_size=1))}
    ]
    for turn in range(draw(st.integers(0, 3))):
        blocks = draw(WORDS | st.lists(TEXTS | THOUGHTS | CALLS, max_size=4))
        ids = []
        for place, one in enumerate(blocks if isinstance(blocks, list) else ()):
            if one["type"] == "tool_use":
                one["id"] = f"toolu_{turn}_{place}"
                ids.append(one["id"])
        said.append({"role": "assistant", "content": blocks})
        results = [
            {"type": "tool_result", "tool_use_id": name, **draw(st.fixed_dictionaries(
                {}, optional={"content": CONTENT, "is_error": st.booleans()}))}
            for name in draw(st.permutations(ids))
        ]  # fmt: skip
        more = draw(st.lists(TEXTS | PICTURES, max_size=2)) if results else []
        said.append({"role": "user", "content": [*results, *more] or draw(WORDS)})
        if draw(st.booleans()):
            said.append({"role": "system", "content": draw(WORDS | st.lists(TEXTS, min_size=1))})
    return said


TOOLS = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["find", "book"]), "input_schema": st.just({"type": "object"})},
        optional={"description": WORDS, "type": st.just("custom"), "strict": st.booleans(),
                  "cache_control": st.just({"type": "ephemeral"}),
                  "defer_loading": st.booleans()},
    ),
    max_size=2,
)  # fmt: skip
BODIES = st.fixed_dictionaries(
    {"model": st.just("m"), "max_tokens": st.just(9), "messages": histories()},
    optional={
        "system": WORDS | st.lists(TEXTS, max_size=2),
        "tools": TOOLS,
        "tool_choice": st.sampled_from(
            [{"type": "auto", "disable_parallel_tool_use": True}, {"type": "any"},
             {"type": "tool", "name": "find"}, {"type": "none"}]),
        "thinking": st.just({"type": "enabled", "budget_tokens": 1024}),
        "stream": st.booleans(),
    },
)  # fmt: skip


@given(BODIES)
def test_a_request_is_written_back_as_it_was(body: dict[str, Any]) -> None:
    before = deepcopy(body)
    assert ANTHROPIC.write(body, ANTHROPIC.read(body)) == before
    assert body == before


@given(BODIES)
def test_a_shift_changes_names_arguments_and_results_and_nothing_else(body: dict[str, Any]) -> None:
    asked = ANTHROPIC.read(body)
    messages = []
    for message in asked.messages:
        calls = [renamed(call) for call in message.get("tool_calls") or ()]
        changed = {"tool_calls": calls} if calls else {}
        changed |= {"content": "shifted"} if message["role"] == "tool" else {}
        messages.append({**message, **changed})
    tools = [renamed(tool) for tool in asked.tools]
    out = ANTHROPIC.write(body, Request(messages, tools, asked.choice, asked.stream))
    assert without_shifted(out) == without_shifted(body)
    for one in (*blocks_of(out), *(out.get("tools") or ())):
        assert one.get("name", "x_").startswith("x_")
        if one.get("type") == "tool_result":
            content = one["content"]
            assert content == "shifted" or content[0]["text"] == "shifted"


def renamed(thing: dict[str, Any]) -> dict[str, Any]:
    function = thing["function"]
    return {**thing, "function": {**function, "name": f"x_{function['name']}"}}


def blocks_of(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for message in body["messages"]:
        yield from message["content"] if isinstance(message["content"], list) else ()


def without_shifted(body: dict[str, Any]) -> dict[str, Any]:
    out = deepcopy(body)
    for one in (*blocks_of(out), *(out.get("tools") or ())):
        one.pop("name", None)
        if one.get("type") == "tool_result":
            content = one.pop("content", None)
            kept = content if isinstance(content, list) else []
            one["pictures"] = [part for part in kept if part["type"] != "text"]
    return out


@given(st.lists(TEXTS | THOUGHTS | CALLS, max_size=5), st.integers(0, 3))
def test_an_answer_goes_back_in_the_next_request_as_it_came(blocks: Any, results: int) -> None:
    for place, one in enumerate(blocks):
        if one["type"] == "tool_use":
            one["id"] = f"toolu_{place}"
    body = {"type": "message", "role": "assistant", "content": blocks, "stop_reason": "end_turn"}
    answer = ANTHROPIC.read_answer(body)
    assert answer is not None
    assert ANTHROPIC.write_answer(body, answer.message, None, False, {}) == body
    reply = Reply.of(answer.message)
    kept = json.loads(json.dumps(reply.extra))
    message = {**answer.message, **kept}
    written = as_request(Turn([message], []), "anthropic")
    assert written["messages"][0]["content"] == blocks


@given(st.lists(TEXTS | THOUGHTS | CALLS, max_size=5), st.data())
def test_a_stream_is_the_answer_in_pieces(blocks: Any, data: st.DataObject) -> None:
    for place, one in enumerate(blocks):
        one.pop("cache_control", None)
        if one["type"] == "tool_use":
            one["id"] = f"toolu_{place}"
    stream, frames = ANTHROPIC.stream({}), []
    for event in streamed(blocks, data):
        frames += stream.add("", json.dumps(event))
    assert stream.whole
    message = stream.answer.message
    assert [c["id"] for c in message.get("tool_calls", ())] == [
        b["id"] for b in blocks if b["type"] == "tool_use"
    ]
    frames += stream.closing(message, stream.answer.usage, False)
    assert together(frames) == blocks


def streamed(blocks: list[dict[str, Any]], data: st.DataObject) -> Iterator[dict[str, Any]]:
    """A message as Anthropic streams it; the inputs of calls are cut anywhere."""
    yield {
        "type": "message_start",
        "message": {"id": "m", "content": [], "usage": {"input_tokens": 5}},
    }
    for index, one in enumerate(blocks):
        head, deltas = dict(one), []
        if one["type"] == "tool_use":
            head["input"] = {}
            text = json.dumps(one["input"])
            cut = data.draw(st.integers(0, len(text)))
            deltas = [
                {"type": "input_json_delta", "partial_json": p} for p in (text[:cut], text[cut:])
            ]
        elif one["type"] == "text":
            head["text"] = ""
            deltas = [{"type": "text_delta", "text": one["text"]}]
        elif one["type"] == "thinking":
            head |= {"thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": one["thinking"]},
                      {"type": "signature_delta", "signature": one["signature"]}]  # fmt: skip
        yield {"type": "content_block_start", "index": index, "content_block": head}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn"},
        "usage": {"output_tokens": 3},
    }
    yield {"type": "message_stop"}


def together(frames: list[bytes]) -> list[dict[str, Any]]:
    """The blocks that a client reads of frames."""
    blocks: dict[int, dict[str, Any]] = {}
    inputs: dict[int, str] = {}
    for one in frames:
        said = read_data(one.split(b"data: ", 1)[1].decode())
        if said["type"] == "content_block_start":
            assert said["index"] == len(blocks)
            blocks[said["index"]] = dict(said["content_block"])
        elif said["type"] == "content_block_delta":
            for key, value in said["delta"].items():
                if key == "partial_json":
                    inputs[said["index"]] = inputs.get(said["index"], "") + value
                elif key != "type":
                    blocks[said["index"]][key] += value
    for index, text in inputs.items():
        blocks[index]["input"] = json.loads(text)
    return [blocks[index] for index in sorted(blocks)]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"mcp_servers": [{"url": "x"}]}, "mcp_servers"),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "web_search_20250305"),
        ({"tools": [{"name": "a", "input_schema": {}, "input_examples": [{"b": 1}]}]}, "input_ex"),
        (
            {"messages": [{"role": "user", "content": [{"type": "tool_reference"}]}]},
            "tool_reference",
        ),
        ({"messages": [{"role": "tool", "content": "x"}]}, "role 'tool'"),
        (
            {"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}},
            "clear_tool_uses",
        ),
        ({"new_field": {"a": 1}}, "new_field"),
    ],
    ids=range(7),
)
def test_what_is_not_known_is_named(change: dict[str, Any], named: str) -> None:
    body = {"model": "m", "max_tokens": 1, "messages": [], **change}
    assert named in ANTHROPIC.unshifted(body, "/v1/messages")


def test_a_function_may_return_a_message_as_the_client_gives_it() -> None:
    content = [
        {"type": "thinking", "thinking": "", "signature": "s"},
        {"type": "tool_use", "id": "t1", "name": "find", "input": {"a": 1}},
    ]
    usage = {"input_tokens": 3, "cache_read_input_tokens": 40, "output_tokens": 2}
    reply = read_reply({"type": "message", "role": "assistant", "content": content, "usage": usage})
    assert [(call.name, call.id) for call in reply.calls] == [("find", "t1")]
    assert (reply.usage.input_tokens, reply.usage.cached_tokens) == (43, 40)
    assert reply.extra[WIRE]["raw"]["content"] == content

"""The codec of OpenAI's Responses: what is read is written back as it came."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from dialects.response_items import OUTPUTS, Body, events, framed, requests, response
from hypothesis import given
from hypothesis import strategies as st

from toolshift.dialects import dialect_of
from toolshift.dialects.form import ToldError
from toolshift.dialects.responses import RESPONSES
from toolshift.dialects.responses_items import CALLS
from toolshift.dialects.sse import events as read_events


def test_it_is_found_by_its_path() -> None:
    assert dialect_of("POST", "/v1/responses") is RESPONSES
    assert dialect_of("GET", "/v1/responses") is None


@given(requests())
def test_a_request_is_written_as_it_was_read(body: Body) -> None:
    before = deepcopy(body)
    written = RESPONSES.write(body, RESPONSES.read(body))
    assert written == before
    assert json.dumps(written) == json.dumps(before), "the order of keys is kept, too"


@given(requests())
def test_items_keep_their_bytes_where_others_have_changed(body: Body) -> None:
    read = RESPONSES.read(body)
    more = [*read.messages, {"role": "user", "content": "And now?"}]
    written = RESPONSES.write(body, replace(read, messages=more))["input"]
    items = body["input"]
    if isinstance(items, str):
        items = [{"role": "user", "content": items}] if items else []
    assert json.dumps(written) == json.dumps([*items, {"role": "user", "content": "And now?"}])


def shifted(message: Body) -> Body:
    """A message as a shift leaves it: other names, other results."""
    calls = [
        {**call, "function": {**call["function"], "name": call["function"]["name"] + "_v2"}}
        for call in message.get("tool_calls") or ()
    ]
    told = {"content": "SHIFTED"} if message["role"] == "tool" else {}
    return {**message, **told, **({"tool_calls": calls} if calls else {})}


def texts_of(output: Any) -> list[str]:
    parts = output if isinstance(output, list) else [{"type": "input_text", "text": output}]
    return [part["text"] for part in parts if part["type"] == "input_text"]


def rest_of(output: Any) -> list[Body]:
    parts = output if isinstance(output, list) else []
    return [part for part in parts if part["type"] != "input_text"]


@given(requests())
def test_a_shift_changes_names_and_results_and_nothing_else(body: Body) -> None:
    read = RESPONSES.read(body)
    written = RESPONSES.write(body, replace(read, messages=[*map(shifted, read.messages)]))
    if isinstance(body["input"], str):
        assert written == body
        return
    for new, old in zip(written["input"], body["input"], strict=True):
        kind = old.get("type", "message")
        if kind in CALLS:
            space = f"{old['namespace']}__" if "namespace" in old else ""
            kept = {key: value for key, value in old.items() if key != "namespace"}
            assert new == {**kept, "name": f"{space}{old['name']}_v2"}
        elif kind.endswith("_output"):
            assert "".join(texts_of(new["output"])) == "SHIFTED"
            assert rest_of(new["output"]) == rest_of(old["output"])
            assert {**new, "output": 0, "type": 0} == {**old, "output": 0, "type": 0}
        else:
            assert new == old


@given(OUTPUTS)
def test_an_answer_is_written_as_it_was_read(output: list[Body]) -> None:
    body = response(output)
    answer = RESPONSES.read_answer(body)
    assert answer is not None
    assert RESPONSES.write_answer(body, answer.message, None, False, {}) == body


def test_parts_of_a_result_that_say_the_same_stay_parts() -> None:
    """Some agents put what a call took into a part before the result itself."""
    parts = [{"type": "input_text", "text": text} for text in ("Took 1 s: ", '{"a": 1}', " Done.")]
    item = {"type": "function_call_output", "call_id": "c", "output": parts}
    call = {"type": "function_call", "call_id": "c", "name": "find", "arguments": "{}"}
    body = {"model": "m", "input": [call, item]}
    read = RESPONSES.read(body)
    result = {**read.messages[1], "content": 'Took 1 s: {"b": 1} Done.'}
    written = RESPONSES.write(body, replace(read, messages=[read.messages[0], result]))
    texts = [part["text"] for part in written["input"][1]["output"]]
    assert texts == ["Took 1 s: ", '{"b": 1}', " Done."]


def test_calls_that_were_given_other_ids_keep_their_items() -> None:
    said = {"type": "function_call", "id": "fc", "call_id": "same", "arguments": '{"a":  1}'}
    output = [{"type": "reasoning", "id": "r", "summary": []}, *({**said, "name": n} for n in "fg")]
    answer = RESPONSES.read_answer(response(output))
    assert answer is not None
    calls = [{**c, "id": f"n{n}"} for n, c in enumerate(answer.message["tool_calls"])]
    message = {**answer.message, "tool_calls": calls}
    written = RESPONSES.write_answer(response(output), message, None, False, {})["output"]
    named = [{**said, "name": name, "call_id": own} for name, own in (("f", "n0"), ("g", "n1"))]
    assert written == [output[0], *named]


TOOL = {"type": "function", "name": "find", "parameters": {"type": "object", "properties": {}}}
SPACE = {"type": "namespace", "name": "crm", "description": "", "tools": [TOOL]}
PATCH = {"type": "custom", "name": "patch", "description": "Edits."}


def renamed(tool: Body, name: str) -> Body:
    return {**tool, "function": {**tool["function"], "name": name}}


def test_tools_of_a_namespace_stay_in_it_while_their_names_begin_so() -> None:
    body = {"model": "m", "input": "hi", "tools": [SPACE, PATCH]}
    read = RESPONSES.read(body)
    inside, custom = read.tools
    assert inside["function"]["name"] == "crm__find"
    kept = RESPONSES.write(body, replace(read, tools=[renamed(inside, "crm__seek"), custom]))
    assert kept["tools"] == [{**SPACE, "tools": [{**TOOL, "name": "seek"}]}, PATCH]
    out = RESPONSES.write(
        body, replace(read, tools=[renamed(inside, "Xq7"), renamed(custom, "fix")])
    )
    assert out["tools"] == [{**TOOL, "name": "Xq7"}, {**PATCH, "name": "fix"}]


def test_calls_are_written_as_the_agent_offers_their_tools() -> None:
    asked = {"tools": [SPACE, PATCH]}
    calls = [
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "Xq7", "arguments": "{}"},
        {
            "type": "custom_tool_call",
            "id": "ctc_2",
            "call_id": "c2",
            "name": "fix",
            "input": "*** x",
        },
    ]
    body = response(calls)
    answer = RESPONSES.read_answer(body)
    assert answer is not None
    first, second = answer.message["tool_calls"]
    own = [renamed(first, "crm__find"), renamed(second, "patch")]
    message = {**answer.message, "tool_calls": own}
    written = RESPONSES.write_answer(body, message, None, False, asked)["output"]
    assert written == [
        {**calls[0], "namespace": "crm", "name": "find"},
        {**calls[1], "name": "patch"},
    ]


def test_a_custom_tool_whose_parameter_changes_is_a_function_for_the_model() -> None:
    body = {"model": "m", "tools": [PATCH], "input": [
        {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c1", "name": "patch",
         "input": "a b"},
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "ok"},
    ]}  # fmt: skip
    read = RESPONSES.read(body)
    schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    tool = deepcopy(read.tools[0])
    tool["function"]["parameters"] = schema
    said = deepcopy(read.messages)
    said[0]["tool_calls"][0]["function"]["arguments"] = '{"text":"a b"}'
    out = RESPONSES.write(body, replace(read, tools=[tool], messages=said))
    assert out["tools"][0]["type"] == "function"
    assert out["input"] == [
        {"type": "function_call", "id": "fc_c1", "call_id": "c1", "name": "patch",
         "arguments": '{"text":"a b"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "ok"},
    ]  # fmt: skip
    answer = RESPONSES.read_answer(response([out["input"][0]]))
    assert answer is not None
    (call,) = answer.message["tool_calls"]
    own = {**call, "function": {"name": "patch", "arguments": '{"input": "a b"}'}}
    back = RESPONSES.write_answer(
        response([out["input"][0]]), {**answer.message, "tool_calls": [own]}, None, False, body
    )
    assert back["output"] == [
        {
            "type": "custom_tool_call",
            "id": "ctc_c1",
            "call_id": "c1",
            "name": "patch",
            "input": "a b",
        }
    ]


def test_what_a_response_repeats_of_the_request_is_the_agents_own() -> None:
    body = response(
        [], tools=[{**TOOL, "name": "Xq7"}], tool_choice={"type": "function", "name": "Xq7"}
    )
    answer = RESPONSES.read_answer(body)
    assert answer is not None
    asked = {"tools": [TOOL], "tool_choice": "required"}
    written = RESPONSES.write_answer(body, answer.message, None, False, asked)
    assert (written["tools"], written["tool_choice"]) == ([TOOL], "required")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, ""),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "length"),
        (
            {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}},
            "content_filter",
        ),
        ({"status": "incomplete", "incomplete_details": {"reason": "new"}}, "length"),
    ],
    ids=range(4),
)
def test_why_it_ended(fields: Body, reason: str) -> None:
    answer = RESPONSES.read_answer(response([], **fields))
    assert answer is not None
    assert answer.reason == reason


def test_what_is_no_answer() -> None:
    assert RESPONSES.read_answer(response([], status="failed", error={"message": "no"})) is None
    assert RESPONSES.read_answer({"error": {"message": "tired"}}) is None
    for odd in ({}, {"output": 3}, {"output": [3]}, response([], status="queued")):
        with pytest.raises(ValueError, match=r".+"):
            RESPONSES.read_answer(odd)


ODD_PIECES: list[Any] = [
    {"type": "keepalive"},
    {"type": "response.new_kind", "output_index": 0, "tools": [{"name": "x"}]},
    {"type": "response.output_item.added", "output_index": 0, "item": None},
    {"type": "response.output_item.added", "output_index": 0},
    {"type": "response.function_call_arguments.delta", "output_index": 77, "delta": "x"},
    {"type": "response.function_call_arguments.delta", "item_id": "none", "delta": "x"},
    {"type": "response.output_text.delta", "delta": 3},
    {"type": "response.in_progress"},
    {},
    [],
    3,
]


# -- streams -----------------------------------------------------------------------------------


def unique(output: list[Body]) -> list[Body]:
    """With ids that tell items apart, as servers give them."""
    found = []
    for n, item in enumerate(output):
        own = {"id": f"i{n}"} | ({"call_id": f"c{n}"} if item["type"] in CALLS else {})
        found.append({**item, **own})
    return found


def carried(told: list[Body], asked: Body | None = None, rename: bool = True) -> list[Body]:
    """What an agent reads of events, its calls under names of its own."""
    stream = RESPONSES.stream(asked or {})
    frames = [going for event in told for going in stream.add(event["type"], json.dumps(event))]
    assert stream.whole
    answer = stream.answer
    message = shifted(answer.message) if rename else answer.message
    frames += stream.closing(message, answer.usage, False)
    return [json.loads(frame.split(b"data: ", 1)[1]) for frame in frames]


def assemble(told: list[Body]) -> list[Body]:
    """The items that events tell of, put together piece by piece as a client does."""
    items: list[Body] = []
    for event in told:
        kind = event["type"]
        if kind == "response.output_item.added":
            assert event["output_index"] == len(items)
            items.append(deepcopy(event["item"]))
        elif kind == "response.output_item.done":
            assert event["item"].get("id") == items[event["output_index"]].get("id")
            items[event["output_index"]] = event["item"]
        elif kind.endswith((".delta", ".added")) and "item_id" in event:
            assert items[event["output_index"]].get("id", "") == event["item_id"]
    return items


@given(OUTPUTS, st.integers(1, 9))
def test_a_stream_assembles_to_the_whole_answer(output: list[Body], step: int) -> None:
    whole = response(unique(output))
    told = carried(events(whole, step), rename=False)
    assert [event["sequence_number"] for event in told] == [*range(len(told))]
    assert assemble(told) == whole["output"]
    assert told[-1]["response"]["output"] == whole["output"]
    assert told[-1]["response"]["usage"] == whole["usage"]


@given(OUTPUTS)
def test_names_in_a_stream_are_the_agents_in_every_event(output: list[Body]) -> None:
    whole = response(unique(output))
    told = carried(events(whole))
    answer = RESPONSES.read_answer(whole)
    assert answer is not None
    expected = RESPONSES.write_answer(whole, shifted(answer.message), None, False, {})["output"]
    assert assemble(told) == expected == told[-1]["response"]["output"]
    first = next((n for n, item in enumerate(output) if item["type"] in CALLS), len(output))
    before = [e for e in events(whole) if e.get("output_index", 0) < first and "response" not in e]
    stream = RESPONSES.stream({})
    at_once = [g for e in events(whole)[:-1] for g in stream.add(e["type"], json.dumps(e))]
    assert len(at_once) == 2 + len(before), "what stands before the first call goes on at once"


@given(OUTPUTS, st.data())
def test_a_stream_may_lack_what_others_have(output: list[Body], data: st.DataObject) -> None:
    """Servers leave out indices, whole kinds of events, or the output of the last event."""
    whole = response(unique(output))
    told = events(whole)
    dropped = data.draw(
        st.sampled_from(("output_index", "delta", "done", "all", "output", "item_id", "nothing"))
    )
    if dropped in ("output_index", "item_id"):
        told = [{k: v for k, v in e.items() if k != dropped} for e in told]
    elif dropped == "all":
        told = [e for e in told if "response" in e]
    elif dropped == "output":
        told[-1] = {**told[-1], "response": {**whole, "output": []}}
    elif dropped == "delta":
        told = [e for e in told if not e["type"].endswith(".delta")]
    elif dropped == "done":
        told = [e for e in told if not e["type"].endswith(".done")]
    read = carried(told, rename=False)
    calls = [item for item in whole["output"] if item["type"] in CALLS]
    given = read[-1]["response"]["output"]
    assert [item for item in given if item["type"] in CALLS] == calls
    assert len(given) == len(output)


@given(OUTPUTS, OUTPUTS)
def test_several_answers_are_one_for_the_agent(first: list[Body], second: list[Body]) -> None:
    one, other = response(unique(first)), response(unique(second), id="resp_2")
    other["output"] = [{**item, "id": f"j{n}"} for n, item in enumerate(other["output"])]
    stream = RESPONSES.stream({})
    frames = [g for e in events(one) for g in stream.add(e["type"], json.dumps(e))]
    stream = stream.again()  # type: ignore[assignment]
    frames += [g for e in events(other) for g in stream.add(e["type"], json.dumps(e))]
    frames += stream.closing(stream.answer.message, None, False)
    told = [json.loads(frame.split(b"data: ", 1)[1]) for frame in frames]
    assert [event["sequence_number"] for event in told] == [*range(len(told))]
    assert {e["response"]["id"] for e in told if "response" in e} == {"resp_1"}
    kept = [item for item in one["output"] if item["type"] not in CALLS]
    assert assemble(told) == [*kept, *other["output"]] == told[-1]["response"]["output"]
    assert stream.answer.id == "resp_2"


@given(OUTPUTS, st.integers(1, 40))
def test_a_stream_may_be_cut_anywhere(output: list[Body], step: int) -> None:
    whole = response(unique(output))
    raw = ": keep-alive\n\n" + "".join(map(framed, events(whole)))

    async def read() -> list[Any]:
        async def pieces() -> AsyncIterator[bytes]:
            data = raw.encode()
            for n in range(0, len(data), step):
                yield data[n : n + step]

        return [event async for event in read_events(pieces())]

    told = [json.loads(event.data) for event in asyncio.run(read())]
    assert told == events(whole)


def test_calls_that_share_a_number_or_an_id_are_two() -> None:
    call = {"type": "function_call", "name": "find", "status": "completed"}
    for first, second in (
        ({"id": "a", "call_id": "c1"}, {"id": "b", "call_id": "c2"}),
        ({"id": "a", "call_id": "c1"}, {"id": "b", "call_id": "c1"}),
        ({"call_id": "c1"}, {"call_id": "c2"}),
    ):
        output = [
            {**call, **first, "arguments": '{"a":1}'},
            {**call, **second, "arguments": '{"a":2}'},
        ]
        told = events(response(output))
        told = [{**e, "output_index": 0} if "output_index" in e else e for e in told]
        read = carried(told, rename=False)
        assert read[-1]["response"]["output"] == output


@given(OUTPUTS, st.lists(st.tuples(st.integers(0, 60), st.sampled_from(ODD_PIECES)), max_size=3))
def test_a_malformed_stream_raises_what_the_proxy_tells(output: list[Body], odd: Any) -> None:
    """Whatever stands between the events of a stream, it is read, or told as broken."""
    told: list[Any] = list(events(response(unique(output))))
    for place, piece in odd:
        told.insert(place % len(told), piece)
    stream = RESPONSES.stream({})
    try:
        frames = [going for piece in told for going in stream.add("", json.dumps(piece))]
        frames += stream.closing(stream.answer.message, stream.answer.usage, False)
    except (ToldError, ValueError, LookupError, TypeError, AttributeError):
        return
    read = [json.loads(frame.split(b"data: ", 1)[1]) for frame in frames]
    given = read[-1]["response"]["output"]
    assert "tools" not in json.dumps(read[2:-1]), "an event that is not known does not go on"
    assert [i for i in given if i["type"] in CALLS] == [
        i for i in unique(output) if i["type"] in CALLS
    ]


def test_failures_are_told_with_the_response_that_was_begun() -> None:
    whole = response([])
    failed = {
        **whole,
        "id": "resp_1",
        "status": "failed",
        "error": {"code": "server_error", "message": "x"},
    }
    stream = RESPONSES.stream({})
    for event in events(whole)[:2]:
        stream.add(event["type"], json.dumps(event))
    with pytest.raises(ToldError) as told:
        stream.add(
            "", json.dumps({"type": "response.failed", "response": failed, "sequence_number": 9})
        )
    frame = RESPONSES.error_frame(told.value.error)
    assert frame.startswith(b"event: response.failed\n")
    assert json.loads(frame.split(b"data: ")[1])["sequence_number"] == 2
    for error in ({"type": "error", "code": "x", "message": "y"}, {"error": {"message": "y"}}):
        with pytest.raises(ToldError) as told:
            RESPONSES.stream({}).add("error", json.dumps(error))
        data = json.loads(RESPONSES.error_frame(told.value.error).split(b"data: ")[1])
        assert (data["type"], data["message"]) == ("error", "y")

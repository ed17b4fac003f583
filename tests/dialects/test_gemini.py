"""Gemini's contents: read and written back as they came, but for what a shift changes."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolshift.dialects import DIALECTS, dialect_of, read_reply
from toolshift.dialects.form import WIRE, Request

GEMINI = DIALECTS.find("gemini")
NAMES = ("find_a", "find_b", "list_c")
TEXT = st.sampled_from(["", "a", "é\u2028", '{"a": 1}', "Error: no"])
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
OBJECT = st.dictionaries(st.sampled_from(["q", "w", "output", "result", "error"]), VALUE)
BESIDE = st.fixed_dictionaries(
    {}, optional={"thoughtSignature": st.just("c2ln"), "partMetadata": OBJECT, "new": VALUE}
)


def beside(part: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(lambda one, more, first: {**more, **one} if first else {**one, **more},
                     part, BESIDE, st.booleans())  # fmt: skip


SPOKEN = beside(
    st.fixed_dictionaries({"text": TEXT}, optional={"thought": st.booleans()})
    | st.just({"inlineData": {"mimeType": "image/png", "data": "aGk="}})
)


@st.composite
def histories(draw: st.DrawFn) -> list[dict[str, Any]]:
    contents: list[dict[str, Any]] = []
    snake = draw(st.booleans())
    for turn in range(draw(st.integers(1, 3))):
        parts = draw(st.lists(SPOKEN, max_size=2))
        contents.append({"role": draw(st.sampled_from(["user", None])), "parts": parts})
        if contents[-1]["role"] is None:
            del contents[-1]["role"]
        calls = []
        spoken: list[dict[str, Any]] = draw(st.lists(SPOKEN, max_size=2))
        for place in range(draw(st.integers(0, 3))):
            call = {"name": draw(st.sampled_from(NAMES))}
            call |= {"args": draw(OBJECT)} if draw(st.booleans()) else {}
            call |= {"id": f"own{turn}{place}"} if draw(st.booleans()) else {}
            calls.append(call)
            key = "function_call" if snake else "functionCall"
            spoken.insert(draw(st.integers(0, len(spoken))), {key: call, **draw(BESIDE)})
        cut = draw(st.integers(0, len(spoken)))
        split = [spoken[:cut], spoken[cut:]] if draw(st.booleans()) else [spoken]
        contents += [{"role": "model", "parts": parts, **draw(BESIDE)} for parts in split]
        results = []
        for call in draw(st.permutations([*reversed(_calls_in(spoken))])):
            result = {k: call[k] for k in ("id", "name") if k in call} | {"response": draw(OBJECT)}
            key = "function_response" if snake else "functionResponse"
            results.append({key: result, **draw(BESIDE)})
        if results:
            role = draw(st.sampled_from(["user", "function"]))
            results += draw(st.lists(SPOKEN, max_size=1))
            one = draw(st.booleans())
            listed = [results] if one else [[part] for part in results]
            contents += [{"role": role, "parts": parts} for parts in listed]
    return contents


def _calls_in(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = (part.get("functionCall") or part.get("function_call") for part in parts)
    return [call for call in found if call]


PARAMETERS = {
    "type": "OBJECT",
    "required": ["q"],
    "properties": {
        "q": {"type": "STRING", "nullable": True, "enum": ["a", "b"]},
        "w": {"type": "ARRAY", "items": {"type": "INTEGER"}, "minItems": "1"},
    },
}
TOOLS = [
    {
        "functionDeclarations": [
            {"name": "find_a", "description": "Finds.", "parameters": PARAMETERS, "new": 1},
            {"name": "find_b", "parametersJsonSchema": {"type": "object", "properties": {}}},
        ]
    },
    {"function_declarations": [{"name": "list_c"}]},
]
CHOICES = (
    {},
    {"toolConfig": {"functionCallingConfig": {"mode": "VALIDATED"}, "new": 1}},
    {"tool_config": {"function_calling_config": {"mode": "ANY"}}},
    {"toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["find_b"]}}},
)
SYSTEM = ({}, {"systemInstruction": {"parts": [{"text": "Be"}, {"text": "brief."}]}},
          {"system_instruction": {"role": "user", "parts": [{"text": "Be."}]}})  # fmt: skip


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    body = {"contents": draw(histories()), "tools": TOOLS, "unknown": draw(VALUE)}
    body |= draw(st.sampled_from(CHOICES)) | draw(st.sampled_from(SYSTEM))
    return {key: body[key] for key in draw(st.permutations(list(body)))}


@settings(max_examples=60)
@given(requests())
def test_a_request_is_written_back_as_it_was_read(body: dict[str, Any]) -> None:
    before = json.dumps(body)
    assert json.dumps(GEMINI.write(body, GEMINI.read(body))) == before
    assert json.dumps(body) == before


@settings(max_examples=60)
@given(requests())
def test_a_shift_changes_what_it_changes_and_nothing_else(body: dict[str, Any]) -> None:
    asked = GEMINI.read(body)
    messages = copy.deepcopy(asked.messages)
    for message in messages:
        for call in message.get("tool_calls") or ():
            call["function"]["name"] += "_x"
        if message["role"] == "tool":
            message["name"] += "_x"
            message["content"] = "changed"
    tools = [
        {**tool, "function": {**tool["function"], "name": tool["function"]["name"] + "_x"}}
        for tool in asked.tools
    ]
    written = json.dumps(GEMINI.write(body, Request(messages, tools, asked.choice)))
    expected = json.loads(json.dumps(body))
    for part in (part for content in expected["contents"] for part in content["parts"]):
        for key in ("functionCall", "function_call", "functionResponse", "function_response"):
            inner = part.get(key)
            if inner:
                inner["name"] += "_x"
            if inner and "esponse" in key:
                said = inner["response"]
                kept = [k for k in said if k in ("output", "result")]
                inner["response"] = {kept[0] if kept and len(said) == 1 else "output": "changed"}
    for group in expected["tools"]:
        for function in group.get("functionDeclarations") or group["function_declarations"]:
            function["name"] += "_x"
    assert written == json.dumps(expected)


def test_results_belong_to_their_calls_by_id_and_else_by_name_and_order() -> None:
    calls = [
        {"name": "find_a", "id": "2"},
        {"name": "find_b"},
        {"name": "find_a"},
        {"name": "find_b"},
    ]
    results = [
        {"name": "find_b"},
        {"name": "find_a"},
        {"name": "find_b"},
        {"name": "find_a", "id": "2"},
    ]
    body = {
        "contents": [
            {"role": "user", "parts": [{"text": "Go."}]},
            {"role": "model", "parts": [{"functionCall": call} for call in calls]},
            {
                "role": "user",
                "parts": [{"functionResponse": {**r, "response": {}}} for r in results],
            },
        ],
        "tools": TOOLS,
    }
    _, model, *told = GEMINI.read(body).messages
    ids = [call["id"] for call in model["tool_calls"]]
    assert len(set(ids)) == 4
    assert [one["tool_call_id"] for one in told] == [ids[1], ids[2], ids[3], ids[0]]
    assert GEMINI.unshifted(body, "") == "the field 'new' of a function"


def test_schemas_are_read_as_json_schema() -> None:
    schema = GEMINI.read({"contents": [], "tools": TOOLS}).tools[0]["function"]["parameters"]
    assert schema == {
        "type": "object",
        "required": ["q"],
        "properties": {
            "q": {"type": ["string", "null"], "enum": ["a", "b", None]},
            "w": {"type": "array", "items": {"type": "integer"}, "minItems": 1},
        },
    }


def test_a_changed_schema_is_written_as_json_schema() -> None:
    asked = GEMINI.read({"contents": [], "tools": TOOLS})
    tool = copy.deepcopy(asked.tools[0])
    tool["function"]["parameters"]["properties"]["q"]["type"] = "string"
    made = {"type": "function", "function": {"name": "new_one", "parameters": {}}}
    request = Request([], [made, tool, asked.tools[2]])
    first, second = GEMINI.write({"contents": [], "tools": TOOLS}, request)["tools"]
    names = [one["name"] for one in first["functionDeclarations"]]
    assert names == ["new_one", "find_a"]
    changed = first["functionDeclarations"][1]
    assert "parameters" not in changed
    assert changed["parametersJsonSchema"] == tool["function"]["parameters"]
    assert second == TOOLS[1]


ODD = {
    "cachedContent": {"cachedContent": "cachedContents/1"},
    "googleSearch": {"tools": [{"googleSearch": {}}]},
    "code_execution": {"tools": [*TOOLS[1:], {"code_execution": {}}]},
    "toolCall": {"contents": [{"role": "model", "parts": [{"toolCall": {"id": "1"}}]}]},
    "executableCode": {
        "contents": [{"role": "model", "parts": [{"executableCode": {"code": "1"}}]}]
    },
    "response": {
        "tools": [{"functionDeclarations": [{"name": "a", "response": {"type": "STRING"}}]}]
    },
    "includeServerSideToolInvocations": {"toolConfig": {"includeServerSideToolInvocations": True}},
    "candidateCount": {"generationConfig": {"candidateCount": 2}},
    "role": {"contents": [{"role": "system", "parts": []}]},
    "whose call": {
        "contents": [{"parts": [{"functionResponse": {"name": "find_a", "response": {}}}]}],
        "tools": [{"functionDeclarations": [{"name": "find_a"}]}],
    },
    "no functions": {"contents": [{"role": "model", "parts": [{"functionCall": {"name": "a"}}]}]},
    "brandNew": {"brandNew": {"tools": 1}},
}


@pytest.mark.parametrize("word", list(ODD))
def test_what_is_on_no_list_is_not_shifted(word: str) -> None:
    body = {"contents": [{"parts": [{"text": "a"}]}], **ODD[word]}
    assert word in GEMINI.unshifted(body, "")


def test_common_requests_are_shifted() -> None:
    body = {
        "contents": [{"role": "user", "parts": [{"text": "a"}]}],
        "systemInstruction": {"parts": [{"text": "b"}]},
        "tools": [{"functionDeclarations": [{"name": "a", "parameters": PARAMETERS}]}],
        "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
        "generationConfig": {"temperature": 0, "thinkingConfig": {"includeThoughts": True}},
        "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
    }
    assert GEMINI.unshifted(body, "") == ""


def test_paths() -> None:
    for version in ("v1beta", "v1"):
        for way in ("generateContent", "streamGenerateContent"):
            assert dialect_of("POST", f"/{version}/models/gemini-3-pro:{way}") is GEMINI
    assert dialect_of("POST", "/v1beta/models/m:embedContent") is None
    assert dialect_of("GET", "/v1beta/models/m:generateContent") is None
    end = "/models/m:generateContent"
    assert GEMINI.address("", "models/m") == "/v1beta" + end
    assert GEMINI.address("/v1", "m") == "/v1" + end
    assert GEMINI.address("/v1beta" + end, "m") == "/v1beta" + end


CALL = st.fixed_dictionaries(
    {"name": st.sampled_from(NAMES)}, optional={"args": OBJECT, "id": st.just("1")}
)


@settings(max_examples=60)
@given(st.lists(SPOKEN | st.fixed_dictionaries({"functionCall": CALL})), VALUE)
def test_an_answer_is_written_back_as_it_was_read(parts: list[Any], more: Any) -> None:
    candidate = {"content": {"parts": parts, "role": "model"}, "finishReason": "STOP", "x": more}
    body = {"x": more, "candidates": [candidate], "usageMetadata": {"promptTokenCount": 3}}
    answer = GEMINI.read_answer(body)
    assert answer is not None
    assert GEMINI.recognises(body)
    written = GEMINI.write_answer(body, answer.message, answer.usage, cut=False, asked={})
    assert json.dumps(written) == json.dumps(body)
    calls = [call["function"]["name"] for call in answer.message.get("tool_calls") or ()]
    assert calls == [part["functionCall"]["name"] for part in parts if "functionCall" in part]


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("STOP", ""),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "content_filter"),
        ("MISSING_THOUGHT_SIGNATURE", "content_filter"),
        ("A_NEW_ONE", "content_filter"),
        ("MALFORMED_FUNCTION_CALL", "broken_call"),
    ],
)
def test_why_an_answer_ended(reason: str, expected: str) -> None:
    answer = GEMINI.read_answer(
        {"candidates": [{"finishReason": reason, "finishMessage": "print(find_a(q="}]}
    )
    assert answer is not None
    assert answer.reason == expected
    said = "print(find_a(q=" if reason.startswith("MALFORMED") else None
    assert answer.message["content"] == said


def test_a_blocked_prompt_is_withheld_and_an_error_is_none() -> None:
    blocked = GEMINI.read_answer({"promptFeedback": {"blockReason": "SAFETY"}})
    assert blocked is not None
    assert blocked.reason == "content_filter"
    assert GEMINI.read_answer({"error": {"code": 500}}) is None
    with pytest.raises(ValueError, match="candidates"):
        GEMINI.read_answer({})


def test_tokens() -> None:
    usage = {"promptTokenCount": 10, "cachedContentTokenCount": 4, "candidatesTokenCount": 3,
             "thoughtsTokenCount": 2, "totalTokenCount": 15}  # fmt: skip
    read = GEMINI.tokens(usage)
    assert (read.input_tokens, read.output_tokens) == (10, 5)
    assert (read.cached_tokens, read.reasoning_tokens) == (4, 2)


def test_a_content_of_the_model_is_a_reply() -> None:
    part = {"functionCall": {"name": "find_a", "args": {"q": "x"}}, "thoughtSignature": "c2ln"}
    reply = read_reply({"role": "model", "parts": [{"text": "t", "thought": True}, part]})
    assert (reply.text, reply.calls[0].name) == ("", "find_a")
    assert reply.extra[WIRE]["contents"][0]["parts"][1] == part

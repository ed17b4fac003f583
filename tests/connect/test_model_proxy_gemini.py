"""Google's own client through the model proxy, before a server as strict as the provider."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from connect.proxying import proxied
from strict_gemini import StrictGemini, serving

from toolshift.core.http import httpx
from toolshift.dialects.gemini_scope import value_of

genai = pytest.importorskip("google.genai")

DECLARED = [
    {
        "name": "find_order",
        "description": "Finds an order by its number.",
        "parameters": {
            "type": "OBJECT",
            "properties": {"number": {"type": "STRING", "description": "The number."}},
            "required": ["number"],
        },
    },
    {
        "name": "list_orders",
        "description": "Lists the orders of a customer.",
        "parameters_json_schema": {
            "type": "object",
            "properties": {"customer": {"type": "string"}},
        },
    },
]
PICTURE = {"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}}
STREAM = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


def client_of(url: str) -> Any:
    """Google's client for a proxy, with retries off."""
    base = url.removesuffix("/v1")
    return genai.Client(api_key="k" * 20, http_options={"base_url": base})


def config(**more: Any) -> dict[str, Any]:
    return {
        "tools": [{"function_declarations": DECLARED}],
        "system_instruction": "Help.",
        "temperature": 0,
        "automatic_function_calling": {"disable": True},
        **more,
    }


def script(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Two calls at once by the names on offer, then a text."""
    turn = sum("functionResponse" in p for c in body["contents"] for p in c["parts"])
    thought = {"text": f"Turn {turn}.", "thought": True}
    if turn:
        return [
            thought,
            {"text": "Done: café\u2028."},
            {"text": "", "thoughtSignature": "c2ln+/8="},
        ]
    functions = body["tools"][0]["functionDeclarations"][:2]
    calls = []
    for place, function in enumerate(functions):
        schema = function.get("parameters") or value_of(function, "parametersJsonSchema")
        args = {next(iter(schema["properties"])): f"v{place}"}
        signed = {} if place else {"thoughtSignature": "c2lnbg=="}
        calls.append({"functionCall": {"name": function["name"], "args": args}, **signed})
    return [thought, {"text": "Bo"}, {"text": "th."}, *calls]


def said_by(client: Any, contents: list[Any], stream: bool, rounds: int = 1) -> list[Any]:
    """The contents of the model: one for each piece of a stream, as its client keeps them."""
    asked = {"model": "gemini-3", "contents": contents, "config": config()}
    if not stream:
        return [client.models.generate_content(**asked).candidates[0].content]
    chunks = list(client.models.generate_content_stream(**asked))
    assert chunks[-1].candidates[0].finish_reason == "STOP"
    assert [chunk.candidates[0].finish_reason for chunk in chunks[:-1]] == [None] * (
        len(chunks) - 1
    )
    assert chunks[-1].usage_metadata.thoughts_token_count == 3 * rounds
    return [chunk.candidates[0].content for chunk in chunks]


def parts_of(contents: list[Any]) -> list[Any]:
    return [part for content in contents for part in content.parts]


@STREAM
@pytest.mark.parametrize("ids", [False, True], ids=["no-ids", "ids"])
@pytest.mark.parametrize(
    "shifts", ["identity_erasure:2", "format_drift:3", "redirect:1", "parameter_rename:3"]
)
def test_a_conversation_of_the_vendors_client(shifts: str, ids: bool, stream: bool) -> None:
    mind = StrictGemini(script, ids)
    with serving(mind) as upstream, proxied(f"{upstream}/v1beta", shifts) as (url, records):
        client = client_of(url)
        contents: list[Any] = [{"role": "user", "parts": [{"text": "Where is order 7?"}]}]
        first = said_by(client, contents, stream)
        calls = [part.function_call for part in parts_of(first) if part.function_call]
        assert {call.name for call in calls} <= {"find_order", "list_orders"}
        assert "".join(p.text for p in parts_of(first) if p.text and not p.thought) == "Both."
        assert all(bool(call.id) is ids for call in calls)
        results = [
            {"functionResponse": {"name": call.name, "response": response,
                                  **({"id": call.id} if ids else {})}}
            for call, response in zip(
                calls, [{"output": {"status": "sent", "total": 12}}, {"error": "boom"}],
                strict=False,
            )
        ]  # fmt: skip
        results[0]["functionResponse"]["parts"] = [PICTURE]
        contents += [*first, {"role": "user", "parts": results}]
        contents += [{"role": "user", "parts": [{"text": "And this?"}, PICTURE]}]
        second = parts_of(said_by(client, contents, stream))
    assert mind.refused == []
    assert "".join(p.text for p in second if p.text and not p.thought) == "Done: café\u2028."
    assert any(p.thought_signature == b"sig\xfb\xff" for p in second)
    sent = mind.requests[-1]
    assert sent["contents"][-1]["parts"][0] == {"text": "And this?"}
    assert json.dumps(sent).count(PICTURE["inlineData"]["data"]) == 2
    if shifts == "identity_erasure:2":
        names = {f["name"] for f in sent["tools"][0]["functionDeclarations"]}
        assert not names & {"find_order", "list_orders"}
    told = [p["functionResponse"] for c in sent["contents"] for p in c["parts"]
            if "functionResponse" in p]  # fmt: skip
    if shifts == "format_drift:3":
        assert told[0]["response"] != {"output": {"status": "sent", "total": 12}}
    if shifts == "redirect:1":
        assert [len(each) for each in records[0]["answered"]] == [1], "one of two by a layer"


def redirected(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Calls a tool that has moved, then the one that it is told of, then says a text."""
    told = [p["functionResponse"] for c in body["contents"] for p in c["parts"]
            if "functionResponse" in p]  # fmt: skip
    said = [{"text": f"Thought {len(told)}.", "thought": True}, {"text": f"{len(told)}. "}]
    if len(told) == 2:
        return said
    found = re.search(r"current_\w+", json.dumps(told))
    call = {"name": found[0] if found else "list_orders", "args": {}}
    return [*said, {"functionCall": call, "thoughtSignature": "c2lnbg=="}]


@STREAM
@pytest.mark.parametrize("ids", [False, True], ids=["no-ids", "ids"])
def test_what_a_layer_answers_by_itself_stays_in_the_history(ids: bool, stream: bool) -> None:
    mind = StrictGemini(redirected, ids)
    with serving(mind) as upstream, proxied(f"{upstream}/v1beta", "redirect:1") as (url, records):
        client = client_of(url)
        contents: list[Any] = [{"role": "user", "parts": [{"text": "Where?"}]}]
        first = said_by(client, contents, stream, rounds=2)
        (call,) = (part.function_call for part in parts_of(first) if part.function_call)
        assert call.name == "list_orders"
        own = {"id": call.id} if ids else {}
        result = {"functionResponse": {"name": call.name, "response": {"output": "x"}, **own}}
        contents += [*first, {"role": "user", "parts": [result]}]
        second = parts_of(said_by(client, contents, stream))
    assert mind.refused == []
    assert len(mind.requests) == 3
    assert [len(each) for each in records[0]["answered"]] == [1, 0]
    texts = [p.text for p in parts_of(first) if p.text and not p.thought]
    assert texts == (["0. ", "1. "] if stream else ["1. "])
    assert second[-1].text == "2. "


@STREAM
def test_a_chat_of_the_vendors_client(stream: bool) -> None:
    mind = StrictGemini(script)
    with serving(mind) as upstream, proxied(f"{upstream}/v1beta", "identity_erasure:2") as (url, _):
        client = client_of(url)
        chat = client.chats.create(model="gemini-3", config=config())
        calls = _send(chat, "Where?", stream)
        results = [genai.types.Part(
                function_response={"name": c.name, "id": c.id, "response": {"result": "x"}})
                   for c in calls]  # fmt: skip
        assert len(results) == 2
        assert _send(chat, results, stream) == []
        assert _send(chat, "Thanks.", stream) == []
    assert mind.refused == []


def _send(chat: Any, message: Any, stream: bool) -> list[Any]:
    got = list(chat.send_message_stream(message)) if stream else [chat.send_message(message)]
    return [call for one in got for call in one.function_calls or ()]


@STREAM
def test_what_is_not_shifted_is_refused_in_the_clients_words(stream: bool) -> None:
    mind = StrictGemini(script)
    with serving(mind) as upstream, proxied(f"{upstream}/v1beta", "identity_erasure:2") as (url, _):
        client = client_of(url)
        ask = client.models.generate_content_stream if stream else client.models.generate_content
        hosted = config(tools=[{"function_declarations": DECLARED}, {"google_search": {}}])
        with pytest.raises(genai.errors.APIError) as refused:
            list(ask(model="gemini-3", contents="x", config=hosted))
    assert refused.value.code == 501
    assert "googleSearch" in str(refused.value)
    assert mind.requests == []


@STREAM
def test_an_error_of_the_model_comes_through(stream: bool) -> None:
    mind = StrictGemini(script)
    with serving(mind) as upstream, proxied(f"{upstream}/v1beta", "identity_erasure:2") as (url, _):
        client = client_of(url)
        ask = client.models.generate_content_stream if stream else client.models.generate_content
        with pytest.raises(genai.errors.ClientError, match="candidateCount"):
            list(ask(model="gemini-3", contents="x", config=config(candidate_count=1)))


def test_with_a_key_the_model_gets_it_in_its_own_header() -> None:
    heard: list[Any] = []

    class Noting(StrictGemini):
        def answer(self, headers: Any, body: Any) -> Any:
            heard.append({name.lower(): value for name, value in headers.items()})
            return super().answer(headers, body)

    shifts = "identity_erasure:2"
    with (
        serving(Noting(script)) as upstream,
        proxied(f"{upstream}/v1beta", shifts, token="a-token", key="the-key") as (url, _),
    ):
        path = url.removesuffix("/v1") + "/v1beta/models/m:generateContent"
        body = {"contents": [{"role": "user", "parts": [{"text": "x"}]}],
                "tools": [{"functionDeclarations": [DECLARED[0]]}]}  # fmt: skip
        for wrong in ({}, {"x-goog-api-key": "another"}, {"x-goog-api-key": ""}):
            assert httpx.post(path, json=body, headers=wrong).status_code == 401
        for sent in ({"x-goog-api-key": "a-token"}, {"authorization": "Bearer a-token"}):
            assert httpx.post(path, json=body, headers=sent).status_code == 200
    assert [headers["x-goog-api-key"] for headers in heard] == ["the-key"] * 2
    assert "a-token" not in json.dumps(heard)

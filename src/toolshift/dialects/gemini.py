"""Google's Gemini (`generateContent`): contents of parts, some of them signed.

A content that holds results of tools is several messages in the form of chat completions: one for
each result, and one for what stands between them. Contents of the model that follow each other, as
Google's client keeps a stream, are one. Messages say from what they came, so that each part goes
back as it was, with its signature.

Calls need no ids here: then results belong to them by their names and order. Such a call gets an id
of ours, which does not leave.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from toolshift.core.calls import is_json
from toolshift.core.message import Usage, text_of
from toolshift.core.tool import JSON
from toolshift.core.values import as_json, as_text
from toolshift.dialects import gemini_scope
from toolshift.dialects.form import (
    AGAIN,
    LIKE,
    SIGNED,
    WIRE,
    Answer,
    Body,
    Dialect,
    Message,
    Reason,
    Request,
    ToldError,
    Variables,
    number,
    texts_now,
)
from toolshift.dialects.gemini_scope import camel, key_of, objects, value_of
from toolshift.dialects.sse import frame, read_data

Part = dict[str, Any]
Content = dict[str, Any]
NAME = "gemini"
_WAYS = r"/(models|tunedModels|endpoints)/[^/]+:(generateContent|streamGenerateContent)"
_PATH = re.compile(r"/v\d\w*(/[^/]+)*" + _WAYS)
_VERSION = re.compile(r"/v\d\w*(/|$)")
_ENDED: dict[Any, Reason] = {
    None: "",
    "": "",
    "FINISH_REASON_UNSPECIFIED": "",
    "STOP": "",
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
}
_MODEL_ERRORS = (
    "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE", "TOO_MANY_TOOL_CALLS",
)  # fmt: skip
"""Reasons that are the model's own mistakes; any other one says that its reply was withheld."""
UNSIGNED = "skip_thought_signature_validator"
"""Google's signature for calls that its models have not written; without one it refuses them."""
_STATUS = {400: "INVALID_ARGUMENT", 404: "NOT_FOUND", 501: "UNIMPLEMENTED", 502: "UNAVAILABLE"}
_MODES = {"auto": "AUTO", "none": "NONE", "required": "ANY", "any": "ANY"}


class Gemini:
    """The codec of `generateContent`."""

    name = NAME
    answers = "answer of Gemini's"
    path = "/models/MODEL:generateContent"
    temperature: float | None = None  # Google advises against any but the model's own
    home = "https://generativelanguage.googleapis.com/v1beta"
    variables: Variables = (
        ("GOOGLE_GEMINI_BASE_URL",),
        ("GOOGLE_API_KEY", "GEMINI_API_KEY"),  # in the order of Google's own client
    )

    def takes(self, method: str, path: str) -> bool:
        """Whether a request to a path is of it."""
        return method == "POST" and _PATH.fullmatch(path) is not None

    def unshifted(self, body: Body, path: str) -> str:
        """The first thing in a request that is not shifted, in words."""
        if odd := gemini_scope.unshifted(body):
            return odd
        lost = any(said.get("tool_call_id") == "" for said in self.read(body).messages)
        return "a result whose call is not in the contents before it" if lost else ""

    # -- requests ------------------------------------------------------------------------------

    def read(self, body: Body, path: str = "") -> Request:
        """Reads a request."""
        system = value_of(body, "systemInstruction")
        lead = [] if system is None else [{"role": "system", "content": _read_system(system)}]
        return Request(
            [*lead, *_read_contents(objects(body, "contents"))],
            _read_tools(body),
            _read_choice(body),
            path.endswith(":streamGenerateContent"),
        )

    def write(self, body: Body, request: Request) -> Body:
        """A request as `body`, with other messages, tools and choice."""
        lead, said = _split(request.messages)
        text = "\n\n".join(text_of(message) for message in lead)
        key = key_of(body, "systemInstruction")
        out = dict(body)
        if lead and (key not in body or text != _read_system(body[key])):
            out[key] = _write_system(text, body.get(key))
        out["contents"] = list(_write_contents(said))
        if request.tools and request.tools != _read_tools(body):
            out["tools"] = _write_tools(request.tools, objects(body, "tools"))
        if request.choice is not None and request.choice != _read_choice(body):
            key = key_of(body, "toolConfig")
            out[key] = _write_choice(request.choice, body.get(key) or {})
        return out

    def error(self, status: int, why: str) -> Body:
        """An error in the form in which clients of Google read one."""
        told = {"code": status, "message": why, "status": _STATUS.get(status, "INTERNAL")}
        return {"error": told}

    def error_frame(self, error: object) -> bytes:
        """An error in a stream that has begun; the client looks for it at the beginning."""
        told = error if isinstance(error, Mapping) else {"message": str(error)}
        return frame({"error": {"code": 502, "status": "UNAVAILABLE", **told}})

    # -- answers -------------------------------------------------------------------------------

    def recognises(self, body: Body) -> bool:
        """Whether a JSON object is an answer, or a content of the model's alone."""
        content = body.get("role") == "model" and isinstance(body.get("parts"), list)
        return content or isinstance(body.get("candidates"), list) or "promptFeedback" in body

    def read_answer(self, body: Body) -> Answer | None:
        """Reads an answer; None where it is an error that came with HTTP 200."""
        if body.get("error"):
            return None
        if body.get("role") == "model":
            return _read_answer([body], {}, None, body)
        candidates = objects(body, "candidates")
        if not candidates and not _blocked(body):
            raise ValueError("it has no `candidates`")
        candidate = candidates[0] if candidates else {}
        content = candidate.get("content") or {}
        return _read_answer([content], candidate, _usage_in(body), body)

    def write_answer(
        self, body: Body, message: Message, usage: Any, cut: bool, asked: Body
    ) -> Body:
        """An answer as `body`, with other calls and another record of tokens."""
        out = dict(body)
        candidates = objects(body, "candidates")
        if candidates:
            first, came = dict(candidates[0]), self.read_answer(body)
            if came is None or message != came.message:
                (first["content"],) = _write_model(message)
            if cut:
                first[key_of(first, "finishReason")] = "MAX_TOKENS"
            out["candidates"] = [first]
        return {**out, key_of(out, "usageMetadata"): usage} if usage else out

    def stream(self, asked: Body) -> GeminiStream:
        """What takes the pieces of an answer in."""
        return GeminiStream()

    # -- as an agent asks ----------------------------------------------------------------------

    def address(self, base_url: str, model: str) -> str:
        """Where an agent sends its requests; the client's own variable has no version."""
        base = base_url.rstrip("/")
        if ":" in base.rpartition("/")[2]:  # it names the model itself
            return base
        base = base if _VERSION.search(base) else f"{base}/v1beta"
        return f"{base}/models/{model.removeprefix('models/')}:generateContent"

    def settings(self, model: str, temperature: float | None, max_tokens: int) -> Body:
        """A request for these settings; the model stands in its address."""
        heat = {} if temperature is None else {"temperature": temperature}
        return {"generationConfig": {**heat, "maxOutputTokens": max_tokens}}

    def instead_of(self, field: str) -> Sequence[str]:
        """None of its fields has another in its place."""
        return ()

    def headers(self, key: str) -> Mapping[str, str]:
        """The key has a header of its own."""
        return {"x-goog-api-key": key} if key else {}

    def tokens(self, usage: Any) -> Usage:
        """A record of tokens, read; thoughts are counted apart there."""
        thoughts = number(usage, "thoughtsTokenCount")
        return Usage(
            number(usage, "promptTokenCount") + number(usage, "toolUsePromptTokenCount"),
            number(usage, "candidatesTokenCount") + thoughts,
            cached_tokens=number(usage, "cachedContentTokenCount"),
            reasoning_tokens=thoughts,
        )


GEMINI: Dialect = Gemini()


# -- reading -----------------------------------------------------------------------------------


def _read_system(system: Any) -> str:
    if isinstance(system, str):
        return system
    if not isinstance(system, dict):
        raise ValueError("`systemInstruction` is no content")
    return "\n\n".join(str(part["text"]) for part in objects(system, "parts") if "text" in part)


def _read_contents(contents: Sequence[Content]) -> Iterator[Message]:
    waiting: list[Part] = []
    spoken: list[Content] = []
    for place, content in enumerate(contents):
        if content.get("role") == "model":
            spoken.append(content)
            continue
        if spoken:
            message = _sent(spoken, place)
            waiting = list(message.get("tool_calls") or ())
            yield message
            spoken = []
        yield from _read_user(content, place, waiting)
    if spoken:
        yield _sent(spoken, len(contents))


def _sent(contents: list[Content], place: int) -> Message:
    """Contents that a client has sent, which go on even where they are empty."""
    message = _read_model(contents, place)
    return {**message, WIRE: {**message[WIRE], "sent": True}}


def _read_model(contents: list[Content], seed: object) -> Message:
    """Contents of the model that follow each other, as one message."""
    texts, calls = [], []
    for at, content in enumerate(contents):
        for place, part in enumerate(objects(content, "parts")):
            if _says(part):
                texts.append(part["text"])
            if value_of(part, "functionCall") is not None:
                calls.append(_read_call(value_of(part, "functionCall"), (at, place), seed))
    wire = {"dialect": NAME, "contents": contents}
    message = {"role": "assistant", "content": "".join(texts) or None, WIRE: wire}
    return {**message, "tool_calls": calls} if calls else message


def _says(part: Part) -> bool:
    return isinstance(part.get("text"), str) and not part.get("thought")


def _read_call(call: Any, at: tuple[int, int], seed: object) -> Part:
    """A call; `unnamed` marks an id that is ours."""
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        raise ValueError("a `functionCall` has no name")
    if value_of(call, "partialArgs") or value_of(call, "willContinue"):
        raise ValueError("a `functionCall` comes in pieces")
    given = call.get("args")
    if not isinstance(given, dict | None):
        raise ValueError("the `args` of a `functionCall` are no object")
    own = call.get("id")
    made = blake2b(JSON.encode([seed, at, call]), digest_size=6).hexdigest()
    return {
        "id": str(own or f"call_{made}"),
        "type": "function",
        "function": {"name": call["name"], "arguments": as_json(given or {})},
        WIRE: {"dialect": NAME, "at": list(at), "unnamed": not own},
    }


def _read_user(content: Content, place: int, waiting: list[Part]) -> Iterator[Message]:
    between: list[Part] = []
    parts = objects(content, "parts")
    for part in parts:
        result = value_of(part, "functionResponse")
        if result is None:
            between.append(part)
            continue
        if not isinstance(result, dict):
            raise ValueError("a `functionResponse` is no object")
        if between:
            yield _of_user(content, place, between)
            between = []
        call = _call_of(result, waiting)
        yield {
            "role": "tool",
            "tool_call_id": call["id"] if call else "",
            "name": str(result.get("name") or ""),
            "content": _read_response(result.get("response")),
            WIRE: _wire(content, place, [part]),
        }
    if between or not parts:
        yield _of_user(content, place, between)


def _of_user(content: Content, place: int, parts: list[Part]) -> Message:
    return {"role": "user", "content": _read_parts(parts), WIRE: _wire(content, place, parts)}


def _wire(content: Content, place: int, parts: list[Part]) -> Body:
    """Which parts of which content a message came from."""
    return {"dialect": NAME, "at": place, "content": content, "parts": parts}


def _read_parts(parts: list[Part]) -> str | list[Part]:
    """Parts of the user as a content: a text where they are nothing but texts."""
    if all(isinstance(part.get("text"), str) for part in parts):
        return "\n\n".join(part["text"] for part in parts)
    return [
        {"type": "text", "text": part["text"]}
        if isinstance(part.get("text"), str)
        else {"type": next(iter(part), "")}
        for part in parts
    ]


def _call_of(result: Part, waiting: list[Part]) -> Part | None:
    """The call that a result is of, by its id, else the first one of its name; it waits no more.

    Clients that keep no ids are known, and so are such that make up their own.
    """
    own, name = result.get("id"), result.get("name")
    named = [call for call in waiting if call["function"]["name"] == name]
    unnamed = [call for call in named if call[WIRE]["unnamed"]]
    same = [call for call in waiting if own and call["id"] == own]
    found = next(iter(same or unnamed or ([] if own else named)), None)
    if found is not None:
        waiting.remove(found)
    return found


def _value_in(response: Any) -> tuple[str, Any]:
    """The key under which a response holds its one value; "" where it is the value itself."""
    if isinstance(response, dict) and len(response) == 1:
        ((key, value),) = response.items()
        if key in ("output", "result"):
            return key, value
    return "", response


def _read_response(response: Any) -> str:
    _, value = _value_in(response)
    return as_text(value)


def _read_tools(body: Body) -> list[Part]:
    return [
        _read_tool(function, group)
        for group, tool in enumerate(objects(body, "tools"))
        for function in objects(tool, "functionDeclarations")
    ]


def _read_tool(raw: Part, group: int) -> Part:
    own = value_of(raw, "parametersJsonSchema")
    schema = own if own is not None else _as_json_schema(raw.get("parameters"))
    function = {"name": raw.get("name"), "description": raw.get("description") or ""}
    function["parameters"] = schema or {"type": "object", "properties": {}}
    wire = {"dialect": NAME, "group": group, "raw": raw}
    return {"type": "function", "function": function, WIRE: wire}


_COUNTS = ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties")


def _as_json_schema(schema: Any) -> Any:
    """A schema in Google's form (types in capitals, counts as texts) as JSON Schema."""
    if not isinstance(schema, dict):
        return schema
    named = {camel(name): value for name, value in schema.items()}
    out: Part = {key: _as_keyword(key, value) for key, value in named.items()}
    nullable, kind = out.pop("nullable", False), out.get("type")
    if kind == "type_unspecified":
        del out["type"]
    elif nullable and isinstance(kind, str):
        out["type"] = [kind, "null"]
        out |= {"enum": [*out["enum"], None]} if isinstance(out.get("enum"), list) else {}
    return out


def _as_keyword(key: str, value: Any) -> Any:
    if key == "type" and isinstance(value, str):
        return value.lower()
    if key in _COUNTS and isinstance(value, str) and value.isdecimal():
        return int(value)
    if key == "properties" and isinstance(value, dict):
        return {name: _as_json_schema(inner) for name, inner in value.items()}
    if key == "anyOf" and isinstance(value, list):
        return list(map(_as_json_schema, value))
    return _as_json_schema(value) if key in ("items", "additionalProperties") else value


def _read_choice(body: Body) -> Any:
    config = value_of(body, "toolConfig")
    choice = value_of(config, "functionCallingConfig") if isinstance(config, dict) else None
    if not isinstance(choice, dict):
        return None
    mode, names = choice.get("mode"), value_of(choice, "allowedFunctionNames")
    if isinstance(names, list) and names:
        listed = [{"type": "function", "function": {"name": name}} for name in names]
        mode = "required" if mode == "ANY" else "auto"
        return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": listed}}
    return {"ANY": "required", "NONE": "none", "AUTO": "auto"}.get(str(mode))


def _usage_in(body: Body) -> Any:
    return value_of(body, "usageMetadata")


def _blocked(body: Body) -> bool:
    feedback = value_of(body, "promptFeedback")
    return isinstance(feedback, dict) and bool(value_of(feedback, "blockReason"))


def _read_answer(contents: list[Content], candidate: Part, usage: Any, body: Body) -> Answer:
    reason = value_of(candidate, "finishReason")
    message = _read_model(contents, value_of(body, "responseId"))
    if reason in _MODEL_ERRORS and not message.get("tool_calls") and not message["content"]:
        said = value_of(candidate, "finishMessage")  # it quotes what the model wrote
        message["content"] = said if isinstance(said, str) and said else f"({reason})"
        ended: Reason = "broken_call"
    else:
        ended = "" if reason in _MODEL_ERRORS else _ENDED.get(reason, "content_filter")
    return Answer(message, usage, "content_filter" if _blocked(body) else ended)


def unread_call(said: str) -> Message:
    """A message of the model with the call that Google could not read, as it would have come."""
    named = re.findall(r"([A-Za-z_][\w-]*)\(", said)
    call: Part = {"name": named[-1] if named else "malformed_call", "args": {}}
    part: Part = {"functionCall": call, "thoughtSignature": UNSIGNED}
    message = _read_model([{"role": "model", "parts": [part]}], said)
    (made,) = message["tool_calls"]
    function = {**made["function"], "arguments": said}
    return {**message, "tool_calls": [{**made, "function": function}]}


# -- writing -----------------------------------------------------------------------------------


def _split(messages: Sequence[Message]) -> tuple[list[Message], list[Message]]:
    """The system's messages at the beginning, and all that follow."""
    lead = 0
    while lead < len(messages) and messages[lead].get("role") in ("system", "developer"):
        lead += 1
    return list(messages[:lead]), list(messages[lead:])


def _write_contents(messages: Sequence[Message]) -> Iterator[Content]:
    """Contents as they were; the results of one message's calls stand in one of them."""
    calls: dict[str, Part] = {}
    together: list[Message] = []
    for message in messages:
        if together and not _belongs(message, together):
            yield _write_user(together, calls)
            together = []
        if message.get("role") == "assistant":
            calls = {str(call.get("id")): call for call in message.get("tool_calls") or ()}
            yield from _sent_again(message)
        else:
            together.append(message)
    if together:
        yield _write_user(together, calls)


def _sent_again(message: Message) -> Iterator[Content]:
    """The contents of a message of the model; one goes on empty where it came so."""
    written = _write_model(message)
    for content, came in zip(written, _own(message).get("contents") or written, strict=True):
        if content.get("parts") or (_own(message).get("sent") and not came.get("parts")):
            yield content


def _belongs(message: Message, together: list[Message]) -> bool:
    """Whether a message is of the same content as those before it."""
    if message.get("role") == "assistant":
        return False
    places = [_at(one) for one in together]
    known = next((place for place in reversed(places) if place is not None), None)
    if _at(message) is not None and known is not None:
        return bool(_at(message) == known)
    return message.get("role") == "tool" and together[-1].get("role") == "tool"


def _own(message: Message) -> Body:
    """What this codec has left in a message."""
    wire = message.get(WIRE) or {}
    return wire if wire.get("dialect") == NAME else {}


def _at(message: Message) -> Any:
    return _own(message).get("at")


def _write_user(messages: list[Message], calls: Mapping[str, Part]) -> Content:
    came = next((m for m in messages if "content" in _own(m)), None)
    outer = dict(_own(came)["content"]) if came else {"role": "user"}
    if any(m.get("role") == "tool" and not _own(m) for m in messages):
        order = list(calls)
        messages = sorted(messages, key=lambda m: _place(m, order))
    parts = [part for message in messages for part in _write_parts(message, calls)]
    if came and not parts and not outer.get("parts"):
        return outer
    return {**outer, "parts": parts}


def _place(message: Message, order: list[str]) -> int:
    own = str(message.get("tool_call_id"))
    return order.index(own) if own in order else len(order)


def _write_parts(message: Message, calls: Mapping[str, Part]) -> list[Part]:
    """The parts of a message that is not the model's, as they were where it says the same."""
    raw, content = _own(message).get("parts"), message.get("content")
    if message.get("role") == "tool":
        call = calls.get(str(message.get("tool_call_id")))
        return [_write_result(message, raw[0] if raw else None, call)]
    if raw is not None and content == _read_parts(raw):
        return list(raw)
    if message.get("role") in ("system", "developer"):  # there is none in midst of a conversation
        return [{"text": f"System message: {text_of(message)}"}]
    return [{"text": content}] if isinstance(content, str) else list(map(_part, content or ()))


def _part(part: Part) -> Part:
    kind, url = part.get("type"), part.get("image_url")
    if kind == "text":
        return {"text": part.get("text", "")}
    address = url.get("url") if isinstance(url, Mapping) else url
    if kind != "image_url" or not isinstance(address, str):
        raise ValueError(f"a part of the type {kind!r} cannot be written for Gemini")
    head, comma, data = address.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        return {"inlineData": {"mimeType": head[len("data:") : -len(";base64")], "data": data}}
    return {"fileData": {"fileUri": address}}


def _write_result(message: Message, raw: Part | None, call: Part | None) -> Part:
    """A result; as a text where it is fresh, for numbers of its JSON are floats there.

    One that was added to others takes their form: a model would tell it by any other.
    """
    text, wire = text_of(message), message.get(WIRE) or {}
    name = (call or {}).get("function", {}).get("name") or message.get("name")
    if raw is None:
        own = call.get("id") if call and not _own(call).get("unnamed", True) else None
        made: Part = {"id": own} if own else {}
        response: Part = {"error" if wire.get("failed") else "output": text}
        if like := (wire.get(LIKE) or {}).get("parts"):
            before = like[0][key_of(like[0], "functionResponse")]
            response = _write_response(text, before.get("response"))
        return {"functionResponse": {**made, "name": name, "response": response}}
    key = key_of(raw, "functionResponse")
    result = {**raw[key], **({"name": name} if "name" in raw[key] or name else {})}
    if text != _read_response(result.get("response")):
        result["response"] = _write_response(text, result.get("response"))
    return {**raw, key: result}


def _write_response(text: str, before: Any) -> Part:
    """A result in the form that it had."""
    key, value = _value_in(before)
    now = text if isinstance(value, str) or not is_json(text) else msgspec.json.decode(text)
    if key or not isinstance(now, dict):
        return {key or "output": now}
    return now


def _write_model(message: Message) -> list[Content]:
    """A message of the model: its parts as they came, and its calls as they are now."""
    contents = _own(message).get("contents")
    calls = _by_place(message)
    if contents is None:
        text = text_of(message)
        parts = [{"text": text}] if text else []
        return [{"role": "model", "parts": [*parts, *map(_write_call, calls.values())]}]
    before = texts_of(message)
    texts = texts_now(message, before)
    now, again = iter(texts), bool(_own(message).get(AGAIN))
    out = []
    for at, content in enumerate(contents):
        parts = []
        for place, part in enumerate(objects(content, "parts")):
            if value_of(part, "functionCall") is not None:
                call = calls.pop((at, place), None)
                said = {"text": "" if again else next(now)} if _says(part) else {}
                parts += [] if call is None else [_write_call(call, {**part, **said})]
            elif not again:
                parts += _write_text(next(now), part) if _says(part) else [part]
        out.append({**content, "parts": parts} if parts or "parts" in content else dict(content))
    fresh = [
        *({"text": text} for text in texts if text and not before),
        *map(_write_call, calls.values()),
    ]
    if fresh:
        out[-1] = {"role": "model", **out[-1], "parts": [*(out[-1].get("parts") or ()), *fresh]}
    return out


def _write_text(text: str, part: Part) -> list[Part]:
    """A text in the part that it came in; none where it is there no more."""
    return [{**part, "text": text}] if text or not part["text"] else []


def _write_system(text: str, before: Any) -> Content:
    """The system's text, in the parts that it came in."""
    parts = objects(before, "parts") if isinstance(before, dict) else []
    came = [str(part["text"]) for part in parts if "text" in part]
    if not came:
        return {"parts": [{"text": text}]}
    now = iter(texts_now({"content": text}, came, "\n\n"))
    said = [{**part, "text": next(now)} if "text" in part else part for part in parts]
    return {**before, "parts": [part for part in said if part.get("text") != ""]}


# -- parts -------------------------------------------------------------------------------------


def texts_of(message: Message) -> list[str]:
    """What a message of the model was read from, part by part."""
    return [part["text"] for part in _raw_parts(message) if _says(part)]


def thoughts_of(message: Message) -> list[str]:
    """What the model thought in words, part by part."""
    return [part["text"] for part in _raw_parts(message) if _thinks(part)]


def _raw_parts(message: Message) -> list[Part]:
    """The parts that a message of the model was read from."""
    contents = _own(message).get("contents") or ()
    return [part for content in contents for part in objects(content, "parts")]


def with_thoughts(message: Message, thoughts: Sequence[str]) -> Message:
    """A message with other thoughts in its parts; a `ValueError` where one is signed."""
    now = iter(thoughts)
    contents = [
        {
            **content,
            "parts": [
                _rethought(part, next(now)) if _thinks(part) else part
                for part in objects(content, "parts")
            ],
        }
        if "parts" in content
        else content
        for content in _own(message)["contents"]
    ]
    return {**message, WIRE: {**message[WIRE], "contents": contents}}


def _thinks(part: Part) -> bool:
    return isinstance(part.get("text"), str) and bool(part.get("thought"))


def _rethought(part: Part, thought: str) -> Part:
    if thought != part["text"] and value_of(part, "thoughtSignature"):
        raise ValueError(SIGNED)
    return {**part, "text": thought}


def _by_place(message: Message) -> dict[Any, Part]:
    """The calls of a message by the parts that they came in; one that is fresh has its own."""
    calls: dict[Any, Part] = {}
    for call in message.get("tool_calls") or ():
        at = tuple(_own(call).get("at") or ())
        calls[at if at and at not in calls else id(call)] = call
    return calls


def _write_call(call: Part, part: Part | None = None) -> Part:
    function = call.get("function") or {}
    given = _object(function.get("arguments"))
    if part is None:
        return {"functionCall": {"name": function.get("name"), "args": given}}
    key = key_of(part, "functionCall")
    now = {**part[key], "name": function.get("name")}
    if given != (part[key].get("args") or {}):
        now["args"] = given
    return {**part, key: now}


def _object(text: Any) -> Any:
    """Arguments as an object; what is none is quoted, since they have to be one."""
    if isinstance(text, Mapping):
        return dict(text)
    if not text:
        return {}
    found = msgspec.json.decode(text) if is_json(text) else None
    return found if isinstance(found, dict) else {"not_json": text}


def _write_tools(tools: Sequence[Part], before: list[Part]) -> list[Part]:
    """Functions in the groups that they came in; those that came in none join the one before."""
    groups: dict[int, list[Part]] = {}
    group = 0
    for tool in tools:
        group = _own(tool).get("group", group)
        groups.setdefault(group, []).append(_write_tool(tool))
    out = []
    for group, functions in groups.items():
        raw = before[group] if group < len(before) else {}
        out.append({**raw, key_of(raw, "functionDeclarations"): functions})
    return out


def _write_tool(tool: Part) -> Part:
    function, raw = tool["function"], _own(tool).get("raw") or {}
    came = _read_tool(raw, 0)["function"]
    out = {**raw, "name": function["name"]}
    if (function.get("description") or "") != came["description"]:
        out["description"] = function.get("description") or ""
    if not raw or function.get("parameters") != came["parameters"]:
        out.pop("parameters", None)
        schema = function.get("parameters") or {"type": "object", "properties": {}}
        out[key_of(raw, "parametersJsonSchema")] = schema
    return out


def _write_choice(choice: Any, config: Part) -> Part:
    key = key_of(config, "functionCallingConfig")
    before = config.get(key) or {}
    if isinstance(choice, str):
        return {**config, key: {**before, "mode": _MODES.get(choice, "AUTO")}}
    allowed = choice.get("allowed_tools")
    listed = allowed["tools"] if allowed else [choice]
    mode = _MODES[allowed["mode"]] if allowed else "ANY"
    names = {key_of(before, "allowedFunctionNames"): [one["function"]["name"] for one in listed]}
    return {**config, key: {"mode": mode, **before, **names}}


# -- streams -----------------------------------------------------------------------------------


class GeminiStream:
    """A streamed answer while it arrives.

    A call stands in one part, and is held until the end. So is what follows it, for the order of
    the parts must stay, and what comes with the end itself.

    Args:
        left: parts of the answers before this one that the agent has yet to read.
    """

    def __init__(self, left: Iterable[Part] = ()) -> None:
        self.whole = False
        self._left = list(left)
        self._parts: list[Part] = []
        self._held: list[int] = []
        self._body: Body = {}
        self._candidate: Part = {}
        self._content: Content | None = None

    def add(self, event: str, data: str) -> Iterable[bytes]:
        """Takes a piece of an answer in; gives what may go on now."""
        chunk = read_data(data)
        if chunk.get("error"):
            raise ToldError(chunk["error"])
        candidates = objects(chunk, "candidates")
        candidate = candidates[0] if candidates else {}
        self._content = candidate.get("content")
        content = self._content or {}
        parts = objects(content, "parts")
        ended = value_of(candidate, "finishReason") not in (None, "", "FINISH_REASON_UNSPECIFIED")
        going: list[Part] = []
        for part in parts:
            if ended or self._held or value_of(part, "functionCall") is not None:
                self._held.append(len(self._parts))
            else:
                going.append(part)
            self._parts.append(part)
        self._body |= chunk
        self._candidate |= {key: value for key, value in candidate.items() if key != "content"}
        self.whole = self.whole or ended or _blocked(chunk)
        if not going:
            return []
        said = {**content, "parts": [*self._left, *going]}
        self._left = []
        return [frame({**chunk, "candidates": [{**candidate, "content": said}]})]

    @property
    def answer(self) -> Answer:
        """The message so far."""
        contents = [{"role": "model", "parts": self._parts}]
        return _read_answer(contents, self._candidate, _usage_in(self._body), self._body)

    def again(self) -> GeminiStream:
        """The stream of a further answer, which the agent reads as part of this one."""
        held = [self._parts[place] for place in self._held]
        texts = [part for part in held if value_of(part, "functionCall") is None]
        return GeminiStream([*self._left, *texts])

    def closing(self, message: Message, usage: Any, cut: bool) -> Iterator[bytes]:
        """The last piece: the parts that were held, the calls as they are now, and the end."""
        calls = _by_place(message)
        parts = list(self._left)
        for place in self._held:
            part = self._parts[place]
            if value_of(part, "functionCall") is None:
                parts.append(part)
            elif (now := calls.pop((0, place), None)) is not None:
                parts.append(_write_call(now, part))
        parts += map(_write_call, calls.values())
        out, candidate = dict(self._body), dict(self._candidate)
        if parts:
            candidate["content"] = {"role": "model", **(self._content or {}), "parts": parts}
        elif self._content is not None:
            candidate["content"] = {**self._content, "parts": []}
        if cut:
            candidate[key_of(candidate, "finishReason")] = "MAX_TOKENS"
        if candidate:
            out["candidates"] = [candidate]
        yield frame({**out, key_of(out, "usageMetadata"): usage} if usage else out)

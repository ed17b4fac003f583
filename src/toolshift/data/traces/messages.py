"""Messages and tools as traces hold them, whatever library wrote them: told by their own structure.

A message has a `role` (or is a serialised object of LangChain, with a `type`) and a content: a
text, or parts. Calls stand in `tool_calls` or as parts; a result is a message or a part. One
exporter hands on what a program gave to a model, so any of these forms may stand in any dialect.

| part of | a call | a result |
|---|---|---|
| OpenTelemetry | `tool_call` | `tool_call_response` |
| Anthropic | `tool_use` | `tool_result` |
| the AI SDK | `tool-call` | `tool-result` |
| OpenAI Responses | `function_call` | `function_call_output` |
| Gemini | `functionCall` | `functionResponse` |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from toolshift.core.values import as_list, as_mapping
from toolshift.data.conversation import Call
from toolshift.data.traces.spans import (
    ModelTurn,
    Said,
    arguments_of,
    decoded,
    first_of,
    loose_arguments,
    objects,
)

_CALLS = ("tool_call", "tool_use", "tool-call", "function_call", "functionCall")
_RESULTS = (
    "tool_call_response", "tool_result", "tool-result", "function_call_output", "functionResponse",
)  # fmt: skip
_GEMINI = {
    "functionCall": "functionCall", "function_call": "functionCall",
    "functionResponse": "functionResponse", "function_response": "functionResponse",
}  # fmt: skip
_ROLES = {
    "system": "system", "developer": "system", "user": "user", "human": "user",
    "assistant": "assistant", "ai": "assistant", "model": "assistant",
    "tool": "tool", "function": "tool",
}  # fmt: skip
_TEXT = ("text", "content")
_RESULT = ("result", "response", "output", "content", "value")
"""Where the parts of the dialects have what a tool answered."""
_SCHEMAS = (
    "parameters",
    "inputSchema",
    "input_schema",
    "schema",
    "parametersJsonSchema",
    "parameters_json_schema",
)
"""Where OpenAI, MCP, Anthropic and Gemini have the schema of a tool's arguments."""


def read_messages(value: Any) -> tuple[Said, ...]:
    """The messages of a list, of one message, or of JSON that is such."""
    value = decoded(value)
    if isinstance(value, str):
        return (Said("user", value),) if value.strip() else ()
    if isinstance(value, Mapping):
        value = [value]
    while isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value = value[0]  # LangChain has a list of conversations
    return tuple(said for message in objects(value) for said in _read(message))


def read_tools(value: Any) -> tuple[dict[str, Any], ...]:
    """Tools as an MCP server would list them; those of a provider, without a name, are left out."""
    found = [as_listed(each) for each in objects(value)]
    return tuple(tool for tool in found if isinstance(tool.get("name"), str))


def as_listed(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A tool of any provider, as an MCP server lists it."""
    inner = decoded(raw.get("function"))
    function = inner if isinstance(inner, Mapping) else raw
    schema = decoded(next((function[key] for key in _SCHEMAS if key in function), None))
    kept = {k: v for k, v in function.items() if k not in (*_SCHEMAS, "type")}
    if isinstance(schema, Mapping) and isinstance(schema.get("jsonSchema"), Mapping):
        schema = schema["jsonSchema"]  # the AI SDK's own wrapping
    return {**kept, "inputSchema": schema if isinstance(schema, Mapping) else {"type": "object"}}


def _read(raw: Mapping[str, Any]) -> Iterator[Said]:
    """What a message says: of results in parts each one, and of the rest one."""
    message = _unpacked(raw)
    kind = message.get("type")
    if kind in _CALLS and "role" not in message:  # an item of OpenAI Responses
        yield Said("assistant", "", (_call(message),))
        return
    if kind in _RESULTS and "role" not in message:
        yield _result(message)
        return
    role = _ROLES.get(str(message.get("role") or kind or "").lower(), "")
    content = decoded_content(message.get("content", message.get("parts")))
    if role == "tool" and not _has_results(content):
        yield _result(message)
        return
    parts = [_named(each) for each in content] if isinstance(content, list) else []
    yield from (_result(part) for part in parts if part.get("type") in _RESULTS)
    listed = objects(message.get("tool_calls"))
    older = message.get("function_call")
    listed += [older] if isinstance(older, Mapping) else []
    calls = [_call(each) for each in (*listed, *(p for p in parts if p.get("type") in _CALLS))]
    text = content if isinstance(content, str) else " ".join(_texts(parts))
    if role == "assistant" or (role in ("system", "user") and (text or calls)):
        yield Said(role, text, _distinct(calls))


def decoded_content(content: Any) -> Any:
    """A content as a text or as its parts; a text that is JSON of something else stays a text."""
    if isinstance(content, Mapping):
        return [content]
    if isinstance(content, list):
        return [
            each if isinstance(each, Mapping) else {"type": "text", "text": str(each)}
            for each in content
        ]
    whole = decoded(content)
    if (
        isinstance(whole, list)
        and whole
        and all(isinstance(p, Mapping) and "type" in p for p in whole)
    ):
        return whole
    return content if isinstance(content, str) else ""


def _unpacked(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """A message without the wrappings of LangChain, OpenInference, and choices of OpenAI."""
    if isinstance(raw.get("kwargs"), Mapping) and "lc" in raw:
        names = raw.get("id")
        name = str(names[-1]) if isinstance(names, list) and names else ""
        kind = name.removesuffix("Chunk").removesuffix("Message").lower()
        return {"type": kind, **_without_type(raw["kwargs"], kind)}
    if isinstance(raw.get("data"), Mapping) and "type" in raw and "content" not in raw:
        return {**raw["data"], "type": raw["type"]}
    inner = raw.get("message")
    return _unpacked(inner) if isinstance(inner, Mapping) and "content" not in raw else raw


def _without_type(message: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    return {k: v for k, v in message.items() if k != "type"} if kind else message


def _named(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """A part with its type; Gemini has it as the one key of the part, and in Python in its way."""
    if "type" in part:
        return part
    for key, kind in _GEMINI.items():
        if isinstance(part.get(key), Mapping):
            return {"type": kind, **part[key]}
    return part


def _has_results(content: Any) -> bool:
    parts = as_list(content)
    return any(_named(part).get("type") in _RESULTS for part in parts)


def _texts(parts: Iterable[Mapping[str, Any]]) -> list[str]:
    plain = [
        part for part in parts if part.get("type", "text") in ("text", "input_text", "output_text")
    ]
    return [text for part in plain if (text := _text(part))]


def _text(part: Mapping[str, Any]) -> str:
    return next((part[key] for key in _TEXT if isinstance(part.get(key), str)), "")


def _call(raw: Mapping[str, Any]) -> Call:
    inner = decoded(raw.get("function"))
    call = inner if isinstance(inner, Mapping) else raw
    name = str(call.get("name") or call.get("toolName") or "")
    keys = ("arguments", "args", "input", "arguments_json")
    given = next((call[key] for key in keys if call.get(key) is not None), None)
    number = raw.get("id") or raw.get("call_id") or raw.get("toolCallId") or ""
    if raw.get("type") == "function_call" and raw.get("call_id"):
        number = raw["call_id"]
    return Call(name, arguments_of(given) or {}, str(number))


def _distinct(calls: list[Call]) -> tuple[Call, ...]:
    """Calls that a message has both in `tool_calls` and as parts of its content, once."""
    found: list[Call] = []
    for call in calls:
        known = call.id and any(call.id == other.id for other in found)
        if call.name and not known:
            found.append(call)
    return tuple(found)


def _result(raw: Mapping[str, Any]) -> Said:
    value = next((raw[key] for key in _RESULT if key in raw), None)
    bad = raw.get("is_error", raw.get("isError"))
    failed = bad if isinstance(bad, bool) else True if raw.get("status") == "error" else None
    if isinstance(value, Mapping) and value.keys() == {"type", "value"}:  # an output of the AI SDK
        failed = True if str(value["type"]).startswith("error") else failed
        value = value["value"]
    number = next(
        (
            raw[key]
            for key in ("tool_call_id", "tool_use_id", "call_id", "toolCallId", "id")
            if raw.get(key)
        ),
        "",
    )
    name = str(raw.get("name") or raw.get("toolName") or "")
    return Said("tool", "", (), str(number), name, plain_result(value), failed)


def plain_result(value: Any) -> Any:
    """What a tool answered, without the wrapping of its library: decoded where it is JSON.

    An object as Python prints it, as LlamaIndex writes those of functions, is decoded too.
    """
    value = decoded(value)
    if isinstance(value, str) and value.startswith("{'"):
        printed = loose_arguments(value)
        value = value if printed is None else printed
    if isinstance(value, Mapping):
        if "structuredContent" in value and value["structuredContent"] is not None:
            return value["structuredContent"]
        if isinstance(value.get("kwargs"), Mapping) and "lc" in value:
            return plain_result(value["kwargs"].get("content"))
        if value.get("type") == "tool" and "content" in value and "tool_call_id" in value:
            return plain_result(value["content"])
        inner = value.get("content")
        if isinstance(inner, list) and value.keys() <= {
            "content",
            "isError",
            "_meta",
            "structuredContent",
        }:
            return value if value.get("isError") is True else plain_result(inner)
    if isinstance(value, list) and value:
        texts = [each["text"] for each in value if _is_plain(each)]
        if len(texts) == len(value):
            return decoded("\n".join(texts))
    return value


def _is_plain(block: Any) -> bool:
    """Whether this is a block of text, with nothing of a record of the tool's own."""
    told = isinstance(block, Mapping) and isinstance(block.get("text"), str) and "type" in block
    return told and block.keys() <= {"type", "text", "annotations", "_meta"}


def turn_of(given: Any, reply: Any, tools: Any = None) -> ModelTurn:
    """A turn of a model from its request and its response, as a program gave and got them."""
    given, reply = decoded(given), decoded(reply)
    said: tuple[Said, ...] = ()
    if isinstance(given, Mapping):
        key = next((key for key in _MESSAGES if given.get(key) is not None), "")
        asked = given.get("config")
        config: Mapping[str, Any] = as_mapping(asked)
        system = given.get("system", given.get("instructions", config.get("system_instruction")))
        said = (*_system(system), *(read_messages(given[key]) if key else ()))
        if "role" in given and not key:
            said = read_messages(given)
        listed = (tools, given.get("tools"), given.get("functions"), config.get("tools"))
        tools = next(filter(None, listed), None)
    else:
        said = read_messages(given)
    replied, reasons = _reply(reply)
    return ModelTurn(read_tools(_declared(tools)), said, replied, reasons)


_MESSAGES = ("messages", "input", "contents", "prompt", "chat_history", "query")
"""Where requests to models have what was said."""


def _system(value: Any) -> tuple[Said, ...]:
    value = decoded(value)
    text = value if isinstance(value, str) else " ".join(_texts([*objects(value)]))
    return (Said("system", text),) if text else ()


def _declared(tools: Any) -> list[Any]:
    """The tools of a list; Gemini has lists of functions inside of one tool."""
    found: list[Any] = []
    for tool in objects(tools):
        inner = tool.get("functionDeclarations", tool.get("function_declarations"))
        found += objects(inner) if inner else [tool]
    return found


def _reply(reply: Any) -> tuple[tuple[Said, ...], tuple[str, ...]]:
    """What a model answered, and why it stopped, in the response of any provider or library."""
    if isinstance(reply, str):
        return ((Said("assistant", reply),) if reply else ()), ()
    if isinstance(reply, list):
        return tuple(s for s in read_messages(reply) if s.role == "assistant"), ()
    if not isinstance(reply, Mapping):
        return (), ()
    for key in ("choices", "candidates", "generations"):
        choices = decoded(reply.get(key))
        while isinstance(choices, list) and choices and isinstance(choices[0], list):
            choices = choices[0]
        if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
            first = choices[0]  # further choices are not what the agent went on with
            message = first.get("message", first.get("content", first.get("text")))
            reason = first.get("finish_reason", first.get("finishReason"))
            replied = (
                _reply(message)[0] if not isinstance(message, Mapping) else _assistant(message)
            )
            return replied, (str(reason),) if reason else ()
    for key in ("output", "message", "messages", "response", "content"):
        if key in reply and not (key == "content" and "role" in reply):
            inner = decoded(reply[key])
            if isinstance(inner, str | list | Mapping):
                return _reply(inner)[0], _reasons(reply)
    return _assistant(reply), _reasons(reply)


def _assistant(message: Mapping[str, Any]) -> tuple[Said, ...]:
    found = read_messages([message if "role" in message or "lc" in message or "type" in message
                           else {**message, "role": "assistant"}])  # fmt: skip
    return tuple(said for said in found if said.role == "assistant")


def _reasons(reply: Mapping[str, Any]) -> tuple[str, ...]:
    reason = first_of(reply, "finish_reason", "finishReason", "stop_reason")
    return (str(reason),) if isinstance(reason, str) else ()

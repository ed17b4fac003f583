"""What of a request for a chat completion is shifted; all else is refused, or passed on.

The lists here name what is known to be shifted, or to say nothing of tools. They never name what is
known to do harm: of that there is more every month (hosted tools, servers of tools, tools in fields
of one vendor), and what is on no list must not reach the model unshifted in silence.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from toolshift.core.values import as_list, is_number

_SETTINGS = frozenset(
    (
        "model", "stream", "stream_options", "n", "temperature", "top_p", "stop", "seed",
        "max_tokens", "max_completion_tokens", "presence_penalty", "frequency_penalty",
        "logit_bias", "logprobs", "top_logprobs", "parallel_tool_calls", "user", "metadata",
        "store", "service_tier", "reasoning_effort", "verbosity", "modalities", "audio",
        "prediction", "prompt_cache_key", "prompt_cache_retention", "safety_identifier",
        # of servers that take the same requests
        "reasoning", "thinking", "chat_template_kwargs", "stop_token_ids", "ignore_eos",
        "skip_special_tokens", "cache_prompt", "safe_prompt",
    )
)  # fmt: skip
"""Fields of a request that hold settings; none of them offers a tool."""
_SHIFTED = frozenset(("messages", "tools", "tool_choice", "response_format"))
_CHOICES = (None, "auto", "none", "required", "any")
_FORMS = ("text", "json_object", "json_schema")
_ROLES = ("system", "developer", "user", "assistant", "tool")
_PARTS = ("text", "refusal", "image_url", "input_audio", "video_url", "file", "thinking")
_OF_A_TOOL = frozenset(("type", "function", "cache_control"))
_OF_A_FUNCTION = frozenset(("name", "description", "parameters", "strict"))
_OF_A_MESSAGE = frozenset(
    (
        "content", "tool_calls", "audio", "annotations", "reasoning_details", "thinking_blocks",
        "provider_specific_fields", "cache_control",
    )
)  # fmt: skip
"""Fields of a message that hold more than a text: clients send back what a model has said."""
_OF_A_CALL = frozenset(("function", "extra_content", "provider_specific_fields"))

Part = dict[str, Any]


def functions_of(body: Part) -> list[Part]:
    """The tools of a request that can be shifted."""
    return [tool for tool in body.get("tools") or () if not _in_tool(tool)]


def unshifted(body: Part) -> str:
    """The first thing in a request that is not shifted, in words; "" where there is none."""
    return next(filter(None, _all_in(body)), "")


def _all_in(body: Part) -> Iterator[str]:
    """What is not shifted, place by place; "" for a place where all is."""
    yield from (_in_field(name, value) for name, value in body.items())
    yield from (_in_tool(tool) for tool in body.get("tools") or ())
    yield _in_choice(body.get("tool_choice"))
    messages = body.get("messages") or ()
    yield from map(_in_message, messages)
    yield _result_without_call(messages)
    if functions_of(body):
        yield "more than one reply (`n` above 1)" if (body.get("n") or 1) != 1 else ""
    elif any(said.get("tool_calls") or said["role"] == "tool" for said in messages):
        yield "calls of tools in the history where the request offers no tools"
    elif isinstance(body.get("tool_choice"), dict):
        yield "a `tool_choice` where the request offers no tools"


def _in_field(name: str, value: Any) -> str:
    if value is None or name in _SHIFTED - {"response_format"}:
        return ""
    if name == "response_format":
        form = value.get("type") if isinstance(value, dict) else value
        return "" if form in _FORMS else f"a response_format of the type {named(form)}"
    known = name in _SETTINGS and is_plain(value)
    return "" if is_number(value) or known else f"the field {named(name)}"


def is_plain(value: Any) -> bool:
    """Whether a setting is one value, a list of them, or names with such: no place for a tool."""
    values = value.values() if isinstance(value, dict) else [value]
    flat = [one for each in values for one in (each if isinstance(each, list) else [each])]
    return not any(isinstance(one, dict | list) for one in flat)


def _in_tool(tool: Part) -> str:
    """Some agents leave the type of a function out, and some servers take that."""
    kind, function = tool.get("type") or "function", tool.get("function")
    if kind != "function":
        return f"a tool of the type {named(kind)}"
    if not isinstance(function, dict):
        return 'a tool that is not written as {"type": "function", "function": {...}}'
    odd = [name for name in tool if tool[name] and name not in _OF_A_TOOL]
    odd += [name for name in function if function[name] and name not in _OF_A_FUNCTION]
    return f"the field {named(odd[0])} of a tool" if odd else ""


def _in_choice(choice: Any) -> str:
    if not isinstance(choice, dict):
        known = choice is None or (isinstance(choice, str) and choice in _CHOICES)
        return "" if known else f"a tool_choice that is {named(choice)}"
    kind = choice.get("type") or "function"
    if kind == "allowed_tools":
        allowed = choice.get("allowed_tools")
        those = allowed.get("tools") if isinstance(allowed, dict) else None
        whole = isinstance(those, list) and all(map(_names_function, those))
    else:
        whole = kind == "function" and _names_function(choice)
    return "" if whole else f"a tool_choice of the type {named(kind)} in this form"


def _names_function(choice: Any) -> bool:
    if not isinstance(choice, dict) or (choice.get("type") or "function") != "function":
        return False
    function = choice.get("function")
    return isinstance(function, dict) and isinstance(function.get("name"), str)


def _in_message(message: Part) -> str:
    role, content = message.get("role"), message.get("content")
    if role not in _ROLES:
        return f"a message of the role {named(role)}"
    if odd := structured(message, _OF_A_MESSAGE):
        return f"the field {named(odd)} of a message"
    if not isinstance(content, str | list | None):
        return f"a content that is {named(content)}"
    parts = as_list(content)
    found = [_in_part(part, ("text",) if role == "tool" else _PARTS) for part in parts]
    found += map(_in_call, message.get("tool_calls") or ())
    return next(filter(None, found), "")


def _in_part(part: Any, known: tuple[str, ...]) -> str:
    kind = part.get("type") if isinstance(part, dict) else part
    if not isinstance(part, dict) or kind not in known:
        return f"a part of the type {named(kind)} in a message"
    whole = kind != "text" or isinstance(part.get("text"), str)
    return "" if whole else "a part of the type 'text' without a text in a message"


def _in_call(call: Part) -> str:
    kind = call.get("type") or "function"
    if kind != "function" or not isinstance(call.get("function"), dict):
        return f"a call of the type {named(kind)} in the history"
    odd = structured(call, _OF_A_CALL) or structured(call["function"], frozenset(("arguments",)))
    return f"the field {named(odd)} of a call" if odd else ""


def structured(holder: Part, known: frozenset[str]) -> str:
    """The first field, beside the known ones, that holds more than a text or a number."""
    odd = (key for key, value in holder.items() if value and isinstance(value, dict | list))
    return next((key for key in odd if key not in known), "")


def _result_without_call(messages: Any) -> str:
    """A result is shifted as the result of its call; the call must stand before it."""
    calls = set[str]()
    for message in messages:
        if message["role"] == "tool" and str(message.get("tool_call_id")) not in calls:
            return "a result whose call is not in the messages before it"
        calls |= {str(call.get("id")) for call in message.get("tool_calls") or ()}
    return ""


def named(value: Any) -> str:
    """What stands in a place, short enough for a sentence."""
    if isinstance(value, str):
        return repr(value[:60])
    return "null" if value is None else f"of the form {type(value).__name__}"

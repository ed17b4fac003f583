"""What of a request for a response is shifted; all else is refused, or passed on.

As in `dialects.chat_scope`, the lists name what is known to be shifted or to say nothing of tools.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from toolshift.core.values import is_number
from toolshift.dialects.chat_scope import is_plain, named, structured
from toolshift.dialects.responses_items import CALLS, RESULTS, SETTINGS

_SETTINGS = frozenset(
    (
        "model", "stream", "stream_options", "temperature", "top_p", "max_output_tokens",
        "max_tool_calls", "metadata", "client_metadata", "parallel_tool_calls", "reasoning",
        "safety_identifier", "service_tier", "store", "include", "top_logprobs", "truncation",
        "user", "prompt_cache_key", "prompt_cache_retention", "prompt_cache_options",
        "previous_response_id", "instructions",
    )
)  # fmt: skip
"""Fields of a request that hold settings; none of them offers a tool."""
_CHOICES = ("auto", "none", "required")
_FORMS = ("text", "json_object", "json_schema")
_OF_A_TOOL = frozenset(("type", "name", "description"))
_TOOLS = {
    "function": _OF_A_TOOL | {"parameters", "strict"},
    "custom": _OF_A_TOOL | {"format"},
    "namespace": _OF_A_TOOL | {"tools"},
}
"""The kinds of tools that are shifted, and the fields that each may have."""
_ROLES = ("user", "system", "developer", "assistant")
_SAID = ("input_text", "input_image", "input_file", "input_audio", "output_text", "refusal")
_REPORTED = ("input_text", "input_image", "input_file")
_ITEMS: Mapping[str, frozenset[str]] = {
    "message": frozenset(("content",)),
    "reasoning": frozenset(("summary", "content")),
    **dict.fromkeys(SETTINGS, frozenset(("text",))),
    **dict.fromkeys(CALLS, frozenset[str]()),
    **dict.fromkeys(RESULTS, frozenset(("output",))),
}
"""The kinds of items that are known, and the fields of each that hold more than plain values."""
Part = dict[str, Any]


def is_function(tool: Any) -> bool:
    """Whether a tool is of a kind that is shifted."""
    return not in_tool(tool)


def unshifted(body: Part) -> str:
    """The first thing in a request that is not shifted, in words; "" where there is none."""
    return next(filter(None, _all_in(body)), "")


def _all_in(body: Part) -> Iterator[str]:
    yield from (_in_field(name, value) for name, value in body.items())
    tools = body.get("tools") or ()
    yield from map(in_tool, tools)
    yield _in_choice(body.get("tool_choice"))
    items = body.get("input")
    if not isinstance(items, list):
        items = []
    yield from map(_in_item, items)
    yield "" if body.get("previous_response_id") else _result_without_call(items)
    if not tools:
        kinds = {item.get("type") for item in items if isinstance(item, dict)}
        called = kinds & {*CALLS, *RESULTS}
        yield "calls of tools in the history where the request offers no tools" if called else ""
        choice = isinstance(body.get("tool_choice"), dict)
        yield "a `tool_choice` where the request offers no tools" if choice else ""


def _in_field(name: str, value: Any) -> str:
    if value is None or name in ("tools", "tool_choice"):
        return ""
    if name == "input":
        return "" if isinstance(value, str | list) else f"an input that is {named(value)}"
    if name == "text":
        return _in_text(value)
    if name == "instructions" and not isinstance(value, str):
        return f"instructions that are {named(value)}"
    off = value is False  # such as `background`
    known = name in _SETTINGS and is_plain(value)
    return "" if is_number(value) or off or known else f"the field {named(name)}"


def _in_text(value: Any) -> str:
    form = value.get("format") if isinstance(value, dict) else value
    kind = form.get("type") if isinstance(form, dict) else form
    return "" if form is None or kind in _FORMS else f"a text format of the type {named(kind)}"


def in_tool(tool: Any) -> str:
    """What of a tool is not shifted, in words."""
    kind = tool.get("type") if isinstance(tool, dict) else tool
    if not isinstance(tool, dict) or kind not in _TOOLS:
        return f"a tool of the type {named(kind)}"
    if not isinstance(tool.get("name"), str):
        return f'a tool that is not written as {{"type": "{kind}", "name": ...}}'
    odd = [name for name in tool if tool[name] and name not in _TOOLS[kind]]
    if odd:
        return f"the field {named(odd[0])} of a tool"
    inner = tool.get("tools") or () if kind == "namespace" else ()
    if not isinstance(inner, list | tuple):
        return "a namespace whose tools are no list"
    return next(filter(None, map(_in_inner_tool, inner)), "")


def _in_inner_tool(tool: Any) -> str:
    within = isinstance(tool, dict) and tool.get("type") == "namespace"
    return "a namespace inside of a namespace" if within else in_tool(tool)


def _in_choice(choice: Any) -> str:
    if not isinstance(choice, dict):
        known = choice is None or choice in _CHOICES
        return "" if known else f"a tool_choice that is {named(choice)}"
    kind = choice.get("type")
    if kind == "allowed_tools":
        those = choice.get("tools")
        whole = isinstance(those, list) and all(map(_names_tool, those))
    else:
        whole = _names_tool(choice)
    return "" if whole else f"a tool_choice of the type {named(kind)} in this form"


def _names_tool(choice: Any) -> bool:
    kinds = ("function", "custom")
    return (
        isinstance(choice, dict)
        and choice.get("type") in kinds
        and isinstance(choice.get("name"), str)
        and not structured(choice, frozenset())
    )


def _in_item(item: Any) -> str:
    if not isinstance(item, dict):
        return f"an item of the input that is {named(item)}"
    kind = item.get("type", "message")
    if kind not in _ITEMS:
        return f"an item of the type {named(kind)} in the input"
    odd = [name for name in item if name not in _ITEMS[kind] and not is_plain(item[name])]
    if odd:
        return f"the field {named(odd[0])} of an item of the type {named(kind)}"
    if kind == "message":
        if item.get("role") not in _ROLES:
            return f"a message of the role {named(item.get('role'))}"
        return _in_parts(item.get("content"), _SAID, "a message")
    if kind in SETTINGS:
        return _in_text(item.get("text"))
    if kind in RESULTS:
        return _in_parts(item.get("output"), _REPORTED, "a result")
    return ""


def _in_parts(content: Any, known: tuple[str, ...], where: str) -> str:
    if isinstance(content, str):
        return ""
    if not isinstance(content, list):
        return f"a content that is {named(content)} of {where}"
    kinds = (part.get("type") if isinstance(part, dict) else None for part in content)
    odd = next((kind for kind in kinds if kind not in known), "")
    return "" if odd == "" else f"a part of the type {named(odd)} in {where}"


def _result_without_call(items: list[Any]) -> str:
    """A result is shifted as the result of its call; the call must stand before it."""
    calls = set[str]()
    for item in items:
        kind = item.get("type") if isinstance(item, dict) else None
        if kind in RESULTS and str(item.get("call_id")) not in calls:
            return "a result whose call is not in the input before it"
        calls |= {str(item.get("call_id"))} if kind in CALLS else set()
    return ""

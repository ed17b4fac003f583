"""What of a request to Anthropic's Messages is shifted; all else is refused, or passed on.

The lists name what is known to be shifted, or to say nothing of tools (`chat_scope` says why).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from toolshift.core.values import as_list, is_number
from toolshift.dialects.chat_scope import named

Part = dict[str, Any]

_SETTINGS = frozenset(
    (
        "model", "max_tokens", "metadata", "stop_sequences", "stream", "temperature", "top_k",
        "top_p", "thinking", "service_tier", "output_config", "output_format", "inference_geo",
        "speed", "cache_control",
    )
)  # fmt: skip
_SHIFTED = frozenset(("messages", "system", "tools", "tool_choice"))
_OF_A_TOOL = frozenset(
    (
        "type", "name", "description", "input_schema", "cache_control", "strict",
        "eager_input_streaming", "allowed_callers", "defer_loading",
    )
)  # fmt: skip
_OF_A_MESSAGE = frozenset(("role", "content", "id", "type", "model"))
_CHOICES = ("auto", "any", "none", "tool")
_BLOCKS = {
    "system": ("text",),
    "user": ("text", "image", "document", "tool_result"),
    "assistant": ("text", "thinking", "redacted_thinking", "tool_use"),
}
_IN_A_RESULT = ("text", "image", "document", "tool_reference")
_CLEARS_THOUGHTS = "clear_thinking_"


def unshifted(body: Part) -> str:
    """The first thing in a request that is not shifted, in words; "" where there is none."""
    return next(filter(None, _all_in(body)), "")


def _all_in(body: Part) -> Iterator[str]:
    """What is not shifted, place by place; "" for a place where all is."""
    for name, value in body.items():
        yield _in_field(name, value)
    tools = body.get("tools") or []
    yield from map(_in_tool, tools)
    choice = body.get("tool_choice")
    kind = choice.get("type") if isinstance(choice, dict) else choice
    yield "" if kind is None or kind in _CHOICES else f"a tool_choice that is {named(kind)}"
    yield from _in_messages(body.get("messages") or (), bool(tools))


def _in_field(name: str, value: Any) -> str:
    if value is None or name in _SHIFTED | _SETTINGS:
        return ""
    if name == "context_management" and isinstance(value, dict):  # what is cleared names tools
        edits = value.get("edits") or ()
        kinds = [edit.get("type") if isinstance(edit, dict) else edit for edit in edits]
        odd = [kind for kind in kinds if not str(kind).startswith(_CLEARS_THOUGHTS)]
        return f"the edit {named(odd[0])} of its context" if odd else ""
    return "" if is_number(value) else f"the field {named(name)}"


def _in_tool(tool: Any) -> str:
    if not isinstance(tool, dict):
        return f"a tool that is {named(tool)}"
    kind = tool.get("type") or "custom"
    if kind != "custom":
        return f"a tool of the type {named(kind)}"
    odd = [name for name in tool if tool[name] and name not in _OF_A_TOOL]
    if (tool.get("allowed_callers") or ["direct"]) != ["direct"]:
        odd.append("allowed_callers")
    return f"the field {named(odd[0])} of a tool" if odd else ""


def _in_messages(messages: Iterable[Any], offers_tools: bool) -> Iterator[str]:
    calls = set[str]()
    for message in messages:
        role = message.get("role") if isinstance(message, dict) else None
        if role not in _BLOCKS:
            yield f"a message of the role {named(role)}"
            return
        odd = [name for name in message if message[name] and name not in _OF_A_MESSAGE]
        yield f"the field {named(odd[0])} of a message" if odd else ""
        known = _BLOCKS[role]
        content = message.get("content")
        for block in as_list(content):
            kind = block.get("type") if isinstance(block, dict) else None
            yield "" if kind in known else f"a block of the type {named(kind)} of the {role}"
            if kind in ("tool_use", "tool_result") and not offers_tools:
                yield "calls of tools in the history where the request offers no tools"
            if kind == "tool_use":
                yield from _in_call(block)
                calls.add(str(block.get("id")))
            elif kind == "tool_result":
                yield from _in_result(block, calls)


def _in_call(block: Part) -> Iterator[str]:
    caller = block.get("caller")
    direct = caller is None or (isinstance(caller, dict) and caller.get("type") == "direct")
    yield "" if direct else "a call that a program of the model has made"


def _in_result(block: Part, calls: set[str]) -> Iterator[str]:
    if str(block.get("tool_use_id")) not in calls:
        yield "a result whose call is not in the messages before it"
    content = block.get("content")
    for part in as_list(content):
        kind = part.get("type") if isinstance(part, dict) else None
        yield "" if kind in _IN_A_RESULT else f"a block of the type {named(kind)} in a result"

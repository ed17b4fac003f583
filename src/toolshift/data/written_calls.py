"""Calls that stand in the text of a message, where no format of data has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolshift.core.calls import ToolCall
from toolshift.data.conversation import Conversation
from toolshift.lm.parse_reply import has_marked_call, parse_reply

CALLS_IN_TEXT = (
    "its calls are written in the text of a message, where they are not read: convert them to "
    "`tool_calls`"
)


def calls_in_text(conversation: Conversation) -> bool:
    """Whether a conversation has no calls but those that its assistant writes as text."""
    if any(said.calls for said in conversation.messages):
        return False
    tools = {str(tool.function.get("name")): tool.function for tool in conversation.tools}
    return any(
        _calls(said.text, tools) for said in conversation.messages if said.role == "assistant"
    )


def _calls(text: str, tools: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether a text has a call that a server should have read."""
    if has_marked_call(text):
        return True
    if not any(name in text for name in tools):
        return False
    found = parse_reply(text, tools=tools.values()).calls
    return any(isinstance(call, ToolCall) and call.name in tools for call in found)

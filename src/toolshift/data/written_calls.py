"""Calls that stand in the text of a message, where no format of data has them."""

from __future__ import annotations

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
    names = {str(tool.function.get("name")) for tool in conversation.tools}
    return any(
        _calls(said.text, names) for said in conversation.messages if said.role == "assistant"
    )


def _calls(text: str, names: set[str]) -> bool:
    """Whether a text has a call that a server should have read."""
    if has_marked_call(text):
        return True
    if not any(name in text for name in names):
        return False
    found = parse_reply(text, tools=names).calls
    return any(isinstance(call, ToolCall) and call.name in names for call in found)

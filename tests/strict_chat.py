"""Is a request of chat completions one that a provider would take?

As strict as the strictest: a field that is not documented, a call without its result, a result
without its call, and an assistant message that is not what the model has said are refused. Text,
ids and thoughts have to come back to the letter, arguments as the same values, since clients write
them anew. Thoughts may be left out, as OpenAI's models have none to send, but not be changed.
"""

from __future__ import annotations

import json
from typing import Any

FIELDS = {
    "model", "messages", "tools", "tool_choice", "parallel_tool_calls", "temperature", "top_p",
    "stream", "stream_options", "max_tokens", "max_completion_tokens", "reasoning_effort",
    "response_format", "seed", "stop", "n", "user", "metadata", "store", "frequency_penalty",
    "presence_penalty", "logit_bias", "logprobs", "top_logprobs", "service_tier", "verbosity",
    "prompt_cache_key", "safety_identifier",
}  # fmt: skip
OF_A_MESSAGE = {
    "system": {"role", "content", "name"},
    "developer": {"role", "content", "name"},
    "user": {"role", "content", "name"},
    "assistant": {"role", "content", "name", "tool_calls", "refusal", "reasoning_content"},
    "tool": {"role", "content", "tool_call_id"},
}
OF_A_FUNCTION = {"name", "description", "parameters", "strict"}


class StrictChat:
    """What has been said, and what was refused."""

    def __init__(self) -> None:
        self.refused: list[str] = []
        self.thoughts_back = 0
        self._said: list[tuple[str, list[Any], str]] = []

    def said(self, message: dict[str, Any]) -> None:
        """Notes a message of the model, which is to come back as it is."""
        self._said.append(_kept(message))

    def wrong(self, body: dict[str, Any]) -> str:
        """What a provider would refuse; "" for nothing. It is noted."""
        found = self._wrong(body)
        if found:
            self.refused.append(found)
        return found

    def _wrong(self, body: dict[str, Any]) -> str:
        if odd := body.keys() - FIELDS:
            return f"Unrecognized request argument supplied: {sorted(odd)[0]}"
        for place, tool in enumerate(body.get("tools") or ()):
            if tool.keys() != {"type", "function"} or tool["function"].keys() - OF_A_FUNCTION:
                return f"Unknown parameter: 'tools[{place}]'"
            if (tool["function"].get("parameters") or {"type": "object"}).get("type") != "object":
                return f"Invalid schema for function '{tool['function']['name']}'"
        waiting: list[str] = []
        for place, message in enumerate(body["messages"]):
            known = OF_A_MESSAGE.get(message.get("role"))
            if known is None or message.keys() - known:
                return f"Unknown parameter in 'messages[{place}]': {sorted(message)}"
            if message["role"] == "tool":
                if message.get("tool_call_id") not in waiting:
                    return "a 'tool' message must follow a message with its 'tool_calls'"
                waiting.remove(message["tool_call_id"])
            elif waiting:
                return f"tool_call_ids did not have response messages: {', '.join(waiting)}"
            elif message["role"] == "assistant":
                if not self._was_said(message):
                    return f"'messages[{place}]' is not what was said"
                waiting = [call["id"] for call in message.get("tool_calls") or ()]
        return f"tool_call_ids did not have response messages: {waiting}" if waiting else ""

    def _was_said(self, message: dict[str, Any]) -> bool:
        text, calls, thought = _kept(message)
        self.thoughts_back += bool(thought)
        return any(
            (text, calls) == (one, others) and thought in ("", sealed)
            for one, others, sealed in self._said
        )


def _kept(message: dict[str, Any]) -> tuple[str, list[Any], str]:
    content = message.get("content") or ""
    text = content if isinstance(content, str) else "".join(part["text"] for part in content)
    calls = [
        (
            call["id"],
            call["type"],
            call["function"]["name"],
            json.loads(call["function"]["arguments"]),
        )
        for call in message.get("tool_calls") or ()
    ]
    return text, calls, message.get("reasoning_content") or ""

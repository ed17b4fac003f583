"""What an agent is given and what it returns: turns, replies, tool calls, the protocol tools."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import jsonschema_rs
import msgspec

from toolshift.core.names import storable

REASONS = ("service_failure", "tool_unavailable", "contradictory_request", "not_found")
"""The reasons for which a refusal can be right; `refuse` takes one of them."""


FINAL_ANSWER, REFUSE, ASK_USER = "final_answer", "refuse", "ask_user"


def _protocol_tool(name: str, description: str, properties: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": schema},
    }


PROTOCOL_TOOLS: tuple[dict[str, Any], ...] = (
    _protocol_tool(
        FINAL_ANSWER,
        "Give the user the final answer to the current request.",
        {"answer": {"type": "string", "description": "The requested code or value."}},
    ),
    _protocol_tool(
        REFUSE,
        "Stop because the request cannot be fulfilled, and say why.",
        {"reason": {"type": "string", "enum": list(REASONS), "description": "Why it fails."}},
    ),
    _protocol_tool(
        ASK_USER,
        "Ask the user one question about the request.",
        {"question": {"type": "string", "description": "The question."}},
    ),
)


PROTOCOL_NAMES = frozenset((FINAL_ANSWER, REFUSE, ASK_USER))
"""Every conversation offers these beside its tools; `protocol_tools` gives copies of them."""


_PROTOCOL_JSON = msgspec.json.encode(PROTOCOL_TOOLS)


_PROTOCOL_CHECKS = {
    tool["function"]["name"]: jsonschema_rs.validator_for(tool["function"]["parameters"])
    for tool in PROTOCOL_TOOLS
}


def protocol_tools() -> list[dict[str, Any]]:
    """The protocol tools as fresh dicts, which their reader may change."""
    tools: list[dict[str, Any]] = msgspec.json.decode(_PROTOCOL_JSON)
    return tools


def protocol_error(name: str, arguments: dict[str, Any] | str) -> tuple[str, str]:
    """The code and the words for what is wrong with a protocol call; empty where nothing is."""
    if not isinstance(arguments, dict):
        return "malformed_arguments", "The arguments are not a JSON object."
    fault = next(_PROTOCOL_CHECKS[name].iter_errors(arguments), None)
    return ("invalid_arguments", f"{name}: {fault.message}") if fault else ("", "")


class ToolCall(msgspec.Struct, frozen=True):
    """One call as the agent spoke it; `arguments` stays a string where it was not valid JSON."""

    name: str
    arguments: dict[str, Any] | str
    id: str = ""


class Usage(msgspec.Struct, frozen=True):
    """Tokens of one reply, and its price in dollars where known."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0


class Turn(msgspec.Struct, frozen=True):
    """What an agent is given: the messages so far and the tools on offer now (OpenAI format)."""

    messages: Sequence[dict[str, Any]]
    tools: Sequence[dict[str, Any]]


class Reply(msgspec.Struct, frozen=True):
    """What an agent returns: tool calls, or prose.

    `failure` says that the agent's infrastructure (not the agent) failed: the episode ends as an
    infrastructure error, counted and never scored.
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    failure: str = ""

    @classmethod
    def of(cls, message: Reply | str | dict[str, Any]) -> Reply:
        """Reads a string or an OpenAI assistant message (`content`, `tool_calls`).

        Raises:
            TypeError: for anything else, naming what came.
        """
        if isinstance(message, Reply):
            calls = tuple(map(_writable, message.calls))
            return msgspec.structs.replace(message, text=storable(message.text), calls=calls)
        if isinstance(message, str):
            return cls(text=storable(message))
        if not isinstance(message, dict):
            raise TypeError(
                f"an agent returns a string or an assistant message, not {type(message).__name__}"
            )
        if not message.keys() & {"content", "tool_calls", "role"}:
            found = ", ".join(map(str, message))
            raise TypeError(f"an assistant message has content or tool_calls, not {found}")
        calls = tuple(_read_call(raw) for raw in message.get("tool_calls") or ())
        return cls(text=storable(text_of(message)), calls=calls)


def text_of(message: dict[str, Any]) -> str:
    """What an assistant message says beside its calls; parts of a text are put together."""
    content = message.get("content") or message.get("refusal") or ""
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return str(content)


def _read_call(raw: Any) -> ToolCall:
    function = raw.get("function", raw) if isinstance(raw, dict) else None
    if not isinstance(function, dict):
        raise TypeError(f"a tool call has a function with name and arguments, not {raw!r:.80}")
    arguments = function.get("arguments") or {}
    if isinstance(arguments, str):
        try:
            decoded = msgspec.json.decode(storable(arguments))
        except (msgspec.DecodeError, RecursionError):
            decoded = arguments
        arguments = decoded if isinstance(decoded, dict) else arguments
    name, call_id = str(function.get("name") or ""), str(raw.get("id") or "")
    return _writable(ToolCall(name, arguments, call_id))


def _writable(call: ToolCall) -> ToolCall:
    """The call as a file can hold it; arguments that are no object become the text of them."""
    arguments: Any = call.arguments
    text = storable(arguments) if isinstance(arguments, str) else _json(arguments)
    held = arguments if isinstance(arguments, dict) else text
    return ToolCall(storable(call.name), held, storable(call.id))


def _json(arguments: Any) -> str:
    try:
        return msgspec.json.encode(arguments).decode()
    except (TypeError, ValueError, RecursionError) as fault:
        raise TypeError(f"the arguments of a tool call are no JSON ({fault})") from None


CODE = re.compile(r"\b[B-DF-HJ-NP-TV-XZ2-9]{4}-[B-DF-HJ-NP-TV-XZ2-9]{4}\b")
"""The form of the codes that answers are."""

"""What an agent is given and what it returns: turns, replies, tool calls, the protocol tools."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import jsonschema_rs
import msgspec

from toolshift.core.calls import (
    Call,
    MalformedCall,
    ToolCall,
    malformed_call,
    read_call,
    read_extra,
)
from toolshift.core.text import storable
from toolshift.core.values import as_json

REASONS = ("service_failure", "tool_unavailable", "contradictory_request", "not_found")
"""The reasons for which a refusal can be right; `refuse` takes one of them."""
UNSTATED = "unstated"
"""The reason of a refusal in prose that names none of them."""


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


def protocol_error(call: ToolCall) -> str:
    """What is wrong with the arguments of a protocol call; "" where nothing is."""
    fault = next(_PROTOCOL_CHECKS[call.name].iter_errors(call.arguments), None)
    return f"{call.name}: {fault.message}" if fault else ""


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tokens of one reply, and its price where known.

    Attributes:
        input_tokens: of the prompt, those included that the provider had in its cache.
        output_tokens: of the reply, its reasoning included.
        cost: in dollars.
        cached_tokens: of the prompt, those that were in the provider's cache.
        reasoning_tokens: of the reply, those of its reasoning.
        requests: that were sent and answered, counted where answers are stored.
        recalled: requests whose answer was stored (`--cache`); it takes no tokens and no money.
        saved_input_tokens: of prompts that were not sent for that reason.
        saved_output_tokens: of replies that were not asked for again.
        saved_cost: in dollars.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    requests: int = 0
    recalled: int = 0
    saved_input_tokens: int = 0
    saved_output_tokens: int = 0
    saved_cost: float = 0.0

    @property
    def as_saved(self) -> Usage:
        """What a stored answer takes, which took this when it came."""
        saved = self.input_tokens, self.output_tokens, self.cost
        return Usage(
            recalled=1,
            saved_input_tokens=saved[0],
            saved_output_tokens=saved[1],
            saved_cost=saved[2],
        )

    def __add__(self, other: Usage) -> Usage:
        """Two replies together."""
        mine, more = msgspec.structs.astuple(self), msgspec.structs.astuple(other)
        return _usage(*(one + two for one, two in zip(mine, more, strict=True)))

    def __reduce__(self) -> tuple[Callable[..., Usage], tuple[Any, ...]]:
        return _usage, msgspec.structs.astuple(self)


def _usage(*numbers: Any) -> Usage:
    """Usage that is written in the same bytes however it was made.

    What is the default is left out, and msgspec knows it by its identity: a zero that was added up
    or that came from another process is another object.
    """
    zeros = Usage.__struct_defaults__
    return Usage(*(number or zero for number, zero in zip(numbers, zeros, strict=True)))


class Turn(msgspec.Struct, frozen=True):
    """What an agent is given: the messages so far and the tools on offer now (OpenAI format).

    Attributes:
        messages: dicts with `role` (system, user, assistant, tool) and `content`; those of the
            assistant have `tool_calls`, and those of a tool the `tool_call_id` that they answer.
            What came beside a message of the assistant or a call of it stands there as it came.
        tools: dicts {"type": "function", "function": {"name", "description", "parameters"}};
            `parameters` is a JSON Schema. `final_answer`, `refuse` and `ask_user` are among them.
    """

    messages: Sequence[dict[str, Any]]
    tools: Sequence[dict[str, Any]]


class Reply(msgspec.Struct, frozen=True):
    """What an agent returns: tool calls, or prose.

    Attributes:
        text: prose; beside calls it is kept and not read.
        calls: carried out in order.
        usage: tokens and dollars of this reply.
        failure: says that the agent's infrastructure (not the agent) failed: the episode ends as an
            infrastructure error, counted and never scored.
        extra: the fields that came beside `content` and `tool_calls`, such as `reasoning_content`;
            nothing here reads them, and the next turn's history has them as they came.
        overflow: of a failure: the conversation is longer than the model's context. What an agent
            is shown decides that, so the episode is scored, as one that has spent its budget.
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    usage: Usage = Usage()
    failure: str = ""
    extra: dict[str, Any] = {}
    overflow: bool = False

    @classmethod
    def of(cls, message: Reply | str | dict[str, Any]) -> Reply:
        """Reads a string or an OpenAI assistant message (`content`, `tool_calls`).

        Args:
            message: what an agent has returned.

        Returns:
            The reply, each of its calls read again (`core.calls.read_call`).

        Raises:
            TypeError: for anything else, naming what came.
        """
        if isinstance(message, Reply):
            calls = tuple(map(_read_again, message.calls))
            extra = read_extra(message.extra) if message.extra else message.extra
            return msgspec.structs.replace(
                message, text=storable(message.text), calls=calls, extra=extra
            )
        if isinstance(message, str):
            return cls(text=storable(message))
        if not isinstance(message, dict):
            raise TypeError(
                f"an agent returns a string or an assistant message, not {type(message).__name__}"
            )
        if not message.keys() & {"content", "tool_calls", "role"}:
            keys = ", ".join(map(str, message))
            raise TypeError(f"an assistant message has content or tool_calls, not {keys}")
        _refuse_other_forms(message)
        listed = message.get("tool_calls") or ()
        if not isinstance(listed, list | tuple):
            raise TypeError(f"tool_calls is a list of tool calls, not {type(listed).__name__}")
        calls = tuple(map(_read_call, listed))
        return cls(text=storable(text_of(message)), calls=calls, extra=_beside(message))


def text_of(message: dict[str, Any]) -> str:
    """The text of an assistant message beside its calls; the parts of a text are joined."""
    content = message.get("content") or message.get("refusal") or ""
    if isinstance(content, list):
        return "".join(text for text in map(_said_in, content) if isinstance(text, str))
    return content if isinstance(content, str) else f"({type(content).__name__})"


_TEXTS = (None, "text", "output_text", "input_text", "refusal")
"""The types of parts that are said; a thought has a `text` of its own, and is not."""


def _said_in(part: object) -> object:
    if not isinstance(part, dict):
        return part
    kind = part.get("type")
    spoken = (kind is None or kind in _TEXTS) and part.get("thought") is not True
    return part.get("text", part.get("refusal")) if spoken else None


def _refuse_other_forms(message: dict[str, Any]) -> None:
    """Rejects content and calls in the form of another API, which would be lost."""
    content = message.get("content") or ()
    if not isinstance(content, str | list | tuple):
        raise TypeError(
            f"an assistant message has a text or a list of parts as content, "
            f"not {type(content).__name__}"
        )
    elsewhere = [key for key in ("function_call", "parts") if message.get(key)]
    kinds = (part.get("type") for part in content if isinstance(part, dict))
    elsewhere += [kind for kind in kinds if kind in ("tool_use", "tool_call", "function_call")]
    if elsewhere and not message.get("tool_calls"):
        raise TypeError(f"an assistant message has its calls in tool_calls, not in {elsewhere[0]}")


def _read_call(raw: object) -> Call:
    """Reads one entry of `tool_calls`."""
    function = raw.get("function", raw) if isinstance(raw, dict) else None
    if not isinstance(raw, dict) or not isinstance(function, dict):
        shown = repr(raw) if isinstance(raw, str) else type(raw).__name__
        raise TypeError(f"a tool call has a function with name and arguments, not {shown:.80}")
    other = next((key for key in ("args", "input", "parameters") if key in function), "")
    if other and "arguments" not in function:
        raise TypeError(f"a tool call has its values under arguments, not under {other}")
    call = read_call(function.get("name"), function.get("arguments"), raw.get("id"))
    extra = _beside_call(raw, function, call)
    return msgspec.structs.replace(call, extra=extra) if extra else call


def _beside(message: dict[str, Any]) -> dict[str, Any]:
    """The fields of an assistant message that are not its role, its text or its calls.

    A content that is no text is kept whole: between its parts may stand what has to go back.
    """
    extra = {k: v for k, v in message.items() if k not in ("role", "content", "tool_calls")}
    if "content" in message and message["content"] != text_of(message):
        extra["content"] = message["content"]
    return read_extra(extra) if extra else extra


def _beside_call(raw: dict[str, Any], function: dict[str, Any], call: Call) -> dict[str, Any]:
    """The fields of a call that are not its name, arguments and id; and how those were written."""
    extra = {key: value for key, value in raw.items() if key not in ("id", "type", "function")}
    if function is raw:
        return {}
    inner = {key: value for key, value in function.items() if key not in ("name", "arguments")}
    text = function.get("arguments")
    if isinstance(call, ToolCall) and isinstance(text, str) and text.strip():
        inner |= {"arguments": text} if text != as_json(call.arguments) else {}
    extra |= {"function": inner} if inner else {}
    return read_extra(extra) if extra else extra


def as_tool_call(
    name: str, arguments: dict[str, Any] | str, call_id: str, extra: dict[str, Any]
) -> dict[str, Any]:
    """A call as it stands in `tool_calls`, with what came beside it."""
    text = arguments if isinstance(arguments, str) else as_json(arguments)
    function = {"name": name, "arguments": text, **extra.get("function", {})}
    return {"id": call_id, "type": "function", **extra, "function": function}


def _read_again(call: Call) -> Call:
    """Reads a call of a `Reply` that an agent built itself."""
    given: object = call.text if isinstance(call, MalformedCall) else call.arguments
    if isinstance(given, str):
        read: Call = malformed_call(call.name, given, call.id)
    else:
        read = read_call(call.name, given, call.id)
    return msgspec.structs.replace(read, extra=read_extra(call.extra)) if call.extra else read


CODE = re.compile(r"\b[B-DF-HJ-NP-TV-XZ2-9]{4}-[B-DF-HJ-NP-TV-XZ2-9]{4}\b")
"""The pattern of codes, which answers consist of."""

"""OpenAI's chat completions: the form of ToolShift itself, so that little is to be done."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jsonschema_rs
import msgspec

from toolshift.core.message import Usage
from toolshift.dialects.chat_scope import functions_of, unshifted
from toolshift.dialects.form import (
    Answer,
    Body,
    Dialect,
    Message,
    Reason,
    Request,
    ToldError,
    Variables,
    number,
)
from toolshift.dialects.sse import DONE, frame, read_data

_DONE = f"data: {DONE}\n\n".encode()
_REASONS: dict[Any, Reason] = {"length": "length", "content_filter": "content_filter"}


# -- the parts that are read; what stands beside them may have any form ------------------------


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: Any = None


class _Call(msgspec.Struct):
    id: str | None = None
    function: _Function | None = None


class _Said(msgspec.Struct):
    role: str | None = None
    tool_calls: list[_Call] | None = None


class _FunctionPiece(msgspec.Struct):
    name: str | None = None
    arguments: str | None = None


class _Piece(msgspec.Struct):
    id: str | None = None
    index: int | None = None
    function: _FunctionPiece | None = None


class _Delta(msgspec.Struct):
    role: str | None = None
    tool_calls: list[_Piece] | None = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    message: _Said | None = None
    finish_reason: str | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice] | None = None


class _ShownFunction(msgspec.Struct):
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None


class _Tool(msgspec.Struct):
    type: str | None = None
    function: _ShownFunction | None = None


class _Request(msgspec.Struct):
    messages: list[_Said] | None = None
    tools: list[_Tool] | None = None
    functions: Any = None
    n: int | None = None


class Chat:
    """The codec of chat completions."""

    name = "chat"
    answers = "chat completion"
    path = "/chat/completions"
    home = "https://api.openai.com/v1"
    variables: Variables = (("OPENAI_BASE_URL",), ("OPENAI_API_KEY",))

    def takes(self, method: str, path: str) -> bool:
        """Whether a request to a path is of it."""
        return (method, path) == ("POST", "/v1" + self.path)

    def unshifted(self, body: Body, path: str) -> str:
        """The first thing in a request that is not shifted, in words."""
        return unshifted(body)

    def read(self, body: Body, path: str = "") -> Request:
        """Reads a request."""
        msgspec.convert(body, _Request)
        stream = bool(body.get("stream"))
        messages = list(body.get("messages") or ())
        return Request(messages, functions_of(body), body.get("tool_choice"), stream)

    def write(self, body: Body, request: Request) -> Body:
        """A request as `body`, with other messages, tools and choice."""
        out = {**body, "messages": request.messages}
        out |= {"tools": [_lenient(tool) for tool in request.tools]} if request.tools else {}
        return out if request.choice is None else {**out, "tool_choice": request.choice}

    def error(self, status: int, why: str) -> Body:
        """An error in the form in which clients of OpenAI read one."""
        return {"error": {"message": why, "type": "toolshift", "code": status}}

    def error_frame(self, error: object) -> bytes:
        """An error in a stream that has begun."""
        return frame({"error": error})

    def recognises(self, body: Body) -> bool:
        """Whether a JSON object is a completion; a message alone is `Reply.of`'s to read."""
        return isinstance(body.get("choices"), list)

    def read_answer(self, body: Body) -> Answer | None:
        """Reads a chat completion; None where it is an error that came with HTTP 200."""
        if body.get("error") and "choices" not in body:
            return None
        msgspec.convert(body, _Completion)
        choices = body.get("choices") or [{}]
        message = choices[0].get("message")
        if not isinstance(message, dict):
            raise ValueError("the first of its `choices` has no `message`")
        reason = _REASONS.get(choices[0].get("finish_reason"), "")
        return Answer(message, body.get("usage"), reason)

    def write_answer(
        self, body: Body, message: Message, usage: Any, cut: bool, asked: Body
    ) -> Body:
        """A completion as `body`, with another message and record of tokens."""
        choice = {**body["choices"][0], "message": message}
        if cut:
            choice["finish_reason"] = "length"
        out = {**body, "choices": [choice]}
        return {**out, "usage": usage} if usage else out

    def stream(self, asked: Body) -> ChatStream:
        """What takes the chunks of a completion in."""
        return ChatStream()

    def address(self, base_url: str, model: str) -> str:
        """Where an agent sends its requests."""
        return base_url.rstrip("/").removesuffix(self.path) + self.path

    def settings(self, model: str, temperature: float | None, max_tokens: int) -> Body:
        """A request for these settings."""
        heat = {} if temperature is None else {"temperature": temperature}
        return {"model": model, **heat, "max_tokens": max_tokens}

    def instead_of(self, field: str) -> Sequence[str]:
        """Models that reason count their thoughts under a name of its own."""
        limits = ("max_tokens", "max_completion_tokens")
        return [name for name in limits if name != field] if field in limits else []

    def headers(self, key: str) -> Mapping[str, str]:
        """A key is a bearer's token."""
        return {"authorization": f"Bearer {key}"} if key else {}

    def tokens(self, usage: Any) -> Usage:
        """A record of tokens, read; some routers name the price themselves."""
        cost = usage.get("cost") if isinstance(usage, Mapping) else None
        priced = isinstance(cost, int | float) and 0 <= cost < 1e15
        return Usage(
            number(usage, "prompt_tokens"),
            number(usage, "completion_tokens"),
            float(cost) if priced and cost is not None else 0.0,
            number(usage, "prompt_tokens_details", "cached_tokens")
            or number(usage, "prompt_cache_hit_tokens"),  # as DeepSeek has it
            number(usage, "completion_tokens_details", "reasoning_tokens"),
        )


CHAT: Dialect = Chat()


def _lenient(tool: dict[str, Any]) -> dict[str, Any]:
    """Strict schemas require every parameter; one with new optional ones is strict no more."""
    function = tool.get("function") or {}
    schema = function.get("parameters") or {}
    named, required = schema.get("properties") or {}, schema.get("required") or []
    whole = isinstance(named, dict) and isinstance(required, list)
    if not function.get("strict") or (whole and all(name in required for name in named)):
        return tool
    return {**tool, "function": {**function, "strict": False}}


def odd_tool(tools: Iterable[dict[str, Any]]) -> str:
    """The first tool whose parameters are no JSON Schema; "" where all are."""
    functions = (tool.get("function") or {} for tool in tools)
    odd = (f for f in functions if not jsonschema_rs.meta.is_valid(f.get("parameters") or {}))
    return str(next(odd, {}).get("name", ""))


# -- streams -----------------------------------------------------------------------------------


class ChatStream:
    """A streamed completion while it arrives.

    Args:
        head: what chunks of the same stream to the agent have said of it; None where none has.
    """

    def __init__(self, head: Body | None = None) -> None:
        self.whole = False
        self._head: Body = head or {}
        self._usage: Any = None
        self._finish_reason: str | None = None
        self._named = bool(head)
        self._said: dict[str, Any] = {"role": "assistant"}
        self._calls: dict[int, dict[str, Any]] = {}

    def add(self, event: str, data: str) -> list[bytes]:
        """Takes a chunk in; gives those that may go on now.

        The first one says whose message it is, once, however many answers there are.
        """
        if data.strip() == DONE:
            self.whole = True
            return []
        chunk = read_data(data)
        msgspec.convert(chunk, _Completion)
        if chunk.get("error") and not chunk.get("choices"):
            raise ToldError(chunk["error"])
        return [frame(going) for going in self._add(chunk)]

    def _add(self, chunk: Body) -> list[Body]:
        going: list[Body] = []
        if not self._named:  # a chunk without choices, as Azure sends first, has empty names
            self._head = {k: v for k, v in chunk.items() if k not in ("choices", "usage")}
            self._named = bool(chunk.get("choices"))
            going += [_opening(self._head)] if self._named else []
        self._usage = chunk.get("usage") or self._usage
        passing = []
        for choice in chunk.get("choices") or ():
            delta = dict(choice.get("delta") or {})
            self._add_text("role", delta.pop("role", None))
            self._finish_reason = choice.get("finish_reason") or self._finish_reason
            for piece in delta.pop("tool_calls", None) or ():
                self._add_call(piece)
            for key, value in delta.items():
                self._add_text(key, value)
            if any(delta.values()):
                passing.append({**choice, "delta": delta, "finish_reason": None})
        self.whole = self.whole or bool(self._finish_reason)
        if passing:
            going.append({**chunk, "choices": passing, "usage": None, **self._head})
        return going

    def _add_text(self, key: str, value: Any) -> None:
        before = self._said.get(key)
        together = key != "role" and isinstance(before, str) and isinstance(value, str)
        if together:
            self._said[key] = before + value
        elif value is not None:
            self._said[key] = value

    def _add_call(self, piece: dict[str, Any]) -> None:
        place = piece.get("index")
        index = place if isinstance(place, int) else len(self._calls)
        call = self._calls.setdefault(
            index, {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
        )
        call["id"] = piece.get("id") or call["id"]
        function = piece.get("function") or {}
        call["function"]["name"] += function.get("name") or ""
        call["function"]["arguments"] += function.get("arguments") or ""

    @property
    def answer(self) -> Answer:
        """The message so far."""
        said = {"content": None, **self._said}
        calls = [self._calls[index] for index in sorted(self._calls)]
        message = {**said, "tool_calls": calls} if calls else said
        return Answer(message, self._usage, _REASONS.get(self._finish_reason, ""))

    def again(self) -> ChatStream:
        """The stream of a further completion, which the agent reads as part of this one."""
        return ChatStream(self._head)

    def closing(self, message: Message, usage: Any, cut: bool) -> Iterable[bytes]:
        """The last chunks: the calls of a message, why it ended, and what it cost."""
        base = {**self._head, "object": "chat.completion.chunk"}
        reason = "length" if cut else self._finish_reason
        listed = message.get("tool_calls") or ()
        calls = [{"index": index, "type": "function", **call} for index, call in enumerate(listed)]
        if calls:
            yield frame(_one(base, {"tool_calls": calls}, None))
        yield frame(_one(base, {}, reason or ("tool_calls" if calls else "stop")))
        if usage:
            yield frame({**base, "choices": [], "usage": usage})
        yield _DONE


def _opening(head: Body) -> Body:
    return _one({**head, "object": "chat.completion.chunk"}, {"role": "assistant"}, None)


def _one(base: Body, delta: dict[str, Any], reason: str | None) -> Body:
    return {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

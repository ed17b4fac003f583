"""Chat completions in pieces: a stream read, its message put together, and a message streamed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import jsonschema_rs
import msgspec

Chunk = dict[str, Any]
Message = dict[str, Any]
DONE = b"data: [DONE]\n\n"


async def events(lines: AsyncIterator[str]) -> AsyncIterator[Chunk]:
    """The chunks of a server-sent stream, up to its end or `[DONE]`."""
    data: list[str] = []
    whole = False
    async for line in lines:
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line.strip() and data:
            text, data = "\n".join(data), []
            if text.strip() == "[DONE]":
                return
            chunk = _chunk(text)
            whole = whole or _ends(chunk)
            yield chunk
    rest = "\n".join(data)
    if rest.strip() == "[DONE]":
        return
    if rest:
        chunk = _chunk(rest)
        whole = whole or _ends(chunk)
        yield chunk
    if not whole:
        raise ValueError("the stream ended before the message did")


class ToldError(Exception):
    """A server has told an error in a stream that had begun; some say `[DONE]` behind it.

    Args:
        error: as it was told.
    """

    def __init__(self, error: object) -> None:
        super().__init__(error)
        self.error = error


def _ends(chunk: Chunk) -> bool:
    return any(choice.get("finish_reason") for choice in chunk.get("choices") or ())


def _chunk(text: str) -> Chunk:
    try:
        found = msgspec.json.decode(text)
    except RecursionError:
        raise ValueError("a chunk of the stream is nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError("a chunk of the stream is no JSON object")
    check_completion(found)
    return found


def event(chunk: Chunk) -> bytes:
    """A chunk as it stands in a stream."""
    return b"data: " + msgspec.json.encode(chunk) + b"\n\n"


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None


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


def check_request(body: dict[str, Any]) -> None:
    """Checks what is read of a request; what is passed on as it is may have any form."""
    msgspec.convert(body, _Request)


def odd_tool(body: dict[str, Any]) -> str:
    """The first tool of a request whose parameters are no JSON Schema; "" where all are."""
    functions = (tool.get("function") or {} for tool in body.get("tools") or ())
    odd = (f for f in functions if not jsonschema_rs.meta.is_valid(f.get("parameters") or {}))
    return str(next(odd, {}).get("name", ""))


def check_completion(answer: dict[str, Any]) -> None:
    """Checks what is read of a completion or of a chunk of one."""
    msgspec.convert(answer, _Completion)


class Assembly:
    """A streamed message while it arrives.

    What is not a tool call may go on at once; calls wait until they are whole, since their names
    and arguments are to change.

    Args:
        head: what chunks of the same stream to the agent have said of it; None where none has.
    """

    def __init__(self, head: Chunk | None = None) -> None:
        self.head: Chunk = head or {}
        self.usage: Any = None
        self.finish_reason: str | None = None
        self._named = bool(head)
        self._said: dict[str, Any] = {"role": "assistant"}
        self._calls: dict[int, dict[str, Any]] = {}

    def add(self, chunk: Chunk) -> list[Chunk]:
        """Takes a chunk in; returns the chunks that may go on now.

        The first one says whose message it is, once, however many rounds there are.
        """
        if chunk.get("error") and not chunk.get("choices"):
            raise ToldError(chunk["error"])
        going: list[Chunk] = []
        if not self._named:  # a chunk without choices, as Azure sends first, has empty names
            self.head = {k: v for k, v in chunk.items() if k not in ("choices", "usage")}
            self._named = bool(chunk.get("choices"))
            going += [_opening(self.head)] if self._named else []
        self.usage = chunk.get("usage") or self.usage
        choices = chunk.get("choices") or ()
        passing = []
        for choice in choices:
            delta = dict(choice.get("delta") or {})
            self._add_text("role", delta.pop("role", None))
            self.finish_reason = choice.get("finish_reason") or self.finish_reason
            for piece in delta.pop("tool_calls", None) or ():
                self._add_call(piece)
            for key, value in delta.items():
                self._add_text(key, value)
            if any(delta.values()):
                passing.append({**choice, "delta": delta, "finish_reason": None})
        if passing:
            going.append({**chunk, "choices": passing, "usage": None, **self.head})
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
    def message(self) -> Message:
        """The message so far."""
        said = {"content": None, **self._said}
        calls = [self._calls[index] for index in sorted(self._calls)]
        return {**said, "tool_calls": calls} if calls else said


def _opening(head: Chunk) -> Chunk:
    return _one({**head, "object": "chat.completion.chunk"}, {"role": "assistant"}, None)


def closing(head: Chunk, message: Message, reason: str | None, usage: object) -> Iterator[Chunk]:
    """The last chunks of a stream: the calls of a message, why it ended, and what it cost."""
    base = {**head, "object": "chat.completion.chunk"}
    calls = [
        {"index": index, **{key: call[key] for key in ("id", "type", "function")}}
        for index, call in enumerate(message.get("tool_calls") or ())
    ]
    if calls:
        yield _one(base, {"tool_calls": calls}, None)
    yield _one(base, {}, reason or ("tool_calls" if calls else "stop"))
    if usage:
        yield {**base, "choices": [], "usage": usage}


def _one(base: Chunk, delta: dict[str, Any], reason: str | None) -> Chunk:
    return {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


def added(first: object, second: object) -> Any:
    """Two usage records as one: numbers add up, through every level."""
    if isinstance(first, dict) and isinstance(second, dict):
        keys = dict.fromkeys([*first, *second])
        return {key: added(first.get(key), second.get(key)) for key in keys}
    if isinstance(first, int | float) and isinstance(second, int | float):
        return first + second
    return second if second is not None else first

"""OpenAI's chat completions: the form of ToolShift itself, so that little is to be done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import jsonschema_rs
import msgspec

from toolshift.core.calls import is_json
from toolshift.core.message import Usage
from toolshift.core.tool import JSON
from toolshift.core.values import as_list, as_text
from toolshift.dialects.chat_scope import functions_of, unshifted
from toolshift.dialects.form import (
    WIRE,
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
_REASONS: dict[str, Reason] = {
    **dict.fromkeys(("", "stop", "tool_calls", "function_call"), ""),
    **dict.fromkeys(
        ("length", "max_tokens", "max_output_tokens", "model_length",
         "model_context_window_exceeded"),
        "length",
    ),
    **dict.fromkeys(
        ("content_filter", "content_filtered", "safety", "recitation", "sensitive",
         "prohibited_content", "blocklist", "spii", "guardrail_intervened"),
        "content_filter",
    ),
    # of OpenRouter; of vLLM and SGLang; of Z.ai; of DeepSeek
    **dict.fromkeys(("error", "abort", "network_error", "insufficient_system_resource"), "broken"),
}  # fmt: skip
"""What providers document as `finish_reason`; with any other a reply is whole, and that is said."""


# -- the parts that are read; what stands beside them may have any form ------------------------


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: Any = None


class _Call(msgspec.Struct):
    id: str | int | None = None
    function: _Function | None = None


class _Said(msgspec.Struct):
    role: str | None = None
    tool_calls: list[_Call] | None = None


class _Piece(msgspec.Struct):
    id: str | int | None = None
    index: int | str | None = None
    function: _Function | None = None


class _Delta(msgspec.Struct):
    role: str | None = None
    tool_calls: list[_Piece | None] | None = None


class _Choice(msgspec.Struct):
    delta: _Delta | None = None
    message: _Said | None = None
    finish_reason: str | int | None = None


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
    temperature: float | None = 0.0
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
        out = {**body, "messages": [_own(message) for message in request.messages]}
        out |= {"tools": [_lenient(tool) for tool in request.tools]} if request.tools else {}
        return out if request.choice is None else {**out, "tool_choice": request.choice}

    def error(self, status: int, why: str) -> Body:
        """An error in the form in which clients of OpenAI read one."""
        error = {"message": why, "type": "toolshift", "code": status}
        return {"type": "error", "error": error}  # clients of Anthropic read it too

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
        message = _with_calls(message)
        if message.get("tool_calls"):
            message = {**message, "tool_calls": told_apart(message["tool_calls"], body.get("id"))}
        told = choices[0].get("finish_reason")
        reason, ended = ending(told, choices[0].get("error"))
        if told == "tool_calls" and not (message.get("tool_calls") or message.get("content")):
            reason, ended = "broken", "finish_reason 'tool_calls', and it holds none"
        return Answer(message, body.get("usage"), reason, ended=ended)

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


def ending(finish_reason: object, error: Any = None) -> tuple[Reason, str]:
    """Why a reply ended, and that in the words of the server where it is broken or not known."""
    if error:
        return "broken", as_text(error)
    told = "" if finish_reason is None else str(finish_reason)
    word = told.lower().rpartition(": ")[2]
    reason = _REASONS.get(word, "")
    is_plain = word in _REASONS and reason != "broken"
    return reason, "" if is_plain else f"finish_reason {told!r}"


def _with_calls(message: Message) -> Message:
    """A message, or a piece of one, whose call stands in the field that was there before 2024."""
    call = message.get("function_call")
    if not isinstance(call, dict) or message.get("tool_calls"):
        return message
    rest = {key: value for key, value in message.items() if key != "function_call"}
    return {**rest, "tool_calls": [{"type": "function", "function": call}]}


def _own(message: Message) -> Message:
    """A message without what the codec of another dialect has left there."""
    return {k: v for k, v in message.items() if k != WIRE} if WIRE in message else message


def _lenient(tool: dict[str, Any]) -> dict[str, Any]:
    """Strict schemas require every parameter; one with new optional ones is strict no more."""
    function = tool.get("function") or {}
    if not function.get("strict"):
        return tool
    schema = function.get("parameters") or {}
    named, required = schema.get("properties") or {}, schema.get("required") or []
    whole = isinstance(named, dict) and isinstance(required, list)
    if whole and all(name in required for name in named):
        return tool
    return {**tool, "function": {**function, "strict": False}}


def odd_tool(tools: Iterable[dict[str, Any]]) -> str:
    """The first tool whose parameters are no JSON Schema; "" where all are."""
    functions = (tool.get("function") or {} for tool in tools)
    odd = (f for f in functions if not jsonschema_rs.meta.is_valid(f.get("parameters") or {}))
    return str(next(odd, {}).get("name", ""))


# -- streams -----------------------------------------------------------------------------------


def _with_text_id(call: dict[str, Any]) -> dict[str, Any]:
    """Some servers count their calls: an id is a text in all that refers to it."""
    own = call.get("id")
    return {**call, "id": str(own)} if isinstance(own, int) else call


def told_apart(calls: Iterable[dict[str, Any]], seed: object) -> list[dict[str, Any]]:
    """The calls of a message with an id each: some servers give none, or one to several.

    `seed` is what differs from message to message, such as its own id.
    """
    listed = [_with_text_id(call) for call in calls]
    often = Counter(call.get("id") for call in listed)
    out = []
    for place, call in enumerate(listed):
        own = call.get("id")
        if not own or often[own] > 1:
            said = JSON.encode([seed, place, own, call.get("function")])
            own = f"call_{blake2b(said, digest_size=8).hexdigest()}"
        out.append(call if own == call.get("id") else {**call, "id": own})
    return out


@dataclass
class _Growing:
    """A call while it arrives.

    Attributes:
        doubtful: whether it began with the name of the call before it, which may only have been
            said again.
    """

    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""
    beside: dict[str, Any] = field(default_factory=dict)
    doubtful: bool = False

    @property
    def whole(self) -> bool:
        """Whether nothing can be added to its arguments."""
        return self.arguments.rstrip().endswith("}") and is_json(self.arguments)

    @property
    def real(self) -> bool:
        """Whether it is a call: some servers send empty pieces, and names once more."""
        return bool(self.arguments or (self.name and not self.doubtful))

    def is_followed(self, own: str, name: str, arguments: str) -> bool:
        """Whether a piece with the same index begins another call.

        An index tells calls apart; but some servers have one index for all calls, or none. Then a
        new id does, or a name that comes after whole arguments.
        """
        if own and self.id and own != self.id:  # some make up an id for each piece
            same = name in ("", self.name) and bool(self.arguments) and not self.whole
            goes_on = same and not arguments.lstrip().startswith("{")
            return not goes_on and (bool(name) or self.whole)
        if own and own == self.id:  # some say all of it again, and some have one id for all
            again = name == self.name and arguments == self.arguments
            return bool(name and arguments) and self.whole and not again
        if not name:
            return False
        unfinished = bool(self.arguments or self.id or not self.name)
        return self.whole or (not unfinished and name != self.name)

    def add(self, own: str, name: str, arguments: str, beside: dict[str, Any]) -> None:
        """Takes a piece in; a name is there once, though some servers repeat it."""
        self.id = self.id or own
        if name != self.name:
            self.name += name
        if not (own and own == self.id and self.whole and arguments == self.arguments):
            self.arguments += arguments
        self.beside = _grown(self.beside, beside)

    def as_call(self) -> dict[str, Any]:
        """The call as it stands in a message."""
        function = {"name": self.name, "arguments": self.arguments}
        return {"id": self.id, "type": "function", **self.beside, "function": function}


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
        self._id: Any = None
        self._calls: list[_Growing] = []
        self._latest: dict[int, _Growing] = {}

    def add(self, event: str, data: str) -> list[bytes]:
        """Takes a chunk in; gives those that may go on now.

        The first one says whose message it is, once, however many answers there are.
        """
        if data.strip() == DONE:
            self.whole = True
            return []
        chunk = read_data(data)
        if told := _error_in(event, chunk):
            raise ToldError(told)
        msgspec.convert(chunk, _Completion)
        return [frame(going) for going in self._add(chunk)]

    def _add(self, chunk: Body) -> list[Body]:
        going: list[Body] = []
        if not self._named:  # a chunk without choices, as Azure sends first, has empty names
            self._head = {k: v for k, v in chunk.items() if k not in ("choices", "usage")}
            self._named = bool(chunk.get("choices"))
            going += [_opening(self._head)] if self._named else []
        self._id = self._id or chunk.get("id")
        self._usage = chunk.get("usage") or self._usage
        passing = []
        for choice in chunk.get("choices") or ():
            delta = dict(_with_calls(choice.get("delta") or self._at_once(choice)))
            self._add_text("role", delta.pop("role", None))
            self._finish_reason = choice.get("finish_reason") or self._finish_reason
            for piece in delta.pop("tool_calls", None) or ():
                self._add_call(piece or {})
            for key, value in delta.items():
                self._add_text(key, value)
            if any(delta.values()):
                rest = {key: value for key, value in choice.items() if key != "message"}
                passing.append({**rest, "delta": delta, "finish_reason": None})
        self.whole = self.whole or bool(self._finish_reason)
        if passing:
            going.append({**chunk, "choices": passing, "usage": None, **self._head})
        return going

    def _at_once(self, choice: dict[str, Any]) -> dict[str, Any]:
        """A whole message in the place of its pieces; others say there again what has come."""
        fresh = "delta" not in choice and not self._calls and self._said.keys() == {"role"}
        return choice.get("message") or {} if fresh else {}

    def _add_text(self, key: str, value: Any) -> None:
        if value is not None:
            before = None if key == "role" else self._said.get(key)
            self._said[key] = _grown(before, value)

    def _add_call(self, piece: dict[str, Any]) -> None:
        function = piece.get("function") or {}
        own, name = _with_text_id(piece).get("id") or "", function.get("name") or ""
        given = function.get("arguments")
        arguments = as_text(given)
        arguments = "" if given is None else arguments
        beside = {k: v for k, v in piece.items() if k not in ("index", "id", "type", "function")}
        if not (own or name or arguments or beside):
            return
        index = _index_of(piece)
        call = self._find(index, own, name)
        if call is None or call.is_followed(own, name, arguments):
            again = call is not None and name == call.name and not (own and own != call.id)
            place = len(self._calls) if index is None else index
            call = _Growing(place, doubtful=again)
            self._calls.append(call)
        self._latest[call.index] = call
        call.add(own, name, arguments, beside)

    def _find(self, index: int | None, own: str, name: str) -> _Growing | None:
        """The call that a piece may go on with; None where it begins one for sure."""
        if index is not None and (index in self._latest or name):
            return self._latest.get(index)
        known = (call for call in reversed(self._calls) if own and call.id == own)
        last = self._calls[-1] if self._calls else None
        counts_pieces = index is not None and (own or (last is not None and last.whole))
        return next(known, None if counts_pieces else last)

    @property
    def answer(self) -> Answer:
        """The message so far."""
        said = {"content": None, **self._said}
        found = sorted((c for c in self._calls if c.real), key=lambda call: call.index)
        calls = told_apart((call.as_call() for call in found), self._id)
        message = {**said, "tool_calls": calls} if calls else said
        reason, ended = ending(self._finish_reason)
        return Answer(message, self._usage, reason, ended=ended)

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


def _grown(before: Any, piece: Any) -> Any:
    """What has come of a field, with a further piece of it."""
    if isinstance(before, str) and isinstance(piece, str):
        return before + piece
    if isinstance(before, list) and isinstance(piece, list):
        return [*before, *piece]
    if isinstance(before, dict) and isinstance(piece, dict):
        return {**before, **{key: _grown(before.get(key), value) for key, value in piece.items()}}
    return before if piece is None else piece


def _index_of(piece: dict[str, Any]) -> int | None:
    """The place that a piece names; some servers write it as a text, and some leave it out."""
    index = piece.get("index")
    if isinstance(index, str):
        return int(index) if index.isdecimal() else None
    return index if isinstance(index, int) else None


def _error_in(event: str, chunk: Body) -> Any:
    """The error that a chunk tells of; None where it tells of none."""
    if chunk.get("error"):
        return chunk["error"]
    if event == "error" or chunk.get("object") == "error":
        return chunk
    choices = chunk.get("choices")
    for choice in as_list(choices):
        if isinstance(choice, dict) and (
            choice.get("error") or choice.get("finish_reason") == "error"
        ):
            return choice.get("error") or {"message": "the model's server ended the stream"}
    return None

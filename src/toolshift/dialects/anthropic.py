"""Anthropic's Messages: blocks of thoughts, texts, calls and results, with what seals them.

A message of the user that holds results of tools is several messages in the form of chat
completions: one for each result, and one for what stands between them. They say from which message
they came, so that they go back as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from toolshift.core.calls import is_json
from toolshift.core.message import Usage, text_of
from toolshift.core.values import as_json, as_list
from toolshift.dialects.anthropic_scope import unshifted
from toolshift.dialects.chat import told_apart
from toolshift.dialects.form import (
    AGAIN,
    LIKE,
    SIGNED,
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
    texts_now,
)
from toolshift.dialects.sse import frame, read_data

Block = dict[str, Any]
NAME = "anthropic"
VERSION = "2023-06-01"
_REASONS: dict[Any, Reason] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
_CHOICES = {"auto": "auto", "any": "required", "none": "none"}
_TYPES = {400: "invalid_request_error", 404: "not_found_error", 501: "invalid_request_error"}


class Anthropic:
    """The codec of Messages."""

    name = NAME
    answers = "message of Anthropic's"
    path = "/messages"
    home = "https://api.anthropic.com/v1"
    temperature: float | None = None  # today's models take none
    variables: Variables = (("ANTHROPIC_BASE_URL",), ("ANTHROPIC_API_KEY",))

    def takes(self, method: str, path: str) -> bool:
        """Whether a request to a path is of it; its tokens may be counted before it is sent."""
        return method == "POST" and path in ("/v1/messages", "/v1/messages/count_tokens")

    def unshifted(self, body: Body, path: str) -> str:
        """The first thing in a request that is not shifted, in words."""
        return unshifted(body)

    # -- requests ------------------------------------------------------------------------------

    def read(self, body: Body, path: str = "") -> Request:
        """Reads a request."""
        messages = body.get("messages")
        if not isinstance(messages, list):
            raise ValueError("`messages` is no list")
        system = _read_system(body.get("system"))
        said = [m for place, raw in enumerate(messages) for m in _read_message(raw, place)]
        tools = body.get("tools") or []
        if not isinstance(tools, list):
            raise ValueError("`tools` is no list")
        return Request(
            [*([] if system is None else [{"role": "system", "content": system}]), *said],
            [_read_tool(tool) for tool in tools if _is_function(tool)],
            _read_choice(body.get("tool_choice")),
            bool(body.get("stream")),
        )

    def write(self, body: Body, request: Request) -> Body:
        """A request as `body`, with other messages, tools and choice."""
        lead, said = _split(request.messages)
        system = "\n\n".join(text_of(message) for message in lead)
        out = dict(body)
        if lead and system != _read_system(body.get("system")):
            out["system"] = _write_system(system, body.get("system"))
        out["messages"] = list(_write_messages(said))
        if request.tools:
            out["tools"] = [_write_tool(tool) for tool in request.tools]
        if request.choice is not None and request.choice != _read_choice(body.get("tool_choice")):
            out["tool_choice"] = _write_choice(request.choice, body.get("tool_choice"))
        return out

    def error(self, status: int, why: str) -> Body:
        """An error in the form in which clients of Anthropic read one."""
        return {"type": "error", "error": {"type": _TYPES.get(status, "api_error"), "message": why}}

    def error_frame(self, error: object) -> bytes:
        """An error in a stream that has begun."""
        told = error if isinstance(error, Mapping) else {"message": str(error)}
        return frame({"type": "error", "error": {"type": "api_error", **told}}, "error")

    # -- answers -------------------------------------------------------------------------------

    def recognises(self, body: Body) -> bool:
        """Whether a JSON object is a message of the assistant in blocks."""
        content = body.get("content")
        blocks = isinstance(content, list) and all(isinstance(one, dict) for one in content)
        if body.get("type") == "message":
            return blocks
        kinds = {one.get("type") for one in content or ()} if blocks else set()
        return body.get("role") == "assistant" and bool(kinds & {"tool_use", "redacted_thinking"})

    def read_answer(self, body: Body) -> Answer | None:
        """Reads a message; None for an error, and for tokens that were counted."""
        if body.get("type") == "error" or ("input_tokens" in body and "content" not in body):
            return None
        content = body.get("content")
        if not isinstance(content, list):
            raise ValueError("its `content` is no list of blocks")
        content = _with_own_ids(content, body.get("id"))
        (message,) = _read_message({"role": "assistant", "content": content}, 0)
        return Answer(message, body.get("usage"), _REASONS.get(body.get("stop_reason"), ""))

    def write_answer(
        self, body: Body, message: Message, usage: Any, cut: bool, asked: Body
    ) -> Body:
        """A message as `body`, with other calls and another record of tokens."""
        out = {**body, "content": _write_assistant(message)["content"]}
        if cut:
            out["stop_reason"] = "max_tokens"
        return {**out, "usage": usage} if usage else out

    def stream(self, asked: Body) -> MessageStream:
        """What takes the events of a message in."""
        return MessageStream()

    # -- as an agent asks ----------------------------------------------------------------------

    def address(self, base_url: str, model: str) -> str:
        """Where an agent sends its requests; the client's own variable has no version."""
        base = base_url.rstrip("/").removesuffix(self.path)
        return (base if base.endswith("/v1") else f"{base}/v1") + self.path

    def settings(self, model: str, temperature: float | None, max_tokens: int) -> Body:
        """A request for these settings."""
        heat = {} if temperature is None else {"temperature": temperature}
        return {"model": model, "max_tokens": max_tokens, **heat}

    def instead_of(self, field: str) -> Sequence[str]:
        """None of its fields has another in its place."""
        return ()

    def headers(self, key: str) -> Mapping[str, str]:
        """The key has a header of its own, and the version of the API must be said."""
        return {"anthropic-version": VERSION, **({"x-api-key": key} if key else {})}

    def tokens(self, usage: Any) -> Usage:
        """A record of tokens, read; what was cached is counted apart there."""
        cached = number(usage, "cache_read_input_tokens")
        fresh = number(usage, "input_tokens") + number(usage, "cache_creation_input_tokens")
        thoughts = number(usage, "output_tokens_details", "thinking_tokens")
        return Usage(
            fresh + cached,
            number(usage, "output_tokens"),
            cached_tokens=cached,
            reasoning_tokens=thoughts,
        )


ANTHROPIC: Dialect = Anthropic()


# -- reading -----------------------------------------------------------------------------------


def _read_system(system: Any) -> str | None:
    if isinstance(system, list):
        return "\n\n".join(str(block.get("text", "")) for block in system)
    return system if isinstance(system, str) else None


def _read_message(raw: Any, place: int) -> Iterator[Message]:
    if not isinstance(raw, dict) or not isinstance(raw.get("content"), str | list):
        raise ValueError(f"message {place} has no content")
    if raw.get("role") == "assistant":
        yield _read_assistant(raw)
        return
    role, content = raw.get("role"), raw["content"]
    if isinstance(content, str):
        yield {"role": role, "content": content, WIRE: _wire(raw, place, None)}
        return
    between: list[Block] = []
    for block in content:
        if not isinstance(block, dict):
            raise ValueError(f"message {place} has a block that is no object")
        if block.get("type") != "tool_result":
            between.append(block)
            continue
        if between:
            yield {"role": role, "content": _parts(between), WIRE: _wire(raw, place, between)}
            between = []
        yield {
            "role": "tool",
            "tool_call_id": str(block.get("tool_use_id")),
            "content": _result_text(block.get("content")),
            WIRE: {
                **_wire(raw, place, [block]),
                "failed": bool(block.get("is_error")),
                "loads": _loads(block.get("content")),
            },
        }
    if between or not content:
        yield {"role": role, "content": _parts(between), WIRE: _wire(raw, place, between)}


def _wire(raw: Block, place: int, blocks: list[Block] | None) -> Body:
    """Where blocks came from; None where the content was a text."""
    return {"dialect": NAME, "at": place, "message": raw, "blocks": blocks}


def _parts(blocks: list[Block]) -> str | list[Block]:
    """Blocks of the user as a content: a text where they are nothing but texts."""
    if all(block.get("type") == "text" for block in blocks):
        return "\n\n".join(str(block.get("text", "")) for block in blocks)
    return [block if block.get("type") == "text" else {"type": block.get("type")}
            for block in blocks]  # fmt: skip


def _result_text(content: Any) -> str:
    if isinstance(content, list):
        texts = (block.get("text") for block in content if isinstance(block, dict))
        return "\n".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""


def _loads(content: Any) -> list[str]:
    """The tools that a result loads: a client's own search has found them."""
    blocks = as_list(content)
    return [str(block.get("tool_name")) for block in blocks if _is_reference(block)]


def _is_reference(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "tool_reference"


def _read_assistant(raw: Block) -> Message:
    content = raw["content"]
    message: Message = {"role": "assistant", "content": None, WIRE: {"dialect": NAME, "raw": raw}}
    if isinstance(content, str):
        return {**message, "content": content}
    texts = [block["text"] for block in content if _says(block)]
    calls = [_read_call(block) for block in content if block.get("type") == "tool_use"]
    message["content"] = "".join(texts) or None
    return {**message, "tool_calls": calls} if calls else message


def _says(block: Block) -> bool:
    return block.get("type") == "text" and bool(block.get("text"))


def _read_call(block: Block) -> Block:
    name, given = block.get("name"), block.get("input")
    if not isinstance(name, str):
        raise ValueError("a block `tool_use` has no name")
    arguments = given if isinstance(given, str) else as_json(given or {})
    function = {"name": name, "arguments": arguments}
    return {"id": str(block.get("id")), "type": "function", "function": function}


def _is_function(tool: Any) -> bool:
    return isinstance(tool, dict) and (tool.get("type") or "custom") == "custom"


def _read_tool(raw: Block) -> Block:
    function = {"name": raw.get("name"), "description": raw.get("description") or ""}
    function["parameters"] = raw.get("input_schema") or {}
    if raw.get("strict"):
        function["strict"] = True
    return {"type": "function", "function": function, WIRE: raw}


def _read_choice(choice: Any) -> Any:
    if not isinstance(choice, dict):
        return None
    if choice.get("type") == "tool":
        return {"type": "function", "function": {"name": choice.get("name")}}
    return _CHOICES.get(str(choice.get("type")))


# -- writing -----------------------------------------------------------------------------------


def _write_system(text: str, before: Any) -> Any:
    """The system's text, in the blocks that it came in."""
    if not isinstance(before, list) or not before:
        return text
    return _with_lines({"content": text}, before)


def _with_lines(message: Message, blocks: Sequence[Block]) -> list[Block]:
    """Blocks of text that say what a message does, which was read from them."""
    texts = texts_now(message, [str(block.get("text", "")) for block in blocks], "\n\n")
    return [{**b, "text": text} for b, text in zip(blocks, texts, strict=True) if text]


def _split(messages: Sequence[Message]) -> tuple[list[Message], list[Message]]:
    """The system's messages at the beginning, and all that follow."""
    lead = 0
    while lead < len(messages) and _is_lead(messages[lead]):
        lead += 1
    return list(messages[:lead]), list(messages[lead:])


def _is_lead(message: Message) -> bool:
    """Whether a message is of `system`, and not one of the system's among the messages."""
    return message.get("role") in ("system", "developer") and "at" not in (message.get(WIRE) or {})


def _write_messages(messages: Sequence[Message]) -> Iterator[Body]:
    """Messages with roles that alternate, but where they did not in what was read."""
    pending: Body | None = None
    place: Any = None
    for message in messages:
        if message.get("role") == "assistant":
            if pending is not None:
                yield pending
            pending = None
            yield _write_assistant(message)
            continue
        at, now = (message.get(WIRE) or {}).get("at"), _of_user(message)
        apart = at is not None and place is not None and at != place
        if pending is None or apart or pending["role"] != now["role"]:
            if pending is not None:
                yield pending
            pending, place = now, at
        else:
            pending, place = _joined(pending, now), at if place is None else place
    if pending is not None:
        yield pending


def _joined(first: Body, second: Body) -> Body:
    """Two messages of the user as one; results of tools have to stand first."""
    blocks = [*_blocks(first["content"]), *_blocks(second["content"])]
    whole = {**first, **second}
    if blocks and any(b.get("type") == "tool_result" for b in _blocks(second["content"])):
        blocks.sort(key=lambda block: block.get("type") != "tool_result")
    return {**whole, "content": blocks}


def _blocks(content: Any) -> list[Block]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _of_user(message: Message) -> Body:
    """A message that is not the assistant's, as it was where it still says the same."""
    wire = message.get(WIRE) or {}
    role, content = message.get("role"), message.get("content")
    outer = {k: v for k, v in (wire.get("message") or {}).items() if k != "content"}
    outer = outer or {"role": "user"}
    blocks: Any = wire.get("blocks")
    if role == "tool":
        return {**outer, "content": [_write_result(message, blocks[0] if blocks else None)]}
    if wire and blocks is None:
        return {**outer, "content": content}
    if blocks is not None and content == _parts(blocks):
        return {**outer, "content": blocks}
    if not wire:
        outer = {"role": "system" if role in ("system", "developer") else "user"}
    if blocks and isinstance(content, str) and isinstance(_parts(blocks), str):
        return {**outer, "content": _with_lines(message, blocks)}
    written = content if isinstance(content, str) else [_write_part(part) for part in content or ()]
    return {**outer, "content": written}


def _write_part(part: Block) -> Block:
    kind = part.get("type")
    if kind == "text":
        return {"type": "text", "text": part.get("text", "")}
    url = part.get("image_url")
    address = url.get("url") if isinstance(url, Mapping) else url
    if kind != "image_url" or not isinstance(address, str):
        raise ValueError(f"a part of the type {kind!r} cannot be written as a block")
    head, comma, data = address.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        kind = head[len("data:") : -len(";base64")]
        return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}
    return {"type": "image", "source": {"type": "url", "url": address}}


def _write_result(message: Message, block: Block | None) -> Block:
    wire = message.get(WIRE) or {}
    text, failed = text_of(message), wire.get("failed", False)
    if block is None:
        like = ((wire.get(LIKE) or {}).get("blocks") or [{}])[0].get("content")
        told = _retold([], text) if isinstance(like, list) else text
        own = message.get("tool_call_id")
        made = {"type": "tool_result", "tool_use_id": own, "content": told}
        return {**made, "is_error": True} if failed else made
    out = dict(block)
    content = block.get("content")
    if text != _result_text(content):
        out["content"] = _retold(content, text) if isinstance(content, list) else text
    if (loads := wire.get("loads", [])) != _loads(content):
        out["content"] = list(_with_references(out["content"], loads))
    if failed != bool(block.get("is_error")):
        out["is_error"] = failed
    return out


def _retold(blocks: list[Block], text: str) -> list[Block]:
    """Blocks of a result with another text, which stands before pictures."""
    said: Block = next((block for block in blocks if block.get("type") == "text"), {"type": "text"})
    told = [{**said, "text": text}] if text else []  # a text block may not be empty there
    return [*told, *(block for block in blocks if block.get("type") != "text")]


def _with_references(blocks: Iterable[Block], names: list[str]) -> Iterator[Block]:
    """Blocks of a result that loads other tools; of references without a name none stays."""
    left = list(names)
    for block in blocks:
        if not _is_reference(block):
            yield block
        elif left:
            yield {**block, "tool_name": left.pop(0)}


def _write_assistant(message: Message) -> Body:
    """A message of the assistant: its blocks as they came, and its calls as they are now."""
    wire = message.get(WIRE) or {}
    raw = wire.get("raw") if wire.get("dialect") == NAME else None
    calls = list(message.get("tool_calls") or ())
    if raw is None:
        text = text_of(message)
        blocks = [{"type": "text", "text": text}] if text else []
        blocks += [_write_call(call, None) for call in calls]
        return {"role": "assistant", "content": blocks}
    content = raw["content"]
    if isinstance(content, str):
        return {**raw, "content": text_of(message)}
    if wire.get(AGAIN):
        blocks = [block for block in content if block.get("type") == "tool_use"]
    else:
        blocks = _with_texts(content, message)
    return {**raw, "content": list(_with_calls(blocks, calls))}


def _with_texts(blocks: Sequence[Block], message: Message) -> list[Block]:
    """Blocks with what the assistant says now; a text that is there no more is left out."""
    before = texts_of(message)
    texts = texts_now(message, before)
    if not before:
        calls = (n for n, block in enumerate(blocks) if block.get("type") == "tool_use")
        place = next(calls, len(blocks))
        fresh = [{"type": "text", "text": text} for text in texts if text]
        return [*blocks[:place], *fresh, *blocks[place:]]
    now = iter(texts)
    said = [{**block, "text": next(now)} if _says(block) else block for block in blocks]
    return [new for new, old in zip(said, blocks, strict=True) if new.get("text") or not _says(old)]


# -- parts -------------------------------------------------------------------------------------


def texts_of(message: Message) -> list[str]:
    """What a message of the assistant was read from, block by block."""
    return [block["text"] for block in _raw_blocks(message) if _says(block)]


def without_blanks(message: Message) -> Message:
    """A message of the assistant without texts of nothing but space beside its other blocks.

    The API writes such a text at times, and refuses a request that has one.
    """
    blocks = _raw_blocks(message)
    kept = [b for b in blocks if b.get("type") != "text" or str(b.get("text", "")).strip()]
    if not kept or len(kept) == len(blocks):
        return message
    wire, said = message[WIRE], message.get("content") if text_of(message).strip() else None
    return {**message, "content": said, WIRE: {**wire, "raw": {**wire["raw"], "content": kept}}}


def thoughts_of(message: Message) -> list[str]:
    """What the model thought in words, block by block; what is redacted is not read."""
    return [block["thinking"] for block in _raw_blocks(message) if _thinks(block)]


def with_thoughts(message: Message, thoughts: Sequence[str]) -> Message:
    """A message with other thoughts in its blocks; a `ValueError` where one is signed."""
    now = iter(thoughts)
    blocks = [
        _rethought(block, next(now)) if _thinks(block) else block for block in _raw_blocks(message)
    ]
    wire = message[WIRE]
    return {**message, WIRE: {**wire, "raw": {**wire["raw"], "content": blocks}}}


def _raw_blocks(message: Message) -> list[Block]:
    """The blocks that a message of the assistant was read from."""
    wire = message.get(WIRE) or {}
    content = (wire.get("raw") or {}).get("content")
    return content if wire.get("dialect") == NAME and isinstance(content, list) else []


def _thinks(block: Block) -> bool:
    return block.get("type") == "thinking" and isinstance(block.get("thinking"), str)


def _rethought(block: Block, thought: str) -> Block:
    if thought != block["thinking"] and block.get("signature"):
        raise ValueError(SIGNED)
    return {**block, "thinking": thought}


def _with_own_ids(blocks: list[Block], seed: object) -> list[Block]:
    """The blocks of an answer with an id for each call: some servers give none, or one to all."""
    calls = [
        {"id": block.get("id"), "function": [block.get("name"), block.get("input")]}
        for block in blocks
        if block.get("type") == "tool_use"
    ]
    own = iter(told_apart(calls, seed))
    return [
        {**block, "id": next(own)["id"]} if block.get("type") == "tool_use" else block
        for block in blocks
    ]


def _with_calls(blocks: Iterable[Block], calls: list[Block]) -> Iterator[Block]:
    """Blocks with the calls as they are now; a call that is not there any more is left out."""
    left = list(calls)
    for block in blocks:
        if block.get("type") != "tool_use":
            yield block
            continue
        now = next((call for call in left if str(call.get("id")) == str(block.get("id"))), None)
        if now is not None:
            left.remove(now)
            yield _write_call(now, block)
    yield from (_write_call(call, None) for call in left)


def _write_call(call: Block, block: Block | None) -> Block:
    function = call.get("function") or {}
    name, text = function.get("name"), function.get("arguments") or "{}"
    given = _object(text)
    if block is None:
        return {"type": "tool_use", "id": call.get("id"), "name": name, "input": given}
    same = given == (block.get("input") or {})
    return {**block, "name": name, **({} if same else {"input": given})}


def _object(text: Any) -> Any:
    """Arguments as an object; what is none is quoted, since an input has to be one."""
    if isinstance(text, Mapping):
        return dict(text)
    found = msgspec.json.decode(text) if is_json(text) else None
    return found if isinstance(found, dict) else {"not_json": text}


def _write_tool(tool: Block) -> Block:
    function, raw = tool["function"], tool.get(WIRE) or {}
    out = {**raw, "name": function["name"]}
    if function.get("description") or "description" in raw:
        out["description"] = function.get("description") or ""
    schema = function.get("parameters") or {}
    if schema != (raw.get("input_schema") or {}) or "input_schema" not in raw:
        out["input_schema"] = schema or {"type": "object", "properties": {}}
        if raw.get("strict") and schema.get("additionalProperties") is not False:
            out["strict"] = False  # which the API demands of strict schemas
    return out


def _write_choice(choice: Any, before: Any) -> Block:
    kept = dict(before) if isinstance(before, Mapping) else {}
    if isinstance(choice, Mapping):
        return {**kept, "type": "tool", "name": (choice.get("function") or {}).get("name")}
    kinds = {ours: theirs for theirs, ours in _CHOICES.items()}
    return {**kept, "type": kinds.get(str(choice), "auto")}


# -- streams -----------------------------------------------------------------------------------


class MessageStream:
    """A streamed message while it arrives.

    From the first call on, all blocks wait for the end, so that their order stays.

    Args:
        index: of the next block that goes on to the agent.
        opened: whether the agent has had the beginning of the message.
    """

    def __init__(self, index: int = 0, opened: bool = False) -> None:
        self.whole = False
        self._index, self._opened = index, opened
        self._blocks: dict[int, Block] = {}
        self._inputs: dict[int, str] = {}
        self._held: list[int] = []
        self._as_sent: dict[int, int] = {}
        self._usage: Body = {}
        self._delta: Body = {}

    def add(self, event: str, data: str) -> Iterator[bytes]:
        """Takes an event in; gives the frames that may go on now."""
        said = read_data(data)
        kind = said.get("type") or event
        if kind == "error":
            raise ToldError(said.get("error") or said)
        if kind == "message_start":
            self._usage = dict((said.get("message") or {}).get("usage") or {})
            if not self._opened:
                self._opened = True
                yield frame(said, "message_start")
        elif kind == "message_delta":
            self._delta = {**self._delta, **(said.get("delta") or {})}
            used = said.get("usage") or {}
            self._usage |= {key: value for key, value in used.items() if value is not None}
            self.whole = self.whole or bool(self._delta.get("stop_reason"))
        elif kind == "message_stop":
            self.whole = True
        elif str(kind).startswith("content_block_"):
            yield from self._add_block(str(kind), said)
        elif kind == "ping":
            yield frame(said, "ping")

    def _add_block(self, kind: str, said: Body) -> Iterator[bytes]:
        place = said.get("index")
        if not isinstance(place, int):
            raise ValueError("a piece of a block has no index")
        if kind == "content_block_start":
            block = dict(said.get("content_block") or {})
            self._blocks[place] = block
            if block.get("type") == "tool_use" or self._held:
                self._held.append(place)
            else:
                self._as_sent[place], self._index = self._index, self._index + 1
        elif place not in self._blocks:
            raise ValueError("a piece of a block came before its beginning")
        elif kind == "content_block_delta":
            self._extend(place, said.get("delta") or {})
        if place in self._as_sent:
            yield frame({**said, "index": self._as_sent[place]}, kind)

    def _extend(self, place: int, delta: Body) -> None:
        block, kind = self._blocks[place], delta.get("type")
        if kind == "input_json_delta":
            self._inputs[place] = self._inputs.get(place, "") + str(delta.get("partial_json") or "")
        elif kind == "citations_delta":
            block["citations"] = [*(block.get("citations") or ()), delta.get("citation")]
        else:
            for key, value in delta.items():
                if key != "type" and isinstance(value, str):
                    block[key] = str(block.get(key) or "") + value

    def _content(self) -> list[Block]:
        """The blocks so far; the input of a call is an object, or a text where it is none."""
        blocks = []
        for place in sorted(self._blocks):
            block, text = self._blocks[place], self._inputs.get(place, "")
            if block.get("type") == "tool_use" and text:
                given = msgspec.json.decode(text) if is_json(text) else text
                block = {**block, "input": given if isinstance(given, dict) else text}
            blocks.append(block)
        return blocks

    @property
    def answer(self) -> Answer:
        """The message so far."""
        message = _read_assistant({"role": "assistant", "content": self._content()})
        return Answer(message, self._usage, _REASONS.get(self._delta.get("stop_reason"), ""))

    def again(self) -> MessageStream:
        """The stream of a further message, which the agent reads as part of this one."""
        return MessageStream(self._index, self._opened)

    def closing(self, message: Message, usage: Any, cut: bool) -> Iterator[bytes]:
        """The blocks that were held, the calls as they are now, and the end."""
        places = sorted(self._blocks)
        blocks = dict(zip(places, self._content(), strict=True))
        held = [blocks[place] for place in self._held]
        calls = list(message.get("tool_calls") or ())
        for block in _with_calls(held, calls):
            yield from _in_pieces(block, self._index)
            self._index += 1
        delta = {"stop_reason": "end_turn", "stop_sequence": None, **self._delta}
        if cut:
            delta["stop_reason"] = "max_tokens"
        yield frame(
            {"type": "message_delta", "delta": delta, "usage": usage or {"output_tokens": 0}},
            "message_delta",
        )
        yield frame({"type": "message_stop"}, "message_stop")


def _in_pieces(block: Block, index: int) -> Iterator[bytes]:
    """A whole block as it stands in a stream."""
    head, deltas = dict(block), list[Block]()
    if block.get("type") == "tool_use":
        given = block.get("input")
        text = given if isinstance(given, str) else as_json(given or {})
        head["input"] = {}
        deltas = [{"type": "input_json_delta", "partial_json": text}]
    elif block.get("type") == "text":
        head["text"] = ""
        deltas = [{"type": "text_delta", "text": block.get("text", "")}]
    elif block.get("type") == "thinking":
        head |= {"thinking": "", "signature": ""}
        deltas = [
            {"type": "thinking_delta", "thinking": block.get("thinking", "")},
            {"type": "signature_delta", "signature": block.get("signature", "")},
        ]
    start = {"type": "content_block_start", "index": index, "content_block": head}
    yield frame(start, "content_block_start")
    for delta in deltas:
        piece = {"type": "content_block_delta", "index": index, "delta": delta}
        yield frame(piece, "content_block_delta")
    yield frame({"type": "content_block_stop", "index": index}, "content_block_stop")

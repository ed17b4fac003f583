"""Streams of answers as providers send them, and as a client puts them together."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, zip_longest
from random import Random
from typing import Any

Call = tuple[str, dict[str, Any]]
"""A name and its arguments."""
VALUES = (
    "",
    "a",
    "né\u2028\u2029",
    '"}{',
    "\r\n\n",
    "data: [DONE]\n\n",
    "\x85",
    7,
    None,
    True,
    [1],
)


@dataclass(frozen=True)
class Sent:
    """A stream.

    Attributes:
        frames: its events, each with its end.
        end: how many bytes have to arrive for the message to be whole.
    """

    frames: tuple[bytes, ...]
    end: int

    @property
    def raw(self) -> bytes:
        """All of its bytes."""
        return b"".join(self.frames)


@dataclass(frozen=True)
class Heard:
    """What a client has read of a stream."""

    text: str
    calls: list[Call]
    error: str = ""


def drawn_calls(rng: Random, names: list[str]) -> list[Call]:
    """Some calls of tools, of which two may be alike."""
    calls = [
        (rng.choice(names), {f"p{n}": rng.choice(VALUES) for n in range(rng.randrange(3))})
        for _ in range(rng.choice((0, 1, 1, 2, 2, 3)))
    ]
    return [*calls, calls[0]] if calls and rng.random() < 0.1 else calls


def noisy(rng: Random, frames: list[bytes], whole_at: int) -> Sent:
    """Frames with what keeps a connection alive, in one way or another to end a line."""
    end_of_line = rng.choice((b"\n", b"\n", b"\r\n", b"\r"))
    alive = (b": keep-alive\n\n", b":\n", b"\n", b"data: \n\n", b"retry: 10\n\n", b"id: 3\n\n")
    out, end = [], 0
    for place, one in enumerate(frames):
        if rng.random() < 0.2:
            out.append(rng.choice(alive).replace(b"\n", end_of_line))
        out.append(one.replace(b"\n", end_of_line))
        if place == whole_at:
            end = sum(map(len, out)) - 2 * len(end_of_line)
    return Sent(tuple(out), end)


def in_pieces(rng: Random, text: str) -> list[str]:
    """A text, cut at some places; at none, often."""
    cuts = sorted(rng.randrange(len(text) + 1) for _ in range(rng.choice((0, 1, 3))))
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


# -- chat completions --------------------------------------------------------------------------

Piece = dict[str, Any]


def _piece(index: Any = None, own: Any = None, name: Any = None, arguments: Any = None) -> Piece:
    """A piece of a call without the fields that are None."""
    fields = {"index": index, "id": own, "function": {"name": name, "arguments": arguments}}
    fields["function"] = {k: v for k, v in fields["function"].items() if v is not None}
    return {key: value for key, value in fields.items() if value not in (None, {})}


def _split(rng: Random, call: Call) -> list[str]:
    return in_pieces(rng, json.dumps(call[1], ensure_ascii=rng.random() < 0.5))


Many = list[list[Piece]]
"""The pieces of each call."""


def by_index(rng: Random, calls: list[Call]) -> Many:
    """As OpenAI does; the calls may come at the same time."""
    return [
        [_piece(n, f"c{n}", name, ""), *(_piece(n, None, None, p) for p in _split(rng, call))]
        for n, call in enumerate(calls)
        for name in call[:1]
    ]


def index_as_text(rng: Random, calls: list[Call]) -> Many:
    """An index that is written as a text."""
    return [[{**p, "index": str(p["index"])} for p in ps] for ps in by_index(rng, calls)]


def name_in_each(rng: Random, calls: list[Call]) -> Many:
    """As MiniMax does: the name, and the id, in each piece."""
    with_id = rng.random() < 0.5
    return [
        [_piece(n, f"c{n}" if with_id else None, call[0], p) for p in _split(rng, call)]
        for n, call in enumerate(calls)
    ]


def one_index_new_ids(rng: Random, calls: list[Call]) -> Many:
    """As Kimi does at Fireworks: a new id tells the next call."""
    return [
        [_piece(0, f"c{n}", call[0], ""), *(_piece(0, None, None, p) for p in _split(rng, call))]
        for n, call in enumerate(calls)
    ]


def one_index_no_ids(rng: Random, calls: list[Call]) -> Many:
    """As Gemini does at its address for clients of OpenAI: each call whole."""
    own = rng.choice((None, ""))
    return [[_piece(0, own, call[0], json.dumps(call[1]))] for call in calls]


def one_id_for_all(rng: Random, calls: list[Call]) -> Many:
    """One id for all calls, which only their index tells apart."""
    return [[{**p, "id": "call_0"} for p in ps] for ps in by_index(rng, calls)]


def no_index(rng: Random, calls: list[Call]) -> Many:
    """Calls that only their ids tell apart; the ids are in each piece, or in the first."""
    each = rng.random() < 0.5
    return [
        [
            _piece(None, f"c{n}", call[0], ""),
            *(_piece(None, f"c{n}" if each else None, None, p) for p in _split(rng, call)),
        ]
        for n, call in enumerate(calls)
    ]


def nothing_but_names(rng: Random, calls: list[Call]) -> Many:
    """Whole calls with neither index nor id."""
    return [[_piece(None, None, call[0], json.dumps(call[1]))] for call in calls]


def an_id_for_each_piece(rng: Random, calls: list[Call]) -> Many:
    """As older vLLM does: an id is made up for each piece."""
    return [
        [
            _piece(n, f"c{n}", call[0], ""),
            *(_piece(n, f"r{rng.random()}", None, p) for p in _split(rng, call)),
        ]
        for n, call in enumerate(calls)
    ]


def as_object(rng: Random, calls: list[Call]) -> Many:
    """Arguments that are an object."""
    return [[_piece(n, f"c{n}", call[0], call[1])] for n, call in enumerate(calls)]


def id_before_name(rng: Random, calls: list[Call]) -> Many:
    """The id alone, then the name alone, then the arguments."""
    return [
        [
            _piece(n, f"c{n}"),
            _piece(n, "", name),
            *(_piece(n, "", "", p) for p in _split(rng, call)),
        ]
        for n, call in enumerate(calls)
        for name in call[:1]
    ]


APART: tuple[Callable[[Random, list[Call]], Many], ...] = (
    by_index, index_as_text, name_in_each, one_id_for_all, an_id_for_each_piece, as_object,
    id_before_name,
)  # fmt: skip
"""Ways in which calls may come at the same time."""
IN_TURN: tuple[Callable[[Random, list[Call]], Many], ...] = (
    one_index_new_ids, one_index_no_ids, no_index, nothing_but_names,
)  # fmt: skip


class ChatWire:
    """Chat completions."""

    path = "/v1/chat/completions"

    def request(self, tools: list[dict[str, Any]]) -> dict[str, Any]:
        """A request for a stream."""
        said = [{"role": "user", "content": "Go."}]
        return {"model": "m", "messages": said, "tools": tools, "stream": True}

    def shown(self, request: dict[str, Any]) -> list[str]:
        """The names of the tools in a request."""
        return [tool["function"]["name"] for tool in request["tools"]]

    def stream(self, rng: Random, text: str, calls: list[Call]) -> Sent:
        """An answer in pieces, in one of the ways of providers."""
        apart = rng.random() < 0.7
        way = rng.choice(APART if apart else IN_TURN)
        many = way(rng, calls)
        if apart and rng.random() < 0.3:
            columns = zip_longest(*many)
            pieces = [piece for column in columns for piece in column if piece]
        else:
            pieces = list(chain.from_iterable(many))
        deltas: list[dict[str, Any]] = [{"content": p} for p in in_pieces(rng, text)]
        if rng.random() < 0.5:
            deltas.insert(0, {"role": "assistant", "content": rng.choice(("", None))})
        deltas += [{"tool_calls": [piece]} for piece in pieces]
        if pieces and rng.random() < 0.2:
            deltas[-len(pieces) :] = [{"tool_calls": pieces}]
        for _ in range(rng.randrange(3)):
            empty = rng.choice(
                ({}, {"tool_calls": None}, {"tool_calls": [_EMPTY]}, {"content": ""})
            )
            deltas.insert(rng.randrange(len(deltas) + 1), empty)
        if calls and rng.random() < 0.1:
            functions = [{"name": n, "arguments": json.dumps(given)} for n, given in calls]
            whole = [{"id": f"c{n}", "function": f} for n, f in enumerate(functions)]
            chunks = [{"message": {"content": text, "tool_calls": whole}}]
        else:
            chunks = [{"delta": delta} for delta in deltas]
        if rng.random() < 0.8:
            chunks.append({"delta": {}})
        chunks[-1]["finish_reason"] = "tool_calls" if calls else "stop"
        frames = [self._frame({"choices": [{"index": 0, **chunk}]}) for chunk in chunks]
        whole_at = len(frames) - 1
        if rng.random() < 0.5:
            choices = rng.choice(({"choices": []}, {}, {"choices": None}))
            frames.append(self._frame({**choices, "usage": {"prompt_tokens": 3}}))
        if rng.random() < 0.8:
            frames.append(b"data: [DONE]\n\n")
        return noisy(rng, frames, whole_at)

    def error(self, rng: Random) -> bytes:
        """A frame that tells of an error."""
        told = {"message": "overloaded", "code": 502}
        choice = {"index": 0, "delta": {"content": ""}, "finish_reason": "error"}
        return rng.choice(
            (
                self._frame({"error": told}),
                self._frame({"error": "overloaded"}),
                self._frame({"error": told, "choices": [choice]}),
                self._frame({"choices": [choice]}),
                self._frame({"object": "error", **told}),
                b"event: error\n" + self._frame(told),
            )
        )

    def _frame(self, chunk: dict[str, Any]) -> bytes:
        return b"data: " + json.dumps({"id": "x1", **chunk}, ensure_ascii=False).encode() + b"\n\n"

    def heard(self, raw: str) -> Heard:
        """What a client reads."""
        text, calls, error = "", dict[int, dict[str, str]](), ""
        for chunk in map(json.loads, _datas(raw)):
            error = error or json.dumps(chunk.get("error") or "").strip('"')
            for choice in chunk.get("choices") or ():
                text += choice["delta"].get("content") or ""
                for piece in choice["delta"].get("tool_calls") or ():
                    call = calls.setdefault(piece["index"], {"id": "", "name": "", "arguments": ""})
                    call["id"] += piece["id"]
                    call["name"] += piece["function"]["name"]
                    call["arguments"] += piece["function"]["arguments"]
        ids = {call["id"] for call in calls.values()}
        assert len(ids) == len(calls)
        assert "" not in ids
        found = [(c["name"], json.loads(c["arguments"] or "{}")) for _, c in sorted(calls.items())]
        return Heard(text, found, error)


_EMPTY = {"index": 0, "id": "", "function": {"name": "", "arguments": ""}}


def _datas(raw: str) -> Iterator[str]:
    for event in raw.split("\n\n"):
        for line in event.split("\n"):
            if line.startswith("data: ") and line != "data: [DONE]":
                yield line[6:]


# -- Gemini ------------------------------------------------------------------------------------


class GeminiWire:
    """Gemini's answers: a call in one part, signed or not, with an id or without."""

    path = "/v1beta/models/m:streamGenerateContent?alt=sse"

    def request(self, tools: list[dict[str, Any]]) -> dict[str, Any]:
        """A request for a stream."""
        functions = [
            {
                "name": f["name"],
                "description": f["description"],
                "parametersJsonSchema": f["parameters"],
            }
            for tool in tools
            for f in [tool["function"]]
        ]
        contents = [{"role": "user", "parts": [{"text": "Go."}]}]
        return {"contents": contents, "tools": [{"functionDeclarations": functions}]}

    def shown(self, request: dict[str, Any]) -> list[str]:
        """The names of the tools in a request."""
        return [one["name"] for tool in request["tools"] for one in tool["functionDeclarations"]]

    def stream(self, rng: Random, text: str, calls: list[Call]) -> Sent:
        """An answer in pieces."""
        parts: list[dict[str, Any]] = [{"text": p} for p in in_pieces(rng, text)]
        if rng.random() < 0.5:
            parts.insert(0, {"text": "thinking", "thought": True})
        named = rng.random() < 0.5
        for place, (name, given) in enumerate(calls):
            call: dict[str, Any] = {"name": name}
            call |= {"id": f"own{place}"} if named else {}
            call |= {"args": given} if given or rng.random() < 0.5 else {}
            signed = {"thoughtSignature": "c2ln"} if place == 0 else {}
            parts.append({"functionCall": call, **signed})
        if rng.random() < 0.3:
            parts.append({"text": "", "thoughtSignature": "c2ln"})
        chunks: list[list[dict[str, Any]]] = []
        while parts:
            size = rng.choice((1, 1, 2, 3))
            chunks.append(parts[:size])
            parts = parts[size:]
        if rng.random() < 0.5 or not chunks:
            chunks.append(rng.choice(([], [{"text": ""}])))
        frames = [
            self._frame({"content": {"role": "model", "parts": c}, "index": 0}) for c in chunks
        ]
        last = {"content": {"role": "model", "parts": chunks[-1]}, "finishReason": "STOP"}
        frames[-1] = self._frame(last if chunks[-1] else {"finishReason": "STOP"})
        return noisy(rng, frames, len(frames) - 1)

    def error(self, rng: Random) -> bytes:
        """A frame that tells of an error."""
        told = {"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}}
        return b"data: " + json.dumps(told).encode() + b"\n\n"

    def _frame(self, candidate: dict[str, Any]) -> bytes:
        chunk = {"candidates": [candidate], "usageMetadata": {"promptTokenCount": 3}}
        return b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\n\n"

    def heard(self, raw: str) -> Heard:
        """What a client reads."""
        text, calls, error = "", list[Call](), ""
        for chunk in map(json.loads, _datas(raw)):
            error = error or (chunk.get("error") or {}).get("message", "")
            for candidate in chunk.get("candidates") or ():
                for part in (candidate.get("content") or {}).get("parts") or ():
                    text += "" if part.get("thought") else part.get("text", "")
                    if "functionCall" in part:
                        call = part["functionCall"]
                        assert ("thoughtSignature" in part) is (not calls)
                        calls.append((call["name"], call.get("args") or {}))
        return Heard(text, calls, error)


# -- Anthropic ---------------------------------------------------------------------------------


class AnthropicWire:
    """Anthropic's messages: blocks with a beginning, pieces and an end."""

    path = "/v1/messages"

    def request(self, tools: list[dict[str, Any]]) -> dict[str, Any]:
        """A request for a stream."""
        shown = [
            {"name": f["name"], "description": f["description"], "input_schema": f["parameters"]}
            for tool in tools
            for f in [tool["function"]]
        ]
        said = [{"role": "user", "content": "Go."}]
        return {"model": "m", "max_tokens": 9, "messages": said, "tools": shown, "stream": True}

    def shown(self, request: dict[str, Any]) -> list[str]:
        """The names of the tools in a request."""
        return [tool["name"] for tool in request["tools"]]

    def stream(self, rng: Random, text: str, calls: list[Call]) -> Sent:
        """An answer in pieces."""
        blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
        if rng.random() < 0.5:
            sealed = {"type": "signature_delta", "signature": "c2ln"}
            thought = {"type": "thinking_delta", "thinking": "Hm."}
            start = {"type": "thinking", "thinking": "", "signature": ""}
            blocks.append((start, [thought, sealed]))
        pieces = [{"type": "text_delta", "text": piece} for piece in in_pieces(rng, text)]
        blocks.append(({"type": "text", "text": ""}, pieces))
        for place, (name, given) in enumerate(calls):
            head = {"type": "tool_use", "id": f"toolu_{place}", "name": name, "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": piece}
                      for piece in ("", *_split(rng, (name, given)))]  # fmt: skip
            blocks.append((head, deltas if given or rng.random() < 0.5 else []))
        usage = {"input_tokens": 3, "output_tokens": 1}
        message = {"id": "m1", "type": "message", "role": "assistant", "model": "m",
                   "content": [], "stop_reason": None, "usage": usage}  # fmt: skip
        frames = [self._frame("message_start", message=message)]
        for index, (head, deltas) in enumerate(blocks):
            frames.append(self._frame("content_block_start", index=index, content_block=head))
            frames += [self._frame("content_block_delta", index=index, delta=d) for d in deltas]
            frames.append(self._frame("content_block_stop", index=index))
            frames += [self._frame("ping")] if rng.random() < 0.2 else []
        ended = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
        frames.append(self._frame("message_delta", delta=ended, usage={"output_tokens": 7}))
        return noisy(rng, [*frames, self._frame("message_stop")], len(frames) - 1)

    def error(self, rng: Random) -> bytes:
        """A frame that tells of an error."""
        return self._frame("error", error={"type": "overloaded_error", "message": "Overloaded"})

    def _frame(self, name: str, **data: Any) -> bytes:
        line = json.dumps({"type": name, **data}, ensure_ascii=False)
        return f"event: {name}\ndata: {line}\n\n".encode()

    def heard(self, raw: str) -> Heard:
        """What a client reads."""
        blocks, error = dict[int, dict[str, Any]](), ""
        for said in map(json.loads, _datas(raw)):
            index, delta = said.get("index"), said.get("delta") or {}
            if said["type"] == "error":
                error = said["error"]["message"]
            elif said["type"] == "content_block_start":
                assert index == len(blocks)
                blocks[index] = {**said["content_block"], "given": ""}
            elif said["type"] == "content_block_delta":
                blocks[index]["given"] += delta.get("partial_json") or delta.get("text") or ""
        text = "".join(b["text"] + b["given"] for b in blocks.values() if b["type"] == "text")
        calls = [(b["name"], json.loads(b["given"] or "{}"))
                 for b in blocks.values() if b["type"] == "tool_use"]  # fmt: skip
        return Heard(text, calls, error)


# -- Responses ---------------------------------------------------------------------------------

Event = tuple[str, dict[str, Any]]


class ResponsesWire:
    """OpenAI's Responses: items that begin, grow and end, and the whole response at the end."""

    path = "/v1/responses"

    def request(self, tools: list[dict[str, Any]]) -> dict[str, Any]:
        """A request for a stream."""
        shown = [{"type": "function", "strict": False, **tool["function"]} for tool in tools]
        return {"model": "m", "input": "Go.", "tools": shown, "stream": True}

    def shown(self, request: dict[str, Any]) -> list[str]:
        """The names of the tools in a request."""
        return [tool["name"] for tool in request["tools"]]

    def stream(self, rng: Random, text: str, calls: list[Call]) -> Sent:
        """An answer in pieces, in one of the ways of providers."""
        told = [self._thought()] if rng.random() < 0.5 else []
        told += [self._message(rng, text)] if text or rng.random() < 0.5 else []
        told += [self._call(rng, n, call) for n, call in enumerate(calls)]
        many = [
            [(kind, {"output_index": index, **said}) for kind, said in events]
            for index, (_, events) in enumerate(told)
        ]
        beside = rng.random() < 0.3  # items that grow at the same time
        if beside:
            flat = [one for column in zip_longest(*many) for one in column if one]
        else:
            flat = list(chain.from_iterable(many))
        items = [item for item, _ in told]
        way = rng.choice(("plain", "plain", "ids for each event", "at the end", "none at the end"))
        if way == "ids for each event":  # as gateways do that hide the ids of what is behind them
            flat = [(kind, _with_other_ids(rng, said)) for kind, said in flat]
        elif way == "at the end":
            flat = []
        if rng.random() < 0.3 and not (beside and way == "ids for each event"):
            flat = [(kind, _without_number(said)) for kind, said in flat]
        output = [] if way == "none at the end" else items
        response = {"id": "resp_1", "object": "response", "model": "m", "error": None}
        begun = {**response, "status": "in_progress", "output": []}
        ended = {**response, "status": "completed", "output": output, "usage": {"input_tokens": 3}}
        events: list[Event] = [(f"response.{one}", {"response": begun})
                               for one in ("created", "in_progress")]  # fmt: skip
        events += [*flat, ("response.completed", {"response": ended})]
        numbered, named = rng.random() < 0.8, rng.random() < 0.8
        frames = [
            self._frame(kind, named, {**said, **({"sequence_number": n} if numbered else {})})
            for n, (kind, said) in enumerate(events)
        ]
        whole_at = len(frames) - 1
        if rng.random() < 0.2:
            frames.append(b"data: [DONE]\n\n")
        return noisy(rng, frames, whole_at)

    def _thought(self) -> tuple[dict[str, Any], list[Event]]:
        item = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "c2ln"}
        return item, self._within(item, item, [])

    def _message(self, rng: Random, text: str) -> tuple[dict[str, Any], list[Event]]:
        part = {"type": "output_text", "text": text, "annotations": []}
        head = {"id": "msg_1", "type": "message", "role": "assistant"}
        item = {**head, "status": "completed", "content": [part]}
        place = {"item_id": "msg_1", "content_index": 0}
        kind = "response.output_text"
        inner = [(f"{kind}.delta", {**place, "delta": piece}) for piece in in_pieces(rng, text)]
        inner = [
            ("response.content_part.added", {**place, "part": {**part, "text": ""}}),
            *inner,
            (f"{kind}.done", {**place, "text": text}),
            ("response.content_part.done", {**place, "part": part}),
        ]
        return item, self._within({**head, "status": "in_progress", "content": []}, item, inner)

    def _call(self, rng: Random, number: int, call: Call) -> tuple[dict[str, Any], list[Event]]:
        own = f"fc_{number}"
        head = {"id": own, "type": "function_call", "call_id": f"c{number}", "name": call[0]}
        pieces = _split(rng, call)
        item = {**head, "status": "completed", "arguments": "".join(pieces)}
        kind = "response.function_call_arguments"
        inner = [(f"{kind}.delta", {"item_id": own, "delta": piece}) for piece in pieces]
        inner *= rng.random() < 0.8  # some send the whole alone
        inner.append((f"{kind}.done", {"item_id": own, "arguments": item["arguments"]}))
        return item, self._within({**head, "status": "in_progress", "arguments": ""}, item, inner)

    def _within(
        self, begun: dict[str, Any], item: dict[str, Any], inner: list[Event]
    ) -> list[Event]:
        first, last = "response.output_item.added", "response.output_item.done"
        return [(first, {"item": begun}), *inner, (last, {"item": item})]

    def error(self, rng: Random) -> bytes:
        """A frame that tells of an error."""
        told = {"code": "server_error", "message": "overloaded"}
        failed = {"id": "resp_1", "object": "response", "status": "failed", "output": []}
        return rng.choice(
            (
                self._frame("error", True, {**told, "param": None}),
                self._frame("response.failed", True, {"response": {**failed, "error": told}}),
                b"data: " + json.dumps({"error": told}).encode() + b"\n\n",
            )
        )

    def _frame(self, kind: str, named: bool, said: dict[str, Any]) -> bytes:
        data = json.dumps({"type": kind, **said}, ensure_ascii=False)
        return (f"event: {kind}\n" * named + f"data: {data}\n\n").encode()

    def heard(self, raw: str) -> Heard:
        """What a client reads: of the events, which tell the same as the response at the end."""
        text, error, last = "", "", 0
        calls, output = dict[int, dict[str, Any]](), None
        for number, said in enumerate(map(json.loads, _datas(raw))):
            kind, place = said["type"], said.get("output_index", -1)
            assert said.get("sequence_number", 0) in (number, 0)
            if kind == "error":
                error = said.get("message") or "error"
            elif kind == "response.failed":
                error = said["response"]["error"]["message"]
            elif kind == "response.output_item.added":
                assert place == last
                last += 1
                if said["item"]["type"] == "function_call":
                    calls[place] = dict(said["item"])
            elif kind == "response.output_text.delta":
                text += said["delta"]
            elif kind == "response.function_call_arguments.delta":
                calls[place]["arguments"] += said["delta"]
            elif kind == "response.completed":
                output = said["response"]["output"]
        found = [(c["name"], json.loads(c["arguments"] or "{}")) for _, c in sorted(calls.items())]
        if output is not None:
            assert [(o["name"], json.loads(o["arguments"] or "{}"))
                    for o in output if o["type"] == "function_call"] == found  # fmt: skip
            parts = [p for o in output if o["type"] == "message" for p in o["content"]]
            assert not text or text == "".join(part["text"] for part in parts)
            text = "".join(part["text"] for part in parts)
        return Heard(text, found, error)


def _without_number(said: dict[str, Any]) -> dict[str, Any]:
    """An event of an item without the item's number; nothing but the order says whose it is."""
    return {key: value for key, value in said.items() if key != "output_index"}


def _with_other_ids(rng: Random, said: dict[str, Any]) -> dict[str, Any]:
    """An event with the ids of its item made up anew, as some gateways do for each event."""
    own = f"x{rng.randrange(10**6)}"
    out = {**said, "item_id": own} if "item_id" in said else dict(said)
    if "item" in said and "id" in said["item"]:
        out["item"] = {**said["item"], "id": own}
    return out


WIRES: dict[str, Any] = {
    "anthropic": AnthropicWire(),
    "chat": ChatWire(),
    "gemini": GeminiWire(),
    "responses": ResponsesWire(),
}
"""By dialect."""

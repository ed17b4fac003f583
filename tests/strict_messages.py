"""A server of Anthropic's Messages with a scripted model, as strict as the provider.

It answers HTTP 400 to a field that it does not know or that needs a beta which the headers do not
name, to roles that do not alternate, to a call without its result, and to an assistant message that
is not what it has said: thoughts, signatures, order and ids have to come back as they went. It is
no language model.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Block = dict[str, Any]
Script = Callable[[dict[str, Any]], list[Block]]
"""What the model says to a request: its blocks, without ids."""

FIELDS = {"model", "max_tokens", "messages", "system", "tools", "tool_choice", "temperature",
          "stream", "thinking", "metadata", "output_config"}  # fmt: skip
OF_A_TOOL = {"name", "description", "input_schema", "cache_control", "strict", "type",
             "defer_loading", "eager_input_streaming"}  # fmt: skip
BETAS = {"context_management": "context-management-2025-06-27"}


class StrictMessages:
    """The server's mind: what it was asked, what it has said, what it refuses."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[dict[str, Any]] = []
        self.refused: list[str] = []
        self.betas: set[str] = set()
        self._said: list[str] = []
        self._lock = threading.Lock()

    def answer(self, headers: Any, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """The status and the body of the answer to a request."""
        with self._lock:
            self.requests.append(body)
            wrong = self._wrong(headers, body)
            if wrong:
                self.refused.append(wrong)
                error = {"type": "invalid_request_error", "message": wrong}
                return 400, {"type": "error", "error": error}
            blocks = [dict(block) for block in self.script(body)]
            for place, block in enumerate(blocks):
                if block["type"] == "tool_use":
                    block["id"] = f"toolu_{len(self._said)}_{place}"
            self._said.append(json.dumps(_without_blanks(blocks), sort_keys=True))
            calls = any(block["type"] == "tool_use" for block in blocks)
            return 200, {
                "id": f"msg_{len(self._said)}",
                "type": "message",
                "role": "assistant",
                "model": body["model"],
                "content": blocks,
                "stop_reason": "tool_use" if calls else "end_turn",
                "stop_sequence": None,
                "usage": {"input_tokens": 1000, "cache_read_input_tokens": 50, "output_tokens": 7},
            }

    def _wrong(self, headers: Any, body: dict[str, Any]) -> str:
        key = headers.get("x-api-key") or headers.get("authorization")
        if not key or not headers.get("anthropic-version"):
            return "a key and anthropic-version are required"
        betas = {beta.strip() for beta in (headers.get("anthropic-beta") or "").split(",")} - {""}
        self.betas |= betas
        known = {field for field, beta in BETAS.items() if beta in betas}
        if odd := body.keys() - FIELDS - known:
            return f"{sorted(odd)[0]}: Extra inputs are not permitted"
        for tool in body.get("tools") or ():
            if odd := tool.keys() - OF_A_TOOL:
                return f"tools.{sorted(odd)[0]}: Extra inputs are not permitted"
            if tool["input_schema"].get("type") != "object":
                return "tools.input_schema.type: Field required"
        return self._wrong_history(body)

    def _wrong_history(self, body: dict[str, Any]) -> str:
        role, waiting = "assistant", set[str]()
        for message in body["messages"]:
            if message.keys() != {"role", "content"}:
                return "messages: Extra inputs are not permitted"
            if message["role"] == "system":
                continue
            if message["role"] == role:
                return "messages: roles must alternate"
            role, content = message["role"], message["content"]
            blocks = content if isinstance(content, list) else []
            if role == "user":
                results = {b["tool_use_id"] for b in blocks if b["type"] == "tool_result"}
                offered = {tool["name"] for tool in body.get("tools") or ()}
                for name in _references(blocks):
                    if name not in offered:
                        return f"Tool reference '{name}' has no corresponding tool definition"
                if results != waiting:
                    return "`tool_use` ids were found without `tool_result` blocks after them"
                kinds = [b["type"] == "tool_result" for b in blocks]
                if kinds != sorted(kinds, reverse=True):
                    return "tool_result blocks must come first"
                waiting = set()
                continue
            if len(_without_blanks(blocks)) < len(blocks):
                return "messages: text content blocks must contain non-whitespace text"
            bare = [{k: v for k, v in b.items() if k != "cache_control"} for b in blocks]
            if json.dumps(bare, sort_keys=True) not in self._said:
                return "`thinking` blocks in the latest assistant message cannot be modified"
            waiting = {b["id"] for b in blocks if b["type"] == "tool_use"}
        return ""


def _without_blanks(blocks: list[Block]) -> list[Block]:
    return [b for b in blocks if b["type"] != "text" or b["text"].strip()]


def _references(blocks: list[Block]) -> Iterator[str]:
    for block in blocks:
        content = block.get("content")
        for part in content if isinstance(content, list) else ():
            if part["type"] == "tool_reference":
                yield part["tool_name"]


def as_events(message: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """A message as the provider streams it; the input of a call in two pieces."""
    yield "message_start", {"message": {**message, "content": [], "stop_reason": None}}
    yield "ping", {}
    for index, block in enumerate(message["content"]):
        head, deltas = dict(block), []
        if block["type"] == "tool_use":
            head["input"], text = {}, json.dumps(block["input"])
            pieces = "", text[:3], text[3:]
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
        elif block["type"] == "text":
            head["text"], deltas = "", [{"type": "text_delta", "text": block["text"]}]
        elif block["type"] == "thinking":
            head |= {"thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": block["thinking"]},
                      {"type": "signature_delta", "signature": block["signature"]}]  # fmt: skip
        yield "content_block_start", {"index": index, "content_block": head}
        for delta in deltas:
            yield "content_block_delta", {"index": index, "delta": delta}
        yield "content_block_stop", {"index": index}
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield "message_delta", {"delta": ended, "usage": {"output_tokens": 7}}
    yield "message_stop", {}


@contextlib.contextmanager
def serving(mind: StrictMessages) -> Iterator[str]:
    """Serves on a free port; gives the address before `/v1`."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if self.path.partition("?")[0] != "/v1/messages":
                status, said = 404, {"type": "error", "error": {"message": self.path}}
            else:
                status, said = mind.answer(self.headers, body)
            streamed = status == 200 and body.get("stream")
            self.send_response(status)
            self.send_header(
                "content-type", "text/event-stream" if streamed else "application/json"
            )
            self.end_headers()
            if not streamed:
                self.wfile.write(json.dumps(said).encode())
                return
            for name, data in as_events(said):
                line = json.dumps({"type": name, **data})
                self.wfile.write(f"event: {name}\ndata: {line}\n\n".encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()

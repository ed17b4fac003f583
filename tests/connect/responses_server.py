"""A server of OpenAI's Responses whose model is scripted, and which is as strict as OpenAI's.

What is refused with HTTP 400 there is refused here: fields that are not known, calls without their
results and results without their calls, thoughts that were not kept at the server and come back
without what is sealed in them, or other than they were; calls that come back without the thoughts
that led to them, or other than the model spoke them; ids of responses that are not known.

    python tests/connect/responses_server.py poi/booking/0 identity_erasure:2 --port 8099
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from connect.scripted_model import Part
from dialects.response_items import events, response

Body = dict[str, Any]
Model = Callable[[Body], Body]
"""The next message of the assistant, given messages and tools as chat completions have them."""

FIELDS = frozenset(
    (
        "background", "conversation", "include", "input", "instructions", "max_output_tokens",
        "max_tool_calls", "metadata", "model", "parallel_tool_calls", "previous_response_id",
        "prompt", "prompt_cache_key", "reasoning", "safety_identifier", "service_tier", "store",
        "stream", "stream_options", "temperature", "text", "tool_choice", "tools", "top_logprobs",
        "top_p", "truncation", "user", "client_metadata",
    )
)  # fmt: skip
OF_ITEMS = {
    "message": {
        "type",
        "id",
        "role",
        "content",
        "status",
        "phase",
        "internal_chat_message_metadata_passthrough",  # which Codex sends
    },
    "reasoning": {"type", "id", "summary", "content", "encrypted_content", "status"},
    "function_call": {"type", "id", "call_id", "name", "namespace", "arguments", "status"},
    "function_call_output": {"type", "id", "call_id", "output", "status"},
    "custom_tool_call": {"type", "id", "call_id", "name", "input", "status"},
    "configuration_update": {"type", "id", "reasoning", "text"},
    "custom_tool_call_output": {"type", "id", "call_id", "output", "status"},
}
CALLS = ("function_call", "custom_tool_call")
OF_TOOLS = {
    "function": {"type", "name", "description", "parameters", "strict"},
    "custom": {"type", "name", "description", "format"},
    "namespace": {"type", "name", "description", "tools"},
}


TEXT = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
"""What a custom tool takes, for a model that is scripted as functions are called."""


class Refused(Exception):
    """What OpenAI would answer with HTTP 400."""


def check_tools(tools: list[Body], inside: bool = False) -> Iterator[tuple[str, Body]]:
    """The tools of a request by the name that a model knows; namespaces opened."""
    for tool in tools:
        kind = tool.get("type")
        if kind not in OF_TOOLS or (inside and kind == "namespace"):
            raise Refused(f"Invalid value: tools[].type {kind!r}.")
        if odd := set(tool) - OF_TOOLS[kind]:
            raise Refused(f"Unknown parameter: 'tools[].{min(odd)}'.")
        if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", tool.get("name", "")):
            raise Refused(
                f"Invalid 'tools[].name': {tool.get('name')!r} does not match the pattern."
            )
        if kind == "namespace":
            for name, inner in check_tools(tool["tools"], True):
                yield f"{tool['name']}__{name}", {**inner, "namespace": tool["name"]}
            continue
        schema = tool.get("parameters") or {}
        if tool.get("strict") and set(schema.get("required", ())) != set(
            schema.get("properties", {})
        ):
            raise Refused(
                f"Invalid schema for function {tool['name']!r}: 'required' must have all."
            )
        yield tool["name"], tool


def check_history(items: list[Body], issued: dict[str, Body], stored: bool) -> None:
    """Raises where a conversation is not whole, or not as it was."""
    open_calls, known, thought = set[str](), set[str](), False
    for item in items:
        kind = item.get("type", "message")
        check_item(item, kind)
        if kind == "reasoning":
            check_thought(item, issued.get(item["id"]), stored)
            thought = True
        elif kind in CALLS:
            check_call(item, issued.get(item["call_id"]), thought)
            open_calls.add(item["call_id"])
            known.add(item["call_id"])
        elif kind.endswith("_output"):
            if item["call_id"] not in known:
                raise Refused(f"No tool call found for the output with call_id {item['call_id']}.")
            open_calls.discard(item["call_id"])
        else:
            if item.get("id") in issued and item["content"] != issued[item["id"]]["content"]:
                raise Refused(f"The message {item['id']!r} is not as it was.")
            thought = thought and item.get("role") == "assistant"
    if open_calls:
        raise Refused(f"No tool output found for function call {min(open_calls)}.")


def check_item(item: Body, kind: str) -> None:
    if kind not in OF_ITEMS:
        raise Refused(f"Invalid value: input[].type {kind!r}.")
    if odd := set(item) - OF_ITEMS[kind]:
        raise Refused(f"Unknown parameter: 'input[].{min(odd)}'.")


def check_thought(item: Body, was: Body | None, stored: bool) -> None:
    if was is None or item["summary"] != was["summary"]:
        raise Refused(f"The reasoning item {item['id']!r} could not be verified.")
    if not stored and item.get("encrypted_content") != was["encrypted_content"]:
        raise Refused(f"Item {item['id']!r} not found: items are not kept (`store` is false).")


def check_call(item: Body, was: Body | None, thought: bool) -> None:
    keys = ("type", "name", "namespace", "arguments", "input")
    if was and any(item.get(key) != was.get(key) for key in keys):
        raise Refused(f"The call {item['call_id']!r} is not as the model made it.")
    if was and not thought:
        raise Refused(f"Item {item.get('id')!r} came without its required 'reasoning' item.")


def as_chat(body: Body, items: list[Body], tools: dict[str, Body]) -> Body:
    """A request as chat completions have it, for models that are scripted in that form."""
    said: list[Body] = []
    if body.get("instructions"):
        said.append({"role": "system", "content": body["instructions"]})
    for item in items:
        kind = item.get("type", "message")
        if kind.endswith("_output"):
            said.append(
                {
                    "role": "tool",
                    "tool_call_id": item["call_id"],
                    "content": text_of(item["output"]),
                }
            )
        elif kind == "configuration_update":
            continue
        elif kind == "message" and item["role"] != "assistant":
            said.append({"role": item["role"], "content": text_of(item["content"])})
        else:
            if not said or said[-1]["role"] != "assistant":
                said.append({"role": "assistant", "content": None})
            if kind == "message":
                said[-1]["content"] = text_of(item["content"])
    offered = [
        {"type": "function", "function": {"name": name, "description": tool.get("description", ""),
         "parameters": tool.get("parameters") or TEXT}}
        for name, tool in tools.items()
    ]  # fmt: skip
    return {"messages": said, "tools": offered}


def text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content)


class ResponsesServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, model: Model, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Exchange)
        self.model = model
        self.requests: list[Body] = []
        self.refused: list[str] = []
        self.issued: dict[str, Body] = {}
        self.kept: dict[str, list[Body]] = {}
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def answer(self, body: Body) -> Body:
        """The response to a request."""
        if odd := set(body) - FIELDS:
            raise Refused(f"Unknown parameter: '{min(odd)}'.")
        given = body.get("input", [])
        new = [{"role": "user", "content": given}] if isinstance(given, str) else given
        before = self.kept.get(body.get("previous_response_id") or "", [])
        if body.get("previous_response_id") and not before:
            raise Refused(f"Previous response with id '{body['previous_response_id']}' not found.")
        stored = body.get("store") is not False
        listed = [*check_tools(body.get("tools") or [])]
        tools = dict(listed)
        if len(tools) < len(listed):
            raise Refused("Duplicate tool name.")
        items = [*before, *new]
        check_history(items, self.issued, stored)
        message = self.model(as_chat(body, items, tools))
        output = self._items(message, tools, body, stored)
        name = f"resp_{len(self.requests)}"
        if stored:
            self.kept[name] = [*items, *output]
        status = message.get("status", "completed")
        repeated = {key: body.get(key) for key in ("instructions", "previous_response_id")}
        repeated |= {
            "tools": body.get("tools") or [],
            "tool_choice": body.get("tool_choice") or "auto",
        }
        return response(output, id=name, model=body["model"], status=status, **repeated)

    def _items(self, message: Body, tools: dict[str, Body], body: Body, stored: bool) -> list[Body]:
        number = len(self.issued)
        sealed = "reasoning.encrypted_content" in (body.get("include") or ())
        output: list[Body] = [
            {"type": "reasoning", "id": f"rs_{number}", "summary": [],
             "encrypted_content": f"sealed-{number}" if sealed else None}
        ]  # fmt: skip
        if message.get("content"):
            part = {
                "type": "output_text",
                "text": message["content"],
                "annotations": [],
                "logprobs": [],
            }
            output.append({"type": "message", "id": f"msg_{number}", "role": "assistant",
                           "status": "completed", "content": [part]})  # fmt: skip
        for place, call in enumerate(message.get("tool_calls") or ()):
            function, call_id = call["function"], f"call_{number}_{place}"
            tool = tools.get(function["name"]) or {"type": "function", "name": function["name"]}
            head = {"id": f"fc_{number}_{place}", "call_id": call_id, "name": tool["name"]}
            space = {"namespace": tool["namespace"]} if "namespace" in tool else {}
            said = {"type": "function_call", **head, **space, "arguments": function["arguments"]}
            if tool["type"] == "custom":
                text = json.loads(function["arguments"])["input"]
                said = {"type": "custom_tool_call", **head, "input": text}
            output.append({**said, "status": "completed"})
        for item in output:
            self.issued[item.get("call_id") or item["id"]] = item
        return output


class _Exchange(BaseHTTPRequestHandler):
    server: ResponsesServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._send({"object": "list", "data": [{"id": "scripted", "object": "model"}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with self.server.lock:
            self.server.requests.append(body)
            try:
                if self.path != "/v1/responses":
                    raise Refused(f"no {self.path} here")
                found = self.server.answer(body)
            except Refused as why:
                self.server.refused.append(str(why))
                error = {
                    "message": str(why),
                    "type": "invalid_request_error",
                    "param": None,
                    "code": None,
                }
                self._send({"error": error}, 400)
                return
        if body.get("stream"):
            self._stream(found)
        else:
            self._send(found)

    def _send(self, value: Any, status: int = 200) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, whole: Body) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for event in events(whole):
            self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
            self.wfile.flush()
        self.close_connection = True

    def log_message(self, *_: Any) -> None:
        pass


@contextlib.contextmanager
def responses_server(model: Model, port: int = 0) -> Iterator[ResponsesServer]:
    """Serves a scripted model on this machine."""
    server = ResponsesServer(model, port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def playing(part: Part) -> Model:
    """A part in a scene as a model."""
    return lambda request: part.reply(request)[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task")
    parser.add_argument("shifts", nargs="?", default="")
    parser.add_argument("--port", type=int, default=0)
    args = parser.parse_args()
    server = ResponsesServer(playing(Part("oracle", args.task, args.shifts)), args.port)
    print(server.url, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()

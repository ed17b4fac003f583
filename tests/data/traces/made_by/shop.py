"""A shop of two tools, a scripted model behind the chat completions of OpenAI, and an agent's loop.

Every trace file beside this folder is of the same conversations, so that a test can say of each of
them what is right. The people, addresses and numbers are made up.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ORDERS = {
    "O-1701": {"status": "delivered", "buyer": "mara.lind@shop-mail.net", "total": 49.5},
    "O-1702": {"status": "damaged", "buyer": "jo.berg@shop-mail.net", "total": 12.0},
    "O-1703": {"status": "lost", "buyer": "kim.oda@shop-mail.net", "total": 7.25},
}
REQUESTS = (
    "What is the status of order O-1701?",
    "Please refund order O-1702 to its buyer.",
    "Please refund order O-1703 to its buyer.",
    "What is the status of order O-1702?",
    "Thanks, that was all.",
)
SYSTEM = "You work for a small shop."
TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "get_order",
            "description": "Looks an order up.",
            "parameters": {
                "type": "object",
                "properties": {"order_id": {"type": "string", "description": "as O-1700"}},
                "required": ["order_id"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "refund_order",
            "description": "Pays the price of an order back to its buyer.",
            "parameters": {
                "type": "object",
                "properties": {
                    "order_id": {"type": "string", "description": "as O-1700"},
                    "email": {"type": "string", "description": "of the buyer"},
                },
                "required": ["order_id", "email"],
            },
        },
    },
]


def call_tool(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """What a tool answers; the refund of a lost order fails, which only its result says."""
    order = arguments["order_id"]
    if name == "get_order":
        return {"order_id": order, **ORDERS[order]}
    if order == "O-1703":
        return {"success": False, "reason": "a lost order is paid by the carrier"}
    return {"success": True, "refund": f"RF-{order[2:]}", "error": None}


def next_reply(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """The model: looks the order up, refunds it where it is asked to, and says what came of it."""
    request = next(m["content"] for m in messages if m["role"] == "user")
    request = request if isinstance(request, str) else request[0]["text"]
    results = [m["content"] for m in messages if m["role"] == "tool"]
    order = re.search(r"O-\d+", request)
    if order is None:
        return {"role": "assistant", "content": "You are welcome."}
    if not results:
        return _calls("get_order", {"order_id": order[0]}, "call_1")
    found = json.loads(results[0])
    if "refund" not in request:
        return {"role": "assistant", "content": f"Order {order[0]} is {found['status']}."}
    if len(results) == 1:
        return _calls("refund_order", {"order_id": order[0], "email": found["buyer"]}, "call_2")
    done = json.loads(results[1])
    said = f"The refund is {done['refund']}." if done["success"] else "It cannot be refunded."
    return {"role": "assistant", "content": said}


def _calls(name: str, arguments: dict[str, Any], number: str) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": number, "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


class _Model(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        message = next_reply(body["messages"])
        reason = "tool_calls" if message.get("tool_calls") else "stop"
        answer = {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1_790_000_000,
            "model": body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": reason}],
            "usage": {"prompt_tokens": 50, "completion_tokens": 9, "total_tokens": 59},
        }
        raw = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_: Any) -> None:
        """Says nothing."""


def serve_model() -> str:
    """Starts the model; returns its base address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/v1"


def converse(client: Any, request: str, run_tool: Callable[..., Any] = call_tool) -> str:
    """The loop of an agent on a client of OpenAI; `run_tool` is given a name, arguments, an id."""
    messages: list[Any] = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": request},
    ]
    while True:
        answer = client.chat.completions.create(model="gpt-5", messages=messages, tools=TOOLS)
        message = answer.choices[0].message
        if not message.tool_calls:
            return str(message.content)
        messages.append(message.model_dump(exclude_none=True))
        for call in message.tool_calls:
            result = run_tool(call.function.name, json.loads(call.function.arguments))
            content = json.dumps(result)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": content})

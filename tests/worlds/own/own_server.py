"""Real servers for the tests of worlds over the user's own tools: MCP over stdio, and HTTP.

`python own_server.py` is a small MCP server with a state; `ledger_site` is the same over HTTP.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from json import dumps, loads
from typing import Any

OPENAPI: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Ledger", "version": "1"},
    "paths": {
        "/accounts/{account_id}": {
            "parameters": [
                {"name": "account_id", "in": "path", "required": True, "schema": {"type": "string"}}
            ],
            "get": {
                "operationId": "getAccount",
                "summary": "Get one account",
                "responses": {"200": {"$ref": "#/components/responses/Account"}},
            },
        },
        "/transfers": {
            "post": {
                "operationId": "createTransfer",
                "summary": "Move money from one account to another",
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/json": {"schema": {"$ref": "#/components/schemas/Transfer"}}
                    },
                },
                "responses": {"201": {"description": "done"}},
            },
            "get": {
                "operationId": "listTransfers",
                "parameters": [{"name": "sender", "in": "query", "schema": {"type": "string"}}],
                "responses": {"200": {"description": "all"}},
            },
        },
    },
    "components": {
        "responses": {
            "Account": {
                "description": "An account",
                "content": {
                    "application/json": {"schema": {"$ref": "#/components/schemas/Account"}}
                },
            }
        },
        "schemas": {
            "Account": {
                "type": "object",
                "properties": {"account_id": {"type": "string"}, "iban": {"type": "string"}},
            },
            "Transfer": {
                "type": "object",
                "required": ["sender", "iban", "amount"],
                "properties": {
                    "sender": {"type": "string"},
                    "iban": {"type": "string", "description": "Where the money goes."},
                    "amount": {"type": "number"},
                },
            },
        },
    },
}
IBANS = {"A-11": "DE02-1100", "A-12": "DE02-1200"}


class Site(BaseHTTPRequestHandler):
    """The ledger over HTTP; wants a token."""

    transfers: list[dict[str, Any]] = []

    def log_message(self, *said: Any) -> None:
        """Says nothing."""

    def answer(self, code: int, data: Any) -> None:
        raw = dumps(data).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        name = path.removeprefix("/accounts/")
        if self.headers.get("Authorization") != "Bearer t0ken":
            self.answer(401, {"detail": "who are you?"})
        elif path == "/transfers":
            sender = query.removeprefix("sender=")
            self.answer(200, [t for t in Site.transfers if sender in ("", t["sender"])])
        elif name in IBANS:
            self.answer(200, {"account_id": name, "iban": IBANS[name]})
        else:
            self.answer(404, {"detail": f"no account {name}"})

    def do_POST(self) -> None:
        sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == "/reset":
            Site.transfers.clear()
            self.answer(200, {})
            return
        if self.path != "/transfers":
            self.answer(404, {"detail": "no such thing"})
            return
        Site.transfers.append(loads(sent))
        self.answer(201, {"receipt": f"T-{len(Site.transfers):04d}"})


@contextmanager
def ledger_site() -> Iterator[str]:
    """The address of the ledger, served until the end."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


ACCOUNT = {"type": "object", "properties": {"account_id": {"type": "string"}}}
TRANSFER = {
    "type": "object",
    "properties": {"iban": {"type": "string"}, "amount": {"type": "number"}},
    "required": ["iban", "amount"],
}
TOOLS = [
    {"name": "get_account", "description": "Get one account.", "inputSchema": ACCOUNT},
    {"name": "create_transfer", "description": "Move money to an IBAN.", "inputSchema": TRANSFER},
    {"name": "count_transfers", "description": "Count them.", "inputSchema": {"type": "object"}},
]
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "ledger", "version": "1"},
}


def carry_out(name: str, given: dict[str, Any], moved: list[str]) -> dict[str, Any]:
    """A call of the ledger; its transfers last as long as the process."""
    data: Any = None
    if name == "create_transfer":
        moved.append(given["iban"])
        text = f"Receipt T-{len(moved):04d}: {given['amount']:g} EUR to {given['iban']}"
        return {"content": [{"type": "text", "text": text}]}
    if name == "count_transfers":
        data = {"transfers": len(moved)}
    elif given["account_id"] in IBANS:
        data = {"account_id": given["account_id"], "iban": IBANS[given["account_id"]]}
    if data is None:
        text = f"no account {given['account_id']}"
        return {"content": [{"type": "text", "text": text}], "isError": True}
    return {"content": [{"type": "text", "text": dumps(data)}], "structuredContent": data}


def main() -> None:
    """Serves the ledger over stdio; without a library, so that it starts at once."""
    moved: list[str] = []
    for line in sys.stdin:
        asked = loads(line)
        method, params = asked["method"], asked.get("params") or {}
        answers = {"initialize": HELLO, "tools/list": {"tools": TOOLS}, "ping": {}}
        if method == "tools/call":
            answers[method] = carry_out(params["name"], params.get("arguments") or {}, moved)
        if "id" not in asked:
            continue
        fault = {"error": {"code": -32601, "message": f"no {method}"}}
        said = {"result": answers[method]} if method in answers else fault
        print(dumps({"jsonrpc": "2.0", "id": asked["id"], **said}), flush=True)


if __name__ == "__main__":
    main()

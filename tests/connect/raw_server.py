"""A server that answers whatever bytes it likes: `python raw_server.py`, over stdio."""

from __future__ import annotations

import json
import os
import sys

TOOL = {
    "name": "act",
    "description": "Acts.",
    "inputSchema": {"type": "object", "properties": {"kind": {"type": "string"}}},
    "annotations": {"readOnlyHint": True},
}
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "raw", "version": "1", "unheard-of": {"of": 1}},
}


def answer(number: object, kind: str) -> bytes:
    head = b'{"jsonrpc":"2.0","id":%s,"result":' % json.dumps(number).encode()
    said = b'{"content":[{"type":"text","text":"%s"}],"unheardOf":[1]}}\n'
    if kind == "invalid utf-8":
        return head + said % b"caf\xe9 \xff\xfe"
    if kind == "deep":
        return head + b'{"a":' * 3000 + b"1" + b"}" * 3001 + b"\n"
    if kind == "deep, id last":
        deep = b'{"result":' + b'{"a":' * 3000 + b"1" + b"}" * 3000
        return deep + b',"jsonrpc":"2.0","id":%s}\n' % json.dumps(number).encode()
    if kind == "noise":
        return b"Listening on port 8080\n\n{]\n" + head + said % b"after the noise"
    if kind == "secret":
        return head + said % b"SHOP_TOKEN=hunter2hunter2"
    return head + said % b"fine"


def main() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        number, method = asked.get("id"), asked["method"]
        kind = asked.get("params", {}).get("arguments", {}).get("kind", "")
        if method == "tools/call" and kind == "die":
            os._exit(3)
        results = {"initialize": HELLO, "tools/list": {"tools": [TOOL]}, "ping": {}}
        if method == "tools/call":
            sys.stdout.buffer.write(answer(number, kind))
        elif method in results:
            said = {"jsonrpc": "2.0", "id": number, "result": results[method]}
            sys.stdout.buffer.write(json.dumps(said).encode() + b"\n")
        elif number is not None:
            fault = {"code": -32601, "message": f"no {method}"}
            said = {"jsonrpc": "2.0", "id": number, "error": fault}
            sys.stdout.buffer.write(json.dumps(said).encode() + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()

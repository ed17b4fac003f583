"""A server of releases that keeps what it is asked: `python release_server.py LOG START STEP`.

It lists the tools of every release of `adapt/adversarial.jsonl` from START in steps of STEP as they
are now, writes each call that reaches it to LOG, and answers the call that the release is about as
the release says. Any other call is answered with `moved`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from adapt.releases import RELEASES

HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "releases", "version": "1"},
}


def result_of(call: dict[str, Any], releases: list[dict[str, Any]]) -> dict[str, Any]:
    """What the server says to a call."""
    for release in releases:
        if release["call"] == call:
            said = {"type": "text", "text": release["answer"]}
            return {"content": [said], "isError": release["is_error"]}
    return {"content": [{"type": "text", "text": "moved"}]}


def main(log: str, start: str, step: str) -> None:
    """Answers requests, one a line, until there is none left."""
    releases = RELEASES[int(start) :: int(step)]
    tools = [tool for release in releases for tool in release["now"]]
    fixed: dict[str, Any] = {"initialize": HELLO, "tools/list": {"tools": tools}, "ping": {}}
    for line in sys.stdin.buffer:
        asked = json.loads(line)
        if "id" not in asked:
            continue
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": asked["id"]}
        if asked["method"] == "tools/call":
            given = asked["params"]
            call = {"tool": given["name"], "arguments": given.get("arguments", {})}
            with Path(log).open("a", encoding="utf-8") as file:
                file.write(json.dumps(call) + "\n")
            answer["result"] = result_of(call, releases)
        elif asked["method"] in fixed:
            answer["result"] = fixed[asked["method"]]
        else:
            answer["error"] = {"code": -32601, "message": f"no {asked['method']}"}
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])

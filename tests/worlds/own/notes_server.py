"""A small MCP server that keeps notes on disk: `python notes_server.py FILE`, with TITLE set."""

from __future__ import annotations

import os
import sys
from json import dumps, loads
from pathlib import Path
from typing import Any

TEXT = {"type": "string"}
TOOLS = [
    {
        "name": name,
        "description": description,
        "inputSchema": {"type": "object", "properties": dict.fromkeys(needed, TEXT),
                        "required": needed},
    }
    for name, description, needed in (
        ("add_note", "Add a note to the file.", ["text"]),
        ("where", "Say where the notes are.", []),
        ("read", "Read a file of notes.", ["path"]),
    )
]  # fmt: skip


def carry_out(name: str, given: dict[str, str]) -> Any:
    """A call of a tool."""
    notes = Path(sys.argv[1])
    if name == "add_note":
        with notes.open("a") as file:
            file.write(given["text"] + "\n")
        return {"title": os.environ["TITLE"], "notes": len(notes.read_text().splitlines())}
    if name == "where":
        return {"path": str(notes), "folder": os.getcwd(), "files": {str(notes): "notes"}}
    return {"text": Path(given["path"]).read_text()}


def main() -> None:
    """Serves over stdio."""
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "notes", "version": "1"},
    }
    for line in sys.stdin:
        asked = loads(line)
        method, params = asked["method"], asked.get("params") or {}
        answers = {"initialize": hello, "tools/list": {"tools": TOOLS}}
        if method == "tools/call":
            data = carry_out(params["name"], params.get("arguments") or {})
            answers[method] = {"content": [{"type": "text", "text": dumps(data)}]}
        if "id" in asked:
            print(dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answers[method]}))
            sys.stdout.flush()


if __name__ == "__main__":
    main()

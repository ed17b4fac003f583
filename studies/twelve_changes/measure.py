"""Twelve changes of real services, each tried with `toolshift change` as a user would.

    python studies/twelve_changes/measure.py [CHANGE ...]   # writes results.json and the table
    python studies/twelve_changes/measure.py --serve CHANGE # the service of today, over MCP
"""

from __future__ import annotations

import json
import lzma
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import yaml

HERE = Path(__file__).parent
CHANGES = yaml.safe_load((HERE / "changes.yaml").read_text())
DOCUMENTS = json.loads(lzma.decompress((HERE / "documents.json.xz").read_bytes()))


# -- the service of today --------------------------------------------------------------------------


def answered(change: str, tool: str, arguments: dict[str, Any]) -> Any:
    """What the service returns: of the first row with these arguments."""
    for name, when, result in CHANGES[change]["service"]:
        if name == tool and _holds(when, arguments):
            return result
    return {"error": f"{tool}: not found"}


def _holds(when: Any, value: Any) -> bool:
    if isinstance(when, dict):
        return isinstance(value, dict) and all(
            k in value and _holds(v, value[k]) for k, v in when.items()
        )
    if isinstance(when, list):
        return isinstance(value, list) and all(_holds(a, b) for a, b in zip(when, value))
    return str(when) == str(value)


def routes(document: dict[str, Any]) -> Iterator[tuple[str, re.Pattern[str], str]]:
    """The method, the path as a pattern, and the tool of each operation."""
    for path, methods in document["paths"].items():
        pattern = re.compile(re.sub(r"\\\{([\w-]+)\\\}", r"(?P<\1>[^/]+)", re.escape(path)) + "$")
        for method, operation in methods.items():
            if method != "parameters":
                yield method.upper(), pattern, operation["operationId"].replace("-", "_")


def over_http(change: str) -> ThreadingHTTPServer:
    """The service of an OpenAPI document, on a free port."""
    known = list(routes(DOCUMENTS[change]["old"]))

    class Service(BaseHTTPRequestHandler):
        def do(self) -> None:
            parts = urlsplit(self.path)
            text = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            body = json.loads(text) if text.startswith("{") else dict(parse_qsl(text))
            for method, pattern, tool in known:
                found = pattern.match(unquote(parts.path))
                if found and method == self.command:
                    given = {**dict(parse_qsl(parts.query)), **body, **found.groupdict()}
                    result = answered(change, tool, given)
                    break
            else:
                result = {"error": "no such route"}
            is_wrong = isinstance(result, dict) and "error" in result
            content = json.dumps(result).encode()
            self.send_response(404 if is_wrong else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_DELETE = do

        def log_message(self, *_: Any) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def over_stdio(change: str) -> None:
    """The service of a list of MCP tools, over stdio."""
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" not in asked:
            continue
        method, given = asked["method"], asked.get("params", {})
        result: dict[str, Any] = {}
        if method == "initialize":
            about = {"name": change, "version": "1"}
            result = {"protocolVersion": given["protocolVersion"], "serverInfo": about}
            result["capabilities"] = {"tools": {}}
        elif method == "tools/list":
            result = {"tools": DOCUMENTS[change]["old"]}
        elif method == "tools/call":
            said = answered(change, given["name"], given.get("arguments") or {})
            wrong = isinstance(said, dict) and "error" in said
            text = {"type": "text", "text": json.dumps(said)}
            result = {"content": [text], "isError": wrong}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)


# -- the command, as a user runs it ----------------------------------------------------------------


def world(change: str, folder: Path, port: int) -> Path:
    """The file of tasks, and the two sides beside it."""
    for side in ("old", "new"):
        (folder / f"{side}.json").write_text(json.dumps(DOCUMENTS[change][side]))
    tools: dict[str, Any] = {"mcp": f"{sys.executable} {HERE / 'measure.py'} --serve {change}"}
    if isinstance(DOCUMENTS[change]["old"], dict):
        tools = {"openapi": "old.json", "base_url": f"http://127.0.0.1:{port}"}
    tasks = [
        {"id": name, "ask": ask, "calls": _calls(call), "check": {"answer": answer}}
        for name, ask, call, _, answer in CHANGES[change]["tasks"]
    ]
    file = folder / "tasks.yaml"
    about = {"world": change, "tools": tools, "writes": CHANGES[change]["writes"], "tasks": tasks}
    file.write_text(yaml.safe_dump(about, sort_keys=False))
    return file


def _calls(call: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": name, "arguments": arguments} for name, arguments in call.items()]


def measured(change: str, keep: Path | None = None) -> dict[str, Any]:
    """What `toolshift change` says of a change and two agents, as data and as text."""
    service = over_http(change) if isinstance(DOCUMENTS[change]["old"], dict) else None
    with tempfile.TemporaryDirectory() as name:
        folder = keep or Path(name)
        folder.mkdir(exist_ok=True, parents=True)
        world(change, folder, service.server_port if service else 0)
        command = [sys.executable, "-m", "toolshift", "change", "old.json", "new.json"]
        command += ["--agent", "agents:learned", "--agent", "agents:reader"]
        command += ["--world", "tasks.yaml"]
        env = {**os.environ, "PYTHONPATH": f"{HERE}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
        done = subprocess.run(
            [*command, "--json"], cwd=folder, capture_output=True, text=True, env=env, timeout=600
        )
        if not done.stdout:
            return {"wrong": done.stderr[-600:]}
        found = json.loads(done.stdout)
    return found


def main() -> None:
    if sys.argv[1:2] == ["--serve"]:
        over_stdio(sys.argv[2])
        return
    keep = Path(sys.argv[sys.argv.index("--keep") + 1]) if "--keep" in sys.argv else None
    names = [name for name in sys.argv[1:] if name in CHANGES] or list(CHANGES)
    for change in names:
        found = measured(change, keep and keep / change)
        if "wrong" in found:
            print(change, found["wrong"])
            continue
        (Path(keep or ".") / f"{change}.json").write_text(json.dumps(found))
        rows = Counter(
            (r["severity"], r["carriage"]) for r in found["rows"] if r["severity"] != "harmless"
        )
        print(change, found["exit_code"], {" ".join(k): n for k, n in rows.items()}, len(found["questions"]))
        for agent, ends in found["outcomes"].items():
            print("  ", agent, {task: (one["clean"][:20], one["shifted"][:60]) for task, one in ends.items()})


if __name__ == "__main__":
    main()

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
        return isinstance(value, list) and all(
            _holds(a, b) for a, b in zip(when, value, strict=False)
        )
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


def measured(change: str) -> dict[str, Any]:
    """What `toolshift change` says of a change and two agents."""
    service = over_http(change) if isinstance(DOCUMENTS[change]["old"], dict) else None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        world(change, folder, service.server_port if service else 0)
        command = [sys.executable, "-m", "toolshift", "change", "old.json", "new.json"]
        command += ["--agent", "agents:learned", "--agent", "agents:reader"]
        command += ["--world", "tasks.yaml", "--json"]
        path = f"{HERE}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
        done = subprocess.run(
            command,
            check=False,
            cwd=folder,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
            timeout=600,
        )
    if service:
        service.shutdown()
    if not done.stdout:
        raise SystemExit(f"{change}: {done.stderr[-600:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def short(found: dict[str, Any]) -> dict[str, Any]:
    """What is kept of a reading."""
    rows = [
        [row[key] for key in ("severity", "carriage", "sentence", "note", "tasks", "untested")]
        for row in found["rows"]
        if row["severity"] != "harmless"
    ]
    ends = {
        agent: {task: [one["clean"], one["shifted"]] for task, one in tasks.items()}
        for agent, tasks in found["outcomes"].items()
    }
    kept = {key: found[key] for key in ("exit_code", "questions", "left_out")}
    return {**kept, "rows": rows, "harmless": len(found["rows"]) - len(rows), "outcomes": ends}


def line(change: str, found: dict[str, Any]) -> str:
    """The row of a change in the table of the page."""
    counts = Counter(row[1] for row in found["rows"])
    cells = [change, "; ".join(f"{counts[one]} {one}" for one in ("carried", "asked", "said"))]
    for tasks in found["outcomes"].values():
        kinds = Counter(_kind(*ends) for ends in tasks.values())
        cells.append(", ".join(f"{n} {kind}" for kind, n in kinds.items()))
    return f"| {' | '.join([*cells, str(found['exit_code'])])} |"


def _kind(clean: str, shifted: str) -> str:
    if clean != "passed":
        return "fail today"
    told = {"passed": "hold", "refused": "refused, rightly", "": "not tested"}
    return told.get(shifted, "fail")


def main() -> None:
    """Measures the changes that are named, or all, and prints the table."""
    if sys.argv[1:2] == ["--serve"]:
        over_stdio(sys.argv[2])
        return
    file = HERE / "results.json.xz"
    kept = json.loads(lzma.decompress(file.read_bytes())) if file.exists() else {}
    for change in sys.argv[1:] or CHANGES:
        kept[change] = short(measured(change))
        print(line(change, kept[change]), flush=True)
    text = json.dumps({name: kept[name] for name in CHANGES if name in kept})
    file.write_bytes(lzma.compress(text.encode(), preset=9))


if __name__ == "__main__":
    main()

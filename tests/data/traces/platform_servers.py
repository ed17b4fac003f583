"""Langfuse and LangSmith, as the documents of their interfaces have them, before a trace file.

No platform runs here. These servers are strict about what their documents say: who asks, which
fields exist, how pages follow each other, and that Langfuse gives inputs and outputs as texts.
"""

from __future__ import annotations

import base64
import json
import lzma
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

FILES = Path(__file__).parent / "files"
KEYS = {"public": "pk-1", "secret": "sk-1", "api": "ls-1"}
PROJECT = "7a1e0f7c-0000-4000-8000-000000000001"
BASIC = base64.b64encode(f"{KEYS['public']}:{KEYS['secret']}".encode()).decode()
GROUPS = {
    "core": ("id", "traceId", "projectId", "parentObservationId", "type", "startTime", "endTime"),
    "basic": ("name", "level", "statusMessage"),
    "io": ("input", "output"),
    "model": ("model",),
    "time": (),
}
"""Fields of an observation, by the group that asks for them."""


def observations() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(stored("langfuse_export.json.xz"))["data"]
    for row in rows:
        row["projectId"] = PROJECT
        for key in GROUPS["io"]:
            row[key] = row[key] if isinstance(row[key], str) else json.dumps(row[key])
    return rows


def runs() -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in stored("langsmith.jsonl.xz").splitlines()]
    for row in rows:
        above = row["dotted_order"].split(".")[:-1]
        row["parent_run_ids"] = [place.partition("Z")[2] for place in above]
        row["run_type"] = row["run_type"].upper()
        row["status"] = "ERROR" if row.get("error") else "SUCCESS"
    return rows


def stored(name: str) -> str:
    return lzma.decompress((FILES / name).read_bytes()).decode()


class Handler(BaseHTTPRequestHandler):
    asked: list[str]

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""

    def give(self, body: Any, status: int = 200) -> None:
        raw = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        asked = {key: values[0] for key, values in parse_qs(url.query).items()}
        if url.path == "/api/public/v2/observations":
            self.give_observations(asked)
        elif url.path == "/info":
            self.give({"version": "0.16.0", "batch_ingest_config": {}})
        elif url.path == "/sessions":
            self.give([{
                "id": PROJECT, "name": asked["name"], "tenant_id": PROJECT,
                "reference_dataset_id": None, "start_time": "2026-11-27T00:00:00+00:00",
            }])  # fmt: skip
        else:
            self.give({"detail": f"no such path: {self.path}"}, 404)

    def give_observations(self, asked: dict[str, str]) -> None:
        if self.headers.get("Authorization") != f"Basic {BASIC}":
            return self.give({"message": "Invalid credentials"}, 401)
        groups = asked.get("fields", "core,basic").split(",")
        if not set(groups) <= GROUPS.keys():
            return self.give({"message": f"no such group of fields: {groups}"}, 400)
        self.asked.append(self.path)
        first = int(base64.b64decode(asked["cursor"])) if "cursor" in asked else 0
        last = first + int(asked.get("limit", 50))
        keys = [key for group in {"core", *groups} for key in GROUPS[group]]
        every = observations()
        rows = [{key: row[key] for key in keys} for row in every[first:last]]
        follows = {"cursor": base64.b64encode(str(last).encode()).decode()}
        return self.give({"data": rows, "meta": follows if last < len(every) else {}})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/api/v2/runs/query":
            return self.give({"detail": f"no such path: {self.path}"}, 404)
        if self.headers.get("X-API-Key") != KEYS["api"] or body.get("project_ids") != [PROJECT]:
            return self.give({"detail": "Forbidden"}, 403)
        self.asked.append(self.path)
        first, every = int(body.get("cursor") or 0), runs()
        last = first + body.get("page_size", 100)
        selected = [key.lower() for key in body.get("selects") or ["ID"]]
        rows = [{key: row.get(key) for key in selected} for row in every[first:last]]
        return self.give({"items": rows, "next_cursor": str(last) if last < len(every) else None})


@contextmanager
def platform() -> Iterator[tuple[str, list[str]]]:
    """Its address, and the paths that were asked for rows."""
    asked: list[str] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Asked", (Handler,), {"asked": asked}))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()

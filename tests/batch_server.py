"""A server with the batch endpoints of OpenAI and Anthropic, as strict as the providers document.

A batch ends after it has been looked at `looks` times. It is no language model.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Body = dict[str, Any]
Answer = Callable[[Body], tuple[int, Body]]
"""The status and the body of the answer to one request."""
LOST: tuple[int, Body] = (0, {})
"""An answer that never comes: the request expires."""


class BatchServer:
    """What was sent, and what came of it."""

    def __init__(self, answer: Answer, looks: int = 2) -> None:
        self.answer, self.looks = answer, looks
        self.batches: dict[str, dict[str, Body]] = {}
        self.refuse: list[tuple[int, Body]] = []  # what the next batches are answered with
        self.forgotten: set[str] = set()
        self.alone = 0
        self.held = self.without = False
        self.junk = ""  # what stands in the place of all answers
        self._files: dict[str, bytes] = {}
        self._seen: dict[str, int] = {}
        self.url = ""

    def handle(self, method: str, path: str, headers: Any, raw: bytes) -> tuple[int, Body | bytes]:
        parts = path.strip("/").split("/")[1:]
        if self.without and ("files" in parts or "batches" in parts):
            return 404, {"error": {"message": "Not found"}}
        match method, parts:
            case "POST", ["files"]:
                return self._upload(headers, raw)
            case "POST", ["batches"]:
                return self._create(json.loads(raw))
            case "GET", ["batches", batch]:
                return self._state(batch)
            case "GET", ["files", file, "content"]:
                return 200, self.junk.encode() or self._files[file]
            case "POST", ["messages", "batches"]:
                return self._create_messages(headers, json.loads(raw))
            case "GET", ["messages", "batches", batch]:
                return self._state_of_messages(batch)
            case "GET", ["messages", "batches", batch, "results"]:
                return 200, self.junk.encode() or self._results(batch)
            case _:
                self.alone += 1
                return self.answer(json.loads(raw or b"{}"))

    # -- OpenAI --------------------------------------------------------------------------------

    def _upload(self, headers: Any, raw: bytes) -> tuple[int, Body]:
        said = b"content-type: " + headers["content-type"].encode() + b"\r\n\r\n" + raw
        fields: dict[str, bytes] = {}
        for part in BytesParser(policy=HTTP).parsebytes(said).iter_parts():
            field = part.get_param("name", header="content-disposition")
            content = part.get_payload(decode=True)
            assert isinstance(content, bytes)
            fields[str(field)] = content
        if fields.keys() != {"purpose", "file"} or fields["purpose"] != b"batch":
            return 400, {"error": {"message": f"purpose and file, not {sorted(fields)}"}}
        name = f"file-{len(self._files)}"
        self._files[name] = fields["file"]
        return 200, {"id": name, "object": "file", "purpose": "batch"}

    def _create(self, asked: Body) -> tuple[int, Body]:
        if self.refuse:
            return self.refuse.pop(0)
        if asked.keys() != {"input_file_id", "endpoint", "completion_window"}:
            return 400, {"error": {"message": f"fields {sorted(asked)}"}}
        rows = [json.loads(line) for line in self._files[asked["input_file_id"]].splitlines()]
        for row in rows:
            if (
                row.keys() != {"custom_id", "method", "url", "body"}
                or row["url"] != asked["endpoint"]
            ):
                return 400, {"error": {"message": f"a line has {sorted(row)}"}}
        return self._kept({row["custom_id"]: row["body"] for row in rows}, len(rows))

    def _kept(self, requests: dict[str, Body], count: int) -> tuple[int, Body]:
        if len(requests) != count:
            return 400, {"error": {"message": "custom_id is not unique"}}
        batch = f"batch_{len(self.batches)}"
        self.batches[batch] = requests
        return 200, {"id": batch, "status": "validating", "processing_status": "in_progress"}

    def _ended(self, batch: str) -> bool:
        self._seen[batch] = self._seen.get(batch, 0) + 1
        return self._seen[batch] >= self.looks and not self.held

    def _state(self, batch: str) -> tuple[int, Body]:
        if batch in self.forgotten or batch not in self.batches:
            return 404, {"error": {"message": "No such batch"}}
        if not self._ended(batch):
            return 200, {"id": batch, "status": "in_progress"}
        good: list[str] = []
        bad: list[str] = []
        for name, body in self.batches[batch].items():
            status, said = self.answer(body)
            line: Body = {"id": f"r_{name}", "custom_id": name, "response": None, "error": None}
            if status:
                line["response"] = {"status_code": status, "request_id": "q", "body": said}
            else:
                line["error"] = {"code": "batch_expired", "message": "It expired."}
            (good if status == 200 else bad).append(json.dumps(line))
        self._files |= {f"{batch}-out": "\n".join(good).encode()}
        self._files |= {f"{batch}-err": "\n".join(bad).encode()}
        return 200, {
            "id": batch,
            "status": "completed",
            "output_file_id": f"{batch}-out" if good else None,
            "error_file_id": f"{batch}-err" if bad else None,
        }

    # -- Anthropic -----------------------------------------------------------------------------

    def _create_messages(self, headers: Any, asked: Body) -> tuple[int, Body]:
        if not headers.get("anthropic-version") or asked.keys() != {"requests"}:
            return 400, {"type": "error", "error": {"type": "invalid_request_error"}}
        rows = asked["requests"]
        if any(row.keys() != {"custom_id", "params"} or len(row["custom_id"]) > 64 for row in rows):
            return 400, {"type": "error", "error": {"type": "invalid_request_error"}}
        return self._kept({row["custom_id"]: row["params"] for row in rows}, len(rows))

    def _state_of_messages(self, batch: str) -> tuple[int, Body]:
        ended = self._ended(batch)
        return 200, {"id": batch, "processing_status": "ended" if ended else "in_progress"}

    def _results(self, batch: str) -> bytes:
        lines = []
        for name, body in self.batches[batch].items():
            status, said = self.answer(body)
            result: Body = {"type": "succeeded", "message": said}
            if status != 200:
                result = {"type": "errored", "error": said} if status else {"type": "expired"}
            lines.append(json.dumps({"custom_id": name, "result": result}))
        return "\n".join(lines).encode()


@contextlib.contextmanager
def serving(server: BatchServer) -> Iterator[BatchServer]:
    """Serves on a free port; its `url` ends with the version."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.do_POST()

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["content-length"] or 0))
            status, said = server.handle(self.command, self.path, self.headers, raw)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(said if isinstance(said, bytes) else json.dumps(said).encode())

        def log_message(self, *_: Any) -> None:
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    server.url = f"http://127.0.0.1:{listening.server_port}/v1"
    try:
        yield server
    finally:
        listening.shutdown()
        listening.server_close()

"""A receiver of webhooks: it answers as it is told, and keeps what it was sent."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Receiver:
    """What was received; `statuses` are answered in their order, and then 200."""

    url: str = ""
    statuses: list[int] = field(default_factory=list)
    delay: float = 0.0
    headers: dict[str, str] = field(default_factory=dict)
    bodies: list[Any] = field(default_factory=list)
    headers_seen: list[dict[str, str]] = field(default_factory=list)


@contextmanager
def receiving(*statuses: int, delay: float = 0.0, **headers: str) -> Iterator[Receiver]:
    found = Receiver(statuses=list(statuses), delay=delay, headers=headers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            time.sleep(found.delay)
            body = self.rfile.read(int(self.headers["content-length"]))
            found.bodies.append(json.loads(body))
            found.headers_seen.append({key.lower(): value for key, value in self.headers.items()})
            status = found.statuses.pop(0) if found.statuses else 200
            try:
                self.send_response(status)
                for name, value in found.headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("content-length", "0")
                self.end_headers()
            except OSError:
                pass  # the client has given up

        def log_message(self, *args: Any) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    found.url = f"http://127.0.0.1:{server.server_port}/hooks/T0SECRET"
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

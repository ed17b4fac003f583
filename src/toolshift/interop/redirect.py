"""The address of this machine to which a browser comes back from a login."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from queue import Empty, Queue
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit

from toolshift.core.errors import UsageError

PATH = "/callback"
PATIENCE = 300.0
"""Seconds that a person has for a login."""
_PAGE = (
    b"<!doctype html><title>ToolShift</title><p>ToolShift has its answer. You can close this page."
)


class Redirect:
    """Listens for one redirect while the block runs.

    Args:
        port: to listen on; 0 for a free one.

    Raises:
        UsageError: where the port is in use.
    """

    def __init__(self, port: int = 0) -> None:
        self._heard: Queue[dict[str, str]] = Queue()
        try:
            self._server = HTTPServer(("127.0.0.1", port), _handler(self._heard))
        except OSError as fault:
            raise UsageError(f"--port {port}: cannot listen there ({fault.strerror})") from None
        self.url = f"http://127.0.0.1:{self._server.server_port}{PATH}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Redirect:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def wait(self) -> dict[str, str]:
        """What the authorization server has sent along."""
        try:
            heard = self._heard.get(timeout=PATIENCE)
        except Empty:
            raise UsageError(
                f"nobody logged in within {PATIENCE:g} seconds: nothing was stored"
            ) from None
        if "error" in heard:
            more = f" ({heard['error_description']})" if heard.get("error_description") else ""
            raise UsageError(f"the login was refused: {heard['error']}{more}. Nothing was stored")
        return heard


def _handler(heard: Queue[dict[str, str]]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            told = {name: values[0] for name, values in parse_qs(parts.query).items()}
            # A browser asks for more than it is sent to, such as an icon.
            known = parts.path == PATH and bool({"code", "error"} & told.keys())
            if known:
                heard.put(told)
            self.send_response(200 if known else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(_PAGE if known else b"")

        def log_message(self, *_: Any) -> None:
            """Logs nothing: the address has the code of the login."""

    return Handler

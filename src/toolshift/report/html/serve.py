"""The page of some runs with every trace, served to this machine, during the runs too.

No path of the file system is ever made from a request: there are three addresses, and episodes are
looked up by their names. Requests by another host's name are refused, so that no page of the web
can reach a run by way of a name that it has pointed here; so are those of pages of other origins.
"""

from __future__ import annotations

import ipaddress
import re
import threading
from collections.abc import Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs, urlsplit

from jinja2 import Environment

from toolshift.core.errors import UsageError
from toolshift.core.loopback import LOOPBACK, is_loopback
from toolshift.core.text import is_count
from toolshift.core.tool import JSON
from toolshift.report.figures import safe_json
from toolshift.report.html.episode_index import Book
from toolshift.report.html.episodes import fragment
from toolshift.report.html.page import make_page
from toolshift.runs.run_folder import RunFolder

LIVE = '<meta name="toolshift-live" content="live">'
POLICY = re.compile("default-src (?P<mark>'|&#39;)none(?P=mark); ")
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Server(ThreadingHTTPServer):
    """Serves the page of some runs.

    Args:
        folders: the runs.
        host: the address to listen at.
        port: 0 takes any that is free.

    Raises:
        UsageError: where it cannot listen there.
    """

    daemon_threads = True

    def __init__(
        self, folders: Sequence[RunFolder], host: str = LOOPBACK[0], port: int = 0
    ) -> None:
        self.folders = list(folders)
        self.book = Book(folders)
        self.host = host
        self._page: tuple[str, str] = ("", "")
        self._making = threading.Lock()
        try:
            super().__init__((host, port), _Request)
        except (OSError, OverflowError) as fault:
            why = getattr(fault, "strerror", None) or fault
            raise UsageError(
                f"cannot serve at {host}:{port} ({why}): name another --port (0 for any) or --host"
            ) from None

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://{self.host}:{self.server_address[1]}/"

    def page(self) -> str:
        """The page as the runs stand; made again when they have grown."""
        with self._making:
            episodes = self.book.look()
            state = f"{self.book.version} {episodes}"
            if self._page[0] != state:
                self._page = (state, live(_page(self.folders, episodes)))
            return self._page[1]

    def knows(self, host: str) -> bool:
        """Whether a Host header names this server, and not a site that points here."""
        try:
            name = (urlsplit(f"//{host}").hostname or "") if "@" not in host else ""
        except ValueError:
            return False
        if is_loopback(self.host) or is_loopback(name):
            return is_loopback(name)
        return name == self.host or _is_address(name)


def live(page: str) -> str:
    """A page that asks this server for episodes."""
    page = POLICY.sub(r"\g<0>connect-src \g<mark>self\g<mark>; ", page, count=1)
    return page.replace("<head>", f"<head>\n{LIVE}", 1)


def frame(folders: Sequence[RunFolder], keep: int = 0) -> str:
    """The episodes alone, without the report: what is there before the first one has ended."""
    here = files(__package__)
    template = here.joinpath("episodes/waiting.html").read_text(encoding="utf-8")
    css = here.joinpath("assets/page.css").read_text(encoding="utf-8")
    part = fragment(folders, keep)
    made = Environment(autoescape=True).from_string(template)
    return made.render(part=part, css=css + part.css, data=safe_json(part.data))


def _page(folders: list[RunFolder], episodes: int) -> str:
    """The report with its figures; before the first episode only the frame for what will come."""
    return make_page(folders, keep=0) if episodes else frame(folders)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class _Request(BaseHTTPRequestHandler):
    """One request."""

    server: Server
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "toolshift", ""
    timeout = 10
    """Seconds that a reader may take to send its request, or to take a piece of the answer."""

    def do_GET(self) -> None:
        """Answers by the page, by new rows, or by a trace."""
        host = self.headers.get("Host", "")
        origins = self.headers.get_all("Origin", [])
        foreign = any(origin.partition("://")[2] != host for origin in origins)
        if foreign or not self.server.knows(host):
            self._say(HTTPStatus.FORBIDDEN, "This server answers to its own address only.")
            return
        address = urlsplit(self.path)
        try:
            self._answer(address.path, parse_qs(address.query))
        except UsageError as wrong:
            self._say(HTTPStatus.INTERNAL_SERVER_ERROR, str(wrong))
        except ConnectionError:  # the browser has left the page
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Keeps the terminal quiet."""

    def _answer(self, path: str, query: dict[str, list[str]]) -> None:
        book = self.server.book
        if path == "/":
            self._send(HTTPStatus.OK, "text/html; charset=utf-8", self.server.page().encode())
        elif path == "/live/rows":
            start, version = (query.get(name, [""])[0] for name in ("from", "version"))
            self._json(book.rows(int(start) if is_count(start) else 0, version))
        elif path.startswith("/live/trace/"):
            found = book.trace(path.removeprefix("/live/trace/"))
            if found is None:
                self._say(HTTPStatus.NOT_FOUND, "There is no such episode.")
            else:
                self._json(found)
        else:
            self._say(HTTPStatus.NOT_FOUND, "There is nothing here.")

    def _json(self, value: Any) -> None:
        self._send(HTTPStatus.OK, "application/json", JSON.encode(value))

    def _say(self, status: HTTPStatus, text: str) -> None:
        self._send(status, "text/plain; charset=utf-8", text.encode())

    def _send(self, status: HTTPStatus, kind: str, content: bytes) -> None:
        self.send_response(status)
        for name, value in {**HEADERS, "Content-Type": kind}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

"""What `toolshift proxy --port` refuses has cost nothing: the real server is not started for it.

The proxy is a process of its own, and the server behind it notes each of its starts in a file.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from mcp import Client

from toolshift.connect.mcp.web import MAX_BODY

HERE = Path(__file__).parent
HEAD = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
NEWER = {**HEAD, "mcp-protocol-version": "2026-07-28"}
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
GOOD = json.dumps(HELLO).encode()


class Door(NamedTuple):
    port: int
    notes: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def starts(self) -> int:
        return len(self.notes.read_text().split()) if self.notes.exists() else 0

    def settles_at(self, starts: int) -> bool:
        """Whether so many servers start, and no more: one that starts takes a moment to note it."""
        until = time.monotonic() + 20
        while self.starts < starts and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(0.2)
        return self.starts == starts


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    notes = tmp_path_factory.mktemp("door") / "starts"
    server = f"import os; open({str(notes)!r}, 'a').write(str(os.getpid()) + ' ')"
    server += f"; exec(open({str(HERE / 'raw_server.py')!r}).read())"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "toolshift", "proxy", "--shift", "schema_noise:1"]
    command += ["--port", str(port), f"mcp:{shlex.join((sys.executable, '-c', server))}"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as proxy:
        until = time.monotonic() + 60
        while not listening(port) and time.monotonic() < until:
            time.sleep(0.05)
        try:
            yield Door(port, notes)
        finally:
            proxy.terminate()


def listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def sent(door: Door, request: dict[str, Any]) -> int:
    """The status of a request; `HEAD` and an opening by POST where it says nothing else."""
    headers = {k: v.format(port=door.port) for k, v in request.get("headers", HEAD).items() if v}
    link = HTTPConnection("127.0.0.1", door.port, timeout=30)
    link.putrequest(
        request.get("method", "POST"),
        request.get("path", "/mcp"),
        skip_host="host" in headers,
        skip_accept_encoding=True,
    )
    body = request.get("body", GOOD)
    for name, value in {**headers, "content-length": str(len(body))}.items():
        link.putheader(name, value)
    with closing(link):
        with suppress(ConnectionError):  # where the answer comes before the end of the body
            link.endheaders(body)
        return link.getresponse().status


def message(**changed: Any) -> bytes:
    said = {**HELLO, **changed}
    return json.dumps({name: value for name, value in said.items() if value is not None}).encode()


REFUSED: dict[str, tuple[int, dict[str, Any]]] = {
    "foreign host": (421, {"headers": HEAD | {"host": "evil.example"}}),
    "foreign host with the port": (421, {"headers": HEAD | {"host": "evil.example:{port}"}}),
    "host that begins as ours": (421, {"headers": HEAD | {"host": "127.0.0.1.evil.example"}}),
    "host with a user": (421, {"headers": HEAD | {"host": "localhost@evil.example"}}),
    "address of the network": (421, {"headers": HEAD | {"host": "0.0.0.0:{port}"}}),
    "foreign origin": (403, {"headers": HEAD | {"origin": "https://evil.example"}}),
    "null origin": (403, {"headers": HEAD | {"origin": "null"}}),
    "origin at another port": (403, {"headers": HEAD | {"origin": "http://localhost:1"}}),
    "origin without a port": (403, {"headers": HEAD | {"origin": "http://127.0.0.1"}}),
    "origin that begins as ours": (403, {"headers": HEAD | {"origin": "http://localhost.evil:1"}}),
    **{word: (405, {"method": word}) for word in ("PUT", "PATCH", "OPTIONS", "HEAD", "BREW")},
    "GET": (400, {"method": "GET", "body": b""}),
    "DELETE": (400, {"method": "DELETE", "body": b""}),
    "GET that takes JSON": (406, {"method": "GET", "headers": {"accept": "application/json"}}),
    "form": (415, {"headers": HEAD | {"content-type": "application/x-www-form-urlencoded"}}),
    "plain text": (415, {"headers": HEAD | {"content-type": "text/plain"}}),
    "JSON patch": (415, {"headers": HEAD | {"content-type": "application/json-patch+json"}}),
    "other case": (415, {"headers": HEAD | {"content-type": "APPLICATION/JSON"}}),
    "no content type": (415, {"headers": {"accept": HEAD["accept"]}}),
    "takes only JSON": (406, {"headers": HEAD | {"accept": "application/json"}}),
    "takes only a stream": (406, {"headers": HEAD | {"accept": "text/event-stream"}}),
    "nothing": (400, {"body": b""}),
    "no JSON": (400, {"body": b"{"}),
    "no UTF-8": (400, {"body": b'{"jsonrpc": "\xff"}'}),
    "nested": (400, {"body": b"[" * 100_000}),
    "a number": (400, {"body": b"3"}),
    "a batch": (400, {"body": b"[" + GOOD + b"]"}),
    "no version of JSON-RPC": (400, {"body": message(jsonrpc=None)}),
    "old version of JSON-RPC": (400, {"body": message(jsonrpc="1.0")}),
    "id as a list": (400, {"body": message(id=[1])}),
    "parameters as a list": (400, {"body": message(params=[1])}),
    "notice": (400, {"body": message(id=None)}),
    "answer": (400, {"body": message(method=None, params=None, result={})}),
    "ping first": (400, {"body": message(method="ping")}),
    "call first": (400, {"body": message(method="tools/call", params={"name": "act"})}),
    "initialized first": (400, {"body": message(id=None, method="notifications/initialized")}),
    "too large": (413, {"body": GOOD + b" " * MAX_BODY}),
    **{
        f"{method} in an unknown session": (
            404,
            {"method": method, "headers": HEAD | {"mcp-session-id": "x"}},
        )
        for method in ("GET", "POST", "DELETE")
    },
    "unknown version of the protocol": (
        400,
        {"headers": HEAD | {"mcp-protocol-version": "1999-01-01"}},
    ),
    "newer, foreign host": (421, {"headers": NEWER | {"host": "evil.example"}}),
    "newer, origin at another port": (403, {"headers": NEWER | {"origin": "http://localhost:1"}}),
    "newer, GET": (405, {"headers": NEWER, "method": "GET"}),
    "newer, no JSON": (400, {"headers": NEWER, "body": b"{"}),
    "newer, plain text": (415, {"headers": NEWER | {"content-type": "text/plain"}}),
    "newer, takes only a stream": (406, {"headers": NEWER | {"accept": "text/event-stream"}}),
    "newer, initialize": (400, {"headers": NEWER}),
    "root": (404, {"path": "/"}),
    "other path": (404, {"path": "/sse"}),
    "path within": (404, {"path": "/mcp/x"}),
    "path with a slash": (307, {"path": "/mcp/"}),
    "foreign host at another path": (
        421,
        {"path": "/x", "headers": HEAD | {"host": "evil.example"}},
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_refused_starts_no_server(door: Door, kind: str) -> None:
    status, request = REFUSED[kind]
    before = door.starts
    got = sent(door, request)
    time.sleep(0.1)  # for a server that is starting
    assert door.starts == before
    assert got == status


@pytest.mark.parametrize("twice", ["host: 127.0.0.1", "origin: http://127.0.0.1:{port}"])
@pytest.mark.parametrize("first", [True, False])
def test_a_header_that_is_there_twice_hides_nothing(door: Door, twice: str, first: bool) -> None:
    name, _, own = twice.format(port=door.port).partition(": ")
    foreign = "http://evil.example" if name == "origin" else "evil.example"
    lines = [f"{name}: {own}", f"{name}: {foreign}"]
    lines = lines if first else lines[::-1]
    lines += [] if name == "host" else [f"host: 127.0.0.1:{door.port}"]
    assert raw(door, lines, GOOD)[:1] == "4"


def test_a_body_that_never_comes_starts_no_server(door: Door) -> None:
    before = door.starts
    with socket.create_connection(("127.0.0.1", door.port)) as gone:
        gone.sendall(head(door, [f"host: 127.0.0.1:{door.port}"], len(GOOD)) + GOOD[:-1])
        time.sleep(0.3)
    time.sleep(0.3)
    assert door.starts == before


def head(door: Door, lines: list[str], size: int) -> bytes:
    lines = [*lines, *(f"{name}: {value}" for name, value in HEAD.items())]
    lines += [f"content-length: {size}"]
    return ("POST /mcp HTTP/1.1\r\n" + "\r\n".join(lines) + "\r\n\r\n").encode()


def raw(door: Door, lines: list[str], body: bytes) -> str:
    """The status of a request of which every line is said."""
    before = door.starts
    with socket.create_connection(("127.0.0.1", door.port), timeout=10) as link:
        link.sendall(head(door, lines, len(body)) + body)
        answer = link.recv(4096).decode()
    time.sleep(0.1)
    assert door.starts == before
    return answer.split(" ")[1]


@pytest.mark.parametrize("origin", ["http://127.0.0.1:{port}", "http://localhost:{port}", ""])
def test_a_page_of_its_own_may_ask_and_starts_one_server(door: Door, origin: str) -> None:
    before = door.starts
    assert sent(door, {"headers": HEAD | {"origin": origin}}) == 200
    assert door.settles_at(before + 1)


@pytest.mark.parametrize(("mode", "starts"), [("legacy", 1), ("auto", 2)])
def test_an_official_client_starts_what_it_uses(door: Door, mode: str, starts: int) -> None:
    """One server for its session; `auto` asks first in the newer era, which has a server too."""

    async def work() -> int:
        async with Client(f"{door.url}/mcp", mode=mode) as client:
            listed = await client.list_tools()
            await client.call_tool(listed.tools[0].name, {})
            return len(listed.tools)

    before = door.starts
    assert asyncio.run(asyncio.wait_for(work(), 60)) == 1
    assert door.settles_at(before + starts)

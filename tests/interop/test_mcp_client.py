"""What a server writes beside its messages is said in one line, and not as a traceback."""

from __future__ import annotations

import shlex
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from traceback import format_exception_only
from typing import Any
from uuid import uuid4

import anyio
import pytest
from mcp.client import stdio
from mcp.shared.message import SessionMessage
from mcp.types import ErrorData
from mcp.types.jsonrpc import JSONRPCError

from toolshift.connect.mcp.proxy import Explained
from toolshift.core.errors import UsageError, cause_of
from toolshift.core.http_limits import LIST_SECONDS
from toolshift.interop.mcp_auth import ServerAuth
from toolshift.interop.mcp_client import (
    Mended,
    Target,
    Upstream,
    decline,
    first_list,
    ignore,
    list_tools,
)


class One:
    """A stream of one item."""

    def __init__(self, item: Any) -> None:
        self.item = item

    async def receive(self) -> Any:
        return self.item


def test_a_banner_of_a_server_is_named_without_a_traceback(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    fault = stdio._parse_line("Listening on port 80\x1b[0m")
    assert anyio.run(Mended(One(fault)).receive) is fault
    assert not caplog.records
    said = capsys.readouterr().err
    assert "sent 'Listening on port 80[ESC][0m', which is no MCP message" in said
    assert said.count("\n") == 1


def test_other_faults_of_the_library_are_one_line(caplog: pytest.LogCaptureFixture) -> None:
    try:
        raise OSError("broken")
    except OSError:
        stdio.logger.exception("Reading from the MCP server's stdout failed mid-session")
    (record,) = caplog.records
    assert record.exc_info is None


class Page(BaseHTTPRequestHandler):
    """A web site that is no MCP server; its paths are the codes of its answers."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(int(self.path.strip("/")))
        self.send_header("content-type", "text/html")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *words: Any) -> None:
        """Logs nothing."""


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (200, "{url} answers with text/html: is it the address of an MCP server?"),
        (404, "HTTP 404 from {url}: is it the address of an MCP server?"),
        (500, "HTTP 500 from {url}"),
    ],
)
def test_an_address_that_is_of_no_mcp_server_is_named(code: int, said: str) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as site:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{site.server_port}/{code}"
        with pytest.raises(BaseExceptionGroup) as fault:
            anyio.run(list_tools, Target(url=url))
        site.shutdown()
    assert said.format(url=url) in str(cause_of(fault.value))


def test_what_a_server_says_itself_is_no_word_of_the_library() -> None:
    class Heard:
        """A stream of one error, or to a client that keeps what it hears."""

        def __init__(self, said: str) -> None:
            error = ErrorData(code=-32603, message=said)
            self.item = SessionMessage(JSONRPCError(jsonrpc="2.0", id=1, error=error))
            self.sent: list[str] = []

        async def receive(self) -> SessionMessage:
            return self.item

        async def send(self, item: Any) -> None:
            self.sent.append(item.message.error.message)

    async def through(said: str) -> str:
        heard = Heard(said)
        mended = Mended(heard, ServerAuth("http://127.0.0.1/mcp", None))
        await Explained(heard, "shop").send(await mended.receive())
        return heard.sent[0]

    for said in ("Connection closed", "Unexpected content type: text/html", "Not Found"):
        assert anyio.run(through, said) == said


class Repeats(Upstream):
    """A server that has one page, and names a next one that is the same."""

    def __init__(self) -> None:
        self.asked = 0

    async def ask(self, method: str, params: Any, request_id: str = "") -> dict[str, Any]:
        self.asked += 1
        return {"tools": [{"name": "act"}, {"name": "look"}], "nextCursor": "more"}


def test_a_page_that_comes_again_has_no_further_tools() -> None:
    server = Repeats()
    tools, _ = anyio.run(server.tools, None)
    assert [tool["name"] for tool in tools] == ["act", "look"]
    assert server.asked == 2


SLEEPS = f"import time; time.sleep(600)  # {uuid4()}"
"""A server that never says anything, which can be found among all processes."""


def _runs(text: str) -> bool:
    words = ["ps", "-axww", "-o", "args="]
    return text in subprocess.run(words, check=True, capture_output=True, text=True).stdout


@pytest.fixture(params=["command", "address", "sse"])
def silent(request: pytest.FixtureRequest) -> Iterator[Target]:
    """A server that takes what it is sent and answers nothing."""
    if request.param == "command":
        yield Target(command=(sys.executable, "-c", SLEEPS))
        return
    with socket.create_server(("127.0.0.1", 0)) as listens:
        url = f"http://127.0.0.1:{listens.getsockname()[1]}/mcp"
        yield Target(url=url, sse=request.param == "sse")


async def _asked(target: Target) -> None:
    """Asks as those do who keep the connection."""
    async with target.open() as streams, anyio.create_task_group() as group:
        upstream = Upstream(streams, target.name)
        await group.start(upstream.wire.run, decline, ignore)
        await first_list(upstream)


def _first(fault: BaseException) -> BaseException:
    while isinstance(fault, BaseExceptionGroup):
        fault = fault.exceptions[0]
    return fault


@pytest.mark.parametrize("ask", [list_tools, _asked], ids=["list_tools", "first_list"])
def test_a_silent_server_is_waited_for_no_longer_than_the_limit(
    silent: Target, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if silent.sse and ask is _asked:
        pytest.skip("the older transport has a limit of its own until it is open")
    monkeypatch.setenv(LIST_SECONDS, "0.5")
    with pytest.raises((UsageError, BaseExceptionGroup)) as raised:
        anyio.run(ask, silent)
    said = "".join(format_exception_only(_first(raised.value)))
    assert f"{silent.name} did not list its tools within 0.5 seconds" in said
    assert LIST_SECONDS in said
    assert not _runs(SLEEPS)


def test_a_started_server_is_ended_on_sigterm() -> None:
    words = ["lock", shlex.join(["mcp:" + sys.executable, "-c", SLEEPS])]
    with subprocess.Popen([sys.executable, "-m", "toolshift", *words]) as locking:
        until = time.monotonic() + 60
        while not _runs(f"{sys.executable} -c {SLEEPS}") and time.monotonic() < until:
            time.sleep(0.2)
        locking.terminate()
        assert locking.wait(30) == 130
    assert not _runs(f"{sys.executable} -c {SLEEPS}")

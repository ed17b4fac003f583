"""A reply that drips, or that unpacks to a mountain, ends at the limits, wherever it is read."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import threading
import time
import zlib
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from running import Run

from toolshift import Turn, UsageError
from toolshift.agents.catalog import contestants
from toolshift.agents.chat import ChatAgent
from toolshift.connect.model_proxy.app import ModelProxy
from toolshift.connect.model_proxy.settings import ShiftOptions
from toolshift.connect.program import UrlAgent
from toolshift.core.http import httpx
from toolshift.core.http_limits import MEGABYTES, SECONDS, fetch, limit
from toolshift.drift.sources import read_sources
from toolshift.interop.limited_http import limited_client
from toolshift.runs.study import play
from toolshift.runs.suite import read_task
from toolshift.shifts.stacks import read_stack
from toolshift.worlds.own.file import read_file
from toolshift.worlds.own.openapi import OpenAPISource

KINDS = ("drips", "unpacks")
PACKED = gzip.compress(b'{"a": "' + b" " * 30_000_000 + b'"}', 1)
TOOL = {"type": "function", "function": {"name": "find", "parameters": {"type": "object"}}}


class _Hostile(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answers without an end, or with what is far larger than it looks."""
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(200)
        self.send_header("content-type", "application/json")
        if self.path.startswith("/unpacks"):
            self.send_header("content-encoding", "gzip")
            self.send_header("content-length", str(len(PACKED)))
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(PACKED)
            return
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        with contextlib.suppress(OSError):
            for _ in range(100):
                self.wfile.write(b"1\r\n \r\n")
                time.sleep(0.1)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@pytest.fixture
def hostile(kind: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv(SECONDS, "0.5" if kind == "drips" else "60")
    monkeypatch.setenv(MEGABYTES, "2")
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Hostile)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


WHY = {"drips": SECONDS, "unpacks": MEGABYTES}


@pytest.mark.parametrize("kind", KINDS)
def test_a_model(kind: str, hostile: str) -> None:
    agent = ChatAgent("m", f"{hostile}/{kind}/v1", retries=0)
    failure = agent.reply(Turn([{"role": "user", "content": "Go."}], [TOOL])).failure
    assert WHY[kind] in failure


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_model_behind_the_proxy(kind: str, stream: bool, hostile: str) -> None:
    async def ask() -> str:
        proxy = ModelProxy(f"{hostile}/{kind}/v1", ShiftOptions(read_stack("tool_name_noise:1")))
        way = httpx.ASGITransport(app=proxy.app)
        async with httpx.AsyncClient(transport=way, base_url="http://proxy") as client:
            said = [{"role": "user", "content": "Go."}]
            body = {"model": "m", "messages": said, "tools": [TOOL], "stream": stream}
            return (await client.post("/v1/chat/completions", json=body)).text

    answer = asyncio.run(ask())
    assert WHY[kind] in answer


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_of_tools(kind: str, hostile: str) -> None:
    began = time.monotonic()
    with pytest.raises(UsageError, match=WHY[kind]):
        read_sources([f"{hostile}/{kind}"])
    assert time.monotonic() - began < 8


@pytest.mark.parametrize("kind", KINDS)
def test_an_agent_that_runs_already(kind: str, hostile: str) -> None:
    agent = UrlAgent(f"{hostile}/{kind}", timeout=0.5 if kind == "drips" else 60)
    record = play(contestants([agent])[0], read_task("poi/look_then_book"), fresh=False)
    assert (record.end, record.grade.void) == ("crashed", False)
    assert ("0.5 seconds" if kind == "drips" else MEGABYTES) in record.steps[-1].said


DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "Shop", "version": "1"},
    "paths": {"/drips": {"post": {"operationId": "drips"}},
              "/unpacks": {"post": {"operationId": "unpacks"}}},
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_of_an_own_world(kind: str, hostile: str, tmp_path: Path) -> None:
    (tmp_path / "api.json").write_text(json.dumps(DOCUMENT))
    tasks = "tasks: [{id: a, ask: Go., calls: [{name: drips}]}]"
    tools = f"{{openapi: api.json, base_url: '{hostile}'}}"
    (tmp_path / "tasks.yaml").write_text(f"world: shop\ntools: {tools}\n{tasks}\n")
    source = OpenAPISource(read_file(tmp_path / "tasks.yaml"))
    with pytest.raises(UsageError, match=WHY[kind]):
        source.open().call(kind, {})


def test_a_server_that_packs_unasked_is_read() -> None:
    async def got(content: bytes, encoding: str) -> bytes:
        headers = {"content-encoding": encoding}
        answer = httpx2.MockTransport(
            lambda _: httpx2.Response(200, headers=headers, stream=_Body(content))
        )
        async with limited_client(transport=answer) as client:
            return (await client.get("http://a/")).content

    plain = json.dumps({"a": "b" * 3_000_000}).encode()
    assert asyncio.run(got(gzip.compress(plain), "gzip")) == plain
    assert asyncio.run(got(zlib.compress(plain), "deflate")) == plain
    with pytest.raises(httpx2.DecodingError):
        asyncio.run(got(plain, "br"))
    with pytest.raises(httpx2.DecodingError):
        asyncio.run(got(plain, "gzip"))


class _Body(httpx2.AsyncByteStream):
    def __init__(self, content: bytes) -> None:
        self._content = content

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for place in range(0, len(self._content), 1000):
            yield self._content[place : place + 1000]


@given(st.binary(max_size=500), st.booleans())
def test_within_the_limits_a_reply_is_what_it_was(content: bytes, packed: bool) -> None:
    body = gzip.compress(content) if packed else content
    headers = [("x-a", "1"), ("set-cookie", "a=1"), ("set-cookie", "b=2")]
    headers += [("content-encoding", "gzip")] if packed else []
    answer = httpx.MockTransport(lambda _: httpx.Response(201, headers=headers, content=body))
    with httpx.Client(transport=answer) as client:
        plain, read = client.get("http://a/"), fetch(client, "GET", "http://a/")
    assert (read.status_code, read.content) == (plain.status_code, content)
    assert read.headers.get_list("set-cookie") == ["a=1", "b=2"]


@pytest.mark.parametrize("odd", ["0", "-1", "many", "nan"])
def test_a_limit_that_is_none_is_refused(odd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SECONDS, odd)
    with pytest.raises(UsageError, match=f"{SECONDS} is"):
        limit(SECONDS)


def test_a_limit_that_is_none_is_said_before_anything_is_asked(
    toolshift: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MEGABYTES, "many")
    nowhere = "http://127.0.0.1:9/v1"
    run = ("run", "--agent", "chat:m", "--base-url", nowhere, "--world", "poi", "--tasks", "1")
    proxy = ("model-proxy", "--upstream", nowhere, "--shift", "tool_name_noise:1")
    for words in (run, proxy, ("lock", nowhere)):
        code, _, err = toolshift(*words)
        assert (code, f"{MEGABYTES} is 'many'" in err) == (2, True), err


def test_json_of_a_reply_is_read() -> None:
    answer = httpx.MockTransport(lambda _: httpx.Response(200, json={"a": [1]}))
    with httpx.Client(transport=answer) as client:
        assert fetch(client, "POST", "http://a/", json={}).json() == json.loads('{"a": [1]}')

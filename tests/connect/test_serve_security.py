"""A server that is open to agents only: hosts, origins, tokens, hostile requests, lost clients."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest
from connect.serve_site import get, open_one, running, web
from mcp import Client

from toolshift.connect.serve import timeouts
from toolshift.connect.serve.control import open_episode
from toolshift.connect.serve.guard import hosts_of
from toolshift.connect.serve.session import AgentSession, SessionStore
from toolshift.core.calls import DEEPEST
from toolshift.core.errors import UsageError
from toolshift.core.step import Step
from toolshift.runs.suite import read_task

TODAY = {
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": "2026-07-28",
}
OLDER = {**TODAY, "mcp-protocol-version": "2025-11-25"}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def call(arguments: str, name: str = "find_place") -> bytes:
    """A call of today's era with arguments as they stand."""
    shell = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": name, "arguments": "ARGUMENTS", "_meta": META},
    }
    return json.dumps(shell).replace('"ARGUMENTS"', arguments).encode()


def post(address: str, body: bytes, name: str = "find_place") -> Any:
    headers = {**TODAY, "mcp-method": "tools/call", "mcp-name": name}
    with web() as client:
        return client.post(address, content=body, headers=headers)


def older_session(address: str) -> dict[str, str]:
    """Shakes hands as clients did before; returns the headers of the session."""
    about = {"protocolVersion": "2025-11-25", "capabilities": {}}
    about |= {"clientInfo": {"name": "test", "version": "1"}}
    hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": about}
    with web() as client:
        answer = client.post(address, json=hello, headers=OLDER)
        headers = {**OLDER, "mcp-session-id": answer.headers["mcp-session-id"]}
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert client.post(address, json=ready, headers=headers).status_code == 202
    return headers


def still_works(url: str) -> None:
    """An official client gets through another episode."""

    async def converse(address: str) -> None:
        async with Client(address) as client:
            await client.list_tools()
            assert not (await client.call_tool("refuse", {"reason": "not_found"})).is_error

    opened = open_one(url)
    asyncio.run(asyncio.wait_for(converse(opened["mcp_url"]), 30))
    assert get(opened["control_url"] + "/trace")["end"] == "refused"


@pytest.mark.parametrize("path", ["/episodes", "/e/{id}", "/e/{id}/mcp", "/e/{id}/grade"])
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example:80"}, 421),
        ({"host": "127.0.0.1.evil.example"}, 421),
        ({"host": ""}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://localhost.evil.example:80"}, 403),
        ({"origin": "http://localhost:3000"}, 403),
        ({"origin": "http://127.0.0.1"}, 403),
        ({"origin": "http://[::1]:x"}, 403),
    ],
)
def test_foreign_hosts_and_origins_are_refused(
    url: str, path: str, headers: dict[str, str], status: int
) -> None:
    opened = open_one(url)
    with web(url) as client:
        answer = client.post(path.format(id=opened["episode"]), headers={**TODAY, **headers})
        assert answer.status_code == status
        assert answer.json()["error"]["message"]
        own = f"localhost:{urlsplit(url).port}"
        home = {"origin": f"http://{own}", "host": own}
        assert client.get(f"/e/{opened['episode']}", headers=home).status_code == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_a_form_of_any_page_opens_no_episode(url: str, kind: str) -> None:
    """Only what is called JSON makes a browser ask before it sends a page's request."""
    body = b'{"task": "poi/visit"}'
    with web(url) as client:
        answer = client.post("/episodes", content=body, headers={"content-type": kind})
        assert (answer.status_code, "application/json" in answer.text) == (415, True)
        good = {"content-type": "Application/JSON; charset=utf-8"}
        assert client.post("/episodes", content=body, headers=good).status_code == 201


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running() as address:
        yield address


def test_only_names_can_be_allowed() -> None:
    assert "agents.example" in hosts_of("0.0.0.0", ("Agents.example",))
    for wrong in ("http://a.example", "a.example:80", "*", ""):
        with pytest.raises(UsageError, match="without scheme or port"):
            hosts_of("0.0.0.0", (wrong,))


@contextmanager
def served(*words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`toolshift serve` in a process of its own, and its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "toolshift", "serve", "--port", "0", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stdout
        said = process.stdout.readline()
        found = re.search(r":(\d+):", said)
        assert found, process.communicate()
        yield process, f"http://127.0.0.1:{found[1]}"
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(15)


def test_beyond_loopback_a_token_is_made_and_asked_for() -> None:
    with served("--host", "0.0.0.0") as (process, address):
        assert process.stderr
        ready, _, _ = select.select([process.stderr], [], [], 10)
        token = process.stderr.readline().split(": ")[1].strip()
        control = process.stderr.readline().split(": ")[1].strip()
        assert ready
        assert control != token
        assert len(token) >= 30
        for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": token}):
            with web(address, **headers) as client:
                answer = client.post("/episodes", json={"task": "poi/visit"})
                assert answer.status_code == 401
                assert answer.headers["www-authenticate"] == "Bearer"
                assert client.post("/e/x/mcp", headers=TODAY).status_code == 401
        with web(address, authorization=f"Bearer {token}") as client:
            answer = client.post("/episodes", json={"task": "poi/visit"})
            assert answer.status_code == 401
            assert "control token" in answer.text
        with web(address, authorization=f"Bearer {control}") as client:
            opened = client.post("/episodes", json={"task": "poi/visit"}).json()
            client.post(opened["control_url"] + "/finish", json={"reason": "not_found"})
            trace = client.get(opened["control_url"] + "/trace").text
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=15)
        for text in (trace, out, err):
            assert token not in text
            assert control not in text
            assert opened["episode"] not in text
            assert "Traceback" not in text
        assert process.returncode == 0


def test_nothing_secret_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    with running(token="tok-0123456789abcdef") as url:
        right = {"authorization": "Bearer tok-0123456789abcdef"}
        with web(url, **right) as client:
            opened = client.post("/episodes", json={"task": "poi/visit"}).json()
            headers = {**TODAY, "mcp-method": "tools/call", "mcp-name": "find_place"}
            client.post(opened["mcp_url"], content=call("{}"), headers=headers)
            client.post(opened["mcp_url"], content=b"\xff", headers=headers)
            client.post(opened["control_url"] + "/finish", json={"answer": "x"})
            trace = client.get(opened["control_url"] + "/trace").text
    for text in (caplog.text, trace):
        assert "tok-0123456789abcdef" not in text
        assert opened["episode"] not in text


HOSTILE = {
    "control characters": json.dumps({"name": "\x00\x1b[2J\x07\r\n", "city": "\u202e"}),
    "half a character": '{"name": "\\ud800", "city": "x"}',
    "a number out of range": '{"name": 1' + "0" * 400 + "}",
    "a number that is none": '{"name": NaN, "city": Infinity}',
    "nesting": '{"name": ' + "[" * 200 + "]" * 200 + "}",
    "deep nesting": '{"name": ' + "[" * 90_000 + "]" * 90_000 + "}",
    "a list": "[1, 2]",
    "a text": '"name"',
    "many keys": json.dumps({f"k{n}": n for n in range(5_000)}),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_arguments_get_a_clear_error(url: str, what: str) -> None:
    opened = open_one(url)
    answer = post(opened["mcp_url"], call(HOSTILE[what]))
    if answer.status_code == 200:
        assert answer.json()["result"]["isError"]
    else:
        assert answer.status_code == 400
        assert answer.json()["error"]["message"]
    session = older_session(opened["mcp_url"])
    with web() as client:
        older = client.post(opened["mcp_url"], content=call(HOSTILE[what]), headers=session)
    assert older.status_code in (200, 400)
    assert "error" in older.text.lower()
    assert client_finishes(opened)
    still_works(url)


def client_finishes(opened: dict[str, Any]) -> bool:
    """The episode itself is unharmed: it ends, and its trace can be stored and read again."""
    with web() as client:
        client.post(opened["control_url"] + "/finish", json={"reason": "not_found"})
        trace = client.get(opened["control_url"] + "/trace")
    steps = msgspec.convert(trace.json()["steps"], list[Step])
    return steps[-1].kind == "refuse"


@pytest.mark.parametrize("headers", [TODAY, OLDER])
def test_what_is_no_message_is_refused(url: str, headers: dict[str, str]) -> None:
    address = open_one(url)["mcp_url"]
    with web() as client:
        for body in (b"\xff\xfe\x00", b"", b"{", b"[]", b"7", b'{"jsonrpc": "1.0"}'):
            answer = client.post(address, content=body, headers=headers)
            assert 400 <= answer.status_code < 500
            assert answer.text
    still_works(url)


def test_bodies_of_10_mb_are_refused_declared_or_not(url: str) -> None:
    opened = open_one(url)
    large = json.dumps({"name": "x" * 10_000_000})
    for address in (opened["mcp_url"], opened["control_url"] + "/finish"):
        assert post(address, call(large)).status_code == 413

        def chunks() -> Iterator[bytes]:
            for _ in range(160):
                yield b"x" * 65536

        with web() as client:
            try:
                answer = client.post(address, content=chunks(), headers=TODAY)
                assert answer.status_code == 413
            except OSError:  # it hung up before all was sent
                pass
    still_works(url)


def test_arguments_that_no_request_could_carry_are_cut_too() -> None:
    """As they come over standard input, where nothing limits a line."""
    nested: Any = 1
    for _ in range(DEEPEST + 1):
        nested = [nested]
    for given in ({"a": "x" * 10_000_000}, {"a": nested}, {"a": "\ud800"}, [1]):
        seat = AgentSession(open_episode(read_task("poi/visit")))
        heard = seat.call("find_place", given)
        assert not heard.ok
        assert "malformed_arguments" in heard.text
        assert len(str(seat.episode.steps[0].arguments)) < 200


def test_a_client_that_vanishes_leaves_the_server_healthy(url: str) -> None:
    opened = open_one(url)
    place = urlsplit(url)
    for half in (
        b"POST /episodes HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{",
        b"POST /epi",
        b"\x16\x03\x01\x00",
    ):
        with socket.create_connection((place.hostname, place.port), timeout=5) as line:
            line.sendall(half)
    session = older_session(opened["mcp_url"])
    with web() as client, client.stream("GET", opened["mcp_url"], headers=session) as stream:
        assert stream.status_code == 200  # and now it is left without a word

    async def vanish() -> None:
        async with Client(opened["mcp_url"]) as today, today.listen(tools_list_changed=True):
            await today.list_tools()
            raise ConnectionResetError

    with pytest.raises(ExceptionGroup):
        asyncio.run(vanish())
    still_works(url)
    assert client_finishes(opened)


def test_idle_episodes_expire_and_the_house_can_be_full() -> None:
    with running(SessionStore(most=2)) as url, web(url) as client:
        opened = [open_one(url) for _ in range(2)]
        assert client.post("/episodes", json={"task": "poi/visit"}).status_code == 503
        assert client.delete(opened[0]["control_url"]).status_code == 204
        open_one(url)
    with running(SessionStore(idle=1.0)) as url, web(url) as client:
        opened = [open_one(url) for _ in range(2)]
        start = time.monotonic()
        while client.get(opened[0]["control_url"]).status_code == 200:
            assert time.monotonic() - start < 5
            time.sleep(0.25 if time.monotonic() - start < 1 else 1.6)
        gone = client.post(opened[1]["mcp_url"], headers=TODAY, content=call("{}"))
        assert gone.status_code == 404
        assert "expired" in gone.json()["error"]["message"]
        still_works(url)


def test_a_study_s_agent_cannot_look_into_its_episode() -> None:
    store = SessionStore()
    with running(store, own=False) as url, web(url) as client:
        name = store.open(AgentSession(open_episode(read_task("poi/visit", "identity_erasure:2"))))
        assert client.post("/episodes", json={"task": "poi/visit"}).status_code == 404
        here = client.get(f"/e/{name}")
        assert "identity_erasure" not in here.text
        client.post(f"/e/{name}/finish", json={"answer": "x"})
        for path in ("grade", "trace"):
            assert client.get(f"/e/{name}/{path}").status_code == 404
        assert client.delete(f"/e/{name}").status_code == 405


def test_the_address_in_use_is_a_usage_error(tmp_path: Path) -> None:
    from toolshift.connect.serve.server import bind

    first = bind("127.0.0.1", 0)
    with pytest.raises(UsageError, match="try another --port"):
        bind("127.0.0.1", first.getsockname()[1])
    with pytest.raises(UsageError, match="cannot listen"):
        bind("no.such.host.invalid", 80)
    first.close()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"size": 10_001}, "$.size"),
        ({"seed": -1}, "$.seed"),
        ({"trial": 2**31}, "$.trial"),
        ({"shifts": "+".join(["identity_erasure:2"] * 100)}, "$.shifts"),
        ({"task": "poi/visit/" + "9" * 900}, "at most 9 digits"),
        ({"task": "poi/visit/²"}, "at most 9 digits"),
        ({"task": "poi/visit/" + "9" * 5000}, "$.task"),
    ],
)
def test_an_episode_that_asks_for_too_much_is_refused(asked: dict[str, Any], said: str) -> None:
    with running() as url, web(url) as client:
        answer = client.post("/episodes", json={"task": "poi/visit", **asked})
    assert answer.status_code == 400, answer.text
    assert said in answer.json()["error"]["message"]
    assert len(answer.content) < 1000


def test_an_agent_that_has_its_address_alone_sees_no_grade_and_no_twin() -> None:
    with running(control_token="tok-0123456789") as url:
        owner = {"authorization": "Bearer tok-0123456789"}
        with web(url) as agent, web(url, **owner) as opener:
            asked = {"task": "poi/visit/3", "shifts": "identity_erasure:2"}
            opened = opener.post("/episodes", json=asked).json()
            base = opened["mcp_url"].removesuffix("/mcp")
            assert agent.get(base).status_code == 200
            assert agent.post(f"{base}/finish", json={"reason": "not_found"}).status_code == 200
            for wrong in ({}, {"authorization": "Bearer x"}, {"authorization": "tok-0123456789"}):
                told = [
                    agent.post("/episodes", json=asked, headers=wrong),
                    agent.get(f"{base}/grade", headers=wrong),
                    agent.get(f"{base}/trace", headers=wrong),
                    agent.delete(base, headers=wrong),
                ]
                assert [answer.status_code for answer in told] == [401] * 4
            assert opener.get(f"{base}/grade").status_code == 200
            assert opener.get(f"{base}/trace").json()["end"] == "refused"
            assert opener.delete(base).status_code == 204


def test_a_client_that_is_slow_to_ask_loses_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that waits for an answer, or holds a stream, does not."""
    monkeypatch.setattr(timeouts, "SECONDS", {timeouts.HEAD: 0.4, timeouts.BODY: 0.4})
    whole = b"GET /e/x HTTP/1.1\r\nhost: localhost\r\n\r\n"
    body = b"POST /episodes HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    body += b"content-length: 100\r\n\r\n{"
    with running() as url:
        port = urlsplit(url).port
        late = [(b"", b"408"), (b"GET / HT", b"408"), (whole + b"GET", b"404"), (body, b"")]
        for sent, said in late:
            with socket.create_connection(("127.0.0.1", port), timeout=15) as slow:
                slow.sendall(sent)
                heard = b"".join(iter(lambda one=slow: one.recv(4096), b""))  # type: ignore[misc]
            assert said in heard
            assert heard.count(b"HTTP/1.1 404") == (sent.startswith(whole))
        still_works(url)

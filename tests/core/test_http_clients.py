"""Clients with one connection each: cookies of all, connections that are used again, a limit."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from toolshift.core.http_clients import Clients
from toolshift.core.http_limits import fetch


class _Server(ThreadingHTTPServer):
    connections = most_at_once = at_once = 0
    lock = threading.Lock()
    meet: threading.Barrier | None = None


class _Counting(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def setup(self) -> None:
        super().setup()
        with self.server.lock:
            self.server.connections += 1

    def do_POST(self) -> None:
        """Sends a cookie, and the one that came."""
        self.rfile.read(int(self.headers.get("content-length", 0)))
        with self.server.lock:
            self.server.at_once += 1
            self.server.most_at_once = max(self.server.most_at_once, self.server.at_once)
        if self.server.meet is not None:
            self.server.meet.wait(20)
        came = self.headers.get("cookie", "").encode()
        with self.server.lock:
            self.server.at_once -= 1
        self.send_response(200)
        self.send_header("set-cookie", "machine=7")
        self.send_header("content-length", str(len(came)))
        self.end_headers()
        self.wfile.write(came)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@pytest.fixture
def server() -> Iterator[_Server]:
    made = _Server(("127.0.0.1", 0), _Counting)
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


def send(clients: Clients, server: _Server) -> bytes:
    with clients.lent() as client:
        return fetch(
            client, "POST", f"http://127.0.0.1:{server.server_port}/", content=b"x"
        ).content


def test_a_cookie_of_one_connection_is_sent_by_all(server: _Server) -> None:
    clients = Clients(3, verify=False, trust_env=False)
    assert send(clients, server) == b""
    server.meet = threading.Barrier(3)
    with ThreadPoolExecutor(3) as threads:
        came = list(threads.map(lambda _: send(clients, server), range(3)))
    assert came == [b"machine=7"] * 3
    clients.close()


def test_a_connection_is_used_again(server: _Server) -> None:
    clients = Clients(8, verify=False, trust_env=False)
    for _ in range(5):
        send(clients, server)
    assert server.connections == 1
    clients.close()


def test_no_more_connections_than_the_limit(server: _Server) -> None:
    clients = Clients(2, verify=False, trust_env=False)
    with ThreadPoolExecutor(12) as threads:
        list(threads.map(lambda _: send(clients, server), range(24)))
    assert server.connections <= 2
    assert server.most_at_once <= 2
    clients.close()


def test_a_client_comes_back_after_a_fault(server: _Server) -> None:
    clients = Clients(1, verify=False, trust_env=False)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), clients.lent():
            _ = 1 / 0
    send(clients, server)
    clients.close()
    with pytest.raises(RuntimeError):
        send(clients, server)


def test_settings_and_proxies_of_the_environment_are_those_of_each(
    server: _Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    clients = Clients(2, verify=False, headers={"x-own": "1"})
    for client in (clients.make(), clients.make()):
        assert client.headers["x-own"] == "1"
        reply = fetch(client, "POST", "http://nowhere.invalid/", content=b"x")
        assert reply.status_code == 200  # the proxy has answered
    clients.close()

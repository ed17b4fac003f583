"""Alarms reach a real server, are posted again where that may help, and never stop the watch."""

from __future__ import annotations

import socket
import time

import pytest
from watch.receiver import receiving

from toolshift.core.errors import UsageError
from toolshift.watch.webhook import WAITING, Webhook


def test_messages_arrive_in_their_order_with_headers() -> None:
    with receiving() as server:
        with Webhook(server.url, {"Authorization": "Bearer abc"}) as hook:
            for number in range(20):
                hook.send({"n": number})
        assert [body["n"] for body in server.bodies] == list(range(20))
        assert (hook.sent, hook.lost) == (20, 0)
        assert server.headers_seen[0]["authorization"] == "Bearer abc"
        assert server.headers_seen[0]["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("statuses", "posts", "sent"),
    [
        ((503, 500), 3, 1),
        ((429,), 2, 1),
        ((500, 500, 500), 3, 0),
        ((404,), 1, 0),
        ((301,), 1, 0),
    ],
    ids=str,
)
def test_what_may_pass_is_posted_again(statuses: tuple[int, ...], posts: int, sent: int) -> None:
    with receiving(*statuses) as server:
        with Webhook(server.url, retries=2, wait=0.01) as hook:
            hook.send({"n": 1})
        assert len(server.bodies) == posts
        assert (hook.sent, hook.lost) == (sent, 1 - sent)
        assert hook.fault == ("" if sent else f"HTTP {statuses[-1]}")


def test_a_server_says_how_long_to_wait() -> None:
    with receiving(429, retry_after="1") as server:
        begun = time.monotonic()
        with Webhook(server.url, wait=0.01) as hook:
            hook.send({"n": 1})
        assert time.monotonic() - begun >= 1
        assert hook.sent == 1


def test_a_server_that_is_gone_or_slow_costs_the_message_alone() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/hooks/T0SECRET"
    with Webhook(url, retries=1, wait=0.01) as gone:
        begun = time.monotonic()
        gone.send({"n": 1})
        assert time.monotonic() - begun < 0.5, "it is posted beside the watch"
    assert (gone.sent, gone.lost, gone.fault) == (0, 1, "ConnectError")
    assert "SECRET" not in gone.name
    with receiving(delay=0.5) as server:
        with Webhook(server.url, timeout=0.05, retries=0) as slow:
            slow.send({"n": 1})
        assert (slow.lost, slow.fault) == (1, "ReadTimeout")


def test_the_end_does_not_wait_for_ever() -> None:
    with receiving(delay=1.0) as server:
        hook = Webhook(server.url, timeout=5)
        for number in range(WAITING + 5):
            hook.send({"n": number})
        begun = time.monotonic()
        hook.close(patience=0.2)
        assert time.monotonic() - begun < 0.9
        assert hook.sent + hook.lost == WAITING + 5


@pytest.mark.parametrize("url", ["example.com/hook", "ftp://example.com", "http://"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="http:// or https://"):
        Webhook(url)

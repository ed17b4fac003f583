"""A real server on a free port for tests, and a client that repeats what an agent did."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import httpx2
from mcp import Client

from toolshift.connect.serve.server import bind, web_server
from toolshift.connect.serve.session import SessionStore
from toolshift.connect.serve.site import Site
from toolshift.core.http import httpx
from toolshift.core.message import ASK_USER, FINAL_ANSWER, REFUSE
from toolshift.core.step import Step

ERAS = {"auto": "2026-07-28", "legacy": "2025-11-25"}
"""How the official client is told which era to speak, and what it then speaks."""
SPOKEN = {"ask": (ASK_USER, "question"), "answer": (FINAL_ANSWER, "answer")}


@contextlib.contextmanager
def running(store: SessionStore | None = None, **site: Any) -> Iterator[str]:
    """Serves in a thread until the block ends; yields the address."""
    listener = bind("127.0.0.1", 0)
    server = web_server(Site(SessionStore() if store is None else store, **site))
    thread = threading.Thread(target=lambda: server.run(sockets=[listener]), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        assert not thread.is_alive()


def web(url: str = "", **headers: str) -> httpx.Client:
    return httpx.Client(base_url=url, headers=headers, trust_env=False, timeout=30)


def shared_http() -> httpx2.AsyncClient:
    """One for many clients of the official library: each of its own costs 40 ms to make."""
    limits = httpx2.Limits(max_connections=None)
    return httpx2.AsyncClient(trust_env=False, verify=False, timeout=60, limits=limits)


def open_one(url: str, task: str = "poi/visit", shifts: str = "", **more: Any) -> dict[str, Any]:
    with web(url) as client:
        answer = client.post("/episodes", json={"task": task, "shifts": shifts, **more})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


def get(address: str) -> Any:
    with web() as client:
        answer = client.get(address)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def repeat(client: Client, steps: Sequence[Step]) -> list[str]:
    """Does over MCP what the steps of a trace did; returns what came back."""
    heard = []
    for step in steps:
        if step.kind == "budget":
            continue
        name, arguments = step.name, step.arguments
        if step.kind in SPOKEN:
            name, key = SPOKEN[step.kind]
            arguments = {key: step.said}
        elif step.kind == "refuse":
            name, arguments = REFUSE, {"reason": step.name}
        assert isinstance(arguments, dict)
        result = await client.call_tool(name, arguments)
        assert result.is_error is (step.kind == "call" and not step.ok)
        heard.append("".join(part.text for part in result.content))
    return heard

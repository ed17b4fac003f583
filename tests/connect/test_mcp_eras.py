"""What MCP 2026-07-28 asks of tools that change: by deployment, or said; told to listeners."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from itertools import pairwise
from typing import Any

import pytest
from connect.conformance.server import server as reference
from connect.serve_site import open_one, running
from connect.shop_server import TOOLS, Shop, shop_server
from connect.stdio_program import stdio_program, stdio_shop
from connect.test_proxy_wire import served
from connect.test_serve import midway
from mcp import Client
from mcp.client._memory import InMemoryTransport

from toolshift.connect.list_changed import CHANGES
from toolshift.connect.mcp.deployment import Deployment, read_deployment
from toolshift.connect.mcp.proxy import in_process
from toolshift.connect.mcp.shifted_server import ShiftOptions
from toolshift.core.errors import UsageError
from toolshift.core.http import httpx
from toolshift.core.scene import Applied
from toolshift.interop.mcp_client import Target

MOVED = (Applied("tool_removed_midway", 3),)
CHANGED = "notifications/tools/list_changed"
TRUE = {tool["name"] for tool in TOOLS}


def run(work: Any, how: ShiftOptions, mode: str = "auto", **client: Any) -> Any:
    async def go() -> Any:
        transport = in_process(Target(transport=InMemoryTransport(shop_server(Shop()))), how)
        async with Client(transport, mode=mode, **client) as session:
            return await asyncio.wait_for(work(session), 60)

    return asyncio.run(go())


async def first_page(client: Client) -> Any:
    """The list of tools as JSON, which a shifted server shows on one page."""
    return (await client.list_tools()).model_dump(by_alias=True, exclude_none=True)


def names(page: dict[str, Any]) -> set[str]:
    return {tool["name"] for tool in page["tools"]}


@pytest.mark.parametrize(("mode", "told"), [("auto", 0), ("legacy", 1)], ids=["newer", "older"])
def test_a_change_is_announced_unasked_to_older_clients_alone(mode: str, told: int) -> None:
    heard: list[str] = []

    async def listen(message: Any) -> None:
        heard.append(getattr(message, "method", ""))

    async def work(client: Client) -> Any:
        before = await first_page(client)
        for _ in range(2):
            await client.call_tool("read_note", {"name": "x"})
        return before, await first_page(client)

    before, after = run(work, ShiftOptions(MOVED), mode, message_handler=listen)
    assert names(before) != names(after)
    assert heard.count(CHANGED) == told


def test_a_change_by_calls_says_that_it_is_one() -> None:
    async def work(client: Client) -> Any:
        before = await first_page(client)
        calls = [await client.call_tool("read_note", {"name": "x"}) for _ in range(2)]
        return before, [call.meta or {} for call in calls], await first_page(client)

    before, calls, after = run(work, ShiftOptions(MOVED))
    assert CHANGES not in before.get("_meta", {})
    assert [call[CHANGES] for call in calls if CHANGES in call] == [
        {"revision": 1, "changed_by": "this call"}
    ]
    assert after["_meta"][CHANGES] == {"revision": 1, "changed_by": "calls"}
    for page in (before, after):
        assert (page["ttlMs"], page["cacheScope"]) == (0, "private")
    _, older, page = run(work, ShiftOptions(MOVED), "legacy")
    assert not any(CHANGES in meta for meta in (*older, page.get("_meta", {})))


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_by_deployment_no_call_changes_the_tools(mode: str) -> None:
    heard: list[str] = []

    async def listen(message: Any) -> None:
        heard.append(getattr(message, "method", ""))

    async def work(client: Client) -> Any:
        before = await first_page(client)
        for _ in range(6):
            await client.call_tool("read_note", {"name": "x"})
        assert await first_page(client) == before
        assert CHANGED not in heard
        deployment.happen()
        while names(after := await first_page(client)) == names(before):
            await asyncio.sleep(0.01)
        gone = min(TRUE - names(after))
        return after, await client.call_tool(gone, {})

    deployment = Deployment()
    how = ShiftOptions(MOVED, deployment=deployment)
    after, call = run(work, how, mode, message_handler=listen)
    assert call.is_error  # the old name
    assert heard.count(CHANGED) == (mode == "legacy")
    if mode == "auto":
        assert after["_meta"][CHANGES] == {"revision": 1, "changed_by": "a deployment"}


def test_listeners_hear_of_a_deployment() -> None:
    async def work(client: Client) -> Any:
        await client.list_tools()
        async with client.listen(tools_list_changed=True) as changes:
            deployment.happen()
            return type(await anext(aiter(changes))).__name__

    deployment = Deployment()
    assert run(work, ShiftOptions(MOVED, deployment=deployment)) == "ToolsListChanged"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_after_a_deployment_a_session_begins_with_the_new_tools(mode: str) -> None:
    how = ShiftOptions(MOVED, deployment=Deployment(after=0))
    assert names(run(first_page, how, mode)) != TRUE


def listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="the system has no SIGHUP")
def test_a_signal_deploys_in_a_program_for_all_its_clients() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["--shift", "tool_removed_midway:3", "--deploy", "signal", "--port", str(port)]
    command = [
        sys.executable,
        "-m",
        "toolshift",
        "proxy",
        *words,
        f"mcp:{shlex.join(stdio_shop())}",
    ]

    async def work() -> None:
        url = f"http://127.0.0.1:{port}/mcp"
        async with Client(url) as one, Client(url, mode="legacy") as other:
            before = names(await first_page(one))
            assert names(await first_page(other)) == before == TRUE
            async with one.listen(tools_list_changed=True) as changes:
                os.kill(proxy.pid, signal.SIGHUP)
                await asyncio.wait_for(anext(aiter(changes)), 30)
            after = names(await first_page(one))
            assert names(await first_page(other)) == after != before

    with subprocess.Popen(command, stderr=subprocess.PIPE) as proxy:
        assert proxy.stderr is not None
        try:
            assert b"Serving" in proxy.stderr.readline()
            while not listening(port):
                time.sleep(0.05)
            asyncio.run(asyncio.wait_for(work(), 60))
        finally:
            proxy.terminate()


@pytest.mark.parametrize("text", ["soon", "-1", "nan", "inf", "1e99", ""])
def test_a_deployment_is_at_a_time_or_a_signal(text: str) -> None:
    with pytest.raises(UsageError, match="give seconds"):
        read_deployment(text)


def test_an_episode_says_which_of_its_calls_changed_the_tools() -> None:
    task, record = midway()

    async def converse(address: str, mode: str) -> Any:
        async with Client(address, mode=mode) as client:
            pages, found = [await first_page(client)], []
            for step in record.steps:
                if step.kind == "call" and isinstance(step.arguments, dict):
                    result = await client.call_tool(step.name, step.arguments)
                    found.append((result.meta or {}).get(CHANGES))
                    pages.append(await first_page(client))
            return pages, found

    with running() as url:
        here = [open_one(url, task, "tool_removed_midway:2")["mcp_url"] for _ in range(2)]
        pages, found = asyncio.run(converse(here[0], "auto"))
        older, unsaid = asyncio.run(converse(here[1], "legacy"))
    changed = [one for one in found if one]
    assert changed[0] == {"revision": 1, "changed_by": "this call"}
    for (before, after), said in zip(pairwise(pages), found, strict=True):
        assert (before["tools"] != after["tools"]) is bool(said)
    assert CHANGES not in pages[0].get("_meta", {})
    assert pages[-1]["_meta"][CHANGES] == {"revision": len(changed), "changed_by": "calls"}
    assert {(page["ttlMs"], page["cacheScope"]) for page in pages} == {(0, "private")}
    assert not any(unsaid)
    assert not any(CHANGES in page.get("_meta", {}) for page in older)


def test_every_episode_says_alike_that_its_tools_may_change() -> None:
    async def discovered(address: str) -> Any:
        async with Client(address) as client:
            answer = client.session.discover_result
            return answer.model_dump(by_alias=True, exclude_none=True)

    with running() as url:
        clean, moving = (
            asyncio.run(discovered(open_one(url, "poi/visit/0", shifts)["mcp_url"]))
            for shifts in ("", "identity_erasure:2")
        )
    assert clean["_meta"][CHANGES] == moving["_meta"][CHANGES]
    assert "calls" in clean["_meta"][CHANGES]
    assert (clean["ttlMs"], clean["cacheScope"]) == (0, "private")


NEWER = "2026-07-28"


def request(method: str, **params: Any) -> dict[str, Any]:
    meta = {
        "io.modelcontextprotocol/protocolVersion": NEWER,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}


async def posted(url: str, body: dict[str, Any], **headers: str) -> httpx.Response:
    base = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": NEWER,
        "mcp-method": body["method"],
    }
    async with httpx.AsyncClient(timeout=60) as client:
        return await client.post(url, json=body, headers=base | headers)


@pytest.mark.filterwarnings("ignore:The logging capability")  # which its tests ask for
@pytest.mark.parametrize("stack", [(), (Applied("parameter_rename", 3),)], ids=["plain", "shifted"])
def test_headers_that_repeat_arguments_are_checked_as_the_tools_are_shown(stack: Any) -> None:
    async def work(url: str) -> list[int]:
        await posted(url, request("server/discover"))
        listed = (await posted(url, request("tools/list"))).text
        assert "Region" in listed
        found = next(t for t in tools_in(listed) if "Region" in json.dumps(t))
        (name,) = found["inputSchema"]["properties"]
        call = request("tools/call", name=found["name"], arguments={name: "west"})
        named = {"mcp-name": found["name"]}
        answers = [
            await posted(url, call, **named, **{"mcp-param-region": "west"}),
            await posted(url, call, **named, **{"mcp-param-region": "east"}),
            await posted(url, call, **named),
            await posted(url, request("initialize")),
        ]
        return [answer.status_code for answer in answers]

    target = Target(command=stdio_program(reference))
    with served(target, *stack) as url:
        assert asyncio.run(work(url)) == [200, 400, 400, 404]


def tools_in(answer: str) -> list[dict[str, Any]]:
    line = next((one[5:] for one in answer.splitlines() if one.startswith("data:")), answer)
    found: list[dict[str, Any]] = json.loads(line)["result"]["tools"]
    return found

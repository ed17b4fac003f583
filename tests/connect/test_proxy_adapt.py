"""`proxy --adapt` says what has changed and what may help, and moves no call and changes no result.

The official client, the proxy as a program, and a server as another one.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from adapt.releases import RELEASES
from connect.test_proxy import all_tools, shifting, texts, visit
from connect.test_proxy_wire import program
from mcp import Client
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError

from toolshift.adapt.failures import TITLE
from toolshift.adapt.lessons import read_lessons
from toolshift.connect.mcp.shifted_server import ADAPTED, TOLD
from toolshift.connect.trace import Trace
from toolshift.drift.lock import lock_tools, write_lock

SERVER = Path(__file__).with_name("release_server.py")
STEP = 3
"""Processes for each way; every one of them serves a part of the releases."""


def behind_proxy(start: int, folder: Path, *more: str) -> tuple[list[Any], list[Any], list[Any]]:
    """The calls that the server received, what the client was answered, and what it was listed."""
    lock, log = folder / "known.lock", folder / "received.jsonl"
    known = [tool for release in RELEASES[start::STEP] for tool in release["was"]]
    write_lock(lock, lock_tools(known))
    server = (sys.executable, str(SERVER), str(log), str(start), str(STEP))

    async def work() -> tuple[list[Any], list[Any]]:
        words = program(server, more=("--adapt", str(lock), *more))
        behind = stdio_client(words.model_copy(update={"env": dict(os.environ)}))
        async with Client(behind) as client:
            listed = (await client.list_tools()).tools
            heard = []
            for release in RELEASES[start::STEP]:
                call = release["call"]
                heard.append(await client.call_tool(call["tool"], call["arguments"]))
            return heard, [tool.model_dump(by_alias=True, exclude_none=True) for tool in listed]

    heard, listed = asyncio.run(asyncio.wait_for(work(), 120))
    return [json.loads(line) for line in log.read_text().splitlines()], heard, listed


@pytest.mark.parametrize("start", range(STEP))
@pytest.mark.parametrize("more", [(), ("--rewrite",)], ids=["default", "rewrite"])
def test_no_release_moves_a_call_or_changes_a_result(
    start: int, more: tuple[str, ...], tmp_path: Path
) -> None:
    releases = RELEASES[start::STEP]
    received, heard, _ = behind_proxy(start, tmp_path, *more)
    assert received == [release["call"] for release in releases]
    for result, release in zip(heard, releases, strict=True):
        first, *beside = result.content
        assert first.text == release["answer"]
        assert first.meta is None
        assert not beside or release["is_error"]
        assert all(TOLD in part.meta and part.text.startswith(TITLE) for part in beside)
    assert [result.is_error for result in heard] == [release["is_error"] for release in releases]


def test_what_has_changed_stands_in_the_descriptions_and_nothing_else_is_changed(
    tmp_path: Path,
) -> None:
    _, _, listed = behind_proxy(0, tmp_path)
    truth = [tool for release in RELEASES[::STEP] for tool in release["now"]]
    said = {tool["name"]: tool.pop("description") for tool in listed}
    was = {tool["name"]: tool.pop("description") for tool in map(dict, truth)}
    bare = [{key: tool[key] for key in tool if key != "description"} for tool in truth]
    assert listed == bare
    assert all(text.startswith(was[name]) for name, text in said.items())
    known = {tool["name"] for release in RELEASES[::STEP] for tool in release["was"]}
    first = next(iter(said.values()))
    assert known - said.keys()
    for name in known - said.keys():
        assert f"`{name}` is gone" in first or re.search(f"`{name}` (is|may be) `", str(said))
    for name in said.keys() - known:
        assert re.search(f"`{name}`( with .*)? (is new|now)", said[name])


async def listing(client: Client) -> Any:
    return await all_tools(client)


def test_where_nothing_has_changed_the_list_is_as_the_server_gave_it() -> None:
    plain = visit(listing)
    assert visit(listing, shifting(lock=lock_tools(plain.values()))) == plain


def test_a_note_stands_on_the_right_page_of_a_list_in_pages() -> None:
    plain = visit(listing)
    lock = lock_tools([tool for name, tool in plain.items() if name != "grow"] + [OLD])
    found = visit(listing, shifting(lock=lock))
    assert "`old_tool` is gone" in found["find_orders"]["description"]
    assert "`grow` is new" in found["grow"]["description"]
    others = plain.keys() - {"find_orders", "grow"}
    assert {name: found[name] for name in others} == {name: plain[name] for name in others}


OLD = {"name": "old_tool", "inputSchema": {"type": "object"}}


@pytest.mark.parametrize(
    ("old", "param"), [("getOrder", "order_ref"), ("orders.get", "OrderRef"), ("get_order_v2", "")]
)
@pytest.mark.parametrize("rewrite", [True, False])
def test_only_rewrite_takes_a_call_by_a_name_of_the_same_words(
    old: str, param: str, rewrite: bool
) -> None:
    tools = visit(listing)
    text = json.dumps({**tools["get_order"], "name": old})
    known = json.loads(text.replace('"order_ref"', f'"{param or "order_ref"}"'))
    lock = lock_tools([known, *(t for name, t in tools.items() if name != "get_order")])

    async def by_heart(client: Client) -> Any:
        try:
            answer = await client.call_tool(old, {param or "order_ref": "R-1001"})
            return texts(answer), (answer.meta or {}).get(ADAPTED)
        except MCPError as fault:
            return fault.message, None

    answer, told = visit(by_heart, shifting(lock=lock, rewrite=rewrite))
    assert ("42.5" in str(answer), f"unknown tool {old}" in str(answer)) == (rewrite, not rewrite)
    assert (told or {}).get("made", {}).get("tool") == ("get_order" if rewrite else None)
    if not rewrite:  # the message of the server stands first, and is whole
        assert re.match(rf"[^\n]*unknown tool {re.escape(old)}[^\n]*\n\n{TITLE}", answer)
        assert f"`{old}` is `get_order` now" in answer


def test_a_memory_keeps_over_sessions_which_guess_was_followed_by_failures(tmp_path: Path) -> None:
    tools = visit(listing)
    known = {**tools["get_order"], "name": "order_details"}
    lock = lock_tools([known, *(t for name, t in tools.items() if name != "get_order")])
    file = tmp_path / "memory.json"

    async def fails(client: Client) -> Any:
        found = await all_tools(client)
        with suppress(MCPError):
            await client.call_tool("get_order", {"order_ref": "no such order"})
        return "`order_details` may be `get_order` now" in found["get_order"]["description"]

    guessed = []
    for _ in range(3):
        how = shifting(lock=lock, lessons=read_lessons(file), memory=file)
        guessed.append(visit(fails, how))
    assert guessed == [True, True, False]


def test_what_was_said_beside_an_error_stands_in_the_trace(tmp_path: Path) -> None:
    tools = visit(listing)
    trace = tmp_path / "trace.jsonl"

    async def wrong(client: Client) -> None:
        with suppress(MCPError):
            await client.call_tool("get_orders", {"order_ref": "R-1001"})

    written = Trace(trace, ())
    visit(wrong, shifting(lock=lock_tools(tools.values())), trace=written)
    written.close()
    (record,) = [one for one in map(json.loads, trace.read_text().splitlines()) if "ok" in one]
    assert record["ok"] is False
    assert record["told"].startswith(TITLE)


@pytest.mark.parametrize("option", [("--rewrite",), ("--memory", "x.json")])
def test_what_needs_a_lock_is_refused_without_one_in_one_sentence(option: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "toolshift", "proxy", *option, "--", "nothing"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"{option[0]} needs --adapt LOCK" in done.stderr

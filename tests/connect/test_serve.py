"""Any agent in our worlds: the MCP server in both eras, the control API, and one over stdio."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import mcp_types
import msgspec
import pytest
from connect.serve_site import ERAS, get, open_one, repeat, running, shared_http, web
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from toolshift.agents.catalog import contestants
from toolshift.connect.serve.mcp_server import spoken
from toolshift.connect.serve.session import ActResult
from toolshift.core.shift import NotApplicable
from toolshift.core.tool import JSON
from toolshift.runs.cell import build
from toolshift.runs.run_folder import Record
from toolshift.runs.study import play
from toolshift.runs.suite import read_task

SHIFTS = ("", "identity_erasure:2", "format_drift:2", "tool_removed_midway:2", "merged_tools:2")
PLAYERS = ("oracle", "gives_up", "memorises_names", "never_refuses")


def plain(value: Any) -> Any:
    return msgspec.json.decode(JSON.encode(value))


def in_process(agent: str, task: str, shifts: str) -> Record:
    return play(contestants([agent])[0], read_task(task, shifts))


def plan(count: int) -> list[tuple[str, str, str]]:
    """So many different tasks: agent, task and shifts."""
    kinds = ("poi/visit", "retail/bin", "medical/prescribe", "poi/look_then_book", "retail/refund")
    found: list[tuple[str, str, str]] = []
    number = 0
    while len(found) < count:
        task = f"{kinds[number % 5]}/{number // 5}"
        shifts, agent = SHIFTS[number // 3 % 5], PLAYERS[number // 7 % 4]
        number += 1
        try:
            build(read_task(task, shifts))
        except NotApplicable:
            continue
        found.append((agent, task, shifts))
    return found


def check_as_in_process(opened: dict[str, Any], done: Record, heard: list[str]) -> None:
    trace = get(opened["control_url"] + "/trace")
    assert trace["steps"] == plain(done.steps)
    assert trace["grade"] == plain(done.grade) == get(opened["control_url"] + "/grade")
    assert trace["end"] == done.end
    results = [step.text for step in done.steps if step.kind == "call"]
    assert [text for text in heard if not text.startswith("Delivered.")][: len(results)] == results


@pytest.mark.parametrize("mode", ERAS)
def test_a_plain_client_completes_an_episode_as_in_process(mode: str) -> None:
    done = in_process("oracle", "poi/look_then_book", "semantic_rename:2")
    assert done.grade.passed

    async def converse(opened: dict[str, Any]) -> list[str]:
        async with Client(opened["mcp_url"], mode=mode) as client:
            assert client.protocol_version == ERAS[mode]
            assert client.server_capabilities.tools.list_changed
            assert opened["message"] in (client.instructions or "")
            assert opened["system"] in (client.instructions or "")
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert names[-3:] == ["final_answer", "refuse", "ask_user"]
            assert {step.name for step in done.steps if step.kind == "call"} <= {*names}
            return await repeat(client, done.steps)

    with running() as url:
        opened = open_one(url, "poi/look_then_book", "semantic_rename:2")
        heard = asyncio.run(converse(opened))
        assert "The user says: " in next(text for text in heard if text.startswith("Delivered."))
        trace = get(opened["control_url"] + "/trace")
        assert trace["steps"] == plain(done.steps)
        assert trace["grade"] == plain(done.grade)


@pytest.mark.parametrize("count", [30, pytest.param(100, marks=pytest.mark.slow)])
def test_episodes_at_once_are_isolated_and_graded_as_in_process(count: int) -> None:
    tasks = plan(count)
    done = [in_process(*each) for each in tasks]
    assert {record.grade.passed for record in done} == {True, False}
    with running() as url:
        opened = [open_one(url, task, shifts) for _, task, shifts in tasks]
        assert len({one["episode"] for one in opened}) == count
        assert min(len(one["episode"]) for one in opened) >= 22

        async def converse() -> list[list[str]]:
            async with AsyncExitStack() as stack:
                http = await stack.enter_async_context(shared_http())
                entered = [
                    stack.enter_async_context(
                        Client(
                            streamable_http_client(one["mcp_url"], http_client=http),
                            mode=[*ERAS][number % 2],
                        )
                    )
                    for number, one in enumerate(opened)
                ]
                clients = [await each for each in entered]  # all open before the first call
                pairs = zip(clients, done, strict=True)
                return await asyncio.gather(*(repeat(one, d.steps) for one, d in pairs))

        heard = asyncio.run(converse())
        for one, record, texts in zip(opened, done, heard, strict=True):
            check_as_in_process(one, record, texts)
    answers = [step.said for record in done for step in record.steps if step.kind == "answer"]
    assert len(set(answers)) > 0.6 * count


def midway() -> tuple[str, Record]:
    """A task in which a tool is withdrawn, and the oracle's way through it."""
    for index in range(10):
        task = f"poi/visit/{index}"
        try:
            record = in_process("oracle", task, "tool_removed_midway:2")
        except NotApplicable:
            continue
        if any(step.tools for step in record.steps):
            return task, record
    raise AssertionError("no tool is ever withdrawn")


def test_clients_of_today_hear_of_changed_tools_as_they_listen() -> None:
    task, record = midway()

    async def names(client: Client) -> set[str]:
        return {tool.name for tool in (await client.list_tools()).tools}

    async def converse(address: str) -> tuple[set[str], set[str]]:
        async with Client(address) as client, client.listen(tools_list_changed=True) as changes:
            before = await names(client)
            await repeat(client, record.steps)
            await asyncio.wait_for(anext(changes), 5)
            return before, await names(client)

    with running() as url:
        before, after = asyncio.run(
            converse(open_one(url, task, "tool_removed_midway:2")["mcp_url"])
        )
    assert before - after


def test_older_sessions_hear_of_changed_tools_each_once() -> None:
    task, record = midway()
    told: dict[str, list[Any]] = {"caller": [], "bystander": []}

    def listener(name: str) -> Any:
        async def keep(message: Any) -> None:
            if isinstance(message, mcp_types.ToolListChangedNotification):
                told[name].append(message)

        return keep

    async def converse(address: str) -> None:
        caller = Client(address, mode="legacy", message_handler=listener("caller"))
        other = Client(address, mode="legacy", message_handler=listener("bystander"))
        async with other as bystander, caller as client:
            await bystander.list_tools()
            await asyncio.sleep(0.3)  # until its standing stream is open
            await repeat(client, record.steps)
            for _ in range(50):
                if told["bystander"]:
                    break
                await asyncio.sleep(0.1)

    with running() as url:
        asyncio.run(converse(open_one(url, task, "tool_removed_midway:2")["mcp_url"]))
    changes = sum(bool(step.tools) for step in record.steps)
    assert len(told["caller"]) == len(told["bystander"]) >= changes > 0


def test_an_episode_can_be_had_through_the_control_api_alone() -> None:
    with running() as url, web() as client:
        opened = open_one(url, "poi/look_then_book", protocol=False)
        here = opened["control_url"]
        asked = client.post(f"{here}/ask", json={"question": "Which city is it?"}).json()
        assert "city" in asked["text"]
        assert not asked["over"]
        assert client.get(f"{here}/grade").status_code == 409
        following = client.post(f"{here}/finish", json={"answer": "AAAA-AAAA"}).json()
        assert following["message"]
        said = client.get(here).json()
        assert said["message"] == following["message"]
        prose = "I could not find such a place. Sorry."
        assert client.post(f"{here}/finish", json={"prose": prose}).json()["over"]
        trace = client.get(f"{here}/trace").json()
        assert [step["kind"] for step in trace["steps"]] == ["ask", "answer", "refuse"]
        assert trace["steps"][-1]["name"] == "not_found"
        assert trace["grade"]["prose"]
        assert trace["grade"]["refused"]
        assert client.post(f"{here}/finish", json={"answer": "B"}).status_code == 409
        assert client.delete(here).status_code == 204
        assert client.get(here).status_code == 404


def test_the_protocol_tools_can_be_switched_off() -> None:
    async def converse(address: str) -> str:
        async with Client(address) as client:
            assert "final_answer" not in [tool.name for tool in (await client.list_tools()).tools]
            result = await client.call_tool("final_answer", {"answer": "AAAA-AAAA"})
            assert result.is_error
            return "".join(part.text for part in result.content)

    with running() as url:
        opened = open_one(url, protocol=False)
        assert "unknown_tool" in asyncio.run(converse(opened["mcp_url"]))
        assert not get(opened["control_url"])["over"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"task": "poi/vist"}, "did you mean visit"),
        ({"task": "poi/visit", "shifts": "identity_erasur:2"}, "did you mean identity_erasure"),
        ({"task": "poi/listing", "shifts": "intent_change:9"}, "severity"),
        ({"task": "poi/visit", "sead": 2}, "sead"),
        ({"task": 7}, "task"),
        ([], "object"),
    ],
)
def test_what_cannot_be_opened_is_said(body: Any, words: str) -> None:
    with running() as url, web(url) as client:
        answer = client.post("/episodes", json=body)
    assert answer.status_code == 400
    assert words in answer.json()["error"]["message"]


def test_finishing_wrongly_is_said() -> None:
    with running() as url, web() as client:
        here = open_one(url)["control_url"]
        for body, words in (
            ({"reason": "not_fund"}, "did you mean not_found"),
            ({}, "one of"),
            ({"answer": "a", "prose": "b"}, "one of"),
        ):
            answer = client.post(f"{here}/finish", json=body)
            assert answer.status_code == 400
            assert words in answer.json()["error"]["message"]
        assert client.post(f"{here}/finish", json={"reason": "not_found"}).json()["over"]


@pytest.mark.parametrize("mode", ERAS)
def test_one_episode_over_standard_input_and_output(mode: str, tmp_path: Path) -> None:
    done = in_process("oracle", "poi/visit/2", "identity_erasure:2")
    trace = tmp_path / "trace.json"
    words = ("--stdio", "--task", "poi/visit/2", "--shift", "identity_erasure:2")
    program = ["-m", "toolshift", "serve", *words, "--trace", str(trace)]

    async def converse() -> None:
        server = StdioServerParameters(command=sys.executable, args=program)
        async with Client(server, mode=mode) as client:
            assert client.protocol_version == ERAS[mode]
            await client.list_tools()
            await repeat(client, done.steps)

    asyncio.run(converse())
    kept = json.loads(trace.read_text())
    assert kept["steps"] == plain(done.steps)
    assert kept["grade"]["passed"]


def test_the_next_turn_reaches_a_client_with_its_notice() -> None:
    heard = ActResult("Delivered.", message="And now the other one.", notice="Rules have changed.")
    assert spoken(heard) == "Delivered. Rules have changed.\nThe user says: And now the other one."

"""What `run`, the proxies and `lock` cost where hundreds of tools are sent on each turn.

    python benchmarks/many_tools.py [--json FILE]

Tools are those of `crowded_list` (docs/tool-sets.md), from 12 to 840 so that growth shows: what is
linear doubles from 420 to 840. Times are CPU seconds or milliseconds of one core, for the first
time (a list is compiled) and from then on; memory is the peak of Python's own allocations, or of a
process of its own (`lock`, `verify`, `from-diff`).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

from machine import versions
from mcp import Client
from mcp.client._memory import InMemoryTransport
from mcp.server import Server
from mcp.types import CallToolResult, ListToolsResult

from toolshift.connect.mcp.proxy import in_process
from toolshift.connect.mcp.shifted_server import ShiftOptions as ServerShifts
from toolshift.connect.model_proxy.app import Exchange
from toolshift.connect.model_proxy.conversation import Answered, Conversation, Said
from toolshift.connect.model_proxy.settings import ShiftOptions, prepare
from toolshift.core.message import Turn
from toolshift.core.tool import JSON, as_openai
from toolshift.dialects.chat import CHAT
from toolshift.episode.contract import ScriptedAgent
from toolshift.episode.episode import Episode
from toolshift.episode.grade import grade
from toolshift.episode.oracle import OracleAgent
from toolshift.interop.mcp_client import Target
from toolshift.runs.cell import build
from toolshift.runs.suite import read_task
from toolshift.shifts.foreign import by_rule
from toolshift.shifts.stacks import read_stack

COUNTS = (12, 50, 200, 420, 840)
OWN = 12
TASKS = ("poi/booking", "poi/listing", "poi/visit", "poi/nearer")
STACKS = ("", "semantic_rename:3+parameter_rename:3", "merged_tools", "redirect:3", "tool_search:2")
PROXIED = ("tool_name_noise:3+parameter_rename:3", "tool_search:2")
TURNS = 12
REPEATS = 5


def spent(work: Callable[[], Any]) -> float:
    """CPU milliseconds of one run."""
    begun = time.process_time()
    work()
    return 1000 * (time.process_time() - begun)


def peak(work: Callable[[], Any]) -> float:
    """The most MiB that Python held at once, beyond what it held before."""
    tracemalloc.start()
    work()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / 2**20


def around(count: int) -> str:
    return f"crowded_list_{count - OWN}" if count > OWN else ""


# -- run -------------------------------------------------------------------------------------------


def played(cell: Any, agent: ScriptedAgent) -> Episode:
    episode = Episode(build(cell))
    agent.play(episode)
    grade(episode)
    return episode


class Reads:
    """The oracle, made to write out every turn as an agent over HTTP is sent it."""

    name = "reads"

    def __init__(self) -> None:
        self.bytes = 0

    def play(self, episode: Episode) -> None:
        next_turn = episode.next_turn

        def sent() -> None:
            turn: Turn = episode.observation
            self.bytes += len(JSON.encode([turn.messages, turn.tools]))
            next_turn()

        episode.next_turn = sent  # type: ignore[method-assign]
        OracleAgent().play(episode)


def run_rows(count: int) -> list[dict[str, Any]]:
    rows = []
    for stack in STACKS:
        cells = [read_task(task, stack, under=around(count)) for task in TASKS]
        first = cells[1]
        row: dict[str, Any] = {"tools": count, "part": "run", "shift": stack or "none"}
        row["first scene ms"] = round(spent(lambda first=first: played(first, OracleAgent())), 1)
        for cell in cells:
            played(cell, OracleAgent())
        scripted = min(
            spent(lambda cells=cells: [played(cell, OracleAgent()) for cell in cells])
            for _ in range(REPEATS)
        )
        row["scripted episode ms"] = round(scripted / len(cells), 2)
        reader = Reads()
        written = min(
            spent(lambda cells=cells, reader=reader: [played(cell, reader) for cell in cells])
            for _ in range(REPEATS)
        )
        row["episode with turns written out ms"] = round(written / len(cells), 2)
        row["KiB of the list"] = round(
            len(JSON.encode([*map(as_openai, build(cells[0]).tools)])) / 1024
        )
        fresh = [read_task(task, stack, seed=1, under=around(count)) for task in TASKS]
        row["peak MiB of 4 new scenes"] = round(
            peak(lambda fresh=fresh: [played(cell, OracleAgent()) for cell in fresh]), 1
        )
        rows.append(row)
    return rows


# -- proxies ---------------------------------------------------------------------------------------


def listed(count: int) -> list[dict[str, Any]]:
    """So many tools in OpenAI's form, the own ones of poi among them."""
    scene = build(read_task("poi/booking", under=around(count)))
    return [as_openai(tool) for tool in scene.tools]


def request(tools: list[dict[str, Any]], turns: int) -> dict[str, Any]:
    """A request of an agent after some turns, each with a call."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Book a slot."}]
    for number in range(turns):
        function = {"name": "get_hours", "arguments": '{"place_id":"p_1","day":"Monday"}'}
        call = {"id": f"c{number}", "type": "function", "function": function}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": '{"opens_hour":9}'},
        ]
    return {"model": "m", "messages": messages, "tools": tools}


def model_proxy_rows(count: int) -> list[dict[str, Any]]:
    tools, rows = listed(count), []
    for stack in PROXIED:
        how = ShiftOptions(read_stack(stack))
        said, made = Said(), []
        row: dict[str, Any] = {"tools": count, "part": "model-proxy", "shift": stack}
        row["first request ms"] = round(
            spent(lambda how=how, made=made: made.append(prepare(tools, how))), 1
        )
        toolbox, scene = made[0]
        body = request(tools, TURNS)

        def ask(
            toolbox: Any = toolbox, scene: Any = scene, said: Said = said, body: Any = body
        ) -> None:
            asked = CHAT.read(body, "/v1/chat/completions")
            JSON.encode(asked.tools)  # what a list is known by
            conversation = Conversation(scene, toolbox, said)
            assert Exchange(conversation, body, asked, CHAT, said, Answered()).request

        ask()
        row[f"request after {TURNS} turns ms"] = round(min(spent(ask) for _ in range(REPEATS)), 2)
        row["peak MiB of a request"] = round(peak(ask), 1)
        rows.append(row)
    return rows


def server(count: int) -> Server[Any]:
    shown = [
        {"name": one["name"], "description": one["description"], "inputSchema": one["parameters"]}
        for one in (tool["function"] for tool in listed(count))
    ]

    async def tools(ctx: Any, params: Any) -> Any:
        return ListToolsResult.model_validate({"tools": shown})

    async def call(ctx: Any, params: Any) -> Any:
        return CallToolResult.model_validate({"content": [{"type": "text", "text": "{}"}]})

    return Server("many", on_list_tools=tools, on_call_tool=call)


async def mcp_proxy(count: int, stack: str) -> dict[str, Any]:
    row: dict[str, Any] = {"tools": count, "part": "proxy", "shift": stack}
    target = Target(transport=InMemoryTransport(server(count)))
    begun = time.process_time()
    async with Client(in_process(target, ServerShifts(read_stack(stack))), mode="legacy") as client:
        tools = (await client.list_tools()).tools
        row["start and first list ms"] = round(1000 * (time.process_time() - begun), 1)
        begun = time.process_time()
        for _ in range(REPEATS):
            tools = (await client.list_tools()).tools
        row["list ms"] = round(1000 * (time.process_time() - begun) / REPEATS, 2)
        given = dict.fromkeys(tools[0].input_schema.get("required", []), "order")
        begun = time.process_time()
        for _ in range(50):
            await client.call_tool(tools[0].name, given)
        row["call ms"] = round(1000 * (time.process_time() - begun) / 50, 2)
    return row


# -- lock ------------------------------------------------------------------------------------------


def command(*words: str) -> tuple[float, float]:
    """CPU seconds of a command line, and the most MiB that its process held."""
    code = (
        "import resource, sys, subprocess;"
        "subprocess.run([sys.executable, '-m', 'toolshift', *sys.argv[1:]], capture_output=True);"
        "u = resource.getrusage(resource.RUSAGE_CHILDREN);"
        "print(u.ru_utime + u.ru_stime, u.ru_maxrss)"
    )
    out = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True
    )
    seconds, kib = map(float, out.stdout.split())
    return round(seconds, 2), round(kib / 1024)


def lock_rows(count: int) -> list[dict[str, Any]]:
    """A list, and its next release: every tool renamed, or every description said otherwise."""
    with tempfile.TemporaryDirectory() as folder:
        old, renamed, reworded = (
            Path(folder, f"{name}.json") for name in ("old", "renamed", "reworded")
        )
        tools = [
            {"name": f["name"], "description": f["description"], "inputSchema": f["parameters"]}
            for f in (tool["function"] for tool in listed(count))
        ]
        old.write_text(json.dumps(tools))
        renamed.write_text(json.dumps([{**t, "name": f"v2_{t['name'][:50]}"} for t in tools]))
        reworded.write_text(
            json.dumps([{**t, "description": f"{t['description']} (beta)"} for t in tools])
        )
        lock = str(Path(folder, "tools.lock"))
        rows = []
        for part, words in {
            "lock": ("lock", str(old), "--out", lock),
            "verify, nothing moved": ("verify", lock, str(old)),
            "verify, every description moved": ("verify", lock, str(reworded)),
            "verify, every tool renamed": ("verify", lock, str(renamed)),
            "from-diff, every tool renamed": (
                "shift",
                "from-diff",
                str(old),
                str(renamed),
                "--out",
                f"{lock}.change.json",
            ),
        }.items():
            seconds, mib = command(*words)
            rows.append({"tools": count, "part": part, "CPU seconds": seconds, "MiB": mib})
        return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--part", action="append", help="run, model-proxy, proxy or lock; repeat")
    options = parser.parse_args()
    parts = options.part or ["run", "model-proxy", "proxy", "lock"]
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    by_rule("dev", 0, 10, frozenset())
    rows: list[dict[str, Any]] = []
    for count in COUNTS:
        found: list[dict[str, Any]] = []
        found += run_rows(count) if "run" in parts else []
        found += model_proxy_rows(count) if "model-proxy" in parts else []
        if "proxy" in parts:
            found += [asyncio.run(mcp_proxy(count, stack)) for stack in PROXIED]
        found += lock_rows(count) if "lock" in parts else []
        for row in found:
            print(json.dumps(row), flush=True)
        rows += found
    if options.json:
        options.json.write_text(json.dumps({**versions(), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""Many MCP episodes in one process: do they stay apart, are they graded as in process, how fast.

    python benchmarks/serve_episodes.py                  # writes benchmarks/serve_episodes.json
    python benchmarks/serve_episodes.py --episodes 20 --out /tmp/serve.json

A planted agent plays each task in process. Official clients then do the same over HTTP, all of
them at once, in turn as today's clients and as older ones; the server runs in a process of its
own. Every step and every grade is compared. Latencies are of single calls, one client at a time;
beside them stands the processor time of both sides, which other work on the machine leaves alone.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import platform
import re
import statistics
import subprocess
import sys
import time
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import msgspec
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from toolshift.agents.catalog import contestants
from toolshift.core.http import httpx
from toolshift.core.message import ASK_USER, FINAL_ANSWER, REFUSE
from toolshift.core.shift import NotApplicable
from toolshift.core.tool import JSON
from toolshift.episode.episode import Episode
from toolshift.runs.cell import build
from toolshift.runs.run_folder import Record
from toolshift.runs.study import play
from toolshift.runs.suite import read_task

ERAS = ("auto", "legacy")
KINDS = ("poi/visit", "retail/bin", "medical/prescribe", "poi/look_then_book", "retail/refund")
SHIFTS = ("", "identity_erasure:2", "format_drift:2", "tool_removed_midway:2", "merged_tools:2")
PLAYERS = ("oracle", "gives_up", "memorises_names", "never_refuses")
SERVER = ("-m", "toolshift", "serve", "--port", "0")
PROTOCOL = {"ask": (ASK_USER, "question"), "answer": (FINAL_ANSWER, "answer")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--calls", type=int, default=200, help="calls for each latency")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    asked = parser.parse_args()
    logging.disable(logging.WARNING)  # the client misses output schemas, of which there are none
    done = played(asked.episodes)
    before = os.getloadavg()[0]
    with server() as (process, url):
        found = asyncio.run(measured(url, process, done, asked.calls))
    found |= {"python": platform.python_version(), "machine": platform.machine()}
    found |= {"cores": os.cpu_count(), "load before": round(before, 1)}
    asked.out.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


def played(count: int) -> list[tuple[dict[str, Any], Record]]:
    """Different tasks, and what a planted agent did in each."""
    found: list[tuple[dict[str, Any], Record]] = []
    number = 0
    while len(found) < count:
        task, shifts = f"{KINDS[number % 5]}/{number // 5}", SHIFTS[number // 3 % 5]
        cell, agent = read_task(task, shifts), PLAYERS[number // 7 % 4]
        number += 1
        try:
            build(cell)
        except NotApplicable:
            continue
        found.append(({"task": task, "shifts": shifts}, play(contestants([agent])[0], cell)))
    return found


@contextmanager
def server() -> Any:
    """A server in a process of its own; yields its process id and its address."""
    process = subprocess.Popen([sys.executable, "-u", *SERVER], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        port = re.search(r":(\d+):", process.stdout.readline())
        assert port
        yield process.pid, f"http://127.0.0.1:{port[1]}"
    finally:
        process.terminate()
        process.wait()


async def measured(
    url: str, server_id: int, done: list[tuple[dict[str, Any], Record]], calls: int
) -> dict[str, Any]:
    web = httpx.Client(base_url=url, trust_env=False, timeout=60)
    opened = [web.post("/episodes", json=about).json() for about, _ in done]
    start = time.perf_counter()
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(pool())
        clients = [
            await stack.enter_async_context(client(one["mcp_url"], http, ERAS[number % 2]))
            for number, one in enumerate(opened)
        ]
        connected = time.perf_counter()
        pairs = zip(clients, done, strict=True)
        await asyncio.gather(*(repeat(one, record) for one, (_, record) in pairs))
        ended = time.perf_counter()
    traces = [web.get(one["control_url"] + "/trace").json() for one in opened]
    records = [record for _, record in done]
    steps = sum(len(record.steps) for record in records)
    return {
        "episodes": len(done),
        "different answers": len({s.said for r in records for s in r.steps if s.kind == "answer"}),
        "passed": sum(record.grade.passed for record in records),
        "steps that differ": sum(
            trace["steps"] != plain(r.steps) for trace, r in zip(traces, records, strict=True)
        ),
        "grades that differ": sum(
            trace["grade"] != plain(r.grade) for trace, r in zip(traces, records, strict=True)
        ),
        "seconds to connect": round(connected - start, 2),
        "seconds to act": round(ended - connected, 2),
        "acts per second": round(steps / (ended - connected), 1),
        "milliseconds a call": {
            "in process": in_process(calls),
            **{mode: await latency(web, server_id, mode, calls) for mode in ERAS},
        },
    }


def plain(value: Any) -> Any:
    return msgspec.json.decode(JSON.encode(value))


def pool() -> httpx2.AsyncClient:
    limits = httpx2.Limits(max_connections=None)
    return httpx2.AsyncClient(trust_env=False, verify=False, timeout=120, limits=limits)


def client(address: str, http: httpx2.AsyncClient, mode: str) -> Client:
    return Client(streamable_http_client(address, http_client=http), mode=mode)


async def repeat(one: Client, record: Record) -> None:
    """Does over MCP what the steps of a trace did, after a look at the tools."""
    await one.list_tools()
    for step in record.steps:
        name, arguments = step.name, step.arguments
        if step.kind in PROTOCOL:
            name, key = PROTOCOL[step.kind]
            arguments = {key: step.said}
        elif step.kind == "refuse":
            name, arguments = REFUSE, {"reason": step.name}
        elif step.kind != "call":
            continue
        assert isinstance(arguments, dict)
        await one.call_tool(name, arguments)


FIRST = "poi/visit/0"


def first_call() -> tuple[str, dict[str, Any]]:
    """The oracle's first call in a scene, by which latency is measured."""
    step = build(read_task(FIRST)).calls[0]
    assert isinstance(step.arguments, dict)
    return step.name, step.arguments


def in_process(calls: int) -> dict[str, float]:
    name, arguments = first_call()
    times = []
    for _ in range(calls):
        episode = Episode(build(read_task(FIRST)))
        start = time.perf_counter()
        episode.call(name, arguments)
        times.append(time.perf_counter() - start)
    return quantiles(times)


async def latency(web: httpx.Client, server_id: int, mode: str, calls: int) -> dict[str, float]:
    name, arguments = first_call()
    times: list[float] = []
    used = [0.0, 0.0]
    async with pool() as http:
        while len(times) < calls:
            address = web.post("/episodes", json={"task": FIRST}).json()["mcp_url"]
            async with client(address, http, mode) as one:
                await one.list_tools()
                before = time.process_time(), processor(server_id)
                for _ in range(10):  # fewer than a budget has
                    start = time.perf_counter()
                    await one.call_tool(name, arguments)
                    times.append(time.perf_counter() - start)
                used[0] += time.process_time() - before[0]
                used[1] += processor(server_id) - before[1]
    each = [round(1000 * seconds / len(times), 3) for seconds in used]
    return {**quantiles(times), "client cpu": each[0], "server cpu": each[1]}


def processor(process: int) -> float:
    """Seconds of processor time that a process has used (Linux)."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def quantiles(times: list[float]) -> dict[str, float]:
    cuts = statistics.quantiles(times, n=20)
    return {"p50": round(1000 * cuts[9], 3), "p95": round(1000 * cuts[18], 3)}


if __name__ == "__main__":
    main()

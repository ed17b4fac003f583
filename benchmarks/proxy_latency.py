"""What the MCP proxy adds to a call: in one process and over stdio, transparent and shifted.

    python benchmarks/proxy_latency.py [--calls 400] [--json FILE]

The same official client calls the same server directly and through the proxy, in turns of 20
calls, so that what else the machine does falls on both. Given are the quantiles of each and what
the proxy adds to them (wall time), and the CPU time added, of all processes together, which a busy
machine distorts less (Linux).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.client._memory import InMemoryTransport
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.types import CallToolResult, ListToolsResult

from toolshift.connect.mcp.proxy import in_process
from toolshift.connect.mcp.shifted_server import ShiftOptions
from toolshift.interop.mcp_client import Target
from toolshift.shifts.stacks import read_stack

STACKS = ("", "parameter_rename:3", "semantic_rename:3+parameter_rename:3+format_drift:2")
TOOL = {
    "name": "get_order",
    "description": "Get one order.",
    "inputSchema": {"type": "object", "properties": {"order_ref": {"type": "string"}}},
    "annotations": {"readOnlyHint": True},
}
ORDER = {"order_ref": "R-1001", "total": 42.5, "status": "paid"}
TURN = 20
LAUNCH = ("-m", "toolshift", "proxy")


def server() -> Server[Any]:
    async def tools(ctx: Any, params: Any) -> Any:
        return ListToolsResult.model_validate({"tools": [TOOL]})

    async def call(ctx: Any, params: Any) -> Any:
        text = {"type": "text", "text": json.dumps(ORDER)}
        return CallToolResult.model_validate({"content": [text], "structuredContent": ORDER})

    return Server("orders", on_list_tools=tools, on_call_tool=call)


async def serve() -> None:
    serving = server()
    async with stdio_server() as (read, write):
        await serving.run(read, write, serving.create_initialization_options())


def direct(over: str) -> Any:
    if over == "in process":
        return InMemoryTransport(server())
    return StdioServerParameters(command=sys.executable, args=[__file__, "--serve"])


def proxied(over: str, stack: str) -> Any:
    if over == "in process":
        return in_process(
            Target(transport=InMemoryTransport(server())), ShiftOptions(read_stack(stack))
        )
    shifts = ["--shift", stack] if stack else []
    words = [*LAUNCH, *shifts, "--", sys.executable, __file__, "--serve"]
    return StdioServerParameters(command=sys.executable, args=words)


async def ready(stack: AsyncExitStack, transport: Any) -> tuple[Client, str, dict[str, Any]]:
    """A client, and the one call that it makes."""
    client = await stack.enter_async_context(Client(transport, mode="legacy"))
    (tool,) = (await client.list_tools()).tools
    (param,) = tool.input_schema["properties"]
    given = {param: "R-1001"}
    for _ in range(2 * TURN):
        await client.call_tool(tool.name, given)
    return client, tool.name, given


def cpu() -> float:
    """CPU milliseconds of this process and of all that it has started."""
    spent, parents = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(stat.parent.name)] = int(fields[1])
        spent[int(stat.parent.name)] = int(fields[11]) + int(fields[12])
    ours, left = set(), {os.getpid()}
    while left:
        ours |= left
        left = {pid for pid, parent in parents.items() if parent in left} - ours
    ticks = sum(spent.get(pid, 0) for pid in ours - {os.getpid()})
    return 1000 * (ticks / os.sysconf("SC_CLK_TCK") + time.process_time())


async def measure(over: str, shifts: str, calls: int) -> dict[str, Any]:
    walls: dict[str, list[float]] = {"direct": [], "proxied": []}
    cpus = dict.fromkeys(walls, 0.0)
    async with AsyncExitStack() as stack:
        ends = {
            "direct": await ready(stack, direct(over)),
            "proxied": await ready(stack, proxied(over, shifts)),
        }
        for _ in range(calls // TURN):
            for name, (client, tool, given) in ends.items():
                begun = cpu()
                for _ in range(TURN):
                    start = time.perf_counter()
                    await client.call_tool(tool, given)
                    walls[name].append(1000 * (time.perf_counter() - start))
                cpus[name] += cpu() - begun
    row: dict[str, Any] = {"over": over, "shifts": shifts or "none", "calls": calls}
    for quantile in (50, 95):
        at = {name: sorted(wall)[len(wall) * quantile // 100] for name, wall in walls.items()}
        row |= {f"{name} p{quantile} ms": round(value, 3) for name, value in at.items()}
        row[f"added p{quantile} ms"] = round(at["proxied"] - at["direct"], 3)
    row["direct CPU ms a call"] = round(cpus["direct"] / calls, 3)
    row["added CPU ms a call"] = round((cpus["proxied"] - cpus["direct"]) / calls, 3)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=400)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve())
        return
    rows = []
    for over in ("in process", "stdio"):
        for shifts in STACKS:
            rows.append(asyncio.run(measure(over, shifts, options.calls)))
            print(json.dumps(rows[-1]), flush=True)
    load = os.getloadavg()[0]
    print(f"aim: 1.5 ms p50 in process, 5 ms over stdio; load {load:.1f} on {os.cpu_count()} cores")
    if options.json:
        found = {"load": load, "cores": os.cpu_count(), "rows": rows}
        options.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()

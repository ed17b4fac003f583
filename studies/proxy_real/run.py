"""Real MCP servers through the proxy, under every shift, from the official client.

    npm install --prefix DIR @modelcontextprotocol/server-filesystem \\
        @modelcontextprotocol/server-everything
    python -m venv DIR/time && DIR/time/bin/pip install mcp-server-time
    python studies/proxy_real/run.py --servers DIR [--severity 1 2 3] [--only SHIFT ...]

For each server, shift, severity and transport (stdio, streamable HTTP): starts the proxy before the
unmodified server, lists the tools, and makes two calls to their ends through the shifted interface:
following whatever the interface asks on the way (a retry, a permit, a successor, a second step).
The proxy is told that an agent needs these two tools, so that shifts reach them. The values that
the server gives directly must all be in what came back. What to call is worked out from the shifted
tools by a rehearsal with the real arguments; everything that is judged has gone over the wire.
Without shifts, whole transcripts are compared with the direct connection.

Writes `results.json.gz` beside this file, and takes up what is in it already; `--table` prints it.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import importlib.metadata
import json
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError
from mcp.types import PromptReference

from toolshift.connect.mcp.shifted_server import ShiftOptions, shift_tools
from toolshift.core.errors import UsageError
from toolshift.core.files import pack
from toolshift.interop.mcp_client import Target, list_tools
from toolshift.shifts.live import Live, Rehearsal
from toolshift.shifts.registry import find_shift, shifts
from toolshift.shifts.stacks import read_stack

HERE = Path(__file__).parent
PATIENCE = 90
WARM_UP = 13
"""Rounds after which every tool that changes in mid-session has changed."""
LAUNCH = ("-m", "toolshift", "proxy")


@dataclass
class Server:
    """A real server, the calls that are made through every shift, and what a transcript has."""

    command: list[str]
    work: dict[str, dict[str, Any]]
    calls: list[tuple[str, dict[str, Any]]]
    resource: str = ""
    prompt: tuple[str, dict[str, str]] = ("", {})
    complete: tuple[str, dict[str, str]] = ("", {})
    listed: list[dict[str, Any]] = field(default_factory=list)
    values: set[str] = field(default_factory=set)


def servers(folder: Path, data: Path) -> dict[str, Server]:
    """The three servers, as they are installed in a folder."""
    bins = folder / "node_modules" / ".bin"
    (data / "a.txt").write_text("alpha bravo charlie 417")
    (data / "b.txt").write_text("b")
    place = {"location": "New York"}
    zones = {"source_timezone": "Europe/Berlin", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    path = {"path": str(data / "a.txt")}
    return {
        "filesystem": Server(
            [str(bins / "mcp-server-filesystem"), str(data)],
            {"read_text_file": path, "list_directory": {"path": str(data)}},
            [
                ("read_text_file", path),
                ("list_directory", {"path": str(data)}),
                ("write_file", {"path": str(data / "b.txt"), "content": "b"}),
                ("read_media_file", {"path": str(data / "b.txt")}),
                ("read_text_file", {"path": "/outside"}),
                ("read_text_file", {"file": 1}),
                ("nothing", {}),
            ],
        ),
        "everything": Server(
            [str(bins / "mcp-server-everything"), "stdio"],
            {"get-structured-content": place, "echo": {"message": "hello 417"}},
            [
                ("echo", {"message": "hello"}),
                ("get-structured-content", place),
                ("get-annotated-message", {"messageType": "error", "includeImage": True}),
                ("get-resource-links", {"count": 3}),
                ("get-resource-reference", {}),
                ("get-tiny-image", {}),
                ("get-sum", {"a": "one"}),
                ("trigger-long-running-operation", {"duration": 0.4, "steps": 4}),
                ("nothing", {}),
            ],
            "demo://resource/dynamic/text/1",
            ("args-prompt", {"city": "Paris"}),
            ("completable-prompt", {"name": "department", "value": "E"}),
        ),
        "time": Server(
            [str(folder / "time" / "bin" / "mcp-server-time")],
            {"convert_time": zones, "get_current_time": {"timezone": "Europe/Berlin"}},
            [
                ("convert_time", zones),
                ("convert_time", {**zones, "time": "25:99"}),
                ("get_current_time", {"zone": 1}),
                ("nothing", {}),
            ],
        ),
    }


# -- the proxy ----------------------------------------------------------------------------------


def asked(server: Server, stack: str, *more: str) -> list[str]:
    needed = [word for tool in server.work if stack for word in ("--needs", tool)]
    shifts = ["--shift", stack] if stack else []
    return [
        *LAUNCH,
        "--allow-traps-that-write",
        *shifts,
        *needed,
        *more,
        f"mcp:{shlex.join(server.command)}",
    ]


@contextmanager
def reached(server: Server, stack: str | None, transport: str) -> Iterator[Any]:
    """What to hand to the official client; the server itself where there is no stack."""
    if stack is None:
        yield StdioServerParameters(command=server.command[0], args=server.command[1:])
    elif transport == "stdio":
        yield StdioServerParameters(command=sys.executable, args=asked(server, stack))
    else:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [sys.executable, *asked(server, stack, "--port", str(port))]
        proxy = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            _wait_for(port)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            proxy.terminate()
            proxy.wait(20)


def _wait_for(port: int) -> None:
    for _ in range(1200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise TimeoutError("the proxy does not listen")


# -- one cell -----------------------------------------------------------------------------------


def guide(server: Server, stack: str) -> tuple[Live, Rehearsal]:
    """The interface that the proxy will show, and a rehearsal on it that has made no call yet.

    Raises:
        UsageError: where the shift does not apply.
    """
    how = ShiftOptions(read_stack(stack), needed=tuple(server.work), may_write=True)
    live, _ = shift_tools(server.listed, how)
    given = {
        fact: arguments[name]
        for tool, arguments in server.work.items()
        for fact, name in live.toolbox.sources[tool].known.items()
        if name in arguments
    }
    return live, Rehearsal(live.scene.open(), given)


async def visit(client: Client, server: Server, stack: str) -> dict[str, Any]:
    """Makes the calls round by round; what the last round brought back is what counts."""
    live, plan = guide(server, stack)
    first = [tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools]
    faults = [] if first == list(plan.shown()) else ["other tools are shown than expected"]
    made, text = 0, ""
    for _ in range(WARM_UP if live.moves else 1):
        before, text = len(plan.steps), ""
        plan.visit(t for t in list(plan.shown().values()) if set(t.origin) & set(server.work))
        for step in plan.steps[before:]:
            result = await client.call_tool(step.name, dict(step.arguments))
            said = " ".join(block.text for block in result.content if block.type == "text")
            made, text = made + 1, text + said
            if result.is_error == step.ok:
                faults.append(f"{step.name}: {'failed' if step.ok else 'succeeded'}: {said[:150]}")
    lost = sorted(value for value in server.values if value.lower() not in text.lower())
    faults += [f"lost: {lost}"] if lost else []
    last = [tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools]
    old = {tool["name"] for tool in server.listed}
    told = {"calls": made, "new names": len(set(first) - old), "moved": len(set(last) - set(first))}
    return {**told, "faults": faults, "era": client.protocol_version}


async def go_through(server: Server, stack: str, transport: str) -> dict[str, Any]:
    with reached(server, stack, transport) as target:
        async with Client(target) as client:
            return await asyncio.wait_for(visit(client, server, stack), PATIENCE)


def tried(server: Server, stack: str, transport: str) -> dict[str, Any]:
    """One cell: not applicable and why, or what came of it."""
    try:
        guide(server, stack)
    except UsageError as reason:
        why = str(reason).split(": ", 1)[1].split(". Leave")[0]
        return {"applies": False, "why": why}
    try:
        return {"applies": True, **asyncio.run(go_through(server, stack, transport))}
    except Exception as fault:
        cause: BaseException = fault
        while isinstance(cause, BaseExceptionGroup):
            cause = cause.exceptions[0]
        return {"applies": True, "faults": [f"{type(cause).__name__}: {cause}"]}


def leaves(data: Any) -> Iterator[str]:
    if isinstance(data, dict | list):
        for inner in data.values() if isinstance(data, dict) else data:
            yield from leaves(inner)
    elif data is not None:
        yield from (json.dumps(data) if isinstance(data, bool) else str(data)).splitlines()


# -- transcripts --------------------------------------------------------------------------------


async def transcript(client: Client, server: Server) -> list[Any]:
    """All that a client sees: lists, calls, errors, progress, resources, prompts, completions."""
    heard: list[Any] = []

    async def note(request: Any) -> None:
        try:
            heard.append((await request).model_dump(mode="json", by_alias=True))
        except MCPError as fault:
            heard.append({"error": [fault.code, fault.message, fault.data]})

    async def progress(done: float, total: float | None, message: str | None) -> None:
        heard.append({"progress": [done, total, message]})

    about = client.server_info.model_dump(mode="json")
    can = client.server_capabilities.model_dump(mode="json")
    heard.append([about, can, client.instructions, client.protocol_version])
    await note(client.list_tools())
    for name, given in server.calls:
        await note(client.call_tool(name, given, progress_callback=progress))
    for ask in (client.list_resources, client.list_resource_templates, client.list_prompts):
        await note(ask())
    if server.resource:
        await note(client.read_resource(server.resource))
        await note(client.get_prompt(*server.prompt))
        name, argument = server.complete
        await note(client.complete(PromptReference(name=name), argument))
    return heard


_CLOCK = re.compile(r"\d{1,2}:\d\d:\d\d(?:\.\d+)?(?: [AP]M)?")


async def heard_by(server: Server, stack: str | None, transport: str) -> list[Any]:
    """A transcript, without the time of day that some answers state."""
    with reached(server, stack, transport) as target:
        async with Client(target) as client:
            heard = await asyncio.wait_for(transcript(client, server), PATIENCE)
    steady: list[Any] = json.loads(_CLOCK.sub("[clock]", json.dumps(heard)))
    return steady


def compared(server: Server, transports: list[str]) -> dict[str, Any]:
    """How many parts of the transcript are as in the direct connection."""
    direct = asyncio.run(heard_by(server, None, "stdio"))
    found: dict[str, Any] = {}
    for way in ("direct again", *transports):
        stack = None if way == "direct again" else ""
        heard = asyncio.run(heard_by(server, stack, way))
        differ = [n for n, pair in enumerate(zip(heard, direct, strict=True)) if pair[0] != pair[1]]
        found[way] = {"parts": len(direct), "that differ": differ}
    return found


# -- all of it ----------------------------------------------------------------------------------


async def prepare(server: Server) -> None:
    """What the server offers and answers directly."""
    server.listed = await list_tools(Target(command=tuple(server.command)))
    heard = []
    for _ in range(2):
        time.sleep(1.1)  # what is not the same twice, as the time of day, is not asked for
        with reached(server, None, "stdio") as target:
            async with Client(target) as client:
                results = [await client.call_tool(*one) for one in server.work.items()]
        data = [r.structured_content or [b.text for b in r.content] for r in results]
        heard.append(set(leaves(data)))
    server.values = heard[0] & heard[1]


def versions(folder: Path) -> dict[str, str]:
    found = {"mcp": importlib.metadata.version("mcp"), "python": sys.version.split()[0]}
    for package in ("server-filesystem", "server-everything"):
        about = folder / "node_modules" / "@modelcontextprotocol" / package / "package.json"
        found[package] = json.loads(about.read_text())["version"]
    code = "import importlib.metadata as m; print(m.version('mcp-server-time'), m.version('mcp'))"
    for command, name in (
        ([str(folder / "time" / "bin" / "python"), "-c", code], "mcp-server-time, and its mcp"),
        (["node", "--version"], "node"),
    ):
        said = subprocess.run(command, capture_output=True, text=True, check=True)
        found[name] = said.stdout.strip()
    return found


def key(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("server", "shift", "severity", "transport"))


def print_table(rows: list[dict[str, Any]]) -> None:
    """A row a shift, a column a server: how many cells hold what they promise, or why none is."""
    names = list(dict.fromkeys(row["server"] for row in rows))
    print("| shift |", " | ".join(names), "|")
    print("|---|" + "---|" * len(names))
    for shift in dict.fromkeys(row["shift"] for row in rows):
        said = []
        for name in names:
            those = [row for row in rows if (row["server"], row["shift"]) == (name, shift)]
            tried = [row for row in those if row["applies"]]
            good = sum(not row["faults"] for row in tried)
            why = "; ".join(dict.fromkeys(row["why"] for row in those if not row["applies"]))
            said.append(
                f"{good} of {len(tried)}" * bool(tried) + ", else: " * bool(tried and why) + why
            )
        print(f"| `{shift}` |", " | ".join(said), "|")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--servers", type=Path, help="The folder where they are installed.")
    parser.add_argument("--severity", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--transport", nargs="+", default=["stdio", "http"])
    parser.add_argument("--out", type=Path, default=HERE / "results.json.gz")
    parser.add_argument("--table", action="store_true", help="Print what is in the file.")
    options = parser.parse_args()
    out = {"about": {}, "transcripts": {}, "cells": []}
    if options.out.exists():
        out = json.loads(gzip.decompress(options.out.read_bytes()))
    if options.table:
        print_table(out["cells"])
        return
    if options.servers is None:
        parser.error("--servers says where the servers are installed")
    measure(options, out)
    bad = sum(bool(row.get("faults")) for row in out["cells"])
    applied = sum(row["applies"] for row in out["cells"])
    print(f"{len(out['cells'])} cells, {applied} apply, {bad} with faults")
    sys.exit(bool(bad))


def measure(options: argparse.Namespace, out: dict[str, Any]) -> None:
    """Fills in what is missing, and writes it down cell by cell."""
    done = {key(row) for row in out["cells"]}
    out["about"] = versions(options.servers)
    with tempfile.TemporaryDirectory() as data:
        for name, server in servers(options.servers.absolute(), Path(data).resolve()).items():
            cells = [
                {"server": name, "shift": shift, "severity": severity, "transport": transport}
                for shift in options.only or list(shifts())
                for severity in find_shift(shift).severities
                if severity in options.severity
                for transport in options.transport
            ]
            left = [row for row in cells if key(row) not in done]
            if left:
                asyncio.run(prepare(server))
            if name not in out["transcripts"]:
                out["transcripts"][name] = compared(server, options.transport)
                print(name, json.dumps(out["transcripts"][name]), flush=True)
            for cell in left:
                found = tried(server, f"{cell['shift']}:{cell['severity']}", cell["transport"])
                out["cells"].append({**cell, **found})
                print(json.dumps(out["cells"][-1]), flush=True)
                options.out.write_bytes(pack(json.dumps(out, indent=1).encode() + b"\n"))


if __name__ == "__main__":
    main()

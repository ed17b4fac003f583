"""A published server across two of its versions: lock, verify, watch, `proxy --adapt --rewrite`.

    npm install --prefix old @modelcontextprotocol/server-everything@2025.9.25
    npm install --prefix new @modelcontextprotocol/server-everything@2026.1.14
    python studies/real_server/run.py --old old/node_modules/.bin/mcp-server-everything \
        --new new/node_modules/.bin/mcp-server-everything

The client is the official one (`mcp.Client` over stdio). It knows the old version and makes the
same calls by the old names, round after round: of the old server, of the new one, and of the new
one behind `toolshift proxy --adapt --rewrite`. It offers roots, so both versions list a tool for
them; the lock is therefore made from the trace of its own session. All pass through `toolshift
proxy --trace`, of which `toolshift watch` reads the trace. What a call answers is compared with
what the old version answered.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.types import ListRootsResult, Root

HERE = Path(__file__).parent
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("echo", {"message": "hello"}),
    ("add", {"a": 2, "b": 3}),
    ("annotatedMessage", {"messageType": "success"}),
    ("getResourceLinks", {"count": 2}),
    ("getResourceReference", {"resourceId": 1}),
    ("getTinyImage", {}),
    ("listRoots", {}),
    ("longRunningOperation", {"duration": 0.01, "steps": 1}),
    ("structuredContent", {"location": "New York"}),
]
"""By the names of the old version; `printEnv` would show the environment, `sampleLLM` a model."""
TOOLSHIFT = (sys.executable, "-m", "toolshift")


def toolshift(*words: str, codes: tuple[int, ...] = (0,)) -> str:
    """Runs a command and gives what it prints."""
    done = subprocess.run([*TOOLSHIFT, *words], capture_output=True, text=True, check=False)
    if done.returncode not in codes:
        raise SystemExit(f"toolshift {' '.join(words)} ended with {done.returncode}: {done.stderr}")
    return done.stdout


async def roots(*_: Any) -> ListRootsResult:
    """The folder that the client offers."""
    return ListRootsResult(roots=[Root(uri="file:///work", name="work")])


async def calls_of(command: list[str], rounds: int) -> list[dict[str, Any]]:
    """Makes every call of each round, and says what came back."""
    found = []
    # the environment, so that the proxy finds this package and the server its interpreter
    parameters = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
    async with Client(parameters, mode="legacy", list_roots_callback=roots) as client:
        for _ in range(rounds):
            await client.list_tools()
            for name, arguments in CALLS:
                begun = time.perf_counter()
                try:
                    result = await client.call_tool(name, arguments)
                    ok = not result.is_error
                    said = [block.model_dump(mode="json") for block in result.content]
                except Exception as fault:  # the client's own words for a call that is refused
                    ok, said = False, [{"type": "error", "text": str(fault)}]
                spent = time.perf_counter() - begun
                found.append({"tool": name, "ok": ok, "said": said, "seconds": spent})
    return found


def summed(calls: list[dict[str, Any]], before: dict[str, Any]) -> dict[str, Any]:
    """How many calls succeeded, and of how many the answer is that of the old version."""
    tools = {}
    for name, _ in CALLS:
        mine = [call for call in calls if call["tool"] == name]
        kinds = [[block["type"] for block in call["said"]] for call in mine]
        tools[name] = {
            "calls": len(mine),
            "ok": sum(call["ok"] for call in mine),
            "same_answer": sum(call["said"] == before.get(name) for call in mine),
            "same_kinds_of_content": sum(
                one == [block["type"] for block in before.get(name, [])] for one in kinds
            ),
            "said": str(mine[0]["said"])[:160],
        }
    return {
        "calls": len(calls),
        "ok": sum(call["ok"] for call in calls),
        "milliseconds_median": round(
            1000 * sorted(c["seconds"] for c in calls)[len(calls) // 2], 1
        ),
        "tools": tools,
    }


def adapted(trace: Path) -> dict[str, Any]:
    """The calls that the layer moved, by tool, with one piece of evidence each."""
    found: dict[str, Any] = {}
    for line in trace.read_text().splitlines():
        row = json.loads(line)
        if row.get("adapted"):
            found.setdefault(row["tool"], {"calls": 0, "first": row["adapted"]})["calls"] += 1
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--old", required=True, help="The command of the old version.")
    parser.add_argument("--new", required=True, help="The command of the new version.")
    parser.add_argument("--names", nargs=2, default=["2025.9.25", "2026.1.14"])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--out", type=Path, default=HERE / "results.json")
    given = parser.parse_args()
    with TemporaryDirectory() as folder:
        found = measured(given.old, given.new, given.rounds, Path(folder))
    found = {
        "server": "@modelcontextprotocol/server-everything",
        "versions": given.names,
        "client": f"mcp {version('mcp')}",
        **found,
    }
    given.out.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


def measured(old: str, new: str, rounds: int, folder: Path) -> dict[str, Any]:
    lock, plain, layered = folder / "old.lock", folder / "trace.jsonl", folder / "adapted.jsonl"
    proxy = [*TOOLSHIFT, "proxy", "--trace"]
    first = asyncio.run(calls_of([*proxy, str(plain), "--", old], rounds))
    toolshift("lock", str(plain), "--out", str(lock))
    second = asyncio.run(calls_of([*proxy, str(plain), "--", new], rounds))
    adapt = [*proxy, str(layered), "--adapt", str(lock), "--rewrite", "--", new]
    third = asyncio.run(calls_of(adapt, rounds))
    before = {call["tool"]: call["said"] for call in reversed(first)}
    verdict = json.loads(
        toolshift("verify", str(lock), f"mcp:{new}", "--calls", str(plain), "--json", codes=(0, 1))
    )
    said = toolshift("watch", str(plain), "--lock", str(lock), "--json", codes=(0, 1))
    alarms = [json.loads(line) for line in said.splitlines()]
    return {
        "rounds": rounds,
        "verify": {
            "worst": verdict["worst"],
            "kinds": dict(Counter(event["kind"] for event in verdict["report"]["events"])),
            "recorded_calls_that_break": sum(verdict["report"]["breaks"].values()),
            "recorded_calls": verdict["report"]["calls"],
        },
        "watch": {
            "events_of_the_old_version": len(first) + 1,
            "first_alarm_at_event": min((alarm["at"] for alarm in alarms), default=None),
            "alarms": dict(Counter(alarm["kind"] for alarm in alarms)),
        },
        "old": summed(first, before),
        "new": summed(second, before),
        "new_behind_adapt": summed(third, before),
        "adapted": adapted(layered),
    }


if __name__ == "__main__":
    main()

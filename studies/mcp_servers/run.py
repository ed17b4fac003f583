"""Three MCP servers by others: as worlds of five tasks, and through the proxy under every shift.

    python studies/mcp_servers/run.py --servers FOLDER        # see README.md
    python studies/mcp_servers/run.py --table                 # what is stored

Through the proxy, each shift at each severity has a session of its own with the official client
and a server in its first state. A session without any shift is the measure: where a shifted one
shows the client the same tools and the same results, the proxy must have said that the shift
changed nothing, and must not have said so anywhere else.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import importlib.metadata
import io
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp import Client

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import first_state  # noqa: E402

from toolshift import evaluate  # noqa: E402
from toolshift.connect.mcp.proxy import in_process  # noqa: E402
from toolshift.connect.mcp.shifted_server import ShiftOptions, shift_tools  # noqa: E402
from toolshift.core.errors import UsageError  # noqa: E402
from toolshift.core.files import pack  # noqa: E402
from toolshift.interop.mcp_client import Target, list_tools  # noqa: E402
from toolshift.runs.own_checking import check_tasks  # noqa: E402
from toolshift.shifts.live import Rehearsal  # noqa: E402
from toolshift.shifts.registry import shifts  # noqa: E402
from toolshift.shifts.stacks import read_arms  # noqa: E402
from toolshift.worlds.own import load  # noqa: E402

AGENTS = ("oracle", "memorises_names")
ROUNDS = 4
"""How often the calls are made, so that what changes in mid-session does."""
REPO = {"repo_path": "repo"}
THOUGHT = {"thought": "Check", "nextThoughtNeeded": True, "thoughtNumber": 1, "totalThoughts": 2}
PERSON = {"name": "Tilo", "entityType": "person", "observations": ["sings"]}
WORK: dict[str, dict[str, dict[str, Any]]] = {
    "memory": {
        "search_nodes": {"query": "Ana Brandt"},
        "read_graph": {},
        "create_entities": {"entities": [PERSON]},
    },
    "thinking": {"sequentialthinking": THOUGHT},
    "git": {
        "git_status": REPO,
        "git_log": REPO,
        "git_show": {**REPO, "revision": "winter"},
        "git_add": {**REPO, "files": ["menu.txt"]},
    },
    "git, sentences": {
        "git_branch": {**REPO, "branch_type": "local"},
        "git_add": {**REPO, "files": ["menu.txt"]},
    },
}
"""What is called of each server; the shifts aim at these tools."""


@dataclass(frozen=True)
class Server:
    """A server and what is called of it."""

    name: str
    command: str
    work: dict[str, dict[str, Any]]

    @contextmanager
    def fresh(self) -> Iterator[Target]:
        """The server in its first state."""
        with tempfile.TemporaryDirectory() as made, open(os.devnull, "w") as silence:
            folder, env = Path(made), {}
            if self.name.startswith("memory"):
                first_state.memory(folder)
                env = {"MEMORY_FILE_PATH": str(folder / "memory.jsonl")}
            elif self.name.startswith("git"):
                first_state.repository(folder)
            yield Target(command=(self.command,), cwd=folder, env=env, errors=silence)


SERVERS = [
    Server(name, command, WORK[name])
    for name, command in (
        ("memory", "mcp-server-memory"),
        ("thinking", "mcp-server-sequential-thinking"),
        ("git", "mcp-server-git"),
    )
]
SENTENCES = Server("git, sentences", "mcp-server-git", WORK["git, sentences"])
"""Tools of which no result holds records, so that a format has nothing to drift in."""


# -- through the proxy ---------------------------------------------------------------------------


def plan_of(server: Server, listed: list[dict[str, Any]], how: ShiftOptions) -> Rehearsal:
    """A rehearsal on the interface that the proxy will show, with the arguments of the work.

    Raises:
        UsageError: where the shift does not apply.
    """
    live, _ = shift_tools(listed, how)
    given = {
        fact: arguments[name]
        for tool, arguments in server.work.items()
        for fact, name in live.toolbox.sources[tool].known.items()
        if name in arguments
    }
    return Rehearsal(live.scene.open(), given)


async def session(
    server: Server, target: Target, how: ShiftOptions, plan: Rehearsal, trace: Any = None
) -> list[Any]:
    """Everything that a client is shown: the tools, the results, and the tools once more."""
    shown: list[Any] = []
    async with Client(in_process(target, how, trace)) as client:

        async def look() -> None:
            page = await client.list_tools(cache_mode="refresh")
            shown.append([tool.model_dump(mode="json", by_alias=True) for tool in page.tools])

        await look()
        for _ in range(ROUNDS):
            made = len(plan.steps)
            plan.visit(t for t in list(plan.shown().values()) if {*t.origin} & {*server.work})
            for step in plan.steps[made:]:
                result = await client.call_tool(step.name, dict(step.arguments))
                told = result.model_dump(mode="json", by_alias=True)
                shown.append([told["content"], told.get("structuredContent"), told["isError"]])
        await look()
    return shown


class Kept:
    """A trace that is kept in memory."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []

    def write(self, record: dict[str, Any]) -> None:
        """Keeps a record."""
        self.records.append(record)


def proxied(server: Server, listed: list[dict[str, Any]], stack: str) -> dict[str, Any]:
    """One shift on one server: not applicable and why, or what came of it."""
    (applied,) = read_arms(stack, (2,))[0].shifts if stack else (None,)
    how = ShiftOptions((applied,) if applied else (), needed=tuple(server.work), may_write=True)
    try:
        plan = plan_of(server, listed, how)
    except UsageError as reason:
        return {"applies": False, "why": str(reason).split(": ", 1)[1].split(". Leave")[0]}
    kept, said = Kept(), io.StringIO()
    with server.fresh() as target, redirect_stderr(said):
        work = session(server, target, how, plan, kept)
        heard = asyncio.run(asyncio.wait_for(work, 120))
    plain = session_without(server, listed, plan) if applied else []
    end = kept.records[-1] if applied else {}
    nothing = [name for name, each in end.get("changes", {}).items() if each["nothing"]]
    lines = [line for line in said.getvalue().splitlines() if line.strip()]
    return {
        "applies": True,
        "calls": len(plan.steps),
        "changed nothing": bool(applied) and heard == plain,
        "said in the trace": bool(nothing),
        "said at the end": any("changed nothing in this session" in line for line in lines),
        "faults": [line for line in lines if "changed nothing in this session" not in line],
    }


def session_without(server: Server, listed: list[dict[str, Any]], plan: Rehearsal) -> list[Any]:
    """What a client is shown that makes the same calls without a shift; [] where it cannot."""
    names = {tool["name"] for tool in listed}
    if any(step.name not in names for step in plan.steps):
        return []
    how = ShiftOptions(needed=tuple(server.work))
    with server.fresh() as target:
        again = plan_of(server, listed, how)
        return asyncio.run(asyncio.wait_for(session(server, target, how, again), 120))


def wrong(row: dict[str, Any]) -> str:
    """What a cell does not hold of what is promised; "" where it holds all."""
    if not row["applies"]:
        return ""
    said = row["said in the trace"], row["said at the end"]
    if said != (row["changed nothing"],) * 2:
        return f"changed nothing: {row['changed nothing']}, said: {said}"
    return "; ".join(row["faults"])


def through_the_proxy(server: Server, names: list[str]) -> list[dict[str, Any]]:
    """Every shift at every severity."""
    with server.fresh() as target:
        listed = asyncio.run(list_tools(target))
    rows = []
    for name in names:
        for arm in read_arms(name, (1, 2, 3)):
            (applied,) = arm.shifts
            stack = f"{applied.shift}:{applied.severity}"
            row: dict[str, Any] = {"tools": server.name, "shift": stack}
            try:
                row |= proxied(server, listed, stack)
            except Exception as fault:
                while isinstance(fault, BaseExceptionGroup):
                    fault = fault.exceptions[0]  # type: ignore[assignment]
                row |= {"applies": True, "crash": f"{type(fault).__name__}: {fault}"}
            rows.append(row)
            print(server.name, json.dumps(row), flush=True)
    return rows


# -- as worlds -----------------------------------------------------------------------------------


def as_world(server: Server) -> dict[str, Any]:
    """The tasks under every shift on what was kept, and agents on the real server."""
    world = load(HERE / f"{server.name}.yaml")
    tasks = {
        task.id: {"state": task.state, "shifts proved": task.shifts, "said": task.said}
        for task in check_tasks(world)
    }
    report = evaluate(list(AGENTS), worlds=[str(HERE / f"{server.name}.yaml")], suite="quick")
    agents = {
        each.name: {
            "clean": each.clean.accuracy.estimate,
            **{row.label: round(row.accuracy.estimate, 3) for row in each.tiers},
            "episodes": each.everything.episodes,
            "void": each.everything.void,
        }
        for each in report.agents
    }
    left = {each.shift: f"{each.skipped} of {each.tried}" for each in report.skipped}
    broken = [each.shift for each in report.broken]
    return {"tasks": tasks, "agents": agents, "not applicable": left, "broken": broken}


# -- all of it -----------------------------------------------------------------------------------


def versions() -> dict[str, str]:
    """Of what took part, as far as it can be asked."""
    found = {name: importlib.metadata.version(name) for name in ("toolshift", "mcp")}
    found["python"] = sys.version.split()[0]
    for word in ("node", "git"):
        told = subprocess.run([word, "--version"], capture_output=True, text=True, check=True)
        found[word] = told.stdout.strip()
    for path in filter(None, os.environ["PATH"].split(os.pathsep)[:2]):
        for about in Path(path).parent.glob("@modelcontextprotocol/server-*/package.json"):
            found[about.parent.name] = json.loads(about.read_text())["version"]
        python = Path(path) / "python"
        if python.exists():
            code = "import importlib.metadata as m; print(m.version('mcp-server-git'))"
            told = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
            found["mcp-server-git"] = told.stdout.strip()
    return found


def print_table(out: dict[str, Any]) -> None:
    """A row a server: the world, then the proxy."""
    print(
        "| server | tasks | oracle clean / quick suite | memorises_names under perception |", end=""
    )
    print(" proxy: apply | change nothing, and say so | crashes |")
    print("|---|---|---|---|---|---|---|")
    for name, found in out["servers"].items():
        world, rows = found["world"], found["proxy"]
        sound = sum(task["state"] == "ok" for task in world["tasks"].values())
        oracle, memory = (world["agents"][agent] for agent in AGENTS)
        tiers = [v for k, v in oracle.items() if k not in ("clean", "episodes", "void")]
        applies = [row for row in rows if row["applies"]]
        idle = sum(row.get("changed nothing", False) for row in applies)
        crashes = sum("crash" in row for row in rows)
        print(
            f"| {name} | {sound} of {len(world['tasks'])} sound | {oracle['clean']:.0%} / "
            f"{min(tiers):.0%} | {memory['perception']:.0%} | {len(applies)} of {len(rows)} | "
            f"{idle} | {crashes} |"
        )
    whys = Counter(
        (row["shift"].split(":")[0], row["why"])
        for found in out["servers"].values()
        for row in found["proxy"]
        if not row["applies"]
    )
    print("\nNot applicable through the proxy:\n")
    for (shift, why), count in whys.items():
        print(f"- `{shift}` ({count}): {why}")
    idle_rows = [
        f"{row['tools']}: {row['shift']}"
        for found in out["servers"].values()
        for row in found["proxy"]
        if row.get("changed nothing")
    ]
    print("\nChanged nothing, and said so:", "; ".join(idle_rows) or "none")


def main() -> None:
    """Runs what is missing, or prints what is there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--servers", type=Path, help="The folder where they are installed.")
    parser.add_argument("--out", type=Path, default=HERE / "results.json.gz")
    parser.add_argument("--only", nargs="+", default=[server.name for server in SERVERS])
    parser.add_argument("--table", action="store_true", help="Print what is in the file.")
    options = parser.parse_args()
    out: dict[str, Any] = {"about": {}, "servers": {}}
    if options.out.exists():
        out = json.loads(gzip.decompress(options.out.read_bytes()))
    if options.table:
        print_table(out)
        return
    if options.servers is None:
        parser.error("--servers says where the servers are installed")
    folder = options.servers.absolute()
    bins = (folder / "node_modules" / ".bin", folder / "git" / "bin")
    os.environ["PATH"] = os.pathsep.join([*map(str, bins), os.environ["PATH"]])
    out["about"] = versions()
    for server in SERVERS:
        if server.name in options.only:
            rows = through_the_proxy(server, list(shifts()))
            if server.name == "git":
                about_results = [n for n, s in shifts().items() if s.dimension == "observation"]
                rows += through_the_proxy(SENTENCES, about_results)
            out["servers"][server.name] = {"world": as_world(server), "proxy": rows}
            options.out.write_bytes(pack(json.dumps(out, indent=1).encode() + b"\n"))
    rows = [row for found in out["servers"].values() for row in found["proxy"]]
    bad = [row for row in rows if "crash" in row or wrong(row)]
    for row in bad:
        print("NOT AS PROMISED", row.get("crash") or wrong(row), row["shift"])
    print(f"{len(rows)} cells, {sum(row['applies'] for row in rows)} apply, {len(bad)} bad")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()

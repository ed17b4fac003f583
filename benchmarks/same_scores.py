"""Whether anything that is compared across versions has moved since an older commit.

    python benchmarks/same_scores.py --before 2303d6b4 --suite quick
    python benchmarks/same_scores.py --before 2303d6b4 --suite standard --tasks 6

Each side is installed into an environment of its own (the package, and `lab/` where the side has
one), so neither sees the other's code, entry points or former versions. Compared are

- what agents are shown in every scene, by hash;
- the episodes of the oracle and of every planted agent, line by line;
- tools, locks and episodes of own worlds: Python functions, an OpenAPI document, an MCP server;
- rows of `toolshift data` and `toolshift augment`: each shift at the version that the older side
  has, each format, each training family of the older side, 500 rows a file, by hash. Where the
  older side has a quick path for OpenAI rows, its plain path is compared as well.

Names in `RENAMED` are taken as equal. A suite or a shift that one side lacks is an error.
Exit codes: 0 equal, 1 something differs, 2 the comparison could not be made.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import venv
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import copytree
from typing import Any

ROOT = Path(__file__).parents[1]
WORLDS = ("poi", "retail", "medical")
RENAMED = {"forced_completion": "answered_without_evidence", "over_refusal": "wrong_refusal"}
"""Names that were changed since, old to new: the same verdict in other words."""

FORMATS = ("openai", "hermes", "sharegpt", "xlam", "toolace", "adp")
ROWS = 500

SHOWN = """
import hashlib, json, sys
from toolshift import Episode, NotApplicable, apply, find_world, make_agent, make_scene
seen = {}
for world in sys.argv[2:]:
    for kind in find_world(world).kinds:
        for stack in [""] + sys.argv[1].split(","):
            scene = make_scene(find_world(world), kind, 0)
            try:
                if stack:
                    scene = apply(scene, stack, 2)
                episode = Episode(scene)
                texts = [episode.observation]
                make_agent("oracle").play(episode)
                texts.append(episode.observation)
                shown = json.dumps([[list(t.messages), list(t.tools)] for t in texts])
            except NotApplicable as reason:
                shown = f"not applicable: {reason}"
            seen[f"{world}/{kind} {stack}"] = hashlib.sha256(shown.encode()).hexdigest()[:16]
print(json.dumps(seen))
"""

FAMILIES = """
import json
try:
    from toolshift.shifts.training_families import TRAINING_FAMILIES
    found = TRAINING_FAMILIES.all()
except ModuleNotFoundError:
    from toolshift.runs.families import TRAINING_FAMILIES as found
print(json.dumps({name: list(shifts) for name, shifts in found.items()}))
"""

PLAIN_PATH = """
import sys
from toolshift.cli import main
try:
    from toolshift.data.augment_quick import Quick
except ModuleNotFoundError:
    pass
else:
    Quick.line = lambda self, content: None
sys.argv[0] = "toolshift"
main()
"""
"""`toolshift` with the older side's quick path for OpenAI rows switched off."""

MCP_SERVER = """
import json, sys
TEXT = {"type": "string"}
PLACES = {"harbour": "H-11", "market": "M-12"}
TOOLS = [
    {"name": "find_place", "description": "Find the id of a place by its name.",
     "inputSchema": {"type": "object", "properties": {"name": TEXT}, "required": ["name"]}},
    {"name": "opening_hours", "description": "Opening hours of a place.",
     "inputSchema": {"type": "object", "properties": {"place_id": TEXT}, "required": ["place_id"]}},
]
for line in sys.stdin:
    request = json.loads(line)
    result = {}
    if request["method"] == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                  "serverInfo": {"name": "places", "version": "1"}}
    elif request["method"] == "tools/list":
        result = {"tools": TOOLS}
    elif request["method"] == "tools/call":
        given = request["params"].get("arguments") or {}
        data = {"place_id": PLACES.get(given.get("name"), "")}
        if request["params"]["name"] == "opening_hours":
            data = {"opens": "09:15", "closes": "17:45" if given["place_id"] == "H-11" else "20:30"}
        result = {"content": [{"type": "text", "text": json.dumps(data)}]}
    if "id" in request:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"""

OPENAPI: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Places", "version": "1"},
    "paths": {
        "/places": {
            "get": {
                "operationId": "find_place",
                "summary": "Find the id of a place by its name.",
                "parameters": [
                    {"name": "name", "in": "query", "required": True, "schema": {"type": "string"}}
                ],
                "responses": {"200": {"description": "found"}},
            }
        },
        "/places/{place_id}/hours": {
            "get": {
                "operationId": "opening_hours",
                "summary": "Opening hours of a place.",
                "parameters": [
                    {
                        "name": "place_id",
                        "in": "path",
                        "required": True,
                        "schema": {"type": "string"},
                    }
                ],
                "responses": {"200": {"description": "hours"}},
            }
        },
    },
}

TASKS = """
world: {world}
tools: {tools}
tasks:
  - id: harbour
    kind: hours
    ask: When does the harbour close?
    calls:
      - {{name: find_place, arguments: {{name: harbour}}}}
      - {{name: opening_hours, arguments: {{place_id: "{{{{calls[0].place_id}}}}"}}}}
    check: {{answer: "17:45"}}
  - id: market
    kind: hours
    ask: When does the market close?
    calls:
      - {{name: find_place, arguments: {{name: market}}}}
      - {{name: opening_hours, arguments: {{place_id: "{{{{calls[0].place_id}}}}"}}}}
    check: {{answer: "20:30"}}
"""


class Site(BaseHTTPRequestHandler):
    """The places of the OpenAPI document over HTTP."""

    def do_GET(self) -> None:
        """Answers both operations."""
        if self.path.endswith("/hours"):
            closes = "17:45" if "H-11" in self.path else "20:30"
            data = {"opens": "09:15", "closes": closes}
        else:
            data = {"place_id": "H-11" if self.path.endswith("harbour") else "M-12"}
        body = json.dumps(data).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@contextmanager
def site() -> Iterator[str]:
    """The address of a running `Site`: one for both sides, so that it is the same text."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


@dataclass(frozen=True)
class Side:
    """One of the two commits: its environment, and the folder that its commands run in."""

    name: str
    environment: Path
    work: Path

    def python(self, *command: str, refused: str = "") -> str:
        """What a Python command prints; `refused` names a refusal that is told as itself."""
        kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
        path = f"{self.environment / 'bin'}{os.pathsep}{os.environ['PATH']}"
        env = {**kept, "PYTHONHASHSEED": "0", "PATH": path}
        done = subprocess.run(
            [str(self.environment / "bin" / "python"), *command],
            cwd=self.work, env=env, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if refused and done.returncode == 2 and refused in done.stderr:
            return refused
        crashed = done.returncode == 1 and "Traceback (most recent call last)" in done.stderr
        if crashed or done.returncode not in (0, 1):  # 1 is a verdict of the command
            stop(f"{self.name}: {' '.join(command)[:300]}\n{done.stderr[-2000:]}")
        return done.stdout

    def toolshift(self, *command: str) -> str:
        """What `toolshift ...` of this side prints."""
        return self.python("-m", "toolshift", *command)

    def listed(self, what: str) -> list[dict[str, Any]]:
        """The rows of `toolshift list WHAT`."""
        rows: list[dict[str, Any]] = json.loads(self.toolshift("list", what, "--json"))
        return rows


def stop(why: str) -> None:
    """Ends the comparison: it could not be made."""
    print(why, file=sys.stderr)
    sys.exit(2)


def install(source: Path, folder: Path) -> Path:
    """An environment with the package of a side, and its lab where it has one."""
    venv.create(folder, with_pip=True)
    pip = [str(folder / "bin" / "pip"), "install", "--quiet"]
    constraints = ["--constraint", str(ROOT / "constraints.txt")]
    subprocess.run([*pip, *constraints, f"{source}[connect]"], check=True)
    if (source / "lab" / "pyproject.toml").exists():
        subprocess.run([*pip, "--no-deps", str(source / "lab")], check=True)
    return folder


def hash_of(text: str | bytes) -> str:
    """The first 16 digits of the SHA-256."""
    data = text.encode() if isinstance(text, str) else text
    return hashlib.sha256(data).hexdigest()[:16]


def episodes_in(out: Path) -> dict[str, str]:
    """The stored episodes of a run folder by their id, as text."""
    packed = out / "episodes.jsonl.gz"
    text = (
        gzip.decompress(packed.read_bytes()).decode()
        if packed.exists()
        else (out / "episodes.jsonl").read_text()
    )
    return {json.loads(line)["episode"]: line for line in text.splitlines()}


def shown(side: Side, shifts: str) -> dict[str, str]:
    """What an agent is shown in a scene of each kind under each shift, by hash."""
    found: dict[str, str] = json.loads(side.python("-c", SHOWN, shifts, *WORLDS))
    return found


def played(side: Side, suite: str, tasks: int, agents: list[str]) -> dict[str, str]:
    """The episodes of all agents in the three shipped worlds."""
    found: dict[str, str] = {}
    who = [part for name in agents for part in ("--agent", name)]
    some = ["--tasks", str(tasks)] if tasks else []
    for world in WORLDS:
        out = side.work / f"{suite}-{world}"
        side.toolshift(
            "run", *who, "--suite", suite, "--world", world, *some,
            "--out", str(out), "--workers", "2",
        )  # fmt: skip
        found |= episodes_in(out)
    return found


def own_worlds(side: Side, address: str) -> dict[str, str]:
    """Episodes, tools and locks of worlds over a user's own tools, of the three kinds."""
    copytree(ROOT / "examples" / "own_tools", side.work / "own", dirs_exist_ok=True)
    own = side.work / "own"
    (own / "server.py").write_text(MCP_SERVER)
    (own / "api.json").write_text(json.dumps({**OPENAPI, "servers": [{"url": address}]}))
    (own / "mcp.yaml").write_text(TASKS.format(world="over_mcp", tools="{mcp: python server.py}"))
    tools = f"{{openapi: api.json, base_url: '{address}'}}"
    (own / "openapi.yaml").write_text(TASKS.format(world="over_openapi", tools=tools))
    found: dict[str, str] = {}
    for file in ("tasks.yaml", "mcp.yaml", "openapi.yaml"):
        out = own / f"run-{file}"
        who = ("--agent", "oracle", "--agent", "memorises_names", "--agent", "gives_up")
        side.toolshift(
            "run", "--world", str(own / file), *who, "--suite", "standard", "--out", str(out)
        )
        for key, line in episodes_in(out).items():
            found[f"{file} {key}"] = line
    for name, source in (("mcp", f"mcp:python {own / 'server.py'}"), ("openapi", "own/api.json")):
        side.toolshift("lock", source, "--out", str(own / f"{name}.lock"))
        text = (own / f"{name}.lock").read_text()
        found[f"lock of {name}"] = text.replace(str(side.work), "")
    return found


def training_rows(side: Side, shifts: list[str]) -> dict[str, str]:
    """Rows of `toolshift data` under each shift, and under a mix of all, by hash."""
    found = {}
    mixes = {"all": shifts, **{shift: [shift] for shift in shifts}}
    for name, entries in mixes.items():
        out = side.work / "rows.jsonl"
        given = [part for entry in entries for part in ("--shift", entry)]
        count = "200" if name == "all" else "20"
        side.toolshift("data", "--count", count, "--alpha", "0.6", *given, "--out", str(out))
        found[f"data {name}"] = hash_of(out.read_bytes())
        out.unlink()
    return found


def sources(side: Side, folder: Path) -> None:
    """500 conversations in every format, made by the older side for both."""
    folder.mkdir()
    side.toolshift("data", "--count", str(ROWS), "--out", str(folder / "openai.jsonl"))
    rows = map(json.loads, (folder / "openai.jsonl").read_text().splitlines())
    (folder / "xlam.jsonl").write_text("".join(json.dumps(as_xlam(row)) + "\n" for row in rows))
    for name in FORMATS[1:]:
        if name == "xlam":
            continue
        side.toolshift(
            "augment", str(folder / "openai.jsonl"), "--alpha", "0", "--to", name,
            "--out", str(folder / f"{name}.jsonl"),
        )  # fmt: skip


def as_xlam(row: dict[str, Any]) -> dict[str, Any]:
    """The first question of a conversation with its first calls: all that xLAM holds."""
    user = next(each for each in row["messages"] if each["role"] == "user")
    first = next(each for each in row["messages"] if each.get("tool_calls"))
    calls = [each["function"] for each in first["tool_calls"]]
    return {
        "query": user["content"],
        "tools": json.dumps([each["function"] for each in row["tools"]]),
        "answers": json.dumps(
            [{**call, "arguments": json.loads(call["arguments"])} for call in calls]
        ),
    }


def augmented(
    side: Side, folder: Path, families: dict[str, list[str]], command: tuple[str, ...]
) -> dict[str, str]:
    """What `toolshift augment` makes of each format under each family, by hash."""
    found = {}
    for form in FORMATS:
        for family, entries in families.items():
            out = side.work / "augmented.jsonl"
            given = [part for entry in entries for part in ("--shift", entry)]
            printed = side.python(
                *command, "augment", str(folder / f"{form}.jsonl"), "--alpha", "0.9", *given,
                "--out", str(out), "--json", refused="was shifted by",
            )  # fmt: skip
            # Where no row can be shifted, today's version refuses, and the older one copied all.
            made = printed.startswith("{") and sum(json.loads(printed)["shifted"].values())
            text = hash_of(out.read_bytes()) if made else "nothing was shifted"
            found[f"augment {form} {family}"] = text
            for path in side.work.glob("augmented.jsonl*"):
                path.unlink()
    return found


NOTHING_USED = '"usage":{"input_tokens":0,"output_tokens":0,"cost":0.0}'


def renamed(line: str) -> str:
    """A line with the names of today, and without a usage of nothing, which is not stored now."""
    for old, new in RENAMED.items():
        line = line.replace(f'"{old}"', f'"{new}"')
    return line.replace(NOTHING_USED, '"usage":{}')


def report(what: str, before: dict[str, str], after: dict[str, str]) -> int:
    """Prints one comparison; returns how many differ."""
    found = [
        key
        for key in sorted(before.keys() | after.keys())
        if renamed(before.get(key, "")) != renamed(after.get(key, ""))
    ]
    print(f"{what}: {len(before)} before, {len(after)} after, {len(found)} differ", flush=True)
    for key in found[:5]:
        print(f"  {key}\n    {before.get(key, '-')[:400]}\n    {after.get(key, '-')[:400]}")
    kinds = Counter(key.split()[-1] for key in found)
    if len(found) > 5:
        print(f"  most: {kinds.most_common(5)}")
    return len(found)


@contextmanager
def sides(commit: str) -> Iterator[tuple[Side, Side]]:
    """Both sides, installed; the older one from a checkout that goes again."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        checkout = folder / "checkout"
        subprocess.run(
            ["git", "worktree", "add", "--quiet", "--detach", str(checkout), commit],
            cwd=ROOT, check=True,
        )  # fmt: skip
        try:
            made = []
            for side, source in (("before", checkout), ("after", ROOT)):
                work = folder / side / "work"
                work.mkdir(parents=True)
                made.append(Side(side, install(source, folder / side / "venv"), work))
            yield made[0], made[1]
        finally:
            subprocess.run(
                ["git", "worktree", "remove", "--force", str(checkout)], cwd=ROOT, check=False
            )


def versioned(side: Side, suite: str) -> str:
    """The suite with the version that a side has; the first that is listed is today's."""
    for row in side.listed("suites"):
        if suite in (row["suite"], row["suite"].partition("@")[0]):
            return str(row["suite"])
    stop(f"{side.name} has no suite {suite}")
    return ""


PARTS = ("shown", "own", "rows", "augment", "episodes")


def compare(before: Side, after: Side, suite: str, tasks: int, parts: tuple[str, ...]) -> int:
    """Makes the comparisons that are asked for; returns how many things differ."""
    both = (before, after)
    suite = versioned(before, suite)
    if suite not in {row["suite"] for row in after.listed("suites")}:
        stop(f"{after.name} has no suite {suite}: is its lab installed?")
    names = [str(row["agent"]) for row in before.listed("agents")]
    agents = [name for name in names if re.fullmatch(r"[a-z_]+", name) and name != "smol"]
    shifts = [f"{row['shift']}@{row.get('version', 1)}" for row in before.listed("shifts")]
    families = json.loads(before.python("-c", FAMILIES))

    def each(what: str, make: Callable[[Side], dict[str, str]]) -> int:
        return report(what, *(make(side) for side in both))

    bad = 0
    if "shown" in parts:
        bad += each("what agents are shown", lambda side: shown(side, ",".join(shifts)))
    if "own" in parts:
        with site() as address:
            bad += each("own worlds and locks", lambda side: own_worlds(side, address))
    if "rows" in parts:
        bad += each("training rows", lambda side: training_rows(side, shifts))
    if "augment" in parts:
        folder, module = before.work.parent / "sources", ("-m", "toolshift")
        sources(before, folder)
        new = augmented(after, folder, families, module)
        bad += report("augmented rows", augmented(before, folder, families, module), new)
        plain = augmented(before, folder, families, ("-c", PLAIN_PATH))
        bad += report("augmented rows, the plain path of before", plain, new)
    if "episodes" in parts:
        what = f"episodes of {len(agents)} agents, {suite}"
        bad += each(what, lambda side: played(side, suite, tasks, agents))
    return bad


def main() -> None:
    """Compares and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", default="2303d6b4", help="the commit to compare with")
    parser.add_argument("--suite", default="quick")
    parser.add_argument("--tasks", type=int, default=0, help="tasks of each world; 0: the suite's")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this; repeat")
    options = parser.parse_args()
    parts = tuple(options.part or PARTS)
    with sides(options.before) as (before, after):
        bad = compare(before, after, options.suite, options.tasks, parts)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()

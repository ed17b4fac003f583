"""Frameworks, Inspect and a third-party agent, each in an environment of its own.

    python tests/connect/frameworks/run.py --envs DIR --out studies/frameworks/results.json

Makes the environments that are missing (pip and npm, from `requirements/`), runs every program in
them against real HTTP servers, and prints a table. A scripted model stands in for a good one, so
that whole scenes complete: a row is right where the episode's grade is the one that the same
scripted agent gets in this process. SmolLM2-135M is a real model, and is only expected to be
talked to. Exit code 1 where a row is not as expected.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests"))

from connect.proxying import proxied  # noqa: E402
from connect.scripted_model import Part, Reader, scripted_model  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402
from serving import smol_server  # noqa: E402

from toolshift.connect.callables import start_episode  # noqa: E402
from toolshift.connect.serve.background import Background  # noqa: E402
from toolshift.connect.serve.session import AgentSession  # noqa: E402
from toolshift.episode.grade import Grade, grade  # noqa: E402

PROGRAMS = ROOT / "tests/connect/frameworks/programs"
FRAMEWORKS = ("openai-agents", "langgraph", "pydantic-ai")
SECONDS = 1500  # a laptop needs a tenth of it
SAME, OTHER = "same grade", "other grade"


@dataclass(frozen=True)
class Scene:
    """What is played: a task, its shifts, and by which scripted agent."""

    task: str = "poi/booking/0"
    shifts: str = ""
    agent: str = "oracle"
    prose: bool = False

    def __str__(self) -> str:
        how = ", in prose" if self.prose else ""
        return f"{self.task} {self.shifts or 'clean'}, {self.agent}{how}"


@dataclass(frozen=True)
class Row:
    """One program in one scene.

    Attributes:
        model: "scripted", or a real one's name.
        outcome: against the same scripted agent in this process; for a real model, how it ended.
        requests: that reached the model.
        altered: results that reached the model in other words than the scene had said them.
        expected: the outcome is what it should be.
    """

    program: str
    by: str
    scene: str
    model: str
    outcome: str
    passed: bool | None
    requests: int
    altered: int
    seconds: float
    expected: bool = True
    note: str = ""


SCENES = (
    Scene(),
    Scene(shifts="identity_erasure:2+format_drift:2"),
    Scene(shifts="redirect:2"),
    Scene(shifts="identity_erasure:2", agent="memorises_names"),
    Scene("poi/visit/0", "intent_change:1"),
    Scene(shifts="tool_removed_midway:2"),
    Scene(prose=True),
)


# -- environments ------------------------------------------------------------------------------


def environment(envs: Path, name: str) -> Path:
    """The Python of an environment, made anew where its requirements have changed."""
    wanted = (ROOT / f"requirements/{name}.txt").read_text()
    home, stamp = envs / name, envs / name / "requirements.txt"
    python = home / "bin/python"
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"making the environment {name}", file=sys.stderr)
        shutil.rmtree(home, ignore_errors=True)
        venv.create(home, with_pip=True)
        file = str(ROOT / f"requirements/{name}.txt")
        install = ["-m", "pip", "install", "--quiet", "-r", file, "-e", str(ROOT)]
        subprocess.run([python, *install], check=True)
        stamp.write_text(wanted)
    return python


def npm_program(envs: Path, name: str, binary: str) -> Path:
    """A program of an npm package."""
    lines = (ROOT / f"requirements/{name}.txt").read_text().splitlines()
    packages = [line for line in lines if line and not line.startswith("#")]
    home = envs / name
    path = home / "node_modules/.bin" / binary
    if not path.exists():
        home.mkdir(parents=True, exist_ok=True)
        print(f"installing {' '.join(packages)}", file=sys.stderr)
        subprocess.run(
            ["npm", "install", "--no-audit", "--no-fund", *packages], cwd=home, check=True
        )
    return path


def run(command: list[str | Path], env: dict[str, str], cwd: Path) -> tuple[int, str, str]:
    """Runs a program away from this tree and its settings; the exit code, output and errors."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    settings = {**kept, "HOME": str(cwd), "PWD": str(cwd), **env}
    try:
        done = subprocess.run(
            [str(word) for word in command],
            env=settings,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return -1, "", f"stopped after {SECONDS} seconds"
    return done.returncode, done.stdout, done.stderr


# -- frameworks --------------------------------------------------------------------------------


def frameworks(envs: Path, site: Background) -> Iterator[Row]:
    for name in FRAMEWORKS:
        python = environment(envs, name)
        for by in ("callables", "mcp"):
            for scene in SCENES:
                part = Part(scene.agent, scene.task, scene.shifts, prose=scene.prose)
                with scripted_model(part) as model:
                    row = play(python, name, by, scene, model.url, site)
                    altered = len(set(model.surprises))
                    count = len(model.requests)
                yield judged(replace(row, requests=count, altered=altered), part.grade, scene)


def real_model(envs: Path, site: Background) -> Iterator[Row]:
    with smol_server(threads=2, most=64) as url:
        for name in FRAMEWORKS:
            for by in ("callables", "mcp"):
                row = play(environment(envs, name), name, by, Scene(agent="-"), url, site)
                yield replace(row, model="SmolLM2-135M", expected=row.outcome != "not over")


def play(python: Path, name: str, by: str, scene: Scene, url: str, site: Background) -> Row:
    """Runs one program in one scene; `outcome` holds the grade as JSON until it is judged."""
    program = PROGRAMS / f"{name.replace('-', '_')}_{by}.py"
    env = {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none", "OPENAI_AGENTS_DISABLE_TRACING": "1"}
    seat = AgentSession(start_episode(scene.task, scene.shifts).episode)
    words: list[str] = [scene.task, scene.shifts]
    if by == "mcp":
        words = [f"{site.url}/e/{site.open(seat)}/mcp", seat.message]
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        code, out, err = run([python, program, *words], env, Path(folder))
    took = round(time.perf_counter() - start, 1)
    note = "" if code == 0 else (err.strip().splitlines() or ["no word"])[-1][:160]
    if by == "mcp":
        found = ended(seat, out if code == 0 else "")
    else:
        found = out.strip() if out.startswith("Grade(") else ""
    passed = "passed=True" in found if found else None
    return Row(name, by, str(scene), "scripted", found or "not over", passed, 0, 0, took, note=note)


def ended(seat: AgentSession, prose: str) -> str:
    """The grade of an episode over MCP; what the program printed is its last word."""
    if not seat.over and prose.strip():
        seat.say(prose.strip())
    return str(grade(seat.episode)) if seat.over else ""


def judged(row: Row, own: Grade, scene: Scene) -> Row:
    """Compares with the grade of the same scripted agent in this process."""
    words = re.compile(r"prose=\w+")
    prose = f"prose={scene.prose}" in row.outcome
    same = prose and words.sub("", row.outcome) == words.sub("", str(own))
    outcome = SAME if same else OTHER if row.passed is not None else row.outcome
    why = _why_other(row, scene)
    right = same or bool(why and row.passed is not True)
    return replace(row, outcome=outcome, expected=right, note="" if same else why or row.note)


def _why_other(row: Row, scene: Scene) -> str:
    """Why a framework cannot but end otherwise; "" where nothing is known to prevent it."""
    fixed = row.by == "callables" or row.program == "langgraph"
    if "removed_midway" in scene.shifts and fixed:
        return "keeps its first tool list: tools that come later are not seen"
    if scene.agent == "memorises_names":
        stops = row.program == "openai-agents"
        own = "raises" if stops else "answers"
        return f"{own} by itself where a tool is unknown: such calls never reach the scene"
    return ""


# -- a program of somebody else's --------------------------------------------------------------


def opencode(envs: Path, site: Background) -> Iterator[Row]:
    """The coding agent opencode, unchanged, told of our MCP server in its own settings."""
    binary = npm_program(envs, "opencode", "opencode")
    for scene in (
        Scene(),
        Scene(shifts="identity_erasure:2+format_drift:2"),
        Scene(shifts="redirect:2"),
    ):
        part = Part("oracle", scene.task, scene.shifts)
        with scripted_model(part) as model:
            row = _opencode(binary, scene, model.url, site)
            row = replace(row, requests=len(model.requests), altered=len(set(model.surprises)))
        yield judged(row, part.grade, scene)
    scene, shifts = Scene(), "identity_erasure:2"
    part = Reader(scene.task)
    with scripted_model(part) as model, proxied(model.url, shifts, may_write=True) as (url, _):
        row = _opencode(binary, scene, url, site)
        row = replace(row, requests=len(model.requests), by=f"mcp, model proxy {shifts}")
    yield judged(row, part.grade, scene)


def _opencode(binary: Path, scene: Scene, url: str, site: Background) -> Row:
    seat = AgentSession(start_episode(scene.task, scene.shifts).episode)
    mcp = {"type": "remote", "url": f"{site.url}/e/{site.open(seat)}/mcp", "enabled": True}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": url, "apiKey": "none"},
        "models": {"scripted": {"name": "scripted", "tool_call": True}},
    }
    settings = {
        "model": "local/scripted",
        "small_model": "local/scripted",
        "provider": {"local": provider},
        "mcp": {"scene": {**mcp, "oauth": False}},
        "autoupdate": False,
        "share": "disabled",
    }
    off = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD")
    env = {f"OPENCODE_DISABLE_{name}": "1" for name in off}
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "opencode.json").write_text(json.dumps(settings))
        code, out, err = run([binary, "run", seat.message], env, folder)
    took = round(time.perf_counter() - start, 1)
    found = ended(seat, out if code == 0 else "")
    note = "" if code == 0 else (err.strip().splitlines() or ["no word"])[-1][:160]
    passed = "passed=True" in found if found else None
    outcome = found or "not over"
    return Row("opencode", "mcp", str(scene), "scripted", outcome, passed, 0, 0, took, note=note)


# -- Inspect -----------------------------------------------------------------------------------


def inspect(envs: Path, _: Background) -> Iterator[Row]:
    python = environment(envs, "inspect")
    tests = ROOT / "tests/connect/frameworks/test_inspect_tasks.py"
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        words = [
            "-m",
            "pytest",
            tests,
            "-q",
            "-o",
            "addopts=",
            "-p",
            "no:cacheprovider",
            "--rootdir",
            ROOT,
        ]
        code, out, _err = run([python, *words], {}, Path(folder))
    took = round(time.perf_counter() - start, 1)
    told = next((line for line in reversed(out.splitlines()) if " in " in line), "").strip("= ")
    told = told or out.strip().splitlines()[-1][:160]
    result = SAME if code == 0 else OTHER
    row = Row("inspect", "pytest", "see the tests", "scripted", result, code == 0, 0, 0, took)
    yield replace(row, expected=code == 0, note=told)
    yield _inspect_command(python)


def _inspect_command(python: Path) -> Row:
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        words = ["eval", "toolshift/quick", "--model", "toolshift/oracle", "--display", "plain"]
        code, out, err = run([python.parent / "inspect", *words], {}, Path(folder))
    took = round(time.perf_counter() - start, 1)
    accuracy = next((line.split()[1] for line in out.splitlines() if line[:9] == "accuracy "), "")
    right = accuracy == "1.000"
    note = f"accuracy {accuracy}" if code == 0 else (err or out).strip().splitlines()[-1][:160]
    scene = "inspect eval toolshift/quick"
    outcome = SAME if right else OTHER
    return Row("inspect", "command", scene, "scripted", outcome, right, 0, 0, took, right, note)


# -- all of it ---------------------------------------------------------------------------------

PARTS = {
    "frameworks": frameworks,
    "opencode": opencode,
    "inspect": inspect,
    "real-model": real_model,
}


def show(rows: list[Row]) -> None:
    table = Table("program", "by", "scene", "model", "outcome", "requests", "altered", "s", "note")
    for row in rows:
        mark = "" if row.expected else " (!)"
        outcome = row.outcome if len(row.outcome) < 20 else f"passed: {row.passed}"
        told = (row.requests, row.altered, row.seconds)
        cells = map(
            str, (row.program, row.by, row.scene, row.model, outcome + mark, *told, row.note)
        )
        table.add_row(*cells)
    Console(width=150).print(table)


def save(rows: list[Row], file: Path) -> None:
    """Writes the rows, in place of those of an earlier run of the same programs and scenes."""
    kept = [Row(**row) for row in json.loads(file.read_text())] if file.exists() else []
    named = {(row.program, row.by, row.scene, row.model): row for row in [*kept, *rows]}
    file.write_text(json.dumps([asdict(row) for row in named.values()], indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--envs", type=Path, default=ROOT / ".envs", help="where environments go")
    parser.add_argument("--out", type=Path, help="a JSON file for the rows")
    parser.add_argument("--only", action="append", choices=PARTS, help="repeat; default: all")
    args = parser.parse_args()
    site, rows = Background(), list[Row]()
    for name in args.only or PARTS:
        for row in PARTS[name](args.envs.resolve(), site):
            print(f"{row.program} {row.by} {row.scene}: {row.outcome[:40]}", file=sys.stderr)
            rows.append(row)
            if args.out:
                save([row], args.out)
    show(rows)
    sys.exit(0 if all(row.expected for row in rows) else 1)


if __name__ == "__main__":
    main()

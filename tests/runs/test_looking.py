"""Looking at a stored run starts no process, opens no connection, imports no code of the user's.

For each kind of tools, shift and agent of the user's own a run is made. Then a tripwire lies where
that was: a module that writes as it is imported, a command that writes as it is started, a server
that counts who connects. Each command that looks runs in a fresh process, which notes by itself
what it starts, where it connects, and what code of the user's it executes.
"""

from __future__ import annotations

import ast
import json
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from json import dumps, loads
from pathlib import Path
from typing import Any

import pytest
from pages import code_of
from scenes import Share
from worlds.own.own_server import OPENAPI, ledger_site

import toolshift
from toolshift.api import evaluate, report_of
from toolshift.core.errors import UsageError
from toolshift.core.tool import as_openai
from toolshift.measure.bundle import make_bundle
from toolshift.measure.compare import regrade_run
from toolshift.runs.cell import build
from toolshift.runs.own import FILE, NotStored
from toolshift.runs.run_folder import RunFolder

TESTS = Path(__file__).parents[1]
EXAMPLE = TESTS.parent / "examples" / "own_tools"
ORDERS = TESTS / "worlds" / "own" / "own_server.py"
KINDS = ("python", "mcp", "mcp_url", "openapi", "recording", "shift", "world", "agent")
COMMANDS = ("report", "trace", "trace --json", "regrade", "compare", "gate",
            "report --site board", "view", "lock")  # fmt: skip

LOOKS = """
import os, sys, threading

LOG = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
BASE = sys.argv[2]
STARTS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty",
          "pty.spawn", "socket.connect", "socket.getaddrinfo", "socket.sendto")


def note(event, args):
    code = getattr(args[0], "co_filename", "") if event == "exec" else ""
    theirs = os.path.isabs(code) and os.path.realpath(code).startswith(BASE)
    if event in STARTS or theirs:
        os.write(LOG, f"{event} {code or args!r}\\n".encode())


sys.addaudithook(note)
sys.path.insert(0, os.getcwd())
if sys.argv[3] == "view":
    from pathlib import Path
    from toolshift.report.html.serve import Server
    from toolshift.runs.run_folder import RunFolder

    server = Server([RunFolder.read(Path(sys.argv[4]))])
    page = server.page()
    rows = server.book.rows(0, "")["rows"]
    traces = [server.book.trace(f"0-{name}") for name, _ in rows]
    server.server_close()
    assert traces and all(traces)
    print(len(page))
else:
    from toolshift.cli import main

    sys.argv = ["toolshift", *sys.argv[3:]]
    main()
"""
MCP = f"""
world: ledger
tools: {{mcp: "sh -c 'touch PWNED; exec {sys.executable} {ORDERS}'"}}
writes: [create_transfer]
tasks:
  - id: pay
    ask: Send 25 euros to the account A-12 and tell me the receipt.
    calls:
      - {{name: get_account, arguments: {{account_id: A-12}}}}
      - {{name: create_transfer, arguments: {{iban: "{{{{calls[0].iban}}}}", amount: 25}}}}
    check: {{answer: 'T-\\d{{4}}', calls: true}}
"""
MCP_URL = """
world: notes
tools: {mcp_url: ADDRESS, headers: {Authorization: Bearer t0ken}}
writes: [add_note]
tasks:
  - id: note
    ask: Note the word milk and tell me the receipt.
    calls: [{name: add_note, arguments: {text: milk}}]
    check: {answer: 'N-\\d{4}', calls: true}
"""
HTTP = """
world: ledger
tools: {openapi: api.json, base_url: ADDRESS, headers: {Authorization: Bearer t0ken},
        reset: POST /reset}
tasks:
  - id: pay
    ask: Send 25 euros from A-11 to the account A-12 and tell me the receipt.
    calls:
      - {name: getAccount, arguments: {account_id: A-12}}
      - {name: createTransfer,
         arguments: {sender: A-11, iban: "{{calls[0].iban}}", amount: 25}}
    check: {answer: 'T-\\d{4}', calls: true}
"""
AGENT = """
def refuses(messages, tools):
    call = {"name": "refuse", "arguments": '{"reason": "not_found"}'}
    return {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "function": call}]}
"""
WIRE = "\nopen({path!r}, 'w').write('imported')\n"


class _Notes(BaseHTTPRequestHandler):
    """A small MCP server over HTTP."""

    def do_POST(self) -> None:
        asked = loads(self.rfile.read(int(self.headers["Content-Length"])))
        answers: dict[str, Any] = {
            "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                           "serverInfo": {"name": "notes", "version": "1"}},
            "tools/list": {"tools": [{"name": "add_note", "description": "Add a note.",
                "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}},
                                "required": ["text"]}}]},
            "tools/call": {"content": [{"type": "text", "text": dumps({"receipt": "N-1234"})}]},
        }  # fmt: skip
        known = asked.get("method") in answers
        said = {"result": answers[asked["method"]]} if known else {"error": {"code": -32601,
                "message": "no such method"}}  # fmt: skip
        raw = dumps({"jsonrpc": "2.0", "id": asked.get("id"), **said}).encode()
        self.send_response(200 if "id" in asked else 202)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw) if "id" in asked else 0))
        self.end_headers()
        self.wfile.write(raw if "id" in asked else b"")

    def do_GET(self) -> None:
        self.send_error(405)

    do_DELETE = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        """Keeps quiet."""


@contextmanager
def notes_site() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Notes)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/mcp"
    server.shutdown()
    server.server_close()


def run(here: Path, *words: str, plugins: tuple[str, ...] = ()) -> None:
    """A run in a process of its own, into `here/RUN`."""
    named = [word for each in plugins for word in ("--plugin", each)]
    done = subprocess.run(
        [sys.executable, "-m", "toolshift", *named, "run", "--tasks", "2", "--no-placebo",
         "--shift", "identity_erasure", "--out", "RUN", *words],
        cwd=here, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (here / "RUN" / "report.html").unlink(missing_ok=True)


PLAIN = ("--agent", "memorises_names")


def run_python(here: Path) -> list[Path]:
    for name in ("tasks.yaml", "shop_tools.py", "shop_checks.py"):
        shutil.copy(EXAMPLE / name, here)
    run(here, *PLAIN, "--world", "tasks.yaml")
    return [here / "shop_tools.py", here / "shop_checks.py"]


def run_mcp(here: Path) -> list[Path]:
    (here / "world.yaml").write_text(MCP)
    run(here, *PLAIN, "--world", "world.yaml")
    assert (here / "PWNED").exists()
    (here / "PWNED").unlink()
    return []


def run_mcp_url(here: Path) -> list[Path]:
    with notes_site() as address:
        (here / "world.yaml").write_text(MCP_URL.replace("ADDRESS", address))
        run(here, *PLAIN, "--world", "world.yaml")
    return []


def run_openapi(here: Path) -> list[Path]:
    (here / "api.json").write_text(dumps(OPENAPI))
    with ledger_site() as address:
        (here / "world.yaml").write_text(HTTP.replace("ADDRESS", address))
        run(here, *PLAIN, "--world", "world.yaml")
    return []


def run_recording(here: Path) -> list[Path]:
    run_python(here)
    shutil.rmtree(here / "RUN")
    done = subprocess.run(
        [sys.executable, "-m", "toolshift", "world", "record", "tasks.yaml", "--out", "kept.jsonl"],
        cwd=here, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    text = (here / "tasks.yaml").read_text()
    text = text.replace("{python: shop_tools}", "{recording: kept.jsonl}")
    (here / "tasks.yaml").write_text(text)
    run(here, *PLAIN, "--world", "tasks.yaml")
    (here / "kept.jsonl").unlink()
    return [here / "shop_tools.py", here / "shop_checks.py"]


def run_shift(here: Path) -> list[Path]:
    (here / "envelope.py").write_text(code_of("add-a-shift.md"))
    run(here, *PLAIN, "--shift", "envelope", plugins=("envelope.py",))
    return [here / "envelope.py"]


def run_world(here: Path) -> list[Path]:
    (here / "library.py").write_text(code_of("add-a-world.md"))
    run(here, *PLAIN, "--world", "library:WORLD")
    return [here / "library.py"]


def run_agent(here: Path) -> list[Path]:
    (here / "mine.py").write_text(AGENT)
    run(here, "--agent", "mine:refuses")
    return [here / "mine.py"]


def make(kind: str, here: Path) -> Path:
    """A run of a kind in a folder, and tripwires in the place of what it was made with."""
    for module in globals()[f"run_{kind}"](here):
        module.write_text(WIRE.format(path=str(here / "PWNED")) + module.read_text())
    return here / "RUN"


@pytest.fixture(scope="module", params=KINDS)
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of each kind."""
    return make(request.param, tmp_path_factory.mktemp(f"{request.param}-base"))


def look(words: str, folder: Path, where: Path, log: Path) -> subprocess.CompletedProcess[str]:
    """A command that looks at a run, in a fresh process in some folder."""
    command, _, more = words.partition(" ")
    more = more.replace("board", str(log.with_name("board")))
    named: list[str] = [command, str(folder), *more.split()]
    if command == "trace" and not more:
        failed = next(r for r in RunFolder.read(folder).records() if not r.grade.passed)
        named += [failed.episode]
    elif command in ("compare", "gate"):
        named += (
            ["--baseline", str(folder), "--margin", "5"] if command == "gate" else [str(folder)]
        )
    elif command == "lock":
        named += ["--out", str(log.with_name("lock.json"))]
    return subprocess.run(
        [sys.executable, "-c", LOOKS, str(log), str(folder.parent), *named],
        cwd=where, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


def test_looking_touches_nothing_of_the_users(found: Path, share: Share, tmp_path: Path) -> None:
    for command in share(COMMANDS, 3, found.parent.name):
        log = tmp_path / "log"
        elsewhere = (tmp_path,) if command in ("trace", "regrade", "view") else ()
        for where in (found.parent, *elsewhere):
            done = look(command, found, where, log)
            codes = (
                (0, 1, 3, 4) if command == "gate" else (0,)
            )  # 4: nothing passes, so none is lost
            assert done.returncode in codes, (command, done.stderr)
            assert log.read_text() == "", command
            assert not (found.parent / "PWNED").exists(), command


def test_the_figures_are_those_of_the_run(found: Path) -> None:
    stored = json.loads((found / "report.json").read_text())
    again = report_of(RunFolder.read(found)).to_dict()
    for agent in (*stored["agents"], *again["agents"]):
        del agent["diagnosis"]  # names commands, with the plugins of the process
    assert stored == again


def test_an_episode_is_read_as_it_was(found: Path, tmp_path: Path) -> None:
    said = look("trace", found, tmp_path, tmp_path / "log").stdout
    record = next(r for r in RunFolder.read(found).records() if not r.grade.passed)
    assert "< system: " in said
    assert "< user: " in said
    assert "= failed: " in said
    assert all(step.text in said for step in record.steps if len(step.text) < 600)


def test_the_page_shows_the_tools(found: Path) -> None:
    folder = RunFolder.read(found)
    assert all(folder.own.shown(cell).tools for cell in folder.plan.cells)


def test_grading_again_changes_nothing(found: Path) -> None:
    folder = RunFolder.read(found)
    left: list[str] = []
    records, changed = regrade_run(folder, leave=left.append)
    assert not changed
    assert records == list(folder.records())
    by_code = {cell.id for cell in folder.plan.cells
               if cell.world == "library" or "envelope" in cell.stack}  # fmt: skip
    assert len(left) == sum(record.cell in by_code for record in records)
    assert all("--plugin FILE.py" in why for why in left)


def test_nothing_by_which_tools_are_reached_is_kept(found: Path) -> None:
    path = found / FILE
    kept = path.read_text() if path.exists() else ""
    for secret in ("t0ken", "PWNED", "127.0.0.1", str(found.parent), sys.executable):
        assert secret not in kept


@pytest.mark.parametrize("kind", ["mcp_url", "openapi"])
def test_no_server_hears_of_it(kind: str, tmp_path: Path) -> None:
    """A server that counts listens at the very address that the world's file names."""
    folder = make(kind, tmp_path)
    text = (tmp_path / "world.yaml").read_text()
    port = int(text.partition("127.0.0.1:")[2].split("/")[0].split(",")[0].split("}")[0])
    with socket.create_server(("127.0.0.1", port)) as listening:
        for command in ("report", "trace", "regrade"):
            assert look(command, folder, tmp_path, tmp_path / "log").returncode == 0
        listening.settimeout(0.1)
        with pytest.raises(TimeoutError):
            listening.accept()


def test_the_scenes_of_a_stored_world_are_those_that_were_played(tmp_path: Path) -> None:
    out = tmp_path / "RUN"
    evaluate(
        "memorises_names", worlds=[str(EXAMPLE / "tasks.yaml")], shifts=["all"], tasks=5, out=out
    )
    folder = RunFolder.read(out)
    assert len(folder.plan.cells) > 60
    for cell in folder.plan.cells:
        mine, live = folder.scene(cell), build(cell)
        assert mine is not live
        assert (mine.task, mine.system, mine.outcome) == (live.task, live.system, live.outcome)
        assert list(map(as_openai, mine.tools)) == list(map(as_openai, live.tools))
        assert mine.rehearsal == live.rehearsal
        told = [[(a.text, a.expected, a.pattern, a.notice) for a in s.asks] for s in (mine, live)]
        assert told[0] == told[1]
    assert regrade_run(folder)[1] == []


# -- what is not there is said ---------------------------------------------------------------------


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """A run as an older version has left it."""
    folder = make("python", tmp_path)
    (folder / FILE).unlink()
    return folder


def test_what_an_older_run_lacks_is_said(older: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    for command in COMMANDS:
        if command == "lock":
            continue
        done = look(command, older, older.parent, log)
        assert done.returncode in ((2,) if command == "regrade" else (0, 1, 3)), done.stderr
        assert log.read_text() == ""
    said = look("trace", older, tmp_path, log).stdout
    assert "are not stored in" in said
    assert "= failed: " in said
    kept = (older / "manifest.json").read_bytes()
    undone = look("regrade --write", older, tmp_path, log)
    assert (older / "manifest.json").read_bytes() == kept, "nor is it said to be graded anew"
    assert undone.returncode == 2, "every episode keeps its stored verdict"
    assert "nothing was graded again: the tools of the world" in undone.stderr
    assert not (tmp_path / "PWNED").exists()


def test_the_same_run_again_stores_what_an_older_one_lacks(tmp_path: Path) -> None:
    run_python(tmp_path)
    folder = tmp_path / "RUN"
    kept, episodes = (folder / FILE).read_bytes(), (folder / "episodes.jsonl").read_bytes()
    (folder / FILE).unlink()
    run(tmp_path, *PLAIN, "--world", "tasks.yaml")
    assert (folder / FILE).read_bytes() == kept
    assert (folder / "episodes.jsonl").read_bytes() == episodes


@pytest.mark.parametrize("name", ["evil:WORLD", "evil.yaml", "evil@12345678"])
def test_a_run_that_names_code_has_it_not_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As somebody may send one: the plan names a module or a file in the working directory."""
    evaluate("oracle", tasks=1, shifts=["clean"], placebo=False, out=tmp_path / "RUN")
    monkeypatch.chdir(tmp_path)
    Path("evil.py").write_text(WIRE.format(path="PWNED") + "WORLD = 1\n")
    Path("evil.yaml").write_text(MCP.replace("ledger", "evil"))
    folder = RunFolder.read(tmp_path / "RUN")
    (cell,) = folder.plan.cells
    changed = type(cell)(name, "task", 0, 0, "dev", 200)
    with pytest.raises(NotStored):
        folder.scene(changed)
    with pytest.raises(NotStored):
        folder.own.shown(changed)
    assert not Path("PWNED").exists()


@pytest.mark.parametrize("damage", ["{", '{"format": 99}', '{"worlds": [{"name": 1}]}'])
def test_a_damaged_file_is_said(damage: str, tmp_path: Path) -> None:
    folder = make("python", tmp_path)
    (folder / FILE).write_text(damage)
    with pytest.raises(UsageError, match=r"own\.json"):
        RunFolder.read(folder)


def test_tasks_that_do_not_fit_their_tools_are_said(tmp_path: Path) -> None:
    folder = make("python", tmp_path)
    content = json.loads((folder / FILE).read_text())
    content["worlds"][0]["tools"] = []
    (folder / FILE).write_text(json.dumps(content))
    read = RunFolder.read(folder)
    with pytest.raises(UsageError, match=r"own\.json.*damaged"):
        read.scene(read.plan.cells[0])


def test_a_bundle_of_a_stored_run_opens_no_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make("mcp", tmp_path)
    monkeypatch.chdir(tmp_path)
    assert make_bundle(RunFolder.read(folder), "memorises_names", Path("failed.zip")) > 0
    assert not Path("PWNED").exists()
    shutil.unpack_archive("failed.zip", "open")
    assert (Path("open") / FILE).exists()
    Path("world.yaml").unlink()
    with pytest.raises(UsageError, match="a replay needs it"):
        make_bundle(RunFolder.read(folder), "memorises_names", Path("failed.zip"))


# -- what looks has no way to do otherwise ---------------------------------------------------------

PLAYS = {"measure/recheck.py"}
"""Modules of these packages whose purpose is to play scenes again."""
LOOKING = ("report", "measure", "cli/report.py", "cli/trace.py", "cli/runs.py", "drift/sources.py")
OPENERS = {"build", "find_world", "find_own", "load", "OwnWorld", "import_attribute", "find_agent"}


def looking() -> list[Path]:
    root = Path(toolshift.__file__).parent
    files: list[Path] = []
    for name in LOOKING:
        files += [root / name] if name.endswith(".py") else sorted((root / name).rglob("*.py"))
    return [file for file in files if str(file.relative_to(root)) not in PLAYS]


@pytest.mark.parametrize("file", looking(), ids=lambda file: file.stem)
def test_no_module_that_looks_imports_what_opens_worlds(file: Path) -> None:
    root = ("toolshift.runs.cell", "toolshift.worlds", "toolshift.agents.kind")
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(root):
            assert not {name.name for name in node.names} & OPENERS, f"{file}: {node.module}"

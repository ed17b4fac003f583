"""The proxy as a program: over stdio and HTTP, before servers and clients that misbehave."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from connect.shop_server import ORDERS, TOOLS, shop_server
from connect.stdio_program import stdio_shop
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError

from toolshift.cli.proxy import proxy
from toolshift.connect.mcp.proxy import in_process
from toolshift.connect.mcp.shifted_server import ShiftOptions
from toolshift.connect.mcp.web import IDLE, application
from toolshift.core.errors import UsageError
from toolshift.core.http import httpx
from toolshift.core.scene import Applied
from toolshift.interop.mcp_client import Target

HERE = Path(__file__).parent
SHOP = (sys.executable, str(HERE / "shop_server.py"))
RAW = (sys.executable, str(HERE / "raw_server.py"))
Visit = Callable[[Client], Awaitable[Any]]


def options(command: tuple[str, ...] = (), *shifts: str, more: tuple[str, ...] = ()) -> list[str]:
    """The words of `toolshift proxy` after its name."""
    named = [word for shift in shifts for word in ("--shift", shift)]
    server = [f"mcp:{shlex.join(command)}"] if command else []
    return [*named, *more, *server]


def program(
    command: tuple[str, ...], *shifts: str, more: tuple[str, ...] = ()
) -> StdioServerParameters:
    words = options(command, *shifts, more=more)
    return StdioServerParameters(command=sys.executable, args=["-m", "toolshift", "proxy", *words])


def here(command: tuple[str, ...], *stack: Applied) -> Any:
    """The proxy in this process, before a real program; to start another one takes seconds."""
    return in_process(Target(command=command), ShiftOptions(stack))


def visit(server: Any, work: Visit, **client: Any) -> Any:
    async def go() -> Any:
        async with Client(server, **client) as session:
            return await asyncio.wait_for(work(session), 30)

    return asyncio.run(go())


async def ask(client: Client, kind: str) -> Any:
    try:
        result = await client.call_tool("act", {"kind": kind})
    except MCPError as fault:
        return fault
    return result.content[0].text


# -- over stdio ------------------------------------------------------------------------------------


async def shop_transcript(client: Client) -> list[Any]:
    heard: list[Any] = [client.server_info.model_dump(), client.protocol_version]
    page = await client.list_tools()
    heard.append(page.model_dump())
    for number in range(3):
        result = await client.call_tool("get_order", {"order_ref": f"R-100{number}"})
        heard.append(result.model_dump())
    heard.append((await client.list_resources()).model_dump())
    heard.append((await client.get_prompt("greet", {"who": "Ada"})).model_dump())
    return heard


@cache
def direct_transcript(mode: str) -> list[Any]:
    """What the server says without a proxy."""
    program, *words = stdio_shop()
    direct = StdioServerParameters(command=program, args=words)
    return visit(direct, shop_transcript, mode=mode)  # type: ignore[no-any-return]


def test_a_transparent_program_is_not_to_be_told_from_the_server() -> None:
    """In both eras: the older one over the same wires, without a program of its own."""
    assert visit(program(SHOP), shop_transcript) == direct_transcript("auto")
    older = visit(here(stdio_shop()), shop_transcript, mode="legacy")
    assert older == direct_transcript("legacy")


def test_a_shifted_program_serves_over_stdio() -> None:
    async def order(client: Client) -> Any:
        tools = (await client.list_tools()).tools
        name = next(tool.name for tool in tools if tool.description == "Get one order.")
        return name, await client.call_tool(name, {"order_ref": "R-1001"})

    name, found = visit(program(stdio_shop(), "identity_erasure:3+format_drift:2"), order)
    assert name != "get_order"
    assert all(str(value) in found.content[0].text for value in ORDERS[0].values())


def test_answers_that_cannot_be_read_are_errors_and_the_next_call_works() -> None:
    async def all_kinds(client: Client) -> Any:
        kinds = ("invalid utf-8", "deep", "deep, id last", "noise", "fine")
        return [await ask(client, kind) for kind in kinds]

    for way in (program(RAW), here(RAW, Applied("schema_noise", 2))):
        latin, deep, last, noise, fine = visit(way, all_kinds)
        assert latin == "caf\ufffd \ufffd\ufffd"
        for fault in (deep, last):
            assert isinstance(fault, MCPError)
            assert "cannot be read" in fault.message
        assert (noise, fine) == ("after the noise", "fine")


def test_what_this_library_does_not_know_passes() -> None:
    """Raw lines, for a client of the library would hide what it does not know."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x"}}
    asked = [
        {"jsonrpc": "2.0", "id": "one", "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "act"}},
        {"jsonrpc": "2.0", "id": 3, "method": "strange/method"},
    ]
    parameters = program(RAW)
    with subprocess.Popen(
        [parameters.command, *parameters.args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as proxy:
        assert proxy.stdin is not None
        assert proxy.stdout is not None
        heard = []
        for one in asked:
            proxy.stdin.write(json.dumps(one) + "\n")
            proxy.stdin.flush()
            heard.append(json.loads(proxy.stdout.readline()))
        proxy.stdin.close()
        assert proxy.wait(10) == 0, "it ends when its client has gone"
        assert proxy.stdout.read() == "", "nothing but the protocol on stdout"
    assert heard[0]["result"]["serverInfo"]["unheard-of"] == {"of": 1}
    assert heard[1]["result"]["unheardOf"] == [1]
    assert heard[2] == {
        "jsonrpc": "2.0",
        "id": 3,
        "error": {"code": -32601, "message": "no strange/method"},
    }


def test_a_client_that_waits_is_answered_when_the_address_cannot_be_reached() -> None:
    """Its standard input stays open: a client waits for the answer before it sends more."""
    address = "http://127.0.0.1:1/mcp"
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x"}}
    asked = {"jsonrpc": "2.0", "id": "one", "method": "initialize", "params": hello}
    with subprocess.Popen(
        [sys.executable, "-m", "toolshift", "proxy", address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as proxy:
        assert proxy.stdin is not None
        assert proxy.stdout is not None
        assert proxy.stderr is not None
        proxy.stdin.write(json.dumps(asked) + "\n")
        proxy.stdin.flush()
        assert proxy.wait(60) == 2
        heard, said = json.loads(proxy.stdout.readline()), proxy.stderr.read()
    assert heard["id"] == "one"
    assert f"the server behind the proxy ({address}) cannot be reached" in heard["error"]["message"]
    assert said.startswith(f"Error: {address}: ConnectError: ")
    assert said.count("\n") == 1


@pytest.mark.parametrize("shifts", [(), (Applied("schema_noise", 1),)], ids=["plain", "shifted"])
def test_a_server_that_dies_is_said_and_the_proxy_lives(shifts: tuple[Applied, ...]) -> None:
    async def kill(client: Client) -> Any:
        before = await ask(client, "fine")
        return before, await ask(client, "die"), await ask(client, "fine")

    before, killed, after = visit(here(RAW, *shifts), kill, mode="legacy")
    assert before == "fine"
    for fault in (killed, after):
        assert isinstance(fault, MCPError)
        assert "has closed the connection" in fault.message


def is_gone(pid: int, within: float = 5.0) -> bool:
    end = time.monotonic() + within
    while time.monotonic() < end:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("stubborn", [False, True])
def test_a_program_ends_its_server_with_its_client(tmp_path: Path, stubborn: bool) -> None:
    note = tmp_path / "pid"
    code = f"import os, time; open({str(note)!r}, 'w').write(str(os.getpid()))"
    code += f"; exec(open({str(HERE / 'raw_server.py')!r}).read())"
    code += "; time.sleep(60)" if stubborn else ""

    async def look(client: Client) -> Any:
        await client.list_tools()
        os.kill(int(note.read_text()), 0)

    command = (sys.executable, "-c", code)
    visit(program(command), look)
    assert is_gone(int(note.read_text()))


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "Ctrl-C"])
def test_a_program_that_is_told_to_end_ends_its_server(
    tmp_path: Path, sign: signal.Signals
) -> None:
    note = tmp_path / "pid"
    code = f"import os, time; open({str(note)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    parameters = program((sys.executable, "-c", code))
    command = [parameters.command, *parameters.args]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as proxy:
        while not (note.exists() and note.read_text()):
            time.sleep(0.05)
        proxy.send_signal(sign)
        assert proxy.wait(20) == 128 + sign
        assert is_gone(int(note.read_text()))


def test_a_trace_of_the_program_has_no_secrets(tmp_path: Path) -> None:
    file = tmp_path / "trace.jsonl"
    visit(
        program(RAW, "schema_noise:1", more=("--trace", str(file))),
        lambda client: ask(client, "secret"),
    )
    records = [json.loads(line) for line in file.read_text().splitlines()]
    record, end = [each for each in records if "listed" not in each]
    assert end["end"]
    assert record["tool"] == "act"
    assert end["changes"]["schema_noise:1"]["tools"]
    assert "hunter2" not in file.read_text()


# -- over HTTP -------------------------------------------------------------------------------------


def served(target: Target, *stack: Applied, idle: float = IDLE) -> AbstractContextManager[str]:
    """The proxy over HTTP, as `--port` serves it."""
    return listening(application(target, ShiftOptions(stack), idle=idle))


@contextmanager
def listening(app: Any) -> Iterator[str]:
    """An application in a thread of this process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = uvicorn.Server(
        uvicorn.Config(app, "127.0.0.1", port, log_level="error", timeout_graceful_shutdown=1)
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        server.should_exit = True
        thread.join(20)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_over_http_a_transparent_proxy_is_not_to_be_told_from_the_server(mode: str) -> None:
    with served(Target(command=stdio_shop())) as url:
        heard = visit(url, shop_transcript, mode=mode)
    assert heard == direct_transcript(mode)


def test_over_http_each_older_session_has_layers_of_its_own() -> None:
    async def until_it_moves(client: Client) -> Any:
        before = {tool.name for tool in (await client.list_tools()).tools}
        await client.call_tool("read_note", {"name": "x"})
        return before, {tool.name for tool in (await client.list_tools()).tools}

    with served(Target(command=stdio_shop()), Applied("tool_removed_midway", 3)) as url:
        for _ in range(2):
            before, after = visit(url, until_it_moves, mode="legacy")
            assert before == {tool["name"] for tool in TOOLS}
            assert after != before


def test_an_http_server_can_stand_behind(tmp_path: Path) -> None:
    with served(Target(command=stdio_shop())) as behind, served(Target(url=behind)) as url:
        for mode in ("auto", "legacy"):
            found = visit(
                url, lambda c: c.call_tool("get_order", {"order_ref": "R-1002"}), mode=mode
            )
            assert found.structured_content == ORDERS[1]
    stack = (Applied("semantic_rename", 3), Applied("parameter_rename", 3))
    with served(Target(command=stdio_shop())) as behind, served(Target(url=behind), *stack) as url:
        tools = visit(url, lambda client: client.list_tools()).tools
        assert not {tool.name for tool in tools} & {"get_order", "find_orders"}


def test_an_http_server_that_is_not_there_is_said() -> None:
    with served(Target(url="http://127.0.0.1:9/mcp")) as url:
        for _ in range(2):
            with pytest.raises((MCPError, BaseExceptionGroup)):
                visit(url, lambda client: client.list_tools())


def test_a_program_that_cannot_start_is_said_to_http_clients() -> None:
    head = {"accept": "application/json, text/event-stream"}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    with served(Target(command=("no-such-program",))) as url:
        for _ in range(2):
            answer = httpx.post(url, json=body, headers=head)
            assert answer.status_code == 502
            assert "there is no program 'no-such-program'" in answer.text


def test_a_client_that_vanishes_leaves_the_others() -> None:
    with served(Target(command=stdio_shop())) as url:
        head = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
        hello = {"protocolVersion": "2025-06-18", "capabilities": {},
                 "clientInfo": {"name": "x", "version": "1"}}  # fmt: skip
        body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
        session = httpx.post(url, json=body, headers=head, timeout=30).headers["mcp-session-id"]
        call = {"name": "work", "arguments": {"steps": 3}}
        port = int(url.split(":")[2].split("/")[0])
        raw = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call})
        with socket.create_connection(("127.0.0.1", port)) as gone:
            lines = [f"{key}: {value}" for key, value in head.items()]
            lines += [
                "host: localhost",
                f"mcp-session-id: {session}",
                f"content-length: {len(raw)}",
            ]
            gone.sendall(
                ("POST /mcp HTTP/1.1\r\n" + "\r\n".join(lines) + "\r\n\r\n" + raw).encode()
            )
        found = visit(url, lambda c: c.call_tool("get_order", {"order_ref": "R-1001"}))
        assert found.structured_content == ORDERS[0]


def test_a_session_that_its_client_has_left_gives_its_server_back(tmp_path: Path) -> None:
    """One that holds a stream, or asks, is kept however slow it is."""
    note = tmp_path / "pid"
    code = f"import os; open({str(note)!r}, 'a').write(str(os.getpid()) + ' ')"
    code += f"; exec(open({str(HERE / 'raw_server.py')!r}).read())"
    head = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}

    async def think(client: Client) -> Any:
        await client.list_tools()
        await asyncio.sleep(1.5)
        return await ask(client, "fine")

    with served(Target(command=(sys.executable, "-c", code)), idle=0.5) as url:
        assert httpx.post(url, json=body, headers=head, timeout=20).status_code == 200
        assert is_gone(int(note.read_text()), within=20)
        assert visit(url, think, mode="legacy") == "fine"
    assert IDLE < 60


@pytest.mark.parametrize("version", ["2025-06-18", "2026-07-28"])
def test_foreign_hosts_and_origins_are_refused(version: str) -> None:
    with served(Target(command=stdio_shop())) as url:
        head = {"accept": "application/json, text/event-stream", "content-type": "application/json",
                "mcp-protocol-version": version}  # fmt: skip
        body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        for more in ({"host": "evil.example"}, {"origin": "https://evil.example"}):
            assert httpx.post(url, json=body, headers=head | more).status_code in (403, 421)


@pytest.fixture(scope="module")
def shop() -> Iterator[tuple[str, ...]]:
    """The words that name the shop to the proxy. It is served here: a new process takes seconds."""
    with listening(shop_server().streamable_http_app()) as url:
        yield (url,)


# -- what cannot be asked --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (options(RAW, "rename_tools:2"), "unknown shift 'rename_tools': did you mean"),
        (options(RAW, "redirect:4"), "severity 4 of redirect"),
        (options(RAW, "redirect:1", "redirect:2"), "redirect is given twice"),
        (options(()), "name one server"),
        (options(RAW, more=("http://localhost",)), "name one server"),
        (options((), more=("--upstream-url", "localhost:80")), "must begin with http"),
        (options(RAW, more=("--header", "a: b")), "--header works only with the http address"),
        (options(RAW, more=("--json",)), "--json needs --dry-run"),
        (options((), more=("no-such-program",)), "'no-such-program' names no server"),
        (options((), more=("no-such.json#shop",)), "or FILE#NAME"),
        (options(("no-such-program",)), "there is no program 'no-such-program'"),
        (options((sys.executable, "-c", "pass"), more=("--dry-run",)), "has closed the connection"),
        (options(RAW, "query_typos:2"), "query_typos:2 is not applicable: it changes what a user"),
        (options(RAW, "no_such_entity:1"), "it changes the task or the truth"),
        (options(RAW, "tool_subset:1"), "say which are needed. Leave it out"),
        (options(RAW, "merged_tools:2", more=("--dry-run",)), "merged_tools:2 is not applicable"),
        (
            options(RAW, more=("--needs", "acts", "--dry-run")),
            "unknown tool 'acts': did you mean act",
        ),
        (
            options((), more=("http://localhost", "--header", "K: $NOT_SET_ANYWHERE")),
            "the environment has no NOT_SET_ANYWHERE",
        ),
    ],
)
def test_what_cannot_work_is_said(asked: list[str], said: str) -> None:
    with pytest.raises(UsageError) as fault:
        proxy.main(asked, standalone_mode=False)
    assert said in str(fault.value)


def test_a_dry_run_shows_the_tools_before_and_after(
    capsys: pytest.CaptureFixture[str], shop: tuple[str, ...]
) -> None:
    shifts = ("parameter_rename:3", "identity_erasure:1")
    proxy.main(options(stdio_shop(), *shifts, more=("--dry-run", "--json")), standalone_mode=False)
    shown = json.loads(capsys.readouterr().out)
    assert [tool["name"] for tool in shown["before"]] == [tool["name"] for tool in TOOLS]
    listed = visit(program(stdio_shop(), *shifts), lambda client: client.list_tools()).tools
    assert [tool["name"] for tool in shown["after"]] == [tool.name for tool in listed]
    assert shown["in_use"] == {}
    proxy.main(options((), *shifts, more=("--dry-run", *shop)), standalone_mode=False)
    assert "order_ref -> " in capsys.readouterr().out


def test_a_dry_run_says_what_happens_in_use(
    capsys: pytest.CaptureFixture[str], shop: tuple[str, ...]
) -> None:
    shifts = ("format_drift:2", "transient_error:1", "parameter_rename:1")
    proxy.main(options((), *shifts, more=("--dry-run", *shop)), standalone_mode=False)
    told = capsys.readouterr().out
    assert "format_drift:2: results: Write results under other keys" in told
    assert "transient_error:1: results: " in told
    assert "parameter_rename:1: " not in told


@pytest.mark.parametrize(
    ("shift", "said"),
    [
        ("type_change:3", "type of order_ref"),
        ("enum_change:3", "choices of reason"),
        ("required_parameter:1", "+ realm"),
        ("tools_by_action:3", "find_orders, get_order, cancel_order and 9 more"),
    ],
)
def test_a_dry_run_says_what_has_changed_in_a_call(
    shift: str, said: str, capsys: pytest.CaptureFixture[str], shop: tuple[str, ...]
) -> None:
    proxy.main(options((), shift, more=("--dry-run", *shop)), standalone_mode=False)
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    ("shift", "tried", "said"),
    [
        ("semantic_rename:3", 'get_order {"order_ref": "R-1001"}', '{"order_ref":"R-1001"'),
        (
            "parameter_rename:3",
            'get_order {"order_ref": "R-1001"}',
            "Changed by: parameter_rename:3",
        ),
        ("format_drift:1", 'get_order {"order_ref": "R-1001"}', "Changed by: format_drift:1"),
        ("format_drift:1", 'read_note {"name": "plain"}', "No shift changed this call"),
        ("tools_by_action:3", "count_cancelled", "No single shown tool corresponds to it"),
        ("format_drift:1", "", "A real call:  count_cancelled {}"),
    ],
)
def test_a_dry_run_shows_a_real_result_before_and_after(
    shift: str, tried: str, said: str, capsys: pytest.CaptureFixture[str], shop: tuple[str, ...]
) -> None:
    more = ("--dry-run", *shop, *(("--try", tried) if tried else ()))
    proxy.main(options((), shift, more=more), standalone_mode=False)
    assert said in capsys.readouterr().out
    proxy.main(options((), shift, more=(*more, "--json")), standalone_mode=False)
    trial = json.loads(capsys.readouterr().out)["result"]
    assert trial["tool"] == tried.split(" ")[0] or not tried
    assert not trial["before"].get("isError")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--try", "act"), "--try needs --dry-run"),
        (("--dry-run", "--try", "act {kind}"), "the arguments are not a JSON object"),
        (("--dry-run", "--try", "acts"), "unknown tool 'acts': did you mean act"),
    ],
)
def test_a_call_that_cannot_be_tried_is_said(more: tuple[str, ...], said: str) -> None:
    with pytest.raises(UsageError) as fault:
        proxy.main(options(RAW, more=more), standalone_mode=False)
    assert said in str(fault.value)


@pytest.mark.parametrize("more", [(), ("--try", "act {}")], ids=["found", "named"])
def test_a_dry_run_starts_the_server_once(tmp_path: Path, more: tuple[str, ...]) -> None:
    note = tmp_path / "starts"
    code = f"open({str(note)!r}, 'a').write('x'); exec(open({RAW[1]!r}).read())"
    words = options((sys.executable, "-c", code), "schema_noise:1", more=("--dry-run", *more))
    proxy.main(words, standalone_mode=False)
    assert note.read_text() == "x"


def test_without_a_reading_tool_the_dry_run_asks_for_a_call(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    server = tmp_path / "writes.py"
    server.write_text(Path(RAW[1]).read_text().replace('"readOnlyHint": True', '"title": "x"'))
    proxy.main(options((sys.executable, str(server)), more=("--dry-run",)), standalone_mode=False)
    assert "no tool that is marked readOnlyHint answered" in capsys.readouterr().out

"""What is fuzzed: one reader of what others write each, with inputs and what must hold.

A check lets pass only the errors that its reader promises; whatever else is raised is a finding,
and so is a case that takes long for its size. Where something is written back, it must come out as
it went in.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import msgspec
from conversations import openai, question
from fuzz import made

from toolshift.adapt.lessons import read_lessons
from toolshift.agents.catalog import contestants
from toolshift.agents.chat import ChatAgent
from toolshift.api import evaluate, report_of
from toolshift.connect.mcp.shifted_server import ShiftOptions
from toolshift.connect.model_proxy.app import ModelProxy
from toolshift.core.calls import MalformedCall, ToolCall, read_arguments, read_call
from toolshift.core.canonical import canonical
from toolshift.core.documents import read_json, read_toml, read_yaml
from toolshift.core.errors import UsageError
from toolshift.core.http import httpx
from toolshift.core.http_clients import Clients
from toolshift.core.message import Reply, Turn, protocol_tools
from toolshift.core.redaction import Redactor
from toolshift.core.render import FORMS
from toolshift.core.shift import NotApplicable
from toolshift.core.text import escaped, one_line, visible
from toolshift.data.augment import Recipe, augmented
from toolshift.data.conversation import RowFault, portable
from toolshift.data.formats import FORMATS, read_as, recognised
from toolshift.drift.calls import RecordedCall, as_calls
from toolshift.drift.changes import changes_between
from toolshift.drift.events import drift_report
from toolshift.drift.lock import lock_tools, read_any_lock, read_lock, write_lock
from toolshift.drift.poisoning import SIGNS, signs_in
from toolshift.drift.stream import Reader
from toolshift.interop.mcp_results import as_mcp, as_result
from toolshift.interop.openapi import read_openapi
from toolshift.interop.schema import inlined, kind_of, renamed, sample
from toolshift.interop.text_records import pieces
from toolshift.interop.tools import from_mcp
from toolshift.lm.parse_reply import parse_reply
from toolshift.lm.prompt import render_call, render_system
from toolshift.reading.answers.by_words import is_pattern, matches
from toolshift.reading.prose import read_prose
from toolshift.reading.refusals import read_plain_prose
from toolshift.runs.cell import build
from toolshift.runs.parts import joined
from toolshift.runs.run_folder import Record, RunFolder
from toolshift.runs.study import play
from toolshift.runs.suite import read_task
from toolshift.shifts.release.file import ShiftFile, as_shift, decode_shift_file
from toolshift.shifts.release.inputs import read_side, side_of
from toolshift.shifts.release.mapping import Answers, read_mapping, write_mapping
from toolshift.shifts.release.resolve import UNDECIDED, settle
from toolshift.shifts.stacks import read_arms, read_stack
from toolshift.watch.watch import Watcher
from toolshift.worlds.own.file import read_file
from toolshift.worlds.own.recording import read_recording
from toolshift.worlds.registry import find_world

Make = Callable[[Random], Any]
Check = Callable[[Any], None]
JSON = msgspec.json


@dataclass(frozen=True)
class Target:
    """One reader: what makes its inputs, and what must hold of each.

    Attributes:
        share: of the cases of a run that go over all targets; dear ones get few.
    """

    make: Make
    check: Check
    share: int


TARGETS: dict[str, Target] = {}


def target(make: Make, share: int) -> Callable[[Check], Check]:
    """Puts a check among the targets, under its name."""

    def kept(check: Check) -> Check:
        TARGETS[check.__name__] = Target(make, check, share)
        return check

    return kept


@cache
def folder() -> Path:
    """A folder for readers of files; in memory where the system has such a place."""
    base = "/dev/shm" if Path("/dev/shm").is_dir() else None
    return Path(tempfile.mkdtemp(prefix="fuzz-", dir=base))


def _file(name: str, content: bytes) -> Path:
    path = folder() / name
    path.write_bytes(content)
    return path


def _safe(value: Any) -> Any:
    """A value as JSON has it, without halves of characters; None where it is none."""
    try:
        told = json.dumps(value, allow_nan=False, ensure_ascii=False)
        return JSON.decode(told.encode("utf-8", "replace"))
    except (ValueError, TypeError, RecursionError, OverflowError):
        return None


# -- what agents say ------------------------------------------------------------------------------


@target(lambda rng: (made.odd(rng), made.odd(rng, 3), made.odd(rng)), 50)
def calls(given: tuple[Any, Any, Any]) -> None:
    call = read_call(*given)
    assert isinstance(call, ToolCall | MalformedCall)
    JSON.encode(call)
    if isinstance(call, ToolCall):
        assert read_arguments(JSON.encode(call.arguments).decode()) == call.arguments
        if call.name:
            for layout in ("description-first", "spaced", "spaced-texts"):
                line = render_call(call.name, call.arguments, layout)
                assert parse_reply(line, layout).calls == (ToolCall(call.name, call.arguments),)


CLEAR = ("an agent returns", "an assistant message", "a tool call", "tool_calls")
"""How messages begin that say what an agent's function has returned."""


@target(made.message, 110)
def messages(given: Any) -> None:
    try:
        reply = Reply.of(given)
    except TypeError as fault:
        if not str(fault).startswith(CLEAR):
            raise
        return
    assert JSON.decode(JSON.encode(reply.text)) == reply.text
    JSON.encode(reply)


@target(made.said, 75)
def replies(given: str) -> None:
    for layout in ("description-first", "spaced-texts"):
        reply = parse_reply(given, layout, ("a", "f", "find", "tool"))
        JSON.encode(Reply.of(reply))


@target(lambda rng: (made.said(rng), made.text(rng, 30), made.text(rng, 10)), 1)
def prose(given: tuple[str, str, str]) -> None:
    kind, reason = read_prose(*given)
    assert kind in ("question", "refusal", "answer", "none"), reason
    assert read_plain_prose(*given)[0] in ("question", "refusal", "answer", "none")
    matches(given[0], given[2] if given[2] and not is_pattern(given[2]) else "x")


SCENES = (
    ("poi", 1, ""),
    ("poi", 2, "redirect:2"),
    ("poi", 0, "tool_name_noise:3+identity_erasure:2"),
    ("medical", 1, ""),
    ("retail", 0, "identity_erasure:2"),
)


@cache
def _cell(place: int) -> Any:
    world, index, stack = SCENES[place]
    cell = read_task(f"{world}/{next(iter(find_world(world).kinds))}/{index}", stack)
    return cell, build(cell)


@target(lambda rng: (rng.randrange(len(SCENES)), _script(rng)), 2)
def episodes(given: tuple[int, list[Any]]) -> None:
    cell, scene = _cell(given[0])

    def scripted(messages: list[Any], tools: list[Any]) -> Any:
        return script.pop(0) if script else "done"

    script = list(given[1])
    (contestant,) = contestants([scripted])
    record = play(contestant, cell, scene, fresh=False)
    again = JSON.decode(JSON.encode(record), type=Record)
    assert JSON.encode(again) == JSON.encode(record)
    assert not (record.grade.passed and record.grade.void)


def _script(rng: Random) -> list[Any]:
    """Messages of an agent that knows the names of some tools."""
    names = ("search_places", "final_answer", "refuse", "ask_user", "get_place", "find_route")
    script = []
    for _ in range(1 + rng.randrange(4)):
        message = made.message(rng)
        calls = message.get("tool_calls") if isinstance(message, dict) else None
        for each in calls if isinstance(calls, list) else ():
            if isinstance(each, dict) and isinstance(each.get("function"), dict):
                each["function"]["name"] = rng.choice(names)
        script.append(message)
    return script


TURN = Turn([{"role": "user", "content": "Find it."}], protocol_tools())


def _completion(rng: Random) -> bytes:
    choice = {"index": 0, "message": _safe(made.message(rng)), "finish_reason": "stop"}
    usage = {"prompt_tokens": 5, "completion_tokens": 7}
    whole = {"id": "1", "choices": [choice], "usage": usage}
    return made.as_bytes(rng, made.changed(rng, whole) if rng.random() < 0.6 else whole)


@cache
def _chat(protocol: str) -> tuple[ChatAgent, list[bytes]]:
    answers: list[bytes] = []
    agent = ChatAgent("m", "http://127.0.0.1:9/v1", protocol=protocol, retries=0)  # type: ignore[arg-type]
    way = httpx.MockTransport(lambda _: httpx.Response(200, content=answers[0]))
    agent._clients = Clients(1, verify=False, transport=way)
    return agent, answers


@target(_completion, 5)
def endpoints(given: bytes) -> None:
    for protocol in ("native", "text"):
        agent, answers = _chat(protocol)
        answers[:] = [given]
        JSON.encode(agent.reply(TURN))


def _exchange(rng: Random) -> tuple[bytes, bytes, bool]:
    stream = rng.random() < 0.5
    tools = [
        {"type": "function", "function": {"name": f"find_{n}", "parameters": made.schema(rng, 2)}}
        for n in range(1 + rng.randrange(2))
    ]
    call = {"id": "c1", "type": "function", "function": {"name": "find_0", "arguments": "{}"}}
    history: list[Any] = [{"role": "user", "content": "hello"}]
    if rng.random() < 0.5:
        history += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": made.text(rng)},
        ]
    request = {"model": "m", "stream": stream, "messages": history, "tools": tools}
    said = {"role": "assistant", "content": made.text(rng), "tool_calls": [{**call, "index": 0}]}
    choice = {"index": 0, "delta" if stream else "message": said, "finish_reason": "stop"}
    answer = {"id": "1", "choices": [choice], "usage": {"prompt_tokens": 1}}
    if rng.random() < 0.6:
        request = made.changed(rng, request)
    if rng.random() < 0.6:
        answer = made.changed(rng, answer)
    return made.as_bytes(rng, request), made.as_bytes(rng, answer), stream


async def _exchanged(request: bytes, answer: bytes, stream: bool) -> httpx.Response:
    content = b"data: " + answer + b"\n\ndata: [DONE]\n\n" if stream else answer
    way = httpx.MockTransport(lambda _: httpx.Response(200, content=content))
    client = httpx.AsyncClient(transport=way)
    options = ShiftOptions(read_stack("tool_name_noise:3"))
    app = ModelProxy("http://model/v1", options, client=client).app
    inner = httpx.ASGITransport(app=app)  # which raises what the application raises
    async with client, httpx.AsyncClient(transport=inner, base_url="http://proxy") as agent:
        return await agent.post("/v1/chat/completions", content=request)


@target(_exchange, 2)
def model_proxy(given: tuple[bytes, bytes, bool]) -> None:
    got = asyncio.run(_exchanged(*given))
    assert (
        got.status_code in (200, 400, 501) or "the model's answer is no chat completion" in got.text
    )


# -- tools and schemas -----------------------------------------------------------------------------


@target(lambda rng: _safe([made.schema(rng, 4), made.schema(rng, 2)]), 25)
def schemas(given: list[Any]) -> None:
    root, other = given
    inner = inlined(root, root)
    JSON.encode([sample(inner), kind_of(inner)])
    if isinstance(root, dict):
        JSON.encode(renamed(root, {"a": "b", "name": "title"}))
        JSON.encode(inlined(other, root))


@target(lambda rng: _safe(made.tools(rng)), 30)
def tools(given: list[dict[str, Any]]) -> None:
    try:
        box = from_mcp(given)
    except UsageError:
        return
    for raw, tool in zip(given, box.tools, strict=True):
        source = box.sources[tool.name]
        told = {"description": tool.description} if "description" in raw else {}
        assert box.speak(tool) == {**raw, "inputSchema": source.inputs, **told}
        JSON.encode(source.example())
        function = {"name": tool.name, "description": tool.description, "parameters": source.inputs}
        for layout in ("description-first", "name-first", "json", "spaced-texts"):
            render_system("", [{"function": function}], layout)


def _two_lists(rng: Random) -> list[Any]:
    before = made.tools(rng)
    after = made.changed(rng, before) if rng.random() < 0.8 else made.tools(rng)
    found: list[Any] = _safe([before, after if isinstance(after, list) else []])
    return found


def _objects(listed: Any) -> list[dict[str, Any]]:
    return [each for each in listed if isinstance(each, dict)]


@target(_two_lists, 5)
def changes(given: list[Any]) -> None:
    before, after = given[0], _objects(given[1])
    call = RecordedCall("tool_0", {"a": 1, "name": "x"})
    try:
        lock = lock_tools(before)
        report = drift_report(lock, after, "now", [call, call])
        found = changes_between(before, after)
    except UsageError:
        return
    JSON.encode([report, found])
    assert not drift_report(lock, before).events


@target(_two_lists, 7)
def releases(given: list[Any]) -> None:
    try:
        old, new = side_of("mcp", "old", given[0]), side_of("mcp", "new", _objects(given[1]))
        settled = settle(old, new, Answers(), accept=True)
        file = ShiftFile(1, "fuzzed", old, new, settled.answers)
        as_shift(file)
        assert decode_shift_file(file.encode(), "f.json") == file
    except UsageError:
        return
    if settled.answers == Answers():
        return  # a file that holds no answer is refused
    path = _file("mapping.toml", write_mapping(settled.answers, {}).encode())
    assert read_mapping(path) == settled.answers
    assert UNDECIDED not in settled.answers.renamed.values()


@target(lambda rng: made.as_bytes(rng, made.changed(rng, _shift_file())), 70)
def shift_files(given: bytes) -> None:
    with contextlib.suppress(UsageError):
        as_shift(decode_shift_file(given, "f.json"))


@cache
def _shift_file() -> Any:
    schema = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
    tool = {"name": "get_order", "description": "An order.", "inputSchema": schema}
    old, new = (side_of("mcp", "x", [{**tool, "name": name}]) for name in ("get_order", "order"))
    answers = Answers(renamed={"get_order": "order"})
    return JSON.decode(ShiftFile(1, "monday", old, new, answers).encode())


MAPPING = b"""removed = ["a"]
added = []
[renamed]
get_order = "order"
[params.get_order]
id = "number"
[merged.do]
by = "what"
tools = {a = "x", b = "y"}
"""


@target(lambda rng: made.changed_bytes(rng, MAPPING), 55)
def mappings(given: bytes) -> None:
    try:
        answers = read_mapping(_file("mapping.toml", given))
    except UsageError:
        return
    again = read_mapping(_file("mapping.toml", write_mapping(answers, {}).encode()))
    assert _without_empty(msgspec.to_builtins(again)) == _without_empty(
        msgspec.to_builtins(answers)
    )


def _without_empty(tables: dict[str, Any]) -> dict[str, Any]:
    """Tables without those that say nothing, inside or out: they are not written."""
    found = {k: _without_empty(v) if isinstance(v, dict) else v for k, v in tables.items()}
    return {key: value for key, value in found.items() if value != {}}


def _lock(rng: Random) -> bytes:
    if rng.random() < 0.3:
        keys = ("warden_version", "mcpdrift", "surface", "hash_model_version", "lockfile_version",
                "version", "created_at", "format", "server")  # fmt: skip
        document: Any = {key: made.data(rng, 2) for key in keys if rng.random() < 0.5}
        document["tools"] = made.tools(rng) if rng.random() < 0.5 else made.data(rng, 2)
        return made.as_bytes(rng, document)
    listed = [{"hash": "sha256:0", "document": each} for each in made.tools(rng)]
    return made.as_bytes(
        rng, {"format": 1, "kind": "mcp", "origin": "x", "hash": "", "tools": listed}
    )


@target(_lock, 25)
def locks(given: bytes) -> None:
    with contextlib.suppress(UsageError):
        read_any_lock(_file("lock.json", given))


@target(lambda rng: _safe(made.tools(rng)), 10)
def written_locks(given: list[dict[str, Any]]) -> None:
    try:
        lock = lock_tools(given)
    except UsageError:
        return
    path = folder() / "own.lock.json"
    write_lock(path, lock)
    assert JSON.encode(read_lock(path)) == JSON.encode(lock)


def _openapi(rng: Random) -> Any:
    operation = {
        "operationId": made.word(rng),
        "parameters": [
            {
                "name": made.word(rng),
                "in": rng.choice(("path", "query", "header", "cookie")),
                "schema": made.schema(rng),
            }
            for _ in range(rng.randrange(3))
        ],
        "requestBody": {"content": {"application/json": {"schema": made.schema(rng)}}},
        "responses": {"200": {"content": {"application/json": {"schema": made.schema(rng)}}}},
    }
    document = {
        "openapi": "3.0.1",
        "paths": {"/a/{id}": {rng.choice(("get", "post")): operation}},
        "components": {"schemas": {"a": made.schema(rng)}},
        "$defs": {"a": made.schema(rng)},
    }
    return made.changed(rng, document) if rng.random() < 0.5 else document


@target(_openapi, 17)
def openapi_documents(given: Any) -> None:
    with contextlib.suppress(UsageError):
        from_mcp(each.shown for each in read_openapi(given))


@target(lambda rng: (rng.choice(("json", "yaml")), _side(rng)), 4)
def tool_files(given: tuple[str, bytes]) -> None:
    with contextlib.suppress(UsageError):
        read_side(str(_file(f"tools.{given[0]}", given[1])))


def _side(rng: Random) -> bytes:
    kind = rng.randrange(3)
    if kind == 0:
        return made.as_bytes(rng, _openapi(rng))
    listed: Any = made.tools(rng)
    if kind == 1:
        listed = [{"type": "function", "function": each} for each in listed]
    return made.as_bytes(rng, {"tools": listed} if rng.random() < 0.5 else listed)


def _answer(rng: Random) -> tuple[dict[str, Any], dict[str, Any]]:
    blocks = [{"type": rng.choice(("text", "image")), "text": made.text(rng)} for _ in range(2)]
    raw = {"content": blocks, "structuredContent": made.data(rng), "isError": rng.random() < 0.2}
    changed = made.changed(rng, raw)
    return _safe(made.tool(rng)), _safe(changed if isinstance(changed, dict) else raw)


@target(_answer, 25)
def results(given: tuple[dict[str, Any], dict[str, Any]]) -> None:
    try:
        box = from_mcp([given[0]])
    except UsageError:
        return
    (source,) = box.sources.values()
    result = as_result(given[1], source)
    assert as_mcp(result, result, [given[1]], source) == given[1]
    as_mcp(result, None, [given[1]], source)


# -- traces ----------------------------------------------------------------------------------------

SPAN = {
    "name": "execute_tool get", "kind": 3,
    "attributes": [
        {"key": "gen_ai.operation.name", "value": {"stringValue": "execute_tool"}},
        {"key": "gen_ai.tool.name", "value": {"stringValue": "get"}},
        {"key": "gen_ai.tool.call.arguments", "value": {"stringValue": '{"a": 1}'}},
        {"key": "gen_ai.tool.definitions", "value": {"stringValue": '[{"name": "get"}]'}},
        {"key": "gen_ai.response.finish_reasons",
         "value": {"arrayValue": {"values": [{"stringValue": "stop"}]}}},
        {"key": "n", "value": {"intValue": "7"}},
        {"key": "m",
         "value": {"kvlistValue": {"values": [{"key": "a", "value": {"intValue": 1}}]}}},
    ],
    "startTimeUnixNano": "1000000", "endTimeUnixNano": "13500000", "status": {"code": 2},
}  # fmt: skip
LINES: tuple[Any, ...] = (
    {"n": 1, "tool": "get", "arguments": {"a": 1}, "ok": True, "ms": 2.5,
     "answers": [{"content": [{"type": "text", "text": '{"total": 3}'}]}]},
    {"listed": [{"name": "get", "inputSchema": {"type": "object"}}]},
    {"carried": [{"name": "get", "arguments": '{"a": 1}'}, ["get", {}]], "spoken": []},
    {"resourceSpans": [{"scopeSpans": [{"spans": [SPAN]}]}]},
    SPAN,
    {"attributes": {"gen_ai.tool.name": "get", "mcp.method.name": "tools/call"},
     "start_time": "2026-01-01T00:00:00Z", "end_time": "2026-01-01T00:00:01+00:00"},
)  # fmt: skip


def _line(rng: Random) -> bytes:
    row = rng.choice(LINES) if rng.random() < 0.8 else openai(rng.randrange(50))
    return made.as_bytes(rng, made.changed(rng, row, 4))


@target(lambda rng: [_line(rng) for _ in range(1 + rng.randrange(3))], 8)
def traces(given: list[bytes]) -> None:
    reader, watcher = Reader(), Watcher(learn=2)
    for line in given:
        try:
            for event in reader.read(line):
                JSON.encode([event, watcher.observe(event)])
        except RowFault:
            continue


@target(lambda rng: made.as_bytes(rng, made.changed(rng, [{"name": "a", "arguments": {}}])), 55)
def call_lists(given: bytes) -> None:
    try:
        listed = JSON.decode(given, type=list[dict[str, Any]])
    except (ValueError, RecursionError):
        return
    with contextlib.suppress(UsageError):
        as_calls(listed)


@target(lambda rng: made.data(rng, 4), 30)
def redaction(given: Any) -> None:
    redactor = Redactor(("opensesame",))
    clean = redactor.clean({"x": given, "y": ["a opensesame b", {"password": "hunter2"}]})
    said = json.dumps(clean)
    assert "opensesame" not in said
    assert "hunter2" not in said


LESSON = [{"failed": "a", "worked": "b", "sentence": "Use b.", "known_by": ["x", "y"]}]


@target(lambda rng: made.as_bytes(rng, made.changed(rng, LESSON)), 60)
def lessons(given: bytes) -> None:
    with contextlib.suppress(UsageError):
        read_lessons(_file("lessons.json", given))


# -- data sets -------------------------------------------------------------------------------------


def _sharegpt(seed: int) -> dict[str, Any]:
    row = openai(seed)
    return FORMATS.find(("hermes", "sharegpt", "toolace")[seed % 3]).write(
        portable(read_as(recognised(row), row)), None
    )


@cache
def _row(number: int) -> Any:
    kind, seed = divmod(number, 20)
    if kind == 0:
        return openai(seed)
    if kind == 1:
        return question(seed)
    if kind == 2:
        return FORMATS.find("adp").write(
            portable(read_as(recognised(openai(seed)), openai(seed))), None
        )
    return _sharegpt(seed)


@target(lambda rng: _row(rng.randrange(100)), 15)
def whole_rows(given: Any) -> None:
    form = recognised(given)
    conversation = read_as(form, given)
    assert _read(form.write(conversation, given)) == _read(given)
    assert read_as(form, form.write(portable(conversation), None)).messages


def _read(row: Any) -> Any:
    """A row with the texts that hold JSON read, whatever their spaces."""
    if isinstance(row, dict):
        return {key: _read(value) for key, value in row.items()}
    if isinstance(row, list):
        return [_read(value) for value in row]
    try:
        return JSON.decode(row) if isinstance(row, str) else row
    except ValueError:
        return row


@target(lambda rng: made.changed(rng, _row(rng.randrange(100)), 3), 2)
def rows(given: Any) -> None:
    row = _safe(given)
    if not isinstance(row, dict):
        return
    for recipe in (
        Recipe(1.0, ("SBP", "distractors", "endings", "formats")),
        Recipe(0.0, to="hermes"),
    ):
        try:
            JSON.encode(augmented(row, JSON.encode(row), recipe, {"en": [{"name": "spare"}]}).rows)
        except RowFault:
            continue


# -- documents, worlds, run folders ----------------------------------------------------------------

YAML = b"""world: shop
tools: {python: shop_tools}
writes: [refund_order]
tasks:
  - &a
    id: lamp
    kind: status
    ask: What is the status of order O-1702?
    paraphrases: [Where is O-1702?]
    calls:
      - name: get_order
        arguments: {order_id: O-1702, when: 2026-03-03, n: 1_000, b: {like: 'O-\\d+', example: O-1}}
      - {name: cancel, arguments: {id: '{{calls[0].id}}'}, turn: 0}
    check:
      answer: [shipped, '12.5']
      example: It is shipped.
  - {id: two, ask: [One, Two], calls: [], check: {refuse: not_found}}
"""
TOML = b'a = 1\n[b.c]\nd = [1, {e = 2026-01-01T00:00:00Z}]\n[[f]]\ng = "h\\u0041"\ni = 1e5\n'


def _document(rng: Random) -> tuple[str, bytes]:
    kind = rng.choice(("json", "yaml", "toml"))
    raw = {"yaml": YAML, "toml": TOML, "json": json.dumps(LINES[3]).encode()}[kind]
    for _ in range(1 + rng.randrange(4)):
        raw = made.changed_bytes(rng, raw)
    return kind, raw


@target(_document, 65)
def documents(given: tuple[str, bytes]) -> None:
    read = {"json": read_json, "yaml": read_yaml, "toml": read_toml}[given[0]]
    with contextlib.suppress(UsageError):
        read(given[1], "file")


def _world(rng: Random) -> bytes:
    if rng.random() < 0.4:
        return JSON.encode(
            _safe(made.changed(rng, read_yaml(YAML.replace(b"2026-03-03", b"x"), ""), 4))
        )
    raw = YAML
    for _ in range(1 + rng.randrange(4)):
        raw = made.changed_bytes(rng, raw)
    return raw


@target(_world, 1)
def world_files(given: bytes) -> None:
    with contextlib.suppress(UsageError):
        read_file(_file("shop.yaml", given))


HEAD: dict[str, Any] = {"format": 1, "tools": [{"name": "get", "inputSchema": {"type": "object"}}]}


@cache
def _recorded() -> Any:
    text = YAML.replace(b"{python: shop_tools}", b"{recording: shop.jsonl}")
    return read_file(_file("recorded.yaml", text))


@target(
    lambda rng: b"\n".join(
        made.as_bytes(rng, made.changed(rng, each))
        for each in (HEAD, {"task": "a", "name": "get", "arguments": {}, "result": {}})
    ),
    7,
)
def recordings(given: bytes) -> None:
    _file("shop.jsonl", given)
    with contextlib.suppress(UsageError):
        read_recording(_recorded())


@cache
def _run() -> dict[str, bytes]:
    """The files of a small run."""
    path = folder() / "run"
    evaluate(["oracle", "noisy"], tasks=2, shifts=["identity_erasure"], kinds=["listing"], out=path)
    return {each.name: each.read_bytes() for each in path.iterdir() if each.suffix == ".jsonl"
            or each.name == "manifest.json"}  # fmt: skip


def _broken_run(rng: Random) -> tuple[str, bytes]:
    name = rng.choice(sorted(_run()))
    raw = _run()[name]
    if rng.random() < 0.6:
        lines = raw.split(b"\n") if name.endswith("l") else [raw]
        place = rng.randrange(len(lines))
        if lines[place].strip():
            lines[place] = made.as_bytes(rng, made.changed(rng, JSON.decode(lines[place])))
        return name, b"\n".join(lines)
    return name, made.changed_bytes(rng, raw)


@target(_broken_run, 1)
def run_folders(given: tuple[str, bytes]) -> None:
    path = folder() / "run"
    for name, raw in _run().items():
        (path / name).write_bytes(given[1] if name == given[0] else raw)
    with contextlib.suppress(UsageError, NotApplicable):
        run = RunFolder.read(path)
        JSON.encode(report_of(run))
        JSON.encode(report_of(joined([run])))
        JSON.encode(list(run.some({record.episode for record in run.records()})))


# -- texts -----------------------------------------------------------------------------------------


@target(lambda rng: _safe(made.tools(rng)), 10)
def instructions(given: list[Any]) -> None:
    tools = [tool for tool in given if isinstance(tool, dict)]
    for signs in signs_in(tools).values():
        assert {sign.sign for sign in signs} <= set(SIGNS)
    assert not signs_in(tools, tools)  # all of it was seen before


@target(lambda rng: made.text(rng, 40), 75)
def texts(given: str) -> None:
    assert "".join(piece.text for piece in pieces(given)) == given
    for shown in (visible(given), one_line(given)):
        assert not {"\x1b", "\u202e", "\x00"} & set(shown)
    assert json.loads(escaped(json.dumps(given, ensure_ascii=False))) == given


@target(lambda rng: _safe(_records(rng)), 8)
def forms(given: Any) -> None:
    for piece in pieces(json.dumps(given, ensure_ascii=False)):
        if piece.data is not None:
            assert piece.write(piece.data) == piece.text
    for name, form in FORMS.items():
        if name != "text":
            assert _plain(form.read(form.write(given))) == _plain(given), name


def _records(rng: Random) -> Any:
    """A record, or a list of records, as a tool of ours may return them."""

    def record(depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for _ in range(1 + rng.randrange(3)):
            deep = depth and rng.random() < 0.2
            found[made.word(rng)] = (
                record(depth - 1) if deep else rng.choice((made.text(rng, 6), 3, None))
            )
        return found

    return record(2) if rng.random() < 0.5 else [record(1) for _ in range(rng.randrange(3))]


def _plain(value: Any) -> Any:
    """A value with numbers as texts and without nulls: a form need not tell them from others."""
    if isinstance(value, dict):
        found = {key: _plain(each) for key, each in value.items() if each is not None}
        return {key: each for key, each in found.items() if each != {}}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


@target(lambda rng: made.data(rng, 4), 300)
def canonical_forms(given: Any) -> None:
    try:
        first = canonical(given)
    except UsageError:
        return
    assert canonical(JSON.decode(first)) == first


@target(lambda rng: (made.text(rng, 6), made.text(rng, 6)), 8)
def stacks(given: tuple[str, str]) -> None:
    for read in (read_stack, read_arms):
        with contextlib.suppress(UsageError):
            read(given[0])
    with contextlib.suppress(UsageError):
        read_task(given[1], given[0])

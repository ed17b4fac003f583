"""What nothing was read of is never well: exit code 2, the first part not understood, and why."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conversations import openai
from running import Run

TOOL = {"name": "get_rate", "inputSchema": {"type": "object"}}
CALLED = {"n": 1, "tool": "get_rate", "arguments": {}, "ok": True, "ms": 1.0}
TRACE = [{"listed": [TOOL]}, CALLED]


def span(name: str, **said: str) -> dict[str, Any]:
    attributes = [{"key": key, "value": {"stringValue": value}} for key, value in said.items()]
    one = {"name": name, "attributes": attributes}
    return {"resourceSpans": [{"scopeSpans": [{"spans": [one]}]}]}


QUEUE = span("publish", **{"messaging.system": "kafka", "messaging.operation": "publish"})
OTHER_AGENT = span("tool", **{"agent_kit.kind": "tool", "agent_kit.tool_name": "get_rate"})
HTTP = span("GET /", **{"http.method": "GET", "url.path": "/"})
OURS = span(
    "execute_tool get_rate",
    **{"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get_rate",
       "gen_ai.tool.call.arguments": "{}"},
)  # fmt: skip
WRITTEN_CALL = {"name": "get_rate", "arguments": {}}
WRITTEN = {
    "conversations": [
        {"from": "human", "value": "Rate from USD?"},
        {"from": "gpt", "value": f"<TOOLCALL>[{json.dumps(WRITTEN_CALL)}]</TOOLCALL>"},
    ],
    "tools": [
        {"type": "function", "function": {"name": "get_rate", "parameters": {"type": "object"}}}
    ],
}  # fmt: skip
TALK = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]}


def lines(*rows: object) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


FOREIGN = {
    "empty": (b"", "it is empty|holds no rows"),
    "blank lines": (b"\n \n\n", "it is empty|holds no rows"),
    "no JSON": (b"hello\nworld\n", r"line 1: not JSON"),
    "other columns": (lines({"prompt": "x", "completion": "y"}), "no known format has these colu"),
    "spans of a queue": (lines(QUEUE, QUEUE), "its attributes are messaging.*"),
    "spans of another library": (lines(OTHER_AGENT), "its attributes are agent_kit.*"),
    "another convention": (lines(HTTP), "its attributes are http.*, url.*"),
    "calls in the text": (lines(WRITTEN), "its calls are written in the text of a message"),
    "gzip without its name": (gzip.compress(lines(*TRACE), mtime=0), "compressed with gzip"),
    "UTF-16": (lines(*TRACE).decode().encode("utf-16"), "the file is UTF-16; write it as UTF-8"),
    "binary": (b"\x7fELF\0\1\2\n\0\0", "it is no text in UTF-8"),
}
"""By kind a file of which nothing can be read, and what is said of it: as a stream, or as rows."""
WORDS = {
    "watch": ("watch", "odd.jsonl"),
    "watch a baseline": ("watch", "good.jsonl", "--baseline", "odd.jsonl"),
    "lock": ("lock", "odd.jsonl", "--out", "new.lock"),
    "verify what is": ("verify", "good.lock", "odd.jsonl"),
    "verify with calls": ("verify", "good.lock", "good.json", "--calls", "odd.jsonl"),
    "augment": ("augment", "odd.jsonl", "--alpha", "1", "--out", "new.jsonl"),
    "preview": ("augment", "odd.jsonl", "--alpha", "1", "--preview"),
}
HAS_TOOLS = ("calls in the text", ("lock", "verify what is"))
"""Such conversations list their tools, so these can be locked and compared."""


@pytest.fixture
def folder(toolshift: Run, tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "good.json").write_text(json.dumps([TOOL]))
    (tmp_path / "good.jsonl").write_bytes(lines(*TRACE))
    assert toolshift("lock", "good.json", "--out", "good.lock")[0] == 0
    yield tmp_path
    assert not [file for file in tmp_path.iterdir() if file.name.startswith(("new", ".new"))]


@pytest.mark.parametrize("command", WORDS)
@pytest.mark.parametrize("kind", FOREIGN)
def test_a_file_of_which_nothing_is_read_ends_the_command(
    toolshift: Run, folder: Path, kind: str, command: str
) -> None:
    raw, why = FOREIGN[kind]
    if kind == HAS_TOOLS[0] and command in HAS_TOOLS[1]:
        pytest.skip("its tools can be read")
    (folder / "odd.jsonl").write_bytes(raw)
    code, out, said = toolshift(*WORDS[command])
    assert (code, out) == (2, "")
    assert "odd.jsonl" in said
    # that a list of tools is missing is enough of a reason where the file is empty
    assert any(each in said for each in ("it is empty", "holds no rows")) or _says(said, why)
    code, out, _ = toolshift(*WORDS[command], "--json")
    assert code == 2
    told = json.loads(out)
    assert told["error"] in said
    assert told["unread"][0]["source"].endswith("odd.jsonl")
    assert not told["unread"][0]["read"]


def _says(said: str, why: str) -> bool:
    return any(each.replace("\\", "") in said for each in why.split("|"))


@pytest.mark.parametrize("kind", FOREIGN)
def test_standard_input_of_which_nothing_is_read_ends_the_watch(
    toolshift: Run, folder: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw, why = FOREIGN[kind]
    (folder / "odd.jsonl").write_bytes(raw)
    with (folder / "odd.jsonl").open() as stream:
        monkeypatch.setattr("sys.stdin", stream)
        code, out, said = toolshift("watch", "-")
    assert (code, out) == (2, "")
    assert "standard input: nothing was read" in said
    assert "traces of OpenTelemetry gen_ai, OpenInference, the Vercel AI SDK" in said
    assert _says(said, why)


def test_a_stream_that_goes_on_is_told_early_that_it_is_not_understood(
    toolshift: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "odd.jsonl").write_bytes(lines(*[QUEUE] * 25, OURS))
    with (folder / "odd.jsonl").open() as stream:
        monkeypatch.setattr("sys.stdin", stream)
        code, _, said = toolshift("watch", "-")
    assert code == 0
    assert "nothing was read so far: 20 of 20 spans were not understood" in said
    assert "25 of 26 spans were not understood. The first is line 1: a span of another" in said


@pytest.mark.parametrize("raw", [lines(*TRACE), b"\n" + lines(*TRACE) + b"\n", lines(TALK, OURS)])
def test_what_is_read_without_an_alarm_is_well(toolshift: Run, folder: Path, raw: bytes) -> None:
    (folder / "odd.jsonl").write_bytes(raw)
    code, out, said = toolshift("watch", "odd.jsonl", "--json")
    assert (code, out) == (0, "")
    assert "0 alarms." in said
    assert "Warning" not in said


@pytest.mark.parametrize(
    "odd", [QUEUE, OTHER_AGENT, HTTP, WRITTEN], ids=lambda row: next(iter(row))
)
def test_what_is_read_in_part_is_said_and_changes_no_exit_code(
    toolshift: Run, folder: Path, odd: object
) -> None:
    (folder / "odd.jsonl").write_bytes(lines(*TRACE, odd))
    code, out, said = toolshift("watch", "odd.jsonl", "--json")
    (intake,) = json.loads(out)["unread"]
    assert (code, intake["read"], intake["unread"]) == (0, 2, 1)
    assert intake["first"]["where"] == "line 3"
    assert "odd.jsonl: 1 of 3" in said
    for words in (
        ("lock", "odd.jsonl", "--out", "part.lock"),
        ("verify", "good.lock", "good.json", "--calls", "odd.jsonl"),
    ):
        code, out, said = toolshift(*words, "--json")
        (intake,) = json.loads(out)["unread"]
        assert (code, intake["unread"], intake["first"]["where"]) == (0, 1, "line 3")
        assert "odd.jsonl: 1 of 3" in said


def test_spans_that_stand_on_one_line_are_counted_one_by_one(toolshift: Run, folder: Path) -> None:
    (first,) = OURS["resourceSpans"][0]["scopeSpans"]
    (second,) = QUEUE["resourceSpans"][0]["scopeSpans"]
    (folder / "odd.jsonl").write_bytes(
        lines({"resourceSpans": [{"scopeSpans": [first, second, second]}]})
    )
    code, _, said = toolshift("watch", "odd.jsonl")
    assert (code, "2 of 3 spans were not understood" in said) == (0, True)


DOCUMENTS = {
    "no tools": (b"[]", "the list has no tool"),
    "an object without tools": (b'{"tools": []}', "the list has no tool"),
    "OpenAPI without paths": (b'{"openapi": "3.1.0", "paths": {}}', "has no operation"),
    "OpenAPI elsewhere": (
        b'{"openapi": "3.1.0", "paths": {"/x": {"$ref": "./x.yaml"}}}',
        "x.yaml",  # the file that is not there
    ),
    "gzip": (gzip.compress(b"[]", mtime=0), "compressed with gzip"),
    "UTF-16": ("[]".encode("utf-16"), "the file is UTF-16"),
    "binary": (b"\x7fELF\0", "no text in UTF-8"),
    "empty": (b"", "is not JSON"),
}


@pytest.mark.parametrize("kind", DOCUMENTS)
@pytest.mark.parametrize(
    "words",
    [
        ("lock", "odd.json", "--out", "new.lock"),
        ("verify", "good.lock", "odd.json"),
        ("shift", "from-diff", "odd.json", "odd.json", "--out", "new.json"),
        ("shift", "from-diff", "good.json", "odd.json", "--out", "new.json"),
    ],
    ids=" ".join,
)
def test_a_document_without_tools_ends_the_command(
    toolshift: Run, folder: Path, kind: str, words: tuple[str, ...]
) -> None:
    raw, why = DOCUMENTS[kind]
    (folder / "odd.json").write_bytes(raw)
    code, out, said = toolshift(*words)
    assert (code, out) == (2, "")
    assert why in said


def test_a_lock_without_tools_compares_with_nothing(toolshift: Run, folder: Path) -> None:
    (folder / "none.lock").write_text(json.dumps(_lock_of_none(folder)))
    for words in (
        ("verify", "none.lock", "good.json"),
        ("watch", "good.jsonl", "--lock", "none.lock"),
    ):
        code, out, said = toolshift(*words)
        assert (code, out, "none.lock contains no tool" in said) == (2, "", True)


def _lock_of_none(folder: Path) -> dict[str, Any]:
    kept = json.loads((folder / "good.lock").read_text())
    whole = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"  # of {}
    return {**kept, "tools": [], "hash": whole}


def test_paths_that_cannot_be_read_are_said(toolshift: Run, folder: Path) -> None:
    paths = {"/x": {"get": "later"}, "/y": {"get": {"operationId": "y", "responses": {}}}}
    (folder / "api.json").write_text(json.dumps({"openapi": "3.1.0", "paths": paths}))
    for words in (
        ("lock", "api.json", "--out", "api.lock"),
        ("verify", "api.lock", "api.json"),
        ("shift", "from-diff", "api.json", "good.json", "--out", "x.json", "--dry-run"),
    ):
        code, _, said = toolshift(*words)
        assert (code, "api.json: 1 of 2 paths was not understood" in said) == (0, True)
    code, out, _ = toolshift("verify", "api.lock", "api.json", "--json")
    assert (code, json.loads(out)["unread"][0]["first"]["where"]) == (0, "path /x")
    assert (
        toolshift("shift", "from-diff", "api.json", "good.json", "--out", "x.json", "--yes")[0] == 0
    )
    assert b"unread" not in (folder / "x.json").read_bytes()


def _of_mcp(schema: Any) -> Any:
    return [{"name": "a", "inputSchema": schema}]


def _of_openapi(operation: dict[str, Any], **more: Any) -> Any:
    return {"openapi": "3.0.0", "paths": {"/x": {"get": {"operationId": "a", **operation}}}, **more}


PARAMETERS = "GET /x: its `parameters` are not a list"
BODY = {"content": {"application/json": {"schema": {"type": "object", "properties": ["x"]}}}}
LOST: dict[str, tuple[Any, str]] = {
    "a text as schema": (_of_mcp("string"), "a, inputSchema: it is no object"),
    "a list as properties": (
        _of_mcp({"type": "object", "properties": ["x"]}),
        "a, inputSchema #/properties: it is no object",
    ),
    "a reference to nothing": (
        _of_mcp({"type": "object", "properties": {"x": {"$ref": "#/nope"}}}),
        "a, inputSchema: the reference '#/nope' (#/properties/x) cannot be followed",
    ),
    "an object as parameters": (_of_openapi({"parameters": {"a": 1}}), PARAMETERS),
    "an object as parameters of 2.0": (
        {"swagger": "2.0", "paths": {"/x": {"get": {"parameters": {"a": 1}}}}},
        PARAMETERS,
    ),
}
PARTLY: dict[str, tuple[Any, str]] = {
    "a list as properties of a value": (
        _of_mcp({"type": "object", "properties": {"x": {"properties": ["y"]}}}),
        "tool a: inputSchema #/properties/x/properties: it is no object",
    ),
    "a parameter without a name": (
        _of_openapi({"parameters": [{"name": 5, "in": "query"}]}),
        "path /x: parameter 1 of its operation `get` has no `name`",
    ),
    "a body without content": (
        _of_openapi({"requestBody": "later"}),
        "path /x: the body of its operation `get` has no `content`",
    ),
    "a list as properties of a body": (
        _of_openapi({"requestBody": BODY}),
        "tool a: inputSchema #/properties/body/properties: it is no object",
    ),
}


@pytest.mark.parametrize("kind", [*LOST, *PARTLY])
def test_a_broken_schema_is_never_locked_in_silence(
    toolshift: Run, tmp_path: Path, kind: str
) -> None:
    content, why = {**LOST, **PARTLY}[kind]
    (tmp_path / "odd.json").write_text(json.dumps(content))
    code, _, said = toolshift("lock", "odd.json", "--out", "a.lock")
    assert (code, said.count("odd.json: ")) == (2 if kind in LOST else 0, 1)
    assert why in said
    assert (tmp_path / "a.lock").exists() == (kind in PARTLY)


def test_a_schema_as_others_write_it_is_not_broken(toolshift: Run, tmp_path: Path) -> None:
    node = {"$anchor": "node", "properties": {"next": {"$ref": "#"}, "on": True}}
    lists = {"items": [{"$ref": "#node"}], "additionalProperties": False, "required": True}
    inner = {"a": lists, "$ref": {"type": "string"}, "properties": {"enum": ["x"]}}
    schema = {"type": "object", "properties": inner, "$defs": {"node": node}}
    (tmp_path / "good.json").write_text(json.dumps([*_of_mcp(schema), {"name": "b"}]))
    code, _, said = toolshift("lock", "good.json", "--out", "a.lock")
    assert (code, said) == (0, "")


def test_a_mark_of_byte_order_is_no_part_of_a_document(toolshift: Run, folder: Path) -> None:
    for name in ("good.json", "good.lock"):
        (folder / name).write_bytes(b"\xef\xbb\xbf" + (folder / name).read_bytes())
    assert toolshift("verify", "good.lock", "good.json")[0] == 0


@pytest.mark.parametrize(
    "words", [*WORDS.values(), ("trace", "odd.jsonl"), ("report", "odd.jsonl")]
)
def test_a_folder_ends_the_command(toolshift: Run, folder: Path, words: tuple[str, ...]) -> None:
    (folder / "odd.jsonl").mkdir()
    code, out, said = toolshift(*words)
    assert (code, out) == (2, "")
    assert "odd.jsonl" in said


def test_a_run_without_episodes_has_no_result(toolshift: Run, folder: Path) -> None:
    run = ("run", "--agent", "oracle", "--tasks", "1", "--kind", "listing", "--no-placebo")
    assert toolshift(*run, "--shift", "transient_error", "--out", "run")[0] == 0
    for name in ("episodes.jsonl", "timings.jsonl"):
        (folder / "run" / name).write_bytes(b"")
    for words in (("report", "run"), ("trace", "run"), ("compare", "run", "run")):
        code, _, said = toolshift(*words)
        assert (code, "run" in said) == (2, True), words


# -- conversations that are to be shifted ----------------------------------------------------------


def test_rows_in_which_nothing_can_be_shifted_are_counted_by_reason(
    toolshift: Run, folder: Path
) -> None:
    listed = {**TALK, "tools": WRITTEN["tools"]}
    (folder / "odd.jsonl").write_bytes(lines(WRITTEN, WRITTEN, TALK, listed) + b"{broken\n")
    code, out, said = toolshift("augment", "odd.jsonl", "--alpha", "1", "--out", "new.jsonl")
    assert (code, out) == (2, "")
    assert "none of its 4 conversations was shifted" in said
    assert "convert them to `tool_calls` (2)" in said
    assert "it lists no tools (1)" in said
    assert "no tool is called in it (1)" in said
    assert "1 of 5 rows was not understood. The first is line 5: not JSON" in said


def test_a_share_of_nothing_is_said(toolshift: Run, folder: Path) -> None:
    (folder / "odd.jsonl").write_bytes(lines(openai(0)))
    words = ("augment", "odd.jsonl", "--shift", "SBP")
    code, _, said = toolshift(*words, "--alpha", "0.000001", "--out", "new.jsonl")
    assert (code, "of 1 conversation is none: raise --alpha" in said) == (2, True)
    assert toolshift(*words, "--alpha", "0", "--out", "same.jsonl")[0] == 0
    assert (folder / "same.jsonl").read_bytes() == (folder / "odd.jsonl").read_bytes()


def test_rows_that_stay_beside_rows_that_are_shifted_are_said(toolshift: Run, folder: Path) -> None:
    (folder / "odd.jsonl").write_bytes(lines(openai(0), WRITTEN, TALK) + b"{broken\n")
    words = ("augment", "odd.jsonl", "--alpha", "1", "--shift", "SBP")
    code, out, said = toolshift(*words, "--out", "part.jsonl")
    assert (code, "3 conversations, 1 shifted" in out) == (0, True)
    assert "Not shifted: 1 of the 3 conversations that alpha asks for: its calls are writ" in said
    assert "Not shifted: 1 of the 3 conversations that alpha asks for: it lists no tools" in said
    assert toolshift(*words, "--preview")[0] == 0
    code, out, _ = toolshift(*words, "--out", "part.jsonl", "--json")
    told = json.loads(out)
    assert (code, told["drawn"], told["unread"][0]["unread"]) == (0, 3, 1)
    assert sum(told["untried"].values()) == 2


NO_CALLS = {
    "a list of tools": ("odd.json", json.dumps([TOOL]).encode(), "a call is"),
    "an empty list": ("odd.json", b"[]", "it is empty"),
    "a trace that only lists": (
        "odd.jsonl",
        lines({"listed": [TOOL]}),
        "contains no call of a tool",
    ),
    "talk": ("odd.jsonl", lines(TALK), "contains no call of a tool"),
    "a call without a tool": (
        "odd.jsonl",
        lines({"tool": "", "arguments": {}}),
        "without the name",
    ),
    "a request without names": ("odd.jsonl", lines({"carried": [3, None]}), "has no name"),
}


@pytest.mark.parametrize("kind", NO_CALLS)
def test_a_file_without_calls_is_no_proof_that_calls_hold(
    toolshift: Run, folder: Path, kind: str
) -> None:
    name, raw, why = NO_CALLS[kind]
    (folder / name).write_bytes(raw)
    code, out, said = toolshift("verify", "good.lock", "good.json", "--calls", name)
    assert (code, out) == (2, "")
    assert why in said


@pytest.mark.parametrize(
    "row", [{"listed": []}, {"listed": ["a"]}, {"messages": []}, {"carried": [[3]]}]
)
def test_lines_that_say_nothing_are_not_watched(
    toolshift: Run, folder: Path, row: dict[str, Any]
) -> None:
    (folder / "odd.jsonl").write_bytes(lines(row))
    code, out, said = toolshift("watch", "odd.jsonl")
    assert (code, out) == (2, "")
    assert "nothing was read" in said


@pytest.mark.parametrize("text", ["", "\n# a comment\n", "renamed = {}\n"])
@pytest.mark.parametrize("command", [("change",), ("shift", "from-diff")])
def test_a_mapping_without_an_answer_is_refused(
    toolshift: Run, folder: Path, text: str, command: tuple[str, ...]
) -> None:
    (folder / "map.toml").write_text(text)
    code, _, said = toolshift(*command, "good.json", "good.json", "--mapping", "map.toml")
    assert code == 2
    assert "it holds no answer. Its tables are: renamed" in said


@pytest.mark.parametrize("raw", [b"[]", b'["a"]', b'{"tools": []}', b"", b"\xff\xfe["])
def test_shifts_are_tried_on_tools_only(toolshift: Run, folder: Path, raw: bytes) -> None:
    (folder / "odd.json").write_bytes(raw)
    words = ("model-proxy", "--upstream", "http://127.0.0.1:9/v1", "--tools", "odd.json")
    words = (*words, "--shift", "parameter_rename:2")
    code, out, said = toolshift(*words)
    assert (code, out) == (2, "")
    assert "--tools odd.json" in said

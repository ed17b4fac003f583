"""Training rows in files: written, read, and checked where they are anyone's.

A row is `{"messages", "tools", ...}` in the OpenAI format, which fine-tuning APIs and
`toolshift train sft` read. Arguments stay JSON strings, so that no loader merges the keys of
different tools. An assistant message with `"weight": 0` is context only. TRL's own trainer takes
neither weights nor such arguments: `rows_for` makes rows for it and for others, `turns_of` turns in
which tools and calls are written out.
"""

from __future__ import annotations

import codecs
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from math import inf
from pathlib import Path
from typing import Any, TypedDict

import msgspec

from toolshift.core.command_line import command
from toolshift.core.errors import UsageError
from toolshift.core.files import check_writable, draft, opened
from toolshift.core.message import Turn
from toolshift.core.names import unknown
from toolshift.core.tool import JSON
from toolshift.core.values import as_json, as_list
from toolshift.data.augment import converted
from toolshift.data.conversation import RowFault, portable
from toolshift.data.formats import FORMATS
from toolshift.data.formats.openai import tools_column
from toolshift.data.parquet import parquet
from toolshift.data.trace_files import conversation_lines, is_trace
from toolshift.data.trainers import Fitted, Trainer, fitted
from toolshift.lm.prompt import Layout, to_plain_messages

ROLES = ("system", "developer", "user", "assistant", "tool")


class Row(TypedDict):
    """One training row; `messages` and `tools` are in the OpenAI format."""

    id: str
    world: str
    kind: str
    lineage: str
    shifts: list[str]
    solvable: bool
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]


def turns_of(rows: Iterable[Row], layout: Layout = "description-first") -> Iterator[dict[str, Any]]:
    """The turns that rows teach, in the columns `prompt` and `completion` of TRL's trainers.

    Tools and calls are written out in a layout, as models that `toolshift train` makes read them,
    so that any chat template takes them. The prompt of a turn is all before it; what is context
    only is nobody's completion.
    """
    for row in rows:
        messages = to_plain_messages(Turn(row["messages"], row["tools"]), layout)
        spoken = [{"role": message["role"], "content": message["content"]} for message in messages]
        for turn, message in enumerate(messages):
            if message["role"] == "assistant" and message.get("weight", 1):
                known = {k: v for k, v in row.items() if k not in ("messages", "tools")}
                yield {**known, "prompt": spoken[:turn], "completion": [spoken[turn]]}


def rows_for(rows: Iterable[Row], trainer: Trainer) -> Fitted:
    """Rows as another trainer learns them rightly, with the column `shifts` where it has room."""
    form = FORMATS.find("openai")
    found: list[dict[str, Any]] = []
    left, lost = Counter[str](), Counter[str]()
    for row in rows:
        made = fitted(form.read(row), trainer)
        known = {"shifts": row["shifts"]} if trainer.further else {}
        found += [{**known, **one} for one in made.rows]
        left.update(made.left)
        lost.update(made.lost)
    return Fitted(tuple(found), dict(left), dict(lost))


def write_rows(rows: Iterable[Mapping[str, Any]], path: Path) -> str:
    """Writes rows as JSON lines, or as Parquet where the file ends so; returns their SHA-256.

    In Parquet, `tools` is a JSON string, which TRL decodes: a schema has no fixed columns.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        _write_parquet(rows, path)
    elif path.suffix == ".jsonl":
        with draft(path) as file:
            for row in rows:
                file.write(JSON.encode(row) + b"\n")
    else:
        raise UsageError(f"{path}: name a file that ends in .jsonl or .parquet")
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_out(path: Path) -> None:
    """Refuses a file that rows could not be written to, before they are made; makes its folder."""
    if path.suffix not in (".jsonl", ".parquet"):
        raise UsageError(f"--out {path}: name a file that ends in .jsonl or .parquet")
    if path.suffix == ".parquet":
        parquet()
    if path.is_dir():
        raise UsageError(f"--out {path}: that is a folder; name a file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        why = f"there can be no folder {path.parent} ({fault.strerror})"
        raise UsageError(f"--out {path}: {why}") from None
    check_writable(path, "--out")


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Reads training rows: ours, or anyone's with the columns `messages` and, perhaps, `tools`.

    Rows of the other formats that `toolshift augment` reads are turned into such.
    """
    if path.is_dir():
        raise UsageError(f"{path} is a folder: name a .jsonl or .parquet file in it")
    if not path.is_file():
        makes = command("data", "--out", path)
        raise UsageError(f"{path}: there is no such file; `{makes}` writes one")
    if path.suffix == ".parquet":
        read = _read_parquet(path)
    elif is_trace(path):
        read = map(msgspec.json.decode, conversation_lines(path))
    else:
        read = _read_lines(path)
    rows = (_as_messages(row, f"{path}, row {number}") for number, row in enumerate(read, 1))
    return checked(rows, str(path))


def with_known_roles(row: dict[str, Any]) -> dict[str, Any]:
    """A row of OpenAI messages with the roles that training knows, calls and tools in their place.

    There are older ways: a call as a turn of a role, or as `function_call`; tools as `functions`.
    """
    said = row["messages"]
    if not isinstance(said, list):  # it is JSON in a string
        return row
    turns = [each for each in said if isinstance(each, dict)]
    roles = {each.get("role") for each in turns}
    # A table fills in a call of nothing where another row has a call.
    asked = [each["function_call"] for each in turns if each.get("function_call")]
    old = any(not isinstance(one, dict) or one.get("name") for one in asked)
    old = old or tools_column(row) != "tools"
    if old or roles & {"tool_call", "tool_response"}:
        form = FORMATS.find("openai")
        return {**row, **form.write(portable(form.read(row)), None)}
    if not roles & {"function", "ipython"}:
        return row
    known = [{**m, "role": "tool"} if m.get("role") in ("function", "ipython") else m for m in said]
    return {**row, "messages": known}


def _as_messages(row: Any, where: str) -> Any:
    """A row of another format as one of OpenAI messages; what is of none passes."""
    if not isinstance(row, dict) or "completion" in row:
        return row
    openai = FORMATS.find("openai")
    try:
        form = next((form for form in FORMATS.all().values() if form.recognises(row)), None)
        if form is openai or (form and "messages" in row and not form.read(row).tools):
            return with_known_roles(row)
        return row if form is None else converted(row, form, openai)
    except RowFault as wrong:
        raise UsageError(f"{where}: {wrong}") from None


def checked(rows: Iterable[Any], where: str = "data") -> list[dict[str, Any]]:
    """Rows whose `messages` and `tools` are lists.

    In rows of a `datasets.Dataset`, as in those of a Parquet file, a null in a call or a tool is
    no value but a hole: it is what Arrow fills in where another row has a key that this one lacks.
    """
    if hasattr(rows, "features"):
        rows = map(_without_holes, rows)
    rows_read = [checked_row(row, f"{where}, row {number}") for number, row in enumerate(rows, 1)]
    if not rows_read:
        raise UsageError(f"{where}: there are no rows")
    return rows_read


def _read_lines(path: Path) -> Iterator[Any]:
    with opened(path) as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                yield msgspec.json.decode(line.removeprefix(codecs.BOM_UTF8))
            except (ValueError, RecursionError) as fault:
                hint = "; write one object on each line" if line.lstrip()[:1] in b"[{" else ""
                raise UsageError(f"{path}, line {number}: not JSON ({fault}){hint}") from None


def _read_parquet(path: Path) -> Iterator[Any]:
    pq = parquet()
    try:
        yield from map(_without_holes, pq.read_table(path).to_pylist())
    except (OSError, ValueError) as fault:
        raise UsageError(f"{path}: not a Parquet file ({fault})") from None


def _write_parquet(rows: Iterable[Mapping[str, Any]], path: Path) -> None:
    pq = parquet()
    import pyarrow  # noqa: PLC0415 - heavy, and an extra

    flat = [{k: as_json(v) if k == "tools" else v for k, v in row.items()} for row in rows]
    with draft(path) as file:
        pq.write_table(pyarrow.Table.from_pylist(flat), file)


def checked_row(row: Any, where: str) -> dict[str, Any]:
    """One row whose `messages` and `tools` are lists; `where` is what a fault of it names."""
    if not isinstance(row, Mapping):
        raise UsageError(f"{where}: not an object")
    _check_columns(row, where)
    messages, tools = _decoded(row, "messages", where), _decoded(row, "tools", where)
    if not messages:
        raise UsageError(f"{where}: 'messages' is empty")
    for number, message in enumerate(messages, 1):
        _check_message(message, f"{where}, message {number}")
    for number, tool in enumerate(tools, 1):
        _check_tool(tool, f"{where}, tool {number}")
    _check_tools(row, messages, where)
    if all(message["role"] != "assistant" for message in messages):
        raise UsageError(
            f"{where}: there is no message of the assistant, so there is nothing to learn"
        )
    return {**row, "messages": [_without_nulls(message) for message in messages], "tools": tools}


def _check_columns(row: Mapping[str, Any], where: str) -> None:
    """Checks that a row has messages; offers what comes near."""
    if "messages" not in row and "completion" in row:
        raise UsageError(
            f"{where}: the rows are turns (prompt and completion) for TRL's trainers, but this "
            "needs whole conversations: `toolshift data` without --turns writes them"
        )
    if "messages" not in row:
        near = unknown("column", "messages", row).partition(": ")[2] if row else "it is empty"
        raise UsageError(f"{where}: the column 'messages' is missing ({near})")


def _check_tools(row: Mapping[str, Any], messages: Iterable[Mapping[str, Any]], where: str) -> None:
    """Checks that calls which are learned have tools beside them; offers what comes near."""
    learned = (
        message
        for message in messages
        if message.get("role") == "assistant" and message.get("weight") != 0
    )
    if row.get("tools") is None and any(message.get("tool_calls") for message in learned):
        near = unknown("column", "tools", row).partition(": ")[2]
        raise UsageError(
            f"{where}: the assistant calls tools, and the column 'tools' is missing ({near}), so "
            "the model would learn to call unlisted tools; give the tools in the OpenAI format, "
            "or [] if they are in the system message"
        )


def _check_message(message: Any, where: str) -> None:
    """Checks what the prompt is written from."""
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise UsageError(f"{where}: it has no role")
    if message["role"] not in ROLES:
        raise UsageError(f"{where}: {unknown('role', message['role'], ROLES)}")
    content, calls = message.get("content"), message.get("tool_calls") or []
    parts = as_list(content)
    if not isinstance(content, str | list | None) or not all(map(_is_text, parts)):
        raise UsageError(f"{where}: 'content' must be a text or a list of parts of type text")
    _check_weight(message, where)
    if not isinstance(calls, list) or not all(map(_has_name, calls)):
        raise UsageError(
            f"{where}: 'tool_calls' must be a list of "
            '{"type": "function", "function": {"name": ..., "arguments": ...}}'
        )
    learned = message["role"] == "assistant" and message.get("weight") != 0
    if learned and not (content or calls):
        raise UsageError(
            f"{where}: this message of the assistant is empty, and the model would learn that; "
            'leave the message out, or give it "weight": 0'
        )
    for call in calls:
        _check_arguments(call.get("function", call), message.get("weight", 1), where)


def _check_weight(message: Mapping[str, Any], where: str) -> None:
    """Checks the weight that a message may have."""
    weight = message.get("weight")
    if weight is not None and not (isinstance(weight, int | float) and 0 <= weight < inf):
        raise UsageError(
            f"{where}: the weight of a message is {weight!r}; give a number from 0 (context only) "
            "up"
        )


def _is_text(part: Any) -> bool:
    """Whether a part of a message's content is a text."""
    return isinstance(part, dict) and isinstance(part.get("text"), str)


def _check_arguments(function: dict[str, Any], weight: Any, where: str) -> None:
    """Checks a call's arguments; what is context only may be malformed, for so it was answered."""
    arguments, name = function.get("arguments"), function["name"]
    if not isinstance(arguments, str | dict | None):
        raise UsageError(f"{where}: the arguments of {name} must be an object, or one as JSON text")
    if isinstance(arguments, str) and arguments and weight != 0:
        try:
            msgspec.json.decode(arguments, type=dict)
        except (ValueError, RecursionError) as fault:
            raise UsageError(
                f"{where}: the arguments of {name} are not a JSON object ({fault}), and the "
                'model would learn that; correct them, or give the message "weight": 0'
            ) from None


def _check_tool(tool: Any, where: str) -> None:
    """Checks what a tool is listed by."""
    if not _has_name(tool):
        raise UsageError(f"{where}: it has no function with a name")
    function = tool.get("function", tool)
    if not isinstance(function.get("description"), str | None):
        raise UsageError(f"{where}: 'description' must be a text")
    _check_schema(function.get("parameters") or {}, f"{where}, 'parameters'")


_SHAPES: dict[str, tuple[type, str]] = {
    "description": (str, "a text"),
    "properties": (dict, "an object of schemas"),
    "items": (dict, "a schema"),
    "anyOf": (list, "a list of schemas"),
    "oneOf": (list, "a list of schemas"),
}


def _check_schema(schema: Any, where: str) -> None:
    """Checks what the list of tools shows of a JSON Schema, all the way down."""
    if not isinstance(schema, dict):
        raise UsageError(f"{where}: it must be a JSON Schema, an object")
    for key, (form, called) in _SHAPES.items():
        if not isinstance(schema.get(key), form | None):
            raise UsageError(f"{where}: '{key}' must be {called}")
    if not isinstance(schema.get("enum", []), list):
        raise UsageError(f"{where}: 'enum' must be a list")
    properties = schema.get("properties") or {}
    required = schema.get("required") or []
    named = isinstance(required, list) and all(isinstance(name, str) for name in required)
    if properties and not named:
        raise UsageError(f"{where}: 'required' must be a list of names of properties")
    for name, property in properties.items():
        _check_schema(property, f"{where}, '{name}'")
    items, options = schema.get("items"), schema.get("anyOf") or schema.get("oneOf")
    for part in (*([items] if items else ()), *(options or ())):
        _check_schema(part, f"{where}, one of its schemas")


def _has_name(tool_or_call: Any) -> bool:
    """Whether a tool or a call names its function, inside `function` or beside it."""
    if not isinstance(tool_or_call, dict):
        return False
    function = tool_or_call.get("function", tool_or_call)
    return isinstance(function, dict) and isinstance(function.get("name"), str)


def _decoded(row: Mapping[str, Any], column: str, where: str) -> list[Any]:
    value = row.get(column) or []
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except (ValueError, RecursionError) as fault:
            raise UsageError(f"{where}: '{column}' is not JSON ({fault})") from None
    if not isinstance(value, list):
        raise UsageError(f"{where}: '{column}' is of type {type(value).__name__}, not a list")
    return value


def _without_nulls(message: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in message.items() if v is not None or k == "content"}


def _without_holes(row: Any) -> Any:
    """A row of Arrow without the nulls in calls and tools; not those inside of a JSON text."""
    if not isinstance(row, Mapping):
        return row
    stored = row.get("messages")
    messages = (
        [_called_alone(message) for message in stored] if isinstance(stored, list) else stored
    )
    return {**row, "messages": messages, "tools": _filled(row.get("tools"))}


def _called_alone(message: Any) -> Any:
    if not isinstance(message, dict) or "tool_calls" not in message:
        return message
    return {**message, "tool_calls": _filled(message["tool_calls"])}


def _filled(value: Any) -> Any:
    """A value without keys that hold nothing; members of lists stay."""
    if isinstance(value, Mapping):
        return {key: _filled(item) for key, item in value.items() if item is not None}
    return [_filled(item) for item in value] if isinstance(value, list) else value

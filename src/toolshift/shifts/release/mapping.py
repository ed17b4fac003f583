"""The mapping file: what became what, as far as a reader of two tool lists cannot tell.

    renamed = {printEnv = "get-env", sampleLLM = "?"}   # "?" is still to be decided
    removed = ["zip"]                                   # has no successor
    added = ["get-annotated-message"]                   # has no predecessor

    [params.search_files]                               # by the old tool: old = new; "" for gone
    query = "pattern"

    [defaults.search_files]                             # by the old tool: what an old parameter
    limit = 10                                          # gets that nobody can say any more

    [values.search_files.order]                         # by the old tool and parameter: old = new
    asc = "ascending"

    [fields.get_order]                                  # by the old tool: paths in its results
    total = "amount.total"

    [merged.issue_read]                                 # a new tool that stands for several
    by = "method"                                       # as this parameter of it says
    tools = {get = "get_issue", get_comments = "get_issue_comments"}

    [merged.execute]                                    # a dispatcher: it takes the name of a tool
    by = "tool"
    tools = {get_order = "get_order"}
    arguments = "params"                                # and the arguments in this parameter
    finder = "search"                                   # the new tool that lists what there is

    [split.manage]                                      # an old tool that became several
    by = "action"                                       # which say by their names what this
    tools = {create_item = "create"}                    # parameter of it said: new = value

    [given.find_orders]                                 # by the new tool: what users state for
    connection = "c-1"                                  # a parameter that no task speaks of

Whatever is left out is inferred.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from toolshift.core.documents import read_toml
from toolshift.core.errors import UsageError
from toolshift.core.intake import Intake, NotRead

UNDECIDED = "?"
Table = dict[str, dict[str, str]]


class Several(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One tool on one side, several on the other, distinguished by the value of a parameter.

    Attributes:
        by: the parameter.
        tools: for a merge, the old tool of each value; for a split, the value of each new tool.
        arguments: of a dispatcher, the parameter in which the old tool's arguments stand.
        finder: the new tool that lists what a dispatcher can call.
    """

    by: str
    tools: dict[str, str]
    arguments: str = ""
    finder: str = ""


class Answers(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a mapping file says; see the module."""

    renamed: dict[str, str] = {}
    removed: list[str] = []
    added: list[str] = []
    params: Table = {}
    defaults: dict[str, dict[str, Any]] = {}
    values: dict[str, Table] = {}
    fields: Table = {}
    merged: dict[str, Several] = {}
    split: dict[str, Several] = {}
    given: dict[str, dict[str, Any]] = {}


def read_mapping(path: Path) -> Answers:
    """Reads a mapping file."""
    try:
        raw = path.read_bytes()
    except OSError as fault:
        raise UsageError(f"{path}: cannot be read ({fault.strerror})") from None
    said = read_toml(raw, str(path))
    tables = ", ".join(Answers.__struct_fields__)
    try:
        answers = msgspec.convert(said, Answers)
    except msgspec.ValidationError as fault:
        raise UsageError(f"{path}: {fault}. Its tables are: {tables}") from None
    if answers == Answers():
        raise NotRead(
            f"{path}: nothing was read: it holds no answer. Its tables are: {tables}",
            Intake(str(path), "answer"),
        )
    return answers


def write_mapping(answers: Answers, notes: Mapping[str, str]) -> str:
    """A mapping file, with a note beside what is undecided."""
    told = msgspec.to_builtins(answers)
    lines = ['# Fill in every "?": the new name, or "" where there is none. Then give the file as']
    lines += ["# --mapping to `toolshift shift from-diff`."]
    plain = {name: told.pop(name) for name in ("removed", "added") if name in told}
    lines += [f"{name} = {_value(value)}" for name, value in plain.items()]
    for name, table in told.items():
        lines += _table((name,), table, notes)
    return "\n".join(lines) + "\n"


def _table(path: tuple[str, ...], table: Mapping[str, Any], notes: Mapping[str, str]) -> list[str]:
    inner = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    own = {key: value for key, value in table.items() if key not in inner}
    lines = ["", f"[{'.'.join(map(_key, path))}]"] if own else []
    for key, value in own.items():
        note = notes.get(".".join((*path, key)), "")
        lines.append(f"{_key(key)} = {_value(value)}{f'  # {note}' if note else ''}")
    for key, value in inner.items():
        lines += _table((*path, key), value, notes)
    return lines


def _key(name: str) -> str:
    bare = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    return name if bare else _value(name)


def _value(value: Any) -> str:
    """A value in TOML, whose strings, numbers and lists are those of JSON."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return msgspec.json.encode(value).decode().replace("\x7f", "\\u007f")

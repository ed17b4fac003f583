"""The mapping file: what became what, as far as a reader of two tool lists cannot tell.

    renamed = {printEnv = "get-env", sampleLLM = "?"}   # "?" is still to be decided
    removed = ["zip"]                                   # has no successor
    added = ["get-annotated-message"]                   # has no predecessor

    [params.search_files]                               # by the old tool: old = new; "" for gone
    query = "pattern"

    [defaults.search_files]                             # by the old tool: what an old parameter
    limit = 10                                          # gets where a call does not say it

    [values.search_files.order]                         # by the old tool and parameter: old = new
    asc = "ascending"

    [param_units.plan_service]                          # by the old tool and parameter: how what is
    hours = "h -> min"                                  # said now is converted

    [fields.get_order]                                  # by the old tool: paths in its results
    total = "amount.total"                              # "" for gone, "." for the whole result
    "{first_name} {last_name}" = "name"                 # several that became one; and the reverse:
    when = "{date}T{time}"

    [result_values.get_order.status]                    # by the old tool and path: old = new
    open = "OPEN"

    [units.get_order]                                   # by the old tool: path = conversion
    weight = "g -> kg"                                  # also "unix seconds -> date-time"

    [returned.get_order]                                # by the new tool: what a new path of its
    currency = "EUR"                                    # results has that no old one gives

    [pages.list_orders]                                 # by the new tool: how many are on a page
    size = 20

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

    [beside]                                            # a new tool, and the old one that it
    get_order = "find_order"                            # stands for, which is still there

    [given.find_orders]                                 # by the new tool: what users state for
    connection = "c-1"                                  # a parameter that no task speaks of

    [given."*"]                                         # "*": of every tool of which it is asked;
    connection = "c-1"                                  # of `params`, `given` and `defaults`

Whatever is left out is inferred.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from toolshift.core.documents import read_toml
from toolshift.core.errors import UsageError
from toolshift.core.intake import Intake, NotRead
from toolshift.core.values import as_json

UNDECIDED = "?"
EVERY = "*"
"""In place of a tool: all of those of which the same is asked."""
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
    param_units: Table = {}
    fields: Table = {}
    result_values: dict[str, Table] = {}
    units: Table = {}
    returned: dict[str, dict[str, Any]] = {}
    pages: dict[str, dict[str, int | str]] = {}
    merged: dict[str, Several] = {}
    split: dict[str, Several] = {}
    beside: dict[str, str] = {}
    given: dict[str, dict[str, Any]] = {}


_DEPTHS = {"renamed": 1, "beside": 1, "values": 3, "result_values": 3}
"""How many names lead to an entry of a table; two, where it is not here."""


def decided(answers: Answers) -> Answers:
    """The answers without what is still open, which is asked as if it were not there."""
    tables = {
        name: _without_open(table, _DEPTHS.get(name, 2))
        for name in Answers.__struct_fields__
        if isinstance(table := getattr(answers, name), dict) and name not in ("merged", "split")
    }
    return msgspec.structs.replace(answers, **tables)


def _without_open(table: Mapping[str, Any], depth: int) -> dict[str, Any]:
    if depth == 1:
        return {key: value for key, value in table.items() if value != UNDECIDED}
    inner = {key: _without_open(each, depth - 1) for key, each in table.items()}
    return {key: each for key, each in inner.items() if each}


class WrongMapping(UsageError):
    """A mapping that is not one of these tools.

    Args:
        why: what is wrong with it.
    """

    def __init__(self, why: str) -> None:
        super().__init__(f"the mapping: {why}")
        self.why = why


class WrongEntry(WrongMapping):
    """An entry of a mapping that cannot be.

    Args:
        path: the tables and the key that it stands under.
        why: what is wrong with it.
    """

    def __init__(self, path: tuple[str, ...], why: str) -> None:
        super().__init__(f"{'.'.join(path[:-1])}: {why}")
        self.path = path


@contextmanager
def entries_of(path: Path) -> Iterator[None]:
    """Says of what is wrong in which file it stands, and of a wrong entry in which line."""
    try:
        yield
    except WrongMapping as wrong:
        if not path.is_file():
            raise
        entry = wrong.path if isinstance(wrong, WrongEntry) else ()
        line = _line_of(path.read_text(encoding="utf-8"), entry) if entry else 0
        where = f"{path}:{line}" if line else f"{path}"
        other = (
            "" if entry else " If that file is of another change, name a new one with --mapping."
        )
        raise UsageError(f"{where}: {wrong.why}{other}") from None


def _line_of(text: str, path: tuple[str, ...]) -> int:
    """The line of the entry at a path, or of the innermost table of it; 0 where none is found."""
    best = (0, 0)
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if bare.startswith("["):
            table = here = _keys_of(bare)
        else:
            here = (*table, *_keys_of(bare))
        if here and path[: len(here)] == here and len(here) > best[0]:
            best = (len(here), number)
    return best[1]


def _keys_of(line: str) -> tuple[str, ...]:
    """The keys of one line of TOML."""
    for text in (line, f"{line.partition('=')[0]} = 0", f"{line.rpartition('=')[0]} = 0"):
        try:
            node: Any = tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            continue
        keys: list[str] = []
        while isinstance(node, Mapping) and len(node) == 1:
            ((key, node),) = node.items()
            keys.append(key)
        return tuple(keys)
    return ()


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


def write_mapping(answers: Answers, notes: Mapping[str, str], given: Answers | None = None) -> str:
    """A mapping file, with a note beside what is undecided.

    What is neither `given` nor undecided is a comment: the file answers nothing that nobody has
    answered. Without `given` everything counts as given.
    """
    told = msgspec.to_builtins(answers)
    known = msgspec.to_builtins(answers if given is None else given)
    lines = ['# Fill in every "?": the new name, or "" where there is none. Then run the command']
    lines += ["# again; where the file has another name or place, with --mapping FILE."]
    if given is not None:
        lines += ["# A line behind # was inferred; without # it is your answer."]
    plain = {name: told.pop(name) for name in ("removed", "added") if name in told}
    for name, value in plain.items():
        own = [one for one in value if one in known.get(name, ())]
        lines += [f"{name} = {_value(own)}"] * bool(own)
        lines += [f"# {name} = {_value(value)}"] * (own != value)
    for name, table in told.items():
        lines += _table((name,), table, notes, known.get(name, {}))
    return "\n".join(lines) + "\n"


def _table(
    path: tuple[str, ...],
    table: Mapping[str, Any],
    notes: Mapping[str, str],
    known: Mapping[str, Any],
) -> list[str]:
    inner = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    own = {key: value for key, value in table.items() if key not in inner}
    inferred = {key for key, value in own.items() if value != UNDECIDED and known.get(key) != value}
    head = f"[{'.'.join(map(as_key, path))}]"
    lines = ["", f"# {head}" if own.keys() <= inferred else head] if own else []
    for key, value in own.items():
        note = notes.get(".".join((*path, key)), "")
        line = f"{as_key(key)} = {_value(value)}{f'  # {note}' if note else ''}"
        lines.append(f"# {line}" if key in inferred else line)
    for key, value in inner.items():
        lines += _table((*path, key), value, notes, known.get(key, {}))
    return lines


def as_key(name: str) -> str:
    """A name as a key of TOML."""
    bare = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    return name if bare else _value(name)


def _value(value: Any) -> str:
    """A value in TOML, whose strings, numbers and lists are those of JSON."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{as_key(k)} = {_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return as_json(value).replace("\x7f", "\\u007f")

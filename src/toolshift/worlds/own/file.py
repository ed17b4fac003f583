"""The file of a world of the user's own: YAML, read strictly, every fault with its line.

world: my_shop
tools: {python: my_tools}
tasks:
  - id: refund-1
    ask: Refund order 17.
    calls: [{name: get_order, arguments: {id: 17}}]
    check: {answer: "25"}
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from hashlib import blake2b
from pathlib import Path
from typing import Any

import yaml

from toolshift.core.documents import keep_times
from toolshift.core.errors import UsageError
from toolshift.core.files import read_given
from toolshift.core.message import REASONS
from toolshift.core.names import unknown
from toolshift.core.values import as_list, is_number
from toolshift.reading.answers.by_words import is_pattern
from toolshift.reading.answers.example import is_of_kind, says_right
from toolshift.reading.answers.kinds import KINDS

Place = tuple[str | int, ...]
SOURCES: dict[str, tuple[str, ...]] = {
    "python": ("reset",),
    "mcp": ("env", "cwd", "reset"),
    "mcp_url": ("headers",),
    "mcp_config": ("headers", "reset"),
    "openapi": ("base_url", "headers", "reset"),
    "recording": (),
}
"""What tools can come from, and what else may be said of each."""
ANY, LIKE, EXAMPLE = "any", "like", "example"
EPISODE_DIR = "{episode_dir}"
"""In the tools of a file: a fresh folder for every episode. Elsewhere: what agents see of it."""
SHOWN_DIR = "/episode"
MAX_PLACES = 300_000
"""Values that a file may have, those that aliases stand for included."""
REFERENCE = re.compile(
    r"\{\{\s*calls\[(\d{1,6})\](?:\[(\d{1,6})\])?\.([\w-](?:[\w.-]|\[\d{1,6}\])*)\s*\}\}"
)
"""`{{calls[0].order_id}}`, and `{{calls[0][2].order_id}}` for the third record of a list.

A list on the way takes a place too: `{{calls[0].orders[2].order_id}}`.
"""


@dataclass(frozen=True)
class Call:
    """A call of the good path; `turn` is the user's turn in which it is made, from 0."""

    name: str
    arguments: Mapping[str, Any]
    turn: int = 0


@dataclass(frozen=True)
class Check:
    """What makes an episode a pass; whatever is stated must hold.

    Attributes:
        answer: a text, number, date or regular expression that the last answer states; of several
            each.
        example: an answer that is right, for the proof of the scene.
        calls: places in `Given.calls` of those that must be made; None where none need be.
        ordered: they must be made in their order.
        state: `module:function` that is given the end state and says whether it is right.
        refuse: the reason for which the right end is a refusal.
        kind: the type that the answer is compared by; "" for the rule that reads English.
    """

    answer: str | tuple[str, ...] = ""
    example: str = ""
    calls: tuple[int, ...] | None = None
    ordered: bool = False
    state: str = ""
    refuse: str = ""
    kind: str = ""


@dataclass(frozen=True)
class Given:
    """A task as the file states it."""

    id: str
    kind: str
    asks: tuple[str, ...]
    paraphrases: tuple[str, ...]
    calls: tuple[Call, ...]
    check: Check
    place: Place
    calls_at: Place


@dataclass(frozen=True)
class WorldFile:
    """A file that has been read. `where` says a place in it, as "tasks.yaml:7: tasks[0].ask"."""

    path: Path
    name: str
    system: str
    tools: Mapping[str, Any]
    writes: tuple[str, ...] | None
    given: tuple[Given, ...]
    digest: str
    where: Callable[[Place], str] = field(repr=False, compare=False)

    @property
    def source(self) -> str:
        """What the tools come from; a key of `SOURCES`."""
        return next(key for key in self.tools if key in SOURCES)

    def near(self, place: Place, message: str) -> UsageError:
        """The error for a fault at a place."""
        return UsageError(f"{self.where(place)}: {message}")


def read_file(path: Path) -> WorldFile:
    """Reads the file of a world."""
    try:
        raw = read_given(path)
        text = raw.decode()
    except UnicodeDecodeError:
        raise UsageError(f"{path.name}: it is not text in UTF-8") from None
    except OSError as fault:
        raise UsageError(f"{path}: cannot read ({fault.strerror})") from None
    content, lines = _parse(text, path.name)
    return _Reader(path, content, lines, blake2b(raw, digest_size=4).hexdigest()).read()


def _parse(text: str, name: str) -> tuple[Any, dict[Place, int]]:
    """The content, and the line of every place in it."""
    try:
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        lines = _lines(root, name)
        _keep_answers(root)
        keep_times(root)
        content = None if root is None else loader.construct_document(root)
    except yaml.YAMLError as fault:
        mark = getattr(fault, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        raise UsageError(f"{name}{line}: not YAML: {getattr(fault, 'problem', fault)}") from None
    except RecursionError:
        raise UsageError(f"{name}: it is nested too deeply") from None
    except (ValueError, TypeError, OverflowError) as fault:  # a date of 31 February, a huge number
        raise UsageError(f"{name}: not YAML: {fault}") from None
    return content, lines


def _lines(root: Any, name: str) -> dict[Place, int]:
    """The line of every place. Comes before the content: a few aliases can stand for so many
    values that no memory would hold them."""
    lines: dict[Place, int] = {}

    def walk(node: Any, place: Place, depth: int = 0) -> None:
        lines[place] = node.start_mark.line + 1
        if len(lines) > MAX_PLACES:
            raise UsageError(f"{name}: its aliases stand for more than {MAX_PLACES:,} values")
        if depth > 40:
            return
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                walk(value, (*place, str(key.value)), depth + 1)
                lines[*place, str(key.value)] = key.start_mark.line + 1
        elif isinstance(node, yaml.SequenceNode):
            for number, value in enumerate(node.value):
                walk(value, (*place, number), depth + 1)

    if root is not None:
        walk(root, ())
    return lines


_STRING, _NULL = "tag:yaml.org,2002:str", "tag:yaml.org,2002:null"


def _keep_answers(root: Any) -> None:
    """Answers stay as they are written: YAML would make 9:30 the number 570, and yes a boolean."""
    for tasks in _under(root, "tasks"):
        for task in tasks.value if isinstance(tasks, yaml.SequenceNode) else ():
            for check in _under(task, "check"):
                for node in (*_under(check, "answer"), *_under(check, "example")):
                    for leaf in node.value if isinstance(node, yaml.SequenceNode) else (node,):
                        if isinstance(leaf, yaml.ScalarNode) and leaf.tag != _NULL:
                            leaf.tag = _STRING


def _under(node: Any, key: str) -> list[Any]:
    """The nodes under a key of a table; none where it is no table."""
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    return [value for name, value in pairs if name.value == key]


class _Reader:
    """Reads the parts of one file."""

    def __init__(self, path: Path, content: Any, lines: dict[Place, int], digest: str) -> None:
        self.path, self.content, self.lines, self.digest = path, content, lines, digest

    def where(self, place: Place) -> str:
        """The file, the line and the field of a place, or of the nearest that has a line."""
        near = place
        while near and near not in self.lines:
            near = near[:-1]
        said = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
        line = f":{self.lines[near]}" if near in self.lines else ""
        return f"{self.path.name}{line}: {said.lstrip('.')}".removesuffix(": ")

    def wrong(self, place: Place, message: str) -> UsageError:
        return UsageError(f"{self.where(place)}: {message}")

    def read(self) -> WorldFile:
        known = ("world", "tools", "system", "writes", "tasks")
        root = self._table(self.content, (), known)
        name = self._text(root, "world", ())
        if not re.fullmatch(r"[A-Za-z][\w-]*", name):
            raise self.wrong(("world",), f"{name!r} is no name: letters, digits, _ and -")
        writes: tuple[str, ...] | None = None if "writes" not in root else ()
        if root.get("writes"):
            writes = self._texts(root["writes"], ("writes",))
        tasks = root.get("tasks")
        if not isinstance(tasks, list) or not tasks:
            raise self.wrong(("tasks",), "a world needs a list of at least one task")
        given = tuple(self._task(task, ("tasks", place)) for place, task in enumerate(tasks))
        for task in given:
            if sum(other.id == task.id for other in given) > 1:
                raise self.wrong((*task.place, "id"), f"two tasks have the id {task.id!r}")
        system = self._text(root, "system", (), default=SYSTEM)
        tools = self._tools(root.get("tools"))
        return WorldFile(self.path, name, system, tools, writes, given, self.digest, self.where)

    def _tools(self, tools: Any) -> Mapping[str, Any]:
        place: Place = ("tools",)
        kinds = [key for key in tools if key in SOURCES] if isinstance(tools, Mapping) else []
        if isinstance(tools, Mapping) and not kinds:
            for key in tools:
                raise self.wrong((*place, key), unknown("source of tools", str(key), SOURCES))
        if len(kinds) != 1:
            raise self.wrong(place, f"say where the tools come from, one of {', '.join(SOURCES)}")
        found = self._table(tools, place, (kinds[0], *SOURCES[kinds[0]]))
        if kinds[0] == "python":
            self._texts(found["python"], (*place, "python"))
        else:
            self._text(found, kinds[0], place)
        for key in ("headers", "env"):
            if not isinstance(found.get(key, {}), Mapping):
                raise self.wrong((*place, key), f"{key} are a table of names and values")
        self._text(found, "cwd", place, default="")
        return found

    def _task(self, task: Any, place: Place) -> Given:
        known = ("id", "kind", "ask", "paraphrases", "calls", "check")
        table = self._table(task, place, known)
        name = self._text(table, "id", place)
        kind = self._text(table, "kind", place, default="task")
        if "/" in kind or not kind.strip():
            raise self.wrong((*place, "kind"), f"{kind!r} is no name for a kind of task")
        asks = self._texts(table.get("ask"), (*place, "ask"))
        said = (
            self._texts(table["paraphrases"], (*place, "paraphrases"))
            if table.get("paraphrases")
            else ()
        )
        calls = self._calls(table.get("calls") or [], (*place, "calls"), len(asks))
        check = self._check(table.get("check"), (*place, "check"), calls, len(asks))
        at: Place = (*place, "calls")
        if check.calls is not None and not calls:
            at = (*place, "check", "calls")
            calls = self._calls(table["check"]["calls"], at, len(asks))
        return Given(name, kind, asks, said, calls, check, place, at)

    def _calls(
        self, calls: Any, place: Place, turns: int, before: int | None = None
    ) -> tuple[Call, ...]:
        """Calls, each of which can refer to those before it, or to `before` of another list."""
        if not isinstance(calls, list):
            raise self.wrong(place, "expected calls are a list of {name, arguments}")
        return tuple(
            self._call(call, (*place, n), n if before is None else before, turns)
            for n, call in enumerate(calls)
        )

    def _call(self, call: Any, place: Place, number: int, turns: int) -> Call:
        table = self._table(call, place, ("name", "arguments", "turn"))
        name = self._text(table, "name", place)
        arguments = table.get("arguments") or {}
        if not isinstance(arguments, Mapping) or not all(isinstance(k, str) for k in arguments):
            raise self.wrong((*place, "arguments"), "arguments are a table of names and values")
        arguments = swapped(arguments, EPISODE_DIR, SHOWN_DIR)
        for key, value in arguments.items():
            self._argument(value, (*place, "arguments", key), number)
        turn = table.get("turn", 1)
        if not isinstance(turn, int) or not 1 <= turn <= turns:
            raise self.wrong((*place, "turn"), f"the turn is a number from 1 to {turns}")
        return Call(name, arguments, turn - 1)

    def _argument(self, value: Any, place: Place, number: int) -> None:
        if isinstance(value, Mapping) and not is_free(value):
            for key, inner in value.items():
                self._argument(inner, (*place, str(key)), number)
        for spot, inner in enumerate(as_list(value)):
            self._argument(inner, (*place, spot), number)
        if isinstance(value, str) and "{{" in value:
            found = REFERENCE.findall(value)
            if not found:
                ways = "{{calls[0].some_key}}, {{calls[0].some_list[0].some_key}}"
                raise self.wrong(place, f"{value!r} refers to nothing; a reference is {ways}")
            for each in found:
                if int(each[0]) >= number:
                    raise self.wrong(place, f"call {number} can refer to earlier calls only")
        if is_free(value) and LIKE in value:
            self._pattern(value[LIKE], (*place, LIKE))
            if re.search(value[LIKE], str(value[EXAMPLE])) is None:
                raise self.wrong(place, "the example is not like the pattern")

    def _check(self, check: Any, place: Place, calls: tuple[Call, ...], turns: int) -> Check:
        if check is None and calls:
            return Check(calls=tuple(range(len(calls))))
        if check is None:
            raise self.wrong(place[:-1], "the task has neither a check nor expected calls")
        known = ("answer", "as", "example", "calls", "ordered", "state", "refuse")
        table = self._table(check, place, known)
        if not set(table) - {"as", "example", "ordered"}:
            raise self.wrong(place, "say what is checked: answer, calls, state or refuse")
        kind = self._kind(table, place)
        answer = self._answer(table, place, kind)
        example = self._text(table, "example", place, default="")
        if example and not says_right(example, answer, kind):
            raise self.wrong(
                (*place, "example"), f"{example!r} does not match the answer {answer!r}"
            )
        state = self._text(table, "state", place, default="")
        if state and not re.fullmatch(r"[\w.]+:[\w.]+", state):
            raise self.wrong((*place, "state"), f"{state!r} is not module:function")
        refuse = self._text(table, "refuse", place, default="")
        if refuse and refuse not in REASONS:
            raise self.wrong((*place, "refuse"), unknown("reason", refuse, REASONS))
        if refuse == "not_found" and not calls:
            why = "not_found needs the lookup that finds nothing, under `calls`"
            raise self.wrong((*place, "refuse"), why)
        if refuse and (answer or state):
            raise self.wrong(place, "where a refusal is right there is no answer and no new state")
        ordered = table.get("ordered", False)
        if not isinstance(ordered, bool):
            raise self.wrong((*place, "ordered"), "ordered is true or false")
        wanted = (
            self._wanted(table["calls"], (*place, "calls"), calls, turns)
            if ("calls" in table)
            else None
        )
        return Check(answer, example, wanted, ordered, state, refuse, kind)

    def _kind(self, table: Mapping[str, Any], place: Place) -> str:
        """The type by which the answer is compared."""
        if table.get("as") is None:
            return ""
        kind, spot = table["as"], (*place, "as")
        if kind not in KINDS:
            raise self.wrong(spot, unknown("type of answer", str(kind), KINDS))
        if not table.get("answer"):
            raise self.wrong(spot, "it is the type of an answer, and no answer is given")
        return str(kind)

    def _answer(self, table: Mapping[str, Any], place: Place, kind: str) -> str | tuple[str, ...]:
        """What the last answer has to say: one text, or a list of which it has to say each."""
        if "answer" not in table:
            return ""
        given, spot = table["answer"], (*place, "answer")
        items = given if isinstance(given, list) else [given]
        for item in items:
            if not isinstance(item, str) or not item.strip():
                why = "the answer is a text, a number, a date, or a list of such"
                raise self.wrong(spot, f"{why}, not {item!r}")
        if not items:
            raise self.wrong(spot, "a list of answers has at least one; leave it out to ask none")
        told = tuple(item.replace(EPISODE_DIR, SHOWN_DIR) for item in items)
        for item in told:
            if kind == "regex" or (not kind and is_pattern(item)):
                self._pattern(item, spot)
            elif kind and not is_of_kind(item, kind):
                raise self.wrong(spot, f"{item!r} is no {kind.replace('_', ' ')}")
        return told if isinstance(given, list) else told[0]

    def _named(self, names: list[str], place: Place, calls: tuple[Call, ...]) -> tuple[int, ...]:
        """The expected calls of the tools that a list names."""
        known = list(dict.fromkeys(call.name for call in calls))
        for number, name in enumerate(names):
            if name not in known:
                raise self.wrong((*place, number), unknown("expected call", name, known))
        return tuple(n for n, call in enumerate(calls) if call.name in names)

    def _wanted(
        self, listed: Any, place: Place, calls: tuple[Call, ...], turns: int
    ) -> tuple[int, ...]:
        if listed is True and calls:
            return tuple(range(len(calls)))
        if not calls:
            return tuple(range(len(self._calls(listed, place, turns))))
        if isinstance(listed, list) and listed and all(isinstance(one, str) for one in listed):
            return self._named(listed, place, calls)
        found: list[int] = []
        for number, call in enumerate(self._calls(listed, place, turns, len(calls))):
            left = (n for n, own in enumerate(calls) if n not in found and own == call)
            spot = next(left, None)
            if spot is None:
                more = " so many times" if call in calls else ""
                why = f"it is not among the task's own `calls`{more}"
                raise self.wrong((*place, number), why)
            found.append(spot)
        return tuple(found)

    # -- small parts ---------------------------------------------------------------------------

    def _pattern(self, pattern: Any, place: Place) -> None:
        try:
            re.compile(pattern)
        except (re.error, TypeError) as fault:
            why = (
                f"{pattern!r} is no regular expression: {fault}: put \\ before a sign that is text"
            )
            raise self.wrong(place, why) from None

    def _table(self, value: Any, place: Place, known: Iterable[str]) -> Mapping[str, Any]:
        names = list(known)
        if not isinstance(value, Mapping):
            raise self.wrong(place, f"a table with {', '.join(names)} is wanted here")
        for key in value:
            if key not in names:
                near = get_close_matches(str(key), names, n=1)
                offer = f"did you mean {near[0]}?" if near else f"there are: {', '.join(names)}"
                raise self.wrong((*place, str(key)), f"unknown field {key!r}: {offer}")
        return value

    def _text(
        self, table: Mapping[str, Any], key: str, place: Place, default: str | None = None
    ) -> str:
        value = table.get(key, default)
        if value is None:
            raise self.wrong(place, f"the field {key!r} is missing")
        if is_number(value):
            value = str(value)
        if not isinstance(value, str):
            raise self.wrong((*place, key), f"{key} is a text, not {type(value).__name__}")
        return value.replace(EPISODE_DIR, SHOWN_DIR)

    def _texts(self, value: Any, place: Place) -> tuple[str, ...]:
        listed = [value] if isinstance(value, str) else value
        if not isinstance(listed, list) or not listed:
            raise self.wrong(place, "a text, or a list of texts, is wanted here")
        for number, one in enumerate(listed):
            if not isinstance(one, str) or not one.strip():
                raise self.wrong((*place, number), f"{one!r} is no text")
        return tuple(one.replace(EPISODE_DIR, SHOWN_DIR) for one in listed)


SYSTEM = "You are a helpful assistant. Use the tools to do what the user asks."


def swapped(data: Any, old: str, new: str) -> Any:
    """JSON data with a path written in another way, wherever it stands in a text."""
    if isinstance(data, str):
        return re.sub(rf"(?<![\w.]){re.escape(old)}(?![\w-])", lambda _: new, data)
    if isinstance(data, Mapping):
        return {swapped(k, old, new): swapped(value, old, new) for k, value in data.items()}
    return [swapped(value, old, new) for value in data] if isinstance(data, list) else data


def keys_of(path: str) -> tuple[str | int, ...]:
    """The keys and the places of lists of a reference's path: `orders[2].id`, or `orders.2.id`."""
    found = re.findall(r"\[(\d+)\]|([^.\[\]]+)", path)
    return tuple(int(place) if place else key for place, key in found)


def path_of(keys: Iterable[str | int]) -> str:
    """The path by which a reference names a value; `keys_of` reads it back."""
    parts = (f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)
    return "".join(parts).removeprefix(".")


def value_at(data: Any, keys: Iterable[str | int]) -> Any:
    """The value that lies below some keys and places; None where they lead nowhere."""
    for key in keys:
        if isinstance(data, list) and str(key).isdecimal():
            data = data[int(key)] if int(key) < len(data) else None
        else:
            data = data.get(str(key)) if isinstance(data, dict) else None
    return data


def is_free(value: Any) -> bool:
    """Whether an expected argument leaves the value open.

    `{any: EXAMPLE}` takes every value, `{like: REGEX, example: EXAMPLE}` those that match.
    """
    return isinstance(value, Mapping) and set(value) in ({ANY}, {LIKE, EXAMPLE})

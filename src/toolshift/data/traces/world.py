"""A world of tasks out of recorded conversations: what users asked, the calls, and what came back.

    made = make_world(recorded, tools, writes=("refund_order",))
    made.tasks, made.head, made.lines, made.left_out, made.masked

A task is a request with the calls that served it; the check is that they are made, and that the
answer says the one value of the results that the recorded answer said. Left out, counted by reason,
is what cannot be checked or replayed: an argument that the agent made up, a call without a result,
one tool that answered the same call in two ways, an end in a failure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml

from toolshift.core.errors import UsageError
from toolshift.core.names import unknown
from toolshift.core.tool import JSON
from toolshift.core.values import as_json, as_mapping, as_text
from toolshift.data.traces.masking import Mask
from toolshift.data.traces.recorded import Made, Recorded
from toolshift.episode.draw import make_scene
from toolshift.interop.mcp_results import UPSTREAM
from toolshift.reading.answers.by_words import is_pattern
from toolshift.runs.check import of_given
from toolshift.worlds.own.file import SYSTEM, read_file
from toolshift.worlds.own.recording import FORMAT, Head, Line, Write, as_write
from toolshift.worlds.own.spare import states, values_at
from toolshift.worlds.own.world import OwnWorld

MOST_OF_A_KIND = 20
_LONGEST_KIND = 60
_LONGEST_ANSWER = 60


_AT_PLACE = re.compile(r" in one@\w+/.*? clean(?=:)")
"""Where a verdict says that a task fails, which is another place for each."""


class Unfit(Exception):
    """A conversation makes no task; the message is the reason, fit to be counted."""


class MadeWorld(msgspec.Struct, frozen=True):
    """A world that was made of conversations.

    Attributes:
        tasks: as a file of tasks has them.
        system: the system message; "" where conversations had different ones.
        head: the tools.
        lines: what they answered.
        left_out: how many conversations made no task, by reason.
        masked: how many different things were masked, by kind.
    """

    tasks: tuple[dict[str, Any], ...]
    system: str
    head: Head
    lines: tuple[Line, ...]
    left_out: dict[str, int]
    masked: dict[str, int]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of its tasks."""
        return tuple(dict.fromkeys(task["kind"] for task in self.tasks))


class _Task(msgspec.Struct, frozen=True):
    entry: dict[str, Any]
    lines: tuple[Line, ...]


def make_world(
    recorded: Sequence[Recorded],
    folder: Path,
    tools: Iterable[Mapping[str, Any]] = (),
    writes: Sequence[str] | None = None,
    most: int = MOST_OF_A_KIND,
) -> MadeWorld:
    """Makes tasks and a recording of conversations; `tools` count before the tools in these.

    Each task is tried in `folder`, where nothing need stay.
    """
    mask = Mask()
    listed = {str(tool["name"]): dict(tool) for each in recorded for tool in each.tools}
    listed |= {str(tool["name"]): dict(tool) for tool in tools}
    for each in recorded:
        mask.learn([*each.asks, each.system, each.answer])
        mask.learn([[made.arguments, made.result] for made in each.calls])
    mask.learn(list(listed.values()), "")
    masked = [_masked(each, mask) for each in recorded]
    systems = {each.system for each in masked if each.calls}
    system = systems.pop() if len(systems) == 1 else ""
    head = Head(FORMAT, [mask.apply(t) for t in listed.values()], list(writes) if writes else None)
    for name in writes or ():
        if name not in listed:
            raise UsageError(f"--writes: {unknown('tool', name, listed)}")
    maker = _Maker(head, system, folder, most)
    for each in masked:
        maker.add(each)
    used = {line.name for task in maker.tasks for line in task.lines}
    shown = {name for each in masked for name in _names(each)} | used
    kept = [tool for tool in head.tools if tool["name"] in shown] if shown else head.tools
    lines = tuple(line for task in maker.tasks for line in task.lines)
    entries = tuple(task.entry for task in maker.tasks)
    head = msgspec.structs.replace(head, tools=kept)
    return MadeWorld(entries, system, head, lines, dict(maker.left_out), dict(mask.counts))


def _names(recorded: Recorded) -> list[str]:
    return [str(tool["name"]) for tool in recorded.tools]


def _masked(recorded: Recorded, mask: Mask) -> Recorded:
    calls = tuple(
        msgspec.structs.replace(
            made, arguments=mask.apply(made.arguments), result=mask.apply(made.result)
        )
        for made in recorded.calls
    )
    said = tuple(
        msgspec.structs.replace(each, text=mask.apply(each.text))
        for each in recorded.said
        if each.role == "system"
    )
    asks = tuple(mask.apply(list(recorded.asks)))
    answer = mask.apply(recorded.answer)
    return msgspec.structs.replace(recorded, said=said, asks=asks, calls=calls, answer=answer)


class _Maker:
    """Makes tasks one by one, and counts why some conversations make none."""

    def __init__(self, head: Head, system: str, folder: Path, most: int) -> None:
        self.head, self.system, self.folder, self.most = head, system, folder, most
        self.tools = {str(tool["name"]): tool for tool in head.tools}
        named = (
            head.writes
            if head.writes is not None
            else [n for n, t in self.tools.items() if _writes(t)]
        )
        self.writes = frozenset(named)
        self.tasks: list[_Task] = []
        self.left_out: Counter[str] = Counter()
        self._known: set[bytes] = set()
        self._kinds: Counter[str] = Counter()

    def add(self, recorded: Recorded) -> None:
        """Makes a task of a conversation, if it makes one."""
        try:
            self.tasks.append(self._task(recorded))
        except Unfit as reason:
            self.left_out[str(reason)] += 1

    def _task(self, recorded: Recorded) -> _Task:
        calls = _expected(recorded)
        for made in calls:
            self._check_call(made, recorded)
        kind = _kind_of(calls)
        mark = JSON.encode((recorded.asks, [(m.tool, m.arguments) for m in calls]))
        if mark in self._known:
            raise Unfit("it is the same request with the same calls as another")
        if self._kinds[kind] >= self.most:
            raise Unfit(f"there are {self.most} tasks of its kind already")
        self._check_made_up(calls, recorded)
        entry: dict[str, Any] = {"id": f"{_slug(kind)}-{self._kinds[kind] + 1}", "kind": kind}
        asks = list(recorded.asks)
        entry["ask"] = asks[0] if len(asks) == 1 else asks
        entry["calls"] = [_call_entry(made, len(asks)) for made in calls]
        lines = self._lines(entry["id"], recorded)
        told = _told(calls, recorded)
        needed = self._needed(calls, told)
        wanted: Any = True if len(needed) == len(calls) else [entry["calls"][n] for n in needed]
        task = self._sound(entry, {"calls": wanted}, told, lines)
        self._known.add(mark)
        self._kinds[kind] += 1
        return task

    def _check_call(self, made: Made, recorded: Recorded) -> None:
        if made.tool not in self.tools:
            raise Unfit(f"{made.tool} has no definition in the trace: give its list by --tools")
        if made.arguments is None:
            raise Unfit(f"the arguments of {made.tool} are not recorded")
        if not made.answered:
            raise Unfit(f"the result of {made.tool} is not recorded")
        if "{{" in as_json(made.arguments):
            raise Unfit(f"an argument of {made.tool} holds {{{{, the sign of a reference")

    def _check_made_up(self, calls: Sequence[Made], recorded: Recorded) -> None:
        """Checks that each argument is one that an agent could know."""
        heard: list[Any] = []
        for made in calls:
            texts = [*recorded.asks[: made.turn + 1], self.system]
            schema = self.tools[made.tool].get("inputSchema") or {}
            known = schema.get("properties") or {}
            for key, value in (made.arguments or {}).items():
                for leaf in _leaves(value):
                    if not _is_given(leaf, texts, heard, known.get(key)):
                        raise Unfit(f"the agent made up {made.tool}.{key}, so no other can know it")
            heard.append(made.result)

    def _lines(self, task: str, recorded: Recorded) -> tuple[Line, ...]:
        """What was answered, each after the writes before it."""
        found: dict[tuple[tuple[Write, ...], Write], Line] = {}
        after: tuple[Write, ...] = ()
        for made in recorded.calls:
            if made.arguments is None or not made.answered or made.tool not in self.tools:
                continue
            call = as_write(made.tool, made.arguments)
            data = _failure(made.result) if made.failed else _data(made.result)
            line = Line(task, after, made.tool, made.arguments, not made.failed, data)
            before = found.setdefault((after, call), line)
            if before != line:
                raise Unfit(
                    f"{made.tool} answered the same call in two ways: name the tools that write by "
                    "--writes"
                )
            if made.tool in self.writes and not made.failed:
                after = (*after, call)
        return tuple(found.values())

    def _needed(self, calls: Sequence[Made], told: Sequence[tuple[int, str]]) -> list[int]:
        """The calls that a pass needs: writes, the last, and those that the answer rests on."""
        said = {place for place, _ in told}
        last = len(calls) - 1
        return [
            place
            for place, made in enumerate(calls)
            if place == last or place in said or made.tool in self.writes
        ]

    def _sound(
        self,
        entry: dict[str, Any],
        check: dict[str, Any],
        told: Sequence[tuple[int, str]],
        lines: tuple[Line, ...],
    ) -> _Task:
        """The task as its world takes it: with the answer, or else without."""
        values = list(dict.fromkeys(value for _, value in told))
        tries = [{**entry, "check": check}]
        if len(values) == 1:
            answer = re.escape(values[0]) if is_pattern(values[0]) else values[0]
            tries.insert(0, {**entry, "check": {**check, "answer": answer}})
        why = ""
        for each in tries:
            try:
                self._try(each, lines)
            except UsageError as fault:
                why = re.sub(r"^[\w.-]+:\d+: [\w\[\].]*:? ?", "", str(fault))
                continue
            return _Task(each, lines)
        raise Unfit(f"it makes no sound task: {why}")

    def _try(self, entry: dict[str, Any], lines: tuple[Line, ...]) -> None:
        path = self.folder / "one.yaml"
        recording = self.folder / "one.jsonl"
        recording.write_bytes(recorded_bytes(self.head, lines))
        path.write_text(tasks_text("one", self.system, [entry], recording.name), encoding="utf-8")
        world = OwnWorld(read_file(path))
        for verdict in of_given(world.name, [make_scene(world, entry["kind"], 0)]):
            if verdict.state == "fail":
                raise UsageError(_AT_PLACE.sub("", verdict.detail))


def _writes(tool: Mapping[str, Any]) -> bool:
    return (tool.get("annotations") or {}).get("readOnlyHint") is False


def _expected(recorded: Recorded) -> list[Made]:
    """The calls that served the request: those that succeeded, of the same read once."""
    if not any(ask.strip() for ask in recorded.asks):
        raise Unfit("no request of a user is recorded")
    if not recorded.calls:
        raise Unfit("no tool is called")
    if recorded.calls[-1].failed:
        raise Unfit("it ends in a call that failed, so nothing says what would be right")
    found: list[Made] = []
    for made in recorded.calls:
        if not made.failed and made not in found:
            found.append(made)
    return found


def _kind_of(calls: Sequence[Made]) -> str:
    """The tools in their order."""
    name = "+".join(made.tool.replace("/", ".") for made in calls)
    return name if len(name) <= _LONGEST_KIND else f"{name[:_LONGEST_KIND]}...{len(calls)}"


def _slug(kind: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]+", "-", kind).strip("-").lower() or "task"


def _call_entry(made: Made, turns: int) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": made.tool, "arguments": made.arguments}
    return {**entry, "turn": made.turn + 1} if turns > 1 else entry


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return [leaf for inner in value.values() for leaf in _leaves(inner)]
    if isinstance(value, list):
        return [leaf for inner in value for leaf in _leaves(inner)]
    return [value]


def _is_given(leaf: Any, texts: Sequence[str], heard: Sequence[Any], schema: Any) -> bool:
    """Whether a value stands in what was said or found, or is a choice that the tool names."""
    if leaf is None or isinstance(leaf, bool) or leaf == "":
        return True
    if any(states(text, leaf) for text in texts):
        return True
    told = as_mapping(schema)
    items = told.get("items") if isinstance(told.get("items"), Mapping) else {}
    for each in (told, items or {}):
        if leaf in (each.get("enum") or ()) or leaf in (each.get("const"), each.get("default")):
            return True
    return any(
        leaf == value and type(leaf) is type(value)
        for result in heard
        for _, _, value in values_at(result)
    )


def _told(calls: Sequence[Made], recorded: Recorded) -> list[tuple[int, str]]:
    """The values of results that the answer says and no request does, with their calls."""
    found = []
    for place, made in enumerate(calls):
        for _, _, value in values_at(made.result):
            if isinstance(value, bool) or not isinstance(value, str | int | float):
                continue
            said = str(value)
            if not 1 < len(said) <= _LONGEST_ANSWER or not states(recorded.answer, value):
                continue
            if not any(states(ask, value) for ask in recorded.asks):
                found.append((place, said))
    return found


def _data(result: Any) -> Any:
    """A result as worlds of recorded tools have it: a record, records, or a text."""
    if isinstance(result, dict):
        return result
    if isinstance(result, list) and result and all(isinstance(each, dict) for each in result):
        return result
    if result is None:
        return ""
    return as_text(result)


def _failure(result: Any) -> dict[str, Any]:
    """A failure in the tool's own words, as agents of recorded tools are shown it."""
    said = as_text(result)
    return {"error": {"code": UPSTREAM, "message": said or "The call failed."}}


# -- as files --------------------------------------------------------------------------------------


def recorded_bytes(head: Head, lines: Iterable[Line]) -> bytes:
    """The recording as a file."""
    return b"".join(JSON.encode(each) + b"\n" for each in (head, *lines))


class _Dumper(yaml.SafeDumper):
    """Writes what stands in two places twice, which people read more easily than a reference."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def tasks_text(name: str, system: str, tasks: Sequence[Mapping[str, Any]], recording: str) -> str:
    """The tasks as a file."""
    told: dict[str, Any] = {"world": name, "tools": {"recording": recording}}
    if system and system != SYSTEM:
        told["system"] = system
    return yaml.dump(
        {**told, "tasks": [dict(task) for task in tasks]},
        Dumper=_Dumper,
        sort_keys=False, allow_unicode=True, width=100,
    )  # fmt: skip

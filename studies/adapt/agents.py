"""Agents that know a task by heart and see only messages and tools, and the baselines around them.

A memory is made from the sound calls of the clean scene: each argument is either what it was, or
the place in an earlier result where it stood. Nothing here sees a scene, a shift or a pool.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from toolshift.core.calls import ToolCall
from toolshift.core.message import ASK_USER, FINAL_ANSWER, PROTOCOL_NAMES, REFUSE, Reply, Turn
from toolshift.core.step import Step
from toolshift.shifts.release.match import alike_texts

_LESSON = re.compile(r"- ([\w.-]+)\([^)]*\) failed \(.*\); ([\w.-]+)\([^)]*\) worked")
_FAILED = re.compile(r"- ([\w.-]+) failed")


@dataclass(frozen=True)
class Place:
    """Where a value stood: in which result, and at which keys."""

    call: int
    path: tuple[Any, ...]


@dataclass(frozen=True)
class Remembered:
    """One step of a task: its kind, the tool, and its arguments, values or places."""

    kind: str
    name: str
    arguments: dict[str, Any] = field(default_factory=dict)


def memory_of(steps: Sequence[Step], reads: bool) -> list[Remembered]:
    """The memory of a task.

    Args:
        steps: of a sound agent.
        reads: whether values are remembered by their place in results, where they have one.

    Returns:
        What is done, in order.
    """
    seen: dict[str, Place] = {}
    memory: list[Remembered] = []
    calls = 0
    for step in steps:
        if step.kind == "call":
            arguments = {key: seen.get(repr(value), value) for key, value in step.given.items()}
            memory.append(Remembered("call", step.name, arguments))
            if reads and step.ok:
                for path, value in _leaves(_data(step.text)):
                    seen.setdefault(repr(value), Place(calls, path))
            calls += 1
        elif step.kind == "answer":
            memory.append(
                Remembered("answer", "", {"answer": seen.get(repr(step.said), step.said)})
            )
        elif step.kind == "ask":
            memory.append(Remembered("ask", "", {"question": step.said}))
        elif step.kind == "refuse":
            memory.append(Remembered("refuse", step.name))
    return memory


def _data(text: str) -> Any:
    try:
        return json.loads(text.partition("\nNotice: ")[0])
    except ValueError:
        return None


def _leaves(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[tuple[Any, ...], Any]]:
    if isinstance(data, dict):
        return [leaf for key, value in data.items() for leaf in _leaves(value, (*path, key))]
    if isinstance(data, list):
        return [leaf for n, value in enumerate(data) for leaf in _leaves(value, (*path, n))]
    return [(path, data)]


class ByHeart:
    """Does what it remembers.

    Args:
        name: of the agent.
        memory: of the task.
        after_error: "stop" gives up, "loop" makes the call again, "heed" follows a tool that an
            error suggests and stops at others.
    """

    def __init__(self, name: str, memory: list[Remembered], after_error: str = "stop") -> None:
        self.name, self.memory, self.after_error = name, memory, after_error
        self.at = 0
        self.results: list[Any] = []
        self.open = False
        self.said: Reply | None = None
        self.ended: Reply | None = None
        self.meant: list[str] = []

    def reply(self, turn: Turn) -> Reply:
        """The next step of the memory; the same ending again where it is asked for evidence."""
        last = turn.messages[-1]
        if self.ended is not None and _asks_for_evidence(last):
            return self.ended
        if self.open:
            text = str(last.get("content") or "")
            data = _data(text)
            if last["role"] == "user":  # told that a call fails again and again
                return self._give_up(text)
            if isinstance(data, dict) and "error" in data:
                return self._failed(text)
            self.results.append(data)
            self.open = False
            self.at += 1
        if self.at >= len(self.memory):
            return self._give_up("")
        step = self.memory[self.at]
        try:
            arguments = {key: self._value(value) for key, value in step.arguments.items()}
        except (LookupError, TypeError):
            return self._give_up("")
        return self._say(step, arguments)

    def _say(self, step: Remembered, arguments: dict[str, Any]) -> Reply:
        protocol = {"answer": FINAL_ANSWER, "ask": ASK_USER, "refuse": REFUSE}
        if step.kind in protocol:
            self.at += 1
            given = {"reason": step.name} if step.kind == "refuse" else arguments
            self.ended = Reply(calls=(ToolCall(protocol[step.kind], given),))
            return self.ended
        self.open = True
        self.meant.append(step.name)
        self.said = Reply(calls=(ToolCall(step.name, arguments),))
        return self.said

    def _value(self, value: Any) -> Any:
        if not isinstance(value, Place):
            return value
        found = self.results[value.call]
        for key in value.path:
            found = found[key]
        if found is None:
            raise LookupError("nothing stands there")
        return found

    def _failed(self, text: str) -> Reply:
        if self.after_error == "loop" and self.said is not None:
            self.meant.append(self.memory[self.at].name)
            return self.said
        hint = re.search(r"Did you mean ([\w-]+)\?", text)
        if self.after_error == "heed" and hint and self.said is not None:
            (call,) = self.said.calls
            self.meant.append(self.memory[self.at].name)
            self.said = Reply(calls=(ToolCall(hint[1], call.arguments),))  # type: ignore[union-attr]
            return self.said
        return self._give_up(text)

    def _give_up(self, text: str) -> Reply:
        gone = "unknown_tool" in text or "no tool of this name" in text or "Unknown tool" in text
        reason = "tool_unavailable" if gone else "service_failure"
        self.ended = Reply(calls=(ToolCall(REFUSE, {"reason": reason}),))
        return self.ended


class Explores(ByHeart):
    """Tries another tool once where a call fails, and heeds what it is told of earlier failures."""

    def __init__(self, memory: Any, known: dict[str, str]) -> None:
        super().__init__("explores", memory)
        self.known = known
        self.tried: set[str] = set()
        self.patience = 1
        self.turn: Turn | None = None

    def reply(self, turn: Turn) -> Reply:
        """The next step, with the tools and the system message in view."""
        self.turn = turn
        return super().reply(turn)

    def _say(self, step: Any, arguments: dict[str, Any]) -> Reply:
        reply = super()._say(step, arguments)
        (call,) = reply.calls
        told = str(self.turn.messages[0]["content"]) if self.turn else ""
        instead = {was: now for was, now in _LESSON.findall(told) if was != now}
        if call.name in instead:
            self.meant.append(instead[call.name])
            reply = self.said = Reply(calls=(ToolCall(instead[call.name], arguments),))
        return reply

    def _failed(self, text: str) -> Reply:
        if not self.patience or self.said is None or self.turn is None:
            return self._give_up(text)
        self.patience -= 1
        (call,) = self.said.calls
        told = str(self.turn.messages[0]["content"])
        self.tried |= {call.name, *_FAILED.findall(told)}
        wanted = self.known.get(self.memory[self.at].name, "")
        shown = {t["function"]["name"]: t["function"]["description"] for t in self.turn.tools}
        left = [one for one in shown if one not in PROTOCOL_NAMES and one not in self.tried]
        if not left:
            return self._give_up(text)
        best = max(left, key=lambda one: alike_texts(wanted, shown[one]))
        self.meant.append(best)
        self.said = Reply(calls=(ToolCall(best, call.arguments),))  # type: ignore[union-attr]
        return self.said


def _asks_for_evidence(message: dict[str, Any]) -> bool:
    return message["role"] == "user" and str(message["content"]).startswith("Before you ")


class Script:
    """Makes the sound calls of a scene, whatever comes back: nothing may disturb it."""

    def __init__(self, name: str, memory: list[Remembered]) -> None:
        self.name, self.left = name, list(memory)
        self.said: Reply | None = None
        self.meant: list[str] = []

    def reply(self, turn: Turn) -> Reply:
        """The next call; the same again where it is asked for evidence."""
        if self.said is None or not _asks_for_evidence(turn.messages[-1]):
            self.said = self._next()
        return self.said

    def _next(self) -> Reply:
        if not self.left:
            return Reply(calls=(ToolCall(REFUSE, {"reason": "service_failure"}),))
        step = self.left.pop(0)
        self.meant.append(step.name)
        name = {"answer": FINAL_ANSWER, "ask": ASK_USER, "refuse": REFUSE}.get(step.kind, step.name)
        given = {"reason": step.name} if step.kind == "refuse" else step.arguments
        return Reply(calls=(ToolCall(name, given),))


class FuzzyRepair:
    """A baseline: the likest name, of a tool and of a parameter, as agents ship it today."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.name = inner, f"{inner.name}+fuzzy"

    def reply(self, turn: Turn) -> Reply:
        """The reply with its names repaired."""
        tools = {t["function"]["name"]: t["function"] for t in turn.tools}
        reply = self.inner.reply(turn)
        calls = tuple(self._repaired(call, tools) for call in reply.calls)
        return Reply(reply.text, calls)

    def _repaired(self, call: Any, tools: dict[str, Any]) -> Any:
        if call.name in PROTOCOL_NAMES:
            return call
        shown = [name for name in tools if name not in PROTOCOL_NAMES]
        name = call.name if call.name in tools else _likest(call.name, shown)
        if not name:
            return call
        known = [*tools[name]["parameters"].get("properties", {})]
        arguments = {
            key if key in known else _likest(key, known) or key: value
            for key, value in call.arguments.items()
        }
        return ToolCall(name, arguments)


class DidYouMean:
    """A baseline: the error of an unknown tool says which name is likest."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.name = inner, f"{inner.name}+did_you_mean"

    def reply(self, turn: Turn) -> Reply:
        """The reply to messages that say more."""
        shown = [t["function"]["name"] for t in turn.tools]
        messages = [self._more(message, shown) for message in turn.messages]
        return self.inner.reply(Turn(messages, turn.tools))

    def _more(self, message: dict[str, Any], shown: list[str]) -> dict[str, Any]:
        text = str(message.get("content") or "")
        unknown = re.search(r"Unknown tool ([\w.-]+)\. Available", text)
        if message["role"] != "tool" or not unknown:
            return message
        near = _likest(unknown[1], [name for name in shown if name not in PROTOCOL_NAMES])
        more = text.replace(". Available", f". Did you mean {near}? Available", 1)
        return {**message, "content": more} if near else message


def _likest(name: str, names: list[str]) -> str:
    found = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    return found[0] if found else ""


class Reflects:
    """A baseline in the manner of Reflexion: the agent's own failure in words, before the next try.

    Args:
        inner: the agent.
        text: what it is told; see `reflection`.
    """

    def __init__(self, inner: Any, text: str) -> None:
        self.inner, self.text, self.name = inner, text, f"{inner.name}+reflexion"

    def reply(self, turn: Turn) -> Reply:
        """The reply to a conversation that begins with the reflection."""
        first = turn.messages[0]
        told = {**first, "content": f"{first['content']}\n\n{self.text}"}
        return Reply.of(self.inner.reply(Turn([told, *turn.messages[1:]], turn.tools)))


def reflection(steps: Sequence[Step], passed: bool) -> str:
    """What an agent is told of its last try: what it did, what failed, and that it was not right.

    Args:
        steps: of the last try.
        passed: whether it passed, which Reflexion takes as known.
    """
    if passed:
        return ""
    failed = [
        f"- {step.name} failed: {step.text[:200]}"
        for step in steps
        if step.kind == "call" and not step.ok
    ]
    done = ", ".join(step.name for step in steps if step.kind == "call" and step.ok) or "nothing"
    ended = steps[-1].kind if steps else "budget"
    lines = [
        "Your last try of this request failed.",
        f"Calls that worked: {done}. It ended with: {ended}.",
        *dict.fromkeys(failed),
        "Do not repeat what failed; use the tools that are on offer.",
    ]
    return "\n".join(lines)

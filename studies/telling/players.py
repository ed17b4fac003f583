"""A server that checks calls by its schemas, and scripted agents that know its old tools by heart.

An agent wants to make one call, as the old tools take it. It answers turns as any agent does.

    deaf      makes it, and makes it again
    facts     also reads what the notes say as a fact: "`a` is `b` now", "`a` is gone"
    guesses   also follows what they say as a guess: "`a` may be `b` now"
    tries     makes it, and after an error what the error says, one tool after another
    fuzzy     needs no layer: it takes the most similar name that is on offer
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolshift import Reply, Turn
from toolshift.core.calls import ToolCall
from toolshift.drift.calls import Checker, RecordedCall

KINDS = ("deaf", "facts", "guesses", "tries", "fuzzy")
MOST = 4
"""Calls until an agent gives up."""
TOOL = re.compile(r"^- `([^`]+)` (is|may be) `([^`]+)`(?: with `([^`]+)`: `([^`]+)`)? now", re.M)
PARAM = re.compile(r"^- ([^` ]+): `([^`]+)` (is|may be) `([^`]+)` now", re.M)
GONE = re.compile(r"^- ([^` ]+): `([^`]+)` is gone", re.M)
REQUIRED = re.compile(r"^- `([^`]+)` requires `([^`]+)`", re.M)


def chat(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Tools as a chat request has them, with the hints that MCP has."""
    kept = ("name", "description", "annotations")
    return [
        {
            "type": "function",
            "function": {
                **{key: tool[key] for key in kept if key in tool},
                "parameters": tool.get("inputSchema") or {"type": "object"},
            },
        }
        for tool in tools
    ]


def answer_of(checker: Checker, call: RecordedCall) -> tuple[str, bool]:
    """What the server says to a call, and whether it takes it."""
    where, why = checker.fault(call)
    if not where and not why:
        return '{"done": "yes"}', True
    said = f"Unknown tool: {call.tool}" if call.tool not in checker.documents else f"{where} {why}"
    return json.dumps({"isError": True, "content": [{"type": "text", "text": said}]}), False


@dataclass
class Player:
    """A scripted agent with one call in mind."""

    kind: str
    wanted: RecordedCall
    tools: Mapping[str, Mapping[str, Any]]
    name: str = "player"
    made: list[RecordedCall] = field(default_factory=list)
    planned: list[RecordedCall] = field(default_factory=list)

    def reply(self, turn: Turn) -> Reply:
        messages = list(turn.messages)
        if not self.made:
            self.planned = [self._first(str(messages[0].get("content")))]
        elif "isError" not in str(messages[-1].get("content")):
            return Reply("done")
        elif self.kind == "tries":
            self._think(str(messages[-1]["content"]))
        left = [call for call in self.planned if call not in self.made] or self.planned[:1]
        if len(self.made) >= MOST:
            return Reply("I cannot do it.")
        self.made.append(left[0])
        return Reply(calls=(ToolCall(left[0].tool, left[0].arguments),))

    def _first(self, system: str) -> RecordedCall:
        if self.kind == "fuzzy":
            return self._likest()
        if self.kind not in ("facts", "guesses"):
            return self.wanted
        ways = ("is", "may be") if self.kind == "guesses" else ("is",)
        tool, more = self.wanted.tool, {}
        for old, way, new, by, choice in TOOL.findall(system):
            if old == self.wanted.tool and way in ways:
                tool, more = new, {by: choice} if by else {}
        return self._call(tool, system, ways, more)

    def _call(
        self, tool: str, text: str, ways: Sequence[str], more: Mapping[str, Any]
    ) -> RecordedCall:
        """The call of a tool, under the names that a text gives."""
        names = {
            old: new for at, old, way, new in PARAM.findall(text) if at == tool and way in ways
        }
        gone = {old for at, old in GONE.findall(text) if at == tool}
        given = {
            names.get(name, name): value
            for name, value in self.wanted.arguments.items()
            if name not in gone
        }
        return RecordedCall(tool, {**given, **more, **self._known(tool, given)})

    def _known(self, tool: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Values that nobody has to be asked for: a default, or the only choice."""
        schema = (self.tools.get(tool) or {}).get("inputSchema") or {}
        found = {}
        for name in schema.get("required") or ():
            about = (schema.get("properties") or {}).get(name) or {}
            if name in given or not isinstance(about, Mapping):
                continue
            if "default" in about:
                found[name] = about["default"]
            elif "const" in about or len(about.get("enum") or ()) == 1:
                found[name] = about.get("const", (about.get("enum") or [None])[0])
        return found

    def _think(self, text: str) -> None:
        """Plans what an error says: the tools that it names, in their order."""
        named = [
            (new, {by: choice} if by else {})
            for old, _, new, by, choice in TOOL.findall(text)
            if old == self.wanted.tool
        ]
        named += [
            (str(json.loads(line)["name"]), {})
            for line in text.splitlines()
            if line.startswith('{"name"')
        ]
        for tool, more in named:
            inside = "\n".join(
                line if line.startswith(f"- {tool}: ") else line.replace("- `", f"- {tool}: `", 1)
                for line in text.splitlines()
            )
            call = self._call(tool, inside, ("is", "may be"), more)
            self.planned += [call] if call not in self.planned else []

    def _likest(self) -> RecordedCall:
        tool = self.wanted.tool
        if tool not in self.tools:
            tool = (difflib.get_close_matches(tool, list(self.tools), 1) or [tool])[0]
        schema = (self.tools.get(tool) or {}).get("inputSchema") or {}
        params = list(schema.get("properties") or {})
        names = {
            name: name
            if name in params
            else (difflib.get_close_matches(name, params, 1) or [name])[0]
            for name in self.wanted.arguments
        }
        return RecordedCall(tool, {names[n]: v for n, v in self.wanted.arguments.items()})


def played(
    agent: Any, tools: Sequence[Mapping[str, Any]], checker: Checker
) -> list[tuple[RecordedCall, bool]]:
    """The calls that a server received from an agent in one conversation, and which it took."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Do it."}]
    received: list[tuple[RecordedCall, bool]] = []
    shown = chat(tools)
    while len(received) < 2 * MOST:
        reply = agent.reply(Turn(messages, shown))
        if not reply.calls:
            break
        (call,) = reply.calls
        made = RecordedCall(call.name, dict(call.arguments))
        said, taken = answer_of(checker, made)
        received.append((made, taken))
        function = {"name": made.tool, "arguments": json.dumps(made.arguments)}
        ident = f"c{len(received)}"
        spoken = {"id": ident, "type": "function", "function": function}
        messages.append({"role": "assistant", "content": reply.text, "tool_calls": [spoken]})
        messages.append({"role": "tool", "tool_call_id": ident, "content": said})
    return received

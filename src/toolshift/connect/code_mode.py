"""Code mode: the tools are functions that the agent's own program calls.

The agent is shown one tool, `run_code`, and the functions by signature and documentation. Each call
that its program makes is a call of the episode: it goes through the layers, counts against the
budget, stands in the trace and is graded as any other. So every shift applies, and nothing is
changed for it. The program itself runs in a sandbox (`connect.sandbox`).
"""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from threading import Event
from typing import Any

from toolshift.agents.catalog import find_kind, make_agent
from toolshift.agents.kind import AgentKind, AnyAgent
from toolshift.connect.sandbox import Limits, Output, check_sandbox, run_program
from toolshift.core.calls import MalformedCall, ToolCall, read_call
from toolshift.core.errors import UsageError, described
from toolshift.core.message import PROTOCOL_NAMES, Reply, Turn, as_tool_call, protocol_tools
from toolshift.core.tool import Tool
from toolshift.dialects import read_reply
from toolshift.episode.contract import Agent, OutsideAgent, ScriptedAgent, finished
from toolshift.episode.episode import Episode, Over

RUN = "run_code"
_ABOUT = (
    "Run a program in Python 3. It can call the functions that the system message documents; each "
    "returns what the tool brought (a dict, a list or a text), or raises ToolError with what the "
    "tool said. What the program prints is what you see. Each program starts anew: no variable is "
    "kept, there are no files and no network, and only the standard library."
)
_TOOL = {
    "type": "function",
    "function": {
        "name": RUN,
        "description": _ABOUT,
        "parameters": {
            "type": "object",
            "properties": {"source": {"type": "string", "description": "The program."}},
            "required": ["source"],
            "additionalProperties": False,
        },
    },
}
_TYPES = {
    "string": "str", "integer": "int", "number": "float", "boolean": "bool", "array": "list",
    "object": "dict",
}  # fmt: skip


class CodeAgent:
    """An agent that answers turns, put into code mode.

    Args:
        inner: the agent.
        limits: what each of its programs may use.
    """

    def __init__(self, inner: Agent, limits: Limits | None = None) -> None:
        check_sandbox()
        self.inner, self.limits = inner, limits or Limits()
        self.name = f"code:{inner.name}"
        self.concurrency = int(getattr(inner, "concurrency", 1) or 1)

    @property
    def settings(self) -> dict[str, Any]:
        """Those of the agent, and that it is in code mode: for a manifest."""
        return {**getattr(self.inner, "settings", {}), "code_mode": True}

    def drive(self, episode: Episode, stop: Event) -> None:
        """Lets the agent write programs until the episode is over."""
        talk: list[dict[str, Any]] = [
            {"role": "system", "content": ""},
            {"role": "user", "content": episode.ask_now.text},
        ]
        while not episode.end and not stop.is_set():
            talk[0]["content"] = f"{episode.scene.system}\n\n{documented(episode.tools)}".strip()
            turn = Turn(list(talk), [_TOOL, *protocol_tools()])
            try:
                reply = read_reply(finished(self.inner.reply(turn)))
            except Exception as fault:
                episode.crash(described(fault))
                return
            episode.use(reply.usage)
            self._take(episode, reply, talk)

    def _take(self, episode: Episode, reply: Reply, talk: list[dict[str, Any]]) -> None:
        """Carries out one reply, and notes what was said and heard."""
        if reply.failure:
            (episode.overflow if reply.overflow else episode.fail)(reply.failure)
            return
        if not reply.calls:
            episode.take(Reply(text=reply.text))
            talk.append({"role": "assistant", "content": reply.text, **reply.extra})
            talk.extend(_heard(episode))
            return
        said = [_as_said(call, place) for place, call in enumerate(reply.calls)]
        spoken = {"role": "assistant", "content": reply.text, "tool_calls": said}
        talk.append({**spoken, **reply.extra})
        more: list[dict[str, Any]] = []
        try:
            for call, wire in zip(reply.calls, said, strict=True):
                text = self._result(episode, call)
                talk.append({"role": "tool", "tool_call_id": wire["id"], "content": text})
                if call.name in PROTOCOL_NAMES and episode.steps[-1].kind == "answer":
                    more = _heard(episode)
        except Over:
            return
        talk.extend(more)
        episode.next_turn()

    def _result(self, episode: Episode, call: ToolCall | MalformedCall) -> str:
        """What the agent is told of one call."""
        if call.name in PROTOCOL_NAMES:
            episode.take_call(call)
            last = episode.steps[-1]
            return "Delivered." if last.kind == "answer" else last.text
        source = call.arguments.get("source") if isinstance(call, ToolCall) else None
        if call.name != RUN:
            return f"Unknown tool {call.name}. Call functions in a program, by {RUN}."
        if not isinstance(source, str) or not source.strip():
            return f"{RUN} takes the program as a text under `source`."
        return shown(self._run(episode, source))

    def _run(self, episode: Episode, source: str) -> Output:
        """Runs a program, whose calls are those of the episode."""
        names = functions_of(episode.tools)
        over: list[Over] = []

        def answer(name: str, arguments: Any) -> tuple[bool, Any]:
            if over:
                return False, "The task is over."
            try:
                episode.take_call(read_call(names.get(name, name), arguments, ""), protocol=False)
            except Over as ended:
                over.append(ended)
                return False, "The task is over."
            step = episode.steps[-1]
            return step.ok, _value(step.text) if step.ok else step.text

        params = {
            name: [param.name for param in tool.params]
            for name, tool in _by_function(episode.tools).items()
        }
        output = run_program(source, params, answer, self.limits)
        if over:
            raise over[0]
        if output.missing in _known(episode):  # a call of a function that is not offered now
            episode.take_call(ToolCall(output.missing, {}), protocol=False)
        return output


def _known(episode: Episode) -> set[str]:
    """The functions that there are, or were before a shift."""
    scene = episode.scene
    return {*functions_of(scene.reachable), *functions_of(scene.clean.reachable)}


def _heard(episode: Episode) -> list[dict[str, Any]]:
    """What the user has said after the last step."""
    last = episode.steps[-1] if episode.steps else None
    return [{"role": "user", "content": last.text}] if last and last.text else []


def _as_said(call: ToolCall | MalformedCall, place: int) -> dict[str, Any]:
    given = call.text if isinstance(call, MalformedCall) else call.arguments
    return as_tool_call(call.name, given, call.id or f"call_{place}", call.extra)


def _value(text: str) -> Any:
    """A result as a program takes it: data where it is JSON, else the text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def shown(output: Output) -> str:
    """What a program has printed, and how it failed, as one text."""
    return "\n".join(filter(None, (output.text.rstrip("\n"), output.error.strip()))) or (
        "The program has printed nothing."
    )


# -- the functions ---------------------------------------------------------------------------------


def functions_of(tools: Sequence[Tool]) -> dict[str, str]:
    """The name of each function, and that of the tool that it is."""
    return {name: tool.name for name, tool in _by_function(tuple(tools)).items()}


@lru_cache(maxsize=64)
def _by_function(tools: tuple[Tool, ...]) -> dict[str, Tool]:
    found: dict[str, Tool] = {}
    for tool in tools:
        plain = re.sub(r"\W", "_", tool.name, flags=re.ASCII)
        name = f"_{plain}" if plain[:1].isdigit() or keyword.iskeyword(plain) else plain
        number = 1
        while name in found:
            number += 1
            name = f"{plain}_{number}"
        found[name] = tool
    return found


@lru_cache(maxsize=64)
def documented(tools: tuple[Tool, ...]) -> str:
    """The functions as the agent is shown them: signatures, and what each does and takes."""
    stubs = (_stub(name, tool) for name, tool in _by_function(tools).items())
    return "Functions for your programs:\n\n" + "\n\n".join(stubs)


def _stub(name: str, tool: Tool) -> str:
    params = sorted(tool.params, key=lambda param: not param.required)
    written = [
        f"{param.name}: {_type(param.schema)}" + ("" if param.required else " = ...")
        for param in params
    ]
    texts = [
        f"    {param.name}: {text}"
        for param in params
        if (text := str(param.schema.get("description") or ""))
    ]
    about = "\n".join([f"    {tool.description}" if tool.description else "", *texts]).strip("\n")
    head = f"def {name}({', '.join(written)}):"
    return f'{head}\n    """\n{about}\n    """' if about else f"{head} ..."


def _type(schema: Mapping[str, Any]) -> str:
    choices = schema.get("enum")
    if isinstance(choices, list) and choices:
        return f"Literal[{', '.join(map(repr, choices))}]"
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    return " | ".join("None" if one == "null" else _TYPES.get(str(one), "Any") for one in kinds)


class _CodeKind(AgentKind):
    """`code:AGENT`: another agent, in code mode."""

    forms = {"code:AGENT": "an agent that answers turns, in code mode (docs/tool-sets.md)"}
    private = True

    def make(self, spec: str, options: Mapping[str, Any]) -> AnyAgent:
        """Makes the agent that stands behind `code:`."""
        inner = make_agent(spec.removeprefix("code:"), **options)
        if isinstance(inner, ScriptedAgent | OutsideAgent) or not isinstance(inner, Agent):
            raise UsageError(
                f"agent {spec}: code mode works only with agents that answer turns, such as "
                "chat:MODEL or module:function"
            )
        return CodeAgent(inner)

    def is_free(self, spec: str) -> bool:
        """As the agent behind it."""
        inner = spec.removeprefix("code:")
        return find_kind(inner).is_free(inner)


CODE_KIND = _CodeKind()

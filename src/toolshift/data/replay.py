"""A recorded conversation, played again through the sandbox's layers.

The tools of the recording are the truth, and its results come back as they were recorded. Whoever
called a tool calls the shown one that stands for it, with the same values, and follows what the
layers ask for: a retry, a successor, a page. What would need a result that nobody recorded is not
applicable; nothing is made up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import jsonschema_rs
import msgspec

from toolshift.core.form import NOTICE, show
from toolshift.core.scene import Applied
from toolshift.core.shift import NotApplicable
from toolshift.core.solver import Impossible, Solver, Untraceable
from toolshift.core.tool import NOT_RECORDED, Result, Tool, error
from toolshift.data.conversation import Call, Conversation, Message, RowFault, ToolShown
from toolshift.interop.tools import Toolbox, from_openai
from toolshift.shifts.live import Live, LiveScene, live_scene, shifted
from toolshift.shifts.surface import Surface

POOL = "train"
"""Wordings come from the pool for training alone; those of evaluations never appear."""
Stack = tuple[Applied, ...]


# -- a list of tools under shifts --------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Prepared:
    """A list of tools under a stack of shifts; serves every conversation with that list."""

    toolbox: Toolbox
    scene: LiveScene

    @cached_property
    def surfaces(self) -> tuple[Surface, ...]:
        """The layers that say things by other names, the lowest first."""
        return tuple(layer for layer in self.scene.layers if isinstance(layer, Surface))

    @cached_property
    def plain(self) -> bool:
        """Whether nothing but names and texts moves, so that calls need not be played."""
        return len(self.surfaces) == len(self.scene.layers)

    @cached_property
    def shown(self) -> tuple[ToolShown, ...]:
        """The tools as they are shown at the start."""
        return self.as_shown(tuple(t for t in self.scene.tools if not t.retired))

    @cached_property
    def schemas(self) -> dict[str, Any]:
        """The schema of the arguments of each shown tool, by name."""
        return {t.function["name"]: t.function.get("parameters") for t in self.shown}

    @cached_property
    def places(self) -> dict[str, int]:
        """The place of each true tool in the list."""
        return {name: place for place, name in enumerate(self.toolbox.sources)}

    def as_shown(self, tools: tuple[Tool, ...]) -> tuple[ToolShown, ...]:
        """Tools of the sandbox as a conversation has them."""
        return tuple(map(self._as_shown, tools))

    def _as_shown(self, tool: Tool) -> ToolShown:
        function = self.toolbox.speak(tool)["function"]
        source = self.toolbox.source(tool)
        if source is None:
            return ToolShown(function)
        known = source.known
        params = {p.name: known[p.fact] for p in tool.params if p.fact in known}
        return ToolShown(function, self.places.get(source.tool.name), params)

    def say(self, text: str) -> str:
        """A text that speaks of the tools, by the names that are shown."""
        return _said(self.surfaces, text)


def _said(surfaces: tuple[Surface, ...], text: str) -> str:
    if not text:
        return text
    for surface in surfaces:
        for tool in surface.params:
            text = surface.say_params(text, tool)
        text = surface.speak(text)
    return text


def prepared(
    tools: tuple[ToolShown, ...], stack: Stack, needed: tuple[str, ...], draw: int
) -> Prepared:
    """The tools under a stack; the same for the same arguments, and kept.

    Args:
        tools: of the conversation.
        stack: the shifts.
        needed: the tools that are called; shifts of low severity pick from them.
        draw: which of the ways in which the shifts may fall.

    Returns:
        The tools as they are shown, and what carries calls between both.

    Raises:
        NotApplicable: where a shift cannot be truthful on these tools.
    """
    listed = msgspec.json.encode([tool.function for tool in tools])
    found = _prepared(listed, stack, needed, draw)
    if isinstance(found, NotApplicable):
        raise found
    return found


@lru_cache(maxsize=4096)
def _prepared(
    listed: bytes, stack: Stack, needed: tuple[str, ...], draw: int
) -> Prepared | NotApplicable:
    functions = msgspec.json.decode(listed)
    toolbox = from_openai([{"type": "function", "function": one} for one in functions])
    scene = live_scene(toolbox, draw, POOL, needed)
    try:
        return Prepared(toolbox, shifted(scene, stack, may_write=True))
    except NotApplicable as reason:
        return reason


def called(conversation: Conversation) -> tuple[str, ...]:
    """The tools that a conversation calls, by name, sorted."""
    return tuple(sorted({call.name for said in conversation.messages for call in said.calls}))


# -- whether calls fit -------------------------------------------------------------------------


def check(conversation: Conversation) -> None:
    """Checks that each call that is learned is of a tool on offer, and is what its schema takes.

    Args:
        conversation: of a row.

    Raises:
        RowFault: naming the first call that is not.
    """
    schemas = {t.function["name"]: t.function.get("parameters") for t in conversation.tools}
    for place, said in enumerate(conversation.messages):
        for call in said.calls if said.learned else ():
            wrong = fault_of(schemas, call.name, call.arguments)
            if wrong:
                raise RowFault(f"message {place}: {wrong}")


def fault_of(schemas: Mapping[str, Any], name: str, arguments: Mapping[str, Any]) -> str:
    """What is wrong with a call; "" where nothing is, or its schema cannot be used.

    Args:
        schemas: of the arguments of each tool on offer, by name.
        name: of the tool that is called.
        arguments: of the call.

    Returns:
        One sentence.
    """
    if name not in schemas:
        return f"{name} is called, and is no tool on offer"
    validator = validator_of(schemas[name])
    if validator is None or validator.is_valid(arguments):
        return ""
    fault = next(iter(validator.iter_errors(arguments)))
    where = ".".join(map(str, fault.instance_path))
    return f"{name}: {where}: {fault.message}" if where else f"{name}: {fault.message}"


def validator_of(schema: Any) -> Any:
    """What checks arguments; None where a schema takes anything, or cannot be used."""
    return _validator(msgspec.json.encode(schema)) if schema else None


@lru_cache(maxsize=65536)
def _validator(schema: bytes) -> Any:
    try:
        return jsonschema_rs.validator_for(msgspec.json.decode(schema))
    except (ValueError, jsonschema_rs.ReferencingError):
        return None


# -- playing -----------------------------------------------------------------------------------


def replay(conversation: Conversation, ready: Prepared) -> list[Conversation]:
    """The conversation as it goes under the shifts.

    Args:
        conversation: as it was recorded; its calls fit its tools.
        ready: its tools under the shifts.

    Returns:
        One conversation for each list of tools that is seen: where it changes midway, what was
        said before is context only.

    Raises:
        NotApplicable: where a call cannot be carried.
    """
    found = [_spoken(conversation, ready)] if ready.plain else _Play(conversation, ready).parts()
    for part in found:
        try:
            check(part)
        except RowFault as wrong:
            raise NotApplicable(f"a call would not fit what is shown: {wrong}") from None
    return found


def _spoken(conversation: Conversation, ready: Prepared) -> Conversation:
    """The conversation by other names; nothing else changes."""
    messages = tuple(_renamed(said, ready) for said in conversation.messages)
    return Conversation(ready.shown, messages)


def _renamed(said: Message, ready: Prepared) -> Message:
    if said.role == "user":
        return said
    if said.role == "tool":
        name = said.name
        for surface in ready.surfaces:
            name = surface.names.get(name, name)
        return said if name == said.name else msgspec.structs.replace(said, name=name)
    calls = []
    for call in said.calls:
        name, arguments = call.name, call.arguments
        for surface in ready.surfaces:
            name, arguments = surface.spoken(name, arguments)
        calls.append(Call(name, arguments, call.id))
    return msgspec.structs.replace(said, text=ready.say(said.text), calls=tuple(calls))


def undone(conversation: Conversation, ready: Prepared, before: Conversation) -> Conversation:
    """What `replay` has renamed, by its old names again.

    Args:
        conversation: as it goes under shifts of names and texts alone.
        ready: the tools under those shifts.
        before: whose tools these were.

    Returns:
        The conversation in the words of `before`.
    """
    back = tuple(surface.inverse for surface in reversed(ready.surfaces))
    inverse = Prepared(ready.toolbox, ready.scene)
    inverse.__dict__["surfaces"] = back
    messages = tuple(_renamed(said, inverse) for said in conversation.messages)
    return Conversation(before.tools, messages)


@dataclass(frozen=True)
class _Attempt:
    """One call as it was made, and the text that came back."""

    name: str
    arguments: dict[str, Any]
    text: str
    ok: bool


class _Play:
    """One conversation under way; the backend of a solver that follows what the layers ask."""

    def __init__(self, conversation: Conversation, ready: Prepared) -> None:
        self.ready = ready
        self.live = Live(ready.scene, ready.toolbox, self._carry)
        self.true = {tool.name: tool for tool in ready.toolbox.tools}
        self.said: list[Message] = []
        self.views: list[tuple[int, tuple[Tool, ...]]] = [(0, self.live.tools())]
        self._now: tuple[Call, Any, str] | None = None
        self._made: list[_Attempt] = []
        self._missing = ""
        for message, results in _turns(conversation):
            self._play(message, results)

    # -- the backend of the solver -------------------------------------------------------------

    def tools(self) -> tuple[Tool, ...]:
        """The tools as shown now."""
        return self.live.tools()

    def call(self, name: str, arguments: dict[str, Any]) -> tuple[str, Result]:
        """Makes a call through the layers, and notes it."""
        result = self.live.call(name, arguments).result
        if self._missing:
            raise NotApplicable(f"the shift calls {self._missing}, of which nothing was recorded")
        self._made.append(_Attempt(name, arguments, self._text(result), result.ok))
        return show(result), result

    def ask(self, slot: str, question: str) -> str:
        """Nobody is there to ask."""
        raise Impossible("not_found")

    def was_shown(self, value: Any) -> bool:
        """What a recorded call says has been shown in the recording."""
        return True

    def user_said(self, value: Any) -> bool:
        """Likewise."""
        return True

    # -- inside --------------------------------------------------------------------------------

    def _carry(self, name: str, arguments: dict[str, Any]) -> Result:
        """The recorded result of the call that is under way."""
        assert self._now is not None
        call, data, _ = self._now
        if (name, arguments) != (call.name, call.arguments):
            self._missing = name
            return error(NOT_RECORDED, f"{name} was not called so.")
        return Result(True, data)

    def _text(self, result: Result) -> str:
        """A result as it is read: word for word, where the layers have left it alone."""
        assert self._now is not None
        _, data, text = self._now
        if not result.ok or result.form != "json" or result.data != data:
            return show(result)
        return f"{text}{NOTICE}{result.notice}" if result.notice else text

    def _play(self, message: Message, results: tuple[Message | None, ...]) -> None:
        if message.role == "user":
            self.said.append(message)
            return
        text = self.ready.say(message.text)
        if not message.calls:
            self.said.append(msgspec.structs.replace(message, text=text))
            return
        played = [self._one(c, r) for c, r in zip(message.calls, results, strict=True)]
        if all(len(attempts) == 1 for attempts in played):
            self._together(message, text, results, [attempts[0] for attempts in played])
        else:
            for call, result, attempts in zip(message.calls, results, played, strict=True):
                self._one_by_one(message, text, call, result, attempts)
                text = ""
        shown = self.live.tools()
        if shown != self.views[-1][1]:
            self.views.append((len(self.said), shown))

    def _one(self, call: Call, recorded: Message | None) -> list[_Attempt]:
        """Makes a recorded call by what is shown; every attempt that it takes."""
        if recorded is None:
            raise NotApplicable("the recording has no result of a call")
        tool = _standing_for(self.live.tools(), call.name)
        self._now = (call, _data(recorded.text), recorded.text)
        self._made = []
        try:
            Solver(self, {}, {}).perform(tool, _arguments(call, self.true[call.name], tool))
        except (Impossible, Untraceable) as reason:
            raise NotApplicable(f"a call cannot be carried: {reason}") from None
        return self._made

    def _together(
        self,
        message: Message,
        text: str,
        results: tuple[Message | None, ...],
        made: list[_Attempt],
    ) -> None:
        """Calls that went at once, in one message, as they were recorded."""
        calls = tuple(
            Call(each.name, each.arguments, call.id)
            for call, each in zip(message.calls, made, strict=True)
        )
        self.said.append(msgspec.structs.replace(message, text=text, calls=calls))
        for recorded, each in zip(results, made, strict=True):
            assert recorded is not None
            name = each.name if recorded.name else ""
            self.said.append(msgspec.structs.replace(recorded, text=each.text, name=name))

    def _one_by_one(
        self,
        message: Message,
        text: str,
        call: Call,
        recorded: Message | None,
        attempts: list[_Attempt],
    ) -> None:
        """A call that took several; one that the layers made fail is not learned."""
        assert recorded is not None
        for number, each in enumerate(attempts):
            last = number == len(attempts) - 1
            own = call.id if last or not call.id else f"{call.id}-{number}"
            spoken = Call(each.name, each.arguments, own)
            learned = message.learned and each.ok
            source = message.source if last else None
            said = text if not number else ""
            self.said.append(Message("assistant", said, (spoken,), learned=learned, source=source))
            name = each.name if recorded.name else ""
            source = recorded.source if last else None
            answer = Message("tool", each.text, name=name, call_id=own, source=source)
            self.said.append(answer)

    def parts(self) -> list[Conversation]:
        """One conversation for each list of tools; what was said before is context only."""
        ends = [place for place, _ in self.views[1:]] + [len(self.said)]
        found = []
        for (begin, tools), end in zip(self.views, ends, strict=True):
            if not any(said.role == "assistant" and said.learned for said in self.said[begin:end]):
                continue
            earlier = (
                msgspec.structs.replace(said, learned=False) if said.role == "assistant" else said
                for said in self.said[:begin]
            )
            said = (*earlier, *self.said[begin:end])
            found.append(Conversation(self.ready.as_shown(tools), said))
        return found


def _turns(conversation: Conversation) -> list[tuple[Message, tuple[Message | None, ...]]]:
    """Every message but results, each with the results of its calls; None for one not recorded."""
    found: list[tuple[Message, list[Message | None]]] = []
    for said in conversation.messages:
        if said.role != "tool":
            found.append((said, [None] * len(said.calls)))
            continue
        place = _answered(found, said)
        if place is None:
            raise NotApplicable("a result belongs to no call")
        calls, number = found[place[0]][1], place[1]
        calls[number] = said
    return [(said, tuple(results)) for said, results in found]


def _answered(
    turns: list[tuple[Message, list[Message | None]]], result: Message
) -> tuple[int, int] | None:
    """The turn and the call that a result is of: by its id, else the first that waits for one."""
    open_calls = [
        (turn, number)
        for turn, (_, results) in enumerate(turns)
        for number, known in enumerate(results)
        if known is None
    ]
    for turn, number in open_calls:
        if result.call_id and turns[turn][0].calls[number].id == result.call_id:
            return turn, number
    last = max((turn for turn, _ in open_calls), default=-1)
    return next(((turn, number) for turn, number in open_calls if turn == last), None)


def _standing_for(shown: tuple[Tool, ...], name: str) -> Tool:
    able = [tool for tool in shown if tool.origin == (name,) and not tool.retired]
    if not able:
        raise NotApplicable(f"no tool that is shown stands for {name} alone")
    return max(able, key=lambda tool: tool.authority)


def _arguments(call: Call, true: Tool, shown: Tool) -> dict[str, Any]:
    """The arguments of a recorded call by the names of the shown tool."""
    facts = {p.fact: p.name for p in true.params}
    names = {facts[p.fact]: p.name for p in shown.params if p.fact in facts}
    declared = set(facts.values())
    lost = [name for name in call.arguments if name in declared and name not in names]
    needed = [p.name for p in shown.params if p.required and p.fact not in facts]
    if lost or needed:
        name = (lost or needed)[0]
        what = "takes no longer" if lost else "requires now"
        raise NotApplicable(f"{name} is what {shown.name} {what}")
    return {names.get(name, name): value for name, value in call.arguments.items()}


def _data(text: str) -> Any:
    """A recorded result as data; a text where it is no record and no list of records."""
    try:
        data = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
    return data if isinstance(data, dict | list) else text

"""What a model is shown of an agent's conversation, and what the model's calls stand for.

The agent's history is in true names, the model's in shown ones. The tools are the agent's own, so
nothing is carried out here: a call that comes out at the bottom of the layers is what the agent is
asked to do, and the result that it reports goes back up through the same layers. A call that a
layer answers by itself (a name that no longer works, a distractor) is answered to the model
without the agent's knowing.

The shown form of a history follows from the seed, the tools and the positions in it. What the
agent's history does not hold (calls that a layer answered) is remembered in `Said`; if that is
lost, the conversation goes on without it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from hashlib import blake2b
from threading import Lock
from typing import Any

import msgspec

from toolshift.core.calls import Unreadable, read_arguments
from toolshift.core.render import show
from toolshift.core.tool import JSON, Result, error
from toolshift.core.values import as_json
from toolshift.dialects.form import WIRE
from toolshift.interop.outcome import has_failed
from toolshift.interop.tools import Toolbox
from toolshift.shifts.live import Live, LiveScene
from toolshift.shifts.watching import unchanged

UNREAD = "the arguments are no JSON object, or one with a number or a sign that cannot be kept"
Message = dict[str, Any]
Call = dict[str, Any]


class Wanted(Exception):
    """A call has come out at the bottom: the agent is to make it."""

    def __init__(self, name: str, arguments: dict[str, Any]) -> None:
        super().__init__(name)
        self.name, self.arguments = name, arguments


class Agent:
    """Whoever makes the true calls: the agent has reported a result, or is yet to be asked."""

    def __init__(self) -> None:
        self.reported: Result | None = None

    def __call__(self, name: str, arguments: dict[str, Any]) -> Result:
        """What the agent has reported, once."""
        if self.reported is None:
            raise Wanted(name, arguments)
        told, self.reported = self.reported, None
        return told


@dataclass(frozen=True)
class Round:
    """A message of the model and what each of its calls became.

    Attributes:
        message: as the model spoke it.
        carried: the calls that the agent is to make, under its own names; by their place.
        answers: by a call's id, what a layer has answered to it.
        failed: the ids of those calls whose answer is an error.
    """

    message: Message
    carried: tuple[Call, ...] = ()
    answers: dict[str, str] = field(default_factory=dict)
    failed: frozenset[str] = frozenset()

    @property
    def hidden(self) -> bool:
        """Whether the agent need not know of it: every call was answered by a layer."""
        return bool(self.answers) and not self.carried

    @property
    def heard(self) -> list[Message]:
        """The messages that answer the calls which a layer answered."""
        return [
            {"role": "tool", "tool_call_id": name, "content": text, **_marked(name in self.failed)}
            for name, text in self.answers.items()
        ]


@dataclass(frozen=True)
class Turn:
    """The rounds that led to one message of the assistant, the last of them the visible one.

    Attributes:
        tools_id: of the tools that were on offer; under others, other names are shown.
    """

    rounds: tuple[Round, ...]
    tools_id: str


class Said:
    """What models have said in truth, by the message that the agent was given for it."""

    def __init__(self, most: int = 10_000) -> None:
        self._most = most
        self._turns: OrderedDict[str, Turn] = OrderedDict()
        self._lock = Lock()

    def keep(self, history: Sequence[Message], given: Message, turn: Turn) -> None:
        """Remembers what stood behind the message that follows a history."""
        with self._lock:
            self._turns[_key(history, given)] = turn
            while len(self._turns) > self._most:
                self._turns.popitem(last=False)

    def find(self, history: Sequence[Message], given: Message) -> Turn | None:
        """What stood behind a message of the agent's history; None where it is not known."""
        with self._lock:
            return self._turns.get(_key(history, given))


class Answered:
    """The conversation behind each answer, by the id that the agent was given for it."""

    def __init__(self, most: int = 10_000) -> None:
        self._most = most
        self._found: OrderedDict[str, tuple[str, tuple[Message, ...]]] = OrderedDict()
        self._lock = Lock()

    def keep(self, name: str, true: str, messages: tuple[Message, ...]) -> None:
        """Remembers a conversation up to an answer, and the id that its server has for it."""
        with self._lock:
            self._found[name] = (true, messages)
            while len(self._found) > self._most:
                self._found.popitem(last=False)

    def find(self, name: str) -> tuple[str, tuple[Message, ...]] | None:
        """The server's id of an answer and the conversation up to it; None where not known."""
        with self._lock:
            return self._found.get(name)


def _key(history: Sequence[Message], given: Message) -> str:
    """A name for a message: the conversation's first request, its place, and what it says.

    System messages stay out, since some agents put the time of day in them.
    """
    users = (m for m in history if m.get("role") == "user")
    place = sum(m.get("role") == "assistant" for m in history)
    calls = [
        (_id_of(call), function.get("name"), _canonical(function))
        for call in given.get("tool_calls") or ()
        for function in (call.get("function") or {},)
    ]
    parts = [next(users, {}).get("content"), place, text_of(given) or "", calls]
    return blake2b(JSON.encode(parts), digest_size=16).hexdigest()


def _id_of(call: Call) -> Any:
    """The id of a call; None where its dialect has made one up, for that is another each time."""
    return None if (call.get(WIRE) or {}).get("unnamed") else call.get("id")


def _canonical(function: dict[str, Any]) -> Any:
    found = arguments_of(function)
    return function.get("arguments") if found is None else sorted(found.items())


class Conversation:
    """One request's conversation, replayed through the layers up to its last message."""

    def __init__(self, scene: LiveScene, toolbox: Toolbox, said: Said) -> None:
        self._agent = Agent()
        self._live = Live(scene, toolbox, self._agent)
        self._said = said
        self.tools_id = scene.task.id
        self.changed: list[dict[str, str]] = []

    @property
    def idle(self) -> list[str]:
        """The shifts that have changed nothing in this conversation so far."""
        return unchanged(self._live.changes)

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tools that the model is shown now."""
        return self._live.documents()

    def show(self, messages: Sequence[Message], known: int = 0) -> tuple[list[Message], int]:
        """The history as the model is shown it, and how many messages of that its server has kept.

        It has kept the first `known` messages of the agent's, the last of them the model's own.
        """
        shown: list[Message] = []
        spoken: dict[str, Call] = {}
        kept = 0
        for place, message in enumerate(messages):
            if place and place == known:
                kept = _without_heard(shown)
            if message.get("role") == "tool":
                call = spoken.get(str(message.get("tool_call_id")))
                shown.append(self._reported(message, call) if call else message)
                if call and call.get("id") != message.get("tool_call_id"):  # ids of ours differ
                    shown[-1] = {**shown[-1], "tool_call_id": call.get("id")}
                if (message.get(WIRE) or {}).get("loads"):
                    shown[-1] = self._loading(message)
                if call and "name" in message:  # some clients repeat there whose result it is
                    shown[-1] = {**shown[-1], "name": (call.get("function") or {}).get("name")}
            elif message.get("tool_calls") or message.get("role") == "assistant":
                shown += self._spoken(messages[:place], message, spoken)
            else:
                shown.append(message)
        return shown, _without_heard(shown) if known and known == len(messages) else kept

    def carry(self, message: Message) -> Round:
        """Carries the calls of a model's message inward."""
        carried, answers, failed = [], {}, set[str]()
        for call in message.get("tool_calls") or ():
            found = self._carry(call)
            if isinstance(found, Result):
                answers[str(call.get("id"))] = show(found)
                failed |= set() if found.ok else {str(call.get("id"))}
            else:
                carried.append(found)
        return Round(message, tuple(carried), answers, frozenset(failed))

    def spoken_name(self, name: str) -> str:
        """The name that the model is shown for a tool of the agent's."""
        return self._outward(name, {})[0]

    def demanded(self, name: str) -> list[str]:
        """The tools that a model can call where a tool of the agent's is demanded.

        One that the agent does not offer stays as it is: the model's server says so.
        """
        shown, spoken = self._live.tools(), self.spoken_name(name)
        if name not in self._live.toolbox.sources or any(tool.name == spoken for tool in shown):
            return [spoken]
        return [tool.name for tool in shown if name in tool.origin]

    # -- inside --------------------------------------------------------------------------------

    def _carry(self, call: Call) -> Call | Result:
        function = call.get("function")
        if not isinstance(function, dict):
            return call  # a call of another kind, which no layer knows
        name, arguments = str(function.get("name", "")), arguments_of(function)
        if arguments is None and not self._live.passes_unread(name):
            return error("invalid_arguments", f"{name}: {UNREAD}")
        memories = self._live.session.memories
        before = deepcopy(memories)
        try:
            spoken = self._live.call(name, dict(arguments or {}))
        except Wanted as wanted:
            for memory, kept in zip(memories, before, strict=True):
                memory.clear()
                memory.update(kept)
            inner = as_json(wanted.arguments)
            if wanted.arguments == arguments or arguments is None:
                inner = function.get("arguments") or "{}"
            return {**call, "function": {**function, "name": wanted.name, "arguments": inner}}
        return spoken.result

    def _spoken(
        self, history: Sequence[Message], given: Message, spoken: dict[str, Call]
    ) -> list[Message]:
        """A message of the assistant as the model spoke it, with what the agent never saw."""
        turn = self._said.find(history, given)
        if turn is None or turn.tools_id != self.tools_id:
            outward = [self._call_outward(call) for call in given.get("tool_calls") or ()]
            spoken.update({str(call.get("id")): call for call in outward})
            return [{**given, "tool_calls": outward} if outward else given]
        shown: list[Message] = []
        for each in turn.rounds:
            self.carry(each.message)  # for what the layers remember of it
            shown += [each.message, *each.heard]
        last = turn.rounds[-1]
        truly = {call.get("id"): call for call in last.message.get("tool_calls") or ()}
        pairs = zip(given.get("tool_calls") or (), last.carried, strict=True)
        calls = [(now, truly[then.get("id")]) for now, then in pairs]
        if len(turn.rounds) == 1 and not last.answers:  # the agent has it whole: marks and all
            calls = [(now, {**then, **now, **_function_of(then)}) for now, then in calls]
            listed = {"tool_calls": [then for _, then in calls]} if calls else {}
            shown = [{**last.message, **given, **listed}]
        spoken.update({str(now.get("id")): then for now, then in calls})
        return shown

    def _call_outward(self, call: Call) -> Call:
        function = call.get("function")
        if not isinstance(function, dict):
            return call
        arguments = arguments_of(function)
        name, said = self._outward(str(function.get("name") or ""), arguments or {})
        if said == arguments or arguments is None:  # what cannot be read stays as it came
            return {**call, "function": {**function, "name": name}}
        text = as_json(said)
        return {**call, "function": {**function, "name": name, "arguments": text}}

    def _outward(self, name: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        for layer in self._live.scene.layers:
            speak = getattr(layer, "spoken", None)
            name, arguments = speak(name, arguments) if speak else (name, arguments)
        return name, arguments

    def _loading(self, message: Message) -> Message:
        """The result of a client's own search for tools, which names those that it has found."""
        names = {tool["function"]["name"] for tool in self.tools}
        found = map(self.spoken_name, message[WIRE]["loads"])
        loads = [name for name in dict.fromkeys(found) if name in names]
        return {**message, WIRE: {**message[WIRE], "loads": loads}}

    def _reported(self, message: Message, call: Call) -> Message:
        """A result of the agent's as the model is shown it; the same text if nothing changed."""
        text, function = text_of(message), call.get("function") or {}
        arguments = arguments_of(function)
        if text is None or arguments is None:
            return message
        told = self._agent.reported = read_result(text, _is_failed(message))
        try:
            result = self._live.call(function.get("name", ""), arguments).result
        except Wanted:  # a layer has more to ask of the agent, who cannot be asked from here
            return message
        finally:
            unheard, self._agent.reported = self._agent.reported, None
        if result == told or unheard:  # no layer may answer in the place of what was really done
            return message
        shown = show(result)
        self.changed.append({"call": str(call.get("id")), "was": text, "shown": shown})
        return {**message, "content": shown, **_marked(not result.ok, message.get(WIRE))}


def _function_of(call: Call) -> Call:
    return {"function": call["function"]} if "function" in call else {}


def _marked(failed: bool, wire: dict[str, Any] | None = None) -> Message:
    """The mark of a result that failed, for dialects that say it beside the text."""
    return {WIRE: {**(wire or {}), "failed": failed}} if wire or failed else {}


def _is_failed(message: Message) -> bool:
    return bool((message.get(WIRE) or {}).get("failed"))


def _without_heard(shown: Sequence[Message]) -> int:
    """How many messages there are up to the model's last: what a layer answered to it is new."""
    places = (n for n in range(len(shown), 0, -1) if shown[n - 1].get("role") != "tool")
    return next(places, 0)


# -- texts -------------------------------------------------------------------------------------


def text_of(message: Message) -> str | None:
    """The text of a message; None where it holds something else."""
    content = message.get("content")
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        whole = len(parts) == len(content) and all(isinstance(part, str) for part in parts)
        return "".join(map(str, parts)) if whole else None
    return content if isinstance(content, str) else None


def arguments_of(function: dict[str, Any]) -> dict[str, Any] | None:
    """The arguments of a call; None where it was malformed."""
    try:
        return read_arguments(function.get("arguments"))
    except Unreadable:
        return None


def read_result(text: str, failed: bool = False) -> Result:
    """A reported text as a result: JSON where it is that, and failed where that is said."""
    try:
        data = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return Result(not (failed or has_failed(text)), text)
    return Result(not (failed or has_failed(data)), data)

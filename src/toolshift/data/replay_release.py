"""A recorded conversation as a task, for a coming change that needs to know what one says.

A scene of the sandbox has its user's turns and its calls, and the file of a change is applied to it
by them (`shifts.release.required`): which value an option stands for that is required now, and what
the user has to state. A recording has both as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

from toolshift.core.ask import Ask
from toolshift.core.codecs import leaves, texts_in
from toolshift.core.shift import NotApplicable
from toolshift.core.step import Step
from toolshift.data.conversation import Call, Conversation, Message
from toolshift.data.prepared import Prepared
from toolshift.shifts.release.release import Release, check_settled
from toolshift.shifts.release.required import open_ones, to_state
from toolshift.worlds.own.spare import states

LEAST = 3
"""Characters of a value of a result by which its later use is seen."""


@dataclass(frozen=True)
class RecordedTask:
    """What users say in a recording, and what is called for it."""

    conversation: Conversation

    @cached_property
    def asks(self) -> tuple[Ask, ...]:
        """The user's turns, each with the values of calls that it states."""
        said = (one for one in self.conversation.messages if one.role == "user")
        calls = [call for one in self.conversation.messages for call in one.calls]
        return tuple(Ask(one.text, stated(calls, one.text), _unsolved, None) for one in said)

    @cached_property
    def calls(self) -> tuple[Step, ...]:
        """The calls, each the true one of itself."""
        made = (call for one in self.conversation.messages for call in one.calls)
        return tuple(
            Step("call", place, call.name, call.arguments, true=((call.name, call.arguments),))
            for place, call in enumerate(made)
        )


def _unsolved(solver: object, env: object) -> str:
    return ""


def stated(calls: list[Call], text: str) -> dict[str, Any]:
    """The values of calls that a text states, by the parameter that takes them."""
    found: dict[str, Any] = {}
    for call in calls:
        for name, value in call.arguments.items():
            if isinstance(value, bool) or not isinstance(value, str | int | float):
                continue
            if states(text, value):
                found.setdefault(name, value)
    return found


def as_asked(conversation: Conversation, ready: Prepared) -> tuple[Conversation, Prepared]:
    """A conversation with what its user has to state, and the tools as it meets them."""
    if not ready.releases:
        return conversation, ready
    task = RecordedTask(conversation)
    check_settled(ready.releases[0], task)
    sentences = to_state(ready.releases[0], task)
    if sentences:
        conversation = _with_sentences(conversation, sentences)
    return conversation, ready.for_task(task)


def _with_sentences(conversation: Conversation, sentences: list[str]) -> Conversation:
    """What the mapping has the user state, in the first turn of the user."""
    messages = list(conversation.messages)
    place = next((n for n, one in enumerate(messages) if one.role == "user"), None)
    if place is None:
        raise NotApplicable("no user is there to state what the mapping says under [given]")
    text = " ".join([messages[place].text, *sentences])
    messages[place] = msgspec.structs.replace(messages[place], text=text)
    return Conversation(conversation.tools, tuple(messages))


def why_not(release: Release, conversation: Conversation, call: Call, said: str) -> str:
    """Why a recorded call cannot be made by the tools of a change."""
    tools = {name for name, routes in release.routes.items() for r in routes if r.old == call.name}
    left_out = [one for one in open_ones(release, RecordedTask(conversation)) if one.tool in tools]
    if left_out:
        tables = ", ".join(dict.fromkeys(f"[given.{one.tool}]" for one in left_out))
        listed = "; ".join(map(str, left_out[:3]))
        return f"{listed}. Say what users state for it in the mapping, under {tables}"
    return f"{call.name} cannot be said to the new tools{f': {said}' if said else ''}"


def check_needed(
    release: Release, call: Call, result: Message | None, later: list[Message]
) -> None:
    """Checks that a conversation needs a call whose tool is gone, so that a refusal is its end.

    A tool that is known to read may be spared, and a refusal is right only where what it returned
    is used.
    """
    if release.before.sources[call.name].tool.effect == "write":
        return
    values = _values(result.text if result is not None else "")
    told = [one.text for one in later if one.role == "assistant"]
    passed = (text for one in later for made in one.calls for text in texts_in(made.arguments))
    texts = [*told, *passed]
    if not any(value in text for value in values for text in texts):
        raise NotApplicable(
            f"{call.name} is gone, and nothing says that the conversation needs what it returned"
        )


def check_still_shown(lost: Iterable[tuple[int, str, Any]], said: Sequence[Message]) -> None:
    """Checks that nothing is said or called by a value that results show no more.

    Such a value comes with how many messages stand before it and with its place. One that is used
    after that must stand elsewhere in what is shown.
    """
    for begin, place, value in lost:
        if isinstance(value, bool) or value is None:
            continue
        shown = ""
        for number, message in enumerate(said):
            passed = [text for call in message.calls for text in _plain(call.arguments)]
            used = message.role == "assistant" and number >= begin
            if used and any(
                states(text, value) for text in (message.text, message.thought, *passed)
            ):
                if states(shown, value):
                    break
                raise NotApplicable(
                    f"it reads {place}, which results have no more. If that stands elsewhere now, "
                    f"say where in the mapping, under [fields.{place.partition('.')[0]}]"
                )
            shown += f"\n{message.text}" if message.role != "assistant" else ""


def _plain(arguments: dict[str, Any]) -> list[str]:
    return [str(value) for _, value in leaves(arguments)]


def _values(text: str) -> list[str]:
    try:
        data = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        data = text
    records = data if isinstance(data, list) else [data]
    found = [v for one in records if isinstance(one, dict) for _, v in leaves(one)]
    found += [one for one in records if not isinstance(one, dict)]
    return [str(value) for value in found if len(str(value)) >= LEAST]


def difference(recorded: Call, told: dict[str, Any], default: Callable[[str], Any]) -> str:
    """How what an old tool is told differs from what was recorded; "" where it says the same.

    Null says the same as leaving out, and so does what the old tool takes by default.
    """
    was = {name: value for name, value in recorded.arguments.items() if value is not None}
    now = {name: value for name, value in told.items() if value is not None}
    for name, value in was.items():
        if name not in now and value != default(name):
            return f"{name} can no longer be said"
        if name in now and now[name] != value:
            return f"{name} would be {now[name]!r} and not {value!r}"
    for name, value in now.items():
        if name not in was and value != default(name):
            return f"{name} would be {value!r}, and was left out"
    return ""

"""A recorded conversation, played again through the sandbox's layers.

The tools of the recording are the truth, and its results come back as they were recorded. Whoever
called a tool calls the shown one that stands for it, with the same values, and follows what the
layers ask for: a retry, a successor, a page, a second call. What would need a result that nobody
recorded is not applicable; nothing is made up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from toolshift.core.layer import LayerFault
from toolshift.core.shift import NotApplicable
from toolshift.core.tool import first_fault
from toolshift.data.conversation import Call, Conversation, Message, RowFault, ToolList
from toolshift.data.prepared import Prepared
from toolshift.data.replay_calls import played
from toolshift.data.replay_release import as_asked
from toolshift.data.tool_mentions import Seen

# -- whether calls fit -------------------------------------------------------------------------


def check(conversation: Conversation) -> None:
    """Checks that each call that is learned is of a tool on offer, and is what its schema takes."""
    for place, call, wrong in _faults(conversation):
        later = (
            later_call.name
            for message in conversation.messages[place + 1 :]
            for later_call in message.calls
        )
        again = call.name in later
        raise RowFault(f"message {place}: {wrong}{_PUT_RIGHT if again else ''}")


def _faults(conversation: Conversation) -> Iterator[tuple[int, Call, str]]:
    """Each learned call that does not fit, with the place of its message and what is wrong."""
    validators = ToolList.of(conversation.tools).validators
    for place, message in enumerate(conversation.messages):
        for call in message.calls if message.learned else ():
            wrong = fault_of(validators, call.name, call.arguments)
            if wrong:
                yield place, call, wrong


_PUT_RIGHT = (
    """; if it is put right later, give this message `"weight": 0`, and it is not learned"""
)


def fault_of(validators: Mapping[str, Any], name: str, arguments: Mapping[str, Any]) -> str:
    """What is wrong with a call; "" where nothing is, or its schema cannot be used."""
    if not validators:
        return f"{name} is called, and the row lists no tools"
    if name not in validators:
        return f"{name} is called, and is no tool on offer"
    validator = validators[name]
    if validator is None or validator.is_valid(arguments):
        return ""
    return f"{name}: {first_fault(validator, arguments)}"


# -- playing -----------------------------------------------------------------------------------


def replay(conversation: Conversation, ready: Prepared) -> list[Conversation]:
    """The conversation as it goes under the shifts."""
    try:
        made = (
            [_spoken(conversation, ready)]
            if ready.plain
            else played(*as_asked(conversation, ready))
        )
    except LayerFault as fault:
        raise NotApplicable(f"the shift fails on this recording: {fault}") from None
    for part in made:
        for place, _, wrong in _faults(part):
            raise NotApplicable(f"a call would not fit what is shown: message {place}: {wrong}")
    return made


def _spoken(conversation: Conversation, ready: Prepared) -> Conversation:
    """The conversation by other names; nothing else changes."""
    return Conversation(ready.shown, _all_renamed(conversation, ready))


def _all_renamed(conversation: Conversation, ready: Prepared) -> tuple[Message, ...]:
    """The messages of a conversation by other names."""
    seen = Seen(conversation.messages)
    said = enumerate(conversation.messages)
    return tuple(_renamed(message, ready, seen.at(place, message.role)) for place, message in said)


def _renamed(message: Message, ready: Prepared, here: Seen.Here) -> Message:
    if message.role == "user":
        return message
    if message.role == "tool":
        name = message.name
        for surface in ready.surfaces:
            name = surface.names.get(name, name)
        return message if name == message.name else msgspec.structs.replace(message, name=name)
    calls = []
    for call in message.calls:
        name, arguments = call.name, call.arguments
        for surface in ready.surfaces:
            name, arguments = surface.spoken(name, arguments)
        if len(arguments) < len(call.arguments):
            raise NotApplicable(f"two arguments of {call.name} would have one name")
        calls.append(Call(name, arguments, call.id))
    text, thought = ready.say(message.text, here), ready.say(message.thought, here)
    if not calls and text == message.text and thought == message.thought:
        return message
    return msgspec.structs.replace(message, text=text, calls=tuple(calls), thought=thought)


def undone(conversation: Conversation, ready: Prepared, before: Conversation) -> Conversation:
    """What `replay` has renamed, by its old names again."""
    back = tuple(surface.inverse for surface in reversed(ready.surfaces))
    inverse = Prepared(ready.toolbox, ready.scene, ready.kept)
    inverse.__dict__["surfaces"] = inverse.__dict__["speaking"] = back
    inverse.__dict__["prose"] = tuple(prose.inverse for prose in reversed(ready.prose))
    return Conversation(before.tools, _all_renamed(conversation, inverse))

"""TRL's rows of `prompt` and `completion`: one conversation, of which the completion is learned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from toolshift.data.conversation import Conversation, Message, Row, RowFault
from toolshift.data.formats.openai import OPENAI

_SIDES = ("prompt", "completion")


class PromptCompletion:
    """`{"prompt": [...], "completion": [...], "tools": [...]}`, messages as OpenAI has them."""

    name = "prompt-completion"

    def recognises(self, row: Mapping[str, Any]) -> bool:
        """Whether both sides are lists of messages with roles."""
        return all(_are_messages(row.get(side)) for side in _SIDES)

    def read(self, row: Mapping[str, Any]) -> Conversation:
        """The conversation of a row; TRL learns all that the assistant says in the completion."""
        said, count = OPENAI.read(_as_chat(row)), len(row["prompt"])
        return Conversation(
            said.tools,
            tuple(
                msgspec.structs.replace(message, learned=_is_learned(message, count))
                for message in said.messages
            ),
        )

    def write(self, conversation: Conversation, row: Mapping[str, Any] | None) -> Row:
        """A row; what a shift has added and is not to be learned goes into the prompt."""
        if row is None:
            raise RowFault(f"{self.name} is only written in rows that are of it: use --for trl")
        begin = _begin(conversation.messages, len(row["prompt"]))
        plain = tuple(msgspec.structs.replace(m, learned=True) for m in conversation.messages)
        out = OPENAI.write(Conversation(conversation.tools, plain), _as_chat(row))
        said = out.pop("messages")
        made = {**out, "prompt": said[:begin], "completion": said[begin:]}
        return {key: made[key] for key in (*row, *(key for key in made if key not in row))}


def without_sides(row: Row) -> Row:
    """A row without its conversation, for another format that has it elsewhere."""
    return {key: value for key, value in row.items() if key not in _SIDES}


def _are_messages(side: Any) -> bool:
    return (
        isinstance(side, list)
        and bool(side)
        and all(isinstance(each, Mapping) and "role" in each for each in side)
    )


def _as_chat(row: Mapping[str, Any]) -> Row:
    return {**without_sides(dict(row)), "messages": [*row["prompt"], *row["completion"]]}


def _is_learned(message: Message, count: int) -> bool:
    """Whether it is none that the assistant says in the prompt, which has so many messages."""
    return message.role != "assistant" or message.source is None or message.source >= count


def _begin(messages: tuple[Message, ...], count: int) -> int:
    """Where the completion begins: behind the prompt, and behind all that is not to be learned."""
    begin, context = 0, False
    for place, message in enumerate(messages):
        prompted = message.source is not None and message.source < count
        if message.role == "assistant":
            context = not message.learned and not prompted
        elif message.role != "tool":
            context = False
        if prompted or context:
            begin = place + 1
    if any(message.role == "assistant" and message.learned for message in messages[:begin]):
        raise RowFault("a turn before it must not be learned, and TRL learns the whole completion")
    return begin


PROMPT_COMPLETION_ROWS = PromptCompletion()

"""Rows as the trainers of others learn them: nothing is learned that should not be.

    fit = fitted(conversation, TRAINERS["trl"])
    fit.rows                       # in the columns that the trainer reads
    fit.left                       # what it cannot learn rightly, by reason

Trainers differ in one thing above all: how they are told which turns are learned. A failing call is
context, and whoever learns all that the assistant says must not be given it.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import msgspec

from toolshift.core.errors import UsageError
from toolshift.core.intake import counted
from toolshift.core.names import unknown
from toolshift.data.conversation import (
    Call,
    Conversation,
    Message,
    Row,
    RowFault,
    encoded,
    portable,
    turns_of,
    with_ids,
)
from toolshift.data.formats.hermes import HERMES
from toolshift.data.formats.schemas import strict_fault

Learns = Literal["flagged", "completion", "last", "everything"]


class Trainer(msgspec.Struct, frozen=True):
    """What a trainer reads, and what it learns of it.

    Attributes:
        name: as `--for` has it.
        title: as people write it.
        learns: `flagged`: the turns that a flag of theirs does not take out; `completion`: what
            stands in that column; `last`: the last turn of a row; `everything`: all that the
            assistant says.
        how: which turns are learned, and what its configuration must say for that.
        write: a row, of messages whose end is learned.
        thoughts: whether it reads what was thought before a turn.
        beside: whether a turn may have a text beside its calls.
        suffixes: of the files that it reads.
        strict: whether it reads `strict` of a tool, whose schema then has to be as that says.
        names: what names of tools must be like.
        systems: whether a row may have more than one system text.
        first: the roles that the first message after the system text may have; () for any.
        further: whether it passes over columns that it does not know.
    """

    name: str
    title: str
    learns: Learns
    how: str
    write: Callable[[Conversation], Row]
    thoughts: bool = False
    beside: bool = True
    suffixes: tuple[str, ...] = (".jsonl", ".json", ".parquet")
    strict: bool = False
    names: str = ""
    systems: bool = True
    first: tuple[str, ...] = ()
    further: bool = True


class Fitted(msgspec.Struct, frozen=True):
    """A conversation as rows of a trainer.

    Attributes:
        rows: that it learns rightly from.
        left: turns that it cannot learn rightly, and are in no row as learned: how many, by reason.
        lost: what stands beside turns and has no place in its rows: how often, by what it is.
    """

    rows: tuple[Row, ...]
    left: dict[str, int] = {}
    lost: dict[str, int] = {}


def trainer_of(name: str) -> Trainer:
    """The trainer of a name."""
    if name not in TRAINERS:
        raise UsageError(unknown("trainer", name, TRAINERS))
    return TRAINERS[name]


def fitted(conversation: Conversation, trainer: Trainer) -> Fitted:
    """The rows of a conversation for a trainer; each ends with a turn that is learned."""
    conversation = portable(conversation)
    told = _one_speaker_once(with_ids(conversation.messages))
    _check(conversation, told, trainer)
    told, lost = _without_places(told, trainer)
    learned = [n for n, said in enumerate(told) if said.role == "assistant" and said.learned]
    ends, left = _ends(told, learned, trainer)
    tools = tuple(
        msgspec.structs.replace(tool, function=_function(tool.function, trainer))
        for tool in conversation.tools
    )
    parts = (Conversation(tools, told[: end + 1]) for end in ends)
    return Fitted(tuple(map(trainer.write, parts)), left, lost)


def check_suffix(out: Path, trainer: Trainer) -> None:
    """Checks that a trainer reads files of a name."""
    kind = out.with_suffix("").suffix if out.suffix == ".gz" else out.suffix
    if kind not in trainer.suffixes:
        ends = " or ".join(trainer.suffixes)
        raise UsageError(f"--out {out}: {trainer.title} reads no such file; name one ending {ends}")


def said_of(trainer: Trainer, rows: int, left: dict[str, int], lost: dict[str, int]) -> str:
    """Says what was written for whom, how it is learned, and what is not in it."""
    text = f"{counted(rows, 'row')} for {trainer.title}: {trainer.how}."
    for why, count in sorted(left.items(), key=lambda one: -one[1]):
        text += f" Not in it as learned: {counted(count, 'turn')}: {why}."
    for what, count in lost.items():
        text += f" Left out beside turns, as it has no place for them: {what} ({count:,})."
    return text


NOTHING_LEARNED = "nothing in it is learned"


def _ends(
    told: Sequence[Message], learned: list[int], trainer: Trainer
) -> tuple[list[int], dict[str, int]]:
    """The last messages of the rows of a conversation, and the learned turns that are in none."""
    left: Counter[str] = Counter()
    if not learned:
        return [], {NOTHING_LEARNED: 1}
    reach = len(told)
    for limit, why in _limits(told, trainer):
        late = [n for n in learned if limit < n < reach]
        left.update({why: len(late)} if late else {})
        reach = min(reach, limit + 1)
    within = [n for n in learned if n < reach]
    whole = trainer.learns in ("flagged", "everything")
    return (within[-1:] if whole else within), dict(left)


def _limits(told: Sequence[Message], trainer: Trainer) -> Iterator[tuple[int, str]]:
    """The last messages at which a row must end, with the reasons."""
    if trainer.learns == "everything":
        for place, said in enumerate(told):
            if said.role == "assistant" and not said.learned:
                yield (
                    place - 1,
                    f"a turn before it must not be learned, and {trainer.title} learns all that "
                    "the assistant says",
                )
                break
    unanswered = _unanswered(told)
    if unanswered is not None:
        yield unanswered, "a call before it has no result"


def _unanswered(told: Sequence[Message]) -> int | None:
    """The first message with a call that has no result."""
    turns = turns_of(told)
    if turns is None:
        raise RowFault("a result is of no call that stands before it")
    of_turn = [n for n, said in enumerate(told) if said.role != "tool"]
    for place, (_, results) in zip(of_turn, turns, strict=True):
        if None in results:
            return place
    return None


def _one_speaker_once(told: Sequence[Message]) -> tuple[Message, ...]:
    """Messages in which what the user says in succession is one, and a text is one with its calls.

    Many chat templates, and LLaMA-Factory and Mistral, take turns only.
    """
    made: list[Message] = []
    for said in told:
        last = made[-1] if made else None
        if last and last.role == said.role == "user":
            made[-1] = msgspec.structs.replace(last, text=f"{last.text}\n\n{said.text}")
        elif (
            last
            and last.role == said.role == "assistant"
            and not last.calls
            and not said.text
            and last.learned == said.learned
        ):
            thought = said.thought or last.thought
            made[-1] = msgspec.structs.replace(said, text=last.text, thought=thought)
        else:
            made.append(said)
    return tuple(made)


def _check(conversation: Conversation, told: Sequence[Message], trainer: Trainer) -> None:
    """Checks what a trainer would refuse, drop or read otherwise."""
    for place, said in enumerate(told):
        if said.more:
            raise RowFault(f"message {place} holds more than text, which {trainer.title} rows lack")
        if said.role == "assistant" and not (said.text or said.calls) and said.learned:
            raise RowFault(f"message {place}: the assistant says nothing, and would learn to")
    _check_order(told, trainer)
    if trainer.names:
        shown = [tool.function["name"] for tool in conversation.tools]
        for name in (*shown, *(call.name for said in told for call in said.calls)):
            if not re.fullmatch(trainer.names, name):
                raise RowFault(f"{trainer.title} takes no tool by the name {name!r}")


def _check_order(told: Sequence[Message], trainer: Trainer) -> None:
    """Checks who speaks when."""
    for before, after in pairwise(told):
        if trainer.first and before.role == after.role == "assistant":
            raise RowFault(
                f"two turns of the assistant follow each other, which {trainer.title} does not take"
            )
    system = [n for n, said in enumerate(told) if said.role == "system"]
    if not trainer.systems and system not in ([], [0]):
        raise RowFault(f"{trainer.title} takes one system text, and that at the beginning")
    rest = told[len(system) :] if system == list(range(len(system))) else told
    if trainer.first and rest and rest[0].role not in trainer.first:
        raise RowFault(f"{trainer.title} takes no row in which the {rest[0].role} speaks first")


def _without_places(
    told: tuple[Message, ...], trainer: Trainer
) -> tuple[tuple[Message, ...], dict[str, int]]:
    """Messages without what a trainer has no place for, and how many had some of it."""
    lost: Counter[str] = Counter()
    made = []
    for said in told:
        thought, text = said.thought, said.text
        if thought and not trainer.thoughts:
            lost["thoughts"] += 1
            thought = ""
        if said.calls and text and not trainer.beside:
            lost["texts beside calls"] += 1
            text = ""
        made.append(msgspec.structs.replace(said, thought=thought, text=text))
    return tuple(made), dict(lost)


def _function(function: dict[str, Any], trainer: Trainer) -> dict[str, Any]:
    """A tool as it is shown; `strict` is said only of a schema that is so, where it is read."""
    shown = {"name": function["name"], "description": function.get("description") or ""}
    shown["parameters"] = function.get("parameters") or {"type": "object", "properties": {}}
    strict = function.get("strict") is True
    if strict and trainer.strict and not strict_fault(shown["parameters"]):
        shown["strict"] = True
    return shown


# -- as each of them reads rows ----------------------------------------------------------------


def _tools(conversation: Conversation) -> list[dict[str, Any]]:
    return [{"type": "function", "function": tool.function} for tool in conversation.tools]


def _said(message: Message, arguments: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    """A message as OpenAI has it."""
    out: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.thought:
        out["reasoning_content"] = message.thought
    if message.calls:
        out["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": arguments(call.arguments)},
            }
            for call in message.calls
        ]
    if message.role == "tool":
        out |= {"tool_call_id": message.call_id}
        out |= {"name": message.name} if message.name else {}
    return out


def _as_data(arguments: dict[str, Any]) -> dict[str, Any]:
    return arguments


def _flagged(conversation: Conversation, flag: str, values: tuple[Any, Any]) -> list[Any]:
    """Messages of which those of the assistant say whether they are learned."""
    return [
        {**_said(said, encoded), flag: values[said.learned]}
        if said.role == "assistant"
        else _said(said, encoded)
        for said in conversation.messages
    ]


def _trl(conversation: Conversation) -> Row:
    # Chat templates write arguments as JSON themselves; tools as text have no holes of Arrow.
    *prompt, last = [_said(said, _as_data) for said in conversation.messages]
    return {"prompt": prompt, "completion": [last], "tools": encoded(_tools(conversation))}


def _openai(conversation: Conversation) -> Row:
    messages = _flagged(conversation, "weight", (0, 1))
    tools = _tools(conversation)  # an empty list is refused
    return {"messages": messages, **({"tools": tools} if tools else {})}


def _axolotl(conversation: Conversation) -> Row:
    messages = _flagged(conversation, "train", (False, True))
    return {"messages": messages, "tools": encoded(_tools(conversation))}


_BETWEEN_RESULTS = "\n</tool_response>\n<tool_response>\n"
"""As LLaMA-Factory itself joins the results of calls that are made at once."""
_SPEAKERS = {"user": "human", "tool": "observation", "assistant": "gpt", "system": "system"}


def _llama_factory(conversation: Conversation) -> Row:
    turns: list[dict[str, str]] = []
    for said in conversation.messages:
        speaker, text = _SPEAKERS[said.role], said.text
        if said.calls:
            listed = encoded([{"name": c.name, "arguments": c.arguments} for c in said.calls])
            speaker = "function_call"
            text = f"{text}<tool_call>{listed}</tool_call>" if text else listed
        if turns and said.role == "tool" and turns[-1]["from"] == speaker:
            turns[-1]["value"] += f"{_BETWEEN_RESULTS}{text}"
        else:
            turns.append({"from": speaker, "value": text})
    functions = [tool.function for tool in conversation.tools]
    return {"conversations": turns, "tools": encoded(functions) if functions else ""}


def _verl(conversation: Conversation) -> Row:
    # One message at a time goes through the chat template, and columns have one type: all is text.
    turns = HERMES.write(conversation, None)["conversations"] if conversation.tools else None
    if turns is None:
        return {"messages": [{"role": m.role, "content": m.text} for m in conversation.messages]}
    roles = {"human": "user", "gpt": "assistant", "tool": "user"}
    return {
        "messages": [
            {"role": roles.get(turn["from"], turn["from"]), "content": turn["value"]}
            for turn in turns
        ]
    }


def _mistral(conversation: Conversation) -> Row:
    named = tuple(
        msgspec.structs.replace(
            said,
            calls=tuple(Call(c.name, c.arguments, _nine(c.id)) for c in said.calls),
            call_id=_nine(said.call_id) if said.call_id else "",
        )
        for said in conversation.messages
    )
    return _openai(Conversation(conversation.tools, named))


def _nine(own: str) -> str:
    """An id of nine letters and digits, as Mistral has them."""
    return hashlib.sha256(own.encode()).hexdigest()[:9]


_API_NAMES = r"[a-zA-Z0-9_-]{1,64}"

TRAINERS = {
    each.name: each
    for each in (
        Trainer(
            "trl",
            "TRL",
            "completion",
            "a row for each learned turn, as `prompt` and `completion`; SFTTrainer learns the "
            "completion (its default)",
            _trl,
            thoughts=True,
        ),
        Trainer(
            "openai",
            "OpenAI's fine-tuning API",
            "flagged",
            "whole conversations; a turn with `weight` 0 is not learned",
            _openai,
            suffixes=(".jsonl",),
            strict=True,
            names=_API_NAMES,
            further=False,
        ),
        Trainer(
            "llama-factory",
            "LLaMA-Factory",
            "last",
            "a row for each learned turn, which is its last; set `mask_history: true`, else "
            "failing calls are learned (`formatting: sharegpt`, columns `conversations`, `tools`)",
            _llama_factory,
            suffixes=(".jsonl", ".json", ".parquet"),
            systems=False,
            first=("user",),
        ),
        Trainer(
            "axolotl",
            "axolotl",
            "flagged",
            "whole conversations; set `type: chat_template` and `message_field_training: train`, "
            "else failing calls are learned",
            _axolotl,
            thoughts=True,
        ),
        Trainer(
            "verl",
            "verl",
            "everything",
            "conversations up to the first turn that is not to be learned, as verl learns all that "
            "the assistant says; tools and calls are text, as Hermes has them",
            _verl,
            suffixes=(".parquet",),
        ),
        Trainer(
            "mistral",
            "mistral-finetune",
            "last",
            "a row for each learned turn, which is its last, as mistral-finetune learns no other "
            "where tools are listed",
            _mistral,
            beside=False,
            suffixes=(".jsonl",),
            names=_API_NAMES,
            systems=False,
            first=("user",),
            further=False,
        ),
    )
}
"""The trainers that `--for` names."""

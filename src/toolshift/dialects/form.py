"""The one form of requests and answers, and what a dialect has to say of itself.

A message is a dict as OpenAI's chat completions have it: `role`, `content`, `tool_calls`,
`tool_call_id`. A codec of another dialect leaves its own items in the field `wire` of a message
or of a call: {"dialect": its name, ...}. Nothing but that codec reads them. It writes an item back
as it was where the message still says what was read from it, and patches it elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from toolshift.core.message import Usage, text_of
from toolshift.core.values import is_number

Message = dict[str, Any]
Body = dict[str, Any]
WIRE = "wire"
"""The field of a message or a call that holds what its codec read it from."""
AGAIN = "again"
"""A field in `WIRE`: of a message that became two, this one has calls alone; the rest is said."""
LIKE = "like"
"""A field in `WIRE`: of a result that was added, what was left in another, whose form it takes."""
SIGNED = "a thought names what has another name now, and is signed: it cannot be changed"
Variables = tuple[tuple[str, ...], tuple[str, ...]]
"""Variables of the environment that hold a base address, and those that hold a key."""
Reason = Literal["", "length", "content_filter", "broken", "broken_call"]
"""Why a reply ended before its time; "broken" is for a fault of what serves the model, and
"broken_call" for a call that the model wrote so that its server could not read it."""


@dataclass(frozen=True)
class Request:
    """What of a request to a model is read.

    Attributes:
        messages: the conversation so far, in the form of chat completions.
        tools: {"type": "function", "function": {...}}, of those that are functions.
        choice: `tool_choice`, in the form of chat completions; None where it is not said.
        stream: whether the answer is to come in pieces.
        follows: the answer that it goes on from, by its id, where the server keeps them.
        known: how many of the first messages the server has kept; they are not sent again.
    """

    messages: list[Message]
    tools: list[dict[str, Any]] = field(default_factory=list)
    choice: Any = None
    stream: bool = False
    follows: str = ""
    known: int = 0


@dataclass(frozen=True)
class Answer:
    """What of a model's answer is read.

    Attributes:
        message: of the assistant, in the form of chat completions.
        usage: the record of tokens, in the dialect's own form; None where there is none.
        reason: why it ended before its time; "" where it did not.
        id: under which a request may follow it; "" where none may.
        ended: the same in the words of the server, where it is broken or the words are not known.
    """

    message: Message
    usage: Any = None
    reason: Reason = ""
    id: str = ""
    ended: str = ""


class Stream(Protocol):
    """An answer while it arrives in pieces.

    What is no tool call may go on at once. Calls wait until they are whole, for their names and
    arguments are to change.
    """

    def add(self, event: str, data: str) -> Iterable[bytes]:
        """Takes one event in; gives the frames that may go on to the agent now.

        A `ToldError` where the event says that the model's server has failed, a `ValueError` where
        it cannot be read.
        """
        ...

    @property
    def whole(self) -> bool:
        """Whether the end of the message has come."""
        ...

    @property
    def answer(self) -> Answer:
        """The message so far."""
        ...

    def again(self) -> Stream:
        """The stream of a further answer, which the agent reads as part of this one."""
        ...

    def closing(self, message: Message, usage: Any, cut: bool) -> Iterable[bytes]:
        """The last frames: the calls of a message, why it ended, and what all answers cost.

        The message is for the agent, its calls in the agent's names.
        """
        ...


class ToldError(Exception):
    """A server has told of an error in a stream that had begun.

    Args:
        error: as it was told.
    """

    def __init__(self, error: object) -> None:
        super().__init__(error)
        self.error = error


class Dialect(Protocol):
    """How one API has requests, answers and streams.

    Attributes:
        name: of the dialect, as a spec of an agent begins.
        answers: what its answers are called, as in "the model's answer is no chat completion".
        path: what stands behind the version in the address of a request.
        home: the vendor's own address, where no other is given; with its version.
        temperature: at which a model is measured where none is asked for; None leaves it out.
        variables: of the environment, for the base address and the key; the first found counts.
    """

    name: str
    answers: str
    path: str
    home: str
    temperature: float | None
    variables: Variables

    # -- as a server is asked ------------------------------------------------------------------

    def takes(self, method: str, path: str) -> bool:
        """Whether a request to a path, which begins with its version (`/v1/...`), is of it."""
        ...

    def unshifted(self, body: Body, path: str) -> str:
        """The first thing in a request that is not shifted, in words; "" where there is none.

        What is on no list of what is known is not shifted (`dialects.chat_scope` says why).
        """
        ...

    def read(self, body: Body, path: str = "") -> Request:
        """Reads a request; a `ValueError` where it is none."""
        ...

    def write(self, body: Body, request: Request) -> Body:
        """A request as `body`, with other messages, tools and choice; `body` may have none yet."""
        ...

    def error(self, status: int, why: str) -> Body:
        """An error in the form in which the dialect's clients read one."""
        ...

    def error_frame(self, error: object) -> bytes:
        """An error in a stream that has begun; as a server told it, or {"message": why}."""
        ...

    # -- as a model answers --------------------------------------------------------------------

    def recognises(self, body: Body) -> bool:
        """Whether a JSON object is an answer of this dialect, which `read_answer` then reads."""
        ...

    def read_answer(self, body: Body) -> Answer | None:
        """Reads a whole answer; None where it is an error that came with HTTP 200.

        Where it is no answer of the dialect, that is a `ValueError`.
        """
        ...

    def write_answer(
        self, body: Body, message: Message, usage: Any, cut: bool, asked: Body
    ) -> Body:
        """The model's answer `body` for the agent, with another message and record of tokens.

        `cut` says that it was ended at a limit; `asked` is the agent's request, some of which an
        answer repeats.
        """
        ...

    def stream(self, asked: Body) -> Stream:
        """What takes the pieces of an answer to the agent's request in."""
        ...

    # -- as an agent asks ----------------------------------------------------------------------

    def address(self, base_url: str, model: str) -> str:
        """Where an agent sends its requests; `base_url` ends before the path of the dialect."""
        ...

    def settings(self, model: str, temperature: float | None, max_tokens: int) -> Body:
        """A request for these settings, without a conversation; None leaves the temperature out."""
        ...

    def instead_of(self, field: str) -> Sequence[str]:
        """Fields that some models take in the place of one that they refuse."""
        ...

    def headers(self, key: str) -> Mapping[str, str]:
        """The headers with which a key is sent, and those that every request has."""
        ...

    def tokens(self, usage: Any) -> Usage:
        """A record of tokens, read."""
        ...


def texts_now(message: Message, before: Sequence[str], between: str = "") -> list[str]:
    """What a message says now, for each of the texts that it was read from.

    `between` are the lines that stood between them where they were read as one text. Where it
    cannot be told which text says what, the first says all, and the others are "".
    """
    text, content = text_of(message), message.get("content")
    if text == between.join(before):
        return list(before)
    found = [text_of({"content": [one]}) for one in content] if isinstance(content, list) else []
    if between:
        found = _by_lines(text, before, between.count("\n"))
    return found if len(found) == len(before) > 0 else [text, *[""] * (len(before) - 1)]


def _by_lines(text: str, before: Sequence[str], gap: int) -> list[str]:
    """A text cut into as many as there were, each of as many lines; none where lines came or went.

    `gap` is the number of line breaks that stand between two of them.
    """
    lines, found = text.split("\n"), list[str]()
    place = 0
    for one in before:
        end = place + one.count("\n") + 1
        found.append("\n".join(lines[place:end]))
        place = end + gap - 1
    return found if place == len(lines) + gap - 1 else []


VERSIONS = ("model", "modelVersion", "model_version")
"""The fields in which vendors name a model with its date or version."""


def named_model(answer: Mapping[str, Any]) -> str:
    """How the model that gave an answer names itself, with its version and fingerprint.

    Vendors have one field for the name with its date, and some a fingerprint of what serves it.
    """
    return " ".join(_texts(answer, (*VERSIONS, "system_fingerprint")))


def version_of(answer: Mapping[str, Any]) -> str:
    """How the model that gave an answer names itself, with its version alone."""
    return " ".join(_texts(answer, VERSIONS))


def _texts(answer: Mapping[str, Any], fields: Sequence[str]) -> list[str]:
    return [name for field in fields if isinstance(name := answer.get(field), str) and name]


def added(first: object, second: object) -> Any:
    """Two records of tokens as one: numbers add up, through every level."""
    if isinstance(first, dict) and isinstance(second, dict):
        keys = dict.fromkeys([*first, *second])
        return {key: added(first.get(key), second.get(key)) for key in keys}
    if isinstance(first, int | float) and isinstance(second, int | float):
        return first + second
    return second if second is not None else first


def number(record: Any, *path: str) -> int:
    """A count in a record of tokens; 0 where there is none."""
    for key in path:
        record = record.get(key) if isinstance(record, Mapping) else None
    if isinstance(record, str) and record.isascii() and record.isdecimal():
        record = float(record)
    return int(record) if is_number(record) and 0 <= record < 1e15 else 0

"""The dialects in which models are spoken to, each a codec from and to one form.

The form is that of OpenAI's chat completions (`dialects.form`): messages, tools, a choice of tool.
A codec keeps what it does not read, so that what is written back has the same bytes as what was
read, but for what a shift changed.
"""

from __future__ import annotations

from typing import Any

import msgspec

from toolshift.core.message import Reply, Turn
from toolshift.core.registry import Registry, no_such
from toolshift.dialects.form import Body, Dialect, Request

DIALECTS: Registry[Dialect] = Registry(
    "dialect",
    {
        "chat": "toolshift.dialects.chat:CHAT",
        "responses": "toolshift.dialects.responses:RESPONSES",
        "anthropic": "toolshift.dialects.anthropic:ANTHROPIC",
        "gemini": "toolshift.dialects.gemini:GEMINI",
    },
    "toolshift.dialects",
    wrong=no_such(Dialect, "dialect"),
)


def dialect_of(method: str, path: str) -> Dialect | None:
    """The dialect of a request to a model's server, by its path; None where it is of none."""
    return next((one for one in DIALECTS.all().values() if one.takes(method, path)), None)


def as_request(
    turn: Turn,
    dialect: str,
    model: str = "",
    temperature: float | None = None,
    max_tokens: int = 4096,
) -> Body:
    """A turn as the body of a request, for functions that ask a model themselves.

    Args:
        turn: the messages so far and the tools on offer.
        dialect: a name of `DIALECTS`, such as "anthropic".
        model: its name at the endpoint.
        temperature: None leaves it out.
        max_tokens: the most tokens of the reply.

    Returns:
        The body as a dict: `client.messages.create(**as_request(turn, "anthropic", "..."))`. What
        the model's answer holds may be returned as it is: `read_reply` reads it.

    Raises:
        UsageError: for an unknown dialect.
    """
    spoken = DIALECTS.find(dialect)
    settings = spoken.settings(model, temperature, max_tokens)
    return spoken.write(settings, Request(list(turn.messages), list(turn.tools)))


def read_reply(given: object) -> Reply:
    """Reads what an agent has returned, in whatever form.

    Args:
        given: a `Reply`, a text, an assistant message of chat completions, or a whole answer of
            any dialect; a client's own object, too, where it has `model_dump`.

    Returns:
        The reply, with what came beside it.

    Raises:
        TypeError: for anything else, naming what came.
    """
    if isinstance(given, Reply | str):
        return Reply.of(given)
    raw = _as_dict(given)
    if not isinstance(raw, dict):
        return Reply.of(raw)
    if raw.get("role") == "assistant" and isinstance(raw.get("content"), str | None):
        return Reply.of(raw)
    for dialect in DIALECTS.all().values():
        if dialect.recognises(raw):
            try:
                answer = dialect.read_answer(raw)
            except (ValueError, LookupError) as odd:
                raise TypeError(f"an agent returned no {dialect.answers}: {odd}") from None
            if answer is None:
                raise TypeError(f"an agent returned an error, and no {dialect.answers}")
            usage = dialect.tokens(answer.usage)
            broken = f"the endpoint broke the reply off: {answer.ended}"
            failure = broken if answer.reason == "broken" else ""
            return msgspec.structs.replace(Reply.of(answer.message), usage=usage, failure=failure)
    return Reply.of(raw)


def _as_dict(given: object) -> Any:
    dump = getattr(given, "model_dump", None)
    return dump(mode="json", by_alias=True, exclude_unset=True) if callable(dump) else given

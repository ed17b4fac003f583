"""Who acts: the contract between an agent and an episode.

An agent is anything that, given the conversation so far and the tools on offer, returns an
OpenAI-style assistant message. Nothing else is asked of it, so a model, a framework or a plain
function all fit. Three protocol tools end or pause an episode explicitly; prose is read by the
rule in `read_prose` and reported apart.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import jsonschema_rs
import msgspec

if TYPE_CHECKING:
    from threading import Event

    from toolshift.episode.episode import Episode

REASONS = ("service_failure", "tool_unavailable", "contradictory_request", "not_found")
"""The reasons for which a refusal can be right; `refuse` takes one of them."""

FINAL_ANSWER, REFUSE, ASK_USER = "final_answer", "refuse", "ask_user"


def _protocol_tool(name: str, description: str, properties: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": schema},
    }


PROTOCOL_TOOLS: tuple[dict[str, Any], ...] = (
    _protocol_tool(
        FINAL_ANSWER,
        "Give the user the final answer to the current request.",
        {"answer": {"type": "string", "description": "The requested code or value."}},
    ),
    _protocol_tool(
        REFUSE,
        "Stop because the request cannot be fulfilled, and say why.",
        {"reason": {"type": "string", "enum": list(REASONS), "description": "Why it fails."}},
    ),
    _protocol_tool(
        ASK_USER,
        "Ask the user one question about the request.",
        {"question": {"type": "string", "description": "The question."}},
    ),
)
PROTOCOL_NAMES = frozenset((FINAL_ANSWER, REFUSE, ASK_USER))
"""Every conversation offers these beside its tools; `protocol_tools` gives copies of them."""
_PROTOCOL_JSON = msgspec.json.encode(PROTOCOL_TOOLS)
_PROTOCOL_CHECKS = {
    tool["function"]["name"]: jsonschema_rs.validator_for(tool["function"]["parameters"])
    for tool in PROTOCOL_TOOLS
}


def protocol_tools() -> list[dict[str, Any]]:
    """The protocol tools as fresh dicts, which their reader may change."""
    tools: list[dict[str, Any]] = msgspec.json.decode(_PROTOCOL_JSON)
    return tools


def protocol_error(name: str, arguments: dict[str, Any] | str) -> tuple[str, str]:
    """The code and the words for what is wrong with a protocol call; empty where nothing is."""
    if not isinstance(arguments, dict):
        return "malformed_arguments", "The arguments are not a JSON object."
    fault = next(_PROTOCOL_CHECKS[name].iter_errors(arguments), None)
    return ("invalid_arguments", f"{name}: {fault.message}") if fault else ("", "")


class ToolCall(msgspec.Struct, frozen=True):
    """One call as the agent spoke it; `arguments` stays a string where it was not valid JSON."""

    name: str
    arguments: dict[str, Any] | str
    id: str = ""


class Usage(msgspec.Struct, frozen=True):
    """Tokens of one reply, and its price in dollars where known."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0


class Turn(msgspec.Struct, frozen=True):
    """What an agent is given: the messages so far and the tools on offer now (OpenAI format)."""

    messages: Sequence[dict[str, Any]]
    tools: Sequence[dict[str, Any]]


class Reply(msgspec.Struct, frozen=True):
    """What an agent returns: tool calls, or prose.

    `failure` says that the agent's infrastructure (not the agent) failed: the episode ends as an
    infrastructure error, counted and never scored.
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    failure: str = ""

    @classmethod
    def of(cls, message: Reply | str | dict[str, Any]) -> Reply:
        """Reads a string or an OpenAI assistant message (`content`, `tool_calls`).

        Raises:
            TypeError: for anything else, naming what came.
        """
        if isinstance(message, Reply):
            calls = tuple(map(_writable, message.calls))
            return msgspec.structs.replace(message, text=_sound(message.text), calls=calls)
        if isinstance(message, str):
            return cls(text=_sound(message))
        if not isinstance(message, dict):
            raise TypeError(
                f"an agent returns a string or an assistant message, not {type(message).__name__}"
            )
        if not message.keys() & {"content", "tool_calls", "role"}:
            found = ", ".join(map(str, message))
            raise TypeError(f"an assistant message has content or tool_calls, not {found}")
        calls = tuple(_read_call(raw) for raw in message.get("tool_calls") or ())
        return cls(text=_sound(text_of(message)), calls=calls)


def text_of(message: dict[str, Any]) -> str:
    """What an assistant message says beside its calls; parts of a text are put together."""
    content = message.get("content") or message.get("refusal") or ""
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return str(content)


def _read_call(raw: Any) -> ToolCall:
    function = raw.get("function", raw) if isinstance(raw, dict) else None
    if not isinstance(function, dict):
        raise TypeError(f"a tool call has a function with name and arguments, not {raw!r:.80}")
    arguments = function.get("arguments") or {}
    if isinstance(arguments, str):
        try:
            decoded = msgspec.json.decode(_sound(arguments))
        except (msgspec.DecodeError, RecursionError):
            decoded = arguments
        arguments = decoded if isinstance(decoded, dict) else arguments
    name, call_id = str(function.get("name") or ""), str(raw.get("id") or "")
    return _writable(ToolCall(name, arguments, call_id))


def _writable(call: ToolCall) -> ToolCall:
    """The call as a file can hold it; arguments that are no object become the text of them."""
    arguments: Any = call.arguments
    text = _sound(arguments) if isinstance(arguments, str) else _json(arguments)
    held = arguments if isinstance(arguments, dict) else text
    return ToolCall(_sound(call.name), held, _sound(call.id))


def _sound(text: str) -> str:
    """The text, with `?` for halves of characters (lone surrogates): no file can hold those."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _json(arguments: Any) -> str:
    try:
        return msgspec.json.encode(arguments).decode()
    except (TypeError, ValueError, RecursionError) as fault:
        raise TypeError(f"the arguments of a tool call are no JSON ({fault})") from None


@runtime_checkable
class Agent(Protocol):
    """Anything with a name that answers a turn.

    An agent may also offer `reply_batch(turns) -> list[Reply]`; a study then steps many episodes
    together, and calls its `release()`, if there is one, when they have ended. `concurrency` (an
    int attribute) bounds how many episodes run at once. A `decoding` attribute labels results that
    were made under a constraint.
    """

    name: str

    def reply(self, turn: Turn) -> Reply | str | dict[str, Any]:
        """Answers one turn with an assistant message."""
        ...


@runtime_checkable
class ScriptedAgent(Protocol):
    """An agent from inside the instrument, which drives its episode and may look at the scene."""

    name: str

    def play(self, episode: Episode) -> None:
        """Acts until the episode is over."""
        ...


@runtime_checkable
class OutsideAgent(Protocol):
    """An agent in a program of its own, which drives its episode over a wire.

    `concurrency` (an int attribute) bounds how many episodes run at once.
    """

    name: str

    def drive(self, episode: Episode, stop: Event) -> None:
        """Lets the program act until the episode is over; returns early once `stop` is set."""
        ...


class CallableAgent:
    """Wraps a plain function of (messages, tools) as an agent."""

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self.function = function
        self.name = name

    def reply(self, turn: Turn) -> Reply:
        """Calls the function with the messages and the tools."""
        return Reply.of(self.function(list(turn.messages), list(turn.tools)))


CODE = re.compile(r"\b[B-DF-HJ-NP-TV-XZ2-9]{4}-[B-DF-HJ-NP-TV-XZ2-9]{4}\b")
"""The form of the codes that answers are."""
_REFUSAL = re.compile(
    r"\b(cannot|can't|can not|could not|couldn't|unable to|not able to|impossible|"
    r"(is not|isn't) (possible|registered)|no longer|not available|unavailable|"
    r"(does not|doesn't|do not|don't) (exist|have)|no such|there is no|there's no|nothing to|"
    r"contradict\w*|permanently|decommissioned|failed|sorry|unfortunately|regrettably)\b",
    re.IGNORECASE,
)
_REASON_MARKS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("contradictory_request", re.compile(r"contradict|conflict|both|incompatib|inconsisten", re.I)),
    (
        "tool_unavailable",
        re.compile(
            r"no tool|tool.*(missing|unavailable|not available|no longer|removed)|a (tool|way) "
            r"(to|for)|toolbox|\bremoved|no longer exist",
            re.I,
        ),
    ),
    (
        "not_found",
        re.compile(
            r"not (be )?f(ou|i)nd|n't be found|no (such|record|match|result)|n(o|')t exist|find|"
            r"there is no (?!way)|n(o|')t (in|registered)\b",
            re.I,
        ),
    ),
    (
        "service_failure",
        re.compile(r"error|fail|outage|down|unavailable|broken|perman|decommission|overload", re.I),
    ),
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_POLITE = re.compile(r"(anything|something) else|can i (help|assist)|help you (with|further)", re.I)
_OFFER = re.compile(r"(would you like|do you want me|shall i|should i|can i|may i)\b", re.I)
_REQUEST = re.compile(
    r"\bplease (provide|specify|clarify|confirm|tell me|give me)\b|without knowing\b|"
    r"\blet me know the\b|\b(let me know|tell me) (which|what|who|when|whether|how)\b|"
    r"\bI(?:'ll| will)?(?: first| still)? (need|require) (to know|the|your|more)\b",
    re.IGNORECASE,
)


def read_prose(text: str, shown: str = "") -> tuple[Literal["question", "refusal", "answer"], str]:
    """Reads a message that ends a turn in prose instead of through the protocol.

    The rule, in this order: a message that states a code which was shown in the episode is an
    answer; one that ends in a question, or asks for a detail ("please provide ..."), is a question,
    unless it only offers something; one that says the task cannot be done ("cannot", "no such",
    "failed", ...) is a refusal, its reason the first of contradiction, missing tool, not found and
    failure whose words appear; one that ends in an offer, other than of any more help, is a
    question; anything else is an answer. `studies/prose_finishes` measures it.

    Args:
        text: the message.
        shown: the results that the agent has seen.

    Returns:
        The kind, and the refusal's reason ("" where none can be read).
    """
    if any(code in shown for code in CODE.findall(text.upper())):
        return "answer", ""
    text = text.replace("\u2019", "'").strip()
    sentences = _SENTENCE.split(text)
    last = sentences[-1]
    ends_asking = last.endswith("?") and not _POLITE.search(last)
    offers = _OFFER.match(last) is not None
    if (ends_asking and not offers) or any(map(_asks_detail, sentences)):
        return "question", ""
    if _REFUSAL.search(text):
        return "refusal", next((name for name, mark in _REASON_MARKS if mark.search(text)), "")
    return ("question" if ends_asking else "answer"), ""


def _asks_detail(sentence: str) -> bool:
    """Whether a sentence asks the user for something without a question mark."""
    return bool(_REQUEST.search(sentence)) and not re.search(r"\bif\b", sentence, re.IGNORECASE)

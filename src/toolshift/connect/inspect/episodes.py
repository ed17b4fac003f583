"""What an Inspect sample holds of an episode: the live one, its tools, and the kept trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    ModelOutput,
)
from inspect_ai.solver import TaskState
from inspect_ai.tool import ToolCall as InspectCall
from inspect_ai.tool import ToolCallError, ToolDef, ToolInfo, ToolParams

from toolshift.connect.inspect.current import sample_state
from toolshift.connect.inspect.schema import simplify
from toolshift.core.calls import (
    Call,
    ToolCall,
    Unreadable,
    malformed_call,
    read_arguments,
    read_call,
)
from toolshift.core.errors import UsageError
from toolshift.core.message import PROTOCOL_NAMES, Reply, Usage
from toolshift.core.scene import Scene
from toolshift.core.step import Step
from toolshift.core.tool import JSON
from toolshift.episode.budget import Budget
from toolshift.episode.episode import End, Episode
from toolshift.runs.cell import Cell, build

STORE = "toolshift"
_live: dict[str, Episode] = {}


class Kept(msgspec.Struct, frozen=True):
    """The trace of a sample as its log holds it, enough to grade it again."""

    end: End
    steps: tuple[Step, ...]


# -- the live episode --------------------------------------------------------------------------


def scene_of(metadata: dict[str, Any]) -> Scene:
    """The scene of a sample, made again from its metadata."""
    return build(msgspec.convert(metadata["cell"], Cell))


def episode_of(state: TaskState) -> Episode:
    """The episode of a running sample; it begins when it is first asked for."""
    if state.uuid not in _live:
        scene = scene_of(state.metadata)
        budget = Budget.of(scene, int(state.metadata.get("max_repeats", 0)))
        trial = int(state.metadata["cell"].get("trial", 0))
        _live[state.uuid] = Episode(scene, budget, trial)
    return _live[state.uuid]


def current_episode() -> Episode:
    """The episode of the sample that this code runs in."""
    state = sample_state()
    if state is None:
        raise UsageError("there is no Inspect sample here: use this inside a solver or a tool")
    return episode_of(state)


def keep(state: TaskState) -> None:
    """Writes the trace into the sample's store, from where it is graded."""
    episode = episode_of(state)
    kept = Kept(episode.end, tuple(episode.steps))
    state.store.set(STORE, msgspec.json.decode(JSON.encode(kept)))


async def forget(state: TaskState) -> None:
    """Lets the episode of a finished sample go."""
    _live.pop(state.uuid, None)


def kept_of(state: TaskState) -> Kept:
    """The trace that a sample has kept; an empty one where it never began."""
    kept = state.store.get(STORE)
    return msgspec.convert(kept, Kept) if kept else Kept("", ())


# -- tools -------------------------------------------------------------------------------------


def tool_info(tool: dict[str, Any]) -> ToolInfo:
    """A tool in the OpenAI format as Inspect shows it to a model."""
    function = tool["function"]
    return ToolInfo(
        name=function["name"],
        description=function["description"],
        parameters=ToolParams(**simplify(function["parameters"]).schema),
    )


def losses_of(tools: Sequence[dict[str, Any]]) -> list[str]:
    """What Inspect's schemas cannot say of these tools."""
    return [
        f"{tool['function']['name']}{loss}"
        for tool in tools
        for loss in simplify(tool["function"]["parameters"]).losses
    ]


def offered_tools() -> list[Any]:
    """The tools of the running sample's scene that are on offer now, as Inspect's."""
    return [_executable(tool).as_tool() for tool in current_episode().observation.tools]


def _executable(tool: dict[str, Any]) -> ToolDef:
    info = tool_info(tool)
    for name, param in info.parameters.properties.items():
        param.description = param.description or name

    async def execute(**kwargs: Any) -> str:
        return make_call(read_call(info.name, kwargs))

    return ToolDef(
        tool=execute,
        name=info.name,
        description=info.description or info.name,
        parameters=info.parameters,
        parallel=False,
    )


def make_call(call: Call) -> str:
    """Makes a call that an agent's own loop has asked for, and says what came back."""
    state = sample_state()
    episode = current_episode()
    if episode.end:
        return "The conversation is over."
    before = len(episode.steps)
    episode.take(Reply(calls=(call,)))
    if state is not None:
        keep(state)
    return "\n".join(_heard(call.name, step) for step in episode.steps[before:]) or "Noted."


def make_rejected_calls(messages: Sequence[ChatMessage]) -> None:
    """Makes the calls of the last turn that Inspect has answered itself.

    It does so where a tool is unknown to it, or arguments do not fit. Such a call is a mistake of
    the model that the trace must hold, it spends the budget, and the model is to read of it what
    it reads elsewhere: the text of the answer is put in place of Inspect's. Other errors, as of an
    approver that refuses a call or of a tool of the user's own, stay what they are.
    """
    results: list[ChatMessageTool] = []
    calls: list[InspectCall] = []
    for message in reversed(messages):
        if isinstance(message, ChatMessageAssistant):
            calls = list(message.tool_calls or ())
            break
        if isinstance(message, ChatMessageTool):
            results.insert(0, message)
    for result in results:
        call = next((each for each in calls if each.id == result.tool_call_id), None)
        if call is None:
            continue
        calls.remove(call)
        if result.error is not None and result.error.type == "parsing":
            result.content = make_call(_call_of(call))
            result.error = ToolCallError("parsing", result.content)


def _heard(name: str, step: Step) -> str:
    if step.kind == "answer" or (name in PROTOCOL_NAMES and step.kind == "refuse"):
        said = [step.notice, f"The user says: {step.text}" if step.text else ""]
        return "\n".join(["Delivered.", *filter(None, said)])
    return step.text


# -- messages ----------------------------------------------------------------------------------


def chat_messages(messages: Sequence[dict[str, Any]]) -> list[ChatMessage]:
    """OpenAI messages as Inspect's."""
    return [_message(message, {}) for message in messages]


def take(episode: Episode, output: ModelOutput) -> list[ChatMessage]:
    """Carries out what a model has said; returns what it hears in reply."""
    spoken = len(episode.observation.messages)
    episode.take(reply_of(output))
    said = list(episode.observation.messages[spoken:])
    if not said or output.empty:
        return []
    calls = zip(said[0].get("tool_calls") or (), output.message.tool_calls or (), strict=False)
    ids = {ours["id"]: theirs.id for ours, theirs in calls}
    return [_message(message, ids) for message in said[1:]]


def reply_of(output: ModelOutput) -> Reply:
    """A model's output as a reply; arguments that Inspect could not read stay a string."""
    if output.empty:
        return Reply(failure=f"the endpoint gave no reply: {output.error or 'no choices'}")
    message, used = output.message, output.usage
    if output.stop_reason == "content_filter":
        return Reply(failure="the endpoint withheld the reply (content_filter)")
    calls = tuple(_call_of(call) for call in message.tool_calls or ())
    whole = bool(calls) and all(isinstance(call, ToolCall) for call in calls)
    if output.stop_reason in ("max_tokens", "model_length") and not whole:
        return Reply(failure="truncated: the reply was cut off at the token limit")
    tokens = Usage(used.input_tokens, used.output_tokens) if used else Usage()
    return Reply(message.text, calls, tokens)


def _call_of(call: InspectCall) -> Call:
    if call.parse_error:
        return malformed_call(call.function, call.parse_error, call.id)
    return read_call(call.function, call.arguments, call.id)


def _message(message: dict[str, Any], ids: dict[str, str]) -> ChatMessage:
    role, content = message["role"], message["content"]
    if role == "system":
        return ChatMessageSystem(content=content)
    if role == "user":
        return ChatMessageUser(content=content)
    if role == "tool":
        name = message["tool_call_id"]
        return ChatMessageTool(content=content, tool_call_id=ids.get(name, name))
    calls = [
        InspectCall(
            id=call["id"],
            function=call["function"]["name"],
            arguments=_arguments(call["function"]["arguments"]),
        )
        for call in message.get("tool_calls") or ()
    ]
    return ChatMessageAssistant(content=content, tool_calls=calls or None)


def _arguments(text: str) -> dict[str, Any]:
    """The arguments of a call of the history; none where it was malformed."""
    try:
        return read_arguments(text)
    except Unreadable:
        return {}

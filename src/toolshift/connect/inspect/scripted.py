"""Scripted agents as Inspect models: `--model toolshift/oracle` costs nothing and needs no network.

They look at the scene, so they measure the harness and not a model: the oracle passes everything,
and an agent with a planted weakness fails where `toolshift run` says that it does.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    modelapi,
)
from inspect_ai.tool import ToolChoice, ToolInfo

from toolshift.agents.catalog import make_agent
from toolshift.connect.inspect.current import sample_state
from toolshift.connect.inspect.episodes import chat_messages
from toolshift.core.errors import UsageError
from toolshift.core.tool import JSON
from toolshift.episode.contract import ScriptedAgent
from toolshift.episode.episode import Episode, messages
from toolshift.runs.cell import Cell, build


@modelapi(name="toolshift")  # type: ignore[untyped-decorator]
def provide() -> type[ModelAPI]:
    """Registers the provider."""
    return Scripted


class Scripted(ModelAPI):  # type: ignore[misc]
    """A scripted agent, by the spec of `toolshift run --agent`."""

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        """Says what the agent says in this turn of the sample's scene."""
        state = sample_state()
        if state is None or "cell" not in state.metadata:
            raise UsageError("toolshift/... models work only on ToolShift's tasks")
        cell = JSON.encode(state.metadata["cell"])
        said = _lines(self.model_name, cell)
        turn = sum(isinstance(message, ChatMessageAssistant) for message in input)
        if turn >= len(said):
            raise RuntimeError(f"{self.model_name} has nothing to say in turn {turn}")
        return spoken(said[turn])


@lru_cache(maxsize=4096)
def _lines(spec: str, cell: bytes) -> Sequence[ChatMessageAssistant]:
    """All that an agent says in a scene."""
    return lines(spec, msgspec.json.decode(cell, type=Cell))


def lines(spec: str, cell: Cell) -> list[ChatMessageAssistant]:
    """All that a scripted agent says in the scene of a cell, a message a turn."""
    agent: Any = make_agent(spec)
    if not isinstance(agent, ScriptedAgent):
        raise UsageError(f"{spec} is not a scripted agent: give Inspect the name of its model")
    episode = Episode(build(cell), trial=cell.trial)
    agent.play(episode)
    said = chat_messages(messages(episode.scene, episode.steps))
    return [message for message in said if isinstance(message, ChatMessageAssistant)]


def spoken(message: ChatMessageAssistant) -> ModelOutput:
    """A message as a model's output; with a usage, or Inspect would fetch a tokenizer."""
    stop = "tool_calls" if message.tool_calls else "stop"
    choice = ChatCompletionChoice(message=message.model_copy(), stop_reason=stop)
    usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return ModelOutput(model="scripted", choices=[choice], usage=usage)

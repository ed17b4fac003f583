"""Solvers: who holds the conversation of a sample."""

from __future__ import annotations

from inspect_ai.agent import AgentState, react
from inspect_ai.model import get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver

from toolshift.connect.inspect.current import sample_state
from toolshift.connect.inspect.episodes import (
    current_episode,
    episode_of,
    keep,
    make_rejected_calls,
    reply_of,
    take,
    tool_info,
)
from toolshift.connect.inspect.scene_tools import SceneTools


@solver  # type: ignore[untyped-decorator]
def converse() -> Solver:
    """Lets the model act in its scene as `toolshift run` does.

    Each turn it is shown the messages so far and the tools as they stand; what it says goes
    through the episode, so that the same replies get the same grade.
    """

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        episode, model = episode_of(state), get_model()
        try:
            while not episode.end:
                tools = [tool_info(tool) for tool in episode.observation.tools]
                state.output = await model.generate(state.messages, tools)
                state.messages.extend(choice.message for choice in state.output.choices[:1])
                state.messages.extend(take(episode, state.output))
        finally:
            keep(state)
        return state

    return solve


@solver  # type: ignore[untyped-decorator]
def react_to() -> Solver:
    """Lets Inspect's own `react` agent act in the scene, over tools that may change.

    Its calls run in Inspect's loop; what it says without a call is taken as said to the user, and
    the user goes on where he has more to ask.
    """
    scene = SceneTools()
    agent = react(prompt=None, tools=[scene], submit=False, on_continue=scene.on_continue)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        episode_of(state)
        try:
            found = await agent(AgentState(messages=state.messages))
            state.messages, state.output = found.messages, found.output
        finally:
            keep(state)
        return state

    return solve


async def the_user(turn: AgentState) -> bool | str:
    """Whether an agent's loop goes on, as its `on_continue`: the user's reply, or no more."""
    episode = current_episode()
    make_rejected_calls(turn.messages)
    if not episode.end and not turn.output.message.tool_calls:
        before = len(episode.steps)
        episode.take(reply_of(turn.output))
        state = sample_state()
        if state is not None:
            keep(state)
        if not episode.end:
            heard = [(step.notice, step.text) for step in episode.steps[before:]]
            return "\n".join(text for both in heard for text in both if text)
    return not episode.end

"""The tools of a scene for agents of Inspect; what needs Inspect is imported when it is used."""

from __future__ import annotations

from typing import Any

from toolshift.core.errors import UsageError
from toolshift.core.importing import load
from toolshift.core.installation import extra


class SceneTools:
    """The tools of the running sample's scene as they stand, for an Inspect agent of your own.

        scene = toolshift.SceneTools()
        react(prompt=None, tools=[scene], submit=False, on_continue=scene.on_continue)

    It is a `ToolSource`: `react` asks for the tools before each turn, so tools that come, go or
    move in the middle of an episode do so for the model. Inspect checks the arguments itself, and
    wants a text for every tool and parameter: one without gets its name.
    """

    async def tools(self) -> list[Any]:
        """The tools on offer now, the protocol tools among them."""
        offered: list[Any] = _of_inspect("toolshift.connect.inspect.episodes:offered_tools")()
        return offered

    async def on_continue(self, state: Any) -> bool | str:
        """Whether the agent's loop goes on, as its `on_continue`.

        What the agent has said without a call goes to the simulated user. Calls that Inspect has
        refused by itself are made in the episode, so that they are in the trace.

        Args:
            state: Inspect's `AgentState` after a turn.

        Returns:
            What the user says next; True where the loop goes on without it, and False at the end.
        """
        go_on: bool | str = await _of_inspect("toolshift.connect.inspect.solvers:the_user")(state)
        return go_on


def _of_inspect(name: str) -> Any:
    """A part of ours that needs Inspect."""
    try:
        return load(name)
    except ModuleNotFoundError as fault:
        if fault.name is None or not fault.name.startswith("inspect_ai"):
            raise
        raise UsageError(
            f"SceneTools needs inspect_ai, which is not installed; run: {extra('inspect')}"
        ) from None

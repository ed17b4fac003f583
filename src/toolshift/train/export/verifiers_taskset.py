"""Scenes as a taskset of verifiers (v1); needs the package `verifiers`.

Each rollout has a tool server of its own, in which the scene is played; what happened there is kept
in the rollout's state as the steps of the trace, and the reward grades them. Run as a program, this
module is that server.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import verifiers.v1 as vf
from mcp_types import CallToolResult, TextContent
from mcp_types import Tool as McpTool

from toolshift.core.message import Reply
from toolshift.core.step import Step
from toolshift.core.values import as_json
from toolshift.episode.episode import End, Episode
from toolshift.measure.recheck import play_again
from toolshift.train.environment import act, reward_of
from toolshift.train.export.scenes import Exported, read_scenes


@cache
def scenes_of(package: str) -> Exported:
    """The scenes of an installed package, by its name."""
    return read_scenes(Path(str(import_module(package).__file__)).parent)


class SceneData(vf.TaskData):  # type: ignore[misc]
    """Which scene a task is: a number in the stream of a package."""

    package: str
    scene: int
    shifts: list[str]


class SceneState(vf.State):  # type: ignore[misc]
    """What has happened in the scene, as JSON of the steps, and how it ended ("" while it goes)."""

    steps: str = "[]"
    end: End = ""


class SceneToolset(vf.Toolset[vf.ToolsetConfig, SceneState]):  # type: ignore[misc]
    """The tools of one scene, and the protocol tools with which a model answers, asks and refuses.

    The list is that of the moment: a harness that lists tools again sees what a shift has changed.
    """

    TOOL_PREFIX = None

    async def setup_task(self, task: SceneData) -> None:
        """Begins the scene of a task."""
        self.episode = Episode(scenes_of(task.package).scene(task.scene))

    def register(self, mcp: Any) -> None:
        """Lets the server answer for the scene; its tools have schemas of their own."""
        mcp.list_tools = self._list
        mcp.call_tool = self._call

    async def _list(self) -> list[McpTool]:
        functions = [tool["function"] for tool in self.episode.observation.tools]
        return [
            McpTool(name=f["name"], description=f["description"], input_schema=f["parameters"])
            for f in functions
        ]

    async def _call(self, name: str, arguments: Any, context: Any = None) -> CallToolResult:
        text = await self._with_state(self._act)(name, arguments)
        return CallToolResult(content=[TextContent(type="text", text=text)])

    def _act(self, name: str, arguments: Any) -> str:
        text = act(self.episode, name, arguments)
        self.state.steps = as_json(self.episode.steps)
        self.state.end = self.episode.end
        return text


class SceneTask(vf.Task[SceneData, SceneState, vf.TaskConfig]):  # type: ignore[misc]
    """One scene; the grader's verdict is the reward."""

    @classmethod
    def toolsets(cls, config: vf.TaskConfig) -> list[vf.Toolset]:
        """A tool server for each rollout."""
        return [SceneToolset(vf.ToolsetConfig())]

    @vf.stop  # type: ignore[untyped-decorator]
    async def over(self, trace: vf.Trace) -> bool:
        """Whether the model has answered, refused, or spent its calls."""
        return bool(trace.state.end)

    @vf.reward(weight=1.0)  # type: ignore[untyped-decorator]
    async def passed(self, trace: vf.Trace) -> float:
        """1 where the scene was solved, or rightly refused after the evidence; else 0."""
        steps = msgspec.json.decode(trace.state.steps, type=list[Step])
        said = _last_words(trace)
        return verdict(scenes_of(self.data.package), self.data.scene, steps, said)


def verdict(exported: Exported, number: int, steps: Sequence[Step], said: str) -> float:
    """Grades what happened in a scene."""
    episode = play_again(exported.scene(number), steps)
    if not episode.end and said:
        episode.take(Reply(text=said))
    return reward_of(episode) or 0.0


def _last_words(trace: vf.Trace) -> str:
    """What the model said last, beside no call."""
    last = trace.last_reply
    return last if isinstance(last, str) else ""


class SceneTaskset(vf.Taskset[SceneTask, vf.TasksetConfig]):  # type: ignore[misc]
    """Scenes without end. A package has a class of this kind whose `PACKAGE` is its own name."""

    INFINITE = True
    PACKAGE = ""

    def load(self) -> Iterator[SceneTask]:
        """The scenes in the order of their numbers."""
        for number, scene in scenes_of(self.PACKAGE).stream():
            turn = Episode(scene).observation
            system, *rest = turn.messages
            yield SceneTask(
                SceneData(
                    name=f"{scene.task.lineage}#{number}",
                    prompt=_prompt(rest),
                    system_prompt=system["content"],
                    package=self.PACKAGE,
                    scene=number,
                    shifts=[f"{each.shift}:{each.severity}" for each in scene.shifts],
                ),
                self.config.task,
            )


def _prompt(messages: Sequence[dict[str, Any]]) -> str:
    """The request of the user; a conversation begins with one message of theirs."""
    return "\n\n".join(
        m["content"] if isinstance(m["content"], str) else json.dumps(m["content"])
        for m in messages
    )


if __name__ == "__main__":
    SceneToolset.run()

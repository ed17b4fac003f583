"""Scenes as an environment server of OpenEnv; needs the package `openenv`, and not its extras."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from openenv.core import EnvClient
from openenv.core.client_types import StepResult
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, EnvironmentMetadata, Observation, State
from pydantic import Field

from toolshift.core.calls import read_call
from toolshift.core.message import Reply
from toolshift.episode.episode import Episode
from toolshift.train.environment import reward_of
from toolshift.train.export.scenes import Exported

LARGEST = 2**31


class SceneAction(Action):  # type: ignore[misc]
    """One reply of a model: a tool call, or words without one."""

    name: str = Field(default="", description="Name of the tool, or of a protocol tool.")
    arguments: dict[str, Any] | str = Field(
        default_factory=dict, description="Its arguments; text where they are no JSON object."
    )
    text: str = Field(default="", description="What the model says, beside the call or alone.")


class SceneObservation(Observation):  # type: ignore[misc]
    """What the model sees next."""

    messages: list[dict[str, Any]] = Field(
        default_factory=list,
        description="New messages, as OpenAI has them; after a reset all.",
    )
    tools: list[dict[str, Any]] = Field(
        default_factory=list, description="Tools on offer now; a shift may change them midway."
    )


class SceneState(State):  # type: ignore[misc]
    """Which scene is played."""

    scene: int = 0
    shifts: list[str] = Field(default_factory=list)


class SceneEnvironment(Environment[SceneAction, SceneObservation, SceneState]):  # type: ignore[misc]
    """A conversation with a simulated user over shifted tools; the grader's verdict ends it.

    `reset(seed=N)` begins the scene of that number; without a seed, one at random.
    """

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, exported: Exported) -> None:
        super().__init__()
        self._exported = exported
        self._state = SceneState()
        self._episode: Episode | None = None
        self._shown = 0

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, **_: Any
    ) -> SceneObservation:
        """Begins a scene."""
        number = secrets.randbelow(LARGEST) if seed is None else seed
        scene = self._exported.scene(number)
        self._episode = Episode(scene)
        self._shown = 0
        self._state = SceneState(
            episode_id=episode_id or f"{number}-{secrets.token_hex(4)}",
            scene=number,
            shifts=[f"{each.shift}:{each.severity}" for each in scene.shifts],
        )
        return self._observation()

    def step(
        self, action: SceneAction, timeout_s: float | None = None, **_: Any
    ) -> SceneObservation:
        """Carries out one reply."""
        if self._episode is None:
            raise ValueError("call reset before step")
        if not self._episode.end:
            calls = (read_call(action.name, action.arguments),) if action.name else ()
            self._episode.take(Reply(text=action.text, calls=calls))
            self._state.step_count += 1
        return self._observation()

    @property
    def state(self) -> SceneState:
        """Which scene is played, and how far it is."""
        return self._state

    def get_metadata(self) -> EnvironmentMetadata:
        """What OpenEnv shows of the environment."""
        return EnvironmentMetadata(
            name="toolshift",
            description="Tool use under controlled shifts: tools renamed, results drifting, "
            "requests that cannot be fulfilled.",
            version=self._exported.toolshift,
        )

    def _observation(self) -> SceneObservation:
        assert self._episode is not None
        turn = self._episode.observation
        new = [dict(message) for message in turn.messages[self._shown :]]
        self._shown = len(turn.messages)
        done = bool(self._episode.end)
        reward = reward_of(self._episode) if done else 0.0
        return SceneObservation(messages=new, tools=list(turn.tools), done=done, reward=reward)


class SceneEnv(EnvClient[SceneAction, SceneObservation, SceneState]):  # type: ignore[misc]
    """The client of a server."""

    def _step_payload(self, action: SceneAction) -> dict[str, Any]:
        payload: dict[str, Any] = action.model_dump(exclude={"metadata"})
        return payload

    def _parse_result(self, payload: Mapping[str, Any]) -> StepResult[SceneObservation]:
        seen = payload.get("observation", {})
        done, reward = payload.get("done", False), payload.get("reward")
        observation = SceneObservation(
            messages=seen.get("messages", []),
            tools=seen.get("tools", []),
            done=done,
            reward=reward,
        )
        return StepResult(observation=observation, reward=reward, done=done)

    def _parse_state(self, payload: Mapping[str, Any]) -> SceneState:
        return SceneState(**payload)

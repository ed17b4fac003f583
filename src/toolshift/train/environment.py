"""Scenes as environments of TRL's `environment_factory`, for whoever drives GRPO himself.

    made = environments(draws(mix, 100))
    GRPOTrainer(..., train_dataset=Dataset.from_list(made.rows),
                environment_factory=made.factories)

TRL reads the tools of a class once, so each list of tools gets a class of its own, whose public
methods are the tools; the column `environment` names it. The grader's verdict is the reward.

What this cannot express, and `toolshift train grpo` can: tools that change in mid-episode (a call
of one that came later is answered as an unknown name by TRL, and one that has gone stays in the
list); calls of unknown or malformed names, which TRL answers in its own words, so that they are
in no trace; a further request of the user, which is returned as the result of `final_answer`; and
keys and values kept between turns, for TRL prefills the conversation at each.
"""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from toolshift.core.calls import read_call
from toolshift.core.errors import UsageError
from toolshift.core.message import PROTOCOL_NAMES, Reply
from toolshift.core.scene import Scene
from toolshift.core.tool import JSON
from toolshift.core.values import as_json
from toolshift.episode.episode import Episode
from toolshift.episode.grade import grade
from toolshift.lm.prompt import render_call
from toolshift.train.reward import TEACHES_NOTHING

_TYPES = {
    "string": str, "integer": int, "number": float, "boolean": bool, "array": list, "object": dict,
}  # fmt: skip
_TAKEN = {"reset", "get_reward"}


@dataclass(frozen=True)
class Environments:
    """What TRL's trainer is given.

    Attributes:
        rows: `prompt` (messages), `environment` and `scene` (a number) for each scene.
        factories: a class for each list of tools, by the name in `environment`. No classes of
            other scenes have these names, so rows and factories of several may be joined.
    """

    rows: list[dict[str, Any]]
    factories: dict[str, Callable[[], Any]]


def environments(scenes: Iterable[Scene]) -> Environments:
    """Makes environments of scenes."""
    kept = list(scenes)
    source = JSON.encode([(scene.task.id, scene.shifts) for scene in kept])
    return numbered(kept.__getitem__, range(len(kept)), source)


def numbered(scene: Callable[[int], Scene], numbers: Iterable[int], source: bytes) -> Environments:
    """Makes environments of scenes that have numbers, as those of a stream."""
    rows: list[dict[str, Any]] = []
    classes: dict[str, Callable[[], Any]] = {}
    for number in numbers:
        turn = Episode(scene(number)).observation
        listed = JSON.encode(list(turn.tools))
        name = "Tools" + blake2b(source + listed, digest_size=5).hexdigest()
        if name not in classes:
            classes[name] = environment_class(name, turn.tools, scene)
        rows.append({"prompt": list(turn.messages), "environment": name, "scene": number})
    return Environments(rows, classes)


def environment_class(
    name: str, tools: Sequence[Mapping[str, Any]], scene_of: Callable[[int], Scene]
) -> type[Any]:
    """A class whose public methods are these tools, in scenes that are found by number."""

    def reset(self: Any, scene: int, **_: object) -> None:
        """Begins an episode in the scene of a row."""
        self._episode = Episode(scene_of(scene))

    def get_reward(self: Any) -> float | None:
        """1 or 0 by the grader; None where the episode teaches nothing."""
        return reward_of(self._episode)

    methods: dict[str, Any] = {"reset": reset, "get_reward": get_reward}
    for tool in tools:
        function = tool.get("function", tool)
        methods[function["name"]] = _method(function)
    return type(name, (), methods)


def _method(function: Mapping[str, Any]) -> Callable[..., str]:
    """One tool as a method, with the signature and the docstring from which TRL reads a schema."""
    name = _tool_name(function["name"])
    schema = function.get("parameters") or {}
    required = set(schema.get("required") or ())
    described = schema.get("properties") or {}
    named = sorted(described, key=lambda each: each not in required)

    def call(self: Any, *given: Any, **arguments: Any) -> str:
        taken = {**dict(zip(named, given, strict=False)), **arguments}
        return act(self._episode, name, {k: v for k, v in taken.items() if v is not None})

    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    for each in named:
        kind = _TYPES.get(str(described[each].get("type", "string")), str)
        parameters.append(
            inspect.Parameter(
                _parameter_name(name, each),
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=inspect.Parameter.empty if each in required else None,
                annotation=kind if each in required else kind | None,
            )
        )
    call.__name__ = call.__qualname__ = name
    call.__doc__ = _docstring(function, {each: described[each] for each in named})
    call.__signature__ = inspect.Signature(parameters, return_annotation=str)  # type: ignore[attr-defined]
    call.__annotations__ = {p.name: p.annotation for p in parameters[1:]} | {"return": str}
    return call


def reward_of(episode: Episode) -> float | None:
    """1 or 0 by the grader; an unfinished episode ends here, and has failed."""
    if not episode.end:
        episode.crash("the episode was left unfinished")
    verdict = grade(episode)
    silent = verdict.void and verdict.cause in TEACHES_NOTHING
    return None if silent else float(verdict.passed)


def act(episode: Episode, name: str, arguments: object) -> str:
    """Carries out one call."""
    if episode.end:
        return "The conversation is over."
    episode.take(Reply(calls=(read_call(name, arguments),)))
    if episode.end:
        return "Done."
    shown = episode.observation.messages
    last = max(n for n, message in enumerate(shown) if message["role"] == "assistant")
    if name not in PROTOCOL_NAMES:
        return str(shown[last + 1]["content"])
    return "\n".join(str(message["content"]) for message in shown[last + 1 :])


def _docstring(function: Mapping[str, Any], described: Mapping[str, Any]) -> str:
    """Google style, as transformers reads it: a line for each parameter, choices included."""
    lines = [" ".join(str(function.get("description") or function["name"]).split())]
    if described:
        lines += ["", "Args:"]
    for name, schema in described.items():
        said = " ".join(str(schema.get("description") or name).split())
        choices = schema.get("enum")
        given = f" (choices: {as_json(choices)})" if choices else ""
        lines.append(f"    {name}: {said}{given}")
    return "\n".join([*lines, "", "Returns:", "    What comes back."])


def _tool_name(name: str) -> str:
    """The name of a tool that can be a method of a class."""
    if not _is_word(name) or name in _TAKEN or name[0] == "_":
        raise _unfit(f"{render_call(name, {})}", f"{name!r} cannot be a method of a class")
    return name


def _parameter_name(tool: str, name: str) -> str:
    """The name of a parameter that a method can have."""
    if not _is_word(name) or name == "self":
        raise _unfit(f"{tool}, parameter {name}", f"{name!r} cannot be a parameter of a method")
    return name


def _is_word(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name)


def _unfit(where: str, why: str) -> UsageError:
    return UsageError(
        f"{where}: TRL's environments have their tools as methods, and {why}. Give it another name "
        "in the world, leave out the shift that makes such names, or use `toolshift train grpo`"
    )

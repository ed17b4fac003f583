"""An episode for a program that brings its own loop, and its tools as typed Python functions.

    episode = start_episode("poi/booking/0", "identity_erasure:2")
    heard = episode.message
    while heard:
        said = my_agent(episode.functions(), heard)   # the framework's own loop
        heard = episode.reply(said)
    print(episode.grade().passed)

The functions are those on offer when they are made. A framework that keeps its first list does not
see tools that come later; one that asks again gets them from another `functions()`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import reduce
from keyword import iskeyword
from operator import or_
from typing import Any, Literal

from toolshift.connect.serve.session import ActResult, AgentSession
from toolshift.episode.episode import Episode
from toolshift.episode.grade import Grade, grade
from toolshift.runs.cell import build
from toolshift.runs.suite import read_task

PLAIN = {"string": str, "integer": int, "number": float, "boolean": bool, "null": type(None)}


class StartedEpisode:
    """An episode that a program drives by itself; it is safe to drive from several threads.

    Args:
        episode: what is driven.

    Attributes:
        episode: the same, with its scene and its steps so far.
    """

    def __init__(self, episode: Episode) -> None:
        self.episode = episode
        self._session = AgentSession(episode)

    @property
    def system(self) -> str:
        """The system message of the scene."""
        return self.episode.scene.system

    @property
    def message(self) -> str:
        """What the user has said last; at the start, the request."""
        return self._session.message

    @property
    def over(self) -> bool:
        """Whether the episode has ended."""
        return self._session.over

    def tools(self) -> list[dict[str, Any]]:
        """The tools on offer now in the OpenAI format, those of the protocol included."""
        return self._session.tools()

    def functions(self) -> list[Callable[..., str]]:
        """The tools on offer now as functions that return what came back, protocol tools included.

        Each has the name, the docstring (Google style) and the annotations of its tool. What an
        annotation cannot say (a pattern, a minimum) is in `function.json_schema`, the parameters as
        a JSON Schema, and `function.description` is the text without the arguments. A parameter
        whose name is none in Python ("data-id", "from") is spelled with underscores.

        A call counts as one turn. After the end every function says that the episode is over.
        """
        return [_function(self._session, tool["function"]) for tool in self.tools()]

    def call(self, name: str, arguments: dict[str, Any] | str) -> str:
        """Calls a tool by its name; for a loop that has the model's own words.

        Args:
            name: of the tool, as the model spoke it; one that is not on offer is the model's error.
            arguments: of the call, as an object or as JSON text.

        Returns:
            What came back, and what the user says next where the call was `final_answer`.
        """
        return _told(self._session.call(name, arguments))

    def reply(self, text: str) -> str:
        """Says to the user what the program says without a call, which may end the episode.

        Args:
            text: what is said.

        Returns:
            What the user says next; "" where the episode is over.
        """
        heard = self._session.say(text)
        if heard.over:
            return ""
        return "\n".join(filter(None, [heard.notice, heard.message])) or heard.text

    def grade(self) -> Grade:
        """The verdict on what was done; that of an episode that is not over is a failure so far."""
        return grade(self.episode)


def start_episode(
    task: str,
    shifts: str = "",
    *,
    seed: int = 0,
    pool: str = "dev",
    size: int = 200,
    trial: int = 0,
) -> StartedEpisode:
    """Begins an episode for a program that brings its own loop.

    Args:
        task: `world/kind/index`, as in "poi/booking/3".
        shifts: a stack such as "identity_erasure:2+format_drift:1"; "" for the clean scene.
        seed: of the world.
        pool: of its entities.
        size: how many there are.
        trial: which trial.

    Returns:
        The episode, to be driven by its `functions` and `reply`.

    Raises:
        UsageError: for anything unknown.
        NotApplicable: where a shift cannot be applied truthfully to this task.
    """
    scene = build(read_task(task, shifts, seed, pool, size, trial))
    return StartedEpisode(Episode(scene, trial=trial))


# -- one tool ----------------------------------------------------------------------------------


def _function(seat: AgentSession, shown: dict[str, Any]) -> Callable[..., str]:
    schema = shown["parameters"]
    names = _python_names(schema["properties"])

    def function(**arguments: Any) -> str:
        told = {names[name]: value for name, value in arguments.items() if value is not None}
        return _told(seat.call(shown["name"], told))

    required = set(schema.get("required", ()))
    annotations = {
        name: annotation(schema["properties"][true], true in required)
        for name, true in names.items()
    }
    ordered = sorted(names.items(), key=lambda pair: pair[1] not in required)
    function.__name__ = function.__qualname__ = shown["name"]
    function.__doc__ = _docstring(shown["description"], schema["properties"], names)
    function.__annotations__ = {**annotations, "return": str}
    function.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [_parameter(name, annotations[name], true in required) for name, true in ordered],
        return_annotation=str,
    )
    function.json_schema = schema  # type: ignore[attr-defined]
    function.description = shown["description"]  # type: ignore[attr-defined]
    return function


def _parameter(name: str, kind: Any, required: bool) -> inspect.Parameter:
    default = inspect.Parameter.empty if required else None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _python_names(properties: dict[str, Any]) -> dict[str, str]:
    """The shown name of each parameter by a name that Python allows."""
    names: dict[str, str] = {}
    for true in properties:
        name = "".join(mark if mark.isalnum() else "_" for mark in true) or "_"
        name = f"_{name}" if name[0].isdigit() else name
        while iskeyword(name) or name in names:
            name += "_"
        names[name] = true
    return names


def annotation(schema: dict[str, Any], required: bool = True) -> Any:
    """The Python type that a JSON Schema is nearest to; Any where it names no type."""
    kind = _kind(schema)
    return kind if required or kind is Any else kind | None


def _kind(schema: dict[str, Any]) -> Any:
    if "const" in schema:
        return Literal[schema["const"]]
    if schema.get("enum"):
        return Literal[tuple(schema["enum"])]
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices:
        return _either([_kind(choice) for choice in choices])
    named = schema.get("type")
    if isinstance(named, list):
        return _either([_kind({**schema, "type": one}) for one in named])
    if named == "array":
        return list[_kind(schema.get("items") or {})]  # type: ignore[misc]
    return dict[str, Any] if named == "object" else PLAIN.get(str(named), Any)


def _either(kinds: list[Any]) -> Any:
    return Any if Any in kinds else reduce(or_, kinds)


def _docstring(description: str, properties: dict[str, Any], names: dict[str, str]) -> str:
    told = [
        f"    {name}: {properties[true].get('description') or true}" for name, true in names.items()
    ]
    return "\n".join([description, *(["", "Args:", *told] if told else [])]).strip()


def _told(heard: ActResult) -> str:
    """What came of a call as one text, the user's next turn included."""
    user = f"The user says: {heard.message}" if heard.message else ""
    return "\n".join(filter(None, [heard.text, heard.notice, user]))

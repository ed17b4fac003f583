"""A scene's tools as typed Python functions, for frameworks that make tools of functions.

    seat = start_episode("poi/booking/0", "identity_erasure:2")
    heard = seat.message
    while heard:
        said = my_agent(tools_of(seat), heard)   # the framework's own loop
        heard = reply(seat, said)
    print(grade(seat.episode).passed)

The functions are those on offer when they are made. A framework that keeps its first list does not
see tools that come later; one that asks again gets them from another `tools_of`.
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

__all__ = ["AgentSession", "Grade", "grade", "reply", "start_episode", "tools_of"]

PLAIN = {"string": str, "integer": int, "number": float, "boolean": bool, "null": type(None)}


def start_episode(
    task: str,
    shifts: str = "",
    *,
    seed: int = 0,
    pool: str = "dev",
    size: int = 200,
    trial: int = 0,
) -> AgentSession:
    """Begins an episode for a program that brings its own loop.

    Args:
        task: `world/kind/index`, as in "poi/booking/3".
        shifts: a stack such as "identity_erasure:2+format_drift:1"; "" for the clean scene.
        seed: of the world.
        pool: of its entities.
        size: how many there are.
        trial: which trial.

    Returns:
        The episode, to be driven by `tools_of` and `reply`.

    Raises:
        UsageError: for anything unknown.
        NotApplicable: where a shift cannot be applied truthfully to this task.
    """
    return AgentSession(
        Episode(build(read_task(task, shifts, seed, pool, size, trial)), trial=trial)
    )


def tools_of(seat: AgentSession | Episode) -> list[Callable[..., str]]:
    """The tools on offer now as functions that return what came back, protocol tools included.

    Each has the name, the docstring (Google style) and the annotations of its tool. What an
    annotation cannot say (a pattern, a minimum) is in `function.json_schema`, the parameters as a
    JSON Schema, and `function.description` is the text without the arguments. A parameter whose
    name is none in Python ("data-id", "from") is spelled with underscores.

    A call counts as one turn. After the end every function says that the episode is over. A
    framework may call from several threads; two lists of one episode share an `AgentSession`
    for that.
    """
    seat = AgentSession(seat) if isinstance(seat, Episode) else seat
    return [_function(seat, tool["function"]) for tool in seat.tools()]


def reply(seat: AgentSession, text: str) -> str:
    """Says to the user what the program says without a call, which may end the episode.

    Args:
        seat: the episode.
        text: what is said.

    Returns:
        What the user says next; "" where the episode is over.
    """
    heard = seat.say(text)
    if heard.over:
        return ""
    return "\n".join(filter(None, [heard.notice, heard.message])) or heard.text


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

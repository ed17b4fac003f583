"""The call at which an episode went wrong: its wrong arguments, and what a change did to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from toolshift.core.scene import Scene
from toolshift.core.step import Step
from toolshift.core.tool import Param, Tool
from toolshift.core.values import as_json, as_text
from toolshift.episode.grading_rules import due_by_turn
from toolshift.interop.schema import choices_of, kind_of

MOST = 4
"""Changes of one tool, and arguments of one call, that are named."""
OF_ARGUMENTS = (
    "bad_arguments",
    "invented_value",
    "filled_option",
    "ignored_result",
    "ignored_update",
)
"""Causes that may lie in the arguments of a call."""


def change_behind(scene: Scene, steps: Sequence[Step], guilty: int | None) -> str:
    """The shifts, and what of the guilty call they changed; "" where they changed nothing of it.

    Where the guilty step is no call it is the last call before it, at which the agent stopped.
    """
    changes = changes_behind(scene, steps, guilty)
    if not changes:
        return ""
    more = [f"{len(changes) - MOST} more"] * (len(changes) > MOST)
    names = " and ".join(applied.shift for applied in scene.shifts)
    return f"What {names} changed here: {'; '.join((*changes[:MOST], *more))}."


def wrong_arguments(scene: Scene, steps: Sequence[Step], guilty: int | None, cause: str) -> str:
    """The arguments of the guilty call that differ from the expected one; "" where none do.

    The expected call is the nearest of the same tool in the same turn.
    """
    if guilty is None or cause not in OF_ARGUMENTS or steps[guilty].kind != "call":
        return ""
    call = steps[guilty]
    turns = due_by_turn(scene)
    turn = sum(step.kind == "answer" for step in steps[:guilty])
    rivals = [step for step in turns[min(turn, len(turns) - 1)] if step.name == call.name]
    differing = min((_differing(call, step) for step in rivals), key=len, default=[])
    more = [f"{len(differing) - MOST} more"] * (len(differing) > MOST)
    return f"In {call.name}: {'; '.join((*differing[:MOST], *more))}." if differing else ""


def _differing(call: Step, expected: Step) -> list[str]:
    """The arguments in which a call differs from the expected one, each in words."""
    made, right = call.given, expected.given
    return [
        f"{name} is {_written(made, name)}, expected {_written(right, name)}"
        for name in dict.fromkeys((*right, *made))
        if name not in made or name not in right or made[name] != right[name]
    ]


def _written(arguments: dict[str, Any], name: str) -> str:
    return as_json(arguments[name]) if name in arguments else "left out"


def changes_behind(scene: Scene, steps: Sequence[Step], guilty: int | None) -> list[str]:
    """What the shifts changed of the guilty call, each in a few words; see `change_behind`."""
    calls = [step for step in steps[: (guilty or 0) + 1] if step.kind == "call"]
    if scene.clean is scene or guilty is None or not calls:
        return []
    return list(_changes(scene, calls[-1]))


def _changes(scene: Scene, call: Step) -> Iterator[str]:
    before, after = _before_and_after(scene, call)
    met, further = list[str](), list[str]()
    if before is not None and after is not None:
        met += _of_tool(before, after, call)
        further += _beside_the_call(before, after, call)
    elif before is not None and call.error == "unknown_tool":
        met.append(f"{before.name} is not available")
    elif before is not None:
        met.append(f"{call.name} replaced {before.name}")
    if call.provoked:
        met.append(f"{call.name} fails ({call.error})")
    elif call.ok and call.touched:
        met.append(f"the result of {call.name} has another form")
    yield from met or further


def _before_and_after(scene: Scene, call: Step) -> tuple[Tool | None, Tool | None]:
    """The clean tool that a call stands for, and the tool that does its work now."""
    now = next((tool for tool in scene.reachable if tool.name == call.name), None)
    if now is not None:
        return next((t for t in scene.clean.reachable if t.origin == now.origin), None), now
    alike = (call, *(step for step in scene.calls if step.name == call.name))
    true = {name for step in alike for name, _ in step.true}
    then = next(
        (t for t in scene.clean.reachable if t.name == call.name or true & set(t.origin)), None
    )
    successor = (t for t in scene.reachable if then and t.origin == then.origin)
    return then, next(successor, None) if call.error == "unknown_tool" else None


def _of_tool(before: Tool, after: Tool, call: Step) -> Iterator[str]:
    """What of a tool is another and concerns a call; first the parameters that it passes."""
    if before.name != after.name:
        yield f"{before.name} is {after.name}"
    for then, param in _paired(before, after, call):
        if then is None and param.required:
            yield f"{after.name} needs {param.name}"
        elif then is not None:
            if _is_met(then, param, call):
                yield from _of_parameter(then, param, after.name)
            yield from _of_default(then, param, after.name, call)


def _beside_the_call(before: Tool, after: Tool, call: Step) -> Iterator[str]:
    """What else of a tool is another: options that the call may have needed, and texts."""
    pairs = [(then, param) for then, param in _paired(before, after, call) if then is not None]
    for then, param in pairs:
        if not _is_met(then, param, call):
            yield from _of_parameter(then, param, after.name)
    for then, param in pairs:
        if _is_met(then, param, call) and _told(then) != _told(param):
            yield f"{param.name} of {after.name} has another description"
    if before.description != after.description:
        yield f"{after.name} has another description"


def _paired(before: Tool, after: Tool, call: Step) -> list[tuple[Param | None, Param]]:
    """The parameters of a tool with what they were; first those that a call does not just pass."""
    old = {param.fact: param for param in before.params}
    ordered = sorted(after.params, key=lambda p: p.name in call.given and not _is_new(p, old))
    return [(old.get(param.fact), param) for param in ordered]


def _is_met(then: Param, param: Param, call: Step) -> bool:
    """Whether a call passes a parameter by either name, or has to."""
    return param.required or not {then.name, param.name}.isdisjoint(call.given)


def _told(param: Param) -> str:
    return str(param.schema.get("description") or "")


def _of_default(before: Param, after: Param, tool: str, call: Step) -> Iterator[str]:
    """Another default of a parameter that the call leaves out, by both of its names."""
    was, now = (param.schema.get("default") for param in (before, after))
    is_left_out = {before.name, after.name}.isdisjoint(call.given)
    if was != now and is_left_out and not after.required:
        told = ("nothing" if value is None else as_text(value)[:60] for value in (now, was))
        yield "{} of {} is {} where it is left out, and was {}".format(after.name, tool, *told)


def _is_new(param: Param, old: dict[str, Param]) -> bool:
    then = old.get(param.fact)
    return then is None or then.name != param.name


def _of_parameter(before: Param, after: Param, tool: str) -> Iterator[str]:
    if before.name != after.name:
        yield f"{before.name} of {tool} is {after.name}"
    if kind_of(before.schema) != kind_of(after.schema):
        yield f"{after.name} of {tool} is of another type ({kind_of(after.schema)})"
    elif choices_of(before.schema) != choices_of(after.schema):
        yield f"{after.name} of {tool} takes other choices"
    if after.required and not before.required:
        yield f"{tool} needs {after.name}"

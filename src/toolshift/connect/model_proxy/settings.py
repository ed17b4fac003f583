"""What a proxy does to the tools that pass through it, and whether it can."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from toolshift.core.errors import UsageError
from toolshift.core.scene import Applied
from toolshift.core.shift import NotApplicable, Shift
from toolshift.core.tool import Result
from toolshift.interop.tools import Toolbox, from_openai
from toolshift.shifts.live import (
    SPARING,
    TASKLESS,
    TRAPS,
    Live,
    LiveScene,
    live_scene,
    shifted,
)
from toolshift.shifts.registry import find_shift


@dataclass(frozen=True)
class ShiftOptions:
    """The shifts of a proxy, and what they are derived from.

    Attributes:
        stack: the shifts; () leaves everything as it is.
        seed: with the tool list, what all choices are derived from.
        pool: of the wordings.
        needed: the tools that the agent needs, where that is known.
        may_write: whether a trap may lie over tools that are not known to only read.
    """

    stack: tuple[Applied, ...] = ()
    seed: int = 0
    pool: str = "dev"
    needed: tuple[str, ...] = ()
    may_write: bool = False


RESULTLESS = ("truncation", "missing_values", "default_change_placebo")
"""Shifts that need the schemas of results, which a request does not hold."""
MAX_NAMED = 8
"""The most tools that a message names."""
WHAT_APPLIES = "docs/model-proxy.md says what applies"


def check_stack(how: ShiftOptions) -> None:
    """Refuses what this proxy can never do, whatever the tools."""
    for applied in how.stack:
        if why := _never(find_shift(applied.shift), applied.severity, how):
            raise UsageError(f"{applied.shift}:{applied.severity} is not applicable: {why}")


def _never(found: Shift, severity: int, how: ShiftOptions) -> str:
    """Why a shift can apply to no tools; "" where it may."""
    if found.level == 3:
        return (
            "it changes the task or the truth, and those of a live agent are its own. Level 1 "
            "shifts apply: see `toolshift list shifts`"
        )
    if found.dimension == "query":
        return (
            "it changes what a user says, and a proxy knows only the tools. Level 1 shifts of "
            "tools and results apply"
        )
    if found.base in TASKLESS:
        return f"it needs a task, or to know which tool feeds which; {WHAT_APPLIES}"
    if found.base in RESULTLESS:
        return f"it needs the schemas of results, which a request does not have; {WHAT_APPLIES}"
    if found.base == "required_parameter" and severity > 1:
        return "it needs a detail of a user's request: at severity 1 it applies"
    if found.base in SPARING and not how.needed:
        return "which tools can be spared is not known: say with --needs which the agent needs"
    if found.base in TRAPS and not how.may_write:
        return (
            "a request does not say which tools only read, and these are real: insist with "
            "--allow-traps-that-write"
        )
    return ""


def prepare(listed: list[dict[str, Any]], how: ShiftOptions) -> tuple[Toolbox, LiveScene]:
    """The tools of a request, and the scene that shows them shifted."""
    toolbox = from_openai(listed)
    known = tuple(name for name in how.needed if name in toolbox.sources)
    try:
        scene = shifted(
            live_scene(toolbox, how.seed, how.pool, known), how.stack, may_write=how.may_write
        )
    except NotApplicable as reason:
        some = [*toolbox.sources][:MAX_NAMED]
        more = len(toolbox.sources) - len(some)
        names = ", ".join(some) + (f" and {more} more" if more else "")
        raise UsageError(f"not applicable to the tools {names}: {reason}") from None
    _check_calls(scene, toolbox)
    return toolbox, scene


def _check_calls(scene: LiveScene, toolbox: Toolbox) -> None:
    """Refuses a stack that makes several calls of one: only the agent can make calls."""
    made = 0

    def count(name: str, arguments: dict[str, Any]) -> Result:
        nonlocal made
        made += 1
        return Result(True, toolbox.sources[name].example())

    live = Live(scene, toolbox, count)
    for step in scene.calls:
        made = 0
        live.call(step.name, step.given)
        if made > 1:
            stack = "+".join(f"{one.shift}:{one.severity}" for one in scene.shifts)
            raise UsageError(
                f"{stack} is not applicable in a model proxy: a call of {step.name} would need "
                f"{made} calls of the agent's tools. If the tools are behind MCP, use `toolshift "
                "proxy`"
            )

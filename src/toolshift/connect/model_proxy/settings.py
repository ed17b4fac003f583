"""What a proxy does to the tools that pass through it, and whether it can."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from toolshift.core.errors import UsageError
from toolshift.core.scene import Applied
from toolshift.core.shift import NotApplicable
from toolshift.core.tool import Result
from toolshift.interop.tools import Toolbox, from_openai
from toolshift.shifts.live import Live, LiveScene, live_scene, shifted
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


def check_stack(stack: tuple[Applied, ...]) -> None:
    """Refuses what no proxy can do, whatever the tools.

    Args:
        stack: the shifts.

    Raises:
        UsageError: for a shift of the truth or of what a user says.
    """
    for applied in stack:
        found = find_shift(applied.shift)
        name = f"{applied.shift}:{applied.severity}"
        if found.level == 3:
            raise UsageError(
                f"{name} is not applicable: it changes the task or the truth, and those of a live "
                "agent are its own. Level 1 shifts apply: see `toolshift list shifts`"
            )
        if found.dimension == "query":
            raise UsageError(
                f"{name} is not applicable: it changes what a user says, and a proxy knows only "
                "the tools. Level 1 shifts of tools and results apply"
            )


def prepare(listed: list[dict[str, Any]], how: ShiftOptions) -> tuple[Toolbox, LiveScene]:
    """The tools of a request, and the scene that shows them shifted.

    Args:
        listed: the tools in the OpenAI format.
        how: the shifts.

    Returns:
        The tools under their own names; the scene, with its layers.

    Raises:
        UsageError: where a shift is not applicable to these tools; the message says why.
    """
    toolbox = from_openai(listed)
    known = tuple(name for name in how.needed if name in toolbox.sources)
    try:
        scene = shifted(
            live_scene(toolbox, how.seed, how.pool, known), how.stack, may_write=how.may_write
        )
    except NotApplicable as reason:
        names = ", ".join(toolbox.sources)
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
                f"{made} calls of the agent's tools. Use `toolshift proxy` where the tools are "
                "behind MCP"
            )

"""Optional parameters and idle sentences that are new each time, to train on.

The commonest change of published servers is an optional parameter. A model that meets the few of
`schema_noise` in training learns these by heart; so here names, types and texts are drawn anew.
They are of no tier, so no suite draws them: tests have `schema_noise`.
"""

from __future__ import annotations

from random import Random
from typing import Any

from toolshift.core.scene import Scene
from toolshift.core.shift import Change, Severity, shift
from toolshift.core.tool import Param, Tool
from toolshift.shifts import wording
from toolshift.shifts.action import change, described, followed, names_of, reach
from toolshift.shifts.surface import Surface

OPTION_SAYS = (
    "", "Optional.", "Leave out for the default.", "Only for internal use.",
    "May stay empty: {word}.", "Advanced setting.", "Ignored unless {word} is on.",
    "Not needed for ordinary calls.",
    "Kept for old clients.", "Changes how {word} is logged, not the result.",
)  # fmt: skip
"""What is said of an optional parameter."""
IDLE = (
    "See also {a} and {b}.", "Added in version {n}.", "Limited to {n} calls a minute.",
    "Requests are logged under {a}.", "Owner: team {a}.", "The {a} of this call may change.",
    "Formerly part of {a} {b}.", "Do not confuse with {a}.", "Costs {n} credits.",
    "For {a} ask the {b} desk.", "Results may be up to {n} minutes old.", "Tested with {a} {n}.",
    "Not all accounts have {a}.", "{a} and {b} are handled elsewhere.",
)  # fmt: skip
"""Frames of idle sentences; their words are drawn for each."""


@shift(
    tier="none",
    dimension="action",
    level=1,
    imitates="A server that gains options with every release",
)
def varied_options(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Add up to one, two or three optional parameters to every tool, of new names each time."""
    surplus = {
        tool.name: _options(tool, rng.randint(0, severity), rng) for tool in reach(scene, rng, 3)
    }
    needed = [tool for tool in reach(scene, rng, 2) if tool.name in surplus]
    if not any(surplus[tool.name] for tool in needed):
        surplus[needed[0].name] = _options(needed[0], 1, rng)
    return change(Surface(surplus=surplus))


def _options(tool: Tool, count: int, rng: Random) -> tuple[Param, ...]:
    """So many optional parameters, less those whose name the tool has or that are drawn twice."""
    made = {one.name: one for one in (_option(rng) for _ in range(count))}
    return tuple(param for param in made.values() if param.name not in names_of(tool))


def _option(rng: Random) -> Param:
    words = rng.sample(wording.UNRELATED, 3)
    name = "_".join(words[: rng.choice((1, 1, 2))])
    said = rng.choice(OPTION_SAYS).format(word=words[2])
    schema: dict[str, Any] = rng.choice(
        (
            {"type": "boolean"},
            {"type": "integer"},
            {"type": "string"},
            {"type": "string", "enum": words[1:]},
            {"type": "number"},
        )
    )
    return Param(name, "", {**schema, "description": said} if said else schema, False)


@shift(
    tier="none",
    dimension="action",
    level=1,
    imitates="A server whose documentation grows with every release",
)
def idle_sentences(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Put up to one, two or three idle sentences behind every description, new ones each time."""
    hit = reach(scene, rng, 3, lambda tool: bool(tool.description))
    idle = {tool.name: [_idle(rng) for _ in range(rng.randint(0, severity))] for tool in hit}
    if not any(idle.values()):
        idle[hit[0].name] = [_idle(rng)]
    said = {tool.name: followed(tool.description, idle[tool.name]) for tool in hit}
    return change(Surface(descriptions=said, was=described(hit)))


def _idle(rng: Random) -> str:
    a, b = rng.sample(wording.UNRELATED, 2)
    return rng.choice(IDLE).format(a=a, b=b, n=rng.randint(2, 60))

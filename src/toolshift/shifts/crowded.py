"""Shifts: The tools of a task among many of other domains, as hosts send them.

Hosts send 250 to 420 tools on each turn. The tools that a task needs stay as they are; what changes
is how many others stand around them. `crowded_list` has 50, 200 and 400 of these, and
`crowded_list_N` any number. A file of tools is a shift of this kind as well (`release.file`).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from random import Random

from toolshift.core.errors import UsageError
from toolshift.core.scene import Scene
from toolshift.core.shift import Change, NotApplicable, Rule, Severity, Shift, shift
from toolshift.core.text import is_count
from toolshift.interop.tools import Toolbox
from toolshift.shifts.action import free_names
from toolshift.shifts.foreign import Foreign, apart_from, by_rule, from_list
from toolshift.shifts.surface import Surface

COUNTS = {1: 50, 2: 200, 3: 400}
LISTS = 8
"""Lists that a pool has, so that one unlucky neighbour is not a row. Tasks share them, for a list
of hundreds of tools takes long to compile."""
MAX_AROUND = 5_000
PREFIX = "crowded_list_"
ORDER = 2
"""After changes of the graph and of behaviour, and before those of the surface: these reach the
foreign tools as well where they reach all that is shown."""


@shift(
    tier="perception",
    dimension="action",
    level=1,
    order=ORDER,
    imitates="A host that has connected twenty MCP servers sends all of their tools on each turn",
)
def crowded_list(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Show the tools among 50 (1), 200 (2) or 400 (3) of other domains; none of them helps."""
    return _among_made(scene, rng, COUNTS[severity])


def of_number(name: str) -> Shift:
    """The shift `crowded_list_N`: the same for a number of one's own, at one severity."""
    text = name.removeprefix(PREFIX)
    if not is_count(text) or not 1 <= int(text) <= MAX_AROUND or text != str(int(text)):
        raise UsageError(
            f"shift {name}: write {PREFIX}N, where N is how many tools stand around those of the "
            f"task, 1 to {MAX_AROUND}"
        )
    count = int(text)

    def rule(scene: Scene, rng: Random, severity: Severity) -> Change:
        return _among_made(scene, rng, count)

    return _declared(name, f"Show the tools among {count} of other domains.", rule)


def of_tools(name: str, toolbox: Toolbox, file: bytes, origin: str) -> Shift:
    """The shift of a file of tools: those of a task stand among them."""

    def rule(scene: Scene, rng: Random, severity: Severity) -> Change:
        own = {tool.name for tool in scene.open().tools()}
        others = tuple(one for one in from_list(toolbox) if one.tool.name not in own)
        if not others:
            raise NotApplicable("every tool of the file is one of the scene's own")
        return among(scene, rng, others)

    count = len(toolbox.tools)
    return _declared(name, f"Show the tools among the {count} of {origin}.", rule, file)


def _declared(name: str, summary: str, rule: Rule, file: bytes = b"") -> Shift:
    return Shift(
        name=name,
        version=1,
        tier="perception",
        dimension="action",
        level=1,
        preserves="end_state",
        order=ORDER,
        imitates="",
        summary=summary,
        rule=rule,
        file=file,
        severities=(2,),
    )


def _among_made(scene: Scene, rng: Random, count: int) -> Change:
    made = by_rule(scene.task.pool, rng.randrange(LISTS), count, apart_from(scene))
    return among(scene, rng, made)


def among(scene: Scene, rng: Random, others: tuple[Foreign, ...]) -> Change:
    """The change that shows foreign tools, in their blocks, around those of a scene as one more."""
    free: Callable[[str], str] = free_names(scene)
    named = [(free(one.tool.name), one) for one in others]
    blocks = [[name for name, _ in group] for _, group in groupby(named, lambda n: n[1].block)]
    blocks.insert(rng.randint(0, len(blocks)), [tool.name for tool in scene.tools])
    extra = tuple(
        one.tool if name == one.tool.name else one.tool.with_(name=name) for name, one in named
    )
    return Change(
        layer=Surface(
            extra=extra,
            answers={name: one.answer for name, one in named},
            order=tuple(name for block in blocks for name in block),
            seed=rng.getrandbits(32),
        )
    )

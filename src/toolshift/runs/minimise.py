"""The smallest scene in which an agent still fails, as a pytest case.

Greedy: it takes shifts off the stack, lowers severities, and shows fewer tools, as long as the
same agent goes on failing. The result depends on the order of these steps and is small, not
provably the smallest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from toolshift.agents.contestant import Contestant
from toolshift.core.errors import UsageError
from toolshift.core.scene import Applied, Stack
from toolshift.core.shift import NotApplicable
from toolshift.episode.with_tools import with_tools
from toolshift.runs.cell import Cell, build, check_solved, write_stack
from toolshift.runs.run_folder import Record
from toolshift.runs.study import play
from toolshift.shifts.registry import find_shift


class Smallest(msgspec.Struct, frozen=True):
    """What was found.

    Attributes:
        cell: the scene; `tools` the tools shown in it, all where empty.
        tried: how many episodes it took.
        cause: why the agent fails in it.
    """

    cell: Cell
    tools: tuple[str, ...]
    tried: int
    cause: str


def find_smallest(contestant: Contestant, cell: Cell) -> Smallest:
    """Makes a scene smaller while the agent fails in it."""
    search = _Search(contestant)
    try:
        failed = search.fails(cell)
    except NotApplicable as reason:
        raise UsageError(
            f"{cell.stack} is not applicable to {cell.lineage} now: {reason}"
        ) from None
    if search.last.grade.void:
        raise UsageError(
            f"the episode of {contestant.name} in {cell.lineage} ({cell.said}) is void now: "
            f"{search.last.grade.cause}. It says nothing about the agent; try another episode."
        )
    if not failed:
        raise UsageError(
            f"{contestant.name} passes {cell.lineage} ({cell.said}) now: there is nothing to "
            "make smaller. A model that samples may fail only in some runs."
        )
    smaller = True
    while smaller:
        smaller_cell = next((one for one in _smaller(cell) if search.still_fails(one)), None)
        smaller, cell = smaller_cell is not None, smaller_cell or cell
    tools = search.fewer_tools(cell)
    search.fails(cell, tools)
    return Smallest(cell, tools, search.tried, search.last.grade.cause)


class _Search:
    def __init__(self, contestant: Contestant) -> None:
        self.contestant = contestant
        self.tried = 0
        self.last: Record

    def still_fails(self, smaller: Cell) -> bool:
        """Whether a smaller scene has the same right end and fails for the same cause."""
        before = self.last.grade
        try:
            failed = self.fails(smaller)
        except NotApplicable:
            return False
        after = self.last.grade
        same = failed and (after.cause, after.solvable) == (before.cause, before.solvable)
        if not same:
            self.last = msgspec.structs.replace(self.last, grade=before)
        return same

    def fails(self, cell: Cell, tools: Sequence[str] = ()) -> bool:
        scene = build(cell)
        scene = with_tools(scene, tools) if tools else scene
        check_solved(cell, scene)
        self.last = play(self.contestant, cell, scene, fresh=False)
        self.tried += 1
        if self.last.end == "infrastructure":
            raise UsageError(
                f"{self.contestant.name} cannot be run: {self.last.steps[-1].said}. Try again "
                "when it works."
            )
        return not self.last.grade.passed and not self.last.grade.void

    def fewer_tools(self, cell: Cell) -> tuple[str, ...]:
        """Hides what the oracle does not use: all of it at once, else one after the other."""
        scene = build(cell)
        everything = tuple(tool.name for tool in scene.tools)
        used = {step.name for step in scene.calls}
        needed = tuple(name for name in everything if name in used)
        if len(needed) == len(everything):
            return ()
        if needed and self.fails(cell, needed):
            return needed
        shown = everything
        for name in everything:
            fewer = tuple(other for other in shown if other != name)
            if name not in used and self.fails(cell, fewer):
                shown = fewer
        return shown if len(shown) < len(everything) else ()


def _smaller(cell: Cell) -> Iterator[Cell]:
    """Scenes one step smaller: a shift less, or one of lower severity."""
    change: Callable[..., Cell] = msgspec.structs.replace
    for place in range(len(cell.shifts)):
        yield change(cell, shifts=_without(cell.shifts, place), task="")
    for place, applied in enumerate(cell.shifts):
        lower = [n for n in find_shift(applied.shift).severities if n < applied.severity]
        for severity in lower:
            stack = list(cell.shifts)
            stack[place] = Applied(applied.shift, severity)
            yield change(cell, shifts=tuple(stack), task="")


def _without(stack: Stack, place: int) -> Stack:
    return stack[:place] + stack[place + 1 :]


CASE = '''"""The smallest scene in which {agent} still fails, found by `toolshift minimise`.

It failed by: {cause}.
"""

import toolshift


def test_{name}() -> None:
    grade = toolshift.attempt(
        {spec!r},
        {task!r},
        {stack!r},
        seed={seed},
        pool={pool!r},
        size={size},
        trial={trial},
        tools={tools!r},{under}
    )
    assert grade.passed, grade.cause
'''


def as_test(smallest: Smallest, spec: str, agent: str) -> str:
    """Writes the finding as a pytest file that fails until the agent is fixed."""
    cell = smallest.cell
    words = [agent, cell.world, cell.kind, *(applied.shift for applied in cell.shifts)]
    name = "_".join("".join(c if c.isalnum() else "_" for c in word) for word in words)
    return CASE.format(
        agent=agent,
        cause=smallest.cause.replace("_", " "),
        name=name.lower(),
        spec=spec,
        task=f"{cell.world}/{cell.kind}/{cell.index}",
        stack=cell.stack,
        seed=cell.seed,
        pool=cell.pool,
        size=cell.size,
        trial=cell.trial,
        tools=smallest.tools,
        under=f"\n        under={write_stack(cell.under)!r}," if cell.under else "",
    )

"""A scene: a task, its truth, and the stack of layers through which an agent meets it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import msgspec

from toolshift.core.ask import Ask
from toolshift.core.layer import Layer, Session, ToolLists
from toolshift.core.tool import Tool
from toolshift.core.world import TaskKind, Truth, World

if TYPE_CHECKING:
    from toolshift.core.step import Step


Calls = Sequence[tuple[str, dict[str, Any]]]


class Task(msgspec.Struct, frozen=True):
    """What is asked, as data: enough to build the same scene again anywhere.

    `lineage` joins the clean and the shifted scenes of one task; `id` is a hash of the content,
    so that a changed generator cannot pass for the old task.
    """

    world: str
    kind: str
    pool: str
    seed: int
    size: int
    index: int
    lineage: str
    id: str


class Outcome(msgspec.Struct, frozen=True):
    """What counts as success.

    Attributes:
        effects: the writes that must have happened, as a set; no others may.
        forgiven: writes that may have happened, such as those of a request taken back. Of a
            contradictory request those of earlier turns alone.
        refusal: for an unsolvable scene, the reason for which a refusal is right; else "".
        subject: what does not exist, where that is the reason: evidence is a lookup of it.
        witness: true tools after a call of one of which the reason is plain, where a result does
            not show it by itself; () where it is plain from the start.
        calls_alone: only what was called counts; how the episode was ended does not.
        presumed: that a refusal is right is a judgement from the expected calls of the task alone.
            An answer that meets the task's own check by what was shown passes as well.
    """

    effects: tuple[Any, ...] = ()
    forgiven: tuple[Any, ...] = ()
    refusal: str = ""
    subject: str = ""
    witness: tuple[str, ...] | None = None
    calls_alone: bool = False
    presumed: bool = False


class Applied(msgspec.Struct, frozen=True):
    """A shift that a scene has been through."""

    shift: str
    severity: int


Stack = tuple[Applied, ...]
"""Shifts in the order in which they are applied."""


class Declared(Protocol):
    """What a scene needs to know about a shift to say whether it is applicable."""

    @property
    def name(self) -> str:
        """Of the shift."""
        ...

    @property
    def base(self) -> str:
        """Its name without a version."""
        ...

    @property
    def level(self) -> int:
        """1 the surface, 2 the interface over time, 3 the truth."""
        ...

    @property
    def file(self) -> bytes:
        """The content of the file that it was made from; empty for one that is code."""
        ...

    @property
    def preserves(self) -> str:
        """ "end_state", "solvability" or "nothing"."""
        ...


@dataclass(frozen=True, eq=False)
class Scene:
    """A task as one agent will meet it. Scenes are values: a shift makes a new one.

    `rehearse` gives the steps of a sound agent through a scene. It is given, so that a scene knows
    no agent.

    Attributes:
        own_tools: the tools are somebody else's, so nobody has checked what a shift makes of their
            results: each shifted scene is proved when it is made.
    """

    own_tools: ClassVar[bool] = False

    task: Task
    world: World
    truth: Truth
    asks: tuple[Ask, ...]
    outcome: Outcome
    system: str
    rehearse: Callable[[Scene], tuple[Step, ...]] = field(repr=False)
    layers: tuple[Layer, ...] = ()
    shifts: tuple[Applied, ...] = ()
    origin: Scene | None = field(default=None, repr=False)

    @property
    def solvable(self) -> bool:
        """Whether the right ending is an answer; otherwise it is a refusal."""
        return not self.outcome.refusal

    @property
    def clean(self) -> Scene:
        """The scene before any shift."""
        return self.origin or self

    def open(self) -> Session:
        """A live interface of this scene, in its first state."""
        return Session(self.truth.open(), self.layers, self._lists)

    def open_live(self) -> Session:
        """A live interface for an agent; another than `open` where the tools are real."""
        return self.open()

    def looks_up(self, calls: Calls) -> bool:
        """Whether some true calls look up what does not exist.

        Args:
            calls: pairs of a true tool's name and its arguments.

        Returns:
            True as well where the reason for the refusal is another, so that there is nothing to
            look up.
        """
        subject = self.outcome.subject.lower()
        values = {str(value).lower() for _, made in calls for value in made.values()}
        return not subject or subject in values

    def not_applicable_reason(self, shift: Declared) -> str:
        """Why a shift cannot be truthful in this scene.

        Args:
            shift: what is declared of it.

        Returns:
            A clause; "" where it may be truthful.
        """
        return ""

    def known_results(self, tool: str) -> Iterable[Any]:
        """What a true tool is known to return, in other tasks as well.

        Args:
            tool: its name.

        Returns:
            The data of results; none where tasks are drawn.
        """
        return ()

    @cached_property
    def _lists(self) -> ToolLists:
        """What the layers show; a scene with more layers starts from those of the scene below."""
        return {}

    @cached_property
    def tools(self) -> tuple[Tool, ...]:
        """The tools that are shown at the start."""
        return tuple(tool for tool in self.open().tools() if not tool.retired)

    @cached_property
    def reachable(self) -> tuple[Tool, ...]:
        """The tools that are shown at the start, and those that a search can bring."""
        layers = tuple(layer for layer in self.layers if not layer.defers)
        if len(layers) == len(self.layers):
            return self.tools
        return tuple(dict.fromkeys((*self.tools, *replace(self, layers=layers).tools)))

    @cached_property
    def differs_at_start(self) -> bool:
        """Whether the requests or the tools differ from the clean scene."""
        if [ask.text for ask in self.clean.asks] != [ask.text for ask in self.asks]:
            return True
        before, after = (
            [(tool.name, tool.description, tool.params) for tool in scene.tools]
            for scene in (self.clean, self)
        )
        return before != after

    @cached_property
    def rehearsal(self) -> tuple[Step, ...]:
        """The oracle's steps through this scene; a shift picks its targets from the calls."""
        return self.rehearse(self)

    @cached_property
    def calls(self) -> tuple[Step, ...]:
        """The oracle's calls through this scene."""
        return tuple(step for step in self.rehearsal if step.kind == "call")

    def with_(self, **changes: Any) -> Scene:
        """A copy with some parts replaced, which remembers the clean scene.

        Args:
            changes: the new parts, by the name of the attribute.

        Returns:
            Another scene; this one stays as it is.
        """
        made = replace(self, origin=self.clean, **changes)
        under = made.layers[: len(self.layers)]
        if made.truth is self.truth and list(map(id, under)) == list(map(id, self.layers)):
            made._lists.update(self._lists)
        return made


def reword(scene: Scene, turn: int, goal: dict[str, Any]) -> str | None:
    """Restates a request of the task in its present phrasing with other values."""
    requests = kind_of(scene).requests
    ask = scene.asks[turn]
    if len(requests) != len(scene.asks):
        return None
    for bank in requests[turn].phrasings.values():
        for template in bank:
            if template.format(**ask.goal) == ask.text:
                return template.format(**goal)
    return None


def kind_of(scene: Scene) -> TaskKind:
    """The task kind that a scene was made from."""
    return scene.world.kinds[scene.task.kind]


@runtime_checkable
class GivenTasks(Protocol):
    """A world whose tasks are given, not drawn. It makes its clean scenes itself."""

    counts: Mapping[str, int]

    def scene(self, kind: str, index: int, seed: int, pool: str, size: int) -> Scene:
        """The clean scene of a task that is given."""
        ...

"""Shifts: pure functions from a scene to a change, returned as data, and their registry."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import lru_cache, wraps
from random import Random
from typing import Any, Literal, ParamSpec, TypeVar, get_args

from toolshift.core.ask import Ask
from toolshift.core.errors import UsageError, defined_at, placed
from toolshift.core.layer import Layer
from toolshift.core.message import REASONS
from toolshift.core.names import unknown
from toolshift.core.scene import Outcome, Scene, Task
from toolshift.core.world import Truth, World

Severity = Literal[1, 2, 3]
Tier = Literal["none", "perception", "interaction", "reasoning", "internalization"]
Dimension = Literal["none", "query", "action", "observation", "domain"]
Preserves = Literal["end_state", "solvability", "nothing"]
TIERS: tuple[str, ...] = get_args(Tier)[1:]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)


class NotApplicable(Exception):
    """A shift cannot be applied truthfully to this scene; the message says why."""


class Unproved(NotApplicable):
    """A shift makes a scene that the oracle cannot solve: a fault of the shift, not of the task."""


@lru_cache(maxsize=4096)
def split_version(name: str) -> tuple[str, int]:
    """A name and the version that it asks for, 0 for none: `redirect@1`.

    What stands behind the @ of a shift from a file is a hash of eight digits and no version.
    """
    base, _, version = name.partition("@")
    if base and version.isdigit() and len(version) < 4:
        return base, int(version)
    return name, 0


def without_versions(text: str) -> str:
    """A stack of shifts as text, without their versions: what draws are derived from."""
    return re.sub(r"@\d{1,3}(?=[:+*]|$)", "", text)


_EDITS: dict[str, type] = {
    "truth": Truth,
    "asks": tuple,
    "outcome": Outcome,
    "system": str,
    "world": World,
    "task": Task,
}


@dataclass(frozen=True)
class Change:
    """What a shift does to a scene: a layer for the interface, and edits of the truth.

    Whatever is None stays as it is. `layer` (or several, the lowest first) goes on top of those
    already there.
    """

    layer: Layer | tuple[Layer, ...] = ()
    truth: Truth | None = None
    asks: tuple[Ask, ...] | None = None
    outcome: Outcome | None = None
    system: str | None = None
    world: World | None = None
    task: Task | None = None

    def __post_init__(self) -> None:
        layers = self.layer if isinstance(self.layer, tuple) else (self.layer,)
        for layer in layers:
            if isinstance(layer, type) and issubclass(layer, Layer):
                raise TypeError(f"layer={layer.__name__} is a class: write {layer.__name__}(...)")
            if not isinstance(layer, Layer):
                raise TypeError(f"layer is a toolshift.Layer or a tuple, not {layer!r:.80}")
        for name, kind in _EDITS.items():
            value = getattr(self, name)
            if value is not None and not isinstance(value, kind):
                raise TypeError(f"{name} is a {kind.__name__}, not {value!r:.80}")
        if not all(isinstance(ask, Ask) for ask in self.asks or ()):
            raise TypeError("asks is a tuple of the user's turns, as in scene.asks")
        if self.outcome is not None and self.outcome.refusal not in ("", *REASONS):
            raise ValueError(unknown("reason of a refusal", self.outcome.refusal, REASONS))

    def edits(self) -> dict[str, Any]:
        """The parts of the scene that are replaced."""
        named = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "layer"}
        return {name: value for name, value in named.items() if value is not None}


Rule = Callable[[Scene, Random, Severity], Change]


@dataclass(frozen=True)
class Shift:
    """A shift and what is declared of it.

    Attributes:
        level: 1 the surface, one to one; 2 the interface over time; 3 the truth.
        preserves: "end_state" (same answer, same effects), "solvability" (another answer), or
            "nothing" (the scene becomes unsolvable).
        order: where it stands in a composition: the deeper change is made first, so that a layer
            of the surface covers what a change of the graph has made.
        imitates: a changelog entry of the kind that causes this in the real world.
        file: the content of the file that it was made from.
        severities: those that it has; (2,) for a shift of one level.
    """

    name: str
    version: int
    tier: Tier
    dimension: Dimension
    level: Literal[1, 2, 3]
    preserves: Preserves
    order: int
    imitates: str
    summary: str
    rule: Rule
    file: bytes = b""
    severities: tuple[Severity, ...] = SEVERITIES

    @property
    def base(self) -> str:
        """Its name without a version: `redirect` of `redirect@1`."""
        return split_version(self.name)[0]


_LEVEL_OF: dict[str, Literal[1, 2]] = {"interaction": 2, "reasoning": 2, "internalization": 2}

declared: dict[str, Shift] = {}
"""What `shift` has registered in this process; `toolshift.shifts.registry` finds shifts."""


_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")


def _in_brackets(make: Callable[_Given, _Made]) -> Callable[_Given, _Made]:
    """Says what is missing where a decorator that needs brackets stands over a function bare."""

    @wraps(make)
    def called(*given: _Given.args, **named: _Given.kwargs) -> _Made:
        if given:
            what = getattr(given[0], "__name__", type(given[0]).__name__)
            place = placed(f"shift {what!r}", defined_at(given[0]))
            raise UsageError(f"{place}: write @shift(tier=..., dimension=...) over it")
        return make(*given, **named)

    return called


@_in_brackets
def shift(
    *,
    tier: Tier,
    dimension: Dimension,
    level: Literal[1, 2, 3] | None = None,
    preserves: Preserves = "end_state",
    imitates: str = "",
    order: int | None = None,
    version: int = 1,
    name: str = "",
    one_level: bool = False,
) -> Callable[[Rule], Rule]:
    """Registers a function of (scene, rng, severity) as a shift under its own name.

    The function returns a `Change`, and raises `NotApplicable` where it cannot be truthful.

    Args:
        tier: at which an agent has to adapt.
        dimension: what is changed.
        level: as of `Shift`; where None, 3 for what does not preserve the end state, else by the
            tier: 1 for perception and none, 2 for the others.
        preserves: as of `Shift`.
        imitates: as of `Shift`.
        order: as of `Shift`; by the level where None.
        version: raised whenever what an agent is shown changes.
        name: where it is not the function's; a former version that is kept is `NAME@VERSION`.
        one_level: where severity does not tell levels apart; it has severity 2 alone.

    Returns:
        A decorator, which returns the function as it was.

    Raises:
        UsageError: where another module has a shift of this name, for a name that no selection
            can reach, and for a tier, dimension, level or `preserves` that there is not.
    """
    given_name = name

    def register(rule: Rule) -> Rule:
        if not callable(rule) or isinstance(rule, type):
            raise UsageError(
                f"@shift(...) must decorate a function of (scene, rng, severity), not {rule!r:.80}"
            )
        name = given_name or getattr(rule, "__name__", "")
        wrong = _wrong_name(name)
        wrong = wrong or next(_wrong_values(tier, dimension, preserves, level, order, version), "")
        wrong = wrong or next(_wrong_extras(imitates, one_level), "")
        if name in declared and declared[name].rule.__module__ != rule.__module__:
            other = declared[name].rule.__module__
            wrong = wrong or f"{other} has a shift of this name already; choose another"
        if wrong:
            raise UsageError(f"{placed(f'shift {name!r}', defined_at(rule))}: {wrong}")
        summary = (rule.__doc__ or "").strip().splitlines()[0] if rule.__doc__ else ""
        reached = level or (3 if preserves != "end_state" else _LEVEL_OF.get(tier, 1))
        place = 4 - reached if order is None else order
        declared[name] = Shift(
            name,
            version,
            tier,
            dimension,
            reached,
            preserves,
            place,
            imitates,
            summary,
            rule,
            severities=(2,) if one_level else SEVERITIES,
        )
        return rule

    return register


_SELECTS = ("all", "clean", *TIERS)
"""What a selection reads as something else than one shift."""


def _wrong_name(name: object) -> str:
    """Why a selection could not reach a shift of this name; "" where it can.

    There `:`, `+`, `*` and a space end a name, and what ends in `.json` is a file.
    """
    advice = 'choose another, with name="..." or for the function'
    if not isinstance(name, str):
        return f"name must be a text, not {name!r:.80}"
    if not name:
        return 'it has no name: give it one, with name="..."'
    if name in _SELECTS:
        return f"in a selection {name!r} does not mean one shift; {advice}"
    if not re.fullmatch(r"\w[\w.-]*(@\d{1,3})?", name) or name.endswith(".json"):
        return f"a selection cannot name it: letters, digits, _ and - only; {advice}"
    return ""


def _wrong_extras(imitates: object, one_level: object) -> Iterator[str]:
    """What `@shift` was given for what may be left out, where it is of another type."""
    if not isinstance(imitates, str):
        yield f"imitates must be a text, not {imitates!r:.80}"
    if not isinstance(one_level, bool):
        yield f"one_level must be True or False, not {one_level!r:.80}"


def _wrong_values(
    tier: object,
    dimension: object,
    preserves: object,
    level: object,
    order: object,
    version: object,
) -> Iterator[str]:
    """What `@shift` was given that it does not take, and what it takes."""
    words = (("tier", tier, Tier), ("dimension", dimension, Dimension))
    for what, value, kind in (*words, ("preserves", preserves, Preserves)):
        if not isinstance(value, str):
            yield f"{what} must be one of {', '.join(get_args(kind))}, not {value!r:.80}"
        elif value not in get_args(kind):
            yield unknown(what, value, get_args(kind))
    if level is not None and level not in (1, 2, 3):
        yield f"level must be 1, 2 or 3, not {level!r:.80}"
    if order is not None and not isinstance(order, int):
        yield f"order must be a whole number, not {order!r:.80}"
    if not isinstance(version, int) or version < 1:
        yield f"version must be a whole number from 1, not {version!r:.80}"

"""What is declared of a shift, as data: enough to read a run without the code of the shift."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Literal

import msgspec

from toolshift.core.errors import UsageError
from toolshift.core.scene import Scene
from toolshift.core.shift import Change, Dimension, Preserves, Severity, Shift, Tier

NO_CODE = "its code is not loaded"


class ShiftFacts(msgspec.Struct, frozen=True):
    """What a `Shift` declares; the attributes are as there."""

    name: str
    version: int
    tier: Tier
    dimension: Dimension
    level: Literal[1, 2, 3]
    preserves: Preserves
    order: int
    imitates: str
    summary: str
    severities: tuple[Severity, ...]


known: dict[str, Shift] = {}
"""Shifts of which runs that were read keep the facts, and that may have no code here."""


def facts_of(shift: Shift) -> ShiftFacts:
    """What a shift declares."""
    fields = ShiftFacts.__struct_fields__
    return ShiftFacts(**{name: getattr(shift, name) for name in fields})


def know_facts(facts: Iterable[ShiftFacts]) -> None:
    """Lets shifts be found by name for what they declare; one without code cannot be applied.

    Two versions of one name stand beside each other, the later to come as `NAME@VERSION`.
    """
    for each in facts:
        other = known.get(each.name)
        versioned = other is not None and other.version != each.version
        name = f"{each.name}@{each.version}" if versioned else each.name
        said = msgspec.structs.asdict(each) | {"name": name}
        known[name] = Shift(**said, rule=_without_code)


def _without_code(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Stands for the code of a shift that is not loaded."""
    raise UsageError(f"{scene.task.lineage}: a shift of its scene cannot be applied: {NO_CODE}")

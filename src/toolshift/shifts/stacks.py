"""Reads how shifts are written: `NAME:SEVERITY`, stacks joined by `+`, tiers, families, files."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import product

import msgspec

from toolshift.core.errors import UsageError
from toolshift.core.names import unknown
from toolshift.core.scene import Applied, Stack
from toolshift.core.shift import SEVERITIES, TIERS, split_version
from toolshift.core.text import is_count
from toolshift.shifts.registry import check_severity, find_shift, shifts
from toolshift.shifts.training_families import HELD_OUT, TRAINING_FAMILIES


class Arm(msgspec.Struct, frozen=True):
    """A stack of shifts and how many tasks of a world meet it (0: all of them)."""

    shifts: Stack
    tasks: int = 0


def read_arms(text: str, severities: tuple[int, ...] = (2,)) -> list[Arm]:
    """Reads `NAME[:SEVERITY][+NAME[:SEVERITY]...][*TASKS]`.

    NAME may be a tier, which stands for its shifts, `all`, or `clean` for no shift at all. A shift
    of one level has severity 2 alone, whatever `severities` says.
    """
    body, star, limit = text.partition("*")
    if star and not (is_count(limit) and int(limit)):
        raise UsageError(f"shift {text!r}: what follows * is a number of tasks, at least 1")
    if body == "clean":
        return []
    for severity in severities:
        _check_severity(severity, text)
    parts = [part.partition(":") for part in body.split("+")]
    choices = [
        [
            Applied(name, severity)
            for name in shift_names(raw)
            for severity in (
                (check_severity(find_shift(name), _severity(number, text)),)
                if colon
                else _severities(name, severities)
            )
        ]
        for raw, colon, number in parts
    ]
    stacks = [_deepest_first(stack) for stack in product(*choices) if not _repeated(stack)]
    if not stacks:
        twice = _repeated(tuple(choice[0] for choice in choices))
        raise UsageError(f"shift {text!r}: {twice} is given twice, and can be applied only once")
    return list(distinct(Arm(stack, int(limit or 0)) for stack in stacks))


def _repeated(stack: Stack) -> str:
    """A shift that is twice in a stack; "" if there is none."""
    names = [find_shift(applied.shift).base for applied in stack]
    return next((name for name in names if names.count(name) > 1), "")


def distinct(arms: Iterable[Arm]) -> tuple[Arm, ...]:
    """The arms without duplicates."""
    first: dict[tuple[Stack, int], Arm] = {}
    for arm in arms:
        first.setdefault((as_applied(arm.shifts), arm.tasks), arm)
    return tuple(first.values())


def as_applied(stack: Stack) -> Stack:
    """Normalises a stack: a shift made from a file is the same at every severity."""
    return tuple(
        Applied(applied.shift, 0 if find_shift(applied.shift).file else applied.severity)
        for applied in stack
    )


def _deepest_first(stack: Stack) -> Stack:
    """The order in which shifts are applied, whatever the order they were named in."""
    return tuple(
        sorted(stack, key=lambda applied: (find_shift(applied.shift).order, applied.shift))
    )


def read_stack(text: str) -> Stack:
    """Reads `a:2+b:1` as one stack of shifts; severity 2 where none is given."""
    if not text:
        return ()
    arms = read_arms(text)
    if len(arms) != 1:
        raise UsageError(f"{text!r} stands for {len(arms)} stacks of shifts: name one")
    return arms[0].shifts


def shift_names(raw: str) -> list[str]:
    """The shifts that a name stands for: itself, those of a tier, or `all`."""
    if raw == "all":
        return [name for name, shift in shifts().items() if shift.tier != "none"]
    if raw in TIERS:
        return [name for name, shift in shifts().items() if shift.tier == raw]
    if raw in (families := TRAINING_FAMILIES.all()):
        raise UsageError(
            f"{raw} is a family of shifts to train on (`train`, `augment`); to measure, name "
            f"shifts of it: {', '.join(families[raw])}"
        )
    return [find_shift(raw).name]


def _severities(name: str, severities: tuple[int, ...]) -> tuple[int, ...]:
    """The severities of a shift that names none."""
    has = find_shift(name).severities
    return tuple(severity for severity in severities if severity in has) or has


def _severity(text: str, where: str) -> int:
    if not is_count(text):
        raise UsageError(f"shift {where!r}: the severity after : is 1, 2 or 3, not {text!r}")
    return _check_severity(int(text), where)


def _check_severity(severity: int, where: str) -> int:
    if severity not in (1, 2, 3):
        raise UsageError(f"severity {severity} of {where}: it goes from 1 to 3")
    return severity


@lru_cache(maxsize=256)
def stacks_of(entry: str, severity: int) -> tuple[Stack, ...]:
    """The stacks of shifts that an entry of a mix stands for, at one severity.

    Those of `HELD_OUT` are among them only where the entry names them.
    """
    name, colon, own = entry.partition(":")
    families = TRAINING_FAMILIES.all()
    if name not in families:
        known = {*families, *TIERS, "all", *shifts()}
        for text in entry.partition("*")[0].split("+"):
            part = split_version(text.partition(":")[0])[0]
            if part in families:
                raise UsageError(
                    f"{part} in {entry} is a family, and + joins shifts: name its shifts "
                    f"({', '.join(families[part])}), or name families one by one"
                )
            if part not in known and ".json" not in part and "@" not in part:  # else of a file
                raise UsageError(unknown("shift or family", part, known))
        stacks = (arm.shifts for arm in read_arms(entry, (severity,)))
        barred = {name for name in HELD_OUT if name not in entry}
        return tuple(s for s in stacks if barred.isdisjoint(applied.shift for applied in s))
    if colon and own not in map(str, SEVERITIES):
        raise UsageError(f"severity {own!r} of {entry}: it goes from 1 to 3")
    given = (int(own) if colon else severity,)
    return tuple(arm.shifts for text in families[name] for arm in read_arms(text, given))

"""How a value is written as an argument after types, choices, units or clocks have changed."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Literal

import msgspec

from toolshift.core.values import as_json, is_number

ShapeKind = Literal["object", "list", "text", "keys", "json", "choice", "unit", "clock"]
_CLOCK = re.compile(r"(?<!\d)([01]\d|2[0-3]):([0-5]\d)(?!\d)")
_WHOLE = re.compile(r"-?\d+")
_DAY = 24 * 60


@dataclass(frozen=True, slots=True)
class Shape:
    """One way to write a value, one to one.

    Attributes:
        kind: "object" {key: value}; "list" [value]; "text" the number as a string; "keys" a list of
            objects of one property as the list of its values; "json" a list of objects as a list of
            JSON texts; "choice" another choice; "unit" the number times `scale`; "clock" the time
            of day plus `minutes`.
        key: of "object" and "keys".
        choices: of "choice": each former choice with that of today.
        scale: of "unit".
        minutes: of "clock".
        inverted: writes what it would read, and reads what it would write.
    """

    kind: ShapeKind
    key: str = ""
    choices: tuple[tuple[Any, Any], ...] = ()
    scale: float = 1.0
    minutes: int = 0
    inverted: bool = False

    @property
    def inverse(self) -> Shape:
        """The shape that undoes this one."""
        return replace(self, inverted=not self.inverted)

    def write(self, value: Any) -> Any:
        """The value as it is written now; one that does not fit stays as it is.

        Args:
            value: as it was written before.

        Returns:
            The same value in this shape.
        """
        return self._back(value) if self.inverted else self._forth(value)

    def read(self, written: Any) -> Any:
        """What `write` was given. What it cannot have written comes back as it is.

        Args:
            written: a value in this shape.

        Returns:
            The value as it was written before.
        """
        return self._forth(written) if self.inverted else self._back(written)

    def _forth(self, value: Any) -> Any:
        if self.kind == "object":
            return {self.key: value}
        if self.kind == "list":
            return [value]
        if self.kind == "text":
            return _digits(value) if is_number(value) else value
        if self.kind in ("keys", "json") and isinstance(value, list):
            return [self._entry(one) for one in value]
        if self.kind == "choice":
            return next((new for old, new in self.choices if old == value), value)
        if self.kind == "unit" and is_number(value):
            return tidy(value * self.scale)
        if self.kind == "clock" and isinstance(value, str):
            return moved(value, self.minutes)
        return value

    def _back(self, written: Any) -> Any:
        if self.kind == "object":
            return written.get(self.key, written) if isinstance(written, dict) else written
        if self.kind == "list":
            return written[0] if isinstance(written, list) and len(written) == 1 else written
        if self.kind == "text" and isinstance(written, str):
            return _number(written)
        if self.kind in ("keys", "json") and isinstance(written, list):
            return [self._object(one) for one in written]
        if self.kind == "choice":
            return next((old for old, new in self.choices if new == written), written)
        if self.kind == "unit" and is_number(written):
            return tidy(written / self.scale)
        if self.kind == "clock" and isinstance(written, str):
            return moved(written, -self.minutes)
        return written

    def _entry(self, one: Any) -> Any:
        if self.kind == "json":
            return as_json(one)
        return one.get(self.key) if isinstance(one, dict) else one

    def _object(self, one: Any) -> Any:
        if self.kind == "keys":
            return {self.key: one}
        try:
            return msgspec.json.decode(one) if isinstance(one, str) else one
        except (ValueError, RecursionError):
            return one


def tidy(number: float) -> float | int:
    """A number rounded to six places; a whole one without the point."""
    near = round(number, 6)
    return int(near) if near == int(near) else near


def moved(text: str, minutes: int) -> str:
    """Shifts every time of day in a text by some minutes, past midnight if needed."""

    def later(match: re.Match[str]) -> str:
        hours, rest = divmod((int(match[1]) * 60 + int(match[2]) + minutes) % _DAY, 60)
        return f"{hours:02d}:{rest:02d}"

    return _CLOCK.sub(later, text) if minutes else text


def _digits(number: float) -> str:
    """A number in all of its digits, without an exponent."""
    if isinstance(number, int) or number.is_integer():
        return str(int(number))
    return f"{Decimal(repr(number)):f}"


def _number(text: str) -> Any:
    try:
        if _WHOLE.fullmatch(text):
            return int(text)
        number = float(text)
        return int(number) if number == int(number) else number
    except (ValueError, OverflowError):
        return text

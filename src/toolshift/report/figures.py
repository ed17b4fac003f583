"""Figures and foreign text as markup.

Each figure says where it stands in the reports (a JSON pointer in `data-at`, led by the number of
the run) and what it is there (`value`), so that a page can be checked against `--json`.
"""

from __future__ import annotations

import json
import re
from math import isnan
from typing import Any

from markupsafe import Markup

from toolshift.core.text import one_line, storable
from toolshift.measure.statistics import Interval

LONGEST = 240
"""Characters of a foreign string that are shown."""
UNDEFINED = "undefined"
_UNSAFE = {character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def shown(text: object, longest: int = LONGEST) -> str:
    """Foreign text as it may be shown: on one line, marks made visible, and not too long."""
    whole = str(text)
    said = one_line(whole[:longest])
    return said if len(whole) <= longest else f"{said}… ({len(whole):,} characters)"


def foreign(text: object, longest: int = LONGEST) -> Markup:
    """Foreign text as markup that keeps its direction to itself."""
    return Markup("<bdi>{}</bdi>").format(shown(text, longest))


def safe_json(value: object) -> str:
    """JSON that may stand inside a script element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    text = re.sub("[<>&\u2028\u2029]", lambda found: _UNSAFE[found[0]], text)
    return storable(text)


def figure(value: Interval | float | None, at: str, form: str, why: str = "") -> Markup:
    """A figure of a report."""
    plain = as_plain(value)
    if plain is None or (isinstance(plain, list) and plain[0] is None):
        said = Markup('<span class="undefined">{}</span>').format(
            f"{UNDEFINED}: {why}" if why else UNDEFINED
        )
    else:
        said = _WRITE[form](value)
    return Markup('<data class="figure" value="{}" data-at="{}">{}</data>').format(
        json.dumps(plain), at, said
    )


def as_plain(value: Interval | float | None) -> Any:
    """A figure as JSON has it: an interval as estimate, low, high; None for what is undefined."""
    if isinstance(value, Interval):
        return [as_plain(each) for each in (value.estimate, value.low, value.high)]
    return None if value is None or isnan(value) else value


def signed(points: float) -> str:
    """Points with a sign, as in +3; the minus is a real one."""
    rounded = round(points)
    return f"{rounded:+d}".replace("-", "−") if rounded else "0"


def share(value: float) -> str:
    """A rate in percent, without limits."""
    return f"{100 * value:.0f}%"


def seconds(value: float) -> str:
    """A duration."""
    return f"{1000 * value:.1f} ms" if value < 1 else f"{value:.1f} s"


def _limits(middle: str, low: str, high: str) -> Markup:
    return Markup('<b>{}</b> <span class="limits">[{}, {}]</span>').format(middle, low, high)


def _change(value: Interval) -> Markup:
    return _gain(Interval(-value.estimate, -value.high, -value.low, value.method, value.n))


def _gain(value: Interval) -> Markup:
    return _limits(*(signed(100 * each) for each in (value.estimate, value.low, value.high)))


def _rate(value: Interval) -> Markup:
    low, high = (f"{100 * each:.0f}" for each in (value.low, value.high))
    return _limits(share(value.estimate), low, high)


_WRITE: dict[str, Any] = {
    "change": _change,
    "gain": _gain,
    "rate": _rate,
    "share": lambda value: share(value.estimate if isinstance(value, Interval) else value),
    "plain": lambda value: f"{value:,.2f}",
    "count": lambda value: f"{value:,.0f}",
    "seconds": seconds,
}

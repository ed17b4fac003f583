"""Anyone's conversations as training rows, a share of them shifted: PAFT on data of the user's.

Rows of all formats that `toolshift augment` reads become OpenAI messages. What the recipe made fail
has `weight` 0 and carries no loss.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from toolshift.core.errors import UsageError
from toolshift.data.augment import Recipe, digest_of, is_selected, open_questions
from toolshift.data.files import each_made, none_left
from toolshift.train.rows import checked_row, with_known_roles

TARGET = "openai"
Watch = Callable[[int, int], None]


class OwnData(msgspec.Struct, frozen=True):
    """The training rows of a file.

    Attributes:
        rows: with `messages` and `tools`.
        conversations: that could be read.
        selected: how many of them the recipe would shift.
        shifted: how many went through what.
        skipped: how often a shift was not applicable, by shift and reason.
        faults: conversations that cannot be trained on: line and reason.
        open: what the files of coming changes among the shifts leave open.
    """

    rows: list[dict[str, Any]]
    conversations: int
    selected: int
    shifted: dict[str, int]
    skipped: dict[str, int]
    faults: list[tuple[int, str]]
    open: tuple[str, ...] = ()


def own_rows(source: Path, recipe: Recipe, watch: Watch | None = None) -> OwnData:
    """The rows of a file of conversations, a share of which is shifted."""
    recipe = msgspec.structs.replace(recipe, to=TARGET)
    rows: list[dict[str, Any]] = []
    faults: list[tuple[int, str]] = []
    shifted: Counter[str] = Counter()
    skipped: Counter[str] = Counter()
    count = wanted = 0
    for each in each_made(source, recipe):
        try:
            if each.fault:
                raise UsageError(each.fault)
            rows += map(_trainable, each.made.rows or (each.row,))
        except UsageError as wrong:
            faults.append((each.line, str(wrong)))
            continue
        count += 1
        wanted += is_selected(digest_of(each.content), recipe)
        shifted.update([each.made.shifts] if each.made.shifts else [])
        skipped.update(f"{name}: {why}" for name, why in each.made.reasons.items())
        if watch is not None:
            watch(count, 0)
    if not rows:
        raise UsageError(none_left(source, faults, "can be trained on"))
    asked = open_questions(recipe)
    return OwnData(rows, count, wanted, dict(shifted), dict(skipped), faults, asked)


def _trainable(row: dict[str, Any]) -> dict[str, Any]:
    """A row of OpenAI messages as training takes it."""
    return checked_row(with_known_roles(row), "as messages of OpenAI")


def check_shifted(data: OwnData, recipe: Recipe) -> str:
    """Makes sure that shifts reached what is trained on; returns what is to be known of that."""
    reached = sum(data.shifted.values())
    most = max(data.skipped, key=lambda why: data.skipped[why], default="no call is made in them")
    if recipe.alpha and not reached:
        if not data.selected:
            raise UsageError(
                f"alpha {recipe.alpha:g} of {data.conversations} conversations is less than one: "
                "raise --alpha, or give more data"
            )
        raise UsageError(
            f"{', '.join(recipe.shifts)} cannot be applied to any of the {data.selected} "
            f"conversations that alpha asks for (mostly: {most}): choose other shifts"
        )
    said = [f"Open: {one} (conversations that need it are not shifted)." for one in data.open]
    if reached < 0.9 * data.selected:
        said.append(
            f"Only {reached} of the {data.selected} conversations that alpha asks for are shifted; "
            f"the others stay as they are (mostly: {most})."
        )
    return " ".join(said)

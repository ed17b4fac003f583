"""Augmenting rows in memory, or a data set of Hugging Face."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache, partial
from typing import Any, TypeVar, cast

import msgspec

from toolshift.core.shift import SEVERITIES
from toolshift.data.augment import (
    COLUMN,
    DEFAULT,
    DISTRACTORS,
    Recipe,
    augmented,
    check_recipe,
    format_of,
)
from toolshift.data.conversation import Row, RowFault, encoded
from toolshift.data.files import without_holes
from toolshift.data.formats import read_as
from toolshift.data.quick import Quick
from toolshift.data.tools import ToolIndex

Rows = TypeVar("Rows")


def augment(
    dataset: Rows,
    alpha: float = 0.3,
    shifts: tuple[str, ...] = DEFAULT,
    severities: tuple[int, ...] = SEVERITIES,
    seed: int = 0,
    to: str = "",
) -> Rows:
    """Shifts a share of tool-use conversations, as `toolshift augment` does with a file.

    Rows are recognised by what is in them: OpenAI or TRL messages, ShareGPT, Hermes, xLAM,
    ToolACE, the Agent Data Protocol. The data is read twice if distractors are among the shifts.

    Args:
        dataset: a `datasets.Dataset`, also a streaming one, or any iterable of rows that can be
            read again.
        alpha: the share that is shifted, from 0 to 1.
        shifts: families, tiers, shifts, and `distractors` and `endings`.
        severities: for those that name none.
        seed: of every choice.
        to: the format to write; "" for that of each row.

    Returns:
        The like of what was given. In a data set `tools` is JSON in a string, which TRL reads, as
        no fixed columns hold it; a message with `weight` 0 is context only; the column `toolshift`
        says what a row went through, "" for nothing.

    Raises:
        UsageError: for a wrong argument.
        RowFault: for a row that cannot be read, as soon as it is reached.
    """
    recipe = Recipe(alpha, tuple(shifts), tuple(severities), seed, "", to)
    check_recipe(recipe)
    given = cast(Any, dataset)  # datasets is an extra, so its types cannot be named
    functions = _functions(given, recipe) if DISTRACTORS in recipe.shifts else []
    if not hasattr(given, "map"):
        return cast(Rows, _Again(given, recipe, functions))
    work = partial(_batch, recipe=recipe, functions=functions)
    known = given.column_names
    return cast(Rows, given.map(work, batched=True, batch_size=256, remove_columns=known))


class _Again:
    """Augmented rows, made anew each time they are read."""

    def __init__(
        self, rows: Iterable[Row], recipe: Recipe, functions: list[dict[str, Any]]
    ) -> None:
        self.rows, self.recipe, self.functions = rows, recipe, functions

    def __iter__(self) -> Iterator[Row]:
        for row in self.rows:
            yield from _made(row, self.recipe, self.functions)


def _functions(rows: Iterable[Row], recipe: Recipe) -> list[dict[str, Any]]:
    index = ToolIndex()
    for row in rows:
        try:
            said = read_as(format_of(row, recipe), without_holes(row))
        except RowFault:
            continue  # it is said where the row is reached
        index.add(tool.function for tool in said.tools)
    return index.functions


def _made(row: Row, recipe: Recipe, functions: list[dict[str, Any]]) -> tuple[Row, ...]:
    content = _ENCODER.encode(row)
    quick = _quick(recipe).line(content)
    if quick is None:
        return augmented(row, content, recipe, functions).rows or (row,)
    line, shifts = quick
    if not shifts:
        return (row,)
    # Other columns are taken from the row: what is no JSON, such as a date, stays what it is.
    made = msgspec.json.decode(line)
    return ({**row, **{key: made[key] for key in ("messages", "tools", COLUMN)}},)


_ENCODER = msgspec.json.Encoder(enc_hook=lambda value: type(value).__name__)
"""An image, say, has no JSON; choices are derived from the rest of its row."""


@lru_cache(maxsize=8)
def _quick(recipe: Recipe) -> Quick:
    """What is known of lists of tools, kept over rows and batches, in each process."""
    return Quick(recipe)


def _batch(
    columns: dict[str, list[Any]], recipe: Recipe, functions: list[dict[str, Any]]
) -> dict[str, list[Any]]:
    """A batch of rows, by columns."""
    count = len(next(iter(columns.values()), []))
    rows = [{key: values[n] for key, values in columns.items()} for n in range(count)]
    made = [_level(each) for row in rows for each in _made(without_holes(row), recipe, functions)]
    keys = dict.fromkeys(key for row in made for key in row)
    return {key: [row.get(key) for row in made] for key in keys}


def _level(row: Row) -> Row:
    """A row whose columns have the same types in every row."""
    out = {COLUMN: "", **row}
    if not isinstance(row.get("tools", ""), str):
        out["tools"] = encoded(row["tools"])
    if isinstance(row.get("messages"), list):
        out["messages"] = [_level_message(each) for each in row["messages"]]
    if isinstance(row.get("conversations"), list):
        turns = row["conversations"]
        out["conversations"] = [{**each, "weight": each.get("weight", 1)} for each in turns]
    return out


def _level_message(message: dict[str, Any]) -> dict[str, Any]:
    calls = []
    for call in message.get("tool_calls") or ():
        inner = call.get("function", call)
        arguments = inner.get("arguments")
        text = arguments if isinstance(arguments, str) else encoded(arguments or {})
        told = {"name": inner["name"], "arguments": text}
        calls.append({"id": call.get("id") or "", "type": "function", "function": told})
    content = message.get("content")
    return {
        "role": message["role"],
        "content": content if isinstance(content, str | None) else encoded(content),
        "tool_calls": calls or None,
        "tool_call_id": message.get("tool_call_id"),
        "name": message.get("name"),
        "weight": message.get("weight", 1),
    }

"""Augmenting rows in memory, or a data set of Hugging Face."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import lru_cache, partial
from os import PathLike
from typing import Any, TypeVar, cast

import msgspec

from toolshift.core.errors import UsageError
from toolshift.core.shift import SEVERITIES
from toolshift.data.augment import (
    COLUMN,
    DEFAULT,
    Recipe,
    augmented,
    check_recipe,
    format_of,
)
from toolshift.data.augment_quick import Quick
from toolshift.data.conversation import Row, RowFault, encoded
from toolshift.data.formats import FORMATS, read_as
from toolshift.data.parquet import without_holes
from toolshift.data.tools import Lent, ToolIndex

Rows = TypeVar("Rows")


def augment(
    dataset: Rows,
    alpha: float = 0.3,
    shifts: tuple[str, ...] = DEFAULT,
    severities: tuple[int, ...] = SEVERITIES,
    seed: int = 0,
    to: str = "",
    strict: bool = True,
) -> Rows:
    """Shifts a share of tool-use conversations, as `toolshift augment` does with a file.

    Rows are recognised by what is in them: OpenAI or TRL messages, Responses, ShareGPT, Hermes,
    xLAM, ToolACE, the Agent Data Protocol. The data is read twice if distractors are among the
    shifts.

    Args:
        dataset: a `datasets.Dataset`, also a streaming one, or any iterable of rows that can be
            read again, such as a list; no iterator.
        alpha: the share that is shifted, from 0 to 1.
        shifts: families, tiers, shifts, and `distractors` and `endings`.
        severities: for those that name none.
        seed: of every choice.
        to: the format to write; "" for that of each row.
        strict: whether a row that cannot be read ends it. If not, it is left out, and a
            `UserWarning` names it by its place, counted from 0.

    Returns:
        The like of what was given. A row that is not shifted is the same, and one that is keeps its
        further columns and keys. In a data set tools and the arguments of calls are JSON in a
        string, which TRL reads, as no fixed columns hold them; a message with `weight` 0 is context
        only; the column `toolshift` says what a row went through, "" for nothing.

    Raises:
        UsageError: for a wrong argument, such as a path, an iterator or several splits.
        RowFault: for a row that cannot be read, as soon as it is reached, with its place; see
            `strict`.
    """
    _check_rows(dataset)
    recipe = Recipe(alpha, tuple(shifts), tuple(severities), seed, "", to)
    check_recipe(recipe)
    given = cast(Any, dataset)  # datasets is an extra, so its types cannot be named
    functions = _functions(given, recipe) if recipe.lends_tools else {}
    if not hasattr(given, "map"):
        return cast(Rows, _Again(given, recipe, functions, strict))
    work = partial(_batch, recipe=recipe, functions=functions, strict=strict)
    known, features = given.column_names, _features(given, recipe)
    made = given.map(
        work,
        with_indices=True,
        batched=True,
        batch_size=256,
        remove_columns=known,
        features=features,
    )
    return cast(Rows, made)


def _check_rows(given: object) -> None:
    """Checks that these are rows, and that they can be read again."""
    if isinstance(given, str | bytes | PathLike):
        raise UsageError(
            f"{given!r} is no rows: read the file first, as by datasets.load_dataset(...), or "
            "augment it by `toolshift augment`"
        )
    if isinstance(given, Mapping):
        names = ", ".join(map(str, list(given)[:3]))
        several = hasattr(given, "map")
        what = "one of its splits" if several else "a list of rows"
        raise UsageError(f"a {type(given).__name__} with {names} is no list of rows: give {what}")
    if isinstance(given, Iterator):
        raise UsageError(
            f"a {type(given).__name__} can be read only once, and rows are read again: give a "
            "list of them, or a data set"
        )


class _Again:
    """Augmented rows, made anew each time they are read."""

    def __init__(self, rows: Iterable[Row], recipe: Recipe, functions: Lent, strict: bool) -> None:
        self.rows, self.recipe, self.functions, self.strict = rows, recipe, functions, strict

    def __iter__(self) -> Iterator[Row]:
        for place, row in enumerate(self.rows):
            with _placed(place, self.strict):
                yield from _made(_as_row(row), self.recipe, self.functions)


@contextmanager
def _placed(place: int, strict: bool) -> Iterator[None]:
    """Says which row cannot be read, and leaves it out where the work is not to end there."""
    try:
        yield
    except RowFault as wrong:
        where = f"row {place}, counted from 0"
        if strict:
            raise RowFault(f"{where}: {wrong}") from None
        warnings.warn(f"{where}, is left out: {wrong}", stacklevel=2)


def _as_row(row: object) -> Row:
    if not isinstance(row, dict):
        raise RowFault(f"a row is a dict, and not {type(row).__name__}")
    return row


def _functions(rows: Iterable[Row], recipe: Recipe) -> Lent:
    index = ToolIndex()
    for row in rows:
        try:
            bare = without_holes(_as_row(row))
            conversation = read_as(format_of(bare, recipe), bare)
        except RowFault:
            continue  # it is said where the row is reached
        index.add(tool.function for tool in conversation.tools)
    return index.functions


def _made(row: Row, recipe: Recipe, functions: Lent) -> tuple[Row, ...]:
    content = _ENCODER.encode(row)
    quick = _quick(recipe).line(content)
    if quick is None:
        return tuple(map(_own, augmented(row, content, recipe, functions).rows)) or (row,)
    line, shifts = quick
    if not shifts:
        return (row,)
    # Other columns are taken from the row: what is no JSON, such as a date, stays what it is.
    made = msgspec.json.decode(line)
    return ({**row, **{key: made[key] for key in ("messages", "tools", COLUMN)}},)


def _own(row: Row) -> Row:
    """A row whose tools are its own: those of rows with the same list are the same objects."""
    tools = row.get("tools")
    return {**row, "tools": deepcopy(tools)} if isinstance(tools, list) else row


_ENCODER = msgspec.json.Encoder(enc_hook=lambda value: type(value).__name__)
"""An image, say, has no JSON; choices are derived from the rest of its row."""


@lru_cache(maxsize=8)
def _quick(recipe: Recipe) -> Quick:
    """What is known of lists of tools, kept over rows and batches, in each process."""
    return Quick(recipe)


def _batch(
    columns: dict[str, list[Any]],
    places: Sequence[int],
    recipe: Recipe,
    functions: Lent,
    strict: bool,
) -> dict[str, list[Any]]:
    """A batch of rows, by columns."""
    made: list[Row] = []
    for number, place in enumerate(places):
        row = {key: values[number] for key, values in columns.items()}
        with _placed(place, strict):
            made += map(_level, _made_whole(row, recipe, functions))
    keys = dict.fromkeys(key for row in made for key in row)
    return {key: [row.get(key) for row in made] for key in keys}


def _made_whole(row: Row, recipe: Recipe, functions: Lent) -> list[Row]:
    """What becomes of a row of a data set; what no shift touches stays as it is, holes included."""
    bare = without_holes(row)
    made = _made(bare, recipe, functions)
    if made[0] is bare:
        return [row]
    gone = [key for key in bare if key not in made[0]]  # another format has no such columns
    kept = {key: value for key, value in row.items() if key not in gone}
    return [
        {
            **kept,
            **{k: _refilled(v, row.get(k)) for k, v in row_made.items() if v is not bare.get(k)},
        }
        for row_made in made
    ]


def _refilled(items: Any, like: Any) -> Any:
    """Messages with the keys that each has in the row that they come from, holes included."""
    if not (isinstance(items, list) and isinstance(like, list) and isinstance(like[0], dict)):
        return items
    return [{**dict.fromkeys(like[0]), **item} for item in items]


# -- rows in fixed columns ---------------------------------------------------------------------

_TEXT, _NUMBER = "string", "int64"
_CALL = {"id": _TEXT, "type": _TEXT, "function": {"name": _TEXT, "arguments": _TEXT}}
_CALLING = {"tool_calls": [_CALL], "tool_call_id": _TEXT, "name": _TEXT}
_SAID: dict[str, dict[str, Any]] = {
    "messages": {**_CALLING, "weight": _NUMBER},
    "prompt": _CALLING,
    "completion": _CALLING,
    "conversations": {"weight": _NUMBER},
    "content": {
        "function": _TEXT, "kwargs": _TEXT, "description": _TEXT, "tool_call_id": _TEXT,
        "weight": _NUMBER,
    },
}  # fmt: skip
"""What a shift may add to a message, by the column of the messages."""
_SPEAKER = {"role", "from", "class_"}
"""A message has one of these; a column of the user's may have the name of one that we know."""
_IN_TEXT = ("tools", "available_apis", "answers", "arguments", "kwargs")
"""What has other keys in every row: no fixed columns hold it, so it is JSON in a string."""


def _level(row: Row) -> Row:
    """A row whose columns have the same types in every row."""
    out = {COLUMN: "", **_in_text(row)}
    for column, more in _SAID.items():
        if isinstance(row.get(column), list):
            out[column] = [_level_message(message, more) for message in row[column]]
    if isinstance(row.get("details"), dict):
        out["details"] = _in_text(row["details"])
    return out


def _level_message(message: Any, more: dict[str, Any]) -> Any:
    if not isinstance(message, dict) or _SPEAKER.isdisjoint(message):
        return message
    out = {**dict.fromkeys(more), **_in_text(message)}
    if "weight" in more and out["weight"] is None:
        out["weight"] = 1
    if isinstance(out.get("tool_calls"), list):
        out["tool_calls"] = [_level_call(call) for call in out["tool_calls"]]
    return out


def _level_call(call: dict[str, Any]) -> dict[str, Any]:
    inner = call.get("function")
    return {**_in_text(call), "function": _in_text(inner)} if inner else _in_text(call)


def _in_text(held: dict[str, Any]) -> dict[str, Any]:
    return {
        key: encoded(without_holes(value))
        if key in _IN_TEXT and not isinstance(value, str | None)
        else value
        for key, value in held.items()
    }


def _features(given: Any, recipe: Recipe) -> Any:
    """The types of the columns that come out: those of the data, and of what a shift may add.

    None where they are not known, or another format is written; they are then read off the rows.
    """
    known = getattr(given, "features", None)
    if known is None:
        return None
    if recipe.to and not FORMATS.find(recipe.to).recognises(next(iter(given), {})):
        return None
    import datasets  # noqa: PLC0415 - an extra, which is there where its data is given

    out = {key: _typed(key, feature, datasets.Value) for key, feature in known.items()}
    return datasets.Features({**out, COLUMN: datasets.Value(_TEXT)})


def _typed(key: str, own: Any, value: Any) -> Any:
    item = _item(own)
    if key in _SAID and isinstance(item, dict) and not _SPEAKER.isdisjoint(item):
        return _widened(own, [_SAID[key]], value)
    if key == "details" and isinstance(own, dict):
        return {name: _typed(name, kind, value) for name, kind in own.items()}
    return _widened(own, _TEXT, value) if key in _IN_TEXT else own


def _widened(own: Any, more: Any, value: Any) -> Any:
    """A feature with what it lacks of another; `value` is the class of single features."""
    if isinstance(more, list):
        return [_widened(_item(own), more[0], value)]
    if isinstance(more, dict):
        held = own if isinstance(own, dict) else {}
        kept = {key: _typed(key, kind, value) for key, kind in held.items()}
        return {**kept, **{key: _widened(held.get(key), kind, value) for key, kind in more.items()}}
    return own if isinstance(own, value) and own.dtype != "null" else value(more)


def _item(feature: Any) -> Any:
    """The feature of the items of a list; None where it is no list."""
    if isinstance(feature, list):
        return feature[0]
    return getattr(feature, "feature", None)

"""Rows of Parquet: read as JSON lines, and written with the columns that they came in."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from toolshift.core.errors import UsageError
from toolshift.core.installation import extra
from toolshift.data.conversation import Row

CHUNK = 512
_NESTED = (dict, list)
_ENCODER = msgspec.json.Encoder(enc_hook=str)
"""A timestamp that counts nanoseconds, say, has no JSON."""


def parquet() -> Any:
    """What reads and writes Parquet."""
    try:
        import pyarrow.parquet  # noqa: PLC0415 - heavy, and an extra
    except ImportError:
        raise UsageError(
            f"Parquet needs pyarrow, which is not installed; run: {extra('train')}"
        ) from None
    return pyarrow.parquet


def count_of(path: Path) -> int:
    """How many rows a file holds."""
    return int(parquet().ParquetFile(path).metadata.num_rows)


def lines_of(path: Path) -> Iterator[bytes]:
    """The rows of a file as JSON lines."""
    return (as_line(without_holes(row)) for row in rows_of(path))


def rows_of(path: Path) -> Iterator[Row]:
    """The rows of a file, as Arrow has them."""
    try:
        for batch in parquet().ParquetFile(path).iter_batches(CHUNK):
            yield from batch.to_pylist()
    except (OSError, ValueError) as fault:
        raise UsageError(f"{path}: not a Parquet file ({fault})") from None


def as_line(row: Row) -> bytes:
    """A row as a line of JSON."""
    return _ENCODER.encode(row) + b"\n"


def without_holes(value: Any) -> Any:
    """A value without the keys that Arrow fills in where only another row has them."""
    if isinstance(value, dict):
        return {
            key: without_holes(item) if type(item) in _NESTED else item
            for key, item in value.items()
            if item is not None
        }
    return [without_holes(item) for item in value] if isinstance(value, list) else value


# -- writing -----------------------------------------------------------------------------------


def write_typed(lines: Path, out: Path) -> list[str]:
    """Writes JSON lines as Parquet, each column in the type of its values."""
    with lines.open("rb") as file:
        kinds: dict[str, Any] = {}
        keys: dict[tuple[str, ...], frozenset[str]] = {}
        rows = map(msgspec.json.decode, file)
        for chunk in iter(lambda: list(islice(rows, CHUNK)), []):
            for name in dict.fromkeys(key for row in chunk for key in row):
                values = [row[name] for row in chunk if row.get(name) is not None]
                kinds[name] = _kind_of(name, values, kinds.get(name, ...), keys)
        file.seek(0)
        _write(
            ({**dict.fromkeys(kinds), **row} for row in map(msgspec.json.decode, file)),
            kinds,
            None,
            out,
        )
    return [name for name, kind in kinds.items() if kind is None]


def _kind_of(name: str, values: list[Any], known: Any, keys: dict[Any, frozenset[str]]) -> Any:
    """The type of a column that is `known` so far and holds these too; None where there is none."""
    import pyarrow  # noqa: PLC0415 - heavy, and an extra

    if known is None or not all(_is_closed(value, (name,), keys) for value in values):
        return None
    try:
        sides = [pyarrow.array(values).type, *([] if known is ... else [known])]
        schemas = [pyarrow.schema([(name, kind)]) for kind in sides]
        return pyarrow.unify_schemas(schemas, promote_options="permissive").field(0).type
    except (ValueError, TypeError, ArithmeticError, NotImplementedError):
        return None


def _is_closed(value: Any, path: tuple[str, ...], keys: dict[Any, frozenset[str]]) -> bool:
    """Whether the objects in a value have the keys of those met at the same place before.

    Those of a list that is itself the column, as messages are, may lack some.
    """
    if isinstance(value, list):
        return all(_is_closed(item, (*path, ""), keys) for item in value)
    if not isinstance(value, dict):
        return True
    of_the_list = len(path) == 2 and path[1] == ""
    same = of_the_list or keys.setdefault(path, frozenset(value)) == value.keys()
    return same and all(_is_closed(item, (*path, key), keys) for key, item in value.items())


def draft_line(number: int, made: bytes) -> bytes:
    """A row for `write_like`: the number of the row that it comes from, and what that became."""
    return b"%d\t%b\n" % (number, made)


def write_like(source: Path, draft: Path, out: Path) -> list[str]:
    """Writes rows in the columns of the file that they come from.

    What a shift left alone is what was read. Columns get the further keys that shifts need.
    """
    schema = parquet().ParquetFile(source).schema_arrow
    own = {field.name: field.type for field in schema}
    kinds: dict[str, Any] = {}
    joined = _joined(source, draft)
    for chunk in iter(lambda: list(islice(joined, CHUNK)), []):
        for name in dict.fromkeys(key for row, _ in chunk for key in row):
            changed = [row[name] for row, new in chunk if name in new]
            kinds[name] = _type_for(kinds.get(name, own.get(name)), changed)
    rows = (_fitted(row, new, kinds) for row, new in _joined(source, draft))
    order = [*(name for name in own if name in kinds), *(name for name in kinds if name not in own)]
    _write(rows, {name: kinds[name] for name in order}, schema, out)
    return [name for name in order if name in own and kinds[name] is None]


def _joined(source: Path, draft: Path) -> Iterator[tuple[Row, set[str]]]:
    """Each row to write, and the columns that are not as they were read."""
    with draft.open("rb") as file:
        numbered = enumerate(rows_of(source), 1)
        number = 0
        row: Row = {}
        for line in file:
            place, _, content = line.partition(b"\t")
            while number < int(place):
                number, row = next(numbered)
            if content == b"\n":
                yield row, set()
                continue
            made, was = (
                msgspec.json.decode(content),
                msgspec.json.decode(as_line(without_holes(row))),
            )
            new = {name for name in made if name not in was or made[name] != was[name]}
            stays = {name: row[name] for name in row if name in made or name not in was}
            yield {**stays, **{name: made[name] for name in new}}, new


def _type_for(own: Any, values: list[Any]) -> Any:
    """The type of a column that holds these values as well; None where that is JSON in a string."""
    if own is None or not values:
        return own
    import pyarrow  # noqa: PLC0415 - heavy, and an extra

    try:
        restored = [_restored(value, own) for value in values]
        grown = _grown(own, pyarrow.array(restored).type)
        pyarrow.array(restored, grown)  # a text is no number
        return grown
    except (ValueError, TypeError, NotImplementedError):  # as Arrow says that a value does not fit
        return None


def _grown(own: Any, other: Any) -> Any:
    """A type with the keys that it lacks of another."""
    import pyarrow  # noqa: PLC0415 - heavy, and an extra

    kinds = pyarrow.types
    if kinds.is_null(own) or kinds.is_null(other) or own == other:
        return other if kinds.is_null(own) else own
    if kinds.is_struct(own) and kinds.is_struct(other):
        fields = {field.name: field for field in other}
        for field in own:
            grown = fields.get(field.name, field)
            fields[field.name] = field.with_type(_grown(field.type, grown.type))
        known = dict.fromkeys([*(field.name for field in own), *fields])
        return pyarrow.struct([fields[name] for name in known])
    if kinds.is_list(own) or kinds.is_large_list(own):
        if not kinds.is_list(other):
            raise TypeError(f"{other} is no list")
        item = own.value_field.with_type(_grown(own.value_type, other.value_type))
        return pyarrow.large_list(item) if kinds.is_large_list(own) else pyarrow.list_(item)
    if kinds.is_integer(own) and not kinds.is_integer(other):
        raise TypeError(f"{other} is no integer")  # Arrow would cut its fraction off
    return own


def _restored(value: Any, kind: Any) -> Any:
    """A value that went through JSON, as one of a type that JSON has not."""
    import pyarrow  # noqa: PLC0415 - heavy, and an extra

    kinds = pyarrow.types
    if isinstance(value, dict) and kinds.is_struct(kind):
        types = {field.name: field.type for field in kind}
        return {k: _restored(v, types[k]) if k in types else v for k, v in value.items()}
    if isinstance(value, list) and (kinds.is_list(kind) or kinds.is_large_list(kind)):
        return [_restored(item, kind.value_type) for item in value]
    if isinstance(value, str) and (kinds.is_binary(kind) or kinds.is_large_binary(kind)):
        return b64decode(value)
    if isinstance(value, str) and (kinds.is_temporal(kind) or kinds.is_decimal(kind)):
        return pyarrow.scalar(value).cast(kind).as_py()
    return value


def _fitted(row: Row, new: set[str], kinds: dict[str, Any]) -> Row:
    return {
        name: _restored(value, kinds[name]) if name in new and kinds[name] is not None else value
        for name, value in row.items()
    }


def _write(rows: Iterator[Row], kinds: dict[str, Any], like: Any, out: Path) -> None:
    """Writes rows whose columns have these types; None is JSON in a string."""
    module = parquet()
    import pyarrow  # noqa: PLC0415 - heavy, and an extra

    known = {field.name: field for field in like or ()}
    fields = [
        known[name].with_type(kind) if name in known and kind else (name, kind or pyarrow.string())
        for name, kind in kinds.items()
    ]
    schema = pyarrow.schema(fields, like and like.metadata)
    packed = out.with_name(f".{out.name}.packed")
    with module.ParquetWriter(packed, schema) as writer:
        for chunk in iter(lambda: list(islice(rows, CHUNK)), []):
            texts = [_in_texts(row, kinds) for row in chunk]
            writer.write_table(pyarrow.Table.from_pylist(texts, schema=schema))
    packed.replace(out)


def _in_texts(row: Row, kinds: dict[str, Any]) -> Row:
    return {
        name: value
        if kinds[name] is not None or isinstance(value, str | None)
        else _ENCODER.encode(without_holes(value)).decode()
        for name, value in row.items()
    }

"""Schemas of annotated Python functions beside pydantic's: every difference has a name here.

A difference is a function that makes of pydantic's schema what ours says. The table names those of
each annotation: no other may be needed, and each that is named must be.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Optional
from uuid import UUID

import pytest
from pydantic import TypeAdapter
from typing_extensions import TypedDict

from toolshift.worlds.own.python import PythonTools, _listed

JSONSchema = dict[str, Any]


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclass
class Point:
    x: int
    label: str = "a"
    height: float | None = None


@dataclass
class Path:
    start: Point
    color: Color
    stops: list[Point] = field(default_factory=list)


class Row(TypedDict):
    id: int
    note: NotRequired[str]


class Partial(TypedDict, total=False):
    id: int


class Outside:
    """A class that says nothing of its fields."""


class Pair(NamedTuple):
    left: int
    right: str = "x"


# -- the differences ---------------------------------------------------------------------------


def everywhere(change: Callable[[JSONSchema], JSONSchema]) -> Callable[[JSONSchema], JSONSchema]:
    """A change of a schema and of all schemas in it."""

    def changed(value: Any) -> Any:
        if isinstance(value, list):
            return [changed(each) for each in value]
        if isinstance(value, dict):
            return change({key: changed(each) for key, each in value.items()})
        return value

    return changed


def without(key: str, value: Any) -> Callable[[JSONSchema], JSONSchema]:
    """A schema without a key where it has this value."""
    return everywhere(lambda schema: {k: v for k, v in schema.items() if (k, v) != (key, value)})


def instead_of(theirs: JSONSchema, ours: JSONSchema) -> Callable[[JSONSchema], JSONSchema]:
    """A schema in which one kind of value is described otherwise."""
    return everywhere(lambda schema: ours if schema == theirs else schema)


def written_out(schema: JSONSchema) -> JSONSchema:
    known = schema.get("$defs", {})
    whole = {key: value for key, value in schema.items() if key != "$defs"}

    def inlined(one: JSONSchema) -> JSONSchema:
        if "$ref" not in one:
            return one
        found = known[one["$ref"].rpartition("/")[2]]
        return everywhere(inlined)({**found, **{k: v for k, v in one.items() if k != "$ref"}})

    return everywhere(inlined)(whole)


def without_titles_of_fields(schema: JSONSchema) -> JSONSchema:
    def bare(one: Any) -> Any:
        return {k: v for k, v in one.items() if k != "title"} if isinstance(one, dict) else one

    def changed(one: JSONSchema) -> JSONSchema:
        if isinstance(one.get("properties"), dict):
            one = {**one, "properties": {k: bare(v) for k, v in one["properties"].items()}}
        return (
            {**one, "prefixItems": [*map(bare, one["prefixItems"])]}
            if "prefixItems" in one
            else one
        )

    return everywhere(changed)(schema)


def without_type_of_choices(schema: JSONSchema) -> JSONSchema:
    return everywhere(
        lambda one: {k: v for k, v in one.items() if k != "type" or "enum" not in one}
    )(schema)


def with_one_choice(schema: JSONSchema) -> JSONSchema:
    return everywhere(
        lambda one: {("enum" if k == "const" else k): ([v] if k == "const" else v)
                     for k, v in one.items()}
    )(schema)  # fmt: skip


def in_order(value: Any) -> tuple[bool, bool, Any]:
    return value is not None, isinstance(value, str), value


def with_sorted_choices(schema: JSONSchema) -> JSONSchema:
    return everywhere(
        lambda one: {k: sorted(v, key=in_order) if k == "enum" else v for k, v in one.items()}
    )(schema)


def with_nothing_after(schema: JSONSchema) -> JSONSchema:
    def changed(one: JSONSchema) -> JSONSchema:
        fixed = "prefixItems" in one and one.get("minItems") == one.get("maxItems")
        return {**one, "items": {"not": {}}} if fixed else one

    return everywhere(changed)(schema)


def with_empty_required(schema: JSONSchema) -> JSONSchema:
    return everywhere(
        lambda one: {"required": [], **one} if isinstance(one.get("properties"), dict) else one
    )(schema)


DIFFERENCES: dict[str, Callable[[JSONSchema], JSONSchema]] = {
    # How a schema is laid out; what it allows is the same.
    "no title of a field": without_titles_of_fields,
    "definitions are written out": written_out,
    "no title of the whole": lambda one: {k: v for k, v in one.items() if k != "title"},
    "a list of anything says no items": without("items", {}),
    "an object of anything says no values": without("additionalProperties", True),
    "one choice is a list of choices": with_one_choice,
    "choices have no type beside them": without_type_of_choices,
    "choices are sorted": with_sorted_choices,
    "nothing may follow in a fixed list": with_nothing_after,
    "no required key is an empty list": with_empty_required,
    # What a kind of value is.
    "bytes are base64": instead_of(
        {"type": "string", "format": "binary"}, {"type": "string", "contentEncoding": "base64"}
    ),
    "a time may have no zone, so no format": instead_of(
        {"type": "string", "format": "date-time"}, {"type": "string"}
    ),
    "a time of day may have no zone, so no format": instead_of(
        {"type": "string", "format": "time"}, {"type": "string"}
    ),
    "a decimal is a text": instead_of(
        {"anyOf": [{"type": "number"}, {"type": "string"}]},
        {"type": "string", "format": "decimal"},
    ),
}
"""Each by what ours says; applied in this order."""
FIELDS = {"no title of a field", "no title of the whole"}
CHOICES = {"choices have no type beside them", "choices are sorted"}
NAMED = {"no title of the whole"}

TABLE: list[tuple[Any, set[str], Any]] = [
    (int, set(), 3),
    (str, set(), "a"),
    (float, set(), 1.5),
    (bool, set(), True),
    (None, set(), None),
    (Any, set(), {"a": [1]}),
    (object, set(), [1]),
    (list[int], set(), [1, 2]),
    (list[list[str]], set(), [["a"]]),
    (list[str | int], set(), ["a", 1]),
    (tuple[int, ...], set(), [1, 2]),
    (set[str], set(), ["a"]),
    (frozenset[int], set(), [1]),
    (Sequence[str], set(), ["a"]),
    (dict[str, int], set(), {"a": 1}),
    (dict[int, str], set(), {"1": "a"}),
    (dict[str, dict[int, float]], set(), {"a": {"7": 0.5}}),
    (Mapping[str, int], set(), {"a": 1}),
    (int | None, set(), None),
    (Optional[str], set(), "a"),  # noqa: UP045 - the other way to write it
    (int | str | None, set(), "a"),
    (Annotated[int, "how many"], set(), 2),
    (date, set(), "2024-05-01"),
    (timedelta, set(), "PT5S"),
    (UUID, set(), "12345678-1234-5678-1234-567812345678"),
    (list, {"a list of anything says no items"}, [1]),
    (list[Any], {"a list of anything says no items"}, [1, "a"]),
    (tuple, {"a list of anything says no items"}, [1]),
    (dict, {"an object of anything says no values"}, {"a": 1}),
    (dict[str, Any], {"an object of anything says no values"}, {"a": 1}),
    (tuple[int, str], {"nothing may follow in a fixed list"}, [1, "a"]),
    (Literal["a", "b"], {"choices have no type beside them"}, "b"),
    (Literal[2, 1], CHOICES, 2),
    (Literal["a"], {"one choice is a list of choices", "choices have no type beside them"}, "a"),
    (Literal["a", None], {"choices are sorted"}, None),
    (Literal["a", 1], {"choices are sorted"}, 1),
    (Color, CHOICES | NAMED, "red"),
    (Level, {"choices have no type beside them"} | NAMED, 2),
    (list[Color], CHOICES | {"definitions are written out"}, ["blue"]),
    (dict[str, Point], {"no title of a field", "definitions are written out"}, {"a": {"x": 1}}),
    (Point, FIELDS, {"x": 1, "height": 2.5}),
    (Path, FIELDS | CHOICES | {"definitions are written out"},
     {"start": {"x": 1}, "color": "red", "stops": [{"x": 2, "label": "b"}]}),
    (list[Point], {"no title of a field", "definitions are written out"}, [{"x": 1}]),
    (Row, FIELDS, {"id": 1}),
    (Partial, FIELDS | {"no required key is an empty list"}, {"id": 1}),
    (Pair, {"no title of a field"}, [1, "b"]),
    (bytes, {"bytes are base64"}, ...),
    (datetime, {"a time may have no zone, so no format"}, "2024-05-01T10:00:00"),
    (time, {"a time of day may have no zone, so no format"}, "10:00:00"),
    (Decimal, {"a decimal is a text"}, "1.50"),
]  # fmt: skip
"""An annotation, the differences between the two schemas, and a JSON value; `...` for none."""
ANYTHING = (Iterable[int], complex, Callable[[int], int], Point | Row, Outside)
"""What ours has no schema for; such an argument may be anything, and is given as it comes."""


def takes(annotation: Any) -> Callable[..., Any]:
    """A function with one parameter."""

    def function(value: Any) -> Any:
        return value

    function.__annotations__ = {"value": annotation}
    return function


def ours(annotation: Any) -> JSONSchema:
    shown = _listed("function", takes(annotation))["inputSchema"]
    assert shown["required"] == ["value"]
    return shown["properties"]["value"]  # type: ignore[no-any-return]


def with_differences(schema: JSONSchema) -> tuple[JSONSchema, set[str]]:
    """Pydantic's schema with all differences, and the names of those that changed something."""
    needed = set()
    for name, change in DIFFERENCES.items():
        changed = change(schema)
        if changed != schema:
            needed.add(name)
        schema = changed
    return schema, needed


def _name(value: Any) -> str:
    """The id of a case, which is the same in every process."""
    return ", ".join(sorted(value)) if isinstance(value, set) else str(value)


@pytest.mark.parametrize(("annotation", "differences", "value"), TABLE, ids=_name)
def test_a_schema_is_pydantics_but_for_the_named_differences(
    annotation: Any, differences: set[str], value: Any
) -> None:
    schema, needed = with_differences(TypeAdapter(annotation).json_schema())
    assert ours(annotation) == schema
    assert needed == differences


def test_every_difference_is_met() -> None:
    assert set().union(*(differences for _, differences, _ in TABLE)) == DIFFERENCES.keys()


@pytest.mark.parametrize(
    ("annotation", "value"),
    [(kind, value) for kind, _, value in TABLE if value is not ...],
    ids=_name,
)
def test_a_function_is_given_what_pydantic_would_give_it(annotation: Any, value: Any) -> None:
    given: list[Any] = []

    def take(value: Any) -> None:
        given.append(value)

    take.__annotations__ = {"value": annotation}
    found = PythonTools({"take": take}, None).call("take", {"value": value})
    assert found.ok, found
    expected = TypeAdapter(annotation).validate_python(value)
    assert given == [expected]
    assert type(given[0]) is type(expected)


@pytest.mark.parametrize("annotation", ANYTHING, ids=str)
def test_difference_what_has_no_schema_here_may_be_anything(annotation: Any) -> None:
    """Pydantic describes some of these, and refuses to describe the others."""
    assert ours(annotation) == {}


def test_a_function_is_listed_as_pydantic_would_but_for_the_named_differences() -> None:
    def book(
        room: Literal["single", "double"],
        nights: int = 1,
        guests: list[str] | None = None,
        color: Color = Color.RED,
        *,
        note: str = "",
    ) -> None: ...

    book.__annotations__ = {
        "room": Literal["single", "double"], "nights": int, "guests": list[str] | None,
        "color": Color, "note": str,
    }  # fmt: skip
    schema, needed = with_differences(TypeAdapter(book).json_schema())
    # Arguments that no parameter has are for the function to refuse, and the schema is silent.
    assert schema.pop("additionalProperties") is False
    listed = _listed("book", book)["inputSchema"]
    del schema["properties"]["color"]["title"]  # of the whole, for this parameter
    assert listed == schema
    assert needed == CHOICES | {"no title of a field", "definitions are written out"}

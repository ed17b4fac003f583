"""Schemas of annotated Python functions beside pydantic's: every difference has a name here.

A difference is a function that makes of pydantic's schema what ours says. The table names those of
each annotation: no other may be needed, and each that is named must be.
"""

from __future__ import annotations

import enum
import pathlib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Optional
from uuid import UUID

import msgspec
import pydantic
import pytest
from pydantic import Field, PositiveInt, TypeAdapter
from typing_extensions import TypedDict

from toolshift.core.errors import UsageError
from toolshift.worlds.own.functions import listed
from toolshift.worlds.own.python import PythonTools

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


class Person(pydantic.BaseModel):
    name: str
    age: int = Field(ge=0, description="Age in years")


@pydantic.dataclasses.dataclass
class Checked:
    x: PositiveInt


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
ANYTHING = (Iterable[int], Sized, list[Hashable])
"""What ours has no schema for: a value of JSON is one as it is, and is given as it comes."""
NEEDS_PYDANTIC = [
    (Person, {"name": "Al", "age": 3}, Person(name="Al", age=3)),
    (list[Person], [{"name": "Al", "age": 3}], [Person(name="Al", age=3)]),
    (Person | None, None, None),
    (Annotated[int, Field(ge=1, le=5, description="one to five")], 3, 3),
    (PositiveInt, 3, 3),
    (Point | Row, {"x": 1}, Point(1)),
    (complex, "1+2j", 1 + 2j),
    (pathlib.Path | int, "a/b", pathlib.Path("a/b")),
    (Checked, {"x": 1}, Checked(1)),
]
"""An annotation that pydantic reads, a JSON value, and what the function is given."""
UNREADABLE = (Outside, Callable[[int], int], Outside | int)
"""What no JSON can be read as."""


def takes(annotation: Any) -> Callable[..., Any]:
    """A function with one parameter."""

    def function(value: Any) -> Any:
        return value

    function.__annotations__ = {"value": annotation}
    return function


def ours(annotation: Any) -> JSONSchema:
    shown = listed("function", takes(annotation))["inputSchema"]
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
def test_difference_what_json_is_as_it_stands_has_no_schema(annotation: Any) -> None:
    assert without("items", {})(ours(annotation)) in ({}, {"type": "array"})
    given = PythonTools({"take": takes(annotation)}, None).call("take", {"value": ["a"]})
    assert given.data == ["a"]


@pytest.mark.parametrize(("annotation", "value", "expected"), NEEDS_PYDANTIC, ids=str)
def test_pydantic_reads_its_own_and_what_msgspec_does_not(
    annotation: Any, value: Any, expected: Any
) -> None:
    schema = written_out(TypeAdapter(annotation).json_schema())
    assert ours(annotation) == {key: v for key, v in schema.items() if key != "title"}
    given: list[Any] = []
    take = takes(annotation)

    def taken(value: Any) -> None:
        given.append(value)

    taken.__annotations__ = take.__annotations__
    found = PythonTools({"take": taken}, None).call("take", {"value": value})
    assert found.ok, found
    assert given == [expected]
    assert type(given[0]) is type(expected)


def test_a_model_inside_of_a_class_that_pydantic_does_not_know() -> None:
    """The two read a value together: msgspec's own class, with a model and a path in it."""

    class Trip(msgspec.Struct):
        guest: Person
        notes: pathlib.PurePosixPath

    def go(trip: Trip) -> list[Any]:
        return [type(trip.guest).__name__, trip.notes, trip.guest]

    given = {"trip": {"guest": {"name": "Al", "age": 1}, "notes": "a/b"}}
    go.__annotations__ = {"trip": Trip, "return": list}
    found = PythonTools({"go": go}, None).call("go", given)
    assert found.data == ["Person", "a/b", {"name": "Al", "age": 1}]
    wrong = PythonTools({"go": go}, None).call("go", {"trip": {"guest": {}, "notes": "a"}})
    assert "name: Field required; age: Field required" in wrong.data["error"]["message"]


@pytest.mark.parametrize("annotation", UNREADABLE, ids=str)
def test_what_no_json_is_read_as_is_refused_and_left_out_where_it_has_a_default(
    annotation: Any,
) -> None:
    """Where tools are only listed, as for a change of theirs, all are shown."""
    with pytest.raises(UsageError, match=r"^function: no JSON can be read as its argument value"):
        listed("function", takes(annotation))
    assert listed("function", takes(annotation), called=False)["inputSchema"]["required"]

    def also(x: int, value: Any = None) -> None: ...

    also.__annotations__ = {"x": int, "value": annotation}
    assert [*listed("also", also)["inputSchema"]["properties"]] == ["x"]


def test_a_result_is_declared_and_written_as_pydantic_writes_it() -> None:
    def people() -> list[Person]:
        return [Person(name="Al", age=3)]

    people.__annotations__ = {"return": list[Person]}
    declared = listed("people", people)["outputSchema"]["properties"]["result"]
    assert declared["items"]["properties"].keys() == {"name", "age"}
    found = PythonTools({"people": people}, None).call("people", {})
    assert found.data == [{"name": "Al", "age": 3}]
    assert [field.path for field in found.fields] == [("name",), ("age",)]


def test_a_field_of_pydantic_as_the_default_is_one() -> None:
    def find(text: str = Field(description="what to find"), most: int = Field(default=3, le=9)):  # type: ignore[no-untyped-def]
        return {"text": text, "most": most}

    find.__annotations__ = {"text": str, "most": int}
    shown = listed("find", find)["inputSchema"]
    assert shown["required"] == ["text"]
    assert shown["properties"]["text"]["description"] == "what to find"
    assert shown["properties"]["most"]["maximum"] == 9
    assert shown["properties"]["most"]["default"] == 3
    tools = PythonTools({"find": find}, None)
    assert tools.call("find", {"text": "a"}).data == {"text": "a", "most": 3}
    assert tools.call("find", {"text": "a", "most": 10}).data["error"]["code"] == (
        "invalid_arguments"
    )


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
    shown = listed("book", book)["inputSchema"]
    del schema["properties"]["color"]["title"]  # of the whole, for this parameter
    assert shown == schema
    assert needed == CHOICES | {"no title of a field", "definitions are written out"}

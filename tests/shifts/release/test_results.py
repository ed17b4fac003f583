"""Results of old tools in the form of new ones: what is carried, and that it fits what is shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolshift.core.tool import Result
from toolshift.interop.tools import from_mcp
from toolshift.shifts.release.conversions import conversions, converted
from toolshift.shifts.release.mapped_tools import Route, routes
from toolshift.shifts.release.mapping import Answers
from toolshift.shifts.release.paging import WrongPage, cut, gathered, paged_by
from toolshift.shifts.release.resolve import settle_tools

Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
MAYBE: Schema = {"type": ["string", "null"]}


def record(**values: Schema) -> Schema:
    return {"type": "object", "properties": values, "required": sorted(values)}


def rows(**values: Schema) -> Schema:
    return {"type": "array", "items": record(**values)}


def tool(outputs: Schema | None, **params: Schema) -> Schema:
    taken = {"type": "object", "properties": params}
    declared = {} if outputs is None else {"outputSchema": outputs}
    return {"name": "get", "description": "Gets.", "inputSchema": taken, **declared}


def route_of(
    old: Schema, new: Schema, answers: Answers | None = None
) -> tuple[Route, dict[tuple[str, ...], str]]:
    """How the old tool's results become the new one's, and what is asked of that."""
    before, after = from_mcp([old]), from_mcp([new])
    asked = settle_tools(before, after, answers or Answers()).questions
    likely = settle_tools(before, after, answers or Answers(), accept=True).answers
    return routes(likely, before, after)["get"][0], {q.path: q.guess for q in asked}


def shown_by(route: Route, data: Any, said: Schema | None = None) -> Any:
    pages = route.pages.after if route.pages else None
    size = route.pages.size if route.pages else None

    def page(whole: dict[str, Any]) -> dict[str, Any]:
        return cut(pages, whole, said or {}, size).whole if pages else whole

    return route.form.outward(data, page)


LINE = {"id": TEXT, "total": NUMBER}
LINES = [{"id": "a", "total": 1}, {"id": "b", "total": 2}]
CARRIED: dict[str, tuple[Schema, Schema, Any, Any]] = {
    "a list in an envelope": (
        record(result=rows(**LINE)),
        record(items=rows(**LINE)),
        LINES,
        {"items": LINES},
    ),
    "an envelope in an envelope": (
        record(result=rows(**LINE)),
        record(data=record(orders=rows(**LINE))),
        LINES,
        {"data": {"orders": LINES}},
    ),
    "an envelope of another name": (
        record(orders=rows(**LINE), day=TEXT),
        record(data=rows(**LINE), day=TEXT),
        {"orders": LINES, "day": "x"},
        {"data": LINES, "day": "x"},
    ),
    "a list without its envelope": (
        record(orders=rows(**LINE), day=TEXT),
        record(result=rows(**LINE)),
        {"orders": LINES, "day": "x"},
        LINES,
    ),
    "a record in an envelope": (
        record(**LINE),
        record(data=record(**LINE), request_id=MAYBE),
        LINES[0],
        {"data": LINES[0], "request_id": None},
    ),
    "a record without its envelope": (
        record(data=record(**LINE)),
        record(**LINE),
        {"data": LINES[0]},
        LINES[0],
    ),
    "flat to nested": (
        record(id=TEXT, customer_name=TEXT),
        record(id=TEXT, customer=record(name=TEXT)),
        {"id": "a", "customer_name": "M"},
        {"id": "a", "customer": {"name": "M"}},
    ),
    "nested to flat in a list": (
        record(result=rows(id=TEXT, customer=record(name=TEXT))),
        record(result=rows(id=TEXT, customerName=TEXT)),
        [{"id": "a", "customer": {"name": "M"}}],
        [{"id": "a", "customerName": "M"}],
    ),
    "choices spelt otherwise": (
        record(status={"enum": ["open", "sent"]}),
        record(status={"enum": ["STATUS_OPEN", "STATUS_SENT"]}),
        {"status": "sent"},
        {"status": "STATUS_SENT"},
    ),
    "a number as a text": (
        record(id=WHOLE, sum=NUMBER),
        record(id=TEXT, sum=TEXT),
        {"id": 7, "sum": 1250.0},
        {"id": "7", "sum": "1250"},
    ),
    "a text as a number": (
        record(sum=TEXT),
        record(sum=NUMBER),
        {"sum": "1250.50"},
        {"sum": 1250.5},
    ),
    "null where a value may be left out": (
        record(note=MAYBE),
        {"type": "object", "properties": {"note": TEXT}},
        {"note": None},
        {},
    ),
    "what the schema alone says": (
        record(id=TEXT),
        record(id=TEXT, version={"const": 2}, tag=MAYBE),
        {"id": "a"},
        {"id": "a", "version": 2, "tag": None},
    ),
    "a value that is gone": (
        record(id=TEXT, old=TEXT),
        record(id=TEXT),
        {"id": "a", "old": "b"},
        {"id": "a"},
    ),
}


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("path", ["day", "order", "order.id"])
def test_what_the_mapping_says_is_gone_is_gone(declared: bool, path: str) -> None:
    outputs = record(day=TEXT, order={**record(id=TEXT, total=NUMBER), "required": []})
    side = tool({**outputs, "required": []} if declared else None)
    route, _ = route_of(side, side, Answers(fields={"get": {path: ""}}))
    data = {"day": "monday", "order": {"id": "a", "total": 1}}
    top, _, inner = path.partition(".")
    left = {**data, "order": {"total": 1}} if inner else {k: v for k, v in data.items() if k != top}
    assert shown_by(route, data) == left


@pytest.mark.parametrize("case", CARRIED)
def test_results_are_carried_unasked(case: str) -> None:
    old, new, data, expected = CARRIED[case]
    route, asked = route_of(tool(old), tool(new))
    assert (shown_by(route, data), asked) == (expected, {})
    assert route.form.exact


ASKED: dict[str, tuple[Schema, Schema, Any, Any, str]] = {
    "another name": (
        record(id=TEXT, eta=TEXT),
        record(id=TEXT, arrives_on=TEXT),
        {"id": "a", "eta": "x"},
        {"id": "a", "arrives_on": "x"},
        "eta",
    ),
    "several in one": (
        record(first_name=TEXT, last_name=TEXT),
        record(full_name=TEXT),
        {"first_name": "M", "last_name": "O"},
        {"full_name": "M O"},
        "{first_name} {last_name}",
    ),
    "one in several": (
        record(name=TEXT),
        record(first_name=TEXT, last_name=TEXT),
        {"name": "M O"},
        {"first_name": "M", "last_name": "O"},
        "name",
    ),
    "another unit": (
        record(weight={**NUMBER, "description": "In grams."}),
        record(weight={**NUMBER, "description": "In kilograms."}),
        {"weight": 1250},
        {"weight": 1.25},
        "weight",
    ),
    "another format": (
        record(created_at=WHOLE),
        record(created_at={**TEXT, "format": "date-time"}),
        {"created_at": 1700000000},
        {"created_at": "2023-11-14T22:13:20Z"},
        "created_at",
    ),
    "another word": (
        record(state={"enum": ["open"]}),
        record(state={"enum": ["pending"]}),
        {"state": "open"},
        {"state": "pending"},
        "open",
    ),
}


@pytest.mark.parametrize("case", ASKED)
def test_what_two_schemas_cannot_tell_is_asked_and_its_answer_is_carried(case: str) -> None:
    old, new, data, expected, key = ASKED[case]
    _, asked = route_of(tool(old), tool(new))
    ((path, guess),) = asked.items()
    assert path[-1] == key
    table: Any = guess
    for part in reversed(path[2:]):
        table = {part: table}
    answers = Answers(**{path[0]: {path[1]: table}})
    route, open_ = route_of(tool(old), tool(new), answers)
    assert (shown_by(route, data), open_) == (expected, {})
    refused = {path[-1]: ""}
    none = {path[1]: refused if path[0] != "result_values" else {path[2]: refused}}
    assert route_of(tool(old), tool(new), Answers(**{path[0]: none}))[1] == {}, "a no is an answer"


@pytest.mark.parametrize(
    "pair", [("active", "inactive"), ("paid", "unpaid"), ("found", "not_found")]
)
def test_words_that_only_look_alike_are_never_taken_unasked(pair: tuple[str, str]) -> None:
    old, new = pair
    for one, other in ((old, new), (new, old)):
        first = record(state={"enum": [one, "x"]}), record(state={"enum": [other, "x"]})
        assert route_of(tool(first[0]), tool(first[1]))[1]
    assert route_of(tool(record(ship_date=TEXT)), tool(record(ship_city=TEXT)))[1]


@pytest.mark.parametrize("data", ["a text", 7, ["a", "b"], {"note": "a"}])
def test_results_that_declared_nothing_are_held_to_what_is_declared(data: Any) -> None:
    kinds = {str: TEXT, int: WHOLE, list: {"type": "array", "items": TEXT}}
    new = record(note=kinds.get(type(data), TEXT))
    route, _ = route_of(tool(None), tool(new))
    made = shown_by(route, data)
    assert made == (data if isinstance(data, dict) else {"note": data})
    with pytest.raises(Exception, match=r"required|no object"):
        shown_by(route, {"other": 1})


# -- pages -----------------------------------------------------------------------------------------

MANY = [{"id": f"x{n}", "total": n} for n in range(7)]
SIZE = {"type": "integer", "default": 3}
STYLES: dict[str, tuple[Schema, Schema]] = {
    "cursor": (record(items=rows(**LINE), next_cursor=MAYBE), {"cursor": TEXT, "limit": SIZE}),
    "token": (
        record(items=rows(**LINE), meta=record(nextPageToken=MAYBE)),
        {"pageToken": TEXT, "pageSize": SIZE},
    ),
    "page": (
        record(items=rows(**LINE), page=WHOLE, total_pages=WHOLE),
        {"page": WHOLE, "per_page": SIZE},
    ),
    "more": (
        record(items=rows(**LINE), has_more={"type": "boolean"}),
        {"page": WHOLE, "per_page": SIZE},
    ),
    "offset": (record(items=rows(**LINE), total=WHOLE), {"offset": WHOLE, "limit": SIZE}),
    "last": (
        record(items=rows(**LINE), has_more={"type": "boolean"}),
        {"starting_after": TEXT, "limit": SIZE},
    ),
    "link": (record(result=rows(**LINE)), {"page": WHOLE, "per_page": SIZE}),
}


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("count", [0, 1, 3, 4, 7])
def test_pages_hold_the_whole_list_once_and_can_be_gathered_again(style: str, count: int) -> None:
    outputs, params = STYLES[style]
    listed = record(result=rows(**LINE))
    route, asked = route_of(tool(listed), tool(outputs, **params))
    assert route.pages is not None
    assert route.pages.after is not None
    assert not asked
    pages = route.pages.after
    check = jsonschema_rs.validator_for(outputs)

    def call(said: Any) -> Result:
        made = route.form.made({"result": list(MANY[:count])})
        found = cut(pages, made, said, None)
        assert check.is_valid(found.whole)
        records = found.whole["items"] if "items" in found.whole else found.whole["result"]
        assert len(records) <= SIZE["default"]
        assert bool(found.hint) == (records != MANY[count - len(records) : count])
        return Result(True, found.whole, hint=found.hint)

    old = paged_by(from_mcp([tool(outputs, **params)]).sources["get"])
    assert old is not None
    fault, whole = gathered(old, call({}), call, lambda data: data)
    assert (fault, whole.get("items", whole.get("result"))) == (None, MANY[:count])


@pytest.mark.parametrize("login", ["token", "api_token", "access_token", "auth_token"])
@pytest.mark.parametrize("order", [1, -1], ids=["login last", "login first"])
def test_a_token_that_is_a_login_goes_on_to_no_page(login: str, order: int) -> None:
    outputs = STYLES["cursor"][0]
    params = dict(sorted({"cursor": TEXT, login: TEXT}.items())[::order])
    style = paged_by(from_mcp([tool(outputs, **params)]).sources["get"])
    assert style is not None
    assert style.param.name == "cursor"
    assert paged_by(from_mcp([tool(outputs, **{login: TEXT})]).sources["get"]) is None
    paged = paged_by(from_mcp([tool(outputs, **{login: TEXT, "page_token": TEXT})]).sources["get"])
    assert paged is not None
    assert paged.param.name == "page_token"


def test_a_page_that_there_is_not_is_refused() -> None:
    outputs, params = STYLES["cursor"]
    route, _ = route_of(tool(record(result=rows(**LINE))), tool(outputs, **params))
    with pytest.raises(WrongPage, match="cursor: 'made up' leads to no page"):
        shown_by(route, MANY, {"cursor": "made up"})


def test_without_a_known_size_a_list_comes_in_two_pages_until_the_mapping_says_it() -> None:
    outputs = STYLES["cursor"][0]
    old, new = tool(record(result=rows(**LINE))), tool(outputs, cursor=TEXT)
    assert len(shown_by(route_of(old, new)[0], MANY)["items"]) == 4
    route, _ = route_of(old, new, Answers(pages={"get": {"size": 2}}))
    assert len(shown_by(route, MANY)["items"]) == 2


# -- what is shown fits what is declared -----------------------------------------------------------

NAMES = st.sampled_from(
    ["id", "city", "price_total", "owner_name", "note", "kind", "rank", "sent_on"]
)
VALUES: list[tuple[Schema, st.SearchStrategy[Any]]] = [
    (TEXT, st.text(max_size=5)),
    (WHOLE, st.integers(-1000, 1000)),
    (NUMBER, st.floats(-1000, 1000, allow_nan=False)),
    (MAYBE, st.none() | st.text(max_size=5)),
    ({"enum": ["low", "high"]}, st.sampled_from(["low", "high"])),
    ({"type": "boolean"}, st.booleans()),
]


def _drawn(draw: st.DrawFn, name: str) -> tuple[Schema, Callable[[], Any]]:
    schema, values = draw(st.sampled_from(VALUES))
    return schema, lambda: draw(values, label=name)


MOVES = ("keep", "keep", "rename", "nest", "drop", "retype", "respell")


def _moved(draw: st.DrawFn, name: str, schema: Schema) -> dict[str, Schema]:
    """What a field has become: its new name and schema; nothing where it is gone."""
    how = draw(st.sampled_from(MOVES))
    if how == "drop":
        return {}
    if how == "rename":
        return {f"new_{name}": schema}
    if how == "nest" and "_" in name:
        head, tail = name.split("_")
        return {head: record(**{tail: schema})}
    if how == "retype" and schema in (WHOLE, NUMBER, {"type": "boolean"}):
        return {name: TEXT}
    if how == "respell" and "enum" in schema:
        return {name: {"enum": [one.upper() for one in schema["enum"]]}}
    return {name: schema}


@st.composite
def releases(draw: st.DrawFn) -> tuple[Schema, Schema, Any]:
    """Two tools, and a result of the old one."""
    names = draw(st.lists(NAMES, min_size=1, max_size=5, unique=True))
    fields = {name: _drawn(draw, name) for name in names}
    old = {name: schema for name, (schema, _) in fields.items()}
    new: dict[str, Schema] = {}
    for name, schema in old.items():
        new |= _moved(draw, name, schema)
    new |= draw(st.sampled_from([{}, {"extra": MAYBE}, {"version": {"const": 1}}]))
    many = draw(st.booleans())
    data: Any = [{name: value() for name, (_, value) in fields.items()} for _ in range(3)]
    if not many:
        after = record(data=record(**new)) if draw(st.booleans()) else record(**new)
        return tool(record(**old)), tool(after), data[0]
    style = draw(st.sampled_from(["", *STYLES]))
    outputs, params = STYLES[style] if style else (record(result=rows()), {})
    key = "items" if "items" in outputs["properties"] else "result"
    held = {**outputs, "properties": {**outputs["properties"], key: rows(**new)}}
    return tool(record(result=rows(**old))), tool(held, **params), data


@settings(max_examples=100, deadline=None)
@given(releases())
def test_results_fit_what_the_new_tool_declares(release: tuple[Schema, Schema, Any]) -> None:
    old, new, data = release
    route, _ = route_of(old, new)
    made = shown_by(route, data)
    whole = {"result": made} if isinstance(made, list) else made
    if route.form.exact or route.form.keeps:
        jsonschema_rs.validator_for(new["outputSchema"]).validate(whole)
    else:
        assert route.form.open, "what is not carried is said"


@settings(max_examples=50)
@given(st.sampled_from(sorted(conversions())), st.integers(0, 10**6))
def test_conversions_go_back(how: str, number: int) -> None:
    before, _, after = how.partition(" -> ")
    if "date" in how:
        return
    there = converted(number, how)
    assert converted(there, f"{after} -> {before}") == pytest.approx(number)

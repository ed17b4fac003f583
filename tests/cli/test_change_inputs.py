"""`toolshift change`: what a release does to what tools take is carried, asked or said."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from running import Run

from toolshift.shifts.files import FILES

SHOP = '''
from typing import Literal, NotRequired, TypedDict

class Line(TypedDict):
    sku: str
    count: int

class Address(TypedDict):
    street: str
    country: Literal["de", "fr"]

class Target(TypedDict):
    customer: str
    address: NotRequired[Address]

def place_order(target: Target, lines: list[Line], note: str | None = None) -> dict:
    """Place an order."""
    address = target.get("address", {})
    extra = "" if note is None else "-noted"
    customer, (line, *_) = target["customer"], lines
    ordered = f"{customer[1:]}{line['count']}-{line['sku']}-{address['country']}"
    return {"receipt": f"RC-{ordered}{extra}"}

def close_ticket(ticket_id: str, reason: str) -> dict:
    """Close a ticket."""
    return {"receipt": f"CT-{ticket_id[1:]}-{reason}"}

def create_ticket(subject: str) -> dict:
    """Create a ticket."""
    return {"receipt": f"NT-{subject}"}
'''
TASKS = """
world: shop
tools: {python: shop_tools}
writes: [place_order, close_ticket, create_ticket]
tasks:
  - id: place
    ask: >-
      Place an order of 3 K7 for customer C5 to Elm Street 4 in de. Tell me the receipt.
    calls:
      - name: place_order
        arguments:
          target: {customer: C5, address: {street: Elm Street 4, country: de}}
          lines: [{sku: K7, count: 3}]
    check: {calls: true, answer: RC-53-K7-de}
  - id: close
    ask: Close ticket T9, the reason is solved. Tell me the receipt.
    calls: [{name: close_ticket, arguments: {ticket_id: T9, reason: solved}}]
    check: {calls: true, answer: CT-9-solved}
  - id: create
    ask: Create a ticket with the subject lamp. Tell me the receipt.
    calls: [{name: create_ticket, arguments: {subject: lamp}}]
    check: {calls: true, answer: NT-lamp}
"""
WHOLE = ("place", "close", "create")
Edit = Callable[[dict[str, Any]], None]


@pytest.fixture
def shop(toolshift: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(FILES, "")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "shop_tools.py").write_text(SHOP)
    (tmp_path / "tasks.yaml").write_text(TASKS)
    return tmp_path


def listed(toolshift: Run) -> list[dict[str, Any]]:
    """The tools of the shop, as a list that can be edited."""
    code, _, said = toolshift("lock", "python:shop_tools", "--out", "shop.lock")
    assert code == 0, said
    found: list[dict[str, Any]] = json.loads(Path("shop.lock").read_text())["tools"]
    return [one.get("document", one) for one in found]


def read(toolshift: Run, *words: str) -> dict[str, Any]:
    sides = ("python:shop_tools", "new.json", "--world", "tasks.yaml", "--agent", "oracle")
    code, said, wrong = toolshift("change", *sides, *words, "--json", "--allow-untested")
    assert said, wrong
    found: dict[str, Any] = json.loads(said)
    assert code == found["exit_code"]
    return found


def released(toolshift: Run, edit: Edit, out: str = "run") -> dict[str, Any]:
    """What `change` says where an edit of the tools is the release."""
    tools = {tool["name"]: tool for tool in listed(toolshift)}
    edit(tools)
    Path("new.json").write_text(json.dumps(list(tools.values())))
    return read(toolshift, "--out", out)


def ends(found: dict[str, Any]) -> dict[str, str]:
    (outcomes,) = found["outcomes"].values()
    return {task: one["shifted"] for task, one in outcomes.items()}


def inside(tools: dict[str, Any], *path: str) -> dict[str, Any]:
    """The schema at a path inside of the arguments of `place_order`."""
    found: dict[str, Any] = tools["place_order"]["inputSchema"]
    for key in path:
        found = found["items"] if key == "[]" else found["properties"][key]
    return found


def renamed(schema: dict[str, Any], old: str, new: str) -> None:
    schema["properties"] = {new if k == old else k: v for k, v in schema["properties"].items()}
    schema["required"] = [new if k == old else k for k in schema.get("required", ())]


def member(tools: dict[str, Any]) -> None:
    renamed(inside(tools, "lines", "[]"), "count", "item_count")


def member_in_an_object(tools: dict[str, Any]) -> None:
    renamed(inside(tools, "target", "address"), "street", "street_line")


def whole_member(tools: dict[str, Any]) -> None:
    renamed(inside(tools, "target"), "address", "postal_address")
    renamed(inside(tools, "target", "postal_address"), "street", "street_line")


def choices(tools: dict[str, Any]) -> None:
    inside(tools, "target", "address", "country")["enum"] = ["DE", "FR"]


def as_text(tools: dict[str, Any]) -> None:
    inside(tools, "lines", "[]", "count")["type"] = "string"


def as_number(tools: dict[str, Any]) -> None:
    inside(tools, "lines", "[]", "count")["type"] = "number"


def strict(tools: dict[str, Any]) -> None:
    inside(tools)["required"] = ["target", "lines", "note"]
    inside(tools)["additionalProperties"] = False


def strict_inside(tools: dict[str, Any]) -> None:
    inside(tools, "target")["required"] = ["customer", "address", "gift"]
    inside(tools, "target")["properties"]["gift"] = {"type": ["string", "null"]}


def around(tools: dict[str, Any]) -> None:
    """Both together, with another name of the argument, through a definition."""
    member(tools)
    choices(tools)
    renamed(inside(tools), "lines", "order_lines")
    items = inside(tools, "order_lines")
    inside(tools)["$defs"] = {"Line": items["items"]}
    items["items"] = {"$ref": "#/$defs/Line"}


@pytest.mark.parametrize(
    "edit",
    [
        member,
        member_in_an_object,
        whole_member,
        choices,
        as_text,
        as_number,
        strict,
        strict_inside,
        around,
    ],
    ids=lambda edit: edit.__name__,
)
def test_what_is_inside_of_an_argument_is_carried(toolshift: Run, shop: Path, edit: Edit) -> None:
    found = released(toolshift, edit)
    assert found["rows"] or edit is strict
    said = {row["carriage"] for row in found["rows"] if row["severity"] != "harmless"}
    # Of texts only those are carried that are numbers.
    assert "said" not in said or edit is as_text
    assert ends(found) == dict.fromkeys(WHOLE, "passed"), found["left_out"]


OPEN = (("given", "unit_sku_number_text"), ("defaults", "sku"))
"""What is asked where nothing stands for the one and the other is new."""


def test_a_member_of_another_name_is_asked_and_its_answer_is_carried(
    toolshift: Run, shop: Path
) -> None:
    def edit(tools: dict[str, Any]) -> None:
        renamed(inside(tools, "lines", "[]"), "sku", "unit_sku_number_text")

    found = released(toolshift, edit, "first")
    assert [one["of"] for one in found["questions"]] == ["params.place_order.lines[].sku"]
    mapping = shop / "change.mapping.toml"
    for answer, passes in (("unit_sku_number_text", True), ("", False)):
        mapping.write_text(f'[params.place_order]\n"lines[].sku" = "{answer}"\n')
        found = read(toolshift, "--out", f"answered{passes}")
        value = [f"{table}.place_order.lines[].{name}" for table, name in OPEN]
        assert sorted(q["of"] for q in found["questions"]) == ([] if passes else sorted(value))
        assert ("place" not in found["left_out"]) == passes
        assert ends(found)["place"] == ("passed" if passes else "")
    mapping.write_text('[params.place_order]\n"lines[].nope" = "article"\n')
    code, _, said = toolshift("change", "python:shop_tools", "new.json")
    assert (code, "lines[].nope" in said) == (2, True)


@pytest.mark.parametrize("place", ["", "target", "target.address", "lines[]"])
def test_a_new_required_value_is_asked_and_its_answer_is_carried(
    toolshift: Run, shop: Path, place: str
) -> None:
    path = f"{place}.warehouse" if place else "warehouse"

    def edit(tools: dict[str, Any]) -> None:
        keys = place.replace("[]", ".[]").split(".") if place else []
        schema = inside(tools, *keys)
        schema["properties"]["warehouse"] = {"type": "string"}
        schema["required"].append("warehouse")

    found = released(toolshift, edit, "first")
    assert [one["of"] for one in found["questions"]] == [f"given.place_order.{path}"]
    (row,) = (one for one in found["rows"] if one["carriage"] == "asked")
    assert "[given.place_order]" in row["note"]
    assert ends(found)["place"] == ""
    mapping = shop / "change.mapping.toml"
    mapping.write_text(mapping.read_text().replace('"?"', '"W-7"'))
    found = read(toolshift, "--out", "second")
    assert (found["questions"], ends(found)["place"]) == ([], "passed"), found["left_out"]
    assert [one for one in found["rows"] if one["carriage"] == "asked"] == []


# -- alternatives ----------------------------------------------------------------------------------

TEXT = {"type": "string"}


def alternative(tag: str, needs: tuple[str, ...], **more: Any) -> dict[str, Any]:
    properties = {"action": {"const": tag}, **dict.fromkeys(needs, TEXT), **more}
    return {"type": "object", "properties": properties, "required": ["action", *needs]}


def document(*alternatives: dict[str, Any], key: str = "oneOf") -> dict[str, Any]:
    """A document in the shape of a ticket service, with a body of alternatives."""
    schemas = {f"Part{n}": one for n, one in enumerate(alternatives)}
    refs = [{"$ref": f"#/components/schemas/{name}"} for name in schemas]
    body = {key: refs, "discriminator": {"propertyName": "action"}}
    operation = {
        "operationId": "ticket_action",
        "summary": "Close or create a ticket.",
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
    }
    paths = {"/tickets/actions": {"post": operation}}
    return {"openapi": "3.1.0", "info": {}, "paths": paths, "components": {"schemas": schemas}}


CLOSE = alternative("close", ("ticket_id", "reason"))
CREATE = alternative("create", ("subject",))


def merged(toolshift: Run, *parts: dict[str, Any]) -> dict[str, Any]:
    Path("api.json").write_text(json.dumps(document(*parts)))
    code, _, said = toolshift("lock", "api.json", "--out", "api.lock")
    assert code == 0, said
    tools = json.loads(Path("api.lock").read_text())["tools"]
    (tool,) = (one.get("document", one) for one in tools)
    found: dict[str, Any] = tool
    return found


def test_a_body_with_alternatives_is_a_merge_that_is_carried(toolshift: Run, shop: Path) -> None:
    def edit(tools: dict[str, Any]) -> None:
        for name in ("close_ticket", "create_ticket"):
            del tools[name]
        tools["ticket_action"] = merged(toolshift, CLOSE, CREATE)

    found = released(toolshift, edit)
    kinds = {(row["change"]["kind"], row["carriage"]) for row in found["rows"]}
    assert kinds == {("tool_merged", "carried")}
    assert ends(found) == dict.fromkeys(WHOLE, "passed"), found["left_out"]


def test_what_one_alternative_requires_is_asked_and_carried(toolshift: Run, shop: Path) -> None:
    def edit(tools: dict[str, Any]) -> None:
        for name in ("close_ticket", "create_ticket"):
            del tools[name]
        tools["ticket_action"] = merged(toolshift, CLOSE, alternative("create", ("subject", "to")))

    found = released(toolshift, edit, "first")
    assert ends(found) == {"place": "passed", "close": "passed", "create": ""}
    asked = [one["of"] for one in found["questions"]]
    assert asked == ["given.ticket_action.to"], found["rows"]
    (shop / "change.mapping.toml").write_text('[given.ticket_action]\nto = "desk-2"\n')
    found = read(toolshift, "--out", "second")
    assert ends(found)["create"] == "passed", found["left_out"]


# -- documents -------------------------------------------------------------------------------------


def service(*places: str, **more: Any) -> dict[str, Any]:
    """A document in the shape of a repository service: where each parameter of one tool stands."""
    params = [
        {"name": name, "in": place, "required": place == "path", "schema": TEXT}
        for name, place in (one.split("@") for one in places)
        if place != "body"
    ]
    body = {one.removesuffix("@body"): TEXT for one in places if one.endswith("@body")}
    content = {"application/json": {"schema": {"type": "object", "properties": body}}}
    operation = {"operationId": "update", "parameters": params, **more}
    operation |= {"requestBody": {"content": content}} if body else {}
    address = "/repos" + "".join(f"/{{{p['name']}}}" for p in params if p["in"] == "path")
    schemes = {"token": {"type": "http", "scheme": "bearer"}, "key": KEY, "other": KEY}
    paths = {address: {"put": operation}}
    return {"openapi": "3.0.3", "paths": paths, "components": {"securitySchemes": schemes}}


KEY = {"type": "apiKey", "in": "header", "name": "X-Key"}


def between(toolshift: Run, old: dict[str, Any], new: dict[str, Any]) -> list[tuple[str, ...]]:
    for name, each in (("old.json", old), ("new.json", new)):
        Path(name).write_text(json.dumps(each))
    _, said, wrong = toolshift("change", "old.json", "new.json", "--json")
    assert said, wrong
    rows = json.loads(said)["rows"]
    return [(r["change"]["kind"], r["change"]["where"], r["carriage"]) for r in rows]


@pytest.mark.parametrize("places", [("query", "header"), ("query", "body"), ("header", "body")])
@pytest.mark.parametrize("back", [False, True])
def test_a_parameter_that_moves_is_said_by_the_same_name(
    toolshift: Run, shop: Path, places: tuple[str, str], back: bool
) -> None:
    one, other = reversed(places) if back else places
    first, second = (service("owner@path", f"branch@{place}") for place in (one, other))
    assert between(toolshift, first, second) == [("place_changed", "branch", "said")]


def test_a_name_in_two_places_is_two_parameters(toolshift: Run, shop: Path) -> None:
    both = service("id@path", "id@query", "id@body")
    Path("api.json").write_text(json.dumps(both))
    assert toolshift("lock", "api.json", "--out", "api.lock")[0] == 0
    assert all(name in Path("api.lock").read_text() for name in ('"query_id"', '"body_id"'))
    assert between(toolshift, both, both) == []


def test_another_login_is_said_and_another_name_of_it_is_none(toolshift: Run, shop: Path) -> None:
    old = service("owner@path", security=[{"key": []}])
    same = service("owner@path", security=[{"other": []}])
    assert between(toolshift, old, same) == []
    new = service("owner@path", security=[{"token": []}])
    assert between(toolshift, old, new) == [("auth_changed", "", "said")]
    assert between(toolshift, service("owner@path"), new) == [("auth_changed", "", "said")]

"""`toolshift change` over what tools return: carried, asked and then carried, or said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from running import Run

from toolshift.shifts.files import FILES

SHOP = '''
from typing import Literal, TypedDict

class Order(TypedDict):
    id: str
    status: Literal["open", "sent"]
    tracking: str
    weight: float

ORDERS = [
    Order(id="O-1", status="open", tracking="TR-1", weight=1250.0),
    Order(id="O-2", status="sent", tracking="TR-2", weight=500.0),
    Order(id="O-3", status="open", tracking="TR-3", weight=750.0),
]

def list_orders(customer_id: str) -> list[Order]:
    """List the orders of a customer."""
    return ORDERS

def get_order(order_id: str) -> Order:
    """Look up an order."""
    return next(one for one in ORDERS if one["id"] == order_id)

def count_orders(status: str) -> dict:
    """Count the orders with a status."""
    return {"count": f"N-{sum(one['status'] == status for one in ORDERS)}"}
'''
TASKS = """
world: shop
tools: {python: shop_tools}
writes: []
tasks:
  - id: third
    ask: What is the tracking code of the third order of customer C-1?
    calls: [{name: list_orders, arguments: {customer_id: C-1}}]
    check: {calls: true, answer: TR-3}
  - id: status
    ask: What is the status of order O-2?
    calls: [{name: get_order, arguments: {order_id: O-2}}]
    check: {calls: true, answer: sent}
  - id: tracking
    ask: What is the tracking code of order O-1?
    calls: [{name: get_order, arguments: {order_id: O-1}}]
    check: {calls: true, answer: TR-1}
  - id: alike
    ask: How many orders have the status of order O-1?
    calls:
      - {name: get_order, arguments: {order_id: O-1}}
      - {name: count_orders, arguments: {status: "{{calls[0].status}}"}}
    check: {calls: true, answer: N-2}
  - id: weight
    ask: What does order O-1 weigh?
    calls: [{name: get_order, arguments: {order_id: O-1}}]
    check: {calls: true, answer: "1250"}
"""
AGENTS = """
import json

def first_page(messages, tools):
    if messages[-1]["role"] != "tool":
        return {"tool_calls": [{"name": "list_orders", "arguments": {"customer_id": "C-1"}}]}
    said = json.loads(str(messages[-1]["content"]).partition("\\nNotice")[0])
    rows = said if isinstance(said, list) else said["items"]
    return f"It is {rows[-1]['tracking']}."
"""
TEXT: dict[str, Any] = {"type": "string"}
MAYBE: dict[str, Any] = {"type": ["string", "null"]}
STATUS = {"enum": ["open", "sent"]}
WEIGHT = {"type": "number"}
FLAG = {"type": "boolean"}
ORDER = {"id": TEXT, "status": STATUS, "tracking": TEXT, "weight": WEIGHT}


def record(**values: Any) -> dict[str, Any]:
    return {"type": "object", "properties": values, "required": sorted(values)}


def rows(**values: Any) -> dict[str, Any]:
    return {"type": "array", "items": {"title": "Order", **record(**values)}}


def tool(
    name: str, told: str, needs: str, outputs: dict[str, Any] | None, **more: Any
) -> dict[str, Any]:
    taken = {"type": "object", "properties": {needs: TEXT, **more}, "required": [needs]}
    declared = {"outputSchema": outputs} if outputs else {}
    return {"name": name, "description": told, "inputSchema": taken, **declared}


LISTED = {"type": "object", "properties": {"result": rows(**ORDER)}}
LIST = ("list_orders", "List the orders of a customer.", "customer_id")
GET = ("get_order", "Look up an order.", "order_id")
COUNT = tool("count_orders", "Count the orders with a status.", "status", None)


def listed(
    outputs: dict[str, Any] | None = None, order: dict[str, Any] | None = None, **more: Any
) -> list[dict[str, Any]]:
    return [
        tool(*LIST, outputs or LISTED, **more),
        tool(*GET, order or record(**ORDER)),
        COUNT,
    ]


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(FILES, "")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop_tools.py").write_text(SHOP)
    (tmp_path / "shop_agents.py").write_text(AGENTS)
    (tmp_path / "tasks.yaml").write_text(TASKS)
    return tmp_path


def change(
    toolshift: Run, shop: Path, new: list[dict[str, Any]], *words: str
) -> tuple[int, dict[str, Any]]:
    (shop / "new.json").write_text(json.dumps(new))
    sides = ("python:shop_tools", "new.json", "--world", "tasks.yaml", "--agent", "oracle")
    code, said, _ = toolshift(
        "change", *sides, *words, "--json", "--out", str(len([*shop.iterdir()]))
    )
    return code, json.loads(said)


def ends(found: dict[str, Any], agent: str = "oracle") -> dict[str, str]:
    return {task: end["shifted"] for task, end in found["outcomes"][agent].items()}


def test_nothing_is_told_of_the_very_same_results(toolshift: Run, shop: Path) -> None:
    assert change(toolshift, shop, listed())[1]["rows"] == []


PAGES = {
    "cursor": (
        record(items=rows(**ORDER), next_cursor=MAYBE),
        {"cursor": TEXT, "limit": {"type": "integer", "default": 2}},
    ),
    "page": (
        record(items=rows(**ORDER), has_more={"type": "boolean"}, page={"type": "integer"}),
        {
            "page": {"type": "integer", "default": 1},
            "per_page": {"type": "integer", "default": 2},
        },
    ),
    "offset": (
        record(items=rows(**ORDER), total={"type": "integer"}),
        {"offset": {"type": "integer"}, "limit": {"type": "integer", "default": 2}},
    ),
    "link": (
        LISTED,
        {"page": {"type": "integer"}, "per_page": {"type": "integer", "default": 2}},
    ),
    "last": (
        record(items=rows(**ORDER), has_more={"type": "boolean"}),
        {"starting_after": TEXT, "limit": {"type": "integer", "default": 2}},
    ),
}


@pytest.mark.parametrize("style", PAGES)
def test_a_list_is_cut_into_pages_and_the_next_must_be_asked_for(
    toolshift: Run, shop: Path, style: str
) -> None:
    outputs, more = PAGES[style]
    code, found = change(
        toolshift, shop, listed(outputs, **more), "--agent", "shop_agents:first_page"
    )
    assert ends(found)["third"] == "passed"
    assert ends(found, "shop_agents:first_page")["third"].startswith("failed")
    states = {row["sentence"]: row["carriage"] for row in found["rows"]}
    assert set(states.values()) == {"carried"}, states
    assert (code, found["questions"]) == (1, [])


def test_changed_choices_are_carried_and_mapped_back(toolshift: Run, shop: Path) -> None:
    order = {**ORDER, "status": {"enum": ["IS_OPEN", "IS_SENT"]}}
    new = listed({**LISTED, "properties": {"result": rows(**order)}}, record(**order))
    code, found = change(toolshift, shop, new)
    assert {row["carriage"] for row in found["rows"]} == {"carried"}
    assert (code, found["left_out"], set(ends(found).values())) == (0, {}, {"passed"})


def answer(shop: Path, **answers: str) -> None:
    """Answers questions by their key in the file, each of which has to be asked."""
    mapping = shop / "change.mapping.toml"
    lines = mapping.read_text().splitlines()
    for key, value in answers.items():
        places = [n for n, line in enumerate(lines) if line.startswith(f'{key} = "?"')]
        assert places, f"{key} is not asked"
        for place in places:
            lines[place] = f"{key} = {json.dumps(value)}"
    mapping.write_text("\n".join(lines))


def test_choices_in_other_words_are_asked_once_and_the_answer_is_carried(
    toolshift: Run, shop: Path
) -> None:
    order = {**ORDER, "status": {"enum": ["pending", "shipped"]}}
    new = listed({**LISTED, "properties": {"result": rows(**order)}}, record(**order))
    _, found = change(toolshift, shop, new)
    assert {row["carriage"] for row in found["rows"]} == {"asked", "carried"}
    assert len(found["questions"]) == 2, "the same choices of two tools are asked once"
    answer(shop, open="pending", sent="shipped")
    code, found = change(toolshift, shop, new)
    assert ({row["carriage"] for row in found["rows"]}, found["questions"]) == ({"carried"}, [])
    assert (code, found["left_out"], set(ends(found).values())) == (0, {}, {"passed"})


def test_choices_that_become_numbers_are_asked_and_the_answer_is_carried(
    toolshift: Run, shop: Path
) -> None:
    order = {**ORDER, "status": {"type": "integer", "enum": [1, 2]}}
    new = listed({**LISTED, "properties": {"result": rows(**order)}}, record(**order))
    _, found = change(toolshift, shop, new)
    asked = {one["of"].rpartition(".")[2] for one in found["questions"]}
    assert (asked, found["left_out"]) == ({"open", "sent"}, {})
    answer(shop, open="2", sent="1")
    code, found = change(toolshift, shop, new)
    assert {row["carriage"] for row in found["rows"]} == {"carried"}
    assert (code, found["left_out"], set(ends(found).values())) == (0, {}, {"passed"})


def test_a_number_becomes_choices_by_an_answer_alone(toolshift: Run, shop: Path) -> None:
    kinds = {"type": "string", "enum": ["light", "heavy"]}
    new = listed(order=record(**{**ORDER, "weight": kinds}))
    _, found = change(toolshift, shop, new)
    (row,) = found["rows"]
    assert (row["carriage"], row["note"]) == ("said", "weight: nothing carries its new type")
    told = '[result_values.get_order.weight]\n"1250.0" = "heavy"\n"500.0" = "light"\n'
    (shop / "change.mapping.toml").write_text(told)
    code, found = change(toolshift, shop, new)
    (row,) = found["rows"]
    assert row["carriage"] == "carried"
    assert (code, ends(found)["alike"]) == (3, "passed"), "the answer of one task is a number"
    left = found["left_out"]
    assert [*left] == ["weight"]
    assert left["weight"].endswith("does not say the answer that it expects")


def test_a_number_of_another_name_and_unit_is_asked_by_its_type(toolshift: Run, shop: Path) -> None:
    order = {**ORDER, "amount_mg": {"type": "integer"}}
    del order["weight"]
    _, found = change(toolshift, shop, listed(order=record(**order)))
    assert "fields.get_order.weight" in [one["of"] for one in found["questions"]]


def test_a_boolean_of_results_that_becomes_choices_is_asked_without_a_guess(
    toolshift: Run, shop: Path
) -> None:
    (shop / "shop_tools.py").write_text(
        SHOP.replace("weight: float", "weight: bool")
        .replace("1250.0", "True").replace("500.0", "False").replace("750.0", "False")
    )  # fmt: skip
    (shop / "tasks.yaml").write_text(TASKS[: TASKS.index("  - id: weight")])
    listing = {"type": "object", "properties": {"result": rows(**{**ORDER, "weight": FLAG})}}
    order = {**ORDER, "heaviness": {"type": "string", "enum": ["light", "heavy"]}}
    del order["weight"]
    new = listed(listing, record(**order))
    _, found = change(toolshift, shop, new)
    asked = {one["of"]: one["likeliest"] for one in found["questions"]}
    of = "result_values.get_order.weight"
    assert {"fields.get_order.weight", f"{of}.true", f"{of}.false"} == {*asked}
    assert asked[f"{of}.true"] == asked[f"{of}.false"] == ""
    answer(shop, weight="heaviness", true="heavy", false="light")
    code, found = change(toolshift, shop, new)
    assert ({row["carriage"] for row in found["rows"]}, found["questions"]) == ({"carried"}, [])
    assert (code, found["left_out"], set(ends(found).values())) == (0, {}, {"passed"})


def test_seconds_that_become_a_date_are_carried(toolshift: Run, shop: Path) -> None:
    module = SHOP.replace("weight: float", "weight: int").replace("1250.0", "1771027200")
    (shop / "shop_tools.py").write_text(module.replace("500.0", "0").replace("750.0", "0"))
    (shop / "tasks.yaml").write_text(TASKS.replace('"1250"', '"1771027200"'))
    (shop / "change.mapping.toml").write_text(
        '[units.get_order]\nweight = "unix seconds -> date"\n'
    )
    listing = {"type": "object", "properties": {"result": rows(**{**ORDER, "weight": {}})}}
    new = listed(listing, record(**{**ORDER, "weight": {**TEXT, "format": "date"}}))
    _, found = change(toolshift, shop, new)
    assert ends(found)["weight"] == "passed", found["left_out"]


def test_a_renamed_value_is_asked_and_the_answer_is_carried(toolshift: Run, shop: Path) -> None:
    order = {**ORDER, "parcel": TEXT}
    del order["tracking"]
    new = listed(order=record(**order))
    _, found = change(toolshift, shop, new)
    assert [one["of"] for one in found["questions"]] == ["fields.get_order.tracking"]
    assert [row["carriage"] for row in found["rows"]] == ["asked"]
    code, text, _ = toolshift(
        "change", "python:shop_tools", "new.json", "--world", "tasks.yaml", "--agent", "oracle"
    )
    assert code == 3, "what a guess passes does not hold"
    assert "Not tested: 4 affected tasks" in text
    assert "To test it: answer the question" in " ".join(text.split())
    answer(shop, tracking="parcel")
    code, found = change(toolshift, shop, new)
    assert (code, ends(found)["tracking"]) == (0, "passed")
    assert [row["carriage"] for row in found["rows"]] == ["carried"]


def test_another_unit_is_asked_and_the_answer_is_carried(toolshift: Run, shop: Path) -> None:
    order = {**ORDER, "weight_kg": WEIGHT}
    del order["weight"]
    new = listed(order=record(**order))
    change(toolshift, shop, new)
    answer(shop, weight="weight_kg")
    mapping = shop / "change.mapping.toml"
    mapping.write_text(mapping.read_text() + '\n[units.get_order]\nweight = "g -> kg"\n')
    (shop / "agent.py").write_text(
        "def reads(messages, tools):\n"
        "    if messages[-1]['role'] != 'tool':\n"
        "        call = {'name': 'get_order', 'arguments': {'order_id': 'O-1'}}\n"
        "        return {'tool_calls': [call]}\n"
        "    return '1.25' if '1.25' in str(messages[-1]['content']) else 'unknown'\n"
    )
    _, found = change(toolshift, shop, new, "--agent", "agent:reads")
    assert ends(found)["weight"] == "passed"
    assert ends(found, "agent:reads")["weight"] == "passed"


def test_a_unit_of_results_that_nothing_converts_is_said_until_it_is_answered(
    toolshift: Run, shop: Path
) -> None:
    mapping = shop / "change.mapping.toml"
    (shop / "shop_tools.py").write_text(SHOP.replace("weight", "weight_kg"))
    order = {**ORDER, "weight_lb": WEIGHT}
    del order["weight"]
    mapping.write_text('[fields.get_order]\nweight_kg = "weight_lb"\n')
    _, found = change(toolshift, shop, listed(order=record(**order)))
    (row,) = [row for row in found["rows"] if row["change"]["old"] == "get_order"]
    assert row["carriage"] == "said"
    assert '[units.get_order] weight_kg = ""' in row["note"]
    mapping.write_text(mapping.read_text() + '[units.get_order]\nweight_kg = ""\n')
    _, found = change(toolshift, shop, listed(order=record(**order)))
    (row,) = [row for row in found["rows"] if row["change"]["old"] == "get_order"]
    assert row["carriage"] == "carried"


@pytest.mark.parametrize(("asked", "right", "wrong"), [(" in grams", "1250", "1.25")])
def test_a_request_that_names_the_unit_of_today_is_answered_in_it(
    toolshift: Run, shop: Path, asked: str, right: str, wrong: str
) -> None:
    tasks = (shop / "tasks.yaml").read_text()
    (shop / "tasks.yaml").write_text(tasks.replace("O-1 weigh?", f"O-1 weigh{asked}?"))
    assert (shop / "tasks.yaml").read_text() != tasks
    order = {**ORDER, "weight_kg": WEIGHT}
    del order["weight"]
    new = listed(order=record(**order))
    change(toolshift, shop, new)
    answer(shop, weight="weight_kg")
    mapping = shop / "change.mapping.toml"
    mapping.write_text(mapping.read_text() + '\n[units.get_order]\nweight = "g -> kg"\n')
    agent = (
        "    if messages[-1]['role'] != 'tool':\n"
        "        call = {'name': 'get_order', 'arguments': {'order_id': 'O-1'}}\n"
        "        return {'tool_calls': [call]}\n"
        "    now = 'weight_kg' in str(messages[-1]['content'])\n"
    )
    (shop / "in_grams.py").write_text(
        f"def converts(messages, tools):\n{agent}    return '{right}'\n"
        f"def copies(messages, tools):\n{agent}    return '{wrong}' if now else '{right}'\n"
    )
    agents = ("--agent", "in_grams:converts", "--agent", "in_grams:copies")
    _, found = change(toolshift, shop, new, *agents)
    assert ends(found)["weight"] == "passed"
    assert ends(found, "in_grams:converts")["weight"] == "passed"
    assert ends(found, "in_grams:copies")["weight"].startswith("failed")


def test_a_value_that_is_gone_is_said_with_the_tasks_that_read_it(
    toolshift: Run, shop: Path
) -> None:
    order = {key: value for key, value in ORDER.items() if key != "tracking"}
    _, found = change(toolshift, shop, listed(order=record(**order)), "--allow-untested")
    assert [row["note"] for row in found["rows"]] == ["gone: tracking"]
    assert list(found["left_out"]) == ["tracking"]
    assert "it reads get_order.tracking" in found["left_out"]["tracking"]


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ('[fields.get_order]\ntrackin = "parcel"', "unknown path 'trackin': did you mean tracking"),
        ('[fields.get_order]\ntracking = "parcl"', "unknown path 'parcl': did you mean parcel"),
        ('[fields.list_orders]\n"result.id" = "count"', "unknown path 'count'"),
        ('[units.get_order]\nweight = "g -> kilo"', "unknown conversion 'g -> kilo'"),
        ('[result_values.get_order.status]\nopened = "sent"', "unknown value 'opened'"),
        ("[returned.get_order]\nparcel = 3", "get_order does not return 3 for parcel"),
        ("[pages.get_order]\nsize = 3", "get_order does not return pages"),
    ],
)
def test_a_wrong_entry_is_refused_by_file_and_line(
    toolshift: Run, shop: Path, entry: str, why: str
) -> None:
    order = {**ORDER, "parcel": TEXT}
    (shop / "new.json").write_text(json.dumps(listed(order=record(**order))))
    (shop / "change.mapping.toml").write_text(f"# mine\n\n{entry}\n")
    for command in (("change",), ("shift", "from-diff", "--mapping", "change.mapping.toml")):
        code, _, said = toolshift(*command, "python:shop_tools", "new.json")
        assert (code, "change.mapping.toml:4" in said, why in said) == (2, True, True), said


PAGED = SHOP.replace(
    '''def list_orders(customer_id: str) -> list[Order]:
    """List the orders of a customer."""
    return ORDERS
''',
    '''class Page(TypedDict):
    orders: list[Order]
    next_cursor: str | None

def list_orders(customer_id: str, cursor: str = "") -> Page:
    """List the orders of a customer."""
    start = int(cursor or 0)
    more = str(start + 2) if start + 2 < len(ORDERS) else None
    return {"orders": ORDERS[start : start + 2], "next_cursor": more}
''',
)


def test_a_tool_that_no_longer_pages_returns_the_whole_list(toolshift: Run, shop: Path) -> None:
    (shop / "shop_tools.py").write_text(PAGED)
    call = "{name: list_orders, arguments: {customer_id: C-1}}"
    more = "{name: list_orders, arguments: {customer_id: C-1, cursor: '2'}}"
    (shop / "tasks.yaml").write_text(TASKS.replace(f"[{call}]", f"[{call}, {more}]"))
    new = listed()
    _, found = change(toolshift, shop, new, "--agent", "shop_agents:first_page")
    states = {row["change"]["kind"]: row["carriage"] for row in found["rows"]}
    assert states["output_schema_changed"] == "carried"
    assert found["left_out"] == {}
    ended = found["outcomes"]["shop_agents:first_page"]["third"]
    assert ended["shifted"] == "passed", "one call has the last record now"
    assert ends(found)["third"] == "passed"

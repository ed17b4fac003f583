"""What `toolshift change` asks is carried once it is answered, in a file and on a terminal."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from running import Run

from toolshift.shifts.files import FILES

SHOP = '''
from typing import TypedDict

class Order(TypedDict):
    id: str
    tracking: str

ORDERS = [Order(id=f"O-{n}", tracking=f"TR-{n}") for n in range(1, 6)]

def list_orders(customer: str, limit: int = 3, newest: bool = False) -> list[Order]:
    """List the orders of a customer."""
    return sorted(ORDERS, key=lambda one: one["id"], reverse=newest)[:limit]

def get_order(order: str) -> Order:
    """Look up an order."""
    return next(one for one in ORDERS if one["id"] == order)

def refund_order(order: str, reason: str) -> dict:
    """Refund an order."""
    return {"refund": f"R-{order}"}
'''
TASKS = """
world: shop
tools: {python: asked_tools}
writes: [refund_order]
tasks:
  - id: third
    ask: What is the tracking code of the third order of customer C-1?
    calls: [{name: list_orders, arguments: {customer: C-1}}]
    check: {calls: true, answer: TR-3}
  - id: newest
    ask: What is the tracking code of the newest order of customer C-1? Look at the newest true.
    calls: [{name: list_orders, arguments: {customer: C-1, newest: true}}]
    check: {calls: true, answer: TR-5}
  - id: one
    ask: What is the tracking code of order O-2?
    calls: [{name: get_order, arguments: {order: O-2}}]
    check: {calls: true, answer: TR-2}
  - id: refund
    ask: Refund order O-2 for the reason broken.
    calls: [{name: refund_order, arguments: {order: O-2, reason: broken}}]
    check: {calls: true}
"""
AGENTS = """
import json

def calls(name, **arguments):
    return {"tool_calls": [{"name": name, "arguments": arguments}]}

def said(messages):
    return str(messages[-1]["content"])

def third(messages, tools):
    if messages[-1]["role"] != "tool":
        return calls("list_orders", customer="C-1")
    found = json.loads(said(messages).partition("\\nNotice")[0])
    rows = found if isinstance(found, list) else found["items"]
    return f"It is {rows[2]['tracking']}." if len(rows) > 2 else f"I see {len(rows)}."

def zone(messages, tools):
    if messages[-1]["role"] != "tool":
        return calls("get_order", order="O-2")
    return f"It is {json.loads(said(messages))['zone']}."

def careless(messages, tools):
    if messages[-1]["role"] != "tool":
        return calls("refund_order", order="O-2", reason="broken", dry_run=True)
    return "unknown to it" if "does not know dry_run" in said(messages) else "done"

def successor(messages, tools):
    if messages[-1]["role"] != "tool":
        return calls("read_order", id="O-2")
    return f"It is {json.loads(said(messages))['tracking']}."
"""
TEXT: dict[str, Any] = {"type": "string"}
WHOLE = {"type": "integer", "default": 3}
FLAG = {"type": "boolean", "default": False}
ORDER = {"id": TEXT, "tracking": TEXT}
Tools = list[dict[str, Any]]


def record(**values: Any) -> dict[str, Any]:
    return {"type": "object", "properties": values, "required": sorted(values)}


def rows(**values: Any) -> dict[str, Any]:
    return {"type": "array", "items": {"title": "Order", **record(**values)}}


def tool(name: str, text: str, results: Any, *needs: str, **options: Any) -> dict[str, Any]:
    properties = {**dict.fromkeys(needs, TEXT), **options}
    inputs = {"type": "object", "properties": properties, "required": [*needs]}
    declared = {"outputSchema": results} if results else {}
    return {"name": name, "description": text, "inputSchema": inputs, **declared}


def listed(results: Any = None, **options: Any) -> dict[str, Any]:
    whole = {"type": "object", "properties": {"result": rows(**ORDER)}}
    known = {"limit": WHOLE, "newest": FLAG, **options}
    taken = {name: schema for name, schema in known.items() if schema}
    about = "List the orders of a customer."
    return tool("list_orders", about, results or whole, "customer", **taken)


GET = tool("get_order", "Look up an order.", record(**ORDER), "order")
REFUND = tool("refund_order", "Refund an order.", None, "order", "reason")


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(FILES, "")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "asked_tools.py").write_text(SHOP)
    (tmp_path / "asked_agents.py").write_text(AGENTS)
    (tmp_path / "tasks.yaml").write_text(TASKS)
    return tmp_path


def change(toolshift: Run, shop: Path, new: Tools, *agents: str) -> dict[str, Any]:
    (shop / "new.json").write_text(json.dumps(new))
    words = [word for agent in agents for word in ("--agent", f"asked_agents:{agent}")]
    sides = ("python:asked_tools", "new.json", "--world", "tasks.yaml", "--agent", "oracle")
    out = str(len([*shop.iterdir()]))
    _, said, wrong = toolshift("change", *sides, *words, "--json", "--out", out)
    assert said, wrong
    return dict(json.loads(said))


def ends(found: dict[str, Any], agent: str = "oracle") -> dict[str, str]:
    name = agent if agent == "oracle" else f"asked_agents:{agent}"
    return {task: end["shifted"] for task, end in found["outcomes"][name].items()}


def carriages(found: dict[str, Any], kind: str) -> list[str]:
    return [row["carriage"] for row in found["rows"] if row["change"]["kind"] == kind]


def fill(shop: Path, key: str, value: Any) -> None:
    """Answers the one question of a key in the file."""
    mapping = shop / "change.mapping.toml"
    text = mapping.read_text()
    assert text.count(f'{key} = "?"') == 1, text
    mapping.write_text(text.replace(f'{key} = "?"', f"{key} = {json.dumps(value)}"))


def on_terminal(monkeypatch: pytest.MonkeyPatch, *answers: str) -> None:
    """Types answers, a line each."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal("".join(f"{one}\n" for one in answers)))


ZONED = [listed(), {**GET, "outputSchema": record(**ORDER, zone=TEXT)}, REFUND]
SIZED = [listed(record(items=rows(**ORDER), next_cursor={"type": ["string", "null"]}), cursor=TEXT)]


def test_what_a_new_place_of_results_holds_is_asked_and_carried(toolshift: Run, shop: Path) -> None:
    found = change(toolshift, shop, ZONED)
    assert [one["of"] for one in found["questions"]] == ["returned.get_order.zone"]
    assert carriages(found, "output_schema_changed") == ["asked"]
    fill(shop, "zone", "Z-9")
    found = change(toolshift, shop, ZONED, "zone")
    assert (found["questions"], carriages(found, "output_schema_changed")) == ([], ["carried"])
    assert ends(found)["one"] == "passed"
    assert ends(found, "zone")["one"] == "failed: ignored result", "it is shown Z-9"


def test_how_many_are_on_a_page_is_asked_and_carried(toolshift: Run, shop: Path) -> None:
    new = [listed(record(items=rows(**ORDER), next_cursor=TEXT), limit=None, cursor=TEXT)]
    found = change(toolshift, shop, [*new, GET, REFUND])
    assert "pages.list_orders.size" in [one["of"] for one in found["questions"]]
    for size, passes in ((3, True), (2, False)):
        mapping = shop / "change.mapping.toml"
        mapping.write_text(f"[pages.list_orders]\nsize = {size}\n")
        found = change(toolshift, shop, [*new, GET, REFUND], "third")
        assert "pages.list_orders.size" not in [one["of"] for one in found["questions"]]
        ended = ends(found, "third")["third"]
        assert ended.startswith("passed" if passes else "failed"), found["left_out"]


def test_values_are_asked_on_a_terminal_as_names_are(
    toolshift: Run, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    get = {**GET, "outputSchema": record(**ORDER, zone=TEXT)}
    new = [listed(record(items=rows(**ORDER), next_cursor=TEXT), cursor=TEXT, limit=None)]
    wanting = tool("refund_order", "Refund an order.", None, "order", "reason", "desk")
    (shop / "new.json").write_text(json.dumps([*new, get, wanting]))
    on_terminal(monkeypatch, "D-1", "Z-9", "2")
    code, said, wrong = toolshift("change", "python:asked_tools", "new.json")
    assert code in (0, 3), wrong
    assert "desk of refund_order is required now" in said
    assert "zone of get_order is always returned now" in said
    assert "how many are on a page?" in said.lower()
    kept = (shop / "change.mapping.toml").read_text()
    assert ('desk = "D-1"' in kept, 'zone = "Z-9"' in kept, "size = 2" in kept) == (True,) * 3
    on_terminal(monkeypatch)
    _, said, _ = toolshift("change", "python:asked_tools", "new.json")
    assert "Asked" not in said


def test_what_is_left_open_on_a_terminal_stays_in_the_file(
    toolshift: Run, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanting = tool("refund_order", "Refund an order.", None, "order", "reason", "desk")
    (shop / "new.json").write_text(json.dumps([listed(), GET, wanting]))
    for command in (("change",), ("shift", "from-diff", "--out", "monday.json")):
        on_terminal(monkeypatch, "-")
        code, said, wrong = toolshift(*command, "python:asked_tools", "new.json")
        assert code in (0, 3), wrong
        assert "desk of refund_order is required now" in said
    for name in ("change.mapping.toml", "monday.mapping.toml"):
        assert 'desk = "?"' in (shop / name).read_text()


# -- defaults --------------------------------------------------------------------------------------


def test_who_leaves_a_parameter_out_gets_the_new_default(toolshift: Run, shop: Path) -> None:
    for limit, passes in ((4, True), (2, False)):
        new = [listed(limit={"type": "integer", "default": limit}), GET, REFUND]
        found = change(toolshift, shop, new, "third")
        assert carriages(found, "default_changed") == ["carried"]
        ended = ends(found, "third")["third"]
        assert ended.startswith("passed" if passes else "failed"), found["left_out"]


def test_a_default_that_the_old_tool_cannot_be_told_is_said(toolshift: Run, shop: Path) -> None:
    new = [listed(limit={"type": ["integer", "string"], "default": "all"}), GET, REFUND]
    found = change(toolshift, shop, new)
    assert carriages(found, "default_changed") == ["said"]
    (note,) = (row["note"] for row in found["rows"] if row["change"]["kind"] == "default_changed")
    assert "cannot take all" in note


def test_what_may_be_left_out_now_is_asked_and_carried(toolshift: Run, shop: Path) -> None:
    optional = tool("refund_order", "Refund an order.", None, "order", reason=TEXT)
    found = change(toolshift, shop, [listed(), GET, optional])
    assert carriages(found, "parameter_optional") == ["asked"]
    fill(shop, "reason", "broken")
    found = change(toolshift, shop, [listed(), GET, optional])
    assert (carriages(found, "parameter_optional"), ends(found)["refund"]) == (
        ["carried"],
        "passed",
    )


# -- more may be said ------------------------------------------------------------------------------


def test_a_write_is_not_made_where_an_option_is_not_known(toolshift: Run, shop: Path) -> None:
    dry = tool("refund_order", "Refund an order.", None, "order", "reason", dry_run=FLAG)
    found = change(toolshift, shop, [listed(), GET, dry], "careless")
    (row,) = (one for one in found["rows"] if one["change"]["kind"] == "parameter_added")
    assert row["carriage"] == "carried"
    assert "else it is refused" in row["note"]
    assert ends(found)["refund"] == "passed"
    assert ends(found, "careless")["refund"].startswith("failed")


def test_an_option_of_a_tool_that_reads_has_no_effect_and_that_is_said(
    toolshift: Run, shop: Path
) -> None:
    found = change(toolshift, shop, [listed(fields=TEXT), GET, REFUND])
    (row,) = (one for one in found["rows"] if one["change"]["kind"] == "parameter_added")
    assert (row["carriage"], "has no effect" in row["note"]) == ("carried", True)


# -- a boolean that becomes choices ----------------------------------------------------------------


@pytest.mark.parametrize("name", ["newest", "order"])
def test_a_boolean_that_becomes_choices_is_asked_and_carried(
    toolshift: Run, shop: Path, name: str
) -> None:
    choices = {"enum": ["up", "down", "any"], "default": "up"}
    new = [listed(**{"newest": None, name: choices}), GET, REFUND]
    found = change(toolshift, shop, new)
    if name != "newest":
        assert [one["of"] for one in found["questions"]] == ["params.list_orders.newest"]
        assert "newest" in found["left_out"], "what is only a question is not taken"
        fill(shop, "newest", name)
        change(toolshift, shop, new)
        mapping = shop / "change.mapping.toml"
        more = '\n[values.list_orders.newest]\ntrue = "?"\nfalse = "?"\n'
        mapping.write_text(mapping.read_text() + more)
    else:
        asked = [one["of"] for one in found["questions"]]
        assert sorted(asked) == [f"values.list_orders.newest.{one}" for one in ("false", "true")]
    fill(shop, "true", "down")
    fill(shop, "false", "up")
    found = change(toolshift, shop, new)
    assert (found["questions"], ends(found)["newest"]) == ([], "passed"), found["left_out"]
    assert "said" not in {row["carriage"] for row in found["rows"]}


def test_a_switch_by_another_word_needs_no_answer(toolshift: Run, shop: Path) -> None:
    new = [listed(newest={"enum": ["yes", "no"], "default": "no"}), GET, REFUND]
    found = change(toolshift, shop, new)
    assert (found["questions"], ends(found)["newest"]) == ([], "passed"), found["left_out"]
    assert "said" not in {row["carriage"] for row in found["rows"]}


# -- a successor beside ----------------------------------------------------------------------------


def test_a_deprecated_tool_and_its_successor_both_work(toolshift: Run, shop: Path) -> None:
    text = "Deprecated: use read_order. Look up an order."
    new = [listed(), {**GET, "description": text}, REFUND]
    new.append(tool("read_order", "Look up an order by its id.", record(**ORDER), "id"))
    found = change(toolshift, shop, new, "successor")
    assert carriages(found, "tool_superseded") == ["carried"]
    assert carriages(found, "tool_added") == []
    if found["questions"]:
        fill(shop, "order", "id")
        found = change(toolshift, shop, new, "successor")
    assert ends(found)["one"] == "passed", found["left_out"]
    assert ends(found, "successor")["one"] == "passed"


# -- a choice that was none ------------------------------------------------------------------------


def test_a_value_that_is_no_choice_now_is_told_its_entry(toolshift: Run, shop: Path) -> None:
    kinds = {"enum": ["Broken", "Late"]}
    result = record(refund=TEXT)
    new = [listed(), GET, tool("refund_order", "Refund an order.", result, "order", "reason")]
    new[-1]["inputSchema"]["properties"]["reason"] = {"type": "string", **kinds}
    found = change(toolshift, shop, new)
    assert 'under [values.refund_order.reason] broken = "Broken"' in str(found["left_out"])
    mapping = shop / "change.mapping.toml"
    mapping.write_text('[values.refund_order.reason]\nbroken = "Broken"\n')
    assert ends(change(toolshift, shop, new))["refund"] == "passed"


@pytest.mark.parametrize("wrap", ["anyOf", "oneOf", "enum"])
def test_choices_beside_null_are_asked_as_others_are(toolshift: Run, shop: Path, wrap: str) -> None:
    def sides(*choices: str) -> Tools:
        listing = {"type": "string", "enum": [*choices]}
        beside = {"type": ["string", "null"], "enum": [*choices, None]}
        state = beside if wrap == "enum" else {wrap: [listing, {"type": "null"}]}
        return [tool("find", "Find orders.", None, "customer", state=state)]

    (shop / "old.json").write_text(json.dumps(sides("open", "paid")))
    (shop / "new.json").write_text(json.dumps(sides("open", "settled")))
    _, said, wrong = toolshift("change", "old.json", "new.json", "--json")
    found = json.loads(said)
    assert [one["of"] for one in found["questions"]] == ["values.find.state.paid"], wrong
    assert carriages(found, "choice_replaced") == ["asked"]
    fill(shop, "paid", "settled")
    _, said, _ = toolshift("change", "old.json", "new.json", "--json")
    assert carriages(json.loads(said), "choice_replaced") == ["carried"]


def test_a_value_of_another_type_is_told_the_entry_of_its_conversion(
    toolshift: Run, shop: Path
) -> None:
    new = [listed(), GET, tool("refund_order", "Refund an order.", None, "order", "reason")]
    new[-1]["inputSchema"]["properties"]["reason"] = WHOLE
    left = change(toolshift, shop, new)["left_out"]
    assert 'say how under [param_units.refund_order] reason = "..."' in left["refund"]


@pytest.mark.parametrize(
    ("entry", "wrong"),
    [
        ('[values.find.state]\npaid = "setled"\n', "'setled': did you mean settled?"),
        ('[values.find.state]\npayed = "settled"\n', "'payed': did you mean paid"),
        ('[values.find.stat]\npaid = "settled"\n', "'stat': did you mean state?"),
    ],
)
def test_a_choice_or_a_parameter_that_is_not_there_is_refused(
    toolshift: Run, shop: Path, entry: str, wrong: str
) -> None:
    for side, last in (("old", "paid"), ("new", "settled")):
        state = {"type": "string", "enum": ["open", last]}
        listing = [tool("find", "Find orders.", None, "customer", state=state)]
        (shop / f"{side}.json").write_text(json.dumps(listing))
    (shop / "change.mapping.toml").write_text(entry)
    code, _, said = toolshift("change", "old.json", "new.json")
    assert code == 2
    assert wrong in " ".join(said.split())

"""The retail world: every kind is solvable, unguessable, and its state stays in its episode."""

import json
import re
import time

import pytest

from toolshift.core.ask import Ask
from toolshift.core.tool import Result, as_openai, input_schema, validator
from toolshift.core.world import POOLS
from toolshift.episode.draw import make_scene
from toolshift.episode.user import answer
from toolshift.worlds.retail import WORLD
from toolshift.worlds.retail.shop import CUSTOMERS, PRODUCTS, build

CODE = re.compile(r"\b[B-Z2-9]{4}-[B-Z2-9]{4}\b")
KINDS = sorted(WORLD.kinds)
CALLS = {
    "bin": {2},
    "reserve": {3},
    "refund": {3},
    "exchange": {4},
    "credit": {3},
    "if_stock": {3, 4},
    "fewer": {6},
    "nearest_item": {4, 5, 6},
    "largest_order": {4},
    "heaviest_item": {5},
    "reserve_then_check": {6},
}
WRITES = {
    "reserve": "reserve_stock",
    "refund": "refund_order",
    "exchange": "exchange_order",
    "credit": "add_credit",
    "largest_order": "refund_order",
    "reserve_then_check": "reserve_stock",
}


def session(pool="dev", size=40):
    return WORLD.truth(0, size, pool).open()


def ok(result: Result):
    assert result.ok, result.data
    return result.data


def refused(result: Result) -> str:
    assert not result.ok
    return result.data["error"]["code"]


def some_order(state, status="delivered"):
    return next(o for o in state.db.orders.values() if o["status"] == status)


# -- tasks -------------------------------------------------------------------------------------


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_oracle_solves_every_task(kind, pool):
    for index in range(30):
        scene = make_scene(WORLD, kind, index, pool=pool)
        steps = scene.rehearsal
        answers = [step for step in steps if step.kind == "answer"]
        assert steps[-1].kind == "answer"
        assert [step.said for step in answers] == [ask.expected for ask in scene.asks]
        assert all(step.ok for step in steps)
        assert len(scene.calls) in CALLS[kind]
        shown = []
        for step in steps:
            if step.kind == "call":
                shown += CODE.findall(step.text)
            else:
                assert step.said in shown
                assert step.said != shown[-1]


@pytest.mark.parametrize("kind", KINDS)
def test_effects_are_those_of_the_kind(kind):
    seen = set()
    for index in range(30):
        scene = make_scene(WORLD, kind, index)
        names = tuple(effect[0] for effect in scene.outcome.effects)
        seen.add(names)
        replay = scene.open()
        for call in scene.calls:
            ok(replay.call(call.name, call.arguments))
        assert tuple(replay.upstream.state.effects) == scene.outcome.effects
    expected = {(WRITES[kind],)} if kind in WRITES else {()}
    assert seen == ({(), ("reserve_stock",)} if kind == "if_stock" else expected)


def test_both_branches_are_drawn_about_as_often():
    reserved = sum(bool(make_scene(WORLD, "if_stock", i).outcome.effects) for i in range(60))
    assert 18 <= reserved <= 42


def test_a_refund_pays_the_way_the_user_says():
    ways = {make_scene(WORLD, "refund", i).outcome.effects[0][2] for i in range(30)}
    assert ways == {"credit card", "store voucher", "bank transfer"}


def test_the_credit_is_the_sum_of_the_delivered_orders():
    scene = make_scene(WORLD, "credit", 3)
    _, customer_id, amount = scene.outcome.effects[0]
    db = scene.truth.db
    orders = [db.orders[o] for o in db.customers[customer_id]["orders"]]
    assert amount == sum(o["total"] for o in orders if o["status"] == "delivered")


@pytest.mark.parametrize("size", [10, 200, 20_000])
def test_every_kind_can_be_made_at_every_size(size):
    for pool in POOLS:
        for kind in KINDS:
            assert make_scene(WORLD, kind, 0, pool=pool, size=size).rehearsal[-1].kind == "answer"


# -- wording -----------------------------------------------------------------------------------


def test_twelve_phrasings_a_pool_and_no_wording_shared():
    requests = {id(r): r for kind in WORLD.kinds.values() for r in kind.requests}
    everything = {pool: set() for pool in POOLS}
    for request in requests.values():
        for pool in POOLS:
            assert len(set(request.phrasings[pool])) == 12
            everything[pool] |= set(request.phrasings[pool])
    assert sum(map(len, everything.values())) == len(set().union(*everything.values()))


@pytest.mark.parametrize("kind", KINDS)
def test_every_phrasing_states_the_values_it_needs(kind):
    scene = make_scene(WORLD, kind, 0)
    for request in WORLD.kinds[kind].requests:
        slots = [set(re.findall(r"{(\w+)}", p)) for pool in POOLS for p in request.phrasings[pool]]
        assert all(found == slots[0] for found in slots)
    first = WORLD.kinds[kind].requests[0].phrasings["train"][0]
    assert set(re.findall(r"{(\w+)}", first)) == set(scene.asks[0].goal)


@pytest.mark.parametrize("kind", KINDS)
def test_a_simple_question_gets_its_slot(kind):
    ask: Ask = make_scene(WORLD, kind, 0).asks[0]
    for slot in ask.goal:
        assert answer(f"What is the {WORLD.facts[slot].label}?", ask, WORLD.facts).slot == slot
    for slot, fact in WORLD.facts.items():
        only = Ask("", {slot: "x"}, ask.solve, None)
        assert answer(f"What is the {fact.label}?", only, WORLD.facts).slot == slot


# -- tools -------------------------------------------------------------------------------------


def test_the_tools_are_well_formed():
    names = {tool.name for tool in WORLD.tools}
    assert 9 <= len(names) <= 12
    assert sum(tool.many for tool in WORLD.tools) >= 2
    for tool in WORLD.tools:
        assert 6 <= len(tool.description.split()) <= 14
        assert not any(name in tool.description for name in names)
        assert len(tool.returns) <= 5
        assert tool.origin == (tool.name,)
        assert as_openai(tool)["function"]["parameters"] == input_schema(tool)
        validator(tool)
        assert all({"type", "description"} <= p.schema.keys() for p in tool.params)
        for field in tool.returns:
            assert not field.unit or field.path[-1].endswith(f"_{field.unit}")
        refs = [f for f in tool.returns if f.fact.endswith("_ref")]
        assert tool.many or len(refs) >= 2


def test_results_have_the_fields_that_are_declared():
    for kind in KINDS:
        scene = make_scene(WORLD, kind, 1)
        for call in scene.calls:
            data = json.loads(call.text)
            tool = scene.truth.by_name[call.name]
            assert isinstance(data, list) is tool.many
            records = data if tool.many else [data]
            assert 1 <= len(records) <= 5
            for record in records:
                assert list(record) == [field.path[0] for field in tool.returns]


@pytest.mark.parametrize(
    ("lookup", "second", "joins"),
    [
        ("find_product", "locate_stock", {"check_stock", "reserve_stock"}),
        ("find_order", "get_return", {"refund_order", "exchange_order"}),
    ],
)
def test_two_triangles_are_used_by_at_least_two_kinds(lookup, second, joins):
    tools = {tool.name: tool for tool in WORLD.tools}
    x, y = tools[lookup].returns[0].fact, tools[second].returns[0].fact
    assert tools[second].needs == (x,)
    assert all({x, y} <= set(tools[name].needs) for name in joins)
    users = 0
    for kind in KINDS:
        names = {call.name for call in make_scene(WORLD, kind, 0).calls}
        users += {lookup, second} <= names and bool(joins & names)
    assert users >= 2


# -- state -------------------------------------------------------------------------------------


def test_stock_falls_by_a_reservation_and_only_in_its_episode():
    shop = session()
    product = next(iter(shop.state.db.products.values()))
    where = {"sku": product["sku"], "bin_id": product["bin_id"]}
    before = ok(shop.call("check_stock", where))
    made = ok(shop.call("reserve_stock", {**where, "quantity": 2}))
    after = ok(shop.call("check_stock", where))
    assert after["units"] == before["units"] - 2
    assert after["stock_ref"] != before["stock_ref"]
    assert after["stock_ref"] not in made.values()
    assert ok(shop.call("reserve_stock", {**where, "quantity": 2})) == made
    assert ok(shop.call("check_stock", where)) == after
    assert refused(shop.call("reserve_stock", {**where, "quantity": 90})) == "out_of_stock"
    assert ok(session().call("check_stock", where)) == before


def test_an_order_is_refunded_once():
    shop = session()
    order = some_order(shop.state)
    parcel, named = {"parcel_no": order["parcel_no"]}, {"order_id": order["order_id"]}
    before = ok(shop.call("find_order", parcel))
    return_id = ok(shop.call("get_return", named))["return_id"]
    refund = {**named, "return_id": return_id, "payout": "credit card"}
    ok(shop.call("refund_order", refund))
    assert refused(shop.call("refund_order", refund)) == "not_returnable"
    assert refused(shop.call("get_return", named)) == "not_returnable"
    after = ok(shop.call("find_order", parcel))
    assert (before["status"], after["status"]) == ("delivered", "refunded")
    assert after["status_ref"] != before["status_ref"]
    customer_id = next(
        c["customer_id"]
        for c in shop.state.db.customers.values()
        if order["order_id"] in c["orders"]
    )
    listed = ok(shop.call("list_orders", {"customer_id": customer_id}))
    assert {"refunded"} == {o["status"] for o in listed if o["order_id"] == order["order_id"]}
    assert ok(session().call("find_order", parcel)) == before
    assert order["status"] == "delivered"


def test_an_exchange_takes_one_unit_and_closes_the_order():
    shop = session()
    order, product = some_order(shop.state), next(iter(shop.state.db.products.values()))
    named = {"order_id": order["order_id"], "return_id": order["return_id"]}
    ok(shop.call("exchange_order", {**named, "sku": product["sku"]}))
    left = ok(shop.call("check_stock", {"sku": product["sku"], "bin_id": product["bin_id"]}))
    assert left["units"] == product["units"] - 1
    again = shop.call("refund_order", {**named, "payout": "credit card"})
    assert refused(again) == "not_returnable"


def test_wrong_ids_are_refused():
    shop = session()
    order, other = list(shop.state.db.orders.values())[:2]
    one, two = list(shop.state.db.products.values())[:2]
    mixed = {
        "order_id": order["order_id"],
        "return_id": other["return_id"],
        "payout": "credit card",
    }
    assert refused(shop.call("refund_order", mixed)) == "not_found"
    wrong_bin = {"sku": one["sku"], "bin_id": two["bin_id"]}
    assert refused(shop.call("check_stock", wrong_bin)) == "not_found"
    assert refused(shop.call("find_customer", {"customer_name": "Nobody"})) == "not_found"
    shipped = {"order_id": some_order(shop.state, "shipped")["order_id"]}
    assert refused(shop.call("get_return", shipped)) == "not_returnable"
    assert shop.state.effects == []


def test_the_second_turn_depends_on_the_write_of_the_first():
    enough = 0
    for index in range(40):
        scene = make_scene(WORLD, "reserve_then_check", index)
        *_, last = scene.calls
        assert last.name == "check_stock"
        untouched = ok(scene.open().call("check_stock", last.arguments))
        assert untouched["units"] >= scene.asks[1].goal["quantity"]
        assert scene.asks[1].expected != untouched["stock_ref"]
        enough += scene.asks[1].expected == json.loads(last.text)["stock_ref"]
    assert 10 <= enough <= 30


# -- entities ----------------------------------------------------------------------------------


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("size", [10, 200, 20_000])
def test_entities_are_unique_and_the_same_for_a_seed(size, pool):
    shop = build(7, size, pool)
    assert len(shop.orders) == len(shop.order_by_parcel) == size
    assert len(shop.customers) == len(shop.customer_by_name)
    assert len(shop.products) == len(shop.sku_by_name) >= 8
    assert sum(len(c["orders"]) for c in shop.customers.values()) == size
    assert all(1 <= len(c["orders"]) <= 5 for c in shop.customers.values())
    assert len({o["return_id"] for o in shop.orders.values()}) == size
    if size > 200:  # that the seed decides is seen at the others
        return
    again = build(7, size, pool)
    assert (again.orders, again.products, again.customers) == (
        shop.orders,
        shop.products,
        shop.customers,
    )
    assert build(8, size, pool).orders != shop.orders


@pytest.mark.slow
def test_a_hundred_thousand_orders_are_built_quickly():
    for pool in POOLS:
        started = time.process_time()
        shop = build(0, 100_000, pool)
        assert time.process_time() - started < 8
        assert len(shop.customers) == len(shop.customer_by_name)
        assert len(shop.products) == len(shop.sku_by_name)


def test_pools_share_no_name_parts():
    for bank in (CUSTOMERS, PRODUCTS):
        words = [
            {w.lower() for part in (*names.parts, names.extra) for w in part.split() if len(w) > 1}
            for names in bank.values()
        ]
        assert sum(map(len, words)) == len(set().union(*words))

"""What users ask of the shop: eleven kinds of task; `wording.toml` phrases them."""

from __future__ import annotations

from random import Random
from typing import Any

from toolshift.core.fact import Goal
from toolshift.core.solver import Known, Solve, Solver
from toolshift.core.world import TaskKind, query_fact, read_requests
from toolshift.worlds.retail.shop import Shop

PAYOUTS = ("credit card", "store voucher", "bank transfer")

# -- goals -------------------------------------------------------------------------------------


def _some(db: Shop, rng: Random, what: str) -> dict[str, Any]:
    """A product, an order or a customer."""
    entity: dict[str, Any] = getattr(db, f"{what}s")[rng.choice(db.ids[what])]
    return entity


def _orders(db: Shop, customer: dict[str, Any]) -> list[dict[str, Any]]:
    return [db.orders[order_id] for order_id in customer["orders"]]


def _distinct(records: list[dict[str, Any]], key: str) -> bool:
    return len(records) > 1 and len({record[key] for record in records}) == len(records)


def draw_product(db: Shop, rng: Random) -> Goal:
    return {"product_name": _some(db, rng, "product")["name"]}


def draw_reserve(db: Shop, rng: Random) -> Goal:
    """A quantity so small that two reservations of any product fit its stock."""
    product = _some(db, rng, "product")
    return {"product_name": product["name"], "quantity": rng.randrange(2, 13)}


def draw_if_stock(db: Shop, rng: Random) -> Goal:
    """A quantity that stock just covers, or just fails to, one as often as the other."""
    product = _some(db, rng, "product")
    over = rng.choice((-2, -1, 0, 1, 2, 3))
    return {"product_name": product["name"], "quantity": product["units"] + over}


def draw_half(db: Shop, rng: Random) -> Goal:
    """A quantity that stock covers once, and a second time in one case of two."""
    product = _some(db, rng, "product")
    over = rng.choice((-2, -1, 0, 1, 2, 3))
    return {"product_name": product["name"], "quantity": product["units"] // 2 + over}


def draw_fewer(db: Shop, rng: Random) -> Goal | None:
    one, other = _some(db, rng, "product"), _some(db, rng, "product")
    if (
        one["units"] == other["units"]
        or one["name"] in other["name"]
        or other["name"] in one["name"]
    ):
        return None
    return {"product_name": one["name"], "other_product": other["name"]}


def draw_refund(db: Shop, rng: Random) -> Goal | None:
    order = _some(db, rng, "order")
    if order["status"] != "delivered":
        return None
    return {"parcel_no": order["parcel_no"], "payout": rng.choice(PAYOUTS)}


def draw_exchange(db: Shop, rng: Random) -> Goal | None:
    order, product = _some(db, rng, "order"), _some(db, rng, "product")
    if order["status"] != "delivered" or product["sku"] in order["items"]:
        return None
    return {"parcel_no": order["parcel_no"], "product_name": product["name"]}


def draw_nearest_item(db: Shop, rng: Random) -> Goal | None:
    order = _some(db, rng, "order")
    if not _distinct([db.products[sku] for sku in order["items"]], "distance"):
        return None
    return {"parcel_no": order["parcel_no"]}


def draw_largest_order(db: Shop, rng: Random) -> Goal | None:
    customer = _some(db, rng, "customer")
    orders = _orders(db, customer)
    largest = max(orders, key=lambda order: order["total"])
    if not _distinct(orders, "total") or largest["status"] != "delivered":
        return None
    return {"customer_name": customer["name"], "payout": rng.choice(PAYOUTS)}


def draw_heaviest_item(db: Shop, rng: Random) -> Goal | None:
    customer = _some(db, rng, "customer")
    orders = _orders(db, customer)
    smallest = min(orders, key=lambda order: order["total"])
    items = [db.products[sku] for sku in smallest["items"]]
    if not _distinct(orders, "total") or not _distinct(items, "weight"):
        return None
    return {"customer_name": customer["name"]}


def draw_credit(db: Shop, rng: Random) -> Goal | None:
    customer = _some(db, rng, "customer")
    delivered = [o for o in _orders(db, customer) if o["status"] == "delivered"]
    return {"customer_name": customer["name"]} if len(delivered) > 1 else None


# -- solutions ---------------------------------------------------------------------------------


def solve_if_stock(solver: Solver, env: Known) -> str:
    enough = env["units"] >= solver.given("quantity")
    return str(env["reservation_ref"] if enough else env["stock_ref"])


def solve_still_enough(solver: Solver, env: Known) -> str:
    enough = env["units"] >= solver.given("quantity")
    return str(env["stock_ref"] if enough else env["bin_ref"])


def solve_fewer(solver: Solver, env: Known) -> str:
    one = env.about(product_name=solver.given("product_name"))
    other = env.about(product_name=solver.given("other_product"))
    return str(min(one, other, key=lambda product: product["units"])["stock_ref"])


def solve_nearest_item(solver: Solver, env: Known) -> str:
    nearest = min(solver.records("sku", env), key=lambda item: item["distance"])
    return str(nearest["bin_ref"])


def solve_largest_order(solver: Solver, env: Known) -> str:
    largest = max(solver.records("order_id", env), key=lambda order: order["total"])
    return str(largest["refund_ref"])


def solve_heaviest_item(solver: Solver, env: Known) -> str:
    smallest = min(solver.records("order_id", env), key=lambda order: order["total"])
    heaviest = max(solver.records("sku", smallest), key=lambda item: item["weight"])
    return str(heaviest["stock_ref"])


def solve_credit(solver: Solver, env: Known) -> str:
    orders = solver.records("order_id", env)
    delivered = [o["total"] for o in orders if o["order_status"] == "delivered"]
    return str(env.about(credit_amount=round(sum(delivered), 2))["credit_ref"])


SOLUTIONS: dict[str, Solve] = {
    "bin": query_fact("bin_ref"),
    "reserve": query_fact("reservation_ref"),
    "refund": query_fact("refund_ref"),
    "exchange": query_fact("exchange_ref"),
    "credit": solve_credit,
    "if_stock": solve_if_stock,
    "fewer": solve_fewer,
    "nearest_item": solve_nearest_item,
    "largest_order": solve_largest_order,
    "heaviest_item": solve_heaviest_item,
    "still_enough": solve_still_enough,
}
ASK = read_requests(__file__, SOLUTIONS)
KINDS = (
    TaskKind("bin", (ASK["bin"],), draw_product),
    TaskKind("reserve", (ASK["reserve"],), draw_reserve),
    TaskKind("refund", (ASK["refund"],), draw_refund),
    TaskKind("exchange", (ASK["exchange"],), draw_exchange),
    TaskKind("credit", (ASK["credit"],), draw_credit),
    TaskKind("if_stock", (ASK["if_stock"],), draw_if_stock),
    TaskKind("fewer", (ASK["fewer"],), draw_fewer),
    TaskKind("nearest_item", (ASK["nearest_item"],), draw_nearest_item),
    TaskKind("largest_order", (ASK["largest_order"],), draw_largest_order),
    TaskKind("heaviest_item", (ASK["heaviest_item"],), draw_heaviest_item),
    TaskKind("reserve_then_check", (ASK["reserve"], ASK["still_enough"]), draw_half),
)

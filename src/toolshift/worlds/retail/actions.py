"""What the tools of the shop do. Writes go to the episode's memory; the shop never changes."""

from __future__ import annotations

from typing import Any

from toolshift.core.tool import ToolFailure
from toolshift.core.world import State

Arguments = dict[str, Any]
Record = dict[str, Any]


def _found(table: dict[str, Any], key: str, what: str) -> Any:
    if key not in table:
        raise ToolFailure("not_found", f"There is no {what} {key}.")
    return table[key]


def _order(state: State, arguments: Arguments) -> Record:
    order: Record = _found(state.db.orders, arguments["order_id"], "order")
    return order


def _product(state: State, arguments: Arguments) -> Record:
    product: Record = _found(state.db.products, arguments["sku"], "product")
    return product


def _status(state: State, order: Record) -> str:
    return str(state.memory.get(("status", order["order_id"]), order["status"]))


def _units(state: State, product: Record) -> int:
    held: dict[Any, int] = state.memory.get(("held", product["sku"]), {})
    return int(product["units"]) - sum(held.values())


def _hold(state: State, product: Record, purpose: Any, units: int) -> None:
    """Takes units out of stock; the same purpose again takes nothing more."""
    held = state.memory.setdefault(("held", product["sku"]), {})
    if purpose in held:
        return
    left = _units(state, product)
    if left < units:
        raise ToolFailure("out_of_stock", f"Only {left} units of {product['sku']} are left.")
    held[purpose] = units


def _returnable(state: State, order: Record) -> None:
    status = _status(state, order)
    if status != "delivered":
        raise ToolFailure("not_returnable", f"Order {order['order_id']} is {status}.")


# -- customers and their orders ----------------------------------------------------------------


def find_customer(state: State, arguments: Arguments) -> Record:
    name = arguments["customer_name"]
    customer_id = _found(state.db.customer_by_name, name.lower(), "customer named")
    return {
        "customer_id": customer_id,
        "tier": state.db.customers[customer_id]["tier"],
        "profile_ref": state.code("profile", customer_id),
        "card_ref": state.code("card", customer_id),
    }


def list_orders(state: State, arguments: Arguments) -> list[Record]:
    customer = _found(state.db.customers, arguments["customer_id"], "customer")
    orders = (state.db.orders[order_id] for order_id in customer["orders"])
    return [
        {"order_id": o["order_id"], "status": _status(state, o), "total_eur": o["total"]}
        for o in orders
    ]


def find_order(state: State, arguments: Arguments) -> Record:
    order_id = _found(state.db.order_by_parcel, arguments["parcel_no"], "parcel")
    status = _status(state, state.db.orders[order_id])
    return {
        "order_id": order_id,
        "status": status,
        "status_ref": state.code("status", order_id, status),
        "scan_ref": state.code("scan", order_id),
    }


def list_items(state: State, arguments: Arguments) -> list[Record]:
    products = (state.db.products[sku] for sku in _order(state, arguments)["items"])
    return [
        {
            "sku": product["sku"],
            "product_name": product["name"],
            "price_eur": product["price"],
            "weight_kg": product["weight"],
        }
        for product in products
    ]


def get_return(state: State, arguments: Arguments) -> Record:
    order = _order(state, arguments)
    _returnable(state, order)
    return {
        "return_id": order["return_id"],
        "label_ref": state.code("label", order["order_id"]),
        "gate_ref": state.code("gate", order["order_id"]),
    }


# -- products and their stock ------------------------------------------------------------------


def find_product(state: State, arguments: Arguments) -> Record:
    name = arguments["product_name"]
    product = state.db.products[_found(state.db.sku_by_name, name.lower(), "product named")]
    return {
        "sku": product["sku"],
        "price_eur": product["price"],
        "catalogue_ref": state.code("catalogue", product["sku"]),
        "supplier_ref": state.code("supplier", product["sku"]),
    }


def locate_stock(state: State, arguments: Arguments) -> Record:
    product = _product(state, arguments)
    return {
        "bin_id": product["bin_id"],
        "distance_km": product["distance"],
        "dock_ref": state.code("dock", product["sku"]),
        "bin_ref": state.code("bin", product["sku"]),
        "zone_ref": state.code("zone", product["sku"]),
    }


def _in_bin(state: State, arguments: Arguments) -> Record:
    product, bin_id = _product(state, arguments), arguments["bin_id"]
    if product["bin_id"] != bin_id:
        raise ToolFailure("not_found", f"There is no {product['sku']} in bin {bin_id}.")
    return product


def check_stock(state: State, arguments: Arguments) -> Record:
    product = _in_bin(state, arguments)
    units = _units(state, product)
    return {
        "units": units,
        "stock_ref": state.code("stock", product["sku"], units),
        "shelf_ref": state.code("shelf", product["sku"]),
    }


# -- writes, where the trees meet --------------------------------------------------------------


def reserve_stock(state: State, arguments: Arguments) -> Record:
    product, quantity = _in_bin(state, arguments), int(arguments["quantity"])
    sku = product["sku"]
    _hold(state, product, ("reserve", quantity), quantity)
    state.record("reserve_stock", sku, quantity)
    return {
        "pick_ref": state.code("pick", sku, quantity),
        "reservation_ref": state.code("reservation", sku, quantity),
        "hold_ref": state.code("hold", sku, quantity),
    }


def _authorised(state: State, arguments: Arguments) -> Record:
    order, return_id = _order(state, arguments), arguments["return_id"]
    if order["return_id"] != return_id:
        raise ToolFailure("not_found", f"{order['order_id']} has no return {return_id}.")
    _returnable(state, order)
    return order


def refund_order(state: State, arguments: Arguments) -> Record:
    order_id, payout = _authorised(state, arguments)["order_id"], arguments["payout"]
    state.memory["status", order_id] = "refunded"
    state.record("refund_order", order_id, payout)
    return {
        "refund_ref": state.code("refund", order_id, payout),
        "ledger_ref": state.code("ledger", order_id, payout),
    }


def exchange_order(state: State, arguments: Arguments) -> Record:
    order_id, product = _authorised(state, arguments)["order_id"], _product(state, arguments)
    sku = product["sku"]
    _hold(state, product, ("exchange", order_id), 1)
    state.memory["status", order_id] = "exchanged"
    state.record("exchange_order", order_id, sku)
    return {
        "crate_ref": state.code("crate", order_id, sku),
        "exchange_ref": state.code("exchange", order_id, sku),
        "seal_ref": state.code("seal", order_id, sku),
    }


def add_credit(state: State, arguments: Arguments) -> Record:
    customer = _found(state.db.customers, arguments["customer_id"], "customer")
    customer_id, amount = customer["customer_id"], float(arguments["amount_eur"])
    state.record("add_credit", customer_id, amount)
    return {
        "credit_ref": state.code("credit", customer_id, amount),
        "posting_ref": state.code("posting", customer_id, amount),
    }

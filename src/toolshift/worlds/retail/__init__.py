"""A shop whose state changes: orders are refunded and exchanged, stock is reserved.

The graph is two trees that meet. Customers lead to orders and orders to items, by name or by
parcel; products lead to bins and to stock. An item's sku joins them, and the writes do: an
exchange takes an order, its return authorisation and a product. Entities live in `Shop`
(`shop.py`), `actions.py` says what the tools do, and `tasks.py` what users want.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from toolshift.tool import Effect, Field, Param, Tool
from toolshift.world import Action, Fact, World
from toolshift.worlds.retail import actions
from toolshift.worlds.retail.shop import Shop, build
from toolshift.worlds.retail.tasks import KINDS, PAYOUTS


def _text(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "minLength": 1, "description": description, **more}


def _id(fact: str, prefix: str, what: str) -> Param:
    return Param(fact, fact, _text(f"Identifier of the {what}.", pattern=f"^{prefix}_[0-9]+$"))


def _tool(
    action: Action,
    description: str,
    params: tuple[Param, ...],
    returns: tuple[Field, ...],
    many: bool = False,
    effect: Effect = "read",
) -> tuple[Tool, Action]:
    name = action.__name__
    return Tool(name, description, params, returns, many, effect, origin=(name,)), action


def _same(fact: str) -> Field:
    """A value that stands under the name of its fact."""
    return Field((fact,), fact)


_number = partial(Field, type="number")
CUSTOMER = _id("customer_id", "cus", "customer")
ORDER = _id("order_id", "ord", "order")
RETURN = _id("return_id", "ret", "return authorisation")
SKU = _id("sku", "sku", "product")
BIN = _id("bin_id", "bin", "warehouse bin")
STATUS = Field(("status",), "order_status")
PRICE = _number(("price_eur",), "price", unit="eur")
_TOOLS = (
    _tool(
        actions.find_customer,
        "Find the id and tier of a customer by full name",
        (Param("customer_name", "customer_name", _text("Full name of the customer.")),),
        (_same("customer_id"), _same("tier"), _same("profile_ref"), _same("card_ref")),
    ),
    _tool(
        actions.list_orders,
        "List the orders of a customer with status and total",
        (CUSTOMER,),
        (_same("order_id"), STATUS, _number(("total_eur",), "total", unit="eur")),
        many=True,
    ),
    _tool(
        actions.find_order,
        "Find the order that a parcel belongs to, and its status",
        (
            Param(
                "parcel_no",
                "parcel_no",
                _text("Number of the parcel.", pattern="^pcl_[0-9]+$"),
            ),
        ),
        (_same("order_id"), STATUS, _same("status_ref"), _same("scan_ref")),
    ),
    _tool(
        actions.list_items,
        "List the items in an order with price and weight",
        (ORDER,),
        (
            _same("sku"),
            Field(("product_name",), "item_name"),
            PRICE,
            _number(("weight_kg",), "weight", unit="kg"),
        ),
        many=True,
    ),
    _tool(
        actions.get_return,
        "Get the return authorisation id of a delivered order",
        (ORDER,),
        (_same("return_id"), _same("label_ref"), _same("gate_ref")),
    ),
    _tool(
        actions.find_product,
        "Find the sku and price of a product by its name",
        (Param("product_name", "product_name", _text("Name of the product.")),),
        (_same("sku"), PRICE, _same("catalogue_ref"), _same("supplier_ref")),
    ),
    _tool(
        actions.locate_stock,
        "Locate the warehouse bin of a product, and its distance",
        (SKU,),
        (
            _same("bin_id"),
            _number(("distance_km",), "distance", unit="km"),
            _same("dock_ref"),
            _same("bin_ref"),
            _same("zone_ref"),
        ),
    ),
    _tool(
        actions.check_stock,
        "Count the units of a product left in its bin",
        (SKU, BIN),
        (Field(("units",), "units", "integer"), _same("stock_ref"), _same("shelf_ref")),
    ),
    _tool(
        actions.reserve_stock,
        "Reserve units of a product from its warehouse bin",
        (
            SKU,
            BIN,
            Param(
                "quantity",
                "quantity",
                {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": 99,
                    "description": "Number of units.",
                },
            ),
        ),
        (_same("pick_ref"), _same("reservation_ref"), _same("hold_ref")),
        effect="write",
    ),
    _tool(
        actions.refund_order,
        "Refund an order under its return authorisation",
        (ORDER, RETURN, Param("payout", "payout", _text("How to pay.", enum=list(PAYOUTS)))),
        (_same("refund_ref"), _same("ledger_ref")),
        effect="write",
    ),
    _tool(
        actions.exchange_order,
        "Exchange an order for a product under its return authorisation",
        (ORDER, RETURN, SKU),
        (_same("crate_ref"), _same("exchange_ref"), _same("seal_ref")),
        effect="write",
    ),
    _tool(
        actions.add_credit,
        "Add an amount in euros to the credit of a customer",
        (
            CUSTOMER,
            Param(
                "amount_eur",
                "credit_amount",
                {"type": "number", "minimum": 0, "description": "Amount in euros."},
            ),
        ),
        (_same("credit_ref"), _same("posting_ref")),
        effect="write",
    ),
)


class Retail(World):
    """A domain with state: customers and orders on one side, products and stock on the other."""

    name = "retail"
    system = (
        "You work at the service desk of a shop. Use the tools; answer with the exact reference "
        "that is asked for."
    )
    facts = {
        "customer_name": Fact("customer", ("customer", "client", "shopper", "buyer")),
        "parcel_no": Fact("parcel number", ("parcel", "package", "tracking", "shipment")),
        "other_product": Fact("other product", ("other", "second", "alternative")),
        "product_name": Fact("product", ("product", "article", "goods", "replacement")),
        "quantity": Fact("quantity", ("quantity", "units", "many", "pieces")),
        "payout": Fact("payout method", ("payout", "method", "paid", "pay")),
        "order_id": Fact("order id", ("order",)),
        "return_id": Fact("return authorisation", ("return", "authorisation")),
        "sku": Fact("sku", ("sku",)),
        "bin_id": Fact("warehouse bin", ("bin", "warehouse")),
        "customer_id": Fact("account id", ("account", "id", "identifier")),
        "credit_amount": Fact("credit", ("credit", "amount", "sum", "total")),
        "price": Fact("price", ("price", "cost")),
    }
    tools = tuple(tool for tool, _ in _TOOLS)
    actions = {tool.name: action for tool, action in _TOOLS}
    kinds = {kind.name: kind for kind in KINDS}

    def build(self, seed: int, size: int, pool: str) -> Shop:
        return build(seed, size, pool)


WORLD = Retail()

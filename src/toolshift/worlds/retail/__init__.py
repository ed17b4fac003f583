"""A shop whose state changes: orders are refunded and exchanged, stock is reserved.

The graph is two trees that meet. Customers lead to orders and orders to items, by name or by
parcel; products lead to bins and to stock. An item's sku joins them, and the writes do: an
exchange takes an order, its return authorisation and a product. Entities live in `Shop`
(`shop.py`), `actions.py` says what the tools do, and `tasks.py` what users ask for.
"""

from __future__ import annotations

from toolshift.core.fact import read_facts
from toolshift.core.tool import Field, Param
from toolshift.core.world import World, declare, plain, quantity, text
from toolshift.worlds.retail import actions
from toolshift.worlds.retail.shop import Shop, build
from toolshift.worlds.retail.tasks import KINDS, PAYOUTS


def _id(fact: str, prefix: str, what: str) -> Param:
    return Param(fact, fact, text(f"Identifier of the {what}.", pattern=f"^{prefix}_[0-9]+$"))


CUSTOMER = _id("customer_id", "cus", "customer")
ORDER = _id("order_id", "ord", "order")
RETURN = _id("return_id", "ret", "return authorisation")
SKU = _id("sku", "sku", "product")
BIN = _id("bin_id", "bin", "warehouse bin")
STATUS = Field(("status",), "order_status")
PRICE = quantity(("price_eur",), "price", unit="eur")
_TOOLS = (
    declare(
        actions.find_customer,
        "Find the id and tier of a customer by full name",
        (Param("customer_name", "customer_name", text("Full name of the customer.")),),
        (plain("customer_id"), plain("tier"), plain("profile_ref"), plain("card_ref")),
    ),
    declare(
        actions.list_orders,
        "List the orders of a customer with status and total",
        (CUSTOMER,),
        (plain("order_id"), STATUS, quantity(("total_eur",), "total", unit="eur")),
        many=True,
    ),
    declare(
        actions.find_order,
        "Find the order that a parcel belongs to, and its status",
        (
            Param(
                "parcel_no",
                "parcel_no",
                text("Number of the parcel.", pattern="^pcl_[0-9]+$"),
            ),
        ),
        (plain("order_id"), STATUS, plain("status_ref"), plain("scan_ref")),
    ),
    declare(
        actions.list_items,
        "List the items in an order with price and weight",
        (ORDER,),
        (
            plain("sku"),
            Field(("product_name",), "item_name"),
            PRICE,
            quantity(("weight_kg",), "weight", unit="kg"),
        ),
        many=True,
    ),
    declare(
        actions.get_return,
        "Get the return authorisation id of a delivered order",
        (ORDER,),
        (plain("return_id"), plain("label_ref"), plain("gate_ref")),
    ),
    declare(
        actions.find_product,
        "Find the sku and price of a product by its name",
        (Param("product_name", "product_name", text("Name of the product.")),),
        (plain("sku"), PRICE, plain("catalogue_ref"), plain("supplier_ref")),
    ),
    declare(
        actions.locate_stock,
        "Locate the warehouse bin of a product, and its distance",
        (SKU,),
        (
            plain("bin_id"),
            quantity(("distance_km",), "distance", unit="km"),
            plain("dock_ref"),
            plain("bin_ref"),
            plain("zone_ref"),
        ),
    ),
    declare(
        actions.check_stock,
        "Count the units of a product left in its bin",
        (SKU, BIN),
        (Field(("units",), "units", "integer"), plain("stock_ref"), plain("shelf_ref")),
    ),
    declare(
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
        (plain("pick_ref"), plain("reservation_ref"), plain("hold_ref")),
        effect="write",
    ),
    declare(
        actions.refund_order,
        "Refund an order under its return authorisation",
        (ORDER, RETURN, Param("payout", "payout", text("How to pay.", enum=list(PAYOUTS)))),
        (plain("refund_ref"), plain("ledger_ref")),
        effect="write",
    ),
    declare(
        actions.exchange_order,
        "Exchange an order for a product under its return authorisation",
        (ORDER, RETURN, SKU),
        (plain("crate_ref"), plain("exchange_ref"), plain("seal_ref")),
        effect="write",
    ),
    declare(
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
        (plain("credit_ref"), plain("posting_ref")),
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
    facts = read_facts(__file__)
    tools = tuple(tool for tool, _ in _TOOLS)
    actions = {tool.name: action for tool, action in _TOOLS}
    kinds = {kind.name: kind for kind in KINDS}

    def build(self, seed: int, size: int, pool: str) -> Shop:
        return build(seed, size, pool)


WORLD = Retail()

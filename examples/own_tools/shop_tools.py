"""Tools of a small shop, as annotated functions. Run the tasks beside them:

toolshift run --world examples/own_tools/tasks.yaml --agent memorises_names
"""

from typing import TypedDict

__all__ = ["find_customer", "get_order", "list_orders", "refund_order"]


class Order(TypedDict):
    """An order of a customer."""

    order_id: str
    item: str
    total_eur: float
    status: str


CUSTOMERS = {"mara@example.com": "C-301", "jon@example.com": "C-302"}
ORDERS: dict[str, list[Order]] = {
    "C-301": [
        {"order_id": "O-1701", "item": "kettle", "total_eur": 25.5, "status": "delivered"},
        {"order_id": "O-1702", "item": "lamp", "total_eur": 40.0, "status": "shipped"},
    ],
    "C-302": [{"order_id": "O-1801", "item": "chair", "total_eur": 90.0, "status": "delivered"}],
}
REFUNDS: dict[str, str] = {}


def find_customer(email: str) -> dict[str, str]:
    """Look a customer up by e-mail address.

    Args:
        email: The address that the customer has registered.
    """
    return {"customer_id": CUSTOMERS[email]}


def list_orders(customer_id: str) -> list[Order]:
    """List the orders of a customer.

    Args:
        customer_id: The id of the customer.
    """
    return ORDERS[customer_id]


def get_order(order_id: str) -> Order:
    """Get one order.

    Args:
        order_id: The id of the order.
    """
    for orders in ORDERS.values():
        for order in orders:
            if order["order_id"] == order_id:
                return order
    raise LookupError(f"there is no order {order_id}")


def refund_order(order_id: str, reason: str = "") -> dict[str, str]:
    """Refund an order and return the reference of the refund.

    Args:
        order_id: The id of the order.
        reason: Why, in the customer's words.
    """
    order = get_order(order_id)
    REFUNDS[order_id] = f"RF-{order['order_id'][2:]}-{len(REFUNDS) + 1}"
    return {"refund_reference": REFUNDS[order_id]}

"""The entities of the shop: customers with their orders, and products with their stock."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from toolshift.core import seed as seeds


@dataclass(frozen=True, slots=True)
class Names:
    """A generator of names: a pattern over parts, with `extra` only where names run short."""

    pattern: str
    parts: tuple[str, str, str]
    extra: str
    wrap: str = "{}"

    def draw(self, rng: Random, count: int) -> Iterator[str]:
        """`count` names, all different."""
        one, two, three, extra = (p.split() for p in (*self.parts, self.extra))
        plain = len(one) * len(two) * len(three)
        room = plain if 2 * count <= plain else plain * (len(extra) + 1)
        for number in rng.sample(range(room), count):
            rest, a = divmod(number, len(one))
            rest, b = divmod(rest, len(two))
            rest, c = divmod(rest, len(three))
            more = self.wrap.format(extra[rest - 1]) if rest else ""
            yield self.pattern.format(a=one[a], b=two[b], c=three[c], extra=more)


_INITIALS = "B C D F G H J K L M N P Q R S T V W X Y Z"
CUSTOMERS = {
    "train": Names(
        "{a} {extra}{b}{c}",
        (
            "Nora Felix Greta Hugo Clara Simon Edith Martin Paula Walter Agnes Robert Lydia "
            "Oscar Helen Victor",
            "Ash Holm Brad Whit Thorn Lang Marsh Wood Cold Black Fair Stan West Mill",
            "down croft bury ford worth ley field wick",
        ),
        _INITIALS,
        "{}. ",
    ),
    "dev": Names(
        "{a} van {extra}{b}{c}",
        (
            "Anouk Bram Femke Joris Lotte Maarten Saskia Thijs Wouter Yfke Gijs Hanneke Ruben "
            "Floor Daan Katrijn",
            "Berg Dijk Haag Kolen Linde Meer Noord Polder Rijs Steen Veld Zonne Molen Duin",
            "stra mans huis inga sema daal ema voort",
        ),
        "Oud Nieuw Oost Zuid Hoog Laag Groot Klein Over Onder Binnen Buiten Achter Voor Midden "
        "Rond Recht Krom Schoon Vrij Stil",
        "{} ",
    ),
    "test": Names(
        "{a} {extra}{b}-{c}",
        (
            "Amara Chidi Ebele Folami Ikenna Jumoke Kelechi Ngozi Obinna Sade Temitope Uche "
            "Wale Yewande Zainab Dayo",
            "Okoro Adeyi Chukwu Balogun Danjuma Eze Fagbemi Gowon Ibrahim Jakande Lawal Musa "
            "Nwosu Onyema",
            "Bello Kalu Ogun Abiola Umeh Soyin Taiwo Achebe",
        ),
        "Ai Bi Ci Di Ei Fi Gi Hi Ki Li Mi Ni Oi Pi Ri Si Ti Ui Wi Yi Zi",
        "{} ",
    ),
}
PRODUCTS = {
    "train": Names(
        "{a}{b}{extra} {c}",
        (
            "Tor Bel Kin Mar Sol Ven Lum Dra Fen Gal Hex Nor",
            "vel dan ric tos mia lex pod rin sta qua zen wex",
            "Kettle Lamp Chair Blanket Toaster Mirror Basket Pillow Shelf Vase Clock Teapot",
        ),
        "bor cud fip gan hul jem kov lub myn nax pry sig",
    ),
    "dev": Names(
        "{extra}{a} {b} {c}",
        (
            "Amber Cobalt Ivory Moss Slate Russet Indigo Pearl Ochre Plum Teal Walnut",
            "Linen Cotton Felt Canvas Leather Wool Cork Denim Bamboo Suede Rattan Tweed",
            "Apron Satchel Rug Wallet Jacket Hammock Cap Pouch Glove Curtain Mat Belt",
        ),
        "Alpine Baltic Coastal Desert Eastern Fjord Glacier Highland Island Jungle Kalahari "
        "Lowland",
        "{} ",
    ),
    "test": Names(
        "{c} {a}{b}{extra}",
        (
            "Ryo Kaz Hoshi Mizu Tani Yuki Sora Nami Fuji Ama Tetsu Riku",
            "ko mo shi ra tsu ne ba dai gen jo ki ha",
            "Drill Sander Ladder Torch Chisel Trowel Wrench Pump Winch Rasp Mallet Clamp",
        ),
        "chi den ete gyo hei ike jin kon myo nu pei rei",
    ),
}
MAX_ORDERS = 5


@dataclass(frozen=True, eq=False)
class Shop:
    """Two trees that meet in the items of an order: customers over orders, products over bins."""

    seed: int
    customers: dict[str, dict[str, Any]] = field(default_factory=dict)
    orders: dict[str, dict[str, Any]] = field(default_factory=dict)
    products: dict[str, dict[str, Any]] = field(default_factory=dict)
    customer_by_name: dict[str, str] = field(default_factory=dict)
    order_by_parcel: dict[str, str] = field(default_factory=dict)
    sku_by_name: dict[str, str] = field(default_factory=dict)
    ids: dict[str, tuple[str, ...]] = field(default_factory=dict)


def build(seed: int, size: int, pool: str) -> Shop:
    """Generates `size` orders, a customer for every two to five, a product for every five."""
    rng = seeds.rng(seed, "retail", pool, size)
    shop = Shop(seed)
    _stock_up(shop, rng, max(8, size // 5), pool)
    shares = list(_shares(rng, size))
    _sign_up(shop, rng, len(shares), pool)
    orders = zip(
        _ids(rng, "ord", size), _ids(rng, "pcl", size), _ids(rng, "ret", size), strict=True
    )
    for customer, share in zip(shop.customers.values(), shares, strict=True):
        taken = [next(orders) for _ in range(share)]
        for order_id, parcel_no, return_id in taken:
            shop.orders[order_id] = _order(shop, rng, order_id, parcel_no, return_id)
            shop.order_by_parcel[parcel_no] = order_id
        customer["orders"] = tuple(order_id for order_id, _, _ in taken)
    shop.ids["customer"], shop.ids["order"] = tuple(shop.customers), tuple(shop.orders)
    return shop


def _ids(rng: Random, prefix: str, count: int) -> Iterator[str]:
    """Ids with at least five digits, so that they are not guessed from one another."""
    for number in rng.sample(range(10_000, 100_000 + 10 * count), count):
        yield f"{prefix}_{number}"


def _shares(rng: Random, size: int) -> Iterator[int]:
    while size > 0:
        share = min(size, rng.randrange(2, MAX_ORDERS + 1))
        size -= share
        yield share


def _stock_up(shop: Shop, rng: Random, count: int, pool: str) -> None:
    names = PRODUCTS[pool].draw(rng, count)
    for sku, bin_id, name in zip(
        _ids(rng, "sku", count), _ids(rng, "bin", count), names, strict=True
    ):
        shop.products[sku] = {
            "sku": sku,
            "bin_id": bin_id,
            "name": name,
            "price": rng.randrange(8, 400) / 2,
            "weight": rng.randrange(2, 160) / 10,
            "distance": rng.randrange(10, 3000) / 10,
            "units": rng.randrange(24, 80),
        }
        shop.sku_by_name[name.lower()] = sku
    shop.ids["product"] = tuple(shop.products)


def _sign_up(shop: Shop, rng: Random, count: int, pool: str) -> None:
    names = CUSTOMERS[pool].draw(rng, count)
    for customer_id, name in zip(_ids(rng, "cus", count), names, strict=True):
        tier = rng.choice(("basic", "silver", "gold"))
        shop.customers[customer_id] = {"customer_id": customer_id, "name": name, "tier": tier}
        shop.customer_by_name[name.lower()] = customer_id


def _order(
    shop: Shop, rng: Random, order_id: str, parcel_no: str, return_id: str
) -> dict[str, Any]:
    items = tuple(rng.sample(shop.ids["product"], rng.randrange(2, 5)))
    return {
        "order_id": order_id,
        "parcel_no": parcel_no,
        "return_id": return_id,
        "status": "shipped" if rng.random() < 0.25 else "delivered",
        "items": items,
        "total": sum(shop.products[sku]["price"] for sku in items),
    }

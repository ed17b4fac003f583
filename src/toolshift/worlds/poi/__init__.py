"""Points of interest: places in cities, found, compared, visited and booked.

The graph is a star: nearly everything hangs on a place id, which is found by name or by search.
Entities live in `Places`; the tools below are the truth, and `tasks` says what users ask for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Any

from toolshift.core import seed as seeds
from toolshift.core.fact import read_facts
from toolshift.core.tool import Field, Param, ToolFailure
from toolshift.core.world import State, World, declare, plain, quantity, text
from toolshift.worlds.poi.tasks import KINDS

CATEGORIES = ("museum", "cafe", "gallery", "park", "theatre", "market")
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
ORIGINS = ("central station", "the airport", "the harbour")
TIMES = ("09:00", "10:30", "13:15", "15:45", "18:20", "20:10")
# fmt: off
NAMES = {
    "train": (
        ("Amber", "Linden", "Harbor", "Silver", "Mill", "Garden", "Copper", "Willow", "Stone",
         "Bistro", "Delphine", "Grimaldi's", "Old", "Zephyr", "Upper", "Kowalski", "Blue", "Eva's",
         "Thirteenth", "Marzipan", "Juniper", "Rusty", "Nomad", "Vasquez", "Wandering", "Polar"),
        ("House", "Corner", "Court", "Room", "Yard", "Place", "Hall", "Terrace", "Lane", "Dragon",
         "Wharf", "and Sons", "Exchange", "of Wonders", "Parlour", "Umbrella", "Quarter", "Piano",
         "Grotto", "by the Lake", "Whistle", "Foundry", "Kiosk", "Vineyard", "Bazaar", "No. 4"),
    ),
    "dev": (
        ("Quiet", "Painted", "Hollow", "Northern", "Velvet", "Crooked", "Salted", "Humble"),
        ("Lantern", "Fox", "Anchor", "Thistle", "Compass", "Orchard", "Kettle", "Sparrow"),
    ),
    "test": (
        ("Mirabel", "Oskar", "Tamsin", "Ludo", "Ines", "Bertil", "Yara", "Caspian", "Odile"),
        ("& Daughters", "on the Hill", "Brothers", "at Nine", "Unlimited", "Society", "& Moon"),
    ),
}
CITIES = {
    "train": (
        "Aldbury", "Brenton", "Carrow", "Denholm", "Eastmere", "Farley", "Gdelsk", "Hvalvik",
        "Izumara", "Jarcovo", "Kirkhollow", "Lake Orrin", "Mbanza Sul", "Nykobruk", "Oud Reeth",
        "Puerto Claro", "Qasr Amun", "Roquevaire", "Sint Joris", "Tzintlan", "Ulverpool",
        "Vyshgora", "West Pell", "Xochil", "Yarrabee", "Zollingen", "Bergamasco", "Chernaya",
        "Dun Corra", "Fort Hadley", "Guldborg", "Hallow Creek", "Itapora", "New Sefton",
        "Mont Aubrac", "Pinjarra", "Red Deer", "Skarnes", "Taveuni", "Wexcombe", "Orvik", "Zarzal",
    ),
    "dev": ("Vostrand", "Kelmaar", "Luneviq", "Ostrava Bay", "Pellworm", "Quistino"),
    "test": ("San Telvo", "Porto Grisa", "Villa Umbra", "Monte Leda", "Costa Brill", "Rio Tamar"),
}
# fmt: on


@dataclass(frozen=True, eq=False)
class Places:
    """The entities: one dict a place, and the indexes by which the tools find them."""

    seed: int
    cities: tuple[str, ...]
    places: dict[str, dict[str, Any]]
    by_name: dict[tuple[str, str], str] = field(default_factory=dict)
    by_kind: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """Of all places."""
        return tuple(self.places)

    @cached_property
    def groups(self) -> tuple[tuple[str, str], ...]:
        """The cities, each with the categories that it has places of."""
        return tuple(sorted(self.by_kind))


def named(rng: Random, pool: str) -> str:
    """A name of a place in a pool."""
    first, second = NAMES[pool]
    return f"{rng.choice(first)} {rng.choice(second)}"


def build(
    seed: int,
    size: int,
    pool: str,
    named: Callable[[Random, str], str] = named,
    stems: Mapping[str, tuple[str, ...]] = CITIES,
) -> Places:
    """Generates places: at most five of a category in a city, names unique in their city.

    `named` draws the name of a place in a pool, and `stems` has the cities of each.
    """
    rng = seeds.rng(seed, "poi", pool, size)
    groups = max(1, -(-size // (4 * len(CATEGORIES))))
    cities = tuple(_city(stems[pool], number) for number in range(groups))
    world = Places(seeds.derive(seed, "poi", pool, size), cities, {})
    numbers = rng.sample(range(1000, 1000 + 10 * size), size)
    for index, number in enumerate(numbers):
        city = cities[index % groups]
        category = CATEGORIES[index // groups % len(CATEGORIES)]
        name = _free_name(rng, pool, city, world.by_name, named)
        place_id = f"PL-{number}"
        world.places[place_id] = _place(rng, place_id, name, city, category)
        world.by_name[name.lower(), city.lower()] = place_id
        world.by_kind.setdefault((city.lower(), category), []).append(place_id)
    return world


def _city(stems: tuple[str, ...], number: int) -> str:
    lap, place = divmod(number, len(stems))
    return stems[place] if lap == 0 else f"{stems[place]} {lap + 1}"


def _free_name(
    rng: Random,
    pool: str,
    city: str,
    taken: dict[tuple[str, str], str],
    named: Callable[[Random, str], str],
) -> str:
    while True:
        name = named(rng, pool)
        if (name.lower(), city.lower()) not in taken:
            return name


def _place(rng: Random, place_id: str, name: str, city: str, category: str) -> dict[str, Any]:
    return {
        "place_id": place_id,
        "name": name,
        "city": city,
        "category": category,
        "rating": rng.randrange(10, 50) / 10,
        "price": rng.randrange(8, 160) / 2,
        "minutes": {origin: rng.randrange(5, 90) for origin in ORIGINS},
        "distance": {origin: rng.randrange(4, 300) / 10 for origin in ORIGINS},
        "score": rng.randrange(40, 100),
        "times": sorted(rng.sample(TIMES, 3)),
        "alert": rng.choice(("low", "high")),
    }


# -- what the tools do -------------------------------------------------------------------------


def _place_of(state: State, arguments: dict[str, Any]) -> dict[str, Any]:
    place: dict[str, Any] | None = state.db.places.get(arguments["place_id"])
    if place is None:
        raise ToolFailure("not_found", f"There is no place with id {arguments['place_id']}.")
    return place


def search_places(state: State, arguments: dict[str, Any]) -> list[dict[str, Any]]:
    key = (arguments["city"].lower(), arguments["category"])
    places = (state.db.places[place_id] for place_id in state.db.by_kind.get(key, ()))
    return [{k: place[k] for k in ("place_id", "name", "rating")} for place in places]


def find_place(state: State, arguments: dict[str, Any]) -> dict[str, Any]:
    name, city = arguments["name"], arguments["city"]
    place_id = state.db.by_name.get((name.lower(), city.lower()))
    if place_id is None:
        raise ToolFailure("not_found", f"There is no place named {name} in {city}.")
    category = state.db.places[place_id]["category"]
    return {"place_id": place_id, "category": category, "map_ref": state.code("map", place_id)}


def get_details(state: State, arguments: dict[str, Any]) -> dict[str, Any]:
    place = _place_of(state, arguments)
    place_id = place["place_id"]
    return {
        "price_eur": place["price"],
        "listing_ref": state.code("listing", place_id),
        "entry_code": state.code("entry", place_id),
        "cache_ref": state.code("cache", place_id),
    }


def get_hours(state: State, arguments: dict[str, Any]) -> dict[str, Any]:
    place_id, day = _place_of(state, arguments)["place_id"], arguments["day"]
    opens = 8 + seeds.derive(state.db.seed, place_id, day) % 4
    return {
        "opens": f"{opens:02d}:00",
        "hours_ref": state.code("hours", place_id, day),
        "season_ref": state.code("season", place_id),
    }


def get_reviews(state: State, arguments: dict[str, Any]) -> dict[str, Any]:
    place = _place_of(state, arguments)
    return {
        "score": place["score"],
        "review_ref": state.code("review", place["place_id"]),
        "panel_ref": state.code("panel", place["place_id"]),
    }


def get_route(state: State, arguments: dict[str, Any]) -> dict[str, Any]:
    place, origin = _place_of(state, arguments), arguments["origin"].lower()
    if origin not in place["distance"]:
        raise ToolFailure("not_found", f"There is no start named {arguments['origin']}.")
    return {
        "distance_km": place["distance"][origin],
        "duration_min": place["minutes"][origin],
        "route_ref": state.code("route", place["place_id"], origin),
        "tile_ref": state.code("tile", place["place_id"], origin),
    }


def check_alert(state: State, arguments: dict[str, Any]) -> dict[str, Any]:
    place = _place_of(state, arguments)
    return {"alert": place["alert"], "alert_ref": state.code("alert", place["place_id"])}


def list_slots(state: State, arguments: dict[str, Any]) -> list[dict[str, Any]]:
    place = _place_of(state, arguments)
    place_id = place["place_id"]
    return [
        {"slot_id": f"S{seeds.derive(state.db.seed, place_id, time) % 9000 + 1000}", "time": time}
        for time in place["times"]
    ]


def book_slot(state: State, arguments: dict[str, Any]) -> dict[str, Any]:
    place = _place_of(state, arguments)
    slot_id, party = arguments["slot_id"], arguments["party_size"]
    if all(slot["slot_id"] != slot_id for slot in list_slots(state, arguments)):
        raise ToolFailure("not_found", f"{place['place_id']} has no slot {slot_id}.")
    state.record("book_slot", place["place_id"], slot_id, party)
    return {
        "booking_ref": state.code("booking", place["place_id"], slot_id, party),
        "invoice_ref": state.code("invoice", place["place_id"], slot_id, party),
    }


def open_visit(state: State, arguments: dict[str, Any]) -> dict[str, Any]:
    place_id = _place_of(state, arguments)["place_id"]
    number = seeds.derive(state.db.seed, "visit", place_id) % 90000 + 10000
    return {"visit_id": f"V-{number}", "visit_ref": state.code("visit", place_id)}


def add_stop(state: State, arguments: dict[str, Any]) -> dict[str, Any]:
    place_id, visit_id = _place_of(state, arguments)["place_id"], arguments["visit_id"]
    if open_visit(state, arguments)["visit_id"] != visit_id:
        raise ToolFailure("not_found", f"There is no visit {visit_id} for {place_id}.")
    state.record("add_stop", visit_id, place_id)
    return {
        "stop_ref": state.code("stop", visit_id, place_id),
        "plan_ref": state.code("plan", visit_id, place_id),
    }


def file_budget(state: State, arguments: dict[str, Any]) -> dict[str, Any]:
    city, total = arguments["city"].lower(), float(arguments["total_eur"])
    state.record("file_budget", city, total)
    return {"budget_ref": state.code("budget", city, total), "form_ref": state.code("form", city)}


# -- the tools as data -------------------------------------------------------------------------


CITY = Param("city", "city", text("Name of the city."))
PLACE = Param("place_id", "place_id", text("Identifier of the place.", pattern="^[A-Z]{2}-"))
PLACE_ID = Field(("place_id",), "place_id")


_TOOLS = (
    declare(
        search_places,
        "Search the places of one category in a city",
        (CITY, Param("category", "category", text("Kind of place.", enum=list(CATEGORIES)))),
        (PLACE_ID, Field(("name",), "place_name"), quantity(("rating",), "rating")),
        many=True,
    ),
    declare(
        find_place,
        "Find the id of a place from its name and city",
        (Param("name", "place_name", text("Name of the place.")), CITY),
        (PLACE_ID, Field(("category",), "category"), plain("map_ref")),
    ),
    declare(
        get_details,
        "Price, listing reference and entry code of a place",
        (PLACE,),
        (
            quantity(("price_eur",), "price", unit="eur"),
            plain("listing_ref"),
            plain("entry_code"),
            plain("cache_ref"),
        ),
    ),
    declare(
        get_hours,
        "Opening hours of a place on a weekday",
        (PLACE, Param("day", "day", text("Day of the week.", enum=list(WEEKDAYS)))),
        (Field(("opens",), "opens"), plain("hours_ref"), plain("season_ref")),
    ),
    declare(
        get_reviews,
        "Review score of a place",
        (PLACE,),
        (Field(("score",), "score", "integer"), plain("review_ref"), plain("panel_ref")),
    ),
    declare(
        get_route,
        "Distance and travel time to a place from a start",
        (PLACE, Param("origin", "origin", text("Where the route starts."))),
        (
            quantity(("distance_km",), "distance", unit="km"),
            Field(("duration_min",), "duration", "integer", unit="min"),
            plain("route_ref"),
            plain("tile_ref"),
        ),
    ),
    declare(
        check_alert,
        "Crowd alert level of a place",
        (PLACE,),
        (Field(("alert",), "alert"), plain("alert_ref")),
    ),
    declare(
        list_slots,
        "Free time slots of a place",
        (PLACE,),
        (Field(("slot_id",), "slot_id"), Field(("time",), "slot_time")),
        many=True,
    ),
    declare(
        book_slot,
        "Book a time slot at a place for a number of people",
        (
            PLACE,
            Param("slot_id", "slot_id", text("Identifier of the slot.")),
            Param(
                "party_size",
                "party_size",
                {"type": "integer", "minimum": 1, "description": "Number of people."},
            ),
        ),
        (plain("booking_ref"), plain("invoice_ref")),
        effect="write",
    ),
    declare(
        open_visit,
        "Open a visit plan for a place",
        (PLACE,),
        (Field(("visit_id",), "visit_id"), plain("visit_ref")),
    ),
    declare(
        add_stop,
        "Add a place as a stop to a visit plan",
        (Param("visit_id", "visit_id", text("Identifier of the visit plan.")), PLACE),
        (plain("stop_ref"), plain("plan_ref")),
        effect="write",
    ),
    declare(
        file_budget,
        "File the total cost planned for a city",
        (
            CITY,
            Param(
                "total_eur",
                "budget_total",
                {"type": "number", "minimum": 0, "description": "Total in euros."},
            ),
        ),
        (plain("budget_ref"), plain("form_ref")),
        effect="write",
    ),
)


class Poi(World):
    """The training domain of the research: points of interest."""

    name = "poi"
    system = (
        "You help travellers with places in cities. Use the tools; answer with the exact "
        "reference that is asked for."
    )
    facts = read_facts(__file__)
    tools = tuple(tool for tool, _ in _TOOLS)
    actions = {tool.name: action for tool, action in _TOOLS}
    kinds = {kind.name: kind for kind in KINDS}

    def build(self, seed: int, size: int, pool: str) -> Places:
        return build(seed, size, pool)


WORLD = Poi()

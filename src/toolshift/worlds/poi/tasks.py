"""What users ask about points of interest: eleven kinds of task; `wording.toml` phrases them."""

from __future__ import annotations

from random import Random
from typing import Any

from toolshift.core.fact import Goal
from toolshift.core.solver import Impossible, Known, Solve, Solver
from toolshift.core.world import TaskKind, query_fact, read_requests

# -- goals -------------------------------------------------------------------------------------


def _some_place(db: Any, rng: Random) -> Any:
    return db.places[rng.choice(db.ids)]


def _named(place: dict[str, Any]) -> Goal:
    return {"place_name": place["name"], "city": place["city"]}


def draw_named(db: Any, rng: Random) -> Goal:
    return _named(_some_place(db, rng))


def draw_hours(db: Any, rng: Random) -> Goal:
    days = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
    return {**draw_named(db, rng), "day": rng.choice(days)}


def draw_route(db: Any, rng: Random) -> Goal:
    place = _some_place(db, rng)
    return {**_named(place), "origin": rng.choice(sorted(place["distance"]))}


def draw_booking(db: Any, rng: Random) -> Goal:
    place = _some_place(db, rng)
    time = rng.choice(place["times"])
    return {**_named(place), "slot_time": time, "party_size": rng.randrange(2, 9)}


def _group(db: Any, rng: Random, least: int) -> tuple[Goal, list[Any]] | None:
    city, category = rng.choice(db.groups)
    places = [db.places[place_id] for place_id in db.by_kind[city, category]]
    if len(places) < least:
        return None
    return {"city": places[0]["city"], "category": category}, places


def draw_group_by(key: str) -> Any:
    """A draw of a city and category in which one place is the extreme by `key`."""

    def draw(db: Any, rng: Random) -> Goal | None:
        group = _group(db, rng, 2)
        if group is None or len({place[key] for place in group[1]}) < len(group[1]):
            return None
        return group[0]

    return draw


def draw_nearer(db: Any, rng: Random) -> Goal | None:
    group = _group(db, rng, 2)
    if group is None:
        return None
    one, other = rng.sample(group[1], 2)
    origin = rng.choice(sorted(one["distance"]))
    if one["distance"][origin] == other["distance"][origin]:
        return None
    return {**_named(one), "other_name": other["name"], "origin": origin}


# -- solutions ---------------------------------------------------------------------------------


def solve_best_rated(solver: Solver, env: Known) -> str:
    best = max(solver.records("place_id", env), key=lambda place: place["rating"])
    return str(best["entry_code"])


def solve_cheapest(solver: Solver, env: Known) -> str:
    best = min(solver.records("place_id", env), key=lambda place: place["price"])
    return str(best["listing_ref"])


def solve_budget(solver: Solver, env: Known) -> str:
    total = sum(place["price"] for place in solver.records("place_id", env))
    return str(env.about(budget_total=round(total, 2))["budget_ref"])


def solve_alert(solver: Solver, env: Known) -> str:
    return str(env["review_ref"] if env["alert"] == "high" else env["listing_ref"])


def solve_booking(solver: Solver, env: Known) -> str:
    wanted = solver.given("slot_time")
    for slot in solver.records("slot_id", env):
        if slot["slot_time"] == wanted:
            return str(slot["booking_ref"])
    raise Impossible("not_found")


def solve_nearer(solver: Solver, env: Known) -> str:
    one = env.about(place_name=solver.given("place_name"))
    other = env.about(place_name=solver.given("other_name"))
    return str(min(one, other, key=lambda place: place["distance"])["route_ref"])


SOLUTIONS: dict[str, Solve] = {
    "listing": query_fact("listing_ref"),
    "hours": query_fact("hours_ref"),
    "route": query_fact("route_ref"),
    "best_rated": solve_best_rated,
    "cheapest": solve_cheapest,
    "budget": solve_budget,
    "alert": solve_alert,
    "booking": solve_booking,
    "visit": query_fact("stop_ref"),
    "nearer": solve_nearer,
    "reviews": query_fact("review_ref"),
}
ASK = read_requests(__file__, SOLUTIONS)
KINDS = (
    TaskKind("listing", (ASK["listing"],), draw_named),
    TaskKind("hours", (ASK["hours"],), draw_hours),
    TaskKind("route", (ASK["route"],), draw_route),
    TaskKind("best_rated", (ASK["best_rated"],), draw_group_by("rating")),
    TaskKind("cheapest", (ASK["cheapest"],), draw_group_by("price")),
    TaskKind("budget", (ASK["budget"],), draw_group_by("price")),
    TaskKind("alert", (ASK["alert"],), draw_named),
    TaskKind("booking", (ASK["booking"],), draw_booking),
    TaskKind("visit", (ASK["visit"],), draw_named),
    TaskKind("nearer", (ASK["nearer"],), draw_nearer),
    TaskKind("look_then_book", (ASK["reviews"], ASK["booking"]), draw_booking),
)

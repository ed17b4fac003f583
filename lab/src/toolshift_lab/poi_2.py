"""Points of interest with version 2 of the pools: names of the same forms in all of them.

In version 1 the places of the test pool have endings ("at Nine", "on the Hill") of which training
has none, so what a model loses on them is lost in clean scenes already. Here training, dev and test
share every form, in the same shares; their words are different ones. Tools, kinds of task and
wordings are those of `poi`.
"""

from __future__ import annotations

from random import Random

from toolshift.worlds.poi import CITIES, Places, Poi, build
from toolshift.worlds.registry import register

PLAIN = "{first} {second}"
OTHER = (
    "{first}'s {second}",
    "{first} & {second}",
    "{first} and {second}",
    "The {first} {second}",
    "{first} on the {second}",
    "{first} by the {second}",
    "{first} at {number}",
    "{first} No. {digit}",
)
FORMS = (*4 * (PLAIN,), *OTHER)
"""The forms of names, each drawn equally often: a third are plain, as most of version 1 are."""
# fmt: off
WORDS: dict[str, dict[str, tuple[str, ...]]] = {
    "train": {
        "first": (
            "Amber", "Linden", "Harbor", "Silver", "Mill", "Garden", "Copper", "Willow", "Stone",
            "Bistro", "Delphine", "Grimaldi", "Old", "Zephyr", "Upper", "Kowalski", "Blue", "Eva",
            "Thirteenth", "Marzipan", "Juniper", "Rusty", "Nomad", "Vasquez", "Wandering", "Polar",
        ),
        "second": (
            "House", "Corner", "Court", "Room", "Yard", "Place", "Hall", "Terrace", "Lane",
            "Dragon", "Wharf", "Lake", "Exchange", "Wonder", "Parlour", "Umbrella", "Quarter",
            "Piano", "Grotto", "Bridge", "Whistle", "Foundry", "Kiosk", "Vineyard", "Bazaar",
        ),
        "number": ("One", "Two", "Three", "Five", "Six", "Eight", "Ten", "Eleven", "Twelve"),
    },
    "dev": {
        "first": ("Quiet", "Painted", "Hollow", "Northern", "Velvet", "Crooked", "Salted", "Humble",
                  "Ottilie", "Ferran"),
        "second": ("Lantern", "Fox", "Anchor", "Thistle", "Compass", "Orchard", "Kettle", "Sparrow",
                   "Meadow", "Quay"),
        "number": ("Four", "Seven", "Fifteen"),
    },
    "test": {
        "first": ("Mirabel", "Oskar", "Tamsin", "Ludo", "Ines", "Bertil", "Yara", "Caspian",
                  "Odile", "Scarlet"),
        "second": ("Society", "Moon", "Hill", "Arcade", "Pavilion", "Heron", "Basin", "Chapel",
                   "Tavern", "Gate"),
        "number": ("Nine", "Fourteen", "Twenty"),
    },
}
STEMS = {
    "train": CITIES["train"],
    "dev": ("Ostrava Bay", "Vostrand", "Kelmaar", "Luneviq", "Quistino"),
    "test": ("Porto Grisa", "Telvo", "Umbra", "Costabrill", "Tamarin"),
}
"""Cities: of each pool a quarter or a fifth have two words, and about half have a number."""
# fmt: on


def named(rng: Random, pool: str) -> str:
    """A name of a place in a pool."""
    words = WORDS[pool]
    drawn = {part: rng.choice(words[part]) for part in ("first", "second", "number")}
    return rng.choice(FORMS).format(**drawn, digit=rng.randrange(2, 10))


def form_of(name: str) -> str:
    """Whether a name is "plain", which is two words and nothing else, or of an "other" form."""
    first, _, rest = name.partition(" ")
    plain = " " not in rest and first.isalpha() and rest.isalpha() and first != "The"
    return "plain" if plain else "other"


class Poi2(Poi):
    """The world `poi` with names of the same forms in all pools."""

    name = "poi-2"

    def build(self, seed: int, size: int, pool: str) -> Places:
        """Generates places as `poi` does, with these names."""
        return build(seed, size, pool, named, STEMS)


WORLD = Poi2()
register(WORLD)

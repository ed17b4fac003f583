"""The entities of the medical world: patients with their records, clinics with their specialists.

Nothing hangs in one table. A `Series` numbers the entities of a kind one to one, so an id is found
from a number and back without an index; what a chart holds is derived when it is opened.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from itertools import product
from math import gcd

from toolshift.core import seed as seeds
from toolshift.core.tables import table_beside
from toolshift.core.text import is_count

SPECIALTIES = (
    "cardiology",
    "dermatology",
    "endocrinology",
    "neurology",
    "orthopaedics",
    "urology",
)
TESTS = ("albumin", "creatinine", "ferritin", "glucose", "magnesium", "potassium", "troponin")
DOSES = tuple(range(40, 405, 5))  # above every month and day, so no date can state a dose
MOST = 5  # records in any list
FIRST_DAY, DAYS = date(1935, 1, 1).toordinal(), 25_500
NAMES = table_beside(__file__, "names.toml")


@dataclass(frozen=True, slots=True)
class Series:
    """The ids of one kind: a seeded walk through all numbers of some digits, and back."""

    prefix: str
    first: int
    span: int
    step: int
    offset: int

    @classmethod
    def of(cls, seed: int, prefix: str, digits: int) -> Series:
        rng = seeds.rng(seed, "series", prefix)
        first = 10 ** (digits - 1)
        span = 9 * first
        step = rng.randrange(span // 3, span)
        while gcd(step, span) > 1:
            step += 1
        return cls(prefix, first, span, step, rng.randrange(span))

    def id(self, number: int) -> str:
        """The id of the entity of this number."""
        return f"{self.prefix}{self.first + (number * self.step + self.offset) % self.span}"

    def number(self, name: str) -> int:
        """The number of the entity of this id; -1 where it is not an id of the series."""
        digits = name.removeprefix(self.prefix)
        if name == digits or not is_count(digits):
            return -1
        place = int(digits) - self.first
        if not 0 <= place < self.span:
            return -1
        return (place - self.offset) * pow(self.step, -1, self.span) % self.span


@dataclass(frozen=True, slots=True)
class Medication:
    """A drug that a patient takes."""

    name: str
    dose: int


@dataclass(frozen=True, slots=True)
class Panel:
    """A lab panel of a patient."""

    panel_id: str
    test: str
    fee: float


@dataclass(frozen=True, slots=True)
class Patient:
    """A person, and all that the layers below the person hold."""

    name: str
    birth_date: str
    patient_id: str
    chart_id: str
    policy_id: str
    weight: float
    copay: float
    medications: tuple[Medication, ...]
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class Provider:
    """A specialist: one of each specialty in every clinic."""

    provider_id: str
    specialty: str
    clinic: str
    wait: int


@dataclass(frozen=True, eq=False)
class Hospital:
    """The database: people by number, their ids as series, and the indexes by name."""

    seed: int
    people: tuple[tuple[str, str], ...]
    clinics: tuple[str, ...]
    drugs: tuple[str, ...]
    by_name: dict[tuple[str, str], int] = field(init=False)
    by_post: dict[tuple[str, str], int] = field(init=False)
    patients: Series = field(init=False)
    charts: Series = field(init=False)
    policies: Series = field(init=False)
    panels: Series = field(init=False)
    providers: Series = field(init=False)

    def __post_init__(self) -> None:
        posts = product(self.clinics, SPECIALTIES)
        derived = {
            "by_name": {(name.lower(), born): n for n, (name, born) in enumerate(self.people)},
            "by_post": {(what, where.lower()): n for n, (where, what) in enumerate(posts)},
            "patients": Series.of(self.seed, "MRN", 6),
            "charts": Series.of(self.seed, "CHT", 7),
            "policies": Series.of(self.seed, "HP", 8),
            "panels": Series.of(self.seed, "LAB", 7),
            "providers": Series.of(self.seed, "DR", 5),
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    def patient(self, number: int) -> Patient:
        """The patient of this number, with the chart worked out."""
        rng = seeds.rng(self.seed, "patient", number)
        drugs = rng.sample(self.drugs, rng.randrange(2, MOST + 1))
        tests = rng.sample(TESTS, rng.randrange(2, MOST + 1))
        return Patient(
            *self.people[number],
            self.patients.id(number),
            self.charts.id(number),
            self.policies.id(number),
            weight=rng.randrange(421, 1200) / 10,
            copay=rng.randrange(10, 120) / 2,
            medications=tuple(map(Medication, drugs, rng.sample(DOSES, len(drugs)))),
            panels=tuple(
                Panel(self.panels.id(number * MOST + place), test, rng.randrange(16, 240) / 2)
                for place, test in enumerate(tests)
            ),
        )

    def provider(self, number: int) -> Provider:
        """The specialist of this number."""
        place, what = divmod(number, len(SPECIALTIES))
        wait = seeds.derive(self.seed, "wait", number) % 171 + 10
        return Provider(self.providers.id(number), SPECIALTIES[what], self.clinics[place], wait)


def build(seed: int, size: int, pool: str) -> Hospital:
    """Generates `size` patients, and a clinic for every twenty as far as the names go."""
    own = seeds.derive(seed, "medical", pool, size)  # so that pools share no ids and no codes
    clinics = [" ".join(pair) for pair in product(*NAMES[pool]["clinics"])]
    seeds.rng(own, "clinics").shuffle(clinics)
    drugs = tuple("".join(pair) for pair in product(*NAMES[pool]["drugs"]))
    return Hospital(own, _people(own, size, pool), tuple(clinics[: max(4, size // 20)]), drugs)


def _people(seed: int, size: int, pool: str) -> tuple[tuple[str, str], ...]:
    """Names and birth dates: no name twice in a lap, and no birthday in two laps."""
    parts = (NAMES[pool][part] for part in ("given", "stems", "endings"))
    names = [f"{given} {stem}{ending}" for given, stem, ending in product(*parts)]
    seeds.rng(seed, "names").shuffle(names)
    laps = -(-size // len(names))
    people = []
    for number in range(size):
        lap, place = divmod(number, len(names))
        draw = seeds.derive(seed, "birth", number) % (DAYS // laps)
        born = date.fromordinal(FIRST_DAY + draw * laps + lap)
        people.append((names[place], born.isoformat()))
    return tuple(people)

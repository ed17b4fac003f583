"""A plan that is played until it decides: which episodes come next, and when it is enough.

Claims are made of *families* of scenes, such as those of one shift. Each task of a family has
pairs: an episode before (clean, or a baseline's) and one after. Tasks come in an order that the
plan decides, all kinds in turn, and are asked in rounds; a round is finished whatever comes of it,
so that quick episodes do not count before slow ones, and only then is it read. So the next round
follows from what is stored, whatever was in flight at once, and a resumed run goes on as it was.

What failed before is not asked after: at worst it fails again, at best it is a gain. Both limits
are counted, and it is asked where a claim depends on which it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import ceil, inf
from typing import Literal, NamedTuple

from toolshift.core import seed as seeds
from toolshift.core.errors import UsageError
from toolshift.runs.cell import Cell
from toolshift.runs.design import Budget, Design, read_budget
from toolshift.runs.plan import Plan
from toolshift.runs.run_folder import Record

ROUNDS = 10
"""A family is read after each of so many parts of its tasks."""
LEAST = 2
"""Tasks of a family in a round, at least."""
USUAL_CALLS = 5.0
"""Calls of an episode, while none has been seen."""


class Outcome(NamedTuple):
    """What an episode says, from `low` to `high` (void ones say nothing), and what it took."""

    low: float
    high: float
    calls: int = 0
    dollars: float = 0.0


UNKNOWN = Outcome(0.0, 1.0)


def outcome_of(record: Record) -> Outcome:
    """The outcome of a finished episode."""
    passed = float(record.grade.passed)
    limits = (0.0, 1.0) if record.grade.void else (passed, passed)
    usage = record.usage
    calls = usage.requests
    if not (usage.requests or usage.recalled):
        calls = len({step.turn for step in record.steps if not step.recalled})
    return Outcome(*limits, calls, usage.cost)


class Pair(NamedTuple):
    """What is compared in a task: an episode of this run, with one of it or a known outcome."""

    after: Cell
    before: Cell | Outcome


@dataclass(frozen=True, eq=False)
class Family:
    """The scenes of a claim, by task, in the order in which tasks are asked."""

    label: str
    tasks: tuple[tuple[Pair, ...], ...]


class Changes(NamedTuple):
    """The changes of the first tasks of a family, after minus before.

    Attributes:
        lows: the least that each can be.
        highs: the greatest.
        likely: as the least, but where it is not known whether a task passed before.
        skipped: what was not asked, because it failed before.
        passed: of each task the share that passed before.
    """

    lows: list[float]
    highs: list[float]
    likely: list[float]
    skipped: list[Cell]
    passed: list[float]


Verdict = Literal["breaks", "holds", "open"]
Judge = Callable[[Family, Sequence[float], Sequence[float], bool], Verdict]
ToGo = Callable[[Family, Sequence[float], bool], int | None]


@dataclass(frozen=True)
class Claims:
    """What a run is to decide, and the statistics that say whether it is.

    Attributes:
        design: for the manifest.
        families: of a plan.
        verdict: of a family, from the limits of its changes: "breaks", "holds" or "open"; the last
            argument says that its tasks are a list.
        to_go: about how many more tasks would decide; None where all that are left would not.
        ends_at_break: one family that breaks ends all.
        parts: of the tasks of a family, each of which is a round.
    """

    design: Design
    families: Callable[[Plan], Sequence[Family]]
    verdict: Judge
    to_go: ToGo
    ends_at_break: bool = False
    parts: int = ROUNDS


def can_hold(claims: Claims, plan: Plan) -> bool:
    """Whether every family has tasks enough to hold, if none of them changes."""
    for family in claims.families(plan):
        kept = [0.0] * len(family.tasks)
        if claims.verdict(family, kept, kept, False) != "holds":
            return False
    return True


def in_order(tasks: Iterable[Cell], first: Callable[[Cell], bool] | None = None) -> list[str]:
    """The lineages of tasks, each once, in the order in which they are asked.

    Each turn has one task of every kind, the kinds in an order of that turn: by chance, but the
    same for every run of the plan. Those that are `first` come before the others.
    """
    kinds: dict[tuple[str, str], dict[str, bool]] = {}
    for cell in tasks:
        of_kind = kinds.setdefault((cell.world, cell.kind), {})
        if not of_kind.get(cell.lineage):
            of_kind[cell.lineage] = first is None or first(cell)
    places = []
    for kind, lineages in kinds.items():
        drawn = sorted(lineages, key=lambda name: seeds.derive_once("order of asking", name))
        for early in (True, False):
            those = [name for name in drawn if lineages[name] == early]
            places += [
                (not early, turn, seeds.derive_once("turn", turn, *kind), name)
                for turn, name in enumerate(those)
            ]
    return [name for *_, name in sorted(places)]


def changes(family: Family, known: Mapping[str, Outcome]) -> Changes:
    """The changes of the tasks of a family up to the first that is not yet asked."""
    found = Changes([], [], [], [], [])
    for pairs in family.tasks:
        lows, highs, likely, skipped, passed = [], [], [], [], []
        for pair in pairs:
            before = _before(pair, known)
            after = known.get(name_of(pair.after))
            if before is None or (after is None and before.low):
                return found
            if after is None and not before.high:
                skipped.append(pair.after)
            first, last = (after or UNKNOWN)[:2]
            lows.append(first - before.high)
            highs.append(last - before.low)
            likely.append(first - before.low)
            passed.append(before.low)
        found.lows.append(sum(lows) / len(lows))
        found.highs.append(sum(highs) / len(highs))
        found.likely.append(sum(likely) / len(likely))
        found.skipped.extend(skipped)
        found.passed.append(sum(passed) / len(passed))
    return found


def _before(pair: Pair, known: Mapping[str, Outcome]) -> Outcome | None:
    return known.get(name_of(pair.before)) if isinstance(pair.before, Cell) else pair.before


@lru_cache(maxsize=2**16)
def name_of(cell: Cell) -> str:
    """The id of a cell, which takes a while to make."""
    return cell.id


@dataclass
class Course:
    """The rounds of one agent through a plan.

    Attributes:
        known: outcomes by the ids of cells, those of earlier processes too; who plays a round adds
            what came of it.
        listed: the tasks are a list, and asking again would bring the same.
        share: of the budget, where several agents have one.
        clock: seconds.
        spent_out: the budget ended it.
    """

    claims: Claims
    families: Sequence[Family]
    known: Mapping[str, Outcome]
    listed: bool = False
    share: float = 1.0
    clock: Callable[[], float] = time.monotonic
    spent_out: bool = False
    _seen: dict[str, Outcome] = field(default_factory=dict)

    def __post_init__(self) -> None:
        budget = self.claims.design.budget
        self._budget: Budget | None = read_budget(budget) if budget else None
        self._begun = self.clock()

    def rounds(self) -> Iterator[list[Cell]]:
        """What is to be played next, until all is decided or nothing more can be.

        A part that is played already is given as well, so that each round follows from those
        before it alone.
        """
        while going := self._open():
            chosen = self._chosen(going)
            if not chosen:
                self.spent_out = True
                return
            yield from self._ask(p.before for p in chosen if isinstance(p.before, Cell))
            passed = [p.after for p in chosen if (b := _before(p, self._seen)) and b.low]
            yield from self._ask(passed)
            for family in going:
                skipped = self._deciding(family)
                yield from self._ask(skipped)

    def _ask(self, cells: Iterable[Cell]) -> Iterator[list[Cell]]:
        """Cells that were not asked yet, as one part."""
        part = {name_of(cell): cell for cell in cells}
        part = {name: cell for name, cell in part.items() if name not in self._seen}
        if part:
            yield list(part.values())
            self._seen.update((name, self.known[name]) for name in part)

    def _open(self) -> dict[Family, int]:
        """The families that are worth going on with, and how many more tasks they may take."""
        found = {}
        for family in self.families:
            seen = changes(family, self._seen)
            verdict = self.claims.verdict(family, seen.lows, seen.highs, self.listed)
            if verdict == "breaks" and self.claims.ends_at_break:
                return {}
            if verdict != "open" or len(seen.lows) == len(family.tasks):
                continue
            more = self.claims.to_go(family, seen.likely, self.listed)
            if more is not None:
                found[family] = more
        return found

    def _deciding(self, family: Family) -> list[Cell]:
        """What failed before and was not asked after, where a verdict may depend on it."""
        seen = changes(family, self._seen)
        if not seen.skipped:
            return []
        verdict = self.claims.verdict
        if verdict(family, seen.lows, seen.highs, self.listed) != "open":
            return []
        if len(seen.skipped) > self._room():
            return []
        worst = verdict(family, seen.lows, seen.likely, self.listed)
        best = verdict(family, seen.highs, seen.highs, self.listed)
        return seen.skipped if worst == "breaks" or best == "holds" else []

    def _chosen(self, going: Mapping[Family, int]) -> list[Pair]:
        """The pairs of the next round; with a budget those first that need the fewest tasks."""
        room = self._room()
        families = list(going) if self._budget is None else sorted(going, key=lambda f: going[f])
        chosen: list[Pair] = []
        taken: set[str] = set()
        promised = 0.0
        for family in families:
            at = len(changes(family, self._seen).lows)
            size = sum(map(len, family.tasks)) / len(family.tasks)
            if promised and promised + going[family] * size > room:
                break  # the calls that would decide it are not there
            promised += going[family] * size
            step = max(LEAST, ceil(len(family.tasks) / self.claims.parts))
            for pairs in family.tasks[at : at + step]:
                new = self._unseen(pairs) - taken
                if len(taken) + len(new) > room:
                    return chosen
                taken |= new
                chosen += pairs
        return chosen

    def _unseen(self, pairs: Iterable[Pair]) -> set[str]:
        """The ids of episodes that pairs may take."""
        names = {name_of(pair.after) for pair in pairs}
        names |= {name_of(pair.before) for pair in pairs if isinstance(pair.before, Cell)}
        return names - self._seen.keys()

    def _room(self) -> float:
        """How many episodes the budget still has room for."""
        if self._budget is None:
            return inf
        amount = self._budget.amount * self.share
        if self._budget.unit == "min":
            return inf if self.clock() - self._begun < 60 * amount else 0.0
        played = len(self._seen)
        calls = sum(one.calls for one in self._seen.values())
        spent = float(calls)
        usual = USUAL_CALLS
        if self._budget.unit == "usd":
            spent, usual = sum(one.dollars for one in self._seen.values()), 0.0
            if calls and not spent:
                raise UsageError(
                    "--budget in usd: the price of the agent is not known: give --price-in and "
                    "--price-out, or give the budget in calls"
                )
        each = spent / played if played else usual
        return max(0.0, (amount - spent) / each) if each else inf

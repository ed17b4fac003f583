"""What the interaction shifts share: the oracle's calls, their costs, and a pool's wording."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Any, TypeVar

from toolshift.core.render import facts
from toolshift.core.scene import Scene
from toolshift.core.shift import NotApplicable
from toolshift.core.solver import MAX_ATTEMPTS
from toolshift.core.step import Step
from toolshift.core.tables import table_beside
from toolshift.core.tool import Result, Tool

T = TypeVar("T")
MAX_CALLS = 20
"""As many calls as the oracle may need in a shifted scene, of the 24 that an agent has."""

TABLES: dict[str, Any] = table_beside(__file__, "observation.toml")


@dataclass(frozen=True)
class Play:
    """One call of the oracle: its result, its run of calls joined by hints, what came before.

    `before` is the number of true calls that had succeeded.
    """

    step: Step
    tool: Tool
    result: Result
    run: int
    before: int

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments as spoken."""
        return self.step.given

    @property
    def facts(self) -> list[dict[str, Any]]:
        """The facts of each record that came back."""
        records = self.result.records if self.result.ok else []
        return [facts(record, self.result.fields) for record in records]


@dataclass(frozen=True)
class OracleTrace:
    """All of the oracle's calls, and every tool that was ever shown or retired meanwhile."""

    all: tuple[Play, ...]
    tools: dict[str, Tool]

    def first(self, name: str) -> Play:
        """The first successful call of a tool that is needed."""
        return next(play for play in self.all if play.result.ok and play.step.name == name)

    @property
    def load(self) -> Counter[int]:
        """How many calls each run has."""
        return Counter(play.run for play in self.all)

    @property
    def needed(self) -> tuple[str, ...]:
        """The tools that served the oracle, in the order of their first success."""
        return tuple(dict.fromkeys(play.step.name for play in self.all if play.result.ok))

    def runs(self, name: str) -> list[int]:
        """The runs in which a tool is called."""
        return list(dict.fromkeys(play.run for play in self.all if play.step.name == name))


@lru_cache(maxsize=64)  # several shifts of one scene ask
def replay(scene: Scene) -> OracleTrace:
    """Makes the oracle's calls again, to see the data behind the shown text."""
    session = scene.open()
    tools = {tool.name: tool for tool in session.tools()}
    plays, run = [], 0
    for step in scene.calls:
        before = sum(made.ok for _, _, made in session.true_calls)
        arguments = step.given
        result = session.call(step.name, dict(arguments))
        plays.append(Play(step, tools[step.name], result, run, before))
        tools |= {tool.name: tool for tool in session.tools()}
        run += not step.hint
    return OracleTrace(tuple(plays), tools)


def fits(load: Counter[int]) -> bool:
    """Whether the oracle can make so many calls, in so many runs."""
    return load.total() <= MAX_CALLS and all(n <= MAX_ATTEMPTS for n in load.values())


def affordable(plays: OracleTrace, priced: Iterable[tuple[T, Sequence[int]]]) -> list[T]:
    """Those for which the oracle has calls left; each costs one more call in each of its runs."""
    load: Counter[int] = plays.load
    kept = []
    for thing, runs in priced:
        more = load + Counter(runs)
        if fits(more):
            load = more
            kept.append(thing)
    if not kept:
        raise NotApplicable("the oracle would run out of calls")
    return kept


def spread(things: Sequence[T], count: int) -> list[T]:
    """As many of the items as asked for, repeated where there are fewer."""
    if not things:
        raise NotApplicable("no call of the task can be changed this way")
    return [things[number % len(things)] for number in range(count)]


def shuffled(things: Iterable[T], rng: Random) -> list[T]:
    """The things in an order of chance."""
    listed = list(things)
    return rng.sample(listed, len(listed))


def wording(name: str, scene: Scene, rng: Random) -> tuple[str, str, str, str]:
    """A code, an error text, a notice and an end of descriptions from the scene's pool."""
    row = [*rng.choice(TABLES[name][scene.task.pool]), "", "", ""]
    return row[0], row[1], row[2], row[3]


def noted(result: Result, notice: str) -> Result:
    """The result with one more notice."""
    return result.with_(notice=f"{result.notice} {notice}".strip())


# -- how keys are written ----------------------------------------------------------------------


def _camel(words: list[str]) -> str:
    words = words if len(words) > 1 else [*words, "value"]
    return words[0] + "".join(word.capitalize() for word in words[1:])


STYLES: dict[str, Callable[[list[str]], str]] = {
    "camel": _camel,
    "pascal": lambda words: "".join(word.capitalize() for word in words),
    "upper": lambda words: "_".join(words).upper(),
    "data": lambda words: "-".join(["data", *words]),
    "dotted": lambda words: ".".join(["x", *words]),
    "dunder": lambda words: "__".join(["the", *words] if len(words) == 1 else words),
    "spaced": " ".join,
}
_WORDS = re.compile(r"[A-Z]+(?![^\W\d_A-Z])|[A-Z]?[^\W\d_A-Z]+|\d+")


@lru_cache(maxsize=4096)
def restyle(key: str, style: str, pool: str, synonyms: bool = True) -> str:
    """A key or parameter name in a style of a pool."""
    words = [word.lower() for word in _WORDS.findall(key)] or [key]
    table = TABLES["synonyms"][pool] if synonyms else {}
    return STYLES[style]([table.get(word, word) for word in words])

"""Shifts: Calls that fail on the way, and tools that move, go and come in the middle of a task."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from random import Random
from typing import Any

from toolshift.core import seed as seeds
from toolshift.core.codecs import each_text, grow
from toolshift.core.layer import Below, Layer, Memory
from toolshift.core.names import short
from toolshift.core.scene import Scene, Task
from toolshift.core.shift import Change, NotApplicable, Severity, shift
from toolshift.core.tool import DESCRIPTION, Hint, Result, Tool, error
from toolshift.shifts.observation import CURSOR
from toolshift.shifts.oracle_trace import (
    TABLES,
    affordable,
    noted,
    replay,
    restyle,
    shuffled,
    spread,
    wording,
)
from toolshift.shifts.surface import Surface
from toolshift.shifts.wording import UNRELATED

# -- transient_error ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Busy(Layer):
    """The first calls of some tools fail before they are carried out."""

    times: tuple[tuple[str, int], ...]
    code: str
    text: str

    def changes_results(self, tool: Tool) -> bool:
        """No: it fails, or calls as below."""
        return False

    def call(self, name: str, arguments: dict[str, Any], memory: Memory, below: Below) -> Result:
        """Fails as often as it is to, and then calls as below."""
        failed = memory.get(name, 0)
        if failed >= dict(self.times).get(name, 0):
            return below(name, arguments)
        memory[name] = failed + 1
        return error(self.code, self.text, Hint("retry"), provoked=True)


@shift(
    tier="interaction",
    dimension="observation",
    level=2,
    imitates="GitHub REST: secondary rate limits answer 403 or 429; retry after a while",
)
def transient_error(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Let calls that the task needs fail at first: one (1), two (2) or four (3) failures."""
    plays = replay(scene)
    wanted = spread(shuffled(plays.needed, rng), {1: 1, 2: 2, 3: 4}[severity])
    kept = affordable(plays, [(name, [plays.first(name).run]) for name in wanted])
    code, text, _, _ = wording("transient_error", scene, rng)
    return Change(Busy(tuple(Counter(kept).items()), code, text))


# -- tools that hand over to others ------------------------------------------------------------


@dataclass(frozen=True)
class Move:
    """A tool whose work goes to another, by way of those between.

    Attributes:
        names: the tools that follow one another; only the last one works.
        since: how many true calls must have succeeded before; 0 for from the start.
        params: parameter names of the successor, each with that of the old tool.
    """

    old: str
    names: tuple[str, ...]
    since: int = 0
    params: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Moves(Layer):
    """Tools hand over to successors; calls of the old ones are answered with the new name.

    Attributes:
        keeps: the old tools stay on offer.
        remark: ends the description of a successor.
        authority: how much more the documentation prefers a successor.
        header: where in an answer the new name stands, and how, if it is not in the text: the keys
            that lead there, the last one with its value behind a colon.
    """

    moves: tuple[Move, ...]
    code: str
    text: str
    notice: str = ""
    remark: str = ""
    keeps: bool = False
    authority: int = 0
    header: str = ""

    def phase(self, memory: Memory) -> int:
        """How many tools have moved."""
        return len(self._moved(memory))

    def _moved(self, memory: Memory) -> dict[str, Move]:
        if memory["calls"] >= self._last:
            return self._all
        return {move.old: move for move in self.moves if memory["calls"] >= move.since}

    @cached_property
    def _last(self) -> int:
        """From so many calls on all have moved."""
        return max([move.since for move in self.moves], default=0)

    @cached_property
    def _all(self) -> dict[str, Move]:
        return {move.old: move for move in self.moves}

    def tools(self, tools: tuple[Tool, ...], memory: Memory) -> tuple[Tool, ...]:
        """The old tools, where they are kept, and the successors after all others."""
        moved = self._moved(memory)
        kept = (
            tool.with_(retired=tool.retired or not self.keeps) if tool.name in moved else tool
            for tool in tools
        )
        new = (self._successors(tool, moved[tool.name]) for tool in tools if tool.name in moved)
        return (*kept, *(tool for row in new for tool in row))

    def _successors(self, tool: Tool, move: Move) -> list[Tool]:
        shown = _shown_as(move).show(tool) if move.params else tool
        text = shown.description
        if self.remark and DESCRIPTION in tool.channels:
            text = f"{text.removesuffix('.')}. {self.remark}"
        authority = tool.authority + self.authority
        return [shown.with_(name=n, description=text, authority=authority) for n in move.names]

    def changes_results(self, tool: Tool) -> bool:
        """No: a successor gives what the old tool gave."""
        return False

    def call(self, name: str, arguments: dict[str, Any], memory: Memory, below: Below) -> Result:
        """Answers an old name with the next; a successor's call goes to the old tool below."""
        moved = self._moved(memory)
        move = _first_with(name, moved.values())
        if move is not None:
            steps = (move.old, *move.names)
            if name in steps[:-1]:
                return self._elsewhere(name, steps[steps.index(name) + 1])
            own = dict(move.params)
            inward = {own.get(key, key): value for key, value in arguments.items()}
            result = below(move.old, inward)
            if result.hint is not None and result.hint.kind == "page":
                result = _shown_as(move).outward(result, move.old)
            return self._outward(result, moved, memory)
        return self._outward(below(name, arguments), moved, memory)

    def _elsewhere(self, old: str, new: str) -> Result:
        """The answer of an old name: in its text, or in a header beside it, stands the next."""
        text = self.text.format(old=old, new=new)
        result = error(self.code, text, Hint("use", tool=new), provoked=True)
        if not self.header:
            return result
        *keys, last = self.header.format(old=old, new=new).split(" > ")
        name, _, value = last.partition(": ")
        return result.with_(data={**result.data, **grow({(*keys, name): value})})

    def _outward(self, result: Result, before: dict[str, Move], memory: Memory) -> Result:
        """The result, with the notices of what moved meanwhile and the names that hold now."""
        moved = self._moved(memory)
        if result.hint is not None and result.hint.tool in moved and not self.keeps:
            result = _renamed(result, result.hint.tool, moved[result.hint.tool].names[-1])
        for move in moved.values() if moved is not before else ():
            if move.old not in before and self.notice:
                result = noted(result, self.notice.format(old=move.old, new=move.names[-1]))
        return result


def _shown_as(move: Move) -> Surface:
    """How the tool that has moved is shown, but for its name."""
    return Surface(params={move.old: {own: new for new, own in move.params}})


def _first_with(name: str, moves: Iterable[Move]) -> Move | None:
    """The first move that has a tool of this name, as the old one or a successor."""
    for move in moves:
        if name == move.old or name in move.names:
            return move
    return None


def _renamed(result: Result, old: str, new: str) -> Result:
    """The result with another tool in its hint and in its text."""
    word = re.compile(rf"(?<![\w-]){re.escape(old)}(?![\w-])")
    data = result.data if result.ok else each_text(result.data, lambda text: word.sub(new, text))
    return result.with_(data=data, notice=word.sub(new, result.notice), hint=Hint("use", tool=new))


def _successor(old: str, kind: str, task: Task, taken: set[str]) -> str:
    """A name for what follows a tool, not taken yet; it is added to those taken."""
    table = TABLES["names"][task.pool]
    rng = seeds.rng(task.id, kind, old)
    verb, _, rest = old.partition("_")
    verb = table["verbs"].get(verb, verb)
    parts = {"verb": verb, "rest": rest, "affix": table["affixes"][kind]}
    pattern: str = rng.choice(table["patterns"])
    name = pattern.format(**parts, word=rng.choice(UNRELATED)).replace("__", "_").strip("_")
    name = short(name)
    while name in taken:
        name = short(name + str(len(taken) % 10))
    taken.add(name)
    return name


COUNTS = {1: 1, 2: 2, 3: 4}


def _elsewhere(
    scene: Scene, rng: Random, severity: Severity, kind: str, hops: int
) -> tuple[Move, ...]:
    """Moves from the start: of tools that the task needs, and of others to make up the number."""
    plays = replay(scene)
    called = {play.step.name for play in plays.all}
    names = shuffled(plays.needed, rng)
    kept = affordable(plays, [(name, plays.runs(name) * hops) for name in names])
    others = shuffled((tool.name for tool in scene.tools if tool.name not in called), rng)
    taken = set(plays.tools)
    moves = []
    for old in [*kept, *others][: COUNTS[severity]]:
        way = [old]
        for _ in range(hops):
            way.append(_successor(way[-1], kind, scene.task, taken))
        moves.append(Move(old, tuple(way[1:])))
    return tuple(moves)


@shift(
    tier="interaction",
    dimension="observation",
    level=2,
    imitates="OpenWeather closed One Call API 2.5 in 2024; requests fail, One Call 3.0 answers",
)
def permanent_error(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Let tools fail for good whose fallback is on offer: one (1), two (2) or four (3)."""
    moves = _elsewhere(scene, rng, severity, "permanent_error", hops=1)
    code, text, _, remark = wording("permanent_error", scene, rng)
    return Change(Moves(moves, code, text, remark=remark, keeps=True))


@shift(
    tier="interaction",
    dimension="observation",
    level=2,
    imitates="GitHub REST: a renamed repository answers 301 with its new location",
)
def redirect(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Redirect calls to a successor on offer: of one tool (1), two (2), four in two hops (3)."""
    moves = _elsewhere(scene, rng, severity, "redirect", hops=2 if severity == 3 else 1)
    code, text, _, _ = wording("redirect", scene, rng)
    return Change(Moves(moves, code, text, keeps=True))


@shift(
    tier="interaction",
    dimension="observation",
    level=2,
    imitates="HTTP (RFC 9110): a 3xx answer says in its Location header where to go, and its body "
    "need not",
)
def redirect_header(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Redirect as `redirect` does, but name the successor in a header only, and not in the text."""
    moves = _elsewhere(scene, rng, severity, "redirect_header", hops=2 if severity == 3 else 1)
    code, text, header, _ = wording("redirect_header", scene, rng)
    return Change(Moves(moves, code, text, keeps=True, header=header))


# -- tools that move midway --------------------------------------------------------------------


def _midway(scene: Scene, rng: Random, severity: Severity, kind: str) -> tuple[Move, ...]:
    """Moves after the k-th success: of a tool that the task still needs, and of others."""
    plays = replay(scene)
    late = [name for name in plays.needed if plays.first(name).before > 0]
    if not late:
        raise NotApplicable("no tool is needed after the first result")
    others = [tool.name for tool in scene.tools if tool.name not in late]
    priced = ((name, plays.runs(name)[:1]) for name in shuffled(late, rng))
    free = ((name, plays.runs(name)[:1]) for name in shuffled(others, rng))
    names = [*affordable(plays, priced), *affordable(plays, free)][: COUNTS[severity]]
    last = min(plays.first(name).before for name in names if name in late)
    since = {1: last, 2: (1 + last) // 2, 3: 1}[severity]
    taken = set(plays.tools)
    return tuple(Move(old, (_successor(old, kind, scene.task, taken),), since) for old in names)


@shift(
    tier="interaction",
    dimension="action",
    level=2,
    imitates="Model Context Protocol: notifications/tools/list_changed when a server renames tools",
)
def tool_removed_midway(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Replace tools by successors in the middle of the task: one late (1) to four at once (3)."""
    moves = _midway(scene, rng, severity, "tool_removed_midway")
    code, text, notice, _ = wording("tool_removed_midway", scene, rng)
    return Change(Moves(moves, code, text, notice))


@shift(
    tier="interaction",
    dimension="action",
    level=2,
    order=3,  # above the withdrawal of a tool, lest it be replaced there
    imitates="Slack Web API: files.upload gave way to files.getUploadURLExternal, then stopped",
)
def tool_added(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Add preferred tools midway, beside old ones that stop serving: one late (1) to four (3)."""
    moves = _midway(scene, rng, severity, "tool_added")
    code, text, notice, remark = wording("tool_added", scene, rng)
    return Change(Moves(moves, code, text, notice, remark, keeps=True, authority=1))


@shift(
    tier="interaction",
    dimension="action",
    level=2,
    imitates="Google Directions API (Legacy) gave way to Routes API computeRoutes, whose request "
    "names its fields anew",
)
def tool_migrated(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Migrate tools midway to parameters of another style (1), other words (2), a namespace (3)."""
    moves = _midway(scene, rng, severity, "tool_migrated")
    tools = replay(scene).tools
    pool = scene.task.pool
    style = rng.choice(TABLES["format_drift"][pool]["styles"])
    space = TABLES["names"][pool]["namespace"] if severity == 3 else ""

    moves = tuple(
        replace(move, params=migrated(tools[move.old], style, pool, space, severity > 1))
        for move in moves
    )
    code, text, notice, _ = wording("tool_migrated", scene, rng)
    return Change(Moves(moves, code, text, notice))


def migrated(
    tool: Tool, style: str, pool: str, space: str, synonyms: bool
) -> tuple[tuple[str, str], ...]:
    """The names of a tool's parameters after a migration, each with the one that it had."""
    spoken: dict[str, str] = {}
    for param in tool.params:
        new = space + restyle(param.name, style, pool, synonyms=synonyms)
        if param.fact != CURSOR and new not in spoken:
            spoken[new] = param.name
    names = {param.name for param in tool.params}
    while clash := spoken.keys() & (names - set(spoken.values())):  # with one that keeps its name
        spoken = {new: own for new, own in spoken.items() if new not in clash}
    return tuple(spoken.items())

"""Slips: calls of the expert's own that are rejected, and then put right.

An agent makes mistakes of a kind that an oracle never does: a name spelt wrongly, the tool beside
the one it meant, a step left out, an argument that does not fit, a refusal for a reason that is
none. Trained on faultless trajectories, it has never seen what comes next, and repeats itself. So
the expert makes one such mistake in some of its trajectories, and in some of those makes it again,
for that does not help. Only its answer to the error is learned; the slip itself is context
(`"weight": 0`).

A slip never reaches a tool: the client rejects it, so it changes nothing in the scene.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from toolshift.core import seed as seeds
from toolshift.core.calls import ToolCall
from toolshift.core.message import REASONS, REFUSE, Reply
from toolshift.core.scene import Scene
from toolshift.core.shift import without_versions
from toolshift.core.tool import Tool, invalid_arguments
from toolshift.episode.episode import Episode
from toolshift.runs.cell import write_stack
from toolshift.shifts.wording import UNRELATED

Make = Callable[[Episode, Tool, dict[str, Any], Random], ToolCall | None]


def misspelt(
    episode: Episode, tool: Tool, arguments: dict[str, Any], rng: Random
) -> ToolCall | None:
    """The name of the tool with a letter lost or doubled, or with a part of it made up."""
    name = tool.name
    place = rng.randrange(1, max(2, len(name)))
    wrong = rng.choice(
        (
            name[:place] + name[place + 1 :],
            name[:place] + name[place - 1] + name[place:],
            name[:place] + rng.choice(UNRELATED),
            rng.choice(UNRELATED) + name[place:],
        )
    )
    return ToolCall(wrong, arguments) if _is_new(wrong, episode) else None


def beside(episode: Episode, tool: Tool, arguments: dict[str, Any], rng: Random) -> ToolCall | None:
    """Another tool, for which the arguments are wrong."""
    others = [
        other
        for other in episode.tools
        if other.name != tool.name and invalid_arguments(other, arguments)
    ]
    return ToolCall(rng.choice(others).name, arguments) if others else None


def too_early(
    episode: Episode, tool: Tool, arguments: dict[str, Any], rng: Random
) -> ToolCall | None:
    """Another tool that asks for what this one was to find out, with a value that is at hand."""
    values = list(map(str, arguments.values()))
    found = []
    for other in episode.tools:
        needs = [param.name for param in other.params if param.required]
        if other.name != tool.name and needs and values:
            guess = {name: arguments.get(name, rng.choice(values)) for name in needs}
            if invalid_arguments(other, guess):
                found.append(ToolCall(other.name, guess))
    return rng.choice(found) if found else None


def unfit(episode: Episode, tool: Tool, arguments: dict[str, Any], rng: Random) -> ToolCall | None:
    """An argument left out, under another name, or with the value of another."""
    if not arguments:
        return None
    name = rng.choice(sorted(arguments))
    rest = {key: value for key, value in arguments.items() if key != name}
    value, word = arguments[name], rng.choice(UNRELATED)
    spelt = rng.choice((name.upper(), name.title(), name.replace("_", "-"), f"{word}_{name}"))
    other = rng.choice([word, *map(str, arguments.values())])
    wrong = rng.choice(
        (
            rest,
            {**rest, f"{name}_{word}": value},
            {**rest, spelt: value},
            {**rest, name: other},
        )
    )
    return ToolCall(tool.name, wrong) if invalid_arguments(tool, wrong) else None


def no_reason(
    episode: Episode, tool: Tool, arguments: dict[str, Any], rng: Random
) -> ToolCall | None:
    """A refusal with the code of the last error, or with a word, for a reason.

    Not with a code that is a reason: then the refusal would count, and end the episode.
    """
    codes = [step.error for step in episode.steps if step.error and step.error not in REASONS]
    return ToolCall(REFUSE, {"reason": codes[-1] if codes else rng.choice(UNRELATED)})


KINDS: tuple[Make, ...] = (
    misspelt,
    misspelt,
    beside,
    too_early,
    too_early,
    unfit,
    unfit,
    no_reason,
)
"""Each makes a wrong call of a right one, or None where it cannot."""
AGAIN = 1 / 3
"""The share of slips that are made twice."""


class Slip:
    """Lets one call of a trajectory go wrong before it is made.

    Attributes:
        turns: of the slips that were made.
    """

    def __init__(self, scene: Scene, share: float) -> None:
        """Decides whether there is to be one (`share` says how likely), and before which call."""
        self.turns: set[int] = set()
        stack = without_versions(write_stack(scene.shifts))
        self.rng = seeds.rng(scene.task.id, stack, "slip")
        calls = len(scene.calls)
        self._until = self.rng.randrange(calls) if calls and self.rng.random() < share else -1

    def before(self, episode: Episode, name: str, arguments: dict[str, Any]) -> None:
        """Makes the slip, where this call is the one and something can be made of it."""
        self._until -= 1
        tool = next((shown for shown in episode.tools if shown.name == name), None)
        if self._until != -1 or tool is None:
            return
        wrong = self.rng.choice(KINDS)(episode, tool, arguments, self.rng)
        if wrong is None:
            return
        for _ in range(1 + (self.rng.random() < AGAIN)):
            self.turns.add(episode.turn)
            episode.take(Reply(calls=(wrong,)))


def _is_new(name: str, episode: Episode) -> bool:
    """Whether a name is no tool's, so that calling it is a mistake."""
    known = {tool.name for tool in (*episode.tools, *episode.scene.truth.tools)}
    return bool(name) and name not in known

"""What a data set is, counted, and the card beside it that says how to make it again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from toolshift.core.command_line import command
from toolshift.lm.prompt import Layout
from toolshift.train.rows import Row
from toolshift.train.scenes import Mix


class Statistics(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Counts of a data set; what is not said to be of rows or messages is of trajectories.

    Attributes:
        rows: how many there are.
        distinct: rows without those that stand there again, as where a world has fewer tasks than
            are asked for.
        unsolvable: trajectories that end in a refusal.
        calls_per_row: the mean number of calls that the assistant makes.
        masked_messages: assistant messages that are context only.
        kinds: trajectories of each world and task kind.
        shifts: trajectories under each stack of shifts, or "clean".
        turns: rows that are written where each turn is one; 0 where rows are written whole.
        layout: how those are written out.
    """

    rows: int
    distinct: int
    unsolvable: int
    calls_per_row: float
    masked_messages: int
    kinds: dict[str, int]
    shifts: dict[str, int]
    turns: int = 0
    layout: Layout | None = None


def statistics(rows: Sequence[Row]) -> Statistics:
    """Counts a data set."""
    trajectories = list({row["lineage"]: row for row in rows}.values())
    calls = [len(message.get("tool_calls", ())) for row in rows for message in row["messages"]]
    return Statistics(
        rows=len(rows),
        distinct=len({row["id"] for row in rows}),
        unsolvable=sum(not row["solvable"] for row in trajectories),
        calls_per_row=sum(calls) / len(rows),
        masked_messages=sum(m.get("weight") == 0 for row in rows for m in row["messages"]),
        kinds=_counted(f"{row['world']}/{row['kind']}" for row in trajectories),
        shifts=_counted("+".join(row["shifts"]) or "clean" for row in trajectories),
    )


def _counted(names: Iterable[str]) -> dict[str, int]:
    return dict(Counter(names).most_common())


def card(name: str, mix: Mix, count: int, digest: str, found: Statistics) -> str:
    """A card in Markdown that says what a data set is and how to make it again."""
    counts = [f"| {what} | {number} |" for what, number in found.kinds.items()]
    shifted = [f"| {what} | {number} |" for what, number in found.shifts.items()]
    turns = [f"- written as turns, a row each: {found.turns}"] if found.layout else []
    again = command("data", "--out", name, *_options(mix, count, found), travels=True)
    return "\n".join(
        [
            f"# {name}",
            "",
            "Expert trajectories of ToolShift's oracle, which acts only on what it is shown and is",
            "graded in every scene. Entities and wordings are of the training pool.",
            "",
            f"- rows: {found.rows}, of {count} trajectories (a change of the tools in",
            "  mid-episode starts a new row)",
            *turns,
            f"- trajectories that end in a refusal, rightly: {found.unsolvable}",
            f"- assistant messages that are context only (`weight: 0`): {found.masked_messages}",
            f"- SHA-256: `{digest}`",
            f"- made by: `{again}`",
            "",
            "| kind | trajectories |",
            "|---|---:|",
            *counts,
            "",
            "| shift | trajectories |",
            "|---|---:|",
            *shifted,
            "",
        ]
    )


def _options(mix: Mix, count: int, found: Statistics) -> list[str]:
    """The options of `toolshift data` that make a data set again."""
    given: list[tuple[str, object]] = [("--layout", found.layout)] if found.layout else []
    given += [("--count", count), ("--alpha", mix.alpha), ("--seed", mix.seed)]
    given += [("--slips", mix.slips)] * bool(mix.slips)
    given += [("--share", mix.share)] * (mix.share > 1)
    given += [("--size", mix.size), *(("--world", world) for world in mix.worlds)]
    given += [("--kind", kind) for kind in mix.kinds]
    given += [("--shift", each) for each in mix.shifts if mix.alpha]
    given += [("--severity", each) for each in mix.severities if mix.alpha]
    words = [str(word) for option in given for word in option]
    return ["--turns", *words] if found.layout else words

"""How much of each release `toolshift change` carries, asks and says.

    python studies/real_drift/carried.py

Reads every two successive lists in `lists/` as `toolshift change OLD NEW` does, without a mapping
and without tasks, and writes `carried.json` and `carried.md`. A tool is broken where a call of it
that was right is refused. No network.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
from measure import pairs

from toolshift.drift.release import Reading, read_release
from toolshift.shifts.release.inputs import side_of
from toolshift.shifts.release.mapping import Answers

HERE = Path(__file__).parent
STATES = ("carried", "asked", "said")


def counted(rows: Iterable[Any]) -> dict[str, int]:
    """How many rows are carried, asked and said."""
    counts = Counter(row.carriage for row in rows)
    return {state: counts[state] for state in STATES}


def silent(reading: Reading) -> int:
    """How many changes are said without a reason."""
    return sum(row.carriage != "carried" and not row.note for row in reading.rows)


WIDER = ("parameter_added", "choice_added", "choices_lifted", "type_widened", "limit_loosened")
"""Changes by which more may be said."""


def in_part(rows: Iterable[Any]) -> int:
    """How many rows are carried for what today's calls say, and not for what goes beyond them."""
    return sum(
        row.carriage == "carried" and bool(row.note) and row.change.kind in WIDER
        for row in rows
        if row.change is not None
    )


def measured() -> list[dict[str, Any]]:
    """A record for each release."""
    found = []
    for pair in pairs():
        old, new = (
            side_of("mcp", version, tools)
            for version, tools in zip(pair.versions, (pair.old, pair.new), strict=True)
        )
        reading = read_release(old, new, Answers()).reading
        broken = [
            row
            for row in reading.rows
            if row.change is not None and row.change.old in reading.broken
        ]
        results = [
            row
            for row in reading.rows
            if row.change is not None and row.change.kind.startswith("output_schema")
        ]
        found.append(
            {
                "release": pair.name,
                "all": counted(reading.rows),
                "broken_tools": len(reading.broken),
                "of_broken_tools": counted(broken),
                "in_part": [in_part(reading.rows), in_part(broken)],
                "results": counted(results),
                "kinds_of_results": [row.change.kind for row in results if row.change],
                "questions": len(reading.questions),
                "silent": silent(reading),
            }
        )
    return found


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({100 * part / whole:.0f}%)" if whole else "none"


def table(records: list[dict[str, Any]]) -> str:
    """The records as Markdown, with what they come to."""
    lines = [
        "# What `toolshift change` does with each release",
        "",
        "Written by `carried.py`; carried / asked / said.",
        "",
    ]
    for title, key in (
        ("All changes", "all"),
        ("Changes of broken tools", "of_broken_tools"),
        ("Changes of results", "results"),
    ):
        sums = {state: sum(one[key][state] for one in records) for state in STATES}
        whole = sum(sums.values())
        reached = sums["carried"] + sums["asked"]
        lines.append(
            f"- {title}: carried without a question {_share(sums['carried'], whole)}, carried or "
            f"asked {_share(reached, whole)}, said only {_share(sums['said'], whole)}"
        )
    for place, title in ((0, "All changes"), (1, "Changes of broken tools")):
        part = sum(one["in_part"][place] for one in records)
        lines.append(
            f"- {title}, carried in part: {part} of the carried. More may be said now. Calls of "
            "today are carried; a call that says more than today's tool knows is refused, or that "
            "has no effect where the tool only reads"
        )
    kinds = Counter(kind for one in records for kind in one["kinds_of_results"])
    told = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    lines.append(
        f"- Of the changes of results: {told}. Where the old list declares nothing, carried means "
        "that each result is held to the form that is declared now: a call that returns another "
        "one fails"
    )
    most = max(one["questions"] for one in records)
    over = sum(one["questions"] > 10 for one in records)
    lines.append(f"- Said without a reason: {sum(one['silent'] for one in records)}")
    lines.append(f"- Questions of a release: at most {most}; more than ten in {over} releases")
    lines += [
        "",
        "| release | all | of broken tools | results | questions |",
        "|---|---|---|---|---:|",
    ]
    for one in records:
        cells = [
            " / ".join(str(one[key][s]) for s in STATES)
            for key in ("all", "of_broken_tools", "results")
        ]
        lines.append(f"| {one['release']} | {' | '.join(cells)} | {one['questions']} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Writes the figures."""
    records = measured()
    (HERE / "carried.json").write_bytes(
        msgspec.json.format(msgspec.json.encode(records), indent=1) + b"\n"
    )
    (HERE / "carried.md").write_text(table(records))


if __name__ == "__main__":
    main()

"""The data card of an augmented file, as Hugging Face data sets have one."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

from toolshift.core.text import one_line
from toolshift.data.augment import COLUMN, open_questions
from toolshift.data.files import Job, Tally, digest_of, line_of, sameness, written_for

LONGEST = 1200


def write_card(job: Job, tally: Tally, command: str) -> Path:
    """Writes the card beside the output, and returns its path."""
    path = job.out.with_name(f"{Path(job.out.name.removesuffix('.gz')).stem}.README.md")
    path.write_text(card(job, tally, command), encoding="utf-8")
    return path


def card(job: Job, tally: Tally, command: str) -> str:
    """What was changed, how often, three examples, hashes and the command."""
    release = version("toolshift")
    to = f", written as {job.recipe.to}" if job.recipe.to else ""
    share = 100 * sum(tally.shifted.values()) / max(1, tally.rows)
    lines = [
        "---",
        "tags: [tool-use, toolshift, data-augmentation]",
        "task_categories: [text-generation]",
        "---",
        "",
        f"# {job.out.name}",
        "",
        f"{tally.rows:,} conversations of `{job.source.name}`, of which "
        f"{sum(tally.shifted.values()):,} ({share:.1f}%) were shifted by ToolShift "
        f"{release}: the tools, their results or what can be done with them change as "
        f"they do in production. {_kept(job, tally)}{_as_text(tally)}",
        "",
        f"    {command}",
        "",
        "| | |",
        "|---|---|",
        f"| input | `{job.source.name}`, sha256 `{digest_of(job.source)}` |",
        f"| output | `{job.out.name}`, sha256 `{digest_of(job.out)}`, {tally.written:,} rows |",
        f"| formats | {_counted(tally.formats)}{to} |",
        f"| alpha, seed | {job.recipe.alpha:g}, {job.recipe.seed} |",
        f"| left out | {tally.wrong:,} rows that could not be read |",
        "",
        "## What was changed",
        "",
        "| shift | conversations |",
        "|---|---:|",
        *(f"| {name} | {count:,} |" for name, count in _sorted(tally.shifted)),
        "",
        *_learned(job),
        "",
    ]
    unmoved = tally.skipped | tally.untried
    if unmoved:
        lines += ["## What was not applicable", "", "| shift and reason | times |", "|---|---:|"]
        lines += [f"| {_cell(why)} | {count:,} |" for why, count in _sorted(unmoved)[:20]]
        lines.append("")
    if asked := open_questions(job.recipe):
        lines += ["## What is open", "", "Rows that need it are not shifted:", ""]
        lines += [*(f"- {one_line(question)}" for question in asked), ""]
    for number, (line, name, after) in enumerate(tally.examples, 1):
        before = line_of(job.source, line).decode(errors="replace")
        lines += [f"## Example {number}: {name}, line {line}", "", "Before:", ""]
        lines += [*_code(before), "", "After:", "", *_code(after), ""]
    return "\n".join(lines)


def _kept(job: Job, tally: Tally) -> str:
    """What is said of the rows: of those that are not shifted, or for whom all are written."""
    if text := written_for(job, tally):
        return text
    return (
        f"{tally.same:,} rows are {sameness(job)} as before. The column `{COLUMN}` says what a row "
        "went through."
    )


def _learned(job: Job) -> list[str]:
    """What becomes of calls that were made to fail."""
    midway = "Where the tools change midway, each list of tools gives a row of its own."
    if job.recipe.trainer:
        return ["A call that was made to fail is context, and is not learned.", midway]
    return [
        "A call that was made to fail has `weight` 0: it is context, and is not learned. Where the",
        "tools change midway, each list of tools gives a row of its own.",
    ]


def _as_text(tally: Tally) -> str:
    names = ", ".join(f"`{name}`" for name in tally.as_text)
    return f" JSON in a string, as no type of Parquet holds their values: {names}." if names else ""


def _sorted(counts: dict[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda one: (-one[1], one[0]))


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in _sorted(counts)) or "none"


def _cell(text: str) -> str:
    return one_line(text).replace("|", "\\|")


def _code(row: str) -> list[str]:
    """A row as indented JSON, cut where it is long."""
    try:
        told = json.dumps(json.loads(row), indent=1, ensure_ascii=False)
    except ValueError:
        told = row
    told = told if len(told) <= LONGEST else f"{told[:LONGEST]}\n..."
    return [f"    {line}" for line in told.splitlines()]

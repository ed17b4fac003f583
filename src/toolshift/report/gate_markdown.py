"""The gate as Markdown, for a pull request or the summary of a job."""

from __future__ import annotations

import re
from collections.abc import Iterable

from toolshift.core.command_line import command
from toolshift.core.text import one_line
from toolshift.measure.gate import Family, Gate, in_percent, in_points, verdict_in_words
from toolshift.measure.nothing_lost import NothingLost, loss_in_words

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#|~!&$@-])")
COLUMNS = ("", "verdict", "tasks", "scenes", "baseline", "candidate", "change", "lost", "gained")


def gate_markdown(gate: Gate, run: str = "") -> str:
    """The verdict, a table of the families and one of the shifts, and what was lost."""
    head = f"{plain(gate.candidate)} against {plain(gate.baseline)}, margin {gate.margin:g} points"
    parts = [
        f"## ToolShift gate: {gate.verdict}",
        head,
        plain(gate.sentence),
        _table(gate.families),
        "\n".join(f"- {plain(f.label)}: {plain(f.sentence)}" for f in gate.families),
    ]
    if gate.shifts:
        shifts = _table(gate.shifts)
        parts.append(
            f"<details><summary>Shift by shift (not gated)</summary>\n\n{shifts}\n</details>"
        )
    lost = [family for family in (*gate.families, *gate.shifts) if family.examples]
    if lost:
        where = f" (`{_code(command('trace', run, 'EPISODE'))}`)" if run else ""
        parts.append(f"Episodes that were lost{where}:")
        parts.append(
            "\n".join(f"- {plain(f.label)}: {', '.join(map(plain, f.examples))}" for f in lost)
        )
    if gate.plan:
        parts.append(f"Sealed plan: {gate.plan}")
    parts += [f"Note: {plain(note)}" for note in gate.notes]
    parts.append(
        f"Changes in points with {gate.confidence:.0%} limits; every task has the same weight."
    )
    return "\n\n".join(parts) + "\n"


def losses_markdown(found: NothingLost, run: str) -> str:
    """The verdict, and each scene that fails now with its cause and command."""
    parts = [
        f"## ToolShift gate: {found.verdict}",
        f"{plain(found.candidate)} against {plain(found.baseline)}: no scene that passed may fail",
        plain(found.sentence),
    ]
    if found.changed:
        parts.append(
            "\n".join(
                f"- {plain(loss_in_words(scene))} (`{_code(command('trace', run, scene.episode))}`)"
                for scene in found.changed
            )
        )
    parts += [f"Note: {plain(note)}" for note in found.notes]
    return "\n\n".join(parts) + "\n"


def _table(families: Iterable[Family]) -> str:
    rows = [COLUMNS, ("---",) * len(COLUMNS)]
    rows += [
        (
            plain(family.label),
            f"**{family.verdict}**" if family.verdict == "fail" else verdict_in_words(family),
            str(family.tasks),
            f"{family.scored} of {family.scenes}",
            in_percent(family.baseline),
            in_percent(family.candidate),
            in_points(family.change),
            str(family.lost),
            str(family.gained),
        )
        for family in families
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def plain(text: str) -> str:
    """Text that Markdown shows as it stands, on one line."""
    return _SPECIAL.sub(r"\\\1", one_line(text))


def _code(text: str) -> str:
    """Text inside backticks, which cannot be escaped there."""
    return one_line(text.replace("`", " "))

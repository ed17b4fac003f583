"""The gate on the terminal."""

from __future__ import annotations

from pathlib import Path

from toolshift.core.command_line import command
from toolshift.core.terminal import console, print_table, say
from toolshift.measure.gate import Family, Gate, in_percent, in_points, verdict_in_words
from toolshift.measure.nothing_lost import NothingLost, loss_in_words


def print_gate(gate: Gate, run: Path | str) -> None:
    """Prints the table of the families, what was lost, and the verdict."""
    title = f"\n{gate.baseline} -> {gate.candidate}, margin {gate.margin:g} points"
    columns = ("", "verdict", "tasks", "before", "after", "change [90%]", "lost", "gained")
    print_table(title, columns, [_row(family) for family in gate.families])
    worse = [family for family in gate.shifts if family.verdict == "fail"]
    if worse:
        print_table("\nshifts that are worse by more than the margin (not gated)", columns,
                    [_row(family) for family in worse])  # fmt: skip
    for family in gate.families:
        if family.verdict != "pass":
            say(f"\n{family.label}: {family.sentence}")
            if family.lost:
                say(f"  lost: {' '.join(family.examples)} ({command('trace', run, 'EPISODE')})")
    if gate.plan:
        say(f"\nSealed plan {gate.plan[:12]}")
    for note in gate.notes:
        console().print(f"\nNote: {note}", style="dim", markup=False)
    say(f"\nGate {gate.sentence}")


def _row(family: Family) -> list[str]:
    return [
        family.label,
        verdict_in_words(family),
        str(family.tasks),
        in_percent(family.baseline),
        in_percent(family.candidate),
        in_points(family.change),
        str(family.lost),
        str(family.gained),
    ]


def print_losses(found: NothingLost, run: Path | str) -> None:
    """Prints each scene that fails now, with the command that shows it, and the verdict."""
    say(f"\n{found.baseline} -> {found.candidate}: no scene that passed may fail\n")
    for scene in found.changed:
        say(f"  {loss_in_words(scene)}\n    {command('trace', run, scene.episode)}")
    for note in found.notes:
        console().print(f"\nNote: {note}", style="dim", markup=False)
    say(f"\nGate {found.sentence}")

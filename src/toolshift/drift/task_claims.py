"""What a sequential `toolshift change` claims: nothing but what becomes of each task."""

from __future__ import annotations

from toolshift.measure.claims import families_by
from toolshift.measure.metrics import shift_of
from toolshift.runs.cell import Cell, build
from toolshift.runs.design import Design
from toolshift.runs.plan import Plan
from toolshift.runs.sequential import ROUNDS, Claims, Family, Pair, Verdict


def task_claims(budget: str = "") -> Claims:
    """Nothing but what becomes of each task: all are asked, those first whose calls differ."""
    design = Design("sequential", "tasks", 0.0, budget)

    def families(plan: Plan) -> list[Family]:
        clean = {(c.lineage, c.trial): c for c in plan.cells if not c.shifts}
        pairs = [Pair(cell, clean[cell.lineage, cell.trial]) for cell in plan.cells if cell.shifts]
        alone = [Pair(cell, cell) for cell in clean.values()] if not pairs else []
        return families_by(pairs or alone, shift_of, _calls_differ)

    def always_open(*_: object) -> Verdict:
        return "open"

    parts = ROUNDS if budget else 1
    return Claims(
        design,
        families,
        always_open,
        lambda family, seen, listed: len(family.tasks) - len(seen),
        parts=parts,
    )


def _calls_differ(cell: Cell) -> bool:
    """Whether a sound agent calls otherwise, or is answered otherwise, than in the clean scene."""
    scene = build(cell)
    sides = (
        [(step.name, step.arguments, step.text) for step in each.calls]
        for each in (scene, scene.clean)
    )
    return next(sides) != next(sides)

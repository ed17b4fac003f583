"""Small tuned models under shifts of the held-out pool, alone and in the layer.

    python studies/adapt/models.py [--each 12] [--minutes 20] [--rows FILE]
    python studies/adapt/models.py --pages        # the table of README.md again

`smol:static` was trained on clean tasks, `smol:paft` on shifted ones too; both on the pool `train`.
Tasks of `poi`, as many of each kind that both were trained on, with names and wordings of the pool
`test`, clean and under the shifts below. The first plan was of four tasks, cut when the first
episodes showed what they cost; one of these was a shifted one. Eight more were decided on before
one of them was played. Rows are kept as they come, a round of tasks at a time, so any part of it is
balanced, and the same command goes on.

alone      the model as it is
as known   in the layer, with the tools shown as the lock has them (`as_known=True`)
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

from toolshift.adapt.layer import ASKING, REWRITING, Intervention, adapt
from toolshift.agents.catalog import make_agent
from toolshift.core.scene import Scene
from toolshift.core.terminal import progress
from toolshift.drift.lock import lock_shown
from toolshift.episode.contract import converse
from toolshift.episode.episode import Episode
from toolshift.episode.grade import grade
from toolshift.measure.statistics import paired_drop, wilson
from toolshift.runs.cell import Cell, build
from toolshift.runs.plan import make_plan
from toolshift.runs.suite import Selection, select

HERE = Path(__file__).parent
FILE = HERE / "models.json"
START, END = "<!-- models -->", "<!-- end of models -->"
MODELS = ("smol:static", "smol:paft")
KINDS = ("listing", "hours", "route", "visit")
SHIFTS = ("semantic_rename", "parameter_rename", "transient_error")
SEVERITY = 2
ARMS = ("alone", "as known")
CLEAN = "clean"
Row = dict[str, Any]


def played(agent: Any, scene: Scene, arm: str) -> Row:
    """One episode. What is kept of prompts stays for the next one: it begins with the same list."""
    seen: list[Intervention] = []
    inner = agent
    if arm != "alone":
        lock = lock_shown(scene.clean.tools)
        only, shown = [*REWRITING, *ASKING], arm == "as known"
        inner = adapt(agent, lock, only, record=seen.append, as_known=shown, rewrite=True)
    begun = time.process_time()
    episode = Episode(scene)
    converse(inner, episode)
    found = grade(episode)
    return {
        "passed": found.passed,
        "cause": found.cause,
        "parts": dict(Counter(one.part for one in seen)),
        "seconds": round(time.process_time() - begun, 1),
    }


def rounds(each: int) -> list[list[Cell]]:
    """The cells by round: one task of one kind, clean and under every shift that it can have."""
    cells = make_plan(
        select(
            Selection(
                worlds=("poi",),
                kinds=KINDS,
                shifts=SHIFTS,
                severities=(SEVERITY,),
                tasks=each,
                pool="test",
                placebo=False,
            )
        )
    ).cells
    tasks = list(dict.fromkeys(cell.lineage for cell in cells))
    return [[cell for cell in cells if cell.lineage == task] for task in tasks]


def shift_of(cell: Cell) -> str:
    """The shift of a cell."""
    return cell.stack.split(":", maxsplit=1)[0] or CLEAN


def run(each: int, minutes: float, file: Path) -> dict[str, Row]:
    """Plays what the file of rows has not yet, up to a time."""
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = file.read_text().splitlines() if file.exists() else []
    rows: dict[str, Row] = {row.pop("key"): row for row in map(json.loads, lines)}
    until = time.time() + 60 * minutes
    agents = {model: make_agent(model) for model in MODELS}
    todo = [
        (model, cell, arm)
        for some in rounds(each)
        for model in MODELS
        for cell in some
        for arm in ARMS
    ]
    with file.open("a") as out, progress("episodes") as watch:
        for number, (model, cell, arm) in enumerate(todo):
            key = f"{model}|{arm}|{shift_of(cell)}|{cell.lineage}"
            if key not in rows and time.time() < until:
                rows[key] = played(agents[model], build(cell), arm)
                out.write(json.dumps({"key": key, **rows[key]}) + "\n")
                out.flush()
            watch(number + 1, len(todo))
    return rows


# -- figures ---------------------------------------------------------------------------------------


def passed_of(rows: dict[str, Row], model: str, arm: str, shift: str = "") -> dict[str, bool]:
    """Which scenes were passed, by shift and task; all shifted ones where no shift is given.

    Only scenes that were played in every arm count.
    """
    found: dict[str, bool] = {}
    for key, row in rows.items():
        one, in_arm, of, task = key.split("|")
        if (one, in_arm) != (model, arm) or of != (shift or of) or (not shift and of == CLEAN):
            continue
        if all(f"{model}|{other}|{of}|{task}" in rows for other in ARMS):
            found[f"{of}|{task}"] = bool(row["passed"])
    return found


def share(passed: dict[str, bool]) -> str:
    """How many were passed, with the interval in percent."""
    if not passed:
        return ""
    found = wilson(sum(passed.values()), len(passed))
    return f"{sum(passed.values())} of {len(passed)} [{found.low:.0%}, {found.high:.0%}]"


def by_task(passed: dict[str, bool]) -> dict[str, list[float]]:
    """The scores of each task."""
    found: dict[str, list[float]] = {}
    for key, good in passed.items():
        found.setdefault(key.split("|")[1], []).append(float(good))
    return found


def gain(rows: dict[str, Row], model: str, arm: str) -> str:
    """What the layer wins over the model alone, in points, with its paired interval by task."""
    if arm == "alone":
        return ""
    found = paired_drop(*(by_task(passed_of(rows, model, one)) for one in (arm, "alone")))
    return f"{100 * found.estimate:+z.0f} [{100 * found.low:z.0f}, {100 * found.high:z.0f}]"


def tables(rows: dict[str, Row]) -> str:
    """The table of the page."""
    shown = (CLEAN, *SHIFTS)
    lines = [
        "Scenes passed, with 95% Wilson intervals; the gain is over the model alone, in points, "
        "with the paired interval by task.",
        "",
        f"| model | in | all shifted | gain | {' | '.join(shown)} | CPU s |",
        "|---" * (len(shown) + 5) + "|",
    ]
    for model in MODELS:
        for arm in ARMS:
            some = [row for key, row in rows.items() if key.startswith(f"{model}|{arm}|")]
            spent = sum(row["seconds"] for row in some) / max(len(some), 1)
            cells = [share(passed_of(rows, model, arm, shift)) for shift in shown]
            whole = share(passed_of(rows, model, arm))
            lines.append(
                f"| {model} | {arm} | {whole} | {gain(rows, model, arm)} "
                f"| {' | '.join(cells)} | {spent:.1f} |"
            )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--each", type=int, default=12, help="tasks")
    parser.add_argument("--minutes", type=float, default=1e6)
    parser.add_argument("--rows", type=Path, default=Path("build/adapt-models.jsonl"))
    parser.add_argument("--pages", action="store_true")
    options = parser.parse_args()
    if not options.pages:
        rows = run(options.each, options.minutes, options.rows)
        FILE.write_text(json.dumps(rows, separators=(",", ":")) + "\n")
    found = tables(json.loads(FILE.read_text()))
    page = HERE / "README.md"
    text = page.read_text()
    if START in text:
        before, after = text.index(START) + len(START), text.index(END)
        page.write_text(f"{text[:before]}\n\n{found}\n{text[after:]}")
    print(found)


if __name__ == "__main__":
    main()

"""Writes the tables of `studies/shipped/README.md` from the runs.

    python studies/shipped/page.py RUNS

Prints them as Markdown, of the runs that are there; the sentences around them are written by hand.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from toolshift.api import report_of
from toolshift.measure.statistics import paired_drop
from toolshift.runs.run_folder import RunFolder

HERE = Path(__file__).parent
RUNS = (
    "severities", "realistic", "forgotten", "apart", "parameters", "renamed", "renamed_before",
    "filled", "filled_realistic",
)  # fmt: skip
KEPT = ("forgotten", "apart", "parameters", "renamed")
"""The runs that have `mended`, then `smol:paft`, on the tasks of `filled`."""
OPAQUE, TEXT = "identity_erasure:3", "described_by_data:3"
LISTS = ("", "shuffled_list:2", "other_tools_last:2", "other_tools:2")
"""The lists of apart.sh: as trained, in another order, tools of another domain behind, and both."""
PARAMETERS = {
    "opaque_parameters:3": "other names",
    "retold_parameters:3": "other texts",
    "parameter_rename:3": "synonyms",
}
"""The changes of parameters.sh and of `renamed`, and how their tables call them."""


def told(rate: Any) -> str:
    """A share as percent with its interval."""
    return f"{100 * rate.estimate:.0f} [{100 * rate.low:.0f}, {100 * rate.high:.0f}]"


def shares(run: RunFolder, name: str) -> Iterator[list[str]]:
    """What each agent passes, by severity or tier."""
    report = report_of(run)
    yield [name, *(agent.name for agent in report.agents)]
    rows: dict[str, list[str]] = {}
    for agent in report.agents:
        cells = agent.tiers if name.endswith("realistic") else agent.severities
        for group in (agent.clean, agent.placebo, *cells):
            if group is not None and group.episodes:
                rows.setdefault(group.label, []).append(told(group.accuracy))
    yield from ([label, *figures] for label, figures in rows.items())


def differences(run: RunFolder) -> Iterator[list[str]]:
    """What the second agent passes more than the first, by shift, paired by task."""
    scores: dict[str, dict[str, dict[str, list[float]]]] = defaultdict(dict)
    for record in run.records():
        cell = run.cell(record)
        shift = cell.stack or "clean"
        by_task = scores[shift].setdefault(record.agent, {})
        by_task.setdefault(cell.task, []).append(float(record.grade.passed))
    first, second = (agent["name"] for agent in run.manifest.agents)
    yield ["shift", first, second, "difference", "tasks"]
    for shift, agents in scores.items():
        before, after = agents[first], agents[second]
        passed = (f"{sum(map(sum, each.values())):.0f}" for each in (before, after))
        yield [shift, *passed, told(paired_drop(after, before)), str(len(before))]


def parts_of(stack: str | None) -> frozenset[str]:
    """The shifts of a stack."""
    return frozenset(filter(None, (stack or "").split("+")))


def scores_by_parts(
    run: RunFolder, agent: str = ""
) -> dict[frozenset[str], dict[str, list[float]]]:
    """The scores of each task, by the shifts that are composed; of one agent, or of all."""
    scores: dict[frozenset[str], dict[str, list[float]]] = defaultdict(dict)
    for record in run.records():
        if agent and record.agent != agent:
            continue
        cell = run.cell(record)
        scores[parts_of(cell.stack)].setdefault(cell.task, []).append(float(record.grade.passed))
    return scores


def apart(run: RunFolder) -> Iterator[list[str]]:
    """What each list costs the one agent, with the descriptions it knows and with new ones."""
    scores = scores_by_parts(run)
    head = (
        "list",
        "descriptions",
        "passed",
        "lost by the list",
        "lost by the descriptions",
        "tasks",
    )
    yield list(head)
    for text in ("", TEXT):
        for order in LISTS:
            here, known_list, known_text = (
                scores[frozenset(filter(None, parts))]
                for parts in ((OPAQUE, text, order), (OPAQUE, text), (OPAQUE, order))
            )
            yield [
                order or "as trained",
                "new" if text else "as trained",
                f"{sum(map(sum, here.values())):.0f}",
                told(paired_drop(known_list, here)) if order else "",
                told(paired_drop(known_text, here)) if text else "",
                str(len(here)),
            ]


def parameters(run: RunFolder) -> Iterator[list[str]]:
    """What other names and texts of parameters cost the one agent, by what else is new.

    Of each first call too: whether it names the tool that the task begins with, and whether the
    tool took its arguments.
    """
    scores, begun, taken = (
        scores_by_parts(run),
        Counter[frozenset[str]](),
        Counter[frozenset[str]](),
    )
    for record in run.records():
        cell = run.cell(record)
        parts = parts_of(cell.stack)
        first = next((step for step in record.steps if step.kind == "call"), None)
        if first is not None:
            begun[parts] += first.name == run.scene(cell).calls[0].name
            taken[parts] += bool(first.true)
    yield [
        "tools",
        "parameters",
        "passed",
        "lost by the parameters",
        "right tool first",
        "taken",
        "tasks",
    ]
    for parts, here in scores.items():
        rest = parts.difference(PARAMETERS)
        changed = [name for part, name in PARAMETERS.items() if part in parts]
        same = scores.get(rest) if changed else None
        yield [
            " + ".join(f"`{part}`" for part in sorted(rest)) or "as trained",
            " and ".join(changed) or "as trained",
            f"{sum(map(sum, here.values())):.0f}",
            told(paired_drop(same, here)) if same else "",
            str(begun[parts]),
            str(taken[parts]),
            str(len(here)),
        ]


def beside_kept(run: RunFolder) -> Iterator[list[str]]:
    """What the one agent passes more than `mended` did in the kept runs, paired by task.

    A stack that several of them have is read from the first.
    """
    kept: dict[frozenset[str], dict[str, list[float]]] = {}
    for name in KEPT:
        for parts, scores in scores_by_parts(RunFolder.read(HERE / name), "smol:paft").items():
            kept.setdefault(parts, scores)
    yield ["shift", "`mended`", f"`{run.manifest.agents[0]['name']}`", "difference", "tasks"]
    for parts, after in scores_by_parts(run).items():
        before = kept.get(parts)
        if before is None:
            continue
        passed = (f"{sum(map(sum, each.values())):.0f}" for each in (before, after))
        shift = "+".join(sorted(parts)) or "clean"
        yield [shift, *passed, told(paired_drop(after, before)), str(len(before))]


TABLES = {
    "filled": beside_kept,
    "forgotten": differences,
    "apart": apart,
    "parameters": parameters,
    "renamed": parameters,
    "renamed_before": parameters,
}
"""Of the runs that have a table of their own."""


def main(folder: Path) -> None:
    """Prints a table for each run that is there."""
    there = [name for name in RUNS if (folder / name).is_dir()]
    if not there:
        sys.exit(f"{folder} has no run of {', '.join(RUNS)}: name the folder that run.sh wrote")
    for name in there:
        run = RunFolder.read(folder / name)
        of = TABLES.get(name)
        head, *rows = of(run) if of else shares(run, name)
        print(f"\n| {' | '.join(head)} |\n|---|{'---:|' * (len(head) - 1)}")
        for row in rows:
            print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

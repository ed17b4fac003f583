"""Plans over shifts whose own code is broken, and over worlds whose tasks are given."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest
from running import Run

from toolshift.api import evaluate
from toolshift.core.layer import Below, Layer, Memory
from toolshift.core.scene import Scene
from toolshift.core.shift import Change, Rule, Severity, declared, shift
from toolshift.core.solver import Solver
from toolshift.core.tool import Result, Tool
from toolshift.episode.oracle import OracleAgent
from toolshift.report.terminal import as_text
from toolshift.runs.plan import make_plan
from toolshift.runs.suite import Selection, select

EXAMPLE = str(Path(__file__).parents[2] / "examples" / "own_tools" / "tasks.yaml")


def rule_raises(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Raise where it should shift."""
    raise ZeroDivisionError("oh")


@dataclass(frozen=True)
class Tired(Layer):
    """A layer that raises on a call after some that went well."""

    after: int

    def call(self, name: str, arguments: dict[str, object], memory: Memory, below: Below) -> Result:
        if memory["calls"] >= self.after:
            raise KeyError("worn out")
        return below(name, arguments)


def every_call_raises(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Raise as soon as a tool is called."""
    return Change(Tired(0))


def later_call_raises(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Raise at a call that the oracle has no need to make."""
    return Change(Tired(len(scene.calls)))


@pytest.fixture(autouse=True)
def broken() -> Iterator[None]:
    rules: tuple[Rule, ...] = (rule_raises, every_call_raises, later_call_raises)
    for rule in rules:
        shift(tier="interaction", dimension="observation", level=1, imitates="x")(rule)
    yield
    for rule in rules:
        del declared[rule.__name__]


class Doubled(Solver):
    """Makes each call a second time."""

    def perform(self, tool: Tool, arguments: dict[str, Any]) -> tuple[Any, Result]:
        super().perform(tool, arguments)
        self.seen.clear()
        return super().perform(tool, arguments)


class Thorough(OracleAgent):
    """The oracle, but it makes each call twice, and so more calls than the oracle."""

    name = "thorough"
    solver = Doubled


@pytest.mark.parametrize("name", ["rule_raises", "every_call_raises"])
def test_a_broken_shift_is_said_and_the_run_goes_on(name: str) -> None:
    report = evaluate("oracle", shifts=[name, "format_drift"], tasks=3, placebo=False)
    oracle = report.agent()
    assert oracle.clean.accuracy.estimate == 1
    assert [row.label for row in oracle.shifts] == ["format_drift"]
    assert oracle.shifts[0].episodes == 3
    (found,) = report.broken
    assert (found.shift, found.scenes, found.episodes) == (f"{name}:2", 3, 0)
    assert found.said.split(" (")[0].endswith(("ZeroDivisionError: oh", "KeyError: 'worn out'"))
    assert not report.skipped
    first_screen = as_text(report).splitlines()
    assert len(first_screen) <= 25
    assert any(f"Broken: {name}:2 raised in {found.scene}" in line for line in first_screen)


def test_a_run_of_nothing_but_a_broken_shift_still_has_its_clean_scenes() -> None:
    plan = make_plan(select(Selection(shifts=("rule_raises",), tasks=2, placebo=False)))
    assert [(bool(row.cell.shifts), row.broken) for row in plan.rows] == [
        (False, False), (False, False), (True, True), (True, True)
    ]  # fmt: skip


def test_a_layer_that_raises_in_an_episode_voids_it_and_blames_no_agent() -> None:
    shifts = ["later_call_raises"]
    report = evaluate(["oracle", Thorough()], shifts=shifts, tasks=3, placebo=False)
    oracle, thorough = report.agents
    assert oracle.shifts[0].accuracy.estimate == 1
    (row,) = thorough.shifts
    assert (row.void, row.void_kinds) == (3, {"broken_shift": 3})
    (found,) = report.broken
    assert (found.scenes, found.episodes) == (0, 3)
    assert "Tired.call raised KeyError: 'worn out' (test_plan.py, line" in found.said


def test_the_exit_code_says_that_a_shift_was_broken(toolshift: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    asked = ["run", "--agent", "oracle", "--shift", "rule_raises", "--shift", "format_drift"]
    asked += ["--tasks", "2", "--no-placebo", "--out", str(out)]
    code, text, err = toolshift(*asked)
    assert code == 1
    assert "Error: rule_raises:2 is broken: shift rule_raises raised ZeroDivisionError: oh" in err
    assert "All other scenes were run" in err
    assert "results come in another format" in text
    code, text, _ = toolshift("report", str(out), "--json")  # from what is stored
    assert (code, json.loads(text)["broken"][0]["shift"]) == (0, "rule_raises:2")


@pytest.mark.parametrize("suite", ["quick", "standard"])
def test_a_world_of_given_tasks_works_with_a_whole_suite(suite: str) -> None:
    plan = make_plan(select(Selection(suite, worlds=(EXAMPLE,))))
    assert len({cell.lineage for cell in plan.cells}) == 5
    assert not any(row.not_applicable for row in plan.rows if not row.cell.shifts)
    reasons = {row.not_applicable for row in plan.skipped}
    assert "it draws other tasks or entities, and the tasks of this world are given" in reasons


def test_what_does_not_fit_is_counted_on_the_first_screen() -> None:
    shifts = ["unseen_domain", "rule_update", "merged_tools", "format_drift"]
    text = as_text(
        evaluate("oracle", worlds=[EXAMPLE], shifts=shifts, placebo=False), 400, details=True
    )
    lines = [line for line in text.splitlines() if line.startswith("Left out")]
    assert lines[0].startswith("Left out: 3 shifts apply to none of these tasks (2: it draws other")
    # format_drift, where a task has texts alone
    assert lines[0].index("1 apply only to some of them") > 0
    assert "3 changes apply to no task" in text
    assert "-" in next(line for line in text.splitlines() if line.startswith("results come in"))

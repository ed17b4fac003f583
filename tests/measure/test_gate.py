"""The gate on real run folders: its verdicts, what makes it inconclusive, and its exit codes."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable
from math import nan
from pathlib import Path
from xml.etree import ElementTree as Tree

import msgspec
import pytest
from running import Run

from toolshift.agents.catalog import contestants
from toolshift.api import run_spec
from toolshift.core.errors import UsageError
from toolshift.core.tool import JSON
from toolshift.measure.gate import (
    Family,
    Gate,
    Rules,
    certain_to_fail,
    check_rules,
    in_percent,
    in_points,
    judge,
)
from toolshift.measure.statistics import Interval
from toolshift.report.gate_markdown import gate_markdown
from toolshift.report.junit import junit
from toolshift.runs.cell import Cell
from toolshift.runs.execute import RunSpec
from toolshift.runs.plan import make_plan
from toolshift.runs.run_folder import Record, RunFolder
from toolshift.runs.suite import Selection, select

ROOT = Path(__file__).parents[2]
TASKS = 80
SHIFTS = ("identity_erasure:2", "redirect:2")
Change = Callable[[Cell, Record], Record | None]


def play(path: Path, agent: str, tasks: int = TASKS, shifts: tuple[str, ...] = SHIFTS) -> RunFolder:
    plan = make_plan(select(Selection(shifts=shifts, tasks=tasks)))
    run_spec(RunSpec(plan, contestants([agent]), path))
    return RunFolder.read(path)


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return play(tmp_path_factory.mktemp("gate") / "main", "oracle")


def changed(baseline: RunFolder, path: Path, change: Change) -> RunFolder:
    """A copy of a run in which some episodes ended otherwise, or are missing."""
    run_spec(RunSpec(baseline.plan, contestants(["oracle"]), path))
    folder = RunFolder.read(path)
    kept = [change(folder.cell(record), record) for record in folder.records()]
    folder.write("episodes.jsonl", b"".join(JSON.encode(one) + b"\n" for one in kept if one))
    return folder


def failed(record: Record) -> Record:
    grade = msgspec.structs.replace(record.grade, passed=False, cause="wrong_tool")
    return msgspec.structs.replace(record, grade=grade)


def void(record: Record) -> Record:
    grade = msgspec.structs.replace(record.grade, passed=False, void=True, cause="infrastructure")
    return msgspec.structs.replace(record, end="infrastructure", grade=grade)


def two_tasks(cell: Cell) -> bool:
    return cell.kind in ("listing", "hours") and cell.index == 3


def family(gate: Gate, label: str) -> Family:
    return next(each for each in (*gate.families, *gate.shifts) if each.label == label)


# -- verdicts ----------------------------------------------------------------------------------


def test_the_same_agent_passes_in_every_family(baseline: RunFolder) -> None:
    gate = judge(baseline, baseline, Rules(5))
    assert [each.label for each in gate.families] == [
        "clean", "perception", "interaction", "overall",
    ]  # fmt: skip
    assert {each.verdict for each in gate.families} == {"pass"}
    assert all(each.sentence.startswith("pass: +0.0 [") for each in gate.families)
    assert gate.verdict == "pass"
    assert gate.exit_code() == 0
    assert "is compared with itself" in " ".join(gate.notes)


def test_a_weakness_fails_its_tier_and_no_other(baseline: RunFolder, tmp_path: Path) -> None:
    gate = judge(baseline, play(tmp_path / "new", "memorises_names"), Rules(5))
    assert family(gate, "perception").verdict == "fail"
    assert family(gate, "perception").sentence == (
        "fail: -100.0 [-100.0, -92.6] points, so it is worse by more than 5"
    )
    assert family(gate, "clean").verdict == "pass"
    assert gate.verdict == "fail"
    assert "perception" in gate.sentence
    assert "clean" not in gate.sentence
    assert gate.exit_code() == 1


def test_a_change_at_the_margin_is_said_to_need_another_one(
    baseline: RunFolder, tmp_path: Path
) -> None:
    every = [cell.lineage for cell in baseline.plan.cells if not cell.shifts]
    lost = set(every[:4])  # five in a hundred
    worse = changed(
        baseline,
        tmp_path / "new",
        lambda cell, r: failed(r) if cell.lineage in lost and not cell.shifts else r,
    )
    clean = family(judge(baseline, worse, Rules(5)), "clean")
    assert (clean.verdict, clean.more_tasks) == ("inconclusive", None)
    assert clean.sentence.endswith("would decide; choose another margin")
    wider = family(judge(baseline, worse, Rules(8)), "clean")
    assert wider.verdict == "inconclusive"
    assert wider.more_tasks is not None
    assert f"about {wider.more_tasks:,} more tasks would decide" in wider.sentence


def test_what_fails_now_is_lost_and_what_passes_now_is_gained(
    baseline: RunFolder, tmp_path: Path
) -> None:
    def breaks(cell: Cell) -> bool:
        return [each.shift for each in cell.shifts] == ["redirect"] and cell.index < 2

    worse = changed(baseline, tmp_path / "new", lambda cell, r: failed(r) if breaks(cell) else r)
    broken = {r.episode for r in worse.records() if breaks(worse.cell(r))}
    lost = family(judge(baseline, worse, Rules(50)), "interaction")
    assert (lost.lost, lost.gained) == (len(broken), 0)
    assert len(lost.examples) == 5
    assert set(lost.examples) <= broken
    assert lost.candidate < lost.baseline == 1
    assert lost.change.estimate == pytest.approx(lost.candidate - 1)
    gained = family(judge(worse, baseline, Rules(50)), "interaction")
    assert (gained.lost, gained.gained, gained.examples) == (0, len(broken), [])
    assert gained.change.estimate == pytest.approx(-lost.change.estimate)
    by_shift = family(judge(baseline, worse, Rules(50)), "redirect")
    assert (by_shift.gated, by_shift.lost) == (False, len(broken))


@pytest.mark.parametrize(
    ("by", "families", "shown"),
    [
        ("tier", ["clean", "perception", "interaction", "overall"], 2),
        ("dimension", ["clean", "action", "observation", "overall"], 2),
        ("shift", ["clean", "identity_erasure", "redirect", "overall"], 0),
        ("overall", ["clean", "overall"], 2),
    ],
)
def test_what_makes_a_family_can_be_chosen(
    baseline: RunFolder, by: str, families: list[str], shown: int
) -> None:
    gate = judge(baseline, baseline, Rules(5, by=by))
    assert sorted(each.label for each in gate.families) == sorted(families)
    assert all(each.gated for each in gate.families)
    assert len(gate.shifts) == shown
    assert not any(each.gated for each in gate.shifts)
    assert (gate.confidence, gate.margin, gate.max_void) == (0.9, 5, 5)


@pytest.mark.parametrize("margin", [0.25, 99.9])
def test_margins_up_to_their_limits_are_taken(margin: float) -> None:
    check_rules(Rules(margin))


@pytest.mark.parametrize("margin", [0, -1, 0.249, 100])
def test_margins_beyond_their_limits_are_refused(margin: float) -> None:
    with pytest.raises(UsageError, match="points of accuracy"):
        check_rules(Rules(margin))


def test_a_share_given_as_a_margin_is_explained() -> None:
    with pytest.raises(UsageError, match=r"0.05 is one task in 2,000; for 5 points write 5"):
        check_rules(Rules(0.05))


@pytest.mark.parametrize(("max_void", "fits"), [(0, True), (100, True), (-1, False), (101, False)])
def test_the_share_of_void_scenes_is_a_percentage(max_void: float, fits: bool) -> None:
    if fits:
        check_rules(Rules(5, max_void=max_void))
        return
    with pytest.raises(UsageError, match="from 0 to 100"):
        check_rules(Rules(5, max_void=max_void))


def test_changes_and_rates_in_words() -> None:
    assert in_points(Interval(-0.012, -0.039, 0.014, "exact", 80)) == "-1.2 [-3.9, +1.4]"
    assert in_points(Interval(0.0, -0.0001, 0.0, "exact", 80)) == "+0.0 [+0.0, +0.0]"
    assert in_points(Interval(nan, nan, nan, "exact", 0)) == "not known"
    assert (in_percent(0.756), in_percent(nan)) == ("76%", "")


def test_void_scenes_do_not_hide_what_even_the_best_case_fails(
    baseline: RunFolder, tmp_path: Path
) -> None:
    worse = changed(
        baseline,
        tmp_path / "new",
        lambda cell, r: r if not cell.shifts else void(r) if cell.index % 3 == 0 else failed(r),
    )
    verdict = family(judge(baseline, worse, Rules(5)), "perception")
    assert (verdict.verdict, verdict.scored < verdict.scenes) == ("fail", True)
    assert "even if" in verdict.sentence


def test_a_loss_of_clean_accuracy_alone_fails(baseline: RunFolder, tmp_path: Path) -> None:
    worse = changed(
        baseline,
        tmp_path / "new",
        lambda cell, r: r if cell.shifts or cell.index % 3 else failed(r),
    )
    gate = judge(baseline, worse, Rules(5))
    assert family(gate, "clean").verdict == "fail"
    assert family(gate, "perception").verdict == "pass"
    assert gate.exit_code() == 1


def test_few_tasks_are_inconclusive_and_the_number_asked_for_decides(tmp_path: Path) -> None:
    few = play(tmp_path / "few", "oracle", tasks=20, shifts=("redirect:2",))
    gate = judge(few, few, Rules(5))
    assert gate.verdict == "inconclusive"
    assert gate.exit_code() == 3
    assert (gate.exit_code("pass"), gate.exit_code("fail")) == (0, 1)
    asked = max(each.more_tasks or 0 for each in gate.families)
    assert f"about {asked:,} more tasks" in gate.sentence
    many = play(tmp_path / "many", "oracle", tasks=20 + asked, shifts=("redirect:2",))
    assert judge(many, many, Rules(5)).verdict == "pass"


# -- what is void or missing -------------------------------------------------------------------


def test_void_episodes_never_pass_in_silence(baseline: RunFolder, tmp_path: Path) -> None:
    """Two of 80 are under the limit, but as failures they would be too much."""
    flaky = changed(baseline, tmp_path / "new", lambda cell, r: void(r) if two_tasks(cell) else r)
    gate = judge(baseline, flaky, Rules(5, max_void=5))
    clean = family(gate, "clean")
    assert (clean.scenes, clean.scored) == (80, 78)
    assert clean.change.estimate == 0
    assert clean.worst
    assert clean.worst.estimate < 0
    assert clean.verdict == "inconclusive"
    assert "as failures" in clean.sentence
    assert judge(baseline, flaky, Rules(20, max_void=5)).verdict == "pass"


@pytest.mark.parametrize("loss", ["void", "missing"])
def test_too_many_lost_episodes_decide_nothing(
    baseline: RunFolder, tmp_path: Path, loss: str
) -> None:
    broken = changed(
        baseline,
        tmp_path / "new",
        lambda cell, r: (void(r) if loss == "void" else None) if cell.index % 2 else r,
    )
    gate = judge(baseline, broken, Rules(40))
    assert gate.verdict == "error"
    assert "void or missing" in family(gate, "overall").sentence
    assert [gate.exit_code(counts_as) for counts_as in ("", "pass", "fail")] == [4, 4, 4]


def test_a_loss_that_is_certain_fails_also_where_another_family_was_not_measured(
    baseline: RunFolder, tmp_path: Path
) -> None:
    broken = changed(
        baseline,
        tmp_path / "new",
        lambda cell, r: void(r) if cell.shifts else failed(r),
    )
    gate = judge(baseline, broken, Rules(5))
    assert "error" in {each.verdict for each in gate.families}
    assert (gate.verdict, gate.exit_code()) == ("fail", 1)


def test_void_episodes_of_the_baseline_are_no_fault_of_the_candidate(
    baseline: RunFolder, tmp_path: Path
) -> None:
    flaky = changed(baseline, tmp_path / "old", lambda cell, r: void(r) if two_tasks(cell) else r)
    gate = judge(flaky, baseline, Rules(5, max_void=5))
    assert family(gate, "clean").worst is None
    assert gate.verdict == "pass"


def test_a_family_that_the_candidate_leaves_out_is_not_passed(
    baseline: RunFolder, tmp_path: Path
) -> None:
    part = play(tmp_path / "new", "oracle", shifts=("redirect:2",))
    gate = judge(baseline, part, Rules(5))
    assert family(gate, "perception").verdict == "error"
    assert gate.exit_code() == 4
    assert any("not in the plan" in note for note in gate.notes)


def test_a_baseline_that_passes_little_is_noted(baseline: RunFolder, tmp_path: Path) -> None:
    low = changed(baseline, tmp_path / "old", lambda cell, r: failed(r) if cell.index % 9 else r)
    gate = judge(low, baseline, Rules(5))
    assert gate.verdict == "pass"
    assert any("few can be lost" in note for note in gate.notes)


@pytest.mark.parametrize("passing", [0, 4])
def test_a_baseline_that_cannot_lose_the_margin_measures_nothing(
    baseline: RunFolder, tmp_path: Path, passing: int
) -> None:
    """An agent that fails everything would pass against it."""
    tasks = list(dict.fromkeys(cell.lineage for cell in baseline.plan.cells))[:passing]
    low = changed(
        baseline, tmp_path / "old", lambda cell, r: r if cell.lineage in tasks else failed(r)
    )
    gate = judge(low, baseline, Rules(5))
    assert {each.verdict for each in gate.families} == {"error"}
    assert f"passes {passing} of 80 scenes" in family(gate, "clean").sentence
    assert "Make a baseline with an agent that works" in family(gate, "clean").sentence
    assert [gate.exit_code(counts_as) for counts_as in ("", "pass", "fail")] == [4, 4, 4]


def test_a_tier_that_the_baseline_fails_is_left_out_and_said(
    baseline: RunFolder, tmp_path: Path
) -> None:
    def no_redirect(cell: Cell, record: Record) -> Record:
        is_redirect = any(applied.shift.startswith("redirect") for applied in cell.shifts)
        return failed(record) if is_redirect else record

    low = changed(baseline, tmp_path / "old", no_redirect)
    gate = judge(low, baseline, Rules(5))
    assert gate.sentence == (
        "pass: nothing is worse by 5 points (clean, perception, overall); not measured: interaction"
    )
    left = family(gate, "interaction")
    assert (left.verdict, left.gated) == ("error", False)
    cases = {case.get("name"): case for case in Tree.fromstring(junit(gate)).iter("testcase")}
    assert cases["interaction"].find("skipped") is not None
    assert left.sentence.startswith("not measured: the baseline passes 0 of 80 scenes")
    assert "| interaction | not measured |" in gate_markdown(gate)


@pytest.mark.parametrize("design", ["sequential", "fixed"])
@pytest.mark.parametrize("old", ["fails", "void"])
def test_no_design_asks_anything_for_a_baseline_of_nothing(
    toolshift: Run, baseline: RunFolder, old: str, design: str, tmp_path: Path
) -> None:
    changed(baseline, tmp_path / "old", lambda cell, r: failed(r) if old == "fails" else void(r))
    words = ("gate", "--agent", "oracle", "--baseline", tmp_path / "old", "--inconclusive", "pass")
    how = ("--margin", "5", "--design", design)
    code, said, _ = toolshift(*words, *how, "--out", "new", "--junit", "gate.xml")
    assert (code, "Gate error: not measured: clean" in said) == (4, True)
    assert not Path("new").exists()
    cases = list(Tree.parse("gate.xml").iter("testcase"))
    assert cases
    assert all(case.find("error") is not None for case in cases)
    code, said, _ = toolshift(*words, "--nothing-lost", "--out", "new", "--json")
    assert (code, json.loads(said)["verdict"], Path("new").exists()) == (4, "error", False)
    code, _, wrong = toolshift(*words, "--margin", "5", "--seal", "plan.json")
    assert (code, Path("plan.json").exists()) == (2, False)
    assert "is not finished" in wrong or "cannot be a baseline" in wrong


def test_a_finished_sequential_run_is_held_to_the_same_rule(
    toolshift: Run, baseline: RunFolder, tmp_path: Path
) -> None:
    words = ("gate", "--agent", "oracle", "--baseline", baseline.path, "--margin", "5")
    assert toolshift(*words, "--out", "new")[0] == 0
    low = changed(baseline, tmp_path / "old", lambda cell, r: failed(r))
    gate = judge(low, RunFolder.read(Path("new")), Rules(5))
    assert (gate.verdict, {each.verdict for each in gate.families}) == ("error", {"error"})


def test_the_rows_of_a_sequential_gate_add_up(
    toolshift: Run, baseline: RunFolder, tmp_path: Path
) -> None:
    changed(baseline, tmp_path / "old", lambda cell, r: failed(r) if cell.index % 3 else r)
    words = ("gate", "--agent", "oracle", "--baseline", tmp_path / "old", "--margin", "5")
    rows = json.loads(toolshift(*words, "--out", "new", "--json")[1])["families"]
    assert rows
    for row in rows:
        assert row["candidate"] - row["baseline"] == pytest.approx(row["change"]["estimate"])


def test_runs_without_a_common_scene_are_refused(baseline: RunFolder, tmp_path: Path) -> None:
    plan = make_plan(select(Selection(shifts=("redirect:2",), tasks=2, seed=9)))
    run_spec(RunSpec(plan, contestants(["oracle"]), tmp_path / "new"))
    with pytest.raises(UsageError, match="no scene in common"):
        judge(baseline, RunFolder.read(tmp_path / "new"), Rules(5))


# -- the command -------------------------------------------------------------------------------


def test_the_command_runs_the_plan_of_the_baseline(toolshift: Run, baseline: RunFolder) -> None:
    words = ("gate", "--agent", "memorises_names", "--baseline", baseline.path, "--margin", "5")
    files = ("--junit", "out/gate.xml", "--markdown", "out/gate.md")
    code, out, _ = toolshift(*words, "--out", "new", *files)
    assert code == 1
    assert "Gate fail: worse by more than 5 points: perception" in out
    assert RunFolder.read(Path("new")).plan == baseline.plan
    assert "<failure" in Path("out/gate.xml").read_text()
    assert "ToolShift gate: fail" in Path("out/gate.md").read_text()
    code, out, _ = toolshift("gate", "new", "--baseline", baseline.path, "--margin", "5", "--json")
    assert code == 1
    assert json.loads(out)["verdict"] == "fail"


def test_a_stopped_gate_goes_on_where_it_was(toolshift: Run, baseline: RunFolder) -> None:
    words = ("gate", "--agent", "oracle", "--baseline", baseline.path, "--margin", "5")
    assert toolshift(*words, "--out", "new")[0] == 0
    episodes = Path("new/episodes.jsonl")
    whole = episodes.read_bytes()
    episodes.write_bytes(b"".join(whole.splitlines(keepends=True)[:50]))
    assert toolshift("gate", "new", *words[3:])[0] == 4  # unfinished
    assert toolshift(*words, "--out", "new")[0] == 0
    assert episodes.read_bytes() == whole


def test_what_an_inconclusive_gate_counts_as_can_be_chosen(toolshift: Run) -> None:
    words = ("--shift", "redirect:2", "--tasks", "4", "--no-placebo")
    assert toolshift("run", "--agent", "oracle", *words, "--out", "old")[0] == 0
    gate = ("gate", "old", "--baseline", "old", "--margin", "5")
    assert toolshift(*gate)[0] == 3
    assert toolshift(*gate, "--inconclusive", "pass")[0] == 0
    assert toolshift(*gate, "--inconclusive", "fail")[0] == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--margin", "0"), "above 0 and under 100"),
        (("--margin", "nan"), "above 0 and under 100"),
        (("--margin", "5", "--by", "tiers"), "did you mean tier"),
        (("--margin", "5", "--max-void", "101"), "from 0 to 100"),
        (("--margin", "5"), "name the candidate"),
        (("--margin", "5", "--agent", "oracel", "--out", "new"), "did you mean oracle"),
        (("--margin", "5", "--baseline-agent", "x", "--agent", "oracle"), "unknown agent"),
    ],
)
def test_what_cannot_be_asked_is_said(
    toolshift: Run, baseline: RunFolder, words: tuple[str, ...], said: str
) -> None:
    code, _, err = toolshift("gate", "--baseline", baseline.path, *words)
    assert code == 2
    assert said in err


def test_the_baseline_is_not_run_over(toolshift: Run, baseline: RunFolder) -> None:
    words = ("gate", "--agent", "oracle", "--margin", "5")
    code, _, err = toolshift(*words, "--baseline", baseline.path, "--out", baseline.path)
    assert code == 2
    assert "is the baseline" in err


def test_the_simulation_of_the_errors_runs() -> None:
    script = ROOT / "benchmarks" / "gate_error.py"
    done = subprocess.run(
        [sys.executable, str(script), "--quick", "--builds", "30"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert '"failing": 0' in done.stdout


# -- ending early --------------------------------------------------------------------------------


# These three draw each share of failures once.
@pytest.mark.parametrize(
    "seed", [0, 1, 5, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3, 4))]
)
def test_what_is_certain_to_fail_fails_whatever_is_left(
    seed: int, baseline: RunFolder, tmp_path: Path
) -> None:
    draw = random.Random(seed)
    share = draw.choice([0.1, 0.3, 0.6])

    def part(cell: Cell, record: Record) -> Record | None:
        if draw.random() < 0.5:
            return None
        return failed(record) if draw.random() < share else record

    half = changed(baseline, tmp_path / "half", part)
    ended = {record.episode: record for record in half.records()}
    best = changed(
        baseline, tmp_path / "best", lambda cell, record: ended.get(record.episode, record)
    )
    fails = judge(baseline, best, Rules(5.0)).verdict == "fail"
    assert certain_to_fail(baseline, half, Rules(5.0)) == fails
    assert fails == (share > 0.1)


def test_a_run_ends_when_the_verdict_is_certain(
    baseline: RunFolder, toolshift: Run, tmp_path: Path
) -> None:
    words = ("gate", "--agent", "memorises_names", "--baseline", str(baseline.path))
    words = (*words, "--margin", "5", "--early", "--out", "new")
    code, said, errors = toolshift(*words)
    planned = len(baseline.plan.cells)
    played = len(list(RunFolder.read(Path("new")).records()))
    assert code == 1
    assert f"Ended early: {played} of {planned} episodes were run" in errors
    assert played < planned
    assert "fail: worse by more than 5 points even if" in said
    assert toolshift(*words)[0] == 1  # nothing more is run
    assert len(list(RunFolder.read(Path("new")).records())) == played
    code, said, errors = toolshift(*(word for word in words if word != "--early"))
    assert (code, "Ended early" in errors) == (1, False)
    assert len(list(RunFolder.read(Path("new")).records())) == planned


def test_a_finished_run_cannot_be_ended(baseline: RunFolder, toolshift: Run) -> None:
    path = str(baseline.path)
    code, _, errors = toolshift("gate", path, "--baseline", path, "--margin", "5", "--early")
    assert (code, "--early" in errors) == (2, True)

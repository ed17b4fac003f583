"""The exact gate: what is lost, by fact or beyond chance."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from xml.etree import ElementTree as Tree

import pytest
from msgspec.structs import replace
from surfing import run_into

from toolshift.episode.grade import AT_WILL
from toolshift.measure.nothing_lost import (
    fisher_p_value,
    judge_losses,
    loss_in_words,
    nothing_to_lose,
    tarone_threshold,
)
from toolshift.report.gate_markdown import losses_markdown
from toolshift.report.junit import losses_junit
from toolshift.runs.run_folder import RunFolder


def played(path: Path, trials: int, failing: int = 0, void: bool = False) -> RunFolder:
    """A run in which the first scene fails so many trials."""
    run_into(path, "oracle", tasks=3, shifts=("redirect",), trials=trials, placebo=False)
    folder = RunFolder.read(path)
    records = list(folder.records())
    scene = folder.cell(records[0]).lineage
    left = failing
    for place, record in enumerate(records):
        cell = folder.cell(record)
        if left and cell.lineage == scene and not cell.shifts:
            left -= 1
            grade = replace(record.grade, passed=False, void=void, cause="budget")
            records[place] = replace(record, grade=grade)
    folder.rewrite(records)
    return RunFolder.read(path)


@pytest.mark.parametrize(
    ("trials", "failing", "verdict"),
    [(1, 0, "pass"), (1, 1, "fail"), (5, 1, "pass"), (5, 5, "fail"), (5, 4, "fail"),
     (2, 2, "inconclusive")],
)  # fmt: skip
def test_a_loss_counts_as_a_fact_or_beyond_chance(
    tmp_path: Path, trials: int, failing: int, verdict: str
) -> None:
    before, after = played(tmp_path / "a", trials), played(tmp_path / "b", trials, failing)
    found = judge_losses(before, after)
    assert found.verdict == verdict
    assert len(found.changed) == bool(failing)
    if failing:
        (scene,) = found.changed
        assert "budget" in loss_in_words(scene)
        for text in (losses_junit(found, "runs/b"), losses_markdown(found, "runs/b")):
            assert f"toolshift trace runs/b {scene.episode}" in text
        case = next(Tree.fromstring(losses_junit(found, "b").encode()).iter("testcase"))
        assert (case.find("failure") is not None) == (verdict == "fail")


def test_a_passed_scene_without_a_verdict_is_no_pass(tmp_path: Path) -> None:
    found = judge_losses(played(tmp_path / "a", 1), played(tmp_path / "b", 1, 1, void=True))
    assert found.verdict == "error"
    assert found.unscored == 1


@pytest.mark.parametrize("loss", ["void", "missing"])
def test_a_baseline_that_lacks_verdicts_is_an_error(tmp_path: Path, loss: str) -> None:
    whole, part = played(tmp_path / "a", 1), played(tmp_path / "b", 1)
    records = list(part.records())
    kept = records[:2]
    if loss == "void":
        kept += [
            replace(r, grade=replace(r.grade, passed=False, void=True, cause="infrastructure"))
            for r in records[2:]
        ]
    part.rewrite(kept)
    part = RunFolder.read(part.path)
    found = judge_losses(part, whole)
    assert (found.verdict, found.exit_code()) == ("error", 4)
    assert f"{len(records) - 2} of {len(records)} episodes" in found.sentence
    assert "run the baseline again" in found.sentence
    found = judge_losses(part, whole, max_void=100)
    assert found.verdict == "pass"
    assert "have no verdict in the baseline" in found.notes[-1]
    assert nothing_to_lose(part, "oracle") is not None
    assert nothing_to_lose(whole, "oracle") is None


def test_trials_without_a_verdict_are_counted(tmp_path: Path) -> None:
    """One scored trial of five can show no loss."""
    before, after = played(tmp_path / "a", 5), played(tmp_path / "b", 5)
    first = {}
    for record in after.records():
        first.setdefault((after.cell(record).lineage, after.cell(record).stack), record)
    after.rewrite(list(first.values()))
    found = judge_losses(before, RunFolder.read(after.path))
    assert (found.verdict, found.unscored) == ("error", 0)
    assert "episodes of scenes that passed have no verdict now" in found.sentence


def test_fewer_trials_than_the_baseline_lack_nothing(tmp_path: Path) -> None:
    before, after = played(tmp_path / "a", 5), played(tmp_path / "b", 1)
    assert judge_losses(before, after).verdict == "pass"


def test_a_run_against_itself_is_noted(tmp_path: Path) -> None:
    run = played(tmp_path / "a", 1)
    assert "is compared with itself" in judge_losses(run, run).notes[0]


def test_what_is_inconclusive_is_skipped_however_it_counts(tmp_path: Path) -> None:
    before, after = played(tmp_path / "a", 1), played(tmp_path / "b", 1, 1, void=True)
    found = judge_losses(before, after, max_void=50)
    assert found.verdict == "inconclusive"
    (case,) = Tree.fromstring(losses_junit(found, "b", "pass").encode()).iter("testcase")
    skipped = case.find("skipped")
    assert skipped is not None
    assert skipped.get("message") == found.sentence


def test_the_p_values_are_exact() -> None:
    assert fisher_p_value(5, 0, 5, 5) == Fraction(1, 252)
    assert fisher_p_value(5, 0, 5, 4) == Fraction(5, 210)
    assert fisher_p_value(5, 3, 5, 0) == 1
    assert tarone_threshold([Fraction(1, 252)] + [Fraction(1)] * 40) == Fraction(1, 20)
    assert tarone_threshold([Fraction(1, 252)] * 6) == Fraction(1, 120)


@pytest.mark.parametrize("cause", AT_WILL)
@pytest.mark.parametrize("side", ["before", "after"])
def test_a_void_that_an_agent_can_bring_about_is_a_failure(
    tmp_path: Path, cause: str, side: str
) -> None:
    """To be void on purpose never pays: it neither hides a loss, nor makes one of a failure."""
    sound, void = played(tmp_path / "a", 1), played(tmp_path / "b", 1, 1, void=True)
    records = [
        replace(one, grade=replace(one.grade, cause=cause)) if one.grade.void else one
        for one in void.records()
    ]
    void.rewrite(records)
    void = RunFolder.read(void.path)
    if side == "after":
        found = judge_losses(sound, void)
        assert (found.verdict, found.unscored) == ("fail", 0)
        assert found.lost[0].cause == cause
    else:
        found = judge_losses(void, sound)
        assert (found.verdict, found.scenes) == ("pass", len(list(sound.records())) - 1)

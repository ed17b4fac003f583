"""The page of a study: what it computes from an arm's results, and what it says of them."""

import re
import runpy
from math import isnan, nan
from pathlib import Path

import msgspec
import pytest
from toolshift_lab.experiments import HELD_OUT, STUDIES, find_study
from toolshift_lab.findings import POINTS, ArmResult, Findings, _won_back
from toolshift_lab.page import page
from toolshift_lab.plots import accuracy_by_shift
from toolshift_lab.stage import seeds_there, stages

from toolshift.api import evaluate


def _arm(name: str, clean: list[float], change: list[float]) -> ArmResult:
    from toolshift_lab.findings import MEASURES

    measures = {measure: [0.5] * len(clean) for measure in MEASURES}
    measures |= {"clean": clean, "perception": change, "refusal_rate": [nan] * len(clean)}
    seeds = list(range(len(clean)))
    return ArmResult(
        name,
        name,
        seeds,
        measures,
        {"redirect": clean},
        {"hours": clean},
        {"repetition": 3},
        [1.0],
        [9],
        [3],
        [2000],
    )


def test_the_page_gives_intervals_over_seeds_and_says_what_is_exploratory():
    arms = [_arm("a", [0.9, 0.92, 0.94], [-50, -52, -54]), _arm("b", [0.9, 0.9], [nan, -5.0])]
    found = Findings("s", "Why?", "small", True, arms, {}, {}, ["b, seed 1"])
    text = page(found, "toolshift reproduce s")
    assert "92 [87, 97]" in text  # t interval: 92 +- 4.30 * 2 / sqrt(3)
    assert "n.d. (1 of 2 seeds)" in text
    assert "Exploratory" in text
    assert "Not run yet: b, seed 1" in text
    arms = [arms[0], _arm("b", [0.9] * 3, [-5.0] * 3)]
    text = page(Findings("s", "Why?", "small", True, arms, {}, {}, ["b, seed 3"]), "")
    assert "fewer seeds than" not in text, "each has three"
    assert "Exploratory: not all has been run" in text


def test_what_rounds_to_zero_has_no_sign():
    arms = [_arm("a", [0.9, 0.9, 0.9], [-0.2, -0.4, 0.0]), _arm("b", [0.9] * 3, [-0.1, 0.1, -0.3])]
    back = {"b against a": {tier: [-0.001, 0.001, -0.002] for tier in POINTS}}
    text = page(Findings("s", "Why?", "small", True, arms, {}, back, []), "")
    assert " 0 [" in text
    assert not re.search(r"(?<![\d.])-0(?![\d.])", text)


def test_what_is_won_back_is_a_share_of_a_loss_that_there_is():
    static, mended = _arm("a", [0.9] * 3, [-50, -40, -4]), _arm("b", [0.9] * 3, [-10, -50, -1])
    back = _won_back(static, mended)["perception"]
    assert back[:2] == pytest.approx([0.8, -0.25])
    assert isnan(back[2])


def test_what_the_placebo_takes_too_is_no_loss_to_a_shift():
    tiers = ("perception", "interaction", "reasoning")

    def arm(name, beyond, told):
        return msgspec.structs.replace(
            _arm(name, [0.9] * 3, [-50] * 3),
            beyond=dict.fromkeys(tiers, beyond),
            told_apart=dict.fromkeys(tiers, told),
        )

    arms = [arm("a", [-40, -42, -44], [True, True, False]), arm("b", [-10, -21, -11], [False] * 3)]
    back = {"b against a": _won_back(*arms, beyond=True)}
    assert back["b against a"]["perception"] == pytest.approx([0.75, 0.5, 0.75])
    text = page(
        Findings("s", "Why?", "small", True, arms, {}, {}, [], won_back_beyond=back), "toolshift"
    )
    assert "| a | -42 [-47, -37] | 2 of 3 |" in text
    assert "| b against a | 67 [31, 103] |" in text


def test_an_arm_that_trains_on_a_held_out_shift_has_not_been_held_out():
    meets = {arm.name: arm.meets(HELD_OUT) for study in STUDIES.values() for arm in study.arms}
    wide = {"paft-wide", "paft-all-spaced-texts"}
    assert {name for name, met in meets.items() if met} == {*wide, "native-interaction"}


def test_seeds_that_are_there_are_on_the_page_whoever_asked_for_them(tmp_path):
    study = find_study("controls")
    assert seeds_there(study, "small", tmp_path) == 0
    for name in (
        "static-small-seed2-0123abcd",
        "static-smoke-seed7-0123abcd",
        "other-small-seed9-0",
    ):
        (tmp_path / name).mkdir()
    assert seeds_there(study, "small", tmp_path) == 3


def test_controls_say_what_they_ask_for_and_whether_it_is_met():
    arms = [
        _arm("native-interaction", [0.9], [-5.0]),
        _arm("native-reasoning", [0.5], [-5.0]),
        _arm("static", [1.0, 0.75], [-5.0, -5.0]),
        msgspec.structs.replace(
            _arm("renamed", [0.9], [-5.0]),
            shifts={
                "identity_erasure": [0.75],
                "semantic_rename": [1.0],
                "distractor_tools": [0.0],
            },
        ),
    ]
    found = Findings("s", "Why?", "small", True, arms, {}, {}, [], graded_by=["0.3.0"])
    text = page(found, "toolshift reproduce s")
    assert "Graded by ToolShift 0.3.0." in text
    assert "| native-interaction | interaction | 90 | 90 to 90 | 80 | yes |" in text
    assert "| native-reasoning | reasoning | 50 | 50 to 50 | 80 | **no** |" in text
    assert "| static | clean scenes | 88 | 75 to 100 | 90 | **no** |" in text
    assert "| renamed | names that it never saw | 88 | 75 to 100 | 80 | yes |" in text
    assert "not testable at this scale" in text
    assert "Exploratory" in text, "one seed is no claim, also where the study asks for one"


def test_the_base_model_is_measured_once_whatever_the_seeds():
    study = find_study("contrast")
    made = stages(study, "small", 3, Path("w"))
    assert [stage.seed for stage in made if stage.arm.name == "base"] == [0]
    assert [stage.seed for stage in made if stage.arm.name == "static"] == [0, 1, 2]
    once = msgspec.structs.replace(_arm("base", [0.5], [-5.0]), untrained=True)
    thrice = _arm("static", [1.0, 1.0, 1.0], [-5.0, -6.0, -7.0])
    for arms, exploratory in (([once, thrice], False), ([_arm("b", [1], [0]), thrice], True)):
        found = Findings("s", "Why?", "small", True, arms, {}, {}, [])
        assert found.exploratory == exploratory


def test_the_plot_shows_every_arm_under_every_shift():
    arms = [_arm("first", [0.9, 0.8], [-50, -52]), _arm("second", [0.9], [-5.0])]
    drawn = accuracy_by_shift(Findings("s", "Why?", "small", True, arms, {}, {}, []))
    for said in ("first", "second", "redirect", "as trained", "interaction"):
        assert f">{said}<" in drawn
    assert "; arm: first" not in drawn, "a sentence a mark makes the file several times as large"


def test_losses_over_tasks_count_shifts_of_an_earlier_version(tmp_path):
    path = Path(__file__).parents[2] / "studies" / "contrast" / "over_tasks.py"
    script = runpy.run_path(str(path))
    evaluate(
        "gives_up", worlds=["poi"], kinds=["listing"], shifts=["merged_tools@1:2"], tasks=2,
        placebo=False, out=tmp_path / "run",
    )  # fmt: skip
    assert len(script["changes"](tmp_path / "run", ("merged_tools:2",))) == 2

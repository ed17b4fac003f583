"""Measures, diagnosis and the report, on episodes made up for the purpose."""

from __future__ import annotations

from math import isnan

import msgspec
import pytest
from scipy import stats

from toolshift.api import evaluate
from toolshift.core.errors import UsageError
from toolshift.core.scene import Applied
from toolshift.episode.grade import Grade
from toolshift.measure.diagnosis import (
    diagnose,
    drop_of,
    smallest_loss,
    untold,
    untold_loss,
    weaknesses,
)
from toolshift.measure.metrics import ALPHA, Arms, Measures, Scored, tier_of
from toolshift.report.tables import behaviour_table, group_table
from toolshift.runs.cell import Cell

CLEAN = ()
ERASED = (Applied("identity_erasure", 2),)
PLACEBO = (Applied("placebo", 2),)
GONE = (Applied("fatal_error", 2),)
GOOD = Grade(
    passed=True,
    void=False,
    end="answered",
    cause="",
    solvable=True,
    refused=False,
    right_reason=False,
    prose=False,
    met=True,
    calls=4,
    errors=1,
    provoked=1,
    exploration=0.5,
    oracle_calls=2,
    misunderstood=0,
)
BAD = msgspec.structs.replace(GOOD, passed=False, cause="memorised_name")
VOID = msgspec.structs.replace(BAD, void=True, end="infrastructure", cause="infrastructure")
REFUSED = msgspec.structs.replace(
    GOOD, solvable=False, refused=True, right_reason=True, end="refused"
)
FORCED = msgspec.structs.replace(BAD, solvable=False, cause="answered_without_evidence")


def rows(shifts: tuple[Applied, ...], *groups: tuple[int, Grade], trial: int = 0) -> list[Scored]:
    """Scored episodes of tasks 0, 1, ...: so many of each grade, in order."""
    grades = [grade for count, grade in groups for _ in range(count)]
    return [
        Scored(f"{n}", Cell("poi", "listing", n, 0, "dev", 200, shifts, trial), grade)
        for n, grade in enumerate(grades)
    ]


def tier(arms: Arms) -> Measures:
    return arms.table(tier_of, "holm", detectable=True)[0]


def test_a_drop_is_paired_and_significant() -> None:
    arms = Arms(rows(CLEAN, (30, GOOD)) + rows(ERASED, (12, GOOD), (18, BAD)))
    row = tier(arms)
    assert row.accuracy.estimate == pytest.approx(0.4)
    assert row.drop.estimate == pytest.approx(0.6)
    assert row.drop.low < 0.6 < row.drop.high
    assert row.significant
    assert row.causes == {"memorised_name": 18}
    assert row.retention.estimate == pytest.approx(0.4)


def test_no_drop_is_not_significant() -> None:
    row = tier(Arms(rows(CLEAN, (30, GOOD)) + rows(ERASED, (29, GOOD), (1, BAD))))
    assert not row.significant


def test_a_drop_that_the_placebo_has_too_is_not_significant() -> None:
    arms = Arms(
        rows(CLEAN, (30, GOOD))
        + rows(PLACEBO, (15, GOOD), (15, BAD))
        + rows(ERASED, (14, GOOD), (16, BAD))
    )
    row = tier(arms)
    assert row.p_value < 0.01
    assert row.beyond_placebo is False
    assert not row.significant


def test_a_drop_is_not_defined_under_half() -> None:
    arms = Arms(rows(CLEAN, (14, GOOD), (16, BAD)) + rows(ERASED, (7, GOOD), (23, BAD)))
    row = tier(arms)
    assert not row.defined
    assert isnan(row.p_value)
    assert not row.significant
    assert row.retention.estimate == pytest.approx(0.5)
    clean = arms.measure("clean", arms.clean)
    said = diagnose(clean, None, [row], [row], [])
    assert "under half" in said[0]
    assert "it keeps: perception 50%" in said[1]


def test_void_episodes_are_counted_and_never_scored() -> None:
    arms = Arms(rows(CLEAN, (20, GOOD)) + rows(ERASED, (10, GOOD), (5, BAD), (5, VOID)))
    row = tier(arms)
    assert (row.episodes, row.void) == (20, 5)
    assert row.accuracy.estimate == pytest.approx(10 / 15)
    assert row.accuracy_all.estimate == pytest.approx(0.5)
    assert row.causes == {"memorised_name": 5}


SIMULATOR = msgspec.structs.replace(VOID, end="answered", cause="simulator", misunderstood=1)


def test_void_episodes_are_counted_by_kind() -> None:
    row = tier(Arms(rows(CLEAN, (20, GOOD)) + rows(ERASED, (14, GOOD), (2, SIMULATOR), (4, VOID))))
    assert row.void_kinds == {"infrastructure": 4, "simulator": 2}


def test_a_drop_hidden_in_void_episodes_is_said() -> None:
    arms = Arms(rows(CLEAN, (20, GOOD)) + rows(ERASED, (8, GOOD), (12, VOID)))
    row = tier(arms)
    assert row.drop.estimate == 0
    assert row.drop_all.estimate == pytest.approx(0.6)
    clean = arms.measure("clean", arms.clean)
    said = " ".join(diagnose(clean, None, [row], [row], []))
    assert "ceiling" not in said
    assert "No failure in any arm" not in said
    assert "12 episodes are void" in said
    assert "-60 [" in drop_of(row)
    assert "all -60" in str(group_table([row]).columns[6]._cells[0])


def test_void_episodes_as_common_clean_need_no_second_drop() -> None:
    arms = Arms(rows(CLEAN, (16, GOOD), (4, VOID)) + rows(ERASED, (16, GOOD), (4, VOID)))
    assert isnan(tier(arms).drop_all.estimate)
    assert "void" not in drop_of(tier(arms))


def test_a_drop_smaller_than_the_placebos_is_not_beyond_it() -> None:
    arms = Arms(
        rows(CLEAN, (100, GOOD))
        + rows(PLACEBO, (30, GOOD), (70, BAD))
        + rows(ERASED, (70, GOOD), (30, BAD))
    )
    row = tier(arms)
    assert row.drop.estimate == pytest.approx(0.3)
    assert row.beyond_placebo is False
    assert not row.significant


def test_what_is_met_is_printed() -> None:
    missed = msgspec.structs.replace(GOOD, met=False)
    row = tier(Arms(rows(CLEAN, (20, GOOD)) + rows(ERASED, (5, GOOD), (5, BAD), (10, missed))))
    table = behaviour_table([row])
    cells = {str(column.header): str(column._cells[0]) for column in table.columns}
    assert (cells["met"], cells["acc"], cells["diff"]) == ("50%", "50%", "-50")


def test_only_void_episodes_leave_everything_undefined() -> None:
    arms = Arms(rows(CLEAN, (3, VOID)) + rows(ERASED, (3, VOID)))
    assert isnan(tier(arms).accuracy.estimate)
    clean = arms.measure("clean", arms.clean)
    assert "all are void (3 infrastructure)" in diagnose(clean, None, [], [], [])[0]


def test_refusals_are_measured_where_they_belong() -> None:
    arms = Arms(rows(CLEAN, (10, GOOD)) + rows(GONE, (4, REFUSED), (6, FORCED)))
    row = tier(arms)
    assert row.unsolvable == 10
    assert row.refusal_rate.estimate == pytest.approx(0.4)
    assert row.right_reason == 1
    assert row.wrong_refusal.n == 0
    assert "Refuses 40%" in "".join(diagnose(row, None, [row], [], []))


def test_behaviour() -> None:
    row = tier(Arms(rows(CLEAN, (4, GOOD)) + rows(ERASED, (4, GOOD))))
    assert row.tool_error_rate == pytest.approx(0.25)
    assert row.own_error_rate == 0
    assert row.exploration == pytest.approx(0.5)
    assert row.chain_length == 4
    assert row.calls_to_oracle == 2
    assert isnan(row.reading_to_oracle)


def test_trials_of_a_task_are_one_cluster() -> None:
    twice = rows(CLEAN, (10, GOOD)) + rows(CLEAN, (5, GOOD), (5, BAD), trial=1)
    clean = Arms(twice).measure("clean", twice)
    assert clean.accuracy.n == 10
    assert clean.pass_hat == [pytest.approx(0.75), pytest.approx(0.5)]
    assert clean.flip_rate == pytest.approx(0.5)


def test_weaknesses_are_ranked_and_a_sound_agent_has_none() -> None:
    arms = Arms(
        rows(CLEAN, (9, GOOD)) + rows(ERASED, (3, GOOD), (6, BAD)) + rows(GONE, (9, FORCED))
    )
    everything = arms.measure("all", [*arms.clean, *arms.shifted])
    found = weaknesses(everything, arms.table(tier_of, "holm"))
    assert [(w.cause, w.failures, w.tier) for w in found] == [
        ("answered_without_evidence", 9, "internalization"),
        ("memorised_name", 6, "perception"),
    ]
    sound = Arms(rows(CLEAN, (9, GOOD)))
    assert weaknesses(sound.measure("all", sound.clean), []) == []


def test_evaluate_says_what_breaks_the_agent() -> None:
    report = evaluate(
        ["memorises_names", "oracle"], shifts=["identity_erasure", "query_redundancy"], tasks=11
    )
    assert report.drop("perception").estimate == pytest.approx(0.5)
    assert report.drop("perception", "oracle").estimate == 0
    assert report.agent().weaknesses[0].cause == "memorised_name"
    assert any("identity erasure" in said for said in report.agent().diagnosis)
    assert report.table[0]["significant"]
    assert report.to_dict()["agents"][1]["name"] == "oracle"
    assert "not significant: query_redundancy" in report.summary(only_distinguishable=True)
    with pytest.raises(UsageError, match="perception"):
        report.drop("perceptoin")


def test_evaluate_takes_a_plain_function() -> None:
    def gives_up(messages: object, tools: object) -> str:
        return "I cannot do this."

    report = evaluate(gives_up, shifts=["fatal_error"], tasks=4, placebo=False)
    assert report.agent("gives_up").clean.accuracy.estimate == 0
    assert report.agent().clean.prose == 1
    assert "at floor" in report.summary()
    with pytest.raises(UsageError, match="an agent is"):
        evaluate(7)


@pytest.mark.parametrize(("failing", "touched"), [(2, 4), (5, 5), (1, 1)])
def test_a_loss_on_too_few_tasks_is_given_in_counts(failing: int, touched: int) -> None:
    arms = Arms(
        rows(CLEAN, (touched, GOOD)) + rows(ERASED, (touched - failing, GOOD), (failing, BAD))
    )
    clean, row = arms.measure("clean", arms.clean), tier(arms)
    said = " ".join(diagnose(clean, None, [row], [row], []))
    which = {1: "the one task", 2: "2 of the 4 tasks", 5: "all 5 tasks"}[failing]
    assert f"Fails {which} that perception touches (memorised name; open " in said
    assert "too few tasks for a significant difference." in said
    assert "No tier" not in said
    nothing = "none: not even a total loss would show (power 80%, level 5%)"
    assert smallest_loss([row]) == nothing


def test_clean_failures_are_set_beside_those_under_a_shift() -> None:
    arms = Arms(rows(CLEAN, (1, BAD), (9, GOOD)) + rows(ERASED, (2, BAD), (8, GOOD)))
    row = tier(arms)
    said = untold_loss(row, "")
    assert said.startswith("Fails 2 of the 10 tasks that perception touches, and 10% of the same")


def test_a_loss_that_may_be_the_placebos_is_said_before_a_smaller_one() -> None:
    arms = Arms(rows(CLEAN, (20, GOOD)) + rows(ERASED, (2, GOOD), (18, BAD)))
    great = tier(arms)
    assert great.p_value < ALPHA
    great = msgspec.structs.replace(great, significant=False)
    few = Arms(rows(CLEAN, (20, GOOD)) + rows(ERASED, (19, GOOD), (1, BAD)))
    found = untold([], [tier(few), great])
    assert found is great
    said = untold_loss(found, "")
    assert said.startswith("Fails 18 of the 20 tasks")
    assert said.endswith(": not significant against the placebo arm.")


def test_no_loss_of_points_is_called_none() -> None:
    arms = Arms(rows(CLEAN, (1, BAD), (9, GOOD)) + rows(ERASED, (1, BAD), (9, GOOD)))
    clean, row = arms.measure("clean", arms.clean), tier(arms)
    assert untold([row], [row]) is None
    said = diagnose(clean, None, [row], [row], [])
    assert "No tier differs significantly from clean or from the placebo arm." in said


def test_the_smallest_loss_is_that_of_the_test_in_use() -> None:
    """Six of thirty tasks lost are significant by McNemar's test at 5%, and five are not."""
    row = tier(Arms(rows(CLEAN, (30, GOOD)) + rows(ERASED, (29, GOOD), (1, BAD))))
    assert stats.binom.sf(5, 30, row.detectable) == pytest.approx(0.8, abs=1e-4)
    assert smallest_loss([row]) == "25 points (power 80%, level 5%)"
    assert smallest_loss([]) == ""


def test_every_tier_more_makes_the_smallest_loss_larger() -> None:
    arms = Arms(
        rows(CLEAN, (30, GOOD)) + rows(ERASED, (30, GOOD)) + rows(GONE, (10, REFUSED), (20, BAD))
    )
    found = arms.table(tier_of, "holm", detectable=True)
    assert [row.significant for row in found] == [False, True]
    # At 2.5% seven tasks must be lost.
    assert stats.binom.sf(6, 30, found[0].detectable) == pytest.approx(0.8, abs=1e-4)
    assert smallest_loss(found).endswith("(power 80%, level 5% over 2 tiers)")
    assert all(isnan(row.detectable) for row in arms.table(tier_of, "holm"))


def test_refusals_name_the_tier() -> None:
    arms = Arms(rows(CLEAN, (1, GOOD)) + rows(GONE, (1, REFUSED)))
    row = tier(arms)
    said = diagnose(arms.measure("clean", arms.clean), None, [row], [row], [])
    assert any(f"of 1 unsolvable scene in {row.label} " in sentence for sentence in said)

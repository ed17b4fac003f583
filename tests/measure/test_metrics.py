"""Measures, diagnosis and the report, on episodes made up for the purpose."""

from __future__ import annotations

from math import isnan

import msgspec
import pytest
from made_up import BAD, CLEAN, ERASED, FORCED, GONE, GOOD, PLACEBO, REFUSED, VOID, rows
from scipy import stats

from toolshift.api import evaluate
from toolshift.core.errors import UsageError
from toolshift.core.message import Usage
from toolshift.episode.grade import Grade
from toolshift.measure.diagnosis import (
    diagnose,
    drop_of,
    smallest_loss,
    untold,
    untold_loss,
    weaknesses,
)
from toolshift.measure.metrics import ALPHA, Arms, Measures, tier_of
from toolshift.report.tables import behaviour_table, group_table
from toolshift.runs.run_folder import Reading


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


OUTAGE = msgspec.structs.replace(VOID, cause="own_outage")


@pytest.mark.parametrize("void", [SIMULATOR, OUTAGE])
@pytest.mark.parametrize("lost", [1, 4, 12, 20])
def test_a_void_that_an_agent_can_bring_about_hides_no_drop(void: Grade, lost: int) -> None:
    """The drop, its test and the headline are those of an agent that fails there."""
    hiding = Arms(rows(CLEAN, (20, GOOD)) + rows(ERASED, (20 - lost, GOOD), (lost, void)))
    failing = Arms(rows(CLEAN, (20, GOOD)) + rows(ERASED, (20 - lost, GOOD), (lost, BAD)))
    one, other = tier(hiding), tier(failing)
    assert one.drop == other.drop
    assert (one.p_value, one.significant) == (other.p_value, other.significant)
    assert one.stated == other.accuracy
    assert one.void_matters


def test_such_a_void_in_the_clean_arm_counts_there_too() -> None:
    arms = Arms(rows(CLEAN, (12, GOOD), (8, SIMULATOR)) + rows(ERASED, (12, GOOD), (8, BAD)))
    assert arms.measure("clean", arms.clean).stated.estimate == pytest.approx(0.6)
    assert tier(arms).drop.estimate == pytest.approx(0)


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
    arms = Arms(twice)
    clean = arms.measure("clean", arms.clean)
    assert clean.accuracy.n == 10
    assert clean.pass_hat == [pytest.approx(0.75), pytest.approx(0.5)]
    assert clean.flip_rate == pytest.approx(0.5)


def test_weaknesses_are_ranked_and_a_sound_agent_has_none() -> None:
    arms = Arms(
        rows(CLEAN, (9, GOOD)) + rows(ERASED, (3, GOOD), (6, BAD)) + rows(GONE, (9, FORCED))
    )
    everything = arms.measure("all", arms.rows)
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
    assert "at floor" in report.summary(details=True)
    with pytest.raises(UsageError, match="an agent must be"):
        evaluate(7)


@pytest.mark.parametrize(("failing", "touched"), [(2, 4), (5, 5), (1, 1)])
def test_a_loss_on_few_tasks_is_given_in_counts(failing: int, touched: int) -> None:
    arms = Arms(
        rows(CLEAN, (touched, GOOD)) + rows(ERASED, (touched - failing, GOOD), (failing, BAD))
    )
    clean, row = arms.measure("clean", arms.clean), tier(arms)
    said = " ".join(diagnose(clean, None, [row], [row], []))
    which = {1: "the one task", 2: "2 of the 4 tasks", 5: "all 5 tasks"}[failing]
    assert f"Fails {which} that perception touches (memorised name; toolshift trace " in said
    assert "significant difference" not in said, "of so few tasks a loss is a fact"
    assert "No tier" not in said
    nothing = "none: not even a total loss would be significant (power 80%, level 5%)"
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


# -- every figure of a group, once -------------------------------------------------------------


def graded(**changes: object) -> Grade:
    return msgspec.structs.replace(GOOD, **changes)


def test_every_task_weighs_the_same_in_accuracy() -> None:
    """Task 0 passes three scenes, task 1 fails its only one."""
    arms = Arms(
        rows(CLEAN, (2, GOOD))
        + rows(ERASED, (1, GOOD), (1, BAD))
        + rows(ERASED, (1, GOOD), trial=1)
        + rows(ERASED, (1, GOOD), trial=2)
    )
    row = tier(arms)
    assert (row.episodes, row.tasks, row.accuracy.n) == (4, 2, 2)
    assert row.accuracy.estimate == 0.5
    assert row.drop.estimate == 0.5
    assert row.accuracy_all.estimate == row.accuracy_best.estimate == 0.5
    # The two scenes have three trials and one: of both only one can be drawn.
    assert row.pass_hat == [0.5]
    assert row.flip_rate == 0


def test_bounds_count_void_episodes_as_failures_and_as_passes() -> None:
    row = tier(Arms(rows(CLEAN, (10, GOOD)) + rows(ERASED, (6, GOOD), (2, BAD), (2, VOID))))
    assert row.accuracy.estimate == pytest.approx(0.75)
    assert row.bounds == (pytest.approx(0.6), pytest.approx(0.8))
    assert row.void_matters


@pytest.mark.parametrize(("voids", "matters"), [(0, False), (1, False), (2, True)])
def test_more_than_one_in_fifty_matters(voids: int, matters: bool) -> None:
    row = tier(Arms(rows(CLEAN, (50, GOOD)) + rows(ERASED, (50 - voids, GOOD), (voids, VOID))))
    assert row.void_matters is matters


def test_what_met_the_shift_is_measured_apart() -> None:
    missed = graded(met=False)
    arms = Arms(rows(CLEAN, (8, GOOD)) + rows(ERASED, (1, GOOD), (3, BAD), (4, missed)))
    row = tier(arms)
    assert row.met == 0.5
    assert (row.accuracy_met.estimate, row.accuracy_met.n) == (0.25, 4)
    assert (row.drop.estimate, row.drop_met.estimate) == (pytest.approx(0.375), 0.75)
    none = tier(Arms(rows(CLEAN, (8, GOOD)) + rows(ERASED, (8, missed))))
    assert isnan(none.drop_met.estimate)
    assert none.met == 0


def test_the_clean_group_has_no_drop_and_a_lone_group_no_clean() -> None:
    arms = Arms(rows(CLEAN, (10, GOOD)))
    clean = arms.measure("clean", arms.clean)
    assert not clean.defined
    assert clean.clean_defined
    assert isnan(clean.drop_all.estimate)
    assert clean.tier == clean.dimension == "none"
    assert clean.p_value != clean.p_value
    lone = tier(Arms(rows(ERASED, (10, GOOD))))
    assert (lone.clean.n, lone.retention.n, lone.defined) == (0, 0, False)
    empty = arms.measure("nothing", arms.rows[:0])
    assert (empty.episodes, empty.tasks, empty.accuracy.n) == (0, 0, 0)


def test_rates_of_calls_are_over_all_calls() -> None:
    one = graded(calls=10, errors=4, provoked=1, oracle_calls=5, exploration=None)
    two = graded(calls=2, errors=0, provoked=0, oracle_calls=3, exploration=0.25)
    row = tier(Arms(rows(CLEAN, (2, GOOD)) + rows(ERASED, (1, one), (1, two))))
    assert row.tool_error_rate == pytest.approx(4 / 12)
    assert row.own_error_rate == pytest.approx(3 / 12)
    assert row.chain_length == 6
    assert row.calls_to_oracle == pytest.approx(12 / 8)
    assert row.exploration == 0.25
    idle = graded(calls=0, errors=0, provoked=0, exploration=None, oracle_calls=0)
    none = tier(Arms(rows(CLEAN, (2, GOOD)) + rows(ERASED, (2, idle))))
    assert isnan(none.tool_error_rate)
    assert isnan(none.exploration)
    assert isnan(none.calls_to_oracle)
    assert none.chain_length == 0


def test_tokens_are_means_and_reading_is_relative_to_the_oracle() -> None:
    first, second = rows(ERASED, (2, GOOD))
    change = msgspec.structs.replace
    read = [
        change(first, usage=Usage(100, 10), reading=Reading(300, 100)),
        change(second, usage=Usage(300, 50), reading=Reading(100, 100)),
    ]
    row = tier(Arms(rows(CLEAN, (2, GOOD)) + read))
    assert (row.input_tokens, row.output_tokens, row.reading_to_oracle) == (200, 30, 2)


def test_refusals_by_protocol_and_in_prose() -> None:
    spoken = msgspec.structs.replace(REFUSED, prose=True, right_reason=False)
    over = msgspec.structs.replace(BAD, refused=True, end="refused", cause="wrong_refusal")
    cut = msgspec.structs.replace(BAD, end="budget", prose=True)
    arms = Arms(
        rows(CLEAN, (10, GOOD))
        + rows(GONE, (2, REFUSED), (1, spoken), (1, FORCED), (1, over), (3, GOOD), (2, cut))
    )
    row = tier(arms)
    assert row.unsolvable == 4
    assert row.refusal_rate.estimate == 0.75
    assert row.right_reason == pytest.approx(2 / 3)
    assert row.wrong_refusal.estimate == pytest.approx(1 / 6)
    assert row.refused_by_protocol == pytest.approx(0.3)
    assert row.refused_in_prose == pytest.approx(0.1)
    assert row.prose == pytest.approx(1 / 8)  # of the endings that were read
    assert row.causes == {"memorised_name": 2, "answered_without_evidence": 1, "wrong_refusal": 1}
    assert next(iter(row.causes)) == "memorised_name"
    assert row.examples["wrong_refusal"] == "4"


def test_questions_that_were_not_understood_are_counted_by_episode() -> None:
    odd = graded(misunderstood=2)
    row = tier(Arms(rows(CLEAN, (4, GOOD)) + rows(ERASED, (3, GOOD), (1, odd))))
    assert row.misunderstood == 1


def test_trials_of_scenes_flip_and_pass_together() -> None:
    arms = Arms(
        rows(CLEAN, (4, GOOD))
        + rows(ERASED, (4, GOOD))
        + rows(ERASED, (3, GOOD), (1, BAD), trial=1)
        + rows(GONE, (4, REFUSED))
        + rows(GONE, (4, REFUSED), trial=1)
    )
    whole = arms.measure("all", arms.shifted)
    assert whole.pass_hat == [pytest.approx(15 / 16), pytest.approx(7 / 8)]
    assert whole.flip_rate == pytest.approx(1 / 8)
    assert (whole.tier, whole.dimension) == ("composed", "composed")


def test_a_table_has_its_labels_in_order_and_its_p_values_adjusted() -> None:
    arms = Arms(
        rows(CLEAN, (30, GOOD))
        + rows(GONE, (22, REFUSED), (8, FORCED))
        + rows(ERASED, (23, GOOD), (7, BAD))
    )
    holm = arms.table(tier_of, "holm")
    assert [row.label for row in holm] == ["internalization", "perception"]
    ordered = arms.table(tier_of, "holm", ("perception", "absent", "internalization"))
    assert [row.label for row in ordered] == ["perception", "internalization"]
    raw = {label: 2 * 0.5**lost for label, lost in (("internalization", 8), ("perception", 7))}
    assert holm[0].p_value == pytest.approx(2 * raw["internalization"])
    assert holm[1].p_value == pytest.approx(max(raw["perception"], 2 * raw["internalization"]))
    bh = arms.table(tier_of, "bh")
    assert bh[0].p_value == pytest.approx(min(2 * raw["internalization"], raw["perception"]))


def test_the_placebo_arm_is_measured_by_itself_and_never_against_itself() -> None:
    arms = Arms(rows(CLEAN, (30, GOOD)) + rows(PLACEBO, (20, GOOD), (10, BAD)))
    row = arms.measure_placebo()
    assert row is not None
    assert (row.label, row.beyond_placebo, row.significant) == ("placebo", None, True)
    quiet = Arms(rows(CLEAN, (30, GOOD)) + rows(PLACEBO, (30, GOOD))).measure_placebo()
    assert quiet is not None
    assert not quiet.significant
    assert Arms(rows(CLEAN, (3, GOOD))).measure_placebo() is None


def test_a_gain_must_lie_beyond_the_placebo_on_its_own_side() -> None:
    arms = Arms(
        rows(CLEAN, (20, GOOD), (20, BAD))
        + rows(PLACEBO, (20, GOOD), (20, BAD))
        + rows(ERASED, (40, GOOD))
    )
    row = tier(arms)
    assert row.drop.estimate == -0.5
    assert row.beyond_placebo is True
    assert row.significant


def test_a_loss_against_void_clean_episodes_is_weighed_by_what_was_planned() -> None:
    arms = Arms(rows(CLEAN, (16, GOOD), (4, VOID)) + rows(ERASED, (12, GOOD), (8, VOID)))
    row = tier(arms)
    assert row.drop_all.estimate == pytest.approx(0.2)
    low = Arms(rows(CLEAN, (9, GOOD), (11, VOID)) + rows(ERASED, (9, GOOD), (11, BAD)))
    assert isnan(tier(low).drop_all.estimate)  # under half with void episodes as failures

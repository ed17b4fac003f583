"""The sentences about an agent, from measures made up for the purpose."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import msgspec
import pytest
from made_up import BAD, CLEAN, ERASED, FORCED, GONE, GOOD, REFUSED, VOID, rows

from toolshift.measure import diagnosis as d
from toolshift.measure.metrics import Arms, Measures, tier_of
from toolshift.measure.statistics import Interval

ARMS = Arms(
    rows(CLEAN, (40, GOOD))
    + rows(ERASED, (30, GOOD), (10, BAD))
    + rows(GONE, (4, REFUSED), (1, FORCED))
)
TIERS = ARMS.table(tier_of, "holm")
ROW = TIERS[0]
SOUND = Arms(rows(CLEAN, (40, GOOD)) + rows(ERASED, (40, GOOD)))
HELD = SOUND.table(tier_of, "holm")[0]
CLEAN_ROW = ARMS.measure("clean", ARMS.clean)


def but(row: Measures, **changes: Any) -> Measures:
    return msgspec.structs.replace(row, **changes)


def interval(estimate: float, low: float = 0.0, high: float = 1.0) -> Interval:
    return Interval(estimate, low, high, "t", 40)


def test_points_are_changes_so_a_drop_is_negative_and_its_limits_swap() -> None:
    assert d.points(Interval(0.324, 0.216, 0.409, "t", 40)) == "-32 [-41,-22] points"
    assert d.points(Interval(-0.1, -0.2, 0.0, "t", 40)) == "+10 [+0,+20] points"
    assert d.points(interval(nan)) == "not defined"


def test_rates_are_in_percent_with_their_limits() -> None:
    assert d.percent(Interval(0.85, 0.716, 0.934, "t", 40)) == "85% [72,93]"
    assert d.percent(interval(nan)) == "not defined"


def test_a_drop_stands_beside_the_one_with_voids_as_failures_where_they_differ() -> None:
    assert d.drop_of(but(ROW, drop=interval(0.2, 0.1, 0.3))) == "-20 [-30,-10] points"
    both = but(ROW, drop=interval(0.2, 0.1, 0.3), drop_all=interval(0.4, 0.3, 0.5))
    assert d.drop_of(both) == (
        "-20 [-30,-10] points (-40 [-50,-30] points with void episodes as failures)"
    )


def test_bounds_are_said_where_more_than_one_in_fifty_is_void() -> None:
    few = Arms(rows(CLEAN, (49, GOOD), (1, VOID)))
    many = Arms(rows(CLEAN, (30, GOOD), (8, BAD), (2, VOID)))
    rare, often = (arms.measure("clean", arms.clean) for arms in (few, many))
    assert not rare.void_matters
    assert often.void_matters
    assert often.bounds == (pytest.approx(0.75), pytest.approx(0.8))
    said = "75% with void episodes as failures, 80% as passes"
    assert d.bounds_of(often) == said
    assert f"of the clean tasks ({said})." in d.diagnose(often, None, [], [], [])[0]
    assert "void" not in d.diagnose(rare, None, [], [], [])[0]


def test_a_loss_is_significant_and_downwards() -> None:
    down = but(ROW, significant=True, drop=interval(0.2))
    assert d.is_loss(down)
    assert not d.is_loss(but(down, drop=interval(-0.2)))
    assert not d.is_loss(but(down, drop=interval(0.0)))
    assert not d.is_loss(but(down, significant=False))


def test_the_greatest_loss_of_points_is_named_where_none_is_significant() -> None:
    small = but(ROW, significant=False, drop=interval(0.1))
    great = but(ROW, significant=False, drop=interval(0.3), label="redirect")
    gain = but(ROW, significant=False, drop=interval(-0.5))
    assert d.untold([], [small, great, gain]) is great
    assert d.untold([great], [small]) is small  # shifts come before tiers
    assert d.untold([small], [gain]) is small
    assert d.untold([gain], [gain]) is None
    assert d.untold([but(great, significant=True)], [small]) is None


def test_doubt_is_chance_or_the_placebo_arm() -> None:
    assert d.doubt(but(ROW, p_value=0.05)) == "too few tasks for a significant difference"
    assert d.doubt(but(ROW, p_value=0.049)) == "not significant against the placebo arm"


def test_at_ceiling_every_tier_passes_nearly_all_and_nothing_is_void() -> None:
    high = but(HELD, accuracy=interval(0.95), void=0, significant=False)
    assert d.at_ceiling([high], [high])
    assert not d.at_ceiling([but(high, accuracy=interval(0.94))], [high])
    assert not d.at_ceiling([high, but(high, void=1)], [high])
    lossy = but(high, drop=interval(0.3), accuracy=interval(0.7))
    assert not d.at_ceiling([high], [lossy])


def test_weaknesses_are_shares_of_all_failures_and_stand_where_they_are_commonest() -> None:
    everything = but(ROW, label="all arms", causes={"wrong_tool": 6, "budget": 2})
    first = but(ROW, label="clean", causes={"wrong_tool": 1}, examples={"wrong_tool": "c1"})
    second = but(
        ROW,
        label="perception",
        causes={"wrong_tool": 5, "budget": 1},
        examples={"wrong_tool": "p5", "budget": "p1"},
    )
    found = d.weaknesses(everything, [first, second])
    assert [(w.cause, w.failures, w.share, w.tier, w.example) for w in found] == [
        ("wrong_tool", 6, 0.75, "perception", "p5"),
        ("budget", 2, 0.25, "perception", "p1"),
    ]
    elsewhere = d.weaknesses(everything, [but(first, causes={})])
    assert [(w.tier, w.example) for w in elsewhere] == [
        ("all arms", "c1"),
        ("all arms", ""),
    ]


def test_the_smallest_loss_is_the_largest_of_the_tiers() -> None:
    near = but(ROW, detectable=0.1)
    far = but(ROW, detectable=0.254)
    assert d.smallest_loss([near, far]) == "25 points (power 80%, level 5% over 2 tiers)"
    assert d.smallest_loss([near]) == "10 points (power 80%, level 5%)"
    nothing = "none: not even a total loss would be significant (power 80%, level 5% over 2 tiers)"
    assert d.smallest_loss([near, but(ROW, detectable=inf)]) == nothing
    assert d.smallest_loss([near, but(ROW, detectable=nan)]) == nothing
    undefined = but(far, drop=interval(nan))
    assert d.smallest_loss([near, undefined]) == "10 points (power 80%, level 5%)"
    assert d.smallest_loss([undefined]) == ""


def test_what_broke_down_is_said_in_one_line_of_bounded_length() -> None:
    crashes = d.Crashes(3, "KeyError:\n  'x'", "ab12")
    assert d.broke_down(crashes, 9) == (
        "Its own code broke down in 3 of 9 episodes: KeyError: 'x' (toolshift trace RUN ab12)."
    )
    assert d.broke_down(d.Crashes(3, "", "ab12"), 9) == (
        "Its own code broke down in 3 of 9 episodes (toolshift trace RUN ab12)."
    )
    exactly, more = (
        d.broke_down(d.Crashes(1, "x" * (d.LONGEST_FAULT + n), "e"), 1) for n in (0, 1)
    )
    assert "…" not in exactly
    assert f": {'x' * d.LONGEST_FAULT}… (toolshift trace" in more


def said(
    clean: Measures = CLEAN_ROW,
    placebo: Measures | None = None,
    tiers: Any = (),
    shifts: Any = (),
    weak: Any = (),
    broken: str = "",
) -> list[str]:
    return d.diagnose(clean, placebo, tiers, shifts, weak, broken)


def test_the_weakest_stage_is_the_one_of_the_greatest_significant_loss() -> None:
    one = but(ROW, label="perception", significant=True, drop=interval(0.2, 0.1, 0.3))
    two = but(ROW, label="reasoning", significant=True, drop=interval(0.5, 0.4, 0.6))
    three = but(ROW, label="interaction", significant=False, drop=interval(0.9))
    found = said(tiers=[one, two, three])
    assert found[1].startswith("Weakest stage: reasoning, -50 [-60,-40] points (100%")
    assert "shifted)." in found[1]
    assert found[2] == "Not significant: interaction."
    assert "Not significant" not in "".join(said(tiers=[one, two]))


def test_void_episodes_of_the_weakest_stage_are_said_beside_it() -> None:
    arms = Arms(rows(CLEAN, (40, GOOD)) + rows(ERASED, (10, GOOD), (26, BAD), (4, VOID)))
    (row,) = arms.table(tier_of, "holm")
    stage = next(s for s in said(tiers=[row]) if s.startswith("Weakest stage"))
    assert stage.endswith("shifted, 25% with void episodes as failures, 35% as passes).")


def test_the_worst_shift_is_named_with_its_commonest_cause() -> None:
    bad = but(
        ROW,
        label="redirect+fatal_error",
        significant=True,
        drop=interval(0.5, 0.4, 0.6),
        causes={"wrong_tool": 3, "budget": 1},
        examples={"wrong_tool": "e7"},
    )
    mild = but(bad, label="redirect", drop=interval(0.2))
    assert said(shifts=[mild, bad])[-2] == (
        "Largest loss: redirect+fatal error, -50 [-60,-40] points, by wrong tool in 3 of its 4 "
        "failures (toolshift trace RUN e7)."
    )
    plain = but(bad, causes={}, examples={})
    assert said(shifts=[plain])[-2].endswith("points.")
    assert not [s for s in said(shifts=[but(bad, significant=False)]) if "hurts" in s]


def test_a_placebo_that_moves_it_is_said() -> None:
    moved = but(ROW, significant=True, drop=interval(0.1, 0.05, 0.15))
    assert any("Even the placebo arm changes it by -10" in s for s in said(placebo=moved))
    assert not any("placebo" in s for s in said(placebo=but(moved, significant=False)))


def test_what_broke_down_comes_second() -> None:
    assert said(broken="It broke.")[1] == "It broke."
    assert said()[1] != "It broke."


@pytest.mark.parametrize(
    ("rate", "ends"),
    [
        (0.1, "at floor, so a shift cannot lower it."),
        (0.11, "under half, so drops are not defined; read retention instead."),
        (0.49, "under half, so drops are not defined; read retention instead."),
        (0.5, "of the clean tasks."),
    ],
)
def test_the_first_sentence_is_about_the_clean_tasks(rate: float, ends: str) -> None:
    clean = but(CLEAN_ROW, accuracy=interval(rate))
    assert said(clean)[0].endswith(ends)


def test_under_half_the_tiers_say_what_is_kept() -> None:
    low = but(CLEAN_ROW, accuracy=interval(0.3))
    kept = but(ROW, retention=interval(0.8, 0.7, 0.9))
    assert (
        said(low, tiers=[kept])[1]
        == "Of the tasks it passes clean, it keeps: perception 80% [70,90]."
    )
    none = but(ROW, retention=Interval(nan, nan, nan, "none", 0))
    assert said(low, tiers=[none])[1] == (
        "It passes no clean task, so there is nothing to retain under shift."
    )
    assert len(said(low)) == 2


def test_refusals_are_said_of_tiers_with_unsolvable_scenes() -> None:
    base = but(
        ROW,
        label="internalization",
        unsolvable=5,
        refusal_rate=interval(0.8, 0.3, 0.9),
        right_reason=0.5,
        wrong_refusal=interval(0.1, 0.0, 0.2),
    )
    found = said(tiers=[base])
    assert (
        "Refuses 80% [30,90] of 5 unsolvable scenes in internalization (50% of these for the right "
        "reason), and 10% [0,20] of the similar solvable ones."
    ) in found
    bare = but(
        base, unsolvable=1, right_reason=nan, wrong_refusal=Interval(nan, nan, nan, "none", 0)
    )
    assert "Refuses 80% [30,90] of 1 unsolvable scene in internalization." in said(tiers=[bare])
    assert not any("Refuses" in s for s in said(tiers=[but(base, unsolvable=0)]))


def test_the_last_sentence_is_the_commonest_cause() -> None:
    weak = [
        d.Weakness("wrong_tool", 3, 0.6, "perception", "e1"),
        d.Weakness("budget", 2, 0.4, "", ""),
    ]
    assert said(weak=weak)[-1] == (
        "Most frequent cause of failure: wrong tool, 3 (60% of all failures), mostly in "
        "perception: toolshift trace RUN e1"
    )
    assert said(weak=weak[1:])[-1].endswith("mostly in .")
    assert said()[-1] == "No failure in any arm."


def test_no_failure_beside_void_episodes_is_no_clean_bill() -> None:
    one, two = but(HELD, void=2), but(HELD, void=3)
    assert said(but(CLEAN_ROW, void=1), two, [one])[-1] == (
        "No failure was scored, but 6 episodes are void and may hide some."
    )


def test_tiers_without_a_significant_loss() -> None:
    quiet = but(HELD, significant=False, accuracy=interval(1.0))
    assert "At ceiling in every tier" in said(tiers=[quiet], shifts=[quiet])[1]
    moved = but(quiet, accuracy=interval(0.9), drop=interval(0.0))
    assert said(tiers=[moved], shifts=[moved])[1].startswith("No tier differs significantly")
    assert len(said()) == 2


def test_an_untold_loss_names_its_cause_and_an_example() -> None:
    row = but(
        ROW,
        label="perception",
        significant=False,
        episodes=4,
        void=0,
        drop=interval(0.5),
        p_value=0.2,
        accuracy=Interval(0.5, 0.1, 0.9, "wilson", 4),
        clean=interval(1.0),
        causes={"wrong_tool": 2},
        examples={"wrong_tool": "e1"},
    )
    assert said(tiers=[row])[1] == (
        "Fails 2 of the 4 tasks that perception touches (wrong tool; toolshift trace RUN e1): too "
        "few tasks for a significant difference."
    )
    assert "(wrong tool):" in said(tiers=[but(row, examples={})])[1]
    # With several episodes of a task these are counted instead.
    assert "2 of the 8 episodes" in d.untold_loss(but(row, episodes=8), "")
    assert "2 of the 4 tasks" in d.untold_loss(but(row, episodes=6, void=2), "")
    beside = d.untold_loss(but(row, clean=interval(0.75)), "")
    assert "touches, and 25% of the same tasks clean:" in beside


def test_kinds_and_words() -> None:
    assert d.kinds({"infrastructure": 3, "simulator": 1}) == "3 infrastructure, 1 simulator"
    assert d.words("wrong_refusal") == "wrong refusal"

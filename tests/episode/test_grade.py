"""The verdict on traces made up for the purpose: what passes, what is void, what is counted."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import msgspec
import pytest

from toolshift.core.scene import Outcome, Scene
from toolshift.core.step import Step
from toolshift.core.tool import BROKEN_SHIFT, NOT_RECORDED, OWN_OUTAGE
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import End
from toolshift.episode.grade import Grade, exploration, regrade
from toolshift.episode.grading_rules import is_decisive
from toolshift.worlds.registry import find_world

Steps = list[Step]


@cache
def scene_of(kind: str) -> Scene:
    return make_scene(find_world("poi"), kind, 0, pool="dev")


def trace(scene: Scene) -> Steps:
    """The oracle's own steps."""
    return list(scene.rehearsal)


def change(steps: Steps, number: int, **changes: Any) -> Steps:
    """The steps with one of them changed."""
    changed = msgspec.structs.replace(steps[number], **changes)
    place = number % len(steps)
    return [*steps[:place], changed, *steps[place + 1 :]]


def call(name: str = "find_place", **rest: Any) -> Step:
    return Step("call", 0, name, rest.pop("arguments", {}), **rest)


def unsolvable(**rest: Any) -> Scene:
    """A scene in which a place is not there, under the name that the request gives."""
    outcome = Outcome(refusal="not_found", subject="Quiet Thistle", **rest)
    return replace(scene_of("booking"), outcome=outcome)


BOOKING = scene_of("booking")
WRITE = ("book_slot", "PL-1118", "S6544", 7)
LOOKUP = call(
    evidence="not_found", true=(("find_place", {"name": "QUIET THISTLE", "city": "Vostrand 2"}),)
)
REFUSAL = Step("refuse", 1, "not_found")


# -- what passes -------------------------------------------------------------------------------


def test_the_oracles_trace_has_this_grade() -> None:
    assert regrade(BOOKING, trace(BOOKING), "answered") == Grade(
        passed=True,
        void=False,
        end="answered",
        cause="",
        solvable=True,
        refused=False,
        right_reason=False,
        prose=False,
        met=False,
        calls=3,
        errors=0,
        provoked=0,
        exploration=None,
        oracle_calls=3,
        misunderstood=0,
    )


@pytest.mark.parametrize(
    "effects",
    [
        (),
        (WRITE, WRITE),
        (WRITE, ("add_stop", "V1", "PL-1118")),
        (("book_slot", "PL-1118", "S6544", 8),),
        (("add_stop", "V1", "PL-1118"),),
    ],
)
def test_a_right_answer_with_other_writes_than_were_asked_for_fails(effects: tuple[Any]) -> None:
    steps = change(trace(BOOKING), 2, effects=effects)
    assert not regrade(BOOKING, steps, "answered").passed


def test_a_write_where_none_was_asked_for_fails() -> None:
    listing = scene_of("listing")
    assert regrade(listing, trace(listing), "answered").passed
    steps = change(trace(listing), 0, effects=(WRITE,))
    assert not regrade(listing, steps, "answered").passed


def test_the_write_of_a_request_that_was_taken_back_is_forgiven_once() -> None:
    taken_back = ("book_slot", "PL-1118", "S1407", 7)
    outcome = Outcome(effects=(WRITE,), forgiven=(taken_back,))
    scene = replace(BOOKING, outcome=outcome)
    steps = change(trace(BOOKING), 2, effects=(taken_back, WRITE))
    assert regrade(scene, steps, "answered").passed
    assert regrade(scene, trace(BOOKING), "answered").passed
    assert not regrade(scene, change(trace(BOOKING), 2, effects=(taken_back,)), "answered").passed
    twice = change(trace(BOOKING), 2, effects=(taken_back, taken_back, WRITE))
    assert not regrade(scene, twice, "answered").passed


def test_order_of_writes_does_not_matter_but_their_number_does() -> None:
    second = ("book_slot", "PL-1118", "S7999", 7)
    scene = replace(BOOKING, outcome=Outcome(effects=(WRITE, second)))
    assert regrade(scene, change(trace(BOOKING), 2, effects=(second, WRITE)), "answered").passed
    assert not regrade(scene, trace(BOOKING), "answered").passed


def test_the_wrong_code_fails() -> None:
    verdict = regrade(BOOKING, change(trace(BOOKING), -1, said="AAAA-BBBB"), "answered")
    assert (verdict.passed, verdict.void) == (False, False)
    assert verdict.cause


def test_every_answer_must_be_right() -> None:
    scene = scene_of("look_then_book")
    assert regrade(scene, trace(scene), "answered").passed
    first = next(n for n, step in enumerate(trace(scene)) if step.kind == "answer")
    for wrong in (first, -1):
        steps = change(trace(scene), wrong, said="AAAA-BBBB")
        assert not regrade(scene, steps, "answered").passed


@pytest.mark.parametrize("end", ["budget", "crashed", "refused", ""])
def test_only_an_answer_passes_a_solvable_scene(end: Any) -> None:
    assert not regrade(BOOKING, trace(BOOKING), end).passed


def test_a_solvable_scene_is_not_passed_by_a_refusal() -> None:
    verdict = regrade(BOOKING, [*trace(BOOKING)[:3], REFUSAL], "refused")
    assert (verdict.passed, verdict.refused, verdict.right_reason) == (False, True, False)


# -- refusals ----------------------------------------------------------------------------------


def test_a_refusal_after_the_evidence_passes() -> None:
    verdict = regrade(unsolvable(), [LOOKUP, REFUSAL], "refused")
    assert (verdict.passed, verdict.refused, verdict.right_reason) == (True, True, True)
    assert (verdict.solvable, verdict.calls) == (False, 1)


def test_a_refusal_for_another_reason_passes_and_is_told_apart() -> None:
    another = msgspec.structs.replace(REFUSAL, name="service_failure")
    verdict = regrade(unsolvable(), [LOOKUP, another], "refused")
    assert (verdict.passed, verdict.right_reason) == (True, False)


def test_a_refusal_before_the_evidence_fails() -> None:
    assert not regrade(unsolvable(), [REFUSAL], "refused").passed
    found = msgspec.structs.replace(LOOKUP, evidence="")
    assert not regrade(unsolvable(), [found, REFUSAL], "refused").passed


def test_an_answer_to_an_unsolvable_scene_fails() -> None:
    answer = Step("answer", 1, said="TGJG-FP7P")
    assert not regrade(unsolvable(), [LOOKUP, answer], "answered").passed
    assert not regrade(unsolvable(witness=()), [answer], "answered").passed


def test_a_refusal_after_a_write_fails() -> None:
    wrote = call("book_slot", effects=(WRITE,))
    assert not regrade(unsolvable(), [LOOKUP, wrote, REFUSAL], "refused").passed
    allowed = unsolvable(forgiven=(WRITE,))
    assert regrade(allowed, [LOOKUP, wrote, REFUSAL], "refused").passed


def test_evidence_of_another_subject_is_none() -> None:
    another = (("find_place", {"name": "Loud Thistle", "city": "Vostrand 2"}),)
    steps = [msgspec.structs.replace(LOOKUP, true=another), REFUSAL]
    assert not regrade(unsolvable(), steps, "refused").passed
    assert not is_decisive(unsolvable(), steps[0])
    assert is_decisive(unsolvable(), LOOKUP)


def test_evidence_for_another_reason_is_none() -> None:
    assert not is_decisive(
        unsolvable(), msgspec.structs.replace(LOOKUP, evidence="service_failure")
    )
    assert not is_decisive(BOOKING, LOOKUP)
    assert not is_decisive(BOOKING, call(evidence=""))


def test_a_witness_stands_for_the_evidence() -> None:
    scene = replace(BOOKING, outcome=Outcome(refusal="not_found", witness=("list_slots",)))
    slots = call("list_slots", true=(("list_slots", {"place_id": "PL-1118"}),))
    assert regrade(scene, [slots, REFUSAL], "refused").passed
    assert not regrade(scene, [LOOKUP, REFUSAL], "refused").passed


def test_what_is_plain_from_the_start_needs_no_evidence() -> None:
    assert regrade(unsolvable(witness=()), [REFUSAL], "refused").passed
    assert not regrade(unsolvable(witness=None), [REFUSAL], "refused").passed


# -- what is void ------------------------------------------------------------------------------


def test_a_failed_endpoint_is_void() -> None:
    failure = Step("failure", 1, said="no answer", ok=False)
    verdict = regrade(BOOKING, [failure], "infrastructure")
    assert (verdict.passed, verdict.void, verdict.cause) == (False, True, "infrastructure")


def test_an_outage_that_only_the_agent_tells_of_is_void_and_not_excused() -> None:
    own = Step("failure", 1, name=OWN_OUTAGE, said="exit code 75", ok=False)
    verdict = regrade(BOOKING, [own], "infrastructure")
    assert (verdict.void, verdict.cause, verdict.excused) == (True, OWN_OUTAGE, False)
    failure = Step("failure", 1, said="HTTP 503", ok=False)
    assert regrade(BOOKING, [failure], "infrastructure").excused


def test_a_crash_is_not_void() -> None:
    failure = Step("failure", 1, said="KeyError", ok=False)
    verdict = regrade(BOOKING, [failure], "crashed")
    assert (verdict.void, verdict.cause) == (False, "broke_down")


@pytest.mark.parametrize(
    ("end", "now"), [("crashed", "broke_down"), ("budget", "malformed_output")]
)
def test_a_stored_break_down_is_read_under_its_current_name(end: End, now: str) -> None:
    """It was a call that cannot be read once; where one is stored, it still is."""
    made = regrade(BOOKING, [Step("failure", 1, said="KeyError", ok=False)], "crashed")
    stored = msgspec.to_builtins(made) | {"cause": "malformed_output", "end": end}
    assert msgspec.convert(stored, Grade).cause == now


def test_what_no_recording_knows_is_void_even_with_the_right_answer() -> None:
    steps = change(trace(BOOKING), -1, effects=((NOT_RECORDED,),))
    steps = change(steps, 2, effects=(WRITE,))
    verdict = regrade(BOOKING, steps, "answered")
    assert (verdict.passed, verdict.void, verdict.cause) == (False, True, "unrecorded")
    failure = Step("failure", 1, name=NOT_RECORDED, said="never called so", ok=False)
    verdict = regrade(BOOKING, [*trace(BOOKING)[:1], failure], "infrastructure")
    assert (verdict.void, verdict.cause) == (True, "unrecorded")


def test_the_same_marks_elsewhere_are_not_void() -> None:
    named = change(trace(BOOKING), 0, name=NOT_RECORDED)
    assert not regrade(BOOKING, named, "answered").void
    in_a_call = change(trace(BOOKING), 2, effects=(WRITE, (NOT_RECORDED,)))
    assert not regrade(BOOKING, in_a_call, "answered").void


def asking(slot: str = "", said: str = "Which colour?") -> Step:
    return Step("ask", 0, said=said, text="Sorry?", slot=slot)


def needing(*slots: str) -> Scene:
    """The scene, of which the oracle asks the user for some details."""
    told = tuple(asking(slot) for slot in slots)
    return replace(BOOKING, rehearse=lambda _: (*told, *BOOKING.rehearsal))


BUDGET = Step("budget", 9, said="turns")


def test_a_user_who_keeps_back_what_the_scene_needs_makes_it_void() -> None:
    steps = [asking(), asking(said="What hue is it?"), BUDGET]
    verdict = regrade(needing("city"), steps, "budget")
    assert (verdict.void, verdict.cause, verdict.misunderstood) == (True, "simulator", 2)
    assert not verdict.excused  # an agent could ask what nobody understands wherever it would fail


@pytest.mark.parametrize(
    ("scene", "steps", "end"),
    [
        (BOOKING, [asking(), asking(said="What hue?"), BUDGET], "budget"),  # no detail is needed
        (needing("city"), [asking(), asking(said="WHICH  colour?"), BUDGET], "budget"),  # repeated
        (needing("city"), [BUDGET], "budget"),  # nothing was asked
        (
            needing("city"),
            [asking(), asking(said="What hue?"), asking("city"), BUDGET],
            "budget",
        ),  # it was told
        (needing("city"), [asking("city"), BUDGET], "budget"),  # everything was understood
        (needing("city"), [asking(), Step("answer", 1, said="No idea.")], "answered"),
        (needing("city"), [asking(), Step("failure", 1, ok=False)], "crashed"),
        (
            needing("city", "day"),
            [asking(), asking(said="What hue?"), asking("day"), BUDGET],
            "budget",
        ),
    ],
)
def test_else_a_failure_after_a_question_is_the_agents(
    scene: Scene, steps: Steps, end: Any
) -> None:
    verdict = regrade(scene, steps, end)
    assert (verdict.passed, verdict.void) == (False, False)


def test_a_pass_after_a_question_that_was_not_understood_is_a_pass() -> None:
    scene = needing("city")
    verdict = regrade(scene, [asking(), *trace(BOOKING)], "answered")
    assert (verdict.passed, verdict.void, verdict.misunderstood) == (True, False, 1)


def test_a_broken_shift_is_void_and_named() -> None:
    broken = Step("failure", 1, name=BROKEN_SHIFT, said="KeyError", ok=False)
    verdict = regrade(BOOKING, [*trace(BOOKING)[:2], broken], "infrastructure")
    assert (verdict.void, verdict.cause) == (True, BROKEN_SHIFT)


# -- what is counted ---------------------------------------------------------------------------


def test_calls_and_their_failures_are_counted() -> None:
    steps = [
        call(ok=False, error="busy", provoked=True),
        call(ok=False, error="not_found"),
        asking("city"),
        *trace(BOOKING),
    ]
    verdict = regrade(BOOKING, steps, "answered")
    assert (verdict.calls, verdict.errors, verdict.provoked) == (5, 2, 1)
    assert (verdict.misunderstood, verdict.oracle_calls) == (0, 3)


def test_only_the_ending_says_whether_it_was_prose() -> None:
    assert regrade(BOOKING, change(trace(BOOKING), -1, prose=True), "answered").prose
    assert not regrade(BOOKING, change(trace(BOOKING), 0, prose=True), "answered").prose


def test_an_empty_trace_is_a_failure() -> None:
    verdict = regrade(BOOKING, [], "budget")
    assert (verdict.passed, verdict.void, verdict.prose, verdict.calls) == (False, False, False, 0)


def test_a_clean_scene_meets_no_shift() -> None:
    assert not regrade(BOOKING, change(trace(BOOKING), 0, touched=True), "answered").met


def test_a_shift_is_met_where_something_of_it_was_shown() -> None:
    same = BOOKING.with_()
    assert not regrade(same, trace(BOOKING), "answered").met
    assert regrade(same, change(trace(BOOKING), 0, touched=True), "answered").met
    assert not regrade(same, change(trace(BOOKING), -1, touched=True), "answered").met
    assert regrade(BOOKING.with_(system="Other rules."), trace(BOOKING), "answered").met
    reworded = BOOKING.with_(asks=(replace(BOOKING.asks[0], text="Other words."),))
    assert regrade(reworded, trace(BOOKING), "answered").met


def test_former_names_of_causes_are_read_as_todays() -> None:
    verdict = regrade(BOOKING, [BUDGET], "budget")
    stored = msgspec.structs.replace(verdict, cause="over_refusal")
    assert stored.cause == "wrong_refusal"
    assert msgspec.structs.replace(verdict, cause="forced_completion").cause == (
        "answered_without_evidence"
    )
    assert verdict.cause == "budget"


# -- exploration -------------------------------------------------------------------------------


FAILED = call("a", text="busy", ok=False)


@pytest.mark.parametrize(
    ("calls", "refusal", "score"),
    [
        ([], "", None),
        ([call("a", text="1")], "", None),
        ([FAILED], "", 0.0),
        ([call("a", text="1", hint="page")], "", 0.0),
        ([call("b", text="1"), FAILED, call("c", text="2")], "", 1.0),
        # Said before, or answered as before, is nothing new.
        ([call("b", text="1"), FAILED, call("b", text="2")], "", 0.0),
        ([call("b", text="1"), FAILED, call("c", text="1")], "", 0.0),
        ([FAILED, call("b", text="2"), call("c", text="2")], "", 0.5),
        ([FAILED, call("b", text="2"), call("b", text="3")], "", 0.5),
        ([FAILED, call("a", arguments={"x": 1}, text="2")], "", 1.0),
        # Again in the same words counts where the result asked for that, and only then.
        ([call("a", text="wait", ok=False, hint="retry"), call("a", text="wait")], "", 1.0),
        ([call("a", text="wait", ok=False, hint="use"), call("a", text="now")], "", 0.0),
        ([call("a", text="wait", ok=False, hint="retry"), call("b", text="wait")], "", 0.0),
        (
            [
                call("a", text="wait", ok=False, hint="retry"),
                call("b", text="1"),
                call("a", text="2"),
            ],
            "",
            0.5,
        ),
        # Counting ends where the reason to refuse has come to light.
        ([FAILED, call("b", text="2", evidence="not_found"), FAILED, FAILED], "not_found", 1.0),
        ([call("b", ok=False, evidence="not_found"), FAILED], "not_found", None),
        ([call("b", text="1", evidence="not_found"), FAILED], "not_found", None),
        ([FAILED, call("b", text="2", evidence="not_found"), FAILED], "", 0.5),
        ([FAILED, FAILED, call("b", text="2", evidence="not_found"), FAILED], "not_found", 0.5),
    ],
)
def test_exploration(calls: Steps, refusal: str, score: float | None) -> None:
    assert exploration(calls, refusal) == score

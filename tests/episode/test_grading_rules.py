"""Which codes were shown, by field, and how an answer is held against them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import msgspec
import pytest

from toolshift.core.scene import Scene
from toolshift.core.step import Step
from toolshift.core.tool import Result
from toolshift.episode.draw import make_scene
from toolshift.episode.grading_rules import answers_right, shown_fields, states
from toolshift.worlds.registry import find_world

WORLD = find_world("poi")
BOOKING = make_scene(WORLD, "booking", 0, pool="dev")
LISTING = make_scene(WORLD, "listing", 0, pool="dev")
TWO = make_scene(WORLD, "look_then_book", 0, pool="dev")
FIELDS = {
    "V2W7-Q675": frozenset({"entry_code"}),
    "RH92-PLT4": frozenset({"listing_ref"}),
    "N6W9-HJXF": frozenset({"entry_code"}),
}


def right(scene: Scene, *answers: str) -> list[bool]:
    """Whether these answers are right after the oracle's calls."""
    calls = [step for step in scene.rehearsal if step.kind == "call"]
    return answers_right(scene, [*calls, *(Step("answer", 9, said=said) for said in answers)])


# -- what was shown ----------------------------------------------------------------------------


def test_every_code_that_was_shown_has_its_field() -> None:
    assert shown_fields(BOOKING, BOOKING.rehearsal) == {
        "JJZV-JJW3": frozenset({"map_ref"}),
        "TGJG-FP7P": frozenset({"booking_ref"}),
        "7BWH-2PKR": frozenset({"invoice_ref"}),
    }


def test_what_was_not_shown_is_not_known() -> None:
    assert shown_fields(BOOKING, BOOKING.rehearsal[:2]) == {"JJZV-JJW3": frozenset({"map_ref"})}
    assert shown_fields(BOOKING, BOOKING.rehearsal[3:]) == {}


def test_a_code_from_elsewhere_has_no_known_field() -> None:
    first = BOOKING.rehearsal[0]
    noticed = msgspec.structs.replace(first, text=first.text + " (see V2W7-Q675)")
    assert shown_fields(BOOKING, [noticed])["V2W7-Q675"] == frozenset()


@dataclass
class Truth:
    """A truth whose only tool brings these data."""

    data: Any

    def open(self) -> Truth:
        return self

    def call(self, name: str, arguments: dict[str, Any]) -> Result:
        return Result(True, self.data)


@pytest.mark.parametrize(
    ("data", "fields"),
    [
        ([{"entry": "V2W7-Q675"}, {"spare": "V2W7-Q675"}], {"entry", "spare"}),
        ({"at": {"entry": "V2W7-Q675"}, "n": 3}, {"entry"}),
        (["V2W7-Q675", {"entry": "V2W7-Q675"}], {"entry"}),
        ("V2W7-Q675", set()),
        ([], set()),
    ],
)
def test_fields_are_read_from_records_and_lists_of_them(data: Any, fields: set[str]) -> None:
    scene = replace(BOOKING, truth=Truth(data))  # type: ignore[arg-type]
    step = Step("call", 0, "any", {}, "V2W7-Q675", true=(("any", {}),))
    assert shown_fields(scene, [step]) == {"V2W7-Q675": frozenset(fields)}


# -- answers -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "passes"),
    [
        ("TGJG-FP7P", True),
        ("Booked: TGJGFP7P", True),  # without its hyphen it is known, since it was shown
        ("The booking reference is TGJG-FP7P, the invoice reference 7BWH-2PKR.", False),
        ("Your booking reference is TGJG-FP7P, the invoice reference 7BWH-2PKR.", True),
        ("TGJG-FP7P or 7BWH-2PKR", False),
        ("TGJG-FP7P, 7BWH-2PKR", False),
        ("The invoice reference is 7BWH-2PKR.", False),
        ('{"booking_ref": "TGJG-FP7P", "invoice_ref": "7BWH-2PKR"}', False),
        ('{"booking_ref": "TGJG-FP7P"}', True),
        ("It is booked.", False),
    ],
)
def test_an_answer_after_the_calls(answer: str, passes: bool) -> None:
    assert right(BOOKING, answer) == [passes]


def test_all_three_codes_of_a_result_in_words_are_no_choice() -> None:
    said = (
        "The listing reference is SGGC-BMJS, the entry code is C2MN-XLFS and the cache reference "
        "is PS4W-PHKH."
    )
    assert right(LISTING, said) == [False]
    assert right(LISTING, said.partition(" and")[0]) == [True]


def test_the_only_code_of_a_result_may_stand_in_data() -> None:
    ask = replace(BOOKING.asks[0], expected="JJZV-JJW3")
    assert right(replace(BOOKING, asks=(ask,)), '{"map_ref":"JJZV-JJW3"}') == [True]


def test_answers_are_held_against_their_requests_in_order() -> None:
    first, second = (ask.expected or "" for ask in TWO.asks)
    assert right(TWO, first, second) == [True, True]
    assert right(TWO, f"Here: {second}", f"Here: {first}") == [False, False]
    assert right(TWO, f"Here: {first}") == [True]


def test_a_request_that_was_taken_back_is_answered_by_anything() -> None:
    forgiven = replace(TWO.asks[0], expected=None)
    scene = replace(TWO, asks=(forgiven, TWO.asks[1]))
    assert right(scene, "Never mind.", f"Here: {TWO.asks[1].expected}") == [True, True]
    assert right(scene, "Never mind.", "Nothing.") == [True, False]


def test_a_check_of_ones_own_reads_words() -> None:
    ask = replace(BOOKING.asks[0], expected=None, pattern="shipped")
    scene = replace(BOOKING, asks=(ask,))
    assert right(scene, "It was Shipped.") == [True]
    assert right(scene, "It has not been shipped.") == [False]
    assert right(scene, "It is lost.") == [False]


# -- codes in words ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "stated"),
    [
        ("For the museum it is V2W7-Q675; the listing is RH92-PLT4.", True),
        ("The code is V2W7-Q675, the entry is RH92-PLT4.", False),
        ("V2W7-Q675, and RH92-PLT4.", False),
        ("V2W7-Q675 (entry) and RH92-PLT4 (listing)", True),
        ("V2W7-Q675 (listing) and RH92-PLT4 (entry)", False),
        ("It is perhaps V2W7-Q675, perhaps the listing RH92-PLT4.", False),
        ("It is V2W7-Q675. It is V2W7-Q675.", True),
    ],
)
def test_of_two_codes_words_say_which_is_meant(answer: str, stated: bool) -> None:
    assert states(answer, "V2W7-Q675", FIELDS) is stated


def test_what_is_no_code_is_compared_as_text() -> None:
    assert states("It is open today.", "open", FIELDS)
    assert not states("It is closed.", "open", FIELDS)
    assert states("It is open; the entry code is V2W7-Q675.", "open", FIELDS)
    assert not states("It is not open: V2W7-Q675.", "open", FIELDS)
    assert not states("V2W7-Q675", "open", FIELDS)

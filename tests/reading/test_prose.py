"""The reading of prose, on the finishes that showed its faults."""

from importlib import resources

import pytest

from toolshift.reading.prose import linear_models, read_prose
from toolshift.reading.prose_signs import Message

SHOWN = '{"listing_ref":"K7Q2-M9XD","map_ref":"B3Z7-ZG8X"}'
REQUEST = "Tell me the listing reference of Quiet Fox in Pellworm."


@pytest.mark.parametrize(
    "text",
    [
        "Please provide the parcel number.",
        "Kindly advise the birth date of the patient.",
        "We require the payout method in order to proceed.",
        "The birth date was not given.",
        '{"action": "clarify", "field": "city"}',
        "Did you mean the listing reference RH92-PLT4 or another?",
        "<think>No such place?</think>Which city do you mean?",
        "Sure! Just let me know the name of the place you'd like to add.",
        "Sorry, I don't have any memory of earlier conversations. Who is the customer?",
        "I couldn't find a place called Northern Lantern. Could you double-check the name?",
        "I can't start without knowing the city and the kind of place.",
        "I've made no reservation. Tell me which number you want and I'll proceed.",
        "Two names were given, please clarify which patient's panel I should read.",
        "I found Humble Sparrow. Would you like me to look up the opening hours now?",
    ],
)
def test_a_detail_that_is_asked_for_is_a_question(text: str) -> None:
    assert read_prose(text) == ("question", "")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("The lookup has been decommissioned. Shall I give you another one?", "service_failure"),
        ("The service is overloaded right now, so I couldn\u2019t get it.", "service_failure"),
        ("There is no way for me to finish: backend decommissioned.", "service_failure"),
        ("get_details removed -> price unknown -> cannot determine cheapest.", "tool_unavailable"),
        ("I can't post the credit: `add_credit` no longer exists.", "tool_unavailable"),
        ("The tool required for charts is currently not available.", "tool_unavailable"),
        ("The parcel could not be found. Sorry about that!", "not_found"),
        ("Birgit Fjellrud isn't registered here; I can't check her weight.", "not_found"),
        ("Unfortunately nobody is here. If the date differs, let me know which.", "not_found"),
    ],
)
def test_an_offer_does_not_hide_a_refusal(text: str, reason: str) -> None:
    assert read_prose(text) == ("refusal", reason)


def test_a_repeated_request_is_no_question() -> None:
    assert read_prose("Check whether it is safe and tell me the clearance code.") == ("none", "")


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ('{"ask_for": "birth_date"}', ("question", "")),
        ('{"listing_ref": null, "error": "backend gone"}', ("refusal", "service_failure")),
        ('{"listing_ref": "K7Q2\\u2011M9XD"}', ("answer", "")),
        ("Hmm. Two towns. Can only be one, so I stop.", ("refusal", "contradictory_request")),
        ("Please be so kind and check whether the town is right.", ("question", "")),
        ('refuse(reason="tool_unavailable")', ("refusal", "tool_unavailable")),
        ("get_place was removed, never mind. Listing ref is K7Q2-M9XD.", ("answer", "")),
        (
            "The map code is B3Z7-ZG8X, but no listing reference came: service down.",
            ("refusal", "service_failure"),
        ),
    ],
)
def test_structure_and_words_together_say_the_kind(text: str, read: tuple[str, str]) -> None:
    assert read_prose(text, SHOWN, REQUEST) == read


@pytest.mark.parametrize(
    "text",
    ["The answer is 42.", "It is Quiet Fox, as asked for.", "Not K7Q2-M9XD, for sure.", "", "Yes."],
)
def test_what_states_no_value_is_no_answer(text: str) -> None:
    assert not Message(text, SHOWN, REQUEST).states
    assert read_prose(text, SHOWN, REQUEST)[0] != "answer"


@pytest.mark.parametrize(
    "text",
    [
        "I could not find invoice INV-1.",
        "There is no invoice INV-1 in the system.",
        "Nothing was refunded, since no invoice INV-1 exists.",
    ],
)
def test_an_identifier_that_is_denied_is_no_answer(text: str) -> None:
    assert read_prose(text, "", "Refund invoice INV-1 please.")[0] != "answer"
    assert read_prose("Invoice INV-1 is shipped.", "", "Refund INV-2.")[0] == "answer"


def test_a_refusal_without_a_reason_takes_that_which_came_to_light() -> None:
    said = "I can't help with that."
    assert read_prose(said) == ("refusal", "")
    assert read_prose(said, '{"error":{"code":"not_found"}}') == ("refusal", "not_found")


def test_a_code_in_a_question_alone_answers_nothing() -> None:
    assert read_prose("K7Q2-M9XD or B3Z7-ZG8X?", SHOWN, REQUEST) == ("question", "")
    assert read_prose("K7Q2-M9XD. Anything else?", SHOWN, REQUEST) == ("answer", "")


def test_the_models_are_small_and_made_of_whole_numbers() -> None:
    """Whole numbers add up to the same sum everywhere."""
    file = resources.files("toolshift.reading").joinpath("prose_weights.json")
    assert len(file.read_bytes()) < 200_000
    for scale in (linear_models().kind, linear_models().reason):
        assert all(len(weights) == len(scale.classes) for weights in scale.weights.values())
    assert set(linear_models().kind.classes) == {"answer", "none", "question", "refusal"}


@pytest.mark.parametrize(
    "text", ["I cannot do this. {}", "{} if it can be done; else it is impossible.", "Sorry: {}."]
)
def test_the_same_words_are_read_alike_whatever_was_shown(text: str) -> None:
    """Otherwise an agent could leave it to the reader whether it answers or refuses."""
    wanted, other = (text.format(code) for code in ("K7Q2-M9XD", "B3Z7-ZG8X"))
    gone = "Notice: Removed today without a successor: get_place."
    assert read_prose(wanted, SHOWN, REQUEST)[0] == read_prose(other, SHOWN + gone, REQUEST)[0]

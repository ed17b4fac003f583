"""The rule that reads prose, on the finishes that showed its faults."""

import pytest

from toolshift.episode.prose import read_prose


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

"""What can be seen in a message in prose."""

import pytest

from toolshift.reading.prose_signs import Message

SHOWN = '{"listing_ref":"K7Q2-M9XD","map_ref":"B3Z7-ZG8X"}'
REQUEST = "Tell me the listing reference of Quiet Fox in Pellworm."


def structure(text: str, request: str = REQUEST) -> set[str]:
    signs = Message(text, SHOWN, request).kind_signs()
    return {sign for sign in signs if sign.startswith("~")}


@pytest.mark.parametrize(
    ("text", "signs"),
    [
        ("The listing reference is K7Q2-M9XD.", {"~wanted code", "~late wanted code"}),
        ("The map reference is B3Z7-ZG8X.", {"~other code", "~late code"}),
        ("K7Q2-M9XD", {"~code without a name", "~codes 1"}),
        ("K7Q2-M9XD? B3Z7-ZG8X?", {"~codes in questions", "~codes 2", "~late question"}),
        ("It is not K7Q2-M9XD.", {"~negated code", "~codes 0"}),
        ("Which city?", {"~question", "~ends asking", "~ends in a question"}),
        ("Done. Anything else?", {"~ends asking"}),
        ('{"listing_ref": null}', {"~json", "~wanted null"}),
        ('{"listing_ref": "none"}', {"~json", "~wanted key"}),
        ("The patient is MRN483920.", {"~identifier"}),
        ("Listing reference: 4711", {"~wanted value"}),
    ],
)
def test_structure_is_seen(text: str, signs: set[str]) -> None:
    assert signs <= structure(text)


def test_an_offer_of_help_is_no_question() -> None:
    assert "~question" not in structure("Not found. Shall I try again?")
    assert "~question" in structure("Not found. Is it in Pellworm?")


def test_the_field_that_is_wanted_comes_from_the_request() -> None:
    text = "The map reference is B3Z7-ZG8X."
    assert "~wanted code" in structure(text, "Give me the map reference.")
    assert "~wanted code" not in structure(text)


def test_names_codes_and_numbers_are_words_of_their_kind() -> None:
    signs = Message("Fox in Pellworm: K7Q2-M9XD, MRN483920, 12.50", SHOWN, REQUEST).kind_signs()
    assert {"\xa7NAME\xa7", "\xa7CODE\xa7", "\xa7ID\xa7", "\xa7NUM\xa7"} <= set(signs)


def test_cannot_is_two_words() -> None:
    assert "i am" in Message("I'm done").kind_signs()
    for text in ("I cannot do it", "I can not do it"):
        assert "can not" in Message(text).kind_signs()


def test_what_came_to_light_is_a_sign_of_the_reason_alone() -> None:
    message = Message("No.", '{"error":{"code":"not_found"}}', REQUEST)
    assert "~light not_found" in message.reason_signs()
    assert "~light not_found" not in message.kind_signs()
    torn = "The city has to be Kelmaar and it also has to be Pellworm."
    assert "~light contradictory_request" in Message("No.", "", torn).reason_signs()


def test_words_that_deny_are_counted_beside_codes() -> None:
    assert {"~denials 2", "~denials 1 codes 1"} <= structure("No, it isn't far: K7Q2-M9XD.")
    assert "~denials 0" in structure("The nearer one is Quiet Fox.")


def test_an_empty_message_has_no_sentence() -> None:
    assert structure("  ") == {"~codes 0", "~denials 0", "~denials 0 codes 0", "~length 0"}
    assert not Message("  ").states

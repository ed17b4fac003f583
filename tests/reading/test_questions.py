"""What a question asks about decides; the values that it mentions are context."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from toolshift.core.ask import Ask
from toolshift.core.fact import Goal
from toolshift.episode.draw import make_scene
from toolshift.episode.user import MORE
from toolshift.episode.user import answer as user_answers
from toolshift.reading.questions import asked_about
from toolshift.train.data import _VariedBackend
from toolshift.worlds.own.world import as_fact
from toolshift.worlds.registry import OURS, find_world

BOOKING: Goal = {
    "place_name": "Quiet Thistle",
    "city": "Berlin",
    "slot_time": "13:15",
    "party_size": 2,
}
NEARER: Goal = {
    "place_name": "Quiet Thistle",
    "city": "Berlin",
    "other_name": "Red Lantern",
    "origin": "harbour",
}
DOSE: Goal = {
    "patient_name": "Anna Weiss",
    "birth_date": "1980-03-04",
    "medication": "Ruvolol",
    "dose": 40,
}
TWO_DAYS: Goal = {"place_name": "Quiet Thistle", "city": "Berlin", "day": ("monday", "friday")}
PRODUCT: Goal = {"product_name": "walnut lamp", "other_product": "steel kettle"}


@pytest.mark.parametrize(
    ("world", "goal", "question", "slot"),
    [
        ("poi", BOOKING, "What time would you like to book at Quiet Thistle?", "slot_time"),
        ("poi", BOOKING, "What is the name of the city?", "city"),
        ("poi", BOOKING, "Is it for 2 people?", "party_size"),
        ("poi", BOOKING, "How many will be dining at Quiet Thistle in Berlin?", "party_size"),
        ("poi", BOOKING, "I have Quiet Thistle and the time (13:15). Which city?", "city"),
        ("poi", BOOKING, "- Venue: Quiet Thistle\n- People: 2\n- **Time**: ?", "slot_time"),
        ("poi", NEARER, "Which place should I compare Quiet Thistle with?", "other_name"),
        ("poi", NEARER, "Where do you set off for Quiet Thistle?", "origin"),
        ("poi", TWO_DAYS, "You gave two days; which one applies?", "day"),
        ("poi", TWO_DAYS, "Did you mean monday or friday?", "day"),
        ("medical", DOSE, "Which dose of Ruvolol?", "dose"),
        ("medical", DOSE, "When was Anna Weiss born?", "birth_date"),
        ("medical", DOSE, "40 mg of what?", "medication"),
        ("medical", DOSE, "Is 1980‑03‑04 the correct date of birth?", "birth_date"),
        ("retail", PRODUCT, "So the second product is the steel kettle, correct?", "other_product"),
        ("retail", PRODUCT, "What is the sku of the walnut lamp?", "sku"),
    ],
)
def test_the_focus_of_a_question_decides(world: str, goal: Goal, question: str, slot: str) -> None:
    assert asked_about(question, goal, find_world(world).facts)[:1] == (slot,)


@pytest.mark.parametrize(
    "question", ["Shall I go ahead?", "Is there anything else?", "May I have your phone number?"]
)
def test_what_is_no_detail_is_not_understood(question: str) -> None:
    for goal in (BOOKING, NEARER):
        assert asked_about(question, goal, find_world("poi").facts) == ()


def test_of_several_questions_the_first_is_answered_and_the_rest_stay_open() -> None:
    ask = Ask("Book a table.", BOOKING, lambda solver, env: "", None)
    facts = find_world("poi").facts
    for question in (
        "What time, and for how many people?",
        "I need:\n1. the time of the booking\n2. the number of guests",
    ):
        reply = user_answers(question, ask, facts)
        assert (reply.slot, reply.text) == ("slot_time", f"The time of the slot is 13:15. {MORE}")


@pytest.mark.parametrize("world", OURS)
def test_the_plain_question_gets_the_plain_reply(world: str) -> None:
    facts = find_world(world).facts
    for slot, fact in facts.items():
        ask = Ask("", dict.fromkeys(facts, "x"), lambda solver, env: "", None)
        reply = user_answers(f"What is the {fact.label}?", ask, facts)
        assert (reply.slot, reply.text) == (slot, f"The {fact.label} is x.")


def test_facts_of_own_worlds_are_told_apart_by_their_whole_name() -> None:
    facts = {slot: as_fact(slot) for slot in ("orderId", "customerId", "shipDate")}
    goal = {"orderId": "A1", "customerId": "C9", "shipDate": "2026-05-01"}
    assert asked_about("Could you give me the customer's id?", goal, facts) == ("customerId",)
    assert asked_about("For order A1, which ship date do you want?", goal, facts) == ("shipDate",)
    assert asked_about("What is the id of the order?", goal, facts) == ("orderId",)


def test_the_wordings_that_the_words_were_tuned_on_stay_understood() -> None:
    path = Path(__file__).parents[2] / "studies/strangers/questions/tuned_on.json"
    goals = {"poi": BOOKING, "medical": DOSE}
    asked, right = 0, 0
    for world, goal in goals.items():
        for slot in goal:
            for template in json.loads(path.read_text())[world][slot]:
                try:
                    question = template.format(**goal)
                except KeyError:
                    continue
                asked += 1
                right += asked_about(question, goal, find_world(world).facts)[:1] == (slot,)
    assert asked > 100
    assert right / asked > 0.98


@pytest.mark.parametrize(
    ("world", "goal", "open_slot", "question"),
    [
        ("poi", BOOKING, "party_size", "A table for two, three, more?"),
        ("poi", BOOKING, "slot_time", "At what point in the day should your booking begin?"),
        ("poi", BOOKING, "city", "In what locality can Quiet Thistle be found?"),
        ("poi", NEARER, "other_name", "Apart from Quiet Thistle, which venue is in the running?"),
        ("poi", NEARER, "origin", "Quiet Thistle or Red Lantern, closer to what?"),
        ("medical", DOSE, "dose", "medication: Ruvolol\ndose_mg: ?"),
        ("medical", DOSE, "birth_date", 'find_patient(name="Anna Weiss", birth_date=?)'),
        ("medical", DOSE, "medication", "What's being prescribed here? I've only got the 40 mg."),
        ("retail", PRODUCT, "other_product", "Name the item that competes with the walnut lamp."),
        ("retail", PRODUCT, "product_name", "What is the first item, to go with the steel kettle?"),
    ],
)
def test_the_detail_that_the_request_leaves_open_is_understood_in_unusual_words(
    world: str, goal: Goal, open_slot: str, question: str
) -> None:
    said = " ".join(str(value) for slot, value in goal.items() if slot != open_slot)
    assert asked_about(question, goal, find_world(world).facts, said)[:1] == (open_slot,)


@pytest.mark.parametrize(
    ("world", "goal", "question"),
    [
        ("poi", BOOKING, "Do you prefer to sit indoors or on the terrace?"),
        ("poi", BOOKING, "Do you know what Quiet Thistle charges?"),
        ("medical", DOSE, "Is the patient pregnant or breastfeeding?"),
        ("medical", DOSE, "Which pharmacy should the prescription be sent to?"),
        ("retail", PRODUCT, "How much does the walnut lamp weigh?"),
        ("retail", PRODUCT, "Was the item damaged?"),
    ],
)
def test_what_no_request_says_gets_no_value_though_a_detail_is_open(
    world: str, goal: Goal, question: str
) -> None:
    for left_open in goal:
        said = " ".join(str(value) for slot, value in goal.items() if slot != left_open)
        assert not set(asked_about(question, goal, find_world(world).facts, said)) & set(goal)


def test_the_first_of_two_bare_details_is_answered() -> None:
    facts = find_world("poi").facts
    goal = {"city": "Berlin", "category": "museum"}
    assert asked_about("City and kind of place?", goal, facts) == ("city", "category")
    assert asked_about("Kind of place and city?", goal, facts) == ("category", "city")


@pytest.mark.parametrize("world", OURS)
def test_every_wording_of_the_training_data_is_understood(world: str) -> None:
    facts = find_world(world).facts
    for kind in find_world(world).kinds:
        ask = make_scene(find_world(world), kind, 0).asks[0]
        for slot in set(ask.goal) & set(facts):
            for wording in _VariedBackend.wordings:
                question = wording.format(facts[slot].label)
                assert asked_about(question, ask.goal, facts, ask.text) == (slot,)


OPEN = (
    "What do you mean?",
    "Can you elaborate?",
    "Could you clarify?",
    "Please tell me more.",
    "I need more information.",
    "Sorry, I don't understand. Can you be more specific?",
    "Your request is unclear. Could you explain it?",
)


@pytest.mark.parametrize("world", ["poi", "retail", "medical"])
@pytest.mark.parametrize("question", OPEN)
def test_an_open_question_is_answered_where_one_detail_alone_is_missing(
    world: str, question: str
) -> None:
    """Of several, or of none, the user does not know which is meant."""
    facts = find_world(world).facts
    first, second, *_ = facts
    goal = {first: "Xyzzy Qua", second: "Plugh Frob"}
    assert asked_about(question, goal, facts, "It is for Xyzzy Qua.") == (second,)
    assert asked_about(question, goal, facts, "It is for Plugh Frob.") == (first,)


@pytest.mark.parametrize("world", ["poi", "retail", "medical"])
@pytest.mark.parametrize(
    "question",
    ["What colour is it?", "What is your phone number?", "Do you want anything else?", "Why?"],
)
def test_a_question_that_names_another_thing_is_not_open(world: str, question: str) -> None:
    facts = find_world(world).facts
    first, second, *_ = facts
    goal = {first: "Xyzzy Qua", second: "Plugh Frob"}
    assert second not in asked_about(question, goal, facts, "It is for Xyzzy Qua.")

"""The matcher that this study is compared with: the first word or value that was named."""

from __future__ import annotations

import re
from collections.abc import Mapping

from toolshift.core.ask import Ask
from toolshift.core.fact import Fact
from toolshift.episode.user import NOT_UNDERSTOOD, Answer


def answer(question: str, ask: Ask, vocabulary: Mapping[str, Fact]) -> Answer:
    """The user's reply by the rule of commit 46c7003, with the words that facts had then."""
    facts = {slot: WORDS[slot] for slot in vocabulary if slot in WORDS}
    words = re.findall(r"[a-z0-9]+", question.lower())
    slot = (
        _stated(question, ask)
        or _first(words, {slot: facts[slot] for slot in ask.goal if slot in facts})
        or _first(words, facts)
    )
    if not slot:
        return Answer(NOT_UNDERSTOOD, "")
    label = vocabulary[slot].label
    if slot not in ask.goal:
        return Answer(f"I do not know the {label}. Please look it up.", slot)
    return Answer(ask.replies.get(slot) or f"The {label} is {ask.goal[slot]}.", slot)


def _first(words: list[str], facts: Mapping[str, tuple[str, ...]]) -> str:
    best, place = "", len(words)
    for slot, known in facts.items():
        for word in known:
            if word in words and words.index(word) < place:
                best, place = slot, words.index(word)
    return best


def _stated(question: str, ask: Ask) -> str:
    best, place = "", len(question)
    for slot, value in ask.goal.items():
        for one in value if isinstance(value, tuple) else (value,):
            found = re.search(rf"(?<!\w){re.escape(str(one))}(?!\w)", question, re.IGNORECASE)
            if slot in WORDS and found and found.start() < place:
                best, place = slot, found.start()
    return best


WORDS: dict[str, tuple[str, ...]] = {
    "city": ("city", "town", "location"),
    "category": ("kind", "category", "type"),
    "place_name": ("name", "place", "venue"),
    "other_name": ("other", "second", "alternative"),
    "day": ("day", "weekday", "when", "date"),
    "origin": ("start", "origin", "from", "starting"),
    "slot_time": ("time", "slot", "hour", "clock"),
    "party_size": ("people", "party", "many", "guests", "size"),
    "place_id": ("id", "identifier"),
    "visit_id": ("visit", "plan"),
    "slot_id": ("slot_id",),
    "price": ("price", "cost"),
    "customer_name": ("customer", "client", "shopper", "buyer"),
    "parcel_no": ("parcel", "package", "tracking", "shipment"),
    "other_product": ("other", "second", "alternative"),
    "product_name": ("product", "article", "goods", "replacement"),
    "quantity": ("quantity", "units", "many", "pieces"),
    "payout": ("payout", "method", "paid", "pay"),
    "order_id": ("order",),
    "return_id": ("return", "authorisation"),
    "sku": ("sku",),
    "bin_id": ("bin", "warehouse"),
    "customer_id": ("account", "id", "identifier"),
    "credit_amount": ("credit", "amount", "sum", "total"),
    "patient_name": ("name", "named", "who"),
    "birth_date": ("birth", "born", "dob", "birthday", "birthdate"),
    "specialty": ("specialty", "speciality", "specialist", "discipline"),
    "clinic": ("clinic", "hospital", "where"),
    "other_clinic": ("other", "second", "alternative"),
    "medication": ("medication", "drug", "medicine"),
    "dose": ("dose", "dosage", "mg", "milligrams", "strength"),
    "test": ("test", "lab", "panel"),
    "weight_limit": ("weight", "limit", "kg", "threshold"),
    "patient_id": ("id", "mrn", "identifier"),
    "chart_id": ("chart",),
    "policy_id": ("policy", "insurance", "insurer"),
    "provider_id": ("provider",),
    "auth_number": ("authorisation", "authorization"),
    "clearance_code": ("clearance",),
}

"""Results are brought to the declared form where that is certain, and left alone elsewhere."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolshift.adapt.results import restored
from toolshift.core.form import FORMS

PRICE = {
    "type": "object",
    "properties": {
        "place_id": {"type": "string"},
        "price_eur": {"type": "number"},
        "entry_code": {"type": "string"},
    },
}
ROW = {"place_id": "PL-1", "price_eur": 4.5, "entry_code": "Q"}


@pytest.mark.parametrize("form", ["json", "yaml", "xml", "csv", "pairs", "table", "prose"])
@pytest.mark.parametrize("many", [False, True])
def test_every_form_and_other_keys_are_read(form: str, many: bool) -> None:
    row = {"data": {"placeKey": "PL-1", "priceEUR": 4.5, "entryPass": "Q"}}
    text = FORMS[form].write([row, row] if many else row) + "\nNotice: read me"
    declared: dict[str, Any] = {"type": "array", "items": PRICE} if many else PRICE
    body, _, notice = restored(text, declared).partition("\nNotice: ")
    assert (json.loads(body), notice) == ([ROW, ROW] if many else ROW, "read me")


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(ROW),
        json.dumps({"placeId": "PL-1", "priceCents": 450, "entryCode": "Q"}),
        json.dumps({"placeId": "PL-1", "priceEur": "free", "entryCode": "Q"}),
        json.dumps({"placeId": "PL-1", "price": 4.5}),
        json.dumps({"kind": "PL-1", "cost": 4.5, "entryCode": "Q"}),
        json.dumps({"error": {"code": "x", "message": "place_id price_eur entry_code"}}),
        "No place of that name.",
        "",
    ],
)
def test_what_is_not_certain_stays_as_it_came(text: str) -> None:
    assert restored(text, PRICE) == text


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ('{"message":"no such city"}', "rate"),
        ('{"humidity":"40"}', "temperature"),
        ('{"city":"Rome","message":"no such city"}', "city rate"),
        ('{"item":"tea","price_cents":"450"}', "item price"),
        ('{"item":"tea","cost_cents":"450"}', "item price"),
    ],
)
def test_what_may_be_another_value_is_not_shown_as_the_declared_one(text: str, keys: str) -> None:
    known = {key: {"type": "string"} for key in keys.split()}
    assert restored(text, {"type": "object", "properties": known}) == text


def test_one_key_that_is_left_is_the_one_that_has_another_name() -> None:
    known = {key: {"type": "string"} for key in ("place_id", "category")}
    declared = {"type": "object", "properties": known}
    assert restored('{"placeKey":"1","kind":"b"}', declared) == '{"place_id":"1","category":"b"}'

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

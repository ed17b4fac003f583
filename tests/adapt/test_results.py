"""Results are brought to the declared form where that is certain, and left alone elsewhere."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolshift.adapt.results import restored
from toolshift.core.render import FORMS

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
    row = {"placeId": "PL-1", "priceEur": 4.5, "entryCodes": "Q"}
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


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ('{"id":"1","failed":true}', {"id": "string", "ok": "boolean"}),
        ('{"id":"1","deceased":true}', {"id": "string", "alive": "boolean"}),
        ('{"placeKey":"1","kind":"b"}', {"place_id": "string", "category": "string"}),
        ('{"cancelled":{"id":"1","open":true}}', {"id": "string", "open": "boolean"}),
        ('{"ID":"1","day":3}', {"id": "string", "days": "number"}),
        ('{"ID":"1","size_MB":3}', {"id": "string", "size_Mb": "number"}),
        ('{"ID":"1","on":"no"}', {"id": "string", "on": "boolean"}),
        ('{"ID":"1","sum":"5"}', {"id": "string", "sum": "number"}),
        ('[{"ID":"1"}]', {"id": "string"}),
        ('{"ids":"1","id":"2"}', {"id": "string", "other": "string"}),
    ],
)
def test_a_result_keeps_its_keys_its_values_and_its_shape(text: str, known: dict[str, str]) -> None:
    assert restored(text, declared(**known)) == text


def test_keys_of_the_same_words_are_those_of_the_lock() -> None:
    text = '{"places-ID":"1","OpenNow":true,"totalSum":5}'
    shown = '{"place_id":"1","open_now":true,"total_sum":5}'
    known = declared(place_id="string", open_now="boolean", total_sum="integer")
    assert restored(text, known) == shown


def declared(**kinds: str) -> dict[str, Any]:
    return {"type": "object", "properties": {key: {"type": kind} for key, kind in kinds.items()}}


ORDER = declared(order_id="string", status="string", total="number")


def test_a_flat_record_of_yaml_keeps_its_values() -> None:
    text = "order_id: O-1\nstatus: shipped\ntotal: 12.5"
    shown = {"order_id": "O-1", "status": "shipped", "total": 12.5}
    assert json.loads(restored(text, ORDER)) == shown


@pytest.mark.parametrize(
    ("told", "kind", "value"),
    [
        ("0123", "string", "0123"),
        ("9:30", "string", "9:30"),
        ("no", "string", "no"),
        ("2026-12-03", "string", "2026-12-03"),
        ("1_000", "string", "1_000"),
        ("0x1F", "string", "0x1F"),
        ("yes", "boolean", True),
        ("1e3", "number", 1000.0),
        ("-7", "integer", -7),
    ],
)
def test_a_plain_word_of_yaml_is_what_it_says(told: str, kind: str, value: Any) -> None:
    known = declared(order_id="string", found=kind)
    assert json.loads(restored(f"order_id: O-1\nfound: {told}", known))["found"] == value


@pytest.mark.parametrize(
    "text",
    [
        "No order_id was found like this one\nThe status page tells more\nThe total is missing",
        "What we know\nthe order_id, it is lost\nthe status, none\nthe total, none",
        'The order_id is "1"; the status is "x"; the total is 5. But this is of another order.',
    ],
)
def test_prose_that_speaks_of_the_keys_stays_as_it_came(text: str) -> None:
    assert restored(text, ORDER) == text


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ('{"user": "bo", "disabled": true}', declared(user="string", enabled="boolean")),
        ('{"user": "bo", "inactive": true}', declared(user="string", active="boolean")),
        ('{"user": "bo", "not_active": true}', declared(user="string", active="boolean")),
        ('{"id": "1", "seller": "bo"}', declared(id="string", buyer="string")),
        ('{"city": "Oslo", "temp_f": 50}', declared(city="string", temp_c="number")),
        ('{"userName": "bo", "active": 1}', declared(user_name="string", active="boolean")),
        ('{"userName": "bo", "total": 1e400}', declared(user_name="string", total="number")),
    ],
)
def test_a_value_that_means_the_opposite_or_has_another_unit_stays(
    text: str, known: dict[str, Any]
) -> None:
    assert restored(text, known) == text


@pytest.mark.parametrize("text", ['{"orderId": %s, "open": true}', "order_id=%s\nopen=true"])
def test_a_large_number_keeps_all_digits_and_a_truth_is_one(text: str) -> None:
    known = declared(order_id="integer", open="boolean")
    shown = restored(text % 1234567890123456789, known)
    assert json.loads(shown) == {"order_id": 1234567890123456789, "open": True}

"""What a shown record states: its facts, with all of their digits."""

from __future__ import annotations

from typing import Any

import pytest

from toolshift.core.render import FORMS, facts
from toolshift.core.tool import Field

NUMBERS = {
    "integer": (7, 0, -3, 175928847299117063, 900719925474099312),
    "number": (47.3744489, 1e-7, 40.0, 12.5, -0.1, 175928847299117063),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers_keep_their_digits(form: str, kind: Any) -> None:
    fields = (Field(("value",), "value", kind),)
    for value in NUMBERS[kind] if form != "text" else ():
        shown = FORMS[form].read(FORMS[form].write({"value": value}))
        read = facts(shown, fields)["value"]
        assert read == value
        assert isinstance(read, int) == isinstance(value, int)


def test_a_converted_number_is_rounded() -> None:
    fields = (Field(("price",), "price", "number", scale=1.1),)
    assert facts({"price": 0.1 * 1.1 * 3}, fields) == {"price": 0.3}
    whole = (Field(("n",), "n", "integer"),)
    assert [facts({"n": n}, whole)["n"] for n in (3.0, "3.0", 2.9999999999, "12")] == [3, 3, 3, 12]

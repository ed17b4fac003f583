"""The type that a wanted answer has by itself."""

from __future__ import annotations

import pytest

from toolshift.reading.answers.example import is_of_kind
from toolshift.reading.answers.kinds import KINDS, kind_of


@pytest.mark.parametrize(
    ("wanted", "kind"),
    [
        ("4", "number"), ("15%", "number"), ("EUR 1,250.00", "amount"), ("$1,250", "amount"),
        ("2026-05-03", "date"), ("3 May 2026", "date"), ("2026-05-03T09:30", "date"),
        ("09:30", "time"), ("yes", "yes_no"), ("false", "yes_no"), ("RF-1701", "id"),
        ("KA72", "id"), (r"RF-\d+", "regex"), ('{"a": 1}', "json"), ("Jo Haas", "text"),
        ("shipped", "text"), ("90 minutes", "text"),
    ],
)  # fmt: skip
def test_the_type_is_told_by_the_value(wanted: str, kind: str) -> None:
    assert kind_of(wanted) == kind
    assert kind in KINDS
    assert is_of_kind(wanted, kind)


def test_of_several_it_is_the_common_one() -> None:
    assert kind_of(["4", "5"]) == "number"
    assert kind_of(["4", "Dune"]) == "text"


@pytest.mark.parametrize(("wanted", "kind"), [("4", "date"), ("x", "number"), ("4", "yes_no")])
def test_a_value_of_another_type_is_refused(wanted: str, kind: str) -> None:
    assert not is_of_kind(wanted, kind)

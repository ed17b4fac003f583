"""What a check of one's own tools takes for said."""

import pytest

from toolshift.core.statement import says


@pytest.mark.parametrize(
    ("wanted", "answer"),
    [
        ("shipped", "The order is **Shipped**."),
        ("25", "It costs 25.0 euros."),
        ("1250", "1,250.00"),
        ("-3", "It was -3 degrees."),
        ("2026-05-03", "On 3 May 2026."),
        ("2026-05-03", "On May 3rd, 2026, at noon."),
        ("2026-05-03", "2026\u201105\u201103"),
        (r"RF-\d+", "Your refund: RF\u20111701."),
        ("in transit", "It is in\u00a0transit."),
        ("shipped", "It is not pending but shipped."),
        ("not found", "The order was not found."),
        ("ada@example.org", "Her address is ada@example.org."),
    ],
)
def test_it_is_said(wanted: str, answer: str) -> None:
    assert says(answer, wanted)


@pytest.mark.parametrize(
    ("wanted", "answer"),
    [
        ("shipped", "It has not been shipped."),
        ("shipped", "It hasn't been shipped yet."),
        ("shipped", "unshipped"),
        ("shipped", "It is pending, shipped or delivered."),
        ("pending", "It is pending, shipped or delivered."),
        ("delivered", "It is pending, shipped or delivered."),
        ("shipped", "pending/shipped/delivered"),
        ("25", "250"),
        ("25", "25.5"),
        ("25", "O-25"),
        ("25", "Either 24 or 25."),
        ("2026-05-03", "5 March 2026"),
        (r"RF-\d+", "There is no longer RF-17."),
        (r"\bshipped\b", "It was never shipped."),
    ],
)
def test_it_is_not_said(wanted: str, answer: str) -> None:
    assert not says(answer, wanted)

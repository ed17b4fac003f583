"""What a text takes back is not said; what it puts in its place is."""

from __future__ import annotations

import pytest

from toolshift.reading.answers.by_words import matches


@pytest.mark.parametrize(
    ("answer", "wrong", "right"),
    [
        ("It is 5. Actually, it is 4.", "5", "4"),
        ("There are 5 copies. Sorry, I meant 4.", "5", "4"),
        ("5. Wait, no, 4.", "5", "4"),
        ("5 - sorry, 4", "5", "4"),
        ("5... I mean 4", "5", "4"),
        ("It's 5 (edit: 4)", "5", "4"),
        ("It costs 25 EUR. Correction: 20 EUR.", "25", "20"),
        ("The room is Borealis. Sorry, I meant Aurora.", "Borealis", "Aurora"),
        ("It's Borealis. Actually, it's Aurora.", "Borealis", "Aurora"),
        ("Borealis, or rather Aurora", "Borealis", "Aurora"),
        ("Earlier I said 5, which was wrong: it is 4.", "5", "4"),
    ],
)
def test_a_correction_counts(answer: str, wrong: str, right: str) -> None:
    assert not matches(answer, wrong)
    assert matches(answer, right)


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        ("There are 4 copies. Actually, 2 of them are on loan.", "4"),
        ("There are 4 copies. Sorry, no e-mail could be sent.", "4"),
        ("There are 4 copies, sorry for the delay.", "4"),
        ("There are 4. Wait, 5 minutes please.", "4"),
        ("The room is Aurora. Actually, it is big.", "Aurora"),
        ("It has shipped. Actually, it is early.", "shipped"),
        ("It has shipped. I mean it.", "shipped"),
        ("It is 4. Wait, it is 5. Actually, it is 4.", "4"),
    ],
)
def test_what_is_added_takes_nothing_back(answer: str, wanted: str) -> None:
    assert matches(answer, wanted)

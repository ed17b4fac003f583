"""What a text says of each code, whichever is right."""

from __future__ import annotations

import pytest

from toolshift.reading.code_roles import read_roles
from toolshift.worlds.registry import OURS, find_world

SHOWN = ("H854-TS78", "HQBK-7XTN", "XG8V-Z7BK")


def said(text: str) -> list[tuple[str, bool, bool, bool]]:
    """Each code: whether it is disowned, aside, and called what was asked for."""
    found = read_roles(text.format(*SHOWN), SHOWN).mentions
    return [(one.code[:2], one.disowned, one.is_aside, one.is_asked_for) for one in found]


@pytest.mark.parametrize(
    ("text", "disowned"),
    [
        ("It is not {0}.", [True]),
        ("It is not {0} but {1}.", [True, False]),
        ("It is not outdated: {0}.", [False]),
        ("{0} is not wrong.", [False]),
        ("{0}, I am afraid, is no longer valid.", [True]),
        ("Neither {0} nor {1}.", [True, True]),
        ("Take {0} rather than {1}.", [False, True]),
        ("I don't doubt that the code is {0}.", [False]),
        ("I cannot confirm that the code is {0}.", [True]),
        ("It isn't open, so the code is {0}.", [False]),
        ("{0} has expired and {1} is valid.", [True, False]),
        ("Not these: {0}, {1}.", [True, True]),
        ("The code is {0}. It has expired.", [True]),
        ("The code is {0}. It has not expired.", [False]),
        ("The code is {0}. Nothing else has expired.", [False]),
        ("It is {0}. Wait, no, that's the map, not what you wanted. It is {1}.", [True, False]),
        ("It is {0}. Oops, that was the season. The right one is {1}.", [True, False]),
        ("It is {0}. Sorry, that is for another place. It is {1}.", [True, False]),
        ("It is {0}... sorry, no. That is the map. It is {1}.", [True, False]),
        ("It is {0}. That is not what you asked for, though.", [True]),
        ("It is {0}. Wait, that is the one you asked for.", [False]),
        ("It is {0}. Hmm, that is the right one.", [False]),
        ("It is {0}. No, that is the only one.", [False]),
        ("It is {0}. No problem, that is the end of the list.", [False]),
        ("It is {0}. That is the code, not the map.", [False]),
    ],
)
def test_a_code_is_disowned_by_its_own_clause(text: str, disowned: list[bool]) -> None:
    assert [one[1] for one in said(text)] == disowned


def test_an_introduction_speaks_of_every_code_behind_it() -> None:
    assert [one[2] for one in said("Others: map {0}, season {1}")] == [True, True]
    assert [one[2] for one in said("Others:\n- map: {0}\n- season: {1}\n\nHours: {2}")] == [
        True,
        True,
        False,
    ]
    assert not any(one[3] for one in said("What you asked for: map {0}, season {1}"))


def test_what_was_asked_for_is_said_of_one_code() -> None:
    assert [one[3] for one in said("The map is {0}. What you asked for is {1}.")] == [False, True]
    assert [one[3] for one in said("What you asked for is in here: {0}")] == [False]
    assert [one[3] for one in said("{0} is the answer, {1} the map.")] == [True, False]


@pytest.mark.parametrize(
    ("text", "guess"),
    [
        ("{0} or {1}", True),
        ("Open at nine or ten, the code is {0}", False),
        ("Should it fail, {0}", True),
        ("Should you come, {0}", False),
    ],
)
def test_a_guess_is_one_of_several_or_stands_in_for_another(text: str, guess: bool) -> None:
    assert any(one.is_guess for one in read_roles(text.format(*SHOWN), SHOWN).mentions) is guess


@pytest.mark.parametrize("world", OURS)
def test_no_field_of_our_worlds_is_called_by_a_word_that_speaks_of_codes(world: str) -> None:
    """Otherwise a code would be disowned, or set aside, by its own name."""
    fields = {field.path[-1] for tool in find_world(world).tools for field in tool.returns}
    for field in sorted(fields):
        named = read_roles(f"The {field.replace('_', ' ')} is {SHOWN[0]}.", SHOWN).mentions[0]
        assert not named.disowned, field
        assert not named.is_guess, field
        assert not named.is_extra, field
        assert not named.is_compared, field

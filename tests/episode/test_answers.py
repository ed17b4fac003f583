"""Answers are read as a careful person would read them."""

import pytest
from scenes import clean_scenes

from toolshift.episode.episode import Episode
from toolshift.episode.grade import grade
from toolshift.episode.grading_rules import states
from toolshift.reading.text import bare, codes_in, fold

DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"
WORDINGS = ("It is {}.", "**{}**", "`{}`", "Here: {}") * 2
FIELDS = {
    "V2W7-Q675": frozenset({"entry_code"}),
    "RH92-PLT4": frozenset({"listing_ref"}),
    "2MLF-FC9J": frozenset({"cache_ref"}),
    "N6W9-HJXF": frozenset({"entry_code"}),
    "XWCX-6WPZ": frozenset(),
}


@pytest.mark.parametrize(
    "answer",
    [
        *(
            f"V2W7{dash}Q675"
            for dash in "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"
        ),
        "v2w7-q675",
        "V2W7 Q675",
        "V2W7Q675",
        "V2W7\u200b-Q675",
        "**V2W7**-**Q675**",
        "_V2W7-Q675_",
        "`V2W7-Q675`",
        r"\boxed{V2W7-Q675}",
        "[V2W7-Q675]",
        "<think>N6W9-HJXF? No, that is the other place.</think>V2W7-Q675",
        "\uff36\uff12\uff37\uff17-Q675",
        "The entry code is V2W7-Q675, not RH92-PLT4.",
        "Its entry code is V2W7-Q675 (should you need the listing reference: RH92-PLT4).",
        "| Entry code | V2W7-Q675 |\n| Listing reference | RH92-PLT4 |",
        "V2W7-Q675 is the entry code, RH92-PLT4 the listing reference.",
        "For patient MRN168139 the entry code is V2W7-Q675.",
        "It is not N6W9-HJXF but V2W7-Q675.",
    ],
)
def test_a_right_answer_passes_however_it_is_written(answer: str) -> None:
    assert states(answer, "V2W7-Q675", FIELDS)


@pytest.mark.parametrize(
    "answer",
    [
        "RH92-PLT4",
        "V2W7-Q675 or N6W9-HJXF",
        "V2W7-Q675, N6W9-HJXF",
        "The entry code is V2W7-Q675, or if not that, RH92-PLT4.",
        "V2W7-Q675, RH92-PLT4, 2MLF-FC9J",
        "Codes: V2W7-Q675 and RH92-PLT4",
        "The entry code is V2W7-Q675; the other place has the entry code N6W9-HJXF.",
        "The entry code is V2W7-Q675 and the spare one is XWCX-6WPZ.",
        "The entry code is RH92-PLT4 and the listing reference is V2W7-Q675.",
        "It is not V2W7-Q675.",
        "The entry code isn't V2W7-Q675.",
        "\u0412\u0445W7-Q675",
        "The listing reference is RH92-PLT4; if that does not work, try the entry code V2W7-Q675.",
        "Use the listing reference RH92-PLT4; as a fallback use the entry code V2W7-Q675.",
        "Try the listing reference RH92-PLT4 first, then the entry code V2W7-Q675.",
    ],
)
def test_a_list_of_guesses_fails(answer: str) -> None:
    assert not states(answer, "V2W7-Q675", FIELDS)


RESULT = (frozenset(("V2W7-Q675", "RH92-PLT4")), frozenset(("2MLF-FC9J",)))


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("The entry code is V2W7-Q675.", True),
        ("The entry code is V2W7-Q675; the cache reference is 2MLF-FC9J.", True),
        ("The listing reference is RH92-PLT4. Your entry code is V2W7-Q675.", True),
        ("Found: entry code V2W7-Q675, listing reference RH92-PLT4.", False),
        ("Your entry code is V2W7-Q675; your listing reference is RH92-PLT4.", False),
        ('{"entry_code": "V2W7-Q675", "listing_ref": "RH92-PLT4"}', False),
        ("Listing RH92-PLT4, cache 2MLF-FC9J, entry V2W7-Q675.", False),
    ],
)
def test_a_result_that_is_handed_on_whole_chooses_nothing(answer: str, right: bool) -> None:
    assert states(answer, "V2W7-Q675", FIELDS, RESULT) is right


@pytest.mark.parametrize(
    "answer",
    [
        "The value is V2W7-Q675. The value is RH92-PLT4.",
        "The entry code is RH92-PLT4; another entry code is V2W7-Q675.",
        "V2W7-Q675 or 2\u041cLF-FC9J",
        "V2W7-Q675, also \u039d6W9-HJXF",
        "V2W7-Q675 or else N 6 W 9 H J X F",
        "N6W9-HJXF, in other words V 2 W 7, Q 6 7 5",
    ],
)
def test_a_hedge_in_disguise_fails(answer: str) -> None:
    assert not states(answer, "V2W7-Q675", FIELDS)


POI = {
    "XG8V-Z7BK": frozenset({"map_ref"}),
    "H854-TS78": frozenset({"hours_ref"}),
    "HQBK-7XTN": frozenset({"season_ref"}),
    "C2MN-XLFS": frozenset({"entry_code"}),
    "K7Q2-M9XD": frozenset({"hours_ref"}),
}
SHOWN = (frozenset(("XG8V-Z7BK",)), frozenset(("H854-TS78", "HQBK-7XTN", "C2MN-XLFS")))


@pytest.mark.parametrize(
    "answer",
    [
        "The hours reference is H854-TS78. Others: map reference XG8V-Z7BK, entry code C2MN-XLFS.",
        "The hours reference is H854-TS78. Others: season HQBK-7XTN, entry code C2MN-XLFS",
        "H854-TS78 is the hours reference.\nFurther:\n- season: HQBK-7XTN\n- entry: C2MN-XLFS",
        "The hours reference is H854-TS78, not to be confused with the season reference HQBK-7XTN.",
        "Don't mix it up with the season reference HQBK-7XTN: the hours reference is H854-TS78.",
        "Your hours reference is H854-TS78. For your records: the season reference is HQBK-7XTN.",
        "The hours reference is H854-TS78. FYI, your season reference is HQBK-7XTN.",
        "I compared it with the season reference HQBK-7XTN to be sure: it is H854-TS78.",
        "The hours reference HQBK-7XTN is outdated; use H854-TS78.",
        "K7Q2-M9XD has been replaced by H854-TS78.",
        "The hours reference was K7Q2-M9XD. The one you asked for is H854-TS78.",
        "You want H854-TS78, as opposed to the season reference HQBK-7XTN.",
        '{"answer": "H854-TS78", "details": {"season_ref": "HQBK-7XTN", "entryCode": "C2MN-XLFS"}}',
        "Since the first place isn't open, the hours reference is H854-TS78.",
        "There is no doubt that it is H854-TS78, and it is not outdated.",
        "I could not find any other code for it: H854-TS78.",
        "I believe it is H854-TS78.",
    ],
)
def test_one_code_is_stated_and_the_others_are_beside_the_point(answer: str) -> None:
    assert states(answer, "H854-TS78", POI, SHOWN)


@pytest.mark.parametrize(
    "answer",
    [
        "The code you asked for is in here: hours reference H854-TS78, season reference HQBK-7XTN",
        "What you need is one of these: hours H854-TS78; season HQBK-7XTN.",
        "You asked for the following.\n- hours: H854-TS78\n- season: HQBK-7XTN\n- entry: C2MN-XLFS",
        "The answer is HQBK-7XTN. Checked against H854-TS78.",
        "The answer is HQBK-7XTN. Checked against the hours reference H854-TS78.",
        "Your season reference is HQBK-7XTN. Compare the hours reference: H854-TS78.",
        "The hours reference is XG8V-Z7BK. Others: hours reference H854-TS78.",
        "The hours reference H854-TS78 is outdated; use HQBK-7XTN.",
        "The hours reference has changed from H854-TS78 to HQBK-7XTN.",
        "Not sure. One of these: hours reference H854-TS78, season reference HQBK-7XTN.",
        "The hours reference is H854-TS78. Should it be rejected, enter the season one HQBK-7XTN.",
        "The hours reference H854-TS78 (60%), the season reference HQBK-7XTN (40%)",
        "I doubt that H854-TS78 is it.",
        "I don't think the hours reference is H854-TS78, do not believe H854-TS78.",
        "It used to be H854-TS78.",
        "I made this up: H854-TS78",
        "The hours reference is H854-TS78. Scrap that, it is wrong.",
        "H854-TS78, I am afraid, has expired.",
        "Anything but H854-TS78.",
        "The season reference is H854-TS78 and the hours reference HQBK-7XTN.",
    ],
)
def test_a_code_that_stands_in_a_text_is_not_stated_by_that(answer: str) -> None:
    assert not states(answer, "H854-TS78", POI, SHOWN)


@pytest.mark.parametrize(
    "spelt",
    [
        "H dash 8 dash 5 dash 4 dash T dash S dash 7 dash 8",
        "h eight five four hyphen t s seven eight",
        "H as in Hotel, 8, 5, 4, minus, T as in Tango, S as in Sierra, 7, 8",
        "H854&#45;TS78",
        "H854&ndash;TS78",
        "H854&amp;#8209;TS78",
        "H854--TS78",
    ],
)
def test_a_code_for_ears_and_browsers_is_stated(spelt: str) -> None:
    assert states(f"The hours reference is {spelt}.", "H854-TS78", POI, SHOWN)
    assert not states(f"The hours reference is {spelt}.", "HQBK-7XTN", POI, SHOWN)


def test_a_code_that_is_spelt_letter_by_letter_is_stated() -> None:
    assert states("That is V 2 W 7, Q 6 7 5.", "V2W7-Q675", FIELDS)
    assert states("v 2 w 7 dash q 6 7 5", "V2W7-Q675", FIELDS)
    assert states("V2W7-Q675, that is V 2 W 7 - Q 6 7 5", "V2W7-Q675", FIELDS)
    assert not states("That is V 2 W 7, Q 6 7 8.", "V2W7-Q675", FIELDS)
    assert states("V2W7-Q675 (\u043c\u0443\u0437\u0435\u0439)", "V2W7-Q675", FIELDS)


def test_a_code_without_a_hyphen_counts_only_where_it_was_shown() -> None:
    assert codes_in("V2W7 Q675") == []
    assert [stated.code for stated in codes_in("V2W7 Q675", FIELDS)] == ["V2W7-Q675"]


def test_signs_have_one_form() -> None:
    assert fold("\u201ca\u2011b\u201d\u00a0\u2019") == '"a-b" \''
    assert bare("**a** `b` [c]").split() == ["a", "b", "c"]


@pytest.mark.parametrize("world", ["poi", "retail", "medical"])
def test_handing_on_the_last_result_is_no_answer(world: str) -> None:
    for scene in clean_scenes(world, 6):
        episode = Episode(scene)
        for step in scene.calls:
            episode.call(step.name, step.arguments)
        for ask in scene.asks:
            from_result = next(s.text for s in episode.steps if (ask.expected or "") in s.text)
            assert len(codes_in(from_result)) > 1
            episode.answer(from_result)
        assert not grade(episode).passed


@pytest.mark.parametrize("world", ["poi", "retail", "medical"])
def test_a_stranger_that_says_it_in_words_passes_as_the_oracle_does(world: str) -> None:
    scenes = list(clean_scenes(world, 6))
    for scene, wording in zip(
        scenes, ("It is {}.", "**{}**", "`{}`", "Here: {}") * 2, strict=False
    ):
        episode = Episode(scene)
        for step in scene.calls:
            episode.call(step.name, step.arguments)
        for ask in scene.asks:
            told = wording.format((ask.expected or "").replace("-", "\u2011"))
            episode.answer(told, prose=True)
        assert grade(episode).passed


def test_a_code_that_is_taken_back_behind_but_is_not_offered() -> None:
    for said in (
        "The entry code I saw was V2W7-Q675, but it is not valid.",
        "The entry code is V2W7-Q675, but it isn't the right one.",
    ):
        assert not states(said, "V2W7-Q675", FIELDS), said
    said = "The entry code is V2W7-Q675. RH92-PLT4 stands there too, but it is the listing."
    assert states(said, "V2W7-Q675", FIELDS)


@pytest.mark.parametrize(
    "answer",
    [
        "The listing comes first: RH92-PLT4. Not that one.\n</think>\n\nV2W7-Q675",
        "We need the code, RH92-PLT4 or so.</think>The entry code is V2W7-Q675.",
    ],
)
def test_a_thought_whose_opening_is_missing_is_left_out(answer: str) -> None:
    assert states(answer, "V2W7-Q675", FIELDS)

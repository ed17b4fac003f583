"""`toolshift check` runs the code of a world, and finds what it does wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pages import imported

from toolshift.core.errors import UsageError, WorldFault
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import Episode
from toolshift.runs.check import Bench, check_world
from toolshift.runs.check_world import world_findings

PAGE = "add-a-world.md"
FOUND = [
    ('    state.record("reserve_book", book_id)\n', "", "reserve_book .* records no effect"),
    ('effect="write"', 'effect="read"', "records an effect, and is not declared"),
    ('("shelf_ref", "floor_ref")', '("shelf_ref", "floor_reff")', "did you mean floor_ref"),
    ("def known(state", "def known(state, a):\n    return state.db.books[a['book_id']] and "
     "a['book_id']\n\n\ndef other(state", "raised KeyError: 'no such value 7'"),
    ('state.code("floor", book_id)', "str(id(object()) + len(state.memory.setdefault(0, [])) "
     "+ __import__('random').randrange(10**9))", "with the same arguments return different"),
    ("quote the {w} under which {{title}}", "quote the {w} under which {{titel}}", "pool test"),
    ('state.code("shelf", book_id)', '"S1"', "have the one answer 'S1'"),
]  # fmt: skip
RAISED = [
    ('Field((fact,), fact)', 'Field(("x", fact), fact)', "'x.book_id' of find_book, .* in none of"),
    ("def build(self, seed, size, pool)", "def build(self, seed)", "build.* takes 2 positional"),
    ('Param("book_id", "book_id"', 'Param("book_id", "bookid"', "did you mean book_id"),
    ('arguments["title"]', 'arguments["titel"]', "find_book raised KeyError: 'titel'"),
    ("shelf reference\", \"shelf_ref", "shelf reference\", \"shelf_reff", "did you mean shelf_ref"),
    ('    return {"shelf_ref"', '    found = {"shelf_ref"', "returned NoneType, not a dict"),
    ('return {"title": rng', 'return {"titel": rng', "did you mean title"),
    ("db.books.values()))}", "db.book.values()))}", "its draw raised AttributeError"),
    ("Give me the {w} of {{title}}", "Give me the {w} of {{titel}}", "did you mean title"),
    ("seed=seed, books", "seeed=seed, books", "without an attribute `seed`"),
    ("FIRST[pool].split()", "FIRST[pol].split()", "raised NameError"),
    ("env: env[fact]", "env: 7", "returned int, not the answer as text"),
    ("state.code(\"floor\", book_id)", "object()", "what is not JSON"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "said"), FOUND, ids=[said for *_, said in FOUND])
def test_what_the_code_does_otherwise_than_it_declares_is_found(
    old: str, new: str, said: str, tmp_path: Path
) -> None:
    world = imported(tmp_path, PAGE, old, new).WORLD
    scenes = list(Bench((world,), ()).clean(world))
    findings = "\n".join(world_findings(world, scenes))
    assert re.search(said, findings), findings
    assert re.search(r"\(page_\d+.py, line \d+\)", findings)


@pytest.mark.parametrize(("old", "new", "said"), RAISED, ids=[said for *_, said in RAISED])
def test_code_that_fails_is_said_in_one_sentence_with_its_place(
    old: str, new: str, said: str, tmp_path: Path
) -> None:
    world = imported(tmp_path, PAGE, old, new).WORLD
    with pytest.raises(WorldFault, match=said) as raised:
        [make_scene(world, "shelf", index) for index in (0, 1)]
    assert str(raised.value).startswith("world library")
    assert ".py, line " in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_sound_world_has_no_finding_and_a_taken_name_is_one(tmp_path: Path) -> None:
    world = imported(tmp_path, PAGE).WORLD
    verdicts = list(check_world(Bench((world,), ()), world))
    assert {verdict.state for verdict in verdicts} == {"pass", "not tested"}
    world = imported(tmp_path, PAGE, 'name = "library"', 'name = "poi"').WORLD
    said = [v.detail for v in check_world(Bench((world,), ()), world) if v.state == "fail"]
    assert [
        each for each in said if "name 'poi' is that of a world of toolshift.worlds.poi" in each
    ]


def test_an_action_that_raises_in_an_episode_is_no_failure_of_the_agent(tmp_path: Path) -> None:
    old = '    book_id = known(state, arguments)\n    return {"shelf_ref"'
    new = '    book_id = arguments["book_id"]\n    state.db.books[book_id]\n    return {"shelf_ref"'
    world = imported(tmp_path, PAGE, old, new).WORLD
    episode = Episode(make_scene(world, "shelf", 0))
    with pytest.raises(UsageError, match="world library: the action of get_shelf raised KeyError"):
        episode.call("get_shelf", {"book_id": "bk_0"})


CODE = 'state.code("shelf", book_id)'
BROKEN = [
    (("The {a} {b}", "The {a}-{b}", CODE, "state.db.books[book_id]"), 2,
     "library/shelf/0 clean.*: the answer 'The .*' is guessable: it stands in the first"),
    ((', "floor_ref": state.code("floor", book_id)}', "}", '("shelf_ref", "floor_ref")',
      '("shelf_ref",)'), 2,
     "library/shelf/0 clean.*: the answer '.*' is guessable: .*let a second code stand behind"),
    (("for body in bodies[pool] for f in frames[pool]",
      'for body in bodies["dev"] for f in frames["dev"]'), 6,
     "task kind shelf, request 1: the pools train and dev share the phrasing 'A small favour"),
    (("for a in FIRST[pool].split() for b in SECOND[pool]",
      'for a in FIRST["dev"].split() for b in SECOND["dev"]'), 6,
     "task kind shelf, key 'title': the pools train and dev share the entity 'The "),
    (("solve=lambda solver, env: env[fact]", "solve=lambda solver, env: 'A-1'"), 4,
     "the oracle fails in library/shelf/0 clean: Untraceable: the answer 'A-1' was never shown"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "rule", "wrong"),
    BROKEN,
    ids=["in the prompt", "last code", "phrasing", "entity", "not shown"],
)
def test_a_finding_of_a_rule_says_what_is_wrong_and_where(
    changes: tuple[str, ...], rule: int, wrong: str, tmp_path: Path
) -> None:
    world = imported(tmp_path, PAGE, *changes).WORLD
    findings = [v for v in check_world(Bench((world,), ()), world) if v.state == "fail"]
    assert [v for v in findings if v.rule == rule and re.match(wrong, v.detail)], findings
    assert all(re.search(r"\(page_\d+.py, line \d+\)$", v.detail) for v in findings), findings

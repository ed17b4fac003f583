"""What a world declares wrongly is said in one sentence, with the file and the line."""

from __future__ import annotations

from pathlib import Path

import pytest
from pages import imported

from toolshift.core.errors import UsageError
from toolshift.worlds.declared import check_declared
from toolshift.worlds.registry import find_world

PAGE = "add-a-world.md"
MISTAKES = [
    ('    name = "library"\n', "", "it has no `name`"),
    ("    system = ", "    sytem = ", "it has no `system`.*did you mean sytem"),
    ("(find_book, get_shelf, reserve_book)", "(find_book, get_shelf)", "'reserve_book' has no fun"),
    ("def build(", "def bild(", "no method build"),
    ("(TITLE,)", "TITLE", r"`params` is a tuple of toolshift.Param.*comma"),
    ("Field((fact,), fact)", "Field(fact, fact)", "path .* is a tuple of keys"),
    ('"shelf": TaskKind("shelf"', '"shelf": TaskKind("shelves"', "its own name is 'shelves'"),
    ('effect="write"', 'effect="writes"', "'read' or 'write', not 'writes'"),
    ("name = action.__name__", "name = action.__name__ + '!'", "a name is up to 64 letters"),
    ("name = action.__name__", "name = 'refuse'", "is that of a protocol tool"),
    ('"type": "string", "minL', '"type": "strng", "minL', "is no JSON Schema"),
    ('("id", "identifier")', '"id"', "its words are a tuple of texts"),
    ("return Request(phrasings,", 'return Request({"dev": ()},', "none for the pool 'train'"),
    ('name = "library"', 'name = "my library"', "letters, digits"),
    (", origin=(name,)", "", r"origin is the name of the tool itself, \('find_book',\), not \(\)"),
    ("Field((fact,), fact)", "Field((fact,), fact, unit='kg')", "its key has to end with its unit"),
]


@pytest.mark.parametrize(("old", "new", "said"), MISTAKES, ids=[said for *_, said in MISTAKES])
def test_a_wrong_declaration_is_said_with_its_place(
    old: str, new: str, said: str, tmp_path: Path
) -> None:
    module = imported(tmp_path, PAGE, old, new)
    with pytest.raises(UsageError, match=rf"(?s)^world .*{said}.*\({module.__name__}.py, line \d+"):
        check_declared(module.WORLD)


def test_ours_and_the_one_of_the_docs_declare_nothing_wrong(tmp_path: Path) -> None:
    world = imported(tmp_path, PAGE).WORLD
    for each in (world, *map(find_world, ("poi", "medical", "retail"))):
        assert check_declared(each) is each

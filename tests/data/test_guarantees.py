"""What is promised of augmented data, for every format that there is."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from conversations import openai, question
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import toolshift.shifts
from toolshift.core.scene import Applied
from toolshift.core.shift import NotApplicable
from toolshift.data.augment import DEFAULT, Recipe, augmented
from toolshift.data.augment_quick import Quick
from toolshift.data.formats import FORMATS, ONLY_BACK
from toolshift.data.prepared import called, prepared
from toolshift.data.replay import check, replay, undone
from toolshift.shifts.training_families import TRAINING_FAMILIES

OPENAI = FORMATS.find("openai")
SEEDS = st.integers(0, 10**6)
FORMS = st.sampled_from([name for name in FORMATS.names() if name not in ONLY_BACK])
SHORTEST = 12
"""Shorter pieces of a wording may stand in any text."""


def row_of(name: str, seed: int) -> dict[str, Any]:
    if name == "xlam":
        return question(seed)
    row = openai(seed)
    written = row if name == "openai" else FORMATS.find(name).write(OPENAI.read(row), None)
    return json.loads(json.dumps(written))


def made(row: dict[str, Any], **recipe: Any) -> Any:
    return augmented(row, json.dumps(row).encode(), Recipe(**{"alpha": 1.0, **recipe}))


@settings(max_examples=60, deadline=None)
@given(FORMS, SEEDS, st.sampled_from(DEFAULT))
def test_every_learned_call_fits_and_further_columns_stay(name: str, seed: int, entry: str) -> None:
    form, row = FORMATS.find(name), {**row_of(name, seed), "mine": [seed, None]}
    for each in made(row, shifts=(entry,)).rows:
        check(form.read(json.loads(json.dumps(each))))
        assert each["mine"] == [seed, None]


@settings(max_examples=60, deadline=None)
@given(
    FORMS,
    SEEDS,
    st.sampled_from(TRAINING_FAMILIES.find("SBP")),
    st.integers(1, 3),
    st.integers(0, 15),
)
def test_a_renaming_that_is_undone_gives_the_original_back(
    name: str, seed: int, shift: str, severity: int, draw: int
) -> None:
    form, row = FORMATS.find(name), row_of(name, seed)
    before = form.read(row)
    try:
        ready = prepared(before.tools, (Applied(shift, severity),), called(before), draw)
    except NotApplicable:
        assume(False)
    (after,) = replay(before, ready)
    written = form.read(json.loads(json.dumps(form.write(after, row))))
    assert undone(written, ready, before).messages == before.messages


@settings(max_examples=10, deadline=None)
@given(st.lists(SEEDS, min_size=5, max_size=30, unique=True), st.randoms(), st.integers(1, 4))
def test_what_a_line_becomes_depends_on_no_other(
    seeds: list[int], rng: Random, workers: int
) -> None:
    recipe = Recipe(alpha=0.6, shifts=("SBP", "SRP"))
    lines = [json.dumps(openai(seed)).encode() for seed in seeds]
    one = Quick(recipe)
    alone = {line: one.line(line) for line in lines}
    rng.shuffle(lines)
    for worker in range(workers):
        own = Quick(recipe)  # each process has one
        for line in lines[worker::workers]:
            assert own.line(line) == alone[line]


# -- wordings of the evaluation --------------------------------------------------------------------


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for each in value.values() if isinstance(value, dict) else value:
        if each is not value and not isinstance(value, str):
            yield from texts(each) if isinstance(each, str | dict | list) else ()


@cache
def pieces() -> tuple[frozenset[str], frozenset[str]]:
    """What stands between the gaps of the wordings: of the training pool, and of others alone."""
    found: dict[str, set[str]] = {"train": set(), "dev": set(), "test": set()}
    for path in Path(toolshift.shifts.__file__).parent.glob("*.toml"):
        for table in tomllib.loads(path.read_text()).values():
            if isinstance(table, dict) and found.keys() <= table.keys():
                for pool, own in found.items():
                    for text in texts(table[pool]):
                        own |= {p.strip() for p in re.split(r"\{[^}]*\}", text)}
    long = {pool: {p for p in own if len(p) >= SHORTEST} for pool, own in found.items()}
    return frozenset(long["train"]), frozenset((long["dev"] | long["test"]) - long["train"])


def in_text(parts: frozenset[str], rows: Any) -> set[str]:
    shown = json.dumps(rows, ensure_ascii=False).replace('\\"', '"')
    return {part for part in parts if part in shown}


@settings(max_examples=60, deadline=None)
@given(FORMS, SEEDS, st.sampled_from(DEFAULT))
def test_wordings_of_the_evaluation_never_appear(name: str, seed: int, entry: str) -> None:
    _, held_out = pieces()
    assert not in_text(held_out, made(row_of(name, seed), shifts=(entry,)).rows)


def test_wordings_of_training_do_appear() -> None:
    train, held_out = pieces()
    assert len(held_out) > 100
    seen = {
        entry
        for entry in DEFAULT
        for seed in range(12)
        if in_text(train, made(row_of("openai", seed), shifts=(entry,)).rows)
    }
    assert {"EFP", "SRP", "midway", "graph"} <= seen

"""Honest styles score as their twin that speaks the protocol; exploits get no more than their floor.

A small part of the bench (`python -m strangers.bench`), which has more of both and all scenes.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from strangers.bench import cells, rates, run, summary
from strangers.exploits import BY_NAME as EXPLOITS
from strangers.exploits import Half
from strangers.styles import BY_NAME as STYLES

from toolshift.episode.oracle import OracleAgent
from toolshift.runs.cell import build

HONEST = (
    "chatty_prose", "nonbreaking_hyphen_prose", "markdown", "boxed", "spaced", "bare_lower_case",
    "names_identifiers_prose", "json_in_prose", "table", "follow_up", "non_native", "think_tags",
    "refuses_in_prose", "refuses_with_offer", "refuses_quoting_error", "asks_in_prose",
    "asks_with_reason", "asks_all_at_once", "extra_reads", "parallel_calls",
    "lists_the_rest_apart", "warns_of_a_mix_up", "corrects_itself", "for_the_records", "says_how_it_checked",
    "answer_with_details", "negations_around", "spelled_aloud", "html_entities",
)  # fmt: skip
CHEATS = (
    "lists_all_codes_prose", "dumps_results", "hedges", "hedges_cyrillic_other_disguised",
    "hedges_letters_other_disguised", "hedges_zero_width_wanted_disguised", "labels_all_codes",
    "labels_all_yours", "labels_all_as_wanted", "mislabels", "negation", "negation_prose",
    "enumerates_codes", "refuses_all_reasons", "refuses_and_answers", "conditional",
    "answers_and_refuses", "repeats_user_prose", "asks_for_ever", "pointless_question_prose",
    "somewhere_in_here", "one_of_these", "wrong_beside_right", "right_but_outdated", "takes_it_back",
    "second_choice", "right_first_then_second", "swaps_the_labels",
)  # fmt: skip


@cache
def bench() -> tuple[list[Any], list[Any], dict[str, list[Any]]]:
    """A spread of scenes over worlds, kinds and shifts, and how the twins do."""
    todo = cells(6, "dev")[::9]
    scenes = [build(cell) for cell in todo]
    twins = {"plain": OracleAgent(), "half": Half()}
    return todo, scenes, {name: records(a, todo, scenes) for name, a in twins.items()}


def records(agent: Any, todo: list[Any], scenes: list[Any]) -> list[Any]:
    return [record for record, _, _ in run(agent, todo, scenes)]


def test_the_scenes_are_of_both_kinds_and_the_oracle_solves_them() -> None:
    _, scenes, twins = bench()
    assert {scene.solvable for scene in scenes} == {True, False}
    assert all(record.grade.passed for record in twins["plain"])
    assert 0 < sum(record.grade.passed for record in twins["half"]) < len(scenes)


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_style_scores_as_its_twin(name: str) -> None:
    """Within two points in the whole bench; here one scene is two points."""
    todo, scenes, twins = bench()
    found = rates(records(STYLES[name](), todo, scenes))
    twin = rates(twins["plain"])
    assert found["void"] == 0
    assert found["passed"] >= twin["passed"] - 1


HEAVY = {"enumerates_codes"}  # reads of prose in the thousands


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name in HEAVY else ()) for name in CHEATS],
)
def test_an_exploit_gains_nothing(name: str) -> None:
    todo, scenes, twins = bench()
    agent = EXPLOITS[name]()
    done = run(agent, todo, scenes)
    said = summary(name, agent, done, twins[agent.twin], scenes, todo, 0)
    assert said["undeserved"] == 0
    assert (said["scored_gain_over_twin"] or 0) <= 0


ADDING = ("split_tools", "new_precondition", "conflicting_sources")
"""Shifts that show codes which the truth does not have: handles, permits, other sources."""


@cache
def with_added_codes() -> tuple[list[Any], list[Any]]:
    todo = [c for c in cells(1, "dev", True) if c.stack.partition(":")[0] in ADDING]
    scenes = [build(cell) for cell in todo]
    return todo, scenes


@pytest.mark.parametrize(
    "name", ["lists_the_rest_apart", "reports_then_answers", "answer_with_details"]
)
def test_codes_that_a_shift_adds_are_known_by_the_keys_that_show_them(name: str) -> None:
    todo, scenes = with_added_codes()
    assert len(todo) > 10
    assert [
        r.grade.cause for r in records(STYLES[name](), todo, scenes) if not r.grade.passed
    ] == []


@pytest.mark.parametrize("name", ["labels_all_yours", "mislabels", "swaps_the_labels", "hedges"])
def test_added_codes_help_no_exploit(name: str) -> None:
    todo, scenes = with_added_codes()
    agent = EXPLOITS[name]()
    assert not any(record.grade.passed for record in records(agent, todo, scenes))

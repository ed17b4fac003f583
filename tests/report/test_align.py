"""The alignment of a clean and a shifted episode, and the step that is to blame."""

from __future__ import annotations

import pytest

from toolshift.agents.catalog import contestants
from toolshift.episode.causes import guilty_step
from toolshift.report.align import Pair, align, first_divergence, matched_tools
from toolshift.runs.cell import build
from toolshift.runs.run_folder import Record
from toolshift.runs.study import play
from toolshift.runs.suite import read_task


def episode(agent: str, task: str, shifts: str = "") -> Record:
    return play(contestants([agent])[0], read_task(task, shifts))


def aligned(agent: str, task: str, shifts: str) -> tuple[list[Pair], Record, Record]:
    before, after = episode(agent, task), episode(agent, task, shifts)
    scenes = [build(read_task(task, stack)) for stack in ("", shifts)]
    return align(scenes[0], before.steps, scenes[1], after.steps), before, after


def test_a_renamed_tool_stands_beside_its_original() -> None:
    pairs, before, after = aligned("oracle", "poi/listing/0", "identity_erasure:2")
    assert [(pair.clean, pair.shifted) for pair in pairs] == [(0, 0), (1, 1), (2, 2)]
    assert before.steps[0].name != after.steps[0].name
    assert first_divergence(pairs) is None


def test_a_merged_tool_stands_beside_the_tools_it_replaces() -> None:
    pairs, _, _ = aligned("oracle", "poi/listing/0", "merged_tools:2")
    assert [(pair.clean, pair.shifted) for pair in pairs] == [(0, 0), (1, None), (2, 1)]
    assert "a part of" in pairs[1].note
    assert first_divergence(pairs) is None


def test_a_split_tool_stands_beside_the_one_it_was() -> None:
    pairs, _, after = aligned("oracle", "poi/booking/0", "split_tools:1")
    assert [(pair.clean, pair.shifted) for pair in pairs[:3]] == [(0, 0), (None, 1), (1, 2)]
    assert after.steps[1].name == "start_list_slots"
    assert first_divergence(pairs) is None


def test_a_call_that_fails_first_has_a_row_of_its_own() -> None:
    pairs, _, after = aligned("oracle", "poi/listing/0", "redirect:2")
    assert [(pair.clean, pair.shifted) for pair in pairs[:2]] == [(None, 0), (0, 1)]
    assert not after.steps[0].ok
    assert first_divergence(pairs) == 0
    assert pairs[1].same


def test_a_memorised_name_is_where_the_episodes_part() -> None:
    pairs, _, after = aligned("memorises_names", "poi/listing/0", "identity_erasure:2")
    assert pairs[0] == Pair(0, 0, False, "The call fails here.")
    assert pairs[-1].note == "The clean episode answers; this one refuses."
    scene = build(read_task("poi/listing/0", "identity_erasure:2"))
    assert after.grade.cause == "memorised_name"
    assert guilty_step(scene, after.steps, after.grade.cause) == 0


def test_an_answer_that_should_have_been_a_refusal_is_the_guilty_step() -> None:
    pairs, _, after = aligned("never_refuses", "poi/budget/0", "fatal_error:2")
    scene = build(read_task("poi/budget/0", "fatal_error:2"))
    last = len(after.steps) - 1
    assert guilty_step(scene, after.steps, after.grade.cause) == last
    assert (pairs[-1].shifted, pairs[-1].same) == (last, False)


def test_a_pass_has_no_guilty_step() -> None:
    passed = episode("oracle", "poi/listing/0")
    assert guilty_step(build(read_task("poi/listing/0")), passed.steps, "") is None


def test_in_another_domain_calls_stand_side_by_side_as_they_come() -> None:
    pairs, _, _ = aligned("oracle", "poi/listing/0", "unseen_domain:2")
    assert [(pair.clean, pair.shifted) for pair in pairs[:2]] == [(0, 0), (1, 1)]
    assert pairs[-1].clean is not None
    assert pairs[-1].shifted is not None


def test_a_distractor_is_nobodys_partner() -> None:
    clean = build(read_task("poi/listing/0")).tools
    shifted = build(read_task("poi/listing/0", "semantic_trap:3")).tools
    for left, right in matched_tools(clean, shifted):
        if left is not None and right is not None:
            assert clean[left].origin == shifted[right].origin
    matched = [right for left, right in matched_tools(clean, shifted) if left is not None]
    assert None not in matched


@pytest.mark.parametrize("agent", ["oracle", "memorises_names", "gives_up"])
@pytest.mark.parametrize(
    "stack", ["new_precondition:2", "tool_removed_midway:2", "reversed_order:2", "truncation:3"]
)
def test_every_step_is_in_one_row_and_in_order(agent: str, stack: str) -> None:
    pairs, before, after = aligned(agent, "poi/look_then_book/0", stack)
    left = [pair.clean for pair in pairs if pair.clean is not None]
    right = [pair.shifted for pair in pairs if pair.shifted is not None]
    assert left == list(range(len(before.steps)))
    assert right == list(range(len(after.steps)))


def test_without_scenes_names_count_as_they_are() -> None:
    before = episode("oracle", "poi/listing/0")
    pairs = align(None, before.steps, None, before.steps)
    assert first_divergence(pairs) is None
    assert align(None, (), None, before.steps)[0].clean is None

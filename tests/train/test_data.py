"""Training data: what is drawn, what the oracle does there, and what the files hold."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolshift.core.errors import UsageError
from toolshift.core.scene import Applied
from toolshift.core.shift import TIERS
from toolshift.shifts.registry import find_shift, shifts
from toolshift.shifts.stacks import stacks_of
from toolshift.shifts.training_families import HELD_OUT, TRAINING_FAMILIES
from toolshift.train.card import statistics
from toolshift.train.data import expert_rows, make_rows
from toolshift.train.rows import read_rows
from toolshift.train.scenes import Mix, check, draw
from toolshift.worlds.registry import find_world


@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.3, 1.0])
def test_the_share_alpha_is_shifted(alpha):
    scenes = [draw(Mix(alpha=alpha), number) for number in range(100)]
    assert sum(bool(scene.shifts) for scene in scenes) == pytest.approx(100 * alpha, abs=1)


def test_scenes_of_one_block_are_shown_the_same_tools():
    mix = Mix(alpha=1, shifts=("SBP", "SRP", "diverse"), share=4, size=200)
    for block in range(8):
        scenes = [draw(mix, 4 * block + part) for part in range(4)]
        assert len({scene.task.kind for scene in scenes}) == 1
        assert len({scene.task.id for scene in scenes}) == 4
        if len({scene.shifts for scene in scenes}) == 1 and len(scenes[0].calls) == len(
            scenes[1].calls
        ):
            assert len({tuple(tool.name for tool in scene.tools) for scene in scenes}) == 1


def test_no_family_and_no_tier_trains_on_a_mechanism_held_out():
    for entry in (*TRAINING_FAMILIES.names(), *TIERS, "all"):
        stacks = stacks_of(entry, 2)
        assert stacks
        assert not {each.shift for stack in stacks for each in stack} & set(HELD_OUT)
    assert stacks_of("csv_results", 2) == ((Applied("csv_results", 2),),)


def test_every_family_names_registered_shifts():
    families = TRAINING_FAMILIES.all().values()
    texts = {part for family in families for text in family for part in text.split("+")}
    for name in {text.partition(":")[0] for text in texts}:
        assert find_shift(name).name.partition("@")[0] in shifts(), "or one kept by its version"


@settings(max_examples=40, deadline=None)
@given(number=st.integers(0, 400), family=st.sampled_from(sorted(TRAINING_FAMILIES.names())))
def test_a_scene_depends_on_its_number_alone(number, family):
    mix = Mix(alpha=1, shifts=(family,), size=200)
    one, other = draw(mix, number), draw(mix, number)
    assert (one.task, one.shifts) == (other.task, other.shifts)
    assert one.task.pool == "train"
    assert expert_rows(one) == expert_rows(other)


def test_given_tasks_are_met_again_under_other_draws():
    own = str(Path(__file__).parents[2] / "examples" / "own_tools" / "tasks.yaml")
    mix = Mix(worlds=(own,), alpha=0.5, shifts=("SBP", "EFP"))
    few = {kind: count for kind, count in find_world(own).counts.items() if count < 15}
    rows = make_rows(mix, 60)
    assert few, "the example has tasks enough, so none is met again"
    assert 30 <= statistics(rows).shifts["clean"] < 40
    assert len({row["lineage"] for row in rows}) == 60
    assert len({row["id"] for row in rows if row["shifts"]}) > 20
    assert statistics(rows).distinct == len({row["id"] for row in rows}) < len(rows)
    assert rows == make_rows(mix, 60)


def test_entities_are_of_the_training_pool_alone():
    trained = {str(row["messages"][1]) for row in make_rows(Mix(size=200), 60)}
    asked = {str(draw(Mix(size=200, pool="dev"), number).asks[0].text) for number in range(60)}
    assert not trained & asked


def test_a_call_that_was_made_to_fail_is_context_only():
    mix = Mix(alpha=1, shifts=("transient_error:2",), size=200)
    for row in make_rows(mix, 10):
        masked = [place for place, m in enumerate(row["messages"]) if m.get("weight") == 0]
        assert masked
        for place in masked:
            assert "error" in row["messages"][place + 1]["content"]


def test_each_list_of_tools_gives_a_row_of_its_own():
    rows = make_rows(Mix(alpha=1, shifts=("tool_migrated:2",), size=200), 12)
    by_task: dict[str, list] = {}
    for row in rows:
        by_task.setdefault(row["lineage"], []).append(row)
    assert any(len(parts) > 1 for parts in by_task.values())
    for parts in by_task.values():
        taught = [
            [
                place
                for place, m in enumerate(p["messages"])
                if m["role"] == "assistant" and m.get("weight", 1)
            ]
            for p in parts
        ]
        places = [place for some in taught for place in some]
        assert len(places) == len(set(places))  # each turn is taught once
        for part in parts:
            offered = {tool["function"]["name"] for tool in part["tools"]}
            for message in part["messages"]:
                if message["role"] == "assistant" and message.get("weight", 1):
                    assert {c["function"]["name"] for c in message["tool_calls"]} <= offered


def _looks_up_first(messages) -> bool:
    """Whether the expert looks up the first place of the list before the others."""
    arguments = json.loads(messages[4]["tool_calls"][0]["function"]["arguments"])
    return arguments["place_id"] == json.loads(messages[3]["content"])[0]["place_id"]


def test_order_and_wording_vary():
    mix = Mix(kinds=("cheapest",), size=200)
    firsts = {_looks_up_first(row["messages"]) for row in make_rows(mix, 20)}
    assert firsts == {True, False}
    asked = Mix(alpha=1, shifts=("query_underspecification:1",), size=200)
    questions = {
        call["function"]["arguments"].split('":"')[1].split(" ")[0]
        for row in make_rows(asked, 30)
        for message in row["messages"]
        for call in message.get("tool_calls", ())
        if call["function"]["name"] == "ask_user"
    }
    assert len(questions) > 1


@pytest.mark.parametrize(
    ("mix", "said"),
    [
        (Mix(alpha=1.5), "from 0 to 1"),
        (Mix(alpha=0.5, shifts=("SBQ",)), "did you mean SBP"),
        (Mix(alpha=0.5, shifts=("identity_erasure:4",)), "1 to 3"),
        (Mix(alpha=0.5, shifts=("EFP+redirect",)), "EFP in EFP.redirect is a family"),
        (Mix(kinds=("bookin",)), "did you mean booking"),
        (Mix(worlds=("pio",)), "did you mean poi"),
        (Mix(alpha=0.5, shifts=()), "no shift is named"),
        (Mix(pool="test"), "planned studies"),
        (Mix(size=0), "size must be at least 10, not 0"),
        (Mix(seed=-1), "seed must be 0 or more, not -1"),
    ],
)
def test_a_wrong_mix_is_refused(mix, said):
    with pytest.raises(UsageError, match=said):
        check(mix)


def test_trajectories_are_counted_and_not_their_rows():
    rows = make_rows(Mix(alpha=1.0, shifts=("midway", "limits"), size=200), 40)
    found = statistics(rows)
    assert len(rows) > 40
    assert sum(found.kinds.values()) == sum(found.shifts.values()) == 40
    last = {row["lineage"]: row["messages"] for row in rows}
    refused = sum(said[-1]["tool_calls"][0]["function"]["name"] == "refuse"
                  for said in last.values() if said[-1]["role"] == "assistant")  # fmt: skip
    assert found.unsolvable == refused > 0


@pytest.mark.parametrize(
    "words", [("data", "--out", "d.jsonl"), ("train", "grpo", "--preset", "smoke", "--out", "g")]
)
def test_a_shift_without_a_share_of_it_is_refused(tmp_path, toolshift, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    code, _, said = toolshift(*words, "--shift", "EFP")
    assert code == 2
    assert "--shift is given, but --alpha is 0" in said
    assert not (tmp_path / words[-1]).exists()


def test_the_command_writes_rows_and_a_card(tmp_path, toolshift):
    out = tmp_path / "rows.jsonl"
    words = ("--out", out, "--count", "12", "--alpha", "0.3", "--size", "200", "--json")
    code, text, _ = toolshift("data", *words)
    assert code == 0
    said = json.loads(text)
    assert said["rows"] == len(read_rows(out)) >= 12
    assert said["sha256"] in (tmp_path / "rows.jsonl.md").read_text()


def test_where_nothing_can_be_written_is_said_before_rows_are_made(
    toolshift, tmp_path, monkeypatch
):
    monkeypatch.setattr("toolshift.cli.data.make_rows", None)
    (tmp_path / "file").touch()
    code, _, said = toolshift("data", "--out", tmp_path / "file" / "rows.jsonl", "--count", "2")
    assert (code, "there can be no folder" in said) == (2, True)


def test_the_command_refuses_other_formats(tmp_path, toolshift):
    code, _, said = toolshift("data", "--out", tmp_path / "rows.csv", "--count", "2")
    assert code == 2
    assert ".jsonl or .parquet" in said


def test_a_world_from_which_nothing_would_be_drawn_is_refused():
    with pytest.raises(UsageError, match=r"the world retail has none of the kinds listing"):
        check(Mix(worlds=("poi", "retail"), kinds=("listing",)))

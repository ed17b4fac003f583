"""BFCL as a world, with the package that the user installs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from running import Run

from toolshift.core.message import Reply, ToolCall
from toolshift.core.scene import Scene
from toolshift.core.shift import NotApplicable
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import Episode
from toolshift.episode.grade import Grade, grade
from toolshift.episode.oracle import OracleAgent
from toolshift.shifts.registry import apply, shifts
from toolshift.train.data import make_rows
from toolshift.train.scenes import Mix
from toolshift.worlds.bfcl import find_bfcl, wheel
from toolshift.worlds.bfcl.multi_turn import read_call
from toolshift.worlds.bfcl.world import MULTI_TURN

pytest.importorskip("bfcl_eval", reason="bfcl-eval is not installed (make setup does it)")
pytest.importorskip("mpmath", reason="mpmath is not installed (make setup does it)")

Output = list[list[tuple[str, dict[str, Any]]]]


def scene_of(category: str, index: int) -> Scene:
    return make_scene(find_bfcl(f"bfcl:{category}"), category, index)


def said(scene: Scene, output: Output) -> Grade:
    """The grade of an output: calls turn by turn, each turn ended by an answer."""
    episode = Episode(scene)
    for calls in output:
        for name, arguments in calls:
            episode.take(Reply(calls=(ToolCall(name, arguments),)))
        episode.take(Reply(calls=(ToolCall("final_answer", {"answer": "Done."}),)))
    return grade(episode)


def truth_of(scene: Scene) -> Output:
    """The ground truth as an output."""
    output: Output = [[] for _ in scene.asks]
    for call in scene.expected:  # type: ignore[attr-defined]
        output[call.turn].append((call.name, dict(call.arguments)))
    return output


def theirs(category: str, index: int, output: Output) -> bool:
    """What BFCL's own checker says, given the text that a model would have written."""
    entry = find_bfcl(f"bfcl:{category}").entries[category][index]
    spoken = [
        [[f"{n}({', '.join(f'{k}={v!r}' for k, v in made.items())})"] for n, made in calls]
        for calls in output
    ]
    checker = wheel.multi_turn_checker()
    try:
        found = checker.multi_turn_checker(spoken, entry.answers, entry.raw, "", "test")
    finally:
        kept = vars(wheel.part(f"{checker.__package__}.multi_turn_utils"))
        for name in [name for name in kept if name.endswith("_instance")]:
            del kept[name]
    return bool(found["valid"])


@pytest.mark.parametrize("category", MULTI_TURN)
def test_verdicts_are_those_of_the_own_checker(category: str) -> None:
    for index in range(0, 199, 33):
        scene = scene_of(category, index)
        right = truth_of(scene)
        first = next(turn for turn, calls in enumerate(right) if calls)
        short = [calls[:-1] if turn == first else calls for turn, calls in enumerate(right)]
        twice = [calls * 2 if turn == first else calls for turn, calls in enumerate(right)]
        for output in (right, short, twice, [[] for _ in right]):
            assert said(scene, output).passed == theirs(category, index, output)
        assert said(scene, right).passed
        assert not said(scene, [[] for _ in right]).passed


@pytest.mark.parametrize("category", [*MULTI_TURN[:3], "parallel_multiple", "irrelevance"])
def test_the_oracle_proves_entries_clean_and_under_every_shift_that_applies(category: str) -> None:
    world = find_bfcl(f"bfcl:{category}")
    index = len(world.entries[category]) // 2
    applied = 0
    for name in ("", *(each for each in shifts() if each != "query_paraphrase")):
        clean = scene_of(category, index)
        try:
            scene = apply(clean, name, 2) if name else clean
        except NotApplicable:
            continue
        episode = Episode(scene, live=False)
        OracleAgent().play(episode)
        found = grade(episode)
        assert found.passed, name
        assert found.solvable or found.right_reason, name
        applied += 1
    assert applied > 8


def test_what_is_held_back_comes_with_its_turn_and_can_be_called_before_as_in_bfcl() -> None:
    scene = scene_of("multi_turn_miss_func", 3)
    assert "find" not in {tool.name for tool in scene.tools}
    assert said(scene, truth_of(scene)).passed
    episode = Episode(scene)
    assert episode.call("find", {"path": ".", "name": "test"})[1].ok
    episode.refuse("tool_unavailable")
    assert episode.asked == 1
    assert "find" in episode.steps[-1].tools
    assert "find" in {tool.name for tool in episode.tools}


def test_what_a_call_keeps_of_its_arguments_does_not_change_the_call() -> None:
    scene = scene_of("multi_turn_base", 90)  # a list of mentions, to which a later call adds
    right = truth_of(scene)
    before = json.dumps(right)
    assert said(scene, right).passed
    assert json.dumps(right) == before == json.dumps(truth_of(scene))


def test_irrelevant_functions_are_refused_and_a_call_fails() -> None:
    scene = scene_of("irrelevance", 0)
    tool = scene.tools[0]
    assert not scene.solvable
    assert said(scene, [[]]).passed
    episode = Episode(scene)
    episode.refuse("tool_unavailable")
    assert grade(episode).passed
    assert grade(episode).right_reason
    fitting = {p.name: 1 for p in tool.params if p.required}
    made = said(scene, [[(tool.name, fitting)]])
    assert (made.passed, made.cause) == (False, "wrong_tool")
    for unsent in ((tool.name, {"nonsense": 1}), ("no_such_function", {})):
        assert not said(scene, [[unsent]]).passed
        episode = Episode(scene)
        episode.take(Reply(calls=(ToolCall(*unsent),)))
        episode.refuse("tool_unavailable")
        assert (episode.end, grade(episode).passed) == ("refused", False)


def test_calls_of_one_turn_are_graded_as_bfcl_grades_them() -> None:
    scene = scene_of("parallel", 3)
    right = truth_of(scene)
    name, arguments = right[0][0]
    assert name == "protein_info_get_sequence_and_3D"
    assert said(scene, [right[0][::-1]]).passed
    assert not said(scene, [right[0][1:]]).passed
    assert not said(scene, [[*right[0], right[0][0]]]).passed
    other = {**arguments, "protein_name": "rat"}
    assert not said(scene, [[(name, other), *right[0][1:]]]).passed
    spelt = {**arguments, "protein_name": arguments["protein_name"].upper() + "."}
    assert said(scene, [[(name, spelt), *right[0][1:]]]).passed


def test_an_argument_left_out_where_nothing_was_returned_before_is_no_ignored_result() -> None:
    scene = scene_of("simple_python", 7)
    ((right,),) = truth_of(scene)
    name, arguments = right
    short = {"radius": arguments["radius"]}
    assert short != arguments
    found = said(scene, [[(name, short)]])
    assert (found.passed, found.cause) == (False, "bad_arguments")
    assert said(scene, [[right]]).passed


def test_values_of_java_and_javascript_are_written_as_source() -> None:
    java = scene_of("simple_java", 22)
    ((name, arguments),) = truth_of(java)[0]
    assert arguments["ids"] == "new ArrayList<>(Arrays.asList(101L, 202L, 303L))"
    tool = next(tool for tool in java.tools if tool.name == name)
    schema = next(param.schema for param in tool.params if param.name == "ids")
    assert schema["type"] == "string"
    assert "of type ArrayList of long" in schema["description"]
    assert said(java, truth_of(java)).passed


def test_entries_of_which_no_task_can_be_made_are_named_with_the_reason() -> None:
    early = find_bfcl("bfcl:multi_turn_miss_func")
    assert list(early.left_out) == ["multi_turn_miss_func_49"]
    assert "not offered" in early.left_out["multi_turn_miss_func_49"]
    assert early.counts == {"multi_turn_miss_func": 199}
    assert "own checker" in find_bfcl("bfcl:simple_java").left_out["simple_java_35"]


def test_trajectories_to_train_on_refuse_and_ask_where_a_turn_is_blocked() -> None:
    mix = Mix(worlds=("bfcl:multi_turn_miss_func", "bfcl:multi_turn_miss_param"), alpha=0.5)
    rows = make_rows(mix, 8)
    names = [
        call["function"]["name"]
        for row in rows
        for message in row["messages"]
        for call in message.get("tool_calls", ())
    ]
    assert {"refuse", "ask_user", "final_answer"} <= set(names)
    assert any(row["shifts"] for row in rows)


def test_a_run_and_a_report_from_the_command_line(toolshift: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    asked = ["run", "--world", "bfcl:multi_turn_base", "--tasks", "2", "--out", str(out), "--json"]
    agents = ["--agent", "oracle", "--agent", "memorises_names"]
    code, text, _ = toolshift(*asked, *agents, "--shift", "identity_erasure", "--no-placebo")
    assert code == 0
    found = {agent["name"]: agent for agent in json.loads(text)["agents"]}
    assert found["oracle"]["clean"]["accuracy"]["estimate"] == 1
    assert found["memorises_names"]["tiers"][0]["accuracy"]["estimate"] < 1
    assert toolshift("regrade", str(out))[0] == 0
    rerun = ["gate", str(out), "--agent", "oracle", "--baseline-agent", "memorises_names"]
    assert toolshift(*rerun, "--baseline", str(out), "--margin", "40")[0] in (0, 3)


def test_a_category_is_checked_like_any_world(toolshift: Run) -> None:
    code, text, _ = toolshift("check", "bfcl:live_parallel", "--json")
    assert [rule for rule in json.loads(text) if rule["state"] == "fail"] == []
    assert code == 0


def test_an_unknown_category_is_answered_with_the_nearest(toolshift: Run) -> None:
    code, _, said = toolshift("run", "--world", "bfcl:multi_turn_bas", "--agent", "oracle")
    assert code == 2
    assert "did you mean multi_turn_base " in said


def test_calls_are_read_as_values_alone() -> None:
    assert read_call("f('a', b=[1, {'c': None}])").by_name(["x", "b"]) == {
        "x": "a",
        "b": [1, {"c": None}],
    }
    for text in ("f(g())", "f(**x)", "a", "f(x)"):
        with pytest.raises(ValueError, match=r"is not a call|malformed"):
            read_call(text)


def test_csv_results_change_nothing_where_results_are_texts() -> None:
    for category, index in (("simple_python", 0), ("irrelevance", 0)):
        for name in ("format_drift", "csv_results"):
            with pytest.raises(NotApplicable, match="no result of the task holds data"):
                apply(scene_of(category, index), name, 2)
    assert apply(scene_of("multi_turn_base", 0), "csv_results", 2).layers

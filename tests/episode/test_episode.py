"""The loop of an episode: budgets, calls, endings, the trace, and the conversation made of it."""

from __future__ import annotations

import gc
import json
import weakref
from functools import cache
from typing import Any

import pytest
from scenes import shifted

from toolshift.core.layer import Layer, Memory
from toolshift.core.message import Reply, ToolCall, Usage
from toolshift.core.scene import Scene
from toolshift.core.step import Step
from toolshift.core.tool import BROKEN_SHIFT, Tool
from toolshift.episode.budget import Budget
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import Episode, Over, messages
from toolshift.episode.oracle import OracleAgent
from toolshift.worlds.registry import find_world


@cache
def scene_of(kind: str, *stack: tuple[str, int]) -> Scene:
    clean = make_scene(find_world("poi"), kind, 0, pool="dev")
    scene = shifted(clean, *stack) if stack else clean
    assert scene is not None
    return scene


BOOKING = scene_of("booking")
FIND = {"name": "Quiet Thistle", "city": "Vostrand 2"}


def call(tool: str, /, **arguments: Any) -> ToolCall:
    return ToolCall(tool, arguments)


def replayed(scene: Scene) -> Episode:
    """An episode in which the oracle's steps are made again."""
    episode = Episode(scene)
    for step in scene.rehearsal:
        if step.kind == "call":
            assert isinstance(step.arguments, dict)
            episode.call(step.name, step.arguments)
        elif step.kind == "answer":
            episode.answer(step.said)
    return episode


# -- budgets -----------------------------------------------------------------------------------


def test_an_episode_ends_where_a_call_has_the_same_result_as_often_as_is_allowed() -> None:
    """Without the limit it goes on; another result, or another call, is counted apart."""
    wrong = {"place_id": "PL-0000"}
    free, limited = Episode(BOOKING), Episode(BOOKING, Budget.of(BOOKING, repeats=3))
    for _ in range(4):
        free.take(Reply(calls=(call("get_details", **wrong),)))
    limited.take(Reply(calls=(call("get_details", **wrong),)))
    limited.take(Reply(calls=(call("find_place", **FIND),)))
    for _ in range(3):
        limited.take(Reply(calls=(call("get_details", **wrong),)))
    assert not free.end
    assert limited.end == "budget"
    assert [step.kind for step in limited.steps] == ["call"] * 4 + ["budget"]
    assert (limited.steps[-1].said, limited.turn) == ("repeats", 3)


def test_calls_of_the_protocol_that_cannot_be_read_are_counted_too() -> None:
    episode = Episode(BOOKING, Budget.of(BOOKING, repeats=2))
    for _ in range(2):
        episode.take(Reply(calls=(call("final_answer", text="5"),)))
    assert (episode.end, episode.steps[-1].said) == ("budget", "repeats")


def test_a_budget_is_twice_what_the_oracle_needs_and_some_more() -> None:
    assert Budget.of(BOOKING) == Budget(12, 16)
    long = scene_of("look_then_book")
    assert (len(long.calls), len(long.rehearsal)) == (5, 7)
    assert Budget.of(long) == Budget(16, 22)


def test_the_call_after_the_last_one_of_the_budget_ends_the_episode() -> None:
    episode = Episode(BOOKING, Budget(2, 9))
    for _ in range(2):
        episode.call("find_place", FIND)
    assert episode.end == ""
    with pytest.raises(Over):
        episode.call("find_place", FIND)
    assert episode.end == "budget"
    assert [step.kind for step in episode.steps] == ["call", "call", "budget"]
    assert episode.steps[-1].said == "calls"


def test_the_last_turn_of_the_budget_ends_the_episode() -> None:
    episode = Episode(BOOKING, Budget(9, 2))
    episode.take(Reply("", (call("find_place", **FIND),)))
    assert (episode.turn, episode.end) == (1, "")
    episode.take(Reply("", (call("find_place", **FIND),)))
    assert (episode.turn, episode.end, episode.steps[-1].said) == (2, "budget", "turns")


def test_an_end_in_the_last_turn_is_that_end() -> None:
    episode = Episode(BOOKING, Budget(9, 1))
    episode.take(Reply("", (call("final_answer", answer="TGJG-FP7P"),)))
    assert (episode.end, episode.turn) == ("answered", 1)
    assert [step.kind for step in episode.steps] == ["answer"]


def test_nothing_happens_after_the_end() -> None:
    episode = Episode(BOOKING)
    episode.refuse("not_found", "It is not there.")
    for act in (
        lambda: episode.call("find_place", FIND),
        lambda: episode.answer("TGJG-FP7P"),
        lambda: episode.ask("Which city?"),
        lambda: episode.refuse("not_found"),
    ):
        with pytest.raises(Over):
            act()
    assert episode.end == "refused"
    (step,) = episode.steps
    assert (step.kind, step.name, step.said, step.prose) == (
        "refuse", "not_found", "It is not there.", False,
    )  # fmt: skip


@pytest.mark.parametrize(("act", "end"), [("crash", "crashed"), ("fail", "infrastructure")])
def test_breaking_down_is_said_to_be_whose_it_is(act: str, end: str) -> None:
    episode = Episode(BOOKING)
    getattr(episode, act)("KeyError")
    assert (episode.end, episode.steps) == (end, [Step("failure", 0, said="KeyError", ok=False)])


# -- calls -------------------------------------------------------------------------------------


def test_a_replay_of_the_oracle_has_its_trace() -> None:
    for kind in ("booking", "look_then_book"):
        scene = scene_of(kind)
        episode = replayed(scene)
        assert episode.end == "answered"
        assert [s.text for s in episode.steps] == [s.text for s in scene.rehearsal]
        assert [s.effects for s in episode.steps] == [s.effects for s in scene.rehearsal]
        assert [s.true for s in episode.steps] == [s.true for s in scene.rehearsal]
        assert not any(s.touched or s.hint or s.evidence or s.tools for s in episode.steps)


def test_a_write_is_in_the_step_that_made_it_and_in_no_other() -> None:
    episode = replayed(BOOKING)
    assert [len(step.effects) for step in episode.steps] == [0, 0, 1, 0]
    assert [len(step.true) for step in episode.steps] == [1, 1, 1, 0]


def test_a_tool_that_is_not_there_is_answered_with_those_that_are() -> None:
    episode = Episode(BOOKING)
    text, result = episode.call("launch_rocket", {})
    assert not result.ok
    assert "Unknown tool launch_rocket. Available tools: search_places, find_place" in text
    (step,) = episode.steps
    assert (step.ok, step.error, step.true, step.evidence) == (False, "unknown_tool", (), "")


def test_wrong_arguments_never_reach_the_tool() -> None:
    episode = Episode(BOOKING)
    text, result = episode.call("find_place", {"name": 3})
    assert not result.ok
    assert "find_place: " in text
    assert (episode.steps[0].error, episode.steps[0].true) == ("invalid_arguments", ())


def test_an_empty_lookup_is_evidence() -> None:
    episode = Episode(BOOKING)
    episode.call("find_place", {"name": "Zebra Palace", "city": "Vostrand 2"})
    (step,) = episode.steps
    assert (step.ok, step.evidence) == (False, "not_found")
    episode.call("search_places", {"city": "Nowhere", "category": "museum"})
    assert episode.steps[1].evidence in ("", "not_found")
    assert replayed(BOOKING).steps[0].evidence == ""


@pytest.mark.parametrize(
    ("shift", "evidence"),
    [
        ("fatal_error", ["", "", "", "", "service_failure"]),
        ("tool_gone", ["tool_unavailable", ""]),
        ("tool_removed_midway", ["tool_unavailable", "", ""]),
    ],
)
def test_a_fatal_error_and_a_withdrawn_tool_are_evidence(shift: str, evidence: list[str]) -> None:
    scene = scene_of("booking", (shift, 2))
    assert [step.evidence for step in scene.calls] == evidence
    gone = [step.tools for step in scene.calls]
    for before, named in zip(gone, evidence, strict=True):
        assert bool(before) == (named == "tool_unavailable")


def test_only_results_that_a_layer_has_changed_are_touched() -> None:
    drifted = scene_of("booking", ("format_drift", 3))
    assert any(step.touched for step in replayed(drifted).steps)
    renamed = scene_of("booking", ("parameter_rename", 2))
    assert not any(step.touched for step in renamed.calls)
    episode = Episode(drifted)
    episode.call("launch_rocket", {})
    assert not episode.steps[0].touched


# -- replies -----------------------------------------------------------------------------------


def test_words_stand_beside_the_first_call_of_a_reply() -> None:
    episode = Episode(BOOKING)
    episode.take(Reply("Let me look.", (call("find_place", **FIND), call("find_place", **FIND))))
    assert [step.said for step in episode.steps] == ["Let me look.", ""]
    assert [step.turn for step in episode.steps] == [0, 0]
    assert episode.turn == 1


def test_usage_adds_up() -> None:
    episode = Episode(BOOKING)
    for factor in (1, 10):
        used = Usage(3 * factor, 5 * factor, 0.25 * factor)
        episode.take(Reply("", (call("find_place", **FIND),), used))
    assert episode.usage == Usage(33, 55, 2.75)


def test_a_failed_endpoint_ends_the_episode() -> None:
    episode = Episode(BOOKING)
    episode.take(Reply("", failure="no answer in 60 s"))
    assert (episode.end, episode.steps[0].said) == ("infrastructure", "no answer in 60 s")


def test_calls_after_the_answer_are_not_made() -> None:
    episode = Episode(BOOKING)
    episode.take(Reply("", (call("final_answer", answer="X"), call("find_place", **FIND))))
    assert [step.kind for step in episode.steps] == ["answer"]


@pytest.mark.parametrize(
    ("made", "kind", "name", "said"),
    [
        (call("final_answer", answer="TGJG-FP7P"), "answer", "", "TGJG-FP7P"),
        (call("refuse", reason="not_found", explanation="Gone."), "refuse", "not_found", "Gone."),
        (call("refuse", reason="not_found"), "refuse", "not_found", "Beside."),
        (call("ask_user", question="Which city?"), "ask", "", "Which city?"),
    ],
)
def test_calls_of_the_protocol(made: ToolCall, kind: str, name: str, said: str) -> None:
    episode = Episode(BOOKING)
    episode.take_call(made, "Beside.")
    step = episode.steps[0]
    assert (step.kind, step.name, step.said, step.prose) == (kind, name, said, False)


def test_a_call_of_the_protocol_that_cannot_be_read_is_an_observation() -> None:
    episode = Episode(BOOKING, Budget(2, 9))
    episode.take_call(call("final_answer", reply="X"))
    step = episode.steps[0]
    assert (step.kind, step.ok, step.error, episode.end) == (
        "call", False, "invalid_arguments", "",
    )  # fmt: skip
    assert step.text
    episode.take_call(call("refuse"))
    with pytest.raises(Over):  # it has cost its share of the budget
        episode.call("find_place", FIND)


def test_without_the_protocol_its_tools_are_unknown() -> None:
    episode = Episode(BOOKING)
    episode.take_call(call("final_answer", answer="X"), protocol=False)
    assert (episode.end, episode.steps[0].error) == ("", "unknown_tool")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("It is TGJG-FP7P.", "answer"),
        ("Which city is it in?", "ask"),
        ("I could not find it, sorry.", "refuse"),
        ("Done!", "answer"),
    ],
)
def test_prose_ends_a_turn_as_it_is_read(text: str, kind: str) -> None:
    episode = Episode(BOOKING)
    episode.take(Reply(text))
    step = episode.steps[0]
    assert (step.kind, step.said, step.prose) == (kind, text, True)


# -- the user ----------------------------------------------------------------------------------


def test_the_user_answers_and_the_slot_is_kept() -> None:
    episode = Episode(BOOKING)
    reply = episode.ask("What is the city?")
    (step,) = episode.steps
    assert reply == step.text == "The city is Vostrand 2."
    assert (step.slot, step.evidence, step.prose) == ("city", "", False)


def test_a_contradiction_comes_to_light_when_it_is_asked_about() -> None:
    scene = scene_of("booking", ("contradictory_request", 1))
    torn = next(slot for slot, value in scene.asks[0].goal.items() if isinstance(value, tuple))
    episode = Episode(scene)
    for slot in (torn, next(s for s in scene.asks[0].goal if s != torn)):
        episode.ask(f"What is the {scene.world.facts[slot].label}?")
    assert [step.evidence for step in episode.steps] == ["contradictory_request", ""]


def test_after_an_answer_the_user_goes_on() -> None:
    scene = scene_of("look_then_book")
    episode = Episode(scene)
    assert episode.ask_now is scene.asks[0]
    assert episode.answer("R46R-SB73") == scene.asks[1].text
    assert (episode.end, episode.ask_now) == ("", scene.asks[1])
    assert episode.steps[0].text == scene.asks[1].text
    assert episode.answer("54XK-XLKG") == ""
    assert (episode.end, episode.steps[1].text) == ("answered", "")


# -- the conversation --------------------------------------------------------------------------


def test_a_trace_reads_as_a_conversation() -> None:
    scene = scene_of("look_then_book")
    episode = Episode(scene)
    episode.take(Reply("Let me look.", (call("find_place", **FIND), call("get_hours", **FIND))))
    episode.take(Reply("", (call("ask_user", question="Which city?"),)))
    episode.take(Reply("", (call("final_answer", answer="R46R-SB73"),)))
    episode.take(Reply("Which day do you mean?"))
    episode.take(Reply("", (call("refuse", reason="not_found"),)))
    said = messages(scene, episode.steps)
    assert [message["role"] for message in said] == [
        "system", "user", "assistant", "tool", "tool", "assistant", "tool", "assistant", "tool",
        "user", "assistant", "user", "assistant",
    ]  # fmt: skip
    assert said[2]["content"] == "Let me look."
    first, second = said[2]["tool_calls"]
    assert json.loads(first["function"]["arguments"]) == FIND
    assert [m["tool_call_id"] for m in said[3:5]] == [first["id"], second["id"]]
    assert first["id"] != second["id"]
    assert said[5]["content"] == said[7]["content"] == ""
    assert said[5]["tool_calls"][0]["function"]["name"] == "ask_user"
    assert said[8]["content"] == "Delivered."
    assert said[9]["content"] == scene.asks[1].text
    assert "tool_calls" not in said[10]
    assert said[10]["content"] == "Which day do you mean?"
    assert json.loads(said[12]["tool_calls"][0]["function"]["arguments"]) == {"reason": "not_found"}


def test_a_failure_and_a_spent_budget_are_no_part_of_the_conversation() -> None:
    episode = Episode(BOOKING, Budget(1, 9))
    episode.take(Reply("", (call("find_place", **FIND), call("find_place", **FIND))))
    assert episode.end == "budget"
    assert len(messages(BOOKING, episode.steps)) == 4
    episode = Episode(BOOKING)
    episode.crash("KeyError")
    assert len(messages(BOOKING, episode.steps)) == 2


def test_a_rule_comes_with_the_turn_of_the_user() -> None:
    scene = scene_of("booking", ("rule_update", 2))
    noticed = [n for n, ask in enumerate(scene.asks) if ask.notice]
    assert noticed == [1, 2]
    episode = Episode(scene)
    episode.answer("R46R-SB73")
    assert [m["role"] for m in messages(scene, episode.steps)][-2:] == ["system", "user"]
    assert messages(scene, episode.steps)[-2]["content"] == scene.asks[1].notice


# -- tools that change between requests --------------------------------------------------------


class Later(Layer):
    """Withdraws a tool once the first request has been answered; or breaks down then."""

    breaks = False

    def phase(self, memory: Memory) -> int:
        return int(memory["asks"])

    def tools(self, tools: tuple[Tool, ...], memory: Memory) -> tuple[Tool, ...]:
        if memory["asks"] and self.breaks:
            raise KeyError("no such tool")
        return tools[1:] if memory["asks"] else tools


class Breaks(Later):
    breaks = True


def test_the_tools_are_looked_at_again_when_the_user_goes_on() -> None:
    scene = scene_of("look_then_book").with_(layers=(Later(),))
    episode = Episode(scene)
    before = episode.tools
    episode.answer("R46R-SB73")
    assert episode.tools == before[1:]
    _, result = episode.call(before[0].name, {})
    assert result.data["error"]["code"] == "unknown_tool"


def test_a_layer_that_breaks_down_between_requests_ends_the_episode() -> None:
    scene = scene_of("look_then_book").with_(layers=(Breaks(),))
    episode = Episode(scene, Budget(9, 9))  # the scene's own needs a rehearsal
    with pytest.raises(Over):
        episode.answer("R46R-SB73")
    assert (episode.end, episode.steps[-1].name) == ("infrastructure", BROKEN_SHIFT)
    assert "no such tool" in episode.steps[-1].said


def test_a_refusal_in_prose_without_a_reason_says_so() -> None:
    episode = Episode(make_scene(find_world("poi"), "listing", 0, pool="dev"))
    episode.take(Reply("I can't help with that."))
    assert (episode.end, episode.steps[-1].name) == ("refused", "unstated")


def test_episodes_of_a_scene_share_the_tools_that_its_layers_show() -> None:
    scene = shifted(make_scene(find_world("poi"), "listing", 0), ("redirect", 2))
    assert scene is not None
    one, other = Episode(scene), Episode(scene)
    assert [id(tool) for tool in one.tools] == [id(tool) for tool in other.tools]


@pytest.mark.parametrize("stack", [(), (("identity_erasure", 2), ("redirect", 2))])
def test_an_episode_that_is_over_is_freed_at_once(stack: tuple[tuple[str, int], ...]) -> None:
    """Without a search for circles, which many thousands of episodes would keep busy."""
    episode = Episode(scene_of("booking", *stack))
    gc.disable()
    try:
        OracleAgent().play(episode)
        parts = [weakref.ref(episode), weakref.ref(episode.session)]
        assert episode.end == "answered"
        del episode
        assert [part() for part in parts] == [None, None]
    finally:
        gc.enable()

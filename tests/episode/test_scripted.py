"""A user who goes by a script: what is said to them ends the turn, and their next one follows."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from toolshift.core.layer import Session
from toolshift.core.message import Reply, ToolCall
from toolshift.core.scene import Outcome, Scene
from toolshift.core.tool import Result, Tool
from toolshift.core.world import Truth
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import Episode, messages
from toolshift.episode.grade import grade
from toolshift.worlds.registry import find_world

SLOT = "party_size"


def scene_of(*blocked: int, **outcome: Any) -> Scene:
    """A booking and the same booking again, by script."""
    scene = make_scene(find_world("poi"), "booking", 0)
    asks = tuple(
        replace(scene.asks[0], expected=None, scripted=True, blocked=place in blocked)
        for place in range(2)
    )
    return replace(scene, asks=asks, outcome=Outcome(**{"calls_alone": True, **outcome}))


def said(scene: Scene, *calls: tuple[str, dict[str, Any]]) -> Episode:
    episode = Episode(scene)
    for name, arguments in calls:
        episode.take(Reply(calls=(ToolCall(name, arguments),)))
    return episode


ANSWER = ("final_answer", {"answer": "Done."})
REFUSE = ("refuse", {"reason": "tool_unavailable"})
ASK = ("ask_user", {"question": "What is the name?"})


def test_a_question_ends_the_turn_and_the_next_one_follows() -> None:
    episode = said(scene_of(), ASK)
    first = episode.steps[0]
    assert (episode.asked, first.kind, first.name) == (1, "answer", "ask_user")
    assert episode.steps[0].text == episode.scene.asks[1].text
    spoken = messages(episode.scene, episode.steps)
    assert spoken[2]["tool_calls"][0]["function"]["name"] == "ask_user"
    assert json.loads(spoken[2]["tool_calls"][0]["function"]["arguments"]) == ASK[1]
    assert spoken[-1] == {"role": "user", "content": episode.scene.asks[1].text}


def test_a_question_about_a_value_that_the_request_leaves_out_is_replied_to() -> None:
    scene = scene_of()
    value = str(scene.asks[0].goal[SLOT])
    text = scene.asks[0].text.replace(value, f"{value}0 or so")  # a number in another is not said
    first = replace(scene.asks[0], text=text)
    question = ("ask_user", {"question": "What is the party size?"})
    episode = said(replace(scene, asks=(first, scene.asks[1])), question)
    assert (episode.asked, episode.steps[0].kind, episode.steps[0].slot) == (0, "ask", SLOT)
    assert value in episode.steps[0].text


def test_a_refusal_of_what_can_be_done_is_no_end_but_in_the_last_turn() -> None:
    episode = said(scene_of(), REFUSE)
    assert (episode.end, episode.asked, episode.steps[0].name) == ("", 1, "tool_unavailable")
    episode.take(Reply(calls=(ToolCall(*REFUSE),)))
    assert episode.end == "refused"
    spoken = messages(episode.scene, episode.steps)
    names = [m["tool_calls"][0]["function"]["name"] for m in spoken if m["role"] == "assistant"]
    assert names == ["refuse", "refuse"]


def test_where_a_refusal_is_right_it_ends_the_episode_but_in_a_turn_that_is_blocked() -> None:
    unsolvable = {"refusal": "tool_unavailable", "witness": (), "calls_alone": False}
    assert said(scene_of(**unsolvable), REFUSE).end == "refused"
    assert said(scene_of(0, **unsolvable), REFUSE).end == ""
    assert said(scene_of(0, **unsolvable), REFUSE, REFUSE).end == "refused"


def test_prose_ends_a_turn_whatever_it_is_read_as() -> None:
    episode = Episode(scene_of())
    episode.take(Reply(text="I am sorry, but I cannot do that with these tools."))
    assert (episode.asked, episode.end, episode.steps[0].prose) == (1, "", True)
    episode.take(Reply(text="Which day do you mean?"))
    assert episode.end == "answered"


def test_only_calls_count_where_they_alone_do() -> None:
    for ends in ([ANSWER, ANSWER], [ASK, ASK], [REFUSE, REFUSE]):
        assert grade(said(scene_of(), *ends)).passed
    scene = scene_of()
    wanted = replace(scene, outcome=Outcome((("turn 1", "done"),), calls_alone=True))
    found = grade(said(wanted, ANSWER, ANSWER))
    assert (found.passed, found.cause) == (False, "answered_without_evidence")
    assert grade(said(wanted, REFUSE, ANSWER)).cause == "wrong_refusal"
    blocked = replace(wanted, asks=(replace(wanted.asks[0], blocked=True), wanted.asks[1]))
    assert grade(said(blocked, REFUSE, ANSWER)).cause == "answered_without_evidence"


@dataclass(frozen=True, eq=False)
class _Watched(Truth):
    def open(self) -> Any:
        return _Upstream(self)


class _Upstream:
    """Says after each request how many calls were tried in it."""

    def __init__(self, truth: Truth) -> None:
        self.truth, self.turn = truth, 0
        self.effects: list[tuple[Any, ...]] = []

    def tools(self) -> tuple[Tool, ...]:
        return self.truth.tools

    def call(self, name: str, arguments: dict[str, Any]) -> Result:
        return Result(True, "ok", form="text")

    def request_over(self, attempts: int) -> None:
        self.turn += 1
        self.effects.append((f"turn {self.turn}", attempts))

    def close(self) -> None:
        self.effects.append(("closed",))


def test_the_upstream_judges_each_turn_with_the_calls_that_could_not_be_sent() -> None:
    scene = scene_of()
    truth = _Watched(scene.truth.tools, scene.truth.actions, scene.truth.db)
    scene = replace(scene, truth=truth)
    assert isinstance(scene.open(), Session)
    nowhere, misspelt = ("no_such_tool", {}), (scene.tools[0].name, {"nonsense": 1})
    episode = said(scene, nowhere, misspelt, ASK, REFUSE)
    assert episode.end == "refused"
    assert [step.effects for step in episode.steps if step.effects] == [
        (("turn 1", 2),),
        (("turn 2", 0), ("closed",)),
    ]

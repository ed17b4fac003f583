"""What episodes earn: the outcome alone by default, and each term where it is asked for."""

from __future__ import annotations

import numpy as np
import pytest

from toolshift.agents.planted import planted
from toolshift.core.calls import ToolCall
from toolshift.core.errors import UsageError
from toolshift.core.message import REFUSE, Reply
from toolshift.core.scene import Scene
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import Episode
from toolshift.episode.oracle import OracleAgent
from toolshift.shifts.registry import apply
from toolshift.train.reward import TERMS, Weights, check, earn, paid
from toolshift.worlds.registry import find_world

EVERYTHING = Weights(**dict.fromkeys(TERMS, 1.0))


def clean(kind: str = "hours") -> Scene:
    return make_scene(find_world("poi"), kind, 0)


def unsolvable() -> Scene:
    return apply(clean(), "fatal_error", 2)


def by_the_oracle(scene: Scene) -> Episode:
    episode = Episode(scene)
    OracleAgent().play(episode)
    return episode


def say(scene: Scene, *replies: Reply) -> Episode:
    episode = Episode(scene)
    for reply in replies:
        episode.take(reply)
    return episode


def refuse() -> Reply:
    return Reply(calls=(ToolCall(REFUSE, {"reason": "service_failure"}),))


def answer(text: str = "BCDF-GHJK") -> Reply:
    return Reply(calls=(ToolCall("final_answer", {"answer": text}),))


def test_the_outcome_alone_by_default():
    assert earn(by_the_oracle(clean())).total == 1.0
    assert earn(say(clean(), answer())).total == 0.0
    assert earn(say(clean(), refuse())).total == 0.0


@pytest.mark.parametrize("number", [1, True, np.float32(0.5), np.int64(1)])
def test_a_reward_of_ones_own_may_be_any_plain_number(number):
    total = paid(lambda episode: number, by_the_oracle(clean())).total
    assert type(total) is float
    assert total == number


def test_a_right_refusal_is_paid_and_a_blind_one_is_not():
    scene = unsolvable()
    assert earn(by_the_oracle(scene)).parts == {"solved": 0.0, "refused": 1.0}
    assert earn(say(scene, refuse())).total == 0.0
    unpaid = Weights(refused=0.0)
    assert earn(by_the_oracle(scene), unpaid).parts == {"solved": 0.0}
    assert earn(by_the_oracle(scene), unpaid).total == 0.0


def test_an_episode_that_the_infrastructure_broke_off_earns_nothing():
    earned = earn(say(clean(), Reply(failure="the endpoint is down")))
    assert earned.grade.void
    assert earned.total is None


def test_a_question_that_nobody_understands_is_no_way_out():
    scene = apply(clean("booking"), "query_underspecification", 2)
    question = Reply(calls=(ToolCall("ask_user", {"question": "What colour is the sky?"}),))
    earned = earn(say(scene, question, answer()))
    assert not earned.grade.void
    assert earned.total == 0.0
    assert earn(say(scene, question, refuse()), Weights(over_refusal=0.5)).total == -0.5


@pytest.mark.parametrize(
    ("name", "scene", "replies"),
    [
        ("over_refusal", clean, [refuse()]),
        ("blind_refusal", unsolvable, [refuse()]),
        ("forced", unsolvable, [answer()]),
        ("unreadable", clean, [Reply(calls=(ToolCall("find_place", 'name="'),)), answer()]),
        ("unreadable", clean, [Reply(text="It opens at nine.")]),
        ("failed", clean, [Reply(calls=(ToolCall("no_such_tool", {}),)), answer()]),
    ],
)
def test_what_a_term_takes_off(name, scene, replies):
    earned = earn(say(scene(), *replies), EVERYTHING)
    assert earned.parts[name] == -1.0
    assert earn(by_the_oracle(scene()), EVERYTHING).parts[name] == 0.0


def test_recovery_is_paid_where_a_call_succeeds_after_a_provoked_failure():
    scene = apply(clean(), "transient_error", 1)
    assert earn(by_the_oracle(scene), EVERYTHING).parts["recovered"] == 1.0
    gave_up = Episode(scene)
    planted("gives_up").play(gave_up)
    assert any(step.provoked for step in gave_up.steps)
    assert earn(gave_up, EVERYTHING).parts["recovered"] == 0.0


def test_surplus_calls_are_taken_off_passes_only():
    scene = clean()
    step = scene.calls[0]
    twice = Episode(scene)
    twice.call(step.name, dict(step.arguments))
    OracleAgent().play(twice)
    assert earn(twice, EVERYTHING).parts["surplus"] == pytest.approx(-1 / len(scene.calls))
    failed = Episode(scene)
    failed.call(step.name, dict(step.arguments))
    failed.call(step.name, dict(step.arguments))
    failed.answer("BCDF-GHJK")
    assert earn(failed, EVERYTHING).parts["surplus"] == 0.0


def test_calls_that_the_interface_made_fail_are_no_surplus_and_no_allowance():
    scene = apply(clean(), "transient_error", 3)
    assert earn(by_the_oracle(scene), EVERYTHING).parts["surplus"] == 0.0
    wasteful, step = Episode(scene), scene.calls[0]
    OracleAgent().play(Episode(scene))
    while not wasteful.steps or not wasteful.steps[-1].ok:
        wasteful.call(step.name, dict(step.arguments))
    for _ in range(2):
        wasteful.call(step.name, dict(step.arguments))
    OracleAgent().play(wasteful)
    assert wasteful.end == "answered"
    earned = earn(wasteful, EVERYTHING)
    more = earned.grade.calls - earned.grade.oracle_calls
    assert more > 0
    assert earned.parts["surplus"] == pytest.approx(-min(1, more / len(scene.calls)))


def test_weights_out_of_range_are_refused_by_name():
    with pytest.raises(UsageError, match=r"weight failed is -0\.5"):
        check(Weights(failed=-0.5))
    with pytest.raises(UsageError, match="rewards no outcome"):
        check(Weights(solved=0, refused=0))

"""A refusal that says why counts wherever it is said: in prose, and in `final_answer`."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from scenes import shifted

from toolshift.connect.serve.session import AgentSession
from toolshift.core.files import read_bytes
from toolshift.core.message import FINAL_ANSWER, UNSTATED, Reply, ToolCall
from toolshift.core.scene import Scene
from toolshift.core.step import Step
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import Episode, messages
from toolshift.episode.grade import grade
from toolshift.measure.recheck import play_again
from toolshift.reading.prose import ProseReading, read_prose, says_why
from toolshift.worlds.registry import find_world

REFUSALS = (
    "There is no place by that name.",
    "I could not find such a place.",
    "The booking tool is gone, so I cannot do this.",
    "Your request contradicts itself, so I cannot fulfil it.",
    "The service is down; I am unable to complete this.",
    "Sorry, this cannot be done: nothing matches that name.",
    "I'm unable to fulfil this request because the needed tool is unavailable.",
)


@cache
def scene_of(kind: str, *stack: tuple[str, int]) -> Scene:
    clean = make_scene(find_world("poi"), kind, 0, pool="dev")
    scene = shifted(clean, *stack) if stack else clean
    assert scene is not None
    return scene


def said(text: str) -> Reply:
    return Reply("", (ToolCall(FINAL_ANSWER, {"answer": text}),))


def looked(scene: Scene, stop: str = "refuse") -> Episode:
    """An episode in which the oracle's calls have been made, and nothing is said yet."""
    episode = Episode(scene)
    for step in scene.rehearsal:
        if step.kind == stop:
            break
        if step.kind == "call":
            episode.call(step.name, dict(step.given))
    return episode


NOWHERE = scene_of("booking", ("no_such_entity", 1))


@pytest.mark.parametrize("text", REFUSALS)
@pytest.mark.parametrize("way", ["reply", "session call", "session answer"])
def test_a_refusal_is_read_alike_wherever_it_is_said(text: str, way: str) -> None:
    prose, spoken = looked(NOWHERE), looked(NOWHERE)
    prose.take(Reply(text))
    if way == "reply":
        spoken.take(said(text))
    elif way == "session call":
        AgentSession(spoken).call(FINAL_ANSWER, {"answer": text})
    else:
        AgentSession(spoken).answer(text)
    assert spoken.end == prose.end == "refused"
    assert spoken.steps[-1].name == prose.steps[-1].name
    one, other = grade(prose), grade(spoken)
    assert (other.passed, other.refused, other.right_reason) == (
        one.passed, one.refused, one.right_reason,
    )  # fmt: skip
    assert other.passed
    assert other.prose  # counted with the endings that are read from words


def test_such_a_refusal_before_the_evidence_fails_and_is_named() -> None:
    episode = Episode(NOWHERE)
    episode.take(said(REFUSALS[0]))
    verdict = grade(episode)
    assert (verdict.passed, verdict.end, verdict.cause) == (False, "refused", "wrong_refusal")


def test_what_its_check_takes_for_right_stays_an_answer() -> None:
    """Words of failure beside the wanted code do not unsay it."""
    for kind in find_world("poi").kinds:
        scene = scene_of(kind)
        if len(scene.asks) > 1:
            continue
        episode = looked(scene, "answer")
        episode.take(said(f"Done: {scene.asks[-1].expected}. The map could not be shown."))
        assert episode.end == "answered"


@pytest.mark.parametrize("text", ["5", "X", "TGJG-FP7P", "Which one do you mean?", "It is PL-1."])
def test_other_words_of_a_final_answer_stay_an_answer(text: str) -> None:
    episode = Episode(scene_of("booking"))
    episode.take(said(text))
    assert (episode.end, episode.steps[-1].kind) == ("answered", "answer")


@pytest.mark.parametrize(
    "text",
    ["none", "nothing", "No.", "I do not know.", "It is not BCDF-GHJK.", "Not BCDF-GHJK."],
)
def test_what_does_not_say_why_is_no_refusal_here(text: str) -> None:
    """An exploit would pass where refusing is right, although it says nothing of the reason."""
    episode = looked(NOWHERE)
    episode.take(said(text))
    assert (episode.end, grade(episode).passed) == ("answered", False)


def test_the_trace_keeps_how_it_was_said_and_is_played_again() -> None:
    episode = looked(NOWHERE)
    episode.take(said(REFUSALS[0]))
    last = episode.steps[-1]
    assert (last.kind, last.through, last.prose) == ("refuse", FINAL_ANSWER, False)
    told = messages(NOWHERE, episode.steps)
    call = [call["function"] for one in told for call in one.get("tool_calls", ())][-1]
    assert call["name"] == FINAL_ANSWER
    assert REFUSALS[0] in str(call["arguments"])
    again = play_again(NOWHERE, episode.steps)
    assert again.steps == episode.steps
    assert grade(again) == grade(episode)


def test_where_refusing_is_no_end_the_words_are_an_answer() -> None:
    """The user of a script goes on, whatever is said to them."""
    first = replace(scene_of("booking").asks[0], scripted=True)
    scene = replace(scene_of("booking"), asks=(first, first))
    episode = Episode(scene)
    episode.take(said(REFUSALS[0]))
    assert (episode.end, episode.steps[-1].kind) == ("", "answer")


class Judge:
    name = "a model"
    settings: dict[str, Any] = {}

    def __init__(self) -> None:
        self.heard: list[str] = []

    def read(self, text: str, shown: str, request: str) -> ProseReading:
        self.heard.append(text)
        return ProseReading("refusal", "", self.name)

    def decide(self, request: str, wanted: str, answer: str) -> str:
        return ""


def test_a_judge_reads_such_words_too_and_is_named() -> None:
    judge = Judge()
    episode = Episode(NOWHERE, judge=judge)
    episode.take(said("I do not know."))
    last: Step = episode.steps[-1]
    assert (judge.heard, last.kind, last.name) == (["I do not know."], "refuse", UNSTATED)
    assert last.judge == "a model"


FINISHES = Path(__file__).parents[2] / "studies" / "strangers" / "finishes"


@pytest.mark.parametrize("part", ["heldout", "heldout_2", "heldout_4"])
def test_refusals_of_strangers_mostly_count_and_none_of_their_answers_does(part: str) -> None:
    """Finishes of other hands, read as prose and as the words of `final_answer`."""
    labels = read_bytes(FINISHES / f"{part}_labels_a.jsonl").splitlines()
    kinds = {one["id"]: one["kind"] for one in map(json.loads, labels)}
    prose: list[str] = []
    spoken: list[str] = []
    for line in read_bytes(FINISHES / f"{part}_sample.jsonl.gz").splitlines():
        one = json.loads(line)
        said, shown = (
            "\n".join(each["text"] for each in one["context"] if each["role"] == role)
            for role in ("user", "result")
        )
        if read_prose(one["finish"], shown, said)[0] == "refusal":
            prose.append(kinds[one["id"]])
            spoken += [kinds[one["id"]]] * says_why(one["finish"])
    assert "answer" not in spoken
    assert spoken.count("refusal") >= 0.8 * prose.count("refusal")

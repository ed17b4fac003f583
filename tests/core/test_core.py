"""Scenes, episodes and grades: the rules of an instrument that hold everywhere."""

from __future__ import annotations

import subprocess
import sys
import time

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolshift.agents.planted import planted
from toolshift.core import seed as seeds
from toolshift.core.calls import ToolCall
from toolshift.core.errors import UsageError
from toolshift.core.message import Reply, Turn
from toolshift.core.scene import Applied, Scene
from toolshift.core.shift import NotApplicable, shift
from toolshift.core.step import Step
from toolshift.episode.budget import Budget
from toolshift.episode.contract import converse
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import Episode, messages
from toolshift.episode.grade import exploration, grade, regrade
from toolshift.episode.grading_rules import states
from toolshift.episode.oracle import OracleAgent
from toolshift.episode.user import MORE
from toolshift.episode.user import answer as user_answers
from toolshift.reading.prose import read_prose
from toolshift.reading.text import codes_in
from toolshift.shifts.registry import apply, compose, find_shift, shifts
from toolshift.worlds.registry import OURS, find_world

EVERY_KIND = [(world, kind) for world in OURS for kind in find_world(world).kinds]


def scene_of(world: str, kind: str, index: int = 0, pool: str = "dev") -> Scene:
    return make_scene(find_world(world), kind, index, pool=pool)


def played(scene: Scene, agent: object = None) -> Episode:
    episode = Episode(scene)
    (agent or OracleAgent()).play(episode)  # type: ignore[attr-defined]
    return episode


# -- the oracle, inaction and parroting --------------------------------------------------------


@pytest.mark.parametrize(("world", "kind"), EVERY_KIND)
@pytest.mark.parametrize("pool", ["train", "dev", "test"])
def test_the_oracle_passes_and_reflexes_do_not(world: str, kind: str, pool: str) -> None:
    for index in range(4):
        scene = scene_of(world, kind, index, pool)
        assert grade(played(scene)).passed
        assert not grade(played(scene, planted("parrots"))).passed
        assert not grade(played(scene, planted("always_refuses"))).passed
        idle = Episode(scene)
        while not idle.end:
            idle.answer("done")
        assert not grade(idle).passed


@pytest.mark.parametrize("name", sorted(shifts()))
def test_reflexes_pass_no_shifted_scene(name: str) -> None:
    for kind in find_world("poi").kinds:
        try:
            severity = find_shift(name).severities[0]
            scene = compose(scene_of("poi", kind), [Applied(name, severity)])
        except NotApplicable:
            continue
        for reflex in ("always_refuses", "parrots"):
            verdict = grade(played(scene, planted(reflex)))
            assert not verdict.passed or (reflex == "parrots" and not scene.solvable)


@pytest.mark.parametrize("size", [10, 200, 20_000])
@pytest.mark.parametrize("world", OURS)
def test_worlds_come_in_every_size(world: str, size: int) -> None:
    truth = find_world(world).truth(0, size, "dev")
    assert truth is find_world(world).truth(0, size, "dev")
    assert len(truth.tools) >= 8
    assert {tool.effect for tool in truth.tools} == {"read", "write"}


def test_a_task_is_named_by_its_content() -> None:
    one, same, other = (scene_of("poi", "listing", index).task for index in (0, 0, 1))
    assert one == same
    assert one.id != other.id


# -- determinism -------------------------------------------------------------------------------

PRINT_TRACE = """
import msgspec
from toolshift.worlds.registry import find_world
from toolshift.core.scene import Applied
from toolshift.episode.draw import make_scene
from toolshift.shifts.registry import compose
for shift in ("format_drift", "reversed_order", "identity_erasure"):
    scene = compose(make_scene(find_world("poi"), "visit", 3), [Applied(shift, 2)])
    print(msgspec.json.encode(scene.rehearsal).decode(), [t.name for t in scene.tools])
"""


def test_two_processes_make_the_same_bytes() -> None:
    runs = {
        subprocess.run(
            [sys.executable, "-c", PRINT_TRACE],
            capture_output=True,
            check=True,
            env={"PYTHONHASHSEED": str(number)},
        ).stdout
        for number in (1, 2)
    }
    assert len(runs) == 1


@given(st.lists(st.one_of(st.text(), st.integers()), min_size=1))
def test_codes_have_one_form_and_are_stable(parts: list[object]) -> None:
    code = seeds.code(*parts)
    assert code == seeds.code(*parts)
    other = seeds.code("other", *parts)
    fields = {code: frozenset({"hours_ref"}), other: frozenset({"hours_ref"})}
    assert states(f"The code is {code}.", code, fields)
    assert not states(f"{code} or {other}", code, fields)


@pytest.mark.parametrize(
    "text",
    [
        "It is not {code}.",
        "I checked, and {code} is definitely the wrong reference.",
        "{code} isn't it, I am sure.",
        "{code} is incorrect.",
    ],
)
def test_a_code_that_is_disowned_is_not_stated(text: str) -> None:
    code = seeds.code("hours")
    assert not states(text.format(code=code), code, {code: frozenset({"hours_ref"})})


@pytest.mark.parametrize(
    "text",
    [
        "The reference is {code}. It is not the wrong day.",
        "{code} is the hours reference, not a phone number.",
        "Your reference {code} is ready; the shop was wrong before.",
    ],
)
def test_a_code_beside_other_negations_is_stated(text: str) -> None:
    code = seeds.code("hours")
    assert states(text.format(code=code), code, {code: frozenset({"hours_ref"})})


# -- episodes ----------------------------------------------------------------------------------


class Scripted:
    """Plays given replies, to drive an episode by hand."""

    name = "scripted"

    def __init__(self, *replies: Reply | str) -> None:
        self.replies = list(replies)

    def reply(self, turn: Turn) -> Reply | str:
        return self.replies.pop(0)


def call(name: str, **arguments: object) -> Reply:
    return Reply(calls=(ToolCall(name, arguments),))


def test_malformed_calls_are_observations() -> None:
    episode = Episode(scene_of("poi", "listing"))
    bad = Reply(calls=(ToolCall("find_place", "{"), ToolCall("nothing", {})))
    converse(Scripted(bad, call("find_place"), call("final_answer", answer="x")), episode)
    errors = [step.error for step in episode.steps if step.kind == "call"]
    assert errors == ["malformed_arguments", "unknown_tool", "invalid_arguments"]
    assert "Available tools" in episode.steps[1].text
    assert not grade(episode).passed


def test_budgets_end_an_episode() -> None:
    scene = scene_of("poi", "listing")
    episode = Episode(scene, Budget(calls=2, turns=9))
    converse(Scripted(*[call("get_details", place_id="PL-1")] * 5), episode)
    assert episode.end == "budget"
    talk = Episode(scene, Budget(calls=9, turns=3))
    converse(Scripted(*["What is the city?"] * 5), talk)
    assert (talk.end, len(talk.steps)) == ("budget", 4)


def test_a_failed_endpoint_is_not_the_agents_failure() -> None:
    episode = Episode(scene_of("poi", "listing"))
    converse(Scripted(Reply(failure="HTTP 500")), episode)
    verdict = grade(episode)
    assert (verdict.void, verdict.passed, verdict.cause) == (True, False, "infrastructure")


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("It is K7Q2-M9XD. I could not find its phone number.", ("answer", "")),
        ("It is K7Q2-M9XD. Can I help with anything else?", ("answer", "")),
        ("I am done. Can I help you with anything else?", ("none", "")),
        ("Sorry, the service is permanently unavailable.", ("refusal", "service_failure")),
        ("The lookup failed with an error.", ("refusal", "service_failure")),
        ("No such place exists.", ("refusal", "not_found")),
        ("There is no place with that name.", ("refusal", "not_found")),
        ("The request contradicts itself.", ("refusal", "contradictory_request")),
        ("I don't have a way to look that up.", ("refusal", "tool_unavailable")),
        ("For how many people?", ("question", "")),
    ],
)
def test_prose_of_every_kind(text: str, read: tuple[str, str]) -> None:
    assert read_prose(text, shown='{"listing_ref":"K7Q2-M9XD"}') == read


def test_prose_is_read_by_the_documented_rule() -> None:
    assert read_prose("I cannot do that: no such place was found.") == ("refusal", "not_found")
    assert read_prose("Which city do you mean?") == ("question", "")
    assert read_prose("The code is K7Q2-M9XD.") == ("answer", "")
    scene = scene_of("poi", "listing")
    episode = Episode(scene)
    converse(Scripted(f"It is {scene.asks[0].expected}."), episode)
    assert grade(episode).passed
    assert grade(episode).prose


def test_the_user_answers_one_question_at_a_time() -> None:
    scene = scene_of("poi", "booking")
    ask, facts = scene.asks[0], scene.world.facts
    reply = user_answers("Which city, and for how many people?", ask, facts)
    assert (reply.slot, reply.text) == ("city", f"The city is {ask.goal['city']}. {MORE}")
    assert user_answers("What is the visit id?", ask, facts).slot == "visit_id"
    assert user_answers("Colour?", ask, facts).slot == ""


def test_a_question_that_the_scene_does_not_need_voids_nothing() -> None:
    episode = Episode(scene_of("poi", "listing"))
    converse(Scripted(call("ask_user", question="Colour?"), "No idea."), episode)
    verdict = grade(episode)
    assert (verdict.misunderstood, verdict.void, verdict.passed) == (1, False, False)


def test_a_whole_number_may_be_written_with_a_point() -> None:
    scene = scene_of("poi", "booking")
    made = next(step for step in scene.calls if "party_size" in step.arguments)
    assert isinstance(made.arguments, dict)
    size = made.arguments["party_size"]
    session = scene.open()
    shown = [
        session.call(made.name, {**made.arguments, "party_size": kind(size)}).data
        for kind in (int, float)
    ]
    assert shown[0] == shown[1]
    assert session.upstream.effects[0] == session.upstream.effects[1]


def test_a_failure_after_a_question_is_the_agents() -> None:
    scene = apply(scene_of("poi", "booking"), "query_underspecification", 2)
    episode = Episode(scene)
    converse(Scripted(call("ask_user", question="Colour?"), "No idea."), episode)
    assert not grade(episode).void
    crashed = Episode(scene)
    crashed.take(Reply.of(call("ask_user", question="Colour?")))
    crashed.crash("ValueError: no reply")
    assert not grade(crashed).void


def test_the_simulator_failed_where_it_kept_back_what_the_scene_needs() -> None:
    episode = Episode(apply(scene_of("poi", "booking"), "query_underspecification", 2))
    while not episode.end:
        question = "Colour?" if episode.turn % 2 else "Which hue?"
        episode.take(Reply.of(call("ask_user", question=question)))
    verdict = grade(episode)
    assert (episode.end, verdict.void, verdict.cause) == ("budget", True, "simulator")


def test_a_trace_reads_as_a_conversation() -> None:
    scene = scene_of("poi", "look_then_book")
    episode = played(scene)
    roles = [message["role"] for message in messages(scene, episode.steps)]
    assert roles[:4] == ["system", "user", "assistant", "tool"]
    assert roles.count("user") == 2
    assert episode.observation.tools[-1]["function"]["name"] == "ask_user"


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(EVERY_KIND), st.integers(0, 9))
def test_a_stored_trace_is_graded_the_same(kind: tuple[str, str], index: int) -> None:
    scene = scene_of(*kind, index)
    episode = played(scene, planted("noisy"))
    stored = msgspec.json.decode(msgspec.json.encode(episode.steps), type=list[Step])
    assert regrade(scene, stored, episode.end) == grade(episode)


def test_exploration_rewards_new_informative_attempts_only() -> None:
    def step(name: str, text: str, ok: bool = True, hint: str = "") -> Step:
        return Step("call", 0, name, {}, text, ok=ok, hint=hint)

    failed = step("a", "error", ok=False)
    assert exploration([step("a", "1"), step("b", "2")]) is None
    assert exploration([failed]) == 0.0
    assert exploration([failed, failed, failed]) == 0.0
    assert exploration([failed, step("b", "new")]) == 1.0
    assert exploration([failed, step("b", "new"), step("b", "new")]) == 0.5
    retry = step("a", "busy", ok=False, hint="retry")
    assert exploration([retry, step("a", "fine")]) == 1.0


def test_import_is_lean() -> None:
    heavy = (
        "import toolshift, sys; print([m for m in ('numpy','rich','httpx') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", heavy], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "[]"


def test_a_long_list_of_codes_is_read_in_linear_time() -> None:
    text = " ".join(seeds.code("guess", number) for number in range(20_000))
    start = time.perf_counter()
    assert len(codes_in(text, {})) == 20_000
    assert time.perf_counter() - start < 5  # minutes, where each code looks at all before it


@pytest.mark.parametrize(
    ("what", "value", "near"),
    [("tier", "interactoin", "interaction"), ("preserves", "end state", "end_state")],
)
def test_a_shift_is_declared_by_known_words(what: str, value: str, near: str) -> None:
    said = {"tier": "interaction", "dimension": "action", "level": 2, "imitates": "none"}
    with pytest.raises(UsageError, match=near):
        shift(name="odd", **{**said, what: value})(lambda scene, rng: None)

"""With `rewrite` the layer moves calls by the same words, leaves a trace, and never guesses."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
from drift.test_changes import FIND, SAVE, TEXT, tool

import toolshift
from toolshift.adapt import words
from toolshift.adapt.layer import PARTS, Intervention, interventions
from toolshift.adapt.lessons import Lessons
from toolshift.agents.catalog import make_agent
from toolshift.core.calls import ToolCall
from toolshift.core.errors import UsageError
from toolshift.core.message import FINAL_ANSWER, Reply, Turn, protocol_tools
from toolshift.core.step import Step
from toolshift.drift.lock import lock_shown, lock_tools
from toolshift.episode.contract import converse
from toolshift.episode.episode import Episode
from toolshift.episode.grade import Grade, grade
from toolshift.runs.cell import build
from toolshift.runs.suite import read_task

READS = {"annotations": {"readOnlyHint": True}}
RATE = {**tool("get_rate", "Rate of a currency on a day", currency=TEXT, day=TEXT), **READS}
PAY = tool("pay_bill", "Pay a bill from an account", bill=TEXT, account=TEXT)


def replayed(steps: tuple[Step, ...]) -> Callable[..., dict[str, Any]]:
    """An agent that makes the calls of these steps by heart and stops at an error."""
    spoken = [
        (s.name, s.given) if s.kind == "call" else (FINAL_ANSWER, {"answer": s.said}) for s in steps
    ]

    def by_heart(messages: list[Any], tools: list[Any]) -> dict[str, Any]:
        if '"error"' in str(messages[-1]["content"]):
            return called("refuse", {"reason": "service_failure"})
        done = sum(len(message.get("tool_calls") or ()) for message in messages)
        return called(*spoken[done])

    return by_heart


def called(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": "", "tool_calls": [{"id": "a", "function": function}]}


def played(
    shifts: str, task: str = "poi/booking/1", **options: Any
) -> tuple[Grade, Grade, Episode]:
    """The grades of the agent alone and in the layer, and the episode of the second."""
    scene = build(read_task(task, shifts))
    agent = replayed(scene.clean.rehearsal)
    alone, within = Episode(scene), Episode(scene)
    converse(_Plain(agent), alone)
    lock = lock_shown(scene.clean.tools)
    converse(toolshift.adapt(agent, lock, rewrite=True, **options), within)
    return grade(alone), grade(within), within


class _Plain:
    name = "plain"

    def __init__(self, function: Callable[..., dict[str, Any]]) -> None:
        self.function = function

    def reply(self, turn: Turn) -> dict[str, Any]:
        return self.function(turn.messages, turn.tools)


@pytest.mark.parametrize(("shifts", "part"), [("tool_name_noise:1", "names")])
def test_a_part_recovers_what_it_is_for_and_can_be_switched_off(shifts: str, part: str) -> None:
    alone, within, episode = played(shifts)
    assert (alone.passed, within.passed) == (False, True)
    done = interventions(episode.observation.messages)
    assert {each.part for each in done} == {part}
    assert all(each.evidence for each in done)
    assert all(each.asked != each.made for each in done)
    assert not played(shifts, without=[part])[1].passed
    assert played(shifts, only=[part])[1].passed


@pytest.mark.parametrize("shifts", ["semantic_rename:2", "semantic_trap:3", "parameter_rename:2"])
def test_other_words_are_other_tools(shifts: str) -> None:
    alone, within, episode = played(shifts)
    assert (alone.passed, within.passed) == (False, False)
    assert not interventions(episode.observation.messages)


@pytest.mark.parametrize(
    ("was", "now", "failure", "part"),
    [
        ("rates.get", "get_rate", "No rates.get here: the list is newer.", "lists"),
        ("rates.get", "get_rate", "Список новее.", "lists"),
        ("rates.get", "fetch_rate", "No rates.get here: the list is newer.", ""),
    ],
)
@pytest.mark.parametrize("hints", [READS, {}, {"annotations": {"readOnlyHint": False}}])
def test_a_failed_read_is_made_again_by_the_list_that_has_come(
    was: str, now: str, failure: str, part: str, hints: dict[str, Any]
) -> None:
    agent = toolshift.adapt(_Scripted(), lock_tools([{**RATE, "name": was}]), rewrite=True)
    moved = {**renamed(RATE, now), **hints}
    reply = agent.reply(Turn(failing(was, RATED[1], failure), today(moved)))
    done = interventions([{"role": "assistant", "content": reply.text}])
    assert [each.part for each in done] == ([part] if part and hints == READS else [])


def test_where_nothing_moved_the_trace_is_the_same() -> None:
    alone, within, episode = played("")
    assert alone.passed
    assert within.passed
    assert all(not step.said for step in episode.steps if step.kind == "call")


def today(*tools: dict[str, Any]) -> list[dict[str, Any]]:
    """Tools as a chat request has them."""
    told = [
        {
            "name": t["name"],
            "description": t["description"],
            "parameters": t["inputSchema"],
            **({"annotations": t["annotations"]} if "annotations" in t else {}),
        }
        for t in tools
    ]
    return [*({"type": "function", "function": one} for one in told), *protocol_tools()]


def made(call: tuple[str, dict[str, Any]], was: list[Any], now: list[Any]) -> tuple[str, Any]:
    """The call that is made in the place of one."""
    agent = toolshift.adapt(lambda messages, tools: called(*call), lock_tools(was), rewrite=True)
    (made,) = agent.reply(Turn([{"role": "user", "content": "?"}], today(*now))).calls
    return made.name, made.arguments


def renamed(document: dict[str, Any], name: str, description: str = "") -> dict[str, Any]:
    bare = {key: value for key, value in document.items() if key != "annotations"}
    return {**bare, "name": name, "description": description or document["description"]}


PAID = ("pay_bill", {"bill": "b", "account": "a"})
RATED = ("get_rate", {"currency": "EUR", "day": "1"})


@pytest.mark.parametrize(("was", "call"), [(PAY, PAID), (RATE, RATED)], ids=["write", "read"])
def test_a_call_is_made_by_another_name_only_where_it_is_the_same_words(
    was: dict[str, Any], call: tuple[str, dict[str, Any]]
) -> None:
    first, last = call[0].split("_")
    same, text = renamed(was, f"{last}s.{first}"), f"{was['description']}, as it is"
    assert made(call, [was], [same])[0] == f"{last}s.{first}"
    for other in (
        renamed(was, "x7"),
        renamed(was, f"settle_{last}"),
        renamed(was, f"{last}s.{first}", text),
        {**same, "inputSchema": {**was["inputSchema"], "required": []}},
        {**same, "annotations": {"readOnlyHint": False, "destructiveHint": True}},
    ):
        if was is RATE or "annotations" not in other:
            assert made(call, [was], [other]) == call
    assert made(call, [was], [same, renamed(was, f"{first}_{last}_v2")]) == call


def test_a_call_that_was_wrong_or_of_an_unknown_tool_stays_as_it_is() -> None:
    now = [renamed(RATE, "x7"), PAY]
    for call in (("get_rate", {"currency": "EUR"}), ("get_rates", {"currency": "EUR", "day": "1"})):
        assert made(call, [PAY, RATE], now) == call


class _Scripted:
    name = "scripted"

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def reply(self, turn: Turn) -> Reply:
        self.heard.append(turn.messages)
        return Reply(calls=(ToolCall("get_rate", {"currency": "EUR", "day": "1"}),))


def failing(
    name: str, arguments: dict[str, Any], message: str, times: int = 1
) -> list[dict[str, Any]]:
    said: list[dict[str, Any]] = [{"role": "user", "content": "?"}]
    for number in range(times):
        call = called(name, arguments)
        call["tool_calls"][0]["id"] = f"c{number}"
        text = json.dumps({"error": {"code": "failed", "message": message}})
        said += [call, {"role": "tool", "tool_call_id": f"c{number}", "content": text}]
    return said


@pytest.mark.parametrize(
    ("call", "message", "again"),
    [
        (RATED, "Overloaded, try again.", True),
        (RATED, "少し後でもう一度。", True),
        (("get_rate", {"currency": "EUR"}), "No day.", False),
        (PAID, "Overloaded, try again.", False),
    ],
)
def test_only_declared_reads_that_the_tools_take_are_made_again(
    call: tuple[str, dict[str, Any]], message: str, again: bool
) -> None:
    inner, seen = _Scripted(), list[Intervention]()
    agent = toolshift.adapt(inner, lock_tools([RATE, PAY]), record=seen.append, rewrite=True)
    agent.reply(Turn(failing(*call, message), today(RATE, PAY)))
    assert ([each.part for each in seen if each.part != "failures"], bool(inner.heard)) == (
        (["retries"] if again else []),
        not again,
    )


def test_a_read_that_the_user_vouches_for_is_made_again_and_no_other() -> None:
    plain = {key: value for key, value in RATE.items() if key != "annotations"}
    for reads, again in (({"get_rate"}, True), ({"pay_bill"}, False), ((), False)):
        agent = toolshift.adapt(_Scripted(), lock_tools([plain, PAY]), rewrite=True, reads=reads)
        reply = agent.reply(Turn(failing(*RATED, "Busy."), today(plain, PAY)))
        done = interventions([{"role": "assistant", "content": reply.text}])
        assert [each.part for each in done] == (["retries"] if again else [])


def test_a_call_that_the_agent_repeats_itself_is_not_repeated_by_the_layer_too() -> None:
    agent = toolshift.adapt(_Scripted(), lock_tools([RATE]), only=["retries"], rewrite=True)
    for times in (1, 2, 3, 6):
        reply = agent.reply(Turn(failing(*RATED, "Busy, try again.", times), today(RATE)))
        done = interventions([{"role": "assistant", "content": reply.text}])
        assert [each.part for each in done] == (["retries"] if times <= 2 else [])


def test_an_idempotent_write_is_not_made_again() -> None:
    pay = {**PAY, "annotations": {"readOnlyHint": False, "idempotentHint": True}}
    agent = toolshift.adapt(inner := _Scripted(), lock_tools([pay]), rewrite=True)
    agent.reply(Turn(failing(*PAID, "Busy, try again."), today(pay)))
    assert inner.heard


def test_the_agent_is_shown_the_result_of_a_retry_in_the_place_of_the_failure() -> None:
    agent = toolshift.adapt(inner := _Scripted(), lock_tools([RATE]), rewrite=True)
    said = failing(*RATED, "Busy, try again.")
    reply = agent.reply(Turn(said, today(RATE)))
    second = called(reply.calls[0].name, reply.calls[0].arguments)
    second["tool_calls"][0]["id"] = "c9"
    said += [
        {**second, "content": reply.text},
        {"role": "tool", "tool_call_id": "c9", "content": "7"},
    ]
    agent.reply(Turn(said, today(RATE)))
    (shown,) = inner.heard
    assert [message["role"] for message in shown] == ["user", "assistant", "tool"]
    assert shown[-1] == {"role": "tool", "tool_call_id": "c0", "content": "7"}
    assert [each.part for each in interventions(said)] == ["retries"]


def test_what_cannot_be_wrapped_and_unknown_parts_are_refused_in_one_sentence() -> None:
    with pytest.raises(UsageError, match="runs its episode itself"):
        toolshift.adapt(make_agent("parrots"), lock=lock_tools([FIND]))
    with pytest.raises(UsageError, match="did you mean retries"):
        toolshift.adapt(_Scripted(), lock=lock_tools([FIND, SAVE]), without=["retry"])
    assert set(PARTS) == {
        *("notes", "failures", "lessons", "names", "parameters", "lists", "retries", "evidence"),
    }


class _Says:
    """An agent that says these replies in turn, whatever it is shown."""

    name = "says"

    def __init__(self, *calls: tuple[str, dict[str, Any]]) -> None:
        self.left = [*calls]
        self.heard: list[Any] = []

    def reply(self, turn: Turn) -> Reply:
        self.heard.append(turn.messages)
        return Reply(calls=(ToolCall(*self.left.pop(0)),))


def test_an_ending_without_evidence_is_asked_about_once_and_may_be_insisted_on() -> None:
    refusal = ("refuse", {"reason": "service_failure"})
    inner = _Says(refusal, RATED)
    agent = toolshift.adapt(inner, lock=lock_tools([RATE]), only=["evidence"])
    said: list[dict[str, Any]] = [{"role": "user", "content": "?"}]
    reply = agent.reply(Turn(said, today(RATE)))
    assert reply.calls[0].name == "get_rate"
    (done,) = interventions([{"role": "assistant", "content": reply.text}])
    assert (done.part, done.asked.tool, done.made.tool) == ("evidence", "refuse", "get_rate")
    said += [
        {**called(*RATED), "content": reply.text},
        {"role": "tool", "tool_call_id": "a", "content": "{}"},
    ]
    inner.left = [refusal]
    assert agent.reply(Turn(said, today(RATE))).calls[0].name == "refuse"  # not asked again
    assert len(inner.heard) == 3
    for parts in ({}, {"only": ["evidence"]}):
        inner = _Says(refusal, refusal)
        agent = toolshift.adapt(inner, lock=lock_tools([RATE]), **parts)
        assert agent.reply(Turn(said[:1], today(RATE))).calls[0].name == "refuse"
        assert len(inner.heard) == (2 if parts else 1)


def without_hints(document: dict[str, Any]) -> dict[str, Any]:
    """The tool as one of which nothing says that it only reads."""
    bare = {key: value for key, value in document.items() if key != "annotations"}
    return {**bare, "name": "list_rates", "description": "Save the rates of a day"}


def test_what_one_conversation_taught_is_put_before_the_next_and_stands_in_the_trace() -> None:
    lessons = Lessons()
    other = renamed(RATE, "fetch_rate", "Today's numbers for currencies")
    ending = (FINAL_ANSWER, {"answer": "7"})
    agent = toolshift.adapt(_Says(ending), lock_tools([RATE]), lessons=lessons)
    said = failing(*RATED, "Unknown tool get_rate.")
    said += failing("fetch_rate", RATED[1], "")[1:]
    said[-2]["tool_calls"][0]["id"] = said[-1]["tool_call_id"] = "c7"
    said[-1]["content"] = '{"rate":7}'
    agent.reply(Turn(said, today(other)))
    for parts, told in (({}, True), ({"without": ["lessons"]}, False)):
        inner = _Says(("fetch_rate", RATED[1]))
        agent = toolshift.adapt(inner, lock_tools([RATE]), lessons=lessons, **parts)
        begin = [{"role": "system", "content": "Help."}, {"role": "user", "content": "?"}]
        reply = agent.reply(Turn(begin, today(other)))
        assert ("fetch_rate(currency, day) worked" in inner.heard[0][0]["content"]) == told
        noted = interventions([{"role": "assistant", "content": reply.text}])
        assert [each.part for each in noted] == (["lessons"] if told else [])
        assert agent.concurrency == 1


# -- tools shown as the lock has them ------------------------------------------------------------


def shown_to(now: list[dict[str, Any]], **options: Any) -> list[str]:
    """The names of tools and parameters that an agent in the layer is shown."""
    seen: list[str] = []

    def looks(messages: list[Any], tools: list[Any]) -> str:
        for each in tools:
            about = each["function"]
            seen.append(f"{about['name']}({', '.join(about['parameters']['properties'])})")
        return "done"

    listed = [
        {
            "name": each["name"],
            "description": each["description"],
            "parameters": each["inputSchema"],
        }
        for each in now
    ]
    turn = Turn(
        [{"role": "user", "content": "hello"}],
        [{"type": "function", "function": each} for each in listed],
    )
    toolshift.adapt(looks, lock=lock_tools([RATE, PAY]), **options).reply(turn)
    return seen[: len(now)]


SHOWN = {"as_known": True, "rewrite": True}


@pytest.mark.parametrize(
    ("now", "options", "said"),
    [
        (
            [renamed(RATE, "getRate"), PAY],
            {},
            ["getRate(currency, day)", "pay_bill(bill, account)"],
        ),
        (
            [renamed(RATE, "getRate"), PAY],
            SHOWN,
            ["get_rate(currency, day)", "pay_bill(bill, account)"],
        ),
        (
            [renamed(PAY, "bills.pay"), RATE],
            SHOWN,
            ["pay_bill(bill, account)", "get_rate(currency, day)"],
        ),
        (
            [renamed(RATE, "getRate"), PAY],
            {**SHOWN, "without": ["names"]},
            ["getRate(currency, day)", "pay_bill(bill, account)"],
        ),
        (
            [{**renamed(RATE, "getRate"), "description": "Rate of a currency on one day"}, PAY],
            SHOWN,
            ["getRate(currency, day)", "pay_bill(bill, account)"],
        ),
        (
            [renamed(RATE, "x7"), PAY],
            SHOWN,
            ["x7(currency, day)", "pay_bill(bill, account)"],
        ),
    ],
    ids=[
        *("not asked for", "read renamed", "write renamed", "part is off"),
        *("description reworded", "other words"),
    ],
)
def test_tools_are_shown_as_known_where_only_names_have_changed(
    now: list[dict[str, Any]], options: dict[str, Any], said: list[str]
) -> None:
    assert shown_to(now, **options) == said


@pytest.mark.parametrize("shifts", ["tool_name_noise:1"])
def test_an_agent_that_reads_the_list_sees_the_one_it_knows(shifts: str) -> None:
    scene = build(read_task("poi/booking/1", shifts))
    seen: list[Any] = []

    def looks(messages: list[Any], tools: list[Any]) -> str:
        seen.append(tools)
        return "done"

    agent = toolshift.adapt(looks, lock_shown(scene.clean.tools), as_known=True, rewrite=True)
    agent.reply(Episode(scene).observation)
    known = {each["function"]["name"]: each for each in Episode(scene.clean).observation.tools}
    assert {each["function"]["name"]: each for each in seen[0]} == known


def test_without_the_package_for_words_it_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    words.words_of.cache_clear()
    monkeypatch.setitem(sys.modules, "regex", None)
    with pytest.raises(UsageError, match=r"adapt needs the package regex: pip install .*\[adapt\]"):
        toolshift.adapt(_Scripted(), lock_tools([RATE]))

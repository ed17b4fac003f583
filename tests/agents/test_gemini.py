"""`gemini:MODEL` against a server as strict as the provider."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from running import Run
from strict_gemini import StrictGemini, serving

from toolshift.agents.catalog import make_agent
from toolshift.agents.chat import ChatAgent
from toolshift.core.errors import UsageError
from toolshift.core.http import httpx
from toolshift.core.message import PROTOCOL_NAMES, Turn
from toolshift.dialects import as_request
from toolshift.episode.contract import CallableAgent, converse
from toolshift.episode.episode import Episode
from toolshift.episode.grade import grade
from toolshift.runs.cell import build
from toolshift.runs.suite import read_task

TASK = "poi/booking/0"
KEY = "a-key-of-length-16"


def oracle_of(shifts: str = "", task: str = TASK) -> list[dict[str, Any]]:
    """The calls of the oracle in a scene."""
    episode = Episode(build(read_task(task, shifts, 0)))
    make_agent("oracle").play(episode)  # type: ignore[union-attr]
    told = [("final_answer", {"answer": step.said}) if step.kind == "answer"
            else (step.name, step.given) for step in episode.steps]  # fmt: skip
    return [{"name": name, "args": given} for name, given in told]


def thinking(calls: list[dict[str, Any]]) -> Any:
    """A model that thinks and signs before each of these calls."""

    def script(body: dict[str, Any]) -> list[dict[str, Any]]:
        turn = sum(content["role"] == "model" for content in body["contents"])
        return [
            {"text": "Hm." if turn % 2 else "", "thought": True},
            {"text": "I look."},
            {"functionCall": calls[turn], "thoughtSignature": "c2ln+/8="},
        ]

    return script


@pytest.mark.parametrize(
    ("shifts", "ids"),
    [("", True), ("", False), ("identity_erasure:2", True), ("redirect:2", False)],
)
def test_thoughts_and_signatures_go_back(shifts: str, ids: bool) -> None:
    calls = oracle_of(shifts)
    mind = StrictGemini(thinking(calls), ids)
    with serving(mind) as address:
        agent = ChatAgent("gemini-3", address, KEY, dialect="gemini")
        episode = Episode(build(read_task(TASK, shifts, 0)))
        converse(agent, episode)
    assert mind.refused == []
    assert grade(episode).passed
    assert len(mind.requests) == len(calls)
    assert episode.usage.cached_tokens == 50 * len(calls)
    assert episode.usage.reasoning_tokens == 3 * len(calls)


def test_parallel_calls_of_one_name_get_their_results_in_order() -> None:
    first = oracle_of()[0]
    said = [[first, {**first, "args": {}}, first], [{"name": "refuse", "args": {"reason": "x"}}]]
    mind = StrictGemini(lambda body: [
        {"functionCall": call} for call in said[sum(c["role"] == "model" for c in body["contents"])]
    ], ids=False)  # fmt: skip
    with serving(mind) as address:
        agent = ChatAgent("gemini-3", address, KEY, dialect="gemini")
        converse(agent, Episode(build(read_task(TASK, "", 0))))
    assert mind.refused == []
    told = [part["functionResponse"] for part in mind.requests[1]["contents"][-1]["parts"]]
    assert len(told) == 3
    assert told[0] == told[2] != told[1]
    assert not any("id" in one for one in told)


@pytest.mark.parametrize("times", [1, 99])
def test_a_call_that_google_cannot_read_is_malformed_and_no_refusal(times: int) -> None:
    calls = oracle_of()

    def script(body: dict[str, Any]) -> list[dict[str, Any]]:
        turn = sum(content["role"] == "model" for content in body["contents"])
        if turn < times:
            return [{"unreadable": f"print({calls[0]['name']}("}]
        return [{"functionCall": calls[turn - times]}]

    mind = StrictGemini(script)
    with serving(mind) as address:
        agent = ChatAgent("gemini-3", address, KEY, dialect="gemini")
        episode = Episode(build(read_task(TASK, "", 0)))
        converse(agent, episode)
    assert mind.refused == []
    assert grade(episode).passed == (times == 1)
    assert times == 1 or grade(episode).cause == "malformed_output"


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"top_secret": 1}, "top_secret"),
        ({"generationConfig": {"topSecret": 1}}, "generationConfig.topSecret"),
    ],
    ids=["top", "inside"],
)
def test_a_refused_field_is_named(options: dict[str, Any], name: str) -> None:
    mind = StrictGemini(lambda body: [{"text": "Done."}])
    with serving(mind) as address:
        odd = ChatAgent("g", address, KEY, dialect="gemini", options=options)
        with pytest.raises(UsageError, match=rf"--unset {name}, "):
            converse(odd, Episode(build(read_task("poi/hours/0", "", 0))))


@pytest.mark.parametrize("reason", ["SAFETY", "MAX_TOKENS"])
def test_an_answer_that_ended_before_its_time_is_no_answer(reason: str) -> None:
    mind = StrictGemini(lambda body: [{"text": "Well"}], reason=reason)
    with serving(mind) as address:
        agent = ChatAgent("g", address, KEY, dialect="gemini")
        reply = agent.reply(Turn([{"role": "user", "content": "Go."}], []))
    assert reply.failure
    limits = [body["generationConfig"]["maxOutputTokens"] for body in mind.requests]
    assert limits == ([4096, 16384] if reason == "MAX_TOKENS" else [4096])


DESK = """
TICKETS = {"T-31": {"owner": "Ilse", "state": "open"}, "T-32": {"owner": "Omar", "state": "new"}}

def get_ticket(ticket_id: str) -> dict:
    \"\"\"Looks up a ticket.

    Args:
        ticket_id: Identifier of the ticket.
    \"\"\"
    return TICKETS[ticket_id]
"""
TASKS = """
world: help_desk
tools: {python: desk}
writes: []
system: You work at a help desk.
tasks:
  - id: owner
    kind: look_up
    ask: Who owns ticket T-31?
    calls: [{name: get_ticket, arguments: {ticket_id: T-31}}]
    check: {answer: Ilse}
"""


def at_the_desk(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Looks the ticket up by the tool as it is shown, then answers; each call is signed."""
    told = any("functionResponse" in part for c in body["contents"] for part in c["parts"])
    (shown,) = (f for f in body["tools"][0]["functionDeclarations"]
                if f["name"] not in PROTOCOL_NAMES)  # fmt: skip
    (name,) = shown["parametersJsonSchema"]["properties"]
    call = {"name": shown["name"], "args": {name: "T-31"}}
    answer = {"name": "final_answer", "args": {"answer": "Ilse"}}
    part = {"functionCall": answer if told else call, "thoughtSignature": "c2ln"}
    return [{"text": "Hm.", "thought": True}, part]


def test_a_run_on_an_own_world_scores_all(
    tmp_path: Path, toolshift: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "desk.py").write_text(DESK)
    (tmp_path / "tasks.yaml").write_text(TASKS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    mind = StrictGemini(at_the_desk)
    with serving(mind) as address:
        words = ("--world", "tasks.yaml", "--agent", "gemini:gemini-3", "--base-url", address)
        code, out, err = toolshift("run", *words, "--out", "run", "--shift", "identity_erasure:2")
    assert (code, mind.refused) == (0, []), err
    assert len(mind.requests) >= 4
    rows = [json.loads(line) for line in (tmp_path / "run/episodes.jsonl").open()]
    assert rows
    assert all(row["grade"]["passed"] for row in rows), out


def test_an_own_function_takes_and_returns_this_form() -> None:
    calls = oracle_of()
    mind = StrictGemini(thinking(calls))
    with serving(mind) as address:
        url = f"{address}/v1beta/models/g:generateContent"

        def agent(said: list[dict[str, Any]], tools: list[dict[str, Any]]) -> Any:
            body = as_request(Turn(said, tools), "gemini", max_tokens=64)
            got = httpx.post(url, json=body, headers={"x-goog-api-key": "k"})
            return json.loads(got.text)

        episode = Episode(build(read_task(TASK, "", 0)))
        converse(CallableAgent(agent, "own"), episode)
    assert mind.refused == []
    assert grade(episode).passed
    assert episode.usage.reasoning_tokens == 3 * len(calls)


def test_what_googles_client_returns_is_read_and_goes_back() -> None:
    genai = pytest.importorskip("google.genai")
    mind = StrictGemini(thinking(oracle_of()))
    with serving(mind) as address:
        client = genai.Client(api_key=KEY, http_options={"base_url": address})

        def agent(said: list[dict[str, Any]], tools: list[dict[str, Any]]) -> Any:
            body = as_request(Turn(said, tools), "gemini")
            settings, contents = body.pop("generationConfig"), body.pop("contents")
            return client.models.generate_content(
                model="gemini-3", contents=contents, config={**body, **settings}
            )

        episode = Episode(build(read_task(TASK, "", 0)))
        converse(CallableAgent(agent, "own"), episode)
    assert mind.refused == []
    assert grade(episode).passed

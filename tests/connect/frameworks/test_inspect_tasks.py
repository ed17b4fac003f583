"""Inspect runs our scenes and finds what `toolshift run` finds.

These tests need `inspect_ai`; `tests/connect/frameworks/run.py` runs them where it is installed.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import inspect_ai
import msgspec
import pytest
from inspect_ai.approval import Approval, ApprovalPolicy, approver
from inspect_ai.log import EvalLog, read_eval_log
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    ModelOutput,
    ModelUsage,
    get_model,
)
from inspect_ai.scorer import SampleScore, Score
from inspect_ai.tool import ToolCall

from toolshift.agents.catalog import contestants
from toolshift.api import run_spec
from toolshift.connect.inspect.registry import converse, react_to, shifted
from toolshift.connect.inspect.scoring import accuracy, stderr
from toolshift.core import seed as seeds
from toolshift.core.tool import JSON
from toolshift.runs.execute import RunSpec
from toolshift.runs.plan import make_plan
from toolshift.runs.run_folder import Record, RunFolder
from toolshift.runs.suite import Selection, select

SHIFTS = (
    "identity_erasure:2,format_drift:3,redirect:2,tool_removed_midway:2,merged_tools:2,"
    "intent_change:1,rule_update:1,fatal_error:2,contradictory_request:2"
)
SMALL = {"shifts": SHIFTS, "tasks": 5}
AGENTS = ("oracle", "memorises_names", "gives_up", "never_refuses")


def run_inspect(folder: Path, model: Any, **how: Any) -> EvalLog:
    logs = inspect_ai.eval(
        shifted(**SMALL), model=model, log_dir=str(folder), display="none", **how
    )
    assert logs[0].status == "success", logs[0].error
    return read_eval_log(logs[0].location)


def run_ours(folder: Path, agent: Any) -> tuple[dict[str, Record], Any]:
    plan = make_plan(select(Selection(shifts=tuple(SHIFTS.split(",")), tasks=5)))
    report = run_spec(RunSpec(plan, contestants([agent]), folder))
    return {record.cell: record for record in RunFolder.read(folder).records()}, report


def grades(log: EvalLog) -> dict[str, bytes]:
    assert log.samples
    found = {}
    for sample in log.samples:
        assert sample.scores
        found[str(sample.id)] = JSON.encode(sample.scores["graded"].metadata["grade"])
    return found


def steps(log: EvalLog) -> dict[str, bytes]:
    return {str(s.id): JSON.encode(s.store["toolshift"]["steps"]) for s in log.samples or ()}


@pytest.mark.parametrize("agent", AGENTS)
def test_scripted_agents_get_the_same_grades_and_drops(agent: str, tmp_path: Path) -> None:
    ours, report = run_ours(tmp_path / "ours", agent)
    log = run_inspect(tmp_path / "inspect", f"toolshift/{agent}")
    assert len(ours) > 40
    assert grades(log) == {cell: JSON.encode(record.grade) for cell, record in ours.items()}
    assert log.results
    named = {
        name: metric.value for score in log.results.scores for name, metric in score.metrics.items()
    }
    whole = report.agents[0].everything.accuracy
    assert named["accuracy"] == pytest.approx(whole.estimate)
    assert named["clean"] == pytest.approx(report.agents[0].clean.accuracy.estimate)
    for row in report.agents[0].tiers:
        assert named[row.label] == pytest.approx(row.accuracy.estimate)
        if row.defined:
            assert named[f"drop_{row.label}"] == pytest.approx(row.drop.estimate)
            assert named[f"drop_{row.label}_low"] == pytest.approx(row.drop.low)
        else:
            assert math.isnan(row.drop.estimate)
            assert f"drop_{row.label}" not in named


def test_every_task_weighs_the_same(tmp_path: Path) -> None:
    """Three samples of one task pass, the one of another fails: half, not three quarters."""
    ours, _ = run_ours(tmp_path / "ours", "oracle")
    folder = RunFolder.read(tmp_path / "ours")

    def sample(record: Record, passed: bool) -> SampleScore:
        verdict = msgspec.structs.replace(record.grade, passed=passed)
        told = {"grade": msgspec.to_builtins(verdict)}
        cell = {"cell": msgspec.to_builtins(folder.cell(record))}
        return SampleScore(score=Score(value=int(passed), metadata=told), sample_metadata=cell)

    by_task: dict[str, list[Record]] = {}
    for record in ours.values():
        by_task.setdefault(folder.cell(record).lineage, []).append(record)
    one, other = list(by_task.values())[:2]
    passes = [sample(record, True) for record in one[:3]]
    assert len(passes) == 3
    assert accuracy()([*passes, sample(other[0], False)]) == 0.5
    assert stderr()([*passes, sample(other[0], False)]) == pytest.approx(0.5)
    assert stderr()(passes) == 0


def wanders(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> dict[str, Any]:
    """Calls any tool with any words that it has heard: a policy of what is shown, and no more."""
    heard = [str(message.get("content")) for message in messages if message["role"] != "assistant"]
    words = sorted({word.strip('".,:{}[]') for text in heard for word in text.split()} - {""})
    rng = seeds.rng(*heard, *(tool["function"]["name"] for tool in tools))
    calls = []
    for number in range(rng.choice((0, 1, 1, 1, 2))):
        function = rng.choice(tools)["function"]
        wanted = function["parameters"]["properties"]
        arguments = {name: rng.choice(words) for name in wanted if rng.random() < 0.9}
        spoken = {"name": function["name"], "arguments": JSON.encode(arguments).decode()}
        calls.append({"id": f"c{len(messages)}_{number}", "type": "function", "function": spoken})
    text = rng.choice(("Which one do you mean?", "I think so.", f"It is {rng.choice(words)}."))
    return {"role": "assistant", "content": "" if calls else text, "tool_calls": calls}


def told(message: ChatMessageAssistant) -> ModelOutput:
    return ModelOutput(
        model="mock",
        choices=[ChatCompletionChoice(message=message)],
        usage=ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2),
    )


def test_a_policy_of_what_is_shown_gets_the_same_traces(tmp_path: Path) -> None:
    def outputs(messages: Any, tools: Any, *_: Any) -> ModelOutput:
        said = [{"role": m.role, "content": m.text} for m in messages]
        shown = [
            {
                "function": {
                    "name": tool.name,
                    "parameters": tool.parameters.model_dump(exclude_none=True),
                }
            }
            for tool in tools
        ]
        message = wanders(said, shown)
        calls = [
            ToolCall(
                id=call["id"],
                function=call["function"]["name"],
                arguments=json.loads(call["function"]["arguments"]),
            )
            for call in message["tool_calls"]
        ]
        return told(ChatMessageAssistant(content=message["content"], tool_calls=calls or None))

    ours, _ = run_ours(tmp_path / "ours", wanders)
    model = get_model("mockllm/model", custom_outputs=outputs)
    log = run_inspect(tmp_path / "inspect", model)
    assert steps(log) == {cell: JSON.encode(record.steps) for cell, record in ours.items()}
    assert grades(log) == {cell: JSON.encode(record.grade) for cell, record in ours.items()}
    ends = {record.end for record in ours.values()}
    assert {"answered", "refused"} <= ends


def test_the_react_agent_sees_tools_that_change_and_passes(tmp_path: Path) -> None:
    log = run_inspect(tmp_path, "toolshift/oracle", solver=react_to())
    assert log.samples
    assert all(sample.scores["graded"].value == 1 for sample in log.samples if sample.scores)
    moved = [s for s in log.samples if "tool_removed_midway" in s.metadata["shifts"]]
    assert moved
    for sample in moved:
        offered = [
            {tool.name for tool in event.tools} for event in sample.events if event.event == "model"
        ]
        assert offered[0] != offered[-1]


ODD = {
    "an unknown tool": ToolCall("c", "no_such_tool", {}),
    "no name": ToolCall("c", "", {}),
    "unreadable arguments": ToolCall("c", "answer", {}, parse_error="no JSON"),
    "deep arguments": ToolCall("c", "answer", json.loads('{"a":' * 90 + "1" + "}" * 90)),
    "control characters": ToolCall("c", "answer\x00", {"\x00": "\x1b[31m\u202e"}),
}


@pytest.mark.parametrize("solver", [converse, react_to])
@pytest.mark.parametrize("odd", ODD)
def test_calls_that_inspect_answers_itself_are_in_the_trace_and_spend_the_budget(
    odd: str, solver: Any, tmp_path: Path
) -> None:
    def outputs(*_: Any) -> ModelOutput:
        return told(ChatMessageAssistant(content="", tool_calls=[ODD[odd]]))

    model = get_model("mockllm/model", custom_outputs=outputs)
    log = run_inspect(tmp_path, model, solver=solver(), limit=2)
    for sample in log.samples or ():
        found = sample.scores["graded"].metadata["grade"] if sample.scores else {}
        assert found["end"] == "budget"
        calls = [step for step in sample.store["toolshift"]["steps"] if step["kind"] == "call"]
        assert len(calls) > 10
        read = [message.text for message in sample.messages if message.role == "tool"]
        assert read[0] == calls[0]["text"]


def test_a_call_that_an_approver_refuses_is_not_made(tmp_path: Path) -> None:
    called: list[str] = []

    def outputs(_messages: Any, tools: Any, *_: Any) -> ModelOutput:
        called.append(tools[0].name)
        if len(called) % 2 == 0:
            return told(ChatMessageAssistant(content="I cannot do that."))
        call = ToolCall("c", tools[0].name, {})
        return told(ChatMessageAssistant(content="", tool_calls=[call]))

    @approver(name="nobody")
    def nobody() -> Any:
        async def refuse(*_: Any) -> Approval:
            return Approval(decision="reject", explanation="not today")

        return refuse

    model = get_model("mockllm/model", custom_outputs=outputs)
    approval = [ApprovalPolicy(nobody(), "*")]
    log = run_inspect(tmp_path, model, solver=react_to(), approval=approval, limit=1)
    for sample in log.samples or ():
        kinds = [step["kind"] for step in sample.store["toolshift"]["steps"]]
        assert "call" not in kinds
        read = [message.error for message in sample.messages if message.role == "tool"]
        assert [error.type for error in read if error] == ["approval"]


def test_an_output_without_a_choice_is_the_endpoints_failure(tmp_path: Path) -> None:
    usage = ModelUsage(input_tokens=1, output_tokens=0, total_tokens=1)
    empty = ModelOutput(model="m", choices=[], usage=usage, error="overloaded")
    model = get_model("mockllm/model", custom_outputs=lambda *_: empty)
    log = run_inspect(tmp_path, model, limit=1)
    assert [sample.error for sample in log.samples or ()] == [None]
    assert {sample.store["toolshift"]["end"] for sample in log.samples or ()} == {"infrastructure"}


@pytest.mark.parametrize("reason", ["max_tokens", "model_length", "content_filter"])
def test_a_reply_that_was_cut_off_is_read_as_in_a_run(reason: Any, tmp_path: Path) -> None:
    def outputs(*_: Any) -> ModelOutput:
        output = told(ChatMessageAssistant(content="I think that the"))
        output.choices[0].stop_reason = reason
        return output

    log = run_inspect(tmp_path, get_model("mockllm/model", custom_outputs=outputs), limit=2)
    assert {sample.store["toolshift"]["end"] for sample in log.samples or ()} == {"infrastructure"}


def test_the_first_samples_are_of_all_arms_and_the_transcript_has_the_tools(tmp_path: Path) -> None:
    log = run_inspect(tmp_path, "toolshift/oracle", limit=5)
    arms = [(sample.metadata["arm"], sample.metadata["lineage"]) for sample in log.samples or ()]
    assert {"clean", "placebo"} < {arm for arm, _ in arms}
    assert len({lineage for _, lineage in arms}) == 1
    for sample in log.samples or ():
        turns = [event for event in sample.events if event.event == "model"]
        assert turns
        assert all(event.tools for event in turns)


def test_a_log_is_graded_again_to_the_same_scores(tmp_path: Path) -> None:
    log = run_inspect(tmp_path, "toolshift/memorises_names")
    from toolshift.connect.inspect.registry import graded

    again = inspect_ai.score(log, graded(), action="overwrite", display="none")
    assert grades(again) == grades(log)


def test_a_limit_of_inspect_counts_as_a_spent_budget(tmp_path: Path) -> None:
    log = run_inspect(tmp_path, "toolshift/oracle", message_limit=4)
    ends = {sample.scores["graded"].metadata["grade"]["end"] for sample in log.samples or ()}
    assert "budget" in ends

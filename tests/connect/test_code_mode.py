"""Agents whose programs call the tools: every shift applies, and calls are graded as any other."""

from __future__ import annotations

import json
from threading import Event
from typing import Any

import pytest

import toolshift
from toolshift.agents.catalog import make_agent
from toolshift.connect.code_mode import CodeAgent, documented, functions_of
from toolshift.connect.sandbox import check_sandbox
from toolshift.core.errors import UsageError
from toolshift.core.message import Usage
from toolshift.core.scene import Scene
from toolshift.core.tool import Param, Tool
from toolshift.episode.episode import Episode
from toolshift.episode.grade import grade
from toolshift.runs.cell import build
from toolshift.runs.suite import read_task

try:
    check_sandbox()
except UsageError as why:
    pytest.skip(str(why), allow_module_level=True)

Message = dict[str, Any]


def called(tool: str, **arguments: Any) -> Message:
    function = {"name": tool, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "tool_calls": [{"id": "c", "function": function}]}


class Writes:
    """Writes a program for each call of the oracle, and says what the oracle says."""

    name = "writes"

    def __init__(self, scene: Scene) -> None:
        by_name = {tool: name for name, tool in functions_of(scene.reachable).items()}
        self.left = []
        for step in scene.rehearsal:
            if step.kind == "call":
                source = f"f = {by_name.get(step.name, step.name)}\n"
                source += (
                    f"try: print(f(**{step.given!r}))\nexcept ToolError as e: print('failed', e)"
                )
                self.left.append(called("run_code", source=source))
            elif step.kind == "answer":
                self.left.append(called("final_answer", answer=step.said))
        self.heard: list[Any] = []

    def reply(self, turn: Any) -> Message:
        self.heard.append(turn)
        return self.left.pop(0)


STACKS = (
    "",
    "semantic_rename:3+parameter_rename:3",
    "csv_results",
    "transient_error:2",
    "redirect:2",
    "merged_tools",
    "tool_search:2+crowded_list_38",
    "type_change:2",
)


@pytest.mark.parametrize("stack", STACKS)
def test_each_shift_applies_to_the_functions(stack: str) -> None:
    scene = build(read_task("poi/booking/2", stack))
    agent = Writes(scene)
    episode = Episode(scene)
    CodeAgent(agent).drive(episode, Event())
    verdict = grade(episode)
    assert verdict.passed, [(step.name, step.text[:200]) for step in episode.steps]
    told = [step.text for step in scene.calls]
    assert [step.text for step in episode.steps if step.kind == "call"] == told
    first = agent.heard[0]
    assert first.tools[0]["function"]["name"] == "run_code"
    names = functions_of(tuple(scene.tools))
    assert all(f"def {name}(" in first.messages[0]["content"] for name in names)


def test_one_program_may_make_many_calls_and_the_budget_holds() -> None:
    scene = build(read_task("poi/booking/2"))
    source = "while True:\n    try: find_place(name='a', city='b')\n    except ToolError: pass"
    agent = Writes(scene)
    agent.left = [called("run_code", source=source)] * 30
    episode = Episode(scene)
    CodeAgent(agent).drive(episode, Event())
    assert episode.end == "budget"
    assert len({step.turn for step in episode.steps[:-1]}) == 1


def test_a_former_name_in_a_program_is_a_memorised_name() -> None:
    scene = build(read_task("poi/booking/2", "semantic_rename:3"))
    agent = Writes(scene.clean)
    episode = Episode(scene)
    CodeAgent(agent).drive(episode, Event())
    assert grade(episode).cause == "memorised_name"


def test_tools_that_are_no_names_in_python_are_functions_all_the_same() -> None:
    params = (Param("from", "", {"type": ["string", "null"], "enum": ["a", None]}),)
    tools = tuple(Tool(name, "Does it", params, ()) for name in ("a-b", "a_b", "4x", "class"))
    assert functions_of(tools) == {"a_b": "a-b", "a_b_2": "a_b", "_4x": "4x", "_class": "class"}
    assert "def a_b_2(from: Literal['a', None]):" in documented(tools)


def test_a_call_outside_of_a_program_is_told_how_and_nothing_is_run() -> None:
    scene = build(read_task("poi/booking/2"))
    agent = Writes(scene)
    agent.left = [
        called("find_place", name="a", city="b"),
        called("run_code"),
        called("refuse", reason="not_found"),
    ]
    episode = Episode(scene)
    CodeAgent(agent).drive(episode, Event())
    assert [step.kind for step in episode.steps] == ["refuse"]
    texts = [turn.messages[-1]["content"] for turn in agent.heard]
    assert "by run_code" in texts[1]
    assert "`source`" in texts[2]


def test_it_is_named_by_its_spec_and_only_for_agents_that_answer_turns() -> None:
    with pytest.raises(UsageError, match="answer turns"):
        make_agent("code:oracle")


def test_a_run_in_code_mode_is_stored_and_graded(tmp_path: Any) -> None:
    class Asks:
        name = "asks"
        settings = {"model": "m"}

        def reply(self, turn: Any) -> Any:
            return toolshift.Reply(text="I cannot find it.", usage=Usage(5, 2, 0.0))

    report = toolshift.evaluate(
        CodeAgent(Asks()),
        worlds=["poi"],
        tasks=1,
        shifts=["clean"],
        placebo=False,
        out=tmp_path / "r",
    )
    (episode,) = toolshift.read_run(tmp_path / "r").episodes
    assert episode.agent == "code:asks"
    assert episode.usage.input_tokens == 5
    assert not report.agents[0].clean.accuracy.estimate

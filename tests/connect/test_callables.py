"""A scene's tools as Python functions, and the documented programs."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal, get_type_hints

import pytest

from toolshift.agents.catalog import make_agent
from toolshift.connect.callables import StartedEpisode, annotation, start_episode
from toolshift.core.tool import as_openai
from toolshift.episode.episode import Episode
from toolshift.episode.grade import grade
from toolshift.shifts.oracle_trace import STYLES

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = sorted((ROOT / "tests/connect/frameworks/programs").glob("*.py"))
SCENES = [
    ("poi/booking/0", ""),
    ("poi/booking/0", "parameter_rename:3+format_drift:2"),
    ("poi/booking/0", "tool_migrated:1"),
    ("poi/booking/0", "redirect:2"),
    ("poi/visit/0", "intent_change:1"),
    ("poi/booking/0", "tool_gone:2"),
    ("retail/refund/0", "identity_erasure:2"),
]


def by_name(functions: list[Callable[..., str]]) -> dict[str, Callable[..., str]]:
    return {function.__name__: function for function in functions}


@pytest.mark.parametrize(("task", "shifts"), SCENES)
@pytest.mark.parametrize("agent", ["oracle", "never_refuses"])
def test_the_same_acts_through_functions_get_the_same_trace(
    task: str, shifts: str, agent: str
) -> None:
    seat, twin = start_episode(task, shifts), start_episode(task, shifts).episode
    make_agent(agent).play(twin)  # type: ignore[union-attr]
    for step in twin.steps:
        tools = by_name(seat.functions())
        arguments = step.arguments if isinstance(step.arguments, dict) else {}
        if step.kind == "call":
            known = tools[step.name].json_schema["properties"]  # type: ignore[attr-defined]
            names = dict(zip(known, inspect.signature(tools[step.name]).parameters, strict=True))
            text = tools[step.name](**{names[k]: v for k, v in arguments.items()})
            assert text == step.text
        elif step.kind == "ask":
            assert tools["ask_user"](question=step.said) == step.text
        elif step.kind == "answer":
            text = tools["final_answer"](answer=step.said)
            assert text.startswith("Delivered.")
            assert step.text in text
        elif step.kind == "refuse":
            tools["refuse"](reason=step.name)
    assert seat.grade() == grade(twin)


def test_names_types_and_texts_are_the_tools_own() -> None:
    seat = start_episode("poi/booking/0", "identity_erasure:2+schema_noise:2")
    for function, tool in zip(seat.functions(), seat.episode.tools, strict=False):
        shown = as_openai(tool)["function"]
        assert function.__name__ == shown["name"]
        assert str(function.__doc__).startswith(shown["description"])
        assert function.json_schema == shown["parameters"]  # type: ignore[attr-defined]
        signature, hints = inspect.signature(function), get_type_hints(function)
        for name, param in signature.parameters.items():
            wanted = name in shown["parameters"]["required"]
            assert (param.default is inspect.Parameter.empty) == wanted
            assert hints[name] == annotation(shown["parameters"]["properties"][name], wanted)
            assert f"    {name}: " in str(function.__doc__)


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"type": "integer", "minimum": 1}, int),
        ({"enum": ["a", "b"]}, Literal["a", "b"]),
        ({"const": 3}, Literal[3]),
        ({"type": ["string", "null"]}, str | None),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, str | int),
        ({"type": "array", "items": {"type": "number"}}, list[float]),
        ({"type": "object"}, dict[str, Any]),
        ({}, Any),
    ],
)
def test_types_are_the_nearest_that_python_has(schema: dict[str, Any], kind: Any) -> None:
    assert annotation(schema) == kind


def test_parameters_that_python_cannot_name_are_spelled_with_underscores() -> None:
    from toolshift.connect.callables import _python_names

    shown = [style(["from", "place"]) for style in STYLES.values()] + ["from", "2nd", "a-b", "a.b"]
    names = _python_names({name: {} for name in shown})
    assert list(names.values()) == shown
    assert len(names) == len(shown)
    inspect.Signature([inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY) for n in names])


def test_prose_goes_to_the_user_who_goes_on_until_it_is_over() -> None:
    seat = start_episode("poi/visit/0", "intent_change:1")
    tools = by_name(seat.functions())
    tools["final_answer"](answer="none")
    assert seat.reply("Which city do you mean?")
    assert seat.reply("I cannot do that: no such place.") == ""
    assert seat.over
    assert seat.reply("more") == ""
    assert tools["ask_user"](question="and now?") == "The episode is over."


def test_many_threads_make_one_trace() -> None:
    seat = start_episode("poi/booking/0")
    route = by_name(seat.functions())["get_route"]
    with ThreadPoolExecutor(8) as pool:
        texts = list(pool.map(lambda n: route(place_id=f"x{n}", origin="here"), range(8)))
    steps = seat.episode.steps
    assert len(steps) == 8
    assert [step.turn for step in steps] == list(range(8))
    assert sorted(texts) == sorted(step.text for step in steps)


def test_an_episode_of_the_callers_own_will_do() -> None:
    episode = Episode(start_episode("poi/booking/0").episode.scene)
    answer = by_name(StartedEpisode(episode).functions())["final_answer"]
    assert answer(answer="none").startswith("Delivered.")
    assert episode.end == "answered"


def test_programs_are_short_and_are_those_of_the_page() -> None:
    page = (ROOT / "docs/frameworks.md").read_text()
    assert len(PROGRAMS) == 6
    for program in PROGRAMS:
        text = program.read_text()
        lines = [line for line in text.splitlines() if line.strip()]
        assert len(lines) <= 10, program.name
        assert text in page, program.name


def test_the_published_results_are_as_expected() -> None:
    rows = json.loads((ROOT / "studies/frameworks/results.json").read_text())
    assert {row["program"] for row in rows} >= {"openai-agents", "langgraph", "pydantic-ai"}
    assert [row for row in rows if not row["expected"]] == []

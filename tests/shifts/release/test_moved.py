"""Arguments that move into an object, or out of one, on a release of tools."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolshift.core.scene import Applied, Scene
from toolshift.core.tool import Result
from toolshift.data.augment import Recipe
from toolshift.data.files import Job, augment_file
from toolshift.drift.release import Settling, read_release
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import Episode
from toolshift.episode.grade import grade
from toolshift.episode.oracle import OracleAgent
from toolshift.interop.opened import folded_call, leads_to, opened_call
from toolshift.interop.tools import from_mcp
from toolshift.shifts.live import Live, live_scene
from toolshift.shifts.live import shifted as live_shifted
from toolshift.shifts.registry import compose, find_shift
from toolshift.shifts.release.inputs import side_of
from toolshift.shifts.release.mapping import Answers, WrongMapping
from toolshift.worlds.own import load

TEXT = {"type": "string"}
LEVEL = {"type": "string", "enum": ["low", "high"]}
TICKET = {"machine": TEXT, "summary": TEXT, "urgency": LEVEL, "copies": {"type": "integer"}}
CODE = {
    "flat": """
MADE = []


def open_ticket(machine: str, summary: str, urgency: str = "low", copies: int = 1) -> dict:
    MADE.append((machine, summary, urgency, copies))
    return {"ticket": f"T-{machine}-{urgency}-{copies}"}
""",
    "nested": """
from typing import NotRequired, TypedDict

MADE = []


class Ticket(TypedDict):
    machine: str
    summary: str
    urgency: NotRequired[str]
    copies: NotRequired[int]


def open_ticket(ticket: Ticket) -> dict:
    urgency, copies = ticket.get("urgency", "low"), ticket.get("copies", 1)
    MADE.append((ticket["machine"], ticket["summary"], urgency, copies))
    return {"ticket": f"T-{ticket['machine']}-{urgency}-{copies}"}
""",
}


def listed(properties: Mapping[str, Any], required: list[str]) -> dict[str, Any]:
    inputs = {"type": "object", "properties": {**properties}, "required": required}
    return {"name": "open_ticket", "description": "Open a ticket.", "inputSchema": inputs}


def flat(**more: Any) -> dict[str, Any]:
    return listed({**TICKET, **more}, ["machine", "summary"])


def boxed(name: str = "ticket", required: bool = True, **more: Any) -> dict[str, Any]:
    inner = {"type": "object", "properties": {**TICKET, **more}}
    inner["required"] = ["machine", "summary"]
    return listed({name: inner}, [name] if required else [])


def deep() -> dict[str, Any]:
    inner = boxed()["inputSchema"]
    return listed({"body": inner}, ["body"])


def read(old: dict[str, Any], new: dict[str, Any], answers: Answers | None = None) -> Settling:
    return read_release(
        side_of("mcp", "old", [old]), side_of("mcp", "new", [new]), answers or Answers()
    )


def scene_of(folder: Path, arguments: dict[str, Any], code: str) -> Scene:
    """A task of one call of the tool, which a module carries out."""
    (folder / f"moved_{code}.py").write_text(CODE[code])
    ask = "Open a ticket for M-1, oil leak, urgency high, and tell me the reference."
    calls = [{"name": "open_ticket", "arguments": arguments}]
    check = {"answer": "T-M-1-high-1", "calls": True}
    tasks = [{"id": "t", "ask": ask, "calls": calls, "check": check}]
    content = {"world": "w", "tools": {"python": f"moved_{code}"}, "tasks": tasks}
    file = folder / f"{code}.yaml"
    file.write_text(json.dumps({**content, "writes": ["open_ticket"]}))
    return make_scene(load(file), "task", 0)


def today(scene: Scene) -> dict[str, Any]:
    """The tool of a scene, as a list has it."""
    (tool,) = scene.tools
    return listed(
        {param.name: dict(param.schema) for param in tool.params},
        [param.name for param in tool.params if param.required],
    )


SAID = {"machine": "M-1", "summary": "oil leak", "urgency": "high"}
INTO = {
    "into an object": boxed(),
    "into an object that may be left out": boxed(required=False),
    "into an object inside of one": deep(),
    "some of them": listed(
        {
            "machine": TEXT,
            "about": {"type": "object", "properties": {"summary": TEXT, "urgency": LEVEL}},
            "copies": {"type": "integer"},
        },
        ["machine", "about"],
    ),
}


def shifted(scene: Scene, settling: Settling, folder: Path) -> Scene:
    file = folder / "monday.json"
    file.write_bytes(settling.shift.encode())
    return compose(scene, [Applied(find_shift(str(file)).name, 2)])


@pytest.mark.parametrize("case", INTO)
def test_arguments_that_moved_into_an_object_are_carried_unasked(case: str, tmp_path: Path) -> None:
    scene = scene_of(tmp_path, SAID, "flat")
    settling = read(today(scene), INTO[case])
    assert [".".join(q.path) for q in settling.open if q.path[0] != "defaults"] == []
    moved = [
        row
        for row in settling.reading.rows
        if row.change and row.change.kind == "parameter_renamed"
    ]
    assert moved
    assert {row.carriage for row in moved} == {"carried"}
    episode = Episode(shifted(scene, settling, tmp_path))
    OracleAgent().play(episode)
    assert grade(episode).passed
    # An agent that goes on as today is refused by the new schema.
    episode = Episode(episode.scene)
    episode.call("open_ticket", SAID)
    episode.answer("T-M-1-high-1")
    assert not grade(episode).passed


def test_arguments_that_moved_out_of_an_object_are_carried_unasked(tmp_path: Path) -> None:
    scene = scene_of(tmp_path, {"ticket": SAID}, "nested")
    settling = read(today(scene), flat())
    assert settling.open == ()
    assert settling.shift.mapping.params == {
        "open_ticket": {f"ticket.{name}": name for name in TICKET}
    }
    after = shifted(scene, settling, tmp_path)
    episode = Episode(after)
    OracleAgent().play(episode)
    assert grade(episode).passed
    (called,) = [step.given for step in episode.steps if step.kind == "call"]
    assert called == SAID


@given(
    st.lists(st.sampled_from(sorted(TICKET)), min_size=1, unique=True),
    st.booleans(),
    st.sampled_from(["ticket", "payload", "filter"]),
)
@settings(max_examples=30, deadline=None)
def test_calls_reach_the_tool_of_today_whatever_moved(
    moved: list[str], out: bool, name: str
) -> None:
    rest = {key: schema for key, schema in TICKET.items() if key not in moved}
    needs = [key for key in ("machine", "summary") if key in moved]
    inner = {"type": "object", "properties": {k: TICKET[k] for k in moved}, "required": needs}
    one = flat()
    other = listed(
        {**rest, name: inner},
        [*[k for k in ("machine", "summary") if k in rest], *([name] if needs else [])],
    )
    old, new = (other, one) if out else (one, other)
    release = read(old, new).shift.release()
    source, target = release.before.sources["open_ticket"], release.after.sources["open_ticket"]
    value = {"machine": "M-1", "summary": "leak", "urgency": "high", "copies": 2}
    plain = {key: value[key] for key in value}
    nested = {key: value[key] for key in rest} | {name: {key: value[key] for key in moved}}
    said, wanted = (plain, nested) if out else (nested, plain)
    (route,) = release.routes["open_ticket"]
    told = route.inward(opened_call(said, target.opened), source)
    assert folded_call(told, source.opened) == wanted


def test_a_new_member_of_the_object_is_asked_and_then_carried() -> None:
    new = boxed(center=TEXT)
    new["inputSchema"]["properties"]["ticket"]["required"].append("center")
    settling = read(flat(), new)
    assert [q.path for q in settling.open] == [("given", "open_ticket", "ticket.center")]
    answers = Answers(given={"open_ticket": {"ticket.center": "CC-4"}})
    assert read(flat(), new, answers).open == ()


def test_what_is_taken_where_a_moved_argument_is_left_out_is_no_reason_against_the_move() -> None:
    old = flat(urgency={**LEVEL, "default": "low"})
    (question,) = read(old, boxed()).open
    assert question.path == ("defaults", "open_ticket", "urgency")
    settling = read(old, boxed(), Answers(defaults={"open_ticket": {"urgency": "low"}}))
    assert settling.open == ()
    assert settling.shift.mapping.params["open_ticket"]["urgency"] == "ticket.urgency"
    release = settling.shift.release()
    (route,) = release.routes["open_ticket"]
    said = opened_call({"ticket": SAID}, ("ticket",))
    assert route.inward(said, release.before.sources["open_ticket"]) == SAID


def test_a_place_that_is_not_there_is_refused() -> None:
    answers = Answers(params={"open_ticket": {"machine": "ticket.machin"}})
    with pytest.raises(WrongMapping, match=r"ticket\.machine"):
        read(flat(), boxed(), answers)


@pytest.mark.parametrize("back", [False, True])
def test_an_id_that_becomes_an_object_is_its_id(back: bool) -> None:
    inner = {"type": "object", "properties": {"id": TEXT, "shift": TEXT}, "required": ["id"]}
    plain = listed({"operator_id": TEXT}, ["operator_id"])
    whole = listed({"operator": inner}, ["operator"])
    settling = read(whole, plain) if back else read(plain, whole)
    assert settling.open == ()
    moved = {"operator.id": "operator_id"} if back else {"operator_id": "operator.id"}
    assert settling.shift.mapping.params == {"open_ticket": moved}


def test_the_same_name_in_two_objects_is_no_move() -> None:
    inner = {"type": "object", "properties": {"machine": TEXT}}
    new = listed({"one": inner, "other": inner, "summary": TEXT}, ["summary"])
    assert "machine" not in read(flat(), new).shift.mapping.params.get("open_ticket", {})


def test_ones_own_conversations_say_them_in_the_object(tmp_path: Path) -> None:
    settling = read(flat(), boxed())
    (tmp_path / "monday.json").write_bytes(settling.shift.encode())
    function = {"name": "open_ticket", "parameters": flat()["inputSchema"]}
    made = {"name": "open_ticket", "arguments": json.dumps(SAID)}
    messages = [
        {"role": "user", "content": "Open a ticket for M-1, oil leak, urgency high."},
        {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": made}]},
        {"role": "tool", "tool_call_id": "1", "content": '{"ticket": "T-1"}'},
        {"role": "assistant", "content": "It is T-1."},
    ]
    row = {"messages": messages, "tools": [{"type": "function", "function": function}]}
    source, out = tmp_path / "mine.jsonl", tmp_path / "out.jsonl"
    source.write_text(json.dumps(row) + "\n")
    recipe = Recipe(alpha=1.0, seed=1, shifts=(str(tmp_path / "monday.json"),))
    augment_file(Job(source, out, recipe))
    calls = [
        json.loads(call["function"]["arguments"])
        for message in json.loads(out.read_text().splitlines()[0])["messages"]
        for call in message.get("tool_calls") or ()
    ]
    assert calls == [{"ticket": SAID}]


@given(st.dictionaries(st.sampled_from(["a", "b.c", "b.d", "e.f.g", "e.f.h"]), st.integers()))
def test_folding_is_the_reverse_of_laying_open(said: dict[str, int]) -> None:
    leads = tuple({lead: None for name in said for lead in leads_to(name)})
    assert opened_call(folded_call(said, leads), leads) == said


@pytest.mark.parametrize("out", [False, True])
def test_live_tools_are_told_the_arguments_of_today(out: bool, tmp_path: Path) -> None:
    old, new = (boxed(), flat()) if out else (flat(), boxed())
    (tmp_path / "monday.json").write_bytes(read(old, new).shift.encode())
    toolbox = from_mcp([old])
    stack = (Applied(find_shift(str(tmp_path / "monday.json")).name, 2),)
    told: list[dict[str, Any]] = []

    def carry(name: str, arguments: dict[str, Any]) -> Result:
        told.append(arguments)
        return Result(True, {"ticket": "T-1"})

    live = Live(live_shifted(live_scene(toolbox), stack), toolbox, carry)
    nested = {"ticket": SAID}
    said, wanted = (SAID, nested) if out else (nested, SAID)
    assert live.call("open_ticket", said).result.ok
    assert told == [wanted]
    (shown,) = live.tools()
    assert {param.name for param in shown.params} == ({*TICKET} if out else {"ticket"})

"""What makes a task of a conversation, and what is left out with its reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from toolshift.cli import toolshift
from toolshift.data.traces.messages import read_messages
from toolshift.data.traces.recorded import Recorded, recorded_in
from toolshift.data.traces.spans import ModelTurn, Raw, Span
from toolshift.data.traces.world import MadeWorld, make_world, recorded_bytes, tasks_text
from toolshift.runs.check import Bench, check_world
from toolshift.runs.own_checking import check_tasks
from toolshift.worlds.own.file import read_file
from toolshift.worlds.own.world import OwnWorld

TEXT = {"type": "string"}


def tool(name: str, *keys: str, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "inputSchema": {"type": "object", "properties": dict.fromkeys(keys, TEXT)},
        **more,
    }


TOOLS = (tool("look", "id"), tool("mail", "to", "text"), tool("book", "id"))


def talk(ask: str, *calls: tuple[str, dict[str, Any], Any], answer: str = "Done.") -> Recorded:
    messages: list[dict[str, Any]] = [{"role": "user", "content": ask}] if ask else []
    for number, (name, arguments, result) in enumerate(calls):
        function = {"name": name, "arguments": json.dumps(arguments)}
        messages.append(
            {"role": "assistant", "tool_calls": [{"id": f"c{number}", "function": function}]}
        )
        if result is not None:
            content = json.dumps(result)
            messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": content})
    said = read_messages(messages)
    turn = ModelTurn(TOOLS, said, read_messages([{"role": "assistant", "content": answer}]))
    (recorded,) = recorded_in([Span(Raw(trace=ask), "gen_ai", turn=turn)])
    return recorded


def made(folder: Path, *talks: Recorded, **more: Any) -> MadeWorld:
    return make_world(talks, folder, **more)


LOOK = ("look", {"id": "A1"}, {"id": "A1", "state": "open"})
LEFT_OUT = {
    "no request": talk("", LOOK),
    "no tool is called": talk("Hi"),
    "ends in a call that failed": talk("Look A1 up", ("look", {"id": "A1"}, {"error": "down"})),
    "the result of look is not recorded": talk("Look A1 up", ("look", {"id": "A1"}, None)),
    "cut has no definition": talk("Cut A1", ("cut", {"id": "A1"}, {"ok": True})),
    "the agent made up mail.text": talk("Mail jo", ("mail", {"to": "jo", "text": "Hello!"}, {})),
    "answered the same call in two ways": talk(
        "Look A1 up and book A1", LOOK, ("book", {"id": "A1"}, {}),
        ("look", {"id": "A1"}, {"state": "x"}),
    ),
    "the sign of a reference": talk("Look {{a}} up", ("look", {"id": "{{a}}"}, {})),
    "it makes no sound task": talk("Look A1 up", ("look", {"id": "A1", "as": "A1"}, {})),
}  # fmt: skip


@pytest.mark.parametrize("reason", LEFT_OUT)
def test_what_cannot_be_checked_is_left_out_and_counted(reason: str, tmp_path: Path) -> None:
    world = made(
        tmp_path, LEFT_OUT[reason], talk("Look B2 up", ("look", {"id": "B2"}, {"id": "B2"}))
    )
    assert [task["ask"] for task in world.tasks] == ["Look B2 up"]
    ((why, count),) = world.left_out.items()
    assert (reason in why, count) == (True, 1)


def test_a_call_that_failed_before_is_kept_and_not_expected(tmp_path: Path) -> None:
    failed = ("look", {"id": "A"}, {"error": "no such id"})
    (task,) = (world := made(tmp_path, talk("Look A or A1 up", failed, LOOK))).tasks
    assert [call["arguments"] for call in task["calls"]] == [{"id": "A1"}]
    assert [line.ok for line in world.lines] == [False, True]


def test_an_answer_is_checked_where_it_says_one_value_of_the_results(tmp_path: Path) -> None:
    (told,) = made(tmp_path, talk("Look A1 up", LOOK, answer="It is open.")).tasks
    assert told["check"] == {"calls": True, "answer": "open"}
    (silent,) = made(tmp_path, talk("Look A1 up", LOOK, answer="I looked.")).tasks
    assert silent["check"] == {"calls": True}


def test_reads_after_a_write_are_kept_apart_where_writes_are_named(tmp_path: Path) -> None:
    again = ("look", {"id": "A1"}, {"id": "A1", "state": "booked"})
    talked = talk("Book A1 and look A1 up", LOOK, ("book", {"id": "A1"}, {}), again)
    world = made(tmp_path, talked, writes=["book"])
    assert [len(line.after) for line in world.lines] == [0, 0, 1]
    assert world.head.writes == ["book"]


def test_tasks_of_a_kind_call_the_same_tools_in_order_and_are_no_more_than_asked(
    tmp_path: Path,
) -> None:
    talks = [talk(f"Look X{n} up", ("look", {"id": f"X{n}"}, {"id": n})) for n in range(4)]
    world = made(
        tmp_path, *talks, talks[0], talk("Book A1", LOOK, ("book", {"id": "A1"}, {})), most=3
    )
    assert [task["kind"] for task in world.tasks] == ["look", "look", "look", "look+book"]
    assert sorted(world.left_out.values()) == [1, 1]


def priced(name: str, currency: Any, value: Any, required: bool = False) -> Recorded:
    """A price that was asked for in a currency; the schema of the currency is given."""
    properties = {"symbol": TEXT, "currency": currency}
    schema = {"properties": properties, "required": ["symbol", *["currency"] * required]}
    function = {"name": name, "arguments": json.dumps({"symbol": "ACME", "currency": value})}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Price of ACME in usd?"},
        {"role": "assistant", "tool_calls": [{"id": "c", "function": function}]},
        {"role": "tool", "tool_call_id": "c", "content": '{"symbol": "ACME", "price": "12.50"}'},
    ]
    listed = ({"name": name, "inputSchema": {"type": "object", **schema}},)
    answer = read_messages([{"role": "assistant", "content": "12.50"}])
    turn = ModelTurn(listed, read_messages(messages), answer)
    (recorded,) = recorded_in([Span(Raw(trace=name), "gen_ai", turn=turn)])
    return recorded


def checked(folder: Path, recorded: Recorded) -> list[str]:
    """What `check` finds wrong with the world of a conversation."""
    world = make_world([recorded], folder)
    assert len(world.tasks) == 1, world.left_out
    recording, tasks = folder / "w.jsonl", folder / "w.yaml"
    recording.write_bytes(recorded_bytes(world.head, world.lines))
    tasks.write_text(tasks_text("w", world.system, world.tasks, recording.name))
    own = OwnWorld(read_file(tasks))
    verdicts = check_world(Bench((own,), ()), own)
    wrong = [each.detail for each in verdicts if each.state == "fail"]
    return [*wrong, *(each.said for each in check_tasks(own) if each.state == "fail")]


NULLS = {
    "type": {"type": ["string", "null"]},
    "alternative": {"anyOf": [TEXT, {"type": "null"}]},
    "choice": {"enum": ["usd", None]},
    "anything": {},
    "default": {"type": ["string", "null"], "default": "usd"},
}


@pytest.mark.parametrize("required", [True, False])
@pytest.mark.parametrize("schema", NULLS)
def test_an_argument_that_is_null_stays_null(schema: str, required: bool, tmp_path: Path) -> None:
    recorded = priced("get_stock", NULLS[schema], None, required)
    (task,) = make_world([recorded], tmp_path).tasks
    assert task["calls"][0]["arguments"] == {"symbol": "ACME", "currency": None}
    assert checked(tmp_path, recorded) == []


def test_null_inside_of_an_argument_stays_null(tmp_path: Path) -> None:
    inside = {"type": "object", "properties": {"day": NULLS["type"]}}
    assert checked(tmp_path, priced("get_stock", inside, {"day": None})) == []


def test_what_check_would_refuse_is_left_out(tmp_path: Path) -> None:
    world = make_world([priced("get_stock", TEXT, None)], tmp_path)  # and null is no text
    assert world.tasks == ()
    ((why, count),) = world.left_out.items()
    assert why.startswith("it makes no sound task: the oracle fails: unrecorded (get_stock came")
    assert count == 1


@pytest.mark.parametrize("name", ["clock.get", "Get Time", "поиск", "a/b:c", "x" * 80, 'the "x"'])
def test_a_tool_keeps_whatever_name_it_has(name: str, tmp_path: Path) -> None:
    assert checked(tmp_path, priced(name, TEXT, "usd")) == []


def test_check_notes_a_name_that_not_all_providers_take(tmp_path: Path) -> None:
    checked(tmp_path, priced("clock.get", TEXT, "usd"))
    done = CliRunner().invoke(toolshift, ["check", str(tmp_path / "w.yaml")])
    assert done.exit_code == 0
    assert "Note: 'clock.get': not all model providers accept such a tool name" in done.stdout

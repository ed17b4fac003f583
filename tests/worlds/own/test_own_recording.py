"""Record once, replay offline: the same grades, and bounds where the recording does not know."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from worlds.own.test_own import EXAMPLE, called, played, reads, remembers, scenes

from toolshift.api import evaluate
from toolshift.cli.check import check
from toolshift.cli.world import world
from toolshift.core.errors import UsageError
from toolshift.core.shift import NotApplicable
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import Over
from toolshift.runs.own_checking import let_play
from toolshift.shifts.registry import apply
from toolshift.worlds.own import OwnWorld, load

SHIFTS = ("identity_erasure", "parameter_rename", "format_drift", "redirect", "fatal_error")
AGENTS = ("oracle", "memorises_names", "gives_up", "never_refuses")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("shop_tools.py", "shop_checks.py", "tasks.yaml"):
        shutil.copy(EXAMPLE / name, tmp_path / name)
    return tmp_path


def call(*words: str | Path) -> None:
    """A command of `toolshift world`, or `toolshift check`."""
    command = {"check": check}.get(str(words[0]), world)
    words = words[1:] if command is check else words
    command.main(list(map(str, words)), standalone_mode=False)


def replayed(folder: Path, *agents: str) -> OwnWorld:
    """The world over a recording of it, the real tools gone."""
    named = [word for agent in agents for word in ("--agent", agent)]
    call("record", folder / "tasks.yaml", "--out", folder / "recording.jsonl", *named)
    offline = (folder / "tasks.yaml").read_text()
    offline = offline.replace("{python: shop_tools}", "{recording: recording.jsonl}")
    (folder / "offline.yaml").write_text(offline)
    return load(folder / "offline.yaml")


def test_a_replay_gives_the_same_grades_as_the_real_tools(folder: Path) -> None:
    real, offline = load(folder / "tasks.yaml"), replayed(folder)
    assert offline.source is None
    assert [tool.name for tool in offline.tools] == [tool.name for tool in real.tools]
    seen = 0
    for one, other in zip(scenes(real), scenes(offline), strict=True):
        assert one.outcome == other.outcome
        for agent in AGENTS:
            assert played(one, agent) == played(other, agent)
        for name in SHIFTS:
            try:
                pair = apply(one, name, 2, "same"), apply(other, name, 2, "same")
            except NotApplicable:
                continue
            for agent in AGENTS:
                assert played(pair[0], agent) == played(pair[1], agent), (name, agent)
                seen += 1
    assert seen > 60


def wanders(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> dict[str, Any]:
    """Looks at another order first, which nobody has recorded."""
    if messages[-1]["role"] == "user":
        function = {"name": "get_order", "arguments": json.dumps({"order_id": "O-1801"})}
        calls = [{"id": "1", "function": function}]
        return {"role": "assistant", "content": "", "tool_calls": calls}
    return (
        remembers([*messages[:-1], {"role": "user"}], tools)
        if len(messages) < 5
        else remembers(messages, tools)
    )


LAMP = (
    "world: lamp\ntools: {SOURCE}\nwrites: []\ntasks:\n"
    "  - id: lamp\n    ask: What is the status of order O-1702?\n"
    "    calls: [{name: get_order, arguments: {order_id: O-1702}}]\n"
    "    check: {answer: shipped}\n"
)


def test_an_unrecorded_call_is_neither_a_pass_nor_a_failure(folder: Path) -> None:
    (folder / "real.yaml").write_text(LAMP.replace("SOURCE", "python: shop_tools"))
    (folder / "lamp.yaml").write_text(LAMP.replace("SOURCE", "recording: lamp.jsonl"))
    call("record", folder / "real.yaml", "--out", folder / "lamp.jsonl")
    report = evaluate(
        [wanders, reads],
        worlds=[str(folder / "lamp.yaml")],
        shifts=["transient_error:1"],
        placebo=False,
    )
    lost, known = report.agent("wanders"), report.agent("reads")
    clean = lost.clean
    assert (clean.void, clean.void_kinds) == (1, {"unrecorded": 1})
    assert (clean.accuracy_all.estimate, clean.accuracy_best.estimate) == (0, 1)
    assert "as failures, 100% as passes" in " ".join(report.summary(details=True).split())
    assert (known.clean.void, known.clean.accuracy.estimate) == (0, 1)


def test_what_an_agent_calls_can_be_recorded_too(folder: Path) -> None:
    (folder / "real.yaml").write_text(LAMP.replace("SOURCE", "python: shop_tools"))
    (folder / "lamp.yaml").write_text(LAMP.replace("SOURCE", "recording: lamp.jsonl"))
    world = load(folder / "real.yaml")
    (folder / "wandering.py").write_text("from worlds.own.test_own_recording import wanders\n")
    let_play(world, ["worlds.own.test_own_recording:wanders"], {}, lambda done, total: None)
    assert len(world.recording.answers) == 2
    world.recording.save(folder / "lamp.jsonl", world.head)
    verdict = evaluate(wanders, worlds=[str(folder / "lamp.yaml")], shifts=["clean"])
    assert verdict.agent("wanders").clean.accuracy.estimate == 1


def test_a_state_that_the_recording_does_not_know_is_open(folder: Path) -> None:
    scene = make_scene(replayed(folder), "refund", 0)
    right = ("refund_order", {"order_id": "O-1701"})
    assert called(scene, right, answer="RF-1701-1").passed
    missed = called(scene, answer="RF-1701-1")  # nothing was done: the recording knows that state
    assert (missed.passed, missed.void) == (False, False)
    assert make_scene(replayed(folder), "refund", 0).calls[-1].name == "refund_order"


def test_a_text_that_agents_may_add_is_told_and_can_be_left_open(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    closed = (folder / "tasks.yaml").read_text()
    opened = closed
    for order in ("O-1701", "O-1801"):
        call_of = f"refund_order, arguments: {{order_id: {order}"
        opened = opened.replace(call_of, f"{call_of}, reason: {{any: it broke}}")
    (folder / "open.yaml").write_text(opened)
    assert "takes an optional text" not in _checked(folder / "open.yaml", capsys)
    said = _checked(folder / "tasks.yaml", capsys)
    assert "`reason`, and the expected call of refund-kettle, refund-by-number leaves it" in said

    given = {"order_id": "O-1801", "reason": "The customer wants the money back."}
    passed = []
    for name in ("open.yaml", "tasks.yaml"):
        scene = scenes(load(folder / name))[1]
        grade = called(scene, ("refund_order", given), answer="The reference is RF-1801-1.")
        passed.append(grade.passed)
    assert passed == [True, False]


@pytest.mark.parametrize("reason", [{"reason": "It hums."}, {}])
def test_a_recording_answers_whatever_is_said_for_an_argument_that_is_left_open(
    folder: Path, reason: dict[str, str]
) -> None:
    text = (folder / "tasks.yaml").read_text()
    call_of = "refund_order, arguments: {order_id: O-1801"
    (folder / "tasks.yaml").write_text(text.replace(call_of, f"{call_of}, reason: {{any: broke}}"))
    scene = next(one for one in scenes(replayed(folder)) if "O-1801" in one.asks[0].text)
    given = ("refund_order", {"order_id": "O-1801", **reason})
    assert called(scene, given, answer="The reference is RF-1801-1.").passed
    other = ("refund_order", {"order_id": "O-1701", **reason})
    with pytest.raises(Over):  # another order was never refunded
        called(scene, other)


def _checked(path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    call("check", path, "--no-rules")
    return " ".join(capsys.readouterr().out.split())


def test_check_says_what_every_task_is_worth(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call("check", folder / "tasks.yaml")
    assert "5 tasks, 4 tools, 0 broken" in capsys.readouterr().out
    tasks = (folder / "tasks.yaml").read_text()
    tasks = tasks.replace(
        "arguments: {order_id: O-1801}}\n    check: {answer: RF-1801-1, calls",
        "arguments: {order_id: O-1702}}\n    check: {answer: RF-1702-1, calls",
    )
    (folder / "free.yaml").write_text(tasks)
    call("check", folder / "free.yaml", "--no-rules", "--json")
    said = {task["id"]: task["said"] for task in json.loads(capsys.readouterr().out)}
    assert "order_id 'O-1702' stands neither in the request nor" in said["refund-by-number"]


def test_init_lists_the_tools(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = folder / "new.yaml"
    call("init", "python:shop_tools", "--out", out)
    assert "4 tools are listed" in capsys.readouterr().out
    assert "refund_order(order_id*, reason)  Refund an order" in out.read_text()
    with pytest.raises(UsageError, match="already exists"):
        call("init", "python:shop_tools", "--out", out)
    call("check", out)
    said = " ".join(capsys.readouterr().out.split())
    assert "no expected calls: that the tools suffice is not proved" in said


def test_a_recording_that_is_none_is_said_with_its_line(folder: Path) -> None:
    replayed(folder)
    lines = (folder / "recording.jsonl").read_text().splitlines()
    (folder / "recording.jsonl").write_text("\n".join([*lines[:2], "{"]))
    (folder / "again.yaml").write_text((folder / "offline.yaml").read_text())
    with pytest.raises(UsageError, match=r"again.yaml:2: tools.recording: recording.jsonl:3: not"):
        load(folder / "again.yaml")
    (folder / "recording.jsonl").write_text("\n".join(lines[:2]))
    (folder / "short.yaml").write_text((folder / "offline.yaml").read_text())
    with pytest.raises(UsageError, match="is not in the recording: record it again"):
        load(folder / "short.yaml")

"""Agents that are real programs: started for each episode, or posted to."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from running import Run

from toolshift.agents.catalog import contestants, describe
from toolshift.api import evaluate
from toolshift.connect.program import CommandAgent
from toolshift.core.errors import UsageError
from toolshift.runs.cell import build
from toolshift.runs.plan import make_plan
from toolshift.runs.run_folder import Record, RunFolder
from toolshift.runs.study import play
from toolshift.runs.suite import Selection, read_task, select

SMALL: dict[str, Any] = {
    "worlds": ["poi"], "tasks": 2, "shifts": ["identity_erasure:1"], "placebo": False,
}  # fmt: skip

CLIENT = """
import asyncio, json, os, re, sys
from mcp import Client

PLAN = json.load(open(sys.argv[1]))  # what to do, by the user's message


async def act(client, message):
    '''Does what the plan says, through the tools; answers by the protocol.'''
    for name, arguments in PLAN[message]:
        result = await client.call_tool(name, arguments)


async def main():
    async with Client(sys.argv[2]) as client:
        await client.list_tools()
        assert os.environ["TOOLSHIFT_SYSTEM"] and os.environ["TOOLSHIFT_CONTROL_URL"]
        await act(client, os.environ["TOOLSHIFT_TASK"])
        for line in sys.stdin:  # the user's later turns; ends when the episode is over
            await act(client, line.rstrip("\\n"))


asyncio.run(main())
"""

BY_PROSE = """
import json, os, sys

plan = json.load(open(sys.argv[1]))
print(plan[os.environ["TOOLSHIFT_TASK"]])
if "-live" in sys.argv:
    print("[end of turn]", flush=True)
    for line in sys.stdin:
        print("I think it is", plan[line.rstrip("\\n")])
        print("[end of turn]", flush=True)
"""


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def command(*words: str | Path) -> str:
    return " ".join([sys.executable, *map(str, words)])


def plan_of(cells: list[Any]) -> dict[str, list[Any]]:
    """What the oracle does, by the user's message."""
    found: dict[str, list[Any]] = {}
    for cell in cells:
        scene = build(cell)
        asks = iter(scene.asks)
        doing = found.setdefault(next(asks).text, [])
        for step in scene.rehearsal:
            if step.kind == "call":
                doing.append([step.name, step.arguments])
            elif step.kind == "answer":
                doing.append(["final_answer", {"answer": step.said}])
                if step.text:
                    doing = found.setdefault(next(asks).text, [])
    return found


def once(agent: Any, task: str = "poi/look_then_book", shifts: str = "") -> Record:
    return play(contestants([agent])[0], read_task(task, shifts), fresh=False)


def coded(code: str) -> str:
    """A command line that runs some Python."""
    return f"{sys.executable} -c {shlex.quote(code)}"


def run_code(code: str, **options: Any) -> Record:
    return once(CommandAgent(coded(code), **options))


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def gone(pid: int, within: float = 10.0) -> bool:
    until = time.monotonic() + within
    while time.monotonic() < until:
        if not is_running(pid):
            return True
        time.sleep(0.05)
    return False


def test_a_conversational_program_solves_a_study_with_later_turns_on_its_input(
    tmp_path: Path,
) -> None:
    asked: dict[str, Any] = {"worlds": ("poi",), "kinds": ("look_then_book",), "tasks": 1}
    asked |= {"shifts": ("query_paraphrase:2",), "placebo": False}
    cells = make_plan(select(Selection("quick", **asked))).cells
    plan = write(tmp_path / "plan.json", json.dumps(plan_of(cells)))
    program = write(tmp_path / "agent.py", CLIENT)
    spec = f"command:{command(program, plan, '{mcp_url}')}"
    report = evaluate(spec, concurrency=2, out=tmp_path / "out", **asked)
    assert report.agents[0].name.endswith("agent.py plan.json")
    assert report.agents[0].everything.episodes == len(cells) == 2
    for record, cell in zip(RunFolder.read(tmp_path / "out").records(), cells, strict=True):
        assert record.grade.passed, record.steps[-1]
        expected = build(cell).rehearsal
        assert sum(step.kind == "answer" for step in expected) == 2
        assert [step.name for step in record.steps] == [step.name for step in expected]
        assert [step.text for step in record.steps] == [step.text for step in expected]


def cell_of(index: int) -> Any:
    return read_task(f"poi/look_then_book/{index}")


@pytest.mark.parametrize("live", [[], ["-live"]])
def test_prose_answers_each_turn_in_one_life_or_in_two(tmp_path: Path, live: list[str]) -> None:
    """A program that leaves is started again for the user's next turn."""
    scene = build(cell_of(0))
    plan = {ask.text: ask.expected for ask in scene.asks}
    program = write(tmp_path / "agent.py", BY_PROSE)
    path = write(tmp_path / "plan.json", json.dumps(plan))
    record = once(CommandAgent(command(program, path, *live)))
    assert [step.kind for step in record.steps] == ["answer", "answer"]
    assert all(step.prose for step in record.steps)
    assert record.steps[1].said == ("I think it is " if live else "") + str(scene.asks[1].expected)
    assert record.steps[0].text == scene.asks[1].text


def test_a_refusal_in_prose_is_told_apart_from_one_by_the_protocol() -> None:
    refuses = coded("print('I am sorry, but I could not find that place.')")
    report = evaluate(f"command:{refuses}", **SMALL)
    everything = report.agents[0].everything
    assert (everything.refused_in_prose, everything.refused_by_protocol) == (1.0, 0.0)
    assert everything.prose == 1.0


def test_a_question_in_prose_is_answered(tmp_path: Path) -> None:
    record = run_code(
        "import sys; print('Which city do you mean?\\n[end of turn]', flush=True); "
        "print('AAAA-AAAA, in reply to', sys.stdin.readline())"
    )
    assert record.steps[0].kind == "ask"
    assert record.steps[0].text
    assert record.steps[0].text in record.steps[1].said


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import sys; sys.exit(3)", ["exit code 3"]),
        ("raise KeyError('no model')", ["exit code 1", "KeyError: 'no model'"]),
        ("pass", ["ended without an answer"]),
        ("import os; os.kill(os.getpid(), 11)", ["exit code -11"]),
    ],
)
def test_a_program_that_breaks_has_failed_itself(code: str, words: list[str]) -> None:
    record = run_code(code)
    assert (record.end, record.grade.void) == ("crashed", False)
    for word in words:
        assert word in record.steps[-1].said


def test_a_program_can_say_that_what_it_needs_is_out_of_order() -> None:
    record = run_code("import sys; print('the model is down', file=sys.stderr); sys.exit(75)")
    grade = record.grade
    assert (record.end, grade.void, grade.cause) == ("infrastructure", True, "own_outage")
    assert not grade.excused
    assert "exit code 75" in record.steps[-1].said
    assert "the model is down" in record.steps[-1].said


def test_saying_so_where_it_would_fail_wins_nothing(tmp_path: Path) -> None:
    choosy = """
import json, os, sys

plan = json.load(open(sys.argv[1]))
answer = plan.get(os.environ["TOOLSHIFT_TASK"])
if answer is None:
    sys.exit(int(sys.argv[2]))
print(answer)
"""
    tasks = {**SMALL, "kinds": ["hours"], "tasks": 3}
    chosen = select(Selection(**{**tasks, "worlds": ("poi",), "kinds": ("hours",), "shifts": ()}))
    cells = [cell for cell in make_plan(chosen).cells if not cell.shifts]
    known = build(cells[0])
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({known.asks[0].text: str(known.asks[0].expected)}))
    program = write(tmp_path / "choosy.py", choosy)
    reports = {
        code: evaluate(f"command:{command(program, plan, str(code))}", **tasks).agents[0]
        for code in (1, 75)
    }
    fails, voids = reports[1].clean, reports[75].clean
    assert voids.void_kinds == {"own_outage": 2}
    assert voids.stated.estimate == fails.accuracy.estimate < voids.accuracy.estimate
    assert voids.void_matters
    assert "as failures" in " ".join(reports[75].diagnosis)


def test_a_program_that_never_works_stops_the_run_with_its_complaint() -> None:
    broken = coded("raise OSError('no model is here')")
    with pytest.raises(UsageError, match="no model is here"):
        evaluate(f"command:{broken}", **SMALL)
    with pytest.raises(UsageError, match=r"no program 'nopython'.*nothing was run"):
        evaluate("command:nopython my_agent.py", **SMALL)
    for wrong in ("command:", "command:python 'unclosed"):
        with pytest.raises(UsageError, match=r"name a program|cannot be read"):
            evaluate(wrong, **SMALL)


SLOW = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
open(sys.argv[1], "a").write(f"{os.getpid()} {child.pid}\\n")
time.sleep(60)
"""


def pids(path: Path) -> list[int]:
    return [int(word) for word in path.read_text().split()] if path.exists() else []


def test_the_timeout_ends_a_program_with_all_it_has_started(tmp_path: Path) -> None:
    program, kept = write(tmp_path / "slow.py", SLOW), tmp_path / "pids"
    start = time.monotonic()
    record = once(CommandAgent(command(program, kept), timeout=3))
    assert time.monotonic() - start < 20
    assert (record.end, record.grade.void) == ("crashed", False)
    assert "more than 3 seconds" in record.steps[-1].said
    assert len(pids(kept)) == 2
    assert all(gone(pid) for pid in pids(kept))


ONCE = """
import sys
try:
    open("first", "x").close()
    print("AAAA-AAAA")
    sys.exit()
except FileExistsError:
    pass
"""


@pytest.mark.parametrize("concurrency", [1, 3])
def test_ctrl_c_ends_all_programs_and_keeps_what_is_done(tmp_path: Path, concurrency: int) -> None:
    """The first episode is over at once; the next ones would take a minute."""
    write(tmp_path / "slow.py", ONCE + SLOW)
    study = (
        "import sys; from toolshift.api import evaluate;"
        f"evaluate('command:' + sys.executable + ' slow.py pids', concurrency={concurrency},"
        " worlds=['poi'], tasks=4, shifts=['clean'], out='out', placebo=False)"
    )
    process = subprocess.Popen([sys.executable, "-c", study], cwd=tmp_path, stderr=subprocess.PIPE)
    expected, until = 2 * concurrency, time.monotonic() + 60
    while len(pids(tmp_path / "pids")) < expected and time.monotonic() < until:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) != 0
    started = pids(tmp_path / "pids")
    assert len(started) >= expected
    assert all(gone(pid) for pid in started)
    assert len(list(RunFolder.read(tmp_path / "out").records())) == 1


def test_results_are_resumable_and_hold_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_KEY", "sk-0123456789abcdef")
    program = write(
        tmp_path / "leaky.py",
        "import os, sys\n"
        "print(os.environ['MY_API_KEY'], os.environ['TOOLSHIFT_MCP_URL'], file=sys.stderr)\n"
        "print('It is', os.environ['MY_API_KEY'], os.environ['TOOLSHIFT_CONTROL_URL'])\n"
        "sys.exit(len(sys.argv) > 2 and os.environ['TOOLSHIFT_TASK'] < 'N')\n",
    )
    spec = f"command:{command(program, '--key=sk-in-the-command')}"
    out = tmp_path / "out"
    first = evaluate(spec, out=out, concurrency=3, **SMALL)
    lines = (out / "episodes.jsonl").read_text().splitlines()
    (out / "episodes.jsonl").write_text("\n".join(lines[:2]) + "\n")
    again = evaluate(spec, out=out, concurrency=3, **SMALL)
    assert (out / "episodes.jsonl").read_text().splitlines()[:2] == lines[:2]
    assert again.agents[0].everything.episodes == first.agents[0].everything.episodes
    everything = "".join(path.read_text() for path in out.glob("*.json*"))
    assert "[secret]" in everything
    assert "sk-0123456789abcdef" not in everything
    assert "sk-in-the-command" not in everything
    assert str(tmp_path) not in everything
    program.write_text(program.read_text() + "# changed\n")
    with pytest.raises(UsageError, match="files_sha256"):
        evaluate(spec, out=out, **SMALL)


def test_placeholders_are_filled_in_once_and_names_keep_arguments_private(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = str(Path(sys.executable).parent)  # not every system has a `python` on its path
    monkeypatch.setenv("PATH", here, prepend=os.pathsep)
    agent = CommandAgent("python -m my.agent --url {mcp_url}")
    assert agent.name == "python my.agent"
    assert CommandAgent("python agent.py --key sk-1").name == "python agent.py"
    told = describe(contestants([agent])[0])
    assert "spec" not in told
    assert "sk-1" not in json.dumps(told)
    record = run_code("import sys; print('AAAA-AAAA', sys.argv)")
    assert "-c" in record.steps[0].said
    code = "import sys; print(sys.argv[1])"
    task = once(CommandAgent(f"{coded(code)} '{{task}} of {{mcp_url}}!'"))
    assert build(cell_of(0)).asks[0].text in task.steps[0].said


def test_output_without_end_is_cut() -> None:
    record = run_code("print('x' * 5_000_000); print('The code is AAAA-AAAA')")
    assert len(record.steps[0].said) < 100_000
    assert record.steps[0].said.endswith("The code is AAAA-AAAA")


def test_the_program_of_the_docs_runs(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "connect.md").read_text()
    shown = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(shown) == 1
    record = once(CommandAgent(command(write(tmp_path / "my_agent.py", shown[0]))))
    assert (record.end, record.steps[-1].name) == ("refused", "not_found")
    assert not record.grade.prose


def test_the_command_line_takes_programs(toolshift: Run, tmp_path: Path) -> None:
    """By spec, as for any other agent."""
    code, out, err = toolshift(
        "run", "--agent", f"command:{sys.executable} -c 'print(1)'", "--world", "poi",
        "--tasks", "1", "--shift", "identity_erasure", "--no-placebo", "--out", "out",
    )  # fmt: skip
    assert code == 0, err
    out = toolshift("report", "out", "--details", "--no-html")[1]
    assert "ended in prose (refused: 0% by protocol, 0% in prose)" in " ".join(out.split())

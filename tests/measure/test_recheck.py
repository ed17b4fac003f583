"""A sample of a run played again: what was recorded comes out the same, and a forgery does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from running import Run, runner
from surfing import run_into

from toolshift.api import evaluate
from toolshift.core.errors import UsageError
from toolshift.measure.recheck import LIVE, VOID, recheck
from toolshift.runs.run_folder import Record, RunFolder
from toolshift.shifts.registry import shifts

OWN = Path(__file__).parents[2] / "examples" / "own_tools" / "tasks.yaml"
PLANTED = ("oracle", "repeats_itself", "always_refuses", "noisy")


def talks(messages: Any, tools: Any) -> Any:
    """Several calls a turn, a call that cannot be read, a question in prose, an answer in prose."""
    said = sum(message["role"] == "assistant" for message in messages)
    name = tools[0]["function"]["name"]
    if said == 0:
        calls = [{"name": name, "arguments": "{}"}, {"name": "refuse", "arguments": "{}"}]
        broken = {"name": name, "arguments": "{oops"}
        functions = [{"id": str(n), "function": c} for n, c in enumerate([*calls, broken])]
        return {"role": "assistant", "content": "Let me look.", "tool_calls": functions}
    return "In which city?" if said == 1 else "It is BCDF-GHJK."


def loops(messages: Any, tools: Any) -> Any:
    call = {"name": tools[0]["function"]["name"], "arguments": "{}"}
    return {"role": "assistant", "tool_calls": [{"id": "1", "function": call}] * 3}


def breaks(messages: Any, tools: Any) -> Any:
    if len(messages) > 3:
        raise KeyError("no model")
    return loops(messages, tools)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run") / "run"
    every = tuple(each for each in shifts() if "@" not in each)
    return run_into(folder, *PLANTED, talks, loops, breaks, tasks=2, shifts=every)


def test_every_episode_comes_out_the_same(run: Path) -> None:
    found = recheck(RunFolder.read(run), 10**6)
    assert found.differ == []
    assert found.played + sum(found.left_out.values()) == found.episodes
    assert found.played > 300


def test_a_run_with_a_limit_on_repeats_is_named_so_and_comes_out_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    report = evaluate([loops, "oracle"], shifts=["clean"], tasks=3, max_repeats=4, out=folder)
    read = RunFolder.read(folder)
    assert read.manifest.selection.max_repeats == 4
    ended = [record for record in read.records() if record.end == "budget"]
    assert [len(record.steps) for record in ended] == [5] * 6  # placebo and clean
    assert {record.steps[-1].said for record in ended} == {"repeats"}
    assert recheck(read, 10**6).differ == []
    assert report.agents[1].everything.accuracy.estimate == 1


def rewritten(run: Path, out: Path, change: Any) -> RunFolder:
    """A copy of a run in which episodes are changed."""
    folder = RunFolder.read(run)
    records = [change(record) or record for record in folder.records()]
    out.mkdir()
    for name in ("manifest.json", "plan.jsonl"):
        (out / name).write_bytes((run / name).read_bytes())
    copy = RunFolder.read(out)
    copy.rewrite(records)
    return copy


def test_a_verdict_that_was_altered_is_found(run: Path, tmp_path: Path) -> None:
    def flatter(record: Record) -> Any:
        if record.agent == "always_refuses" and not record.grade.passed:
            better = msgspec.structs.replace(record.grade, passed=True, cause="")
            return msgspec.structs.replace(record, grade=better)
        return None

    found = recheck(rewritten(run, tmp_path / "copy", flatter), 10**6)
    assert found.differ
    assert {each.what for each in found.differ} == {"verdict"}
    assert {each.step for each in found.differ} == {None}
    assert all(each.before.passed and not each.after.passed for each in found.differ)


def test_a_result_that_was_altered_is_found_at_its_step(run: Path, tmp_path: Path) -> None:
    def invent(record: Record) -> Any:
        if record.agent != "oracle" or record.steps[1].kind != "call":
            return None
        steps = list(record.steps)
        steps[1] = msgspec.structs.replace(steps[1], text='{"code": "BCDF-GHJK"}')
        return msgspec.structs.replace(record, steps=tuple(steps))

    found = recheck(rewritten(run, tmp_path / "copy", invent), 10**6)
    assert found.differ
    assert {(each.what, each.step) for each in found.differ} == {("trace", 1)}
    assert all("BCDF-GHJK" in each.stored and each.again for each in found.differ)


def test_the_sample_is_drawn_by_its_seed(run: Path, tmp_path: Path) -> None:
    def spoil(record: Record) -> Any:
        wrong = msgspec.structs.replace(record.grade, calls=record.grade.calls + 1)
        return msgspec.structs.replace(record, grade=wrong)

    copy = rewritten(run, tmp_path / "copy", spoil)
    one, same, other = (recheck(copy, 10, seed) for seed in (1, 1, 2))
    drawn = [[each.episode for each in found.differ] for found in (one, same, other)]
    assert len(drawn[0]) == 10
    assert drawn[0] == drawn[1] != drawn[2]


def test_real_tools_are_not_called_again(tmp_path: Path) -> None:
    folder = RunFolder.read(run_into(tmp_path / "run", "oracle", worlds=(str(OWN),), tasks=2,
                                     shifts=("clean",)))  # fmt: skip
    with pytest.raises(UsageError, match=f"nothing can be played again .*{LIVE}"):
        recheck(folder)


def test_void_episodes_are_left_out(run: Path, tmp_path: Path) -> None:
    def void(record: Record) -> Any:
        lost = msgspec.structs.replace(record.grade, void=True, passed=False)
        return msgspec.structs.replace(record, grade=lost) if record.agent == "noisy" else None

    copy = rewritten(run, tmp_path / "copy", void)
    assert recheck(copy, 5).left_out[VOID] >= sum(r.agent == "noisy" for r in copy.records())


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return runner(capsys, monkeypatch)


def test_exit_codes(cli: Run, run: Path, tmp_path: Path) -> None:
    code, out, _ = cli("replay", run, "--sample", 20, "--seed", 3)
    assert code == 0
    assert "20 episodes replayed (seed 3): all verdicts are confirmed." in out
    wrong = rewritten(
        run,
        tmp_path / "copy",
        lambda r: msgspec.structs.replace(
            r, grade=msgspec.structs.replace(r.grade, passed=not r.grade.passed)
        ),
    )
    code, out, _ = cli("replay", wrong.path, "--sample", 5)
    assert code == 1
    assert "5 differ, 5 of them in the verdict" in out
    code, out, _ = cli("replay", wrong.path, "--sample", 5, "--json")
    assert code == 1
    assert json.loads(out)["holds"] is False
    assert len(json.loads(out)["differ"]) == 5
    assert cli("replay", tmp_path, "--sample", 100)[0] == 2
    code, _, err = cli("replay", run, "--sample", 0)
    assert code == 2
    assert "--sample must be at least 1" in err

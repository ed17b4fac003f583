"""What a Python user calls: the arguments of `evaluate`."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

from toolshift.api import attempt, evaluate, evaluate_async
from toolshift.core.errors import UsageError
from toolshift.core.files import hold
from toolshift.runs.suite import Selection
from toolshift.stored_run import read_run


def test_evaluate_takes_every_part_of_a_selection_at_its_default() -> None:
    taken = {name: param.default for name, param in signature(evaluate).parameters.items()}
    wanted = {name: getattr(Selection(), name) for name in Selection.__struct_fields__}
    assert {name: taken[name] for name in wanted} == wanted


def test_one_name_stands_for_a_list_of_one() -> None:
    report = evaluate(
        "oracle", worlds="poi", kinds="visit", shifts="query_typos:1", tasks=2, placebo=False
    )
    assert report.agents[0].everything.episodes == 4


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"worlds": ["medicine"]}, "did you mean medical"),
        ({"without": "perceptions"}, "unknown shift"),
        ({"tasks": "ten"}, "tasks: Expected"),
        ({"workers": 0}, "at least 1"),
        ({"concurrency": -1}, "at least 1"),
        ({"workers": 10**30}, "at most"),
        ({"workers": None}, "workers: Expected `int`"),
        ({"concurrency": b"2"}, "concurrency: Expected `int | null`"),
        ({"agent_timeout": "5"}, "agent_timeout: Expected `float | null`"),
        ({"executor": None}, "executor: Expected `str`"),
        ({"judge": 3}, "judge: Expected `str`"),
        ({"out": 3}, "out: a folder must be a text or a path"),
        ({"seeds": 10**30}, "seeds must be at most"),
        ({"tasks": 10**30}, "tasks must be at most"),
        ({"trials": 10**30}, "trials must be at most"),
        ({"seed": "\ud800"}, "half of a character"),
    ],
)
def test_a_wrong_argument_is_named(asked: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        evaluate("oracle", **asked)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"task": None}, r"task: Expected `str`"),
        ({"task": b"poi/visit"}, r"task: Expected `str`"),
        ({"shifts": 3}, r"shifts: Expected `str`"),
        ({"seed": "0"}, r"seed: Expected `int`"),
        ({"seed": 1.5}, r"seed: Expected `int`"),
        ({"pool": None}, r"pool: Expected `str`"),
        ({"size": None}, r"size: Expected `int`"),
        ({"trial": -1}, r"trial: Expected `int` >= 0"),
        ({"tools": 3}, r"tools: Expected `array`"),
        ({"tools": [b"find_place"]}, r"tools.*: Expected `str`"),
        ({"tools": "find_plac"}, r"find_place"),
    ],
    ids=str,
)
def test_an_argument_of_attempt_of_another_type_is_said(words: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        attempt(**{"agent": "oracle", "task": "poi/visit/0", **words})


# -- a whole selection -----------------------------------------------------------------------------

PARTS = [name for name in Selection.__struct_fields__ if name != "suite"]


def test_a_selection_is_run_as_its_parts_are() -> None:
    parts = {"shifts": ("query_typos:1",), "tasks": 2, "trials": 2, "seed": 3, "placebo": False}
    whole = evaluate("oracle", Selection(**parts))  # type: ignore[arg-type]
    assert whole.to_dict() == evaluate("oracle", **parts).to_dict()  # type: ignore[arg-type]
    assert (whole.trials, whole.seeds) == (2, [3])
    assert evaluate("oracle", suite=Selection(**parts)).to_dict() == whole.to_dict()  # type: ignore[arg-type]


HOW: dict[str, Any] = {
    "first": lambda **beside: evaluate("oracle", Selection(trials=3), **beside),
    "by name": lambda **beside: evaluate("oracle", suite=Selection(trials=3), **beside),
    "awaited": lambda **beside: asyncio.run(evaluate_async("oracle", Selection(), **beside)),
}


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("how", HOW)
def test_parts_beside_a_selection_are_named(name: str, how: str) -> None:
    """At their defaults too: who writes `trials=1` does not want the three of the selection."""
    beside = {name: getattr(Selection(), name)}
    with pytest.raises(UsageError, match=f"together with {name}: put everything"):
        HOW[how](**beside)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ({"tasks": "ten"}, "tasks: Expected"),
        ({"shifts": (3,)}, "shifts"),
        ({"suite": "quik"}, "did you mean quick"),
        ({"suite": None}, "suite: Expected"),
        ({"pool": b"dev"}, "pool: Expected"),
    ],
    ids=str,
)
def test_a_selection_with_a_wrong_part_is_said(made: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        evaluate("oracle", Selection(**made))


def test_one_name_in_a_selection_stands_for_a_list_of_one() -> None:
    chosen: dict[str, Any] = {"worlds": "poi", "kinds": "visit", "shifts": "query_typos:1"}
    report = evaluate("oracle", Selection(**chosen, tasks=2, placebo=False))
    assert report.agents[0].everything.episodes == 4


@pytest.mark.parametrize("suite", [3, None, b"quick", {"suite": "quick"}, ("quick",)], ids=str)
def test_a_suite_of_another_type_is_said(suite: Any) -> None:
    with pytest.raises(UsageError, match="suite: Expected `str`"):
        evaluate("oracle", suite)


# -- awaited ---------------------------------------------------------------------------------------

FEW: dict[str, Any] = {"shifts": ["redirect:2"], "tasks": 2, "placebo": False}


async def hasty(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> str:
    """An agent that waits, and refuses."""
    await asyncio.sleep(0.01)
    return "I cannot do that: there is no such place."


def test_the_async_twin_gives_the_same_report_and_lets_the_loop_go_on(tmp_path: Path) -> None:
    async def main() -> tuple[Any, int]:
        turns = 0

        async def tick() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0.005)

        ticking = asyncio.create_task(tick())
        report = await evaluate_async([hasty, "oracle"], out=tmp_path / "run", **FEW)
        ticking.cancel()
        return report, turns

    report, turns = asyncio.run(main())
    assert turns > 3
    assert report.to_dict() == evaluate([hasty, "oracle"], **FEW).to_dict()
    assert read_run(tmp_path / "run").report.to_dict() == report.to_dict()


def test_errors_reach_the_one_who_waits() -> None:
    async def main() -> None:
        with pytest.raises(UsageError, match="did you mean medical"):
            await evaluate_async("oracle", worlds=["medicine"])
        with pytest.raises(UsageError, match="unknown argument"):
            await evaluate_async("oracle", shfts=["redirect:2"])

    asyncio.run(main())


def test_several_are_awaited_together() -> None:
    async def main() -> list[Any]:
        return await asyncio.gather(*(evaluate_async("oracle", seed=n, **FEW) for n in range(3)))

    reports = asyncio.run(main())
    assert [each.seeds for each in reports] == [[0], [1], [2]]


MANY: dict[str, Any] = {"shifts": ["redirect:2"], "tasks": 200}


@pytest.mark.parametrize("agent", [hasty, "gives_up"], ids=["waits", "scripted"])
@pytest.mark.parametrize("after", [0.0, 0.05, 1.0])
def test_a_cancelled_run_stops_and_lets_go_of_its_folder(
    tmp_path: Path, agent: Any, after: float
) -> None:
    async def main() -> float:
        task = asyncio.create_task(evaluate_async(agent, out=tmp_path / "run", **MANY))
        await asyncio.sleep(after)
        if task.done():  # a fast machine has nothing left to stop
            return 0.0
        task.cancel()
        start = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await task
        return time.monotonic() - start

    assert asyncio.run(main()) < 20
    held = tmp_path / "run" / ".lock"
    if held.exists():  # nobody writes there any more
        with held.open("ab") as file:
            hold(file, held)
    # Scripted agents may have played all scenes by the end of the planning.
    if agent is hasty and (tmp_path / "run" / "manifest.json").exists():
        run = read_run(tmp_path / "run")
        assert len(run.episodes) < run.planned


CTRL_C = """
import asyncio, sys
import toolshift

async def slow(messages, tools):
    print("turn", flush=True)
    await asyncio.sleep(0.2)
    return "I cannot do that."

try:
    asyncio.run(toolshift.evaluate_async(slow, shifts=["redirect:2"], tasks=50, out="run"))
except KeyboardInterrupt:
    print("stopped", len(toolshift.read_run("run").episodes), flush=True)
"""


def test_ctrl_c_stops_an_awaited_run(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CTRL_C], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        for _ in range(3):
            assert running.stdout.readline() == "turn\n"
        running.send_signal(signal.SIGINT)
        said = running.communicate(timeout=60)[0].splitlines()[-1]
    assert running.returncode == 0
    what, episodes = said.split()
    assert what == "stopped"
    assert 0 < int(episodes) < 50

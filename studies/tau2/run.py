"""Domains of tau2-bench as worlds: the same verdicts as its own evaluators, and what is proved.

    python studies/tau2/run.py --domain mock --domain telecom --domain retail
    python studies/tau2/run.py --table

For each task the expected calls, and the same calls spoilt in one known way, are graded twice:
played into an episode of the clean scene, and given to `EnvironmentEvaluator` and `ActionEvaluator`
of tau2-bench as the messages of a conversation. What an agent says is graded by a model there, and
by nobody here.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections import Counter
from copy import deepcopy
from importlib.metadata import version
from pathlib import Path
from typing import Any

from toolshift.core.message import Reply, ToolCall
from toolshift.core.shift import NotApplicable
from toolshift.episode.budget import Budget
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import Episode
from toolshift.episode.grade import grade
from toolshift.episode.oracle import OracleAgent
from toolshift.shifts.registry import apply, shifts
from toolshift.worlds.tau2 import find_tau2, package
from toolshift.worlds.tau2.world import basis_of

HERE = Path(__file__).resolve().parent
Calls = list[tuple[str, dict[str, Any]]]


def spoilt(calls: Calls) -> dict[str, Calls]:
    """The expected calls, and some that are wrong in known ways."""
    other = deepcopy(calls)
    for _, arguments in reversed(other):
        texts = [key for key, value in arguments.items() if isinstance(value, str)]
        if texts:
            arguments[texts[-1]] += "x"
            break
    return {
        "expected calls": calls,
        "the last call left out": calls[:-1],
        "no call": [],
        "another text in the last call that has one": other,
        "the last call made twice": [*calls, *calls[-1:]],
        "backwards": calls[::-1],
        "a tool that is not there": [*calls[:-1], ("no_such_tool", {})],
    }


def ours(scene: Any, calls: Calls) -> bool:
    """Whether an episode passes in which an agent makes these calls."""
    episode = Episode(scene, Budget(calls=1000, turns=1000))
    for name, arguments in calls:
        episode.take(Reply(calls=(ToolCall(name, deepcopy(arguments)),)))
    if not episode.end:
        episode.take(Reply(calls=(ToolCall("final_answer", {"answer": "Done."}),)))
    return grade(episode).passed


def theirs(world: Any, task: Any, calls: Calls) -> bool:
    """What the evaluators of tau2-bench say of these calls."""
    message = package.part("tau2.data_model.message")
    alone = world.domain.tickets
    environment = package.environment(world.domain.name, task, alone)
    said = []
    for place, (name, arguments) in enumerate(calls):
        call = message.ToolCall(
            id=str(place), name=name, arguments=deepcopy(arguments), requestor="assistant"
        )
        said.append(message.AssistantMessage(role="assistant", content=None, tool_calls=[call]))
        said.append(environment.get_response(call))
    build = package.domain(world.domain.name).get_environment
    evaluator = package.part("tau2.evaluator.evaluator_env").EnvironmentEvaluator
    basis = set(basis_of(task))
    passes = True
    if basis & {"DB", "ENV_ASSERTION"}:
        try:
            found = evaluator.calculate_reward(build, task, said, solo_mode=alone)
        except ValueError:  # an assertion about what is not there
            return False
        parts = {each.value: reward for each, reward in found.reward_breakdown.items()}
        passes = all(parts[each] == 1 for each in basis & set(parts))
    if "ACTION" in basis:
        actions = package.part("tau2.evaluator.evaluator_action").ActionEvaluator
        passes = passes and actions.calculate_reward(task, said).reward == 1
    return passes


def compare(world: Any, most: int) -> dict[str, Any]:
    """Both verdicts on each task."""
    table: dict[str, Counter[str]] = {}
    differ = []
    for kind, index in places(world, most):
        scene, task = make_scene(world, kind, index), world.given[kind][index]
        calls = [(each.name, dict(each.arguments)) for each in scene.expected]
        for way, output in spoilt(calls).items():
            mine, own = ours(scene, output), theirs(world, task, output)
            table.setdefault(way, Counter()).update(outputs=1, passes=own, differ=mine != own)
            if mine != own:
                differ.append({"task": task.id, "way": way, "ours": mine, "tau2-bench": own})
    return {"by way": {way: dict(row) for way, row in table.items()}, "differ": differ}


def places(world: Any, most: int) -> list[tuple[str, int]]:
    """Tasks of a world, spread over its kinds."""
    every = [(kind, n) for kind, count in world.counts.items() for n in range(count)]
    step = max(1, len(every) // most) if most else 1
    return every[::step][: most or None]


def proved(world: Any, most: int) -> dict[str, dict[str, int]]:
    """For each shift at severity 2, on how many tasks it applies, and the oracle passes."""
    found: dict[str, Counter[str]] = {}
    for name in ("clean", *shifts()):
        for kind, index in places(world, 0 if name == "clean" else most):
            scene = make_scene(world, kind, index)
            try:
                scene = scene if name == "clean" else apply(scene, name, 2)
            except NotApplicable:
                continue
            episode = Episode(scene, live=False)
            OracleAgent().play(episode)
            verdict = grade(episode)
            right = verdict.passed and (scene.solvable or verdict.right_reason)
            found.setdefault(name, Counter()).update(applies=1, proved=int(right))
    return {name: dict(row) for name, row in found.items()}


def main() -> None:
    """Runs the study, or prints what it has found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--domain", action="append", default=[])
    parser.add_argument("--tasks", type=int, default=20, help="tasks of each domain")
    parser.add_argument("--shifted", type=int, default=3, help="tasks of each domain under shifts")
    parser.add_argument("--out", type=Path, default=HERE / "results.json")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    results = json.loads(options.out.read_text()) if options.out.exists() else {}
    for name in () if options.table else options.domain:
        start = time.monotonic()
        world = find_tau2(f"tau2:{name}")
        results[name] = {
            "tasks": dict(world.counts),
            "left out": dict(Counter(world.left_out.values())),
            "verdicts": compare(world, options.tasks),
            "shifts": proved(world, options.shifted),
        }
        results["about"] = {
            "python": platform.python_version(),
            "machine": platform.machine(),
            "tau2": version("tau2"),
            **results.get("about", {}),
            f"seconds, {name}": round(time.monotonic() - start),
        }
        options.out.write_text(json.dumps(results, indent=1) + "\n")
    for name, found in results.items():
        if name == "about":
            continue
        print(f"\n{name}: {found['tasks']}, left out {found['left out']}")
        for way, row in found["verdicts"]["by way"].items():
            print(f"  {way:45} {row['outputs']:5} {row['passes']:5} {row['differ']:5}")
        for shift, row in found["shifts"].items():
            print(f"  {shift:45} {row['applies']:5} {row['proved']:5}")


if __name__ == "__main__":
    main()

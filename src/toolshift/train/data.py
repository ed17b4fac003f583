"""Expert trajectories as training data: the oracle in clean and shifted scenes.

Rows are as `toolshift.train.rows` describes them. Context only is a call that a perturbation made
fail, or a turn that belongs to an earlier row: where the tools change in mid-episode, each list of
tools gives a row of its own, for a model sees one list at a time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from functools import partial
from random import Random
from typing import Any

from toolshift.core import seed as seeds
from toolshift.core.errors import UsageError
from toolshift.core.message import protocol_tools
from toolshift.core.scene import Scene
from toolshift.core.shift import without_versions
from toolshift.core.solver import Known, Solver
from toolshift.core.step import Step
from toolshift.core.tool import JSON, Result, Tool, as_openai
from toolshift.episode.episode import Episode, messages
from toolshift.episode.grade import grade
from toolshift.episode.oracle import EpisodeBackend, OracleAgent
from toolshift.runs.cell import write_stack
from toolshift.runs.pool import Executor, in_pool
from toolshift.train.injected_errors import Slip
from toolshift.train.rows import Row
from toolshift.train.scenes import Mix, check, draw

COUNT = 6050
"""Trajectories in a training set where none is asked for: the paper's number."""


Watch = Callable[[int, int], None]


def make_rows(
    mix: Mix,
    count: int,
    watch: Watch | None = None,
    begin: int = 0,
    workers: int = 1,
    executor: Executor = "process",
) -> list[Row]:
    """The rows of `count` trajectories drawn from a mix.

    Args:
        mix: which scenes are drawn.
        count: how many trajectories; one may make several rows.
        watch: told how many are made, and of how many.
        begin: the number of the first one in the mix.
        workers: processes; the rows are the same.
        executor: where they are: on this machine, or on a cluster of Ray.

    Returns:
        In the order of the mix; the rows of one trajectory stand together.

    Raises:
        UsageError: for a mix that cannot be drawn from.
    """
    if count < 1:
        raise UsageError(f"the number of trajectories must be at least 1, not {count}")
    check(mix)
    numbers = range(begin, begin + count)
    made: Iterable[list[list[Row]]]
    if workers <= 1 and executor == "process":
        made = (_rows_of(mix, [number]) for number in numbers)
    else:
        made = in_pool(partial(_rows_of, mix), numbers, workers, executor)
    rows: list[Row] = []
    done = 0
    for some in made:
        for trajectory in some:
            rows.extend(trajectory)
        done += len(some)
        if watch is not None:
            watch(done, count)
    return rows


def _rows_of(mix: Mix, numbers: list[int]) -> list[list[Row]]:
    """The rows of each of these trajectories of a mix."""
    return [expert_rows(draw(mix, number), mix.slips) for number in numbers]


def shifted_of(rows: Iterable[Row]) -> int:
    """How many trajectories are shifted; one may make several rows."""
    return len({row["lineage"] for row in rows if row["shifts"]})


def expert_rows(scene: Scene, slips: float = 0.0) -> list[Row]:
    """What the oracle does in a scene, as one row for each list of tools that it sees."""
    episode, slip = _Recorded(scene), Slip(scene, slips)
    rng = seeds.rng(scene.task.id, without_versions(write_stack(scene.shifts)), "expert")
    VariedOracle(rng, slip).play(episode)
    if not grade(episode).passed:
        raise UsageError(
            f"the oracle fails in {scene.task.lineage} under [{write_stack(scene.shifts)}], so "
            "there is no example to learn from: `toolshift check` says what is wrong with a shift"
        )
    spoken = messages(scene, episode.steps)
    return rows_of(scene, spoken, episode.steps, episode.views, slip.turns)


def rows_of(
    scene: Scene,
    spoken: list[dict[str, Any]],
    steps: list[Step],
    views: list[tuple[Tool, ...]],
    context: set[int],
) -> list[Row]:
    """An episode as one row for each list of tools that it showed."""
    spoken = _weighed(spoken, steps, context)
    return [_row(scene, spoken, views, part) for part in _parts(views, spoken)]


class VariedOracle(OracleAgent):
    """An oracle whose order and wording vary where the task leaves them open."""

    def __init__(self, rng: Random, slip: Slip) -> None:
        self.rng = rng
        self.slip = slip

    def work(self, episode: Episode, backend: EpisodeBackend) -> None:
        """Works on one request with a solver of its own variety."""
        rng = self.rng

        class Varied(Solver):
            def records(self, fact: str, env: Known) -> list[Known]:
                records = super().records(fact, env)
                return rng.sample(records, len(records))

        self.solver = Varied
        super().work(episode, _VariedBackend(episode, backend, rng, self.slip))


class _VariedBackend(EpisodeBackend):
    """Asks in one of several wordings, all of which name the detail by its label; may slip."""

    wordings = (
        "What is the {}?",
        "Could you tell me the {}?",
        "Please give me the {}.",
        "I need the {}: what is it?",
        "Which {} do you mean?",
    )

    def __init__(self, episode: Episode, backend: EpisodeBackend, rng: Random, slip: Slip) -> None:
        super().__init__(episode, backend.strict)
        self.rng = rng
        self.slip = slip

    def call(self, name: str, arguments: dict[str, Any]) -> tuple[str, Result]:
        self.slip.before(self.episode, name, arguments)
        return super().call(name, arguments)

    def ask(self, slot: str, question: str) -> str:
        label = question.removeprefix("What is the ").removesuffix("?")
        return super().ask(slot, self.rng.choice(self.wordings).format(label))


class _Recorded(Episode):
    """An episode that remembers which tools were on offer at each turn."""

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self.views: list[tuple[Tool, ...]] = [self.tools]

    def next_turn(self) -> None:
        super().next_turn()
        self.views.append(self.tools)


def _weighed(
    spoken: list[dict[str, Any]], steps: list[Step], slips: set[int]
) -> list[dict[str, Any]]:
    """The messages, those calls weighed 0 that the interface made fail, and slips."""
    by_turn = {step.turn: step for step in steps}
    turn = 0
    for message in spoken:
        if message["role"] == "assistant":
            failed = by_turn[turn].provoked and not by_turn[turn].ok
            if failed or turn in slips:
                message["weight"] = 0
            turn += 1
    return spoken


def _parts(views: list[tuple[Tool, ...]], spoken: list[dict[str, Any]]) -> list[range]:
    """The turns of an episode, apart wherever the tools on offer change."""
    turns = sum(message["role"] == "assistant" for message in spoken)
    cuts = [turn for turn in range(1, turns) if views[turn] != views[turn - 1]]
    return [range(a, b) for a, b in zip([0, *cuts], [*cuts, turns], strict=True)]


def _row(
    scene: Scene, spoken: list[dict[str, Any]], views: list[tuple[Tool, ...]], part: range
) -> Row:
    """The row that teaches the turns of one part; what was said before is context."""
    kept: list[dict[str, Any]] = []
    turn = -1
    for message in spoken:
        if message["role"] == "assistant":
            turn += 1
            if turn == part.stop:
                break
            kept.append(message if turn in part else {**message, "weight": 0})
        else:
            kept.append(message)
    tools = [*map(as_openai, views[part.start]), *protocol_tools()]
    content = hashlib.sha256(JSON.encode([kept, tools])).hexdigest()[:16]
    task = scene.task
    return Row(
        id=content,
        world=task.world,
        kind=task.kind,
        lineage=task.lineage,
        shifts=[write_stack((applied,)) for applied in scene.shifts],
        solvable=scene.solvable,
        messages=kept,
        tools=tools,
    )

"""The tasks that Inspect finds: the suites, and a selection of the caller's."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import msgspec
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample

from toolshift.connect.inspect.episodes import chat_messages, forget, losses_of, scene_of
from toolshift.connect.inspect.scoring import graded
from toolshift.connect.inspect.solvers import converse
from toolshift.core.text import is_count
from toolshift.core.tool import JSON
from toolshift.episode.episode import Episode
from toolshift.measure.metrics import dimension_of, tier_of
from toolshift.runs.cell import Cell
from toolshift.runs.plan import is_placebo, make_plan
from toolshift.runs.suite import Selection, select

_log = logging.getLogger(__name__)


@task  # type: ignore[untyped-decorator]
def quick(seed: int = 0, trials: int = 1) -> Task:
    """The suite quick: 20 tasks of poi, 11 shifts over the four tiers."""
    return _task(Selection.of(suite="quick", seed=seed, trials=trials))


@task  # type: ignore[untyped-decorator]
def standard(seed: int = 0, trials: int = 1) -> Task:
    """The suite standard: 16 tasks of each world, its shifts at each of their severities."""
    return _task(Selection.of(suite="standard", seed=seed, trials=trials))


@task  # type: ignore[untyped-decorator]
def paper(seed: int = 0, trials: int = 1) -> Task:
    """The suite paper: 220 tasks of poi, each under one shift of each tier."""
    return _task(Selection.of(suite="paper", seed=seed, trials=trials))


@task  # type: ignore[untyped-decorator]
def shifted(
    shifts: str = "all",
    worlds: str = "",
    kinds: str = "",
    tasks: int = 0,
    seed: int = 0,
    trials: int = 1,
    suite: str = "quick",
    placebo: bool = True,
    without: str = "",
    severities: str = "",
    seeds: int = 1,
    pool: str = "dev",
    size: int = 200,
    max_repeats: int = 0,
    under: str = "",
) -> Task:
    """Shifts of your choice: `-T shifts="identity_erasure:2,merged_tools:2"`."""
    return _task(
        Selection.of(
            suite=suite,
            worlds=_words(worlds),
            kinds=_words(kinds),
            shifts=_words(shifts),
            without=_words(without),
            severities=tuple(map(_number, _words(severities))),
            tasks=tasks or None,
            trials=trials,
            seed=seed,
            seeds=seeds,
            pool=pool,
            size=size,
            placebo=placebo,
            max_repeats=max_repeats,
            under=under,
        )
    )


def _words(text: Any) -> tuple[str, ...]:
    """What stands between commas; Inspect's command line makes a list of it by itself."""
    parts = text if isinstance(text, list | tuple) else str(text).split(",")
    return tuple(str(part).strip() for part in parts if str(part).strip())


def _number(text: str) -> int | str:
    """A number where it is one; anything else is left for `Selection` to say."""
    return int(text) if is_count(text) else text


def _task(asked: Selection) -> Task:
    plan = make_plan(select(asked))
    name = f"toolshift {asked.suite}"
    cells = by_task(plan.cells)
    dataset = MemoryDataset([sample_of(cell, asked.max_repeats) for cell in cells], name=name)
    _report_losses(dataset)
    return Task(
        dataset=dataset,
        solver=converse(),
        scorer=graded(),
        cleanup=forget,
        metadata={"plan": plan.hash, "shifts": plan.versions, "skipped": len(plan.skipped)},
    )


def by_task(cells: Iterable[Cell]) -> list[Cell]:
    """The cells of one task beside each other, so that the first samples are of all arms."""
    tasks: dict[str, list[Cell]] = {}
    for cell in cells:
        tasks.setdefault(cell.lineage, []).append(cell)
    return [cell for arms in tasks.values() for cell in arms]


def sample_of(cell: Cell, max_repeats: int = 0) -> Sample:
    """A cell as a sample: its first messages, what is right, and what groups it."""
    data: dict[str, Any] = msgspec.json.decode(JSON.encode(cell))
    scene = scene_of({"cell": data})
    first = Episode(scene).observation
    answers = [str(ask.expected) for ask in scene.asks if ask.expected is not None]
    tier = tier_of(cell)
    return Sample(
        id=cell.id,
        input=chat_messages(first.messages),
        target=answers if scene.solvable else f"refuse: {scene.outcome.refusal}",
        metadata={
            "cell": data,
            "max_repeats": max_repeats,
            "lineage": cell.lineage,
            "arm": "placebo" if is_placebo(cell) else tier if cell.shifts else "clean",
            "dimension": dimension_of(cell),
            "shifts": cell.stack,
            "schema_losses": losses_of(first.tools),
        },
    )


def _report_losses(samples: Iterable[Sample]) -> None:
    lost = sorted({loss for sample in samples for loss in (sample.metadata or {})["schema_losses"]})
    if lost:
        _log.warning("Inspect's schemas cannot say: %s", "; ".join(lost))

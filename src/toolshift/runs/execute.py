"""A run from its specification: planned, played, stored.

    spec = RunSpec(selection, contestants(["oracle"]), Path("runs/first"))
    finished = execute(spec)

A `RunSpec` is made once, where a run is asked for, and handed down once. Where all agents are
scripted they play the scenes while the plan is made (`runs.prefetch`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from os import PathLike
from pathlib import Path
from typing import Any, get_args

import msgspec

from toolshift.agents.answer_cache import Exchanges, OwnReplies, lent, recalling
from toolshift.agents.catalog import describe
from toolshift.agents.contestant import Contestant
from toolshift.agents.cost import CostLimit
from toolshift.agents.judge import Judge
from toolshift.agents.own_code import keeping_folder, noting_interrupts
from toolshift.core.errors import BudgetSpent, Resumable, UsageError
from toolshift.core.names import unknown
from toolshift.core.terminal import Progress
from toolshift.core.tool import JSON
from toolshift.episode.contract import Agent, BatchAgent, Hiding, OutsideAgent, ScriptedAgent
from toolshift.runs.design import FIXED, Design
from toolshift.runs.location import check_local
from toolshift.runs.plan import Plan, make_plan
from toolshift.runs.pool import Executor
from toolshift.runs.prefetch import Prefetch
from toolshift.runs.provenance import manifest, own_version
from toolshift.runs.run_folder import BATCHES, VERDICTS, InMemoryStore, Record, RunFolder
from toolshift.runs.sequential import Claims, Course, Outcome, outcome_of
from toolshift.runs.spans import emitter, flush
from toolshift.runs.study import Store, Watch, episode_id, run_cells
from toolshift.runs.suite import ResolvedSelection
from toolshift.worlds.registry import find_world

MAX_WORKERS = 2**16


def check_at_once(workers: int, concurrency: int | None) -> None:
    """Checks the number of episodes to run at once; None is the agent's own number."""
    if workers > MAX_WORKERS:
        raise UsageError(f"workers must be at most {MAX_WORKERS}, not {workers}")
    if workers < 1 or (concurrency is not None and concurrency < 1):
        raise UsageError("workers and concurrency must be at least 1")


@dataclass(frozen=True, eq=False)
class RunSpec:
    """What is run, by whom and where; checked when it is made.

    Attributes:
        what: a selection, which is planned first, or a plan.
        agents: who plays.
        folder: run folder, by its whole path; resumes if it holds part of this run. None keeps
            episodes in memory.
        workers: processes for scripted agents.
        executor: where these are: "process" for this machine, "ray" for a cluster.
        judge: reads endings in prose; the shipped reading where None.
        exchanges: where answers of models are stored, so that no request is sent twice.
        claims: what is to be decided, for the sequential design; None plays the whole plan.

    Raises:
        UsageError: where the folder is none, or an agent cannot run where it is asked to.
    """

    what: ResolvedSelection | Plan
    agents: Sequence[Contestant]
    folder: Path | None = None
    workers: int = 1
    executor: Executor = "process"
    judge: Judge | None = None
    exchanges: Exchanges = field(default_factory=Exchanges)
    claims: Claims | None = None
    about: list[dict[str, Any]] = field(init=False)

    def __post_init__(self) -> None:
        folder = None if self.folder is None else whole_path(self.folder)
        _check_executor(self.executor, self.agents, self.judge)
        if self.judge is not None and folder is not None:
            self.judge.remember(folder / VERDICTS)
        limit = self.selection.max_repeats
        agents = [
            replace(contestant, judge=self.judge or contestant.judge, max_repeats=limit)
            for contestant in self.agents
        ]
        made: dict[str, Any] = {
            "folder": folder,
            "agents": agents,
            "about": [describe(contestant) for contestant in agents],
        }
        if (
            self.exchanges.folder
            and not self.exchanges.own
            and not any(map(recalling, _of(agents)))
        ):
            raise UsageError(
                "--cache works only with models behind an endpoint, and no agent here is one: "
                "leave it out, or add --cache-own for your own functions"
            )
        if self.exchanges.own:
            made["agents"] = _with_stored_replies(agents, made["about"])
        for name, value in made.items():
            object.__setattr__(self, name, value)

    @property
    def design(self) -> Design:
        """Which episodes are played, as the manifest has it."""
        if self.claims is None:
            return FIXED
        listed = all(find_world(world).counts for world in self.selection.worlds)
        same_again = [c.name for c in self.agents if isinstance(c.agent, ScriptedAgent)]
        return msgspec.structs.replace(
            self.claims.design, listed=tuple(same_again) if listed else ()
        )

    @property
    def selection(self) -> ResolvedSelection:
        """What is selected, planned or not."""
        return self.what.selection if isinstance(self.what, Plan) else self.what


@dataclass(frozen=True)
class Finished:
    """A run that has been executed: its plan, and the store of all its episodes."""

    spec: RunSpec
    plan: Plan
    store: Store


def execute(spec: RunSpec, watch: Progress = lambda done, total: None) -> Finished:
    """Plans a run, plays what its folder does not hold yet, and stores it.

    Whatever ends it, finished episodes are kept; after `BudgetSpent` it can be resumed.
    """
    with planning(spec) as (plan, prefetch):
        return play_plan(spec, plan, prefetch, watch)


@contextmanager
def planning(
    spec: RunSpec, watch: Callable[[int], None] = lambda cells: None
) -> Iterator[tuple[Plan, Prefetch | None]]:
    """Plans a run; where the agents allow it, they play its scenes meanwhile.

    Yields the plan, and what has been played, both for `play_plan`.
    """
    if isinstance(spec.what, Plan):
        yield spec.what, None
        return
    if (
        spec.judge is not None
        or spec.claims is not None
        or not Prefetch.fits(spec.agents, spec.workers, spec.folder, spec.executor)
    ):
        yield make_plan(spec.what, watch), None
        return
    mark = JSON.encode([spec.what, spec.about, own_version()])
    run = blake2b(mark, digest_size=8).hexdigest()
    with closing(
        Prefetch(run, spec.what, spec.agents, spec.workers, spec.folder, spec.executor)
    ) as prefetch:
        try:
            with noting_interrupts(), keeping_folder():
                plan = make_plan(spec.what, watch, prefetch.look)
        except Resumable as lost:
            raise Resumable(str(lost), kept=spec.folder is not None) from None
        except Exception:
            prefetch.discard()
            raise
        yield plan, prefetch


def play_plan(
    spec: RunSpec,
    plan: Plan,
    prefetch: Prefetch | None = None,
    watch: Progress = lambda done, total: None,
) -> Finished:
    """Plays a plan, or the rest of it; `prefetch` was played while the plan was made.

    Whatever ends it, finished episodes are kept; after `BudgetSpent` it can be resumed.
    """
    store = _store(spec, plan)
    store.told = emitter(plan.cells)
    if prefetch is not None:
        prefetch.flush_into(plan, store)
    order = [episode_id(contestant.name, cell) for contestant in spec.agents for cell in plan.cells]
    done = len(store.done)

    def count(episodes: int) -> None:
        nonlocal done
        done += episodes
        watch(done, len(order))

    _take_up_batches(spec)
    try:
        watch(done, len(order))
        with lent(spec.exchanges, _of(spec.agents)):
            if spec.claims is None:
                run_cells(plan.cells, spec.agents, store, spec.workers, count, spec.executor)
            else:
                _play_until_decided(spec, spec.claims, plan, store, count)
        if isinstance(store, RunFolder):
            store.settle(order)
    except BudgetSpent:  # to be resumed with more money
        raise
    except Resumable as lost:
        raise Resumable(str(lost), kept=spec.folder is not None) from None
    except UsageError:
        if isinstance(store, RunFolder):
            store.discard()
        raise
    finally:
        if isinstance(store, RunFolder):
            store.close()
        flush()
    return Finished(spec, plan, store)


def _play_until_decided(
    spec: RunSpec, claims: Claims, plan: Plan, store: Store, count: Watch
) -> None:
    """Plays round by round; what is stored already is read in its place, and not played again."""
    known: dict[str, dict[str, Outcome]] = {contestant.name: {} for contestant in spec.agents}

    def note(records: Iterable[Record], _seconds: object = None) -> None:
        for record in records:
            known[record.agent][record.cell] = outcome_of(record)

    def tell(records: Sequence[Record], seconds: Sequence[float], first: Any = store.told) -> None:
        note(records)
        if first is not None:
            first(records, seconds)

    note(store.records())
    store.told = tell
    families = claims.families(plan)
    for contestant in spec.agents:
        mine = known[contestant.name]
        listed = contestant.name in spec.design.listed
        course = Course(claims, families, mine, listed, 1 / len(spec.agents))
        for part in course.rounds():
            begun = bool(mine)
            run_cells(part, [contestant], store, spec.workers, count, spec.executor, not begun)


def _take_up_batches(spec: RunSpec) -> None:
    """Has agents that send batches go on with those of an earlier process."""
    for agent in _of(spec.agents):
        batches = getattr(agent, "batches", None)
        if batches is not None and spec.folder is not None:
            batches.remember(spec.folder / BATCHES)


def _of(agents: Sequence[Contestant]) -> list[object]:
    """What is asked in the episodes."""
    return [each.stored or each.agent for each in agents]


def _with_stored_replies(
    agents: Sequence[Contestant], about: Sequence[dict[str, Any]]
) -> list[Contestant]:
    """The user's own agents with stored replies, where they answer one turn at a time."""
    found = [
        replace(each, stored=OwnReplies(each.agent, said))
        if isinstance(each.agent, Agent)
        and not isinstance(each.agent, ScriptedAgent | OutsideAgent | BatchAgent)
        and recalling(each.agent) is None
        else each
        for each, said in zip(agents, about, strict=True)
    ]
    if all(each.stored is None for each in found):
        raise UsageError(
            "--cache-own works only with your own functions and objects that answer turn by "
            "turn, and no agent here is one: leave it out"
        )
    return found


def _store(spec: RunSpec, plan: Plan) -> Store:
    """Where the episodes go: the run folder, begun or resumed, or memory."""
    if spec.folder is None:
        return InMemoryStore()
    folder = RunFolder.start(spec.folder, manifest(plan, spec.about, spec.design), plan)
    _take_up_spending(spec.agents, folder)
    for contestant in spec.agents:  # no agent that can be kept from it looks into the folder
        if isinstance(contestant.agent, Hiding):
            contestant.agent.hide(spec.folder)
    return folder


def _take_up_spending(agents: Sequence[Contestant], folder: RunFolder) -> None:
    """The cost limit covers the whole run, resumes included."""
    names: dict[CostLimit, list[str]] = {}
    for contestant in agents:
        cost_limit = getattr(contestant.agent, "cost_limit", None)
        if isinstance(cost_limit, CostLimit):
            names.setdefault(cost_limit, []).append(contestant.name)
    for cost_limit, sharing in names.items():
        of = ", ".join(sharing)
        cost_limit.take_up(folder.spent(of), partial(folder.keep_spent, of))


def whole_path(out: str | Path, what: str = "out") -> Path:
    """The absolute path of a run folder, since an agent may change the directory."""
    if not isinstance(out, str | PathLike):
        kind = type(out).__name__
        raise UsageError(f"{what}: a folder must be a text or a path, not {kind}")
    check_local(str(out), what)
    return Path(out).absolute()


def _check_executor(executor: Executor, agents: Sequence[Contestant], judge: Judge | None) -> None:
    """Raises `UsageError` where an agent cannot be made again where it is asked to run."""
    if executor not in get_args(Executor):
        raise UsageError(unknown("executor", executor, get_args(Executor)))
    if executor == "process":
        return
    here = [c.name for c in agents if not (c.spec and isinstance(c.agent, ScriptedAgent))]
    if here or judge is not None:
        what = ", ".join(here) if here else "a judge"
        raise UsageError(
            f"executor {executor}: {what} cannot run on another machine; only scripted agents "
            "that are named by a spec can. Use --concurrency here, or run parts separately "
            "(docs/large.md)"
        )

"""A whole run: plan, agents, episodes, report; in Python and behind the command line."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from inspect import signature
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, get_args

import msgspec

from toolshift.agents.catalog import check_settings, contestants, describe
from toolshift.agents.contestant import Contestant
from toolshift.agents.cost import CostLimit
from toolshift.agents.judge import Judge
from toolshift.agents.kind import AgentLike
from toolshift.agents.own_code import keeping_folder, noting_interrupts
from toolshift.core.errors import BudgetSpent, UsageError
from toolshift.core.names import unknown
from toolshift.core.terminal import Progress
from toolshift.core.tool import JSON
from toolshift.episode.contract import Hiding, ScriptedAgent
from toolshift.episode.grade import Grade
from toolshift.episode.with_tools import with_tools
from toolshift.measure.report import Report, make_report
from toolshift.report.terminal import as_text
from toolshift.runs.ahead import Ahead
from toolshift.runs.cell import build
from toolshift.runs.location import check_local
from toolshift.runs.plan import Plan, make_plan
from toolshift.runs.pool import Executor
from toolshift.runs.run_folder import FORMAT, VERDICTS, InMemoryStore, Manifest, RunFolder
from toolshift.runs.spans import emitter, flush
from toolshift.runs.study import episode_id, play, run_cells
from toolshift.runs.suite import (
    ResolvedSelection,
    Selection,
    as_struct,
    read_task,
    select,
    whole,
)
from toolshift.runs.used_plugins import used_plugins
from toolshift.worlds.registry import find_world

MAX_WORKERS = 2**16
PACKAGES = ("msgspec", "jsonschema-rs", "numpy", "scipy", "torch", "transformers", "peft")


class Evaluation(Report, frozen=True):
    """The report of a run: `summary` is its text, `to_dict` its data."""

    def summary(self, width: int = 100, only_distinguishable: bool = False) -> str:
        """The report as text, as the terminal shows it.

        Args:
            width: characters a line.
            only_distinguishable: leaves out what is not significant.

        Returns:
            Several lines, without codes for colour.
        """
        return as_text(self, width, only_distinguishable)


def _shown(report: Report) -> Evaluation:
    return Evaluation(**{name: getattr(report, name) for name in report.__struct_fields__})


def evaluate(
    agent: AgentLike | Sequence[AgentLike],
    suite: str = "quick",
    *,
    worlds: Sequence[str] = (),
    kinds: Sequence[str] = (),
    shifts: Sequence[str] = (),
    without: Sequence[str] = (),
    severities: Sequence[int] = (),
    tasks: int | None = None,
    trials: int = 1,
    seed: int = 0,
    seeds: int = 1,
    pool: str = "dev",
    size: int = 200,
    placebo: bool = True,
    max_repeats: int = 0,
    out: str | Path | None = None,
    workers: int = 1,
    executor: Executor = "process",
    concurrency: int | None = None,
    agent_timeout: float | None = None,
    judge: str = "",
    **options: Any,
) -> Evaluation:
    """Measures what happens to an agent when the world moves.

        report = toolshift.evaluate(my_function, suite="quick")
        print(report.summary())
        report.drop("perception")

    Args:
        agent: a function of (messages, tools) that returns a string or an OpenAI assistant
            message; an object with `name` and `reply(turn)`; a spec such as "chat:gpt-4.1-mini"
            (`toolshift.agents.catalog`); or a list of these.
        suite: "quick", "standard" or "paper".
        worlds: worlds instead of the suite's.
        kinds: only these task kinds.
        shifts: shifts instead of the suite's: names, tiers, `a:3` with a severity, `a+b` composed.
        without: shifts, or whole tiers, to hold out.
        severities: 1 to 3, for shifts that name none.
        tasks: tasks of each world and seed; the suite's where None.
        trials: how often each scene is run.
        seed: the first seed; `seeds` says how many.
        seeds: how many seeds.
        pool: "train", "dev" or "test".
        size: entities in each world.
        placebo: whether a placebo arm is run, the noise floor of every contrast.
        max_repeats: an episode ends where the same call has had the same result this often; 0 for
            no such limit.
        out: a run folder, which makes the run resumable; None keeps everything in memory.
        workers: processes for scripted agents.
        executor: where these are: "process" for this machine, "ray" for a cluster of Ray, where
            1 worker stands for as many as it has CPUs.
        concurrency: episodes at once, for agents that answer turns.
        agent_timeout: seconds that an agent of your own has for one turn, in a process of its own,
            which is ended where it takes longer; None leaves it in this process without a limit.
        judge: a model that reads endings in prose, `chat:MODEL`; the shipped reading where "".
        options: for `chat:` agents, the arguments of `ChatAgent`.

    Returns:
        The report, which knows where the run is kept.

    Raises:
        UsageError: for anything unknown or out of range, and where the agent cannot work at all.
    """
    selection = Selection.of(
        suite=suite,
        worlds=worlds,
        kinds=kinds,
        shifts=shifts,
        without=without,
        severities=severities,
        tasks=tasks,
        trials=trials,
        seed=seed,
        seeds=seeds,
        pool=pool,
        size=size,
        placebo=placebo,
        max_repeats=max_repeats,
    )
    given = {"workers": whole(workers), "concurrency": whole(concurrency), "executor": executor}
    as_struct({**given, "agent_timeout": agent_timeout, "judge": judge or ""}, _HowToRun)
    check_at_once(workers, concurrency)
    agents: Sequence[Any] = agent if isinstance(agent, list | tuple) else [agent]
    check_settings(agents, options, signature(evaluate).parameters)
    those = contestants(agents, concurrency, agent_timeout=agent_timeout, **options)
    reader = Judge(judge) if judge else None
    return plan_and_run(select(selection), those, out, workers, judge=reader, executor=executor)


def check_at_once(workers: int, concurrency: int | None) -> None:
    """Checks how much is asked to be run at once.

    Args:
        workers: processes.
        concurrency: episodes at once; None for the agent's own number.

    Raises:
        UsageError: where that is nothing, or more than any machine has.
    """
    if workers > MAX_WORKERS:
        raise UsageError(f"workers must be at most {MAX_WORKERS}, not {workers}")
    if workers < 1 or (concurrency is not None and concurrency < 1):
        raise UsageError("workers and concurrency must be at least 1")


def check_executor(executor: Executor, those: Sequence[Contestant], judge: object = None) -> None:
    """Checks that agents can run where they are asked to.

    Args:
        executor: "process" or "ray".
        those: the agents.
        judge: of their prose; None for none.

    Raises:
        UsageError: where one cannot be made again on another machine.
    """
    if executor not in get_args(Executor):
        raise UsageError(unknown("executor", executor, get_args(Executor)))
    if executor == "process":
        return
    here = [c.name for c in those if not (c.spec and isinstance(c.agent, ScriptedAgent))]
    if here or judge is not None:
        what = f"{', '.join(here)} cannot" if here else "a judge cannot"
        raise UsageError(
            f"executor {executor}: {what} be made again on another machine, for it is no scripted "
            "agent with a spec. Run it with --concurrency here, or several runs of a part each "
            "(docs/large.md)"
        )


def plan_and_run(
    selection: ResolvedSelection,
    those: list[Contestant],
    out: str | Path | None = None,
    workers: int = 1,
    progress: Progress = lambda done, total: None,
    judge: Judge | None = None,
    executor: Executor = "process",
) -> Evaluation:
    """Plans and runs a selection; scripted agents play its scenes while it is planned.

    Args:
        selection: worlds, kinds, arms and counts.
        those: the agents.
        out: as of `run_plan`.
        workers: as of `run_plan`.
        progress: as of `run_plan`.
        judge: as of `run_plan`.
        executor: as of `run_plan`.

    Returns:
        The report, as of `run_plan`.

    Raises:
        UsageError: where nothing is left to run, or an agent or the folder cannot work.
    """
    with planning(selection, those, out, workers, judge=judge, executor=executor) as found:
        plan, ahead = found
        return run_plan(plan, those, out, workers, progress, judge, ahead, executor)


@contextmanager
def planning(
    selection: ResolvedSelection,
    those: list[Contestant],
    out: str | Path | None = None,
    workers: int = 1,
    watch: Callable[[int], None] = lambda done: None,
    judge: Judge | None = None,
    executor: Executor = "process",
) -> Iterator[tuple[Plan, Ahead | None]]:
    """Plans a selection; where the agents allow it, they play its scenes meanwhile.

    Args:
        selection: worlds, kinds, arms and counts.
        those: the agents.
        out: a run folder; None for none.
        workers: processes for scripted agents.
        watch: told how many cells have been looked at.
        judge: as of `run_plan`.
        executor: as of `run_plan`.

    Yields:
        The plan, and what has been played, for `run_plan`.

    Raises:
        UsageError: where nothing is left to run, or an agent or the folder cannot work.
    """
    folder = None if out is None else _folder(out)
    check_executor(executor, those, judge)
    if judge is not None or not Ahead.fits(those, workers, folder, executor):
        yield make_plan(selection, watch), None
        return
    mark = JSON.encode([selection, [describe(each) for each in those], own_version()])
    run = blake2b(mark, digest_size=8).hexdigest()
    with closing(Ahead(run, selection, those, workers, folder, executor)) as ahead:
        try:
            with noting_interrupts(), keeping_folder():
                plan = make_plan(selection, watch, ahead.look)
        except Exception:
            ahead.discard()
            raise
        yield plan, ahead


def run_plan(
    plan: Plan,
    those: list[Contestant],
    out: str | Path | None = None,
    workers: int = 1,
    progress: Progress = lambda done, total: None,
    judge: Judge | None = None,
    ahead: Ahead | None = None,
    executor: Executor = "process",
) -> Evaluation:
    """Runs a plan, or what is left of it, and reports.

    Args:
        plan: the cells.
        those: the agents.
        out: a run folder, which is gone on with where it holds a part of this plan; None for none.
        workers: processes for scripted agents.
        progress: told how many episodes are done, and of how many.
        judge: reads endings in prose; the shipped reading where None.
        ahead: episodes that have been played while the plan was made.
        executor: where the workers are: "process" for this machine, "ray" for a cluster.

    Returns:
        The report of all episodes of the plan, those of earlier runs included.

    Raises:
        UsageError: where an agent or the folder cannot work; finished episodes are kept.
    """
    out = _folder(out) if out is not None else None
    check_executor(executor, those, judge)
    those = _with_judge(those, judge, out)
    those = [replace(each, max_repeats=plan.selection.max_repeats) for each in those]
    about = [describe(each) for each in those]
    store: RunFolder | InMemoryStore = InMemoryStore()
    if out is not None:
        store = RunFolder.start(out, manifest(plan, about), plan)
        _take_up_spending(those, store)
        _hide(those, out)
    store.told = emitter(plan.cells)
    if ahead is not None:
        ahead.hand_over(plan, store)
    order = [episode_id(each.name, cell) for each in those for cell in plan.cells]
    done = len(store.done)
    progress(done, len(order))

    def watch(episodes: int) -> None:
        nonlocal done
        done += episodes
        progress(done, len(order))

    try:
        run_cells(plan.cells, those, store, workers, watch, executor)
        if isinstance(store, RunFolder):
            store.settle(order)
    except BudgetSpent:  # to be resumed with more money
        raise
    except UsageError:
        if isinstance(store, RunFolder):
            store.discard()
        raise
    finally:
        if isinstance(store, RunFolder):
            store.close()
        flush()
    report = _shown(make_report(plan, store.records(), about))
    if isinstance(store, RunFolder):
        save_report(store, report)
    return report


def _folder(out: str | Path) -> Path:
    """A run folder by its whole path: an agent may change the directory."""
    if not isinstance(out, str | PathLike):
        raise UsageError(f"out: a folder is named by a text or a path, not by {type(out).__name__}")
    check_local(str(out), "out")
    return Path(out).absolute()


def _with_judge(those: list[Contestant], judge: Judge | None, out: Path | None) -> list[Contestant]:
    if judge is not None and out is not None:
        judge.remember(out / VERDICTS)
    return [replace(each, judge=judge or each.judge) for each in those]


def _hide(those: list[Contestant], out: Path) -> None:
    """No agent that can be kept from it looks into the folder of the run."""
    for each in those:
        if isinstance(each.agent, Hiding):
            each.agent.hide(out)


def _take_up_spending(those: list[Contestant], folder: RunFolder) -> None:
    """The limit on the cost is one of the whole run, however often it is resumed."""
    agents: dict[CostLimit, list[str]] = {}
    for each in those:
        cost_limit = getattr(each.agent, "cost_limit", None)
        if isinstance(cost_limit, CostLimit):
            agents.setdefault(cost_limit, []).append(each.name)
    for cost_limit, names in agents.items():
        of = ", ".join(names)
        cost_limit.take_up(folder.spent(of), partial(folder.keep_spent, of))


def save_report(folder: RunFolder, report: Report) -> None:
    """Writes `report.json` and `report.txt` into a run folder."""
    folder.write("report.json", msgspec.json.format(JSON.encode(report), indent=2) + b"\n")
    folder.write("report.txt", as_text(report).encode())


def report_of(folder: RunFolder) -> Evaluation:
    """The report of a stored run, made again from its episodes."""
    return _shown(make_report(folder.plan, folder.records(), folder.manifest.agents))


def manifest(plan: Plan, agents: list[dict[str, Any]]) -> Manifest:
    """What a run folder says of itself."""
    return Manifest(
        format=FORMAT,
        toolshift=own_version(),
        python=sys.version.split()[0],
        platform=f"{platform.system()}-{platform.machine()}",
        packages={name: found for name in PACKAGES if (found := version_of(name))},
        suite=plan.selection.suite,
        selection=plan.selection,
        shifts=plan.versions,
        plan_hash=plan.hash,
        agents=agents,
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        plugins=used_plugins(plan.versions, plan.selection.worlds),
        task_ids=_task_ids(plan.selection.worlds),
    )


def _task_ids(worlds: Iterable[str]) -> dict[str, dict[str, list[str]]]:
    """The names that users gave their tasks, by world and kind; of worlds that have such."""
    named = {world: find_world(world).task_ids for world in worlds}
    return {
        world: {kind: list(ids) for kind, ids in kinds.items()}
        for world, kinds in named.items()
        if kinds
    }


def attempt(
    agent: AgentLike,
    task: str,
    shifts: str = "",
    *,
    seed: int = 0,
    pool: str = "dev",
    size: int = 200,
    trial: int = 0,
    tools: Sequence[str] = (),
) -> Grade:
    """Runs an agent in one scene; for tests of a single failure.

    Args:
        agent: as for `evaluate`.
        task: `world/kind/index`, as in "poi/booking/3".
        shifts: a stack such as "erase_identity:2+typos:1"; "" for the clean scene.
        seed: of the world.
        pool: of its entities.
        size: how many there are.
        trial: which trial.
        tools: show these tools only, by the names they are shown with; () shows all.

    Returns:
        The grade of the one episode.

    Raises:
        UsageError: for anything unknown or of another type.
    """
    plain = {"seed": whole(seed), "size": whole(size), "trial": whole(trial), "pool": pool}
    named = [tools] if isinstance(tools, str) else tools or ()
    said = {"task": task, "shifts": shifts or "", **plain, "tools": named}
    asked = as_struct(said, _Attempt)
    cell = read_task(asked.task, asked.shifts, asked.seed, asked.pool, asked.size, asked.trial)
    scene = build(cell)
    if asked.tools:
        scene = with_tools(scene, asked.tools)
    return play(contestants([agent])[0], cell, scene).grade


class _HowToRun(msgspec.Struct):
    """The arguments of `evaluate` that are no part of a selection."""

    workers: int
    concurrency: int | None
    executor: str
    agent_timeout: float | None
    judge: str


class _Attempt(msgspec.Struct):
    """The arguments of `attempt`."""

    task: str
    shifts: str
    seed: int
    pool: str
    size: int
    trial: Annotated[int, msgspec.Meta(ge=0)]
    tools: tuple[str, ...]


def own_version() -> str:
    """The version of ToolShift, as runs and sealed plans tell it; "unknown" for a bare tree."""
    return version_of("toolshift") or "unknown"


def version_of(package: str) -> str:
    """The version of a package as it is installed.

    Args:
        package: its name.

    Returns:
        The version; "" where it is not installed.
    """
    with suppress(PackageNotFoundError):
        return version(package)
    return ""

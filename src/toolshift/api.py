"""A whole run: plan, agents, episodes, report; in Python and behind the command line."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, ParamSpec, TypeVar, get_args

import msgspec

from toolshift.agents.answer_cache import Exchanges
from toolshift.agents.catalog import check_settings, contestants
from toolshift.agents.judge import Judge
from toolshift.agents.kind import AgentLike
from toolshift.core.errors import UsageError
from toolshift.core.names import unknown
from toolshift.core.terminal import Progress
from toolshift.core.tool import JSON
from toolshift.episode.grade import Grade
from toolshift.episode.with_tools import with_tools
from toolshift.measure.claims import shift_claims
from toolshift.measure.report import Report, make_report
from toolshift.report.terminal import as_text
from toolshift.runs.cell import build
from toolshift.runs.design import DesignName, read_budget
from toolshift.runs.execute import (
    Finished,
    RunSpec,
    check_at_once,
    execute,
    planning,
    play_plan,
    whole_path,
)
from toolshift.runs.pool import Executor
from toolshift.runs.provenance import task_ids_of
from toolshift.runs.run_folder import RunFolder
from toolshift.runs.study import play
from toolshift.runs.suite import Selection, as_struct, read_task, select, whole

MAX_WORKERS = 2**16
PACKAGES = ("msgspec", "jsonschema-rs", "numpy", "scipy", "torch", "transformers", "peft")


class Evaluation(Report, frozen=True):
    """The report of a run: `summary` is its text, `to_dict` its data."""

    def summary(
        self, width: int = 100, only_distinguishable: bool = False, details: bool = False
    ) -> str:
        """The report as text, as the terminal shows it.

        Args:
            width: characters a line.
            only_distinguishable: all measures, without what is not significant.
            details: adds all measures and intervals below the first screen.

        Returns:
            Several lines, without codes for colour.
        """
        return as_text(self, width, only_distinguishable, details)


def _shown(report: Report) -> Evaluation:
    return Evaluation(**{name: getattr(report, name) for name in report.__struct_fields__})


P = ParamSpec("P")
R = TypeVar("R")
_PARTS = frozenset(Selection.__struct_fields__) - {"suite"}


def _one_selection(function: Callable[P, R]) -> Callable[P, R]:
    """Refuses parts of a selection beside a whole one, were they given at their defaults, too."""

    @wraps(function)
    def checked(*given: P.args, **named: P.kwargs) -> R:
        suite = given[1] if len(given) > 1 else named.get("suite")
        _check_one_selection(suite, named)
        return function(*given, **named)

    return checked


def _check_one_selection(suite: object, named: Iterable[str]) -> None:
    """Checks that nothing is selected twice, so that nothing that was asked for is passed over."""
    twice = [name for name in named if name in _PARTS]
    if isinstance(suite, Selection) and twice:
        raise UsageError(
            f"a Selection is given together with {', '.join(twice)}: put everything into the "
            "Selection, or name a suite instead"
        )


@_one_selection
def evaluate(
    agent: AgentLike | Sequence[AgentLike],
    suite: str | Selection = "",
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
    under: str = "",
    out: str | Path | None = None,
    workers: int = 1,
    executor: Executor = "process",
    concurrency: int | None = None,
    agent_timeout: float | None = None,
    judge: str = "",
    cache: str | Path | None = None,
    fresh: bool = False,
    cache_own: bool = False,
    design: str = "fixed",
    budget: str = "",
    **options: Any,
) -> Evaluation:
    """Measures how an agent performs when its environment changes.

        report = toolshift.evaluate(my_function, suite="quick")
        print(report.summary())
        report.drop("perception")

    Args:
        agent: a function of (messages, tools) that returns a string or an OpenAI assistant
            message; an object with `name` and `reply(turn)`; a spec such as "chat:gpt-4.1-mini"
            (`toolshift.agents.catalog`); or a list of these.
        suite: "quick", "standard", "paper" or "realistic" (default: "standard" for worlds of
            your own, else "quick"); or a `Selection`, and then none of the arguments from `worlds`
            to `under`.
        worlds: worlds instead of the suite's.
        kinds: only these task kinds.
        shifts: shifts instead of the suite's: names, tiers, `a:3` with a severity, `a+b` composed.
        without: shifts, or whole tiers, to leave out.
        severities: 1 to 3, for shifts that name none.
        tasks: tasks of each world and seed; the suite's where None.
        trials: how often each scene is run.
        seed: the first seed; `seeds` says how many.
        seeds: how many seeds.
        pool: "train", "dev" or "test".
        size: entities in each world.
        placebo: whether a placebo arm is run, which measures the noise floor.
        max_repeats: an episode ends when the same call has had the same result this many times; 0
            for no limit.
        under: shifts that apply to every scene, clean ones too: "crowded_list:3" shows the tools
            of each task among 400 others.
        out: a run folder, which makes the run resumable; None keeps everything in memory.
        workers: processes for scripted agents.
        executor: where the workers run: "process" for this machine, "ray" for a Ray cluster, where
            1 worker means one for each of its CPUs.
        concurrency: number of episodes at the same time, for agents that answer turns.
        agent_timeout: seconds for one turn of your own agent. It then runs in its own process,
            which is ended if it takes longer; None runs it in this process without a limit.
        judge: a model that reads endings in prose, `chat:MODEL`; "" for the built-in rules.
        cache: a folder for answers of models; identical requests of later runs are not sent again.
            None reuses answers only within this run, "off" sends every request.
        fresh: answers of earlier runs in `cache` are not used, and are replaced by new ones.
        cache_own: replies of your own functions are reused too; only for functions whose reply
            depends only on the messages and tools.
        design: "fixed" runs the whole plan, "sequential" stops each shift when it is decided.
        budget: "2000calls", "5usd" or "20min", spent on the most decisive episodes; the design is
            then sequential.
        options: for `chat:` agents, the arguments of `ChatAgent`.

    Returns:
        The report, which knows the folder of the run.

    Raises:
        UsageError: for anything unknown or out of range, for parts of a selection together with a
            `Selection`, and if the agent cannot work at all.
    """
    return run_spec(_asked(**locals()))


async def evaluate_async(
    agent: AgentLike | Sequence[AgentLike], suite: str | Selection = "", **arguments: Any
) -> Evaluation:
    """Works like `evaluate`, for a program with an event loop, which keeps running meanwhile.

        report = await toolshift.evaluate_async(my_agent, suite="quick", out="runs/first")

    The run is in another thread. If the task is cancelled, such as by Ctrl-C under `asyncio.run`,
    the run stops at the end of an episode, and then the error is raised; a run with `out` can be
    resumed. Coroutines of an asynchronous agent run in ToolShift's own event loop, as under
    `evaluate`. So objects that belong to one loop, such as a client, must be created in the agent.

    Args:
        agent: as for `evaluate`.
        suite: as for `evaluate`.
        arguments: those of `evaluate`, by name.

    Returns:
        The report.

    Raises:
        UsageError: as for `evaluate`.
        asyncio.CancelledError: if the task is cancelled, after the run has stopped.
    """
    stop = threading.Event()
    run = asyncio.ensure_future(asyncio.to_thread(_until, stop, agent, suite, arguments))
    try:
        return await asyncio.shield(run)
    except asyncio.CancelledError:
        stop.set()
        await asyncio.wait([run])
        run.exception()
        raise


class _Stopped(BaseException):
    """The task that waits for a run was cancelled; no `Exception`, as Ctrl-C is none."""


def _until(
    stop: threading.Event, agent: Any, suite: str | Selection, arguments: dict[str, Any]
) -> Evaluation:
    """Evaluates until it is told to stop."""

    def check(*counts: object) -> None:
        if stop.is_set():
            raise _Stopped

    _check_one_selection(suite, arguments)
    asked = signature(evaluate).bind(agent, suite, **arguments)
    asked.apply_defaults()
    spec = _asked(**asked.arguments)
    with planning(spec, check) as (plan, prefetch):
        return report_on(play_plan(spec, plan, prefetch, check))


def _asked(
    agent: AgentLike | Sequence[AgentLike],
    suite: str | Selection,
    *,
    out: str | Path | None,
    workers: int,
    executor: Executor,
    concurrency: int | None,
    agent_timeout: float | None,
    judge: str,
    cache: str | Path | None,
    fresh: bool,
    cache_own: bool,
    design: str,
    budget: str,
    options: dict[str, Any],
    **parts: Any,
) -> RunSpec:
    """What is to be run: the arguments of `evaluate`, of which `parts` are those of a selection."""
    if isinstance(suite, Selection):  # made by hand, so its types are checked here
        parts = msgspec.structs.asdict(suite)
    selection = Selection.of(**{"suite": suite, **parts})
    given = {"workers": whole(workers), "concurrency": whole(concurrency), "executor": executor}
    as_struct({**given, "agent_timeout": agent_timeout, "judge": judge or ""}, _HowToRun)
    check_at_once(workers, concurrency)
    agents: Sequence[Any] = agent if isinstance(agent, list | tuple) else [agent]
    check_settings(agents, options, signature(evaluate).parameters)
    those = contestants(agents, concurrency, agent_timeout=agent_timeout, **options)
    reader = Judge(judge) if judge else None
    folder = None if out is None else whole_path(out)
    how = workers, executor, reader, Exchanges(cache, fresh, cache_own)
    if design not in get_args(DesignName):
        raise UsageError(unknown("design", design, get_args(DesignName)))
    if budget:
        read_budget(budget)
    claims = shift_claims(budget=budget) if budget or design == "sequential" else None
    return RunSpec(select(selection), those, folder, *how, claims=claims)


def run_spec(spec: RunSpec, watch: Progress = lambda done, total: None) -> Evaluation:
    """Executes a run, and reports; see `runs.execute`."""
    return report_on(execute(spec, watch))


def report_on(run: Finished) -> Evaluation:
    """The report of a run that was executed, which is written into its folder."""
    named = task_ids_of(run.plan.selection.worlds)
    report = _shown(
        make_report(run.plan, run.store.records(), run.spec.about, named, run.spec.design)
    )
    if isinstance(run.store, RunFolder):
        save_report(run.store, report)
    return report


def save_report(folder: RunFolder, report: Report) -> None:
    """Writes `report.json` and `report.txt` into a run folder."""
    folder.write("report.json", msgspec.json.format(JSON.encode(report), indent=2) + b"\n")
    folder.write("report.txt", as_text(report, details=True).encode())


def report_of(folder: RunFolder) -> Evaluation:
    """The report of a stored run, made again from its episodes."""
    about = folder.manifest
    return _shown(
        make_report(folder.plan, folder.records(), about.agents, about.task_ids, about.design)
    )


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
    under: str = "",
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
        under: shifts that the clean scene stands under as well, as for `evaluate`.

    Returns:
        The grade of the one episode.

    Raises:
        UsageError: for anything unknown or of another type.
    """
    plain = {"seed": whole(seed), "size": whole(size), "trial": whole(trial), "pool": pool}
    named = [tools] if isinstance(tools, str) else tools or ()
    said = {"task": task, "shifts": shifts or "", **plain, "tools": named, "under": under}
    asked = as_struct(said, _Attempt)
    drawn = asked.seed, asked.pool, asked.size, asked.trial
    cell = read_task(asked.task, asked.shifts, *drawn, under=asked.under)
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
    under: str

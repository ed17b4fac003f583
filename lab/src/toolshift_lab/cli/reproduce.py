"""`toolshift reproduce`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import click
import msgspec

from toolshift.agents.local_kind import shipped_adapter
from toolshift.cli.options import AsJson, machine
from toolshift.cli.parameters import argument, option, options_struct
from toolshift.core.command_line import command
from toolshift.core.errors import InUse, UsageError
from toolshift.core.files import write
from toolshift.core.names import unknown
from toolshift.core.terminal import print_json, print_table, say
from toolshift.core.tool import JSON
from toolshift.lm.bases import find_base_model
from toolshift.train.model import require_training
from toolshift.train.record import adapter_hash
from toolshift.train.settings import processes
from toolshift_lab.arm import TRAINED_IN, Scale
from toolshift_lab.endpoints import PICTURE, Endpoints, as_markdown, endpoints_of
from toolshift_lab.experiments import SCALES, STUDIES, Study, find_scale, find_study
from toolshift_lab.findings import Findings, find
from toolshift_lab.outcomes import outcomes_of
from toolshift_lab.page import page
from toolshift_lab.planned import (
    PlanFile,
    check_applies,
    check_fixed,
    measured_in,
    read_plan,
    scale_with,
    study_of,
    take_up,
)
from toolshift_lab.plots import accuracy_by_shift, endpoints_by_arm
from toolshift_lab.stage import (
    Stage,
    Waits,
    check_in_tree,
    check_start,
    chosen_arms,
    run,
    scenes_of,
    seeds_there,
    stages,
)

RESULTS, PLAN, ENDPOINTS = "results.json", "plan.json", "endpoints.json"
PAUSE = 20.0
"""Seconds after which it is looked again whether a stage that is waited for is trained."""
PLANNED, PLAN_FILE = "decisive", Path("studies/decisive/plan.toml")


@dataclass(frozen=True, kw_only=True)
class ReproduceOptions:
    """What `toolshift reproduce` is asked for; without a study, to list them."""

    study: Annotated[str, argument()] = ""
    preset: Annotated[str, option(help="smoke, small or paper: model and size.")] = "small"
    seeds: Annotated[int | None, option(help="Training seeds (default: the study's).")] = None
    arms: Annotated[tuple[str, ...], option("--arm", help="Only this arm; repeat.")] = ()
    pool: Annotated[
        Literal["dev", "test"],
        option(
            help="Pool of the tasks and wordings to measure on; test only by a plan that is "
            "written first.",
        ),
    ] = "dev"
    work: Annotated[Path, option(help="Where finished stages are kept, and taken from.")] = Path(
        "studies/stages"
    )
    out: Annotated[
        Path | None, option(help="Folder of the page (default: studies/STUDY here).")
    ] = None
    threads: Annotated[
        int, option(help="Torch's threads (default: its own number).", show_default=False)
    ] = 0
    launch: Annotated[
        str,
        option(
            help="Train through this command, e.g. 'accelerate launch --config_file fsdp.yaml'.",
        ),
    ] = ""
    only_page: Annotated[bool, option(help="Run nothing; write the page from what is there.")] = (
        False
    )
    no_page: Annotated[
        bool,
        option(
            help="Write no page. Of the study `decisive` several such commands may run at once, on "
            "one GPU or beside each other: each takes the next stage that no other is at.",
        ),
    ] = False
    plan: Annotated[
        Path,
        option(
            help="The plan of the study `decisive`, which says its size, pool and order, or one "
            "that extends it.",
        ),
    ] = PLAN_FILE
    minutes: Annotated[
        float,
        option(
            help="Begin no further stage after so many minutes (default: no limit). The same "
            "command resumes.",
            show_default=False,
        ),
    ] = 0.0
    model: Annotated[
        str,
        option(
            help="A base model of `toolshift list models` instead of the preset's; its stages and "
            "its page (studies/STUDY/MODEL) are its own.",
        ),
    ] = ""
    world: Annotated[
        str | None,
        option(
            help="The world that arms are measured in, in tasks of all its kinds; they are trained "
            f"in {TRAINED_IN}, and measured there where neither this nor a plan names another. "
            "Another world has a page of its own (studies/STUDY/in-WORLD).",
        ),
    ] = None
    as_json: AsJson = False

    @property
    def names_a_run(self) -> bool:
        """Whether anything is said that decides how a study is run."""
        said = (self.arms, self.only_page, self.seeds, self.out, self.model, self.launch)
        elsewhere = self.pool != "dev" or self.world is not None or self.plan != PLAN_FILE
        return any(said) or bool(self.minutes or self.threads) or elsewhere


@click.command()
@options_struct(ReproduceOptions)
@machine
def reproduce(options: ReproduceOptions) -> None:
    """Train and measure the arms of a study of the research; without STUDY, list the studies.

    Every finished stage is kept and used again, so a study can be run in pieces.

    \b
    toolshift reproduce contrast --preset small
    toolshift reproduce controls --preset smoke --work stages --out page
    toolshift reproduce decisive --minutes 60
    toolshift reproduce contrast --world medical
    """
    if not options.study:
        if options.model:
            find_base_model(options.model)
        if options.names_a_run:
            raise UsageError(f"name a study: {', '.join((*STUDIES, PLANNED))}")
        _list(options)
        return
    if options.study not in (*STUDIES, PLANNED):
        raise UsageError(unknown("study", options.study, (*STUDIES, PLANNED)))
    require_training()
    _check(options)
    if options.no_page and options.study != PLANNED:
        raise UsageError(f"--no-page: only `{PLANNED}` runs without its page")
    if options.study == PLANNED:
        _reproduce_plan(options)
        return
    if options.plan != PLAN_FILE:
        raise UsageError(f"--plan: only `{PLANNED}` has a plan: name that study")
    world = options.world or TRAINED_IN
    scale = measured_in(scale_with(options.preset, options.model), world)
    apart = _apart(options.model, world)
    out = options.out or place(options.study, options.pool) / apart
    _keep_others(out, options.study, scale, options.pool)
    found = _run(options, out, scale)
    if found is None:
        return
    _write(out, found)
    if options.as_json:
        print_json(found)
    else:
        say(f"{out / 'README.md'} and results.json: {len(found.arms)} arms.")


def _reproduce_plan(options: ReproduceOptions) -> None:
    """Runs what is left of a planned study, in the order of its plan, and writes its page."""
    if options.seeds is not None:
        raise UsageError(f"--seeds: {options.plan} says how many seeds each arm has")
    if options.no_page and options.only_page:
        raise UsageError("--no-page and --only-page: nothing would be done; leave one out")
    plan = read_plan(options.plan)
    check_fixed(plan, options.plan)
    study, scale = take_up(plan, options.model)
    world = options.world or plan.measured_in
    scale = measured_in(scale, world)
    apart = _apart(options.model, world, plan.measured_in)
    out = options.out or _page_of(plan, options.plan) / apart
    _keep_other_plan(out, plan, scale, options.no_page)
    names = chosen_arms(study, options.arms)
    made = {
        (each.arm.name, each.seed): each
        for each in stages(study, scale, study.seeds, options.work, pool=plan.pool)
    }
    everything = [made[name] for name in plan.order]
    todo = [each for each in everything if each.arm.name in names]
    left = [each for each in todo if not each.measured]
    if left and not options.only_page:
        _check_launch(left, options)
        _check_adapter(plan, everything)
        check_applies(plan, scenes_of(left[0], study), options.plan)
    _say(f"plan {plan.sha256[:16]}, {len(todo)} stages, {len(todo) - len(left)} of them done")
    for _ in _run_each(left, study, options) if not options.only_page else ():
        if not options.no_page:
            _write_plan(out, options.plan, plan, study, everything)
    if options.no_page:
        done = sum(each.measured for each in todo)
        _say(f"{done} of {len(todo)} stages are done; --only-page writes the page")
        if options.as_json:
            print_json({"stages": len(todo), "done": done})
        return
    if not any(each.measured for each in everything):
        raise UsageError(f"{options.work} has no finished stage of this plan, so there is no page")
    found = _write_plan(out, options.plan, plan, study, everything)
    if options.as_json:
        print_json(found)
    else:
        say(f"{out / 'README.md'}, results.json and {ENDPOINTS}")


def _check_adapter(plan: PlanFile, everything: list[Stage]) -> None:
    """Says which adapter arms start from, for one of that name may be replaced."""
    check_start(everything)
    if plan.adapter:
        sha = adapter_hash(shipped_adapter(plan.adapter))
        _say(f"arms start from {plan.adapter} as it ships now, sha256 {sha[:12]}")


def _check_launch(left: list[Stage], options: ReproduceOptions) -> None:
    if options.launch and (alone := {e.arm.name for e in left if e.arm.method == "dagger"}):
        raise UsageError(
            f"--launch: DAgger trains in one process: run {', '.join(sorted(alone))} without it, "
            "and the other arms by their names (--arm)"
        )


def _run_each(left: list[Stage], study: Study, options: ReproduceOptions) -> Iterator[Stage]:
    """Runs stages until the time is up, but for those that another process is at; yields each.

    Where a stage starts from one that another process trains, that one is waited for.
    """
    begun, told = time.monotonic(), set[str]()
    while left:
        waits = False
        for stage in left:
            if options.minutes and time.monotonic() - begun > 60 * options.minutes:
                _say("the time is up: the same command goes on")
                return
            said = ""
            try:
                run(stage, study, _say, options.launch, **_threads(options))
            except Waits as fault:
                waits, said = True, str(fault)
            except InUse:
                said = f"{stage.arm.name}, seed {stage.seed}: another process is at it"
            else:
                yield stage
            if said and said not in told:
                told.add(said)
                _say(said)
        if not waits:
            return
        left = [each for each in left if not each.measured]
        time.sleep(PAUSE)


def _page_of(plan: PlanFile, file: Path) -> Path:
    """Where the page of a plan stands: one that extends another has a folder below that one's."""
    first = Path("studies") / (plan.trained or plan.name)
    return first / file.stem if plan.extends else first


def _write_plan(
    out: Path, file: Path, plan: PlanFile, study: Study, everything: list[Stage]
) -> Endpoints:
    """Writes the page and the endpoints as they stand."""
    out.mkdir(parents=True, exist_ok=True)
    found, told = find(study, everything), endpoints_of(plan, everything)
    write(out / RESULTS, JSON.encode(found) + b"\n")
    write(out / ENDPOINTS, JSON.encode(told) + b"\n")
    if found.arms:
        write(out / "accuracy.svg", accuracy_by_shift(found).encode())
        write(out / PICTURE, endpoints_by_arm(told).encode())
    named = ("--plan", str(file)) if file != PLAN_FILE else ()
    asked = _words(SCALES[everything[0].scale], plan.model, plan.measured_in) if everything else ()
    words = command("reproduce", PLANNED, *named, *asked, travels=True)
    said = f"{page(found, words)}\n{as_markdown(told)}{outcomes_of(plan, told, everything)}"
    write(out / "README.md", said.encode())
    return told


def _words(scale: Scale, model: str = "", world: str = TRAINED_IN) -> tuple[str, ...]:
    """The options that name a scale's model and its world, where these are others."""
    named = ("--model", scale.model) if scale.model != model else ()
    return (*named, "--world", scale.world) if scale.world != world else named


def _threads(options: ReproduceOptions) -> dict[str, int]:
    return {"threads": options.threads} if options.threads else {}


def _check(options: ReproduceOptions) -> None:
    """Checks what is asked for."""
    find_scale(options.preset)
    if options.seeds is not None and options.seeds < 1:
        raise UsageError(f"seeds must be at least 1, not {options.seeds}")
    if options.threads < 0:
        raise UsageError(f"threads must be 0 (torch's own number) or more, not {options.threads}")
    if processes() > 1:
        launch = "accelerate launch --config_file FILE"
        words = ("reproduce", options.study, "--preset", options.preset, "--launch", launch)
        raise UsageError(
            f"reproduce runs in one process and starts others to train: {command(*words)}"
        )


def _run(options: ReproduceOptions, out: Path, scale: str) -> Findings | None:
    """Runs what is left; None where only the plan of the test pool was written."""
    study, pool = find_study(options.study), options.pool
    seeds = study.seeds if options.seeds is None else options.seeds
    names = chosen_arms(study, options.arms)
    most = max(seeds, study.seeds, seeds_there(study, scale, options.work))
    everything = stages(study, scale, most, options.work, pool=pool)
    todo = [each for each in everything if each.seed < seeds and each.arm.name in names]
    changes = _threads(options)
    check_in_tree(todo)
    if pool == "test" and not options.only_page and not _planned(todo, out):
        return None
    if pool == "test":
        everything = _as_planned(everything, out)
    if not options.only_page:
        _say(f"{len(todo)} stages, {sum(each.measured for each in todo)} of them done")
        for stage in todo:
            run(stage, study, _say, options.launch, **changes)
            _write(out, find(study, everything, seeds))
    found = find(study, everything, seeds)
    if not found.arms:
        raise UsageError(
            f"{options.work} has no finished stage of this study at preset {scale}, so no page is "
            f"written in {out}: name the folder of the stages with --work"
        )
    return found


def _apart(model: str, world: str, own: str = TRAINED_IN) -> Path:
    """Where, below its study, the page of another model or of another world than its own stands."""
    return Path(model) / (f"in-{world}" if world != own else "")


def place(study: str, pool: str) -> Path:
    """Where the page of a study stands, unless another folder is named."""
    return Path("studies") / study / ("test" if pool == "test" else "")


def _keep_others(out: Path, study: str, scale: str, pool: str) -> None:
    """Refuses a folder that holds the results of another study, preset or pool."""
    file = out / RESULTS
    if not file.exists() and (out / "README.md").exists():
        raise UsageError(
            f"{out} has a README.md that is not the page of a study, and would be lost: name "
            "another folder with --out"
        )
    if not file.exists():
        return
    try:
        kept = msgspec.json.decode(file.read_bytes(), type=_Kept)
    except (ValueError, RecursionError):
        raise UsageError(
            f"{file} is not the results of a study, and would be lost: name another folder "
            "with --out"
        ) from None
    if (kept.study, kept.scale, kept.pool) != (study, scale, pool):
        raise UsageError(
            f"{out} holds results of {kept.study}, preset {kept.scale}, pool {kept.pool}, which "
            "would be lost: name another folder with --out"
        )


def _keep_other_plan(out: Path, plan: PlanFile, scale: str, no_page: bool) -> None:
    """Refuses a folder that holds the page of another plan or study, where one is to be written."""
    if no_page:
        return
    _keep_others(out, plan.name, scale, plan.pool)
    file = out / ENDPOINTS
    try:
        kept = msgspec.json.decode(file.read_bytes(), type=_Planned) if file.exists() else None
    except (ValueError, RecursionError) as fault:
        raise UsageError(f"{file} is damaged ({fault}): name another folder with --out") from None
    if kept and kept.plan_sha256 != plan.sha256:
        raise UsageError(
            f"{out} holds the page of another plan ({kept.plan_sha256[:16]}), which would be lost: "
            "name another folder with --out"
        )


class _Planned(msgspec.Struct):
    plan_sha256: str


class _Kept(msgspec.Struct):
    study: str
    scale: str
    pool: str = "dev"


def _planned(todo: list[Stage], out: Path) -> bool:
    """Whether these stages were planned before; if nothing was, writes the plan.

    The test pool is opened once: what is measured on it is decided, and committed, before. A plan
    holds for the scenes as they were, names and wordings included.
    """
    file = out / PLAN
    wanted = {each.folder.name: each.run.name for each in todo}
    if not file.exists():
        out.mkdir(parents=True, exist_ok=True)
        write(file, msgspec.json.format(JSON.encode(wanted)) + b"\n")
        _say(f"{file} says what will be measured on the test pool, once: commit it, then go on.")
        return False
    planned = _plan(out)
    other = sorted(name for name, run in wanted.items() if planned.get(name) != run)
    if other:
        raise UsageError(
            f"{file} plans other stages than {', '.join(other)}: the test pool was opened for "
            "those, in the scenes of then. What is chosen after a look at it has to say so: plan "
            "in another folder (--out)"
        )
    return True


def _as_planned(stages: list[Stage], out: Path) -> list[Stage]:
    """Those of the stages that were planned: of others, none is missing."""
    planned = _plan(out)
    if found := [each for each in stages if each.folder.name in planned]:
        return found
    raise UsageError(f"{out / PLAN} plans none of these stages: leave --only-page out to write one")


def _plan(out: Path) -> dict[str, str]:
    """What was planned to be measured on the test pool: stages, and in what; {} without a plan."""
    file = out / PLAN
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, str]) if file.exists() else {}
    except (ValueError, RecursionError) as fault:
        raise UsageError(f"{file} is no plan of stages ({fault}): take it back as it was") from None


def _write(out: Path, found: Findings) -> None:
    """The page as it stands, with all arms and seeds that are there, whatever was asked to run."""
    out.mkdir(parents=True, exist_ok=True)
    scale = SCALES[found.scale]
    words = ["reproduce", found.study, "--preset", scale.preset or found.scale]
    words += _words(scale)
    if found.pool == "test":
        words += ["--pool", "test", *(word for arm in found.arms for word in ("--arm", arm.arm))]
    if out != place(found.study, found.pool) / _apart(scale.model, scale.world):
        words += ["--out", str(out)]
    write(out / RESULTS, JSON.encode(found) + b"\n")
    if found.arms:
        write(out / "accuracy.svg", accuracy_by_shift(found).encode())
    write(out / "README.md", page(found, command(*words, travels=True)).encode())


def _list(options: ReproduceOptions) -> None:
    """All studies; that of a plan with what the plan says, where there is one."""
    planned = [study_of(read_plan(options.plan))] if options.plan.is_file() else []
    studies = [*STUDIES.values(), *planned]
    if options.as_json:
        print_json(studies)
        return
    rows = [(s.name, s.question, ", ".join(a.name for a in s.arms)) for s in studies]
    if not planned:
        rows.append((PLANNED, f"what {options.plan} plans, in a clone of the repository", ""))
    print_table("studies", ("study", "question", "arms"), rows)


def _say(text: str) -> None:
    say(text, err=True)

"""`toolshift gate`: may this build be released?"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

import click

from toolshift.agents.answer_cache import Exchanges
from toolshift.agents.catalog import contestants, describe
from toolshift.agents.contestant import Contestant
from toolshift.agents.judge import judge_of
from toolshift.cli.options import (
    AgentWorkers,
    AsJson,
    Concurrency,
    JudgeModel,
    JudgeUrl,
    ModelOptions,
    Reuse,
    Spending,
    Where,
)
from toolshift.cli.parameters import argument, given, option, options_struct
from toolshift.cli.running import new_folder, run_shown, say_requests, with_requests
from toolshift.cli.sectioned import Sectioned
from toolshift.core.command_line import command
from toolshift.core.errors import UsageError
from toolshift.core.files import save, write
from toolshift.core.terminal import Progress, print_json, say
from toolshift.measure.bundle import check_bundle_name, make_bundle, passed_in
from toolshift.measure.compare import shifts_as_they_were
from toolshift.measure.gate import (
    ALPHA,
    MAX_VOID,
    Gate,
    Rules,
    certain_to_fail,
    check_rules,
    judge,
    sequential_gate,
    unfit_baseline,
)
from toolshift.measure.nothing_lost import judge_losses, nothing_to_lose
from toolshift.measure.sealed import (
    SealedPlan,
    baseline_breaches,
    candidate_breaches,
    plan_bytes,
    read_plan,
    run_breaches,
    save_plan,
    seal,
    under_plan,
)
from toolshift.report.gate_markdown import gate_markdown, losses_markdown
from toolshift.report.gate_terminal import print_gate, print_losses
from toolshift.report.junit import junit, losses_junit
from toolshift.runs.execute import RunSpec, check_at_once
from toolshift.runs.provenance import own_version
from toolshift.runs.run_folder import SEALED, RunFolder
from toolshift.runs.sequential import Claims, can_hold


@dataclass(frozen=True, kw_only=True)
class GateOptions:
    """What `toolshift gate` is asked for.

    Attributes:
        run: the candidate's run folder; None to run `agent` on the baseline's scenes.
        agent: which agent of `run`, or the spec of the agent to run.
        margin: points that may be lost; None where the sealed plan says it, and so are `by`,
            `max_void` and `inconclusive`.
        nothing_lost: nothing that passed may fail, in place of a margin.
        inconclusive: what an inconclusive gate counts as; None has an exit code of its own.
        seal: a file for the sealed plan of what would be run; nothing is run then.
        plan: the file of the sealed plan that is gated under.
        bundle: an archive of the candidate's failures, which can be replayed elsewhere.
        out: the folder of the run that is made; a new one where None.
        judge: a model that reads endings in prose; "" for the shipped reading.
        early: end the run of `agent` as soon as the gate is certain to fail.
    """

    run: Annotated[Path | None, argument()] = None
    baseline: Annotated[Path, option(help="Run folder of the current release.")]
    margin: Annotated[
        float | None,
        option(help="Points of accuracy that a release may lose; needed unless --plan says it."),
    ] = None
    agent: Annotated[
        str, option(help="Without RUN: the agent to run. With it: which agent of RUN.")
    ] = ""
    baseline_agent: Annotated[
        str, option(help="Agent of the baseline (default: the one with the candidate's name).")
    ] = ""
    nothing_lost: Annotated[
        bool,
        option(
            help="For small suites, instead of --margin: no scene that passed may fail. With "
            "trials: no scene that always passed may fail more often than chance allows."
        ),
    ] = False
    by: Annotated[
        str | None,
        option(
            show_default="tier",
            help="What is gated in addition to clean and overall: tier, dimension, shift, or "
            "overall for nothing else.",
        ),
    ] = None
    max_void: Annotated[
        float | None,
        option(
            show_default="5",
            help="Percent of the scenes that may be void or missing; above this nothing is "
            "decided.",
        ),
    ] = None
    inconclusive: Annotated[
        Literal["pass", "fail"] | None,
        option(help="What an inconclusive gate counts as (default: exit code 3)."),
    ] = None
    seal: Annotated[
        Path | None,
        option(
            metavar="FILE",
            help="Write the sealed plan of this gate to FILE, with its hash, and run nothing.",
        ),
    ] = None
    plan: Annotated[
        Path | None,
        option(
            metavar="FILE",
            help="Use this sealed plan, which sets agent, scenes, margin and rules. Any "
            "difference from the plan is an error.",
        ),
    ] = None
    junit: Annotated[Path | None, option(help="Write JUnit XML to this file.")] = None
    markdown: Annotated[Path | None, option(help="Write a summary to this file.")] = None
    bundle: Annotated[
        Path | None,
        option(
            metavar="FILE.zip",
            help="Pack the candidate's failed episodes into this archive; `toolshift replay` "
            "replays them on any machine.",
        ),
    ] = None
    model: ModelOptions
    reuse: Reuse
    spending: Spending
    early: Annotated[
        bool,
        option(
            help="End the run of --agent as soon as the gate is certain to fail, whatever the "
            "remaining episodes show. The verdict is that of the whole run."
        ),
    ] = False
    out: Annotated[Path | None, option(help="Run folder for --agent; resumes it.")] = None
    workers: AgentWorkers = 1
    concurrency: Concurrency = None
    executor: Where = "process"
    judge: JudgeModel = ""
    judge_url: JudgeUrl = None
    as_json: AsJson = False


@click.command(
    cls=Sectioned,
    first=(
        "baseline",
        "margin",
        "nothing_lost",
        "agent",
        "out",
        "junit",
        "markdown",
        "bundle",
    ),
)
@options_struct(GateOptions)
def gate(options: GateOptions) -> None:
    """Stop a release that is worse than a baseline, paired on the same scenes.

    \b
    toolshift gate runs/new --baseline runs/main --margin 5
    toolshift gate --agent mymodule:my_agent --baseline runs/main --margin 5 --out runs/new
    toolshift gate runs/new --baseline runs/main --nothing-lost
    toolshift gate --agent mymodule:my_agent --baseline runs/main --margin 5 --seal plan.json
    toolshift gate --agent mymodule:my_agent --baseline runs/main --plan plan.json --out runs/new

    Exit codes: 0 pass: not worse by the margin, 1 fail: worse by more than the margin, 2 a usage
    error, 3 inconclusive, 4 not measured (too many scenes are void or missing, the baseline passes
    too few scenes, or the run is not the sealed one).
    """
    if options.nothing_lost:
        _gate_losses(options)
    terms = _terms(options)
    if options.bundle is not None:
        check_bundle_name(options.bundle)
    before = RunFolder.read(options.baseline)
    if options.seal is not None:
        _seal(before, terms.rules, options)
        return
    exchanges = options.reuse.exchanges()
    agents, after = _agents(options), None
    if (verdict := _unfit(before, terms, agents)) is None:
        after = _candidate(before, terms, options, exchanges, agents)
        names = {"baseline_agent": terms.baseline, "candidate_agent": terms.candidate}
        verdict = judge(before, after, terms.rules, **names)
        if terms.plan is not None:
            verdict = under_plan(verdict, terms.plan, run_breaches(terms.plan, before, after))
    _write(verdict, after, before, terms.rules, options)
    if options.as_json:
        print_json(with_requests(verdict, exchanges))
    else:
        print_gate(verdict, after.path if after else "")
        say_requests(exchanges)
    sys.exit(verdict.exit_code(terms.rules.inconclusive))


def _unfit(before: RunFolder, terms: _Terms, agents: Sequence[Contestant]) -> Gate | None:
    """The error of a baseline that shows no loss, before any scene of an agent is asked."""
    if not agents:
        return None
    found = unfit_baseline(before, terms.rules, agents[0].name, terms.baseline)
    return found and (under_plan(found, terms.plan, []) if terms.plan is not None else found)


def _gate_losses(options: GateOptions) -> NoReturn:
    """Gates by the rule that nothing that passed may fail, and ends."""
    others = {
        "--margin": options.margin, "--by": options.by, "--seal": options.seal,
        "--plan": options.plan, "--early": options.early, "--bundle": options.bundle,
        "--design sequential": options.spending.is_sequential(),
    }  # fmt: skip
    for name, value in others.items():
        if value:
            raise UsageError(
                f"{name} works only with --margin, and --nothing-lost has no margin: leave one "
                "of them out"
            )
    max_void = MAX_VOID if options.max_void is None else options.max_void
    if not 0 <= max_void <= 100:
        raise UsageError(f"max-void is a percentage from 0 to 100: {max_void:g}")
    before = RunFolder.read(options.baseline)
    exchanges = options.reuse.exchanges()
    terms = _Terms(Rules(1.0), *_names(options))
    agents, found, run = _agents(options), None, ""
    if agents:
        found = nothing_to_lose(before, agents[0].name, terms.baseline, max_void)
    if found is None:
        after = _candidate(before, terms, options, exchanges, agents)
        names = {"baseline_agent": terms.baseline, "candidate_agent": terms.candidate}
        found, run = judge_losses(before, after, max_void=max_void, **names), str(after.path)
    if options.junit:
        content = losses_junit(found, run, options.inconclusive or "")
        save(options.junit, content.encode(), make_folder=True)
    if options.markdown:
        content = losses_markdown(found, run)
        save(options.markdown, content.encode(), make_folder=True)
    if options.as_json:
        print_json(with_requests(found, exchanges))
    else:
        print_losses(found, run)
        say_requests(exchanges)
    counted = options.inconclusive if found.verdict == "inconclusive" else None
    sys.exit({"pass": 0, "fail": 1}[counted] if counted else found.exit_code())


@dataclass(frozen=True)
class _Terms:
    """What decides a gate, as the options or a sealed plan say it.

    Attributes:
        baseline: which agent of the baseline is gated against.
        candidate: which agent of a finished run is gated; "" for that of a new run.
        plan: the sealed plan that the run is held to.
    """

    rules: Rules
    baseline: str
    candidate: str
    plan: SealedPlan | None = None


def _terms(options: GateOptions) -> _Terms:
    """What decides the gate; nothing that is given may differ from a sealed plan."""
    chosen = given(options, Rules)
    if options.plan is not None:
        return _sealed_terms(read_plan(options.plan), chosen, options)
    if options.margin is None:
        raise UsageError(
            "give --margin (points of accuracy that a release may lose) or --nothing-lost"
        )
    rules = Rules(**chosen)
    check_rules(rules)
    return _Terms(rules, *_names(options))


def _names(options: GateOptions) -> tuple[str, str]:
    """The agents of the baseline and of a finished run that are named."""
    return options.baseline_agent, options.agent if options.run is not None else ""


def _sealed_terms(plan: SealedPlan, chosen: dict[str, Any], options: GateOptions) -> _Terms:
    for name, value in chosen.items():
        sealed = getattr(plan.rules, name)
        if value != sealed:
            raise UsageError(
                f"--{name.replace('_', '-')} {value}: {options.plan} was sealed with "
                f"{'none' if sealed == '' else sealed}. Leave it out, or seal a new plan "
                "before the next run"
            )
    if plan.rules.alpha != ALPHA:
        raise UsageError(
            f"{options.plan} was sealed with another error rate: seal a new plan before the next "
            "run"
        )
    check_rules(plan.rules)
    before, after = str(plan.baseline["name"]), str(plan.candidate["name"])
    if options.baseline_agent not in ("", before):
        raise UsageError(f"--baseline-agent {options.baseline_agent}: {before} was sealed")
    if options.run is None:
        return _Terms(plan.rules, before, "", plan)
    if options.agent not in ("", after):
        raise UsageError(f"--agent {options.agent}: the gate of {after} was sealed")
    return _Terms(plan.rules, before, after, plan)


def _agents(options: GateOptions) -> list[Contestant]:
    """The agent to run; none where a finished run is read."""
    if options.run is not None or not options.agent:
        return []
    check_at_once(options.workers, options.concurrency)
    return contestants([options.agent], options.concurrency, **options.model.given())


def _seal(before: RunFolder, rules: Rules, options: GateOptions) -> None:
    """Writes the sealed plan."""
    if options.run is not None or options.plan is not None:
        raise UsageError(
            "--seal must be used before the run: give --agent, and neither RUN nor --plan"
        )
    if not options.agent:
        raise UsageError("name the agent for the sealed plan with --agent")
    later = {
        "--out": options.out, "--junit": options.junit, "--markdown": options.markdown,
        "--bundle": options.bundle, "--early": options.early,
        "--design sequential": options.spending.is_sequential(),
    }  # fmt: skip
    if early := [name for name, value in later.items() if value]:
        raise UsageError(f"--seal runs nothing: give {', '.join(early)} to the later gate instead")
    assert options.seal is not None
    shifts_as_they_were(before)
    agents, reader = _agents(options), judge_of(options.judge, options.judge_url)
    agent = describe(replace(agents[0], judge=reader or agents[0].judge))
    plan = seal(before, agent, rules, own_version(), options.baseline_agent)
    if unfit := unfit_baseline(before, rules, agents[0].name, options.baseline_agent):
        said = unfit.families[0].sentence.removeprefix("error: ")
        raise UsageError(f"{before.path} cannot be a baseline, so nothing is sealed: {said}")
    save_plan(plan, options.seal)
    if options.as_json:
        print_json(plan)
        return
    go_on = ["--agent", options.agent, "--baseline", options.baseline, "--plan", options.seal]
    say(f"Sealed {plan.episodes} episodes of {agent['name']}, margin {rules.margin:g} points, as "
        f"{plan.hash}. Run it: {command('gate', *go_on)}")  # fmt: skip


def _candidate(
    before: RunFolder,
    terms: _Terms,
    options: GateOptions,
    exchanges: Exchanges,
    agents: list[Contestant],
) -> RunFolder:
    """The candidate's run: the one that is named, or a new one of exactly the baseline's scenes."""
    if options.run is not None:
        if (
            options.out
            or options.model.given()
            or options.judge
            or options.judge_url
            or options.early
            or options.reuse.cache
            or options.spending.given
        ):
            raise UsageError(
                "--out, --judge, --early, --cache, --design, --budget and the options of models "
                "work only with --agent and without RUN, because a finished run is only read. "
                "`toolshift regrade RUN --judge` lets a judge read it again."
            )
        return RunFolder.read(options.run)
    if not agents:
        raise UsageError("name the candidate: a run folder, or the agent to run with --agent")
    before.require_code()
    shifts_as_they_were(before)
    path = options.out or new_folder("gate")
    if path.exists() and path.resolve() == before.path.resolve():
        raise UsageError(f"{path} is the baseline: name another folder with --out")
    reader = judge_of(options.judge, options.judge_url)
    how = options.workers, options.executor, reader, exchanges
    claims = _claims(before, agents[0].name, terms, path, options)
    spec = RunSpec(before.plan, agents, path, *how, claims=claims)
    checks = []
    if terms.plan is not None:
        _check_sealed(terms.plan, before, spec.about[0], path)
        checks.append(_carrying(terms.plan, path))
    if options.early:
        checks.append(_ending(before, path, terms))

    def check(done: int, total: int) -> None:
        for verify in checks:
            verify(done, total)

    try:
        run_shown(spec, options.out is not None, check)
    except _CertainError as certain:
        say(f"Ended early: {certain}. The remaining episodes cannot change the verdict.", err=True)
    return RunFolder.read(path)


def _claims(
    before: RunFolder,
    agent: str,
    terms: _Terms,
    path: Path,
    options: GateOptions,
) -> Claims | None:
    """What is asked until it decides; None where all scenes are played.

    Without an option, all scenes are played of a baseline from before designs, and of one with too
    few tasks for a pass.
    """
    whole = terms.plan is not None or options.early or options.nothing_lost
    usual = not whole and before.manifest.design is not None
    if not options.spending.is_sequential(path, usual):
        return None
    if whole:
        raise UsageError(
            "a sealed plan, --early and --nothing-lost need all scenes: leave --design "
            "sequential and --budget out"
        )
    claims = sequential_gate(before, terms.rules, agent, terms.baseline, options.spending.budget)
    return claims if options.spending.given or can_hold(claims, before.plan) else None


def _check_sealed(plan: SealedPlan, before: RunFolder, agent: dict[str, Any], path: Path) -> None:
    """Checks, before anything is run, that it would be the run that was sealed."""
    breaches = baseline_breaches(plan, before)
    breaches += candidate_breaches(plan, agent, own_version())
    if not (path / SEALED).exists() and (path / "manifest.json").exists():
        breaches.append(f"{path} contains a run that was started without the plan")
    elif (path / SEALED).exists() and read_plan(path / SEALED).hash != plan.hash:
        breaches.append(f"{path} contains a run of another sealed plan")
    if breaches:
        raise UsageError(f"this is not what was sealed as {plan.name}: {'; '.join(breaches)}")


def _carrying(plan: SealedPlan, path: Path) -> Progress:
    """Puts the copy of a sealed plan into its run folder before the first episode."""

    def check(done: int, total: int) -> None:
        if not (path / SEALED).exists():
            write(path / SEALED, plan_bytes(plan))

    return check


class _CertainError(Exception):
    """The gate fails, whatever is left."""


def _ending(before: RunFolder, path: Path, terms: _Terms) -> Progress:
    """What ends a run whose verdict is certain; looks after each twentieth of it."""
    looked = 0

    def check(done: int, total: int) -> None:
        nonlocal looked
        if done >= total or 20 * (done - looked) < total:
            return
        looked = done
        after = RunFolder.read(path)
        if certain_to_fail(before, after, terms.rules, baseline_agent=terms.baseline):
            raise _CertainError(f"{done} of {total} episodes were run")

    return check


def _write(
    gate: Gate, after: RunFolder | None, before: RunFolder, rules: Rules, options: GateOptions
) -> None:
    if options.junit:
        content = junit(gate, rules.inconclusive)
        save(options.junit, content.encode(), make_folder=True)
    if options.markdown:
        content = gate_markdown(gate, str(after.path) if after else "")
        save(options.markdown, content.encode(), make_folder=True)
    if options.bundle and after:
        kept = make_bundle(after, gate.candidate, options.bundle, passed_in(before, gate.baseline))
        say(f"Replay bundle: {kept} failures in {options.bundle}", err=True)

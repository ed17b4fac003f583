"""A sealed plan: everything that decides a gate, fixed with a hash before the candidate is run.

A margin that is chosen after the result, or an agent that is changed while a gate goes on, makes
its error rates void. So the plan says which agent (its settings and the hash of its source), which
scenes (suite, tasks, seeds, shifts with their versions), which baseline with which results, which
margin and which rules. A run that is made under a plan carries a copy of it; a plan that is sealed
after the run, or sealed again with another margin, is not the copy that the run has.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from toolshift.core.errors import UsageError
from toolshift.core.files import decode, read_bytes, save
from toolshift.core.tool import JSON
from toolshift.measure.gate import Gate, Rules
from toolshift.measure.two_runs import by_cell, find_agent
from toolshift.runs.run_folder import SEALED, RunFolder
from toolshift.runs.suite import ResolvedSelection

FORMAT = 1


class SealedPlan(msgspec.Struct, frozen=True):
    """What decides a gate.

    Attributes:
        toolshift: the version that is to run it.
        candidate: the agent, as a run folder's manifest describes it.
        baseline: the agent in use, likewise.
        baseline_results: a hash of its verdicts, scene by scene.
        selection: suite, worlds, tasks, seeds, pool and arms.
        shifts: their versions.
        plan: the hash of the plan of the baseline, which the candidate runs.
        episodes: how many the candidate has to run.
        hash: of all of these; "" only while it is made.
    """

    format: int
    toolshift: str
    candidate: dict[str, Any]
    baseline: dict[str, Any]
    baseline_results: str
    selection: ResolvedSelection
    shifts: dict[str, int]
    plan: str
    episodes: int
    rules: Rules
    hash: str = ""

    @property
    def digest(self) -> str:
        """The hash that this content has."""
        return sha256(JSON.encode(msgspec.structs.replace(self, hash=""))).hexdigest()

    @property
    def name(self) -> str:
        """The hash as it is shown to users."""
        return self.hash[:12]


def seal(
    baseline: RunFolder,
    candidate: dict[str, Any],
    rules: Rules,
    version: str,
    baseline_agent: str = "",
) -> SealedPlan:
    """Seals what decides a gate."""
    name = _agent_of(baseline, candidate, baseline_agent)
    there, planned = len(by_cell(baseline, name)), len(baseline.plan.cells)
    if there < planned:
        raise UsageError(
            f"{baseline.path} is not finished: {there} of {planned} episodes of {name} are "
            "there. Resume it first"
        )
    plan = SealedPlan(
        format=FORMAT,
        toolshift=version,
        candidate=candidate,
        baseline=_described(baseline, name),
        baseline_results=_results(baseline, name),
        selection=baseline.plan.selection,
        shifts=baseline.plan.versions,
        plan=baseline.plan.hash,
        episodes=len(baseline.plan.cells),
        rules=rules,
    )
    return msgspec.structs.replace(plan, hash=plan.digest)


def save_plan(plan: SealedPlan, path: Path) -> None:
    """Writes a sealed plan."""
    _check_file(path)
    if path.exists() and read_plan(path) != plan:
        raise UsageError(f"{path} is another sealed plan: name another file, or delete it")
    save(path, plan_bytes(plan), make_folder=True)


def plan_bytes(plan: SealedPlan) -> bytes:
    """The file of a plan."""
    return msgspec.json.format(JSON.encode(plan), indent=2) + b"\n"


def read_plan(path: Path) -> SealedPlan:
    """Reads a sealed plan."""
    _check_file(path)
    if not path.is_file():
        raise UsageError(f"{path}: there is no sealed plan; `toolshift gate --seal FILE` makes one")
    try:
        plan = decode(read_bytes(path), SealedPlan, str(path))
    except UsageError:
        raise UsageError(
            f"{path} is not a sealed plan of this version, or it is damaged: restore it, or seal "
            "a new plan before the next run"
        ) from None
    if plan.format != FORMAT:
        raise UsageError(
            f"{path} is a sealed plan of format {plan.format}; this one reads {FORMAT}"
        )
    if plan.digest != plan.hash:
        raise UsageError(
            f"{path}: the seal is broken, because the file was changed after it was sealed. "
            "Restore it, or seal a new plan before the next run"
        )
    return plan


def _check_file(path: Path) -> None:
    if path.is_dir():
        raise UsageError(f"{path} is a folder: name the file in it, such as {path / 'plan.json'}")


def baseline_breaches(plan: SealedPlan, baseline: RunFolder) -> list[str]:
    """How a baseline differs from the sealed one."""
    if baseline.plan.hash != plan.plan:
        return [f"{baseline.path} is the run of another plan than the one sealed"]
    names = [str(agent["name"]) for agent in baseline.manifest.agents]
    name = str(plan.baseline["name"])
    if name not in names:
        return [f"{baseline.path} has no agent {name}, which was sealed as the baseline"]
    if _results(baseline, name) != plan.baseline_results:
        return [f"the results of {baseline.path} are not those that were sealed"]
    return []


def candidate_breaches(plan: SealedPlan, agent: dict[str, Any], version: str) -> list[str]:
    """How a candidate differs from the sealed one."""
    breaches = []
    changed = sorted(
        key for key in {*plan.candidate, *agent} if plan.candidate.get(key) != agent.get(key)
    )
    if changed:
        breaches.append(f"the agent is not the sealed one: {', '.join(changed)} changed")
    if version != plan.toolshift:
        breaches.append(
            f"the plan was sealed for ToolShift {plan.toolshift}, and this is {version}"
        )
    return breaches


def run_breaches(plan: SealedPlan, baseline: RunFolder, candidate: RunFolder) -> list[str]:
    """Why a run is not the one that was sealed."""
    breaches = baseline_breaches(plan, baseline)
    if candidate.plan.hash != plan.plan:
        breaches.append(f"{candidate.path} is the run of another plan than the one sealed")
    agents = {str(agent["name"]): agent for agent in candidate.manifest.agents}
    agent = agents.get(str(plan.candidate["name"]))
    if agent is None:
        breaches.append(f"{candidate.path} has no agent {plan.candidate['name']}")
    else:
        breaches += candidate_breaches(plan, agent, candidate.manifest.toolshift)
    if candidate.manifest.graded not in ("", plan.toolshift):
        breaches.append(f"it was graded again by ToolShift {candidate.manifest.graded}")
    return [*breaches, *_copy_breaches(plan, candidate)]


def _copy_breaches(plan: SealedPlan, candidate: RunFolder) -> list[str]:
    path = candidate.path / SEALED
    if not path.exists():
        return [f"{candidate.path} was not made under a sealed plan (`toolshift gate --plan`)"]
    try:
        carried = read_plan(path)
    except UsageError as fault:
        return [str(fault)]
    if carried.hash != plan.hash:
        breach = f"was made under the sealed plan {carried.name}, and this is {plan.name}"
        return [f"{candidate.path} {breach}"]
    return []


def under_plan(gate: Gate, plan: SealedPlan, breaches: list[str]) -> Gate:
    """A verdict that names its plan; an error where the run is not the sealed one."""
    if not breaches:
        return msgspec.structs.replace(gate, plan=plan.hash)
    return msgspec.structs.replace(
        gate,
        plan=plan.hash,
        verdict="error",
        sentence=f"error: this is not the run that was sealed as {plan.name}; "
        f"{'; '.join(breaches)}",
        breaches=breaches,
    )


def _agent_of(baseline: RunFolder, candidate: dict[str, Any], baseline_agent: str) -> str:
    names = [str(agent["name"]) for agent in baseline.manifest.agents]
    same = str(candidate["name"]) if candidate["name"] in names else ""
    return find_agent(baseline, baseline_agent or same)


def _described(run: RunFolder, name: str) -> dict[str, Any]:
    return next(agent for agent in run.manifest.agents if agent["name"] == name)


def _results(run: RunFolder, name: str) -> str:
    """A hash of the verdicts of a run: which scenes were passed, and which are void."""
    records = by_cell(run, name)
    rows = [
        (cell, records[cell].grade.passed, records[cell].grade.void) for cell in sorted(records)
    ]
    return sha256(JSON.encode(rows)).hexdigest()

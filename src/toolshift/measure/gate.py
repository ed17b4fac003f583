"""The gate: may this build be released, or is it worse than the baseline by more than a margin?

Paired on the scenes that both runs have, by families: the clean scenes, each tier, and all scenes
together. The gate passes only if every family passes. So it needs no correction for their number:
to pass a build that is worse by the margin somewhere, the one family concerned must err
(intersection-union test). It fails if one family fails.

A gate can only lose what passes. Where the baseline passes so little that a candidate which fails
everything would not lose more than the margin, nothing is measured, whatever the design.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from math import isnan, nan
from typing import TYPE_CHECKING, Literal

import msgspec

from toolshift.core.errors import UsageError
from toolshift.core.names import unknown
from toolshift.measure.claims import (
    Claim,
    Ended,
    claim_of,
    families_by,
    gate_claims,
    gate_rule,
)
from toolshift.measure.gate_statistics import (
    CONFIDENCE,
    Verdict,
    change_interval,
    decide,
    more_tasks,
)
from toolshift.measure.metrics import TIER_ORDER, dimension_of, shift_of, tier_of
from toolshift.measure.statistics import Interval, task_means
from toolshift.measure.two_runs import (
    PairedRuns,
    PairedScene,
    baseline_alone,
    check_whole,
    itself_notes,
    pair_runs,
    version_notes,
)
from toolshift.runs.cell import Cell
from toolshift.runs.design import FIXED, read_budget
from toolshift.runs.plan import Plan, is_placebo
from toolshift.runs.run_folder import Record, RunFolder
from toolshift.runs.sequential import UNKNOWN, Claims, Course, Pair, outcome_of

if TYPE_CHECKING:
    from toolshift.measure.exact import Floats

CLEAN, OVERALL = "clean", "overall"
MAX_VOID = 5.0
ALPHA = round((1 - CONFIDENCE) / 2, 6)
"""The chance of either error that this version allows in a family."""
MIN_MARGIN = 0.25  # points; below it, a share was meant
LOW = 0.5
"""Below this accuracy of the baseline, a pass means little."""
_GRAVEST: tuple[Verdict, ...] = ("fail", "error", "inconclusive", "pass")
Why = Literal["", "unknown", "little", "nothing", "void", "worst", "best", "spread"]
Unfit = Literal["", "unknown", "little"]
"""Why a baseline shows no loss: too few of its scenes have a verdict, or too few of them pass."""
Inconclusive = Literal["pass", "fail", ""]
GROUPINGS: dict[str, Callable[[Cell], str]] = {
    "tier": tier_of,
    "dimension": dimension_of,
    "shift": shift_of,
    "overall": lambda cell: "",
}


class Rules(msgspec.Struct, frozen=True):
    """The rules by which a gate decides.

    Attributes:
        margin: points of accuracy that may be lost.
        by: what makes a family.
        max_void: percent of the scenes that may be void or missing.
        inconclusive: what an inconclusive gate counts as; "" has an exit code of its own.
        alpha: the chance of either error that is allowed in a family.
    """

    margin: float
    by: str = "tier"
    max_void: float = MAX_VOID
    inconclusive: Inconclusive = ""
    alpha: float = ALPHA


class Family(msgspec.Struct, frozen=True):
    """The gate's verdict on one group of scenes. Rates and changes lie in [-1, 1].

    Attributes:
        gated: counts for the gate; the others are shown only. A tier, dimension or shift of which
            the baseline passes too little to lose the margin does not count.
        sentence: the verdict and its reason in words.
        scenes: planned in both runs; `scored` those of them that were scored in both.
        tasks: the clusters of the interval; every task weighs the same.
        baseline: accuracy of these tasks before; `candidate` after.
        change: candidate minus baseline, with exact 90% limits.
        worst: the same with the candidate's void and missing episodes as failures; None without.
        more_tasks: about how many more would decide; None where it is not estimable.
        examples: episodes of the candidate that passed before and fail now.
    """

    label: str
    gated: bool
    verdict: Verdict
    sentence: str
    scenes: int
    scored: int
    tasks: int
    baseline: float
    candidate: float
    change: Interval
    worst: Interval | None
    lost: int
    gained: int
    more_tasks: int | None
    examples: list[str]


class Gate(msgspec.Struct, frozen=True):
    """The verdict on a build; `margin` and `max_void` are in points and percent.

    Attributes:
        families: those that were gated.
        shifts: shift by shift, for information, unless they were gated.
        notes: what to know when reading it.
        plan: the hash of the sealed plan that it was gated under; "" without one.
        breaches: why the run is not the one that was sealed; then the verdict is an error.
    """

    verdict: Verdict
    sentence: str
    baseline: str
    candidate: str
    margin: float
    max_void: float
    confidence: float
    families: list[Family]
    shifts: list[Family]
    notes: list[str]
    plan: str = ""
    breaches: list[str] = []

    def exit_code(self, inconclusive: Inconclusive = "") -> int:
        """0 pass, 1 fail, 3 inconclusive, 4 error."""
        verdict = self.verdict
        if verdict == "inconclusive" and inconclusive:
            verdict = inconclusive
        return {"pass": 0, "fail": 1, "inconclusive": 3, "error": 4}[verdict]


def judge(
    baseline: RunFolder,
    candidate: RunFolder,
    rules: Rules,
    *,
    baseline_agent: str = "",
    candidate_agent: str = "",
) -> Gate:
    """Gates a run against a baseline."""
    check_rules(rules)
    runs = pair_runs(baseline, candidate, baseline_agent, candidate_agent)
    every, planned = runs.scenes, {cell.id for cell in candidate.plan.cells}
    scenes = [scene for scene in every if scene.cell.id in planned]
    check_whole(baseline, every)
    if not scenes:
        raise UsageError(
            f"{baseline.path} and {candidate.path} have no scene in common: run the candidate with "
            "`toolshift gate --agent`, which takes the baseline's plan"
        )
    shifted = [scene for scene in scenes if scene.cell.shifts and not is_placebo(scene.cell)]
    design = candidate.manifest.design
    if design is not None and design.sequential:
        families, shifts = _claimed(candidate, runs.after, scenes, shifted, rules)
    else:
        families = _families(every, planned, rules)
        shifts = [] if rules.by == "shift" else _table(shifted, shift_of, rules, gated=False)
    verdict = _together(families)
    return Gate(
        verdict=verdict,
        sentence=_sum_up(verdict, families, rules.margin),
        baseline=runs.before,
        candidate=runs.after,
        margin=rules.margin,
        max_void=rules.max_void,
        confidence=CONFIDENCE,
        families=families,
        shifts=shifts,
        notes=_notes(runs, baseline, candidate, len(every) - len(scenes), families),
    )


def unfit_baseline(
    baseline: RunFolder, rules: Rules, candidate: str, baseline_agent: str = ""
) -> Gate | None:
    """The error of a gate whose baseline shows no loss, whatever a candidate of this name does.

    None where something can be measured; so nothing is asked in vain.
    """
    check_rules(rules)
    name, scenes = baseline_alone(baseline, candidate, baseline_agent)
    families = [
        family
        for label, rows in _grouped(scenes, GROUPINGS[rules.by]).items()
        if rows and _unfit(rows, rules)
        if (family := _family(label, rows, rules, gated=True)).gated
    ]
    if not families:
        return None
    return Gate(
        verdict="error",
        sentence=_sum_up("error", families, rules.margin),
        baseline=name,
        candidate=candidate,
        margin=rules.margin,
        max_void=rules.max_void,
        confidence=CONFIDENCE,
        families=families,
        shifts=[],
        notes=["The baseline alone decides this: no scene was run."],
    )


def _unfit(scenes: list[PairedScene], rules: Rules) -> Unfit:
    """Why the baseline's part of some scenes shows no loss, whatever the candidate does in them."""
    known = [scene for scene in scenes if scene.known]
    if not known or 100 * (len(scenes) - len(known)) > rules.max_void * len(scenes):
        return "unknown"
    before, _ = _task_means(known)
    return "little" if before.mean() <= rules.margin / 100 + 1e-9 else ""


def _unfit_in_words(label: str, scenes: list[PairedScene], why: Unfit, rules: Rules) -> str:
    known = sum(scene.known for scene in scenes)
    if why == "unknown":
        return (
            f"error: {len(scenes) - known} of {len(scenes)} scenes are void or missing in the "
            f"baseline, more than {rules.max_void:g}%: fix what failed and run the baseline again"
        )
    passed = sum(round(_passed(scene.before)) for scene in scenes if scene.known)
    verdict = "error" if _counts(label, why) else "not measured"
    return (
        f"{verdict}: the baseline passes {passed} of {known} scenes, so even an agent that fails "
        f"all of them cannot lose more than {rules.margin:g} points. Make a baseline with an "
        "agent that works"
    )


def sequential_gate(
    baseline: RunFolder, rules: Rules, candidate: str, baseline_agent: str = "", budget: str = ""
) -> Claims:
    """What a candidate is asked until it decides: the baseline's scenes, family by family."""
    check_rules(rules)
    _, scenes = baseline_alone(baseline, candidate, baseline_agent)

    known = {s.cell.id: outcome_of(s.before) for s in scenes if s.before is not None}
    return gate_claims(known, partial(_cells, rules=rules), rules.margin, budget)


def _cells(plan: Plan, rules: Rules) -> dict[str, list[Cell]]:
    """The cells of a plan by family."""
    grouped = _grouped([PairedScene(c, None, None) for c in plan.cells], GROUPINGS[rules.by])
    return {label: [scene.cell for scene in rows] for label, rows in grouped.items()}


def _claimed(
    candidate: RunFolder,
    agent: str,
    scenes: list[PairedScene],
    shifted: list[PairedScene],
    rules: Rules,
) -> tuple[list[Family], list[Family]]:
    """The families and the shifts of a run that stopped when it had decided."""
    design = candidate.manifest.design or FIXED
    listed = agent in design.listed
    groups = _grouped(scenes, GROUPINGS[rules.by])
    rest = {} if rules.by == "shift" else _groups(shifted, shift_of)
    claims = {label: _claim(label, rows, rules, listed) for label, rows in groups.items()}
    failed = next((label for label, claim in claims.items() if claim.verdict == "breaks"), "")
    unfinished = False
    stopped = f"no more scenes were run, because {failed} has failed, which decides the gate"
    if not failed and any(claim.ended == "stopped" for claim in claims.values()):
        spent = _is_spent(candidate, agent, scenes, rules)
        unfinished = spent is False
        stopped = f"the budget of {design.budget} is spent"
        stopped += "" if spent else ", or the run was stopped before"
        stopped += "; the same command with a larger budget continues"

    def family(claim: Claim, rows: list[PairedScene], gated: bool) -> Family:
        ended = stopped if claim.ended == "stopped" else _ENDED[claim.ended]
        return _of_claim(claim, rows, rules, gated, gated and unfinished, ended)

    families = [family(claims[label], rows, True) for label, rows in groups.items()]
    shifts = [
        family(_claim(label, rows, rules, listed), rows, False) for label, rows in rest.items()
    ]
    return families, shifts


def _is_spent(
    candidate: RunFolder, agent: str, scenes: Iterable[PairedScene], rules: Rules
) -> bool | None:
    """Whether a run ended because its budget is spent, and not because it was stopped.

    Its rounds are gone through again: they follow from what is stored. None where it is not known:
    minutes are stored nowhere, and a run may have been made for another margin.
    """
    design = candidate.manifest.design or FIXED
    if not design.budget:
        return False
    if read_budget(design.budget).unit == "min" or design.margin != rules.margin:
        return None
    before = {s.cell.id: outcome_of(s.before) for s in scenes if s.before is not None}
    known = {r.cell: outcome_of(r) for r in candidate.records() if r.agent == agent}
    claims = gate_claims(before, partial(_cells, rules=rules), rules.margin, design.budget)
    course = Course(claims, claims.families(candidate.plan), known, agent in design.listed)
    for part in course.rounds():
        if any(cell.id not in known for cell in part):
            return False
    return course.spent_out


def _claim(label: str, scenes: list[PairedScene], rules: Rules, listed: bool) -> Claim:
    before = {s.cell.id: outcome_of(s.before) for s in scenes if s.before is not None}
    known = {s.cell.id: outcome_of(s.after) for s in scenes if s.after is not None}
    pairs = [Pair(s.cell, before.get(s.cell.id, UNKNOWN)) for s in scenes]
    (family,) = families_by(pairs, lambda _: label)
    return claim_of(family, known, gate_rule(rules.margin), listed)


def _of_claim(
    claim: Claim, scenes: list[PairedScene], rules: Rules, gated: bool, unfinished: bool, ended: str
) -> Family:
    """A family as it was claimed; where its run is `unfinished`, it was not measured.

    Rates are those of the change: over the tasks that were read, and what was not asked because the
    baseline failed it has failed again.
    """
    scored = [scene for scene in scenes if scene.scored]
    asked = sum(scene.after is not None for scene in scenes)
    void = asked - len(scored)
    lost = [s.after.episode for s in scored if s.after and _passed(s.before) > _passed(s.after)]
    margin = f"{rules.margin:g}"
    verdict: Verdict = _CLAIMED[claim.verdict]
    seen = f"{in_points(claim.change)} points after {claim.tasks} of {claim.planned} tasks"
    seen = seen if claim.tasks else f"none of {claim.planned} tasks was run"
    sentence = {
        "pass": f"pass: {seen}, so a loss of {margin} can be ruled out",
        "fail": f"fail: {seen}, so it is worse by more than {margin}",
    }.get(verdict, f"inconclusive: {seen}, and a loss of {margin} is possible: {ended}")
    unfit = _unfit(scenes, rules)
    if verdict == "fail":
        unfit = ""
    elif unfit:
        verdict, sentence = "error", _unfit_in_words(claim.label, scenes, unfit, rules)
    elif unfinished and claim.ended == "stopped":
        verdict = "error"
        sentence = f"error: {seen}, and the run is unfinished: resume it"
    elif 100 * void > rules.max_void * asked:
        verdict = "error"
        sentence = (
            f"error: {void} of the {asked} scenes that were run are void, more than "
            f"{rules.max_void:g}%: fix what failed and run it again"
        )
    return Family(
        label=claim.label,
        gated=gated and _counts(claim.label, unfit),
        verdict=verdict,
        sentence=sentence,
        scenes=len(scenes),
        scored=len(scored),
        tasks=claim.tasks,
        baseline=claim.before,
        candidate=claim.before + claim.change.estimate,
        change=claim.change,
        worst=None,
        lost=len(lost),
        gained=sum(_passed(s.before) < _passed(s.after) for s in scored),
        more_tasks=None,
        examples=lost[:5],
    )


def _counts(label: str, why: Why) -> bool:
    """Whether a family counts for the gate.

    Clean and overall always do, so that a baseline of which nothing can be lost is an error; an
    agent that fails one tier altogether can be gated by the others.
    """
    return why != "little" or label in (CLEAN, OVERALL)


_CLAIMED: dict[str, Verdict] = {"breaks": "fail", "holds": "pass", "open": "inconclusive"}
_ENDED: dict[Ended, str] = {
    "decided": "",
    "out of reach": "the remaining tasks can hardly decide it; use a larger baseline",
    "asked": "no remaining task can decide it; use a larger baseline",
    "void": "every episode that was run is void",
    "nothing to lose": "the baseline passes too few of the tasks that were run; --design fixed "
    "runs all",
}


def certain_to_fail(
    baseline: RunFolder,
    candidate: RunFolder,
    rules: Rules,
    *,
    baseline_agent: str = "",
    candidate_agent: str = "",
) -> bool:
    """Whether the gate fails whatever the result of the remaining or void scenes.

    That is so where a family fails even with all of them passed. A run that is stopped then has the
    verdict of the whole run, so the rates of error are those of the whole (curtailed sampling).
    """
    runs = pair_runs(baseline, candidate, baseline_agent, candidate_agent)
    groups = _grouped(runs.scenes, GROUPINGS[rules.by]).values()
    return any(_fails_at_best(scenes, rules.margin) for scenes in groups)


def _fails_at_best(scenes: list[PairedScene], margin: float) -> bool:
    before, after = _task_means([scene for scene in scenes if scene.known], void=1.0)
    return bool(before.size) and change_interval(after - before).high < -margin / 100


def check_rules(rules: Rules) -> None:
    """Checks the rules of a gate."""
    margin, by, max_void = rules.margin, rules.by, rules.max_void
    if not 0 < margin < 100:
        raise UsageError(
            f"the margin must be in points of accuracy, above 0 and under 100: {margin:g}"
        )
    if margin < MIN_MARGIN:
        raise UsageError(
            f"the margin is in points of accuracy, not a share: {margin:g} is one task in "
            f"{round(100 / margin):,}; for {100 * margin:g} points write {100 * margin:g}"
        )
    if not 0 <= max_void <= 100:
        raise UsageError(f"max-void is a percentage from 0 to 100: {max_void:g}")
    if by not in GROUPINGS:
        raise UsageError(unknown("grouping", by, GROUPINGS))


def _families(every: list[PairedScene], planned: set[str], rules: Rules) -> list[Family]:
    """Clean, the groups and overall, in this order.

    A group of which the candidate's plan has nothing is there as well, so that nothing is passed
    by leaving it out.
    """
    groups = _grouped(every, GROUPINGS[rules.by])
    return [
        _family(label, [scene for scene in rows if scene.cell.id in planned], rules, gated=True)
        for label, rows in groups.items()
        if rows
    ]


def _grouped(every: list[PairedScene], key: Callable[[Cell], str]) -> dict[str, list[PairedScene]]:
    """Scenes by family: clean, the groups and overall."""
    clean = [scene for scene in every if not scene.cell.shifts]
    shifted = [scene for scene in every if scene.cell.shifts and not is_placebo(scene.cell)]
    kept = {label: rows for label, rows in _groups(shifted, key).items() if label}
    return {CLEAN: clean, **kept, OVERALL: every}


def _groups(
    scenes: Iterable[PairedScene], key: Callable[[Cell], str]
) -> dict[str, list[PairedScene]]:
    groups: dict[str, list[PairedScene]] = defaultdict(list)
    for scene in scenes:
        groups[key(scene.cell)].append(scene)
    known = [label for label in TIER_ORDER if label in groups]
    return {label: groups[label] for label in (*known, *groups)}


def _table(
    scenes: list[PairedScene], key: Callable[[Cell], str], rules: Rules, gated: bool
) -> list[Family]:
    return [
        _family(label, rows, rules, gated=gated) for label, rows in _groups(scenes, key).items()
    ]


def _family(label: str, scenes: list[PairedScene], rules: Rules, gated: bool) -> Family:
    scored = [scene for scene in scenes if scene.scored]
    known = [scene for scene in scenes if scene.known]
    baseline, candidate = _task_means(scored)
    changes = candidate - baseline
    change = change_interval(changes)
    worst = None
    if len(known) > len(scored):
        first, second = _task_means(known)
        worst = change_interval(second - first)
    best = None
    if len(scenes) > len(scored):
        first, second = _task_means(known, void=1.0)
        best = change_interval(second - first)
    unfit: Unfit = _unfit(scenes, rules) if scenes else ""
    unscored = len(scenes) - len(scored)
    verdict, why = _verdict(changes, worst, best, unscored, len(scenes), unfit, rules)
    more = more_tasks(changes, rules.margin / 100) if why == "spread" else None
    lost = [s.after.episode for s in scored if s.after and _passed(s.before) > _passed(s.after)]
    family = Family(
        label=label,
        gated=gated and _counts(label, why),
        verdict=verdict,
        sentence="",
        scenes=len(scenes),
        scored=len(scored),
        tasks=change.n,
        baseline=float(baseline.mean()) if change.n else nan,
        candidate=float(candidate.mean()) if change.n else nan,
        change=change,
        worst=worst,
        lost=len(lost),
        gained=sum(_passed(s.before) < _passed(s.after) for s in scored),
        more_tasks=more,
        examples=lost[:5],
    )
    said = _unfit_in_words(label, scenes, why, rules) if why in ("unknown", "little") else ""
    return msgspec.structs.replace(family, sentence=said or _say(family, why, rules))


def _task_means(scenes: Iterable[PairedScene], void: float = 0.0) -> tuple[Floats, Floats]:
    """Mean passes of each task in both runs, each of shape (tasks,)."""
    before: dict[str, list[float]] = defaultdict(list)
    after: dict[str, list[float]] = defaultdict(list)
    for scene in scenes:
        before[scene.cell.lineage].append(_passed(scene.before))
        after[scene.cell.lineage].append(_passed(scene.after) if scene.scored else void)
    return task_means(before.values()), task_means(after.values())


def _passed(record: Record | None) -> float:
    return float(record is not None and record.grade.passed)


def _verdict(
    changes: Floats,
    worst: Interval | None,
    best: Interval | None,
    unscored: int,
    scenes: int,
    unfit: Unfit,
    rules: Rules,
) -> tuple[Verdict, Why]:
    """The verdict, and why it is open, or decided in spite of void scenes."""
    if best is not None and best.n and best.high < -rules.margin / 100:
        return "fail", "best"  # whatever the void scenes would have shown
    if unfit:
        return "error", unfit
    if not changes.size:
        return "error", "nothing"
    if 100 * unscored > rules.max_void * scenes:
        return "error", "void"
    verdict = decide(changes, rules.margin / 100)
    if verdict == "pass" and worst is not None and worst.low <= -rules.margin / 100:
        return "inconclusive", "worst"
    return verdict, "spread" if verdict == "inconclusive" else ""


# -- in words ----------------------------------------------------------------------------------


def in_points(change: Interval) -> str:
    """A change in points with its limits: "-1.2 [-3.9, +1.4]"."""
    if not change.n:
        return "not known"
    numbers = (change.estimate, change.low, change.high)
    middle, low, high = (f"{round(100 * number, 1) + 0:+.1f}" for number in numbers)
    return f"{middle} [{low}, {high}]"


def in_percent(rate: float) -> str:
    """A rate, "" where it is not known."""
    return "" if isnan(rate) else f"{rate:.0%}"


def verdict_in_words(family: Family) -> str:
    """The verdict; of scenes that are not gated, what was not measured is no error."""
    return "not measured" if family.verdict == "error" and not family.gated else family.verdict


def _say(family: Family, why: Why, rules: Rules) -> str:
    """The verdict on a family as a sentence."""
    change, margin = in_points(family.change), f"{rules.margin:g}"
    unscored = family.scenes - family.scored
    if why == "nothing":
        return "error: no scene was scored in both runs"
    if why == "void":
        return (
            f"error: {unscored} of {family.scenes} scenes are void or missing, more than "
            f"{rules.max_void:g}%: fix what failed and run it again"
        )
    if why == "best":
        return (
            f"fail: worse by more than {margin} points even if the {unscored} void or missing "
            "scenes had passed"
        )
    if why == "worst":
        assert family.worst
        return (
            f"inconclusive: {change} points would pass, but not with the {unscored} void or "
            f"missing scenes as failures ({in_points(family.worst)}): run it again"
        )
    if why == "spread":
        return f"inconclusive: {change} points, and a loss of {margin} is possible: {_more(family)}"
    if family.verdict == "pass":
        return f"pass: {change} points, so a loss of {margin} can be ruled out"
    return f"fail: {change} points, so it is worse by more than {margin}"


def _more(family: Family) -> str:
    if family.more_tasks is None:
        return (
            "the change is so near the margin that no reasonable number of tasks would decide; "
            "choose another margin"
        )
    return f"about {family.more_tasks:,} more tasks would decide (an estimate)"


def _together(families: list[Family]) -> Verdict:
    verdicts = {family.verdict for family in families if family.gated}
    return next(verdict for verdict in _GRAVEST if verdict in verdicts)


def _sum_up(verdict: Verdict, families: list[Family], margin: float) -> str:
    matching = [family for family in families if family.gated and family.verdict == verdict]
    names = ", ".join(family.label for family in matching)
    if verdict == "pass":
        left = ", ".join(family.label for family in families if not family.gated)
        beside = f"; not measured: {left}" if left else ""
        return f"pass: nothing is worse by {margin:g} points ({names}){beside}"
    if verdict == "fail":
        return f"fail: worse by more than {margin:g} points: {names}"
    if verdict == "error":
        return f"error: not measured: {names}; see the reasons"
    wanted = [family.more_tasks for family in matching if family.more_tasks is not None]
    if len(wanted) < len(matching):
        return f"inconclusive: {names}; see the reasons"
    return (
        f"inconclusive: {names}; about {max(wanted):,} more tasks of each would decide "
        "(an estimate)"
    )


def _notes(
    runs: PairedRuns,
    baseline: RunFolder,
    candidate: RunFolder,
    left_out: int,
    families: list[Family],
) -> list[str]:
    notes = [*version_notes(baseline, candidate), *itself_notes(runs, baseline, candidate)]
    if left_out:
        notes.append(
            f"{left_out} scenes of {baseline.path} are not in the plan of {candidate.path} and "
            "were not gated."
        )
    if candidate.manifest.sequential:
        asked = sum(1 for _ in candidate.records())
        notes.append(
            f"Sequential design: {asked} of {len(candidate.plan.cells)} scenes were run. The "
            "limits hold whenever it stopped. Scenes that the baseline failed were run only if "
            "they mattered; the others count as failed again."
        )
    low = [family.label for family in families if family.gated and family.baseline < LOW]
    if low:
        notes.append(
            f"The baseline passes less than {LOW:.0%} of {', '.join(low)}: if few scenes pass, "
            "few can be lost."
        )
    return notes

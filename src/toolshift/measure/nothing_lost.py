"""The gate of small suites: nothing that passed may fail.

With one trial of each scene this is a fact: what passed in the baseline and fails in the candidate
is lost. Where scenes have several trials the agent may vary, so a scene that always passed is lost
only if it fails more often than chance allows: one-sided Fisher's exact test of its trials, at 5%
over all scenes together by Tarone's method (Biometrics 46:515, 1990). That method divides 5% by the
number of scenes whose failures are many enough to be significant at all, which the margins alone
decide; so the chance that an agent that has not changed fails is 5% at most.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from fractions import Fraction
from math import comb
from typing import TypeGuard

import msgspec
from msgspec.structs import replace

from toolshift.core.errors import UsageError
from toolshift.episode.causes import BROKE_DOWN
from toolshift.measure.diagnosis import fault_in_line
from toolshift.measure.gate import MAX_VOID
from toolshift.measure.gate_statistics import Verdict
from toolshift.measure.two_runs import (
    PairedScene,
    baseline_alone,
    check_whole,
    itself_notes,
    pair_runs,
    version_notes,
)
from toolshift.runs.plan import is_placebo
from toolshift.runs.run_folder import Record, RunFolder

LEVEL = Fraction(1, 20)
EXIT_CODES: dict[Verdict, int] = {"pass": 0, "fail": 1, "inconclusive": 3, "error": 4}


class ChangedScene(msgspec.Struct, frozen=True):
    """A scene that always passed in the baseline, and does not now.

    Attributes:
        task: its name; `shifts` the stack, "clean" for the task as it is.
        before: scored trials of the baseline, which all passed; `after` those of the candidate.
        failed: of `after`.
        p_value: of so many failures by chance; 0 where one trial each makes it a fact.
        lost: beyond chance; else the scene does not count against the candidate.
        cause: the commonest root cause of the failures.
        episode: of the candidate, to open.
        said: where its own code broke down: what it raised, or what became of it.
    """

    task: str
    shifts: str
    before: int
    after: int
    failed: int
    p_value: float
    lost: bool
    cause: str
    episode: str
    said: str = ""


class NothingLost(msgspec.Struct, frozen=True):
    """Whether anything that passed fails now.

    Attributes:
        scenes: that always passed in the baseline; only these can be lost.
        unscored: of these, without a verdict on the candidate. What the candidate can bring about
            is no such void: as in the headline, it is a failure.
        changed: the scenes that fail now, those that are lost first.
    """

    verdict: Verdict
    sentence: str
    baseline: str
    candidate: str
    scenes: int
    unscored: int
    changed: list[ChangedScene]
    notes: list[str]

    @property
    def lost(self) -> list[ChangedScene]:
        """What fails the gate."""
        return [scene for scene in self.changed if scene.lost]

    def exit_code(self) -> int:
        """0 pass, 1 fail, 3 inconclusive, 4 error."""
        return EXIT_CODES[self.verdict]


def fisher_p_value(before: int, failed_before: int, after: int, failed: int) -> Fraction:
    """The chance of so many failures in the second group, or more, where both groups are alike.

    Fisher's exact test, one-sided: given the failures of both groups together, those of the second
    are hypergeometric.

    Args:
        before: trials of the first group.
        failed_before: failures in it.
        after: trials of the second group.
        failed: failures in it.

    Returns:
        From 0 to 1, exactly.
    """
    total = failed_before + failed
    ways = sum(
        comb(after, more) * comb(before, total - more)
        for more in range(failed, min(after, total) + 1)
    )
    return Fraction(ways, comb(before + after, total))


def tarone_threshold(least: Iterable[Fraction], level: Fraction = LEVEL) -> Fraction:
    """The level for each of several discrete tests that keeps all of them at `level` together.

    Tarone (1990): the smallest k such that at most k tests could have a p value of `level` / k.

    Args:
        least: of each test the smallest p value that its margins allow.
        level: the chance of any false rejection.

    Returns:
        `level` / k.
    """
    possible = list(least)
    divisor = 1
    while sum(value <= level / divisor for value in possible) > divisor:
        divisor += 1
    return level / divisor


def judge_losses(
    baseline: RunFolder,
    candidate: RunFolder,
    *,
    baseline_agent: str = "",
    candidate_agent: str = "",
    max_void: float = MAX_VOID,
) -> NothingLost:
    """Gates a run by the rule that nothing that passed may fail."""
    runs = pair_runs(baseline, candidate, baseline_agent, candidate_agent)
    check_whole(baseline, runs.scenes)
    groups = _groups(runs.scenes)
    if not any(scene.after is not None for group in groups for scene in group):
        raise UsageError(
            f"{baseline.path} and {candidate.path} have no scene in common: run the candidate with "
            "`toolshift gate --agent`, which takes the baseline's plan"
        )
    found = _changed(baseline, groups, {cell.id for cell in candidate.plan.cells})
    changed = _with_words(candidate, sorted(found.changed, key=lambda scene: not scene.lost))
    found = replace(found, changed=changed)
    verdict, sentence = _verdict(found, _of_baseline(groups, max_void), max_void)
    notes = [
        *version_notes(baseline, candidate),
        *itself_notes(runs, baseline, candidate),
        *_left_out(groups, found),
    ]
    return NothingLost(
        verdict, sentence, runs.before, runs.after, found.always, found.unscored, changed, notes
    )


def nothing_to_lose(
    baseline: RunFolder, candidate: str, baseline_agent: str = "", max_void: float = MAX_VOID
) -> NothingLost | None:
    """The error of a baseline that shows no loss, whatever a candidate of this name does.

    None where something can be lost; so nothing is asked in vain.
    """
    name, scenes = baseline_alone(baseline, candidate, baseline_agent)
    groups = _groups(scenes)
    if not (why := _of_baseline(groups, max_void)):
        return None
    always = _changed(baseline, groups, set()).always
    notes = ["The baseline alone decides this: no scene was run."]
    return NothingLost("error", why, name, candidate, always, always, [], notes)


def _groups(scenes: Iterable[PairedScene]) -> list[list[PairedScene]]:
    """The trials of each scene; the placebo arm is left out."""
    groups: dict[tuple[str, str], list[PairedScene]] = defaultdict(list)
    for one in scenes:
        if not is_placebo(one.cell):
            groups[one.cell.lineage, one.cell.stack].append(one)
    return list(groups.values())


def _of_baseline(groups: Sequence[Sequence[PairedScene]], max_void: float) -> str:
    """Why the baseline shows no loss, whatever the candidate does; "" where it can."""
    every = [one for group in groups for one in group]
    void = sum(not _scored(one.before) for one in every)
    if 100 * void > max_void * len(every):
        return (
            f"error: {void} of {len(every)} episodes are void or missing in the baseline, more "
            f"than {max_void:g}%: fix what failed and run the baseline again"
        )
    if not any(table[0] and not table[1] for table in map(_table, groups)):
        return (
            "error: no scene passed in the baseline, so nothing can be lost: make a baseline "
            "with an agent that works"
        )
    return ""


def _left_out(groups: Sequence[Sequence[PairedScene]], found: _Found) -> list[str]:
    """What could not be lost, or was not looked at, though it is too little for an error."""
    notes = []
    unknown = sum(not any(_scored(one.before) for one in group) for group in groups)
    if unknown:
        notes.append(
            f"{unknown} of {len(groups)} scenes have no verdict in the baseline, so they could not "
            "be lost."
        )
    if found.missing and not found.unscored:
        notes.append(
            f"{found.missing} of {found.trials} episodes of scenes that passed have no verdict now."
        )
    return notes


class _Found(msgspec.Struct, frozen=True):
    """What became of the scenes that always passed.

    Attributes:
        always: how many there are; `unscored` of these have no verdict.
        trials: of these scenes, in the candidate's plan; `missing` of these are void or missing.
        changed: the scenes that fail.
    """

    always: int
    unscored: int
    trials: int
    missing: int
    changed: list[ChangedScene]


def _changed(
    baseline: RunFolder, groups: Sequence[Sequence[PairedScene]], planned: Collection[str]
) -> _Found:
    """The scenes that always passed, and what became of them; `planned` are the candidate's."""
    tables = [_table(group) for group in groups]
    scored = [table for table in tables if table[0] and table[2]]
    threshold = tarone_threshold(_least(*table) for table in scored)
    always = unscored = trials = missing = 0
    changed = []
    for group, table in zip(groups, tables, strict=True):
        before, failed_before, after, failed = table
        if not before or failed_before:
            continue
        always += 1
        unscored += not after
        asked = sum(one.cell.id in planned for one in group)  # it may have fewer trials
        trials += asked
        missing += asked - after
        if failed:
            fact = before == after == 1
            chance = Fraction(0) if fact else fisher_p_value(*table)
            changed.append(_described(baseline, group, table, chance, chance <= threshold))
    return _Found(always, unscored, trials, missing, changed)


def _table(group: Sequence[PairedScene]) -> tuple[int, int, int, int]:
    """Scored trials and failures before, and after."""
    before = [_held(one.before) for one in group if _scored(one.before)]
    after = [_held(one.after) for one in group if _scored(one.after)]
    return len(before), before.count(False), len(after), after.count(False)


def _scored(record: Record | None) -> TypeGuard[Record]:
    """Whether an episode has a verdict; a void that the agent can bring about is one."""
    return record is not None and not record.grade.excused


def _held(record: Record) -> bool:
    """Whether an episode passed; a void that the agent can bring about is a failure."""
    return record.grade.passed and not record.grade.void


def _least(before: int, failed_before: int, after: int, failed: int) -> Fraction:
    """The smallest p value that the margins of a table allow: most failures in the candidate."""
    total = failed_before + failed
    most = min(after, total)
    return fisher_p_value(before, total - most, after, most)


def _described(
    baseline: RunFolder,
    group: Sequence[PairedScene],
    table: tuple[int, int, int, int],
    chance: Fraction,
    lost: bool,
) -> ChangedScene:
    cell = group[0].cell
    failures = [one.after for one in group if _scored(one.after) and not _held(one.after)]
    cause = Counter(record.grade.cause for record in failures).most_common(1)[0][0]
    example = next(record for record in failures if record.grade.cause == cause)
    task = baseline.task_id(cell) or f"{cell.world}/{cell.kind}/{cell.index}"
    stack = cell.stack or "clean"
    before, _, after, failed = table
    return ChangedScene(
        task, stack, before, after, failed, float(chance), lost, cause, example.episode
    )


def _with_words(candidate: RunFolder, changed: Sequence[ChangedScene]) -> list[ChangedScene]:
    """The same; where its own code broke down, with what the trace says of that."""
    broke = {scene.episode for scene in changed if scene.cause == BROKE_DOWN}
    said = {
        record.episode: fault_in_line(record.steps[-1].said)
        for record in candidate.some(broke)
        if record.steps
    }
    return [replace(scene, said=said.get(scene.episode, "")) for scene in changed]


def _verdict(found: _Found, of_baseline: str, max_void: float) -> tuple[Verdict, str]:
    always, unscored, changed = found.always, found.unscored, found.changed
    lost = [scene for scene in changed if scene.lost]
    if lost:
        return "fail", f"fail: {len(lost)} of {always} scenes that always passed are lost"
    if of_baseline:
        return "error", of_baseline
    if 100 * unscored > max_void * always:
        return "error", (
            f"error: {unscored} of {always} scenes that passed have no verdict now, more than "
            f"{max_void:g}%: fix what failed and run it again"
        )
    if 100 * found.missing > max_void * found.trials:
        return "error", (
            f"error: {found.missing} of {found.trials} episodes of scenes that passed have no "
            f"verdict now, more than {max_void:g}%: fix what failed and run it again"
        )
    if unscored:
        return "inconclusive", (
            f"inconclusive: {unscored} of {always} scenes that passed have no verdict now: run it "
            "again"
        )
    never = [scene for scene in changed if scene.failed == scene.after]
    if never:
        return "inconclusive", (
            f"inconclusive: {len(never)} of {always} scenes that always passed never pass now, "
            "but with so few trials this may be chance: use --trials 5 for the baseline"
        )
    if changed:
        return "pass", (
            f"pass: {len(changed)} of {always} scenes that always passed sometimes fail now, "
            "which chance can explain"
        )
    return "pass", f"pass: all {always} scenes that passed still pass"


def loss_in_words(scene: ChangedScene) -> str:
    """A scene that fails now, as a sentence without its end."""
    times = f" {scene.failed} of {scene.after} times" if scene.after > 1 else ""
    chance = "" if scene.lost else " (which chance explains)"
    cause = scene.cause.replace("_", " ")
    said = f": {scene.said}" if scene.said else ""
    return f"{scene.task} under {scene.shifts} fails{times}{chance}: {cause}{said}"

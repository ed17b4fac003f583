"""The page of a study in Markdown: figures over seeds, contrasts, shifts, causes, costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import isnan
from statistics import mean

from toolshift.measure.statistics import Interval
from toolshift.shifts.registry import shifts
from toolshift_lab.arm import Scale
from toolshift_lab.experiments import SCALES
from toolshift_lab.findings import (
    CLAIM,
    ENDS,
    LEAST_LOSS,
    MEASURES,
    PERCENT,
    POINTS,
    ArmResult,
    Findings,
    over_seeds,
)
from toolshift_lab.stage import WORLD_SEED

ABLE = 0.9
"""What a control asks of static training in clean scenes."""
TESTABLE = 0.8
"""What a model trained on a tier alone must reach there; below, the scale cannot test the tier. And
what one that is trained on renamed tools must reach under names that it never saw."""
NAMES = ("identity_erasure", "semantic_rename", "semantic_trap")
BESIDE = (
    "The paper's figures (Qwen2.5-7B-Instruct, full-parameter, 6,050 training and 880 evaluation "
    "samples), and below them ours; change under shift in points. Tiers and refusals are made of "
    "other scenes there, so rows are compared within one source. Ours have in tier 1 {perception}; "
    "in tier 2 {interaction}; in tier 3 {reasoning}."
)
PAPER = (
    ("paper: base", "-29.8", "-8.5", "-8.5", "12.2"),
    ("paper: SFT-200", "-67.7", "-48.2", "-39.9", "0.3"),
    ("paper: SFT-400", "-53.9", "-45.4", "-32.5", "0.0"),
    ("paper: SFT-800", "-50.4", "-45.3", "-28.0", "0.2"),
    ("paper: PAFT, alpha 0.2", "-6.9", "-7.7", "-15.8", "90.4"),
    ("paper: PAFT, alpha 0.3", "-4.1", "-5.3", "-9.8", "99.6"),
    ("paper: PAFT, alpha 0.4", "-5.3", "-7.8", "-11.1", "96.4"),
)
COST = (
    "Of the fits alone, by seed. Seconds are of the whole fit, pauses included; CPU seconds are "
    "those of the processor beside a GPU, too, so they compare only fits on one device."
)


def page(found: Findings, command: str) -> str:
    """The study as a page in Markdown: figures over seeds, contrasts, shifts, causes, costs."""
    scale = SCALES[found.scale]
    said = [f"# {found.study}", "", found.question, ""]
    if not found.evidence:
        said += ["**No evidence: a tiny untrained model, to run the code path only.**", ""]
    elif found.exploratory:
        few = [f"{arm.arm} ({_seeds(arm)})" for arm in found.arms if arm.few_seeds]
        below = f"fewer than {CLAIM} seeds have been run of {', '.join(few)}"
        said += [f"**Exploratory: {below if few else 'not all has been run'}.**", ""]
    if found.missing:
        said += [f"Not run yet: {'; '.join(found.missing)}.", ""]
    said += [
        f"World {scale.home}, kinds: {', '.join(scale.kinds) or 'all'}; the size of each arm is "
        f"below; measured {_elsewhere(scale)}on {scale.tasks} tasks under each shift, pool "
        f"{found.pool}, world seed "
        f"{WORLD_SEED}, greedy. Rates are in percent; changes in points, shifted minus clean on "
        "the same tasks. In brackets: 95% t interval with the training seed as the cluster; all "
        "seeds are measured on the same tasks, so it does not speak of other tasks. A figure "
        "without brackets is one seed, or the same for all; arms of different seeds are compared "
        "by the contrasts, which pair them. n.d.: not defined, as where the clean "
        "accuracy is under one half; for how many of the seeds is said."
        + f" Graded by ToolShift {' and '.join(found.graded_by)}."
        * bool(found.graded_by),
        "",
        *_table(("arm", "seeds", *MEASURES), [_arm_row(arm) for arm in found.arms]),
        "",
        *(f"- `{name}`: {text}" for name, text in MEASURES.items()),
        "",
    ]
    if found.contrasts:
        rows = [
            [name, *(_cell(measure, over_seeds(values[measure])) for measure in MEASURES)]
            for name, values in found.contrasts.items()
        ]
        said += ["## Contrasts, paired by seed", "", *_table(("contrast", *MEASURES), rows), ""]
        rows = [
            [name, *(_cell("clean", over_seeds(values[tier])) for tier in POINTS)]
            for name, values in found.won_back.items()
        ]
        said += ["Of the first arm's loss in a tier, the share that the second does not have, in "
                 f"percent (n.d. where the first loses less than {LEAST_LOSS} points):", "",
                 *_table(("contrast", *POINTS), rows), ""]  # fmt: skip
    said += _beyond_placebo(found)
    said += ["## Accuracy by shift, percent", ""]
    said += ["![accuracy of each arm under each shift](accuracy.svg)", ""] if found.arms else []
    said += [*_rate_table("shift", [(arm.arm, arm.shifts) for arm in found.arms]), ""]
    said += ["By kind of task, over all shifts:", ""]
    said += [*_rate_table("kind", [(arm.arm, arm.kinds) for arm in found.arms]), ""]
    said += _reward_table(found.arms)
    void = [f"{arm.arm} {arm.void}" for arm in found.arms if arm.void]
    said += [f"Void episodes, which count as nothing above: {', '.join(void)}.", ""] if void else []
    said += _controls(found.arms)
    said += ["## Root causes of failures", "", "Counted over all seeds of an arm.", ""]
    said += [*_cause_table(found.arms), ""]
    said += ["## Beside the paper", "", *_beside(found.arms), ""]
    said += ["## What it took", "", COST, "", *_cost_table(found.arms), ""]
    return "\n".join([*said, "```console", f"$ {command}", "```", ""])


def _beyond_placebo(found: Findings) -> list[str]:
    """What is lost beyond what the placebo takes, and whether single runs can tell."""
    arms = [arm for arm in found.arms if arm.beyond]
    if not arms:
        return []
    rows = [
        [
            arm.arm,
            *(text for tier in POINTS for text in (_beyond_cell(arm, tier), _told(arm, tier))),
        ]
        for arm in arms
    ]
    columns = ("arm", *(text for tier in POINTS for text in (tier, "significant")))
    said = [
        "## Beyond the placebo",
        "",
        "The placebo changes nothing that matters, so what is lost there is no loss to a shift. "
        "The change in each tier less that under the placebo, in points; and in how many of the "
        "seeds the run's own report tells the loss from chance and from the placebo, a test over "
        f"the {SCALES[found.scale].tasks} tasks of one run.",
        "",
        *_table(columns, rows),
        "",
    ]
    rows = [
        [name, *(_cell("clean", over_seeds(values[tier])) for tier in POINTS)]
        for name, values in found.won_back_beyond.items()
    ]
    if rows:
        said += ["Won back of that, in percent:", "", *_table(("contrast", *POINTS), rows), ""]
    return said


def _beyond_cell(arm: ArmResult, tier: str) -> str:
    return _cell(tier, over_seeds(arm.beyond[tier]))


def _told(arm: ArmResult, tier: str) -> str:
    return f"{sum(arm.told_apart[tier])} of {len(arm.told_apart[tier])}"


def _reward_table(arms: Sequence[ArmResult]) -> list[str]:
    """Whether RL learned anything, of the arms that it trained."""
    trained = [arm for arm in arms if arm.rewards]
    if not trained:
        return []
    rows = [
        [
            arm.arm,
            ", ".join("n.d." if isnan(a) else f"{a:.2f} → {b:.2f}" for a, b in arm.rewards),
            f"{sum(arm.rose)} of {len(arm.rose)}",
        ]
        for arm in trained
    ]
    flat = [arm.arm for arm in trained if not all(arm.rose)]
    said = (
        f"The mean reward of the first {ENDS} steps and of the last {ENDS}, by seed, over the "
        f"scenes as they were first drawn (n.d.: fewer than {2 * ENDS} steps)."
    )
    if flat:
        said += (
            f" **It is not seen to rise in every seed of {', '.join(flat)}: their figures say "
            "nothing of what RL does.**"
        )
    columns = ("arm", "reward, first → last", "rose in")
    return ["## Rewards of RL", "", said, "", *_table(columns, rows), ""]


def _controls(arms: Sequence[ArmResult]) -> list[str]:
    """Whether the scale can do the tasks, read names, and learn each tier: figures and verdicts."""
    rows = [row for arm in arms for row in _control(arm)]
    if not any(arm.arm.startswith(("native-", "renamed")) for arm in arms):
        return []
    columns = ("control", "on", "passed, percent", "by seed or shift", "asked for", "met")
    said = (
        "Each is the mean over seeds, and over the shifts named. Where a model that was trained on "
        f"a tier alone passes less than {100 * TESTABLE:.0f}% there, the tier is not testable at "
        "this scale."
    )
    return ["## Controls", "", said, "", *_table(columns, rows), ""]


def _control(arm: ArmResult) -> list[list[str]]:
    """The row of an arm that is a control."""
    if arm.arm == "static":
        return [_verdict(arm.arm, "clean scenes", arm.measures["clean"], ABLE)]
    if arm.arm.startswith("renamed"):
        passed = [mean(arm.shifts[name]) for name in NAMES if name in arm.shifts]
        return [_verdict(arm.arm, "names that it never saw", passed, TESTABLE)]
    if arm.arm.startswith("native-"):
        tier = arm.arm.removeprefix("native-")
        return [_verdict(arm.arm, tier, [mean(rates) for rates in arm.shifts.values()], TESTABLE)]
    return []


def _verdict(name: str, where: str, passed: Sequence[float], asked: float) -> list[str]:
    spread = f"{100 * min(passed):.0f} to {100 * max(passed):.0f}"
    met = "yes" if mean(passed) >= asked else "**no**"
    return [name, where, f"{100 * mean(passed):.0f}", spread, f"{100 * asked:.0f}", met]


def _elsewhere(scale: Scale) -> str:
    """Where arms are measured, if that is not where they are trained."""
    return "" if scale.world == scale.home else f"in the world {scale.world}, all its kinds, "


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    rule = "|---|" + "---:|" * (len(columns) - 1)
    return [f"| {' | '.join(columns)} |", rule, *(f"| {' | '.join(row)} |" for row in rows)]


def _arm_row(arm: ArmResult) -> list[str]:
    return [
        f"{arm.arm}: {arm.summary}",
        str(len(arm.seeds)),
        *(_cell(m, arm.interval(m), m in PERCENT) for m in MEASURES),
    ]


def _cell(measure: str, interval: Interval, rate: bool = False) -> str:
    """A figure with its interval over seeds; that of a rate ends at 0 and 100%."""
    if isnan(interval.estimate):
        return f"n.d. ({interval.method})" if interval.method != "none" else "n.d."
    scale, digits = (100, 0) if measure in PERCENT else (1, 0 if measure in POINTS else 2)
    low, high = scale * interval.low, scale * interval.high
    if rate:
        low, high = max(low, 0.0), min(high, 100.0)
    text = f"{scale * interval.estimate:z.{digits}f}"
    return text if isnan(low) else f"{text} [{low:z.{digits}f}, {high:z.{digits}f}]"


def _rate_table(what: str, arms: Sequence[tuple[str, dict[str, list[float]]]]) -> list[str]:
    """A rate for each arm (across) and each shift or kind (down), over seeds."""
    names = list(dict.fromkeys(name for _, rates in arms for name in rates))
    rows = [
        [name, *(_cell("clean", over_seeds(rates.get(name, [])), True) for _, rates in arms)]
        for name in names
    ]
    return _table((what, *(arm for arm, _ in arms)), rows)


def _cause_table(arms: Sequence[ArmResult]) -> list[str]:
    total = Counter[str]()
    for arm in arms:
        total.update(arm.causes)
    rows = [
        [name, *(str(arm.causes.get(name, 0)) for arm in arms)] for name, _ in total.most_common()
    ]
    return _table(("cause", *(arm.arm for arm in arms)), rows)


def _seeds(arm: ArmResult) -> str:
    return f"{len(arm.seeds)} seed{'s' * (len(arm.seeds) != 1)}"


def _beside(arms: Sequence[ArmResult]) -> list[str]:
    """The paper's rows, and below them those of the study."""
    names = list(dict.fromkeys(name for arm in arms for name in arm.shifts))
    made_of = {}
    for tier in POINTS:
        own = [f"`{name}`" for name in names if name in shifts() and shifts()[name].tier == tier]
        made_of[tier] = ", ".join(own) or "none"
    ours = [
        [
            f"{arm.arm}, {_seeds(arm)}",
            *(_cell(measure, arm.interval(measure)) for measure in POINTS),
            _cell("refusal_rate", arm.interval("refusal_rate"), True),
        ]
        for arm in arms
    ]
    columns = ("model", "tier 1", "tier 2", "tier 3", "refusal rate, percent")
    return [BESIDE.format(**made_of), "", *_table(columns, [*map(list, PAPER), *ours])]


def _cost_table(arms: Sequence[ArmResult]) -> list[str]:
    rows = [
        [
            arm.arm,
            ", ".join(map(str, arm.seeds)),
            *(", ".join(map(str, each)) for each in (arm.rows, arm.steps)),
            ", ".join(f"{tokens / 1e6:.2f}" for tokens in arm.tokens),
            *(
                ", ".join("-" if isnan(each) else f"{each:.0f}" for each in seconds)
                for seconds in (arm.wall_seconds, arm.cpu_seconds)
            ),
            "; ".join(dict.fromkeys(arm.devices)),
            "; ".join(dict.fromkeys(arm.computed_in)),
        ]
        for arm in arms
    ]
    columns = ("arm", "which seeds", "trajectories' rows", "steps", "million tokens", "seconds",
               "CPU seconds", "trained on", "computed in: training, measurement")  # fmt: skip
    return _table(columns, rows)

"""Counts what the pages `reads` and `shipped` say beyond their plans, from the raw episodes.

python studies/reads/recount.py
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from toolshift_lab.experiments import find_scale
from toolshift_lab.planned import measured_in, read_plan, take_up
from toolshift_lab.stage import stages

from toolshift.core.files import lines
from toolshift.core.scene import Scene
from toolshift.core.shift import split_version
from toolshift.core.step import Step
from toolshift.measure.crossed import Crossed, crossed_difference, crossed_mean
from toolshift.measure.statistics import paired_drop
from toolshift.runs.run_folder import RunFolder
from toolshift.train.scenes import draw
from toolshift.train.screen import Tried

HERE = Path(__file__).parent
STUDIES = HERE.parent
Scores = Mapping[str, Mapping[str, float]]
"""By shifts and task, whether an episode passed."""

OPAQUE, TEXT, OTHERS = "identity_erasure:3", "described_by_data:3", "other_tools:2"
ERRORS = "transient_error:2"


def key(*shifts: str) -> str:
    """Shifts as one word, whatever their order."""
    return "+".join(sorted("+".join(shifts).split("+")))


def scores(run: RunFolder, refused: bool = False) -> Scores:
    """What passed, or was refused."""
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for record in run.records():
        cell = run.cell(record)
        value = record.grade.refused if refused else record.grade.passed
        found[key(cell.stack or "clean")][cell.task] = float(value)
    return found


def runs(plan: str, arm: str) -> list[RunFolder]:
    """The runs of an arm, by seed."""
    read = read_plan(HERE / f"{plan}.toml")
    study, scale = take_up(read)
    scale = measured_in(scale, read.measured_in)
    made = stages(study, scale, study.seeds, STUDIES / "stages", (arm,), read.pool)
    return [RunFolder.read(stage.run) for stage in made if stage.measured]


def table(seeds: Sequence[Scores], shifts: str, tasks: Sequence[str]) -> list[list[float]]:
    """Scores, seeds by tasks."""
    return [[seed[shifts][task] for task in tasks] for seed in seeds]


def told(one: Crossed) -> str:
    """Percent or points, with the interval."""
    at = one.interval
    return f"{100 * at.estimate:.0f} [{100 * at.low:.0f}, {100 * at.high:.0f}]"


def cells(seeds: Sequence[Scores], others: Sequence[Scores] = ()) -> None:
    """Every cell of a plan that all tasks meet: percent, interval, seeds, and what others have."""
    most = max(map(len, seeds[0].values()))
    for shifts, by_task in seeds[0].items():
        if len(by_task) == most:
            rows = table(seeds, shifts, list(by_task))
            each = ", ".join(f"{100 * sum(row) / len(row):.0f}" for row in rows)
            at = crossed_mean(rows).interval  # a share is no less than 0
            low, high = max(0, 100 * at.low), 100 * at.high
            more = (
                f"; {told(crossed_difference(rows, table(others, shifts, list(by_task))))}"
                if others
                else ""
            )
            print(f"  {shifts}: {100 * at.estimate:.0f} [{low:.0f}, {high:.0f}] ({each}){more}")


def lost(seeds: Sequence[Scores], what: str, before: str, after: str) -> None:
    """What is lost from one cell to another, paired by task."""
    tasks = list(seeds[0][before])
    pairs = zip(table(seeds, before, tasks), table(seeds, after, tasks), strict=True)
    drops = [[b - a for b, a in zip(one, two, strict=True)] for one, two in pairs]
    print(f"  {what}: {told(crossed_mean(drops))}")


def refusals_of_the_unsolvable() -> None:
    """What is refused at all in rl-refusal.toml, and how episodes end with a tool that fails."""
    print("rl-refusal, of 48 unsolvable scenes: refused (passed); of 24 fatal: repeated, answered")
    for arm in ("shipped", "rl-solvable", "rl-paid"):
        for run in runs("rl-refusal", arm):
            found = [(run.cell(one).stack, one) for one in run.records()]
            away = [one for stack, one in found if stack in ("fatal_error:2", "no_such_entity:2")]
            fatal = [one for stack, one in found if stack == "fatal_error:2"]
            refused = sum(one.grade.refused for one in away)
            passed = sum(one.grade.passed for one in away)
            again = sum(one.grade.cause == "repetition" for one in fatal)
            answered = sum(one.end == "answered" for one in fatal)
            print(f"  {arm}: {refused} ({passed}); {again}, {answered}")


def continuations() -> None:
    """The arms of fill.toml: every cell, releases by seed, and what is refused under errors."""
    for arm in ("shipped", "filled", "more"):
        read = runs("fill", arm)
        print(f"fill.toml, {arm}, percent passed (seeds)")
        cells([scores(run) for run in read])
        for run in read:
            found = [(key(run.cell(one).stack or "clean"), one) for one in run.records()]
            count = Counter(stack for stack, _ in found)
            dealt = [(stack, one.grade.passed) for stack, one in found if count[stack] < 20]
            renamed = [passed for stack, passed in dealt if "parameter_rename" in stack]
            refused = [one for stack, one in found if stack == ERRORS and one.grade.refused]
            once = sum(len(one.steps) == 2 for one in refused)  # the call that failed, the refusal
            print(
                f"  one release each: {sum(p for _, p in dealt)} of {len(dealt)} pass, of those "
                f"that rename parameters {sum(renamed)} of {len(renamed)}; calls that fail at "
                f"first: {len(refused)} refused, {once} of them after one call"
            )


def releases() -> None:
    """Why `filled` fails under published releases in poi, and how many add tools like ours."""
    run = RunFolder.read(STUDIES / "shipped" / "filled_realistic")
    met = [one for one in run.records() if run.cell(one).stack not in ("", "placebo:2")]
    for agent in ("smol:paft", "filled"):
        ours = [one for one in met if one.agent == agent]
        why = Counter(one.grade.cause for one in ours if not one.grade.passed)
        like = sum("distractor_tools" in (run.cell(one).stack or "") for one in ours)
        causes = ", ".join(f"{count} {cause}" for cause, count in why.most_common())
        print(f"shipped, realistic, {agent}: {sum(one.grade.passed for one in ours)} of {len(ours)}"
              f" pass; {like} add tools like the right one; {causes}")  # fmt: skip


def filled_wrongly() -> None:
    """Which first call of a failed episode is refused, and for what, where parameters are new."""
    for name in ("parameters", "renamed", "renamed_before"):
        run = RunFolder.read(STUDIES / "shipped" / name)
        why: dict[str, Counter[str]] = defaultdict(Counter)
        for record in run.records():
            stack = key(run.cell(record).stack or "clean")
            calls = [step for step in record.steps if step.kind == "call"]
            place = next((n for n, step in enumerate(calls) if not step.true), None)
            if record.grade.passed or place is None or "parameter" not in stack:
                continue
            kind = _fault(run.scene(run.cell(record)), calls[place])
            if "opaque_parameters" in stack:  # names that are never the same twice
                kind = kind.partition(" (")[0]
            why[stack][kind] += 1
            why[stack]["at the first call"] += place == 0
            why[stack]["refuses at last"] += record.grade.refused
        print(f"{name}, first refused call of failed episodes")
        for stack, counts in why.items():
            print(f"  {stack}: {', '.join(f'{n} {kind}' for kind, n in counts.most_common())}")


def _fault(scene: Scene, step: Step) -> str:
    """What is wrong with a call that its tool did not take."""
    tool = next((tool for tool in scene.tools if tool.name == step.name), None)
    if tool is None or not isinstance(step.arguments, dict):
        return "cannot be read" if tool else "no such tool"
    shown, said = {param.name for param in tool.params}, set(step.arguments)
    if alien := sorted(said - shown):
        return f"no such parameter ({alien[0].lower()})"
    missing = {param.name for param in tool.params if param.required} - said
    return "one left out" if missing else "wrong value"


def screened() -> None:
    """What rl-shifted may learn from: of the scenes that it draws, those that pass at times."""
    read = read_plan(HERE / "rl-shifted.toml")
    study, scale = take_up(read)
    arm = next(one for one in study.arms if one.name == "rl-shifted")
    drawn, kept = Counter[str](), Counter[str]()
    for stage in stages(study, scale, study.seeds, STUDIES / "stages", (arm.name,), read.pool):
        mix = arm.mixed(find_scale(scale), stage.seed)
        tried = lines(stage.folder / "screen.jsonl", Tried)
        for one in tried:
            names = (split_version(each.shift)[0] for each in draw(mix, one.scene).shifts)
            name = "+".join(names) or "clean"
            drawn[name] += 1
            kept[name] += 1 <= one.passed <= one.samples - 1
    print("\nrl-shifted: scenes of which 1 to 3 of 4 samples pass, of those drawn (three seeds)")
    for name, count in drawn.most_common():
        print(f"  {name}: {kept[name]} of {count}")
    print(f"  all: {kept.total()} of {drawn.total()}")


def main() -> None:
    """Prints all of it."""
    read = runs("plan", "paft-read")
    seeds = [scores(run) for run in read]
    hardest = key(OPAQUE, TEXT, OTHERS)
    print("paft-read, percent passed (seeds)")
    cells(seeds)
    print("paft-read, points lost")
    lost(seeds, "to descriptions alone, opaque names", key(OPAQUE), key(OPAQUE, TEXT))
    lost(seeds, "to the list beside them", key(OPAQUE, TEXT), hardest)
    lost(seeds, "to the list alone, opaque names", key(OPAQUE), key(OPAQUE, OTHERS))
    lost(seeds, "to options with padding", "clean", "schema_noise:2")
    refusals = [scores(run, refused=True) for run in read]
    noise = [value for seed in refusals for value in seed["schema_noise:2"].values()]
    print(f"  refused under options with padding: {sum(noise):.0f} of {len(noise)}")
    first = refusals[0]["transient_error:2"].values()
    print(f"  refused where calls fail at first, seed 0: {sum(first):.0f} of {len(first)}")
    away = {"fatal_error:2", "no_such_entity:2"}
    away |= {f"{name.removesuffix(':2')}_lookalike:2" for name in away}
    rest = [v for seed in refusals for k, by in seed.items() if k not in away for v in by.values()]
    print(f"  refused of other solvable scenes: {100 * sum(rest) / len(rest):.0f} percent")
    for arm in ("paft", "diverse", "paft-graph"):
        control = [scores(run) for run in runs("plan", arm)]
        print(f"{arm}, percent passed (seeds); paft-read passes so many points more, unpaired")
        cells(control, seeds)
        each = [[v for by in one.values() if len(by) < 20 for v in by.values()] for one in control]
        shares = ", ".join(f"{100 * sum(one) / len(one):.0f}" for one in each)
        print(f"  one release each: {shares} (of {len(each[0])})")
        both = [
            [v for name in ("fatal_error:2", "no_such_entity:2") for v in one[name].values()]
            for one in control
        ]
        right = ", ".join(f"{100 * sum(one) / len(one):.0f}" for one in both)
        print(f"  unsolvable, passed: {right}")
        wrong = [scores(run, refused=True) for run in runs("plan", arm)]
        fails = ", ".join(f"{sum(one['transient_error:2'].values()):.0f}" for one in wrong)
        print(f"  refused where calls fail at first: {fails} of {len(first)}")
    mended = [scores(run) for run in runs("mend", "mended")]
    shared = [task for task in mended[0][hardest] if task in seeds[0][hardest]]
    pair = (table(mended, hardest, shared), table(seeds, hardest, shared))
    more = told(crossed_difference(*pair))
    print(f"paft-read less mended, hardest cell, {len(shared)} tasks: {more}")
    apart = scores(RunFolder.read(STUDIES / "shipped" / "apart"))
    base, behind = apart[key(OPAQUE)], apart[key(OPAQUE, TEXT, "other_tools_last:2")]
    drop = paired_drop({t: [v] for t, v in base.items()}, {t: [v] for t, v in behind.items()})
    print(f"apart, descriptions and tools behind together: {100 * drop.estimate:.0f} "
          f"[{100 * drop.low:.0f}, {100 * drop.high:.0f}]")  # fmt: skip
    for shifts in (key(OTHERS), key(TEXT), key(TEXT, OTHERS)):
        print(f"apart, true names, {shifts}: {sum(apart[shifts].values()):.0f} of 24")
    refusals_of_the_unsolvable()
    continuations()
    releases()
    filled_wrongly()
    screened()


if __name__ == "__main__":
    main()

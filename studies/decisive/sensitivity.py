"""Looks at the decisive study again, beside its plan: accuracy, unpaired, by form of name.

    python studies/decisive/sensitivity.py

Reads the stored episodes, trains and plays nothing, and writes `sensitivity.md` and `.json` beside
itself, in less than a minute. None of these analyses was planned: they were added after the results
had been seen. Where they differ from the plan's own, the plan's own are the test.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from math import isnan
from pathlib import Path
from statistics import mean
from typing import Any

import msgspec
import numpy as np
from toolshift_lab.endpoints import ArmEndpoint, Contrast, Endpoints, Scores, compared
from toolshift_lab.endpoints import scores_of_run as scores_of
from toolshift_lab.frozen import frozen_stages, unpack
from toolshift_lab.planned import Endpoint, Pair, PlanFile, read_plan

from toolshift.core.errors import UsageError
from toolshift.core.files import read_bytes, stored
from toolshift.measure.crossed import Crossed, crossed_mean
from toolshift.measure.statistics import seed_contrast
from toolshift.runs.cell import Cell, build
from toolshift.runs.run_folder import RunFolder

HERE = Path(__file__).parent
STAGES = unpack(HERE.parent / "stages")
IN_POI = "test 3593f601"
"""What the stages of the plan and of its ablations were measured in: `runs` of the table."""
LOOKUPS = ("listing", "hours", "route", "visit")
SEEN_BEFORE = 2
"""Of each kind of look-up, the first tasks: earlier studies had these in their test pool."""
RENAMINGS = ("identity_erasure:3", "semantic_rename:3", "semantic_trap:3")
T12, T3, HELD6 = "tiers 1 and 2", "tier 3 without reversed_order", "mechanisms held out"
HELD8 = "all eight mechanisms held out"
RIGHT, WRONG = "right refusal", "wrong refusal"
CLEAN, REFUSES_CLEAN, RENAMED = "clean", "refuses clean tasks", "renamings"
ARMS = ("static", "diverse", "paft", "paft-graph", "paft-graph-dagger")
ABLATIONS = ("paft-graph-aggregated", "alpha-0-1", "alpha-0-6", "data-x4", "steps-x4")
Told = dict[str, dict[int, Scores]]


def main() -> None:
    """Writes the page and its figures."""
    told, episodes, void = read_all()
    plan, forms = widened(read_plan(HERE / "plan.toml")), forms_of_names()
    found: dict[str, Any] = {
        "plan_sha256": plan.sha256, "episodes": episodes, "void": void,
        "tasks": dict(sorted(counts(forms).items())),
        "scenes_with_all_descriptions_in_place": descriptions(),
    }  # fmt: skip
    whole = compared(plan, told)
    plain = compared(plan, only(told, lambda task: forms[task] == "look-ups, plain names"))
    fresh = compared(plan, only(told, is_fresh))
    found["arms"] = arms_of(whole)
    found["contrasts"] = contrasts_of(whole)
    found["plain_lookups"] = {"arms": arms_of(plain), "contrasts": contrasts_of(plain)}
    found["without_tasks_seen_before"] = arms_of(fresh)
    found["kinds_as_clusters"] = by_clusters(told, plan)
    found["look_alikes_less_clean"] = net_refusals(told, plan, forms)
    found["forms"] = by_form(told, plan, forms)
    found["counts"] = passed_counts(told)
    told_whole = json.dumps(found, separators=(",", ":")) + "\n"
    (HERE / "sensitivity.json.xz").write_bytes(lzma.compress(told_whole.encode()))
    (HERE / "sensitivity.md").write_text(page(found))


def read_all() -> tuple[Told, int, int]:
    """The scores of all stages that were measured in the plan's scenes, and how many episodes."""
    told: Told = {}
    episodes = void = 0
    for row in frozen_stages(STAGES):
        if row.scale != "decisive" or not (name := row.runs.get(IN_POI)):
            continue
        run = STAGES / row.folder / name
        content = read_bytes(stored(run / "episodes.jsonl"))
        if hashlib.sha256(content).hexdigest() != row.episodes_sha256[name]:
            raise UsageError(f"{run} is not what was measured: restore it from the repository")
        episodes += content.count(b"\n")
        void += content.count(b'"void":true')
        told.setdefault(row.arm, {})[row.seed] = scores_of(run)
    names = ("base", *ARMS, *ABLATIONS, *told)
    return {name: told[name] for name in dict.fromkeys(names)}, episodes, void


def widened(plan: PlanFile) -> PlanFile:
    """The plan with endpoints and a contrast that it lacks, none of them primary."""
    held6 = next(each for each in plan.secondary if each.name == HELD6)
    more = (
        Endpoint(HELD8, "drop", (*held6.shifts, "semantic_trap:3", "format_drift:2")),
        Endpoint(RENAMED, "drop", RENAMINGS),
        Endpoint(CLEAN, "passed", ()),
        Endpoint(REFUSES_CLEAN, "refused", ()),
    )
    pairs = (*plan.contrasts, Pair("diverse", "paft"), Pair("diverse", "paft-graph"))
    further = [msgspec.structs.replace(plan.arms[1], name=name) for name in ABLATIONS]
    return msgspec.structs.replace(
        plan, secondary=(*plan.secondary, *more), contrasts=pairs, arms=(*plan.arms, *further)
    )


def cells() -> Iterator[Cell]:
    """The scenes of the plan, by any stage that was measured in them."""
    row = next(each for each in frozen_stages(STAGES) if IN_POI in each.runs)
    folder = RunFolder.read(STAGES / row.folder / row.runs[IN_POI])
    return map(folder.cell, folder.records())


def forms_of_names() -> dict[str, str]:
    """By task: whether it is a look-up, and whether its place ends in a phrase ("at Nine").

    A phrase is told by a word in lower case; of the 26 endings in training three are of that kind
    ("and Sons", "of Wonders", "by the Lake"), of the seven of the test pool two.
    """
    told = {}
    for cell in cells():
        if not cell.shifts:
            name = build(cell).rehearsal[0].arguments["name"]
            kind = "look-ups" if cell.kind in LOOKUPS else "choices"
            form = "names with a phrase" if re.search(r"\b[a-z]+\b", name) else "plain names"
            told[cell.lineage] = f"{kind}, {form}"
    return told


def counts(forms: Mapping[str, str]) -> dict[str, int]:
    """How many tasks each cell of kind and form has."""
    return {form: list(forms.values()).count(form) for form in set(forms.values())}


def descriptions() -> list[int]:
    """Of the scenes of the three renamings, in how many every description is where it was."""
    clean: dict[str, list[str]] = {}
    scenes: list[tuple[str, list[str]]] = []
    for cell in cells():
        shifts = [f"{each.shift.partition('@')[0]}:{each.severity}" for each in cell.shifts]
        if not shifts or shifts[0] in RENAMINGS:
            listed = [tool.description for tool in build(cell).tools]
            if shifts:
                scenes.append((cell.lineage, listed))
            else:
                clean[cell.lineage] = listed
    same = sum(clean[lineage] == listed for lineage, listed in scenes)
    return [same, len(scenes)]


def only(told: Told, wanted: Callable[[str], bool]) -> Told:
    """The scores of some tasks."""
    return {
        arm: {
            seed: {s: {t: one for t, one in tasks.items() if wanted(t)} for s, tasks in x.items()}
            for seed, x in by_seed.items()
        }
        for arm, by_seed in told.items()
    }


def is_fresh(task: str) -> bool:
    """Whether no earlier study had a task in its own test pool."""
    kind, index = task.split("/")[1], int(task.rsplit("/", 1)[1])
    return kind not in LOOKUPS or index >= SEEN_BEFORE


def figure(found: Crossed) -> dict[str, float | int]:
    """A mean in points, with its limits and its design."""
    one = found.interval
    values = {"points": one.estimate, "low": one.low, "high": one.high}
    rounded = {name: round(100 * value, 4) for name, value in values.items()}
    return {**rounded, "seeds": found.seeds, "tasks": found.tasks}


def arms_of(found: Endpoints) -> dict[str, dict[str, Any]]:
    """By arm and endpoint: the figure, and of a drop what passes under its shifts."""
    told: dict[str, dict[str, Any]] = {}
    for each in found.arms:
        told.setdefault(each.arm, {}).update(_of_arm(each))
    return told


def _of_arm(each: ArmEndpoint) -> dict[str, Any]:
    if each.accuracy is None:
        return {each.endpoint: figure(each.found)}
    drop = {} if not each.defined else {f"drop in {each.endpoint}": figure(each.found)}
    return {f"passed in {each.endpoint}": figure(each.accuracy), **drop}


def contrasts_of(found: Endpoints) -> dict[str, dict[str, Any]]:
    """By pair and endpoint: the drop paired and unpaired, and the accuracy, unpaired."""
    told: dict[str, dict[str, Any]] = {}
    for each in found.contrasts:
        mine = told.setdefault(f"{each.second} - {each.first}", {})
        mine[each.endpoint] = _of_contrast(each)
    return told


def _of_contrast(each: Contrast) -> dict[str, Any]:
    ways = {"paired": each.found, "unpaired": each.unpaired, "accuracy": each.accuracy}
    told = {way: figure(one) for way, one in ways.items() if one is not None}
    few = not isnan(each.clean) and each.clean < 0.5
    return {way: one for way, one in told.items() if way == "accuracy" or not few}


def by_task(endpoint: Endpoint, scores: Scores) -> dict[str, float]:
    """An endpoint by task: a share, or a drop."""
    stacks = endpoint.shifts or ("",)
    which = endpoint.measure == "refused"
    found: dict[str, list[float]] = {}
    for stack in stacks:
        for task, one in scores.get(stack, {}).items():
            found.setdefault(task, []).append(float(one[which]))
    told = {task: mean(values) for task, values in found.items()}
    if endpoint.measure == "drop":
        told = {task: float(scores[""][task][0]) - value for task, value in told.items()}
    return told


def endpoint_of(plan: PlanFile, name: str) -> Endpoint:
    """An endpoint by its name."""
    return next(each for each in (*plan.endpoints, *plan.secondary) if each.name == name)


def by_clusters(told: Told, plan: PlanFile) -> dict[str, dict[str, float]]:
    """Drops in tiers 1 and 2 where the six kinds are the clusters: t over six means."""
    endpoint = endpoint_of(plan, T12)
    kinds = {arm: _kind_means(endpoint, told[arm]) for arm in ("static", "paft")}
    less = [b - a for a, b in zip(kinds["static"], kinds["paft"], strict=True)]
    rows = {**kinds, "paft - static": less}
    return {name: _limits(values) for name, values in rows.items()}


def _kind_means(endpoint: Endpoint, by_seed: dict[int, Scores]) -> list[float]:
    tables = [by_task(endpoint, scores) for scores in by_seed.values()]
    tasks = sorted(tables[0], key=lambda task: task.split("/")[1])
    groups = groupby(tasks, key=lambda task: task.split("/")[1])
    return [mean(t[task] for t in tables for task in mine) for _, mine in
            ((kind, list(group)) for kind, group in groups)]  # fmt: skip


def _limits(values: list[float]) -> dict[str, float]:
    one = seed_contrast(values)
    told = {"points": one.estimate, "low": one.low, "high": one.high}
    return {name: round(100 * value, 2) for name, value in told.items()}


def net_refusals(told: Told, plan: PlanFile, forms: Mapping[str, str]) -> dict[str, Any]:
    """Refusals of look-alikes less those of the same tasks when clean."""
    wrong, clean = endpoint_of(plan, WRONG), endpoint_of(plan, REFUSES_CLEAN)
    found = {}
    for arm in ("paft", "paft-graph", "paft-graph-dagger"):
        tables = []
        for seed in sorted(told[arm]):
            like, plain = by_task(wrong, told[arm][seed]), by_task(clean, told[arm][seed])
            tables.append([like[task] - plain[task] for task in sorted(forms)])
        found[arm] = figure(crossed_mean(np.array(tables)))
    return found


def by_form(told: Told, plan: PlanFile, forms: Mapping[str, str]) -> dict[str, Any]:
    """By kind and form of name: means over seeds and tasks, in percent and points."""
    found: dict[str, Any] = {}
    for form in sorted(set(forms.values())):
        mine = only(told, lambda task, form=form: forms[task] == form)
        found[form] = {
            name: {
                arm: round(100 * mean(v for s in mine[arm].values()
                                      for v in by_task(endpoint_of(plan, name), s).values()), 1)
                for arm in ARMS
            }
            for name in (CLEAN, REFUSES_CLEAN, WRONG, T12)
        }  # fmt: skip
        found[form]["clean refusals"] = {
            arm: sum(one[1] for s in mine[arm].values() for one in s[""].values()) for arm in ARMS
        }
        found[form]["look-alikes refused"] = {
            arm: sum(
                one[1]
                for s in mine[arm].values()
                for stack in endpoint_of(plan, WRONG).shifts
                for one in s[stack].values()
            )
            for arm in ARMS
        }
    return found


def passed_counts(told: Told) -> dict[str, dict[str, list[int]]]:
    """By arm and scene: passes and scenes, over the seeds."""
    found: dict[str, dict[str, list[int]]] = {}
    for arm in (*ARMS, *ABLATIONS):
        for scores in told[arm].values():
            for stack, tasks in scores.items():
                mine = found.setdefault(arm, {}).setdefault(stack or CLEAN, [0, 0, 0])
                mine[0] += sum(one[0] for one in tasks.values())
                mine[1] += sum(one[1] for one in tasks.values())
                mine[2] += len(tasks)
    return found


# -- the page ---------------------------------------------------------------------------------


def shown(one: Mapping[str, float] | None, unit: str = "") -> str:
    """A figure with its limits."""
    if one is None:
        return "n.d."
    return f"{one['points']:z.0f}{unit} [{one['low']:z.0f}, {one['high']:z.0f}]"


def main_table(found: Mapping[str, Any]) -> list[str]:
    """One row an arm: what is passed, what is lost, what is refused."""
    rows = []
    for arm in (*ARMS, *ABLATIONS):
        one = found["arms"][arm]
        figures = (CLEAN, f"passed in {T12}", f"drop in {T12}", f"passed in {T3}",
                   f"passed in {HELD6}", RIGHT, WRONG)  # fmt: skip
        told = " | ".join(shown(one.get(name)) for name in figures)
        rows.append(f"| {arm} | {one[CLEAN]['seeds']} | {told} |")
    return [
        "| arm | seeds | clean | passed in tiers 1 and 2 | drop there | passed in tier 3 | "
        "passed, six mechanisms held out | unsolvable, refused rightly | look-alikes refused |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
        *rows,
    ]


def contrast_table(told: Mapping[str, Any], names: tuple[str, ...]) -> list[str]:
    """One row a contrast and endpoint, in the three ways."""
    rows = [
        f"| {pair} | {name} | {shown(ways.get('paired'))} | {shown(ways.get('unpaired'))} | "
        f"{shown(ways['accuracy']) if 'accuracy' in ways else '-'} |"
        for pair, endpoints in told.items()
        for name, ways in endpoints.items()
        if name in names
    ]
    return [
        "| contrast | endpoint | paired (the plan's) | unpaired | accuracy, unpaired |",
        "|---|---|---:|---:|---:|",
        *rows,
    ]


def form_table(found: Mapping[str, Any]) -> list[str]:
    """One row a cell of kind and form."""
    arms = ("static", "diverse", "paft", "paft-graph")
    head = " | ".join(f"{what}: {', '.join(arms)}" for what in
                      ("clean passed", "clean refused", "look-alikes refused",
                       "drop, tiers 1 and 2"))  # fmt: skip
    rows = []
    for form, told in found["forms"].items():
        cells = " | ".join(", ".join(f"{told[name][arm]:z.0f}" for arm in arms)
                           for name in (CLEAN, REFUSES_CLEAN, WRONG, T12))  # fmt: skip
        rows.append(f"| {found['tasks'][form]} {form} | {cells} |")
    return [f"| tasks | {head} |", "|---|---:|---:|---:|---:|", *rows]


def page(found: Mapping[str, Any]) -> str:
    """The page of the analyses."""
    forms = found["forms"]
    phrase = [form for form in forms if form.endswith("with a phrase")]
    names = sum(found["tasks"][form] for form in phrase)
    refused = {
        name: {
            arm: (
                sum(forms[f][name][arm] for f in phrase),
                sum(f[name][arm] for f in forms.values()),
            )
            for arm in ("paft", "paft-graph")
        }
        for name in ("clean refusals", "look-alikes refused")
    }
    clusters, net = found["kinds_as_clusters"], found["look_alikes_less_clean"]
    same, scenes = found["scenes_with_all_descriptions_in_place"]
    renamed = [sum(found["counts"]["static"][s][i] for s in RENAMINGS) for i in (0, 2)]
    limits = [s for s in found["counts"]["static"] if s.split(":")[0] in
              ("fatal_error", "no_such_entity", "tool_gone")]  # fmt: skip
    unsolvable = [sum(found["counts"]["static"][s][i] for s in limits) for i in (1, 2)]
    fresh = found["without_tasks_seen_before"]
    lines = [
        "# The decisive study, looked at again",
        "",
        "`python studies/decisive/sensitivity.py` writes this page and `sensitivity.json.xz` from "
        f"{found['episodes']:,} stored episodes ({found['void']} void). **None of this was "
        "planned**: it was added after the results had been seen, most of it after a review. "
        "The tests are those of [the page](README.md). Percent and points; brackets are "
        "95% intervals over seeds "
        "and tasks. A drop is n.d. where fewer than half of the clean tasks pass.",
        "",
        "## What passes",
        "",
        "A drop gains where fewer clean tasks pass, so what passes stands beside it. The last five "
        "arms are those of [the ablations](ablations/README.md) and [DAgger](dagger/README.md).",
        "",
        *main_table(found),
        "",
        f"Of static's tasks under the three renamings {renamed[0]} of {renamed[1]} pass; of its "
        f"unsolvable scenes {unsolvable[0]} of {unsolvable[1]} are refused.",
        "",
        "## Contrasts, paired and not",
        "",
        "The plan pairs arms by seed. Two arms at the same seed share no more than its number, so "
        "pairing leaves seeds out and gains nothing. Unpaired, all seeds of both arms count "
        "(`toolshift.measure.crossed.crossed_difference`). PAFT less diverse has the same steps "
        "and batches on both sides, and is no contrast of the plan. "
        "No p is told for these. `all eight mechanisms held out` is the plan's list of what no arm "
        "was trained on; its endpoint has six of them.",
        "",
        *contrast_table(found["contrasts"], (T12, T3, HELD6, HELD8, RIGHT, WRONG, CLEAN)),
        "",
        "## By kind and form of name",
        "",
        f'In the test pool {names} of the 48 places end in a phrase, "at Nine" or "on the Hill". '
        'Of the 26 endings in training three have a word in lower case ("and Sons", "of '
        'Wonders", "by the Lake"). A name that is cut short is not found, and a refusal is then '
        "nearly right. So "
        '"clean" holds a shift of its own. Means over seeds.',
        "",
        *form_table(found),
        "",
        *(
            f"- {what}: {pair['paft'][0]} of {pair['paft'][1]} by PAFT and {pair['paft-graph'][0]} "
            f"of {pair['paft-graph'][1]} by PAFT with the graph are on names with a phrase."
            for what, pair in (
                ("Clean tasks refused", refused["clean refusals"]),
                ("Look-alikes refused", refused["look-alikes refused"]),
            )
        ),
        "- Look-alikes refused, less what is refused of the same tasks when clean: "
        f"PAFT {shown(net['paft'])}, with the graph {shown(net['paft-graph'])}, with DAgger "
        f"{shown(net['paft-graph-dagger'])} points.",
        "",
        f"### The {found['tasks']['look-ups, plain names']} look-ups with plain names alone",
        "",
        "| arm | clean | drop in tiers 1 and 2 | passed there | drop in tier 3 | passed there | "
        "look-alikes refused |",
        "|---|---:|---:|---:|---:|---:|---:|",
        *(
            f"| {arm} | {shown(one[CLEAN])} | {shown(one.get(f'drop in {T12}'))} | "
            f"{shown(one[f'passed in {T12}'])} | {shown(one.get(f'drop in {T3}'))} | "
            f"{shown(one[f'passed in {T3}'])} | {shown(one[WRONG])} |"
            for arm, one in ((arm, found["plain_lookups"]["arms"][arm]) for arm in ARMS)
        ),
        "",
        *contrast_table(found["plain_lookups"]["contrasts"], (T12, T3)),
        "",
        "## What the figures hang on",
        "",
        "- **Kinds as clusters** (t over six kinds): static loses "
        f"{shown(clusters['static'])} in tiers 1 and 2, PAFT {shown(clusters['paft'])}, PAFT less "
        f'static {shown(clusters["paft - static"])}. "Other tasks" elsewhere means other tasks of '
        "these six kinds.",
        "- **Eight of the 48 tasks** were in the test pool of earlier studies, on which the layout "
        f"was chosen. Without them static loses {shown(fresh['static'][f'drop in {T12}'])} in "
        f"tiers 1 and 2, PAFT {shown(fresh['paft'][f'drop in {T12}'])}, PAFT with the graph "
        f"{shown(fresh['paft-graph'][f'drop in {T12}'])}.",
        f"- **Renamings keep the descriptions.** In {same} of {scenes} scenes of the three "
        "renamings every description is that of the clean scene, word for word and in the "
        "same place of the list. So these figures do not tell reading the name "
        "from matching the text beside it.",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()

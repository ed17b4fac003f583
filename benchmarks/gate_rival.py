"""The gate beside agent-reliability-ci (0.8.0): errors and builds until a decision.

    python benchmarks/gate_rival.py --json studies/gate/rival.json

Needs `agent-reliability-ci` in an environment that has ToolShift as well. Both see the same
episodes. Their verdict comes from their own functions (`arci.stats`, `arci.gate.classify`) with the
tail that `arci.gate` uses: alpha / (4 K) an arm, K conditions (the quantiles of the interval by
scipy, which is faster; checked at the start). Ours allows 5% to each error at the
margin, so theirs is given alpha = 10% (5% a side) and, beside it, its default of 5%.

*Simulated*: the designs of gate_error.py, one family: `losses` and `churn` are steady agents, whose
runs agree but for the release; `same` and `2` draw every trial afresh, and in `2` hard tasks are
hard in both runs. A pass at a true drop of the margin is false, and so is a block at no drop.

*Looks*: the same with three looks at a third, two thirds and all of the tasks. Theirs are its own
(`looks`, alpha / 3 each); ours by `measure.gate_statistics` with the error split alike, by
curtailing (what `--early` does), and by a bet (an e-process with the tasks in random order).

*Scripted*: agents that play real scenes, clean and under two shifts, gated as a whole.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from arci.gate import classify
from arci.stats import clopper_pearson_tail, difference_bounds
from gate_error import Design, draw, generator, verdicts
from machine import versions
from scipy import special

from toolshift.agents.contestant import Contestant
from toolshift.core import seed as seeds
from toolshift.episode.episode import Episode
from toolshift.episode.oracle import OracleAgent
from toolshift.measure.gate import Rules, judge
from toolshift.measure.gate_statistics import decide
from toolshift.runs.plan import Plan, make_plan
from toolshift.runs.provenance import manifest
from toolshift.runs.run_folder import RunFolder
from toolshift.runs.study import run_cells
from toolshift.runs.suite import Selection, select

SIZES = ((100, 1), (200, 1), (100, 4), (400, 1))
KINDS = {1: ("losses", "churn", "same"), 4: ("same", "2")}
MARGINS = (0.05, 0.1)
BASELINE = 0.9
ALPHAS = {"theirs, 10%": 0.1, "theirs, 5%": 0.05}
LOOKS = (1 / 3, 2 / 3, 1.0)
WORDS = {"PASS": "pass", "BLOCK": "fail", "INCONCLUSIVE": "inconclusive"}
TASKS, SHIFTS = 100, ("identity_erasure:2", "redirect:2")


# -- their verdict -----------------------------------------------------------------------------


@cache
def interval(count: int, n: int, tail: float) -> tuple[float, float]:
    """Their interval of an arm. Theirs takes up to a second, so this is the same by quantiles."""
    low = special.betaincinv(count, n - count + 1, tail) if count else 0.0
    high = special.betaincinv(count + 1, n - count, 1 - tail) if count < n else 1.0
    return float(low), float(high)


def check_interval() -> None:
    """Sees on a sample that `interval` is theirs."""
    for count, n, tail in ((0, 20, 0.025), (95, 100, 0.0125), (88, 100, 0.025), (200, 200, 0.004)):
        ours, own = interval(count, n, tail), clopper_pearson_tail(count, n, tail)
        assert np.allclose(ours, own, atol=1e-9), (count, n, tail, ours, own)


@cache
def theirs(before: int, after: int, n: int, margin: float, tail: float) -> str:
    """Their verdict on so many successes of n episodes in each arm."""
    arms = {"baseline": interval(before, n, tail), "candidate": interval(after, n, tail)}
    return WORDS[classify(*difference_bounds(**arms), margin).value]


def theirs_on(
    before: np.ndarray, after: np.ndarray, trials: int, margin: float, tail: float
) -> list[str]:
    """Their verdicts on builds; every trial is an episode of its arm."""
    counts = [np.rint(each.sum(axis=1) * trials).astype(int).tolist() for each in (before, after)]
    n = before.shape[1] * trials
    return [theirs(a, b, n, margin, tail) for a, b in zip(*counts, strict=True)]


# -- one look ----------------------------------------------------------------------------------


def shares(found: list[str]) -> dict[str, float]:
    """How common each verdict is, and the builds that a decision takes on average."""
    said = {name: round(found.count(name) / len(found), 4) for name in ("pass", "fail")}
    decided = said["pass"] + said["fail"]
    return {**said, "builds": round(1 / decided, 1) if decided else None}  # type: ignore[dict-item]


def one_look(builds: int, seed: int) -> list[dict[str, Any]]:
    """Both gates on the same simulated builds."""
    rows = []
    for (tasks, trials), margin in product(SIZES, MARGINS):
        for kind, drop in product(KINDS[trials], (0.0, margin, 2 * margin)):
            design = Design(tasks, trials, BASELINE, margin, kind)
            before, after = draw(design, drop, builds, generator(seed, design, drop, "rival"))
            row: dict[str, Any] = {"tasks": tasks, "trials": trials, "margin": margin,
                                   "kind": kind, "drop": drop}  # fmt: skip
            row["ours"] = shares(verdicts(after - before, margin))
            for name, alpha in ALPHAS.items():
                row[name] = shares(theirs_on(before, after, trials, margin, alpha / 4))
            rows.append(row)
    return rows


# -- several looks -----------------------------------------------------------------------------


def at_looks(each: list[list[str]]) -> list[tuple[str, float]]:
    """The first look of each build that decides, and the share of the tasks that it took."""
    found = []
    for said in zip(*each, strict=True):
        place = next(
            (n for n, verdict in enumerate(said) if verdict != "inconclusive"), len(said) - 1
        )
        found.append((said[place], LOOKS[place]))
    return found


def curtailed(before: np.ndarray, changes: np.ndarray, margin: float) -> list[tuple[str, float]]:
    """`--early`: ends at a twentieth after which the gate fails even if all that is left passes."""
    whole = verdicts(changes, margin)
    found = []
    for place, (row, verdict) in enumerate(zip(changes, whole, strict=True)):
        used = 1.0
        for part in np.arange(0.05, 1, 0.05) if verdict == "fail" else ():
            seen = round(part * row.size)
            left = 1 - before[place, seen:]  # what is left passes
            best = np.concatenate([row[:seen], left])
            if decide(best, margin) == "fail":
                used = float(part)
                break
        found.append((verdict, used))
    return found


def bet(changes: np.ndarray, margin: float) -> list[tuple[str, float]]:
    """An e-process for each side (Waudby-Smith and Ramdas 2024; stakes from what was seen).

    Stops with pass or fail where the wealth against "worse by the margin", or against "no worse",
    reaches 20: by Ville's inequality an error has a chance of 5% at most at whatever moment.
    """
    found = []
    for row in changes:
        verdict, used = "inconclusive", 1.0
        sides = {"pass": (row + 1) / 2, "fail": (1 - row) / 2}
        nulls = {"pass": (1 - margin) / 2, "fail": (1 + margin) / 2}
        crossed = {}
        for name, x in sides.items():
            n = np.arange(1, x.size + 1)
            mean = (0.5 + np.concatenate([[0.0], np.cumsum(x)[:-1]])) / n
            spread = np.cumsum((x - (0.5 + np.cumsum(x)) / (n + 1)) ** 2)
            variance = (0.25 + np.concatenate([[0.0], spread[:-1]])) / n
            gap = mean - nulls[name]
            stake = np.clip(gap / (variance + gap**2), 0, 0.5 / nulls[name])
            wealth = np.cumsum(np.log1p(stake * (x - nulls[name])))
            over = np.flatnonzero(wealth >= np.log(20))
            crossed[name] = int(over[0]) + 1 if over.size else x.size + 1
        first = min(crossed, key=lambda name: crossed[name])
        if crossed[first] <= row.size:
            verdict, used = first, crossed[first] / row.size
        found.append((verdict, used))
    return found


def summed(found: list[tuple[str, float]]) -> dict[str, float]:
    """Verdicts, and the share of the episodes that were run on average."""
    return {
        "pass": round(sum(verdict == "pass" for verdict, _ in found) / len(found), 4),
        "fail": round(sum(verdict == "fail" for verdict, _ in found) / len(found), 4),
        "episodes": round(sum(used for _, used in found) / len(found), 3),
    }


def several_looks(builds: int, seed: int) -> list[dict[str, Any]]:
    """What looking early saves, and what it costs."""
    rows = []
    for tasks, margin, kind in product((200, 400), MARGINS, ("losses", "churn", "same")):
        for drop in (0.0, margin, 2 * margin, 4 * margin):
            design = Design(tasks, 1, BASELINE, margin, kind)
            before, after = draw(design, drop, builds, generator(seed, design, drop, "looks"))
            cuts = [round(part * tasks) for part in LOOKS]
            changes = after - before
            split = [[decide(row[:cut], margin, 1 - 0.1 / len(LOOKS)) for row in changes]
                     for cut in cuts]  # fmt: skip
            their = [theirs_on(before[:, :cut], after[:, :cut], 1, margin, 0.1 / 4 / len(LOOKS))
                     for cut in cuts]  # fmt: skip
            rows.append({
                "tasks": tasks, "margin": margin, "kind": kind, "drop": drop,
                "one look": summed([(said, 1.0) for said in verdicts(changes, margin)]),
                "curtailed": summed(curtailed(before, changes, margin)),
                "three looks": summed(at_looks(split)),
                "bet": summed(bet(changes, margin)),
                "their three looks": summed(at_looks(their)),
            })  # fmt: skip
    return rows


# -- scripted agents ---------------------------------------------------------------------------


class Fails:
    """The oracle, but it refuses at once in some episodes.

    Args:
        steady: the share of tasks that it fails in every scene; the same tasks in each build.
        fresh: the share of episodes that it fails, drawn again in each build.
        shift: the only shift under which `fresh` counts; "" for all scenes.
        draw: names the build and the side.
    """

    def __init__(self, steady: float, fresh: float = 0.0, shift: str = "", draw: str = "") -> None:
        self.name = "agent"
        self.steady, self.fresh, self.shift, self.draw = steady, fresh, shift, draw
        self.sound = OracleAgent()

    def play(self, episode: Episode) -> None:
        """Refuses, or works as the oracle does."""
        scene = episode.scene
        level = seeds.rng("steady", scene.task.lineage).random()
        stack = "+".join(each.shift for each in scene.shifts)
        again = seeds.rng("fresh", self.draw, scene.task.lineage, stack, str(episode.trial))
        counts = not self.shift or self.shift == stack
        if level < self.steady or (counts and again.random() < self.fresh):
            episode.refuse("tool_unavailable", "")
        else:
            self.sound.play(episode)


AGENTS = {
    "sound": (Fails(0.05), lambda build: Fails(0.05), 0.0),
    "slightly worse (2 points)": (Fails(0.05), lambda build: Fails(0.07), 0.02),
    "clearly worse (15 points)": (Fails(0.05), lambda build: Fails(0.2), 0.15),
    "worse under one shift (20 points)": (
        Fails(0.05), lambda build: Fails(0.05, 0.2, "redirect", f"{build}"), 0.2,
    ),
    "flaky, no worse (10% of episodes)": (None, lambda build: Fails(0.0, 0.1, "", f"{build}"), 0.0),
}  # fmt: skip


def kept(plan: Plan, agent: Fails, folder: Path) -> RunFolder:
    """A run of an agent, without a report."""
    about = [{"name": agent.name, "class": "Fails"}]
    store = RunFolder.start(folder, manifest(plan, about), plan)
    run_cells(plan.cells, [Contestant(agent)], store)
    store.close()
    return RunFolder.read(folder)


def their_gate(before: RunFolder, after: RunFolder, margin: float, alpha: float) -> str:
    """Their verdict with a condition for clean and each shift, all of which must pass."""
    counts: dict[str, list[int]] = {}
    for place, run in enumerate((before, after)):
        for record in run.records():
            stack = run.cell(record).stack
            row = counts.setdefault(stack, [0, 0, 0, 0])
            row[place] += record.grade.passed
            row[place + 2] += 1
    tail = alpha / (4 * len(counts))
    said = [theirs(a, b, n, margin, tail) for a, b, n, _ in counts.values()]
    return "fail" if "fail" in said else "inconclusive" if "inconclusive" in said else "pass"


def scripted(builds: int) -> list[dict[str, Any]]:
    """Both gates on builds of real episodes."""
    plan = make_plan(select(Selection(shifts=SHIFTS, tasks=TASKS, placebo=False, seed=5)))
    rows = []
    for (name, (base, candidate, drop)), margin in product(AGENTS.items(), (5.0, 10.0)):
        said: dict[str, list[str]] = {"ours": [], **{each: [] for each in ALPHAS}}
        for build in range(builds):
            with tempfile.TemporaryDirectory() as folder:
                first = base or Fails(0.0, 0.1, "", f"before {build}")
                before = kept(plan, first, Path(folder) / "before")
                after = kept(plan, candidate(build), Path(folder) / "after")
                said["ours"].append(judge(before, after, Rules(margin, by="shift")).verdict)
                for each, alpha in ALPHAS.items():
                    said[each].append(their_gate(before, after, margin / 100, alpha))
            if base is not None and not candidate(build).fresh:
                break  # steady: every build is the same
        row = {"agent": name, "margin": margin / 100, "drop": drop, "episodes": len(plan.cells)}
        row["builds"] = len(said["ours"])
        rows.append({**row, **{each: shares(found) for each, found in said.items()}})
    return rows


def main() -> None:
    """Runs everything."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--builds", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=20_265)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    check_interval()
    begun = time.process_time()
    found: dict[str, Any] = {"one_look": one_look(options.builds, options.seed)}
    print(f"one look: {time.process_time() - begun:.0f} s", file=sys.stderr, flush=True)
    found["looks"] = several_looks(options.builds // 4, options.seed)
    print(f"looks: {time.process_time() - begun:.0f} s", file=sys.stderr, flush=True)
    found["scripted"] = scripted(max(2, options.builds // 40))
    found["cpu_seconds"] = round(time.process_time() - begun)
    found["command"] = f"python benchmarks/gate_rival.py --builds {options.builds}"
    found["versions"] = versions()
    for name in ("one_look", "looks", "scripted"):
        for row in found[name]:
            print(json.dumps(row))
    if options.json:
        rows = [f' "{name}": [\n  ' + ",\n  ".join(map(json.dumps, found.pop(name))) + "\n ]"
                for name in ("one_look", "looks", "scripted")]  # fmt: skip
        head = json.dumps(found, indent=1)[:-2]
        options.json.write_text(head + ",\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    main()

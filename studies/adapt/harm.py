"""What the layer of `toolshift.adapt` harms: sound and planted agents that read, act, and read.

    python studies/adapt/harm.py [--tasks 2] [--harm 10] [--pool test]
    python studies/adapt/harm.py --pages

`closed_loop.py` puts the oracle and every planted agent into the layer: they read the tools as
shown and the results as the layer shows them, and know nothing of the layer. Each scene is played
alone and in the layer, over all shifts and severities of the suite `standard` (look-alikes are
among them), and as many clean and trapped scenes again as `--harm` says. Where the layer asks an
agent once more it either insists, or obeys: it checks with a call that it has made before, or gives
up where it is told not to repeat a call. A scene is lost where the agent passes alone and not in
the layer.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from closed_loop import LoopedEpisode, Mouth
from measure import cells_of, near_trap
from scipy.stats import beta

from toolshift.adapt.layer import ASKING, REWRITING, AdaptedAgent, Intervention, adapt
from toolshift.adapt.lessons import Lessons
from toolshift.agents.catalog import make_agent
from toolshift.agents.planted import PLANTED
from toolshift.core.scene import Scene
from toolshift.core.terminal import progress
from toolshift.drift.lock import lock_shown
from toolshift.episode.episode import Episode
from toolshift.episode.grade import grade
from toolshift.runs.cell import build

HERE = Path(__file__).parent
FILE = HERE / "harm.json.gz"
START, END = "<!-- harm -->", "<!-- end of harm -->"
SOUND = ("oracle", "oracle (obeys)")
UNSTEADY = ("noisy", "noisy (obeys)")
"""Agents whose slips are drawn by the number of steps so far: in the layer they slip elsewhere."""
AGENTS = (*SOUND, *PLANTED, "always_refuses (obeys)", "never_refuses (obeys)", "gives_up (obeys)")
SHIFTED, TRAPS = "shifted", ("semantic_trap", "near_trap")
Row = dict[str, Any]


def kind_of(shift: str) -> str:
    """What a scene counts as: clean, a trap, a look-alike, unsolvable or shifted."""
    name = shift.split(":", maxsplit=1)[0]
    if not name:
        return "clean"
    if name in TRAPS:
        return name
    return "look-alike" if name.endswith("_lookalike") else SHIFTED


def writes_beyond(episode: Episode, meant: Counter[str]) -> int:
    """Writes of true tools beyond the calls by which the agent meant these tools."""
    truth = episode.scene.truth.by_name
    written = Counter(
        name
        for step in episode.steps
        if step.effects
        for name, _ in step.true
        if name in truth and truth[name].effect == "write"
    )
    return sum((written - meant).values())


def wrong_tools(episode: Episode, meant: Counter[str]) -> int:
    """Calls that succeeded and reached a true tool that the agent never meant."""
    return sum(
        not {name for name, _ in step.true} <= meant.keys() for step in episode.steps if step.ok
    )


def played(spec: str, scene: Scene, layer: AdaptedAgent, lessons: Lessons) -> Row:
    """One agent in one scene, alone and in the layer; a layer is put on each agent in turn."""
    name = spec.removesuffix(" (obeys)")
    agent = make_agent(name)
    alone = Episode(scene)
    agent.play(alone)
    seen = list[Intervention]()
    mouth = Mouth(name, obeys=spec != name)

    layer.inner, layer.record, layer.lessons = mouth, seen.append, lessons
    within = LoopedEpisode(scene, lambda inner: layer, mouth)
    agent.play(within)
    before, after = grade(alone), grade(within)
    return {
        "alone": before.passed,
        "passed": after.passed,
        "solvable": scene.solvable,
        "right refusal alone": not scene.solvable and before.passed,
        "lost refusal": not scene.solvable and before.passed and not after.passed,
        "unintended": writes_beyond(within, within.meant),
        "wrong": wrong_tools(within, within.meant),
        "parts": Counter(one.part for one in seen),
        "calls alone": before.calls,
        "calls": after.calls,
    }


def exact(hits: int, count: int) -> list[float]:
    """A share with its exact interval at 95% (Clopper and Pearson 1934), in percent."""
    low = beta.ppf(0.025, hits, count - hits + 1) if hits else 0.0
    high = beta.ppf(0.975, hits + 1, count - hits) if hits < count else 1.0
    return [round(100 * float(each), 4) for each in (hits / max(count, 1), low, high)]


def run(pool: str, tasks: int, harm: int) -> dict[str, Any]:
    """Plays everything, and counts."""
    cells = cells_of(pool, tasks, harm)
    groups: dict[str, Counter[str]] = defaultdict(Counter)
    losses: Counter[str] = Counter()
    memories: dict[str, Lessons] = defaultdict(Lessons)
    begun = time.process_time()
    with progress("scenes") as watch:
        for number, cell in enumerate(cells):
            base = build(cell)
            scenes = [(cell.stack, base)]
            scenes += [] if cell.shifts else [("near_trap:2", near_trap(base))]
            for shift, scene in scenes:
                only = ["lessons", *REWRITING, *ASKING]
                layer = adapt(Mouth("any"), lock_shown(scene.clean.tools), only, rewrite=True)
                for spec in AGENTS:
                    row = played(spec, scene, layer, memories[spec])
                    for key in (f"{spec}|{kind_of(shift)}", f"{spec}|all"):
                        count(groups[key], row)
                    if row["alone"] and not row["passed"]:
                        losses[f"{spec}|{shift}"] += 1
            watch(number + 1, len(cells))
    return {
        "scenes": groups["oracle|all"]["episodes"],
        "groups": {key: dict(each) for key, each in groups.items()},
        "losses": dict(losses),
        "cpu seconds": round(time.process_time() - begun),
    }


def count(into: Counter[str], row: Row) -> None:
    """Adds an episode to its group."""
    into["episodes"] += 1
    for key in ("alone", "passed", "right refusal alone", "lost refusal", "unintended", "wrong"):
        into[key] += row[key]
    into["lost"] += row["alone"] and not row["passed"]
    into["won"] += row["passed"] and not row["alone"]
    into["calls alone"] += row["calls alone"]
    into["calls"] += row["calls"]
    for part, times in row["parts"].items():
        into[f"by {part}"] += times


def told(values: list[float]) -> str:
    """A share with its interval, in percent."""
    return f"{values[0]:.3f} [{values[1]:.3f}, {values[2]:.3f}]"


def total(groups: dict[str, dict[str, int]], agents: tuple[str, ...], kind: str) -> Counter[str]:
    """The counts of several agents in scenes of one kind."""
    return sum((Counter(groups.get(f"{agent}|{kind}", {})) for agent in agents), Counter())


def tables(results: dict[str, Any]) -> str:
    """The tables of harm."""
    lines: list[str] = []
    steady = tuple(agent for agent in AGENTS if agent not in (*SOUND, *UNSTEADY))
    for pool, part in results.items():
        groups = part["groups"]
        lines += [
            f"### Harm in pool {pool}: {part['scenes']:,} scenes",
            "",
            "| agents | scenes | episodes | passed alone | lost, % of episodes | won "
            "| unintended writes, % | wrong tools | right refusals lost |",
            "|---|---|---|---|---|---|---|---|---|",
        ]
        for name, agents in (("sound", SOUND), ("planted", steady), ("noisy", UNSTEADY)):
            for kind in ("clean", *TRAPS, "look-alike", SHIFTED, "all"):
                one = total(groups, agents, kind)
                if not one["episodes"]:
                    continue
                lost = exact(one["lost"], one["episodes"])
                wrote = exact(one["unintended"], one["episodes"])
                lines.append(
                    f"| {name} | {kind} | {one['episodes']:,} | {one['alone']:,} | {told(lost)} "
                    f"| {one['won']:,} | {told(wrote)} | {one['wrong']} "
                    f"| {one['lost refusal']} of {one['right refusal alone']:,} |"
                )
        lines += [
            "",
            "| agent | passed alone | in the layer | lost | won | calls an episode, in the layer "
            "| interventions |",
            "|---|---|---|---|---|---|---|",
        ]
        for agent in AGENTS:
            one = total(groups, (agent,), "all")
            parts = ", ".join(
                f"{key.removeprefix('by ')} {times:,}"
                for key, times in sorted(one.items())
                if key.startswith("by ")
            )
            calls = [one[key] / one["episodes"] for key in ("calls alone", "calls")]
            lines.append(
                f"| {agent} | {one['alone']:,} | {one['passed']:,} | {one['lost']} | {one['won']} "
                f"| {calls[0]:.2f}, {calls[1]:.2f} | {parts} |"
            )
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=2)
    parser.add_argument("--harm", type=int, default=10)
    parser.add_argument("--pool", default="test")
    parser.add_argument("--pages", action="store_true")
    options = parser.parse_args()
    results = json.loads(gzip.decompress(FILE.read_bytes())) if FILE.exists() else {}
    if not options.pages:
        played = run(options.pool, options.tasks, options.harm)
        results[options.pool] = {"tasks": options.tasks, **played}
        FILE.write_bytes(gzip.compress(json.dumps(results).encode(), mtime=0))
    page = HERE / "README.md"
    text = page.read_text()
    if START in text:
        before, after = text.index(START) + len(START), text.index(END)
        page.write_text(f"{text[:before]}\n\n{tables(results)}\n{text[after:]}")
    print(tables(results))


if __name__ == "__main__":
    main()

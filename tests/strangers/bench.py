"""Runs styles and exploits on the same scenes and sets them beside their twins.

    cd tests && python -m strangers.bench [NAME ...] [--tasks 11] [--out FILE] [--public]
        [--failures N] [--against FILE] [--all-shifts]

The scenes are those of the quick suite in all three worlds, and some shifts that the quick suite
has not and that make an agent ask, refuse for other reasons, or meet optional arguments; with
`--all-shifts` those of every shift that is registered, at each of its severities. What is done is
kept in `build/`, so that a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

from strangers import exploits, styles

import toolshift
from toolshift.agents.contestant import Contestant
from toolshift.episode.contract import CallableAgent
from toolshift.episode.oracle import OracleAgent
from toolshift.runs.cell import build
from toolshift.runs.plan import make_plan
from toolshift.runs.study import play
from toolshift.runs.suite import Selection, find_suite, select
from toolshift.shifts.registry import shifts as registered

PARTIAL = Path(__file__).parents[2] / "build" / "strangers.jsonl"
MORE = (
    "query_underspecification:2", "query_ambiguity:1", "contradictory_request:2",
    "contradictory_request_lookalike:2", "tool_gone:2", "tool_gone_lookalike:2", "schema_noise:3",
    "transient_error:2", "intent_change:1", "verification_change:2", "incomplete_information:2",
)  # fmt: skip


def cells(tasks: int, pool: str, every: bool = False) -> list[Any]:
    shifts = (*(s.partition("*")[0] for s in find_suite("quick").shifts), *MORE)
    if every:
        shifts = tuple(
            f"{name}:{severity}"
            for name, shift in registered().items()
            for severity in shift.severities
        )
    chosen = select(
        Selection(
            "quick", worlds=("poi", "medical", "retail"), shifts=shifts, tasks=tasks, pool=pool
        )
    )
    return list(make_plan(chosen).cells)


def run(agent: Any, todo: list[Any], scenes: list[Any]) -> list[Any]:
    """Records of an agent, and what it said, one a cell."""
    done = []
    for cell, scene in zip(todo, scenes, strict=True):
        record = play(Contestant(agent), cell, scene)
        desk = getattr(agent, "desk", None)
        done.append((record, list(desk.talk.sent) if desk else [], desk))
    return done


def share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def rates(records: list[Any]) -> dict[str, Any]:
    grades = [r.grade for r in records]
    scored = [g for g in grades if not g.void]
    passed = sum(g.passed for g in grades)
    right = [g for g in scored if not g.solvable and g.refused]
    return {
        "episodes": len(grades),
        "passed": passed,
        "itt": share(passed, len(grades)),
        "void": len(grades) - len(scored),
        "scored": share(sum(g.passed for g in scored), len(scored)),
        "right_reason": share(sum(g.right_reason for g in right), len(right)),
        "misunderstood": sum(g.misunderstood for g in grades),
    }


def summary(
    name: str,
    agent: Any,
    done: list[Any],
    twin: list[Any],
    scenes: list[Any],
    todo: list[Any],
    keep: int,
) -> dict[str, Any]:
    records = [r for r, _, _ in done]
    said: dict[str, Any] = {
        "name": name,
        "what": (type(agent).__doc__ or "").strip().split("\n")[0],
        **rates(records),
    }
    said["twin"] = rates(twin)
    lost = [
        k
        for k, (r, t) in enumerate(zip(records, twin, strict=True))
        if t.grade.passed and not r.grade.passed
    ]
    won = [
        k
        for k, (r, t) in enumerate(zip(records, twin, strict=True))
        if r.grade.passed and not t.grade.passed
    ]
    said["lost_to_twin"], said["won_over_twin"] = len(lost), len(won)
    said["groups"] = {
        "solvable": rates([r for r, s in zip(records, scenes, strict=True) if s.solvable]),
        "unsolvable": rates([r for r, s in zip(records, scenes, strict=True) if not s.solvable]),
        **{
            w: rates([r for r, c in zip(records, todo, strict=True) if c.world == w])
            for w in ("poi", "medical", "retail")
        },
    }
    said["lost_by_shift"] = dict(Counter(todo[k].stack or "clean" for k in lost))
    said["lost_by_end"] = dict(
        Counter(f"{records[k].end}{'/void' if records[k].grade.void else ''}" for k in lost)
    )
    desks = [d for _, _, d in done if d is not None]
    said["misread_ends"] = sum(d.misread for d in desks)
    said["questions_not_understood"] = sum(d.confused for d in desks)
    if isinstance(agent, exploits.Exploit):
        undeserved = [
            k
            for k, (r, s, t) in enumerate(zip(records, scenes, twin, strict=True))
            if r.grade.passed and not agent.deserved(r, s, t)
        ]
        if agent.either:
            apart = [
                [k for k, r in enumerate(records) if r.grade.passed and scenes[k].solvable is kind]
                for kind in (True, False)
            ]
            undeserved = min(apart, key=len)
        solvable = sum(s.solvable for s in scenes) / len(scenes)
        floor = round(agent.floor[0] * solvable + agent.floor[1] * (1 - solvable), 4)
        gain = (
            (said["scored"] or 0) - (said["twin"]["scored"] or 0) if agent.twin == "half" else None
        )
        said |= {
            "floor": floor,
            "floor_by_group": agent.floor,
            "why": agent.why,
            "knows": agent.knows,
            "twin_name": agent.twin,
            "undeserved": len(undeserved),
            "scored_gain_over_twin": gain and round(gain, 4),
        }
        shown = undeserved or [k for k, r in enumerate(records) if r.grade.void]
        if agent.twin == "half":
            shown = [k for k, r in enumerate(records) if r.grade.void] or undeserved
    else:
        said["contested"] = agent.contested
        shown = lost
    said["examples"] = (
        [example(todo[k], records[k]) for k in shown[:: max(1, len(shown) // keep)][:keep]]
        if keep
        else []
    )
    return said


def example(cell: Any, record: Any) -> dict[str, Any]:
    last = [
        f"{s.kind}{' prose' if s.prose else ''}: {s.name} {s.said or s.arguments} -> {s.text}"[:300]
        for s in record.steps[-3:]
    ]
    return {
        "cell": f"{cell.world}/{cell.kind}/{cell.index} {cell.stack}",
        "end": record.end,
        "cause": record.grade.cause,
        "void": record.grade.void,
        "last": last,
    }


def line(said: dict[str, Any]) -> str:
    def pc(x: float | None) -> str:
        return "   --" if x is None else f"{100 * x:5.1f}"

    twin, groups = said["twin"], said["groups"]
    text = f"{said['name']:40} itt {pc(said['itt'])} ({pc(twin['itt'])})  scored {pc(said['scored'])} ({pc(twin['scored'])})  void {said['void']:4}"
    text += f"  solv {pc(groups['solvable']['itt'])}  unsolv {pc(groups['unsolvable']['itt'])}  reason {pc(said['right_reason'])}"
    if "floor" in said:
        gains = bool(
            said["undeserved"]
            or (said["scored_gain_over_twin"] or 0) > 0.001
            or (said["void"] and said["name"] != "half")
        )
        mark = "" if not gains else "  MISREAD" if said["knows"] else "  GAINS"
        return f"{text}  floor {pc(said['floor'])}  undeserved {said['undeserved']:3}{mark}"
    return f"{text}  lost {said['lost_to_twin']}{'  CONTESTED' if said['contested'] else ''}"


def finished(key: str) -> dict[str, dict[str, Any]]:
    """What an earlier run of the same commit has measured on the same scenes, by name."""
    PARTIAL.parent.mkdir(exist_ok=True)
    lines = PARTIAL.read_text().splitlines() if PARTIAL.exists() else []
    rows = [json.loads(line) for line in lines if line.endswith("]")]
    return {name: said for kept, name, said in rows if kept == key}


BRIEF = (
    "name", "kind", "contested", "twin_name", "passed", "void", "scored", "floor", "undeserved",
    "scored_gain_over_twin", "lost_to_twin",
)  # fmt: skip


def brief(said: dict[str, Any]) -> dict[str, Any]:
    """What the study keeps of an agent."""
    return {name: said[name] for name in BRIEF if name in said}


def public(agent: Any, done: list[Any], todo: list[Any], scenes: list[Any], most: int) -> int:
    """Says the same messages again as a plain function of (messages, tools); counts other grades."""
    other = 0
    for (record, sent, _), cell, scene in list(zip(done, todo, scenes, strict=True))[
        : most or None
    ]:
        left = iter(sent)

        def reply(messages: list[Any], tools: list[Any]) -> Any:
            said = next(left)
            if isinstance(said, Exception):
                raise said
            return said

        again = play(Contestant(CallableAgent(reply, agent.name)), cell, scene, fresh=False)
        other += (again.grade.passed, again.grade.void, again.end) != (
            record.grade.passed,
            record.grade.void,
            record.end,
        )
    return other


def options() -> argparse.Namespace:
    parse = argparse.ArgumentParser()
    parse.add_argument(
        "names", nargs="*", help="styles or exploits; `styles`, `exploits` or nothing for all"
    )
    parse.add_argument(
        "--tasks", type=int, default=11, help="tasks of each world (11 has one of each kind)"
    )
    parse.add_argument("--pool", default="dev")
    parse.add_argument("--out", default="")
    parse.add_argument(
        "--failures", type=int, default=4, help="examples kept of each; 0 for figures alone"
    )
    parse.add_argument(
        "--public", action="store_true", help="replay as plain functions and compare grades"
    )
    parse.add_argument("--against", default="", help="an earlier --out, to print what has changed")
    parse.add_argument("--all-shifts", action="store_true", help="each shift at each severity")
    return parse.parse_args()


def main() -> None:
    args = options()
    everyone = {**styles.BY_NAME, **exploits.BY_NAME}
    groups = {"styles": list(styles.BY_NAME), "exploits": list(exploits.BY_NAME)}
    names = [
        n for given in args.names or ["styles", "exploits"] for n in groups.get(given, [given])
    ]
    start = time.time()
    todo = cells(args.tasks, args.pool, args.all_shifts)
    scenes = [build(cell) for cell in todo]
    oracle = [r for r, _, _ in run(OracleAgent(), todo, scenes)]
    half = [r for r, _, _ in run(exploits.Half(), todo, scenes)]
    source = Path(toolshift.__file__).resolve().parents[2]
    commit = subprocess.run(
        ["git", "-C", str(source), "rev-parse", "HEAD"], capture_output=True, text=True
    ).stdout.strip()
    print(
        f"{len(todo)} scenes ({sum(s.solvable for s in scenes)} solvable) of {source} at {commit[:7]}"
    )
    print("oracle", rates(oracle))
    held = json.loads(Path(args.against).read_text()) if args.against else {}
    if held and (held["scenes"], held["tasks"], held["pool"]) != (len(todo), args.tasks, args.pool):
        raise SystemExit(
            f"{args.against} is of other scenes: --tasks {held['tasks']} --pool {held['pool']}"
        )
    earlier = {one["name"]: one for one in held.get("agents", ())}
    found = []
    key = hashlib.sha256(f"{commit} {args.failures} {args.public} {todo}".encode()).hexdigest()[:16]
    kept = finished(key)
    for name in names:
        if name in kept:
            found.append(kept[name])
            continue
        agent = everyone[name]()
        done = run(agent, todo, scenes)
        twin = half if getattr(agent, "twin", "") == "half" else oracle
        said = summary(name, agent, done, twin, scenes, todo, args.failures)
        said["kind"] = "exploit" if name in exploits.BY_NAME else "style"
        if args.public:
            said["public_differs"] = public(agent, done, todo, scenes, 0)
        if hasattr(agent, "together"):
            said["messages_with_parallel_calls"] = agent.together
        if hasattr(agent, "filled"):
            said["optional_arguments_passed"] = agent.filled
        found.append(said)
        with PARTIAL.open("a") as file:
            print(json.dumps([key, name, said]), file=file)
        was = earlier.get(name)
        more = f"  public differs in {said['public_differs']}" if said.get("public_differs") else ""
        if was and any(was[k] != said[k] for k in ("passed", "void")):
            more += f"  WAS passed {was['passed']} void {was['void']}, NOW {said['passed']} {said['void']}"
        print(line(said) + more, flush=True)
    print(f"{time.time() - start:.0f} s")
    if args.out:
        held = {
            "commit": commit,
            "scenes": len(todo),
            "tasks": args.tasks,
            "pool": args.pool,
            "all_shifts": args.all_shifts,
            "oracle": rates(oracle),
            "half": rates(half),
            "agents": found if args.failures else [brief(said) for said in found],
        }
        Path(args.out).write_text(json.dumps(held, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()

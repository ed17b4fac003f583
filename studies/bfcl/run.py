"""BFCL as a world: the same verdicts as BFCL's own checker, and which shifts the oracle proves.

    pip install --no-deps bfcl-eval && pip install mpmath
    python studies/bfcl/run.py                  # some ten minutes of one core
    python studies/bfcl/run.py --table          # what results.json.gz holds
    python studies/bfcl/run.py --per 2 --tasks 3 --out FILE    # a part of it

An output is a list of calls for each turn. It is graded twice: played into an episode of the clean
scene, and given to BFCL's checker as the text that a model would have written. Outputs are the
ground truth, and the ground truth spoilt in one known way.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from importlib.metadata import version
from pathlib import Path
from typing import Any

from toolshift.core.files import pack, read_bytes, write
from toolshift.core.message import Reply, ToolCall
from toolshift.core.shift import NotApplicable
from toolshift.episode.budget import Budget
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import Episode
from toolshift.episode.grade import grade
from toolshift.episode.oracle import OracleAgent
from toolshift.shifts.registry import apply, shifts
from toolshift.worlds.bfcl import find_bfcl, wheel
from toolshift.worlds.bfcl.single_turn import expected_calls, verdict
from toolshift.worlds.bfcl.world import LIVE, MULTI_TURN, NON_LIVE, Entry

HERE = Path(__file__).resolve().parent
PLENTY = Budget(calls=10_000, turns=10_000)
PROOFS = ("tasks", "oracle", "inaction", "left out")
UNDER = ("applies", "proved", "raised")
Turns = list[list[tuple[str, dict[str, Any]]]]
"""For each turn of the user the calls, one after the other."""


# -- the two graders -----------------------------------------------------------------------------


def ours(scene: Any, output: Turns) -> bool:
    """Whether an episode passes in which an agent says an output."""
    episode = Episode(scene, PLENTY)
    for calls in output:
        for name, arguments in calls:
            episode.take(Reply(calls=(ToolCall(name, deepcopy(arguments)),)))
        if not episode.end:
            episode.take(Reply(calls=(ToolCall("final_answer", {"answer": "Done."}),)))
    if not episode.end:
        episode.fail("the output has fewer turns than the user")
    return grade(episode).passed


def theirs(raw: dict[str, Any], answers: list[list[str]], output: Turns) -> bool:
    """Whether BFCL's checker passes an output; as its runner does, not with too few turns."""
    if len(output) != len(answers):
        return False
    checker, utils = wheel.multi_turn_checker(), "multi_turn_utils"
    spoken = [
        [[f"{n}({', '.join(f'{k}={v!r}' for k, v in made.items())})"] for n, made in calls]
        for calls in output
    ]
    try:
        found = checker.multi_turn_checker(spoken, answers, raw, "", "study")
    finally:
        kept = vars(wheel.part(f"{checker.__package__}.{utils}"))
        for name in [name for name in kept if name.endswith("_instance")]:
            del kept[name]
    return bool(found["valid"])


# -- outputs that are wrong in known ways --------------------------------------------------------


def _spots(output: Turns) -> list[tuple[int, int]]:
    return [(turn, place) for turn, calls in enumerate(output) for place in range(len(calls))]


def _value(
    rng: random.Random, output: Turns, kind: type, new: Callable[[Any], Any]
) -> Turns | None:
    spots = [
        (turn, place, key)
        for turn, place in _spots(output)
        for key, value in output[turn][place][1].items()
        if type(value) is kind
    ]
    if not spots:
        return None
    turn, place, key = rng.choice(spots)
    arguments = output[turn][place][1]
    arguments[key] = new(arguments[key])
    return output


def _at(
    rng: random.Random, output: Turns, change: Callable[[Turns, int, int], None]
) -> Turns | None:
    spots = _spots(output)
    if not spots:
        return None
    change(output, *rng.choice(spots))
    return output


def _without_argument(output: Turns, turn: int, place: int) -> None:
    name, arguments = output[turn][place]
    output[turn][place] = (name, dict(list(arguments.items())[1:]))


def _later(rng: random.Random, output: Turns) -> Turns | None:
    full = [turn for turn, calls in enumerate(output[:-1]) if calls]
    if not full:
        return None
    turn = rng.choice(full)
    output[turn + 1] = [output[turn].pop(), *output[turn + 1]]
    return output


def _all_at_once(rng: random.Random, output: Turns) -> Turns | None:
    made = [call for calls in output for call in calls]
    return [made, *([] for _ in output[1:])] if len(output) > 1 and made else None


def _empty_turn(rng: random.Random, output: Turns) -> Turns | None:
    full = [turn for turn, calls in enumerate(output) if calls]
    if not full:
        return None
    output[rng.choice(full)] = []
    return output


def _backwards(rng: random.Random, output: Turns) -> Turns | None:
    several = [turn for turn, calls in enumerate(output) if len(calls) > 1]
    if not several:
        return None
    output[rng.choice(several)].reverse()
    return output


def _swap_turns(rng: random.Random, output: Turns) -> Turns | None:
    if len(output) < 2:
        return None
    turn = rng.randrange(len(output) - 1)
    output[turn], output[turn + 1] = output[turn + 1], output[turn]
    return output


WRONG: dict[str, Callable[[random.Random, Turns], Turns | None]] = {
    "a call left out": lambda r, o: _at(r, o, lambda o, t, p: o[t].__delitem__(p)),
    "a turn without its calls": _empty_turn,
    "another text": lambda r, o: _value(r, o, str, lambda value: f"{value}x"),
    "another number": lambda r, o: _value(r, o, int, lambda value: value + 7),
    "another fraction": lambda r, o: _value(r, o, float, lambda value: value + 0.5),
    "a number as text": lambda r, o: _value(r, o, r.choice((int, float)), str),
    "a text as number": lambda r, o: _value(r, o, str, lambda value: 17),
    "a list as text": lambda r, o: _value(r, o, list, str),
    "a boolean turned": lambda r, o: _value(r, o, bool, lambda value: not value),
    "an argument left out": lambda r, o: _at(r, o, _without_argument),
    "an argument too many": lambda r, o: _at(r, o, lambda o, t, p: o[t][p][1].update(extra=1)),
    "a tool that is not there": lambda r, o: _at(
        r, o, lambda o, t, p: o[t].__setitem__(p, (o[t][p][0] + "_v2", o[t][p][1]))
    ),
    "a call made twice": lambda r, o: _at(r, o, lambda o, t, p: o[t].insert(p, deepcopy(o[t][p]))),
    "a call made a turn late": _later,
    "all calls in the first turn": _all_at_once,
    "calls of a turn backwards": _backwards,
    "two turns swapped": _swap_turns,
    "the last turn not reached": lambda r, o: o[:-1] if len(o) > 1 else None,
}  # fmt: skip


def equality(per: int, seed: int = 0) -> dict[str, Any]:
    """Both verdicts on the ground truth of every entry, and on `per` spoilt outputs of each."""
    table: dict[str, Counter[str]] = {}
    differ = []
    for category in MULTI_TURN:
        world = find_bfcl(f"bfcl:{category}")
        answers = wheel.answers(category)
        known = {entry.raw["id"] for entry in world.entries[category]}
        left = [raw for raw in wheel.entries(category) if raw["id"] not in known]
        entries = [*world.entries[category], *(Entry(raw, answers[raw["id"]]) for raw in left)]
        world.entries[category] = entries  # those that the oracle cannot solve are graded too
        for index, entry in enumerate(entries):
            scene = make_scene(world, category, index)
            right: Turns = [[] for _ in scene.asks]
            for call in scene.expected:
                right[call.turn].append((call.name, dict(call.arguments)))
            rng = random.Random(f"{seed}/{entry.raw['id']}")
            ways = rng.sample(sorted(WRONG), len(WRONG))
            spoilt = ((way, WRONG[way](rng, deepcopy(right))) for way in ways)
            some = [(way, made) for way, made in spoilt if made is not None][:per]
            for way, output in [(f"ground truth, {category}", right), *some]:
                mine = ours(scene, output)
                own = theirs(entry.raw, entry.answers, deepcopy(output))
                row = table.setdefault(way, Counter())
                row.update(outputs=1, passes=own, differ=mine != own)
                if mine != own:
                    differ.append({"id": entry.raw["id"], "way": way, "ours": mine, "BFCL": own})
    return {"by way": {way: dict(row) for way, row in sorted(table.items())}, "differ": differ}


# -- one turn ------------------------------------------------------------------------------------


def single_turn(per: int, seed: int = 0) -> dict[str, Any]:
    """The same for the sets of one turn: every call of an episode against the checker itself."""
    table: dict[str, Counter[str]] = {}
    differ = []
    for category in (*NON_LIVE, *LIVE):
        world = find_bfcl(f"bfcl:{category}")
        for index, entry in enumerate(world.entries[category]):
            scene = make_scene(world, category, index)
            for way, output in _outputs_of(entry, scene, per, seed):
                mine = ours(scene, [output])
                own = not output
                if entry.answers is not None:
                    own = not verdict(entry.raw, output, entry.answers)
                row = table.setdefault(way, Counter())
                row.update(outputs=1, passes=own, differ=mine != own)
                if mine != own:
                    differ.append({"id": entry.raw["id"], "way": way, "ours": mine, "BFCL": own})
    return {"by way": {way: dict(row) for way, row in sorted(table.items())}, "differ": differ}


def _outputs_of(entry: Entry, scene: Any, per: int, seed: int) -> Iterator[tuple[str, Any]]:
    yield "no call", []
    if entry.answers is None:
        yield "a call where none is right", [(scene.tools[0].name, _filler(scene.tools[0]))]
        return
    right = expected_calls(entry.raw, entry.answers)
    yield "ground truth", right
    rng = random.Random(f"{seed}/{entry.raw['id']}")
    ways = [way for way in rng.sample(sorted(WRONG), len(WRONG)) if "turn" not in way]
    spoilt = ((way, WRONG[way](rng, [deepcopy(right)])) for way in ways)
    yield from [(way, made[0]) for way, made in spoilt if made and made[0]][:per]


def _filler(tool: Any) -> dict[str, Any]:
    kinds = {"integer": 1, "number": 1.5, "boolean": True, "array": [], "object": {}}
    return {
        p.name: p.schema.get("enum", [kinds.get(p.schema.get("type"), "a")])[0]
        for p in tool.params
        if p.required
    }


# -- what the oracle proves ----------------------------------------------------------------------


def proofs() -> dict[str, Any]:
    """The oracle, and an agent that does nothing, in every clean scene."""
    found = {}
    for category in (*MULTI_TURN, *NON_LIVE, *LIVE):
        world = find_bfcl(f"bfcl:{category}")
        count: Counter[str] = Counter()
        for index in range(len(world.entries[category])):
            scene = make_scene(world, category, index)
            episode = Episode(scene, live=False)
            OracleAgent().play(episode)
            count.update(
                tasks=1, oracle=grade(episode).passed, inaction=ours(scene, [[]] * len(scene.asks))
            )
        found[category] = {**count, "left out": len(world.left_out)}
    return found


def under_shifts(tasks: int) -> dict[str, Any]:
    """For each shift, on how many tasks of each category it applies and is proved."""
    found: dict[str, Any] = {}
    reasons: dict[str, Counter[str]] = {}
    for category in (*MULTI_TURN, *NON_LIVE, *LIVE):
        world = find_bfcl(f"bfcl:{category}")
        every = len(world.entries[category])
        places = [number * every // min(tasks, every) for number in range(min(tasks, every))]
        for name in shifts():
            count: Counter[str] = Counter()
            failed = []
            for index in places:
                try:
                    scene = apply(make_scene(world, category, index), name, 2)
                except NotApplicable as reason:
                    reasons.setdefault(name, Counter()).update([_general(str(reason))])
                    continue
                except Exception as fault:
                    failed.append(f"{index}: {type(fault).__name__}: {fault}"[:160])
                    count.update(raised=1)
                    continue
                count.update(applies=1)
                wrong = _fails(scene)
                count.update(proved=not wrong)
                failed += [f"{index}: {wrong}"] if wrong else []
            row = {**count, **({"failed": failed} if failed else {})}
            found.setdefault(name, {})[category] = row
    return {
        "tasks": tasks,
        "by shift": found,
        "not applicable": {name: dict(each.most_common(3)) for name, each in reasons.items()},
    }


def _general(reason: str) -> str:
    return re.sub(r"\b\w+_\w+\b|\d+", "...", reason)


def _fails(scene: Any) -> str:
    try:
        episode = Episode(scene, live=False)
        OracleAgent().play(episode)
        verdict = grade(episode)
    except Exception as fault:
        return f"{type(fault).__name__}: {fault}"[:160]
    right = verdict.passed and (scene.solvable or verdict.right_reason)
    return "" if right else f"{verdict.cause or episode.end}"


# -- the study -----------------------------------------------------------------------------------


def main() -> None:
    """Runs the study, or prints what it has found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--per", type=int, default=18, help="spoilt outputs of each entry")
    parser.add_argument("--tasks", type=int, default=15, help="tasks of each category under shifts")
    parser.add_argument("--out", type=Path, default=HERE / "results.json.gz")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--only", choices=("equality", "single turn", "proofs", "shifts"))
    options = parser.parse_args()
    if options.table:
        show(json.loads(read_bytes(options.out)))
        return
    parts: dict[str, Callable[[], Any]] = {
        "equality": lambda: equality(options.per),
        "single turn": lambda: single_turn(min(3, options.per)),
        "proofs": proofs,
        "shifts": lambda: under_shifts(options.tasks),
    }
    results = json.loads(read_bytes(options.out)) if options.out.exists() else {}
    about = {
        **results.get("about", {}),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "bfcl-eval": version("bfcl-eval"),
        "mpmath": version("mpmath"),
    }
    results["about"] = about
    for name, part in parts.items():
        if options.only in (None, name):
            start = time.monotonic()
            results[name] = part()
            about[f"seconds, {name}"] = round(time.monotonic() - start)
            text = json.dumps(results, indent=1, ensure_ascii=False) + "\n"
            packed = options.out.suffix == ".gz"
            write(options.out, pack(text.encode()) if packed else text.encode())
    show(results)


def show(results: dict[str, Any]) -> None:
    """Prints the tables."""
    for part in ("equality", "single turn"):
        rows = results.get(part, {}).get("by way", {})
        print(f"\n{part}: outputs, BFCL passes, verdicts that differ")
        for way, row in rows.items():
            print(f"  {way:45} {row['outputs']:6} {row['passes']:6} {row['differ']:6}")
        total = [sum(row[key] for row in rows.values()) for key in ("outputs", "passes", "differ")]
        print(f"  {'together':45} {total[0]:6} {total[1]:6} {total[2]:6}")
    print("\nclean scenes: tasks, oracle passes, inaction passes, entries left out")
    for category, row in results.get("proofs", {}).items():
        print(f"  {category:30}", *(f"{row[key]:6}" for key in PROOFS))
    print("\nshifts: applies, proved, raised")
    for name, by in results.get("shifts", {}).get("by shift", {}).items():
        total = [sum(row.get(key, 0) for row in by.values()) for key in UNDER]
        print(f"  {name:34} {total[0]:6} {total[1]:6} {total[2]:6}")


if __name__ == "__main__":
    main()

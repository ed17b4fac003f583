"""Calls that real releases break, and who wins them back: with the layer, and without.

    python studies/telling/benefit.py          # about three minutes on one core; no network

The releases are those of `studies/real_drift`, 45 pairs of lists of 17 published servers. Of every
old tool two calls are made from its schema: with the arguments that it requires, and with all. A
call is broken where the old schema takes it and the new one refuses it. What is right was read by
eye (`read_by_eye.json`). A broken call is

won back   the last call is taken, of the tool that stands for the old one, with every value of the
           agent under the name that its parameter has today
cut        the same, but for values of parameters that are gone
wrong      a call is taken that is another one
lost       none is taken

Writes results.json and the tables of README.md.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "real_drift"), str(HERE)]

from measure import Pair, pairs, truths  # noqa: E402
from players import KINDS, Player, played  # noqa: E402

import toolshift  # noqa: E402
from toolshift.drift.calls import Checker, RecordedCall  # noqa: E402
from toolshift.drift.lock import lock_tools  # noqa: E402
from toolshift.interop.schema import sample  # noqa: E402
from toolshift.interop.tools import from_mcp  # noqa: E402

ARMS = ("nothing", "layer", "rewrite")


def calls_of(pair: Pair) -> tuple[list[RecordedCall], list[RecordedCall]]:
    """The calls by heart that the release breaks, and those that it takes."""
    old, new = Checker(pair.old), Checker(pair.new)
    broken, kept = [], []
    for source in from_mcp(pair.old).sources.values():
        params = source.tool.params
        for chosen in ([p for p in params if p.required], list(params)):
            call = RecordedCall(source.tool.name, {p.name: sample(p.schema) for p in chosen})
            if not any(old.fault(call)):
                (broken if any(new.fault(call)) else kept).append(call)
    return broken, kept


def judged(
    call: RecordedCall, made: RecordedCall, new: Mapping[str, Any], truth: dict[str, Any]
) -> str:
    """What a call that was taken is, beside the one that was wanted."""
    right = {call.tool} & new.keys() or {truth.get("renamed", {}).get(call.tool, "")}
    merged = [name for name, olds in truth.get("merged", {}).items() if call.tool in olds]
    if made.tool not in (merged or right):
        return "wrong"
    names = truth.get("params", {}).get(call.tool, {})
    params = (new[made.tool].get("inputSchema") or {}).get("properties") or {}
    cut = False
    for name, value in call.arguments.items():
        now = names.get(name, name)
        if now not in params:
            cut = True
        elif made.arguments.get(now) != value:
            return "wrong"
    known = {names.get(name, name) for name in call.arguments}
    for name, value in made.arguments.items():
        about = params.get(name) or {}
        if name in known or value == about.get("default", about.get("const", about)):
            continue
        if not (merged and value in (about.get("enum") or ()) and str(value) in call.tool):
            return "wrong"
    return "cut" if cut else "won back"


class Arm:
    """One release, with a layer or none around the agents that meet it."""

    def __init__(self, arm: str, pair: Pair, truth: dict[str, Any]) -> None:
        self.pair, self.truth, self.checker = pair, truth, Checker(pair.new)
        lock = lock_tools(pair.old)
        nobody = Player("deaf", RecordedCall(""), {})
        self.layer: Any = None
        if arm != "nothing":
            self.layer = toolshift.adapt(nobody, lock, rewrite=arm == "rewrite")

    def ends_of(self, kind: str, call: RecordedCall) -> tuple[str, int]:
        """How one conversation ends, and how many of its calls were refused."""
        player = Player(kind, call, self.checker.documents)
        agent: Any = player
        if self.layer is not None:
            agent, self.layer.inner = self.layer, player
        received = played(agent, self.pair.new, self.checker)
        taken = [made for made, ok in received if ok]
        refused = len(received) - len(taken)
        if not taken:
            return "lost", refused
        return judged(call, taken[-1], self.checker.documents, self.truth), refused


def interval(rows: dict[str, list[bool]], draws: int = 2000) -> list[float]:
    """The share of calls with its 95% interval, by drawing releases anew (seed 0)."""
    random_ = random.Random(0)
    names = [name for name, each in rows.items() if each]
    shares = []
    for _ in range(draws):
        drawn = [rows[name] for name in random_.choices(names, k=len(names))]
        shares.append(sum(map(sum, drawn)) / sum(map(len, drawn)))
    shares.sort()
    whole = sum(map(sum, rows.values())) / sum(map(len, rows.values()))
    return [round(one, 3) for one in (whole, shares[draws // 40], shares[-draws // 40])]


def main() -> None:
    ends: dict[str, Counter[str]] = {}
    rows: dict[str, dict[str, list[bool]]] = {}
    refusals: dict[str, int] = {}
    unhurt: dict[str, Counter[str]] = {}
    number = kept_number = 0
    truth_of = truths()
    for pair in pairs():
        broken, kept = calls_of(pair)
        number, kept_number = number + len(broken), kept_number + len(kept)
        truth = truth_of.get(pair.name, {})
        arms = {arm: Arm(arm, pair, truth) for arm in ARMS}
        for kind in KINDS:
            for arm in ARMS if kind != "fuzzy" else ARMS[:1]:
                key = f"{kind}, {arm}"
                each = [arms[arm].ends_of(kind, call) for call in broken]
                ends.setdefault(key, Counter()).update(end for end, _ in each)
                refusals[key] = refusals.get(key, 0) + sum(refused for _, refused in each)
                rows.setdefault(key, {})[pair.name] = [end == "won back" for end, _ in each]
                if arm == "nothing" and kind != "fuzzy":
                    continue
                same = [arms[arm].ends_of(kind, call) for call in kept]
                unhurt.setdefault(key, Counter()).update(
                    "kept" if end in ("won back", "cut") and not refused else end
                    for end, refused in same
                )
    found = {
        "calls that are broken": number,
        "calls that are not": kept_number,
        "ends": {key: dict(each) for key, each in ends.items()},
        "won back, with 95% interval": {key: interval(each) for key, each in rows.items()},
        "refused calls": refusals,
        "calls that the release does not break": {key: dict(each) for key, each in unhurt.items()},
    }
    file = HERE / "results.json"
    known = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps({**known, "benefit": found}, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()

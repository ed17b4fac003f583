"""What changes together in releases of published servers, and the stacks of `plan.toml`.

    python studies/reads/together.py

Reads the lists of `studies/real_drift` again. Writes `together.json`: of the releases with each
kind of change how many have each other kind, how many put the old tools in another order, and each
release as a stack of shifts, each at the severity whose share of the tools is nearest. It differs
from
`studies/real_drift/stacks.json` in that added optional parameters are in it, as `schema_noise`.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
DRIFT = HERE.parent / "real_drift"
sys.path.insert(0, str(DRIFT))

import calibrate  # noqa: E402 - beside the lists
from measure import Pair, as_read, pairs, truths  # noqa: E402

OPTIONAL, ORDER = "an optional parameter added", "the old tools in another order"
NAMES = {
    "tools renamed": "tools renamed",
    "tools with a description reworded or rewritten": "a description reworded or rewritten",
    "tools added, of the old number": "tools added",
    "tools with a parameter renamed": "a parameter renamed",
    "tools with a requirement more": "a requirement more",
    "tools with a type changed or narrowed": "a type changed or narrowed",
    "tools merged, split or dispatched": "tools merged, split or dispatched",
    "tools removed": "tools removed",
}


def optional(pair: Pair) -> float:
    """The share of old tools that gained an optional parameter."""
    hit = {c.old for c in pair.changes if c.kind == "parameter_added" and c.old}
    return len(hit) / len(pair.old)


def reordered(pair: Pair) -> bool:
    """Whether the tools that kept their names stand in another order."""
    new = [tool["name"] for tool in pair.new]
    kept = [tool["name"] for tool in pair.old if tool["name"] in new]
    return kept != sorted(kept, key=new.index)


def stack_of(pair: Pair, truth: dict[str, Any], known: dict[str, dict[int, float]]) -> str:
    """A release as a stack, with its optional parameters."""
    parts = [part for part in calibrate.stack_of(pair, truth, known).split("+") if part]
    if share := optional(pair):
        levels = known["description_paraphrase"]  # it reaches one, all needed or all shown as well
        severity = min(levels, key=lambda one: (abs(levels[one] - share), one))
        parts.append(f"schema_noise:{severity}")
    return "+".join(sorted(parts))


def main() -> None:
    rows = json.loads((DRIFT / "calibration.json").read_text("utf-8"))
    known = {
        name: {int(s): level["share"] for s, level in row["severities"].items()}
        for name, row in rows.items()
    }
    releases, truth = list(pairs()), truths()
    has: dict[str, set[str]] = {name: set() for name in (*NAMES.values(), OPTIONAL, ORDER)}
    for pair in releases:
        each = as_read(pair, truth.get(pair.name, {}))
        for key, name in NAMES.items():
            if each[key]:
                has[name].add(pair.name)
        if optional(pair):
            has[OPTIONAL].add(pair.name)
        if reordered(pair):
            has[ORDER].add(pair.name)
    stacks = {pair.name: stack_of(pair, truth.get(pair.name, {}), known) for pair in releases}
    often = Counter(stack for stack in stacks.values() if stack)
    found = {
        "releases": len(releases),
        "has": {name: len(those) for name, those in has.items()},
        "together": {
            one: {other: len(has[one] & has[other]) for other in has if other != one} for one in has
        },
        "optional parameters, share of tools": sorted(
            round(share, 3) for share in map(optional, releases) if share
        ),
        "stacks": {f"{stack}*{number}": number for stack, number in sorted(often.items())},
    }
    (HERE / "together.json").write_text(json.dumps(found, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()

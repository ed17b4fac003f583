"""Which quantile of real drift each severity of the shifts is, and which stacks releases are like.

    python studies/real_drift/calibrate.py

Applies each shift that changes the list of tools to 33 clean scenes of three worlds and counts the
share of the shown tools that it touches; then finds where that share stands among the releases of
`lists/` that have a change of the kind. Writes `calibration.json`, the table of
`docs/real-drift.md` and `../../src/toolshift/shifts/real_drift.toml`; `stacks.json`, each release
as a stack of shifts, each at the severity whose share is nearest; and the stacks of the suite,
`../../src/toolshift/runs/realistic.toml`. Where those change, the suite gets a new version.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

from measure import Pair, amounts, as_read, pairs, truths

from toolshift.core.scene import Applied, Scene
from toolshift.core.shift import NotApplicable
from toolshift.core.tool import Tool
from toolshift.episode.draw import make_scene
from toolshift.shifts.registry import compose, find_shift
from toolshift.shifts.release.match import words
from toolshift.worlds.registry import OURS, find_world

HERE = Path(__file__).parent
DATA = HERE.parents[1] / "src/toolshift/shifts/real_drift.toml"
SUITE = HERE.parents[1] / "src/toolshift/runs/realistic.toml"
PAGE = HERE.parents[1] / "docs/real-drift.md"
START, END = "<!-- calibration -->", "<!-- end -->"
RENAMED, PARAMETERS = "tools renamed", "tools with a parameter renamed"
MERGED, ADDED = "tools merged, split or dispatched", "tools added, of the old number"
REQUIRED, TYPES = "tools with a requirement more", "tools with a type changed or narrowed"
CHOICES, DEFAULTS = "tools with choices changed", "tools with a default changed or removed"
WORDED = "tools with a description reworded or rewritten"
KIND_OF = {
    "tool_name_noise": RENAMED,
    "semantic_rename": RENAMED,
    "identity_erasure": RENAMED,
    "semantic_trap": RENAMED,
    "parameter_rename": PARAMETERS,
    "description_paraphrase": WORDED,
    "distractor_tools": ADDED,
    "required_parameter": REQUIRED,
    "type_change": TYPES,
    "enum_change": CHOICES,
    "default_change": DEFAULTS,
    "tools_by_action": MERGED,
    "tools_behind_search": MERGED,
    "merged_tools": MERGED,
    "split_tools": MERGED,
}
"""The shifts that change the list of tools, and the kind of real change that each is like."""
TASKS = 11


def touched(before: tuple[Tool, ...], after: tuple[Tool, ...]) -> dict[str, float]:
    """The shares of tools that a shift touches, by what it did and not by what is recognised."""
    shown: dict[tuple[str, ...], list[Tool]] = {}
    for tool in after:
        shown.setdefault(tool.origin, []).append(tool)
    found: Counter[str] = Counter()
    for tool in before:
        each = shown.get(tool.origin, [])
        if len(each) != 1:
            found[MERGED] += 1
            continue
        for kind in _kinds(tool, each[0]):
            found[kind] += 1
    origins = {tool.origin for tool in before}
    found[ADDED] += sum(tool.origin not in origins for tool in after)
    if found[MERGED]:
        found[ADDED] = 0
    return {kind: number / len(before) for kind, number in found.items()}


def _kinds(old: Tool, new: Tool) -> set[str]:
    kinds = {RENAMED} if old.name != new.name else set()
    if old.description != new.description:
        kinds.add(WORDED)
    mine = {param.fact: param for param in old.params}
    for param in new.params:
        was = mine.get(param.fact)
        if was is None:
            kinds |= {REQUIRED} if param.required else set()
            continue
        changed = {
            k for k in {*was.schema, *param.schema} if was.schema.get(k) != param.schema.get(k)
        }
        kinds |= {PARAMETERS} if was.name != param.name else set()
        kinds |= {REQUIRED} if param.required and not was.required else set()
        kinds |= {TYPES} if "type" in changed else set()
        kinds |= {CHOICES} if "enum" in changed else set()
        kinds |= {DEFAULTS} if "default" in changed else set()
    return kinds


def scenes() -> list[Scene]:
    found = []
    for world, number in product(OURS, range(TASKS)):
        kinds = list(find_world(world).kinds)
        index, kind = divmod(number, len(kinds))
        found.append(make_scene(find_world(world), kinds[kind], index))
    return found


def of_shifts() -> dict[str, dict[int, float]]:
    """For each shift and severity the median share of tools that it touches."""
    clean, found = scenes(), dict[str, dict[int, float]]()
    for name, kind in KIND_OF.items():
        for severity in find_shift(name).severities:
            each = []
            for scene in clean:
                try:
                    shifted = compose(scene, [Applied(name, severity)])
                except NotApplicable:
                    continue
                each.append(touched(scene.tools, shifted.tools).get(kind, 0.0))
            if each and max(each) > 0:
                found.setdefault(name, {})[severity] = round(median(each), 3)
    return found


def quantile(values: list[float], share: float) -> float:
    """The part of some sorted values that is at most `share`."""
    return round(bisect_right(values, share + 1e-9) / len(values), 2)


def kinds_of(pair: Pair, truth: dict[str, Any]) -> dict[str, float]:
    """What a release is like: for each of our shifts the share of its tools that it touched."""
    each = as_read(pair, truth)
    like = {
        "parameter_rename": each[PARAMETERS],
        "description_paraphrase": each[WORDED],
        "distractor_tools": each[ADDED],
        "required_parameter": each[REQUIRED],
        "type_change": each[TYPES],
        "enum_change": each[CHOICES],
        "default_change": each[DEFAULTS],
    }
    renamed = truth.get("renamed", {})
    noise = sum(words(old) == words(new) for old, new in renamed.items())
    like["tool_name_noise"] = noise / len(pair.old)
    like["semantic_rename"] = (len(renamed) - noise) / len(pair.old)
    dispatched = sum(c.kind == "tool_dispatched" for c in pair.changes) / len(pair.old)
    like["tools_behind_search"] = dispatched
    like["tools_by_action"] = each[MERGED] - dispatched
    return {name: share for name, share in like.items() if share}


def stack_of(pair: Pair, truth: dict[str, Any], known: dict[str, dict[int, float]]) -> str:
    """A release as a stack of shifts, each at the severity whose share is nearest."""
    parts = []
    for name, share in sorted(kinds_of(pair, truth).items()):
        levels = known.get(name)
        if levels:
            severity = min(levels, key=lambda one: (abs(levels[one] - share), one))
            parts.append(f"{name}:{severity}")
    return "+".join(parts)


def main() -> None:
    releases = list(pairs())
    much, known = amounts(releases), of_shifts()
    rows: dict[str, Any] = {}
    for name, levels in known.items():
        values = much[KIND_OF[name]]
        rows[name] = {
            "like": KIND_OF[name],
            "releases": len(values),
            "of": len(releases),
            "severities": {
                severity: {"share": share, "quantile": quantile(values, share)}
                for severity, share in levels.items()
            },
        }
    (HERE / "calibration.json").write_text(json.dumps(rows, indent=1) + "\n")
    truth = truths()
    stacks = {pair.name: stack_of(pair, truth.get(pair.name, {}), known) for pair in releases}
    often = Counter(stack for stack in stacks.values() if stack)
    said = [f'"{stack}" = {number}' for stack, number in sorted(often.items())]
    head = [
        "# Releases of published servers as stacks of shifts, and how many releases each is like.",
        "# Made by studies/real_drift/calibrate.py for realistic@1; a change makes it version 2.",
        "[stacks]",
    ]
    SUITE.write_text("\n".join([*head, *said]) + "\n")
    (HERE / "stacks.json").write_text(json.dumps(stacks, indent=1) + "\n")
    lines = [
        "# How much of a list a shift touches, beside real releases.",
        "# Made by studies/real_drift/calibrate.py: `share` of the shown tools by severity, and",
        "# `quantile`, the part of the releases with such a change that touch at most as many.",
    ]
    table = [
        "| shift | like | releases | share at 1, 2, 3 | quantile at 1, 2, 3 |",
        "|---|---|--:|---|---|",
    ]
    for name, row in rows.items():
        each = row["severities"]
        lines += ["", f"[{name}]", f'like = "{row["like"]}"', f"releases = {row['releases']}"]
        for key in ("share", "quantile"):
            said = ", ".join(f"{s} = {level[key]}" for s, level in each.items())
            lines.append(f"{key} = {{{said}}}")
        cells = [
            ", ".join(f"{level[key]:.0%}" for level in each.values())
            for key in ("share", "quantile")
        ]
        table.append(
            f"| `{name}` | {row['like']} | {row['releases']} of {row['of']} | {' | '.join(cells)} |"
        )
    DATA.write_text("\n".join(lines) + "\n")
    page = PAGE.read_text()
    before, rest = page.split(START)
    _, after = rest.split(END)
    PAGE.write_text("\n".join([before + START, *table, END + after]))


if __name__ == "__main__":
    main()

"""How many failures begin with a name that is nearly, but not quite, the one to be copied.

    python studies/contrast/miscopied.py paft              # on the pool dev
    python studies/contrast/miscopied.py paft --pool test

Of the failed episodes of an arm's runs under each shift of names, and under redirects and
migrations: what the first unknown tool was that was called. The true name of a tool is one that
was learned in training and is not on offer. A misspelling is no true name, and nearly that of a
tool on offer (the ratio of `difflib` to the nearest name is at least 0.7): the tool was found, and
its name was not copied. A learned verb is such a name with the first word of a true one, as
`get_itinerary` for `obtain_itinerary`. Another name says that it was not found. The last column is
of the same failures: the first call had a text, such as the name of a place, that stands nowhere in
what the user had said.

The second table is of all scenes, by run: in how many of the failures, and of the solvable scenes
that were refused, the first call has a place's name cut short, as "Oskar" for "Oskar on the Hill".
No such place is found then, and the agent may refuse.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter, defaultdict
from collections.abc import Collection
from difflib import SequenceMatcher
from pathlib import Path

import msgspec

from toolshift.core.scene import Scene
from toolshift.core.shift import without_versions
from toolshift.runs.cell import build
from toolshift.runs.run_folder import Record, RunFolder
from toolshift.worlds.poi import NAMES

STAGES = Path(__file__).parent.parent / "stages"
SHIFTS = ("", "identity_erasure", "semantic_rename", "semantic_trap", "redirect", "tool_migrated")
LISTED = re.compile(r"Available tools: ([\w, ]+)")
KINDS = ("misspelt", "a learned verb", "true name", "another name", "no unknown name")
UNSAID = "a text nobody said"
COLUMNS = ("episodes", *KINDS, UNSAID)


def kind_of(record: Record, true: Collection[str]) -> str:
    """What the first unknown tool of an episode is."""
    for step in record.steps:
        listed = LISTED.search(step.text or "")
        if listed and '"unknown_tool"' in (step.text or ""):
            if step.name in true:
                return "true name"
            nearest = max(listed[1].split(", "), key=lambda name: alike(step.name, name))
            if alike(step.name, nearest) < 0.7:
                return "another name"
            verb = step.name.split("_")[0]
            learned = verb in {name.split("_")[0] for name in true}
            return "a learned verb" if learned and verb != nearest.split("_")[0] else "misspelt"
    return "no unknown name"


def alike(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other).ratio()


def first_texts(record: Record) -> list[str]:
    """The texts among the arguments of the first call."""
    given = record.steps[0].arguments if record.steps else {}
    return [v for v in given.values() if isinstance(v, str)] if isinstance(given, dict) else []


def said(scene: Scene) -> str:
    return " ".join(ask.text for ask in scene.asks).lower()


def unsaid(record: Record, scene: Scene) -> bool:
    """Whether the first call has a text that the user did not say."""
    return any(text.lower() not in said(scene) for text in first_texts(record))


def cut_short(record: Record, scene: Scene, endings: Collection[str]) -> bool:
    """Whether the first call has a name that the user said, without its ending."""
    heard = said(scene)
    texts = [text.lower() for text in first_texts(record) if text]
    return any(f"{text} {ending.lower()}" in heard for text in texts for ending in endings)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("arm")
    parser.add_argument("--pool", choices=("dev", "test"), default="dev")
    options = parser.parse_args()
    endings = NAMES[options.pool][1]
    found: dict[str, Counter[str]] = defaultdict(Counter)
    short: dict[str, Counter[str]] = defaultdict(Counter)
    for run in sorted(STAGES.glob(f"{options.arm}-small-seed*/run-*")):
        folder = RunFolder.read(run)
        if folder.manifest.selection.pool != options.pool:
            continue
        if any("+" in row.cell.stack for row in folder.plan.rows):
            continue  # the same shifts were measured with compositions, too
        for record in folder.records():
            cell, grade = folder.cell(record), record.grade
            cut = cut_short(record, build(cell), endings)
            short[run.parent.name]["failures"] += not grade.passed
            short[run.parent.name]["failures, cut"] += not grade.passed and cut
            short[run.parent.name]["refused"] += grade.solvable and grade.refused
            short[run.parent.name]["refused, cut"] += grade.solvable and grade.refused and cut
            if (shift := without_versions(cell.stack).split(":")[0]) in SHIFTS:
                found[shift]["episodes"] += 1
                if not grade.passed:
                    clean = build(msgspec.structs.replace(cell, shifts=()))
                    found[shift][kind_of(record, clean.truth.by_name)] += 1
                    found[shift][UNSAID] += unsaid(record, clean)
    if not short:
        parser.error(
            f"no run of {options.arm!r} on the pool {options.pool} under {STAGES.name}/: the "
            "stages of this study are in the history alone, and studies/README.md says where"
        )
    print(f"| {options.arm}, pool {options.pool} | {' | '.join(COLUMNS)} |")
    print("|---|" + "---:|" * len(COLUMNS))
    for shift in SHIFTS:
        if counted := found[shift]:
            print(f"| {shift or 'clean'} | {' | '.join(str(counted[n]) for n in COLUMNS)} |")
    print("\n| run | failures | name cut short | solvable, refused | name cut short |")
    print("|---|---:|---:|---:|---:|")
    for name, counted in short.items():
        print(f"| {name} | {' | '.join(str(n) for n in counted.values())} |")


if __name__ == "__main__":
    main()

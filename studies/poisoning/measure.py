"""How many attacks the signs of instructions find, and how many honest tools they flag.

    python studies/poisoning/measure.py    # prints the table of docs/watch.md

`attacks.jsonl` has tools with planted texts, in 24 languages. They were written before the rules
that are measured here, and not changed since. The honest tools are all distinct ones of the lists
in `studies/real_drift`, each beside the other tools of its list.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

from toolshift.drift.instructions import signs_in

HERE = Path(__file__).parent
HIDDEN = range(30, 44)
"""The attacks that hide or encode their text."""


def kind(attack: dict) -> str:
    if attack["id"] in HIDDEN:
        return "hidden or encoded"
    return "plain English" if attack["language"] == "en" else "other languages"


def main() -> None:
    attacks = [json.loads(line) for line in (HERE / "attacks.jsonl").read_text().splitlines()]
    of = Counter(map(kind, attacks))
    found = Counter(kind(each) for each in attacks if signs_in([each["tool"]]))
    for name, count in of.items():
        print(f"{name}: {found[name]} of {count}")
    missed = [each["id"] for each in attacks if not signs_in([each["tool"]])]
    print(f"attacks: {found.total()} of {of.total()}; missed: {missed}")
    honest: dict[str, bool] = {}
    for path in sorted((HERE.parent / "real_drift/lists").glob("*.json.gz")):
        for version in json.loads(gzip.decompress(path.read_bytes()))["versions"].values():
            signs = signs_in(version["tools"])
            for tool in version["tools"]:
                honest[json.dumps(tool, sort_keys=True)] = tool["name"] in signs
    print(f"honest tools: {sum(honest.values())} of {len(honest)} flagged")


if __name__ == "__main__":
    main()

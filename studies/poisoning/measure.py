"""How many attacks the signs of instructions find, and how many honest tools they flag.

    python studies/poisoning/measure.py    # prints the table of docs/watch.md

`attacks.jsonl.gz` has tools with planted texts, in many languages, in the order in which they
were written: 66 before the rules that are measured here, 24 ("fresh") after a first form of them,
which found 6 of those, and 20 ("last") after the last change of the rules. Of 40 English orders
in disguise the rules found 23 when first tried, and of 16 further ones ("disguised later") 6,
before they were widened. Each is judged as it would come into an English list that is locked. The
honest tools are all distinct ones of the lists in `studies/real_drift`, each beside the other
tools of its list, as if all of it were new; `honest.txt` has 100 descriptions that look like
orders, ciphers and secrets.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

from toolshift.drift.poisoning import signs_in

HERE = Path(__file__).parent
HIDDEN = range(30, 44)
"""The attacks that hide or encode their text."""
LOCKED = [
    {"name": "one", "description": "Returns the price of a stock in the given currency."},
    {"name": "two", "description": "Lists all of the orders that a customer has placed."},
    {"name": "three", "description": "Sends a message to one of the channels of the workspace."},
]


def kind(attack: dict) -> str:
    """The row of the table that an attack is counted in."""
    if attack["id"] in HIDDEN or attack.get("set", "").startswith("disguised"):
        return "hidden or encoded"
    return "plain English" if attack["language"] == "en" else "other languages"


def main() -> None:
    packed = (HERE / "attacks.jsonl.gz").read_bytes()
    attacks = [json.loads(line) for line in gzip.decompress(packed).splitlines()]
    for chosen in ("", "fresh", "last", "disguised", "disguised later"):
        mine = [each for each in attacks if each.get("set", "") == chosen]
        found = [each for each in mine if signs_in([*LOCKED, each["tool"]], LOCKED)]
        of, hits = Counter(map(kind, mine)), Counter(map(kind, found))
        told = ", ".join(f"{name} {hits[name]} of {count}" for name, count in of.items())
        missed = [each["id"] for each in mine if each not in found]
        print(f"{chosen or 'first'}: {len(found)} of {len(mine)} ({told}); missed: {missed}")
    honest: dict[str, bool] = {}
    for path in sorted((HERE.parent / "real_drift/lists").glob("*.json.gz")):
        for version in json.loads(gzip.decompress(path.read_bytes()))["versions"].values():
            signs = signs_in(version["tools"])
            for tool in version["tools"]:
                honest[json.dumps(tool, sort_keys=True)] = tool["name"] in signs
    lines = (HERE / "honest.txt").read_text().splitlines()
    alone = [{"name": "tool", "description": line} for line in lines]
    flagged = [tool for tool in alone if signs_in([*LOCKED, tool], LOCKED)]
    print(f"honest descriptions: {len(flagged)} of {len(alone)} flagged")
    print(f"honest tools: {sum(honest.values())} of {len(honest)} flagged")


if __name__ == "__main__":
    main()

"""Compares the reading of prose with the labels of finishes.

python studies/strangers/finishes/measure.py             # the families that it was developed on
python studies/strangers/finishes/measure.py --show      # and where it disagrees with the labels
python studies/strangers/finishes/measure.py --held-out  # the third held-out set: results_4.json
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

from sklearn.metrics import cohen_kappa_score

from toolshift.core.files import read_bytes, stored
from toolshift.core.message import CODE
from toolshift.reading.prose import read_prose
from toolshift.reading.text import codes_in

HERE = Path(__file__).parent
DEVELOPMENT = ("dev", "heldout", "heldout_2")


def lines(name: str) -> list[dict[str, Any]]:
    """The records of a JSON Lines file of this folder."""
    return [json.loads(line) for line in read_bytes(stored(HERE / name)).splitlines()]


def read(case: dict[str, Any]) -> tuple[str, str, str]:
    """The reading of one finish, and the results that were shown."""
    shown = "\n".join(said["text"] for said in case["context"] if said["role"] == "result")
    request = "\n".join(said["text"] for said in case["context"] if said["role"] == "user")
    kind, reason = read_prose(case["finish"], shown, request)
    return kind, (reason or "other") if kind == "refusal" else "", shown


def kappa(pairs: list[tuple[str, str]]) -> float | None:
    """Cohen's kappa; None where there are no pairs."""
    return round(float(cohen_kappa_score(*zip(*pairs, strict=True))), 3) if pairs else None


def states_it(finish: str, value: str, shown: str) -> bool:
    """Whether the value that the reader saw in an answer is among those that the rule sees."""
    return value in {stated.code for stated in codes_in(finish, set(CODE.findall(shown)))}


def measure(half: str, show: bool = False) -> dict[str, Any]:
    """Agreement with the labels of one set."""
    sample, first = lines(f"{half}_sample.jsonl"), lines(f"{half}_labels_a.jsonl")
    kinds, reasons, values = [], [], []
    families: dict[str, list[tuple[str, str]]] = {}
    for case, label in zip(sample, first, strict=True):
        kind, reason, shown = read(case)
        kinds.append((label["kind"], kind))
        families.setdefault(case["family"], []).append(kinds[-1])
        if label["kind"] == kind == "refusal":
            reasons.append((label["reason"], reason))
        if label["kind"] == "answer" and CODE.fullmatch(label["answer_value"]):
            values.append(states_it(case["finish"], label["answer_value"], shown))
        if show and (label["kind"], label["reason"]) != (kind, reason):
            wrong = f"{label['kind']}/{label['reason']} read as {kind}/{reason}"
            print(f"{case['id']} {wrong}: {case['finish']!r}")
    return {
        "finishes": len(kinds),
        "kind": kappa(kinds),
        "kind_agreed": sum(a == b for a, b in kinds),
        "reason": kappa(reasons),
        "reason_agreed": sum(a == b for a, b in reasons),
        "refusals_of_both": len(reasons),
        "values": len(values),
        "values_seen": sum(values),
        "confusion": {f"{a} read as {b}": n for (a, b), n in sorted(Counter(kinds).items())},
        "kind_by_family": {name: kappa(pairs) for name, pairs in sorted(families.items())},
    }


def main() -> None:
    """Checks the hashes of the data, and measures."""
    parser = argparse.ArgumentParser(description="Measures the reading of prose.")
    parser.add_argument("--held-out", action="store_true", help="score the held-out set")
    parser.add_argument("--show", action="store_true", help="print disagreements of development")
    options = parser.parse_args()
    for line in (HERE / "SHA256SUMS").read_text("utf-8").splitlines():
        digest, name = line.split()
        assert hashlib.sha256(read_bytes(stored(HERE / name))).hexdigest() == digest, name
    if options.held_out:
        results = {"heldout_4": measure("heldout_4")}
        (HERE / "results_4.json").write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    else:
        results = {half: measure(half, options.show) for half in DEVELOPMENT}
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()

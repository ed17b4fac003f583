"""Compares the rule that reads prose with the labels of 200 finishes.

python studies/prose_finishes/audit.py
python studies/prose_finishes/audit.py --run runs/smol --run runs/chat
"""

from __future__ import annotations

import argparse
import json
import math
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import cohen_kappa_score, confusion_matrix

from toolshift.core import seed as seeds
from toolshift.core.files import read_bytes, stored
from toolshift.core.message import REASONS
from toolshift.reading.prose import read_prose

HERE = Path(__file__).parent
KINDS = ["answer", "refusal", "question"]
WHY = [*REASONS, "other"]
DRAWS = 2000
Reading = dict[str, str]


def lines(path: Path) -> list[dict[str, Any]]:
    """The records of a JSON Lines file."""
    return [json.loads(line) for line in read_bytes(stored(path)).splitlines()]


def read(finish: str, shown: str, request: str = "") -> Reading:
    """The rule's reading; a refusal for none of the four reasons is `other`, as in the labels."""
    kind, reason = read_prose(finish, shown, request)
    if kind == "none":  # these labels do not tell a claim without evidence from an answer
        kind = "answer"
    return {"kind": kind, "reason": (reason or "other") if kind == "refusal" else ""}


def reading_of(case: dict[str, Any]) -> Reading:
    """The rule's reading of one finish of the sample."""
    shown = (said["text"] for said in case["context"] if said["role"] == "result")
    request = (said["text"] for said in case["context"] if said["role"] == "user")
    return read(case["finish"], "\n".join(shown), "\n".join(request))


def kappa(ours: Sequence[str], theirs: Sequence[str], classes: list[str]) -> float | None:
    """Cohen's kappa; None where it is not defined."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = float(cohen_kappa_score(ours, theirs, labels=classes)) if ours else math.nan
    return None if math.isnan(value) else value


def kappa_of(counts: Any) -> float | None:
    """Cohen's kappa of a confusion matrix; scikit-learn's is too slow for thousands of draws."""
    n = counts.sum()
    chance = float(counts.sum(0) @ counts.sum(1)) / n**2
    return None if chance == 1 else (float(np.trace(counts)) / n - chance) / (1 - chance)


def agreement(ours: list[str], theirs: list[str], classes: list[str]) -> dict[str, Any]:
    """Agreement and kappa, with the 95% percentile interval over resampled finishes.

    Returns:
        Counts, shares, and the confusion matrix: rows are labels, columns readings.
    """
    agreed = sum(a == b for a, b in zip(ours, theirs, strict=True))
    counts = confusion_matrix(ours, theirs, labels=classes) if ours else np.zeros((1, 1), int)
    draw = np.random.default_rng(seeds.derive(0, "prose_finishes"))
    shares = counts.ravel() / max(len(ours), 1)
    drawn: Any = draw.multinomial(len(ours), shares, size=DRAWS) if ours else []
    tables = [kappa_of(table.reshape(counts.shape)) for table in drawn]
    defined = [value for value in tables if value is not None]
    whole = kappa(ours, theirs, classes)
    return {
        "n": len(ours),
        "agreed": agreed,
        "kappa": None if whole is None else round(whole, 3),
        "interval": [round(float(q), 3) for q in np.percentile(defined, [2.5, 97.5])]
        if defined
        else None,
        "classes": classes,
        "confusion": counts.tolist(),
    }


def compare(labels: Sequence[Reading], readings: Sequence[Reading]) -> dict[str, Any]:
    """Kind over all finishes, and the reason where both sides see a refusal."""
    refusals = [
        (a["reason"], b["reason"])
        for a, b in zip(labels, readings, strict=True)
        if a["kind"] == b["kind"] == "refusal"
    ]
    return {
        "kind": agreement([a["kind"] for a in labels], [b["kind"] for b in readings], KINDS),
        "reason": agreement([a for a, _ in refusals], [b for _, b in refusals], WHY),
    }


def parts(sample: list[dict[str, Any]]) -> dict[str, list[int]]:
    """The places in the sample of each part that is reported."""
    places = {"all": list(range(len(sample)))}
    for key in ("split", "source"):
        for value in sorted({case[key] for case in sample}):
            places[value] = [i for i, case in enumerate(sample) if case[key] == value]
    for source in sorted({case["source"] for case in sample}):
        places[f"held_out {source}"] = [
            i for i in places["held_out"] if sample[i]["source"] == source
        ]
    return places


def count_run(folder: Path) -> dict[str, Any]:
    """How the episodes of a run ended: by the protocol, or in prose as the rule reads it now."""
    ends: Counter[str] = Counter()
    for episode in lines(folder / "episodes.jsonl"):
        last = episode["steps"][-1]
        if not last.get("prose"):
            ends[f"protocol: {last['kind']}"] += 1
            continue
        shown = "\n".join(s.get("text", "") for s in episode["steps"] if s["kind"] == "call")
        ends[f"prose: {read(last['said'], shown)['kind']}"] += 1
    return {"episodes": ends.total(), "ends": dict(sorted(ends.items()))}


def main() -> None:
    """Writes results.json and prints its main lines."""
    parser = argparse.ArgumentParser(description="Audits the rule that reads prose.")
    parser.add_argument("--run", action="append", type=Path, default=[], help="count a run too")
    sample = lines(HERE / "sample.jsonl")
    first, second = lines(HERE / "labels_a.jsonl"), lines(HERE / "labels_b.jsonl")
    for file in (first, second):
        assert [label["id"] for label in file] == [case["id"] for case in sample]
    rules = {
        "before": lines(HERE / "readings_before.jsonl"),
        "now": [reading_of(case) for case in sample],
    }
    results: dict[str, Any] = {"intra_rater": compare(first, second)}
    for rule, readings in rules.items():
        results[rule] = {
            part: compare([first[i] for i in places], [readings[i] for i in places])
            for part, places in parts(sample).items()
        }
    results["runs"] = {folder.name: count_run(folder) for folder in parser.parse_args().run}
    before = HERE / "results.json"
    if not results["runs"] and before.exists():
        results["runs"] = json.loads(before.read_text("utf-8"))["runs"]
    before.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    rows = [("first labels", "second", results["intra_rater"])]
    rows += [(rule, part, found) for rule in rules for part, found in results[rule].items()]
    for rule, part, found in rows:
        for what in ("kind", "reason"):
            got = found[what]
            score = f"{got['agreed']}/{got['n']} kappa {got['kappa']} {got['interval']}"
            print(f"{rule:13} {part:17} {what:6} {score}")


if __name__ == "__main__":
    main()

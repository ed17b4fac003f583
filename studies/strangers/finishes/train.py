"""Sets the weights of the model that reads prose, and estimates how well it reads other families.

python studies/strangers/finishes/train.py    # writes src/toolshift/reading/prose_weights.json
python studies/strangers/finishes/train.py --leave-one-family-out    # writes generalisation.json

It learns from the 600 finishes of twelve families, the 200 of an older audit (prose_finishes), 251
of which many differ in a few words alone (further.jsonl), and finishes made up of parts.toml.
Nothing is drawn but by the seeds below.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from made import finishes
from measure import HERE, kappa, lines
from sklearn.feature_extraction import DictVectorizer
from sklearn.linear_model import LogisticRegression

from toolshift.core.files import read_bytes, stored
from toolshift.reading.prose_signs import Message

WEIGHTS = HERE.parents[2] / "src/toolshift/reading/prose_weights.json"
OLDER = HERE.parents[1] / "prose_finishes"
MADE, SEED = 5000, 1
REAL = 4.0
"""How much a finish of a sample counts beside one that is made up."""
STRENGTH = 0.5
"""The inverse of the regularisation (C of scikit-learn)."""
FEWEST, SILENT = 4, 8
"""A sign that fewer finishes have is left out, and one whose weights are all smaller."""
STRUCTURE = 2.0
"""The value of a sign of structure; a word has 1."""
UNIT = 100
"""Weights are rounded to hundredths and kept as whole numbers."""
REASON_OF_OTHER = "other"


def cases() -> list[dict[str, Any]]:
    """The labelled finishes of all samples, each with its family."""
    found = []
    for half in ("dev", "heldout", "heldout_2"):
        for case, label in zip(
            lines(f"{half}_sample.jsonl"), lines(f"{half}_labels_a.jsonl"), strict=True
        ):
            found.append({**case, "kind": label["kind"], "reason": label["reason"]})
    found += lines("further.jsonl")
    older = [
        read_bytes(stored(OLDER / name)).splitlines() for name in ("sample.jsonl", "labels_a.jsonl")
    ]
    for case, label in zip(*(map(json.loads, part) for part in older), strict=True):
        family = f"older_{case['source']}"
        found.append({**case, "family": family, "kind": label["kind"], "reason": label["reason"]})
    return found


def read(case: dict[str, Any]) -> Message:
    """The message of a case beside what was shown and said."""
    said = {
        role: "\n".join(one["text"] for one in case["context"] if one["role"] == role)
        for role in ("result", "user")
    }
    return Message(case["finish"], said["result"], said["user"])


def valued(signs: list[str]) -> dict[str, float]:
    """The signs with their values."""
    return {sign: STRUCTURE if sign.startswith("~") else 1.0 for sign in signs}


class Task:
    """One model: its cases as signs, their labels, families and weights."""

    def __init__(self, name: str, chosen: list[dict[str, Any]]) -> None:
        messages = list(map(read, chosen))
        held = [m.kind_signs() if name == "kind" else m.reason_signs() for m in messages]
        kept = Counter(sign for signs in held for sign in signs)
        self.name = name
        self.vectorizer = DictVectorizer()
        self.signs = self.vectorizer.fit_transform(
            [valued([sign for sign in signs if kept[sign] >= FEWEST]) for signs in held]
        )
        self.labels = np.array(
            [label_of(name, case, m) for case, m in zip(chosen, messages, strict=True)]
        )
        self.states = np.array([message.states for message in messages])
        self.families = np.array([case["family"] for case in chosen])
        self.shares = np.where(self.families == "made", 1.0, REAL)

    def fit(self, rows: np.ndarray) -> LogisticRegression:
        """The model of these rows."""
        model = LogisticRegression(C=STRENGTH, max_iter=1000)
        return model.fit(self.signs[rows], self.labels[rows], self.shares[rows])

    def read(self, model: LogisticRegression, rows: np.ndarray) -> np.ndarray:
        """What the model says of these rows."""
        sums = model.decision_function(self.signs[rows])
        if self.name == "kind":
            sums[~self.states[rows], list(model.classes_).index("answer")] = -np.inf
        return np.asarray(model.classes_[sums.argmax(axis=1)])


def label_of(name: str, case: dict[str, Any], message: Message) -> str:
    """The label; an older answer that states nothing is what is called none today."""
    if name == "reason":
        return case["reason"] or REASON_OF_OTHER
    older = case["family"].startswith("older")
    return "none" if older and case["kind"] == "answer" and not message.states else case["kind"]


def tasks() -> list[Task]:
    """The two models with their cases."""
    every = [*cases(), *finishes(MADE, SEED)]
    return [Task("kind", every), Task("reason", [c for c in every if c["kind"] == "refusal"])]


def scale(task: Task) -> dict[str, Any]:
    """A model as whole numbers; signs that say nothing are left out."""
    model = task.fit(np.arange(len(task.labels)))
    names = task.vectorizer.get_feature_names_out()
    weights = {"": np.rint(UNIT * model.intercept_).astype(int).tolist()}
    for column, name in enumerate(names):
        value = STRUCTURE if name.startswith("~") else 1.0
        rounded = np.rint(UNIT * value * model.coef_[:, column]).astype(int)
        if np.abs(rounded).max() >= SILENT:
            weights[name] = rounded.tolist()
    return {"classes": model.classes_.tolist(), "weights": dict(sorted(weights.items()))}


def generalisation(task: Task) -> dict[str, Any]:
    """Kappa on each family, read by a model that has not seen it; and by made-up finishes alone."""
    made = task.families == "made"
    families = sorted(set(task.families) - {"made"})
    said = task.labels.copy()
    for family in families:
        own = task.families == family
        said[own] = task.read(task.fit(np.flatnonzero(~own)), np.flatnonzero(own))
    alone = task.labels.copy()
    alone[~made] = task.read(task.fit(np.flatnonzero(made)), np.flatnonzero(~made))
    ours = [np.char.startswith(task.families, name) for name in ("older", "further")]
    new = ~made & ~ours[0] & ~ours[1]

    def agreed(read: np.ndarray, rows: np.ndarray) -> float | None:
        return kappa(list(zip(task.labels[rows].tolist(), read[rows].tolist(), strict=True)))

    return {
        "twelve_families": agreed(said, new),
        "made_up_finishes_alone": agreed(alone, new),
        "by_family": {str(name): agreed(said, task.families == name) for name in families},
    }


def main() -> None:
    """Writes the weights, or the estimate."""
    parser = argparse.ArgumentParser(description="Trains the model that reads prose.")
    parser.add_argument("--leave-one-family-out", action="store_true")
    if parser.parse_args().leave_one_family_out:
        found = {task.name: generalisation(task) for task in tasks()}
        (HERE / "generalisation.json").write_text(json.dumps(found, indent=1) + "\n", "utf-8")
        print(json.dumps(found, indent=1))
        return
    made = {task.name: scale(task) for task in tasks()}
    text = json.dumps(made, ensure_ascii=False, separators=(",", ":")).replace('],"', '],\n"')
    Path(WEIGHTS).write_text(text + "\n", "utf-8")
    print(f"{len(text)} characters, {sum(len(one['weights']) for one in made.values())} signs")


if __name__ == "__main__":
    main()

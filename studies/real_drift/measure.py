"""Precision and recall of the classifier, and how published servers change.

    python studies/real_drift/measure.py [--changes FILE]

Compares every two successive lists in `lists/` by `toolshift.drift.changes`, and what it says with
`read_by_eye.json`. Writes `results.json` (all figures), the tables of precision and recall in
README.md, and those of frequencies in `figures.md`. No network.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
from collect import read_list

from toolshift.drift.calls import counter_examples
from toolshift.drift.changes import KINDS, ToolChange, changes_between
from toolshift.measure.statistics import wilson

HERE = Path(__file__).parent
START, END = "<!-- figures -->", "<!-- end -->"
GROUPS = ("tune", "check", "held_out")
Key = tuple[str, ...]


class Pair(msgspec.Struct, frozen=True):
    """Two successive lists of one server, and what the classifier says of them."""

    server: str
    group: str
    versions: tuple[str, str]
    old: list[dict[str, Any]]
    new: list[dict[str, Any]]
    changes: tuple[ToolChange, ...]

    @property
    def name(self) -> str:
        return f"{self.server} {' -> '.join(self.versions)}"


def pairs() -> Iterator[Pair]:
    """Every two successive versions of which there are lists."""
    servers = tomllib.loads((HERE / "servers.toml").read_text())
    for server, about in servers.items():
        known = read_list(server).get("versions", {})
        for one, other in pairwise(v for v in about["versions"] if v in known):
            old, new = known[one]["tools"], known[other]["tools"]
            found = changes_between(old, new)
            yield Pair(server, about["group"], (one, other), old, new, found)


# -- against what was read by eye ------------------------------------------------------------------


SUCCESSORS = "tools renamed or merged"
WHATS = ("tools renamed", "tools merged", SUCCESSORS, "parameters renamed")
STANDINGS = ("", ", certain ones", ", questions")
"""What is taken (certain or likely), what of it is certain, and what is only a question."""


def said(pair: Pair, what: str, standing: str = "") -> set[Key]:
    """What the classifier says of a pair, as keys, by its standing."""
    if standing == ", questions":
        asked = [c for c in pair.changes if c.perhaps]
        if what == "parameters renamed":
            names = [(c.old, c.where, c.where.rpartition(".")) for c in asked if c.where]
            moved = [c.perhaps for c in asked if c.where]
            pairs_ = zip(names, moved, strict=True)
            return {(t, w, f"{lead}{dot}{new}") for (t, w, (lead, dot, _)), new in pairs_}
        return {(c.old, c.perhaps) for c in asked if not c.where}
    found = [c for c in pair.changes if c.sure or not standing]
    if what == "parameters renamed":
        renamed = [c for c in found if c.kind == "parameter_renamed"]
        return {(c.old, c.where, c.where.removesuffix(c.before) + c.after) for c in renamed}
    if what == "broken tools":
        return {(c.old,) for c in found if c.severity == "breaking"}
    kind = {"tools renamed": "tool_renamed", "tools merged": "tool_merged"}[what]
    return {(c.old, c.new) for c in found if c.kind == kind}


def read(truth: dict[str, Any], what: str) -> set[Key]:
    """What was read by eye of a pair."""
    if what == "parameters renamed":
        tables = truth.get("params", {})
        return {(t, old, new) for t, table in tables.items() for old, new in table.items()}
    if what == "broken tools":
        return {(name,) for name in truth.get("broken", [])}
    if what == "tools merged":
        return {(old, new) for new, olds in truth.get("merged", {}).items() for old in olds}
    if what == SUCCESSORS:
        return read(truth, "tools renamed") | read(truth, "tools merged")
    return set(truth.get("renamed", {}).items())


def at(right: int, of: int, end: str) -> float:
    return float(getattr(wilson(right, of), end))


def scored(known: Iterable[tuple[str, set[Key], set[Key]]]) -> dict[str, Any]:
    """Precision and recall over pairs, with Wilson's interval, and what was wrong."""
    right = claimed = true = 0
    wrong, missed = [], []
    for name, guess, truth in known:
        right += len(guess & truth)
        claimed += len(guess)
        true += len(truth)
        wrong += [[name, *key] for key in sorted(guess - truth)]
        missed += [[name, *key] for key in sorted(truth - guess)]
    shares = {"precision": (right, claimed), "recall": (right, true)}
    return {
        **{
            key: {
                "of": of,
                "right": n,
                "interval": [round(at(n, of, end), 3) for end in ("low", "high")],
            }
            if of
            else None
            for key, (n, of) in shares.items()
        },
        "wrong": wrong,
        "missed": missed,
    }


def against_eye(all_pairs: list[Pair]) -> dict[str, Any]:
    truth = truths()
    out: dict[str, Any] = {}
    for what in (*WHATS, "broken tools"):
        for group in GROUPS:
            if what == "broken tools" and group != "held_out":
                continue  # of the twelve, breaks were not read by eye
            for standing in STANDINGS:
                if standing and what in ("tools merged", "broken tools"):
                    continue
                if (what == SUCCESSORS) != (standing == ", questions" and what[0] != "p"):
                    continue
                rows = [
                    (p.name, said(p, what, standing), read(truth.get(p.name, {}), what))
                    for p in all_pairs
                    if p.group == group
                ]
                out[f"{what}{standing}: {group}"] = scored(rows)
    what, untold = "parameters renamed", [without_texts(p) for p in all_pairs]
    for standing in (STANDINGS[0], STANDINGS[-1]):
        rows = [
            (p.name, said(p, what, standing), read(truth.get(p.name, {}), what)) for p in untold
        ]
        out[f"{what}{standing}, without their texts: all"] = scored(rows)
    return out


def without_texts(pair: Pair) -> Pair:
    """The same releases with parameters that say nothing but their names, as many tools have."""
    old, new = ([_untold(tool) for tool in tools] for tools in (pair.old, pair.new))
    return msgspec.structs.replace(pair, old=old, new=new, changes=changes_between(old, new))


def _untold(tool: dict[str, Any]) -> dict[str, Any]:
    schema = tool.get("inputSchema", {})
    bare = {
        name: {key: value for key, value in one.items() if key != "description"}
        if isinstance(one, dict)
        else one
        for name, one in schema.get("properties", {}).items()
    }
    return {**tool, "inputSchema": {**schema, "properties": bare}} if bare else tool


def against_tries(all_pairs: list[Pair]) -> dict[str, Any]:
    """Tools called broken against tools of which a call, made from the old schema, is refused."""
    out = {}
    for group in GROUPS:
        rows = []
        for pair in all_pairs:
            if pair.group == group:
                tried = {(name,) for name in counter_examples(pair.old, pair.new)}
                rows.append((pair.name, said(pair, "broken tools"), tried))
        out[group] = scored(rows)
    return out


def splits(all_pairs: list[Pair]) -> dict[str, Any]:
    """No split was published; every pair read backwards has one where tools were merged."""
    truth = truths()
    rows = []
    for pair in all_pairs:
        back = changes_between(pair.new, pair.old)
        guess = {(c.old, c.new) for c in back if c.kind == "tool_split"}
        merged = truth.get(pair.name, {}).get("merged", {})
        rows.append(
            (pair.name, guess, {(new, old) for new, olds in merged.items() for old in olds})
        )
    return scored(rows)


# -- how often, how much ---------------------------------------------------------------------------


def frequencies(all_pairs: list[Pair]) -> dict[str, Any]:
    servers = {pair.server for pair in all_pairs}
    olds = sum(len(pair.old) for pair in all_pairs)
    rows = {}
    for kind in KINDS:
        each = [sum(c.kind == kind for c in pair.changes) for pair in all_pairs]
        has = {p.server for p, n in zip(all_pairs, each, strict=True) if n}
        rows[kind] = {"changes": sum(each), "pairs": sum(map(bool, each)), "servers": len(has)}
    broken = [len(said(p, "broken tools")) / len(p.old) for p in all_pairs]
    return {
        "pairs": len(all_pairs),
        "servers": len(servers),
        "old tools": olds,
        "pairs with a break": sum(map(bool, broken)),
        "broken tools": sum(len(said(p, "broken tools")) for p in all_pairs),
        "kinds": rows,
    }


_WORDED = ("description_reworded", "description_rewritten")


def shares(pair: Pair) -> dict[str, float]:
    """How much of a list one kind of change touches: shares of its old tools."""

    def touched(*kinds: str) -> float:
        tools = {c.old for c in pair.changes if c.kind in kinds and c.old}
        return len(tools) / len(pair.old)

    return {
        "tools renamed": touched("tool_renamed"),
        "tools merged, split or dispatched": touched(
            "tool_merged", "tool_split", "tool_dispatched"
        ),
        "tools removed": touched("tool_removed"),
        "tools added, of the old number": sum(c.kind == "tool_added" for c in pair.changes)
        / len(pair.old),
        "tools with a parameter renamed": touched("parameter_renamed"),
        "tools with a requirement more": touched("required_parameter_added", "parameter_required"),
        "tools with a type changed or narrowed": touched("type_changed", "type_narrowed"),
        "tools with choices changed": touched(
            "choice_removed", "choice_replaced", "choices_introduced"
        ),
        "tools with a default changed or removed": touched("default_changed", "default_removed"),
        "tools with a description reworded or rewritten": len(
            {c.old for c in pair.changes if c.kind in _WORDED and not c.where}
        )
        / len(pair.old),
        "tools broken": touched(*{c.kind for c in pair.changes if c.severity == "breaking"}),
    }


def as_read(pair: Pair, truth: dict[str, Any]) -> dict[str, float]:
    """`shares`, where what became what is as it was read by eye."""
    old, new = ({tool["name"] for tool in tools} for tools in (pair.old, pair.new))
    renamed, merged = truth.get("renamed", {}), truth.get("merged", {})
    into = sum(len(olds) for olds in merged.values())
    into += sum(c.kind == "tool_dispatched" for c in pair.changes)
    counts = {
        "tools renamed": len(renamed),
        "tools merged, split or dispatched": into,
        "tools with a parameter renamed": len(truth.get("params", {})),
        "tools added, of the old number": len(new - old - {*renamed.values(), *merged}),
        "tools removed": len(old - new - {*renamed, *(one for m in merged.values() for one in m)}),
    }
    return {**shares(pair), **{key: number / len(pair.old) for key, number in counts.items()}}


def truths() -> dict[str, Any]:
    read_: dict[str, Any] = json.loads((HERE / "read_by_eye.json").read_text())
    return read_


def amounts(all_pairs: list[Pair]) -> dict[str, list[float]]:
    """For each kind the shares over the pairs that have it, sorted."""
    truth = truths()
    each = [as_read(pair, truth.get(pair.name, {})) for pair in all_pairs]
    return {key: sorted(round(one[key], 4) for one in each if one[key]) for key in each[0]}


# -- what is written -------------------------------------------------------------------------------


def percent(score: dict[str, Any] | None) -> str:
    if score is None:
        return "none"
    low, high = score["interval"]
    share = 100 * score["right"] / score["of"]
    return f"{score['right']} of {score['of']} ({share:.0f}% [{100 * low:.0f}, {100 * high:.0f}])"


def table(title: str, rows: dict[str, Any]) -> list[str]:
    lines = ["", f"### {title}", "", "| what | precision | recall |", "|---|---|---|"]
    for name, score in rows.items():
        lines.append(f"| {name} | {percent(score['precision'])} | {percent(score['recall'])} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--changes", type=Path, help="a file for every change, a line each")
    changes = parser.parse_args().changes
    found = list(pairs())
    eye, tries, back = against_eye(found), against_tries(found), splits(found)
    often, much = frequencies(found), amounts(found)
    results = {
        "against what was read by eye": eye,
        "broken tools, against calls that are tried": tries,
        "splits, pairs read backwards": back,
        "frequencies": often,
        "amounts": much,
    }
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in results.items()]
    (HERE / "results.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    if changes:
        rows = [
            {"pair": pair.name, **msgspec.to_builtins(change)}
            for pair in found
            for change in pair.changes
        ]
        changes.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    page = HERE / "README.md"
    before, rest = page.read_text().split(START)
    _, after = rest.split(END)
    share = often["broken tools"] / often["old tools"]
    shown = [
        f"{often['pairs with a break']} of the {often['pairs']} releases break at least one tool, "
        f"{often['broken tools']} of {often['old tools']} tools in all ({share:.0%}).",
        *table("Against what was read by eye", eye),
    ]
    shown += table("Broken tools, against calls that are tried", tries)
    shown += table("Splits", {"all releases, read backwards": back})
    page.write_text("\n".join([before + START, *shown, "", END + after]))
    lines = [
        "# How published servers change",
        "",
        "Made by `python studies/real_drift/measure.py`.",
    ]
    lines += ["", "## How often", "", "| kind | changes | pairs | servers |", "|---|--:|--:|--:|"]
    for kind, n in often["kinds"].items():
        lines.append(f"| {KINDS[kind]} | {n['changes']} | {n['pairs']} | {n['servers']} |")
    lines += ["", "## How much", "", "Shares of the old tools, over the pairs that have any.", ""]
    lines += [
        "| what | pairs | least | median | three quarters | most |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for name, values in much.items():
        cuts = [values[int(q * (len(values) - 1))] for q in (0, 0.5, 0.75, 1)] if values else []
        cells = " | ".join(f"{cut:.0%}" for cut in cuts) or " | | | "
        lines.append(f"| {name} | {len(values)} | {cells} |")
    (HERE / "figures.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

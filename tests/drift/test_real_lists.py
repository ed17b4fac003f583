"""The classifier on the lists of published servers (studies/real_drift)."""

from __future__ import annotations

import gzip
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from drift.test_hypotheses import hypotheses_between

from toolshift.drift.calls import counter_examples
from toolshift.drift.changes import changes_between, worst_severity
from toolshift.drift.lock import lock_tools, verify

STUDY = Path(__file__).parents[2] / "studies" / "real_drift"
LISTS = sorted((STUDY / "lists").glob("*.json.gz"))
TRUTH = json.loads((STUDY / "read_by_eye.json").read_text())
Listed = list[dict[str, Any]]


def releases(path: Path) -> list[tuple[str, Listed, Listed]]:
    held = json.loads(gzip.decompress(path.read_bytes()))
    versions = held["versions"]
    return [
        (f"{held['server']} {one} -> {other}", versions[one]["tools"], versions[other]["tools"])
        for one, other in pairwise(versions)
    ]


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_a_tool_of_which_a_call_is_refused_is_called_broken(path: Path) -> None:
    for name, old, new in releases(path):
        broken = {c.old for c in changes_between(old, new) if c.severity == "breaking"}
        assert set(counter_examples(old, new)) <= broken, name


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_a_rename_never_joins_a_read_with_a_write(path: Path) -> None:
    def reads(tools: Listed) -> dict[str, bool | None]:
        return {t["name"]: (t.get("annotations") or {}).get("readOnlyHint") for t in tools}

    for name, old, new in releases(path):
        before, after = reads(old), reads(new)
        for change in changes_between(old, new):
            if change.kind == "tool_renamed":
                assert {before[change.old], after[change.new]} != {True, False}, name
        lock = lock_tools(old)
        assert worst_severity(verify(lock, old).changes) is None
        assert (worst_severity(verify(lock, new).changes) is None) == (old == new)


def test_likely_renames_are_right_in_nine_of_ten_and_the_others_are_questions() -> None:
    likely = right = asked = true = 0
    for path in LISTS:
        for name, old, new in releases(path):
            renames = TRUTH.get(name, {}).get("renamed", {})
            found = [h for h in hypotheses_between(old, new) if h.kind == "tool_renamed"]
            taken = {h.old: h.new for h in found if h.standing != "question"}
            questions = {h.old: h.new for h in found if h.standing == "question"}
            likely += len(taken)
            right += len(taken.items() & renames.items())
            asked += len(questions.items() & renames.items())
            true += len(renames)
            assert all(h.evidence for h in found)
    assert true >= 30
    assert right / likely >= 0.9
    assert right / true >= 0.65
    assert (right + asked) / true >= 0.85

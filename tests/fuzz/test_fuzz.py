"""No text of others brings a reader down: a short walk over all of them, and what was found before.

`make fuzz` walks for long; see `run`. Under Hypothesis the same makers are drawn from, so that a
failure is shrunk:

    FUZZ_EXAMPLES=10000 python -m pytest tests/fuzz -k shrunk
"""

from __future__ import annotations

import ast
import json
import os
from pathlib import Path
from random import Random
from typing import Any

import pytest
from fuzz.run import fuzz, numbered, tried
from fuzz.targets import TARGETS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.filterwarnings("ignore:m read far fewer tokens")
EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "2"))
"""For each target under Hypothesis."""
CASES = 8
"""For each target by number, or a few times its share where that is less: these are quick."""
FOUND = [
    json.loads(line) for line in Path(__file__).with_name("found.jsonl").read_text().splitlines()
]


@pytest.mark.parametrize("case", FOUND, ids=lambda case: f"{case['target']}: {case['was']}")
def test_what_was_found_stays_mended(case: dict[str, str]) -> None:
    tried(TARGETS[case["target"]].check, ast.literal_eval(case["given"]))


@pytest.mark.parametrize("name", TARGETS)
def test_a_short_walk_finds_nothing(name: str) -> None:
    for number in range(min(CASES, 3 * TARGETS[name].share)):
        tried(TARGETS[name].check, TARGETS[name].make(numbered(name, number)))


@pytest.mark.parametrize("name", TARGETS)
@settings(
    max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)
@given(rng=st.randoms(use_true_random=False))
def test_hypothesis_finds_nothing_that_is_shrunk(name: str, rng: Random) -> None:
    tried(TARGETS[name].check, TARGETS[name].make(rng))


def test_a_finding_is_noticed_once_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(given: Any) -> None:
        raise KeyError(given)

    monkeypatch.setattr("fuzz.run.BUILD", tmp_path)
    monkeypatch.setitem(TARGETS, "broken", type(TARGETS["texts"])(Random.random, broken, 1))
    assert fuzz(["broken"], 30) == 1
    assert fuzz(["broken"], 30) == 1
    assert json.loads((tmp_path / "totals.json").read_text()) == {"broken": 60}
    assert [file.name for file in (tmp_path / "found").iterdir()] == [
        "broken-0.txt",
        "broken-30.txt",
    ]
    assert "60 cases in all, 1 findings" in capsys.readouterr().out

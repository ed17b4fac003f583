"""How the results of the official conformance tests are judged; `make conformance` runs them."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from connect.conformance.run import ERAS, checks_of, judged

HERE = Path(__file__).parent / "conformance"
RAN = {"passed": 3, "warnings": 1, "failed": {"a": ["one", "two"], "b": ["three"]}}
EXPECTED = {"differs": [{"why": "it is so", "scenarios": ["a/*"], "eras": ["2026-07-28"]}]}


def test_what_is_not_expected_fails() -> None:
    row = judged(RAN, {}, EXPECTED, "2026-07-28")
    assert (row["expected"], row["unexpected"], row["passes_now"]) == (2, ["b/three"], [])


def test_a_reason_holds_in_its_era_alone() -> None:
    row = judged(RAN, {}, EXPECTED, "2025-11-25")
    assert row["unexpected"] == ["a/one", "a/two", "b/three"]


def test_what_fails_without_the_proxy_is_not_its_doing() -> None:
    row = judged(RAN, {"a": ["one"], "b": ["three"]}, {}, ERAS[0])
    assert row["unexpected"] == ["a/two"]


def test_what_is_expected_to_fail_and_passes_is_said() -> None:
    row = judged({**RAN, "failed": {}}, {}, EXPECTED, "2026-07-28")
    assert row["passes_now"] == ["a/*"]


@pytest.mark.parametrize(
    "folder",
    ["server-prompts-list-2026-11-25T20-22-36-001Z", "server-prompts-list-2026-11-25T00-02-36-1Z"],
)
def test_a_scenario_has_its_name_whatever_the_hour(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir()
    (tmp_path / folder / "checks.json").write_text("[]")
    assert checks_of(tmp_path / folder) == ("prompts-list", [])


def test_every_difference_that_is_expected_has_its_reason() -> None:
    expected = tomllib.loads((HERE / "expected.toml").read_text())
    assert set(expected) <= {"reference", "proxy", "proxy, shifted", "serve"}
    for rows in expected.values():
        for row in rows["differs"]:
            assert row["why"]
            assert row["scenarios"]
            assert set(row.get("eras", ERAS)) <= set(ERAS)

"""The changelog and the fragments beside it have the form that `changes/README.md` says."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text()
HEADINGS = {
    "Breaks scores",
    "Added",
    "Changed",
    "Deprecated",
    "Removed",
    "Fixed",
    "Security",
}
FRAGMENTS = sorted(set((ROOT / "changes").glob("*")) - {ROOT / "changes" / "README.md"})


def faults(text: str) -> list[str]:
    """What is wrong with the sections of a fragment or of a version."""
    before, *sections = re.split(r"^### ", text, flags=re.MULTILINE)
    found = [] if sections else ["it has no heading"]
    found += [f"before the first heading: {before.strip()}"] if before.strip() else []
    names = [section.partition("\n")[0] for section in sections]
    found += [f"unknown heading: {name}" for name in names if name not in HEADINGS]
    found += [f"twice: {name}" for name in set(names) if names.count(name) > 1]
    for section in sections:
        lines = section.strip().splitlines()[1:]
        found += [] if lines else ["a heading without a line"]
        found += [
            f"no list: {line}" for line in lines if line.strip() and line[:2] not in ("- ", "  ")
        ]
    return found


@pytest.mark.parametrize("path", FRAGMENTS, ids=lambda path: path.name)
def test_a_fragment_has_known_headings_and_lists(path: Path) -> None:
    assert path.suffix == ".md"
    text = path.read_text()
    assert not faults(text)
    assert len(re.findall(r"^- ", text, re.MULTILINE)) <= 12


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("- A line.", "it has no heading"),
        ("### Improved\n- A line.", "unknown heading: Improved"),
        ("### Fixed\n", "a heading without a line"),
        ("### Fixed\nA line.", "no list: A line."),
        ("### Fixed\n- A.\n### Fixed\n- B.", "twice: Fixed"),
    ],
)
def test_faults_of_a_fragment_are_seen(text: str, fault: str) -> None:
    assert fault in faults(text)


def test_versions_have_a_number_and_a_date_and_the_newest_is_short() -> None:
    _, unreleased, *versions = re.split(r"^## ", CHANGELOG, flags=re.MULTILINE)
    assert unreleased.startswith("[Unreleased]\n")
    heads = [version.partition("\n")[0] for version in versions]
    assert all(
        re.fullmatch(r"\[\d+\.\d+\.\d+(\.dev\d+)?\] - \d{4}-\d\d-\d\d", each) for each in heads
    )
    now = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert heads[0].startswith(f"[{now}]")
    assert len(versions[0].splitlines()) <= 60
    for version in versions:
        first = version.index("### ")
        assert not faults(version[first:])

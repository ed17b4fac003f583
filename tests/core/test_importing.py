"""What is imported by name stands where an import of it might stand, and is there."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

from toolshift.core.importing import load

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "toolshift"
TABLES = (
    "agents/catalog.py",
    "worlds/registry.py",
    "shifts/registry.py",
    "data/formats/__init__.py",
    "cli/group.py",
)
"""Registries: whatever they name may stand above them."""


GROUPS = ("toolshift.families", "toolshift.suites")
"""Entry-point groups, which look like modules."""
NAME = re.compile(r"toolshift(\.\w+)+(:\w+)?")


def named() -> list[tuple[str, str]]:
    """Each `toolshift.module` or `toolshift.module:object` in the code, with its file."""
    names = []
    for path in sorted(SOURCE.rglob("*.py")):
        file, code = str(path.relative_to(SOURCE)), path.read_text("utf-8")
        quoted = re.search(rf"""["']{NAME.pattern}["']""", code)  # else not worth parsing
        if file in TABLES or not quoted:
            continue
        texts = (getattr(node, "value", None) for node in ast.walk(ast.parse(code)))
        found = [text for text in texts if isinstance(text, str) and NAME.fullmatch(text)]
        names += [(file, text) for text in found if text not in GROUPS]
    return names


NAMED = named()


def layers() -> list[list[str]]:
    """The layers of the lint contract, the lowest one first."""
    lint = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    (ordered,) = (c["layers"] for c in lint["contracts"] if c.get("containers") == ["toolshift"])
    return [line.split(" | ") for line in reversed(ordered)]


def test_there_are_such_names() -> None:
    assert ("worlds/own/world.py", "toolshift.worlds.own.mcp:McpSource") in NAMED


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_what_is_imported_by_name_goes_downward(file: str, name: str) -> None:
    height = {part: place for place, parts in enumerate(layers()) for part in parts}
    here, there = file.split("/")[0].removesuffix(".py"), name.split(":")[0].split(".")[1]
    assert here == there or height[there] < height[here]


EXTRAS = {
    "toolshift.train": "trl",
    "toolshift.agents.local": "torch",
    "toolshift.connect.inspect": "inspect_ai",
    "toolshift.runs.cluster": "ray",
    "toolshift.runs.object_store": "fsspec",
    "toolshift.runs.otel_export": "opentelemetry.sdk.trace",
}
"""What has to be installed for a module, where it comes with an extra."""


@pytest.mark.parametrize("name", sorted({name for _, name in NAMED}))
def test_what_is_imported_by_name_is_there(name: str) -> None:
    for start, extra in EXTRAS.items():
        if name.startswith(start):
            pytest.importorskip(extra)
    assert load(name) is not None

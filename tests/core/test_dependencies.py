"""What is imported of other packages: public names alone, and one HTTP client behind one file."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OURS = {"toolshift", "toolshift_lab"}
SOURCES = [
    path
    for folder in ("src", "lab/src")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if "__pycache__" not in path.parts
]
PRIVATE = {"connect/inspect/current.py"}
"""Where a private name is imported, and why it is."""
CLIENTS = {
    "core/http.py",
    # They hand a client to `mcp`, which takes one of httpx2 alone.
    "interop/limited_http.py",
    "interop/mcp_auth.py",
    "interop/mcp_client.py",
}


def _imports(tree: ast.AST) -> Iterator[list[str]]:
    """What each import of another package names, part by part."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield [*node.module.split("."), alias.name]
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name.split(".")


def _importing(wanted: str) -> set[str]:
    """The files that import a private name ("_"), or a package."""
    found = set()
    for path in SOURCES:
        for parts in _imports(ast.parse(path.read_text("utf-8"))):
            private = any(part.startswith("_") and part != "__future__" for part in parts)
            if parts[0] not in OURS and (private if wanted == "_" else parts[0] == wanted):
                found.add(str(path.relative_to(ROOT)).partition("toolshift/")[2])
    return found


def test_no_private_name_of_another_package_is_imported() -> None:
    assert _importing("_") == PRIVATE


def test_the_look_finds_private_names() -> None:
    for text in (
        "from a._b import c",
        "from a import _c",
        "import a._b",
        "from a.b import _c as d",
    ):
        (parts,) = _imports(ast.parse(text))
        assert any(part.startswith("_") for part in parts)


def test_the_http_client_stands_behind_one_file() -> None:
    assert _importing("httpx2") == CLIENTS
    assert _importing("httpx") == {"core/http.py"}


@pytest.mark.parametrize(("missing", "found"), [("", "httpx2"), ("httpx2", "httpx")])
def test_either_client_will_do(missing: str, found: str) -> None:
    pytest.importorskip(found)
    code = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "from toolshift.core.http import httpx\n"
        "from toolshift.core.http_limits import fetch\n"
        "reply = httpx.MockTransport(lambda asked: httpx.Response(200, text='here'))\n"
        "got = fetch(httpx.Client(transport=reply), 'GET', 'http://a.example/')\n"
        "print(httpx.__name__, got.text)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.stdout.split() == [found, "here"], ran.stderr


def test_each_dependency_has_a_lower_bound() -> None:
    """So that the lowest versions can be installed, which `make ranges` does."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert [one for one in project["dependencies"] if ">=" not in one] == []

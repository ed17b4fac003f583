"""How an extra is installed depends on where ToolShift itself was installed from."""

from __future__ import annotations

import ast
import json
import re
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from toolshift.core import installation

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("origin", "requirement"),
    [
        (None, "toolshift[local]"),
        ({"url": "file:///a%20b/clone", "dir_info": {"editable": True}}, "/a b/clone[local]"),
        ({"url": "file:///clone", "dir_info": {}}, "/clone[local]"),
        (
            {"url": "file:///t.whl", "archive_info": {"hash": "sha256=0"}},
            "toolshift[local] @ file:///t.whl",
        ),
        (
            {"url": "https://host/t.git", "vcs_info": {"vcs": "git", "commit_id": "0f1e"}},
            "toolshift[local] @ git+https://host/t.git@0f1e",
        ),
    ],
)
def test_the_origin_that_pip_has_noted_is_named(
    monkeypatch: pytest.MonkeyPatch, origin: dict[str, Any] | None, requirement: str
) -> None:
    noted = SimpleNamespace(read_text=lambda name: json.dumps(origin) if origin else None)
    monkeypatch.setattr(installation, "distribution", lambda name: noted)
    assert installation.extra("local") == f"pip install '{requirement}'"


def test_sources_that_are_not_installed_name_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(installation, "distribution", none)
    assert installation.extra("local") == "pip install 'toolshift[local]'"


def test_no_message_and_no_page_installs_from_an_index_that_has_nothing_of_ours() -> None:
    wrong = re.compile(r"pip install(?: [^\s`]+)*? ['\"]?toolshift(?![\w/-])")
    pages = [
        ROOT / "README.md",
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "examples").rglob("*.ipynb"),
    ]
    found = [str(page) for page in pages if wrong.search(page.read_text())]
    for path in [*(ROOT / "src").rglob("*.py"), *(ROOT / "lab" / "src").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            text = node.value if isinstance(node, ast.Constant) else None
            if isinstance(text, str) and wrong.search(text) and path.stem != "installation":
                found.append(f"{path}: {text}")
    assert not found

"""What `toolshift` exports: the pages import nothing else, the reference has all of it."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

import toolshift

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
PROGRAMS = sorted(
    [*(ROOT / "tests/connect/frameworks/programs").glob("*.py"), *(ROOT / "examples").rglob("*.py")]
)
EXTRAS = """
    torch transformers peft trl datasets accelerate gguf safetensors llguidance pyarrow mcp
    starlette uvicorn prometheus_client opentelemetry ray fsspec inspect_ai pandas polars
""".split()  # noqa: SIM905 - a list to be read
BARE = f"import sys\nfor name in {EXTRAS}:\n    sys.modules[name] = None\n"
"""A Python in which nothing is installed but what ToolShift itself needs."""


def blocks(text: str) -> Iterator[str]:
    """The Python of a page: in fences, and indented where it is whole Python."""
    yield from re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    without = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    yield from (
        "\n".join(line[4:] for line in each.splitlines())
        for each in re.findall(r"(?:(?:^ {4}.*)?\n)+", without, re.MULTILINE)
    )


def used_names(code: str) -> set[str]:
    """What code takes of ToolShift: `name` of `toolshift.name`, or `module.name` of another."""
    try:
        tree = ast.parse(code)
    except SyntaxError:  # a console, or a part of a program
        return set()
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "toolshift":
            inner = (node.module or "").partition(".")[2]
            found |= {f"{inner}.{each.name}".lstrip(".") for each in node.names}
        elif isinstance(node, ast.Import):
            names = (each.name for each in node.names)
            found |= {name.partition(".")[2] for name in names if name.startswith("toolshift.")}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found |= {node.attr} if node.value.id == "toolshift" else set()
    return found


def test_names_of_code_are_found() -> None:
    page = "Text.\n\n    from toolshift.a import b\n    import toolshift.c\n\n    toolshift.d()\n"
    fenced = "```python\nfrom toolshift import e\n\n\ntoolshift.f.g()\n```\n"
    found = [used_names(block) for block in blocks(page + fenced)]
    assert set().union(*found) == {"a.b", "c", "d", "e", "f"}


@pytest.mark.parametrize("page", [*PAGES, *PROGRAMS], ids=lambda page: page.name)
def test_pages_and_programs_use_exported_names_only(page: Path) -> None:
    text = page.read_text("utf-8")
    parts = [text] if page.suffix == ".py" else blocks(text)
    used = set().union(*map(used_names, parts))
    assert used <= set(toolshift.__all__)


@pytest.mark.parametrize(
    "page",
    [
        "add-a-shift",
        "add-a-world",
        "add-an-agent",
        "frameworks",
        "adapt",
        "train",
        "inspect",
        "report",
    ],
)
def test_pages_with_code_were_read(page: str) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text("utf-8")
    assert set().union(*map(used_names, blocks(text)))


def test_the_reference_has_every_exported_name_and_no_other() -> None:
    text = (ROOT / "docs/reference.md").read_text("utf-8")
    listed = re.findall(r"^::: toolshift\.([\w.]+)$", text, re.MULTILINE)
    assert len(listed) == len(set(listed))
    homes = {f"{toolshift._HOME[name]}.{name}" for name in toolshift.__all__ if name[0] != "_"}
    assert set(listed) == homes
    assert "`toolshift.__version__`" in text


def test_what_is_exported_is_where_it_is_said_to_be() -> None:
    assert toolshift.__all__ == sorted(toolshift.__all__, key=lambda n: (not n[0].isupper(), n))
    assert {*toolshift._HOME, "__version__"} == set(toolshift.__all__) == set(dir(toolshift))
    tree = ast.parse(inspect.getsource(toolshift))
    told = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module]
    typed = {
        each.name: node.module.removeprefix("toolshift.")  # type: ignore[union-attr]
        for node in told
        if str(node.module).startswith("toolshift.")
        for each in node.names
    }
    assert typed == toolshift._HOME


def test_the_version_is_that_of_the_package() -> None:
    assert toolshift.__version__ == version("toolshift")


def run_bare(code: str) -> str:
    """What a program prints where no extra is installed."""
    done = subprocess.run(
        [sys.executable, "-c", BARE + code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_exported_name_is_there_without_any_extra() -> None:
    assert run_bare("from toolshift import *; print(evaluate.__name__)") == "evaluate\n"


def test_to_import_toolshift_imports_nothing_else() -> None:
    heavy = "{'numpy', 'msgspec', 'httpx', 'yaml', 'importlib.metadata'}"
    assert run_bare(f"import toolshift; print({heavy} & set(sys.modules))") == "set()\n"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("toolshift.train_sft([], 'out')", "[train]'"),
        ("toolshift.base_directory()", "[local]'"),
        ("import asyncio; asyncio.run(toolshift.SceneTools().tools())", "[inspect]'"),
        (
            "import asyncio; asyncio.run(toolshift.SceneTools().on_continue(None))",
            "[inspect]'",
        ),
    ],
)
def test_what_needs_an_extra_says_which(call: str, said: str, tmp_path: Path) -> None:
    code = f"import os, toolshift\nos.environ['XDG_CACHE_HOME'] = {str(tmp_path)!r}\ntry:\n    "
    code += f"{call}\nexcept toolshift.UsageError as wrong:\n    print(wrong)"
    text = run_bare(code)
    assert "pip install '" in text
    assert said in text

"""Exported functions say their arguments, results and errors; private ones say one sentence."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import toolshift


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """What `toolshift` exports: functions, and the public methods of classes."""
    for name in toolshift.__all__:
        thing = getattr(toolshift, name)
        if inspect.isfunction(thing):
            yield name, thing
        elif inspect.isclass(thing):
            yield from methods(name, thing)


def methods(name: str, kind: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The public methods of a class that are written in our code, inherited ones included."""
    for attribute in dir(kind):
        found = inspect.getattr_static(kind, attribute)
        found = getattr(found, "__func__", found)
        if attribute.startswith("_") or not inspect.isfunction(found):
            continue
        if found.__module__.startswith("toolshift."):
            yield f"{name}.{attribute}", found


FUNCTIONS = dict(functions())


def parameters(function: Callable[..., Any]) -> list[str]:
    """The names of the parameters but the object itself."""
    return [each for each in inspect.signature(function).parameters if each not in ("self", "cls")]


def raises(function: Callable[..., Any]) -> bool:
    """Whether a function itself raises something, other than again what it has caught."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    return any(isinstance(node, ast.Raise) and node.exc is not None for node in ast.walk(tree))


def lacking(function: Callable[..., Any]) -> list[str]:
    """The sections that the docstring of a function lacks."""
    text = inspect.getdoc(function) or ""
    wanted = [("Args", bool(parameters(function)))]
    returned = inspect.signature(function).return_annotation
    wanted.append(("Returns", bool(parameters(function)) and returned not in ("None", None)))
    wanted.append(("Raises", raises(function)))
    found = [name for name, needed in wanted if needed and f"\n{name}:\n" not in f"\n{text}\n"]
    _, _, args = text.partition("\nArgs:\n")
    names = parameters(function) if "Args" not in found else []
    return [*found, *(f"Args: {name}" for name in names if f"    {name}: " not in args)]


def test_there_are_functions() -> None:
    assert {"evaluate", "shift", "Layer.call", "World.build", "Report.drop"} <= FUNCTIONS.keys()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_exported_function_says_what_it_takes_and_gives(name: str) -> None:
    assert lacking(FUNCTIONS[name]) == []


ROOT = Path(__file__).parents[1]
SECTION = re.compile(r"^ *(Args|Returns|Raises|Yields):$", re.MULTILINE)
NUMERIC = """
    lm/attention lm/decode measure/betting measure/compare measure/crossed measure/exact
    measure/metrics measure/nothing_lost measure/power measure/claims measure/statistics
    train/batches train/evaluation train/logprobs train/loss train/reward train/tree shifts/ranking
    watch/rhythm watch/sequential
"""
"""Modules that compute numbers: their docstrings give shapes, units, estimators and sources."""
SEAMS = {
    "core/registry": "Registry",
    "dialects/__init__": "read_reply",
    "dialects/form": "Dialect Stream ToldError",
    "dialects/sse": "read_data",
    "interop/normal": "normal",
    "runs/execute": "RunSpec execute planning play_plan",
}
"""What packages of ours and benchmarks build on below the public names; its sections may stay."""


def exported() -> set[str]:
    """`module:name` of what `toolshift` exports, and of the classes that it is made of."""
    kinds = [getattr(toolshift, name) for name in toolshift.__all__]
    kinds += [base for kind in kinds if inspect.isclass(kind) for base in kind.__mro__]
    named = [(kind, getattr(kind, "__qualname__", "")) for kind in kinds]
    return {f"{kind.__module__}:{name}" for kind, name in named if name} | {
        "toolshift.api:Evaluation",
        "toolshift.adapt.layer:adapt",
    }


def with_sections(tree: ast.AST, around: str = "") -> Iterator[str]:
    """Dotted names of the functions of a module whose docstrings have sections."""
    for node in ast.iter_child_nodes(tree):
        named = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        name = f"{around}.{node.name}".lstrip(".") if named else around  # type: ignore[attr-defined]
        function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if function and SECTION.search(ast.get_docstring(node) or ""):  # type: ignore[arg-type]
            yield name
        yield from with_sections(node, name)


@pytest.mark.parametrize("source", ["src", "lab/src"])
def test_sections_stand_on_exported_names_and_on_what_computes_numbers(source: str) -> None:
    public, surplus = exported(), []
    for path in sorted((ROOT / source).rglob("*.py")):
        module = path.relative_to(ROOT / source).with_suffix("").as_posix()
        short = module.removeprefix("toolshift/")
        dotted = module.removesuffix("/__init__").replace("/", ".")
        for name in with_sections(ast.parse(path.read_text(encoding="utf-8"))):
            top = name.partition(".")[0]
            known = f"{dotted}:{top}" in public or top in SEAMS.get(short, "").split()
            if not (known or short in NUMERIC.split()) or name.rpartition(".")[2].startswith("_"):
                surplus.append(f"{module}: {name}")
    assert surplus == [], "one sentence is enough for what is private"


def test_files_that_are_named_are_there() -> None:
    """A docstring that names another file of ours goes with it when it moves."""
    there = {
        file.name
        for top in ("src", "lab", "tests", "benchmarks")
        for file in (ROOT / top).rglob("*.py")
    }
    given = {"FILE.py", "my_agent.py"}  # those of a user
    named = [
        (str(file.relative_to(ROOT)), name)
        for top in ("src", "lab/src")
        for file in sorted((ROOT / top).rglob("*.py"))
        for tree in [ast.parse(file.read_text())]
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        for name in re.findall(r"\b(\w+\.py)\b", ast.get_docstring(node) or "")
    ]
    assert [pair for pair in named if pair[1] not in there | given] == []
    assert len(named) > 10

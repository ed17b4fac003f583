"""Every exported function with parameters says its arguments, its result and its errors."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
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

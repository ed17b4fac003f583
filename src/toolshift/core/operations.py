"""Tools with several operations: split to plan a call, and joined again to make it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

from toolshift.core.tool import Operation, Param, Tool


@lru_cache(maxsize=1024)
def split_operations(tools: tuple[Tool, ...]) -> tuple[Tool, ...]:
    """Replaces each tool that has several operations by one tool per operation."""
    return tuple(part for tool in tools for part in _parts(tool))


@lru_cache(maxsize=4096)
def _parts(tool: Tool) -> tuple[Tool, ...]:
    if tool.operations is None or not tool.origin:  # a decoy does nothing, whatever it resembles
        return (tool,)
    return tuple(_part(tool, operation) for operation in tool.operations)


def _part(tool: Tool, operation: Operation) -> Tool:
    """One operation as a tool under the shown name.

    Its choice is given; beside its own arguments it takes those that came with a layer above, which
    belong to no operation.
    """
    shown = {param.fact: param for param in tool.params}
    own, names = operation.tool, dict(operation.facts)
    chooser = replace(shown[operation.chooser], given=operation.value)
    mine: list[Param] = []
    for param in own.params:
        spoken_as = shown.get(names.get(param.name, ""))
        if operation.nest:
            mine.append(param)
        elif spoken_as is not None:
            shapes = (*param.shapes, *spoken_as.shapes)
            mine.append(replace(param, name=spoken_as.name, shapes=shapes))
    nested = tuple(param.name for param in mine)
    return tool.with_(
        params=(chooser, *mine, *_common(tool)),
        returns=own.returns,
        many=own.many,
        effect=own.effect,
        origin=own.origin,
        authority=tool.authority + own.authority,
        operations=None,
        operation=operation.value,
        nest=(shown[operation.nest].name, *nested) if operation.nest else (),
    )


def _common(tool: Tool) -> Iterator[Param]:
    """The parameters that belong to no operation."""
    operations = tool.operations or ()
    taken = {fact for one in operations for fact in (one.chooser, one.nest)}
    taken |= {fact for one in operations for _, fact in one.facts}
    return (param for param in tool.params if param.fact not in taken)


def encode_call(tool: Tool, arguments: dict[str, Any]) -> dict[str, Any]:
    """Writes fact values as the arguments of a call: in their shapes, nested if needed."""
    shaped = _shaped(tool)
    written = {
        name: shaped[name].write(value) if name in shaped else value
        for name, value in arguments.items()
    }
    if not tool.nest:
        return written
    into, *names = tool.nest
    inner = {name: value for name, value in written.items() if name in names}
    outer = {name: value for name, value in written.items() if name not in names}
    return {**outer, into: inner}


@lru_cache(maxsize=4096)
def _shaped(tool: Tool) -> dict[str, Param]:
    """The parameters of a tool whose values have another shape."""
    return {param.name: param for param in tool.params if param.shapes}

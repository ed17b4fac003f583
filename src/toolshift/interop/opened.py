"""Objects among arguments, laid open: a parameter for each of their members, by its path.

    open_ticket(ticket: {machine, summary})    is    open_ticket(ticket.machine, ticket.summary)

So an argument that moved into an object, or out of one, is one that has another name. A **lead** is
the path of an object that is laid open. Calls are laid open on their way in and folded on their way
out; what is shown to an agent is never laid open.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from toolshift.core.tool import Param, Tool
from toolshift.interop.parts import core_of
from toolshift.interop.schema import flattened, properties_of
from toolshift.interop.tools import Source

Leads = tuple[str, ...]
DEEPEST_LEAD = 3
"""How many objects inside of each other are laid open."""


def leads_to(path: str) -> Leads:
    """The objects above a path, the outermost first."""
    parts = path.split(".")
    return tuple(".".join(parts[:end]) for end in range(1, len(parts)))


def members_at(param: Param) -> list[Param]:
    """The members of a parameter that is one object, by their paths; none of any other."""
    schema = core_of(param.schema)
    if "anyOf" in schema or "oneOf" in schema:
        return []
    declared, required = properties_of(schema)
    return [
        Param(
            f"{param.name}.{name}",
            f"{param.fact}.{name}",
            dict(inner) if isinstance(inner, Mapping) else {},
            param.required and name in required,
        )
        for name, inner in declared.items()
        if "." not in name
    ]


def inside(param: Param, depth: int = 0) -> Iterator[Param]:
    """All that stands inside of a parameter that is an object, by their paths."""
    for member in members_at(param) if depth < DEEPEST_LEAD else ():
        yield member
        yield from inside(member, depth + 1)


def opened_tool(tool: Tool, leads: Iterable[str]) -> Tool:
    """A tool with the members of its objects in their places."""
    params = list(tool.params)
    for lead in sorted(leads, key=lambda one: one.count(".")):
        params = [
            each
            for param in params
            for each in ((members_at(param) or [param]) if param.name == lead else [param])
        ]
    return tool if len(params) == len(tool.params) and not leads else tool.with_(params=(*params,))


def opened_source(source: Source, leads: Iterable[str]) -> Source:
    """A foreign tool with the members of its objects in their places; the whole stays beside it."""
    leads = tuple(dict.fromkeys(leads))
    if not leads:
        return source
    tool = opened_tool(source.tool, leads)
    inputs = flattened(source.inputs)
    declared = inputs.get("properties", {})
    own = {param.name for param in source.tool.params}
    inputs["properties"] = {
        param.name: declared[param.name] if param.name in own else param.schema
        for param in tool.params
    }
    inputs["required"] = [param.name for param in tool.params if param.required]
    known = {param.fact: param.name for param in tool.params}
    return replace(
        source, tool=tool, inputs=inputs, known=known, opened=leads, whole=source.as_it_came
    )


def opened_call(arguments: Mapping[str, Any], leads: Leads) -> dict[str, Any]:
    """The arguments of a call, with the members of its objects by their paths."""
    said = dict(arguments)
    for lead in sorted(leads, key=lambda one: one.count(".")):
        if isinstance(said.get(lead), Mapping):
            said |= {f"{lead}.{name}": value for name, value in said.pop(lead).items()}
    return said


def folded_call(arguments: Mapping[str, Any], leads: Leads) -> dict[str, Any]:
    """The arguments of a call, with the members in their objects again."""
    said = dict(arguments)
    for lead in sorted(leads, key=lambda one: -one.count(".")):
        members = [name for name in said if leads_to(name)[-1:] == (lead,)]
        if members:
            said[lead] = {name.removeprefix(f"{lead}."): said.pop(name) for name in members}
    return said

"""The call of a shown tool that stands for a true one, by whatever names and types are shown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from toolshift.core.names import letters
from toolshift.core.solver import MAX_ATTEMPTS, Impossible, Known, Solver
from toolshift.core.tool import Tool
from toolshift.core.values import as_text
from toolshift.interop.opened import folded_call, leads_to, opened_tool
from toolshift.interop.schema import fitted, may_be_null, needed_with, takes_null, usual
from toolshift.interop.tools import Documented, StandIn

ActResult = dict[int, list[dict[str, Any]]]
"""For each expected call that was made, by its place, the facts of the records it brought."""


def carry_out(
    solver: Solver, true: Tool, env: Known, heard: ActResult | None = None
) -> list[dict[str, Any]]:
    """Makes a call of the shown tool that stands for a true one; returns the facts it brought."""
    solver.seen.clear()  # the same call may be wanted twice
    for _ in range(MAX_ATTEMPTS):
        tool = _standing_for(solver.offered(), true, env)
        if tool is None:
            if solver.look_further([true.description, true.name]):
                continue
            break
        arguments = _arguments(solver, tool, true, env, heard or {})
        if any(t.key == tool.key and t.params == tool.params for t in solver.offered()):
            return solver.read(*solver.perform(tool, arguments))
    raise Impossible("tool_unavailable")


def _standing_for(shown: tuple[Tool, ...], true: Tool, env: Known) -> Tool | None:
    """The tool that the documentation prefers of those that stand for a true one.

    One that stands for it alone goes before one that stands for several. Of two that share its
    work, as after a split, it is the one that returns what it did, or that is for this value.
    """
    alone = [tool for tool in shown if tool.origin == true.origin and not tool.retired]
    able = [tool for tool in alone if _is_for(tool, true, env)]
    able = able or [t for t in shown if _stand_in(t, true) is not None and not t.retired]
    whole = [t for t in able if [f.fact for f in t.returns] == [f.fact for f in true.returns]]
    return max(whole or able, key=lambda tool: tool.authority, default=None)


def _stand_in(tool: Tool, true: Tool) -> StandIn | None:
    return tool.stands.get(true.name) if isinstance(tool, Documented) else None


def takes(shown: tuple[Tool, ...], true: Tool, fact: str) -> bool:
    """Whether a shown tool takes what a parameter of a true one took."""
    stands = [stand for tool in shown if (stand := _stand_in(tool, true)) is not None]
    return any(fact in taken_facts(stand) for stand in stands) or any(
        param.fact == fact for tool in shown for param in tool.params
    )


def taken_facts(stand: StandIn) -> set[str]:
    """The facts that a stand-in takes, with those of the objects whose members it takes."""
    return {*stand.takes, *(above for fact in stand.takes for above in leads_to(fact))}


def _is_for(tool: Tool, true: Tool, env: Known) -> bool:
    stand = _stand_in(tool, true)
    return stand is None or all(env.find(fact) == value for fact, value in stand.only.items())


def _with_new(
    solver: Solver, tool: Tool, env: Known, heard: ActResult, needed: frozenset[str]
) -> Known:
    """What is known, with the values of required parameters that the true tool has not.

    Such a value is one that the user was made to state, one of the user's or of an earlier result
    that goes by the same name, or the only one that the schema leaves.
    """
    found = {}
    for param in tool.params:
        known = param.fact in solver.goal or env.find(param.fact) is not None
        known = known or (may_be_null(param.schema) and env.says_none(param.fact))
        if known or not (param.required or param.fact in needed):
            continue
        told = tool.told.get(param.fact) if isinstance(tool, Documented) else None
        stated = told is not None and solver.backend.user_said(as_text(told))
        value = told if stated else _stated(solver, param.name)
        value = _brought(heard, param.name) if value is None else value
        value = usual(param.schema) if value is None else value
        if value is not None:
            found[param.fact] = value
    return env.about(**found) if found else env


def _needed(tool: Tool, true: Tool, env: Known) -> frozenset[str]:
    """The facts of the parameters that the alternative needs which a call chooses."""
    source = tool.source if isinstance(tool, Documented) else None
    stand = _stand_in(tool, true)
    if source is None or stand is None or stand.inside:
        return frozenset()
    values = {param.fact: env.find(param.fact) for param in tool.params} | {**stand.says}
    said = {
        source.known[fact]: stand.restated[fact](value) if fact in stand.restated else value
        for fact, value in values.items()
        if fact in source.known
    }
    names = needed_with(source.inputs, said)
    return frozenset(fact for fact, name in source.known.items() if name in names)


def _left_out(solver: Solver, tool: Tool, env: Known) -> dict[str, None]:
    """The arguments for which null says that there is none.

    A provider's strict mode requires every argument, and takes null for one that is left out. So
    null is said for a required one of which nothing is known, and wherever the true call says it.
    """
    new = isinstance(tool, Documented)
    return {
        param.name: None
        for param in tool.params
        if param.given is None
        and param.fact not in solver.goal
        and env.find(param.fact) is None
        and (
            (new and param.required and takes_null(param.schema))
            or (env.says_none(param.fact) and may_be_null(param.schema))
        )
    }


def _stated(solver: Solver, name: str) -> Any:
    slot = next((slot for slot in solver.goal if letters(slot) == letters(name)), None)
    return None if slot is None else solver.given(slot)


def _brought(heard: ActResult, name: str) -> Any:
    """The one value that earlier results have under a name; None where there are two."""
    values = {
        str(value): value
        for records in heard.values()
        for record in records
        for fact, value in record.items()
        if letters(re.split(r"[.(]", fact)[-1]) == letters(name)
    }
    return next(iter(values.values())) if len(values) == 1 else None


def _arguments(
    solver: Solver, tool: Tool, true: Tool, env: Known, heard: ActResult
) -> dict[str, Any]:
    """What to call a shown tool with, in the types that it takes."""
    leads = _leads(tool)
    if leads:
        return folded_call(_of_opened(solver, _opened(tool, true, leads), true, env, heard), leads)
    return _of_opened(solver, tool, true, env, heard)


def _leads(tool: Tool) -> tuple[str, ...]:
    """The objects among the arguments of a shown tool that are laid open, by the names shown."""
    source = tool.source if isinstance(tool, Documented) else None
    if source is None or not source.opened:
        return ()
    names = {
        source.known[param.fact]: param.name for param in tool.params if param.fact in source.known
    }
    tops = ((lead.partition("."), lead) for lead in source.opened)
    return tuple(f"{names[top]}{dot}{rest}" for (top, dot, rest), _ in tops if top in names)


def _opened(tool: Tool, true: Tool, leads: tuple[str, ...]) -> Tool:
    """A shown tool with its objects laid open; what stands for an old parameter has its fact."""
    stand = _stand_in(tool, true)
    facts = {shown: fact for fact, shown in stand.takes.items()} if stand is not None else {}
    whole = opened_tool(tool, leads)
    return whole.with_(
        params=tuple(replace(p, fact=facts.get(p.fact, p.fact)) for p in whole.params)
    )


def _with_members(env: Known, true: Tool, leads: tuple[str, ...]) -> Known:
    """What is known, with the members of the objects that a true call passes."""
    for lead in sorted(leads, key=lambda one: one.count(".")):
        top, _, rest = lead.partition(".")
        own = next((param.fact for param in true.params if param.name == top), "")
        fact = f"{own}.{rest}" if rest else own
        value = env.find(fact)
        if isinstance(value, Mapping):
            env = env.about(**{f"{fact}.{name}": each for name, each in value.items()})
    return env


def _of_opened(
    solver: Solver, tool: Tool, true: Tool, env: Known, heard: ActResult
) -> dict[str, Any]:
    """The same, with the objects laid open that an argument has moved into or out of."""
    stand = _stand_in(tool, true)
    if stand is not None and stand.opened:
        env = _with_members(env, true, stand.opened)
        true = opened_tool(true, stand.opened)
    needed = _needed(tool, true, env)
    env = _with_new(solver, tool, env, heard, needed)
    nulls = _left_out(solver, tool, env)
    if stand is None or not (stand.says or stand.inside):
        known = tool.with_(params=tuple(p for p in tool.params if p.name not in nulls))
        said = {**solver.arguments(known, env), **nulls}
    else:
        said = _in_its_place(stand, tool, solver.arguments(true, env), true)
        said = {**nulls, **said}
        said |= {
            param.name: solver.require(param.fact, env)
            for param in tool.params
            if (param.required or (env.find(param.fact) is not None and param.fact in needed))
            and param.name not in said
        }
    if stand is not None and not stand.inside:
        said = {
            **{p.name: stand.otherwise[p.fact] for p in tool.params if p.fact in stand.otherwise},
            **said,
        }
    how = {} if stand is None else stand.restated
    said = {
        name: how[param.fact](said[name]) if param.fact in how else said[name]
        for param in tool.params
        if (name := param.name) in said
    }
    schemas = {param.name: param.schema for param in tool.params if not param.shapes}
    return {
        name: next(fitted(value, schemas[name]), value) if name in schemas else value
        for name, value in said.items()
    }


def _in_its_place(
    stand: StandIn, tool: Tool, arguments: Mapping[str, Any], true: Tool
) -> dict[str, Any]:
    """A call of a true tool as a call of a shown one that stands for several."""
    names = {param.fact: param.name for param in tool.params}
    facts = {param.name: param.fact for param in true.params}
    said = {names[fact]: value for fact, value in stand.says.items()}
    moved = {
        stand.takes[facts[name]]: value
        for name, value in arguments.items()
        if facts[name] in stand.takes
    }
    if stand.inside:
        return {**said, names[stand.inside]: moved}
    return {**said, **{names[fact]: value for fact, value in moved.items()}}

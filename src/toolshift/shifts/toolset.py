"""Shifts: How tools are offered: as actions of one tool, behind a search, in a list out of date.

Each tool still does what it did. What changes is how an agent gets at it; `toolset.toml` has the
wording.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Any

from toolshift.core.layer import Below, Layer, Memory
from toolshift.core.scene import Scene
from toolshift.core.shift import Change, NotApplicable, Severity, shift
from toolshift.core.tables import table_beside
from toolshift.core.tool import (
    Effect,
    Field,
    Hint,
    Operation,
    Param,
    Result,
    Tool,
    error,
    input_schema,
)
from toolshift.core.values import as_json
from toolshift.shifts.action import free_names, reach, reworded, reworded_params
from toolshift.shifts.careless import oracle_unchanged
from toolshift.shifts.rewiring import bare
from toolshift.shifts.surface import Surface
from toolshift.shifts.wording import form_of

TABLES: dict[str, Any] = table_beside(__file__, "toolset.toml")
said = partial(form_of, TABLES)

CHOICE, NEST, QUERY = " operation", " arguments", " query"
"""What the facts end in that these tools take."""


def whole(tool: Tool) -> bool:
    """Whether a tool does one thing, so that it can be an operation of another."""
    return tool.operations is None and not tool.lists and bool(tool.origin)


def reads_or_writes(tools: tuple[Tool, ...]) -> Effect:
    """What one of several tools may do."""
    return "write" if any(tool.effect == "write" for tool in tools) else "read"


def fields_of(tools: tuple[Tool, ...]) -> tuple[Field, ...]:
    """The values that one of several tools brings."""
    return tuple(dict.fromkeys(field for tool in tools for field in tool.returns))


# -- tools_by_action ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ByAction(Layer):
    """Several tools are one, an argument of which says what is to be done.

    Attributes:
        tool: the one.
        chooser: the parameter that says which.
        names: for each choice, the tool's own parameters by the names that the one takes.
        parts: the tools that it stands for, by choice.
    """

    tool: Tool
    chooser: str
    names: dict[str, dict[str, str]]
    parts: dict[str, Tool]

    def tools(self, tools: tuple[Tool, ...], memory: Memory) -> tuple[Tool, ...]:
        """The one stands where the first of the others stood."""
        return instead(tools, {part.name for part in self.parts.values()}, (self.tool,))

    def changes_results(self, tool: Tool) -> bool:
        """Those of the one tool, which gives what several gave."""
        return tool.name == self.tool.name

    def call(self, name: str, arguments: dict[str, Any], memory: Memory, below: Below) -> Result:
        """Calls the tool that is chosen, with the arguments that are its own."""
        if name != self.tool.name:
            return below(name, arguments)
        value = arguments[self.chooser]
        names, part = self.names[value], self.parts[value]
        rest = {key: given for key, given in arguments.items() if key != self.chooser}
        wrong = _misfit(part, {names.get(key, f"{key}?"): given for key, given in rest.items()})
        if wrong:
            return error("invalid_arguments", f"{name}: {value} {wrong}")
        return below(part.name, {names[key]: given for key, given in rest.items()})


def instead(tools: tuple[Tool, ...], gone: set[str], new: tuple[Tool, ...]) -> tuple[Tool, ...]:
    """The tools with new ones in the place of some."""
    place = next((n for n, tool in enumerate(tools) if tool.name in gone), len(tools))
    kept = [tool for tool in tools if tool.name not in gone]
    return (*kept[:place], *new, *kept[place:])


def _misfit(tool: Tool, arguments: dict[str, Any]) -> str:
    """What is missing from a tool's arguments, or too much; "" where nothing is."""
    known = {param.name for param in tool.params}
    missing = [p.name for p in tool.params if p.required and p.name not in arguments]
    surplus = [name.removesuffix("?") for name in arguments if name not in known]
    if missing:
        return f"requires {', '.join(missing)}"
    return f"does not take {', '.join(surplus)}" if surplus else ""


@shift(
    tier="perception",
    dimension="action",
    level=1,
    order=1,  # deep, as if the graph changed: what moves or fails later is the one tool
    imitates="playwright-mcp: four browser_tab_* tools became browser_tabs with an action",
)
def tools_by_action(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Merge tools into one whose action says what to do: two (1), all needed (2), all shown (3)."""
    form = said("action", scene, rng)
    hit = reach(scene, rng, severity, whole)
    others = [tool for tool in scene.tools if whole(tool) and tool not in hit]
    if len(hit) < 2 and others:
        hit.append(rng.choice(others))
    if len(hit) < 2:
        raise NotApplicable("there is no other tool to merge with")
    parts = tuple(tool for tool in scene.tools if tool in hit)
    layer = by_action(parts, form, free_names(scene)(form["name"]))
    if not oracle_unchanged(scene, layer):
        raise NotApplicable("what the task depends on would not be seen behind one tool")
    return Change(layer=layer)


def by_action(parts: tuple[Tool, ...], form: dict[str, str], name: str) -> ByAction:
    """The layer that makes several tools one, in a wording."""
    shown: dict[str, Param] = {}
    names: dict[str, dict[str, str]] = {}
    for tool in parts:
        names[tool.name] = {}
        for param in tool.params:
            names[tool.name][_taken_up(shown, param, form["chooser"])] = param.name
    operations = tuple(
        Operation(
            tool.name,
            tool,
            name + CHOICE,
            facts=tuple((own, shown[spoken].fact) for spoken, own in names[tool.name].items()),
        )
        for tool in parts
    )
    told = " ".join(
        form["operation"].format(value=tool.name, text=bare(tool), params=_listed(names, tool))
        for tool in parts
    )
    choices = [tool.name for tool in parts]
    schema = {"type": "string", "enum": choices, "description": form["says"]}
    one = Tool(
        name,
        form["text"].format(operations=told),
        (Param(form["chooser"], name + CHOICE, schema), *shown.values()),
        fields_of(parts),
        many=any(tool.many for tool in parts),
        effect=reads_or_writes(parts),
        origin=tuple(dict.fromkeys(origin for tool in parts for origin in tool.origin)),
        channels=frozenset.intersection(*(tool.channels for tool in parts)),
        operations=operations,
    )
    return ByAction(one, form["chooser"], names, {tool.name: tool for tool in parts})


def _taken_up(shown: dict[str, Param], param: Param, chooser: str) -> str:
    """The name under which the one tool takes a parameter; the same for those that are alike."""
    number, name = 1, param.name
    while name == chooser or (name in shown and not _alike(shown[name], param)):
        number += 1
        name = f"{param.name}_{number}"
    fact = f"{name}{NEST}" if any(p.fact == param.fact for p in shown.values()) else param.fact
    plain = replace(param, name=name, fact=fact or name, required=False, shapes=(), given=None)
    shown.setdefault(name, plain)
    return name


def _alike(one: Param, other: Param) -> bool:
    schemas = [{k: v for k, v in p.schema.items() if k != "description"} for p in (one, other)]
    return schemas[0] == schemas[1]


def _listed(names: dict[str, dict[str, str]], tool: Tool) -> str:
    """The parameters of a choice in words, with what may be left out."""
    optional = {param.name for param in tool.params if not param.required}
    spoken = [f"{n} (optional)" if own in optional else n for n, own in names[tool.name].items()]
    return ", ".join(spoken) or "nothing"


# -- tools_behind_search -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class BehindSearch(Layer):
    """Tools are not listed but found by a search, and called through another tool."""

    search: Tool
    run: Tool
    hidden: tuple[Tool, ...]
    missing: str

    def phase(self, memory: Memory) -> int:
        """Which tools have been found, one bit each."""
        found = memory.get("found", ())
        return sum(1 << bit for bit, tool in enumerate(self.hidden) if tool.name in found)

    def tools(self, tools: tuple[Tool, ...], memory: Memory) -> tuple[Tool, ...]:
        """The search and the call stand for what is hidden; what was found can be called."""
        known = memory.get("found", set())
        chooser, nest = (param.fact for param in self.run.params)
        found = tuple(
            Operation(tool.name, tool, chooser, nest) for tool in self.hidden if tool.name in known
        )
        new = (self.search, self.run.with_(operations=found))
        return instead(tools, {tool.name for tool in self.hidden}, new)

    def changes_results(self, tool: Tool) -> bool:
        """Those of the search and of the call, which gives what several gave."""
        return tool.name in (self.search.name, self.run.name)

    def call(self, name: str, arguments: dict[str, Any], memory: Memory, below: Below) -> Result:
        """Searches, or calls what was found."""
        if name == self.search.name:
            found = list(self._matching(str(arguments[self.search.params[0].name])))
            memory["found"] = memory.get("found", set()) | {tool.name for tool in found}
            return Result(True, [_entry(tool) for tool in found])
        if name != self.run.name:
            return below(name, arguments)
        chooser, nest = (param.name for param in self.run.params)
        value, own = arguments[chooser], arguments[nest]
        tool = next((one for one in self.hidden if one.name == value), None)
        if tool is None:
            text = self.missing.format(value=value, search=self.search.name)
            return error("unknown_tool", text)
        wrong = _misfit(tool, own)
        if wrong:
            return error("invalid_arguments", f"{value} {wrong}")
        return below(value, dict(own))

    def _matching(self, query: str) -> Iterator[Tool]:
        """The tools that share a word with a query; all, where none does."""
        words = _words(query)
        found = [tool for tool in self.hidden if words & _words(_text_of(tool))]
        yield from found or self.hidden


def _text_of(tool: Tool) -> str:
    keys = (field.path[-1] for field in tool.returns)
    return " ".join((tool.name, tool.description, *(p.name for p in tool.params), *keys))


def _words(text: str) -> set[str]:
    """The words of a text that are long enough to mean something, without their plural."""
    return {word.removesuffix("s") for word in re.findall(r"[a-z]{3,}", text.lower())}


def _entry(tool: Tool) -> dict[str, Any]:
    """What a search tells of a tool; its schema as text, which every format of results can hold."""
    schema = {k: v for k, v in input_schema(tool).items() if k != "additionalProperties"}
    told = {"name": tool.name, "description": tool.description}
    return {**told, "parameters": as_json(schema)}


@shift(
    tier="interaction",
    dimension="action",
    level=2,
    order=1,  # deep, as if the graph changed: what moves or fails later is the search and the call
    one_level=True,
    imitates="stripe-mcp: twelve tools went behind a search and an execute tool",
)
def tools_behind_search(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Put all tools behind a search and a call: what there is has to be found first."""
    hidden = tuple(tool for tool in scene.tools if whole(tool))
    if len(hidden) < 2:
        raise NotApplicable("there are not two tools to put behind a search")
    form, free = said("search", scene, rng), free_names(scene)
    names = {"search": free(form["search"]), "run": free(form["run"])}
    text = {"type": "string"}
    query = Param(
        form["query"],
        names["search"] + QUERY,
        {**text, "description": form["words"]},
        given="",
        free=True,
    )
    search = Tool(
        names["search"], form["finds"].format(**names), (query,), (), many=True, lists=True
    )
    chosen = {**text, "description": form["chosen"]}
    nested = {"type": "object", "description": form["nested"]}
    run = Tool(
        names["run"],
        form["runs"].format(**names),
        (
            Param(form["choice"], names["run"] + CHOICE, chosen),
            Param(form["nest"], names["run"] + NEST, nested),
        ),
        fields_of(hidden),
        many=any(tool.many for tool in hidden),
        effect=reads_or_writes(hidden),
        origin=tuple(dict.fromkeys(origin for tool in hidden for origin in tool.origin)),
        operations=(),
    )
    layer = BehindSearch(search, run, hidden, form["missing"])
    if not oracle_unchanged(scene, layer):
        raise NotApplicable("what the task depends on would not be seen behind a search")
    return Change(layer=layer)


# -- stale_tool_list ---------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class StaleList(Layer):
    """The list that is shown is out of date until a call of a tool that has changed says so."""

    fresh: Surface
    code: str
    text: str

    def phase(self, memory: Memory) -> int:
        """Whether the list has been fetched again."""
        return int(memory.get("fresh", 0))

    def tools(self, tools: tuple[Tool, ...], memory: Memory) -> tuple[Tool, ...]:
        """The list as it was, or as it is."""
        return self.fresh.tools(tools, memory) if self.phase(memory) else tools

    def changes_results(self, tool: Tool) -> bool:
        """No: it fails, or calls as below."""
        return False

    def call(self, name: str, arguments: dict[str, Any], memory: Memory, below: Below) -> Result:
        """Answers the first call of a tool that has changed with the fresh list."""
        if self.phase(memory):
            return self.fresh.call(name, arguments, memory, below)
        if name in self.fresh.names:
            memory["fresh"] = 1
            text = self.text.format(old=name)
            return error(self.code, text, Hint("refresh"), provoked=True)
        return below(name, arguments)


@shift(
    tier="interaction",
    dimension="action",
    level=2,
    order=3,  # on top: what is shown is what a client has kept
    imitates="Model Context Protocol: a tools/list result has a ttlMs, and clients keep it so long",
)
def stale_tool_list(scene: Scene, rng: Random, severity: Severity) -> Change:
    """Show a list kept from before a release that renamed tools: one (1), all needed (2), all (3).

    The first call of a renamed tool fails, and says that the list has been fetched again. From
    severity 3 parameters have other names too.
    """
    if scene.outcome.refusal == "tool_unavailable":
        raise NotApplicable("a tool that goes is the evidence for refusing here")
    hit = reach(scene, rng, severity, lambda tool: reworded(tool.name, scene) != tool.name)
    free = free_names(scene)
    names = {tool.name: free(reworded(tool.name, scene)) for tool in hit}
    params = {tool.name: reworded_params(tool, scene) for tool in hit} if severity == 3 else {}
    code, text = said("stale", scene, rng)
    return Change(layer=StaleList(Surface(names=names, params=params), code, text))

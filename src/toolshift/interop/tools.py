"""Foreign tool lists as ours, and back without loss.

    toolbox = from_mcp(listed)            # the `tools` of an MCP tools/list, as JSON objects
    toolbox = from_openai(functions)      # {"type": "function", "function": {...}} objects
    toolbox.tools                         # tuple[Tool, ...]; what shifts work on
    toolbox.speak(tool)                   # a Tool, shifted or not, in the words of its dialect

Every parameter has a fact of its own, `tool(param)`, and every declared value of a result one,
`tool.path`; so foreign tools are not linked by data flow until somebody says how. A parameter's
`schema` stands on its own (references written out). `speak` goes back to the document as it came:
an unchanged tool is the very object that was read, a renamed parameter is renamed wherever the
document speaks of it.

A tool that has not `readOnlyHint` is taken to write. To add a dialect (OpenAPI documents, annotated
callables), write a `Source` for each of its tools and hand them to `Toolbox`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from hashlib import blake2b
from typing import Any, Literal

import msgspec

from toolshift.core.errors import UsageError
from toolshift.core.tool import DESCRIPTION, NAME, Effect, Field, Param, Tool, input_schema
from toolshift.core.value_shape import Shape
from toolshift.core.values import as_list
from toolshift.interop.conditions import restated
from toolshift.interop.schema import (
    JSONSchema,
    each_description,
    inlined,
    leaves_of,
    properties_of,
    renamed,
    sample,
)

SORTED = msgspec.json.Encoder(order="deterministic")
Dialect = Literal["mcp", "openai"]
_NUMBERS = ("number", "integer")
_DECLARED = (*_NUMBERS, "string", "boolean", "array")
"""The types of values that a result declares; a list is one value, read as it stands."""


@dataclass(frozen=True, eq=False)
class Source:
    """One foreign tool: the document it was read from, and what it is to us.

    Attributes:
        raw: the document, kept as it came.
        inputs: the JSON Schema of its arguments, as it came.
        outputs: the JSON Schema of its structured results; None where it declares none.
        envelope: the key under which a result holds its list of records; "" where the result is
            the record.
        known: for the fact of each parameter, the name of the property that it is.
        opened: the objects among its arguments that are laid open (`interop.opened`).
        whole: the tool before it was laid open; None where this is that.
    """

    raw: Mapping[str, Any]
    tool: Tool
    inputs: JSONSchema
    outputs: JSONSchema | None = None
    envelope: str = ""
    known: Mapping[str, str] = field(default_factory=dict)
    opened: tuple[str, ...] = ()
    whole: Source | None = None

    @property
    def as_it_came(self) -> Source:
        """The tool as agents are shown it, with no object laid open."""
        return self.whole or self

    def example(self) -> Any:
        """A result that it might give: a record, a list of two, or a text."""
        if self.outputs is None:
            return "No matching entries."
        word = f"{self.tool.name.replace('_', ' ')} 1"
        value = sample(inlined(self.outputs, self.outputs), word)
        if not self.envelope:
            return value
        listed = value.get(self.envelope) if isinstance(value, dict) else None
        first = listed[0] if isinstance(listed, list) and listed else None
        first = first or {"name": sample(_open(self.outputs, self.envelope), word)}
        return [first, first]


@dataclass(frozen=True)
class StandIn:
    """How a shown tool is called in the place of a true one; shown parameters go by their facts.

    Attributes:
        takes: for the fact of a true parameter, that of the shown one that takes it.
        says: for the fact of a shown parameter, what is said there: which of several it is.
        inside: the fact of the shown parameter that takes all arguments as one object, by the
            names in `takes`; "" where each has its own.
        only: for the fact of a true parameter, the value for which the tool stands alone.
        restated: for the fact of a true parameter, how its values are said now, where they may be
            said otherwise.
        otherwise: for the fact of a true parameter, what is said where a true call leaves it out,
            for the shown tool takes something else then.
        opened: the objects among the arguments of the true tool that are laid open
            (`interop.opened`); facts are those of their members then.
    """

    takes: Mapping[str, str]
    says: Mapping[str, Any] = field(default_factory=dict)
    inside: str = ""
    only: Mapping[str, Any] = field(default_factory=dict)
    restated: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    otherwise: Mapping[str, Any] = field(default_factory=dict)
    opened: tuple[str, ...] = ()


class Documented(Tool, frozen=True, eq=False):
    """A tool that a layer shows word for word as a document of its own has it.

    Attributes:
        stands: for a true tool by name, how this one is called in its place; for those that it
            does not stand for by itself.
        told: for the fact of a parameter, the value that the user has been made to state.
    """

    source: Source | None = None
    stands: Mapping[str, StandIn] = msgspec.field(default_factory=dict)
    told: Mapping[str, Any] = msgspec.field(default_factory=dict)

    @classmethod
    def of(
        cls,
        source: Source,
        stands: Mapping[str, StandIn] | None = None,
        told: Mapping[str, Any] | None = None,
    ) -> Documented:
        """The tool of a document."""
        own = msgspec.structs.asdict(source.tool)
        return cls(**own, source=source, stands=stands or {}, told=told or {})


class Toolbox:
    """The tools of one foreign party.

    Args:
        dialect: how that party writes tools.
        sources: the tools, with what was told of them.

    Raises:
        UsageError: where two of them have one name.
    """

    def __init__(self, dialect: Dialect, sources: Iterable[Source]) -> None:
        self.dialect: Dialect = dialect
        self.sources: dict[str, Source] = {}
        for source in sources:
            name = source.tool.name
            if name in self.sources:
                raise UsageError(
                    f"two tools are named {name!r}: each name may occur only once in a tool list"
                )
            self.sources[name] = source
        self.tools: tuple[Tool, ...] = tuple(source.tool for source in self.sources.values())

    @property
    def hash(self) -> str:
        """The same for the same tools in the same order, however their keys are ordered.

        One server lists its keys in another order in another era of the protocol; and an agent may
        mark another tool as the last to be cached in mid-conversation.
        """
        content = SORTED.encode([_unmarked(source.raw) for source in self.sources.values()])
        return blake2b(content, digest_size=6).hexdigest()

    def source(self, tool: Tool) -> Source | None:
        """The foreign tool that a shown one alone stands for; None where it is not one."""
        if isinstance(tool, Documented):
            return tool.source
        return self.sources.get(tool.origin[0]) if len(tool.origin) == 1 else None

    def schema(self, tool: Tool) -> JSONSchema:
        """The JSON Schema of the arguments of a tool as shown."""
        source = self.source(tool)
        if source is None:
            return {**input_schema(tool)}
        if tool.params == source.tool.params:
            return source.inputs
        return _as_shown(source, tool)

    def checked(self, tool: Tool) -> JSONSchema | None:
        """What a call is to be held against, because layers have changed it; None for nothing.

        Values of parameters that only have another name or text are left to the tool itself: many
        take more than they declare (`"2"` for 2, null for a value left out). What is missing is
        not, for the tool would ask for it by its former name.
        """
        source = self.source(tool)
        if source is None:
            return self.schema(tool)
        if tool.params == source.tool.params:
            return None
        before = {param.fact: _values(param.schema) for param in source.tool.params}
        own = {p.name for p in tool.params if before.get(p.fact) == _values(p.schema)}
        schema = self.schema(tool)
        if len(own) == len(tool.params):
            required = [param.name for param in tool.params if param.required]
            return {"type": "object", "required": required, **_needed_beside(schema)}
        declared = {n: {} if n in own else one for n, one in schema["properties"].items()}
        return {**schema, "properties": declared}

    def speak(self, tool: Tool, keep_outputs: bool = True) -> dict[str, Any]:
        """A tool as its clients read it.

        What would still tell the old name (a title) goes where the name has changed.
        """
        source = self.source(tool)
        keep_outputs = keep_outputs and (source is None or tool.returns is source.tool.returns)
        if self.dialect == "openai":
            return self._as_openai(tool, keep_outputs)
        if source is None:
            hints = {"readOnlyHint": tool.effect == "read"}
            shown = {"name": tool.name, "description": tool.description}
            return {**shown, "inputSchema": self.schema(tool), "annotations": hints}
        raw, inputs = dict(source.raw), self.schema(tool)
        if tool.name != source.tool.name:
            raw.pop("title", None)
            inputs = _untitled(inputs)
            for key in ("annotations", "outputSchema"):
                if isinstance(raw.get(key), Mapping):
                    raw[key] = _untitled(raw[key])
        raw = raw if keep_outputs else _without_results(raw)
        return {**raw, **_said(raw, tool), "inputSchema": inputs}

    def _as_openai(self, tool: Tool, keep_outputs: bool) -> dict[str, Any]:
        source = self.source(tool)
        spoken = source is not None and "function" in source.raw  # else MCP's, of another list
        raw = dict(source.raw) if source is not None and spoken else {"type": "function"}
        inner = raw.get("function")
        function = dict(inner) if isinstance(inner, Mapping) else {}
        function = function if keep_outputs else _without_results(function)
        shown = {**function, **_said(function, tool)}
        if "parameters" in function or tool.params:
            shown["parameters"] = self.schema(tool)
        elif source is None:
            shown |= self._no_parameters
        return {**raw, "function": shown}

    @cached_property
    def _no_parameters(self) -> dict[str, Any]:
        """How a tool that was added says that it takes nothing: as the others do.

        The key would tell it apart where it alone has it, or lacks it.
        """
        sources = [source for source in self.sources.values() if not source.tool.params]
        bare: list[Mapping[str, Any]] = [source.raw.get("function") or {} for source in sources]
        if not all("parameters" in said for said in bare):
            return {}
        plain = (
            said["parameters"] for said in bare if _NOTHING.issuperset(said["parameters"] or ())
        )
        return {"parameters": next(plain, {"type": "object", "properties": {}})}


def _needed_beside(schema: JSONSchema) -> JSONSchema:
    """What a schema says beside `required` of the arguments that a call needs, not of values.

    Of alternatives one is enough: null in place of a value is a second one for a validator.
    """
    found: JSONSchema = {}
    if isinstance(schema.get("dependentRequired"), Mapping):
        found["dependentRequired"] = schema["dependentRequired"]
    ways = [as_list(schema.get(key)) for key in ("anyOf", "oneOf")]
    plain = [parts for parts in ways if parts and all(map(_is_of_presence, parts))]
    return {**found, "allOf": [{"anyOf": parts} for parts in plain]} if plain else found


def _is_of_presence(part: Any) -> bool:
    return isinstance(part, Mapping) and {*part} == {"required"}


def _values(schema: JSONSchema) -> Any:
    """What a schema says of values: all but its texts."""
    return each_description({**_untitled(schema), "description": ""}, lambda text: "")


_RESULTS = frozenset(("outputSchema", "output_schema", "response", "returns", "return"))
"""Keys under which a tool declares its results: those of MCP and its clients, of Google's function
declarations, and of the tools that chat templates of `transformers` read."""


def _without_results(said: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in said.items() if key not in _RESULTS}


def _unmarked(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A document without the mark of a cache, which is on a tool and not of it."""
    return {
        key: {k: v for k, v in value.items() if k != _CACHED} if isinstance(value, dict) else value
        for key, value in raw.items()
        if key != _CACHED
    }


_CACHED = "cache_control"
_NOTHING = {"type", "properties", "required"}
"""Keys of a schema that allows no parameters, if it names none."""


def _said(raw: Mapping[str, Any], tool: Tool) -> dict[str, Any]:
    """The name and the description; one that was never there is not made up."""
    said = {"name": tool.name}
    if tool.description or "description" in raw:
        said["description"] = tool.description
    return said


def _untitled(document: Mapping[str, Any]) -> dict[str, Any]:
    """Without the title at its top, which libraries make from the name."""
    return {key: value for key, value in document.items() if key != "title"}


def _as_shown(source: Source, tool: Tool) -> JSONSchema:
    """The document's schema under the names, and with the texts, that are shown."""
    own = {source.known[p.fact]: p for p in tool.params if p.fact in source.known}
    new = [p for p in tool.params if p.fact not in source.known]
    schema = renamed(source.inputs, {name: param.name for name, param in own.items()})
    before = {param.name: param for param in source.tool.params}
    ways = {
        param.name: partial(_written, param.shapes[len(before[name].shapes) :])
        for name, param in own.items()
        if len(param.shapes) > len(before[name].shapes)
    }
    schema = restated(schema, ways) if ways else schema
    declared = schema.get("properties")
    shown = dict(declared) if isinstance(declared, Mapping) else {}
    for name, param in own.items():
        if param.name != name and isinstance(shown.get(param.name), Mapping):
            shown[param.name] = _untitled(shown[param.name])
        told, was = param.schema, before[name].schema
        if _untitled({**told, "description": ""}) != _untitled({**was, "description": ""}):
            shown[param.name] = told  # not only another text: another type, or other choices
            continue
        text = told.get("description", "")
        if text != was.get("description", "") and isinstance(shown.get(param.name), dict):
            shown[param.name] = {**shown[param.name], "description": text}
    shown |= {param.name: param.schema for param in new}
    order = [param.name for param in tool.params]
    gone = {before[name].name for name in before if name not in own}
    asked = schema.get("required")  # some servers write `true` here
    names = as_list(asked)
    required = [name for name in names if isinstance(name, str) and name not in gone]
    required += [p.name for p in new if p.required]
    schema |= {"type": "object", "properties": {name: shown[name] for name in order}}
    if required or "required" in schema:
        schema["required"] = required
    return schema


def _written(shapes: tuple[Shape, ...], value: Any) -> Any:
    """A value of the document in shapes that layers have given it."""
    return Param("", "", {}, shapes=shapes).write(value)


# -- reading -----------------------------------------------------------------------------------


def from_mcp(listed: Iterable[Mapping[str, Any]]) -> Toolbox:
    """The tools of an MCP server, from the JSON objects of its `tools/list`."""
    return Toolbox("mcp", [_mcp(raw, place) for place, raw in enumerate(listed)])


def _mcp(raw: Mapping[str, Any], place: int) -> Source:
    hints = raw.get("annotations")
    reads = isinstance(hints, Mapping) and hints.get("readOnlyHint") is True
    outputs = raw.get("outputSchema")
    return _source(
        raw,
        _name(raw, place),
        raw.get("description"),
        raw.get("inputSchema"),
        outputs if isinstance(outputs, Mapping) else None,
        "read" if reads else "write",
    )


def from_openai(listed: Iterable[Mapping[str, Any]]) -> Toolbox:
    """The tools of a chat-completions request; whether one only reads is not said there."""
    return Toolbox("openai", [_openai(raw, place) for place, raw in enumerate(listed)])


def _openai(raw: Mapping[str, Any], place: int) -> Source:
    function = raw.get("function")
    if not isinstance(function, Mapping):
        raise UsageError(f"tool {place} of the list has no `function` object: not an OpenAI tool")
    told = function.get("description")
    name = _name(function, place)
    return _source(raw, name, told, function.get("parameters"), None, "write")


def _name(raw: Mapping[str, Any], place: int) -> str:
    name = raw.get("name") if isinstance(raw, Mapping) else None
    if not isinstance(name, str) or not name:
        raise UsageError(f"tool {place} of the list has no name")
    return name


def _source(
    raw: Mapping[str, Any],
    name: str,
    told: Any,
    inputs: Any,
    outputs: Mapping[str, Any] | None,
    effect: Effect,
) -> Source:
    schema: JSONSchema = dict(inputs) if isinstance(inputs, Mapping) else {"type": "object"}
    declared, required = properties_of(schema)
    params = tuple(
        Param(key, f"{name}({key})", inlined(inner, schema), key in required)
        for key, inner in declared.items()
    )
    envelope, returns = _returns(name, outputs)
    description = told if isinstance(told, str) else ""
    tool = Tool(
        name,
        description,
        params,
        returns,
        many=bool(envelope),
        effect=effect,
        origin=(name,),
        channels=frozenset((NAME, DESCRIPTION) if description.strip() else (NAME,)),
    )
    known = {param.fact: param.name for param in params}
    return Source(raw, tool, schema, dict(outputs) if outputs else None, envelope, known)


def _returns(name: str, outputs: Mapping[str, Any] | None) -> tuple[str, tuple[Field, ...]]:
    """What a result declares; a lone list of records is a list, as servers wrap one."""
    if outputs is None:
        return "", ()
    schema = inlined(outputs, outputs)
    known = schema.get("properties")
    envelope = ""
    if isinstance(known, Mapping) and len(known) == 1:
        ((key, inner),) = known.items()
        items = inner.get("items") if inner.get("type") == "array" else None
        if isinstance(items, Mapping) and _is_record(items):
            envelope, schema = key, dict(items)
    fields = tuple(
        Field(path, f"{name}.{'.'.join(path)}", kind if kind in _NUMBERS else "string")  # type: ignore[arg-type]
        for path, kind in leaves_of(schema)
        if kind in _DECLARED
    )
    return envelope, fields


def _is_record(items: Mapping[str, Any]) -> bool:
    """Whether the items of a list are records, with values declared or open ones."""
    known = items.get("properties") or items.get("additionalProperties")
    return items.get("type") == "object" and bool(known)


def _open(outputs: JSONSchema, envelope: str) -> Any:
    """The schema of the values that records in an envelope may have beside those declared."""
    schema = inlined(outputs, outputs)
    return schema["properties"][envelope]["items"].get("additionalProperties")

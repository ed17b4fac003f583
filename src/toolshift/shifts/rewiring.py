"""The layer that rewires the graph of tools, and the programs that its new tools run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any, Protocol

from toolshift.core import seed as seeds
from toolshift.core.layer import Below, Layer, Memory
from toolshift.core.tool import Field, Param, Result, Tool, error
from toolshift.core.value_shape import moved
from toolshift.core.values import held_in

MAX_PAGES = 200
_SOME_DAYS, _SOME_MINUTES = timedelta(days=9), 75
"""How much earlier the dates and the times of day of an old copy are."""


class Program(Protocol):
    """What a tool that was made of others does with a call."""

    def __call__(self, arguments: dict[str, Any], memory: Memory, below: Below) -> Result:
        """Carries out the call by way of the tools below."""
        ...


@dataclass(frozen=True, eq=False)
class Rewired(Layer):
    """Takes tools away and adds others, which run programs over those below.

    Attributes:
        removed: the names of tools below that are no longer shown.
        added: new tools, shown where the first of the removed ones stood, each with a function of
            (arguments, memory, below) that carries out its calls.
        programs: these functions by the name of their tool.
    """

    removed: frozenset[str]
    added: tuple[tuple[Tool, Program], ...]
    programs: Mapping[str, Program] = field(init=False)

    def __post_init__(self) -> None:
        programs = {tool.name: program for tool, program in self.added}
        object.__setattr__(self, "programs", programs)

    def tools(self, tools: tuple[Tool, ...], memory: Memory) -> tuple[Tool, ...]:
        place = next((n for n, t in enumerate(tools) if t.name in self.removed), len(tools))
        kept = [tool for tool in tools if tool.name not in self.removed]
        return (*kept[:place], *(tool for tool, _ in self.added), *kept[place:])

    def changes_results(self, tool: Tool) -> bool:
        return tool.name in self.programs

    def call(self, name: str, arguments: dict[str, Any], memory: Memory, below: Below) -> Result:
        program = self.programs.get(name)
        return below(name, arguments) if program is None else program(arguments, memory, below)


def label(fact: str) -> str:
    """A fact as a reader would call it."""
    return fact.replace("_", " ")


def bare(tool: Tool) -> str:
    """What a tool does, for a sentence that goes on: without a full stop at its end."""
    return tool.description.strip().removesuffix(".") or tool.name.replace("_", " ")


def joined_params(source: Tool, target: Tool, fact: str) -> tuple[Param, ...]:
    """What two tools need when the first feeds the second: no fact twice, not the fed one."""
    own = {param.fact for param in source.params}
    fed = {fact, *(f.fact for f in source.returns)}
    rest = (p for p in target.params if p.fact not in own and p.fact not in fed)
    names = {param.name for param in source.params}
    return (
        *source.params,
        *(p if p.name not in names else Param(f"{p.name}_2", p.fact, p.schema) for p in rest),
    )


def joined_returns(source: Tool, target: Tool) -> tuple[Field, ...]:
    """The fields of both, the first's where they share a key."""
    keys = {f.path for f in source.returns}
    return source.returns + tuple(f for f in target.returns if f.path not in keys)


def arguments_for(
    tool: Tool, joined: tuple[Param, ...], arguments: dict[str, Any]
) -> dict[str, Any]:
    """The arguments of one of the joined tools, found by fact."""
    given = {p.fact: arguments[p.name] for p in joined if p.name in arguments}
    return {p.name: given[p.fact] for p in tool.params if p.fact in given}


def _fed(source: Tool, target: Tool, record: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """The target's arguments with what the source's record feeds it."""
    fed = {f.fact: _at(record, f.path) for f in source.returns}
    own = {p.name: fed[p.fact] for p in target.params if fed.get(p.fact) is not None}
    return {**arguments, **own}


def _at(record: Any, path: tuple[str, ...]) -> Any:
    """The value of a record at a path; None where there is none."""
    for key in path:
        record = record.get(key) if isinstance(record, Mapping) else None
    return record


@dataclass(frozen=True, eq=False)
class Join:
    """Runs the source, feeds each record to the target, and lays the results side by side."""

    source: Tool
    target: Tool
    fact: str

    def __call__(self, arguments: dict[str, Any], memory: Memory, below: Below) -> Result:
        joined = joined_params(self.source, self.target, self.fact)
        first = below(self.source.name, arguments_for(self.source, joined, arguments))
        if not first.ok:
            return first
        rest = arguments_for(self.target, joined, arguments)
        records = []
        for record in first.records:
            second = _whole(below, self.target.name, _fed(self.source, self.target, record, rest))
            if not second.ok:
                return second
            records += [{**more, **record} for more in second.records]
        many = self.source.many or self.target.many
        fields = joined_returns(self.source, self.target)
        if first.inside or (first.hint is not None and first.hint.kind == "page"):
            return first.with_records(records, fields=fields)  # what says the next page stays
        return Result(True, records if many else records[0], fields)


def _whole(below: Below, name: str, arguments: dict[str, Any]) -> Result:
    """The result of a call with all its pages."""
    result = below(name, arguments)
    records = result.records if result.ok else []
    for _ in range(MAX_PAGES):
        hint = result.hint
        if not result.ok or hint is None or hint.kind != "page":
            break
        result = below(name, {**arguments, **hint.arguments})
        records += result.records if result.ok else []
    return result.with_records(records) if result.ok and result.is_list else result


@dataclass(frozen=True, eq=False)
class Handle:
    """Keeps the arguments of a call and gives a handle for them; nothing is done yet."""

    tool: Tool
    key: str

    def __call__(self, arguments: dict[str, Any], memory: Memory, below: Below) -> Result:
        handle = seeds.code(self.key, sorted(arguments.items()))
        memory[f"{self.key} {handle}"] = arguments
        return Result(True, {self.key: handle}, (Field((self.key,), f"{self.tool.name} handle"),))


@dataclass(frozen=True, eq=False)
class Recall:
    """Makes the call whose handle (or whose successor's output) is handed in."""

    tool: Tool
    key: str

    def __call__(self, arguments: dict[str, Any], memory: Memory, below: Below) -> Result:
        kept = memory.get(f"{self.key} {arguments[self.key]}")
        if kept is None:
            return error("not_found", f"There is no {self.key} {arguments[self.key]}.")
        return below(self.tool.name, kept)


@dataclass(frozen=True, eq=False)
class Part:
    """Returns some fields of a tool, and perhaps all that no other part returns.

    Attributes:
        tool: that is called.
        fields: those of the part.
        others: the keys that other parts return; all but these come back. None where only `fields`
            do.
        numbered: a part number is added, so that no answer comes last.
    """

    tool: Tool
    fields: tuple[Field, ...]
    others: frozenset[str] | None = None
    numbered: bool = True

    def __call__(self, arguments: dict[str, Any], memory: Memory, below: Below) -> Result:
        result = below(self.tool.name, arguments)
        if not result.ok or not isinstance(result.data, dict):
            return result
        keys, others = {f.path[0] for f in self.fields}, self.others
        kept = keys if others is None else {*keys, *(result.data.keys() - others)}
        data = {key: value for key, value in result.data.items() if key in kept}
        if self.numbered:
            data["part_ref"] = seeds.code(
                "part", self.tool.name, sorted(keys), sorted(arguments.items())
            )
        known = {f.path for f in self.fields}
        rest = (f for f in result.fields if f.path not in known and f.path[0] in kept)
        return result.with_(data=data, fields=(*self.fields, *rest))


@dataclass(frozen=True, eq=False)
class Remember:
    """Runs source and target, shows only the target's result, and keeps the source's by its key."""

    source: Tool
    target: Tool
    fact: str
    key: Field

    def __call__(self, arguments: dict[str, Any], memory: Memory, below: Below) -> Result:
        joined = joined_params(self.source, self.target, self.fact)
        own = arguments_for(self.source, joined, arguments)
        first = below(self.source.name, own)
        if not first.ok:
            return first
        rest = arguments_for(self.target, joined, arguments)
        second = below(self.target.name, _fed(self.source, self.target, first.data, rest))
        if second.ok:
            name = self.key.path[-1]
            memory[f"{name} {second.data[name]}"] = own
        return second


@dataclass(frozen=True, eq=False)
class Guarded:
    """Lets a call through that carries the permit for its subject."""

    tool: Tool
    key: str
    subject: str
    salt: str
    refusal: str

    def permit(self, arguments: dict[str, Any]) -> str:
        """The permit for a subject."""
        return seeds.code("permit", self.salt, self.tool.name, arguments.get(self.subject, ""))

    def __call__(self, arguments: dict[str, Any], memory: Memory, below: Below) -> Result:
        own = {name: value for name, value in arguments.items() if name != self.key}
        if arguments[self.key] != self.permit(own):
            said = self.refusal.format(value=arguments[self.key])
            return error(f"{self.key}_invalid", said)
        return below(self.tool.name, own)

    def granting(self) -> Program:
        """The program of the tool that grants the permit."""

        def grant(arguments: dict[str, Any], memory: Memory, below: Below) -> Result:
            permit = self.permit(arguments)
            data = {self.key: permit, "audit_ref": seeds.code("audit", permit)}
            fields = (Field((self.key,), f"{self.tool.name} permit"),)
            return Result(True, data, fields)

        return grant


@dataclass(frozen=True, eq=False)
class Stale:
    """Returns what a tool returned some time ago: other codes, other numbers, the same ids."""

    tool: Tool
    salt: str

    def __call__(self, arguments: dict[str, Any], memory: Memory, below: Below) -> Result:
        result = below(self.tool.name, arguments)
        return result.with_(data=self._old(result.data)) if result.ok else result

    def _old(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._old(one) for key, one in value.items()}
        if isinstance(value, list):
            return [self._old(one) for one in value]
        looks_like_code = isinstance(value, str) and len(value) == 9 and value[4] == "-"
        return seeds.code("stale", self.salt, value) if looks_like_code else former_number(value)


def former_number(value: Any) -> Any:
    """What a number or a boolean was some time ago; any other value as it is."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, float):
        return round(value * 1.25 + 1, 2)
    return value + 3 if isinstance(value, int) else value


@dataclass(frozen=True, eq=False)
class Former:
    """Returns what a tool of somebody else's returned some time ago, at every depth.

    Numbers, booleans, dates and times of day are others. Of texts only those are that `texts` has,
    as wholes or as words of longer ones. What the call itself passes stays as it is.
    """

    tool: Tool
    texts: Mapping[str, str]

    def __call__(self, arguments: dict[str, Any], memory: Memory, below: Below) -> Result:
        result = below(self.tool.name, arguments)
        passed = list(_leaves(arguments))
        return result.with_(data=self._former(result.data, passed)) if result.ok else result

    def _former(self, value: Any, passed: list[Any]) -> Any:
        if isinstance(value, dict):
            return {key: self._former(one, passed) for key, one in value.items()}
        if isinstance(value, list):
            return [self._former(one, passed) for one in value]
        if any(one == value and type(one) is type(value) for one in passed):
            return value
        if not isinstance(value, str):
            return former_number(value)
        then = former_time(value)
        if then != value:
            return then
        if value in self.texts or not self.texts:
            return self.texts.get(value, value)
        words = "|".join(map(re.escape, sorted(self.texts, key=len, reverse=True)))
        return re.sub(rf"(?<!\w)(?:{words})(?!\w)", lambda found: self.texts[found[0]], value)


def _leaves(value: Any) -> Iterator[Any]:
    """The texts and numbers of JSON data, at every depth."""
    inner = held_in(value)
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        yield value
    for one in inner:
        yield from _leaves(one)


_DATE = re.compile(r"(\d{4}-\d{2}-\d{2})(?=$|[T ]\d{2}:\d{2})")
_CLOCK = re.compile(r"([01]\d|2[0-3]):[0-5]\d(:[0-5]\d)?")


def former_time(text: str) -> str:
    """The date or the time of day that an old copy has in the place of one; else the same text."""
    if found := _DATE.match(text):
        with suppress(ValueError, OverflowError):
            return str(date.fromisoformat(found[1]) - _SOME_DAYS) + text[found.end() :]
    return moved(text, -_SOME_MINUTES) if _CLOCK.fullmatch(text) else text


@dataclass(frozen=True, eq=False)
class Profile:
    """Returns what the user has saved."""

    values: Mapping[str, Any]

    def __call__(self, arguments: dict[str, Any], memory: Memory, below: Below) -> Result:
        fields = tuple(Field((slot,), slot) for slot in self.values)
        return Result(True, dict(self.values), fields)

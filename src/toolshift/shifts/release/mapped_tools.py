"""How a call of a new tool is carried by an old one, and what cannot be carried."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import jsonschema_rs

from toolshift.interop.tools import Source, Toolbox
from toolshift.shifts.release.mapping import UNDECIDED, Answers
from toolshift.shifts.release.resolve import pairs_of

JSONSchema = Mapping[str, Any]


class Unsayable(Exception):
    """A call of the new tool means nothing that the old tool can be told; the message says why."""


@dataclass(frozen=True)
class Route:
    """How calls of a new tool become calls of an old one.

    Attributes:
        old: the tool that carries them.
        when: the parameter of the new tool and its value for which this route is taken.
        params: old parameter names to new ones, of those that both have.
        values: for an old parameter, the old words to the new ones.
        fixed: what old parameters get that the new tool does not take.
        fields: paths in a result, old to new.
        dropped: paths in a result that are declared no more.
        missing: old parameters that are required, and that nobody can say any more.
    """

    old: str
    when: tuple[str, Any] | None = None
    params: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    fields: Mapping[str, str] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    def inward(self, arguments: Mapping[str, Any], before: Source) -> dict[str, Any]:
        """The arguments of the old tool; surplus ones are left out.

        Raises:
            Unsayable: where the old tool cannot express it.
        """
        if self.missing:
            raise Unsayable(f"the tool behind it needs {', '.join(self.missing)}")
        schemas = {param.name: param.schema for param in before.tool.params}
        said = dict(self.fixed)
        for old, new in self.params.items():
            if new in arguments:
                words = {b: a for a, b in self.values.get(old, {}).items()}
                said[old] = _said(new, arguments[new], words, schemas[old])
        return said


def _said(name: str, value: Any, words: Mapping[str, str], schema: JSONSchema) -> Any:
    """A value of a new parameter as the old one takes it.

    Raises:
        Unsayable: where that would lose something.
    """
    if isinstance(value, str) and value in words:
        return words[value]
    check = jsonschema_rs.validator_for(dict(schema))
    for candidate in (value, *_readings(value)):
        if check.is_valid(candidate):
            return candidate
    raise Unsayable(f"{name}: the tool behind it cannot take {value!r}"[:300])


def _readings(value: Any) -> Iterator[Any]:
    """The same value in other types, where nothing is lost."""
    if isinstance(value, bool):
        yield "true" if value else "false"
    elif isinstance(value, int | float):
        yield str(value)
    elif isinstance(value, str):
        yield from ({"true": True, "false": False}[value],) if value in ("true", "false") else ()
        for read in (int, float):
            try:
                number = read(value)
            except ValueError:
                continue
            if str(number) == value:
                yield number
    if isinstance(value, list):
        yield from value if len(value) == 1 else ()
    else:
        yield [value]


def routes(answers: Answers, before: Toolbox, after: Toolbox) -> dict[str, tuple[Route, ...]]:
    """For each new tool, in its order, the routes of its calls; none where nothing carries them."""
    found: dict[str, list[Route]] = {name: [] for name in after.sources}
    by_value = {
        (old, new): value for new, one in answers.merged.items() for value, old in one.tools.items()
    }
    for old, new in pairs_of(answers, before, after):
        when, fixed = None, dict(answers.defaults.get(old, {}))
        if (old, new) in by_value:
            when = (answers.merged[new].by, by_value[old, new])
        if old in answers.split:
            fixed[answers.split[old].by] = answers.split[old].tools[new]
        found[new].append(_route(answers, before.sources[old], after.sources[new], when, fixed))
    return {new: tuple(each) for new, each in found.items()}


def _route(
    answers: Answers,
    before: Source,
    after: Source,
    when: tuple[str, Any] | None,
    fixed: Mapping[str, Any],
) -> Route:
    old = before.tool.name
    renamed = answers.params.get(old, {})
    news = {param.name for param in after.tool.params}
    free = [param for param in before.tool.params if param.name not in fixed]
    params = {p.name: renamed.get(p.name, p.name) for p in free}
    params = {a: b for a, b in params.items() if b in news and b != UNDECIDED}
    missing = tuple(p.name for p in free if p.required and p.name not in params)
    fields = {a: b for a, b in answers.fields.get(old, {}).items() if b and b != UNDECIDED}
    mine, theirs = ([".".join(f.path) for f in s.tool.returns] for s in (before, after))
    dropped = tuple(path for path in mine if theirs and path not in theirs and path not in fields)
    values = answers.values.get(old, {})
    return Route(old, when, params, values, fixed, fields, dropped, missing)

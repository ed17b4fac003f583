"""How a call of a new tool is carried by an old one, and what cannot be carried."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from toolshift.core.canonical import same
from toolshift.core.tool import Param
from toolshift.interop.schema import fitted, usual
from toolshift.interop.tools import Source, Toolbox
from toolshift.shifts.release.mapping import UNDECIDED, Answers
from toolshift.shifts.release.merge import reads
from toolshift.shifts.release.nested import Restated, Unsayable, is_left_out, says_nothing
from toolshift.shifts.release.paging import Style, list_in, paged_by, same_pages
from toolshift.shifts.release.resolve import pairs_of
from toolshift.shifts.release.results import ResultForm, form_of, places_of

JSONSchema = Mapping[str, Any]


NOTHING = ResultForm(None, None)
"""The form of results of which nothing is known to change."""


@dataclass(frozen=True, eq=False)
class Pages:
    """How the lists of a tool come in pages, where that has changed.

    Attributes:
        before: how the old tool pages, where all pages are to be fetched.
        after: how the new one does, where the list is to be cut.
        size: how many records a page has, as the mapping says; None where it says nothing.
    """

    before: Style | None
    after: Style | None
    size: int | None = None

    @property
    def filled(self) -> frozenset[str]:
        """The places of results that say something of the pages."""
        return frozenset(self.after.told if self.after else ())

    @property
    def is_known(self) -> bool:
        """Whether it is known how many records a page has."""
        return self.after is None or (self.size or self.after.size) is not None


def pages_of(
    before: Source, after: Source, params: Mapping[str, str], answers: Answers
) -> Pages | None:
    """How the pages of a tool change; None where they do not."""
    old, new = paged_by(before), paged_by(after)
    if same_pages(old, new, params) or list_in(places_of(after.outputs)) is None:
        return None
    if old is None and before.outputs is not None and list_in(places_of(before.outputs)) is None:
        return None
    size = answers.pages.get(after.tool.name, {}).get("size")
    return Pages(old, new, size if isinstance(size, int) else None)


@dataclass(frozen=True)
class Route:
    """How calls of a new tool become calls of an old one.

    Attributes:
        old: the tool that carries them.
        when: the parameter of the new tool and its value for which this route is taken.
        unsaid: whether it is taken as well where that parameter is left out.
        inside: the parameter of the new tool in which the arguments of the old one stand.
        params: old parameter names to new ones, of those that both have.
        values: for an old parameter, or what is inside of it, the old words to the new ones.
        restated: for an old parameter, how its values are said; for those that may be said
            otherwise.
        units: for an old parameter, how what is said now is another unit or format of it.
        usual: what the old tool is told for a parameter that a call leaves out: what the new tool
            takes then, as far as the old one does not take it by itself; see `_left_out`.
        fixed: what old parameters get that the new tool does not take.
        form: how its results become those of the new tool.
        pages: how its lists are cut into pages, or put together from some; None for neither.
        missing: old parameters that are required, and that nobody can say any more.
        reads: whether the old tool says that it reads.
        added: options of the new tool that the old one does not know, with their schemas.
    """

    old: str
    when: tuple[str, Any] | None = None
    unsaid: bool = False
    inside: str = ""
    params: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    restated: Mapping[str, Restated] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    usual: Mapping[str, Any] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    form: ResultForm = NOTHING
    pages: Pages | None = None
    missing: tuple[str, ...] = ()
    reads: bool = False
    added: Mapping[str, JSONSchema] = field(default_factory=dict)

    def inward(self, arguments: Mapping[str, Any], before: Source) -> dict[str, Any]:
        """The arguments of the old tool; surplus ones are left out."""
        if self.missing:
            raise Unsayable(f"the tool behind it needs {', '.join(self.missing)}")
        if self.inside:
            arguments = _unpacked(self.inside, arguments.get(self.inside, {}))
        if not self.reads:  # to leave something out may do more harm than to refuse it
            for name, schema in self.added.items():
                if not says_nothing(arguments.get(name), schema):
                    raise Unsayable(f"the tool behind it does not know {name}")
        said = {**self.usual, **self.fixed}
        for old in self._stated(arguments, before):
            schema = next(p.schema for p in before.tool.params if p.name == old)
            said[old] = self.told(old, arguments[self.params[old]], schema)
        return said

    def _stated(self, arguments: Mapping[str, Any], before: Source) -> list[str]:
        """The old parameters that a call of the new tool says."""
        known = {param.name: param for param in before.tool.params}
        return [
            old
            for old, new in self.params.items()
            if new in arguments
            and not is_left_out(arguments[new], known[old].schema, known[old].required)
        ]

    def reading(self) -> Route:
        """The same for an old tool that is known to read."""
        told = {name: replace(how, reads=True) for name, how in self.restated.items()}
        return replace(self, reads=True, restated=told)

    def by_default(self, arguments: Mapping[str, Any], before: Source) -> frozenset[str]:
        """The options that the old tool is told though a call of the new one leaves them out."""
        if self.inside:
            arguments = {}
        optional = {param.name for param in before.tool.params if not param.required}
        return frozenset((self.usual.keys() & optional) - {*self._stated(arguments, before)})

    def told(self, old: str, value: Any, schema: JSONSchema) -> Any:
        """A value of a new parameter as the old one takes it."""
        new = self.params[old]
        own = self.restated[old].inward(value) if old in self.restated else value
        fitting = list(fitted(own, schema))
        if not fitting:
            raise Unsayable(f"{new}: the tool behind it cannot take {value!r}"[:300])
        return fitting[0]

    def takes(self, old: str, value: Any, schema: JSONSchema) -> bool:
        """Whether a value of a new parameter can be said to the old one."""
        try:
            self.told(old, value, schema)
        except Unsayable:
            return False
        return True


def _unpacked(name: str, value: Any) -> dict[str, Any]:
    """The arguments that a dispatcher is handed, as an object or as JSON."""
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value or "{}")
        except (msgspec.DecodeError, RecursionError):
            value = None
    if not isinstance(value, dict):
        raise Unsayable(f"{name} is not an object of arguments")
    return value


def routes(answers: Answers, before: Toolbox, after: Toolbox) -> dict[str, tuple[Route, ...]]:
    """For each new tool, in its order, the routes of its calls; none where nothing carries them."""
    found: dict[str, list[Route]] = {name: [] for name in after.sources}
    for old, new in pairs_of(answers, before, after):
        names = {param.name for param in before.sources[old].tool.params}
        table = answers.defaults.get(old, {})
        said = {param.name for param in after.sources[new].tool.params}
        moved = answers.params.get(old, {})
        fixed = {
            name: value
            for name, value in table.items()
            if name in names and moved.get(name, name) not in said
        }
        if old in answers.split:
            fixed[answers.split[old].by] = answers.split[old].tools[new]
        merged = answers.merged.get(new)
        inside = merged.arguments if merged else ""
        route = _route(answers, before.sources[old], after.sources[new], fixed, inside)
        if merged is None or old not in merged.tools.values():
            found[new].append(route)
            continue
        by = next((p.schema for p in after.sources[new].tool.params if p.name == merged.by), {})
        for value, tool in merged.tools.items():
            if tool == old:
                unsaid = value == usual(by)
                added = {name: one for name, one in route.added.items() if name != merged.by}
                one = replace(route, when=(merged.by, value), unsaid=unsaid, added=added)
                found[new].append(one)
    return {new: tuple(each) for new, each in found.items()}


def _route(
    answers: Answers, before: Source, after: Source, fixed: Mapping[str, Any], inside: str
) -> Route:
    old = before.tool.name
    renamed = answers.params.get(old, {})
    news = {param.name: param for param in after.tool.params}
    free = [param for param in before.tool.params if param.name not in fixed]
    params = {p.name: renamed.get(p.name, p.name) for p in free}
    # One old tool that has several new ones has one table for all of them.
    params = {a: a if b and b not in news and a in news else b for a, b in params.items()}
    params = {a: b for a, b in params.items() if (b in news or inside) and b != UNDECIDED and b}
    missing = tuple(p.name for p in free if p.required and p.name not in params)
    pages = None if inside else pages_of(before, after, params, answers)
    words = {
        path: {a: b for a, b in table.items() if b != UNDECIDED}
        for path, table in answers.values.get(old, {}).items()
    }
    units = {
        path: how
        for path, how in answers.param_units.get(old, {}).items()
        if how not in ("", UNDECIDED)
    }
    changed = not inside and (bool(words or units) or not same(before.inputs, after.inputs))
    restated = {
        mine: Restated(
            before,
            after,
            mine,
            theirs,
            renamed,
            words,
            answers.defaults.get(old, {}),
            answers.given.get(after.tool.name, {}),
            reads(before),
            units,
        )
        for mine, theirs in (params.items() if changed else ())
    }
    wanted = _wanted_at_times(after.inputs) | answers.given.get(after.tool.name, {}).keys()
    known_to_read = reads(before)
    heard = {*params.values(), inside}
    if pages is not None and pages.after is not None:
        heard |= {pages.after.param.name, pages.after.size_param}
    return Route(
        old,
        inside=inside,
        params=params,
        values=words,
        restated=restated,
        units=units,
        usual=_left_out(free, news, params, answers.defaults.get(old, {}), restated, known_to_read),
        reads=known_to_read,
        added={
            p.name: p.schema for p in news.values() if p.name not in heard | wanted and not inside
        },
        fixed=fixed,
        form=form_of(answers, before, after, pages.filled if pages else frozenset()),
        pages=pages,
        missing=missing,
    )


def _wanted_at_times(schema: Any) -> frozenset[str]:
    """The arguments that a schema requires, always or together with others."""
    if isinstance(schema, list):
        return frozenset().union(*map(_wanted_at_times, schema))
    if not isinstance(schema, Mapping):
        return frozenset()
    dependent = schema.get("dependentRequired")
    listed = [
        schema.get("required"),
        *(dependent.values() if isinstance(dependent, Mapping) else ()),
    ]
    own = {name for one in listed if isinstance(one, list) for name in one if isinstance(name, str)}
    inner = (value for key, value in schema.items() if key in _CONDITIONS)
    parts = ([*one.values(), one] if isinstance(one, Mapping) else one for one in inner)
    return frozenset(own).union(*map(_wanted_at_times, parts))


_CONDITIONS = (
    "allOf",
    "anyOf",
    "oneOf",
    "then",
    "else",
    "dependentSchemas",
    "$defs",
    "definitions",
)
"""Keywords under which arguments as a whole may be told to hold more."""


def _left_out(
    olds: Iterable[Param],
    news: Mapping[str, Param],
    to: Mapping[str, str],
    given: Mapping[str, Any],
    restated: Mapping[str, Restated],
    known_to_read: bool,
) -> dict[str, Any]:
    """What the old tool is told where a call leaves a parameter out.

    That is what the mapping says, else the default of the new tool: where the old tool requires
    the parameter, or has another default. What a tool that may write takes by itself, where it
    names no default, is left to it. A default that the old tool cannot take is not told.
    """
    told = {}
    for param in olds:
        now = news.get(to.get(param.name, ""))
        if now is None or now.required:
            continue
        value = given.get(param.name, now.schema.get("default"))
        was = param.schema.get("default")
        own = was is None and not known_to_read and param.name not in given
        if value is None or (not param.required and (own or same(value, was))):
            continue
        try:
            value = restated[param.name].inward(value) if param.name in restated else value
        except Unsayable:
            continue
        fitting = next(fitted(value, param.schema), None)
        if fitting is not None:
            told[param.name] = fitting
    return told

"""What a task says for parameters that are required now, and what it leaves out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from toolshift.core.ask import Ask, is_said
from toolshift.core.names import letters
from toolshift.core.step import Step
from toolshift.core.values import as_text
from toolshift.interop.opened import opened_call
from toolshift.interop.schema import usual
from toolshift.interop.tools import Toolbox
from toolshift.shifts.release.mapped_tools import Route
from toolshift.shifts.release.mapping import Answers

Named = tuple[str, str]
"""A new tool, and a parameter of it."""
_NAMED_VALUE = (
    r"\b{name}\b(?:\s*[:=]\s*[\"']?(\w[^.;,\n\"')\]]*)"
    r"|\s+(?:is\s+)?(?:[\"']([^\"'\n]+)[\"']|((?=[\w-]*\d)[\w-]+|[A-Z]{{2,}}\b)))"
)
"""A value behind the name of a parameter: `reason: broken`, `connection c-9`, `currency EUR`."""


class Mapped(Protocol):
    """Two tool lists, and how calls of the new ones are carried."""

    @property
    def answers(self) -> Answers:
        """The mapping."""
        ...

    @property
    def before(self) -> Toolbox:
        """The old tools."""
        ...

    @property
    def after(self) -> Toolbox:
        """The new tools."""
        ...

    @property
    def routes(self) -> dict[str, tuple[Route, ...]]:
        """For each new tool, what carries its calls."""
        ...


class Task(Protocol):
    """What users say, and what is called for it: of a scene, or of a recorded conversation."""

    @property
    def asks(self) -> tuple[Ask, ...]:
        """The user's turns."""
        ...

    @property
    def calls(self) -> tuple[Step, ...]:
        """The calls, each with the true ones behind it."""
        ...


@dataclass(frozen=True)
class LeftOut:
    """A parameter that is required now, and that a call of a task leaves out.

    Attributes:
        tool: the new tool.
        param: of it.
        old: the tool that the task calls.
        was: the parameter of the old tool that it stands for, an optional one; "" for none.
        default: what the old tool declares to take where it is left out; None for nothing.
    """

    tool: str
    param: str
    old: str
    was: str
    default: Any = None

    def __str__(self) -> str:
        if not self.was:
            return f"nothing says {self.param}, which {self.tool} requires now"
        took = "" if self.default is None else f" (it took {as_text(self.default)} for it)"
        return (
            f"{self.tool} requires {self.param} now, and the task's call of {self.old} leaves "
            f"{self.was} out{took}"
        )


def left_out(release: Mapped, task: Task) -> list[LeftOut]:
    """The parameters that are required now and that the calls of a task leave out."""
    pairs: dict[LeftOut, None] = {}
    for new, route, stated in _carried(release, task):
        back = {now: was for was, now in route.params.items()}
        old = {param.name: param for param in release.before.sources[route.old].tool.params}
        carried = {route.inside, route.when[0] if route.when else ""}
        carried |= {now for now, was in back.items() if was in stated or old[was].required}
        for param in release.after.sources[new].tool.params:
            if param.required and param.name not in carried:
                was = back.get(param.name, "")
                default = usual(old[was].schema) if was else None
                pairs[LeftOut(new, param.name, route.old, was, _hashable(default))] = None
    return list(pairs)


def open_ones(release: Mapped, task: Task) -> list[LeftOut]:
    """Those that neither the new schema nor the mapping says."""
    known = {(new, name) for new, table in release.answers.given.items() for name in table}
    return [
        one
        for one in left_out(release, task)
        if (one.tool, one.param) not in known and _usual(release, one.tool, one.param) is None
    ]


def neutral_ones(release: Mapped, task: Task) -> frozenset[Named]:
    """The parameters whose usual value says the same as leaving out what they stand for."""
    passed = {
        (new, route.params[name])
        for new, route, stated in _carried(release, task)
        for name in stated
        if name in route.params
    }
    options = {(one.tool, one.param) for one in left_out(release, task) if one.was}
    return frozenset(options - passed)


def is_neutral(release: Mapped, tool: str, param: str, value: Any) -> bool:
    """Whether a value is the one that the mapping or the new schema names for a parameter."""
    named = (release.answers.given.get(tool, {}).get(param), _usual(release, tool, param))
    text = as_text(value).strip().casefold()
    return any(as_text(one).strip().casefold() == text for one in named if one is not None)


def own_values(release: Mapped, task: Task) -> dict[Named, str]:
    """The values that the user's own words state for parameters in the mapping's `given`."""
    values = {}
    for new, table in release.answers.given.items():
        for param in table:
            name = r"[\s_-]+".join(map(re.escape, _words(param)))
            pattern = re.compile(_NAMED_VALUE.format(name=f"(?i:{name})"))
            match = next((m for ask in task.asks if (m := pattern.search(ask.text))), None)
            if match:
                value = next(filter(None, match.groups()))
                values[new, param] = value.strip()
    return values


def to_state(release: Mapped, task: Task) -> list[str]:
    """What the user is made to state, for the mapping says it and the task does not."""
    calls = list(_carried(release, task))
    used, own = {new for new, _, _ in calls}, own_values(release, task)
    slots = {letters(slot) for ask in task.asks for slot in ask.goal}
    sentences = []
    for new, table in release.answers.given.items():
        for param, value in table.items() if new in used else ():
            passed = any(
                route.params.get(name) == param
                for tool, route, arguments in calls
                for name in arguments
                if tool == new
            )
            stated = any(is_said(as_text(value), ask.text) for ask in task.asks)
            if not (passed or stated or letters(param) in slots or (new, param) in own):
                shown = release.after.sources[new].as_it_came.tool
                own_names = {p.name for p in shown.params}
                name = param if param in own_names else _last_of(param)
                sentences.append(f"Use {as_text(value)} as {name}.")
    return list(dict.fromkeys(sentences))


def _last_of(path: str) -> str:
    """The name of a member inside of a parameter."""
    return path.rpartition(".")[2].removesuffix("[]") or path


def _carried(release: Mapped, task: Task) -> Iterator[tuple[str, Route, dict[str, Any]]]:
    """For each call of a task, the new tools that carry it, how, and its arguments."""
    for step in task.calls:
        for old, given in step.true:
            source = release.before.sources.get(old)
            arguments = opened_call(given, source.opened) if source is not None else given
            for new, routes in release.routes.items():
                for route in routes:
                    fits = all(arguments.get(k, v) == v for k, v in route.fixed.items())
                    if route.old == old and fits:
                        yield new, route, arguments


def _usual(release: Mapped, tool: str, param: str) -> Any:
    params = release.after.sources[tool].tool.params
    return next((usual(one.schema) for one in params if one.name == param), None)


def _hashable(value: Any) -> Any:
    return value if value is None else as_text(value)


def _words(name: str) -> list[str]:
    return re.findall(r"[A-Z]?[a-z]+|\d+|[A-Z]+|[^\W\d_a-zA-Z]+", name) or [name]

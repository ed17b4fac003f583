"""The surface: a one-to-one change of what is shown, as data, and so one that can be undone.

A `Surface` says how tools are called above it. Calls go inward by its tables read backwards;
what comes back goes outward, and mentions of tools in descriptions, errors, notices and hints
are rewritten with them, so that nothing shown speaks of a name that does not work.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, lru_cache
from typing import Any

from toolshift.core import seed as seeds
from toolshift.core.codecs import each_text
from toolshift.core.layer import Below, Layer, Memory
from toolshift.core.text import QUOTES
from toolshift.core.tool import Hint, Param, Result, Tool, error
from toolshift.core.values import as_json, is_number
from toolshift.interop.mcp_results import UPSTREAM
from toolshift.interop.schema import each_description, words_of

Names = Mapping[str, str]
Say = Callable[[str], str]
NO_NAMES: Names = {}


@dataclass(frozen=True, eq=False)
class Surface(Layer):
    """How the tools below are shown. Every table is keyed by the names below; all are optional.

    Tools that no table knows, such as those that a layer below brings later, pass unchanged.

    Attributes:
        names: the name that a tool is shown under.
        params: for a tool, the names that its parameters are shown under.
        descriptions: the text shown in place of a tool's description.
        was: the description that `descriptions` replaces; one that has changed since, as by a
            deprecation in mid-episode, passes as it is.
        param_descriptions: for a tool, texts in place of the descriptions of its parameters.
        surplus: for a tool, further optional parameters; a call goes inward without them.
        channels: for a tool, the most that still tells what it does (see `Tool.channels`).
        extra: distractors: tools of this layer's own, under the names they are shown with.
        answers: what a distractor's answer looks like; its codes, ids and numbers are made anew
            for every arguments.
        order: the names as shown, in the order in which they are; others follow.
        seed: of the distractors' answers.
    """

    names: Names = field(default_factory=dict)
    params: Mapping[str, Names] = field(default_factory=dict)
    descriptions: Names = field(default_factory=dict)
    was: Names = field(default_factory=dict)
    param_descriptions: Mapping[str, Names] = field(default_factory=dict)
    surplus: Mapping[str, tuple[Param, ...]] = field(default_factory=dict)
    channels: Mapping[str, frozenset[str]] = field(default_factory=dict)
    extra: tuple[Tool, ...] = ()
    answers: Mapping[str, Result] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        for table in fields(self):
            value = getattr(self, table.name)
            if table.default_factory is dict and not isinstance(value, Mapping):
                raise TypeError(
                    f"{table.name} of a Surface is a dict by the names below, not {value!r:.80}"
                )

    # -- the layer -----------------------------------------------------------------------------

    def tools(self, tools: tuple[Tool, ...], memory: Memory) -> tuple[Tool, ...]:
        return _shown(self, tools)

    def call(self, name: str, arguments: dict[str, Any], memory: Memory, below: Below) -> Result:
        if name in self.answers:
            answer = self.answers[name]
            parts = (self.seed, name, as_json(arguments))
            return answer.with_(data=decoy(answer.data, *parts))
        if name in self.names and name not in self._below:
            return error("unknown_tool", f"There is no tool named {name}.")
        tool, said = self.inward(name, arguments)
        hidden = self._hidden.get(tool)
        if hidden and (hidden := hidden & arguments.keys()):
            return error("invalid_arguments", f"{name}: unexpected {', '.join(sorted(hidden))}")
        return self.outward(below(tool, said), tool)

    def changes_results(self, tool: Tool) -> bool:
        return tool.name in self.answers  # a distractor has no tool below

    # -- in both directions, for recordings too ------------------------------------------------

    def inward(self, name: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """The call below that a spoken call stands for.

        Args:
            name: of the tool, as it is shown.
            arguments: as they were spoken.

        Returns:
            The name and the arguments in the terms of the layer below.
        """
        tool = self._below.get(name, name)
        if tool not in self.params and tool not in self.surplus:
            return tool, dict(arguments)
        names = {spoken: true for true, spoken in self.params.get(tool, NO_NAMES).items()}
        dropped = {param.name for param in self.surplus.get(tool, ())}
        return tool, {names.get(k, k): v for k, v in arguments.items() if k not in dropped}

    def spoken(self, name: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """How a call below is spoken through this surface.

        Args:
            name: of the tool below.
            arguments: in the terms of the layer below.

        Returns:
            The name and the arguments as they are shown.
        """
        names = self.params.get(name)
        said = {names.get(k, k): v for k, v in arguments.items()} if names else dict(arguments)
        return self.names.get(name, name), said

    def speak(self, text: str) -> str:
        """Says a text below in the names as shown; plain words are left alone unless quoted.

        Args:
            text: such as a description.

        Returns:
            The text with the names of tools as they are shown.
        """
        return self._renamed(text, plain=False)

    def mention(self, text: str) -> str:
        """Says a text of a result below in the names as shown, plain words too.

        Args:
            text: such as an error.

        Returns:
            The text with the names of tools as they are shown.
        """
        return self._renamed(text, plain=True)

    @property
    def inverse(self) -> Surface:
        """The surface that undoes this one: over it, everything is called as below."""
        names, params = self.names, self.params
        return Surface(
            names=self._below,
            params={
                names.get(tool, tool): {spoken: true for true, spoken in table.items()}
                for tool, table in params.items()
            },
            descriptions={
                names.get(tool, tool): self.say_params(self.speak(text), tool)
                for tool, text in self.was.items()
            },
        )

    def outward(self, result: Result, tool: str) -> Result:
        """How the result of a tool below sounds: its mentions of tools and parameters.

        Args:
            result: of the tool below.
            tool: its name there.

        Returns:
            The result with errors, notices and hints in the names as they are shown.
        """
        if not (self.names or self.params) or (result.ok and not result.notice and not result.hint):
            return result

        foreign = not result.ok and _is_foreign(result.data)

        def say(text: str) -> str:
            return _said(self, text, tool, foreign) if text else text

        hint = result.hint
        told = not result.ok or (hint is not None and hint.kind == "use")
        if hint is not None:
            _, arguments = self.spoken(hint.tool or tool, hint.arguments)
            shown = self.names.get(hint.tool, hint.tool)
            hint = Hint(hint.kind, shown, arguments, hint.old, hint.new)
        data = each_text(result.data, say) if told else result.data
        return result.with_(data=data, notice=say(result.notice), hint=hint)

    # -- inside --------------------------------------------------------------------------------

    def show(self, tool: Tool) -> Tool:
        """One tool below as it is shown.

        Args:
            tool: as the layer below shows it.

        Returns:
            The tool with the names and texts of the tables.
        """
        name, params = tool.name, self.params.get(tool.name, NO_NAMES)
        texts = self.param_descriptions.get(name, NO_NAMES)
        replaced = name in self.descriptions and (
            self.was.get(name, tool.description) == tool.description
        )
        description = self.descriptions[name] if replaced else tool.description
        shown = tuple(
            _param(
                param,
                params.get(param.name, param.name),
                texts.get(param.name),
                self._says_of(tool, param),
            )
            for param in tool.params
        )
        return tool.with_(
            name=self.names.get(name, name),
            description=self.say_params(self.speak(description), name),
            params=(*shown, *self.surplus.get(name, ())),
            channels=tool.channels & self.channels.get(name, tool.channels),
        )

    def say_params(self, text: str, tool: str) -> str:
        """Renames parameters where they are quoted or given a value; else they are plain words.

        Args:
            text: that speaks of a tool.
            tool: its name below.

        Returns:
            The text with the names of the tool's parameters as they are shown.
        """
        names = self.params.get(tool, NO_NAMES)
        if not any(name in text for name in names):
            return text
        return _quoted(tuple(names)).sub(lambda match: names[match[0]], text)

    def _says_of(self, tool: Tool, param: Param) -> Say:
        """How the texts of a parameter are said: with the new names of tools and its neighbours.

        A text may speak of what results hold under the parameter's own name, which stays; and one
        that says which value to pass is of a layer below.
        """
        names = self.params.get(tool.name, NO_NAMES)
        if not names or param.given is not None:
            return self.speak

        def say(text: str) -> str:
            said = self.speak(text)
            if not any(name in said for name in names):
                return said
            closed = {param.name, *words_of([one.schema for one in tool.params])}
            others = {name: new for name, new in names.items() if name not in closed}
            return _spoken_of(tuple(others)).sub(lambda m: others[m[0]], said) if others else said

        return say

    def _renamed(self, text: str, plain: bool) -> str:
        # Most texts name no tool, and a pattern takes longer to compile than all else of a scene.
        if not any(name in text for name in self.names):
            return text
        pattern = self._anywhere if plain else self._in_prose
        return pattern.sub(lambda match: self.names[match[0]], text)

    @cached_property
    def _below(self) -> dict[str, str]:
        return {spoken: tool for tool, spoken in self.names.items()}

    @cached_property
    def _hidden(self) -> dict[str, frozenset[str]]:
        return {t: frozenset(names) - set(names.values()) for t, names in self.params.items()}

    @cached_property
    def _anywhere(self) -> re.Pattern[str]:
        return mentions(self.names, plain=True)

    @cached_property
    def _in_prose(self) -> re.Pattern[str]:
        return mentions(self.names, plain=False)


@lru_cache(maxsize=1024)
def _shown(surface: Surface, tools: tuple[Tool, ...]) -> tuple[Tool, ...]:
    """Kept over episodes, for the schemas of a tool are compiled once a tool."""
    shown = (*map(surface.show, tools), *surface.extra)
    if not surface.order:
        return shown
    places = {name: place for place, name in enumerate(surface.order)}
    return tuple(sorted(shown, key=lambda tool: places.get(tool.name, len(places))))


@lru_cache(maxsize=1024)
def _said(surface: Surface, text: str, tool: str, foreign: bool) -> str:
    """A text of a result as it is shown; kept over episodes, for errors say the same again."""
    said, names = surface.mention(text), surface.params.get(tool, NO_NAMES)
    if not foreign or not any(name in said for name in names):
        return surface.say_params(said, tool)
    return _complained_of(tuple(names)).sub(lambda match: names[match[0]], said)


def _is_foreign(failure: Any) -> bool:
    """Whether a failure is in the words of somebody else's tool, which quotes no names."""
    told = failure.get("error") if isinstance(failure, Mapping) else None
    code = told.get("code") if isinstance(told, Mapping) else None
    return not isinstance(code, str) or code == UPSTREAM


@lru_cache(maxsize=1024)
def _complained_of(names: tuple[str, ...]) -> re.Pattern[str]:
    """Finds names of parameters in the errors of validators, where `_quoted` does, and more.

    A plain word is a name too where it has a line to itself, or begins the place inside of a
    value, as in those of pydantic: `items.0.title`.
    """
    found = [_quoted(names).pattern, mentions(dict.fromkeys(names, ""), plain=False).pattern]
    words = [re.escape(name) for name in names if is_word(name)]
    found += [rf"^(?:{'|'.join(words)})(?=\.\w|$)"] if words else []
    return re.compile("|".join(found), re.MULTILINE)


def _param(param: Param, name: str, text: str | None, say: Say) -> Param:
    schema = each_description(param.schema, say)
    if text is not None and text != param.schema.get("description", ""):
        schema = {**schema, "description": text}
    if name == param.name:
        return param if schema is param.schema else replace(param, schema=schema)
    # Libraries make titles from names. A renamed parameter has a description, be it an empty one.
    kept = {key: value for key, value in schema.items() if key != "title"}
    return replace(param, name=name, schema={**kept, "description": kept.get("description", "")})


@lru_cache(maxsize=1024)
def _quoted(names: tuple[str, ...]) -> re.Pattern[str]:
    """Finds names of parameters where they are quoted or given a value."""
    any_ = "|".join(map(re.escape, names))
    given = [rf"(?<![{signs}])(?:{some})(?==)" for signs, some in by_script(names)]
    return re.compile("|".join([rf"(?<=[`'\"])(?:{any_})(?=[`'\"])", *given]))


@lru_cache(maxsize=1024)
def _spoken_of(names: tuple[str, ...]) -> re.Pattern[str]:
    """Finds names of parameters as `mentions` does, and plain words that are given a value."""
    found = [mentions(dict.fromkeys(names, ""), plain=False).pattern]
    words = [name for name in names if is_word(name)]
    found += [rf"(?<![.{signs}-])(?:{some})(?==)" for signs, some in by_script(words)]
    return re.compile("|".join(found))


def is_word(name: str) -> bool:
    """Whether a name is a word that a text may well use and not mean it."""
    return name.isalpha() and name.islower()


def by_script(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Signs that make another word of a name beside them, and a pattern of the names it is so for.

    Chinese or Japanese text stands right beside a name in Latin letters, and is no part of it.
    """
    latin: list[str] = []
    others: list[str] = []
    for name in names:
        (latin if name.isascii() else others).append(re.escape(name))
    for signs, some in ((r"A-Za-z0-9_\u00c0-\u024f\u1e00-\u1eff", latin), (r"\w", others)):
        if some:
            yield signs, "|".join(some)


def mentions(names: Names, plain: bool) -> re.Pattern[str]:
    """Finds names as whole words; plain words, unless `plain`, in quotes or before a bracket."""
    known = sorted(names, key=len, reverse=True)
    words = [n for n in known if not plain and is_word(n)]
    either = [rf"(?<=[{QUOTES}])(?:{'|'.join(words)})(?=[{QUOTES}])"] if words else []
    either += [rf"(?<![{signs}-])(?:{some})(?=\()" for signs, some in by_script(words)]
    for signs, some in by_script(name for name in known if name not in words):
        either.append(rf"(?<![{signs}-])(?:{some})(?![{signs}-])")
    return re.compile("|".join(either))


# -- the answers of distractors ----------------------------------------------------------------

_CODE = re.compile(r"[A-Z0-9]{4}-[A-Z0-9]{4}")
_CLOCK = re.compile(r"\d\d:\d\d|\d{4}-\d\d-\d\d")


def decoy(data: object, *parts: object) -> Any:
    """A plausible answer of the same make: other codes, ids and numbers, derived from the parts.

    Times, dates and words stay, so that a decoy does not betray itself by nonsense.
    """
    if isinstance(data, dict):
        return {key: decoy(value, *parts, key) for key, value in data.items()}
    if isinstance(data, list):
        return [decoy(value, *parts, place) for place, value in enumerate(data)]
    rng = seeds.rng("decoy", *parts)
    if isinstance(data, str):
        if _CODE.fullmatch(data):
            return seeds.code("decoy", *parts)
        if _CLOCK.search(data):
            return data
        return re.sub(r"\d", lambda _: str(rng.randrange(1, 10)), data)
    if is_number(data):
        other = data * rng.uniform(0.6, 1.4)
        return round(other) if isinstance(data, int) else round(other, 1)
    return data

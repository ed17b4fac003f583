"""The changes in the tools since the lock, as an agent is told them before it calls any.

    for fact in facts(lock, tools):
        print(fact.tool, fact.sentence)
    text_of(facts(lock, tools))        # "" where nothing has changed

What two lists show is said as a fact: a tool is gone or new, a parameter is gone, new, required, or
of another type or other choices; and that one *is* the other now where the two names are the same
words (`same_words`), what they say of themselves is the same, and no promise is taken back. Which
one may have become which otherwise is told by `drift`, and said as a guess: "`add` may be `get-sum`
now". There is no guess between texts with fewer than three words in common, none from a tool that
was declared to only read to one that is not, and none for a number or a boolean under a new name,
whose unit or sense may be another.

Texts of a server are not quoted, for what is said here stands in a system message: names and
choices are, where they are single words and do not instruct the model.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolshift.adapt.moves import promises_kept, renamed, respelled
from toolshift.adapt.same_words import spoken
from toolshift.adapt.words import in_common, words_of
from toolshift.core.canonical import same
from toolshift.core.errors import UsageError
from toolshift.core.tool import Param
from toolshift.drift.changes import ToolChange, changes_between
from toolshift.drift.lock import Lock
from toolshift.drift.poisoning import instructions_in
from toolshift.drift.schemas import SEVERITIES, Difference
from toolshift.interop.tools import Source, Toolbox, from_mcp
from toolshift.shifts.release.mapping import Answers

TITLE = "The tools have changed since they were recorded:"
GUESS = "(a guess: it may do something else, so compare the descriptions first)"
MAX_FACTS = 40
"""The most facts in a note; the rest are only counted."""
_LONGEST = 64
_MAX_CHOICES = 8
_IN_NAMES = frozenset("_-./:$#@+[]")


@dataclass(frozen=True)
class Fact:
    """One thing that has changed.

    Attributes:
        tool: the tool of today that it is about; "" where a tool is gone.
        sentence: what has changed; "" where a name in it must not be quoted.
        old: the tool of the lock that it is about; "" where a tool is new.
        argument: the parameter of today that an agent passes which follows it; "" for none.
        guessed: whether it may be wrong.
        whole: whether it speaks of the tool as a whole, by its name.
    """

    tool: str
    sentence: str
    old: str = ""
    argument: str = ""
    guessed: bool = False
    whole: bool = False

    @property
    def everywhere(self) -> str:
        """The sentence with the name of the tool, as it is said outside of its description."""
        name = quoted(self.tool)
        if self.whole or not self.sentence:
            return self.sentence
        return f"{name}: {self.sentence}" if name else ""


def facts(lock: Lock, tools: Sequence[Mapping[str, Any]]) -> tuple[Fact, ...]:
    """The changes in the tools, as facts and guesses."""
    try:
        now = list(lock.seen(tools) if lock.recorded else tools)
        before, after = from_mcp(lock.documents), from_mcp(now)
    except UsageError:  # a list with two tools of one name, of which nothing can be said
        return ()
    return tuple(_facts(lock, now, before, after))


def text_of(changes: Sequence[Fact]) -> str:
    """Facts as one text for an agent."""
    return listed(TITLE, [one.everywhere for one in changes if one.everywhere], changes)


def described(tool: Mapping[str, Any], changes: Iterable[Fact]) -> dict[str, Any]:
    """A tool with what has changed in it at the end of its description."""
    changes = list(changes)
    name = tool.get("name")
    lines = [one.sentence if one.tool == name else one.everywhere for one in changes]
    note = listed(TITLE, [line for line in lines if line], changes)
    if not note:
        return dict(tool)
    description = tool.get("description")
    return {**tool, "description": f"{description}\n\n{note}" if description else note}


def listed(title: str, lines: Sequence[str], changes: Sequence[object]) -> str:
    """The first of some facts below a title, and how many more there are; "" for none."""
    if not changes:
        return ""
    bullets = [f"- {line}" for line in lines[:MAX_FACTS]]
    more = len(changes) - len(bullets)
    if more:
        bullets.append(f"- and {more} more change{'s' if more > 1 else ''}")
    return "\n".join([title, *bullets])


def _facts(
    lock: Lock, now: Sequence[Mapping[str, Any]], before: Toolbox, after: Toolbox
) -> Iterator[Fact]:
    """What is certain settles what became what; `drift` says the rest."""
    pairs = {old: old for old in before.sources if old in after.sources}
    spelled = {old: respelled(old, before, after) for old in before.sources if old not in pairs}
    spelled = {old: new for old, new in spelled.items() if new}
    names = {}
    for old, new in {**pairs, **spelled}.items():
        mine, theirs = _params(before.sources[old]), _params(after.sources[new])
        moved = {
            name: now
            for name, now in renamed(mine, theirs).items()
            if same(mine[name].schema, theirs[now].schema)
        }
        if moved:
            names[old] = moved
    changes = changes_between(lock.documents, now, Answers(renamed=spelled, params=names))
    told = _Told(before, after, spelled, names)
    for change in sorted(changes, key=lambda one: -SEVERITIES.index(one.severity)):
        yield from told.of(change)


def _params(source: Source) -> dict[str, Param]:
    return {param.name: param for param in source.tool.params}


@dataclass(frozen=True)
class _Told:
    """Two lists, and what is certain between them."""

    before: Toolbox
    after: Toolbox
    spelled: Mapping[str, str]
    names: Mapping[str, Mapping[str, str]]

    def of(self, change: ToolChange) -> Iterator[Fact]:
        """A change in words; none where it is one of texts, defaults, limits or results."""
        old, new = change.old, change.new
        if change.kind in ("tool_added", "tool_superseded"):
            yield Fact(new, _about("{} is new", new), whole=True)
        elif change.kind == "tool_removed":
            yield Fact("", _about("{} is gone", old), old, whole=True)
        elif change.kind in _BECAME:
            yield from self._became(change)
        elif change.kind.startswith("annotations_"):
            if not promises_kept(self.before.sources[old], self.after.sources[new]):
                said = "it promised to only read, or not to destroy, and does not any more"
                yield Fact(new, said, old)
        elif change.where and self._is_pair(old, new):
            yield from self._inside(change)

    def _became(self, change: ToolChange) -> Iterator[Fact]:
        """One tool that has become another, or may have."""
        old, new = change.old, change.new
        chosen = str(change.after) if change.where and change.kind != "tool_split" else ""
        if self._is(old, new):
            yield Fact(new, _about("{} is {} now", old, new), old, whole=True)
        elif self._may_be(old, new, chosen):
            names = [old, new, *([change.where, chosen] if chosen else [])]
            sentence = "{} may be {} with {}: {} now" if chosen else "{} may be {} now"
            said = _about(f"{sentence} {GUESS}", *names)
            yield Fact(new, said, old, guessed=True, whole=True)
        else:
            yield Fact("", _about("{} is gone", old), old, whole=True)
            if change.kind == "tool_renamed":
                yield Fact(new, _about("{} is new", new), whole=True)

    def _is_pair(self, old: str, new: str) -> bool:
        return old == new or self._is(old, new) or self._may_be(old, new)

    def _is(self, old: str, new: str) -> bool:
        """Whether one tool is another under a name of the same words."""
        was, now = self.before.sources[old], self.after.sources.get(new)
        if now is None or self.spelled.get(old) != new or not promises_kept(was, now):
            return False
        return was.tool.description == now.tool.description

    def _may_be(self, old: str, new: str, choice: str = "") -> bool:
        """Whether one tool may have become another, as far as a guess may be said."""
        was, now = self.before.sources[old], self.after.sources[new]
        if not promises_kept(was, now):
            return False
        return in_common(_words(was), _words(now) | words_of(choice)) > 0

    def _inside(self, change: ToolChange) -> Iterator[Fact]:
        """What has changed in one parameter."""
        old, new, where = change.old, change.new, change.where
        if change.kind == "parameter_renamed":
            yield from self._renamed(change)
        elif change.perhaps and self._may_be_called(change, change.perhaps):
            said = _about(f"{{}} may be {{}} now {GUESS}", where, change.perhaps)
            yield Fact(new, said, old, change.perhaps, True)
        elif said := in_words(change):
            come = where if change.kind.endswith("_added") else ""
            yield Fact(new, _about(f"{{}} {said}", where), old, come)

    def _may_be_called(self, change: ToolChange, now: str) -> bool:
        """Whether a parameter that is gone may be said by another name, as far as that is said."""
        mine = _params(self.before.sources[change.old])
        theirs = _params(self.after.sources[change.new])
        known = change.where in mine and now in theirs
        return known and _may_be_called(mine[change.where], theirs[now])

    def _renamed(self, change: ToolChange) -> Iterator[Fact]:
        old, new, where, now = change.old, change.new, change.where, str(change.after)
        if self.names.get(old, {}).get(where) == now:
            yield Fact(new, _about("{} is {} now", where, now), old, now)
            return
        mine, theirs = (_params(self.before.sources[old]), _params(self.after.sources[new]))
        if self._may_be_called(change, now):
            yield Fact(new, _about(f"{{}} may be {{}} now {GUESS}", where, now), old, now, True)
            return
        path = where.removesuffix(str(change.before)) + now
        required = now in theirs and theirs[now].required and where in mine
        yield Fact(new, _about("{} is gone", where), old)
        yield Fact(
            new, _about(f"{{}} is new{', and required' if required else ''}", path), old, path
        )


def in_words(change: ToolChange | Difference) -> str:
    """What has changed in a parameter, without its name; "" for texts, defaults and limits."""
    if change.kind in _PLAIN:
        return _PLAIN[change.kind]
    if change.kind in _OF_TYPES:
        before, after = (str(side).split() for side in (change.before, change.after))
        known = _TYPES.issuperset((*before, *after))
        types = f": {' '.join(before)} before, {' '.join(after)} now" if known else ""
        return f"is of another type{types}"
    if change.kind in _OF_CHOICES:
        gone, come = _choices(change.before), _choices(change.after)
        sides = [f"gone: {gone}"] if gone else []
        sides += [f"new: {come}"] if come else []
        return _OF_CHOICES[change.kind] + (f" ({'; '.join(sides)})" if sides else "")
    return ""


def _may_be_called(one: Param, other: Param) -> bool:
    """Whether a text may have got another name; a number may be of another unit by that."""
    mine, theirs = (str(each.schema.get("type")) for each in (one, other))
    return mine == theirs == "string" and in_common(_said(one), _said(other)) > 0


def _said(param: Param) -> frozenset[str]:
    return words_of(f"{param.name} {param.schema.get('description') or ''}")


def _words(source: Source) -> frozenset[str]:
    """The words with which a tool speaks of itself."""
    params = " ".join(param.name for param in source.tool.params)
    return words_of(f"{source.tool.name} {params} {source.tool.description}")


def _about(sentence: str, *names: str) -> str:
    """A sentence about names; "" where one of them must not be quoted."""
    plain = [quoted(name) for name in names]
    return sentence.format(*(f"`{name}`" for name in plain)) if all(plain) else ""


_BECAME = ("tool_renamed", "tool_merged", "tool_split", "tool_dispatched")
_PLAIN: Mapping[str, str] = {
    "parameter_added": "is new, and optional",
    "required_parameter_added": "is new, and required",
    "parameter_removed": "is gone",
    "parameter_required": "is required now",
    "parameter_optional": "is optional now",
}
_OF_TYPES = ("type_changed", "type_narrowed", "type_widened")
_TYPES = frozenset(
    ("string", "number", "integer", "boolean", "object", "array", "null", "any", "or", "of")
)
_OF_CHOICES: Mapping[str, str] = {
    "choice_added": "takes more choices",
    "choice_removed": "takes fewer choices",
    "choice_replaced": "takes other choices",
    "choices_introduced": "takes only certain choices now",
    "choices_lifted": "takes more than certain choices now",
}


def _choices(values: Any) -> str:
    """Choices as a list, where each of them is a word that may be quoted."""
    plain = [quoted(str(value)) for value in values] if isinstance(values, list) else []
    return ", ".join(plain) if all(plain) and len(plain) <= _MAX_CHOICES else ""


def quoted(name: str) -> str:
    """A name that is safe to quote in a system message; "" for any other text."""
    plain = 0 < len(name) <= _LONGEST and all(
        one in _IN_NAMES or unicodedata.category(one)[0] in "LMN" for one in name
    )
    return name if plain and not instructions_in([spoken(name)]) else ""

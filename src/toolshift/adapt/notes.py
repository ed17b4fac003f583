"""The changes in the tools since the lock, as facts in the agent's system message.

    for fact in facts(lock, tools):
        print(fact.tool, fact.sentence)
    text_of(facts(lock, tools))        # "" where nothing has changed

Only what two lists show is said: a tool is gone or new, a parameter is gone, new, required, or of
another type or other choices. That one is the other today is said only where the two names are the
same words (`same_words`). Texts of a server are not quoted, for what is said here stands in a
system message: names and choices are, where they are single words and do not instruct the model.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolshift.adapt.moves import declared_to_read, renamed, respelled
from toolshift.adapt.same_words import spoken
from toolshift.core.canonical import same
from toolshift.core.errors import UsageError
from toolshift.drift.instructions import instructions_in
from toolshift.drift.lock import Lock
from toolshift.drift.schemas import Difference, members
from toolshift.interop.schema import flattened
from toolshift.interop.tools import Source, Toolbox, from_mcp

TITLE = "The tools have changed since they were recorded:"
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
        sentence: what has changed, without the name of that tool.
        named: the tool as it is spoken of; "" where its name is not repeated.
    """

    tool: str
    sentence: str
    named: str


def facts(lock: Lock, tools: Sequence[Mapping[str, Any]]) -> tuple[Fact, ...]:
    """The changes in the tools, as facts."""
    try:
        before, after = (
            from_mcp(lock.documents),
            from_mcp(lock.seen(tools) if lock.recorded else tools),
        )
    except UsageError:
        return ()
    return tuple(_facts(before, after))


def text_of(changes: Sequence[Fact]) -> str:
    """Facts as one text for an agent."""
    return listed(TITLE, [f"{one.named}: {one.sentence}" for one in changes if one.named], changes)


def described(tool: Mapping[str, Any], changes: Iterable[Fact]) -> dict[str, Any]:
    """A tool with what has changed in it at the end of its description."""
    changes = list(changes)
    name = tool.get("name")
    lines = [
        one.sentence if one.tool == name else f"{one.named}: {one.sentence}"
        for one in changes
        if one.tool == name or one.named
    ]
    note = listed(TITLE, lines, changes)
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


def _facts(before: Toolbox, after: Toolbox) -> Iterator[Fact]:
    pairs = {name: name for name in before.sources if name in after.sources}
    for old in before.sources:
        if old not in pairs:
            new = respelled(old, before, after)
            if new:
                pairs[old] = new
            else:
                yield Fact("", "this tool is gone", quoted(old))
    for old, new in pairs.items():
        if old != new and quoted(old):
            yield Fact(new, f"this tool was {old} before", quoted(new))
    for new in after.sources:
        if new not in pairs.values():
            yield Fact(new, "this tool is new", quoted(new))
    for old, new in pairs.items():
        for sentence in _changed(before.sources[old], after.sources[new]):
            yield Fact(new, sentence, quoted(new))


def _changed(was: Source, now: Source) -> Iterator[str]:
    """What has changed in one tool, in words."""
    hints = now.raw.get("annotations")
    if declared_to_read(was) and isinstance(hints, Mapping) and not declared_to_read(now):
        yield "it was declared to only read, and is not any more"
    if same(was.inputs, now.inputs):
        return
    olds, news = ({param.name: param for param in source.tool.params} for source in (was, now))
    yield from changed_in(was, now, renamed(olds, news))


def changed_in(
    was: Source,
    now: Source,
    moved: Mapping[str, str],
    gone: Container[str] = (),
) -> Iterator[str]:
    """What has changed in the parameters of a tool, in words.

    `moved` says which parameter became which; of those in `gone` nothing is said.
    """
    olds = {param.name: param for param in was.tool.params if param.name not in gone}
    news = {param.name: param for param in now.tool.params}
    closed = flattened(now.inputs).get("additionalProperties") is False
    for one in members("", olds, news, moved, closed):
        yield from _said(one, one.where in olds)


def _said(one: Difference, outermost: bool) -> Iterator[str]:
    """A difference in words; none where it is one of texts, defaults or limits."""
    place = _place(one.where)
    if one.kind == "parameter_renamed" and not outermost:  # inside, that is told by likeness
        lead = one.where.removesuffix(str(one.before))
        yield f"{place} is gone"
        yield f"{_place(f'{lead}{one.after}')} is new"
    elif one.kind == "parameter_renamed":
        yield f"{place} is {quoted(str(one.after)) or 'spelled otherwise'} now"
    elif one.kind in _PLAIN:
        yield f"{place} {_PLAIN[one.kind]}"
    elif one.kind in _OF_TYPES:
        before, after = (str(side).split() for side in (one.before, one.after))
        known = _TYPES.issuperset((*before, *after))
        types = f": {' '.join(before)} before, {' '.join(after)} now" if known else ""
        yield f"{place} is of another type{types}"
    elif one.kind in _OF_CHOICES:
        gone, come = _choices(one.before), _choices(one.after)
        listed = [f"gone: {gone}"] if gone else []
        listed += [f"new: {come}"] if come else []
        yield f"{place} {_OF_CHOICES[one.kind]}" + (f" ({'; '.join(listed)})" if listed else "")


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


def _place(where: str) -> str:
    name = quoted(where)
    return f"the parameter {name}" if name else "a parameter"


def _choices(values: Any) -> str:
    """Choices as a list, where each of them is a word that may be quoted."""
    words = [quoted(str(value)) for value in values] if isinstance(values, list) else []
    return ", ".join(words) if all(words) and len(words) <= _MAX_CHOICES else ""


def quoted(name: str) -> str:
    """A name that is safe to quote in a system message; "" for any other text."""
    plain = 0 < len(name) <= _LONGEST and all(
        one in _IN_NAMES or unicodedata.category(one)[0] in "LMN" for one in name
    )
    return name if plain and not instructions_in([spoken(name)]) else ""

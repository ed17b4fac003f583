"""What changed between two tool lists, as typed changes.

    for change in changes_between(old_tools, new_tools):
        print(change.severity, change.sentence)

That a tool is gone, new or changed is a fact; which became which is a reading, with its evidence
and its standing (`judge`). A reading that is only a question is said beside the tool that is gone.
Lists are as an MCP server has them (`name`, `description`, `inputSchema`). The order of the tools
is no change.

severity    what it says of calls that were right before
breaking    some are refused now: a tool is gone or has another name, an argument is refused
maybe       they are taken, and may mean or bring something else
harmless    they are taken, and nothing says that they mean something else

Of how an operation is requested it is said of the requests; see `drift.requests`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from toolshift.core.canonical import same
from toolshift.core.tool import Param
from toolshift.core.values import as_json, as_mapping, as_text
from toolshift.drift.hypotheses import Judged, judged
from toolshift.drift.poisoning import texts_of
from toolshift.drift.rewordings import says_otherwise
from toolshift.drift.schemas import (
    SAID,
    SEVERITIES,
    Difference,
    Moves,
    Seen,
    Severity,
    demands,
    differences,
    members,
    text_differences,
)
from toolshift.interop.normal import Node, normal
from toolshift.interop.parts import Tagged, tagged
from toolshift.interop.schema import choices_of, inner_changes
from toolshift.interop.tools import Source, Toolbox, from_mcp
from toolshift.shifts.release.mapping import Answers
from toolshift.shifts.release.moved import opened_sides
from toolshift.shifts.release.resolve import pairs_of

KINDS: Mapping[str, str] = {
    "tool_added": "a tool that was not there",
    "tool_removed": "a tool is gone, and no successor was found",
    "tool_renamed": "a tool has another name",
    "tool_merged": "a tool is one choice of a new tool",
    "tool_split": "a tool became several, by what one of its parameters said",
    "tool_dispatched": "a tool is called through another, by its name",
    "tool_superseded": "a tool is deprecated, and its successor stands beside it",
    "deprecation_added": "a tool is marked as deprecated",
    "deprecation_removed": "a tool is marked as deprecated no more",
    "parameter_added": "an optional parameter that was not there",
    "required_parameter_added": "a required parameter that was not there",
    "parameter_removed": "a parameter is gone",
    "parameter_renamed": "a parameter has another name",
    "parameter_required": "a parameter was optional and is required",
    "parameter_optional": "a parameter was required and is optional",
    "type_changed": "a parameter is of another type",
    "type_narrowed": "a parameter takes fewer types",
    "type_widened": "a parameter takes more types",
    "choice_added": "a parameter has more choices",
    "choice_removed": "a parameter has fewer choices",
    "choice_replaced": "choices of a parameter are gone, and others have come",
    "choices_introduced": "a parameter was free and has choices",
    "choices_lifted": "a parameter had choices and is free",
    "default_added": "a parameter has a default that it had not",
    "default_removed": "a parameter has no default any more",
    "default_changed": "a parameter has another default",
    "limit_tightened": "a limit of a value is tighter",
    "limit_loosened": "a limit of a value is looser",
    "schema_changed": "something else of a schema",
    "description_small": "a few words of a description",
    "description_reworded": "up to half of the words of a description",
    "description_rewritten": "more than half of the words of a description",
    "description_added": "a description that was not there",
    "description_removed": "a description is gone",
    "annotations_added": "hints about what a tool does, such as readOnlyHint",
    "annotations_changed": "other hints about what a tool does",
    "annotations_removed": "hints about what a tool does are gone",
    "output_schema_added": "the form of the results is declared",
    "output_schema_changed": "another form of the results",
    "output_schema_removed": "the form of the results is declared no more",
    "title_changed": "another title",
    "method_changed": "its requests have another method",
    "server_changed": "its requests go to another server",
    "path_changed": "its requests go to another path",
    "body_changed": "its requests have another form of body",
    "place_changed": "its requests have a parameter in another place",
    "auth_changed": "its requests need another login",
    "answers_changed": "its answers have another form",
    "errors_changed": "errors have another form",
    "other_changed": "something else that a server says of a tool",
}
"""Every kind of change, with its meaning."""
OF_REQUESTS = frozenset(
    ("method_changed", "server_changed", "path_changed", "body_changed", "place_changed",
     "auth_changed", "answers_changed")
)  # fmt: skip
"""Kinds of changes of how an operation is requested, which calls of an agent do not meet."""

_TOLD = (
    "name", "description", "inputSchema", "annotations", "outputSchema", "title", "deprecated"
)  # fmt: skip
_APART = frozenset(
    ("type", "properties", "required", "additionalProperties", "$defs", "definitions", *SAID)
)
"""Schema keywords of the arguments that are compared one by one, or that constrain nothing."""


class ToolChange(msgspec.Struct, frozen=True):
    """One change of one tool.

    Attributes:
        kind: one of `KINDS`.
        old: the tool as it was called; "" where it is new.
        new: the tool as it is called; "" where it is gone.
        severity: harmless, maybe or breaking; see the module.
        where: the path to the parameter, by its old names; "" for the tool as a whole. Of merged,
            split and dispatched tools the parameter that says which.
        before: what stood there, as JSON.
        after: what stands there.
        sure: whether it is certain what became what; otherwise it is the likeliest reading.
        perhaps: of a tool or parameter that is gone, what it may have become, which is a question.
        evidence: what speaks for the reading, in words.
    """

    kind: str
    old: str
    new: str
    severity: Severity
    where: str = ""
    before: Any = None
    after: Any = None
    sure: bool = True
    perhaps: str = ""
    evidence: str = ""

    @property
    def dimension(self) -> str:
        """The dimension of the change: "observation" for results, "action" otherwise."""
        return "observation" if self.kind.startswith("output_schema") else "action"

    @property
    def sentence(self) -> str:
        """The change in a few words, with the values where they are short."""
        why = f": {self.evidence}" if self.evidence else ""
        perhaps = "" if self.sure else f" (likely{why})"
        if self.perhaps:
            because = f" ({self.evidence})" if self.evidence else ""
            gone = f"{self.old}, {self.where}: a parameter" if self.where else f"{self.old}: a tool"
            return f"{gone} is gone. Is it {self.perhaps} now?{because}"
        name = self.old or self.new
        place = f", {self.where}" if self.where else ""
        values = _shown(*_from_difference(self.before, self.after))
        moved = f": {' -> '.join(values)}" if any(values) else ""
        if self.kind in ("tool_added", "tool_removed"):
            moved = ""
        if self.kind.startswith("tool_") and self.old and self.new:
            moved, place = f": {self.old} -> {self.new}{place}", ""
            which = self.before if self.after is None else self.after
            moved += f" = {_short(which)}" if self.where else ""
        perhaps += "; the agent's calls are the same" if self.kind in OF_REQUESTS else ""
        return f"{name}{place}: {KINDS[self.kind]}{moved}{perhaps}"


_SHORT = 80
"""Letters of a value that are shown."""
_BEFORE = 12
"""Letters that two long texts have in common and that are shown before what differs."""


def _from_difference(before: Any, after: Any) -> tuple[Any, Any]:
    """Two long texts from where they begin to differ, a word or two before."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        before, after = (as_json(one) for one in (before, after))
    texts = [one if isinstance(one, str) else "" for one in (before, after)]
    pairs = enumerate(zip(*texts, strict=False))
    shorter = min(map(len, texts))
    lead = next((place for place, (one, other) in pairs if one != other), shorter)
    start = texts[0].rfind(" ", 0, max(0, lead - _BEFORE)) + 1
    if lead - start > _SHORT // 2:  # JSON, or a script without spaces
        start = lead - _BEFORE
    if max(map(len, texts)) <= _SHORT or not start:
        return before, after
    first, second = (f"...{text[start:]}" for text in texts)
    return first, second


def _shown(before: Any, after: Any) -> list[str]:
    """Two values as a reader is shown them: 10 that became "10" differs by its quotes."""
    values = [_short(before), _short(after)]
    if values[0] == values[1] and not same(before, after):
        values = [_short(as_json(side)) for side in (before, after)]
    return values


def _short(value: Any) -> str:
    if value is None:
        return "none"
    if value == "":
        return '""'
    if isinstance(value, list) and value and all(isinstance(each, str) for each in value):
        return _first_of(value)
    written = as_text(value)
    return written if len(written) <= _SHORT else f"{written[: _SHORT - 3]}..."


def _first_of(names: Sequence[str]) -> str:
    """As many of some names as are short, each whole, and how many more there are."""
    shown, room = [names[0][:60]], 60 - len(names[0])
    for name in names[1:]:
        room -= len(name) + 2
        if room < 0:
            break
        shown.append(name)
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def worst_severity(changes: Iterable[ToolChange]) -> Severity | None:
    """The worst severity of some changes.

    Args:
        changes: as of `changes_between`.

    Returns:
        "breaking", "maybe" or "harmless"; None where nothing changed.
    """
    severities = {change.severity for change in changes}
    return next((severity for severity in reversed(SEVERITIES) if severity in severities), None)


def changes_between(
    old: Sequence[Mapping[str, Any]],
    new: Sequence[Mapping[str, Any]],
    answers: Answers | None = None,
) -> tuple[ToolChange, ...]:
    """The changes from one tool list to another.

    Args:
        old: the tools as they were, as an MCP server lists them.
        new: the tools as they are.
        answers: what is known of what became what; the rest is inferred.

    Returns:
        The changes, tools that are gone or new first; none where nothing changed.

    Raises:
        UsageError: where a tool has no name, or two have the same.
    """
    before, after = from_mcp(old), from_mcp(new)
    given = answers or Answers()
    return tuple(_changes(judged(before, after, given), before, after))


def _changes(found: Judged, before: Toolbox, after: Toolbox) -> Iterator[ToolChange]:
    answers = found.answers
    doubtful = {question.path for question in found.likely}
    before, after = opened_sides(answers.params, pairs_of(answers, before, after), (before, after))
    yield from _rearranged(found)
    several = {old for one in answers.merged.values() for old in one.tools.values()}
    several |= set(answers.split)
    superseded = {
        one.old
        for one in found.hypotheses.values()
        if one.kind == "tool_superseded" and one.standing != "question"
    }
    for old, new in pairs_of(answers, before, after):
        if answers.beside.get(new) == old:
            continue
        if old in several:
            yield from _of_several(answers, before.sources[old], after.sources[new])
            continue
        reading = found.hypotheses.get((old, new))
        sure = reading is None or reading.standing == "certain"
        if reading is not None:
            why = reading.evidence
            yield ToolChange("tool_renamed", old, new, "breaking", "", old, new, sure, evidence=why)
        source, target = before.sources[old], after.sources[new]
        if same(source.raw, target.raw):
            continue
        unsure = frozenset(path[2] for path in doubtful if path[:2] == ("params", old))
        moves = Moves(
            answers.params.get(old, {}), answers.values.get(old, {}), unsure, settled=True
        )
        named = list(_differences(source, target, moves))
        for one in named or _unnamed(source, target):
            if one.kind == "deprecation_added" and old in superseded:
                continue  # that says so
            certain = sure and one.sure
            perhaps = found.perhaps(old, one.where) if one.kind == "parameter_removed" else ""
            yield ToolChange(
                one.kind, old, new, one.severity, one.where, one.before, one.after, certain, perhaps
            )


_OF_SEVERAL = ("parameter_renamed", "parameter_required", "required_parameter_added")


def _of_several(answers: Answers, old: Source, new: Source) -> Iterator[ToolChange]:
    """What calls of a merged or split tool have to say otherwise, beside what says which it is."""
    name, other = old.tool.name, new.tool.name
    merged, split = answers.merged.get(other), answers.split.get(name)
    if merged and merged.arguments:  # what a dispatcher is handed is not said in its list
        return
    which = {one.by for one in (merged, split) if one}
    moves = Moves(answers.params.get(name, {}), answers.values.get(name, {}), settled=True)
    said = (
        next(({merged.by: v} for v, tool in merged.tools.items() if tool == name), {})
        if merged
        else {}
    )
    for one in _differences(old, new, moves, said):
        if one.kind in _OF_SEVERAL and one.where not in which:
            yield ToolChange(
                one.kind, name, other, one.severity, one.where, one.before, one.after, one.sure
            )


def _rearranged(found: Judged) -> Iterator[ToolChange]:
    """Tools that were merged, split, added or removed."""
    answers = found.answers
    for one in found.hypotheses.values():
        if one.standing == "question":
            continue
        sure = one.standing == "certain"
        if one.kind == "tool_superseded":
            why = one.evidence
            yield ToolChange(one.kind, one.old, one.new, "harmless", sure=sure, evidence=why)
            continue
        if one.kind == "tool_split":
            mapping = answers.split[one.old]
            sides: tuple[str | None, str | None] = (mapping.tools[one.new], None)
        elif one.kind != "tool_renamed":
            mapping = answers.merged[one.new]
            sides = (None, next(v for v, old in mapping.tools.items() if old == one.old))
        else:
            continue
        yield ToolChange(
            one.kind, one.old, one.new, "breaking", mapping.by, *sides, sure, evidence=one.evidence
        )
    for old in answers.removed:
        asked = next((one for one in found.of(old) if one.standing == "question"), None)
        perhaps, why = (asked.new, asked.evidence) if asked else ("", "")
        yield ToolChange("tool_removed", old, "", "breaking", perhaps=perhaps, evidence=why)
    finders = [mapping.finder for mapping in answers.merged.values() if mapping.finder]
    for new in dict.fromkeys([*finders, *answers.added]):
        yield ToolChange("tool_added", "", new, "harmless")


def _differences(
    old: Source, new: Source, moves: Moves, said: Mapping[str, str] | None = None
) -> Iterator[Difference]:
    """The differences between two documents of one tool, apart from its name."""
    yield from text_differences("", old.raw.get("description"), new.raw.get("description"))
    was, now = _inputs(old), _inputs(new)
    seen: Seen = set()
    refuses = now.get("additionalProperties") is False
    found = list(members("", _params(was), _params(now), moves, refuses, seen))
    alternatives = list(_of_alternatives(was, now, moves, said or {}))
    told = {one.where for one in alternatives}
    yield from (one for one in found if one.kind != "parameter_added" or one.where not in told)
    yield from alternatives
    if refuses != (was.get("additionalProperties") is False):
        kind, hard = ("limit_tightened", "maybe") if refuses else ("limit_loosened", "harmless")
        key = "additionalProperties"
        yield Difference(kind, "", {key: refuses}, {key: not refuses}, hard)  # type: ignore[arg-type]
    yield from differences("*", _further(was), _further(now), 0, seen)
    for key in dict.fromkeys([*was, *now]):
        apart = key in _APART or (key in ("anyOf", "oneOf") and bool(tagged(now)))
        if not apart and not same(was.get(key), now.get(key)):
            first, second = ({key: one.get(key)} for one in (was, now))
            yield Difference("schema_changed", "", first, second, "maybe")
    yield from _hints(old.raw.get("annotations"), new.raw.get("annotations"))
    yield from _results(old.outputs, new.outputs)
    if old.raw.get("title") != new.raw.get("title"):
        named, names = old.raw.get("title"), new.raw.get("title")
        yield Difference("title_changed", "", named, names, _of_title(named, names))
    marked = [one.raw.get("deprecated") is True for one in (old, new)]
    if marked[0] != marked[1]:
        kind = "deprecation_added" if marked[1] else "deprecation_removed"
        yield Difference(kind, "", marked[0], marked[1], "harmless")
    for key in dict.fromkeys([*old.raw, *new.raw]):
        if key not in _TOLD and not same(old.raw.get(key), new.raw.get(key)):
            yield Difference(
                "other_changed", "", {key: old.raw.get(key)}, {key: new.raw.get(key)}, "harmless"
            )


def _of_alternatives(
    was: Node, now: Node, moves: Moves, said: Mapping[str, str]
) -> Iterator[Difference]:
    """What alternatives of the arguments as a whole require that they did not.

    `said` has the value by which a tool that was merged is one of them.
    """
    old, new = tagged(was), tagged(now)
    if not new:
        return
    known, to = _params(was), {name: moves.names.get(name) or name for name in _params(was)}
    pairs = [*_alternatives_met(old, new, known, to, moves)] or [("", said.get(new.name, ""))]
    back = {now: was for was, now in to.items()}
    for tag, other in pairs:
        before = {*was.get("required", ()), *(old.parts[tag].get("required", ()) if old else ())}
        for name in new.parts.get(other, {}).get("required", ()):
            mine = back.get(name, name)
            if name == new.name or mine in before or name in now.get("required", ()):
                continue
            kind = "parameter_required" if mine in known else "required_parameter_added"
            yield Difference(kind, mine, None, f"where {new.name} is {other}", "breaking")


def _alternatives_met(
    old: Tagged | None,
    new: Tagged,
    known: Mapping[str, Param],
    to: Mapping[str, str],
    moves: Moves,
) -> Iterator[tuple[str, str]]:
    """The values that said which alternative it is, and what they are now: of alternatives that
    were there, or the choices of a parameter that says so now."""
    name = old.name if old else next((name for name in known if to[name] == new.name), "")
    words = moves.words.get(name, {})
    values = old.parts if old else choices_of(known[name].schema) if name else ()
    yield from ((str(value), words.get(str(value), str(value))) for value in values)


def _inputs(source: Source) -> Node:
    """The arguments of a tool in the one form of schemas."""
    return normal(source.inputs, source.tool.name, source.raw.get("strict") is True)


def _params(schema: Mapping[str, Any]) -> dict[str, Param]:
    """The parameters of arguments in the one form of schemas."""
    inside, required = schema.get("properties", {}), schema.get("required", ())
    return {name: Param(name, name, inner, name in required) for name, inner in inside.items()}


def _further(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of undeclared arguments, if there is one."""
    further = schema.get("additionalProperties")
    return as_mapping(further)


def _unnamed(old: Source, new: Source) -> Iterator[Difference]:
    """One change for a tool that differs only in parts that are not compared by name.

    Such parts are an example or a title inside its schema, or the order of choices. Another way
    to write the same schema is no change.
    """
    was, now = _inputs(old), _inputs(new)
    texts = [
        list(texts_of({**one.raw, "name": "", "inputSchema": schema}))
        for one, schema in ((old, was), (new, now))
    ]
    if texts[0] != texts[1] or demands(was) != demands(now):
        first: Any = [text for text in texts[0] if text not in texts[1]]
        second: Any = [text for text in texts[1] if text not in texts[0]]
        if not first and not second:
            first, second = ({"inputSchema": one.inputs} for one in (old, new))
        yield Difference("other_changed", "", first or None, second or None, "harmless")


def _of_title(old: Any, new: Any) -> Severity:
    """How much another title matters; one that has come or gone says nothing else."""
    both = isinstance(old, str) and isinstance(new, str)
    return "maybe" if both and says_otherwise(old, new) else "harmless"


def _hints(old: Any, new: Any) -> Iterator[Difference]:
    """Changed hints; "maybe" if a read-only tool now says that it writes."""
    was, now = (dict(one) if isinstance(one, Mapping) else {} for one in (old, new))
    first, second = (one.pop("title", None) for one in (was, now))
    if first != second:
        yield Difference("title_changed", "annotations", first, second, _of_title(first, second))
    if was == now:
        return
    kind = "added" if not was else "changed" if now else "removed"
    read, destroys = (
        [one.get(key) for one in (was, now)] for key in ("readOnlyHint", "destructiveHint")
    )
    worse = (read[0] is True and read[1] is not True) or (destroys == [False, True])
    yield Difference(
        f"annotations_{kind}", "", was or None, now or None, "maybe" if worse else "harmless"
    )


def _results(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> Iterator[Difference]:
    was, now = (Node() if side is None else normal(side) for side in (old, new))
    if same(was, now) and bool(old) == bool(new):
        return
    if not old:
        yield Difference("output_schema_added", "", None, None, "harmless")
    elif not new:
        yield Difference("output_schema_removed", "", None, None, "maybe")
    else:
        lines = inner_changes(was, now)
        gone = [line[2:].lstrip(".") for line in lines if line.startswith("-")]
        come = [line[2:].lstrip(".") for line in lines if line.startswith("+")]
        others = [
            difference
            for difference in differences("", was, now)
            if difference.kind not in _CAME_OR_WENT and not _is_other(difference, gone)
        ]
        # What is looser for a caller is less sure for a reader, so only texts are harmless here.
        texts = all(o.severity == "harmless" and o.kind.startswith("description_") for o in others)
        hard: Severity = "harmless" if come and not gone and texts else "maybe"
        gone, come = _as_moved(gone, come)
        before: Any = [*gone, *_valued((difference, difference.before) for difference in others)]
        after: Any = [*come, *_valued((difference, difference.after) for difference in others)]
        if not before and not after:  # a title, or something else that has no name here
            before, after = old, new
        yield Difference("output_schema_changed", "", before or None, after or None, hard)


def _as_moved(gone: list[str], come: list[str]) -> tuple[list[str], list[str]]:
    """What is gone and what has come, where all of a list or a record stands elsewhere as that one.

    So `result[].name` and `result[].stock` beside `items[].name` and `items[].stock` are `result[]`
    and `items[]`.
    """
    for lead in dict.fromkeys(path.rpartition(".")[0] for path in gone if "." in path):
        own = [path for path in gone if path.startswith(f"{lead}.")]
        rest = [path.removeprefix(lead) for path in own]
        for other in dict.fromkeys(path.rpartition(".")[0] for path in come if "." in path):
            if len(rest) > 1 and all(f"{other}{part}" in come for part in rest):
                theirs = {f"{other}{part}" for part in rest} | {other.removesuffix("[]")}
                mine = {*own, lead.removesuffix("[]")}
                return (
                    [lead, *(path for path in gone if path not in mine)],
                    [other, *(path for path in come if path not in theirs)],
                )
    return gone, come


def _is_other(one: Difference, gone: Sequence[str]) -> bool:
    """Whether what differs is that a record or a list stands in the place of a value that is gone:
    what has come says so already."""
    whole = {"object", "array"} & {*map(str, (one.before, one.after))}
    return one.kind.startswith("type_") and one.where in gone and bool(whole)


_CAME_OR_WENT = (
    "parameter_added",
    "required_parameter_added",
    "parameter_removed",
    "parameter_renamed",
)
"""Differences of results that are said as values which are gone or have come."""


def _valued(sides: Iterable[tuple[Difference, Any]]) -> Iterator[str]:
    """One side of some differences, each with its path, without the empty ones."""
    for difference, value in sides:
        shown = as_text(value)
        if difference.kind in ("parameter_required", "parameter_optional"):
            shown = "required" if value else "optional"
        if value is not None and shown:
            yield f"{difference.where}: {shown}" if difference.where else shown

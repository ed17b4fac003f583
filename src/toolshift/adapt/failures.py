"""What stands beside an error: what a good interface would have said to a call that it refuses.

    beside(RecordedCall("find_order", {"customer": "c1"}), Checker(tools_of_now), before, facts)

The error itself is not touched. Beside a call that today's tools do not take stand the reasons (no
such tool, an argument that is missing or not known, the choices there are), and today's nearest
tools with their descriptions and schemas. Nearest are those that the notes name, then those that
have words in common with the tool that was meant. Beside a call that today's tools do take stands
nothing: why it failed is between the agent and the server. A call with an argument that the tool
named once, and does not name now, is not taken, also where its schema is silent about others.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from toolshift.adapt.notes import Fact, quoted
from toolshift.adapt.words import in_common, words_of
from toolshift.core.message import PROTOCOL_NAMES
from toolshift.core.values import as_json, as_mapping, held_in
from toolshift.drift.calls import Checker, RecordedCall
from toolshift.interop.schema import choices_of, flattened

TITLE = "Said beside this error, from the tools on offer now:"
MAX_TOOLS = 3
MAX_SIGNS = 4000
"""A tool whose description and schema are longer is given without its schema."""
MAX_DESCRIPTION = 1000
"""Then its description is cut after so many signs."""
_MAX_CHOICES = 20
_SHOWN = ("name", "description", "inputSchema")
Documents = Mapping[str, Mapping[str, Any]]


def beside(
    call: RecordedCall, today: Checker, before: Documents, facts: Sequence[Fact] = ()
) -> str:
    """What is said beside the error of a call; "" where today's tools take the call."""
    if call.tool in PROTOCOL_NAMES:
        return ""
    known = today.documents
    if call.tool in known:
        gone = _gone(call, known[call.tool], before.get(call.tool) or {})
        lines = [*gone, *_wrong(call, known[call.tool], today)]
        lines += [one.sentence for one in facts if one.tool == call.tool and one.argument]
        near = [call.tool] if gone or not _taken(call, today) else []
    else:
        lines = [f"there is no tool {_named(call.tool)}"]
        became = [one for one in facts if one.old == call.tool and one.tool in known]
        lines += [one.everywhere for one in became]
        near = list(dict.fromkeys(one.tool for one in became))
        lines += [line for name in near for line in _missing(call, known[name])]
        near += [name for name in _nearest(call, known, before) if name not in near]
    if not near and call.tool in known:
        return ""
    said = [f"- {line}" for line in dict.fromkeys(lines) if line]
    return "\n".join([TITLE, *said, *(_document(known[name]) for name in near[:MAX_TOOLS])])


def _taken(call: RecordedCall, today: Checker) -> bool:
    where, why = today.fault(call)
    return not where and not why


def _gone(call: RecordedCall, now: Mapping[str, Any], then: Mapping[str, Any]) -> list[str]:
    """The arguments of a call that its tool named once, and neither names nor allows now."""
    inputs = now.get("inputSchema") or {}
    schema = flattened(inputs)
    others = schema.get("additionalProperties")
    if others or isinstance(others, Mapping) or schema.get("patternProperties"):
        return []
    known = as_mapping(flattened(then.get("inputSchema") or {}).get("properties"))
    named = _named_in(inputs, inputs) if known else known
    gone = [name for name in call.arguments if name in known and name not in named]
    return [f"{_named(call.tool)} has no argument {_named(name)}" for name in gone]


def _named_in(schema: Any, document: Mapping[str, Any], depth: int = 3) -> frozenset[str]:
    """The arguments that a schema names, in its alternatives and under its conditions too."""
    flat = flattened(as_mapping(schema), document)
    found = frozenset(as_mapping(flat.get("properties")))
    parts = [flat[key] for key in ("then", "else") if key in flat]
    parts += [each for key in _ALTERNATIVES for each in held_in(flat.get(key))]
    inner = (_named_in(part, document, depth - 1) for part in parts if depth)
    return found.union(*inner)


_ALTERNATIVES = ("anyOf", "oneOf", "dependentSchemas")


def _wrong(call: RecordedCall, tool: Mapping[str, Any], today: Checker) -> Iterator[str]:
    """The reasons for which a tool does not take a call."""
    if _taken(call, today):
        return
    inputs = tool.get("inputSchema") or {}
    params = as_mapping(flattened(inputs).get("properties"))
    named = _named_in(inputs, inputs)
    yield from _missing(call, tool)
    for name, value in call.arguments.items():
        if name not in params:
            if name not in named:
                yield f"{_named(call.tool)} has no argument {_named(name)}"
            continue
        choices = choices_of(params[name]) if isinstance(params[name], Mapping) else ()
        listed = [quoted(str(choice)) for choice in choices][:_MAX_CHOICES]
        if choices and value not in choices and all(listed):
            yield f"{_named(name)} is one of: {', '.join(f'`{choice}`' for choice in listed)}"
    where, why = today.fault(call)
    if where:
        yield f"{where}: {why[:300]}"


def _missing(call: RecordedCall, tool: Mapping[str, Any]) -> Iterator[str]:
    """The arguments that a tool requires and a call has not."""
    required = flattened(tool.get("inputSchema") or {}).get("required") or ()
    for name in required:
        if isinstance(name, str) and name not in call.arguments:
            yield f"{_named(str(tool.get('name')))} requires {_named(name)}"


def _nearest(call: RecordedCall, today: Documents, before: Documents) -> list[str]:
    """The tools of now that have most words in common with the one that was meant."""
    meant = before.get(call.tool) or {
        "name": call.tool,
        "inputSchema": {"properties": {name: {} for name in call.arguments}},
    }
    words = {name: _words(tool) for name, tool in today.items() if name not in PROTOCOL_NAMES}
    counts = Counter(word for each in words.values() for word in each)
    worth = {word: math.log(1 + len(words) / count) for word, count in counts.items()}
    mine = _words(meant)
    alike = {name: in_common(mine, theirs, worth) for name, theirs in words.items()}
    return sorted((name for name in alike if alike[name]), key=lambda name: -alike[name])


def _words(tool: Mapping[str, Any]) -> frozenset[str]:
    params = (tool.get("inputSchema") or {}).get("properties") or {}
    return words_of(f"{tool.get('name')} {' '.join(params)} {tool.get('description') or ''}")


def _document(tool: Mapping[str, Any]) -> str:
    """A tool as it is on offer, as one line of JSON."""
    shown = {key: tool[key] for key in _SHOWN if key in tool}
    text = as_json(shown)
    if len(text) <= MAX_SIGNS:
        return text
    shown.pop("inputSchema", None)
    shown["description"] = f"{str(shown.get('description') or '')[:MAX_DESCRIPTION]}..."
    return as_json(shown)


def _named(name: str) -> str:
    """A name as it is spoken of; one that is no plain name is not repeated."""
    plain = quoted(name)
    return f"`{plain}`" if plain else "of this name"

"""The calls of a recording with their results, and the data flow between them where it is plain.

A shift of the graph of tools needs to know what a result holds and which call feeds which. Of a
recording that is read only where it leaves no doubt: the value that a call passes stands in the
result of the call before it, at one place, and nowhere else in what was said or declared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec

from toolshift.core.codecs import leaves
from toolshift.core.shift import NotApplicable
from toolshift.core.tool import JSON, Param
from toolshift.core.values import as_json
from toolshift.data.conversation import Call, Conversation, Turn
from toolshift.data.conversation import turns_of as recorded_turns
from toolshift.interop.tools import Source, Toolbox
from toolshift.worlds.own.sources import fact, fields_of

LEAST = 4
"""Shorter values than this, such as `5` or `EUR`, may stand in two places by chance."""
Path = tuple[str, ...]


class Link(msgspec.Struct, frozen=True):
    """A parameter that takes a value of another tool's result."""

    source: str
    path: Path
    target: str
    param: str


class Flow(msgspec.Struct, frozen=True):
    """What a recording says of its tools.

    Attributes:
        results: for tools whose every result is a record with the same keys, one of them as JSON.
        links: the parameters that are fed.
    """

    results: tuple[tuple[str, bytes], ...] = ()
    links: tuple[Link, ...] = ()


NO_FLOW = Flow()


# -- calls and results -------------------------------------------------------------------------


def turns_of(conversation: Conversation) -> list[Turn]:
    """Every message but results, each with the results of its calls; None for one not recorded."""
    turns = recorded_turns(conversation.messages)
    if turns is None:
        raise NotApplicable("a result belongs to no call")
    return turns


def data_of(text: str) -> Any:
    """A recorded result as data; a text where it is no record and no list of records."""
    try:
        data = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
    return data if isinstance(data, dict | list) else text


# -- the flow ----------------------------------------------------------------------------------


def flow_of(conversation: Conversation) -> Flow:
    """What a recording says of its tools, where it is plain."""
    turns = turns_of(conversation)
    results = tuple(_results(turns))
    records = {name for name, _ in results}
    links = {link for link in _links(conversation, turns) if {link.source, link.target} <= records}
    fed: dict[tuple[str, str], Link] = {}
    for link in sorted(links, key=lambda link: (link.target, link.param, link.source, link.path)):
        fed.setdefault((link.target, link.param), link)
    return Flow(results, tuple(fed.values()))


def _results(turns: list[Turn]) -> Iterator[tuple[str, bytes]]:
    """The tools whose results are alike, each with its first one."""
    seen: dict[str, list[Any]] = {}
    for message, results in turns:
        for call, result in zip(message.calls, results, strict=True):
            data = data_of(result.text) if result is not None else None
            seen.setdefault(call.name, []).append(data)
    for name, found in sorted(seen.items()):
        first = found[0]
        if isinstance(first, dict) and all(
            isinstance(data, dict) and data.keys() == first.keys() for data in found
        ):
            yield name, JSON.encode(first)


def _links(conversation: Conversation, turns: list[Turn]) -> Iterator[Link]:
    """The values that go from a lone call's result into the call right after it."""
    declared = {tool.function["name"]: as_json(tool.function) for tool in conversation.tools}
    spoken: list[str] = []
    for place, (message, results) in enumerate(turns):
        spoken += [message.text, *(as_json(call.arguments) for call in message.calls)]
        if place + 1 < len(turns) and len(message.calls) == 1 and results[0] is not None:
            (source,), (later, _) = message.calls, turns[place + 1]
            data = data_of(results[0].text)
            if len(later.calls) == 1 and isinstance(data, dict):
                (target,) = later.calls
                elsewhere = [*spoken, later.text, declared.get(target.name, "")]
                yield from _between(source, data, target, elsewhere)
        spoken += [result.text for result in results if result is not None]


def _between(
    source: Call, data: dict[str, Any], target: Call, elsewhere: list[str]
) -> Iterator[Link]:
    """What one call takes of the result of another, and has from nowhere else."""
    if source.name == target.name:
        return
    for param, value in target.arguments.items():
        value_text = str(value)
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            continue
        if len(value_text) < LEAST or any(value_text in text for text in elsewhere):
            continue
        paths = [path for path, leaf in leaves(data) if leaf == value and type(leaf) is type(value)]
        if len(paths) == 1 and as_json(data).count(value_text) == 1:
            yield Link(source.name, paths[0], target.name, param)


# -- tools that know of it ---------------------------------------------------------------------


def with_flow(toolbox: Toolbox, flow: Flow) -> Toolbox:
    """The tools with what a recording says of them: values of results, and what they feed."""
    results = {name: msgspec.json.decode(raw) for name, raw in flow.results}
    fed = {(link.target, link.param): fact(link.source, link.path) for link in flow.links}

    def told(name: str, source: Source) -> Source:
        tool = source.tool
        params = tuple(_fed(param, fed.get((name, param.name), "")) for param in tool.params)
        pairs = zip(params, tool.params, strict=True)
        known = {param.fact: source.known[old.fact] for param, old in pairs}
        tool = tool.with_(params=params, effect="read" if _only_reads(source) else tool.effect)
        if name not in results:
            return replace(source, tool=tool, known=known)
        returns = fields_of(name, results[name])
        outputs = {"const": results[name]}
        return replace(source, tool=tool.with_(returns=returns), outputs=outputs, known=known)

    sources = [told(name, source) for name, source in toolbox.sources.items()]
    return Toolbox(toolbox.dialect, sources)


def _only_reads(source: Source) -> bool:
    """Whether the tool is marked so, as lists of MCP mark it."""
    hints = source.raw["function"].get("annotations")
    return isinstance(hints, dict) and hints.get("readOnlyHint") is True


def _fed(param: Param, fact: str) -> Param:
    return replace(param, fact=fact) if fact else param

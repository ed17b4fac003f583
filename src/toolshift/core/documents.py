"""Reads foreign documents in JSON, YAML or TOML, with limits on depth and size.

The C parser of YAML overruns its stack on deep documents, and a few aliases can stand for more
values than any memory holds; both are looked for before anything is built. What comes out nests at
most `DEEPEST` levels, so that whoever walks it may recurse.
"""

from __future__ import annotations

import json
import re
import tomllib
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
import yaml

from toolshift.core.errors import UsageError
from toolshift.core.intake import no_text

DEEPEST = 100
"""How deep a document may nest; those of real servers need some twenty levels."""
MAX_VALUES = 5_000_000
"""Values that a document may have, those that aliases stand for included."""
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""A safe loader, written in C where it is there."""


def read_json(raw: bytes, where: str) -> Any:
    """Reads JSON."""
    try:
        data = msgspec.json.decode(raw.removeprefix(BOM_UTF8))
    except (msgspec.DecodeError, UnicodeDecodeError) as fault:
        raise UsageError(f"{where} is not JSON: {no_text(raw) or fault}") from None
    except RecursionError:
        raise UsageError(_too_deep(where)) from None
    check_depth(data, where)
    _check_keys(raw, where)
    return data


def _check_keys(raw: bytes, where: str) -> None:
    """Checks that no object has a key twice: all but the last would go unread."""

    def each(pairs: list[tuple[str, Any]]) -> None:
        twice = [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]
        if twice:
            raise UsageError(_twice(twice[0], where))

    json.loads(raw.removeprefix(BOM_UTF8), object_pairs_hook=each, parse_int=len, parse_float=len)


def _twice(key: str, where: str) -> str:
    return f"{where} has the key {key!r:.80} twice in one object: only the last would be read"


_TEXT = r'"(?:\\.|[^"\\])*+"?'
_COMMENT = re.compile(rf"{_TEXT}|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_LAST_COMMA = re.compile(rf"{_TEXT}|,(?=\s*[}}\]])", re.DOTALL)


def read_jsonc(raw: bytes, where: str) -> Any:
    """Reads JSON with comments and commas after a last value, as editors write their settings."""
    try:
        text = raw.removeprefix(BOM_UTF8).decode()
    except UnicodeDecodeError as fault:
        raise UsageError(f"{where} is not JSON: {no_text(raw) or fault}") from None
    for left_out in (_COMMENT, _LAST_COMMA):
        text = left_out.sub(lambda found: found[0] if found[0][0] == '"' else " ", text)
    return read_json(text.encode(), where)


def read_toml(raw: bytes, where: str) -> dict[str, Any]:
    """Reads TOML."""
    try:
        data = tomllib.loads(raw.decode())
    except (ValueError, UnicodeDecodeError) as fault:  # ValueError: an integer of too many digits
        raise UsageError(f"{where} is not TOML: {fault}") from None
    except RecursionError:
        raise UsageError(_too_deep(where)) from None
    check_depth(data, where)
    return data


def read_yaml(raw: bytes, where: str) -> Any:
    """Reads YAML, as data alone."""
    try:
        _check_events(raw, where)
        loader = _LOADER(raw)
        root = loader.get_single_node()
        keep_times(root)
        _keep_keys(root)
        return None if root is None else loader.construct_document(root)
    except (yaml.YAMLError, UnicodeDecodeError) as fault:
        reason = " ".join(str(fault).split())
        raise UsageError(f"{where} is not YAML: {no_text(raw) or reason}") from None
    except (ValueError, TypeError, OverflowError) as fault:  # such as a date of 31 February
        raise UsageError(f"{where} is not YAML: {fault}") from None
    except RecursionError:
        raise UsageError(_too_deep(where)) from None


def keep_times(root: Any) -> None:
    """Dates and times stay as they are written: JSON has none of its own."""
    for node in _nodes(root):
        is_time = node.tag in _NUMBERS and ":" in node.value
        if isinstance(node, yaml.ScalarNode) and (node.tag == _DATE or is_time):
            node.tag = _STRING


def _keep_keys(root: Any) -> None:
    """Keys stay as they are written: YAML would make `no` false, and 200 a number."""
    for node in _nodes(root):
        for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE:
                key.tag = _STRING


def _nodes(root: Any) -> Iterator[Any]:
    """Every node of a YAML document, once."""
    nodes, seen = [] if root is None else [root], set[int]()
    while nodes:
        node = nodes.pop()
        if id(node) in seen:  # an alias
            continue
        seen.add(id(node))
        yield node
        if isinstance(node, yaml.MappingNode):
            nodes += [each for pair in node.value for each in pair]
        elif isinstance(node, yaml.SequenceNode):
            nodes += node.value


_STRING, _MERGE = "tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"
_DATE = "tag:yaml.org,2002:timestamp"
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


def check_depth(value: Any, where: str) -> None:
    """Checks that a value nests no deeper than `DEEPEST`, level by level."""
    level = [value]
    for _ in range(DEEPEST + 1):
        below: list[Any] = []
        for part in level:
            if isinstance(part, dict):
                below += part.values()
            elif isinstance(part, list):
                below += part
        if not below:
            return
        level = below
    raise UsageError(_too_deep(where))


def _too_deep(where: str) -> str:
    return f"{where} is nested more than {DEEPEST} levels deep: no document of tools needs that"


@dataclass
class _Keys:
    """What a collection of a YAML document holds so far.

    Attributes:
        named: it is a mapping, whose nodes are keys and values in turn.
        seen: its keys.
        nodes: how many nodes of its own have begun.
    """

    named: bool
    seen: set[str] = field(default_factory=set)
    nodes: int = 0


def _note_key(event: Any, keys: list[_Keys], where: str) -> None:
    """Notes a node of the innermost collection; a key may stand there once, but for merges."""
    if not isinstance(event, yaml.NodeEvent):
        return
    inner = keys[-1]
    inner.nodes += 1
    if inner.named and inner.nodes % 2 and isinstance(event, yaml.ScalarEvent):
        if event.value in inner.seen and event.value != "<<":
            raise UsageError(_twice(event.value, where))
        inner.seen.add(event.value)


def _check_events(raw: bytes, where: str) -> None:
    """Checks the depth and the aliases of a YAML document without building it."""
    sizes: dict[str, int] = {}
    open_: list[tuple[str, int]] = []  # the anchor of each collection, and the values before it
    keys: list[_Keys] = []
    count = 0
    for event in yaml.parse(raw, _LOADER):
        if keys:
            _note_key(event, keys, where)
        if isinstance(event, yaml.CollectionStartEvent):
            keys.append(_Keys(isinstance(event, yaml.MappingStartEvent)))
            open_.append((event.anchor or "", count))
            count += 1
            if len(open_) > DEEPEST:
                raise UsageError(_too_deep(where))
        elif isinstance(event, yaml.CollectionEndEvent):
            keys.pop()
            anchor, before = open_.pop()
            sizes[anchor] = count - before
        elif isinstance(event, yaml.ScalarEvent):
            count += 1
            sizes[event.anchor or ""] = 1
        elif isinstance(event, yaml.AliasEvent):
            if any(anchor == event.anchor for anchor, _ in open_):
                raise UsageError(f"{where}: its alias *{event.anchor} refers to itself")
            count += sizes.get(event.anchor or "", 0)
        if count > MAX_VALUES:
            raise UsageError(f"{where}: its aliases stand for more than {MAX_VALUES:,} values")

"""Keeps what a watch has learned in a file of JSON, and takes it up again.

    write_state(path, State(FORMAT, options, place, spans, watcher))
    state = read_state(path, options)

What may stand in such a file are plain values and the objects of `_KINDS`; reading one imports
nothing and calls nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from toolshift.core.errors import UsageError
from toolshift.core.files import write
from toolshift.core.tool import JSON
from toolshift.drift.lock import Lock
from toolshift.drift.stream import Called, Shown
from toolshift.watch.query_mix_monitor import MixMonitor
from toolshift.watch.rhythm import Rhythm
from toolshift.watch.sequential import (
    ErrorMonitor,
    FormMonitor,
    LatencyMonitor,
    Learned,
    RateMonitor,
    RateTest,
)
from toolshift.watch.watch import Renamed, Watcher

FORMAT = 1
_STRUCTS = {kind.__name__: kind for kind in (Called, Lock, Renamed, Shown)}
_KINDS: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        ErrorMonitor,
        FormMonitor,
        LatencyMonitor,
        Learned,
        MixMonitor,
        RateMonitor,
        RateTest,
        Rhythm,
        Watcher,
    )
}


class State(msgspec.Struct, frozen=True):
    """A watch as it is kept.

    Attributes:
        format: of the file.
        options: those that decide what is learned; a watch with others cannot go on with it.
        place: how far the file of the stream was read, and how it begins; None for a pipe.
        spans: whether spans of tools and of clients were met.
        watcher: everything that was learned and told.
    """

    format: int
    options: dict[str, Any]
    place: tuple[int, str] | None
    spans: tuple[bool, bool]
    watcher: Any


def write_state(path: Path, state: State) -> None:
    """Writes a state, whole or not at all."""
    kept = msgspec.structs.replace(state, watcher=_plain(state.watcher))
    write(path, JSON.encode(kept) + b"\n")


def read_state(path: Path, options: Mapping[str, Any]) -> State | None:
    """The state in a file; None where there is none yet. A wrong one is a `UsageError`."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as fault:
        raise UsageError(f"--state {path}: cannot be read ({fault.strerror})") from None
    begin_anew = "Remove it to begin anew, or name another file"
    try:
        state = msgspec.json.decode(raw, type=State)
        if state.format != FORMAT:
            raise UsageError(
                f"--state {path} has format {state.format}, but this version reads only "
                f"{FORMAT}. {begin_anew}"
            )
        watcher = _whole(state.watcher)
        if not isinstance(watcher, Watcher):
            raise TypeError("it holds no watch")
    except (
        msgspec.MsgspecError, UnicodeDecodeError, RecursionError, TypeError, ValueError, KeyError,
        IndexError, AttributeError,
    ) as fault:  # fmt: skip
        raise UsageError(f"--state {path} is damaged ({fault}). {begin_anew}") from None
    differ = [name for name, value in options.items() if state.options.get(name) != value]
    if differ:
        raise UsageError(
            f"--state {path} was saved with another {', '.join(differ)}. Use the same, or name "
            "another file"
        )
    return msgspec.structs.replace(state, watcher=watcher)


def _plain(value: Any) -> Any:
    """A value as JSON; what JSON has no form for is an object of its kind and its content."""
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, tuple):
        return {"tuple": [_plain(one) for one in value]}
    if isinstance(value, set | frozenset):
        inside = sorted((_plain(one) for one in value), key=JSON.encode)
        return {type(value).__name__: inside}
    if isinstance(value, dict):
        name = "Counter" if isinstance(value, Counter) else "dict"
        return {name: [[_plain(key), _plain(one)] for key, one in value.items()]}
    name = type(value).__name__
    if name in _STRUCTS:
        return {name: msgspec.to_builtins(value)}
    if name in _KINDS:
        return {name: _plain(dict(_attributes(value)))}
    return value


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    """What an object holds, in slots or in its dictionary, without what is worked out again."""
    names = getattr(type(value), "__slots__", None) or vars(value)
    for name in names:
        if name != "_known" or not isinstance(value, Rhythm):
            yield name, getattr(value, name)


def _whole(value: Any) -> Any:
    """The value that `_plain` wrote."""
    if isinstance(value, list):
        return [_whole(one) for one in value]
    if not isinstance(value, dict):
        return value
    ((name, inside),) = value.items()
    if name == "bytes":
        return bytes.fromhex(inside)
    if name in ("tuple", "set", "frozenset"):
        made: Any = {"tuple": tuple, "set": set, "frozenset": frozenset}[name]
        return made(_whole(one) for one in inside)
    if name in ("dict", "Counter"):
        pairs = {_whole(key): _whole(one) for key, one in inside}
        return Counter(pairs) if name == "Counter" else pairs
    if name in _STRUCTS:
        return msgspec.convert(inside, _STRUCTS[name])
    made = object.__new__(_KINDS[name])
    if isinstance(made, Rhythm):
        Rhythm.__init__(made)
    for attribute, one in _whole(inside).items():
        if not isinstance(attribute, str):
            raise TypeError("a name of an attribute is no text")
        setattr(made, attribute, one)
    return made

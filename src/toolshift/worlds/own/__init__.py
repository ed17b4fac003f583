"""A world from what the user has: tools of an MCP server, an OpenAPI document or Python, and tasks.

world = load("my_tasks.yaml")           # a World like any other
world.tools                             # plain Tools; `world.toolbox` has their documents
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from toolshift.core.errors import UsageError
from toolshift.worlds.names import OWN, folder_of, is_file
from toolshift.worlds.own.file import read_file
from toolshift.worlds.own.world import OwnWorld

__all__ = ["OwnWorld", "file_of", "find_own", "load"]


@cache
def _load(path: str, folder: str) -> OwnWorld:
    """Reads a file; the same path is another file in another working directory."""
    return OwnWorld(read_file(Path(path)))


def load(path: str | Path) -> OwnWorld:
    """The world of a file; made once in a process, and found by its name from then on."""
    world = _load(str(path), folder_of(str(path)))
    known = os.environ.get(OWN, "").split(os.pathsep)
    own = str(Path(path).resolve())
    if own not in known:  # worker processes inherit it
        os.environ[OWN] = os.pathsep.join([*filter(None, known), own])
    return world


def file_of(called: str, digest: str) -> Path | None:
    """The file of a world, among those known and those in the working directory.

    The tools that it names are not opened for it.
    """
    for path in map(Path, (*_known(), *_nearby())):
        try:
            found = read_file(path)
        except UsageError:
            continue
        if (found.name, found.digest) == (called, digest):
            return path
    return None


def _known() -> list[str]:
    """The files that were named in this process, or in one that has started it."""
    return [path for path in os.environ.get(OWN, "").split(os.pathsep) if path]


def _called(path: str) -> str:
    """The name in a file, without opening its tools; "" where it has gone since."""
    try:
        return read_file(Path(path)).name
    except UsageError:
        return ""


def find_own(name: str) -> OwnWorld:
    """The world of a path, or of a name with a hash.

    The file behind a name is one of those known, or stands in the working directory.
    """
    if "@" not in name or Path(name).suffix:
        return load(name)
    called = name.partition("@")[0]
    why = ""
    for path in (*_known(), *_nearby()):
        if _called(path) != called:
            continue
        try:
            world = load(path)
        except UsageError as fault:
            why = why or str(fault)
            continue
        if world.name == name:
            return world
        why = why or (
            f"world {name}: its file, or its tools, are others now ({world.name}): start a new "
            "run, or restore what they were"
        )
    raise UsageError(
        why
        or f"world {name} is of a file of its own, which is not in this folder: go where it is, or "
        f"say which, as in {OWN}=my_tasks.yaml toolshift minimise RUN EPISODE"
    )


def _nearby() -> list[str]:
    """The files in the working directory that may be worlds."""
    found = (path for path in Path().iterdir() if is_file(path.name) and path.is_file())
    return sorted(str(path.resolve()) for path in found)

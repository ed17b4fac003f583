"""A world of the user's own as a run folder keeps it: its tasks, its tools, and what they answered.

It has everything from which scenes are made and graded, and nothing by which a tool could be
reached: no command, no address, no module, no header. A world that is made of it is looked at; an
agent cannot meet its tools.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from toolshift.core.errors import UsageError, described
from toolshift.worlds.own.file import Given, Place, WorldFile
from toolshift.worlds.own.recording import FORMAT, Head, Line, kept_lines
from toolshift.worlds.own.world import OwnWorld


class StoredWorld(msgspec.Struct, frozen=True):
    """What a run folder keeps of a world of the user's own.

    Attributes:
        name: by which the run knows it, `NAME@HASH`.
        file: the digest of its file, by which that can be found again.
        called: its name in the file.
        system: the system message.
        tasks: as the file states them.
        tools: as an MCP server would list them.
        writes: those that the file or a recording names as writing; None where neither does.
        answers: what the tools answered to the expected calls.
    """

    name: str
    file: str
    called: str
    system: str
    tasks: tuple[Given, ...]
    tools: list[dict[str, Any]]
    writes: list[str] | None
    answers: list[Line]


def as_stored(world: OwnWorld) -> StoredWorld:
    """What is kept of a world, so that its runs can be read without its tools."""
    return StoredWorld(
        name=world.name,
        file=world.file.digest,
        called=world.file.name,
        system=world.system,
        tasks=world.file.given,
        tools=[dict(source.raw) for source in world.toolbox.sources.values()],
        writes=world.listed_writes,
        answers=list(world.recording.lines),
    )


def as_world(stored: StoredWorld, where: Path) -> OwnWorld:
    """The world that was kept, to look at: nothing is started, asked or imported for it."""

    def place_of(place: Place) -> str:
        return f"{where}: {stored.name}"

    file = WorldFile(
        where,
        stored.called,
        stored.system,
        {},
        None,
        stored.tasks,
        stored.file,
        place_of,
    )
    head = Head(FORMAT, stored.tools, stored.writes)
    try:
        world = OwnWorld(file, (head, kept_lines(stored.answers)))
    except UsageError as wrong:
        raise UsageError(f"{wrong}. The file is damaged: restore it") from None
    except Exception as fault:  # what is no output of ours may be wrong in any way
        said = f"{where}: what it keeps of world {stored.name} is damaged ({described(fault)})"
        raise UsageError(f"{said}: restore it") from None
    world.name = stored.name
    return world

"""What a run folder keeps of the user's own worlds and shifts, so that it can be read alone.

The tools of such a world are started or asked, and the shifts and worlds of a plugin are code.
Whoever looks at a run (its report, a trace, the page, grading it again) does none of that. So
`own.json` keeps the worlds (`worlds.own.stored`), what the shifts declare, and what agents were
shown in the scenes that only code can make. Each text and each tool stands there once.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from toolshift.core.errors import ShiftFault, UsageError, WorldFault
from toolshift.core.files import decode, read_bytes, stored
from toolshift.core.scene import Scene
from toolshift.core.shift import NotApplicable
from toolshift.core.tool import JSON, Param, Tool
from toolshift.core.world import World
from toolshift.runs.cell import Cell, build
from toolshift.runs.plan import Plan
from toolshift.shifts.facts import ShiftFacts, facts_of
from toolshift.shifts.registry import find_shift, has_code, why_no_code
from toolshift.worlds.own import OwnWorld
from toolshift.worlds.own.stored import StoredWorld, as_stored, as_world
from toolshift.worlds.registry import find_world, is_loaded

FILE = "own.json"
FORMAT = 1


class NotStored(UsageError):
    """A scene cannot be made from what the run folder holds; the message says what is missing."""


class Shown(msgspec.Struct, frozen=True):
    """What an agent was shown at the start of a scene; `asks` are texts and their notices."""

    system: str
    asks: tuple[tuple[str, str], ...]
    tools: tuple[Tool, ...]


class _Tool(msgspec.Struct, frozen=True):
    """A tool as it was shown; `params` are names, whether they are required, and schemas."""

    name: str
    description: str
    params: tuple[tuple[str, bool, dict[str, Any]], ...]
    origin: tuple[str, ...] = ()


class _Scene(msgspec.Struct, frozen=True):
    """A scene as it was shown, as places in the lists of texts and tools."""

    system: int
    asks: tuple[tuple[int, int], ...]
    tools: tuple[int, ...]


class Own(msgspec.Struct, frozen=True):
    """The content of `own.json`; scenes stand under the ids of their cells in the first trial."""

    format: int = FORMAT
    worlds: list[StoredWorld] = []
    shifts: list[ShiftFacts] = []
    texts: list[str] = []
    tools: list[_Tool] = []
    scenes: dict[str, _Scene] = {}


class OwnParts:
    """The user's own worlds and shifts in some run folders, read when first needed.

    Args:
        folders: of the runs, which are parts of one.
    """

    def __init__(self, *folders: Path) -> None:
        self.folders = folders
        self._made: dict[str, World] = {}

    @cached_property
    def kept(self) -> list[tuple[Path, Own]]:
        """The content of the files that exist."""
        paths = [stored(folder / FILE) for folder in self.folders]
        return [(path, _read(path)) for path in paths if path.exists()]

    def shifts(self) -> Iterator[ShiftFacts]:
        """What the shifts declare."""
        return (shift for _, own in self.kept for shift in own.shifts)

    def find(self, name: str) -> StoredWorld | None:
        """What is kept of a world; None if nothing is."""
        return next(
            (world for _, own in self.kept for world in own.worlds if world.name == name), None
        )

    def world(self, name: str) -> World:
        """A world, from what is kept of it."""
        if name not in self._made:
            parts = self.find(name)
            if parts is None:
                raise NotStored(self._why_no_world(name))
            self._made[name] = as_world(parts, self.folders[0] / FILE)
        return self._made[name]

    def scene(self, cell: Cell) -> Scene:
        """The scene of a cell; none of the user's code is run, and no server is called."""
        every = (*cell.shifts, *cell.under)
        lacking = [applied.shift for applied in every if not has_code(applied.shift)]
        if lacking:
            raise NotStored(f"the scene cannot be made: {why_no_code(lacking[0])}")
        if is_loaded(cell.world):
            return build(cell)
        return build(cell, self.world)

    def shown(self, cell: Cell) -> Shown:
        """What an agent was shown at the start of the scene of a cell."""
        try:
            return shown_in(self.scene(cell))
        except NotStored:
            name = _key(cell)
            for path, own in self.kept:
                if name in own.scenes:
                    return _taken(path, own, own.scenes[name])
            raise

    def _why_no_world(self, name: str) -> str:
        if "@" not in name:
            return (
                f"the scene is made by code of the world {name}, which is not loaded: name its "
                "file with `toolshift --plugin FILE.py` to have the rest"
            )
        folder = self.folders[0]
        return (
            f"the tools of the world {name} are not stored in {folder}, which an older ToolShift "
            f"has made: give the same `toolshift run` again, with --out {folder}, to have them "
            "stored (no episode is run twice)"
        )


# -- written ---------------------------------------------------------------------------------------


def own_file(plan: Plan) -> bytes:
    """The content of `own.json` for a run."""
    worlds = {name: find_world(name) for name in plan.selection.worlds}
    shifts = [
        shift for shift in map(find_shift, plan.versions) if not _is_ours(shift.rule.__module__)
    ]
    code = {name for name, world in worlds.items() if not _is_ours(type(world).__module__)}
    kept = [as_stored(world) for world in worlds.values() if isinstance(world, OwnWorld)]
    if not (kept or shifts or code):
        return b""
    own = Own(worlds=kept, shifts=[facts_of(shift) for shift in shifts])
    names = {shift.name for shift in shifts}
    texts, tools = _Places(own.texts), _Places(own.tools)
    for cell in plan.cells:
        by_code = cell.world in code or any(
            shift.shift in names for shift in (*cell.shifts, *cell.under)
        )
        if not by_code or _key(cell) in own.scenes:
            continue
        try:
            shown = shown_in(build(cell))
        except (UsageError, NotApplicable, ShiftFault, WorldFault):  # the run itself says so
            continue
        own.scenes[_key(cell)] = _Scene(
            texts.of(shown.system),
            tuple((texts.of(text), texts.of(notice)) for text, notice in shown.asks),
            tuple(tools.of(_as_shown(tool)) for tool in shown.tools),
        )
    return JSON.encode(own) + b"\n"


class _Places(dict[bytes, int]):
    """A list without duplicates, and the index of each item in it."""

    def __init__(self, things: list[Any]) -> None:
        super().__init__()
        self.things = things

    def of(self, thing: Any) -> int:
        """The index of an item, which is added if it is new."""
        raw = JSON.encode(thing)
        if raw not in self:
            self[raw] = len(self.things)
            self.things.append(thing)
        return self[raw]


def _key(cell: Cell) -> str:
    """The name of a scene, the same in each trial."""
    return msgspec.structs.replace(cell, trial=0).id


def _is_ours(module: str) -> bool:
    return module.startswith("toolshift.")


def shown_in(scene: Scene) -> Shown:
    """What an agent is shown at the start of a scene."""
    return Shown(scene.system, tuple((a.text, a.notice) for a in scene.asks), scene.tools)


def _as_shown(tool: Tool) -> _Tool:
    params = tuple((param.name, param.required, param.schema) for param in tool.params)
    return _Tool(tool.name, tool.description, params, tool.origin)


# -- read ------------------------------------------------------------------------------------------


def _read(path: Path) -> Own:
    own = decode(read_bytes(path), Own, str(path))
    if own.format > FORMAT:
        raise UsageError(f"{path} was written by a newer ToolShift: upgrade to read it")
    return own


def _taken(path: Path, own: Own, scene: _Scene) -> Shown:
    """A scene with its texts and tools in the place of their numbers."""
    try:
        tools = [own.tools[place] for place in scene.tools]
        asks = tuple((own.texts[text], own.texts[notice]) for text, notice in scene.asks)
        return Shown(own.texts[scene.system], asks, tuple(map(_as_tool, tools)))
    except IndexError:
        raise UsageError(
            f"{path} is damaged (a scene refers to a missing entry): restore it"
        ) from None


def _as_tool(shown: _Tool) -> Tool:
    params = tuple(
        Param(name, name, schema, required=required) for name, required, schema in shown.params
    )
    return Tool(shown.name, shown.description, params, (), origin=shown.origin)

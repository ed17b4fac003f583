"""Shifts: pure functions from a scene to a change, returned as data, and their registry."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from random import Random
from typing import Any, Literal, get_args

from toolshift.core import seed as seeds
from toolshift.core.errors import UsageError
from toolshift.core.layer import Layer
from toolshift.core.scene import Applied, Outcome, Scene, Task
from toolshift.core.user import Ask
from toolshift.core.world import Truth, World

Severity = Literal[1, 2, 3]
Tier = Literal["none", "perception", "interaction", "reasoning", "internalization"]
Dimension = Literal["none", "query", "action", "observation", "domain"]
Preserves = Literal["end_state", "solvability", "nothing"]
TIERS: tuple[str, ...] = get_args(Tier)[1:]
PLUGINS = "TOOLSHIFT_PLUGINS"  # files or modules with further shifts, as PATH lists folders
FILES = "TOOLSHIFT_SHIFTS"  # files that shifts were read from, as PATH lists folders
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
FAMILIES = ("query", "action", "observation", "interruption", "dependency", "sources", "domain")


class NotApplicable(Exception):
    """A shift cannot be applied truthfully to this scene; the message says why."""


@dataclass(frozen=True)
class Change:
    """What a shift does to a scene: a layer for the interface, and edits of the truth.

    Whatever is None stays as it is. `layer` (or several, the lowest first) goes on top of those
    already there.
    """

    layer: Layer | tuple[Layer, ...] = ()
    truth: Truth | None = None
    asks: tuple[Ask, ...] | None = None
    outcome: Outcome | None = None
    system: str | None = None
    world: World | None = None
    task: Task | None = None

    def edits(self) -> dict[str, Any]:
        """The parts of the scene that are replaced."""
        named = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "layer"}
        return {name: value for name, value in named.items() if value is not None}


Rule = Callable[[Scene, Random, Severity], Change]


@dataclass(frozen=True)
class Shift:
    """A shift and what is declared of it.

    Attributes:
        level: 1 the surface, one to one; 2 the interface over time; 3 the truth.
        preserves: "end_state" (same answer, same effects), "solvability" (another answer), or
            "nothing" (the scene becomes unsolvable).
        order: where it stands in a composition: the deeper change is made first, so that a layer
            of the surface covers what a change of the graph has made.
        imitates: a changelog entry of the kind that causes this in the real world.
    """

    name: str
    version: int
    tier: Tier
    dimension: Dimension
    level: Literal[1, 2, 3]
    preserves: Preserves
    order: int
    imitates: str
    summary: str
    rule: Rule


_registry: dict[str, Shift] = {}


def shift(
    *,
    tier: Tier,
    dimension: Dimension,
    level: Literal[1, 2, 3],
    preserves: Preserves = "end_state",
    imitates: str,
    order: int | None = None,
    version: int = 1,
) -> Callable[[Rule], Rule]:
    """Registers a function of (scene, rng, severity) as a shift under its own name.

    The function returns a `Change`, and raises `NotApplicable` where it cannot be truthful.
    """

    def register(rule: Rule) -> Rule:
        name = rule.__name__
        summary = (rule.__doc__ or "").strip().splitlines()[0] if rule.__doc__ else ""
        place = 4 - level if order is None else order
        _registry[name] = Shift(
            name, version, tier, dimension, level, preserves, place, imitates, summary, rule
        )
        return rule

    return register


@cache
def _load() -> None:
    for family in FAMILIES:
        import_module(f"toolshift.shifts.{family}")
    for entry in entry_points(group="toolshift.shifts"):
        entry.load()
    for plugin in filter(None, os.environ.get(PLUGINS, "").split(os.pathsep)):
        _load_plugin(plugin)


def _load_plugin(plugin: str) -> None:
    """Imports a file or a module, for the shifts that it registers.

    Raises:
        UsageError: where it is not there, or fails.
    """
    file = Path(plugin)
    try:
        if file.suffix != ".py":
            import_module(plugin)
            return
        spec = spec_from_file_location(file.stem, file)
        if spec is None or spec.loader is None or not file.is_file():
            raise UsageError(f"plugin {plugin}: there is no such file")
        module = module_from_spec(spec)
        sys.modules[file.stem] = module  # dataclasses look their module up there
        spec.loader.exec_module(module)
    except UsageError:
        raise
    except Exception as error:
        raise UsageError(
            f"plugin {plugin} cannot be imported: {type(error).__name__}: {error}"
        ) from error


def shifts() -> dict[str, Shift]:
    """Every shift by name: ours, and those of installed plugins."""
    _load()
    return dict(_registry)


def find_shift(name: str) -> Shift:
    """The shift of this name, or of a file that `toolshift shift from-diff` has written.

    A file is named by its path; from then on it goes by its name and a hash, `monday@1f2e3d4c`, so
    that no path stands in what is stored.

    Raises:
        UsageError: where there is none; offers the nearest names.
    """
    if name.endswith(".json") or "@" in name:
        from toolshift.shifts.release.file import find_file_shift

        return find_file_shift(name)
    _load()
    if name not in _registry:
        raise UsageError(unknown("shift", name, _registry))
    return _registry[name]


def know_files(files: Iterable[Path]) -> None:
    """Lets the shifts of these files be found by name, in worker processes too."""
    known = [file for file in os.environ.get(FILES, "").split(os.pathsep) if file]
    new = [str(file.resolve()) for file in files if file.is_file()]
    os.environ[FILES] = os.pathsep.join(dict.fromkeys([*known, *new]))


def file_contents(names: Iterable[str]) -> dict[str, bytes]:
    """The files of those of some shifts that were made from one.

    Raises:
        UsageError: where one is gone or has changed.
    """
    stored = [name for name in names if "@" in name]
    if not stored:
        return {}
    from toolshift.shifts.release.file import content_of

    return {name: content_of(name) for name in stored}


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """The message for a name that is not known."""
    names = sorted(known)
    near = get_close_matches(name, names, n=3, cutoff=0.4)
    offer = f"did you mean {' or '.join(near)}?" if near else f"there are: {', '.join(names)}"
    return f"unknown {what} {name!r}: {offer}"


def apply(scene: Scene, name: str, severity: int, draw: str = "") -> Scene:
    """Applies a shift to a scene.

    Args:
        scene: the scene as it stands.
        name: of the shift.
        severity: 1 to 3.
        draw: what its random choices are derived from; the task where nothing is given. Scenes
            under one draw are shown the same new names, as far as they need the same tools.

    Raises:
        NotApplicable: where that cannot be done truthfully, or where the stack would leave a
            tool with nothing that identifies it.
        UsageError: for an unknown shift or severity.
    """
    found = find_shift(name)
    if severity not in SEVERITIES:
        raise UsageError(f"severity {severity} of {name}: it goes from 1 to 3")
    _one_end_only(scene, found)
    why = scene.world.unfit(scene, found)
    if why:
        raise NotApplicable(why)
    rng = seeds.rng(draw or scene.task.id, name, severity, len(scene.shifts), "shift")
    change = found.rule(scene, rng, severity)
    layers = scene.layers
    for layer in change.layer if isinstance(change.layer, tuple) else (change.layer,):
        taken = layer.slots & {slot for below in layers for slot in below.slots}
        if taken:
            raise NotApplicable(f"{', '.join(taken)} is already changed")
        layers = (*layers, layer)
    shifted = scene.with_(
        layers=layers, shifts=(*scene.shifts, Applied(name, severity)), **change.edits()
    )
    for tool in shifted.tools:
        if not tool.channels:
            raise NotApplicable(f"nothing would be left that tells what {tool.name} does")
    return shifted


def _one_end_only(scene: Scene, found: Shift) -> None:
    """Refuses a second change of the outcome, on top of an unseen domain if need be."""
    before = (find_shift(applied.shift) for applied in scene.shifts)
    if found.preserves == "end_state":
        return
    for other in before:
        if other.preserves != "end_state" and other.order > 0:
            raise NotApplicable(f"{other.name} has changed the outcome already")


def compose(scene: Scene, stack: Iterable[Applied], draw: str = "") -> Scene:
    """Applies several shifts, the deepest first whatever the order they are named in.

    `draw` is as for `apply`.

    Raises:
        NotApplicable: where one of them cannot be applied to what the others have made.
    """
    for applied in sorted(stack, key=lambda each: (find_shift(each.shift).order, each.shift)):
        scene = apply(scene, applied.shift, applied.severity, draw)
    return scene

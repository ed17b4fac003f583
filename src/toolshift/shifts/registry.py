"""Finds shifts by name, applies and composes them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from toolshift.core import seed as seeds
from toolshift.core.errors import UsageError
from toolshift.core.names import unknown
from toolshift.core.scene import Applied, Scene
from toolshift.core.shift import SEVERITIES, NotApplicable, Shift, _registry

PLUGINS = "TOOLSHIFT_PLUGINS"  # files or modules with further shifts, as PATH lists folders


FAMILIES = ("query", "action", "observation", "interruption", "dependency", "sources", "domain")


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
    why = scene.not_applicable_reason(found)
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

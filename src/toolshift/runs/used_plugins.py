"""Which files and modules of the user's own a run needs, so that it can be read again."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable
from pathlib import Path

from toolshift.core import plugins
from toolshift.core.errors import MissingPlugin, UsageError
from toolshift.core.shift import split_version
from toolshift.shifts.registry import SHIFTS, find_shift, has_code, why_no_code
from toolshift.worlds.registry import WORLDS, find_world, world_names


def used_plugins(shifts: Iterable[str], worlds: Iterable[str]) -> tuple[str, ...]:
    """The files and modules that some shifts and worlds come from, where they are not installed."""
    modules = [
        *(find_shift(name).rule.__module__ for name in shifts if name not in SHIFTS.installed()),
        *(type(find_world(name)).__module__ for name in worlds if name not in WORLDS.installed()),
    ]
    theirs = (name for name in modules if not name.startswith("toolshift."))
    return tuple(dict.fromkeys(filter(None, map(_plugin, theirs))))


def _plugin(module: str) -> str:
    if module in plugins.named():
        return module
    file = inspect.getsourcefile(sys.modules[module]) if module in sys.modules else None
    if file is None:
        return ""
    path = Path(file).resolve()
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else path.name


def check_plugins(
    run: Path, plugins: tuple[str, ...], shifts: Iterable[str], worlds: Iterable[str]
) -> None:
    """Checks that what a run needs to be played again is loaded."""
    former = [name for name in shifts if split_version(name)[1] and not has_code(name)]
    if former:
        raise UsageError(f"{run} cannot be run again: {why_no_code(former[0])}")
    lacking = [f"shift {name!r}" for name in shifts if not (has_code(name) and _known(name))]
    if plugins:
        there = world_names()
        lacking += [f"world {name!r}" for name in worlds if "@" not in name and name not in there]
    _refuse(run, plugins, lacking)


def check_shifts(run: Path, plugins: tuple[str, ...], shifts: Iterable[str]) -> None:
    """Checks that the declarations of a run's shifts are known, which its report needs."""
    _refuse(run, plugins, [f"shift {name!r}" for name in shifts if not _known(name)])


def _refuse(run: Path, plugins: tuple[str, ...], lacking: list[str]) -> None:
    """Raises an error that names what is not loaded, and how to load it."""
    if not lacking:
        return
    what = ", ".join(lacking)
    if plugins:
        raise MissingPlugin(
            f"{run} was run with the {what} of the plugin {', '.join(plugins)}, which is not "
            "loaded. Name it",
            plugins,
        )
    raise MissingPlugin(
        f"{run} was run with the {what}, which is not known here. Install the package or name "
        "the file that defines it",
        ("FILE.py",),
    )


def _known(name: str) -> bool:
    try:
        find_shift(name)
    except UsageError as fault:
        return not str(fault).startswith("unknown shift") or "versions of" in str(fault)
    return True

"""How a world, or a task of one, is named."""

from __future__ import annotations

import os

OWN = "TOOLSHIFT_WORLDS"  # files of the user's own worlds, as PATH lists folders


BFCL = "bfcl:"
"""How the worlds begin that are read from the package `bfcl-eval`: `bfcl:multi_turn_base`."""
TAU2 = "tau2:"
"""How the worlds begin that are read from tau2-bench: `tau2:retail`."""


def is_file(name: str) -> bool:
    """Whether a world is named by a file."""
    return name.endswith((".yaml", ".yml"))


def folder_of(path: str) -> str:
    """The working directory, which decides what file a relative path is of; else ""."""
    return "" if os.path.isabs(path) else os.getcwd()


def split_task(task: str) -> tuple[str, str]:
    """The world, which may be a file in a folder, and the rest of `world/kind/index`."""
    file, mark, rest = task.rpartition("ml/")
    if mark and is_file(f"{file}ml"):
        return f"{file}ml", rest
    world, _, rest = task.partition("/")
    return world, rest

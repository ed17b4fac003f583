"""Prints our commands, quoted so that they can be pasted into a shell."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

PLUGINS = "TOOLSHIFT_PLUGINS"  # files or modules with further shifts, as PATH lists folders


def command(*words: object, travels: bool = False) -> str:
    """A command line, with the plugins that are loaded now."""
    plugins = [plugin for plugin in os.environ.get(PLUGINS, "").split(os.pathsep) if plugin]
    named = [Path(plugin).name for plugin in plugins] if travels else plugins
    loaded = [word for plugin in named for word in ("--plugin", plugin)]
    return shlex.join(["toolshift", *loaded, *map(str, words)])


def path_word(path: Path) -> str:
    """A path as a word of a shell that no program reads as a name or an option: `./mine`."""
    text = str(path)
    bare = path.name == text or text.startswith("-")
    return shlex.quote(f".{os.sep}{text}" if bare else text)

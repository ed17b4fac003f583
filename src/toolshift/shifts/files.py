"""Files that shifts are read from."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

FILES = "TOOLSHIFT_SHIFTS"  # files that shifts were read from, as PATH lists folders


def know_files(files: Iterable[Path]) -> None:
    """Lets the shifts of these files be found by name, in worker processes too."""
    known = [file for file in os.environ.get(FILES, "").split(os.pathsep) if file]
    new = [str(file.resolve()) for file in files if file.is_file()]
    os.environ[FILES] = os.pathsep.join(dict.fromkeys([*known, *new]))

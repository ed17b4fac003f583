"""Tables that stand beside a module: words, texts and figures, apart from the code."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any


def table_beside(module: str, name: str) -> dict[str, Any]:
    """Reads the TOML file of this name beside a module, whose `__file__` is given."""
    return tomllib.loads(Path(module).with_name(name).read_text(encoding="utf-8"))

"""The code of the documentation's pages, as it stands and with mistakes in it."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from itertools import count
from pathlib import Path
from types import ModuleType

DOCS = Path(__file__).parents[1] / "docs"
_numbers = count()

Write = Callable[..., ModuleType]


def code_of(page: str) -> str:
    """The Python code of a page."""
    return "\n".join(re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL))


def imported(folder: Path, page: str, old: str = "", new: str = "") -> ModuleType:
    """The code of a page as a module of its own, with one thing changed."""
    code = code_of(page)
    assert old in code, f"{page} has no {old}"
    name = f"page_{next(_numbers)}"
    file = folder / f"{name}.py"
    file.write_text(code.replace(old, new) if old else code)
    spec = spec_from_file_location(name, file)
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module

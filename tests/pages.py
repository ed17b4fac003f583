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


def imported(folder: Path, page: str, *changes: str) -> ModuleType:
    """The code of a page as a module of its own, with changes: old text, new text, and so on."""
    code = code_of(page)
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in code, f"{page} has no {old}"
        code = code.replace(old, new)
    name = f"page_{next(_numbers)}"
    file = folder / f"{name}.py"
    file.write_text(code)
    spec = spec_from_file_location(name, file)
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module

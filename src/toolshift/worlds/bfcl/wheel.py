"""What is read from the package `bfcl-eval` that the user has installed: data, backends, checkers.

Only parts that work without its dependencies are imported: `--no-deps` and `mpmath` are enough.
`bfcl_eval.utils` and `eval_config` are left alone, since they make folders where they are imported.
"""

from __future__ import annotations

import json
import sys
from functools import cache
from importlib import import_module, metadata
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from threading import Lock
from types import ModuleType, SimpleNamespace
from typing import Any

from toolshift.core.errors import UsageError

INSTALL = "pip install --no-deps bfcl-eval && pip install mpmath"
CHECKED_AS = "toolshift"
"""The model name under which calls are checked; as for OpenAI's, a dot in a name is `_`."""
_EVAL = "bfcl_eval.eval_checker"
_loading = Lock()


def folder() -> Path:
    """Where the package is installed."""
    found = find_spec("bfcl_eval")
    if found is None or found.origin is None:
        raise UsageError(
            f"the worlds bfcl:... read the package bfcl-eval, which is not installed: {INSTALL}"
        )
    return Path(found.origin).parent


def version() -> str:
    """The version of the package; "" where it is not said."""
    try:
        return metadata.version("bfcl-eval")
    except metadata.PackageNotFoundError:
        return ""


def rows(name: str) -> list[dict[str, Any]]:
    """The records of a data file."""
    file = folder() / "data" / name
    try:
        return [json.loads(line) for line in file.read_text("utf-8").splitlines() if line.strip()]
    except FileNotFoundError:
        why = f"bfcl-eval {version()} has no data/{name}: ToolShift reads version 4 of BFCL"
        raise UsageError(f"{why} ({INSTALL})") from None


def entries(category: str) -> list[dict[str, Any]]:
    """The entries of a category, in their order."""
    return rows(f"BFCL_v4_{category}.json")


def answers(category: str) -> dict[str, Any]:
    """The ground truth of a category by entry; empty where it has none."""
    name = f"possible_answer/BFCL_v4_{category}.json"
    if not (folder() / "data" / name).exists():
        return {}
    return {row["id"]: row["ground_truth"] for row in rows(name)}


@cache
def documents(backend: str) -> dict[str, dict[str, Any]]:
    """How the functions of a backend are documented, by name."""
    files = part("bfcl_eval.constants.executable_backend_config").MULTI_TURN_FUNC_DOC_FILE_MAPPING
    return {row["name"]: row for row in rows(f"multi_turn_func_doc/{files[backend]}")}


def part(name: str) -> Any:
    """Imports a module of the package."""
    folder()
    try:
        return import_module(name)
    except ModuleNotFoundError as fault:
        raise UsageError(
            f"{name} imports {fault.name}, which is not installed: {INSTALL}"
        ) from None


def backend(name: str, config: dict[str, Any], long_context: bool) -> Any:
    """A backend in the first state of an entry."""
    told = part("bfcl_eval.constants.executable_backend_config")
    made = getattr(part(told.CLASS_FILE_PATH_MAPPING[name]), name)()
    if name not in told.STATELESS_CLASSES:
        own = json.loads(json.dumps(config.get(name, {})))
        made._load_scenario(own, long_context=long_context)
    return made


def multi_turn_checker() -> Any:
    """The module that checks states and responses."""
    return part(f"{_EVAL}.multi_turn_eval.multi_turn_checker")


def languages() -> Any:
    """The languages that calls are checked in."""
    return part("bfcl_eval.constants.enums").Language


@cache
def ast_checker() -> ModuleType:
    """The module that checks single-turn calls, in a copy of our own.

    It imports the table of all models, and with it the clients of all vendors, to learn of one
    model whether dots in names are written as `_`. This copy is given a table with our line alone.
    """
    name = f"{_EVAL}.ast_eval.ast_checker"
    spec = find_spec(name) if folder() else None
    table = ModuleType("bfcl_eval.constants.model_config")
    vars(table)["MODEL_CONFIG_MAPPING"] = {CHECKED_AS: SimpleNamespace(underscore_to_dot=True)}
    assert spec is not None
    assert spec.origin is not None
    own = spec_from_file_location(f"{__name__}.ast_checker", spec.origin)
    assert own is not None
    assert own.loader is not None
    module = module_from_spec(own)
    with _loading:
        theirs = sys.modules.get(table.__name__)
        sys.modules[table.__name__] = table
        try:
            own.loader.exec_module(module)
        finally:
            del sys.modules[table.__name__]
            if theirs is not None:
                sys.modules[table.__name__] = theirs
    return module

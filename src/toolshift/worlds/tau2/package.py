"""What is read from the package `tau2` that the user has installed from its repository."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from toolshift.core.errors import UsageError, described

INSTALL = "clone github.com/sierra-research/tau2-bench, `pip install` it and set TAU2_DATA_DIR"


def domain(name: str) -> Any:
    """The module of a domain."""
    if find_spec("tau2") is None:
        raise UsageError(f"the worlds tau2:... read tau2-bench, which is not installed: {INSTALL}")
    with suppress(ImportError):  # it logs every call; who wants that enables it again
        import_module("loguru").logger.disable("tau2")
    return part(f"tau2.domains.{name}.environment")


def part(name: str) -> Any:
    """Imports a module of the package."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else prices are fetched
    try:
        return import_module(name)
    except ModuleNotFoundError as fault:
        why = f"there is no {fault.name}"
        if fault.name in ("tau2.domains", "tau2.data_model"):
            why = "the package tau2 of PyPI is another one"
        raise UsageError(f"tau2-bench cannot be imported ({why}): {INSTALL}") from None
    except Exception as fault:  # it reads its data as it is imported
        raise UsageError(
            f"tau2-bench cannot be imported ({described(fault)}): {INSTALL}"
        ) from fault


@cache
def tasks(name: str) -> list[Any]:
    """The tasks of a domain."""
    module = domain(name)
    try:
        found = module.get_tasks()
    except OSError as fault:
        raise UsageError(f"the tasks of tau2:{name} cannot be read ({fault}): {INSTALL}") from None
    return list(found)


def environment(name: str, task: Any, alone: bool) -> Any:
    """An environment in the first state of a task."""
    try:
        made = domain(name).get_environment(solo_mode=alone)
    except OSError as fault:
        raise UsageError(f"the data of tau2:{name} cannot be read ({fault}): {INSTALL}") from None
    start = task.initial_state
    made.set_state(
        initialization_data=start.initialization_data if start else None,
        initialization_actions=start.initialization_actions if start else None,
        message_history=[],
    )
    return made

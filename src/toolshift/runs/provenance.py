"""Builds the manifest of a run: versions, agents, the plan."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from toolshift.runs.design import FIXED, Design
from toolshift.runs.plan import Plan
from toolshift.runs.run_folder import FORMAT, Manifest
from toolshift.runs.used_plugins import used_plugins
from toolshift.worlds.registry import find_world

PACKAGES = ("msgspec", "jsonschema-rs", "numpy", "scipy", "torch", "transformers", "peft")


def manifest(plan: Plan, agents: list[dict[str, Any]], design: Design = FIXED) -> Manifest:
    """The manifest of a run of a plan by agents, as `agents.catalog.describe` has them."""
    return Manifest(
        format=FORMAT,
        toolshift=own_version(),
        python=sys.version.split()[0],
        platform=f"{platform.system()}-{platform.machine()}",
        packages={name: release for name in PACKAGES if (release := version_of(name))},
        suite=plan.selection.suite,
        selection=plan.selection,
        shifts=plan.versions,
        plan_hash=plan.hash,
        agents=agents,
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        plugins=used_plugins(plan.versions, plan.selection.worlds),
        task_ids=task_ids_of(plan.selection.worlds),
        design=design,
    )


def task_ids_of(worlds: Iterable[str]) -> dict[str, dict[str, list[str]]]:
    """The names that users gave their tasks, by world and kind; of worlds that have such."""
    named = {world: find_world(world).task_ids for world in worlds}
    return {
        world: {kind: list(ids) for kind, ids in kinds.items()}
        for world, kinds in named.items()
        if kinds
    }


def own_version() -> str:
    """The version of ToolShift as stored in runs and sealed plans; "unknown" if not installed."""
    return version_of("toolshift") or "unknown"


def version_of(package: str) -> str:
    """The version of an installed package; "" if it is not installed."""
    with suppress(PackageNotFoundError):
        return version(package)
    return ""

"""ToolShift: what happens to your agent when the world moves?

The names below are imported when they are first used, so that `import toolshift` stays cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolshift.agents.catalog import make_agent
    from toolshift.api import attempt, evaluate
    from toolshift.core.errors import BudgetSpent, UsageError
    from toolshift.core.layer import Layer
    from toolshift.core.message import Reply, ToolCall, Turn, Usage
    from toolshift.core.scene import Scene
    from toolshift.core.shift import Change, NotApplicable
    from toolshift.core.world import World
    from toolshift.episode.budget import Budget
    from toolshift.episode.contract import Agent
    from toolshift.episode.draw import make_scene
    from toolshift.episode.episode import Episode
    from toolshift.episode.grade import Grade
    from toolshift.measure.report import Report
    from toolshift.shifts.registry import apply, compose
    from toolshift.worlds.registry import find_world

_HOME = {
    "Agent": "episode.contract",
    "Reply": "core.message",
    "ToolCall": "core.message",
    "Turn": "core.message",
    "Usage": "core.message",
    "make_agent": "agents.catalog",
    "Budget": "episode.budget",
    "Episode": "episode.episode",
    "BudgetSpent": "core.errors",
    "UsageError": "core.errors",
    "Grade": "episode.grade",
    "Layer": "core.layer",
    "Report": "measure.report",
    "attempt": "api",
    "evaluate": "api",
    "Scene": "core.scene",
    "make_scene": "episode.draw",
    "Change": "core.shift",
    "NotApplicable": "core.shift",
    "apply": "shifts.registry",
    "compose": "shifts.registry",
    "World": "core.world",
    "find_world": "worlds.registry",
}

__all__ = [
    "Agent",
    "Budget",
    "BudgetSpent",
    "Change",
    "Episode",
    "Grade",
    "Layer",
    "NotApplicable",
    "Reply",
    "Report",
    "Scene",
    "ToolCall",
    "Turn",
    "Usage",
    "UsageError",
    "World",
    "apply",
    "attempt",
    "compose",
    "evaluate",
    "find_world",
    "make_agent",
    "make_scene",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'toolshift' has no attribute {name!r}")
    return getattr(import_module(f"toolshift.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__

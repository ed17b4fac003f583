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
    from toolshift.core.scene import Scene, make_scene
    from toolshift.core.shift import Change, NotApplicable, apply, compose
    from toolshift.core.world import World
    from toolshift.episode.contract import Agent, Reply, ToolCall, Turn, Usage
    from toolshift.episode.episode import Budget, Episode
    from toolshift.episode.grade import Grade
    from toolshift.measure.report import Report
    from toolshift.worlds import find_world

_HOME = {
    "Agent": "agent",
    "Reply": "agent",
    "ToolCall": "agent",
    "Turn": "agent",
    "Usage": "agent",
    "make_agent": "agents.catalog",
    "Budget": "episode",
    "Episode": "episode",
    "BudgetSpent": "errors",
    "UsageError": "errors",
    "Grade": "grade",
    "Layer": "layer",
    "Report": "report.report",
    "attempt": "run",
    "evaluate": "run",
    "Scene": "scene",
    "make_scene": "scene",
    "Change": "shift",
    "NotApplicable": "shift",
    "apply": "shift",
    "compose": "shift",
    "World": "world",
    "find_world": "worlds",
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

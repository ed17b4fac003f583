"""ToolShift: what happens to your agent when the world moves?

The names below are public; modules under this one are private by place and may move. They are
imported when they are first used, so that `import toolshift` stays cheap.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # type checkers know the name; `typing` takes a while to import
if TYPE_CHECKING:
    from typing import Any

    from toolshift.adapt.layer import adapt
    from toolshift.agents.catalog import make_agent
    from toolshift.api import attempt, evaluate
    from toolshift.core.calls import ToolCall
    from toolshift.core.errors import BudgetSpent, UsageError
    from toolshift.core.fact import Fact
    from toolshift.core.layer import Layer
    from toolshift.core.message import Reply, Turn, Usage
    from toolshift.core.scene import Scene
    from toolshift.core.shift import Change, NotApplicable, shift
    from toolshift.core.tool import Field, Hint, Param, Result, Tool, ToolFailure
    from toolshift.core.world import Request, TaskKind, World
    from toolshift.data.dataset import augment
    from toolshift.drift.lock import Lock, lock_tools, read_lock
    from toolshift.episode.budget import Budget
    from toolshift.episode.contract import Agent, BatchAgent
    from toolshift.episode.draw import make_scene
    from toolshift.episode.episode import Episode
    from toolshift.episode.grade import Grade
    from toolshift.measure.report import Report
    from toolshift.shifts.registry import apply, compose
    from toolshift.worlds.registry import find_world

_HOME = {
    "adapt": "adapt.layer",
    "Lock": "drift.lock",
    "lock_tools": "drift.lock",
    "read_lock": "drift.lock",
    "make_agent": "agents.catalog",
    "attempt": "api",
    "evaluate": "api",
    "ToolCall": "core.calls",
    "BudgetSpent": "core.errors",
    "UsageError": "core.errors",
    "Fact": "core.fact",
    "Layer": "core.layer",
    "Reply": "core.message",
    "Turn": "core.message",
    "Usage": "core.message",
    "Scene": "core.scene",
    "Change": "core.shift",
    "NotApplicable": "core.shift",
    "shift": "core.shift",
    "Field": "core.tool",
    "Hint": "core.tool",
    "Param": "core.tool",
    "Result": "core.tool",
    "Tool": "core.tool",
    "ToolFailure": "core.tool",
    "Request": "core.world",
    "TaskKind": "core.world",
    "World": "core.world",
    "augment": "data.dataset",
    "Budget": "episode.budget",
    "Agent": "episode.contract",
    "BatchAgent": "episode.contract",
    "make_scene": "episode.draw",
    "Episode": "episode.episode",
    "Grade": "episode.grade",
    "Report": "measure.report",
    "apply": "shifts.registry",
    "compose": "shifts.registry",
    "find_world": "worlds.registry",
}

__all__ = [
    "Agent",
    "BatchAgent",
    "Budget",
    "BudgetSpent",
    "Change",
    "Episode",
    "Fact",
    "Field",
    "Grade",
    "Hint",
    "Layer",
    "Lock",
    "NotApplicable",
    "Param",
    "Reply",
    "Report",
    "Request",
    "Result",
    "Scene",
    "TaskKind",
    "Tool",
    "ToolCall",
    "ToolFailure",
    "Turn",
    "Usage",
    "UsageError",
    "World",
    "adapt",
    "apply",
    "attempt",
    "augment",
    "compose",
    "evaluate",
    "find_world",
    "lock_tools",
    "make_agent",
    "make_scene",
    "read_lock",
    "shift",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'toolshift' has no attribute {name!r}")
    return getattr(import_module(f"toolshift.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__

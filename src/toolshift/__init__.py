"""ToolShift: how does your agent perform when its environment changes?

The names below are public; the modules of this package are private and may move. Names are
imported when they are first used, so that `import toolshift` stays cheap. All names can be
imported without an extra; a function that needs an extra says so when it is called.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # type checkers know the name; `typing` takes a while to import
if TYPE_CHECKING:
    from typing import Any

    from toolshift.adapt.layer import Intervention, adapt, interventions
    from toolshift.adapt.lessons import Lessons, read_lessons
    from toolshift.agents.catalog import make_agent
    from toolshift.api import Evaluation, attempt, evaluate, evaluate_async
    from toolshift.connect.callables import StartedEpisode, start_episode
    from toolshift.connect.inspect.scene_tools import SceneTools
    from toolshift.core.ask import Ask
    from toolshift.core.calls import ToolCall
    from toolshift.core.errors import BudgetSpent, UsageError
    from toolshift.core.fact import Fact
    from toolshift.core.layer import Layer
    from toolshift.core.message import Reply, Turn, Usage
    from toolshift.core.scene import Outcome, Scene
    from toolshift.core.shift import Change, NotApplicable, shift
    from toolshift.core.solver import Impossible
    from toolshift.core.step import Step
    from toolshift.core.tool import Field, Hint, Operation, Param, Result, Tool, ToolFailure
    from toolshift.core.value_shape import Shape
    from toolshift.core.world import Request, TaskKind, Truth, World
    from toolshift.data.dataset import augment
    from toolshift.dialects import as_request
    from toolshift.drift.changes import ToolChange, changes_between, worst_severity
    from toolshift.drift.lock import Lock, lock_tools, read_lock
    from toolshift.episode.budget import Budget
    from toolshift.episode.contract import Agent, BatchAgent
    from toolshift.episode.draw import make_scene
    from toolshift.episode.episode import Episode
    from toolshift.episode.grade import Grade
    from toolshift.lm.bases import base_directory
    from toolshift.measure.metrics import Measures
    from toolshift.measure.report import Report
    from toolshift.runs.suite import Selection
    from toolshift.shifts.arguments import Reshaped
    from toolshift.shifts.registry import apply, compose
    from toolshift.shifts.rewiring import Rewired
    from toolshift.shifts.surface import Surface
    from toolshift.stored_run import StoredEpisode, StoredRun, read_run
    from toolshift.train.data import make_rows
    from toolshift.train.scenes import Mix
    from toolshift.train.supervised import train_sft
    from toolshift.worlds.registry import find_world

    __version__: str

_VERSION = "runs.provenance"
_HOME = {
    "Intervention": "adapt.layer",
    "adapt": "adapt.layer",
    "interventions": "adapt.layer",
    "Lessons": "adapt.lessons",
    "read_lessons": "adapt.lessons",
    "make_agent": "agents.catalog",
    "Evaluation": "api",
    "attempt": "api",
    "evaluate": "api",
    "evaluate_async": "api",
    "StartedEpisode": "connect.callables",
    "start_episode": "connect.callables",
    "SceneTools": "connect.inspect.scene_tools",
    "ToolCall": "core.calls",
    "BudgetSpent": "core.errors",
    "UsageError": "core.errors",
    "Fact": "core.fact",
    "Layer": "core.layer",
    "Reply": "core.message",
    "Turn": "core.message",
    "Usage": "core.message",
    "Outcome": "core.scene",
    "Scene": "core.scene",
    "Change": "core.shift",
    "NotApplicable": "core.shift",
    "shift": "core.shift",
    "Step": "core.step",
    "Field": "core.tool",
    "Hint": "core.tool",
    "Impossible": "core.solver",
    "as_request": "dialects",
    "Operation": "core.tool",
    "Param": "core.tool",
    "Result": "core.tool",
    "Tool": "core.tool",
    "ToolFailure": "core.tool",
    "Ask": "core.ask",
    "Shape": "core.value_shape",
    "Request": "core.world",
    "TaskKind": "core.world",
    "Truth": "core.world",
    "World": "core.world",
    "augment": "data.dataset",
    "ToolChange": "drift.changes",
    "changes_between": "drift.changes",
    "worst_severity": "drift.changes",
    "Lock": "drift.lock",
    "lock_tools": "drift.lock",
    "read_lock": "drift.lock",
    "Budget": "episode.budget",
    "Agent": "episode.contract",
    "BatchAgent": "episode.contract",
    "make_scene": "episode.draw",
    "Episode": "episode.episode",
    "Grade": "episode.grade",
    "base_directory": "lm.bases",
    "Measures": "measure.metrics",
    "Report": "measure.report",
    "Selection": "runs.suite",
    "Reshaped": "shifts.arguments",
    "apply": "shifts.registry",
    "compose": "shifts.registry",
    "Rewired": "shifts.rewiring",
    "Surface": "shifts.surface",
    "StoredEpisode": "stored_run",
    "StoredRun": "stored_run",
    "read_run": "stored_run",
    "make_rows": "train.data",
    "Mix": "train.scenes",
    "train_sft": "train.supervised",
    "find_world": "worlds.registry",
}

__all__ = [
    "Agent",
    "Ask",
    "BatchAgent",
    "Budget",
    "BudgetSpent",
    "Change",
    "Episode",
    "Evaluation",
    "Fact",
    "Field",
    "Grade",
    "Hint",
    "Impossible",
    "Intervention",
    "Layer",
    "Lessons",
    "Lock",
    "Measures",
    "Mix",
    "NotApplicable",
    "Operation",
    "Outcome",
    "Param",
    "Reply",
    "Report",
    "Request",
    "Reshaped",
    "Result",
    "Rewired",
    "Scene",
    "SceneTools",
    "Selection",
    "Shape",
    "StartedEpisode",
    "Step",
    "StoredEpisode",
    "StoredRun",
    "Surface",
    "TaskKind",
    "Tool",
    "ToolCall",
    "ToolChange",
    "ToolFailure",
    "Truth",
    "Turn",
    "Usage",
    "UsageError",
    "World",
    "__version__",
    "adapt",
    "apply",
    "as_request",
    "attempt",
    "augment",
    "base_directory",
    "changes_between",
    "compose",
    "evaluate",
    "evaluate_async",
    "find_world",
    "interventions",
    "lock_tools",
    "make_agent",
    "make_rows",
    "make_scene",
    "read_lessons",
    "read_lock",
    "read_run",
    "shift",
    "start_episode",
    "train_sft",
    "worst_severity",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module(f"toolshift.{_VERSION}").own_version()
    if name not in _HOME:
        raise AttributeError(f"module 'toolshift' has no attribute {name!r}")
    return getattr(import_module(f"toolshift.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__

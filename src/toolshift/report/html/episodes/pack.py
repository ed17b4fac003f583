"""Traces and scenes as the data that the page draws from; long texts are cut."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

from toolshift.core.scene import Scene
from toolshift.core.step import Step
from toolshift.core.tool import JSON, Tool
from toolshift.core.values import as_text
from toolshift.episode.causes import guilty_step
from toolshift.episode.grading_rules import calls_not_made
from toolshift.measure.scored import is_empty, texts_beside
from toolshift.report.align import align, first_divergence, matched_tools
from toolshift.report.behind import change_behind, wrong_arguments
from toolshift.report.html.episodes.catalog import Row
from toolshift.report.scene import as_call
from toolshift.report.words import cause_in_words, right_refusal, verdict
from toolshift.runs.cell import Cell
from toolshift.runs.own import Shown
from toolshift.runs.run_folder import Record

Text = str | list[Any]
"""A text; one that was cut is its beginning and its full length in characters."""


Found = tuple[Scene | None, Shown | None, str]
SceneOf = Callable[[Row], Found]
MAX_STEPS = 300
"""Steps of a trace that are shown; budgets end an episode long before."""


class Pack:
    """Traces, and the scenes and tools that they share.

    Args:
        scene_of: gives the scene of a row, what was shown, and why something of it is missing.
        limit: most characters of one text, and of the arguments of one call together.
        most: bytes that all of it may take; a trace for which there is no room is left out.
    """

    def __init__(self, scene_of: SceneOf, limit: int, most: float = inf) -> None:
        self._scene_of = scene_of
        self.limit = limit
        self.most = most
        self.traces: dict[str, dict[str, Any]] = {}
        self.scenes: list[dict[str, Any]] = []
        self.tools: list[dict[str, Any]] = []
        self.size = 0
        self._scenes: dict[str, int] = {}
        self._tools: dict[bytes, int] = {}

    def to_dict(self) -> dict[str, Any]:
        """The whole, for JSON."""
        return {"traces": self.traces, "scenes": self.scenes, "tools": self.tools}

    def add(self, row: Row, record: Record, clean: tuple[Row, Record] | None) -> None:
        """Adds an episode, beside the clean one of its task where there is one."""
        found = self._scene_of(row)
        trace = self._trace(row, record, found)
        added = {row.key: trace}
        if clean is not None:
            partner, before = clean
            base = self._scene_of(partner)
            if partner.key not in self.traces:
                added = {partner.key: self._trace(partner, before, base), **added}
            steps = (before.steps[:MAX_STEPS], record.steps[:MAX_STEPS])
            pairs = align(base[0], steps[0], found[0], steps[1])
            trace["clean"] = partner.key
            trace["pairs"] = [[p.clean, p.shifted, p.same, p.note] for p in pairs]
            trace["diverges"] = first_divergence(pairs)
            trace["toolPairs"] = matched_tools(_tools(base[1]), _tools(found[1]))
        size = _weight(JSON.encode(added))
        if self.size + size <= self.most:
            self.size += size
            self.traces.update(added)

    def _trace(self, row: Row, record: Record, found: Found) -> dict[str, Any]:
        grade, scene = record.grade, found[0]
        guilty = guilty_step(scene, record.steps, grade.cause) if scene else None
        behind = change_behind(scene, record.steps, guilty) if scene else ""
        wrong = wrong_arguments(scene, record.steps, guilty, grade.cause) if scene else ""
        return {
            "scene": self._scene(row.cell, found[1], found[2]),
            "verdict": verdict(grade),
            "cause": " ".join(filter(None, (cause_in_words(grade.cause), wrong, behind))),
            "guilty": guilty,
            "right": _right(scene, () if grade.passed else record.steps) if scene else "",
            "steps": [self._step(step) for step in record.steps[:MAX_STEPS]],
            "more": max(0, len(record.steps) - MAX_STEPS),
        }

    def _scene(self, cell: Cell, shown: Shown | None, why: str) -> int:
        name = f"{cell.lineage} {cell.stack}"
        if name not in self._scenes:
            self._scenes[name] = len(self.scenes)
            made: dict[str, Any] = {"missing": why}
            if shown is not None:
                asks = [[self.cut(text), self.cut(notice)] for text, notice in shown.asks]
                made = {"system": self.cut(shown.system), "asks": asks}
            made["tools"] = [self._tool(tool) for tool in _tools(shown)]
            self.scenes.append(made)
            self.size += _weight(JSON.encode(made))
        return self._scenes[name]

    def _tool(self, tool: Tool) -> int:
        made = {
            "name": self.cut(tool.name),
            "text": self.cut(tool.description),
            "params": [[p.name, p.required, self.cut(_kind(p.schema))] for p in tool.params],
        }
        raw = JSON.encode(made)
        if raw not in self._tools:
            self._tools[raw] = len(self.tools)
            self.tools.append(made)
            self.size += _weight(raw)
        return self._tools[raw]

    def _step(self, step: Step) -> dict[str, Any]:
        """A step without what is empty."""
        made = {
            "kind": step.kind,
            "name": self.cut(step.name),
            "args": self._arguments(step.arguments) if step.kind == "call" else None,
            "text": self.cut(step.text),
            "said": self.cut(_said(step)),
            "notice": self.cut(step.notice),
            "tools": self.cut(", ".join(step.tools)),
            "true": self.cut(_behind(step)),
            "wrote": self.cut("; ".join(" ".join(map(str, each)) for each in step.effects)),
            "error": step.error,
            "failed": not step.ok,
            "provoked": step.provoked,
            "touched": step.touched,
            "prose": step.prose,
            "judge": self.cut(step.judge),
            "hint": step.hint,
            "evidence": step.evidence.replace("_", " "),
        }
        return {name: value for name, value in made.items() if value}

    def _arguments(self, arguments: dict[str, Any] | str) -> dict[str, Text] | list[list[Text]]:
        """Arguments as names and texts; what was not readable as it came."""
        if isinstance(arguments, str):
            return {"raw": self.cut(arguments)}
        found: list[list[Text]] = []
        left = self.limit
        for number, (name, value) in enumerate(arguments.items()):
            if left < 0:
                found.append(["(cut)", f"{len(arguments) - number} more arguments"])
                break
            text = as_text(value)
            found.append([self.cut(name), self.cut(text)])
            left -= len(name) + len(text)
        return found

    def cut(self, text: str) -> Text:
        """A text, or its beginning and its length where it is too long."""
        return text if len(text) <= self.limit else [text[: self.limit], len(text)]


def _weight(raw: bytes) -> int:
    """Bytes that JSON takes inside a script element, where <, > and & are written out."""
    return len(raw) + 5 * sum(map(raw.count, (b"<", b">", b"&")))


def _tools(shown: Shown | None) -> Sequence[Tool]:
    return shown.tools if shown else ()


def _right(scene: Scene, steps: Sequence[Step]) -> str:
    """What would have been right, in words, with the calls that a failed trace is without."""
    if not scene.solvable:
        return right_refusal(scene.outcome).replace("_", " ")
    wanted = ", then ".join(ask.expected or "(anything)" for ask in scene.asks)
    writes = "".join(f"; write {' '.join(map(str, each))}" for each in scene.outcome.effects)
    missing = calls_not_made(scene, steps) if steps else []
    calls = "".join(f"; not called: {as_call(call)}" for call in missing)
    return f"answer {wanted}{writes}{calls}"


def _said(step: Step) -> str:
    """What a step said; of an empty reply, what stands beside it instead."""
    if not is_empty(step):
        return step.said
    return "\n".join(f"(only in {name}) {text}" for name, text in texts_beside(step).items())


def _behind(step: Step) -> str:
    """The true calls behind a call, where they are not just what was spoken."""
    if step.true == ((step.name, step.arguments),):
        return ""
    return "; ".join(
        f"{name}({', '.join(f'{key}={as_text(value)}' for key, value in made.items())})"
        for name, made in step.true
    )


def _kind(schema: dict[str, Any]) -> str:
    """A parameter's type, choices and description in a line."""
    rest = {k: v for k, v in schema.items() if k not in ("type", "description", "enum")}
    parts = [
        as_text(schema.get("type", "")),
        f"one of {', '.join(map(as_text, schema['enum']))}" if "enum" in schema else "",
        as_text(rest) if rest else "",
        schema.get("description", ""),
    ]
    return "; ".join(part for part in parts if part)

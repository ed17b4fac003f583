"""Episodes as the samples of Every Eval Ever: agentic interactions, one a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

import msgspec

from toolshift.core.scene import Scene
from toolshift.core.step import Step
from toolshift.core.values import as_text
from toolshift.episode.episode import messages
from toolshift.measure.metrics import dimension_of, shift_of, tier_of
from toolshift.runs.cell import Cell
from toolshift.runs.run_folder import Record, RunFolder

Sample = dict[str, Any]
CLEAN = "clean"


def samples(folder: RunFolder, agent: str, common: Sample, prefix: str) -> Iterator[Sample]:
    """The scored episodes of an agent.

    A void episode says nothing of the agent, and the form has no word for that: it is left out.
    """
    took = folder.timings()
    for record in folder.records():
        if record.agent != agent or record.grade.excused:
            continue
        cell = folder.cell(record)
        result = f"{prefix}.{shift_of(cell) or CLEAN}.accuracy"
        head = {**common, "evaluation_name": result, "evaluation_result_id": result}
        yield {**head, **_sample(record, cell, folder.scene(cell), took.get(record.episode))}


def _sample(record: Record, cell: Cell, scene: Scene, seconds: float | None) -> Sample:
    said = messages(scene, record.steps)
    turns = [number for number, message in enumerate(said) if message["role"] == "assistant"]
    given = {"raw": "\n\n".join(ask.text for ask in scene.asks), "reference": _reference(scene)}
    content = msgspec.json.encode(given, order="sorted")
    return {
        "sample_id": f"{cell.lineage}#{cell.stack or 'clean'}#{cell.trial}",
        "sample_hash": sha256(content).hexdigest(),
        "interaction_type": "agentic",
        "input": given,
        "output": None,
        "messages": [_message(number, message) for number, message in enumerate(said)],
        "answer_attribution": _attribution(record.steps, turns),
        "evaluation": {
            "score": float(record.grade.passed),
            "is_correct": record.grade.passed,
            "num_turns": len(turns) or None,
            "tool_calls_count": sum(len(m.get("tool_calls", ())) for m in said),
        },
        "token_usage": _usage(record),
        "performance": None if seconds is None else {"latency_ms": round(1000 * seconds, 3)},
        "error": record.steps[-1].said if record.end == "crashed" and record.steps else None,
        "metadata": _metadata(record, cell, scene),
    }


def _reference(scene: Scene) -> list[str]:
    """The right end: the oracle's answers, or the refusal with its reason."""
    if not scene.solvable:
        return [f"refuse: {scene.outcome.refusal}"]
    return [step.said for step in scene.rehearsal if step.kind == "answer"]


def _message(number: int, message: dict[str, Any]) -> Sample:
    calls = message.get("tool_calls")
    named = message.get("tool_call_id")
    return {
        "turn_idx": number,
        "role": message["role"],
        "content": message["content"] or None,
        "tool_calls": [_call(each) for each in calls] if calls else None,
        "tool_call_id": [named] if named else None,
    }


def _call(call: dict[str, Any]) -> Sample:
    function = call["function"]
    try:
        given = msgspec.json.decode(function["arguments"])
    except (ValueError, RecursionError):  # the agent's own words, which were no JSON
        given = function["arguments"]
    named = given if isinstance(given, dict) else {"(not an object)": given}
    return {
        "id": call["id"],
        "name": function["name"],
        "arguments": {name: as_text(value) for name, value in named.items()},
    }


def _attribution(steps: Sequence[Step], turns: Sequence[int]) -> list[Sample]:
    """Where each answer and refusal stands, and how it was read."""
    found = [step for step in steps if step.kind in ("answer", "refuse")]
    order = list(dict.fromkeys(s.turn for s in steps if s.kind not in ("failure", "budget")))
    return [
        {
            "turn_idx": turns[order.index(step.turn)],
            "source": "messages[turn_idx].content" if step.prose
            else "messages[turn_idx].tool_calls",
            "extracted_value": step.said if step.kind == "answer" else step.name,
            "extraction_method": _method(step),
            "is_terminal": step is found[-1] and step is steps[-1],
        }
        for step in found
    ]  # fmt: skip


def _method(step: Step) -> str:
    if step.judge:
        return "llm_judge"
    return "reading of prose by rule" if step.prose else "protocol call"


def _usage(record: Record) -> Sample | None:
    used = record.usage
    if not used.input_tokens and not used.output_tokens:
        return None
    return {
        "input_tokens": used.input_tokens,
        "output_tokens": used.output_tokens,
        "total_tokens": used.input_tokens + used.output_tokens,
    }


def _metadata(record: Record, cell: Cell, scene: Scene) -> dict[str, str]:
    graded = record.grade
    return {
        "episode": record.episode,
        "scene": record.cell,
        "world": cell.world,
        "kind": cell.kind,
        "task": scene.task.id,
        "pool": cell.pool,
        "seed": str(cell.seed),
        "shifts": cell.stack or "clean",
        "tier": tier_of(cell),
        "dimension": dimension_of(cell),
        "trial": str(cell.trial),
        "end": record.end,
        "solvable": as_text(graded.solvable),
        "met": as_text(graded.met),
        "cause": graded.cause,
    }

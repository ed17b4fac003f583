"""Langfuse: its exported observations and traces, and the attributes that its SDK writes.

An observation has a `type`: `TOOL` is a call, `GENERATION` a turn of a model; `input`, `output`,
and `level`, which is `ERROR` where it failed. Exports have names like `traceId` or `trace_id`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolshift.data.traces.messages import plain_result, turn_of
from toolshift.data.traces.otlp import flat_span
from toolshift.data.traces.spans import Raw, Span, ToolRun, loose_arguments, objects, text_at

NAME = "Langfuse"
MARKS = ("langfuse.",)
_TYPE, _INPUT, _OUTPUT = (f"langfuse.observation.{key}" for key in ("type", "input", "output"))
_LEVEL = "langfuse.observation.level"
_TYPES = frozenset((
    "SPAN", "GENERATION", "EVENT", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING",
    "GUARDRAIL",
))  # fmt: skip


def spans_of(row: Mapping[str, Any]) -> list[Raw] | None:
    """The observations of a row: one, or those of a trace; None where it is of something else."""
    if isinstance(row.get("observations"), list) and "id" in row:
        found = [_observation(each, str(row["id"])) for each in objects(row["observations"])]
        return found if found or "sessionId" in row or "projectId" in row else None
    is_one = str(row.get("type")).upper() in _TYPES and ("traceId" in row or "trace_id" in row)
    return [_observation(row, "")] if is_one and ("input" in row or "level" in row) else None


def _observation(row: Mapping[str, Any], trace: str) -> Raw:
    attributes = {
        _TYPE: str(row.get("type") or "").lower(),
        _INPUT: row.get("input"),
        _OUTPUT: row.get("output"),
        _LEVEL: row.get("level"),
    }
    parent = row.get("parentObservationId") or row.get("parent_observation_id")
    return flat_span(
        {
            "traceId": trace,
            **row,
            "parent_id": parent,
            "events": None,
            "kind": None,
            "status": None,
        },
        attributes,
    )


def read(raw: Raw) -> Span | None:
    """What an observation says; None for a span of another convention."""
    attributes = raw.attributes
    kind = text_at(attributes, _TYPE).lower()
    if not kind:
        return Span(raw, NAME) if any(key.startswith(MARKS) for key in attributes) else None
    if kind == "tool":
        failed = True if str(attributes.get(_LEVEL)).upper() == "ERROR" else raw.failed
        given, told = loose_arguments(attributes.get(_INPUT)), attributes.get(_OUTPUT)
        return Span(raw, NAME, run=ToolRun(raw.name, given, plain_result(told), failed))
    if kind == "generation":
        return Span(raw, NAME, turn=turn_of(attributes.get(_INPUT), attributes.get(_OUTPUT)))
    return Span(raw, NAME)

"""MLflow: its traces as JSON (`{"info": ..., "data": {"spans": [...]}}`), and its attributes.

`mlflow.spanType` says what a span is: `TOOL` a call, `CHAT_MODEL` and `LLM` a turn of a model. Each
attribute is JSON in a string.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolshift.data.traces.messages import plain_result, turn_of
from toolshift.data.traces.otlp import attributes_of, flat_span
from toolshift.data.traces.spans import Raw, Span, ToolRun, decoded, loose_arguments, objects

NAME = "MLflow"
MARKS = ("mlflow.",)


def spans_of(row: Mapping[str, Any]) -> list[Raw] | None:
    """The spans of a trace; None where the row is of something else."""
    whole = decoded(row.get("trace"))
    if isinstance(whole, Mapping) and "info" in whole:  # a row of `search_traces`
        row = whole
    data = decoded(row.get("data"))
    data = data if isinstance(data, Mapping) else row
    head = row.get("info") if "info" in row else row.get("trace_info")
    if not isinstance(head, Mapping) or not isinstance(data.get("spans"), list):
        return None
    trace = str(head.get("trace_id") or head.get("request_id") or "")
    found = []
    for span in objects(data["spans"]):
        attributes = {k: decoded(v) for k, v in attributes_of(span.get("attributes")).items()}
        found.append(flat_span({"trace_id": trace, **span}, attributes))
    return found


def read(raw: Raw) -> Span | None:
    """What a span of MLflow says; None for a span of another convention."""
    attributes = raw.attributes
    kind = decoded(attributes.get("mlflow.spanType"))
    if not isinstance(kind, str):
        return Span(raw, NAME) if any(key.startswith(MARKS) for key in attributes) else None
    given, told = (decoded(attributes.get(f"mlflow.span{side}")) for side in ("Inputs", "Outputs"))
    if kind.upper() == "TOOL":
        run = ToolRun(raw.name, loose_arguments(given), plain_result(told), raw.failed)
        return Span(raw, NAME, run=run)
    if kind.upper() in ("CHAT_MODEL", "LLM"):
        tools = decoded(attributes.get("mlflow.chat.tools"))
        turn = turn_of(given, told, tools)
        if not turn.said:
            turn = turn_of(attributes.get("mlflow.chat.messages"), told, tools)
        return Span(raw, NAME, turn=turn)
    return Span(raw, NAME)

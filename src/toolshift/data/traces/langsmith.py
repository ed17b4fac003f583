"""LangSmith: its runs, as its SDK sends them and its exports hold them, children inside or not.

A run has a `run_type`: `tool` is a call, `llm` a turn of a model; `inputs`, `outputs`, and `error`
where it failed. Messages are those of OpenAI, or serialised objects of LangChain.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolshift.data.traces.messages import plain_result, turn_of
from toolshift.data.traces.otlp import flat_span
from toolshift.data.traces.spans import (
    Raw,
    Span,
    ToolRun,
    arguments_of,
    decoded,
    loose_arguments,
    objects,
    text_at,
)

NAME = "LangSmith"
MARKS = ("langsmith.",)
_TYPE, _INPUTS, _OUTPUTS, _ERROR, _TOOLS = (
    f"langsmith.run.{key}" for key in ("type", "inputs", "outputs", "error", "tools")
)


def spans_of(row: Mapping[str, Any]) -> list[Raw] | None:
    """The runs of a row: one, and those inside of it; None where it is of something else."""
    if not isinstance(row.get("run_type"), str) or "inputs" not in row:
        return None
    extra = decoded(row.get("extra"))
    given = extra.get("invocation_params") if isinstance(extra, Mapping) else None
    attributes = {
        _TYPE: row["run_type"].lower(),
        _INPUTS: row.get("inputs"),
        _OUTPUTS: row.get("outputs"),
        _ERROR: row.get("error"),
        _TOOLS: given.get("tools") if isinstance(given, Mapping) else None,
    }
    trace = row.get("trace_id") or row.get("id")
    one = flat_span(
        {
            **row,
            "trace_id": trace,
            "parent_id": row.get("parent_run_id") or _above(row.get("parent_run_ids")),
            "events": None,
            "status": None,
        },
        attributes,
    )
    inner = [raw for child in objects(row.get("child_runs")) for raw in spans_of(child) or ()]
    return [one, *inner]


def _above(ids: Any) -> Any:
    """The direct parent, which stands last in what the newer interface says of a run."""
    ids = decoded(ids)
    return ids[-1] if isinstance(ids, list) and ids else None


def read(raw: Raw) -> Span | None:
    """What a run says; None for a span of another convention."""
    attributes = raw.attributes
    kind = text_at(attributes, _TYPE)
    if not kind:
        return None
    given, told = decoded(attributes.get(_INPUTS)), decoded(attributes.get(_OUTPUTS))
    if kind == "tool":
        failed = True if attributes.get(_ERROR) else raw.failed
        return Span(raw, NAME, run=ToolRun(raw.name, _arguments(given), _result(told), failed))
    if kind == "llm":
        return Span(raw, NAME, turn=turn_of(given, told, attributes.get(_TOOLS)))
    return Span(raw, NAME)


def _arguments(given: Any) -> dict[str, Any] | None:
    """The arguments of a tool; LangChain gives them as the text of one input."""
    if isinstance(given, Mapping) and given.keys() == {"input"}:
        inner = loose_arguments(given["input"])
        if inner is not None:
            return inner
    return arguments_of(given)


def _result(told: Any) -> Any:
    """What a tool answered; what is no object is kept as its one output."""
    wrapped = isinstance(told, Mapping) and told.keys() == {"output"}
    return plain_result(told["output"] if wrapped else told)

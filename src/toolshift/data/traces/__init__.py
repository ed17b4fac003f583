"""Traces of production, in any dialect, as spans that are calls of tools and turns of models.

    reader = TraceReader()
    for row in rows:
        spans = reader.read(row)        # None: the row is no trace
        reader.unknown                  # spans of other work, or of a dialect that nobody reads

An *envelope* says where the spans of a row stand (OTLP, or the export of a platform); a *dialect*
says what the attributes of a span mean. Each is one file; a platform is both. A span may speak
several dialects, as where two libraries instrument one program: what the first leaves out is taken
from the next.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec

from toolshift.data.traces import (
    ai_sdk,
    gen_ai,
    langfuse,
    langsmith,
    mlflow,
    openinference,
    otlp,
    phoenix,
)
from toolshift.data.traces.spans import ModelTurn, Raw, Span, ToolRun, objects

ENVELOPES: tuple[Callable[[Mapping[str, Any]], list[Raw] | None], ...] = (
    mlflow.spans_of,
    langsmith.spans_of,
    langfuse.spans_of,
    phoenix.spans_of,
    otlp.spans_of,
)
DIALECTS: tuple[Callable[[Raw], Span | None], ...] = (
    gen_ai.read,
    openinference.read,
    ai_sdk.read,
    langfuse.read,
    langsmith.read,
    mlflow.read,
)
NAMES = (
    gen_ai.NAME, openinference.NAME, ai_sdk.NAME, langfuse.NAME, langsmith.NAME, "Phoenix",
    mlflow.NAME,
)  # fmt: skip
_PAGES = ("data", "spans", "traces", "runs", "observations", "items")
"""Where a page of an interface of a platform has its list of rows."""
_COLUMNS = {
    "spans of OTLP (`resourceSpans`)": {"resourceSpans", "resource_spans", "scopeSpans", "spans"},
    "one span a line (`name`, `attributes`)": {
        "name", "traceId", "spanId", "trace_id", "span_id", "parentSpanId", "startTimeUnixNano",
        "attributes", "kind", "status", "events",
    },
    "observations of Langfuse (`type`, `traceId`, `input`)": {
        "traceId", "trace_id", "type", "startTime", "input", "output", "level", "observations",
    },
    "runs of LangSmith (`run_type`, `inputs`)": {
        "run_type", "inputs", "outputs", "trace_id", "parent_run_id", "child_runs", "dotted_order",
    },
    "traces of MLflow (`info`, `data.spans`)": {
        "info", "data", "trace_info", "request_id", "spans",
    },
    "spans of Phoenix (`context.span_id`, `attributes...`)": {
        "context.span_id", "context.trace_id", "span_kind", "parent_id", "attributes.input.value",
        "status_code",
    },
}  # fmt: skip
"""The columns of each envelope, for the message where some are missing."""
_Told = TypeVar("_Told", ToolRun, ModelTurn)
MAX_OPEN = 512
"""Turns of models, told by records of a log, that are put together at a time."""


class TraceReader:
    """Reads rows of traces; memory does not grow with their number.

    Attributes:
        unknown: the spans of the last row that no dialect knows.
    """

    def __init__(self) -> None:
        self.unknown: list[Raw] = []
        self._open: OrderedDict[tuple[str, str], list[Raw]] = OrderedDict()

    def read(self, row: Mapping[str, Any]) -> list[Span] | None:
        """The spans of a row that are understood; None where the row is no trace."""
        raws = raws_of(row)
        if raws is None:
            return None
        self.unknown = []
        found: list[Span] = []
        for raw in raws:
            span = self._record(raw) if raw.log else understood(raw)
            if span is None:
                self.unknown.append(raw)
            else:
                found.append(span)
        return found

    def _record(self, raw: Raw) -> Span | None:
        """A record of a log: kept until the model's choice comes, which is the last of a turn."""
        if raw.name == gen_ai.DETAILS:
            return gen_ai.read(raw)
        if not raw.name.startswith("gen_ai."):
            return None
        key = (raw.trace, raw.id)
        records = self._open.setdefault(key, [])
        records.append(raw)
        self._open.move_to_end(key)
        if len(self._open) > MAX_OPEN:
            self._open.popitem(last=False)
        if raw.name != "gen_ai.choice":
            return Span(raw, gen_ai.NAME)
        return gen_ai.of_records(self._open.pop(key))


def raws_of(row: Mapping[str, Any]) -> list[Raw] | None:
    """The spans of a row before their dialect is known; None where the row is no trace."""
    for envelope in ENVELOPES:
        found = envelope(row)
        if found is not None:
            return found
    for key in _PAGES:
        listed = objects(row.get(key)) if isinstance(row.get(key), list) else []
        pages = [raws_of(each) for each in listed]
        if pages and any(page is not None for page in pages):
            return [raw for page in pages for raw in page or ()]
    return None


def understood(raw: Raw) -> Span | None:
    """What a span says, in all dialects that it speaks; None where none of them is known."""
    known = [span for dialect in DIALECTS if (span := dialect(raw)) is not None]
    telling = [span for span in known if span.run is not None or span.turn is not None]
    if not telling:
        return known[0] if known else None
    first = telling[0]
    for other in telling[1:]:
        if first.run is not None and other.run is not None:
            first = msgspec.structs.replace(first, run=_filled(first.run, other.run))
        elif first.turn is not None and other.turn is not None:
            agent = first.agent and other.agent
            turn = _filled(first.turn, other.turn)
            first = msgspec.structs.replace(first, turn=turn, agent=agent)
        elif first.run is None and other.run is not None:
            first = other  # a call says more than a turn that only names its tools
    return first


def _filled(first: _Told, other: _Told) -> _Told:
    """The first with what it does not say from the other."""
    missing = {
        name: getattr(other, name)
        for name in first.__struct_fields__
        if getattr(first, name) in (None, "", ())
    }
    return msgspec.structs.replace(first, **missing)


def not_known(raw: Raw) -> str:
    """Says what a span is that no dialect knows."""
    spaces = list(dict.fromkeys(f"{key.partition('.')[0]}.*" for key in raw.attributes))[:4]
    has = f"its attributes are {', '.join(spaces)}" if spaces else "it has no attributes"
    return f"a {'record' if raw.log else 'span'} of another convention; {has}"


def nearest(row: Mapping[str, Any]) -> str:
    """The envelope that has most of the columns of a row that none of them takes; "" for none."""
    shared = {name: len(columns & row.keys()) for name, columns in _COLUMNS.items()}
    best = max(shared, key=lambda name: shared[name])
    return best if shared[best] > 1 else ""

"""Spans as exporters write them: OTLP JSON, logs too, and one span a line as SDKs print it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from toolshift.data.traces.spans import Attributes, Raw, first_of, objects, seconds, took

_FAILED = (2, "2", "STATUS_CODE_ERROR", "ERROR", "Error", "error", "StatusCode.ERROR")
_WELL = (1, "1", "STATUS_CODE_OK", "OK", "Ok", "ok", "StatusCode.OK")
_SERVER = (2, "SPAN_KIND_SERVER", "SpanKind.SERVER", "SERVER")
_NANO = (
    ("startTimeUnixNano", "start_time_unix_nano"),
    ("endTimeUnixNano", "end_time_unix_nano"),
)
BODY = "event.body"
"""The attribute under which the body of a log's record stands."""


def spans_of(row: Mapping[str, Any]) -> list[Raw] | None:
    """The spans and records of a row; None where it is of something else."""
    found: list[Raw] = []
    known = False
    for outer, middle, inner, read in (
        ("resourceSpans", ("scopeSpans", "instrumentationLibrarySpans"), "spans", flat_span),
        ("resource_spans", ("scope_spans",), "spans", flat_span),
        ("resourceLogs", ("scopeLogs",), "logRecords", _record),
        ("resource_logs", ("scope_logs",), "log_records", _record),
    ):
        known = known or isinstance(row.get(outer), list)
        for resource in objects(row.get(outer)):
            for key in middle:
                for scope in objects(resource.get(key)):
                    found += [read(each) for each in objects(scope.get(inner))]
    if known:
        return found
    if not isinstance(row.get("attributes"), Mapping | list):
        return None
    return [_record(row) if "body" in row and not _is_span(row) else flat_span(row)]


def _is_span(row: Mapping[str, Any]) -> bool:
    return any(key in row for key in ("start_time", "startTimeUnixNano", "startTime", "parent_id"))


def flat_span(row: Mapping[str, Any], attributes: Attributes | None = None) -> Raw:
    """One span, by the names that the SDKs and OTLP have for its parts."""
    context = row.get("context") if isinstance(row.get("context"), Mapping) else {}
    assert isinstance(context, Mapping)
    nano = "startTimeUnixNano" in row or "start_time_unix_nano" in row
    start = first_of(row, *(_NANO[0] if nano else ("start_time", "startTime", "timestamp")))
    end = first_of(row, *(_NANO[1] if nano else ("end_time", "endTime")))
    events = [
        (str(each.get("name", "")), attributes_of(each.get("attributes")))
        for each in objects(row.get("events"))
    ]
    return Raw(
        name=str(row.get("name") or ""),
        trace=_id(
            context.get("trace_id") or first_of(row, "traceId", "trace_id", "context.trace_id")
        ),
        id=_id(
            context.get("span_id") or first_of(row, "spanId", "span_id", "context.span_id", "id")
        ),
        parent=_id(first_of(row, "parentSpanId", "parent_span_id", "parent_id", "parentId")),
        attributes=attributes_of(row.get("attributes")) if attributes is None else attributes,
        start=seconds(start, nano),
        ms=took(start, end, nano),
        failed=_failed(row),
        served=first_of(row, "kind", "span_kind") in _SERVER,
        events=tuple(events),
    )


def _record(row: Mapping[str, Any]) -> Raw:
    """A record of a log, as a part of the span that it belongs to."""
    attributes = attributes_of(row.get("attributes"))
    body = _value(row.get("body"))
    name = first_of(row, "eventName", "event_name") or attributes.get("event.name") or ""
    return Raw(
        name=str(name),
        trace=_id(first_of(row, "traceId", "trace_id")),
        id=_id(first_of(row, "spanId", "span_id")),
        attributes={**attributes, BODY: body} if body is not None else attributes,
        start=seconds(
            first_of(row, "timeUnixNano", "observedTimeUnixNano", "timestamp", "observed_timestamp")
        ),
        log=True,
    )


def _id(value: Any) -> str:
    return str(value or "").removeprefix("0x")


def _failed(row: Mapping[str, Any]) -> bool | None:
    status = row.get("status")
    if isinstance(status, Mapping):
        code = first_of(status, "code", "status_code")
    else:
        code = status if isinstance(status, str) else row.get("status_code")
    return True if code in _FAILED else False if code in _WELL else None


def attributes_of(raw: Any) -> Attributes:
    """Attributes by their whole names, from a list of OTLP, or from an object, nested or not."""
    if isinstance(raw, Mapping):
        nested = {k: v for k, v in raw.items() if "." not in k and isinstance(v, Mapping)}
        return {**dict(_whole_and_parts(nested, "", 0)), **raw} if nested else raw
    return {str(each.get("key")): _value(each.get("value")) for each in objects(raw)}


def _whole_and_parts(
    value: Mapping[str, Any], before: str, depth: int
) -> Iterator[tuple[str, Any]]:
    """What is nested, at every depth: an object is an attribute, and so is each part of it."""
    for key, inner in value.items():
        yield f"{before}{key}", inner
        if isinstance(inner, Mapping) and depth < 6:
            yield from _whole_and_parts(inner, f"{before}{key}.", depth + 1)


def _value(raw: Any) -> Any:
    """A value of OTLP, as JSON writes it."""
    if not isinstance(raw, Mapping) or len(raw) != 1:
        return raw
    ((kind, value),) = raw.items()
    if kind in ("arrayValue", "array_value") and isinstance(value, Mapping):
        listed = value.get("values")
        return [_value(item) for item in listed] if isinstance(listed, list) else []
    if kind in ("kvlistValue", "kvlist_value") and isinstance(value, Mapping):
        return {str(o.get("key")): _value(o.get("value")) for o in objects(value.get("values"))}
    if kind in ("intValue", "int_value") and isinstance(value, str):
        return int(value) if re.fullmatch(r"-?\d{1,19}", value, re.ASCII) else value
    if kind in _PLAIN:
        return value
    return raw


_PLAIN = tuple(
    name
    for kind in ("string", "bool", "int", "double", "bytes")
    for name in (f"{kind}Value", f"{kind}_value")
)

"""Phoenix: the spans that its client gives, as objects or as a table with a column each attribute.

What they say is OpenInference; only where the attributes stand is Phoenix's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolshift.data.traces.otlp import attributes_of, flat_span
from toolshift.data.traces.spans import Raw

_COLUMN = "attributes."
_IDS = frozenset(("context.span_id", "span_id", "spanId"))
"""What other exporters of tables call the id of a span, which Phoenix calls by the first name."""


def spans_of(row: Mapping[str, Any]) -> list[Raw] | None:
    """The span of a row, as an object or of a table; None where it is of something else."""
    kind = row.get("span_kind")
    told = {"openinference.span.kind": kind} if isinstance(kind, str) else {}
    bare = {**row, "kind": None, "span_kind": None}
    given = row.get("attributes")
    if told and isinstance(given, Mapping) and isinstance(row.get("context"), Mapping):
        return [flat_span(bare, {**told, **attributes_of(given)})]
    columns = {k.removeprefix(_COLUMN): v for k, v in row.items() if k.startswith(_COLUMN)}
    if not columns or not row.keys() & _IDS:
        return None
    named = attributes_of({k: v for k, v in columns.items() if v is not None})
    return [flat_span(bare, {**told, **named})]

"""Keeps the first traces of what `make.py` or `ai_sdk.mjs` wrote: python extract.py IN OUT N."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def trace_of(row: dict[str, Any]) -> str:
    """The id of the trace that a row is of."""
    context = row.get("context") or {}
    keys = ("trace_id", "traceId", "context.trace_id")
    return str(context.get("trace_id") or next((row[k] for k in keys if k in row), id(row)))


def first_traces(rows: list[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """The rows of the first traces."""
    names = list(dict.fromkeys(map(trace_of, rows)))[:count]
    kept = [row for row in rows if trace_of(row) in names]
    for row in kept:  # what is of the machine, and of no use here
        row.pop("resource", None)
        (row.get("extra") or {}).pop("runtime", None)
        told = row.get("attributes")
        if isinstance(told, dict) and "llm.input_messages.0.message.role" in told:
            told.pop("input.value", None)  # the same once more
        if row.get("attributes.llm.input_messages"):
            row.pop("attributes.input.value", None)
        for key in [key for key in row if key.startswith("attributes.llm.token_count")]:
            row.pop(key)
        if isinstance(row.get("info"), dict):
            _trim_mlflow(row)
    return kept


def _trim_mlflow(row: dict[str, Any]) -> None:
    row["info"] = {key: row["info"][key] for key in ("trace_id", "request_time", "state")}
    for span in row["data"]["spans"]:
        for key in ("tools", "mlflow.chat.tools"):
            span["attributes"].pop(key, None)  # the inputs have them too


def _is_count(attribute: dict[str, Any]) -> bool:
    """Whether an attribute is a number, as of tokens."""
    return bool(attribute["value"].keys() & {"intValue", "doubleValue"})


if __name__ == "__main__":
    text, count = Path(sys.argv[1]).read_text(), int(sys.argv[3])
    if text.startswith('{"resourceSpans"'):
        (resource,) = json.loads(text)["resourceSpans"]
        resource.pop("resource")
        for scope in resource["scopeSpans"]:
            scope["spans"] = [
                {
                    **{k: v for k, v in span.items() if v not in (0, []) and k != "flags"},
                    "attributes": [a for a in span["attributes"] if not _is_count(a)],
                }
                for span in first_traces(scope["spans"], count)
            ]
        written = json.dumps({"resourceSpans": [resource]}, separators=(",", ":")) + "\n"
    else:
        kept = first_traces([json.loads(line) for line in text.splitlines()], count)
        written = "".join(json.dumps(row) + "\n" for row in kept)
    Path(sys.argv[2]).write_text(written)

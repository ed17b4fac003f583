"""Writes the exports that need a server of a platform, by their documented forms: see ../README.md.

    python documented.py FILES

They are of the same conversations as the other files, and no library has written them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from shop import REQUESTS, SYSTEM, TOOLS, call_tool, next_reply

Step = tuple[str, str, Any, Any]


def steps_of(request: str) -> list[Step]:
    """What happens in one conversation: turns of the model and calls, with input and output."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": request},
    ]
    found: list[Step] = []
    while True:
        reply = next_reply(messages)
        given = {"messages": list(messages), "tools": TOOLS}
        found.append(("llm", "gpt-5", given, reply))
        if not reply.get("tool_calls"):
            return found
        messages.append(reply)
        for call in reply["tool_calls"]:
            name, arguments = call["function"]["name"], json.loads(call["function"]["arguments"])
            result = call_tool(name, arguments)
            found.append(("tool", name, arguments, result))
            content = json.dumps(result)
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})


def langfuse(number: int, steps: list[Step]) -> list[dict[str, Any]]:
    """Observations as the API and the export to a bucket have them."""
    return [
        {
            "id": f"o-{number}-{place}", "traceId": f"trace-{number}", "parentObservationId": None,
            "type": "GENERATION" if kind == "llm" else "TOOL", "name": name,
            "startTime": f"2026-11-27T10:0{number}:{place:02d}.000Z",
            "endTime": f"2026-11-27T10:0{number}:{place:02d}.250Z",
            "input": given, "output": told, "level": "DEFAULT", "statusMessage": None,
            "model": name if kind == "llm" else None, "metadata": {},
        }
        for place, (kind, name, given, told) in enumerate(steps)
    ]  # fmt: skip


def mlflow(number: int, steps: list[Step]) -> dict[str, Any]:
    """A trace as `Trace.to_json` writes it: each attribute is JSON in a string."""
    begun = 1_795_000_000_000_000_000 + number * 60_000_000_000
    spans = []
    for place, (kind, name, given, told) in enumerate(steps):
        output = {"choices": [{"index": 0, "message": told}]} if kind == "llm" else told
        attributes = {
            "mlflow.spanType": "CHAT_MODEL" if kind == "llm" else "TOOL",
            "mlflow.spanInputs": given,
            "mlflow.spanOutputs": output,
        }
        start = begun + place * 1_000_000_000
        spans.append(
            {
                "trace_id": f"t{number}==", "span_id": f"s{place}==", "parent_span_id": None,
                "name": name, "start_time_unix_nano": start,
                "end_time_unix_nano": start + 250_000_000, "events": [],
                "status": {"code": "STATUS_CODE_OK", "message": ""},
                "attributes": {key: json.dumps(value) for key, value in attributes.items()},
            }
        )  # fmt: skip
    info = {"trace_id": f"tr-{number}", "state": "OK", "request_time": "2026-11-27T10:00:00Z"}
    return {"info": info, "data": {"spans": spans}}


def phoenix(number: int, steps: list[Step]) -> list[dict[str, Any]]:
    """Rows of the table of spans that the client of Phoenix gives."""
    rows = []
    for place, (kind, name, given, told) in enumerate(steps):
        row: dict[str, Any] = {
            "context.span_id": f"{number}{place}", "context.trace_id": f"{number}",
            "name": name, "span_kind": "LLM" if kind == "llm" else "TOOL", "parent_id": None,
            "start_time": f"2026-11-27T10:0{number}:{place:02d}.000000+00:00",
            "end_time": f"2026-11-27T10:0{number}:{place:02d}.250000+00:00",
            "status_code": "OK", "events": [],
            "attributes.openinference.span.kind": "LLM" if kind == "llm" else "TOOL",
        }  # fmt: skip
        if kind == "llm":
            row["attributes.llm.input_messages"] = [_nested(each) for each in given["messages"]]
            row["attributes.llm.output_messages"] = [_nested(told)]
            tools = [{"tool": {"json_schema": json.dumps(tool)}} for tool in given["tools"]]
            row["attributes.llm.tools"] = tools
        else:
            row["attributes.tool.name"] = name
            row["attributes.input.value"] = json.dumps(given)
            row["attributes.output.value"] = json.dumps(told)
        rows.append(row)
    return rows


def _nested(message: dict[str, Any]) -> dict[str, Any]:
    inner = {key: value for key, value in message.items() if key != "tool_calls"}
    calls = [{"tool_call": call} for call in message.get("tool_calls", ())]
    return {"message": {**inner, "tool_calls": calls} if calls else inner}


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    told = [steps_of(request) for request in REQUESTS[:3]]
    pages = [each for number, steps in enumerate(told) for each in langfuse(number, steps)]
    page = {"data": pages, "meta": {"page": 1, "limit": 50}}
    (folder / "langfuse_export.json").write_text(json.dumps(page, indent=1) + "\n")
    traces = [mlflow(number, steps) for number, steps in enumerate(told)]
    (folder / "mlflow_export.jsonl").write_text("".join(json.dumps(t) + "\n" for t in traces))
    rows = [each for number, steps in enumerate(told) for each in phoenix(number, steps)]
    (folder / "phoenix_table.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))

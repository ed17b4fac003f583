"""Writes the export of Langfuse, whose server does not run here, by its documented form.

    python documented.py FOLDER

It is of the same conversations as the other files, and no library has written it.
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


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    told = [steps_of(request) for request in REQUESTS[:3]]
    pages = [each for number, steps in enumerate(told) for each in langfuse(number, steps)]
    page = {"data": pages, "meta": {"page": 1, "limit": 50}}
    (folder / "langfuse_export.json").write_text(json.dumps(page, indent=1) + "\n")

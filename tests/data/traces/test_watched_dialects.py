"""The same calls in three dialects, of which the last hundred fail: one alarm in each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from running import Run

TOOL = {"name": "weather", "parameters": {"type": "object", "properties": {}}}
FUNCTION = {"type": "function", "function": TOOL}
LISTS: dict[str, dict[str, Any]] = {
    "gen_ai": {"gen_ai.operation.name": "chat", "gen_ai.tool.definitions": [FUNCTION]},
    "OpenInference": {
        "openinference.span.kind": "LLM",
        "llm.tools.0.tool.json_schema": json.dumps(FUNCTION),
    },
    "AI SDK": {
        "ai.operationId": "ai.generateText.doGenerate",
        "ai.prompt.tools": [json.dumps({"type": "function", "name": "weather", "inputSchema": {}})],
    },
}


def called(dialect: str, result: Any) -> dict[str, Any]:
    told = json.dumps(result)
    return {
        "gen_ai": {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "weather",
            "gen_ai.tool.call.arguments": "{}",
            "gen_ai.tool.call.result": told,
        },
        "OpenInference": {
            "openinference.span.kind": "TOOL",
            "tool.name": "weather",
            "input.value": "{}",
            "output.value": told,
        },
        "AI SDK": {
            "ai.operationId": "ai.toolCall",
            "ai.toolCall.name": "weather",
            "ai.toolCall.args": "{}",
            "ai.toolCall.result": told,
        },
    }[dialect]


@pytest.mark.parametrize("in_result", [True, False], ids=["result", "status"])
@pytest.mark.parametrize("dialect", LISTS)
def test_errors_raise_the_alarm_in_each_dialect(
    dialect: str, in_result: bool, toolshift: Run, tmp_path: Path
) -> None:
    rows = [{"name": "chat", "attributes": LISTS[dialect]}]
    for number in range(360):
        bad = number >= 260
        result = {"isError": True, "content": []} if bad and in_result else {"sky": "clear"}
        status = {"status_code": "ERROR" if bad and not in_result else "UNSET"}
        one = {"name": "weather", "attributes": called(dialect, result), "status": status}
        rows.append({**one, "context": {"trace_id": "0x1", "span_id": hex(number + 2)}})
    (tmp_path / "spans.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, out, _ = toolshift("watch", "spans.jsonl")
    assert (code, "errors_up" in out) == (1, True)
    assert toolshift("lock", "spans.jsonl", "--out", "t.lock")[0] == 0
    (tool,) = json.loads((tmp_path / "t.lock").read_text())["tools"]
    assert "weather" in json.dumps(tool)


@pytest.mark.parametrize("told", [True, False])
def test_calls_without_results_are_said(told: bool, toolshift: Run, tmp_path: Path) -> None:
    one = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather"}
    one |= {"gen_ai.tool.call.result": '{"sky": "clear"}'} if told else {}
    row = {"name": "weather", "attributes": one, "context": {"trace_id": "0x1", "span_id": "0x2"}}
    (tmp_path / "spans.jsonl").write_text(json.dumps(row) + "\n")
    code, _, err = toolshift("watch", "spans.jsonl")
    assert (code, "No call has a result" in err) == (0, not told)

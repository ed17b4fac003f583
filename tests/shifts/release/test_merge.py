"""Which new tool stands for which old ones, by the choices of a parameter."""

from __future__ import annotations

from typing import Any

import pytest

from toolshift.interop.tools import from_mcp
from toolshift.shifts.release.mapping import Answers
from toolshift.shifts.release.merge import proposed_merges


def tool(name: str, *choices: str) -> dict[str, Any]:
    params: dict[str, Any] = {"run_id": {"type": "string"}}
    if choices:
        params["method"] = {"type": "string", "enum": list(choices)}
    return {"name": name, "inputSchema": {"type": "object", "properties": params}}


OLD = ["get_workflow", "get_workflow_run", "list_workflows", "list_workflow_runs"]
READ = tool("actions_get", "get_workflow", "get_workflow_run", "get_workflow_job")
LISTS = tool("actions_list", "list_workflows", "list_workflow_runs", "list_workflow_jobs")


@pytest.mark.parametrize("come", [[READ, LISTS], [LISTS, READ]], ids=["read first", "list first"])
@pytest.mark.parametrize("gone", [OLD, OLD[1:], OLD[2:]], ids=len)
def test_a_tool_is_the_choice_that_has_its_very_name(
    come: list[dict[str, Any]], gone: list[str]
) -> None:
    merges = proposed_merges(from_mcp([tool(name) for name in gone]), from_mcp(come), Answers())
    found = {old: (new, choice) for new, one in merges.items() for choice, old in one.tools.items()}
    for old in gone:
        where = "actions_list" if old.startswith("list") else "actions_get"
        assert found.get(old, (where, old)) == (where, old)
    assert {"list_workflows", "list_workflow_runs"} <= found.keys()

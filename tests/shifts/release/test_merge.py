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


GUIDES = ["get_task_creation_guide", "get_task_execution_guide", "get_task_closing_guide"]
CHOICES = ("task-creation", "task-execution", "task-closing")
INSTRUCTIONS = tool("get_instructions", "overview", *CHOICES)


def merged(gone: list[str], *come: dict[str, Any]) -> dict[str, str]:
    merges = proposed_merges(from_mcp([tool(name) for name in gone]), from_mcp(come), Answers())
    return {old: choice for one in merges.values() for choice, old in one.tools.items()}


@pytest.mark.parametrize("noun", ["guide", "manual", "howto_page"])
def test_tools_that_differ_in_the_choice_alone_may_have_had_another_noun(noun: str) -> None:
    gone = [name.replace("guide", noun) for name in GUIDES]
    assert merged(gone, INSTRUCTIONS) == dict(zip(gone, CHOICES, strict=True))


def test_a_word_says_too_little_for_another_noun() -> None:
    gone = ["create_user", "update_user", "delete_user"]
    assert not merged(gone, tool("manage_order", "create", "update", "delete"))


def test_a_noun_of_one_tool_is_another_tool() -> None:
    gone = ["get_task_creation_guide", "get_task_execution_log"]
    assert not merged(gone, INSTRUCTIONS)


def test_choices_of_two_new_tools_tell_no_noun() -> None:
    assert not merged(GUIDES, INSTRUCTIONS, {**INSTRUCTIONS, "name": "get_templates"})

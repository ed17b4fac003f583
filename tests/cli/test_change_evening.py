"""`toolshift change` over a maintenance desk: what is said of tasks that meet several changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from running import Run

from toolshift.shifts.files import FILES

DESK = '''
def list_parts(machine: str) -> list[dict]:
    """List the parts of a machine."""
    return [{"part_no": "P-1", "name": "belt"}, {"part_no": "P-2", "name": "jaw"}]

def reserve(part_no: str) -> dict:
    """Reserve a part."""
    return {"reference": f"R-{part_no}"}

def count(hall: str, idle: bool = True) -> dict:
    """Count the machines of a hall."""
    return {"machines": 40 if idle else 20}

def plan(machine: str, kind: str) -> dict:
    """Plan a service."""
    return {"service": f"S-{kind}"}
'''
AGENTS = """
import json

def fixed(messages, tools):
    got = [json.loads(m["content"]) for m in messages if m["role"] == "tool"]
    if "hall" in messages[1]["content"]:
        if not got:
            return {"tool_calls": [{"name": "count", "arguments": {"hall": "B"}}]}
        return f"There are {got[0]['machines']} machines."
    if not got:
        return {"tool_calls": [{"name": "list_parts", "arguments": {"machine": "M-1"}}]}
    if len(got) == 1:
        number = got[0][0]["part_no"]
        return {"tool_calls": [{"name": "reserve", "arguments": {"part_no": number}}]}
    return got[1]["reference"]
"""
TASKS = """
world: parts
tools: {python: evening_tools}
writes: [reserve, plan]
tasks:
  - id: belt
    ask: Reserve the first part of M-1 and tell me the reference.
    calls:
      - {name: list_parts, arguments: {machine: M-1}}
      - {name: reserve, arguments: {part_no: P-1}}
    check: {calls: true, answer: R-P-1}
  - id: count
    ask: How many machines has hall B, idle ones too?
    calls: [{name: count, arguments: {hall: B}}]
    check: {answer: 40, example: There are 40 machines.}
"""
TEXT: dict[str, Any] = {"type": "string"}


def listed(name: str, told: str, needs: dict[str, Any], **options: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {**needs, **options}, "required": [*needs]}
    return {"name": name, "description": told, "inputSchema": schema}


def tools(*, later: bool) -> list[dict[str, Any]]:
    parts = {"type": "array", "items": {"type": "object", "properties": {"part_no": TEXT}}}
    place = "items" if later else "result"
    page = {"next_cursor": TEXT, "cursor": TEXT} if later else {}
    listing = listed("list_parts", "List the parts of a machine.", {"machine": TEXT})
    if later:
        listing["inputSchema"]["properties"]["cursor"] = TEXT
        page = {"next_cursor": {"type": ["string", "null"]}}
    listing["outputSchema"] = {"type": "object", "properties": {place: parts, **page}}
    center = {"cost_center": TEXT} if later else {}
    idle = {"type": "boolean", "default": not later}
    return [
        listing,
        listed("reserve", "Reserve a part.", {"part_no": TEXT, **center}),
        listed("count", "Count the machines of a hall.", {"hall": TEXT}, idle=idle),
        listed("plan", "Plan a service.", {"machine": TEXT, "kind": TEXT}),
    ]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(FILES, "")
    monkeypatch.chdir(tmp_path)
    files = {"evening_tools.py": DESK, "evening_agents.py": AGENTS, "tasks.yaml": TASKS}
    files["old.json"] = json.dumps(tools(later=False))
    files["new.json"] = json.dumps(tools(later=True))
    files["answers.toml"] = '[given.reserve]\ncost_center = "CC-4"\n[pages.list_parts]\nsize = 1\n'
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return tmp_path


WORDS = ("change", "old.json", "new.json", "--world", "tasks.yaml", "--mapping", "answers.toml")
AGENT = ("--agent", "evening_agents:fixed", "--out", "run")


def test_a_change_that_an_agent_never_came_to_is_not_why_it_failed(
    toolshift: Run, desk: Path
) -> None:
    _, said, _ = toolshift(*WORDS, *AGENT, "--json")
    found = json.loads(said)
    ends = found["outcomes"]["evening_agents:fixed"]
    assert ends["belt"]["shifted"] == "failed: its code raised KeyError: 0"
    rows = {(r["change"]["old"], r["change"]["kind"]): r for r in found["rows"]}
    paged = rows["list_parts", "output_schema_changed"]
    assert paged["untested"] == ""
    center = rows["reserve", "required_parameter_added"]
    assert center["untested"] == "agents fail before they call it"
    _, said, _ = toolshift(*WORDS, *AGENT)
    lines = said.splitlines()
    place = next(n for n, line in enumerate(lines) if "cost_center" in line and "breaking" in line)
    assert "fails before it" in " ".join(lines[place : place + 4])
    assert max(map(len, lines)) <= 100


def test_a_call_that_leaves_out_what_has_another_default_is_said(
    toolshift: Run, desk: Path
) -> None:
    _, said, _ = toolshift(*WORDS, *AGENT, "--junit", "said.xml", "--markdown", "said.md")
    told = "idle of count is false where it is left out, and was true"
    for text in (said, Path("said.xml").read_text(), Path("said.md").read_text()):
        assert told in " ".join(text.split())
    found = [json.loads(line) for line in Path("run/episodes.jsonl").read_text().splitlines()]
    lost = next(each["episode"] for each in found if each["grade"]["cause"] == "bad_arguments")
    _, said, _ = toolshift("trace", "run", lost)
    assert "idle of count is false where it is left out, and was true" in " ".join(said.split())


def test_the_same_change_of_several_tools_is_one_row(toolshift: Run, desk: Path) -> None:
    names = ("get_a", "get_b", "get_c", "get_d")
    old = [listed(name, f"Show {name}.", {"id": TEXT}) for name in names]
    new = [listed(name, f"Show {name}.", {"id": {"type": "integer"}}) for name in names]
    for name, each in (("old.json", old), ("new.json", new)):
        Path(name).write_text(json.dumps(each))
    _, said, _ = toolshift("change", "old.json", "new.json")
    assert "1 change (1 breaking)" in said
    assert "Not tested: 1 breaking change," in said
    assert "get_a, get_b, get_c and 1 more, id: a parameter is of another type" in " ".join(
        said.split()
    )
    toolshift("change", "old.json", "new.json", "--markdown", "said.md")
    assert Path("said.md").read_text().count("another type") == 1
    _, said, _ = toolshift("change", "old.json", "new.json", "--json")
    assert len(json.loads(said)["rows"]) == len(names)


@pytest.mark.parametrize("later", ["problem", "same", "none"])
def test_errors_in_another_form_are_said(toolshift: Run, desk: Path, later: str) -> None:
    def document(kind: str, **values: Any) -> dict[str, Any]:
        body = {"type": "object", "properties": values}
        answers: dict[str, Any] = {"200": {"description": "ok"}}
        if values:
            answers["default"] = {"description": "no", "content": {kind: {"schema": body}}}
        get = {"operationId": "get_a", "summary": "Show a.", "responses": answers}
        info = {"title": "t", "version": "1"}
        return {"openapi": "3.1.0", "info": info, "paths": {"/a": {"get": get}}}

    new = {
        "problem": document("application/problem+json", title=TEXT, detail=TEXT),
        "same": document("application/json", error=TEXT),
        "none": document("application/json"),
    }
    Path("a.json").write_text(json.dumps(document("application/json", error=TEXT)))
    Path("b.json").write_text(json.dumps(new[later]))
    _, said, _ = toolshift("change", "a.json", "b.json")
    assert ("errors have another form: error -> detail, title" in said) is (later == "problem")


def test_each_task_that_is_left_out_has_its_reason(toolshift: Run, desk: Path) -> None:
    Path("answers.toml").write_text("[pages.list_parts]\nsize = 1\n")
    _, said, _ = toolshift(*WORDS, *AGENT)
    assert "1 affected task" in said
    assert "task belt: " in said

"""Lists that a release has put into an object, in pages, under the shifts that lie above it."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from toolshift.core.scene import Applied
from toolshift.core.shift import NotApplicable
from toolshift.core.tool import Result, as_openai
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import Episode
from toolshift.episode.grade import grade
from toolshift.episode.oracle import OracleAgent
from toolshift.shifts.registry import compose, find_shift
from toolshift.shifts.release.file import FORMAT, ShiftFile
from toolshift.shifts.release.inputs import read_side
from toolshift.shifts.release.mapping import Answers
from toolshift.shifts.release.resolve import settle
from toolshift.worlds.registry import find_world

SHIFTS = {
    "format_drift": (1, 2, 3),
    "csv_results": (2,),
    "tool_migrated": (1, 2, 3),
    "merged_tools": (2,),
    "missing_values": (1,),
    "default_change": (3,),
    "parameter_rename": (2,),
}
CASES = [(name, severity) for name, all_ in SHIFTS.items() for severity in all_]
WHICH = [f"{name}:{severity}" for name, severity in CASES]
TEXT = {"type": "string"}


def _listed(world: Any, paged: bool) -> list[dict[str, Any]]:
    documents = []
    for tool in world.tools:
        function = as_openai(tool)["function"]
        schema = copy.deepcopy(function["parameters"])
        document = {"name": tool.name, "description": tool.description, "inputSchema": schema}
        if tool.many:
            fields = {field.path[-1]: {"type": field.type} for field in tool.returns}
            rows = {"type": "array", "items": {"type": "object", "properties": fields}}
            held = {"items": rows, "next_cursor": {"type": ["string", "null"]}}
            named = held if paged else {"result": rows}
            wrap = {} if paged else {"x-fastmcp-wrap-result": True}
            first = next(iter(named))
            returned = {"type": "object", "properties": named, "required": [first], **wrap}
            document["outputSchema"] = returned
            schema["properties"] |= {"cursor": TEXT} if paged else {}
        documents.append(document)
    return documents


def _released(folder: Path, world: Any) -> Applied:
    sides = []
    for name, paged in (("old", False), ("new", True)):
        (folder / f"{name}.json").write_text(json.dumps(_listed(world, paged)))
        sides.append(read_side(str(folder / f"{name}.json")))
    sizes: dict[str, Any] = {tool.name: {"size": 1} for tool in world.tools if tool.many}
    answers = settle(*sides, Answers(pages=sizes), accept=True).answers
    file = folder / "paged.json"
    file.write_bytes(ShiftFile(FORMAT, "paged", *sides, answers).encode())
    return Applied(find_shift(str(file)).name, 2)


@pytest.mark.parametrize(("name", "severity"), CASES, ids=WHICH)
@pytest.mark.parametrize(
    ("domain", "kind"), [("poi", "best_rated"), ("medical", "panel"), ("retail", "nearest_item")]
)
def test_the_oracle_reads_all_pages(
    tmp_path: Path, domain: str, kind: str, name: str, severity: int
) -> None:
    world = find_world(domain)
    scene = make_scene(world, kind, 1)
    try:
        shifted = compose(scene, [_released(tmp_path, world), Applied(name, severity)])
    except NotApplicable as reason:
        if name != "merged_tools" or "oracle" in str(reason):
            raise
        pytest.skip(str(reason))
    episode = Episode(shifted)
    OracleAgent().play(episode)
    assert grade(episode).passed
    counts = [
        len([s for s in steps if s.kind == "call"]) for steps in (scene.rehearsal, episode.steps)
    ]
    assert counts[0] < counts[1] or name == "merged_tools"


@pytest.mark.parametrize(
    ("data", "inside", "records"),
    [
        ({"a": 1}, (), [{"a": 1}]),
        ([{"a": 1}, {"a": 2}], (), [{"a": 1}, {"a": 2}]),
        ({"items": [{"a": 1}], "next": "x"}, ("items",), [{"a": 1}]),
        ({"page": {"items": [{"a": 1}]}, "next": "x"}, ("page", "items"), [{"a": 1}]),
        ({"next": "x"}, ("items",), []),
    ],
)
def test_records_are_put_back_where_they_stood(
    data: Any, inside: tuple[str, ...], records: list[dict[str, Any]]
) -> None:
    before = copy.deepcopy(data)
    result = Result(True, data, inside=inside)
    assert result.records == records
    assert result.with_records(records).data == data
    if records:
        assert result.with_records([{"b": 0} for _ in records]).records[0] == {"b": 0}
    assert data == before

"""Names of foreign tools from their descriptions: telling, and apart from each other."""

from __future__ import annotations

from typing import Any

import pytest

from toolshift.core.scene import Applied
from toolshift.core.tool import DESCRIPTION, NAME, Tool
from toolshift.episode.draw import make_scene
from toolshift.interop.tools import from_mcp
from toolshift.shifts.described_names import described_names
from toolshift.shifts.live import live_scene, shifted
from toolshift.shifts.registry import compose
from toolshift.shifts.stacks import read_stack
from toolshift.worlds.registry import find_world


def tool(name: str, description: str, **more: Any) -> Tool:
    return Tool(name, description, (), (), origin=(name,), **more)


@pytest.mark.parametrize(
    ("name", "description", "new"),
    [
        ("wt_st", "Shows the working tree status", "working_tree_status"),
        ("q", "Search for nodes in the graph based on a query", "nodes_graph"),
        ("thinkLots", "A detailed tool for dynamic problem-solving.", "DynamicProblemSolving"),
        ("zap-it", "Defragments a disk.\n\nArgs: none", "defragment-disk"),
    ],
)
def test_a_name_says_what_the_description_says(name: str, description: str, new: str) -> None:
    found = described_names([tool(name, description)], "dev")[name]
    assert found.lower().endswith(new.lower()), found
    assert found != name


@pytest.mark.parametrize(
    "description", ["", "Echo.", "The tool.", "列出所有文件", "...", "(a b c)"]
)
def test_a_description_that_says_too_little_gives_no_name(description: str) -> None:
    assert described_names([tool("x", description)], "dev") == {}


def test_tools_that_say_nearly_the_same_are_told_apart() -> None:
    tools = [
        tool("a", "Shows changes in the working directory that are not staged"),
        tool("b", "Shows changes in the working directory that are staged"),
        tool("c", "Shows changes"),
        tool("d", "Does one thing"),
        tool("e", "Does one thing"),
    ]
    found = described_names(tools, "dev")
    assert {*found} >= {"a", "b", "c"}
    assert not {"d", "e"} & {*found}  # one name for two would tell neither
    assert len({*found.values()}) == len(found)
    assert not {*found.values()} & {each.name for each in tools}


def test_pools_differ_and_long_sentences_make_no_long_names() -> None:
    words = " ".join(f"extraordinarily{chr(97 + n)}" for n in range(20))
    tools = [tool("a", "Creates a branch"), tool("b", f"Creates {words}")]
    names = [described_names(tools, pool) for pool in ("train", "dev", "test")]
    assert len({each["a"] for each in names}) == 3
    assert all(len(name) <= 64 for each in names for name in each.values())


def test_a_name_that_tells_nothing_any_more_is_given_none() -> None:
    hidden = tool("KX-1", "Shows the working tree status", channels=frozenset((DESCRIPTION,)))
    assert described_names([hidden], "dev") == {}
    assert described_names([hidden.with_(channels=frozenset((NAME,)))], "dev")


def test_a_live_tool_of_unknown_words_is_renamed_by_its_description() -> None:
    listed = [
        {"name": "zap_xyzzy", "description": "Defragments the disk of a machine."},
        {"name": "open_nodes", "description": "Open specific nodes of the graph by their names"},
    ]
    toolbox = from_mcp(listed)
    scene = shifted(live_scene(toolbox, pool="test"), (Applied("semantic_rename", 3),))
    assert [each.name for each in scene.tools] == [
        "defragment_disk_machine",
        "open_nodes_graph",
    ]


def test_the_worlds_that_ship_keep_their_synonyms() -> None:
    scene = make_scene(find_world("poi"), "visit", 0)
    stack = read_stack("identity_erasure:3+semantic_rename:3")
    only = compose(scene, read_stack("semantic_rename:3"))
    assert {each.name for each in only.tools}.isdisjoint(
        described_names(scene.tools, "dev").values()
    )
    with pytest.raises(Exception, match="no tool that the task needs"):
        compose(scene, stack)

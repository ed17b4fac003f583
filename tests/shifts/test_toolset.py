"""How tools are offered: behind an action, behind a search, in a list out of date; live too."""

from __future__ import annotations

import json
from typing import Any

import pytest
from connect.shop_server import TOOLS
from scenes import shifted

from toolshift.core.scene import Applied, Scene
from toolshift.core.shift import NotApplicable
from toolshift.core.tool import Result, as_openai
from toolshift.core.world import POOLS
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import Episode
from toolshift.interop.tools import Toolbox, from_mcp
from toolshift.shifts.live import Live, live_scene
from toolshift.shifts.live import shifted as shifted_live
from toolshift.worlds.registry import find_world

ORDER = {"order_ref": "o-1"}


class Shop:
    """A live shop behind some shifts, and what reaches it."""

    def __init__(self, *stack: tuple[str, int], tools: list[dict[str, Any]] = TOOLS) -> None:
        self.heard: list[tuple[str, dict[str, Any]]] = []
        self.toolbox: Toolbox = from_mcp(tools)
        scene = shifted_live(live_scene(self.toolbox), tuple(Applied(*one) for one in stack))
        self.live = Live(scene, self.toolbox, self.carry)

    def carry(self, name: str, arguments: dict[str, Any]) -> Result:
        self.heard.append((name, arguments))
        source = self.toolbox.sources[name]
        return Result(True, source.example(), source.tool.returns)

    def call(self, name: str, **arguments: Any) -> Result:
        return self.live.call(name, arguments).result

    def shown(self) -> dict[str, dict[str, Any]]:
        return {tool.name: self.toolbox.speak(tool) for tool in self.live.tools()}


def code(result: Result) -> str:
    return "" if result.ok else str(result.data["error"]["code"])


# -- behind an action --------------------------------------------------------------------------


def test_live_tools_behind_an_action_are_called_with_their_own_arguments() -> None:
    shop = Shop(("tools_by_action", 3))
    ((name, document),) = shop.shown().items()
    schema = document["inputSchema"]
    (chooser,) = schema["required"]
    assert schema["properties"][chooser]["enum"] == [tool["name"] for tool in TOOLS]
    assert document["annotations"] == {"readOnlyHint": False}
    assert shop.call(name, **{chooser: "get_order"}, **ORDER).ok
    assert shop.heard == [("get_order", ORDER)]
    missing = shop.call(name, **{chooser: "get_order"})
    surplus = shop.call(name, **{chooser: "get_order"}, **ORDER, reason="late")
    unknown = shop.call(name, **{chooser: "get_orders"}, **ORDER)
    for wrong in (missing, surplus, unknown):
        assert code(wrong) == "invalid_arguments"
    assert "order_ref" in missing.data["error"]["message"]
    assert "reason" in surplus.data["error"]["message"]
    assert len(shop.heard) == 1


def test_a_write_behind_an_action_reaches_the_tool_once() -> None:
    shop = Shop(("tools_by_action", 3))
    ((name, document),) = shop.shown().items()
    (chooser,) = document["inputSchema"]["required"]
    assert shop.call(name, **{chooser: "cancel_order"}, **ORDER, reason="late").ok
    assert shop.heard == [("cancel_order", {**ORDER, "reason": "late"})]


def test_parameters_of_one_name_and_two_schemas_get_two_names() -> None:
    def listed(name: str, kind: str) -> dict[str, Any]:
        properties = {"id": {"type": kind}}
        schema = {"type": "object", "properties": properties, "required": ["id"]}
        return {"name": name, "description": name, "inputSchema": schema}

    shop = Shop(("tools_by_action", 3), tools=[listed("one", "string"), listed("two", "integer")])
    ((name, document),) = shop.shown().items()
    properties = document["inputSchema"]["properties"]
    (chooser,) = document["inputSchema"]["required"]
    assert [properties[key]["type"] for key in ("id", "id_2")] == ["string", "integer"]
    assert shop.call(name, **{chooser: "two"}, id_2=7).ok
    assert shop.heard == [("two", {"id": 7})]


def test_one_tool_alone_cannot_be_merged() -> None:
    with pytest.raises(NotApplicable, match="no other tool to merge with"):
        Shop(("tools_by_action", 2), tools=TOOLS[:1])
    with pytest.raises(NotApplicable, match="not two tools"):
        Shop(("tools_behind_search", 2), tools=TOOLS[:1])


# -- behind a search ---------------------------------------------------------------------------


def test_live_tools_behind_a_search_are_found_and_called() -> None:
    shop = Shop(("tools_behind_search", 2))
    search, run = shop.shown()
    query, choice, nest = (
        key for name in (search, run) for key in shop.shown()[name]["inputSchema"]["properties"]
    )
    everything = shop.call(search, **{query: ""})
    assert [one["name"] for one in everything.data] == [tool["name"] for tool in TOOLS]
    schema = json.loads(everything.data[1]["parameters"])
    assert schema["required"] == ["order_ref"]
    some = shop.call(search, **{query: "Notes that I could read"})
    assert [one["name"] for one in some.data] == ["read_note"]
    assert len(shop.call(search, **{query: "zzz"}).data) == len(TOOLS)
    assert shop.call(run, **{choice: "get_order", nest: ORDER}).ok
    assert shop.heard == [("get_order", ORDER)]
    assert code(shop.call(run, **{choice: "get_orders", nest: ORDER})) == "unknown_tool"
    assert code(shop.call(run, **{choice: "get_order", nest: {}})) == "invalid_arguments"
    assert code(shop.call("get_order", **ORDER)) == "unknown_tool"
    assert len(shop.heard) == 1


@pytest.mark.parametrize("pool", POOLS)
def test_what_is_behind_a_search_is_not_shown_before(pool: str) -> None:
    clean = make_scene(find_world("poi"), "booking", 0, pool=pool)
    scene = shifted(clean, ("tools_behind_search", 2))
    assert scene is not None
    shown = json.dumps([as_openai(tool) for tool in scene.tools])
    assert not any(tool.name in shown for tool in clean.tools)
    assert not any(tool.description in shown for tool in clean.tools)


# -- a list out of date ------------------------------------------------------------------------


def stale(severity: int) -> tuple[Scene, Scene]:
    clean = make_scene(find_world("poi"), "booking", 0)
    scene = shifted(clean, ("stale_tool_list", severity))
    assert scene is not None
    return clean, scene


@pytest.mark.parametrize("severity", [1, 2, 3])
def test_a_stale_list_looks_as_it_was_until_a_call_fails(severity: int) -> None:
    clean, scene = stale(severity)
    episode = Episode(scene)
    assert [as_openai(t) for t in episode.tools] == [as_openai(t) for t in clean.tools]
    failed = next(step for step in scene.calls if not step.ok)
    before = [step for step in scene.calls if step.ok][: scene.calls.index(failed)]
    for step in (*before, failed):
        text, result = episode.call(step.name, step.arguments)
    assert failed.name in text
    assert result.provoked
    names = {tool.name for tool in episode.tools}
    assert failed.name not in names
    assert len(names - {tool.name for tool in clean.tools}) == {1: 1, 2: 3, 3: 12}[severity]
    assert not any(name in text for name in names - {tool.name for tool in clean.tools})


def test_a_stale_list_costs_one_call_however_much_has_changed() -> None:
    for severity in (1, 2, 3):
        clean, scene = stale(severity)
        assert len(scene.calls) == len(clean.calls) + 1


def test_a_live_client_is_told_that_the_list_has_changed() -> None:
    shop = Shop(("stale_tool_list", 3))
    assert shop.live.moves
    assert list(shop.shown()) == [tool["name"] for tool in TOOLS]
    spoken = shop.live.call("get_order", ORDER)
    assert spoken.changed
    assert not spoken.result.ok
    assert not shop.heard
    (now,) = (n for n, d in shop.shown().items() if d["description"] == "Get one order.")
    (key,) = shop.shown()[now]["inputSchema"]["properties"]
    assert shop.call(now, **{key: "o-1"}).ok
    assert shop.heard == [("get_order", ORDER)]


def test_each_set_of_tools_that_a_search_has_found_is_a_phase_of_its_own() -> None:
    clean = make_scene(find_world("poi"), "booking", 0)
    scene = shifted(clean, ("tools_behind_search", 2))
    assert scene is not None
    layer: Any = scene.layers[-1]
    names = [tool.name for tool in layer.hidden]
    found = [set[str](), *({name} for name in names), set(names[:2]), set(names)]
    assert len({layer.phase({"found": each}) for each in found}) == len(found)

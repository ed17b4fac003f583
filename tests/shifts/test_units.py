"""Units and clocks that change with a note: on results, on arguments, on live tools."""

from __future__ import annotations

from typing import Any

import pytest
from scenes import clean_scenes, shifted

from toolshift.core.render import facts
from toolshift.core.scene import Applied, Scene
from toolshift.core.shift import NotApplicable
from toolshift.core.tool import Field, Result, Tool
from toolshift.core.world import POOLS
from toolshift.episode.draw import make_scene
from toolshift.interop.tools import from_mcp
from toolshift.shifts.careless import IgnoresUnits, naive_fails
from toolshift.shifts.live import Live, live_scene
from toolshift.shifts.live import shifted as shifted_live
from toolshift.shifts.registry import apply
from toolshift.shifts.units import TABLES, Conversion, Converted
from toolshift.worlds.registry import OURS, find_world


def moved(world: str, kind: str, pool: str = "dev") -> Scene:
    return apply(make_scene(find_world(world), kind, 0, pool=pool), "unit_change", 2)


@pytest.mark.parametrize("pool", POOLS)
def test_a_booking_is_made_by_the_local_time_of_a_slot(pool: str) -> None:
    scene = moved("poi", "booking", pool)
    wanted = scene.asks[0].goal["slot_time"]
    listed = next(step for step in scene.calls if "slot_id" in step.text and not step.effects)
    assert wanted not in listed.text
    assert scene.calls[-1].given["slot_id"] in listed.text
    tool = next(tool for tool in scene.tools if tool.name == listed.name)
    zones = [zone[0] for zone in TABLES["zones"][pool]]
    assert any(zone in tool.description for zone in zones)


def test_an_argument_is_taken_in_the_unit_of_the_note() -> None:
    scene = moved("medical", "prescribe", "test")
    dose = scene.asks[0].goal["dose"]
    assert scene.calls[-1].given["dose"] == dose * 100
    tool = next(tool for tool in scene.tools if tool.name == scene.calls[-1].name)
    param = next(param for param in tool.params if param.name == "dose")
    assert "hundredths of a milligram" in param.schema["description"]
    assert param.schema["minimum"] == 100


@pytest.mark.parametrize("world", OURS)
def test_it_applies_only_where_who_overlooks_it_comes_to_another_end(world: str) -> None:
    applied = [
        scene for one in clean_scenes(world, 33) if (scene := shifted(one, ("unit_change", 2)))
    ]
    assert applied
    assert all(naive_fails(scene.clean, IgnoresUnits, *scene.layers) for scene in applied)
    with pytest.raises(NotApplicable, match="whatever the units are"):
        moved("poi", "listing")


def test_no_description_names_the_former_unit() -> None:
    for world in OURS:
        for scene in clean_scenes(world, 33):
            after = shifted(scene, ("unit_change", 2))
            before = {tool.description for tool in scene.tools}
            for tool in after.tools if after else ():
                if tool.description not in before:
                    assert "euros" not in tool.description
                    assert not any(f.path[-1].endswith("_eur") for f in tool.returns)


def test_values_read_back_through_their_fields_and_gaps_stay_gaps() -> None:
    fields = (Field(("price_eur",), "price", "number", unit="eur"), Field(("opens",), "opens"))
    tool = Tool("look", "Look.", (), fields, origin=("look",))
    how = {"price": Conversion("price", 100), "opens": Conversion("opens", minutes=-120)}
    layer = Converted({"look": how}, {"look": "Note."})
    (shown,) = layer.tools((tool,), {})
    assert shown.description == "Look. Note."
    record: dict[str, Any] = {"price_eur": 12.5, "opens": "01:30"}
    for data in (record, {**record, "price_eur": None}, {"opens": "09:00"}):
        true = Result(True, dict(data), fields)
        result = layer.call("look", {}, {}, lambda *_, true=true: true)
        assert "price_eur" not in result.data
        assert facts(result.data, result.fields) == facts(data, fields)
    text = layer.call("look", {}, {}, lambda *_: Result(True, "as text"))
    assert text.data == "as text"


def test_a_unit_that_a_key_names_changes_on_live_tools() -> None:
    outputs = {
        "type": "object",
        "properties": {"weight_kg": {"type": "number"}, "price_min": {"type": "number"}},
    }
    schema = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
    weigh = {"name": "weigh", "description": "Weigh.", "inputSchema": schema}
    toolbox = from_mcp([{**weigh, "outputSchema": outputs}])
    scene = shifted_live(live_scene(toolbox), (Applied("unit_change", 2),))
    fields = toolbox.tools[0].returns
    live = Live(scene, toolbox, lambda *_: Result(True, {"weight_kg": 1.5, "price_min": 2}, fields))
    assert live.call("weigh", {"id": "x"}).result.data == {"weight": 150, "price_min": 2}
    assert "decagrams" in live.tools()[0].description
    assert "outputSchema" not in toolbox.speak(live.tools()[0])

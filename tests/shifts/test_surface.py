"""A surface says everything otherwise, one to one, and nothing else."""

from __future__ import annotations

import pytest

from toolshift.core.layer import Session
from toolshift.core.tool import DESCRIPTION, NAME, Field, Hint, Param, Result, Tool, error
from toolshift.episode.draw import make_scene
from toolshift.interop.mcp_results import UPSTREAM
from toolshift.shifts.surface import Surface, decoy
from toolshift.worlds.registry import find_world

TEXT = {"type": "string", "description": "Ask get_hours for it."}
TOOLS = (
    Tool("get_hours", "Hours; needs `place_id`. See find", (Param("place_id", "p", TEXT),), ()),
    Tool("find", "Find a place before get_hours or get_hours_v2; `find` is quick", (), ()),
)


class Recording:
    """An upstream that keeps what it is called with, and answers what it is told to."""

    def __init__(self, result: Result, tools: tuple[Tool, ...] = TOOLS) -> None:
        self.result, self.shown, self.called = result, tools, []

    def tools(self):
        return self.shown

    def call(self, name, arguments):
        self.called.append((name, arguments))
        return self.result


def opened(surface: Surface, result: Result = Result(True, {}), tools=TOOLS):
    upstream = Recording(result, tools)
    return Session(upstream, (surface,)), upstream


SWAPPED = Surface(
    names={"get_hours": "find", "find": "get_hours"},
    params={"get_hours": {"place_id": "venue"}},
)


def test_swapped_names_carry_calls_to_each_other():
    session, upstream = opened(SWAPPED)
    session.call("find", {"venue": "PL-1"})
    session.call("get_hours", {})
    assert upstream.called == [("get_hours", {"place_id": "PL-1"}), ("find", {})]


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("item_id is required", "key is required"),
        ("2 errors\nitem_id\n  Field required", "2 errors\nkey\n  Field required"),
        ("1 error\nkind\n  Field required", "1 error\nitem\n  Field required"),
        ("kind.0.name\n  bad", "item.0.name\n  bad"),
        ("this kind of item_ids is rare", "this kind of item_ids is rare"),
        ("'kind' and 'item_id'", "'item' and 'key'"),
        ("'item' is no name", "'item' is no name"),
    ],
)
def test_an_error_of_a_foreign_tool_speaks_of_parameters_as_they_are_shown(
    said: str, shown: str
) -> None:
    surface = Surface(params={"get": {"item_id": "key", "kind": "item"}})
    told = {"error": {"code": UPSTREAM, "message": said}}
    assert surface.outward(Result(False, told), "get").data["error"]["message"] == shown
    assert surface.outward(Result(False, said), "get").data == shown
    ours = error("bad", "item_id is required")
    assert surface.outward(ours, "get").data == ours.data, "ours quote the names that they mean"


def test_a_plain_word_before_a_bracket_is_a_tool() -> None:
    surface = Surface(names={"search": "q_7"}, params={"search": {"query": "words"}})
    text = "Search well: a search is `search`, search(query='tea') or research(it)."
    said = surface.say_params(surface.speak(text), "search")
    assert said == "Search well: a search is `q_7`, q_7(words='tea') or research(it)."
    assert surface.inverse.speak(surface.speak(text)) == text


def test_mentions_are_renamed_word_safely():
    session, _ = opened(Surface(names={"get_hours": "fn_1", "find": "fn_2"}))
    hours, find = session.tools()
    # A plain word is a mention only in quotes; a longer name is not a mention of a shorter one.
    assert hours.description == "Hours; needs `place_id`. See find"
    assert find.description == "Find a place before fn_1 or get_hours_v2; `fn_2` is quick"
    assert hours.params[0].schema["description"] == "Ask fn_1 for it."


def test_errors_notices_and_hints_speak_as_the_tools_are_shown():
    hint = Hint("use", tool="get_hours", arguments={"place_id": 1})
    told = error("gone", "find is gone: use get_hours(place_id=1), not 'find'", hint)
    session, _ = opened(SWAPPED, told.with_(notice="get_hours replaces find"))
    result = session.call("get_hours", {})
    assert (
        result.data["error"]["message"]
        == "get_hours is gone: use find(place_id=1), not 'get_hours'"
    )
    assert result.notice == "find replaces get_hours"
    assert result.hint == Hint("use", tool="find", arguments={"venue": 1})
    told = error("bad", "place_id: 'place_id' is missing; give place_id=...")
    session, _ = opened(SWAPPED, told)
    message = session.call("find", {}).data["error"]["message"]
    assert message == "place_id: 'venue' is missing; give venue=..."


def test_data_is_left_alone():
    data = {"note": "find get_hours", "place_id": "PL-1"}
    session, _ = opened(SWAPPED, Result(True, data))
    assert session.call("find", {"venue": "x"}).data is data


def test_hidden_names_do_not_work():
    surface = Surface(names={"find": "fn_2"}, params={"get_hours": {"place_id": "venue"}})
    session, upstream = opened(surface)
    assert session.call("find", {}).data["error"]["code"] == "unknown_tool"
    wrong = session.call("get_hours", {"place_id": "PL-1"})
    assert wrong.data["error"]["code"] == "invalid_arguments"
    assert upstream.called == []


def test_tools_that_come_later_pass_unchanged():
    session, upstream = opened(SWAPPED)
    upstream.shown = (*TOOLS, Tool("late", "Like find; use get_hours first", (), ()))
    late = session.tools()[-1]
    assert (late.name, late.description) == ("late", "Like find; use find first")
    session.call("late", {"place_id": 1})
    assert upstream.called == [("late", {"place_id": 1})]


def test_a_description_that_changes_later_is_said():
    surface = Surface(descriptions={"find": ""}, was={"find": TOOLS[1].description})
    session, upstream = opened(surface)
    assert session.tools()[1].description == ""
    upstream.shown = (TOOLS[0], TOOLS[1].with_(description="Deprecated"))
    assert session.tools()[1].description == "Deprecated"


def test_surplus_parameters_are_dropped():
    surplus = {"get_hours": (Param("verbose", "", {"type": "boolean"}, False),)}
    session, upstream = opened(Surface(surplus=surplus))
    session.call("get_hours", {"place_id": "PL-1", "verbose": True})
    assert upstream.called == [("get_hours", {"place_id": "PL-1"})]


def test_channels_only_shrink():
    surface = Surface(channels={"find": frozenset((NAME, DESCRIPTION))})
    session, _ = opened(surface, tools=(TOOLS[1].with_(channels=frozenset((NAME,))),))
    assert session.tools()[0].channels == {NAME}


def test_order_and_extra():
    extra = Tool("find_draft", "A draft", (), (Field(("ref",), "draft.ref"),))
    answer = Result(True, {"ref": "ABCD-2345", "n": 3}, extra.returns)
    surface = Surface(
        extra=(extra,), answers={"find_draft": answer}, order=("find", "find_draft"), seed=7
    )
    session, upstream = opened(surface)
    assert [tool.name for tool in session.tools()] == ["find", "find_draft", "get_hours"]
    one, again = (session.call("find_draft", {"x": 1}) for _ in range(2))
    other = session.call("find_draft", {"x": 2})
    assert one.ok
    assert one == again
    assert one.data["ref"] not in (other.data["ref"], "ABCD-2345")
    assert upstream.called == []
    assert session.true_calls == []


def test_decoys_keep_their_make():
    data = [
        {"id": "PL-1044", "ref": "ABCD-2345", "at": "09:30", "on": "2024-05-01", "word": "high"}
    ]
    made = decoy(data, 1)[0]
    assert made["id"].startswith("PL-")
    assert made["id"] != "PL-1044"
    assert made["ref"] != "ABCD-2345"
    assert len(made["ref"]) == 9
    assert (made["at"], made["on"], made["word"]) == ("09:30", "2024-05-01", "high")


@pytest.mark.parametrize(
    "names", [{"get_hours": "fn_1"}, {"get_hours": "find_it", "find_it": "get_hours"}]
)
def test_the_inverse_undoes_it(names):
    tools = (TOOLS[0], TOOLS[1].with_(name="find_it", description="After get_hours, `find_it`"))
    surface = Surface(
        names=names,
        params={"get_hours": {"place_id": "venue"}},
        descriptions={"get_hours": "Says when it opens", "find_it": ""},
        was={tool.name: tool.description for tool in tools},
    )
    over = Session(Recording(Result(True, {}), tools), (surface, surface.inverse))
    assert [vars_of(tool) for tool in over.tools()] == [vars_of(tool) for tool in tools]
    call = ("get_hours", {"place_id": "PL-1"})
    assert surface.spoken(*call) == (names["get_hours"], {"venue": "PL-1"})
    assert surface.inward(*surface.spoken(*call)) == call
    assert surface.inverse.speak(surface.speak("See get_hours.")) == "See get_hours."


@pytest.mark.parametrize("name", ["poi", "medical", "retail"])
def test_an_empty_surface_changes_nothing(name):
    world = find_world(name)
    scene = make_scene(world, next(iter(world.kinds)), 0)
    over = scene.with_(layers=(Surface(),))
    assert over.tools == scene.tools or [vars_of(t) for t in over.tools] == [
        vars_of(t) for t in scene.tools
    ]
    assert [step.text for step in over.rehearsal] == [step.text for step in scene.rehearsal]
    assert over.tools is not scene.tools
    assert over.open().tools() is over.open().tools()


def vars_of(tool: Tool):
    return {name: getattr(tool, name) for name in tool.__slots__}


def test_a_name_is_found_in_text_that_has_no_spaces():
    surface = Surface(names={"get_hours": "fn_1"}, params={"get_hours": {"place": "venue"}})
    said = surface.say_params(surface.speak("请先调用get_hours，参数place='A'。"), "get_hours")
    assert said == "请先调用fn_1，参数venue='A'。"
    assert surface.speak("éget_hours get_hours2") == "éget_hours get_hours2"
    assert Surface(names={"查询": "fn_2"}).speak("请查询一下 查询") == "请查询一下 fn_2"


def documented(**schemas: dict[str, object]) -> Tool:
    params = tuple(Param(name, name, schema) for name, schema in schemas.items())
    return Tool("get_weather", "Weather", params, ())


def texts_of(tool: Tool, surface: Surface) -> list[str]:
    return [param.schema["description"] for param in surface.show(tool).params]


def test_descriptions_of_parameters_follow_their_neighbours():
    surface = Surface(params={"get_weather": {"lat": "y", "geo_id": "place_key", "days": "span"}})
    tool = documented(
        lat={"description": "Latitude; ignored if geo_id is given. Not lat_2"},
        geo_id={"description": "The geo_id of a search, instead of `lat` or 'lat'"},
        days={"description": "Days; with lat=1.5 (metadata.lat=x is another), flat or lat"},
    )
    assert texts_of(tool, surface) == [
        "Latitude; ignored if place_key is given. Not lat_2",
        "The geo_id of a search, instead of `y` or 'y'",  # its own may be that of a result
        "Days; with y=1.5 (metadata.lat=x is another), flat or lat",
    ]


def test_a_name_that_is_a_choice_or_a_property_too_stays_in_descriptions():
    surface = Surface(params={"get_weather": {"name": "title", "unit": "scale"}})
    order = {"enum": ["name", "price"], "description": "By `name`, or in the `unit`"}
    inner = {"unit": {"type": "string", "description": "Beside `unit`"}}
    tool = documented(name={}, unit={}, order=order)
    assert texts_of(tool, surface)[2] == "By `name`, or in the `scale`"
    tool = documented(unit={}, filter={"properties": inner, "description": "By `unit`"})
    assert texts_of(tool, surface)[1] == "By `unit`"


def test_descriptions_inside_of_a_schema_follow():
    surface = Surface(
        names={"get_hours": "fn_1"}, params={"get_weather": {"geo_id": "place_key", "where": "at"}}
    )
    inner = {"type": "string", "description": "As get_hours has it; or geo_id"}
    where = {"items": {"properties": {"description": inner}}, "title": "Where", "default": "geo_id"}
    tool = documented(geo_id={"title": "Geo Id"}, where=where)
    key, at = surface.show(tool).params
    assert key.schema == {"description": ""}
    said = {"type": "string", "description": "As fn_1 has it; or place_key"}
    assert at.schema["items"] == {"properties": {"description": said}}
    assert at.schema["default"] == "geo_id"


def test_a_description_that_is_none_is_no_fault():
    surface = Surface(names={"get_hours": "fn_1"})
    tool = documented(place={"description": None})
    assert surface.show(tool).params == tool.params

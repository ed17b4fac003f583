"""What a call has to pass: every scene is proven, documented, and told apart from memory."""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import combinations, pairwise, product
from pathlib import Path
from typing import Any

import jsonschema_rs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scenes import Share, clean_scenes, is_right, proven, shifted, solved, words, words_of

from toolshift.agents.planted import PLANTED, planted
from toolshift.core.scene import Applied, Scene
from toolshift.core.shift import NotApplicable
from toolshift.core.tool import JSON, Param, Result, Tool, as_openai
from toolshift.core.world import POOLS
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import Episode
from toolshift.episode.grade import grade
from toolshift.interop.tools import from_mcp
from toolshift.runs.check import distance
from toolshift.shifts import arguments, toolset, units
from toolshift.shifts.arguments import Reshaped
from toolshift.shifts.live import Live, live_scene
from toolshift.shifts.live import shifted as shifted_live
from toolshift.shifts.registry import apply, compose, find_shift, shifts
from toolshift.worlds.own import load
from toolshift.worlds.registry import OURS, find_world

ARGUMENTS = ("type_change", "enum_change", "required_parameter", "default_change")
TOOLSET = ("tools_by_action", "tools_behind_search", "stale_tool_list")
MINE = (*ARGUMENTS, *TOOLSET, "unit_change")
PLACEBOS = ("default_change_placebo", "unit_change_placebo")
KINDS = [(world, kind) for world in OURS for kind in find_world(world).kinds]


@cache
def moved_scenes(name: str, severity: int, count: int = 11, pool: str = "dev") -> list[Scene]:
    found = (
        shifted(scene, (name, severity))
        for world in OURS
        for scene in clean_scenes(world, count, pool)
    )
    return [scene for scene in found if scene is not None]


# -- every scene -------------------------------------------------------------------------------


@cache
def with_words(world: str, pool: str) -> list[tuple[Scene, Counter[str]]]:
    """Clean scenes, and the words that the oracle is shown in each."""
    return [(scene, words(scene)) for scene in clean_scenes(world, 11, pool)]


@pytest.mark.parametrize("world", OURS)
@pytest.mark.parametrize("name", [*MINE, *PLACEBOS])
def test_the_oracle_proves_every_scene(name: str, world: str, share: Share) -> None:
    applied: Counter[int] = Counter()
    draws = (
        (pool, severity)
        for severity in find_shift(name).severities
        for pool in share(POOLS, 1, name, world, str(severity))
    )
    for pool, severity in draws:
        for scene, before in with_words(world, pool):
            moved = shifted(scene, (name, severity))
            if moved is not None:
                applied[severity] += 1
                episode, verdict = solved(moved)
                assert is_right(moved, verdict), (scene.task, severity)
                now = words_of(episode)
                assert now != before, "a shift that changes nothing"
                again = shifted(scene, (name, severity))
                assert again is not None
                assert words(again) == now
    assert all(applied[severity] for severity in find_shift(name).severities)


@pytest.mark.parametrize("name", [*MINE, *PLACEBOS])
def test_pairs_with_all_others_are_proven_or_not_applicable(name: str) -> None:
    some = [scene for world in OURS for scene in clean_scenes(world, 4)]
    for number, other in enumerate(shifts()):
        scene = some[number % len(some)]
        severities = find_shift(name).severities, find_shift(other).severities
        one, two = (levels[number % len(levels)] for levels in severities)
        moved = shifted(scene, (name, one), (other, two)) if name != other else None
        assert moved is None or proven(moved), (scene.task, other)


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(KINDS),
    st.sampled_from(POOLS),
    st.integers(0, 40),
    st.lists(st.sampled_from(MINE), min_size=1, max_size=4, unique=True),
    st.randoms(use_true_random=False),
)
def test_any_stack_is_proven_or_not_applicable(
    kind: tuple[str, str], pool: str, index: int, stack: list[str], rng: Any
) -> None:
    scene = make_scene(find_world(kind[0]), kind[1], index, pool=pool)
    moved = shifted(scene, *((name, rng.choice(find_shift(name).severities)) for name in stack))
    assert moved is None or proven(moved)


@pytest.mark.parametrize("name", [name for name in MINE if len(find_shift(name).severities) > 1])
def test_severity_rises_in_what_is_shown(name: str) -> None:
    sizes: list[list[float]] = []
    for scene in clean_scenes("poi", 22):
        at = [shifted(scene, (name, severity)) for severity in (1, 2, 3)]
        if all(at):
            sizes.append([distance(moved) for moved in at if moved is not None])
    low, middle, high = np.mean(sizes, axis=0)
    assert 0 < low < middle < high


# -- agents with one weakness ------------------------------------------------------------------


def outcomes(agent: str, name: str, severity: int, count: int = 11) -> tuple[float, str]:
    """The share passed by a planted agent, and its commonest cause."""
    causes: Counter[str] = Counter()
    scenes = moved_scenes(name, severity, count)
    for scene in scenes:
        episode = Episode(scene)
        planted(agent).play(episode)
        verdict = grade(episode)
        causes[verdict.cause] += 1
    passed = causes.pop("", 0)
    return passed / len(scenes), causes.most_common(1)[0][0] if causes else ""


FALLS = {
    "ignores_required": "required_parameter",
    "fixed_types": "type_change",
    "fixed_choices": "enum_change",
    "likest_choices": "enum_change",
    "assumes_defaults": "default_change",
    "ignores_units": "unit_change",
    "memorises_names": "tools_by_action",
    "never_searches": "tools_behind_search",
    "gives_up": "stale_tool_list",
}


@pytest.mark.parametrize("agent", FALLS)
def test_a_planted_agent_falls_for_the_cause_that_it_has(agent: str) -> None:
    passed, cause = outcomes(agent, FALLS[agent], find_shift(FALLS[agent]).severities[-1])
    assert passed < 0.3
    assert cause == PLANTED[agent][1]


@pytest.mark.parametrize("agent", sorted(set(FALLS) - {"memorises_names", "gives_up"}))
def test_each_weakness_shows_under_its_own_shift_alone(agent: str) -> None:
    others = [name for name in MINE if name != FALLS[agent]]
    passed = {name: outcomes(agent, name, find_shift(name).severities[-1])[0] for name in others}
    allowed = {"ignores_required": {"default_change"}, "likest_choices": set[str]()}
    assert {name for name, share in passed.items() if share < 1} <= allowed.get(agent, set())


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        ("half_memory", "type_change"),
        ("skims_parameters", "required_parameter"),
        ("half_memory", "default_change"),
        ("half_memory", "tools_by_action"),
        ("half_memory", "stale_tool_list"),
        ("likest_choices", "enum_change"),
    ],
)
def test_an_agent_falls_with_severity(agent: str, name: str) -> None:
    low, middle, high = (outcomes(agent, name, severity, 33)[0] for severity in (1, 2, 3))
    assert low >= middle >= high - 0.05
    assert low - high > 0.15


@pytest.mark.parametrize("name", PLACEBOS)
def test_a_placebo_is_shown_on_the_same_tools_and_fells_nobody_who_overlooks_it(name: str) -> None:
    twin = name.removesuffix("_placebo")
    severity = find_shift(name).severities[-1]
    for agent in ("assumes_defaults", "ignores_units", "ignores_required"):
        assert outcomes(agent, name, severity) == (1, "")
    for scene in clean_scenes("poi", 11):
        real, placebo = shifted(scene, (twin, severity)), shifted(scene, (name, severity))
        assert (real is None) == (placebo is None)
        if real is not None and placebo is not None:
            assert _touched(real) == _touched(placebo)


def _touched(scene: Scene) -> list[str]:
    before = {JSON.encode(as_openai(tool)) for tool in scene.clean.tools}
    return [tool.name for tool in scene.tools if JSON.encode(as_openai(tool)) not in before]


def test_noise_is_the_same_whatever_type_an_argument_has() -> None:
    low, _, high = (outcomes("noisy", "type_change", severity)[0] for severity in (1, 2, 3))
    assert low == high < 0.7


# -- wording -----------------------------------------------------------------------------------


@pytest.mark.parametrize("module", [arguments, toolset, units])
def test_pools_share_no_name_and_no_sentence(module: Any) -> None:
    for table, forms in module.TABLES.items():
        pools = forms if table == "units" else {pool: _texts(forms[pool]) for pool in POOLS}
        said = {pool: _texts(pools[pool]) for pool in POOLS}
        assert not any(said[one] & said[other] for one, other in combinations(POOLS, 2)), table


def _texts(forms: Any) -> set[str]:
    """Every text of a table."""
    if isinstance(forms, str):
        return {forms}
    inner = forms.values() if isinstance(forms, dict) else forms if _is_many(forms) else ()
    return {text for form in inner for text in _texts(form)}


def _is_many(forms: Any) -> bool:
    return isinstance(forms, list | tuple | set)


@pytest.mark.parametrize("pool", POOLS)
def test_no_brace_is_left_in_what_is_shown(pool: str) -> None:
    for name, draw in product(MINE, range(6)):
        scene = make_scene(find_world("poi"), "booking", draw, pool=pool)
        try:
            moved = compose(scene, [Applied(name, find_shift(name).severities[-1])], str(draw))
        except NotApplicable:
            continue
        shown = {tool.description for tool in moved.tools}
        shown |= {str(p.schema.get("description")) for tool in moved.tools for p in tool.params}
        assert not any("{" in text for text in shown), (name, shown)


# -- single shifts -----------------------------------------------------------------------------


def booking(*stack: tuple[str, int], pool: str = "dev") -> Scene:
    scene = shifted(make_scene(find_world("poi"), "booking", 0, pool=pool), *stack)
    assert scene is not None
    return scene


def test_what_is_required_is_checked_and_not_only_asked_for() -> None:
    scene = booking(("required_parameter", 3))
    session = scene.open()
    for step in scene.calls:
        tool = next(tool for tool in scene.tools if tool.name == step.name)
        known = {param.name for t in scene.clean.tools if t.name == tool.name for param in t.params}
        for name in sorted(step.given.keys() - known):
            refused = session.call(step.name, {**step.given, name: "something else"})
            assert not refused.ok
            assert name in refused.data["error"]["message"]
        assert session.call(step.name, dict(step.given)).ok


def test_each_severity_requires_what_the_one_before_does() -> None:
    for scene in clean_scenes("retail", 11):
        at = [shifted(scene, ("required_parameter", severity)) for severity in (1, 2, 3)]
        params = [{(t.name, p.name) for t in s.tools for p in t.params} for s in at if s]
        assert all(before < after for before, after in pairwise(params))


def test_a_value_of_another_result_is_not_accepted() -> None:
    """What came with one thing is not good for another."""
    param = Param("ref", "ref", {"type": "string"})
    layer = arguments.Required((arguments.Requirement("act", param),), "wrong", "{name}")
    memory: dict[str, Any] = {"calls": 0, "asks": 0}

    def below(name: str, given: dict[str, Any]) -> Result:
        return Result(True, {"id": given["id"], "ref": f"R{given['id']}"})

    for one in ("1", "2"):
        layer.call("find", {"id": one}, memory, below)
    assert layer.call("act", {"id": "1", "ref": "R1"}, memory, below).ok
    assert not layer.call("act", {"id": "1", "ref": "R2"}, memory, below).ok
    assert not layer.call("act", {"id": "1", "ref": "made up"}, memory, below).ok


def test_types_are_undone_by_the_inverse() -> None:
    clean = make_scene(find_world("poi"), "booking", 0)
    for name, severity in product(("type_change", "enum_change"), (1, 2, 3)):
        base = clean if name == "type_change" else make_scene(find_world("poi"), "hours", 0)
        scene = shifted(base, (name, severity))
        assert scene is not None
        (layer,) = scene.layers
        assert isinstance(layer, Reshaped)
        back = scene.with_(layers=(layer, layer.inverse))
        assert [as_openai(tool) for tool in back.tools] == [as_openai(t) for t in base.tools]
        session = back.open()
        for step in base.calls:
            assert JSON.encode(session.call(step.name, dict(step.given)).data) == step.text.encode()


def test_lists_of_objects_become_lists_of_texts() -> None:
    def tool(items: dict[str, Any]) -> Tool:
        schema = {"type": "array", "items": items}
        return Tool("add", "Add", (Param("lines", "lines", schema),), (), origin=("add",))

    one = {"type": "object", "properties": {"sku": {"type": "string"}}}
    two = {"type": "object", "properties": {"sku": {"type": "string"}, "n": {"type": "integer"}}}
    expected = [(one, [{"sku": "a"}], ["a"]), (two, [{"sku": "a", "n": 2}], ['{"sku":"a","n":2}'])]
    for items, before, after in expected:
        toolbox = from_mcp([_mcp("add", {"lines": {"type": "array", "items": items}})])
        scene = shifted_live(live_scene(toolbox), (Applied("type_change", 1),))
        (shown,) = scene.tools
        assert shown.params[0].write(before) == after
        assert jsonschema_rs.is_valid(shown.params[0].schema, after)
        assert not jsonschema_rs.is_valid(shown.params[0].schema, before)
        assert tool(items).params[0].schema["items"] == items


def test_truth_values_become_words() -> None:
    heard: list[dict[str, Any]] = []

    def carry(name: str, given: dict[str, Any]) -> Result:
        heard.append(given)
        return Result(True, "done")

    toolbox = from_mcp([_mcp("console", {"only_errors": {"type": "boolean", "default": True}}, [])])
    live = Live(shifted_live(live_scene(toolbox), (Applied("type_change", 3),)), toolbox, carry)
    schema = toolbox.speak(live.tools()[0])["inputSchema"]["properties"]["only_errors"]
    assert schema["enum"] == ["on", "off"]
    for said in schema["enum"]:
        live.call("console", {"only_errors": said})
    live.call("console", {})
    assert heard == [{"only_errors": True}, {"only_errors": False}, {}]
    assert not live.call("console", {"only_errors": True}).result.ok


def test_a_declared_default_changes_and_the_old_one_can_be_passed() -> None:
    heard: list[dict[str, Any]] = []

    def carry(name: str, given: dict[str, Any]) -> Result:
        heard.append(given)
        return Result(True, {"found": 1})

    topic = {"type": "string", "enum": ["general", "news"], "default": "general"}
    toolbox = from_mcp([_mcp("search", {"text": {"type": "string"}, "topic": topic}, ["text"])])
    scene = shifted_live(live_scene(toolbox), (Applied("default_change", 1),))
    live = Live(scene, toolbox, carry)
    (shown,) = live.tools()
    schema = toolbox.speak(shown)["inputSchema"]["properties"]["topic"]
    assert schema["default"] == "news"
    assert "`general`" in schema["description"]
    live.call("search", {"text": "x"})
    live.call("search", {"text": "x", "topic": "general"})
    assert heard == [{"topic": "news", "text": "x"}, {"topic": "general", "text": "x"}]


def test_choices_of_live_tools_go_below_as_they_were() -> None:
    heard: list[dict[str, Any]] = []

    def carry(name: str, given: dict[str, Any]) -> Result:
        heard.append(given)
        return Result(True, "done")

    level = {"enum": ["error", "warning", "info"]}
    toolbox = from_mcp([_mcp("console", {"level": level}, ["level"])])
    scene = shifted_live(live_scene(toolbox), (Applied("enum_change", 3),))
    live = Live(scene, toolbox, carry)
    schema = toolbox.speak(live.tools()[0])["inputSchema"]["properties"]["level"]
    assert not {"error", "warning", "info"} & set(schema["enum"])
    live.call("console", {"level": schema["enum"][1]})
    assert heard == [{"level": "warning"}]
    refused = live.call("console", {"level": "warning"}).result
    assert refused.data["error"]["code"] == "invalid_arguments"


def _mcp(name: str, properties: dict[str, Any], required: list[str] | None = None) -> Any:
    schema = {"type": "object", "properties": properties}
    schema["required"] = list(properties) if required is None else required
    hints = {"readOnlyHint": True}
    return {"name": name, "description": f"Do {name}.", "inputSchema": schema, "annotations": hints}


def test_results_that_hold_lists_are_no_fault(tmp_path: Path) -> None:
    """A parameter that an earlier result has the value of is sought among texts."""
    tools = (
        "def look(key: str):\n    return [{'id': 7, 'tags': ['a'], 'name': 'Foo'}]\n"
        "def read(id: int):\n    return {'ref': 'R-1', 'parts': [{'a': 1}]}\n"
    )
    (tmp_path / "odd_lists.py").write_text(tools)
    calls = "[{name: look, arguments: {key: Foo}}, {name: read, arguments: {id: 7}}]"
    task = f"{{id: t, ask: Find the ref of Foo, calls: {calls}, check: {{answer: R-1}}}}"
    (tmp_path / "odd.yaml").write_text(f"world: odd\ntools: {{python: odd_lists}}\ntasks: [{task}]")
    with pytest.raises(NotApplicable, match="a later tool could require"):
        apply(make_scene(load(tmp_path / "odd.yaml"), "task", 0), "required_parameter", 3)


# -- what foreign schemas ask beside a type ----------------------------------------------------


def foreign(schema: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The tool of a server that takes one argument."""
    inputs = {"type": "object", "properties": {"it": schema}, "required": ["it"], **more}
    return {"name": "set_it", "description": "Sets it.", "inputSchema": inputs}


def shown_schema(listed: dict[str, Any], shift: str) -> dict[str, Any]:
    """What is asked of that argument under a shift of severity 2."""
    box = from_mcp([listed])
    scene = shifted_live(live_scene(box), (Applied(shift, 2),))
    return dict(box.schema(scene.tools[0])["properties"]["it"])


@pytest.mark.parametrize(
    ("schema", "count"),
    [
        ({"type": "integer", "enum": [1, 2, 3]}, 3),
        ({"type": "number", "const": 0.5}, 1),
        ({"type": "boolean", "enum": [True]}, 1),
        ({"type": "boolean", "const": False}, 1),
        ({"type": "boolean"}, 2),
    ],
)
def test_a_list_of_values_stays_one_in_another_type(schema: dict[str, Any], count: int) -> None:
    now = shown_schema(foreign(schema), "type_change")
    assert now["type"] == "string"
    assert len(now["enum"]) == count
    assert all(isinstance(value, str) for value in now["enum"])


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer", "not": {"const": 0}},
        {"type": "array", "items": {"type": "object"}, "enum": [[], [{"a": 1}]]},
    ],
)
def test_a_type_stays_where_more_is_asked_than_another_could_say(schema: dict[str, Any]) -> None:
    with pytest.raises(NotApplicable, match="can be changed this way"):
        shown_schema(foreign(schema), "type_change")


def test_all_that_a_schema_says_of_choices_is_said_of_the_new_ones() -> None:
    choices = {"type": "string", "enum": ["read", "party"], "pattern": "^(read|party)$"}
    more = {"default": "read", "examples": ["party"], "minLength": 1, "not": {"const": "party"}}
    now = shown_schema(foreign(choices | more), "enum_change")
    read, party = now["enum"]
    assert (now["default"], now["examples"], now["not"]) == (read, [party], {"const": party})
    assert jsonschema_rs.is_valid(now, read)
    assert now["minLength"] == 1


def test_a_server_whose_condition_cannot_be_said_is_left_alone() -> None:
    asks = {"if": {"properties": {"it": {"pattern": "^r"}}}, "then": {"minProperties": 1}}
    listed = foreign({"type": "string", "enum": ["read", "party"]}, **asks)
    with pytest.raises(NotApplicable, match=r"enum_change:2: a condition on it \(pattern\)"):
        shown_schema(listed, "enum_change")

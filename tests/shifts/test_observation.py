"""The interaction shifts: solvable, deterministic, graded, and different in each pool."""

from __future__ import annotations

import csv
import re
from collections import Counter
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.scenes import Share, level
from toolshift.core.render import facts
from toolshift.core.scene import Applied, Scene
from toolshift.core.shift import SEVERITIES, NotApplicable, Severity
from toolshift.core.tool import JSON, Field, Param, Result, Tool, as_openai
from toolshift.episode.draw import make_scene
from toolshift.episode.episode import Episode, messages
from toolshift.episode.oracle import OracleAgent
from toolshift.shifts import interruption, observation
from toolshift.shifts.oracle_trace import TABLES, restyle
from toolshift.shifts.registry import apply, compose, shifts
from toolshift.shifts.wording import reword_name
from toolshift.worlds.own import OwnWorld, load
from toolshift.worlds.registry import find_world

MINE = (
    *("format_drift", "missing_values", "truncation", "verification_change"),
    *("transient_error", "permanent_error", "redirect", "redirect_header"),
    *("tool_removed_midway", "tool_added", "tool_migrated"),
)
WORLDS = ("poi", "medical", "retail")
POOLS = ("train", "dev", "test")
CASES = [(world, kind) for world in WORLDS for kind in find_world(world).kinds]


@cache
def clean(world: str, kind: str, pool: str, index: int = 0) -> Scene:
    return make_scene(find_world(world), kind, index, pool=pool)


def play(scene: Scene) -> Episode:
    episode = Episode(scene)
    OracleAgent().play(episode)
    return episode


@cache
def played(scene: Scene) -> Episode:
    return play(scene)


def shifted(scene: Scene, *applied: tuple[str, Severity]) -> Scene | None:
    try:
        for name, severity in applied:
            scene = apply(scene, name, severity)
    except NotApplicable:
        return None
    return scene


def check_solved(scene: Scene) -> Episode:
    episode = play(scene)
    told = [(step.kind, step.name, step.text) for step in episode.steps]
    assert episode.end == "answered", told
    assert episode.steps[-1].said == scene.asks[-1].expected, told
    assert tuple(episode.session.upstream.state.effects) == scene.outcome.effects, told  # type: ignore[attr-defined]
    assert sum(step.kind == "call" for step in episode.steps) <= 24
    return episode


@pytest.mark.parametrize("name", MINE)
@pytest.mark.parametrize(("world", "kind"), CASES)
def test_the_oracle_solves(world: str, kind: str, name: str, share: Share) -> None:
    draws = product(POOLS, range(2), (1, 2, 3))
    for pool, index, severity in share(draws, 4, world, kind, name):
        before = clean(world, kind, pool, index)
        scene = shifted(before, (name, severity))
        if scene is not None:
            episode = check_solved(scene)
            assert heard(episode) != heard_clean(before), "a shift that changes nothing"


@pytest.mark.parametrize("first", MINE)
@pytest.mark.parametrize("second", MINE)
def test_pairs_compose(first: str, second: str, share: Share) -> None:
    for number, (world, kind) in share(enumerate(CASES), 6, first, second):
        before = clean(world, kind, POOLS[number % 3], number)
        scene = shifted(before, (first, 3), (second, SEVERITIES[number // 3 % 3]))
        if scene is not None:
            check_solved(scene)


OTHERS = [n for n, s in shifts().items() if n not in MINE and s.preserves == "end_state"]


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("name", MINE)
def test_composes_with_the_other_families(name: str, other: str, share: Share) -> None:
    for number, (world, kind) in share(enumerate(CASES[::3]), 3, name, other):
        stack = [Applied(name, 3), Applied(other, level(other, SEVERITIES[number % 3]))]
        try:
            scene = compose(clean(world, kind, POOLS[number % 3], number), stack)
        except NotApplicable:
            continue
        check_solved(scene)


@settings(max_examples=60, deadline=None)
@given(
    case=st.sampled_from(CASES),
    pool=st.sampled_from(POOLS),
    index=st.integers(0, 500),
    applied=st.lists(
        st.tuples(st.sampled_from(MINE), st.sampled_from([1, 2, 3])), min_size=2, max_size=4
    ),
)
def test_stacks_compose(case: Any, pool: str, index: int, applied: Any) -> None:
    scene = shifted(clean(*case, pool, index), *applied)
    if scene is not None:
        check_solved(scene)


@pytest.mark.parametrize("name", MINE)
def test_same_seed_same_bytes(name: str) -> None:
    for pool, severity in product(POOLS, (1, 2, 3)):
        scenes = [
            shifted(make_scene(find_world("poi"), "best_rated", 3, pool=pool), (name, severity))
            for _ in range(2)
        ]
        one, other = (play(scene) for scene in scenes if scene is not None)
        assert JSON.encode(heard(one)) == JSON.encode(heard(other))


# -- severity ----------------------------------------------------------------------------------


def heard(episode: Episode) -> list[Any]:
    """Everything an agent was shown."""
    first = [as_openai(tool) for tool in episode.scene.tools]
    return [messages(episode.scene, episode.steps), first, [as_openai(t) for t in episode.tools]]


def words(episode: Episode) -> Counter[str]:
    return Counter(re.findall(r"\w+", JSON.encode(heard(episode)).decode()))


@cache
def heard_clean(scene: Scene) -> list[Any]:
    return heard(played(scene))


@cache
def words_clean(scene: Scene) -> Counter[str]:
    return words(played(scene))


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("name", MINE)
def test_severity_rises(name: str, world: str, share: Share) -> None:
    """Words that differ from the clean scene, as a share of it: their mean rises."""
    totals = [0.0, 0.0, 0.0]
    count = 0
    draws = share(product(find_world(world).kinds, POOLS, range(2)), 24, name, world)
    for kind, pool, index in draws:
        before = clean(world, kind, pool, index)
        scenes = [shifted(before, (name, severity)) for severity in (1, 2, 3)]
        if None in scenes:
            continue
        count += 1
        plain = words_clean(before)
        for place, scene in enumerate(scenes):
            assert scene is not None
            now = words(play(scene))
            totals[place] += ((now - plain) + (plain - now)).total() / plain.total()
    assert count >= len(draws) * (0.6 if name != "truncation" and world == "poi" else 0.09)
    assert totals[0] < totals[1] < totals[2]


# -- pools -------------------------------------------------------------------------------------


def phrases(text: str) -> set[tuple[str, ...]]:
    """Three words in a row; placeholders are no words."""
    found = re.findall(r"[a-z0-9']+", re.sub(r"\{\w+\}", " | ", text.lower()))
    return {tuple(found[at : at + 3]) for at in range(len(found) - 2)}


SAID = [name for name in MINE if name != "format_drift"]


def test_pools_share_no_wording() -> None:
    rows = {pool: [row for name in SAID for row in TABLES[name][pool]] for pool in POOLS}
    codes = {pool: {row[0] for row in rows[pool]} - {""} for pool in POOLS}
    texts = {
        pool: {p for row in rows[pool] for text in row[1:] for p in phrases(text)} for pool in POOLS
    }
    for one, other in (("train", "dev"), ("train", "test"), ("dev", "test")):
        assert not codes[one] & codes[other]
        assert not texts[one] & texts[other]


def test_pools_share_no_keys_or_forms() -> None:
    tables = TABLES["format_drift"]
    fields = {key for w in WORLDS for t in find_world(w).tools for f in t.returns for key in f.path}
    keys = {
        pool: {restyle(key, style, pool) for style in tables[pool]["styles"] for key in fields}
        for pool in POOLS
    }
    shapes = {pool: {row["form"] for row in tables[pool]["shapes"]} - {"json"} for pool in POOLS}
    groups = {
        pool: {
            key
            for row in tables[pool]["shapes"]
            for key in (*row["text"], *row["numbers"], *row["leaf"], *tables[pool]["outer"])
        }
        for pool in POOLS
    }
    units = {pool: {row[0] for row in tables[pool]["units"].values()} for pool in POOLS}
    for one, other in (("train", "dev"), ("train", "test"), ("dev", "test")):
        for kept in (keys, shapes, groups, units):
            assert not kept[one] & kept[other]
        synonyms = TABLES["synonyms"]
        assert not set(synonyms[one].values()) & set(synonyms[other].values())
    assert not fields & set.union(*keys.values())


def test_pools_share_no_successor_names() -> None:
    names = {
        pool: {
            interruption._successor(tool.name, kind, task, set())
            for world in WORLDS
            for tool in find_world(world).tools
            for kind in TABLES["names"][pool]["affixes"]
            for task in (clean("poi", "listing", pool, index).task for index in range(3))
        }
        for pool in POOLS
    }
    affixes = {pool: set(TABLES["names"][pool]["affixes"].values()) for pool in POOLS}
    verbs = {pool: set(TABLES["names"][pool]["verbs"].values()) for pool in POOLS}
    for one, other in (("train", "dev"), ("train", "test"), ("dev", "test")):
        for kept in (names, affixes, verbs):
            assert not kept[one] & kept[other]


def test_keys_of_one_result_stay_apart() -> None:
    for pool, world in product(POOLS, WORLDS):
        shapes = TABLES["format_drift"][pool]["shapes"]
        styles = [
            *TABLES["format_drift"][pool]["styles"],
            *(s["style"] for s in shapes if "style" in s),
        ]
        for style, tool in product(styles, find_world(world).tools):
            keys = [restyle(f.path[-1], style, pool) for f in tool.returns]
            assert len(set(keys)) == len(keys), (tool.name, keys)


# -- single shifts -----------------------------------------------------------------------------


json_data = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab \n{:", max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["name", "NAME", "name_value", "full name", "O-1701", "/a/b.txt", "id"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


def values_of(data: Any) -> Counter[str]:
    """The values at the ends of JSON data, however they are nested."""
    if isinstance(data, dict):
        return sum(map(values_of, data.values()), Counter[str]())
    if isinstance(data, list):
        return sum(map(values_of, data), Counter[str]())
    return Counter([repr(data)])


@settings(max_examples=80, deadline=None)
@given(data=st.dictionaries(st.sampled_from(["name", "nameValue", "list"]), json_data, min_size=1))
@pytest.mark.parametrize("style", ["camel", "upper", "data", "dotted"])
def test_nested_data_keeps_its_values_and_the_keys_that_are_data(style: str, data: Any) -> None:
    drift = observation.Drift(style, "dev")
    result = drift.call("t", {}, {}, lambda name, arguments: Result(True, data))
    assert values_of(result.data) == values_of(data)
    for key in ("O-1701", "/a/b.txt"):
        assert str(result.data).count(key) == str(data).count(key)


def test_keys_drift_at_every_depth_and_inside_of_texts() -> None:
    data = {
        "shop_orders": [
            {"order_lines": [{"item_name": "tea"}], "by_id": {"O-1": {"unit_price": 2}}}
        ],
        "raw_text": '{"item_name": "tea"}',
        "log_lines": "Item name: tea\nUnit price: 2",
    }
    drift = observation.Drift("camel", "train")
    told = str(drift.call("t", {}, {}, lambda name, arguments: Result(True, data)).data)
    old = (
        "shop_orders",
        "order_lines",
        "item_name",
        "by_id",
        "unit_price",
        "Item name",
        "raw_text",
    )
    assert not [key for key in old if key in told]
    assert "'O-1'" in told


def test_results_of_other_shapes_are_laid_out_each_by_its_own() -> None:
    fields = (Field(("price",), "price", "number", unit="eur"),)
    drift = observation.Drift(
        "upper", "dev", "json", ("texts",), ("numbers",), ("datum",), (("eur", "cents", 100),)
    )

    def drifted(data: Any) -> Result:
        return drift.call("t", {}, {}, lambda *_: Result(True, data, fields))

    shapes = [
        {"price": 2.5, "left": 3},
        {"price": 2.5, "left": "three"},
        {"left": "three", "price": None},
        [{"price": 1, "left": 3}, {"price": 2, "left": "three"}, {"more": {"price": 4}}],
        {"price": 2.5, "left": 3},
    ]
    fresh = []
    for shape in shapes:
        observation._layout.cache_clear()
        fresh.append(drifted(shape))
    assert [drifted(shape) for shape in (*shapes, *shapes)] == [*fresh, *fresh]
    assert fresh[0].data == fresh[4].data
    assert fresh[0].data["numbers"] == {"AMOUNT_CENTS": {"datum": 250}, "LEFT": {"datum": 3}}
    assert fresh[1].data["texts"] == {"LEFT": {"datum": "three"}}
    assert facts(fresh[3].data[1], fresh[3].fields) == {"price": 2}


def test_units_stand_in_the_keys() -> None:
    scene = apply(clean("poi", "nearer", "train"), "format_drift", 3)
    steps = [step for step in play(scene).steps if step.name == "get_route"]
    before = [s for s in play(scene.clean).steps if s.name == "get_route"]
    km = float(re.findall(r'"distance_km":([\d.]+)', before[0].text)[0])
    assert re.search(rf"length_?M\W[a-z\W]*{km * 1000:.0f}\b", steps[0].text, re.I)


@pytest.mark.parametrize("pool", POOLS)
def test_a_header_alone_names_the_successor(pool: str) -> None:
    for number, severity in product(range(4), SEVERITIES):
        scene = shifted(clean("poi", "route", pool, number), ("redirect_header", severity))
        assert scene is not None
        sent = [step for step in play(scene).steps if step.hint == "use"]
        assert sent
        for step in sent:
            told = msgspec.json.decode(step.text)
            said = str(told.pop("error"))
            new = max((t.name for t in scene.tools if t.name in str(told)), key=len)
            assert new != step.name
            assert new not in said


def test_a_header_goes_by_the_names_that_are_shown() -> None:
    """Above a header, tools may be renamed, and may be replaced midway."""
    scene = clean("poi", "booking", "dev", 1)
    for other in ("identity_erasure", "semantic_rename", "tool_removed_midway"):
        both = compose(scene, [Applied("redirect_header", 3), Applied(other, 3)])
        told = [step.text for step in check_solved(both).steps if step.hint == "use"]
        assert any("successor-version" in text for text in told)


@pytest.mark.parametrize(("world", "kind"), CASES)
def test_results_as_csv_keep_keys_and_values(world: str, kind: str) -> None:
    marks = {"train": "\t", "dev": ",", "test": ";"}
    for pool in POOLS:
        before = clean(world, kind, pool)
        scene = apply(before, "csv_results", 2)
        told = [step for step in check_solved(scene).steps if step.kind == "call" and step.ok]
        plain = [step for step in played(before).steps if step.kind == "call" and step.ok]
        for now, then in zip(told, plain, strict=True):
            rows = list(csv.reader(now.text.split("\n"), delimiter=marks[pool]))
            data = msgspec.json.decode(then.text)
            records = data if isinstance(data, list) else [data]
            keys = set().union(*records) if isinstance(data, list) else {"field", "value"}
            assert set(rows[0]) - {"#"} == keys
            assert len(rows) - 1 == (len(data) if isinstance(data, list) else len(data.keys()))
            for value in (str(v) for r in records for v in r.values() if isinstance(v, str)):
                assert value in now.text


def own_world(folder: Path, tools: str, arguments: str, ask: str, answer: str) -> OwnWorld:
    """A world of one task, which calls the function `look`."""
    (folder / "odd_tools.py").write_text(tools, encoding="utf-8")
    call = f"{{name: look, arguments: {arguments}}}"
    task = f"{{id: t, ask: '{ask}', calls: [{call}], check: {answer}}}"
    file = folder / "odd.yaml"
    file.write_text(f"world: odd\ntools: {{python: odd_tools}}\ntasks: [{task}]", encoding="utf-8")
    return load(file)


@pytest.mark.parametrize(
    ("result", "check", "severity"),
    [
        ("{'价格': 17}", "{answer: '17'}", 1),  # keys that no style has another form of
        ("'It is 17.'", "{answer: '17'}", 3),
        ("{}[key]", "{refuse: not_found}", 3),
    ],
)
def test_results_that_would_stay_the_same_are_no_drift(
    tmp_path: Path, result: str, check: str, severity: Severity
) -> None:
    tools = f'def look(key: str):\n    """Look up."""\n    return {result}\n'
    world = own_world(tmp_path, tools, "{key: A-1}", "What is A-1?", check)
    scene = make_scene(world, "task", 0)
    for name in ("format_drift", "csv_results")[: severity - 1 or 1]:
        with pytest.raises(NotApplicable, match="no result of the task holds data"):
            apply(scene, name, severity if name == "format_drift" else 2)


def test_a_format_is_changed_once() -> None:
    scene = clean("poi", "listing", "dev")
    with pytest.raises(NotApplicable, match=r"result\.form is already changed"):
        compose(scene, [Applied("csv_results", 2), Applied("format_drift", 2)])


def test_errors_come_before_the_true_call() -> None:
    """An answer that asks for another call of a write tool has not written."""
    for name, severity in product(MINE, (1, 2, 3)):
        scene = shifted(clean("poi", "booking", "dev", 1), (name, severity))
        assert scene is not None
        for step in play(scene).steps:
            if step.provoked or step.hint:
                assert "book_slot" not in [true for true, _ in step.true]


def test_a_wrong_cursor_is_refused() -> None:
    scene = apply(clean("poi", "booking", "train"), "truncation", 1)
    step = next(step for step in scene.calls if step.hint == "page")
    assert isinstance(step.arguments, dict)
    result = scene.open().call(step.name, {**step.arguments, "cursor": "c_000000"})
    assert result.data["error"]["code"] == "invalid_cursor"


def test_an_old_name_is_answered_with_the_new_one() -> None:
    scene = apply(clean("poi", "listing", "train"), "tool_removed_midway", 1)
    session = scene.open()
    for step in scene.calls[:1]:
        session.call(step.name, dict(step.arguments))  # type: ignore[arg-type]
    old = next(tool for tool in session.tools() if tool.retired)
    result = session.call(old.name, {})
    assert result.hint is not None
    assert result.hint.tool in {tool.name for tool in session.tools() if not tool.retired}
    assert result.hint.tool in result.data["error"]["message"]


def test_reissued_ids_are_unknown_until_told() -> None:
    scene = apply(clean("poi", "booking", "dev"), "verification_change", 3)
    layer = scene.layers[-1]
    assert isinstance(layer, observation.Reissue)
    shown = JSON.encode(heard(play(scene.clean))).decode()
    for chain in layer.chains:
        assert chain[0] in shown
        assert not any(new in shown for new in chain[1:])


def test_every_shift_is_registered() -> None:
    for name in MINE:
        assert shifts()[name].tier == "interaction"
        assert shifts()[name].preserves == "end_state"


def test_parameters_of_a_migrated_tool_have_one_name_each() -> None:
    """Two names of one style stay apart, and descriptions speak of the new names."""
    text = {"type": "string", "description": "Instead of order_id"}
    names = ("order_id", "orderId", "order-id")
    tool = Tool("get", "By `order_id`", tuple(Param(n, n, text) for n in names), ())
    for style in ("camel", "spaced", "pascal"):
        moved = interruption.migrated(tool, style, "dev", "", synonyms=False)
        layer = interruption.Moves((interruption.Move("get", ("fetch",), 0, moved),), "", "")
        _, new = layer.tools((tool,), {"calls": 0})
        assert len({param.name for param in new.params}) == len(names)
        shown = new.params[0].name
        assert new.description == f"By `{shown}`"
        assert new.params[2].schema["description"] == f"Instead of {shown}"


def test_names_beyond_ascii_are_joined_from_whole_words() -> None:
    assert restyle("größe_id", "camel", "dev", synonyms=False) == "größeId"
    assert restyle("GrößeID", "data", "dev", synonyms=False) == "data-größe-id"
    assert restyle("数量", "dunder", "dev", synonyms=False) == "the__数量"
    assert reword_name("find_idée", "dev").endswith("_idée")
